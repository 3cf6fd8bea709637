/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting a rail's queue pairs by the RDMA connection manager. The queue pairs stay the rail's
 * own: the manager resolves address and route, carries the numbers, and says with which attributes
 * each state is entered. Nothing here is timed; every wait has a deadline.
 */
#ifndef VERBS_CM_H
#define VERBS_CM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/oob/oob.h"
#include "verbs/conn.h"

/**
 * Event channel and a listener on the rail's own address, at a port that the kernel chooses.
 * @return 0; -ENODEV without rdma_ucm; -EOPNOTSUPP on InfiniBand; what binding refuses
 */
int verbs_cm_open(
	struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e) FB_MUST_CHECK;
/** Safe on NULL. Before the queue pairs are destroyed. */
void verbs_cm_close(struct verbs_cm *cm);
/** Port of the listener. */
unsigned verbs_cm_port(const struct verbs_cm *cm);

/**
 * Connect every QP of the rail; both ends call it, rank 0 towards `peer_port`. The numbers of the
 * peer's QPs are known from the exchange, and a request for another is turned away.
 * @return 0; -ETIMEDOUT, -EHOSTUNREACH, -ECONNREFUSED and the like with the step that failed
 */
int verbs_cm_connect(struct verbs_rail *r, const struct verbs_params *p, unsigned peer_port,
	struct fb_oob *o, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;

/** A GID of RoCE as a socket address; link-local ones with the netdev's scope. Exposed for tests.
 * @return its length */
socklen_t verbs_cm_sockaddr(
	const union ibv_gid *gid, uint32_t ifindex, unsigned port, struct sockaddr_storage *ss);

#endif
