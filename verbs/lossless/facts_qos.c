// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of a port's quality of service: DCB and ethtool (dcb.c, ethtool.c), the files of the
 * vendor's stack (mlnx-tools mlnx_qos reads the same), upstream mlx5's cc_params
 * (drivers/infiniband/hw/mlx5/cong.c), rdma_cm's configfs (Documentation/ABI/testing/
 * configfs-rdma_cm). Nothing is ever written: rdma_cm's folder appears only when somebody makes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verbs/lossless/dcb.h"
#include "verbs/lossless/ethtool.h"
#include "verbs/lossless/facts_priv.h"

#define SELECTOR_DSCP 5

/* ---- no interface, no Ethernet --------------------------------------------------------------- */

static void all_without_netdev(struct port_facts *p, enum fact_state s, const char *why)
{
	struct dcb_facts *d = &p->dcb;
	struct fact *const f[] = {&d->ieee, &d->ets_f, &d->pfc_f, &d->app_f, &d->buffer_f,
		&d->dcbx_f, &d->peer_pfc_f, &d->peer_ets_f, &d->peer_app_f, &d->trust_f,
		&p->speed_mbps.f, &p->max_speed_mbps.f, &p->trust.f, &p->dscp2prio_f,
		&p->np_enable_f, &p->rp_enable_f, &p->pause_rx.f, &p->pause_tx.f,
		&p->pause_autoneg.f, &p->stats_f};
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		fact_read_by(f[i], "the interface of %s/%d", p->device, p->port);
		fact_none(f[i], s, "%s", why);
	}
}

/* ---- the vendor's files ---------------------------------------------------------------------- */

