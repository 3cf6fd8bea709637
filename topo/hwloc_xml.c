// SPDX-License-Identifier: Apache-2.0
/*
 * hwloc's XML, versions 1 and 2, read by hwloc itself: its objects become the model. What the
 * format does not tell stays unknown: link speeds are one figure in GB/s, drivers, firmware, port
 * rates and the physical function of a VF are not in it.
 *
 * An I/O object has no CPUs of its own. Its place is that of the nearest ancestor that is none,
 * whatever that is (a package, a group, a cache): only its CPUs count.
 */
#include "topo/hwloc_xml.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

#define MAX_FILE (16u << 20)

int topo_hwloc_index(const void *userdata)
{
	return (int)(intptr_t)userdata - 1;
}

/* ---- the PCI tree ---------------------------------------------------------------------------- */

static const struct hwloc_pcidev_attr_s *pci_of(hwloc_obj_t obj)
{
	if (obj->type == HWLOC_OBJ_PCI_DEVICE)
		return &obj->attr->pcidev;
	if (obj->type == HWLOC_OBJ_BRIDGE &&
		obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
		return &obj->attr->bridge.upstream.pci;
	return NULL;
}

static uint64_t address(hwloc_obj_t obj)
{
	const struct hwloc_pcidev_attr_s *a = pci_of(obj);

	return (uint64_t)a->domain << 16 | (unsigned)a->bus << 8 | (a->dev & 0x1fu) << 3 |
	       (a->func & 7u);
}

static int compare_address(const void *a, const void *b)
{
	hwloc_obj_t p = *(hwloc_obj_t const *)a, q = *(hwloc_obj_t const *)b;
	uint64_t x = address(p), y = address(q);

	return x != y ? (x > y) - (x < y)
		      : (p->gp_index > q->gp_index) - (p->gp_index < q->gp_index);
}

/** All objects with a PCI address, by address. */
static int list_pci(hwloc_topology_t hw, hwloc_obj_t **list, size_t *n)
{
	static const hwloc_obj_type_t types[] = {HWLOC_OBJ_BRIDGE, HWLOC_OBJ_PCI_DEVICE};

	for (size_t i = 0; i < 2; i++) {
		hwloc_obj_t obj = NULL;

		while ((obj = hwloc_get_next_obj_by_type(hw, types[i], obj))) {
			obj->userdata = NULL;
			if (!pci_of(obj))
				continue;
			hwloc_obj_t *slot = topo_grow((void **)list, n, sizeof(*slot));

			if (!slot)
				return -ENOMEM;
			*slot = obj;
		}
	}
	if (*n)
		qsort(*list, *n, sizeof(**list), compare_address);
	return 0;
}

/**
 * The NUMA node that holds an object, and its CPUs.
 * @param cpus receives a cpulist, or NULL; the caller frees
 * @return 0 or -ENOMEM
 */
static int locate(const struct topo *t, hwloc_obj_t obj, int *numa, char **cpus)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(t->hwloc, obj), node = NULL;

	*numa = TOPO_UNKNOWN;
	*cpus = NULL;
	/* The whole machine is what hwloc says when it does not know. */
	if (t->n_numa == 1)
		*numa = t->numa[0].os_index;
	if (!near || !near->cpuset || hwloc_bitmap_iszero(near->cpuset) ||
		(near->depth == 0 && t->n_numa > 1))
		return 0;
	while ((node = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, node)))
		if (hwloc_bitmap_isincluded(near->cpuset, node->cpuset) &&
			(*numa < 0 || (int)node->os_index < *numa))
			*numa = (int)node->os_index;
	return hwloc_bitmap_list_asprintf(cpus, near->cpuset) < 0 ? -ENOMEM : 0;
}

/** The nearest bridge above that has an address, and the root bus. */
static void read_place(hwloc_obj_t obj, struct topo_pci *p)
{
	for (hwloc_obj_t up = obj->parent; up; up = up->parent) {
		if (up->type != HWLOC_OBJ_BRIDGE)
			continue;
		if (pci_of(up)) {
			if (p->parent < 0)
				p->parent = topo_hwloc_index(up->userdata);
		} else {
			/* A host bridge below others (VMD) is not the root: the last one stays. */
			snprintf(p->root, sizeof(p->root), "%04x:%02x",
				up->attr->bridge.downstream.pci.domain,
				up->attr->bridge.downstream.pci.secondary_bus);
		}
	}
}

