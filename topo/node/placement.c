// SPDX-License-Identifier: Apache-2.0
/*
 * What is near what: GPUs and their NICs, NUMA nodes, and whether a NIC may reach a GPU's memory at
 * all. A virtual machine hides switches: what its tree does not tell is not judged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/node_priv.h"

/* ---- GPU memory for NICs --------------------------------------------------------------------- */

static bool nvidia_gpus(const struct node *n)
{
	for (size_t i = 0; i < n->t->n_gpus; i++)
		if (n->t->pci[n->t->gpus[i].pci].vendor == 0x10de)
			return true;
	return false;
}

/* "5.15.0-91-generic" is at least major.minor. */
static bool kernel_at_least(const char *release, unsigned major, unsigned minor)
{
	unsigned a = 0, b = 0;
	return sscanf(release, "%u.%u", &a, &b) == 2 && (a > major || (a == major && b >= minor));
}

static const char *peer_memory(const struct node *n)
{
	static const char *const paths[] = {"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem",
		"/sys/kernel/mm/memory_peers/nv_mem/version"};
	static const char *const names[] = {"nvidia_peermem", "nv_peer_mem", "nv_peer_mem"};
	for (size_t i = 0; i < 3; i++)
		if (fb_sysroot_exists(n->r, "%s", paths[i]))
			return names[i];
	return NULL;
}

void node_gdr_support(struct node_run *c)
{
	struct node *n = c->n;
	char driver[512] = "", release[128] = "";
	struct fb_finding f = node_finding(c, NULL);
	if (!nvidia_gpus(n) || node_count_role(n, NODE_ROLE_COMPUTE) == 0) {
		node_skip(c, "not available: it takes an NVIDIA GPU and an RDMA device");
		return;
	}
	int rc = node_read(n, &f, driver, sizeof(driver), "/proc/driver/nvidia/version");
	if (rc < 0) {
		if (n->live)
			fb_find(&f, FB_CHECK_SKIP,
				"not available: the NVIDIA driver is not loaded");
		node_emit(c, &f);
		return;
	}
	fb_sysroot_read(n->r, "/proc/sys/kernel/osrelease", release, sizeof(release));
	/* dma-buf: Linux 5.12 and NVIDIA's open kernel modules. */
	bool open = strstr(driver, "Open Kernel Module") != NULL;
	bool dmabuf = open && kernel_at_least(release, 5, 12);
	const char *peer = peer_memory(n);
	if (!peer && !dmabuf)
		fb_find(&f, FB_CHECK_FAIL,
			"neither: nvidia_peermem is not loaded, %s kernel module on Linux %s",
			open ? "open" : "closed", *release ? release : "(not told)");
	else
		fb_find(&f, FB_CHECK_PASS, "%s%s%s", dmabuf ? "dma-buf" : "",
			dmabuf && peer ? " and " : "", peer ? peer : "");
	fb_find_read(&f, "/sys/module/{nvidia_peermem,nv_peer_mem}, /proc/driver/nvidia/version, "
			 "/proc/sys/kernel/osrelease");
	fb_find_expected(&f, "GPUDirect RDMA",
		"dma-buf (open modules, Linux 5.12) or a peer-memory "
		"module");
	node_emit(c, &f);
}

