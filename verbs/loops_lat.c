// SPDX-License-Identifier: Apache-2.0
/*
 * Latency loops. The bodies are inlined into one function for each combination; `events` and
 * `client` are constants there.
 */
#include "verbs/loops.h"

#include <errno.h>
#include <string.h>

#include "verbs/wc.h"

#define INLINE      static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static __attribute__((noinline, cold)) int post_failed(struct verbs_lat *l, int err)
{
	return fb_fail(
		l->wait.e, FB_EXIT_UNMEASURED, err, "posting a %s: %s", l->what, strerror(err));
}

/* A receive is flushed because a send failed: the send's completion holds the cause. */
static __attribute__((noinline, cold)) int completion_failed(struct verbs_lat *l, struct ibv_wc *wc)
{
	struct ibv_wc first;

	while (wc->status == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(l->tx.cq, 1, &first) > 0)
		if (first.status != IBV_WC_SUCCESS && first.status != IBV_WC_WR_FLUSH_ERR)
			*wc = first;
	return verbs_wc_fail(l->wait.e, wc, l->what);
}

/* While an answer is awaited a failed send must not go unseen: look at its CQ once in a while. */
static __attribute__((noinline)) int look_at_sends(struct verbs_lat *l)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(l->tx.cq, 1, &wc) <= 0)
		return 0;
	if (wc.status != IBV_WC_SUCCESS)
		return completion_failed(l, &wc);
	l->unsignaled = 0; /* the signalled one, before reap() came to it */
	return 0;
}

static __attribute__((noinline)) int wait_slow(struct verbs_lat *l, bool answer, uint64_t *since)
{
	int rc = answer ? look_at_sends(l) : 0;

	return rc ? rc : verbs_wait_slow(&l->wait, since);
}

/* One completion of a CQ, by polling or by events; `answer`: of a receive, while our send is under
 * way. */
INLINE int take_wc(
	struct verbs_lat *l, struct verbs_cq *c, bool events, bool answer, struct ibv_wc *wc)
{
	uint64_t since = 0;
	unsigned spins = 0;
	int n, rc;

	while ((n = ibv_poll_cq(c->cq, 1, wc)) == 0) {
		spins++;
		if (events) {
			rc = verbs_cq_sleep(c, &l->wait);
			if (UNLIKELY(spins > 4) && rc == 0 && answer)
				rc = look_at_sends(l);
		} else {
			rc = UNLIKELY(spins % VERBS_SPINS == 0) ? wait_slow(l, answer, &since) : 0;
		}
		if (UNLIKELY(rc))
			return rc;
	}
	if (UNLIKELY(n < 0))
		return post_failed(l, EIO);
	if (UNLIKELY(wc->status != IBV_WC_SUCCESS))
		return completion_failed(l, wc);
	return 0;
}

INLINE int take(struct verbs_lat *l, struct verbs_cq *c, bool events, bool answer)
{
	struct ibv_wc wc;

	return take_wc(l, c, events, answer, &wc);
}

/* The answer to a send; one with an immediate must carry the number that is due. */
INLINE int take_receive(struct verbs_lat *l, bool events, bool imm)
{
	struct ibv_wc wc;
	int rc = take_wc(l, &l->rx, events, true, &wc);

	if (imm && !rc)
		l->wrong += wc.imm_data != verbs_imm(l->seq);
	return rc;
}

/* Post; every so often with a completion. */
INLINE int post(struct verbs_lat *l)
{
	struct ibv_send_wr *bad;
	int err;

	l->wr.send_flags = l->flags | (++l->unsignaled == l->signal_every ? IBV_SEND_SIGNALED : 0u);
	err = ibv_post_send(l->qp, &l->wr, &bad);
	return UNLIKELY(err) ? post_failed(l, err) : 0;
}

/* After the answer and outside the measured time: give the send queue back. */
INLINE int reap(struct verbs_lat *l)
{
	if (l->unsignaled < l->signal_every)
		return 0;
	l->unsignaled = 0;
	return take(l, &l->tx, false, false);
}

