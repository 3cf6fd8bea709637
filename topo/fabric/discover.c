// SPDX-License-Identifier: Apache-2.0
/*
 * ibnetdiscover's output: blocks of a header and one line for each joined port (plain, -g, -f),
 * which is also what ibsim takes as a net; -p is in ports.c. Formats: infiniband-diags
 * ibnetdiscover.c, ibsim's net-examples.
 *
 * The width and speed of a line are those of the port at its beginning.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* What precedes a header and belongs to it. */
struct ids {
	uint32_t vendor, device;
	uint64_t sys;
	bool told;
};
struct block {
	struct fabric_reader r;
	struct ids ids;
	int node;      /* of the block at hand, -1 */
	int rows;      /* its port lines */
	bool old;      /* without port GUIDs, as before infiniband-diags 1.3: nor are rates told */
	unsigned seen; /* lines that are no comment */
};

/* "S-0002c90300000001" or, in ibsim, any text. */
static int node_of(struct block *b, const char *id, size_t len, enum fabric_kind kind)
{
	const char *hex = id + 2;
	uint64_t guid;
	bool dash = (len == 18 || (len == 20 && id[2] == '0' && id[3] == 'x')) && id[1] == '-' &&
		    strchr("SHR?", id[0]);
	if (dash && fabric_take_hex(&hex, &guid) && hex == id + len)
		return fabric_node_by_guid(b->r.f, guid,
			id[0] == 'S'   ? FABRIC_SWITCH
			: id[0] == 'H' ? FABRIC_CA
			: id[0] == 'R' ? FABRIC_ROUTER
				       : kind);
	return fabric_node_by_id(b->r.f, id, len, kind);
}

static void end_block(struct block *b)
{
	if (b->node >= 0 && b->rows == 0 && b->r.f->node.v[b->node].kind == FABRIC_CA)
		b->r.f->bare++;
	b->node = -1;
	b->rows = 0;
}

static int attribute(struct block *b)
{
	static const char *const guids[] = {"switchguid=", "caguid=", "rtguid=", "???guid="};
	const char *s = b->r.text;
	uint64_t v;
	if (fabric_take(&s, "vendid=")) {
		end_block(b);
		b->ids = (struct ids){0};
		if (!fabric_take_hex(&s, &v) || v > UINT32_MAX)
			return fabric_bad(&b->r, "vendid= without a number");
		b->ids.vendor = (uint32_t)v;
		return 1;
	}
	if (fabric_take(&s, "devid=")) {
		if (!fabric_take_hex(&s, &v) || v > UINT32_MAX)
			return fabric_bad(&b->r, "devid= without a number");
		b->ids.device = (uint32_t)v;
		b->ids.told = true;
		return 1;
	}
	if (fabric_take(&s, "sysimgguid=")) {
		if (!fabric_take_hex(&s, &b->ids.sys))
			return fabric_bad(&b->r, "sysimgguid= without a GUID");
		return 1;
	}
	for (size_t i = 0; i < sizeof(guids) / sizeof(guids[0]); i++) {
		if (!fabric_take(&s, guids[i]))
			continue;
		if (!fabric_take_hex(&s, &v))
			return fabric_bad(&b->r, "%s without a GUID", guids[i]);
		b->old = b->old || (i == 0 && *s != '(');
		return 1;
	}
	return 0;
}

/* What follows '#' in a header: "name" [base|enhanced port 0 lid N lmc M] */
static void header_comment(struct fabric *f, int node, const char *s)
{
	const char *open = strchr(s, '"'), *close = strrchr(s, '"'), *lid;
	unsigned v;
	if (open && close > open)
		fabric_set_name(f, node, open + 1, (size_t)(close - open - 1));
	lid = close ? strstr(close, " lid ") : NULL;
	if (!lid)
		return;
	lid += 5;
	if (fabric_take_number(&lid, 0xffff, &v))
		f->node.v[node].lid = (uint16_t)v;
}

