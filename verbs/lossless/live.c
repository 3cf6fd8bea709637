// SPDX-License-Identifier: Apache-2.0
/*
 * Windows for the live checks: read every port, wait or run a command, read again. What moves the
 * packets is somebody else's affair here; how many moved stands beside every live finding.
 */
#include "verbs/lossless/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/result.h"
#include "verbs/counters.h"
#include "verbs/lossless/ethtool.h"

/* A window this long or longer is a mistake in the unit. */
#define LONGEST_NS 86400000000000u

#define O(field) .offset = offsetof(struct live_cfg, field)
const struct fb_opt live_opts[] = {
	{.name = "watch",
		.type = FB_OPT_DURATION,
		O(watch_ns),
		.arg = "DURATION",
		.help = "read the counters, wait so long, read them again: the live checks judge "
			"what grew"},
	{.name = "during",
		.type = FB_OPT_FLAG,
		O(during),
		.help = "the same around a command, which comes last: --during -- COMMAND [ARGUMENTS]"},
	{.name = "during-limit",
		.type = FB_OPT_DURATION,
		O(limit_ns),
		.arg = "DURATION",
		.def = "5m",
		.help = "that command is ended after this"},
	{.name = NULL},
};

int live_cut(struct live_cfg *c, int *argc, char **argv, struct fb_err *e)
{
	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--during") != 0)
			continue;
		if (i + 2 < *argc && strcmp(argv[i + 1], "--") == 0) {
			c->command = (const char **)argv + i + 2;
			*argc = i + 1;
			return 0;
		}
		fb_fail_usage(e, "--during without a command");
		fb_hint(e, "it comes last: --during -- COMMAND [ARGUMENTS]");
		return -EINVAL;
	}
	return 0;
}

