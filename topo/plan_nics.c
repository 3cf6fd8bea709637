// SPDX-License-Identifier: Apache-2.0
/*
 * Which NICs can carry training traffic, and why the others cannot. The compute NICs of a node are
 * alike: what differs from them in rate, link layer or role is storage or management, and no rank
 * shall send over it by accident.
 *
 * The rules, in order: software devices, virtual functions beside their physical one, aggregation
 * nodes, ports that are not ACTIVE; other rates than the compute NICs'; the other link layer;
 * bonds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/plan.h"
#include "topo/topo_priv.h"

struct facts {
	uint64_t rate; /* 0: unknown */
	char layer;    /* 'I' InfiniBand, 'E' Ethernet, 'O' another (EFA), 0 unknown */
	uint32_t id;   /* PCI vendor and device, 0: unknown */
};

static void FB_PRINTF(2, 3) exclude(struct topo_plan_nic *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n->why, sizeof(n->why), fmt, ap);
	va_end(ap);
	n->role = TOPO_NIC_EXCLUDED;
}

static bool is_bond(const struct topo_rdma *r)
{
	return strstr(r->name, "bond") || strncmp(r->netdev, "bond", 4) == 0;
}

/** SHARP's aggregation nodes stand as HCAs of their own: "mlx5_an0". */
static bool is_aggregation_node(const char *name)
{
	const char *an = strstr(name, "_an");

	return an && an[3] >= '0' && an[3] <= '9';
}

/** @return the port that counts: the fastest ACTIVE one, else one of unknown state; NULL: none */
static const struct topo_rdma_port *best_port(const struct topo_rdma *r)
{
	const struct topo_rdma_port *best = NULL;

	for (size_t i = 0; i < r->n_ports; i++) {
		const struct topo_rdma_port *p = &r->ports[i];

		if (p->state && p->state != 4)
			continue;
		if (!best || p->state > best->state ||
			(p->state == best->state && p->rate_bps > best->rate_bps))
			best = p;
	}
	return best;
}

static struct facts facts_of(const struct topo *t, const struct topo_dev *d)
{
	struct facts f = {0};

	if (d->pci >= 0)
		f.id = (uint32_t)t->pci[d->pci].vendor << 16 | t->pci[d->pci].device;
	if (d->type == TOPO_DEV_NETDEV) {
		const struct topo_nic *n = &t->nics[d->index];
		bool ib = n->arphrd == 32 ||
			  (d->pci >= 0 && t->pci[d->pci].class_code >> 8 == 0x0207);

		f.rate = n->rate_bps;
		f.layer = ib ? 'I' : n->arphrd == 1 ? 'E' : 0;
		return f;
	}
	const struct topo_rdma *r = &t->rdma[d->index];
	const struct topo_rdma_port *p = best_port(r);

	if (!p)
		return f;
	f.rate = p->rate_bps;
	f.layer = strcmp(p->link_layer, "InfiniBand") == 0 ? 'I'
		  : strcmp(p->link_layer, "Ethernet") == 0 ? 'E'
		  : p->link_layer[0]                       ? 'O'
							   : 0;
	return f;
}

/** Files name NICs by their function alone, or say too little to make an RDMA device of them. */
static bool may_be_rdma(const struct topo *t, const struct topo_dev *d)
{
	if (t->source == TOPO_FROM_LIVE || t->source == TOPO_FROM_SYSROOT || d->pci < 0)
		return false;
	const struct topo_pci *p = &t->pci[d->pci];

	return p->class_code >> 8 == 0x0207 || strcmp(d->name, p->bdf) == 0;
}

static bool has_rdma_hardware(const struct topo *t, const struct topo_plan *p)
{
	for (size_t i = 0; i < t->n_rdma; i++)
		if (!t->rdma[i].soft)
			return true;
	for (size_t i = 0; i < p->n_devs; i++)
		if (p->devs[i].type == TOPO_DEV_NETDEV && may_be_rdma(t, &p->devs[i]))
			return true;
	return false;
}

static void judge_rdma(const struct topo *t, const struct topo_rdma *r, struct topo_plan_nic *n)
{
	if (r->soft) {
		exclude(n, "software RDMA (%s), no NIC of its own", r->netdev);
		return;
	}
	if (is_aggregation_node(r->name)) {
		exclude(n, "a SHARP aggregation node, no NIC");
		return;
	}
	if (r->pci >= 0 && t->pci[r->pci].physfn >= 0)
		for (size_t i = 0; i < t->n_rdma; i++)
			if (t->rdma[i].pci == t->pci[r->pci].physfn) {
				exclude(n, "a virtual function of %s", t->rdma[i].name);
				return;
			}
	if (r->n_ports && !best_port(r))
		exclude(n, "port %u is %s, not ACTIVE", r->ports[0].num,
			r->ports[0].state_name[0] ? r->ports[0].state_name : "not up");
}

