// SPDX-License-Identifier: Apache-2.0
/*
 * The cabling list: right, moved, missing and extra cables; its formats and its refusals.
 */
#include "topo/fabric/fabric_test.h"

/* The cables of a made fabric as a list. */
static char *list_of(const struct made *m, bool ports)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fprintf(out, "# made\nnode,port,peer,peer_port\n");
	for (int c = 0; c < m->hosts * m->rails; c++)
		if (ports)
			fprintf(out, "leaf%d,%d,\"node%d mlx5_%d\",1\n", made_leaf(m, c),
				made_leaf_port(m, c), c / m->rails, c % m->rails);
		else
			fprintf(out, "leaf%d,,node%d mlx5_%d,\n", made_leaf(m, c), c / m->rails,
				c % m->rails);
	for (int leaf = 0; leaf < made_groups(m) * m->rails; leaf++)
		for (int s = 0; s < m->spines; s++)
			for (int k = 0; k < m->parallel; k++)
				if (ports)
					fprintf(out, "leaf%d\t%d\tspine%d\t%d\n", leaf,
						m->down + 1 + s * m->parallel + k,
						made_spine(m, leaf, s),
						1 + leaf / m->rails % m->pod * m->parallel + k);
				else
					fprintf(out, "spine%d,*,leaf%d,*\n", made_spine(m, leaf, s),
						leaf);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void judge_list(struct judged *j, const struct made *m, const char *list)
{
	struct fabric_list l = {.name = NULL};
	struct fabric_rules rules = {.list = &l};
	size_t len;
	char *text = made_text(m, &len);
	memset(j, 0, sizeof(*j));
	j->f = fabric_new();
	j->doc = new_doc(&j->e);
	assert_int_equal(fabric_parse_discover(j->f, text, len, "file", &j->e), 0);
	assert_int_equal(fabric_finish(j->f, "file", &j->e), 0);
	j->rc = fabric_list_parse(j->f, list, strlen(list), "list", &l, &j->e);
	if (j->rc == 0)
		j->rc = fabric_judge(j->f, &rules, j->doc);
	fabric_list_free(&l);
	free(text);
}

static void test_as_listed(void **state)
{
	struct made m = made_small();
	for (int ports = 0; ports < 2; ports++) {
		struct judged j;
		char *list = list_of(&m, ports);
		judge_list(&j, &m, list);
		if (j.rc < 0)
			fail_msg("%s", j.e.msg);
		assert_int_equal(count_rows(&j, NULL, NULL), 0);
		assert_has(row_text(&j, "fab.expect", "pass", 0, "observed"), "all 64 cables");
		assert_int_equal(count_rows(&j, "fab.rail", "skip"), 1);
		judged_free(&j);
		free(list);
	}
}

static void test_moved(void **state)
{
	struct made m = made_small();
	for (int ports = 0; ports < 2; ports++) {
		struct judged j;
		char *list = list_of(&m, ports);
		m.swapped[0][0] = 10;
		m.swapped[0][1] = 11;
		m.n_swapped = 1;
		judge_list(&j, &m, list);
		assert_int_equal(j.rc, 0);
		assert_int_equal(count_rows(&j, "fab.expect", "fail"), 2);
		assert_int_equal(count_rows(&j, NULL, NULL), 2);
		assert_has(row_text(&j, "fab.expect", "fail", 0, "observed"),
			"mis-cabled: node5 mlx5_0 is on leaf1 port 6");
		assert_has(row_text(&j, "fab.expect", "fail", 0, "expected"), "leaf0");
		judged_free(&j);
		free(list);
		m.n_swapped = 0;
	}
}

static void test_missing_and_extra(void **state)
{
	struct made m = made_small();
	struct judged j;
	char *list = list_of(&m, true);
	m.no_cable[0] = 2;
	m.no_cable[1] = 3;
	judge_list(&j, &m, list);
	assert_int_equal(count_rows(&j, "fab.expect", "fail"), 2);
	assert_has(row_text(&j, "fab.expect", "fail", 0, "observed"),
		"missing: no cable at either end");
	assert_has(row_text(&j, "fab.expect", "fail", 0, "subject"), "leaf2 port 15 - spine");
	judged_free(&j);
	m.no_cable[0] = m.no_cable[1] = -1;
	*strstr(list, "leaf0,1,") = '#'; /* one line less */
	judge_list(&j, &m, list);
	assert_int_equal(count_rows(&j, NULL, NULL), 1);
	assert_has(row_text(&j, "fab.expect", "warn", 0, "observed"), "extra");
	assert_has(row_text(&j, "fab.expect", "warn", 0, "subject"), "leaf0 port 1 - node0 mlx5_0");
	judged_free(&j);
	judge_list(&j, &m, "leaf0,1,node0 mlx5_0,1\nleaf9,1,node99 mlx5_0,1\n");
	assert_int_equal(count_rows(&j, "fab.expect", "fail"), 1);
	assert_has(row_text(&j, "fab.expect", "fail", 0, "observed"),
		"leaf9 port 1 is not in this fabric");
	judged_free(&j);
	free(list);
}

