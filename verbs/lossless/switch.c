// SPDX-License-Identifier: Apache-2.0
/*
 * Reading switch configurations: which format a file is in, and the values of a JSON file, each
 * checked with its place. What a key means is the formats' business (switch_sonic.c,
 * switch_nvue.c). Sizes are bounded before anything is kept.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/switch_priv.h"

bool switch_ok(const struct switch_reader *r)
{
	return r->e->code == 0;
}

void switch_bad(struct switch_reader *r, const char *place, const char *fmt, ...)
{
	char why[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	fb_fail_usage(r->e, "%s: %.200s: %s", r->name, place, why);
	fb_hint(r->e,
		"give the file as the switch writes it: /etc/sonic/config_db.json, or nv show "
		"qos -o json");
}

static const char *type_name(const json_t *v)
{
	static const char *const names[] = {[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "a list",
		[JSON_STRING] = "a text",
		[JSON_INTEGER] = "a number",
		[JSON_REAL] = "a number",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null"};
	return v ? names[json_typeof(v)] : "nothing";
}

const json_t *switch_object(
	struct switch_reader *r, const json_t *obj, const char *key, const char *place)
{
	const json_t *v = json_object_get(obj, key);
	char at[256];
	if (!v || !switch_ok(r) || json_is_object(v))
		return switch_ok(r) ? v : NULL;
	snprintf(at, sizeof(at), "%s%s%.100s", place, *place ? "|" : "", key);
	switch_bad(r, at, "it is %s, not an object", type_name(v));
	return NULL;
}

/* A whole number in decimal, all of the text. */
static bool whole_number(const char *text, int64_t *v)
{
	char *end;
	errno = 0;
	*v = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && text[strcspn(text, " \t\n")] == '\0';
}

int64_t switch_number(struct switch_reader *r, const json_t *obj, const char *key, int64_t min,
	int64_t max, int64_t def, const char *place)
{
	const json_t *v = json_object_get(obj, key);
	int64_t n = def;
	char at[256];
	if (!v || !switch_ok(r))
		return def;
	snprintf(at, sizeof(at), "%s|%.100s", place, key);
	if (json_is_integer(v))
		n = json_integer_value(v);
	else if (!json_is_string(v))
		switch_bad(r, at, "it is %s, not a number", type_name(v));
	else if (!whole_number(json_string_value(v), &n))
		switch_bad(r, at, "\"%.40s\" is not a whole number", json_string_value(v));
	if (switch_ok(r) && (n < min || n > max))
		switch_bad(r, at, "%lld is not from %lld to %lld", (long long)n, (long long)min,
			(long long)max);
	return switch_ok(r) ? n : def;
}

bool switch_text(struct switch_reader *r, const json_t *obj, const char *key, char *buf, size_t len,
	const char *place)
{
	const json_t *v = json_object_get(obj, key);
	char at[256];
	if (!v || !switch_ok(r))
		return false;
	snprintf(at, sizeof(at), "%s|%.100s", place, key);
	int n = -1;
	if (json_is_string(v))
		n = snprintf(buf, len, "%s", json_string_value(v));
	else if (json_is_integer(v))
		n = snprintf(buf, len, "%lld", (long long)json_integer_value(v));
	else
		switch_bad(r, at, "it is %s, not a text", type_name(v));
	if (n >= (int)len)
		switch_bad(r, at, "the text is longer than %zu bytes", len - 1);
	return switch_ok(r);
}

void switch_host(struct switch_reader *r, const json_t *obj, const char *place)
{
	const char *empty = json_string_value(json_object_get(obj, "hostname"));
	if (!empty || *empty)
		r->s->named =
			switch_text(r, obj, "hostname", r->s->name, sizeof(r->s->name), place);
}

uint64_t switch_bits(struct switch_reader *r, const char *text, int max, const char *place)
{
	uint64_t bits = 0;
	const char *p = text;
	while (switch_ok(r) && *p) {
		char *end;
		long a = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : -1, b = a;
		if (a >= 0 && *end == '-' && end[1] >= '0' && end[1] <= '9')
			b = strtol(end + 1, &end, 10);
		if (a < 0 || a > max || b < a || b > max || (*end && *end != ',')) {
			switch_bad(r, place,
				"\"%.40s\" is not a list of numbers from 0 to %d, such as 3,4 or "
				"3-4",
				text, max);
			return 0;
		}
		for (long i = a; i <= b; i++)
			bits |= 1ull << i;
		p = *end ? end + 1 : end;
		p += strspn(p, " ");
	}
	return switch_ok(r) ? bits : 0;
}

