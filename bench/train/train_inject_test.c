// SPDX-License-Identifier: Apache-2.0
/*
 * Truth by injection: what --inject adds comes out where it was put in. Two ranks train over a
 * shaped link on a device whose products take a time that is known (they sleep), so that a machine
 * with other work on it disturbs little. From the times of a run without injection the recurrence
 * over the schedule foretells the step and the exposed time of the run with it.
 */
#include "bench/train/train_inject_rule.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/train/verdict.h"

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
	struct inject_job of;
	struct tr_dev_ops ops;
	struct rank_facts facts[RANKS];
	struct step_stats fastest[RANKS]; /* other work on the machine only ever adds */
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
		.shared = me->r->of.j.world};
	train_engine_config(&me->r->of.j, me->rank, -1, &c);
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

static const struct size sleepy_size = {"tiny", "1ms,20MB/s", "1", "8"};

static void run_open(struct run *r, const char *strategy, const char *inject)
{
	struct fb_err e = {0};
	if (inject_settle(&r->of, &sleepy_size, strategy, inject, &e) != 0)
		fail_msg("%s", e.msg);
	r->ops = tr_cpu;
	r->ops.open = sleepy_open;
	r->ops.gemm = sleepy_gemm;
	r->task_ns = calloc((size_t)r->of.sched.n, sizeof(*r->task_ns));
	assert_non_null(r->task_ns);
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
	free(r->task_ns);
	inject_free(&r->of);
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
	foretell(&run->of, base->task_ns, LOOK_NS, &(struct products){.share = 1}, &t);
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
	struct verdict_input in = {.step = &run->of.j.step,
		.facts = run->facts,
		.sched = &run->of.sched,
		.task_ns = run->task_ns};
	train_machine(&run->of.j, &in.machine);
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

/* Strategy, injection, the verdict's word, the item that grows, and whether compute does. */
static const struct kind kinds[] = {
	{"fsdp", "all_gather:+60ms", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "all_gather:x0.02", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "reduce_scatter:+60ms", "reduce_scatter", MEASURE_REDUCE_SCATTER, false},
	{"ddp", "all_reduce:+60ms", "all_reduce", MEASURE_ALL_REDUCE, false},
	{"fsdp", "gemm:x0.5", "gemm", MEASURE_STEP, true},
	{"fsdp", "optimizer:+60ms", "optimizer", MEASURE_STEP, false},
	{"offload", "storage:+40ms", "storage", MEASURE_STEP, false},
	{"fsdp", "rank:1:+20ms", "rank 1", MEASURE_STEP, true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void kind(void **state)
{
	truth(*state);
}

int main(void)
{
	struct CMUnitTest tests[KINDS];
	fb_clock_init();
	for (size_t i = 0; i < KINDS; i++)
		tests[i] = (struct CMUnitTest){.name = kinds[i].inject,
			.test_func = kind,
			.initial_state = (void *)(uintptr_t)&kinds[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
