// SPDX-License-Identifier: Apache-2.0
/*
 * Recorded machines against what is known of them: packages, NUMA nodes, where each RDMA device is,
 * and for each GPU its place and its nearest RDMA devices. The expectations were made from the
 * files by other programs than ours (testdata/README.md); a file that must not be read has its
 * reason.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>

#include "bench/core/clock.h"
#include "bench/core/proc.h"
#include "bench/core/sysroot_tar.h"
#include "topo/test_tree.h"
#include "topo/topo_priv.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

enum kind { HWLOC, SYSFS, SMI };

struct row {
	enum kind kind;
	const char *file;    /* below topo/testdata */
	const char *reading; /* NULL: refused */
	void (*more)(const struct topo *t);
	int rc;
	const char *why; /* in the refusal */
};

/* ---- a reading as text ----------------------------------------------------------------------- */

static void add_node(struct fb_strbuf *b, int numa)
{
	if (numa >= 0)
		fb_strbuf_printf(b, " node %d", numa);
	else
		fb_strbuf_add(b, " node ?");
}

static void add_gpu(struct fb_strbuf *b, const struct topo *t, const struct topo_dev *devs,
	size_t n, const struct topo_dev *gpu)
{
	const char *bdf = t->pci[gpu->pci].bdf;
	enum topo_path best = TOPO_PATH_UNKNOWN;

	for (size_t i = 0; i < n; i++)
		if (devs[i].type == TOPO_DEV_RDMA && topo_path(t, gpu, &devs[i]) < best)
			best = topo_path(t, gpu, &devs[i]);
	fb_strbuf_add(b, *bdf ? bdf : gpu->name);
	add_node(b, gpu->numa);
	if (best != TOPO_PATH_UNKNOWN)
		fb_strbuf_printf(b, " %s", topo_path_name(best));
	for (size_t i = 0; i < n && best != TOPO_PATH_UNKNOWN; i++)
		if (devs[i].type == TOPO_DEV_RDMA && topo_path(t, gpu, &devs[i]) == best)
			fb_strbuf_printf(b, " %s", devs[i].name);
	fb_strbuf_add(b, "\n");
}

static void reading(const struct topo *t, struct fb_strbuf *b)
{
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	fb_strbuf_printf(
		b, "%zu packages %zu nodes %zu GPUs\n", t->n_packages, t->n_numa, t->n_gpus);
	for (size_t i = 0; i < t->n_rdma; i++) {
		fb_strbuf_add(b, t->rdma[i].name);
		add_node(b, t->rdma[i].numa);
		fb_strbuf_add(b, "\n");
	}
	for (size_t i = 0; i < n; i++)
		if (devs[i].type == TOPO_DEV_GPU)
			add_gpu(b, t, devs, n, &devs[i]);
	assert_false(b->failed);
	free(devs);
}

/* ---- what else is known of some ---------------------------------------------------------------
 */

static const struct topo_pci *find(const struct topo *t, const char *bdf)
{
	int i = topo_find_pci(t, bdf);

	assert_true(i >= 0);
	return &t->pci[i];
}

static double at(const struct topo *t, const double *m, int from, int to)
{
	const struct topo_numa *a = topo_find_numa(t, from), *b = topo_find_numa(t, to);

	assert_non_null(m);
	assert_non_null(a);
	assert_non_null(b);
	return m[(size_t)(a - t->numa) * t->n_numa + (size_t)(b - t->numa)];
}

static unsigned slit(const struct topo *t, int from, int to)
{
	const struct topo_numa *a = topo_find_numa(t, from), *b = topo_find_numa(t, to);

	assert_non_null(t->distance);
	return t->distance[(size_t)(a - t->numa) * t->n_numa + (size_t)(b - t->numa)];
}

static void assert_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-6 * want))
		fail_msg("%.9g instead of %.9g", got, want);
}

static void more_old_net(const struct topo *t)
{
	/* mlx4_0 stands as a network in the file: it is an RDMA device all the same. */
	assert_non_null(topo_find_nic(t, "ib0"));
	assert_null(topo_find_nic(t, "mlx4_0"));
}