/* ---- ports ----------------------------------------------------------------------------------- */

void switch_port_none(struct switch_port *p, const char *name)
{
	*p = (struct switch_port){.used = true,
		.speed_mbps = -1,
		.mtu = -1,
		.cable_m = -1,
		.pfc = -1,
		.pause = -1,
		.watchdog = {.detect_ms = -1, .restore_ms = -1, .watched = -1}};
	snprintf(p->name, sizeof(p->name), "%s", name);
	memset(p->dscp_class, -1, sizeof(p->dscp_class));
	memset(p->class_queue, -1, sizeof(p->class_queue));
	memset(p->class_group, -1, sizeof(p->class_group));
	for (int i = 0; i < SWITCH_CLASSES; i++) {
		p->pfc_queue[i] = p->pfc_group[i] = (int16_t)i;
		p->buffer[i] = (struct switch_buffer){
			.size = -1, .xon = -1, .headroom = -1, .starts_at = -1};
		p->wred[i] = (struct switch_wred){.kmin = -1, .kmax = -1, .pmax = -1};
		p->scheduler[i].share = -1;
	}
}

struct switch_port *switch_find_port(const struct switch_reader *r, const char *name)
{
	const json_t *at = json_object_get(r->index, name);
	return at ? &r->s->port[json_integer_value(at)] : NULL;
}

static void add_port(struct switch_reader *r, const char *name, const char *place)
{
	struct switch_facts *s = r->s;
	if (strlen(name) >= sizeof(s->port->name)) {
		switch_bad(r, place, "the port's name \"%.20s...\" is longer than %zu bytes", name,
			sizeof(s->port->name) - 1);
		return;
	}
	if (s->ports == SWITCH_MAX_PORTS) {
		switch_bad(r, place, "more than %d ports", SWITCH_MAX_PORTS);
		return;
	}
	/* Room grows by doubling: at powers of two it is full. */
	if ((s->ports & (s->ports - 1)) == 0) {
		size_t room = s->ports ? 2 * (size_t)s->ports : 1;
		struct switch_port *more = realloc(s->port, room * sizeof(*more));
		if (!more) {
			fb_fail(r->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %zu ports", room);
			return;
		}
		s->port = more;
	}
	switch_port_none(&s->port[s->ports], name);
	json_object_set_new(r->index, name, json_integer(s->ports));
	s->ports++;
}

void switch_add_ports(
	struct switch_reader *r, const json_t *obj, bool (*take)(const char *), const char *place)
{
	const char *key;
	const json_t *v;
	void *it = json_object_iter((json_t *)obj);
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)obj, it)) {
		key = json_object_iter_key(it);
		v = json_object_iter_value(it);
		if ((take && !take(key)) || json_object_get(r->index, key))
			continue;
		if (!json_is_object(v)) {
			char at[256];
			snprintf(at, sizeof(at), "%s|%.100s", place, key);
			switch_bad(r, at, "it is %s, not an object", type_name(v));
			return;
		}
		add_port(r, key, place);
	}
}