/* Largest memory region of a function; 0: not told. */
static uint64_t largest_region(const struct node *n, struct fb_finding *f, const char *bdf)
{
	char text[4096];
	uint64_t best = 0;
	if (node_read(n, f, text, sizeof(text), "/sys/bus/pci/devices/%s/resource", bdf) < 0)
		return 0;
	/* One line a region; after the sixth come the ROM and what belongs to virtual functions. */
	const char *line = text;
	for (int i = 0; i < 6 && *line; i++) {
		unsigned long long start = 0, end = 0;
		if (sscanf(line, "%llx %llx", &start, &end) == 2 && end > start &&
			end - start + 1 > best)
			best = end - start + 1;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return best;
}

void node_gpu_bar1(struct node_run *c)
{
	struct node *n = c->n;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->gpu < 0 || d->pci < 0)
			continue;
		const char *bdf = n->t->pci[d->pci].bdf;
		const struct gpu_fact *g = gpu_facts_find(&n->gpus, bdf);
		struct fb_finding f = node_finding(c, d->subject);
		uint64_t bar = g && g->bar1 > 0 ? (uint64_t)g->bar1 : largest_region(n, &f, bdf);
		double gib = (double)bar / (1u << 30);
		if (g && g->bar1 > 0)
			fb_find_read(&f, "%s", n->gpus.read);
		if (bar == 0 && f.state != FB_CHECK_SKIP)
			fb_find(&f, FB_CHECK_SKIP, "not available: the function has no region");
		else if (bar > 0 && g && g->memory > 0)
			fb_find(&f, bar < (uint64_t)g->memory ? FB_CHECK_WARN : FB_CHECK_PASS,
				"window of %.4g GiB, memory of %.1f GiB", gib,
				(double)g->memory / (1u << 30));
		else if (bar > 0 && bar <= (256u << 20))
			fb_find(&f, FB_CHECK_WARN, "window of %llu MiB",
				(unsigned long long)(bar >> 20));
		else if (bar > 0)
			fb_find(&f, FB_CHECK_INFO,
				"window of %.4g GiB; how much memory the GPU has is not told", gib);
		fb_find_expected(&f, "a NIC reaches only what the window shows",
			"at least the GPU's memory");
		node_emit(c, &f);
	}
	if (n->t->n_gpus == 0)
		node_skip(c, "not available: no GPU here");
}

/* ---- GPU and NIC ----------------------------------------------------------------------------- */

/* Nearest compute NIC of a GPU. NULL: none */
static const struct node_dev *nearest(
	const struct node *n, const struct node_dev *gpu, enum topo_path *path)
{
	const struct node_dev *best = NULL;
	*path = TOPO_PATH_UNKNOWN;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->role != NODE_ROLE_COMPUTE)
			continue;
		enum topo_path p = node_path(n, gpu, d);
		if (!best || p < *path) {
			best = d;
			*path = p;
		}
	}
	return best;
}

/* Grace reaches its GPU over NVLink-C2C: NICs hang on the CPU there, by design. */
static bool by_c2c(const struct node *n)
{
	for (size_t i = 0; i < n->t->n_fast; i++)
		if (n->t->fast[i].kind == TOPO_FAST_C2C)
			return true;
	for (size_t i = 0; i < n->gpus.n; i++)
		if (strstr(n->gpus.gpu[i].model, "GB200") ||
			strstr(n->gpus.gpu[i].model, "GB300") ||
			strstr(n->gpus.gpu[i].model, "GH200"))
			return true;
	return false;
}

static void judge_path(struct node_run *c, const struct node_dev *gpu)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, gpu->subject);
	enum topo_path path, limit = n->expect.gpu_nic_path;
	const struct node_dev *nic = nearest(n, gpu, &path);
	size_t nics = node_count_role(n, NODE_ROLE_COMPUTE);
	fb_find_read(&f, "/sys/bus/pci/devices: the bridges above both, numa_node");
	if (limit != TOPO_PATH_UNKNOWN)
		fb_find_expected(&f, n->expect.path, "%s or nearer", topo_path_name(limit));
	else
		fb_find_expected(&f, "traffic that leaves the switch shares the root's bandwidth",
			"PIX or PXB");
	if (path == TOPO_PATH_UNKNOWN || (n->place == NODE_GUEST && path > TOPO_PATH_PXB))
		fb_find(&f, FB_CHECK_SKIP, "not visible from here: %s",
			n->place == NODE_GUEST
				? "a virtual machine hides switches; NCCL_TOPO_FILE can tell them"
				: "where GPU and NICs are is not told");
	else if (path <= TOPO_PATH_PXB || (limit != TOPO_PATH_UNKNOWN && path <= limit))
		fb_find(&f, FB_CHECK_PASS, "%s to %s", topo_path_name(path), nic->name);
	else if (by_c2c(n) && path <= TOPO_PATH_NODE)
		fb_find(&f, FB_CHECK_PASS, "%s to %s: the CPU reaches the GPU over NVLink-C2C",
			topo_path_name(path), nic->name);
	else if (path == TOPO_PATH_SYS && nics >= n->t->n_gpus && limit == TOPO_PATH_UNKNOWN)
		fb_find(&f, FB_CHECK_FAIL,
			"SYS: no NIC on its NUMA node, though %zu NICs would do for %zu GPUs", nics,
			n->t->n_gpus);
	else
		fb_find(&f, limit != TOPO_PATH_UNKNOWN ? FB_CHECK_FAIL : FB_CHECK_WARN,
			"nearest is %s, by %s", nic->name, topo_path_name(path));
	node_emit(c, &f);
}

