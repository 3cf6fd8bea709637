// SPDX-License-Identifier: Apache-2.0
/*
 * See switch_lldp.h. Forms: lldpd, src/client (text_writer.c, kv_writer.c, json_writer.c: "json"
 * makes an object of what "json0" makes a list of); SONiC sonic-utilities, scripts/lldpshow; NVIDIA
 * NVUE reference, LLDP.
 */
#include "verbs/lossless/switch_lldp.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/switch_priv.h"

/* ---- what was found -------------------------------------------------------------------------- */

bool switch_is_mac(const char *text)
{
	for (int i = 0; i < 17; i++)
		if (i % 3 == 2 ? text[i] != ':' && text[i] != '-'
			       : !isxdigit((unsigned char)text[i]))
			return false;
	return text[17] == '\0';
}

/* A port's identity that is no name comes with a name in its description. */
static void add(struct switch_lldp *l, const char *port, const char *host, const char *id,
	const char *descr)
{
	const char *far = id && *id && !switch_is_mac(id) ? id : descr;
	if (l->failed || !port || !*port || !host || !*host || !far || !*far ||
		strlen(port) >= sizeof(l->link->port) || strlen(host) >= sizeof(l->link->host) ||
		strlen(far) >= sizeof(l->link->far_port))
		return;
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->link[i].port, port) == 0)
			return; /* the first of several, as lldpd lists the freshest first */
	struct switch_link *more = NULL;
	if (l->n < SWITCH_MAX_LINKS)
		more = reallocarray(l->link, (size_t)l->n + 1, sizeof(*more));
	l->failed = !more;
	if (!more)
		return;
	l->link = more;
	struct switch_link *k = &more[l->n++];
	snprintf(k->port, sizeof(k->port), "%s", port);
	snprintf(k->host, sizeof(k->host), "%s", host);
	snprintf(k->far_port, sizeof(k->far_port), "%s", far);
	snprintf(k->descr, sizeof(k->descr), "%.63s", descr ? descr : "");
}