static int read_function(struct topo *t, hwloc_obj_t obj, struct topo_pci *p)
{
	const struct hwloc_pcidev_attr_s *a = pci_of(obj);

	snprintf(p->bdf, sizeof(p->bdf), "%04x:%02x:%02x.%x", a->domain, a->bus, a->dev & 0x1fu,
		a->func & 7u);
	p->class_code = (uint32_t)a->class_id << 8;
	p->vendor = a->vendor_id;
	p->device = a->device_id;
	p->bridge = obj->type == HWLOC_OBJ_BRIDGE || a->class_id == 0x0604;
	p->parent = p->physfn = TOPO_UNKNOWN;
	/* GB/s after line coding; 0 where hwloc could not read it. */
	p->link.bandwidth =
		a->linkspeed > 0 && a->linkspeed < 1e4f ? (double)a->linkspeed * 1e9 : 0;
	read_place(obj, p);
	return locate(t, obj, &p->numa, &p->cpus);
}

/** Places come from the tree, not from addresses: two devices that claim one address (an edited
 * file) stay two. */
static int read_pci(struct topo *t)
{
	hwloc_obj_t *list = NULL;
	size_t n = 0;
	int rc = list_pci(t->hwloc, &list, &n);

	for (size_t i = 0; i < n && !rc; i++)
		list[i]->userdata = (void *)(intptr_t)(i + 1);
	for (size_t i = 0; i < n && !rc; i++) {
		struct topo_pci *p = topo_grow((void **)&t->pci, &t->n_pci, sizeof(*p));

		rc = p ? read_function(t, list[i], p) : -ENOMEM;
		if (!rc && i && strcmp(p[-1].bdf, p->bdf) == 0)
			topo_warn(t, "%s stands more than once in the file", p->bdf);
	}
	free(list);
	return rc;
}

/* ---- devices of the operating system ----------------------------------------------------------
 */

static int pci_above(hwloc_obj_t obj)
{
	for (hwloc_obj_t up = obj->parent; up; up = up->parent)
		if (up->type == HWLOC_OBJ_PCI_DEVICE)
			return topo_hwloc_index(up->userdata);
	return TOPO_UNKNOWN;
}

/** Old files keep RDMA devices as networks: the kernel's own names of them. */
static bool named_as_rdma(const char *name)
{
	static const char *const stems[] = {"mlx4_", "mlx5_", "mthca", "qib", "hfi1_", "usnic_",
		"cxgb4_", "bnxt_re", "irdma", "efa_", "ipath"};

	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		size_t n = strlen(stems[i]);

		if (strncmp(name, stems[i], n) == 0 && name[n] &&
			!name[n + strspn(name + n, "0123456789")])
			return true;
	}
	return false;
}

static int read_nic(struct topo *t, hwloc_obj_t obj)
{
	struct topo_nic *nic = topo_grow((void **)&t->nics, &t->n_nics, sizeof(*nic));
	const char *mac = hwloc_obj_get_info_by_name(obj, "Address");
	const char *port = hwloc_obj_get_info_by_name(obj, "Port");

	if (!nic)
		return -ENOMEM;
	topo_copy(nic->name, sizeof(nic->name), obj->name);
	nic->pci = pci_above(obj);
	nic->is_virtual = nic->pci < 0 && obj->parent->type != HWLOC_OBJ_BRIDGE;
	/* 20 bytes are IPoIB's, 6 are Ethernet's. */
	if (mac)
		nic->arphrd = strlen(mac) == 59 ? 32 : strlen(mac) == 17 ? 1 : 0;
	if (port) {
		unsigned long v = strtoul(port, NULL, 10);

		nic->dev_port = v > 0 && v < 256 ? (int)v - 1 : 0;
	}
	return locate(t, obj, &nic->numa, &nic->cpus);
}

static const char *port_info(hwloc_obj_t obj, unsigned port, const char *what)
{
	char key[32];

	snprintf(key, sizeof(key), "Port%u%s", port, what);
	return hwloc_obj_get_info_by_name(obj, key);
}

