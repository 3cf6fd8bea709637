// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL's topology XML, written from the model for NCCL_TOPO_FILE.
 *
 * What the file must be like, from NCCL's src/graph/xml.cc and topo.cc as they stand in 2026:
 * - its parser is its own: no XML declaration, no tab between tags, one blank between attributes,
 *   values under 255 characters, no entities; comments are fine;
 * - version 1, RCCL's is 2, other versions are refused;
 * - from a device upwards it takes every second bridge (upstream ports; root and downstream ports
 *   are left out) until the root bus, which becomes the <cpu> of the function's NUMA node;
 * - link_speed and link_width are the lesser of the best of both ends, for GPUs too; what is
 * trained now is never in it (an idle GPU's Gen1 would make NCCL avoid it). An attribute that is
 * missing is read from sysfs where the file is used, an empty one is not: what is unknown is left
 * out;
 * - <gpu> without rank and <net> without dev belong to nobody until NCCL finds that device at run
 *   time, which fills both in: from a machine they are written without.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_xml.h"

#define MAX_VALUE 254 /* characters NCCL reads of one value */

struct writer {
	const struct topo *t;
	struct fb_strbuf *o;
	bool anonymous;
	bool own; /* the model came from such a file: all of it is written */
	int *up;  /* by PCI index: the element above, or TOPO_UNKNOWN */
	int *first_kid, *next_kid;
	bool *shown;
	struct topo_dev *devs;
	size_t n_devs;
};

static void put(struct writer *w, const char *name, const char *value)
{
	fb_strbuf_printf(w->o, " %s=\"", name);
	fb_strbuf_add_xml(w->o, value);
	fb_strbuf_add(w->o, "\"");
}

static void indent(struct writer *w, unsigned depth)
{
	fb_strbuf_printf(w->o, "%*s", (int)(2 * depth), "");
}

/* ---- what a file held besides -------------------------------------------------------------- */

/** First of a part's kept attributes: those of a file stand in order of part and index. */
static size_t kept_from(const struct topo *t, enum topo_part part, int index)
{
	size_t lo = 0, hi = t->n_extra;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct topo_extra *x = &t->extra[mid];

		if (x->part < part || (x->part == part && x->index < index))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool secret(const struct writer *w, const struct topo_extra *x)
{
	if (!w->anonymous)
		return false;
	/* Whatever a foreign element holds may name something. */
	return !x->name || strcmp(x->name, "nic/") == 0 || strcmp(x->name, "guid") == 0 ||
	       strcmp(x->name, "host_hash") == 0 ||
	       (x->part == TOPO_PART_SYSTEM && strcmp(x->name, "name") == 0);
}

/** The k-th kept attribute, when it is of this part. */
static const struct topo_extra *kept_at(
	const struct writer *w, enum topo_part part, int index, size_t k)
{
	const struct topo_extra *x = w->own && k < w->t->n_extra ? &w->t->extra[k] : NULL;

	return x && x->part == part && x->index == index ? x : NULL;
}

#define EACH_KEPT(w, x, p, i)                   \
	size_t x##_k = kept_from((w)->t, p, i); \
	(x = kept_at(w, p, i, x##_k));          \
	x##_k++

static void put_kept(struct writer *w, enum topo_part part, int index)
{
	const struct topo_extra *x;

	for (EACH_KEPT(w, x, part, index))
		if (x->name && !strchr(x->name, '/') && !secret(w, x))
			put(w, x->name, x->value);
}

static bool has_kept(struct writer *w, enum topo_part part, int index, const char *prefix)
{
	const struct topo_extra *x;

	for (EACH_KEPT(w, x, part, index))
		if (x->name && strncmp(x->name, prefix, strlen(prefix)) == 0)
			return true;
	return false;
}

/** Foreign child elements of a part, and the links between virtual switches. */
static void kept_elements(struct writer *w, enum topo_part part, int index, unsigned depth)
{
	const struct topo_extra *x;

	for (EACH_KEPT(w, x, part, index)) {
		if (secret(w, x))
			continue;
		if (!x->name) {
			indent(w, depth);
			fb_strbuf_printf(w->o, "%s\n", x->value);
		} else if (strcmp(x->name, "pcilink/target") == 0) {
			indent(w, depth);
			fb_strbuf_printf(w->o, "<pcilink target=\"%s\"/>\n", x->value);
		}
	}
}

static bool has_elements(struct writer *w, enum topo_part part, int index)
{
	const struct topo_extra *x;

	for (EACH_KEPT(w, x, part, index))
		if (!secret(w, x) && (!x->name || strcmp(x->name, "pcilink/target") == 0))
			return true;
	return false;
}

/** ">", or "/>" and the end of the element. @return whether children may follow */
static bool open_tag(struct writer *w, bool children)
{
	fb_strbuf_add(w->o, children ? ">\n" : "/>\n");
	return children;
}

static void close_tag(struct writer *w, const char *name, unsigned depth)
{
	indent(w, depth);
	fb_strbuf_printf(w->o, "</%s>\n", name);
}

/* ---- network devices ----------------------------------------------------------------------- */

static bool stands_on(const struct topo_dev *d, int pci, int numa)
{
	return d->type != TOPO_DEV_GPU && d->pci == pci && (pci >= 0 || d->numa == numa);
}

/** The function of a NIC that the file named by its function alone, without a <net>; else NULL. */
static const struct topo_pci *nameless(const struct writer *w, const struct topo_dev *d)
{
	const struct topo_pci *p = d->pci >= 0 ? &w->t->pci[d->pci] : NULL;

	if (!w->own || d->type != TOPO_DEV_NETDEV || !p || strcmp(d->name, p->bdf) != 0 ||
		w->t->nics[d->index].rate_bps ||
		kept_at(w, TOPO_PART_NIC, (int)d->index,
			kept_from(w->t, TOPO_PART_NIC, (int)d->index)))
		return NULL;
	return p;
}

static bool is_soft(const struct writer *w, const struct topo_dev *d)
{
	return d->type == TOPO_DEV_RDMA && w->t->rdma[d->index].soft;
}

static void net_element(struct writer *w, const struct topo_dev *d, unsigned depth)
{
	enum topo_part part = d->type == TOPO_DEV_RDMA ? TOPO_PART_RDMA : TOPO_PART_NIC;
	const struct topo_rdma *rdma = d->type == TOPO_DEV_RDMA ? &w->t->rdma[d->index] : NULL;
	uint64_t bps = rdma ? (rdma->n_ports ? rdma->ports[0].rate_bps : 0)
			    : w->t->nics[d->index].rate_bps;

	indent(w, depth);
	fb_strbuf_add(w->o, "<net");
	put(w, "name", d->name);
	if (bps)
		fb_strbuf_printf(w->o, " speed=\"%llu\"", (unsigned long long)(bps / 1000000));
	if (rdma && rdma->n_ports)
		fb_strbuf_printf(w->o, " port=\"%u\"", rdma->ports[0].num);
	put_kept(w, part, (int)d->index);
	if (open_tag(w, has_elements(w, part, (int)d->index))) {
		kept_elements(w, part, (int)d->index, depth + 1);
		close_tag(w, "net", depth);
	}
}

/**
 * The <nic> of a function, or (pci TOPO_UNKNOWN) of what has no function on a node.
 * @param owner whose kept attributes: the function's index, or the node's
 */
static void nic_element(struct writer *w, int pci, int numa, int owner, unsigned depth)
{
	enum topo_part part = pci >= 0 ? TOPO_PART_PCI : TOPO_PART_NUMA;
	const struct topo_extra *x;
	bool any = has_kept(w, part, owner, "nic/"), nets = false, bare = false;

	for (size_t i = 0; i < w->n_devs; i++)
		if (stands_on(&w->devs[i], pci, numa) && !is_soft(w, &w->devs[i])) {
			const struct topo_pci *p = nameless(w, &w->devs[i]);

			nets |= !p;
			/* The class alone will not say that it is a NIC. */
			bare |= p && p->class_code >> 16 != 0x02;
		}
	if (!any && !nets && !bare)
		return;
	indent(w, depth);
	fb_strbuf_add(w->o, "<nic");
	for (EACH_KEPT(w, x, part, owner))
		if (x->name && strncmp(x->name, "nic/", 4) == 0 && x->name[4])
			put(w, x->name + 4, x->value);
	if (!open_tag(w, nets || has_kept(w, part, owner, "nic/")))
		return;
	for (size_t i = 0; i < w->n_devs; i++)
		if (stands_on(&w->devs[i], pci, numa) && !is_soft(w, &w->devs[i]) &&
			!nameless(w, &w->devs[i]))
			net_element(w, &w->devs[i], depth + 1);
	for (EACH_KEPT(w, x, part, owner))
		if (x->name && strcmp(x->name, "nic/") == 0 && !secret(w, x)) {
			indent(w, depth + 1);
			fb_strbuf_printf(w->o, "%s\n", x->value);
		}
	close_tag(w, "nic", depth);
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void link_element(struct writer *w, size_t i, unsigned depth)
{
	static const char *const tags[] = {
		[TOPO_FAST_NVLINK] = "nvlink", [TOPO_FAST_XGMI] = "xgmi", [TOPO_FAST_C2C] = "c2c"};
	const struct topo_fast *l = &w->t->fast[i];

	indent(w, depth);
	fb_strbuf_printf(w->o, "<%s", tags[l->kind]);
	if (l->kind == TOPO_FAST_C2C && l->count)
		fb_strbuf_printf(w->o, " bw=\"%.0f\"", l->bandwidth / l->count / 1e6);
	if (l->peer_bdf[0])
		put(w, "target", l->peer_bdf);
	fb_strbuf_printf(w->o, " count=\"%u\"", l->count);
	if (l->peer_class)
		fb_strbuf_printf(w->o, " tclass=\"0x%06x\"", l->peer_class);
	put_kept(w, TOPO_PART_FAST, (int)i);
	if (open_tag(w, has_elements(w, TOPO_PART_FAST, (int)i))) {
		kept_elements(w, TOPO_PART_FAST, (int)i, depth + 1);
		close_tag(w, tags[l->kind], depth);
	}
}

static bool gpu_needs_element(struct writer *w, int gpu)
{
	for (size_t i = 0; i < w->t->n_fast; i++)
		if (w->t->fast[i].gpu == gpu)
			return true;
	if (kept_at(w, TOPO_PART_GPU, gpu, kept_from(w->t, TOPO_PART_GPU, gpu)))
		return true;
	return !nccl_gpu_class(&w->t->pci[w->t->gpus[gpu].pci]);
}

static void gpu_element(struct writer *w, int gpu, unsigned depth)
{
	bool children = has_elements(w, TOPO_PART_GPU, gpu);

	if (!gpu_needs_element(w, gpu))
		return;
	for (size_t i = 0; i < w->t->n_fast; i++)
		children |= w->t->fast[i].gpu == gpu;
	indent(w, depth);
	fb_strbuf_add(w->o, "<gpu");
	put_kept(w, TOPO_PART_GPU, gpu);
	if (!open_tag(w, children))
		return;
	for (size_t i = 0; i < w->t->n_fast; i++)
		if (w->t->fast[i].gpu == gpu)
			link_element(w, i, depth + 1);
	kept_elements(w, TOPO_PART_GPU, gpu, depth + 1);
	close_tag(w, "gpu", depth);
}

/* ---- functions ----------------------------------------------------------------------------- */

static double lesser(double a, double b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

/** The lesser of the best of both ends; where only the present is recorded, that. */
static void put_link(struct writer *w, const struct topo_pci *p)
{
	double gts = p->link.max_gts > 0 ? p->link.max_gts : p->link.now_gts;
	double width = p->link.max_width ? p->link.max_width : p->link.now_width;

	if (!w->own && p->parent >= 0) {
		gts = lesser(w->t->pci[p->parent].link.max_gts, gts);
		width = lesser(w->t->pci[p->parent].link.max_width, width);
	}
	if (gts > 0)
		fb_strbuf_printf(w->o, " link_speed=\"%.1f GT/s PCIe\"", gts);
	if (width > 0)
		fb_strbuf_printf(w->o, " link_width=\"%.0f\"", width);
}

static int gpu_on(const struct writer *w, int pci)
{
	for (size_t i = 0; i < w->t->n_gpus; i++)
		if (w->t->gpus[i].pci == pci)
			return (int)i;
	return TOPO_UNKNOWN;
}

static void pci_element(struct writer *w, int i, unsigned depth)
{
	const struct topo_pci *p = &w->t->pci[i];
	int gpu = gpu_on(w, i);
	bool nic = has_kept(w, TOPO_PART_PCI, i, "nic/");

	if (!w->shown[i] || depth > NCCL_MAX_DEPTH)
		return;
	for (size_t k = 0; k < w->n_devs; k++)
		nic |= stands_on(&w->devs[k], i, 0) && !is_soft(w, &w->devs[k]) &&
		       (!nameless(w, &w->devs[k]) || p->class_code >> 16 != 0x02);
	indent(w, depth);
	fb_strbuf_add(w->o, "<pci");
	put(w, "busid", p->bdf);
	if (p->class_code)
		fb_strbuf_printf(w->o, " class=\"0x%06x\"", p->class_code);
	if (p->vendor)
		fb_strbuf_printf(w->o, " vendor=\"0x%04x\"", p->vendor);
	if (p->device)
		fb_strbuf_printf(w->o, " device=\"0x%04x\"", p->device);
	put_kept(w, TOPO_PART_PCI, i);
	put_link(w, p);
	int kid = w->first_kid[i];

	while (kid >= 0 && !w->shown[kid])
		kid = w->next_kid[kid];
	if (!open_tag(w, nic || kid >= 0 || has_elements(w, TOPO_PART_PCI, i) ||
				 (gpu >= 0 && gpu_needs_element(w, gpu))))
		return;
	if (gpu >= 0)
		gpu_element(w, gpu, depth + 1);
	nic_element(w, i, p->numa, i, depth + 1);
	for (; kid >= 0; kid = w->next_kid[kid])
		pci_element(w, kid, depth + 1);
	kept_elements(w, TOPO_PART_PCI, i, depth + 1);
	close_tag(w, "pci", depth);
}

/* ---- cpus ---------------------------------------------------------------------------------- */

/** The kernel's mask: 32-bit words from the highest that holds a CPU. */
static int put_affinity(struct writer *w, const char *cpus)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (!set)
		return -ENOMEM;
	if (*cpus && hwloc_bitmap_list_sscanf(set, cpus) == 0 && hwloc_bitmap_last(set) >= 0) {
		int words = hwloc_bitmap_last(set) / 32 + 1;

		if (words * 9 - 1 <= MAX_VALUE || w->own) {
			fb_strbuf_add(w->o, " affinity=\"");
			for (int k = words - 1; k >= 0; k--) {
				uint32_t word = 0;

				for (int b = 0; b < 32; b++)
					if (hwloc_bitmap_isset(set, (unsigned)(32 * k + b)))
						word |= UINT32_C(1) << b;
				fb_strbuf_printf(w->o, "%08x%s", word, k ? "," : "\"");
			}
		}
	}
	hwloc_bitmap_free(set);
	return 0;
}

/**
 * The processor's kind, which NCCL takes for the bandwidth between sockets. Its family of AMD's
 * processors is the sum of CPUID's two fields with the second shifted by 4: 143 for family 23.
 */
static void put_processor(struct writer *w, const struct topo_numa *n)
{
	const struct topo *t = w->t;
	hwloc_obj_t root = t->hwloc ? hwloc_get_root_obj(t->hwloc) : NULL, pkg = NULL, other = NULL;

	if (!root)
		return;
	/* One machine's processors are of one kind: any package speaks for a node without one. */
	while ((other = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PACKAGE, other)))
		if (!pkg || (n && n->package >= 0 &&
				    other->os_index == t->packages[n->package].os_index))
			pkg = other;
	const char *text[3];
	static const char *const keys[] = {"CPUVendor", "CPUFamilyNumber", "CPUModelNumber"};

	for (int i = 0; i < 3; i++) {
		text[i] = pkg ? hwloc_obj_get_info_by_name(pkg, keys[i]) : NULL;
		if (!text[i])
			text[i] = hwloc_obj_get_info_by_name(root, keys[i]);
	}
	if (!text[0] ||
		(strcmp(text[0], "GenuineIntel") != 0 && strcmp(text[0], "AuthenticAMD") != 0))
		return;
	put(w, "arch", "x86_64");
	put(w, "vendor", text[0]);
	if (!text[1] || !text[2])
		return;
	long family = strtol(text[1], NULL, 10), model = strtol(text[2], NULL, 10);

	if (family > 15)
		family = 15 + ((family - 15) << 4);
	fb_strbuf_printf(w->o, " familyid=\"%ld\" modelid=\"%ld\"", family, model);
}

/** Something to write under this node? */
static bool has_devices(const struct writer *w, int numa)
{
	for (size_t i = 0; i < w->t->n_pci; i++)
		if (w->shown[i] && w->up[i] < 0 && w->t->pci[i].numa == numa)
			return true;
	for (size_t i = 0; i < w->n_devs; i++)
		if (stands_on(&w->devs[i], TOPO_UNKNOWN, numa) && !is_soft(w, &w->devs[i]))
			return true;
	return false;
}

/** @param index in numa[], or TOPO_UNKNOWN: what has no known node */
static int cpu_element(struct writer *w, int index)
{
	const struct topo_numa *n = index >= 0 ? &w->t->numa[index] : NULL;
	int numa = n ? n->os_index : TOPO_UNKNOWN, rc = 0;
	bool devices = has_devices(w, numa), elements = has_elements(w, TOPO_PART_NUMA, index);
	/* A node that is the memory of a GPU or a device is no place of any CPU; a file without any
	 * <cpu> is none. */
	bool needed = n ? w->own || *n->cpus : !w->t->n_numa;

	if (!needed && !devices && !elements && !has_kept(w, TOPO_PART_NUMA, index, ""))
		return 0;
	indent(w, 1);
	fb_strbuf_printf(w->o, "<cpu numaid=\"%d\"", numa);
	if (n)
		rc = put_affinity(w, n->cpus);
	if (!w->own)
		put_processor(w, n);
	put_kept(w, TOPO_PART_NUMA, index);
	if (!open_tag(w, devices || elements || has_kept(w, TOPO_PART_NUMA, index, "nic/")))
		return rc;
	for (size_t i = 0; i < w->t->n_pci; i++)
		if (w->up[i] < 0 && w->t->pci[i].numa == numa)
			pci_element(w, (int)i, 2);
	nic_element(w, TOPO_UNKNOWN, numa, index, 2);
	kept_elements(w, TOPO_PART_NUMA, index, 2);
	close_tag(w, "cpu", 1);
	return rc;
}

/* ---- the file ------------------------------------------------------------------------------ */

/** The tree as NCCL sees it: which functions, and what stands above each. */
static int plan(struct writer *w)
{
	const struct topo *t = w->t;
	size_t n = t->n_pci + 1;

	w->up = calloc(n, sizeof(int));
	w->first_kid = calloc(n, sizeof(int));
	w->next_kid = calloc(n, sizeof(int));
	w->shown = calloc(n, sizeof(bool));
	if (!w->up || !w->first_kid || !w->next_kid || !w->shown ||
		topo_devices(t, &w->devs, &w->n_devs) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_pci; i++) {
		int port = t->pci[i].parent;

		w->first_kid[i] = w->next_kid[i] = TOPO_UNKNOWN;
		w->shown[i] = w->own;
		w->up[i] = w->own ? port : port >= 0 ? t->pci[port].parent : TOPO_UNKNOWN;
	}
	for (size_t i = 0; i < w->n_devs; i++)
		for (int p = is_soft(w, &w->devs[i]) ? TOPO_UNKNOWN : w->devs[i].pci;
			p >= 0 && !w->shown[p]; p = w->up[p])
			w->shown[p] = true;
	for (size_t i = t->n_pci; i-- > 0;) {
		int up = w->up[i];

		if (up < 0)
			continue;
		w->next_kid[i] = w->first_kid[up];
		w->first_kid[up] = (int)i;
	}
	return 0;
}

static void put_version(struct writer *w)
{
	const struct topo_extra *x;
	bool amd = false;

	for (EACH_KEPT(w, x, TOPO_PART_SYSTEM, 0))
		if (x->name && strcmp(x->name, "version") == 0)
			return;
	for (size_t i = 0; i < w->t->n_gpus; i++)
		amd |= w->t->pci[w->t->gpus[i].pci].vendor == 0x1002;
	put(w, "version", amd ? "2" : "1");
}

int topo_nccl_xml(const struct topo *t, bool anonymous, struct fb_strbuf *out, struct fb_err *e)
{
	struct writer w = {
		.t = t, .o = out, .anonymous = anonymous, .own = t->source == TOPO_FROM_NCCL_XML};

	if (t->source == TOPO_FROM_SMI) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODATA,
			"NCCL's topology is a tree of PCIe switches, and nvidia-smi's matrix tells "
			"none");
		fb_hint(e, "run fabricbench topo --nccl-xml-out FILE on the machine itself");
		return -ENODATA;
	}
	int rc = plan(&w);

	if (!rc) {
		fb_strbuf_add(out, "<system");
		put_version(&w);
		put_kept(&w, TOPO_PART_SYSTEM, 0);
		fb_strbuf_add(out, ">\n");
		for (size_t i = 0; i < t->n_numa && !rc; i++)
			rc = cpu_element(&w, (int)i);
		if (!rc)
			rc = cpu_element(&w, TOPO_UNKNOWN);
		kept_elements(&w, TOPO_PART_SYSTEM, 0, 1);
		fb_strbuf_add(out, "</system>\n");
	}
	free(w.up);
	free(w.first_kid);
	free(w.next_kid);
	free(w.shown);
	free(w.devs);
	if (rc || out->failed)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for NCCL's topology");
	return 0;
}
