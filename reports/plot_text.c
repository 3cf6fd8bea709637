// SPDX-License-Identifier: Apache-2.0
/*
 * A figure as data (tab-separated, one gnuplot index per series) and as a script that draws it. The
 * script stands alone: `gnuplot ID.gp` beside ID.dat redraws ID.svg, and may be restyled.
 *
 * Titles and labels come from documents that others wrote. Inside single quotes gnuplot runs no
 * back-ticks and knows no escapes; that is the only place where such text stands. The terminal is
 * noenhanced, so that node_01 keeps its underscore.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/units.h"
#include "reports/csv.h"
#include "reports/report_priv.h"

#define MAX_SIZE_LABELS 9 /* "512 KiB" in 11 pt: nine of them fit side by side in 560 pixels */
#define COLOURS         8

/* Of the colour sequence podo (Wong, Nature Methods 8:441, 2011: safe for colour-blind readers),
 * its strong colours first and its yellow last. */
static const int colour_order[COLOURS] = {6, 7, 4, 8, 2, 3, 1, 5};
static const int point_order[COLOURS] = {7, 5, 9, 13, 11, 6, 4, 8};

/* Dashes for runs that lie over each other, so that they differ without their colours. */
static const char *const run_dashes[COLOURS] = {
	"1", "(12,5)", "(3,4)", "(14,4,3,4)", "(6,3)", "(14,4,3,4,3,4)", "(24,6)", "(2,8)"};

/* Several runs: colour and dash are the run's in every chart, the point is the curve's own. */
struct style {
	int colour, point;
	char dash[24];
};

static struct style style_of(const struct rep_figure *f, size_t i)
{
	struct style s = {.colour = colour_order[i % COLOURS], .point = point_order[i % COLOURS]};
	if (!f->runs) {
		snprintf(s.dash, sizeof(s.dash), "%zu", i / COLOURS + 1);
		return s;
	}
	size_t run = f->series[i].run % COLOURS, before = 0;
	for (size_t k = 0; k < i; k++)
		before += f->series[k].run == f->series[i].run;
	s.colour = colour_order[run];
	s.point = point_order[(run + before * f->runs) % COLOURS];
	snprintf(s.dash, sizeof(s.dash), "%s", run_dashes[run]);
	return s;
}

/* ---- data ------------------------------------------------------------------------------------ */

static void comment(struct fb_strbuf *b, const char *name, const char *text)
{
	fb_strbuf_printf(b, "# %s: ", name);
	for (; *text; text++) {
		bool plain = (unsigned char)*text >= 32 && *text != 127;
		fb_strbuf_addn(b, plain ? text : " ", 1);
	}
	fb_strbuf_add(b, "\n");
}

static void number(struct fb_strbuf *b, double v)
{
	if (isfinite(v))
		fb_strbuf_printf(b, "\t%.6g", v);
	else
		fb_strbuf_add(b, "\tNaN");
}

static void band_row(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	double lo, hi, k = rep_scale(f);
	bool times = r->hist && r->hist->n > 0;
	rep_row_range(f, r, &lo, &hi);
	fb_strbuf_printf(b, "%llu", (unsigned long long)r->size);
	number(b, rep_row_value(f, r));
	number(b, lo);
	number(b, hi);
	number(b, times ? (double)r->hist->min * k : NAN);
	number(b, times ? (double)r->hist->max * k : NAN);
	number(b, rep_row_percentile(f, r, 0.999));
	fb_strbuf_printf(b, "\t%llu\t%zu\t%d\n", (unsigned long long)r->samples, r->n, r->valid);
}

static void rate_row(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	double lo, hi, v = rep_row_value(f, r), bound = r->bound * rep_scale(f);
	rep_row_range(f, r, &lo, &hi);
	fb_strbuf_printf(b, "%llu", (unsigned long long)r->size);
	number(b, v);
	number(b, lo);
	number(b, hi);
	number(b, r->bound > 0 ? bound : NAN);
	number(b, r->bound > 0 ? v / bound : NAN);
	fb_strbuf_printf(b, "\t%llu\t%zu\t%d\n", (unsigned long long)r->samples, r->n, r->valid);
}

/*
 * The share of samples above a time, one row per bucket that holds any. It ends where fewer than 10
 * samples are left: beyond, the curve would be drawn by single events.
 */
