// SPDX-License-Identifier: Apache-2.0
/*
 * The cabling list: which ends the site has joined, and which of them are elsewhere. A cable counts
 * once: as it should be, moved (one end is where it should be), missing, or extra.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

#define MAX_CABLES 1000000

const char fabric_list_help[] =
	"The list of --expect has one cable a line: NODE,PORT,PEER,PORT, with commas, semicolons or\n"
	"tabs. NODE is a GUID (0x...), or a description, or a switch's short name; the port may be left\n"
	"empty. A first line of titles, empty lines, and lines that begin with # are left out:\n"
	"  node,port,peer,peer_port\n"
	"  leaf0,1,node0 mlx5_0,1\n"
	"  leaf0,33,spine0,1\n"
	"Output of ibnetdiscover or iblinkinfo from a good day is taken too. What the list names is not\n"
	"judged by majority.";

/* ---- reading --------------------------------------------------------------------------------- */

struct list_reader {
	struct fabric_reader r;
	const struct fabric *in; /* the fabric in which ends are looked up */
	struct fabric_list *l;
	struct fabric_map names; /* -> node, or -2 - n: n nodes */
};

/* Two keys of a name in one table: as it is, and whatever its case. */
enum { EXACT = 5, FOLDED = 6 };

static uint64_t name_key(const char *s, int how)
{
	char low[FABRIC_LABEL];
	size_t n = 0;
	for (; n < sizeof(low) && s[n]; n++)
		low[n] = (char)(how == FOLDED ? tolower((unsigned char)s[n]) : s[n]);
	return fabric_hash(low, n, (uint64_t)how);
}

/* -2 cannot stand in the map, whose free slots are negative: ambiguous names are node.n + count. */
static int add_name(struct list_reader *x, const char *name, int node)
{
	int32_t nodes = (int32_t)x->in->node.n;
	int rc = 0;
	for (int how = EXACT; *name && how <= FOLDED && rc == 0; how++) {
		int32_t old = fabric_map_get(&x->names, name_key(name, how));
		if (old != node)
			rc = fabric_map_set(&x->names, name_key(name, how),
				old < 0       ? node
				: old < nodes ? nodes + 2
					      : old + 1);
	}
	return rc;
}

static int index_names(struct list_reader *x)
{
	struct fabric shown = *x->in; /* labels as they are, even under --anonymous */
	char label[FABRIC_LABEL];
	int rc = 0;
	shown.anonymous = false;
	for (size_t i = 0; i < x->in->node.n && rc == 0; i++) {
		const char *name = x->in->node.v[i].name;
		fabric_label(&shown, (int)i, label);
		rc = add_name(x, name, (int)i);
		if (rc == 0 && strcmp(name, label) != 0)
			rc = add_name(x, label, (int)i);
	}
	return rc;
}

/* One field: bare or in double quotes, up to the separator. */
static bool field(const char **s, char sep, char *buf, size_t len)
{
	size_t n = 0;
	while (**s == ' ')
		(*s)++;
	if (**s == '"') {
		for ((*s)++; **s && **s != '"'; (*s)++)
			if (n + 1 < len)
				buf[n++] = **s;
		if (**s != '"')
			return false;
		(*s)++;
		while (**s == ' ')
			(*s)++;
	} else {
		for (; **s && **s != sep; (*s)++)
			if (n + 1 < len)
				buf[n++] = **s;
		while (n > 0 && buf[n - 1] == ' ')
			n--;
	}
	buf[n] = '\0';
	if (**s == sep) {
		(*s)++;
		return true;
	}
	return **s == '\0';
}

/* A name is kept only where it is needed: in messages about what is not there. */
static int keep_name(struct list_reader *x, struct fabric_end *e, const char *name)
{
	if (e->node >= 0)
		return 0;
	e->name = strdup(name);
	return e->name ? 0 : fabric_no_memory(&x->r, -ENOMEM);
}

