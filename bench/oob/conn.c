// SPDX-License-Identifier: Apache-2.0
/*
 * One tcp connection of the control channel: frames in, frames out, never a wait (but for a last
 * word, which has its milliseconds). A body's memory grows with what has really arrived, so a
 * length alone costs the receiver nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/oob/oob_priv.h"

#define BODY_STEP 65536u

void oob_conn_init(struct oob_conn *c, int fd)
{
	memset(c, 0, sizeof(*c));
	c->fd = fd;
}

static void set_opt(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

int oob_conn_tune(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	set_opt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	/*
	 * A peer whose machine or link is gone answers nothing: with nothing under way the probes
	 * find out, after 5 + 3 * 5 s, and with data under way oob_conn_silent() does.
	 * TCP_USER_TIMEOUT is left alone: Linux counts with it a window that stays closed, and a
	 * rank inside a measurement does not read; and where it is set, probes end nothing before
	 * it.
	 */
	set_opt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	return 0;
}

bool oob_conn_silent(const struct oob_conn *c, unsigned ms)
{
	struct tcp_info t = {0};
	socklen_t n = sizeof(t);
	if (c->fd < 0 || c->eof || getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &t, &n) != 0)
		return false;
	/* Probes of a closed window are no data under way, and are answered by whoever lives. */
	return t.tcpi_unacked > 0 && t.tcpi_retransmits >= 2 && t.tcpi_last_ack_recv >= ms;
}

static int grow(struct oob_conn *c)
{
	uint32_t cap = c->cap < BODY_STEP ? BODY_STEP : 2 * c->cap;
	if (cap > c->h.len)
		cap = c->h.len;
	uint8_t *p = realloc(c->body, cap);
	if (!p)
		return -ENOMEM;
	c->body = p;
	c->cap = cap;
	return 0;
}

/* @return bytes, 0: nothing there, -ECONNRESET */
static ssize_t read_some(struct oob_conn *c, void *to, size_t n)
{
	ssize_t k;
	do
		k = recv(c->fd, to, n, MSG_DONTWAIT);
	while (k < 0 && errno == EINTR);
	if (k > 0)
		return k;
	if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	c->why = k < 0 ? errno : 0;
	c->eof = true;
	return -ECONNRESET;
}

int oob_conn_read(struct oob_conn *c, uint32_t limit)
{
	while (c->hdr_got < OOB_HDR) {
		ssize_t k = read_some(c, c->hdr + c->hdr_got, OOB_HDR - c->hdr_got);
		if (k <= 0)
			return (int)k;
		c->hdr_got += (unsigned)k;
		if (!oob_is_ours(c->hdr, c->hdr_got))
			return -EPROTO;
		if (c->hdr_got < OOB_HDR)
			continue;
		if (oob_hdr_get(c->hdr, &c->h) != 0 || c->h.len > limit ||
			c->h.len > oob_frame_limit(c->h.type))
			return -EPROTO;
	}
	while (c->got < c->h.len) {
		if (c->got == c->cap && grow(c) != 0)
			return -ENOMEM;
		ssize_t k = read_some(c, c->body + c->got, c->cap - c->got);
		if (k <= 0)
			return (int)k;
		c->got += (uint32_t)k;
	}
	return 1;
}

uint8_t *oob_conn_take(struct oob_conn *c)
{
	uint8_t *body = c->body;
	c->body = NULL;
	c->got = c->cap = 0;
	c->hdr_got = 0;
	return body;
}

int oob_conn_write(
	struct oob_conn *c, const uint8_t *hdr, const void *body, uint32_t len, size_t *done)
{
	const size_t all = OOB_HDR + (size_t)len;
	while (*done < all) {
		struct iovec v[2];
		int n = 0;
		if (*done < OOB_HDR)
			v[n++] = (struct iovec){(void *)(hdr + *done), OOB_HDR - *done};
		const size_t from = *done > OOB_HDR ? *done - OOB_HDR : 0;
		if (from < len)
			v[n++] = (struct iovec){(uint8_t *)body + from, len - from};
		struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
		ssize_t k = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			c->tx_partial = *done > 0;
			return 0;
		}
		if (k < 0) {
			c->why = errno;
			return -ECONNRESET;
		}
		*done += (size_t)k;
	}
	c->tx_partial = false;
	return 1;
}

void oob_conn_post(struct oob_conn *c, enum oob_frame type, const struct fb_strbuf *body, int ms)
{
	uint8_t hdr[OOB_HDR];
	size_t done = 0;
	const uint32_t len = body ? (uint32_t)body->len : 0;
	if (c->fd < 0 || c->eof || c->tx_partial || (body && body->failed))
		return;
	oob_hdr_put(hdr, type, len);
	if (oob_conn_write(c, hdr, body ? body->s : NULL, len, &done) != 0 || ms <= 0)
		return;
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	if (poll(&p, 1, ms) > 0)
		(void)oob_conn_write(c, hdr, body ? body->s : NULL, len, &done);
}

int oob_conn_push(struct oob_conn *c, uint8_t *data, uint32_t len)
{
	struct oob_msg *m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = (struct oob_msg){NULL, len, data};
	if (!c->head)
		c->tail = &c->head;
	*c->tail = m;
	c->tail = &m->next;
	c->queued += len;
	return 0;
}

bool oob_conn_pop(struct oob_conn *c, void **data, uint32_t *len)
{
	struct oob_msg *m = c->head;
	if (!m)
		return false;
	c->head = m->next;
	c->queued -= m->len;
	*data = m->data;
	*len = m->len;
	free(m);
	return true;
}

void oob_conn_close(struct oob_conn *c)
{
	void *data;
	uint32_t len;
	while (oob_conn_pop(c, &data, &len))
		free(data);
	free(c->body);
	c->body = NULL;
	if (c->fd < 0)
		return;
	/* Closing with unread bytes makes the kernel send a reset, which may overtake our last
	 * words: read what is there first, but not without end. */
	char sink[4096];
	(void)shutdown(c->fd, SHUT_WR);
	for (int i = 0; i < 64 && recv(c->fd, sink, sizeof(sink), MSG_DONTWAIT) > 0; i++)
		continue;
	close(c->fd);
	c->fd = -1;
}
