// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices, network interfaces and GPUs as sysfs shows them. Only facts that identify what was
 * measured; topology and health belong to the topo module.
 */
#include "bench/core/sysinfo_dev.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"

static void set_file(
	json_t *j, const char *key, const struct fb_sysroot *r, const char *dir, const char *file)
{
	char buf[256];
	if (fb_sysroot_readf(r, buf, sizeof(buf), "%s/%s", dir, file) > 0)
		fb_json_set_str(j, key, buf);
}

/* Last component of where a link leads: a driver's name, a PCI address. */
static bool link_name(
	const struct fb_sysroot *r, const char *dir, const char *link, char *buf, size_t len)
{
	char path[PATH_MAX], real[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", dir, link) >= (int)sizeof(path) ||
		fb_sysroot_realpath(r, path, real, sizeof(real)) < 0)
		return false;
	const char *slash = strrchr(real, '/');
	snprintf(buf, len, "%.255s", slash ? slash + 1 : real);
	return true;
}

/* "0000:3b:00.0" */
static bool is_bdf(const char *s)
{
	unsigned domain, bus, dev, fn;
	int end = 0;
	return sscanf(s, "%x:%x:%x.%x%n", &domain, &bus, &dev, &fn, &end) == 4 && s[end] == '\0';
}

/* Driver, PCI address and NUMA node of the device behind a class entry. */
static void set_device(json_t *j, const struct fb_sysroot *r, const char *device)
{
	char buf[256];
	int64_t node;
	if (link_name(r, device, "driver", buf, sizeof(buf)))
		fb_json_set_str(j, "driver", buf);
	if (link_name(r, device, "", buf, sizeof(buf)) && is_bdf(buf))
		fb_json_set_str(j, "bdf", buf);
	/* -1: the firmware did not say; absent here. */
	if (fb_sysroot_read_i64(r, &node, "%s/numa_node", device) == 0 && node >= 0)
		fb_json_set_int(j, "numa", node);
}

static json_t *port_facts(const struct fb_sysroot *r, const char *dir, const char *port)
{
	json_t *j = json_object();
	char path[PATH_MAX], buf[128];
	snprintf(path, sizeof(path), "%s/ports/%s", dir, port);
	fb_json_set_str(j, "port", port);
	/* "4: ACTIVE" */
	if (fb_sysroot_readf(r, buf, sizeof(buf), "%s/state", path) > 0) {
		const char *colon = strchr(buf, ':');
		fb_json_set_str(j, "state", colon ? colon + 1 + strspn(colon + 1, " ") : buf);
	}
	set_file(j, "link_layer", r, path, "link_layer");
	set_file(j, "rate", r, path, "rate");
	if (fb_sysroot_readf(r, buf, sizeof(buf), "%s/gid_attrs/ndevs/0", path) > 0)
		fb_json_set_str(j, "netdev", buf);
	return j;
}

static json_t *rdma_device(const struct fb_sysroot *r, const char *name)
{
	json_t *j = json_object(), *ports = json_array(), *netdevs = json_array();
	char dir[256], path[512], **names = NULL;
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s", name);
	fb_json_set_str(j, "name", name);
	set_file(j, "fw", r, dir, "fw_ver");
	set_file(j, "board", r, dir, "board_id");
	set_file(j, "guid", r, dir, "node_guid");
	snprintf(path, sizeof(path), "%s/device", dir);
	set_device(j, r, path);
	/* Soft-RoCE has no device behind it; its netdev is its parent. */
	set_file(j, "parent", r, dir, "parent");
	snprintf(path, sizeof(path), "%s/device/net", dir);
	fb_sysroot_list(r, path, &names);
	for (char **p = names; p && *p; p++)
		json_array_append_new(netdevs, json_string(*p));
	fb_sysroot_names_free(names);
	snprintf(path, sizeof(path), "%s/ports", dir);
	fb_sysroot_list(r, path, &names);
	for (char **p = names; p && *p; p++)
		json_array_append_new(ports, port_facts(r, dir, *p));
	fb_sysroot_names_free(names);
	json_object_set_new(j, "netdevs", netdevs);
	json_object_set_new(j, "ports", ports);
	return j;
}

json_t *fb_sysinfo_rdma(const struct fb_sysroot *r)
{
	json_t *all = json_array();
	char **names = NULL;
	fb_sysroot_list(r, "/sys/class/infiniband", &names);
	for (char **p = names; p && *p; p++)
		json_array_append_new(all, rdma_device(r, *p));
	fb_sysroot_names_free(names);
	return all;
}

json_t *fb_sysinfo_nics(const struct fb_sysroot *r)
{
	json_t *all = json_array();
	char **names = NULL;
	fb_sysroot_list(r, "/sys/class/net", &names);
	for (char **p = names; p && *p; p++) {
		char dir[256], device[300];
		int64_t v;
		snprintf(dir, sizeof(dir), "/sys/class/net/%s", *p);
		snprintf(device, sizeof(device), "%s/device", dir);
		if (!fb_sysroot_exists(r, "%s", device))
			continue; /* lo, bridges, tunnels: nothing behind them */
		json_t *j = json_object();
		fb_json_set_str(j, "name", *p);
		set_device(j, r, device);
		set_file(j, "mac", r, dir, "address");
		set_file(j, "state", r, dir, "operstate");
		if (fb_sysroot_read_i64(r, &v, "%s/mtu", dir) == 0)
			fb_json_set_int(j, "mtu", v);
		/* -1 or an error while the link is down. */
		if (fb_sysroot_read_i64(r, &v, "%s/speed", dir) == 0 && v > 0)
			fb_json_set_int(j, "speed_mbps", v);
		json_array_append_new(all, j);
	}
	fb_sysroot_names_free(names);
	return all;
}

static const char *vendor_name(int64_t id)
{
	return id == 0x10de ? "NVIDIA" : id == 0x1002 ? "AMD" : id == 0x8086 ? "Intel" : "other";
}

json_t *fb_sysinfo_gpus(const struct fb_sysroot *r)
{
	json_t *all = json_array();
	char **names = NULL;
	fb_sysroot_list(r, "/sys/bus/pci/devices", &names);
	for (char **p = names; p && *p; p++) {
		char dir[256], buf[32];
		int64_t class, vendor;
		snprintf(dir, sizeof(dir), "/sys/bus/pci/devices/%s", *p);
		if (fb_sysroot_read_i64(r, &class, "%s/class", dir) < 0 ||
			(class >> 16 != 0x03 && class >> 8 != 0x1200))
			continue;
		json_t *j = json_object();
		fb_json_set_str(j, "bdf", *p);
		if (fb_sysroot_read_i64(r, &vendor, "%s/vendor", dir) == 0) {
			snprintf(buf, sizeof(buf), "0x%04llx", (long long)vendor);
			fb_json_set_str(j, "vendor", vendor_name(vendor));
			fb_json_set_str(j, "vendor_id", buf);
		}
		set_file(j, "device_id", r, dir, "device");
		if (link_name(r, dir, "driver", buf, sizeof(buf)))
			fb_json_set_str(j, "driver", buf);
		if (fb_sysroot_read_i64(r, &vendor, "%s/numa_node", dir) == 0 && vendor >= 0)
			fb_json_set_int(j, "numa", vendor);
		json_array_append_new(all, j);
	}
	fb_sysroot_names_free(names);
	return all;
}