/* "0x0002c90300000001", "S-0002c90300000001", "0002c90300000001" */
static bool is_guid(const char *s, uint64_t *guid)
{
	const char *from = s, *p = s;
	bool plain = p[0] == '0' && p[1] == 'x';
	if (!plain && *p && strchr("SHR", *p) && p[1] == '-')
		from = p = p + 2;
	return fabric_take_hex(&p, guid) && !*p && (plain || p - from == 16);
}

static int32_t find_name(const struct list_reader *x, const char *name)
{
	int32_t at = fabric_map_get(&x->names, name_key(name, EXACT));
	return at >= 0 ? at : fabric_map_get(&x->names, name_key(name, FOLDED));
}

static int find_end(struct list_reader *x, const char *name, const char *port, struct fabric_end *e)
{
	unsigned num = 0;
	uint64_t guid;
	const char *p = port;
	int32_t at = find_name(x, name);
	if (*port && strcmp(port, "*") != 0 &&
		(!fabric_take_number(&p, FABRIC_MAX_PORT, &num) || *p || num == 0))
		return fabric_bad(
			&x->r, "\"%.40s\" is no port number from 1 to %d", port, FABRIC_MAX_PORT);
	e->port = (int16_t)num;
	e->node = -1;
	if (at < 0 && is_guid(name, &guid)) {
		e->node = fabric_map_get(&x->in->by_guid, guid);
		int by_port = e->node < 0 ? fabric_map_get(&x->in->by_port_guid, guid) : -1;
		if (by_port >= 0) {
			e->node = x->in->port.v[by_port].node;
			e->port = (int16_t)x->in->port.v[by_port].num;
		}
		return keep_name(x, e, name);
	}
	if (at >= (int32_t)x->in->node.n) {
		fabric_bad(&x->r, "\"%.80s\" is the description of %d nodes", name,
			at - (int)x->in->node.n);
		fb_hint(x->r.e, "give the GUID (0x...) instead; ibnetdiscover prints it");
		return -EINVAL;
	}
	e->node = at;
	return keep_name(x, e, name);
}

static int list_row(struct list_reader *x, unsigned seen)
{
	char text[4][FABRIC_LABEL], word[32];
	const char *s = x->r.text, *p;
	char sep = strchr(s, '\t') ? '\t' : strchr(s, ';') && !strchr(s, ',') ? ';' : ',';
	unsigned num;
	int n = 0;
	while (n < 4 && (*s || (n > 0 && s[-1] == sep))) {
		if (!field(&s, sep, text[n++], FABRIC_LABEL))
			return fabric_bad(&x->r, "a quote is not closed, or stands inside a field");
	}
	if (n < 4 || *s || !text[0][0] || !text[2][0]) {
		fabric_bad(&x->r, "a cable must be NODE,PORT,PEER,PORT");
		fb_hint(x->r.e, "fabricbench topo fabric --help shows a list");
		return -EINVAL;
	}
	snprintf(word, sizeof(word), "%.31s", text[1]);
	p = text[1];
	if (seen == 0 && *p && strcmp(p, "*") != 0 && !fabric_take_number(&p, 1u << 30, &num))
		return 0; /* titles */
	if (x->l->cable.n >= MAX_CABLES)
		return fabric_bad(&x->r, "more than %d cables are no list", MAX_CABLES);
	struct fabric_cable *c = FABRIC_ADD(x->l->cable);
	if (!c)
		return fabric_no_memory(&x->r, -ENOMEM);
	c->line = x->r.line;
	int rc = find_end(x, text[0], text[1], &c->end[0]);
	return rc == 0 ? find_end(x, text[2], text[3], &c->end[1]) : rc;
}

/* A dump of a good day: nodes by GUID, or by id. */
static int end_of_dump(
	struct list_reader *x, const struct fabric *d, int port, struct fabric_end *e)
{
	const struct fabric_node *n = &d->node.v[d->port.v[port].node];
	char label[FABRIC_LABEL], num[16];
	if (n->by_id) {
		snprintf(num, sizeof(num), "%u", d->port.v[port].num);
		return find_end(x, fabric_label(d, d->port.v[port].node, label), num, e);
	}
	e->port = d->port.v[port].num;
	e->node = fabric_map_get(&x->in->by_guid, n->guid);
	/* A list by -p and a fabric not by it, or the other way, meet in port GUIDs. */
	int at = fabric_map_get(
		&x->in->by_port_guid, d->port.v[port].guid ? d->port.v[port].guid : n->guid);
	if (e->node < 0 && at >= 0)
		e->node = x->in->port.v[at].node;
	return keep_name(x, e, fabric_label(d, d->port.v[port].node, label));
}