static void more_pascal(const struct topo *t)
{
	/* Gen3 x16; the format tells one figure, not speed and width. */
	assert_near(find(t, "0000:08:00.0")->link.bandwidth, 15.753846e9);
	assert_true(find(t, "0000:08:00.0")->link.now_gts == 0);
	assert_string_equal(t->gpus[0].model, "Tesla P100-PCIE-16GB");
	assert_string_equal(t->rdma[0].ports[0].state_name, "ACTIVE");
	assert_string_equal(t->rdma[0].ports[0].link_layer, "InfiniBand");
	assert_int_equal(slit(t, 0, 1), 21);
}

static void more_hetero(const struct topo *t)
{
	/* The nameless matrix of latencies. */
	assert_int_equal(slit(t, 0, 1), 16);
	assert_int_equal(slit(t, 0, 3), 22);
	assert_int_equal(slit(t, 7, 7), 10);
}

static void more_memattrs(const struct topo *t)
{
	/* One value, for all CPUs to node 1: 20 MiB/s. */
	assert_near(at(t, t->bandwidth, 0, 1), 20 * 1048576.0);
	assert_true(isnan(at(t, t->bandwidth, 0, 0)));
	assert_null(t->latency_ns);
}

static void more_power8(const struct topo *t)
{
	/* NVLink 1 at 20 GB/s: two links to the other GPU of the socket, two to the CPU. */
	assert_int_equal(topo_fast_links(t, 0, 1), 2);
	assert_int_equal(topo_fast_links(t, 2, 3), 2);
	assert_int_equal(topo_fast_links(t, 0, 2), 0);
	unsigned cpu = 0;

	for (size_t i = 0; i < t->n_fast; i++) {
		assert_int_equal(t->fast[i].kind, TOPO_FAST_NVLINK);
		assert_near(t->fast[i].bandwidth, 40e9);
		cpu += t->fast[i].peer < 0;
	}
	assert_int_equal(cpu, 4);
}

static void more_guest(const struct topo *t)
{
	assert_true(t->virtual_machine);
	assert_near(at(t, t->latency_ns, 0, 0), 90);
	assert_near(at(t, t->bandwidth, 1, 1), 204800 * 1048576.0);
	assert_true(isnan(at(t, t->latency_ns, 0, 1)));
	/* rxe0 has no function: its GUID is made of eth0's address. */
	assert_true(t->rdma[0].soft);
	assert_string_equal(t->rdma[0].netdev, "eth0");
	const struct topo_pci *port = find(t, "0000:13:00.0"), *down = &t->pci[port->parent];

	assert_string_equal(down->bdf, "0000:12:00.0");
	assert_string_equal(t->pci[down->parent].bdf, "0000:11:00.0");
	assert_string_equal(port->root, "0000:10");
}

static void more_h100(const struct topo *t)
{
	unsigned ib = 0;

	for (size_t i = 0; i < t->n_rdma; i++) {
		const struct topo_rdma_port *p = &t->rdma[i].ports[0];

		assert_int_equal(p->state, 4);
		ib += strcmp(p->link_layer, "InfiniBand") == 0 && p->rate_bps == 400000000000u;
	}
	assert_int_equal(ib, 8);
	assert_string_equal(topo_find_rdma(t, "mlx5_bond_0")->ports[0].link_layer, "Ethernet");
}

static void more_wide_domain(const struct topo *t)
{
	bool wide = false;

	for (size_t i = 0; i < t->n_pci; i++)
		wide = wide || strcspn(t->pci[i].bdf, ":") > 4;
	assert_true(wide);
}

static void more_mlx4(const struct topo *t)
{
	assert_string_equal(t->pci[t->rdma[0].pci].bdf, "0000:82:00.0");
	assert_string_equal(t->rdma[0].netdev, "ib0");
	bool nvme = false;

	for (size_t i = 0; i < t->n_pci; i++)
		nvme = nvme || (t->pci[i].class_code == 0x010802 && t->pci[i].numa == 0);
	assert_true(nvme);
}

static void more_qib(const struct topo *t)
{
	assert_string_equal(t->pci[t->rdma[0].pci].bdf, "0000:43:00.0");
	assert_string_equal(t->rdma[0].netdev, "ib0");
}

