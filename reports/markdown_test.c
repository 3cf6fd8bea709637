// SPDX-License-Identifier: Apache-2.0
/* The Markdown page and the JUnit file: what stands in them, and hostile documents. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/xpath.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/test_files.h"

#define SMALL FB_TESTDATA("reports", "small.json")
#define HOSTILE \
	"x|y\n# Head\n- `touch owned` <script>a</script> **b** [l](http://e) \"q\" 'p' \\ \x01]]>&"

static char *page_of(const json_t *doc)
{
	char *text = NULL;
	size_t len;
	struct fb_err e = {0};
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	if (rep_markdown(f, doc, "run.json", &e) != 0)
		fail_msg("%s", e.msg);
	fclose(f);
	return text;
}

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

/* Every row of a table has the bars of its heading: none came from a text. */
static void check_tables(const char *text)
{
	size_t want = 0;
	for (const char *s = text; *s;) {
		const char *nl = strchr(s, '\n');
		size_t bars = 0;
		assert_non_null(nl); /* each line is ended */
		for (const char *p = s; p < nl; p++)
			bars += *p == '|' && (p == s || p[-1] != '\\');
		if (*s != '|')
			want = 0;
		else if (want == 0)
			want = bars;
		else if (bars != want)
			fail_msg("%zu bars, not %zu: %.*s", bars, want, (int)(nl - s), s);
		s = nl + 1;
	}
}

static void page_of_a_run(void **state)
{
	json_t *doc = small();
	json_object_set_new(doc, "verdict",
		json_pack("{s:s,s:s,s:[s]}", "state", "REJECTED", "scope", "two nodes", "reasons",
			"a, launch 1: failed"));
	json_object_set_new(doc, "plan",
		json_pack("{s:s,s:[{s:s,s:i,s:s},{s:s,s:i,s:s,s:s}]}", "title", "A plan", "parts",
			"job", "a", "launch", 2, "state", "complete", "job", "a", "launch", 1,
			"state", "failed", "reason", "no route"));
	char *text = page_of(doc);
	says(text, "## A plan: **REJECTED**\n\nScope: two nodes\n");
	says(text, "- a, launch 1: failed\n");
	says(text, "### Findings\n");
	says(text, "expected performance (kernel.org, admin-guide/pm/cpufreq)");
	says(text, "do: cpupower frequency-set -g performance");
	says(text, "1 of 2 complete");
	says(text, "| a | 1 | failed | no route |\n");
	says(text, "### Results\n");
	says(text, ", the lab (judges no hardware): ");
	says(text, " Gb/s | ");
	says(text, " us | ");
	check_tables(text);
	free(text);
	json_decref(doc);
}

static void hostile_page(void **state)
{
	json_t *doc = small(), *r;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		json_object_set_new(r, "case", json_string(HOSTILE));
		json_object_set_new(r, "metric", json_string(HOSTILE));
		json_object_set_new(r, "unit", json_string(HOSTILE));
		json_object_set_new(r, "job", json_string(HOSTILE));
	}
	static const char *const keys[] = {"subject", "observed", "remedy", "side_effect", "title"};
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set_new(json_array_get(json_object_get(doc, "checks"), 0), keys[i],
			json_string(HOSTILE));
	json_object_set_new(doc, "verdict",
		json_pack(
			"{s:s,s:s,s:[s]}", "state", HOSTILE, "scope", HOSTILE, "reasons", HOSTILE));
	char *text = page_of(doc);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "\n# Head"));
	assert_null(strstr(text, " `touch"));
	assert_null(strstr(text, " **b**"));
	assert_null(strstr(text, " [l]("));
	check_tables(text);
	free(text);
	json_decref(doc);
}

