// SPDX-License-Identifier: Apache-2.0
/*
 * Text tables of a result document. Knows the document's keys and how people of the field write
 * each unit, and nothing of how a figure was measured.
 *
 * Results whose `case` differs in its last part only (the size, as a rule) form one table; their
 * metrics stand side by side in it. Decimal points of a column stand below each other.
 */
#include "bench/core/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"

#define MAX_COLS    24
#define MAX_METRICS 8
#define CELL        40

/* ---- a grid of cells ------------------------------------------------------------------------- */

struct col {
	char name[CELL], unit[16];
	bool left;       /* text; numbers stand to the right */
	int whole, frac; /* widest part before the decimal point, and from it on */
};
struct grid {
	struct col cols[MAX_COLS];
	unsigned ncols, nrows;
	char (*cells)[CELL]; /* nrows * ncols */
};

static unsigned add_col(struct grid *g, const char *name, const char *unit, bool left)
{
	if (g->ncols == MAX_COLS)
		return MAX_COLS - 1;
	struct col *c = &g->cols[g->ncols];
	memset(c, 0, sizeof(*c));
	snprintf(c->name, sizeof(c->name), "%.39s", name);
	snprintf(c->unit, sizeof(c->unit), "%.15s", unit);
	c->left = left;
	return g->ncols++;
}

static char *cell(struct grid *g, unsigned row, unsigned col)
{
	return g->cells[(size_t)row * g->ncols + col];
}

/* Only a plain number has a decimal point to stand under another. */
static size_t whole_part(const char *s)
{
	size_t n = strspn(s, "-0123456789");
	return s[n] == '.' && s[n + 1 + strspn(s + n + 1, "0123456789")] == '\0' ? n : strlen(s);
}

static void measure_cols(struct grid *g)
{
	for (unsigned c = 0; c < g->ncols; c++) {
		struct col *col = &g->cols[c];
		for (unsigned r = 0; r < g->nrows; r++) {
			const char *s = cell(g, r, c);
			int whole = (int)(col->left ? strlen(s) : whole_part(s));
			int frac = (int)strlen(s) - whole;
			col->whole = whole > col->whole ? whole : col->whole;
			col->frac = frac > col->frac ? frac : col->frac;
		}
		int need = (int)strlen(col->name);
		need = (int)strlen(col->unit) > need ? (int)strlen(col->unit) : need;
		if (need > col->whole + col->frac)
			col->whole = need - col->frac;
	}
}

/* One cell padded to its column, appended to the line. */
static void pad(struct fb_strbuf *b, const struct col *c, const char *s, int frac)
{
	int whole = c->whole + c->frac;
	if (c->left)
		fb_strbuf_printf(b, "  %-*s", whole, s);
	else
		fb_strbuf_printf(b, "  %*s%*s", whole - (c->frac - frac), s, c->frac - frac, "");
}

/* Without the blanks at its end. */
static void end_line(struct fb_strbuf *b, FILE *out)
{
	char *line = fb_strbuf_take(b);
	size_t n = line ? strlen(line) : 0;
	while (n > 0 && line[n - 1] == ' ')
		n--;
	fprintf(out, "%.*s\n", (int)n, line ? line : "");
	free(line);
}

static void print_grid(struct grid *g, FILE *out)
{
	static const char rule[CELL + 1] = "----------------------------------------";
	struct fb_strbuf b = {0};
	measure_cols(g);
	for (unsigned c = 0; c < g->ncols; c++)
		pad(&b, &g->cols[c], g->cols[c].name, g->cols[c].frac);
	end_line(&b, out);
	for (unsigned c = 0; c < g->ncols; c++)
		pad(&b, &g->cols[c], g->cols[c].unit, g->cols[c].frac);
	end_line(&b, out);
	for (unsigned c = 0; c < g->ncols; c++) {
		int width = g->cols[c].name[0] ? g->cols[c].whole + g->cols[c].frac : 0;
		fb_strbuf_printf(&b, "  %.*s", width, rule);
	}
	end_line(&b, out);
	for (unsigned r = 0; r < g->nrows; r++) {
		for (unsigned c = 0; c < g->ncols; c++) {
			const char *s = cell(g, r, c);
			/* "-" and whole numbers keep to the decimal point of their column. */
			pad(&b, &g->cols[c], s, (int)(strlen(s) - whole_part(s)));
		}
		end_line(&b, out);
	}
}

/* ---- figures as people write them ------------------------------------------------------------ */

