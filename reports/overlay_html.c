// SPDX-License-Identifier: Apache-2.0
/*
 * The page of runs laid over each other. Its first screen says whether they are like for like, and
 * what differs; then charts with a curve per run, and the values side by side.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/first_screen.h"
#include "reports/overlay.h"
#include "reports/training.h"

#define MAX_ROWS 1000 /* of the table of values; the CSV has all */

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* The text of a buffer as an escaped element. */
static void take_tag(struct fb_strbuf *b, const char *tag, const char *cls, struct fb_strbuf *text)
{
	rep_tag(b, tag, cls, "%s", text->s ? text->s : "");
	b->failed = b->failed || text->failed;
	fb_strbuf_free(text);
}

/* ---- first screen ---------------------------------------------------------------------------- */

static void hosts_cell(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *hosts = get(get(doc, "system"), "hosts"), *h;
	struct fb_strbuf text = {0};
	size_t i;
	json_array_foreach (hosts, i, h) {
		if (i == 3) {
			fb_strbuf_printf(&text, " and %zu more", json_array_size(hosts) - i);
			break;
		}
		fb_strbuf_printf(&text, "%s%s", i ? ", " : "", fb_json_str(h, "name", "?"));
	}
	if (json_array_size(hosts) == 0)
		fb_strbuf_add(&text, "not told");
	take_tag(b, "td", NULL, &text);
}

static void runs_table(struct fb_strbuf *b, const struct overlay *o)
{
	static const char *const names[] = {"run", "what", "measured on", "hosts", "begun (UTC)",
		"ended", "results", "launches"};
	fb_strbuf_add(b, "<div class=\"wide\"><table class=\"runs\"><thead><tr>");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rep_tag(b, "th", NULL, "%s", names[i]);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < o->n; i++) {
		const json_t *doc = o->run[i].doc, *run = get(doc, "run");
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "th", NULL, "%s", o->run[i].label);
		rep_tag(b, "td", NULL, "%s",
			fb_json_str(get(doc, "plan"), "title", fb_json_str(run, "command", "?")));
		fb_strbuf_add(b, "<td><span class=\"places\">");
		rep_html_places(b, doc);
		fb_strbuf_add(b, "</span></td>");
		hosts_cell(b, doc);
		rep_tag(b, "td", NULL, "%.16s", fb_json_str(run, "started", "?"));
		rep_tag(b, "td", NULL, "%s",
			fb_json_str(
				get(doc, "verdict"), "state", fb_json_str(run, "outcome", "?")));
		rep_tag(b, "td", "n", "%zu", json_array_size(get(doc, "results")));
		rep_tag(b, "td", "n", "%zu", o->run[i].launches);
		fb_strbuf_add(b, "</tr>\n");
	}
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

static void header(struct fb_strbuf *b, const struct overlay *o, const char *title)
{
	static const char *const badge[] = {[OVERLAY_ALIKE] = "badge good",
		[OVERLAY_UNKNOWN] = "badge open",
		[OVERLAY_DIFFERS] = "badge bad"};
	struct fb_strbuf why = {0};
	fb_strbuf_add(b, "<header>\n");
	rep_tag(b, "h1", NULL, "%s", title);
	fb_strbuf_add(b, "\n<div class=\"verdict\">");
	rep_tag(b, "span", badge[overlay_likeness(o)], "%s", overlay_words(o));
	overlay_why(o, &why);
	take_tag(b, "span", "scope", &why);
	fb_strbuf_add(b, "</div>\n");
	runs_table(b, o);
	fb_strbuf_add(b, "</header>\n");
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void fact_row(struct fb_strbuf *b, const struct overlay *o, const struct overlay_fact *f)
{
	char name[160], hosts[60];
	overlay_fact_name(f, name, sizeof(name));
	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "th", "fact", "%s", name);
	for (size_t k = 0; k < o->n; k++) {
		struct fb_strbuf text = {0};
		overlay_cell(f, k, &text);
		take_tag(b, "td", "long", &text);
	}
	if (f->host >= 0)
		rep_tag(b, "td", NULL, "%s", overlay_hosts(f, hosts, sizeof(hosts)));
	else if (f->metrics > 0)
		rep_tag(b, "td", NULL, "%zu of %zu metrics", f->metrics, o->shared);
	else
		rep_tag(b, "td", NULL, "the run");
	rep_tag(b, "td", NULL, "%s", f->judged ? "refuses" : "allows");
	fb_strbuf_add(b, "</tr>\n");
}

