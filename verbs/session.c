// SPDX-License-Identifier: Apache-2.0
/*
 * The session's messages, in order: client's order (version, host, parameters, number of rails);
 * agreement on it and on the opened devices; the server's facts; then run control's own.
 */
#include "verbs/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/sysinfo.h"
#include "bench/core/sysroot.h"
#include "bench/core/units.h"
#include "verbs/benches.h"
#include "verbs/incast.h"
#include "verbs/load.h"
#include "verbs/loss.h"
#include "verbs/state.h"

/* A client that has said hello and then says nothing is given up after this. */
#define ORDER_TIMEOUT_NS 30000000000ull
/* However long a client asks for, a session ends. */
#define SESSION_MAX_S 86400

static const struct fb_sysroot live = {.dir = NULL};

static const struct fb_bench *const benches[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] = &verbs_latency_bench,
	[VERBS_BANDWIDTH] = &verbs_bandwidth_bench,
	[VERBS_LOAD] = &verbs_load_bench,
};

static void boot_id(char *buf, size_t len)
{
	if (fb_sysroot_read(&live, "/proc/sys/kernel/random/boot_id", buf, len) < 0)
		fb_host_name(buf, len);
}

/* The bandwidth of both directions is what both ends sent. */
static struct fb_bench bench_for(const struct verbs_params *p)
{
	struct fb_bench b = *benches[p->bench];

	if (p->bidirectional)
		b.combine = FB_COMBINE_SUM_RATE;
	if (p->rate)
		b.load = "open"; /* messages come by the clock */
	return b;
}

/* ---- client ---------------------------------------------------------------------------------- */

static json_t *make_order(struct verbs_client *c)
{
	json_t *j = json_object();
	char host[128], boot[64];
	uint64_t now = fb_clock_ns();

	if (!j)
		return NULL;
	fb_host_name(host, sizeof host);
	boot_id(boot, sizeof boot);
	c->p.gid_type = (int)c->node->dev[0].gid.type;
	c->p.gid_family = (int)c->node->dev[0].gid.family;
	fb_json_set_int(j, "verbs", VERBS_SESSION_VERSION);
	fb_json_set_str(j, "host", host);
	fb_json_set_str(j, "boot_id", boot);
	fb_json_set_int(j, "rails", c->node->n);
	fb_json_set_int(j, "seconds",
		c->deadline > now ? (int64_t)((c->deadline - now) / 1000000000u) + 1 : 1);
	fb_json_set_bool(j, "hardware", verbs_node_hardware(c->node));
	json_object_set_new(j, "params", verbs_params_to_json(&c->p));
	return j;
}

/* Are there real NICs at both ends? Then bounds mean something. Collective; *both at the client. */
static int compare_kind(
	struct fb_oob *o, bool mine, bool *both, uint64_t deadline, struct fb_err *e)
{
	json_t *j = json_boolean(mine), *all = NULL;
	int rc = fb_oob_gather_json(o, j, &all, deadline, e);

	*both = mine && json_is_true(json_array_get(all, 1));
	json_decref(all);
	json_decref(j);
	return rc;
}

int verbs_session_order(struct verbs_client *c, struct fb_oob *o, bool *hardware, struct fb_err *e)
{
	json_t *order = make_order(c);
	int rc;

	*hardware = false;
	if (!order)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	rc = fb_oob_bcast_json(o, &order, c->deadline, e);
	json_decref(order);
	/* The server opens its devices before it agrees. */
	if (rc == 0)
		rc = fb_oob_agree(o, e, c->deadline);
	return rc ? rc : compare_kind(o, verbs_node_hardware(c->node), hardware, c->deadline, e);
}

int verbs_session_client(struct verbs_client *c, struct fb_oob *o, struct fb_err *e)
{
	struct verbs_job job = {.p = c->p, .node = c->node};
	struct fb_bench bench = bench_for(&c->p);
	bool hardware;
	int rc = verbs_session_order(c, o, &hardware, e);

	if (rc)
		return rc;
	job.hardware = hardware && !c->p.loopback;
	return fb_run_bench(
		c->doc, &bench, &job, c->runctl, o, fb_where(hardware ? "hardware" : "cpu"), e);
}

/* ---- server ---------------------------------------------------------------------------------- */

struct order {
	struct verbs_params p;
	char host[128];
	unsigned rails;
	uint64_t deadline;
	bool hardware;
};

