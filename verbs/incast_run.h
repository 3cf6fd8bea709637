/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver's side of an incast: sessions to all senders and the victim, steps from one sender
 * to all, and the results made of what they tell.
 */
#ifndef VERBS_INCAST_RUN_H
#define VERBS_INCAST_RUN_H

#include "bench/core/hist.h"
#include "bench/core/result.h"
#include "verbs/incast.h"
#include "verbs/reach.h"
#include "verbs/session.h"

#define VERBS_INCAST_MAX_SENDERS 256

/** One host of the incast, as the receiver sees it. */
struct verbs_incast_peer {
	const char *name; /**< HOST or HOST:PORT as given; borrowed */
	struct fb_oob *oob;
	struct verbs_incast_end end;
	json_t *before, *after; /**< verbs_incast_counters() around the step */
	bool lost;              /**< with `some`: it failed in mid-run; `why` */
	struct fb_err why;
	uint64_t sent; /**< messages of the step, lead and tail too, by the sender's word */
	/* of the step */
	double bytes[VERBS_INCAST_MAX_SLOTS], ns[VERBS_INCAST_MAX_SLOTS];
	double rate; /**< bytes/s over all slots; 0 when it did not send */
};

struct verbs_incast {
	struct verbs_job job; /**< the receiver's node and parameters */
	struct fb_doc *doc;
	struct verbs_incast_peer *peer; /**< senders, then the victim */
	unsigned nsenders;
	bool victim;
	bool ramp;
	bool some; /**< go on without a host that fails; its step then has no results */
	bool wide; /**< counters of the Ethernet interfaces too */
	uint64_t lead_ns, slot_ns, tail_ns;
	unsigned slots;
	const char *where;
	json_t *own_before, *own_after;
	struct fb_hist *hist; /**< victim's, of the step */
	double idle_p50, idle_p99;
};

/** Reach peer[i], whose name is set, and open both ends of its session; x->doc gets the host's
 * facts. @return 0 or the cause */
int verbs_incast_join(struct verbs_incast *x, unsigned i, const struct verbs_reach *how,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** End one session, by an abort where there is a cause. */
void verbs_incast_drop(struct verbs_incast_peer *p, const struct fb_err *why);
/** End all sessions, by an abort where *e holds a cause, and free what belongs to them. */
void verbs_incast_leave(struct verbs_incast *x, struct fb_err *e);

/** All steps: the victim alone, then 1 to N senders (--ramp), or all of them. Results go into the
 * document, which is published after each step. @return 0 or the first cause */
int verbs_incast_steps(struct verbs_incast *x, struct fb_err *e) FB_MUST_CHECK;
/** Results of one step with `n` senders (0: the victim alone), from what stands in *x. */
void verbs_incast_results(struct verbs_incast *x, unsigned n);
/** Ask one session: send `order` (stolen), get its answer. @return 0 and a new reference, or the
 * cause */
int verbs_incast_ask(struct verbs_incast_peer *p, json_t *order, json_t **answer, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;

#endif
