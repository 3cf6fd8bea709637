// SPDX-License-Identifier: Apache-2.0
/*
 * Matrix products in plain loops: see gemm_plain.h. CPU_COLS columns of B are laid out densely, and
 * blocks of CPU_ROWS rows of A meet them; the block's loop is compiled for several instruction sets
 * with the CPU's kernels, and gives the same bits with each.
 */
#include "bench/train/gemm_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/train/cpu_priv.h"
#include "bench/train/elem.h"

enum { ROWS = CPU_ROWS, COLS = CPU_COLS };

struct gemm_plan {
	struct gemm_shape s;
	const struct cpu_isa *isa;
	void *rows;   /* [ROWS][k], of bf16 operands only: the others are read where they lie */
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
	const struct cpu_isa *isa = cpu_isa_find(e);
	if (!isa)
		return e ? e->code : -EINVAL;
	struct gemm_plan *p = calloc(1, sizeof(*p));
	if (p) {
		size_t real = s->in == GEMM_F64 ? sizeof(double) : sizeof(float);
		p->s = *s;
		p->isa = isa;
		p->rows = calloc(s->in == GEMM_BF16 ? (size_t)s->k * ROWS : 1, real);
		p->panel = calloc((size_t)s->k * COLS, real);
		p->result = calloc((size_t)ROWS * COLS, real);
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

/* Columns [first, first + count) of op(B), with zeros for what a panel has more. */
static void pack_panel(const struct gemm_plan *p, const void *b, int64_t first, int64_t count)
{
	int64_t col = p->s.trans_b ? p->s.ldb : 1, step = p->s.trans_b ? 1 : p->s.ldb;
	for (int64_t k = 0; k < p->s.k; k++) {
		for (int64_t j = 0; j < count; j++) {
			int64_t at = (first + j) * col + k * step;
			if (p->s.in == GEMM_F64)
				((double *)p->panel)[k * COLS + j] = ((const double *)b)[at];
			else
				((float *)p->panel)[k * COLS + j] = load(b, p->s.in, at);
		}
		for (int64_t j = count; j < COLS; j++) {
			if (p->s.in == GEMM_F64)
				((double *)p->panel)[k * COLS + j] = 0;
			else
				((float *)p->panel)[k * COLS + j] = 0;
		}
	}
}

/* The sums of one block, into p->result. */
static void block(const struct gemm_plan *p, const void *a, int64_t first, int64_t rows)
{
	const struct gemm_shape *s = &p->s;
	int64_t row = s->trans_a ? 1 : s->lda, step = s->trans_a ? s->lda : 1;
	if (s->in == GEMM_F64) {
		p->isa->block_d(s->k, (const double *)a + first * row, row, step, rows, p->panel,
			p->result);
	} else if (s->in == GEMM_F32) {
		p->isa->block_f(
			s->k, (const float *)a + first * row, row, step, rows, p->panel, p->result);
	} else {
		for (int64_t r = 0; r < rows; r++)
			for (int64_t k = 0; k < s->k; k++)
				((float *)p->rows)[r * s->k + k] =
					load(a, s->in, (first + r) * row + k * step);
		p->isa->block_f(s->k, p->rows, s->k, 1, rows, p->panel, p->result);
	}
}

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
		pack_panel(p, b, col, cols);
		for (int64_t row = 0; row < s->m; row += ROWS) {
			int64_t rows = s->m - row < ROWS ? s->m - row : ROWS;
			block(p, a, row, rows);
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
