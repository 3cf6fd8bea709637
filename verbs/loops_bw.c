// SPDX-License-Identifier: Apache-2.0
/*
 * Bandwidth loops. One body, inlined once for each combination of sending, consuming, credits and
 * the way of waiting.
 *
 * Sends need a receive at the target. The target posts rx_depth of them and tells the sender, by
 * writing a counter into its memory, how many it has consumed; the sender never has more than
 * rx_depth outstanding beyond that, so that "receiver not ready" cannot happen however late the
 * target's thread is.
 */
#include "verbs/loops.h"

#include <errno.h>
#include <string.h>

#include "verbs/conn.h"
#include "verbs/wc.h"

#define INLINE      static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define POLL_MANY   16

static __attribute__((noinline, cold)) int post_failed(struct verbs_bw *b, int err)
{
	return fb_fail(
		b->wait.e, FB_EXIT_UNMEASURED, err, "posting a %s: %s", b->what, strerror(err));
}

/* Post one chain of at most post_list messages. */
INLINE int post_chain(struct verbs_bw *b, struct verbs_bw_qp *q, unsigned qi, unsigned n, bool swap)
{
	struct ibv_send_wr *chain = q->chain + q->turn * b->post_list, *bad;
	int err;

	q->turn = q->turn + 1 < b->slots ? q->turn + 1 : 0;
	for (unsigned i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &chain[i];
		bool last = q->left == 1;
		q->left--;
		if (++q->unsignaled >= b->cq_mod || last) {
			wr->send_flags = b->flags | IBV_SEND_SIGNALED;
			wr->wr_id = (uint64_t)qi << 32 | q->unsignaled;
			q->unsignaled = 0;
		} else {
			wr->send_flags = b->flags;
		}
		wr->next = i + 1 < n ? wr + 1 : NULL;
		if (swap) {
			wr->wr.atomic.compare_add = q->next_swap;
			wr->wr.atomic.swap = ++q->next_swap;
		}
	}
	q->in_flight += n;
	q->sent += n;
	err = ibv_post_send(q->qp, chain, &bad);
	return UNLIKELY(err) ? post_failed(b, err) : 0;
}

/* Fill every QP's window. @return messages posted, or -errno */
INLINE int fill(struct verbs_bw *b, bool credits, bool swap)
{
	int posted = 0;

	for (unsigned i = 0; i < b->nqp; i++) {
		struct verbs_bw_qp *q = &b->qp[i];
		while (q->left > 0) {
			unsigned room = b->depth - q->in_flight;
			unsigned n = b->post_list;
			int rc;
			if (credits) {
				uint64_t granted = *q->credit_in + b->rx_depth - q->sent;
				if (granted < room)
					room = (unsigned)granted;
			}
			if (n > q->left)
				n = (unsigned)q->left;
			if (n > room) {
				/* Room for a whole chain comes with a completion; where none is
				 * due, because nothing in flight is signalled, it never would. */
				if (!room || q->in_flight > q->unsignaled)
					break;
				n = room;
			}
			rc = post_chain(b, q, i, n, swap);
			if (UNLIKELY(rc))
				return rc;
			posted += (int)n;
		}
	}
	return posted;
}

/* Take completions of the send side. @return messages completed, or -errno */
INLINE int drain_tx(struct verbs_bw *b)
{
	struct ibv_wc wc[POLL_MANY];
	int done = 0, n = ibv_poll_cq(b->tx.cq, POLL_MANY, wc);

	if (UNLIKELY(n < 0))
		return post_failed(b, EIO);
	for (int i = 0; i < n; i++) {
		struct verbs_bw_qp *q = &b->qp[wc[i].wr_id >> 32 & 0xffff];
		unsigned count = (unsigned)wc[i].wr_id;
		if (UNLIKELY(wc[i].status != IBV_WC_SUCCESS))
			return verbs_wc_fail(b->wait.e, &wc[i], b->what);
		if (wc[i].wr_id & VERBS_WR_CREDIT) {
			q->credits_in_flight--;
			continue;
		}
		q->in_flight -= count;
		done += (int)count;
	}
	return done;
}

static int give_credit(struct verbs_bw *b, struct verbs_bw_qp *q)
{
	struct ibv_send_wr *bad;
	int err;

	*q->credit_out = q->consumed;
	q->credited = q->consumed;
	q->credits_in_flight++;
	err = ibv_post_send(q->qp, &q->credit_wr, &bad);
	return UNLIKELY(err) ? post_failed(b, err) : 0;
}

