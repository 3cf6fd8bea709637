/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the collective benchmark, shared by bench.c (set-up, timing) and verify.c (data). */
#ifndef COLL_PRIV_H
#define COLL_PRIV_H

#include "collectives/coll.h"
#include "collectives/formula.h"
#include "collectives/pattern.h"

#define COLL_CHUNK (1u << 20) /* host staging buffers of a check, bytes */

/* The owner's configuration as it goes to the other ranks: one program version, one layout. */
struct coll_wire {
	char backend[16];
	int op, dtype, redop, root, check, mode, allow_one_rank, inject_rank;
	uint64_t min, max, step, seed, inject_offset;
	double factor;
};

struct coll_state {
	struct fb_run *run;
	const struct coll_ops *ops;
	struct coll_comm *comm;
	struct coll_wire w;
	int rank, ranks;
	int local_rank, host_ranks; /**< among the ranks of this host */
	bool failed;                /**< end the communicator by abort */
	size_t cap;                 /**< bytes of each of the two buffers */
	void *send, *recv;
	void *barrier; /**< two integers on the device or host: the barrier's all_reduce */
	unsigned char *got, *want; /**< COLL_CHUNK bytes each */
	char what[160];            /**< the backend's describe() */
	/* of the point in progress */
	struct coll_call call;
	struct coll_shape shape;
	struct coll_pattern pattern;
	bool pattern_ready;
	unsigned group; /**< operations begun before each wait */
	int (*measure)(
		struct coll_state *s, uint64_t iters, struct fb_sink *sink, struct fb_err *e);
};

/** Operation and requested size of a point, packed into fb_point.user. */
static inline uint64_t coll_point_pack(enum coll_op op, uint64_t requested)
{
	return (uint64_t)op << 56 | requested;
}

/** Fill the point's send buffer and spoil its receive buffer. */
int coll_fill(struct coll_state *s, struct fb_err *e) FB_MUST_CHECK;
/** Spoil the windows of the receive buffer that coll_check_windows() reads. */
int coll_spoil_windows(struct coll_state *s, struct fb_err *e) FB_MUST_CHECK;
/** Check those windows: all of a buffer up to 1 MiB, 64 pieces of 4 KiB of a larger one. -EBADMSG
 */
int coll_check_windows(struct coll_state *s, struct fb_err *e) FB_MUST_CHECK;
/** Check every byte; -EBADMSG locates the first wrong element and counts them all. */
int coll_check_all(struct coll_state *s, struct fb_err *e) FB_MUST_CHECK;
/** Flip the byte that --inject names, where this rank is meant. */
int coll_inject(struct coll_state *s, struct fb_err *e) FB_MUST_CHECK;

#endif
