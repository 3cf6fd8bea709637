// SPDX-License-Identifier: Apache-2.0
/*
 * Trees that no kernel made, machines with and without RDMA hardware, binding, and the command's
 * exit statuses.
 */
#include "bench/core/test.h"

#include <sched.h>

#include "bench/core/cmd.h"
#include "topo/affinity.h"
#include "topo/test_nodes.h"
#include "topo/topo_priv.h"

/** Load and render everything. @return topo_load's code; *e as it was left */
static int try_tree(const char *dir, struct fb_err *e)
{
	struct fb_sysroot r;
	struct topo *t = NULL;
	struct fb_strbuf b = {0};

	memset(e, 0, sizeof(*e));
	assert_int_equal(fb_sysroot_open(&r, dir, e), 0);
	int rc = topo_load(&r, &t, e);

	fb_sysroot_close(&r);
	if (rc) {
		assert_null(t);
		assert_int_not_equal(e->code, 0);
		return rc;
	}
	topo_tree(t, true, &b);
	topo_tree(t, false, &b);
	topo_matrix(t, &b);
	topo_svg(t, &b);
	assert_false(b.failed);
	json_t *o = topo_to_json(t, false);

	assert_non_null(o);
	json_decref(o);
	fb_strbuf_free(&b);
	topo_free(t);
	return 0;
}

/* ---- hostile trees --------------------------------------------------------------------------- */

static void test_empty_tree_is_refused(void **state)
{
	struct test_tree tree;
	struct fb_err e;

	tree_new(&tree);
	assert_int_equal(try_tree(tree.dir, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, tree.dir));
	assert_true(e.hint[0]);
	tree_remove(&tree);
}

/** hwloc-gather-cpuid's folders look like recordings, and are of another kind. */
static void test_cpuid_dump_is_refused(void **state)
{
	struct test_tree tree;
	struct fb_err e;

	tree_new(&tree);
	tree_write(&tree, "/hwloc-cpuid-info", "Architecture: x86\n");
	tree_write(&tree, "/pu0", "3 0 0 => d 756e6547 6c65746e 49656e69\n");
	assert_int_equal(try_tree(tree.dir, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "dumps of CPUID"));
	tree_remove(&tree);
}

static void test_links_in_circles(void **state)
{
	struct test_tree tree;
	struct fb_err e;

	tree_new(&tree);
	tree_cpus(&tree, 1, 2, "x", "tsc");
	tree_link(&tree, "/sys/bus/pci/devices/0000:01:00.0", "/sys/bus/pci/devices/0000:02:00.0");
	tree_link(&tree, "/sys/bus/pci/devices/0000:02:00.0", "/sys/bus/pci/devices/0000:01:00.0");
	tree_link(&tree, "/sys/class/net/eth0", "/sys/class/net/eth0");
	tree_link(&tree, "/sys/class/infiniband/mlx5_0", "/sys/class/infiniband");
	tree_link(&tree, "/sys/class/infiniband/mlx5_1", "/nowhere/at/all");
	assert_int_equal(try_tree(tree.dir, &e), 0);
	tree_remove(&tree);
}

/** Each function's path names the other one as its bridge. */
static void test_bridges_in_a_circle(void **state)
{
	struct test_tree tree;
	struct fb_err e;
	const char *a = "/sys/devices/pci0000:00/0000:02:00.0/0000:01:00.0";
	const char *b = "/sys/devices/pci0000:00/0000:01:00.0/0000:02:00.0";

	tree_new(&tree);
	tree_cpus(&tree, 1, 2, "x", "tsc");
	tree_file(&tree, a, "class", "0x060400\n");
	tree_file(&tree, b, "class", "0x060400\n");
	tree_link(&tree, "/sys/bus/pci/devices/0000:01:00.0", a);
	tree_link(&tree, "/sys/bus/pci/devices/0000:02:00.0", b);
	assert_int_equal(try_tree(tree.dir, &e), 0);
	tree_remove(&tree);
}

