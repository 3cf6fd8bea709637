// SPDX-License-Identifier: Apache-2.0
/*
 * Names of speeds and nodes. Descriptions are what people wrote: they are shown and compared, and
 * never decide which node is which.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* Lane signalling as libibmad prints it, and the data rate after coding (IBTA 1.4, 5.6; FDR and
 * later 64b/66b, before 8b/10b; HDR and later as they are sold: 50, 100, 200 Gb/s a lane). */
static const struct {
	const char *name;
	double lane, data;
	uint8_t speed, ext; /* LinkSpeedActive, LinkSpeedExtActive */
} speeds[FABRIC_SPEEDS] = {
	[FABRIC_SDR] = {"SDR", 2.5, 2, 1, 0},
	[FABRIC_DDR] = {"DDR", 5, 4, 2, 0},
	[FABRIC_QDR] = {"QDR", 10, 8, 4, 0},
	[FABRIC_FDR10] = {"FDR10", 10.3125, 10, 0, 0},
	[FABRIC_FDR] = {"FDR", 14.0625, 13.64, 0, 1},
	[FABRIC_EDR] = {"EDR", 25.78125, 25, 0, 2},
	[FABRIC_HDR] = {"HDR", 53.125, 50, 0, 4},
	[FABRIC_NDR] = {"NDR", 106.25, 100, 0, 8},
	[FABRIC_XDR] = {"XDR", 212.5, 200, 0, 0},
};

const char *const fabric_counter_names[FABRIC_COUNTERS] = {
	[FABRIC_SYMBOL] = "SymbolErrorCounter",
	[FABRIC_RECOVERY] = "LinkErrorRecoveryCounter",
	[FABRIC_DOWNED] = "LinkDownedCounter",
	[FABRIC_RCV] = "PortRcvErrors",
	[FABRIC_REMOTE] = "PortRcvRemotePhysicalErrors",
	[FABRIC_RELAY] = "PortRcvSwitchRelayErrors",
	[FABRIC_DISCARD] = "PortXmitDiscards",
	[FABRIC_XMIT_CONSTRAINT] = "PortXmitConstraintErrors",
	[FABRIC_RCV_CONSTRAINT] = "PortRcvConstraintErrors",
	[FABRIC_INTEGRITY] = "LocalLinkIntegrityErrors",
	[FABRIC_OVERRUN] = "ExcessiveBufferOverrunErrors",
	[FABRIC_VL15] = "VL15Dropped",
	[FABRIC_WAIT] = "PortXmitWait",
	[FABRIC_XMIT_PKTS] = "PortXmitPkts",
	[FABRIC_RCV_PKTS] = "PortRcvPkts",
};

const char *fabric_speed_name(unsigned speed, char *buf, size_t len)
{
	if (speed & FABRIC_CODE)
		snprintf(buf, len, "speed code %u", speed & 0xffu);
	else
		snprintf(buf, len, "%s",
			speed > 0 && speed < FABRIC_SPEEDS ? speeds[speed].name : "?");
	return buf;
}

unsigned fabric_speed_of(const char *name, size_t len)
{
	for (unsigned i = 1; i < FABRIC_SPEEDS; i++)
		if (strlen(speeds[i].name) == len && strncmp(speeds[i].name, name, len) == 0)
			return i;
	return FABRIC_NO_SPEED;
}

unsigned fabric_speed_of_codes(unsigned speed, unsigned ext, bool fdr10)
{
	if (ext == 0 && fdr10)
		return FABRIC_FDR10;
	for (unsigned i = 1; i < FABRIC_SPEEDS; i++)
		if (ext ? speeds[i].ext == ext : speed && speeds[i].speed == speed)
			return i;
	if (ext)
		return FABRIC_CODE | (ext & 0xff);
	return speed ? FABRIC_CODE | (speed & 0xff) : FABRIC_NO_SPEED;
}

unsigned fabric_speed_of_gbps(double lane)
{
	for (unsigned i = 1; i < FABRIC_SPEEDS; i++)
		if (lane > speeds[i].lane * 0.99 && lane < speeds[i].lane * 1.01)
			return i;
	return FABRIC_NO_SPEED;
}

