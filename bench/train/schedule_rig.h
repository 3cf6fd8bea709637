/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of schedules share: a small model, and every way of making a step of it. */
#ifndef TRAIN_SCHEDULE_RIG_H
#define TRAIN_SCHEDULE_RIG_H

#include "bench/core/test.h"
#include "bench/train/schedule.h"

static const struct model shape = {.name = "few",
	.family = MODEL_LLAMA,
	.hidden = 8,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 4,
	.ffn = 12,
	.vocab = 19,
	.positions = 16,
	.rope_base = 1e4,
	.eps = 1e-5};

/* ---- all the ways ---------------------------------------------------------------------------- */

static const struct {
	const char *strategy;
	int ranks;
} places[] = {{"ddp", 1}, {"ddp", 3}, {"zero1", 2}, {"zero1", 3}, {"zero2", 3}, {"zero3", 1},
	{"fsdp", 2}, {"zero3", 5}, {"shard-grad-op", 3}, {"hybrid:1", 3}, {"hybrid:2", 6},
	{"hybrid:3", 3}, {"offload", 2}, {"offload", 3}};
static const int layer_counts[] = {1, 2, 3, 12};
#define N(a) ((int)(sizeof(a) / sizeof((a)[0])))

static inline struct step_config config(
	const char *strategy, int ranks, int layers, int micro_batches)
{
	struct step_config c = {.model = shape,
		.ranks = ranks,
		.seq = 4,
		.micro_seqs = 2,
		.micro_batches = micro_batches,
		.work = TR_BF16,
		.reduce = TR_F32,
		.overlap = true};
	struct fb_err e = {0};
	c.model.layers = layers;
	if (strategy_parse(strategy, ranks, &c.strategy, &e) != 0)
		fail_msg("%s", e.msg);
	return c;
}

static inline void build(const struct step_config *c, struct schedule *s)
{
	struct fb_err e = {0};
	if (schedule_build(c, s, &e) != 0)
		fail_msg("%s", e.msg);
}

/* Call fn for every configuration; layers up to `most`. */
static inline int every(int most, void (*fn)(const struct step_config *c))
{
	int n = 0;
	for (int p = 0; p < N(places); p++)
		for (int l = 0; l < N(layer_counts) && layer_counts[l] <= most; l++)
			for (int m = 1; m <= 3; m++)
				for (int way = 0; way < 96; way++) {
					struct step_config c = config(places[p].strategy,
						places[p].ranks, layer_counts[l], m);
					bool offload = c.strategy.kind == STRATEGY_OFFLOAD;
					c.recompute = (enum tr_recompute)(way % 3);
					c.sync_each = way / 3 & 1;
					c.overlap = way / 6 & 1;
					c.clip = way / 12 & 1;
					c.offload_params = way / 24 & 1;
					c.offload_file = way / 48 & 1;
					if (!offload && (c.offload_params || c.offload_file))
						continue;
					fn(&c);
					n++;
				}
	return n;
}

/* The first task of that kind, or -1; micro -1: of any micro-batch. */
static inline int find(const struct schedule *s, enum sched_op op, int unit, int micro)
{
	for (int i = 0; i < s->n; i++)
		if (s->v[i].op == op && s->v[i].unit == unit &&
			(micro < 0 || s->v[i].micro == micro))
			return i;
	return -1;
}

#endif
