// SPDX-License-Identifier: Apache-2.0
/*
 * What is read from recorded and constructed machines, against golden files and against single
 * facts that matter. FABRICBENCH_GOLDEN_WRITE=1 writes the golden files anew: read the difference
 * before committing it.
 */
#include "bench/core/test.h"

#include <libxml/parser.h>
#include <math.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "topo/hwloc_xml.h"
#include "topo/test_nodes.h"
#include "topo/topo_priv.h"

static struct topo *load(const char *dir)
{
	struct fb_sysroot r;
	struct fb_err e = {0};
	struct topo *t = NULL;

	assert_int_equal(fb_sysroot_open(&r, dir, &e), 0);
	if (topo_load(&r, &t, &e) != 0)
		fail_msg("topo_load %s: %s", dir, e.msg);
	fb_sysroot_close(&r);
	return t;
}

/* ---- golden files ---------------------------------------------------------------------------- */

static void compare_golden(const char *name, const char *suffix, const char *text)
{
	char path[256], *want;
	size_t len;
	struct fb_err e = {0};

	snprintf(path, sizeof(path), FB_TESTDATA("topo", "golden/%s.%s"), name, suffix);
	if (getenv("FABRICBENCH_GOLDEN_WRITE")) {
		assert_int_equal(fb_write_file_atomic(path, text, strlen(text), &e), 0);
		return;
	}
	if (fb_read_file(path, 1 << 20, &want, &len, &e) != 0)
		fail_msg("%s", e.msg);
	bool same = len == strlen(text) && memcmp(want, text, len) == 0;

	free(want);
	if (!same)
		fprintf(stderr, "%s differs; got:\n%s", path, text);
	assert_true(same);
}

static void golden(const char *dir, const char *name)
{
	struct topo *t = load(dir);
	struct fb_strbuf b = {0};

	topo_tree(t, false, &b);
	fb_strbuf_add(&b, "\n");
	topo_matrix(t, &b);
	assert_false(b.failed);
	compare_golden(name, "txt", b.s);
	fb_strbuf_free(&b);

	json_t *o = topo_to_json(t, true);
	char *text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12));

	fb_strbuf_printf(&b, "%s\n", text);
	compare_golden(name, "json", b.s);
	free(text);
	json_decref(o);
	fb_strbuf_free(&b);
	topo_free(t);
}

/** Unpack testdata/NAME.tar.gz, which holds the folder `top`. */
static void unpack(struct test_tree *tree, const char *name)
{
	char archive[256];
	struct fb_err e = {0};
	struct fb_proc_result res = {0};
	struct fb_proc_opts opts = {.deadline_ns = fb_clock_ns() + 30 * 1000000000ull};

	tree_new(tree);
	snprintf(archive, sizeof(archive), FB_TESTDATA("topo", "%s.tar.gz"), name);
	const char *argv[] = {"tar", "--no-same-owner", "-xzf", archive, "-C", tree->dir, NULL};

	if (fb_proc_run(argv, &opts, &res, &e) != 0 || res.status != 0)
		fail_msg("tar -xzf %s: status %d %s", archive, res.status, e.msg);
	fb_proc_result_free(&res);
}

static void recorded(const char *name)
{
	struct test_tree tree;

	unpack(&tree, name);
	golden(tree.dir, name);
	tree_remove(&tree);
}

static void test_recorded_mlx4_two_sockets(void **state)
{
	recorded("hwloc-32em64t-2n8c");
}

static void test_recorded_qib_edited_locality(void **state)
{
	recorded("hwloc-fakepcilocalities");
}

static void test_recorded_power9_gpus(void **state)
{
	recorded("hwloc-nvidiagpunumanodes");
}

static void test_recorded_wide_pci_domain(void **state)
{
	recorded("hwloc-2pa-pcidomain32bits");
}

static void test_recorded_h100_infiniband_class(void **state)
{
	recorded("gpud-sys-class-infiniband-h100.0");
}