void switch_shares(struct switch_port *p)
{
	int sum = 0;
	for (int q = 0; q < SWITCH_CLASSES; q++)
		if (p->scheduler[q].known && !p->scheduler[q].strict)
			sum += p->scheduler[q].weight;
	for (int q = 0; q < SWITCH_CLASSES && sum > 0; q++)
		if (p->scheduler[q].known && !p->scheduler[q].strict)
			p->scheduler[q].share = (p->scheduler[q].weight * 100 + sum / 2) / sum;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void name_after_file(struct switch_facts *s, const char *name)
{
	const char *slash = strrchr(name, '/');
	snprintf(s->path, sizeof(s->path), "%.255s", name);
	snprintf(s->name, sizeof(s->name), "%.63s", slash && slash[1] ? slash + 1 : name);
	char *dot = strrchr(s->name, '.');
	if (dot && dot != s->name && strcmp(dot, ".json") == 0)
		*dot = '\0';
}

/* Objects and values cost a hundred times their bytes: they are counted before any is made. */
bool switch_too_many(const char *text, size_t len)
{
	size_t objects = 0, values = 0;
	for (size_t i = 0; i < len; i++) {
		objects += text[i] == '{' || text[i] == '[';
		values += text[i] == ',' || text[i] == ':';
	}
	return objects > SWITCH_MAX_OBJECTS || values > SWITCH_MAX_VALUES;
}

int switch_parse(
	const char *text, size_t len, const char *name, struct switch_facts *s, struct fb_err *e)
{
	*s = (struct switch_facts){.poll_ms = -1};
	struct fb_err own = {0};
	struct switch_reader r = {.s = s, .name = name, .e = &own};
	if (switch_too_many(text, len))
		switch_bad(&r, "(top)", "more than %u objects or %u values", SWITCH_MAX_OBJECTS,
			SWITCH_MAX_VALUES);
	json_t *root = switch_ok(&r) ? fb_json_parse(text, len, name, &own) : NULL;
	r.index = json_object();
	name_after_file(s, name);
	if (root && switch_is_sonic(root)) {
		s->vendor = &switch_sonic;
		switch_read_sonic(&r, root);
	} else if (root && switch_is_nvue(root)) {
		s->vendor = &switch_nvue;
		switch_read_nvue(&r, root);
	} else if (root) {
		switch_bad(&r, "(top)",
			"neither a SONiC configuration (PORT, PORT_QOS_MAP, ...) nor NVIDIA's "
			"(qos, mapping, roce, ...)");
	}
	json_decref(root);
	json_decref(r.index);
	if (own.code != 0) {
		switch_free(s);
		*e = e->code ? *e : own;
	}
	return own.code;
}

int switch_read(const char *path, struct switch_facts *s, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	*s = (struct switch_facts){.poll_ms = -1};
	int rc = fb_read_file(path, SWITCH_MAX_BYTES, &text, &len, e);
	if (rc == 0)
		rc = switch_parse(text, len, path, s, e);
	free(text);
	return rc;
}

void switch_free(struct switch_facts *s)
{
	free(s->port);
	s->port = NULL;
	s->ports = 0;
}

/* ---- both ends of a cable -------------------------------------------------------------------- */

bool switch_same_host(const char *a, const char *b)
{
	size_t n = strcspn(a, "."), m = strcspn(b, ".");
	/* Two names with domains must be alike in them too. */
	if (a[n] && b[m])
		return strcmp(a, b) == 0;
	return n == m && n > 0 && strncmp(a, b, n) == 0;
}

struct switch_port *switch_named_port(const struct switch_facts *s, const char *name)
{
	for (int i = 0; i < s->ports && *name; i++)
		if (strcmp(s->port[i].name, name) == 0 || strcmp(s->port[i].alias, name) == 0)
			return &s->port[i];
	return NULL;
}

static void tell_other_end(struct switch_facts *sw, int n, int i, struct switch_port *p)
{
	for (int k = 0; k < n; k++) {
		if (k == i || !switch_same_host(sw[k].name, p->neighbour))
			continue;
		struct switch_port *far = switch_named_port(&sw[k], p->neighbour_port);
		if (!far) {
			far = switch_named_port(&sw[k], p->neighbour_descr);
			if (far)
				snprintf(p->neighbour_port, sizeof(p->neighbour_port), "%s",
					p->neighbour_descr);
		}
		if (!far || far->neighbour[0])
			continue;
		snprintf(far->neighbour, sizeof(far->neighbour), "%s", sw[i].name);
		snprintf(far->neighbour_port, sizeof(far->neighbour_port), "%s", p->name);
		sw[k].has[SWITCH_NEIGHBOURS] = true;
	}
}

void switch_pair(struct switch_facts *sw, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < sw[i].ports; k++)
			if (sw[i].port[k].neighbour[0])
				tell_other_end(sw, n, i, &sw[i].port[k]);
}

/* ---- what a port does ------------------------------------------------------------------------ */

bool switch_has_queues(const struct switch_port *p)
{
	for (int c = 0; c < SWITCH_CLASSES; c++)
		if (p->class_queue[c] >= 0)
			return true;
	return false;
}

int switch_pfc_priority(const struct switch_port *p, int c)
{
	int q = p->class_queue[c], g = p->class_group[c];
	for (int i = 0; i < SWITCH_CLASSES && p->pfc > 0 && q >= 0 && g >= 0; i++) {
		/* A class's own number comes first: two classes may share a queue. */
		int prio = (c + i) % SWITCH_CLASSES;
		if ((p->pfc >> prio & 1) && p->pfc_queue[prio] == q && p->pfc_group[prio] == g)
			return prio;
	}
	return -1;
}

unsigned switch_lossless(const struct switch_port *p)
{
	unsigned bits = 0;
	for (int c = 0; c < SWITCH_CLASSES; c++)
		if (switch_pfc_priority(p, c) >= 0)
			bits |= 1u << c;
	return bits;
}
