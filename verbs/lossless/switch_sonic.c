// SPDX-License-Identifier: Apache-2.0
/*
 * SONiC's config_db.json. Every value there is a text; tables are keyed by "Ethernet0", by
 * "Ethernet0|3-4" or by "Ethernet0,Ethernet4|3-4", and one table refers to another by its entry's
 * name, in older releases as "[BUFFER_PROFILE|name]". Older releases also list ports in
 * PORT_QOS_MAP and call PFC_WD PFC_WD_TABLE. Names of tables and fields: SONiC,
 * src/sonic-yang-models and doc/Configuration.md.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/switch_lldp.h"
#include "verbs/lossless/switch_priv.h"

#define MAX_QUEUE  63 /* chassis have more than eight; those above 7 carry no class of ours */
#define MAX_BYTES  (1ll << 40)
#define MAX_TABLES 64
#define MTU_UNTOLD 9100 /* buffermgrdyn.cpp, DEFAULT_MTU_STR */

const struct switch_vendor switch_sonic = {
	.format = "SONiC config_db.json",
	.sections = {[SWITCH_PORTS] = "PORT",
		[SWITCH_BINDINGS] = "PORT_QOS_MAP",
		[SWITCH_DSCP] = "DSCP_TO_TC_MAP",
		[SWITCH_CLASS_QUEUE] = "TC_TO_QUEUE_MAP",
		[SWITCH_CLASS_GROUP] = "TC_TO_PRIORITY_GROUP_MAP",
		[SWITCH_PFC] = "PORT_QOS_MAP",
		[SWITCH_GROUPS] = "BUFFER_PG",
		[SWITCH_BUFFERS] = "BUFFER_PROFILE",
		[SWITCH_POOLS] = "BUFFER_POOL",
		[SWITCH_CABLES] = "CABLE_LENGTH",
		[SWITCH_QUEUES] = "QUEUE",
		[SWITCH_WRED] = "WRED_PROFILE",
		[SWITCH_SCHEDULERS] = "SCHEDULER",
		[SWITCH_WATCHDOG] = "PFC_WD",
		[SWITCH_NEIGHBOURS] = "DEVICE_NEIGHBOR"},
	.class_word = "class",
	.queue_word = "queue",
};

/* "PORT|Ethernet0": a dump of the database (sonic-db-dump, show techsupport), not the file. */
static bool is_dump(const json_t *root)
{
	void *it = json_object_iter((json_t *)root);
	for (; it; it = json_object_iter_next((json_t *)root, it)) {
		const char *key = json_object_iter_key(it), *bar = strchr(key, '|');
		for (int i = 0; bar && i < SWITCH_SECTIONS; i++)
			if (strncmp(key, switch_sonic.sections[i], (size_t)(bar - key)) == 0 &&
				switch_sonic.sections[i][bar - key] == '\0')
				return true;
	}
	return false;
}

bool switch_is_sonic(const json_t *root)
{
	for (int i = 0; i < SWITCH_SECTIONS; i++)
		if (json_object_get(root, switch_sonic.sections[i]))
			return true;
	if (is_dump(root))
		return true;
	return json_object_get(root, "DEVICE_METADATA") || json_object_get(root, "PFC_WD_TABLE");
}

static const json_t *table(struct switch_reader *r, const json_t *root, enum switch_section s)
{
	const json_t *t = switch_object(r, root, switch_sonic.sections[s], "");
	if (t)
		r->s->has[s] = true;
	return t;
}

/* "name", or "[TABLE|name]" of older releases, in place. */
static void plain_name(char *ref)
{
	size_t n = strlen(ref);
	char *bar = strchr(ref, '|');
	if (n > 2 && ref[0] == '[' && ref[n - 1] == ']' && bar) {
		ref[n - 1] = '\0';
		memmove(ref, bar + 1, strlen(bar + 1) + 1);
	}
}

