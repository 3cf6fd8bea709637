// SPDX-License-Identifier: Apache-2.0
/*
 * The fingerprint stays when buses are renumbered and changes when anything of the shape does; the
 * difference names what changed and nothing else. Tried on a recorded eight-GPU node (RCCL's model
 * of an MI300X machine) with one thing changed at a time.
 */
#include "bench/core/test.h"

#include <errno.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "topo/fingerprint.h"
#include "topo/test_model.h"
#include "topo/test_nodes.h"

#define RECORDED FB_TESTDATA("topo", "nccl/topo_8p_940.xml")

/* ---- a file with one thing changed ----------------------------------------------------------- */

static char *recorded(void)
{
	char *text;
	size_t len;
	struct fb_err e = {0};

	if (fb_read_file(RECORDED, 1 << 20, &text, &len, &e) != 0)
		fail_msg("%s", e.msg);
	return text;
}

/** Replace every `from` by `to`; both of one length. */
static void swap_text(char *text, const char *from, const char *to)
{
	assert_int_equal(strlen(from), strlen(to));
	char *p = strstr(text, from);

	assert_non_null(p);
	for (; p; p = strstr(p + strlen(to), from))
		memcpy(p, to, strlen(to));
}

/** Cut from `from` to the end of the first `to` behind it. @return what was cut */
static char *cut(char *text, const char *from, const char *to)
{
	char *p = strstr(text, from);

	assert_non_null(p);
	char *end = strstr(p, to);

	assert_non_null(end);
	end += strlen(to);
	char *gone = strndup(p, (size_t)(end - p));

	memmove(p, end, strlen(end) + 1);
	return gone;
}

static char *insert_before(char *text, const char *at, const char *what)
{
	char *p = strstr(text, at), *out = NULL;

	assert_non_null(p);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(p - text), text, what, p) > 0);
	free(text);
	return out;
}

static struct topo_shape *shape_of(const char *xml)
{
	struct test_tree tree;
	struct topo *t;
	struct topo_shape *s;
	struct fb_err e = {0};
	char path[128];

	tree_new(&tree);
	tree_write(&tree, "/topo.xml", xml);
	tree_join(path, sizeof(path), "%s/topo.xml", tree.dir);
	if (topo_load_nccl_xml(path, &t, &e) != 0)
		fail_msg("%s", e.msg);
	tree_remove(&tree);
	assert_int_equal(topo_shape_make(t, &s), 0);
	topo_free(t);
	return s;
}

/** The recorded node against `text`, which is freed; texts of all entries into *told, one a line.
 */
static size_t differences(char *text, struct fb_strbuf *told)
{
	char *good = recorded();
	struct topo_shape *a = shape_of(good), *b = shape_of(text);
	struct topo_diff d;

	assert_int_equal(topo_shape_diff(a, b, &d), 0);
	/* Entries and hash agree on whether anything differs. */
	assert_int_equal(d.n == 0, strcmp(a->fingerprint, b->fingerprint) == 0);
	fb_strbuf_add(told, "");
	for (size_t i = 0; i < d.n; i++)
		fb_strbuf_printf(told, "%s %s: %s\n", topo_diff_name(d.e[i].kind), d.e[i].device,
			d.e[i].text);
	size_t n = d.n;

	free(d.e);
	topo_shape_free(a);
	topo_shape_free(b);
	free(good);
	free(text);
	return n;
}

static void expect_one(char *text, const char *start, const char *part)
{
	struct fb_strbuf told = {0};

	if (differences(text, &told) != 1 || strncmp(told.s, start, strlen(start)) != 0 ||
		!strstr(told.s, part))
		fail_msg("not one difference \"%s ... %s\":\n%s", start, part, told.s);
	fb_strbuf_free(&told);
}

static void expect_none(char *text)
{
	struct fb_strbuf told = {0};

	if (differences(text, &told) != 0)
		fail_msg("%s", told.s);
	fb_strbuf_free(&told);
}

/* ---- one thing at a time --------------------------------------------------------------------- */

static void test_the_same(void **state)
{
	expect_none(recorded());
}

static void test_renumbered_buses(void **state)
{
	char *text = recorded();

	swap_text(text, "\"0000:", "\"0002:");
	expect_none(text);
}

/** Numbers that run the other way, and NICs with their names, leave the shape part; the order
 * tells. */
