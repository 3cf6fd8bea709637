// SPDX-License-Identifier: Apache-2.0
/*
 * R12-R24: how the port classifies packets, which priorities it pauses, and its congestion control.
 */
#include <stdio.h>
#include <string.h>

#include "verbs/lossless/checks_priv.h"

#define MLX5_FLAP "on mlx5 a new PFC mask takes the link down and up again"

static const char *netdev(const struct check_input *in)
{
	return in->port->netdev[0] ? in->port->netdev : "IF";
}

/* ---- classification -------------------------------------------------------------------------- */

static int dscp_entries(const struct dcb_facts *d)
{
	int n = 0;
	for (int i = 0; i < d->apps; i++)
		n += d->app[i].selector == 5;
	return n;
}

/* "dscp" or "pcp"; NULL: not known, and f is a skip. mlx5 upstream trusts DSCP as soon as there is
 * one DSCP entry in the APP table, and PCP without any. */
const char *check_trust(const struct check_input *in, struct fb_finding *f, char *how, size_t len)
{
	const struct port_facts *p = in->port;
	if (fact_known(&p->trust.f)) {
		fb_find_read(f, "%s", p->trust.f.read);
		snprintf(how, len, "as the driver tells");
		return strcmp(p->trust.v, "dscp") == 0 ? "dscp" : "pcp";
	}
	if (p->trust.f.state == FACT_BROKEN) {
		check_need(&p->trust.f, f);
		return NULL;
	}
	if (fact_known(&p->dcb.trust_f) && p->dcb.trusts > 0) {
		fb_find_read(f, "%s", p->dcb.trust_f.read);
		snprintf(how, len, "first in the APP trust table");
		return p->dcb.trust[0] == 5 ? "dscp" : "pcp";
	}
	if (strcmp(p->family, "mlx5") == 0 && fact_known(&p->dcb.app_f)) {
		int n = dscp_entries(&p->dcb);
		fb_find_read(f, "%s", p->dcb.app_f.read);
		snprintf(how, len, "%d DSCP entries in the APP table", n);
		return n ? "dscp" : "pcp";
	}
	if (check_need(&p->dcb.app_f, f))
		fb_find(f, FB_CHECK_SKIP, "not available: %s does not tell what it trusts",
			p->family);
	return NULL;
}

/* A VLAN device's name, or a GID on one: priority can then come from the tag. */
static bool tagged(const struct port_facts *p)
{
	for (int i = 0; i < p->gids; i++)
		if (strchr(p->gid[i].netdev, '.') || strncmp(p->gid[i].netdev, "vlan", 4) == 0)
			return true;
	return strchr(p->netdev, '.') != NULL;
}

void roce_r12(const struct check_input *in, struct fb_finding *f)
{
	struct used_class used[8];
	char how[64] = "";
	const char *trust = check_trust(in, f, how, sizeof(how));
	if (!trust)
		return;
	const char *want = in->profile->given ? in->profile->trust : "";
	bool untagged_pcp = strcmp(trust, "pcp") == 0 && !tagged(in->port);
	bool used_dscp = check_used_classes(in, used, 8) > 0;
	enum fb_check_state s = FB_CHECK_PASS;
	if (*want)
		s = strcmp(want, trust) == 0 ? FB_CHECK_PASS : FB_CHECK_FAIL;
	else if (untagged_pcp)
		s = used_dscp ? FB_CHECK_FAIL : FB_CHECK_INFO;
	fb_find(f, s, "trusts %s (%s)%s", trust, how,
		untagged_pcp ? "; packets have no VLAN tag: all are priority 0" : "");
	if (*want)
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "%s", want);
	else if (used_dscp)
		fb_find_expected(
			f, used[0].by, "dscp, since traffic class %d is set", used[0].byte);
	if (in->port->vendor_stack)
		fb_find_remedy(f, NULL, "mlnx_qos -i %s --trust dscp", netdev(in));
	else
		fb_find_remedy(f, NULL, "dcb app add dev %s dscp-prio 26:3", netdev(in));
}

