// SPDX-License-Identifier: Apache-2.0
/*
 * Meeting over tcp: a client with its server, and N ranks around rank 0.
 *
 * Rank 0 seats every rank that says a good hello, and ends the rendezvous for all, with its cause,
 * when one is there twice, expects another size, has died, or has not come in time. Strangers are
 * refused with a reason and change nothing.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "bench/oob/oob_listen.h"
#include "version.h"

/* A rank that has been seated hears of rank 0's verdict this long after rank 0's own deadline. */
#define VERDICT_NS 2000000000u
/* So long rank 0 still answers after it has ended a rendezvous. */
#define LAST_CALL_NS 300000000u

/* ---- the side that dials -----------------------------------------------------------------------
 */

struct door {
	const char *host;
	int port;
	const char *remedy; /* how to start what should be there */
};

static int foreign(const struct door *d, struct oob_conn *c, struct fb_err *e)
{
	uint8_t raw[64];
	char text[40];
	memcpy(raw, c->hdr, c->hdr_got);
	ssize_t k = recv(c->fd, raw + c->hdr_got, sizeof(raw) - OOB_HDR, MSG_DONTWAIT);
	fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
		"%s port %d answered, but is not fabricbench (\"%s\")", d->host, d->port,
		oob_printable(raw, c->hdr_got + (k > 0 ? (size_t)k : 0), text, sizeof(text)));
	fb_hint(e, "%s, or give its port with -p", d->remedy);
	return -EPROTO;
}

static int refused(
	const struct door *d, const struct oob_hdr *h, const uint8_t *body, struct fb_err *e)
{
	struct fb_err why;
	char version[OOB_VERSION] = "";
	const int rc = oob_err_get(body, h->len, version, &why);
	if (h->protocol != oob_protocol() || (version[0] && strcmp(version, FB_VERSION) != 0)) {
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the peer at %s port %d is fabricbench %s (protocol %u), this is %s (protocol %u)",
			d->host, d->port, version[0] ? version : "of another version", h->protocol,
			FB_VERSION, oob_protocol());
		fb_hint(e, "install the same version on both sides");
		return -EPROTO;
	}
	if (rc != 0 || why.code == 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"%s port %d refused without a readable reason", d->host, d->port);
	fb_fail(e, why.exit, why.code, "%s port %d refused: %s", d->host, d->port, why.msg);
	if (why.hint[0] != '\0')
		fb_hint(e, "%s", why.hint);
	else if (why.code == -EACCES)
		fb_hint(e, "give both sides the same --token (or FABRICBENCH_TOKEN)");
	else if (why.code == -EBUSY)
		fb_hint(e, "try again when it is done, or start another server with another -p");
	return why.code;
}

static int silent(const struct door *d, uint64_t begin, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
		"%s port %d took the connection, but said nothing for %.1f s: it is busy, or is not "
		"fabricbench",
		d->host, d->port, oob_seconds(fb_clock_ns() - begin));
	fb_hint(e, "%s, or give its port with -p", d->remedy);
	return -ETIMEDOUT;
}

/* The answer to our hello: a welcome into t->hosts, or why not. */
static int answer(const struct door *d, struct oob_conn *c, struct fb_oob *o, uint64_t deadline,
	struct fb_err *e)
{
	struct oob_tcp *t = o->priv;
	const uint64_t begin = fb_clock_ns();
	int rc;
	while ((rc = oob_conn_read(c, OOB_MAX_WELCOME)) == 0) {
		const int left = fb_deadline_poll_ms(deadline);
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		if (left == 0)
			return silent(d, begin, e);
		if (fb_stop_requested())
			return fb_fail(e, FB_EXIT_UNMEASURED, EINTR,
				"interrupted while waiting for %s", d->host);
		(void)poll(&p, 1, left < OOB_SLICE_MS ? left : OOB_SLICE_MS);
	}
	if (rc == -EPROTO)
		return foreign(d, c, e);
	if (rc < 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET,
			"%s port %d closed the connection without a word%s%s: it ended, or is not fabricbench",
			d->host, d->port, c->why ? ": " : "", c->why ? strerror(c->why) : "");
		fb_hint(e, "%s, or give its port with -p", d->remedy);
		return -ECONNRESET;
	}
	const struct oob_hdr h = c->h;
	struct fb_err why = {0};
	char version[OOB_VERSION];
	uint8_t *body = oob_conn_take(c);
	if (h.type == OOB_REFUSE)
		rc = refused(d, &h, body, e);
	else if (h.type == OOB_ABORT && oob_err_get(body, h.len, version, &why) == 0 &&
		 why.code != 0)
		rc = fb_fail(e, why.exit, why.code, "%s", why.msg);
	else if (h.type == OOB_WELCOME && oob_welcome_get(body, h.len, t->hosts, o->size) == 0)
		rc = 0;
	else
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"%s port %d sent an answer that cannot be read", d->host, d->port);
	if (h.type == OOB_ABORT && why.hint[0] != '\0')
		fb_hint(e, "%s", why.hint);
	free(body);
	return rc;
}