static void more_tiers(const struct topo *t)
{
	/* CPUs belong to DRAM; HBM and NVM are only read from there. */
	assert_string_equal(topo_find_numa(t, 1)->kind, "DRAM");
	assert_string_equal(topo_find_numa(t, 4)->kind, "HBM");
	assert_string_equal(topo_find_numa(t, 6)->kind, "NVM");
	assert_int_equal(topo_numa_of_cpus(t, "2-3"), 1);
	assert_near(at(t, t->bandwidth, 1, 4), 10000 * 1048576.0);
	assert_true(at(t, t->bandwidth, 1, 6) < at(t, t->bandwidth, 1, 1));
	assert_true(isnan(at(t, t->bandwidth, 4, 4)));
}

static void more_initiators(const struct topo *t)
{
	assert_near(at(t, t->latency_ns, 0, 5), 26);
	assert_near(at(t, t->latency_ns, 0, 7), 77);
	assert_near(at(t, t->latency_ns, 2, 7), 77);
	assert_true(isnan(at(t, t->latency_ns, 0, 8)));
	/* The generic initiator's node and the NVM's have no CPUs. */
	assert_true(isnan(at(t, t->latency_ns, 4, 7)));
	assert_true(isnan(at(t, t->latency_ns, 7, 7)));
}

