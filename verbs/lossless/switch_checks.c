// SPDX-License-Identifier: Apache-2.0
/*
 * S01-S06: what leads a packet into a lossless class, and whether there is room for it. A class is
 * lossless where its queue stops for the same PFC priority that its group asks a pause for.
 */
#include <stdio.h>
#include <string.h>

#include "bench/core/result.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/switch_priv.h"

#define BUFFERS_MOVE "buffers are set up anew: packets may be lost for a moment"

/* ---- what checks share ----------------------------------------------------------------------- */

bool switch_sonic_format(const struct switch_input *in)
{
	return in->sw->vendor == &switch_sonic;
}

bool switch_need(const struct switch_input *in, enum switch_section s, struct fb_finding *f)
{
	const char *name = in->sw->vendor->sections[s];
	fb_find_read(f, "%s in %.200s", name, in->sw->path);
	if (in->sw->has[s])
		return true;
	fb_find(f, FB_CHECK_SKIP, "not available: %s is not in the file", name);
	return false;
}

/* Everything that leads from a DSCP to a pause. */
static bool need_chain(const struct switch_input *in, struct fb_finding *f)
{
	return switch_need(in, SWITCH_PFC, f) && switch_need(in, SWITCH_CLASS_QUEUE, f) &&
	       switch_need(in, SWITCH_CLASS_GROUP, f) && switch_need(in, SWITCH_DSCP, f);
}

static bool wants_dscp(const struct switch_input *in)
{
	return in->profile->given && in->profile->roce_dscp[0] >= 0;
}

unsigned switch_roce(const struct switch_input *in, struct fb_finding *f)
{
	unsigned lossless, roce = 0;
	if (!need_chain(in, f))
		return 0;
	lossless = switch_lossless(in->port);
	if (lossless == 0) {
		fb_find(f, FB_CHECK_SKIP, "no class is lossless on this port: see S02");
		return 0;
	}
	if (!wants_dscp(in))
		return lossless;
	for (int i = 0; i < 4 && in->profile->roce_dscp[i] >= 0; i++) {
		int c = in->port->dscp_class[in->profile->roce_dscp[i]];
		roce |= c >= 0 ? lossless & 1u << c : 0;
	}
	if (roce == 0)
		fb_find(f, FB_CHECK_SKIP, "DSCP %d is in no lossless class on this port: see S02",
			in->profile->roce_dscp[0]);
	return roce;
}

/* ---- S01, S02 -------------------------------------------------------------------------------- */

void switch_s01(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	if (!switch_need(in, SWITCH_BINDINGS, f) || !switch_need(in, SWITCH_DSCP, f))
		return;
	if (!p->dscp_map[0])
		fb_find(f, FB_CHECK_FAIL, "no DSCP map is bound: DSCPs are not looked at");
	else if (p->dscp_missing)
		fb_find(f, FB_CHECK_FAIL, "bound to map %s, which %s does not have", p->dscp_map,
			in->sw->vendor->sections[SWITCH_DSCP]);
	else
		fb_find(f, FB_CHECK_PASS, "map %s", p->dscp_map);
	fb_find_expected(f, "a packet's class comes from its DSCP", "a map that exists");
	if (switch_sonic_format(in))
		fb_find_remedy(f, NULL,
			"sonic-db-cli CONFIG_DB hset 'PORT_QOS_MAP|%s' dscp_to_tc_map AZURE",
			p->name);
	else
		fb_find_remedy(
			f, NULL, "nv set qos mapping default-global trust both; nv config apply");
}

static void map_remedy(const struct switch_input *in, int dscp, int prio, struct fb_finding *f)
{
	if (switch_sonic_format(in))
		fb_find_remedy(f, "all ports with this map",
			"sonic-db-cli CONFIG_DB hset 'DSCP_TO_TC_MAP|%s' %d %d",
			in->port->dscp_map[0] ? in->port->dscp_map : "AZURE", dscp, prio);
	else
		fb_find_remedy(f, "all ports with this profile",
			"nv set qos mapping default-global dscp %d switch-priority %d; nv config "
			"apply",
			dscp, prio);
}

static const char *number_text(int n, char buf[8])
{
	if (n >= 0)
		snprintf(buf, 8, "%d", n & 63);
	return n >= 0 ? buf : "none";
}

#define MAP(name) ((name)[0] ? (name) : "AZURE")

