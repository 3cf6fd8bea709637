/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory behind a rail's messages: ordinary pages, huge pages, or a GPU's through the plug-in.
 * Everything that touches it by CPU goes through put, get and clear, because a GPU's cannot be
 * touched. Knows neither queue pairs nor layouts.
 */
#ifndef VERBS_MEMORY_H
#define VERBS_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/sysroot.h"
#include "bench/mem/mem_ops.h"

enum verbs_memory { VERBS_MEM_HOST, VERBS_MEM_HUGE, VERBS_MEM_GPU, VERBS_NUM_MEMORIES };
extern const char *const verbs_memory_names[]; /**< "host", "huge", "gpu" */

struct verbs_mem {
	enum verbs_memory kind;
	uint8_t *p;     /**< an address of the GPU with VERBS_MEM_GPU: never to be dereferenced */
	size_t len;     /**< bytes asked for */
	size_t map_len; /**< bytes mapped: whole pages */
	int node;       /**< NUMA node it was placed on; -1: where the system put it */
	int gpu;
	const struct fb_mem_ops *ops; /**< of the GPU; NULL for host memory */
	char how[96];                 /**< for people: "huge pages of 2 MiB", "GPU 0 by dma-buf" */
};

/**
 * Zeroed memory, on NUMA node `node` when it is not -1 (a preference).
 * @return 0; -ENOMEM with what is reserved and free, and how to reserve more; -ENOENT, -ENODEV
 * where there is no GPU, with the plug-in's reason (exit 3: it was ordered)
 */
int verbs_mem_alloc(struct verbs_mem *m, enum verbs_memory kind, int gpu, size_t len, int node,
	struct fb_err *e) FB_MUST_CHECK;
/** The same with a given table instead of the plug-in's. For tests. */
int verbs_mem_alloc_ops(struct verbs_mem *m, const struct fb_mem_ops *ops, int gpu, size_t len,
	struct fb_err *e) FB_MUST_CHECK;
/** Safe on a zeroed one. */
void verbs_mem_free(struct verbs_mem *m);

/**
 * Register all of it. A GPU's by dma-buf, else by its address, which needs a peer-memory module.
 * `how` tells which. @return NULL with the cause of each way tried
 */
struct ibv_mr *verbs_mem_register(
	struct verbs_mem *m, struct ibv_pd *pd, const char *device, int access, struct fb_err *e);

/** May the CPU read and write it? */
bool verbs_mem_on_host(const struct verbs_mem *m);
int verbs_mem_put(struct verbs_mem *m, size_t off, const void *from, size_t len,
	struct fb_err *e) FB_MUST_CHECK;
int verbs_mem_get(const struct verbs_mem *m, size_t off, void *to, size_t len,
	struct fb_err *e) FB_MUST_CHECK;

/** Huge pages of the default size: bytes of one, how many are free; 0 where there are none. Exposed
 * for tests. */
void verbs_huge_pages(const struct fb_sysroot *r, uint64_t *size, uint64_t *total, uint64_t *left);

#endif
