// SPDX-License-Identifier: Apache-2.0
/*
 * The tcp transport: a star of connections around rank 0. How they come to be is meet.c's.
 *
 * Every wait looks at all connections: whoever dies or aborts ends it, whomever it was for. Rank 0
 * passes the first cause on to all others. What arrives early is kept whole, in order, up to a
 * bound for each peer, beyond which that peer is not read until its messages are asked for.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/oob/oob_priv.h"

/* A peer that is this far ahead is left unread. */
#define QUEUE_BOUND (8u << 20)

static struct oob_tcp *tcp_of(struct fb_oob *o)
{
	return o->priv;
}

static bool is_peer(const struct fb_oob *o, int rank)
{
	return rank != o->rank && (o->rank == 0 || rank == 0);
}

static int dead(struct oob_tcp *t, struct fb_err *e)
{
	int rc = fb_fail(e, t->dead.exit, t->dead.code, "%s", t->dead.msg);
	if (t->dead.hint[0] != '\0')
		fb_hint(e, "%s", t->dead.hint);
	return rc;
}

static void tell(struct fb_oob *o, const struct fb_err *why, int except)
{
	struct oob_tcp *t = tcp_of(o);
	struct fb_strbuf b = {0};
	if (t->told)
		return;
	t->told = true;
	oob_err_put(&b, why);
	const uint64_t end = fb_deadline_in(100000000u);
	for (int i = 0; i < o->size; i++) {
		if (!is_peer(o, i) || i == except)
			continue;
		const bool time_left = fb_clock_ns() < end;
		oob_conn_post(&t->conn[i], OOB_ABORT, &b, time_left ? 20 : 0);
	}
	fb_strbuf_free(&b);
}

void oob_tcp_die(struct fb_oob *o, const struct fb_err *why, int except)
{
	struct oob_tcp *t = tcp_of(o);
	if (t->dead.code != 0)
		return;
	t->dead = *why;
	if (o->rank == 0)
		tell(o, why, except);
}

/* Where each rank is on its own, the one that failed is struck off and the others go on. */
static bool alone(struct fb_oob *o, int rank)
{
	struct oob_tcp *t = tcp_of(o);
	if (!t->some || o->rank != 0)
		return false;
	t->conn[rank].eof = true;
	return true;
}

static int left_us(struct fb_oob *o, int rank, struct fb_err *e)
{
	char who[128];
	return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "%s has left",
		fb_oob_peer(o, rank, who, sizeof(who)));
}

static void gone(struct fb_oob *o, int rank)
{
	struct oob_conn *c = &tcp_of(o)->conn[rank];
	struct fb_err e = {0};
	char who[128];
	if (alone(o, rank))
		return;
	fb_oob_peer(o, rank, who, sizeof(who));
	if (c->why != 0 && c->why != ECONNRESET && c->why != EPIPE)
		fb_fail(&e, FB_EXIT_UNMEASURED, ECONNRESET, "%s is gone: %s", who,
			strerror(c->why));
	else
		fb_fail(&e, FB_EXIT_UNMEASURED, ECONNRESET, "%s is gone", who);
	if (c->why == ETIMEDOUT)
		fb_hint(&e,
			"its machine answers nothing any more: is it up, and is the link up at both "
			"ends? ip -brief link");
	else
		fb_hint(&e,
			"look at that rank's own output and at dmesg there: it ended, was killed, or "
			"its network is down");
	oob_tcp_die(o, &e, rank);
}

static void bad_frame(struct fb_oob *o, int rank, const char *what)
{
	struct fb_err e = {0};
	char who[128];
	if (alone(o, rank))
		return;
	fb_fail(&e, FB_EXIT_UNMEASURED, EPROTO, "%s broke the protocol: %s",
		fb_oob_peer(o, rank, who, sizeof(who)), what);
	oob_tcp_die(o, &e, -1);
}

static void frame_of(struct fb_oob *o, int rank)
{
	struct oob_conn *c = &tcp_of(o)->conn[rank];
	const struct oob_hdr h = c->h;
	uint8_t *body = oob_conn_take(c);
	struct fb_err why;
	char version[OOB_VERSION];
	switch (h.type) {
	case OOB_DATA:
		if (oob_conn_push(c, body, h.len) == 0)
			return;
		bad_frame(o, rank, "no memory for its message");
		break;
	case OOB_ABORT:
		if (alone(o, rank))
			break;
		if (oob_err_get(body, h.len, version, &why) == 0 && why.code != 0)
			oob_tcp_die(o, &why, rank);
		else
			bad_frame(o, rank, "an abort that cannot be read");
		break;
	case OOB_BYE: c->bye = true; break;
	default: bad_frame(o, rank, "a frame that does not belong here"); break;
	}
	free(body);
}