/* The class is right, and something behind it is not. */
static void chain_remedy(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	if (!switch_sonic_format(in))
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv set qos pfc default-global switch-priority %d; nv set qos traffic-pool "
			"roce-lossless switch-priority %d; nv config apply",
			c, c);
	else if (p->pfc <= 0 || !(p->pfc >> c & 1))
		fb_find_remedy(
			f, BUFFERS_MOVE, "config interface pfc priority %s %d on", p->name, c);
	else if (!p->queue_map[0] || !p->group_map[0])
		fb_find_remedy(f, BUFFERS_MOVE,
			"sonic-db-cli CONFIG_DB hset 'PORT_QOS_MAP|%s' tc_to_queue_map %s "
			"tc_to_pg_map %s",
			p->name, MAP(p->queue_map), MAP(p->group_map));
	else
		fb_find_remedy(f, BUFFERS_MOVE,
			"sonic-db-cli CONFIG_DB hset 'TC_TO_PRIORITY_GROUP_MAP|%s' %d %d; "
			"sonic-db-cli CONFIG_DB hset 'TC_TO_QUEUE_MAP|%s' %d %d",
			p->group_map, c, p->pfc_group[c], p->queue_map, c, p->pfc_queue[c]);
}

static bool wanted_priority(const struct profile *w, int prio)
{
	if (w->pfc_set > 0)
		return w->pfc_set >> prio & 1;
	return w->roce_prio < 0 || w->roce_prio == prio;
}

/* One DSCP of the profile, through the whole chain. @return false: it fails, and f says so */
static bool follow(const struct switch_input *in, int dscp, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	const struct profile *w = in->profile;
	char pfc[64], g[8], q[8];
	int c = p->dscp_class[dscp];
	int to = w->roce_prio >= 0 ? w->roce_prio
		 : p->pfc > 0      ? __builtin_ctz((unsigned)p->pfc)
				   : 3;
	if (c < 0) {
		fb_find(f, FB_CHECK_FAIL, "DSCP %d is not in map %s", dscp,
			p->dscp_map[0] ? p->dscp_map : "(none)");
		map_remedy(in, dscp, to, f);
		return false;
	}
	int prio = switch_pfc_priority(p, c);
	if (prio >= 0 && wanted_priority(w, prio))
		return true;
	if (prio >= 0)
		fb_find(f, FB_CHECK_FAIL, "DSCP %d is %s %d with PFC priority %d", dscp,
			in->sw->vendor->class_word, c, prio);
	else
		fb_find(f, FB_CHECK_FAIL,
			"DSCP %d is %s %d, priority group %s, %s %s: without PFC (PFC is on: %s)",
			dscp, in->sw->vendor->class_word, c, number_text(p->class_group[c], g),
			in->sw->vendor->queue_word, number_text(p->class_queue[c], q),
			check_bits_text((unsigned)p->pfc, pfc, sizeof(pfc)));
	if (c == to)
		chain_remedy(in, c, f);
	else
		map_remedy(in, dscp, to, f);
	return false;
}

static void pfc_remedy(
	const struct switch_input *in, unsigned want, unsigned have, struct fb_finding *f)
{
	unsigned differ = want ^ have;
	int prio = differ ? __builtin_ctz(differ) : 3;
	if (switch_sonic_format(in))
		fb_find_remedy(f, BUFFERS_MOVE, "config interface pfc priority %s %d %s",
			in->port->name, prio, want >> prio & 1 ? "on" : "off");
	else
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv set qos pfc default-global switch-priority %d; nv config apply",
			want ? __builtin_ctz(want) : prio);
}

static void s02_profile(const struct switch_input *in, struct fb_finding *f)
{
	const struct profile *w = in->profile;
	const struct switch_port *p = in->port;
	char have[64], want[64];
	if (w->pfc_set >= 0)
		fb_find_expected(f, SWITCH_PROFILE(in), "DSCP %d with PFC on: %s", w->roce_dscp[0],
			check_bits_text((unsigned)w->pfc_set, want, sizeof(want)));
	else
		fb_find_expected(f, SWITCH_PROFILE(in), "DSCP %d with PFC", w->roce_dscp[0]);
	for (int i = 0; i < 4 && w->roce_dscp[i] >= 0 && w->pfc_set != 0; i++)
		if (!follow(in, w->roce_dscp[i], f))
			return;
	bool same = w->pfc_set < 0 || w->pfc_set == p->pfc;
	fb_find(f, same ? FB_CHECK_PASS : FB_CHECK_FAIL, "DSCP %d is %s %d; PFC is on: %s",
		w->roce_dscp[0], in->sw->vendor->class_word, p->dscp_class[w->roce_dscp[0]],
		check_bits_text((unsigned)p->pfc, have, sizeof(have)));
	if (!same)
		pfc_remedy(in, (unsigned)w->pfc_set, (unsigned)p->pfc, f);
}