/* "dscp\tprio\n0\t0\n...": lines that begin with two numbers; others are headings. */
static int pairs(const char *text, int most, void (*take)(void *arg, int a, long b), void *arg)
{
	int n = 0;
	for (const char *line = text; line && *line;) {
		char *end, *end2 = NULL;
		long a = strtol(line, &end, 10);
		long b = end != line ? strtol(end, &end2, 10) : 0;
		if (end2 && end2 != end && a >= 0 && a < most && b >= 0) {
			take(arg, (int)a, b);
			n++;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return n;
}

static void take_dscp(void *arg, int dscp, long prio)
{
	struct port_facts *p = arg;
	if (prio < 8)
		p->dscp2prio[dscp] = (int8_t)prio;
}

static void read_dscp2prio(const struct facts_door *d, struct port_facts *p)
{
	char text[4096];
	memset(p->dscp2prio, -1, sizeof(p->dscp2prio));
	if (facts_file(d, &p->dscp2prio_f, text, sizeof(text), "/sys/class/net/%s/qos/dscp2prio",
		    p->netdev) < 0)
		return;
	pairs(text, 64, take_dscp, p);
	for (int i = 0; i < 64; i++)
		if (p->dscp2prio[i] >= 0)
			return;
	fact_none(&p->dscp2prio_f, FACT_BROKEN, "no line \"DSCP PRIORITY\"");
}

static void take_prio2buffer(void *arg, int prio, long buffer)
{
	struct dcb_buffer *b = arg;
	if (buffer < 8)
		b->prio2buffer[prio] = (uint8_t)buffer;
}
static void take_buffer_size(void *arg, int buffer, long bytes)
{
	struct dcb_buffer *b = arg;
	if (bytes <= UINT32_MAX)
		b->size[buffer] = (uint32_t)bytes;
}

/* Older stacks tell the buffers in files alone; their heading holds no line of two numbers. */
static void read_buffers(const struct facts_door *d, struct port_facts *p)
{
	struct fact f = {0};
	char map[1024], sizes[2048];
	struct dcb_buffer b = {0};
	if (fact_known(&p->dcb.buffer_f) || p->dcb.buffer_f.state == FACT_BROKEN ||
		facts_file(d, &f, sizes, sizeof(sizes), "/sys/class/net/%s/qos/buffer_size",
			p->netdev) < 0 ||
		facts_file(d, &f, map, sizeof(map), "/sys/class/net/%s/qos/prio2buffer",
			p->netdev) < 0)
		return;
	if (pairs(map, 8, take_prio2buffer, &b) == 8 &&
		pairs(sizes, 8, take_buffer_size, &b) == 8) {
		p->dcb.buffer = b;
		p->dcb.buffer_f = f;
	}
}

/* ecn/roce_np/enable/0..7 */
static void read_enable(
	const struct facts_door *d, struct port_facts *p, const char *side, struct fact *f, bool *v)
{
	for (int prio = 0; prio < 8; prio++) {
		struct fact_int one = {0};
		facts_int(d, &one, "/sys/class/net/%s/ecn/%s/enable/%d", p->netdev, side, prio);
		if (prio == 0 || !fact_known(&one.f))
			*f = one.f;
		if (!fact_known(&one.f))
			break;
		v[prio] = one.v != 0;
	}
	fact_read_by(f, "/sys/class/net/%s/ecn/%s/enable/{0..7}", p->netdev, side);
	if (f->state == FACT_ABSENT)
		fact_none(f, FACT_ABSENT,
			"no such file: only the vendor's stack has a switch by priority");
}

static bool is_mlx5(const struct port_facts *p)
{
	return strcmp(p->family, "mlx5") == 0;
}

/* /sys/kernel/debug/mlx5/BDF/cc_params, where the vendor's own file is not there. */
static void read_cc(
	const struct facts_door *d, struct port_facts *p, struct fact_int *v, const char *file)
{
	if (v->f.state != FACT_ABSENT || !is_mlx5(p) || !p->bdf[0])
		return;
	facts_int_in(d, v, 0, 63, "/sys/kernel/debug/mlx5/%s/cc_params/%s", p->bdf, file);
	if (v->f.state == FACT_ABSENT)
		fact_none(&v->f, FACT_ABSENT,
			"no such file: debugfs is not mounted, or the firmware forbids it");
}

static void read_cnp(const struct facts_door *d, struct port_facts *p)
{
	static const char other[] = "this driver does not tell";
	struct fact_int mode = {.f = {.state = FACT_ABSENT}};
	fact_none(&p->cnp_dscp.f, FACT_ABSENT, other);
	fact_none(&p->cnp_prio.f, FACT_ABSENT, other);
	if (p->netdev[0] && p->vendor_stack) {
		facts_int_in(d, &p->cnp_dscp, 0, 63, "/sys/class/net/%s/ecn/roce_np/cnp_dscp",
			p->netdev);
		facts_int(
			d, &p->cnp_prio, "/sys/class/net/%s/ecn/roce_np/cnp_802p_prio", p->netdev);
	}
	read_cc(d, p, &p->cnp_dscp, "np_cnp_dscp");
	if (p->cnp_prio.f.state != FACT_ABSENT)
		return;
	read_cc(d, p, &p->cnp_prio, "np_cnp_prio");
	/* Setting np_cnp_prio sets the mode to 0: any other leaves it out of use. */
	read_cc(d, p, &mode, "np_cnp_prio_mode");
	if (fact_known(&p->cnp_prio.f) && fact_known(&mode.f) && mode.v != 0)
		fact_none(&p->cnp_prio.f, FACT_ABSENT,
			"np_cnp_prio_mode is %lld: np_cnp_prio is not in use", (long long)mode.v);
}

/* "Global tclass=106"; nothing, or a bare number, in some releases. */
static void read_traffic_class(const struct facts_door *d, struct port_facts *p)
{
	char text[1024], *end;
	p->traffic_class.v = -1;
	if (facts_file(d, &p->traffic_class.f, text, sizeof(text),
		    "/sys/class/infiniband/%s/tc/%d/traffic_class", p->device, p->port) < 0) {
		if (p->traffic_class.f.state == FACT_ABSENT)
			fact_none(&p->traffic_class.f, FACT_ABSENT,
				"no such file: only the vendor's stack has it");
		return;
	}
	const char *at = strstr(text, "Global tclass=");
	at = at ? at + strlen("Global tclass=") : text;
	long v = strtol(at, &end, 10);
	if (end != at && v >= 0 && v <= 255)
		p->traffic_class.v = v;
	else if (end != at)
		fact_none(&p->traffic_class.f, FACT_BROKEN, "%ld is no traffic class", v);
	else if (*at && !strstr(text, "tclass"))
		fact_none(&p->traffic_class.f, FACT_BROKEN, "\"%.40s\" is no traffic class", text);
}

/* ---- trust ----------------------------------------------------------------------------------- */

static int dscp_entries(const struct dcb_facts *d)
{
	int n = 0;
	for (int i = 0; i < d->apps; i++)
		n += d->app[i].selector == SELECTOR_DSCP;
	return n;
}

/* The vendor's file; else the kernel's trust table; else, of mlx5, whether the APP table has DSCP
 * entries: the first one switches the port to DSCP, removing the last one back
 * (mlx5/core/en_dcbnl.c mlx5e_dcbnl_ieee_setapp, _delapp). */
static void read_trust(const struct facts_door *d, struct port_facts *p)
{
	struct fact_text *t = &p->trust;
	facts_text(d, t, "/sys/class/net/%s/qos/trust", p->netdev);
	if (fact_known(&t->f) && strcasecmp(t->v, "dscp") == 0)
		snprintf(t->v, sizeof(t->v), "dscp");
	else if (fact_known(&t->f) && strcasecmp(t->v, "pcp") == 0)
		snprintf(t->v, sizeof(t->v), "pcp");
	else if (fact_known(&t->f))
		fact_none(&t->f, FACT_BROKEN, "\"%.40s\" is neither dscp nor pcp", t->v);
	if (fact_known(&t->f) || t->f.state == FACT_BROKEN)
		return;
	if (fact_known(&p->dcb.trust_f)) {
		bool dscp = false;
		for (int i = 0; i < p->dcb.trusts; i++)
			dscp = dscp || p->dcb.trust[i] == SELECTOR_DSCP;
		snprintf(t->v, sizeof(t->v), "%s", dscp ? "dscp" : "pcp");
		t->f = p->dcb.trust_f;
		return;
	}
	if (is_mlx5(p) && fact_known(&p->dcb.app_f)) {
		snprintf(t->v, sizeof(t->v), "%s", dscp_entries(&p->dcb) > 0 ? "dscp" : "pcp");
		t->f = p->dcb.app_f;
		fact_read_by(&t->f, "%.100s: DSCP entries of the APP table", p->dcb.app_f.read);
		return;
	}
	if (t->f.state == FACT_ABSENT && p->dcb.ieee.state == FACT_HIDDEN)
		fact_none(&t->f, FACT_HIDDEN, "%s", p->dcb.ieee.why);
	else if (t->f.state == FACT_ABSENT)
		fact_none(&t->f, FACT_ABSENT, "neither the driver nor the kernel tells it");
}

/* ---- rdma_cm --------------------------------------------------------------------------------- */

static void read_cma(const struct facts_door *d, struct port_facts *p)
{
#define CMA "/sys/kernel/config/rdma_cm/%s/ports/%d/"
	facts_text(d, &p->cma_mode, CMA "default_roce_mode", p->device, p->port);
	facts_int_in(d, &p->cma_tos, 0, 255, CMA "default_roce_tos", p->device, p->port);
#undef CMA
	if (fact_known(&p->cma_mode.f) && !strstr(p->cma_mode.v, "RoCE"))
		fact_none(&p->cma_mode.f, FACT_BROKEN, "\"%.40s\" is no mode", p->cma_mode.v);
	struct fact *const f[] = {&p->cma_mode.f, &p->cma_tos.f};
	for (size_t i = 0; i < 2; i++)
		if (f[i]->state == FACT_ABSENT)
			fact_none(f[i], FACT_ABSENT,
				"not there until root does mkdir /sys/kernel/config/rdma_cm/%.40s",
				p->device);
}

void facts_read_qos(const struct facts_door *d, struct port_facts *p)
{
	read_traffic_class(d, p);
	read_cma(d, p);
	p->vendor_stack = fact_known(&p->traffic_class.f);
	if (!p->netdev[0] || !p->ethernet) {
		bool eth = p->ethernet;
		all_without_netdev(p, eth ? p->netdev_f.state : FACT_ABSENT,
			eth ? p->netdev_f.why : "the link is not Ethernet");
		memset(p->dscp2prio, -1, sizeof(p->dscp2prio));
		read_cnp(d, p);
		return;
	}
	p->vendor_stack = p->vendor_stack ||
			  fb_sysroot_exists(d->r, "/sys/class/net/%s/qos/trust", p->netdev) ||
			  fb_sysroot_exists(d->r, "/sys/class/net/%s/ecn/roce_np", p->netdev);
	dcb_read(d->r, p->netdev, &p->dcb);
	ethtool_read(d->r, p);
	read_dscp2prio(d, p);
	read_trust(d, p);
	read_buffers(d, p);
	read_enable(d, p, "roce_np", &p->np_enable_f, p->np_enable);
	read_enable(d, p, "roce_rp", &p->rp_enable_f, p->rp_enable);
	read_cnp(d, p);
}

/* ---- the map --------------------------------------------------------------------------------- */

static int by_app(const struct port_facts *p, int dscp, const char **how)
{
	int prio = -1;
	for (int i = 0; i < p->dcb.apps; i++) {
		const struct dcb_app_entry *a = &p->dcb.app[i];
		if (a->selector == SELECTOR_DSCP && a->protocol == dscp && a->priority < 8 &&
			a->priority > prio)
			prio = a->priority;
	}
	*how = prio >= 0 ? "APP table" : "APP table: no entry for this DSCP, so priority 0";
	return prio >= 0 ? prio : 0;
}

int facts_dscp_priority(const struct port_facts *p, int dscp, const char **how, const char **why)
{
	*how = *why = "";
	if (dscp < 0 || dscp > 63) {
		*why = "a DSCP is 0 to 63";
		return -1;
	}
	if (fact_known(&p->dscp2prio_f)) {
		*how = "qos/dscp2prio";
		*why = "qos/dscp2prio has no line for this DSCP";
		return p->dscp2prio[dscp];
	}
	/* A map that is there and could not be read is no default one. */
	if (p->dscp2prio_f.state == FACT_BROKEN || p->dscp2prio_f.state == FACT_HIDDEN) {
		*why = p->dscp2prio_f.why;
		return -1;
	}
	if (!fact_known(&p->dcb.app_f)) {
		*why = p->dcb.app_f.why;
		return -1;
	}
	if (dscp_entries(&p->dcb) > 0)
		return by_app(p, dscp, how);
	if (fact_known(&p->trust.f) && strcmp(p->trust.v, "pcp") == 0) {
		*why = "the port trusts the VLAN tag (PCP), not the DSCP";
		return -1;
	}
	if (is_mlx5(p) && fact_known(&p->trust.f) && strcmp(p->trust.v, "dscp") == 0) {
		*how = "mlx5's default, DSCP / 8";
		return dscp / 8;
	}
	*why = "the APP table has no DSCP entry, and this driver's default is not documented";
	return -1;
}
