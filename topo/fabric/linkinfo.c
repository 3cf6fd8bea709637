// SPDX-License-Identifier: Apache-2.0
/*
 * iblinkinfo's output (infiniband-diags iblinkinfo.c). With -l each line names both ends by GUID:
 *   0xGUID "name" LID PORT[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  0xGUID LID PORT[  ] "name"
 * ( ) Without it a line says only the LID of the other end, which is looked up at the end of the
 * file; with --switches-only or --cas-only no line has it, and the LID is all that is known of that
 * end. Speeds are a lane's. "Could be" is the best that both ends support, told only where it is
 * more. A line does not say whether its node is a switch: one with two ports is, and one that is
 * joined to none such is not.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* An end that is known by its LID alone. */
struct pending {
	int port;
	unsigned lid, num;
	uint32_t line;
	const char *name; /* of the other end, in the file's text */
	size_t len;
};
struct info {
	struct fabric_reader r;
	FABRIC_TAB(struct pending, pending);
	int node; /* of the header, without -l */
	enum fabric_kind kind;
	char header[FABRIC_NAME]; /* name in a CA's header, whose GUID stands in its lines */
	unsigned seen;
	bool switches, cas; /* there are headers of such */
};

/* "53.125", a lane's Gb/s */
static double decimal(const char *s)
{
	char *end;
	double v = strtod(s, &end);
	return end > s && v > 0 && v < 1e6 ? v : 0;
}

/* A width such as "4X", a speed such as "53.125 Gbps", either as "undefined (16)". @return what s
 * began with: 'w', 's', 0 */
static char take_value(const char **s, unsigned *width, unsigned *speed)
{
	unsigned code;
	const char *p = *s;
	if (fabric_take(&p, "undefined (") && fabric_take_number(&p, 0xff, &code)) {
		*width = FABRIC_BAD_WIDTH;
		*speed = FABRIC_CODE | code;
		fabric_take(&p, ")");
		*s = p;
		return 'u';
	}
	if (fabric_take_number(&p, 99, width) && (*p == 'X' || *p == 'x')) {
		*s = p + 1;
		return 'w';
	}
	if (!isdigit((unsigned char)**s))
		return 0;
	*speed = fabric_speed_of_gbps(decimal(*s));
	p = *s + strcspn(*s, " ");
	fabric_take_space(&p);
	if (!fabric_take(&p, "Gbps"))
		return 0;
	*s = p;
	if (fabric_take(s, " (FDR10)"))
		*speed = FABRIC_FDR10;
	return 's';
}

static unsigned state_of(const char *s)
{
	static const char *const names[] = {
		[FABRIC_DOWN] = "Down",
		[FABRIC_INIT] = "Init",
		[FABRIC_ARMED] = "Armed",
		[FABRIC_ACTIVE] = "Active",
	};
	for (unsigned i = FABRIC_DOWN; i <= FABRIC_ACTIVE; i++)
		if (strncmp(s, names[i], strlen(names[i])) == 0)
			return i;
	return FABRIC_NO_STATE;
}

/* "( 4X  53.125 Gbps Active/  LinkUp)" from behind the bracket to `end` */
static bool take_link(const char *s, const char *end, struct fabric_port *p)
{
	unsigned width = 0, speed = 0;
	fabric_take_space(&s);
	char first = take_value(&s, &width, &speed);
	if (first == 'w' || first == 'u') {
		p->width = (uint8_t)width;
		speed = 0;
		fabric_take_space(&s);
		take_value(&s, &width, &speed);
	}
	p->speed = (uint16_t)speed;
	fabric_take_space(&s);
	p->state = (uint8_t)state_of(s);
	return s < end && p->state != FABRIC_NO_STATE;
}

/* "(Could be 12X Could be 53.125 Gbps)" */
static void take_could(const char *s, struct fabric_port *p)
{
	unsigned width = p->width, speed = p->speed;
	for (s = strstr(s, "Could be "); s; s = strstr(s, "Could be ")) {
		unsigned w = 0, v = 0;
		s += 9;
		char what = take_value(&s, &w, &v);
		if (what == 'w')
			width = w;
		else if (what == 's')
			speed = v;
	}
	p->max_width = (uint8_t)width;
	p->max_speed = (uint16_t)speed;
}

static int place(struct info *in, uint64_t guid, unsigned num)
{
	struct fabric *f = in->r.f;
	int port = fabric_find_port(f, guid, num);
	/* A CA's GUID here is the port's: with another number it is another port's. */
	if (port >= 0 && f->port.v[port].num == num)
		return port;
	int node = fabric_node_by_guid(f, guid, FABRIC_UNKNOWN);
	port = node < 0 ? node : fabric_port_of(f, node, num);
	if (port >= 0)
		f->node.v[node].defined = true;
	return port;
}

