// SPDX-License-Identifier: Apache-2.0
/* Profiles: those shipped, every way of writing one wrongly, and what is learned and read again. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/lossless/profile.h"
#include "verbs/lossless/test_tree.h"

#define TREES "verbs/lossless/testdata/trees/"

static void write_to(char *path, const char *text, size_t len)
{
	memcpy(path, "/tmp/fb-profile-XXXXXX", sizeof("/tmp/fb-profile-XXXXXX"));
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static int read_text(const char *text, size_t len, struct profile *p, struct fb_err *e)
{
	char path[32];
	write_to(path, text, len);
	fb_err_clear(e);
	int rc = profile_read(path, p, e);
	unlink(path);
	return rc;
}

static void all_keys_are_read(void **state)
{
	static const char text[] = "# a comment\n"
				   "[profile]\n"
				   "name = a site\n"
				   "source = its wiki\n"
				   "  roce-dscp = 26, 46\n"
				   "roce-priority=3\n"
				   "cnp-dscp = 48\n"
				   "cnp-priority = 6\n"
				   "pfc = 3, 4\n"
				   "trust = dscp\n"
				   "congestion = pfc-only\n"
				   "adaptive-routing = yes\n"
				   "mtu = 9000\n"
				   "ets-share = 50\n"
				   "cable-length = 30m\n"
				   "rate = 400Gb/s\n"
				   "pkey = 0x8001\n"
				   "sl = 1";
	struct profile p;
	struct fb_err e = {0};
	if (read_text(text, sizeof(text) - 1, &p, &e) != 0)
		fail_msg("%s", e.msg);
	assert_true(p.given);
	assert_string_equal(p.name, "a site");
	assert_string_equal(p.source, "its wiki");
	assert_int_equal(p.roce_dscp[0], 26);
	assert_int_equal(p.roce_dscp[1], 46);
	assert_int_equal(p.roce_dscp[2], -1);
	assert_int_equal(p.roce_prio, 3);
	assert_int_equal(p.cnp_dscp, 48);
	assert_int_equal(p.cnp_prio, 6);
	assert_int_equal(p.pfc_set, 0x18);
	assert_string_equal(p.trust, "dscp");
	assert_string_equal(p.congestion, "pfc-only");
	assert_int_equal(p.adaptive_routing, 1);
	assert_int_equal(p.mtu, 9000);
	assert_int_equal(p.ets_share, 50);
	assert_int_equal(p.cable_m, 30);
	assert_int_equal(p.rate_mbps, 400000);
	assert_int_equal(p.pkey, 0x8001);
	assert_int_equal(p.sl, 1);
	(void)state;
}

static void what_is_not_said_is_not_known(void **state)
{
	struct profile p;
	struct fb_err e = {0};
	assert_int_equal(read_text("pfc = none\n", 11, &p, &e), 0);
	assert_int_equal(p.pfc_set, 0);
	assert_int_equal(p.roce_dscp[0], -1);
	assert_int_equal(p.roce_prio, -1);
	assert_int_equal(p.cnp_dscp, -1);
	assert_int_equal(p.mtu, -1);
	assert_int_equal(p.adaptive_routing, -1);
	assert_int_equal(p.rate_mbps, -1);
	assert_string_equal(p.trust, "");
	profile_none(&p);
	assert_false(p.given);
	assert_int_equal(p.pfc_set, -1);
	(void)state;
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *line, *says;
	} bad[] = {
		{"roce-dscp = 106\n", ":1:", "0 to 63"}, /* the byte, not the DSCP */
		{"roce-dscp = \n", ":1:", "0 to 63"},
		{"roce-dscp = 1,2,3,4,5\n", ":1:", "one to four"},
		{"roce-dscp = 26,\n", ":1:", "0 to 63"},
		{"roce-dscp = ,26\n", ":1:", "0 to 63"},
		{"# x\nroce-priority = 8\n", ":2:", "0 to 7"},
		{"roce-priority = three\n", ":1:", "0 to 7"},
		{"roce-priority = -1\n", ":1:", "0 to 7"},
		{"pfc = 3;4\n", ":1:", "none"},
		{"pfc = nothing\n", ":1:", "none"},
		{"trust = DSCP\n", ":1:", "dscp or pcp"},
		{"congestion = dcqcn\n", ":1:", "pfc-only"},
		{"adaptive-routing = 1\n", ":1:", "yes or no"},
		{"mtu = 64\n", ":1:", "68"},
		{"ets-share = 101\n", ":1:", "100"},
		{"cable-length = 5km\n", ":1:", "metres"},
		{"rate = 400\n", ":1:", "400Gb/s"},
		{"pkey = 0\n", ":1:", "partition"},
		{"sl = 16\n", ":1:", "15"},
		{"mtu = 9000\nmtu = 9000\n", ":2:", "twice"},
		{"roce-prio = 3\n", ":1:", "no key"},
		{"[site]\nmtu = 9000\n", ":2:", "[profile]"},
		{"mtu 9000\n", ":1:", "KEY = VALUE"},
		{"\n\n", ": ", "says nothing"},
		{"mtu = 9000\nname = \x01\n", ":2:", "control character"},
		{"roce-priority = 3\npfc = 4\n", "", "lossy"},
		{"roce-priority = 3\ncnp-priority = 3\n", "", "hold the CNPs back"},
		{"roce-dscp = 26\ncnp-dscp = 26\n", "", "class of their own"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct profile p;
		struct fb_err e = {0};
		int rc = read_text(bad[i].text, strlen(bad[i].text), &p, &e);
		if (rc >= 0 || e.exit != FB_EXIT_USAGE)
			fail_msg("\"%s\" is taken", bad[i].text);
		if (!strstr(e.msg, bad[i].says) || !strstr(e.msg, bad[i].line))
			fail_msg("\"%s\": \"%s\" does not say %s and %s", bad[i].text, e.msg,
				bad[i].says, bad[i].line);
	}
	(void)state;
}

