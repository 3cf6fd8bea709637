// SPDX-License-Identifier: Apache-2.0
/*
 * Latency over transports that acknowledge nothing (UC, UD). A message or its answer may be lost
 * without anybody being told, so that no wait here is for ever: the requester gives a message up
 * after its lost_ns, counts it and goes on; the target stops when all of a batch were seen or when
 * nothing has come for longer than the requester ever waits (VERBS_SILENCE).
 *
 * The last byte of each message numbers it, so that a late answer is never taken for the answer to
 * the message after it. Both ends know the number that a batch ends with, whatever was lost.
 */
#include "verbs/loops.h"

#include <errno.h>
#include <string.h>

#include "verbs/wc.h"

#define INLINE      static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/** How a message shows that it is there. */
enum arrival { ARRIVE_MEMORY, ARRIVE_POLL, ARRIVE_EVENT };

static __attribute__((noinline, cold)) int post_failed(struct verbs_lat *l, int err)
{
	return fb_fail(
		l->wait.e, FB_EXIT_UNMEASURED, err, "posting a %s: %s", l->what, strerror(err));
}

/* Our own sends can fail too (the link is down): then no answer will come. */
static __attribute__((noinline)) int look_at_sends(struct verbs_lat *l)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(l->tx.cq, 1, &wc);

	if (n < 0)
		return post_failed(l, EIO);
	if (n == 0)
		return 0;
	if (wc.status != IBV_WC_SUCCESS)
		return verbs_wc_fail(l->wait.e, &wc, l->what);
	l->unsignaled = 0;
	return 0;
}

/* @return 1: waited for longer than `limit`; 0: go on; -errno */
static __attribute__((noinline)) int wait_slow(
	struct verbs_lat *l, uint64_t limit, uint64_t *since, uint64_t *asked)
{
	uint64_t now = fb_clock_ns();
	int rc = look_at_sends(l);

	if (!*since)
		*since = *asked = now;
	if (rc == 0 && now - *asked > VERBS_PATIENCE_NS) {
		*asked = now;
		rc = verbs_wait_check(&l->wait);
	}
	return rc ? rc : now - *since > limit;
}

/* Is there a completion of a receive? @return 1, 0, -errno */
INLINE int came(struct verbs_lat *l, bool imm)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(l->rx.cq, 1, &wc);

	if (n == 0)
		return 0;
	if (UNLIKELY(n < 0))
		return post_failed(l, EIO);
	if (UNLIKELY(wc.status != IBV_WC_SUCCESS))
		return verbs_wc_fail(l->wait.e, &wc, l->what);
	l->owed++;
	if (imm)
		l->wrong += (wc.imm_data ^ verbs_imm(0)) & htonl(0xffffff00u) ? 1 : 0;
	return 1;
}

/**
 * Wait for a message numbered `want`, or, with any set, for one that is numbered otherwise than the
 * last. @return 1, 0 when it did not come within `limit`, -errno
 */
INLINE int await(
	struct verbs_lat *l, uint8_t number, bool any, uint64_t limit, enum arrival how, bool imm)
{
	uint64_t since = 0, asked = 0;
	unsigned spins = 0;

	for (;;) {
		int rc = how == ARRIVE_MEMORY ? 1 : came(l, imm);
		if (UNLIKELY(rc < 0))
			return rc;
		if (rc && (any ? *l->recv_last != number : *l->recv_last == number))
			return 1;
		if (how == ARRIVE_EVENT) {
			rc = verbs_cq_sleep(&l->rx, &l->wait);
			if (rc == 0)
				rc = wait_slow(l, limit, &since, &asked);
		} else {
			rc = ++spins % VERBS_SPINS == 0 ? wait_slow(l, limit, &since, &asked) : 0;
		}
		if (UNLIKELY(rc))
			return rc > 0 ? 0 : rc;
	}
}

/* Number the message, post it, and post again the receives that were consumed. */
INLINE int say(struct verbs_lat *l, uint8_t number, bool imm)
{
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;
	int err;

	*l->send_last = number;
	if (imm)
		l->wr.imm_data = verbs_imm(number);
	l->wr.send_flags = l->flags | (++l->unsignaled == l->signal_every ? IBV_SEND_SIGNALED : 0u);
	err = ibv_post_send(l->qp, &l->wr, &bad);
	for (; !err && l->owed; l->owed--)
		err = ibv_post_recv(l->qp, &l->rwr, &bad_recv);
	return UNLIKELY(err) ? post_failed(l, err) : 0;
}

/* Outside the measured time: the completion of a send comes whether or not it arrives. */
static int reap(struct verbs_lat *l)
{
	uint64_t since = 0;
	unsigned spins = 0;

	while (l->unsignaled >= l->signal_every) {
		int rc = look_at_sends(l);
		if (rc == 0 && l->unsignaled && ++spins % VERBS_SPINS == 0)
			rc = verbs_wait_slow(&l->wait, &since);
		if (rc)
			return rc;
	}
	return 0;
}