/* Is there something to pair? Else the check is one skip. */
static bool has_pairs(struct node_run *c)
{
	if (c->n->t->n_gpus == 0)
		node_skip(c, "not available: no GPU here");
	else if (node_count_role(c->n, NODE_ROLE_COMPUTE) == 0)
		node_skip(c, "not available: no compute NIC here");
	else
		return true;
	return false;
}

void node_gpu_nic_path(struct node_run *c)
{
	if (!has_pairs(c))
		return;
	for (size_t i = 0; i < c->n->n_dev; i++)
		if (c->n->dev[i].gpu >= 0)
			judge_path(c, &c->n->dev[i]);
}

struct matching {
	const struct node *n;
	const size_t *gpu, *nic; /* indices in dev[] */
	size_t n_gpu, n_nic;
	const enum topo_path *best; /* of each GPU */
	int *taken;                 /* by NIC: index in gpu[], -1 */
	bool *seen;
};

/* Kuhn's augmenting path: a GPU may take any NIC as near as its nearest. */
static bool place_gpu(struct matching *m, size_t g)
{
	for (size_t k = 0; k < m->n_nic; k++) {
		if (m->seen[k] ||
			node_path(m->n, &m->n->dev[m->gpu[g]], &m->n->dev[m->nic[k]]) > m->best[g])
			continue;
		m->seen[k] = true;
		if (m->taken[k] < 0 || place_gpu(m, (size_t)m->taken[k])) {
			m->taken[k] = (int)g;
			return true;
		}
	}
	return false;
}

static void judge_balance(struct node_run *c, struct matching *m, enum topo_path *best)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, NULL);
	char names[128] = "";
	size_t at = 0, without = 0;
	for (size_t g = 0; g < m->n_gpu; g++) {
		nearest(n, &n->dev[m->gpu[g]], &best[g]);
		memset(m->seen, 0, m->n_nic * sizeof(*m->seen));
		if (place_gpu(m, g))
			continue;
		without++;
		if (at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
				at ? ", " : "", n->dev[m->gpu[g]].name);
	}
	fb_find_read(&f, "/sys/bus/pci/devices: the bridges above GPUs and NICs");
	fb_find_expected(&f, "a NIC of its own for each GPU where there are enough",
		"at most %zu GPUs for a NIC", (m->n_gpu + m->n_nic - 1) / m->n_nic);
	if (n->place == NODE_GUEST && n->t->n_gpus > 1)
		fb_find(&f, FB_CHECK_SKIP,
			"not visible from here: a virtual machine hides which NIC is whose");
	else if (m->n_nic < m->n_gpu)
		fb_find(&f, FB_CHECK_INFO, "%zu GPUs share %zu NICs", m->n_gpu, m->n_nic);
	else if (without)
		fb_find(&f, FB_CHECK_WARN,
			"no NIC is left as near as the nearest for %s: another GPU takes it",
			names);
	else
		fb_find(&f, FB_CHECK_PASS, "%zu GPUs, %zu NICs: each GPU has one of its own",
			m->n_gpu, m->n_nic);
	node_emit(c, &f);
}