static void say_hello(struct oob_conn *c, enum oob_role role, int rank, int size, const char *token)
{
	struct oob_hello h = {.role = (uint8_t)role, .rank = rank, .size = size};
	struct fb_strbuf b = {0};
	snprintf(h.version, sizeof(h.version), "%s", FB_VERSION);
	oob_hostname(h.host, sizeof(h.host));
	snprintf(h.token, sizeof(h.token), "%s", token ? token : "");
	oob_hello_put(&b, &h);
	oob_conn_post(c, OOB_HELLO, &b, 0); /* the first bytes of a connection always fit */
	fb_strbuf_free(&b);
}

int fb_oob_connect(const char *host, int port, const char *token, uint64_t deadline,
	struct fb_oob **out, struct fb_err *e)
{
	const struct door d = {host, port, "start \"fabricbench verbs serve\" there"};
	int fd = -1;
	*out = NULL;
	if (token && strlen(token) >= OOB_TOKEN)
		return fb_fail_usage(e, "the token has more than %d characters", OOB_TOKEN - 1);
	struct fb_oob *o = oob_new(e);
	if (!o)
		return -ENOMEM;
	int rc = oob_dial(host, port, false, deadline, &fd, e);
	if (rc == -ECONNREFUSED)
		fb_hint(e, "%s, or give its port with -p", d.remedy);
	else if (rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH)
		fb_hint(e, "is the host up, and does a firewall let TCP port %d through? ping %s",
			port, host);
	if (rc != 0)
		goto delete_handle;
	rc = oob_tcp_init(o, 0, 2, e);
	if (rc != 0) {
		struct oob_conn c;
		oob_conn_init(&c, fd);
		oob_conn_close(&c);
		goto delete_handle;
	}
	struct oob_conn *c = &((struct oob_tcp *)o->priv)->conn[1];
	oob_conn_init(c, fd);
	say_hello(c, OOB_CLIENT, 0, 2, token);
	rc = answer(&d, c, o, deadline, e);
	if (rc != 0) {
		o->ops->close(o);
		goto delete_handle;
	}
	*out = o;
	return 0;

delete_handle:
	oob_delete(o);
	return rc;
}

/* ---- addresses ---------------------------------------------------------------------------------
 */

/* "host", "host:port", "[v6]:port", "v6" */
static int split_master(const char *master, char *host, size_t cap, int *port, struct fb_err *e)
{
	const char *end = master + strlen(master), *colon = strrchr(master, ':');
	const char *from = master, *port_text = NULL;
	if (master[0] == '[') {
		const char *close_bracket = strchr(master, ']');
		if (!close_bracket || (close_bracket[1] != '\0' && close_bracket[1] != ':'))
			return fb_fail_usage(e, "\"%s\" is no HOST[:PORT]", master);
		from = master + 1;
		end = close_bracket;
		port_text = close_bracket[1] == ':' ? close_bracket + 2 : NULL;
	} else if (colon && strchr(master, ':') == colon) {
		end = colon;
		port_text = colon + 1;
	}
	const size_t n = (size_t)(end - from);
	if (n == 0 || n >= cap)
		return fb_fail_usage(e, "\"%s\" is no HOST[:PORT]", master);
	memcpy(host, from, n);
	host[n] = '\0';
	uint64_t v = 0;
	if (port_text && fb_parse_u64(port_text, 1, 65535, &v, NULL) != 0)
		return fb_fail_usage(e, "\"%s\" is no port (in \"%s\")", port_text, master);
	if (port_text)
		*port = (int)v;
	return 0;
}

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
	       strncmp(host, "127.", 4) == 0;
}

/* ---- rank 0 ------------------------------------------------------------------------------------
 */

struct meeting {
	struct fb_oob *o;
	struct fb_oob_listener *l;
	bool *has;
	int here;
	uint64_t timeout_ns;
	bool some; /* go on with those who came */
};

