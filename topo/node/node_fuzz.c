// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as what nvidia-smi prints, and as machine.ini. What is accepted must hold
 * what the headers promise. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/expect.h"
#include "topo/node/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void smi(const char *text)
{
	struct gpu_facts g = {.n = 0};
	int rc = gpu_parse_q(text, &g);
	if (rc == 0)
		rc = gpu_parse_nvlink(text, &g);
	for (size_t i = 0; i < g.n; i++)
		if (g.n > GPU_MAX || g.gpu[i].links < -1 || g.gpu[i].ecc > 1 ||
			!memchr(g.gpu[i].bdf, '\0', sizeof(g.gpu[i].bdf)))
			abort();
	gpu_facts_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct node_expect x;
	struct fb_err e = {0};
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	smi(text);
	if (node_expect_parse(text, size, "fuzz.ini", &x, &e) == 0) {
		if (x.n_dev > EXPECT_MAX_DEVS || x.gpus > 256 + EXPECT_MAX_DEVS)
			abort();
		node_expect_free(&x);
	} else if (e.code == 0 || e.msg[0] == '\0') {
		abort();
	}
	free(text);
	return 0;
}
