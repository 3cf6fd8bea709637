// SPDX-License-Identifier: Apache-2.0
/*
 * Network interfaces, from /sys/class/net. An interface without a device of its own (lo, bridges,
 * VLANs, bonds) is virtual; the others hang on the last PCI function of their resolved path, also
 * when something stands between (virtio).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

static int64_t read_int(const struct fb_sysroot *r, const char *nd, const char *file, int64_t def)
{
	int64_t v;

	return fb_sysroot_read_i64(r, &v, "/sys/class/net/%s/%s", nd, file) == 0 ? v : def;
}

static void read_place(struct topo *t, const struct fb_sysroot *r, struct topo_nic *nic)
{
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN], bdf[24];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", nic->name);
	bool device = fb_sysroot_realpath(r, path, real, sizeof(real)) == 0;

	if (!device) {
		snprintf(path, sizeof(path), "/sys/class/net/%s", nic->name);
		if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0)
			return;
	}
	if (topo_last_bdf(real, bdf, sizeof(bdf)))
		nic->pci = topo_find_pci(t, bdf);
	nic->is_virtual = !device && !topo_last_bdf(real, bdf, sizeof(bdf));
	if (device) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/device/driver", nic->name);
		topo_link_name(r, path, nic->driver, sizeof(nic->driver));
	}
}

/** Its function's locality; without one, its device's own numa_node (platform and virtual buses).
 */
static int place(struct topo *t, const struct fb_sysroot *r, struct topo_nic *nic)
{
	const char *cpus = NULL;

	nic->numa = TOPO_UNKNOWN;
	if (nic->pci >= 0) {
		nic->numa = t->pci[nic->pci].numa;
		cpus = t->pci[nic->pci].cpus;
	} else if (!nic->is_virtual) {
		int64_t v = read_int(r, nic->name, "device/numa_node", TOPO_UNKNOWN);

		if (v >= 0 && (t->n_numa == 0 || topo_find_numa(t, (int)v)))
			nic->numa = (int)v;
		else if (t->n_numa == 1)
			nic->numa = t->numa[0].os_index;
	}
	const struct topo_numa *node = topo_find_numa(t, nic->numa);

	if (!cpus && node && *node->cpus)
		cpus = node->cpus;
	if (cpus && !(nic->cpus = strdup(cpus)))
		return -ENOMEM;
	return 0;
}

static int read_one(struct topo *t, const struct fb_sysroot *r, const char *name)
{
	struct topo_nic *nic = topo_grow((void **)&t->nics, &t->n_nics, sizeof(*nic));

	if (!nic)
		return -ENOMEM;
	topo_copy(nic->name, sizeof(nic->name), name);
	nic->pci = TOPO_UNKNOWN;
	read_place(t, r, nic);
	int64_t v = read_int(r, name, "type", 0);

	nic->arphrd = v > 0 && v <= 0xffff ? (unsigned)v : 0;
	/* Mb/s; -1 or an error while the link is down. */
	v = read_int(r, name, "speed", 0);
	nic->rate_bps = v > 0 && v < 100000000 ? (uint64_t)v * 1000000 : 0;
	v = read_int(r, name, "mtu", 0);
	nic->mtu = v > 0 && v < 1 << 24 ? (int)v : 0;
	v = read_int(r, name, "dev_port", -1);
	/* mlx4 before Linux 3.15 told the port in dev_id only. */
	if (v <= 0)
		v = read_int(r, name, "dev_id", 0);
	nic->dev_port = v > 0 && v < 256 ? (int)v : 0;
	if (fb_sysroot_readf(
		    r, nic->state, sizeof(nic->state), "/sys/class/net/%s/operstate", name) < 0)
		nic->state[0] = '\0';
	return place(t, r, nic);
}

int topo_read_net(struct topo *t, const struct fb_sysroot *r, struct fb_err *e)
{
	char **names;
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN];
	int n = fb_sysroot_list(r, "/sys/class/net", &names), rc = 0;

	if (n < 0)
		return 0;
	if (n > TOPO_MAX_NETS)
		rc = fb_fail(e, FB_EXIT_USAGE, EFBIG,
			"%d network interfaces: no machine has more than %d", n, TOPO_MAX_NETS);
	for (int i = 0; i < n && !rc; i++) {
		/* bonding_masters is a file beside the interfaces. */
		snprintf(path, sizeof(path), "/sys/class/net/%.200s/.", names[i]);
		if (strcmp(names[i], "bonding_masters") == 0 ||
			fb_sysroot_realpath(r, path, real, sizeof(real)) != 0)
			continue;
		rc = read_one(t, r, names[i]);
	}
	fb_sysroot_names_free(names);
	return rc;
}
