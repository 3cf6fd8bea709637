/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharding strategies as data, and the closed forms of what they cost: bytes per step and rank,
 * memory by kind. The executor must arrive at the same figures by counting; tests compare.
 * Source of the formulas: Rajbhandari et al., ZeRO (SC20); Zhao et al., PyTorch FSDP (VLDB23).
 */
#ifndef TRAIN_STRATEGY_H
#define TRAIN_STRATEGY_H

#include "bench/train/device.h"
#include "bench/train/model.h"
#include "bench/train/net.h"

enum strategy_kind {
	STRATEGY_DDP,           /**< all whole; all-reduce of gradients */
	STRATEGY_ZERO1,         /**< optimizer (fp32 master, momentum, variance) sharded */
	STRATEGY_ZERO2,         /**< gradients too */
	STRATEGY_ZERO3,         /**< parameters too; fsdp is another name of it */
	STRATEGY_SHARD_GRAD_OP, /**< as zero3, parameters kept whole from forward to backward */
	STRATEGY_HYBRID,        /**< zero3 within groups of F, all-reduce across groups */
	STRATEGY_OFFLOAD,       /**< zero3, optimizer state (and parameters) outside the device */
	STRATEGY_KIND_COUNT
};

struct strategy {
	enum strategy_kind kind;
	int shard;     /**< F: ranks over which a unit is cut; 1 for ddp */
	int replicate; /**< R = ranks / F */
	char name[24]; /**< as given: "fsdp", "hybrid:4" */
	/* What is sharded, by kind: */
	bool shard_optimizer, shard_grads, shard_params;
	bool keep_gathered; /**< shard-grad-op */
};
/**
 * "ddp", "zero1", "zero2", "zero3", "fsdp", "shard-grad-op", "hybrid:F", "offload".
 * @return 0; -EINVAL: unknown word (the nearest is named), F that does not divide ranks (exit 2)
 */
int strategy_parse(const char *text, int ranks, struct strategy *s, struct fb_err *e) FB_MUST_CHECK;
extern const char *const strategy_words[]; /**< NULL-terminated, "hybrid:F" as such */

/** How a unit of n elements is cut: each of `shard` ranks has `per_rank`, the last ones padding. */
struct shard_cut {
	int64_t elements, per_rank, padded; /**< padded = per_rank * shard */
};
struct shard_cut shard_cut(int64_t elements, int shard);

/** All that a step depends on; the schedule, the executor and the accountant read the same. */
struct step_config {
	struct model model;
	struct strategy strategy;
	int ranks;
	int64_t seq;
	int64_t micro_seqs; /**< sequences per rank and micro-batch */
	int micro_batches;
	bool sync_each;     /**< gradients are reduced after each micro-batch, not after the last */
	enum tr_dtype work; /**< W */
	enum tr_dtype
		reduce; /**< type of gradients on the wire: G, bf16, or int64 (deterministic) */
	enum tr_recompute recompute;
	bool overlap;       /**< false: each collective is waited for at once */
	bool deterministic; /**< one sequence at a time; sums in fixed point */
	bool clip;          /**< gradient norm and clipping */
	bool offload_params;
	bool offload_file; /**< the offloaded state lies in a file, not in host memory */
};

/**
 * Are the gradients of all micro-batches added up in whole unsharded units, to be reduced in place
 * after the last one? Otherwise every micro-batch writes each unit's gradients into one of two
 * buffers (a third for the root), and what their reduction yields is added to the gradients kept:
 * the whole of them for ddp, this rank's shard for the others.
 */
static inline bool step_grads_whole(const struct step_config *c)
{
	if (c->micro_batches == 1)
		return !c->strategy.shard_grads;
	return !(c->sync_each || c->strategy.kind == STRATEGY_ZERO2);
}
/** What gradients are kept and summed in: G, or fixed point. */
static inline enum tr_dtype step_sum_dtype(const struct step_config *c)
{
	return c->deterministic ? TR_I64 : tr_grad_dtype(c->work);
}
/** How often a step reduces each unit's gradients. */
static inline int step_reductions(const struct step_config *c)
{
	return step_grads_whole(c) ? 1 : c->micro_batches;
}

/** Bytes sent per step by one rank, by kind, over padded shards; what exchange.h counts. */
struct step_bytes {
	double all_gather, reduce_scatter, all_reduce, norm; /**< norm: the scalar's all-reduce */
	double offload_out, offload_in;
};
void step_bytes(const struct step_config *c, struct step_bytes *b);

/** Bytes of memory on one rank, by kind. What it is a closed form of stands beside each. */
struct step_memory {
	double params;      /**< W: whole, or the shard kept between steps */
	double gathered;    /**< W: at most two gathered units and the root */
	double master;      /**< G master copy (0 where W is G: then it is `params`) */
	double optimizer;   /**< momentum and variance, G */
	double grads;       /**< whole or shard, G */
	double grad_units;  /**< unsharded gradients of units under way */
	double wire;        /**< staging of a cast for the wire, and exchange's scratch */
	double activations; /**< inputs and saved of all blocks */
	double scratch;     /**< the net's own */
	double host;        /**< offloaded, outside the device */
	double total;       /**< all but host */
};
void step_memory(const struct step_config *c, struct step_memory *m);

#endif
