// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of --inject share: a job settled from a command line, without and with an
 * injection, and what the recurrence over the schedule foretells of the second from the times of
 * the first. For tests alone.
 */
#ifndef FB_TRAIN_INJECT_RULE_H
#define FB_TRAIN_INJECT_RULE_H

#include "bench/core/test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train/measure.h"
#include "bench/train/train_priv.h"

#define RANKS 2

/* ---- a job ----------------------------------------------------------------------------------- */

struct inject_job {
	struct train_opts o;
	struct fb_opt_spec spec;
	struct train_job j;
	struct schedule sched; /* as every rank has it */
};

/* What is the same in a run without and with an injection. */
struct size {
	const char *model, *link, *micro_batch, *seq;
};

/* inject NULL: none. What was settled is freed by inject_free(), after a failure too. */
static int inject_settle(struct inject_job *r, const struct size *size, const char *strategy,
	const char *inject, struct fb_err *e)
{
	const char *const words[] = {"train", "--strategy", strategy, "--model", size->model,
		"--link", size->link, "--micro-batch", size->micro_batch, "--seq", size->seq,
		"--inject", inject};
	int n = (int)(sizeof(words) / sizeof(words[0])) - (inject ? 0 : 2);
	char *argv[sizeof(words) / sizeof(words[0]) + 1] = {NULL};
	for (int i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	memset(r, 0, sizeof(*r));
	r->spec =
		(struct fb_opt_spec){.command = "train", .sets = {{"Training", train_opts, &r->o}}};
	int rc = fb_opt_parse(&r->spec, n, argv, e);
	if (rc == 0)
		rc = train_job_settle(&r->j, &r->o, RANKS, true, e);
	r->j.seed = 1;
	if (rc == 0)
		rc = schedule_build(&r->j.step, &r->sched, e);
	if (rc != 0)
		return rc;
	r->j.world = p2p_world_new(RANKS, &r->j.link, e);
	return r->j.world ? 0 : e->code;
}

static void inject_free(struct inject_job *r)
{
	p2p_world_free(r->j.world);
	schedule_free(&r->sched);
	train_job_free(&r->j);
	fb_opt_free(&r->spec);
}

/* ---- what the recurrence foretells ----------------------------------------------------------- */

/* Of a moment of compute without the injection. */
struct products {
	double share;   /* that products take */
	double each_ns; /* products per ns, of those that a delay is added to */
};

/* Time that an injection adds to a task which is no collective. */
static double added(
	const struct train_job *j, const struct sched_task *t, double ns, const struct products *p)
{
	const struct train_inject *in = &j->inject;
	bool products = t->op == SCHED_FWD || t->op == SCHED_BWD || t->op == SCHED_HEAD;
	double rank = (double)in->delay_ns[INJECT_RANK];
	switch (t->op) {
	case SCHED_UPDATE: return (double)in->delay_ns[INJECT_OPTIMIZER] + rank;
	case SCHED_GRADS_OUT:
	case SCHED_PARAMS_IN: return (double)in->delay_ns[INJECT_STORAGE];
	case SCHED_RELEASE: return 0;
	default: break;
	}
	if (t->queue != SCHED_COMPUTE)
		return 0;
	double slower = p->share * (1 / in->factor[INJECT_GEMM] - 1);
	double later = p->each_ns * (double)in->delay_ns[INJECT_GEMM];
	return rank + (products ? ns * (slower + later) : 0);
}

/* The step of job j whose tasks take base_ns without its injection and look at the network every
 * poll_ns. */
static void foretell(const struct inject_job *job, const double *base_ns, double poll_ns,
	const struct products *p, struct sched_times *t)
{
	const struct schedule *s = &job->sched;
	const struct train_job *j = &job->j;
	struct sched_machine m;
	struct fb_err e = {0};
	size_t n = (size_t)s->n;
	double *ns = calloc(n, sizeof(*ns)), *bytes = calloc(n, sizeof(*bytes));
	assert_true(ns && bytes);
	train_machine(j, &m);
	m.poll_ns = poll_ns;
	for (size_t i = 0; i < n; i++) {
		const struct sched_task *k = &s->v[i];
		bool collective = k->queue != SCHED_COMPUTE && k->queue != SCHED_Q_STORAGE;
		bytes[i] = collective ? schedule_task_bytes(&j->step, k) : 0;
		ns[i] = base_ns[i] + added(j, k, base_ns[i], p);
	}
	assert_int_equal(schedule_times(s, &m, ns, bytes, t, &e), 0);
	free(bytes);
	free(ns);
}

static double foretold(const struct sched_times *t, enum measure_item i)
{
	const double *x = t->exposed_ns;
	switch (i) {
	case MEASURE_ALL_GATHER: return x[SCHED_GATHER] + x[SCHED_PARAM_GATHER];
	case MEASURE_REDUCE_SCATTER: return x[SCHED_REDUCE_SCATTER];
	case MEASURE_ALL_REDUCE: return x[SCHED_ALL_REDUCE];
	default: return t->step_ns;
	}
}

/* An injection, and what must come of it. */
struct kind {
	const char *strategy, *inject, *named;
	enum measure_item item; /* MEASURE_STEP: none of its own */
	bool computes;          /* it changes compute itself */
};

#endif
