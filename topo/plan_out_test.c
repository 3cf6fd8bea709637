// SPDX-License-Identifier: Apache-2.0
/*
 * What is made of a plan: lines to paste, rankfile, JSON, picture, matrix; its limits; and NCCL's
 * classes of paths against NCCL's rules.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <hwloc.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "topo/nccl_path.h"
#include "topo/test_model.h"
#include "topo/test_nodes.h"
#include "topo/test_plan.h"

static struct topo *load_tree(const char *dir)
{
	struct fb_sysroot r;
	struct fb_err e = {0};
	struct topo *t;

	assert_int_equal(fb_sysroot_open(&r, dir, &e), 0);
	if (topo_load(&r, &t, &e) != 0)
		fail_msg("%s", e.msg);
	fb_sysroot_close(&r);
	return t;
}

static void test_tree_and_outputs(void **state)
{
	struct test_tree tree;
	struct fb_strbuf b = {0};
	struct fb_err e = {0};

	const char *names[] = {"n1", "n2"};
	const struct fb_opt_list hosts = {names, 2}, alone = {0};

	tree_new(&tree);
	node_gpus(&tree);
	struct topo *t = load_tree(tree.dir);
	struct topo_plan *p = plan_of(t);

	/* Node 0: 4 cores, 2 GPUs, one NIC; node 1: 4 cores, 1 GPU. */
	assert_string_equal(p->gpus[0].cpus, "2");
	assert_string_equal(p->gpus[1].cpus, "3");
	assert_string_equal(p->gpus[2].cpus, "5-7");
	assert_int_equal(p->gpus[2].n_cores, 3);
	assert_int_equal(topo_plan_rankfile(p, &hosts, &b, &e), 0);
	const char *ranks = strstr(b.s, "rank 0");

	assert_string_equal(ranks, "rank 0=n1 slot=2\nrank 1=n1 slot=3\nrank 2=n1 slot=5-7\n"
				   "rank 3=n2 slot=2\nrank 4=n2 slot=3\nrank 5=n2 slot=5-7\n");
	fb_strbuf_free(&b);
	assert_int_equal(topo_plan_rankfile(p, &alone, &b, &e), 0);
	assert_non_null(strstr(b.s, "\nrank 0=localhost slot=2\n"));
	fb_strbuf_free(&b);
	topo_plan_text(t, p, &b);
	assert_non_null(strstr(b.s, "export NCCL_IB_HCA=\"=mlx5_0,mlx5_2\""));
	assert_non_null(strstr(b.s, "GPU2: numactl --physcpubind=5-7 --membind=1"));
	assert_non_null(strstr(b.s, "mlx5_1        200 Gb/s, the compute NICs have 400"));
	fb_strbuf_free(&b);
	topo_plan_free(p);
	topo_free(t);
	tree_remove(&tree);
	/* Without cores there is no rankfile, and the reason is told. */
	t = model_node(1, 1, 1);
	p = plan_of(t);
	assert_int_equal(topo_plan_rankfile(p, &alone, &b, &e), -ENODATA);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	topo_plan_free(p);
	topo_free(t);
}

/** The node that `make bench` measures: two NICs a GPU, whole cores with both threads. */
static void test_large_tree(void **state)
{
	struct test_tree tree;

	tree_new(&tree);
	node_large(&tree);
	struct topo *t = load_tree(tree.dir);
	struct topo_plan *p = plan_of(t);

	assert_int_equal(t->pus, 256);
	assert_int_equal(p->n_gpus, 16);
	assert_int_equal(p->nics_per_gpu, 2);
	for (size_t g = 0; g < 16; g++) {
		assert_int_equal(p->gpus[g].nics[0], 2 * g);
		assert_int_equal(p->gpus[g].nics[1], 2 * g + 1);
		assert_int_equal(p->gpus[g].numa, g / 2);
		/* 16 cores, 4 NICs: 4 stay free, 6 for each of two GPUs. */
		assert_int_equal(p->gpus[g].n_cores, 6);
	}
	assert_string_equal(p->gpus[0].cpus, "4-9,132-137");
	assert_string_equal(p->gpus[0].cores, "4-9");
	assert_string_equal(p->gpus[15].cpus, "122-127,250-255");
	assert_string_equal(p->irq[0].cpus, "0-3,128-131");
	topo_plan_free(p);
	topo_free(t);
	tree_remove(&tree);
}

