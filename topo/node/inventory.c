// SPDX-License-Identifier: Apache-2.0
/*
 * Is everything there? Counts of GPUs, NICs and NVLinks, memory and drivers: against the
 * expectation, else what most nodes of this kind have, else the shape's own symmetry. A finding
 * says which of the three judged. What is missing without being expected is no fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/node/node_priv.h"

static const struct gpu_fact *facts_of(const struct node *n, const struct node_dev *d)
{
	return d->pci >= 0 ? gpu_facts_find(&n->gpus, n->t->pci[d->pci].bdf) : NULL;
}

/* ---- what there is --------------------------------------------------------------------------- */

uint64_t node_memory(const struct node *n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n->t->n_numa; i++) {
		const char *kind = n->t->numa[i].kind;
		if (!kind || !strstr(kind, "GPU"))
			sum += n->t->numa[i].memory;
	}
	return sum;
}

int node_nvlinks(const struct node *n, const struct node_dev *gpu)
{
	const struct gpu_fact *g = facts_of(n, gpu);
	int links = -1;
	if (g && g->links >= 0)
		return g->links;
	for (size_t i = 0; i < n->t->n_fast; i++)
		if (n->t->fast[i].gpu == gpu->gpu && n->t->fast[i].kind == TOPO_FAST_NVLINK)
			links = (links < 0 ? 0 : links) + (int)n->t->fast[i].count;
	return links;
}

const char *const node_drivers[] = {
	"nvidia", "mlx5_core", "nvidia_peermem", "amdgpu", "bnxt_re", "efa", "kernel", NULL};

bool node_driver(const struct node *n, const char *name, char *buf, size_t len)
{
	if (strcmp(name, "kernel") == 0)
		return fb_sysroot_read(n->r, "/proc/sys/kernel/osrelease", buf, len) > 0;
	if (strcmp(name, "nvidia") == 0 && n->gpus.driver[0]) {
		snprintf(buf, len, "%s", n->gpus.driver);
		return true;
	}
	return fb_sysroot_readf(n->r, buf, len, "/sys/module/%s/version", name) > 0;
}

/* ---- counts of devices ----------------------------------------------------------------------- */

/* Devices that the expectation names and that are not there. @return how many */
static unsigned missing(const struct node *n, bool nic, char *buf, size_t len)
{
	unsigned k = 0;
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < n->expect.n_dev; i++) {
		const struct expect_dev *x = &n->expect.dev[i];
		bool there = false;
		for (size_t j = 0; j < n->n_dev; j++)
			there = there || (n->dev[j].pci >= 0 &&
						 strcmp(n->t->pci[n->dev[j].pci].bdf, x->bdf) == 0);
		if (x->nic != nic || there)
			continue;
		k++;
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s%s%s%s", at ? ", " : "",
				x->bdf, x->slot[0] || x->name[0] ? " (" : "",
				x->slot[0] ? x->slot : x->name,
				x->slot[0] || x->name[0] ? ")" : "");
	}
	return k;
}

struct counted {
	bool nic;
	int64_t have, expect;
	const char *key, *one; /* of the summary; "GPU" */
};

/* Against the expectation. @return false: it tells none */
static bool by_expectation(const struct node *n, const struct counted *k, struct fb_finding *f)
{
	char names[160];
	unsigned gone = missing(n, k->nic, names, sizeof(names));
	if (k->expect < 0 && gone == 0)
		return false;
	fb_find_expected(f, n->expect.path, "%lld",
		(long long)(k->expect >= 0 ? k->expect : k->have + gone));
	if (gone)
		fb_find(f, FB_CHECK_FAIL, "%lld; missing: %s", (long long)k->have, names);
	else
		fb_find(f,
			k->have < k->expect   ? FB_CHECK_FAIL
			: k->have > k->expect ? FB_CHECK_WARN
					      : FB_CHECK_PASS,
			"%lld", (long long)k->have);
	return true;
}

