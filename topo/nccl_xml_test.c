// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL's and RCCL's topology files: each recorded one is read as its MANIFEST says, which was
 * written before this reader was.
 */
#include "topo/test_nccl.h"

/* ---- the manifest -------------------------------------------------------------------------- */

struct near {
	enum topo_path path;
	size_t n;
	const char *names[64];
};

/** A GPU's nearest NICs, all that tie. */
static struct near nearest(const struct topo *t, const struct topo_dev *devs, size_t n, size_t gpu)
{
	struct near near = {TOPO_PATH_UNKNOWN, 0, {NULL}};

	for (size_t i = 0; i < n; i++) {
		if (devs[i].type == TOPO_DEV_GPU)
			continue;
		enum topo_path p = topo_path(t, &devs[gpu], &devs[i]);

		assert_int_equal(p, topo_path(t, &devs[i], &devs[gpu]));
		if (p < near.path) {
			near.path = p;
			near.n = 0;
		}
		if (p == near.path && near.n < 64)
			near.names[near.n++] = devs[i].name;
	}
	return near;
}

static bool holds(const struct near *near, const char *name, size_t len)
{
	for (size_t i = 0; i < near->n; i++)
		if (strncmp(near->names[i], name, len) == 0 && !near->names[i][len])
			return true;
	return false;
}

/** "G3:PIX(a,b) ": four names at most, ".." where there are more; the last line may be cut. */
static bool check_gpu(const char *file, const struct near *near, unsigned gpu, const char *s)
{
	const char *path = topo_path_name(near->path);
	size_t n = 0;

	if (strncmp(s, path, strlen(path)) != 0 || s[strlen(path)] != '(')
		fail_msg("%s: GPU%u is %s, not %.30s", file, gpu, path, s);
	for (s += strlen(path) + 1; *s && *s != ')' && *s != '.'; s += *s == ',') {
		size_t len = strcspn(s, ",)");

		if (!s[len])
			return false;
		if (memchr(s, '.', len) && len > 2 && strncmp(s + len - 2, "..", 2) == 0)
			len -= 2;
		if (!holds(near, s, len))
			fail_msg("%s: %.*s is not among the nearest of GPU%u", file, (int)len, s,
				gpu);
		n++;
		s += len;
	}
	if (*s == ')' && n != near->n)
		fail_msg("%s: GPU%u has %zu nearest NICs, not %zu", file, gpu, near->n, n);
	return true;
}

static size_t nic_functions(const struct topo *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_pci; i++) {
		bool nic = false;

		for (size_t k = 0; k < t->n_nics; k++)
			nic |= t->nics[k].pci == (int)i;
		for (size_t k = 0; k < t->n_rdma; k++)
			nic |= t->rdma[k].pci == (int)i;
		n += nic;
	}
	return n;
}

/** @return GPUs whose nearest NICs were compared */
static unsigned check_reading(const char *file, const char *reading)
{
	unsigned gpus, nics, nodes, checked = 0;
	struct topo *t = load(file);
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(
		sscanf(reading, "%u GPU, %u NIC pci, %u cpu/NUMA", &gpus, &nics, &nodes), 3);
	if (t->n_gpus != gpus || nic_functions(t) != nics || t->n_numa != nodes)
		fail_msg("%s: %zu GPUs, %zu NIC functions, %zu nodes; not %s", file, t->n_gpus,
			nic_functions(t), t->n_numa, reading);
	assert_int_equal(topo_devices(t, &devs, &n), 0);
	for (const char *s = reading; (s = strstr(s, " G")); s++) {
		char *end;
		unsigned long g = strtoul(s + 2, &end, 10);

		if (end == s + 2 || *end != ':' || !strchr(end, '('))
			continue;
		assert_true(g < t->n_gpus);
		struct near near = nearest(t, devs, n, g);

		checked += check_gpu(file, &near, (unsigned)g, end + 1);
	}
	free(devs);
	topo_free(t);
	return checked;
}