INLINE bool owes_credit(const struct verbs_bw *b, const struct verbs_bw_qp *q)
{
	return q->consumed - q->credited >= b->rx_depth / 4 && q->consumed != q->credited &&
	       q->credits_in_flight < VERBS_CREDIT_SLOTS;
}

/* Credits that found no free slot when they were due. @return credits written, or -errno */
static int late_credits(struct verbs_bw *b)
{
	int given = 0;

	for (unsigned i = 0; i < b->nqp; i++) {
		if (owes_credit(b, &b->qp[i])) {
			int rc = give_credit(b, &b->qp[i]);
			if (rc)
				return rc;
			given++;
		}
	}
	return given;
}

/* Consume receives, post them again, tell the peer. @return messages consumed, or -errno */
INLINE int drain_rx(struct verbs_bw *b, bool credits, bool shared)
{
	struct ibv_wc wc[POLL_MANY];
	int n = ibv_poll_cq(b->rx.cq, POLL_MANY, wc);

	if (UNLIKELY(n < 0))
		return post_failed(b, EIO);
	for (int i = 0; i < n; i++) {
		struct verbs_bw_qp *q = &b->qp[wc[i].wr_id];
		struct ibv_recv_wr *bad;
		int rc;
		if (UNLIKELY(wc[i].status != IBV_WC_SUCCESS))
			return verbs_wc_fail(b->wait.e, &wc[i], b->what);
		rc = shared ? ibv_post_srq_recv(q->srq, &q->rwr, &bad)
			    : ibv_post_recv(q->qp, &q->rwr, &bad);
		if (UNLIKELY(rc))
			return post_failed(b, rc);
		q->rx_slot = q->rx_slot + 1 < b->slots ? q->rx_slot + 1 : 0;
		q->rsge.addr = q->rx_base + q->rx_slot * b->span;
		q->consumed++;
		b->wrong |= (wc[i].imm_data ^ q->imm) & b->imm_mask;
		if (credits && owes_credit(b, q) && UNLIKELY((rc = give_credit(b, q)) != 0))
			return rc;
	}
	return n;
}

static void share_out(struct verbs_bw *b, uint64_t iters, bool tx)
{
	for (unsigned i = 0; i < b->nqp; i++) {
		b->qp[i].left = tx ? verbs_dealt(iters, b->nqp, 1, i) : 0;
		b->qp[i].turn = 0;
	}
}

/*
 * Open loop: the schedule counts from the start of the batch, so that what was late is made up for
 * and no error adds up. Whole chains come due together, at the time of their last message.
 */
INLINE void grant(struct verbs_bw *b, uint64_t iters)
{
	struct verbs_meter *m = &b->meter;
	double slots;
	uint64_t due;

	if (!m->to_grant)
		return;
	/* A short message at a high rate: more slots than 64 bits count are gone in a second. */
	slots = (double)(fb_clock_ns() - m->zero_tx) / m->gap_ns + 1;
	due = slots < (double)iters ? (uint64_t)slots : iters;
	due -= iters - m->to_grant;
	while (due > 0) {
		uint64_t n = b->post_list < m->to_grant ? b->post_list : m->to_grant;
		if (due < n)
			return;
		b->qp[m->turn].left += n;
		m->turn = m->turn + 1 < b->nqp ? m->turn + 1 : 0;
		m->to_grant -= n;
		due -= n;
	}
}

/* The last message's slot belongs to the batch: without it a short batch would be over too early.
 */
static int end_schedule(struct verbs_bw *b, uint64_t iters)
{
	uint64_t end = b->meter.zero_tx + (uint64_t)((double)iters * b->meter.gap_ns), since = 0;
	unsigned spins = 0;

	while (fb_clock_ns() < end) {
		int rc = ++spins % VERBS_SPINS ? 0 : verbs_wait_slow(&b->wait, &since);
		if (rc)
			return rc;
	}
	return 0;
}

static unsigned credits_in_flight(const struct verbs_bw *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->nqp; i++)
		n += b->qp[i].credits_in_flight;
	return n;
}

/* Sleep on the side that will wake us: the receive side when we consume, else our completions. With
 * both, and while waiting for credits alone (they raise no event), polling goes on. */
INLINE int rest(struct verbs_bw *b, bool events, bool tx, bool rx, unsigned *spins, uint64_t *since)
{
	if (events && rx && !tx)
		return verbs_cq_sleep(&b->rx, &b->wait);
	if (events && tx && !rx) {
		for (unsigned i = 0; i < b->nqp; i++)
			if (b->qp[i].in_flight)
				return verbs_cq_sleep(&b->tx, &b->wait);
	}
	return UNLIKELY(++*spins % VERBS_SPINS == 0) ? verbs_wait_slow(&b->wait, since) : 0;
}