/* Against most nodes of the kind. @return false: none tells */
static bool by_fleet(struct node *n, const struct counted *k, struct fb_finding *f)
{
	char text[64], own[32];
	unsigned of;
	enum node_vote vote = node_majority(n, k->key, text, sizeof(text), &of);
	snprintf(own, sizeof(own), "%lld", (long long)k->have);
	if (vote == NODE_VOTE_NONE || (vote == NODE_VOTE_TIED && strcmp(own, text) == 0))
		return false;
	if (vote == NODE_VOTE_TIED) {
		fb_find(f, FB_CHECK_WARN, "%s; another node of its kind has %s", own, text);
		fb_find_expected(f, "the other nodes, which do not agree", "%s", text);
		return true;
	}
	char source[64];
	snprintf(source, sizeof(source), "most of %u nodes of its kind", of);
	fb_find_expected(f, source, "%s", text);
	fb_find(f,
		strcmp(own, text) == 0           ? FB_CHECK_PASS
		: k->have < strtoll(text, 0, 10) ? FB_CHECK_FAIL
						 : FB_CHECK_WARN,
		"%s", own);
	return true;
}

static void count_devices(struct node_run *c, const struct counted *k, struct fb_finding *f)
{
	char what[200];
	if (by_expectation(c->n, k, f) || by_fleet(c->n, k, f))
		return;
	if (k->have == 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: no %s here, and nothing says that there should be", k->one);
		return;
	}
	fb_find_expected(f, "the shape's own symmetry", "the same in like places");
	if (node_asymmetry(c->n, !k->nic, what, sizeof(what)))
		fb_find(f, FB_CHECK_WARN, "%lld: %s", (long long)k->have, what);
	else
		fb_find(f, FB_CHECK_PASS, "%lld", (long long)k->have);
}

void node_inv_gpu_count(struct node_run *c)
{
	struct node *n = c->n;
	struct counted k = {.have = (int64_t)node_count_gpus(n),
		.expect = n->expect.gpus,
		.key = "gpus",
		.one = "GPU"};
	struct fb_finding f = node_finding(c, "GPUs");
	fb_find_read(&f, "/sys/bus/pci/devices (class 0x03 and 0x12)");
	count_devices(c, &k, &f);
	node_emit(c, &f);
	/* What the bus has and the driver has not: it failed to start, or was lost since. */
	for (size_t i = 0; i < n->n_dev && n->gpus.told; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->gpu < 0 || d->pci < 0 || n->t->pci[d->pci].vendor != 0x10de ||
			facts_of(n, d) || strstr(n->t->pci[d->pci].driver, "vfio"))
			continue;
		f = node_finding(c, d->subject);
		fb_find(&f, FB_CHECK_FAIL, "on the PCI bus, and unknown to the driver");
		fb_find_expected(&f, n->gpus.read, "every GPU answers");
		fb_find_read(&f, "/sys/bus/pci/devices, %s", n->gpus.read);
		fb_find_remedy(&f, "ends every job on the node",
			"dmesg | grep -i xid; reboot; then look at its power and seat");
		node_emit(c, &f);
	}
	char want[64];
	snprintf(want, sizeof(want), "%s", n->expect.gpu_model);
	for (size_t i = 0; i < n->n_dev && want[0]; i++) {
		const struct node_dev *d = &n->dev[i];
		const struct gpu_fact *g = d->gpu >= 0 ? facts_of(n, d) : NULL;
		const char *model = g && g->model[0] ? g->model
				    : d->gpu >= 0    ? n->t->gpus[d->gpu].model
						     : NULL;
		if (!model || strcasestr(model, want))
			continue;
		f = node_finding(c, d->subject);
		fb_find(&f, FB_CHECK_FAIL, "%s", model);
		fb_find_expected(&f, n->expect.path, "%s", want);
		node_emit(c, &f);
	}
}

void node_inv_nic_count(struct node_run *c)
{
	struct node *n = c->n;
	struct counted k = {.nic = true,
		.have = (int64_t)node_count_role(n, NODE_ROLE_COMPUTE),
		.expect = n->expect.nics,
		.key = "nics",
		.one = "compute NIC"};
	struct fb_finding f = node_finding(c, "compute NICs");
	fb_find_read(&f, "/sys/class/infiniband, those of role compute (ib.role)");
	count_devices(c, &k, &f);
	node_emit(c, &f);
}

/* ---- NVLinks --------------------------------------------------------------------------------- */

