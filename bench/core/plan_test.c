// SPDX-License-Identifier: Apache-2.0
/* Plans: what is read, and what each kind of bad plan is told. */
#include "bench/core/plan.h"

#include <stdio.h>
#include <string.h>

#include "bench/core/test.h"

static int parse(const char *text, struct fb_plan *p, struct fb_err *e)
{
	memset(e, 0, sizeof(*e));
	return fb_plan_parse(text, strlen(text), "p.ini", p, e);
}

static void test_reads_jobs(void **state)
{
	(void)state;
	struct fb_plan p;
	struct fb_err e;
	assert_int_equal(
		parse("; a comment\n[plan]\ntitle = Quick look\nlaunches = 3\n\n[a]\ncommand = verbs latency\nop = send ; all\n"
		      "[b-2]\ncommand=coll all_reduce\nranks = 2\nlauncher = mpirun\ndeadline = 30s\nrequire = no\nlaunches=1\n",
			&p, &e),
		0);
	assert_string_equal(p.title, "Quick look");
	assert_int_equal(p.njobs, 2);
	assert_string_equal(p.jobs[0].name, "a");
	assert_string_equal(p.jobs[0].command, "verbs latency");
	assert_int_equal(p.jobs[0].launches, 3);
	assert_int_equal(p.jobs[0].nkeys, 1);
	assert_string_equal(p.jobs[0].keys[0].value, "send ; all"); /* no inline comments */
	assert_int_equal(p.jobs[1].launcher, FB_LAUNCH_MPIRUN);
	assert_int_equal(p.jobs[1].ranks, 2);
	assert_int_equal(p.jobs[1].launches, 1);
	assert_true(p.jobs[1].deadline_ns == 30ull * 1000000000);
	assert_false(p.jobs[1].require);
	fb_plan_free(&p);
}

static void test_indented_line_is_a_line(void **state)
{
	(void)state;
	struct fb_plan p;
	struct fb_err e;
	assert_int_equal(parse("[a]\ncommand = topo\n  size = 64\n", &p, &e), 0);
	assert_int_equal(p.jobs[0].nkeys, 1);
	assert_string_equal(p.jobs[0].keys[0].name, "size");
	fb_plan_free(&p);
}

/* Some editors put a mark before UTF-8; a comment may be longer than a line with a meaning. */
static void test_begins_with_a_mark(void **state)
{
	(void)state;
	struct fb_plan p;
	struct fb_err e;
	char text[500];
	snprintf(text, sizeof(text),
		"\xef\xbb\xbf[a]  ; the first\n# %0300d\ncommand = topo\nx = ;1; 2\n", 7);
	assert_int_equal(parse(text, &p, &e), 0);
	assert_string_equal(p.jobs[0].name, "a");
	assert_int_equal(p.jobs[0].line, 1);
	assert_string_equal(p.jobs[0].keys[0].value, ";1; 2");
	assert_int_equal(p.jobs[0].keys[0].line, 4);
	fb_plan_free(&p);
}

static void test_bad_plans(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "no job"},
		{"x = 1\n", "before the first [job]"},
		{"[a]\nop = send\n", "[a] has no command"},
		{"[a]\n[b]\ncommand = topo\n", "[a] has no command"},
		{"[a]\ncommand = topo\n[a]\ncommand = topo\n", "two sections [a]"},
		{"[a]\ncommand = topo\n[b]\ncommand = topo\n[a]\nx = 1\n", "two sections [a]"},
		{"[a]\ncommand = topo\ncommand = topo\n", "command stands twice"},
		{"[a]\ncommand = topo\nx = 1\nx = 2\n", "x stands twice"},
		{"[a]\ncommand = topo\nlauncher = pbs\n", "not one of local, ssh"},
		{"[a]\ncommand = topo\nranks = 0\n", "ranks = 0"},
		{"[a]\ncommand = topo\nlaunches = many\n", "launches = many"},
		{"[a]\ncommand = topo\ndeadline = soon\n", "deadline = soon"},
		{"[a]\ncommand = topo\nrequire = perhaps\n", "yes or no"},
		{"[a b]\ncommand = topo\n", "is no job name"},
		{"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\ncommand = topo\n", "longer than 40"},
		{"[a]\ncommand topo\n", "p.ini:2: neither a comment, nor [SECTION], nor KEY"},
		{"[a]\ncommand topo\nx = 1\nx = 2\n", "p.ini:2: neither"},
		{"[a\ncommand = topo\nx = 1\nx = 2\n", "p.ini:1: neither"},
		{"[a] command = topo\nx = 1\n",
			"p.ini:1: behind [SECTION] stands \"command = topo\""},
		{"[]\ncommand = topo\n", "\"\" is no job name"},
		{"[a;b]\ncommand = topo\n", "\"a;b\" is no job name"},
		{"[a ;b]\ncommand = topo\n", "\"a ;b\" is no job name"},
		{"[plan]\ntitle = x\n[plan]\nscope = y\n[a]\ncommand = topo\n",
			"p.ini:3: there are two sections [plan]"},
		{"[a]\ncommand = topo\n\n[b]\n# nothing\n[c]\ncommand = topo\n",
			"p.ini:4: [b] has no command"},
		{"[plan]\ntitle = x\ntitle = y\n", "p.ini:3: title stands twice in [plan]"},
		{"[a]\ncommand = topo\n[plan]\nlaunches = 2\n", "before the first job"},
		{"[plan]\nname = x\n", "[plan] knows"},
		{"[a]\ncommand = to\x01po\n", "control character"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fb_plan p;
		struct fb_err e;
		assert_int_equal(parse(bad[i].text, &p, &e), -22);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, bad[i].says))
			fail_msg("plan %zu: \"%s\" does not say \"%s\"", i, e.msg, bad[i].says);
	}
}

static void test_limits(void **state)
{
	(void)state;
	struct fb_plan p;
	struct fb_err e;
	char line[400];
	memset(line, 'v', sizeof(line));
	memcpy(line, "[a]\ncommand = ", 14);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(parse(line, &p, &e), -22);
	assert_non_null(strstr(e.msg, "may have 190"));
	memset(&e, 0, sizeof(e));
	assert_int_equal(fb_plan_parse("[a]\0\n", 5, "p.ini", &p, &e), -22);
	assert_non_null(strstr(e.msg, "NUL"));
	memset(&e, 0, sizeof(e));
	assert_true(fb_plan_load("/nonexistent/plan.ini", &p, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_jobs),
		cmocka_unit_test(test_indented_line_is_a_line),
		cmocka_unit_test(test_begins_with_a_mark),
		cmocka_unit_test(test_bad_plans),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