static bool reference(struct switch_reader *r, const json_t *obj, const char *key, char *buf,
	size_t len, const char *place)
{
	char text[128];
	if (!switch_text(r, obj, key, text, sizeof(text), place))
		return false;
	plain_name(text);
	if (strlen(text) >= len)
		switch_bad(r, place, "%s is longer than %zu bytes", key, len - 1);
	else
		snprintf(buf, len, "%s", text);
	return switch_ok(r);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool is_port(const char *name)
{
	return strncmp(name, "Ethernet", 8) == 0 && name[8] >= '0' && name[8] <= '9';
}

static void read_ports(struct switch_reader *r, const json_t *root)
{
	const json_t *ports = table(r, root, SWITCH_PORTS);
	bool told = false;
	switch_add_ports(r, ports, is_port, "PORT");
	for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
		struct switch_port *p = &r->s->port[i];
		const json_t *o = json_object_get(ports, p->name);
		char at[128], admin[16] = "";
		snprintf(at, sizeof(at), "PORT|%s", p->name);
		p->speed_mbps = switch_number(r, o, "speed", 1, 10000000, -1, at);
		p->mtu = switch_number(r, o, "mtu", 68, 65535, -1, at);
		p->mtu_default = p->mtu < 0;
		p->mtu = p->mtu < 0 ? MTU_UNTOLD : p->mtu;
		switch_text(r, o, "alias", p->alias, sizeof(p->alias), at);
		if (switch_text(r, o, "admin_status", admin, sizeof(admin), at))
			told = true;
		p->used = strcmp(admin, "up") == 0;
	}
	/* A port that is not said to be up is down; where none is said anything, all are meant. */
	for (int i = 0; i < r->s->ports && !told; i++)
		r->s->port[i].used = true;
	/* An excerpt without PORT still names ports where it binds maps to them. */
	if (!ports)
		switch_add_ports(
			r, switch_object(r, root, "PORT_QOS_MAP", ""), is_port, "PORT_QOS_MAP");
}

static void read_cables(struct switch_reader *r, const json_t *root)
{
	const json_t *t = table(r, root, SWITCH_CABLES);
	if (json_object_size(t) > MAX_TABLES)
		switch_bad(r, "CABLE_LENGTH", "%zu tables are too many", json_object_size(t));
	void *it = json_object_iter((json_t *)t);
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)t, it)) {
		const char *name = json_object_iter_key(it);
		const json_t *o = switch_object(r, t, name, "CABLE_LENGTH");
		char at[128], text[32];
		snprintf(at, sizeof(at), "CABLE_LENGTH|%.60s", name);
		for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
			struct switch_port *p = &r->s->port[i];
			if (!switch_text(r, o, p->name, text, sizeof(text), at))
				continue;
			char *end;
			double m = strtod(text, &end);
			if (end == text || strcmp(end, "m") != 0 || !(m >= 0 && m <= 100000))
				switch_bad(r, at, "%s has \"%s\", not a length such as 40m",
					p->name, text);
			else
				p->cable_m = (int64_t)ceil(m);
		}
	}
}

static void read_neighbours(struct switch_reader *r, const json_t *root)
{
	const json_t *t = table(r, root, SWITCH_NEIGHBOURS);
	for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
		struct switch_port *p = &r->s->port[i];
		const json_t *o = switch_object(r, t, p->name, "DEVICE_NEIGHBOR");
		char at[128];
		snprintf(at, sizeof(at), "DEVICE_NEIGHBOR|%s", p->name);
		switch_text(r, o, "name", p->neighbour, sizeof(p->neighbour), at);
		switch_text(r, o, "port", p->neighbour_port, sizeof(p->neighbour_port), at);
	}
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* One map of numbers, all of it: key 0..keys-1, value 0..7. */
static void read_map(struct switch_reader *r, const json_t *t, const char *title, const char *name,
	int16_t *map, int keys)
{
	const json_t *o = switch_object(r, t, name, title);
	char at[160];
	snprintf(at, sizeof(at), "%s|%.60s", title, name);
	void *it = json_object_iter((json_t *)o);
	if (json_object_size(o) > 64)
		switch_bad(r, at, "%zu entries are too many", json_object_size(o));
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)o, it)) {
		const char *key = json_object_iter_key(it);
		char *end;
		long k = key[0] >= '0' && key[0] <= '9' ? strtol(key, &end, 10) : -1;
		if (k < 0 || k >= 64 || *end) {
			switch_bad(r, at, "\"%.20s\" is not a number from 0 to %d", key, keys - 1);
			return;
		}
		int64_t v = switch_number(r, o, key, 0, MAX_QUEUE, -1, at);
		if (k < keys && v >= 0 && v < SWITCH_CLASSES)
			map[k] = (int16_t)v;
	}
}

