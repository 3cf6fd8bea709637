// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU side, through hwloc: packages, NUMA nodes, memory, distances. hwloc's I/O objects are
 * kept too, for the XML export and as second opinion on where a PCI function hangs.
 *
 * hwloc 2 takes a recorded tree only from the environment (HWLOC_FSROOT), hence the guard below.
 * Its I/O objects have no cpuset of their own, and what they hang from may be a package, a group or
 * a cache: only that ancestor's cpuset counts, never its type.
 */
#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

/* ---- hwloc's environment --------------------------------------------------------------------- */

void topo_env_enter(struct topo_env *g, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *old = getenv(g[i].name);

		g[i].old = old ? strdup(old) : NULL;
		if (g[i].value)
			setenv(g[i].name, g[i].value, 1);
		else
			unsetenv(g[i].name);
	}
}

void topo_env_leave(struct topo_env *g, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (g[i].old)
			setenv(g[i].name, g[i].old, 1);
		else
			unsetenv(g[i].name);
		free(g[i].old);
	}
}

static int load_hwloc(struct topo *t, const struct fb_sysroot *r, struct fb_err *e)
{
	/* HIDE_ERRORS 2: what hwloc says on stderr of 32-bit PCI domains and of a missing /sys, we
	 * say. The others are for recorded trees only. */
	struct topo_env guards[] = {
		{"HWLOC_HIDE_ERRORS", "2", NULL},
		{"HWLOC_FSROOT", r->dir, NULL},
		{"HWLOC_COMPONENTS", "linux,stop", NULL},
		{"HWLOC_THISSYSTEM", NULL, NULL},
		{"HWLOC_XMLFILE", NULL, NULL},
		{"HWLOC_SYNTHETIC", NULL, NULL},
		{"HWLOC_CPUID_PATH", NULL, NULL},
		{"HWLOC_DUMPED_HWDATA_DIR", NULL, NULL},
	};
	bool sysfs = fb_sysroot_exists(r, "/sys/devices/system/cpu");
	size_t n_guards = r->dir ? sizeof(guards) / sizeof(*guards) : sysfs ? 0 : 1;
	hwloc_topology_t hw = NULL;
	int rc = 0;

	topo_env_enter(guards, n_guards);
	if (hwloc_topology_init(&hw) != 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, errno ? errno : ENOMEM,
			"hwloc_topology_init: %s", strerror(errno));
		goto leave_env;
	}
	/* Those would load GPU drivers or ask an X server; "pci" would read what sysfs tells. */
	if (!r->dir) {
		hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
		hwloc_topology_set_components(
			hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "opencl");
		hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
	}
	hwloc_topology_set_io_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	hwloc_topology_set_flags(hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (hwloc_topology_load(hw) != 0) {
		int err = errno ? errno : EINVAL;

		hwloc_topology_destroy(hw);
		rc = fb_fail(e, FB_EXIT_UNMEASURED, err, "hwloc cannot read %s: %s",
			r->dir ? r->dir : "this machine", strerror(err));
		goto leave_env;
	}
	t->hwloc = hw;
leave_env:
	topo_env_leave(guards, n_guards);
	return rc;
}

/* ---- into the model -------------------------------------------------------------------------- */

static char *cpulist(hwloc_const_cpuset_t set)
{
	char *s = NULL;

	if (!set)
		return strdup("");
	return hwloc_bitmap_list_asprintf(&s, set) < 0 ? NULL : s;
}

static unsigned count_below(hwloc_topology_t hw, hwloc_const_cpuset_t set, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_inside_cpuset_by_type(hw, set, type);

	return n > 0 ? (unsigned)n : 0;
}

static int read_packages(struct topo *t)
{
	hwloc_topology_t hw = t->hwloc;
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_PACKAGE, obj))) {
		struct topo_package *p =
			topo_grow((void **)&t->packages, &t->n_packages, sizeof(*p));

		if (!p)
			return -ENOMEM;
		const char *model = hwloc_obj_get_info_by_name(obj, "CPUModel");

		if (!model)
			model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(hw), "CPUModel");
		p->os_index =
			obj->os_index == HWLOC_UNKNOWN_INDEX ? obj->logical_index : obj->os_index;
		p->cpus = cpulist(obj->cpuset);
		p->model = model ? strdup(model) : NULL;
		p->cores = count_below(hw, obj->cpuset, HWLOC_OBJ_CORE);
		p->pus = count_below(hw, obj->cpuset, HWLOC_OBJ_PU);
		if (!p->cpus || (model && !p->model))
			return -ENOMEM;
	}
	return 0;
}