/* A page for a comment stays one: rows are counted, texts cut. */
static void long_documents(void **state)
{
	json_t *doc = small(), *results = json_object_get(doc, "results");
	json_t *first = json_deep_copy(json_array_get(results, 0));
	char *huge = malloc(1u << 20);
	assert_non_null(huge);
	memset(huge, '<', (1u << 20) - 1);
	huge[(1u << 20) - 1] = '\0';
	json_array_clear(results);
	json_object_del(first, "hist");
	for (int i = 0; i < 10000; i++) {
		char name[32];
		json_t *r = json_copy(first);
		snprintf(name, sizeof(name), "case/%d", i);
		json_object_set_new(r, "case", json_string(i ? name : huge));
		json_array_append_new(results, r);
	}
	char *text = page_of(doc);
	says(text, "\n9880 more rows stand in the document.\n");
	says(text, "&lt;...");
	assert_true(strlen(text) < 65536);
	check_tables(text);
	free(text);
	free(huge);
	json_decref(first);
	json_decref(doc);
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

static xmlDocPtr junit_of(const json_t *doc)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	rep_junit(f, doc);
	fclose(f);
	xmlDocPtr x = xmlReadMemory(text, (int)len, "junit", NULL, XML_PARSE_NONET);
	if (!x)
		fail_msg("no XML:\n%s", text);
	free(text);
	return x;
}

static int number(xmlDocPtr x, const char *path)
{
	xmlXPathContextPtr c = xmlXPathNewContext(x);
	xmlXPathObjectPtr o = xmlXPathEvalExpression((const xmlChar *)path, c);
	assert_non_null(o);
	int n = (int)xmlXPathCastToNumber(o);
	xmlXPathFreeObject(o);
	xmlXPathFreeContext(c);
	return n;
}

static void junit_counts_and_kinds(void **state)
{
	static const char *const kinds[][2] = {
		{"failures", "failure"}, {"errors", "error"}, {"skipped", "skipped"}};
	json_t *doc = small();
	json_object_set_new(doc, "plan",
		json_pack("{s:[{s:s,s:s,s:f},{s:s,s:s,s:i,s:s},{s:s,s:s,s:b},{s:s,s:s}]}", "parts",
			"job", "a", "state", "complete", "seconds", 1.25, "job", "b", "state",
			"failed", "exit", 1, "reason", HOSTILE, "job", "c", "state", "missing",
			"require", 0, "job", "d", "state", "interrupted"));
	json_array_append_new(json_object_get(doc, "errors"),
		json_pack("{s:s,s:s}", "message", HOSTILE, "remedy", HOSTILE));
	json_object_set_new(json_array_get(json_object_get(doc, "results"), 0), "validity",
		json_pack("{s:s,s:[s]}", "state", "invalid", "reasons", HOSTILE));
	json_object_set_new(
		json_array_get(json_object_get(doc, "results"), 1), "case", json_string(HOSTILE));
	xmlDocPtr x = junit_of(doc);
	assert_int_equal(number(x, "count(//testsuite)"), 4);
	assert_int_equal(number(x, "count(//testsuite[@tests != count(testcase)])"), 0);
	for (size_t i = 0; i < 3; i++) {
		char path[120];
		snprintf(path, sizeof(path), "count(//testsuite[@%s != count(testcase/%s)])",
			kinds[i][0], kinds[i][1]);
		assert_int_equal(number(x, path), 0);
	}
	const char *parts = "//testsuite[@name='fabricbench parts']";
	char path[160];
	snprintf(path, sizeof(path), "count(%s/testcase[@time='1.250'])", parts);
	assert_int_equal(number(x, path), 1);
	snprintf(path, sizeof(path), "number(%s/@failures)", parts);
	assert_int_equal(number(x, path), 1);
	snprintf(path, sizeof(path), "number(%s/@skipped)", parts);
	assert_int_equal(number(x, path), 1);
	assert_int_equal(number(x, "number(//testsuite[@name='fabricbench results']/@errors)"), 1);
	assert_int_equal(number(x, "count(//script)"), 0);
	xmlFreeDoc(x);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_of_a_run),
		cmocka_unit_test(hostile_page),
		cmocka_unit_test(long_documents),
		cmocka_unit_test(junit_counts_and_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
