// SPDX-License-Identifier: Apache-2.0
/*
 * The PCI tree, from sysfs alone: every function with its bridge, driver, link and locality. Also
 * the GPUs, which are PCI functions of a display or accelerator class and a GPU maker's vendor.
 *
 * A function's place is its resolved path (.../pci0000:00/0000:00:01.0/0000:01:00.0): the address
 * before it is its bridge. Trees that keep bare folders in /sys/bus/pci/devices tell no bridges.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/topo_priv.h"

#define MAX_DEPTH 64 /* bridges above a function; real machines have under 10 */

/* ---- addresses ------------------------------------------------------------------------------- */

static size_t hex_run(const char *s)
{
	return strspn(s, "0123456789abcdefABCDEF");
}

size_t topo_bdf_len(const char *s)
{
	size_t domain = hex_run(s);

	if (domain < 4 || domain > 8 || s[domain] != ':')
		return 0;
	const char *p = s + domain + 1;

	if (hex_run(p) != 2 || p[2] != ':' || hex_run(p + 3) != 2 || p[5] != '.')
		return 0;
	p += 6;
	if (*p < '0' || *p > '7' || (p[1] && p[1] != '/'))
		return 0;
	return (size_t)(p + 1 - s);
}

bool topo_last_bdf(const char *path, char *bdf, size_t len)
{
	bool found = false;

	for (const char *p = path; (p = strchr(p, '/')); p++) {
		size_t n = topo_bdf_len(p + 1);

		if (n && n < len) {
			memcpy(bdf, p + 1, n);
			bdf[n] = '\0';
			found = true;
		}
	}
	return found;
}

static uint64_t bdf_key(const char *s)
{
	unsigned domain = 0, bus = 0, dev = 0, fn = 0;

	if (sscanf(s, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) != 4)
		return UINT64_MAX;
	return (uint64_t)domain << 16 | (bus & 0xff) << 8 | (dev & 0x1f) << 3 | (fn & 7);
}

static int compare_bdf(const void *a, const void *b)
{
	uint64_t x = bdf_key(*(char *const *)a), y = bdf_key(*(char *const *)b);

	return (x > y) - (x < y);
}

