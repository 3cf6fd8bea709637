/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations and transports as tables: what an operation posts, needs of its target, completes
 * where, and how its latency is defined; what a transport's queue pair must be told in each state.
 * A new operation or transport is a row here; loops and connections read rows and never switch on
 * a kind.
 */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bound.h"
#include "bench/core/err.h"

enum verbs_op {
	VERBS_SEND,
	VERBS_WRITE,
	VERBS_READ,
	VERBS_SEND_IMM,
	VERBS_WRITE_IMM,
	VERBS_FETCH_ADD,
	VERBS_CMP_SWAP,
	VERBS_NUM_OPS
};
enum verbs_transport { VERBS_RC, VERBS_UC, VERBS_UD, VERBS_XRC, VERBS_NUM_TRANSPORTS };
enum verbs_bench_kind {
	VERBS_LATENCY,
	VERBS_BANDWIDTH,
	VERBS_LOAD,
	VERBS_INCAST,
	VERBS_LOSS,
	VERBS_NUM_BENCHES
};

struct verbs_op_info {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum fb_rdma_op wire;  /**< its headers, for the bound */
	unsigned access;       /**< remote access that the target's memory must grant */
	bool takes_receive;    /**< consumes a receive at the target, which completes there */
	bool fetches;          /**< data flows towards the requester (read) */
	bool inlines;          /**< IBV_SEND_INLINE is allowed */
	bool immediate;        /**< carries 32 bits that complete with it at the target */
	bool atomic;           /**< 8 bytes of the target's memory, read and changed at once */
	uint64_t min_size;     /**< smallest message the latency loop can tell from silence */
	const char *latency;   /**< definition stated beside each latency */
	const char *bandwidth; /**< definition stated beside each bandwidth */
};
extern const struct verbs_op_info verbs_ops[VERBS_NUM_OPS];

struct verbs_transport_info {
	const char *name;
	enum ibv_qp_type type;
	unsigned ops;  /**< 1 << enum verbs_op that it carries */
	int init_mask; /**< attributes of RESET -> INIT, INIT -> RTR, RTR -> RTS */
	int rtr_mask;
	int rts_mask;
	int qp_access; /**< IBV_ACCESS_REMOTE_* its queue pairs may grant */
	bool acked;    /**< the requester learns that the target has the data */
	bool datagram; /**< one packet a message, an address handle, a GRH in each receive */
	bool shared;   /**< receives belong to a shared receive queue, not to the queue pair */
};
extern const struct verbs_transport_info verbs_transports[VERBS_NUM_TRANSPORTS];
extern const char *const verbs_transport_names[]; /**< "rc", "uc", "ud", "xrc", NULL */
extern const char *const verbs_bench_names[];     /**< "latency", "bandwidth", ... NULL */

/**
 * "send,write" -> list of operations, each at most once. @return how many, or -EINVAL with the
 * nearest valid word (exit 2)
 */
int verbs_parse_ops(const char *text, int ops[VERBS_NUM_OPS], struct fb_err *e) FB_MUST_CHECK;

/** "rc", "uc", "ud", "xrc"; NULL is rc. @return enum verbs_transport, or -EINVAL (exit 2): dc and
 * srd are known and left out, each one vendor's own */
int verbs_parse_transport(const char *text, struct fb_err *e) FB_MUST_CHECK;

/** May these go together? 0, or -EINVAL naming what the standard or the test rules out (exit 2). */
int verbs_combination(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	bool events, struct fb_err *e) FB_MUST_CHECK;

/** An immediate in network order: our mark and 16 bits of a sequence or of a QP's number. */
static inline uint32_t verbs_imm(unsigned v)
{
	return htonl(0xfab00000u | (v & 0xffff));
}

/**
 * Can a message of that size be told from silence, and does the transport carry it? Soft-RoCE
 * completes a datagram above the MTU without sending it, so that this is asked first.
 * @param path_mtu bytes, 0: not known yet, the largest there is @return 0 or -EINVAL (exit 2)
 */
int verbs_size_fits(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	uint64_t size, unsigned path_mtu, struct fb_err *e) FB_MUST_CHECK;
/** Does the port take messages of this size? @param max_msg_sz of its attributes, bytes; 0: not
 * told
 * @return 0 or -EINVAL (exit 2) with the limit */
int verbs_port_takes(uint32_t max_msg_sz, const char *device, unsigned port, uint64_t size,
	struct fb_err *e) FB_MUST_CHECK;
/** Has the device what it needs for that? 0, or -EOPNOTSUPP naming what it lacks (exit 77). */
int verbs_device_offers(const struct ibv_device_attr *a, const char *device, enum verbs_op op,
	enum verbs_transport transport, struct fb_err *e) FB_MUST_CHECK;

#endif
