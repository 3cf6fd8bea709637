/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam of matrix multiplication: C (m x n) = alpha * op(A) * op(B) + beta * C, row-major,
 * leading dimensions in elements. The dnnl plug-in fills it for the CPU, the cuda plug-in
 * (cuBLASLt) for a GPU. A plan is made once per shape.
 */
#ifndef TRAIN_GEMM_OPS_H
#define TRAIN_GEMM_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

/** f64: of the plain loops alone. */
enum gemm_dtype { GEMM_F32, GEMM_BF16, GEMM_F64 };

struct gemm_shape {
	int64_t m, n, k;
	int64_t lda, ldb, ldc;
	bool trans_a, trans_b;
	enum gemm_dtype in;  /**< A and B */
	enum gemm_dtype out; /**< C */
	float alpha, beta;   /**< alpha is 1 or a scale; beta 0 or 1 */
};
struct gemm_plan; /* a backend's own */

struct gemm_ops {
	const char *name;   /**< "dnnl", "cublaslt" */
	const char *memory; /**< "host" or "device" */
	int (*probe)(char *found, size_t len, struct fb_err *why);
	int (*create)(
		int device, const struct gemm_shape *s, struct gemm_plan **p, struct fb_err *e);
	/** Enqueue; on the host it has run when this returns. */
	int (*run)(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e);
	int (*sync)(struct gemm_plan *p, struct fb_err *e);
	/** Implementation chosen, e.g. "brg_matmul:avx512_core_amx"; for the test that refuses
	 * `ref`. */
	const char *(*impl)(const struct gemm_plan *p);
	void (*destroy)(struct gemm_plan *p);
};

#endif
