// SPDX-License-Identifier: Apache-2.0
/*
 * What must be equal on all nodes: compared port by port under the device's name, the odd ones
 * named by majority. A node that does not tell a value takes no part in that comparison.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/summary.h"

#define VALUE_MAX   1024
#define NAMED_NODES 8 /* of the odd ones; the rest is counted */

/* What a port has, as text that is compared and shown. @return false: not told */
typedef bool (*value_of)(
	const struct node_facts *n, const struct port_facts *p, char *buf, size_t len);

static bool int_text(const struct fact_int *v, char *buf, size_t len)
{
	snprintf(buf, len, "%lld", (long long)v->v);
	return fact_known(&v->f);
}

static bool mtu(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	return int_text(&p->netdev_mtu, buf, len);
}

static bool rdma_mtu(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	return int_text(&p->active_mtu, buf, len);
}

static bool pfc(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	check_bits_text(p->dcb.pfc.en, buf, len);
	return fact_known(&p->dcb.pfc_f);
}

/* "0:0 8:1 26:3": where a run of DSCPs begins that have another priority than the one before. */
static bool map(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	size_t at = 0;
	int last = -2;
	bool any = false;
	for (int dscp = 0; dscp < 64 && at < len; dscp++) {
		const char *how, *why;
		int prio = facts_dscp_priority(p, dscp, &how, &why);
		any = any || prio >= 0;
		if (prio == last)
			continue;
		last = prio;
		if (prio < 0)
			at += (size_t)snprintf(buf + at, len - at, "%s%d:?", at ? " " : "", dscp);
		else
			at += (size_t)snprintf(
				buf + at, len - at, "%s%d:%d", at ? " " : "", dscp, prio);
	}
	return any;
}

static bool gid(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	const struct gid_fact *best = NULL;
	for (int i = 0; i < p->gids; i++) {
		const struct gid_fact *g = &p->gid[i];
		if (g->v2 && (!best || (best->link_local && !g->link_local)))
			best = g;
	}
	if (!fact_known(&p->gids_f))
		return false;
	snprintf(buf, len, "%s",
		!best              ? "no RoCE v2"
		: best->link_local ? "RoCE v2, link-local"
		: best->ipv4       ? "RoCE v2, IPv4"
				   : "RoCE v2, IPv6");
	return true;
}

static bool firmware(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s%s", p->fw.v, fact_known(&p->board.f) ? " on " : "",
		fact_known(&p->board.f) ? p->board.v : "");
	return fact_known(&p->fw.f) && p->fw.v[0];
}

static bool classes(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	struct used_class used[8];
	struct profile none;
	size_t at = 0;
	profile_none(&none);
	struct check_input in = {.node = n, .port = p, .profile = &none};
	int many = check_used_classes(&in, used, 8);
	snprintf(buf, len, "none set");
	for (int i = 0; i < many && at < len; i++)
		at += (size_t)snprintf(
			buf + at, len - at, "%s%s %d", at ? ", " : "", used[i].by, used[i].byte);
	return fact_known(&n->env_f) || many > 0;
}

static bool rate(const struct node_facts *n, const struct port_facts *p, char *buf, size_t len)
{
	snprintf(buf, len, "%s", p->rate.v);
	return fact_known(&p->rate.f);
}

#define EQUAL(id, title, needs, rule, remedy, effect)                                    \
	{                                                                                \
		id, title, needs, rule, remedy, effect, "the other nodes", "constructed" \
	}