int topo_find_pci(const struct topo *t, const char *bdf)
{
	uint64_t key = bdf_key(bdf);
	size_t lo = 0, hi = t->n_pci;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t k = bdf_key(t->pci[mid].bdf);

		if (k == key)
			return (int)mid;
		if (k < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return TOPO_UNKNOWN;
}

void topo_link_name(const struct fb_sysroot *r, const char *path, char *buf, size_t len)
{
	char real[TOPO_PATH_LEN], raw[TOPO_PATH_LEN], host[TOPO_PATH_LEN];
	const char *target = NULL;

	buf[0] = '\0';
	if (fb_sysroot_realpath(r, path, real, sizeof(real)) == 0) {
		target = real;
	} else {
		/* Recordings keep the link to a driver whose folder they leave out. */
		char dir[TOPO_PATH_LEN];
		const char *slash = strrchr(path, '/');

		topo_copy(dir, sizeof(dir), path);
		if (!slash || (size_t)(slash - path) >= sizeof(dir))
			return;
		dir[slash - path] = '\0';
		if (fb_sysroot_path(r, dir, host, sizeof(host)) != 0)
			return;
		size_t n = strlen(host);

		if (snprintf(host + n, sizeof(host) - n, "%s", slash) >= (int)(sizeof(host) - n))
			return;
		ssize_t k = readlink(host, raw, sizeof(raw) - 1);

		if (k <= 0)
			return;
		raw[k] = '\0';
		target = raw;
	}
	const char *base = strrchr(target, '/');

	topo_copy(buf, len, base ? base + 1 : target);
}

/* ---- one function ---------------------------------------------------------------------------- */

static uint32_t read_hex(const struct fb_sysroot *r, const char *dir, const char *file)
{
	int64_t v;

	if (fb_sysroot_read_i64(r, &v, "%s/%s", dir, file) != 0 || v < 0 || v > 0xffffff)
		return 0;
	return (uint32_t)v;
}

/** "16.0 GT/s PCIe", "8 GT/s"; "Unknown" is 0. */
static double read_gts(const struct fb_sysroot *r, const char *dir, const char *file)
{
	char buf[64];
	double v;

	if (fb_sysroot_readf(r, buf, sizeof(buf), "%s/%s", dir, file) <= 0)
		return 0;
	char *end;

	v = strtod(buf, &end);
	return end != buf && v > 0 && v < 1000 && strncmp(end, " GT/s", 5) == 0 ? v : 0;
}

/** Lanes; 0 and 255 are how the kernel and some bridges say that they do not know. */
static unsigned read_width(const struct fb_sysroot *r, const char *dir, const char *file)
{
	int64_t v;

	if (fb_sysroot_read_i64(r, &v, "%s/%s", dir, file) != 0 || v < 1 || v > 32)
		return 0;
	return (unsigned)v;
}

static void read_ids(const struct fb_sysroot *r, const char *dir, struct topo_pci *p)
{
	unsigned char cfg[64];

	p->class_code = read_hex(r, dir, "class");
	p->vendor = (uint16_t)read_hex(r, dir, "vendor");
	p->device = (uint16_t)read_hex(r, dir, "device");
	if (!p->vendor && fb_sysroot_readf(r, (char *)cfg, sizeof(cfg), "%s/config", dir) >= 12) {
		p->vendor = (uint16_t)(cfg[0] | cfg[1] << 8);
		p->device = (uint16_t)(cfg[2] | cfg[3] << 8);
		if (!p->class_code)
			p->class_code = (uint32_t)(cfg[9] | cfg[10] << 8 | cfg[11] << 16);
	}
	p->bridge = p->class_code >> 8 == 0x0604;
}

static void read_place(const char *real, const char *bdf, struct topo_pci *p, char *parent)
{
	const char *own = NULL, *before = NULL, *root = strstr(real, "/pci");

	parent[0] = '\0';
	for (const char *s = real; (s = strchr(s, '/')); s++)
		if (topo_bdf_len(s + 1)) {
			before = own;
			own = s + 1;
		}
	if (before) {
		size_t n = topo_bdf_len(before);

		memcpy(parent, before, n);
		parent[n] = '\0';
	}
	/* "/pci0000:00/": the root bus. A VMD's inner root (pci10000:00) comes later in the path.
	 */
	if (root && own && root < own && hex_run(root + 4) >= 4) {
		size_t n = strcspn(root + 4, "/");

		if (n < sizeof(p->root)) {
			memcpy(p->root, root + 4, n);
			p->root[n] = '\0';
		}
	}
}

static int read_function(struct topo *t, const struct fb_sysroot *r, const char *bdf, char *parent)
{
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN], file[TOPO_PATH_LEN + 32];
	int64_t numa;
	struct topo_pci *p = topo_grow((void **)&t->pci, &t->n_pci, sizeof(*p));

	if (!p)
		return -ENOMEM;
	topo_copy(p->bdf, sizeof(p->bdf), bdf);
	p->parent = p->physfn = p->numa = TOPO_UNKNOWN;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", bdf);
	if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0) {
		topo_warn(t, "%s: its folder is missing in this tree", bdf);
		return 0;
	}
	read_place(real, bdf, p, parent);
	read_ids(r, real, p);
	p->link.now_gts = read_gts(r, real, "current_link_speed");
	p->link.max_gts = read_gts(r, real, "max_link_speed");
	p->link.now_width = read_width(r, real, "current_link_width");
	p->link.max_width = read_width(r, real, "max_link_width");
	snprintf(file, sizeof(file), "%s/driver", real);
	topo_link_name(r, file, p->driver, sizeof(p->driver));
	if (fb_sysroot_read_i64(r, &numa, "%s/numa_node", real) == 0 && numa >= 0) {
		if (t->n_numa == 0 || topo_find_numa(t, (int)numa))
			p->numa = (int)numa;
		else
			topo_warn(t, "%s: numa_node %lld does not exist", bdf, (long long)numa);
	}
	return 0;
}

/* ---- locality -------------------------------------------------------------------------------- */