unsigned fabric_width_of_code(unsigned code)
{
	static const uint8_t lanes[] = {1, 4, 8, 12, 2};
	for (unsigned i = 0; i < sizeof(lanes); i++)
		if (code == 1u << i)
			return lanes[i];
	return code ? FABRIC_BAD_WIDTH : 0;
}

double fabric_gbps(unsigned width, unsigned speed)
{
	if (width == FABRIC_BAD_WIDTH || speed >= FABRIC_SPEEDS)
		return 0;
	return width * speeds[speed].data;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

bool fabric_factory_name(const char *name)
{
	const char *p = name;
	if (!*name || strcmp(name, "localhost") == 0 || strncmp(name, "localhost ", 10) == 0)
		return true;
	if (strstr(name, "Mellanox Technologies") && !strstr(name, "Aggregation Node"))
		return true;
	if (p[0] != 'M' || p[1] != 'T' || !isdigit((unsigned char)p[2]))
		return false;
	for (p += 2; isdigit((unsigned char)*p); p++)
		;
	return *p == ' ' || *p == '\0';
}

/* Names that drivers, udev and sites give to HCAs. The unmistakable ones may stand behind any sign,
 * as in "node3-mlx5_0"; the others behind a space only: "rack1-hca2" may be a host. */
static const struct {
	const char *head;
	bool sure;
} hca_heads[] = {{"mlx5_", true}, {"mlx4_", true}, {"HCA-", true}, {"HCA_", true}, {"hfi1_", true},
	{"bnxt_re", true}, {"mthca", false}, {"qib", false}, {"ibp", true}, {"ibP", true},
	{"ibs", false}, {"ib", false}, {"rocep", true}, {"roceP", true}, {"roces", true},
	{"roce", false}, {"irdma", false}, {"rdmap", true}, {"rdma", false}, {"rxe", false},
	{"HCA", false}, {"hca-", false}, {"hca_", false}, {"hca", false}, {"rail", false},
	{"nic", false}};

/* Length of an HCA's name at s, 0 none: a number must end it, but for the sure ones, as in
 * "mlx5_0_ib". */
static size_t hca_word(const char *s, bool *sure)
{
	for (size_t i = 0; i < sizeof(hca_heads) / sizeof(hca_heads[0]); i++) {
		size_t n = strlen(hca_heads[i].head), end = n;
		bool digit = false;
		if (strncmp(s, hca_heads[i].head, n) != 0)
			continue;
		for (; isalnum((unsigned char)s[end]) || s[end] == '_'; end++)
			digit = digit || isdigit((unsigned char)s[end]);
		if (!digit || (!hca_heads[i].sure && !isdigit((unsigned char)s[end - 1])))
			continue;
		*sure = hca_heads[i].sure;
		return end;
	}
	return 0;
}

/* Where in a description the HCA's name stands, behind or before the host's: "node3 mlx5_1",
 * "node3/mlx5_1", "node3 HCA-1 (mlx5_0)". @return its length, 0 none */
static size_t find_hca(const char *name, size_t *at)
{
	size_t first = 0, len = strlen(name);
	bool sure;
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && !strchr(" /:@,([-_.", name[i - 1]))
			continue;
		size_t n = hca_word(name + i, &sure);
		char after = n ? name[i + n] : '\0';
		if (n == 0 || (after && !strchr(" /:@,)]", after)))
			continue;
		if (i == 0) {
			first = after && sure ? n : 0;
			continue;
		}
		if (!sure && (name[i - 1] != ' ' || after))
			continue;
		*at = i;
		return n;
	}
	*at = 0;
	return first;
}

