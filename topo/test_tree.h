/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: recorded trees made on the spot, in a temporary folder. What they hold is
 * constructed: numbers, names and shapes are ours, the file formats are the kernel's.
 */
#ifndef TOPO_TEST_TREE_H
#define TOPO_TEST_TREE_H

#include <errno.h>
#include <stdint.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/err.h"

/* A temporary folder's path, and room for what goes below it. */
struct test_tree {
	char dir[64];
};

static inline void tree_fail(const char *what, const char *path)
{
	fprintf(stderr, "test tree: %s %s: %s\n", what, path, strerror(errno));
	abort();
}

static inline void tree_new(struct test_tree *tree)
{
	*tree = (struct test_tree){"/tmp/fabricbench-tree-XXXXXX"};
	if (!mkdtemp(tree->dir))
		tree_fail("mkdtemp", tree->dir);
}

static inline int tree_unlink(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void tree_remove(struct test_tree *tree)
{
	nftw(tree->dir, tree_unlink, 32, FTW_DEPTH | FTW_PHYS);
}

/** snprintf that ends the test when a path is cut. */
static inline void FB_PRINTF(3, 4) tree_join(char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(buf, len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= len)
		tree_fail("path too long", buf);
}

/** Make the folders above a path. */
static inline void tree_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			tree_fail("mkdir", path);
		*p = '/';
	}
}

static inline void tree_write(const struct test_tree *tree, const char *path, const char *text)
{
	char full[4096];

	tree_join(full, sizeof(full), "%s%s", tree->dir, path);
	FILE *f = fopen(full, "w");

	if (!f && errno == ENOENT) {
		tree_parents(full);
		f = fopen(full, "w");
	}
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		tree_fail("write", full);
}

/** A folder, a file name and a text. */
static inline void FB_PRINTF(4, 5) tree_file(
	const struct test_tree *tree, const char *folder, const char *name, const char *fmt, ...)
{
	char path[4096], text[8192];
	va_list ap;

	tree_join(path, sizeof(path), "%s/%s", folder, name);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tree_write(tree, path, text);
}

static inline void tree_mkdir(const struct test_tree *tree, const char *path)
{
	char full[4096];

	tree_join(full, sizeof(full), "%s%s/", tree->dir, path);
	tree_parents(full);
}

/** A link to a path of the tree, relative as the kernel's are: hwloc would follow an absolute one
 * out. */
static inline void tree_link(const struct test_tree *tree, const char *path, const char *target)
{
	char full[4096], up[1024] = "";

	for (const char *p = path + 1; (p = strchr(p, '/')); p++)
		strncat(up, "../", sizeof(up) - strlen(up) - 1);
	strncat(up, target + 1, sizeof(up) - strlen(up) - 1);
	tree_join(full, sizeof(full), "%s%s", tree->dir, path);
	if (symlink(up, full) == 0)
		return;
	tree_parents(full);
	if (symlink(up, full) != 0)
		tree_fail("symlink", full);
}

/* ---- parts of a machine ---------------------------------------------------------------------- */

/** `packages` packages of one NUMA node and `cores` one-thread cores each. */
static inline void tree_cpus(
	const struct test_tree *tree, int packages, int cores, const char *model, const char *flags)
{
	char path[256], dist[256] = "", info[8192] = "";
	const char *cpu = "/sys/devices/system/cpu", *node = "/sys/devices/system/node";

	tree_file(tree, cpu, "online", "0-%d\n", packages * cores - 1);
	tree_file(tree, cpu, "possible", "0-%d\n", packages * cores - 1);
	tree_file(tree, node, "online", packages > 1 ? "0-%d\n" : "%d\n", packages - 1);
	for (int p = 0; p < packages; p++) {
		unsigned mask = ((1u << cores) - 1) << (p * cores);

		dist[0] = '\0';
		for (int q = 0; q < packages; q++)
			snprintf(dist + strlen(dist), sizeof(dist) - strlen(dist), "%s%d",
				q ? " " : "", p == q ? 10 : 21);
		tree_join(path, sizeof(path), "%s/node%d", node, p);
		tree_file(tree, path, "cpumap", "%08x\n", mask);
		tree_file(tree, path, "distance", "%s\n", dist);
		tree_file(tree, path, "meminfo",
			"Node %d MemTotal:       67108864 kB\nNode %d MemFree:  1 kB\n", p, p);
		for (int c = p * cores; c < (p + 1) * cores; c++) {
			tree_join(path, sizeof(path), "%s/cpu%d/topology", cpu, c);
			tree_file(tree, path, "physical_package_id", "%d\n", p);
			tree_file(tree, path, "core_id", "%d\n", c - p * cores);
			tree_file(tree, path, "core_siblings", "%08x\n", mask);
			tree_file(tree, path, "thread_siblings", "%08x\n", 1u << c);
			snprintf(info + strlen(info), sizeof(info) - strlen(info),
				"processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: %s\n"
				"flags\t\t: fpu %s\n\n",
				c, model, flags);
		}
	}
	tree_file(tree, "/proc", "cpuinfo", "%s", info);
	tree_file(tree, "/proc", "meminfo", "MemTotal: %d kB\n", packages * 67108864);
}

