/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations and transports as tables: what an operation posts, needs of its target, completes
 * where, and how its latency is defined; what a transport's queue pair must be told in each state.
 * A new operation or transport is a row here; loops and connections read rows and never switch on
 * a kind.
 */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bound.h"
#include "bench/core/err.h"

enum verbs_op { VERBS_SEND, VERBS_WRITE, VERBS_READ, VERBS_NUM_OPS };
enum verbs_transport { VERBS_RC, VERBS_NUM_TRANSPORTS };
enum verbs_bench_kind { VERBS_LATENCY, VERBS_BANDWIDTH, VERBS_NUM_BENCHES };

struct verbs_op_info {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum fb_rdma_op wire;  /**< its headers, for the bound */
	unsigned access;       /**< remote access that the target's memory must grant */
	bool takes_receive;    /**< consumes a receive at the target, which completes there */
	bool fetches;          /**< data flows towards the requester (read) */
	bool inlines;          /**< IBV_SEND_INLINE is allowed */
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
	bool acked; /**< the requester learns that the target has the data */
};
extern const struct verbs_transport_info verbs_transports[VERBS_NUM_TRANSPORTS];
extern const char *const verbs_transport_names[]; /**< for option tables, NULL-terminated */
extern const char *const verbs_bench_names[];     /**< "latency", "bandwidth", NULL */

/**
 * "send,write" -> list of operations, each at most once. @return how many, or -EINVAL with the
 * nearest valid word (exit 2)
 */
int verbs_parse_ops(const char *text, int ops[VERBS_NUM_OPS], struct fb_err *e) FB_MUST_CHECK;

/** May these go together? 0, or -EINVAL naming what the standard or the test rules out (exit 2). */
int verbs_combination(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	bool events, struct fb_err *e) FB_MUST_CHECK;

#endif
