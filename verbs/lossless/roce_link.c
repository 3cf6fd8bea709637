// SPDX-License-Identifier: Apache-2.0
/*
 * R01-R11: the port, its link and slot, its GIDs, and the traffic classes that applications set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/topo.h"
#include "verbs/lossless/checks_priv.h"

void roce_r01(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->state.f, f))
		return;
	if (!check_state(&p->state, f))
		return;
	bool active = strstr(p->state.v, "ACTIVE") && !strstr(p->state.v, "DEFER");
	bool up = !fact_known(&p->phys_state.f) || strstr(p->phys_state.v, "LinkUp");
	fb_find(f, active && up ? FB_CHECK_PASS : FB_CHECK_FAIL, "state %s, physical state %s",
		p->state.v, fact_known(&p->phys_state.f) ? p->phys_state.v : "not told");
	fb_find_expected(f, "IBTA: traffic needs an active port", "ACTIVE and LinkUp");
	if (p->netdev[0])
		fb_find_remedy(f, NULL,
			"ip link set %s up; ethtool %s; then look at cable and switch port",
			p->netdev, p->netdev);
}

void roce_r02(const struct check_input *in, struct fb_finding *f)
{
	if (!check_need(&in->port->link_layer.f, f))
		return;
	fb_find(f, FB_CHECK_PASS, "%s", in->port->link_layer.v);
	fb_find_expected(f, "RoCE runs over Ethernet", "Ethernet");
}

void roce_r03(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->netdev_f, f))
		return;
	fb_find_expected(f, "RoCE needs the addresses of an interface", "one interface that is up");
	if (!fact_known(&p->netdev_state.f)) {
		fb_find(f, FB_CHECK_INFO, "%s, its state is not told", p->netdev);
		return;
	}
	/* Some drivers never report a state: "unknown" is what a working one may say too. */
	bool down = strcmp(p->netdev_state.v, "down") == 0 ||
		    strcmp(p->netdev_state.v, "lowerlayerdown") == 0;
	fb_find(f, down ? FB_CHECK_FAIL : FB_CHECK_PASS, "%s is %s", p->netdev, p->netdev_state.v);
	fb_find_remedy(f, NULL, "ip link set %s up", p->netdev);
}

static double gts(const char *text)
{
	return strtod(text, NULL);
}

void roce_r04(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (check_software(in, f) || !check_need(&p->speed_mbps.f, f))
		return;
	long long speed = (long long)p->speed_mbps.v;
	int64_t want = in->profile->rate_mbps > 0         ? in->profile->rate_mbps
		       : fact_known(&p->max_speed_mbps.f) ? p->max_speed_mbps.v
							  : -1;
	char slot[128] = "";
	bool narrow = false;
	if (fact_known(&p->pcie_speed.f) && fact_known(&p->pcie_max_speed.f) &&
		fact_known(&p->pcie_width.f) && fact_known(&p->pcie_max_width.f)) {
		narrow = gts(p->pcie_speed.v) < gts(p->pcie_max_speed.v) ||
			 p->pcie_width.v < p->pcie_max_width.v;
		if (narrow)
			snprintf(slot, sizeof(slot), "; PCIe at %.24s x%lld of %.24s x%lld",
				p->pcie_speed.v, (long long)p->pcie_width.v, p->pcie_max_speed.v,
				(long long)p->pcie_max_width.v);
	}
	if (want > 0)
		fb_find_expected(f,
			in->profile->rate_mbps > 0 ? CHECK_PROFILE_SOURCE(in)
						   : "the port's own best speed",
			"%lld Mb/s", (long long)want);
	enum fb_check_state s = want > 0 && speed < want ? FB_CHECK_FAIL
				: narrow                 ? FB_CHECK_WARN
				: want > 0               ? FB_CHECK_PASS
							 : FB_CHECK_INFO;
	fb_find(f, s, "%lld Mb/s%s", speed, slot);
}

