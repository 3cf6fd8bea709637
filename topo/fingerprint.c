// SPDX-License-Identifier: Apache-2.0
/*
 * The shape of a node from its model, and its hash.
 *
 * "1-SHAPE-ORDER": SHAPE hashes the tree with the children of each bridge sorted by their own
 * hashes, so that bus numbers and the order of discovery do not matter. ORDER hashes which GPU
 * index is near which RDMA device's index: two nodes of one tree whose numbers run otherwise pair
 * GPU i with another NIC i, and collectives that believe in indices cross rails between them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fingerprint.h"
#include "topo/topo_priv.h"

typedef unsigned __int128 hash_t;

/* FNV-1a, 128 bits: nobody attacks a fingerprint, it only has to be the same everywhere. */
static hash_t hash_add(hash_t h, const void *data, size_t n)
{
	const unsigned char *b = data;
	const hash_t prime = ((hash_t)1 << 88) + 0x13b;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * prime;
	return h;
}

static hash_t hash_start(void)
{
	return (hash_t)0x6c62272e07bb0142ull << 64 | 0x62b821756295c58dull;
}

static int compare_hash(const void *a, const void *b)
{
	hash_t x = *(const hash_t *)a, y = *(const hash_t *)b;

	return (x > y) - (x < y);
}

void topo_shape_free(struct topo_shape *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_items; i++)
		free(s->items[i].links);
	free(s->items);
	free(s->order);
	free(s);
}

/* ---- what is part of the shape --------------------------------------------------------------- */

static bool is_nvswitch(const struct topo_pci *p)
{
	return p->vendor == 0x10de && p->class_code >> 8 == 0x0680;
}

static bool is_device(const struct topo_pci *p)
{
	uint32_t base = p->class_code >> 16;

	return !p->bridge && (base == 0x02 || base == 0x12 || p->class_code >> 8 == 0x0b40 ||
				     p->class_code >> 8 == 0x0c06 || is_nvswitch(p));
}

struct maker {
	const struct topo *t;
	struct topo_shape *s;
	bool *wanted; /* by PCI index: itself or something below it is part of the shape */
	bool *device;
	int *first_kid, *next_kid, *root_numa;
	int *item_of_gpu;
	/* By PCI index: the first GPU, RDMA device and interface of a function; TOPO_UNKNOWN. */
	int *gpu_at, *rdma_at, *nic_at;
	unsigned *n_rdma; /* RDMA devices of a function */
};

static void want(struct maker *m, int pci)
{
	/* Virtual functions come and go with the configuration. */
	if (pci < 0 || m->t->pci[pci].physfn >= 0)
		return;
	m->device[pci] = true;
	for (int up = pci; up >= 0 && !m->wanted[up]; up = m->t->pci[up].parent)
		m->wanted[up] = true;
}

static void first_at(int *at, int pci, size_t i)
{
	if (pci >= 0 && at[pci] < 0)
		at[pci] = (int)i;
}

/** Which devices each function has: a search for each would take the square of their number. */
static bool index_devices(struct maker *m)
{
	const struct topo *t = m->t;
	size_t n = t->n_pci + 1;

	m->gpu_at = calloc(n, sizeof(int));
	m->rdma_at = calloc(n, sizeof(int));
	m->nic_at = calloc(n, sizeof(int));
	m->n_rdma = calloc(n, sizeof(*m->n_rdma));
	if (!m->gpu_at || !m->rdma_at || !m->nic_at || !m->n_rdma)
		return false;
	for (size_t i = 0; i < n; i++)
		m->gpu_at[i] = m->rdma_at[i] = m->nic_at[i] = TOPO_UNKNOWN;
	for (size_t i = 0; i < t->n_gpus; i++)
		first_at(m->gpu_at, t->gpus[i].pci, i);
	for (size_t i = 0; i < t->n_nics; i++)
		first_at(m->nic_at, t->nics[i].pci, i);
	for (size_t i = 0; i < t->n_rdma; i++) {
		if (t->rdma[i].soft || t->rdma[i].pci < 0)
			continue;
		first_at(m->rdma_at, t->rdma[i].pci, i);
		m->n_rdma[t->rdma[i].pci]++;
	}
	return true;
}

