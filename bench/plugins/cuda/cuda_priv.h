/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cuda plug-in share: its probe and the wording of CUDA's errors. */
#ifndef PLUGINS_CUDA_PRIV_H
#define PLUGINS_CUDA_PRIV_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct fb_mem_ops;
struct gemm_ops;

extern const struct fb_mem_ops cuda_mem_ops;
extern const struct gemm_ops cuda_gemm_ops;

/** "CUDA 13.0 runtime found; 8 devices", and 0; or -ENODEV with the runtime's own reason. */
int cuda_probe(char *found, size_t len, struct fb_err *why);
/** Record a CUDA error: what was tried, the error's name and text. @return negative errno */
int cuda_fail(struct fb_err *e, cudaError_t rc, const char *fmt, ...) FB_PRINTF(3, 4);
/** Wait for an event or a stream by polling: the runtime's own waits know no deadline. Exactly one
 * is given. @return 0, -ETIMEDOUT, or the error of the work that was pending */
int cuda_poll(cudaStream_t stream, cudaEvent_t event, const char *what, struct fb_err *e);

#endif
