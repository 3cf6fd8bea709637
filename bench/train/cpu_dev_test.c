// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU as a device: attention against the full matrix, the same bits with every instruction set,
 * errors, pinning, products counted and their plans; the plain products; and which implementation
 * the presets' products get.
 */
#include "bench/train/cpu_test.h"

#include <sched.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/mem/mem.h"
#include "bench/train/gemm_check.h"
#include "bench/train/gemm_plain.h"
#include "bench/train/model.h"

/* ---- attention ------------------------------------------------------------------------------- */

/* One query head with the whole matrix; adds to dk, dv. */
static void whole_head(const struct tr_attn *a, const double *q, const double *k, const double *v,
	const double *dO, double *o, double *lse, double *dq, double *dk, double *dv)
{
	int64_t s = a->seq, d = a->head_dim, ql = a->heads * d, kl = a->kv_heads * d;
	double *p = calloc((size_t)s, sizeof(*p)), scale = 1 / sqrt((double)d);
	for (int64_t i = 0; i < s; i++) {
		double most = -INFINITY, sum = 0, dot = 0;
		for (int64_t j = 0; j <= i; j++) {
			p[j] = 0;
			for (int64_t c = 0; c < d; c++)
				p[j] += scale * q[i * ql + c] * k[j * kl + c];
			most = fmax(most, p[j]);
		}
		for (int64_t j = 0; j <= i; j++)
			sum += exp(p[j] - most);
		lse[i] = most + log(sum);
		for (int64_t c = 0; c < d; c++)
			o[i * ql + c] = dq[i * ql + c] = 0;
		for (int64_t j = 0; j <= i; j++) {
			p[j] = exp(p[j] - lse[i]);
			for (int64_t c = 0; c < d; c++)
				o[i * ql + c] += p[j] * v[j * kl + c];
		}
		for (int64_t c = 0; c < d; c++)
			dot += o[i * ql + c] * dO[i * ql + c];
		for (int64_t j = 0; j <= i; j++) {
			double dp = 0;
			for (int64_t c = 0; c < d; c++) {
				dp += dO[i * ql + c] * v[j * kl + c];
				dv[j * kl + c] += p[j] * dO[i * ql + c];
			}
			double ds = p[j] * (dp - dot) * scale;
			for (int64_t c = 0; c < d; c++) {
				dq[i * ql + c] += ds * k[j * kl + c];
				dk[j * kl + c] += ds * q[i * ql + c];
			}
		}
	}
	free(p);
}

