// SPDX-License-Identifier: Apache-2.0
/*
 * Physical bounds from the header formats. Only the direction that carries the payload counts: the
 * acknowledgements of an RC connection, and the request of a read, go the other way.
 *
 * Left out, so that the bound stays a bound: InfiniBand's start and end delimiters
 * and its link packets, Ethernet's pause frames. Each would only lower it by less than 1 %.
 */
#include "bench/core/bound.h"

enum {
	BTH = 12,        /* IBTA vol. 1, 9.2: Base Transport Header */
	RETH = 16,       /* 9.3.3: address, key and length; first packet of a write */
	ATOMIC_ETH = 28, /* 9.3.4 */
	AETH = 4,        /* 9.3.6: first, last and only packet of a read response */
	IMMDT = 4,       /* 9.3.7: last packet of an operation with immediate */
	ICRC = 4,        /* 7.8.1 */
	VCRC = 2,        /* 7.8.2 */
	LRH = 8,         /* 7.7 */
	GRH = 40,        /* 8.3 */
	MAC = 14,        /* IEEE 802.3: two addresses and the type */
	VLAN_TAG = 4,    /* IEEE 802.1Q */
	FCS = 4,
	PREAMBLE_GAP = 20, /* 7 preamble + 1 start of frame + 12 gap */
	MIN_FRAME = 64,    /* from the address to the FCS */
	IPV4 = 20,
	IPV6 = 40,
	UDP = 8,
};

/* One packet, given its bytes from the BTH to the padded payload. */
static uint64_t packet_bytes(enum fb_link_layer link, bool grh, bool vlan, uint64_t transport)
{
	uint64_t frame = MAC + (vlan ? VLAN_TAG : 0) + transport + ICRC + FCS;
	switch (link) {
	case FB_LINK_INFINIBAND: return LRH + (grh ? GRH : 0) + transport + ICRC + VCRC;
	case FB_LINK_ROCE_V1: frame += GRH; break;
	case FB_LINK_ROCE_V2_IPV4: frame += IPV4 + UDP; break;
	case FB_LINK_ROCE_V2_IPV6: frame += IPV6 + UDP; break;
	}
	return (frame < MIN_FRAME ? MIN_FRAME : frame) + PREAMBLE_GAP;
}

/* Extension headers by the packet's place in the message. */
static uint64_t extensions(enum fb_rdma_op op, bool first, bool last)
{
	switch (op) {
	case FB_RDMA_SEND: return 0;
	case FB_RDMA_SEND_IMM: return last ? IMMDT : 0;
	case FB_RDMA_WRITE: return first ? RETH : 0;
	case FB_RDMA_WRITE_IMM: return (first ? RETH : 0) + (last ? IMMDT : 0);
	case FB_RDMA_READ: return first || last ? AETH : 0;
	case FB_RDMA_FETCH_ADD:
	case FB_RDMA_CMP_SWAP: return ATOMIC_ETH;
	}
	return 0;
}

uint64_t fb_wire_bytes(enum fb_link_layer link, enum fb_rdma_op op, bool grh, bool vlan,
	uint64_t msg_bytes, uint32_t mtu_bytes)
{
	if (mtu_bytes == 0)
		return 0;
	/* An atomic's operands travel in its header: there is no payload. */
	if (op == FB_RDMA_FETCH_ADD || op == FB_RDMA_CMP_SWAP)
		return packet_bytes(link, grh, vlan, BTH + ATOMIC_ETH);
	uint64_t packets = msg_bytes / mtu_bytes + (msg_bytes % mtu_bytes != 0);
	if (packets == 0)
		packets = 1;
	uint64_t tail = msg_bytes - (packets - 1) * mtu_bytes;
	uint64_t padded = tail + (-tail & 3);
	if (packets == 1)
		return packet_bytes(link, grh, vlan, BTH + extensions(op, true, true) + padded);
	return packet_bytes(link, grh, vlan, BTH + extensions(op, true, false) + mtu_bytes) +
	       (packets - 2) * packet_bytes(link, grh, vlan,
				       BTH + extensions(op, false, false) + mtu_bytes) +
	       packet_bytes(link, grh, vlan, BTH + extensions(op, false, true) + padded);
}

double fb_header_efficiency(enum fb_link_layer link, enum fb_rdma_op op, bool grh, bool vlan,
	uint64_t msg_bytes, uint32_t mtu_bytes)
{
	uint64_t wire = fb_wire_bytes(link, op, grh, vlan, msg_bytes, mtu_bytes);
	return wire ? (double)msg_bytes / (double)wire : 0;
}