static void tail_rows(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	uint64_t seen = 0;
	double k = rep_scale(f), n = (double)r->hist->n;
	if (r->hist->n == 0)
		return;
	fb_strbuf_printf(b, "%.6g\t1\n", (double)r->hist->min * k);
	for (unsigned i = 0; i < FB_HIST_BUCKETS; i++) {
		if (r->hist->count[i] == 0)
			continue;
		seen += r->hist->count[i];
		if (r->hist->n - seen < 10)
			break;
		uint64_t end = fb_hist_bucket_low(i) + fb_hist_bucket_width(i);
		fb_strbuf_printf(
			b, "%.6g\t%.6g\n", (double)end * k, (double)(r->hist->n - seen) / n);
	}
}

static void columns(struct fb_strbuf *b, const struct rep_figure *f)
{
	const char *u = rep_unit(f);
	if (f->kind == REP_TAIL)
		fb_strbuf_printf(b, "# columns: time_%s\tshare_of_samples_above\n", u);
	else if (f->kind == REP_BAND)
		fb_strbuf_printf(b,
			"# columns: size_bytes\tmedian_%s\tp5_%s\tp99_%s\tmin_%s\tmax_%s\tp99.9_%s\tsamples\tlaunches\tvalidity\n",
			u, u, u, u, u, u);
	else
		fb_strbuf_add(b,
			"# columns: size_bytes\tmedian_of_launches\tlowest_launch\thighest_launch\tbound\tshare_of_bound\tsamples\tlaunches\tvalidity\n");
}

void rep_dat_text(struct fb_strbuf *b, const struct rep_figure *f)
{
	char where[320];
	comment(b, "figure", f->title);
	comment(b, "values", rep_axis(f));
	comment(b, "where", rep_measured(f, where, sizeof(where)));
	comment(b, "definition", f->definition[0] ? f->definition : "not stated by the benchmark");
	comment(b, "load", f->load);
	comment(b, "the same for all series", f->factors);
	columns(b, f);
	if (f->kind != REP_TAIL)
		fb_strbuf_add(b, "# validity: 0 valid, 1 suspect, 2 invalid; NaN: not known\n");
	if (f->kind == REP_BAND)
		fb_strbuf_add(b,
			"# p5 and p99 are the band's edges: of few samples they are their extremes\n");
	for (size_t i = 0; i < f->n; i++) {
		const struct rep_series *s = &f->series[i];
		char name[40];
		snprintf(name, sizeof(name), "series %zu", i);
		fb_strbuf_add(b, i ? "\n\n" : "");
		comment(b, name, s->label);
		for (size_t k = 0; k < s->n; k++) {
			if (f->kind == REP_TAIL)
				tail_rows(b, f, &s->rows[k]);
			else if (f->kind == REP_BAND)
				band_row(b, f, &s->rows[k]);
			else
				rate_row(b, f, &s->rows[k]);
		}
		if (s->n == 0) /* an empty index would shift those after it */
			fb_strbuf_add(
				b, f->kind == REP_TAIL ? "NaN\tNaN\n" : "NaN\tNaN\tNaN\tNaN\n");
	}
}

/* Rows of tabs as lines of commas behind their series' label; NaN as an empty cell. */
static void csv_lines(struct fb_strbuf *b, const char *label, const char *rows)
{
	while (*rows) {
		if (label)
			rep_csv_text(b, true, label);
		else
			fb_strbuf_add(b, "series");
		while (*rows && *rows != '\n') {
			size_t n = strcspn(rows, "\t\n");
			fb_strbuf_add(b, ",");
			if (n != 3 || strncmp(rows, "NaN", 3) != 0)
				fb_strbuf_addn(b, rows, n);
			rows += n + (rows[n] == '\t');
		}
		rep_csv_end(b);
		rows += *rows == '\n';
	}
}

void rep_figure_csv(struct fb_strbuf *b, const struct rep_figure *f)
{
	struct fb_strbuf head = {0};
	columns(&head, f);
	if (head.s)
		csv_lines(b, NULL, head.s + strlen("# columns: "));
	fb_strbuf_free(&head);
	for (size_t i = 0; i < f->n; i++) {
		const struct rep_series *s = &f->series[i];
		struct fb_strbuf rows = {0};
		for (size_t k = 0; k < s->n; k++) {
			if (f->kind == REP_TAIL)
				tail_rows(&rows, f, &s->rows[k]);
			else if (f->kind == REP_BAND)
				band_row(&rows, f, &s->rows[k]);
			else
				rate_row(&rows, f, &s->rows[k]);
		}
		if (rows.s)
			csv_lines(b, s->label, rows.s);
		b->failed = b->failed || rows.failed;
		fb_strbuf_free(&rows);
	}
}

