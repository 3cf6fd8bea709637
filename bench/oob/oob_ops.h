/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam behind oob.h: what a transport (tcp, local, or the mpi plug-in) fills. Point-to-point
 * with rank 0 only. Messages are kept whole and in order for each pair.
 */
#ifndef FB_OOB_OOB_OPS_H
#define FB_OOB_OOB_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"

struct fb_oob;

struct fb_oob_ops {
	const char *name;
	/** Send one message to `dst` (rank 0 to any, others to 0). @return 0, -ETIMEDOUT,
	 * -ECONNRESET, -EINTR */
	int (*send)(struct fb_oob *o, int dst, const void *buf, uint32_t len, uint64_t deadline,
		struct fb_err *e);
	/** Receive the next message from `src` into malloc'ed *buf. @return as send; -EPROTO when
	 * it is malformed or over the limit */
	int (*recv)(struct fb_oob *o, int src, void **buf, uint32_t *len, uint64_t deadline,
		struct fb_err *e);
	/** Non-blocking: has a rank gone or aborted? 0 or -ECONNRESET */
	int (*lost)(struct fb_oob *o, struct fb_err *e);
	/** Best effort, never blocks for more than 100 ms. */
	void (*abort)(struct fb_oob *o, const struct fb_err *why);
	/** Host of a rank, as far as known here. */
	const char *(*host)(struct fb_oob *o, int rank);
	void (*close)(struct fb_oob *o);
};

struct fb_oob {
	const struct fb_oob_ops *ops;
	int rank, size;
	void *priv;
	/** Has SIGINT or SIGTERM come? Looked at in every wait: then -EINTR. Set by oob.c before
	 * open. */
	bool (*stopped)(void);
};

/** What the mpi plug-in offers: join the world of the launcher. Deadline is absolute
 * CLOCK_MONOTONIC_RAW ns (the plug-in has no calibrated clock); `now` gives the program's
 * fb_clock_ns for the deadlines of the calls above. */
struct fb_oob_provider {
	const char *name;
	int (*open)(uint64_t (*now)(void), uint64_t timeout_ns, struct fb_oob *o, struct fb_err *e);
};

/** What helps when a rank is there and silent. */
#define OOB_SILENT_HINT "see what that rank is doing: stopped, stuck in a driver, or its link down"

#endif
