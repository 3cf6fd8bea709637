// SPDX-License-Identifier: Apache-2.0
/* Other nodes: found, compared by majority, and a recording beside the live machine. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "verbs/lossless/others.h"
#include "verbs/lossless/summary.h"
#include "verbs/lossless/test_tree.h"

#define GOOD "verbs/lossless/testdata/trees/vendor-good.tree"

struct fleet {
	struct test_tree tree[8];
	const struct node_facts *node[8];
	int n;
	struct fb_doc *doc;
};

static void add(struct fleet *f, const char *host, const char *more)
{
	char lines[512];
	snprintf(
		lines, sizeof(lines), "/proc/sys/kernel/hostname = %s\n%s", host, more ? more : "");
	test_tree_open(&f->tree[f->n], GOOD, lines);
	f->node[f->n] = &f->tree[f->n].facts;
	f->n++;
}

static int setup(void **state)
{
	static char *argv[] = {(char *)"check", NULL};
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	struct fleet *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	f->doc = fb_doc_new("check all", 1, argv, &out, &e);
	*state = f;
	return f->doc ? 0 : -1;
}

static int teardown(void **state)
{
	struct fleet *f = *state;
	for (int i = 0; i < f->n; i++)
		test_tree_close(&f->tree[i]);
	fb_doc_free(f->doc);
	free(f);
	return 0;
}

static const json_t *check_of(const struct fleet *f, const char *id)
{
	const json_t *c;
	size_t i;
	json_array_foreach (json_object_get(fb_doc_json(f->doc), "checks"), i, c)
		if (strcmp(fb_json_str(c, "id", ""), id) == 0)
			return c;
	fail_msg("there is no %s", id);
	return NULL;
}

static void expect(const struct fleet *f, const char *id, const char *state, const char *text)
{
	const json_t *c = check_of(f, id);
	const char *said = fb_json_str(c, "observed", fb_json_str(c, "reason", ""));
	if (strcmp(fb_json_str(c, "state", ""), state) != 0 || !strstr(said, text))
		fail_msg("%s: %s \"%s\", not %s with \"%s\"", id, fb_json_str(c, "state", ""), said,
			state, text);
}

static const char *expected(const struct fleet *f, const char *id)
{
	return fb_json_str(json_object_get(check_of(f, id), "expected"), "value", "");
}

static void equal_nodes_pass(void **state)
{
	struct fleet *f = *state;
	add(f, "a", NULL);
	add(f, "b", NULL);
	add(f, "c", NULL);
	equal_run(f->node, f->n, f->doc);
	for (const struct fb_check_def *d = equal_checks; d->id; d++)
		expect(f, d->id, "pass", "3");
}

static void the_odd_one_is_named(void **state)
{
	struct fleet *f = *state;
	add(f, "a", NULL);
	add(f, "b", "@net/mtu = 1500\nactive-mtu 1024\npfc 3 4\nenv NCCL_IB_TC=0");
	add(f, "c", "@dev/fw_ver = 22.40.1000\ngid 3 v2 fd00::1 eth2\n");
	add(f, "d", "@net/qos/dscp2prio = dscp\\tprio\\n26\\t0\n@port/rate = 25 Gb/sec (1X EDR)");
	equal_run(f->node, f->n, f->doc);
	expect(f, "equal.mtu", "fail", "b: 1500");
	assert_string_equal(expected(f, "equal.mtu"), "9000");
	expect(f, "equal.rdma_mtu", "fail", "b: 1024");
	expect(f, "equal.pfc", "fail", "b: 3 and 4");
	expect(f, "equal.traffic_class", "fail", "b: ");
	expect(f, "equal.firmware", "warn", "c: 22.40.1000");
	expect(f, "equal.gid", "fail", "c: RoCE v2, IPv6");
	expect(f, "equal.dscp_map", "fail", "d: ");
	expect(f, "equal.rate", "fail", "d: 25 Gb/sec");
	expect(f, "equal.ports", "pass", "1 ports");
}

/* The examined node may be the odd one. */
static void the_examined_one_may_be_odd(void **state)
{
	struct fleet *f = *state;
	add(f, "a", "pfc none");
	add(f, "b", NULL);
	add(f, "c", NULL);
	equal_run(f->node, f->n, f->doc);
	expect(f, "equal.pfc", "fail", "a: none");
	assert_string_equal(expected(f, "equal.pfc"), "3");
}

static void without_majority_all_are_named(void **state)
{
	struct fleet *f = *state;
	add(f, "a", "@net/mtu = 1500");
	add(f, "b", NULL);
	equal_run(f->node, f->n, f->doc);
	expect(f, "equal.mtu", "fail", "a: 1500; b: 9000");
}