/* That is S01's to tell. */
static bool unbound(const struct switch_port *p)
{
	return !p->dscp_map[0] || p->dscp_missing;
}

static bool has_dscp(const struct switch_port *p, int c)
{
	for (int d = 0; d < 64; d++)
		if (p->dscp_class[d] == c)
			return true;
	return false;
}

/* The DSCPs of a class: "3", "24-31". */
static const char *dscps_text(const struct switch_port *p, int c, char *buf, size_t len)
{
	size_t at = 0;
	buf[0] = '\0';
	for (int d = 0; d < 64 && at + 12 < len; d++) {
		int to = d;
		if (p->dscp_class[d] != c)
			continue;
		while (to + 1 < 64 && p->dscp_class[to + 1] == c)
			to++;
		int n = to > d ? snprintf(buf + at, len - at, "%s%d-%d", at ? "," : "", d, to)
			       : snprintf(buf + at, len - at, "%s%d", at ? "," : "", d);
		at += n > 0 ? (size_t)n : 0;
		d = to;
	}
	return buf;
}

/* Without a profile: what has PFC in one place must have it in all, and something must lead there.
 */
static void s02_consistent(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	char text[200] = "", dscps[64], g[8], q[8];
	size_t at = 0;
	fb_find_expected(f, "a class is lossless in all of its parts or not at all",
		"queue and group of a class with the same PFC priority");
	for (int c = 0; c < SWITCH_CLASSES; c++) {
		int prio = switch_pfc_priority(p, c);
		bool own = p->pfc >> c & 1;
		if (own && prio < 0) {
			fb_find(f, FB_CHECK_FAIL,
				"PFC is on for %d, but %s %d is priority group %s, %s %s: not both "
				"are its own",
				c, in->sw->vendor->class_word, c, number_text(p->class_group[c], g),
				in->sw->vendor->queue_word, number_text(p->class_queue[c], q));
			chain_remedy(in, c, f);
			return;
		}
		if (own && unbound(p)) {
			fb_find(f, FB_CHECK_SKIP, "no DSCP is looked at on this port: see S01");
			return;
		}
		if (own && !has_dscp(p, c)) {
			fb_find(f, FB_CHECK_WARN, "PFC is on for %d, but no DSCP leads to %s %d", c,
				in->sw->vendor->class_word, c);
			map_remedy(in, c == 3 ? 26 : c, c, f);
			return;
		}
		if (prio < 0 || !has_dscp(p, c) || at + 1 >= sizeof(text))
			continue;
		int n = snprintf(text + at, sizeof(text) - at, "%sDSCP %s is %s %d", at ? "; " : "",
			dscps_text(p, c, dscps, sizeof(dscps)), in->sw->vendor->class_word, c);
		at += n > 0 ? (size_t)n : 0;
	}
	fb_find(f, FB_CHECK_PASS, "%s: lossless", text);
}