/** Every line of the manifest that counts; those in words have their own tests below. */
static void test_manifest(void **state)
{
	char *text, *line, *rest;
	size_t len;
	unsigned files = 0, gpus = 0;
	struct fb_err e = {0};

	assert_int_equal(fb_read_file(DATA "MANIFEST.tsv", 1 << 20, &text, &len, &e), 0);
	for (rest = text; (line = strsep(&rest, "\n"));) {
		char *file = strsep(&line, "\t"), *reading = line ? strrchr(line, '\t') : NULL;

		if (!reading || !strstr(reading, " NIC pci, "))
			continue;
		gpus += check_reading(file, reading + 1);
		files++;
	}
	free(text);
	assert_int_equal(files, 18);
	assert_int_equal(gpus, 8 + 8 + 8 + 8 + 7 + 3 + 4 + 8 + 8 + 6 + 8 + 8 + 8 + 8 + 8 + 8 + 8);
}

/** The nearest NICs of the GPU at an address. */
static void near_address(const struct topo *t, const char *bdf, enum topo_path path,
	const char *const *names, size_t count)
{
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	for (size_t g = 0; g < t->n_gpus; g++) {
		if (strcmp(t->pci[t->gpus[g].pci].bdf, bdf) != 0)
			continue;
		struct near near = nearest(t, devs, n, g);

		assert_int_equal(near.path, path);
		assert_int_equal(near.n, count);
		for (size_t i = 0; i < count; i++)
			assert_true(holds(&near, names[i], strlen(names[i])));
		free(devs);
		return;
	}
	fail_msg("no GPU at %s", bdf);
}

/**
 * "G0,G1 PIX 0103/0104": G0 is the first in the file. GPU0 is the first by address, as on the
 * machine, where NUMA node 1 holds GPU0 and GPU1.
 */
static void test_azure_ndv4(void **state)
{
	static const struct {
		const char *gpus[2], *nics[2];
		int numa;
	} want[] = {
		{{"0003:00:00.0", "0004:00:00.0"}, {"0103:00:00.0", "0104:00:00.0"}, 0},
		{{"0001:00:00.0", "0002:00:00.0"}, {"0101:00:00.0", "0102:00:00.0"}, 1},
		{{"000d:00:00.0", "000e:00:00.0"}, {"0107:00:00.0", "0108:00:00.0"}, 2},
		{{"000b:00:00.0", "000c:00:00.0"}, {"0105:00:00.0", "0106:00:00.0"}, 3},
	};
	struct topo *t = load("azure-ndv4-topo.xml");

	assert_int_equal(t->n_gpus, 8);
	assert_int_equal(t->n_nics, 8);
	assert_int_equal(t->n_numa, 4);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 2; k++) {
			near_address(t, want[i].gpus[k], TOPO_PATH_PIX, want[i].nics, 2);
			assert_int_equal(
				t->pci[topo_find_pci(t, want[i].gpus[k])].numa, want[i].numa);
		}
	assert_string_equal(t->gpus[0].name, "GPU0");
	assert_string_equal(t->pci[t->gpus[0].pci].bdf, "0001:00:00.0");
	assert_string_equal(t->numa[2].cpus, "0-15,32-47");
	int sw = topo_find_pci(t, "ffff:ff:01.0");

	assert_true(sw >= 0 && t->pci[sw].bridge);
	assert_int_equal(t->pci[sw].link.max_width, 16);
	assert_true(t->pci[sw].link.max_gts == 16.0);
	topo_free(t);
}

/** eth0 stands under <cpu> without a function; links without speed; a GPU linked to itself. */
static void test_azure_ncv4(void **state)
{
	static const char *const eth0[] = {"eth0"};
	struct topo *t = load("azure-ncv4-topo.xml");

	assert_int_equal(t->n_gpus, 4);
	assert_int_equal(t->n_numa, 4);
	assert_int_equal(t->n_nics, 1);
	assert_int_equal(t->n_rdma, 0);
	assert_int_equal(t->nics[0].pci, TOPO_UNKNOWN);
	assert_int_equal(t->nics[0].numa, 0);
	assert_int_equal(t->nics[0].rate_bps, 100000000000);
	assert_int_equal(nic_functions(t), 0);
	near_address(t, "0001:00:00.0", TOPO_PATH_PHB, eth0, 1);
	near_address(t, "0004:00:00.0", TOPO_PATH_SYS, eth0, 1);
	for (size_t i = 0; i < 4; i++) {
		const struct topo_pci *p = &t->pci[t->gpus[i].pci];

		assert_true(p->link.max_gts == 0 && p->link.now_gts == 0);
		assert_int_equal(p->link.max_width, 0);
		assert_int_equal(t->fast[i].peer, i);
		assert_int_equal(t->fast[i].count, 12);
		assert_int_equal(topo_fast_links(t, 0, i), 0);
	}
	assert_true(warned(t, "GPU0 has a link to itself"));
	assert_true(warned(t, "no local NIC for GPU1, GPU2, GPU3:"));
	topo_free(t);
}

