// SPDX-License-Identifier: Apache-2.0
/*
 * Findings into checks of a document, checks into a verdict, and the three ways of printing them.
 * Nothing here knows what any check looks at.
 */
#include "bench/core/check.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"

const char *const fb_check_state_names[] = {"pass", "warn", "fail", "info", "skip", "error", NULL};

static bool unjudged(enum fb_check_state s)
{
	return s == FB_CHECK_SKIP || s == FB_CHECK_ERROR;
}

void fb_find(struct fb_finding *f, enum fb_check_state s, const char *fmt, ...)
{
	va_list ap;
	bool why = unjudged(s);
	f->state = s;
	va_start(ap, fmt);
	vsnprintf(why ? f->reason : f->observed, why ? sizeof(f->reason) : sizeof(f->observed), fmt,
		ap);
	va_end(ap);
}

void fb_find_expected(struct fb_finding *f, const char *source, const char *fmt, ...)
{
	va_list ap;
	snprintf(f->expected_source, sizeof(f->expected_source), "%s", source);
	va_start(ap, fmt);
	vsnprintf(f->expected, sizeof(f->expected), fmt, ap);
	va_end(ap);
}

void fb_find_read(struct fb_finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->read, sizeof(f->read), fmt, ap);
	va_end(ap);
}

void fb_find_remedy(struct fb_finding *f, const char *side_effect, const char *fmt, ...)
{
	va_list ap;
	snprintf(f->side_effect, sizeof(f->side_effect), "%s", side_effect ? side_effect : "");
	va_start(ap, fmt);
	vsnprintf(f->remedy, sizeof(f->remedy), fmt, ap);
	va_end(ap);
}

/* A key that the schema requires: null where there is nothing to say. */
static void set_or_null(json_t *j, const char *key, const char *text)
{
	if (text && *text)
		fb_json_set_str(j, key, text);
	else
		json_object_set_new(j, key, json_null());
}

