// SPDX-License-Identifier: Apache-2.0
/*
 * Whatever the strategy and however many ranks: the same step as one rank makes. Ranks are threads,
 * the global batch is 24 sequences, the model small enough for plain products.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/test.h"
#include "bench/train/engine.h"
#include "collectives/p2p_local.h"

#define BATCH     24
#define SEQ       6
#define MAX_RANKS 8
#define MAX_STEPS 20
#define STEP_NS   60000000000u

/* What a run leaves: rank 0's view, which every rank must share. */
struct run {
	struct engine_config c;
	int steps;
	int dying; /* rank that ends after the first step; 0: none */
	/* out */
	double first_loss, loss[MAX_STEPS];
	double *first, *second, *last; /* whole gradients: at the start, after a step, at the end */
	int64_t elements;
	uint64_t bytes[SCHED_OP_COUNT];
	struct step_memory memory;
	uint64_t flops;
	struct fb_err error;
};
struct rank {
	struct run *run;
	struct p2p_world *world;
	int rank, rc;
	pthread_t thread;
};

static uint64_t soon(void)
{
	return fb_clock_ns() + STEP_NS;
}

static void load(double *out, const void *G, enum tr_dtype t, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		out[i] = t == TR_F64 ? ((const double *)G)[i] : (double)((const float *)G)[i];
}

/* The whole gradient, all units one after another; every rank takes part, rank 0 keeps it. */
static int whole_gradient(
	struct engine *g, struct rank *me, double *loss, double *out, struct fb_err *e)
{
	const struct model *m = &me->run->c.step.model;
	enum tr_dtype G = tr_grad_dtype(me->run->c.step.work);
	int rc = engine_gradients(g, soon(), loss, e);
	for (int64_t u = 0; u <= m->layers && rc == 0; u++) {
		struct model_unit shape;
		model_unit(m, u, &shape);
		void *unit = calloc((size_t)shape.elements, 8);
		rc = engine_gather_grads(g, (int)u, unit, soon(), e);
		if (rc == 0 && me->rank == 0)
			load(out, unit, G, shape.elements);
		out += shape.elements;
		free(unit);
	}
	return rc;
}

static int live(struct engine *g, struct rank *me, struct fb_err *e)
{
	struct run *r = me->run;
	struct step_stats s;
	double loss;
	int rc = whole_gradient(g, me, &loss, r->first, e);
	if (me->rank == 0)
		r->first_loss = loss;
	for (int i = 0; i < r->steps && rc == 0; i++) {
		if (i == 1 && r->dying && r->dying == me->rank)
			return fb_fail(e, FB_EXIT_UNMEASURED, ESRCH, "rank %d goes", me->rank);
		rc = engine_step(g, soon(), &s, e);
		if (rc == 0 && me->rank == 0) {
			r->loss[i] = s.loss;
			memcpy(r->bytes, s.bytes, sizeof(r->bytes));
		}
		if (rc == 0 && i == 0)
			rc = whole_gradient(g, me, &loss, r->second, e);
	}
	if (rc == 0)
		rc = whole_gradient(g, me, &loss, r->last, e);
	return rc;
}

static void *rank_thread(void *arg)
{
	struct rank *me = arg;
	struct fb_err e = {0};
	struct p2p *p = NULL;
	struct engine *g = NULL;
	const struct p2p_env env = {.rank = me->rank,
		.size = me->run->c.step.ranks,
		.now = fb_clock_ns,
		.timeout_ns = STEP_NS,
		.shared = me->world};
	me->rc = p2p_local.open(&env, &p, &e);
	if (me->rc == 0)
		me->rc = engine_open(&me->run->c, &p2p_local, p, me->rank, &g, &e);
	if (me->rc == 0)
		me->rc = live(g, me, &e);
	if (me->rc != 0 && me->rc != -EDOM) /* which every rank finds by itself */
		p2p_local.abort(p, &e);
	if (me->rc != 0 && me->rank == 0)
		me->run->error = e;
	if (g && me->rank == 0)
		engine_memory(g, &me->run->memory);
	engine_close(g);
	if (p)
		p2p_local.close(p);
	return NULL;
}

