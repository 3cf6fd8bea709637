// SPDX-License-Identifier: Apache-2.0
/* Verdicts on invented measurements, and the summing up of steps that they stand on. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train/verdict.h"

#define RANKS 4

/* ---- steps, summed up ------------------------------------------------------------------------ */

static void summed(void **state)
{
	struct measure m;
	struct fb_err e = {0};
	struct task_time times[2] = {{.start = 10, .end = 30}, {.start = 30, .end = 35}};
	struct rank_facts f = {0};
	double task[2];
	assert_int_equal(measure_open(&m, 12, 2, 2, &e), 0);
	for (int i = 0; i < 13; i++) { /* one more than there is room for */
		struct step_stats s = {.step_ns = i < 2 ? 1000000 : (uint64_t)(100 + i),
			.compute_ns = 50,
			.tokens = 64};
		s.exposed_ns[SCHED_GATHER] = 3;
		s.exposed_ns[SCHED_PARAM_GATHER] = 4;
		s.bytes[SCHED_GATHER] = 1000;
		s.bytes[SCHED_STATE_IN] = 7;
		s.node_bytes = 900;
		s.far_bytes = 100;
		times[0].end = 30 + (uint64_t)i;
		measure_add(&m, &s, times);
	}
	assert_int_equal(m.n, 12);
	struct fb_ci step = measure_ci(&m, MEASURE_STEP);
	assert_true(step.valid && step.est == 106.5 && step.lo >= 102 && step.hi <= 111);
	measure_facts(&m, &f);
	assert_true(f.item[MEASURE_ALL_GATHER].est == 7);
	assert_true(f.bytes[BYTES_ALL_GATHER] == 1000 && f.bytes[BYTES_OFFLOAD_IN] == 7);
	assert_true(f.node_bytes == 900 && f.far_bytes == 100 && f.tokens == 64 && f.steady);
	measure_tasks(&m, task);
	assert_true(task[0] == 26.5 && task[1] == 5);
	m.v[11].bytes[SCHED_GATHER] = 999;
	measure_facts(&m, &f);
	assert_false(f.steady);
	measure_close(&m);
}

static void over_ranks(void **state)
{
	struct rank_facts f[3];
	memset(f, 0, sizeof(f));
	for (int r = 0; r < 3; r++)
		f[r].item[MEASURE_COMPUTE].est = r == 1 ? 30 : 15;
	struct measure_over o = measure_over(f, 3, MEASURE_COMPUTE);
	assert_true(o.mean == 20 && o.rank == 1 && o.worst.est == 30);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* A step of the tiny model whose tasks take a given time each. */
struct scene {
	struct step_config c;
	struct schedule sched;
	double *task_ns;
	struct rank_facts facts[RANKS];
	struct verdict_input in;
};

static void set_item(struct scene *s, int rank, enum measure_item i, double ns)
{
	s->facts[rank].item[i] = (struct fb_ci){ns, 0.99 * ns, 1.01 * ns, 0.95, true};
}

static void set_all(struct scene *s, enum measure_item i, double ns)
{
	for (int r = 0; r < RANKS; r++)
		set_item(s, r, i, ns);
}

static void scene(struct scene *s, const char *strategy, double compute_ns, double ns_per_byte)
{
	struct fb_err e = {0};
	memset(s, 0, sizeof(*s));
	s->c = (struct step_config){.ranks = RANKS,
		.seq = 32,
		.micro_seqs = 2,
		.micro_batches = 1,
		.work = TR_F32,
		.reduce = TR_F32,
		.overlap = true};
	assert_int_equal(model_find("tiny", &s->c.model, &e), 0);
	assert_int_equal(strategy_parse(strategy, RANKS, &s->c.strategy, &e), 0);
	assert_int_equal(schedule_build(&s->c, &s->sched, &e), 0);
	s->task_ns = calloc((size_t)s->sched.n, sizeof(*s->task_ns));
	assert_non_null(s->task_ns);
	for (int i = 0; i < s->sched.n; i++) {
		const struct sched_task *t = &s->sched.v[i];
		if (t->op == SCHED_FWD)
			s->task_ns[i] = compute_ns;
		if (t->op == SCHED_BWD)
			s->task_ns[i] = 2 * compute_ns;
	}
	s->in = (struct verdict_input){
		.step = &s->c, .facts = s->facts, .sched = &s->sched, .task_ns = s->task_ns};
	s->in.machine = (struct sched_machine){.ns_per_byte = ns_per_byte, .shared_link = true};
	for (int i = 0; i < MEASURE_ITEMS; i++)
		set_all(s, (enum measure_item)i, 0);
	set_all(s, MEASURE_STEP, 100e6);
}

static void done(struct scene *s)
{
	schedule_free(&s->sched);
	free(s->task_ns);
}

static const struct verdict_move *move(const struct verdict *v, const char *text)
{
	for (int i = 0; i < v->moves; i++)
		if (strstr(v->move[i].what, text))
			return &v->move[i];
	return NULL;
}

static void bound_by_parts(void **state)
{
	static const struct {
		enum measure_item item;
		const char *name;
	} cases[] = {{MEASURE_ALL_GATHER, "all_gather"}, {MEASURE_REDUCE_SCATTER, "reduce_scatter"},
		{MEASURE_ALL_REDUCE, "all_reduce"}, {MEASURE_NORM, "norm"},
		{MEASURE_OPTIMIZER, "optimizer"}, {MEASURE_STORAGE, "storage"},
		{MEASURE_IDLE, "idle"}};
	struct scene s;
	struct verdict v;
	struct fb_err e = {0};
	scene(&s, "fsdp", 1e6, 0.01);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_all(&s, MEASURE_COMPUTE, 30e6);
		set_all(&s, cases[i].item, 60e6);
		assert_int_equal(verdict_find(&s.in, &v, &e), 0);
		assert_string_equal(v.bound_by, cases[i].name);
		assert_true(fabs(v.share - 0.6) < 1e-9);
		assert_non_null(strstr(v.why, "60 %"));
		set_all(&s, cases[i].item, 0);
	}
	done(&s);
}