static void test_reversed_buses(void **state)
{
	char *text = recorded(), *good = recorded();

	swap_text(text, "\"0000:05:", "\"0003:05:");
	swap_text(text, "\"0000:07:", "\"0003:07:");
	swap_text(text, "\"0000:08:", "\"0003:08:");
	swap_text(text, "\"0000:0a:", "\"0003:0a:");
	swap_text(text, "\"0000:0c:", "\"0003:0c:");
	struct topo_shape *a = shape_of(good), *b = shape_of(text);

	assert_string_equal(a->fingerprint, b->fingerprint);
	topo_shape_free(a);
	topo_shape_free(b);
	free(text);
	free(good);
}

static void test_missing_gpu(void **state)
{
	char *text = recorded();

	/* The function alone, whose bridges then lead to nothing. */
	free(cut(text, "<pci busid=\"0000:1e:00.0\"", "</pci>"));
	expect_one(text, "missing GPU2: ",
		"at 0000:1e:00.0: AMD accelerator [1002:74a1], NUMA node 0, "
		"on a switch with mlx5_2");
}

static void test_missing_nic(void **state)
{
	char *text = recorded();

	free(cut(text, "<pci busid=\"0000:10:00.0\"", "</pci>"));
	expect_one(text, "missing mlx5_1: ", "at 0000:10:00.0");
}

/** A NIC of a hypervisor's own bus: no PCI function, so neither an address nor a port. */
static void test_extra_nic_without_function(void **state)
{
	char *text = recorded(), *end = strstr(text, "</cpu>"), *more = NULL;

	assert_non_null(end);
	assert_true(
		asprintf(&more, "%.*s<nic><net name=\"eth9\" dev=\"9\" speed=\"10000\"/></nic>%s",
			(int)(end - text), text, end) > 0);
	free(text);
	expect_one(
		more, "extra eth9: eth9: a device of a model that is not told, NUMA node 0\n", "");
}

static void test_missing_link(void **state)
{
	char *text = recorded();

	/* One end only: GPU0's to GPU1. */
	free(cut(text, "<xgmi target=\"0000:15:00.0\"", "/>"));
	expect_one(text, "changed GPU0: ", "0 xGMI links to GPU1 instead of 1");
}

static void test_moved_nic(void **state)
{
	char *text = recorded();
	char *nic = cut(text, "<pci busid=\"0000:10:00.0\"", "</pci>");

	text = insert_before(text, "<pci busid=\"0000:07:00.0\"", nic);
	free(nic);
	expect_one(
		text, "moved mlx5_1: ", "on a switch with mlx5_0, GPU0; in the reference mlx5_1");
}

static void test_moved_gpu_across_sockets(void **state)
{
	char *text = recorded();
	char *gpu = cut(text, "<pci busid=\"0000:15:00.0\"", "</pci>");

	text = insert_before(text, "<pci busid=\"0000:9f:00.0\"", gpu);
	free(gpu);
	struct fb_strbuf told = {0};
	size_t n = differences(text, &told);

	assert_true(n >= 1);
	assert_non_null(strstr(told.s, "moved GPU"));
	assert_null(strstr(told.s, "missing"));
	assert_null(strstr(told.s, "extra"));
	fb_strbuf_free(&told);
}

static void test_swapped_names(void **state)
{
	struct fb_strbuf told = {0};
	char *text = recorded();

	swap_text(text, "name=\"mlx5_0\"", "name=\"mlx5_X\"");
	swap_text(text, "name=\"mlx5_1\"", "name=\"mlx5_0\"");
	swap_text(text, "name=\"mlx5_X\"", "name=\"mlx5_1\"");
	assert_int_equal(differences(text, &told), 2);
	assert_non_null(strstr(told.s, "order GPU0: GPU0 on NUMA node 0 near RDMA device 1; in the "
				       "reference GPU0 on NUMA node 0 near RDMA device 0"));
	assert_non_null(strstr(told.s, "order GPU1: "));
	fb_strbuf_free(&told);
}

static void test_other_model(void **state)
{
	char *text = recorded(), *p = strstr(text, "busid=\"0000:19:00.0\"");

	assert_non_null(p);
	p = strstr(p, "device=\"0x1021\"");
	memcpy(p, "device=\"0x101b\"", 15);
	expect_one(text, "replaced mlx5_2: ", "[15b3:101b] instead of Mellanox");
}

