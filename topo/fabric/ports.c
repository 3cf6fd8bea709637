// SPDX-License-Identifier: Apache-2.0
/*
 * ibnetdiscover -p: one line a port, whether it is joined or not:
 *   SW  1719 10 0x7cfe9003009ce5b0 4x EDR - CA   134  1 0x7cfe9003003b4bde ( 'leaf' - 'o0001 HCA-1'
 * ) SW  2052 37 0x506b4b03005c2740 4x ???                                    'leaf' The GUID is the
 * port's: a switch's own, and of an HCA that of the port, so that each port of an HCA is a node of
 * its own here. What an unjoined port shows as its rate means nothing.
 */
#include <errno.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

struct end {
	enum fabric_kind kind;
	unsigned lid, num;
	uint64_t guid;
};

static bool take_end(const char **s, struct end *e)
{
	static const struct {
		const char *word;
		enum fabric_kind kind;
	} kinds[] = {{"SW ", FABRIC_SWITCH}, {"CA ", FABRIC_CA}, {"RT ", FABRIC_ROUTER},
		{"?? ", FABRIC_UNKNOWN}};
	size_t i = 0;
	while (i < sizeof(kinds) / sizeof(kinds[0]) && !fabric_take(s, kinds[i].word))
		i++;
	if (i == sizeof(kinds) / sizeof(kinds[0]))
		return false;
	e->kind = kinds[i].kind;
	fabric_take_space(s);
	if (!fabric_take_number(s, 0xffff, &e->lid))
		return false;
	fabric_take_space(s);
	if (!fabric_take_number(s, FABRIC_MAX_PORT, &e->num))
		return false;
	fabric_take_space(s);
	return (*s)[0] == '0' && (*s)[1] == 'x' && fabric_take_hex(s, &e->guid);
}

/* "4x EDR" */
static bool take_rate(const char **s, uint8_t *width, uint16_t *speed)
{
	unsigned v;
	size_t n;
	fabric_take_space(s);
	if (fabric_take(s, "??"))
		*width = FABRIC_BAD_WIDTH;
	else if (fabric_take_number(s, 99, &v) && fabric_take(s, "x"))
		*width = (uint8_t)v;
	else
		return false;
	fabric_take_space(s);
	n = strcspn(*s, " \t");
	*speed = (uint16_t)fabric_speed_of(*s, n);
	if (*speed == FABRIC_NO_SPEED && strncmp(*s, "???", 3) != 0)
		return false;
	*s += n;
	fabric_take_space(s);
	return true;
}

static void name_of(struct fabric *f, int node, const char *from, const char *to)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	if (to - from >= 2 && *from == '\'' && to[-1] == '\'') {
		from++;
		to--;
	}
	if (!f->node.v[node].name[0])
		fabric_set_name(f, node, from, (size_t)(to - from));
}

/* "( 'leaf' - 'o0001 HCA-1' )". A name may hold " - " and a quote, so the quotes beside the dash
 * are looked for first. */
static bool names(struct fabric *f, int a, int b, const char *s)
{
	const char *end = strrchr(s, ')'), *dash, *next;
	if (!fabric_take(&s, "(") || !end || end < s)
		return false;
	dash = strstr(s, "' - '");
	if (dash) {
		dash++;
	} else {
		for (dash = strstr(s, " - "); dash && (next = strstr(dash + 1, " - ")); dash = next)
			;
	}
	if (!dash || dash > end)
		return false;
	name_of(f, a, s, dash);
	name_of(f, b, dash + 3, end);
	return true;
}

static int place(struct fabric_reader *r, const struct end *e)
{
	struct fabric *f = r->f;
	int node = fabric_node_by_guid(f, e->guid, e->kind);
	int port = node < 0 ? node : fabric_port_of(f, node, e->num);
	if (port < 0)
		return fabric_no_memory(r, port);
	f->node.v[node].defined = true;
	if (e->kind == FABRIC_SWITCH)
		f->node.v[node].lid = (uint16_t)e->lid;
	else
		f->port.v[port].lid = (uint16_t)e->lid;
	if (e->kind != FABRIC_SWITCH && fabric_set_port_guid(f, port, e->guid) < 0)
		return fabric_no_memory(r, -ENOMEM);
	return port;
}

static int row(struct fabric_reader *r)
{
	struct fabric *f = r->f;
	const char *s = r->text;
	struct end a, b;
	uint8_t width;
	uint16_t speed;
	fabric_take_space(&s);
	if (!*s || *s == '#')
		return 0;
	if (!take_end(&s, &a) || !take_rate(&s, &width, &speed)) {
		fabric_bad(r, "no line of ibnetdiscover -p: TYPE LID PORT 0xGUID WIDTHx SPEED");
		fabric_hint_kind(r);
		return -EINVAL;
	}
	int port = place(r, &a), peer;
	if (port < 0)
		return port;
	if (!fabric_take(&s, "- ")) {
		const char *end = s + strlen(s);
		if (r->cut && (s == end || (*s == '\'' && (end - s < 2 || end[-1] != '\''))))
			return fabric_bad(r, "the file is cut off here");
		name_of(f, f->port.v[port].node, s, end);
		return 0;
	}
	f->port.v[port].width = width;
	f->port.v[port].speed = speed;
	if (!take_end(&s, &b))
		return fabric_bad(r, "the other end must be TYPE LID PORT 0xGUID%s",
			r->cut ? ": the file is cut off here" : "");
	peer = place(r, &b);
	if (peer < 0)
		return peer;
	if (fabric_join(f, port, peer, r->line) < 0)
		return fabric_no_memory(r, -ENOMEM);
	fabric_take_space(&s);
	if (*s && !names(f, f->port.v[port].node, f->port.v[peer].node, s))
		return fabric_bad(r, "the names must be ( 'NAME' - 'NAME' )%s",
			r->cut ? ": the file is cut off here" : "");
	if (!*s && r->cut)
		return fabric_bad(r, "the names are missing: the file is cut off here");
	return 0;
}

int fabric_parse_ports(struct fabric_reader *r)
{
	int rc;
	r->f->port_nodes = true;
	while ((rc = fabric_line(r)) > 0) {
		rc = row(r);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		snprintf(r->f->source, sizeof(r->f->source), "ibnetdiscover -p");
	return rc;
}
