/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: what a schedule's tasks move, added up, to be held against step_bytes()'s formulas. */
#ifndef TRAIN_SCHEDULE_SUM_H
#define TRAIN_SCHEDULE_SUM_H

#include "bench/train/schedule.h"

/** Bytes sent by a rank, by kind. */
static inline void schedule_bytes(
	const struct step_config *c, const struct schedule *s, struct step_bytes *b)
{
	*b = (struct step_bytes){0};
	double *const kind[SCHED_OP_COUNT] = {
		[SCHED_GATHER] = &b->all_gather,
		[SCHED_PARAM_GATHER] = &b->all_gather,
		[SCHED_REDUCE_SCATTER] = &b->reduce_scatter,
		[SCHED_ALL_REDUCE] = &b->all_reduce,
		[SCHED_NORM_REDUCE] = &b->norm,
		[SCHED_GRADS_OUT] = &b->offload_out,
		[SCHED_STATE_OUT] = &b->offload_out,
		[SCHED_STATE_IN] = &b->offload_in,
		[SCHED_PARAMS_IN] = &b->offload_in,
	};
	for (int i = 0; i < s->n; i++) {
		const struct sched_task *t = &s->v[i];
		if (kind[t->op])
			*kind[t->op] += schedule_task_bytes(c, t);
		b->offload_in += schedule_fetch_bytes(c, t);
	}
}

#endif
