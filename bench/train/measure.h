/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of a run measured: kept step by step on each rank, summed up there as medians with
 * their intervals, and brought together over ranks. It knows no options and no document.
 */
#ifndef TRAIN_MEASURE_H
#define TRAIN_MEASURE_H

#include "bench/core/stats.h"
#include "bench/train/engine.h"

/** What a step's time is split into, besides the step itself. */
enum measure_item {
	MEASURE_STEP,
	MEASURE_COMPUTE,
	MEASURE_ALL_GATHER, /**< exposed: compute stood still for it */
	MEASURE_REDUCE_SCATTER,
	MEASURE_ALL_REDUCE,
	MEASURE_NORM, /**< the gradient norm's all-reduce of one number */
	MEASURE_OPTIMIZER,
	MEASURE_STORAGE, /**< exposed: offload's transfers */
	MEASURE_IDLE,
	MEASURE_ITEMS
};
extern const char *const measure_item_names[]; /**< "step", "compute", "all_gather", ..., NULL */
/** That item of one step, ns. */
double measure_of(const struct step_stats *s, enum measure_item i);

/** Bytes of a step by kind, in the order of struct step_bytes. */
enum measure_bytes {
	BYTES_ALL_GATHER,
	BYTES_REDUCE_SCATTER,
	BYTES_ALL_REDUCE,
	BYTES_NORM,
	BYTES_OFFLOAD_OUT,
	BYTES_OFFLOAD_IN,
	BYTES_KINDS
};
extern const char *const measure_bytes_names[];
double measure_bytes_counted(const struct step_stats *s, enum measure_bytes k);
double measure_bytes_formula(const struct step_bytes *b, enum measure_bytes k);

/** Memory by kind, in the order of struct step_memory, host and total among them. */
#define MEASURE_MEMORY_KINDS 11
extern const char *const measure_memory_names[];
double measure_memory_of(const struct step_memory *m, int kind);

/** One rank's steps, warm-up included, in their order. */
struct measure {
	struct step_stats *v;
	int n, cap, warmup; /**< the first `warmup` do not count */
	/* Times of each task over the last MEASURE_RING counted steps. */
	double *task; /* [tasks][MEASURE_RING] */
	int tasks, ring;
};
#define MEASURE_RING 15
int measure_open(
	struct measure *m, int steps, int warmup, int tasks, struct fb_err *e) FB_MUST_CHECK;
void measure_close(struct measure *m);
/** One more step; times: of its tasks. More than `cap` are not kept. */
void measure_add(struct measure *m, const struct step_stats *s, const struct task_time *times);
/** Median over counted steps, with its 95 % interval. */
struct fb_ci measure_ci(const struct measure *m, enum measure_item i);
/** Median duration of each task, ns; `out` has `tasks` places. */
void measure_tasks(const struct measure *m, double *out);

/** What a rank tells rank 0: plain data, sent as it lies. */
struct rank_facts {
	struct fb_ci item[MEASURE_ITEMS];
	double bytes[BYTES_KINDS]; /**< of a step */
	double node_bytes, rack_bytes, far_bytes;
	bool steady; /**< every counted step sent the same bytes */
	struct step_memory memory;
	double linear_flops, attn_flops; /**< of a step, counted */
	double linear_ns, attn_ns;       /**< mean of a step, within compute */
	double compute_ns;               /**< mean of a step, which these two are parts of */
	double gemm_rate;                /**< FLOP/s of its GEMM shapes timed in turn; 0: not */
	double tokens;                   /**< of a step */
	int core;                        /**< pinned to; -1: not */
};
/** Items, bytes and tiers from the counted steps; the rest is the caller's. */
void measure_facts(const struct measure *m, struct rank_facts *f);

/** One item over ranks. */
struct measure_over {
	double mean;        /**< of the ranks' medians */
	struct fb_ci worst; /**< of the rank with the largest median */
	int rank;           /**< that rank */
};
struct measure_over measure_over(const struct rank_facts *f, int ranks, enum measure_item i);

#endif