void switch_lldp_free(struct switch_lldp *l)
{
	free(l->link);
	l->link = NULL;
	l->n = 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* "x", {"value": "x"}, or a list that begins with one of them. */
static const json_t *first(const json_t *v)
{
	return json_is_array(v) ? json_array_get(v, 0) : v;
}

static const char *text_of(const json_t *v)
{
	v = first(v);
	return json_string_value(json_is_object(v) ? json_object_get(v, "value") : v);
}

/* "chassis": {"spine01": {...}}, {"name": ..., "id": ...}, or a list of the latter. */
static const char *chassis_name(const json_t *chassis)
{
	const json_t *c = first(chassis);
	const char *name = text_of(json_object_get(c, "name"));
	void *it = json_object_iter((json_t *)c);
	if (name || json_object_get(c, "id") || !json_is_object(json_object_iter_value(it)))
		return name;
	return json_object_iter_key(it);
}

static void add_lldpctl(struct switch_lldp *l, const char *name, const json_t *v)
{
	const json_t *port = first(json_object_get(v, "port"));
	const json_t *id = first(json_object_get(port, "id"));
	const char *type = json_string_value(json_object_get(id, "type"));
	bool named = !type || strcmp(type, "ifname") == 0 || strcmp(type, "local") == 0;
	add(l, name, chassis_name(json_object_get(v, "chassis")), named ? text_of(id) : NULL,
		text_of(json_object_get(port, "descr")));
}

/* {"Ethernet0": {...}, ...}, or {"name": "Ethernet0", "chassis": [...], ...} */
static void add_interfaces(struct switch_lldp *l, const json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	if (name) {
		add_lldpctl(l, name, o);
		return;
	}
	void *it = json_object_iter((json_t *)o);
	for (; it; it = json_object_iter_next((json_t *)o, it))
		add_lldpctl(l, json_object_iter_key(it), first(json_object_iter_value(it)));
}

static void add_one(struct switch_lldp *l, const json_t *lldp)
{
	const json_t *all = json_object_get(lldp, "interface"), *one;
	size_t i;
	if (!json_is_array(all))
		add_interfaces(l, all);
	json_array_foreach (all, i, one)
		add_interfaces(l, one);
}

void switch_lldp_of_lldpctl(const json_t *lldp, struct switch_lldp *l)
{
	const json_t *one;
	size_t i;
	if (!json_is_array(lldp))
		add_one(l, lldp);
	json_array_foreach (lldp, i, one)
		add_one(l, one);
}

/* Of `nv show interface`: {"lldp": {"neighbor": {...}}} of a port, or what is in it. NULL: none */
static const json_t *neighbours_of(const json_t *port)
{
	const json_t *lldp = json_object_get(port, "lldp");
	const json_t *v = json_object_get(json_is_object(lldp) ? lldp : port, "neighbor");
	return json_is_object(v) ? v : NULL;
}

static void add_nvue(struct switch_lldp *l, const char *name, const json_t *neighbours)
{
	void *it = json_object_iter((json_t *)neighbours);
	for (; it; it = json_object_iter_next((json_t *)neighbours, it)) {
		const json_t *v = json_object_iter_value(it), *port = json_object_get(v, "port");
		const char *host = fb_json_str(
			json_object_get(v, "chassis"), "system-name", json_object_iter_key(it));
		add(l, name, host, fb_json_str(port, "name", NULL),
			fb_json_str(port, "description", NULL));
	}
}

/* Is something of LLDP there, and nothing else of a configuration? @return 1: no */
static int read_json(const json_t *root, struct switch_lldp *l)
{
	const json_t *ports = json_object_get(root, "interface");
	bool any = false, alone = json_object_size(root) == 1 && json_is_object(ports);
	if (switch_is_sonic(root) || (switch_is_nvue(root) && !alone))
		return 1;
	if (json_object_get(root, "lldp")) {
		switch_lldp_of_lldpctl(json_object_get(root, "lldp"), l);
		return 0;
	}
	ports = alone ? ports : root;
	void *it = json_object_iter((json_t *)ports);
	for (; it; it = json_object_iter_next((json_t *)ports, it)) {
		const json_t *v = json_object_iter_value(it), *found = neighbours_of(v);
		/* {"interface": {"swp1": {"link": ...}}} is a configuration with its neighbours. */
		if (alone && json_object_size(v) > 1)
			return 1;
		any = any || found || json_object_get(v, "lldp");
		add_nvue(l, json_object_iter_key(it), found);
	}
	return any ? 0 : 1;
}

/* ---- text ------------------------------------------------------------------------------------ */

#define MAX_COLUMNS 12
struct columns {
	size_t at[MAX_COLUMNS + 1]; /* where each begins; behind the last: no end */
	size_t n;
	int port, host, id, descr; /* which column is what; -1: none */
};

/* Words of a cell, blanks around them cut. */
static void cell(
	const struct columns *c, int k, const char *line, size_t len, char *buf, size_t max)
{
	size_t from = k >= 0 ? c->at[k] : len, to = k >= 0 ? c->at[k + 1] : len;
	from = from < len ? from : len;
	to = to < len ? to : len;
	while (from < to && isspace((unsigned char)line[from]))
		from++;
	while (to > from && isspace((unsigned char)line[to - 1]))
		to--;
	snprintf(buf, max, "%.*s", (int)(to - from), line + from);
}

/* A line of dashes says where the columns of the line above it begin. @return false: it is none */
static bool find_columns(
	const char *head, size_t head_len, const char *line, size_t len, struct columns *c)
{
	char text[64];
	*c = (struct columns){.port = -1, .host = -1, .id = -1, .descr = -1};
	for (size_t i = 0; i < len && c->n < MAX_COLUMNS; i++) {
		if (line[i] != '-' && !isspace((unsigned char)line[i]))
			return false;
		if (line[i] == '-' && (i == 0 || line[i - 1] != '-'))
			c->at[c->n++] = i;
	}
	c->at[c->n] = SIZE_MAX;
	for (int k = 0; k < (int)c->n; k++) {
		cell(c, k, head, head_len, text, sizeof(text));
		if (strcmp(text, "LocalPort") == 0 || strcmp(text, "Interface") == 0)
			c->port = k;
		else if (strcmp(text, "RemoteDevice") == 0 || strcmp(text, "Remote Host") == 0)
			c->host = k;
		else if (strcmp(text, "RemotePortID") == 0 || strcmp(text, "Remote Port") == 0)
			c->id = k;
		else if (strcmp(text, "RemotePortDescr") == 0)
			c->descr = k;
	}
	return c->port >= 0 && c->host >= 0 && c->id >= 0;
}

static void add_row(struct switch_lldp *l, const struct columns *c, const char *line, size_t len)
{
	char port[80], host[80], id[80], descr[80];
	cell(c, c->port, line, len, port, sizeof(port));
	cell(c, c->host, line, len, host, sizeof(host));
	cell(c, c->id, line, len, id, sizeof(id));
	cell(c, c->descr, line, len, descr, sizeof(descr));
	if (port[0] != '-' && strncmp(port, "Total entr", 10) != 0)
		add(l, port, host, id, descr);
}

/* What is being said of one interface, line by line. */
struct saying {
	char port[80], host[80], id[80], descr[80];
};

static void said(struct switch_lldp *l, struct saying *s)
{
	add(l, s->port, s->host, s->id, s->descr);
	*s = (struct saying){.port = ""};
}

static bool value_of(const char *line, size_t len, const char *key, char *buf, size_t max)
{
	size_t k = strlen(key);
	while (len > 0 && isspace((unsigned char)*line)) {
		line++;
		len--;
	}
	if (len < k || strncmp(line, key, k) != 0)
		return false;
	for (line += k, len -= k; len > 0 && isspace((unsigned char)*line); len--)
		line++;
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	snprintf(buf, max, "%.*s", (int)len, line);
	return true;
}

/* lldpctl's own: "Interface:    swp1, via: LLDP, ...", "SysName:", "PortID:       ifname swp3" */
static bool take_block(struct switch_lldp *l, struct saying *s, const char *line, size_t len)
{
	char text[160], *space;
	if (value_of(line, len, "Interface:", text, sizeof(text)) && strstr(text, "via:")) {
		said(l, s);
		snprintf(s->port, sizeof(s->port), "%.*s", (int)strcspn(text, ", "), text);
		return true;
	}
	if (value_of(line, len, "PortID:", text, sizeof(text)) &&
		(space = strchr(text, ' ')) != NULL) {
		bool named = strncmp(text, "ifname", 6) == 0 || strncmp(text, "local", 5) == 0;
		snprintf(s->id, sizeof(s->id), "%.79s", named ? space + 1 : "");
	} else if (!value_of(line, len, "SysName:", s->host, sizeof(s->host))) {
		value_of(line, len, "PortDescr:", s->descr, sizeof(s->descr));
	}
	return false;
}

/* lldpctl -f keyvalue: "lldp.swp1.chassis.name=spine01", "lldp.swp1.port.ifname=swp3" */
static bool take_pair(struct switch_lldp *l, struct saying *s, const char *line, size_t len)
{
	static const char *const keys[] = {
		".chassis.name=", ".port.ifname=", ".port.local=", ".port.descr="};
	char text[256];
	if (len < 6 || len >= sizeof(text) || strncmp(line, "lldp.", 5) != 0)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(len - 5), line + 5);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *at = strstr(text, keys[i]);
		size_t n = at ? (size_t)(at - text) : sizeof(s->port);
		if (n >= sizeof(s->port))
			continue;
		if (strncmp(s->port, text, n) != 0 || s->port[n])
			said(l, s);
		snprintf(s->port, sizeof(s->port), "%.*s", (int)n, text);
		snprintf(i == 0   ? s->host
			 : i == 3 ? s->descr
				  : s->id,
			sizeof(s->id), "%.79s", at + strlen(keys[i]));
	}
	return true;
}

