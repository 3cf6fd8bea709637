// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as output of ibnetdiscover, plain or -p. What is accepted holds together
 * and can be judged; what is refused says where.
 */
#include "topo/fabric/fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric *f = fabric_new();
	struct fb_err e = {0};
	char *text = copy_input(data, size);
	check(f != NULL);
	int rc = fabric_parse_discover(f, text, size, "fuzz", &e);
	if (rc == 0)
		rc = fabric_finish(f, "fuzz", &e);
	if (rc < 0) {
		check_error(rc, &e);
	} else {
		check_model(f, size);
		judge(f, NULL);
	}
	fabric_free(f);
	free(text);
	return 0;
}