/* By GUID, of node or port; and a dump of a good day. */
static void test_guids_and_dump(void **state)
{
	struct made m = made_small(), bad = made_small();
	struct judged j;
	size_t len;
	char *dump = made_text(&m, &len);
	judge_list(&j, &m,
		"0x2000000000000000,1,0x1000000000000000,1\n"
		"0x2000000000000000,2,0x1000000000000005,1\n");
	assert_int_equal(count_rows(&j, "fab.expect", "fail"), 0);
	judged_free(&j);
	judge_list(&j, &m, dump);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	judged_free(&j);
	bad.swapped[0][0] = 4;
	bad.swapped[0][1] = 9;
	bad.n_swapped = 1;
	judge_list(&j, &bad, dump);
	assert_int_equal(count_rows(&j, "fab.expect", "fail"), 2);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	judged_free(&j);
	free(dump);
}

/* The ways in which sites write names, GUIDs and separators; iblinkinfo of a good day. */
static void test_ways(void **state)
{
	static const char *const all[] = {
		"LEAF0,1,Node0 MLX5_0,1\n",
		"leaf0;1;node0 mlx5_0;1\r\n",
		"S-2000000000000000\t1\tH-1000000000000000\t1\n",
		"2000000000000000, 1, \"node0 mlx5_0\", 1\n",
		"0x1000000000000000 \"node0 mlx5_0\"  1  1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>  "
		"0x2000000000000000  1  1[  ] \"leaf0\" ( )\n",
		"CA: node0 mlx5_0:\n      0x1000000000000000  7  1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>"
		"  1  1[  ] \"leaf0\" ( )\n",
	};
	struct made m = made_small();
	struct judged j;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		judge_list(&j, &m, all[i]);
		if (j.rc < 0)
			fail_msg("%s: %s", all[i], j.e.msg);
		if (count_rows(&j, NULL, NULL))
			fail_msg("%s: %s", all[i],
				row_text(&j, "fab.expect", "fail", 0, "observed"));
		/* It is of a part only: the rest is no row each. */
		assert_int_equal(count_rows(&j, "fab.expect", "info"), 1);
		assert_has(row_text(&j, "fab.expect", "info", 0, "observed"),
			"the list has 1 cable; the other 63");
		assert_has(row_text(&j, "fab.expect", "pass", 0, "observed"), "all 1 cables");
		judged_free(&j);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *list, *why;
	} rows[] = {
		{"", "list:1: no cable in the list"},
		{"# nothing\n\n", "no cable in the list"},
		{"leaf0,1,node0 mlx5_0\n", "list:1: a cable must be NODE,PORT,PEER,PORT"},
		{"a,1,b,2,c\n", "list:1: a cable must be"},
		{"leaf0,1,node0 mlx5_0,1\nleaf0,x,node0 mlx5_0,1\n",
			"list:2: \"x\" is no port number"},
		{"leaf0,1,node0 mlx5_0,1\nleaf0,255,node0 mlx5_0,1\n", "\"255\" is no port number"},
		{"leaf0,1,\"node0 mlx5_0,1\n", "list:1: a quote"},
		{"leaf0,1,MT4129 ConnectX7   Mellanox Technologies,1\n",
			"is the description of 2 nodes"},
	};
	struct made m = made_small();
	m.factory = 30;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct judged j;
		judge_list(&j, &m, rows[i].list);
		assert_int_equal(j.rc, -EINVAL);
		assert_int_equal(j.e.exit, FB_EXIT_USAGE);
		assert_has(j.e.msg, rows[i].why);
		judged_free(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_listed),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_missing_and_extra),
		cmocka_unit_test(test_guids_and_dump),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
