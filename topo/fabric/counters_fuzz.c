// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as output of ibqueryerrors or perfquery, for a small fabric. What is
 * accepted belongs to ports and can be judged.
 */
#include "topo/fabric/fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric *f = small_fabric();
	struct fb_err e = {0};
	char *text = copy_input(data, size);
	int rc = fabric_parse_counters(f, text, size, "fuzz", &e);
	if (rc < 0) {
		check_error(rc, &e);
	} else {
		for (size_t i = 0; i < f->counters.n; i++)
			check(f->counters.v[i].port < f->port.n &&
				f->port.v[f->counters.v[i].port].counters == (int)i);
		judge(f, NULL);
	}
	fabric_free(f);
	free(text);
	return 0;
}