INLINE int repost(struct verbs_lat *l, bool shared)
{
	struct ibv_recv_wr *bad;
	int err = shared ? ibv_post_srq_recv(l->srq, &l->rwr, &bad)
			 : ibv_post_recv(l->qp, &l->rwr, &bad);

	return UNLIKELY(err) ? post_failed(l, err) : 0;
}

INLINE int watch_byte(struct verbs_lat *l, uint8_t value)
{
	uint64_t since = 0;
	unsigned spins = 0;

	while (*l->recv_last != value) {
		if (UNLIKELY(++spins % VERBS_SPINS == 0)) {
			int rc = wait_slow(l, true, &since);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* One clock read an iteration: the end of one is the start of the next, so a sample also holds what
 * an application would pay between two messages. The receive is posted again while the message is
 * in flight. Reaping the send queue is left out: the clock is read again after it. */
INLINE int send_client(
	struct verbs_lat *l, uint64_t iters, struct fb_sink *s, bool events, bool imm, bool shared)
{
	uint64_t t0 = fb_clock_ns(), t1;

	for (uint64_t i = 0; i < iters; i++) {
		int rc;
		if (imm)
			l->wr.imm_data = verbs_imm(++l->seq);
		rc = post(l);
		if (UNLIKELY(rc) || UNLIKELY(i && (rc = repost(l, shared)) != 0) ||
			UNLIKELY((rc = take_receive(l, events, imm)) != 0))
			return rc;
		t1 = fb_clock_ns();
		s->ns[i] = (t1 - t0 + 1) >> 1;
		s->n = i + 1;
		t0 = t1;
		if (UNLIKELY(l->unsignaled >= l->signal_every)) {
			if ((rc = reap(l)) != 0)
				return rc;
			t0 = fb_clock_ns();
		}
	}
	return iters ? repost(l, shared) : 0;
}

INLINE int send_server(struct verbs_lat *l, uint64_t iters, bool events, bool imm, bool shared)
{
	for (uint64_t i = 0; i < iters; i++) {
		int rc;
		if (imm)
			l->wr.imm_data = verbs_imm(++l->seq);
		rc = take_receive(l, events, imm);
		if (UNLIKELY(rc) || UNLIKELY((rc = post(l)) != 0) ||
			UNLIKELY((rc = repost(l, shared)) != 0) || UNLIKELY((rc = reap(l)) != 0))
			return rc;
	}
	return 0;
}

#define SEND_LOOPS(name, events, imm, shared)                                            \
	static int name##_client(struct verbs_lat *l, uint64_t iters, struct fb_sink *s) \
	{                                                                                \
		return send_client(l, iters, s, events, imm, shared);                    \
	}                                                                                \
	static int name##_server(struct verbs_lat *l, uint64_t iters, struct fb_sink *s) \
	{                                                                                \
		(void)s;                                                                 \
		return send_server(l, iters, events, imm, shared);                       \
	}
SEND_LOOPS(send_poll, false, false, false)
SEND_LOOPS(send_event, true, false, false)
SEND_LOOPS(imm_poll, false, true, false)
SEND_LOOPS(imm_event, true, true, false)
SEND_LOOPS(shared_send_poll, false, false, true)
SEND_LOOPS(shared_send_event, true, false, true)
SEND_LOOPS(shared_imm_poll, false, true, true)
SEND_LOOPS(shared_imm_event, true, true, true)

static int write_client(struct verbs_lat *l, uint64_t iters, struct fb_sink *s)
{
	uint64_t t0 = fb_clock_ns(), t1;

	for (uint64_t i = 0; i < iters; i++) {
		int rc;
		*l->send_last = ++l->seq;
		rc = post(l);
		if (UNLIKELY(rc) || UNLIKELY((rc = watch_byte(l, l->seq)) != 0))
			return rc;
		t1 = fb_clock_ns();
		s->ns[i] = (t1 - t0 + 1) >> 1;
		s->n = i + 1;
		t0 = t1;
		if (UNLIKELY(l->unsignaled >= l->signal_every)) {
			if ((rc = reap(l)) != 0)
				return rc;
			t0 = fb_clock_ns();
		}
	}
	return 0;
}

static int write_server(struct verbs_lat *l, uint64_t iters, struct fb_sink *s)
{
	(void)s;
	for (uint64_t i = 0; i < iters; i++) {
		int rc;
		l->seq++;
		rc = watch_byte(l, l->seq);
		*l->send_last = l->seq;
		if (UNLIKELY(rc) || UNLIKELY((rc = post(l)) != 0) || UNLIKELY((rc = reap(l)) != 0))
			return rc;
	}
	return 0;
}

/* What an atomic is to do, and what it brings back: nobody else touches the word, so that both are
 * known in advance. */
enum fetch { FETCH_READ, FETCH_ADD, FETCH_SWAP };

INLINE int read_client(
	struct verbs_lat *l, uint64_t iters, struct fb_sink *s, bool events, enum fetch kind)
{
	struct ibv_send_wr *bad;
	uint64_t t0 = fb_clock_ns(), t1;

	l->wr.send_flags = IBV_SEND_SIGNALED;
	for (uint64_t i = 0; i < iters; i++) {
		int rc;
		if (kind == FETCH_SWAP) {
			l->wr.wr.atomic.compare_add = l->count;
			l->wr.wr.atomic.swap = l->count + 1;
		}
		rc = ibv_post_send(l->qp, &l->wr, &bad);
		if (UNLIKELY(rc))
			return post_failed(l, rc);
		rc = take(l, &l->tx, events, false);
		if (UNLIKELY(rc))
			return rc;
		if (kind != FETCH_READ)
			l->wrong += *(volatile uint64_t *)l->fetched != l->count++;
		t1 = fb_clock_ns();
		s->ns[i] = t1 - t0;
		s->n = i + 1;
		t0 = t1;
	}
	return 0;
}

#define FETCH_LOOP(name, events, kind)                                          \
	static int name(struct verbs_lat *l, uint64_t iters, struct fb_sink *s) \
	{                                                                       \
		return read_client(l, iters, s, events, kind);                  \
	}
FETCH_LOOP(read_poll_client, false, FETCH_READ)
FETCH_LOOP(read_event_client, true, FETCH_READ)
FETCH_LOOP(add_poll_client, false, FETCH_ADD)
FETCH_LOOP(add_event_client, true, FETCH_ADD)
FETCH_LOOP(swap_poll_client, false, FETCH_SWAP)
FETCH_LOOP(swap_event_client, true, FETCH_SWAP)

verbs_lat_loop verbs_lat_choose(enum verbs_op op, bool events, bool client)
{
	static const verbs_lat_loop loops[VERBS_NUM_OPS][2][2] = {
		[VERBS_SEND] = {{send_poll_server, send_poll_client},
			{send_event_server, send_event_client}},
		[VERBS_SEND_IMM] = {{imm_poll_server, imm_poll_client},
			{imm_event_server, imm_event_client}},
		[VERBS_WRITE] = {{write_server, write_client}, {NULL, NULL}},
		[VERBS_WRITE_IMM] = {{imm_poll_server, imm_poll_client},
			{imm_event_server, imm_event_client}},
		[VERBS_READ] = {{NULL, read_poll_client}, {NULL, read_event_client}},
		[VERBS_FETCH_ADD] = {{NULL, add_poll_client}, {NULL, add_event_client}},
		[VERBS_CMP_SWAP] = {{NULL, swap_poll_client}, {NULL, swap_event_client}},
	};

	return loops[op][events][client];
}

verbs_lat_loop verbs_lat_choose_shared(enum verbs_op op, bool events, bool client)
{
	static const verbs_lat_loop loops[VERBS_NUM_OPS][2][2] = {
		[VERBS_SEND] = {{shared_send_poll_server, shared_send_poll_client},
			{shared_send_event_server, shared_send_event_client}},
		[VERBS_SEND_IMM] = {{shared_imm_poll_server, shared_imm_poll_client},
			{shared_imm_event_server, shared_imm_event_client}},
		[VERBS_WRITE_IMM] = {{shared_imm_poll_server, shared_imm_poll_client},
			{shared_imm_event_server, shared_imm_event_client}},
	};

	return verbs_ops[op].takes_receive ? loops[op][events][client]
					   : verbs_lat_choose(op, events, client);
}
