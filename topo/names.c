// SPDX-License-Identifier: Apache-2.0
/*
 * Words for PCI vendors and classes, and which of them do RDMA. Only what stands in AI nodes: this
 * is no pci.ids.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "topo/topo_priv.h"

static const struct {
	uint16_t id;
	const char *name;
} vendors[] = {
	{0x10de, "NVIDIA"},
	{0x1002, "AMD"},
	{0x1022, "AMD"},
	{0x8086, "Intel"},
	{0x15b3, "Mellanox"},
	{0x14e4, "Broadcom"},
	{0x1000, "Broadcom/LSI"},
	{0x10b5, "PLX"},
	{0x11f8, "Microchip"},
	{0x1425, "Chelsio"},
	{0x1d0f, "Amazon"},
	{0x1077, "Marvell/QLogic"},
	{0x1dd8, "AMD Pensando"},
	{0x1414, "Microsoft"},
	{0x1af4, "virtio"},
	{0x1b36, "QEMU"},
	{0x1ae0, "Google"},
	{0x1a03, "ASPEED"},
	{0x102b, "Matrox"},
	{0x144d, "Samsung"},
	{0x1fc1, "QLogic"},
	{0x1014, "IBM"},
	{0x104c, "Texas Instruments"},
	{0x1344, "Micron"},
	{0x1e0f, "Kioxia"},
};

const char *topo_vendor_name(uint16_t vendor)
{
	for (size_t i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
		if (vendors[i].id == vendor)
			return vendors[i].name;
	return NULL;
}

static const struct {
	uint16_t id, mask;
	const char *name;
} classes[] = {
	{0x0106, 0xffff, "SATA controller"},
	{0x0108, 0xffff, "NVMe drive"},
	{0x0100, 0xff00, "storage controller"},
	{0x0200, 0xffff, "Ethernet controller"},
	{0x0207, 0xffff, "InfiniBand controller"},
	{0x0208, 0xffff, "fabric controller"},
	{0x0200, 0xff00, "network controller"},
	{0x0300, 0xffff, "VGA controller"},
	{0x0302, 0xffff, "3D controller"},
	{0x0300, 0xff00, "display controller"},
	{0x0400, 0xff00, "multimedia device"},
	{0x0500, 0xff00, "memory controller"},
	{0x0600, 0xffff, "host bridge"},
	{0x0604, 0xffff, "PCI bridge"},
	{0x0680, 0xffff, "bridge"},
	{0x0600, 0xff00, "bridge"},
	{0x0c06, 0xffff, "InfiniBand (old class)"},
	{0x0c03, 0xffff, "USB controller"},
	{0x0b40, 0xffff, "co-processor"},
	{0x1200, 0xffff, "accelerator"},
};

const char *topo_class_name(uint32_t class_code)
{
	uint16_t cls = (uint16_t)(class_code >> 8);

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if ((cls & classes[i].mask) == classes[i].id)
			return classes[i].name;
	return "device";
}

/*
 * Functions of class Ethernet (or network) that a Linux RDMA driver binds to. Sources: the kernel's
 * device tables (mlx4, mlx5, bnxt_re, irdma/ice/i40e, iw_cxgb4, efa, qedr, ionic_rdma, mana).
 */
static const struct rdma_id {
	uint16_t vendor, first, last;
	const char *driver; /* the driver that makes the RDMA device */
} rdma_ids[] = {
	{0x15b3, 0x1002, 0x1010, "mlx4_ib"},
	{0x15b3, 0x1011, 0x10ff, "mlx5_ib"},
	{0x15b3, 0xa2d2, 0xa2df, "mlx5_ib"},  /* BlueField */
	{0x14e4, 0x16c0, 0x16f1, "bnxt_re"},  /* NetXtreme-C/E, 573xx and 574xx */
	{0x14e4, 0x1750, 0x1752, "bnxt_re"},  /* BCM575xx */
	{0x14e4, 0x1760, 0x1760, "bnxt_re"},  /* BCM57608 */
	{0x14e4, 0x1806, 0x1809, "bnxt_re"},  /* its VFs */
	{0x8086, 0x1591, 0x159b, "irdma"},    /* E810 */
	{0x8086, 0x1889, 0x1889, "irdma"},    /* its VFs */
	{0x8086, 0x37cc, 0x37d3, "irdma"},    /* X722 */
	{0x1425, 0x5000, 0x6fff, "iw_cxgb4"}, /* T5, T6 */
	{0x1d0f, 0xefa0, 0xefaf, "efa"},
	{0x1077, 0x1629, 0x1664, "qedr"}, /* FastLinQ 45000 */
	{0x1077, 0x8070, 0x8090, "qedr"}, /* FastLinQ 41000 */
	{0x1dd8, 0x1002, 0x1003, "ionic_rdma"},
	{0x1414, 0x00ba, 0x00bb, "mana_ib"},
};