void node_gpu_nic_balance(struct node_run *c)
{
	struct node *n = c->n;
	if (!has_pairs(c))
		return;
	if (node_count_role(n, NODE_ROLE_COMPUTE) > NODE_MAX_GPUS) {
		node_skip(c, "not available: more NICs than there can be GPUs");
		return;
	}
	size_t *gpu = calloc(n->n_dev, sizeof(*gpu)), *nic = calloc(n->n_dev, sizeof(*nic));
	enum topo_path *best = calloc(n->n_dev, sizeof(*best));
	int *taken = calloc(n->n_dev, sizeof(*taken));
	bool *seen = calloc(n->n_dev, sizeof(*seen));
	struct matching m = {
		.n = n, .gpu = gpu, .nic = nic, .best = best, .taken = taken, .seen = seen};
	if (gpu && nic && best && taken && seen) {
		for (size_t i = 0; i < n->n_dev; i++) {
			if (n->dev[i].gpu >= 0)
				gpu[m.n_gpu++] = i;
			else if (n->dev[i].role == NODE_ROLE_COMPUTE)
				nic[m.n_nic++] = i;
			taken[i] = -1;
		}
		if (m.n_nic > 0)
			judge_balance(c, &m, best);
	}
	free(gpu);
	free(nic);
	free(best);
	free(taken);
	free(seen);
}

/* ---- NUMA ------------------------------------------------------------------------------------ */

static size_t nodes_with_cpus(const struct topo *t)
{
	size_t k = 0;
	for (size_t i = 0; i < t->n_numa; i++)
		k += node_own_memory(t, i);
	return k;
}

void node_numa_dev_node(struct node_run *c)
{
	struct node *n = c->n;
	size_t before = c->findings, nodes = nodes_with_cpus(n->t);
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		int64_t v;
		if (d->pci < 0 || (d->gpu < 0 && d->rdma < 0) || !d->function)
			continue;
		struct fb_finding f = node_finding(c, d->subject);
		if (node_read_i64(n, &f, &v, "/sys/bus/pci/devices/%s/numa_node",
			    n->t->pci[d->pci].bdf)) {
			const struct expect_dev *x =
				node_expect_find(&n->expect, n->t->pci[d->pci].bdf);
			bool lost = v < 0 && nodes > 1, moved = x && x->numa >= 0 && v != x->numa;
			fb_find(&f,
				moved  ? FB_CHECK_FAIL
				: lost ? FB_CHECK_WARN
				       : FB_CHECK_PASS,
				"%lld%s", (long long)v,
				v < 0 && nodes <= 1 ? ": there is only one" : "");
			if (moved)
				fb_find_expected(&f, n->expect.path, "%d", x->numa);
			else
				fb_find_expected(&f,
					"placement needs it; some libraries crash on -1",
					"a node of its own");
		}
		node_emit(c, &f);
	}
	if (c->findings == before)
		node_skip(c, "not available: no GPU and no RDMA device on a PCI bus here");
}

void node_numa_per_socket(struct node_run *c)
{
	const struct topo *t = c->n->t;
	size_t nodes = nodes_with_cpus(t);
	struct fb_finding f = node_finding(c, NULL);
	fb_find_read(&f, "/sys/devices/system/node, /sys/devices/system/cpu/cpu*/topology");
	if (t->n_packages == 0 || nodes == 0) {
		node_skip(c, "not recorded: neither sockets nor NUMA nodes");
		return;
	}
	double per = (double)nodes / (double)t->n_packages;
	const char *model = t->packages[0].model ? t->packages[0].model : "";
	/* Rome, Milan and Genoa are the EPYC 7xx2, 7xx3 and 9xx4. */
	const char *epyc = strstr(model, "EPYC ");
	bool milan = epyc && (epyc[5] == '7' || epyc[5] == '9') && strlen(epyc + 5) >= 4 &&
		     strchr("234", epyc[8]);
	int want = c->n->expect.numa_per_socket;
	if (want >= 0) {
		fb_find(&f, per == want ? FB_CHECK_PASS : FB_CHECK_WARN, "%.3g NUMA nodes a socket",
			per);
		fb_find_expected(&f, c->n->expect.path, "%d", want);
	} else if (milan && per == 1) {
		fb_find(&f, FB_CHECK_INFO,
			"one NUMA node a socket (NPS1): more of them bring memory nearer to NICs");
	} else {
		fb_find(&f, FB_CHECK_PASS, "%.3g NUMA nodes a socket, %zu sockets", per,
			t->n_packages);
	}
	node_emit(c, &f);
}

