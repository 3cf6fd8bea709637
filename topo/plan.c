// SPDX-License-Identifier: Apache-2.0
/*
 * Making the plan: cost of each GPU and NIC, what is ambiguous, the matching, rails. The GPUs of a
 * plan are in gpus[]' order, its NICs in topo_devices()' order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/plan.h"
#include "topo/topo_priv.h"

#define LOAD_COST 30 /* tenths: each GPU already on a NIC */

void topo_plan_note(struct topo_plan *p, const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	char **slot = topo_grow((void **)&p->notes, &p->n_notes, sizeof(*slot));

	if (slot)
		*slot = text;
	else
		free(text);
}

void topo_plan_free(struct topo_plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->gpus && i < p->n_gpus; i++) {
		free(p->gpus[i].nics);
		free(p->gpus[i].cpus);
		free(p->gpus[i].cores);
	}
	for (size_t i = 0; i < p->n_irq; i++)
		free(p->irq[i].cpus);
	for (size_t i = 0; i < p->n_notes; i++)
		free(p->notes[i]);
	free(p->gpus);
	free(p->nics);
	free(p->irq);
	free(p->notes);
	free(p->devs);
	free(p);
}

const struct topo_plan_nic *topo_plan_nic(const struct topo_plan *p, size_t dev)
{
	for (size_t i = 0; i < p->n_nics; i++)
		if (p->nics[i].dev == dev)
			return &p->nics[i];
	return NULL;
}

const char *topo_nic_role_name(enum topo_nic_role role)
{
	static const char *const names[] = {"excluded", "spare", "compute"};

	return names[role];
}

/* ---- distance -------------------------------------------------------------------------------- */

/** NVLink-C2C to the CPU: a NIC of that CPU is then as near as one on the GPU's own switch. */
static bool over_c2c(const struct topo *t, size_t gpu)
{
	for (size_t i = 0; i < t->n_fast; i++)
		if (t->fast[i].gpu == (int)gpu && t->fast[i].kind == TOPO_FAST_C2C &&
			t->fast[i].peer < 0)
			return true;
	return false;
}

/** SLIT distance of two nodes; 0 when not told, which favours none. */
static unsigned numa_distance(const struct topo *t, int a, int b)
{
	size_t ia = SIZE_MAX, ib = SIZE_MAX;

	for (size_t i = 0; i < t->n_numa; i++) {
		if (t->numa[i].os_index == a)
			ia = i;
		if (t->numa[i].os_index == b)
			ib = i;
	}
	if (!t->distance || ia == SIZE_MAX || ib == SIZE_MAX)
		return 0;
	return t->distance[ia * t->n_numa + ib];
}

/** In tenths, without load. */
static int64_t cost_of(
	const struct topo *t, const struct topo_dev *gpu, const struct topo_dev *nic, bool c2c)
{
	static const int rank[] = {
		[TOPO_PATH_SELF] = 0,
		[TOPO_PATH_NV] = 1,
		[TOPO_PATH_PIX] = 1,
		[TOPO_PATH_PXB] = 2,
		[TOPO_PATH_PHB] = 4,
		[TOPO_PATH_NODE] = 5,
		[TOPO_PATH_SYS] = 8,
		[TOPO_PATH_UNKNOWN] = 9,
	};
	enum topo_path path = topo_path(t, gpu, nic);
	int r = rank[path];

	if (c2c && (path == TOPO_PATH_PHB || path == TOPO_PATH_NODE))
		r = 1;
	return r * 100 + (int64_t)numa_distance(t, gpu->numa, nic->numa);
}

/* ---- what the tree cannot tell --------------------------------------------------------------- */

static bool emulated_bridge_above(const struct topo *t, int pci)
{
	for (int up = pci >= 0 ? t->pci[pci].parent : pci; up >= 0; up = t->pci[up].parent)
		if (t->pci[up].vendor == 0x1b36)
			return true;
	return false;
}