/** Half the node: everything is named, once. */
static void test_all_of_a_socket(void **state)
{
	struct fb_strbuf told = {0};
	char *text = recorded(), *p;

	free(cut(text, "<cpu numaid=\"1\"", "</cpu>"));
	assert_true(differences(text, &told) >= 8);
	for (int g = 4; g < 8; g++) {
		char want[32];

		snprintf(want, sizeof(want), "missing GPU%d: ", g);
		p = strstr(told.s, want);
		assert_non_null(p);
		assert_null(strstr(p + 1, want));
		snprintf(want, sizeof(want), "missing mlx5_%d: ", g);
		assert_non_null(strstr(told.s, want));
	}
	assert_null(strstr(told.s, "xGMI"));
	fb_strbuf_free(&told);
}

/* ---- models ---------------------------------------------------------------------------------- */

static size_t compare_models(struct topo *a, struct topo *b, struct fb_strbuf *told)
{
	struct topo_shape *x, *y;
	struct topo_diff d;

	assert_int_equal(topo_shape_make(a, &x), 0);
	assert_int_equal(topo_shape_make(b, &y), 0);
	assert_int_equal(topo_shape_diff(x, y, &d), 0);
	fb_strbuf_add(told, "");
	for (size_t i = 0; i < d.n; i++)
		fb_strbuf_printf(told, "%s: %s\n", topo_diff_name(d.e[i].kind), d.e[i].text);
	free(d.e);
	topo_shape_free(x);
	topo_shape_free(y);
	topo_free(a);
	topo_free(b);
	return d.n;
}

/** What a port does, a rate, a driver, a name with a bus number in it: no part of the shape. */
static void test_states_are_no_shape(void **state)
{
	struct fb_strbuf told = {0};
	struct topo *a = model_node(2, 1, 1), *b = model_node(2, 1, 1);

	for (int i = 0; i < 4; i++) {
		b->rdma[i].ports[0].state = 1;
		b->rdma[i].ports[0].rate_bps = 0;
		snprintf(b->rdma[i].name, sizeof(b->rdma[i].name), "ibp%ds0", 10 + i);
		b->pci[b->gpus[i].pci].link.now_gts = 2.5;
	}
	assert_int_equal(compare_models(a, b, &told), 0);
	fb_strbuf_free(&told);
}

static void test_changes_of_one_device(void **state)
{
	struct fb_strbuf told = {0};
	struct topo *a = model_node(2, 1, 1), *b = model_node(2, 1, 1);

	b->pci[b->gpus[1].pci].link.max_width = 8;
	assert_int_equal(compare_models(a, b, &told), 1);
	assert_non_null(strstr(told.s, "changed: GPU1: its PCIe link can do 32 GT/s x8, in the "
				       "reference 32 GT/s x16"));
	fb_strbuf_free(&told);

	a = model_node(2, 1, 1);
	b = model_node(2, 1, 1);
	b->pci[b->gpus[2].pci].numa = TOPO_UNKNOWN;
	assert_int_equal(compare_models(a, b, &told), 2); /* and the order: GPU2 has no node */
	assert_non_null(strstr(told.s, "GPU2: NUMA node unknown instead of 1"));
	fb_strbuf_free(&told);

	a = model_node(2, 1, 1);
	b = model_node(2, 1, 1);
	for (size_t i = 0; i < 4; i++) {
		model_fast(a, TOPO_FAST_NVLINK, i, SIZE_MAX, 18);
		model_fast(b, TOPO_FAST_NVLINK, i, SIZE_MAX, i == 2 ? 17 : 18);
	}
	assert_int_equal(compare_models(a, b, &told), 1);
	assert_string_equal(told.s, "changed: GPU2: 17 NVLinks to the switches instead of 18\n");
	fb_strbuf_free(&told);

	/* A function without its RDMA device: the driver is missing. */
	a = model_node(2, 1, 1);
	b = model_node(2, 1, 1);
	free(b->rdma[3].cpus);
	free(b->rdma[3].ports);
	b->n_rdma = 3;
	assert_true(compare_models(a, b, &told) >= 1);
	assert_non_null(strstr(told.s, "0 RDMA devices on it instead of 1"));
	fb_strbuf_free(&told);

	/* An NVLink of a mesh is told once, though both ends lack it. */
	a = model_node(2, 1, 1);
	b = model_node(2, 1, 1);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = i + 1; k < 4; k++) {
			model_fast(a, TOPO_FAST_NVLINK, i, k, 4);
			model_fast(b, TOPO_FAST_NVLINK, i, k, i == 1 && k == 3 ? 3 : 4);
		}
	assert_int_equal(compare_models(a, b, &told), 1);
	assert_string_equal(told.s, "changed: GPU1: 3 NVLinks to GPU3 instead of 4\n");
	fb_strbuf_free(&told);
}

