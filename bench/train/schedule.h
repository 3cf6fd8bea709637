/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule of a step as data: a list of tasks, built once from model, strategy, micro-batches
 * and recomputation. The executor runs it, the accountant reads it (bytes, gathered units alive),
 * the predictor puts times on it (schedule_times).
 *
 * A task is identified by its index and signals its own completion; it waits for tasks of smaller
 * index only. Tasks of one queue run in the order of the list. Every rank has the same list.
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "bench/train/strategy.h"

enum sched_op {
	SCHED_GATHER,         /**< all-gather a unit's parameters into a slot */
	SCHED_RELEASE,        /**< the slot may be overwritten; no time */
	SCHED_EMBED_FWD,      /**< unit root */
	SCHED_FWD,            /**< a block */
	SCHED_HEAD,           /**< root: final norm, head, loss, forward and backward */
	SCHED_RECOMPUTE,      /**< a block's forward again */
	SCHED_BWD,            /**< a block */
	SCHED_EMBED_BWD,      /**< unit root */
	SCHED_REDUCE_SCATTER, /**< a unit's gradients within the shard group */
	SCHED_ALL_REDUCE,     /**< whole gradients (ddp), or a shard's across replicas (hybrid) */
	SCHED_NORM,           /**< local sum of squares of all shards */
	SCHED_NORM_REDUCE,    /**< all-reduce of that scalar over the shard group */
	SCHED_GRADS_OUT,      /**< a unit's gradient shard to where the optimizer is (offload) */
	SCHED_STATE_IN,       /**< optimizer state of a unit from file or host memory */
	SCHED_UPDATE,         /**< AdamW on a unit's shard */
	SCHED_STATE_OUT,      /**< and back */
	SCHED_PARAMS_IN,      /**< a unit's new parameter shard to the device (offload) */
	SCHED_PARAM_GATHER,   /**< zero1, zero2: whole parameters after the update */
	SCHED_OP_COUNT
};
enum sched_queue {
	SCHED_COMPUTE,
	SCHED_Q_GATHER,
	SCHED_Q_REDUCE,
	SCHED_Q_REPLICATE,
	SCHED_Q_STORAGE,
	SCHED_QUEUE_COUNT
};
extern const char *const sched_op_names[];    /**< "all_gather", "release", "embed_fwd", ... */
extern const char *const sched_queue_names[]; /**< "compute", "gather", "reduce", ... */
/** Each op belongs to one queue. */
enum sched_queue schedule_queue_of(enum sched_op op);

/** Where gathered parameters of a unit lie: 0 and 1 are shared by the blocks in turn (of
 * one block: 0). */
#define SCHED_SLOT_ROOT 2 /* the root's own, filled once a step */
#define SCHED_SLOT_OWN  3 /* each block's own (shard-grad-op) */

#define SCHED_MAX_WAITS 4
struct sched_task {
	enum sched_op op;
	enum sched_queue queue;
	int unit;  /**< 0..layers-1, layers: root; -1: none */
	int micro; /**< micro-batch; -1: none */
	/** Of a gather, release and each compute task: where the unit's gathered parameters lie;
	 * -1: they are whole between steps (ddp, zero1, zero2), or none are touched. Under offload,
	 * of the tasks around an update: which of two buffers of gradients and state, unit % 2. */
	int slot;
	/** Of tasks that write gradients and of the first to reduce them: which buffer of a unit's
	 * gradients, unit % 2 for blocks, 2 for the root; -1: the unit's place in the whole
	 * gradients (step_grads_whole()), or none are touched. */
	int gslot;
	bool fresh;      /**< writes gradients: zero the buffer first */
	bool accumulate; /**< reduces: the result is added to the gradients kept. Otherwise it stays
			    where it is: in place, or (hybrid) in a shard's own place, from which
			    the replicas' all-reduce takes it */
	int waits[SCHED_MAX_WAITS]; /**< indexes of tasks; -1: none */
	/** Elements of a collective: per rank of a gather and a reduce-scatter (padded shard), all
	 * that is reduced of an all-reduce; of a storage task: of the shard. Else 0. */
	int64_t count;
};
struct schedule {
	struct sched_task *v;
	int n, cap;
};
/**
 * FSDP's schedule (training.md 6.2): gather of the next block is begun while one computes, at most
 * two gathered blocks alive beside the root, the last block stays gathered into backward, backward
 * gathers the block before; reduce-scatter after each block's backward, one at a time on its own
 * queue. overlap false: every collective also waits for the compute before it and the next compute
 * for it.
 * @return 0 or -ENOMEM
 */
