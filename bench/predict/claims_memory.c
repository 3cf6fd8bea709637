// SPDX-License-Identifier: Apache-2.0
/*
 * Memory: bytes of model states per parameter by strategy (training.md 2.4), and what else a GPU
 * must hold at the least.
 */
#include <math.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

#define OVERHEAD_GB    5.0    /* context, NCCL, workspaces, fragments: 4 to 6 GB seen */
#define DEFAULT_TOKENS 2048.0 /* of a micro-batch, where none are told */
#define GIB_PER_GB     1.073741824

/* Bytes of one parameter: 16 bits beside an fp32 master, or fp32 alone: 16 either way. */
struct state_kinds {
	double weight, grad, optimizer;
};

static struct state_kinds kinds_of(const struct claim *c)
{
	return c->work == DTYPE_F32 || c->work == DTYPE_TF32 ? (struct state_kinds){4, 4, 8}
							     : (struct state_kinds){2, 2, 12};
}

double claim_data_ranks(const struct claim *c)
{
	double tp = isfinite(c->tp) ? c->tp : 1, pp = isfinite(c->pp) ? c->pp : 1;
	return isfinite(c->dp) ? c->dp : c->n_gpus / (tp * pp);
}

/* Megatron cuts over tp x pp, or over what dp leaves of all. @return the column that it lacks */
static enum claim_col megatron_cut(const struct claim *c, double *split)
{
	*split = c->n_gpus == 1 ? 1 : c->tp * c->pp;
	if (!isfinite(*split))
		*split = c->n_gpus / c->dp;
	if (isfinite(*split))
		return COL_COUNT;
	return isfinite(c->tp) ? COL_PP : COL_TP;
}

struct claim_states claim_states(const struct claim *c)
{
	struct state_kinds k = kinds_of(c);
	struct claim_states s = {NAN, NAN, COL_COUNT};
	double all = k.weight + k.grad + k.optimizer, g = claim_data_ranks(c);
	double split = (isfinite(c->tp) ? c->tp : 1) * (isfinite(c->pp) ? c->pp : 1);
	switch (c->scheme) {
	case SCHEME_NONE:
		s.least = c->n_gpus == 1 ? all : NAN;
		s.missing = c->n_gpus == 1 ? COL_COUNT : COL_STRATEGY;
		break;
	case SCHEME_DDP: s.least = all; break;
	case SCHEME_ZERO1: s.least = k.weight + k.grad + k.optimizer / g; break;
	case SCHEME_ZERO2: s.least = k.weight + (k.grad + k.optimizer) / g; break;
	case SCHEME_ZERO3: s.least = all / g; break;
	case SCHEME_SHARD_GRAD_OP: s.least = k.weight + all / g; break;
	case SCHEME_HYBRID: {
		double f = isfinite(c->shard) ? c->shard : c->gpus_per_node;
		s.least = all / f;
		s.missing = isfinite(f) ? COL_COUNT : COL_GPUS_PER_NODE;
		break;
	}
	case SCHEME_OFFLOAD: s.least = (k.weight + k.grad) / g; break;
	/* Megatron keeps fp32 gradients: 18 bytes whole, 6 + 12/dp with its distributed optimizer
	 */
	case SCHEME_MEGATRON:
		s.missing = megatron_cut(c, &split);
		s.least = 6 + 12 / g;
		break;
	}
	if (!isfinite(s.least) && s.missing == COL_COUNT)
		s.missing = COL_N_GPUS;
	s.least /= split;
	s.most = c->scheme == SCHEME_MEGATRON ? 18 / split : s.least;
	return s;
}

double claim_gpu_memory(const struct claim *c)
{
	if (isfinite(c->mem_gb) || !c->gpu)
		return c->mem_gb;
	return c->gpu->mem_gb[1] > 0 ? NAN : c->gpu->mem_gb[0];
}

/* The largest it is sold with: what nobody can say more than. */
static double largest_memory(const struct claim *c)
{
	double gb = claim_gpu_memory(c);
	if (isfinite(gb) || !c->gpu)
		return gb;
	return fmax(c->gpu->mem_gb[0], c->gpu->mem_gb[1]);
}

double claim_states_floor(const struct claim *c)
{
	struct claim_states s = claim_states(c);
	/* (6 + 12/dp) / (tp pp) is least where dp is 1 */
	return c->scheme == SCHEME_MEGATRON && s.missing != COL_COUNT ? 18 / c->n_gpus : s.least;
}