/** @return 0 or -ENOMEM */
static int read_port(
	hwloc_obj_t obj, struct topo_rdma *d, unsigned num, const struct topo_pci *function)
{
	static const char *const states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
	const char *state = port_info(obj, num, "State"), *lid = port_info(obj, num, "LID");

	if (!state && !lid)
		return 0;
	struct topo_rdma_port *p = topo_grow((void **)&d->ports, &d->n_ports, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->num = num;
	unsigned long v = state ? strtoul(state, NULL, 10) : 0;

	if (v > 0 && v < sizeof(states) / sizeof(*states)) {
		p->state = (unsigned)v;
		topo_copy(p->state_name, sizeof(p->state_name), states[v]);
	}
	/* An active InfiniBand port has a LID; RoCE has none (InfiniBand Architecture, annex A17).
	 * Without a word on LIDs the function's class tells of the first port: 0207 is
	 * InfiniBand's.
	 */
	bool class_ib = num == 1 && function && function->class_code >> 8 == 0x0207;

	if (lid ? strtoul(lid, NULL, 0) > 0 : class_ib)
		topo_copy(p->link_layer, sizeof(p->link_layer), "InfiniBand");
	else if (lid && p->state == 4 && !(function && function->vendor == 0x1d0f))
		topo_copy(p->link_layer, sizeof(p->link_layer), "Ethernet");
	return 0;
}

/**
 * A software RDMA device's interface: rxe makes its GUID of the interface's address by EUI-64 (the
 * universal bit flipped, ff:fe in the middle), and hwloc tells no other tie.
 */
static bool guid_is_of(const char *guid, const char *mac)
{
	unsigned g[4], m[6];

	return guid && mac && sscanf(guid, "%4x:%4x:%4x:%4x", &g[0], &g[1], &g[2], &g[3]) == 4 &&
	       sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]) ==
		       6 &&
	       g[0] == ((m[0] ^ 2) << 8 | m[1]) && g[1] == (m[2] << 8 | 0xff) &&
	       g[2] == (0xfe00 | m[3]) && g[3] == (m[4] << 8 | m[5]);
}

static int place_software(struct topo *t, struct topo_rdma *d, const char *guid)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_osdev(t->hwloc, obj))) {
		if (obj->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || !obj->name ||
			!obj->parent ||
			!guid_is_of(guid, hwloc_obj_get_info_by_name(obj, "Address")))
			continue;
		topo_copy(d->netdev, sizeof(d->netdev), obj->name);
		d->pci = pci_above(obj);
		free(d->cpus);
		return locate(t, obj, &d->numa, &d->cpus);
	}
	return 0;
}

static int read_rdma(struct topo *t, hwloc_obj_t obj)
{
	struct topo_rdma *d = topo_grow((void **)&t->rdma, &t->n_rdma, sizeof(*d));

	if (!d)
		return -ENOMEM;
	topo_copy(d->name, sizeof(d->name), obj->name);
	d->nic = TOPO_UNKNOWN;
	d->pci = pci_above(obj);
	d->soft = d->pci < 0;
	const struct topo_pci *function = d->pci >= 0 ? &t->pci[d->pci] : NULL;
	int rc = 0;

	for (unsigned num = 1; num < 256 && !rc; num++)
		rc = read_port(obj, d, num, function);
	if (!rc)
		rc = locate(t, obj, &d->numa, &d->cpus);
	if (!rc && d->soft)
		rc = place_software(t, d, hwloc_obj_get_info_by_name(obj, "NodeGUID"));
	return rc;
}

static int compare_nics(const void *a, const void *b)
{
	return strverscmp(((const struct topo_nic *)a)->name, ((const struct topo_nic *)b)->name);
}

static int compare_rdma(const void *a, const void *b)
{
	return strverscmp(((const struct topo_rdma *)a)->name, ((const struct topo_rdma *)b)->name);
}

/** The interfaces of an RDMA device's own function, by port; the only one serves all ports. */
static void join_netdevs(struct topo *t, struct topo_rdma *d)
{
	size_t same = 0;

	if (d->soft) {
		for (size_t i = 0; i < t->n_nics; i++)
			if (strcmp(t->nics[i].name, d->netdev) == 0)
				d->nic = (int)i;
		for (size_t k = 0; k < d->n_ports; k++)
			topo_copy(d->ports[k].netdev, sizeof(d->ports[k].netdev), d->netdev);
		return;
	}
	for (size_t i = 0; i < t->n_nics; i++)
		same += d->pci >= 0 && t->nics[i].pci == d->pci;
	for (size_t i = 0; i < t->n_nics && same; i++) {
		const struct topo_nic *nic = &t->nics[i];

		if (nic->pci != d->pci)
			continue;
		for (size_t k = 0; k < d->n_ports; k++)
			if (same == 1 || (unsigned)nic->dev_port + 1 == d->ports[k].num)
				topo_copy(
					d->ports[k].netdev, sizeof(d->ports[k].netdev), nic->name);
		if (!d->netdev[0] && (same == 1 || nic->dev_port == 0)) {
			topo_copy(d->netdev, sizeof(d->netdev), nic->name);
			d->nic = (int)i;
		}
	}
}

