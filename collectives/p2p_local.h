/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between threads of one process over a link that has a latency and a rate, without using
 * the processor: a message leaves when its sender's link is free (each rank has one link out, which
 * all its channels share, first come first served), occupies it for bytes / rate, and may be
 * received latency after that. Unshaped, it may be received at once.
 */
#ifndef COLL_P2P_LOCAL_H
#define COLL_P2P_LOCAL_H

#include "collectives/p2p_ops.h"

struct p2p_link {
	uint64_t latency_ns;
	double rate; /**< bytes/s; 0: no limit */
	/** By channel: added latency of each message, and a factor of the rate (0 counts as 1). */
	struct {
		uint64_t latency_ns;
		double rate_factor;
	} slow[P2P_CHANNELS];
};

struct p2p_world;
/** @return the world, or NULL: -EINVAL, -ENOMEM */
struct p2p_world *p2p_world_new(int ranks, const struct p2p_link *link, struct fb_err *e);
/** After all ranks have closed. */
void p2p_world_free(struct p2p_world *w);
extern const struct p2p_ops p2p_local;

#endif
