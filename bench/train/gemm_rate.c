// SPDX-License-Identifier: Apache-2.0
/* The rate of a step's own products: see gemm_rate.h. */
#include "bench/train/gemm_rate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"

#define ROUNDS    11
#define LEAST_NS  300000u /* of one reading: far above the clock's cost */
#define MAX_REPS  10000
#define MAX_SHAPE 256

/* Collects the shapes that the device tells of. */
struct collect {
	struct gemm_rate *r;
	bool no_memory;
};

static void collect_shape(void *arg, const struct gemm_shape *s, const char *impl, uint64_t calls)
{
	struct collect *c = arg;
	struct gemm_rate *r = c->r;
	if (calls == 0 || r->n == MAX_SHAPE)
		return;
	struct gemm_timed *v = realloc(r->v, ((size_t)r->n + 1) * sizeof(*v));
	if (!v) {
		c->no_memory = true;
		return;
	}
	r->v = v;
	struct gemm_timed *t = &v[r->n++];
	*t = (struct gemm_timed){.s = *s, .calls = calls};
	for (size_t i = 0; impl && impl[i] && i + 1 < sizeof(t->impl); i++)
		t->impl[i] = impl[i];
}

static double flops(const struct gemm_shape *s)
{
	return 2.0 * (double)s->m * (double)s->n * (double)s->k;
}

static int by_flops(const void *a, const void *b)
{
	const struct gemm_timed *x = a, *y = b;
	double fx = flops(&x->s) * (double)x->calls, fy = flops(&y->s) * (double)y->calls;
	return (fx < fy) - (fx > fy);
}

static size_t element(enum gemm_dtype t)
{
	return t == GEMM_BF16 ? 2 : t == GEMM_F32 ? 4 : 8;
}

/* Bytes of a matrix of so many rows, or columns when it lies transposed. */
static size_t matrix(bool trans, int64_t rows, int64_t cols, int64_t ld, enum gemm_dtype t)
{
	return (size_t)((trans ? cols : rows) * ld) * element(t);
}

/* One buffer for each operand, large enough for every shape. */
struct operands {
	void *a, *b, *c;
};

static void free_operands(const struct tr_dev_ops *ops, struct tr_dev *d, struct operands *o)
{
	if (o->a)
		ops->free(d, o->a);
	if (o->b)
		ops->free(d, o->b);
	if (o->c)
		ops->free(d, o->c);
}

static int make_operands(const struct tr_dev_ops *ops, struct tr_dev *d, const struct gemm_rate *r,
	struct operands *o, struct fb_err *e)
{
	size_t a = 0, b = 0, c = 0;
	for (int i = 0; i < r->n; i++) {
		const struct gemm_shape *s = &r->v[i].s;
		size_t x = matrix(s->trans_a, s->m, s->k, s->lda, s->in);
		size_t y = matrix(s->trans_b, s->k, s->n, s->ldb, s->in);
		size_t z = matrix(false, s->m, s->n, s->ldc, s->out);
		a = x > a ? x : a;
		b = y > b ? y : b;
		c = z > c ? z : c;
	}
	int rc = ops->alloc(d, a, &o->a, e);
	if (rc == 0)
		rc = ops->alloc(d, b, &o->b, e);
	if (rc == 0)
		rc = ops->alloc(d, c, &o->c, e);
	return rc;
}

/* Time `reps` products of a shape, ns. */
static double time_shape(const struct tr_dev_ops *ops, struct tr_queue *q,
	const struct gemm_shape *s, const struct operands *o, int reps)
{
	uint64_t start = fb_clock_ns();
	for (int i = 0; i < reps; i++)
		ops->gemm(q, s, o->a, o->b, o->c);
	return (double)(fb_clock_ns() - start);
}

/* Each shape's rate of one round; reps[] grow until a reading is long enough. */
static void one_round(const struct tr_dev_ops *ops, struct tr_queue *q, const struct gemm_rate *r,
	const struct operands *o, int *reps, double *rate)
{
	for (int i = 0; i < r->n; i++) {
		double ns = time_shape(ops, q, &r->v[i].s, o, reps[i]);
		while (ns < LEAST_NS && reps[i] < MAX_REPS) {
			reps[i] = 8 * ns < LEAST_NS ? reps[i] * 8 : reps[i] * 2;
			ns = time_shape(ops, q, &r->v[i].s, o, reps[i]);
		}
		rate[i] = flops(&r->v[i].s) * reps[i] / (ns > 0 ? ns : 1) * 1e9;
	}
}

static void weigh(struct gemm_rate *r)
{
	double work = 0, time = 0;
	for (int i = 0; i < r->n; i++) {
		double f = flops(&r->v[i].s) * (double)r->v[i].calls;
		work += f;
		time += f / r->v[i].rate;
	}
	r->rate = time > 0 ? work / time : 0;
}

static int time_all(const struct tr_dev_ops *ops, struct tr_dev *d, uint64_t budget_ns,
	struct gemm_rate *r, struct fb_err *e)
{
	struct operands o = {0};
	struct tr_queue q = {.dev = d, .id = 0};
	uint64_t end = fb_clock_ns() + budget_ns;
	double *now = calloc((size_t)r->n, sizeof(*now));
	int *reps = calloc((size_t)r->n, sizeof(*reps)), rounds = 0, rc;
	if (!now || !reps) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to time products");
		goto free_all;
	}
	for (int i = 0; i < r->n; i++)
		reps[i] = 1;
	rc = make_operands(ops, d, r, &o, e);
	if (rc != 0)
		goto free_all;
	do {
		one_round(ops, &q, r, &o, reps, now);
		/* The least disturbed reading: what else the machine does takes away and never
		 * adds. */
		for (int i = 0; i < r->n; i++)
			r->v[i].rate = fmax(r->v[i].rate, now[i]);
		rounds++;
		rc = ops->error(d, e);
	} while (rc == 0 && rounds < ROUNDS && fb_clock_ns() < end);
free_all:
	free_operands(ops, d, &o);
	free(reps);
	free(now);
	return rc;
}

int gemm_rate_measure(const struct tr_dev_ops *ops, struct tr_dev *d, uint64_t budget_ns,
	struct gemm_rate *r, struct fb_err *e)
{
	struct collect c = {.r = r};
	*r = (struct gemm_rate){0};
	ops->shapes(d, collect_shape, &c);
	if (c.no_memory) {
		gemm_rate_free(r);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the products' shapes");
	}
	if (r->n == 0)
		return 0;
	qsort(r->v, (size_t)r->n, sizeof(*r->v), by_flops);
	int rc = time_all(ops, d, budget_ns, r, e);
	if (rc != 0)
		gemm_rate_free(r);
	else
		weigh(r);
	return rc;
}

void gemm_rate_free(struct gemm_rate *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}
