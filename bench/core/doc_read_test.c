// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of result documents. reports/schema.json is walked beside the sample: whatever the
 * schema requires or enumerates, the reader must insist on too.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"

#define SAMPLE "reports/testdata/every-key.json"
#define SCHEMA "reports/schema.json"

static json_t *read_json(const char *path)
{
	char *text;
	size_t len;
	struct fb_err e = {0};
	assert_int_equal(fb_read_file(path, 1 << 20, &text, &len, &e), 0);
	json_t *j = fb_json_parse(text, len, path, &e);
	free(text);
	assert_non_null(j);
	return j;
}

static void assert_rejected(const json_t *doc, const char *want)
{
	struct fb_err e = {0};
	assert_int_equal(fb_doc_validate(doc, "run.json", &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	if (!strstr(e.msg, want))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, want);
	assert_true(strncmp(e.msg, "run.json: ", 10) == 0);
}

struct walk {
	json_t *schema, *doc;
	unsigned removed, words;
};

static const json_t *resolve(const struct walk *w, const json_t *schema)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	if (!ref)
		return schema;
	const json_t *to =
		json_object_get(json_object_get(w->schema, "definitions"), strrchr(ref, '/') + 1);
	assert_non_null(to);
	return to;
}

/* Take each required key away, one at a time, and put it back. */
static void remove_each(struct walk *w, const json_t *schema, json_t *value, const char *path)
{
	const json_t *required = json_object_get(schema, "required");
	for (size_t i = 0; json_is_object(value) && i < json_array_size(required); i++) {
		const char *key = json_string_value(json_array_get(required, i));
		char want[300];
		json_t *kept = json_incref(json_object_get(value, key));
		assert_non_null(kept);
		json_object_del(value, key);
		snprintf(want, sizeof(want), "%s%s%s: missing", path, *path ? "." : "", key);
		assert_rejected(w->doc, want);
		json_object_set_new(value, key, kept);
		w->removed++;
	}
}

static void spoil_word(
	struct walk *w, const json_t *schema, json_t *parent, const char *key, const char *path)
{
	if (!json_object_get(schema, "enum") || !json_is_object(parent))
		return;
	json_t *kept = json_incref(json_object_get(parent, key));
	json_object_set_new(parent, key,
		json_is_string(kept) ? json_string("no-such-word") : json_integer(-12345));
	/* The histogram's own words are judged by its reader, which names the histogram. */
	assert_rejected(w->doc, strstr(path, ".hist.") ? "hist" : path);
	json_object_set_new(parent, key, kept);
	w->words++;
}

static void walk(struct walk *w, const json_t *schema, json_t *value, const char *path)
{
	const char *key;
	json_t *sub;
	schema = resolve(w, schema);
	remove_each(w, schema, value, path);
	if (json_is_object(value)) {
		json_object_foreach (json_object_get(schema, "properties"), key, sub) {
			char down[300];
			json_t *v = json_object_get(value, key);
			if (!v)
				continue;
			snprintf(down, sizeof(down), "%s%s%s", path, *path ? "." : "", key);
			spoil_word(w, resolve(w, sub), value, key, down);
			walk(w, sub, v, down);
		}
	}
	const json_t *items = json_object_get(schema, "items");
	for (size_t i = 0; items && i < json_array_size(value); i++) {
		char down[300];
		snprintf(down, sizeof(down), "%s[%zu]", path, i);
		walk(w, items, json_array_get(value, i), down);
	}
}

static void test_agrees_with_schema(void **state)
{
	(void)state;
	struct walk w = {.schema = read_json(SCHEMA), .doc = read_json(SAMPLE)};
	struct fb_err e = {0};
	assert_int_equal(fb_doc_validate(w.doc, SAMPLE, &e), 0);
	walk(&w, w.schema, w.doc, "");
	/* The sample holds every part: 11 keys at the top, 10 of run, 5 results of 19 and more. */
	assert_true(w.removed > 150);
	assert_true(w.words > 20);
	assert_int_equal(fb_doc_validate(w.doc, SAMPLE, &e), 0);
	json_decref(w.doc);
	json_decref(w.schema);
}