bool live_wanted(const struct live_cfg *c)
{
	return c->watch_ns > 0 || c->command;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t netdev_sum(const struct fb_sysroot *r, const char *netdev, const char *what)
{
	int64_t rx = 0, tx = 0;
	if (!netdev[0] ||
		fb_sysroot_read_i64(r, &rx, "/sys/class/net/%s/statistics/rx_%s", netdev, what) ||
		fb_sysroot_read_i64(r, &tx, "/sys/class/net/%s/statistics/tx_%s", netdev, what))
		return -1;
	return rx + tx;
}

/* Drops that the interface counts itself, under names of their own beside the driver's. */
static void read_drops(const struct fb_sysroot *r, const char *netdev, json_t *stats)
{
	static const char *const names[] = {
		"rx_dropped", "rx_missed_errors", "rx_fifo_errors", "tx_dropped", "tx_fifo_errors"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char key[64];
		int64_t v;
		snprintf(key, sizeof(key), "netdev_%s", names[i]);
		if (fb_sysroot_read_i64(
			    r, &v, "/sys/class/net/%s/statistics/%s", netdev, names[i]) == 0)
			fb_json_set_int(stats, key, v);
	}
}

void live_read(const struct fb_sysroot *r, const char *device, int port, const char *netdev,
	struct live_reading *out)
{
	struct port_facts *tmp = calloc(1, sizeof(*tmp));
	*out = (struct live_reading){.at = 0};
	verbs_counters_settle(r, device, (unsigned)port);
	out->at = fb_clock_ns();
	out->counters = verbs_counters_read(r, device, (unsigned)port);
	if (tmp && netdev[0] && strlen(netdev) < sizeof(tmp->netdev)) {
		snprintf(tmp->netdev, sizeof(tmp->netdev), "%.31s", netdev);
		ethtool_read(r, tmp);
		out->stats = tmp->stats ? tmp->stats : json_object();
		read_drops(r, netdev, out->stats);
	}
	out->netdev_bytes = netdev_sum(r, netdev, "bytes");
	out->netdev_packets = netdev_sum(r, netdev, "packets");
	free(tmp);
}

void live_reading_free(struct live_reading *x)
{
	json_decref(x->stats);
	json_decref(x->counters);
	*x = (struct live_reading){.at = 0};
}

json_t *live_reading_json(const struct live_reading *x)
{
	json_t *j = json_object();
	fb_json_set_int(j, "at", (int64_t)x->at);
	if (x->stats)
		json_object_set(j, "stats", x->stats);
	if (x->counters)
		json_object_set(j, "counters", x->counters);
	fb_json_set_int(j, "bytes", x->netdev_bytes);
	fb_json_set_int(j, "packets", x->netdev_packets);
	return j;
}

bool live_reading_from(const json_t *j, struct live_reading *x)
{
	int64_t at = fb_json_int(j, "at", -1);
	json_t *stats = json_object_get(j, "stats"), *counters = json_object_get(j, "counters");
	*x = (struct live_reading){.netdev_bytes = -1, .netdev_packets = -1};
	if (at <= 0)
		return false;
	x->at = (uint64_t)at;
	x->stats = json_is_object(stats) ? json_incref(stats) : NULL;
	x->counters = json_is_object(counters) ? json_incref(counters) : NULL;
	x->netdev_bytes = fb_json_int(j, "bytes", -1);
	x->netdev_packets = fb_json_int(j, "packets", -1);
	return true;
}

static json_t *growth(const json_t *before, const json_t *after)
{
	json_t *grown = json_object();
	const char *name;
	const json_t *v;
	json_object_foreach ((json_t *)(uintptr_t)after, name, v) {
		const json_t *old = json_object_get(before, name);
		if (!json_is_integer(v) || !json_is_integer(old))
			continue;
		int64_t d = (int64_t)json_integer_value(v) - (int64_t)json_integer_value(old);
		if (d < 0)
			json_object_set_new(grown, name, json_null());
		else
			fb_json_set_int(grown, name, d);
	}
	return grown;
}

/* Both directions; -1 unless both are counted. */
static int64_t both(const json_t *grown, const char *a, const char *b)
{
	int64_t x = fb_json_int(grown, a, -1), y = fb_json_int(grown, b, -1);
	return x < 0 || y < 0 ? -1 : x + y;
}

void live_window(
	const struct live_reading *before, const struct live_reading *after, struct port_window *w)
{
	w->ns = after->at - before->at;
	w->stats = growth(before->stats, after->stats);
	w->counters = growth(before->counters, after->counters);
	for (int i = 0; i < 8; i++)
		w->peer_prio_packets[i] = -1;
	w->sent_packets = -1;
	/* Ports count data in units of four bytes (IBTA 16.1.3.5). */
	int64_t words = both(w->counters, "port_xmit_data", "port_rcv_data");
	int64_t packets = both(w->counters, "port_xmit_packets", "port_rcv_packets");
	if (packets < 0) /* Soft-RoCE */
		packets = both(w->counters, "sent_pkts", "rcvd_pkts");
	int64_t bytes = words >= 0 ? 4 * words : -1;
	if (bytes < 0 && before->netdev_bytes >= 0)
		bytes = after->netdev_bytes - before->netdev_bytes;
	if (packets < 0 && before->netdev_packets >= 0)
		packets = after->netdev_packets - before->netdev_packets;
	w->traffic_known = bytes >= 0 && packets >= 0;
	w->bytes = bytes >= 0 ? (uint64_t)bytes : 0;
	w->packets = packets >= 0 ? (uint64_t)packets : 0;
}

/* ---- between --------------------------------------------------------------------------------- */

static int watch(const struct live_cfg *c, struct fb_err *e)
{
	uint64_t end = fb_clock_ns() + c->watch_ns;
	for (uint64_t now = fb_clock_ns(); now < end; now = fb_clock_ns()) {
		uint64_t ns = end - now < 100000000u ? end - now : 100000000u;
		const struct timespec t = {.tv_nsec = (long)(ns % 1000000000u)};
		if (fb_stop_requested())
			return fb_fail(
				e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal while watching");
		nanosleep(&t, NULL);
	}
	return 0;
}

static int run(const struct live_cfg *c, struct fb_doc *doc, struct fb_err *e)
{
	struct fb_proc_result r = {0};
	const struct fb_proc_opts o = {
		.capture = 65536, .deadline_ns = fb_clock_ns() + c->limit_ns};
	int rc = fb_proc_run(c->command, &o, &r, e);
	if (rc == 0 && r.status != 0)
		fb_doc_warn(doc, "the command of --during, %s, ended with status %d", c->command[0],
			r.status);
	fb_proc_result_free(&r);
	return rc;
}

static void drop(struct live_reading *v, int n)
{
	for (int i = 0; v && i < n; i++)
		live_reading_free(&v[i]);
	free(v);
}

static void read_port(
	const struct fb_sysroot *r, const struct port_facts *p, struct live_reading *out)
{
	live_read(r, p->device, p->port, p->netdev, out);
}

int live_fill(const struct live_cfg *c, const struct fb_sysroot *r, const struct node_facts *n,
	struct port_window *windows, struct fb_doc *doc, struct fb_err *e)
{
	if (!fb_sysroot_is_live(r)) {
		fb_fail_usage(
			e, "--watch and --during look at this machine, --sysroot at a recording");
		fb_hint(e, "leave one of them out");
		return -EINVAL;
	}
	if (c->watch_ns > 0 && c->command)
		return fb_fail_usage(e, "--watch and --during exclude each other");
	if (c->watch_ns >= LONGEST_NS)
		return fb_fail_usage(e, "--watch of a day and more: is the unit right?");
	struct live_reading *before = calloc((size_t)n->ports, sizeof(*before));
	struct live_reading *after = calloc((size_t)n->ports, sizeof(*after));
	int rc = 0;
	if (!before || !after) {
		free(before);
		free(after);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ports", n->ports);
	}
	for (int i = 0; rc == 0 && i < n->ports; i++)
		read_port(r, &n->port[i], &before[i]);
	if (rc == 0)
		rc = c->command ? run(c, doc, e) : watch(c, e);
	for (int i = 0; rc == 0 && i < n->ports; i++) {
		read_port(r, &n->port[i], &after[i]);
		live_window(&before[i], &after[i], &windows[i]);
	}
	drop(before, n->ports);
	drop(after, n->ports);
	return rc;
}
