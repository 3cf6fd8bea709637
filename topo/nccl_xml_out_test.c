// SPDX-License-Identifier: Apache-2.0
/*
 * Export of NCCL's topology files: what was read comes back the same after writing and reading
 * again, and what is written from a machine is what NCCL itself would write, by hand.
 */
#include "topo/test_nccl.h"
#include "topo/test_nodes.h"

static void test_there_and_back(void **state)
{
	char *text, *line, *rest;
	size_t len;
	unsigned files = 0;
	struct fb_err e = {0};

	assert_int_equal(fb_read_file(DATA "MANIFEST.tsv", 1 << 20, &text, &len, &e), 0);
	for (rest = text; (line = strsep(&rest, "\n"));) {
		char *file = strsep(&line, "\t");

		if (!line || !strstr(file, ".xml") || strcmp(file, "azure-ncv4-graph.xml") == 0)
			continue;
		struct topo *t = load(file);

		there_and_back(file, t);
		topo_free(t);
		files++;
	}
	free(text);
	assert_int_equal(files, 23);
	struct topo *t = parse(modern);

	there_and_back("text", t);
	topo_free(t);
}

/* The parser hands text over in pieces, cut at each entity: blanks before one are no layout of ours
 * that comes and goes. */
static void test_text_in_pieces(void **state)
{
	struct topo *t =
		parse("<system version=\"1\"><cpu numaid=\"0\"><foreign>\n  <inner/>\n  \" and "
		      "&quot; text  <inner/>  </foreign></cpu></system>");

	there_and_back("pieces", t);
	topo_free(t);
	t = parse(
		"<system version=\"1\"><cpu numaid=\"0\" x=\"1&#10;2&#9;3\"><foreign y=\"4&#13;5\"> a "
		"<inner/>&#13;b&#13;&amp;&#13;&#10;c&#32; </foreign></cpu></system>");
	there_and_back("blanks by number", t);
	char *text = export_from(t, false);

	assert_non_null(strstr(text, "x=\"1 2 3\""));
	assert_non_null(strstr(text, "<foreign y=\"4 5\">a<inner/>b &amp; \nc</foreign>"));
	free(text);
	topo_free(t);
}

static void test_anonymous(void **state)
{
	struct topo *t = parse(modern);
	char *text = export_from(t, true);
	static const char *const gone[] = {"host_hash", "0xabc", "name=\"x\"", "<foo", "<gin"};

	for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		assert_null(strstr(text, gone[i]));
	assert_non_null(strstr(text, "mlx5_0"));
	free(text);
	topo_free(t);
	t = load("topo_8p_940.xml");
	text = export_from(t, true);
	assert_null(strstr(text, "guid"));
	free(text);
	topo_free(t);
}

/* ---- from a machine ------------------------------------------------------------------------ */

static struct topo *load_tree(void (*build)(const struct test_tree *))
{
	struct test_tree tree;
	struct fb_sysroot r;
	struct fb_err e = {0};
	struct topo *t;

	tree_new(&tree);
	build(&tree);
	/* Without it hwloc does not know whose words /proc/cpuinfo speaks. */
	tree_file(&tree, "/proc", "hwloc-nofile-info", "Architecture: x86_64\n");
	assert_int_equal(fb_sysroot_open(&r, tree.dir, &e), 0);
	assert_int_equal(topo_load(&r, &t, &e), 0);
	fb_sysroot_close(&r);
	tree_remove(&tree);
	return t;
}

/**
 * By hand from NCCL's rules: 10:01.0 is a root port and 12:00.0 a downstream port, left out;
 * 11:00.0 and 15:00.0 are switches; 17:00.0 is below 15:00.0's 16:00.0. GPU2 idles at Gen1, mlx5_1
 * runs at x8: both are written at their best. 86:00.0 belongs to a guest, 20:1d.0 is a BMC.
 */
