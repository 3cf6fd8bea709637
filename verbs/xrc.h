/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving half of XRC: what a rail has beside its sending queue pairs. A message names the
 * shared receive queue that takes it; each sending queue pair of the peer has one here, and a
 * target queue pair to answer it, so that the rest of the rail knows queue pairs by number as ever.
 */
#ifndef VERBS_XRC_H
#define VERBS_XRC_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "verbs/params.h"

struct verbs_rail;
struct verbs_xrc {
	unsigned n;
	struct ibv_xrcd *domain;
	struct ibv_srq **srq;
	struct ibv_qp **target;
	uint32_t *srqn;        /**< ours, told to the peer */
	uint32_t *remote_srqn; /**< the peer's: what our requests name */
	uint32_t *remote_qpn;  /**< the peer's sending QPs, which our targets answer */
};

/** Domain, queues and targets in INIT. @return 0, or what the device refuses; r->xrc is for close
 */
int verbs_xrc_open(
	struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e) FB_MUST_CHECK;
/** Safe on NULL and half-opened; before the rail's completion queues go. */
void verbs_xrc_close(struct verbs_xrc *x);
/** QP q's numbers for the exchange: its target's, its receive queue's. */
void verbs_xrc_describe(const struct verbs_xrc *x, unsigned q, json_t *one);
/** From the peer's [send QP, PSN, target QP, SRQ]. @return the target's number, or -EPROTO */
int64_t verbs_xrc_read(struct verbs_xrc *x, unsigned q, const json_t *one);
/** Target q to RTR, with the attributes that its sending QP has. @return 0 or -errno */
int verbs_xrc_connect(
	struct verbs_rail *r, unsigned q, struct ibv_qp_attr a, struct fb_err *e) FB_MUST_CHECK;

#endif
