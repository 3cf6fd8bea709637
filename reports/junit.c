// SPDX-License-Identifier: Apache-2.0
/* See junit.h. The numbers of a suite are counted while its cases are written. */
#include "reports/junit.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/check.h"
#include "bench/core/json.h"
#include "bench/core/strbuf.h"

struct suite {
	struct fb_strbuf cases;
	size_t tests, failures, errors, skipped;
};

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void attribute(struct fb_strbuf *b, const char *name, const char *value)
{
	fb_strbuf_printf(b, " %s=\"", name);
	fb_strbuf_add_xml(b, value);
	fb_strbuf_add(b, "\"");
}

/* `element`: "failure", "error", "skipped"; NULL: it passed. seconds below 0: not known. */
static void add_case(struct suite *s, const char *class, const char *name, double seconds,
	const char *element, const char *message, const char *text)
{
	struct fb_strbuf *b = &s->cases;
	s->tests++;
	fb_strbuf_add(b, "    <testcase");
	attribute(b, "classname", class);
	attribute(b, "name", name);
	if (seconds >= 0)
		fb_strbuf_printf(b, " time=\"%.3f\"", seconds);
	if (!element) {
		fb_strbuf_add(b, "/>\n");
		return;
	}
	s->failures += strcmp(element, "failure") == 0;
	s->errors += strcmp(element, "error") == 0;
	s->skipped += strcmp(element, "skipped") == 0;
	fb_strbuf_printf(b, "><%s", element);
	attribute(b, "message", message);
	fb_strbuf_add(b, ">");
	fb_strbuf_add_xml(b, text);
	fb_strbuf_printf(b, "</%s></testcase>\n", element);
}

static void end_suite(struct suite *s, const char *name, FILE *out)
{
	if (s->tests > 0 && !s->cases.failed)
		fprintf(out,
			"  <testsuite name=\"fabricbench %s\" tests=\"%zu\" failures=\"%zu\" "
			"errors=\"%zu\" skipped=\"%zu\">\n%s  </testsuite>\n",
			name, s->tests, s->failures, s->errors, s->skipped, s->cases.s);
	fb_strbuf_free(&s->cases);
}

/* A failed check or a wrong byte rejects whoever asked; what could not be measured is an error only
 * where the plan required it. */
static const char *part_element(const json_t *p)
{
	const char *state = fb_json_str(p, "state", "");
	if (strcmp(state, "complete") == 0)
		return NULL;
	if (strcmp(state, "wrong data") == 0 ||
		(strcmp(state, "failed") == 0 && fb_json_int(p, "exit", 0) == FB_EXIT_FAILED))
		return "failure";
	const json_t *require = get(p, "require");
	return json_is_false(require) ? "skipped" : "error";
}

static void write_parts(const json_t *doc, FILE *out)
{
	struct suite s = {.tests = 0};
	const json_t *p;
	size_t i;
	json_array_foreach (get(get(doc, "plan"), "parts"), i, p) {
		char name[128];
		snprintf(name, sizeof(name), "launch %lld: %.80s",
			(long long)fb_json_int(p, "launch", 0), fb_json_str(p, "command", ""));
		add_case(&s, fb_json_str(p, "job", "?"), name, fb_json_num(p, "seconds", -1),
			part_element(p), fb_json_str(p, "state", "?"),
			fb_json_str(p, "reason", ""));
	}
	end_suite(&s, "parts", out);
}

static void write_results(const json_t *doc, FILE *out)
{
	struct suite s = {.tests = 0};
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		const json_t *v = get(r, "validity");
		bool bad = strcmp(fb_json_str(v, "state", "valid"), "invalid") == 0;
		const char *why = json_string_value(json_array_get(get(v, "reasons"), 0));
		char name[160];
		snprintf(name, sizeof(name), "%.60s %.40s launch %lld",
			fb_json_str(r, "metric", "?"), fb_json_str(r, "job", ""),
			(long long)fb_json_int(r, "launch", 0));
		add_case(&s, fb_json_str(r, "case", "?"), name, -1, bad ? "error" : NULL,
			"invalid result", why ? why : "no reason given");
	}
	end_suite(&s, "results", out);
}

static void write_errors(const json_t *doc, FILE *out)
{
	struct suite s = {.tests = 0};
	const json_t *x;
	size_t i;
	json_array_foreach (get(doc, "errors"), i, x)
		add_case(&s, fb_json_str(x, "job", "run"), fb_json_str(x, "point", "error"), -1,
			"error", fb_json_str(x, "message", "?"), fb_json_str(x, "remedy", ""));
	end_suite(&s, "errors", out);
}

void rep_junit(FILE *out, const json_t *doc)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	write_parts(doc, out);
	if (json_array_size(get(doc, "checks")) > 0)
		fb_check_junit_suite(doc, out);
	write_results(doc, out);
	write_errors(doc, out);
	fputs("</testsuites>\n", out);
}