static void judge_netdev(const struct topo *t, const struct topo_plan *p, const struct topo_dev *d,
	struct topo_plan_nic *n)
{
	const struct topo_nic *nic = &t->nics[d->index];

	if (!p->sockets && !may_be_rdma(t, d))
		exclude(n, "no RDMA device on it");
	else if (nic->state[0] && strcmp(nic->state, "up") != 0 &&
		 strcmp(nic->state, "unknown") != 0)
		exclude(n, "the interface is %s", nic->state);
}

/**
 * The compute NICs' rate: of the rates no less than half of the fastest, the one that most NICs
 * have; the faster of two. A single fast storage NIC is not the measure of eight slower ones, nor
 * are two management ports that of one compute NIC.
 */
static uint64_t compute_rate(const struct topo_plan *p, const struct facts *f)
{
	uint64_t max = 0, best = 0;
	size_t most = 0;

	for (size_t i = 0; i < p->n_nics; i++)
		if (p->nics[i].role && f[i].rate > max)
			max = f[i].rate;
	for (size_t i = 0; i < p->n_nics; i++) {
		size_t n = 0;

		if (!p->nics[i].role || !f[i].rate || f[i].rate < max / 2)
			continue;
		for (size_t k = 0; k < p->n_nics; k++)
			n += p->nics[k].role && f[k].rate == f[i].rate;
		if (n > most || (n == most && f[i].rate > best)) {
			most = n;
			best = f[i].rate;
		}
	}
	return best;
}

/** A NIC of the compute NICs' model that runs slower stays in the plan when GPUs would lack it. */
static void judge_rates(struct topo_plan *p, const struct facts *f)
{
	uint64_t rate = compute_rate(p, f);
	uint32_t id = 0;
	size_t full = 0;
	char layer = 0;

	for (size_t i = 0; rate && i < p->n_nics; i++)
		if (p->nics[i].role && f[i].rate == rate) {
			id = f[i].id;
			layer = f[i].layer;
			full++;
		}
	for (size_t i = 0; rate && i < p->n_nics; i++) {
		struct topo_plan_nic *n = &p->nics[i];

		if (!n->role || f[i].rate == rate)
			continue;
		bool sibling = id && f[i].id == id && f[i].layer == layer && full < p->n_gpus;

		if (!f[i].rate && !sibling)
			exclude(n, "its rate is not known, the compute NICs have %g Gb/s",
				(double)rate / 1e9);
		else if (!sibling || f[i].rate > rate)
			exclude(n, "%g Gb/s, the compute NICs have %g: storage or management",
				(double)f[i].rate / 1e9, (double)rate / 1e9);
		else if (f[i].rate)
			topo_plan_note(p, "%s runs at %g Gb/s, others of its model at %g",
				p->devs[n->dev].name, (double)f[i].rate / 1e9, (double)rate / 1e9);
	}
}

/** Nodes have one compute fabric. InfiniBand beside as much Ethernet is it; one InfiniBand port
 * beside many Ethernet NICs is not. */
static void judge_layers(struct topo_plan *p, const struct facts *f)
{
	size_t ib = 0, eth = 0;

	for (size_t i = 0; i < p->n_nics; i++) {
		ib += p->nics[i].role && f[i].layer == 'I';
		eth += p->nics[i].role && f[i].layer == 'E';
	}
	if (!ib || !eth)
		return;
	char drop = 2 * ib >= eth ? 'E' : 'I';

	for (size_t i = 0; i < p->n_nics; i++)
		if (p->nics[i].role && f[i].layer == drop)
			exclude(&p->nics[i], drop == 'E'
						     ? "Ethernet, the compute NICs are InfiniBand"
						     : "InfiniBand, the compute NICs are Ethernet");
}

static void judge_bonds(const struct topo *t, struct topo_plan *p)
{
	size_t single = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < p->n_nics; i++) {
			const struct topo_dev *d = &p->devs[p->nics[i].dev];
			bool bond = d->type == TOPO_DEV_RDMA && is_bond(&t->rdma[d->index]);

			if (!p->nics[i].role)
				continue;
			if (!pass)
				single += !bond;
			else if (bond && single)
				exclude(&p->nics[i], "a bond, the compute NICs are single ports");
		}
}

void topo_plan_candidates(const struct topo *t, struct topo_plan *p)
{
	struct facts f[TOPO_PLAN_MAX_NICS] = {{0}};

	p->sockets = !has_rdma_hardware(t, p);
	for (size_t i = 0; i < p->n_nics; i++) {
		const struct topo_dev *d = &p->devs[p->nics[i].dev];

		p->nics[i].role = TOPO_NIC_SPARE;
		f[i] = facts_of(t, d);
		if (d->type == TOPO_DEV_RDMA)
			judge_rdma(t, &t->rdma[d->index], &p->nics[i]);
		else
			judge_netdev(t, p, d, &p->nics[i]);
	}
	judge_rates(p, f);
	judge_layers(p, f);
	judge_bonds(t, p);
}
