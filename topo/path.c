// SPDX-License-Identifier: Apache-2.0
/*
 * How far two devices are from each other, and over how wide a PCIe path. Works on the model alone.
 * What the model does not hold is UNKNOWN: a guest's flat PCI bus is a fact, a missing NUMA node is
 * not.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

#define MAX_CHAIN 80

/** The functions from a device's own up to its root bus. @return their number */
static size_t chain_of(const struct topo *t, int pci, int chain[MAX_CHAIN])
{
	size_t n = 0;

	for (; pci >= 0 && n < MAX_CHAIN; pci = t->pci[pci].parent)
		chain[n++] = pci;
	return n;
}

/** Positions of the nearest bridge above both; false when they meet at no bridge. */
static bool meet(const int *a, size_t na, const int *b, size_t nb, size_t *ia, size_t *ib)
{
	for (size_t i = 1; i < na; i++)
		for (size_t j = 1; j < nb; j++)
			if (a[i] == b[j]) {
				*ia = i;
				*ib = j;
				return true;
			}
	return false;
}

static enum topo_path by_numa(int a, int b)
{
	if (a < 0 || b < 0)
		return TOPO_PATH_UNKNOWN;
	return a == b ? TOPO_PATH_NODE : TOPO_PATH_SYS;
}

/** Row of a device in the order of topo_devices() of a source that gives its own matrix. */
static size_t given_row(const struct topo *t, const struct topo_dev *d)
{
	return d->index + (d->type == TOPO_DEV_GPU           ? 0
				  : d->type == TOPO_DEV_RDMA ? t->n_gpus
							     : t->n_gpus + t->n_rdma);
}

unsigned topo_switch_links(const struct topo *t, size_t gpu)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n_fast; i++)
		if (t->fast[i].gpu == (int)gpu && t->fast[i].peer < 0 &&
			t->fast[i].peer_class >> 8 == 0x0680)
			n += t->fast[i].count;
	return n;
}

unsigned topo_fast_links(const struct topo *t, size_t a, size_t b)
{
	unsigned ab = 0, ba = 0;

	if (a == b)
		return 0;
	for (size_t i = 0; i < t->n_fast; i++) {
		const struct topo_fast *f = &t->fast[i];

		if (f->gpu == (int)a && f->peer == (int)b)
			ab += f->count;
		if (f->gpu == (int)b && f->peer == (int)a)
			ba += f->count;
	}
	if (ab || ba)
		return ab > ba ? ab : ba;
	ab = topo_switch_links(t, a);
	ba = topo_switch_links(t, b);
	return ab < ba ? ab : ba;
}

/** Does a link between virtual switches (Broadcom, <pcilink>) join the two chains? */
static bool nccl_joined(const struct topo *t, const int *a, size_t na, const int *b, size_t nb)
{
	/* Kept attributes of such a file are in order of part and index. */
	for (size_t i = 1; i < na; i++) {
		size_t lo = 0, hi = t->n_extra;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			const struct topo_extra *x = &t->extra[mid];

			if (x->part < TOPO_PART_PCI ||
				(x->part == TOPO_PART_PCI && x->index < a[i]))
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < t->n_extra && t->extra[lo].part == TOPO_PART_PCI &&
			t->extra[lo].index == a[i];
			lo++) {
			const struct topo_extra *x = &t->extra[lo];
			int far = x->name && strcmp(x->name, "pcilink/target") == 0
					  ? topo_find_pci(t, x->value)
					  : TOPO_UNKNOWN;

			for (size_t j = 1; far >= 0 && j < nb; j++)
				if (b[j] == far)
					return true;
		}
	}
	return false;
}

/**
 * NCCL's own classes, for NCCL's own tree: each element above a device is a whole switch, so one
 * between two devices is PIX and several PXB; a path through one <cpu> is PHB (it knows no NODE),
 * through two of them SYS.
 */
