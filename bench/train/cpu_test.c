// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU device against naive loops in double: every kernel, in f32, bf16 and f64, with every
 * instruction set here, at sizes that leave tails; attention against the full matrix; and that all
 * instruction sets give the same bits. Products run in the plain loops.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/core/test.h"
#include "bench/train/cpu_priv.h"
#include "bench/train/elem.h"
#include "bench/train/gemm_plain.h"

/* ---- tools ----------------------------------------------------------------------------------- */

struct box { /* a device and its types */
	struct tr_dev *d;
	struct tr_queue q;
	enum tr_dtype w, g;
	double eps; /* of W */
};
static const char *const isa_names[] = {"base", "avx2", "avx512"};
static const enum tr_dtype works[] = {TR_F32, TR_BF16, TR_F64};

static bool open_box(struct box *b, const char *isa, enum tr_dtype work)
{
	struct fb_err e = {0};
	const struct tr_dev_cfg cfg = {.work = work, .core = -1};
	setenv("FABRICBENCH_ISA", isa, 1);
	int rc = tr_cpu.open(&cfg, &b->d, &e);
	unsetenv("FABRICBENCH_ISA");
	if (rc == -ENODEV || (rc == -EINVAL && strcmp(isa, "base") != 0))
		return false; /* another processor: what it has is tested */
	assert_int_equal(rc, 0);
	b->q = (struct tr_queue){b->d, 0};
	b->w = work;
	b->g = tr_grad_dtype(work);
	b->eps = work == TR_F64 ? 0x1p-53 : work == TR_BF16 ? 0x1p-8 : 0x1p-24;
	return true;
}

static void close_box(struct box *b)
{
	struct fb_err e = {0};
	if (tr_cpu.error(b->d, &e) != 0)
		print_message("%s\n", e.msg);
	assert_int_equal(e.code, 0);
	tr_cpu.close(b->d);
}

/* Run a test body in every box. */
static void everywhere(void (*body)(struct box *b))
{
	for (size_t i = 0; i < 3; i++)
		for (size_t w = 0; w < 3; w++) {
			struct box b;
			if (!open_box(&b, isa_names[i], works[w]))
				continue;
			body(&b);
			close_box(&b);
		}
}

static double get(const void *p, enum tr_dtype t, int64_t i)
{
	return t == TR_F64    ? ((const double *)p)[i]
	       : t == TR_BF16 ? (double)elem_from_bf16(((const uint16_t *)p)[i])
			      : (double)((const float *)p)[i];
}

static void put(void *p, enum tr_dtype t, int64_t i, double v)
{
	if (t == TR_F64)
		((double *)p)[i] = v;
	else if (t == TR_BF16)
		((uint16_t *)p)[i] = elem_to_bf16((float)v);
	else
		((float *)p)[i] = (float)v;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}
/* Uniform in [-1, 1]. */
static double noise(uint64_t seed, int64_t i)
{
	uint64_t u = mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)i + 1);
	return (double)(u >> 11) * 0x1p-52 - 1;
}

/* n elements of noise times `scale` plus `shift`, as the type keeps them; freed by the caller. */
static void *made(enum tr_dtype t, int64_t n, uint64_t seed, double scale, double shift)
{
	void *p = calloc((size_t)n + 1, tr_dtype_size(t));
	assert_non_null(p);
	for (int64_t i = 0; i < n; i++)
		put(p, t, i, noise(seed, i) * scale + shift);
	return p;
}
static double *wide(const void *p, enum tr_dtype t, int64_t n)
{
	double *d = calloc((size_t)n + 1, sizeof(*d));
	assert_non_null(d);
	for (int64_t i = 0; i < n; i++)
		d[i] = get(p, t, i);
	return d;
}

/* Each element within tol * (|want| + floor). */
static void near(const char *what, const void *got, enum tr_dtype t, const double *want, int64_t n,
	double tol, double floor)
{
	for (int64_t i = 0; i < n; i++) {
		double g = get(got, t, i);
		if (fabs(g - want[i]) <= tol * (fabs(want[i]) + floor))
			continue;
		fail_msg("%s, %s: element %lld of %lld: got %.17g, expected %.17g", what,
			tr_dtype_names[t], (long long)i, (long long)n, g, want[i]);
	}
}

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
	return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exp_is_right),
		cmocka_unit_test(bf16_rounds_to_even),
		cmocka_unit_test(activations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