INLINE int run(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed, bool credits, bool swap,
	bool events, bool tx, bool rx, bool paced, bool shared)
{
	uint64_t to_send = tx ? iters : 0, to_take = rx ? iters : 0, since = 0;
	unsigned spins = 0;
	uint64_t t0;

	share_out(b, iters, tx && !paced);
	t0 = fb_clock_ns();
	verbs_meter_start(&b->meter, rx ? 0 : t0);
	b->meter.zero_tx = t0;
	b->meter.to_grant = tx && paced ? iters : 0;
	while (to_send || to_take || (rx && credits_in_flight(b))) {
		int moved = 0, n;
		if (tx && paced)
			grant(b, iters);
		if (tx && to_send) {
			n = fill(b, credits, swap);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
		}
		if (tx || rx) {
			n = drain_tx(b);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
			to_send -= (uint64_t)n;
			if (tx && !rx && n)
				verbs_meter_note(&b->meter, (uint64_t)n);
		}
		if (rx && to_take) {
			n = drain_rx(b, true, shared);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
			to_take -= (uint64_t)n;
			if (n)
				verbs_meter_arrived(&b->meter, (uint64_t)n);
			if (!to_take)
				verbs_meter_end(&b->meter, fb_clock_ns());
		}
		if (rx && !moved) {
			n = late_credits(b);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
		}
		if (tx && !to_send && *elapsed == 0) {
			if (paced && (n = end_schedule(b, iters)) != 0)
				return n;
			*elapsed = fb_clock_ns() - t0;
			if (!rx)
				verbs_meter_end(&b->meter, t0 + *elapsed);
		}
		if (moved) {
			since = 0;
			continue;
		}
		verbs_meter_flush(&b->meter);
		n = rest(b, events && (!rx || to_take), tx, rx, &spins, &since);
		if (UNLIKELY(n))
			return n;
	}
	if (!tx)
		*elapsed = fb_clock_ns() - t0;
	return 0;
}

#define LOOP(name, credits, swap, events, tx, rx, paced, shared)                             \
	static int name(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed)               \
	{                                                                                    \
		*elapsed = 0;                                                                \
		return run(b, iters, elapsed, credits, swap, events, tx, rx, paced, shared); \
	}
LOOP(remote_poll, false, false, false, true, false, false, false)
LOOP(remote_event, false, false, true, true, false, false, false)
LOOP(swap_poll, false, true, false, true, false, false, false)
LOOP(swap_event, false, true, true, true, false, false, false)
LOOP(send_poll, true, false, false, true, false, false, false)
LOOP(send_event, true, false, true, true, false, false, false)
LOOP(consume_poll, true, false, false, false, true, false, false)
LOOP(consume_event, true, false, true, false, true, false, false)
LOOP(both_poll, true, false, false, true, true, false, false)
LOOP(both_event, true, false, true, true, true, false, false)
LOOP(remote_paced, false, false, false, true, false, true, false)
LOOP(swap_paced, false, true, false, true, false, true, false)
LOOP(send_paced, true, false, false, true, false, true, false)
LOOP(both_paced, true, false, false, true, true, true, false)
LOOP(shared_consume_poll, true, false, false, false, true, false, true)
LOOP(shared_consume_event, true, false, true, false, true, false, true)
LOOP(shared_both_poll, true, false, false, true, true, false, true)
LOOP(shared_both_event, true, false, true, true, true, false, true)
LOOP(shared_both_paced, true, false, false, true, true, true, true)

verbs_bw_loop verbs_bw_choose(bool credits, bool events, bool tx, bool rx)
{
	if (!credits)
		return !tx ? NULL : events ? remote_event : remote_poll;
	if (tx && rx)
		return events ? both_event : both_poll;
	if (tx)
		return events ? send_event : send_poll;
	return !rx ? NULL : events ? consume_event : consume_poll;
}

verbs_bw_loop verbs_bw_choose_paced(bool credits, bool swap, bool rx)
{
	if (swap)
		return swap_paced;
	return !credits ? remote_paced : rx ? both_paced : send_paced;
}

verbs_bw_loop verbs_bw_choose_shared(bool events, bool tx, bool rx)
{
	if (tx && rx)
		return events ? shared_both_event : shared_both_poll;
	if (tx)
		return events ? send_event : send_poll; /* credits are read, nothing is received */
	return !rx ? NULL : events ? shared_consume_event : shared_consume_poll;
}