static __attribute__((noinline, cold)) int count_lost(struct verbs_lat *l)
{
	l->lost++;
	if (++l->lost_in_row < VERBS_LOST_IN_ROW)
		return 0;
	fb_fail(l->wait.e, FB_EXIT_UNMEASURED, ETIMEDOUT,
		"%s: no answer to %d messages in a row, %d ms each", l->what, VERBS_LOST_IN_ROW,
		(int)(l->lost_ns / 1000000));
	fb_hint(l->wait.e,
		"is the peer alive, is its link up? ping its GID's address from this netdev; --transport "
		"rc tells which way is dead");
	return -ETIMEDOUT;
}

INLINE int client(
	struct verbs_lat *l, uint64_t iters, struct fb_sink *s, enum arrival how, bool imm)
{
	uint64_t t0 = fb_clock_ns(), t1;
	int got = 1;

	for (uint64_t i = 0; i < iters; i++) {
		int rc = say(l, ++l->seq, imm);
		if (UNLIKELY(rc))
			return rc;
		got = await(l, l->seq, false, l->lost_ns, how, imm);
		t1 = fb_clock_ns();
		if (got > 0) {
			s->ns[s->n++] = (t1 - t0 + 1) >> 1;
			l->lost_in_row = 0;
		} else if (got < 0 || (rc = count_lost(l)) != 0) {
			return got < 0 ? got : rc;
		}
		t0 = t1;
		if (UNLIKELY(l->unsignaled >= l->signal_every)) {
			if ((rc = reap(l)) != 0)
				return rc;
			t0 = fb_clock_ns();
		}
	}
	/* The target may have missed the last one: told again, it need not sit the silence out.
	 * When it has seen it, it has left, and no answer comes: nobody minds. */
	for (int i = 0; got == 0 && i < VERBS_FAREWELLS; i++) {
		int rc = say(l, l->seq, imm);
		if (rc || (rc = reap(l)) != 0)
			return rc;
		got = await(l, l->seq, false, l->lost_ns / VERBS_FAREWELLS, how, imm);
	}
	return got < 0 ? got : 0;
}

INLINE int server(struct verbs_lat *l, uint64_t iters, enum arrival how, bool imm)
{
	uint8_t end = (uint8_t)(l->seq + iters);
	uint64_t seen = 0;

	while (seen < iters) {
		int rc = await(l, l->heard, true, l->silence_ns, how, imm);
		uint8_t number = *l->recv_last, ahead = (uint8_t)(number - l->seq);
		if (UNLIKELY(rc < 0))
			return rc;
		if (UNLIKELY(rc == 0))
			break;
		l->heard = number;
		/* Not newer than the last: late or told twice, and its answer was given up long
		 * ago. */
		if (UNLIKELY(ahead == 0 || ahead >= 128))
			continue;
		seen += ahead;
		l->seq = number;
		if (UNLIKELY((rc = say(l, number, imm)) != 0) || UNLIKELY((rc = reap(l)) != 0))
			return rc;
	}
	/* The memory is the requester's to write: the first message of the next batch may be there.
	 */
	l->seq = end;
	return 0;
}

#define LOOPS(name, how, imm)                                                            \
	static int name##_client(struct verbs_lat *l, uint64_t iters, struct fb_sink *s) \
	{                                                                                \
		return client(l, iters, s, how, imm);                                    \
	}                                                                                \
	static int name##_server(struct verbs_lat *l, uint64_t iters, struct fb_sink *s) \
	{                                                                                \
		(void)s;                                                                 \
		return server(l, iters, how, imm);                                       \
	}
LOOPS(send_poll, ARRIVE_POLL, false)
LOOPS(send_event, ARRIVE_EVENT, false)
LOOPS(imm_poll, ARRIVE_POLL, true)
LOOPS(imm_event, ARRIVE_EVENT, true)
LOOPS(write_memory, ARRIVE_MEMORY, false)

verbs_lat_loop verbs_lat_choose_lossy(enum verbs_op op, bool events, bool client)
{
	static const verbs_lat_loop loops[VERBS_NUM_OPS][2][2] = {
		[VERBS_SEND] = {{send_poll_server, send_poll_client},
			{send_event_server, send_event_client}},
		[VERBS_SEND_IMM] = {{imm_poll_server, imm_poll_client},
			{imm_event_server, imm_event_client}},
		[VERBS_WRITE] = {{write_memory_server, write_memory_client}, {NULL, NULL}},
		[VERBS_WRITE_IMM] = {{imm_poll_server, imm_poll_client},
			{imm_event_server, imm_event_client}},
	};

	return loops[op][events][client];
}