void roce_r05(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (check_software(in, f) || !check_need(&p->pcie_width.f, f) ||
		!check_need(&p->pcie_speed.f, f))
		return;
	char read[256];
	snprintf(read, sizeof(read), "%s", f->read);
	if (!check_need(&p->speed_mbps.f, f))
		return;
	fb_find_read(f, "%s", read);
	double have =
		topo_link_bandwidth(gts(p->pcie_speed.v), (unsigned)p->pcie_width.v) * 8 / 1e6;
	/* Headers of transactions take about a twelfth at 256-byte payloads. */
	double need = 1.08 * (double)p->speed_mbps.v;
	fb_find(f, have >= need ? FB_CHECK_PASS : FB_CHECK_FAIL,
		"PCIe %.24s x%lld carries %.1f Gb/s, the port %.1f Gb/s", p->pcie_speed.v,
		(long long)p->pcie_width.v, have / 1000, (double)p->speed_mbps.v / 1000);
	fb_find_expected(f, "transaction headers take 8 %", "at least %.1f Gb/s", need / 1000);
}

/* ---- GIDs ------------------------------------------------------------------------------------ */

static const struct gid_fact *first_v2(const struct port_facts *p)
{
	const struct gid_fact *local = NULL;
	for (int i = 0; i < p->gids; i++) {
		const struct gid_fact *g = &p->gid[i];
		if (!g->v2)
			continue;
		if (!g->link_local)
			return g;
		local = local ? local : g;
	}
	return local;
}

void roce_r06(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	int v1 = 0, v2 = 0, global = 0;
	if (!check_need(&p->gids_f, f))
		return;
	for (int i = 0; i < p->gids; i++) {
		v1 += !p->gid[i].v2;
		v2 += p->gid[i].v2;
		global += p->gid[i].v2 && !p->gid[i].link_local;
	}
	fb_find(f,
		global ? FB_CHECK_PASS
		: v2   ? FB_CHECK_WARN
		       : FB_CHECK_FAIL,
		"%d GIDs of RoCE v2 (%d of them with a routable address), %d of v1", v2, global,
		v1);
	fb_find_expected(f, "RoCE v2 is what switches route and mark",
		"a RoCE v2 GID with a global IPv4 or IPv6 address");
	fb_find_remedy(f, "gives the interface an address", "ip addr add ADDRESS/LEN dev %s",
		p->netdev[0] ? p->netdev : "IF");
}

static const char *kind_of(const struct gid_fact *g)
{
	return !g->v2 ? "RoCE v1" : g->ipv4 ? "RoCE v2, IPv4" : "RoCE v2, IPv6";
}

static void gid_asked_for(const struct check_input *in, struct fb_finding *f, long index)
{
	const struct port_facts *p = in->port;
	for (int i = 0; i < p->gids; i++) {
		if (p->gid[i].index != index)
			continue;
		fb_find(f, p->gid[i].v2 ? FB_CHECK_PASS : FB_CHECK_FAIL,
			"NCCL_IB_GID_INDEX=%ld is %s here", index, kind_of(&p->gid[i]));
		fb_find_expected(f, "what NCCL_IB_GID_INDEX asks for", "RoCE v2");
		return;
	}
	fb_find(f, FB_CHECK_FAIL, "NCCL_IB_GID_INDEX=%ld is an empty slot here", index);
	fb_find_expected(f, "what NCCL_IB_GID_INDEX asks for", "RoCE v2");
}