static int read_order(
	const json_t *j, const struct verbs_server *srv, struct order *ord, struct fb_err *e)
{
	int64_t version = fb_json_int(j, "verbs", -1), rails = fb_json_int(j, "rails", 0),
		seconds = fb_json_int(j, "seconds", 0);
	const char *host = fb_json_str(j, "host", NULL), *boot = fb_json_str(j, "boot_id", NULL);
	char own[64];
	int rc;

	if (version != VERBS_SESSION_VERSION)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the client speaks version %lld of the session protocol, this server version %d",
			(long long)version, VERBS_SESSION_VERSION);
	if (!host || strlen(host) >= sizeof ord->host || !boot || rails < 1 ||
		rails > VERBS_MAX_RAILS || seconds < 1)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the client's order is malformed: not a fabricbench client");
	rc = verbs_params_from_json(&ord->p, json_object_get(j, "params"), e);
	if (rc)
		return rc;
	snprintf(ord->host, sizeof ord->host, "%s", host);
	ord->rails = (unsigned)rails;
	ord->hardware = json_is_true(json_object_get(j, "hardware"));
	ord->deadline = fb_deadline_in(
		(uint64_t)(seconds < SESSION_MAX_S ? seconds : SESSION_MAX_S) * 1000000000u);
	boot_id(own, sizeof own);
	if (!srv->loopback && !strcmp(own, boot)) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"client and server are the same host (%s): such traffic never reaches the fabric",
			host);
		fb_hint(e,
			"start the server on another host, or measure this host alone with --loopback");
		return -EINVAL;
	}
	return 0;
}

static int open_devices(const struct verbs_server *srv, const struct order *ord,
	struct verbs_node *node, struct fb_err *e)
{
	struct verbs_dev_want want;
	int rc;

	verbs_params_peer_want(&ord->p, srv->device, srv->port, &want);
	rc = verbs_node_open(node, &want, e);
	if (rc == 0 && node->n != ord->rails) {
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "%u rails at the client, %u at the server",
			ord->rails, node->n);
		fb_hint(e, "name as many devices at both ends with --device and --peer-device");
		rc = -EPROTO;
	}
	return rc;
}

int verbs_session_server(
	const struct verbs_server *srv, struct fb_oob *o, char *line, size_t len, struct fb_err *e)
{
	struct order ord = {.host = "?"};
	struct verbs_node node = {.n = 0};
	struct fb_bench bench;
	struct verbs_job job;
	json_t *j = NULL;
	uint64_t began = fb_clock_ns(), deadline = began + ORDER_TIMEOUT_NS;
	char took[32];
	bool both = false;
	int rc;

	rc = fb_oob_bcast_json(o, &j, deadline, e);
	if (rc == 0) {
		/* What fails here stands in *e, and the agreement tells both ends. */
		if (read_order(j, srv, &ord, e) == 0) {
			deadline = ord.deadline; /* from here the client's own */
			(void)!open_devices(srv, &ord, &node, e);
		}
		rc = fb_oob_agree(o, e, deadline);
	}
	json_decref(j);
	if (rc == 0)
		rc = compare_kind(o, verbs_node_hardware(&node), &both, deadline, e);
	if (rc == 0) {
		job = (struct verbs_job){.p = ord.p,
			.node = &node,
			.hardware = ord.hardware && verbs_node_hardware(&node) && !srv->loopback};
		if (ord.p.bench == VERBS_INCAST) {
			rc = verbs_incast_serve(&job, o, deadline, e);
		} else if (ord.p.bench == VERBS_LOSS) {
			rc = verbs_loss_serve(&job, srv->netem, o, deadline, e);
		} else {
			bench = bench_for(&ord.p);
			rc = fb_run_bench(NULL, &bench, &job, NULL, o, fb_where("cpu"), e);
		}
	}
	verbs_node_close(&node);
	snprintf(line, len, "%s from %s: %s after %s", verbs_bench_names[ord.p.bench], ord.host,
		rc ? e->msg : "done",
		fb_fmt_duration((double)(fb_clock_ns() - began), took, sizeof took));
	return rc;
}

/* ---- both ends here -------------------------------------------------------------------------- */

static int loopback_rank(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct verbs_client *c = arg;
	struct verbs_server srv = {.device = NULL, .loopback = true};
	char line[1024];

	if (fb_oob_rank(o) == 0)
		return verbs_session_client(c, o, e);
	return verbs_session_server(&srv, o, line, sizeof line, e);
}

int verbs_session_loopback(struct verbs_client *c, struct fb_err *e)
{
	if (!c->p.peer_device[0]) {
		size_t at = 0;
		for (unsigned i = 0; i < c->node->n && at < sizeof c->p.peer_device; i++)
			at += (size_t)snprintf(c->p.peer_device + at, sizeof c->p.peer_device - at,
				"%s%s", i ? "," : "", c->node->dev[i].name);
	}
	return fb_oob_local_run(2, loopback_rank, c, e);
}