static void test_wrong_contents(void **state)
{
	struct test_tree tree;
	struct fb_err e;
	const char *f = "/sys/devices/pci0000:00/0000:01:00.0";

	tree_new(&tree);
	tree_cpus(&tree, 2, 2, "\x1b[2Jx\x01", "tsc");
	tree_file(&tree, f, "class", "0xffffffffffffffff\n");
	tree_file(&tree, f, "vendor", "banana\n");
	tree_file(&tree, f, "numa_node", "99999999999999\n");
	tree_file(&tree, f, "current_link_speed", "1e309 GT/s\n");
	tree_file(&tree, f, "current_link_width", "-4\n");
	tree_file(&tree, f, "max_link_speed", "nan GT/s\n");
	tree_file(&tree, f, "local_cpulist", "0-4294967294\n");
	tree_link(&tree, "/sys/bus/pci/devices/0000:01:00.0", f);
	tree_mkdir(&tree, "/sys/bus/pci/devices/not-an-address");
	tree_mkdir(&tree, "/sys/bus/pci/devices/0000:zz:00.0");
	tree_mkdir(&tree, "/sys/bus/pci/devices/ffffffff:ff:1f.7");
	tree_file(&tree, "/sys/class/net/e\x1b[31m", "type", "70000\n");
	tree_file(&tree, "/sys/class/net/eth\xff", "speed", "-1\n");
	tree_file(&tree, "/sys/class/net", "bonding_masters", "bond0\n");
	tree_file(&tree, "/sys/class/infiniband/x/ports/999999", "state", "4: ACTIVE\n");
	tree_file(&tree, "/sys/class/infiniband/x/ports/1", "state", "ACTIVE\n");
	tree_file(&tree, "/sys/class/infiniband/x/ports/1", "rate", "1e999 Gb/sec\n");
	tree_file(&tree, "/sys/class/infiniband/x", "parent", "../../etc\n");
	assert_int_equal(try_tree(tree.dir, &e), 0);
	tree_remove(&tree);
}

static void test_huge_numbers_are_refused(void **state)
{
	static const char *const files[][3] = {
		{"/sys/devices/system/cpu", "online", "0-4294967295\n"},
		{"/sys/devices/system/cpu", "possible", "0-99999999999999999999\n"},
		{"/sys/devices/system/node", "online", "4000000000\n"},
		{"/sys/devices/system/cpu/cpu4000000000", "online", "1\n"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct test_tree tree;
		struct fb_err e;

		tree_new(&tree);
		tree_cpus(&tree, 1, 2, "x", "tsc");
		tree_file(&tree, files[i][0], files[i][1], "%s", files[i][2]);
		assert_int_equal(try_tree(tree.dir, &e), -EFBIG);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		tree_remove(&tree);
	}
}

/** A recorded tree whose folders point out of it would make hwloc read the examining machine. */
static void test_tree_that_leads_out(void **state)
{
	struct test_tree tree;
	struct fb_err e;
	char path[128];

	tree_new(&tree);
	tree_mkdir(&tree, "/sys/devices/system");
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu", tree.dir);
	assert_int_equal(symlink("/proc/self", path), 0);
	assert_int_equal(try_tree(tree.dir, &e), -ENOENT);
	/* With something else to see, the reason is told. */
	tree_mkdir(&tree, "/sys/class/net");
	assert_int_equal(try_tree(tree.dir, &e), -EXDEV);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, path));
	tree_remove(&tree);
}

static int try_devices(unsigned n, struct fb_err *e)
{
	struct test_tree tree;
	char dir[128], link[128], target[128];

	tree_new(&tree);
	tree_cpus(&tree, 2, 2, "x", "tsc");
	for (unsigned i = 0; i < n; i++) {
		char bdf[24];

		snprintf(bdf, sizeof(bdf), "%04x:%02x:%02x.%u", i >> 16, i >> 8 & 0xff,
			i >> 3 & 0x1f, i & 7);
		snprintf(dir, sizeof(dir), "/sys/devices/pci%.7s/%s", bdf, bdf);
		tree_file(&tree, dir, "class", "0x020000\n");
		snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", bdf);
		tree_link(&tree, link, dir);
		if (i % 10)
			continue;
		snprintf(target, sizeof(target), "/sys/class/net/e%u", i);
		tree_link(&tree, target, dir);
	}
	int rc = try_tree(tree.dir, e);

	tree_remove(&tree);
	return rc;
}

static void test_ten_thousand_devices(void **state)
{
	struct fb_err e;

	assert_int_equal(try_devices(2000, &e), 0);
	assert_int_equal(try_devices(10000, &e), -EFBIG);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "10000"));
}

/* ---- RDMA hardware --------------------------------------------------------------------------- */

