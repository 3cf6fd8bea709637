// SPDX-License-Identifier: Apache-2.0
/*
 * Truth by injection: what --inject adds comes out where it was put in. Two ranks train over a
 * shaped link on a device whose products take a time that is known (they sleep), so that a machine
 * with other work on it disturbs little. From the times of a run without injection the recurrence
 * over the schedule foretells the step and the exposed time of the run with it.
 */
#include "bench/core/test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/train/measure.h"
#include "bench/train/train.h"
#include "bench/train/verdict.h"

#define RANKS      2
#define STEPS      6
#define PRODUCT_NS 2000000u
#define LOOK_NS    700000u /* how often a product looks at the network */
#define AWAKE_NS   200000u
#define NEXT_NS    300000u /* between products of one task */
#define ATTEMPTS   3       /* other work on the machine may spoil one */

/* ---- a device whose products sleep ----------------------------------------------------------- */

static _Thread_local struct tr_dev_cfg my;   /* a rank is a thread */
static _Thread_local uint64_t due, returned; /* of its last product */

static int sleepy_open(const struct tr_dev_cfg *cfg, struct tr_dev **d, struct fb_err *e)
{
	my = *cfg;
	return tr_cpu.open(cfg, d, e);
}

static void sleepy_gemm(
	struct tr_queue *q, const struct gemm_shape *s, const void *a, const void *b, void *c)
{
	uint64_t ns = (uint64_t)(PRODUCT_NS * (1 + my.gemm_slow)) + my.gemm_delay_ns;
	uint64_t began = fb_clock_ns();
	/* A product that the machine held up does not hold up those right after it. */
	uint64_t end = (began - returned < NEXT_NS ? due : began) + ns;
	due = end;
	/* A sleep's end may come late: the last bit is waited for awake. */
	for (uint64_t now = fb_clock_ns(); now < end; now = fb_clock_ns()) {
		uint64_t left = end - now < LOOK_NS ? end - now : LOOK_NS;
		struct timespec t = {.tv_nsec = (long)(left - AWAKE_NS)};
		if (left > AWAKE_NS)
			nanosleep(&t, NULL);
		if (my.poll)
			my.poll(my.poll_arg);
	}
	returned = fb_clock_ns();
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct run {
	struct train_opts o;
	struct fb_opt_spec spec;
	struct train_job j;
	struct tr_dev_ops ops;
	struct rank_facts facts[RANKS];
	struct step_stats fastest[RANKS]; /* other work on the machine only ever adds */
	struct schedule sched;            /* as every rank has it */
	double *task_ns;                  /* rank 0's in its fastest step */
};
struct rank {
	struct run *r;
	int rank, rc;
	struct fb_err e;
};

static int live(struct rank *me, struct engine *g)
{
	struct measure m;
	int rc = measure_open(&m, STEPS, 1, engine_schedule(g)->n, &me->e);
	for (int i = 0; rc == 0 && i < STEPS; i++) {
		struct step_stats s, *best = &me->r->fastest[me->rank];
		rc = engine_step(g, fb_deadline_in(30000000000u), &s, &me->e);
		if (rc != 0)
			break;
		measure_add(&m, &s, engine_times(g));
		uint64_t least = best->compute_ns;
		if (i == 0 || s.step_ns < best->step_ns) {
			*best = s;
			for (int k = 0; me->rank == 0 && k < m.tasks; k++)
				me->r->task_ns[k] =
					(double)(engine_times(g)[k].end - engine_times(g)[k].start);
		}
		if (i > 0 && least < best->compute_ns)
			best->compute_ns = least;
		if (s.compute_ns < best->compute_ns)
			best->compute_ns = s.compute_ns;
	}
	if (rc == 0)
		measure_facts(&m, &me->r->facts[me->rank]);
	measure_close(&m);
	return rc;
}

static void *rank_thread(void *arg)
{
	struct rank *me = arg;
	struct p2p *p = NULL;
	struct engine *g = NULL;
	struct engine_config c;
	const struct p2p_env env = {.rank = me->rank,
		.size = RANKS,
		.now = fb_clock_ns,
		.timeout_ns = 30000000000u,
		.shared = me->r->j.world};
	train_engine_config(&me->r->j, me->rank, -1, &c);
	c.dev_ops = &me->r->ops;
	me->rc = p2p_local.open(&env, &p, &me->e);
	if (me->rc == 0)
		me->rc = engine_open(&c, &p2p_local, p, me->rank, &g, &me->e);
	if (me->rc == 0)
		me->rc = live(me, g);
	if (me->rc != 0 && p)
		p2p_local.abort(p, &me->e);
	engine_close(g);
	if (p)
		p2p_local.close(p);
	return NULL;
}

static void run_open(struct run *r, const char *strategy, const char *inject)
{
	char *argv[] = {(char *)(uintptr_t) "train", (char *)(uintptr_t) "--strategy",
		(char *)(uintptr_t)strategy, (char *)(uintptr_t) "--link",
		(char *)(uintptr_t) "1ms,20MB/s", (char *)(uintptr_t) "--micro-batch",
		(char *)(uintptr_t) "1", (char *)(uintptr_t) "--seq", (char *)(uintptr_t) "8",
		(char *)(uintptr_t) "--inject", (char *)(uintptr_t)inject, NULL};
	struct fb_err e = {0};
	memset(r, 0, sizeof(*r));
	r->spec =
		(struct fb_opt_spec){.command = "train", .sets = {{"Training", train_opts, &r->o}}};
	assert_int_equal(fb_opt_parse(&r->spec, inject ? 11 : 9, argv, &e), 0);
	if (train_job_settle(&r->j, &r->o, RANKS, true, &e) != 0)
		fail_msg("%s", e.msg);
	r->j.seed = 1;
	r->ops = tr_cpu;
	r->ops.open = sleepy_open;
	r->ops.gemm = sleepy_gemm;
	assert_int_equal(schedule_build(&r->j.step, &r->sched, &e), 0);
	r->task_ns = calloc((size_t)r->sched.n, sizeof(*r->task_ns));
	r->j.world = p2p_world_new(RANKS, &r->j.link, &e);
	assert_true(r->task_ns && r->j.world);
	pthread_t thread[RANKS];
	struct rank ranks[RANKS];
	for (int i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank){.r = r, .rank = i};
		assert_int_equal(pthread_create(&thread[i], NULL, rank_thread, &ranks[i]), 0);
	}
	for (int i = 0; i < RANKS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < RANKS; i++)
		if (ranks[i].rc != 0)
			fail_msg("rank %d: %s", i, ranks[i].e.msg);
}