static void read_peer(struct fb_oob *o, int rank)
{
	struct oob_tcp *t = tcp_of(o);
	struct oob_conn *c = &t->conn[rank];
	while (t->dead.code == 0 && c->queued < QUEUE_BOUND) {
		const int rc = oob_conn_read(c, OOB_MAX_DATA);
		if (rc == 1) {
			frame_of(o, rank);
			continue;
		}
		if (rc == -ECONNRESET && !c->bye)
			gone(o, rank);
		else if (rc == -EPROTO)
			bad_frame(o, rank, "bytes that are no frame, or too many of them");
		else if (rc == -ENOMEM)
			bad_frame(o, rank, "no memory for its message");
		return;
	}
}

/* A machine that is gone sends no end of stream. Asking the kernel is a system call for each peer,
 * hence not at every look. */
static void look_for_silence(struct fb_oob *o)
{
	struct oob_tcp *t = tcp_of(o);
	const uint64_t now = fb_clock_ns();
	if (now - t->looked < t->silent_ms * 50000ull) /* a twentieth */
		return;
	t->looked = now;
	for (int i = 0; i < o->size && t->dead.code == 0; i++) {
		struct oob_conn *c = &t->conn[i];
		if (!is_peer(o, i) || !oob_conn_silent(c, t->silent_ms))
			continue;
		c->why = ETIMEDOUT;
		c->eof = true;
		gone(o, i);
	}
}

/* A server's client may leave, and the next one come, within one look: whoever has said good-bye
 * keeps nobody out. The next then waits until the session is over. */
static bool still_busy(struct fb_oob *o)
{
	struct oob_tcp *t = tcp_of(o);
	read_peer(o, 0);
	return t->dead.code == 0 && !t->conn[0].bye && !t->conn[0].eof;
}

static void turn_others_away(struct fb_oob *o)
{
	char who[128];
	if (still_busy(o))
		oob_turn_away(
			tcp_of(o)->listener, fb_oob_peer(o, 0, who, sizeof(who)), still_busy, o);
}

/* Wait at most ms for news from anyone, or until `out` can be written. */
static int pump(struct fb_oob *o, int out, int ms)
{
	struct oob_tcp *t = tcp_of(o);
	struct pollfd *p = t->pfd;
	nfds_t n = 0;
	for (int i = 0; i < o->size; i++) {
		struct oob_conn *c = &t->conn[i];
		if (!is_peer(o, i) || c->fd < 0 || c->eof)
			continue;
		short events = c->queued < QUEUE_BOUND ? POLLIN : 0;
		if (i == out)
			events |= POLLOUT;
		p[n] = (struct pollfd){.fd = c->fd, .events = events};
		t->pfd_rank[n++] = i;
	}
	if (t->dead.code == 0 && poll(p, n, ms) > 0) {
		for (nfds_t k = 0; k < n; k++)
			if (p[k].revents & (POLLIN | POLLERR | POLLHUP | POLLNVAL))
				read_peer(o, t->pfd_rank[k]);
	}
	look_for_silence(o);
	if (t->listener)
		turn_others_away(o);
	return t->dead.code;
}

/* One turn of a wait for `rank`: 0 to go on. */
static int turn(struct fb_oob *o, int rank, int out, uint64_t begin, uint64_t deadline,
	const char *what, struct fb_err *e)
{
	struct oob_tcp *t = tcp_of(o);
	char who[128];
	const int left = fb_deadline_poll_ms(deadline);
	if (pump(o, out, left < OOB_SLICE_MS ? left : OOB_SLICE_MS) != 0)
		return dead(t, e);
	if (t->conn[rank].head && out < 0)
		return 0;
	if (t->conn[rank].bye || t->conn[rank].eof)
		return left_us(o, rank, e);
	if (o->stopped())
		return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "interrupted while waiting for %s",
			fb_oob_peer(o, rank, who, sizeof(who)));
	if (left == 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "%s %s within %.1f s",
			fb_oob_peer(o, rank, who, sizeof(who)), what,
			oob_seconds(fb_clock_ns() - begin));
		fb_hint(e, OOB_SILENT_HINT);
		return -ETIMEDOUT;
	}
	return 0;
}