void switch_s02(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	if (!need_chain(in, f))
		return;
	fb_find_read(f, "%s, %s, %s, %s in %.160s", in->sw->vendor->sections[SWITCH_DSCP],
		in->sw->vendor->sections[SWITCH_CLASS_GROUP],
		in->sw->vendor->sections[SWITCH_CLASS_QUEUE], in->sw->vendor->sections[SWITCH_PFC],
		in->sw->path);
	if (p->pfc < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s has no entry for this port",
			in->sw->vendor->sections[SWITCH_PFC]);
	} else if (p->pfc_one_way) {
		fb_find(f, FB_CHECK_FAIL, "PFC goes one way only: sent or obeyed, not both");
		fb_find_expected(f, "IEEE 802.1Q-2018, clause 36", "both ways");
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv set qos pfc default-global rx enable; nv set qos pfc default-global tx "
			"enable; nv config apply");
	} else if (wants_dscp(in) && unbound(p)) {
		fb_find(f, FB_CHECK_SKIP, "no DSCP is looked at on this port: see S01");
	} else if (wants_dscp(in)) {
		s02_profile(in, f);
	} else if (in->profile->pfc_set > 0 && in->profile->pfc_set != p->pfc) {
		char have[64], want[64];
		fb_find(f, FB_CHECK_FAIL, "PFC is on: %s",
			check_bits_text((unsigned)p->pfc, have, sizeof(have)));
		fb_find_expected(f, SWITCH_PROFILE(in), "PFC on: %s",
			check_bits_text((unsigned)in->profile->pfc_set, want, sizeof(want)));
		pfc_remedy(in, (unsigned)in->profile->pfc_set, (unsigned)p->pfc, f);
	} else if (p->pfc == 0) {
		fb_find(f, in->profile->pfc_set == 0 ? FB_CHECK_PASS : FB_CHECK_WARN,
			"no priority has PFC: nothing is lossless on this port");
		chain_remedy(in, 3, f);
	} else {
		s02_consistent(in, f);
	}
}

/* ---- S03 ------------------------------------------------------------------------------------- */

static bool is_named(const struct switch_port *p, const char *name)
{
	return strcmp(p->name, name) == 0 || (p->alias[0] && strcmp(p->alias, name) == 0);
}

const struct switch_port *switch_peer(const struct switch_input *in, const struct switch_facts **sw)
{
	for (int i = 0; i < in->n_all && in->port->neighbour[0]; i++) {
		const struct switch_facts *s = in->all[i];
		const struct switch_port *p =
			switch_same_host(s->name, in->port->neighbour)
				? switch_named_port(s, in->port->neighbour_port)
				: NULL;
		if (!p)
			continue;
		*sw = s;
		return p;
	}
	return NULL;
}

static const struct port_facts *host_port(const struct switch_input *in)
{
	for (int i = 0; i < in->n_hosts; i++) {
		const struct node_facts *n = in->hosts[i];
		if (!switch_same_host(n->host, in->port->neighbour))
			continue;
		for (int k = 0; k < n->ports; k++)
			if (strcmp(n->port[k].netdev, in->port->neighbour_port) == 0 ||
				strcmp(n->port[k].device, in->port->neighbour_port) == 0)
				return &n->port[k];
	}
	return NULL;
}

static void compare_pfc(const struct switch_input *in, int there, struct fb_finding *f)
{
	char a[64], b[64];
	const struct switch_port *p = in->port;
	bool same = p->pfc == there;
	fb_find(f, same ? FB_CHECK_PASS : FB_CHECK_FAIL, "PFC here: %s; at %s %s: %s",
		check_bits_text((unsigned)p->pfc, a, sizeof(a)), p->neighbour, p->neighbour_port,
		check_bits_text((unsigned)there, b, sizeof(b)));
	fb_find_expected(f, "the other end of the cable", "PFC on: %s", b);
	/* Where the site has decided, its set is right at both ends; else the larger one. */
	int want = in->profile->pfc_set > 0 ? in->profile->pfc_set : p->pfc | there;
	if (!same)
		pfc_remedy(in, (unsigned)want, (unsigned)p->pfc, f);
	if (!same && in->profile->pfc_set > 0 && want == p->pfc)
		fb_find_remedy(f, BUFFERS_MOVE, "this end is as %s says: mend it at %s %s",
			SWITCH_PROFILE(in), p->neighbour, p->neighbour_port);
	else if (!same && want == p->pfc)
		fb_find_remedy(f, BUFFERS_MOVE,
			"this end has what is missing at %s %s: mend it there", p->neighbour,
			p->neighbour_port);
}

