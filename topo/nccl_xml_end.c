// SPDX-License-Identifier: Apache-2.0
/*
 * The end of reading NCCL's topology XML: what is known only when every tag has been seen. Arrays
 * come into the model's order (nodes by number, functions by address, GPUs by number, names in
 * natural order), so that a file written from the model gives the same model again; devices that
 * the file names by their function alone get a name and a place; what is odd is said.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_xml.h"

/* ---- order --------------------------------------------------------------------------------- */

typedef int (*compare_fn)(const struct nccl_reader *r, int a, int b);

struct sorter {
	const struct nccl_reader *r;
	compare_fn compare;
};

static int compare_stable(const void *a, const void *b, void *ctx)
{
	const struct sorter *s = ctx;
	int x = *(const int *)a, y = *(const int *)b;
	int c = s->compare(s->r, x, y);

	return c ? c : (x > y) - (x < y);
}

/** @return map[old] = new, of n; caller frees. NULL without memory (recorded) */
static int *order(struct nccl_reader *r, size_t n, compare_fn compare)
{
	struct sorter s = {r, compare};
	int *sorted = calloc(n + 1, sizeof(*sorted)), *map = calloc(n + 1, sizeof(*map));

	if (!sorted || !map) {
		free(sorted);
		free(map);
		nccl_fail(r, ENOMEM, "no memory");
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = (int)i;
	qsort_r(sorted, n, sizeof(*sorted), compare_stable, &s);
	for (size_t i = 0; i < n; i++)
		map[sorted[i]] = (int)i;
	free(sorted);
	return map;
}

/** Bring an array of topo_grow() into the order of a map; it can grow on. */
static int apply(struct nccl_reader *r, void **array, size_t n, size_t size, const int *map)
{
	size_t cap = 1;

	if (!n)
		return 0;
	while (cap < n)
		cap *= 2;
	char *to = calloc(cap, size);

	if (!to)
		return nccl_fail(r, ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++)
		memcpy(to + (size_t)map[i] * size, (char *)*array + i * size, size);
	free(*array);
	*array = to;
	return 0;
}

static void move(int *index, const int *map)
{
	if (*index >= 0)
		*index = map[*index];
}

static void move_kept(struct nccl_reader *r, enum topo_part part, const int *map)
{
	for (size_t i = 0; i < r->t->n_extra; i++)
		if (r->t->extra[i].part == part)
			move(&r->t->extra[i].index, map);
}

static int by_node(const struct nccl_reader *r, int a, int b)
{
	return r->t->numa[a].os_index - r->t->numa[b].os_index;
}

static int sort_numa(struct nccl_reader *r)
{
	struct topo *t = r->t;
	int *map = order(r, t->n_numa, by_node);

	if (!map || apply(r, (void **)&t->numa, t->n_numa, sizeof(*t->numa), map))
		goto free_map;
	for (size_t i = 0; i < r->n_marks; i++)
		move(&r->marks[i].numa, map);
	for (size_t i = 0; i < t->n_nics; i++)
		move(&t->nics[i].numa, map);
	for (size_t i = 0; i < t->n_rdma; i++)
		move(&t->rdma[i].numa, map);
	move_kept(r, TOPO_PART_NUMA, map);
free_map:
	free(map);
	return r->rc;
}

static int by_address(const struct nccl_reader *r, int a, int b)
{
	uint64_t x = r->marks[a].key, y = r->marks[b].key;

	return (x > y) - (x < y);
}

static int sort_pci(struct nccl_reader *r)
{
	struct topo *t = r->t;
	int *map = order(r, t->n_pci, by_address);

	if (!map || apply(r, (void **)&t->pci, t->n_pci, sizeof(*t->pci), map) ||
		apply(r, (void **)&r->marks, r->n_marks, sizeof(*r->marks), map))
		goto free_map;
	for (size_t i = 0; i < t->n_pci; i++)
		move(&t->pci[i].parent, map);
	for (size_t i = 0; i < t->n_gpus; i++)
		move(&t->gpus[i].pci, map);
	for (size_t i = 0; i < t->n_nics; i++)
		move(&t->nics[i].pci, map);
	for (size_t i = 0; i < t->n_rdma; i++)
		move(&t->rdma[i].pci, map);
	move_kept(r, TOPO_PART_PCI, map);
free_map:
	free(map);
	return r->rc;
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

bool nccl_gpu_class(const struct topo_pci *p)
{
	unsigned cls = p->class_code >> 8;

	/* No BMC stands in such a file, but a VGA function of an unknown maker is no GPU yet. */
	if (!p->vendor)
		return cls == 0x0302 || cls == 0x0380 || cls == 0x1200;
	return topo_is_gpu(p);
}

static int add_gpus(struct nccl_reader *r)
{
	struct topo *t = r->t;

	for (size_t i = 0; i < t->n_pci; i++) {
		if (r->marks[i].gpu || !nccl_gpu_class(&t->pci[i]))
			continue;
		struct topo_gpu *g = topo_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g));
		int *dev = topo_grow((void **)&r->dev, &r->n_dev, sizeof(*dev));

		if (!g || !dev)
			return nccl_fail(r, ENOMEM, "no memory");
		r->marks[i].gpu = true;
		g->pci = (int)i;
		*dev = TOPO_UNKNOWN;
	}
	return 0;
}