static void run_close(struct run *r)
{
	p2p_world_free(r->j.world);
	schedule_free(&r->sched);
	free(r->task_ns);
	train_job_free(&r->j);
	fb_opt_free(&r->spec);
}

/* ---- what the recurrence foretells ----------------------------------------------------------- */

/* Time that an injection adds to a task which is no collective. */
static double added(const struct train_job *j, const struct sched_task *t, double ns)
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
	return rank + (products ? ns * (1 / in->factor[INJECT_GEMM] - 1) : 0);
}

static void foretell(const struct run *base, const struct train_job *j, struct sched_times *t)
{
	struct sched_machine m;
	struct fb_err e = {0};
	int n = base->sched.n;
	double *ns = calloc((size_t)n, sizeof(*ns)), *bytes = calloc((size_t)n, sizeof(*bytes));
	assert_true(ns && bytes);
	train_machine(j, &m);
	m.poll_ns = LOOK_NS;
	for (int i = 0; i < n; i++) {
		const struct sched_task *k = &base->sched.v[i];
		bool collective = k->queue != SCHED_COMPUTE && k->queue != SCHED_Q_STORAGE;
		bytes[i] = collective ? schedule_task_bytes(&j->step, k) : 0;
		ns[i] = base->task_ns[i] + added(j, k, base->task_ns[i]);
	}
	assert_int_equal(schedule_times(&base->sched, &m, ns, bytes, t, &e), 0);
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

static double mean(const struct run *r, enum measure_item i)
{
	double sum = 0;
	for (int k = 0; k < RANKS; k++)
		sum += measure_of(&r->fastest[k], i) / RANKS;
	return sum;
}

/* Within 5 % of the step: what is exposed of a kind may be nothing. */
static bool agrees(double a, double b, double step, const char *what, char *why, size_t len)
{
	if (fabs(a - b) <= 0.05 * step)
		return true;
	snprintf(why, len, "%s: %.2f ms measured, %.2f ms foretold", what, a / 1e6, b / 1e6);
	return false;
}

struct kind {
	const char *strategy, *inject, *named;
	enum measure_item item; /* MEASURE_STEP: none of its own */
	bool computes;          /* it changes compute itself */
};

/* Every moment of a step is charged to one item. */
static void adds_up(const struct run *r)
{
	for (int k = 0; k < RANKS; k++) {
		double sum = 0, step = measure_of(&r->fastest[k], MEASURE_STEP);
		for (int i = MEASURE_COMPUTE; i < MEASURE_ITEMS; i++)
			sum += measure_of(&r->fastest[k], (enum measure_item)i);
		/* compute may be that of another step */
		assert_true(sum <= 1.001 * step && sum > 0.8 * step);
	}
}

static bool holds(const struct kind *k, char *why, size_t len)
{
	struct run *base = malloc(sizeof(*base)), *run = malloc(sizeof(*run));
	struct sched_times t;
	struct verdict v;
	struct fb_err e = {0};
	assert_true(base && run);
	run_open(base, k->strategy, NULL);
	run_open(run, k->strategy, k->inject);
	adds_up(base);
	adds_up(run);
	foretell(base, &run->j, &t);
	double step = mean(run, MEASURE_STEP);
	/* Reading tokens and the loss's sum over ranks stand in no list; they are as they were. */
	double rest = mean(base, MEASURE_IDLE);
	bool ok = agrees(step, t.step_ns + rest, step, "step", why, len);
	if (ok && k->item != MEASURE_STEP)
		ok = agrees(mean(run, k->item), foretold(&t, k->item), step,
			measure_item_names[k->item], why, len);
	double was = mean(base, MEASURE_COMPUTE), is = mean(run, MEASURE_COMPUTE);
	if (ok && !k->computes && fabs(is - was) > 0.02 * was) {
		snprintf(why, len, "compute: %.2f ms, %.2f ms before", is / 1e6, was / 1e6);
		ok = false;
	}
	struct verdict_input in = {.step = &run->j.step,
		.facts = run->facts,
		.sched = &run->sched,
		.task_ns = run->task_ns};
	train_machine(&run->j, &in.machine);
	/* The products' own time is not counted by a device that sleeps. */
	for (int r = 0; r < RANKS; r++)
		run->facts[r].linear_ns = 0.9 * run->facts[r].compute_ns;
	assert_int_equal(verdict_find(&in, &v, &e), 0);
	if (ok && strcmp(v.bound_by, k->named) != 0) {
		snprintf(why, len, "the verdict names %s, not %s: %.200s", v.bound_by, k->named,
			v.why);
		ok = false;
	}
	schedule_times_free(&t);
	run_close(run);
	run_close(base);
	free(run);
	free(base);
	return ok;
}

static void truth(const struct kind *k)
{
	char why[400] = "";
	for (int i = 0; i < ATTEMPTS; i++) {
		if (holds(k, why, sizeof(why)))
			return;
		print_message("%s %s, attempt %d: %s\n", k->strategy, k->inject, i + 1, why);
	}
	fail_msg("%s with %s: %s", k->strategy, k->inject, why);
}

static void all_gather(void **state)
{
	truth(&(struct kind){"fsdp", "all_gather:+60ms", "all_gather", MEASURE_ALL_GATHER, false});
}

static void all_gather_rate(void **state)
{
	truth(&(struct kind){"fsdp", "all_gather:x0.02", "all_gather", MEASURE_ALL_GATHER, false});
}

static void reduce_scatter(void **state)
{
	truth(&(struct kind){
		"fsdp", "reduce_scatter:+60ms", "reduce_scatter", MEASURE_REDUCE_SCATTER, false});
}

static void all_reduce(void **state)
{
	truth(&(struct kind){"ddp", "all_reduce:+60ms", "all_reduce", MEASURE_ALL_REDUCE, false});
}

static void gemm(void **state)
{
	truth(&(struct kind){"fsdp", "gemm:x0.5", "gemm", MEASURE_STEP, true});
}

static void optimizer(void **state)
{
	truth(&(struct kind){"fsdp", "optimizer:+60ms", "optimizer", MEASURE_STEP, false});
}

static void storage(void **state)
{
	truth(&(struct kind){"offload", "storage:+40ms", "storage", MEASURE_STEP, false});
}

static void rank(void **state)
{
	truth(&(struct kind){"fsdp", "rank:1:+20ms", "rank 1", MEASURE_STEP, true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_gather),
		cmocka_unit_test(all_gather_rate),
		cmocka_unit_test(reduce_scatter),
		cmocka_unit_test(all_reduce),
		cmocka_unit_test(gemm),
		cmocka_unit_test(optimizer),
		cmocka_unit_test(storage),
		cmocka_unit_test(rank),
	};
	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
