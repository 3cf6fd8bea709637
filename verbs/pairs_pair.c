// SPDX-License-Identifier: Apache-2.0
/*
 * One pair, from either side. The client dials the server's addresses in turn, says which pair it
 * comes for, and then both run the session that `verbs latency` and `verbs bandwidth` run. A
 * deadline over all calls of the pair's connection keeps one bad pair from holding up the step.
 */
#include "verbs/pairs_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "bench/core/sysroot.h"
#include "verbs/params.h"
#include "verbs/session.h"

#define MAX_ADDRESSES 16
#define GREETING_NS   5000000000ull /* a client says at once which pair it comes for */

/* ---- settings as JSON ------------------------------------------------------------------------ */

json_t *pairs_runctl_to_json(const struct fb_runctl_cfg *rc)
{
	json_t *j = json_object();

	fb_json_set_int(j, "iters", (int64_t)rc->iters);
	fb_json_set_int(j, "duration_ns", (int64_t)rc->duration_ns);
	fb_json_set_int(j, "warmup", (int64_t)rc->warmup);
	fb_json_set_real(j, "ci", rc->ci_width, "not set");
	fb_json_set_int(j, "min_iters", (int64_t)rc->min_iters);
	fb_json_set_int(j, "max_iters", (int64_t)rc->max_iters);
	fb_json_set_int(j, "max_time_ns", (int64_t)rc->max_time_ns);
	fb_json_set_int(j, "point_timeout_ns", (int64_t)rc->point_timeout_ns);
	return j;
}

static uint64_t natural(const json_t *j, const char *key)
{
	int64_t v = fb_json_int(j, key, 0);

	return v > 0 ? (uint64_t)v : 0;
}

void pairs_runctl_from_json(struct fb_runctl_cfg *rc, const json_t *j)
{
	memset(rc, 0, sizeof *rc);
	rc->iters = natural(j, "iters");
	rc->duration_ns = natural(j, "duration_ns");
	rc->warmup = natural(j, "warmup");
	rc->ci_width = fb_json_num(j, "ci", 0.02);
	rc->min_iters = natural(j, "min_iters");
	rc->max_iters = natural(j, "max_iters");
	rc->max_time_ns = natural(j, "max_time_ns");
	rc->point_timeout_ns = natural(j, "point_timeout_ns");
}

/* ---- what this host offers ------------------------------------------------------------------- */

int pairs_worker_open(struct pairs_worker *w, const struct verbs_dev_want *want, struct fb_err *e)
{
	unsigned char raw[16];

	memset(w, 0, sizeof *w);
	w->want = *want;
	w->peer_wait_ns = 5000000000ull;
	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, errno, "no random bytes: %s", strerror(errno));
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(w->token + 2 * i, 3, "%02x", raw[i]);
	return fb_oob_listen(NULL, &w->port, w->token, &w->listener, e);
}

void pairs_worker_close(struct pairs_worker *w)
{
	fb_oob_listener_close(w->listener);
	w->listener = NULL;
}

