// SPDX-License-Identifier: Apache-2.0
/*
 * The net against itself: gradients against finite differences of the loss in f64, recomputation
 * against none, chunks of the head against one, products counted against the closed form, and what
 * a step must do to the loss.
 */
#include <errno.h>

#include "bench/train/net_rig.h"

#define SAMPLES 20
#define EPS     1e-5

static const struct model *const families[] = {&rig_llama, &rig_gpt2};
#define FAMILIES 2

/* A GQA group of three, an odd number of heads' groups and sizes that are no powers of two. */
static const struct model odd = {.name = "rig-odd",
	.family = MODEL_LLAMA,
	.layers = RIG_LAYERS,
	.hidden = 18,
	.heads = 9,
	.kv_heads = 3,
	.head_dim = 2,
	.ffn = 11,
	.vocab = 29,
	.positions = 9,
	.rope_base = 500000,
	.eps = 1e-5,
	.tied = true};

static void all_grads(struct rig *r, double *g[RIG_UNITS])
{
	for (int u = 0; u < RIG_UNITS; u++)
		g[u] = rig_grads(r, u);
}
static void free_grads(double *g[RIG_UNITS])
{
	for (int u = 0; u < RIG_UNITS; u++)
		free(g[u]);
}

/* ---- finite differences ---------------------------------------------------------------------- */

static double central(struct rig *r, double *p)
{
	double at = *p;
	*p = at + EPS;
	double up = rig_loss(r);
	*p = at - EPS;
	double down = rig_loss(r);
	*p = at;
	return (up - down) * r->scale / (2 * EPS);
}

static void tensor_differences(
	struct rig *r, int u, const struct model_tensor *t, const double *g, double all)
{
	int64_t n = t->rows * t->cols, count = n < SAMPLES ? n : SAMPLES;
	double ours[SAMPLES], theirs[SAMPLES];

	for (int64_t i = 0; i < count; i++) {
		uint64_t b = rig_mix((uint64_t)(u * 1000 + (int)t->kind) * 64 + (uint64_t)i);
		int64_t at = t->offset + (count == n ? i : (int64_t)(b % (uint64_t)n));
		ours[i] = g[at];
		theirs[i] = central(r, (double *)r->params[u] + at);
	}
	double error = rig_error(ours, theirs, count, all);
	if (t->zero_grad) { /* both are rounding alone */
		assert_true(rig_norm(ours, count) <= 1e-12 * all);
		return;
	}
	if (!(error <= 1e-6))
		fail_msg("%s: unit %d, %s: error %.3g of %.3g, first %.12g against %.12g",
			r->m.name, u, tensor_name(t->kind), error, rig_norm(theirs, count), ours[0],
			theirs[0]);
}

/* The slope along one direction through all parameters, a unit at a time moved. */
static double slope(struct rig *r, double *direction[RIG_UNITS], double by)
{
	for (int u = 0; u < RIG_UNITS; u++)
		for (int64_t i = 0; i < r->unit[u].elements; i++)
			((double *)r->params[u])[i] += by * direction[u][i];
	return rig_loss(r) * r->scale;
}

static void directional(struct rig *r, double *g[RIG_UNITS])
{
	double *d[RIG_UNITS], ours = 0;
	for (int u = 0; u < RIG_UNITS; u++) {
		d[u] = malloc((size_t)r->unit[u].elements * sizeof(double));
		assert_non_null(d[u]);
		for (int64_t i = 0; i < r->unit[u].elements; i++) {
			uint64_t b = rig_mix((uint64_t)u << 32 ^ (uint64_t)i);
			d[u][i] = (double)(b % 2001) / 1000 - 1;
			ours += d[u][i] * g[u][i];
		}
	}
	double up = slope(r, d, EPS), down = slope(r, d, -2 * EPS);
	slope(r, d, EPS);
	free_grads(d);
	double theirs = (up - down) / (2 * EPS);
	if (!(fabs(ours - theirs) <= 1e-6 * fabs(theirs)))
		fail_msg("%s: along a direction %.12g, by differences %.12g", r->m.name, ours,
			theirs);
}