struct share {
	unsigned least, most, total, with; /* over sockets; with: that have any */
};

/* How GPUs or compute NICs are spread over sockets. */
static struct share spread(const struct node *n, bool gpus)
{
	const struct topo *t = n->t;
	struct share s = {.least = ~0u};
	for (size_t p = 0; p < t->n_packages; p++) {
		unsigned k = 0;
		for (size_t i = 0; i < n->n_dev; i++) {
			const struct node_dev *d = &n->dev[i];
			const struct topo_numa *numa =
				d->pci >= 0 ? topo_find_numa(t, t->pci[d->pci].numa) : NULL;
			k += (gpus ? d->gpu >= 0 : d->role == NODE_ROLE_COMPUTE) && numa &&
			     numa->package == (int)p;
		}
		s.total += k;
		s.with += k > 0;
		s.least = k < s.least ? k : s.least;
		s.most = k > s.most ? k : s.most;
	}
	return s;
}

static void judge_spread(struct node_run *c, bool gpus)
{
	struct share s = spread(c->n, gpus);
	struct fb_finding f = node_finding(c, gpus ? "GPUs" : "compute NICs");
	if (s.total < 2 || c->n->t->n_packages < 2)
		return;
	/* All on one socket is a way to build small nodes; 6 and 2 is none. */
	bool skew = s.with == c->n->t->n_packages && s.most >= s.least + 2;
	fb_find(&f, skew ? FB_CHECK_WARN : FB_CHECK_PASS, "%u, between %u and %u a socket", s.total,
		s.least, s.most);
	fb_find_read(&f, "numa_node of each");
	fb_find_expected(&f, "sockets share the work", "as many on each socket");
	node_emit(c, &f);
}

static void judge_memory(struct node_run *c)
{
	const struct topo *t = c->n->t;
	uint64_t least = UINT64_MAX, most = 0;
	size_t told = 0;
	struct fb_finding f = node_finding(c, "memory");
	fb_find_read(&f, "/sys/devices/system/node/node*/meminfo");
	fb_find_expected(&f, "memory bandwidth of each node", "as much on each node");
	for (size_t i = 0; i < t->n_numa; i++) {
		if (!node_own_memory(t, i))
			continue;
		told += t->numa[i].memory > 0;
		least = t->numa[i].memory < least ? t->numa[i].memory : least;
		most = t->numa[i].memory > most ? t->numa[i].memory : most;
	}
	if (told == 0) {
		fb_find(&f, FB_CHECK_SKIP, "%s",
			c->n->live ? "not available: no node tells its memory" : "not recorded");
	} else if (least == 0) {
		fb_find(&f, FB_CHECK_WARN, "a NUMA node with CPUs has no memory");
	} else {
		bool skew = (double)least < 0.9 * (double)most;
		fb_find(&f, skew ? FB_CHECK_WARN : FB_CHECK_PASS, "%.1f to %.1f GiB on %zu nodes",
			(double)least / (1u << 30), (double)most / (1u << 30), told);
	}
	node_emit(c, &f);
}

void node_numa_unbalanced(struct node_run *c)
{
	if (nodes_with_cpus(c->n->t) < 2) {
		node_skip(c, "not available: %s",
			c->n->t->n_numa ? "there is one NUMA node only" : "no NUMA node is told");
		return;
	}
	judge_spread(c, true);
	judge_spread(c, false);
	judge_memory(c);
}

void node_numa_balancing(struct node_run *c)
{
	int64_t v;
	struct fb_finding f = node_finding(c, NULL);
	if (node_read_i64(c->n, &f, &v, "/proc/sys/kernel/numa_balancing")) {
		bool single = nodes_with_cpus(c->n->t) < 2;
		fb_find(&f, v && !single ? FB_CHECK_WARN : FB_CHECK_PASS, "%lld%s", (long long)v,
			v && single ? ": there is one NUMA node only" : "");
		fb_find_expected(&f, "it moves pages that a job has placed", "0");
	}
	node_emit(c, &f);
}