static void attn_case(struct box *b, const struct tr_attn *a)
{
	int64_t nq = a->seqs * a->seq * a->heads * a->head_dim;
	int64_t nk = a->seqs * a->seq * a->kv_heads * a->head_dim;
	int64_t rows = a->seqs * a->seq * a->heads;
	void *q = made(b->w, nq, 1, 2, 0), *k = made(b->w, nk, 2, 2, 0),
	     *v = made(b->w, nk, 3, 1, 0);
	void *dO = made(b->w, nq, 4, 1, 0), *o = made(b->w, nq, 5, 1, 0);
	void *dq = made(b->w, nq, 6, 1, 0), *dk = made(b->w, nk, 7, 1, 0);
	void *dv = made(b->w, nk, 8, 1, 0), *lse = made(b->g, rows, 9, 1, 0);
	double *fq = wide(q, b->w, nq), *fk = wide(k, b->w, nk), *fv = wide(v, b->w, nk);
	double *fdO = wide(dO, b->w, nq), *fo = wide(o, b->w, nq), *fl = wide(lse, b->g, rows);
	double *fdq = wide(dq, b->w, nq), *fdk = calloc((size_t)nk, sizeof(double));
	double *fdv = calloc((size_t)nk, sizeof(double));
	for (int64_t s = 0; s < a->seqs; s++)
		for (int64_t h = 0; h < a->heads; h++) {
			int64_t at = (s * a->seq * a->heads + h) * a->head_dim;
			int64_t kt = (s * a->seq * a->kv_heads + h / (a->heads / a->kv_heads)) *
				     a->head_dim;
			whole_head(a, fq + at, fk + kt, fv + kt, fdO + at, fo + at,
				fl + (h * a->seqs + s) * a->seq, fdq + at, fdk + kt, fdv + kt);
		}
	struct tr_count before, after;
	double fwd, bwd, tol = 16 * b->eps;
	tr_cpu.count(b->d, &before);
	tr_cpu.attn_fwd(&b->q, a, o, lse, q, k, v);
	tr_cpu.attn_bwd(&b->q, a, dq, dk, dv, dO, q, k, v, o, lse);
	tr_cpu.count(b->d, &after);
	near("attention o", o, b->w, fo, nq, tol, 0.25);
	near("attention lse", lse, b->g, fl, rows, 4 * tol, 1);
	near("attention dq", dq, b->w, fdq, nq, 2 * tol, 1);
	near("attention dk", dk, b->w, fdk, nk, 2 * tol, 1);
	near("attention dv", dv, b->w, fdv, nk, 2 * tol, 1);
	tr_cpu.attn_flops(a, &fwd, &bwd);
	assert_true(after.attn_flops - before.attn_flops == fwd + bwd);
	void *all[] = {q, k, v, dO, o, dq, dk, dv, lse, fq, fk, fv, fdO, fo, fl, fdq, fdk, fdv};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static void attention_of(struct box *b)
{
	static const struct tr_attn cases[] = {{1, 1, 1, 1, 2}, {2, 5, 2, 1, 4}, {1, 64, 1, 1, 8},
		{2, 65, 4, 2, 6}, {1, 130, 6, 2, 16}, {1, 600, 2, 1, 4}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		attn_case(b, &cases[i]);
}
static void attention(void **state)
{
	everywhere(attention_of);
}

/* A value that is no number reaches every query that sees it, and no query before. */
static void nan_of(struct box *b)
{
	enum { SEQ = 70, AT = 66 };
	const struct tr_attn a = {.seqs = 1, .seq = SEQ, .heads = 1, .kv_heads = 1, .head_dim = 2};
	for (int where = 0; where < 3; where++) {
		void *x[3], *o = made(b->w, 2 * SEQ, 4, 1, 0), *lse = made(b->g, SEQ, 5, 1, 0);
		for (int i = 0; i < 3; i++)
			x[i] = made(b->w, 2 * SEQ, (uint64_t)i + 1, 1, 0);
		put(x[where], b->w, 2 * AT, NAN);
		tr_cpu.attn_fwd(&b->q, &a, o, lse, x[0], x[1], x[2]);
		for (int64_t i = 0; i < SEQ; i++) {
			bool touched = where == 0 ? i == AT : i >= AT;
			/* 0 * NaN: within a tile V's NaN also reaches the masked. */
			if (where == 2 && i / CPU_TILE == AT / CPU_TILE)
				touched = true;
			assert_int_equal(isnan(get(o, b->w, 2 * i)) != 0, touched);
		}
		free(x[0]), free(x[1]), free(x[2]), free(o), free(lse);
	}
}
static void attention_keeps_nan(void **state)
{
	everywhere(nan_of);
}

/* ---- the same bits --------------------------------------------------------------------------- */

/* Everything a small step does, one kernel after the other; a hash of all that came out. */
static uint64_t bits_of(struct box *b)
{
	enum { ROWS = 70, COLS = 2 * 3 * 22, N = ROWS * COLS };
	const struct tr_attn a = {
		.seqs = 1, .seq = ROWS, .heads = 6, .kv_heads = 3, .head_dim = 22};
	const struct tr_adamw opt = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .t = 2};
	void *x[8], *g[6];
	double sum = 0, loss = 0;
	int32_t target[ROWS];
	for (int i = 0; i < 8; i++)
		x[i] = made(b->w, N, (uint64_t)i + 1, 2, 0.1);
	for (int i = 0; i < 6; i++)
		g[i] = made(b->g, N, (uint64_t)i + 20, 1, 1.5);
	for (int i = 0; i < ROWS; i++)
		target[i] = i;
	tr_cpu.norm_fwd(&b->q, x[0], g[0], g[1], x[1], x[2], x[3], ROWS, COLS, 1e-5);
	tr_cpu.rope(&b->q, x[0], ROWS, ROWS, 6, 22, 10000, 1);
	tr_cpu.attn_fwd(&b->q, &a, x[3], g[2], x[0], x[4], x[5]);
	tr_cpu.attn_bwd(&b->q, &a, x[6], x[4], x[5], x[1], x[0], x[4], x[5], x[3], g[2]);
	tr_cpu.swiglu_fwd(&b->q, x[7], x[3], x[6], N);
	tr_cpu.swiglu_bwd(&b->q, x[0], x[3], x[7], x[1], x[6], N);
	tr_cpu.gelu_fwd(&b->q, x[2], x[0], N);
	tr_cpu.gelu_bwd(&b->q, x[3], x[2], x[0], N);
	tr_cpu.norm_bwd(&b->q, x[3], g[3], g[4], x[2], x[1], x[0], g[0], g[1], ROWS, COLS);
	tr_cpu.bias_fwd(&b->q, x[3], x[1], ROWS, COLS);
	tr_cpu.bias_bwd(&b->q, g[3], x[3], ROWS, COLS);
	tr_cpu.xent(&b->q, x[7], &loss, target, ROWS, COLS, 0.1);
	tr_cpu.accumulate(&b->q, g[3], b->g, x[7], b->w, N);
	tr_cpu.sumsq(&b->q, &sum, g[3], N);
	tr_cpu.adamw(&b->q, &opt, g[0], g[2], g[5], g[3], 0.7, x[2], N);
	uint64_t h = elem_of_d(sum) ^ mix(elem_of_d(loss));
	assert_true(isfinite(sum) && isfinite(loss));
	for (int i = 0; i < 8; i++) {
		const unsigned char *p = x[i];
		for (size_t k = 0; k < N * tr_dtype_size(b->w); k++)
			h = mix(h + p[k] + 1);
		free(x[i]);
	}
	for (int i = 0; i < 6; i++) {
		const unsigned char *p = g[i];
		for (size_t k = 0; k < N * tr_dtype_size(b->g); k++)
			h = mix(h + p[k] + 1);
		free(g[i]);
	}
	return h;
}

static void every_isa_gives_the_same_bits(void **state)
{
	for (size_t w = 0; w < 3; w++) {
		uint64_t want = 0;
		for (size_t i = 0; i < 3; i++) {
			struct box b;
			if (!open_box(&b, isa_names[i], works[w])) {
				print_message("not here: %s\n", isa_names[i]);
				continue;
			}
			uint64_t got = bits_of(&b);
			close_box(&b);
			if (i == 0)
				want = got;
			assert_true(got == want);
		}
	}
}

/* ---- errors, and the device itself ----------------------------------------------------------- */

static void open_f32(struct box *b)
{
	assert_true(open_box(b, "base", TR_F32));
}

static void fixed_point_ends(void **state)
{
	static const float bad[] = {9e6f, -9e6f, INFINITY, NAN};
	for (size_t i = 0; i < 4; i++) {
		struct box b;
		struct fb_err e = {0};
		int64_t sum[1] = {0};
		open_f32(&b);
		tr_cpu.fixed_add(&b.q, sum, &bad[i], 1);
		assert_int_equal(tr_cpu.error(b.d, &e), -ERANGE);
		assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
		float y = 1, one = 1;
		tr_cpu.add(&b.q, &y, &one, &one, 1); /* after an error kernels do nothing */
		assert_true(y == 1);
		tr_cpu.close(b.d);
	}
	struct box b;
	int64_t sum[1] = {INT64_MAX - 5}, more[1] = {6};
	const float small = 1;
	open_f32(&b);
	tr_cpu.fixed_add(&b.q, sum, &small, 1); /* fits by itself, not in the sum */
	assert_int_equal(tr_cpu.error(b.d, NULL), -ERANGE);
	tr_cpu.close(b.d);
	open_f32(&b);
	sum[0] = INT64_MAX - 5;
	tr_cpu.accumulate(&b.q, sum, TR_I64, more, TR_I64, 1);
	assert_int_equal(tr_cpu.error(b.d, NULL), -ERANGE);
	tr_cpu.close(b.d);
	open_f32(&b);
	tr_cpu.cast(&b.q, sum, TR_I64, &small, TR_F32, 1);
	assert_int_equal(tr_cpu.error(b.d, NULL), -EINVAL);
	tr_cpu.close(b.d);
}

static void instruction_sets_by_name(void **state)
{
	struct fb_err e = {0};
	struct tr_dev *d = NULL;
	const struct tr_dev_cfg cfg = {.work = TR_F32, .core = -1}, ints = {.work = TR_I64};
	setenv("FABRICBENCH_ISA", "sse9", 1);
	assert_int_equal(tr_cpu.open(&cfg, &d, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_null(d);
	unsetenv("FABRICBENCH_ISA");
	fb_err_clear(&e);
	assert_int_equal(tr_cpu.open(&ints, &d, &e), -EINVAL);
	fb_err_clear(&e);
	assert_non_null(cpu_isa_find(&e));
}

static void pins_and_restores(void **state)
{
	cpu_set_t before, during, after;
	struct fb_err e = {0};
	struct tr_dev *d = NULL;
	int core = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET((size_t)core, &before))
		core++;
	struct tr_dev_cfg cfg = {.work = TR_F32, .core = core};
	assert_int_equal(tr_cpu.open(&cfg, &d, &e), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(during), &during), 0);
	assert_int_equal(CPU_COUNT(&during), 1);
	assert_true(CPU_ISSET((size_t)core, &during));
	tr_cpu.close(d);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	cfg.core = 100000;
	assert_int_equal(tr_cpu.open(&cfg, &d, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "100000"));
}

static void count_poll(void *arg)
{
	++*(int *)arg;
}
static void count_shape(void *arg, const struct gemm_shape *s, const char *impl, uint64_t calls)
{
	uint64_t *seen = arg;
	seen[0]++;
	seen[1] += calls;
	assert_string_equal(impl, "plain");
}

static void products_are_counted(void **state)
{
	struct fb_err e = {0};
	struct box b = {0};
	int polls = 0;
	const struct tr_dev_cfg cfg = {.work = TR_F64,
		.core = -1,
		.poll = count_poll,
		.poll_arg = &polls,
		.gemm_delay_ns = 2000000};
	assert_int_equal(tr_cpu.open(&cfg, &b.d, &e), 0);
	b.q.dev = b.d;
	double x[200], want = 0;
	for (int i = 0; i < 200; i++)
		x[i] = noise(1, i);
	uint64_t start = fb_clock_ns(), seen[2] = {0, 0};
	for (int64_t m = 1; m <= 100; m++) { /* more shapes than the first table has room for */
		const struct gemm_shape s = {.m = m,
			.n = 1,
			.k = 2,
			.lda = 2,
			.ldb = 1,
			.ldc = 1,
			.in = GEMM_F64,
			.out = GEMM_F64,
			.alpha = 1};
		double c[100];
		for (int twice = 0; twice < 2; twice++)
			tr_cpu.gemm(&b.q, &s, x, x, c);
		assert_true(fabs(c[m - 1] - (x[2 * m - 2] * x[0] + x[2 * m - 1] * x[1])) < 1e-15);
		want += 2 * 2.0 * (double)m * 2;
	}
	struct tr_count c;
	tr_cpu.count(b.d, &c);
	assert_true(c.linear_flops == want && c.attn_flops == 0);
	assert_int_equal(c.linear_calls, 200);
	assert_int_equal(polls, 200);
	assert_true(c.linear_ns >= 200 * 2000000u);
	assert_true(fb_clock_ns() - start >= c.linear_ns);
	tr_cpu.shapes(b.d, count_shape, seen);
	assert_int_equal(seen[0], 100);
	assert_int_equal(seen[1], 200);
	/* A kernel that lasts lets messages move as well: 64 MiB take more than 200 us. */
	void *large = NULL;
	polls = 0;
	assert_int_equal(tr_cpu.alloc(b.d, (size_t)64 << 20, &large, &e), 0);
	tr_cpu.zero(&b.q, large, (size_t)64 << 20);
	tr_cpu.free(b.d, large);
	assert_true(polls >= 1);
	struct gemm_shape none = {.in = GEMM_F64, .out = GEMM_F64};
	tr_cpu.gemm(&b.q, &none, x, x, x);
	assert_int_equal(tr_cpu.error(b.d, &e), -EINVAL);
	tr_cpu.close(b.d);
}

/* A library that knows no bf16, refuses a k of 13, and takes a millisecond for a product. */
struct gemm_plan {
	int made;
};
static int odd_create(
	int device, const struct gemm_shape *s, struct gemm_plan **p, struct fb_err *e)
{
	if (s->in == GEMM_BF16)
		return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP, "no bf16 here");
	if (s->k == 13)
		return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "not with 13");
	*p = calloc(1, sizeof(**p));
	assert_non_null(*p);
	return 0;
}
static int odd_run(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e)
{
	uint64_t end = fb_clock_ns() + 1000000;
	while (fb_clock_ns() < end)
		;
	*(float *)c = 77;
	return 0;
}
static const char *odd_impl(const struct gemm_plan *p)
{
	return "odd";
}
static void odd_destroy(struct gemm_plan *p)
{
	free(p);
}
static const struct gemm_ops odd = {.name = "odd",
	.create = odd_create,
	.run = odd_run,
	.impl = odd_impl,
	.destroy = odd_destroy};

