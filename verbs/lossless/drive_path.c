// SPDX-License-Identifier: Apache-2.0
/*
 * The path's MTU, by UDP datagrams that may not be divided (IP_PMTUDISC_PROBE: the don't-fragment
 * bit, and no remembered MTU of the path). A small one tells whether datagrams come through at all:
 * without it a large one that is missing proves nothing. The other end sends each back as it came,
 * so that both directions are tried, and counts, so that they are told apart.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "verbs/lossless/drive.h"

#define MAX_BYTES 65535
#define TRIES     4
#define WAIT_NS   400000000ull
/* The session's orders end an echo; this is for a client that has gone. */
#define ECHO_NS 60000000000ull
/* IPv4 20 or IPv6 40, and UDP 8. */
#define HEADERS(v6) ((v6) ? 48 : 28)
/* Around the payload of a RoCE packet: UDP 8, BTH 12, RETH 16, ICRC 4, and the IP header. */
#define ROCE_HEADERS(v6) ((v6) ? 80 : 60)
#define SMALL_BYTES      100

/* ---- sockets --------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address_len(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* A RoCE GID is the address of its interface. @return false: it is none */
static bool make_address(const union ibv_gid *gid, const char *netdev, int port, union address *a)
{
	enum verbs_gid_family family = verbs_gid_family_of(gid, false);
	memset(a, 0, sizeof(*a));
	if (family == VERBS_GID_IPV4) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons((uint16_t)port);
		memcpy(&a->v4.sin_addr, gid->raw + 12, 4);
		return true;
	}
	if (family == VERBS_GID_NATIVE)
		return false;
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons((uint16_t)port);
	memcpy(&a->v6.sin6_addr, gid->raw, 16);
	if (family == VERBS_GID_LINK_LOCAL)
		a->v6.sin6_scope_id = if_nametoindex(netdev);
	return true;
}

static int open_socket(const union address *at, const char *netdev)
{
	bool v6 = at->any.sa_family == AF_INET6;
	int probe = v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, room = 1 << 20, err;
	int fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Best effort: by the port's own interface, whatever the routes say. */
	(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, (socklen_t)strlen(netdev));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
		    &probe, sizeof(probe)) == 0 &&
		bind(fd, &at->any, address_len(at)) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static void wait_for(int fd, uint64_t until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now = fb_clock_ns();
	int ms = until > now ? (int)((until - now) / 1000000u) + 1 : 0;
	(void)poll(&p, 1, ms < 50 ? ms : 50);
}

/* ---- the answering end ----------------------------------------------------------------------- */

#define SIZES 8
struct drive_echo {
	int fd;
	bool v6, running;
	pthread_t thread;
	atomic_int stop;
	uint64_t word, deadline;
	pthread_mutex_t lock;
	struct {
		int bytes;
		int64_t n;
	} seen[SIZES];
};

static void count(struct drive_echo *x, int bytes)
{
	pthread_mutex_lock(&x->lock);
	for (int i = 0; i < SIZES; i++)
		if (x->seen[i].bytes == bytes || x->seen[i].n == 0) {
			x->seen[i].bytes = bytes;
			x->seen[i].n++;
			break;
		}
	pthread_mutex_unlock(&x->lock);
}

static void *echo(void *arg)
{
	struct drive_echo *x = arg;
	char *buf = malloc(MAX_BYTES);
	while (buf && !atomic_load(&x->stop) && fb_clock_ns() < x->deadline) {
		union address from;
		socklen_t len = sizeof(from);
		uint64_t word;
		ssize_t n = recvfrom(x->fd, buf, MAX_BYTES, 0, &from.any, &len);
		if (n < 0) {
			wait_for(x->fd, x->deadline);
			continue;
		}
		if (n < (ssize_t)sizeof(word))
			continue;
		memcpy(&word, buf, sizeof(word));
		if (word != x->word)
			continue;
		count(x, (int)n + HEADERS(x->v6));
		(void)!sendto(x->fd, buf, (size_t)n, 0, &from.any, len);
	}
	free(buf);
	return NULL;
}