/* ---- script ---------------------------------------------------------------------------------- */

/*
 * gnuplot 5.4 takes '' for an apostrophe inside a single-quoted string, but not at its beginning:
 * there it reads an empty string and stumbles over the rest. So an apostrophe becomes U+2019, and
 * no string ever holds the quote that would end it. Its SVG writes '>' as it is, and "]]>" is no
 * text of XML: a browser then shows no picture at all.
 */
void rep_gp_quoted(struct fb_strbuf *b, const char *s)
{
	fb_strbuf_add(b, "'");
	for (; *s; s++) {
		if (*s == '\'')
			fb_strbuf_add(b, "\xe2\x80\x99");
		else if (strncmp(s, "]]>", 3) == 0)
			fb_strbuf_add(b, "] ");
		else if (strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0) {
			fb_strbuf_add(b, " "); /* U+FFFE, U+FFFF: no characters of XML */
			s += 2;
		} else
			fb_strbuf_addn(b, (unsigned char)*s < 32 || *s == 127 ? " " : s, 1);
	}
	fb_strbuf_add(b, "'");
}

/* `tall`: the chart's own height as a share of the picture's. What stands so many pixels from an
 * edge is told in it. */
void rep_gp_terminal(struct fb_strbuf *b, const struct rep_figure *f)
{
	static const char *const names[] = {"pngcairo", "png"};
	fb_strbuf_printf(b,
		"if (!exists('png')) { png = 0 }\n"
		"if (!exists('out')) { out = '%s.png' }\n"
		"if (!exists('wide')) { wide = int(%d * png) }\n"
		"if (!exists('high')) { high = int(%d * png) }\n"
		"tall = png > 0 ? %d.0 * png / high : 1\n"
		"if (png > 0) {\n",
		f->id, f->width, f->height, f->height);
	/* Letters of as many pixels as in the SVG: a point is 4/3 of them. */
	for (int i = 0; i < 2; i++)
		fb_strbuf_printf(b,
			"\t%s\n\t\tset terminal %s size wide,high font 'DejaVu Sans,12' fontscale 0.75*png linewidth png%s noenhanced background '#ffffff'\n",
			i ? "} else {" : "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {", names[i],
			i ? "" : " pointscale png");
	fb_strbuf_printf(b,
		"\t}\n\tset output out\n} else {\n"
		"\tset terminal svg size %d,%d font 'DejaVu Sans,12' noenhanced background '#ffffff'\n"
		"\tset output '%s.svg'\n}\n",
		f->width, f->height, f->id);
}

static unsigned log2_floor(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v | 1);
}

/* The smallest step that keeps the labels apart, or a little more if both ends then get one. */
static unsigned tic_step(unsigned span)
{
	unsigned least = (span + MAX_SIZE_LABELS - 2) / (MAX_SIZE_LABELS - 1);
	least = least ? least : 1;
	for (unsigned step = least; step <= 2 * least && step <= span; step++)
		if (span % step == 0)
			return step;
	return least;
}

void rep_size_tics(struct fb_strbuf *b, uint64_t lo, uint64_t hi)
{
	unsigned from = log2_floor(lo), to = log2_floor(hi);
	if ((1ull << from) < lo && from < to)
		from++;
	unsigned step = tic_step(to - from);
	fb_strbuf_add(b, "(");
	for (unsigned p = from; p <= to; p++) {
		char size[32];
		bool label = (p - from) % step == 0;
		fb_strbuf_printf(b, "%s'%s' %llu%s", p > from ? ", " : "",
			label ? fb_fmt_size(1ull << p, size, sizeof(size)) : "", 1ull << p,
			label ? "" : " 1");
	}
	fb_strbuf_add(b, ")");
}

struct span {
	double lo, hi;
	uint64_t size_lo, size_hi;
	bool launches; /* some row has several */
	bool doubt;    /* some row is suspect or invalid */
	bool bound;    /* some row has one */
};

