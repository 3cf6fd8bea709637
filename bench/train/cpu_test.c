// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU's kernels against naive loops in double: each one, in f32, bf16 and f64, with every
 * instruction set here, at sizes that leave tails.
 */
#include "bench/train/cpu_test.h"

/* ---- elements -------------------------------------------------------------------------------- */

static void exp_is_right(void **state)
{
	double worst = 0;
	for (float x = -86.9f; x < 88.7f; x += 0.00037f) {
		double want = exp((double)x);
		worst = fmax(worst, fabs((double)elem_exp_f(x) - want) / want);
	}
	assert_true(worst < 2 * 0x1p-24 * 2);
	worst = 0;
	for (double x = -708; x < 709.7; x += 0.00173)
		worst = fmax(worst, fabs(elem_exp_d(x) - exp(x)) / exp(x));
	assert_true(worst < 2 * 0x1p-53 * 2);
	assert_true(elem_exp_f(0) == 1 && elem_exp_d(0) == 1);
	assert_true(elem_exp_f(-100) == 0 && elem_exp_f(-INFINITY) == 0);
	assert_true(isinf(elem_exp_f(89)) && isinf(elem_exp_f(INFINITY)) && isnan(elem_exp_f(NAN)));
	assert_true(elem_exp_d(-750) == 0 && elem_exp_d(-INFINITY) == 0);
	assert_true(
		isinf(elem_exp_d(710)) && isinf(elem_exp_d(INFINITY)) && isnan(elem_exp_d(NAN)));
	for (double x = -20; x < 20; x += 0.0001) {
		assert_true(
			fabs((double)elem_tanh_f((float)x) - tanh((double)(float)x)) < 3 * 0x1p-23);
		assert_true(fabs(elem_tanh_d(x) - tanh(x)) < 3 * 0x1p-52);
	}
}

/* Every float's upper half, with the lower halves at which rounding turns. */
static void bf16_rounds_to_even(void **state)
{
	static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
	for (uint32_t h = 0; h < 0x10000; h++) {
		for (size_t i = 0; i < sizeof(low) / sizeof(low[0]); i++) {
			float f = elem_bits_f(h << 16 | low[i]);
			uint32_t got = elem_to_bf16(f);
			if (isnan(f)) {
				assert_true(isnan(elem_from_bf16((uint16_t)got)));
				continue;
			}
			uint32_t want = h;
			if (low[i] > 0x8000 || (low[i] == 0x8000 && (h & 1)))
				want = h + 1;
			assert_int_equal(got, want);
		}
		if (!isnan(elem_from_bf16((uint16_t)h)))
			assert_int_equal(elem_to_bf16(elem_from_bf16((uint16_t)h)), h);
	}
}

/* ---- maps ------------------------------------------------------------------------------------ */

