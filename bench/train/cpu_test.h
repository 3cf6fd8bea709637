/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of the CPU device's tests: a device per instruction set and work type, arrays of noise in
 * any type, comparison with values in double.
 */
#ifndef TRAIN_CPU_TEST_H
#define TRAIN_CPU_TEST_H

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/test.h"
#include "bench/train/cpu_priv.h"
#include "bench/train/elem.h"

struct box { /* a device and its types */
	struct tr_dev *d;
	struct tr_queue q;
	enum tr_dtype w, g;
	double eps; /* of W */
};
static const char *const isa_names[] = {"base", "avx2", "avx512"};
static const enum tr_dtype works[] = {TR_F32, TR_BF16, TR_F64};

static inline bool open_box(struct box *b, const char *isa, enum tr_dtype work)
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

static inline void close_box(struct box *b)
{
	struct fb_err e = {0};
	if (tr_cpu.error(b->d, &e) != 0)
		print_message("%s\n", e.msg);
	assert_int_equal(e.code, 0);
	tr_cpu.close(b->d);
}

/* Run a test body in every box. */
static inline void everywhere(void (*body)(struct box *b))
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

static inline double get(const void *p, enum tr_dtype t, int64_t i)
{
	return t == TR_F64    ? ((const double *)p)[i]
	       : t == TR_BF16 ? (double)elem_from_bf16(((const uint16_t *)p)[i])
			      : (double)((const float *)p)[i];
}

static inline void put(void *p, enum tr_dtype t, int64_t i, double v)
{
	if (t == TR_F64)
		((double *)p)[i] = v;
	else if (t == TR_BF16)
		((uint16_t *)p)[i] = elem_to_bf16((float)v);
	else
		((float *)p)[i] = (float)v;
}

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}
/* Uniform in [-1, 1]. */
static inline double noise(uint64_t seed, int64_t i)
{
	uint64_t u = mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)i + 1);
	return (double)(u >> 11) * 0x1p-52 - 1;
}

/* n elements of noise times `scale` plus `shift`, as the type keeps them; freed by the caller. */
static inline void *made(enum tr_dtype t, int64_t n, uint64_t seed, double scale, double shift)
{
	void *p = calloc((size_t)n + 1, tr_dtype_size(t));
	assert_non_null(p);
	for (int64_t i = 0; i < n; i++)
		put(p, t, i, noise(seed, i) * scale + shift);
	return p;
}
static inline double *wide(const void *p, enum tr_dtype t, int64_t n)
{
	double *d = calloc((size_t)n + 1, sizeof(*d));
	assert_non_null(d);
	for (int64_t i = 0; i < n; i++)
		d[i] = get(p, t, i);
	return d;
}

/* Each element within tol * (|want| + floor). */
static inline void near(const char *what, const void *got, enum tr_dtype t, const double *want,
	int64_t n, double tol, double floor)
{
	for (int64_t i = 0; i < n; i++) {
		double g = get(got, t, i);
		if (fabs(g - want[i]) <= tol * (fabs(want[i]) + floor))
			continue;
		fail_msg("%s, %s: element %lld of %lld: got %.17g, expected %.17g", what,
			tr_dtype_names[t], (long long)i, (long long)n, g, want[i]);
	}
}

#endif