/* LID PORT[ext] */
static bool take_place(const char **s, unsigned *lid, unsigned *num)
{
	fabric_take_space(s);
	if (!fabric_take_number(s, 0xffff, lid))
		return false;
	fabric_take_space(s);
	if (!fabric_take_number(s, FABRIC_MAX_PORT, num) || **s != '[')
		return false;
	const char *close = strchr(*s, ']');
	if (!close)
		return false;
	*s = close + 1;
	return true;
}

/* What both ends can is told in the lines of either. */
static void share_maxima(struct fabric *f, int port, int peer)
{
	const struct fabric_port *p = &f->port.v[port];
	struct fabric_port *q = &f->port.v[peer];
	q->max_width = q->max_width ? q->max_width : p->max_width;
	q->max_speed = q->max_speed ? q->max_speed : p->max_speed;
}

static void set_lid(struct fabric *f, int port, unsigned lid)
{
	f->port.v[port].lid = (uint16_t)lid;
	if (f->node.v[f->port.v[port].node].kind == FABRIC_SWITCH)
		f->node.v[f->port.v[port].node].lid = (uint16_t)lid;
}

/* Behind "==>": nothing joined, or the other end. */
static int remote(struct info *in, int port, const char *s)
{
	struct fabric *f = in->r.f;
	uint64_t guid = 0;
	unsigned lid, num;
	fabric_take_space(&s);
	if (*s == '[' || *s == '"')
		return 0;
	bool by_guid = s[0] == '0' && s[1] == 'x';
	if (by_guid && !fabric_take_hex(&s, &guid))
		return fabric_bad(&in->r, "a GUID of more than 16 digits");
	if (!take_place(&s, &lid, &num))
		return fabric_bad(&in->r, "the other end must be [0xGUID] LID PORT[ ] \"NAME\"%s",
			in->r.cut ? ": the file is cut off here" : "");
	fabric_take_space(&s);
	const char *close = strrchr(s, '"'), *could = close ? strchr(close, '(') : NULL;
	if (*s != '"' || close == s || !could)
		return fabric_bad(&in->r, "the other end has no \"NAME\" ( )%s",
			in->r.cut ? ": the file is cut off here" : "");
	if (!strchr(could, ')'))
		return fabric_bad(&in->r, "a bracket is not closed%s",
			in->r.cut ? ": the file is cut off here" : "");
	take_could(could, &f->port.v[port]);
	if (!by_guid) {
		struct pending *p = FABRIC_ADD(in->pending);
		if (!p)
			return fabric_no_memory(&in->r, -ENOMEM);
		/* The line's text is a copy; what is kept stands in the file's own. */
		*p = (struct pending){.port = port,
			.lid = lid,
			.num = num,
			.line = in->r.line,
			.name = in->r.from ? in->r.from + (s + 1 - in->r.text) : NULL,
			.len = in->r.from ? (size_t)(close - s - 1) : 0};
		return 0;
	}
	int peer = place(in, guid, num);
	if (peer < 0)
		return fabric_no_memory(&in->r, peer);
	set_lid(f, peer, lid);
	share_maxima(f, port, peer);
	struct fabric_node *n = &f->node.v[f->port.v[peer].node];
	if (!n->name[0])
		fabric_set_name(f, f->port.v[peer].node, s + 1, (size_t)(close - s - 1));
	return fabric_join(f, port, peer, in->r.line) < 0 ? fabric_no_memory(&in->r, -ENOMEM) : 0;
}

/* What a header begins with; older versions have no colon there. */
static bool take_kind(struct info *in, const char **s)
{
	static const struct {
		const char *word;
		enum fabric_kind kind;
	} words[] = {{"Switch", FABRIC_SWITCH}, {"CA", FABRIC_CA}, {"Router", FABRIC_ROUTER}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *p = *s;
		if (!fabric_take(&p, words[i].word))
			continue;
		fabric_take(&p, ":");
		if (*p != ' ')
			continue;
		fabric_take_space(&p);
		in->kind = words[i].kind;
		in->switches = in->switches || in->kind == FABRIC_SWITCH;
		in->cas = in->cas || in->kind == FABRIC_CA;
		*s = p;
		return true;
	}
	return false;
}

