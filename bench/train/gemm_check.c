// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of matrix products: see gemm_check.h. It must not know which library multiplies.
 */
#include "bench/train/gemm_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t gemm_dtype_size(enum gemm_dtype t)
{
	return t == GEMM_BF16 ? 2 : 4;
}

const char *gemm_dtype_name(enum gemm_dtype t)
{
	return t == GEMM_BF16 ? "bf16" : "f32";
}

size_t gemm_elements_a(const struct gemm_shape *s)
{
	return (size_t)((s->trans_a ? s->k : s->m) * s->lda);
}

size_t gemm_elements_b(const struct gemm_shape *s)
{
	return (size_t)((s->trans_b ? s->n : s->k) * s->ldb);
}

size_t gemm_elements_c(const struct gemm_shape *s)
{
	return (size_t)(s->m * s->ldc);
}

struct gemm_shape gemm_dense(
	int64_t m, int64_t n, int64_t k, enum gemm_dtype t, bool trans_a, bool trans_b, float beta)
{
	return (struct gemm_shape){.m = m,
		.n = n,
		.k = k,
		.lda = trans_a ? m : k,
		.ldb = trans_b ? k : n,
		.ldc = n,
		.trans_a = trans_a,
		.trans_b = trans_b,
		.in = t,
		.out = t,
		.alpha = 1,
		.beta = beta};
}

float gemm_value(uint64_t seed, size_t i)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + i; /* splitmix64's mixer */
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (float)(int)((x ^ (x >> 31)) % 9) - 4.0f;
}

static uint32_t float_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	return u;
}

/* Round to nearest, ties to even, as every library does; and back to a float. */
static float to_bf16(float f)
{
	uint32_t u = float_bits(f);
	u = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
	memcpy(&f, &u, sizeof(f));
	return f;
}

static void store(void *out, size_t i, enum gemm_dtype t, float v)
{
	if (t == GEMM_F32) {
		((float *)out)[i] = v;
		return;
	}
	((uint16_t *)out)[i] = (uint16_t)(float_bits(to_bf16(v)) >> 16);
}

static float load(const void *in, size_t i, enum gemm_dtype t)
{
	if (t == GEMM_F32)
		return ((const float *)in)[i];
	uint32_t u = (uint32_t)((const uint16_t *)in)[i] << 16;
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}

void gemm_fill(void *out, size_t n, enum gemm_dtype t, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		store(out, i, t, gemm_value(seed, i));
}

enum { SEED_A = 1, SEED_B = 2, SEED_C = 3 };

/* What element (row, col) must be, from the seeds alone. */
static float expected(const struct gemm_shape *s, int64_t row, int64_t col)
{
	double sum = 0;
	for (int64_t i = 0; i < s->k; i++) {
		int64_t ia = s->trans_a ? i * s->lda + row : row * s->lda + i;
		int64_t ib = s->trans_b ? col * s->ldb + i : i * s->ldb + col;
		sum += (double)gemm_value(SEED_A, (size_t)ia) *
		       (double)gemm_value(SEED_B, (size_t)ib);
	}
	sum = sum * (double)s->alpha +
	      (double)s->beta * (double)gemm_value(SEED_C, (size_t)(row * s->ldc + col));
	return s->out == GEMM_BF16 ? to_bf16((float)sum) : (float)sum;
}

static int wrong(const struct gemm_place *p, const struct gemm_shape *s, int64_t row, int64_t col,
	float want, float got, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
		"%s, device %d: %lld x %lld x %lld %s%s%s product, beta %g: row %lld, column %lld: "
		"expected %g, got %g",
		p->gemm->name, p->device, (long long)s->m, (long long)s->n, (long long)s->k,
		gemm_dtype_name(s->in), s->trans_a ? ", A transposed" : "",
		s->trans_b ? ", B transposed" : "", (double)s->beta, (long long)row, (long long)col,
		(double)want, (double)got);
	fb_hint(e, "run it again: an error that comes and goes is the device's memory or clock");
	return -EBADMSG;
}