/** Switches and functions without class: no GPU, no NIC can be told; eight islands can. */
static void test_aws_p5_partial(void **state)
{
	struct topo *t = load("aws-p5.48xl-topo-2023.xml");
	size_t tops = 0, switches = 0;

	assert_int_equal(t->n_gpus, 0);
	assert_int_equal(t->n_nics + t->n_rdma, 0);
	assert_int_equal(t->n_numa, 2);
	assert_int_equal(t->n_pci, 40);
	for (size_t i = 0; i < t->n_pci; i++) {
		tops += t->pci[i].parent < 0;
		switches += t->pci[i].bridge;
		assert_int_equal(t->pci[i].class_code, 0);
	}
	assert_int_equal(tops, 8);
	assert_int_equal(switches, 8);
	int efa = topo_find_pci(t, "0000:4f:00.0");

	assert_int_equal(t->pci[efa].parent, topo_find_pci(t, "0000:45:00.0"));
	/* "32 GT/s PCIe/s" */
	assert_true(t->pci[efa].link.max_gts == 32.0);
	assert_true(warned(t, "32 PCI functions have no class"));
	assert_true(warned(t, "names no GPU"));
	topo_free(t);
}

static void test_rccl_mi300x(void **state)
{
	struct topo *t = load("topo_8p_940.xml");
	char name[16];

	assert_int_equal(t->n_gpus, 8);
	assert_int_equal(t->n_rdma, 8);
	assert_int_equal(t->n_numa, 2);
	for (size_t i = 0; i < 8; i++) {
		const struct topo_pci *p = &t->pci[t->gpus[i].pci];
		const char *names[] = {name};

		snprintf(name, sizeof(name), "mlx5_%zu", i);
		assert_int_equal(p->class_code, 0x120000);
		near_address(t, p->bdf, TOPO_PATH_PXB, names, 1);
		for (size_t k = 0; k < 8; k++)
			assert_int_equal(topo_fast_links(t, i, k), i != k);
	}
	assert_string_equal(t->rdma[0].ports[0].link_layer, "InfiniBand");
	assert_int_equal(t->rdma[0].ports[0].rate_bps, 400000000000);
	assert_int_equal(t->n_fast, 56);
	assert_int_equal(t->fast[0].kind, TOPO_FAST_XGMI);
	assert_false(warned(t, "no local NIC"));
	topo_free(t);
}

static void test_rccl_no_local_nic(void **state)
{
	struct topo *t = load("topo_8p_ts1_n4.xml");
	static const char *const both[] = {"mlx5_0", "mlx5_2"};

	assert_int_equal(t->n_gpus, 8);
	assert_int_equal(t->n_numa, 8);
	for (size_t i = 0; i < 8; i++)
		near_address(t, t->pci[t->gpus[i].pci].bdf, TOPO_PATH_SYS, both, 2);
	assert_true(warned(t, "no local NIC for any GPU"));
	/* The file's own numbers: device 0 is not the first by address. */
	assert_string_equal(t->gpus[0].name, "GPU0");
	assert_string_equal(t->pci[t->gpus[0].pci].bdf, "0000:43:00.0");
	topo_free(t);
}

/** One address many times is one function, as an address is. */
static void test_rccl_repeated_switch(void **state)
{
	struct topo *t = load("topo_4p4h.xml");

	assert_true(warned(t, "0000:c5:00.0 stands more than once"));
	assert_true(warned(t, "0000:e6:00.0 stands more than once"));
	assert_int_equal(t->n_pci, 16 + 16 + 2 * 3);
	topo_free(t);
}

