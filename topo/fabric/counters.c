// SPDX-License-Identifier: Apache-2.0
/*
 * Port counters as text: ibqueryerrors
 *   Errors for 0x200000 "leaf0"
 *      GUID 0x200000 port 3: [SymbolErrorCounter == 5000] [LinkDownedCounter == 7]
 * and perfquery, with -x or without:
 *   # Port counters: Lid 2 port 3 (CapMask: 0x1300)
 *   SymbolErrorCounter:..............5000
 * A port of which ibqueryerrors says nothing has no counter above its thresholds, which is no
 * reading of zero: it stays untold.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* Older tools' names. */
static const struct {
	const char *name;
	enum fabric_counter c;
} aliases[] = {
	{"SymbolErrors", FABRIC_SYMBOL},
	{"LinkRecovers", FABRIC_RECOVERY},
	{"LinkDowned", FABRIC_DOWNED},
	{"RcvErrors", FABRIC_RCV},
	{"RcvRemotePhysErrors", FABRIC_REMOTE},
	{"RcvSwRelayErrors", FABRIC_RELAY},
	{"XmtDiscards", FABRIC_DISCARD},
	{"XmtConstraintErrors", FABRIC_XMIT_CONSTRAINT},
	{"RcvConstraintErrors", FABRIC_RCV_CONSTRAINT},
	{"LinkIntegrityErrors", FABRIC_INTEGRITY},
	{"ExcBufOverrunErrors", FABRIC_OVERRUN},
	{"XmtWait", FABRIC_WAIT},
	{"XmtPkts", FABRIC_XMIT_PKTS},
	{"RcvPkts", FABRIC_RCV_PKTS},
};

static int counter_of(const char *s, size_t len)
{
	for (int i = 0; i < FABRIC_COUNTERS; i++)
		if (strlen(fabric_counter_names[i]) == len &&
			strncmp(s, fabric_counter_names[i], len) == 0)
			return i;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strlen(aliases[i].name) == len && strncmp(s, aliases[i].name, len) == 0)
			return (int)aliases[i].c;
	return -1;
}

static int counters_of(struct fabric *f, int port)
{
	int i = f->port.v[port].counters;
	if (i >= 0)
		return i;
	struct fabric_counters *c = FABRIC_ADD(f->counters);
	if (!c)
		return -ENOMEM;
	c->port = (uint32_t)port;
	i = (int)f->counters.n - 1;
	f->port.v[port].counters = i;
	return i;
}

static bool take_count(const char **s, uint64_t *v)
{
	uint64_t n = 0;
	if (!isdigit((unsigned char)**s))
		return false;
	for (; isdigit((unsigned char)**s); (*s)++) {
		unsigned d = (unsigned)(**s - '0');
		n = n > (UINT64_MAX - d) / 10 ? UINT64_MAX : n * 10 + d;
	}
	*v = n;
	return true;
}

static int keep(struct fabric *f, int port, int counter, uint64_t v)
{
	int i = counters_of(f, port);
	if (i < 0)
		return i;
	f->counters.v[i].v[counter] = v;
	f->counters.v[i].told |= 1u << counter;
	return 0;
}

/* GUID 0x200000 port 3: [NAME == N] ... */
static int guid_row(struct fabric_reader *r, const char *s)
{
	uint64_t guid, v;
	unsigned num;
	if (!fabric_take_hex(&s, &guid) || !fabric_take(&s, " port "))
		return fabric_bad(r, "a line must be GUID 0xGUID port N: [NAME == N]");
	if (fabric_take(&s, "ALL"))
		return 0;
	if (!fabric_take_number(&s, 255, &num) || !fabric_take(&s, ":"))
		return fabric_bad(r, "a port number must be 0 to 255, with a colon behind it");
	int port = fabric_find_port(r->f, guid, num);
	r->f->unplaced += port < 0;
	for (fabric_take_space(&s); fabric_take(&s, "["); fabric_take_space(&s)) {
		size_t n = strcspn(s, " ]");
		int c = counter_of(s, n);
		s += n;
		if (!fabric_take(&s, " == ") || !take_count(&s, &v))
			return fabric_bad(r, "a counter must be [NAME == N]%s",
				r->cut ? ": the file is cut off here" : "");
		s = strchr(s, ']');
		if (!s)
			return fabric_bad(r, "a bracket is not closed%s",
				r->cut ? ": the file is cut off here" : "");
		s++;
		if (port >= 0 && c >= 0 && keep(r->f, port, c, v) < 0)
			return fabric_no_memory(r, -ENOMEM);
	}
	return 0;
}

/* "Lid 2 port 3 (CapMask..." @return port, -1 not in the fabric, -2 no such text */
static int lid_port(const struct fabric *f, const char *s)
{
	unsigned lid, num;
	if (!fabric_take(&s, "Lid ") || !fabric_take_number(&s, 0xffff, &lid) ||
		!fabric_take(&s, " port ") || !fabric_take_number(&s, 255, &num))
		return -2;
	int i = fabric_map_get(&f->by_lid, lid);
	return i < 0 ? -1 : fabric_find_number(f, i, num);
}

/* NAME:.......N */
static int dotted(struct fabric_reader *r, int port)
{
	size_t n = strcspn(r->text, ":");
	const char *s = r->text + n;
	uint64_t v;
	int c = counter_of(r->text, n);
	if (*s != ':' || s[1] != '.') {
		fabric_bad(r, "\"%.40s\" is no line of ibqueryerrors or perfquery", r->text);
		fabric_hint_kind(r);
		return -EINVAL;
	}
	s += 1 + strspn(s + 1, ".");
	if (c < 0)
		return 0;
	if (!take_count(&s, &v))
		return fabric_bad(r, "%.*s without a number%s", (int)n, r->text,
			r->cut ? ": the file is cut off here" : "");
	return port >= 0 && keep(r->f, port, c, v) < 0 ? fabric_no_memory(r, -ENOMEM) : 0;
}

int fabric_parse_counters(
	struct fabric *f, const char *text, size_t len, const char *name, struct fb_err *e)
{
	struct fabric_reader r = {.f = f, .name = name, .at = text, .end = text + len, .e = e};
	int rc, port = -2; /* -2: before the first "# Port" line */
	unsigned ports = 0;
	while ((rc = fabric_line(&r)) > 0) {
		const char *s = r.text;
		fabric_take_space(&s);
		rc = 0;
		if (fabric_take(&s, "GUID ")) {
			ports++;
			rc = guid_row(&r, s);
		} else if (fabric_take(&s, "# Port ")) {
			s = strstr(s, "Lid ");
			port = s ? lid_port(f, s) : -2;
			if (port == -2)
				rc = fabric_bad(&r, "a port must be told as Lid N port N");
			ports++;
			f->unplaced += port == -1;
		} else if (*s && *s != '#' && !fabric_take(&s, "Errors for ")) {
			rc = port == -2 ? dotted(&r, -1) : dotted(&r, port);
		}
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && ports == 0 && !strstr(text, "nodes checked")) {
		r.line = r.line ? r.line : 1;
		rc = fabric_bad(&r, "no port's counters");
		fb_hint(e, "make it anew: ibqueryerrors > FILE, or perfquery -x LID PORT > FILE");
	}
	f->counted = f->counted || rc == 0;
	return rc;
}