void roce_r13(const struct check_input *in, struct fb_finding *f)
{
	struct used_class used[8];
	const char *how = NULL, *why = NULL;
	bool profile = in->profile->given && in->profile->roce_dscp[0] >= 0;
	int n = check_used_classes(in, used, 8);
	if (!profile && n == 0) {
		fb_find(f, FB_CHECK_SKIP,
			"neither a profile nor a traffic class set on this node names a DSCP");
		return;
	}
	int dscp = profile ? in->profile->roce_dscp[0] : used[0].byte >> 2;
	int prio = facts_dscp_priority(in->port, dscp, &how, &why);
	if (prio < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s", why ? why : "the map");
		return;
	}
	fb_find_read(f, "%s", how ? how : "");
	bool judged = profile && in->profile->roce_prio >= 0;
	fb_find(f,
		!judged                          ? FB_CHECK_INFO
		: prio == in->profile->roce_prio ? FB_CHECK_PASS
						 : FB_CHECK_FAIL,
		"DSCP %d is priority %d here", dscp, prio);
	if (!judged)
		return;
	fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "priority %d", in->profile->roce_prio);
	if (in->port->vendor_stack)
		fb_find_remedy(f, NULL, "mlnx_qos -i %s --dscp2prio set,%d,%d", netdev(in), dscp,
			in->profile->roce_prio);
	else
		fb_find_remedy(f, NULL, "dcb app replace dev %s dscp-prio %d:%d", netdev(in), dscp,
			in->profile->roce_prio);
}

static int cnp_dscp(const struct check_input *in, const char **source)
{
	if (fact_known(&in->port->cnp_dscp.f)) {
		*source = in->port->cnp_dscp.f.read;
		return (int)in->port->cnp_dscp.v;
	}
	*source = in->profile->given ? CHECK_PROFILE_SOURCE(in) : NULL;
	return in->profile->given ? in->profile->cnp_dscp : -1;
}

void roce_r14(const struct check_input *in, struct fb_finding *f)
{
	const char *source, *how = NULL, *why = NULL, *whose;
	unsigned pfc = 0;
	int dscp = cnp_dscp(in, &source);
	if (dscp < 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: neither the driver nor a profile tells the DSCP of CNPs");
		return;
	}
	int prio = facts_dscp_priority(in->port, dscp, &how, &why);
	if (prio < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s", why ? why : "the map");
		return;
	}
	if (!check_pfc(in, f, &pfc))
		return;
	fb_find_read(f, "%s; %s", source, how ? how : "");
	unsigned roce = check_roce_priorities(in, &whose, &why);
	bool lossless = (pfc >> prio & 1) || (roce >> prio & 1);
	int want = in->profile->given ? in->profile->cnp_prio : -1;
	bool wrong = want >= 0 && prio != want;
	fb_find(f, lossless || wrong ? FB_CHECK_FAIL : FB_CHECK_PASS,
		"CNPs of DSCP %d are priority %d%s", dscp, prio,
		lossless ? ", which is the lossless class: a pause would hold them back" : "");
	if (want >= 0)
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "priority %d, without PFC", want);
	else
		fb_find_expected(f, "CNPs must pass when RoCE is paused", "a priority without PFC");
	if (in->port->vendor_stack)
		fb_find_remedy(f, NULL, "mlnx_qos -i %s --dscp2prio set,%d,6", netdev(in), dscp);
	else
		fb_find_remedy(f, NULL, "dcb app replace dev %s dscp-prio %d:6", netdev(in), dscp);
}

/* ---- PFC ------------------------------------------------------------------------------------- */

/* Priority 0 carries everything that is not marked: a DSCP that gets there has to be mapped,
 * instead of PFC put there. @return f has that remedy */
static bool map_remedy(const struct check_input *in, struct fb_finding *f)
{
	struct used_class used[8];
	const char *how, *why;
	unsigned on = in->port->dcb.pfc.en & ~1u;
	int to = on ? __builtin_ctz(on) : 3;
	int n = in->profile->given && in->profile->roce_prio >= 0 ? 0
								  : check_used_classes(in, used, 8);
	for (int i = 0; i < n; i++) {
		int dscp = used[i].byte >> 2;
		if (facts_dscp_priority(in->port, dscp, &how, &why) != 0)
			continue;
		if (in->port->vendor_stack)
			fb_find_remedy(f, NULL, "mlnx_qos -i %s --dscp2prio set,%d,%d", netdev(in),
				dscp, to);
		else
			fb_find_remedy(f, NULL, "dcb app replace dev %s dscp-prio %d:%d",
				netdev(in), dscp, to);
		return true;
	}
	return false;
}

