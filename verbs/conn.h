/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rail ready to run: protection domain, registered memory, completion queues and queue pairs of
 * one device, and their connection to the peer's. What differs between transports comes from the
 * table in ops.h.
 *
 * Memory of a rail, the same layout at both ends (so that one base address is enough):
 *   send areas, one span for each QP | receive areas, `slots` spans for each QP |
 *   credits the peer writes, 8 bytes for each QP | credits we write from, 8 bytes for each QP
 * The CPU reads and writes credits, so that with GPU memory they lie in a region of their own.
 */
#ifndef VERBS_CONN_H
#define VERBS_CONN_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/oob/oob.h"
#include "verbs/addr.h"
#include "verbs/dev.h"
#include "verbs/params.h"

/** Q_Key of our datagram queue pairs; below 2^31, where it needs no privilege (IBTA vol.
 * 1, 10.2.4). */
#define VERBS_QKEY 0x0fab1c00u
/** What a datagram's receive holds before the payload: the GRH, or the place of one. */
#define VERBS_GRH 40
/** Send queue slots beyond --depth, for credit writes. */
#define VERBS_CREDIT_SLOTS 8

struct verbs_cm;

struct verbs_rail {
	struct verbs_dev *dev; /**< borrowed */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *tx_ch, *rx_ch; /**< only with events */
	struct ibv_cq *tx_cq, *rx_cq;
	struct ibv_qp **qp;
	unsigned nqp;
	uint32_t *psn;
	struct verbs_mem mem;
	uint8_t *host; /**< what the CPU fills and checks: buf, or a copy of the GPU's with its
			  layout */
	uint8_t *buf;
	size_t buf_len;
	struct verbs_mem ctl_mem; /**< credits, where the CPU cannot reach buf; else empty */
	struct ibv_mr *ctl_mr;    /**< what credits are registered with: mr, or their own */
	uint8_t *ctl;             /**< credits: the tail of buf, or ctl_mem */
	size_t span;              /**< bytes of one message's area */
	unsigned slots; /**< receive areas of each QP, taken in turn: so many messages at the end of
			   a batch can be looked at */
	size_t grh; /**< bytes before the payload of a receive: VERBS_GRH for datagrams, else 0 */
	enum verbs_transport transport;
	struct verbs_xrc *xrc; /**< shared receive queues only: what receives */
	struct ibv_ah *ah;     /**< datagrams only: the way to the peer */
	int mem_node;          /**< NUMA node of the memory; -1: where the system put it */
	struct verbs_end local, remote;
	uint32_t *remote_qpn, *remote_psn;
	struct verbs_cm *cm;   /**< with --rdma-cm; else NULL */
	struct verbs_gid used; /**< what the first QP's address vector names; see used_known */
	unsigned used_tc;      /**< its traffic class */
	bool used_known;
	unsigned inline_cap;                   /**< bytes a send may carry inline */
	unsigned path_mtu;                     /**< bytes */
	unsigned qp_timeout, retry, rnr_retry; /**< in effect */
};

/** Where in a rail's memory, in bytes, what queue pair q sends stands; what it receives; one slot
 * of that. */
static inline size_t verbs_send_off(const struct verbs_rail *r, unsigned q)
{
	return (size_t)q * r->span;
}
static inline size_t verbs_recv_off(const struct verbs_rail *r, unsigned q)
{
	return ((size_t)r->nqp + (size_t)q * r->slots) * r->span;
}
static inline size_t verbs_slot_off(const struct verbs_rail *r, unsigned q, unsigned slot)
{
	return verbs_recv_off(r, q) + slot * r->span;
}
/** Where the payload of what was received in the first slot begins. */
static inline size_t verbs_data_off(const struct verbs_rail *r, unsigned q)
{
	return verbs_recv_off(r, q) + r->grh;
}
static inline size_t verbs_credit_off(const struct verbs_rail *r, unsigned q)
{
	return (size_t)r->nqp * (1 + r->slots) * r->span + q * sizeof(uint64_t);
}
static inline size_t verbs_credit_src_off(const struct verbs_rail *r, unsigned q)
{
	return verbs_credit_off(r, r->nqp + q);
}
/** Credits of a QP: what the peer writes, and what we write to it from. */
static inline volatile uint64_t *verbs_credit_in(const struct verbs_rail *r, unsigned q)
{
	return (volatile uint64_t *)(void *)r->ctl + q;
}
static inline uint64_t *verbs_credit_out(const struct verbs_rail *r, unsigned q)
{
	return (uint64_t *)(void *)r->ctl + r->nqp + q;
}

/**
 * Everything local: memory on `mem_node` (-1: anywhere) registered, queues and QPs in INIT,
 * receives posted. @return 0; -ENOMEM with RLIMIT_MEMLOCK and its remedy; -EINVAL for what the
 * device refuses, with its limits
 */
int verbs_rail_open(struct verbs_rail *r, struct verbs_dev *dev, const struct verbs_params *p,
	int mem_node, struct fb_err *e) FB_MUST_CHECK;
/** Make the device's memory what `host` is, and the other way round; nothing to do for host memory.
 * @return 0 or the plug-in's error */
int verbs_rail_push(struct verbs_rail *r, struct fb_err *e) FB_MUST_CHECK;
int verbs_rail_pull(struct verbs_rail *r, struct fb_err *e) FB_MUST_CHECK;
/** Safe on a zeroed or half-opened rail. */
void verbs_rail_close(struct verbs_rail *r);

/**
 * Exchange descriptions with the peer, compare them, and bring every QP of every rail to RTS.
 * Collective over the two ranks of o; ends with a barrier, after which packets may flow.
 * @return 0, -EPROTO with both values of what differs, an oob error
 */
int verbs_connect(struct verbs_rail *rails, unsigned n, const struct verbs_params *p,
	struct fb_oob *o, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;

/**
 * The request of an operation on QP q, but for its flags: opcode, and where at the peer it goes. An
 * immediate carries the number of the QP. Fetch-and-adds of all QPs meet in one word, at the start
 * of the first receive area; compare-and-swaps have one for each QP.
 */
void verbs_request(const struct verbs_rail *r, unsigned q, enum verbs_op op, struct ibv_send_wr *wr,
	struct ibv_sge *sge, uint64_t size);

/** Let a request made by verbs_request() use that slot of the receive area instead of the first.
 * For writes, the peer's; for reads, our own; an atomic has one word, and a send no say. */
void verbs_request_slot(const struct verbs_rail *r, enum verbs_op op, unsigned slot,
	struct ibv_send_wr *wr, struct ibv_sge *sge);

/** Ack timeout, retries and RNR retries in effect for a driver. Exposed for tests. */
void verbs_qp_defaults(const char *driver, const struct verbs_params *p, unsigned *timeout,
	unsigned *retry, unsigned *rnr_retry);

/** Fill and verify the pattern of a message: depends on the sender's rank, the QP and the offset.
 * @return 0, or the 1-based offset of the first wrong byte */
void verbs_pattern_fill(uint8_t *p, size_t len, unsigned rank, unsigned q);
size_t verbs_pattern_check(const uint8_t *p, size_t len, unsigned rank, unsigned q);

#endif
