/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops. Each is chosen once, before the batch, for one operation, one way of waiting and
 * one role, so that nothing in it branches on configuration: post, wait, read the clock, store.
 * They know queue pairs and memory, and neither options nor sessions; a device whose operations are
 * functions of a test drives them as well as a real one.
 */
#ifndef VERBS_LOOPS_H
#define VERBS_LOOPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "verbs/meter.h"
#include "verbs/ops.h"
#include "verbs/wait.h"

/** A completion queue and how to sleep on it. */
struct verbs_cq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *ch; /**< NULL when polled */
	bool armed;
	unsigned events; /**< taken and not yet acknowledged */
};

/** What a latency loop touches. */
struct verbs_lat {
	struct ibv_qp *qp;
	struct ibv_srq *srq; /**< shared receive queues: takes the receives of the QP */
	struct verbs_cq tx, rx;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_recv_wr rwr;
	struct ibv_sge rsge;
	volatile uint8_t *recv_last; /**< write: last byte of the message in our memory */
	volatile uint8_t *send_last;
	uint8_t seq;       /**< value of the last message, where messages are numbered */
	uint8_t heard;     /**< target: the number that was in its memory last */
	uint64_t wrong;    /**< immediates and fetched values that were not the expected ones */
	uint64_t count;    /**< atomics done, and with that the next value to be fetched */
	uint64_t *fetched; /**< atomics: where the old value lands */
	uint64_t lost;     /**< unacknowledged transports: messages that no answer came for */
	unsigned lost_in_row;
	uint64_t lost_ns;      /**< how long an answer may take: VERBS_LOST_NS, or its _SOFTWARE */
	uint64_t silence_ns;   /**< target: how long nothing may come, VERBS_SILENCE and the pace */
	unsigned owed;         /**< receives to post again */
	unsigned unsignaled;   /**< sends since the last signalled one */
	unsigned signal_every; /**< one send in so many asks for a completion */
	unsigned flags;        /**< send flags but for SIGNALED */
	struct verbs_wait wait;
	const char *what; /**< for messages: "send of 64 B from rxe0 to rxe0 on node7" */
};
/**
 * Where nothing is acknowledged a message without an answer is given up after this time, counted as
 * lost, and no sample. So many in a row are a dead link. The target waits for longer than that in
 * all, so that it never leaves before the requester does. Where the CPU is the NIC, a busy machine
 * may leave a packet lying for a while that a NIC would have lost.
 */
#define VERBS_LOST_NS          250000000ull
#define VERBS_LOST_NS_SOFTWARE 500000000ull
#define VERBS_LOST_IN_ROW      8
#define VERBS_FAREWELLS        4
#define VERBS_SILENCE(lost_ns) ((lost_ns) * (VERBS_LOST_IN_ROW + 2))

/**
 * A reply proves that a send was delivered, but the send queue is only given back by completions:
 * on a NIC one send in sixteen asks for one. Soft-RoCE asks for each and waits for it, as perftest
 * does: while an acknowledgement is still being worked off, the next post wakes the kernel's
 * softirq thread, and a polling process on the same CPU then keeps it waiting for a whole tick (4
 * ms).
 */
#define VERBS_SIGNAL_EVERY          16
#define VERBS_SIGNAL_EVERY_SOFTWARE 1

typedef int (*verbs_lat_loop)(struct verbs_lat *l, uint64_t iters, struct fb_sink *s);
/** @return the loop, or NULL when this role has nothing to do (the target of a read) */
verbs_lat_loop verbs_lat_choose(enum verbs_op op, bool events, bool client);
/** The same where receives belong to shared receive queues: operations that take one. */
verbs_lat_loop verbs_lat_choose_shared(enum verbs_op op, bool events, bool client);
/** The same for transports that acknowledge nothing: messages are numbered in their last byte, and
 * sink->n is less than iters by those that were lost. */
verbs_lat_loop verbs_lat_choose_lossy(enum verbs_op op, bool events, bool client);