static void pfc_remedy(const struct check_input *in, struct fb_finding *f, unsigned bits)
{
	char list[64] = "";
	size_t at = 0;
	bool mlx5 = strcmp(in->port->family, "mlx5") == 0;
	if ((bits & 1) && map_remedy(in, f))
		return;
	if (in->port->vendor_stack) {
		for (int i = 0; i < 8; i++)
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%d", i ? "," : "",
				(int)(bits >> i & 1));
		fb_find_remedy(
			f, mlx5 ? MLX5_FLAP : NULL, "mlnx_qos -i %s --pfc %s", netdev(in), list);
		return;
	}
	for (int i = 0; i < 8; i++)
		if (bits >> i & 1)
			at += (size_t)snprintf(list + at, sizeof(list) - at, " %d:on", i);
	fb_find_remedy(f, mlx5 ? MLX5_FLAP : NULL, "dcb pfc set dev %s prio-pfc all:off%s",
		netdev(in), list);
}

/* Bits that should have PFC; 0: not known. */
static unsigned wanted_pfc(const struct check_input *in, const char **source, const char **why)
{
	if (in->profile->given && in->profile->pfc_set >= 0) {
		*source = CHECK_PROFILE_SOURCE(in);
		return (unsigned)in->profile->pfc_set;
	}
	return check_roce_priorities(in, source, why);
}

void roce_r15(const struct check_input *in, struct fb_finding *f)
{
	unsigned on = 0;
	const char *source = "", *why = NULL;
	char have[32], need[32];
	if (!check_pfc(in, f, &on))
		return;
	unsigned want = wanted_pfc(in, &source, &why);
	check_bits_text(on, have, sizeof(have));
	if (want == 0 && in->profile->given && in->profile->pfc_set == 0) {
		fb_find(f, FB_CHECK_INFO, "PFC on priority %s; the profile wants none", have);
		return;
	}
	if (want == 0) {
		fb_find(f, FB_CHECK_INFO, "PFC on priority %s; %s", have,
			why ? why : "which priority RoCE uses is not known");
		return;
	}
	bool all = (on & want) == want;
	fb_find(f, all ? FB_CHECK_PASS : FB_CHECK_FAIL, "PFC on priority %s", have);
	fb_find_expected(f, source, "priority %s", check_bits_text(want, need, sizeof(need)));
	pfc_remedy(in, f, want);
}

void roce_r16(const struct check_input *in, struct fb_finding *f)
{
	unsigned on = 0;
	const char *source = "", *why = NULL;
	char have[32], need[32];
	if (!check_pfc(in, f, &on))
		return;
	unsigned want = wanted_pfc(in, &source, &why);
	int n = __builtin_popcount(on), cap = in->port->dcb.pfc.cap;
	bool none = in->profile->given && in->profile->pfc_set == 0;
	unsigned extra = want || none ? on & ~want : 0;
	bool zero = (on & 1) && !(want & 1);
	bool fail = (n >= 3 && (extra || !want)) || (cap > 0 && n > cap) || zero;
	enum fb_check_state s = fail ? FB_CHECK_FAIL : extra ? FB_CHECK_WARN : FB_CHECK_PASS;
	if (s == FB_CHECK_PASS && n > 1 && !want && !none)
		s = FB_CHECK_WARN;
	fb_find(f, s, "PFC on priority %s; the port can keep %d classes lossless%s",
		check_bits_text(on, have, sizeof(have)), cap,
		zero ? "; priority 0 carries everything that is not marked" : "");
	fb_find_expected(f, want || none ? source : "a pause stops all that share the priority",
		"%s and no other",
		want || none ? check_bits_text(want, need, sizeof(need)) : "one priority");
	if (want || none)
		pfc_remedy(in, f, want);
}

void roce_r17(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->pause_rx.f, f) || !check_need(&p->pause_tx.f, f))
		return;
	bool global = p->pause_rx.v || p->pause_tx.v;
	bool pfc_known = fact_known(&p->dcb.pfc_f), pfc = pfc_known && p->dcb.pfc.en;
	const char *rx = p->pause_rx.v ? "on" : "off", *tx = p->pause_tx.v ? "on" : "off";
	fb_find_expected(f, "IEEE 802.1Q: PFC and 802.3 pause exclude each other", "off and off");
	fb_find_remedy(f, "the link may flap", "ethtool -A %s rx off tx off", netdev(in));
	if (!global)
		fb_find(f, FB_CHECK_PASS, "802.3 pause: receive %s, send %s", rx, tx);
	else
		fb_find(f, FB_CHECK_FAIL, "802.3 pause: receive %s, send %s; %s", rx, tx,
			pfc         ? "PFC is on too"
			: pfc_known ? "PFC is off: one slow flow stops all traffic"
				    : "whether PFC is on is not known");
}

