// SPDX-License-Identifier: Apache-2.0
/*
 * Cores for each GPU's rank: equal shares of the cores near the GPU, whole cores, in hwloc's order,
 * so that a share stays below one cache where it can. The lowest cores stay free for interrupts:
 * the kernel puts there what nobody placed.
 *
 * Without hwloc's tree (files that name CPUs but no cores) CPUs are shared by Linux' habit of
 * numbering: equal ranges of a list are the threads of the same cores. The counts of cores then
 * stay unknown.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "topo/plan.h"
#include "topo/topo_priv.h"

#define MAX_PRESUMED 8192 /* CPUs of a list without a tree; each costs a set of its own */

struct core {
	hwloc_const_bitmap_t cpus;
	hwloc_bitmap_t own; /* NULL: cpus is the tree's */
	unsigned logical;
	bool used;
};

/* GPUs near the same CPUs. */
struct group {
	hwloc_bitmap_t cpus;
	size_t gpus[TOPO_PLAN_MAX_GPUS], n_gpus;
	int numa;   /* or TOPO_UNKNOWN */
	bool mixed; /* the GPUs are of several nodes, which cannot have the same CPUs */
};

struct work {
	const struct topo *t;
	struct topo_plan *p;
	struct core *cores;
	size_t n_cores;
	bool real; /* cores[] are hwloc's */
	struct group groups[TOPO_PLAN_MAX_GPUS];
	size_t n_groups;
	hwloc_bitmap_t all, allowed; /* allowed NULL: everything */
};

static hwloc_bitmap_t bitmap_of(const char *list)
{
	hwloc_bitmap_t b = hwloc_bitmap_alloc();

	if (b && topo_cpulist_sane(list))
		hwloc_bitmap_list_sscanf(b, list);
	return b;
}

static char *list_of(hwloc_const_bitmap_t b)
{
	char *s = NULL;

	return hwloc_bitmap_list_asprintf(&s, b) < 0 ? NULL : s;
}

/* ---- cores ----------------------------------------------------------------------------------- */

static struct core *add_core(struct work *w, hwloc_const_bitmap_t cpus)
{
	struct core *c = topo_grow((void **)&w->cores, &w->n_cores, sizeof(*c));

	if (c)
		c->cpus = cpus;
	return c;
}

static int add_own_core(struct work *w, hwloc_const_bitmap_t cpus)
{
	hwloc_bitmap_t own = hwloc_bitmap_dup(cpus);
	struct core *c = own ? add_core(w, own) : NULL;

	if (!c) {
		hwloc_bitmap_free(own);
		return -ENOMEM;
	}
	c->own = own;
	return 0;
}

/** A core of which only some threads may be used is no whole core: left out. */
static int real_cores(struct work *w)
{
	hwloc_obj_t obj = NULL;
	hwloc_obj_type_t type = HWLOC_OBJ_CORE;

	if (hwloc_get_nbobjs_by_type(w->t->hwloc, type) <= 0)
		type = HWLOC_OBJ_PU;
	while ((obj = hwloc_get_next_obj_by_type(w->t->hwloc, type, obj))) {
		if (!obj->cpuset || hwloc_bitmap_iszero(obj->cpuset) ||
			(w->allowed && !hwloc_bitmap_isincluded(obj->cpuset, w->allowed)))
			continue;
		struct core *c = add_core(w, obj->cpuset);

		if (!c)
			return -ENOMEM;
		c->logical = obj->logical_index;
	}
	w->real = true;
	return 0;
}