typedef int dump_reader(struct fabric *, const char *, size_t, const char *, struct fb_err *);

static int read_dump(struct list_reader *x, const char *text, size_t len, dump_reader *parse)
{
	struct fabric *d = fabric_new();
	int rc = d ? parse(d, text, len, x->r.name, x->r.e) : -ENOMEM;
	if (rc == 0)
		rc = fabric_finish(d, x->r.name, x->r.e);
	for (size_t i = 0; rc == 0 && i < d->link.n; i++) {
		struct fabric_cable *c = FABRIC_ADD(x->l->cable);
		if (!c) {
			rc = -ENOMEM;
			break;
		}
		c->line = d->port.v[d->link.v[i].a].line;
		x->r.line = c->line;
		rc = end_of_dump(x, d, d->link.v[i].a, &c->end[0]);
		if (rc == 0)
			rc = end_of_dump(x, d, d->link.v[i].b, &c->end[1]);
	}
	fabric_free(d);
	return rc == -ENOMEM ? fabric_no_memory(&x->r, rc) : rc;
}

/* Which reader takes the file that begins so; NULL: it is a list. */
static dump_reader *dump_of(const char *s)
{
	static const char *const heads[] = {
		"vendid=", "Switch\t", "Switch ", "Ca\t", "Ca ", "Hca ", "Hca\t", "CA ", "SW "};
	static const char *const info[] = {"Switch: ", "Switch 0x", "CA: ", "Router: "};
	for (size_t i = 0; i < sizeof(info) / sizeof(info[0]); i++)
		if (strncmp(s, info[i], strlen(info[i])) == 0 && s[strlen(s) - 1] == ':')
			return fabric_parse_linkinfo;
	if (strstr(s, " ==("))
		return fabric_parse_linkinfo;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (strncmp(s, heads[i], strlen(heads[i])) == 0)
			return strchr(s, ',') ? NULL : fabric_parse_discover;
	return NULL;
}

int fabric_list_parse(const struct fabric *f, const char *text, size_t len, const char *name,
	struct fabric_list *l, struct fb_err *e)
{
	struct list_reader x = {
		.r = {.name = name, .at = text, .end = text + len, .e = e}, .in = f, .l = l};
	unsigned seen = 0;
	int rc = index_names(&x);
	if (rc < 0)
		rc = fabric_no_memory(&x.r, rc);
	l->name = name;
	while (rc == 0) {
		rc = fabric_line(&x.r);
		if (rc <= 0)
			break;
		const char *s = x.r.text;
		fabric_take_space(&s);
		rc = 0;
		if (!*s || *s == '#')
			continue;
		dump_reader *parse = seen == 0 ? dump_of(s) : NULL;
		if (parse) {
			rc = read_dump(&x, text, len, parse);
			break;
		}
		rc = list_row(&x, seen++);
	}
	fabric_map_free(&x.names);
	if (rc == 0 && l->cable.n == 0) {
		x.r.line = x.r.line ? x.r.line : 1;
		rc = fabric_bad(&x.r, "no cable in the list");
		fb_hint(e, "one a line: NODE,PORT,PEER,PORT");
	}
	return rc;
}

