/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fabricbench train`: what its options say, settled into what a run needs. The command (train.c)
 * settles once, before anything starts; the benchmark (train_bench.c) reads only what was settled.
 * Every refusal names the option, the cause and what helps, and is exit 2.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "bench/core/cmd.h"
#include "bench/core/result.h"
#include "bench/train/engine.h"
#include "collectives/p2p_local.h"

/** What --inject can slow. */
enum train_inject_kind {
	INJECT_ALL_GATHER,
	INJECT_REDUCE_SCATTER,
	INJECT_ALL_REDUCE,
	INJECT_RANK, /**< every compute task of one rank */
	INJECT_GEMM,
	INJECT_OPTIMIZER,
	INJECT_STORAGE,
	INJECT_KIND_COUNT
};
extern const char *const train_inject_names[]; /**< "all_gather", ..., NULL */

struct train_inject {
	uint64_t delay_ns[INJECT_KIND_COUNT]; /**< +LATENCY of each; 0: none */
	double factor[INJECT_KIND_COUNT]; /**< xBANDWIDTH: of its rate, within (0, 1]; 1: none */
	int rank;                         /**< INJECT_RANK's; -1: none */
};
/** One more KIND:+LATENCY or KIND:xBANDWIDTH. @return 0 or -EINVAL (exit 2) */
int train_inject_add(struct train_inject *in, const char *text, struct fb_err *e) FB_MUST_CHECK;
/** "LATENCY,RATE". @return 0 or -EINVAL (exit 2) */
int train_link_parse(const char *text, struct p2p_link *l, struct fb_err *e) FB_MUST_CHECK;
/** FLOP/s as "989.4T", "1.2e12", "312TFLOP/s". @return 0 or -EINVAL (exit 2) */
int train_flops_parse(const char *text, double *flops, struct fb_err *e) FB_MUST_CHECK;

/** Sequences of the whole batch, of a rank's micro-batch, and micro-batches: 0 is not given. */
struct train_batch {
	int64_t global, micro;
	int accumulate;
};
#define TRAIN_DEFAULT_MICRO 4
/** Fill what is not given so that ranks * micro * accumulate = global. @return 0, or -EINVAL with
 * the arithmetic (exit 2) */
int train_batch_settle(struct train_batch *b, int ranks, struct fb_err *e) FB_MUST_CHECK;
/** A rack by name for each of `nodes`, one a line, # begins a comment; *rack_of is allocated.
 * @return 0 or -EINVAL (exit 2) */
int train_rack_map(const char *path, int nodes, int **rack_of, struct fb_err *e) FB_MUST_CHECK;

enum train_backend { TRAIN_CPU, TRAIN_REFERENCE };
enum train_dtype { TRAIN_DTYPE_AUTO, TRAIN_FP32, TRAIN_BF16, TRAIN_FP64 };

/** The options as given. */
struct train_opts {
	char *model, *strategy;
	int steps, warmup; /* warmup -1: by default */
	uint64_t seq, micro_batch, global_batch;
	int accumulate;
	bool sync_each;
	int dtype, reduce, recompute, overlap, backend;
	double clip, lr, beta1, beta2, eps, decay;
	bool deterministic, offload_params, plan, pin;
	char *link, *offload_to, *tokens, *rack_map, *peak, *timeline, *fail_rank;
	struct fb_opt_list inject, label;
	int ranks_per_node;
	uint64_t batches, step_timeout_ns;
};
extern const struct fb_opt train_opts[];

/** What a run is, on every rank the same. */
struct train_job {
	const struct train_opts *o;
	struct step_config step;
	struct tr_adamw adamw;
	int steps, warmup; /**< steps in all, and how many of them are dropped first */
	uint64_t seed;
	bool local; /**< ranks are threads of this process */
	bool shaped;
	struct p2p_link link;
	struct train_inject inject;
	struct exchange_tiers tiers;
	int *rack_of;            /* owned; tiers points at it */
	const char *offload;     /**< folder; NULL: host memory, or no offload */
	double peak;             /**< FLOP/s of one rank's device by its data sheet; 0: not known */
	const char *peak_source; /**< who says so, or why it is not known */
	int fail_rank, fail_step; /**< --fail-rank: ends so; -1: none */
	/* What the command has opened: */
	const struct gemm_ops *gemm; /**< NULL: plain loops */
	const struct p2p_ops *p2p;
	struct p2p_world *world; /**< local */
	uint64_t deadline_ns;    /**< of the whole run; the command's --timeout */
	json_t *effective;       /**< options that all ranks must share; NULL: threads, who do */
};
/**
 * Settle the options for that many ranks.
 * @return 0, or -EINVAL and the like (exit 2); train_job_free() in both cases
 */
int train_job_settle(struct train_job *j, const struct train_opts *o, int ranks, bool local,
	struct fb_err *e) FB_MUST_CHECK;
void train_job_free(struct train_job *j);
/** The channel on which the collectives of a kind go. */
enum p2p_channel train_inject_channel(enum train_inject_kind k);
/** What one rank's engine is opened with. */
void train_engine_config(const struct train_job *j, int rank, int core, struct engine_config *c);

/** What the schedule's collectives take on the link as it was shaped and slowed; all 0 without one.
 */
void train_machine(const struct train_job *j, struct sched_machine *m);

extern const struct fb_bench train_bench; /* its cfg is a struct train_job */
/** The summary on one screen. */
void train_table(const json_t *doc, FILE *out);

extern const struct fb_cmd train_cmd;

#endif
