// SPDX-License-Identifier: Apache-2.0
/*
 * The Prometheus text, held against the rules of its format by a reader that knows nothing of how
 * it was written; its values; hostile documents.
 */
#include "bench/core/test.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/prometheus.h"
#include "reports/test_files.h"

#define SMALL   FB_TESTDATA("reports", "small.json")
#define HOSTILE "a\"b\\c\nfabricbench_owned 1\n# TYPE x\r`touch owned`<b>{}=,\x01 \xc3\xa9"

static char *text_of(const json_t *doc)
{
	struct fb_strbuf b = {0};
	struct fb_err e = {0};
	if (rep_prometheus(&b, doc, &e) != 0)
		fail_msg("%s", e.msg);
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	return s;
}

/* ---- the rules ------------------------------------------------------------------------------- */

#define MAX_FAMILIES 128
#define MAX_SAMPLES  20000

struct reader {
	const char *s, *why;
	char family[MAX_FAMILIES][128]; /* in order of their HELP lines */
	size_t n_families;
	bool typed;                /* the last family has its TYPE */
	char *sample[MAX_SAMPLES]; /* name and labels, to find doubles */
	size_t n_samples;
};

static size_t name_length(const char *s, bool colon)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || (colon && s[n] == ':'))
		n++;
	return n > 0 && !isdigit((unsigned char)s[0]) ? n : 0;
}

/* {name="value",...} with each name once; only \\, \" and \n are escapes. @return past it */
static const char *read_labels(struct reader *r, const char *s)
{
	char names[32][64];
	size_t n = 0;
	if (*s != '{')
		return s;
	for (s++; *s != '}';) {
		size_t k = name_length(s, false);
		if (k == 0 || k >= sizeof(names[0]) || n == 32 || s[k] != '=' || s[k + 1] != '"') {
			r->why = "a label without name or value";
			return s;
		}
		snprintf(names[n], sizeof(names[0]), "%.*s", (int)k, s);
		for (size_t i = 0; i < n; i++)
			if (strcmp(names[i], names[n]) == 0)
				r->why = "a label twice";
		n++;
		for (s += k + 2; *s != '"'; s++) {
			if (*s == '\0' || *s == '\n')
				r->why = "a label's value without end";
			else if (*s == '\\' && !strchr("\\\"n", *++s))
				r->why = "an unknown escape";
			if (r->why)
				return s;
		}
		s++;
		if (*s == ',')
			s++;
		else if (*s != '}')
			r->why = "no comma between labels";
		if (r->why)
			return s;
	}
	return s + 1;
}

static void read_comment(struct reader *r, const char *s)
{
	bool help = strncmp(s, "# HELP ", 7) == 0, type = strncmp(s, "# TYPE ", 7) == 0;
	size_t n = name_length(s + 7, true);
	if (!help && !type) {
		r->why = "a comment that is neither HELP nor TYPE";
	} else if (n == 0 || s[7 + n] != ' ') {
		r->why = "HELP or TYPE without a name";
	} else if (help) {
		if (r->n_families > 0 && !r->typed)
			r->why = "a family without TYPE";
		for (size_t i = 0; i < r->n_families; i++)
			if (strlen(r->family[i]) == n && strncmp(r->family[i], s + 7, n) == 0)
				r->why = "a family twice";
		assert_true(r->n_families < MAX_FAMILIES);
		snprintf(r->family[r->n_families++], sizeof(r->family[0]), "%.*s", (int)n, s + 7);
		r->typed = false;
	} else {
		const char *family = r->n_families ? r->family[r->n_families - 1] : "";
		if (r->typed || strlen(family) != n || strncmp(family, s + 7, n) != 0)
			r->why = "TYPE not once behind its HELP";
		else if (strncmp(s + 7 + n, " gauge\n", 7) != 0)
			r->why = "not a gauge";
		r->typed = true;
	}
}