int schedule_build(const struct step_config *c, struct schedule *s, struct fb_err *e) FB_MUST_CHECK;
void schedule_free(struct schedule *s);
/** Waits point back, queues exist, every slot is filled when used and never overwritten in use, at
 * most two gathered units besides the root alive. @return 0 or -EPROTO with the task at fault */
int schedule_check(
	const struct step_config *c, const struct schedule *s, struct fb_err *e) FB_MUST_CHECK;

/**
 * Bytes that one rank sends for a task, or moves to or from where an offloaded optimizer is; 0 for
 * compute tasks. F is the shard group's size, R the replicas', W the size of a parameter at work,
 * G of a gradient and of each part of the optimizer's state, S of what gradients are summed in:
 *   gathers       (F-1) * count * W
 *   reduce        (F-1) * count * wire type
 *   all-reduce    2 * (R-1) * ceil(count/R) * wire type
 *   norm          2 * (F-1) * 8
 *   grads out     count * S
 *   state in, out count * 3 * G where it lies in a file (master, momentum, variance), else 0
 *   params in     count * W; 0 where parameters are offloaded too
 */
double schedule_task_bytes(const struct step_config *c, const struct sched_task *t);
/** What a gather brings in first where parameters are offloaded: count * W; else 0. */
double schedule_fetch_bytes(const struct step_config *c, const struct sched_task *t);

/* ---- times on the list ----------------------------------------------------------------------- */

/** What the tasks of the other queues take, and when the compute thread looks at them. */
struct sched_machine {
	double latency_ns;  /**< of a collective; an all-reduce has it twice, see below */
	double ns_per_byte; /**< of the link out of a rank */
	bool shared_link; /**< all collectives of a rank share that link, first come first served */
	/** Added to each collective of an op, once its messages are known to be over; and a factor
	 * of its bytes' time (0 counts as 1). */
	double add_ns[SCHED_OP_COUNT], factor[SCHED_OP_COUNT];
	/** Who begins and ends collectives. All 0: at once, as if something else did. Otherwise the
	 * compute thread does: between tasks, while it stands still, and within a task every
	 * poll_ns unless it polls between tasks only. */
	bool polls_between_tasks_only;
	double poll_ns;
	bool copies_inline; /**< GRADS_OUT and PARAMS_IN are the compute thread's own work */
};
struct sched_times {
	double step_ns;
	double compute_ns;                 /**< sum over tasks of the compute queue */
	double exposed_ns[SCHED_OP_COUNT]; /**< compute stood still for this kind */
	double *start, *end;               /**< per task; owned, schedule_times_free() */
};
/**
 * Max-plus recurrence over the list (training.md 6.5): a task starts when its waits and its queue's
 * predecessor have ended. compute_ns[i]: time of task i where it is no collective. A collective
 * takes latency + bytes[i] * ns_per_byte * factor + add_ns, bytes[i] being what this rank sends of
 * task i; an all-reduce (also the norm's) is two such exchanges of half its bytes. One that sends
 * nothing, in a group of one, takes no time.
 * @return 0; -ENOMEM; -EPROTO: the list never ends
 */
int schedule_times(const struct schedule *s, const struct sched_machine *m,
	const double *compute_ns, const double *bytes, struct sched_times *t,
	struct fb_err *e) FB_MUST_CHECK;
void schedule_times_free(struct sched_times *t);
/**
 * For what the compute queue stood still, from the times of all tasks, measured or predicted: the
 * waits of the task that could not run, in their order, each until its end; after the last compute
 * task the tasks left, in the list's order. start, end: ns since the step began.
 */
void schedule_exposed(const struct schedule *s, const double *start, const double *end,
	double exposed_ns[SCHED_OP_COUNT]);

#endif