static void a_mistyped_key_is_guessed(void **state)
{
	struct profile p;
	struct fb_err e = {0};
	assert_int_equal(read_text("cnp-prority = 6\n", 16, &p, &e), -EINVAL);
	assert_non_null(strstr(e.hint, "cnp-priority"));
	(void)state;
}

static void long_lines_and_odd_files(void **state)
{
	char text[400] = "name = ";
	struct profile p;
	struct fb_err e = {0};
	memset(text + 7, 'x', 300);
	assert_int_equal(read_text(text, 307, &p, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "307 bytes"));
	/* within the line, and longer than the field */
	assert_int_equal(read_text(text, 100, &p, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "name has"));
	fb_err_clear(&e);
	assert_int_equal(profile_read("/nonexistent/site.ini", &p, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_true(profile_read("verbs", &p, &e) < 0); /* a folder */
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_true(profile_read("", &p, &e) < 0);
	(void)state;
}

static void shipped_profiles_are_found_by_name(void **state)
{
	static const struct {
		const char *name;
		int dscp, prio, pfc, cnp_dscp, cnp_prio;
	} shipped[] = {
		{"dscp26-cnp48-6", 26, 3, 8, 48, 6},
		{"dscp26-cnp48-7", 26, 3, 8, 48, 7},
		{"sonic", 3, 3, 0x18, 48, 6},
		{"tc41-fifo185", 41 >> 2, -1, -1, -1, -1},
		{"tc52-fifo84", 52 >> 2, -1, -1, -1, -1},
		{"pfc-only", -1, -1, -1, -1, -1},
	};
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++) {
		struct profile p;
		struct fb_err e = {0};
		if (profile_read(shipped[i].name, &p, &e) != 0)
			fail_msg("%s: %s", shipped[i].name, e.msg);
		assert_true(p.name[0] && p.source[0]);
		assert_int_equal(p.roce_dscp[0], shipped[i].dscp);
		assert_int_equal(p.roce_prio, shipped[i].prio);
		assert_int_equal(p.pfc_set, shipped[i].pfc);
		assert_int_equal(p.cnp_dscp, shipped[i].cnp_dscp);
		assert_int_equal(p.cnp_prio, shipped[i].cnp_prio);
	}
	struct profile p;
	struct fb_err e = {0};
	assert_int_equal(profile_read("tc41-fifo185", &p, &e), 0);
	assert_int_equal(p.roce_dscp[1], 185 >> 2);
	assert_int_equal(profile_read("tc52-fifo84", &p, &e), 0);
	assert_int_equal(p.roce_dscp[1], 84 >> 2);
	assert_int_equal(p.adaptive_routing, 1);
	assert_int_equal(profile_read("no-such", &p, &e), -ENOENT);
	assert_non_null(strstr(e.hint, "sonic"));
	(void)state;
}

static int learn(const char *tree, const char *more, char *text, size_t len, struct profile *p,
	struct fb_err *e)
{
	struct test_tree t;
	char path[256] = "";
	if (tree)
		snprintf(path, sizeof(path), TREES "%s.tree", tree);
	test_tree_open(&t, tree ? path : NULL, more);
	memset(text, 0, len);
	FILE *f = fmemopen(text, len, "w");
	assert_non_null(f);
	int rc = profile_learn(&t.facts, f, e);
	fclose(f);
	test_tree_close(&t);
	return rc < 0 ? rc : read_text(text, strlen(text), p, e);
}

static void what_is_learned_can_be_read(void **state)
{
	char text[8192];
	struct profile p;
	struct fb_err e = {0};
	if (learn("vendor-good", NULL, text, sizeof(text), &p, &e) != 0)
		fail_msg("%s in:\n%s", e.msg, text);
	assert_int_equal(p.roce_dscp[0], 26);
	assert_int_equal(p.roce_dscp[1], -1);
	assert_int_equal(p.roce_prio, 3);
	assert_int_equal(p.cnp_dscp, 48);
	assert_int_equal(p.cnp_prio, 6);
	assert_int_equal(p.pfc_set, 8);
	assert_string_equal(p.trust, "dscp");
	assert_string_equal(p.congestion, "ecn");
	assert_int_equal(p.mtu, 9000);
	assert_int_equal(p.ets_share, 50);
	assert_int_equal(p.cable_m, 7);
	assert_int_equal(p.rate_mbps, 100000);
	assert_non_null(strstr(text, "# /sys/class/net/eth2/qos/trust\n"));
	if (learn("ib-hdr", NULL, text, sizeof(text), &p, &e) != 0)
		fail_msg("%s in:\n%s", e.msg, text);
	assert_int_equal(p.rate_mbps, 200000);
	assert_int_equal(p.pkey, 0xffff);
	assert_int_equal(p.sl, 0);
	assert_null(strstr(text, "roce-dscp"));
	(void)state;
}

static void what_is_not_known_is_not_learned(void **state)
{
	char text[8192];
	struct profile p;
	struct fb_err e = {0};
	/* two priorities have PFC, and nothing says which of them is RoCE's */
	static const char two[] =
		"env NCCL_IB_TC=0\n@tc/traffic_class =\n@cma/default_roce_tos = 0\n"
		"pfc 3 4\n";
	assert_int_equal(learn("vendor-good", two, text, sizeof(text), &p, &e), 0);
	assert_int_equal(p.roce_prio, -1);
	assert_int_equal(p.pfc_set, 0x18);
	assert_non_null(strstr(text, "# roce-priority: nothing tells it here\n"));
	/* a second port with another MTU */
	static const char second[] = "device mlx5_1 mlx5_core 0000:5e:00.0 eth3\nport 1\n"
				     "@port/link_layer = Ethernet\n@net/mtu = 1500\n";
	assert_int_equal(learn("vendor-good", second, text, sizeof(text), &p, &e), 0);
	assert_int_equal(p.mtu, -1);
	assert_non_null(
		strstr(text, "# mtu: the ports differ: 9000 at mlx5_0/1, 1500 at mlx5_1/1\n"));
	/* no device at all */
	assert_int_equal(learn(NULL, "memlock unlimited", text, sizeof(text), &p, &e), -ENODEV);
	assert_int_equal(e.exit, FB_EXIT_SKIP);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_read),
		cmocka_unit_test(what_is_not_said_is_not_known),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(a_mistyped_key_is_guessed),
		cmocka_unit_test(long_lines_and_odd_files),
		cmocka_unit_test(shipped_profiles_are_found_by_name),
		cmocka_unit_test(what_is_learned_can_be_read),
		cmocka_unit_test(what_is_not_known_is_not_learned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
