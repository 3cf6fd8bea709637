// SPDX-License-Identifier: Apache-2.0
/*
 * One line changed in a tree, and one check's state: values that nobody wrote by design, and the
 * ways in which a traffic class is given. What cannot be understood is an error or a skip, never a
 * fail and never a pass.
 */
#include "bench/core/test.h"

#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "verbs/lossless/checks.h"
#include "verbs/lossless/test_tree.h"

#define TREES   "verbs/lossless/testdata/trees/"
#define SITE    "roce-dscp = 26\nroce-priority = 3\n"
#define MAP(s)  "@net/qos/dscp2prio = dscp\\tprio\\n" s
#define NO_LINK "@pci/current_link_speed = Unknown\n@pci/current_link_width = 0"

static const struct odd {
	const char *tree, *more, *profile, *id, *state, *says;
} rows[] = {
	/* byte or DSCP */
	{"vendor-good", "env NCCL_IB_TC=26", NULL, "R11", "fail", "26 >> 2"},
	{"mlx5-vendor", "env NCCL_IB_TC=26", NULL, "R11", "fail", "26 >> 2"},
	{"upstream", "env NCCL_IB_TC=26", NULL, "R11", "fail", "26 >> 2"},
	{"pod", "env NCCL_IB_TC=26", NULL, "R11", "warn", "26 >> 2"},
	{"pod", "env NCCL_IB_TC=26", SITE, "R11", "warn", "26 >> 2"},
	{"pod", "env NCCL_IB_TC=52", SITE, "R11", "fail", "DSCP 13"},
	{"pfc-off", "env NCCL_IB_TC=26", NULL, "R11", "warn", "26 >> 2"},
	{"pfc-off", "env NCCL_IB_TC=26", SITE, "R11", "fail", "DSCP 6"},
	{"vendor-good", MAP("0\\t0\\n3\\t3\\n48\\t6") "\nenv NCCL_IB_TC=14", NULL, "R11", "info",
		"DSCP 3"},
	{"vendor-good", "env NCCL_IB_FIFO_TC=32", NULL, "R11", "info", "DSCP"},
	{"vendor-good", "env NCCL_IB_TC=0x6a", SITE, "R11", "pass", "DSCP 26"},
	{"vendor-good", "env NCCL_IB_TC=104", SITE, "R11", "pass", "DSCP 26"},
	{"vendor-good", "env NCCL_IB_TC=1o6", NULL, "R11", "fail", "no number"},
	{"vendor-good", "env NCCL_IB_TC=300", NULL, "R11", "fail", "no number"},
	/* the libraries' own words for "not set" */
	{"vendor-good", "env NCCL_IB_TC=-1", NULL, "R11", "info", "none of"},
	{"vendor-good", "env NCCL_IB_FIFO_TC=-1", SITE, "R11", "pass", "NCCL_IB_TC is 106"},
	{"vendor-good", "env NCCL_IB_TC=", NULL, "R11", "info", "none of"},
	{"vendor-good", "env NCCL_IB_TC=\nenv UCX_IB_TRAFFIC_CLASS=auto", SITE, "R11", "pass",
		"UCX_IB_TRAFFIC_CLASS is 106"},
	{"vendor-good", "env UCX_IB_TRAFFIC_CLASS=-1", NULL, "R11", "fail", "no number"},
	{"vendor-good", "env NCCL_IB_GID_INDEX=three", NULL, "R07", "warn", "no number"},
	{"vendor-good", "env NCCL_IB_GID_INDEX=-1", NULL, "R07", "skip", ""},
	/* PFC against a profile */
	{"vendor-good", NULL, "pfc = none\n", "R16", "warn", "priority 3"},
	{"pfc-off", NULL, "pfc = none\n", "R16", "pass", "none"},
	{"vendor-good", "pfc 3 4 5", "pfc = 3, 4, 5\n", "R16", "pass", ""},
	{"vendor-good", "pfc 3 4 5", "pfc = 3, 4\n", "R16", "fail", ""},
	/* what nobody can understand */
	{"vendor-good", "@port/state = xyzzy", NULL, "R01", "error", "no state"},
	{"vendor-good", "@port/state = 9: UNKNOWN", NULL, "R01", "error", "no state"},
	{"vendor-good", "remove @port/gid_attrs", NULL, "R06", "skip", "v1 or v2"},
	{"vendor-good", "remove @port/gid_attrs", NULL, "R07", "skip", "v1 or v2"},
	{"vendor-good", "remove @port/gids\n@port/gids/0 = junk", NULL, "R06", "error", ""},
	{"vendor-good", "@net/qos/trust = junk", NULL, "R12", "error", "neither"},
	{"vendor-good", "@net/qos/trust = DSCP", NULL, "R12", "pass", ""},
	{"vendor-good", "@net/qos/dscp2prio = 26\\t99", NULL, "R13", "skip", ""},
	{"vendor-good", "@cma/default_roce_tos = 999", NULL, "R09", "error", "0 to 255"},
	{"vendor-good", "@cma/default_roce_mode = junk", NULL, "R08", "error", "no mode"},
	{"vendor-good", "@tc/traffic_class = junk", NULL, "R10", "error", "no traffic class"},
	{"vendor-good", "@net/ecn/roce_np/cnp_dscp = 99", NULL, "R24", "error", "0 to 63"},
	{"vendor-good", "@net/mtu = -1", NULL, "R25", "error", ""},
	/* a virtual function has no link of its own */
	{"vendor-good", NO_LINK, NULL, "R05", "skip", "virtual function"},
	{"vendor-good", NO_LINK, NULL, "R04", "pass", ""},
	{"ib-hdr", "@port/state = xyzzy", NULL, "I01", "error", "no state"},
	{"ib-hdr", "@port/rate = junk", NULL, "I03", "error", "no rate"},
	{"ib-hdr", "@port/pkeys/0 = junk", NULL, "I09", "error", "none of its"},
	{"ib-hdr", "remove @port/pkeys\ndir @port/pkeys", NULL, "I09", "skip", "empty"},
	{"ib-hdr", "@port/pkeys/0 = 0x0000", NULL, "I09", "fail", "0 partitions"},
	{"ib-hdr", "pkey 0 0x7fff", NULL, "I09", "warn", "two of those cannot talk"},
	/* service levels */
	{"ib-hdr", "env NCCL_IB_SL=", "sl = 0\n", "I10", "pass", ""},
	{"ib-hdr", "env NCCL_IB_SL=zzz", "sl = 0\n", "I10", "warn", "zzz"},
	{"ib-hdr", "env NCCL_IB_SL=", "sl = 1\n", "I10", "warn", ""},
};