/* A map that may be bound to a port: "dscp_to_tc_map": "AZURE". *missing: there is no such map. */
static void bind_map(struct switch_reader *r, const json_t *root, const json_t *port,
	const char *field, const char *title, int16_t *map, int keys, char *name, size_t len,
	bool *missing)
{
	char at[128];
	snprintf(at, sizeof(at), "PORT_QOS_MAP|%s", field);
	if (!reference(r, port, field, name, len, at))
		return;
	const json_t *t = switch_object(r, root, title, "");
	*missing = t && !json_object_get(t, name);
	read_map(r, t, title, name, map, keys);
}

static void bind_port(
	struct switch_reader *r, const json_t *root, const json_t *qos, struct switch_port *p)
{
	char name[64], text[64];
	bool missing;
	const json_t *o = switch_object(r, qos, p->name, "PORT_QOS_MAP");
	bind_map(r, root, o, "dscp_to_tc_map", "DSCP_TO_TC_MAP", p->dscp_class, 64, p->dscp_map,
		sizeof(p->dscp_map), &p->dscp_missing);
	bind_map(r, root, o, "tc_to_queue_map", "TC_TO_QUEUE_MAP", p->class_queue, SWITCH_CLASSES,
		p->queue_map, sizeof(p->queue_map), &missing);
	bind_map(r, root, o, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", p->class_group,
		SWITCH_CLASSES, p->group_map, sizeof(p->group_map), &missing);
	bind_map(r, root, o, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", p->pfc_queue,
		SWITCH_CLASSES, name, sizeof(name), &missing);
	bind_map(r, root, o, "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", p->pfc_group,
		SWITCH_CLASSES, name, sizeof(name), &missing);
	p->pfc = o ? 0 : -1;
	if (switch_text(r, o, "pfc_enable", text, sizeof(text), "PORT_QOS_MAP"))
		p->pfc = (int)switch_bits(r, text, SWITCH_CLASSES - 1, "PORT_QOS_MAP|pfc_enable");
	/* Releases before 2022 have no such field and watch what has PFC. */
	if (switch_text(r, o, "pfcwd_sw_enable", text, sizeof(text), "PORT_QOS_MAP"))
		p->watchdog.watched = (int)switch_bits(
			r, text, SWITCH_CLASSES - 1, "PORT_QOS_MAP|pfcwd_sw_enable");
}

static void read_bindings(struct switch_reader *r, const json_t *root)
{
	const json_t *qos = table(r, root, SWITCH_BINDINGS);
	r->s->has[SWITCH_PFC] = qos != NULL;
	table(r, root, SWITCH_DSCP);
	table(r, root, SWITCH_CLASS_QUEUE);
	table(r, root, SWITCH_CLASS_GROUP);
	const json_t *global = switch_object(r, qos, "global", "PORT_QOS_MAP");
	for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
		struct switch_port *p = &r->s->port[i];
		bind_port(r, root, qos, p);
		/* One map may be the whole switch's: qosorch binds it to every port. */
		if (!p->dscp_map[0])
			bind_map(r, root, global, "dscp_to_tc_map", "DSCP_TO_TC_MAP", p->dscp_class,
				64, p->dscp_map, sizeof(p->dscp_map), &p->dscp_missing);
	}
}

/* ---- buffers and queues ---------------------------------------------------------------------- */

typedef void (*apply_fn)(struct switch_reader *r, const json_t *root, const json_t *entry,
	struct switch_port *p, int index, const char *place);

/* Every port and index of "Ethernet0,Ethernet4|3-4". Chassis write "host|asic|Ethernet0|3". */
static void for_each_entry(struct switch_reader *r, const json_t *root, const json_t *t,
	const char *title, apply_fn apply)
{
	void *it = json_object_iter((json_t *)t);
	unsigned n_applied = 0;
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)t, it)) {
		const char *key = json_object_iter_key(it);
		const char *bar = strrchr(key, '|');
		char at[160], name[64];
		snprintf(at, sizeof(at), "%s|%.100s", title, key);
		const json_t *entry = switch_object(r, t, key, title);
		if (!bar) {
			switch_bad(r, at, "the name is not PORT|NUMBER");
			return;
		}
		uint64_t bits = switch_bits(r, bar + 1, MAX_QUEUE, at);
		const char *from = key;
		for (const char *c = key; c < bar; c++)
			from = *c == '|' ? c + 1 : from;
		while (from < bar && switch_ok(r)) {
			size_t n = strcspn(from, ",|");
			snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), from);
			struct switch_port *p = switch_find_port(r, name);
			for (int i = 0; p && i < SWITCH_CLASSES; i++)
				if (bits >> i & 1)
					apply(r, root, entry, p, i, at);
			if (p && ++n_applied > 4 * SWITCH_MAX_PORTS * SWITCH_CLASSES)
				switch_bad(r, at, "too many entries for the same ports");
			from += n + 1;
		}
	}
}