/** A missing GPU in front renumbers the others: only it is told. */
static void test_first_gpu_missing(void **state)
{
	struct fb_strbuf told = {0};
	struct topo *a = model_node(4, 1, 1), *b = model_new();

	model_numa(b, "0-31,64-95");
	model_numa(b, "32-63,96-127");
	for (int i = 0; i < 8; i++) {
		int numa = i / 4;
		int sw = model_bridge(b, model_bridge(b, TOPO_UNKNOWN, numa), numa);
		char name[16];

		if (i)
			model_gpu(b, model_bridge(b, sw, numa), numa);
		snprintf(name, sizeof(name), "mlx5_%d", i);
		model_rdma(b, name, model_bridge(b, sw, numa), numa, "InfiniBand", 400, 4);
	}
	for (size_t i = 0; i < 8; i++)
		for (size_t k = i + 1; k < 8; k++) {
			model_fast(a, TOPO_FAST_NVLINK, i, k, 2);
			if (i)
				model_fast(b, TOPO_FAST_NVLINK, i - 1, k - 1, 2);
		}
	if (compare_models(a, b, &told) != 1)
		fail_msg("%s", told.s);
	assert_non_null(strstr(told.s, "missing: GPU0 "));
	fb_strbuf_free(&told);
}

/* ---- documents ------------------------------------------------------------------------------- */

static void test_json_round_trip(void **state)
{
	struct topo *t = model_node(2, 2, 2);
	struct topo_shape *s, *back;
	struct fb_err e = {0};

	model_fast(t, TOPO_FAST_NVLINK, 0, 1, 4);
	model_fast(t, TOPO_FAST_XGMI, 2, SIZE_MAX, 3);
	json_t *o = topo_to_json(t, true);

	assert_int_equal(topo_shape_make(t, &s), 0);
	assert_string_equal(fb_json_str(o, "fingerprint", ""), s->fingerprint);
	if (topo_shape_from_json(o, "node", &back, &e) != 0)
		fail_msg("%s", e.msg);
	assert_string_equal(back->fingerprint, s->fingerprint);
	assert_int_equal(back->n_items, s->n_items);
	topo_shape_free(s);
	topo_shape_free(back);
	json_decref(o);
	topo_free(t);
}

static void test_hostile_documents(void **state)
{
#define DOC(devices) \
	"{\"schema\": \"" TOPO_SCHEMA "\", \"shape\": {\"cpus\": \"\", \"devices\": " devices "}}"
#define DEV(parent, rest)                                                                          \
	"{\"kind\": \"gpu\", \"parent\": " parent ", \"class\": 1, \"vendor\": 1, \"device\": 1, " \
	"\"numa\": 0, \"max_speed\": 1, \"max_width\": 1, \"rdma\": 0" rest "}"
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"schema\": \"other\"}",
		DOC("7"),
		DOC("[7]"),
		DOC("[{\"kind\": \"gpu\"}]"),
		DOC("[" DEV("0", "") "]"), /* its own parent */
		DOC("[" DEV("-2", "") "]"),
		DOC("[" DEV("-1", ", \"links\": [{\"kind\": \"nvlink\"}]") "]"),
		DOC("[" DEV("-1",
			", \"links\": [{\"kind\": \"nvlink\", \"to\": \"g\", \"item\": 9, "
			"\"count\": 1}]") "]"),
	};
	struct topo_shape *s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fb_err e = {0};
		json_t *o = json_loads(bad[i], 0, NULL);

		assert_non_null(o);
		if (topo_shape_from_json(o, "node.json", &s, &e) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, "node.json"));
		json_decref(o);
	}
	struct fb_err e = {0};
	json_t *o = json_loads(DOC("[" DEV("-1", "") "]"), 0, NULL);

	assert_int_equal(topo_shape_from_json(o, "node.json", &s, &e), 0);
	topo_shape_free(s);
	json_decref(o);