static void profile_of(const struct test_tree *t, const char *text, struct profile *p)
{
	char path[128];
	struct fb_err e = {0};
	profile_none(p);
	if (!text)
		return;
	snprintf(path, sizeof(path), "%s/site.ini", t->top);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	if (profile_read(path, p, &e) != 0)
		fail_msg("%s", e.msg);
}

/* @return the finding of row->id, in doc; NULL: none */
static const json_t *find(const struct odd *row, const struct test_tree *t, struct fb_doc *doc)
{
	struct profile profile;
	const char *why;
	json_t *checks = json_object_get(fb_doc_json(doc), "checks"), *c;
	size_t i;
	profile_of(t, row->profile, &profile);
	const struct check_input in = {
		.node = &t->facts, .port = &t->facts.port[0], .profile = &profile};
	json_array_clear(checks);
	checks_run(checks_of(&t->facts.port[0], &why), &in, doc);
	json_array_foreach (checks, i, c)
		if (strcmp(fb_json_str(c, "id", ""), row->id) == 0)
			return c;
	return NULL;
}

static void each_odd_line_is_found(void **state)
{
	struct fb_doc *doc = *state;
	int bad = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct test_tree t;
		char path[128];
		snprintf(path, sizeof(path), TREES "%s.tree", rows[i].tree);
		test_tree_open(&t, path, rows[i].more);
		const json_t *c = find(&rows[i], &t, doc);
		const char *now = fb_json_str(c, "state", "?");
		const char *said = fb_json_str(c, "observed", fb_json_str(c, "reason", ""));
		if (strcmp(now, rows[i].state) != 0 || !strstr(said, rows[i].says)) {
			print_error("%s, %s: %s is %s (%s), not %s\n", rows[i].tree, rows[i].more,
				rows[i].id, now, said, rows[i].state);
			bad++;
		}
		test_tree_close(&t);
	}
	assert_int_equal(bad, 0);
}

/* PFC is never proposed for priority 0: what is there has to be mapped elsewhere. */
static void a_dscp_at_priority_0_is_mapped(void **state)
{
	const struct odd row = {.id = "R15"};
	struct test_tree t;
	test_tree_open(&t, TREES "dscp26-prio0.tree", NULL);
	const json_t *c = find(&row, &t, *state);
	assert_string_equal(fb_json_str(c, "state", "?"), "fail");
	assert_string_equal(fb_json_str(c, "remedy", "?"), "mlnx_qos -i eth2 --dscp2prio set,26,3");
	test_tree_close(&t);
}

static int setup(void **state)
{
	static char *argv[] = {(char *)"check", NULL};
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	*state = fb_doc_new("check all", 1, argv, &out, &e);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	fb_doc_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_odd_line_is_found),
		cmocka_unit_test(a_dscp_at_priority_0_is_mapped)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
