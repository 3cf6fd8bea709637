/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam of point-to-point messages that training's own collectives stand on: local (threads,
 * over a link of chosen latency and rate) and mpi. Non-blocking: nothing here waits.
 *
 * Messages between two ranks on one channel arrive in the order sent. A buffer belongs to the
 * transport until its request is done. Requests are few and reused by the transport.
 */
#ifndef COLL_P2P_OPS_H
#define COLL_P2P_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct p2p;     /* a transport's own, one per rank */
struct p2p_req; /* one message under way */

/** Channels are separate communicators: gather never queues behind reduce. */
enum p2p_channel { P2P_GATHER, P2P_REDUCE, P2P_REPLICATE, P2P_CONTROL, P2P_CHANNELS };

struct p2p_env {
	int rank, size;
	uint64_t (*now)(void);
	uint64_t timeout_ns; /**< for open() */
	void *shared;        /**< local: the link shared by the threads (p2p_local.h); else NULL */
};

struct p2p_ops {
	const char *name;
	int (*open)(const struct p2p_env *env, struct p2p **p, struct fb_err *e);
	/** @return 0 and *r; -ECONNRESET when the world has been aborted (*e: why) */
	int (*isend)(struct p2p *p, int peer, enum p2p_channel ch, const void *buf, size_t bytes,
		struct p2p_req **r, struct fb_err *e);
	int (*irecv)(struct p2p *p, int peer, enum p2p_channel ch, void *buf, size_t bytes,
		struct p2p_req **r, struct fb_err *e);
	/** Progress at least this request; *done: it is over and *r is the transport's again.
	 * @return 0; -EMSGSIZE: the peer sent another length; -ECONNRESET: aborted, or the peer has
	 * left. After an error every later call of this rank returns -ECONNRESET with the first
	 * cause, and no buffer of this rank is the transport's any more, but see holds(). */
	int (*test)(struct p2p *p, struct p2p_req *r, bool *done, struct fb_err *e);
	/** When it is worth testing again, now()'s ns; 0: at once. For waits that sleep. */
	uint64_t (*wake)(struct p2p *p);
	/** End everybody's waits with this cause, the first one given; must not block. Callable
	 * from any rank. */
	void (*abort)(struct p2p *p, const struct fb_err *why);
	void (*close)(struct p2p *p);
	/** After an error or abort(): may the transport still read or write buffers of messages
	 * that were under way? Then they must not be freed before the process ends: MPI cannot take
	 * a send back. NULL: it never does. */
	bool (*holds)(const struct p2p *p);
	/** The clock of env; NULL: fb_clock_ns(). */
	uint64_t (*now)(struct p2p *p);
};

#endif