static void widen(struct span *s, double v)
{
	if (!isfinite(v) || v <= 0)
		return;
	s->lo = v < s->lo ? v : s->lo;
	s->hi = v > s->hi ? v : s->hi;
}

static struct span span_of(const struct rep_figure *f)
{
	struct span s = {.lo = INFINITY, .hi = 0, .size_lo = UINT64_MAX};
	for (size_t i = 0; i < f->n; i++) {
		for (size_t k = 0; k < f->series[i].n; k++) {
			const struct rep_row *r = &f->series[i].rows[k];
			double lo, hi;
			rep_row_range(f, r, &lo, &hi);
			widen(&s, lo);
			widen(&s, hi);
			if (f->kind == REP_RATE)
				widen(&s, r->bound * rep_scale(f));
			if (f->kind == REP_TAIL && r->hist->n > 0)
				widen(&s, (double)r->hist->min * rep_scale(f));
			s.launches = s.launches || r->n > 1;
			s.doubt = s.doubt || r->valid > 0;
			s.bound = s.bound || (f->kind == REP_RATE && r->bound > 0);
			if (r->size == 0)
				continue;
			s.size_lo = r->size < s.size_lo ? r->size : s.size_lo;
			s.size_hi = r->size > s.size_hi ? r->size : s.size_hi;
		}
	}
	if (!(s.hi > 0)) {
		s.lo = 1;
		s.hi = 10;
	}
	if (s.size_hi == 0)
		s.size_lo = s.size_hi = 1;
	return s;
}

/* 1, 2, 5, 10 ... at or below (up: at or above) v > 0. */
static double round125(double v, bool up)
{
	static const double steps[] = {1, 2, 5, 10};
	double decade = pow(10, floor(log10(v)));
	double best = up ? 10 * decade : decade;
	for (int i = 0; i < 4; i++) {
		double c = steps[i] * decade;
		if (up ? c >= v * (1 - 1e-9) && c < best : c <= v * (1 + 1e-9) && c > best)
			best = c;
	}
	return best;
}

/* A logarithmic axis ('x' or 'y') with plain numbers: every decade, and 2 and 5 where there is
 * room. */
static void log_axis(struct fb_strbuf *b, char axis, double lo, double hi)
{
	static const double steps[] = {1, 2, 5};
	lo = round125(lo, false);
	hi = round125(hi * 1.02, true);
	if (hi / lo < 3) {
		lo /= 2;
		hi *= 2;
	}
	bool fine = log10(hi / lo) < 2.4;
	const char *sep = "";
	/* A hair wider than the labels: gnuplot's rounding drops a tic that lies on the edge. */
	fb_strbuf_printf(b, "set logscale %c 10\nset %crange [%.6g:%.6g]\nset %ctics (", axis, axis,
		lo * 0.9995, hi * 1.0005, axis);
	int from = (int)floor(log10(lo) + 1e-9), to = (int)floor(log10(hi) + 1e-9);
	for (int i = 3 * from; i < 3 * (to + 1); i++) {
		int decade = i >= 0 ? i / 3 : -((2 - i) / 3);
		double v = pow(10, decade) * steps[i - 3 * decade];
		if (v < lo * 0.999 || v > hi * 1.001)
			continue;
		if (i == 3 * decade || fine)
			fb_strbuf_printf(b, "%s'%.*f' %.10g", sep, decade < 0 ? -decade : 0, v, v);
		else
			fb_strbuf_printf(b, "%s'' %.10g 1", sep, v);
		sep = ", ";
	}
	fb_strbuf_add(b, ")\n");
}

/* How many entries of the key fit side by side: 8 pixels a letter in 12 pt, and the sample. */
static size_t key_columns(const struct rep_figure *f, const struct span *s)
{
	size_t longest = s->doubt ? strlen("suspect or invalid") : strlen("p5 to p99"), cols;
	for (size_t i = 0; i < f->n; i++) {
		size_t n = strlen(f->series[i].label) +
			   (f->kind == REP_BAND && (f->n > 1 || f->runs) ? strlen("median, ") : 0);
		if (f->kind == REP_BAND && f->n == 1 && !f->runs)
			n = strlen("median");
		longest = n > longest ? n : longest;
	}
	cols = 560 / (8 * longest + (f->runs ? 72 : 48));
	return cols < 1 ? 1 : cols > 3 ? 3 : cols;
}