static double silu(double x)
{
	return x / (1 + exp(-x));
}
static double gelu(double x)
{
	long double z = sqrtl(2 / (long double)M_PI) * (x + 0.044715L * x * x * x);
	return (double)(0.5L * x * (1 + tanhl(z)));
}
static double slope(double (*f)(double), double x)
{
	return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

static const int64_t lengths[] = {1, 3, 31, 32, 33, 100, 16384 + 37};

static void activations_of(struct box *b)
{
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		int64_t n = lengths[k];
		void *g = made(b->w, n, 1, 8, 0), *u = made(b->w, n, 2, 2, 0);
		void *dh = made(b->w, n, 3, 1, 0), *y = made(b->w, n, 4, 1, 0);
		void *dg = made(b->w, n, 5, 1, 0);
		double *want = calloc((size_t)n, sizeof(*want)), tol = 8 * b->eps;
		double soft = tol < 1e-8 ? 1e-8 : tol; /* the slope's own error */
		tr_cpu.swiglu_fwd(&b->q, y, g, u, n);
		for (int64_t i = 0; i < n; i++)
			want[i] = silu(get(g, b->w, i)) * get(u, b->w, i);
		near("swiglu", y, b->w, want, n, tol, 1e-3);
		tr_cpu.swiglu_bwd(&b->q, dg, y, dh, g, u, n);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(dh, b->w, i) * silu(get(g, b->w, i));
		near("swiglu du", y, b->w, want, n, tol, 1e-3);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(dh, b->w, i) * get(u, b->w, i) * slope(silu, get(g, b->w, i));
		near("swiglu dg", dg, b->w, want, n, 4 * soft, 0.05);
		tr_cpu.gelu_fwd(&b->q, y, g, n);
		for (int64_t i = 0; i < n; i++)
			want[i] = gelu(get(g, b->w, i));
		near("gelu", y, b->w, want, n, 4 * tol, 1e-2);
		tr_cpu.gelu_bwd(&b->q, dg, dh, g, n);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(dh, b->w, i) * slope(gelu, get(g, b->w, i));
		near("gelu dx", dg, b->w, want, n, 4 * soft, 0.05);
		tr_cpu.add(&b->q, y, g, u, n);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(g, b->w, i) + get(u, b->w, i);
		near("add", y, b->w, want, n, tol, 1e-3);
		tr_cpu.add(&b->q, g, g, u, n); /* in place */
		assert_memory_equal(g, y, (size_t)n * tr_dtype_size(b->w));
		free(g), free(u), free(dh), free(y), free(dg), free(want);
	}
}
static void activations(void **state)
{
	everywhere(activations_of);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const int64_t widths[][2] = {{1, 1}, {3, 5}, {2, 32}, {5, 67}, {7, 300}, {9, 4100}};

struct norm_case {
	int64_t rows, cols;
	double *x, *w, *b, *dy, *dx;                 /* as the type keeps them */
	double *y, *mean, *rstd, *want_dx, *dw, *db; /* expected */
};

static void expect_norm(struct norm_case *c, bool layer, double eps)
{
	for (int64_t r = 0; r < c->rows; r++) {
		const double *x = c->x + r * c->cols, *dy = c->dy + r * c->cols;
		double mean = 0, var = 0, s0 = 0, s1 = 0;
		for (int64_t i = 0; i < c->cols && layer; i++)
			mean += x[i] / (double)c->cols;
		for (int64_t i = 0; i < c->cols; i++)
			var += (x[i] - mean) * (x[i] - mean) / (double)c->cols;
		double rstd = 1 / sqrt(var + eps);
		for (int64_t i = 0; i < c->cols; i++) {
			double xhat = (x[i] - mean) * rstd;
			c->y[r * c->cols + i] = xhat * c->w[i] + (layer ? c->b[i] : 0);
			s0 += layer ? c->w[i] * dy[i] / (double)c->cols : 0;
			s1 += c->w[i] * dy[i] * xhat / (double)c->cols;
			c->dw[i] += dy[i] * xhat;
			c->db[i] += dy[i];
		}
		for (int64_t i = 0; i < c->cols; i++)
			c->want_dx[r * c->cols + i] =
				c->dx[r * c->cols + i] +
				(c->w[i] * dy[i] - s0 - (x[i] - mean) * rstd * s1) * rstd;
		c->mean[r] = mean;
		c->rstd[r] = rstd;
	}
}

static void norm_case(struct box *b, int64_t rows, int64_t cols, bool layer)
{
	int64_t n = rows * cols;
	double tol = 32 * b->eps;
	void *x = made(b->w, n, 1, 1, 0.3), *w = made(b->w, cols, 2, 0.5, 1);
	void *bias = made(b->w, cols, 3, 1, 0), *dy = made(b->w, n, 4, 1, 0);
	void *dx = made(b->w, n, 5, 1, 0), *y = made(b->w, n, 6, 1, 0);
	void *mean = made(b->g, rows, 7, 1, 0), *rstd = made(b->g, rows, 8, 1, 0);
	void *dw = made(b->g, cols, 9, 1, 0), *db = made(b->g, cols, 10, 1, 0);
	struct norm_case c = {rows, cols, wide(x, b->w, n), wide(w, b->w, cols),
		wide(bias, b->w, cols), wide(dy, b->w, n), wide(dx, b->w, n), wide(y, b->w, n),
		wide(mean, b->g, rows), wide(rstd, b->g, rows), wide(dx, b->w, n),
		wide(dw, b->g, cols), wide(db, b->g, cols)};
	expect_norm(&c, layer, 1e-5);
	tr_cpu.norm_fwd(
		&b->q, y, layer ? mean : NULL, rstd, x, w, layer ? bias : NULL, rows, cols, 1e-5);
	near("norm y", y, b->w, c.y, n, tol, 1);
	near("norm rstd", rstd, b->g, c.rstd, rows, tol, 0);
	if (layer)
		near("norm mean", mean, b->g, c.mean, rows, tol, 1);
	tr_cpu.norm_bwd(
		&b->q, dx, dw, layer ? db : NULL, dy, x, w, layer ? mean : NULL, rstd, rows, cols);
	if (cols > 1 || !layer) /* one column: rstd is 1/sqrt(eps) and magnifies any rounding */
		near("norm dx", dx, b->w, c.want_dx, n, 2 * tol, 4);
	near("norm dw", dw, b->g, c.dw, cols, tol, 4);
	if (layer)
		near("norm db", db, b->g, c.db, cols, tol, 4);
	void *all[] = {x, w, bias, dy, dx, y, mean, rstd, dw, db, c.x, c.w, c.b, c.dy, c.dx, c.y,
		c.mean, c.rstd, c.want_dx, c.dw, c.db};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static void norms_of(struct box *b)
{
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		norm_case(b, widths[i][0], widths[i][1], false);
		norm_case(b, widths[i][0], widths[i][1], true);
	}
}
static void norms(void **state)
{
	everywhere(norms_of);
}

static void embedding_and_bias_of(struct box *b)
{
	enum { TOKENS = 10, SEQ = 5, VOCAB = 4 };
	static const int32_t token[TOKENS] = {0, 3, 3, 1, 0, 3, 3, 3, 1, 0}; /* 2 never comes */
	for (int64_t cols = 1; cols < 80; cols += 33) {
		int64_t n = TOKENS * cols;
		void *table = made(b->w, VOCAB * cols, 1, 1, 0),
		     *pos = made(b->w, SEQ * cols, 2, 1, 0);
		void *x = made(b->w, n, 3, 1, 0), *bias = made(b->w, cols, 4, 1, 0);
		void *dt = made(b->g, VOCAB * cols, 5, 1, 0), *dp = made(b->g, SEQ * cols, 6, 1, 0);
		double *want = wide(x, b->w, n), *wt = wide(dt, b->g, VOCAB * cols);
		double *wp = wide(dp, b->g, SEQ * cols);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(table, b->w, token[i / cols] * cols + i % cols);
		tr_cpu.embed_fwd(&b->q, x, token, table, NULL, TOKENS, SEQ, cols);
		near("embedding", x, b->w, want, n, 0, 0);
		tr_cpu.embed_fwd(&b->q, x, token, table, pos, TOKENS, SEQ, cols);
		for (int64_t i = 0; i < n; i++)
			want[i] += get(pos, b->w, i / cols % SEQ * cols + i % cols);
		near("embedding with positions", x, b->w, want, n, b->eps, 1e-3);
		tr_cpu.embed_bwd(&b->q, dt, dp, token, x, TOKENS, SEQ, cols);
		for (int64_t i = 0; i < n; i++) {
			wt[token[i / cols] * cols + i % cols] += get(x, b->w, i);
			wp[i / cols % SEQ * cols + i % cols] += get(x, b->w, i);
		}
		near("dtable", dt, b->g, wt, VOCAB * cols, 8 * b->eps, 1);
		near("dpos", dp, b->g, wp, SEQ * cols, 8 * b->eps, 1);
		for (int64_t i = 0; i < n; i++)
			want[i] = get(x, b->w, i) + get(bias, b->w, i % cols);
		tr_cpu.bias_fwd(&b->q, x, bias, TOKENS, cols);
		near("bias", x, b->w, want, n, b->eps, 1e-3);
		double *sum = wide(dp, b->g, cols);
		for (int64_t i = 0; i < n; i++)
			sum[i % cols] += get(x, b->w, i);
		tr_cpu.bias_bwd(&b->q, dp, x, TOKENS, cols);
		near("dbias", dp, b->g, sum, cols, 8 * b->eps, 4);
		void *all[] = {table, pos, x, bias, dt, dp, want, wt, wp, sum};
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			free(all[i]);
	}
}
static void embedding_and_bias(void **state)
{
	everywhere(embedding_and_bias_of);
}

static void rope_of(struct box *b)
{
	static const int64_t dims[] = {2, 6, 64, 70};
	enum { SEQS = 2, SEQ = 37, HEADS = 3 };
	for (size_t k = 0; k < 4; k++) {
		int64_t d = dims[k], n = SEQS * SEQ * HEADS * d;
		void *x = made(b->w, n, 1, 1, 0);
		double *from = wide(x, b->w, n), *want = wide(x, b->w, n);
		for (int64_t t = 0; t < SEQS * SEQ * HEADS; t++)
			for (int64_t i = 0; i < d / 2; i++) {
				double angle = (double)(t / HEADS % SEQ) *
					       pow(500000, -2 * (double)i / (double)d);
				double u = from[t * d + i], v = from[t * d + i + d / 2];
				want[t * d + i] = u * cos(angle) - v * sin(angle);
				want[t * d + i + d / 2] = v * cos(angle) + u * sin(angle);
			}
		tr_cpu.rope(&b->q, x, SEQS * SEQ, SEQ, HEADS, d, 500000, 1);
		near("rope", x, b->w, want, n, (b->w == TR_F32 ? 64 : 4) * b->eps, 1);
		tr_cpu.rope(&b->q, x, SEQS * SEQ, SEQ, HEADS, d, 500000, -1);
		near("rope and back", x, b->w, from, n, 8 * b->eps, 1);
		free(x), free(from), free(want);
	}
}
static void rope(void **state)
{
	everywhere(rope_of);
}

static void xent_of(struct box *b)
{
	static const int64_t cols_of[] = {1, 2, 33, 512, 9001};
	enum { ROWS = 4 };
	const double scale = 0.125;
	for (size_t k = 0; k < 5; k++) {
		int64_t cols = cols_of[k], n = ROWS * cols;
		const int32_t target[ROWS] = {0, (int32_t)(cols - 1), -1, (int32_t)(cols / 2)};
		void *x = made(b->w, n, 1, 12, 3);
		double *v = wide(x, b->w, n), *want = wide(x, b->w, n), loss = 0.5, expect = 0.5;
		for (int64_t r = 0; r < ROWS; r++) {
			double most = -INFINITY, sum = 0;
			for (int64_t i = 0; i < cols; i++)
				most = fmax(most, v[r * cols + i]);
			for (int64_t i = 0; i < cols; i++)
				sum += exp(v[r * cols + i] - most);
			for (int64_t i = 0; i < cols; i++)
				want[r * cols + i] = target[r] < 0
							     ? 0
							     : (exp(v[r * cols + i] - most) / sum -
								       (i == target[r] ? 1 : 0)) *
								       scale;
			if (target[r] >= 0)
				expect += log(sum) + most - v[r * cols + target[r]];
		}
		tr_cpu.xent(&b->q, x, &loss, target, ROWS, cols, scale);
		double tol = (b->g == TR_F64 ? 0x1p-53 : 0x1p-24) * 32;
		assert_true(fabs(loss - expect) <= tol * fabs(expect));
		near("dlogits", x, b->w, want, n, b->eps * 16, 1e-2);
		put(x, b->w, 0, NAN);
		tr_cpu.xent(&b->q, x, &loss, target, 1, cols, scale);
		assert_true(isnan(loss));
		loss = 0;
		for (int64_t i = 0; i < n; i++)
			put(x, b->w, i, i == cols - 1 ? INFINITY : 0);
		tr_cpu.xent(&b->q, x, &loss, target, 1, cols, scale);
		assert_false(isfinite(loss));
		free(x), free(v), free(want);
	}
}
static void xent(void **state)
{
	everywhere(xent_of);
}

/* ---- flat arrays ----------------------------------------------------------------------------- */

static void casts_of(struct box *b)
{
	static const enum tr_dtype types[] = {TR_F32, TR_BF16, TR_F64};
	for (int pair = 0; pair < 9; pair++) {
		enum tr_dtype to = types[pair / 3], from = types[pair % 3];
		double eps = to == TR_F64 ? 0 : to == TR_F32 ? 0x1p-24 : 0x1.01p-8;
		for (size_t k = 0; k < 7; k++) {
			int64_t n = lengths[k];
			void *src = made(from, n, 1, 100, 0), *dst = made(to, n, 2, 1, 0);
			double *want = wide(dst, to, n);
			for (int64_t i = 0; i < n; i++)
				want[i] += get(src, from, i);
			tr_cpu.accumulate(&b->q, dst, to, src, from, n);
			near("accumulate", dst, to, want, n, eps ? eps : 0x1p-53, 0);
			for (int64_t i = 0; i < n; i++)
				want[i] = get(src, from, i);
			tr_cpu.cast(&b->q, dst, to, src, from, n);
			near("cast", dst, to, want, n, eps, 0);
			free(src), free(dst), free(want);
		}
	}
}
static void casts(void **state)
{
	everywhere(casts_of);
}

static void adamw_of(struct box *b)
{
	const struct tr_adamw a = {
		.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1, .t = 3};
	double eps = b->g == TR_F64 ? 0x1p-53 : 0x1p-24;
	for (size_t k = 0; k < 7; k++) {
		int64_t n = lengths[k];
		void *p = made(b->g, n, 1, 1, 0), *m = made(b->g, n, 2, 0.1, 0);
		void *v = made(b->g, n, 3, 0.01, 0.011), *g = made(b->g, n, 4, 1, 0);
		void *work = made(b->w, n, 5, 1, 0), *cast = made(b->w, n, 6, 1, 0);
		double *wp = wide(p, b->g, n), *wm = wide(m, b->g, n), *wv = wide(v, b->g, n);
		for (int64_t i = 0; i < n; i++) {
			double grad = get(g, b->g, i) * 0.5;
			wm[i] = a.beta1 * wm[i] + (1 - a.beta1) * grad;
			wv[i] = a.beta2 * wv[i] + (1 - a.beta2) * grad * grad;
			wp[i] = wp[i] * (1 - a.lr * a.decay) -
				a.lr * wm[i] / (1 - pow(a.beta1, 3)) /
					(sqrt(wv[i] / (1 - pow(a.beta2, 3))) + a.eps);
		}
		tr_cpu.adamw(&b->q, &a, p, m, v, g, 0.5, work, n);
		near("adamw p", p, b->g, wp, n, 8 * eps, 0.1);
		near("adamw m", m, b->g, wm, n, 8 * eps, 0.1);
		near("adamw v", v, b->g, wv, n, 8 * eps, 0.1);
		tr_cpu.cast(&b->q, cast, b->w, p, b->g, n);
		assert_memory_equal(cast, work, (size_t)n * tr_dtype_size(b->w));
		free(p), free(m), free(v), free(g), free(work), free(cast);
		free(wp), free(wm), free(wv);
	}
}
static void adamw(void **state)
{
	everywhere(adamw_of);
}

/* However a shard is cut, each element's update has the same bits: vector and tail agree. */
static void adamw_cut_of(struct box *b)
{
	enum { N = 301 };
	const struct tr_adamw a = {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .t = 1};
	void *p[2], *m[2], *v[2], *g = made(b->g, N, 4, 1, 0);
	size_t size = tr_dtype_size(b->g);
	for (int i = 0; i < 2; i++) {
		p[i] = made(b->g, N, 1, 1, 0);
		m[i] = made(b->g, N, 2, 0.1, 0);
		v[i] = made(b->g, N, 3, 0.01, 0.011);
	}
	tr_cpu.adamw(&b->q, &a, p[0], m[0], v[0], g, 1, NULL, N);
	for (int64_t i = 0, cut = 1; i < N; i += cut, cut = cut % 7 + 1) {
		size_t at = (size_t)i * size;
		tr_cpu.adamw(&b->q, &a, (char *)p[1] + at, (char *)m[1] + at, (char *)v[1] + at,
			(char *)g + at, 1, NULL, i + cut < N ? cut : N - i);
	}
	assert_memory_equal(p[0], p[1], N * size);
	assert_memory_equal(v[0], v[1], N * size);
	for (int i = 0; i < 2; i++)
		free(p[i]), free(m[i]), free(v[i]);
	free(g);
}
static void adamw_has_no_tail(void **state)
{
	everywhere(adamw_cut_of);
}

static void sums_of(struct box *b)
{
	for (size_t k = 0; k < 7; k++) {
		int64_t n = lengths[k];
		void *x = made(b->g, n, 1, 3, 0);
		double want = 1, sum = 1;
		for (int64_t i = 0; i < n; i++)
			want += get(x, b->g, i) * get(x, b->g, i);
		tr_cpu.sumsq(&b->q, &sum, x, n);
		assert_true(fabs(sum - want) <= 1e-13 * want);
		put(x, b->g, n / 2, INFINITY);
		tr_cpu.sumsq(&b->q, &sum, x, n);
		assert_true(isinf(sum));
		put(x, b->g, n - 1, NAN);
		tr_cpu.sumsq(&b->q, &sum, x, n);
		assert_true(isnan(sum));
		free(x);
	}
}
static void sums_of_squares(void **state)
{
	everywhere(sums_of);
}

/* Sums in fixed point do not depend on their order, nor on how elements are cut. */
static void fixed_of(struct box *b)
{
	enum { N = 1000, PARTS = 7 };
	static int64_t sum[2][N];
	void *x[PARTS], *back = made(b->g, N, 1, 1, 0);
	size_t size = tr_dtype_size(b->g);
	memset(sum, 0, sizeof(sum));
	for (int i = 0; i < PARTS; i++)
		x[i] = made(b->g, N, (uint64_t)i + 2, 1 + i * i, 0);
	for (int i = 0; i < PARTS; i++) {
		tr_cpu.fixed_add(&b->q, sum[0], x[i], N);
		tr_cpu.fixed_add(&b->q, sum[1], x[PARTS - 1 - i], N);
	}
	assert_memory_equal(sum[0], sum[1], sizeof(sum[0]));
	tr_cpu.fixed_to(&b->q, back, sum[0], N);
	for (int64_t i = 0; i < N; i++) {
		double want = 0;
		for (int k = 0; k < PARTS; k++)
			want += get(x[k], b->g, i);
		assert_true(fabs(get(back, b->g, i) - want) <= 0x1p-24 * fabs(want) + 0x1p-37);
	}
	int64_t all = 0, cut = 0;
	double want = 0;
	for (int64_t i = 0; i < N; i++)
		want += get(x[1], b->g, i) * get(x[1], b->g, i);
	tr_cpu.sumsq_fixed(&b->q, &all, x[1], N);
	for (int64_t i = N; i > 0; i -= 100)
		tr_cpu.sumsq_fixed(&b->q, &cut, (char *)x[1] + (size_t)(i - 100) * size, 100);
	assert_int_equal(all, cut);
	assert_true(fabs((double)all * 0x1p-40 - want) < N * 0x1p-41);
	tr_cpu.accumulate(&b->q, sum[0], TR_I64, sum[1], TR_I64, N);
	assert_int_equal(sum[0][5], 2 * sum[1][5]);
	for (int i = 0; i < PARTS; i++)
		free(x[i]);
	free(back);
}
static void fixed_point(void **state)
{
	everywhere(fixed_of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exp_is_right),
		cmocka_unit_test(bf16_rounds_to_even),
		cmocka_unit_test(activations),
		cmocka_unit_test(norms),
		cmocka_unit_test(embedding_and_bias),
		cmocka_unit_test(rope),
		cmocka_unit_test(xent),
		cmocka_unit_test(casts),
		cmocka_unit_test(adamw),
		cmocka_unit_test(adamw_has_no_tail),
		cmocka_unit_test(sums_of_squares),
		cmocka_unit_test(fixed_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