void roce_r18(const struct check_input *in, struct fb_finding *f)
{
	char mine[32], theirs[32];
	unsigned on = 0;
	if (!check_pfc(in, f, &on) || !check_need(&in->port->dcb.peer_pfc_f, f))
		return;
	bool same = in->port->dcb.peer_pfc.en == on;
	fb_find(f, same ? FB_CHECK_PASS : FB_CHECK_FAIL, "PFC here on %s, at the peer on %s",
		check_bits_text(on, mine, sizeof(mine)),
		check_bits_text(in->port->dcb.peer_pfc.en, theirs, sizeof(theirs)));
	fb_find_expected(f, "both ends of a cable must pause the same priorities", "equal");
}

void roce_r19(const struct check_input *in, struct fb_finding *f)
{
	const struct dcb_facts *d = &in->port->dcb;
	if (!check_need(&d->dcbx_f, f))
		return;
	bool host = d->dcbx & 1, firmware = d->dcbx & 2;
	bool willing = fact_known(&d->ets_f) && d->ets.willing;
	fb_find_expected(f, "one agent decides", "host or firmware, not both");
	fb_find(f, host && firmware ? FB_CHECK_WARN : FB_CHECK_PASS, "DCBX by %s (0x%02x)%s",
		host && firmware ? "host and firmware"
		: host           ? "the host"
		: firmware       ? "the firmware"
				 : "nobody",
		d->dcbx, willing ? "; ETS is willing to take the switch's" : "");
	fb_find_remedy(f, NULL, "dcb dcbx set dev %s host ieee", netdev(in));
}

/* ---- queues and buffers ---------------------------------------------------------------------- */

void roce_r20(const struct check_input *in, struct fb_finding *f)
{
	const struct dcb_ets *t = &in->port->dcb.ets;
	const char *source, *why, *cnp_source;
	if (!check_need(&in->port->dcb.ets_f, f))
		return;
	unsigned roce = check_roce_priorities(in, &source, &why);
	unsigned sum = 0, ets = 0, shared = 0, share = 0;
	for (int tc = 0; tc < 8; tc++)
		if (t->tsa[tc] == 2) {
			ets++;
			sum += t->tc_tx_bw[tc];
		}
	for (int a = 0; a < 8; a++)
		for (int b = 0; b < 8; b++)
			if ((roce >> a & 1) && !(roce >> b & 1) && t->prio_tc[a] == t->prio_tc[b])
				shared |= 1u << b;
	for (int a = 0; a < 8; a++)
		if ((roce >> a & 1) && t->prio_tc[a] < 8)
			share = t->tsa[t->prio_tc[a]] == 0 ? 100 : t->tc_tx_bw[t->prio_tc[a]];
	int cnp = cnp_dscp(in, &cnp_source);
	int cnp_prio = cnp >= 0 ? facts_dscp_priority(in->port, cnp, &source, &why) : -1;
	bool weak_cnp = cnp_prio >= 0 && t->prio_tc[cnp_prio] < 8 && t->tsa[t->prio_tc[cnp_prio]];
	int want = in->profile->given ? in->profile->ets_share : -1;
	char others[32];
	bool bad_sum = ets > 0 && sum != 100, small = want >= 0 && roce && share < (unsigned)want;
	/* Every priority in one class is what a driver starts with: nothing was decided. */
	enum fb_check_state s = bad_sum || small               ? FB_CHECK_FAIL
				: roce && (shared || weak_cnp) ? FB_CHECK_WARN
				: roce                         ? FB_CHECK_PASS
							       : FB_CHECK_INFO;
	fb_find(f, s, "shares add up to %u %%; RoCE's class has %u %%%s%s%s", sum, share,
		shared ? ", shared with priority " : "",
		shared ? check_bits_text(shared, others, sizeof(others)) : "",
		weak_cnp ? "; CNPs have no strict class" : "");
	fb_find_expected(f, want >= 0 ? CHECK_PROFILE_SOURCE(in) : "IEEE 802.1Qaz",
		"RoCE in a class of its own%s, CNPs strict, shares of 100 %%",
		want >= 0 ? " with its share" : "");
}