static bool is_useless(const struct ifaddrs *a)
{
	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
		return true;
	if (a->ifa_addr->sa_family == AF_INET)
		return false;
	/* A link-local address is of no use without the other host's interface name. */
	return a->ifa_addr->sa_family != AF_INET6 ||
	       IN6_IS_ADDR_LINKLOCAL(
		       &((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr);
}

/* Every address another host might reach: IPv4 first. */
static json_t *addresses(void)
{
	json_t *list = json_array();
	struct ifaddrs *all = NULL;
	char text[INET6_ADDRSTRLEN];

	if (getifaddrs(&all) != 0)
		return list;
	for (int family = AF_INET;; family = AF_INET6) {
		for (struct ifaddrs *a = all; a; a = a->ifa_next) {
			if (is_useless(a) || a->ifa_addr->sa_family != family ||
				json_array_size(list) >= MAX_ADDRESSES)
				continue;
			const void *at =
				family == AF_INET
					? (const void *)&((struct sockaddr_in *)(void *)a->ifa_addr)
						  ->sin_addr
					: (const void *)&(
						  (struct sockaddr_in6 *)(void *)a->ifa_addr)
						  ->sin6_addr;
			if (inet_ntop(family, at, text, sizeof text))
				json_array_append_new(list, json_string(text));
		}
		if (family == AF_INET6)
			break;
	}
	freeifaddrs(all);
	return list;
}

static json_t *error_json(const struct fb_err *e)
{
	json_t *j = json_object();

	fb_json_set_str(j, "message", e->msg);
	fb_json_set_str(j, "remedy", e->hint);
	fb_json_set_int(j, "code", e->code);
	fb_json_set_int(j, "exit", (int64_t)e->exit);
	return j;
}

json_t *pairs_worker_offer(struct pairs_worker *w)
{
	static const struct fb_sysroot live = {.dir = NULL};
	json_t *j = json_object(), *devices = json_array();
	char text[128];
	struct verbs_node node = {.n = 0};
	struct fb_err e = {0};

	fb_host_name(text, sizeof text);
	fb_json_set_str(j, "name", text);
	if (fb_sysroot_read(&live, "/proc/sys/kernel/random/boot_id", text, sizeof text) > 0)
		fb_json_set_str(j, "boot_id", text);
	json_object_set_new(j, "addresses", addresses());
	fb_json_set_int(j, "port", w->port);
	fb_json_set_str(j, "token", w->token);
	if (verbs_node_open(&node, &w->want, &e) != 0)
		json_object_set_new(j, "error", error_json(&e));
	for (unsigned i = 0; i < node.n; i++) {
		json_t *d = json_object();
		fb_json_set_str(d, "name", node.dev[i].name);
		fb_json_set_bool(d, "software", node.dev[i].software);
		fb_json_set_int(d, "gid_type", (int)node.dev[i].gid.type);
		fb_json_set_int(d, "gid_family", (int)node.dev[i].gid.family);
		json_array_append_new(devices, d);
	}
	json_object_set_new(j, "devices", devices);
	verbs_node_close(&node);
	json_t *host = fb_sysinfo_host(&live, false);
	if (host)
		json_object_set_new(j, "host", host);
	return j;
}

/* ---- one pair -------------------------------------------------------------------------------- */

struct job {
	struct pairs_worker *w;
	const json_t *order;
	int64_t id;
	uint64_t deadline;
	bool reached;
};

static int run_client(struct job *j, struct fb_oob *oob, struct fb_err *e)
{
	struct verbs_node node = {.n = 0};
	struct fb_runctl_cfg run;
	struct verbs_dev_want want = j->w->want;
	struct verbs_client c = {
		.node = &node, .runctl = &run, .doc = j->w->doc, .deadline = j->deadline};
	json_t *hello = json_pack("{s:I}", "pair", (json_int_t)j->id);
	int rc = hello ? fb_oob_bcast_json(oob, &hello, j->deadline, e) : -ENOMEM;

	json_decref(hello);
	if (rc)
		return rc;
	pairs_runctl_from_json(&run, json_object_get(j->order, "run"));
	rc = verbs_params_from_json(&c.p, json_object_get(j->order, "params"), e);
	if (rc == 0) {
		want.device = fb_json_str(j->order, "device", NULL);
		snprintf(c.p.peer_device, sizeof c.p.peer_device, "%s",
			fb_json_str(j->order, "peer_device", ""));
		rc = verbs_node_open(&node, &want, e);
	}
	if (rc == 0)
		rc = verbs_session_client(&c, oob, e);
	verbs_node_close(&node);
	return rc;
}

/* The server's addresses in turn; a wrong host behind one of them refuses by its token. */
static int dial(struct job *j, struct fb_oob **oob, struct fb_err *e)
{
	const json_t *peer = json_object_get(j->order, "peer"),
		     *list = json_object_get(peer, "addresses"), *a;
	const char *name = fb_json_str(peer, "name", "?");
	struct fb_err last = {0};
	size_t i;

	json_array_foreach (list, i, a) {
		uint64_t until = fb_deadline_in(j->w->peer_wait_ns);
		fb_err_clear(&last);
		if (!json_is_string(a))
			continue;
		int rc = fb_oob_connect(json_string_value(a), (int)fb_json_int(peer, "port", 0),
			fb_json_str(peer, "token", NULL), until < j->deadline ? until : j->deadline,
			oob, &last);
		if (rc == 0)
			return 0;
		if (rc == -EINTR || fb_clock_ns() > j->deadline)
			break;
	}
	fb_fail(e, FB_EXIT_UNMEASURED, last.code ? last.code : EHOSTUNREACH,
		"no control connection to %s: %s", name,
		last.code ? last.msg : "it has told no address");
	fb_hint(e, "the hosts need TCP between each other: ping %s, and look at firewalls", name);
	return e->code;
}

static int as_client(struct job *j, struct fb_err *e)
{
	struct fb_oob *oob = NULL;
	int rc = dial(j, &oob, e);

	if (rc)
		return rc;
	j->reached = true;
	fb_oob_limit(oob, j->deadline);
	rc = run_client(j, oob, e);
	if (rc)
		fb_oob_abort(oob, e);
	fb_oob_close(oob);
	return rc;
}

/* Is this client here for this pair? One that comes late, for a pair given up, is not. */
static bool is_ours(struct job *j, struct fb_oob *oob)
{
	json_t *hello = NULL;
	struct fb_err e = {0};
	uint64_t until = fb_deadline_in(GREETING_NS);
	bool ours;

	fb_oob_limit(oob, until < j->deadline ? until : j->deadline);
	ours = fb_oob_bcast_json(oob, &hello, until, &e) == 0 &&
	       fb_json_int(hello, "pair", -1) == j->id;
	json_decref(hello);
	return ours;
}

static int as_server(struct job *j, struct fb_err *e)
{
	struct verbs_server srv = {
		.device = fb_json_str(j->order, "device", NULL), .port = j->w->want.port};
	struct fb_oob *oob = NULL;
	char line[1024];
	int rc;

	for (;;) {
		rc = fb_oob_accept(j->w->listener, j->deadline, &oob, e);
		if (rc)
			return rc;
		if (is_ours(j, oob))
			break;
		fb_oob_close(oob);
	}
	j->reached = true;
	fb_oob_limit(oob, j->deadline);
	rc = verbs_session_server(&srv, oob, line, sizeof line, e);
	if (rc)
		fb_oob_abort(oob, e);
	fb_oob_close(oob);
	return rc;
}

/* What a pair's result keeps: bounded, whatever the benchmark wrote. */
static json_t *trimmed(const json_t *result)
{
	static const char *const keys[] = {"where", "params", "metric", "unit", "better", "load",
		"sync", "definition", "value", "ci", "bound", "n", "warmup_dropped", "validity"};
	json_t *j = json_object();

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		json_t *v = json_object_get(result, keys[i]);
		if (v)
			json_object_set(j, keys[i], v);
	}
	return j;
}

static void add_result(struct pairs_worker *w, size_t from, json_t *report, struct fb_err *e)
{
	const json_t *all = json_object_get(fb_doc_json(w->doc), "results");
	const json_t *r = json_array_get(all, from);
	double value = fb_json_num(r, "value", NAN);

	if (!isfinite(value) || value <= 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODATA, "the pair gave no value: %s",
			fb_json_str(r, "value_reason", "nothing was measured"));
		return;
	}
	fb_json_set_real(report, "value", value, "none");
	json_object_set_new(report, "result", trimmed(r));
}