void switch_s03(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port, *peer;
	const struct switch_facts *sw = NULL;
	const struct port_facts *host;
	if (!switch_need(in, SWITCH_PFC, f) || !switch_need(in, SWITCH_NEIGHBOURS, f))
		return;
	if (in->sw->lldp[0])
		fb_find_read(f, "%s in %.110s, LLDP in %.110s",
			in->sw->vendor->sections[SWITCH_PFC], in->sw->path, in->sw->lldp);
	peer = switch_peer(in, &sw);
	host = peer ? NULL : host_port(in);
	if (!p->neighbour[0])
		fb_find(f, FB_CHECK_SKIP, "not available: %s has no entry for this port",
			in->sw->vendor->sections[SWITCH_NEIGHBOURS]);
	else if (!peer && !host)
		fb_find(f, FB_CHECK_SKIP, "not available: %s %s is not among what was given",
			p->neighbour, p->neighbour_port);
	else if (p->pfc < 0 || (peer && peer->pfc < 0) || (host && !fact_known(&host->dcb.pfc_f)))
		fb_find(f, FB_CHECK_SKIP, "not available: PFC is not told at %s",
			p->pfc < 0 ? "this end" : p->neighbour);
	else if (peer && peer->neighbour[0] &&
		 /* A file without a host name may be of any switch. */
		 ((in->sw->named && !switch_same_host(peer->neighbour, in->sw->name)) ||
			 !is_named(p, peer->neighbour_port)))
		fb_find(f, FB_CHECK_WARN, "%s %s names %s %s as its neighbour, not this port",
			p->neighbour, p->neighbour_port, peer->neighbour, peer->neighbour_port);
	else
		compare_pfc(in, peer ? peer->pfc : host->dcb.pfc.en, f);
}

/* ---- one class after the other --------------------------------------------------------------- */

static int rank(enum fb_check_state s)
{
	static const int ranks[] = {[FB_CHECK_PASS] = 0,
		[FB_CHECK_INFO] = 1,
		[FB_CHECK_SKIP] = 2,
		[FB_CHECK_ERROR] = 3,
		[FB_CHECK_WARN] = 4,
		[FB_CHECK_FAIL] = 5};
	return ranks[s];
}

void switch_each_class(const struct switch_input *in,
	void (*one)(const struct switch_input *, int, struct fb_finding *), struct fb_finding *f)
{
	unsigned roce = switch_roce(in, f);
	bool first = true;
	for (int c = 0; c < SWITCH_CLASSES; c++) {
		struct fb_finding g = {.state = FB_CHECK_ERROR};
		if (!(roce >> c & 1))
			continue;
		memcpy(g.subject, f->subject, sizeof(g.subject));
		memcpy(g.read, f->read, sizeof(g.read));
		one(in, c, &g);
		if (first || rank(g.state) > rank(f->state)) {
			*f = g;
		} else if (g.state == f->state && strcmp(g.observed, f->observed) != 0) {
			size_t n = strlen(f->observed);
			snprintf(f->observed + n, sizeof(f->observed) - n, "; %.200s", g.observed);
		}
		first = false;
	}
}

/* ---- S04 ------------------------------------------------------------------------------------- */

static void s04(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	char dscps[64];
	fb_find_expected(f, "a pause stops all of a queue and speaks for all of a group",
		"no other %s there", in->sw->vendor->class_word);
	for (int o = 0; o < SWITCH_CLASSES; o++) {
		/* NVIDIA's lossy pool is one group for all of its priorities: that is S06's. */
		bool lossy = !switch_sonic_format(in) && !p->buffer[p->class_group[c]].lossless;
		bool group = !lossy && p->class_group[o] == p->class_group[c];
		bool queue = p->class_queue[o] == p->class_queue[c];
		if (o == c || (!group && !queue) || !has_dscp(p, o))
			continue;
		fb_find(f, p->pfc >> o & 1 ? FB_CHECK_WARN : FB_CHECK_FAIL,
			"%s %d (DSCP %s) shares %s%s%s with lossless %s %d",
			in->sw->vendor->class_word, o, dscps_text(p, o, dscps, sizeof(dscps)),
			group ? "the priority group" : "", group && queue ? " and " : "",
			queue ? in->sw->vendor->queue_word : "", in->sw->vendor->class_word, c);
		if (switch_sonic_format(in))
			fb_find_remedy(f, BUFFERS_MOVE, "sonic-db-cli CONFIG_DB hset '%s|%s' %d 0",
				group ? "TC_TO_PRIORITY_GROUP_MAP" : "TC_TO_QUEUE_MAP",
				group ? MAP(p->group_map) : MAP(p->queue_map), o);
		else
			fb_find_remedy(f, BUFFERS_MOVE,
				"nv set qos egress-queue-mapping default-global switch-priority %d "
				"traffic-class 0; nv config apply",
				o);
		return;
	}
	fb_find(f, FB_CHECK_PASS, "%s %d has priority group %d and %s %d to itself",
		in->sw->vendor->class_word, c, p->class_group[c], in->sw->vendor->queue_word,
		p->class_queue[c]);
}