void roce_r21(const struct check_input *in, struct fb_finding *f)
{
	const struct dcb_buffer *b = &in->port->dcb.buffer;
	const char *source, *why = NULL;
	unsigned roce = check_roce_priorities(in, &source, &why);
	if (!check_need(&in->port->dcb.buffer_f, f))
		return;
	if (!roce) {
		fb_find(f, FB_CHECK_SKIP, "%s",
			why ? why : "which priority RoCE uses is not known");
		return;
	}
	int prio = __builtin_ctz(roce), buffer = b->prio2buffer[prio] & 7;
	uint32_t size = b->size[buffer];
	if (size == 0 || !fact_known(&in->port->netdev_mtu.f) ||
		!fact_known(&in->port->speed_mbps.f)) {
		fb_find(f, size ? FB_CHECK_SKIP : FB_CHECK_WARN, "%s",
			size ? "the port's speed or MTU is not known"
			     : "buffers are the driver's own choice");
		return;
	}
	/* Linux, mlx5 en/port_buffer.c: what arrives between the pause and the silence, and one
	 * more frame. 7 m is the driver's default. */
	double cable = in->profile->cable_m >= 0 ? in->profile->cable_m : 7;
	double speed = (double)in->port->speed_mbps.v, mtu = (double)in->port->netdev_mtu.v;
	double xoff = (301 + 2.16 * cable) * (speed < 40000 ? 40000 : speed) / 1000 + 2.72 * mtu;
	fb_find(f, size >= xoff + mtu ? FB_CHECK_PASS : FB_CHECK_FAIL,
		"priority %d has buffer %d of %u bytes", prio, buffer, size);
	fb_find_expected(f, "headroom by rate, MTU and cable (Linux, mlx5 port_buffer.c)",
		"at least %.0f bytes for %.0f m%s", xoff + mtu, cable,
		in->profile->cable_m >= 0 ? "" : " (the driver's default)");
	fb_find_remedy(f, MLX5_FLAP, "mlnx_qos -i %s --cable_len %.0f, or dcb buffer set dev %s",
		netdev(in), cable, netdev(in));
}

/* ---- congestion control ---------------------------------------------------------------------- */

static void ecn(const struct check_input *in, struct fb_finding *f, const struct fact *known,
	const bool *enable, const char *side)
{
	const char *source, *why = NULL;
	bool pfc_only = strcmp(in->profile->congestion, "pfc-only") == 0;
	if (!check_need(known, f))
		return;
	unsigned roce = check_roce_priorities(in, &source, &why);
	if (!roce) {
		fb_find(f, FB_CHECK_SKIP, "%s",
			why ? why : "which priority RoCE uses is not known");
		return;
	}
	unsigned off = 0;
	char text[32];
	for (int i = 0; i < 8; i++)
		if ((roce >> i & 1) && !enable[i])
			off |= 1u << i;
	bool on = off == 0;
	check_bits_text(on ? roce : off, text, sizeof(text));
	fb_find(f,
		pfc_only ? FB_CHECK_INFO
		: on     ? FB_CHECK_PASS
			 : FB_CHECK_FAIL,
		"%s on priority %s is %s", side, text, on ? "on" : "off");
	fb_find_expected(f, pfc_only ? CHECK_PROFILE_SOURCE(in) : "DCQCN needs both ends",
		pfc_only ? "either: PFC alone" : "on");
	fb_find_remedy(f, NULL, "echo 1 > %.160s", known->read);
}

void roce_r22(const struct check_input *in, struct fb_finding *f)
{
	ecn(in, f, &in->port->np_enable_f, in->port->np_enable, "answering marks with CNPs");
}

void roce_r23(const struct check_input *in, struct fb_finding *f)
{
	ecn(in, f, &in->port->rp_enable_f, in->port->rp_enable, "obeying CNPs");
}

void roce_r24(const struct check_input *in, struct fb_finding *f)
{
	if (!check_need(&in->port->cnp_dscp.f, f))
		return;
	int dscp = (int)in->port->cnp_dscp.v,
	    want = in->profile->given ? in->profile->cnp_dscp : -1;
	fb_find(f,
		want < 0       ? FB_CHECK_INFO
		: dscp == want ? FB_CHECK_PASS
			       : FB_CHECK_FAIL,
		"CNPs go out with DSCP %d", dscp);
	if (want >= 0)
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "DSCP %d", want);
	fb_find_remedy(f, NULL, "echo %d > %.160s", want, in->port->cnp_dscp.f.read);
}
