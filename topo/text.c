// SPDX-License-Identifier: Apache-2.0
/*
 * The tree for people. Renders the model only; every unknown is printed as "?".
 */
#include <inttypes.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "topo/topo_priv.h"

const char *topo_fmt_link(double gts, unsigned width, char *buf, size_t len)
{
	if (gts <= 0 || width == 0)
		snprintf(buf, len, "?");
	else
		snprintf(buf, len, "%g GT/s x%u", gts, width);
	return buf;
}

static void indent(struct fb_strbuf *o, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		fb_strbuf_add(o, "  ");
}

/** Names come from files that may hold anything: control characters would rule the terminal. */
static void add_clean(struct fb_strbuf *o, const char *s)
{
	for (; *s; s++) {
		char c = (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s;

		fb_strbuf_addn(o, &c, 1);
	}
}

/* ---- what is worth a line -------------------------------------------------------------------- */

struct view {
	const struct topo *t;
	struct fb_strbuf *o;
	bool *shown;    /* by PCI index: itself, or something below it, is of interest */
	bool *placed;   /* by PCI index: printed under a NUMA node */
	int *root_numa; /* by PCI index of a function on a root bus: where its root bus is printed
			 */
	int *first_kid; /* children in order, as lists */
	int *next_kid;
};

static bool of_interest(const struct topo *t, size_t i)
{
	unsigned base = t->pci[i].class_code >> 16;

	/* Storage, network, display, co-processors, accelerators. */
	if ((base == 0x01 || base == 0x02 || base == 0x03 || base == 0x0b || base == 0x12) &&
		t->pci[i].physfn < 0)
		return true;
	for (size_t k = 0; k < t->n_nics; k++)
		if (t->nics[k].pci == (int)i)
			return true;
	for (size_t k = 0; k < t->n_rdma; k++)
		if (t->rdma[k].pci == (int)i && !t->rdma[k].soft)
			return true;
	return false;
}

static bool view_init(struct view *v, const struct topo *t, bool all, struct fb_strbuf *o)
{
	size_t n = t->n_pci + 1;

	*v = (struct view){.t = t, .o = o};
	v->shown = calloc(n, sizeof(*v->shown));
	v->placed = calloc(n, sizeof(*v->placed));
	v->root_numa = topo_root_numa(t);
	v->first_kid = calloc(n, sizeof(int));
	v->next_kid = calloc(n, sizeof(int));
	if (!v->shown || !v->placed || !v->root_numa || !v->first_kid || !v->next_kid)
		return false;
	for (size_t i = 0; i < n; i++)
		v->first_kid[i] = v->next_kid[i] = TOPO_UNKNOWN;
	for (size_t i = t->n_pci; i-- > 0;) {
		int up = t->pci[i].parent;

		if (up < 0)
			continue;
		v->next_kid[i] = v->first_kid[up];
		v->first_kid[up] = (int)i;
	}
	for (size_t i = 0; i < t->n_pci; i++) {
		if (!all && !of_interest(t, i))
			continue;
		for (int p = (int)i; p >= 0 && !v->shown[p]; p = t->pci[p].parent)
			v->shown[p] = true;
	}
	return true;
}

static void view_free(struct view *v)
{
	free(v->shown);
	free(v->placed);
	free(v->root_numa);
	free(v->first_kid);
	free(v->next_kid);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void add_link(struct view *v, const struct topo_pci *p, bool gpu)
{
	char now[32], max[32];

	topo_fmt_link(p->link.now_gts, p->link.now_width, now, sizeof(now));
	topo_fmt_link(p->link.max_gts, p->link.max_width, max, sizeof(max));
	if (*now == '?' && *max == '?') {
		if (p->link.bandwidth > 0)
			fb_strbuf_printf(v->o, "  %.3g GB/s", p->link.bandwidth / 1e9);
		return;
	}
	fb_strbuf_printf(v->o, "  %s (max %s)", now, max);
	if (topo_link_downtrained(v->t, p))
		fb_strbuf_add(
			v->o, gpu ? "  below its best (normal when idle)" : "  BELOW ITS BEST");
}

static void add_rate(struct fb_strbuf *o, uint64_t bps)
{
	if (bps)
		fb_strbuf_printf(o, "  %g Gb/s", (double)bps / 1e9);
}

static void nic_line(struct view *v, const struct topo_nic *nic, unsigned depth)
{
	indent(v->o, depth);
	fb_strbuf_add(v->o, "interface ");
	add_clean(v->o, nic->name);
	if (nic->state[0]) {
		fb_strbuf_add(v->o, "  ");
		add_clean(v->o, nic->state);
	}
	add_rate(v->o, nic->rate_bps);
	if (nic->mtu)
		fb_strbuf_printf(v->o, "  MTU %d", nic->mtu);
	if (nic->driver[0]) {
		fb_strbuf_add(v->o, "  driver ");
		add_clean(v->o, nic->driver);
	}
	fb_strbuf_add(v->o, "\n");
}

static void rdma_lines(struct view *v, const struct topo_rdma *d, unsigned depth)
{
	struct topo_dev dev = {
		TOPO_DEV_RDMA, (size_t)(d - v->t->rdma), d->name, d->pci, d->numa, d->cpus};

	indent(v->o, depth);
	fb_strbuf_add(v->o, "RDMA device ");
	add_clean(v->o, d->name);
	fb_strbuf_printf(v->o, "  %s", topo_dev_kind(v->t, &dev));
	if (d->soft && d->netdev[0]) {
		fb_strbuf_add(v->o, " on ");
		add_clean(v->o, d->netdev);
	}
	if (d->fw[0]) {
		fb_strbuf_add(v->o, "  firmware ");
		add_clean(v->o, d->fw);
	}
	fb_strbuf_add(v->o, "\n");
	for (size_t i = 0; i < d->n_ports; i++) {
		const struct topo_rdma_port *p = &d->ports[i];

		indent(v->o, depth + 1);
		fb_strbuf_printf(v->o, "port %u  ", p->num);
		add_clean(v->o, p->state_name[0] ? p->state_name : "?");
		fb_strbuf_add(v->o, "/");
		add_clean(v->o, p->phys_state[0] ? p->phys_state : "?");
		fb_strbuf_add(v->o, "  ");
		add_clean(v->o, p->link_layer[0] ? p->link_layer : "?");
		if (p->rate[0]) {
			fb_strbuf_add(v->o, "  ");
			add_clean(v->o, p->rate);
		}
		if (p->netdev[0] && !d->soft) {
			fb_strbuf_add(v->o, "  interface ");
			add_clean(v->o, p->netdev);
		}
		fb_strbuf_add(v->o, "\n");
	}
}

/** What stands on a PCI function: its GPU name, RDMA devices, interfaces. */
static void residents(struct view *v, int pci, unsigned depth)
{
	for (size_t i = 0; i < v->t->n_rdma; i++)
		if (v->t->rdma[i].pci == pci && !v->t->rdma[i].soft)
			rdma_lines(v, &v->t->rdma[i], depth);
	for (size_t i = 0; i < v->t->n_nics; i++) {
		if (v->t->nics[i].pci != pci)
			continue;
		/* A file may name it by its function alone: that line stands above. */
		if (pci >= 0 && strcmp(v->t->nics[i].name, v->t->pci[pci].bdf) == 0)
			continue;
		nic_line(v, &v->t->nics[i], depth);
		for (size_t k = 0; k < v->t->n_rdma; k++)
			if (v->t->rdma[k].soft && v->t->rdma[k].nic == (int)i)
				rdma_lines(v, &v->t->rdma[k], depth + 1);
	}
}

static void pci_lines(struct view *v, int i, unsigned depth)
{
	const struct topo_pci *p = &v->t->pci[i];
	const char *maker = topo_vendor_name(p->vendor);
	bool gpu = false;

	if (!v->shown[i] || depth > 80)
		return;
	indent(v->o, depth);
	fb_strbuf_add(v->o, p->bdf);
	for (size_t k = 0; k < v->t->n_gpus; k++)
		if (v->t->gpus[k].pci == i) {
			gpu = true;
			fb_strbuf_printf(v->o, "  %s", v->t->gpus[k].name);
			if (v->t->gpus[k].model) {
				fb_strbuf_add(v->o, " ");
				add_clean(v->o, v->t->gpus[k].model);
			}
		}
	fb_strbuf_printf(v->o, "  %s%s%s", maker ? maker : "", maker ? " " : "",
		topo_class_name(p->class_code));
	if (p->device)
		fb_strbuf_printf(v->o, " [%04x:%04x]", p->vendor, p->device);
	if (p->driver[0] && !p->bridge) {
		fb_strbuf_add(v->o, "  driver ");
		add_clean(v->o, p->driver);
	}
	add_link(v, p, gpu);
	fb_strbuf_add(v->o, "\n");
	residents(v, i, depth + 1);
	for (int k = v->first_kid[i]; k >= 0; k = v->next_kid[k])
		pci_lines(v, k, depth + 1);
}

/* ---- root buses under NUMA nodes ------------------------------------------------------------- */

static bool same_root(const struct topo_pci *a, const struct topo_pci *b)
{
	return a->root[0] && strcmp(a->root, b->root) == 0;
}

static void root_lines(struct view *v, int numa, unsigned depth)
{
	const struct topo *t = v->t;

	for (size_t i = 0; i < t->n_pci; i++) {
		if (t->pci[i].parent >= 0 || v->placed[i] || v->root_numa[i] != numa)
			continue;
		bool head = false;

		for (size_t k = i; k < t->n_pci; k++) {
			if (t->pci[k].parent >= 0 || v->placed[k])
				continue;
			/* In address order a root bus is one stretch. */
			if (k != i && !same_root(&t->pci[i], &t->pci[k]))
				break;
			v->placed[k] = true;
			if (!v->shown[k])
				continue;
			if (!head && t->pci[i].root[0]) {
				indent(v->o, depth);
				fb_strbuf_printf(v->o, "PCI root %s\n", t->pci[i].root);
			}
			head = true;
			pci_lines(v, (int)k, depth + (t->pci[i].root[0] ? 1 : 0));
		}
	}
	/* Devices that hang on no PCI function but whose place is known. */
	for (size_t i = 0; i < t->n_rdma; i++)
		if (t->rdma[i].pci < 0 && t->rdma[i].numa == numa &&
			(!t->rdma[i].soft || t->rdma[i].nic < 0))
			rdma_lines(v, &t->rdma[i], depth);
	for (size_t i = 0; i < t->n_nics; i++) {
		const struct topo_nic *nic = &t->nics[i];

		if (nic->pci >= 0 || nic->is_virtual || nic->numa != numa)
			continue;
		nic_line(v, nic, depth);
		for (size_t k = 0; k < t->n_rdma; k++)
			if (t->rdma[k].soft && t->rdma[k].nic == (int)i)
				rdma_lines(v, &t->rdma[k], depth + 1);
	}
}

/** NCCL's files and nvidia-smi's text tell neither packages, cores nor memory. */
static bool tells_devices_alone(const struct topo *t)
{
	return t->source == TOPO_FROM_NCCL_XML || t->source == TOPO_FROM_SMI;
}

/** What firmware (HMAT) tells of this node's memory, by the node whose CPUs access it. */
static void access_lines(struct view *v, size_t target, unsigned depth)
{
	const struct topo *t = v->t;

	for (size_t i = 0; i < t->n_numa; i++) {
		size_t at = i * t->n_numa + target;
		double ns = t->latency_ns ? t->latency_ns[at] : NAN;
		double bw = t->bandwidth ? t->bandwidth[at] : NAN;

		if (isnan(ns) && isnan(bw))
			continue;
		indent(v->o, depth);
		fb_strbuf_printf(
			v->o, "memory from node %d, as firmware tells:", t->numa[i].os_index);
		if (!isnan(ns))
			fb_strbuf_printf(v->o, " %g ns", ns);
		if (!isnan(bw))
			fb_strbuf_printf(v->o, " %.4g GB/s", bw / 1e9);
		fb_strbuf_add(v->o, "\n");
	}
}

static void numa_lines(struct view *v, size_t i, unsigned depth)
{
	const struct topo *t = v->t;
	const struct topo_numa *n = &t->numa[i];
	char mem[32];

	indent(v->o, depth);
	fb_strbuf_printf(v->o, "NUMA node %d", n->os_index);
	if (n->kind)
		fb_strbuf_printf(v->o, " (%s)", n->kind);
	const char *none = tells_devices_alone(t) ? "?" : "none";

	fb_strbuf_printf(v->o, "  CPUs %s  memory %s", *n->cpus ? n->cpus : none,
		n->memory       ? fb_fmt_size(n->memory, mem, sizeof(mem))
		: t->n_numa > 1 ? none
				: "?");
	if (t->distance) {
		fb_strbuf_add(v->o, "  distances");
		for (size_t k = 0; k < t->n_numa; k++)
			fb_strbuf_printf(v->o, " %u", t->distance[i * t->n_numa + k]);
	}
	fb_strbuf_add(v->o, "\n");
	access_lines(v, i, depth + 1);
	root_lines(v, n->os_index, depth + 1);
}

static void virtual_lines(struct view *v)
{
	const struct topo *t = v->t;
	bool head = false;

	for (size_t i = 0; i < t->n_nics; i++) {
		if (!t->nics[i].is_virtual)
			continue;
		if (!head)
			fb_strbuf_add(v->o, "  virtual interfaces\n");
		head = true;
		nic_line(v, &t->nics[i], 2);
		for (size_t k = 0; k < t->n_rdma; k++)
			if (t->rdma[k].soft && t->rdma[k].nic == (int)i && t->rdma[k].pci < 0)
				rdma_lines(v, &t->rdma[k], 3);
	}
}

/** root_lines() for what has no NUMA node, under a heading of its own if there is anything. */
static void unplaced_lines(struct view *v)
{
	struct fb_strbuf part = {0}, *o = v->o;

	v->o = &part;
	root_lines(v, TOPO_UNKNOWN, 2);
	v->o = o;
	if (part.len) {
		fb_strbuf_add(o, v->t->n_numa ? "  NUMA node unknown\n" : "  devices\n");
		fb_strbuf_addn(o, part.s, part.len);
	}
	fb_strbuf_free(&part);
}

static void machine_line(const struct topo *t, struct fb_strbuf *o)
{
	bool devices_alone = tells_devices_alone(t);

	fb_strbuf_printf(o, "Machine%s", t->virtual_machine ? " (virtual)" : "");
	if (!devices_alone)
		fb_strbuf_printf(
			o, "  %zu package%s,", t->n_packages, t->n_packages == 1 ? "" : "s");
	fb_strbuf_printf(o, "%s %zu NUMA node%s", devices_alone ? " " : "", t->n_numa,
		t->n_numa == 1 ? "" : "s");
	if (!devices_alone)
		fb_strbuf_printf(o, ", %u core%s", t->cores, t->cores == 1 ? "" : "s");
	if (!devices_alone || t->pus)
		fb_strbuf_printf(o, ", %u CPU%s", t->pus, t->pus == 1 ? "" : "s");
	fb_strbuf_printf(o, ", %zu GPU%s\n", t->n_gpus, t->n_gpus == 1 ? "" : "s");
}

void topo_tree(const struct topo *t, bool all, struct fb_strbuf *o)
{
	struct view v;

	if (!view_init(&v, t, all, o)) {
		o->failed = true;
		view_free(&v);
		return;
	}
	machine_line(t, o);
	for (size_t i = 0; i < t->n_packages; i++) {
		fb_strbuf_printf(o, "  Package %u", t->packages[i].os_index);
		if (t->packages[i].model) {
			fb_strbuf_add(o, "  ");
			add_clean(o, t->packages[i].model);
		}
		fb_strbuf_printf(o, "  %u core%s  CPUs %s\n", t->packages[i].cores,
			t->packages[i].cores == 1 ? "" : "s", t->packages[i].cpus);
		for (size_t k = 0; k < t->n_numa; k++)
			if (t->numa[k].package == (int)i)
				numa_lines(&v, k, 2);
	}
	for (size_t k = 0; k < t->n_numa; k++)
		if (t->numa[k].package == TOPO_UNKNOWN)
			numa_lines(&v, k, 1);
	unplaced_lines(&v);
	virtual_lines(&v);
	for (size_t i = 0; i < t->n_warnings; i++) {
		fb_strbuf_add(o, "  note: ");
		add_clean(o, t->warnings[i]);
		fb_strbuf_add(o, "\n");
	}
	view_free(&v);
}
