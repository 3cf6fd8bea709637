// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of a port's link: state, addresses, interface, MTU, PCIe, counters. Holes in a GID table
 * are normal: an empty slot reads as zeros, and its type and interface give EINVAL
 * (drivers/infiniband/core/sysfs.c).
 */
#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/counters.h"
#include "verbs/dev.h"
#include "verbs/lossless/facts_priv.h"

#define DEV(p)  "/sys/class/infiniband/%s/%s", (p)->device
#define PORT(p) "/sys/class/infiniband/%s/ports/%d/%s", (p)->device, (p)->port

/* What the headers of a RoCE packet take of the netdev's MTU: GRH 40, UDP 8, BTH 12, XRC 4,
 * AtomicETH 28, ICRC 4 (include/rdma/ib_addr.h iboe_get_mtu); Soft-RoCE: RXE_MAX_HDR_LENGTH. */
#define IBOE_HEADERS 96
#define RXE_HEADERS  80

/* ---- what device ----------------------------------------------------------------------------- */

static bool is_bdf(const char *s)
{
	unsigned domain, bus, dev, fn;
	int end = 0;
	return sscanf(s, "%x:%x:%x.%x%n", &domain, &bus, &dev, &fn, &end) == 4 && s[end] == '\0';
}

/* Last part of where a link of the device leads. @return false without one */
static bool link_name(const struct facts_door *d, const char *path, char *buf, size_t len)
{
	char real[4096];
	buf[0] = '\0';
	if (fb_sysroot_realpath(d->r, path, real, sizeof(real)) < 0)
		return false;
	const char *slash = strrchr(real, '/');
	if (!slash || strlen(slash + 1) >= len)
		return false;
	snprintf(buf, len, "%s", slash + 1);
	return true;
}

static void read_driver(const struct facts_door *d, struct port_facts *p)
{
	char path[256], name[64];
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", p->device);
	if (link_name(d, path, name, sizeof(name)) && is_bdf(name) && strlen(name) < sizeof(p->bdf))
		snprintf(p->bdf, sizeof(p->bdf), "%.15s", name);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver", p->device);
	/* Some software devices name their interface's function as their own. */
	bool soft = fb_sysroot_exists(d->r, "/sys/class/infiniband/%s/parent", p->device);
	if (!soft && link_name(d, path, name, sizeof(name))) {
		snprintf(p->driver, sizeof(p->driver), "%.31s", name);
		verbs_driver_name(0, name, p->family, sizeof(p->family));
		return;
	}
	/* node_type is "4: RNIC" for iWARP, "1: CA" for RoCE. */
	name[0] = '\0';
	if (fb_sysroot_readf(d->r, name, sizeof(name), DEV(p), "node_type") > 0 && soft) {
		snprintf(p->driver, sizeof(p->driver), "%s", name[0] == '4' ? "siw" : "rdma_rxe");
		snprintf(p->family, sizeof(p->family), "%s", name[0] == '4' ? "siw" : "rxe");
		p->bdf[0] = '\0';
		return;
	}
	snprintf(p->family, sizeof(p->family), "unknown");
}