static void facts(struct fb_strbuf *b, const struct overlay *o)
{
	if (o->n_facts == 0)
		return;
	rep_tag(b, "h2", NULL, "Facts that differ");
	fb_strbuf_add(b, "<div class=\"wide\"><table class=\"differ\"><thead><tr>");
	rep_tag(b, "th", NULL, "fact");
	for (size_t k = 0; k < o->n; k++)
		rep_tag(b, "th", NULL, "%s", o->run[k].label);
	rep_tag(b, "th", NULL, "of");
	rep_tag(b, "th", NULL, "compare");
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < o->n_facts; i++)
		fact_row(b, o, &o->fact[i]);
	fb_strbuf_add(b, "</tbody></table></div>\n");
	if (o->facts_left)
		rep_tag(b, "p", "quiet", "%zu more differ.", o->facts_left);
	rep_tag(b, "p", "quiet",
		"Hosts and devices are met by their place in the documents; names, addresses and "
		"where output went are no facts. compare refuses to judge over those marked, unless "
		"--allow names them.");
}

/* ---- values ---------------------------------------------------------------------------------- */

static void values_head(struct fb_strbuf *b, const struct overlay *o)
{
	fb_strbuf_add(b, "<div class=\"wide\"><table class=\"values\"><thead><tr>");
	rep_tag(b, "th", NULL, "case");
	rep_tag(b, "th", NULL, "metric");
	for (size_t k = 0; k < o->n; k++)
		rep_tag(b, "th", "n", "%s", o->run[k].label);
	for (size_t k = 1; k < o->n; k++)
		rep_tag(b, "th", "n", "%s / %s [95 %%]", o->run[k].label, o->run[0].label);
	rep_tag(b, "th", NULL, "measured on");
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

static void value_cell(
	struct fb_strbuf *b, const struct cmp_side *s, const struct rep_scale_for *scale)
{
	char num[40];
	rep_num(overlay_median(s) * scale->factor, num, sizeof(num));
	fb_strbuf_add(b, s && s->invalid ? "<td class=\"n invalid\">" : "<td class=\"n\">");
	rep_text(b, "%s%s", num, s && s->invalid ? " invalid" : "");
	if (s && s->n > 1)
		rep_tag(b, "span", "quiet", " n %zu", s->n);
	fb_strbuf_add(b, "</td>");
}

static void value_row(struct fb_strbuf *b, const struct overlay *o, const struct overlay_row *r)
{
	char text[256];
	struct rep_scale_for scale = rep_people_unit(r->m->base.first);
	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "td", NULL, "%s", r->m->name);
	rep_tag(b, "td", NULL, "%s [%s], %s is better", r->m->metric, scale.unit,
		r->m->lower ? "less" : "more");
	for (size_t k = 0; k < o->n; k++)
		value_cell(b, r->side[k], &scale);
	for (size_t k = 1; k < o->n; k++)
		rep_tag(b, "td", "n", "%s", overlay_ratio(&r->ratio[k], text, sizeof(text)));
	rep_tag(b, "td", NULL, "%s", overlay_places(o, r, text, sizeof(text)));
	fb_strbuf_add(b, "</tr>\n");
}

static bool belongs(const struct overlay_row *r, const char *section)
{
	return overlay_in_table(r) && strcmp(rep_section_of(r->m->base.first), section) == 0;
}

/* @return rows of the section; *shown counts those of the whole page */
static size_t values(
	struct fb_strbuf *b, const struct overlay *o, const char *section, size_t *shown)
{
	size_t n = 0, left = 0;
	for (size_t i = 0; i < o->n_rows; i++) {
		if (!belongs(&o->row[i], section))
			continue;
		if (*shown >= MAX_ROWS) {
			left++;
			continue;
		}
		if (n++ == 0)
			values_head(b, o);
		value_row(b, o, &o->row[i]);
		++*shown;
	}
	fb_strbuf_add(b, n > 0 ? "</tbody></table></div>\n" : "");
	if (left > 0)
		rep_tag(b, "p", "quiet", "%zu more rows stand in values.csv.", left);
	return n + left;
}

static bool has_figures(const struct rep_page *p, const char *section)
{
	for (size_t i = 0; i < p->figures->n; i++)
		if (strcmp(p->figures->v[i].section, section) == 0)
			return true;
	return false;
}

static bool has_rows(const struct overlay *o, const char *section)
{
	for (size_t i = 0; i < o->n_rows; i++)
		if (belongs(&o->row[i], section))
			return true;
	return false;
}

