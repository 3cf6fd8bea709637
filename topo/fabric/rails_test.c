// SPDX-License-Identifier: Apache-2.0
/*
 * Which word of a description names the HCA, which hosts have a say about whose rails, and what is
 * told where the votes are even.
 */
#include "topo/fabric/fabric_test.h"

static void test_split(void **state)
{
	static const struct {
		const char *name, *host, *hca; /* host NULL: not split */
	} all[] = {
		{"node3 mlx5_1", "node3", "mlx5_1"},
		{"node3.site.org mlx5_1", "node3.site.org", "mlx5_1"},
		{"node3-mlx5_1", "node3", "mlx5_1"},
		{"node3/mlx5_1", "node3", "mlx5_1"},
		{"node3:mlx5_1", "node3", "mlx5_1"},
		{"node3_mlx5_1", "node3", "mlx5_1"},
		{"node3.mlx5_1", "node3", "mlx5_1"},
		{"node3, mlx5_1", "node3", "mlx5_1"},
		{"mlx5_1@node3", "node3", "mlx5_1"},
		{"node3 (mlx5_1)", "node3", "mlx5_1"},
		{"node3 mlx5_1 U1", "node3", "mlx5_1"},
		{"node3 mlx5_1_ib", "node3", "mlx5_1_ib"},
		{"node3 HCA-1 (mlx5_0)", "node3", "HCA-1"},
		{"hca01 mlx5_0", "hca01", "mlx5_0"},
		{"node3 HCA_2", "node3", "HCA_2"},
		{"node3 hca0", "node3", "hca0"},
		{"node3 ibp12s0", "node3", "ibp12s0"},
		{"node3 ib2", "node3", "ib2"},
		{"node3 rail4", "node3", "rail4"},
		{"row \"B\" #3 mlx5_0", "row \"B\" #3", "mlx5_0"},
		{"rack1-hca2", NULL, NULL}, /* a host of that name */
		{"storage-ib1", NULL, NULL},
		{"mlx5_0", NULL, NULL},
		{"node3 mlx5_", NULL, NULL}, /* cut at 64 bytes */
		{"node3", NULL, NULL},
		{"", NULL, NULL},
		{"localhost mlx5_0", NULL, NULL},
		{"MT4129 ConnectX7   Mellanox Technologies", NULL, NULL},
	};
	char host[FABRIC_NAME], hca[40];
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool split = fabric_split_name(all[i].name, host, hca, sizeof(hca));
		if (split != (all[i].host != NULL))
			fail_msg("\"%s\" is%s split", all[i].name, split ? "" : " not");
		if (split && (strcmp(host, all[i].host) != 0 || strcmp(hca, all[i].hca) != 0))
			fail_msg("\"%s\" is \"%s\" and \"%s\"", all[i].name, host, hca);
	}
}

/* ---- hosts on leaves ------------------------------------------------------------------------- */

struct on_leaf {
	const char *host;
	int number, hca, leaf;
};

/* One line a port, as ibnetdiscover -p has it. */
static void put(FILE *out, int at, const struct on_leaf *c)
{
	fprintf(out,
		"CA %5d  1 0x%016x 4x NDR - SW %5d %2d 0x%016x ( '%s%d mlx5_%d' - 'leaf%d' )\n",
		100 + at, 0x1000 + at, 1 + c->leaf, 1 + at % 250, 0x100 + c->leaf, c->host,
		c->number, c->hca, c->leaf);
}

static void judge_hosts(struct judged *j, const struct on_leaf *c, int n)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	for (int i = 0; i < n; i++)
		put(out, i, &c[i]);
	assert_int_equal(fclose(out), 0);
	judge_text(j, text, len, fabric_parse_discover, NULL, NULL);
	if (j->rc < 0)
		fail_msg("%s", j->e.msg);
	free(text);
}

/* GPU hosts have eight rails; storage among them has two HCAs on other leaves than the first two,
 * and is no worse for it. One of theirs that is not where the other storage has it still is found.
 */
static void test_other_kind(void **state)
{
	struct on_leaf c[8 * 8 + 6 * 2];
	struct judged j;
	int n = 0;
	for (int h = 0; h < 8; h++)
		for (int r = 0; r < 8; r++)
			c[n++] = (struct on_leaf){"gpu", h, r, r};
	for (int h = 0; h < 6; h++)
		for (int r = 0; r < 2; r++)
			c[n++] = (struct on_leaf){"store", h, r, r ? 4 : 0};
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	judged_free(&j);
	c[n - 1].leaf = 5;
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), 1);
	assert_has(
		row_text(&j, "fab.rail", "fail", 0, "observed"), "host store5, HCA mlx5_1 is on");
	assert_has(row_text(&j, "fab.rail", "fail", 0, "expected"), "switch leaf4");
	judged_free(&j);
}

/* A host of which four HCAs are down is of the same kind: a swap among the rest is found. */
static void test_half_down(void **state)
{
	struct on_leaf c[8 * 8];
	struct judged j;
	int n = 0;
	for (int h = 0; h < 8; h++)
		for (int r = 0; r < 8; r++)
			if (h != 5 || r >= 4)
				c[n++] = (struct on_leaf){"gpu", h, r,
					h == 5 && r == 6   ? 7
					: h == 5 && r == 7 ? 6
							   : r};
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	assert_int_equal(count_rows(&j, "fab.rail", "fail"), 2);
	assert_has(row_text(&j, "fab.rail", "fail", 0, "observed"), "host gpu5");
	judged_free(&j);
}

/* Two hosts of two rails, in two groups of leaves, have each other's cable: either of a host's HCAs
 * may be the wrong one. The hosts next to it by number tell. */
static void test_even(void **state)
{
	struct on_leaf c[2 * 6 * 2];
	struct judged j;
	int n = 0;
	for (int h = 0; h < 12; h++)
		for (int r = 0; r < 2; r++)
			c[n++] = (struct on_leaf){"node", h / 6 * 100 + h % 6, r, h / 6 * 2 + r};
	c[2 * 3 + 1].leaf = 3; /* node3 mlx5_1 */
	c[2 * 8 + 1].leaf = 1; /* node102 mlx5_1 */
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	for (int i = 0; i < 2; i++)
		assert_has(row_text(&j, "fab.rail", "fail", i, "observed"), "HCA mlx5_1 is on");
	judged_free(&j);
	/* At the border of a group the nearest by number counts most. */
	c[2 * 3 + 1].leaf = 1;
	c[2 * 5 + 1].leaf = 3;
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	for (int i = 0; i < 2; i++)
		assert_has(row_text(&j, "fab.rail", "fail", i, "observed"), "HCA mlx5_1 is on");
	judged_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_other_kind),
		cmocka_unit_test(test_half_down),
		cmocka_unit_test(test_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