/* "CA: node3 mlx5_0:", "Switch: 0x0000000000200001 leaf1:" */
static int header(struct info *in)
{
	const char *s = in->r.text;
	uint64_t guid;
	fabric_take_space(&s);
	if (strstr(s, "==(") || !take_kind(in, &s))
		return 0;
	size_t n = strlen(in->r.text);
	if (in->r.text[n - 1] != ':')
		return fabric_bad(&in->r, "a header must end in a colon%s",
			in->r.cut ? ": the file is cut off here" : "");
	n = n > (size_t)(s - in->r.text) ? n - (size_t)(s - in->r.text) - 1 : 0;
	in->node = -1;
	snprintf(in->header, sizeof(in->header), "%.*s",
		(int)(n < FABRIC_NAME ? n : FABRIC_NAME - 1), s);
	if (in->kind != FABRIC_SWITCH)
		return 1;
	const char *from = s;
	if (!fabric_take_hex(&s, &guid))
		return fabric_bad(&in->r, "a switch without its GUID");
	fabric_take_space(&s);
	in->node = fabric_node_by_guid(in->r.f, guid, FABRIC_SWITCH);
	if (in->node < 0)
		return fabric_no_memory(&in->r, in->node);
	in->r.f->node.v[in->node].defined = true;
	if (s < from + n) {
		n -= (size_t)(s - from);
		/* Older versions have the name in quotes. */
		if (n > 2 && s[0] == '"' && s[n - 1] == '"') {
			s++;
			n -= 2;
		}
		fabric_set_name(in->r.f, in->node, s, n);
	}
	return 1;
}

/* The beginning of a line, up to "==(": which port it is about. @return it, or an error */
static int local(struct info *in, const char *s, const char *link)
{
	struct fabric *f = in->r.f;
	uint64_t guid = 0;
	unsigned lid, num;
	const char *open = NULL, *close = NULL, *p = s;
	int port;
	bool by_guid = s[0] == '0' && s[1] == 'x' && fabric_take_hex(&p, &guid);
	fabric_take_space(&p);
	if (by_guid && *p == '"') {
		open = p + 1;
		for (close = link; close > open && *close != '"'; close--)
			;
		if (close == open)
			return fabric_bad(&in->r, "a name's quotes are not closed");
		p = close + 1;
	}
	if (!take_place(&p, &lid, &num) || p > link)
		return fabric_bad(&in->r, "a line must begin with 0xGUID \"NAME\" LID PORT[ ]");
	if (by_guid) {
		port = place(in, guid, num);
	} else if (in->node >= 0) {
		port = fabric_port_of(f, in->node, num);
	} else {
		fabric_bad(&in->r, "a port before any CA: or Switch: line");
		fabric_hint_kind(&in->r);
		return -EINVAL;
	}
	if (port < 0)
		return fabric_no_memory(&in->r, port);
	int node = f->port.v[port].node;
	if (open)
		fabric_set_name(f, node, open, (size_t)(close - open));
	else if (by_guid && in->header[0])
		fabric_set_name(f, node, in->header, strlen(in->header));
	if (!open && f->node.v[node].kind == FABRIC_UNKNOWN)
		f->node.v[node].kind = (uint8_t)in->kind;
	set_lid(f, port, lid);
	return port;
}

static int row(struct info *in)
{
	const char *s = in->r.text;
	int rc = header(in);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	fabric_take_space(&s);
	if (!*s || *s == '#')
		return 0;
	const char *link = strstr(s, "==("), *arrow = link ? strstr(link, ")==>") : NULL;
	if (!arrow) {
		fabric_bad(&in->r,
			"no line of iblinkinfo -l: 0xGUID \"NAME\" LID PORT[ ] ==(...)==>%s",
			in->r.cut && in->seen ? ": the file is cut off here" : "");
		fabric_hint_kind(&in->r);
		return -EINVAL;
	}
	in->seen++;
	int port = local(in, s, link);
	if (port < 0)
		return port;
	if (!take_link(link + 3, arrow, &in->r.f->port.v[port]))
		return fabric_bad(
			&in->r, "a port's state must be Down, Initialize, Armed or Active");
	return remote(in, port, arrow + 4);
}

/* An end that has no line of its own is a node that is known by its LID; of an HCA each port has
 * one. What it is, its name tells, then its port, then what this end is. @return its port */
