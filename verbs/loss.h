/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs loss-sweep: what packet loss in one direction costs a reliable connection. One end sends: a
 * stream of large messages, and small ones that ask for an answer; the other is the receiver. The
 * client coordinates; the server is a host where `verbs serve` runs.
 *
 * Messages of a session after the order, the client's first, each answered with an object:
 * {"do":"start", ns} the stream begins here and lasts about so long, with this port's counters
 * before; {"do":"mark"} messages so far, by this end's clock; {"do":"stop"} it ends, with the
 * counters after; {"do":"probe", n, ns} the sender's small messages, as a histogram; {"do":"loss",
 * percent, device} where the server sends and its operator has allowed that; {"do":"end"}. The
 * client does the same for its own end by verbs_loss_act().
 */
#ifndef VERBS_LOSS_H
#define VERBS_LOSS_H

#include <jansson.h>

#include "bench/core/err.h"
#include "bench/oob/oob.h"
#include "verbs/flow.h"
#include "verbs/loss_maker.h"
#include "verbs/probe.h"
#include "verbs/state.h"

/** Small messages, where nothing is said: bytes of each. */
#define VERBS_LOSS_PROBE_SIZE 64
/** Most small messages in one order. */
#define VERBS_LOSS_MAX_PROBES 10000000
/** Longest stream, and longest time for one order's small messages, ns. */
#define VERBS_LOSS_MAX_NS 3600000000000ll

/** One end of a session. */
struct verbs_loss_end {
	struct verbs_params stream_p, probe_p; /**< of the two connections */
	struct verbs_rail stream_rail, probe_rail;
	bool stream_open, probe_open;
	struct verbs_flow flow;
	struct verbs_probe probe;
	bool sends; /**< this end's packets go the way that loses some */
	atomic_int stop;
	const char *allowed; /**< server: network device that clients may lose packets on */
	struct verbs_loss_maker maker; /**< server: of these */
	char stream_what[320], probe_what[320];
};

/** Open and connect this end; collective over the session's two ranks. @return 0 or the cause */
int verbs_loss_open(struct verbs_loss_end *x, const struct verbs_job *job, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
void verbs_loss_close(struct verbs_loss_end *x);

/** Do what an order says at this end, and fill the answer. @return 0 or the cause */
int verbs_loss_act(struct verbs_loss_end *x, const json_t *order, json_t *answer,
	struct fb_err *e) FB_MUST_CHECK;

/** A server's session: does what the client says until it says "end". @param allowed network device
 * on which this host lets clients make loss; NULL: none */
int verbs_loss_serve(const struct verbs_job *job, const char *allowed, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;

/**
 * How many packets of RDMA a port has sent between two reads of its counters: rxe sent_pkts, mlx5
 * and mlx4 port_xmit_packets, bnxt_re tx_pkts, efa tx_pkts, irdma TxUDP. Sources: the kernel's
 * sw/rxe/rxe_hw_counters.c, hw/mlx5/mad.c (packets of the IB transport alone), hw/mlx4/mad.c,
 * hw/bnxt_re/hw_counters.c, hw/efa/efa_verbs.c, hw/irdma/verbs.c. They count what left the queue
 * pair's engine, also what is lost afterwards, and all of the port's queue pairs.
 * @return packets, or -1: the driver has no such counter here, or it went backwards
 */
int64_t verbs_loss_packets(const char *driver, const json_t *before, const json_t *after);

#endif