static void test_load(void **state)
{
	(void)state;
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(SAMPLE, &e);
	assert_non_null(doc);
	assert_string_equal(fb_json_str(doc, "schema", ""), FB_SCHEMA);
	json_decref(doc);
	assert_null(fb_doc_load("bench/core/testdata/no-such-file.json", &e));
	assert_int_equal(e.code, -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_null(fb_doc_load("bench/core/testdata", &e));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_null(fb_doc_load("/dev/zero", &e));
	assert_non_null(strstr(e.msg, "not a regular file"));
}

static void test_not_json(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "{", "[]", "null", "{\"schema\": \"fabricbench/1\"",
		"{\"schema\":1,\"schema\":2}", "{\"a\": NaN}", "\x00\x01", "{\"a\":1e999}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fb_err e = {0};
		assert_null(fb_doc_parse(bad[i], strlen(bad[i]), "run.json", &e));
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, "run.json:"));
	}
	struct fb_err e = {0};
	assert_null(fb_doc_parse("{\n\"a\": 1,\n\"a\": 2}", 18, "run.json", &e));
	assert_non_null(strstr(e.msg, "run.json:3:"));
	assert_non_null(strstr(e.msg, "duplicate"));
}

static json_t *first_with(json_t *doc, const char *key)
{
	json_t *results = json_object_get(doc, "results");
	for (size_t i = 0; i < json_array_size(results); i++) {
		if (json_object_get(json_array_get(results, i), key))
			return json_array_get(results, i);
	}
	return NULL;
}

static void test_beyond_the_schema(void **state)
{
	(void)state;
	json_t *doc = read_json(SAMPLE), *r = first_with(doc, "hist");
	assert_non_null(r);
	int64_t n = fb_json_int(r, "n", 0);
	fb_json_set_int(r, "n", n + 1);
	assert_rejected(doc, "results[0].n: differs from the histogram");
	fb_json_set_int(r, "n", n);

	json_t *hist = json_object_get(r, "hist");
	fb_json_set_int(hist, "n", n + 1);
	assert_rejected(doc, "results[0].hist");
	fb_json_set_int(hist, "n", n);
	json_t *pair = json_array_get(json_object_get(hist, "buckets"), 0);
	json_t *bucket = json_incref(json_array_get(pair, 0));
	json_array_set_new(pair, 0, json_integer(1 << 20));
	assert_rejected(doc, "results[0].hist");
	json_array_set_new(pair, 0, bucket);

	json_t *ci = json_object_get(r, "ci");
	double hi = fb_json_num(ci, "hi", 0);
	fb_json_set_real(ci, "hi", -1, NULL);
	assert_rejected(doc, "results[0].ci: its lower end is above");
	fb_json_set_real(ci, "hi", hi, NULL);

	json_object_del(r, "hist");
	assert_rejected(doc, "results[0]: has neither hist nor samples");
	json_decref(doc);
}

static void test_wrong_types(void **state)
{
	(void)state;
	static const struct {
		const char *key, *want;
	} cases[] = {{"n", "results[0].n: must be an integer"},
		{"metric", "results[0].metric: must be a string"},
		{"params", "results[0].params: must be an object"},
		{"per_rank", "results[0].per_rank: must be an array"},
		{"value", "results[0].value: must be a number or null"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *doc = read_json(SAMPLE);
		json_t *r = json_array_get(json_object_get(doc, "results"), 0);
		json_object_set_new(r, cases[i].key, json_true());
		assert_rejected(doc, cases[i].want);
		json_decref(doc);
	}
	json_t *doc = read_json(SAMPLE);
	fb_json_set_int(json_array_get(json_object_get(doc, "results"), 0), "launch", -1);
	assert_rejected(doc, "results[0].launch: must not be negative");
	json_decref(doc);
}

static void test_unknown_keys_are_kept(void **state)
{
	(void)state;
	struct fb_err e = {0};
	json_t *doc = read_json(SAMPLE);
	fb_json_set_str(doc, "a_later_key", "x");
	fb_json_set_str(json_object_get(doc, "run"), "a_later_key", "x");
	assert_int_equal(fb_doc_validate(doc, SAMPLE, &e), 0);
	assert_non_null(json_object_get(doc, "a_later_key"));
	json_decref(doc);
}

/* `--cost FILE` is scripts/bench's: how long reading a document takes, five times over. */
static int cost(const char *path)
{
	for (int i = 0; i < 5; i++) {
		struct fb_err e = {0};
		const uint64_t begin = fb_clock_ns();
		json_t *doc = fb_doc_load(path, &e);
		const double ms = (double)(fb_clock_ns() - begin) / 1e6;
		if (!doc) {
			fprintf(stderr, "%s\n", e.msg);
			return 1;
		}
		printf("%.1f\n", ms);
		json_decref(doc);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--cost") == 0)
		return cost(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_agrees_with_schema),
		cmocka_unit_test(test_not_json),
		cmocka_unit_test(test_beyond_the_schema),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_unknown_keys_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
