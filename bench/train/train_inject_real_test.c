// SPDX-License-Identifier: Apache-2.0
/*
 * Truth by injection with the machine's own products: steps of two ranks without and with an
 * injection are taken in turn, and what is foretold of a step comes from the times of its
 * neighbour, so that drift cancels.
 *
 * With --real MODEL TURNS [WORD] a table for a quiet machine, which `bench train` prints; without,
 * a test that the two sides are taken and judged as they should, whatever else the machine does.
 */
#include "bench/train/train_inject_rule.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/core/stats.h"
#include "bench/train/verdict.h"

/* For the machine's own products: a step of six times the length would find colder caches, and a
 * product after a wait that is as long as itself is slower than those without. */
static const struct kind real_kinds[] = {
	{"fsdp", "all_gather:+40ms", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "all_gather:x0.08", "all_gather", MEASURE_ALL_GATHER, false},
	{"fsdp", "reduce_scatter:+60ms", "reduce_scatter", MEASURE_REDUCE_SCATTER, false},
	{"ddp", "all_reduce:+60ms", "all_reduce", MEASURE_ALL_REDUCE, false},
	{"fsdp", "gemm:+4ms", "gemm", MEASURE_STEP, true},
	{"fsdp", "optimizer:+60ms", "optimizer", MEASURE_STEP, false},
	{"offload", "storage:+40ms", "storage", MEASURE_STEP, false},
	{"fsdp", "rank:1:+20ms", "rank 1", MEASURE_STEP, true},
};
#define REAL_KINDS (sizeof(real_kinds) / sizeof(real_kinds[0]))

#define REAL_ROUNDS 4 /* each with memory of its own: where it lies is worth a percent too */
#define REAL_DROPPED \
	2 /* turns of a round: products are planned and memory is touched for the first time */
#define REAL_LEAST   6      /* undisturbed turns: fewer have no interval */
#define REAL_LOOK_NS 700000 /* the network is looked at between products: what one lasts */
#define REAL_HELD    0.01   /* of a turn: how long other work may keep a rank from its CPU */

/* A step, and the products in it. */
struct real_step {
	struct step_stats s;
	struct tr_count count; /* ns alone */
};
/* The two runs of a kind on one rank, and what each turn measured there. */
struct real_rank {
	struct inject_job *run[2]; /* without, with */
	int rank, turns, rc;
	int round, from, to;       /* turns of the round at hand */
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
	for (int t = me->from - REAL_DROPPED; t < me->to && rc == 0; t++) {
		double held = held_ns();
		for (int k = 0; k < 2 && rc == 0; k++)
			rc = real_step(me, g[k], k, t < me->from ? -1 : t);
		if (t >= me->from)
			me->held[t] = held_ns() - held;
	}
	return rc;
}

