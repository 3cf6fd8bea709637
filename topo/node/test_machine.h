/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: a recorded node with GPUs, whole or with something missing. Switches of one make,
 * half of them on each socket, each with two GPUs and two NICs; every file that a check of the node
 * reads is there and good. Constructed: shape and numbers are ours, the formats are the kernel's
 * and nvidia-smi's.
 */
#ifndef TOPO_NODE_TEST_MACHINE_H
#define TOPO_NODE_TEST_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/test_nodes.h"

struct machine {
	const char *host;
	int switches;    /* 4: eight GPUs, eight NICs; 2: four of each */
	int without_gpu; /* index of one that is not there; -1 */
	int without_nic;
	int short_link; /* GPU with one NVLink down; -1 */
};

#define MACHINE(host_name)               \
	{                                \
		host_name, 4, -1, -1, -1 \
	}

static inline void machine_bytes(
	const struct test_tree *tree, const char *path, const uint8_t *data, size_t n)
{
	char full[4096];

	tree_write(tree, path, "");
	tree_join(full, sizeof(full), "%s%s", tree->dir, path);
	FILE *f = fopen(full, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
		tree_fail("write", full);
}

static inline void machine_u16(uint8_t *c, size_t at, unsigned v)
{
	c[at] = (uint8_t)v;
	c[at + 1] = (uint8_t)(v >> 8);
}

/** Configuration space with a PCI Express capability, ACS and ATS. payload 2: 512 bytes. */
static inline void machine_config(
	const struct test_tree *tree, const char *bdf, unsigned control, unsigned acs, unsigned ats)
{
	uint8_t c[4096] = {0};
	char path[128];

	machine_u16(c, 0, 0x15b3);
	c[0x34] = 0x40;
	c[0x40] = 0x10;
	machine_u16(c, 0x44, 2);
	machine_u16(c, 0x48, control);
	machine_u16(c, 0x100, 0x000d);
	machine_u16(c, 0x102, 0x140 << 4 | 1);
	machine_u16(c, 0x106, acs);
	machine_u16(c, 0x140, 0x000f);
	machine_u16(c, 0x142, 1);
	machine_u16(c, 0x146, ats);
	tree_join(path, sizeof(path), "/sys/bus/pci/devices/%s/config", bdf);
	machine_bytes(tree, path, c, sizeof(c));
}
/* Device Control: read requests of 4096, payload of 512, relaxed ordering. */
#define MACHINE_CONTROL (5u << 12 | 2u << 5 | 0x10)

static inline unsigned machine_bus(int sw)
{
	static const unsigned buses[] = {0x10, 0x40, 0x80, 0xb0};

	return buses[sw];
}

/** PCI address of GPU or NIC `i`. */
static inline const char *machine_bdf(bool nic, int i, char buf[16])
{
	snprintf(buf, 16, "0000:%02x:00.0", machine_bus(i / 2) + 3 + (nic ? 2 : 0) + i % 2);
	return buf;
}

static inline void machine_function(
	const struct test_tree *tree, const char *path, const char *bdf, int numa)
{
	char dir[256], group[96], link[300];

	tree_join(dir, sizeof(dir), "/sys/devices/%s", path);
	tree_file(tree, dir, "revision", "0xa1\n");
	tree_file(tree, dir, "local_cpulist", "%s\n", numa ? "4-7" : "0-3");
	tree_file(tree, dir, "resource",
		"0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
		"0x0000202000000000 0x0000203fffffffff 0x000000000014220c\n");
	tree_file(tree, dir, "aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0\n");
	tree_file(tree, dir, "aer_dev_nonfatal", "DLP 0\nTOTAL_ERR_NONFATAL 0\n");
	tree_file(tree, dir, "aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0\n");
	tree_join(group, sizeof(group), "/sys/kernel/iommu_groups/%u",
		(unsigned)strtoul(bdf + 5, NULL, 16));
	tree_file(tree, group, "type", "identity\n");
	tree_join(link, sizeof(link), "%s/iommu_group", dir);
	tree_link(tree, link, group);
	machine_config(tree, bdf, MACHINE_CONTROL, 0, 0x8000);
}

static inline void machine_nic(
	const struct test_tree *tree, const char *path, const char *bdf, int i, int numa)
{
	static const char *const errors[] = {"link_downed", "symbol_error", "link_error_recovery",
		"local_link_integrity_errors", "excessive_buffer_overrun_errors"};
	static const char *const hw[] = {"local_ack_timeout_err", "rnr_nak_retry_err",
		"roce_adp_retrans_to", "out_of_sequence", "packet_seq_err"};
	char name[16], dir[128], irq[64];

	tree_join(name, sizeof(name), "mlx5_%d", i);
	tree_rdma(tree, name, path, NULL, "1: CA", "InfiniBand", "400 Gb/sec (4X NDR)");
	tree_join(dir, sizeof(dir), "/sys/class/infiniband/%s", name);
	tree_file(tree, dir, "board_id", "MT_0000000838\n");
	tree_join(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/1/counters", name);
	for (size_t k = 0; k < 5; k++)
		tree_file(tree, dir, errors[k], "0\n");
	tree_join(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/1/hw_counters", name);
	for (size_t k = 0; k < 5; k++)
		tree_file(tree, dir, hw[k], "0\n");
	tree_join(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/1/pkeys", name);
	tree_file(tree, dir, "0", "0xffff\n");
	tree_file(tree, dir, "1", "0x0000\n");
	tree_join(dir, sizeof(dir), "/sys/bus/pci/devices/%s/msi_irqs", bdf);
	tree_join(irq, sizeof(irq), "%d", 100 + i);
	tree_file(tree, dir, irq, "msix\n");
	tree_join(dir, sizeof(dir), "/proc/irq/%d", 100 + i);
	tree_file(tree, dir, "effective_affinity_list", "%d\n", 4 * numa + i % 4);
}

static inline void machine_switch(const struct test_tree *tree, const struct machine *m, int sw)
{
	unsigned bus = machine_bus(sw);
	int numa = sw >= m->switches / 2;
	char path[4][160], bdf[16];
	struct tree_pci p = {path[0], BRIDGE, 0x8086, 0x352a, numa, GEN5, GEN5, 16, 16, "pcieport"};

	tree_join(path[0], 160, "pci0000:%02x/0000:%02x:01.0", bus, bus);
	tree_pci(tree, &p);
	tree_join(path[1], 160, "%s/0000:%02x:00.0", path[0], bus + 1);
	p = (struct tree_pci){
		path[1], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"};
	tree_pci(tree, &p);
	for (int k = 0; k < 4; k++) {
		int i = 2 * sw + k % 2;
		bool nic = k >= 2;

		tree_join(path[2], 160, "%s/0000:%02x:%02x.0", path[1], bus + 2, (unsigned)k);
		p = (struct tree_pci){
			path[2], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"};
		tree_pci(tree, &p);
		tree_join(bdf, sizeof(bdf), "0000:%02x:%02x.0", bus + 2, (unsigned)k);
		machine_config(tree, bdf, MACHINE_CONTROL, 0, 0);
		if (i == (nic ? m->without_nic : m->without_gpu))
			continue;
		machine_bdf(nic, i, bdf);
		tree_join(path[3], 160, "%s/%s", path[2], bdf);
		p = (struct tree_pci){path[3], nic ? 0x020700 : 0x030200, nic ? MLX : NVIDIA,
			nic ? 0x1021 : 0x2330, numa, GEN5, GEN5, 16, 16,
			nic ? "mlx5_core" : "nvidia"};
		tree_pci(tree, &p);
		machine_function(tree, path[3], bdf, numa);
		if (nic)
			machine_nic(tree, path[3], bdf, i, numa);
	}
	tree_join(bdf, sizeof(bdf), "0000:%02x:01.0", bus);
	machine_config(tree, bdf, MACHINE_CONTROL, 0, 0);
	tree_join(bdf, sizeof(bdf), "0000:%02x:00.0", bus + 1);
	machine_config(tree, bdf, MACHINE_CONTROL, 0, 0);
}

/** What nvidia-smi -q prints of one GPU, the lines that are read among some that are not. */
static inline void machine_smi_gpu(FILE *f, const char *bdf)
{
	fprintf(f,
		"\nGPU 0000%s\n"
		"    Product Name                          : NVIDIA H100 80GB HBM3\n"
		"    Persistence Mode                      : Enabled\n"
		"    PCI\n"
		"        Bus Id                            : 0000%s\n"
		"    Performance State                     : P0\n"
		"    Clocks Event Reasons\n"
		"        Idle                              : Active\n"
		"        SW Power Cap                      : Not Active\n"
		"        HW Slowdown                       : Not Active\n"
		"            HW Thermal Slowdown           : Not Active\n"
		"            HW Power Brake Slowdown       : Not Active\n"
		"        SW Thermal Slowdown               : Not Active\n"
		"    FB Memory Usage\n"
		"        Total                             : 81559 MiB\n"
		"        Used                              : 0 MiB\n"
		"    BAR1 Memory Usage\n"
		"        Total                             : 131072 MiB\n"
		"    Utilization\n"
		"        Gpu                               : 0 %%\n"
		"    ECC Mode\n"
		"        Current                           : Enabled\n"
		"        Pending                           : Enabled\n"
		"    ECC Errors\n"
		"        Volatile\n"
		"            SRAM Correctable              : 0\n"
		"            SRAM Uncorrectable Parity     : 0\n"
		"            SRAM Uncorrectable SEC-DED    : 0\n"
		"            DRAM Correctable              : 0\n"
		"            DRAM Uncorrectable            : 0\n"
		"        Aggregate\n"
		"            SRAM Correctable              : 0\n"
		"            DRAM Uncorrectable            : 0\n"
		"    Remapped Rows\n"
		"        Correctable Error                 : 0\n"
		"        Uncorrectable Error               : 0\n"
		"        Pending                           : No\n"
		"        Remapping Failure Occurred        : No\n"
		"    GPU Power Readings\n"
		"        Power Draw                        : 71.20 W\n"
		"        Current Power Limit               : 700.00 W\n"
		"        Default Power Limit               : 700.00 W\n"
		"    Fabric\n"
		"        State                             : Completed\n"
		"        Status                            : Success\n"
		"        CliqueId                          : 0\n"
		"        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n",
		bdf, bdf);
}

static inline void machine_smi(const struct test_tree *tree, const struct machine *m)
{
	char full[128], bdf[16];
	int n = 0;

	tree_join(full, sizeof(full), "%s/nvidia-smi-q.txt", tree->dir);
	FILE *q = fopen(full, "w");

	tree_join(full, sizeof(full), "%s/nvidia-smi-nvlink.txt", tree->dir);
	FILE *links = fopen(full, "w");

	if (!q || !links)
		tree_fail("open", full);
	fputs("==============NVSMI LOG==============\n\nDriver Version                            : "
	      "550.54.15\nAttached GPUs                             : 8\n",
		q);
	for (int i = 0; i < 2 * m->switches; i++) {
		if (i == m->without_gpu)
			continue;
		machine_smi_gpu(q, machine_bdf(false, i, bdf));
		fprintf(links, "GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n", n++);
		for (int k = 0; k < 18; k++)
			fprintf(links, "\t Link %d: %s\n", k,
				i == m->short_link && k == 7 ? "<inactive>" : "26.562 GB/s");
	}
	fclose(q);
	fclose(links);
}

static inline void machine_host(const struct test_tree *tree, const struct machine *m)
{
	char dir[128];

	tree_file(tree, "/sys/class/dmi/id", "sys_vendor", "Constructed\n");
	tree_file(tree, "/sys/class/dmi/id", "product_name", "Eight\n");
	tree_file(tree, "/proc/sys/kernel", "hostname", "%s\n", m->host);
	tree_file(tree, "/proc/sys/kernel", "osrelease", "5.15.0-91-generic\n");
	tree_file(tree, "/proc/sys/kernel", "numa_balancing", "0\n");
	tree_file(tree, "/proc/driver/nvidia", "version",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15\n");
	tree_file(tree, "/sys/module/nvidia", "version", "550.54.15\n");
	tree_file(tree, "/sys/module/mlx5_core", "version", "23.10-1.1.9\n");
	tree_mkdir(tree, "/sys/class/iommu");
	tree_file(tree, "/proc", "uptime", "86400.00 1.00\n");
	tree_file(tree, "/proc/self", "limits",
		"Max locked memory         unlimited            unlimited            bytes\n");
	tree_file(tree, "/proc/self", "status",
		"Name:\tx\nCapEff:\t0000000000000000\n"
		"Cpus_allowed_list:\t0-7\n");
	tree_file(
		tree, "/sys/kernel/mm/transparent_hugepage", "enabled", "always [madvise] never\n");
	tree_file(tree, "/sys/devices/system/clocksource/clocksource0", "current_clocksource",
		"tsc\n");
	for (int i = 0; i < 8; i++) {
		tree_join(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d/cpufreq", i);
		tree_file(tree, dir, "scaling_governor", "performance\n");
		tree_join(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d/cpuidle/state0", i);
		tree_file(tree, dir, "latency", "2\n");
		tree_file(tree, dir, "name", "C1\n");
	}
	for (int i = 0; i < 2; i++) {
		tree_join(dir, sizeof(dir),
			"/sys/devices/system/node/node%d/hugepages/hugepages-2048kB", i);
		tree_file(tree, dir, "nr_hugepages", "0\n");
	}
	tree_write(tree, "/env", "NCCL_DEBUG=WARN\n");
	tree_write(tree, "/dmesg.txt", "[    0.000000] Linux version 5.15.0-91-generic\n");
}

/** A folder in memory where there is one: a node is a thousand small files. */
static inline void machine_tree(struct test_tree *tree)
{
	snprintf(tree->dir, sizeof(tree->dir), "/dev/shm/fabricbench-tree-XXXXXX");
	if (!mkdtemp(tree->dir))
		tree_new(tree);
}

/** Make all of it. */
static inline void machine_make(const struct test_tree *tree, const struct machine *m)
{
	tree_cpus(tree, 2, 4, "Constructed CPU", "tsc");
	machine_host(tree, m);
	for (int i = 0; i < m->switches; i++)
		machine_switch(tree, m, i);
	machine_smi(tree, m);
}

#endif