/* Where a group asks for a pause. With a dynamic threshold a group may have alpha times what is
 * left of the pool: alone it reaches pool * alpha / (1 + alpha). */
static void reckon_start(struct switch_reader *r, const json_t *root, const json_t *profile,
	struct switch_buffer *b, const char *place)
{
	char pool[64] = "", at[128];
	const json_t *pools = switch_object(r, root, "BUFFER_POOL", "");
	int64_t fixed = switch_number(r, profile, "static_th", 0, MAX_BYTES, -1, place);
	int64_t alpha = switch_number(r, profile, "dynamic_th", -8, 8, 99, place);
	reference(r, profile, "pool", pool, sizeof(pool), place);
	const json_t *o = switch_object(r, pools, pool, "BUFFER_POOL");
	snprintf(at, sizeof(at), "BUFFER_POOL|%s", pool);
	int64_t size = switch_number(r, o, "size", 0, MAX_BYTES, -1, at);
	b->pool_shared = o ? switch_number(r, o, "xoff", 0, MAX_BYTES, -1, at) : 0;
	if (fixed >= 0) {
		b->starts_at = fixed;
		snprintf(b->starts_how, sizeof(b->starts_how), "static_th");
	} else if (alpha == 99) {
		snprintf(b->starts_how, sizeof(b->starts_how),
			"its profile has neither dynamic_th nor static_th");
	} else if (size <= 0) {
		snprintf(b->starts_how, sizeof(b->starts_how),
			"BUFFER_POOL|%s is not in the file, or has no size", pool);
	} else {
		double a = pow(2, (double)alpha);
		b->starts_at = (int64_t)((double)size * a / (1 + a));
		snprintf(b->starts_how, sizeof(b->starts_how),
			"dynamic_th %lld of a pool of %lld B, one group congested",
			(long long)alpha, (long long)size);
	}
}

static void apply_group(struct switch_reader *r, const json_t *root, const json_t *entry,
	struct switch_port *p, int g, const char *place)
{
	struct switch_buffer *b = &p->buffer[g];
	const json_t *profiles = switch_object(r, root, "BUFFER_PROFILE", "");
	if (!reference(r, entry, "profile", b->name, sizeof(b->name), place))
		return;
	r->s->group_seen[g] = true;
	if (strcmp(b->name, "NULL") == 0) {
		b->lossless = b->calculated = true;
		return;
	}
	const json_t *o = switch_object(r, profiles, b->name, "BUFFER_PROFILE");
	char at[160];
	snprintf(at, sizeof(at), "BUFFER_PROFILE|%s", b->name);
	b->missing = profiles && !o;
	b->size = switch_number(r, o, "size", 0, MAX_BYTES, -1, at);
	b->xon = switch_number(r, o, "xon", 0, MAX_BYTES, -1, at);
	b->headroom = switch_number(r, o, "xoff", 0, MAX_BYTES, -1, at);
	/* In the dynamic model a profile may say by this field that its size is reckoned. */
	char type[32] = "";
	switch_text(r, o, "headroom_type", type, sizeof(type), at);
	b->calculated = strcmp(type, "dynamic") == 0;
	b->lossless = b->headroom > 0 || b->calculated;
	if (o)
		reckon_start(r, root, o, b, at);
}

static bool yes(struct switch_reader *r, const json_t *o, const char *key, const char *place)
{
	char text[16] = "";
	const json_t *v = json_object_get(o, key);
	if (json_is_boolean(v))
		return json_is_true(v);
	switch_text(r, o, key, text, sizeof(text), place);
	return strcmp(text, "true") == 0;
}

static void apply_wred(struct switch_reader *r, const json_t *profiles, struct switch_wred *w)
{
	char at[160];
	snprintf(at, sizeof(at), "WRED_PROFILE|%s", w->name);
	const json_t *o = switch_object(r, profiles, w->name, "WRED_PROFILE");
	w->missing = profiles && !o;
	w->kmin = switch_number(r, o, "green_min_threshold", 0, MAX_BYTES, -1, at);
	w->kmax = switch_number(r, o, "green_max_threshold", 0, MAX_BYTES, -1, at);
	w->pmax = (int)switch_number(r, o, "green_drop_probability", 0, 100, -1, at);
	switch_text(r, o, "ecn", w->ecn, sizeof(w->ecn), at);
	/* RoCE's packets are green: no meter colours them. qosorch.cpp, ecn_map. */
	bool green = strcmp(w->ecn, "ecn_all") == 0 || strstr(w->ecn, "green") != NULL;
	bool on = yes(r, o, "wred_green_enable", at);
	w->marks = green && on;
	if (green && !on)
		snprintf(w->ecn, sizeof(w->ecn), "on, but wred_green_enable is not true");
}