/* @return 0; 1: no line is of LLDP's */
static int read_text(const char *text, size_t len, struct switch_lldp *l)
{
	struct columns c = {.n = 0};
	struct saying s = {.port = ""};
	const char *head = text;
	size_t head_len = 0;
	bool table = false, any = false;
	for (const char *line = text, *end = text + len; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((stop ? stop : end) - line);
		struct columns found;
		if (find_columns(head, head_len, line, n, &found)) {
			c = found;
			table = any = true;
		} else if (table) {
			add_row(l, &c, line, n);
		} else {
			any = take_pair(l, &s, line, n) || any;
			any = take_block(l, &s, line, n) || any;
		}
		head = line;
		head_len = n;
		line += n + (stop != NULL);
	}
	said(l, &s);
	return any || memmem(text, len, "LLDP neighbors:", 15) ? 0 : 1;
}

/* ---- a file ---------------------------------------------------------------------------------- */

int switch_lldp_parse(
	const char *text, size_t len, const char *name, struct switch_lldp *l, struct fb_err *e)
{
	struct fb_err ignored = {0};
	size_t blank = strspn(text, " \t\r\n");
	*l = (struct switch_lldp){.n = 0};
	snprintf(l->path, sizeof(l->path), "%.255s", name);
	int rc = 1;
	if (text[blank] != '{' && text[blank] != '[') {
		rc = read_text(text, len, l);
	} else if (memmem(text, len, "\"lldp\"", 6) || memmem(text, len, "\"neighbor\"", 10)) {
		/* What cannot be parsed is refused as the configuration that it may be as well. */
		json_t *root = switch_too_many(text, len)
				       ? NULL
				       : fb_json_parse(text, len, name, &ignored);
		rc = root ? read_json(root, l) : 1;
		json_decref(root);
	}
	if (rc == 0 && l->failed)
		rc = fb_fail(e, FB_EXIT_USAGE, EINVAL, "%s: more than %d ports with neighbours",
			name, SWITCH_MAX_LINKS);
	if (rc != 0)
		switch_lldp_free(l);
	return rc;
}

