// SPDX-License-Identifier: Apache-2.0
/* Gate files: what they say is found again, and whatever they cannot mean is refused with its line.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "reports/gate_file.h"

static const char whole[] = "# a site's gate\n"
			    "[gate]\n"
			    "metrics = verbs.*:bandwidth\n"
			    "metrics = coll.*:busbw\n"
			    "max-gated = 12\n"
			    "level = 0.99\n"
			    "[floor p50]\n"
			    "relative = 3 %\n"
			    "absolute = 50ns\n"
			    "reason = the clock of this host\n"
			    "[floor reads]\n"
			    "metric = verbs.latency/read*:latency p50\n"
			    "relative = 0.08\n"
			    "reason = reads cross the chipset\n"
			    "[waiver cable]\n"
			    "metric = verbs.bandwidth*:bandwidth\n"
			    "verdict = REGRESSED\n"
			    "reason = cable 17 is ordered\n"
			    "owner = ann\n"
			    "expires = 2027-01-31\n";

static int parse(const char *text, struct gate *g, struct fb_err *e)
{
	memset(e, 0, sizeof(*e));
	return gate_parse(text, strlen(text), "gate.ini", g, e);
}

static void says_what_it_says(void **state)
{
	struct gate g;
	struct fb_err e;
	if (parse(whole, &g, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(g.n_patterns, 2);
	assert_string_equal(g.pattern[1], "coll.*:busbw");
	assert_int_equal(g.max_gated, 12);
	assert_true(g.level == 0.99);
	const struct gate_floor *f = gate_floor_of(&g, "verbs.latency/send/2:latency p50", "p50");
	assert_non_null(f);
	assert_true(f->relative == 0.03 && f->absolute == 50);
	f = gate_floor_of(&g, "verbs.latency/read/2:latency p50", "p50");
	assert_non_null(f);
	assert_string_equal(f->reason, "reads cross the chipset");
	assert_true(f->relative == 0.08 && f->absolute < 0);
	assert_null(gate_floor_of(&g, "coll.all_reduce/64:busbw", "rate"));
	const struct gate_waiver *w =
		gate_waiver_of(&g, "verbs.bandwidth/write/1024:bandwidth", "REGRESSED");
	assert_non_null(w);
	assert_string_equal(w->owner, "ann");
	assert_null(gate_waiver_of(&g, "verbs.bandwidth/write/1024:bandwidth", "MISSING"));
	assert_null(gate_waiver_of(&g, "coll.all_reduce/64:busbw", "REGRESSED"));
	gate_free(&g);
}

static void waivers_end(void **state)
{
	struct gate g;
	struct fb_err e;
	assert_int_equal(parse(whole, &g, &e), 0);
	assert_int_equal(gate_check_expiry(&g, "2026-11-30", &e), 0);
	assert_int_equal(gate_check_expiry(&g, "2027-01-31", &e), 0);
	assert_int_equal(gate_check_expiry(&g, "2027-02-01", &e), -ETIME);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_string_equal(
		e.msg, "the waiver \"cable\" of ann (cable 17 is ordered) ended on 2027-01-31");
	gate_free(&g);
}

static void refused_with_the_line(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"metrics = a:b\n", "gate.ini:1: section []"},
		{"[gates]\nmetrics = a:b\n", "gate.ini:2: section [gates]"},
		{"[gate]\nmetrics = bandwidth\n",
			"gate.ini:2: metrics = bandwidth: it may be a pattern"},
		{"[gate]\nmax-gated = none\n", "gate.ini:2: max-gated = none"},
		{"[gate]\nlevel = 0.5\n", "gate.ini:2: level = 0.5"},
		{"[gate]\nlevel = 0.9\nlevel = 0.9\n", "gate.ini:3: level stands twice"},
		{"[gate]\nmetricks = a:b\n", "gate.ini:2: there is no key \"metricks\""},
		{"[gate]\nmetrics\n", "gate.ini:2: neither a comment"},
		{"[floor p50]\nrelative = 2 %\n",
			"gate.ini:2: [floor p50] needs relative and reason"},
		{"[floor p50]\nreason = x\n", "gate.ini:2: [floor p50] needs relative and reason"},
		{"[floor p50]\nrelative = -2 %\n", "gate.ini:2: relative = -2 %"},
		{"[floor p50]\nrelative = nan\n", "gate.ini:2: relative = nan"},
		{"[floor p50]\nabsolute = 20ns\nabsolute = 20 furlongs\n",
			"gate.ini:3: absolute stands twice"},
		{"[floor p50]\nabsolute = 20\n", "gate.ini:2: absolute = 20: it may be a time"},
		{"[floor p50]\nabsolute = 0\nabsolute = 1e3\n",
			"gate.ini:3: absolute stands twice"},
		{"[floor p50]\nabsolute = far\n", "gate.ini:2: absolute = far"},
		{"[floor rate]\nabsolute = 20ns\n", "gate.ini:2: absolute: a rate has"},
		{"[floor p50]\nmetric = a:b\n", "gate.ini:2: [floor p50] is a kind's"},
		{"[floor mine]\nrelative = 1 %\nreason = x\n",
			"gate.ini:2: [floor mine] needs metric"},
		{"[floor p50]\nrelative = 1 %\nreason = x\n[gate]\nlevel = 0.9\n[floor p50]\nrelative = 2 %\n",
			"gate.ini:7: [floor p50] stands twice (first in line 2)"},
		{"[waiver x]\nmetric = a:b\nverdict = REGRESSED\nreason = r\nexpires = 2027-01-31\n",
			"gate.ini:2: [waiver x] needs metric, verdict, reason, owner and expires"},
		{"[waiver x]\nverdict = PASS\n",
			"gate.ini:2: verdict = PASS: it may be one of REGRESSED"},
		{"[waiver x]\nexpires = 2026-02-31\n", "gate.ini:2: expires = 2026-02-31"},
		{"[waiver x]\nexpires = soon\n", "gate.ini:2: expires = soon"},
		{"[waiver x]\nreason =\n", "gate.ini:2: reason = : a text must stand there"},
		{"[waiver x]\nreason = a\x01"
		 "b\n",
			"gate.ini:2: control character 0x01"},
		{"[floor a name far longer than what the library would keep whole]\nrelative = 1\n",
			"gate.ini:1: the section's name has 62 bytes"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gate g;
		struct fb_err e;
		if (parse(rows[i].text, &g, &e) == 0)
			fail_msg("accepted: %s", rows[i].text);
		if (strncmp(e.msg, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("%s\n  says: %s\n  want: %s", rows[i].text, e.msg, rows[i].says);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_it_says),
		cmocka_unit_test(waivers_end),
		cmocka_unit_test(refused_with_the_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