bool fabric_split_name(const char *name, char *host, char *hca, size_t hca_len)
{
	static const char signs[] = " /:@,([-_.";
	size_t at, n = fabric_factory_name(name) ? 0 : find_hca(name, &at), from = 0, to;
	if (n == 0 || n >= hca_len)
		return false;
	to = at;
	if (at == 0) {
		from = n;
		to = strlen(name);
		while (from < to && strchr(signs, name[from]))
			from++;
	}
	while (to > from && strchr(signs, name[to - 1]))
		to--;
	if (to == from || to - from >= FABRIC_NAME)
		return false;
	snprintf(host, FABRIC_NAME, "%.*s", (int)(to - from), name + from);
	snprintf(hca, hca_len, "%.*s", (int)n, name + at);
	return true;
}

int fabric_natural(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			size_t na, nb;
			for (; *a == '0' && isdigit((unsigned char)a[1]); a++)
				;
			for (; *b == '0' && isdigit((unsigned char)b[1]); b++)
				;
			na = strspn(a, "0123456789");
			nb = strspn(b, "0123456789");
			int d = na != nb ? (na < nb ? -1 : 1) : strncmp(a, b, na);
			if (d)
				return d;
			a += na;
			b += nb;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	return *a ? 1 : *b ? -1 : 0;
}

/* "MF0;rmd70-0101-0908:MQM8700/U1" is rmd70-0101-0908; in a director, "MF0;core:MCS8500/S01/U1",
 * the board is part of the name: core/S01. */
static void switch_name(const char *name, char *buf, size_t len)
{
	const char *s = strchr(name, ';');
	const char *colon = s ? strrchr(s, ':') : NULL, *board = colon ? strchr(colon, '/') : NULL;
	const char *chip = board ? strchr(board + 1, '/') : NULL;
	if (!s || !colon || strncmp(name, "MF0;", 4) != 0)
		snprintf(buf, len, "%s", name);
	else if (chip)
		snprintf(buf, len, "%.*s%.*s", (int)(colon - s - 1), s + 1, (int)(chip - board),
			board);
	else
		snprintf(buf, len, "%.*s", (int)(colon - s - 1), s + 1);
}

static void hidden_label(const struct fabric *f, int node, char *buf)
{
	const struct fabric_node *n = &f->node.v[node];
	char host[FABRIC_NAME], hca[40];
	if (n->kind == FABRIC_CA && n->host >= 0 &&
		fabric_split_name(n->name, host, hca, sizeof(hca)) && !n->ambiguous)
		snprintf(buf, FABRIC_LABEL, "host%d %s", n->host, hca);
	else
		snprintf(buf, FABRIC_LABEL, "%s%d",
			n->kind == FABRIC_SWITCH ? "switch"
			: n->kind == FABRIC_CA   ? "hca"
						 : "node",
			node);
}

const char *fabric_label(const struct fabric *f, int node, char *buf)
{
	const struct fabric_node *n = &f->node.v[node];
	char name[FABRIC_NAME];
	if (f->anonymous) {
		hidden_label(f, node, buf);
		return buf;
	}
	if (n->kind == FABRIC_SWITCH)
		switch_name(n->name, name, sizeof(name));
	else
		snprintf(name, sizeof(name), "%s", n->name);
	if (n->by_id && n->shared_name && n->lid)
		snprintf(buf, FABRIC_LABEL, "%s (lid %u)", name, n->lid);
	else if (n->by_id)
		snprintf(buf, FABRIC_LABEL, "%s", name);
	else if (!name[0])
		snprintf(buf, FABRIC_LABEL, "0x%016" PRIx64, n->guid);
	else if (n->shared_name || n->factory || n->ambiguous)
		snprintf(buf, FABRIC_LABEL, "%s (0x%016" PRIx64 ")", name, n->guid);
	else
		snprintf(buf, FABRIC_LABEL, "%s", name);
	return buf;
}

const char *fabric_port_label(const struct fabric *f, int port, char *buf)
{
	const struct fabric_port *p = &f->port.v[port];
	const struct fabric_node *n = &f->node.v[p->node];
	bool only = n->kind == FABRIC_CA && f->port.v[n->first].next < 0 && n->ports <= 1;
	fabric_label(f, p->node, buf);
	size_t len = strlen(buf);
	if (!only)
		snprintf(buf + len, FABRIC_LABEL - len, " port %u", p->num);
	return buf;
}