json_t *fb_finding_json(const struct fb_check_def *d, const struct fb_finding *f)
{
	json_t *j = json_object();
	bool mend = f->state == FB_CHECK_WARN || f->state == FB_CHECK_FAIL;
	fb_json_set_str(j, "id", d->id);
	fb_json_set_str(j, "title", d->title);
	if (f->subject[0])
		fb_json_set_str(j, "subject", f->subject);
	fb_json_set_str(j, "state", fb_check_state_names[f->state]);
	set_or_null(j, "observed", f->observed);
	if (f->expected[0]) {
		json_t *e = json_object();
		fb_json_set_str(e, "value", f->expected);
		fb_json_set_str(
			e, "source", f->expected_source[0] ? f->expected_source : d->source);
		json_object_set_new(j, "expected", e);
	} else {
		json_object_set_new(j, "expected", json_null());
	}
	fb_json_set_str(j, "read", f->read[0] ? f->read : d->needs);
	const char *remedy = f->remedy[0] ? f->remedy : d->remedy;
	const char *effect = f->remedy[0] ? f->side_effect : d->side_effect;
	set_or_null(j, "remedy", mend ? remedy : NULL);
	set_or_null(j, "side_effect", mend ? effect : NULL);
	fb_json_set_str(j, "evidence", d->evidence);
	if (unjudged(f->state))
		fb_json_set_str(j, "reason", f->reason[0] ? f->reason : "it could not look");
	return j;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static int state_index(const json_t *check)
{
	const char *s = fb_json_str(check, "state", "");
	for (int i = 0; i < FB_CHECK_STATES; i++)
		if (strcmp(s, fb_check_state_names[i]) == 0)
			return i;
	return FB_CHECK_ERROR;
}

static void reason(json_t *reasons, const json_t *check, const char *what)
{
	struct fb_strbuf b = {0};
	const char *subject = fb_json_str(check, "subject", NULL);
	fb_strbuf_printf(&b, "%s%s%s: %s", fb_json_str(check, "id", "?"), subject ? " at " : "",
		subject ? subject : "", what);
	if (b.s)
		json_array_append_new(reasons, json_string(b.s));
	fb_strbuf_free(&b);
}

/* Is a required check there, and does every row of it tell something? */
static bool requirement_met(const json_t *checks, const char *id, json_t *reasons)
{
	size_t i, found = 0;
	bool met = true;
	const json_t *c;
	json_array_foreach (checks, i, c) {
		if (strcmp(fb_json_str(c, "id", ""), id) != 0)
			continue;
		found++;
		if (unjudged((enum fb_check_state)state_index(c))) {
			met = false;
			reason(reasons, c, fb_json_str(c, "reason", "not judged"));
		}
	}
	if (found == 0) {
		struct fb_strbuf b = {0};
		fb_strbuf_printf(&b, "%s is required and was not run", id);
		if (b.s)
			json_array_append_new(reasons, json_string(b.s));
		fb_strbuf_free(&b);
	}
	return met && found > 0;
}

int fb_check_judge(struct fb_doc *doc, const struct fb_check_judge *j)
{
	static const struct fb_check_judge none;
	j = j ? j : &none;
	const json_t *checks = json_object_get(fb_doc_json(doc), "checks"), *c;
	json_t *v = json_object(), *reasons = json_array(), *accounted = json_object();
	size_t n[FB_CHECK_STATES] = {0}, i;
	bool rejected = false, complete = true;
	json_array_foreach (checks, i, c) {
		int s = state_index(c);
		n[s]++;
		bool bad = s == FB_CHECK_FAIL || (s == FB_CHECK_WARN && j->strict);
		rejected = rejected || bad;
		if (bad)
			reason(reasons, c,
				s == FB_CHECK_FAIL ? "fail" : "a warning, under --strict");
	}
	for (i = 0; i < j->n_require; i++)
		complete = requirement_met(checks, j->require[i], reasons) && complete;
	size_t judged = n[FB_CHECK_PASS] + n[FB_CHECK_WARN] + n[FB_CHECK_FAIL] + n[FB_CHECK_INFO];
	if (judged == 0)
		json_array_append_new(reasons, json_string("nothing could be judged here"));
	complete = complete && judged > 0;
	fb_json_set_str(v, "state", rejected ? "REJECTED" : complete ? "ACCEPTED" : "INCOMPLETE");
	json_object_set_new(v, "reasons", reasons);
	for (i = 0; i < FB_CHECK_STATES; i++)
		fb_json_set_int(accounted, fb_check_state_names[i], (int64_t)n[i]);
	json_object_set_new(v, "accounted", accounted);
	json_object_set_new(fb_doc_json(doc), "verdict", v);
	if (rejected)
		return FB_EXIT_FAILED;
	if (complete)
		return FB_EXIT_OK;
	return judged == 0 && j->n_require == 0 && n[FB_CHECK_ERROR] == 0 ? FB_EXIT_SKIP
									  : FB_EXIT_UNMEASURED;
}

/* ---- what checks there are ------------------------------------------------------------------- */

void fb_check_list(const struct fb_check_def *const *tables, size_t n, FILE *out)
{
	for (size_t t = 0; t < n; t++)
		for (const struct fb_check_def *d = tables[t]; d->id; d++)
			fprintf(out, "%-22s %-11s %s (%s)\n", d->id, d->evidence, d->title,
				d->needs);
}

static void explain(const struct fb_check_def *d, FILE *out)
{
	fprintf(out, "%s  %s\n", d->id, d->title);
	fprintf(out, "  reads        %s\n", d->needs);
	fprintf(out, "  rule         %s\n", d->rule);
	fprintf(out, "  remedy       %s\n", d->remedy ? d->remedy : "none: it only tells");
	fprintf(out, "  side effect  %s\n", d->side_effect ? d->side_effect : "none");
	fprintf(out, "  source       %s\n", d->source);
	fprintf(out, "  proven on    %s\n", d->evidence);
}

int fb_check_explain(const struct fb_check_def *const *tables, size_t n, const char *id, FILE *out,
	struct fb_err *e)
{
	const char *nearest = NULL;
	unsigned least = ~0u;
	for (size_t t = 0; t < n; t++)
		for (const struct fb_check_def *d = tables[t]; d->id; d++) {
			unsigned distance = fb_edit_distance(d->id, id);
			if (distance == 0) {
				explain(d, out);
				return 0;
			}
			if (distance < least) {
				least = distance;
				nearest = d->id;
			}
		}
	fb_fail_usage(e, "there is no check \"%s\"", id);
	fb_hint(e, "did you mean %s? --list prints them all", nearest ? nearest : "another");
	return -EINVAL;
}

/* ---- for machines and pull requests ---------------------------------------------------------- */

static void xml(FILE *out, const char *text)
{
	struct fb_strbuf b = {0};
	fb_strbuf_add_xml(&b, text);
	fputs(b.s ? b.s : "", out);
	fb_strbuf_free(&b);
}

static const char *expected_of(const json_t *c)
{
	return fb_json_str(json_object_get(c, "expected"), "value", "");
}

static void junit_case(const json_t *c, FILE *out)
{
	const char *state = fb_json_str(c, "state", "error");
	fputs("    <testcase classname=\"", out);
	xml(out, fb_json_str(c, "subject", "node"));
	fputs("\" name=\"", out);
	xml(out, fb_json_str(c, "id", "?"));
	fputs(" ", out);
	xml(out, fb_json_str(c, "title", ""));
	fputs("\"", out);
	bool fail = strcmp(state, "fail") == 0, error = strcmp(state, "error") == 0;
	bool skip = strcmp(state, "skip") == 0;
	if (!fail && !error && !skip) {
		fputs("><system-out>", out);
		xml(out, state);
		fputs(": ", out);
		xml(out, fb_json_str(c, "observed", ""));
		fputs("</system-out></testcase>\n", out);
		return;
	}
	fprintf(out, "><%s message=\"", fail ? "failure" : error ? "error" : "skipped");
	xml(out, fail ? fb_json_str(c, "observed", "") : fb_json_str(c, "reason", ""));
	if (fail) {
		fputs("\">expected ", out);
		xml(out, expected_of(c));
		fputs("; remedy: ", out);
		xml(out, fb_json_str(c, "remedy", "none"));
		fputs("</failure></testcase>\n", out);
	} else {
		fputs("\"/></testcase>\n", out);
	}
}

void fb_check_junit_suite(const json_t *doc, FILE *out)
{
	const json_t *checks = json_object_get(doc, "checks"), *c;
	size_t n[FB_CHECK_STATES] = {0}, i;
	json_array_foreach (checks, i, c)
		n[state_index(c)]++;
	fprintf(out,
		"  <testsuite name=\"fabricbench check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\">\n",
		json_array_size(checks), n[FB_CHECK_FAIL], n[FB_CHECK_ERROR], n[FB_CHECK_SKIP]);
	json_array_foreach (checks, i, c)
		junit_case(c, out);
	fputs("  </testsuite>\n", out);
}

void fb_check_junit(const json_t *doc, FILE *out)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	fb_check_junit_suite(doc, out);
	fputs("</testsuites>\n", out);
}

void fb_check_markdown(const json_t *doc, FILE *out)
{
	const json_t *verdict = json_object_get(doc, "verdict"), *c;
	size_t i;
	fprintf(out,
		"**%s**\n\n| state | check | at | observed | expected | remedy |\n"
		"|---|---|---|---|---|---|\n",
		fb_json_str(verdict, "state", "not judged"));
	json_array_foreach (json_object_get(doc, "checks"), i, c) {
		const char *texts[] = {fb_json_str(c, "state", ""), NULL,
			fb_json_str(c, "subject", ""),
			fb_json_str(c, "observed", fb_json_str(c, "reason", "")), expected_of(c),
			fb_json_str(c, "remedy", "")};
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			fputs("| ", out);
			if (texts[k]) {
				fb_markdown_cell(out, texts[k]);
			} else {
				fb_markdown_cell(out, fb_json_str(c, "id", ""));
				fputc(' ', out);
				fb_markdown_cell(out, fb_json_str(c, "title", ""));
			}
			fputc(' ', out);
		}
		fputs("|\n", out);
	}
}