static void test_recorded_memory_tiers(void **state)
{
	recorded("hwloc-fakeheteromemtiers");
}

/** MANIFEST's reading of the edited machine, and of a locality that the user sets. */
static void test_pci_locality(void **state)
{
	struct test_tree tree;

	unpack(&tree, "hwloc-fakepcilocalities");
	struct topo *t = load(tree.dir);

	assert_int_equal(topo_find_rdma(t, "qib0")->numa, 1);
	assert_string_equal(topo_find_rdma(t, "qib0")->netdev, "ib0");
	topo_free(t);
	/* Node 1 and 2 together: no single node, but CPUs. */
	setenv("HWLOC_PCI_LOCALITY", "0000:40-4f 0x00000066,0x66666666", 1);
	t = load(tree.dir);
	unsetenv("HWLOC_PCI_LOCALITY");
	const struct topo_rdma *d = topo_find_rdma(t, "qib0");

	assert_int_equal(d->numa, TOPO_UNKNOWN);
	assert_string_equal(d->cpus, "1-2,5-6,9-10,13-14,17-18,21-22,25-26,29-30,33-34,37-38");
	topo_free(t);
	tree_remove(&tree);
}

/* ---- constructed machines -------------------------------------------------------------------- */

static void constructed(void (*build)(const struct test_tree *), const char *name)
{
	struct test_tree tree;

	tree_new(&tree);
	build(&tree);
	golden(tree.dir, name);
	tree_remove(&tree);
}

static void test_constructed_gpus(void **state)
{
	constructed(node_gpus, "constructed-gpus");
}

static void test_constructed_soft(void **state)
{
	constructed(node_soft, "constructed-soft");
}

static void test_constructed_guest(void **state)
{
	constructed(node_guest, "constructed-guest");
}

static enum topo_path path_of(const struct topo *t, const struct topo_dev *devs, size_t n,
	const char *a, const char *b, double *bw)
{
	const struct topo_dev *x = NULL, *y = NULL;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(devs[i].name, a) == 0)
			x = &devs[i];
		if (strcmp(devs[i].name, b) == 0)
			y = &devs[i];
	}
	assert_non_null(x);
	assert_non_null(y);
	*bw = topo_path_bandwidth(t, x, y);
	assert_int_equal(topo_path(t, x, y), topo_path(t, y, x));
	return topo_path(t, x, y);
}

/** Types and bandwidths by hand: Gen5 x16 63.0 GB/s, x8 31.5, Gen4 x16 31.5, Gen1 x1 0.25. */
static void test_path_types(void **state)
{
	static const struct {
		const char *a, *b;
		enum topo_path type;
		double gbytes;
	} want[] = {
		{"GPU0", "GPU0", TOPO_PATH_SELF, 0},
		{"GPU0", "mlx5_0", TOPO_PATH_PIX, 63.015},
		{"GPU0", "GPU1", TOPO_PATH_PXB, 31.508}, /* the second switch's uplink is Gen4 */
		{"GPU1", "mlx5_0", TOPO_PATH_PXB, 31.508},
		{"GPU0", "mlx5_1", TOPO_PATH_PHB, 31.508}, /* x8 */
		{"GPU0", "eth0", TOPO_PATH_NODE, 0.25},
		{"GPU2", "mlx5_2", TOPO_PATH_PIX, 63.015}, /* idle at Gen1: counts at its best */
		{"GPU2", "mlx5_0", TOPO_PATH_SYS, 63.015},
		{"mlx5_1", "mlx5_2", TOPO_PATH_SYS, 31.508},
	};
	struct test_tree tree;
	struct topo_dev *devs;
	size_t n;
	double bw;

	tree_new(&tree);
	node_gpus(&tree);
	struct topo *t = load(tree.dir);

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(topo_count_nics(devs, n), 4);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		enum topo_path got = path_of(t, devs, n, want[i].a, want[i].b, &bw);

		if (got != want[i].type || fabs(bw / 1e9 - want[i].gbytes) > 0.001)
			fail_msg("%s-%s: %s %.3f GB/s", want[i].a, want[i].b, topo_path_name(got),
				bw / 1e9);
	}
	const struct topo_rdma *d = topo_find_rdma(t, "mlx5_1");

	assert_true(topo_link_downtrained(t, &t->pci[d->pci]));
	assert_false(topo_link_downtrained(t, &t->pci[topo_find_rdma(t, "mlx5_0")->pci]));
	free(devs);
	topo_free(t);
	tree_remove(&tree);
}