static bool on_no_bridge(const struct topo *t, const struct topo_dev *d)
{
	return d->pci < 0 || t->pci[d->pci].parent < 0;
}

/** Some GPU and NIC are told to be below one switch: then those of which it is not told are not. */
static bool shows_switches(const struct topo *t, const struct topo_plan *p)
{
	for (size_t g = 0; g < p->n_gpus; g++)
		for (size_t n = 0; n < p->n_nics; n++)
			if (topo_path(t, &p->devs[p->gpus[g].dev], &p->devs[p->nics[n].dev]) <=
				TOPO_PATH_PXB)
				return true;
	return false;
}

/**
 * Why equal distances from this GPU may be no fact: a guest's tree shows the devices without the
 * switches they hang on. NULL: the tree may be believed.
 */
static const char *hides(const struct topo *t, const struct topo_plan *p,
	const struct topo_dev *gpu, const struct topo_dev *const *tied, size_t n)
{
	bool flat = on_no_bridge(t, gpu);

	if (t->virtual_machine)
		return "a virtual machine's PCI tree hides the switches";
	if (shows_switches(t, p))
		return NULL;
	if (t->source == TOPO_FROM_SMI)
		return "the matrix tells no more, as in virtual machines, which hide the switches";
	for (size_t i = 0; i < n; i++) {
		flat = flat && on_no_bridge(t, tied[i]);
		if (emulated_bridge_above(t, gpu->pci) || emulated_bridge_above(t, tied[i]->pci))
			return "emulated PCI bridges: a virtual machine's tree hides the switches";
	}
	return flat ? "no device hangs on a bridge here: the tree hides the switches" : NULL;
}

/** The candidates nearest to a GPU, into its nics[]. @return their number, 0 when there are none */
static size_t nearest(const struct topo_plan *p, struct topo_plan_gpu *g, const int64_t *cost)
{
	int64_t least = INT64_MAX;

	g->n_nics = 0;
	for (size_t n = 0; n < p->n_nics; n++) {
		if (!p->nics[n].role || cost[n] > least)
			continue;
		if (cost[n] < least)
			g->n_nics = 0;
		least = cost[n];
		g->nics[g->n_nics++] = n;
	}
	return g->n_nics;
}

/** Sets ambiguous and why of one GPU whose nearest candidates are in nics[]. */
static void judge_gpu(
	const struct topo *t, const struct topo_plan *p, struct topo_plan_gpu *g, size_t need)
{
	const struct topo_dev *tied[TOPO_PLAN_MAX_NICS] = {0}, *gpu = &p->devs[g->dev];
	size_t candidates = 0;

	for (size_t i = 0; i < p->n_nics; i++)
		candidates += p->nics[i].role != TOPO_NIC_EXCLUDED;
	for (size_t i = 0; i < g->n_nics; i++)
		tied[i] = &p->devs[p->nics[g->nics[i]].dev];
	enum topo_path path = topo_path(t, gpu, tied[0]);

	g->path = path;
	if (candidates <= need)
		return; /* there is nothing to choose */
	if (path == TOPO_PATH_UNKNOWN) {
		g->ambiguous = true;
		snprintf(g->why, sizeof(g->why), "the tree does not tell where they are");
		return;
	}
	if (path <= TOPO_PATH_PXB || g->n_nics <= need)
		return;
	const char *why = hides(t, p, gpu, tied, g->n_nics);

	if (!why)
		return;
	g->ambiguous = true;
	snprintf(g->why, sizeof(g->why), "%zu NICs are equally near (%s), and %s", g->n_nics,
		topo_path_name(path), why);
}

/* ---- matching -------------------------------------------------------------------------------- */