static enum topo_path nccl_path(
	const struct topo *t, const struct topo_dev *a, const struct topo_dev *b)
{
	int ca[MAX_CHAIN] = {0}, cb[MAX_CHAIN] = {0};
	size_t na = chain_of(t, a->pci, ca), nb = chain_of(t, b->pci, cb), ia, ib;

	if (na && nb && a->pci == b->pci)
		return TOPO_PATH_PIX;
	if (meet(ca, na, cb, nb, &ia, &ib))
		return ia == 1 && ib == 1 ? TOPO_PATH_PIX : TOPO_PATH_PXB;
	if (nccl_joined(t, ca, na, cb, nb) || nccl_joined(t, cb, nb, ca, na))
		return TOPO_PATH_PXB;
	if (a->numa == b->numa)
		return TOPO_PATH_PHB;
	return a->numa < 0 || b->numa < 0 ? TOPO_PATH_UNKNOWN : TOPO_PATH_SYS;
}

enum topo_path topo_path(const struct topo *t, const struct topo_dev *a, const struct topo_dev *b)
{
	int ca[MAX_CHAIN] = {0}, cb[MAX_CHAIN] = {0};
	size_t ia, ib;

	if (a->type == b->type && a->index == b->index)
		return TOPO_PATH_SELF;
	if (t->given) {
		size_t ra = given_row(t, a), rb = given_row(t, b);

		return ra < t->n_given && rb < t->n_given ? t->given[ra * t->n_given + rb]
							  : TOPO_PATH_UNKNOWN;
	}
	if (a->type == TOPO_DEV_GPU && b->type == TOPO_DEV_GPU &&
		topo_fast_links(t, a->index, b->index))
		return TOPO_PATH_NV;
	if (t->source == TOPO_FROM_NCCL_XML)
		return nccl_path(t, a, b);
	if (a->pci < 0 || b->pci < 0)
		/* Without a place in the tree, only different nodes tell something. */
		return by_numa(a->numa, b->numa) == TOPO_PATH_SYS ? TOPO_PATH_SYS
								  : TOPO_PATH_UNKNOWN;
	if (a->pci == b->pci)
		return TOPO_PATH_PIX;
	size_t na = chain_of(t, a->pci, ca), nb = chain_of(t, b->pci, cb);

	if (meet(ca, na, cb, nb, &ia, &ib))
		/* Below a switch's upstream port each side passes one downstream port. */
		return ia <= 2 && ib <= 2 ? TOPO_PATH_PIX : TOPO_PATH_PXB;
	const struct topo_pci *pa = &t->pci[a->pci], *pb = &t->pci[b->pci];

	if (pa->root[0] && pb->root[0])
		return strcmp(pa->root, pb->root) == 0 ? TOPO_PATH_PHB : by_numa(a->numa, b->numa);
	/* No root bus recorded: other domains are other host bridges all the same. */
	if (strtoul(pa->bdf, NULL, 16) != strtoul(pb->bdf, NULL, 16) ||
		by_numa(a->numa, b->numa) == TOPO_PATH_SYS)
		return by_numa(a->numa, b->numa);
	return TOPO_PATH_UNKNOWN;
}