/* ---- whose they are -------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Does `word`, of n bytes, stand in text between what are no letters or digits? */
static bool holds_word(const char *text, size_t len, const char *word, size_t n)
{
	for (size_t i = 0; n > 0 && i + n <= len; i++)
		if (strncasecmp(text + i, word, n) == 0 &&
			(i == 0 || !isalnum((unsigned char)text[i - 1])) &&
			(i + n == len || !isalnum((unsigned char)text[i + n])))
			return true;
	return false;
}

/* The switch with the longest name that stands in text. @return -1: none, or several */
static int named_in(const char *text, size_t len, const struct switch_facts *sw, int n)
{
	size_t best = 0;
	int owner = -1;
	for (int i = 0; i < n; i++) {
		const char *file = base_of(sw[i].path);
		size_t host = strcspn(sw[i].name, "."), stem = strcspn(file, "."), k = 0;
		if (holds_word(text, len, sw[i].name, host))
			k = host;
		if (stem > k && holds_word(text, len, file, stem))
			k = stem;
		if (k > 0 && k >= best) {
			owner = k == best ? -1 : i;
			best = k;
		}
	}
	return owner;
}

static int only_in_folder(const char *path, const struct switch_facts *sw, int n)
{
	size_t len = (size_t)(base_of(path) - path);
	int owner = -1, found = 0;
	for (int i = 0; i < n; i++) {
		if ((size_t)(base_of(sw[i].path) - sw[i].path) != len ||
			strncmp(sw[i].path, path, len) != 0)
			continue;
		owner = i;
		found++;
	}
	return found == 1 ? owner : -1;
}