/* The three matrices on the host and where the product runs. */
struct operands {
	void *host[3], *there[3];
	size_t bytes[3];
};

static void free_operands(const struct gemm_place *p, struct operands *o)
{
	for (int i = 0; i < 3; i++) {
		free(o->host[i]);
		if (o->there[i])
			p->mem->free(p->device, o->there[i]);
	}
}

static int make_operands(const struct gemm_place *p, const struct gemm_shape *s, struct operands *o,
	struct fb_err *e)
{
	const size_t n[3] = {gemm_elements_a(s), gemm_elements_b(s), gemm_elements_c(s)};
	const enum gemm_dtype t[3] = {s->in, s->in, s->out};
	memset(o, 0, sizeof(*o));
	for (int i = 0; i < 3; i++) {
		o->bytes[i] = n[i] * gemm_dtype_size(t[i]);
		o->host[i] = malloc(o->bytes[i]);
		if (!o->host[i]) {
			fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
				"no memory for a matrix of %zu bytes", o->bytes[i]);
			return -ENOMEM;
		}
		gemm_fill(o->host[i], n[i], t[i], (uint64_t)i + SEED_A);
		int rc = p->mem->alloc(p->device, o->bytes[i], &o->there[i], e);
		if (rc == 0)
			rc = p->mem->copy(p->device, o->there[i], o->host[i], o->bytes[i], e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int multiply(const struct gemm_place *p, const struct gemm_shape *s, struct operands *o,
	struct fb_err *e)
{
	struct gemm_plan *plan = NULL;
	int rc = p->gemm->create(p->device, s, &plan, e);
	if (rc != 0)
		return rc;
	rc = p->gemm->run(plan, o->there[0], o->there[1], o->there[2], e);
	if (rc == 0)
		rc = p->gemm->sync(plan, e);
	p->gemm->destroy(plan);
	if (rc == 0)
		rc = p->mem->copy(p->device, o->host[2], o->there[2], o->bytes[2], e);
	return rc;
}

int gemm_check(const struct gemm_place *p, const struct gemm_shape *s, struct fb_err *e)
{
	struct operands o;
	if (s->k > GEMM_CHECK_MAX_K)
		return fb_fail_usage(
			e, "k = %lld: sums are exact up to %d", (long long)s->k, GEMM_CHECK_MAX_K);
	int rc = make_operands(p, s, &o, e);
	if (rc == 0)
		rc = multiply(p, s, &o, e);
	for (int64_t row = 0; row < s->m && rc == 0; row++) {
		for (int64_t col = 0; col < s->n && rc == 0; col++) {
			float want = expected(s, row, col);
			float got = load(o.host[2], (size_t)(row * s->ldc + col), s->out);
			if (float_bits(want + 0.0f) != float_bits(got + 0.0f)) /* -0 is 0 */
				rc = wrong(p, s, row, col, want, got, e);
		}
	}
	free_operands(p, &o);
	return rc;
}

int gemm_check_samples(const struct gemm_place *p, const struct gemm_shape *s, const void *c,
	unsigned samples, struct fb_err *e)
{
	size_t elem = gemm_dtype_size(s->out);
	for (unsigned i = 0; i < samples; i++) {
		/* Spread over the matrix, the first and the last element among them. */
		uint64_t cells = (uint64_t)s->m * (uint64_t)s->n;
		uint64_t at = samples > 1 ? (cells - 1) / (samples - 1) * i : 0;
		if (i > 0 && i == samples - 1)
			at = cells - 1;
		int64_t row = (int64_t)(at / (uint64_t)s->n), col = (int64_t)(at % (uint64_t)s->n);
		size_t where = (size_t)(row * s->ldc + col);
		float got, want = expected(s, row, col), raw = 0;
		int rc = p->mem->copy(p->device, &raw, (const char *)c + where * elem, elem, e);
		if (rc != 0)
			return rc;
		got = load(&raw, 0, s->out);
		if (float_bits(want + 0.0f) != float_bits(got + 0.0f))
			return wrong(p, s, row, col, want, got, e);
	}
	return 0;
}
