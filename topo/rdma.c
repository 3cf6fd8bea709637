// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA devices, from /sys/class/infiniband. A software device (rxe, siw) has no PCI function: its
 * place is that of the interface named in its `parent` file, which hwloc does not follow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

/** "4: ACTIVE" -> 4, "ACTIVE". */
static unsigned split_state(const char *text, char *name, size_t len)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	name[0] = '\0';
	if (end == text || *end != ':')
		return 0;
	end++;
	topo_copy(name, len, end + strspn(end, " "));
	return v < 16 ? (unsigned)v : 0;
}

/** "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" -> bits per second. */
static uint64_t parse_rate(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || strncmp(end, " Gb/sec", 7) != 0 || !(v > 0) || v > 100000)
		return 0;
	return (uint64_t)(v * 1e9);
}

/**
 * The interface on one port: what the port's first GID says, else the function's interface with
 * that port number, else its only one.
 */
static void find_netdev(const struct topo *t, const struct fb_sysroot *r, const struct topo_rdma *d,
	struct topo_rdma_port *port)
{
	char **names;
	char path[TOPO_PATH_LEN];

	if (fb_sysroot_readf(r, port->netdev, sizeof(port->netdev),
		    "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", d->name, port->num) > 0)
		return;
	port->netdev[0] = '\0';
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net", d->name);
	int n = fb_sysroot_list(r, path, &names);

	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		const struct topo_nic *nic = n > 1 ? topo_find_nic(t, names[i]) : NULL;

		if (n == 1 || (nic && nic->dev_port == (int)port->num - 1)) {
			topo_copy(port->netdev, sizeof(port->netdev), names[i]);
			break;
		}
	}
	fb_sysroot_names_free(names);
}

static int read_ports(struct topo *t, const struct fb_sysroot *r, struct topo_rdma *d)
{
	char path[TOPO_PATH_LEN], buf[128];
	char **names;
	int rc = 0;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", d->name);
	int n = fb_sysroot_list(r, path, &names);

	if (n < 0)
		return 0;
	for (int i = 0; i < n && i < 256 && !rc; i++) {
		char *end;
		unsigned long num = strtoul(names[i], &end, 10);

		if (*end || num == 0 || num > 255)
			continue;
		struct topo_rdma_port *p = topo_grow((void **)&d->ports, &d->n_ports, sizeof(*p));

		if (!p) {
			rc = -ENOMEM;
			break;
		}
		p->num = (unsigned)num;
#define PORT_FILE(file) "/sys/class/infiniband/%s/ports/%u/" file, d->name, p->num
		if (fb_sysroot_readf(r, buf, sizeof(buf), PORT_FILE("state")) > 0)
			p->state = split_state(buf, p->state_name, sizeof(p->state_name));
		if (fb_sysroot_readf(r, buf, sizeof(buf), PORT_FILE("phys_state")) > 0)
			split_state(buf, p->phys_state, sizeof(p->phys_state));
		if (fb_sysroot_readf(
			    r, p->link_layer, sizeof(p->link_layer), PORT_FILE("link_layer")) < 0)
			p->link_layer[0] = '\0';
		if (fb_sysroot_readf(r, p->rate, sizeof(p->rate), PORT_FILE("rate")) > 0)
			p->rate_bps = parse_rate(p->rate);
#undef PORT_FILE
		if (!d->soft)
			find_netdev(t, r, d, p);
		else
			topo_copy(p->netdev, sizeof(p->netdev), d->netdev);
	}
	fb_sysroot_names_free(names);
	return rc;
}