/* The key stands between title and plot, in as many rows as its entries need. */
static void preamble(struct fb_strbuf *b, const struct rep_figure *f, const struct span *s)
{
	size_t keys = f->n + (f->kind == REP_BAND) + s->bound + s->doubt;
	size_t cols = key_columns(f, s), rows = (keys + cols - 1) / cols;
	fb_strbuf_printf(b, "# Redraw with: gnuplot %s.gp\n", f->id);
	fb_strbuf_add(b, "set encoding utf8\nset colorsequence podo\n");
	rep_gp_terminal(b, f);
	fb_strbuf_add(b, "set datafile separator \"\\t\"\n");
	fb_strbuf_add(b,
		"set border 3 lc rgb '#888888'\nset tics nomirror out scale 0.8,0.4 textcolor rgb '#333333'\n"
		"set grid xtics ytics lc rgb '#e4e4e4' lw 1, lc rgb '#f2f2f2' lw 1\n");
	fb_strbuf_printf(b,
		"set key at graph 0, screen 1-0.085*tall left top horizontal maxcols %zu Left reverse samplen %d noautotitle\n",
		cols, f->runs ? 5 : 2);
	/* A title of its own would stand below the key. */
	fb_strbuf_printf(b, "set tmargin %.1f\nset label 2 ", 2.9 + 1.15 * (double)rows);
	rep_gp_quoted(b, f->title);
	fb_strbuf_add(b, " at screen 0.5,1-0.045*tall center font 'DejaVu Sans,14'\nset ylabel ");
	rep_gp_quoted(b, f->kind == REP_TAIL ? "Share of samples above" : rep_axis(f));
	fb_strbuf_add(b, "\nset xlabel ");
	if (f->kind == REP_TAIL)
		rep_gp_quoted(b, rep_axis(f));
	else
		rep_gp_quoted(b, strcmp(f->section, "RDMA") == 0 ? "Message size" : "Size");
	fb_strbuf_add(b, "\nset bmargin 5.2\nset label 1 ");
	char where[320];
	rep_gp_quoted(b, rep_measured(f, where, sizeof(where)));
	fb_strbuf_add(b,
		" at screen 0.985,0.03*tall right font 'DejaVu Sans,9' textcolor rgb '#777777'\n");
}

static void size_axis(struct fb_strbuf *b, const struct span *s)
{
	fb_strbuf_printf(b, "set logscale x 2\nset xrange [%.6g:%.6g]\nset xtics ",
		(double)s->size_lo / 1.2, (double)s->size_hi * 1.2);
	rep_size_tics(b, s->size_lo, s->size_hi);
	fb_strbuf_add(b, "\n");
}

static void doubts(
	struct fb_strbuf *b, const struct rep_figure *f, const struct span *s, int column)
{
	if (!s->doubt)
		return;
	for (size_t i = 0; i < f->n; i++)
		fb_strbuf_printf(b,
			", \\\n     '%s.dat' index %zu using 1:($%d>0 ? $2 : 1/0) with points pt 2 ps 1.8 lw 2 lc rgb '#c0392b' title '%s'",
			f->id, i, column, i == 0 ? "suspect or invalid" : "");
}

static void band_plot(struct fb_strbuf *b, const struct rep_figure *f, const struct span *s)
{
	size_axis(b, s);
	if (s->hi / s->lo > 8)
		log_axis(b, 'y', s->lo, s->hi);
	else
		fb_strbuf_printf(b, "set yrange [0:%.6g]\n", s->hi * 1.08);
	fb_strbuf_add(b, "plot ");
	for (size_t i = 0; i < f->n; i++)
		fb_strbuf_printf(b,
			"%s'%s.dat' index %zu using 1:3:4 with filledcurves fs transparent solid %s noborder lc %d title '%s'",
			i ? ", \\\n     " : "", f->id, i, f->n > 1 ? "0.16" : "0.25",
			style_of(f, i).colour,
			i == 0 ? f->n > 1 ? "bands: p5 to p99" : "p5 to p99" : "");
	for (size_t i = 0; i < f->n; i++) {
		char label[180];
		struct style t = style_of(f, i);
		snprintf(label, sizeof(label), f->n > 1 || f->runs ? "median, %s" : "median",
			f->series[i].label);
		fb_strbuf_printf(b,
			", \\\n     '%s.dat' index %zu using 1:2 with linespoints lc %d pt %d ps 0.6 lw 1.8 dt %s title ",
			f->id, i, t.colour, t.point, t.dash);
		rep_gp_quoted(b, label);
	}
	doubts(b, f, s, 10);
	fb_strbuf_add(b, "\n");
}

