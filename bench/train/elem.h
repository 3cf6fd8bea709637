/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of each element of a training step, once, for C and CUDA compilers: functions of
 * scalars in float (suffix _f) and double (suffix _d), written so that a loop over them vectorizes
 * without any licence to reorder: no branches, no calls, selects only. Built without contraction
 * of a*b+c (-ffp-contract=off), every width of vector gives the same bits.
 *
 * bf16 is storage only: it is widened to float, computed in float and rounded to nearest even.
 */
#ifndef TRAIN_ELEM_H
#define TRAIN_ELEM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define ELEM_FN __host__ __device__ static inline
#else
#define ELEM_FN static inline __attribute__((unused))
#endif

ELEM_FN float elem_bits_f(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}
ELEM_FN uint32_t elem_of_f(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	return u;
}
ELEM_FN double elem_bits_d(uint64_t u)
{
	double f;
	memcpy(&f, &u, sizeof(f));
	return f;
}
ELEM_FN uint64_t elem_of_d(double f)
{
	uint64_t u;
	memcpy(&u, &f, sizeof(u));
	return u;
}

ELEM_FN float elem_from_bf16(uint16_t h)
{
	return elem_bits_f((uint32_t)h << 16);
}
/** Nearest, ties to even; beyond the largest becomes infinite; a NaN stays one, made quiet. */
ELEM_FN uint16_t elem_to_bf16(float f)
{
	uint32_t u = elem_of_f(f);
	uint32_t even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
	uint32_t nan = (u >> 16) | 0x40u;
	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : even);
}

/**
 * exp(x) = 2^n * exp(r), n = x / ln 2 rounded by adding and taking off 1.5 * 2^23, |r| <= ln 2 / 2
 * by ln 2 in two parts, exp(r) by its series to r^7 (remainder 5.2e-9).
 * Error: at most 2 units of the last place from libm's; below -87 it is 0 (the true value is less
 * than 1.7e-38), above 88.73 infinite. NaN stays NaN.
 */
ELEM_FN float elem_exp_f(float x)
{
	float c = x > 89.0f ? 89.0f : x;
	c = c < -87.5f ? -87.5f : c;
	float t = c * 1.44269504f + 12582912.0f;
	float n = t - 12582912.0f;
	float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;
	float p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r * r + r + 1.0f;
	/* n stands in t's low bits; 2^(n-1), so that n = 128 has a place; n = -126 makes 0. */
	return p * elem_bits_f((elem_of_f(t) + 126u) << 23) * 2.0f;
}

/** The same in double: the series to r^13 (remainder 4.2e-18); 0 below -708.05, infinite above
 * 709.79. Error: at most 2 units of the last place from libm's. */
ELEM_FN double elem_exp_d(double x)
{
	double c = x > 710.0 ? 710.0 : x;
	c = c < -708.5 ? -708.5 : c;
	double t = c * 1.44269504088896340736 + 6755399441055744.0;
	double n = t - 6755399441055744.0;
	double r = (c - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
	double p = 1.0 / 6227020800.0;
	p = p * r + 1.0 / 479001600.0;
	p = p * r + 1.0 / 39916800.0;
	p = p * r + 1.0 / 3628800.0;
	p = p * r + 1.0 / 362880.0;
	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r * r + r + 1.0;
	return p * elem_bits_d((elem_of_d(t) + 1022u) << 52) * 2.0;
}

/* The rest is one text for both. */
#define ELEM_REAL    float
#define ELEM(name)   elem_##name##_f
#define ELEM_SQRT(x) sqrtf(x)
#include "bench/train/elem_real.h"
#undef ELEM_REAL
#undef ELEM
#undef ELEM_SQRT
#define ELEM_REAL    double
#define ELEM(name)   elem_##name##_d
#define ELEM_SQRT(x) sqrt(x)
#include "bench/train/elem_real.h"
#undef ELEM_REAL
#undef ELEM
#undef ELEM_SQRT

#endif
