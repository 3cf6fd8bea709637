// SPDX-License-Identifier: Apache-2.0
/*
 * Truth by injection: what --inject adds comes out where it was put in. Two ranks train over a
 * shaped link on a device whose products take a time that is known (they sleep), so that a machine
 * with other work on it disturbs little. From the times of a run without injection the recurrence
 * over the schedule foretells the step and the exposed time of the run with it.
 *
 * With --real MODEL TURNS the same is shown with the machine's own products, as a table and no
 * test: there the machine has to be quiet. Steps without and with the injection are taken in turn,
 * and what is foretold of a step comes from the times of its neighbour, so that drift cancels.
 */
#include "bench/core/test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/core/stats.h"
#include "bench/train/measure.h"
#include "bench/train/train_priv.h"
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

/* What is the same in a run without and with an injection. */
struct size {
	const char *model, *link, *micro_batch, *seq;
};
static const struct size sleepy_size = {"tiny", "1ms,20MB/s", "1", "8"};

/* inject NULL: none */
static int run_settle(struct run *r, const struct size *size, const char *strategy,
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
	r->ops = tr_cpu;
	if (rc == 0)
		rc = schedule_build(&r->j.step, &r->sched, e);
	if (rc != 0)
		return rc;
	r->j.world = p2p_world_new(RANKS, &r->j.link, e);
	return r->j.world ? 0 : e->code;
}