static bool software(const struct port_facts *p)
{
	return strcmp(p->family, "rxe") == 0 || strcmp(p->family, "siw") == 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* "fe80:0000:0000:0000:0202:c9ff:fe00:0001" @return 1; 0: an empty slot; -EINVAL: no GID */
static int parse_gid(const char *text, uint8_t raw[16])
{
	const char *s = text;
	unsigned any = 0;
	for (int i = 0; i < 8; i++) {
		char *end;
		unsigned long v = strtoul(s, &end, 16);
		if (end == s || end - s > 4 || v > 0xffff || *end != (i < 7 ? ':' : '\0'))
			return -EINVAL;
		raw[2 * i] = (uint8_t)(v >> 8);
		raw[2 * i + 1] = (uint8_t)v;
		any |= (unsigned)v;
		s = end + 1;
	}
	return any != 0;
}

/* @return 2: added; 1: added, without a type that could be read; 0: an empty slot; -errno: the file
 * tells nothing */
static int read_gid(const struct facts_door *d, struct port_facts *p, int index)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char text[64];
	struct gid_fact g = {.index = index};
	bool typed = false;
	int rc = fb_sysroot_readf(d->r, text, sizeof(text),
		"/sys/class/infiniband/%s/ports/%d/gids/%d", p->device, p->port, index);
	if (rc >= 0)
		rc = parse_gid(text, g.raw);
	if (rc <= 0)
		return rc;
	g.ipv4 = memcmp(g.raw, mapped, sizeof(mapped)) == 0;
	g.link_local = g.raw[0] == 0xfe && (g.raw[1] & 0xc0) == 0x80;
	if (fb_sysroot_readf(d->r, text, sizeof(text),
		    "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", p->device, p->port,
		    index) > 0) {
		g.v2 = strcmp(text, "RoCE v2") == 0;
		typed = text[0] != '\0';
	}
	if (fb_sysroot_readf(d->r, g.netdev, sizeof(g.netdev),
		    "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", p->device, p->port,
		    index) < 0)
		g.netdev[0] = '\0';
	p->gid[p->gids++] = g;
	return typed ? 2 : 1;
}

/* A table of which no entry could be read says nothing; that it is empty would be a finding. */
static void none_readable(struct fact *f, int asked, int read, int rc)
{
	if (asked == 0)
		fact_none(f, FACT_ABSENT, "the folder is empty");
	else if (read == 0 && (rc == -EACCES || rc == -EPERM))
		fact_none(f, FACT_HIDDEN, "its files are not for this user");
	else if (read == 0)
		fact_none(f, FACT_BROKEN, "none of its %d files can be read: %s", asked,
			rc == -EINVAL ? "they hold something else" : strerror(-rc));
}

/* The entries of a numbered folder, in order. @return -errno with f set */
static int numbered(const struct facts_door *d, struct port_facts *p, struct fact *f,
	const char *folder, char ***names)
{
	char path[256];
	snprintf(path, sizeof(path), PORT(p), folder);
	fact_read_by(f, "%s", path);
	int n = fb_sysroot_list(d->r, path, names);
	if (n >= 0)
		f->state = FACT_KNOWN;
	else if (n == -EACCES || facts_is_hidden(d, path))
		fact_none(f, FACT_HIDDEN, "not for this user");
	else
		fact_none(f, FACT_ABSENT, "there is no such folder");
	return n;
}

static void read_gids(const struct facts_door *d, struct port_facts *p)
{
	char **names = NULL;
	int asked = 0, read = 0, why = 0, untyped = 0;
	int n = numbered(d, p, &p->gids_f, "gids", &names);
	bool v2 = false;
	for (int i = 0; i < n && p->gids < FACTS_MAX_GIDS; i++) {
		char *end;
		long index = strtol(names[i], &end, 10);
		if (end == names[i] || *end != '\0' || index < 0 || index >= 65536)
			continue;
		int rc = read_gid(d, p, (int)index);
		asked++;
		read += rc >= 0;
		why = rc < 0 ? rc : why;
		untyped += rc == 1;
		v2 = v2 || (rc > 0 && p->gid[p->gids - 1].v2);
	}
	fb_sysroot_names_free(names);
	if (!fact_known(&p->gids_f))
		return;
	none_readable(&p->gids_f, asked, read, why);
	if (untyped > 0 && !v2)
		fact_none(&p->gids_f, FACT_HIDDEN,
			"gid_attrs/types of %d addresses cannot be read: v1 or v2 is not known",
			untyped);
}

