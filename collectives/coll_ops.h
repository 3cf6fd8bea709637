/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam of a collective backend: local (threads), mpi, nccl. Semantics and count rules are
 * NCCL's: all_reduce, broadcast: count elements in and out;  all_gather: count per rank in, count*n
 * out; reduce_scatter: count*n in, count per rank out;    alltoall: count*n in and out, block i
 * goes to rank i.
 */
#ifndef COLL_OPS_H
#define COLL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct fb_oob;

enum coll_op {
	COLL_ALL_REDUCE,
	COLL_ALL_GATHER,
	COLL_REDUCE_SCATTER,
	COLL_BROADCAST,
	COLL_ALLTOALL,
	COLL_OP_COUNT
};
enum coll_dtype {
	COLL_INT8,
	COLL_UINT8,
	COLL_INT32,
	COLL_INT64,
	COLL_FLOAT,
	COLL_DOUBLE,
	COLL_HALF,
	COLL_BFLOAT16,
	COLL_DTYPE_COUNT
};
enum coll_redop { COLL_SUM, COLL_PROD, COLL_MAX, COLL_MIN, COLL_REDOP_COUNT };

struct coll_call {
	enum coll_op op;
	enum coll_dtype dtype;
	enum coll_redop redop;
	int root;
	size_t count; /**< elements, NCCL's meaning */
	const void *send;
	void *recv;
};

struct coll_comm; /* a backend's own */

/** What a backend is given to build a communicator. */
struct coll_env {
	int rank, size;
	int local_rank; /**< rank on this host: the device to use */
	uint64_t (*now)(void);
	uint64_t timeout_ns;
	/** Small exchanges before the communicator exists (NCCL's unique id): rank 0's bytes to
	 * all. */
	int (*bcast)(void *arg, void *buf, uint32_t len, struct fb_err *e);
	void *arg;
	void *shared; /**< local: the group shared by the threads (collectives/local.h); else NULL
		       */
};

struct coll_ops {
	const char *name;
	const char *memory; /**< "host" or "device": where alloc() puts buffers */
	/** Can it run here? `found` as in struct fb_plugin. 0 or -ENODEV */
	int (*probe)(char *found, size_t len, struct fb_err *why);
	bool (*supports)(enum coll_op op, enum coll_dtype dtype, enum coll_redop redop);
	int (*open)(const struct coll_env *env, struct coll_comm **c, struct fb_err *e);
	int (*alloc)(struct coll_comm *c, size_t bytes, void **p, struct fb_err *e);
	void (*free)(struct coll_comm *c, void *p);
	int (*upload)(struct coll_comm *c, void *dst, const void *src_host, size_t bytes,
		struct fb_err *e);
	int (*download)(struct coll_comm *c, void *dst_host, const void *src, size_t bytes,
		struct fb_err *e);
	/** Begin one operation (stream order on a device; a request on the host). */
	int (*start)(struct coll_comm *c, const struct coll_call *call, struct fb_err *e);
	/** Wait for all begun operations; deadline in now()'s ns. -ETIMEDOUT names what was
	 * pending. */
	int (*wait)(struct coll_comm *c, uint64_t deadline, struct fb_err *e);
	/** One line on what ran: algorithm, version, device; may be NULL. */
	int (*describe)(struct coll_comm *c, char *buf, size_t len);
	/** End a communicator whose ranks may be gone: must not block. */
	void (*abort)(struct coll_comm *c);
	void (*close)(struct coll_comm *c);
	/** Devices on this host, one rank each; NULL: ranks are not bound to devices. */
	int (*devices)(void);
};

/** Bytes of an element; 0 for an unknown type. */
static inline size_t coll_dtype_size(enum coll_dtype t)
{
	static const unsigned char sizes[COLL_DTYPE_COUNT] = {1, 1, 4, 8, 4, 8, 2, 2};
	return (unsigned)t < COLL_DTYPE_COUNT ? sizes[t] : 0;
}

#endif