static int header(struct block *b)
{
	static const struct {
		const char *word;
		enum fabric_kind kind;
	} kinds[] = {{"Switch", FABRIC_SWITCH}, {"Ca", FABRIC_CA}, {"Hca", FABRIC_CA},
		{"Rt", FABRIC_ROUTER}};
	const char *s = b->r.text, *id;
	enum fabric_kind kind = FABRIC_UNKNOWN;
	unsigned ports;
	size_t len;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && kind == FABRIC_UNKNOWN; i++) {
		const char *p = s;
		if (fabric_take(&p, kinds[i].word) && (*p == ' ' || *p == '\t')) {
			kind = kinds[i].kind;
			s = p;
		}
	}
	if (kind == FABRIC_UNKNOWN)
		return 0;
	end_block(b);
	fabric_take_space(&s);
	if (*s == ':') {
		fabric_bad(&b->r, "a list of nodes tells no cables");
		fb_hint(b->r.e,
			"this is the output of ibnetdiscover -l, ibhosts or ibswitches: run ibnetdiscover "
			"without -l");
		return -EINVAL;
	}
	if (!fabric_take_number(&s, 255, &ports))
		return fabric_bad(&b->r, "a header without a number of ports up to 255");
	fabric_take_space(&s);
	if (!fabric_take_quoted(&s, &id, &len) || len == 0 || len >= FABRIC_NAME)
		return fabric_bad(&b->r, "a header without a node id in quotes");
	int node = node_of(b, id, len, kind);
	if (node < 0)
		return fabric_no_memory(&b->r, node);
	struct fabric_node *n = &b->r.f->node.v[node];
	if (n->defined && fabric_conflict(b->r.f, -1, node, -1, b->r.line) < 0)
		return fabric_no_memory(&b->r, -ENOMEM);
	n->defined = true;
	n->line = b->r.line;
	n->ports = (uint16_t)ports;
	n->vendor = b->ids.vendor;
	n->device = b->ids.device;
	n->ids = b->ids.told;
	n->sys_guid = b->ids.sys;
	b->ids = (struct ids){0};
	b->node = node;
	s = strchr(s, '#');
	if (s)
		header_comment(b->r.f, node, s + 1);
	return 1;
}

/* "[17]" and perhaps "[ext 3]" */
static bool take_port(const char **s, unsigned *num)
{
	unsigned ext;
	const char *p = *s;
	if (!fabric_take(&p, "[") || !fabric_take_number(&p, FABRIC_MAX_PORT, num) ||
		!fabric_take(&p, "]"))
		return false;
	const char *q = p;
	if (fabric_take(&q, "[ext ") && fabric_take_number(&q, 0xffff, &ext) &&
		fabric_take(&q, "]"))
		p = q;
	*s = p;
	return true;
}

static bool take_guid(const char **s, uint64_t *guid)
{
	const char *p = *s;
	*guid = 0;
	fabric_take_space(&p);
	if (!fabric_take(&p, "(") || !fabric_take_hex(&p, guid) || !fabric_take(&p, ")"))
		return false;
	*s = p;
	return true;
}

/* "4xHDR", "4x???", "??HDR", then perhaps s= w= v= e= with PortInfo's codes. @return false: cut */
static bool take_rate(const char **s, struct fabric_port *p)
{
	unsigned v, codes[2] = {0, 0};
	const char *t = *s, *label;
	if (!fabric_take(&t, "??")) {
		if (!fabric_take_number(&t, 99, &v) || !fabric_take(&t, "x"))
			return false;
		p->width = (uint8_t)v;
	} else {
		p->width = FABRIC_BAD_WIDTH;
	}
	label = t;
	while (*t && !isspace((unsigned char)*t))
		t++;
	if (t == label)
		return false;
	p->speed = (uint16_t)fabric_speed_of(label, (size_t)(t - label));
	bool named = p->speed != FABRIC_NO_SPEED, unknown = strncmp(label, "???", 3) == 0;
	for (fabric_take_space(&t); *t && t[1] == '='; fabric_take_space(&t)) {
		char key = *t;
		t += 2;
		if (!fabric_take_number(&t, 0xffff, &v))
			return false;
		if (key == 's' || key == 'e')
			codes[key == 'e'] = v;
		else if (key == 'w' && p->width == FABRIC_BAD_WIDTH)
			p->width = (uint8_t)fabric_width_of_code(v);
	}
	if (!named)
		p->speed = (uint16_t)fabric_speed_of_codes(codes[0], codes[1], false);
	*s = t;
	return named || unknown;
}

/* [lid N lmc M] "name" lid N 4xHDR ...: local and remote LID, the other end's name, our rate. */
static int port_comment(struct block *b, int port, int peer, const char *s)
{
	struct fabric *f = b->r.f;
	struct fabric_node *other = &f->node.v[f->port.v[peer].node];
	const char *lid = NULL, *open;
	unsigned v;
	fabric_take_space(&s);
	if (fabric_take(&s, "lid ")) {
		if (fabric_take_number(&s, 0xffff, &v))
			f->port.v[port].lid = (uint16_t)v;
		if (fabric_take(&s, " lmc ") && fabric_take_number(&s, 255, &v))
			fabric_take_space(&s);
	}
	for (const char *p = s; (p = strstr(p, " lid ")); p++)
		lid = p;
	if (!lid)
		return fabric_bad(&b->r, "a port without the LID at its other end%s",
			b->r.cut ? ": the file is cut off here" : "");
	open = *s == '"' ? s + 1 : s;
	size_t len = (size_t)(lid - open);
	if (lid >= open && !other->by_id && !other->name[0])
		fabric_set_name(f, f->port.v[peer].node, open,
			len > 0 && open[len - 1] == '"' ? len - 1 : len);
	lid += 5;
	if (!fabric_take_number(&lid, 0xffff, &v))
		return fabric_bad(&b->r, "a LID that is no number up to 65535");
	if (other->kind == FABRIC_SWITCH && !other->lid)
		other->lid = (uint16_t)v;
	else if (other->kind != FABRIC_SWITCH)
		f->port.v[peer].lid = (uint16_t)v;
	fabric_take_space(&lid);
	bool told = take_rate(&lid, &f->port.v[port]);
	if (!told && (b->r.cut || (!*lid && !b->old)))
		return fabric_bad(&b->r, "a port without width and speed, such as 4xHDR%s",
			b->r.cut ? ": the file is cut off here" : "");
	return 1;
}