/* The count that most GPUs of this node have; -1: no GPU tells, or no count leads. */
static int usual_links(const struct node *n)
{
	int best = -1, best_n = 0, told = 0;
	for (size_t i = 0; i < n->n_dev; i++) {
		int links = n->dev[i].gpu >= 0 ? node_nvlinks(n, &n->dev[i]) : -1, same = 0;
		told += links >= 0;
		for (size_t k = 0; k < n->n_dev && links >= 0; k++)
			same += n->dev[k].gpu >= 0 && node_nvlinks(n, &n->dev[k]) == links;
		if (same > best_n || (same == best_n && links > best)) {
			best = links;
			best_n = same;
		}
	}
	/* Of two GPUs with different counts, the one with more says what the other lacks. */
	return told ? best : -1;
}

struct links {
	int want;
	const char *source, *read;
	enum fb_check_state less;
};

static void judge_links(struct node_run *c, const struct node_dev *d, const struct links *l)
{
	const struct gpu_fact *g = facts_of(c->n, d);
	int have = node_nvlinks(c->n, d);
	struct fb_finding f = node_finding(c, d->subject);
	fb_find_read(&f, "%s", l->read);
	if (have < 0 && l->want > 0)
		fb_find(&f, FB_CHECK_SKIP, "not available: nothing tells this GPU's links");
	else if (have < 0)
		return;
	else if (g && g->links_down > 0)
		fb_find(&f, have < l->want ? l->less : FB_CHECK_PASS, "%d up, %d down", have,
			g->links_down);
	else
		fb_find(&f,
			have < l->want   ? l->less
			: have > l->want ? FB_CHECK_WARN
					 : FB_CHECK_PASS,
			"%d up", have);
	fb_find_expected(&f, l->source, "%d", l->want);
	node_emit(c, &f);
}