static void put(char *s, double v)
{
	if (!isfinite(v))
		snprintf(s, CELL, "-");
	else if (v != 0 && fabs(v) < 0.1)
		snprintf(s, CELL, "%.5f", v);
	else if (fabs(v) < 1)
		snprintf(s, CELL, "%.3f", v);
	else if (fabs(v) < 100)
		snprintf(s, CELL, "%.2f", v);
	else if (fabs(v) < 1000)
		snprintf(s, CELL, "%.1f", v);
	else
		snprintf(s, CELL, "%.0f", v);
}

/* RDMA in Gb/s, collectives' bus and algorithm bandwidth in GB/s of 10^9, times in us. */
struct scale {
	const char *unit;
	double factor;
};

static struct scale scale_of(const json_t *result)
{
	const char *unit = fb_json_str(result, "unit", "");
	const char *metric = fb_json_str(result, "metric", "");
	struct scale s = {unit, 1};
	if (strcmp(unit, "ns") == 0)
		s = (struct scale){"us", 1e-3};
	else if (strcmp(unit, "bytes/s") == 0 &&
		 (strcmp(metric, "busbw") == 0 || strcmp(metric, "algbw") == 0))
		s = (struct scale){"GB/s", 1e-9};
	else if (strcmp(unit, "bytes/s") == 0)
		s = (struct scale){"Gb/s", 8e-9};
	else if (strcmp(unit, "1/s") == 0)
		s = (struct scale){"M/s", 1e-6};
	else if (strcmp(unit, "flop/s") == 0)
		s = (struct scale){"TFLOP/s", 1e-12};
	return s;
}

