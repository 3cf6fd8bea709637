// SPDX-License-Identifier: Apache-2.0
/*
 * A connected TCP socket, by name or address, before a deadline. The resolver has timeouts of its
 * own that add up to minutes, so a name that is no plain address is looked up in a thread that may
 * be left behind: it owns what it works on, and the last of the two frees it.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"
#include "bench/oob/oob_priv.h"

struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	char host[256], port[8];
	struct addrinfo *list;
	int rc;
	bool done, left;
};

static const struct addrinfo lookup_hints = {
	.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};

static void lookup_free(struct lookup *l)
{
	if (l->list)
		freeaddrinfo(l->list);
	pthread_cond_destroy(&l->done_cond);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void *lookup_main(void *p)
{
	struct lookup *l = p;
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(l->host, l->port, &lookup_hints, &list);
	if (rc != 0 && strcmp(l->host, "localhost") == 0) /* by RFC 6761, also without /etc/hosts */
		rc = getaddrinfo("127.0.0.1", l->port, &lookup_hints, &list);
	pthread_mutex_lock(&l->lock);
	l->rc = rc;
	l->list = rc == 0 ? list : NULL;
	l->done = true;
	const bool mine = l->left;
	pthread_cond_signal(&l->done_cond);
	pthread_mutex_unlock(&l->lock);
	if (mine)
		lookup_free(l);
	return NULL;
}

static int no_such_host(const char *host, int rc, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_UNMEASURED, EHOSTUNREACH, "the host \"%s\" cannot be found: %s", host,
		gai_strerror(rc));
	fb_hint(e, "check its spelling: getent hosts %s", host);
	return -EHOSTUNREACH;
}

/* Wait for the thread; when it is too slow it is left with its own. */
static int lookup_wait(
	struct lookup *l, uint64_t deadline, struct addrinfo **list, struct fb_err *e)
{
	pthread_mutex_lock(&l->lock);
	while (!l->done && fb_clock_ns() < deadline && !fb_stop_requested()) {
		struct timespec ts;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += OOB_SLICE_MS * 1000000L;
		ts.tv_sec += ts.tv_nsec / 1000000000;
		ts.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&l->done_cond, &l->lock, &ts);
	}
	const bool done = l->done;
	l->left = true;
	pthread_mutex_unlock(&l->lock);
	if (!done && fb_stop_requested())
		return fb_fail(
			e, FB_EXIT_UNMEASURED, EINTR, "interrupted while looking up a host name");
	if (!done) {
		fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "the resolver did not answer in time");
		fb_hint(e, "give an address instead of a name, or check /etc/resolv.conf");
		return -ETIMEDOUT;
	}
	int rc = l->rc == 0 ? 0 : no_such_host(l->host, l->rc, e);
	*list = l->list;
	l->list = NULL;
	lookup_free(l);
	return rc;
}

static int resolve(
	const char *host, int port, uint64_t deadline, struct addrinfo **list, struct fb_err *e)
{
	char service[8];
	struct addrinfo hints = lookup_hints;
	hints.ai_flags = AI_NUMERICHOST;
	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, list) == 0)
		return 0;
	if (strlen(host) >= sizeof(((struct lookup *)0)->host))
		return no_such_host("(too long)", EAI_NONAME, e);
	struct lookup *l = calloc(1, sizeof(*l));
	if (!l)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to look up %s", host);
	memcpy(l->host, host, strlen(host) + 1);
	memcpy(l->port, service, sizeof(service));
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->done_cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, lookup_main, l);
	if (rc != 0) {
		lookup_free(l);
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "cannot start the resolver's thread: %s",
			strerror(rc));
	}
	pthread_detach(thread);
	return lookup_wait(l, deadline, list, e);
}

/* @return 0 with *fd connected, or the errno, positive */
static int connect_one(const struct addrinfo *a, uint64_t deadline, int *out)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	int err = -oob_conn_tune(fd);
	if (err == 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0)
		err = errno;
	while (err == EINPROGRESS) {
		const int left = fb_deadline_poll_ms(deadline);
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		if (poll(&p, 1, left < OOB_SLICE_MS ? left : OOB_SLICE_MS) > 0) {
			socklen_t n = sizeof(err);
			if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0)
				err = errno;
		} else if (left == 0) {
			err = ETIMEDOUT;
		} else if (fb_stop_requested()) {
			err = EINTR;
		}
	}
	if (err != 0) {
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

/* Each address in turn, with its share of the time that is left. */
static int connect_any(const struct addrinfo *list, uint64_t deadline, int *fd)
{
	uint64_t count = 0;
	int err = EHOSTUNREACH;
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		count++;
	for (const struct addrinfo *a = list; a; a = a->ai_next, count--) {
		const uint64_t now = fb_clock_ns();
		const uint64_t share = now < deadline ? (deadline - now) / count : 0;
		const int this = connect_one(a, now + share, fd);
		if (this == 0 || this == EINTR)
			return this;
		/* "refused" says more than an address family that is not here */
		if (err != ECONNREFUSED)
			err = this;
	}
	return err;
}

static bool worth_again(int err)
{
	return err == ECONNREFUSED || err == ECONNRESET || err == EHOSTUNREACH ||
	       err == ENETUNREACH;
}

int oob_dial(const char *host, int port, bool patient, uint64_t deadline, int *fd, struct fb_err *e)
{
	struct addrinfo *list = NULL;
	int rc = resolve(host, port, deadline, &list, e);
	if (rc != 0)
		return rc;
	int err, pause_ms = 20;
	for (;;) {
		err = connect_any(list, deadline, fd);
		if (err == 0 || !patient || !worth_again(err) || fb_stop_requested())
			break;
		const int left = fb_deadline_poll_ms(deadline);
		if (left == 0)
			break;
		poll(NULL, 0, pause_ms < left ? pause_ms : left);
		pause_ms = pause_ms < 250 ? pause_ms * 2 : 250;
	}
	freeaddrinfo(list);
	if (err == 0)
		return 0;
	if (err == EINTR || fb_stop_requested())
		return fb_fail(
			e, FB_EXIT_UNMEASURED, EINTR, "interrupted while connecting to %s", host);
	return fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot connect to %s port %d: %s", host, port,
		strerror(err));
}