/** The keys that others read, and their order: nearest first. */
static void test_json_contract(void **state)
{
	struct test_tree tree;

	tree_new(&tree);
	node_gpus(&tree);
	struct topo *t = load(tree.dir);
	json_t *o = topo_to_json(t, false);
	static const char *const keys[] = {"packages", "numa_nodes", "gpus", "nics", "paths",
		"plan", "ambiguous", "rdma_devices", "netdevs", "pci", "warnings"};

	assert_string_equal(fb_json_str(o, "schema", ""), "fabricbench-topology/1");
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_true(json_is_array(json_object_get(o, keys[i])));
	assert_null(json_object_get(o, "host"));

	json_t *gpu = json_array_get(json_object_get(o, "gpus"), 0);
	json_t *nics = json_object_get(gpu, "nics");

	assert_string_equal(fb_json_str(gpu, "bdf", ""), "0000:13:00.0");
	assert_int_equal(fb_json_int(gpu, "numa", -1), 0);
	assert_string_equal(fb_json_str(gpu, "cpus", ""), "0-3");
	static const char *const order[][2] = {
		{"mlx5_0", "PIX"}, {"mlx5_1", "PHB"}, {"eth0", "NODE"}, {"mlx5_2", "SYS"}};
	assert_int_equal(json_array_size(nics), 4);
	for (size_t i = 0; i < 4; i++) {
		json_t *nic = json_array_get(nics, i);

		assert_string_equal(fb_json_str(nic, "name", ""), order[i][0]);
		assert_string_equal(fb_json_str(nic, "path", ""), order[i][1]);
	}
	json_t *nic = json_array_get(json_object_get(o, "nics"), 1);
	json_t *link = json_object_get(nic, "link");

	assert_string_equal(fb_json_str(nic, "kind", ""), "roce");
	assert_int_equal(fb_json_int(nic, "rate_bps", 0), 200000000000);
	assert_true(json_is_null(json_object_get(nic, "rail")));
	assert_int_equal(fb_json_int(link, "width", 0), 8);
	assert_int_equal(fb_json_int(link, "max_width", 0), 16);
	assert_true(fb_json_num(link, "speed", 0) == 32.0);
	assert_int_equal(json_array_size(json_object_get(o, "paths")), 7 * 6 / 2);
	json_decref(o);
	topo_free(t);
	tree_remove(&tree);
}

static void test_soft_rdma_follows_its_interface(void **state)
{
	struct test_tree tree;

	tree_new(&tree);
	node_soft(&tree);
	struct topo *t = load(tree.dir);
	const struct topo_rdma *rxe = topo_find_rdma(t, "rxe0"), *gone = topo_find_rdma(t, "rxe9");
	const struct topo_rdma *siw = topo_find_rdma(t, "siw0");

	assert_true(rxe->soft);
	assert_string_equal(rxe->netdev, "eth1");
	assert_int_equal(rxe->numa, 1);
	assert_string_equal(rxe->cpus, "2-3");
	assert_string_equal(t->pci[rxe->pci].bdf, "0000:80:03.0");
	assert_int_equal(gone->numa, TOPO_UNKNOWN);
	assert_null(gone->cpus);
	assert_int_equal(siw->numa, TOPO_UNKNOWN);
	assert_null(topo_find_rdma(t, "rxe1"));
	topo_free(t);
	tree_remove(&tree);
}