const struct fb_check_def equal_checks[] = {
	EQUAL("equal.ports", "the same RDMA devices on all nodes",
		"/sys/class/infiniband; --others",
		"pass: each node has the ports of the examined one; fail: one has not",
		"look for the card: lspci, dmesg", NULL),
	EQUAL("equal.mtu", "MTU equal on all nodes", "/sys/class/net/IF/mtu; --others",
		"pass: equal; fail: one differs", "ip link set IF mtu 9000",
		"the link may flap; the switch must carry it too"),
	EQUAL("equal.rdma_mtu", "RDMA MTU equal on all nodes", "ibv_query_port; --others",
		"pass: equal; fail: one differs", "ip link set IF mtu 9000",
		"the link may flap; the switch must carry it too"),
	EQUAL("equal.pfc", "PFC priorities equal on all nodes", "DCB netlink; --others",
		"pass: equal; fail: one differs", "dcb pfc set dev IF prio-pfc all:off N:on",
		"on mlx5 a new PFC mask takes the link down and up again"),
	EQUAL("equal.dscp_map", "map of DSCPs equal on all nodes",
		"qos/dscp2prio or DCB netlink; --others", "pass: equal; fail: one differs",
		"mlnx_qos -i IF --dscp2prio set,DSCP,PRIO; dcb app replace dev IF dscp-prio "
		"DSCP:PRIO",
		NULL),
	EQUAL("equal.gid", "kind of GID equal on all nodes", "gid_attrs/types; --others",
		"pass: equal; fail: one differs", "ip addr add ADDRESS/LEN dev IF",
		"gives the interface an address"),
	EQUAL("equal.traffic_class", "traffic class equal on all nodes",
		"NCCL_IB_TC, NCCL_IB_FIFO_TC, UCX_IB_TRAFFIC_CLASS; configfs; tc/P/traffic_class; "
		"--others",
		"pass: equal; fail: one differs", "the same /etc/nccl.conf on all nodes",
		"new jobs only"),
	EQUAL("equal.rate", "rate equal on all nodes", "ports/P/rate; --others",
		"pass: equal; fail: one differs", "reseat the cable", "the link goes down"),
	EQUAL("equal.firmware", "firmware equal on all nodes", "fw_ver, board_id; --others",
		"pass: equal; warn: one differs", "mlxfwmanager --online -u", "the NIC restarts"),
	{.id = NULL},
};

/* Of equal_checks[1] on. */
static const struct {
	value_of value;
	enum fb_check_state odd;
	bool ethernet_only;
} compared[] = {{mtu, FB_CHECK_FAIL, true}, {rdma_mtu, FB_CHECK_FAIL, false},
	{pfc, FB_CHECK_FAIL, true}, {map, FB_CHECK_FAIL, true}, {gid, FB_CHECK_FAIL, true},
	{classes, FB_CHECK_FAIL, true}, {rate, FB_CHECK_FAIL, false},
	{firmware, FB_CHECK_WARN, false}};
#define N_COMPARED (sizeof(compared) / sizeof(compared[0]))

struct group {
	char value[VALUE_MAX];
	int n;
};
struct vote {
	struct group *groups; /* by value, in order of appearance */
	int n_groups;
	int *of; /* by node: index in groups, -1: not told */
	int told;
};

static const struct port_facts *same_port(const struct node_facts *n, const struct port_facts *p)
{
	for (int i = 0; i < n->ports; i++)
		if (strcmp(n->port[i].device, p->device) == 0 && n->port[i].port == p->port &&
			n->port[i].ethernet == p->ethernet)
			return &n->port[i];
	return NULL;
}

/* Another board has firmware of its own. */
static bool other_board(const struct port_facts *a, const struct port_facts *b)
{
	return fact_known(&a->board.f) && fact_known(&b->board.f) &&
	       strcmp(a->board.v, b->board.v) != 0;
}

static void count(struct vote *v, const struct node_facts *const *nodes, int n,
	const struct port_facts *p, value_of value)
{
	v->n_groups = v->told = 0;
	for (int i = 0; i < n; i++) {
		char text[VALUE_MAX];
		const struct port_facts *o = same_port(nodes[i], p);
		int g = 0;
		v->of[i] = -1;
		if (!o || !value(nodes[i], o, text, sizeof(text)) ||
			(value == firmware && other_board(p, o)))
			continue;
		while (g < v->n_groups && strcmp(v->groups[g].value, text) != 0)
			g++;
		if (g == v->n_groups) {
			memcpy(v->groups[g].value, text, sizeof(text));
			v->groups[g].n = 0;
			v->n_groups++;
		}
		v->groups[g].n++;
		v->of[i] = g;
		v->told++;
	}
}

/* The group with most nodes; -1: two share that place. */
static int majority(const struct vote *v)
{
	int best = 0, equals = 0;
	for (int g = 1; g < v->n_groups; g++)
		if (v->groups[g].n > v->groups[best].n)
			best = g;
	for (int g = 0; g < v->n_groups; g++)
		equals += v->groups[g].n == v->groups[best].n;
	return equals > 1 ? -1 : best;
}