static void check_differences(const struct model *m, int64_t seqs, int64_t seq, bool every)
{
	struct rig r;
	double *g[RIG_UNITS];

	rig_open(&r, m, TR_F64, seqs, seq, TR_RECOMPUTE_NONE, NULL);
	rig_gradients(&r);
	all_grads(&r, g);
	double all = rig_norm_all(g, &r);
	assert_true(all > 0);
	for (int u = 0; every && u < RIG_UNITS; u++)
		for (int i = 0; i < r.unit[u].n; i++)
			tensor_differences(&r, u, &r.unit[u].t[i], g[u], all);
	directional(&r, g);
	free_grads(g);
	rig_close(&r);
}

static void llama_equals_differences(void **state)
{
	check_differences(&rig_llama, 2, 9, true);
}
static void gpt2_equals_differences(void **state)
{
	check_differences(&rig_gpt2, 2, 9, true);
}
static void odd_sizes_equal_differences(void **state)
{
	check_differences(&odd, 3, 9, true);
}
/* Longer than a tile of attention. */
static void long_sequences_equal_differences(void **state)
{
	for (int f = 0; f < FAMILIES; f++)
		check_differences(families[f], 1, 80, false);
}

/* ---- one way against another ----------------------------------------------------------------- */

static void assert_same_grads(struct rig *a, struct rig *b)
{
	for (int u = 0; u < RIG_UNITS; u++)
		assert_memory_equal(a->grads[u], b->grads[u],
			(size_t)a->unit[u].elements * tr_dtype_size(tr_grad_dtype(a->net.work)));
}

static void check_recompute(const struct model *m, enum tr_dtype work)
{
	struct rig none, other;
	rig_open(&none, m, work, 2, 21, TR_RECOMPUTE_NONE, NULL);
	double loss = rig_gradients(&none);
	assert_true(isfinite(loss) && loss > 0);
	for (int r = TR_RECOMPUTE_SELECTIVE; r <= TR_RECOMPUTE_FULL; r++) {
		rig_open(&other, m, work, 2, 21, (enum tr_recompute)r, NULL);
		assert_true(net_saved_bytes(&other.net) < net_saved_bytes(&none.net));
		double again = rig_gradients(&other);
		assert_memory_equal(&again, &loss, sizeof(loss));
		assert_same_grads(&none, &other);
		rig_close(&other);
	}
	rig_close(&none);
}

static void recomputation_changes_no_bit(void **state)
{
	for (int f = 0; f < FAMILIES; f++)
		for (int work = TR_F32; work <= TR_F64; work++)
			check_recompute(families[f], (enum tr_dtype)work);
}

/* 42 tokens: 9, 9, 9, 9, 6 */
static void cut_head(struct rig *r)
{
	struct fb_err e = {0};
	net_close(&r->net);
	r->net.head_rows = 10;
	assert_int_equal(net_open(&r->net, &e), 0);
}

static void chunks_of_the_head_add_up(void **state)
{
	for (int f = 0; f < FAMILIES; f++) {
		struct rig one, many;
		double *a[RIG_UNITS], *b[RIG_UNITS];
		rig_open(&one, families[f], TR_F64, 2, 21, TR_RECOMPUTE_NONE, NULL);
		double loss = rig_gradients(&one);
		rig_open(&many, families[f], TR_F64, 2, 21, TR_RECOMPUTE_NONE, NULL);
		cut_head(&many);
		assert_true(net_scratch_bytes(&many.net) <= net_scratch_bytes(&one.net));
		assert_true(fabs(rig_gradients(&many) - loss) <= 1e-12 * loss);
		all_grads(&one, a);
		all_grads(&many, b);
		for (int u = 0; u < RIG_UNITS; u++)
			assert_true(rig_error(a[u], b[u], one.unit[u].elements,
					    rig_norm_all(a, &one)) <= 1e-12);
		free_grads(a);
		free_grads(b);
		rig_close(&one);
		rig_close(&many);
	}
}

