// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: gate files, and what is asked of one that was accepted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const metrics[] = {
		"verbs.latency/read:latency p50", "null/one:latency p99.9", "a:b", ""};
	struct gate g;
	struct fb_err e = {0};
	if (gate_parse((const char *)data, size, "fuzz.ini", &g, &e) != 0)
		return 0;
	if (gate_check_expiry(&g, "2026-11-30", &e) == 0)
		for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
			const struct gate_floor *f = gate_floor_of(&g, metrics[i], "p50");
			const struct gate_waiver *w = gate_waiver_of(&g, metrics[i], "REGRESSED");
			if ((f && !f->reason[0]) || (w && (!w->owner[0] || !w->expires[0])))
				abort(); /* a floor or waiver that nobody answers for */
		}
	gate_free(&g);
	return 0;
}