static bool maker_init(struct maker *m)
{
	const struct topo *t = m->t;
	size_t n = t->n_pci + 1;

	if (!index_devices(m))
		return false;
	m->wanted = calloc(n, sizeof(*m->wanted));
	m->device = calloc(n, sizeof(*m->device));
	m->first_kid = calloc(n, sizeof(int));
	m->next_kid = calloc(n, sizeof(int));
	m->root_numa = topo_root_numa(t);
	m->item_of_gpu = calloc(t->n_gpus + 1, sizeof(int));
	if (!m->wanted || !m->device || !m->first_kid || !m->next_kid || !m->root_numa ||
		!m->item_of_gpu)
		return false;
	for (size_t i = 0; i < n; i++)
		m->first_kid[i] = m->next_kid[i] = TOPO_UNKNOWN;
	for (size_t i = t->n_pci; i-- > 0;)
		if (t->pci[i].parent >= 0) {
			m->next_kid[i] = m->first_kid[t->pci[i].parent];
			m->first_kid[t->pci[i].parent] = (int)i;
		}
	for (size_t i = 0; i < t->n_pci; i++)
		if (is_device(&t->pci[i]))
			want(m, (int)i);
	for (size_t i = 0; i < t->n_gpus; i++) {
		m->item_of_gpu[i] = TOPO_UNKNOWN;
		want(m, t->gpus[i].pci);
	}
	for (size_t i = 0; i < t->n_rdma; i++)
		if (!t->rdma[i].soft)
			want(m, t->rdma[i].pci);
	for (size_t i = 0; i < t->n_nics; i++)
		want(m, t->nics[i].pci);
	return true;
}

static void maker_free(struct maker *m)
{
	free(m->wanted);
	free(m->device);
	free(m->first_kid);
	free(m->next_kid);
	free(m->root_numa);
	free(m->item_of_gpu);
	free(m->gpu_at);
	free(m->rdma_at);
	free(m->nic_at);
	free(m->n_rdma);
}

static struct topo_shape_item *add_item(struct maker *m, enum topo_shape_kind kind, int parent)
{
	if (m->s->n_items >= TOPO_SHAPE_MAX_ITEMS)
		return NULL;
	struct topo_shape_item *it = topo_grow((void **)&m->s->items, &m->s->n_items, sizeof(*it));

	if (it) {
		it->kind = kind;
		it->parent = parent;
		it->numa = TOPO_UNKNOWN;
	}
	return it;
}

/** Kind and name of a function; a GPU's number goes into *gpu. */
static enum topo_shape_kind kind_of(
	const struct maker *m, int pci, char name[TOPO_NAME], unsigned *rdma, int *gpu)
{
	const struct topo *t = m->t;
	const struct topo_pci *p = &t->pci[pci];
	bool nic = p->class_code >> 16 == 0x02;

	*rdma = m->n_rdma[pci];
	*gpu = m->gpu_at[pci];
	name[0] = '\0';
	if (*gpu >= 0) {
		*rdma = 0;
		topo_copy(name, TOPO_NAME, t->gpus[*gpu].name);
		return TOPO_SHAPE_GPU;
	}
	if (*rdma)
		topo_copy(name, TOPO_NAME, t->rdma[m->rdma_at[pci]].name);
	if (m->nic_at[pci] >= 0) {
		nic = true;
		if (!name[0])
			topo_copy(name, TOPO_NAME, t->nics[m->nic_at[pci]].name);
	}
	return nic || *rdma     ? TOPO_SHAPE_NIC
	       : is_nvswitch(p) ? TOPO_SHAPE_NVSWITCH
				: TOPO_SHAPE_OTHER;
}