static void read_sample(struct reader *r, const char *s)
{
	const char *family = r->n_families ? r->family[r->n_families - 1] : "";
	size_t n = name_length(s, true);
	const char *p = n ? read_labels(r, s + n) : s;
	char *end = NULL;
	if (r->why)
		return;
	double v = *p == ' ' ? strtod(p + 1, &end) : NAN;
	if (n == 0 || !r->typed || strlen(family) != n || strncmp(family, s, n) != 0)
		r->why = "a sample outside its family";
	else if (!isfinite(v) || !end || end == p + 1)
		r->why = "no value";
	else if (*end != '\n')
		r->why = "something behind the value: a timestamp";
	assert_true(r->n_samples < MAX_SAMPLES);
	r->sample[r->n_samples++] = strndup(s, (size_t)(p - s));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* @return what is wrong with the text, "" : nothing */
static const char *check_rules(const char *text)
{
	static char what[300];
	struct reader *r = calloc(1, sizeof(*r));
	const char *s = text;
	assert_non_null(r);
	if (*text && text[strlen(text) - 1] != '\n')
		r->why = "the last line has no end";
	while (*s && !r->why) {
		r->s = s;
		if (*s == '#')
			read_comment(r, s);
		else
			read_sample(r, s);
		const char *nl = strchr(s, '\n');
		s = nl ? nl + 1 : s + strlen(s);
	}
	qsort(r->sample, r->n_samples, sizeof(r->sample[0]), by_text);
	for (size_t i = 1; i < r->n_samples && !r->why; i++)
		if (strcmp(r->sample[i - 1], r->sample[i]) == 0) {
			r->s = r->sample[i];
			r->why = "a sample twice";
		}
	snprintf(what, sizeof(what), "%s%s%.200s", r->why ? r->why : "", r->why ? ": " : "",
		r->why ? r->s : "");
	for (size_t i = 0; i < r->n_samples; i++)
		free(r->sample[i]);
	free(r);
	return what;
}

static void the_reader_sees_faults(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"# HELP a b\n# TYPE a gauge\na 1", "no end"},
		{"# HELP a b\n# TYPE a gauge\na 1 1700000000\n", "timestamp"},
		{"# HELP a b\n# TYPE a gauge\na NaN\n", "no value"},
		{"# HELP a b\n# TYPE a gauge\na 1\na 2\n", "sample twice"},
		{"# HELP a b\n# TYPE a gauge\na 1\n# HELP a b\n", "family twice"},
		{"# HELP a b\n# TYPE a gauge\nb 1\n", "outside"},
		{"# HELP a b\na 1\n", "outside"},
		{"# HELP a b\n# TYPE a gauge\na{x=\"\\t\"} 1\n", "escape"},
		{"# HELP a b\n# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n", "label twice"},
		{"# HELP a b\n# TYPE a gauge\na{x=\"1\n", "without end"},
		{"# HELP a b\n# TYPE a gauge\na{1x=\"1\"} 1\n", "without name"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!strstr(check_rules(bad[i].text), bad[i].why))
			fail_msg("%s: \"%s\" instead of %s", bad[i].text, check_rules(bad[i].text),
				bad[i].why);
	assert_string_equal(
		check_rules("# HELP a b\n# TYPE a gauge\na{x=\"\\\\\\\"\\n\"} 1e-06\n"), "");
}

/* ---- the text -------------------------------------------------------------------------------- */

static void holds(const char *text, const char *line)
{
	const char *p = strstr(text, line);
	if (!p || (p != text && p[-1] != '\n'))
		fail_msg("no line begins with %s in:\n%s", line, text);
}

static void values_in_base_units(void **state)
{
	json_t *doc = small(), *r, *busbw = NULL;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r)
		if (!busbw && strcmp(fb_json_str(r, "metric", ""), "busbw") == 0)
			busbw = r;
	json_object_set_new(busbw, "case", json_string("coll/sum/4096"));
	json_object_set_new(busbw, "value", json_real(2.5e9));
	json_object_set_new(busbw, "job", json_string("only"));
	json_object_set_new(busbw, "where", json_string("hardware"));
	json_object_set_new(busbw, "load", json_string("closed"));
	json_object_set_new(json_object_get(busbw, "params"), "size", json_integer(4096));
	json_object_set_new(busbw, "bound", json_pack("{s:f,s:s}", "value", 5e9, "why", "w"));
	char *text = text_of(doc);
	assert_string_equal(check_rules(text), "");
	holds(text, "fabricbench_info{version=");
	holds(text, "fabricbench_last_run_timestamp_seconds 1");
	holds(text, "fabricbench_checks{state=\"warn\"} 1\n");
	holds(text, "fabricbench_checks{state=\"fail\"} 0\n");
	holds(text, "fabricbench_check_failures{id=\"cpu.governor\"} 0\n");
	holds(text,
		"fabricbench_busbw_bytes_per_second{benchmark=\"coll\",case=\"coll/sum\",job=\"only\","
		"size=\"4096\",load=\"closed\",where=\"hardware\"} 2500000000\n");
	holds(text, "fabricbench_busbw_bound_bytes_per_second{benchmark=\"coll\",");
	holds(text, "# TYPE fabricbench_latency_seconds gauge\n");
	holds(text, "# TYPE fabricbench_latency_quantile_seconds gauge\n");
	const char *id = fb_json_str(json_object_get(doc, "run"), "id", "?");
	if (strstr(text, id))
		fail_msg("the run's id is a label: %s", id);
	assert_null(strstr(text, "launch="));
	free(text);
	json_decref(doc);
}