/** The keys that others read. */
static void test_json(void **state)
{
	struct topo *t = model_node(2, 1, 1);
	json_t *o = topo_to_json(t, true), *g, *n;
	size_t i;

	assert_int_equal(json_array_size(json_object_get(o, "plan")), 4);
	assert_int_equal(json_array_size(json_object_get(o, "ambiguous")), 0);
	json_array_foreach (json_object_get(o, "plan"), i, g) {
		char name[32];

		snprintf(name, sizeof(name), "GPU%zu", i);
		assert_string_equal(fb_json_str(g, "gpu", ""), name);
		assert_int_equal(fb_json_int(g, "rail", -1), i);
		assert_int_equal(fb_json_int(g, "numa", -1), i / 2);
	}
	json_array_foreach (json_object_get(o, "nics"), i, n)
		assert_int_equal(fb_json_int(n, "rail", -1), i);
	assert_string_equal(fb_json_str(o, "nccl_ib_hca", ""), "=mlx5_0,mlx5_1,mlx5_2,mlx5_3");
	json_decref(o);
	topo_free(t);
}

static size_t times(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

/** The picture tells rails, what is left out, and the links between GPUs of each kind. */
static void test_picture(void **state)
{
	struct topo *t = model_node(2, 1, 1);
	struct fb_strbuf b = {0};

	model_rdma(t, "mgmt0", model_bridge(t, TOPO_UNKNOWN, 0), 0, "InfiniBand", 25, 4);
	model_fast(t, TOPO_FAST_NVLINK, 0, 1, 4);
	topo_svg(t, &b);
	assert_int_equal(times(b.s, ">rail 3<"), 2);
	assert_int_equal(times(b.s, ">not in plan<"), 1);
	assert_int_equal(times(b.s, "NVLink x4 to 1 GPU<"), 2);
	assert_int_equal(times(b.s, "<title>GPU0 to GPU1: 4</title>"), 1);
	assert_int_equal(times(b.s, ">switches<"), 0);
	fb_strbuf_free(&b);
	for (size_t i = 0; i < 4; i++)
		model_fast(t, TOPO_FAST_NVLINK, i, SIZE_MAX, 18);
	topo_svg(t, &b);
	assert_int_equal(times(b.s, ">switches<"), 1);
	assert_int_equal(times(b.s, ">18<"), 4);
	fb_strbuf_free(&b);
	topo_free(t);
}

/** 64 GPUs and 256 NICs, the most that a plan takes, and one more GPU, which it refuses. */
static void test_limits(void **state)
{
	struct topo *t = model_node(8, 4, 16);
	uint64_t start = fb_clock_ns();
	struct topo_plan *p = plan_of(t);

	assert_int_equal(p->n_gpus, 64);
	assert_int_equal(p->n_nics, 256);
	for (size_t g = 0; g < 64; g++) {
		assert_int_equal(p->gpus[g].n_nics, 4);
		assert_int_equal(p->gpus[g].path, TOPO_PATH_PIX);
	}
	assert_true(fb_clock_ns() - start < 3000000000ull);
	topo_plan_free(p);
	model_gpu(t, TOPO_UNKNOWN, 0);
	p = plan_of(t);
	assert_int_equal(p->n_gpus, 0);
	assert_true(noted(p, "no plan for more than"));
	topo_plan_free(p);
	topo_free(t);
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

/** Four GPUs in a ring of NVLinks (0-1-2-3-0), a NIC beside GPU0 only. */
static void test_nccl_classes(void **state)
{
	struct topo *t = model_new();
	struct topo_dev *devs;
	enum topo_nccl c[25];
	size_t n;
	int sw;

	model_numa(t, "0-3");
	model_numa(t, "4-7");
	sw = model_bridge(t, model_bridge(t, TOPO_UNKNOWN, 0), 0);
	model_gpu(t, model_bridge(t, sw, 0), 0);
	for (int i = 1; i < 4; i++)
		model_gpu(t, model_bridge(t, TOPO_UNKNOWN, i / 2), i / 2);
	model_rdma(t, "mlx5_0", model_bridge(t, sw, 0), 0, "InfiniBand", 400, 4);
	for (size_t i = 0; i < 4; i++)
		model_fast(t, TOPO_FAST_NVLINK, i, (i + 1) % 4, 2);
	assert_int_equal(topo_devices(t, &devs, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(topo_nccl_classes(t, devs, n, c), 0);
	assert_int_equal(c[0 * 5 + 0], TOPO_NCCL_LOC);
	assert_int_equal(c[0 * 5 + 1], TOPO_NCCL_NVL);
	assert_int_equal(c[0 * 5 + 2], TOPO_NCCL_NVB);
	assert_int_equal(c[0 * 5 + 4], TOPO_NCCL_PIX);
	/* GPU1 and GPU3 reach the NIC through GPU0; the NIC reaches them through the CPU. */
	assert_int_equal(c[1 * 5 + 4], TOPO_NCCL_PXN);
	assert_int_equal(c[3 * 5 + 4], TOPO_NCCL_PXN);
	assert_int_equal(c[4 * 5 + 1], TOPO_NCCL_PHB);
	assert_int_equal(c[4 * 5 + 3], TOPO_NCCL_SYS);
	/* Two NVLink hops are no PXN. */
	assert_int_equal(c[2 * 5 + 4], TOPO_NCCL_SYS);
	assert_true(topo_nccl_gdr(TOPO_NCCL_PXB));
	assert_false(topo_nccl_gdr(TOPO_NCCL_PHB));
	free(devs);
	topo_free(t);
}

/** Through NVSwitches all are NVL, and as many links as the lesser end has. */
static void test_nvswitch_matrix(void **state)
{
	struct topo *t = model_node(2, 1, 1);
	struct fb_strbuf b = {0};

	for (size_t i = 0; i < 4; i++)
		model_fast(t, TOPO_FAST_NVLINK, i, SIZE_MAX, i == 3 ? 17 : 18);
	topo_matrix(t, &b);
	assert_false(b.failed);
	assert_non_null(strstr(b.s, "\nGPU0\t X \tNV18\tNV18\tNV17\tPIX\tPHB\tSYS\tSYS\t"));
	assert_non_null(strstr(b.s, "\nGPU0\tLOC\tNVL\tNVL\tNVL\tPIX\tPXN\tPXN\tPXN\n"));
	assert_non_null(strstr(b.s, "\nNIC0\tPIX\tPHB\tSYS\tSYS\tLOC\tPHB\tSYS\tSYS\n"));
	assert_non_null(strstr(b.s, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"));
	assert_non_null(strstr(b.s, "\n  NIC3: mlx5_3\n"));
	fb_strbuf_free(&b);
	assert_true(topo_fast_bandwidth(t, 0, 3) == 17 * 25e9);
	topo_free(t);
}

/** What we print, the reader of nvidia-smi's text reads. */
static void test_matrix_is_read_back(void **state)
{
	struct topo *t = model_node(2, 1, 1), *back;
	struct test_tree tree;
	struct fb_strbuf b = {0};
	struct topo_dev *x, *y;
	struct fb_err e = {0};
	char path[128];
	size_t n, m;

	for (size_t i = 0; i < 4; i++)
		model_fast(t, TOPO_FAST_NVLINK, i, SIZE_MAX, 18);
	topo_matrix(t, &b);
	tree_new(&tree);
	tree_write(&tree, "/topo.txt", b.s);
	tree_join(path, sizeof(path), "%s/topo.txt", tree.dir);
	if (topo_load_smi(path, &back, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(topo_devices(t, &x, &n), 0);
	assert_int_equal(topo_devices(back, &y, &m), 0);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(x[i].name, y[i].name);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(topo_path(t, &x[i], &x[k]), topo_path(back, &y[i], &y[k]));
	}
	free(x);
	free(y);
	fb_strbuf_free(&b);
	topo_free(t);
	topo_free(back);
	tree_remove(&tree);
}

/** `plan_out_test --large-tree DIR` makes the tree of node_large() there, for scripts/bench. */
int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--large-tree") == 0) {
		struct test_tree tree;

		tree_join(tree.dir, sizeof(tree.dir), "%s", argv[2]);
		node_large(&tree);
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_and_outputs),
		cmocka_unit_test(test_large_tree),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nccl_classes),
		cmocka_unit_test(test_nvswitch_matrix),
		cmocka_unit_test(test_matrix_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