static void what_a_node_does_not_tell_is_not_compared(void **state)
{
	struct fleet *f = *state;
	add(f, "a", NULL);
	add(f, "b", "no-dcb\nremove /sys/class/net/eth2/qos");
	add(f, "c", "remove /sys/class/infiniband/mlx5_0");
	equal_run(f->node, f->n, f->doc);
	expect(f, "equal.pfc", "skip", "1 of 3");
	expect(f, "equal.dscp_map", "skip", "1 of 3");
	expect(f, "equal.mtu", "pass", "equal on 2 nodes");
	expect(f, "equal.ports", "fail", "c has no mlx5_0/1");
}

/* Another card has firmware of its own: that is no difference. */
static void boards_differ(void **state)
{
	struct fleet *f = *state;
	add(f, "a", NULL);
	add(f, "b", NULL);
	add(f, "c", "@dev/board_id = MT_0000000838\n@dev/fw_ver = 28.41.1000");
	equal_run(f->node, f->n, f->doc);
	expect(f, "equal.firmware", "pass", "equal on 2 nodes");
}

static void a_summary_is_read_back(void **state)
{
	struct fleet *f = *state;
	struct node_facts back;
	struct fb_err e = {0};
	add(f, "a", NULL);
	json_t *j = summary_json(f->node[0]);
	assert_int_equal(summary_read(j, "a.json", &back, &e), 0);
	json_t *again = summary_json(&back);
	json_object_del(j, "recorded"); /* when, and not what */
	assert_true(json_equal(j, again));
	const struct node_facts *both[] = {f->node[0], &back};
	equal_run(both, 2, f->doc);
	for (const struct fb_check_def *d = equal_checks; d->id; d++)
		expect(f, d->id, "pass", "");
	facts_free(&back);
	json_object_set_new(j, "ports", json_string("none"));
	assert_int_equal(summary_read(j, "a.json", &back, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	json_decref(j);
	json_decref(again);
}

/* ---- finding them ---------------------------------------------------------------------------- */

static void others_are_found(void **state)
{
	struct fleet *f = *state;
	struct others o;
	struct fb_err e = {0};
	char file[256], dir[128];
	add(f, "a", NULL);
	add(f, "b", NULL);
	json_t *doc = json_pack("{s:o}", "fabric", summary_json(f->node[1]));
	snprintf(dir, sizeof(dir), "%s", f->tree[0].top);
	snprintf(file, sizeof(file), "%s/b.json", dir);
	assert_int_equal(json_dump_file(doc, file, 0), 0);
	json_decref(doc);
	/* a folder with a tree (node a) and a document (node b); the tree itself; the document */
	const char *names[] = {dir, f->tree[0].dir, file};
	struct fb_opt_list list = {names, 3};
	assert_int_equal(others_read(&list, "examined", NULL, &o, &e), 0);
	assert_int_equal(o.n, 2);
	others_free(&o);
	/* the examined node is not compared with itself */
	assert_int_equal(others_read(&list, "a", NULL, &o, &e), 0);
	assert_int_equal(o.n, 1);
	assert_string_equal(o.node[0]->host, "b");
	others_free(&o);
}

/* Trees that were copied, or recorded on nodes of one name, are told apart by their folders. */
static void trees_of_one_name_are_several_nodes(void **state)
{
	struct fleet *f = *state;
	struct others o;
	struct fb_err e = {0};
	const char *names[4];
	for (int i = 0; i < 3; i++) {
		add(f, "a", NULL);
		names[i] = f->tree[i].dir;
	}
	names[3] = names[1];
	struct fb_opt_list list = {names, 4};
	/* the first is examined */
	assert_int_equal(others_read(&list, "a", names[0], &o, &e), 0);
	assert_int_equal(o.n, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(strncmp(o.node[i]->host, "a (", 3), 0);
	assert_string_not_equal(o.node[0]->host, o.node[1]->host);
	others_free(&o);
	/* none is, and the machine has another name */
	assert_int_equal(others_read(&list, "x", NULL, &o, &e), 0);
	assert_int_equal(o.n, 3);
	assert_string_equal(o.node[0]->host, "a");
	others_free(&o);
	/* on the machine itself they are recordings of it */
	assert_int_equal(others_read(&list, "a", NULL, &o, &e), 0);
	assert_int_equal(o.n, 0);
	others_free(&o);
}

static void what_is_no_node_is_refused(void **state)
{
	struct fleet *f = *state;
	struct others o;
	struct fb_err e = {0};
	char file[256];
	add(f, "a", NULL);
	snprintf(file, sizeof(file), "%s/other.json", f->tree[0].top);
	FILE *out = fopen(file, "w");
	assert_non_null(out);
	fputs("{\"schema\": \"fabricbench/1\"}", out);
	fclose(out);
	const char *names[] = {file};
	struct fb_opt_list list = {names, 1};
	assert_true(others_read(&list, "x", NULL, &o, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "fabric"));
	fb_err_clear(&e);
	names[0] = "/nonexistent";
	assert_true(others_read(&list, "x", NULL, &o, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	names[0] = "verbs/lossless/testdata/profiles";
	assert_int_equal(others_read(&list, "x", NULL, &o, &e), -ENOENT);
	assert_non_null(strstr(e.hint, "-o"));
}

/* ---- beside the live machine ----------------------------------------------------------------- */

static void a_recording_fills_what_is_hidden(void **state)
{
	struct fleet *f = *state;
	struct test_tree user;
	char *taken = NULL;
	test_tree_open(&user, "verbs/lossless/testdata/trees/upstream.tree", NULL);
	test_tree_open(
		&f->tree[0], "verbs/lossless/testdata/trees/upstream-root.tree", "@net/mtu = 1500");
	f->n = 1;
	assert_int_equal(user.facts.port[0].cnp_dscp.f.state, FACT_HIDDEN);
	assert_int_equal(facts_overlay(&user.facts, &f->tree[0].facts, &taken), 1);
	assert_true(fact_known(&user.facts.port[0].cnp_dscp.f));
	assert_int_equal(user.facts.port[0].cnp_dscp.v, 48);
	assert_non_null(
		strstr(taken, "\n/sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/np_cnp_dscp\n"));
	/* what the user can read stays as it is now */
	assert_int_equal(user.facts.port[0].netdev_mtu.v, 9000);
	assert_null(strstr(taken, "mtu"));
	free(taken);
	test_tree_close(&user);
}

/* Root looked, and it is not there; or the recorder could not look either. */
static void absent_is_told_and_hidden_stays(void **state)
{
	struct test_tree user, root, no_root, other;
	struct fb_err e = {0};
	char *taken = NULL, path[256];
	(void)state;
	test_tree_open(&user, "verbs/lossless/testdata/trees/upstream.tree", NULL);
	test_tree_make(&root, "verbs/lossless/testdata/trees/upstream.tree", NULL);
	snprintf(path, sizeof(path), "%s/hidden", root.dir); /* root could look everywhere */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(facts_read(&root.root, NULL, &root.facts, &e), 0);
	test_tree_open(&no_root, "verbs/lossless/testdata/trees/upstream.tree", NULL);
	test_tree_open(&other, "verbs/lossless/testdata/trees/bnxt.tree", NULL);
	assert_int_equal(root.facts.port[0].cnp_dscp.f.state, FACT_ABSENT);
	assert_int_equal(facts_overlay(&user.facts, &no_root.facts, &taken), 1);
	assert_int_equal(user.facts.port[0].cnp_dscp.f.state, FACT_HIDDEN);
	assert_null(taken);
	assert_int_equal(facts_overlay(&user.facts, &root.facts, &taken), 1);
	assert_int_equal(user.facts.port[0].cnp_dscp.f.state, FACT_ABSENT);
	assert_non_null(strstr(taken, "np_cnp_dscp"));
	free(taken);
	assert_int_equal(facts_overlay(&user.facts, &other.facts, &taken), 0);
	assert_null(taken);
	test_tree_close(&user);
	test_tree_close(&root);
	test_tree_close(&no_root);
	test_tree_close(&other);
}

static void ages_are_told(void **state)
{
	(void)state;
	char age[32];
	const int64_t noon = 1769860800; /* 2026-01-31T12:00:00Z */
	assert_true(facts_age("2026-01-31T12:00:00Z", noon + 90, age, sizeof(age)));
	assert_string_equal(age, "1 min ago");
	assert_true(facts_age("2026-01-31T12:00:00Z", noon + 7200, age, sizeof(age)));
	assert_string_equal(age, "2 h ago");
	assert_true(facts_age("2026-01-31T12:00:00Z", noon + 3 * 86400, age, sizeof(age)));
	assert_string_equal(age, "3 days ago");
	assert_true(facts_age("2026-01-31T12:00:00Z", noon - 7200, age, sizeof(age)));
	assert_string_equal(age, "in the future");
	assert_false(facts_age("yesterday", noon, age, sizeof(age)));
	assert_false(facts_age("2026-01-31T12:00:00+01:00", noon, age, sizeof(age)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {TEST(equal_nodes_pass), TEST(the_odd_one_is_named),
		TEST(the_examined_one_may_be_odd), TEST(without_majority_all_are_named),
		TEST(what_a_node_does_not_tell_is_not_compared), TEST(boards_differ),
		TEST(a_summary_is_read_back), TEST(others_are_found),
		TEST(what_is_no_node_is_refused), TEST(trees_of_one_name_are_several_nodes),
		TEST(a_recording_fills_what_is_hidden),
		cmocka_unit_test(absent_is_told_and_hidden_stays), cmocka_unit_test(ages_are_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