/** The package that holds all of a node's CPUs. Many nodes may lie in one package, and a node may
 * span packages. */
static int package_of(hwloc_topology_t hw, hwloc_obj_t node)
{
	hwloc_obj_t pkg = NULL;

	if (!node->cpuset || hwloc_bitmap_iszero(node->cpuset))
		return TOPO_UNKNOWN;
	while ((pkg = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_PACKAGE, pkg)))
		if (hwloc_bitmap_isincluded(node->cpuset, pkg->cpuset))
			return (int)pkg->logical_index;
	return TOPO_UNKNOWN;
}

static int compare_numa(const void *a, const void *b)
{
	const struct topo_numa *x = a, *y = b;

	return (x->os_index > y->os_index) - (x->os_index < y->os_index);
}

static int read_numa(struct topo *t)
{
	hwloc_topology_t hw = t->hwloc;
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_NUMANODE, obj))) {
		struct topo_numa *n = topo_grow((void **)&t->numa, &t->n_numa, sizeof(*n));

		if (!n)
			return -ENOMEM;
		n->os_index = obj->os_index == HWLOC_UNKNOWN_INDEX ? (int)obj->logical_index
								   : (int)obj->os_index;
		n->package = package_of(hw, obj);
		n->cpus = cpulist(obj->cpuset);
		n->memory = obj->attr->numanode.local_memory;
		n->kind = obj->subtype ? strdup(obj->subtype) : NULL;
		if (!n->cpus || (obj->subtype && !n->kind))
			return -ENOMEM;
		if (t->n_numa > TOPO_MAX_NUMA)
			return -EFBIG;
	}
	if (t->n_numa)
		qsort(t->numa, t->n_numa, sizeof(*t->numa), compare_numa);
	return 0;
}

static size_t numa_index(const struct topo *t, int os_index)
{
	for (size_t i = 0; i < t->n_numa; i++)
		if (t->numa[i].os_index == os_index)
			return i;
	return SIZE_MAX;
}

static int read_distances(struct topo *t)
{
	struct hwloc_distances_s *d = NULL;
	unsigned nr = 1;

	if (hwloc_distances_get_by_name(t->hwloc, "NUMALatency", &nr, &d, 0) != 0 || nr == 0 ||
		!d) {
		/* Files of hwloc 1 and of users give the matrix no name. */
		nr = 1;
		if (hwloc_distances_get_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, &nr, &d,
			    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
			nr == 0 || !d)
			return 0;
	}
	t->distance = calloc(t->n_numa * t->n_numa, sizeof(*t->distance));
	if (!t->distance) {
		hwloc_distances_release(t->hwloc, d);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < d->nbobjs; i++)
		for (unsigned j = 0; j < d->nbobjs; j++) {
			if (!d->objs[i] || !d->objs[j])
				continue;
			size_t a = numa_index(t, (int)d->objs[i]->os_index);
			size_t b = numa_index(t, (int)d->objs[j]->os_index);

			if (a != SIZE_MAX && b != SIZE_MAX)
				t->distance[a * t->n_numa + b] =
					(unsigned)d->values[i * d->nbobjs + j];
		}
	hwloc_distances_release(t->hwloc, d);
	return 0;
}

int topo_read_cpus(struct topo *t, const struct fb_sysroot *r, struct fb_err *e)
{
	struct fb_err why = {0};

	if (r->dir && !fb_sysroot_exists(r, "/sys/devices/system/cpu")) {
		topo_warn(t, "no /sys/devices/system/cpu in this tree: packages and NUMA nodes are "
			     "unknown");
		return 0;
	}
	int rc = load_hwloc(t, r, r->dir ? &why : e);

	/* A recording of half the CPU's files still tells where the devices hang. */
	if (rc && r->dir) {
		topo_warn(t, "%s: packages and NUMA nodes are unknown", why.msg);
		return 0;
	}
	return rc ? rc : topo_read_hwloc(t);
}

int topo_read_hwloc(struct topo *t)
{
	int rc = read_packages(t);

	if (!rc)
		rc = read_numa(t);
	if (!rc && t->n_numa > 1)
		rc = read_distances(t);
	if (!rc)
		rc = topo_read_memattrs(t);
	if (rc)
		return rc;
	t->cores = (unsigned)hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_CORE);
	t->pus = (unsigned)hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_PU);
	return 0;
}

/* ---- locality -------------------------------------------------------------------------------- */