/** Ranges of one length are threads of the same cores: "0-15,32-47" is 16 pairs. */
static int presumed_cores(struct work *w, hwloc_const_bitmap_t set)
{
	int from[8], len = 0, n = 0, start = hwloc_bitmap_first(set);

	while (start >= 0 && n >= 0) {
		int end = hwloc_bitmap_next_unset(set, start);
		int this_len = end - start;

		if (n == 8 || (n && this_len != len)) {
			n = -1;
			break;
		}
		len = this_len;
		from[n++] = start;
		start = hwloc_bitmap_next(set, end);
	}
	bool paired = n == 2 || n == 4 || n == 8;
	hwloc_bitmap_t one = hwloc_bitmap_alloc();
	int rc = one ? 0 : -ENOMEM;

	for (int i = 0; !rc && paired && i < len; i++) {
		hwloc_bitmap_zero(one);
		for (int k = 0; k < n; k++)
			hwloc_bitmap_set(one, (unsigned)(from[k] + i));
		rc = add_own_core(w, one);
	}
	for (int i = hwloc_bitmap_first(set); !rc && !paired && i >= 0;
		i = hwloc_bitmap_next(set, i)) {
		hwloc_bitmap_only(one, (unsigned)i);
		rc = add_own_core(w, one);
	}
	hwloc_bitmap_free(one);
	return rc;
}

static int find_cores(struct work *w)
{
	int rc = 0;

	if (w->t->hwloc)
		return real_cores(w);
	/* Sets that repeat (files give all nodes one mask) are taken once. */
	hwloc_bitmap_t seen = hwloc_bitmap_alloc();

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; !rc && i < w->n_groups; i++) {
		hwloc_bitmap_t set = w->groups[i].cpus;

		if (hwloc_bitmap_intersects(set, seen) ||
			hwloc_bitmap_weight(set) + (int)w->n_cores > MAX_PRESUMED)
			continue;
		hwloc_bitmap_or(seen, seen, set);
		rc = presumed_cores(w, set);
	}
	hwloc_bitmap_free(seen);
	return rc;
}

/* ---- which CPUs are near --------------------------------------------------------------------- */

static hwloc_bitmap_t machine(const struct topo *t)
{
	if (t->hwloc)
		return hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(t->hwloc));
	hwloc_bitmap_t all = hwloc_bitmap_alloc();

	for (size_t i = 0; all && i < t->n_numa; i++) {
		hwloc_bitmap_t b = bitmap_of(t->numa[i].cpus ? t->numa[i].cpus : "");

		if (b)
			hwloc_bitmap_or(all, all, b);
		hwloc_bitmap_free(b);
	}
	return all;
}

/** CPUs near a GPU; *near is empty where the tree does not tell. All CPUs of several nodes is what
 * the kernel says when it does not know. @return 0 or -ENOMEM */
static int near_cpus(struct work *w, struct topo_plan_gpu *g, hwloc_bitmap_t *near)
{
	const struct topo *t = w->t;
	const struct topo_dev *d = &w->p->devs[g->dev];
	const struct topo_numa *node;

	g->numa = d->numa;
	if (g->numa < 0 && t->n_numa == 1)
		g->numa = t->numa[0].os_index;
	node = topo_find_numa(t, g->numa);
	*near = bitmap_of(d->cpus ? d->cpus : "");
	if (!*near)
		return -ENOMEM;
	if (hwloc_bitmap_iszero(*near) && node && topo_cpulist_sane(node->cpus))
		hwloc_bitmap_list_sscanf(*near, node->cpus);
	if (g->numa < 0 && t->n_numa > 1 && hwloc_bitmap_isincluded(w->all, *near))
		hwloc_bitmap_zero(*near);
	return 0;
}

/** Smaller sets first: a GPU that is local to one cache gets its cores before the node's others. */
static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int wx = hwloc_bitmap_weight(x->cpus), wy = hwloc_bitmap_weight(y->cpus);

	if (wx != wy)
		return (wx > wy) - (wx < wy);
	return (x->gpus[0] > y->gpus[0]) - (x->gpus[0] < y->gpus[0]);
}

