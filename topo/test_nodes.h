/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: whole constructed machines. What each holds is told above its function.
 */
#ifndef TOPO_TEST_NODES_H
#define TOPO_TEST_NODES_H

#include "topo/test_tree.h"

#define GEN4   "16.0 GT/s PCIe"
#define GEN5   "32.0 GT/s PCIe"
#define BRIDGE 0x060400
#define NVIDIA 0x10de
#define MLX    0x15b3

static inline void node_add(const struct test_tree *tree, const struct tree_pci *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tree_pci(tree, &list[i]);
}

/*
 * Two sockets. Node 0: root 10 with one switch holding GPU0 and mlx5_0, and on that switch a second
 * switch with GPU1 (PXB); a second root port of root 10 with mlx5_1 (PHB), down-trained to x8; root
 * 20 with eth0 (NODE). Node 1: root 80, a switch with GPU2, idle at Gen1, and mlx5_2; an Ethernet
 * function bound to vfio. A BMC's VGA that is no GPU.
 */
static inline void node_gpus(const struct test_tree *tree)
{
#define P0 "pci0000:10/0000:10:01.0"
#define S0 P0 "/0000:11:00.0"
#define S1 S0 "/0000:12:02.0/0000:15:00.0"
#define P1 "pci0000:80/0000:80:01.0"
#define S2 P1 "/0000:81:00.0"
	static const struct tree_pci list[] = {
		{P0, BRIDGE, 0x8086, 0x352a, 0, GEN5, GEN5, 16, 16, "pcieport"},
		{S0, BRIDGE, 0x1000, 0xc030, 0, GEN5, GEN5, 16, 16, "pcieport"},
		{S0 "/0000:12:00.0", BRIDGE, 0x1000, 0xc030, 0, GEN5, GEN5, 16, 16, "pcieport"},
		{S0 "/0000:12:01.0", BRIDGE, 0x1000, 0xc030, 0, GEN5, GEN5, 16, 16, "pcieport"},
		{S0 "/0000:12:02.0", BRIDGE, 0x1000, 0xc030, 0, GEN4, GEN5, 16, 16, "pcieport"},
		{S0 "/0000:12:00.0/0000:13:00.0", 0x030200, NVIDIA, 0x2330, 0, GEN5, GEN5, 16, 16,
			"nvidia"},
		{S0 "/0000:12:01.0/0000:14:00.0", 0x020700, MLX, 0x1021, 0, GEN5, GEN5, 16, 16,
			"mlx5_core"},
		{S1, BRIDGE, 0x1000, 0xc030, 0, GEN4, GEN4, 16, 16, "pcieport"},
		{S1 "/0000:16:00.0", BRIDGE, 0x1000, 0xc030, 0, GEN4, GEN4, 16, 16, "pcieport"},
		{S1 "/0000:16:00.0/0000:17:00.0", 0x030200, NVIDIA, 0x2330, 0, GEN4, GEN5, 16, 16,
			"nvidia"},
		{"pci0000:10/0000:10:03.0", BRIDGE, 0x8086, 0x352b, 0, GEN5, GEN5, 8, 16,
			"pcieport"},
		{"pci0000:10/0000:10:03.0/0000:18:00.0", 0x020000, MLX, 0x1021, 0, GEN5, GEN5, 8,
			16, "mlx5_core"},
		{"pci0000:20/0000:20:01.0", BRIDGE, 0x8086, 0x352a, 0, GEN4, GEN4, 8, 8,
			"pcieport"},
		{"pci0000:20/0000:20:01.0/0000:21:00.0", 0x020000, 0x8086, 0x1533, 0,
			"2.5 GT/s PCIe", "2.5 GT/s PCIe", 1, 1, "igb"},
		{"pci0000:20/0000:20:1d.0", 0x030000, 0x1a03, 0x2000, 0, NULL, NULL, 0, 0, "ast"},
		{P1, BRIDGE, 0x8086, 0x352a, 1, GEN5, GEN5, 16, 16, "pcieport"},
		{S2, BRIDGE, 0x1000, 0xc030, 1, GEN5, GEN5, 16, 16, "pcieport"},
		{S2 "/0000:82:00.0", BRIDGE, 0x1000, 0xc030, 1, "2.5 GT/s PCIe", GEN5, 16, 16,
			"pcieport"},
		{S2 "/0000:82:01.0", BRIDGE, 0x1000, 0xc030, 1, GEN5, GEN5, 16, 16, "pcieport"},
		{S2 "/0000:82:00.0/0000:83:00.0", 0x030200, NVIDIA, 0x2330, 1, "2.5 GT/s PCIe",
			GEN5, 16, 16, "nvidia"},
		{S2 "/0000:82:01.0/0000:84:00.0", 0x020700, MLX, 0x1021, 1, GEN5, GEN5, 16, 16,
			"mlx5_core"},
		{"pci0000:80/0000:80:05.0", BRIDGE, 0x8086, 0x352c, 1, "Unknown", "Unknown", 0, 255,
			NULL},
		{"pci0000:80/0000:80:05.0/0000:86:00.0", 0x020000, 0x8086, 0x1592, -1, GEN4, GEN4,
			16, 16, "vfio-pci"},
	};

	tree_cpus(tree, 2, 4, "Constructed CPU <A&B>", "tsc");
	node_add(tree, list, sizeof(list) / sizeof(*list));
	tree_netdev(tree, "ib0", S0 "/0000:12:01.0/0000:14:00.0", 32, 400000);
	tree_netdev(tree, "eth1", "pci0000:10/0000:10:03.0/0000:18:00.0", 1, 200000);
	tree_netdev(tree, "eth0", "pci0000:20/0000:20:01.0/0000:21:00.0", 1, 1000);
	tree_netdev(tree, "ib2", S2 "/0000:82:01.0/0000:84:00.0", 32, 400000);
	tree_netdev(tree, "lo", NULL, 772, 0);
	tree_rdma(tree, "mlx5_0", S0 "/0000:12:01.0/0000:14:00.0", NULL, "1: CA", "InfiniBand",
		"400 Gb/sec (4X NDR)");
	tree_rdma(tree, "mlx5_1", "pci0000:10/0000:10:03.0/0000:18:00.0", NULL, "1: CA", "Ethernet",
		"200 Gb/sec (4X HDR)");
	tree_rdma(tree, "mlx5_2", S2 "/0000:82:01.0/0000:84:00.0", NULL, "1: CA", "InfiniBand",
		"400 Gb/sec (4X NDR)");
	tree_file(tree, "/proc/driver/nvidia/gpus/0000:13:00.0", "information",
		"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 16\n");
#undef P0
#undef S0
#undef S1
#undef P1
#undef S2
}