struct tree_pci {
	const char *path; /* below /sys/devices: "pci0000:10/0000:10:01.0" */
	unsigned cls, vendor, device;
	int numa;              /* -2: no such file */
	const char *now, *max; /* "16.0 GT/s PCIe", NULL: no such file */
	int now_width, max_width;
	const char *driver;
};

static inline void tree_pci(const struct test_tree *tree, const struct tree_pci *p)
{
	char dir[512], link[256];
	const char *bdf = strrchr(p->path, '/') + 1;

	tree_join(dir, sizeof(dir), "/sys/devices/%s", p->path);
	tree_file(tree, dir, "class", "0x%06x\n", p->cls);
	tree_file(tree, dir, "vendor", "0x%04x\n", p->vendor);
	tree_file(tree, dir, "device", "0x%04x\n", p->device);
	if (p->numa > -2)
		tree_file(tree, dir, "numa_node", "%d\n", p->numa);
	if (p->now) {
		tree_file(tree, dir, "current_link_speed", "%s\n", p->now);
		tree_file(tree, dir, "current_link_width", "%d\n", p->now_width);
	}
	if (p->max) {
		tree_file(tree, dir, "max_link_speed", "%s\n", p->max);
		tree_file(tree, dir, "max_link_width", "%d\n", p->max_width);
	}
	if (p->driver) {
		char target[256];

		tree_join(target, sizeof(target), "/sys/bus/pci/drivers/%s", p->driver);
		tree_mkdir(tree, target);
		tree_join(link, sizeof(link), "%s/driver", dir);
		tree_link(tree, link, target);
	}
	tree_join(link, sizeof(link), "/sys/bus/pci/devices/%s", bdf);
	tree_join(dir, sizeof(dir), "/sys/devices/%s", p->path);
	tree_link(tree, link, dir);
}

/** An interface on a PCI function; parent NULL: virtual. speed in Mb/s. */
static inline void tree_netdev(
	const struct test_tree *tree, const char *name, const char *parent, int type, int speed)
{
	char dir[512], link[256], target[512];

	if (parent)
		tree_join(dir, sizeof(dir), "/sys/devices/%s/net/%s", parent, name);
	else
		tree_join(dir, sizeof(dir), "/sys/devices/virtual/net/%s", name);
	tree_file(tree, dir, "type", "%d\n", type);
	tree_file(tree, dir, "mtu", "%d\n", type == 32 ? 2044 : 9000);
	tree_file(tree, dir, "operstate", "up\n");
	tree_file(tree, dir, "speed", "%d\n", speed);
	tree_file(tree, dir, "dev_port", "0\n");
	tree_join(link, sizeof(link), "/sys/class/net/%s", name);
	tree_link(tree, link, dir);
	if (!parent)
		return;
	tree_join(target, sizeof(target), "/sys/devices/%s", parent);
	tree_join(link, sizeof(link), "%s/device", dir);
	tree_link(tree, link, target);
}

/** An RDMA device on a PCI function, or (parent NULL) a software one on the interface `on`. */
static inline void tree_rdma(const struct test_tree *tree, const char *name, const char *parent,
	const char *on, const char *node_type, const char *layer, const char *rate)
{
	char dir[512], link[300], target[512], port[600];

	if (parent)
		tree_join(dir, sizeof(dir), "/sys/devices/%s/infiniband/%s", parent, name);
	else
		tree_join(dir, sizeof(dir), "/sys/devices/virtual/infiniband/%s", name);
	tree_file(tree, dir, "node_type", "%s\n", node_type);
	tree_file(tree, dir, "fw_ver", "%s\n", parent ? "28.41.1000" : "");
	tree_join(port, sizeof(port), "%s/ports/1", dir);
	tree_file(tree, port, "state", "4: ACTIVE\n");
	tree_file(tree, port, "phys_state", "5: LinkUp\n");
	tree_file(tree, port, "link_layer", "%s\n", layer);
	tree_file(tree, port, "rate", "%s\n", rate);
	tree_join(link, sizeof(link), "/sys/class/infiniband/%s", name);
	tree_link(tree, link, dir);
	if (!parent) {
		/* The compiler cannot see that `on` is there then. */
		tree_file(tree, dir, "parent", "%s\n", on ? on : "");
		return;
	}
	tree_join(target, sizeof(target), "/sys/devices/%s", parent);
	tree_join(link, sizeof(link), "%s/device", dir);
	tree_link(tree, link, target);
}

#endif
