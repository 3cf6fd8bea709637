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
INLINE int post_chain(struct verbs_bw *b, struct verbs_bw_qp *q, unsigned qi, unsigned n)
{
	struct ibv_send_wr *bad;
	int err;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &q->chain[i];
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
	}
	q->in_flight += n;
	q->sent += n;
	err = ibv_post_send(q->qp, q->chain, &bad);
	return UNLIKELY(err) ? post_failed(b, err) : 0;
}

/* Fill every QP's window. @return messages posted, or -errno */
INLINE int fill(struct verbs_bw *b, bool credits)
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
				/* A window too small for a whole chain must not stall. */
				if (!room || q->in_flight)
					break;
				n = room;
			}
			rc = post_chain(b, q, i, n);
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
INLINE int drain_rx(struct verbs_bw *b)
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
		rc = ibv_post_recv(q->qp, &q->rwr, &bad);
		if (UNLIKELY(rc))
			return post_failed(b, rc);
		q->consumed++;
		if (owes_credit(b, q) && UNLIKELY((rc = give_credit(b, q)) != 0))
			return rc;
	}
	return n;
}

static void share_out(struct verbs_bw *b, uint64_t iters, bool tx)
{
	for (unsigned i = 0; i < b->nqp; i++)
		b->qp[i].left = tx ? iters / b->nqp + (i < iters % b->nqp) : 0;
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

INLINE int run(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed, bool credits, bool events,
	bool tx, bool rx)
{
	uint64_t to_send = tx ? iters : 0, to_take = rx ? iters : 0, since = 0;
	unsigned spins = 0;
	uint64_t t0;

	share_out(b, iters, tx);
	t0 = fb_clock_ns();
	while (to_send || to_take || (rx && credits_in_flight(b))) {
		int moved = 0, n;
		if (tx && to_send) {
			n = fill(b, credits);
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
		}
		if (rx && to_take) {
			n = drain_rx(b);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
			to_take -= (uint64_t)n;
		}
		if (rx && !moved) {
			n = late_credits(b);
			if (UNLIKELY(n < 0))
				return n;
			moved += n;
		}
		if (tx && !to_send && *elapsed == 0)
			*elapsed = fb_clock_ns() - t0;
		if (moved) {
			since = 0;
			continue;
		}
		n = rest(b, events && (!rx || to_take), tx, rx, &spins, &since);
		if (UNLIKELY(n))
			return n;
	}
	if (!tx)
		*elapsed = fb_clock_ns() - t0;
	return 0;
}

#define LOOP(name, credits, events, tx, rx)                                    \
	static int name(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed) \
	{                                                                      \
		*elapsed = 0;                                                  \
		return run(b, iters, elapsed, credits, events, tx, rx);        \
	}
LOOP(remote_poll, false, false, true, false)
LOOP(remote_event, false, true, true, false)
LOOP(send_poll, true, false, true, false)
LOOP(send_event, true, true, true, false)
LOOP(consume_poll, true, false, false, true)
LOOP(consume_event, true, true, false, true)
LOOP(both_poll, true, false, true, true)
LOOP(both_event, true, true, true, true)

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