static int by_lid(struct info *in, const struct pending *p)
{
	struct fabric *f = in->r.f;
	char id[16], host[FABRIC_NAME], hca[40];
	int node = fabric_node_by_id(
		f, id, (size_t)snprintf(id, sizeof(id), "lid %u", p->lid), FABRIC_UNKNOWN);
	int port = node < 0 ? node : fabric_port_of(f, node, p->num);
	if (port < 0)
		return port;
	struct fabric_node *n = &f->node.v[node];
	bool from_switch = f->node.v[f->port.v[p->port].node].kind == FABRIC_SWITCH;
	if (p->len)
		fabric_set_name(f, node, p->name, p->len);
	n->lid = (uint16_t)p->lid;
	f->port.v[port].lid = (uint16_t)p->lid;
	if (n->kind == FABRIC_UNKNOWN)
		n->kind = fabric_split_name(n->name, host, hca, sizeof(hca)) ? FABRIC_CA
			  : !from_switch || p->num > 4 || in->cas            ? FABRIC_SWITCH
									     : FABRIC_CA;
	f->unresolved += in->cas && in->switches;
	return port;
}

/* Ends told by LID: a switch's own, or an HCA port's. */
static int resolve(struct info *in)
{
	struct fabric *f = in->r.f;
	struct fabric_map lids = {0};
	int rc = 0;
	for (size_t i = 0; i < f->port.n && rc == 0; i++) {
		const struct fabric_port *p = &f->port.v[i];
		bool sw = f->node.v[p->node].kind == FABRIC_SWITCH;
		unsigned lid = sw ? f->node.v[p->node].lid : p->lid;
		rc = fabric_map_set(&lids, (uint64_t)lid << 8 | p->num, (int32_t)i);
	}
	for (size_t i = 0; i < in->pending.n && rc == 0; i++) {
		const struct pending *p = &in->pending.v[i];
		int peer = fabric_map_get(&lids, (uint64_t)p->lid << 8 | p->num);
		if (peer < 0)
			peer = by_lid(in, p);
		if (peer < 0) {
			rc = peer;
			break;
		}
		share_maxima(f, p->port, peer);
		rc = fabric_join(f, p->port, peer, p->line);
	}
	fabric_map_free(&lids);
	return rc < 0 ? fabric_no_memory(&in->r, rc) : 0;
}

/* What has two ports is a switch, and what is joined to a switch and has one is not. */
static void guess_kinds(struct fabric *f)
{
	for (size_t i = 0; i < f->node.n; i++) {
		struct fabric_node *n = &f->node.v[i];
		char host[FABRIC_NAME], hca[40];
		if (n->kind != FABRIC_UNKNOWN)
			continue;
		if (n->first >= 0 && f->port.v[n->first].next >= 0)
			n->kind = FABRIC_SWITCH;
		else if (fabric_split_name(n->name, host, hca, sizeof(hca)))
			n->kind = FABRIC_CA;
	}
	for (size_t i = 0; i < f->node.n; i++) {
		struct fabric_node *n = &f->node.v[i];
		if (n->kind != FABRIC_UNKNOWN || n->first < 0)
			continue;
		int peer = f->port.v[n->first].peer;
		bool to_ca = peer >= 0 && f->node.v[f->port.v[peer].node].kind == FABRIC_CA;
		n->kind = to_ca ? FABRIC_SWITCH : FABRIC_CA;
	}
	for (size_t i = 0; i < f->port.n; i++) {
		const struct fabric_port *p = &f->port.v[i];
		struct fabric_node *n = &f->node.v[p->node];
		if (n->kind == FABRIC_SWITCH && !n->lid)
			n->lid = p->lid;
	}
}

/* The GUID of a CA's line is its port's. */
static int name_ports(struct fabric *f)
{
	int rc = 0;
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		const struct fabric_node *n = &f->node.v[i];
		if (n->kind == FABRIC_CA && n->first >= 0 && f->port.v[n->first].guid == 0 &&
			!n->ids)
			rc = fabric_set_port_guid(f, n->first, n->guid);
	}
	return rc;
}

int fabric_parse_linkinfo(
	struct fabric *f, const char *text, size_t len, const char *name, struct fb_err *e)
{
	struct info in = {
		.r = {.f = f, .name = name, .at = text, .end = text + len, .e = e}, .node = -1};
	int rc;
	f->port_nodes = f->node.n == 0;
	while ((rc = fabric_line(&in.r)) > 0) {
		rc = row(&in);
		if (rc < 0)
			break;
	}
	if (rc == 0) {
		guess_kinds(f);
		rc = resolve(&in);
	}
	if (rc == 0 && name_ports(f) < 0)
		rc = fabric_no_memory(&in.r, -ENOMEM);
	free(in.pending.v);
	f->states = true;
	f->maxima = true;
	snprintf(f->source + strlen(f->source), sizeof(f->source) - strlen(f->source),
		"%siblinkinfo", f->source[0] ? ", " : "");
	return rc < 0 ? rc : 0;
}