void node_inv_nvlink_count(struct node_run *c)
{
	struct node *n = c->n;
	char text[64], source[64];
	unsigned of = 0;
	size_t before = c->findings;
	int usual = usual_links(n);
	struct links l = {.want = n->expect.nvlinks,
		.source = n->expect.path,
		.read = n->gpus.n ? n->gpus.links_read : "the topology's source",
		.less = FB_CHECK_FAIL};
	if (l.want < 0 && node_majority(n, "nvlinks", text, sizeof(text), &of) == NODE_VOTE_WON &&
		text[strspn(text, "0123456789")] == '\0') {
		snprintf(source, sizeof(source), "most of %u nodes of its kind", of);
		l.want = (int)strtol(text, NULL, 10);
		l.source = source;
	} else if (l.want < 0) {
		l.want = usual;
		l.source = "the other GPUs of this node";
		l.less = FB_CHECK_WARN;
	}
	for (size_t i = 0; i < n->n_dev && (l.want > 0 || usual > 0); i++)
		if (n->dev[i].gpu >= 0)
			judge_links(c, &n->dev[i], &l);
	if (c->findings > before)
		return;
	if (n->t->n_gpus == 0)
		node_skip(c, "not available: no GPU here");
	else if (usual < 0)
		node_skip(c, "%s",
			n->gpus.why[0] ? n->gpus.why : "not available: nothing tells NVLinks");
	else
		node_skip(c, "not available: no GPU has an NVLink, and none is expected");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Median over the nodes of this kind, this one included; 0: no other tells. */
static double usual_memory(struct node *n, unsigned *of)
{
	const json_t *own = node_summary(n);
	double *v = calloc(n->fleet.n + 1, sizeof(*v)), median = 0;
	unsigned k = 0;
	for (size_t i = 0; v && i < n->fleet.n; i++) {
		double bytes = fb_json_num(n->fleet.peer[i], "memory_bytes", 0);
		if (bytes > 0 && node_same_kind(own, n->fleet.peer[i]))
			v[k++] = bytes;
	}
	if (k > 0) {
		v[k++] = (double)node_memory(n);
		qsort(v, k, sizeof(*v), by_value);
		/* Of two, the larger: memory goes missing, it does not grow. */
		median = v[k / 2];
	}
	free(v);
	*of = k;
	return median;
}

void node_inv_memory(struct node_run *c)
{
	struct node *n = c->n;
	double have = (double)node_memory(n), gib = 1u << 30, want = (double)n->expect.memory;
	char source[64];
	unsigned of = 0;
	struct fb_finding f = node_finding(c, "memory");
	fb_find_read(&f, "MemTotal of /sys/devices/system/node/node*/meminfo");
	if (!(have > 0)) {
		fb_find(&f, FB_CHECK_SKIP, "%s",
			n->live ? "not available: no node tells its memory" : "not recorded");
	} else if (want > 0) {
		/* Firmware and kernel keep up to 2.5 % for themselves; one of 32 modules is 3.1 %.
		 */
		fb_find(&f, have < 0.972 * want ? FB_CHECK_FAIL : FB_CHECK_PASS, "%.1f GiB",
			have / gib);
		fb_find_expected(&f, n->expect.path, "%.0f GiB, less 2.8 %% at most", want / gib);
	} else if ((want = usual_memory(n, &of)) > 0) {
		snprintf(source, sizeof(source), "the median of %u nodes of its kind", of);
		fb_find(&f, have < 0.985 * want ? FB_CHECK_FAIL : FB_CHECK_PASS, "%.1f GiB",
			have / gib);
		fb_find_expected(&f, source, "%.1f GiB, less 1.5 %% at most", want / gib);
	} else {
		double least = 1e30, most = 0;
		for (size_t i = 0; i < n->t->n_numa; i++) {
			double m = (double)n->t->numa[i].memory;
			if (!node_own_memory(n->t, i))
				continue;
			least = m < least ? m : least;
			most = m > most ? m : most;
		}
		if (n->t->n_numa < 2)
			fb_find(&f, FB_CHECK_INFO, "%.1f GiB; nothing to compare it with",
				have / gib);
		else
			fb_find(&f, least < 0.9 * most ? FB_CHECK_WARN : FB_CHECK_PASS,
				"%.1f GiB; from %.1f to %.1f on a NUMA node", have / gib,
				least / gib, most / gib);
		fb_find_expected(&f, "the shape's own symmetry", "as much on each NUMA node");
	}
	node_emit(c, &f);
}

/* ---- drivers --------------------------------------------------------------------------------- */

static const char *expected_driver(const struct node_expect *x, const char *name)
{
	const char *v = strcmp(name, "nvidia") == 0      ? x->driver_nvidia
			: strcmp(name, "mlx5_core") == 0 ? x->driver_mlx5
			: strcmp(name, "kernel") == 0    ? x->kernel
							 : "";
	return *v ? v : NULL;
}

void node_inv_driver_versions(struct node_run *c)
{
	struct node *n = c->n;
	size_t before = c->findings;
	for (size_t i = 0; node_drivers[i]; i++) {
		char have[128] = "", want[128], key[64], source[64];
		unsigned of;
		bool told = node_driver(n, node_drivers[i], have, sizeof(have));
		const char *x = expected_driver(&n->expect, node_drivers[i]);
		if (!told && !x)
			continue;
		struct fb_finding f = node_finding(c, node_drivers[i]);
		fb_find_read(&f, "%s",
			strcmp(node_drivers[i], "kernel") == 0
				? "/proc/sys/kernel/osrelease"
				: "/sys/module/*/version, the GPU driver");
		snprintf(key, sizeof(key), "drivers.%s", node_drivers[i]);
		enum node_vote vote = node_majority(n, key, want, sizeof(want), &of);
		if (x) {
			fb_find(&f, strcmp(have, x) == 0 ? FB_CHECK_PASS : FB_CHECK_FAIL, "%s",
				told ? have : "not loaded");
			fb_find_expected(&f, n->expect.path, "%s", x);
		} else if (vote != NODE_VOTE_NONE) {
			snprintf(source, sizeof(source), "%s %u nodes of its kind",
				vote == NODE_VOTE_WON ? "most of" : "one of", of);
			fb_find(&f, strcmp(have, want) == 0 ? FB_CHECK_PASS : FB_CHECK_WARN, "%s",
				have);
			fb_find_expected(&f, source, "%s", want);
		} else {
			fb_find(&f, FB_CHECK_INFO, "%s", have);
		}
		node_emit(c, &f);
	}
	if (c->findings == before)
		node_skip(c, "%s",
			n->live ? "not available: no driver tells its version" : "not recorded");
}