static double share_of_bound(const json_t *result)
{
	double bound = fb_json_num(json_object_get(result, "bound"), "value", 0);
	double value = fb_json_num(result, "value", NAN);
	return bound > 0 ? 100 * value / bound : NAN;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** The results of one table. */
struct group {
	struct row {
		const json_t *m[MAX_METRICS]; /* by metric; NULL where missing */
	} * rows;
	unsigned npoints, nmetrics;
	const json_t *metrics[MAX_METRICS]; /* an example of each */
	bool distribution; /* one metric of times: its percentiles are the columns */
};

static size_t prefix_len(const json_t *result)
{
	const char *name = fb_json_str(result, "case", "");
	const char *slash = strrchr(name, '/');
	return slash ? (size_t)(slash - name) : strlen(name);
}

static bool same_group(const json_t *a, const json_t *b)
{
	size_t n = prefix_len(a);
	return n == prefix_len(b) &&
	       strncmp(fb_json_str(a, "case", ""), fb_json_str(b, "case", ""), n) == 0 &&
	       strcmp(fb_json_str(a, "where", ""), fb_json_str(b, "where", "")) == 0 &&
	       strcmp(fb_json_str(a, "job", ""), fb_json_str(b, "job", "")) == 0 &&
	       fb_json_int(a, "launch", 0) == fb_json_int(b, "launch", 0);
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
	return strcmp(fb_json_str(a, key, ""), fb_json_str(b, key, "")) == 0;
}

/* A result takes its place: the row of its case, the column of its metric. */
static void take(struct group *g, const json_t *result)
{
	unsigned m = 0, p = 0;
	while (m < g->nmetrics && !same_text(g->metrics[m], result, "metric"))
		m++;
	if (m == MAX_METRICS)
		return;
	if (m == g->nmetrics)
		g->metrics[g->nmetrics++] = result;
	for (; p < g->npoints; p++) {
		const json_t *have = NULL;
		for (unsigned k = 0; k < MAX_METRICS && !have; k++)
			have = g->rows[p].m[k];
		if (same_text(have, result, "case") && !g->rows[p].m[m])
			break;
	}
	if (p == g->npoints)
		g->npoints++;
	g->rows[p].m[m] = result;
}

static const json_t *any_of(const struct group *g, unsigned point)
{
	for (unsigned m = 0; m < g->nmetrics; m++) {
		if (g->rows[point].m[m])
			return g->rows[point].m[m];
	}
	return NULL;
}

static void label(const json_t *result, char *s)
{
	const char *name = fb_json_str(result, "case", "");
	const char *slash = strrchr(name, '/');
	int64_t size = fb_json_int(json_object_get(result, "params"), "size", -1);
	if (size >= 0)
		fb_fmt_size((uint64_t)size, s, CELL);
	else
		snprintf(s, CELL, "%.39s", slash ? slash + 1 : name);
}

static const struct {
	const char *key, *name;
} percentiles[] = {{"min", "min"}, {"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"},
	{"p99_9", "p99.9"}, {"p99_99", "p99.99"}, {"max", "max"}};
#define NPERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static void fill_distribution(struct grid *g, const struct group *gr, unsigned first)
{
	for (unsigned p = 0; p < gr->npoints; p++) {
		const json_t *stats = json_object_get(any_of(gr, p), "stats");
		for (unsigned i = 0; i < NPERCENTILES; i++)
			put(cell(g, p, first + i),
				fb_json_num(stats, percentiles[i].key, NAN) * 1e-3);
	}
}

static bool has_bound(const struct group *gr, unsigned m)
{
	for (unsigned p = 0; p < gr->npoints; p++) {
		if (json_is_object(json_object_get(gr->rows[p].m[m], "bound")))
			return true;
	}
	return false;
}

static bool is_rate(const json_t *result)
{
	return strcmp(fb_json_str(result, "unit", ""), "ns") != 0;
}

/* A rate shows its interval, if any row has one; a time beside rates is only for orientation. */
static bool has_ci(const struct group *gr, unsigned m)
{
	for (unsigned p = 0; p < gr->npoints && is_rate(gr->metrics[m]); p++) {
		if (json_is_object(json_object_get(gr->rows[p].m[m], "ci")))
			return true;
	}
	return false;
}

/* Value, the ends of its interval for a rate, and its share of the bound where one is known. */
static void fill_metric(struct grid *g, const struct group *gr, unsigned m, unsigned first)
{
	struct scale s = scale_of(gr->metrics[m]);
	bool ci_cols = has_ci(gr, m), bound = has_bound(gr, m);
	for (unsigned p = 0; p < gr->npoints; p++) {
		const json_t *r = gr->rows[p].m[m];
		const json_t *ci = json_object_get(r, "ci");
		unsigned c = first;
		put(cell(g, p, c++), fb_json_num(r, "value", NAN) * s.factor);
		if (ci_cols) {
			put(cell(g, p, c++), fb_json_num(ci, "lo", NAN) * s.factor);
			put(cell(g, p, c++), fb_json_num(ci, "hi", NAN) * s.factor);
		}
		double share = share_of_bound(r);
		if (bound)
			snprintf(cell(g, p, c), CELL, isfinite(share) ? "%.1f" : "-", share);
	}
}

static void add_metric_cols(struct grid *g, const struct group *gr, unsigned m)
{
	struct scale s = scale_of(gr->metrics[m]);
	char unit[24];
	snprintf(unit, sizeof(unit), "[%s]", s.unit);
	add_col(g, fb_json_str(gr->metrics[m], "metric", ""), unit, false);
	if (has_ci(gr, m)) {
		add_col(g, "95% from", unit, false);
		add_col(g, "to", unit, false);
	}
	if (has_bound(gr, m))
		add_col(g, "of bound", "[%]", false);
}

/* Worst validity of a row. */
static const char *mark(const struct group *gr, unsigned p)
{
	const char *worst = "";
	for (unsigned m = 0; m < gr->nmetrics; m++) {
		const json_t *v = json_object_get(gr->rows[p].m[m], "validity");
		const char *state = fb_json_str(v, "state", "valid");
		if (strcmp(state, "invalid") == 0)
			return "INVALID";
		if (strcmp(state, "suspect") == 0)
			worst = "suspect";
	}
	return worst;
}

static bool marked(const struct group *gr)
{
	for (unsigned p = 0; p < gr->npoints; p++) {
		if (*mark(gr, p))
			return true;
	}
	return false;
}

static void fill_grid(struct grid *g, const struct group *gr)
{
	unsigned c = 2;
	for (unsigned p = 0; p < gr->npoints; p++) {
		const json_t *r = any_of(gr, p);
		label(r, cell(g, p, 0));
		snprintf(cell(g, p, 1), CELL, "%lld", (long long)fb_json_int(r, "n", 0));
		if (marked(gr))
			snprintf(cell(g, p, g->ncols - 1), CELL, "%s", mark(gr, p));
	}
	if (gr->distribution) {
		fill_distribution(g, gr, c);
		return;
	}
	for (unsigned m = 0; m < gr->nmetrics; m++) {
		fill_metric(g, gr, m, c);
		c += 1u + (has_ci(gr, m) ? 2u : 0u) + (has_bound(gr, m) ? 1u : 0u);
	}
}

static void print_heading(const struct group *gr, FILE *out)
{
	const json_t *r = any_of(gr, 0);
	fprintf(out, "\n%.*s", (int)prefix_len(r), fb_json_str(r, "case", ""));
	fprintf(out, "   measured on: %s", fb_json_str(r, "where", "?"));
	if (*fb_json_str(r, "job", ""))
		fprintf(out, "   job: %s, launch %lld", fb_json_str(r, "job", ""),
			(long long)fb_json_int(r, "launch", 0));
	fputc('\n', out);
	const char *what = fb_json_str(r, "definition", NULL);
	for (unsigned m = 0; m < gr->nmetrics; m++)
		fprintf(out, "%s%s", m ? ", " : "", fb_json_str(gr->metrics[m], "metric", ""));
	if (what)
		fprintf(out, ": %s", what);
	/* A tail of times is that of the load it was measured under: without a load, of the idle
	 * fabric. */
	bool closed = strcmp(fb_json_str(r, "load", "?"), "closed") == 0;
	fprintf(out, "; %s%s loop, sync %s\n\n", gr->distribution && closed ? "idle, " : "",
		fb_json_str(r, "load", "?"), fb_json_str(r, "sync", "?"));
}

/* What became of a limited rate: one of payload, whatever the figure itself counts. */
static void print_rate(const json_t *r, FILE *out)
{
	const json_t *rate = json_object_get(r, "rate");
	char name[CELL], wanted[CELL], got[CELL];
	if (!rate)
		return;
	label(r, name);
	put(wanted, fb_json_num(rate, "requested", NAN) * 8e-9);
	put(got, fb_json_num(rate, "achieved", NAN) * 8e-9);
	fprintf(out, "  %s, %s: achieved %s of requested %s Gb/s, %.1f %%\n", name,
		fb_json_str(r, "metric", ""), got, wanted, 100 * fb_json_num(rate, "share", NAN));
}

/* The worst stretch of a series, so that a link that comes and goes is not averaged away. */
static void print_window(const json_t *r, FILE *out)
{
	const json_t *worst = json_object_get(r, "worst_window");
	struct scale s = scale_of(r);
	char name[CELL], value[CELL], width[CELL];
	double v = fb_json_num(worst, "value", NAN);
	if (!isfinite(v))
		return;
	label(r, name);
	put(value, v * s.factor);
	fb_fmt_duration(fb_json_num(worst, "window_ns", NAN), width, sizeof(width));
	fprintf(out, "  %s, %s: worst %s: %s %s, %.0f %% of the whole\n", name,
		fb_json_str(r, "metric", ""), width, value, s.unit,
		100 * v / fb_json_num(r, "value", NAN));
}

/* Why a figure is not to be trusted, and what the share of the bound relates to. */
static void print_notes(const struct group *gr, FILE *out)
{
	char name[CELL];
	for (unsigned m = 0; m < gr->nmetrics; m++) {
		const json_t *last = NULL;
		for (unsigned p = 0; p < gr->npoints; p++) {
			const json_t *r = gr->rows[p].m[m];
			const json_t *v = json_object_get(r, "validity");
			const json_t *reasons = json_object_get(v, "reasons");
			if (!r)
				continue;
			if (json_is_object(json_object_get(r, "bound")))
				last = r;
			label(r, name);
			for (size_t i = 0; i < json_array_size(reasons); i++)
				fprintf(out, "  %s, %s: %s: %s\n", name,
					fb_json_str(r, "metric", ""), fb_json_str(v, "state", "?"),
					json_string_value(json_array_get(reasons, i)));
			print_rate(r, out);
			print_window(r, out);
			if (fb_json_str(r, "value_reason", NULL))
				fprintf(out, "  %s, %s: no value: %s\n", name,
					fb_json_str(r, "metric", ""),
					fb_json_str(r, "value_reason", ""));
		}
		if (last) {
			struct scale s = scale_of(last);
			const json_t *b = json_object_get(last, "bound");
			char value[CELL];
			put(value, fb_json_num(b, "value", NAN) * s.factor);
			label(last, name);
			fprintf(out, "  bound of %s at %s: %s %s, %s\n",
				fb_json_str(last, "metric", ""), name, value, s.unit,
				fb_json_str(b, "why", ""));
		}
	}
}

static void print_group(struct group *gr, FILE *out)
{
	struct grid g = {.nrows = gr->npoints};
	bool sized = fb_json_int(json_object_get(any_of(gr, 0), "params"), "size", -1) >= 0;
	gr->distribution = gr->nmetrics == 1 && !is_rate(gr->metrics[0]);
	add_col(&g, sized ? "size" : "case", "", !sized);
	add_col(&g, "n", "", false);
	for (unsigned i = 0; gr->distribution && i < NPERCENTILES; i++)
		add_col(&g, percentiles[i].name, "[us]", false);
	for (unsigned m = 0; !gr->distribution && m < gr->nmetrics; m++)
		add_metric_cols(&g, gr, m);
	if (marked(gr))
		add_col(&g, "", "", true);
	g.cells = calloc((size_t)g.nrows * g.ncols, sizeof(*g.cells));
	if (!g.cells)
		return;
	fill_grid(&g, gr);
	print_heading(gr, out);
	print_grid(&g, out);
	print_notes(gr, out);
	free(g.cells);
}

/* ---- the rest of the document ---------------------------------------------------------------- */

static void print_results(const json_t *results, FILE *out)
{
	size_t n = json_array_size(results);
	bool *done = calloc(n + 1, sizeof(*done));
	struct group g;
	struct row *rows = calloc(n + 1, sizeof(*rows));
	for (size_t i = 0; done && rows && i < n; i++) {
		if (done[i])
			continue;
		memset(rows, 0, n * sizeof(*rows));
		memset(&g, 0, sizeof(g));
		g.rows = rows;
		for (size_t k = i; k < n; k++) {
			const json_t *r = json_array_get(results, k);
			if (done[k] || !same_group(json_array_get(results, i), r))
				continue;
			take(&g, r);
			done[k] = true;
		}
		print_group(&g, out);
	}
	free(rows);
	free(done);
}

/* Any JSON value in a few characters. */
static void brief(const json_t *j, char *s, size_t len)
{
	if (json_is_string(j)) {
		snprintf(s, len, "%.*s", (int)len - 1, json_string_value(j));
		return;
	}
	char *text =
		j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
	snprintf(s, len, "%.*s", (int)len - 1, text ? text : "-");
	free(text);
}

static void print_checks(const json_t *checks, FILE *out)
{
	size_t n = json_array_size(checks);
	if (n == 0)
		return;
	fputs("\nChecks\n", out);
	for (size_t i = 0; i < n; i++) {
		const json_t *c = json_array_get(checks, i);
		const char *state = fb_json_str(c, "state", "?");
		char observed[80], expected[80];
		brief(json_object_get(c, "observed"), observed, sizeof(observed));
		fprintf(out, "  %-5s  %s", state, fb_json_str(c, "id", "?"));
		if (fb_json_str(c, "case", NULL))
			fprintf(out, " at %s", fb_json_str(c, "case", ""));
		if (fb_json_str(c, "subject", NULL))
			fprintf(out, " %s at %s", fb_json_str(c, "title", ""),
				fb_json_str(c, "subject", ""));
		if (!json_is_null(json_object_get(c, "observed")))
			fprintf(out, ": %s", observed);
		if (json_is_object(json_object_get(c, "expected"))) {
			brief(json_object_get(json_object_get(c, "expected"), "value"), expected,
				sizeof(expected));
			fprintf(out, ", expected %s", expected);
		}
		fputc('\n', out);
		if (fb_json_str(c, "reason", NULL))
			fprintf(out, "         %s\n", fb_json_str(c, "reason", ""));
		if ((strcmp(state, "fail") == 0 || strcmp(state, "warn") == 0) &&
			*fb_json_str(c, "remedy", ""))
			fprintf(out, "         remedy: %s\n", fb_json_str(c, "remedy", ""));
	}
}

/* Errors are not repeated here: the command has told each on stderr, with its remedy, and the
 * document holds them. */
static void print_warnings(const json_t *doc, FILE *out)
{
	const json_t *warnings = json_object_get(doc, "warnings");
	if (json_array_size(warnings) > 0)
		fputs("\nWarnings\n", out);
	for (size_t i = 0; i < json_array_size(warnings); i++)
		fprintf(out, "  %s\n", json_string_value(json_array_get(warnings, i)));
}

void fb_table_print(const json_t *doc, FILE *out)
{
	const json_t *run = json_object_get(doc, "run");
	const json_t *results = json_object_get(doc, "results");
	print_results(results, out);
	print_checks(json_object_get(doc, "checks"), out);
	print_warnings(doc, out);
	/* Of a run that never began the error tells all there is. */
	if (json_array_size(results) + json_array_size(json_object_get(doc, "checks")) > 0 &&
		strcmp(fb_json_str(run, "outcome", "complete"), "complete") != 0)
		fprintf(out, "\nThe run is not complete (%s): %zu results are kept.\n",
			fb_json_str(run, "outcome", "?"), json_array_size(results));
}