static int add_tree(struct maker *m, int pci, int parent, int level)
{
	const struct topo_pci *p = &m->t->pci[pci];
	char name[TOPO_NAME] = "";
	unsigned rdma = 0;
	int gpu = TOPO_UNKNOWN;

	if (!m->wanted[pci] || level > 80)
		return 0;
	enum topo_shape_kind kind =
		m->device[pci] ? kind_of(m, pci, name, &rdma, &gpu) : TOPO_SHAPE_BRIDGE;
	struct topo_shape_item *it = add_item(m, kind, parent);

	if (!it)
		return m->s->n_items >= TOPO_SHAPE_MAX_ITEMS ? -EFBIG : -ENOMEM;
	int self = (int)m->s->n_items - 1;

	it->cls = p->class_code >> 8;
	it->vendor = p->vendor;
	it->device = p->device;
	it->numa = p->numa;
	it->max_gts = p->link.max_gts;
	it->max_width = p->link.max_width;
	it->rdma = rdma;
	topo_copy(it->name, sizeof(it->name), name);
	topo_copy(it->bdf, sizeof(it->bdf), p->bdf);
	if (gpu >= 0)
		m->item_of_gpu[gpu] = self;
	for (int k = m->first_kid[pci]; k >= 0; k = m->next_kid[k]) {
		int rc = add_tree(m, k, self, level + 1);

		if (rc)
			return rc;
	}
	return 0;
}

/** Devices without a PCI function: a hypervisor's own buses, or files that name no function. */
static int add_lone(struct maker *m, const char *name, int numa, unsigned rdma)
{
	struct topo_shape_item *it = add_item(m, TOPO_SHAPE_NIC, TOPO_UNKNOWN);

	if (!it)
		return m->s->n_items >= TOPO_SHAPE_MAX_ITEMS ? -EFBIG : -ENOMEM;
	topo_copy(it->name, sizeof(it->name), name);
	it->numa = numa;
	it->rdma = rdma;
	return 0;
}

/* ---- links beside PCIe ----------------------------------------------------------------------- */

static char peer_kind(const struct topo_fast *f)
{
	if (f->peer >= 0)
		return 'g';
	if (f->peer_class >> 8 == 0x0680)
		return 's';
	return f->kind == TOPO_FAST_C2C ? 'c' : '?';
}

static int add_links(struct maker *m)
{
	for (size_t i = 0; i < m->t->n_fast; i++) {
		const struct topo_fast *f = &m->t->fast[i];
		int at = f->gpu >= 0 && (size_t)f->gpu < m->t->n_gpus ? m->item_of_gpu[f->gpu]
								      : TOPO_UNKNOWN;

		if (at < 0)
			continue;
		struct topo_shape_item *it = &m->s->items[at];
		char to = peer_kind(f);
		int peer = f->peer >= 0 && (size_t)f->peer < m->t->n_gpus ? m->item_of_gpu[f->peer]
									  : TOPO_UNKNOWN;
		size_t k = 0;

		while (k < it->n_links && (it->links[k].kind != f->kind || it->links[k].to != to ||
						  it->links[k].item != peer))
			k++;
		if (k == it->n_links) {
			if (k >= TOPO_SHAPE_MAX_LINKS)
				continue;
			struct topo_shape_link *l =
				topo_grow((void **)&it->links, &it->n_links, sizeof(*l));

			if (!l)
				return -ENOMEM;
			*l = (struct topo_shape_link){f->kind, peer, to, 0};
		}
		it->links[k].count += f->count;
	}
	return 0;
}

/* ---- CPUs and numbering ---------------------------------------------------------------------- */

static void describe_cpus(const struct topo *t, struct topo_shape *s)
{
	size_t n = (size_t)snprintf(s->cpus, sizeof(s->cpus),
		"%zu packages, %u cores, %u CPUs, %zu NUMA nodes", t->n_packages, t->cores, t->pus,
		t->n_numa);

	if (!t->distance)
		return;
	if (t->n_numa > 8) {
		hash_t h = hash_add(
			hash_start(), t->distance, t->n_numa * t->n_numa * sizeof(*t->distance));

		snprintf(s->cpus + n, sizeof(s->cpus) - n, ", distances #%016llx",
			(unsigned long long)(h >> 64));
		return;
	}
	for (size_t i = 0; i < t->n_numa * t->n_numa && n < sizeof(s->cpus); i++)
		n += (size_t)snprintf(s->cpus + n, sizeof(s->cpus) - n, "%s%u",
			i == 0               ? ", distances "
			: i % t->n_numa == 0 ? " / "
					     : " ",
			t->distance[i]);
}