static void *real_thread(void *arg)
{
	struct real_rank *me = arg;
	struct p2p *p[2] = {NULL, NULL};
	struct engine *g[2] = {NULL, NULL};
	/* What is opened first has the better memory: by turns. */
	for (int i = 0; i < 2 && me->rc == 0; i++) {
		int k = (i + me->round) % 2;
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

/* Leave out the turns in which other work held up a rank for more than that share of them: they say
 * nothing of what was injected. */
static int undisturbed(struct real_rank *ranks, double share)
{
	int kept = 0, n = ranks[0].run[0]->sched.n;
	for (int t = 0; t < ranks[0].turns; t++) {
		double turn =
			turn_of(ranks, 0, t, MEASURE_STEP) + turn_of(ranks, 1, t, MEASURE_STEP);
		bool good = true;
		for (int r = 0; r < RANKS; r++)
			good = good && ranks[r].held[t] <= share * turn;
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
	struct inject_job *const *run = ranks[0].run;
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
		foretell(run[0], ns, REAL_LOOK_NS, &p, &was);
		foretell(run[1], ns, REAL_LOOK_NS, &p, &is);
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
	struct inject_job *run = ranks[0].run[1];
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

static void real_rank_open(
	struct real_rank *me, struct inject_job *const run[2], int rank, int turns)
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

static void real_rank_close(struct real_rank *me)
{
	free(me->held);
	for (int k = 0; k < 2; k++) {
		free(me->step[k]);
		free(me->task_ns[k]);
	}
}

/* A part of the turns, with worlds and engines of its own. */
static int real_round(struct real_rank *ranks, int round, struct fb_err *e)
{
	int turns = ranks[0].turns, rc = 0;
	pthread_t thread[RANKS];
	for (int k = 0; k < 2; k++) {
		struct train_job *j = &ranks[0].run[k]->j;
		p2p_world_free(j->world);
		j->world = p2p_world_new(RANKS, &j->link, e);
		if (!j->world)
			return e->code;
	}
	for (int r = 0; r < RANKS; r++) {
		ranks[r].round = round;
		ranks[r].from = turns * round / REAL_ROUNDS;
		ranks[r].to = turns * (round + 1) / REAL_ROUNDS;
		assert_int_equal(pthread_create(&thread[r], NULL, real_thread, &ranks[r]), 0);
	}
	for (int r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	for (int r = 0; r < RANKS && rc == 0; r++) {
		rc = ranks[r].rc;
		*e = ranks[r].e;
	}
	return rc;
}

static int real_kind(const struct kind *k, const struct size *size, const struct gemm_ops *gemm,
	int turns, double held, struct truth *t, struct fb_err *e)
{
	struct inject_job *run[2] = {calloc(1, sizeof(**run)), calloc(1, sizeof(**run))};
	struct real_rank ranks[RANKS] = {0};
	assert_true(run[0] && run[1]);
	int rc = inject_settle(run[0], size, k->strategy, NULL, e);
	if (rc == 0)
		rc = inject_settle(run[1], size, k->strategy, k->inject, e);
	if (rc != 0)
		goto close_runs;
	run[0]->j.gemm = run[1]->j.gemm = gemm;
	for (int r = 0; r < RANKS; r++)
		real_rank_open(&ranks[r], run, r, turns);
	for (int i = 0; i < REAL_ROUNDS && rc == 0; i++)
		rc = real_round(ranks, i, e);
	t->turns = rc == 0 ? undisturbed(ranks, held) : 0;
	if (t->turns > 0) {
		real_compare(k, ranks, t);
		rc = real_judge(ranks, t, e);
	}
	for (int r = 0; r < RANKS; r++)
		real_rank_close(&ranks[r]);
close_runs:
	for (int side = 1; side >= 0; side--) {
		inject_free(run[side]);
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
		if (real_kind(&real_kinds[i], &size, plugin->gemm, turns, REAL_HELD, &t, &e) != 0) {
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

/* ---- whatever else the machine does ---------------------------------------------------------- */

static void taken_in_turn(void **state)
{
	const struct kind k = {"fsdp", "all_gather:+10ms", "all_gather", MEASURE_ALL_GATHER, false};
	const struct size size = {"tiny", "1ms,100MB/s", "1", "8"};
	struct gemm_ops const *gemm = NULL;
	struct fb_err e = {0};
	struct truth t = {0};

	if (real_kind(&k, &size, gemm, REAL_LEAST, INFINITY, &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t.turns, REAL_LEAST);
	/* The first gather of a step has nothing to hide behind. */
	assert_true(t.computed_item.est > 9.9e6 && t.computed.est > 9.9e6);
	assert_true(t.base_ns > 0 && t.compute.est > 0);
	assert_true(t.step.lo <= t.step.est && t.step.est <= t.step.hi);
	assert_true(t.verdict.bound_by[0] != '\0');
}

static void leaves_out_the_disturbed(void **state)
{
	struct inject_job side = {.sched = {.n = 1}};
	struct inject_job *const run[2] = {&side, &side};
	struct real_rank ranks[RANKS];
	const double held[] = {0, 30, 1, 0}; /* of steps of 1000 ns, a turn of 2000 */

	for (int r = 0; r < RANKS; r++) {
		real_rank_open(&ranks[r], run, r, 4);
		for (int t = 0; t < 4; t++)
			for (int k = 0; k < 2; k++) {
				ranks[r].step[k][t].s.step_ns = 1000;
				ranks[r].task_ns[k][t] = 10 * t + k;
			}
		memcpy(ranks[r].held, held, sizeof(held));
	}
	ranks[1].held[3] = 21; /* one rank's is enough */
	assert_int_equal(undisturbed(ranks, 0.01), 2);
	for (int r = 0; r < RANKS; r++) {
		for (int k = 0; k < 2; k++) {
			assert_true(ranks[r].task_ns[k][0] == k);
			assert_true(ranks[r].task_ns[k][1] == 20 + k);
		}
		real_rank_close(&ranks[r]);
	}
}

int main(int argc, char **argv)
{
	fb_clock_init();
	if (argc > 2 && strcmp(argv[1], "--real") == 0)
		return real_table(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_in_turn), cmocka_unit_test(leaves_out_the_disturbed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