static void library_is_asked_first(void **state)
{
	struct gemm_shape s = {.m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1, .alpha = 1};
	for (int w = 0; w < 2; w++) {
		struct fb_err e = {0};
		struct box b = {0};
		const struct tr_dev_cfg cfg = {
			.work = works[w], .core = -1, .gemm = &odd, .gemm_slow = 3};
		float c = 0, one = 1;
		uint16_t half = elem_to_bf16(3);
		assert_int_equal(tr_cpu.open(&cfg, &b.d, &e), 0);
		b.q.dev = b.d;
		s.in = w ? GEMM_BF16 : GEMM_F32;
		s.k = 1;
		tr_cpu.gemm(&b.q, &s, w ? (void *)&half : &one, w ? (void *)&half : &one, &c);
		assert_true(c == (w ? 9.0f : 77.0f)); /* bf16: the plain loops step in */
		struct tr_count n;
		tr_cpu.count(b.d, &n);
		if (!w) /* four times as long as it took */
			assert_true(n.linear_ns >= 4000000);
		s.k = 13;
		s.in = GEMM_F32;
		tr_cpu.gemm(&b.q, &s, &one, &one, &c);
		assert_int_equal(tr_cpu.error(b.d, &e), -EIO);
		assert_string_equal(e.msg, "not with 13");
		tr_cpu.close(b.d);
	}
}