double claim_overfull(const struct claim *c)
{
	double gb = largest_memory(c);
	/* Hybrid without its F may be sharded as wide as one likes. */
	if (c->scheme == SCHEME_HYBRID && !isfinite(c->shard))
		return 0;
	double factor = 100 * claim_states_floor(c) * c->params / (gb * 1e9);
	return factor > 100 ? factor : 0;
}

/* ---- fits ------------------------------------------------------------------------------------ */

/* GB on one GPU beside the states. */
struct beside {
	double gathered;  /* two gathered blocks and the root, in 16 bits */
	double per_token; /* activations with full recomputation, and logits; GB per token */
	double tokens;
};

static struct beside beside_of(const struct claim *c)
{
	struct beside b = {0, 0, DEFAULT_TOKENS};
	bool gathers = c->scheme == SCHEME_ZERO3 || c->scheme == SCHEME_HYBRID ||
		       c->scheme == SCHEME_OFFLOAD;
	if (isfinite(c->seq))
		b.tokens = c->seq;
	if (isfinite(c->tokens))
		b.tokens = c->tokens;
	if (!c->has_model)
		return b;
	struct model_unit block, root;
	double split = (isfinite(c->tp) ? c->tp : 1) * (isfinite(c->pp) ? c->pp : 1);
	double tp = isfinite(c->tp) ? c->tp : 1;
	double h = (double)c->model.hidden, l = (double)c->model.layers;
	model_unit(&c->model, 0, &block);
	model_unit(&c->model, c->model.layers, &root);
	if (gathers)
		b.gathered = 2 * (2 * (double)block.elements + (double)root.elements) / split / 1e9;
	/* each block's input, 34 bytes per element within one block (Korthikanti et al., with flash
	 * attention), one fp32 copy of the logits */
	b.per_token = (2 * l * h / split + 34 * h / tp + 4 * (double)c->model.vocab / tp) / 1e9;
	return b;
}

static void say_states(struct claim *c, const struct claim_states *s, double gb)
{
	claim_say(c,
		"Parameters, gradients and Adam's states in mixed precision take %s B per "
		"parameter on each GPU: %s GB of %s GB.",
		NUM(s->least), GB(s->least * c->params / 1e9), GB(gb));
	if (c->scheme == SCHEME_HYBRID && !isfinite(c->shard))
		claim_say(c, "F is not told; it is read as the node, %s.", NUM(c->gpus_per_node));
	if (c->scheme == SCHEME_OFFLOAD && isfinite(c->n_gpus) && isfinite(c->gpus_per_node))
		claim_say(c, "Each node's host holds another %s GB.",
			NUM(12 * c->params / (claim_data_ranks(c) * 1e9) *
				fmin(c->gpus_per_node, c->n_gpus)));
}

static bool fits_lack(struct claim *c, const struct claim_states *s, double gb)
{
	if (!isfinite(c->params)) {
		claim_empty(c, COL_MODEL, "its states are what must fit");
		if (isfinite(s->least) && isfinite(gb))
			claim_say(c, "At %s bytes each, %s GB hold at most %se9 parameters.",
				NUM(s->least), GB(gb), NUM(gb / s->least));
		return true;
	}
	if (s->missing != COL_COUNT) {
		claim_empty(c, s->missing, "it decides how the states are cut");
		claim_say(c, "Whole they are %s GB", GB(16 * c->params / 1e9));
		if (isfinite(c->n_gpus))
			fb_strbuf_printf(&c->why, ", cut over all ranks %s GB",
				GB(16 * c->params / 1e9 / c->n_gpus));
		fb_strbuf_add(&c->why, ".");
		return true;
	}
	if (isfinite(gb))
		return false;
	if (!c->gpu) {
		claim_empty(c, COL_MEM_GB, "there is nothing to compare with");
		claim_say(c, "The states are %s GB on each GPU.", GB(s->least * c->params / 1e9));
		return true;
	}
	return false;
}

enum fit { FIT_NO, FIT_OPEN, FIT_YES };

static enum fit fit_in(const struct claim *c, const struct claim_states *s, double gb)
{
	struct beside b = beside_of(c);
	double states = s->least * c->params / 1e9;
	/* A "GB" of the data sheet may be one of 2^30 bytes: only beyond that nothing helps. */
	if (states > gb || states + b.gathered > gb * GIB_PER_GB)
		return FIT_NO;
	double room = fmax(gb - OVERHEAD_GB, 0.9 * gb);
	return states + b.gathered + b.tokens * b.per_token <= room ? FIT_YES : FIT_OPEN;
}