/** Some providers' files give every node one mask. */
static void drop_mixed(struct work *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n_groups; i++) {
		if (!w->groups[i].mixed) {
			w->groups[kept++] = w->groups[i];
			continue;
		}
		topo_plan_note(w->p,
			"no cores for %zu GPUs: the source gives their different NUMA nodes the same "
			"CPUs",
			w->groups[i].n_gpus);
		hwloc_bitmap_free(w->groups[i].cpus);
	}
	w->n_groups = kept;
}

static int make_groups(struct work *w)
{
	struct fb_strbuf unknown = {0};

	for (size_t g = 0; g < w->p->n_gpus; g++) {
		hwloc_bitmap_t near;
		size_t i = 0;

		if (near_cpus(w, &w->p->gpus[g], &near) != 0)
			goto no_memory;
		if (hwloc_bitmap_iszero(near)) {
			fb_strbuf_printf(&unknown, "%s%s", unknown.len ? ", " : "",
				w->p->devs[w->p->gpus[g].dev].name);
			hwloc_bitmap_free(near);
			continue;
		}
		while (i < w->n_groups && !hwloc_bitmap_isequal(w->groups[i].cpus, near))
			i++;
		if (i == w->n_groups) {
			w->groups[w->n_groups++] =
				(struct group){.cpus = near, .numa = w->p->gpus[g].numa};
		} else {
			hwloc_bitmap_free(near);
			w->groups[i].mixed |= w->groups[i].numa != w->p->gpus[g].numa;
		}
		w->groups[i].gpus[w->groups[i].n_gpus++] = g;
	}
	if (unknown.len)
		topo_plan_note(w->p, "no cores for %s: the tree does not tell which CPUs are near",
			unknown.s);
	fb_strbuf_free(&unknown);
	drop_mixed(w);
	qsort(w->groups, w->n_groups, sizeof(*w->groups), compare_groups);
	return 0;
no_memory:
	fb_strbuf_free(&unknown);
	return -ENOMEM;
}

/* ---- shares ---------------------------------------------------------------------------------- */

/** NICs of the plan beside a group's CPUs. */
static unsigned nics_beside(const struct work *w, const struct group *gr)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->p->n_nics; i++) {
		const struct topo_dev *d = &w->p->devs[w->p->nics[i].dev];

		if (w->p->nics[i].role != TOPO_NIC_COMPUTE)
			continue;
		if (gr->numa >= 0) {
			n += d->numa == gr->numa;
			continue;
		}
		hwloc_bitmap_t b = bitmap_of(d->cpus ? d->cpus : "");

		n += b && !hwloc_bitmap_iszero(b) && hwloc_bitmap_isequal(b, gr->cpus);
		hwloc_bitmap_free(b);
	}
	return n;
}

/** The CPUs and logical cores of cores[list[from..from+n]]. */
static int lists(const struct work *w, const size_t *list, size_t n, char **cpus, char **cores)
{
	hwloc_bitmap_t b = hwloc_bitmap_alloc(), l = hwloc_bitmap_alloc();
	int rc = -ENOMEM;

	*cpus = NULL;
	if (!b || !l)
		goto free_sets;
	for (size_t i = 0; i < n; i++) {
		hwloc_bitmap_or(b, b, w->cores[list[i]].cpus);
		hwloc_bitmap_set(l, w->cores[list[i]].logical);
	}
	*cpus = list_of(b);
	if (cores)
		*cores = w->real ? list_of(l) : NULL;
	rc = *cpus && (!cores || !w->real || *cores) ? 0 : -ENOMEM;
free_sets:
	hwloc_bitmap_free(b);
	hwloc_bitmap_free(l);
	return rc;
}

/** How many of a group's cores stay free: one for each NIC, a quarter at most, and then what does
 * not divide; none when the GPUs need all. */
static size_t kept_free(size_t total, size_t gpus, unsigned nics)
{
	size_t reserve = nics < total / 4 ? nics : total / 4;

	if (total - reserve < gpus)
		reserve = total - gpus;
	return total - (total - reserve) / gpus * gpus;
}