static int tcp_send(struct fb_oob *o, int dst, const void *buf, uint32_t len, uint64_t deadline,
	struct fb_err *e)
{
	struct oob_tcp *t = tcp_of(o);
	struct oob_conn *c = &t->conn[dst];
	const uint64_t begin = fb_clock_ns();
	uint8_t hdr[OOB_HDR];
	size_t done = 0;
	oob_hdr_put(hdr, OOB_DATA, len);
	for (;;) {
		if (t->dead.code != 0)
			return dead(t, e);
		if (c->bye || c->eof || c->fd < 0)
			return left_us(o, dst, e);
		int rc = oob_conn_write(c, hdr, buf, len, &done);
		if (rc == 1)
			return 0;
		if (rc < 0) {
			/* A peer that aborted and closed left its reason in our receive buffer. */
			read_peer(o, dst);
			if (t->dead.code == 0)
				gone(o, dst);
			return t->dead.code != 0 ? dead(t, e) : left_us(o, dst, e);
		}
		rc = turn(o, dst, dst, begin, deadline, "took nothing", e);
		if (rc != 0)
			return rc;
	}
}

static int tcp_recv(
	struct fb_oob *o, int src, void **buf, uint32_t *len, uint64_t deadline, struct fb_err *e)
{
	struct oob_tcp *t = tcp_of(o);
	const uint64_t begin = fb_clock_ns();
	for (;;) {
		if (t->dead.code != 0)
			return dead(t, e);
		if (oob_conn_pop(&t->conn[src], buf, len))
			return 0;
		int rc = turn(o, src, -1, begin, deadline, "sent nothing", e);
		if (rc != 0)
			return rc;
	}
}

static int tcp_lost(struct fb_oob *o, struct fb_err *e)
{
	struct oob_tcp *t = tcp_of(o);
	char who[128];
	if (pump(o, -1, 0) != 0)
		return dead(t, e);
	for (int i = 0; i < o->size; i++)
		if (is_peer(o, i) && t->conn[i].bye && !t->conn[i].head)
			return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "%s has left",
				fb_oob_peer(o, i, who, sizeof(who)));
	return 0;
}

static void tcp_abort(struct fb_oob *o, const struct fb_err *why)
{
	struct oob_tcp *t = tcp_of(o);
	if (t->dead.code != 0 && o->rank != 0)
		return; /* rank 0 knows: it told us, or it is gone */
	if (t->dead.code == 0)
		t->dead = *why;
	tell(o, why, -1);
}

static const char *tcp_host(struct fb_oob *o, int rank)
{
	struct oob_tcp *t = tcp_of(o);
	return rank >= 0 && rank < o->size ? t->hosts[rank] : NULL;
}

static void tcp_close(struct fb_oob *o)
{
	struct oob_tcp *t = tcp_of(o);
	if (t->listener)
		oob_listener_detach(t->listener);
	for (int i = 0; i < o->size; i++) {
		oob_conn_post(&t->conn[i], OOB_BYE, NULL, 0);
		oob_conn_close(&t->conn[i]);
	}
	free(t->conn);
	free(t->hosts);
	free(t->pfd);
	free(t->pfd_rank);
	free(t);
	o->priv = NULL;
}

static const struct fb_oob_ops tcp_ops = {
	.name = "tcp",
	.send = tcp_send,
	.recv = tcp_recv,
	.lost = tcp_lost,
	.abort = tcp_abort,
	.host = tcp_host,
	.close = tcp_close,
};

int oob_tcp_init(struct fb_oob *o, int rank, int size, struct fb_err *e)
{
	const size_t n = (size_t)size;
	struct oob_tcp *t = calloc(1, sizeof(*t));
	if (!t)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the control channel");
	t->conn = calloc(n, sizeof(*t->conn));
	t->hosts = calloc(n, sizeof(*t->hosts));
	t->pfd = calloc(n, sizeof(struct pollfd));
	t->pfd_rank = calloc(n, sizeof(*t->pfd_rank));
	if (!t->conn || !t->hosts || !t->pfd || !t->pfd_rank) {
		free(t->conn);
		free(t->hosts);
		free(t->pfd);
		free(t->pfd_rank);
		free(t);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ranks", size);
	}
	for (int i = 0; i < size; i++)
		oob_conn_init(&t->conn[i], -1);
	oob_hostname(t->hosts[rank], OOB_HOST);
	t->silent_ms = OOB_SILENT_MS;
	o->ops = &tcp_ops;
	o->rank = rank;
	o->size = size;
	o->priv = t;
	return 0;
}