static int read_osdevs(struct topo *t)
{
	hwloc_obj_t obj = NULL;
	int rc = 0;

	while (!rc && (obj = hwloc_get_next_osdev(t->hwloc, obj))) {
		hwloc_obj_osdev_type_t type = obj->attr->osdev.type;

		if (!obj->name || !obj->parent)
			continue;
		if (type == HWLOC_OBJ_OSDEV_OPENFABRICS ||
			(type == HWLOC_OBJ_OSDEV_NETWORK && named_as_rdma(obj->name)))
			rc = read_rdma(t, obj);
		else if (type == HWLOC_OBJ_OSDEV_NETWORK)
			rc = read_nic(t, obj);
	}
	if (rc)
		return rc;
	if (t->n_nics)
		qsort(t->nics, t->n_nics, sizeof(*t->nics), compare_nics);
	if (t->n_rdma)
		qsort(t->rdma, t->n_rdma, sizeof(*t->rdma), compare_rdma);
	for (size_t i = 0; i < t->n_rdma; i++)
		join_netdevs(t, &t->rdma[i]);
	return 0;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static int read_gpus(struct topo *t)
{
	hwloc_obj_t obj = NULL;

	for (size_t i = 0; i < t->n_pci; i++) {
		if (!topo_is_gpu(&t->pci[i]))
			continue;
		struct topo_gpu *g = topo_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g));

		if (!g)
			return -ENOMEM;
		snprintf(g->name, sizeof(g->name), "GPU%zu", t->n_gpus - 1);
		g->pci = (int)i;
	}
	while ((obj = hwloc_get_next_osdev(t->hwloc, obj))) {
		const char *model = hwloc_obj_get_info_by_name(obj, "GPUModel");
		int pci = model && *model ? pci_above(obj) : TOPO_UNKNOWN;

		for (size_t i = 0; i < t->n_gpus && pci >= 0; i++)
			if (t->gpus[i].pci == pci && !t->gpus[i].model &&
				!(t->gpus[i].model = strdup(model)))
				return -ENOMEM;
	}
	return 0;
}

/** Makers and products by which firmware tells a guest; systemd's list, what of it is for sure. */
static bool is_guest(hwloc_obj_t root)
{
	static const char *const keys[] = {"DMISysVendor", "DMIChassisVendor", "DMIBoardVendor",
		"DMIBIOSVendor", "DMIProductName"};
	static const char *const words[] = {"QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Bochs",
		"Parallels", "BHYVE", "Standard PC (", "Virtual Machine"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *v = hwloc_obj_get_info_by_name(root, keys[i]);

		for (size_t k = 0; v && k < sizeof(words) / sizeof(*words); k++)
			if (strncmp(v, words[k], strlen(words[k])) == 0)
				return true;
	}
	return false;
}

/* ---- the file -------------------------------------------------------------------------------- */

int topo_parse_hwloc_xml(
	const char *xml, size_t len, const char *what, struct topo **out, struct fb_err *e)
{
	*out = NULL;
	int rc = topo_check_hwloc_xml(xml, len, what, e);

	if (rc)
		return rc;
	struct topo *t = calloc(1, sizeof(*t));

	if (!t)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the topology");
	t->source = TOPO_FROM_HWLOC_XML;
	rc = topo_import_hwloc_xml(xml, len, what, &t->hwloc, e);
	if (!rc)
		rc = topo_read_hwloc(t);
	if (!rc)
		rc = read_pci(t);
	if (!rc)
		rc = read_osdevs(t);
	if (!rc)
		rc = read_gpus(t);
	if (!rc)
		rc = topo_read_fast(t);
	if (rc) {
		topo_free(t);
		return fb_fail(e, rc == -EFBIG ? FB_EXIT_USAGE : FB_EXIT_UNMEASURED, rc,
			"cannot read %s: %s", what, strerror(-rc));
	}
	t->virtual_machine = is_guest(hwloc_get_root_obj(t->hwloc));
	if (!t->n_pci)
		topo_warn(t, "this file holds no PCI devices (lstopo leaves them out without --io "
			     "and by --no-io)");
	*out = t;
	return 0;
}

int topo_load_hwloc_xml(const char *path, struct topo **out, struct fb_err *e)
{
	char *text;
	size_t len;

	*out = NULL;
	int rc = fb_read_file(path, MAX_FILE, &text, &len, e);

	if (rc < 0)
		return rc;
	rc = topo_parse_hwloc_xml(text, len, path, out, e);
	free(text);
	return rc;
}