static void test_slingshot_is_no_rdma_device(void **state)
{
	struct topo *t = load("topo_8p1h_3.xml");

	assert_int_equal(t->n_rdma, 0);
	assert_int_equal(t->n_nics, 4);
	assert_string_equal(t->nics[3].name, "net3");
	assert_int_equal(topo_fast_links(t, 0, 1), 4);
	topo_free(t);
}

/* ---- tags that the recorded files do not have ---------------------------------------------- */

static void test_every_tag(void **state)
{
	struct topo *t = parse(modern);

	assert_int_equal(t->n_gpus, 2);
	assert_string_equal(t->pci[t->gpus[0].pci].bdf, "0009:02:00.0");
	assert_string_equal(t->pci[t->gpus[1].pci].bdf, "0008:02:00.0");
	assert_string_equal(t->numa[0].cpus, "32-63");
	assert_int_equal(t->pus, 32);
	assert_string_equal(kept(t, TOPO_PART_SYSTEM, 0, "since"), "later");
	assert_string_equal(kept(t, TOPO_PART_NUMA, 0, "arch"), "arm64");
	assert_string_equal(kept(t, TOPO_PART_NUMA, TOPO_UNKNOWN, "arch"), "arm64");
	assert_string_equal(
		kept(t, TOPO_PART_GPU, 1, NULL), "<foo a=\"&lt;1&gt;\"><bar>t&amp;x</bar></foo>");
	assert_string_equal(
		kept(t, TOPO_PART_PCI, t->gpus[0].pci, NULL), "<gpu dev=\"0\" mlopart=\"1\"/>");
	assert_int_equal(t->n_fast, 3);
	assert_string_equal(kept(t, TOPO_PART_FAST, 0, "speed"), "5");
	assert_int_equal(t->fast[1].kind, TOPO_FAST_C2C);
	assert_true(t->fast[1].bandwidth == 450e9);
	/* Through NVSwitches: the lesser of both ends. */
	assert_int_equal(topo_fast_links(t, 0, 1), 12);
	assert_int_equal(t->n_rdma, 1);
	int nic = t->rdma[0].pci;

	assert_string_equal(kept(t, TOPO_PART_PCI, nic, "nic/role"), "x");
	assert_string_equal(
		kept(t, TOPO_PART_PCI, nic, "nic/"), "<gin name=\"mlx5_0\" dev=\"0\"/>");
	assert_string_equal(t->rdma[0].ports[0].link_layer, "Ethernet");
	assert_int_equal(t->rdma[0].ports[0].rate_bps, 0);
	/* Named: eth9. By address: an empty <nic>, and an InfiniBand function. */
	assert_int_equal(t->n_nics, 3);
	assert_string_equal(t->nics[0].name, "eth9");
	assert_string_equal(t->nics[1].name, "0001:02:00.0");
	assert_int_equal(t->nics[1].numa, TOPO_UNKNOWN);
	assert_string_equal(t->nics[2].name, "0009:04:00.0");
	topo_free(t);
}

static void test_paths_of_nccl(void **state)
{
	struct topo *t = parse(modern);

	path_is(t, "GPU0", "GPU1", TOPO_PATH_NV);
	path_is(t, "GPU0", "mlx5_0", TOPO_PATH_PIX);
	/* Two virtual switches of one Broadcom chip are joined by a <pcilink>. */
	path_is(t, "GPU1", "mlx5_0", TOPO_PATH_PXB);
	path_is(t, "GPU1", "eth9", TOPO_PATH_PHB);
	path_is(t, "GPU1", "0001:02:00.0", TOPO_PATH_UNKNOWN);
	topo_free(t);
}

/** The weakest element on the way, at its best: the files tell nothing else. */
static void test_bandwidth(void **state)
{
	struct topo *t = load("topo_4p1h.xml");
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	/* The GPU's own link is Gen4 x16, the switches' Gen3 x16: 15.75 GB/s. */
	assert_true(fabs(topo_path_bandwidth(t, &devs[0], &devs[4]) / 1e9 - 15.754) < 0.001);
	assert_false(topo_link_downtrained(t, &t->pci[devs[0].pci]));
	free(devs);
	topo_free(t);
}