void fabric_list_free(struct fabric_list *l)
{
	for (size_t i = 0; i < l->cable.n; i++)
		for (int e = 0; e < 2; e++)
			free(l->cable.v[i].end[e].name);
	free(l->cable.v);
	memset(l, 0, sizeof(*l));
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Which port an end is; where the list leaves that open, any of the node that is joined to `to` and
 * not yet counted. */
static int port_of(const struct fabric *f, const struct fabric_end *e, int to, const bool *counted)
{
	if (e->node < 0)
		return -1;
	if (e->port > 0)
		return fabric_find_number(f, e->node, (unsigned)e->port);
	int any = -1;
	FABRIC_PORTS (f, e->node, p) {
		int peer = f->port.v[p].peer;
		if (peer < 0 || counted[p])
			continue;
		if (f->port.v[peer].node == to)
			return p;
		any = f->node.v[e->node].kind == FABRIC_CA ? p : any;
	}
	return any;
}

static bool same_end(const struct fabric *f, const struct fabric_end *e, int port)
{
	return port >= 0 && e->node == f->port.v[port].node &&
	       (e->port == 0 || e->port == f->port.v[port].num);
}

static void end_label(const struct fabric_judge *j, const struct fabric_end *e, char *buf)
{
	char name[FABRIC_LABEL];
	if (e->node >= 0)
		fabric_label(j->f, e->node, name);
	else
		snprintf(name, sizeof(name), "%s", j->f->anonymous ? "a node" : e->name);
	bool ca = e->node >= 0 && j->f->node.v[e->node].kind == FABRIC_CA &&
		  j->f->node.v[e->node].ports == 1;
	if (e->port && !ca)
		snprintf(buf, FABRIC_LABEL, "%.110s port %d", name, e->port);
	else
		snprintf(buf, FABRIC_LABEL, "%s", name);
}

/* The end that is the HCA's, or the one that is joined at all: of it is told where it is. */
static int told_end(const struct fabric *f, const struct fabric_cable *c, const int *port)
{
	for (int i = 0; i < 2; i++)
		if (port[i] >= 0 && f->port.v[port[i]].peer >= 0 && c->end[i].node >= 0 &&
			f->node.v[c->end[i].node].kind == FABRIC_CA)
			return i;
	for (int i = 0; i < 2; i++)
		if (port[i] >= 0 && f->port.v[port[i]].peer >= 0)
			return i;
	return -1;
}

static void tell(
	struct fabric_judge *j, const struct fabric_cable *c, const int *port, bool *counted)
{
	const struct fabric *f = j->f;
	char at[FABRIC_LABEL], want[FABRIC_LABEL], a[FABRIC_LABEL], b[FABRIC_LABEL];
	struct fb_finding o;
	int i = told_end(f, c, port);
	end_label(j, &c->end[0], a);
	end_label(j, &c->end[1], b);
	if (i < 0) {
		bool absent = c->end[0].node < 0 || c->end[1].node < 0;
		fabric_start(j, FAB_EXPECT, &o, "%.76s - %.76s", a, b);
		fb_find(&o, FB_CHECK_FAIL,
			absent ? "missing: %.120s is not in this fabric"
			       : "missing: no cable at either end",
			c->end[0].node < 0 ? a : b);
		fb_find_expected(&o, j->rules->list->name, "line %u: a cable", c->line);
		fb_find_remedy(&o, NULL, "look at both ends: is the device up, is the cable in?");
		fabric_keep(j, FAB_EXPECT, &o);
		return;
	}
	int peer = f->port.v[port[i]].peer;
	counted[port[i]] = counted[peer] = true;
	end_label(j, &c->end[1 - i], want);
	fabric_start(j, FAB_EXPECT, &o, "%s", i ? b : a);
	fb_find(&o, FB_CHECK_FAIL, "mis-cabled: %.110s is on %.110s", i ? b : a,
		fabric_port_label(f, peer, at));
	fb_find_expected(&o, j->rules->list->name, "line %u: %.120s", c->line, want);
	fb_find_remedy(&o, "the link goes down", "move the cable from %.120s to %.120s", at, want);
	fabric_keep(j, FAB_EXPECT, &o);
}

/* First what is as listed, so that an open port takes no other line's cable. */
static size_t match(struct fabric_judge *j, bool exact, bool *done, bool *counted)
{
	const struct fabric *f = j->f;
	const struct fabric_list *l = j->rules->list;
	size_t right = 0;
	for (size_t i = 0; i < l->cable.n; i++) {
		const struct fabric_cable *c = &l->cable.v[i];
		if (done[i] || exact != (c->end[0].port && c->end[1].port))
			continue;
		int first = c->end[0].port || !c->end[1].port ? 0 : 1;
		int p = port_of(f, &c->end[first], c->end[1 - first].node, counted);
		int peer = p < 0 ? -1 : f->port.v[p].peer;
		if (!same_end(f, &c->end[1 - first], peer) || counted[p])
			continue;
		done[i] = counted[p] = counted[peer] = true;
		right++;
	}
	return right;
}

static void mark_listed(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	const struct fabric_list *l = j->rules->list;
	for (size_t i = 0; i < l->cable.n; i++)
		for (int e = 0; e < 2; e++) {
			const struct fabric_end *end = &l->cable.v[i].end[e];
			if (end->node < 0)
				continue;
			FABRIC_PORTS (f, end->node, p)
				if (!end->port || end->port == f->port.v[p].num)
					j->listed[p] = true;
		}
}

/* A switch's own aggregation node is no cable. */
static bool is_extra(const struct fabric *f, const struct fabric_link *l, const bool *counted)
{
	return !counted[l->a] && !counted[l->b] && !f->node.v[f->port.v[l->b].node].aggregation;
}

/* Cables that are in no line. A list that leaves out more than it names is of a part of the fabric,
 * and says nothing of the rest. @return how many */
static size_t tell_extra(struct fabric_judge *j, const bool *counted)
{
	const struct fabric *f = j->f;
	const struct fabric_list *l = j->rules->list;
	struct fb_finding o;
	char a[FABRIC_LABEL], b[FABRIC_LABEL];
	size_t more = 0;
	for (size_t i = 0; i < f->link.n; i++)
		more += is_extra(f, &f->link.v[i], counted);
	if (more > l->cable.n) {
		fabric_sum(j, FAB_EXPECT, FB_CHECK_INFO,
			"the list has %zu cable%s; the other %zu of this fabric are not judged by it",
			l->cable.n, l->cable.n == 1 ? "" : "s", more);
		return more;
	}
	for (size_t i = 0; i < f->link.n; i++) {
		const struct fabric_link *k = &f->link.v[i];
		if (!is_extra(f, k, counted))
			continue;
		fabric_start(j, FAB_EXPECT, &o, "%.76s - %.76s", fabric_port_label(f, k->a, a),
			fabric_port_label(f, k->b, b));
		fb_find(&o, FB_CHECK_WARN, "extra: this cable is not in the list");
		fb_find_expected(&o, l->name, "no cable here");
		fabric_keep(j, FAB_EXPECT, &o);
	}
	return more;
}

static void judge_cables(struct fabric_judge *j, bool *done, bool *counted)
{
	const struct fabric *f = j->f;
	const struct fabric_list *l = j->rules->list;
	size_t right = match(j, true, done, counted);
	right += match(j, false, done, counted);
	for (size_t i = 0; i < l->cable.n; i++) {
		const struct fabric_cable *c = &l->cable.v[i];
		if (done[i])
			continue;
		int port[2] = {port_of(f, &c->end[0], c->end[1].node, counted),
			port_of(f, &c->end[1], c->end[0].node, counted)};
		/* An end whose cable is right elsewhere in the list says nothing of this one. */
		for (int e = 0; e < 2; e++)
			if (port[e] >= 0 && counted[port[e]])
				port[e] = -1;
		tell(j, c, port, counted);
	}
	size_t more = tell_extra(j, counted);
	if (!j->bad[FAB_EXPECT])
		fabric_sum(j, FAB_EXPECT, FB_CHECK_PASS, "all %zu cables of the list%s", right,
			more ? "" : ", and no other");
}

void fabric_judge_list(struct fabric_judge *j)
{
	const struct fabric_list *l = j->rules->list;
	if (!l) {
		fabric_sum(j, FAB_EXPECT, FB_CHECK_SKIP, "no cabling list: --expect FILE");
		return;
	}
	bool *done = calloc(l->cable.n + 1, sizeof(*done));
	bool *counted = calloc(j->f->port.n + 1, sizeof(*counted));
	j->failed = !done || !counted;
	if (!j->failed) {
		mark_listed(j);
		judge_cables(j, done, counted);
	}
	free(done);
	free(counted);
}