static void end_for_all(struct meeting *m, struct oob_guest *g, struct fb_err *e)
{
	struct oob_guest late;
	struct oob_hello h;
	const uint64_t until = fb_deadline_in(LAST_CALL_NS);
	if (g)
		oob_refuse(&g->c, e->exit, e->code, "%s", e->msg);
	oob_tcp_die(m->o, e, -1);
	/* Whoever is at the door, or just behind it, learns the cause too. */
	while (fb_clock_ns() < until)
		if (oob_greet(m->l, 10, &late, &h) == 1)
			oob_refuse(&late.c, e->exit, e->code, "%s", e->msg);
}

/* Seat a rank. @return 0, or why the whole rendezvous ends */
static int seat(struct meeting *m, struct oob_guest *g, const struct oob_hello *h, struct fb_err *e)
{
	struct oob_tcp *t = m->o->priv;
	const int size = m->o->size;
	if (h->role != OOB_RANK) {
		fb_warn("refused a client on %s (%s): this is a rendezvous of %d ranks", h->host,
			g->from, size);
		oob_refuse(&g->c, FB_EXIT_UNMEASURED, EPROTO,
			"this is a rendezvous of %d ranks, no server for a client", size);
		return 0;
	}
	int rc = 0;
	if (h->size != size)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"rank %d on %s (%s) expects %d ranks, rank 0 expects %d", h->rank, h->host,
			g->from, h->size, size);
	else if (h->rank < 0 || h->rank >= size)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "rank %d on %s (%s) is none of 0 to %d",
			h->rank, h->host, g->from, size - 1);
	else if (m->has[h->rank])
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"rank %d is there twice: on %s, and on %s (%s)", h->rank, t->hosts[h->rank],
			h->host, g->from);
	if (rc != 0) {
		fb_hint(e,
			"every process needs the same size and a rank of its own: check --ranks and "
			"--rank, WORLD_SIZE and RANK");
		end_for_all(m, g, e);
		return rc;
	}
	t->conn[h->rank] = g->c;
	snprintf(t->hosts[h->rank], OOB_HOST, "%s", h->host);
	m->has[h->rank] = true;
	m->here++;
	fb_debug("rank %d on %s (%s) came: %d of %d", h->rank, h->host, g->from, m->here, size);
	return 0;
}

/* "ranks 3, 7-9 of 16 did not come within 30.0 s; here: 12 ranks on node01, node02" */
static int name_missing(struct meeting *m, struct fb_err *e)
{
	struct oob_tcp *t = m->o->priv;
	struct fb_strbuf miss = {0}, seen = {0};
	const int gone = m->o->size - m->here;
	int hosts = 0;
	oob_missing(&miss, m->has, m->o->size);
	for (int i = 0; i < m->o->size; i++) {
		bool known = !m->has[i];
		for (int k = 0; k < i && !known; k++)
			known = m->has[k] && strcmp(t->hosts[k], t->hosts[i]) == 0;
		if (!known && hosts++ < 16)
			fb_strbuf_printf(&seen, "%s%s", seen.len > 0 ? ", " : "", t->hosts[i]);
	}
	if (hosts > 16)
		fb_strbuf_printf(&seen, " and %d more", hosts - 16);
	fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
		"rank%s %.300s of %d never came within %.1f s; here %s %d on %.300s",
		gone > 1 ? "s" : "", miss.s ? miss.s : "?", m->o->size, oob_seconds(m->timeout_ns),
		m->here > 1 ? "are" : "is", m->here, seen.s ? seen.s : "?");
	fb_hint(e,
		"look at those ranks' own output; they need TCP to %s port %d; slow starts: "
		"--connect-timeout",
		t->hosts[0], m->l->port);
	fb_strbuf_free(&miss);
	fb_strbuf_free(&seen);
	end_for_all(m, NULL, e);
	return -ETIMEDOUT;
}

/* Did a seated rank die while the others are still coming? */
static int check_seats(struct meeting *m, struct fb_err *e)
{
	struct fb_err lost = {0};
	if (m->o->ops->lost(m->o, &lost) == 0)
		return 0;
	fb_fail(e, lost.exit, lost.code, "%s, before all %d ranks had met", lost.msg, m->o->size);
	fb_hint(e, "%s", lost.hint);
	end_for_all(m, NULL, e);
	return lost.code;
}