static const struct rdma_id *rdma_function(uint32_t class_code, uint16_t vendor, uint16_t device)
{
	static const struct rdma_id infiniband = {0, 0, 0, "the InfiniBand driver"};
	uint32_t cls = class_code >> 8;

	/* 0x0c06 is what InfiniBand functions said before the class 0x0207 existed. */
	if (cls == 0x0207 || cls == 0x0c06)
		return &infiniband;
	if (cls >> 8 != 0x02)
		return NULL;
	for (size_t i = 0; i < sizeof(rdma_ids) / sizeof(*rdma_ids); i++)
		if (rdma_ids[i].vendor == vendor && device >= rdma_ids[i].first &&
			device <= rdma_ids[i].last)
			return &rdma_ids[i];
	return NULL;
}

bool topo_does_rdma(const struct topo_pci *p)
{
	return rdma_function(p->class_code, p->vendor, p->device) != NULL;
}

/** Has this function an RDMA device? Some drivers (bnxt_re, irdma) bind to an auxiliary device
 * below it, so the way goes from the RDMA devices. */
static bool has_rdma_device(const struct fb_sysroot *r, const char *bdf, char *name, size_t len)
{
	char **devs;
	char path[TOPO_PATH_LEN], real[TOPO_PATH_LEN], at[24];
	int n = fb_sysroot_list(r, "/sys/class/infiniband", &devs);
	bool found = false;

	for (int i = 0; i < n && !found; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/device", devs[i]);
		if (fb_sysroot_realpath(r, path, real, sizeof(real)) != 0 ||
			!topo_last_bdf(real, at, sizeof(at)) || strcmp(at, bdf) != 0)
			continue;
		topo_copy(name, len, devs[i]);
		found = true;
	}
	if (n >= 0)
		fb_sysroot_names_free(devs);
	return found;
}

/** @return as topo_rdma_hardware(), for one function */
static int judge(const struct fb_sysroot *r, const char *bdf, char *why, size_t len)
{
	char path[TOPO_PATH_LEN], driver[TOPO_NAME], name[TOPO_NAME];
	int64_t cls, vendor, device;

	if (fb_sysroot_read_i64(r, &cls, "/sys/bus/pci/devices/%.24s/class", bdf) != 0)
		return 0;
	if (fb_sysroot_read_i64(r, &vendor, "/sys/bus/pci/devices/%.24s/vendor", bdf) != 0)
		vendor = 0;
	if (fb_sysroot_read_i64(r, &device, "/sys/bus/pci/devices/%.24s/device", bdf) != 0)
		device = 0;
	const struct rdma_id *id = rdma_function((uint32_t)cls, (uint16_t)vendor, (uint16_t)device);

	if (!id)
		return 0;
	const char *maker = topo_vendor_name((uint16_t)vendor);

	if (has_rdma_device(r, bdf, name, sizeof(name))) {
		snprintf(why, len, "%s %s [%04x:%04x] has RDMA device %s", bdf, maker ? maker : "",
			(unsigned)vendor, (unsigned)device, name);
		return 1;
	}
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.24s/driver", bdf);
	topo_link_name(r, path, driver, sizeof(driver));
	if (!driver[0])
		snprintf(why, len,
			"%s %s [%04x:%04x] can do RDMA, but no driver is bound to it (expected: %s)",
			bdf, maker ? maker : "", (unsigned)vendor, (unsigned)device, id->driver);
	else if (strncmp(driver, "vfio", 4) == 0 || strcmp(driver, "uio_pci_generic") == 0 ||
		 strcmp(driver, "pci-stub") == 0)
		snprintf(why, len,
			"%s %s [%04x:%04x] can do RDMA, but %s has given it away (to a "
			"virtual machine or a user program)",
			bdf, maker ? maker : "", (unsigned)vendor, (unsigned)device, driver);
	else
		snprintf(why, len,
			"%s %s [%04x:%04x] can do RDMA and has driver %s, but no RDMA device: is %s "
			"loaded?",
			bdf, maker ? maker : "", (unsigned)vendor, (unsigned)device, driver,
			id->driver);
	return 2;
}

int topo_rdma_hardware(const struct fb_sysroot *r, char *why, size_t len)
{
	char **names, text[256];
	int n = fb_sysroot_list(r, "/sys/bus/pci/devices", &names), best = 0;

	snprintf(why, len, "no PCI function of an RDMA device");
	if (n < 0)
		return n == -ENOENT || n == -ENOTDIR ? 0 : n;
	for (int i = 0; i < n && i < TOPO_MAX_PCI && best != 1; i++) {
		if (!topo_bdf_len(names[i]))
			continue;
		int verdict = judge(r, names[i], text, sizeof(text));

		if (verdict == 0 || (verdict == 2 && best == 2))
			continue;
		best = verdict;
		snprintf(why, len, "%s", text);
	}
	fb_sysroot_names_free(names);
	return best;
}
