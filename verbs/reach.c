// SPDX-License-Identifier: Apache-2.0
/* See reach.h. */
#include "verbs/reach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/units.h"

#define REFUSED_NS 3000000000ull

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

int verbs_reach_host(
	const struct verbs_reach *how, const char *host, struct fb_oob **oob, struct fb_err *e)
{
	static const struct timespec pause = {0, 200000000};
	uint64_t deadline = fb_deadline_in(how->connect_timeout_ns);
	uint64_t patience = fb_deadline_in(REFUSED_NS);
	int rc;

	for (;;) {
		uint64_t now;
		fb_err_clear(e);
		rc = fb_oob_connect(host, how->port, how->token, deadline, oob, e);
		now = fb_clock_ns();
		if (rc != -ECONNREFUSED || now > patience || now > deadline || fb_stop_requested())
			break;
		nanosleep(&pause, NULL);
	}
	if (rc)
		fb_hint(e, "start `fabricbench verbs serve --port %d` on %s", how->port, host);
	return rc;
}

int verbs_reach(
	const struct verbs_reach *how, const char *name, struct fb_oob **oob, struct fb_err *e)
{
	struct verbs_reach to = *how;
	char host[256];
	int rc = split_host(name, host, sizeof host, &to.port, e);

	return rc ? rc : verbs_reach_host(&to, host, oob, e);
}

int verbs_reach_take_host(
	struct fb_doc *doc, struct fb_oob *oob, unsigned rank, uint64_t deadline, struct fb_err *e)
{
	json_t *mine = json_object(), *all = NULL, *peer, *host;
	const json_t *hosts;
	const char *name;
	int rc = fb_oob_gather_json(oob, mine, &all, deadline, e);

	json_decref(mine);
	if (rc)
		return rc;
	host = json_incref(json_array_get(all, 1));
	json_decref(all);
	name = fb_json_str(host, "name", "?");
	peer = json_object();
	fb_json_set_int(peer, "rank", rank);
	if (*name && json_is_object(host))
		fb_doc_add_host(doc, json_incref(host));
	hosts = json_object_get(json_object_get(fb_doc_json(doc), "system"), "hosts");
	for (size_t i = 0; i < json_array_size(hosts); i++)
		if (!strcmp(fb_json_str(json_array_get(hosts, i), "name", ""), name))
			fb_json_set_int(peer, "host", (int64_t)i);
	fb_doc_add_peer(doc, peer);
	json_decref(host);
	return 0;
}