/* ---- the plain products ---------------------------------------------------------------------- */

static void plain_case(const struct gemm_shape *s, enum tr_dtype in, enum tr_dtype out)
{
	struct fb_err e = {0};
	struct gemm_plan *plan = NULL;
	void *a = made(in, (s->trans_a ? s->k : s->m) * s->lda, 1, 1, 0);
	void *b = made(in, (s->trans_b ? s->n : s->k) * s->ldb, 2, 1, 0);
	void *c = made(out, s->m * s->ldc, 3, 1, 0);
	double *want = wide(c, out, s->m * s->ldc), eps = out == TR_F64 ? 0x1p-53 : 0x1p-24;
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < s->n; j++) {
			double sum = 0;
			for (int64_t k = 0; k < s->k; k++)
				sum += get(a, in, s->trans_a ? k * s->lda + i : i * s->lda + k) *
				       get(b, in, s->trans_b ? j * s->ldb + k : k * s->ldb + j);
			double *w = &want[i * s->ldc + j];
			*w = (double)s->alpha * sum + (s->beta != 0 ? *w : 0);
		}
	assert_int_equal(gemm_plain.create(0, s, &plan, &e), 0);
	assert_int_equal(gemm_plain.run(plan, a, b, c, &e), 0);
	near("plain product", c, out, want, s->m * s->ldc, out == TR_BF16 ? 0x1.1p-8 : 32 * eps, 1);
	gemm_plain.destroy(plan);
	free(a), free(b), free(c), free(want);
}

