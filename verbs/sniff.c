// SPDX-License-Identifier: Apache-2.0
/*
 * Counting by an AF_PACKET socket with a stack of its own (SOCK_DGRAM: the IP header comes first, a
 * VLAN tag has been taken off). Sources: RFC 2474 and 3168 for the byte of DSCP and ECN, IBTA annex
 * A17 for UDP port 4791 and the BTH behind it.
 */
#include "verbs/sniff.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stop.h"

#define ROCE_PORT 4791
#define UDP_HDR   8
#define BTH_HDR   12

void verbs_sniff_packet(struct verbs_sniffed *s, unsigned proto, const uint8_t *ip, size_t len)
{
	unsigned tos, next;
	size_t hdr;

	if (proto == ETH_P_IP && len >= 20 && ip[0] >> 4 == 4) {
		hdr = (size_t)(ip[0] & 15) * 4;
		tos = ip[1];
		next = ip[9];
	} else if (proto == ETH_P_IPV6 && len >= 40 && ip[0] >> 4 == 6) {
		hdr = 40; /* RoCE v2 has no extension headers */
		tos = (unsigned)(ip[0] & 15) << 4 | ip[1] >> 4;
		next = ip[6];
	} else {
		return;
	}
	if (hdr < 20 || next != IPPROTO_UDP || len < hdr + UDP_HDR + BTH_HDR ||
		(ip[hdr + 2] << 8 | ip[hdr + 3]) != ROCE_PORT) {
		s->other++;
		return;
	}
	ip += hdr + UDP_HDR;
	if (!ip[5] && !ip[6] && ip[7] == 1) /* destination QP of the BTH */
		s->manager++;
	else
		s->n[tos >> 2][tos & 3]++;
}

struct sniff_options {
	char *interface;
	uint64_t time_ns;
};
#define OFF(f) offsetof(struct sniff_options, f)
static const struct fb_opt opts[] = {{.letter = 'I',
					     .name = "interface",
					     .type = FB_OPT_STRING,
					     .offset = OFF(interface),
					     .arg = "NAME",
					     .def = "eth0",
					     .help = "netdev to listen at"},
	{.name = "seconds",
		.type = FB_OPT_DURATION,
		.offset = OFF(time_ns),
		.arg = "TIME",
		.def = "10s",
		.help = "how long at most; SIGTERM ends it earlier"},
	{.name = NULL}};

int verbs_sniff_open(const char *interface, int *fd, struct fb_err *e)
{
	struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int err, size = 32 << 20;

	a.sll_ifindex = (int)if_nametoindex(interface);
	if (!a.sll_ifindex)
		return fb_fail_usage(e, "--interface %s: there is no such netdev", interface);
	*fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (*fd < 0) {
		err = errno;
		fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot listen to packets: %s", strerror(err));
		fb_hint(e, "it needs root, or CAP_NET_RAW");
		return -err;
	}
	/* Beyond the system's limit where it is ours to say (CAP_NET_ADMIN). */
	if (setsockopt(*fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)
		(void)setsockopt(*fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	if (bind(*fd, (struct sockaddr *)&a, sizeof a) == 0)
		return 0;
	err = errno;
	close(*fd);
	return fb_fail(
		e, FB_EXIT_UNMEASURED, err, "cannot bind to %s: %s", interface, strerror(err));
}

void verbs_sniff_until(int fd, uint64_t deadline, atomic_int *stop, struct verbs_sniffed *s)
{
	while (!fb_stop_requested() && fb_clock_ns() < deadline && !(stop && atomic_load(stop))) {
		struct pollfd pf = {.fd = fd, .events = POLLIN};
		uint8_t buf[128];
		struct sockaddr_ll from = {0};
		socklen_t len = sizeof from;
		ssize_t n = recvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
		if (n > 0 && from.sll_pkttype != PACKET_OUTGOING)
			verbs_sniff_packet(s, ntohs(from.sll_protocol), buf, (size_t)n);
		if (n < 0)
			(void)poll(&pf, 1, 50);
	}
}

unsigned verbs_sniff_drops(int fd)
{
	struct tpacket_stats st = {0};
	socklen_t len = sizeof st;

	(void)getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st, &len);
	return st.tp_drops;
}

static void print(int fd, const struct verbs_sniffed *s)
{
	printf("{\"dropped\": %u, \"connection_management\": %llu, \"other\": %llu, \"roce\": [",
		verbs_sniff_drops(fd), (unsigned long long)s->manager,
		(unsigned long long)s->other);
	for (unsigned d = 0, some = 0; d < VERBS_SNIFF_DSCP; d++)
		for (unsigned c = 0; c < VERBS_SNIFF_ECN; c++)
			if (s->n[d][c])
				printf("%s{\"dscp\": %u, \"ecn\": %u, \"packets\": %llu}",
					some++ ? ", " : "", d, c, (unsigned long long)s->n[d][c]);
	printf("]}\n");
}

int verbs_sniff_main(int argc, char **argv)
{
	struct sniff_options o = {0};
	struct fb_opt_spec spec = {.command = "verbs sniff",
		.usage = "[options]",
		.summary =
			"Count the RoCE v2 packets that arrive, by DSCP and ECN, as one JSON line.",
		.sets = {{"Sniff", opts, &o}}};
	struct verbs_sniffed s = {.other = 0};
	struct fb_err e = {0};
	int fd = -1, rc, status = FB_EXIT_OK;

	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = fb_stop_watch(&e);
	if (rc == 0)
		rc = verbs_sniff_open(o.interface, &fd, &e);
	if (rc) {
		status = fb_cmd_fail(&e);
	} else {
		verbs_sniff_until(fd, fb_deadline_in(o.time_ns), NULL, &s);
		print(fd, &s);
		close(fd);
	}
	fb_opt_free(&spec);
	return status;
}
