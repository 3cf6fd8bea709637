/* SPDX-License-Identifier: Apache-2.0 */
/* The seam of a kind of memory: host, huge pages, a NUMA node's, or a GPU's through the cuda
 * plug-in. */
#ifndef FB_MEM_MEM_OPS_H
#define FB_MEM_MEM_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct fb_mem_ops {
	const char *name; /**< "cuda" */
	/** 0 or -ENODEV with the reason; `found` says what is here. */
	int (*probe)(char *found, size_t len, struct fb_err *why);
	int (*count)(void); /**< devices */
	/** "NVIDIA H200, 139 GiB, 0000:19:00.0" */
	int (*describe)(int device, char *buf, size_t len, struct fb_err *e);
	int (*alloc)(int device, size_t bytes, void **p, struct fb_err *e);
	void (*free)(int device, void *p);
	/** Any of the two sides may be host memory; returns when the copy is done. */
	int (*copy)(int device, void *dst, const void *src, size_t bytes, struct fb_err *e);
	int (*fill)(int device, void *p, int byte, size_t bytes, struct fb_err *e);
	/** dma-buf of an allocation for ibv_reg_dmabuf_mr; -EOPNOTSUPP with the reason. *offset is
	 * the start within the dma-buf. */
	int (*dmabuf_fd)(
		int device, void *p, size_t bytes, int *fd, uint64_t *offset, struct fb_err *e);
	/** Time one on-device copy of bytes, in ns, by the device's own clock (events); for
	 * gpu-check. */
	int (*copy_time)(int device, void *dst, const void *src, size_t bytes, int iters,
		uint64_t *ns, struct fb_err *e);
};

#endif
