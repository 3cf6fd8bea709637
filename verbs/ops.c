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
	[VERBS_SEND_IMM] = {.name = "send-imm",
		.opcode = IBV_WR_SEND_WITH_IMM,
		.wire = FB_RDMA_SEND_IMM,
		.takes_receive = true,
		.inlines = true,
		.immediate = true,
		.min_size = 0,
		.latency =
			"half of the round trip of a send with immediate answered by one; each side "
			"waits for its receive completion",
		.bandwidth =
			"message bytes of sends with immediate the peer has acknowledged, over first "
			"post to last completion"},
	[VERBS_WRITE_IMM] = {.name = "write-imm",
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.wire = FB_RDMA_WRITE_IMM,
		.access = IBV_ACCESS_REMOTE_WRITE,
		.takes_receive = true,
		.inlines = true,
		.immediate = true,
		.min_size = 0,
		.latency =
			"half of the round trip of a write with immediate answered by one; each side "
			"waits for its receive completion, which comes after all of the data: valid "
			"also where the NIC places data out of order",
		.bandwidth =
			"message bytes of writes with immediate the peer has acknowledged, over first "
			"post to last completion"},
	[VERBS_FETCH_ADD] = {.name = "fetch-add",
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wire = FB_RDMA_FETCH_ADD,
		.access = IBV_ACCESS_REMOTE_ATOMIC,
		.fetches = true,
		.atomic = true,
		.min_size = 8,
		.latency =
			"full round trip: from posting the fetch-and-add to the completion that brings "
			"the old value",
		.bandwidth =
			"completed fetch-and-adds of all queue pairs on one 8-byte word, over first post "
			"to last completion"},
	[VERBS_CMP_SWAP] = {.name = "cmp-swap",
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wire = FB_RDMA_CMP_SWAP,
		.access = IBV_ACCESS_REMOTE_ATOMIC,
		.fetches = true,
		.atomic = true,
		.min_size = 8,
		.latency =
			"full round trip: from posting the compare-and-swap to the completion that "
			"brings the old value",
		.bandwidth =
			"completed compare-and-swaps, one 8-byte word for each queue pair, over first "
			"post to last completion"},
};

#define SENDS  (1u << VERBS_SEND | 1u << VERBS_SEND_IMM)
#define WRITES (1u << VERBS_WRITE | 1u << VERBS_WRITE_IMM)
#define ALL    ((1u << VERBS_NUM_OPS) - 1)

const struct verbs_transport_info verbs_transports[VERBS_NUM_TRANSPORTS] = {
	[VERBS_RC] = {.name = "rc",
		.type = IBV_QPT_RC,
		.ops = ALL,
		.init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.acked = true},
	[VERBS_UC] = {.name = "uc",
		.type = IBV_QPT_UC,
		.ops = SENDS | WRITES,
		.init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN,
		.rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN,
		.qp_access = IBV_ACCESS_REMOTE_WRITE},
	[VERBS_UD] = {.name = "ud",
		.type = IBV_QPT_UD,
		.ops = SENDS,
		.init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.rtr_mask = IBV_QP_STATE,
		.rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN,
		.datagram = true},
	[VERBS_XRC] = {.name = "xrc",
		.type = IBV_QPT_XRC_SEND,
		.ops = ALL,
		.init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			    IBV_QP_RQ_PSN,
		.rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		.qp_access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.acked = true,
		.shared = true},
};

const char *const verbs_transport_names[] = {"rc", "uc", "ud", "xrc", NULL};
const char *const verbs_bench_names[] = {
	"latency", "bandwidth", "load", "incast", "loss-sweep", NULL};

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
	fb_fail_usage(e,
		"--op %s: no such operation; there are send, send-imm, write, write-imm, read, "
		"fetch-add and cmp-swap",
		copy);
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

int verbs_parse_transport(const char *text, struct fb_err *e)
{
	static const char *const left_out[] = {"dc", "srd"};

	if (!text)
		return VERBS_RC;
	for (int i = 0; i < VERBS_NUM_TRANSPORTS; i++)
		if (!strcmp(text, verbs_transports[i].name))
			return i;
	for (unsigned i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
		if (strcmp(text, left_out[i]) != 0)
			continue;
		fb_fail_usage(e,
			"--transport %s is left out: one vendor's own, and no part of the standard",
			text);
		fb_hint(e, "measure the fabric with --transport rc; the vendor's own tool has %s",
			text);
		return -EINVAL;
	}
	fb_fail_usage(e, "--transport %s: no such transport; there are rc, uc, ud and xrc", text);
	return -EINVAL;
}