void switch_s04(const struct switch_input *in, struct fb_finding *f)
{
	switch_each_class(in, s04, f);
}

/* ---- S05: headroom --------------------------------------------------------------------------- */

/* What still comes after a pause was asked for, in bytes. The least that physics allows: the frame
 * that is being sent before the pause frame, the one the other end has begun, and what is on the
 * cable both ways (light in fibre takes 5 ns a metre). */
static int64_t least_headroom(int64_t mbps, int64_t mtu, int64_t cable_m)
{
	int64_t frame = mtu < 4200 ? mtu : 4200; /* a RoCE packet of 4096 bytes */
	return mtu + frame + 2 * 5 * cable_m * mbps / 8000;
}

/* With the time both ends take to answer: Linux mlx5 en/port_buffer.c, calculate_xoff(), which
 * takes 40 Gb/s for less. */
static int64_t good_headroom(int64_t mbps, int64_t mtu, int64_t cable_m)
{
	int64_t rate = mbps < 40000 ? 40000 : mbps;
	return (301 + 216 * cable_m / 100) * rate / 1000 + 272 * mtu / 100;
}

static void headroom_remedy(const struct switch_input *in, int64_t cable_m, struct fb_finding *f)
{
	if (switch_sonic_format(in))
		fb_find_remedy(f, BUFFERS_MOVE, "config interface cable-length %s %lldm",
			in->port->name, (long long)cable_m);
	else
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv set qos pfc default-global cable-length %lld; nv config apply",
			(long long)cable_m);
}

/* A site's own profile keeps its size whatever the cable is. */
static void size_remedy(const struct switch_input *in, const struct switch_buffer *b, int64_t good,
	struct fb_finding *f)
{
	if (switch_sonic_format(in))
		fb_find_remedy(f, BUFFERS_MOVE, "config buffer profile set %s --xoff %lld", b->name,
			(long long)good);
	else
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv unset qos pfc default-global port-buffer; nv unset qos pfc "
			"default-global xoff-threshold; nv config apply");
}

/* SONiC's own profiles carry in their names what they were looked up for. @return false: f fails */
static bool looked_up(const struct switch_input *in, const struct switch_buffer *b, bool *own,
	struct fb_finding *f)
{
	long long speed, cable;
	const struct switch_port *p = in->port;
	*own = sscanf(b->name, "pg_lossless_%lld_%lldm_", &speed, &cable) == 2;
	if (!*own || (speed == p->speed_mbps && cable >= p->cable_m))
		return true;
	fb_find(f, FB_CHECK_FAIL,
		"%s is for %lld Mb/s and %lld m; the port has %lld Mb/s and %lld m", b->name, speed,
		cable, (long long)p->speed_mbps, (long long)p->cable_m);
	headroom_remedy(in, p->cable_m, f);
	return false;
}

/* Is the headroom really there to be taken? */
static bool reserved(
	const struct switch_input *in, const struct switch_buffer *b, struct fb_finding *f)
{
	if (!switch_sonic_format(in) || !in->sw->has[SWITCH_POOLS])
		return true;
	if (b->pool_shared > 0 && b->pool_shared < b->headroom) {
		fb_find(f, FB_CHECK_FAIL, "xoff %lld B, but all ports together share %lld B of it",
			(long long)b->headroom, (long long)b->pool_shared);
		return false;
	}
	if (b->pool_shared < 0 && b->size >= 0 && b->size < b->headroom) {
		fb_find(f, FB_CHECK_WARN,
			"xoff %lld B, but size reserves %lld B and the pool shares no headroom",
			(long long)b->headroom, (long long)b->size);
		return false;
	}
	return true;
}

