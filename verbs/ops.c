// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of ops.h and what they rule out. Masks: IBTA vol. 1, 11.2.5 (Modify QP), tables of
 * required and optional attributes.
 */
#include "verbs/ops.h"

#include <errno.h>
#include <string.h>

#include "bench/core/units.h"

const struct verbs_op_info verbs_ops[VERBS_NUM_OPS] = {
	[VERBS_SEND] = {.name = "send",
		.opcode = IBV_WR_SEND,
		.wire = FB_RDMA_SEND,
		.takes_receive = true,
		.inlines = true,
		.min_size = 0,
		.latency =
			"half of the round trip of a send answered by a send; each side waits for its "
			"receive completion",
		.bandwidth =
			"message bytes of sends the peer has acknowledged, over first post to last "
			"completion"},
	[VERBS_WRITE] = {.name = "write",
		.opcode = IBV_WR_RDMA_WRITE,
		.wire = FB_RDMA_WRITE,
		.access = IBV_ACCESS_REMOTE_WRITE,
		.inlines = true,
		.min_size = 1,
		.latency =
			"half of the round trip of a write answered by a write; each side polls the "
			"last byte of its memory, which is valid only where the NIC places data in "
			"order",
		.bandwidth =
			"message bytes of writes the peer has acknowledged, over first post to last "
			"completion"},
	[VERBS_READ] = {.name = "read",
		.opcode = IBV_WR_RDMA_READ,
		.wire = FB_RDMA_READ,
		.access = IBV_ACCESS_REMOTE_READ,
		.fetches = true,
		.min_size = 1,
		.latency = "full round trip: from posting the read to its completion",
		.bandwidth =
			"message bytes of completed reads, over first post to last completion"},
};

const struct verbs_transport_info verbs_transports[VERBS_NUM_TRANSPORTS] = {
	[VERBS_RC] = {.name = "rc",
		.type = IBV_QPT_RC,
		.ops = 1u << VERBS_SEND | 1u << VERBS_WRITE | 1u << VERBS_READ,
		.init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		.acked = true},
};

const char *const verbs_transport_names[] = {"rc", NULL};
const char *const verbs_bench_names[] = {"latency", "bandwidth", NULL};

static int op_by_name(const char *word, size_t len, struct fb_err *e)
{
	char copy[32];
	unsigned best = 0, best_distance = ~0u;

	if (len >= sizeof copy)
		len = sizeof copy - 1;
	memcpy(copy, word, len);
	copy[len] = '\0';
	for (unsigned i = 0; i < VERBS_NUM_OPS; i++) {
		unsigned d;
		if (!strcmp(copy, verbs_ops[i].name))
			return (int)i;
		d = fb_edit_distance(copy, verbs_ops[i].name);
		if (d < best_distance) {
			best_distance = d;
			best = i;
		}
	}
	fb_fail_usage(e, "--op %s: no such operation; there are send, write and read", copy);
	if (best_distance <= 2)
		fb_hint(e, "did you mean --op %s?", verbs_ops[best].name);
	return -EINVAL;
}

int verbs_parse_ops(const char *text, int ops[VERBS_NUM_OPS], struct fb_err *e)
{
	int n = 0;
	unsigned seen = 0;

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int op = op_by_name(p, len, e);
		if (op < 0)
			return op;
		if (!(seen & 1u << op))
			ops[n++] = op;
		seen |= 1u << op;
		p += len;
		if (!*p)
			return n;
	}
}

int verbs_combination(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	bool events, struct fb_err *e)
{
	if (!(verbs_transports[transport].ops & 1u << op))
		return fb_fail_usage(e, "the transport %s has no %s operation",
			verbs_transports[transport].name, verbs_ops[op].name);
	if (bench == VERBS_LATENCY && op == VERBS_WRITE && events) {
		fb_fail_usage(e,
			"write latency cannot wait for events: an RDMA write completes nothing at "
			"the receiver, so that there is no event to wait for");
		fb_hint(e, "leave --events out, or measure --op send or --op read with events");
		return -EINVAL;
	}
	return 0;
}