/** One QP in a bandwidth loop. */
struct verbs_bw_qp {
	struct ibv_qp *qp;
	struct ibv_srq *srq;       /**< shared receive queues: takes the receives of the QP */
	struct ibv_send_wr *chain; /**< post_list requests, linked; verbs_bw.slots of these, used in
				      turn */
	unsigned turn; /**< which of these comes next: the first at each batch's start */
	struct ibv_recv_wr rwr;
	struct ibv_sge rsge;
	uint64_t rx_base; /**< address of the receive area's first slot */
	unsigned rx_slot; /**< that of the next receive to be posted */
	struct ibv_send_wr credit_wr;
	struct ibv_sge credit_sge;
	volatile uint64_t *credit_in; /**< what the peer has consumed, written by it */
	uint64_t *credit_out;         /**< what we have consumed, source of the write */
	uint64_t sent;                /**< sends posted in the session, against credits */
	uint64_t consumed;            /**< receives consumed in the session */
	uint64_t consumed_before;     /**< of these, before this point */
	uint64_t credited;            /**< of these, told to the peer */
	uint64_t left;                /**< messages still to post in this batch */
	unsigned in_flight;
	unsigned unsignaled;
	unsigned credits_in_flight;
	uint32_t imm;       /**< the immediate that its messages carry */
	uint64_t next_swap; /**< compare-and-swap: what the word holds when the next one comes */
};

struct verbs_bw {
	struct verbs_bw_qp *qp;
	unsigned nqp;
	unsigned depth, rx_depth, post_list, cq_mod;
	unsigned slots; /**< receive areas of a QP, `span` bytes apart; 0 is as good as 1 */
	size_t span;
	unsigned flags; /**< send flags but for SIGNALED */
	struct verbs_cq tx, rx;
	struct verbs_wait wait;
	struct verbs_meter meter; /**< bytes over time, arrivals, and a limited rate's schedule */
	const char *what;
	uint32_t imm_mask; /**< all ones where messages carry an immediate, else 0 */
	uint32_t wrong;    /**< bits in which immediates were not the expected ones */
	uint64_t taken;    /**< lossy: messages that came in this batch */
	uint64_t taken_ns; /**< lossy: from the first of them to the last */
};
/** wr_id: QP number in the high half, messages that the completion stands for in the low; the top
 * bit marks a credit write. */
#define VERBS_WR_CREDIT (1ull << 63)

/**
 * How many of a batch's messages QP q gets: they are dealt out in turn from the first QP on,
 * `chunk` at a time. By a limited rate that is a whole post_list, else 1. Both ends must come to
 * the same.
 */
static inline uint64_t verbs_dealt(uint64_t iters, unsigned nqp, unsigned chunk, unsigned q)
{
	uint64_t whole = iters / chunk, last = whole % nqp;

	return chunk * (whole / nqp + (q < last)) + (q == last ? iters % chunk : 0);
}

/** Batch of `iters` messages in all, spread over the QPs; *elapsed from first post to last
 * completion. */
typedef int (*verbs_bw_loop)(struct verbs_bw *b, uint64_t iters, uint64_t *elapsed);
/** tx: this end sends; rx: this end consumes the peer's sends. @return NULL when there is nothing
 * to do */
verbs_bw_loop verbs_bw_choose(bool credits, bool events, bool tx, bool rx);

/** A limited rate (meter.gap_ns > 0) on an open-loop schedule; this end sends, by polling. rx: it
 * also consumes. */
verbs_bw_loop verbs_bw_choose_paced(bool credits, bool swap, bool rx);
verbs_bw_loop verbs_bw_choose_lossy_paced(bool rx);

/** As verbs_bw_choose with credits and verbs_bw_choose_paced, for receives of shared receive
 * queues. */
verbs_bw_loop verbs_bw_choose_shared(bool events, bool tx, bool rx);
verbs_bw_loop verbs_bw_choose_shared_paced(bool rx);
/** Compare-and-swaps: each request compares with what the one before it has left. */
verbs_bw_loop verbs_bw_choose_swap(bool events);
/**
 * Transports that acknowledge nothing and have no credits. The receiver counts; it ends when all
 * came, or when nothing came for VERBS_QUIET_NS (ten times that before the first message).
 */
verbs_bw_loop verbs_bw_choose_lossy(bool events, bool tx, bool rx);
#define VERBS_QUIET_NS 300000000ull
/** Take what has come after its batch's end, and post the receives again. @return messages, -errno
 */
int verbs_bw_drain(struct verbs_bw *b);

/** Acknowledge the events taken (the destruction of a CQ waits for that). */
void verbs_cq_ack(struct verbs_cq *c);
/** Sleep until the CQ may have something: at most 20 ms, then the wait is checked. @return 0 or
 * -errno */
int verbs_cq_sleep(struct verbs_cq *c, struct verbs_wait *w);

#endif