static void s05(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	const struct switch_buffer *b = &p->buffer[p->class_group[c]];
	int want = in->profile->given ? in->profile->cable_m : -1;
	bool own = false;
	fb_find_read(f, "%s, %s, %s in %.200s", in->sw->vendor->sections[SWITCH_BUFFERS],
		in->sw->vendor->sections[SWITCH_CABLES], in->sw->vendor->sections[SWITCH_PORTS],
		in->sw->path);
	if (p->cable_m >= 0 && want > p->cable_m) {
		fb_find(f, FB_CHECK_FAIL, "the switch reckons with %lld m of cable",
			(long long)p->cable_m);
		fb_find_expected(f, SWITCH_PROFILE(in), "%d m", want);
		headroom_remedy(in, want, f);
		return;
	}
	if (b->calculated && p->cable_m >= 0) {
		fb_find(f, want >= 0 ? FB_CHECK_PASS : FB_CHECK_INFO,
			"the switch reckons the headroom itself, for %lld m of cable",
			(long long)p->cable_m);
		return;
	}
	if (p->cable_m < 0 && !switch_need(in, SWITCH_CABLES, f))
		return;
	if (!b->calculated && b->headroom < 0) {
		if (switch_need(in, SWITCH_BUFFERS, f))
			fb_find(f, FB_CHECK_SKIP, "group %d has no headroom to judge: see S06",
				p->class_group[c]);
		return;
	}
	if (p->speed_mbps < 0 || p->mtu < 0 || p->cable_m < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s of this port is not in the file",
			p->cable_m < 0      ? "cable length"
			: p->speed_mbps < 0 ? "speed"
					    : "MTU");
		return;
	}
	int64_t least = least_headroom(p->speed_mbps, p->mtu, p->cable_m);
	int64_t good = good_headroom(p->speed_mbps, p->mtu, p->cable_m);
	fb_find_expected(f, "Linux mlx5 en/port_buffer.c, calculate_xoff()",
		"%lld B (%lld Mb/s, MTU %lld, %lld m); no less than %lld B are on the wire",
		(long long)good, (long long)p->speed_mbps, (long long)p->mtu, (long long)p->cable_m,
		(long long)least);
	if (!looked_up(in, b, &own, f) || !reserved(in, b, f))
		return;
	bool enough = b->headroom >= good || (own && b->headroom >= least);
	fb_find(f,
		enough                ? FB_CHECK_PASS
		: b->headroom < least ? FB_CHECK_FAIL
				      : FB_CHECK_WARN,
		"%s: %lld B of headroom%s", b->name, (long long)b->headroom,
		enough && b->headroom < good ? ", from the switch maker's table" : "");
	size_remedy(in, b, good, f);
}

void switch_s05(const struct switch_input *in, struct fb_finding *f)
{
	switch_each_class(in, s05, f);
}

/* ---- S06 ------------------------------------------------------------------------------------- */

static void s06(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	int g = p->class_group[c];
	const struct switch_buffer *b = &p->buffer[g];
	fb_find_expected(f, "without headroom a pause comes too late", "a profile with headroom");
	if (switch_sonic_format(in))
		fb_find_remedy(f, BUFFERS_MOVE,
			"config interface buffer priority-group lossless set %s %d", p->name, g);
	else
		fb_find_remedy(f, BUFFERS_MOVE,
			"nv set qos traffic-pool roce-lossless switch-priority %d; nv config apply",
			c);
	if (!switch_need(in, SWITCH_GROUPS, f))
		return;
	if (!b->name[0] && !in->sw->group_seen[g])
		fb_find(f, FB_CHECK_SKIP,
			"no port of %s has group %d: the switch makes them while it runs; save its "
			"configuration (config save) and give that",
			in->sw->vendor->sections[SWITCH_GROUPS], g);
	else if (!b->name[0])
		fb_find(f, FB_CHECK_FAIL, "group %d has no buffer profile, though other ports have",
			g);
	else if (b->missing)
		fb_find(f, FB_CHECK_FAIL, "group %d names %s, which %s does not have", g, b->name,
			in->sw->vendor->sections[SWITCH_BUFFERS]);
	else if (!b->lossless && switch_sonic_format(in) && !in->sw->has[SWITCH_BUFFERS])
		switch_need(in, SWITCH_BUFFERS, f);
	else if (!b->lossless)
		fb_find(f, FB_CHECK_FAIL, "group %d is lossy: %s has no headroom", g, b->name);
	else
		fb_find(f, FB_CHECK_PASS, "group %d: %s%s", g,
			strcmp(b->name, "NULL") == 0 ? "reckoned by the switch" : b->name,
			b->headroom > 0 ? ", with headroom" : "");
}

void switch_s06(const struct switch_input *in, struct fb_finding *f)
{
	switch_each_class(in, s06, f);
}