/* Two launches are one series: their median. */
static void a_median_over_launches(void **state)
{
	static const double values[] = {3000, 1000, 2000};
	json_t *doc = small(), *results = json_object_get(doc, "results");
	json_t *first = json_deep_copy(json_array_get(results, 0));
	json_array_clear(results);
	json_object_del(first, "hist");
	json_object_set_new(first, "metric", json_string("Round trip (us)"));
	json_object_set_new(first, "unit", json_string("ns"));
	for (int i = 0; i < 3; i++) {
		json_t *r = json_deep_copy(first);
		json_object_set_new(r, "launch", json_integer(i + 1));
		json_object_set_new(r, "value", json_real(values[i]));
		json_array_append_new(results, r);
	}
	char *text = text_of(doc);
	assert_string_equal(check_rules(text), "");
	holds(text, "# HELP fabricbench_round_trip_us_seconds Median over launches");
	assert_non_null(strstr(text, "} 2e-06\n"));
	free(text);
	json_decref(doc);
	json_decref(first);
}

/* null and invalid results are absent; they are counted where counts stand. */
static void what_has_no_value_is_left_out(void **state)
{
	json_t *doc = small(), *results = json_object_get(doc, "results"), *r;
	size_t i;
	json_array_foreach (results, i, r) {
		json_object_del(r, "hist");
		json_object_set_new(r, "value", json_null());
		if (i % 2) {
			json_object_set_new(r, "value", json_real(1));
			json_object_set_new(r, "validity",
				json_pack("{s:s,s:[s]}", "state", "invalid", "reasons", "over"));
		}
		json_object_set_new(r, "bound", json_null());
	}
	json_object_del(json_object_get(doc, "run"), "ended");
	char *text = text_of(doc);
	assert_string_equal(check_rules(text), "");
	assert_null(strstr(text, "benchmark="));
	assert_null(strstr(text, "_duration_"));
	holds(text, "fabricbench_results{validity=\"invalid\"} ");
	assert_null(strstr(text, "nan"));
	free(text);
	json_decref(doc);
}

static void a_plan_and_its_verdict(void **state)
{
	json_t *doc = small();
	json_object_set_new(doc, "verdict", json_pack("{s:s}", "state", "REJECTED"));
	json_object_set_new(doc, "plan",
		json_pack("{s:[{s:s},{s:s}]}", "parts", "state", "complete", "state", "failed"));
	char *text = text_of(doc);
	assert_string_equal(check_rules(text), "");
	holds(text, "fabricbench_verdict{state=\"REJECTED\"} 1\n");
	holds(text, "fabricbench_verdict{state=\"ACCEPTED\"} 0\n");
	holds(text, "fabricbench_parts{state=\"failed\"} 1\n");
	free(text);
	json_decref(doc);
}

/* Whatever a document calls its metrics, cases, jobs and checks: the rules hold, and nothing of it
 * becomes a line of its own. */
static void hostile_documents(void **state)
{
	static const char *const names[] = {HOSTILE, "", "9", "last run timestamp", "checks",
		"latency_seconds", "\xe6\xb8\xac\xe5\xae\x9a"};
	json_t *doc = small(), *results = json_object_get(doc, "results"), *r;
	size_t i;
	char *huge = malloc(1u << 20);
	assert_non_null(huge);
	memset(huge, 'x', (1u << 20) - 1);
	huge[(1u << 20) - 1] = '\0';
	json_array_foreach (results, i, r) {
		const char *name = names[i % (sizeof(names) / sizeof(names[0]))];
		json_object_set_new(r, "metric", json_string(name));
		json_object_set_new(r, "case", json_string(i % 3 ? HOSTILE : huge));
		json_object_set_new(r, "unit", json_string(i % 2 ? HOSTILE : ""));
		json_object_set_new(r, "job", json_string(name));
		json_object_set_new(json_object_get(r, "params"), "device",
			json_string(i % 3 ? HOSTILE : huge));
	}
	json_object_set_new(
		json_array_get(json_object_get(doc, "checks"), 0), "id", json_string(HOSTILE));
	json_object_set_new(json_object_get(doc, "tool"), "version", json_string(HOSTILE));
	json_object_set_new(json_object_get(doc, "tool"), "git", json_string(huge));
	char *text = text_of(doc);
	assert_string_equal(check_rules(text), "");
	assert_null(strstr(text, "\nfabricbench_owned"));
	assert_null(strstr(text, "\n# TYPE x"));
	assert_true(strlen(text) < 100000);
	free(text);
	free(huge);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reader_sees_faults),
		cmocka_unit_test(values_in_base_units),
		cmocka_unit_test(a_median_over_launches),
		cmocka_unit_test(what_has_no_value_is_left_out),
		cmocka_unit_test(a_plan_and_its_verdict),
		cmocka_unit_test(hostile_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
