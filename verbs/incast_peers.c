// SPDX-License-Identifier: Apache-2.0
/*
 * The receiver's sessions: reach a host that serves, order its part, open this end; and leave all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/incast_run.h"

/* Hosts are often started at the same moment: a refused connection is tried again for a while. */
#define REFUSED_NS 3000000000ull

/* "node7", "node7:18516", "[fd00::7]:18516"; a bare IPv6 address has no port. */
static int split_host(const char *text, char *host, size_t len, int *port, struct fb_err *e)
{
	const char *end = text + strlen(text), *colon = strrchr(text, ':');
	uint64_t v;

	if (*text == '[') {
		const char *close = strchr(text, ']');
		if (!close || (close[1] && close[1] != ':'))
			return fb_fail_usage(e, "%s: not a HOST or HOST:PORT", text);
		colon = close[1] ? close + 1 : NULL;
		end = close;
		text++;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL;
	} else if (colon) {
		end = colon;
	}
	if (colon && fb_parse_u64(colon + 1, 1, 65535, &v, NULL) != 0)
		return fb_fail_usage(e, "%s: not a HOST or HOST:PORT", text);
	if (colon)
		*port = (int)v;
	if (end == text || (size_t)(end - text) >= len)
		return fb_fail_usage(e, "'%s': not a HOST or HOST:PORT", text);
	snprintf(host, len, "%.*s", (int)(end - text), text);
	return 0;
}

static int connect_peer(
	const struct verbs_incast_reach *how, struct verbs_incast_peer *p, struct fb_err *e)
{
	static const struct timespec pause = {0, 200000000};
	uint64_t deadline = fb_deadline_in(how->connect_timeout_ns);
	uint64_t patience = fb_deadline_in(REFUSED_NS);
	int port = how->port, rc;
	char host[256];

	rc = split_host(p->name, host, sizeof host, &port, e);
	if (rc)
		return rc;
	for (;;) {
		uint64_t now;
		fb_err_clear(e);
		rc = fb_oob_connect(host, port, how->token, deadline, &p->oob, e);
		now = fb_clock_ns();
		if (rc != -ECONNREFUSED || now > patience || now > deadline || fb_stop_requested())
			break;
		nanosleep(&pause, NULL);
	}
	if (rc)
		fb_hint(e, "start `fabricbench verbs serve --port %d` on %s", port, host);
	return rc;
}

/* The peer's host facts, and where it stands among the hosts. */
static int take_host(struct verbs_incast *x, struct verbs_incast_peer *p, unsigned rank,
	uint64_t deadline, struct fb_err *e)
{
	json_t *mine = json_object(), *all = NULL, *peer, *host;
	const json_t *hosts;
	const char *name;
	int rc = fb_oob_gather_json(p->oob, mine, &all, deadline, e);

	json_decref(mine);
	if (rc)
		return rc;
	host = json_incref(json_array_get(all, 1));
	json_decref(all);
	name = fb_json_str(host, "name", "?");
	peer = json_object();
	fb_json_set_int(peer, "rank", rank);
	if (*name && json_is_object(host))
		fb_doc_add_host(x->doc, json_incref(host));
	hosts = json_object_get(json_object_get(fb_doc_json(x->doc), "system"), "hosts");
	for (size_t i = 0; i < json_array_size(hosts); i++)
		if (!strcmp(fb_json_str(json_array_get(hosts, i), "name", ""), name))
			fb_json_set_int(peer, "host", (int64_t)i);
	fb_doc_add_peer(x->doc, peer);
	json_decref(host);
	return 0;
}

int verbs_incast_join(struct verbs_incast *x, unsigned i, const struct verbs_incast_reach *how,
	uint64_t deadline, struct fb_err *e)
{
	struct verbs_incast_peer *p = &x->peer[i];
	struct verbs_job job = x->job;
	struct verbs_client c = {
		.p = x->job.p, .node = x->job.node, .doc = x->doc, .deadline = deadline};
	bool hardware = false;
	int rc;

	c.p.load.role = i < x->nsenders ? VERBS_ROLE_SENDER : VERBS_ROLE_VICTIM;
	job.p = c.p;
	rc = connect_peer(how, p, e);
	if (rc)
		return rc;
	rc = verbs_session_order(&c, p->oob, &hardware, e);
	if (rc == 0)
		rc = take_host(x, p, i + 1, deadline, e);
	job.p = c.p; /* the order has settled the GID's type */
	if (rc == 0)
		rc = verbs_incast_open(&p->end, &job, p->oob, deadline, e);
	x->job.hardware = x->job.hardware && hardware;
	return rc;
}

void verbs_incast_drop(struct verbs_incast_peer *p, const struct fb_err *why)
{
	struct fb_err ignored = {0};
	json_t *answer = NULL;

	if (p->oob && why)
		fb_oob_abort(p->oob, why);
	else if (p->oob)
		(void)!verbs_incast_ask(p, json_pack("{s:s}", "do", "end"), &answer,
			fb_deadline_in(5000000000ull), &ignored);
	json_decref(answer);
	fb_oob_close(p->oob);
	p->oob = NULL;
	verbs_incast_close(&p->end);
	json_decref(p->before);
	json_decref(p->after);
	p->before = p->after = NULL;
}

void verbs_incast_leave(struct verbs_incast *x, struct fb_err *e)
{
	unsigned n = x->nsenders + (x->victim ? 1 : 0);

	for (unsigned i = 0; i < n; i++) {
		struct verbs_incast_peer *p = &x->peer[i];
		verbs_incast_drop(p, e->code ? e : p->lost ? &p->why : NULL);
	}
	json_decref(x->own_before);
	json_decref(x->own_after);
	free(x->hist);
	free(x->peer);
}