static void plain_products(void **state)
{
	static const int64_t sizes[][3] = {{1, 1, 1}, {4, 16, 8}, {33, 17, 65}, {7, 50, 129}};
	static const enum tr_dtype pairs[][2] = {
		{TR_F64, TR_F64}, {TR_F32, TR_F32}, {TR_BF16, TR_BF16}, {TR_BF16, TR_F32}};
	static const enum gemm_dtype of[] = {
		[TR_F32] = GEMM_F32, [TR_BF16] = GEMM_BF16, [TR_F64] = GEMM_F64};
	for (size_t i = 0; i < 4 * 4 * 8; i++) {
		const int64_t *n = sizes[i / 32];
		const enum tr_dtype *t = pairs[i / 8 % 4];
		const struct gemm_shape s = {.m = n[0],
			.n = n[1],
			.k = n[2],
			.lda = (i & 1 ? n[0] : n[2]) + 3,
			.ldb = (i & 2 ? n[2] : n[1]) + 5,
			.ldc = n[1] + 7,
			.trans_a = i & 1,
			.trans_b = i & 2,
			.in = of[t[0]],
			.out = of[t[1]],
			.alpha = i & 4 ? 0.5f : 1,
			.beta = i & 4 ? 1 : 0};
		plain_case(&s, t[0], t[1]);
	}
	struct fb_err e = {0};
	struct gemm_plan *plan = NULL;
	struct gemm_shape mixed = {.m = 1, .n = 1, .k = 1, .in = GEMM_F64, .out = GEMM_F32};
	assert_int_equal(gemm_plain.create(0, &mixed, &plan, &e), -EOPNOTSUPP);
	assert_null(plan);
}