/** The device's own PCI function; for a software device, its parent interface's. */
static void read_place(struct topo *t, const struct fb_sysroot *r, struct topo_rdma *d)
{
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN], bdf[24];

	if (fb_sysroot_readf(r, d->netdev, sizeof(d->netdev), "/sys/class/infiniband/%s/parent",
		    d->name) > 0) {
		d->soft = true;
		return;
	}
	d->netdev[0] = '\0';
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", d->name);
	if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s", d->name);
		if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0)
			return;
		/* rxe of kernels that have no `parent` file yet */
		d->soft = strstr(real, "/devices/virtual/infiniband/") != NULL;
	}
	if (topo_last_bdf(real, bdf, sizeof(bdf)))
		d->pci = topo_find_pci(t, bdf);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver", d->name);
	topo_link_name(r, path, d->driver, sizeof(d->driver));
}

static int place(struct topo *t, const struct fb_sysroot *r, struct topo_rdma *d)
{
	const char *cpus = NULL;
	int64_t v;

	const struct topo_nic *nic = d->netdev[0] ? topo_find_nic(t, d->netdev) : NULL;

	if (nic)
		d->nic = (int)(nic - t->nics);
	if (d->pci < 0 && d->nic >= 0)
		d->pci = t->nics[d->nic].pci;
	if (d->pci >= 0) {
		d->numa = t->pci[d->pci].numa;
		cpus = t->pci[d->pci].cpus;
	} else if (d->nic >= 0) {
		d->numa = t->nics[d->nic].numa;
		cpus = t->nics[d->nic].cpus;
	} else if (fb_sysroot_read_i64(
			   r, &v, "/sys/class/infiniband/%s/device/numa_node", d->name) == 0 &&
		   v >= 0 && topo_find_numa(t, (int)v)) {
		d->numa = (int)v;
	} else if (t->n_numa == 1) {
		d->numa = t->numa[0].os_index;
	}
	const struct topo_numa *node = topo_find_numa(t, d->numa);

	if (!cpus && node && *node->cpus)
		cpus = node->cpus;
	if (cpus && !(d->cpus = strdup(cpus)))
		return -ENOMEM;
	return 0;
}

static int read_one(struct topo *t, const struct fb_sysroot *r, const char *name)
{
	char buf[64];
	struct topo_rdma *d = topo_grow((void **)&t->rdma, &t->n_rdma, sizeof(*d));

	if (!d)
		return -ENOMEM;
	topo_copy(d->name, sizeof(d->name), name);
	d->nic = d->pci = d->numa = TOPO_UNKNOWN;
	read_place(t, r, d);
	if (fb_sysroot_readf(r, buf, sizeof(buf), "/sys/class/infiniband/%s/node_type", name) > 0) {
		char word[32];

		d->node_type = split_state(buf, word, sizeof(word));
	}
	if (fb_sysroot_readf(r, d->fw, sizeof(d->fw), "/sys/class/infiniband/%s/fw_ver", name) < 0)
		d->fw[0] = '\0';
	if (fb_sysroot_readf(
		    r, d->board, sizeof(d->board), "/sys/class/infiniband/%s/board_id", name) < 0)
		d->board[0] = '\0';
	int rc = read_ports(t, r, d);

	if (rc)
		return rc;
	for (size_t i = 0; i < d->n_ports && !d->netdev[0]; i++)
		topo_copy(d->netdev, sizeof(d->netdev), d->ports[i].netdev);
	return place(t, r, d);
}

int topo_read_rdma(struct topo *t, const struct fb_sysroot *r, struct fb_err *e)
{
	char **names;
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN];
	int n = fb_sysroot_list(r, "/sys/class/infiniband", &names), rc = 0;

	if (n < 0)
		return 0;
	if (n > TOPO_MAX_NETS)
		rc = fb_fail(e, FB_EXIT_USAGE, EFBIG,
			"%d RDMA devices: no machine has more than %d", n, TOPO_MAX_NETS);
	for (int i = 0; i < n && !rc; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s", names[i]);
		/* A link without its target (a device that was not recorded) is not a device. */
		if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0)
			topo_warn(t, "%.60s: its folder is missing in this tree", names[i]);
		else
			rc = read_one(t, r, names[i]);
	}
	fb_sysroot_names_free(names);
	return rc;
}
