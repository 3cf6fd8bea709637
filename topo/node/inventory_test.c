// SPDX-License-Identifier: Apache-2.0
/*
 * What the inventory finds when a GPU, a NIC or an NVLink is gone: by the node's own symmetry, by
 * what was learned or is shipped, and by other nodes.
 */
#include "topo/node/node_test.h"

#include <unistd.h>

struct loss {
	const char *what, *id;
	struct machine m;
	const char *symmetry, *expected; /* what is said without, and with, an expectation */
};
static const struct loss losses[] = {
	{"nothing", NULL, MACHINE("n0"), NULL, NULL},
	{"a GPU", "inv.gpu_count", {"n0", 4, 5, -1, -1},
		"1 GPUs below 0000:80:01.0, where 3 others of the same switch have 2",
		"missing: 0000:84:00.0 (GPU5)"},
	{"a NIC", "inv.nic_count", {"n0", 4, -1, 2, -1},
		"1 compute NICs below 0000:40:01.0, where 3 others of the same switch have 2",
		"missing: 0000:45:00.0 (mlx5_2)"},
	{"an NVLink", "inv.nvlink_count", {"n0", 4, -1, -1, 3}, "17 up, 1 down", "17 up, 1 down"},
};
static const char *const counts[] = {"inv.gpu_count", "inv.nic_count", "inv.nvlink_count"};

/* Only the check of the loss says anything. */
static void only(
	const struct examined *x, const struct loss *l, const char *state, const char *text)
{
	for (int k = 0; k < 3; k++)
		if (!l->id || strcmp(l->id, counts[k]) != 0)
			is(x, counts[k], "pass");
	if (!l->id)
		return;
	is(x, l->id, state);
	says(x, l->id, text);
}

static void loss_by_symmetry(void **state)
{
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct examined x;
		tree_begin(&x, &losses[i].m);
		open_node(&x);
		run_all(&x);
		only(&x, &losses[i], "warn", losses[i].symmetry);
		examined_end(&x);
	}
}

static char *learned(const struct machine *m)
{
	struct examined x;
	struct fb_err e = {0};
	char *text = NULL;
	size_t len = 0;
	tree_begin(&x, m);
	open_node(&x);
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	assert_int_equal(node_learn(&x.node, out, &e), 0);
	fclose(out);
	examined_end(&x);
	return text;
}

static void loss_by_expectation(void **state)
{
	static const struct machine whole = MACHINE("n0");
	char *text = learned(&whole);
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		for (int shipped = 0; shipped < 2; shipped++) {
			struct examined x;
			struct fb_err e = {0};
			tree_begin(&x, &losses[i].m);
			open_node(&x);
			if (!shipped)
				expect_text(&x, text);
			else if (node_expect_read("hgx-h100", &x.node.expect, &e) != 0)
				fail_msg("%s", e.msg);
			run_all(&x);
			only(&x, &losses[i], "fail", shipped && i < 3 ? "7" : losses[i].expected);
			/* What was learned fits the node that it was learned from. */
			if (i == 0)
				clean(&x);
			examined_end(&x);
		}
	free(text);
}