static int run_all(struct run *r)
{
	struct fb_err e = {0};
	struct rank ranks[MAX_RANKS];
	struct p2p_link link = {0};
	int n = r->c.step.ranks, rc = 0;
	r->elements = model_params(&r->c.step.model);
	r->first = calloc((size_t)r->elements, sizeof(double));
	r->second = calloc((size_t)r->elements, sizeof(double));
	r->last = calloc((size_t)r->elements, sizeof(double));
	struct p2p_world *w = p2p_world_new(n, &link, &e);
	assert_non_null(w);
	for (int i = 0; i < n; i++) {
		ranks[i] = (struct rank){.run = r, .world = w, .rank = i};
		assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_thread, &ranks[i]), 0);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(ranks[i].thread, NULL);
		if (ranks[i].rc != 0)
			rc = ranks[i].rc;
	}
	p2p_world_free(w);
	if (rc != 0)
		print_message("%s\n", r->error.msg);
	return rc;
}

static void run_free(struct run *r)
{
	free(r->first);
	free(r->second);
	free(r->last);
}

static void set(struct run *r, enum model_family family, const char *strategy, int ranks,
	int micro_batches, int steps)
{
	struct fb_err e = {0};
	memset(r, 0, sizeof(*r));
	struct step_config *c = &r->c.step;
	c->model = (struct model){.name = "test",
		.family = family,
		.layers = 3,
		.hidden = 8,
		.heads = 4,
		.kv_heads = family == MODEL_LLAMA ? 2 : 4,
		.head_dim = 2,
		.ffn = 10,
		.vocab = 19,
		.positions = SEQ,
		.rope_base = 10000,
		.eps = 1e-5,
		.tied = family == MODEL_GPT2};
	assert_int_equal(model_check(&c->model, &e), 0);
	assert_int_equal(strategy_parse(strategy, ranks, &c->strategy, &e), 0);
	c->ranks = ranks;
	c->seq = SEQ;
	c->micro_batches = micro_batches;
	c->micro_seqs = BATCH / ranks / micro_batches;
	assert_int_equal(c->micro_seqs * ranks * micro_batches, BATCH);
	c->work = TR_F32;
	c->reduce = TR_F32;
	c->overlap = true;
	r->c.adamw = (struct tr_adamw){
		.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1};
	r->c.seed = 7;
	r->c.batches = 1;
	r->c.dev_ops = &tr_cpu;
	r->c.dev.core = -1;
	r->steps = steps;
}

static double relative(const double *a, const double *b, int64_t n)
{
	double diff = 0, ref = 0;
	for (int64_t i = 0; i < n; i++) {
		diff += (a[i] - b[i]) * (a[i] - b[i]);
		ref += b[i] * b[i];
	}
	return sqrt(diff) / sqrt(ref);
}

static double cosine(const double *a, const double *b, int64_t n)
{
	double ab = 0, aa = 0, bb = 0;
	for (int64_t i = 0; i < n; i++) {
		ab += a[i] * b[i];
		aa += a[i] * a[i];
		bb += b[i] * b[i];
	}
	return ab / sqrt(aa * bb);
}

static const char *const strategies[] = {
	"ddp", "zero1", "zero2", "fsdp", "shard-grad-op", "hybrid", "offload"};
#define STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))
static const int rank_counts[] = {1, 2, 3, 4, 8};

/* hybrid of two groups where ranks can be halved. */
static const char *name_strategy(const char *s, int ranks, char *buf, size_t len)
{
	if (strcmp(s, "hybrid") == 0)
		snprintf(buf, len, "hybrid:%d", ranks % 2 == 0 ? ranks / 2 : ranks);
	else
		snprintf(buf, len, "%s", s);
	return buf;
}

static void like_one_rank(enum model_family family, int micro_batches, bool sync_each, bool overlap,
	double clip, enum tr_recompute recompute, int steps)
{
	struct run one;
	set(&one, family, "ddp", 1, 1, steps);
	one.c.clip_norm = clip;
	one.c.step.clip = clip > 0;
	assert_int_equal(run_all(&one), 0);
	for (size_t s = 0; s < STRATEGIES; s++)
		for (size_t k = 0; k < sizeof(rank_counts) / sizeof(rank_counts[0]); k++) {
			struct run r;
			char name[24];
			int n = rank_counts[k];
			set(&r, family, name_strategy(strategies[s], n, name, sizeof(name)), n,
				BATCH % (n * micro_batches) == 0 ? micro_batches : 1, steps);
			r.c.step.sync_each = sync_each;
			r.c.step.overlap = overlap;
			r.c.step.recompute = recompute;
			r.c.clip_norm = clip;
			r.c.step.clip = clip > 0;
			assert_int_equal(run_all(&r), 0);
			double first = relative(r.first, one.first, one.elements);
			double second = relative(r.second, one.second, one.elements);
			double cos = cosine(r.last, one.last, one.elements);
			double loss = fabs(r.loss[steps - 1] / one.loss[steps - 1] - 1);
			if (!(first < 1e-5 && second < 1e-5 && cos > 0.9999 && loss < 1e-4))
				print_message(
					"%s, %d ranks: first %g second %g cosine %g loss %g\n",
					name, n, first, second, cos, loss);
			assert_true(first < 1e-5);
			assert_true(second < 1e-5);
			assert_true(fabs(r.first_loss / one.first_loss - 1) < 1e-5);
			assert_true(cos > 0.9999);
			assert_true(loss < 1e-4);
			run_free(&r);
		}
	assert_true(one.loss[steps - 1] < one.loss[0]);
	run_free(&one);
}