static void add_near(const struct topo *t, const struct topo_dev *gpu, const struct topo_dev *devs,
	size_t n, struct fb_strbuf *b)
{
	enum topo_path least = TOPO_PATH_UNKNOWN;
	unsigned rank = 0, found = 0;

	for (size_t i = 0; i < n; i++)
		if (devs[i].type == TOPO_DEV_RDMA && !t->rdma[devs[i].index].soft &&
			topo_path(t, gpu, &devs[i]) < least)
			least = topo_path(t, gpu, &devs[i]);
	for (size_t i = 0; i < n && least < TOPO_PATH_UNKNOWN; i++) {
		if (devs[i].type != TOPO_DEV_RDMA || t->rdma[devs[i].index].soft)
			continue;
		if (topo_path(t, gpu, &devs[i]) == least)
			fb_strbuf_printf(b, "%s%u", found++ ? "," : "", rank);
		rank++;
	}
	if (!found)
		fb_strbuf_add(b, "none");
}

/** "GPU0 on node 0 near RDMA 0,1; ..." by indices, not names: names may hold bus numbers. */
static int describe_order(const struct topo *t, struct topo_shape *s)
{
	struct fb_strbuf b = {0};
	struct topo_dev *devs;
	size_t n;

	if (topo_devices(t, &devs, &n) != 0)
		return -ENOMEM;
	fb_strbuf_add(&b, "");
	for (size_t i = 0; i < t->n_gpus && t->n_gpus * t->n_rdma <= 65536; i++) {
		fb_strbuf_printf(&b, "%sGPU%zu on NUMA node %d near RDMA device ", i ? "; " : "", i,
			devs[i].numa);
		add_near(t, &devs[i], devs, n, &b);
	}
	for (size_t i = 0, rank = 0; i < n && !t->n_gpus; i++)
		if (devs[i].type == TOPO_DEV_RDMA && !t->rdma[devs[i].index].soft)
			fb_strbuf_printf(&b, "%sRDMA device %zu on NUMA node %d", rank ? "; " : "",
				rank, devs[i].numa),
				rank++;
	free(devs);
	s->order = fb_strbuf_take(&b);
	return s->order ? 0 : -ENOMEM;
}

/* ---- hash ------------------------------------------------------------------------------------ */

static hash_t own_hash(const struct topo_shape_item *it)
{
	char text[160];
	hash_t links[TOPO_SHAPE_MAX_LINKS], h;
	int n = snprintf(text, sizeof(text), "%d %04x %04x:%04x n%d %.1fx%u r%u", (int)it->kind,
		it->cls, it->vendor, it->device, it->numa, it->max_gts, it->max_width, it->rdma);

	h = hash_add(hash_start(), text, (size_t)n);
	for (size_t i = 0; i < it->n_links; i++) {
		n = snprintf(text, sizeof(text), "%d%c%u", (int)it->links[i].kind, it->links[i].to,
			it->links[i].count);
		links[i] = hash_add(hash_start(), text, (size_t)n);
	}
	if (it->n_links)
		qsort(links, it->n_links, sizeof(*links), compare_hash);
	return hash_add(h, links, it->n_links * sizeof(*links));
}