static void test_rdma_hardware(void **state)
{
	static const struct {
		unsigned cls, vendor, device;
		const char *driver;
		bool rdma;
		int want;
		const char *why;
	} cases[] = {
		{0x020000, 0x8086, 0x1533, "igb", false, 0, "no PCI function"},
		{0x020000, 0x1af4, 0x1041, "virtio-pci", false, 0, "no PCI function"},
		{0x020000, 0x1d0f, 0xec20, "ena", false, 0, "no PCI function"},
		{0x030200, 0x10de, 0x2330, "nvidia", false, 0, "no PCI function"},
		{0x020700, 0x15b3, 0x1021, "mlx5_core", true, 1, "has RDMA device dev0"},
		{0x020700, 0x15b3, 0x1021, "mlx5_core", false, 2, "has driver mlx5_core"},
		{0x020700, 0x1fc1, 0x0010, NULL, false, 2, "no driver is bound"},
		{0x028000, 0x15b3, 0x1003, "mlx4_core", false, 2, "mlx4_ib"},
		{0x020000, 0x8086, 0x1592, "ice", false, 2, "is irdma loaded"},
		{0x020000, 0x8086, 0x1592, "vfio-pci", false, 2, "vfio-pci has given it away"},
		{0x020000, 0x14e4, 0x16d7, "bnxt_en", true, 1, "dev0"},
		{0x020000, 0x14e4, 0x165f, "tg3", false, 0, "no PCI function"},
		{0x020000, 0x1425, 0x6408, NULL, false, 2, "iw_cxgb4"},
		{0x020000, 0x1d0f, 0xefa1, "efa", true, 1, "dev0"},
		{0x020000, 0x1077, 0x1656, "qede", false, 2, "qedr"},
		{0x020000, 0x1dd8, 0x1002, "ionic", false, 2, "ionic_rdma"},
		{0x020000, 0x1414, 0x00ba, "mana", false, 2, "mana_ib"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct test_tree tree;
		struct fb_sysroot r;
		struct fb_err e = {0};
		char why[256];
		const struct tree_pci p = {"pci0000:00/0000:00:04.0", cases[i].cls, cases[i].vendor,
			cases[i].device, 0, NULL, NULL, 0, 0, cases[i].driver};

		tree_new(&tree);
		tree_pci(&tree, &p);
		if (cases[i].rdma)
			tree_rdma(&tree, "dev0", p.path, NULL, "1: CA", "Ethernet", "");
		/* A software device never counts as the hardware's. */
		tree_rdma(&tree, "rxe0", NULL, "eth0", "1: CA", "Ethernet", "");
		assert_int_equal(fb_sysroot_open(&r, tree.dir, &e), 0);
		int got = topo_rdma_hardware(&r, why, sizeof(why));

		if (got != cases[i].want || !strstr(why, cases[i].why))
			fail_msg("case %zu: %d, %s", i, got, why);
		fb_sysroot_close(&r);
		tree_remove(&tree);
	}
}

static void test_rdma_hardware_without_pci(void **state)
{
	struct test_tree tree;
	struct fb_sysroot r;
	struct fb_err e = {0};
	char why[256];

	tree_new(&tree);
	assert_int_equal(fb_sysroot_open(&r, tree.dir, &e), 0);
	assert_int_equal(topo_rdma_hardware(&r, why, sizeof(why)), 0);
	fb_sysroot_close(&r);
	tree_remove(&tree);
}

/* ---- binding --------------------------------------------------------------------------------- */

static struct topo *load_live(void)
{
	struct fb_sysroot r;
	struct fb_err e = {0};
	struct topo *t;

	assert_int_equal(fb_sysroot_open(&r, NULL, &e), 0);
	assert_int_equal(topo_load(&r, &t, &e), 0);
	fb_sysroot_close(&r);
	return t;
}

static void test_bind_thread(void **state)
{
	struct topo_binding b;
	struct fb_err e = {0};
	cpu_set_t before, one, after;
	int cpu = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	/* The launcher's mask: one CPU. Binding may only narrow it, never widen it. */
	for (int i = 0; i < CPU_SETSIZE && cpu < 0; i++)
		if (CPU_ISSET(i, &before))
			cpu = i;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	struct topo *t = load_live();

	for (size_t i = 0; i < t->n_numa; i++) {
		assert_int_equal(topo_bind_thread_near(t, NULL, t->numa[i].os_index, &b, &e), 0);
		assert_true(b.why[0]);
		assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
		assert_true(CPU_EQUAL(&one, &after));
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	topo_free(t);

	/* An earlier, narrower binding of our own does not count as the launcher's. */
	t = load_live();
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(topo_bind_thread_near(t, NULL, t->numa[0].os_index, &b, &e), 0);
	if (b.bound && t->n_numa == 1) {
		assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
		assert_true(CPU_EQUAL(&before, &after));
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	topo_free(t);
}

static void test_bind_thread_refusals(void **state)
{
	struct topo_numa node = {.os_index = 3, .package = -1, .cpus = (char *)"65000-65010"};
	struct topo_rdma dev = {.name = "rxe0", .numa = TOPO_UNKNOWN};
	struct topo t = {.live = true, .numa = &node, .n_numa = 1, .rdma = &dev, .n_rdma = 1};
	struct topo_binding b;
	struct fb_err e = {0};

	assert_int_equal(topo_bind_thread_near(&t, NULL, 3, &b, &e), 0);
	assert_false(b.bound);
	assert_non_null(strstr(b.why, "65000-65010"));
	assert_int_equal(topo_bind_thread_near(&t, "rxe0", TOPO_UNKNOWN, &b, &e), 0);
	assert_false(b.bound);
	assert_non_null(strstr(b.why, "rxe0"));
	assert_int_equal(topo_bind_thread_near(&t, NULL, TOPO_UNKNOWN, &b, &e), 0);
	assert_false(b.bound);
	assert_int_equal(topo_bind_thread_near(&t, "mlx5_9", TOPO_UNKNOWN, &b, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "mlx5_9"));
	fb_err_clear(&e);
	assert_int_equal(topo_bind_thread_near(&t, NULL, 7, &b, &e), -ENOENT);
	fb_err_clear(&e);
	t.live = false;
	assert_int_equal(topo_bind_thread_near(&t, NULL, 3, &b, &e), 0);
	assert_non_null(strstr(b.why, "recorded"));
}

static void test_bind_memory(void **state)
{
	struct topo *t = load_live();
	struct topo_binding b;
	struct fb_err e = {0};

	for (size_t i = 0; i < t->n_numa; i++) {
		assert_int_equal(topo_bind_memory(t, t->numa[i].os_index, &b, &e), 0);
		assert_true(b.why[0]);
		if (!b.bound)
			continue;
		char *page = aligned_alloc(4096, 4096);

		assert_non_null(page);
		memset(page, 1, 4096);
		free(page);
	}
	topo_unbind_memory();
	assert_int_equal(topo_bind_memory(t, TOPO_UNKNOWN, &b, &e), 0);
	assert_false(b.bound);
	int here = 1;
	int node = topo_node_of_page(&here);

	assert_true(node == TOPO_UNKNOWN || topo_find_numa(t, node));
	topo_free(t);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_topo(int argc, const char *const *args)
{
	char *argv[16];
	int saved = dup(STDOUT_FILENO);
	FILE *null = fopen("/dev/null", "w");

	for (int i = 0; i < argc; i++)
		argv[i] = strdup(args[i]);
	argv[argc] = NULL;
	fflush(stdout);
	dup2(fileno(null), STDOUT_FILENO);
	int rc = topo_cmd.run(argc, argv);

	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	fclose(null);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return rc;
}
#define RUN(...)                                                                        \
	run_topo((int)(sizeof((const char *[]){"topo", __VA_ARGS__}) / sizeof(char *)), \
		(const char *[]){"topo", __VA_ARGS__})

static void test_command(void **state)
{
	struct test_tree tree;
	char out[128], svg[128], xml[128];
	struct stat st;

	tree_new(&tree);
	node_soft(&tree);
	snprintf(out, sizeof(out), "%s/topo.json", tree.dir);
	snprintf(svg, sizeof(svg), "%s/topo.svg", tree.dir);
	snprintf(xml, sizeof(xml), "%s/topo.xml", tree.dir);
	assert_int_equal(RUN("--sysroot", tree.dir), 0);
	assert_int_equal(RUN("--sysroot", tree.dir, "--matrix"), 0);
	assert_int_equal(RUN("--sysroot", tree.dir, "--json", "-o", out, "--svg", svg,
				 "--hwloc-xml-out", xml, "--anonymous"),
		0);
	assert_true(stat(out, &st) == 0 && st.st_size > 1000);
	assert_true(stat(svg, &st) == 0 && st.st_size > 1000);
	assert_true(stat(xml, &st) == 0 && st.st_size > 1000);
	assert_int_equal(RUN("--help"), 0);
	assert_int_equal(RUN("--matrx"), FB_EXIT_USAGE);
	assert_int_equal(RUN("--json", "--matrix"), FB_EXIT_USAGE);
	assert_int_equal(RUN("--sysroot", "/nonexistent/tree"), FB_EXIT_USAGE);
	assert_int_not_equal(RUN("--sysroot", tree.dir, "-o", "/nonexistent/dir/file"), 0);
	tree_remove(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_tree_is_refused),
		cmocka_unit_test(test_cpuid_dump_is_refused),
		cmocka_unit_test(test_links_in_circles),
		cmocka_unit_test(test_bridges_in_a_circle),
		cmocka_unit_test(test_wrong_contents),
		cmocka_unit_test(test_huge_numbers_are_refused),
		cmocka_unit_test(test_tree_that_leads_out),
		cmocka_unit_test(test_ten_thousand_devices),
		cmocka_unit_test(test_rdma_hardware),
		cmocka_unit_test(test_rdma_hardware_without_pci),
		cmocka_unit_test(test_bind_thread),
		cmocka_unit_test(test_bind_thread_refusals),
		cmocka_unit_test(test_bind_memory),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
