// SPDX-License-Identifier: Apache-2.0
/*
 * Figures in the page: the picture, a caption that says what one value is and what it was measured
 * on, and a table of exactly the points that were drawn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/units.h"
#include "reports/report_priv.h"

/* ---- tables ---------------------------------------------------------------------------------- */

static void cell(struct fb_strbuf *b, double v)
{
	char num[32];
	rep_tag(b, "td", "n", "%s", rep_num(v, num, sizeof(num)));
}

static void head(struct fb_strbuf *b, const char *const *names, const char *unit)
{
	fb_strbuf_add(b, "<thead><tr>");
	for (; *names; names++) {
		const char *u = **names == '*' ? unit : "";
		rep_tag(b, "th", NULL, *u ? "%s [%s]" : "%s", *names + (**names == '*'), u);
	}
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

/* What every row ends with: samples, launches, validity. */
static void end_cells(struct fb_strbuf *b, const struct rep_row *r)
{
	static const char *const words[] = {"valid", "suspect", "invalid"};
	char n[32];
	rep_tag(b, "td", "n", "%s", rep_count(r->samples, n, sizeof(n)));
	rep_tag(b, "td", "n", "%zu", r->n);
	fb_strbuf_printf(b, "<td class=\"%s\">", words[r->valid]);
	rep_text(b, "%s%s%s", words[r->valid], r->why[0] ? ": " : "", r->why);
	fb_strbuf_add(b, "</td></tr>\n");
}

static void size_cell(struct fb_strbuf *b, uint64_t size)
{
	char text[32];
	rep_tag(b, "td", "n", "%s", fb_fmt_size(size, text, sizeof(text)));
}

/* The band is drawn from the samples there are; a percentile is printed only when they support it.
 */
static void band_row(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	double k = rep_scale(f);
	bool times = r->hist && r->hist->n > 0;
	cell(b, times ? (double)r->hist->min * k : NAN);
	cell(b, rep_row_percentile(f, r, 0.05));
	cell(b, rep_row_value(f, r));
	cell(b, rep_row_percentile(f, r, 0.99));
	cell(b, rep_row_percentile(f, r, 0.999));
	cell(b, times ? (double)r->hist->max * k : NAN);
	end_cells(b, r);
}

static bool any_bound(const struct rep_figure *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->series[i].n; k++)
			if (f->series[i].rows[k].bound > 0)
				return true;
	return false;
}

static void rate_row(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	double lo, hi, v = rep_row_value(f, r), bound = r->bound * rep_scale(f);
	rep_row_range(f, r, &lo, &hi);
	cell(b, v);
	cell(b, lo);
	cell(b, hi);
	if (any_bound(f)) {
		cell(b, r->bound > 0 ? bound : NAN);
		cell(b, r->bound > 0 ? 100 * v / bound : NAN);
	}
	end_cells(b, r);
}

static void tail_row(struct fb_strbuf *b, const struct rep_figure *f, const struct rep_row *r)
{
	static const double q[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
	for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++)
		cell(b, rep_row_percentile(f, r, q[i]));
	cell(b, r->hist && r->hist->n > 0 ? (double)r->hist->max * rep_scale(f) : NAN);
	end_cells(b, r);
}

static void table(struct fb_strbuf *b, const struct rep_figure *f)
{
	static const char *const band[] = {"size", "*min", "*p5", "*median", "*p99", "*p99.9",
		"*max", "samples", "launches", "validity", NULL};
	static const char *const bounded[] = {"size", "*median", "*lowest launch",
		"*highest launch", "*bound", "% of bound", "samples", "launches", "validity", NULL};
	static const char *const rate[] = {"size", "*median", "*lowest launch", "*highest launch",
		"samples", "launches", "validity", NULL};
	static const char *const tail[] = {"size", "*p50", "*p90", "*p99", "*p99.9", "*p99.99",
		"*max", "samples", "launches", "validity", NULL};
	static const struct {
		const char *const *head;
		unsigned columns;
		void (*row)(struct fb_strbuf *, const struct rep_figure *, const struct rep_row *);
	} kinds[] = {[REP_BAND] = {band, 10, band_row},
		[REP_RATE] = {rate, 7, rate_row},
		[REP_TAIL] = {tail, 10, tail_row}};
	bool with_bound = f->kind == REP_RATE && any_bound(f);
	fb_strbuf_add(b, "<div class=\"wide\"><table>");
	head(b, with_bound ? bounded : kinds[f->kind].head, rep_unit(f));
	for (size_t i = 0; i < f->n; i++) {
		fb_strbuf_printf(b, "<tr class=\"series\"><th colspan=\"%u\">",
			kinds[f->kind].columns + (with_bound ? 2 : 0));
		rep_text(b, "%s", f->series[i].label);
		fb_strbuf_add(b, "</th></tr>\n");
		for (size_t k = 0; k < f->series[i].n; k++) {
			fb_strbuf_add(b, "<tr>");
			size_cell(b, f->series[i].rows[k].size);
			kinds[f->kind].row(b, f, &f->series[i].rows[k]);
		}
	}
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

/* ---- caption --------------------------------------------------------------------------------- */

static void extent(const struct rep_figure *f, uint64_t *samples, size_t *least, size_t *most)
{
	*samples = 0;
	*least = SIZE_MAX;
	*most = 0;
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->series[i].n; k++) {
			const struct rep_row *r = &f->series[i].rows[k];
			*samples += r->samples;
			*least = r->n < *least ? r->n : *least;
			*most = r->n > *most ? r->n : *most;
		}
}

