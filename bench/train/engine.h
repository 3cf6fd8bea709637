/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a training run: its shards, its buffers, and the execution of a schedule over device,
 * net and exchange. Compute tasks run inline; collectives are requests that move on between tasks,
 * between products (the device's poll) and in waits. Nothing waits without a deadline.
 */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include "bench/train/schedule.h"
#include "collectives/exchange.h"

struct engine; /* one rank's */

struct engine_config {
	struct step_config step;
	struct tr_adamw adamw; /**< t is the engine's own */
	double clip_norm;      /**< 0: no clipping */
	uint64_t seed;
	uint64_t batches; /**< distinct global batches, repeated in turn; 1: always the same */
	const char *token_file; /**< uint16 or uint32 tokens; NULL: synthetic */
	const struct tr_dev_ops *dev_ops;
	struct tr_dev_cfg dev;
	const char
		*offload_file; /**< offload: this folder's file for the state; NULL: host memory */
	struct exchange_tiers tiers;
	/* --inject */
	uint64_t optimizer_delay_ns, storage_delay_ns, rank_delay_ns; /**< of each such task; of
									 each compute task */
	uint64_t exchange_delay_ns[SCHED_OP_COUNT];
	double storage_slow; /**< each storage task lasts that share longer; 0: not */
};

/** What a step measured on this rank; times in ns. */
struct step_stats {
	uint64_t step_ns;
	uint64_t compute_ns, optimizer_ns, storage_ns, idle_ns;
	uint64_t exposed_ns[SCHED_OP_COUNT];
	uint64_t bytes[SCHED_OP_COUNT];
	double loss;      /**< mean per token of the global batch, the same on all ranks */
	double grad_norm; /**< of the whole gradient, before clipping; NAN without clip */
	int64_t tokens;   /**< of this rank */
	/** What went out, of all collectives: within the node, to other nodes of the rack, beyond.
	 */
	uint64_t node_bytes, rack_bytes, far_bytes;
};
struct task_time {
	uint64_t start, end; /**< now()'s ns; of a collective: begun and known to be over */
	uint64_t waited;     /**< of a compute task: stood still before it */
	int waited_for;      /**< task that was waited for last; -1 */
};

int engine_open(const struct engine_config *c, const struct p2p_ops *net_ops, struct p2p *p,
	int rank, struct engine **g, struct fb_err *e) FB_MUST_CHECK;
/** One training step. deadline: now()'s ns. @return 0; -ETIMEDOUT naming the task and peers waited
 * for; -ECONNRESET: another rank ended, with its cause; -EDOM: loss is not finite (exit 4); -EINTR
 */
int engine_step(
	struct engine *g, uint64_t deadline, struct step_stats *s, struct fb_err *e) FB_MUST_CHECK;
/** Tell all ranks why this one ends. Must not block. */
void engine_abort(struct engine *g, const struct fb_err *why);
void engine_close(struct engine *g);

const struct schedule *engine_schedule(const struct engine *g);
/** Of the last step, one per task of the schedule. */
const struct task_time *engine_times(const struct engine *g);
/** Memory really allocated, by the kinds of step_memory(). */
void engine_memory(const struct engine *g, struct step_memory *m);
const struct tr_dev_ops *engine_device(struct engine *g, struct tr_dev **d);

/** For tests: forward and backward, no update; the whole gradient of unit `unit` (elements of G,
 * reduced over all ranks) into out on every rank. Collective. */
int engine_gradients(
	struct engine *g, uint64_t deadline, double *loss, struct fb_err *e) FB_MUST_CHECK;
int engine_gather_grads(
	struct engine *g, int unit, void *G_out, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;

#endif