void roce_r07(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->gids_f, f))
		return;
	const char *asked = fb_json_str(in->node->env, "NCCL_IB_GID_INDEX", NULL);
	char *end = NULL;
	long index = asked ? strtol(asked, &end, 10) : -1;
	bool number = asked && end != asked && *end == '\0';
	if (number && index >= 0) {
		gid_asked_for(in, f, index);
		return;
	}
	if (asked && *asked && !number) {
		fb_find(f, FB_CHECK_WARN,
			"NCCL_IB_GID_INDEX=%.32s is no number: NCCL leaves it aside", asked);
		fb_find_expected(f, "NCCL user guide, NCCL_IB_GID_INDEX", "an index, or -1");
		fb_find_remedy(f, "new jobs only", "unset NCCL_IB_GID_INDEX");
		return;
	}
	const struct gid_fact *mine = first_v2(p);
	if (!mine || in->n_others == 0) {
		fb_find(f, FB_CHECK_SKIP, "%s",
			mine ? "it compares nodes, and only one was looked at"
			     : "there is no RoCE v2 GID to compare (R06)");
		return;
	}
	fb_find(f, FB_CHECK_PASS, "index %d, %s", mine->index, kind_of(mine));
	for (int i = 0; i < in->n_others; i++)
		for (int k = 0; k < in->others[i]->ports; k++) {
			const struct port_facts *o = &in->others[i]->port[k];
			const struct gid_fact *g =
				strcmp(o->device, p->device) == 0 && o->port == p->port
					? first_v2(o)
					: NULL;
			if (!g || (g->index == mine->index && g->ipv4 == mine->ipv4))
				continue;
			fb_find(f, g->ipv4 != mine->ipv4 ? FB_CHECK_FAIL : FB_CHECK_WARN,
				"index %d, %s; %s has index %d, %s", mine->index, kind_of(mine),
				in->others[i]->host, g->index, kind_of(g));
			fb_find_expected(
				f, "the other nodes", "the same index and kind everywhere");
		}
}

/* ---- traffic classes ------------------------------------------------------------------------- */

void roce_r08(const struct check_input *in, struct fb_finding *f)
{
	if (!check_need(&in->port->cma_mode.f, f))
		return;
	bool v2 = strstr(in->port->cma_mode.v, "v2") != NULL;
	fb_find(f, v2 ? FB_CHECK_PASS : FB_CHECK_FAIL, "rdma_cm connects by %s",
		in->port->cma_mode.v);
	fb_find_expected(f, "RoCE v2 is what switches route and mark", "RoCE v2");
	fb_find_remedy(f, "new connections only", "cma_roce_mode -d %s -p %d -m 2",
		in->port->device, in->port->port);
}

static bool profile_has(const struct profile *p, int dscp)
{
	for (int i = 0; i < 4 && p->roce_dscp[i] >= 0; i++)
		if (p->roce_dscp[i] == dscp)
			return true;
	return false;
}

/* A DSCP that a readable map leaves out is in no lossless class. */
static bool lossless_prio(const struct check_input *in, int dscp, bool *known)
{
	const char *how = NULL, *why = NULL;
	int prio = facts_dscp_priority(in->port, dscp, &how, &why);
	*known = (prio >= 0 || fact_known(&in->port->dscp2prio_f)) &&
		 fact_known(&in->port->dcb.pfc_f);
	return *known && prio >= 0 && (in->port->dcb.pfc.en >> prio & 1);
}

bool check_byte_is_dscp(const struct check_input *in, int byte)
{
	bool byte_known, dscp_known;
	if (byte >= 64)
		return false;
	bool as_byte = lossless_prio(in, byte >> 2, &byte_known);
	bool as_dscp = lossless_prio(in, byte, &dscp_known);
	return byte_known && dscp_known && !as_byte && as_dscp;
}

/* A DSCP where a traffic class byte belongs? A fail only where the map proves it: as a DSCP the
 * value is lossless, as the byte that it is it is not. @return the value is suspicious, f is set */
static bool confused(const struct check_input *in, int byte, const char *by, struct fb_finding *f)
{
	bool byte_known, dscp_known;
	bool decided = in->profile->given && in->profile->roce_dscp[0] >= 0;
	if (byte >= 64)
		return false;
	bool lossless = lossless_prio(in, byte >> 2, &byte_known);
	lossless_prio(in, byte, &dscp_known);
	bool proven = check_byte_is_dscp(in, byte);
	bool known = byte_known && dscp_known;
	/* What is lossless as it is, and what the profile wants, is no mistake; another DSCP of a
	 * site that has decided is just that. NCCL's own small messages may be lossy. */
	if (!proven && (lossless || (decided && (known || !profile_has(in->profile, byte) ||
							profile_has(in->profile, byte >> 2)))))
		return false;
	if (!proven && known && strcmp(by, "NCCL_IB_FIFO_TC") == 0)
		return false;
	fb_find(f, proven ? FB_CHECK_FAIL : FB_CHECK_WARN,
		"%s is %d, a traffic class byte: that is DSCP %d (%d >> 2)%s; DSCP %d would be byte %d",
		by, byte, byte >> 2, byte,
		proven ? ", which is lossy here, while DSCP of that number is lossless" : "", byte,
		byte << 2 | 2);
	fb_find_expected(f, "traffic class = DSCP << 2 | ECN", "the byte, not the DSCP");
	fb_find_remedy(f, "new connections only", "set %s to %d", by, byte << 2 | 2);
	return true;
}