static int gather_ranks(struct meeting *m, struct fb_err *e)
{
	const uint64_t deadline = fb_deadline_in(m->timeout_ns);
	uint64_t checked = fb_clock_ns();
	while (m->here < m->o->size) {
		struct oob_guest g;
		struct oob_hello h;
		const int left = fb_deadline_poll_ms(deadline);
		int rc = 0;
		if (oob_greet(m->l, left < OOB_SLICE_MS ? left : OOB_SLICE_MS, &g, &h) == 1)
			rc = seat(m, &g, &h, e);
		else if (fb_stop_requested())
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EINTR,
				"interrupted while waiting for ranks");
		else if (left == 0 && m->some)
			return 0;
		else if (left == 0)
			rc = name_missing(m, e);
		if (rc == 0 && !m->some && fb_clock_ns() - checked > OOB_SLICE_MS * 1000000u) {
			rc = check_seats(m, e);
			checked = fb_clock_ns();
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* One descriptor for each rank: raise the soft limit where the hard one allows. */
static void make_room(int size)
{
	struct rlimit r;
	const rlim_t need = (rlim_t)size + 256;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= need)
		return;
	r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur < need)
		fb_warn("%d ranks need %d open files and the limit is %d: raise it (ulimit -n)",
			size, (int)need, (int)r.rlim_cur);
}

static int meet_root(
	const struct fb_oob_cfg *cfg, struct fb_oob_listener *l, struct fb_oob *o, struct fb_err *e)
{
	struct oob_tcp *t = o->priv;
	struct meeting m = {
		.o = o, .l = l, .here = 1, .timeout_ns = cfg->timeout_ns, .some = cfg->some};
	struct fb_strbuf b = {0};
	m.has = calloc((size_t)o->size, sizeof(*m.has));
	if (!m.has)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ranks", o->size);
	m.has[0] = true;
	make_room(o->size);
	int rc = gather_ranks(&m, e);
	t->some = cfg->some;
	for (int i = 1; i < o->size; i++)
		t->conn[i].eof = t->conn[i].eof || !m.has[i];
	free(m.has);
	if (rc != 0)
		return rc;
	oob_welcome_put(&b, (const char(*)[OOB_HOST])t->hosts, o->size);
	if (b.failed)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ranks", o->size);
	for (int i = 1; i < o->size && rc == 0; i++)
		oob_conn_post(&t->conn[i], OOB_WELCOME, &b, 1000);
	fb_strbuf_free(&b);
	return rc;
}

/* ---- all ranks ---------------------------------------------------------------------------------
 */

static int meet_rank(const struct fb_oob_cfg *cfg, const char *host, int port, struct fb_oob *o,
	struct fb_err *e)
{
	const struct door d = {host, port, "start rank 0 there"};
	struct oob_conn *c = &((struct oob_tcp *)o->priv)->conn[0];
	int fd = -1;
	int rc = oob_dial(host, port, true, fb_deadline_in(cfg->timeout_ns), &fd, e);
	if (rc != 0) {
		fb_hint(e,
			"rank 0 never listened there within %.0f s: check --master (MASTER_ADDR, "
			"MASTER_PORT), rank 0's own output, and firewalls",
			oob_seconds(cfg->timeout_ns));
		return rc;
	}
	oob_conn_init(c, fd);
	say_hello(c, OOB_RANK, cfg->rank, cfg->ranks, cfg->token);
	return answer(&d, c, o, fb_deadline_in(cfg->timeout_ns + VERDICT_NS), e);
}

int oob_tcp_meet(const struct fb_oob_cfg *cfg, struct fb_oob_listener *given, struct fb_oob *o,
	struct fb_err *e)
{
	char host[256] = "";
	int port = cfg->port > 0 ? cfg->port : FB_OOB_DEFAULT_PORT;
	int rc = cfg->master ? split_master(cfg->master, host, sizeof(host), &port, e) : 0;
	if (rc != 0)
		return rc;
	struct fb_oob_listener *l = given;
	if (cfg->rank == 0 && !given) {
		/* A master that only this machine can reach needs no door to the world. */
		const char *address = cfg->bind ? cfg->bind : is_loopback(host) ? host : NULL;
		rc = fb_oob_listen(address, &port, cfg->token, &l, e);
		if (rc != 0)
			return rc;
	}
	rc = oob_tcp_init(o, cfg->rank, cfg->ranks, e);
	if (rc == 0) {
		rc = cfg->rank == 0 ? meet_root(cfg, l, o, e) : meet_rank(cfg, host, port, o, e);
		if (rc != 0)
			o->ops->close(o);
	}
	if (!given)
		fb_oob_listener_close(l);
	return rc;
}