static void more_matrix(const struct topo *t)
{
	assert_string_equal(t->pci[t->gpus[3].pci].cpus, "80-95,208-223");
	assert_int_equal(t->n_fast, 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define XML(name) "hwloc-xml/" name ".xml.gz"
static const struct row rows[] = {
	{HWLOC, XML("16intel64-manyVFs"),
		"2 packages 2 nodes 0 GPUs\n"
		"usnic_0 node 0\nusnic_1 node 0\nusnic_2 node 1\n",
		NULL, 0, NULL},
	{HWLOC, XML("24em64t-2n6c2t-pci"),
		"2 packages 2 nodes 4 GPUs\nmlx4_0 node 0\n"
		"0000:01:03.0 node 0 PHB mlx4_0\n0000:06:00.0 node 0 PHB mlx4_0\n"
		"0000:11:00.0 node 1 SYS mlx4_0\n0000:14:00.0 node 1 SYS mlx4_0\n",
		NULL, 0, NULL},
	{HWLOC, XML("32em64t-2n8c2t-pci-wholeio"),
		"2 packages 2 nodes 4 GPUs\nmlx5_0 node 1\n"
		"0000:03:00.0 node 0 SYS mlx5_0\n0000:83:00.0 node 1 PHB mlx5_0\n"
		"0000:84:00.0 node 1 PIX mlx5_0\n0000:84:00.1 node 1 PIX mlx5_0\n",
		NULL, 0, NULL},
	{HWLOC, XML("8intel64-4n2t-memattrs"), "0 packages 4 nodes 0 GPUs\n", more_memattrs, 0,
		NULL},
	{HWLOC, XML("doc-devel09-pci"), "2 packages 2 nodes 0 GPUs\nmlx4_0 node 0\n", more_old_net,
		0, NULL},
	{HWLOC, XML("fakeheterodistances"), "4 packages 8 nodes 0 GPUs\n", more_hetero, 0, NULL},
	{HWLOC, XML("llnl-cascade-lake-ap-snl-hwloc1"), "4 packages 4 nodes 0 GPUs\n", NULL, 0,
		NULL},
	{HWLOC, XML("llnl-coral-butte-hwloc1"),
		"2 packages 6 nodes 4 GPUs\n"
		"mlx5_0 node 0\nmlx5_1 node 0\nmlx5_2 node 8\nmlx5_3 node 8\n"
		"0004:04:00.0 node 0 NODE mlx5_0 mlx5_1\n0004:05:00.0 node 0 NODE mlx5_0 mlx5_1\n"
		"0035:03:00.0 node 8 NODE mlx5_2 mlx5_3\n0035:04:00.0 node 8 NODE mlx5_2 mlx5_3\n",
		NULL, 0, NULL},
	{HWLOC, XML("llnl-cts1-pascal"),
		"2 packages 2 nodes 2 GPUs\nmlx5_0 node 0\n"
		"0000:04:00.0 node 0 PIX mlx5_0\n0000:07:00.0 node 0 PIX mlx5_0\n",
		more_pascal, 0, NULL},
	{HWLOC, XML("llnl-cts1-quartz-smt1"), "2 packages 2 nodes 0 GPUs\nhfi1_0 node 1\n", NULL, 0,
		NULL},
	{HWLOC, XML("llnl-epyc-corona"),
		"2 packages 8 nodes 4 GPUs\nmlx5_0 node 3\n"
		"0000:13:00.0 node 1 SYS mlx5_0\n0000:23:00.0 node 2 SYS mlx5_0\n"
		"0000:53:00.0 node 5 SYS mlx5_0\n0000:73:00.0 node 7 SYS mlx5_0\n",
		NULL, 0, NULL},
	{HWLOC, XML("llnl-epyc-dual-sock-hwloc1"), "2 packages 8 nodes 0 GPUs\nmlx5_0 node 5\n",
		NULL, 0, NULL},
	{HWLOC, XML("llnl-g4dnmetal"),
		"2 packages 2 nodes 8 GPUs\nrdmap197s0 node 1\n"
		"0000:18:00.0 node 0 SYS rdmap197s0\n0000:19:00.0 node 0 SYS rdmap197s0\n"
		"0000:35:00.0 node 0 SYS rdmap197s0\n0000:36:00.0 node 0 SYS rdmap197s0\n"
		"0000:e7:00.0 node 1 NODE rdmap197s0\n0000:e8:00.0 node 1 NODE rdmap197s0\n"
		"0000:f4:00.0 node 1 NODE rdmap197s0\n0000:f5:00.0 node 1 NODE rdmap197s0\n",
		NULL, 0, NULL},
	/* The group that the NIC hangs from holds node 0 and its MCDRAM: the default one is meant.
	 */
	{HWLOC, XML("llnl-knl-snc4-flat-hwloc1"), "1 packages 8 nodes 0 GPUs\nmlx5_0 node 0\n",
		NULL, 0, NULL},
	{HWLOC, XML("nvidiaDGX2-v3format"), NULL, NULL, -ENOTSUP, "format 3.0"},
	{HWLOC, XML("power8gpudistances"),
		"2 packages 2 nodes 4 GPUs\n"
		"0002:01:00.0 node 0\n0003:01:00.0 node 0\n"
		"000a:01:00.0 node 1\n000b:01:00.0 node 1\n",
		more_power8, 0, NULL},
	{HWLOC, XML("qemu-q35-2numa-2switch-hmat"), "2 packages 2 nodes 0 GPUs\nrxe0 node 0\n",
		more_guest, 0, NULL},
	{SYSFS, "sysfs/gpud-sys-class-infiniband-h100.0.tar.gz",
		"0 packages 0 nodes 0 GPUs\n"
		"mlx5_0 node ?\nmlx5_1 node ?\nmlx5_4 node ?\nmlx5_5 node ?\nmlx5_6 node ?\n"
		"mlx5_7 node ?\nmlx5_8 node ?\nmlx5_9 node ?\nmlx5_bond_0 node ?\n",
		more_h100, 0, NULL},
	{SYSFS, "hwloc-2pa-pcidomain32bits.tar.gz", "2 packages 1 nodes 0 GPUs\n", more_wide_domain,
		0, NULL},
	{SYSFS, "hwloc-32em64t-2n8c.tar.gz", "2 packages 2 nodes 0 GPUs\nmlx4_0 node 1\n",
		more_mlx4, 0, NULL},
	/* numa_node says 2; local_cpulist says all CPUs. The group of two packages that hwloc shows
	 * for this machine is its user's HWLOC_PCI_LOCALITY (topo_test.c, test_pci_locality). */
	{SYSFS, "sysfs/hwloc-40intel64-2g2n4c+pcilocality.tar.bz2",
		"4 packages 4 nodes 0 GPUs\nqib0 node 2\n", more_qib, 0, NULL},
	{SYSFS, "hwloc-fakeheteromemtiers.tar.gz", "1 packages 7 nodes 0 GPUs\n", more_tiers, 0,
		NULL},
	{SYSFS, "sysfs/hwloc-fakememinitiators-1np2c+1npp+gi.tar.bz2",
		"2 packages 11 nodes 0 GPUs\n", more_initiators, 0, NULL},
	{SYSFS, "hwloc-fakepcilocalities.tar.gz", "4 packages 4 nodes 0 GPUs\nqib0 node 1\n",
		more_qib, 0, NULL},
	{SYSFS, "hwloc-nvidiagpunumanodes.tar.gz",
		"2 packages 2 nodes 6 GPUs\n"
		"0004:05:00.0 node 0\n0004:06:00.0 node 0\n0006:00:00.0 node 0\n"
		"0007:00:00.0 node 8\n0035:04:00.0 node 8\n0035:05:00.0 node 8\n",
		NULL, 0, NULL},
	{SMI, "smi/levante_4gpu_2nic_topo_mp.txt",
		"0 packages 0 nodes 4 GPUs\nmlx5_0 node ?\nmlx5_1 node ?\n"
		"GPU0 node 3 SYS mlx5_0 mlx5_1\nGPU1 node 1 PIX mlx5_0\n"
		"GPU2 node 7 PIX mlx5_1\nGPU3 node 5 SYS mlx5_0 mlx5_1\n",
		more_matrix, 0, NULL},
};

static void gunzip(const char *from, const char *to)
{
	const char *argv[] = {"gzip", "-dc", from, NULL};
	struct fb_proc_opts opts = {
		.stdout_path = to, .deadline_ns = fb_clock_ns() + 30 * 1000000000ull};
	struct fb_proc_result res = {0};
	struct fb_err e = {0};

	if (fb_proc_run(argv, &opts, &res, &e) != 0 || res.status != 0)
		fail_msg("gzip -dc %s: status %d %s", from, res.status, e.msg);
	fb_proc_result_free(&res);
}

static int load(
	const struct row *r, const struct test_tree *tree, struct topo **t, struct fb_err *e)
{
	char path[256], plain[128];
	struct fb_sysroot root;

	snprintf(path, sizeof(path), FB_TESTDATA("topo", "%s"), r->file);
	if (r->kind == SMI)
		return topo_load_smi(path, t, e);
	if (r->kind == HWLOC) {
		snprintf(plain, sizeof(plain), "%s/machine.xml", tree->dir);
		gunzip(path, plain);
		return topo_load_hwloc_xml(plain, t, e);
	}
	int rc = fb_sysroot_open(&root, path, e);

	if (!rc)
		rc = topo_load(&root, t, e);
	fb_sysroot_close(&root);
	return rc;
}

static void check_row(const struct row *r, const struct test_tree *tree)
{
	struct fb_err e = {0};
	struct fb_strbuf b = {0};
	struct topo *t = NULL;
	int rc = load(r, tree, &t, &e);

	if (!r->reading) {
		assert_int_equal(rc, r->rc);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, r->why) || !e.hint[0])
			fail_msg("%s: %s / %s", r->file, e.msg, e.hint);
		return;
	}
	if (rc)
		fail_msg("%s: %s", r->file, e.msg);
	reading(t, &b);
	if (strcmp(b.s, r->reading) != 0)
		fail_msg("%s is read as\n%s", r->file, b.s);
	fb_strbuf_free(&b);
	if (r->more)
		r->more(t);
	topo_free(t);
}