/* Do all series share the bound at every size? Then one line serves. */
static bool same_bound(const struct rep_series *a, const struct rep_series *c)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < c->n; k++)
			if (a->rows[i].size == c->rows[k].size &&
				fabs(a->rows[i].bound - c->rows[k].bound) > 1e-9 * a->rows[i].bound)
				return false;
	return true;
}

static bool has_bound(const struct rep_series *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->rows[i].bound > 0)
			return true;
	return false;
}

static void bounds(struct fb_strbuf *b, const struct rep_figure *f)
{
	bool titled = false;
	for (size_t i = 0; i < f->n; i++) {
		bool known = !has_bound(&f->series[i]);
		for (size_t k = 0; k < i && !known; k++)
			known = has_bound(&f->series[k]) &&
				same_bound(&f->series[k], &f->series[i]);
		if (known)
			continue;
		fb_strbuf_printf(b,
			", \\\n     '%s.dat' index %zu using 1:5 with lines lc rgb '#777777' lw 1.3 dt 2 title '%s'",
			f->id, i, titled ? "" : "bound");
		titled = true;
	}
}

static void rate_plot(struct fb_strbuf *b, const struct rep_figure *f, const struct span *s)
{
	size_axis(b, s);
	if (s->hi / s->lo > 100)
		log_axis(b, 'y', s->lo, s->hi);
	else
		fb_strbuf_printf(b, "set yrange [0:%.6g]\n", s->hi * 1.08);
	fb_strbuf_add(b, "plot ");
	for (size_t i = 0; i < f->n; i++) {
		struct style t = style_of(f, i);
		fb_strbuf_printf(b,
			"%s'%s.dat' index %zu using %s lc %d pt %d ps 0.7 lw 1.8 dt %s title ",
			i ? ", \\\n     " : "", f->id, i,
			s->launches ? "1:2:3:4 with yerrorlines" : "1:2 with linespoints", t.colour,
			t.point, t.dash);
		rep_gp_quoted(b, f->series[i].label);
	}
	bounds(b, f);
	doubts(b, f, s, 9);
	fb_strbuf_add(b, "\n");
}

static void tail_plot(struct fb_strbuf *b, const struct rep_figure *f, const struct span *s)
{
	double least = 1, slowest = s->lo;
	for (size_t i = 0; i < f->n; i++) {
		const struct rep_row *r = &f->series[i].rows[0];
		double n = (double)r->hist->n, ns;
		if (n <= 10)
			continue;
		least = 10 / n < least ? 10 / n : least;
		if (fb_hist_quantile(r->hist, 1 - 10 / n, &ns) == 0 && ns * rep_scale(f) > slowest)
			slowest = ns * rep_scale(f);
	}
	log_axis(b, 'x', s->lo, slowest);
	fb_strbuf_printf(b,
		"set logscale y 10\nset yrange [%.6g:1]\n"
		"set ytics ('all' 1, 'p50' 0.5, 'p90' 0.1, 'p99' 0.01, 'p99.9' 1e-3, 'p99.99' 1e-4, 'p99.999' 1e-5)\n"
		"plot ",
		least < 0.5 ? least * 0.7 : 0.1);
	for (size_t i = 0; i < f->n; i++) {
		struct style t = style_of(f, i);
		fb_strbuf_printf(b,
			"%s'%s.dat' index %zu using 1:2 with steps lc %d lw 1.8 dt %s title ",
			i ? ", \\\n     " : "", f->id, i, t.colour, t.dash);
		rep_gp_quoted(b, f->series[i].label);
	}
	fb_strbuf_add(b, "\n");
}

void rep_gp_text(struct fb_strbuf *b, const struct rep_figure *f)
{
	struct span s = span_of(f);
	preamble(b, f, &s);
	if (f->kind == REP_TAIL)
		tail_plot(b, f, &s);
	else if (f->kind == REP_BAND)
		band_plot(b, f, &s);
	else
		rate_plot(b, f, &s);
}