/** NVLink joins racks: NCCL's file then holds every host, with the same addresses again. */
static void test_several_hosts(void **state)
{
	static const char text[] =
		"<system version=\"1\">"
		"<cpu host_hash=\"0x1\" numaid=\"0\" affinity=\"ffff,ffffffff\" arch=\"arm64\">"
		"<pci busid=\"0008:01:00.0\" class=\"0x060400\">"
		"<pci busid=\"0008:03:00.0\" class=\"0x080100\" vendor=\"0x15b3\">"
		"<nic><net name=\"rail1\" dev=\"1\" speed=\"800000\" port=\"1\" "
		"guid=\"0x7e9cf00003499ee8\"/></nic></pci>"
		"<pci busid=\"0008:04:00.0\" class=\"0x060400\">"
		"<pci busid=\"0008:06:00.0\" class=\"0x030200\"><gpu dev=\"0\">"
		"<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
		"</pci></pci></cpu>"
		"<cpu host_hash=\"0x2\" numaid=\"0\" affinity=\"ffffffff\">"
		"<pci busid=\"0008:06:00.0\" class=\"0x030200\"><gpu dev=\"0\"><x/></gpu></pci></cpu>"
		"<cpu host_hash=\"0x1\" numaid=\"1\"/>"
		"</system>";
	struct topo *t = parse(text);

	assert_int_equal(t->n_gpus, 1);
	assert_int_equal(t->n_numa, 2);
	assert_int_equal(t->n_pci, 4);
	assert_string_equal(t->numa[0].cpus, "0-47");
	assert_true(warned(t, "joins several hosts"));
	/* ConnectX-8 shows its data-direct function, of no network class. */
	assert_int_equal(t->n_rdma, 1);
	path_is(t, "GPU0", "rail1", TOPO_PATH_PXB);
	assert_string_equal(t->fast[0].peer_bdf, "fffffff:ff:ff.0");
	there_and_back("hosts", t);
	topo_free(t);
}

static void test_ports_and_speeds(void **state)
{
	static const char text[] =
		"<system version=\"2\"><cpu numaid=\"0\" affinity=\"0xff\">"
		"<pci busid=\"0C:00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\">"
		"<nic><net name=\"mlx5_18\" dev=\"0\" speed=\"200000\" port=\"1\" "
		"guid=\"0x9a70500003ae6d94\"/>"
		"<net name=\"mlx5_9\" dev=\"1\" speed=\"200000\" port=\"2\" "
		"guid=\"0x9a70500003ae6d94\"/></nic></pci>"
		"<pci busid=\"0000:01:00.0\" class=\"0x020000\" vendor=\"0x17db\" device=\"0x0501\">"
		"<nic><net name=\"cxi0\" dev=\"2\" speed=\"200000000\" port=\"1\" guid=\"0x0\"/></nic>"
		"</pci></cpu></system>";
	struct topo *t = parse(text);

	/* Two ports of one function: one function, two devices, in natural order. */
	assert_int_equal(t->n_rdma, 2);
	assert_int_equal(nic_functions(t), 2);
	assert_string_equal(t->rdma[0].name, "mlx5_9");
	assert_int_equal(t->rdma[0].ports[0].num, 2);
	assert_string_equal(t->pci[t->rdma[1].pci].bdf, "0000:0c:00.0");
	path_is(t, "mlx5_9", "mlx5_18", TOPO_PATH_PIX);
	/* 200 Tb/s is a plug-in's error of unit. */
	assert_int_equal(t->nics[0].rate_bps, 0);
	assert_string_equal(kept(t, TOPO_PART_NIC, 0, "speed"), "200000000");
	assert_true(warned(t, "cxi0 of 200000000 Mb/s"));
	assert_string_equal(t->numa[0].cpus, "0-7");
	there_and_back("ports", t);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manifest),
		cmocka_unit_test(test_azure_ndv4),
		cmocka_unit_test(test_azure_ncv4),
		cmocka_unit_test(test_aws_p5_partial),
		cmocka_unit_test(test_rccl_mi300x),
		cmocka_unit_test(test_rccl_no_local_nic),
		cmocka_unit_test(test_rccl_repeated_switch),
		cmocka_unit_test(test_slingshot_is_no_rdma_device),
		cmocka_unit_test(test_every_tag),
		cmocka_unit_test(test_paths_of_nccl),
		cmocka_unit_test(test_bandwidth),
		cmocka_unit_test(test_several_hosts),
		cmocka_unit_test(test_ports_and_speeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
