/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share: engine.c (opening, a step), engine_mem.c (who holds what),
 * engine_tasks.c (what each kind of task does), engine_run.c (which task is next, and waiting).
 *
 * Types: W work, G gradients, R what gradients are kept and summed in (G; int64 fixed point when
 * deterministic), `reduce` what they are on the wire.
 */
#ifndef TRAIN_ENGINE_PRIV_H
#define TRAIN_ENGINE_PRIV_H

#include "bench/train/engine.h"
#include "bench/train/store.h"
#include "bench/train/tokens.h"

/** Kinds of memory, as in struct step_memory. */
enum engine_mem {
	MEM_PARAMS,
	MEM_GATHERED,
	MEM_MASTER,
	MEM_OPTIMIZER,
	MEM_GRADS,
	MEM_GRAD_UNITS,
	MEM_WIRE,
	MEM_ACTIVATIONS,
	MEM_HOST,
	MEM_KIND_COUNT
};

/** A run of a shard's elements with one rule of weight decay. */
struct segment {
	int64_t first, n;
	bool decay;
};
#define ENGINE_MAX_SEGMENTS (2 * MODEL_MAX_TENSORS + 2)

struct unit_state {
	struct shard_cut cut;
	int64_t mine;    /**< elements of my shard that are no padding */
	void *W_whole;   /**< [padded] kept whole; NULL: gathered into slots */
	void *W_shard;   /**< [per_rank] as it goes out: inside W_whole, the master, or its own */
	void *G_master;  /**< [per_rank] */
	void *G_m, *G_v; /**< [per_rank]; NULL when they live in a file */
	void *R_grads;   /**< [padded] whole, over all micro-batches; NULL: in gradient slots */
	void *R_shard;   /**< [per_rank] summed over ranks */
	void *R_micro;   /**< [per_rank] of one micro-batch, where replicas reduce each; or NULL */
	bool reduced;    /**< R_shard holds an earlier micro-batch of this step */
	size_t store_at; /**< where its state begins in the file */
	struct segment seg[ENGINE_MAX_SEGMENTS];
	int segments;
};

struct queue_state {
	int next;             /**< index of the next task of this queue, n when there is none */
	int running;          /**< -1: none */
	struct exchange *x;   /**< NULL: compute, storage */
	uint64_t sent_before; /**< bytes, when the running one began */
};

struct engine {
	struct engine_config c;
	struct schedule sched;
	const struct p2p_ops *p2p_ops;
	struct p2p *p2p;
	int rank;
	struct exchange_group shard, replicate, world;
	struct exchange *control;
	enum tr_dtype R;
	bool reduce_each;   /**< gradients are reduced after each micro-batch */
	bool replicas_each; /**< and so are they across replicas */
	bool whole;         /**< parameters stay whole between steps */
	int units;          /**< layers + 1; the root is the last */

	struct tr_dev *dev;
	struct tr_queue q;
	struct net net;
	int chunks; /**< net calls a micro-batch takes: its sequences when deterministic, else 1 */
	struct tokens *tokens;

	struct model_unit block, root;
	struct unit_state *unit;
	void *W_slot[3];             /**< two gathered blocks, and the root */
	void *R_slot[3];             /**< the same of gradients */
	void *G_sequence;            /**< deterministic: one sequence's gradient of one unit */
	void *G_shard;               /**< deterministic: a shard as G */
	void *wire_in, *wire_out;    /**< reduce-scatter's, where gradients cannot be sent or land
					as they are */
	void *wire_sum;              /**< all-reduce's */
	void *W_stage;               /**< offloaded parameters on their way out */
	char *x, *saved, *dx;        /**< [layers + 1], [layers], one; each of `chunks` parts */
	size_t x_bytes, saved_bytes; /**< of one chunk */
	int32_t *input, *target;     /**< of all micro-batches */
	double *loss;                /**< per micro-batch and chunk */
	/* offload */
	struct store *store;
	char *state[2]; /**< master, momentum, variance of a unit, by its parity */
	void *R_host[2];

	double norm_sum, grad_scale, grad_norm;
	int64_t norm_fixed;
	uint64_t bytes_of[MEM_KIND_COUNT];

	/* of the step under way */
	struct queue_state queue[SCHED_QUEUE_COUNT];
	bool *over; /**< per task */
	struct task_time *time;
	struct step_stats *stats;
	uint64_t step_number, deadline, polled;
	bool update, in_poll;
	uint64_t inline_ns;  /**< storage's copies that this thread made itself, so far */
	struct fb_err error; /**< first failure inside a poll */
};

static inline struct unit_state *engine_unit(struct engine *g, int u)
{
	return &g->unit[u];
}
static inline const struct model_unit *engine_shape(const struct engine *g, int u)
{
	return u == g->units - 1 ? &g->root : &g->block;
}
/** Which of three slots a unit's gradients use. */
static inline int engine_slot(const struct engine *g, int u)
{
	return u == g->units - 1 ? 2 : u & 1;
}
static inline void *engine_at(const void *p, enum tr_dtype t, int64_t i)
{
	return (char *)(uintptr_t)p + (size_t)i * tr_dtype_size(t);
}
enum coll_dtype engine_coll_dtype(enum tr_dtype t);
uint64_t engine_now(void);

/* engine_mem.c */
int engine_alloc(struct engine *g, struct fb_err *e) FB_MUST_CHECK;
void engine_free(struct engine *g);

/* engine_tasks.c */
/** A task of the compute queue, from begin to end. Errors stay in the device and in g->error. */
void engine_compute(struct engine *g, const struct sched_task *t);
/** Begin a task of another queue; *over when it has ended already. */
int engine_begin(struct engine *g, const struct sched_task *t, bool *over, struct fb_err *e);
/** Has it ended? */
int engine_poll_task(struct engine *g, const struct sched_task *t, bool *over, struct fb_err *e);
/** What follows a task's end: gradients to their place. */
void engine_finish(struct engine *g, const struct sched_task *t);

/* engine_run.c */
int engine_run(struct engine *g, struct fb_err *e) FB_MUST_CHECK;
/** Wait for one collective outside of the list. */
int engine_wait(
	struct engine *g, struct exchange *x, const char *what, struct fb_err *e) FB_MUST_CHECK;
void engine_poll(void *arg);

#endif