/* ---- the presets' products ------------------------------------------------------------------- */

struct looked_at { /* what the library chose, over all shapes */
	const struct gemm_ops *gemm;
	int shapes, jit;
};

/* Only made, not run: llama3-8b's head alone is half a gigabyte. */
static void look(struct looked_at *l, const char *model, const struct gemm_shape *s)
{
	struct fb_err e = {0};
	struct gemm_plan *plan = NULL;
	int rc = l->gemm->create(0, s, &plan, &e);
	if (rc == -EOPNOTSUPP && s->in == GEMM_BF16)
		return; /* a processor without bf16: the device takes the plain loops, and says so
			 */
	if (rc != 0)
		fail_msg("%s: %s", model, e.msg);
	const char *impl = l->gemm->impl(plan);
	l->shapes++;
	if (strstr(impl, "ref"))
		fail_msg("%s: %lld x %lld x %lld%s%s %s gets %s", model, (long long)s->m,
			(long long)s->n, (long long)s->k, s->trans_a ? ", A transposed" : "",
			s->trans_b ? ", B transposed" : "", s->in == GEMM_BF16 ? "bf16" : "f32",
			impl);
	if (strstr(impl, "gemm:jit")) {
		l->jit++;
		print_message("gemm:jit: %s: %lld x %lld x %lld%s%s beta %g %s to %s\n", model,
			(long long)s->m, (long long)s->n, (long long)s->k,
			s->trans_a ? ", A transposed" : "", s->trans_b ? ", B transposed" : "",
			(double)s->beta, s->in == GEMM_BF16 ? "bf16" : "f32",
			s->out == GEMM_BF16 ? "bf16" : "f32");
	}
	l->gemm->destroy(plan);
}

