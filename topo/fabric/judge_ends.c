// SPDX-License-Identifier: Apache-2.0
/*
 * HCAs on their rails, port states, counters, GUIDs and descriptions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* ---- rails ----------------------------------------------------------------------------------- */

static void host_name(const struct fabric *f, int host, char *buf)
{
	if (f->anonymous)
		snprintf(buf, FABRIC_LABEL, "host%d", host);
	else
		snprintf(buf, FABRIC_LABEL, "%s", f->host.v[host].name);
}

/* The HCA on `leaf` that belongs where c is: the two were swapped. -1: none, or several */
static int swapped_with(const struct fabric *f, const struct fabric_hca *c)
{
	int found = -1;
	FABRIC_PORTS (f, c->target, p) {
		int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
		if (k < 0 || f->hca.v[k].target != c->leaf ||
			f->hca.v[k].leaf == f->hca.v[k].target)
			continue;
		/* Of several, the one of the same host. */
		if (found >= 0 && f->hca.v[k].host != c->host)
			continue;
		found = k;
	}
	return found;
}

static void mis_cabled(struct fabric_judge *j, const struct fabric_hca *c)
{
	const struct fabric *f = j->f;
	char hca[FABRIC_LABEL], host[FABRIC_LABEL], at[FABRIC_LABEL], to[FABRIC_LABEL];
	char there[FABRIC_LABEL], other[FABRIC_LABEL], rails[128];
	const char *rail = f->rail.v[c->rail].name;
	struct fb_finding o;
	int swap = swapped_with(f, c), peer = f->port.v[c->port].peer;
	fabric_label(f, c->node, hca);
	host_name(f, c->host, host);
	fabric_label(f, c->target, to);
	fabric_leaf_rails(f, c->leaf, rails, sizeof(rails));
	fabric_start(j, FAB_RAIL, &o, "%s", hca);
	fb_find(&o, FB_CHECK_FAIL, "mis-cabled: host %.60s, HCA %s is on switch %.90s%s%.40s", host,
		rail, fabric_port_label(f, peer, at), rails[0] ? ", the leaf of " : "", rails);
	fb_find_expected(&o, "most hosts that share its leaves",
		"switch %.120s, with HCA %s of the others", to, rail);
	if (swap >= 0) {
		fabric_port_label(f, f->port.v[f->hca.v[swap].port].peer, there);
		fb_find_remedy(&o, "both links go down",
			"swap the cables of %.80s and %.80s: there is %.80s, "
			"which belongs here",
			at, there, fabric_label(f, f->hca.v[swap].node, other));
	} else {
		fb_find_remedy(&o, "the link goes down",
			"move the cable from %.100s to a port of %.100s", at, to);
	}
	fabric_keep(j, FAB_RAIL, &o);
}

void fabric_judge_rails(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	size_t judged = 0, nameless = 0, unsure = 0, listed = 0;
	for (size_t i = 0; i < f->hca.n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (j->listed[c->port]) {
			listed++;
			continue;
		}
		nameless += c->rail < 0;
		unsure += c->rail >= 0 && c->target < 0;
		judged += c->target >= 0;
		if (c->target >= 0 && c->target != c->leaf)
			mis_cabled(j, c);
	}
	if (j->rows[FAB_RAIL])
		return;
	if (judged)
		fabric_sum(j, FAB_RAIL, FB_CHECK_PASS,
			"%zu of %zu HCAs where the others of their rail are%s", judged, f->hca.n,
			nameless + unsure ? "; of the rest no majority tells" : "");
	else if (listed == f->hca.n && listed > 0)
		fabric_sum(j, FAB_RAIL, FB_CHECK_SKIP,
			"the list of --expect says where each HCA belongs");
	else if (nameless > unsure)
		fabric_sum(j, FAB_RAIL, FB_CHECK_SKIP,
			"%zu of %zu HCAs have no name, such as mlx5_0, in their description",
			nameless, f->hca.n);
	else
		fabric_sum(j, FAB_RAIL, FB_CHECK_SKIP,
			"no majority tells where HCAs belong: hosts have one HCA, are fewer than three, or "
			"share no leaves");
}