const char *topo_path_name(enum topo_path p)
{
	static const char *const names[] = {"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};

	return p <= TOPO_PATH_UNKNOWN ? names[p] : "?";
}

double topo_link_bandwidth(double gts, unsigned width)
{
	double coding = gts <= 5.0 ? 8.0 / 10 : gts <= 32.0 ? 128.0 / 130 : 242.0 / 256;

	return gts > 0 && width ? gts * 1e9 / 8 * coding * width : 0;
}

static double lesser(double a, double b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

/**
 * PCIe alternates: root port, upstream port, downstream port, ... Root and downstream ports report
 * the link below them, which the function there reports too.
 */
static bool tells_link_below(const struct topo *t, const struct topo_pci *p)
{
	unsigned depth = 0;

	/* NCCL's tree holds upstream ports alone. */
	if (t->source == TOPO_FROM_NCCL_XML)
		return false;
	for (int up = p->parent; up >= 0; up = t->pci[up].parent)
		depth++;
	return p->bridge && depth % 2 == 0;
}

/** Weakest link from chain[0] up to, not including, chain[end]. 0 when the device's own is unknown.
 */
static double weakest(const struct topo *t, const int *chain, size_t end, bool gpu)
{
	double min = 0;

	for (size_t i = 0; i < end; i++) {
		const struct topo_pci *p = &t->pci[chain[i]];

		if (tells_link_below(t, p))
			continue;
		/* NCCL's files tell the best of both ends, not what is trained. */
		bool best = (i == 0 && gpu) || t->source == TOPO_FROM_NCCL_XML;
		double bw = best ? topo_link_bandwidth(p->link.max_gts, p->link.max_width)
				 : topo_link_bandwidth(p->link.now_gts, p->link.now_width);

		if (i == 0 && gpu && bw <= 0)
			bw = topo_link_bandwidth(p->link.now_gts, p->link.now_width);
		if (bw <= 0)
			bw = p->link.bandwidth;
		if (i == 0 && bw <= 0)
			return 0;
		min = lesser(bw, min);
	}
	return min;
}

double topo_path_bandwidth(const struct topo *t, const struct topo_dev *a, const struct topo_dev *b)
{
	int ca[MAX_CHAIN] = {0}, cb[MAX_CHAIN] = {0};
	size_t ia, ib;

	if (a->pci < 0 || b->pci < 0 || a->pci == b->pci)
		return 0;
	size_t na = chain_of(t, a->pci, ca), nb = chain_of(t, b->pci, cb);

	if (!meet(ca, na, cb, nb, &ia, &ib)) {
		ia = na;
		ib = nb;
	}
	double x = weakest(t, ca, ia, a->type == TOPO_DEV_GPU);
	double y = weakest(t, cb, ib, b->type == TOPO_DEV_GPU);

	return x > 0 && y > 0 ? lesser(x, y) : 0;
}

bool topo_link_downtrained(const struct topo *t, const struct topo_pci *p)
{
	if (tells_link_below(t, p))
		return false;
	double speed = p->link.max_gts;
	unsigned width = p->link.max_width;

	if (p->parent >= 0) {
		const struct topo_pci *up = &t->pci[p->parent];

		speed = lesser(up->link.max_gts, speed);
		if (up->link.max_width && up->link.max_width < width)
			width = up->link.max_width;
	}
	return (p->link.now_gts > 0 && p->link.now_gts < speed) ||
	       (p->link.now_width && p->link.now_width < width);
}

int *topo_root_numa(const struct topo *t)
{
	int *numa = calloc(t->n_pci + 1, sizeof(*numa)), *first;

	first = calloc(t->n_pci + 1, sizeof(*first));
	if (!numa || !first) {
		free(numa);
		free(first);
		return NULL;
	}
	/* In address order the functions of one root bus are one stretch; the first speaks for all.
	 */
	int head = TOPO_UNKNOWN;

	for (size_t i = 0; i < t->n_pci; i++) {
		numa[i] = TOPO_UNKNOWN;
		first[i] = (int)i;
		if (t->pci[i].parent >= 0)
			continue;
		if (head < 0 || !t->pci[i].root[0] ||
			strcmp(t->pci[head].root, t->pci[i].root) != 0)
			head = (int)i;
		first[i] = head;
	}
	for (size_t i = 0; i < t->n_pci; i++) {
		int top = (int)i;

		while (t->pci[top].parent >= 0)
			top = t->pci[top].parent;
		if (numa[first[top]] < 0)
			numa[first[top]] = t->pci[i].numa;
	}
	for (size_t i = 0; i < t->n_pci; i++)
		numa[i] = numa[first[i]];
	free(first);
	return numa;
}
