/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which resource bounds a step, and what would move it: from what the ranks measured, and from the
 * step's schedule with the measured times put on it (schedule_times). Every move carries the number
 * that says how far. It measures nothing and prints nothing.
 */
#ifndef TRAIN_VERDICT_H
#define TRAIN_VERDICT_H

#include "bench/train/measure.h"

/** A rank whose compute lasts this much longer than the ranks' median is slow. */
#define VERDICT_SLOW_RANK 1.10
/** Communication is hidden when it exposes no more than this share of the step. */
#define VERDICT_HIDDEN 0.02

struct verdict_input {
	const struct step_config *step;
	const struct rank_facts *facts; /**< by rank */
	const struct schedule *sched;
	const double *task_ns; /**< measured duration of each task of sched, on one rank */
	/** What collectives take; ns_per_byte 0: not known, and fitted to the measured ones. */
	struct sched_machine machine;
};
struct verdict_move {
	char what[200]; /**< a change, in words */
	double number;  /**< how far: see unit */
	char unit[40];  /**< "tokens", "of the step time" */
};
#define VERDICT_MAX_MOVES 8
struct verdict {
	char bound_by[40]; /**< "gemm", "attention", "elementwise", "all_gather", "reduce_scatter",
			      "all_reduce", "norm", "optimizer", "storage", "idle", "rank N" */
	char why[480];     /**< with its numbers */
	double share;      /**< of the step that it takes */
	struct verdict_move move[VERDICT_MAX_MOVES];
	int moves;
	double t_star; /**< tokens per micro-batch at which communication is hidden; NAN: hidden now
			  or never */
};
/** @return 0 or -ENOMEM */
int verdict_find(const struct verdict_input *in, struct verdict *v, struct fb_err *e) FB_MUST_CHECK;

/** Steps that were not run, from the times of one that was. */
struct verdict_model {
	const struct verdict_input *in;
	double op_ns[SCHED_OP_COUNT][2]; /**< mean time of an op's task: of a block, of the root */
	struct sched_machine machine;
};
void verdict_model(const struct verdict_input *in, struct verdict_model *m);
/**
 * How long a step of `c` would last: the same model and ranks; compute as measured, `tokens` times
 * as long where it grows with them; collectives by the machine, `link` times as fast.
 * @return 0 or -ENOMEM; *exposed is the share of the step in which compute waits for collectives
 */
int verdict_predict(const struct verdict_model *m, const struct step_config *c, double tokens,
	double link, double *step_ns, double *exposed, struct fb_err *e) FB_MUST_CHECK;

#endif