/* Two whole nodes beside it; one of another kind has no vote. */
static void loss_by_fleet(void **state)
{
	static const struct machine whole[] = {
		MACHINE("n1"), MACHINE("n2"), {"other", 2, -1, -1, -1}};
	struct examined fleet[3];
	const char *names[3];
	for (int i = 0; i < 3; i++) {
		tree_begin(&fleet[i], &whole[i]);
		names[i] = fleet[i].tree.dir;
	}
	tree_file(&fleet[2].tree, "/sys/class/dmi/id", "product_name", "Four\n");
	const struct fb_opt_list list = {names, 3};
	struct node_fleet all;
	struct fb_err e = {0};
	if (node_fleet_read(&list, "n0", NULL, &all, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(all.n, 3);
	for (int i = 0; i < 3; i++)
		tree_remove(&fleet[i].tree);
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct examined x;
		tree_begin(&x, &losses[i].m);
		open_node(&x);
		x.node.fleet = all;
		run_all(&x);
		x.node.fleet = (struct node_fleet){.n = 0};
		only(&x, &losses[i], "fail", i == 3 ? losses[i].expected : "7");
		is(&x, "topo.fingerprint", i == 1 || i == 2 ? "fail" : "pass");
		is(&x, "inv.driver_versions", "pass");
		examined_end(&x);
	}
	node_fleet_free(&all);
}

static void old_firmware(const struct test_tree *tree)
{
	char dir[64];
	for (int i = 0; i < 8; i++) {
		tree_join(dir, sizeof(dir), "/sys/class/infiniband/mlx5_%d", i);
		tree_file(tree, dir, "fw_ver", "28.36.1010\n");
	}
}

/* Two nodes of three have one firmware: the third is behind, a fourth like the two is not. */
static void firmware_by_fleet(void **state)
{
	static const struct machine nodes[] = {MACHINE("n1"), MACHINE("n2"), MACHINE("n3")};
	struct test_tree trees[3];
	const char *names[3];
	struct node_fleet all;
	struct fb_err e = {0};
	(void)state;
	for (int i = 0; i < 3; i++) {
		machine_tree(&trees[i]);
		machine_make(&trees[i], &nodes[i]);
		names[i] = trees[i].dir;
	}
	old_firmware(&trees[2]);
	const struct fb_opt_list list = {names, 3};
	if (node_fleet_read(&list, "n0", NULL, &all, &e) != 0)
		fail_msg("%s", e.msg);
	for (int old = 0; old < 2; old++) {
		static const struct machine own = MACHINE("n0");
		struct examined x;
		tree_begin(&x, &own);
		if (old)
			old_firmware(&x.tree);
		open_node(&x);
		x.node.fleet = all;
		run_all(&x);
		x.node.fleet = (struct node_fleet){.n = 0};
		is(&x, "ib.fw_uniform", old ? "warn" : "pass");
		examined_end(&x);
	}
	node_fleet_free(&all);
	for (int i = 0; i < 3; i++)
		tree_remove(&trees[i]);
}

/* Four of four are no half of eight. */
static void four_of_four(void **state)
{
	static const struct machine m = {"four", 2, -1, -1, -1};
	for (int expected = 0; expected < 2; expected++) {
		struct examined x;
		tree_begin(&x, &m);
		open_node(&x);
		if (expected)
			expect_text(&x, "[machine]\ngpus = 4\nnics = 4\nnvlinks = 18\n");
		run_all(&x);
		for (int k = 0; k < 3; k++)
			is(&x, counts[k], "pass");
		clean(&x);
		examined_end(&x);
	}
}

/* On the bus, and the driver does not know it. */
static void lost_gpu(void **state)
{
	static const struct machine m = MACHINE("lost");
	struct examined x;
	tree_begin(&x, &m);
	change(&x.tree, "/nvidia-smi-q.txt", "GPU 00000000:14:00.0", "GPU 00000000:e4:00.0");
	open_node(&x);
	run_all(&x);
	assert_string_equal(state_at(&x, "inv.gpu_count", "GPU1"), "fail");
	assert_string_equal(state_at(&x, "inv.gpu_count", "GPUs"), "pass");
	examined_end(&x);
}

/* Without nvidia-smi -q the links are known all the same, by the order of GPUs. */
static void links_alone(void **state)
{
	static const struct machine m = {"links", 4, -1, -1, 6};
	struct examined x;
	char path[96];
	tree_begin(&x, &m);
	tree_join(path, sizeof(path), "%s/nvidia-smi-q.txt", x.tree.dir);
	assert_int_equal(unlink(path), 0);
	open_node(&x);
	run_all(&x);
	assert_string_equal(state_at(&x, "inv.nvlink_count", "GPU6"), "warn");
	assert_string_equal(state_at(&x, "inv.nvlink_count", "GPU5"), "pass");
	is(&x, "inv.gpu_count", "pass");
	examined_end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss_by_symmetry),
		cmocka_unit_test(loss_by_expectation),
		cmocka_unit_test(loss_by_fleet),
		cmocka_unit_test(firmware_by_fleet),
		cmocka_unit_test(four_of_four),
		cmocka_unit_test(lost_gpu),
		cmocka_unit_test(links_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