static void run_open(struct run *r, const char *strategy, const char *inject)
{
	struct fb_err e = {0};
	if (run_settle(r, &sleepy_size, strategy, inject, &e) != 0)
		fail_msg("%s", e.msg);
	r->ops.open = sleepy_open;
	r->ops.gemm = sleepy_gemm;
	r->task_ns = calloc((size_t)r->sched.n, sizeof(*r->task_ns));
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
	p2p_world_free(r->j.world);
	schedule_free(&r->sched);
	free(r->task_ns);
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

/* The step of job j whose tasks take base_ns without its injection. */
static void foretell(const struct schedule *s, const struct train_job *j, const double *base_ns,
	const struct products *p, struct sched_times *t)
{
	struct sched_machine m;
	struct fb_err e = {0};
	size_t n = (size_t)s->n;
	double *ns = calloc(n, sizeof(*ns)), *bytes = calloc(n, sizeof(*bytes));
	assert_true(ns && bytes);
	train_machine(j, &m);
	m.poll_ns = LOOK_NS;
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
	foretell(&base->sched, &run->j, base->task_ns, &(struct products){.share = 1}, &t);
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

/* For the machine's own products: a step of six times the length would find colder caches, and a
 * product after a wait that is as long as itself is slower than those without. */
static const struct kind real_kinds[] = {
	{"fsdp", "all_gather:+60ms", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "all_gather:x0.08", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "reduce_scatter:+60ms", "reduce_scatter", MEASURE_REDUCE_SCATTER, false},
	{"ddp", "all_reduce:+60ms", "all_reduce", MEASURE_ALL_REDUCE, false},
	{"fsdp", "gemm:+4ms", "gemm", MEASURE_STEP, true},
	{"fsdp", "optimizer:+60ms", "optimizer", MEASURE_STEP, false},
	{"offload", "storage:+40ms", "storage", MEASURE_STEP, false},
	{"fsdp", "rank:1:+20ms", "rank 1", MEASURE_STEP, true},
};
#define REAL_KINDS (sizeof(real_kinds) / sizeof(real_kinds[0]))

static void kind(void **state)
{
	truth(*state);
}

/* ---- with the machine's own products --------------------------------------------------------- */

#define REAL_DROPPED 2    /* turns: products are planned and memory is touched for the first time */
#define REAL_LEAST   6    /* undisturbed turns: fewer have no interval */
#define REAL_HELD    0.01 /* of a turn: how long other work may keep a rank from its CPU */

/* A step, and the products in it. */
struct real_step {
	struct step_stats s;
	struct tr_count count; /* ns alone */
};
/* The two runs of a kind on one rank, and what each turn measured there. */
struct real_rank {
	struct run *run[2]; /* without, with */
	int rank, turns, rc;
	struct real_step *step[2]; /* [turn] */
	double *task_ns[2];        /* [turn][task] */
	double *held;              /* [turn]: ready to run, and not running */
	struct fb_err e;
};

/* How long this thread has waited for a CPU, ns; 0 where the kernel does not tell. */
static double held_ns(void)
{
	char text[128] = "";
	FILE *f = fopen("/proc/thread-self/schedstat", "r");
	if (!f)
		return 0;
	char *ran_end = fgets(text, sizeof(text), f) ? strchr(text, ' ') : NULL;
	fclose(f);
	return ran_end ? strtod(ran_end, NULL) : 0;
}

static int real_step(struct real_rank *me, struct engine *g, int k, int t)
{
	struct tr_count from, to;
	struct real_step one;
	struct tr_dev *dev;
	const struct tr_dev_ops *ops = engine_device(g, &dev);
	int n = engine_schedule(g)->n;
	ops->count(dev, &from);
	int rc = engine_step(g, fb_deadline_in(60000000000u), &one.s, &me->e);
	ops->count(dev, &to);
	if (rc != 0 || t < 0)
		return rc;
	one.count = (struct tr_count){.linear_calls = to.linear_calls - from.linear_calls,
		.linear_ns = to.linear_ns - from.linear_ns,
		.attn_ns = to.attn_ns - from.attn_ns};
	me->step[k][t] = one;
	for (int i = 0; i < n; i++)
		me->task_ns[k][t * n + i] =
			(double)(engine_times(g)[i].end - engine_times(g)[i].start);
	return 0;
}

static int real_turns(struct real_rank *me, struct engine *const g[2])
{
	int rc = 0;
	for (int t = -REAL_DROPPED; t < me->turns && rc == 0; t++) {
		double held = held_ns();
		for (int k = 0; k < 2 && rc == 0; k++)
			rc = real_step(me, g[k], k, t);
		if (t >= 0)
			me->held[t] = held_ns() - held;
	}
	return rc;
}

static void *real_thread(void *arg)
{
	struct real_rank *me = arg;
	struct p2p *p[2] = {NULL, NULL};
	struct engine *g[2] = {NULL, NULL};
	for (int k = 0; k < 2 && me->rc == 0; k++) {
		struct train_job *j = &me->run[k]->j;
		struct engine_config c;
		const struct p2p_env env = {.rank = me->rank,
			.size = RANKS,
			.now = fb_clock_ns,
			.timeout_ns = 60000000000u,
			.shared = j->world};
		train_engine_config(j, me->rank, train_core(j, me->rank, RANKS), &c);
		me->rc = p2p_local.open(&env, &p[k], &me->e);
		if (me->rc == 0)
			me->rc = engine_open(&c, &p2p_local, p[k], me->rank, &g[k], &me->e);
	}
	if (me->rc == 0)
		me->rc = real_turns(me, g);
	for (int k = 1; k >= 0; k--) {
		if (me->rc != 0 && p[k])
			p2p_local.abort(p[k], &me->e);
		engine_close(g[k]);
		if (p[k])
			p2p_local.close(p[k]);
	}
	return NULL;
}

/* What one kind came to; times in ns. */
struct truth {
	struct fb_ci step, computed;         /* rise of the step: measured, and foretold */
	struct fb_ci exposed, computed_item; /* of the exposed time of the kind's own item */
	struct fb_ci compute;                /* with / without */
	double base_ns;                      /* step without */
	int turns;                           /* undisturbed ones */
	struct verdict verdict;
};

static struct fb_ci median_of(double *v, int n)
{
	fb_sort(v, (size_t)n);
	return fb_median_ci_sorted(v, (size_t)n, 0.95);
}

static double turn_of(const struct real_rank *ranks, int k, int turn, enum measure_item i)
{
	double sum = 0;
	for (int r = 0; r < RANKS; r++)
		sum += measure_of(&ranks[r].step[k][turn].s, i) / RANKS;
	return sum;
}

/* Leave out the turns in which other work held up a rank: they say nothing of what was injected. */
static int undisturbed(struct real_rank *ranks)
{
	int kept = 0, n = ranks[0].run[0]->sched.n;
	for (int t = 0; t < ranks[0].turns; t++) {
		double turn =
			turn_of(ranks, 0, t, MEASURE_STEP) + turn_of(ranks, 1, t, MEASURE_STEP);
		bool good = true;
		for (int r = 0; r < RANKS; r++)
			good = good && ranks[r].held[t] <= REAL_HELD * turn;
		for (int r = 0; r < RANKS && good; r++)
			for (int k = 0; k < 2; k++) {
				double *ns = ranks[r].task_ns[k];
				ranks[r].step[k][kept] = ranks[r].step[k][t];
				memmove(ns + kept * n, ns + t * n, (size_t)n * sizeof(*ns));
			}
		kept += good;
	}
	return kept;
}

/* A task ends for all ranks when it has ended on the last: collectives wait for it. */
static void slowest(const struct real_rank *ranks, int turn, int n, double *ns)
{
	for (int i = 0; i < n; i++) {
		ns[i] = 0;
		for (int r = 0; r < RANKS; r++)
			ns[i] = fmax(ns[i], ranks[r].task_ns[0][turn * n + i]);
	}
}

static struct products products(const struct real_rank *ranks, int turn)
{
	double ns = 0, calls = 0, compute = turn_of(ranks, 0, turn, MEASURE_COMPUTE);
	for (int r = 0; r < RANKS; r++) {
		const struct tr_count *c = &ranks[r].step[0][turn].count;
		ns += (double)(c->linear_ns + c->attn_ns) / RANKS;
		calls += (double)c->linear_calls / RANKS;
	}
	return (struct products){ns / compute, calls / compute};
}

static void real_compare(const struct kind *k, const struct real_rank *ranks, struct truth *t)
{
	struct run *const *run = ranks[0].run;
	int turns = t->turns, n = run[0]->sched.n;
	double *v[6], *ns = calloc((size_t)n, sizeof(*ns));
	for (size_t i = 0; i < 6; i++) {
		v[i] = calloc((size_t)turns, sizeof(double));
		assert_true(v[i] && ns);
	}
	for (int i = 0; i < turns; i++) {
		struct sched_times was, is;
		slowest(ranks, i, n, ns);
		const struct products p = products(ranks, i);
		foretell(&run[0]->sched, &run[0]->j, ns, &p, &was);
		foretell(&run[0]->sched, &run[1]->j, ns, &p, &is);
		v[0][i] = turn_of(ranks, 1, i, MEASURE_STEP) - turn_of(ranks, 0, i, MEASURE_STEP);
		v[1][i] = is.step_ns - was.step_ns;
		v[2][i] = turn_of(ranks, 1, i, k->item) - turn_of(ranks, 0, i, k->item);
		v[3][i] = foretold(&is, k->item) - foretold(&was, k->item);
		v[4][i] = turn_of(ranks, 1, i, MEASURE_COMPUTE) /
			  turn_of(ranks, 0, i, MEASURE_COMPUTE);
		v[5][i] = turn_of(ranks, 0, i, MEASURE_STEP);
		schedule_times_free(&was);
		schedule_times_free(&is);
	}
	t->step = median_of(v[0], turns);
	t->computed = median_of(v[1], turns);
	t->exposed = median_of(v[2], turns);
	t->computed_item = median_of(v[3], turns);
	t->compute = median_of(v[4], turns);
	t->base_ns = median_of(v[5], turns).est;
	for (size_t i = 0; i < 6; i++)
		free(v[i]);
	free(ns);
}

/* What the command's own verdict would say of the steps with the injection. */
static int real_judge(struct real_rank *ranks, struct truth *t, struct fb_err *e)
{
	struct run *run = ranks[0].run[1];
	struct rank_facts facts[RANKS] = {0};
	int n = run->sched.n, turns = t->turns, rc = 0;
	double *ns = calloc((size_t)n, sizeof(*ns));
	struct task_time *times = calloc((size_t)n, sizeof(*times));
	assert_true(ns && times);
	for (int r = 0; r < RANKS && rc == 0; r++) {
		struct measure m;
		rc = measure_open(&m, turns, 0, n, e);
		for (int i = 0; i < turns && rc == 0; i++) {
			const struct real_step *s = &ranks[r].step[1][i];
			for (int k = 0; k < n; k++)
				times[k].end = (uint64_t)ranks[r].task_ns[1][i * n + k];
			measure_add(&m, &s->s, times);
			facts[r].linear_ns += (double)s->count.linear_ns / turns;
			facts[r].attn_ns += (double)s->count.attn_ns / turns;
		}
		if (rc == 0 && r == 0)
			measure_tasks(&m, ns);
		if (rc == 0)
			measure_facts(&m, &facts[r]);
		measure_close(&m);
	}
	struct verdict_input in = {
		.step = &run->j.step, .facts = facts, .sched = &run->sched, .task_ns = ns};
	train_machine(&run->j, &in.machine);
	if (rc == 0)
		rc = verdict_find(&in, &t->verdict, e);
	free(times);
	free(ns);
	return rc;
}

static void real_rank_open(struct real_rank *me, struct run *const run[2], int rank, int turns)
{
	size_t n = (size_t)turns;
	*me = (struct real_rank){.run = {run[0], run[1]}, .rank = rank, .turns = turns};
	me->held = calloc(n, sizeof(*me->held));
	assert_non_null(me->held);
	for (int k = 0; k < 2; k++) {
		me->step[k] = calloc(n, sizeof(*me->step[k]));
		me->task_ns[k] = calloc(n * (size_t)run[0]->sched.n, sizeof(*me->task_ns[k]));
		assert_true(me->step[k] && me->task_ns[k]);
	}
}

static int real_kind(const struct kind *k, const struct size *size, const struct gemm_ops *gemm,
	int turns, struct truth *t, struct fb_err *e)
{
	struct run *run[2] = {calloc(1, sizeof(struct run)), calloc(1, sizeof(struct run))};
	struct real_rank ranks[RANKS] = {0};
	pthread_t thread[RANKS];
	assert_true(run[0] && run[1]);
	int rc = run_settle(run[0], size, k->strategy, NULL, e);
	if (rc == 0)
		rc = run_settle(run[1], size, k->strategy, k->inject, e);
	if (rc != 0)
		goto close_runs;
	run[0]->j.gemm = run[1]->j.gemm = gemm;
	for (int r = 0; r < RANKS; r++)
		real_rank_open(&ranks[r], run, r, turns);
	for (int r = 0; r < RANKS; r++)
		assert_int_equal(pthread_create(&thread[r], NULL, real_thread, &ranks[r]), 0);
	for (int r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	for (int r = 0; r < RANKS && rc == 0; r++) {
		rc = ranks[r].rc;
		*e = ranks[r].e;
	}
	t->turns = rc == 0 ? undisturbed(ranks) : 0;
	if (t->turns > 0) {
		real_compare(k, ranks, t);
		rc = real_judge(ranks, t, e);
	}
	for (int r = 0; r < RANKS; r++) {
		free(ranks[r].held);
		for (int side = 0; side < 2; side++) {
			free(ranks[r].step[side]);
			free(ranks[r].task_ns[side]);
		}
	}
close_runs:
	for (int side = 1; side >= 0; side--) {
		run_close(run[side]);
		free(run[side]);
	}
	return rc;
}

static double off(const struct fb_ci *measured, const struct fb_ci *computed)
{
	return measured->est / computed->est - 1;
}

/* @return FB_EXIT_OK: all of it is as it must be, FB_EXIT_FAILED, FB_EXIT_UNMEASURED */
static int real_row(const struct kind *k, const struct truth *t)
{
	bool own = k->item != MEASURE_STEP;
	printf("  %-8s %-21s ", k->strategy, k->inject);
	if (t->turns < REAL_LEAST) {
		printf("%d turns were undisturbed, %d are needed\n", t->turns, REAL_LEAST);
		return FB_EXIT_UNMEASURED;
	}
	bool good = fabs(off(&t->step, &t->computed)) <= 0.05 &&
		    (!own || fabs(off(&t->exposed, &t->computed_item)) <= 0.05) &&
		    (k->computes || fabs(t->compute.est - 1) < 0.02) &&
		    strcmp(t->verdict.bound_by, k->named) == 0;
	printf("%5d %6.1f  %6.1f [%.1f, %.1f] %7.1f %+6.1f %%  ", t->turns, t->base_ns / 1e6,
		t->step.est / 1e6, t->step.lo / 1e6, t->step.hi / 1e6, t->computed.est / 1e6,
		100 * off(&t->step, &t->computed));
	if (own)
		printf("%6.1f %7.1f %+6.1f %%  ", t->exposed.est / 1e6, t->computed_item.est / 1e6,
			100 * off(&t->exposed, &t->computed_item));
	else
		printf("%6s %7s %8s  ", "", "", "");
	printf("%+6.1f %%  %-14s %s\n", 100 * (t->compute.est - 1), t->verdict.bound_by,
		good ? "holds" : "does not hold");
	return good ? FB_EXIT_OK : FB_EXIT_FAILED;
}

/* MODEL TURNS [WORD]: of the kinds whose injection begins with WORD. @return the worst row's */
static int real_table(int argc, char **argv)
{
	const struct size size = {argv[2], "1ms,100MB/s", "32", "128"};
	int turns = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0, status = FB_EXIT_OK;
	const char *word = argc > 4 ? argv[4] : "";
	struct fb_err e = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &e);
	if (turns < REAL_LEAST || !plugin) {
		printf("  %s\n", plugin ? "too few turns" : e.msg);
		return plugin ? FB_EXIT_USAGE : FB_EXIT_UNMEASURED;
	}
	printf("  %-36s %6s  %-22s %8s %8s %7s\n", "", "step", "rise of the step", "", "",
		"of its own exposed time");
	printf("  %-8s %-21s %5s %6s  %-22s %7s %8s  %6s %7s %8s  %8s  %s\n", "strategy",
		"injection", "turns", "ms", "measured", "by rule", "off", "ms", "by rule", "off",
		"compute", "verdict");
	for (size_t i = 0; i < REAL_KINDS; i++) {
		struct truth t = {0};
		if (strncmp(real_kinds[i].inject, word, strlen(word)) != 0)
			continue;
		if (real_kind(&real_kinds[i], &size, plugin->gemm, turns, &t, &e) != 0) {
			printf("  %s %s: %s\n", real_kinds[i].strategy, real_kinds[i].inject,
				e.msg);
			return FB_EXIT_UNMEASURED;
		}
		int row = real_row(&real_kinds[i], &t);
		status = row > status ? row : status;
		fflush(stdout);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[KINDS];
	fb_clock_init();
	if (argc > 2 && strcmp(argv[1], "--real") == 0)
		return real_table(argc, argv);
	for (size_t i = 0; i < KINDS; i++)
		tests[i] = (struct CMUnitTest){.name = kinds[i].inject,
			.test_func = kind,
			.initial_state = (void *)(uintptr_t)&kinds[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
