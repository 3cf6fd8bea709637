// SPDX-License-Identifier: Apache-2.0
/*
 * What each network device is for. Told from its place and make: a compute NIC whose link is down
 * or slow is still a compute NIC, and one whose GPU is gone too.
 */
#include <stdio.h>
#include <string.h>

#include "topo/node/node_priv.h"

const char *const node_role_names[] = {
	"none", "compute", "storage", "management", "aggregation node", "virtual"};

#define MAX_CHAIN 80

static unsigned depth(const struct topo *t, int pci)
{
	int chain[MAX_CHAIN];
	return (unsigned)node_chain(t, pci, chain, MAX_CHAIN);
}

static bool is_aggregation(const char *name)
{
	const char *an = strstr(name, "_an");
	return an && an[3] >= '0' && an[3] <= '9';
}

/* A bond's RDMA device carries the name, or stands on an interface that is one's slave. */
static bool is_bond(const struct node *n, const struct node_dev *d)
{
	const char *netdev = d->rdma >= 0  ? n->t->rdma[d->rdma].netdev
			     : d->nic >= 0 ? n->t->nics[d->nic].name
					   : "";
	return strstr(d->name, "bond") || strstr(netdev, "bond") ||
	       (*netdev && fb_sysroot_exists(n->r, "/sys/class/net/%s/master/bonding", netdev));
}

static bool infiniband(const struct topo_rdma *r)
{
	return r->n_ports > 0 && strcmp(r->ports[0].link_layer, "InfiniBand") == 0;
}

/* What cannot be a compute NIC whatever the place. @return true: decided */
static bool by_kind(struct node *n, struct node_dev *d)
{
	const struct topo *t = n->t;
	d->role = NODE_ROLE_MANAGEMENT;
	if (d->gpu >= 0) {
		d->role = NODE_ROLE_NONE;
		d->role_why = "a GPU";
	} else if (d->rdma < 0) {
		d->role_why = "no RDMA device stands on it";
	} else if (t->rdma[d->rdma].soft) {
		d->role = NODE_ROLE_VIRTUAL;
		d->role_why = "software: no hardware of its own";
	} else if (is_aggregation(d->name)) {
		d->role = NODE_ROLE_AGGREGATION;
		d->role_why = "SHARP's aggregation node, no port for traffic";
	} else if (d->pci >= 0 && t->pci[d->pci].physfn >= 0) {
		d->role = NODE_ROLE_VIRTUAL;
		d->role_why = "a virtual function beside its physical one";
	} else if (is_bond(n, d)) {
		d->role_why = "part of a bond";
	} else {
		return false;
	}
	return true;
}

/* The nearest that any candidate is to any GPU. */
static enum topo_path nearest_to_gpus(const struct node *n, const struct node_dev *nic)
{
	enum topo_path best = TOPO_PATH_UNKNOWN;
	for (size_t i = 0; i < n->n_dev; i++) {
		if (n->dev[i].gpu < 0)
			continue;
		enum topo_path p = node_path(n, nic, &n->dev[i]);
		best = p < best ? p : best;
	}
	return best;
}

/* Same card, same depth below the root, as one that shares a switch with a GPU: its own GPU may be
 * what is missing. */
static bool like_a_near_one(const struct node *n, const struct node_dev *d, enum topo_path limit)
{
	const struct topo *t = n->t;
	for (size_t i = 0; i < n->n_dev && d->pci >= 0; i++) {
		const struct node_dev *o = &n->dev[i];
		if (o == d || o->role != NODE_ROLE_COMPUTE || o->pci < 0)
			continue;
		if (o->near <= limit && t->pci[o->pci].vendor == t->pci[d->pci].vendor &&
			t->pci[o->pci].device == t->pci[d->pci].device &&
			depth(t, o->pci) == depth(t, d->pci))
			return true;
	}
	return false;
}

/* Beside GPUs: those that share a switch with one, where any does; else all within a NUMA node. */
static void by_gpus(struct node *n)
{
	enum topo_path best = TOPO_PATH_UNKNOWN;
	for (size_t i = 0; i < n->n_dev; i++)
		if (n->dev[i].role == NODE_ROLE_COMPUTE) {
			enum topo_path p = nearest_to_gpus(n, &n->dev[i]);
			n->dev[i].near = p;
			best = p < best ? p : best;
		}
	if (best == TOPO_PATH_UNKNOWN || best == TOPO_PATH_SYS)
		return; /* nothing tells them apart */
	enum topo_path limit = best <= TOPO_PATH_PXB ? TOPO_PATH_PXB : TOPO_PATH_NODE;
	/* Far ones are marked only when all have been looked at. */
	for (size_t i = 0; i < n->n_dev; i++) {
		struct node_dev *d = &n->dev[i];
		if (d->role != NODE_ROLE_COMPUTE || d->near <= limit)
			continue;
		if (like_a_near_one(n, d, limit))
			d->role_why = "a card like those beside GPUs, in a place like theirs";
		else
			d->role_why = NULL;
	}
	for (size_t i = 0; i < n->n_dev; i++) {
		struct node_dev *d = &n->dev[i];
		if (d->role != NODE_ROLE_COMPUTE || d->role_why)
			continue;
		d->role = d->near <= TOPO_PATH_NODE ? NODE_ROLE_STORAGE : NODE_ROLE_MANAGEMENT;
		d->role_why = d->role == NODE_ROLE_STORAGE
				      ? "no GPU shares its switch, as others' do"
				      : "no GPU in its NUMA node";
	}
}

void node_find_roles(struct node *n)
{
	bool any_ib = false;
	for (size_t i = 0; i < n->n_dev; i++) {
		struct node_dev *d = &n->dev[i];
		if (by_kind(n, d))
			continue;
		d->role = NODE_ROLE_COMPUTE;
		any_ib = any_ib || infiniband(&n->t->rdma[d->rdma]);
		d->role_why = n->t->n_gpus ? "near a GPU" : "an RDMA device of a node without GPUs";
	}
	if (n->t->n_gpus > 0) {
		by_gpus(n);
		return;
	}
	for (size_t i = 0; i < n->n_dev && any_ib; i++) {
		struct node_dev *d = &n->dev[i];
		if (d->role == NODE_ROLE_COMPUTE && !infiniband(&n->t->rdma[d->rdma])) {
			d->role = NODE_ROLE_STORAGE;
			d->role_why = "Ethernet beside InfiniBand";
		}
	}
}
