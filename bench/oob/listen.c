// SPDX-License-Identifier: Apache-2.0
/*
 * The door of the tcp control channel: listening, reading each guest's hello, refusing with a
 * reason, and the two-rank session of a client with a server.
 *
 * Nothing a guest does holds up another: hellos are read as they come, a guest that says none is
 * dropped after 5 s, and of more than GUESTS silent ones the oldest goes. A guest is let in when
 * magic, protocol, program version and token are right; who it claims to be is the caller's affair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/oob/oob_listen.h"
#include "version.h"

/* ---- listening ---------------------------------------------------------------------------------
 */

static int bind_socket(const char *address, int port, int family, int *out)
{
	struct addrinfo hints = {.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char service[8];
	int err = EADDRNOTAVAIL;
	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(address, service, &hints, &list) != 0)
		return EADDRNOTAVAIL;
	for (struct addrinfo *a = list; a && err != 0; a = a->ai_next) {
		int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			err = errno;
			continue;
		}
		int on = 1, off = 0;
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (a->ai_family == AF_INET6 && !address)
			(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1024) == 0) {
			*out = fd;
			err = 0;
		} else {
			err = errno;
			close(fd);
		}
	}
	freeaddrinfo(list);
	return err;
}

static int port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} s;
	socklen_t n = sizeof(s);
	memset(&s, 0, sizeof(s));
	if (getsockname(fd, &s.any, &n) != 0)
		return 0;
	return ntohs(s.any.sa_family == AF_INET6 ? s.v6.sin6_port : s.v4.sin_port);
}

int fb_oob_listen(const char *address, int *port, const char *token, struct fb_oob_listener **out,
	struct fb_err *e)
{
	int fd = -1;
	*out = NULL;
	/* Any: one IPv6 socket takes IPv4 too; a kernel without IPv6 gets IPv4 alone. */
	int err = bind_socket(address, *port, address ? AF_UNSPEC : AF_INET6, &fd);
	if (!address && (err == EAFNOSUPPORT || err == EADDRNOTAVAIL))
		err = bind_socket(NULL, *port, AF_INET, &fd);
	if (err != 0) {
		fb_fail(e, err == EADDRNOTAVAIL ? FB_EXIT_USAGE : FB_EXIT_UNMEASURED, err,
			"cannot listen on %s port %d: %s", address ? address : "any address", *port,
			strerror(err));
		if (err == EADDRINUSE)
			fb_hint(e,
				"another program has it (ss -ltnp 'sport = :%d'): end it, or choose with -p",
				*port);
		else if (err == EADDRNOTAVAIL)
			fb_hint(e, "--bind wants an address of this machine: ip -brief address");
		return -err;
	}
	struct fb_oob_listener *l = calloc(1, sizeof(*l));
	if (!l) {
		close(fd);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a listener");
	}
	l->fd = fd;
	l->port = *port = port_of(fd);
	snprintf(l->token, sizeof(l->token), "%s", token ? token : "");
	*out = l;
	return 0;
}

static void guest_drop(struct fb_oob_listener *l, int i)
{
	oob_conn_close(&l->guest[i].c);
	l->guest[i] = l->guest[--l->guests];
}

void fb_oob_listener_close(struct fb_oob_listener *l)
{
	if (!l)
		return;
	if (l->session)
		((struct oob_tcp *)l->session->priv)->listener = NULL;
	while (l->guests > 0)
		guest_drop(l, l->guests - 1);
	if (l->kept)
		oob_conn_close(&l->next.c);
	close(l->fd);
	free(l);
}

void oob_listener_detach(struct fb_oob_listener *l)
{
	l->session = NULL;
}

/* ---- greeting ----------------------------------------------------------------------------------
 */