static void name_odd(const struct vote *v, const struct node_facts *const *nodes, int n, int most,
	struct fb_strbuf *out)
{
	int named = 0, left = 0;
	for (int i = 0; i < n; i++) {
		if (v->of[i] < 0 || v->of[i] == most)
			continue;
		if (named == NAMED_NODES) {
			left++;
			continue;
		}
		fb_strbuf_printf(out, "%s%s: %.60s", named ? "; " : "", nodes[i]->host,
			v->groups[v->of[i]].value);
		named++;
	}
	if (left)
		fb_strbuf_printf(out, "; and %d more", left);
}

static void judge(const struct vote *v, const struct node_facts *const *nodes, int n,
	enum fb_check_state odd, struct fb_finding *f)
{
	struct fb_strbuf text = {0};
	if (v->told < 2) {
		fb_find(f, FB_CHECK_SKIP, "not available: %d of %d nodes tell it", v->told, n);
		return;
	}
	int most = majority(v);
	if (v->n_groups == 1) {
		fb_find(f, FB_CHECK_PASS, "%.180s, equal on %d nodes", v->groups[0].value, v->told);
		return;
	}
	name_odd(v, nodes, n, most, &text);
	fb_find(f, odd, "%s", text.s ? text.s : "not equal");
	if (most >= 0) {
		char source[64];
		snprintf(source, sizeof(source), "%d of %d nodes", v->groups[most].n, v->told);
		fb_find_expected(f, source, "%.180s", v->groups[most].value);
	} else {
		fb_find_expected(f, "no value has a majority", "equal everywhere");
	}
	fb_strbuf_free(&text);
}

static void compare_port(struct vote *v, const struct node_facts *const *nodes, int n,
	const struct port_facts *p, struct fb_doc *doc)
{
	for (size_t i = 0; i < N_COMPARED; i++) {
		struct fb_finding f = {.state = FB_CHECK_ERROR};
		if (compared[i].ethernet_only && !p->ethernet)
			continue;
		snprintf(f.subject, sizeof(f.subject), "%s/%d", p->device, p->port);
		count(v, nodes, n, p, compared[i].value);
		judge(v, nodes, n, compared[i].odd, &f);
		fb_doc_add_check(doc, fb_finding_json(&equal_checks[i + 1], &f));
	}
}

static void compare_ports(const struct node_facts *const *nodes, int n, struct fb_doc *doc)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	struct fb_strbuf missing = {0};
	int lacking = 0;
	for (int i = 1; i < n; i++)
		for (int k = 0; k < nodes[0]->ports; k++) {
			const struct port_facts *p = &nodes[0]->port[k];
			if (same_port(nodes[i], p))
				continue;
			if (lacking++ < NAMED_NODES)
				fb_strbuf_printf(&missing, "%s%s has no %s/%d",
					missing.s ? "; " : "", nodes[i]->host, p->device, p->port);
		}
	if (lacking == 0)
		fb_find(&f, FB_CHECK_PASS, "%d ports, on each of %d nodes", nodes[0]->ports, n);
	else
		fb_find(&f, FB_CHECK_FAIL, "%s", missing.s ? missing.s : "ports are missing");
	fb_find_expected(&f, nodes[0]->host, "%d ports", nodes[0]->ports);
	fb_doc_add_check(doc, fb_finding_json(&equal_checks[0], &f));
	fb_strbuf_free(&missing);
}

void equal_run(const struct node_facts *const *nodes, int n, struct fb_doc *doc)
{
	struct vote v = {.groups = calloc((size_t)n, sizeof(*v.groups)),
		.of = calloc((size_t)n, sizeof(*v.of))};
	if (v.groups && v.of) {
		compare_ports(nodes, n, doc);
		for (int i = 0; i < nodes[0]->ports; i++)
			compare_port(&v, nodes, n, &nodes[0]->port[i], doc);
	} else {
		fb_doc_warn(doc, "no memory to compare %d nodes", n);
	}
	free(v.groups);
	free(v.of);
}