static void apply_queue(struct switch_reader *r, const json_t *root, const json_t *entry,
	struct switch_port *p, int q, const char *place)
{
	struct switch_wred *w = &p->wred[q];
	struct switch_scheduler *s = &p->scheduler[q];
	if (reference(r, entry, "wred_profile", w->name, sizeof(w->name), place))
		apply_wred(r, switch_object(r, root, "WRED_PROFILE", ""), w);
	if (!reference(r, entry, "scheduler", s->name, sizeof(s->name), place))
		return;
	char at[160], type[16] = "";
	snprintf(at, sizeof(at), "SCHEDULER|%s", s->name);
	const json_t *o =
		switch_object(r, switch_object(r, root, "SCHEDULER", ""), s->name, "SCHEDULER");
	s->known = switch_text(r, o, "type", type, sizeof(type), at);
	s->strict = strcmp(type, "STRICT") == 0;
	s->weight = (int)switch_number(r, o, "weight", 0, 1000000, 1, at);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static void read_watchdog(struct switch_reader *r, const json_t *root)
{
	const json_t *t = table(r, root, SWITCH_WATCHDOG);
	const json_t *global = switch_object(r, t, "GLOBAL", "PFC_WD");
	r->s->poll_ms = switch_number(r, global, "POLL_INTERVAL", 0, 1000000, -1, "PFC_WD|GLOBAL");
	for (int i = 0; i < r->s->ports && switch_ok(r); i++) {
		struct switch_port *p = &r->s->port[i];
		const json_t *o = switch_object(r, t, p->name, "PFC_WD");
		char at[128];
		snprintf(at, sizeof(at), "PFC_WD|%s", p->name);
		struct switch_watchdog *w = &p->watchdog;
		w->on = o != NULL;
		/* detection_time is what starts it; pfcwdorch.cpp: drop is the default action. */
		w->detect_ms = switch_number(r, o, "detection_time", 0, 10000000, -1, at);
		w->restore_ms = switch_number(r, o, "restoration_time", 0, 10000000, -1, at);
		snprintf(w->action, sizeof(w->action), "drop");
		switch_text(r, o, "action", w->action, sizeof(w->action), at);
	}
}

/* ---- older releases, and LLDP ---------------------------------------------------------------- */

/* "Ethernet0,Ethernet4": {...} becomes an entry for each of its ports. */
static json_t *one_by_one(struct switch_reader *r, const json_t *t, const char *title)
{
	json_t *all = json_object();
	void *it = json_object_iter((json_t *)t);
	int added = 0;
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)t, it)) {
		const char *key = json_object_iter_key(it), *from = key;
		char name[64];
		if (!strchr(key, ',') || strchr(key, '|')) {
			json_object_set(all, key, json_object_iter_value(it));
			continue;
		}
		while (*from && switch_ok(r)) {
			size_t n = strcspn(from, ",");
			snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), from);
			/* A port's own entry says more than one of many. */
			if (is_port(name) && !json_object_get(t, name))
				json_object_set(all, name, json_object_iter_value(it));
			if (++added > 4 * SWITCH_MAX_PORTS)
				switch_bad(r, title, "too many ports in lists");
			from += from[n] ? n + 1 : n;
		}
	}
	return all;
}

/* `lldpctl -f json` beside the configuration: what is plugged in comes before what was planned. */
static json_t *plugged(const json_t *root)
{
	struct switch_lldp l = {.n = 0};
	const json_t *planned = json_object_get(root, "DEVICE_NEIGHBOR");
	json_t *all = json_is_object(planned) ? json_copy((json_t *)planned) : json_object();
	switch_lldp_of_lldpctl(json_object_get(root, "lldp"), &l);
	for (int i = 0; i < l.n; i++) {
		const struct switch_link *k = &l.link[i];
		if (is_port(k->port))
			json_object_set_new(all, k->port,
				json_pack("{s:s,s:s}", "name", k->host, "port", k->far_port));
	}
	switch_lldp_free(&l);
	return all;
}