static int by_gpu_address(const struct nccl_reader *r, int a, int b)
{
	return r->t->gpus[a].pci - r->t->gpus[b].pci;
}

static int by_dev(const struct nccl_reader *r, int a, int b)
{
	return r->dev[a] != r->dev[b] ? r->dev[a] - r->dev[b] : by_gpu_address(r, a, b);
}

/** The file's own numbers, when each GPU has one of its own. */
static bool numbered(const struct nccl_reader *r)
{
	bool seen[1024] = {false};

	for (size_t i = 0; i < r->n_dev; i++) {
		if (r->dev[i] < 0 || r->dev[i] >= 1024 || seen[r->dev[i]])
			return false;
		seen[r->dev[i]] = true;
	}
	return true;
}

/** Without numbers GPUs count by address, as NVML and CUDA_DEVICE_ORDER=PCI_BUS_ID do. */
static int sort_gpus(struct nccl_reader *r)
{
	struct topo *t = r->t;
	bool named = numbered(r);
	int *map = order(r, t->n_gpus, named ? by_dev : by_gpu_address);

	if (!map || apply(r, (void **)&t->gpus, t->n_gpus, sizeof(*t->gpus), map) ||
		apply(r, (void **)&r->dev, r->n_dev, sizeof(*r->dev), map))
		goto free_map;
	for (size_t i = 0; i < t->n_gpus; i++)
		snprintf(t->gpus[i].name, sizeof(t->gpus[i].name), "GPU%d",
			named ? r->dev[i] : (int)i);
	for (size_t i = 0; i < t->n_fast; i++)
		move(&t->fast[i].gpu, map);
	move_kept(r, TOPO_PART_GPU, map);
free_map:
	free(map);
	return r->rc;
}

static int by_link(const struct nccl_reader *r, int a, int b)
{
	return r->t->fast[a].gpu - r->t->fast[b].gpu;
}

static int sort_links(struct nccl_reader *r)
{
	struct topo *t = r->t;
	int *map = order(r, t->n_fast, by_link), *gpu_at = calloc(t->n_pci + 1, sizeof(int));

	if (!gpu_at)
		nccl_fail(r, ENOMEM, "no memory");
	if (!map || !gpu_at || apply(r, (void **)&t->fast, t->n_fast, sizeof(*t->fast), map))
		goto free_maps;
	move_kept(r, TOPO_PART_FAST, map);
	for (size_t i = 0; i < t->n_pci; i++)
		gpu_at[i] = TOPO_UNKNOWN;
	for (size_t i = 0; i < t->n_gpus; i++)
		gpu_at[t->gpus[i].pci] = (int)i;
	for (size_t i = 0; i < t->n_fast; i++) {
		struct topo_fast *l = &t->fast[i];
		int pci = topo_bdf_len(l->peer_bdf) ? topo_find_pci(t, l->peer_bdf) : TOPO_UNKNOWN;

		l->peer = pci >= 0 ? gpu_at[pci] : TOPO_UNKNOWN;
		if (l->peer == l->gpu)
			topo_warn(t, "%s: %s has a link to itself", r->file, t->gpus[l->gpu].name);
	}
free_maps:
	free(map);
	free(gpu_at);
	return r->rc;
}