static int numa_of_set(const struct topo *t, hwloc_const_cpuset_t set)
{
	hwloc_obj_t obj = NULL;
	int best = TOPO_UNKNOWN;

	if (hwloc_bitmap_iszero(set))
		return TOPO_UNKNOWN;
	while ((obj = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, obj))) {
		if (!hwloc_bitmap_isequal(obj->cpuset, set))
			continue;
		if (best == TOPO_UNKNOWN || (int)obj->os_index < best)
			best = (int)obj->os_index;
	}
	return best;
}

int topo_numa_of_cpus(const struct topo *t, const char *list)
{
	int numa = TOPO_UNKNOWN;

	if (!t->hwloc || !topo_cpulist_sane(list))
		return TOPO_UNKNOWN;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (set && hwloc_bitmap_list_sscanf(set, list) == 0)
		numa = numa_of_set(t, set);
	hwloc_bitmap_free(set);
	return numa;
}

int topo_hwloc_locality(const struct topo *t, const char *bdf, char **cpus)
{
	unsigned domain, bus, dev, fn;

	*cpus = NULL;
	if (!t->hwloc || sscanf(bdf, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) != 4)
		return TOPO_UNKNOWN;
	hwloc_obj_t obj = hwloc_get_pcidev_by_busid(t->hwloc, domain, bus, dev, fn);

	if (!obj)
		return TOPO_UNKNOWN;
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(t->hwloc, obj);

	/* The whole machine is what hwloc says when it does not know. */
	if (!near || (near->depth == 0 && t->n_numa > 1))
		return TOPO_UNKNOWN;
	*cpus = cpulist(near->cpuset);
	return numa_of_set(t, near->cpuset);
}

/* ---- export ---------------------------------------------------------------------------------- */

static bool names_somebody(const char *key)
{
	static const char *const keys[] = {"HostName", "Address", "NodeGUID", "SysImageGUID",
		"SerialNumber", "DMIProductSerial", "DMIProductUUID", "DMIBoardSerial",
		"DMIBoardAssetTag", "DMIChassisSerial", "DMIChassisAssetTag"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return strncmp(key, "Port", 4) == 0 && strstr(key, "GID");
}

/** hwloc 2 cannot remove an info, but its text may be overwritten in place. */
static void blind(hwloc_obj_t obj)
{
	for (unsigned i = 0; i < obj->infos_count; i++)
		if (names_somebody(obj->infos[i].name))
			memset(obj->infos[i].value, 'x', strlen(obj->infos[i].value));
	for (hwloc_obj_t c = obj->first_child; c; c = c->next_sibling)
		blind(c);
	for (hwloc_obj_t c = obj->memory_first_child; c; c = c->next_sibling)
		blind(c);
	for (hwloc_obj_t c = obj->io_first_child; c; c = c->next_sibling)
		blind(c);
	for (hwloc_obj_t c = obj->misc_first_child; c; c = c->next_sibling)
		blind(c);
}

/**
 * hwloc takes a function's IDs and link speed from its configuration space, which some recordings
 * leave out: without a vendor a GPU would come back from the XML as a mere display. What the model
 * knows from elsewhere is written into hwloc's objects.
 */
static void complete(struct topo *t)
{
	for (size_t i = 0; i < t->n_pci; i++) {
		const struct topo_pci *p = &t->pci[i];
		unsigned domain, bus, dev, fn;

		if (sscanf(p->bdf, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) != 4)
			continue;
		hwloc_obj_t obj = hwloc_get_pcidev_by_busid(t->hwloc, domain, bus, dev, fn);

		if (!obj)
			continue;
		struct hwloc_pcidev_attr_s *a = &obj->attr->pcidev;

		if (!a->vendor_id) {
			a->vendor_id = p->vendor;
			a->device_id = p->device;
		}
		if (!a->class_id)
			a->class_id = (unsigned short)(p->class_code >> 8);
		if (!(a->linkspeed > 0))
			a->linkspeed =
				(float)(topo_link_bandwidth(p->link.now_gts, p->link.now_width) /
					1e9);
	}
}

int topo_hwloc_xml(struct topo *t, bool anonymous, struct fb_strbuf *out, struct fb_err *e)
{
	char *xml = NULL;
	int len = 0;

	if (!t->hwloc)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENODATA,
			"no hwloc XML: this tree records no CPUs (/sys/devices/system/cpu)");
	complete(t);
	if (anonymous)
		blind(hwloc_get_root_obj(t->hwloc));
	if (hwloc_topology_export_xmlbuffer(t->hwloc, &xml, &len, 0) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, errno, "hwloc cannot write its XML: %s",
			strerror(errno));
	fb_strbuf_add(out, xml);
	hwloc_free_xmlbuffer(t->hwloc, xml);
	return out->failed ? fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the XML") : 0;
}