static void read_pkeys(const struct facts_door *d, struct port_facts *p)
{
	char **names = NULL;
	int asked = 0, read = 0, why = 0, n = numbered(d, p, &p->pkeys_f, "pkeys", &names);
	for (int i = 0; i < n; i++) {
		int64_t v;
		char *end;
		long index = strtol(names[i], &end, 10);
		if (end == names[i] || *end != '\0' || index < 0 || index >= FACTS_MAX_PKEYS)
			continue;
		int rc = fb_sysroot_read_i64(d->r, &v,
			"/sys/class/infiniband/%s/ports/%d/pkeys/%ld", p->device, p->port, index);
		bool is_key = rc == 0 && v >= 0 && v <= 0xffff;
		asked++;
		read += is_key;
		why = is_key ? why : rc < 0 ? rc : -EINVAL;
		if (!is_key || v == 0)
			continue;
		p->pkey[index] = (uint16_t)v;
		if (p->pkeys <= index)
			p->pkeys = (int)index + 1;
	}
	fb_sysroot_names_free(names);
	if (fact_known(&p->pkeys_f))
		none_readable(&p->pkeys_f, asked, read, why);
}

/* ---- the interface --------------------------------------------------------------------------- */

static bool has_gid_on(const struct port_facts *p, const char *netdev)
{
	for (int i = 0; i < p->gids; i++)
		if (strcmp(p->gid[i].netdev, netdev) == 0)
			return true;
	return false;
}

/* Of the function's interfaces: one that has a GID, else the one with this port's number (a
 * function with two ports), else the only one. A function's representors have neither. */
static bool function_netdev(const struct facts_door *d, struct port_facts *p)
{
	char path[256], **names = NULL;
	const char *pick = NULL;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net", p->device);
	int n = fb_sysroot_list(d->r, path, &names);
	for (int i = 0; i < n && !pick; i++)
		if (has_gid_on(p, names[i]))
			pick = names[i];
	for (int i = 0; i < n && !pick; i++) {
		int64_t number;
		if (n == 1 || (fb_sysroot_read_i64(
				       d->r, &number, "%s/%s/dev_port", path, names[i]) == 0 &&
				      number == p->port - 1))
			pick = names[i];
	}
	if (pick && strlen(pick) < sizeof(p->netdev)) {
		snprintf(p->netdev, sizeof(p->netdev), "%.31s", pick);
		fact_read_by(&p->netdev_f, "%s", path);
	}
	fb_sysroot_names_free(names);
	return p->netdev[0] != '\0';
}

static void find_netdev(const struct facts_door *d, struct port_facts *p)
{
	struct fact *f = &p->netdev_f;
	char parent[32];
	f->state = FACT_KNOWN;
	if (!software(p) && function_netdev(d, p))
		return;
	fact_read_by(f, "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs", p->device, p->port);
	for (int i = 0; i < p->gids && !p->netdev[0]; i++)
		memcpy(p->netdev, p->gid[i].netdev, sizeof(p->netdev));
	if (!p->netdev[0] && fb_sysroot_readf(d->r, parent, sizeof(parent), DEV(p), "parent") > 0) {
		snprintf(p->netdev, sizeof(p->netdev), "%s", parent);
		fact_read_by(f, "/sys/class/infiniband/%s/parent", p->device);
	}
	if (p->netdev[0] && fb_sysroot_exists(d->r, "/sys/class/net/%s", p->netdev))
		return;
	if (p->netdev[0])
		fact_none(f, FACT_HIDDEN,
			"interface %s is not visible from here: another network namespace",
			p->netdev);
	else if (!p->ethernet)
		fact_none(f, FACT_ABSENT, "the port has no interface");
	else
		fact_none(f, FACT_HIDDEN,
			"no interface of the port is visible from here: another network namespace?");
	p->netdev[0] = '\0';
}

static void read_netdev(const struct facts_door *d, struct port_facts *p)
{
	find_netdev(d, p);
	if (p->netdev[0]) {
		facts_text(d, &p->netdev_state, "/sys/class/net/%s/operstate", p->netdev);
		facts_int_in(d, &p->netdev_mtu, 1, INT32_MAX, "/sys/class/net/%s/mtu", p->netdev);
		return;
	}
	p->netdev_state.f = p->netdev_f;
	p->netdev_mtu.f = p->netdev_f;
}