int switch_lldp_owner(const struct switch_lldp *l, const struct switch_facts *sw, int n, int before,
	struct fb_err *e)
{
	const char *base = base_of(l->path);
	int owner = named_in(base, strlen(base), sw, n);
	if (base > l->path) {
		const char *dir = base - 1;
		while (dir > l->path && dir[-1] != '/')
			dir--;
		if (owner < 0)
			owner = named_in(dir, (size_t)(base - 1 - dir), sw, n);
	}
	if (owner < 0)
		owner = only_in_folder(l->path, sw, n);
	if (owner < 0 && n == 1)
		owner = 0;
	if (owner < 0)
		owner = before;
	if (owner >= 0)
		return owner;
	if (n == 0)
		fb_fail_usage(e,
			"%s holds neighbours (LLDP), and no switch's configuration is given",
			l->path);
	else
		fb_fail_usage(e,
			"%s holds neighbours (LLDP), and does not say of which of %d switches",
			l->path, n);
	fb_hint(e, "give the switch's configuration too, and name this file after it: "
		   "leaf01.json leaf01-lldp.json");
	return -EINVAL;
}

/* ---- putting them there ---------------------------------------------------------------------- */

/* A file of `nv show qos` alone speaks of every port as "swp*". */
static int a_port_each(const struct switch_lldp *l, struct switch_facts *s, struct fb_err *e)
{
	int n = 0;
	if (s->ports != 1 || strcmp(s->port[0].name, "swp*") != 0)
		return 0;
	struct switch_port *all = calloc((size_t)l->n + 1, sizeof(*all));
	if (!all)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ports", l->n);
	for (int i = 0; i < l->n && n < SWITCH_MAX_PORTS; i++) {
		if (!switch_is_swp(l->link[i].port))
			continue;
		all[n] = s->port[0];
		snprintf(all[n].name, sizeof(all[n].name), "%s", l->link[i].port);
		n++;
	}
	if (n == 0) {
		free(all);
		return 0;
	}
	free(s->port);
	s->port = all;
	s->ports = n;
	return 0;
}

int switch_lldp_apply(const struct switch_lldp *l, struct switch_facts *s, struct fb_err *e)
{
	int taken = 0;
	if (s->lldp[0]) {
		fb_fail_usage(e, "%s and %s are both neighbours (LLDP) of switch %s", s->lldp,
			l->path, s->name);
		fb_hint(e, "name each after its switch: leaf01.json leaf01-lldp.json");
		return -EINVAL;
	}
	int rc = a_port_each(l, s, e);
	for (int i = 0; i < l->n && rc == 0; i++) {
		const struct switch_link *k = &l->link[i];
		struct switch_port *p = switch_named_port(s, k->port);
		if (!p)
			continue;
		snprintf(p->neighbour, sizeof(p->neighbour), "%s", k->host);
		snprintf(p->neighbour_port, sizeof(p->neighbour_port), "%s", k->far_port);
		snprintf(p->neighbour_descr, sizeof(p->neighbour_descr), "%s", k->descr);
		taken++;
	}
	if (rc == 0 && l->n > 0 && taken == 0) {
		fb_fail_usage(e,
			"%s holds neighbours (LLDP) of %d ports (%s%s), and switch %s has none "
			"of them",
			l->path, l->n, l->link[0].port, l->n > 1 ? ", ..." : "", s->name);
		fb_hint(e, "is it of another switch? Name it after its own: leaf01-lldp.json");
		return -EINVAL;
	}
	s->has[SWITCH_NEIGHBOURS] = true;
	snprintf(s->lldp, sizeof(s->lldp), "%s", l->path);
	return rc;
}
