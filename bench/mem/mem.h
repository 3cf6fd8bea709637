/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of memory that the program itself has; the GPU's comes from the cuda plug-in. */
#ifndef FB_MEM_MEM_H
#define FB_MEM_MEM_H

#include "bench/core/cmd.h"
#include "bench/mem/mem_ops.h"

/** This process's ordinary memory: one device, page-aligned. dmabuf_fd is -EOPNOTSUPP. */
extern const struct fb_mem_ops fb_mem_host;

/** `fabricbench mem`: latency and bandwidth between NUMA nodes, measured. */
extern const struct fb_cmd mem_cmd;

#endif