static int keep_free(struct work *w, const struct group *gr, const size_t *list, size_t n)
{
	struct topo_plan_irq *irq = topo_grow((void **)&w->p->irq, &w->p->n_irq, sizeof(*irq));

	if (!irq)
		return -ENOMEM;
	irq->numa = gr->numa;
	irq->n_cores = w->real ? (unsigned)n : 0;
	irq->n_nics = nics_beside(w, gr);
	return lists(w, list, n, &irq->cpus, NULL);
}

static int share(struct work *w, const struct group *gr)
{
	size_t *list = calloc(w->n_cores + 1, sizeof(*list)), n = 0, per, first;
	int rc = list ? 0 : -ENOMEM;

	for (size_t i = 0; list && i < w->n_cores; i++)
		if (!w->cores[i].used && hwloc_bitmap_isincluded(w->cores[i].cpus, gr->cpus))
			list[n++] = i;
	if (rc || n == 0) {
		if (!rc)
			topo_plan_note(w->p, "no whole core near %s may be used here",
				w->p->devs[w->p->gpus[gr->gpus[0]].dev].name);
		free(list);
		return rc;
	}
	if (n < gr->n_gpus) {
		topo_plan_note(w->p, "%zu core%s for %zu GPUs: their ranks share them", n,
			n == 1 ? "" : "s", gr->n_gpus);
		first = 0;
		per = 0;
	} else {
		unsigned nics = nics_beside(w, gr);

		/* CPU 0 is where the kernel's own work goes, NIC or not. */
		if (!nics && hwloc_bitmap_isset(gr->cpus, 0))
			nics = 1;
		first = kept_free(n, gr->n_gpus, nics);
		per = (n - first) / gr->n_gpus;
		if (first)
			rc = keep_free(w, gr, list, first);
		else if (nics_beside(w, gr))
			topo_plan_note(w->p,
				"no core of NUMA node %d stays free for interrupts: %zu GPUs need "
				"all %zu",
				gr->numa, gr->n_gpus, n);
	}
	for (size_t i = 0; !rc && i < gr->n_gpus; i++) {
		struct topo_plan_gpu *g = &w->p->gpus[gr->gpus[i]];

		rc = lists(w, list + first + i * per, per ? per : n, &g->cpus, &g->cores);
		g->n_cores = w->real ? (unsigned)(per ? per : n) : 0;
	}
	for (size_t i = 0; i < n; i++)
		w->cores[list[i]].used = true;
	free(list);
	return rc;
}

static int compare_irq(const void *a, const void *b)
{
	const struct topo_plan_irq *x = a, *y = b;

	return (x->numa > y->numa) - (x->numa < y->numa);
}

int topo_plan_cpus(const struct topo *t, struct topo_plan *p)
{
	struct work *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	if (!w)
		return -ENOMEM;
	w->t = t;
	w->p = p;
	w->all = machine(t);
	w->allowed = t->live && t->allowed ? bitmap_of(t->allowed) : NULL;
	if (w->all)
		rc = make_groups(w);
	if (!rc)
		rc = find_cores(w);
	for (size_t i = 0; !rc && i < w->n_groups; i++)
		rc = share(w, &w->groups[i]);
	if (!rc && !t->hwloc && w->n_groups)
		topo_plan_note(p,
			"which CPUs share a core is not recorded: the shares go by Linux' "
			"usual numbering");
	if (p->n_irq)
		qsort(p->irq, p->n_irq, sizeof(*p->irq), compare_irq);
	for (size_t i = 0; i < w->n_groups; i++)
		hwloc_bitmap_free(w->groups[i].cpus);
	for (size_t i = 0; i < w->n_cores; i++)
		hwloc_bitmap_free(w->cores[i].own);
	free(w->cores);
	hwloc_bitmap_free(w->all);
	hwloc_bitmap_free(w->allowed);
	free(w);
	return rc;
}