static char *read_cpus(const struct fb_sysroot *r, const char *bdf)
{
	char buf[8192], *list = NULL;
	hwloc_bitmap_t set;

	if (fb_sysroot_readf(r, buf, sizeof(buf), "/sys/bus/pci/devices/%s/local_cpulist", bdf) > 0)
		return topo_cpulist_sane(buf) ? strdup(buf) : NULL;
	if (fb_sysroot_readf(r, buf, sizeof(buf), "/sys/bus/pci/devices/%s/local_cpus", bdf) <= 0)
		return NULL;
	/* An old kernel's mask: 32-bit words from the highest, separated by commas. */
	char mask[2 * sizeof(buf)];
	size_t k = 0;

	for (const char *s = buf; *s && k + 4 < sizeof(mask);) {
		size_t n = hex_run(s);

		if (n == 0 || n > 8)
			return NULL;
		k += (size_t)snprintf(
			mask + k, sizeof(mask) - k, "%s0x%.*s", k ? "," : "", (int)n, s);
		s += n + (s[n] == ',');
	}
	set = hwloc_bitmap_alloc();
	if (set && hwloc_bitmap_sscanf(set, mask) == 0 && !hwloc_bitmap_iszero(set) &&
		hwloc_bitmap_list_asprintf(&list, set) < 0)
		list = NULL;
	hwloc_bitmap_free(set);
	return list;
}

static bool is_whole_machine(const struct topo *t, const char *list)
{
	bool whole = true;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (t->hwloc && set && topo_cpulist_sane(list) && hwloc_bitmap_list_sscanf(set, list) == 0)
		whole = hwloc_bitmap_isincluded(hwloc_get_root_obj(t->hwloc)->complete_cpuset, set);
	hwloc_bitmap_free(set);
	return whole;
}

/**
 * Where a function belongs, most trusted first: its own numa_node, a bridge's above it, the node
 * whose CPUs are the function's local CPUs, hwloc's view, the machine's only node.
 */
static int place(struct topo *t, const struct fb_sysroot *r, struct topo_pci *p)
{
	char *seen = NULL;
	int up = p->parent;

	for (int depth = 0; p->numa < 0 && up >= 0 && depth < MAX_DEPTH; depth++) {
		p->numa = t->pci[up].numa;
		up = t->pci[up].parent;
	}
	p->cpus = read_cpus(r, p->bdf);
	/* All CPUs of a machine of several nodes says only that the firmware did not tell. */
	if (p->cpus && t->n_numa > 1 && is_whole_machine(t, p->cpus)) {
		free(p->cpus);
		p->cpus = NULL;
	}
	if (p->numa < 0 && p->cpus && t->n_numa > 1)
		p->numa = topo_numa_of_cpus(t, p->cpus);
	/* Whoever sets this variable corrects the firmware: it beats what the firmware said. */
	if (t->n_numa > 1 && (p->numa < 0 || getenv("HWLOC_PCI_LOCALITY"))) {
		int numa = topo_hwloc_locality(t, p->bdf, &seen);

		if (seen || numa >= 0)
			p->numa = numa;
	}
	if (p->numa < 0 && t->n_numa == 1)
		p->numa = t->numa[0].os_index;
	if (seen) {
		free(p->cpus);
		p->cpus = seen;
	}
	const struct topo_numa *node = topo_find_numa(t, p->numa);

	if (!p->cpus && node && *node->cpus && !(p->cpus = strdup(node->cpus)))
		return -ENOMEM;
	return 0;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

bool topo_is_gpu(const struct topo_pci *p)
{
	unsigned cls = p->class_code >> 8;

	/* VGA, 3D, other display; processing accelerators (MI300X). A BMC's VGA (ASPEED) is none.
	 */
	if (cls != 0x0300 && cls != 0x0302 && cls != 0x0380 && cls != 0x1200)
		return false;
	return p->vendor == 0x10de || p->vendor == 0x1002 || p->vendor == 0x8086 ||
	       (p->vendor == 0x1234 && topo_stand_ins());
}

bool topo_stand_ins(void)
{
	const char *v = getenv("FABRICBENCH_STAND_INS");

	return v && strcmp(v, "1") == 0;
}

static int read_gpus(struct topo *t, const struct fb_sysroot *r)
{
	char buf[4096];

	for (size_t i = 0; i < t->n_pci; i++) {
		struct topo_pci *p = &t->pci[i];
		int n = fb_sysroot_readf(
			r, buf, sizeof(buf), "/proc/driver/nvidia/gpus/%s/information", p->bdf);

		/* Some recordings keep a function's class alone: the driver's list knows the maker.
		 */
		if (!p->vendor && p->class_code >> 16 == 0x03 &&
			fb_sysroot_exists(r, "/proc/driver/nvidia/gpus/%s", p->bdf))
			p->vendor = 0x10de;
		if (!topo_is_gpu(p))
			continue;
		struct topo_gpu *g = topo_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g));

		if (!g)
			return -ENOMEM;
		snprintf(g->name, sizeof(g->name), "GPU%zu", t->n_gpus - 1);
		g->pci = (int)i;
		char *model = n > 0 ? strstr(buf, "Model:") : NULL;

		if (model) {
			model += strlen("Model:");
			model += strspn(model, " \t");
			model[strcspn(model, "\n")] = '\0';
			g->model = strdup(model);
		}
	}
	return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/** Parents from addresses. A tree whose links make a function its own ancestor loses that link. */