/** Decided GPUs against the candidates. @return 0 or -ENOMEM */
static int match(struct topo_plan *p, const int64_t *cost, size_t candidates)
{
	size_t decided = 0, rows[TOPO_PLAN_MAX_GPUS], cols[TOPO_PLAN_MAX_NICS], n_cols = 0;
	unsigned need = p->nics_per_gpu;
	unsigned cap =
		candidates >= p->n_gpus ? 1 : (unsigned)((p->n_gpus + candidates - 1) / candidates);

	for (size_t g = 0; g < p->n_gpus; g++)
		if (!p->gpus[g].ambiguous)
			rows[decided++] = g;
	for (size_t n = 0; n < p->n_nics; n++)
		if (p->nics[n].role)
			cols[n_cols++] = n;
	if (!decided)
		return 0;
	int64_t *c = calloc(decided * n_cols, sizeof(*c));
	bool *pair = calloc(decided * n_cols, sizeof(*pair));
	int rc = -ENOMEM;

	if (!c || !pair)
		goto free_arrays;
	for (size_t i = 0; i < decided; i++)
		for (size_t k = 0; k < n_cols; k++)
			c[i * n_cols + k] = cost[rows[i] * p->n_nics + cols[k]];
	rc = topo_plan_match(c, decided, n_cols, need, cap, LOAD_COST, pair);
	for (size_t i = 0; !rc && i < decided; i++) {
		struct topo_plan_gpu *g = &p->gpus[rows[i]];

		g->n_nics = 0;
		for (size_t k = 0; k < n_cols; k++)
			if (pair[i * n_cols + k])
				g->nics[g->n_nics++] = cols[k];
	}
free_arrays:
	free(c);
	free(pair);
	return rc;
}

/** Roles and rails of the matched NICs: rail i is GPU i's; NICs that GPUs share are numbered in the
 * order of their first GPUs. */
static void set_rails(const struct topo *t, struct topo_plan *p, bool shared)
{
	int next = 0;

	for (size_t g = 0; g < p->n_gpus; g++) {
		struct topo_plan_gpu *gpu = &p->gpus[g];

		if (gpu->ambiguous)
			continue;
		gpu->path = gpu->n_nics ? TOPO_PATH_SELF : TOPO_PATH_UNKNOWN;
		for (size_t i = 0; i < gpu->n_nics; i++) {
			struct topo_plan_nic *n = &p->nics[gpu->nics[i]];
			enum topo_path path = topo_path(t, &p->devs[gpu->dev], &p->devs[n->dev]);

			if (path > gpu->path)
				gpu->path = path;
			if (n->rail < 0)
				n->rail = shared ? next++ : (int)g;
			n->role = TOPO_NIC_COMPUTE;
		}
	}
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void note_gpus(struct topo_plan *p, bool (*which)(const struct topo_plan_gpu *),
	const char *before, const char *after)
{
	struct fb_strbuf b = {0};

	for (size_t g = 0; g < p->n_gpus; g++)
		if (!p->gpus[g].ambiguous && p->gpus[g].n_nics && which(&p->gpus[g]))
			fb_strbuf_printf(
				&b, "%s%s", b.len ? ", " : "", p->devs[p->gpus[g].dev].name);
	if (b.len)
		topo_plan_note(p, "%s %s%s", before, b.s, after);
	fb_strbuf_free(&b);
}

static bool far_off(const struct topo_plan_gpu *g)
{
	return g->path == TOPO_PATH_SYS;
}

static bool through_cpu(const struct topo_plan_gpu *g)
{
	return g->path == TOPO_PATH_PHB || g->path == TOPO_PATH_NODE;
}

static void notes(const struct topo *t, struct topo_plan *p, size_t candidates)
{
	bool c2c = false;

	for (size_t g = 0; g < p->n_gpus; g++)
		c2c = c2c || over_c2c(t, g);
	if (p->n_gpus && !candidates)
		topo_plan_note(p, p->n_nics ? "no NIC can carry training traffic: see why for each"
					    : "no network device is visible");
	if (candidates && candidates < p->n_gpus)
		topo_plan_note(p, "%zu NIC%s for %zu GPUs: GPUs share %s", candidates,
			candidates == 1 ? "" : "s", p->n_gpus, candidates == 1 ? "it" : "them");
	note_gpus(p, far_off, "no local NIC for", ": theirs is on another NUMA node (SYS)");
	if (!c2c && !p->sockets)
		note_gpus(p, through_cpu, "no NIC on the switch of",
			": the way goes through the CPU (PHB, NODE), where NCCL uses no GPUDirect "
			"RDMA by default");
	if (p->sockets && candidates && p->n_gpus)
		topo_plan_note(p, "no RDMA NIC: these are interfaces for sockets");
}

/* ---- all ------------------------------------------------------------------------------------- */

static int list_devices(const struct topo *t, struct topo_plan *p)
{
	size_t gpus = 0, nics = 0;

	if (topo_devices(t, &p->devs, &p->n_devs) != 0)
		return -ENOMEM;
	size_t n = topo_count_nics(p->devs, p->n_devs);

	if (p->n_devs - n > TOPO_PLAN_MAX_GPUS || n > TOPO_PLAN_MAX_NICS) {
		topo_plan_note(p, "%zu GPUs and %zu NICs: no plan for more than %d and %d",
			p->n_devs - n, n, TOPO_PLAN_MAX_GPUS, TOPO_PLAN_MAX_NICS);
		return 0;
	}
	p->gpus = calloc(p->n_devs - n + 1, sizeof(*p->gpus));
	p->nics = calloc(n + 1, sizeof(*p->nics));
	if (!p->gpus || !p->nics)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_devs; i++) {
		if (p->devs[i].type == TOPO_DEV_GPU) {
			struct topo_plan_gpu *g = &p->gpus[gpus++];

			*g = (struct topo_plan_gpu){.dev = i, .numa = TOPO_UNKNOWN};
			g->path = TOPO_PATH_UNKNOWN;
			g->nics = calloc(n + 1, sizeof(*g->nics));
			if (!g->nics)
				return -ENOMEM;
			p->n_gpus = gpus;
		} else {
			p->nics[nics++] = (struct topo_plan_nic){.dev = i, .rail = TOPO_UNKNOWN};
		}
	}
	p->n_nics = nics;
	return 0;
}