/* Does it fit only with what the scheme may do and need not? */
static bool fits_at_best(const struct claim *c, const struct claim_states *s, double gb)
{
	struct claim_states whole = {s->most, s->most, COL_COUNT};
	return s->most > s->least && fit_in(c, &whole, gb) != FIT_YES;
}

static void say_beside(struct claim *c, const struct claim_states *s, double gb)
{
	struct beside b = beside_of(c);
	double left = gb - s->least * c->params / 1e9 - b.gathered;
	if (b.gathered > 0)
		claim_say(c, "Two gathered blocks and the root take %s GB more.", NUM(b.gathered));
	if (s->most > s->least)
		claim_say(c, "Without the distributed optimizer the states are %s GB.",
			GB(s->most * c->params / 1e9));
	if (left > 0 && b.per_token > 0)
		claim_say(c,
			"%s GB are left; %s tokens with full recomputation need %s GB, the program itself "
			"about %g.",
			NUM(left), NUM(b.tokens), NUM(b.tokens * b.per_token), OVERHEAD_GB);
	else if (left > 0)
		claim_say(c, "%s GB are left for activations and the program itself.", NUM(left));
}

void claim_rule_fits(const struct claims *all, struct claim *c)
{
	(void)all;
	struct claim_states s = claim_states(c);
	double gb = claim_gpu_memory(c);
	if (fits_lack(c, &s, gb))
		return;
	enum fit fit;
	if (isfinite(gb)) {
		fit = fit_in(c, &s, gb);
	} else { /* sold with two sizes: the verdict is one only if it is the same for both */
		fit = fit_in(c, &s, c->gpu->mem_gb[0]);
		if (fit != fit_in(c, &s, c->gpu->mem_gb[1])) {
			claim_empty(c, COL_MEM_GB, "this GPU has more than one size");
			say_states(c, &s, c->gpu->mem_gb[1]);
			return;
		}
		gb = fit == FIT_NO ? c->gpu->mem_gb[1] : c->gpu->mem_gb[0];
	}
	double factor = 100 * s.least * c->params / 1e9 / gb;
	if (fit == FIT_NO && factor <= 100)
		factor += 100 * beside_of(c).gathered / gb;
	say_states(c, &s, gb);
	if (fit != FIT_NO || factor <= 100)
		say_beside(c, &s, gb);
	if (fit == FIT_OPEN) {
		claim_set(c, CLAIM_DEPENDS, factor);
		claim_say(c, "It depends on the tokens of a micro-batch and on recomputation.");
		return;
	}
	bool holds = c->yes == (fit == FIT_YES);
	claim_set(c, holds ? CLAIM_POSSIBLE : CLAIM_IMPOSSIBLE, factor);
	if (fit == FIT_YES && fits_at_best(c, &s, gb)) {
		claim_say(c, "It fits with the distributed optimizer only.");
		if (!c->yes)
			claim_set(c, CLAIM_DEPENDS, factor);
	} else {
		claim_say(c, fit == FIT_YES ? "It fits." : "It does not fit.");
	}
}

/* ---- how much less --------------------------------------------------------------------------- */

/* "momentum" and "variance" without the master weights: a quote that shards only these two. */
static bool moments_alone(const char *quote)
{
	return (strcasestr(quote, "momentum") || strcasestr(quote, "variance") ||
		       strcasestr(quote, "moments")) &&
	       !strcasestr(quote, "master") && !strcasestr(quote, "fp32") &&
	       !strcasestr(quote, "optimizer state");
}

/* The reduction with G ranks; without G the limit of many. */
static double reduction(const struct claim *c, enum claim_scheme scheme, double g)
{
	struct claim one = *c;
	one.scheme = scheme;
	one.tp = one.pp = NAN;
	one.dp = g;
	one.n_gpus = g;
	struct state_kinds k = kinds_of(c);
	return (k.weight + k.grad + k.optimizer) / claim_states(&one).least;
}