void oob_refuse(struct oob_conn *c, enum fb_exit status, int code, const char *fmt, ...)
{
	struct fb_err why = {0};
	struct fb_strbuf b = {0};
	char msg[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	fb_fail(&why, status, code, "%s", msg);
	oob_err_put(&b, &why);
	oob_conn_post(c, OOB_REFUSE, &b, 0);
	fb_strbuf_free(&b);
	oob_conn_close(c);
}

static void name_of(const struct sockaddr_storage *s, socklen_t len, char *out, size_t cap)
{
	char host[64] = "?", port[8] = "?";
	(void)getnameinfo((const struct sockaddr *)s, len, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV);
	const bool mapped = strncmp(host, "::ffff:", 7) == 0;
	snprintf(out, cap, "%s:%s", mapped ? host + 7 : host, port);
}

/* Room for one more: a free place, or that of the oldest guest, who had time to speak and was heard
 * out. */
static bool make_place(struct fb_oob_listener *l)
{
	int oldest = 0;
	if (l->guests < OOB_GUESTS)
		return true;
	for (int i = 1; i < l->guests; i++)
		if (l->guest[i].since < l->guest[oldest].since)
			oldest = i;
	if (fb_clock_ns() - l->guest[oldest].since < OOB_PATIENCE_NS)
		return false;
	guest_drop(l, oldest);
	return true;
}

/* Whoever is not let in now waits in the kernel's queue, which is bounded. */
static void let_in(struct fb_oob_listener *l)
{
	for (int k = 0; k < OOB_GUESTS && make_place(l); k++) {
		struct sockaddr_storage s = {0};
		socklen_t n = sizeof(s);
		int fd = accept4(l->fd, (struct sockaddr *)&s, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct oob_guest *g = &l->guest[l->guests++];
		(void)oob_conn_tune(fd);
		oob_conn_init(&g->c, fd);
		g->since = fb_clock_ns();
		name_of(&s, n, g->from, sizeof(g->from));
	}
}

/* A guest with a whole hello. @return true: it is in order; false: it was refused and is closed */
static bool hello_is_good(struct fb_oob_listener *l, struct oob_guest *g, struct oob_hello *h)
{
	const struct oob_hdr hdr = g->c.h;
	char who[160];
	uint8_t *body = oob_conn_take(&g->c);
	const int rc =
		hdr.type == OOB_HELLO ? oob_hello_get(body, hdr.len, hdr.protocol, h) : -EPROTO;
	free(body);
	if (rc != 0) {
		fb_warn("refused %s: its hello cannot be read", g->from);
		oob_refuse(&g->c, FB_EXIT_UNMEASURED, EPROTO, "the hello cannot be read");
		return false;
	}
	if (h->role == OOB_RANK && hdr.protocol == oob_protocol())
		snprintf(who, sizeof(who), "rank %d on %s (%s)", h->rank, h->host, g->from);
	else
		snprintf(who, sizeof(who), "%s (%s)", h->host, g->from);
	if (hdr.protocol != oob_protocol() || strcmp(h->version, FB_VERSION) != 0) {
		fb_warn("refused %s: it is fabricbench %s (protocol %u), this is %s (protocol %u)",
			who, h->version, hdr.protocol, FB_VERSION, oob_protocol());
		oob_refuse(&g->c, FB_EXIT_UNMEASURED, EPROTO, "another version");
		return false;
	}
	if (!oob_token_equal(l->token, h->token)) {
		fb_warn("refused %s: its token is %s", who,
			h->token[0] ? "another one" : "missing");
		oob_refuse(&g->c, FB_EXIT_UNMEASURED, EACCES, "the token is %s",
			h->token[0] ? "not the one expected here" : "missing");
		return false;
	}
	return true;
}

static bool hung_up(const struct oob_conn *c)
{
	char byte;
	const ssize_t k = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return k == 0 || (k < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Read what guest i has sent. @return 1: it said a good hello; 0: it stays; -1: it is gone */
static int hear(struct fb_oob_listener *l, int i, struct oob_hello *h)
{
	struct oob_guest *g = &l->guest[i];
	const int rc = oob_conn_read(&g->c, OOB_MAX_HELLO);
	char text[40];
	if (rc == 0)
		return 0;
	if (rc == 1 && hung_up(&g->c))
		return -1; /* it waited in the queue and gave up */
	if (rc == 1)
		return hello_is_good(l, g, h) ? 1 : -1;
	if (rc == -EPROTO && g->c.hdr_got > 0)
		fb_warn("refused %s: it is not fabricbench (\"%s\")", g->from,
			oob_printable(g->c.hdr, g->c.hdr_got, text, sizeof(text)));
	return -1;
}

/* Read every guest's hello as far as it has come. */
static int hear_all(struct fb_oob_listener *l, struct oob_guest *guest, struct oob_hello *h)
{
	for (int i = l->guests - 1; i >= 0; i--) {
		const int rc = hear(l, i, h);
		if (rc == 1) {
			*guest = l->guest[i];
			l->guest[i] = l->guest[--l->guests];
			return 1;
		}
		if (rc < 0) {
			guest_drop(l, i);
		} else if (fb_clock_ns() - l->guest[i].since > OOB_HALF_OPEN_NS) {
			fb_warn("dropped %s: no hello within %.0f s", l->guest[i].from,
				oob_seconds(OOB_HALF_OPEN_NS));
			guest_drop(l, i);
		}
	}
	return 0;
}

int oob_greet(struct fb_oob_listener *l, int ms, struct oob_guest *guest, struct oob_hello *h)
{
	struct pollfd p[OOB_GUESTS + 1];
	/* With a full house the door would only make poll() spin. */
	p[0] = (struct pollfd){.fd = l->guests < OOB_GUESTS ? l->fd : -1, .events = POLLIN};
	for (int i = 0; i < l->guests; i++)
		p[i + 1] = (struct pollfd){.fd = l->guest[i].c.fd, .events = POLLIN};
	(void)poll(p, (nfds_t)l->guests + 1, ms);
	if (hear_all(l, guest, h) == 1)
		return 1;
	let_in(l);
	return hear_all(l, guest, h);
}

void oob_turn_away(struct fb_oob_listener *l, const char *busy_with, bool (*busy)(struct fb_oob *o),
	struct fb_oob *o)
{
	struct oob_guest g;
	struct oob_hello h;
	while (!l->kept && oob_greet(l, 0, &g, &h) == 1) {
		if (!busy(o)) {
			l->kept = true;
			l->next = g;
			l->next_hello = h;
			return;
		}
		fb_info("refused %s (%s): busy with %s", h.host, g.from, busy_with);
		oob_refuse(&g.c, FB_EXIT_UNMEASURED, EBUSY, "it is busy with %s", busy_with);
	}
}

/* ---- a server's session ------------------------------------------------------------------------
 */

static int welcome_client(struct fb_oob_listener *l, struct oob_guest *g, const struct oob_hello *h,
	struct fb_oob **out, struct fb_err *e)
{
	struct fb_oob *o = oob_new(e);
	if (!o || oob_tcp_init(o, 1, 2, e) != 0) {
		oob_refuse(&g->c, FB_EXIT_UNMEASURED, ENOMEM, "the server has no memory");
		oob_delete(o);
		return -ENOMEM;
	}
	struct oob_tcp *t = o->priv;
	struct fb_strbuf b = {0};
	t->conn[0] = g->c;
	snprintf(t->hosts[0], OOB_HOST, "%s", h->host);
	oob_welcome_put(&b, (const char(*)[OOB_HOST])t->hosts, 2);
	oob_conn_post(&t->conn[0], OOB_WELCOME, &b, OOB_SLICE_MS);
	fb_strbuf_free(&b);
	t->listener = l;
	l->session = o;
	fb_info("client %s (%s) came", h->host, g->from);
	*out = o;
	return 0;
}

int fb_oob_accept(struct fb_oob_listener *l, uint64_t deadline, struct fb_oob **o, struct fb_err *e)
{
	*o = NULL;
	for (;;) {
		struct oob_guest g = l->next;
		struct oob_hello h = l->next_hello;
		const int left = fb_deadline_poll_ms(deadline);
		const bool kept = l->kept;
		l->kept = false;
		if (kept || oob_greet(l, left < OOB_SLICE_MS ? left : OOB_SLICE_MS, &g, &h) == 1) {
			if (h.role == OOB_CLIENT)
				return welcome_client(l, &g, &h, o, e);
			fb_warn("refused rank %d on %s (%s): this is a server, no rendezvous",
				h.rank, h.host, g.from);
			oob_refuse(&g.c, FB_EXIT_UNMEASURED, EPROTO,
				"this is a server for one client, no rendezvous of %d ranks",
				h.size);
			continue;
		}
		if (fb_stop_requested())
			return fb_fail(e, FB_EXIT_UNMEASURED, EINTR,
				"interrupted while waiting for a client");
		if (left == 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"no client came to port %d in time", l->port);
	}
}