/* The three products of a linear layer [out][in] over `rows` tokens, as the net makes them. */
static void look_linear(struct looked_at *l, const char *model, int64_t rows, int64_t out,
	int64_t in, enum gemm_dtype t)
{
	struct gemm_shape y = {.m = rows, .n = out, .k = in, .lda = in, .ldb = in, .ldc = out};
	struct gemm_shape dx = {.m = rows, .n = in, .k = out, .lda = out, .ldb = in, .ldc = in};
	struct gemm_shape dw = {.m = out, .n = in, .k = rows, .lda = out, .ldb = in, .ldc = in};
	y.trans_b = dw.trans_a = true;
	y.in = y.out = dx.in = dx.out = dw.in = t;
	y.alpha = dx.alpha = dw.alpha = 1;
	for (int add = 0; add < 2; add++) {
		y.beta = dx.beta = dw.beta = (float)add;
		look(l, model, &y);
		look(l, model, &dx);
		look(l, model, &dw);
	}
}

static void no_preset_gets_the_reference(void **state)
{
	static const char *const names[] = {"tiny", "gpt2-124m", "llama3-1b", "llama3-8b"};
	struct fb_err e = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &e);
	if (!plugin)
		fb_test_skip("train-gemm-impl", "%s", e.msg);
	struct looked_at l = {.gemm = plugin->gemm};
	for (size_t i = 0; i < 4; i++) {
		struct model m;
		assert_int_equal(model_find(names[i], &m, &e), 0);
		int64_t rows = m.positions < 512 ? m.positions : 512;
		for (int t = 0; t < 2; t++) {
			enum gemm_dtype in = t ? GEMM_BF16 : GEMM_F32;
			look_linear(&l, m.name, rows, m.heads * m.head_dim, m.hidden, in);
			look_linear(&l, m.name, rows, m.kv_heads * m.head_dim, m.hidden, in);
			look_linear(&l, m.name, rows, m.hidden, m.heads * m.head_dim, in);
			look_linear(&l, m.name, rows, m.ffn, m.hidden, in);
			look_linear(&l, m.name, rows, m.hidden, m.ffn, in);
			look_linear(&l, m.name, rows, m.vocab, m.hidden, in);
		}
	}
	print_message("%d products, %d of them gemm:jit\n", l.shapes, l.jit);
	assert_true(l.shapes >= 4 * 6 * 5);
}

/* Large products take another implementation than gemm_test's small ones: as right, bit for bit. */
static void large_products_are_right(void **state)
{
	struct fb_err e = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &e);
	if (!plugin)
		fb_test_skip("train-gemm-large", "%s", e.msg);
	const struct gemm_place p = {plugin->gemm, &fb_mem_host, 0};
	for (int kind = 0; kind < 2; kind++) {
		struct gemm_shape s =
			gemm_dense(256, 257, 260, GEMM_F32, kind == 1, false, (float)kind);
		if (gemm_check(&p, &s, &e) != 0)
			fail_msg("%s", e.msg);
	}
	struct gemm_plan *plan = NULL;
	struct gemm_shape wide = gemm_dense(4, 4, 4, GEMM_F64, false, false, 0);
	assert_int_equal(plugin->gemm->create(0, &wide, &plan, &e), -EOPNOTSUPP);
	assert_null(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention),
		cmocka_unit_test(attention_keeps_nan),
		cmocka_unit_test(every_isa_gives_the_same_bits),
		cmocka_unit_test(fixed_point_ends),
		cmocka_unit_test(instruction_sets_by_name),
		cmocka_unit_test(pins_and_restores),
		cmocka_unit_test(products_are_counted),
		cmocka_unit_test(library_is_asked_first),
		cmocka_unit_test(plain_products),
		cmocka_unit_test(no_preset_gets_the_reference),
		cmocka_unit_test(large_products_are_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