/* A dump's keys by table, as the file has them. What redis-dump adds to an entry is left out:
 * {"type": "hash", "ttl": -1, "value": {...}}. */
static json_t *by_table(const json_t *root)
{
	json_t *all = json_object();
	void *it = json_object_iter((json_t *)root);
	for (; it; it = json_object_iter_next((json_t *)root, it)) {
		const char *key = json_object_iter_key(it), *bar = strchr(key, '|');
		json_t *v = json_object_iter_value(it), *in = json_object_get(v, "value");
		char name[64];
		if (!bar || bar - key >= (ptrdiff_t)sizeof(name)) {
			json_object_set(all, key, v);
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(bar - key), key);
		json_t *t = json_object_get(all, name);
		if (!json_is_object(t)) {
			t = json_object();
			json_object_set_new(all, name, t);
		}
		json_object_set(
			t, bar + 1, json_is_object(in) && json_object_get(v, "type") ? in : v);
	}
	return all;
}

/* {"Ethernet0": {"0": {...}, "3-4": {...}}} becomes {"Ethernet0|0": ..., "Ethernet0|3-4": ...}. */
static json_t *joined_keys(const json_t *t)
{
	json_t *all = json_object();
	void *it = json_object_iter((json_t *)t);
	for (; it; it = json_object_iter_next((json_t *)t, it)) {
		const char *key = json_object_iter_key(it);
		json_t *v = json_object_iter_value(it);
		void *in = json_object_iter(v);
		if (strchr(key, '|') || !json_is_object(json_object_iter_value(in))) {
			json_object_set(all, key, v);
			continue;
		}
		for (; in; in = json_object_iter_next(v, in)) {
			char name[160];
			snprintf(name, sizeof(name), "%.80s|%.70s", key, json_object_iter_key(in));
			json_object_set(all, name, json_object_iter_value(in));
		}
	}
	return all;
}

/* The same configuration as releases of today write it; the caller frees it. */
static json_t *of_today(struct switch_reader *r, const json_t *root)
{
	static const char *const lists[] = {"PORT_QOS_MAP", "PFC_WD"};
	static const char *const numbered[] = {"BUFFER_PG", "QUEUE"};
	json_t *now = is_dump(root) ? by_table(root) : json_copy((json_t *)root);
	if (json_object_get(now, "PFC_WD_TABLE") && !json_object_get(now, "PFC_WD"))
		json_object_set(now, "PFC_WD", json_object_get(now, "PFC_WD_TABLE"));
	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++) {
		const json_t *t = json_object_get(now, numbered[i]);
		if (json_is_object(t))
			json_object_set_new(now, numbered[i], joined_keys(t));
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const json_t *t = json_object_get(now, lists[i]);
		if (json_is_object(t))
			json_object_set_new(now, lists[i], one_by_one(r, t, lists[i]));
	}
	if (json_object_get(root, "lldp"))
		json_object_set_new(now, "DEVICE_NEIGHBOR", plugged(root));
	return now;
}

static void read_tables(struct switch_reader *r, const json_t *root)
{
	const json_t *meta = switch_object(r, root, "DEVICE_METADATA", "");
	const json_t *local = switch_object(r, meta, "localhost", "DEVICE_METADATA");
	r->s->whole = local != NULL && json_object_get(root, "PORT") &&
		      json_object_get(root, "PORT_QOS_MAP");
	switch_host(r, local, "DEVICE_METADATA|localhost");
	read_ports(r, root);
	read_cables(r, root);
	read_neighbours(r, root);
	read_bindings(r, root);
	table(r, root, SWITCH_BUFFERS);
	table(r, root, SWITCH_POOLS);
	table(r, root, SWITCH_WRED);
	table(r, root, SWITCH_SCHEDULERS);
	for_each_entry(r, root, table(r, root, SWITCH_GROUPS), "BUFFER_PG", apply_group);
	for_each_entry(r, root, table(r, root, SWITCH_QUEUES), "QUEUE", apply_queue);
	for (int i = 0; i < r->s->ports; i++)
		switch_shares(&r->s->port[i]);
	read_watchdog(r, root);
}

void switch_read_sonic(struct switch_reader *r, const json_t *root)
{
	json_t *now = of_today(r, root);
	if (now && switch_ok(r))
		read_tables(r, now);
	json_decref(now);
}
