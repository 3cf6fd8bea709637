/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a matrix product right? Against a plain triple loop on the CPU, bit for bit: the operands are
 * small integers, so that every product and every sum is exact in f32 in whatever order it is
 * computed, and a bf16 result is that sum rounded once.
 */
#ifndef TRAIN_GEMM_CHECK_H
#define TRAIN_GEMM_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/mem/mem_ops.h"
#include "bench/train/gemm_ops.h"

/** Largest k for which sums stay exact: 2^24 / (4 * 4), less what C brings. */
#define GEMM_CHECK_MAX_K 1000000

/** Who multiplies, and the memory in which it wants its operands. */
struct gemm_place {
	const struct gemm_ops *gemm;
	const struct fb_mem_ops *mem;
	int device;
};

/** Bytes of an element: 4 or 2. */
size_t gemm_dtype_size(enum gemm_dtype t);
const char *gemm_dtype_name(enum gemm_dtype t);
/** Elements of the three matrices as they lie in memory, padding of the leading dimension included.
 */
size_t gemm_elements_a(const struct gemm_shape *s);
size_t gemm_elements_b(const struct gemm_shape *s);
size_t gemm_elements_c(const struct gemm_shape *s);
/** The dense, unpadded shape m x n x k; C has A's type. */
struct gemm_shape gemm_dense(
	int64_t m, int64_t n, int64_t k, enum gemm_dtype t, bool trans_a, bool trans_b, float beta);

/** Integers of [-4, 4] by a seed, in the type; the value of element i is gemm_value(seed, i). */
float gemm_value(uint64_t seed, size_t i);
void gemm_fill(void *out, size_t n, enum gemm_dtype t, uint64_t seed);

/**
 * Multiply once and compare every element.
 * @return 0; -EBADMSG with place, row, column, expected and got (exit 4); -EINVAL for a k over
 * GEMM_CHECK_MAX_K; what the backend or its memory returns
 */
int gemm_check(
	const struct gemm_place *p, const struct gemm_shape *s, struct fb_err *e) FB_MUST_CHECK;
/**
 * Compare `samples` elements of a product that has already run; a, b of gemm_fill() with seeds 1
 * and 2 and beta 0. c is the place's memory. @return as gemm_check
 */
int gemm_check_samples(const struct gemm_place *p, const struct gemm_shape *s, const void *c,
	unsigned samples, struct fb_err *e) FB_MUST_CHECK;

#endif
