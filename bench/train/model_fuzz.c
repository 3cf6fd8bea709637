// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as a model file. What is accepted must be a model whose counts, cuts,
 * bytes and memory are numbers; what is refused must say why. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train/strategy.h"

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_unit(const struct model *m, int64_t unit)
{
	struct model_unit u;
	float x[4];
	model_unit(m, unit, &u);
	check(u.n > 0 && u.n <= MODEL_MAX_TENSORS && u.elements > 0);
	for (int i = 0; i < u.n; i++) {
		int64_t n = u.t[i].rows * u.t[i].cols;
		check(n > 0 && u.t[i].offset + n <= u.elements);
		model_init(m, unit, &u.t[i], 1, n - 1, 1, x);
		check(isfinite(x[0]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {"ddp", "zero2", "fsdp", "hybrid:3", "offload"};
	struct step_config c = {.ranks = 12, .micro_seqs = 3, .micro_batches = 2, .clip = true};
	struct fb_err e = {0};
	if (model_parse((const char *)data, size, "fuzz.ini", &c.model, &e) != 0) {
		check(e.code != 0 && e.msg[0] != '\0' && e.exit == FB_EXIT_USAGE);
		return 0;
	}
	check(model_check(&c.model, &e) == 0);
	check(model_params(&c.model) > 0 && model_matmul_params(&c.model) > 0);
	check_unit(&c.model, 0);
	check_unit(&c.model, c.model.layers);
	c.seq = c.model.positions;
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		check(isfinite(model_flops_per_token(&c.model, c.seq, (enum mfu_convention)i)));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct step_bytes b;
		struct step_memory m;
		check(strategy_parse(words[i], c.ranks, &c.strategy, &e) == 0);
		c.work = i & 1 ? TR_BF16 : TR_F32;
		c.reduce = TR_F32;
		step_bytes(&c, &b);
		step_memory(&c, &m);
		check(isfinite(m.total) && m.total > 0);
		check(b.all_gather + b.all_reduce > 0);
	}
	return 0;
}