static void gradients_are_added(void **state)
{
	for (int f = 0; f < FAMILIES; f++) {
		struct rig r;
		double *once[RIG_UNITS], *twice[RIG_UNITS];
		rig_open(&r, families[f], TR_F64, 2, 9, TR_RECOMPUTE_NONE, NULL);
		rig_gradients(&r);
		all_grads(&r, once);
		rig_add_gradients(&r);
		all_grads(&r, twice);
		for (int u = 0; u < RIG_UNITS; u++)
			for (int64_t i = 0; i < r.unit[u].elements; i++)
				once[u][i] *= 2;
		for (int u = 0; u < RIG_UNITS; u++)
			assert_true(rig_error(twice[u], once[u], r.unit[u].elements,
					    rig_norm_all(once, &r)) <= 1e-12);
		free_grads(once);
		free_grads(twice);
		rig_close(&r);
	}
}

/* Whatever lay there before, and over several chunks of the head. */
static void fresh_gradients_are_written(void **state)
{
	for (int f = 0; f < FAMILIES; f++) {
		struct rig cleared, fresh;
		rig_open(&cleared, families[f], TR_F32, 2, 21, TR_RECOMPUTE_NONE, NULL);
		rig_open(&fresh, families[f], TR_F32, 2, 21, TR_RECOMPUTE_NONE, NULL);
		cut_head(&cleared);
		cut_head(&fresh);
		rig_gradients(&cleared);
		fresh.net.fresh = true;
		for (int u = 0; u < RIG_UNITS; u++)
			memset(fresh.grads[u], 0xff,
				(size_t)fresh.unit[u].elements * sizeof(float));
		for (int again = 0; again < 2; again++) {
			rig_add_gradients(&fresh);
			assert_same_grads(&cleared, &fresh);
		}
		rig_close(&cleared);
		rig_close(&fresh);
	}
}

/* ---- targets, NaN, counts -------------------------------------------------------------------- */

static void ignored_targets_give_nothing(void **state)
{
	struct rig r;
	rig_open(&r, &rig_llama, TR_F64, 1, 12, TR_RECOMPUTE_NONE, NULL);
	for (int64_t t = 0; t < 12; t++)
		r.target[t] = -1;
	assert_true(rig_gradients(&r) == 0);
	for (int u = 0; u < RIG_UNITS; u++) {
		double *g = rig_grads(&r, u);
		assert_true(rig_norm(g, r.unit[u].elements) == 0);
		free(g);
	}
	/* Losses of single targets add up to that of all: none is weighed by the others' number. */
	double sum = 0;
	for (int64_t t = 0; t < 12; t++) {
		r.target[t] = (int32_t)t;
		sum += rig_loss(&r);
		r.target[t] = -1;
	}
	for (int64_t t = 0; t < 12; t++)
		r.target[t] = (int32_t)t;
	assert_true(fabs(rig_loss(&r) - sum) <= 1e-12 * sum);
	rig_close(&r);
}

static void nan_reaches_the_loss(void **state)
{
	static const enum tensor_kind where[] = {TENSOR_NORM1, TENSOR_K, TENSOR_UP, TENSOR_DOWN};
	for (int f = 0; f < FAMILIES; f++) {
		for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
			struct rig r;
			rig_open(&r, families[f], TR_F32, 1, 8, TR_RECOMPUTE_NONE, NULL);
			assert_true(isfinite(rig_gradients(&r)));
			const struct model_tensor *t = model_unit_tensor(&r.unit[0], where[i]);
			((float *)r.params[0])[t->offset] = NAN;
			assert_true(isnan(rig_gradients(&r)));
			rig_close(&r);
		}
	}
}