/* The document is scratch: what the session left in it is taken out again. */
static void shorten(struct fb_doc *doc, const char *key, size_t n)
{
	json_t *list = json_object_get(fb_doc_json(doc), key);

	while (json_array_size(list) > n)
		json_array_remove(list, json_array_size(list) - 1);
}

json_t *pairs_worker_do(struct pairs_worker *w, const json_t *order)
{
	struct job j = {.w = w,
		.order = order,
		.id = fb_json_int(order, "pair", -1),
		.deadline = fb_deadline_in(natural(order, "seconds") * 1000000000u)};
	bool client = json_is_true(json_object_get(order, "client"));
	json_t *doc = fb_doc_json(w->doc), *report = json_object();
	size_t results = json_array_size(json_object_get(doc, "results"));
	size_t errors = json_array_size(json_object_get(doc, "errors"));
	struct fb_err e = {0};
	int rc = client ? as_client(&j, &e) : as_server(&j, &e);

	fb_json_set_int(report, "pair", j.id);
	if (rc == 0 && client)
		add_result(w, results, report, &e);
	if (rc && !e.code)
		fb_fail(&e, FB_EXIT_UNMEASURED, rc, "the pair failed: %s", strerror(-rc));
	if (e.code)
		json_object_set_new(report, "error", error_json(&e));
	fb_json_set_bool(report, "wrong", e.exit == FB_EXIT_WRONG_DATA);
	fb_json_set_str(report, "state",
		!e.code     ? "measured"
		: j.reached ? "failed"
			    : "unreachable");
	shorten(w->doc, "results", results);
	shorten(w->doc, "errors", errors);
	return report;
}