static void sections(struct fb_strbuf *b, const struct overlay *o, const struct rep_page *p)
{
	static const char *const names[] = {"RDMA", "Collectives", "Training", "Memory", "Other"};
	size_t shown = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool training = strcmp(names[i], "Training") == 0;
		if (!has_figures(p, names[i]) && !has_rows(o, names[i]) &&
			!(training && p->training && p->training->n > 0))
			continue;
		rep_tag(b, "h2", NULL, "%s", names[i]);
		fb_strbuf_add(b, "\n");
		if (training)
			rep_html_training(b, p);
		rep_html_figures(b, p, names[i]);
		if (!has_rows(o, names[i]))
			continue;
		rep_tag(b, "h3", NULL, "%s side by side", names[i]);
		values(b, o, names[i], &shown);
	}
}

static void only(struct fb_strbuf *b, const struct overlay *o)
{
	struct overlay_only *v;
	size_t n = overlay_only(o, &v), i;
	if (n > 0) {
		rep_tag(b, "h2", NULL, "Not in every run");
		fb_strbuf_add(b, "<div class=\"wide\"><table><thead><tr><th>what</th>"
				 "<th>metrics</th><th>only in</th><th>not in</th></tr></thead>"
				 "<tbody>\n");
	}
	for (i = 0; i < n && i < MAX_ROWS; i++) {
		struct fb_strbuf in = {0}, missing = {0};
		overlay_names(o, v[i].has, true, &in);
		overlay_names(o, v[i].has, false, &missing);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", v[i].what);
		rep_tag(b, "td", "n", "%zu", v[i].n);
		take_tag(b, "td", NULL, &in);
		take_tag(b, "td", NULL, &missing);
		fb_strbuf_add(b, "</tr>\n");
	}
	fb_strbuf_add(b, n > 0 ? "</tbody></table></div>\n" : "");
	if (n > i)
		rep_tag(b, "p", "quiet", "%zu more stand in only.csv.", n - i);
	free(v);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void method(struct fb_strbuf *b, const struct overlay *o, const struct rep_page *p)
{
	rep_tag(b, "h2", NULL, "Method");
	fb_strbuf_add(b, "<ul class=\"method\">\n<li>");
	rep_text(b,
		"A launch is one set of new processes and the unit of replication. A value is the median of a run's launches; n stands beside it where there are several.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"A ratio is to %s: Hodges-Lehmann's estimate over all pairs of launches. Its 95 %% interval stands behind it where the launches allow one (four a side); one launch a side tells nothing of the next.",
		o->run[0].label);
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"Percentiles are of each launch's own histogram in the tables and of all launches' merged ones in the charts, and only with at least 10/(1-q) samples. 1 GB/s is 10^9 bytes/s, 1 Gb/s is 10^9 bits/s.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"No verdict: a floor, Mann-Whitney's test and Holm's adjustment are what fabricbench compare adds, of two runs at a time.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"The tables and the points of the charts stand in %s/ too: runs.csv, facts.csv, values.csv, only.csv.",
		p->plots_name);
	fb_strbuf_add(b, "</li>\n</ul>\n");
}

static void footer(struct fb_strbuf *b, const struct overlay *o)
{
	fb_strbuf_add(b, "<footer>\n<table class=\"facts\">\n");
	for (size_t i = 0; i < o->n; i++) {
		const json_t *tool = get(o->run[i].doc, "tool"), *run = get(o->run[i].doc, "run");
		rep_fact(b, o->run[i].label, "run %s by %s %s (%s)", fb_json_str(run, "id", "?"),
			fb_json_str(tool, "name", "?"), fb_json_str(tool, "version", "?"),
			fb_json_str(tool, "git", "no git"));
	}
	fb_strbuf_add(b, "</table>\n</footer>\n");
}

void overlay_html(struct fb_strbuf *b, const struct overlay *o, const struct rep_page *p)
{
	char *title = overlay_title(o);
	rep_html_head(b, title ? title : "?", "overlay");
	header(b, o, title ? title : "?");
	free(title);
	fb_strbuf_add(b, "<main>\n");
	facts(b, o);
	if (p->no_plots)
		rep_tag(b, "p", "notice", "%s.", p->no_plots);
	sections(b, o, p);
	only(b, o);
	method(b, o, p);
	fb_strbuf_add(b, "</main>\n");
	footer(b, o);
	fb_strbuf_add(b, "</body>\n</html>\n");
}