static int match_all(const struct topo *t, struct topo_plan *p)
{
	size_t candidates = 0;
	int64_t *cost = calloc(p->n_gpus * p->n_nics + 1, sizeof(*cost));
	int rc = 0;

	if (!cost)
		return -ENOMEM;
	for (size_t n = 0; n < p->n_nics; n++)
		candidates += p->nics[n].role != TOPO_NIC_EXCLUDED;
	p->nics_per_gpu =
		candidates >= p->n_gpus && p->n_gpus ? (unsigned)(candidates / p->n_gpus) : 1;
	for (size_t g = 0; g < p->n_gpus && candidates; g++) {
		const struct topo_dev *gpu = &p->devs[p->gpus[g].dev];
		bool c2c = over_c2c(t, g);

		for (size_t n = 0; n < p->n_nics; n++)
			cost[g * p->n_nics + n] = cost_of(t, gpu, &p->devs[p->nics[n].dev], c2c);
		nearest(p, &p->gpus[g], &cost[g * p->n_nics]);
		judge_gpu(t, p, &p->gpus[g], p->nics_per_gpu);
	}
	if (candidates)
		rc = match(p, cost, candidates);
	free(cost);
	if (rc)
		return rc;
	set_rails(t, p, candidates < p->n_gpus);
	notes(t, p, candidates);
	return 0;
}

int topo_plan_make(const struct topo *t, struct topo_plan **out, struct fb_err *e)
{
	struct topo_plan *p = calloc(1, sizeof(*p));
	int rc = p ? list_devices(t, p) : -ENOMEM;

	*out = NULL;
	if (!rc) {
		topo_plan_candidates(t, p);
		rc = match_all(t, p);
	}
	if (!rc)
		rc = topo_plan_cpus(t, p);
	if (rc) {
		topo_plan_free(p);
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for the plan");
	}
	*out = p;
	return 0;
}