/* ---- states ---------------------------------------------------------------------------------- */

void fabric_judge_states(struct fabric_judge *j)
{
	static const char *const names[] = {[FABRIC_INIT] = "Initialize", [FABRIC_ARMED] = "Armed"};
	const struct fabric *f = j->f;
	struct fb_finding o;
	char name[FABRIC_LABEL], other[FABRIC_LABEL];
	size_t active = 0;
	for (size_t i = 0; i < f->port.n; i++) {
		const struct fabric_port *p = &f->port.v[i];
		active += p->state == FABRIC_ACTIVE;
		if (p->state != FABRIC_INIT && p->state != FABRIC_ARMED)
			continue;
		fabric_start(j, FAB_STATE, &o, "%s", fabric_port_label(f, (int)i, name));
		fb_find(&o, FB_CHECK_WARN, "up, but %s", names[p->state]);
		if (p->peer >= 0)
			fb_find(&o, FB_CHECK_WARN, "up, but %s; at the other end %s",
				names[p->state], fabric_port_label(f, p->peer, other));
		fb_find_expected(&o, fabric_checks[FAB_STATE].source, "Active");
		fabric_keep(j, FAB_STATE, &o);
	}
	for (size_t i = 0; i < f->link.n; i++) {
		const struct fabric_link *l = &f->link.v[i];
		if (f->port.v[l->a].node != f->port.v[l->b].node)
			continue;
		fabric_start(j, FAB_STATE, &o, "%s", fabric_port_label(f, l->a, name));
		fb_find(&o, FB_CHECK_WARN, "joined to %s: a cable back to its own device",
			fabric_port_label(f, l->b, other));
		fb_find_expected(&o, "a cable joins two devices", "another device");
		fb_find_remedy(
			&o, "the link goes down", "take the cable or the loopback plug away");
		fabric_keep(j, FAB_STATE, &o);
	}
	if (j->rows[FAB_STATE])
		return;
	if (f->states)
		fabric_sum(j, FAB_STATE, FB_CHECK_PASS, "%zu ports are active, none is only up",
			active);
	else
		fabric_sum(j, FAB_STATE, FB_CHECK_SKIP,
			"%s tells no port states: iblinkinfo -l and --live do", f->source);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* infiniband-diags, etc/error_thresholds. Discards and what another port marked bad are no fault of
 * this link; one in ten million packets is the rate below which they are no matter. */
static const struct {
	uint64_t over;
	bool fault;
} limits[FABRIC_COUNTERS] = {
	[FABRIC_SYMBOL] = {10, true},
	[FABRIC_RECOVERY] = {10, true},
	[FABRIC_DOWNED] = {10, true},
	[FABRIC_RCV] = {10, true},
	[FABRIC_REMOTE] = {100, false},
	[FABRIC_DISCARD] = {100, false},
	[FABRIC_XMIT_CONSTRAINT] = {100, false},
	[FABRIC_RCV_CONSTRAINT] = {100, false},
	[FABRIC_INTEGRITY] = {10, true},
	[FABRIC_OVERRUN] = {10, true},
	[FABRIC_VL15] = {100, false},
};
#define RARE 1e-7

static bool rare(const struct fabric_counters *c, int i)
{
	int packets = i == FABRIC_REMOTE || i == FABRIC_RCV_CONSTRAINT ? FABRIC_RCV_PKTS
								       : FABRIC_XMIT_PKTS;
	return (c->told >> packets & 1) && c->v[packets] > 0 &&
	       (double)c->v[i] <= RARE * (double)c->v[packets];
}

static void judge_port(struct fabric_judge *j, const struct fabric_counters *c)
{
	const struct fabric *f = j->f;
	char text[256] = "", limit[192] = "", name[FABRIC_LABEL], other[FABRIC_LABEL];
	enum fb_check_state s = FB_CHECK_PASS;
	struct fb_finding o;
	size_t n = 0, m = 0;
	for (int i = 0; i < FABRIC_COUNTERS; i++) {
		if (!(c->told >> i & 1) || !limits[i].over || c->v[i] == 0)
			continue;
		bool over = c->v[i] > limits[i].over && (limits[i].fault || !rare(c, i));
		if (over && limits[i].fault)
			s = FB_CHECK_FAIL;
		else if (over && s == FB_CHECK_PASS)
			s = FB_CHECK_WARN;
		if (n + 64 < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %" PRIu64,
				n ? ", " : "", fabric_counter_names[i], c->v[i]);
		if (over && m + 48 < sizeof(limit))
			m += (size_t)snprintf(limit + m, sizeof(limit) - m, "%s%s at most %" PRIu64,
				m ? ", " : "", fabric_counter_names[i], limits[i].over);
	}
	if (s == FB_CHECK_PASS)
		return;
	fabric_start(j, FAB_COUNTERS, &o, "%s", fabric_port_label(f, (int)c->port, name));
	int peer = f->port.v[c->port].peer;
	fb_find(&o, s, "%.160s%s%.80s", text, peer >= 0 ? "; at the other end " : "",
		peer >= 0 ? fabric_port_label(f, peer, other) : "");
	fb_find_expected(&o, fabric_checks[FAB_COUNTERS].source, "%s", limit);
	fabric_keep(j, FAB_COUNTERS, &o);
}

void fabric_judge_counters(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	for (size_t i = 0; i < f->counters.n; i++)
		judge_port(j, &f->counters.v[i]);
	if (f->unplaced)
		fabric_sum(j, FAB_COUNTERS, FB_CHECK_INFO,
			"the counters of %u port%s belong to none in this fabric", f->unplaced,
			f->unplaced == 1 ? "" : "s");
	if (f->silent)
		fabric_sum(j, FAB_COUNTERS, f->counted ? FB_CHECK_INFO : FB_CHECK_SKIP,
			"%u node%s did not answer for counters: is a subnet manager running? sminfo",
			f->silent, f->silent == 1 ? "" : "s");
	else if (!f->counted)
		fabric_sum(j, FAB_COUNTERS, FB_CHECK_SKIP,
			"no counters: ibqueryerrors > FILE and --counters FILE, or --live");
	if (f->counted && !j->bad[FAB_COUNTERS])
		fabric_sum(j, FAB_COUNTERS, FB_CHECK_PASS,
			"%zu port%s told, none over its thresholds", f->counters.n,
			f->counters.n == 1 ? "" : "s");
}

/* ---- GUIDs ----------------------------------------------------------------------------------- */

static void zero_guids(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct fb_finding o;
	for (size_t i = 0; i < f->node.n; i++) {
		const struct fabric_node *n = &f->node.v[i];
		if (n->guid || n->by_id)
			continue;
		fabric_start(
			j, FAB_GUID, &o, "%s", n->name[0] && !f->anonymous ? n->name : "a node");
		fb_find(&o, FB_CHECK_FAIL, "its GUID is 0");
		fb_find_expected(&o, "IBTA 1.4, 4.1.1", "a GUID of its own");
		fabric_keep(j, FAB_GUID, &o);
	}
}

static void conflicts(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct fb_finding o;
	char name[FABRIC_LABEL], a[FABRIC_LABEL], b[FABRIC_LABEL];
	for (size_t i = 0; i < f->conflict.n; i++) {
		const struct fabric_conflict *c = &f->conflict.v[i];
		int node = c->port < 0 ? c->first : f->port.v[c->port].node;
		bool mild = f->node.v[node].aggregation;
		enum fb_check_state s = mild ? FB_CHECK_WARN : FB_CHECK_FAIL;
		if (c->port < 0) {
			fabric_start(j, FAB_GUID, &o, "%s", fabric_label(f, node, name));
			fb_find(&o, s, "described twice, again in line %u", c->line);
		} else {
			fabric_start(j, FAB_GUID, &o, "%s", fabric_port_label(f, c->port, name));
			fb_find(&o, s, "joined to itself, by line %u", c->line);
			if (c->first != c->port)
				fb_find(&o, s, "joined to %.80s and, by line %u, to %.80s",
					fabric_port_label(f, c->first, a), c->line,
					fabric_port_label(f, c->second, b));
		}
		fb_find_expected(&o, "IBTA 1.4, 4.1.1",
			"one device with this GUID, and a file of one fabric at one moment");
		fabric_keep(j, FAB_GUID, &o);
	}
}

static void port_guids(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct fb_finding o;
	char name[FABRIC_LABEL], other[FABRIC_LABEL];
	for (size_t i = 0; i < f->port.n; i++) {
		const struct fabric_port *p = &f->port.v[i];
		int first = p->guid ? fabric_map_get(&f->by_port_guid, p->guid) : -1;
		if (first < 0 || first == (int)i)
			continue;
		/* A second device with the node's GUID too has been told. */
		if (f->node.v[f->port.v[first].node].guid == f->node.v[p->node].guid &&
			f->port.v[first].num == p->num)
			continue;
		fabric_start(j, FAB_GUID, &o, "%s", fabric_port_label(f, (int)i, name));
		fb_find(&o, FB_CHECK_FAIL, "its port GUID is also that of %s",
			fabric_port_label(f, first, other));
		fb_find_expected(&o, "IBTA 1.4, 4.1.1", "a GUID of its own");
		fabric_keep(j, FAB_GUID, &o);
	}
}

void fabric_judge_guids(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	size_t by_id = 0;
	zero_guids(j);
	conflicts(j);
	port_guids(j);
	for (size_t i = 0; i < f->node.n; i++)
		by_id += f->node.v[i].by_id;
	if (j->rows[FAB_GUID])
		return;
	if (by_id == f->node.n)
		fabric_sum(j, FAB_GUID, FB_CHECK_SKIP, "the file names its nodes without GUIDs");
	else
		fabric_sum(j, FAB_GUID, FB_CHECK_PASS, "%zu nodes, each with a GUID of its own",
			f->node.n - by_id);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

void fabric_judge_names(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct fb_finding o;
	char name[FABRIC_LABEL], other[FABRIC_LABEL];
	for (size_t i = 0; i < f->node.n; i++) {
		const struct fabric_node *n = &f->node.v[i];
		bool twice = n->shared_name && n->kind == FABRIC_CA && !n->factory;
		if (n->aggregation || n->by_id || (!n->factory && !twice && !n->ambiguous))
			continue;
		if (twice && !n->ambiguous && !n->defined)
			continue;
		int peer = n->first >= 0 ? f->port.v[n->first].peer : -1;
		fabric_start(j, FAB_NAMES, &o, "%s", fabric_label(f, (int)i, name));
		fb_find(&o, FB_CHECK_WARN, "%s%s%.100s",
			!n->name[0]  ? "no description"
			: n->factory ? "the maker's description"
				     : "another node has the same description",
			peer >= 0 && n->kind == FABRIC_CA ? "; on " : "",
			peer >= 0 && n->kind == FABRIC_CA ? fabric_port_label(f, peer, other) : "");
		fb_find_expected(&o, "rdma-ndd(8)", "%s",
			n->kind == FABRIC_SWITCH ? "the switch's name"
						 : "HOST HCA, such as node3 mlx5_0");
		if (n->kind == FABRIC_SWITCH)
			fb_find_remedy(&o, NULL,
				"name it: the switch's hostname, or a line in "
				"/etc/ib-node-name-map");
		fabric_keep(j, FAB_NAMES, &o);
	}
	if (!j->rows[FAB_NAMES])
		fabric_sum(j, FAB_NAMES, FB_CHECK_PASS, "every host is told by its description");
}