static void judge_reduction(struct claim *c, double limit, double here, const char *what)
{
	claim_say(c, "16 bytes per parameter become %s: %s times less%s.", what, NUM(here),
		isfinite(claim_data_ranks(c)) ? "" : " at most, with many ranks");
	if (claim_met(c, here, 0.05) || (c->sense == SENSE_AT_MOST && here >= c->value * 0.95) ||
		(c->sense != SENSE_AT_LEAST && c->value <= here)) {
		claim_set(c, CLAIM_POSSIBLE, 100 * c->value / here);
		return;
	}
	if (c->value <= limit * 1.0001) {
		claim_set(c, CLAIM_DEPENDS, 100 * c->value / here);
		claim_say(c, "%s times is reached with more ranks only; the limit is %s.",
			NUM(c->value), NUM(limit));
		return;
	}
	claim_set(c, CLAIM_IMPOSSIBLE, 100 * c->value / here);
	claim_say(c, "%s times is beyond the limit of %s.", NUM(c->value), NUM(limit));
}

void claim_rule_state_reduction(const struct claims *all, struct claim *c)
{
	(void)all;
	double g = claim_data_ranks(c), many = 1e9, f = c->shard;
	double ranks = isfinite(g) ? g : many;
	switch (c->scheme) {
	case SCHEME_ZERO1:
		if (moments_alone(c->text[COL_QUOTE]) || c->work == DTYPE_F32) {
			/* 16 = 2 weights, 2 gradients, 4 master, 8 moments; in fp32 4, 4, 8 */
			double two = 16 / (8 + 8 / ranks);
			claim_set(c, c->value > two * 1.05 ? CLAIM_IMPOSSIBLE : CLAIM_POSSIBLE,
				100 * c->value / two);
			claim_say(c,
				"Momentum and variance alone are 8 of 16 bytes per parameter: sharding "
				"them gives %sx at most.",
				NUM(two));
			if (c->work != DTYPE_F32)
				claim_say(c,
					"The 4x of ZeRO-1 needs the fp32 master weights sharded too "
					"(4 + 12/G bytes).");
			return;
		}
		judge_reduction(c, 4, reduction(c, SCHEME_ZERO1, ranks),
			"4 + 12/G (fp32 master, momentum and variance sharded; momentum and variance "
			"alone would give 2x)");
		return;
	case SCHEME_ZERO2:
		judge_reduction(c, kinds_of(c).weight == 4 ? 4 : 8,
			reduction(c, SCHEME_ZERO2, ranks),
			kinds_of(c).weight == 4 ? "4 + 12/G" : "2 + 14/G");
		return;
	case SCHEME_ZERO3:
	case SCHEME_HYBRID:
		if (c->scheme == SCHEME_HYBRID)
			ranks = isfinite(f) ? f : c->gpus_per_node;
		else
			ranks = g;
		if (!isfinite(ranks)) {
			claim_empty(c, c->scheme == SCHEME_HYBRID ? COL_GPUS_PER_NODE : COL_N_GPUS,
				"full sharding divides by the number of ranks");
			return;
		}
		judge_reduction(c, ranks, ranks, "16/G");
		return;
	case SCHEME_DDP: judge_reduction(c, 1, 1, "16"); return;
	case SCHEME_OFFLOAD:
		judge_reduction(c, 4 * many, isfinite(g) ? 4 * g : 4, "4/G on the GPU");
		return;
	case SCHEME_SHARD_GRAD_OP:
		judge_reduction(c, 8, 16 / (2 + 16 / ranks), "2 + 16/G from forward to backward");
		return;
	default: claim_empty(c, COL_STRATEGY, "what is sharded decides");
	}
}

void claim_rule_state_memory(const struct claims *all, struct claim *c)
{
	(void)all;
	struct claim_states s = claim_states(c);
	if (fits_lack(c, &s, c->value))
		return;
	double least = s.least * c->params / 1e9, most = s.most * c->params / 1e9;
	claim_say(c, "%s bytes per parameter on each GPU are %s GB.", NUM(s.least), GB(least));
	if (most > least)
		claim_say(c, "Without the distributed optimizer %s GB.", NUM(most));
	bool low = c->sense != SENSE_AT_LEAST && c->value < 0.97 * least;
	bool high = c->sense != SENSE_AT_MOST && c->value > 1.03 * most;
	claim_set(c,
		low || (high && c->sense == SENSE_AT_LEAST) ? CLAIM_IMPOSSIBLE
		: high                                      ? CLAIM_DEPENDS
							    : CLAIM_POSSIBLE,
		100 * c->value / least);
	if (high)
		claim_say(
			c, "More than that is activations, buffers or a copy that is not sharded.");
}
