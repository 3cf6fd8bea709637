// SPDX-License-Identifier: Apache-2.0
/* See compare_expected.h. */
#include "reports/compare_expected.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"
#include "reports/compare_priv.h"
#include "embed.h"

#define MAX_BYTES (1 << 20)
#define MAX_ROWS  4096
#define COLUMNS   10
/* Over this share of a physical bound a figure is wrong, not great. */
#define OVER_BOUND 1.01

static const struct {
	const char *name;
	double scale; /* to the document's unit */
	const char *of;
} units[] = {
	{"GB/s", 1e9, "bytes/s"},
	{"Gb/s", 1e9 / 8, "bytes/s"},
	{"us", 1e3, "ns"},
	{"ns", 1, "ns"},
	{"1/s", 1, "1/s"},
	{"share", 1, "share"},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

static const char *const state_names[] = {
	"PASS", "BELOW", "ABOVE", "NOT MEASURED", "NOT COMPARABLE", "INVALID"};

/* ---- the file -------------------------------------------------------------------------------- */

struct reader {
	const char *name;
	unsigned line;
	struct fb_err *e;
};

static int bad(const struct reader *r, const char *what, const char *text)
{
	fb_fail_usage(r->e, "%s:%u: %s: \"%.80s\"", r->name, r->line, what, text);
	fb_hint(r->e,
		"a row is kind,case,metric,size,nodes,lower,value,upper,unit,source; unit is GB/s, "
		"Gb/s, us, ns, 1/s or share");
	return -EINVAL;
}

/* The fields of a line, NUL-terminated in place; the last takes the rest. */
static bool split(char *line, char *field[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		field[i] = line;
		if (i == COLUMNS - 1)
			return *line != '\0';
		line += strcspn(line, ",");
		if (*line == '\0')
			return false;
		*line++ = '\0';
	}
	return true;
}

static int text(const struct reader *r, const char *from, char *to, size_t size)
{
	if (!*from || strlen(from) >= size)
		return bad(r, *from ? "too long" : "a field is empty", from);
	memcpy(to, from, strlen(from) + 1);
	return 0;
}

static int number(const struct reader *r, const char *from, double *v)
{
	char *end;
	*v = NAN;
	if (!*from)
		return 0;
	*v = strtod(from, &end);
	return *end == '\0' && isfinite(*v) && *v > 0 ? 0 : bad(r, "not a number above 0", from);
}

static int unit_of(const char *name)
{
	for (size_t i = 0; i < N_UNITS; i++)
		if (strcmp(units[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int parse_row(const struct reader *r, char *line, struct expected_row *row)
{
	char *f[COLUMNS];
	struct fb_err e = {0};
	uint64_t nodes;
	row->line = r->line;
	if (!split(line, f))
		return bad(r, "fewer than 10 columns", line);
	int rc = text(r, f[0], row->kind, sizeof(row->kind));
	if (rc == 0)
		rc = text(r, f[1], row->cases, sizeof(row->cases));
	if (rc == 0)
		rc = text(r, f[2], row->metric, sizeof(row->metric));
	if (rc == 0 && fb_parse_size(f[3], &row->size, &e) != 0)
		rc = bad(r, "not a message size", f[3]);
	if (rc == 0 && fb_parse_u64(f[4], 0, 1000000, &nodes, &e) != 0)
		rc = bad(r, "not a number of nodes", f[4]);
	if (rc == 0)
		rc = number(r, f[5], &row->lower);
	if (rc == 0)
		rc = number(r, f[6], &row->value);
	if (rc == 0)
		rc = number(r, f[7], &row->upper);
	if (rc == 0 && unit_of(f[8]) < 0)
		rc = bad(r, "no such unit", f[8]);
	if (rc == 0)
		rc = text(r, f[8], row->unit, sizeof(row->unit));
	if (rc == 0)
		rc = text(r, f[9], row->source, sizeof(row->source));
	if (rc == 0)
		row->nodes = (unsigned)nodes;
	if (rc == 0 && isnan(row->lower) && isnan(row->upper))
		rc = bad(r, "neither lower nor upper", f[0]);
	if (rc == 0 && row->lower > row->upper)
		rc = bad(r, "lower is above upper", f[0]);
	return rc;
}

static int parse(char *s, const char *name, struct expected *x, struct fb_err *e)
{
	struct reader r = {.name = name, .e = e};
	while (*s) {
		char *line = s;
		s += strcspn(s, "\n");
		if (*s)
			*s++ = '\0';
		r.line++;
		line[strcspn(line, "\r")] = '\0';
		if (r.line == 1 && strcmp(line, "# fabricbench-expected/1") != 0)
			return bad(&r, "the first line is not \"# fabricbench-expected/1\"", line);
		if (!*line || *line == '#')
			continue;
		if (x->n == MAX_ROWS)
			return bad(&r, "too many rows", line);
		struct expected_row *v = realloc(x->row, (x->n + 1) * sizeof(*v));
		if (!v)
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
		x->row = v;
		memset(&v[x->n], 0, sizeof(*v));
		int rc = parse_row(&r, line, &v[x->n]);
		if (rc != 0)
			return rc;
		x->n++;
	}
	return 0;
}

int expected_parse(char *text, const char *name, struct expected *x, struct fb_err *e)
{
	memset(x, 0, sizeof(*x));
	int rc = parse(text, name, x, e);
	if (rc != 0)
		expected_free(x);
	return rc;
}

int expected_load(const char *path, struct expected *x, struct fb_err *e)
{
	char *s = NULL;
	size_t len = 0;
	int rc = 0;
	memset(x, 0, sizeof(*x));
	if (path)
		rc = fb_read_file(path, MAX_BYTES, &s, &len, e);
	else if (!(s = strdup((const char *)fb_embed_reports_expected_csv)))
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	if (rc == 0 && s)
		rc = expected_parse(s, path ? path : "expected.csv", x, e);
	free(s);
	return rc;
}

void expected_free(struct expected *x)
{
	free(x->row);
	free(x->finding);
	memset(x, 0, sizeof(*x));
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool fits(const struct expected_row *row, const json_t *r)
{
	const json_t *params = json_object_get(r, "params");
	return fnmatch(row->cases, fb_json_str(r, "case", ""), 0) == 0 &&
	       strcmp(row->metric, fb_json_str(r, "metric", "")) == 0 &&
	       strcmp(units[unit_of(row->unit)].of, fb_json_str(r, "unit", "")) == 0 &&
	       (uint64_t)fb_json_int(params, "size", 0) >= row->size;
}

/* The result that the row speaks of: of those that fit, the one with the largest message for rates,
 * with the smallest for times. */
static const json_t *result_for(const struct expected_row *row, const json_t *doc)
{
	const json_t *r, *found = NULL;
	bool time = strcmp(units[unit_of(row->unit)].of, "ns") == 0;
	int64_t best = 0;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		int64_t size = fb_json_int(json_object_get(r, "params"), "size", 0);
		if (!fits(row, r) || (found && (time ? size >= best : size <= best)))
			continue;
		found = r;
		best = size;
	}
	return found;
}

static bool same_case(const json_t *a, const json_t *b)
{
	return strcmp(fb_json_str(a, "case", ""), fb_json_str(b, "case", "")) == 0 &&
	       strcmp(fb_json_str(a, "metric", ""), fb_json_str(b, "metric", "")) == 0;
}

/* Why a launch of that case is invalid; NULL: none is. */
static const char *invalid_launch(const json_t *like, const json_t *doc)
{
	const json_t *r;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		const json_t *v = json_object_get(r, "validity");
		const char *why =
			json_string_value(json_array_get(json_object_get(v, "reasons"), 0));
		if (same_case(r, like) && strcmp(fb_json_str(v, "state", ""), "invalid") == 0)
			return why ? why : "no reason given";
	}
	return NULL;
}

/* Median over the launches of one case. */
static double median_of_launches(const json_t *like, const json_t *doc)
{
	const json_t *r, *all = json_object_get(doc, "results");
	double *v = calloc(json_array_size(all) + 1, sizeof(*v)), m = NAN;
	size_t i, n = 0;
	json_array_foreach (all, i, r) {
		double x = fb_json_num(r, "value", NAN);
		if (v && isfinite(x) && same_case(r, like))
			v[n++] = x;
	}
	if (v && n > 0) {
		fb_sort(v, n);
		m = fb_median_sorted(v, n);
	}
	free(v);
	return m;
}

static void judge_value(struct expected_finding *f)
{
	const struct expected_row *row = f->row;
	bool time = strcmp(units[unit_of(row->unit)].of, "ns") == 0;
	bool low = f->seen<row->lower, high = f->seen> row->upper;
	if (isfinite(f->bound) && !time && f->seen > OVER_BOUND * f->bound) {
		f->state = EXPECTED_ABOVE;
		snprintf(f->why, sizeof(f->why), "over 101 %% of its physical bound of %.4g %s",
			f->bound, row->unit);
	} else if (time ? high : low) {
		f->state = EXPECTED_BELOW;
		snprintf(f->why, sizeof(f->why), "%.1f %% %s what is expected",
			100 * fabs(f->seen / (time ? row->upper : row->lower) - 1),
			time ? "over" : "below");
	} else if (time ? low : high) {
		f->state = EXPECTED_ABOVE;
		snprintf(f->why, sizeof(f->why), "better than such machines are: is it another?");
	}
}

static void judge_row(struct expected_finding *f, const json_t *doc)
{
	const struct expected_row *row = f->row;
	double scale = units[unit_of(row->unit)].scale;
	size_t hosts = json_array_size(json_object_get(json_object_get(doc, "system"), "hosts"));
	const json_t *r = result_for(row, doc);
	f->seen = f->bound = NAN;
	f->state = EXPECTED_PASS;
	if (!r) {
		f->state = EXPECTED_UNMEASURED;
		snprintf(f->why, sizeof(f->why), "the run has no such result");
		return;
	}
	snprintf(f->name, sizeof(f->name), "%.150s", fb_json_str(r, "case", ""));
	f->seen = median_of_launches(r, doc) / scale;
	f->bound = fb_json_num(json_object_get(r, "bound"), "value", NAN) / scale;
	if (invalid_launch(r, doc)) {
		f->state = EXPECTED_INVALID;
		snprintf(f->why, sizeof(f->why), "a launch was marked invalid: %.100s",
			invalid_launch(r, doc));
	} else if (strcmp(fb_json_str(r, "where", "?"), "hardware") != 0) {
		f->state = EXPECTED_ELSEWHERE;
		snprintf(f->why, sizeof(f->why), "measured on %.40s, not on the hardware",
			fb_json_str(r, "where", "?"));
	} else if (row->nodes && hosts != row->nodes) {
		f->state = EXPECTED_ELSEWHERE;
		snprintf(f->why, sizeof(f->why), "measured on %zu nodes", hosts);
	} else if (!isfinite(f->seen)) {
		f->state = EXPECTED_UNMEASURED;
		snprintf(f->why, sizeof(f->why), "the result has no value");
	} else {
		judge_value(f);
	}
}

static int unknown_kind(const struct expected *x, const char *kind, struct fb_err *e)
{
	char all[400] = "";
	for (size_t i = 0; i < x->n; i++) {
		bool seen = false;
		for (size_t k = 0; k < i; k++)
			seen = seen || strcmp(x->row[k].kind, x->row[i].kind) == 0;
		if (!seen)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
				*all ? ", " : "", x->row[i].kind);
	}
	fb_fail(e, FB_EXIT_USAGE, ENOENT, "nothing is expected of a machine \"%.60s\"", kind);
	fb_hint(e, "kinds: %s; --expected-file takes a file of your own", all);
	return -ENOENT;
}

int expected_judge(struct expected *x, const char *kind, const json_t *doc, struct fb_err *e)
{
	x->wrong_data = cmp_wrong_data(doc);
	x->finding = calloc(x->n + 1, sizeof(*x->finding));
	if (!x->finding)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	for (size_t i = 0; i < x->n; i++) {
		if (strcmp(x->row[i].kind, kind) != 0)
			continue;
		x->finding[x->n_findings].row = &x->row[i];
		judge_row(&x->finding[x->n_findings++], doc);
	}
	return x->n_findings ? 0 : unknown_kind(x, kind, e);
}

int expected_status(const struct expected *x)
{
	bool failed = false, open = false;
	for (size_t i = 0; i < x->n_findings; i++) {
		failed = failed || x->finding[i].state == EXPECTED_BELOW;
		open = open || x->finding[i].state != EXPECTED_PASS;
	}
	return x->wrong_data ? FB_EXIT_WRONG_DATA
	       : failed      ? FB_EXIT_FAILED
	       : open        ? FB_EXIT_UNMEASURED
			     : FB_EXIT_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *state_word(const struct expected *x)
{
	int status = expected_status(x);
	return status == FB_EXIT_OK           ? "ACCEPTED"
	       : status == FB_EXIT_UNMEASURED ? "INCOMPLETE"
					      : "REJECTED";
}

static void limit(double v, FILE *out)
{
	if (isfinite(v))
		fprintf(out, " %9.4g", v);
	else
		fprintf(out, " %9s", "-");
}

void expected_print(const struct expected *x, FILE *out)
{
	fprintf(out, "%-44s %9s %9s %9s %9s %-6s %s\n", "case, metric", "seen", "lower", "upper",
		"bound", "unit", "verdict");
	for (size_t i = 0; i < x->n_findings; i++) {
		const struct expected_finding *f = &x->finding[i];
		char name[240], safe[640];
		snprintf(name, sizeof(name), "%s %s", f->name[0] ? f->name : f->row->cases,
			f->row->metric);
		fprintf(out, "%-44s", fb_safe_text(name, safe, sizeof(safe)));
		limit(f->seen, out);
		limit(f->row->lower, out);
		limit(f->row->upper, out);
		limit(f->bound, out);
		fprintf(out, " %-6s %s%s%s\n    by %s\n", f->row->unit, state_names[f->state],
			f->why[0] ? ": " : "", fb_safe_text(f->why, safe, sizeof(safe)),
			f->row->source);
	}
	fprintf(out, "\n%s: %zu expectations%s\n", state_word(x), x->n_findings,
		x->wrong_data ? "; the run records wrong data" : "");
}

json_t *expected_json(const struct expected *x, const char *kind)
{
	json_t *o = json_object(), *rows = json_array();
	fb_json_set_str(o, "schema", "fabricbench-expected/1");
	fb_json_set_str(o, "kind", kind);
	fb_json_set_str(o, "state", state_word(x));
	fb_json_set_int(o, "exit", expected_status(x));
	for (size_t i = 0; i < x->n_findings; i++) {
		const struct expected_finding *f = &x->finding[i];
		json_t *r = json_object();
		fb_json_set_str(r, "case", f->name[0] ? f->name : f->row->cases);
		fb_json_set_str(r, "metric", f->row->metric);
		fb_json_set_str(r, "unit", f->row->unit);
		fb_json_set_str(r, "verdict", state_names[f->state]);
		fb_json_set_str(r, "why", f->why[0] ? f->why : NULL);
		json_object_set_new(r, "seen", fb_json_real(f->seen));
		json_object_set_new(r, "lower", fb_json_real(f->row->lower));
		json_object_set_new(r, "value", fb_json_real(f->row->value));
		json_object_set_new(r, "upper", fb_json_real(f->row->upper));
		json_object_set_new(r, "bound", fb_json_real(f->bound));
		fb_json_set_int(r, "min_size", (int64_t)f->row->size);
		fb_json_set_int(r, "nodes", f->row->nodes);
		fb_json_set_str(r, "source", f->row->source);
		json_array_append_new(rows, r);
	}
	json_object_set_new(o, "rows", rows);
	return o;
}