static void test_llama(void **state)
{
	like_one_rank(MODEL_LLAMA, 1, false, true, 0, TR_RECOMPUTE_NONE, MAX_STEPS);
}

static void test_gpt2(void **state)
{
	like_one_rank(MODEL_GPT2, 1, false, true, 1.0, TR_RECOMPUTE_NONE, 6);
}

static void test_accumulation(void **state)
{
	like_one_rank(MODEL_LLAMA, 2, false, true, 0.5, TR_RECOMPUTE_FULL, 4);
	like_one_rank(MODEL_LLAMA, 3, true, false, 0, TR_RECOMPUTE_SELECTIVE, 4);
}

static void test_deterministic(void **state)
{
	struct run one;
	set(&one, MODEL_LLAMA, "ddp", 1, 1, 4);
	one.c.step.deterministic = one.c.step.clip = true;
	one.c.step.reduce = TR_I64;
	one.c.clip_norm = 0.5;
	assert_int_equal(run_all(&one), 0);
	for (size_t s = 0; s < STRATEGIES; s++)
		for (size_t k = 0; k < sizeof(rank_counts) / sizeof(rank_counts[0]); k++)
			for (int m = 1; m <= 2; m++) {
				struct run r;
				char name[24];
				int n = rank_counts[k];
				if (BATCH % (n * m) != 0)
					continue;
				set(&r, MODEL_LLAMA,
					name_strategy(strategies[s], n, name, sizeof(name)), n, m,
					4);
				r.c.step.deterministic = r.c.step.clip = true;
				r.c.step.reduce = TR_I64;
				r.c.step.sync_each = k & 1;
				r.c.clip_norm = 0.5;
				assert_int_equal(run_all(&r), 0);
				size_t bytes = (size_t)one.elements * sizeof(double);
				if (memcmp(r.last, one.last, bytes) != 0)
					print_message(
						"%s, %d ranks, %d micro-batches\n", name, n, m);
				assert_memory_equal(r.first, one.first, bytes);
				assert_memory_equal(r.last, one.last, bytes);
				assert_memory_equal(r.loss, one.loss, sizeof(one.loss));
				run_free(&r);
			}
	run_free(&one);
}

static void test_bf16(void **state)
{
	struct run one;
	set(&one, MODEL_LLAMA, "ddp", 1, 1, 1);
	assert_int_equal(run_all(&one), 0);
	for (size_t s = 0; s < STRATEGIES; s++)
		for (int wire = 0; wire < 2; wire++) {
			struct run r;
			char name[24];
			set(&r, MODEL_LLAMA, name_strategy(strategies[s], 4, name, sizeof(name)), 4,
				2, 1);
			r.c.step.work = TR_BF16;
			r.c.step.reduce = wire ? TR_BF16 : TR_F32;
			r.c.step.sync_each = s & 1;
			assert_int_equal(run_all(&r), 0);
			double error = relative(r.first, one.first, one.elements);
			double cos = cosine(r.first, one.first, one.elements);
			if (!(error < 2e-2 && cos > 0.999))
				print_message("%s: error %g, cosine %g\n", name, error, cos);
			assert_true(error < 2e-2);
			assert_true(cos > 0.999);
			run_free(&r);
		}
	run_free(&one);
}

