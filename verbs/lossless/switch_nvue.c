// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's Cumulus Linux, as JSON: `nv show qos -o json`, `nv show qos roce -o json`, `nv config
 * show -o json`, or {"qos": ..., "interface": ..., "system": ...} put together from them. Profiles
 * are named, "default-global" is every port's; an interface may name another. The class of SONiC is
 * a switch priority here, its queue a traffic class. Keys: NVIDIA, NVUE reference, QoS; what
 * `nv set qos roce` sets: Cumulus Linux user guide, RDMA over Converged Ethernet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "verbs/lossless/switch_priv.h"

#define MAX_BYTES (1ll << 40)
#define DEFAULT   "default-global"

const struct switch_vendor switch_nvue = {
	.format = "NVIDIA nv show",
	.sections = {[SWITCH_PORTS] = "interface|*|link",
		[SWITCH_BINDINGS] = "qos|mapping",
		[SWITCH_DSCP] = "qos|mapping",
		[SWITCH_CLASS_QUEUE] = "qos|egress-queue-mapping",
		[SWITCH_CLASS_GROUP] = "qos|traffic-pool",
		[SWITCH_PFC] = "qos|pfc",
		[SWITCH_GROUPS] = "qos|traffic-pool",
		[SWITCH_BUFFERS] = "qos|pfc|*|port-buffer",
		[SWITCH_POOLS] = "qos|roce|pool",
		[SWITCH_CABLES] = "qos|pfc|*|cable-length",
		[SWITCH_QUEUES] = "qos|congestion-control",
		[SWITCH_WRED] = "qos|congestion-control",
		[SWITCH_SCHEDULERS] = "qos|egress-scheduler",
		[SWITCH_WATCHDOG] = "interface|*|qos|pfc-watchdog",
		[SWITCH_NEIGHBOURS] = "interface|*|lldp"},
	.class_word = "switch priority",
	.queue_word = "traffic class",
};

static const char *const qos_keys[] = {"roce", "mapping", "pfc", "congestion-control",
	"egress-scheduler", "egress-queue-mapping", "traffic-pool", "pfc-watchdog", "link-pause",
	"prio-map", "tc-map", NULL};

/* What `nv config show -o json` wraps: a list, or {"set": ...}. */
static const json_t *unwrap(const json_t *root)
{
	const json_t *v;
	size_t i;
	if (json_is_array(root) && json_array_size(root) <= 8)
		json_array_foreach (root, i, v)
			if (json_is_object(json_object_get(v, "set")))
				return json_object_get(v, "set");
	return json_is_object(json_object_get(root, "set")) ? json_object_get(root, "set") : root;
}

bool switch_is_nvue(const json_t *root)
{
	const json_t *o = unwrap(root);
	for (int i = 0; qos_keys[i]; i++)
		if (json_object_get(o, qos_keys[i]))
			return true;
	return json_object_get(o, "qos") || json_object_get(o, "interface");
}

/* The file itself holds the section. */
static void tell(struct switch_reader *r, enum switch_section s)
{
	r->s->has[s] = true;
	r->s->implied &= ~(1u << s);
}

struct nvue {
	struct switch_reader *r;
	const json_t *qos, *interface, *roce;
	const json_t *pools; /* traffic-pool */
	bool config;         /* what was set, over what roce's mode sets; else all that runs */
};

/* "150000", "150000 B", "146.48 KB", "1.43 MB": units of 1024. @return -1: not there */
static int64_t bytes(struct switch_reader *r, const json_t *o, const char *key, const char *place)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {
		{"", 1}, {"B", 1}, {"Bytes", 1}, {"KB", 1024}, {"MB", 1048576}, {"GB", 1073741824}};
	char text[32], at[256], *end;
	if (!switch_text(r, o, key, text, sizeof(text), place))
		return -1;
	double v = strtod(text, &end);
	end += strspn(end, " ");
	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0 && v >= 0 && v * units[i].factor < MAX_BYTES)
			return (int64_t)(v * units[i].factor + 0.5);
	snprintf(at, sizeof(at), "%s|%.60s", place, key);
	switch_bad(r, at, "\"%s\" is not a size such as 150000 or 1.43 MB", text);
	return -1;
}

/* "enable", "enabled", "on", "yes", true: 1; the opposites: 0; not there: -1. */
static int on_off(struct switch_reader *r, const json_t *o, const char *key, const char *place)
{
	static const char *const yes[] = {"enable", "enabled", "on", "yes", "true"};
	static const char *const no[] = {"disable", "disabled", "off", "no", "false"};
	const json_t *v = json_object_get(o, key);
	char text[32], at[256];
	if (json_is_boolean(v))
		return json_is_true(v);
	if (!switch_text(r, o, key, text, sizeof(text), place))
		return -1;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (strcmp(text, yes[i]) == 0)
			return 1;
		if (strcmp(text, no[i]) == 0)
			return 0;
	}
	snprintf(at, sizeof(at), "%s|%.60s", place, key);
	switch_bad(r, at, "\"%s\" is neither on nor off", text);
	return -1;
}

/* A set of small numbers: {"3": {}, "4": {}}, [3, 4], "3,4", 3. */
static uint64_t numbers(
	struct switch_reader *r, const json_t *o, const char *key, int max, const char *place)
{
	const json_t *v = json_object_get(o, key), *one;
	uint64_t bits = 0;
	char at[256], text[256];
	size_t i;
	snprintf(at, sizeof(at), "%s|%.60s", place, key);
	if (json_object_size(v) > 64 || json_array_size(v) > 64) {
		switch_bad(r, at, "more than 64 entries");
	} else if (json_is_object(v)) {
		void *it = json_object_iter((json_t *)v);
		for (; it; it = json_object_iter_next((json_t *)v, it))
			bits |= switch_bits(r, json_object_iter_key(it), max, at);
	} else if (json_is_array(v)) {
		json_array_foreach (v, i, one) {
			if (json_is_integer(one) && json_integer_value(one) >= 0 &&
				json_integer_value(one) <= max)
				bits |= 1ull << json_integer_value(one);
			else if (json_is_string(one))
				bits |= switch_bits(r, json_string_value(one), max, at);
			else
				switch_bad(r, at, "entry %zu is not a number from 0 to %d", i, max);
		}
	} else if (switch_text(r, o, key, text, sizeof(text), place)) {
		bits = switch_bits(r, text, max, at);
	}
	return switch_ok(r) ? bits : 0;
}

/* table[i], or the entry of a list or range that holds i: "3", "3,6", "0-2". */
static const json_t *numbered(
	struct switch_reader *r, const json_t *table, int i, const char *place)
{
	char key[4] = {(char)('0' + i)};
	if (json_object_get(table, key))
		return switch_object(r, table, key, place);
	if (json_object_size(table) > 64)
		switch_bad(r, place, "more than 64 entries");
	void *it = json_object_iter((json_t *)table);
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)table, it))
		if (switch_bits(r, json_object_iter_key(it), SWITCH_CLASSES - 1, place) >> i & 1)
			return switch_object(r, table, json_object_iter_key(it), place);
	return NULL;
}

/* ---- what `nv set qos roce` implies ---------------------------------------------------------- */

static void imply_roce(struct switch_reader *r, const char *mode)
{
	struct switch_facts *s = r->s;
	bool lossless = strncmp(mode, "lossless", 8) == 0;
	static const enum switch_section told[] = {SWITCH_BINDINGS, SWITCH_DSCP, SWITCH_CLASS_QUEUE,
		SWITCH_CLASS_GROUP, SWITCH_PFC, SWITCH_GROUPS, SWITCH_QUEUES, SWITCH_WRED,
		SWITCH_SCHEDULERS};
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		s->has[told[i]] = true;
		s->implied |= 1u << told[i];
	}
	for (int i = 0; i < s->ports; i++) {
		struct switch_port *p = &s->port[i];
		snprintf(p->dscp_map, sizeof(p->dscp_map), "roce mode %.20s", mode);
		for (int d = 0; d < 64; d++)
			p->dscp_class[d] = (int16_t)(d >> 3);
		for (int c = 0; c < SWITCH_CLASSES; c++) {
			p->class_queue[c] = (int16_t)(c == 3 || c == 6 ? c : 0);
			p->class_group[c] = (int16_t)(lossless && c == 3 ? 3 : 0);
		}
		p->pfc = lossless ? 1 << 3 : 0;
		p->cable_m = lossless ? 100 : -1;
		p->buffer[3].lossless = p->buffer[3].calculated = lossless;
		snprintf(p->buffer[3].name, sizeof(p->buffer[3].name), "roce-%s",
			lossless ? "lossless" : "lossy");
		for (int q = 0; q <= 3; q += 3)
			p->wred[q] = (struct switch_wred){.name = "roce",
				.marks = true,
				.ecn = "enable",
				.kmin = 150000,
				.kmax = 1500000,
				.pmax = 100};
		p->scheduler[0] = p->scheduler[3] = (struct switch_scheduler){
			.name = "roce", .known = true, .weight = 50, .share = -1};
		p->scheduler[6] = (struct switch_scheduler){
			.name = "roce", .known = true, .strict = true, .share = -1};
	}
}

/* ---- one profile to a port ------------------------------------------------------------------- */

/* qos|SECTION|PROFILE of the port: the interface's own, else every port's. */
static const json_t *profile_of(const struct nvue *n, const struct switch_port *p,
	const char *section, char *name, size_t len, char *place, size_t plen)
{
	const json_t *all = switch_object(n->r, n->qos, section, "qos"), *own, *found;
	const json_t *port = json_object_get(n->interface, p->name);
	snprintf(place, plen, "interface|%.40s", p->name);
	own = switch_object(n->r, switch_object(n->r, port, "qos", place), section, place);
	snprintf(name, len, "%s", DEFAULT);
	switch_text(n->r, own, "profile", name, len, place);
	snprintf(place, plen, "qos|%s|%.60s", section, name);
	found = switch_object(n->r, all, name, place);
	/* Whole sections may be left out of a file, but not one profile of many. */
	if (!found && json_object_size(all) > 0 && strcmp(name, DEFAULT) != 0)
		switch_bad(n->r, place, "%s names it, and it is not there", p->name);
	return found;
}

static void read_mapping(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160], trust[16] = "";
	const json_t *o = profile_of(n, p, "mapping", name, sizeof(name), at, sizeof(at));
	const json_t *dscp = switch_object(n->r, o, "dscp", at);
	if (!o)
		return;
	tell(n->r, SWITCH_BINDINGS);
	tell(n->r, SWITCH_DSCP);
	switch_text(n->r, o, "trust", trust, sizeof(trust), at);
	/* Trusting layer 2 alone leaves DSCP unread: untagged packets all get the default. */
	if (strcmp(trust, "l2") == 0 || strcmp(trust, "port") == 0) {
		p->dscp_map[0] = '\0';
		memset(p->dscp_class, -1, sizeof(p->dscp_class));
		return;
	}
	snprintf(p->dscp_map, sizeof(p->dscp_map), "%s", name);
	void *it = json_object_iter((json_t *)dscp);
	if (json_object_size(dscp) > 64)
		switch_bad(n->r, at, "dscp has more than 64 entries");
	for (; it && switch_ok(n->r); it = json_object_iter_next((json_t *)dscp, it)) {
		const char *key = json_object_iter_key(it);
		uint64_t bits = switch_bits(n->r, key, 63, at);
		int64_t sp = switch_number(
			n->r, switch_object(n->r, dscp, key, at), "switch-priority", 0, 7, -1, at);
		for (int d = 0; d < 64 && sp >= 0; d++)
			if (bits >> d & 1)
				p->dscp_class[d] = (int16_t)sp;
	}
}

static void read_queues(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160];
	const json_t *o =
		profile_of(n, p, "egress-queue-mapping", name, sizeof(name), at, sizeof(at));
	const json_t *sp = switch_object(n->r, o, "switch-priority", at);
	if (!sp)
		return;
	tell(n->r, SWITCH_CLASS_QUEUE);
	for (int c = 0; c < SWITCH_CLASSES && switch_ok(n->r); c++) {
		int64_t tc = switch_number(n->r, numbered(n->r, sp, c, at), "traffic-class", 0, 7,
			p->class_queue[c], at);
		p->class_queue[c] = (int16_t)tc;
	}
}

static void read_pfc(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160];
	const json_t *all = switch_object(n->r, n->qos, "pfc", "qos");
	const json_t *o = profile_of(n, p, "pfc", name, sizeof(name), at, sizeof(at));
	if (!all)
		return;
	/* An empty pfc says that no port has it, unless roce has set it. */
	n->r->s->has[SWITCH_PFC] = true;
	p->pfc = p->pfc < 0 ? 0 : p->pfc;
	if (!o)
		return;
	tell(n->r, SWITCH_PFC);
	int rx = on_off(n->r, o, "rx", at), tx = on_off(n->r, o, "tx", at);
	p->pfc = (int)numbers(n->r, o, "switch-priority", 7, at);
	p->pfc_one_way = p->pfc && (rx == 0 || tx == 0);
	p->cable_m = switch_number(n->r, o, "cable-length", 0, 100000, p->cable_m, at);
	int64_t size = bytes(n->r, o, "port-buffer", at);
	int64_t xoff = bytes(n->r, o, "xoff-threshold", at);
	int64_t xon = bytes(n->r, o, "xon-threshold", at);
	for (int g = 0; g < SWITCH_CLASSES; g++) {
		struct switch_buffer *b = &p->buffer[g];
		if (!(p->pfc >> g & 1) || size <= 0 || xoff < 0)
			continue;
		n->r->s->has[SWITCH_BUFFERS] = true;
		/* Of the port's buffer, what lies above the threshold is left for what still
		 * comes; the pause itself depends on the shared pool too. */
		b->size = size;
		b->xon = xon;
		b->headroom = size > xoff ? size - xoff : 0;
		b->calculated = false;
		b->lossless = true;
		snprintf(b->name, sizeof(b->name), "%.63s", name);
	}
}

static void read_congestion(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160];
	const json_t *o =
		profile_of(n, p, "congestion-control", name, sizeof(name), at, sizeof(at));
	const json_t *tcs = switch_object(n->r, o, "traffic-class", at);
	if (!tcs)
		return;
	tell(n->r, SWITCH_QUEUES);
	tell(n->r, SWITCH_WRED);
	for (int q = 0; q < SWITCH_CLASSES && switch_ok(n->r); q++) {
		const json_t *tc = numbered(n->r, tcs, q, at);
		struct switch_wred *w = &p->wred[q];
		if (!tc && !n->config)
			*w = (struct switch_wred){.kmin = -1, .kmax = -1, .pmax = -1};
		if (!tc)
			continue;
		int ecn = on_off(n->r, tc, "ecn", at);
		snprintf(w->name, sizeof(w->name), "%s", name);
		snprintf(w->ecn, sizeof(w->ecn), "%s", ecn == 0 ? "disable" : "enable");
		w->marks = ecn != 0; /* not said: enable is the default */
		w->kmin = bytes(n->r, tc, "min-threshold", at);
		w->kmax = bytes(n->r, tc, "max-threshold", at);
		w->pmax = (int)switch_number(n->r, tc, "probability", 0, 100, -1, at);
	}
}

static void read_scheduler(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160], mode[16];
	const json_t *o = profile_of(n, p, "egress-scheduler", name, sizeof(name), at, sizeof(at));
	const json_t *tcs = switch_object(n->r, o, "traffic-class", at);
	if (!tcs)
		return;
	tell(n->r, SWITCH_SCHEDULERS);
	for (int q = 0; q < SWITCH_CLASSES && switch_ok(n->r); q++) {
		const json_t *tc = numbered(n->r, tcs, q, at);
		struct switch_scheduler *s = &p->scheduler[q];
		if (!tc)
			continue;
		snprintf(mode, sizeof(mode), "dwrr");
		switch_text(n->r, tc, "mode", mode, sizeof(mode), at);
		*s = (struct switch_scheduler){.known = true, .share = -1};
		snprintf(s->name, sizeof(s->name), "%s", name);
		s->strict = strcmp(mode, "strict") == 0;
		s->weight = (int)switch_number(n->r, tc, "bw-percent", 0, 100, 0, at);
	}
}

/* Priorities of one pool share a group, which we call by the lowest of them: 0 for the lossy one,
 * whose pool holds priority 0. */
static void read_pools(const struct nvue *n, struct switch_port *p)
{
	void *it = json_object_iter((json_t *)n->pools);
	if (json_object_size(n->pools) > 16)
		switch_bad(n->r, "qos|traffic-pool", "more than 16 pools");
	for (; it && switch_ok(n->r); it = json_object_iter_next((json_t *)n->pools, it)) {
		const char *name = json_object_iter_key(it);
		const json_t *o = switch_object(n->r, n->pools, name, "qos|traffic-pool");
		unsigned sps = (unsigned)numbers(n->r, o, "switch-priority", 7, "qos|traffic-pool");
		int group = sps ? __builtin_ctz(sps) : 0;
		bool lossless = strstr(name, "lossless") != NULL;
		tell(n->r, SWITCH_CLASS_GROUP);
		tell(n->r, SWITCH_GROUPS);
		for (int c = 0; c < SWITCH_CLASSES; c++)
			if (sps >> c & 1)
				p->class_group[c] = (int16_t)group;
		if (!sps)
			continue;
		struct switch_buffer *b = &p->buffer[group];
		b->lossless = lossless;
		b->calculated = lossless && b->headroom < 0;
		snprintf(b->name, sizeof(b->name), "%.63s", name);
		n->r->s->group_seen[group] = true;
	}
}

static void read_pause(const struct nvue *n, struct switch_port *p)
{
	char name[64], at[160];
	const json_t *o = profile_of(n, p, "link-pause", name, sizeof(name), at, sizeof(at));
	if (!json_object_get(n->qos, "link-pause"))
		return;
	p->pause = o ? on_off(n->r, o, "rx", at) != 0 || on_off(n->r, o, "tx", at) != 0 : 0;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

/* "400G", "400000": Mb/s. "auto" and what else is said tells nothing. */
static int64_t speed_of(const char *text)
{
	char *end;
	double v = strtod(text, &end);
	if (end == text || !(v > 0 && v < 1e7))
		return -1;
	return strcmp(end, "G") == 0                   ? (int64_t)(v * 1000)
	       : strcmp(end, "M") == 0 || *end == '\0' ? (int64_t)v
						       : -1;
}

static void read_neighbour(const struct nvue *n, const json_t *o, struct switch_port *p)
{
	const json_t *lldp = switch_object(n->r, o, "lldp", p->name);
	const json_t *list = switch_object(n->r, lldp, "neighbor", p->name);
	void *it = json_object_iter((json_t *)list);
	if (lldp)
		n->r->s->has[SWITCH_NEIGHBOURS] = true;
	if (!it)
		return;
	const json_t *one = switch_object(n->r, list, json_object_iter_key(it), p->name);
	snprintf(p->neighbour, sizeof(p->neighbour), "%.63s", json_object_iter_key(it));
	switch_text(n->r, switch_object(n->r, one, "chassis", p->name), "system-name", p->neighbour,
		sizeof(p->neighbour), p->name);
	switch_text(n->r, switch_object(n->r, one, "port", p->name), "name", p->neighbour_port,
		sizeof(p->neighbour_port), p->name);
}

static void read_link(const struct nvue *n, const json_t *o, struct switch_port *p)
{
	char text[32] = "", at[96];
	const json_t *link = switch_object(n->r, o, "link", p->name);
	snprintf(at, sizeof(at), "%s|link", p->name);
	if (!link)
		return;
	n->r->s->has[SWITCH_PORTS] = true;
	p->mtu = switch_number(n->r, link, "mtu", 68, 65535, -1, at);
	if (switch_text(n->r, link, "speed", text, sizeof(text), at))
		p->speed_mbps = speed_of(text);
	/* `nv config show` says state {"down": {}}; `nv show interface` says admin-status. */
	if (json_object_get(json_object_get(link, "state"), "down"))
		p->used = false;
	if (switch_text(n->r, link, "admin-status", text, sizeof(text), at))
		p->used = strcmp(text, "up") == 0;
}

static void read_interface(const struct nvue *n, struct switch_port *p)
{
	const json_t *o = json_object_get(n->interface, p->name);
	const json_t *qos = switch_object(n->r, o, "qos", p->name);
	const json_t *wd = switch_object(n->r, qos, "pfc-watchdog", p->name);
	struct switch_facts *s = n->r->s;
	read_link(n, o, p);
	read_neighbour(n, o, p);
	if (qos)
		s->has[SWITCH_WATCHDOG] = true;
	p->watchdog.on = wd && on_off(n->r, wd, "state", p->name) != 0;
	snprintf(p->watchdog.action, sizeof(p->watchdog.action), "drop");
}

/* "200", "0:00:00.100000" (hours, minutes, seconds): ms */
static int64_t interval(struct switch_reader *r, const json_t *o, const char *place)
{
	char text[32], *end;
	int h, m;
	double sec;
	if (!switch_text(r, o, "polling-interval", text, sizeof(text), place))
		return -1;
	long plain = strtol(text, &end, 10);
	if (*text && *end == '\0' && plain >= 0 && plain <= 1000000)
		return plain;
	if (sscanf(text, "%2d:%2d:%lf", &h, &m, &sec) == 3 && h >= 0 && m >= 0 && sec >= 0 &&
		sec < 60)
		return (int64_t)((h * 3600 + m * 60 + sec) * 1000 + 0.5);
	switch_bad(r, place, "polling-interval \"%s\" is not a number of milliseconds", text);
	return -1;
}

static void read_watchdog_times(const struct nvue *n)
{
	const json_t *o = switch_object(n->r, n->qos, "pfc-watchdog", "qos");
	/* 100 ms, three times in turn, unless said otherwise. */
	int64_t poll = interval(n->r, o, "qos|pfc-watchdog");
	int64_t times = switch_number(n->r, o, "robustness", 1, 1000, 3, "qos|pfc-watchdog");
	struct switch_facts *s = n->r->s;
	s->poll_ms = poll < 0 ? 100 : poll;
	for (int i = 0; i < s->ports; i++) {
		s->port[i].watchdog.detect_ms = s->poll_ms * times;
		s->port[i].watchdog.restore_ms = s->poll_ms;
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The rows of a table that `nv show` prints: {"0": {...}, "1": {...}}, or a list. */
static size_t rows(const json_t *table, const json_t *row[64])
{
	size_t n = 0, i;
	json_t *one;
	void *it = json_object_iter((json_t *)table);
	for (; it && n < 64; it = json_object_iter_next((json_t *)table, it))
		row[n++] = json_object_iter_value(it);
	json_array_foreach (table, i, one)
		if (n < 64)
			row[n++] = one;
	return n;
}

/* Releases call it switch-prio or switch-priority. */
static unsigned switch_priorities(struct switch_reader *r, const json_t *row, const char *place)
{
	return (unsigned)(numbers(r, row, "switch-prio", SWITCH_CLASSES - 1, place) |
			  numbers(r, row, "switch-priority", SWITCH_CLASSES - 1, place));
}

static void read_prio_map(const struct nvue *n, struct switch_port *p)
{
	static const char at[] = "qos|roce|prio-map";
	const json_t *row[64];
	size_t m = rows(json_object_get(n->roce, "prio-map"), row);
	if (m)
		memset(p->dscp_class, -1, sizeof(p->dscp_class));
	for (size_t i = 0; i < m && switch_ok(n->r); i++) {
		uint64_t dscps = numbers(n->r, row[i], "dscp", 63, at);
		unsigned sp = switch_priorities(n->r, row[i], at);
		for (int d = 0; d < 64 && sp; d++)
			if (dscps >> d & 1)
				p->dscp_class[d] = (int16_t)__builtin_ctz(sp);
		tell(n->r, SWITCH_DSCP);
		tell(n->r, SWITCH_BINDINGS);
	}
}

/* "DWRR-50%", "strict-priority" */
static void read_weight(const struct nvue *n, const json_t *row, struct switch_scheduler *s)
{
	char text[32];
	int weight = 0;
	if (!switch_text(n->r, row, "scheduler-weight", text, sizeof(text), "qos|roce|tc-map"))
		return;
	bool strict = strncmp(text, "strict", 6) == 0;
	if (!strict && sscanf(text, "DWRR-%3d%%", &weight) != 1 &&
		sscanf(text, "dwrr-%3d%%", &weight) != 1)
		return;
	*s = (struct switch_scheduler){
		.name = "roce", .known = true, .strict = strict, .weight = weight, .share = -1};
	tell(n->r, SWITCH_SCHEDULERS);
}

static void read_tc_map(const struct nvue *n, struct switch_port *p)
{
	static const char at[] = "qos|roce|tc-map";
	const json_t *row[64];
	size_t m = rows(json_object_get(n->roce, "tc-map"), row);
	for (size_t i = 0; i < m && switch_ok(n->r); i++) {
		unsigned sp = switch_priorities(n->r, row[i], at);
		int64_t tc =
			switch_number(n->r, row[i], "traffic-class", 0, SWITCH_CLASSES - 1, -1, at);
		for (int c = 0; c < SWITCH_CLASSES && tc >= 0; c++)
			if (sp >> c & 1)
				p->class_queue[c] = (int16_t)tc;
		if (tc >= 0) {
			tell(n->r, SWITCH_CLASS_QUEUE);
			read_weight(n, row[i], &p->scheduler[tc]);
		}
	}
}

/* The maps that the running switch has, whatever `nv set qos roce` once made of them. */
static void read_roce_maps(const struct nvue *n, struct switch_port *p)
{
	char mode[32];
	const json_t *trust = switch_object(n->r, n->roce, "trust", "qos|roce");
	read_prio_map(n, p);
	read_tc_map(n, p);
	if (!switch_text(n->r, trust, "trust-mode", mode, sizeof(mode), "qos|roce|trust") ||
		strstr(mode, "dscp"))
		return;
	p->dscp_map[0] = '\0';
	memset(p->dscp_class, -1, sizeof(p->dscp_class));
	tell(n->r, SWITCH_BINDINGS);
}

/* In roce mode each priority with PFC has a lossless pool of its own. */
static void lossless_groups(struct switch_port *p)
{
	for (int c = 0; c < SWITCH_CLASSES; c++) {
		bool on = p->pfc >> c & 1;
		p->class_group[c] = (int16_t)(on ? c : 0);
		p->buffer[c].lossless = p->buffer[c].calculated = on;
		snprintf(p->buffer[c].name, sizeof(p->buffer[c].name), "roce-%s",
			on ? "lossless" : "lossy");
	}
}

/* What `nv show qos roce` says of the running switch overrides what its mode implies. */
static void read_roce_state(const struct nvue *n, struct switch_port *p)
{
	const char *at = "qos|roce";
	const json_t *pfc = switch_object(n->r, n->roce, "pfc", at);
	const json_t *cc = switch_object(n->r, n->roce, "congestion-control", at);
	if (json_object_get(pfc, "pfc-priority")) {
		p->pfc = (int)numbers(n->r, pfc, "pfc-priority", 7, "qos|roce|pfc");
		p->pfc_one_way = on_off(n->r, pfc, "rx-enabled", at) == 0 ||
				 on_off(n->r, pfc, "tx-enabled", at) == 0;
		lossless_groups(p);
		tell(n->r, SWITCH_PFC);
	}
	read_roce_maps(n, p);
	p->cable_m = switch_number(n->r, pfc, "cable-length", 0, 100000, p->cable_m, at);
	p->cable_m = switch_number(n->r, n->roce, "cable-length", 0, 100000, p->cable_m, at);
	if (!json_object_get(cc, "enabled-tc"))
		return;
	tell(n->r, SWITCH_QUEUES);
	tell(n->r, SWITCH_WRED);
	unsigned tcs = (unsigned)numbers(n->r, cc, "enabled-tc", 7, at);
	int64_t kmin = bytes(n->r, cc, "min-threshold", at);
	int64_t kmax = bytes(n->r, cc, "max-threshold", at);
	int pmax = (int)switch_number(n->r, cc, "probability", 0, 100, -1, at);
	for (int q = 0; q < SWITCH_CLASSES; q++) {
		bool on = tcs >> q & 1;
		p->wred[q] = (struct switch_wred){
			.kmin = on ? kmin : -1, .kmax = on ? kmax : -1, .pmax = pmax, .marks = on};
		snprintf(p->wred[q].name, sizeof(p->wred[q].name), "%s", on ? "roce" : "");
		snprintf(p->wred[q].ecn, sizeof(p->wred[q].ecn), "%s", on ? "enable" : "");
	}
}

static void read_roce(const struct nvue *n)
{
	char mode[32] = "lossless";
	int on = on_off(n->r, n->roce, "enable", "qos|roce");
	if (on < 0)
		on = on_off(n->r, n->roce, "state", "qos|roce");
	bool told = switch_text(n->r, n->roce, "mode", mode, sizeof(mode), "qos|roce");
	if (on == 0 || (on < 0 && !told) || !switch_ok(n->r))
		return;
	imply_roce(n->r, mode);
	for (int i = 0; i < n->r->s->ports; i++)
		read_roce_state(n, &n->r->s->port[i]);
}

static void read_port(const struct nvue *n, struct switch_port *p)
{
	read_mapping(n, p);
	read_queues(n, p);
	read_pfc(n, p);
	read_pools(n, p);
	read_congestion(n, p);
	read_scheduler(n, p);
	read_pause(n, p);
	switch_shares(p);
	/* A pause for a priority stops its traffic class and comes from its own group. */
	memcpy(p->pfc_queue, p->class_queue, sizeof(p->pfc_queue));
	memcpy(p->pfc_group, p->class_group, sizeof(p->pfc_group));
	n->r->s->has[SWITCH_CABLES] |= p->cable_m >= 0;
}

void switch_read_nvue(struct switch_reader *r, const json_t *root)
{
	struct nvue n = {.r = r};
	const json_t *top = unwrap(root);
	const json_t *system = switch_object(r, top, "system", "");
	n.config = top != root;
	json_t *interface = switch_port_by_port(r, switch_object(r, top, "interface", ""));
	n.interface = interface;
	n.qos = switch_object(r, top, "qos", "");
	if (!n.qos && !n.interface)
		n.qos = top;
	/* `nv show qos roce` alone: its keys are at the top. */
	bool alone = json_object_get(json_object_get(n.qos, "pfc"), "pfc-priority") ||
		     json_object_get(n.qos, "prio-map") || json_object_get(n.qos, "tc-map") ||
		     json_object_get(n.qos, "trust");
	n.roce = alone ? n.qos : switch_object(r, n.qos, "roce", "qos");
	n.qos = alone ? NULL : n.qos;
	n.pools = switch_object(r, n.qos, "traffic-pool", "qos");
	switch_host(r, system, "system");
	/* `nv show interface` leaves qos out: only a configuration says by silence that a port has
	 * no watchdog. */
	r->s->whole = n.config && n.interface && n.qos;
	switch_add_ports(r, n.interface, switch_is_swp, "interface");
	if (!n.interface) {
		json_t *all = json_pack("{s:{}}", "swp*");
		switch_add_ports(r, all, NULL, "qos");
		json_decref(all);
	}
	if (n.roce)
		read_roce(&n);
	for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
		read_interface(&n, &r->s->port[i]);
		read_port(&n, &r->s->port[i]);
	}
	read_watchdog_times(&n);
	json_decref(interface);
}