static int port_row(struct block *b)
{
	struct fabric *f = b->r.f;
	const char *s = b->r.text, *id, *mark;
	unsigned num, peer_num, lanes;
	uint64_t guid = 0, peer_guid = 0;
	size_t len;
	if (*s != '[')
		return 0;
	if (b->node < 0)
		return fabric_bad(&b->r, "a port before any Switch or Ca");
	if (!take_port(&s, &num))
		return fabric_bad(&b->r, "a port number must be 0 to %d", FABRIC_MAX_PORT);
	const struct fabric_node *n = &f->node.v[b->node];
	if (n->ports && num > n->ports)
		return fabric_bad(&b->r, "port %u of a node with %u ports", num, n->ports);
	take_guid(&s, &guid);
	fabric_take_space(&s);
	if (!fabric_take_quoted(&s, &id, &len) || len == 0 || len >= FABRIC_NAME ||
		!take_port(&s, &peer_num))
		return fabric_bad(&b->r, "a port must be joined to \"NODE\"[PORT]%s",
			b->r.cut ? ": the file is cut off here" : "");
	take_guid(&s, &peer_guid);
	int peer_node = node_of(b, id, len, FABRIC_UNKNOWN);
	if (peer_node < 0)
		return fabric_no_memory(&b->r, peer_node);
	int port = fabric_port_of(f, b->node, num);
	int peer = port < 0 ? port : fabric_port_of(f, peer_node, peer_num);
	if (peer < 0 || fabric_join(f, port, peer, b->r.line) < 0 ||
		fabric_set_port_guid(f, port, guid) < 0 ||
		fabric_set_port_guid(f, peer, peer_guid) < 0)
		return fabric_no_memory(&b->r, -ENOMEM);
	b->rows++;
	mark = strchr(s, '#');
	/* ibsim's own word for the width, in lanes. */
	fabric_take_space(&s);
	if (fabric_take(&s, "w=") && fabric_take_number(&s, 12, &lanes))
		f->port.v[port].width = (uint8_t)lanes;
	if (mark)
		return port_comment(b, port, peer, mark + 1);
	if (!f->node.v[b->node].by_id && b->r.cut)
		return fabric_bad(
			&b->r, "a port without width and speed: the file is cut off here");
	return 1;
}

static int row(struct block *b)
{
	static const char *const skipped[] = {"Chassis ", "Hostname:", "Non-Chassis Nodes"};
	static int (*const readers[])(struct block *) = {port_row, header, attribute};
	const char *s = b->r.text;
	fabric_take_space(&s);
	if (!*s || *s == '#')
		return 0;
	b->seen++;
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		int rc = readers[i](b);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++)
		if (fabric_take(&s, skipped[i]))
			return 0;
	/* A cut attribute, such as "vend": nothing of the fabric is lost with it. */
	if (b->r.cut && b->seen > 1 && islower((unsigned char)*s))
		return 0;
	fabric_bad(&b->r, "\"%.40s\" is no line of ibnetdiscover's output", s);
	fabric_hint_kind(&b->r);
	return -EINVAL;
}

/* Text that was copied out of a page or a listing keeps its indentation. */
static void unindent(char *s)
{
	size_t n = strspn(s, " \t");
	if (n)
		memmove(s, s + n, strlen(s + n) + 1);
}

static bool one_line_a_port(const char *s)
{
	return (strncmp(s, "SW", 2) == 0 || strncmp(s, "CA", 2) == 0 || strncmp(s, "RT", 2) == 0 ||
		       strncmp(s, "??", 2) == 0) &&
	       s[2] == ' ';
}

int fabric_parse_discover(
	struct fabric *f, const char *text, size_t len, const char *name, struct fb_err *e)
{
	struct block b = {
		.r = {.f = f, .name = name, .at = text, .end = text + len, .e = e}, .node = -1};
	int rc;
	while ((rc = fabric_line(&b.r)) > 0) {
		unindent(b.r.text);
		if (b.seen == 0 && one_line_a_port(b.r.text)) {
			b.r.at = text;
			b.r.line = 0;
			f->noise = 0;
			return fabric_parse_ports(&b.r);
		}
		rc = row(&b);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	end_block(&b);
	snprintf(f->source, sizeof(f->source), "ibnetdiscover");
	return 0;
}
