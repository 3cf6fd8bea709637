/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs incast: N senders write to one receiver at once, and a victim flow shares the receiver's
 * last hop with them. The receiver is the client and coordinates; senders and victim are hosts
 * where `verbs serve` runs, one session each.
 *
 * Messages of a session after the order, the client's first: {"do":"send", lead_ns, slot_ns, slots,
 * tail_ns}, {"do":"counters", wide}, {"do":"end"}, and those of lossless/drive.h; each is answered
 * with an object. A sender runs its flow for lead, slots and tail, and answers what the receiver's
 * NIC has acknowledged in each slot; lead and tail cover the moments at which senders do not all
 * run.
 */
#ifndef VERBS_INCAST_H
#define VERBS_INCAST_H

#include <jansson.h>

#include "bench/core/err.h"
#include "bench/oob/oob.h"
#include "verbs/flow.h"
#include "verbs/probe.h"
#include "verbs/state.h"

#define VERBS_INCAST_MAX_SLOTS 1000
/** The victim's probe, where nothing is said: one RDMA read of that size. */
#define VERBS_VICTIM_SIZE 64

/** One end of one session. */
struct verbs_incast_end {
	struct verbs_params p; /**< of its connection */
	struct verbs_rail rail;
	bool open;
	struct verbs_flow flow;   /**< a sender's; runs at the sender alone */
	struct verbs_probe probe; /**< a victim's; runs at the receiver alone */
	atomic_int stop;
	struct drive_echo *echo; /**< a server's, see lossless/drive.h; else NULL */
	char what[320];
};

/** Open and connect this end; collective over the session's two ranks. @return 0 or the cause */
int verbs_incast_open(struct verbs_incast_end *x, const struct verbs_job *job, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
void verbs_incast_close(struct verbs_incast_end *x);

/** A server's session: does what the receiver says until it says "end". */
int verbs_incast_serve(const struct verbs_job *job, struct fb_oob *o, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;

/** Counters of a rail's port now, and whose they are: {"driver", "counters"}. New reference.
 * @param wide the Ethernet interface's too, as `reading`: live_reading_json() */
json_t *verbs_incast_counters(const struct verbs_rail *r, bool wide);

/**
 * Jain's index of fairness: (sum x)^2 / (n * sum x^2), from 1/n (one has all) to 1 (all the same).
 * Source: Jain, Chiu, Hawe, A Quantitative Measure of Fairness, DEC-TR-301, 1984.
 * @return NaN when n is 0 or all are 0
 */
double verbs_jain(const double *x, size_t n);

#endif