static void test_guest_is_ambiguous(void **state)
{
	struct test_tree tree;

	tree_new(&tree);
	node_guest(&tree);
	struct topo *t = load(tree.dir);
	json_t *o = topo_to_json(t, true);
	json_t *amb = json_object_get(o, "ambiguous");

	assert_true(t->virtual_machine);
	assert_int_equal(t->n_gpus, 2);
	assert_int_equal(json_array_size(json_object_get(o, "plan")), 0);
	assert_int_equal(json_array_size(amb), 2);
	assert_int_equal(json_array_size(json_object_get(json_array_get(amb, 0), "nics")), 2);
	json_decref(o);
	topo_free(t);
	tree_remove(&tree);
}

/* ---- picture and exports --------------------------------------------------------------------- */

static void test_svg_is_well_formed(void **state)
{
	void (*const builds[])(const struct test_tree *) = {node_gpus, node_soft, node_guest};

	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		struct test_tree tree;
		struct fb_strbuf b = {0};

		tree_new(&tree);
		builds[i](&tree);
		struct topo *t = load(tree.dir);

		topo_svg(t, &b);
		assert_false(b.failed);
		xmlDocPtr doc = xmlReadMemory(b.s, (int)b.len, "topo.svg", NULL, XML_PARSE_NONET);

		assert_non_null(doc);
		assert_string_equal((const char *)xmlDocGetRootElement(doc)->name, "svg");
		xmlFreeDoc(doc);
		assert_non_null(
			strstr(b.s, i == 0 ? "Constructed CPU &lt;A&amp;B&gt;" : "NUMA node 1"));
		assert_null(strstr(b.s, "<script"));
		fb_strbuf_free(&b);
		topo_free(t);
		tree_remove(&tree);
	}
	xmlCleanupParser();
}

static void test_hwloc_xml(void **state)
{
	struct test_tree tree;
	struct fb_strbuf b = {0};
	struct fb_err e = {0};

	tree_new(&tree);
	node_gpus(&tree);
	tree_file(&tree, "/sys/class/dmi/id", "product_serial", "SECRET42\n");
	tree_file(&tree, "/sys/devices/virtual/dmi/id", "product_serial", "SECRET42\n");
	struct topo *t = load(tree.dir);

	assert_int_equal(topo_hwloc_xml(t, false, &b, &e), 0);
	assert_non_null(strstr(b.s, "<topology version=\"2.0\">"));
	assert_non_null(strstr(b.s, "SECRET42"));
	fb_strbuf_free(&b);
	assert_int_equal(topo_hwloc_xml(t, true, &b, &e), 0);
	assert_null(strstr(b.s, "SECRET42"));
	fb_strbuf_free(&b);
	topo_free(t);
	tree_remove(&tree);
}

