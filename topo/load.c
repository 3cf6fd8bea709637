// SPDX-License-Identifier: Apache-2.0
/*
 * topo_load(): the order of discovery, and the limits beyond which a tree is refused before any
 * library walks it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

/** Refuse trees in which one file or folder name would make hwloc allocate without bound. */
static int check_cpu_limits(const struct fb_sysroot *r, struct fb_err *e)
{
	static const char *const lists[] = {
		"/sys/devices/system/cpu/online",
		"/sys/devices/system/cpu/possible",
		"/sys/devices/system/cpu/present",
		"/sys/devices/system/node/online",
		"/sys/devices/system/node/possible",
	};
	char buf[8192];
	char **names;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (fb_sysroot_read(r, lists[i], buf, sizeof(buf)) <= 0)
			continue;
		for (char *s = buf; *s;) {
			if (*s < '0' || *s > '9') {
				s++;
				continue;
			}
			char *end;
			unsigned long v = strtoul(s, &end, 10);

			if (v > TOPO_MAX_CPU)
				return fb_fail(e, FB_EXIT_USAGE, EFBIG,
					"%s names CPU or node %lu; no machine has more than %d",
					lists[i], v, TOPO_MAX_CPU);
			s = end;
		}
	}
	int n = fb_sysroot_list(r, "/sys/devices/system/cpu", &names);

	if (n < 0)
		return 0;
	for (int i = 0; i < n; i++) {
		char *end;

		if (strncmp(names[i], "cpu", 3) != 0)
			continue;
		unsigned long v = strtoul(names[i] + 3, &end, 10);

		if (end != names[i] + 3 && !*end && v > TOPO_MAX_CPU) {
			fb_fail(e, FB_EXIT_USAGE, EFBIG,
				"/sys/devices/system/cpu/%.40s: no machine has more than %d CPUs",
				names[i], TOPO_MAX_CPU);
			fb_sysroot_names_free(names);
			return -EFBIG;
		}
	}
	fb_sysroot_names_free(names);
	return 0;
}

/** hwloc follows links by itself, out of the tree if they lead there: such trees it must not see.
 */
static int check_inside(const struct fb_sysroot *r, struct fb_err *e)
{
	static const char *const folders[] = {"/sys/devices/system/cpu", "/sys/devices/system/node",
		"/sys/bus/pci/devices", "/sys/class/net", "/sys/class/infiniband", "/proc"};

	for (size_t i = 0; r->dir && i < sizeof(folders) / sizeof(*folders); i++) {
		char path[4096], *real;
		size_t n = strlen(r->dir);

		if (snprintf(path, sizeof(path), "%s%s", r->dir, folders[i]) >= (int)sizeof(path))
			return fb_fail(e, FB_EXIT_USAGE, ENAMETOOLONG, "%s: path too long", r->dir);
		real = realpath(path, NULL);
		bool inside = !real || (strncmp(real, r->dir, n) == 0 && real[n] == '/');

		free(real);
		if (!inside)
			return fb_fail(e, FB_EXIT_USAGE, EXDEV,
				"%s is a link that leads out of the recorded tree", path);
	}
	return 0;
}

static bool records_a_machine(const struct fb_sysroot *r)
{
	return fb_sysroot_exists(r, "/sys/devices/system/cpu") ||
	       fb_sysroot_exists(r, "/sys/bus/pci/devices") ||
	       fb_sysroot_exists(r, "/sys/class/net") ||
	       fb_sysroot_exists(r, "/sys/class/infiniband");
}

static bool runs_under_hypervisor(const struct fb_sysroot *r)
{
	char buf[8192];

	return fb_sysroot_read(r, "/proc/cpuinfo", buf, sizeof(buf)) > 0 &&
	       strstr(buf, " hypervisor") != NULL;
}

int topo_load(const struct fb_sysroot *r, struct topo **out, struct fb_err *e)
{
	*out = NULL;
	if (r->dir && fb_sysroot_exists(r, "/hwloc-cpuid-info")) {
		fb_fail(e, FB_EXIT_USAGE, ENOENT,
			"%s holds dumps of CPUID (hwloc-gather-cpuid), which record processors and no "
			"device, NUMA distance or link",
			r->temp ? "the tar file" : r->dir);
		fb_hint(e, "record the whole node: hwloc-gather-topology NAME");
		return -ENOENT;
	}
	if (r->dir && !records_a_machine(r)) {
		fb_fail(e, FB_EXIT_USAGE, ENOENT,
			"%s records no machine: it has none of /sys/devices/system/cpu, "
			"/sys/bus/pci/devices, /sys/class/net, /sys/class/infiniband",
			r->temp ? "the tar file" : r->dir);
		fb_hint(e,
			"name the folder that holds sys/ and proc/, such as hwloc-gather-topology makes");
		return -ENOENT;
	}
	int rc = check_inside(r, e);

	if (!rc)
		rc = check_cpu_limits(r, e);

	if (rc)
		return rc;
	struct topo *t = calloc(1, sizeof(*t));

	if (!t)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the topology");
	t->live = fb_sysroot_is_live(r);
	t->source = t->live ? TOPO_FROM_LIVE : TOPO_FROM_SYSROOT;
	t->allowed = t->live ? topo_allowed_cpus() : NULL;
	t->virtual_machine = runs_under_hypervisor(r);
	/* A bare root without /sys still has CPUs: hwloc asks the kernel for them. */
	if (!records_a_machine(r))
		topo_warn(t,
			"/sys is not mounted here: devices and NUMA nodes cannot be seen (mount -t "
			"sysfs sysfs /sys)");
	rc = topo_read_cpus(t, r, e);
	if (!rc)
		rc = topo_read_pci(t, r, e);
	if (!rc)
		rc = topo_read_net(t, r, e);
	if (!rc)
		rc = topo_read_rdma(t, r, e);
	if (!rc && topo_stand_ins()) {
		topo_warn(t, "FABRICBENCH_STAND_INS: emulated devices stand for GPUs and NICs");
		for (size_t i = 0; i < t->n_rdma; i++)
			t->rdma[i].soft = t->rdma[i].soft && t->rdma[i].pci < 0;
	}
	if (rc) {
		topo_free(t);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, rc, "topology discovery failed: %s", strerror(-rc));
	}
	*out = t;
	return 0;
}
