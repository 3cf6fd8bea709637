/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical bounds: what the wire allows (a PCIe link: topo_link_bandwidth()), so that every figure
 * can stand beside the share it reached. Over 101 % of a physical bound a figure is INVALID, not
 * great.
 */
#ifndef FB_CORE_BOUND_H
#define FB_CORE_BOUND_H

#include <stdbool.h>
#include <stdint.h>

enum fb_link_layer {
	FB_LINK_INFINIBAND,
	FB_LINK_ROCE_V1,
	FB_LINK_ROCE_V2_IPV4,
	FB_LINK_ROCE_V2_IPV6
};
enum fb_rdma_op {
	FB_RDMA_SEND,
	FB_RDMA_WRITE,
	FB_RDMA_READ,
	FB_RDMA_SEND_IMM,
	FB_RDMA_WRITE_IMM,
	FB_RDMA_FETCH_ADD,
	FB_RDMA_CMP_SWAP,
};

/**
 * Bytes on the wire for one message, all packets, with every header, CRC, and for Ethernet preamble
 * and gap: RoCE v2: 14 MAC + 20/40 IP + 8 UDP + 12 BTH [+16 RETH first packet of write; +4 AETH in
 * read responses] + payload (padded to 4) + 4 ICRC + 4 FCS + 20 preamble and gap; VLAN adds 4.
 * InfiniBand: 8 LRH + 12 BTH + .. + 4 ICRC + 2 VCRC. Sources: IBTA vol. 1 ch. 5-9 and annexes A16,
 * A17; IEEE 802.3.
 */
uint64_t fb_wire_bytes(enum fb_link_layer link, enum fb_rdma_op op, bool grh, bool vlan,
	uint64_t msg_bytes, uint32_t mtu_bytes);
/** msg_bytes / fb_wire_bytes(): the share of line rate that payload can reach. 0 for an empty
 * message. */
double fb_header_efficiency(enum fb_link_layer link, enum fb_rdma_op op, bool grh, bool vlan,
	uint64_t msg_bytes, uint32_t mtu_bytes);

#endif