/* " What: text." with one full stop, whether the text has one or not. */
static void sentence(struct fb_strbuf *b, const char *what, const char *text)
{
	size_t n = strlen(text);
	while (n > 0 && (text[n - 1] == '.' || text[n - 1] == ' '))
		n--;
	if (n > 0)
		rep_text(b, " %s: %.*s.", what, (int)n, text);
}

static void caption(struct fb_strbuf *b, const struct rep_figure *f)
{
	uint64_t samples;
	size_t least, most;
	char where[320], n[32];
	extent(f, &samples, &least, &most);
	fb_strbuf_add(b, "<figcaption>");
	rep_tag(b, "span", "where", "%s.", rep_measured(f, where, sizeof(where)));
	sentence(b, "One value", f->definition);
	if (strcmp(f->load, "closed") == 0)
		rep_text(b,
			" Load: idle, closed loop (the next operation starts when the last has ended).");
	else if (f->load[0])
		rep_text(b, " Load: %s loop.", f->load);
	rep_text(b, " %s samples", rep_count(samples, n, sizeof(n)));
	if (least == most)
		rep_text(b, " from %zu launch%s of each point.", most, most == 1 ? "" : "es");
	else
		rep_text(b, " from %zu to %zu launches of each point.", least, most);
	sentence(b, "Bound", f->bound_why);
	sentence(b, "All series", f->factors);
	fb_strbuf_add(b, "</figcaption>\n");
}

static void figure(struct fb_strbuf *b, const struct rep_page *p, const struct rep_figure *f)
{
	bool left_out = f - p->figures->v >= REP_MAX_PICTURES;
	fb_strbuf_printf(b, "<figure id=\"%s\">\n", f->id);
	if (left_out) {
		rep_tag(b, "h3", NULL, "%s", f->title);
		rep_tag(b, "p", "quiet",
			"No picture: the first %d figures are drawn, of %zu. The data are in %s/results.csv.",
			REP_MAX_PICTURES, p->figures->n, p->plots_name);
	} else if (!rep_html_image(b, f->svg, f->title)) {
		rep_tag(b, "h3", NULL, "%s", f->title);
		rep_tag(b, "p", "quiet", "No picture: %s. The data are in %s/%s.dat.",
			p->no_plots ? p->no_plots : "it could not be drawn", p->plots_name, f->id);
	}
	caption(b, f);
	fb_strbuf_add(b, "<details><summary>The points of this figure</summary>\n");
	table(b, f);
	if (!left_out)
		rep_tag(b, "p", "quiet", "Files: %s/%s.dat, .csv, .gp, .svg", p->plots_name, f->id);
	fb_strbuf_add(b, "</details>\n</figure>\n");
}

size_t rep_html_figures(struct fb_strbuf *b, const struct rep_page *p, const char *section)
{
	size_t n = 0;
	for (size_t i = 0; i < p->figures->n; i++) {
		if (strcmp(p->figures->v[i].section, section) != 0)
			continue;
		fb_strbuf_add(b, n++ == 0 ? "<div class=\"figures\">\n" : "");
		figure(b, p, &p->figures->v[i]);
	}
	fb_strbuf_add(b, n > 0 ? "</div>\n" : "");
	return n;
}