int topo_shape_hash(struct topo_shape *s)
{
	size_t n = s->n_items;
	hash_t *h = calloc(n + 1, sizeof(*h)), *kids = calloc(n + 1, sizeof(*kids)), all, order;
	int *first = calloc(n + 1, sizeof(int)), *next = calloc(n + 1, sizeof(int));
	int rc = -ENOMEM;

	if (!h || !kids || !first || !next)
		goto free_arrays;
	for (size_t i = 0; i <= n; i++)
		first[i] = TOPO_UNKNOWN;
	/* Children stand behind their parents: backwards, each is ready before it is needed. The
	 * list of what hangs on no bridge is the last one. */
	for (size_t i = n + 1; i-- > 0;) {
		size_t k = 0;

		for (int c = first[i]; c >= 0; c = next[c])
			kids[k++] = h[c];
		if (k)
			qsort(kids, k, sizeof(*kids), compare_hash);
		if (i == n)
			continue;
		h[i] = hash_add(own_hash(&s->items[i]), kids, k * sizeof(*kids));
		size_t up = s->items[i].parent >= 0 ? (size_t)s->items[i].parent : n;

		next[i] = first[up];
		first[up] = (int)i;
	}
	size_t k = 0;

	for (int c = first[n]; c >= 0; c = next[c])
		kids[k++] = h[c];
	if (k)
		qsort(kids, k, sizeof(*kids), compare_hash);
	all = hash_add(hash_start(), s->cpus, strlen(s->cpus));
	all = hash_add(all, kids, k * sizeof(*kids));
	order = hash_add(hash_start(), s->order, strlen(s->order));
	snprintf(s->fingerprint, sizeof(s->fingerprint), "1-%016llx%016llx-%016llx",
		(unsigned long long)(all >> 64), (unsigned long long)all,
		(unsigned long long)(order >> 64));
	rc = 0;
free_arrays:
	free(h);
	free(kids);
	free(first);
	free(next);
	return rc;
}

/* ---- all ------------------------------------------------------------------------------------- */

/** Trees in the order of NUMA nodes, then of addresses. */
static int add_trees(struct maker *m)
{
	const struct topo *t = m->t;
	int rc = 0;

	for (int numa = TOPO_UNKNOWN;;) {
		int following = INT32_MAX;

		for (size_t i = 0; !rc && i < t->n_pci; i++) {
			if (t->pci[i].parent >= 0 || !m->wanted[i])
				continue;
			if (m->root_numa[i] == numa)
				rc = add_tree(m, (int)i, TOPO_UNKNOWN, 0);
			else if (m->root_numa[i] > numa && m->root_numa[i] < following)
				following = m->root_numa[i];
		}
		if (rc || following == INT32_MAX)
			return rc;
		numa = following;
	}
}

static int fill(struct maker *m)
{
	const struct topo *t = m->t;
	int rc = add_trees(m);

	for (size_t i = 0; !rc && i < t->n_rdma; i++)
		if (t->rdma[i].pci < 0 && !t->rdma[i].soft)
			rc = add_lone(m, t->rdma[i].name, t->rdma[i].numa, 1);
	for (size_t i = 0; !rc && i < t->n_nics; i++)
		if (t->nics[i].pci < 0 && !t->nics[i].is_virtual)
			rc = add_lone(m, t->nics[i].name, t->nics[i].numa, 0);
	/* A machine of more devices than any has: its shape is what fits, the same each time. */
	if (rc == -EFBIG)
		rc = 0;
	if (!rc)
		rc = add_links(m);
	describe_cpus(t, m->s);
	if (!rc)
		rc = describe_order(t, m->s);
	return rc ? rc : topo_shape_hash(m->s);
}

int topo_shape_make(const struct topo *t, struct topo_shape **out)
{
	static const char *const sources[] = {"sysfs", "sysfs", "hwloc-xml", "nccl-xml", "smi"};
	struct maker m = {.t = t, .s = calloc(1, sizeof(*m.s))};
	int rc = -ENOMEM;

	*out = NULL;
	if (!m.s)
		return -ENOMEM;
	snprintf(m.s->source, sizeof(m.s->source), "%s", sources[t->source]);
	if (maker_init(&m))
		rc = fill(&m);
	maker_free(&m);
	if (rc) {
		topo_shape_free(m.s);
		return rc;
	}
	*out = m.s;
	return 0;
}

int topo_fingerprint(const struct topo *t, char out[TOPO_FINGERPRINT])
{
	struct topo_shape *s;
	int rc = topo_shape_make(t, &s);

	if (rc)
		return rc;
	snprintf(out, TOPO_FINGERPRINT, "%s", s->fingerprint);
	topo_shape_free(s);
	return 0;
}
