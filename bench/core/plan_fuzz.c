// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as a plan. What is accepted must hold what the header promises. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_plan p;
	struct fb_err e = {0};
	if (fb_plan_parse((const char *)data, size, "fuzz.ini", &p, &e) != 0) {
		if (e.code == 0 || e.msg[0] == '\0' || e.exit != FB_EXIT_USAGE)
			abort();
		return 0;
	}
	if (p.njobs == 0 || p.njobs > 256)
		abort();
	for (size_t i = 0; i < p.njobs; i++)
		if (!p.jobs[i].command || !p.jobs[i].command[0] || strlen(p.jobs[i].name) > 40 ||
			p.jobs[i].launches == 0)
			abort();
	fb_plan_free(&p);
	return 0;
}