static void join_parents(struct topo *t, char (*parents)[24])
{
	for (size_t i = 0; i < t->n_pci; i++)
		if (parents[i][0]) {
			t->pci[i].parent = topo_find_pci(t, parents[i]);
			if (t->pci[i].parent == (int)i)
				t->pci[i].parent = TOPO_UNKNOWN;
		}
	for (size_t i = 0; i < t->n_pci; i++) {
		int up = (int)i, depth = 0;

		while (up >= 0 && depth <= MAX_DEPTH) {
			up = t->pci[up].parent;
			depth++;
		}
		if (up >= 0) {
			topo_warn(t, "%s: its bridges go in a circle or too deep", t->pci[i].bdf);
			t->pci[i].parent = TOPO_UNKNOWN;
			t->pci[i].root[0] = '\0';
		}
	}
}

static void join_physfn(struct topo *t, const struct fb_sysroot *r)
{
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN], bdf[24];

	for (size_t i = 0; i < t->n_pci; i++) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/physfn", t->pci[i].bdf);
		if (fb_sysroot_realpath(r, path, real, sizeof(real)) == 0 &&
			topo_last_bdf(real, bdf, sizeof(bdf)))
			t->pci[i].physfn = topo_find_pci(t, bdf);
	}
}

int topo_read_pci(struct topo *t, const struct fb_sysroot *r, struct fb_err *e)
{
	char **names, (*parents)[24];
	int n = fb_sysroot_list(r, "/sys/bus/pci/devices", &names), rc = 0;

	if (n == -ENOENT || n == -ENOTDIR) {
		topo_warn(t, "no /sys/bus/pci/devices: no PCI bus, or it is not visible from here");
		return 0;
	}
	if (n < 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, n, "cannot list /sys/bus/pci/devices: %s",
			strerror(-n));
	parents = calloc((size_t)n + 1, sizeof(*parents));
	if (!parents || n > TOPO_MAX_PCI) {
		rc = parents ? fb_fail(e, FB_EXIT_USAGE, EFBIG,
				       "%d PCI functions: no machine has more than %d", n,
				       TOPO_MAX_PCI)
			     : -ENOMEM;
		goto free_names;
	}
	qsort(names, (size_t)n, sizeof(*names), compare_bdf);
	for (int i = 0; i < n && !rc; i++) {
		size_t len = topo_bdf_len(names[i]);

		if (len && !names[i][len] && len < sizeof(t->pci->bdf))
			rc = read_function(t, r, names[i], parents[t->n_pci]);
		else
			topo_warn(t, "/sys/bus/pci/devices/%.60s is not a PCI address", names[i]);
	}
	if (!rc) {
		join_parents(t, parents);
		join_physfn(t, r);
	}
	for (size_t i = 0; i < t->n_pci && !rc; i++)
		rc = place(t, r, &t->pci[i]);
	if (!rc)
		rc = read_gpus(t, r);
free_names:
	free(parents);
	fb_sysroot_names_free(names);
	return rc;
}