/* ---- MTU ------------------------------------------------------------------------------------- */

static int64_t mtu_bytes(enum ibv_mtu m)
{
	return m >= IBV_MTU_256 && m <= IBV_MTU_4096 ? 128LL << m : 0;
}

static void ask_mtu(struct port_facts *p)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct fact *f = &p->active_mtu.f;
	fact_none(f, FACT_ABSENT, "libibverbs does not know the device: is ib_uverbs loaded?");
	for (int i = 0; list && i < n; i++) {
		struct ibv_port_attr a;
		if (strcmp(ibv_get_device_name(list[i]), p->device) != 0)
			continue;
		errno = 0;
		struct ibv_context *c = ibv_open_device(list[i]);
		if (!c) {
			fact_none(f, errno == EACCES || errno == EPERM ? FACT_HIDDEN : FACT_BROKEN,
				"cannot open the device: %s", strerror(errno ? errno : EIO));
			break;
		}
		if (ibv_query_port(c, (uint8_t)p->port, &a) != 0) {
			fact_none(f, FACT_BROKEN, "cannot query the port: %s", strerror(errno));
		} else if (mtu_bytes(a.active_mtu) > 0) {
			p->active_mtu.v = mtu_bytes(a.active_mtu);
			f->state = FACT_KNOWN;
			f->why[0] = '\0';
		} else {
			fact_none(f, FACT_BROKEN, "code %d is no MTU", (int)a.active_mtu);
		}
		ibv_close_device(c);
		break;
	}
	if (list)
		ibv_free_device_list(list);
}

/* What the kernel makes of the interface's MTU, where the port itself cannot be asked. */
static void derive_mtu(struct port_facts *p)
{
	if (!p->ethernet || !fact_known(&p->netdev_mtu.f))
		return;
	int64_t room = p->netdev_mtu.v - (software(p) ? RXE_HEADERS : IBOE_HEADERS), mtu = 256;
	if (room < mtu) {
		fact_none(&p->active_mtu.f, FACT_BROKEN,
			"the interface's MTU %lld is too small for any RDMA MTU",
			(long long)p->netdev_mtu.v);
		return;
	}
	while (mtu < 4096 && 2 * mtu <= room)
		mtu *= 2;
	p->active_mtu.v = mtu;
	p->active_mtu.f.state = FACT_KNOWN;
	p->active_mtu.f.why[0] = '\0';
	fact_read_by(&p->active_mtu.f, "derived from the MTU of %s (%s)", p->netdev,
		software(p) ? "rxe_mtu_int_to_enum" : "ib_addr.h iboe_get_mtu");
}

static void read_mtu(const struct facts_door *d, struct port_facts *p)
{
	if (fb_sysroot_is_live(d->r)) {
		ask_mtu(p);
		fact_read_by(
			&p->active_mtu.f, "ibv_query_port %s/%d active_mtu", p->device, p->port);
	} else {
		facts_int(d, &p->active_mtu, FACTS_RECORDED_MTU, p->device, p->port);
		if (p->active_mtu.f.state == FACT_ABSENT)
			fact_none(&p->active_mtu.f, FACT_HIDDEN, "not recorded");
	}
	if (!fact_known(&p->active_mtu.f) && p->active_mtu.f.state != FACT_BROKEN)
		derive_mtu(p);
}

/* ---- rate, PCIe, counters -------------------------------------------------------------------- */

/* "100 Gb/sec (4X EDR)" */
static void read_rate(const struct facts_door *d, struct port_facts *p)
{
	facts_text(d, &p->rate, PORT(p), "rate");
	p->rate_mbps.f = p->width.f = p->rate.f;
	if (!fact_known(&p->rate.f))
		return;
	double bytes = verbs_parse_rate_file(p->rate.v);
	if (bytes > 0)
		p->rate_mbps.v = (int64_t)(bytes * 8 / 1e6 + 0.5);
	else
		fact_none(&p->rate_mbps.f, FACT_BROKEN, "\"%.40s\" is no rate", p->rate.v);
	const char *open = strchr(p->rate.v, '(');
	int width = 0;
	if (open && sscanf(open, "(%dX", &width) == 1 && width > 0)
		p->width.v = width;
	else
		fact_none(&p->width.f, FACT_BROKEN, "\"%.40s\" has no width", p->rate.v);
}