verbs_bw_loop verbs_bw_choose_shared_paced(bool rx)
{
	return rx ? shared_both_paced : send_paced;
}

verbs_bw_loop verbs_bw_choose_swap(bool events)
{
	return events ? swap_event : swap_poll;
}

/* ---- without acknowledgements ---------------------------------------------------------------- */

/* Nothing moved: rest, and find out whether anything can still come. @return 1: no more, 0, -errno
 */
INLINE int rest_lossy(struct verbs_bw *b, bool events, bool tx, bool rx, bool sending,
	unsigned *spins, uint64_t *quiet)
{
	uint64_t now;
	int rc = 0;

	if (events || ++*spins % VERBS_SPINS == 0) {
		rc = events && (!tx || !rx) ? verbs_cq_sleep(rx ? &b->rx : &b->tx, &b->wait) : 0;
		now = fb_clock_ns();
		if (!*quiet)
			*quiet = now;
		if (UNLIKELY(rc))
			return rc;
		if (rx && !sending &&
			now - *quiet > (b->taken ? VERBS_QUIET_NS : 10 * VERBS_QUIET_NS))
			return 1;
		if (UNLIKELY(now - *quiet > VERBS_PATIENCE_NS))
			rc = verbs_wait_check(&b->wait);
	}
	return rc;
}

INLINE int run_lossy(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed, bool events, bool tx,
	bool rx, bool paced)
{
	uint64_t to_send = tx ? iters : 0, quiet = 0, first = 0, last = 0, t0;
	unsigned spins = 0;

	b->taken = b->taken_ns = *elapsed = 0;
	share_out(b, iters, tx && !paced);
	t0 = fb_clock_ns();
	verbs_meter_start(&b->meter, rx ? 0 : t0);
	b->meter.zero_tx = t0;
	b->meter.to_grant = tx && paced ? iters : 0;
	while (to_send || (rx && b->taken < iters)) {
		int moved = 0, n;
		if (tx && paced)
			grant(b, iters);
		if (tx && to_send) {
			n = fill(b, false, false);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
			n = drain_tx(b);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
			to_send -= (uint64_t)n;
			if (!to_send) {
				if (paced && (n = end_schedule(b, iters)) != 0)
					return n;
				*elapsed = fb_clock_ns() - t0;
			}
		}
		if (rx) {
			n = drain_rx(b, false, false);
			if (UNLIKELY(n < 0))
				return n;
			if (n) {
				last = fb_clock_ns();
				first = first ? first : last;
				b->taken += (uint64_t)n;
				verbs_meter_arrived(&b->meter, (uint64_t)n);
				moved += n;
			}
		}
		if (moved) {
			quiet = 0;
			continue;
		}
		verbs_meter_flush(&b->meter);
		n = rest_lossy(b, events && !paced, tx, rx, to_send > 0, &spins, &quiet);
		if (UNLIKELY(n < 0))
			return n;
		if (n)
			break;
	}
	b->taken_ns = last - first;
	if (rx)
		verbs_meter_end(&b->meter, last);
	if (!tx)
		*elapsed = b->taken_ns;
	return 0;
}

#define LOSSY(name, events, tx, rx, paced)                                     \
	static int name(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed) \
	{                                                                      \
		return run_lossy(b, iters, elapsed, events, tx, rx, paced);    \
	}
LOSSY(lossy_send_poll, false, true, false, false)
LOSSY(lossy_send_event, true, true, false, false)
LOSSY(lossy_count_poll, false, false, true, false)
LOSSY(lossy_count_event, true, false, true, false)
LOSSY(lossy_both_poll, false, true, true, false)
LOSSY(lossy_both_event, true, true, true, false)
LOSSY(lossy_send_paced, false, true, false, true)
LOSSY(lossy_both_paced, false, true, true, true)

verbs_bw_loop verbs_bw_choose_lossy(bool events, bool tx, bool rx)
{
	if (tx && rx)
		return events ? lossy_both_event : lossy_both_poll;
	if (tx)
		return events ? lossy_send_event : lossy_send_poll;
	return !rx ? NULL : events ? lossy_count_event : lossy_count_poll;
}

verbs_bw_loop verbs_bw_choose_lossy_paced(bool rx)
{
	return rx ? lossy_both_paced : lossy_send_paced;
}

int verbs_bw_drain(struct verbs_bw *b)
{
	int all = 0, n;

	while ((n = drain_rx(b, false, false)) > 0)
		all += n;
	return n < 0 ? n : all;
}
