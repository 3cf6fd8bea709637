// SPDX-License-Identifier: Apache-2.0
/* Packets are counted by their DSCP and ECN; what is no RoCE v2, or cut, is not. */
#include "bench/core/test.h"

#include <string.h>

#include "verbs/sniff.h"

/* A header of IPv4 or IPv6, UDP to `port`, and a BTH for QP `qpn`. */
static size_t packet(uint8_t *p, bool v6, unsigned tos, unsigned port, unsigned qpn)
{
	size_t ip = v6 ? 40 : 20;

	memset(p, 0, 64);
	p[0] = v6 ? (uint8_t)(0x60 | tos >> 4) : 0x45;
	p[1] = v6 ? (uint8_t)(tos << 4) : (uint8_t)tos;
	p[v6 ? 6 : 9] = 17;
	p[ip + 2] = (uint8_t)(port >> 8);
	p[ip + 3] = (uint8_t)port;
	p[ip + 8 + 5] = (uint8_t)(qpn >> 16);
	p[ip + 8 + 6] = (uint8_t)(qpn >> 8);
	p[ip + 8 + 7] = (uint8_t)qpn;
	return ip + 8 + 12;
}

static void counts(void **state)
{
	struct verbs_sniffed s;
	uint8_t p[64];
	size_t n;

	memset(&s, 0, sizeof s);
	n = packet(p, false, 106, 4791, 17);
	verbs_sniff_packet(&s, 0x0800, p, n);
	n = packet(p, true, 106, 4791, 18);
	verbs_sniff_packet(&s, 0x86dd, p, n);
	assert_int_equal(s.n[26][2], 2);
	n = packet(p, true, 0xbf, 4791, 18);
	verbs_sniff_packet(&s, 0x86dd, p, n);
	assert_int_equal(s.n[47][3], 1);
	n = packet(p, false, 0, 4791, 1);
	verbs_sniff_packet(&s, 0x0800, p, n);
	assert_int_equal(s.manager, 1);
	assert_int_equal(s.n[0][0], 0);
	assert_int_equal(s.other, 0);
}

static void leaves_out(void **state)
{
	struct verbs_sniffed s;
	uint8_t p[64];
	size_t n;

	memset(&s, 0, sizeof s);
	n = packet(p, false, 106, 4792, 17);
	verbs_sniff_packet(&s, 0x0800, p, n);
	n = packet(p, false, 106, 4791, 17);
	p[9] = 6;
	verbs_sniff_packet(&s, 0x0800, p, n);
	n = packet(p, false, 106, 4791, 17);
	verbs_sniff_packet(&s, 0x0800, p, n - 1);
	assert_int_equal(s.other, 3);
	verbs_sniff_packet(&s, 0x0806, p, n);
	verbs_sniff_packet(&s, 0x0800, p, 19);
	verbs_sniff_packet(&s, 0x86dd, p, n);
	assert_int_equal(s.other, 3);
	p[0] = 0x44; /* a header shorter than the shortest */
	verbs_sniff_packet(&s, 0x0800, p, n);
	assert_int_equal(s.other, 4);
	for (unsigned d = 0; d < VERBS_SNIFF_DSCP; d++)
		for (unsigned c = 0; c < VERBS_SNIFF_ECN; c++)
			assert_int_equal(s.n[d][c], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(leaves_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