struct drive_echo *drive_echo_open(const union ibv_gid *at, const char *netdev, uint64_t word,
	int *port, char *why, size_t len)
{
	union address a;
	socklen_t size = sizeof(a);
	if (!make_address(at, netdev, 0, &a)) {
		snprintf(why, len, "its GID is no IP address");
		return NULL;
	}
	struct drive_echo *x = calloc(1, sizeof(*x));
	int fd = open_socket(&a, netdev);
	if (!x || fd < 0 || getsockname(fd, &a.any, &size) != 0) {
		snprintf(why, len, "no UDP socket there: %s",
			strerror(fd < 0 ? -fd
				 : !x   ? ENOMEM
					: errno));
		free(x);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	x->fd = fd;
	x->v6 = a.any.sa_family == AF_INET6;
	x->word = word;
	x->deadline = fb_deadline_in(ECHO_NS);
	*port = ntohs(x->v6 ? a.v6.sin6_port : a.v4.sin_port);
	pthread_mutex_init(&x->lock, NULL);
	x->running = pthread_create(&x->thread, NULL, echo, x) == 0;
	if (x->running)
		return x;
	snprintf(why, len, "no thread to answer there");
	drive_echo_free(x);
	return NULL;
}

void drive_echo_tell(struct drive_echo *x, json_t *answer)
{
	json_t *all = json_array();
	pthread_mutex_lock(&x->lock);
	for (int i = 0; i < SIZES && x->seen[i].n > 0; i++) {
		json_t *one = json_object();
		fb_json_set_int(one, "size", x->seen[i].bytes);
		fb_json_set_int(one, "n", x->seen[i].n);
		json_array_append_new(all, one);
	}
	pthread_mutex_unlock(&x->lock);
	json_object_set_new(answer, "arrived", all);
}

void drive_echo_free(struct drive_echo *x)
{
	if (!x)
		return;
	atomic_store(&x->stop, 1);
	if (x->running)
		pthread_join(x->thread, NULL);
	pthread_mutex_destroy(&x->lock);
	close(x->fd);
	free(x);
}

/* ---- the asking end -------------------------------------------------------------------------- */

struct prober {
	int fd;
	union address to;
	uint64_t word;
	uint32_t sent;
	char *out, *in;
};

/* Did one of this length come back before then? Late answers of other lengths are passed over. */
static bool came_back(struct prober *x, size_t payload, uint64_t until)
{
	while (fb_clock_ns() < until && !fb_stop_requested()) {
		uint64_t word;
		ssize_t n = recv(x->fd, x->in, MAX_BYTES, 0);
		if (n < 0) {
			wait_for(x->fd, until);
			continue;
		}
		if ((size_t)n != payload)
			continue;
		memcpy(&word, x->in, sizeof(word));
		if (word == x->word)
			return true;
	}
	return false;
}

static bool try_size(struct prober *x, int bytes)
{
	size_t payload = (size_t)(bytes - HEADERS(x->to.any.sa_family == AF_INET6));
	for (int i = 0; i < TRIES && !fb_stop_requested(); i++) {
		memcpy(x->out, &x->word, sizeof(x->word));
		x->sent++;
		memcpy(x->out + sizeof(x->word), &x->sent, sizeof(x->sent));
		ssize_t n = sendto(x->fd, x->out, payload, 0, &x->to.any, address_len(&x->to));
		/* EMSGSIZE: our own interface does not take it; asking again changes nothing. */
		if (n < 0 && errno == EMSGSIZE)
			return false;
		if (came_back(x, payload, fb_deadline_in(WAIT_NS)))
			return true;
	}
	return false;
}

static void probe_all(struct prober *x, struct drive_path *p)
{
	bool on = true;
	p->tried = true;
	/* Where one is lost, a larger one tells nothing. */
	for (int i = 0; i < DRIVE_PROBES; i++) {
		p->arrived[i] = -1;
		on = p->back[i] = on && try_size(x, p->bytes[i]);
	}
}

void drive_path_probe(const struct drive_route *r, struct drive_path *p)
{
	struct prober x = {.fd = -1, .word = r->word};
	union address from;
	if (!make_address(&r->from, r->netdev, 0, &from) ||
		!make_address(&r->to, r->netdev, r->port, &x.to)) {
		snprintf(p->why, sizeof(p->why), "the GIDs are no IP addresses");
		return;
	}
	bool v6 = from.any.sa_family == AF_INET6;
	p->bytes[DRIVE_SMALL] = SMALL_BYTES;
	p->bytes[DRIVE_ROCE] = r->rdma_mtu + ROCE_HEADERS(v6);
	p->bytes[DRIVE_FULL] = r->netdev_mtu < MAX_BYTES ? r->netdev_mtu : MAX_BYTES;
	if (p->bytes[DRIVE_FULL] < SMALL_BYTES || p->bytes[DRIVE_ROCE] > MAX_BYTES) {
		snprintf(p->why, sizeof(p->why), "the MTU of %.60s is not known", r->netdev);
		return;
	}
	x.out = calloc(1, MAX_BYTES);
	x.in = malloc(MAX_BYTES);
	x.fd = open_socket(&from, r->netdev);
	if (x.out && x.in && x.fd >= 0)
		probe_all(&x, p);
	else
		snprintf(p->why, sizeof(p->why), "no UDP socket here: %s",
			x.fd < 0 ? strerror(-x.fd) : "no memory");
	if (x.fd >= 0)
		close(x.fd);
	free(x.out);
	free(x.in);
}

void drive_path_arrived(const json_t *answer, struct drive_path *p)
{
	const json_t *all = json_object_get(answer, "arrived"), *one;
	size_t i;
	for (int k = 0; k < DRIVE_PROBES; k++)
		p->arrived[k] = json_is_array(all) ? 0 : -1;
	json_array_foreach (all, i, one)
		for (int k = 0; k < DRIVE_PROBES; k++)
			if (fb_json_int(one, "size", -1) == p->bytes[k])
				p->arrived[k] = fb_json_int(one, "n", 0);
}