/** Recordings that keep of a GPU little more than its class: hwloc's XML has its maker too. */
static void test_hwloc_xml_of_little(void **state)
{
	static const char gpu[] = "/sys/bus/pci/devices/0004:05:00.0";
	struct test_tree tree;
	struct fb_strbuf b = {0};
	struct fb_err e = {0};
	struct topo *again;

	tree_new(&tree);
	tree_cpus(&tree, 2, 2, "Constructed CPU", "tsc");
	tree_file(&tree, gpu, "class", "0x030000\n");
	tree_file(&tree, gpu, "local_cpus", "0000000c\n");
	tree_file(&tree, "/proc/driver/nvidia/gpus/0004:05:00.0", "numa_status", "Node: 255\n");
	struct topo *t = load(tree.dir);

	assert_int_equal(t->n_gpus, 1);
	assert_int_equal(topo_hwloc_xml(t, false, &b, &e), 0);
	if (topo_parse_hwloc_xml(b.s, b.len, "file.xml", &again, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(again->n_gpus, 1);
	assert_int_equal(again->pci[again->gpus[0].pci].vendor, 0x10de);
	assert_int_equal(again->pci[again->gpus[0].pci].numa, 1);

	/* What no source tells has its key all the same. */
	json_t *o = topo_to_json(again, true);
	json_t *list = json_object_get(o, "gpus");

	assert_string_equal(fb_json_str(json_array_get(list, 0), "cpus", ""), "2-3");
	free(again->pci[again->gpus[0].pci].cpus);
	again->pci[again->gpus[0].pci].cpus = NULL;
	json_decref(o);
	o = topo_to_json(again, true);
	list = json_object_get(o, "gpus");
	assert_true(json_is_null(json_object_get(json_array_get(list, 0), "cpus")));
	json_decref(o);
	fb_strbuf_free(&b);
	topo_free(again);
	topo_free(t);
	tree_remove(&tree);
}

static void test_live_machine(void **state)
{
	struct topo *t = load(NULL);
	char host[256] = "";
	json_t *o = topo_to_json(t, true), *named = topo_to_json(t, false);

	assert_true(t->live);
	assert_true(t->n_numa >= 1 && t->pus >= 1);
	assert_null(json_object_get(o, "host"));
	gethostname(host, sizeof(host) - 1);
	assert_string_equal(fb_json_str(named, "host", ""), host);
	json_decref(o);
	json_decref(named);
	topo_free(t);
}

/* ---- small parts ----------------------------------------------------------------------------- */

static void test_known_answers(void **state)
{
	/* hwloc's figures for the same links: 0.25, 15.754, 31.508, 63.015 GB/s. */
	assert_true(fabs(topo_link_bandwidth(2.5, 1) - 0.25e9) < 1);
	assert_true(fabs(topo_link_bandwidth(8, 16) - 15.754e9) < 1e6);
	assert_true(fabs(topo_link_bandwidth(16, 16) - 31.508e9) < 1e6);
	assert_true(fabs(topo_link_bandwidth(32, 16) - 63.015e9) < 1e6);
	assert_true(fabs(topo_link_bandwidth(64, 16) - 121.0e9) < 1e6);
	assert_true(topo_link_bandwidth(0, 16) == 0);
	assert_true(topo_link_bandwidth(32, 0) == 0);

	assert_int_equal(topo_bdf_len("0000:3b:00.0"), 12);
	assert_int_equal(topo_bdf_len("10000:00:04.0/net"), 13);
	assert_int_equal(topo_bdf_len("0000:3b:00.8"), 0);
	assert_int_equal(topo_bdf_len("0000:3b:00.0x"), 0);
	assert_int_equal(topo_bdf_len("pci0000:3b"), 0);
	assert_int_equal(topo_bdf_len(""), 0);

	assert_true(topo_cpulist_sane("0-3,8,65535"));
	assert_false(topo_cpulist_sane("0-4294967295"));
	assert_false(topo_cpulist_sane(""));
	assert_false(topo_cpulist_sane("-1"));
	assert_false(topo_cpulist_sane("0 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_mlx4_two_sockets),
		cmocka_unit_test(test_recorded_qib_edited_locality),
		cmocka_unit_test(test_recorded_power9_gpus),
		cmocka_unit_test(test_recorded_wide_pci_domain),
		cmocka_unit_test(test_recorded_h100_infiniband_class),
		cmocka_unit_test(test_recorded_memory_tiers),
		cmocka_unit_test(test_pci_locality),
		cmocka_unit_test(test_constructed_gpus),
		cmocka_unit_test(test_constructed_soft),
		cmocka_unit_test(test_constructed_guest),
		cmocka_unit_test(test_path_types),
		cmocka_unit_test(test_json_contract),
		cmocka_unit_test(test_soft_rdma_follows_its_interface),
		cmocka_unit_test(test_guest_is_ambiguous),
		cmocka_unit_test(test_svg_is_well_formed),
		cmocka_unit_test(test_hwloc_xml),
		cmocka_unit_test(test_hwloc_xml_of_little),
		cmocka_unit_test(test_live_machine),
		cmocka_unit_test(test_known_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