static void check_kind(enum kind kind)
{
	struct test_tree tree;

	tree_new(&tree);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].kind == kind)
			check_row(&rows[i], &tree);
	tree_remove(&tree);
}

static void test_hwloc_xml(void **state)
{
	check_kind(HWLOC);
}

static void test_sysfs(void **state)
{
	if (!fb_sysroot_tar_supported())
		fb_test_skip("topo.manifest.tar", "built without libarchive");
	check_kind(SYSFS);
}

static void test_smi(void **state)
{
	check_kind(SMI);
}

/** POWER9 shows each GPU's memory as a node when asked to. */
static void test_gpu_memory_nodes(void **state)
{
	struct fb_sysroot root;
	struct fb_err e = {0};
	struct topo *t;

	if (!fb_sysroot_tar_supported())
		fb_test_skip("topo.manifest.tar", "built without libarchive");
	assert_int_equal(
		fb_sysroot_open(&root, FB_TESTDATA("topo", "hwloc-nvidiagpunumanodes.tar.gz"), &e),
		0);
	setenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1", 1);
	assert_int_equal(topo_load(&root, &t, &e), 0);
	unsetenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES");
	assert_int_equal(t->n_numa, 8);
	topo_free(t);
	fb_sysroot_close(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hwloc_xml),
		cmocka_unit_test(test_sysfs),
		cmocka_unit_test(test_smi),
		cmocka_unit_test(test_gpu_memory_nodes),
	};

	/* Thousands of small files: a disk takes a hundred times as long as memory. */
	if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
