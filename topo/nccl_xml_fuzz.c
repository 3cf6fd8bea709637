// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: NCCL's topology XML. What is read can be rendered and written, and what was written
 * is read again as the same number of everything.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_err e = {0};
	struct fb_strbuf xml = {0}, text = {0};
	struct topo *t, *again;
	int rc = nccl_xml_parse((const char *)data, size, "fuzz", &t, &e);

	if (rc) {
		check(!t && e.code == rc && e.msg[0]);
		return 0;
	}
	topo_tree(t, true, &text);
	topo_matrix(t, &text);
	json_decref(topo_to_json(t, false));
	check(topo_nccl_xml(t, true, &xml, &e) == 0);
	fb_strbuf_free(&xml);
	check(topo_nccl_xml(t, false, &xml, &e) == 0);
	check(nccl_xml_parse(xml.s, xml.len, "again", &again, &e) == 0);
	check(again->n_numa == t->n_numa && again->n_pci == t->n_pci &&
		again->n_gpus == t->n_gpus && again->n_nics == t->n_nics &&
		again->n_rdma == t->n_rdma && again->n_fast == t->n_fast &&
		/* A version is written where there was none. */
		again->n_extra - t->n_extra <= 1);
	fb_strbuf_free(&text);
	check(topo_nccl_xml(again, false, &text, &e) == 0 && strcmp(text.s, xml.s) == 0);
	topo_free(again);
	topo_free(t);
	fb_strbuf_free(&xml);
	fb_strbuf_free(&text);
	return 0;
}
