/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of gpu-check share: where it works, its checks, its two benchmarks. */
#ifndef TRAIN_GPU_PRIV_H
#define TRAIN_GPU_PRIV_H

#include "bench/core/bench.h"
#include "bench/core/result.h"
#include "bench/train/gemm_check.h"
#include "bench/train/peaks.h"

struct gpu_cfg {
	int on;               /**< 0: GPUs; 1: this CPU, to test the command itself */
	uint64_t check_bytes; /**< memory that the pattern goes through */
	uint64_t copy_bytes;  /**< of one timed copy */
	uint64_t gemm_size;   /**< m = n = k of the timed product */
	uint64_t nccl_max;    /**< largest collective, bytes */
	bool nccl;
	/* Not options: what the command has found. */
	const struct gemm_ops *gemm; /**< NULL: no matrix products, see gemm_why */
	const struct fb_mem_ops *mem;
	struct fb_err gemm_why;
	int devices;
};

extern const struct fb_bench gpu_copy_bench; /**< "gpu.copy" */
extern const struct fb_bench gpu_gemm_bench; /**< "gpu.gemm" */

/** Memory and matrix products of every device, each a check in the document. @return how many
 * failed
 */
unsigned gpu_run_checks(const struct gpu_cfg *cfg, struct fb_doc *doc);
/** One check into the document: pass when e holds no error, else fail (wrong data), skip (not
 * supported) or error. @return true when it failed */
bool gpu_add_check(struct fb_doc *doc, const char *id, const char *observed, const char *expected,
	const char *source, const char *read, const struct fb_err *e);

#endif