int verbs_combination(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	bool events, struct fb_err *e)
{
	const struct verbs_transport_info *t = &verbs_transports[transport];

	if (!(t->ops & 1u << op)) {
		fb_fail_usage(e, "the transport %s has no %s operation: %s", t->name,
			verbs_ops[op].name,
			t->datagram ? "unreliable datagrams carry sends alone (IBTA vol. 1, 9.8.3)"
				    : "an unreliable connection carries sends and writes alone, as "
				      "nothing comes back (IBTA vol. 1, 9.8.2)");
		fb_hint(e, "measure %s with --transport rc", verbs_ops[op].name);
		return -EINVAL;
	}
	if (bench == VERBS_LATENCY && op == VERBS_WRITE && events) {
		fb_fail_usage(e,
			"write latency cannot wait for events: an RDMA write completes nothing at "
			"the receiver, so that there is no event to wait for");
		fb_hint(e, "leave --events out, or measure --op write-imm with events");
		return -EINVAL;
	}
	return 0;
}

int verbs_size_fits(enum verbs_bench_kind bench, enum verbs_op op, enum verbs_transport transport,
	uint64_t size, unsigned path_mtu, struct fb_err *e)
{
	const struct verbs_op_info *o = &verbs_ops[op];
	const struct verbs_transport_info *t = &verbs_transports[transport];
	unsigned mtu = path_mtu ? path_mtu : 4096;

	if (o->atomic && size != 8) {
		fb_fail_usage(
			e, "%s works on 8 bytes, not on %llu", o->name, (unsigned long long)size);
		fb_hint(e, "leave --size out, or give --size 8");
		return -EINVAL;
	}
	if (size < o->min_size || (bench == VERBS_BANDWIDTH && !size))
		return fb_fail_usage(e, "%s of %llu bytes cannot be measured", o->name,
			(unsigned long long)size);
	if (!t->acked && !size)
		return fb_fail_usage(e,
			"an empty %s over %s cannot be measured: its last byte is what tells a late "
			"message from a lost one",
			o->name, t->name);
	if (t->datagram && size > mtu) {
		fb_fail_usage(e,
			"a datagram of %llu bytes does not fit into one packet: the path MTU is %s%u "
			"bytes",
			(unsigned long long)size, path_mtu ? "" : "at most ", mtu);
		fb_hint(e, "give --size %u or less, or --transport rc or uc", mtu);
		return -EINVAL;
	}
	return 0;
}

int verbs_port_takes(
	uint32_t max_msg_sz, const char *device, unsigned port, uint64_t size, struct fb_err *e)
{
	char text[32];

	if (!max_msg_sz || size <= max_msg_sz) /* 0: the device does not tell */
		return 0;
	fb_fail_usage(e, "a message of %llu bytes is above what %s port %u takes: %u (max_msg_sz)",
		(unsigned long long)size, device, port, max_msg_sz);
	fb_hint(e, "give --size %s or less", fb_fmt_size_exact(max_msg_sz, text, sizeof text));
	return -EINVAL;
}

int verbs_device_offers(const struct ibv_device_attr *a, const char *device, enum verbs_op op,
	enum verbs_transport transport, struct fb_err *e)
{
	if (transport == VERBS_XRC && !(a->device_cap_flags & IBV_DEVICE_XRC)) {
		fb_fail(e, FB_EXIT_SKIP, EOPNOTSUPP,
			"%s does not offer the transport xrc: its capabilities lack IBV_DEVICE_XRC",
			device);
		fb_hint(e, "use --transport rc, or a device whose ibv_devinfo -v lists XRC");
		return -EOPNOTSUPP;
	}
	if (verbs_ops[op].atomic && a->atomic_cap == IBV_ATOMIC_NONE) {
		fb_fail(e, FB_EXIT_SKIP, EOPNOTSUPP,
			"%s does not offer %s: its atomic_cap is ATOMIC_NONE", device,
			verbs_ops[op].name);
		fb_hint(e, "look at atomic_cap in ibv_devinfo -v; leave atomics out of --op");
		return -EOPNOTSUPP;
	}
	return 0;
}