#undef DEV
#undef DOC
}

static void write_json(const struct test_tree *tree, const char *name, struct topo *t)
{
	json_t *o = topo_to_json(t, true);
	char *text = json_dumps(o, 0);

	tree_write(tree, name, text);
	free(text);
	json_decref(o);
	topo_free(t);
}

/** A fleet in a folder: the majority is the measure, whatever comes first. */
static void test_fleet(void **state)
{
	struct test_tree tree;
	struct fb_strbuf out = {0};
	struct fb_err e = {0};
	char file[160];
	int status;

	tree_new(&tree);
	write_json(&tree, "/n1.json", model_node(2, 1, 2));
	write_json(&tree, "/n2.json", model_node(2, 1, 1));
	write_json(&tree, "/run3/topology.json", model_node(2, 1, 1));
	const char *one[] = {tree.dir};
	struct fb_opt_list list = {one, 1};

	if (topo_compare(&list, false, &out, &status, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(status, FB_EXIT_FAILED);
	assert_non_null(strstr(out.s, "n1.json differs from "));
	assert_non_null(strstr(out.s, "  extra     mlx5_"));
	assert_null(strstr(out.s, "missing"));
	fb_strbuf_free(&out);
	assert_int_equal(topo_compare(&list, true, &out, &status, &e), 0);
	json_t *doc = json_loads(out.s, 0, NULL);

	assert_int_equal(json_array_size(json_object_get(doc, "nodes")), 3);
	assert_int_equal(fb_json_int(doc, "reference_nodes", 0), 2);
	json_decref(doc);
	fb_strbuf_free(&out);

	/* Another kind of source tells other things. */
	tree_join(file, sizeof(file), "%s/n2.json", tree.dir);
	const char *mixed[] = {file, RECORDED};

	list = (struct fb_opt_list){mixed, 2};
	assert_int_equal(topo_compare(&list, false, &out, &status, &e), -EXDEV);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	fb_err_clear(&e);
	list.n = 1;
	assert_int_equal(topo_compare(&list, false, &out, &status, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_strbuf_free(&out);
	tree_remove(&tree);
}

/** Trees recorded from sysfs, one with a GPU's folder taken out. */
static void test_recorded_trees(void **state)
{
	struct test_tree a, b;
	struct fb_strbuf out = {0};
	struct fb_err e = {0};
	char gone[256];
	int status;

	tree_new(&a);
	node_gpus(&a);
	tree_new(&b);
	node_gpus(&b);
	const char *both[] = {a.dir, b.dir};
	struct fb_opt_list list = {both, 2};

	assert_int_equal(topo_compare(&list, false, &out, &status, &e), 0);
	assert_int_equal(status, 0);
	assert_non_null(strstr(out.s, "All 2 nodes have one shape."));
	fb_strbuf_free(&out);
	tree_join(gone, sizeof(gone), "%s/sys/bus/pci/devices/0000:83:00.0", b.dir);
	assert_int_equal(unlink(gone), 0);
	assert_int_equal(topo_compare(&list, false, &out, &status, &e), 0);
	assert_int_equal(status, FB_EXIT_FAILED);
	assert_non_null(strstr(out.s, "missing   GPU2 at 0000:83:00.0"));
	assert_null(strstr(out.s, "extra"));
	assert_null(strstr(out.s, "moved"));
	fb_strbuf_free(&out);
	tree_remove(&a);
	tree_remove(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same),
		cmocka_unit_test(test_renumbered_buses),
		cmocka_unit_test(test_reversed_buses),
		cmocka_unit_test(test_missing_gpu),
		cmocka_unit_test(test_missing_nic),
		cmocka_unit_test(test_extra_nic_without_function),
		cmocka_unit_test(test_missing_link),
		cmocka_unit_test(test_moved_nic),
		cmocka_unit_test(test_moved_gpu_across_sockets),
		cmocka_unit_test(test_swapped_names),
		cmocka_unit_test(test_other_model),
		cmocka_unit_test(test_all_of_a_socket),
		cmocka_unit_test(test_states_are_no_shape),
		cmocka_unit_test(test_changes_of_one_device),
		cmocka_unit_test(test_first_gpu_missing),
		cmocka_unit_test(test_json_round_trip),
		cmocka_unit_test(test_hostile_documents),
		cmocka_unit_test(test_fleet),
		cmocka_unit_test(test_recorded_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
