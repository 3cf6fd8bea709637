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
		{"node3 rdma0", "node3", "rdma0"},
		{"node3 roce1", "node3", "roce1"},
		{"node3 [mlx5_1]", "node3", "mlx5_1"},
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

/* The HCAs of `hosts` hosts, `per` on each group of leaves; HCA r of group g is on leaf
 * g * rails + r, or, where a host has one leaf for all, on leaf g. @return how many */
static int fill(struct on_leaf *c, int hosts, int per, int rails, bool one_leaf)
{
	int n = 0;
	for (int h = 0; h < hosts; h++)
		for (int r = 0; r < rails; r++)
			c[n++] = (struct on_leaf){
				"node", h, r, one_leaf ? h / per : h / per * rails + r};
	return n;
}

static void swap_leaves(struct on_leaf *a, struct on_leaf *b)
{
	int t = a->leaf;
	a->leaf = b->leaf;
	b->leaf = t;
}

/* Exactly these HCAs are told, and nothing else. */
static void only(const struct on_leaf *c, int n, const int *at, int count)
{
	char want[64];
	struct judged j;
	judge_hosts(&j, c, n);
	assert_int_equal(count_rows(&j, NULL, NULL), count);
	assert_int_equal(count_rows(&j, "fab.rail", "fail"), count);
	for (int i = 0; i < count; i++) {
		bool found = false;
		snprintf(want, sizeof(want), "host %s%d, HCA mlx5_%d is on", c[at[i]].host,
			c[at[i]].number, c[at[i]].hca);
		for (int k = 0; k < count; k++)
			found = found ||
				strstr(row_text(&j, "fab.rail", "fail", k, "observed"), want);
		if (!found)
			fail_msg("no row has \"%s\"", want);
	}
	judged_free(&j);
}

/* Three of sixteen hosts have their two cables swapped: they share leaves with each other only. */
static void test_swapped_alike(void **state)
{
	static const int at[] = {2 * 2, 2 * 2 + 1, 2 * 7, 2 * 7 + 1, 2 * 11, 2 * 11 + 1};
	struct on_leaf c[2 * 16];
	int n = fill(c, 16, 16, 2, false);
	for (int i = 0; i < 6; i += 2)
		swap_leaves(&c[at[i]], &c[at[i + 1]]);
	only(c, n, at, 6);
}

/* A group of four hosts beside one of twenty: the larger does not outvote the smaller about what is
 * in place there. */
static void test_unequal_groups(void **state)
{
	static const int at[] = {8 * 5 + 3, 8 * 21 + 6};
	struct on_leaf c[8 * 24];
	int n = fill(c, 24, 20, 8, false);
	only(c, n, at, 0);
	swap_leaves(&c[at[0]], &c[at[1]]);
	only(c, n, at, 2);
}

/* All HCAs of a host on the leaf of its rack: of two, the hosts next to it tell which strayed; at
 * the border of two racks, the HCA that has its place. */
static void test_one_leaf_a_host(void **state)
{
	static const int inside[] = {2 * 3, 2 * 12 + 1}, border[] = {2 * 7 + 1, 2 * 20};
	struct on_leaf c[2 * 24];
	int n = fill(c, 24, 8, 2, true);
	swap_leaves(&c[inside[0]], &c[inside[1]]);
	only(c, n, inside, 2);
	swap_leaves(&c[inside[0]], &c[inside[1]]);
	swap_leaves(&c[border[0]], &c[border[1]]);
	only(c, n, border, 2);
}

/* One host of another name, or with two of three HCAs, is cabled as its kind is. */
static void test_lone_kind(void **state)
{
	struct on_leaf c[2 * 16 + 2];
	int n = fill(c, 16, 16, 2, false);
	c[n++] = (struct on_leaf){"login", 0, 0, 1};
	c[n++] = (struct on_leaf){"login", 0, 1, 0};
	only(c, n, NULL, 0);
	c[n - 1].host = c[n - 2].host = "node";
	c[n - 1].number = c[n - 2].number = 16;
	only(c, n, (int[]){n - 2, n - 1}, 2);
	struct on_leaf d[3 * 8 + 2];
	n = fill(d, 8, 8, 3, true);
	d[n++] = (struct on_leaf){"node", 8, 0, 0};
	d[n++] = (struct on_leaf){"node", 8, 1, 1};
	only(d, n, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_other_kind),
		cmocka_unit_test(test_half_down),
		cmocka_unit_test(test_even),
		cmocka_unit_test(test_swapped_alike),
		cmocka_unit_test(test_unequal_groups),
		cmocka_unit_test(test_one_leaf_a_host),
		cmocka_unit_test(test_lone_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
