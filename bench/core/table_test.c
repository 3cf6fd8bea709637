// SPDX-License-Identifier: Apache-2.0
/* Text tables: the whole rendering of a sample, and the rules that a reader relies on. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"

static char *render(const json_t *doc)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	fb_table_print(doc, out);
	fclose(out);
	return text;
}

static json_t *load(const char *path)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(path, &e);
	if (!doc)
		fail_msg("%s", e.msg);
	return doc;
}

static void test_sample(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"reports/testdata/every-key.json", "bench/core/testdata/every-key.txt"},
		{"bench/core/testdata/table.json", "bench/core/testdata/table.txt"}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct fb_err e = {0};
		char *want;
		size_t len;
		json_t *doc = load(pairs[i][0]);
		char *text = render(doc);
		assert_int_equal(fb_read_file(pairs[i][1], 1 << 20, &want, &len, &e), 0);
		assert_string_equal(text, want);
		free(text);
		free(want);
		json_decref(doc);
	}
}

/* No line ends in a blank, and no row of these tables is wider than 100 columns. */
static void test_tidy(void **state)
{
	(void)state;
	json_t *doc = load("bench/core/testdata/table.json");
	char *text = render(doc);
	assert_null(strstr(text, " \n"));
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
		assert_true(end - line <= 100 || line[0] != ' ');
	free(text);
	json_decref(doc);
}

static void test_unsupported_percentile(void **state)
{
	(void)state;
	json_t *doc = load("bench/core/testdata/table.json");
	json_t *results = json_object_get(doc, "results");
	json_t *only = json_array();
	json_array_append(only, json_array_get(results, 0));
	json_object_del(json_object_get(json_array_get(only, 0), "stats"), "p99_9");
	json_object_set_new(doc, "results", only);
	char *text = render(doc);
	assert_non_null(strstr(text, "p99.9"));
	assert_non_null(strstr(text, "  -  ")); /* never a zero */
	free(text);
	json_decref(doc);
}

/* Both rates in one unit, whatever the figure beside them counts. */
static void test_limited_rate(void **state)
{
	(void)state;
	json_t *doc = load("bench/core/testdata/table.json");
	json_t *r = json_array_get(json_object_get(doc, "results"), 0);
	json_object_set_new(r, "rate",
		json_pack("{s:f,s:f,s:f}", "requested", 5e10, "achieved", 1.25e10, "share", 0.25));
	for (int i = 0; i < 2; i++) {
		char *text = render(doc);
		assert_non_null(
			strstr(text, "latency: achieved 100.0 of requested 400.0 Gb/s, 25.0 %\n"));
		free(text);
		json_object_set_new(r, "unit", json_string("1/s"));
	}
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_tidy),
		cmocka_unit_test(test_unsupported_percentile),
		cmocka_unit_test(test_limited_rate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