static const char node_xml[] =
	"<system version=\"1\">\n"
	"  <cpu numaid=\"0\" affinity=\"0000000f\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n"
	"    <pci busid=\"0000:11:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"      <pci busid=\"0000:13:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>\n"
	"      <pci busid=\"0000:14:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"        <nic>\n"
	"          <net name=\"mlx5_0\" speed=\"400000\" port=\"1\"/>\n"
	"        </nic>\n"
	"      </pci>\n"
	"      <pci busid=\"0000:15:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" "
	"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n"
	"        <pci busid=\"0000:17:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
	"device=\"0x2330\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"/>\n"
	"      </pci>\n"
	"    </pci>\n"
	"    <pci busid=\"0000:18:00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"      <nic>\n"
	"        <net name=\"mlx5_1\" speed=\"200000\" port=\"1\"/>\n"
	"      </nic>\n"
	"    </pci>\n"
	"    <pci busid=\"0000:21:00.0\" class=\"0x020000\" vendor=\"0x8086\" device=\"0x1533\" "
	"link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">\n"
	"      <nic>\n"
	"        <net name=\"eth0\" speed=\"1000\"/>\n"
	"      </nic>\n"
	"    </pci>\n"
	"  </cpu>\n"
	"  <cpu numaid=\"1\" affinity=\"000000f0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n"
	"    <pci busid=\"0000:81:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"      <pci busid=\"0000:83:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>\n"
	"      <pci busid=\"0000:84:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" "
	"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"        <nic>\n"
	"          <net name=\"mlx5_2\" speed=\"400000\" port=\"1\"/>\n"
	"        </nic>\n"
	"      </pci>\n"
	"    </pci>\n"
	"  </cpu>\n"
	"</system>\n";

static void test_export_of_a_machine(void **state)
{
	struct topo *t = load_tree(node_gpus);
	char *text = export_from(t, false);

	assert_string_equal(text, node_xml);
	struct topo *again = parse(text);

	assert_int_equal(again->n_gpus, 3);
	assert_int_equal(again->n_rdma, 3);
	assert_int_equal(again->n_nics, 1);
	path_is(again, "GPU0", "mlx5_0", TOPO_PATH_PIX);
	path_is(again, "GPU1", "mlx5_0", TOPO_PATH_PXB);
	path_is(again, "GPU0", "mlx5_1", TOPO_PATH_PHB);
	/* Another host bridge of the same node: NODE is PHB to NCCL. */
	path_is(again, "GPU0", "eth0", TOPO_PATH_PHB);
	path_is(again, "GPU2", "mlx5_0", TOPO_PATH_SYS);
	there_and_back("machine", again);
	free(text);
	topo_free(again);
	topo_free(t);
}

/** GPUs of AMD make RCCL's version; a guest's functions have no node and no bridge. */
static void test_export_of_a_guest(void **state)
{
	struct topo *t = load_tree(node_guest);
	char *text = export_from(t, false);

	assert_non_null(strstr(text, "<system version=\"2\">\n"));
	assert_non_null(strstr(text, "  <cpu numaid=\"-1\" arch=\"x86_64\""));
	struct topo *again = parse(text);

	assert_int_equal(again->n_numa, 2);
	assert_int_equal(again->n_gpus, 2);
	assert_int_equal(again->n_rdma, 2);
	assert_int_equal(again->pci[again->gpus[0].pci].numa, TOPO_UNKNOWN);
	there_and_back("guest", again);
	free(text);
	topo_free(again);
	topo_free(t);
}

/** Software RDMA devices are their interface's; interfaces without hardware are none of NCCL's. */
static void test_export_of_soft_devices(void **state)
{
	struct topo *t = load_tree(node_soft);
	char *text = export_from(t, false);

	assert_non_null(strstr(text, "<net name=\"eth0\" speed=\"10000\"/>"));
	assert_non_null(strstr(text, "<net name=\"eth1\" speed=\"10000\"/>"));
	assert_null(strstr(text, "rxe"));
	assert_null(strstr(text, "vlan7"));
	free(text);
	topo_free(t);
}

static void test_matrix_is_no_tree(void **state)
{
	struct topo t = {.source = TOPO_FROM_SMI};
	struct fb_strbuf b = {0};
	struct fb_err e = {0};

	assert_int_equal(topo_nccl_xml(&t, false, &b, &e), -ENODATA);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_true(e.hint[0]);
	fb_strbuf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_text_in_pieces),
		cmocka_unit_test(test_anonymous),
		cmocka_unit_test(test_export_of_a_machine),
		cmocka_unit_test(test_export_of_a_guest),
		cmocka_unit_test(test_export_of_soft_devices),
		cmocka_unit_test(test_matrix_is_no_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
