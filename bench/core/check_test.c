// SPDX-License-Identifier: Apache-2.0
/* Findings become checks of a valid document; the verdict's table; hostile text stays text. */
#include <stdlib.h>
#include <string.h>

#include "bench/core/check.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/test.h"

static const struct fb_check_def defs[] = {
	{.id = "T01",
		.title = "first",
		.needs = "a file",
		.rule = "it passes when it does",
		.remedy = "mend it",
		.side_effect = "flaps",
		.source = "here",
		.evidence = "constructed"},
	{.id = "T02",
		.title = "second",
		.needs = "a call",
		.rule = "always",
		.source = "there",
		.evidence = "recorded"},
	{.id = NULL},
};

static struct fb_doc *new_doc(void)
{
	static struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	char name[] = "check", *argv[] = {name, NULL};
	struct fb_doc *d = fb_doc_new("check", 1, argv, &out, &e);
	assert_non_null(d);
	return d;
}

static void add(struct fb_doc *d, int which, enum fb_check_state s)
{
	struct fb_finding f = {.subject = "dev/1"};
	fb_find(&f, s, "text %d", which);
	fb_find_expected(&f, "a profile", "%d", 3);
	fb_find_read(&f, "/sys/%s", "x");
	fb_doc_add_check(d, fb_finding_json(&defs[which], &f));
}

static int judged(const enum fb_check_state *states, size_t n, bool strict, const char *require,
	const char *expect)
{
	struct fb_doc *d = new_doc();
	struct fb_err e = {0};
	for (size_t i = 0; i < n; i++)
		add(d, (int)i % 2, states[i]);
	const struct fb_check_judge j = {
		.strict = strict, .require = &require, .n_require = require ? 1 : 0};
	int status = fb_check_judge(d, &j);
	const json_t *v = json_object_get(fb_doc_json(d), "verdict");
	assert_string_equal(fb_json_str(v, "state", ""), expect);
	assert_int_equal(fb_doc_validate(fb_doc_json(d), "doc", &e), 0);
	fb_doc_free(d);
	return status;
}

static void test_verdicts(void **state)
{
	const enum fb_check_state pass[] = {FB_CHECK_PASS, FB_CHECK_INFO};
	const enum fb_check_state warn[] = {FB_CHECK_PASS, FB_CHECK_WARN};
	const enum fb_check_state fail[] = {FB_CHECK_FAIL, FB_CHECK_SKIP};
	const enum fb_check_state skip[] = {FB_CHECK_SKIP, FB_CHECK_SKIP};
	const enum fb_check_state error[] = {FB_CHECK_ERROR};
	const enum fb_check_state half[] = {FB_CHECK_PASS, FB_CHECK_SKIP};
	assert_int_equal(judged(pass, 2, true, "T01", "ACCEPTED"), 0);
	assert_int_equal(judged(warn, 2, false, NULL, "ACCEPTED"), 0);
	assert_int_equal(judged(warn, 2, true, NULL, "REJECTED"), 1);
	assert_int_equal(judged(fail, 2, false, "T02", "REJECTED"), 1);
	assert_int_equal(judged(skip, 2, false, NULL, "INCOMPLETE"), 77);
	assert_int_equal(judged(skip, 2, false, "T01", "INCOMPLETE"), 3);
	assert_int_equal(judged(error, 1, false, NULL, "INCOMPLETE"), 3);
	assert_int_equal(judged(half, 2, false, NULL, "ACCEPTED"), 0);
	assert_int_equal(judged(half, 2, false, "T02", "INCOMPLETE"), 3);
	assert_int_equal(judged(half, 2, false, "T99", "INCOMPLETE"), 3);
	assert_int_equal(judged(NULL, 0, false, NULL, "INCOMPLETE"), 77);
}

static void test_remedy(void **state)
{
	struct fb_finding f = {0};
	fb_find(&f, FB_CHECK_FAIL, "bad");
	json_t *j = fb_finding_json(&defs[0], &f);
	assert_string_equal(fb_json_str(j, "remedy", ""), "mend it");
	assert_string_equal(fb_json_str(j, "side_effect", ""), "flaps");
	json_decref(j);
	fb_find_remedy(&f, NULL, "do %s", "that");
	j = fb_finding_json(&defs[0], &f);
	assert_string_equal(fb_json_str(j, "remedy", ""), "do that");
	assert_true(json_is_null(json_object_get(j, "side_effect")));
	json_decref(j);
	fb_find(&f, FB_CHECK_PASS, "good");
	j = fb_finding_json(&defs[0], &f);
	assert_true(json_is_null(json_object_get(j, "remedy")));
	json_decref(j);
}

static void test_explain(void **state)
{
	const struct fb_check_def *tables[] = {defs};
	struct fb_err e = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	fb_check_list(tables, 1, out);
	assert_int_equal(fb_check_explain(tables, 1, "T02", out, &e), 0);
	assert_true(fb_check_explain(tables, 1, "T2", out, &e) < 0);
	fclose(out);
	assert_non_null(strstr(text, "T01"));
	assert_non_null(strstr(text, "it only tells"));
	assert_non_null(strstr(e.hint, "T02"));
	free(text);
}

static char *printed(void (*print)(const json_t *doc, FILE *out), const json_t *doc)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	print(doc, out);
	fclose(out);
	return text;
}

static void test_formats(void **state)
{
	struct fb_doc *d = new_doc();
	struct fb_finding f = {.subject = "<a|b>\n\"&"};
	add(d, 0, FB_CHECK_PASS);
	fb_find(&f, FB_CHECK_FAIL, "x < y & `z` | w");
	fb_doc_add_check(d, fb_finding_json(&defs[0], &f));
	add(d, 1, FB_CHECK_SKIP);
	fb_check_judge(d, NULL);
	char *xml = printed(fb_check_junit, fb_doc_json(d));
	assert_non_null(strstr(xml, "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
	assert_non_null(strstr(xml, "x &lt; y &amp; `z` | w"));
	assert_null(strstr(xml, "<a|b>"));
	char *md = printed(fb_check_markdown, fb_doc_json(d));
	assert_non_null(strstr(md, "**REJECTED**"));
	assert_non_null(strstr(md, "x &lt; y &amp; \\`z\\` \\| w"));
	int lines = 0;
	for (const char *p = md; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 2 + 2 + 3);
	free(xml);
	free(md);
	fb_doc_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_remedy),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