/* Bytes and memory as the closed forms have them. */
static void test_accounts(void **state)
{
	for (size_t s = 0; s < STRATEGIES; s++)
		for (size_t k = 0; k < sizeof(rank_counts) / sizeof(rank_counts[0]); k++)
			for (int variant = 0; variant < 6; variant++) {
				struct run r;
				char name[24];
				int n = rank_counts[k], m = variant % 2 + 1;
				if (BATCH % (n * m) != 0)
					continue;
				set(&r, variant % 3 ? MODEL_LLAMA : MODEL_GPT2,
					name_strategy(strategies[s], n, name, sizeof(name)), n, m,
					1);
				struct step_config *c = &r.c.step;
				c->sync_each = variant >= 3;
				c->clip = variant & 1;
				r.c.clip_norm = c->clip;
				c->work = variant >= 2 ? TR_BF16 : TR_F32;
				c->reduce = variant >= 4 ? TR_BF16 : TR_F32;
				assert_int_equal(run_all(&r), 0);
				struct step_bytes b;
				struct step_memory mem;
				step_bytes(c, &b);
				step_memory(c, &mem);
				double gather = (double)(r.bytes[SCHED_GATHER] +
							 r.bytes[SCHED_PARAM_GATHER]);
				assert_true(gather == b.all_gather);
				assert_true(
					(double)r.bytes[SCHED_REDUCE_SCATTER] == b.reduce_scatter);
				assert_true((double)r.bytes[SCHED_ALL_REDUCE] == b.all_reduce);
				assert_true((double)r.bytes[SCHED_NORM_REDUCE] == b.norm);
				const double *got = (const double *)&r.memory;
				const double *want = (const double *)&mem;
				for (size_t i = 0; i < sizeof(mem) / sizeof(double); i++) {
					if (got[i] != want[i])
						print_message(
							"%s, %d ranks, variant %d: memory %zu: %g, formula %g\n",
							name, n, variant, i, got[i], want[i]);
				}
				assert_memory_equal(&r.memory, &mem, sizeof(mem));
				run_free(&r);
			}
}

/* The optimizer in host memory or a file, parameters outside or not: the same bits. */
static void test_offload(void **state)
{
	char dir[] = "/tmp/engine-test-XXXXXX";
	assert_non_null(mkdtemp(dir));
	struct run base;
	set(&base, MODEL_GPT2, "offload", 3, 1, 3);
	assert_int_equal(run_all(&base), 0);
	for (int variant = 1; variant < 4; variant++) {
		struct run r;
		set(&r, MODEL_GPT2, "offload", 3, 1, 3);
		r.c.offload_file = variant & 1 ? dir : NULL;
		r.c.step.offload_file = variant & 1;
		r.c.step.offload_params = variant & 2;
		r.c.step.overlap = variant != 3;
		assert_int_equal(run_all(&r), 0);
		assert_memory_equal(r.last, base.last, (size_t)base.elements * sizeof(double));
		struct step_memory mem;
		struct step_bytes b;
		step_memory(&r.c.step, &mem);
		step_bytes(&r.c.step, &b);
		assert_memory_equal(&r.memory, &mem, sizeof(mem));
		assert_true((double)(r.bytes[SCHED_GRADS_OUT] + r.bytes[SCHED_STATE_OUT]) ==
			    b.offload_out);
		assert_true((double)(r.bytes[SCHED_PARAMS_IN] + r.bytes[SCHED_STATE_IN]) ==
			    b.offload_in);
		run_free(&r);
	}
	run_free(&base);
	assert_int_equal(rmdir(dir), 0); /* nothing is left behind */
}

static void test_no_folder(void **state)
{
	struct run r;
	set(&r, MODEL_LLAMA, "offload", 2, 1, 1);
	r.c.offload_file = "/proc/no/such/folder";
	r.c.step.offload_file = true;
	assert_int_equal(run_all(&r), -ENOENT);
	assert_int_equal(r.error.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(r.error.hint, "--offload-to"));
	run_free(&r);
}

/* A rank that goes away in mid-step ends the others with its cause. */
static void test_rank_ends(void **state)
{
	struct run r;
	set(&r, MODEL_LLAMA, "fsdp", 4, 1, 3);
	r.dying = 2;
	assert_int_equal(run_all(&r), -ECONNRESET); /* what the last rank saw */
	assert_non_null(strstr(r.error.msg, "rank 2 goes"));
	run_free(&r);
}

static void test_nan(void **state)
{
	struct run r;
	set(&r, MODEL_LLAMA, "fsdp", 2, 1, 3);
	r.c.adamw.lr = NAN;
	/* each by itself, or told by the first that saw it */
	int rc = run_all(&r);
	assert_true(rc == -EDOM || rc == -ECONNRESET);
	assert_non_null(strstr(r.error.msg, "the loss is "));
	assert_int_equal(r.error.exit, FB_EXIT_WRONG_DATA);
	run_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_llama),
		cmocka_unit_test(test_gpt2),
		cmocka_unit_test(test_accumulation),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_bf16),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_offload),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_rank_ends),
		cmocka_unit_test(test_nan),
	};
	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