/* Virtual functions have no link of their own: the kernel tells "Unknown" and no lane. */
static void no_link(struct fact_text *speed, struct fact_int *width)
{
	if (fact_known(&speed->f) && !(strtod(speed->v, NULL) > 0))
		fact_none(&speed->f, FACT_ABSENT,
			"the kernel tells \"%.40s\": a virtual function, or no link", speed->v);
	if (fact_known(&width->f) && (width->v <= 0 || width->v > 32))
		fact_none(&width->f, FACT_ABSENT,
			"the kernel tells %lld lanes: a virtual function, or no link",
			(long long)width->v);
}

static void read_pcie(const struct facts_door *d, struct port_facts *p)
{
	struct fact *const all[] = {
		&p->pcie_speed.f, &p->pcie_max_speed.f, &p->pcie_width.f, &p->pcie_max_width.f};
	if (!p->bdf[0]) {
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			fact_read_by(all[i], "/sys/class/infiniband/%s/device", p->device);
			fact_none(all[i], FACT_ABSENT, "the device is no PCI function");
		}
		return;
	}
	facts_text(d, &p->pcie_speed, DEV(p), "device/current_link_speed");
	facts_text(d, &p->pcie_max_speed, DEV(p), "device/max_link_speed");
	facts_int(d, &p->pcie_width, DEV(p), "device/current_link_width");
	facts_int(d, &p->pcie_max_width, DEV(p), "device/max_link_width");
	no_link(&p->pcie_speed, &p->pcie_width);
	no_link(&p->pcie_max_speed, &p->pcie_max_width);
}

static void read_counters(const struct facts_door *d, struct port_facts *p)
{
	fact_read_by(&p->counters_f, "/sys/class/infiniband/%s/ports/%d/{hw_counters,counters}",
		p->device, p->port);
	p->counters = verbs_counters_read(d->r, p->device, (unsigned)p->port);
	if (json_object_size(p->counters) > 0) {
		p->counters_f.state = FACT_KNOWN;
		return;
	}
	json_decref(p->counters);
	p->counters = NULL;
	fact_none(&p->counters_f, FACT_ABSENT, "the driver has no counters for this port");
}

void facts_read_port(const struct facts_door *d, struct port_facts *p)
{
	char type[32] = "";
	read_driver(d, p);
	facts_text(d, &p->state, PORT(p), "state");
	facts_text(d, &p->phys_state, PORT(p), "phys_state");
	facts_text(d, &p->link_layer, PORT(p), "link_layer");
	p->ethernet = fact_known(&p->link_layer.f) && strcmp(p->link_layer.v, "Ethernet") == 0;
	p->iwarp = fb_sysroot_readf(d->r, type, sizeof(type), DEV(p), "node_type") > 0 &&
		   type[0] == '4';
	read_rate(d, p);
	facts_int(d, &p->lid, PORT(p), "lid");
	facts_int(d, &p->sm_lid, PORT(p), "sm_lid");
	facts_int(d, &p->sm_sl, PORT(p), "sm_sl");
	facts_text(d, &p->fw, DEV(p), "fw_ver");
	facts_text(d, &p->board, DEV(p), "board_id");
	read_gids(d, p);
	read_pkeys(d, p);
	read_netdev(d, p);
	read_mtu(d, p);
	read_pcie(d, p);
	facts_read_pci(d, p);
	facts_read_fw(d, p);
	read_counters(d, p);
	fact_none(&p->symbol_ber_ok.f, FACT_ABSENT, "no interface of the kernel tells it");
}
