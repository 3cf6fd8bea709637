// SPDX-License-Identifier: Apache-2.0
/*
 * Matrix products in plain loops: see gemm_plain.h. A block of ROWS x COLS sums stays in registers
 * while k runs; both operands are first laid out in that order, in the type of the sums.
 */
#include "bench/train/gemm_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/train/elem.h"

enum { ROWS = 4, COLS = 16 };

struct gemm_plan {
	struct gemm_shape s;
	size_t real;  /* bytes of a sum */
	void *rows;   /* [k][ROWS] */
	void *panel;  /* [k][COLS] */
	void *result; /* [ROWS][COLS] */
};

static int probe(char *found, size_t len, struct fb_err *why)
{
	snprintf(found, len, "plain C loops");
	return 0;
}

static void destroy(struct gemm_plan *p)
{
	if (!p)
		return;
	free(p->rows);
	free(p->panel);
	free(p->result);
	free(p);
}

static int create(int device, const struct gemm_shape *s, struct gemm_plan **out, struct fb_err *e)
{
	if (s->m <= 0 || s->n <= 0 || s->k <= 0)
		return fb_fail(e, FB_EXIT_USAGE, EINVAL, "a product of %lld x %lld x %lld is empty",
			(long long)s->m, (long long)s->n, (long long)s->k);
	if ((s->in == GEMM_F64) != (s->out == GEMM_F64))
		return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"the plain product of f64 operands has an f64 result, and no other");
	struct gemm_plan *p = calloc(1, sizeof(*p));
	if (p) {
		p->s = *s;
		p->real = s->in == GEMM_F64 ? sizeof(double) : sizeof(float);
		p->rows = calloc((size_t)s->k * ROWS, p->real);
		p->panel = calloc((size_t)s->k * COLS, p->real);
		p->result = calloc((size_t)ROWS * COLS, p->real);
	}
	if (!p || !p->rows || !p->panel || !p->result) {
		destroy(p);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a matrix product's plan");
	}
	*out = p;
	return 0;
}

static float load(const void *in, enum gemm_dtype t, int64_t i)
{
	return t == GEMM_BF16 ? elem_from_bf16(((const uint16_t *)in)[i]) : ((const float *)in)[i];
}

/* `count` columns of a matrix [k][ld] from `first` on, or rows of [.][ld] when `trans`, as
 * [k][wide] with zeros for what is missing. */
static void pack(const struct gemm_plan *p, const void *in, int64_t ld, bool trans, int64_t first,
	int64_t count, int64_t wide, void *out)
{
	for (int64_t j = 0; j < wide; j++) {
		int64_t start = trans ? (first + j) * ld : first + j, step = trans ? 1 : ld;
		for (int64_t k = 0; k < p->s.k; k++) {
			int64_t at = start + k * step;
			if (p->s.in == GEMM_F64)
				((double *)out)[k * wide + j] =
					j < count ? ((const double *)in)[at] : 0;
			else
				((float *)out)[k * wide + j] =
					j < count ? load(in, p->s.in, at) : 0;
		}
	}
}

#define BLOCK(name, real)                                                               \
	static void name(int64_t k, const real *a, const real *b, real *c)              \
	{                                                                               \
		real sum[ROWS][COLS] = {{0}};                                           \
		for (int64_t i = 0; i < k; i++)                                         \
			for (int r = 0; r < ROWS; r++)                                  \
				for (int j = 0; j < COLS; j++)                          \
					sum[r][j] += a[i * ROWS + r] * b[i * COLS + j]; \
		for (int r = 0; r < ROWS; r++)                                          \
			for (int j = 0; j < COLS; j++)                                  \
				c[r * COLS + j] = sum[r][j];                            \
	}
BLOCK(block_f, float)
BLOCK(block_d, double)

static void store(
	const struct gemm_plan *p, void *c, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
	const struct gemm_shape *s = &p->s;
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t j = 0; j < cols; j++) {
			int64_t at = (row + r) * s->ldc + col + j;
			if (s->out == GEMM_F64) {
				double v = ((double *)p->result)[r * COLS + j] * (double)s->alpha;
				double *d = (double *)c + at;
				*d = s->beta != 0 ? v + (double)s->beta * *d : v;
				continue;
			}
			float v = ((float *)p->result)[r * COLS + j] * s->alpha;
			if (s->beta != 0)
				v += s->beta * load(c, s->out, at);
			if (s->out == GEMM_BF16)
				((uint16_t *)c)[at] = elem_to_bf16(v);
			else
				((float *)c)[at] = v;
		}
	}
}

static int run(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e)
{
	const struct gemm_shape *s = &p->s;
	for (int64_t col = 0; col < s->n; col += COLS) {
		int64_t cols = s->n - col < COLS ? s->n - col : COLS;
		pack(p, b, s->ldb, s->trans_b, col, cols, COLS, p->panel);
		for (int64_t row = 0; row < s->m; row += ROWS) {
			int64_t rows = s->m - row < ROWS ? s->m - row : ROWS;
			pack(p, a, s->lda, !s->trans_a, row, rows, ROWS, p->rows);
			if (s->in == GEMM_F64)
				block_d(s->k, p->rows, p->panel, p->result);
			else
				block_f(s->k, p->rows, p->panel, p->result);
			store(p, c, row, rows, col, cols);
		}
	}
	return 0;
}

static int sync_plan(struct gemm_plan *p, struct fb_err *e)
{
	return 0;
}

static const char *impl_name(const struct gemm_plan *p)
{
	return "plain";
}

const struct gemm_ops gemm_plain = {
	.name = "plain",
	.memory = "host",
	.probe = probe,
	.create = create,
	.run = run,
	.sync = sync_plan,
	.impl = impl_name,
	.destroy = destroy,
};