/* ---- network devices ----------------------------------------------------------------------- */

/** Functions of a network class, or with an empty <nic>, that no <net> names. */
static int add_nics(struct nccl_reader *r)
{
	struct topo *t = r->t;
	bool *named = calloc(t->n_pci + 1, sizeof(*named));

	if (!named)
		return nccl_fail(r, ENOMEM, "no memory");
	for (size_t i = 0; i < t->n_nics; i++)
		if (t->nics[i].pci >= 0)
			named[t->nics[i].pci] = true;
	for (size_t i = 0; i < t->n_rdma; i++)
		if (t->rdma[i].pci >= 0)
			named[t->rdma[i].pci] = true;
	for (size_t i = 0; i < t->n_pci && !r->rc; i++) {
		const struct topo_pci *p = &t->pci[i];

		if (named[i] || (!r->marks[i].nic && p->class_code >> 16 != 0x02))
			continue;
		struct topo_nic *n = topo_grow((void **)&t->nics, &t->n_nics, sizeof(*n));

		if (!n) {
			nccl_fail(r, ENOMEM, "no memory");
			break;
		}
		topo_copy(n->name, sizeof(n->name), p->bdf);
		n->pci = (int)i;
		n->numa = r->marks[i].numa;
	}
	free(named);
	return r->rc;
}

static int compare_names(const char *a, int pci_a, const char *b, int pci_b)
{
	/* Addresses, after names, in their own order. */
	bool x = topo_bdf_len(a) != 0, y = topo_bdf_len(b) != 0;
	int c = x != y ? x - y : x ? 0 : strverscmp(a, b);

	return c ? c : pci_a - pci_b;
}

static int by_nic(const struct nccl_reader *r, int a, int b)
{
	const struct topo_nic *x = &r->t->nics[a], *y = &r->t->nics[b];

	return compare_names(x->name, x->pci, y->name, y->pci);
}

static int by_rdma(const struct nccl_reader *r, int a, int b)
{
	const struct topo_rdma *x = &r->t->rdma[a], *y = &r->t->rdma[b];

	return compare_names(x->name, x->pci, y->name, y->pci);
}

static int sort_nets(struct nccl_reader *r)
{
	struct topo *t = r->t;
	int *nics = order(r, t->n_nics, by_nic), *rdma = order(r, t->n_rdma, by_rdma);

	if (nics && rdma && !apply(r, (void **)&t->nics, t->n_nics, sizeof(*t->nics), nics) &&
		!apply(r, (void **)&t->rdma, t->n_rdma, sizeof(*t->rdma), rdma)) {
		move_kept(r, TOPO_PART_NIC, nics);
		move_kept(r, TOPO_PART_RDMA, rdma);
	}
	free(nics);
	free(rdma);
	return r->rc;
}

/* ---- places -------------------------------------------------------------------------------- */

/** From an index in numa[] to the node's number and CPUs. */
static int place(struct nccl_reader *r, int *numa, char **cpus)
{
	const struct topo_numa *n = *numa >= 0 ? &r->t->numa[*numa] : NULL;

	*numa = n ? n->os_index : TOPO_UNKNOWN;
	if (n && *n->cpus && !(*cpus = strdup(n->cpus)))
		return nccl_fail(r, ENOMEM, "no memory");
	return 0;
}

static int place_all(struct nccl_reader *r)
{
	struct topo *t = r->t;

	for (size_t i = 0; i < t->n_pci && !r->rc; i++) {
		t->pci[i].numa = r->marks[i].numa;
		place(r, &t->pci[i].numa, &t->pci[i].cpus);
	}
	for (size_t i = 0; i < t->n_nics && !r->rc; i++)
		place(r, &t->nics[i].numa, &t->nics[i].cpus);
	for (size_t i = 0; i < t->n_rdma && !r->rc; i++)
		place(r, &t->rdma[i].numa, &t->rdma[i].cpus);
	return r->rc;
}