static void bound_by_compute(void **state)
{
	struct scene s;
	struct verdict v;
	struct fb_err e = {0};
	scene(&s, "fsdp", 1e6, 0.01);
	set_all(&s, MEASURE_COMPUTE, 90e6);
	for (int r = 0; r < RANKS; r++) {
		s.facts[r].linear_ns = 60e6;
		s.facts[r].compute_ns = 90e6;
		s.facts[r].linear_flops = 6e9; /* 100 GFLOP/s */
		s.facts[r].gemm_rate = 200e9;
		s.facts[r].attn_ns = 20e6;
	}
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_string_equal(v.bound_by, "gemm");
	/* Half of 60 ms of 100 would be saved. */
	const struct verdict_move *m = move(&v, "products as fast");
	assert_non_null(m);
	assert_true(fabs(m->number - 0.7) < 1e-6);
	for (int r = 0; r < RANKS; r++)
		s.facts[r].attn_ns = 80e6, s.facts[r].linear_ns = 5e6;
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_string_equal(v.bound_by, "attention");
	done(&s);
}

static void slow_ranks(void **state)
{
	struct scene s;
	struct verdict v;
	struct fb_err e = {0};
	scene(&s, "fsdp", 1e6, 0.01);
	set_all(&s, MEASURE_COMPUTE, 50e6);
	set_all(&s, MEASURE_ALL_GATHER, 45e6);
	set_item(&s, 2, MEASURE_COMPUTE, 90e6);
	set_item(&s, 2, MEASURE_ALL_GATHER, 2e6);
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_string_equal(v.bound_by, "rank 2");
	assert_true(fabs(v.share - 0.4) < 1e-9);
	assert_true(fabs(move(&v, "rank 2 as fast")->number - 0.6) < 1e-9);
	/* It waits as long as the others: then the network is slow, and it a little. */
	set_item(&s, 2, MEASURE_ALL_GATHER, 45e6);
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_string_not_equal(v.bound_by, "rank 2");
	/* Within its interval: chance. */
	set_item(&s, 2, MEASURE_ALL_GATHER, 2e6);
	s.facts[2].item[MEASURE_COMPUTE].lo = 40e6;
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_string_not_equal(v.bound_by, "rank 2");
	done(&s);
}

/* At T* communication is hidden, at three quarters of it it is not. */
static void tokens(void **state)
{
	struct scene s;
	struct verdict v;
	struct verdict_model m;
	struct fb_err e = {0};
	double step, exposed, now = 64;
	scene(&s, "fsdp", 1e6, 60);
	verdict_model(&s.in, &m);
	assert_int_equal(verdict_predict(&m, &s.c, 1, 1, &step, &exposed, &e), 0);
	assert_true(exposed > 0.3);
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_true(v.t_star > now);
	assert_true(move(&v, "T*")->number == v.t_star);
	assert_int_equal(verdict_predict(&m, &s.c, v.t_star / now, 1, &step, &exposed, &e), 0);
	assert_true(exposed <= VERDICT_HIDDEN + 1e-6);
	assert_int_equal(
		verdict_predict(&m, &s.c, 0.75 * v.t_star / now, 1, &step, &exposed, &e), 0);
	assert_true(exposed > VERDICT_HIDDEN);
	assert_non_null(move(&v, "a link twice as fast"));
	assert_true(move(&v, "a link twice as fast")->number < 0.97);
	assert_non_null(move(&v, "--strategy"));
	assert_null(move(&v, "--overlap on"));
	s.c.overlap = false;
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_non_null(move(&v, "--overlap on"));
	assert_true(move(&v, "--overlap on")->number < 0.97);
	done(&s);
}

/* Nothing that the link could do where it does nothing. */
static void hidden(void **state)
{
	struct scene s;
	struct verdict v;
	struct fb_err e = {0};
	scene(&s, "ddp", 100e6, 1e-6);
	set_all(&s, MEASURE_COMPUTE, 90e6);
	assert_int_equal(verdict_find(&s.in, &v, &e), 0);
	assert_true(isnan(v.t_star));
	assert_null(move(&v, "T*"));
	assert_null(move(&v, "a link"));
	done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summed),
		cmocka_unit_test(over_ranks),
		cmocka_unit_test(bound_by_parts),
		cmocka_unit_test(bound_by_compute),
		cmocka_unit_test(slow_ranks),
		cmocka_unit_test(tokens),
		cmocka_unit_test(hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