static void check_count(const struct model *m, int64_t seqs, int64_t seq, enum tr_recompute rec)
{
	struct rig r;
	struct tr_count before, after;
	double linear, attn;

	rig_open(&r, m, TR_F32, seqs, seq, rec, NULL);
	net_flops(&r.net, &linear, &attn);
	tr_cpu.count(r.q.dev, &before);
	rig_gradients(&r);
	tr_cpu.count(r.q.dev, &after);
	assert_true(after.linear_flops - before.linear_flops == linear);
	assert_true(after.attn_flops - before.attn_flops == attn);
	if (rec == TR_RECOMPUTE_NONE) { /* what every convention counts: training.md's formula */
		struct model_flops f;
		model_flops(m, seq, &f);
		assert_true(linear == 3 * (f.linear + f.head) * (double)(seqs * seq));
	}
	rig_close(&r);
}

static void flops_equal_the_closed_form(void **state)
{
	static const int64_t seqs[] = {1, 7, 32, 65, 80};
	for (int f = 0; f < FAMILIES; f++)
		for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++)
			for (int r = TR_RECOMPUTE_NONE; r <= TR_RECOMPUTE_FULL; r++)
				check_count(families[f], 2, seqs[i], (enum tr_recompute)r);
}

static void impossible_shapes_are_refused(void **state)
{
	struct rig r;
	struct fb_err e = {0};
	rig_open(&r, &odd, TR_F32, 1, 9, TR_RECOMPUTE_NONE, NULL);
	struct net n = r.net;
	n.seq = 10;
	assert_int_equal(net_open(&n, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "9 positions"));
	fb_err_clear(&e);
	n.seq = 9;
	n.seqs = 0;
	assert_int_equal(net_open(&n, &e), -EINVAL);
	rig_close(&r);
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Plain descent on one batch. */
static void check_learning(const struct model *m, enum tr_dtype work, double rate)
{
	struct rig r;
	rig_open(&r, m, work, 2, 16, TR_RECOMPUTE_NONE, NULL);
	double last = INFINITY, first = 0;
	for (int step = 0; step < 10; step++) {
		double loss = rig_gradients(&r);
		if (!(loss < last))
			fail_msg("%s, %s, step %d: %.6g after %.6g", m->name, tr_dtype_names[work],
				step, loss, last);
		first = step == 0 ? loss : first;
		last = loss;
		for (int u = 0; u < RIG_UNITS; u++) {
			int64_t n = r.unit[u].elements;
			double *g = rig_grads(&r, u), *p = malloc((size_t)n * sizeof(*p));
			assert_non_null(p);
			tr_cpu.cast(&r.q, p, TR_F64, r.params[u], work, n);
			for (int64_t i = 0; i < n; i++)
				p[i] -= rate * g[i];
			tr_cpu.cast(&r.q, r.params[u], work, p, TR_F64, n);
			free(p);
			free(g);
		}
	}
	assert_true(last < 0.8 * first);
	rig_close(&r);
}

static void loss_falls_on_one_batch(void **state)
{
	for (int f = 0; f < FAMILIES; f++) {
		check_learning(families[f], TR_F64, 0.1);
		check_learning(families[f], TR_F32, 0.1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(llama_equals_differences),
		cmocka_unit_test(gpt2_equals_differences),
		cmocka_unit_test(odd_sizes_equal_differences),
		cmocka_unit_test(long_sequences_equal_differences),
		cmocka_unit_test(recomputation_changes_no_bit),
		cmocka_unit_test(chunks_of_the_head_add_up),
		cmocka_unit_test(gradients_are_added),
		cmocka_unit_test(fresh_gradients_are_written),
		cmocka_unit_test(ignored_targets_give_nothing),
		cmocka_unit_test(nan_reaches_the_loss),
		cmocka_unit_test(flops_equal_the_closed_form),
		cmocka_unit_test(impossible_shapes_are_refused),
		cmocka_unit_test(loss_falls_on_one_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