static int count_cpus(struct nccl_reader *r)
{
	struct topo *t = r->t;
	hwloc_bitmap_t all = hwloc_bitmap_alloc(), one = hwloc_bitmap_alloc();

	if (!all || !one)
		nccl_fail(r, ENOMEM, "no memory");
	for (size_t i = 0; i < t->n_numa && !r->rc; i++)
		if (t->numa[i].cpus[0] && hwloc_bitmap_list_sscanf(one, t->numa[i].cpus) == 0)
			hwloc_bitmap_or(all, all, one);
	int n = r->rc ? 0 : hwloc_bitmap_weight(all);

	t->pus = n > 0 ? (unsigned)n : 0;
	hwloc_bitmap_free(all);
	hwloc_bitmap_free(one);
	return r->rc;
}

/* ---- kept attributes, warnings ------------------------------------------------------------- */

static int by_owner(const struct nccl_reader *r, int a, int b)
{
	const struct topo_extra *x = &r->t->extra[a], *y = &r->t->extra[b];

	if (x->part != y->part)
		return (int)x->part - (int)y->part;
	if (x->index != y->index)
		return x->index - y->index;
	/* Attributes stand before elements in a file, and so here. */
	bool ex = !x->name || strchr(x->name, '/'), ey = !y->name || strchr(y->name, '/');

	if (ex != ey)
		return ex - ey;
	return ex ? strcmp(x->name ? x->name : "~", y->name ? y->name : "~") : 0;
}

static int sort_kept(struct nccl_reader *r)
{
	int *map = order(r, r->t->n_extra, by_owner);

	if (map)
		apply(r, (void **)&r->t->extra, r->t->n_extra, sizeof(*r->t->extra), map);
	free(map);
	return r->rc;
}

void topo_warn_remote_nics(struct topo *t)
{
	struct topo_dev *devs;
	struct fb_strbuf names = {0};
	size_t n, far = 0;

	if (topo_devices(t, &devs, &n) != 0)
		return;
	for (size_t g = 0; g < n && devs[g].type == TOPO_DEV_GPU; g++) {
		size_t nics = 0, remote = 0;

		for (size_t k = t->n_gpus; k < n && nics == remote; k++) {
			nics++;
			remote += topo_path(t, &devs[g], &devs[k]) == TOPO_PATH_SYS;
		}
		if (!nics || nics != remote)
			continue;
		far++;
		fb_strbuf_printf(&names, "%s%s", far > 1 ? ", " : "", devs[g].name);
	}
	free(devs);
	if (far && names.s)
		topo_warn(t, "no local NIC for %s: the nearest is on another NUMA node",
			far == t->n_gpus ? "any GPU" : names.s);
	fb_strbuf_free(&names);
}

static int remark(struct nccl_reader *r)
{
	struct topo *t = r->t;
	size_t unknown = 0;

	if (!r->seen_cpu)
		return nccl_fail(r, EINVAL, "<system> holds no <cpu>: it describes no machine");
	for (size_t i = 0; i < t->n_pci; i++)
		unknown += !t->pci[i].class_code && !t->pci[i].bridge && !r->marks[i].gpu &&
			   !r->marks[i].nic;
	if (unknown)
		topo_warn(t,
			"%s: %zu PCI functions have no class: the file does not tell whether they are "
			"GPUs or NICs",
			r->file, unknown);
	if (!t->n_gpus)
		topo_warn(t,
			"%s names no GPU: NCCL completes such a file on the machine it is for, this "
			"reading cannot",
			r->file);
	topo_warn_remote_nics(t);
	return 0;
}

int nccl_finish(struct nccl_reader *r)
{
	if (sort_numa(r) || sort_pci(r) || add_gpus(r) || sort_gpus(r) || sort_links(r) ||
		add_nics(r) || sort_nets(r) || place_all(r) || count_cpus(r) || sort_kept(r))
		return r->rc;
	return remark(r);
}
