// SPDX-License-Identifier: Apache-2.0
/* Physical bounds against figures computed by hand, header by header. */
#include "bench/core/test.h"

#include <stdbool.h>

#include "bench/core/bound.h"

#define V4  FB_LINK_ROCE_V2_IPV4
#define V6  FB_LINK_ROCE_V2_IPV6
#define V1  FB_LINK_ROCE_V1
#define IB  FB_LINK_INFINIBAND
#define ETH (14 + 4 + 20) /* MAC, FCS, preamble and gap */

static void test_wire_bytes(void **st)
{
	static const struct {
		enum fb_link_layer link;
		enum fb_rdma_op op;
		bool grh, vlan;
		uint64_t msg;
		uint32_t mtu;
		uint64_t want;
	} rows[] = {
		/* A full first packet of a write: IP length 4156 (IPv4) and 4176 (IPv6). */
		{V4, FB_RDMA_WRITE, false, false, 4096, 4096, 4156 + ETH},
		{V6, FB_RDMA_WRITE, false, false, 4096, 4096, 4176 + ETH},
		{V4, FB_RDMA_WRITE, false, true, 4096, 4096, 4156 + ETH + 4},
		/* A send has no RETH; the immediate is 4. */
		{V4, FB_RDMA_SEND, false, false, 4096, 4096, 4140 + ETH},
		{V4, FB_RDMA_SEND_IMM, false, false, 4096, 4096, 4144 + ETH},
		{V4, FB_RDMA_WRITE_IMM, false, false, 4096, 4096, 4160 + ETH},
		{V4, FB_RDMA_READ, false, false, 4096, 4096, 4144 + ETH},
		/* Three packets of a write: RETH in the first alone. */
		{V4, FB_RDMA_WRITE, false, false, 3 * 4096, 4096, 3 * (4140 + ETH) + 16},
		/* of a write with immediate: RETH in the first, ImmDt in the last */
		{V4, FB_RDMA_WRITE_IMM, false, false, 3 * 4096, 4096, 3 * (4140 + ETH) + 16 + 4},
		/* of a read response: AETH in the first and last, not in the middle */
		{V4, FB_RDMA_READ, false, false, 3 * 4096, 4096, 3 * (4140 + ETH) + 2 * 4},
		/* The last packet is short, and padded to four. */
		{V4, FB_RDMA_SEND, false, false, 4096 + 1025, 4096, 4140 + ETH + 44 + 1028 + ETH},
		/* Shorter than Ethernet allows: 14+20+8+12+2+2+4+4 = 66 > 64; empty: 62, filled
		   to 64. */
		{V4, FB_RDMA_SEND, false, false, 2, 1024, 66 + 20},
		{V4, FB_RDMA_SEND, false, false, 0, 1024, 64 + 20},
		{V4, FB_RDMA_SEND, false, true, 0, 1024, 66 + 20},
		/* RoCE v1: a GRH where v2 has IP and UDP. */
		{V1, FB_RDMA_SEND, false, false, 1024, 1024, 40 + 12 + 1024 + 4 + ETH},
		/* InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2; GRH 40 across subnets. */
		{IB, FB_RDMA_SEND, false, false, 4096, 4096, 4096 + 26},
		{IB, FB_RDMA_SEND, true, false, 4096, 4096, 4096 + 66},
		{IB, FB_RDMA_WRITE, false, false, 8192, 4096, 2 * (4096 + 26) + 16},
		{IB, FB_RDMA_SEND, false, false, 0, 4096, 26},
		/* Atomics carry their operands in a header of 28. */
		{IB, FB_RDMA_FETCH_ADD, false, false, 8, 4096, 8 + 12 + 28 + 4 + 2},
		{V4, FB_RDMA_CMP_SWAP, false, false, 8, 4096, 20 + 8 + 12 + 28 + 4 + ETH},
		/* 1 GiB, without a loop over packets. */
		{V4, FB_RDMA_WRITE, false, false, UINT64_C(1) << 30, 4096,
			UINT64_C(262144) * (4140 + ETH) + 16},
		{V4, FB_RDMA_WRITE, false, false, 4096, 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t got = fb_wire_bytes(rows[i].link, rows[i].op, rows[i].grh, rows[i].vlan,
			rows[i].msg, rows[i].mtu);
		if (got != rows[i].want)
			fail_msg("row %zu: %lu, not %lu", i, (unsigned long)got,
				(unsigned long)rows[i].want);
	}
}

static void test_efficiency(void **st)
{
	/* 4096 / (4096+14+20+8+12+16+4+4+20) = 97.7 %; at an MTU of 1024 a long write reaches 92.6
	 * %. */
	assert_float_equal(fb_header_efficiency(V4, FB_RDMA_WRITE, false, false, 4096, 4096),
		4096.0 / 4194, 1e-12);
	assert_float_equal(
		fb_header_efficiency(V4, FB_RDMA_WRITE, false, false, 1 << 30, 1024), 0.9258, 1e-4);
	assert_float_equal(
		fb_header_efficiency(IB, FB_RDMA_WRITE, false, false, 1 << 30, 4096), 0.9937, 1e-4);
	assert_true(fb_header_efficiency(V4, FB_RDMA_SEND, false, false, 0, 4096) == 0);
	assert_true(fb_header_efficiency(V4, FB_RDMA_SEND, false, false, 64, 0) == 0);
	/* Always below the line rate, and the longer the better at whole packets. */
	double last = 0;
	for (uint64_t n = 1; n <= 64; n *= 2) {
		double x = fb_header_efficiency(V4, FB_RDMA_WRITE, false, false, n * 4096, 4096);
		assert_true(x > last && x < 1);
		last = x;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire_bytes),
		cmocka_unit_test(test_efficiency),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