static void judge_class(
	const struct check_input *in, int byte, const char *by, struct fb_finding *f)
{
	if (byte != 0 && confused(in, byte, by, f))
		return;
	if (!in->profile->given || in->profile->roce_dscp[0] < 0) {
		fb_find(f, FB_CHECK_INFO, "%s is %d: DSCP %d", by, byte, byte >> 2);
		return;
	}
	bool right = profile_has(in->profile, byte >> 2);
	fb_find(f,
		right       ? FB_CHECK_PASS
		: byte == 0 ? FB_CHECK_WARN
			    : FB_CHECK_FAIL,
		"%s is %d: DSCP %d", by, byte, byte >> 2);
	fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "DSCP %d, traffic class %d",
		in->profile->roce_dscp[0], in->profile->roce_dscp[0] << 2 | 2);
}

void roce_r09(const struct check_input *in, struct fb_finding *f)
{
	if (!check_need(&in->port->cma_tos.f, f))
		return;
	judge_class(in, (int)in->port->cma_tos.v, "rdma_cm's default_roce_tos", f);
	if (f->remedy[0] == '\0' && in->profile->roce_dscp[0] >= 0)
		fb_find_remedy(f, "new connections only", "cma_roce_tos -d %s -p %d -t %d",
			in->port->device, in->port->port, in->profile->roce_dscp[0] << 2 | 2);
}

void roce_r10(const struct check_input *in, struct fb_finding *f)
{
	if (!check_need(&in->port->traffic_class.f, f))
		return;
	if (in->port->traffic_class.v < 0) {
		fb_find(f, FB_CHECK_INFO, "not forced: each application's own counts");
		return;
	}
	judge_class(in, (int)in->port->traffic_class.v, "the driver's traffic_class", f);
}

void roce_r11(const struct check_input *in, struct fb_finding *f)
{
	struct fb_finding worst = *f;
	bool any = false;
	if (!check_need(&in->node->env_f, f))
		return;
	for (const char *const *name = check_class_names; *name; name++) {
		const char *text;
		int byte = 0, rc = check_class_of(in->node, *name, &byte, &text);
		struct fb_finding one = *f;
		if (rc == 0)
			continue;
		if (rc < 0) {
			fb_find(&one, FB_CHECK_FAIL, "%s=%.32s is no number from 0 to 255", *name,
				text);
			fb_find_expected(&one, "NCCL and UCX read a byte", "0 to 255");
		} else {
			judge_class(in, byte, *name, &one);
		}
		/* pass < info < warn < fail */
		static const int rank[] = {[FB_CHECK_PASS] = 0,
			[FB_CHECK_INFO] = 1,
			[FB_CHECK_WARN] = 2,
			[FB_CHECK_FAIL] = 3};
		if (!any || rank[one.state] > rank[worst.state])
			worst = one;
		any = true;
	}
	if (any) {
		*f = worst;
		return;
	}
	bool wanted = in->profile->given && in->profile->roce_dscp[0] > 0;
	fb_find(f, wanted ? FB_CHECK_WARN : FB_CHECK_INFO,
		"none of NCCL_IB_TC, NCCL_IB_FIFO_TC, UCX_IB_TRAFFIC_CLASS is set: traffic class 0");
	if (wanted) {
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "traffic class %d",
			in->profile->roce_dscp[0] << 2 | 2);
		fb_find_remedy(f, "new jobs only", "export NCCL_IB_TC=%d",
			in->profile->roce_dscp[0] << 2 | 2);
	}
}