/*
 * Two sockets, one Ethernet NIC each. rxe0 stands on eth1 (node 1), siw0 on a VLAN-like virtual
 * interface whose place nobody knows, rxe9 on an interface that is gone.
 */
static inline void node_soft(const struct test_tree *tree)
{
	static const struct tree_pci list[] = {
		{"pci0000:00/0000:00:03.0", 0x020000, 0x8086, 0x1533, 0, GEN4, GEN4, 4, 4, "igb"},
		{"pci0000:80/0000:80:03.0", 0x020000, 0x8086, 0x1533, 1, GEN4, GEN4, 4, 4, "igb"},
	};

	tree_cpus(tree, 2, 2, "Constructed CPU", "tsc");
	node_add(tree, list, sizeof(list) / sizeof(*list));
	tree_netdev(tree, "eth0", "pci0000:00/0000:00:03.0", 1, 10000);
	tree_netdev(tree, "eth1", "pci0000:80/0000:80:03.0", 1, 10000);
	tree_netdev(tree, "vlan7", NULL, 1, 10000);
	tree_rdma(tree, "rxe0", NULL, "eth1", "1: CA", "Ethernet", "2.5 Gb/sec (1X SDR)");
	tree_rdma(tree, "rxe9", NULL, "gone0", "1: CA", "Ethernet", "2.5 Gb/sec (1X SDR)");
	tree_rdma(tree, "siw0", NULL, "vlan7", "4: RNIC", "Ethernet", "2.5 Gb/sec (1X SDR)");
}

/* A guest as clouds make them: GPUs and NICs flat on one root bus, numa_node -1, two sockets. */
static inline void node_guest(const struct test_tree *tree)
{
	static const struct tree_pci list[] = {
		{"pci0000:00/0000:00:05.0", 0x030200, NVIDIA, 0x2330, -1, GEN4, GEN4, 16, 16,
			"nvidia"},
		{"pci0000:00/0000:00:06.0", 0x120000, 0x1002, 0x74a1, -1, GEN4, GEN4, 16, 16,
			"amdgpu"},
		{"pci0000:00/0000:00:08.0", 0x020000, MLX, 0x101e, -1, GEN4, GEN4, 16, 16,
			"mlx5_core"},
		{"pci0000:00/0000:00:09.0", 0x020000, MLX, 0x101e, -1, GEN4, GEN4, 16, 16,
			"mlx5_core"},
	};

	tree_cpus(tree, 2, 2, "Constructed guest", "hypervisor tsc");
	node_add(tree, list, sizeof(list) / sizeof(*list));
	tree_rdma(tree, "mlx5_0", "pci0000:00/0000:00:08.0", NULL, "1: CA", "Ethernet",
		"200 Gb/sec (4X HDR)");
	tree_rdma(tree, "mlx5_1", "pci0000:00/0000:00:09.0", NULL, "1: CA", "Ethernet",
		"200 Gb/sec (4X HDR)");
}

/** A cpumap of sysfs: 32-bit words with commas, for CPUs first..first+n-1 and the same 128 higher.
 */
