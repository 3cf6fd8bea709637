// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as a cabling list, for a small fabric. What is accepted names ends that
 * are in the fabric or says what they are called, and each cable is told once.
 */
#include "topo/fabric/fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric *f = small_fabric();
	struct fabric_list l = {.name = NULL};
	struct fb_err e = {0};
	char *text = copy_input(data, size);
	int rc = fabric_list_parse(f, text, size, "fuzz", &l, &e);
	if (rc < 0) {
		check_error(rc, &e);
	} else {
		check(l.cable.n > 0 && l.cable.n <= size);
		for (size_t i = 0; i < l.cable.n; i++)
			for (int k = 0; k < 2; k++) {
				const struct fabric_end *end = &l.cable.v[i].end[k];
				check(end->node < (int)f->node.n && (end->node >= 0) == !end->name);
			}
		judge(f, &l);
	}
	fabric_list_free(&l);
	fabric_free(f);
	free(text);
	return 0;
}
