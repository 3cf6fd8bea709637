// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any JSON as a topology document. What is taken hashes the same again after writing,
 * and a difference to the document before it is told exactly when the fingerprints differ.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void compare(const struct topo_shape *a, const struct topo_shape *b)
{
	struct topo_diff d;

	check(topo_shape_diff(a, b, &d) == 0);
	check((d.n == 0) == (strcmp(a->fingerprint, b->fingerprint) == 0));
	free(d.e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topo_shape *before; /* freed when the next one comes */
	struct fb_err e = {0};
	struct topo_shape *s, *again;
	json_t *doc = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);

	if (!doc)
		return 0;
	if (topo_shape_from_json(doc, "fuzz", &s, &e) != 0) {
		check(e.code && e.msg[0]);
		json_decref(doc);
		return 0;
	}
	json_object_del(doc, "shape");
	topo_shape_json(s, doc);
	check(topo_shape_from_json(doc, "again", &again, &e) == 0);
	check(strcmp(s->fingerprint, again->fingerprint) == 0);
	topo_shape_free(again);
	json_decref(doc);
	compare(s, s);
	if (before) {
		compare(before, s);
		compare(s, before);
	}
	topo_shape_free(before);
	before = s;
	return 0;
}