static inline void large_map(char *buf, size_t len, int first, int n)
{
	uint32_t words[8] = {0};

	for (int c = first; c < first + n; c++) {
		words[c / 32] |= 1u << c % 32;
		words[(c + 128) / 32] |= 1u << (c + 128) % 32;
	}
	buf[0] = '\0';
	for (int i = 8; i-- > 0;)
		snprintf(buf + strlen(buf), len - strlen(buf), "%08x%s", words[i], i ? "," : "\n");
}

/** Two sockets, four NUMA nodes each, 128 cores with two threads. */
static inline void large_cpus(const struct test_tree *tree)
{
	const char *cpu = "/sys/devices/system/cpu", *node = "/sys/devices/system/node";
	char path[256], map[128], dist[64] = "";
	static char info[256 * 128];
	size_t n = 0;

	tree_file(tree, cpu, "online", "0-255\n");
	tree_file(tree, cpu, "possible", "0-255\n");
	tree_file(tree, node, "online", "0-7\n");
	for (int d = 0; d < 8; d++) {
		tree_join(path, sizeof(path), "%s/node%d", node, d);
		large_map(map, sizeof(map), d * 16, 16);
		tree_file(tree, path, "cpumap", "%s", map);
		dist[0] = '\0';
		for (int q = 0; q < 8; q++)
			snprintf(dist + strlen(dist), sizeof(dist) - strlen(dist), "%d ",
				d == q           ? 10
				: d / 4 == q / 4 ? 12
						 : 32);
		tree_file(tree, path, "distance", "%s\n", dist);
		tree_file(tree, path, "meminfo", "Node %d MemTotal: 67108864 kB\n", d);
	}
	for (int c = 0; c < 256; c++) {
		tree_join(path, sizeof(path), "%s/cpu%d/topology", cpu, c);
		tree_file(tree, path, "physical_package_id", "%d\n", c % 128 / 64);
		tree_file(tree, path, "core_id", "%d\n", c % 64);
		large_map(map, sizeof(map), c % 128 / 64 * 64, 64);
		tree_file(tree, path, "core_siblings", "%s", map);
		large_map(map, sizeof(map), c % 128, 1);
		tree_file(tree, path, "thread_siblings", "%s", map);
		n += (size_t)snprintf(info + n, sizeof(info) - n,
			"processor\t: %d\nvendor_id\t: AuthenticAMD\nmodel name\t: Constructed "
			"CPU\nflags\t\t: fpu tsc\n\n",
			c);
	}
	tree_write(tree, "/proc/cpuinfo", info);
	tree_file(tree, "/proc", "meminfo", "MemTotal: 536870912 kB\n");
}

/*
 * 256 CPUs, 16 GPUs, 32 NICs: each NUMA node has two root ports, each with a switch that holds a
 * GPU and two NICs.
 */
static inline void node_large(const struct test_tree *tree)
{
	char path[16][256], name[32];
	int nic = 0;

	large_cpus(tree);
	for (int s = 0; s < 16; s++) {
		int bus = 0x10 + s * 8, numa = s / 2;
		struct tree_pci list[] = {
			{path[0], BRIDGE, 0x1022, 0x14ab, numa, GEN5, GEN5, 16, 16, "pcieport"},
			{path[1], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"},
			{path[2], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"},
			{path[3], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"},
			{path[4], BRIDGE, 0x1000, 0xc030, numa, GEN5, GEN5, 16, 16, "pcieport"},
			{path[5], 0x030200, NVIDIA, 0x2330, numa, GEN5, GEN5, 16, 16, "nvidia"},
			{path[6], 0x020700, MLX, 0x1021, numa, GEN5, GEN5, 16, 16, "mlx5_core"},
			{path[7], 0x020700, MLX, 0x1021, numa, GEN5, GEN5, 16, 16, "mlx5_core"},
		};

		tree_join(path[0], sizeof(path[0]), "pci0000:%02x/0000:%02x:01.0", bus, bus);
		tree_join(path[1], sizeof(path[1]), "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0",
			bus, bus, bus + 1);
		for (int k = 0; k < 3; k++) {
			tree_join(path[2 + k], sizeof(path[0]),
				"pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0", bus,
				bus, bus + 1, bus + 2, k);
			tree_join(path[5 + k], sizeof(path[0]),
				"pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0/"
				"0000:%02x:00.0",
				bus, bus, bus + 1, bus + 2, k, bus + 3 + k);
		}
		node_add(tree, list, sizeof(list) / sizeof(*list));
		for (int k = 6; k < 8; k++, nic++) {
			snprintf(name, sizeof(name), "ib%d", nic);
			tree_netdev(tree, name, path[k], 32, 400000);
			snprintf(name, sizeof(name), "mlx5_%d", nic);
			tree_rdma(tree, name, path[k], NULL, "1: CA", "InfiniBand",
				"400 Gb/sec (4X NDR)");
		}
	}
}

#endif
