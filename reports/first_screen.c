// SPDX-License-Identifier: Apache-2.0
/* See first_screen.h. */
#include "reports/first_screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/headline.h"

#define MAX_FINDINGS REP_FINDINGS

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- verdict, badges, scope ------------------------------------------------------------------ */

static const char *badge_class(const char *state)
{
	if (strcmp(state, "ACCEPTED") == 0 || strcmp(state, "complete") == 0)
		return "badge good";
	return strcmp(state, "REJECTED") == 0 || strcmp(state, "failed") == 0 ? "badge bad"
									      : "badge open";
}

void rep_html_places(struct fb_strbuf *b, const json_t *doc)
{
	for (size_t k = 0; k < REP_PLACES; k++) {
		const struct rep_place *p = &rep_places[k];
		if (rep_has_place(doc, p))
			fb_strbuf_printf(b, "<span class=\"place %s\" title=\"%s\">%s</span>",
				p->where, p->title, p->word);
	}
}

static void scope_line(struct fb_strbuf *b, const json_t *doc)
{
	fb_strbuf_add(b, "<p class=\"quiet scope-line\">");
	rep_scope_line(b, doc);
	fb_strbuf_add(b, "</p>\n");
}

/* ---- findings -------------------------------------------------------------------------------- */

struct findings {
	struct rep_finding v[MAX_FINDINGS];
	size_t n, all;
};

/* Keeps the MAX_FINDINGS first by rank; of equals those that came first. */
static void add_finding(struct findings *f, const struct rep_finding *x)
{
	size_t k = f->n;
	f->all++;
	while (k > 0 && f->v[k - 1].rank > x->rank)
		k--;
	if (k == MAX_FINDINGS)
		return;
	size_t keep = f->n < MAX_FINDINGS ? f->n : MAX_FINDINGS - 1;
	memmove(&f->v[k + 1], &f->v[k], (keep - k) * sizeof(f->v[0]));
	f->v[k] = *x;
	f->n = keep + 1;
}

static void find_in_checks(struct findings *f, const json_t *doc)
{
	const json_t *c;
	size_t i;
	json_array_foreach (get(doc, "checks"), i, c) {
		const char *state = fb_json_str(c, "state", "");
		const json_t *expected = get(c, "expected");
		int rank = strcmp(state, "fail") == 0    ? 0
			   : strcmp(state, "error") == 0 ? 3
			   : strcmp(state, "warn") == 0  ? 4
							 : -1;
		if (rank < 0)
			continue;
		add_finding(f, &(struct rep_finding){.rank = rank,
				       .where = fb_json_str(c, "subject", ""),
				       .what = fb_json_str(c, "title", fb_json_str(c, "id", "?")),
				       .observed = fb_json_str(
					       c, "observed", fb_json_str(c, "reason", "")),
				       .expected = fb_json_str(expected, "value", ""),
				       .source = fb_json_str(expected, "source", ""),
				       .cost = fb_json_str(c, "cost", ""),
				       .command = fb_json_str(c, "remedy", ""),
				       .disturbs = fb_json_str(c, "side_effect", "")});
	}
}

static void find_in_results(struct findings *f, const json_t *doc)
{
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		const json_t *v = get(r, "validity");
		const char *state = fb_json_str(v, "state", "valid");
		if (strcmp(state, "invalid") != 0)
			continue;
		const char *why = json_string_value(json_array_get(get(v, "reasons"), 0));
		add_finding(f, &(struct rep_finding){.rank = 1,
				       .where = fb_json_str(r, "case", "?"),
				       .what = "invalid result",
				       .observed = why ? why : "no reason given"});
	}
}

static void find_in_errors(struct findings *f, const json_t *doc)
{
	const json_t *e;
	size_t i;
	json_array_foreach (get(doc, "errors"), i, e) {
		add_finding(f, &(struct rep_finding){.rank = 2,
				       .where = fb_json_str(e, "job", fb_json_str(e, "point", "")),
				       .what = "error",
				       .observed = fb_json_str(e, "message", "?"),
				       .command = fb_json_str(e, "remedy", "")});
	}
}

/* What a step would gain most by; it is no fault, and stands last. */
static void find_in_training(struct findings *f, const json_t *doc)
{
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		const json_t *v = get(r, "verdict");
		if (strcmp(fb_json_str(r, "metric", ""), "step_time") != 0 || !json_is_object(v) ||
			strcmp(fb_json_str(v, "bound_by", "gemm"), "gemm") == 0)
			continue;
		const json_t *move = json_array_get(get(v, "moves"), 0);
		add_finding(f, &(struct rep_finding){.rank = 5,
				       .where = fb_json_str(r, "case", "?"),
				       .what = "training step",
				       .observed = fb_json_str(v, "why", "?"),
				       .gain = fb_json_str(move, "what", "")});
	}
}

static void part(struct fb_strbuf *b, const char *label, const char *text, const char *cls)
{
	if (!text || !*text)
		return;
	fb_strbuf_printf(b, "<span class=\"part\"><span class=\"label\">%s</span> ", label);
	rep_tag(b, cls, NULL, "%s", text);
	fb_strbuf_add(b, "</span> ");
}

size_t rep_findings(const json_t *doc, struct rep_finding v[REP_FINDINGS], size_t *all)
{
	struct findings f = {.n = 0};
	find_in_checks(&f, doc);
	find_in_results(&f, doc);
	find_in_errors(&f, doc);
	find_in_training(&f, doc);
	memcpy(v, f.v, f.n * sizeof(f.v[0]));
	*all = f.all;
	return f.n;
}

static void findings(struct fb_strbuf *b, const json_t *doc)
{
	struct findings f;
	f.n = rep_findings(doc, f.v, &f.all);
	if (f.n == 0)
		return;
	fb_strbuf_add(b, "<ol class=\"findings\">\n");
	for (size_t i = 0; i < f.n; i++) {
		const struct rep_finding *x = &f.v[i];
		fb_strbuf_printf(b, "<li class=\"rank%d\">", x->rank);
		rep_tag(b, "strong", NULL, "%s", x->what);
		if (x->where && *x->where)
			rep_tag(b, "span", "where", " %s", x->where);
		fb_strbuf_add(b, "<br/>");
		part(b, "observed", x->observed, "span");
		part(b, "expected", x->expected, "span");
		part(b, "by", x->source, "span");
		part(b, "costs", x->cost, "span");
		part(b, "do", x->command, "code");
		part(b, "which disturbs", x->disturbs, "span");
		part(b, "most to gain", x->gain, "span");
		fb_strbuf_add(b, "</li>\n");
	}
	fb_strbuf_add(b, "</ol>\n");
	if (f.all > f.n)
		rep_tag(b, "p", "quiet",
			"%zu more stand below, under Checks and Warnings and errors.", f.all - f.n);
}

/* ---- four figures ---------------------------------------------------------------------------- */

static void figure_tile(struct fb_strbuf *b, const struct rep_headline *h)
{
	char a[32], m[32], n[32];
	fb_strbuf_add(b, "<div class=\"tile\">");
	rep_tag(b, "div", "what", "%s", h->title);
	if (h->n == 0) {
		rep_tag(b, "div", "value none", "none");
		rep_tag(b, "div", "note", "not measured on hardware");
		fb_strbuf_add(b, "</div>\n");
		return;
	}
	fb_strbuf_add(b, "<div class=\"value\">");
	rep_text(b, "%s", rep_num(h->worst, a, sizeof(a)));
	rep_tag(b, "span", "unit", " %s worst", h->unit);
	fb_strbuf_add(b, "</div>");
	fb_strbuf_add(b, "<div class=\"note\">");
	rep_text(b, "median %s", rep_num(h->median, m, sizeof(m)));
	if (isfinite(h->bound))
		rep_text(b, ", bound %s", rep_num(h->bound, n, sizeof(n)));
	rep_text(b, ", n %zu", h->n);
	fb_strbuf_add(b, "</div></div>\n");
}

static void four_figures(struct fb_strbuf *b, const json_t *doc)
{
	struct rep_headline h[REP_HEADLINES];
	if (rep_headlines(doc, h) != 0) {
		b->failed = true;
		return;
	}
	fb_strbuf_add(b, "<div class=\"tiles four\">\n");
	for (size_t i = 0; i < REP_HEADLINES; i++)
		figure_tile(b, &h[i]);
	fb_strbuf_add(b, "</div>\n");
}

/* ---- since, versions ------------------------------------------------------------------------- */

static void since_line(struct fb_strbuf *b, const struct rep_since *s)
{
	if (!s->dir[0])
		return;
	fb_strbuf_add(b, "<p class=\"since\">");
	rep_tag(b, "strong", NULL, "Since the last accepted run");
	rep_text(b, " (%s, %.16s): ", s->dir, s->started);
	if (s->facts[0])
		rep_text(b, "another system: %s. ", s->facts);
	if (s->n_moved == 0)
		rep_text(b, "none of %zu metrics moved by more than its floor.", s->n_compared);
	for (size_t i = 0; i < s->n_moved && i < 3; i++)
		rep_text(b, "%s%s", i ? "; " : "", s->moved[i]);
	if (s->n_moved > 0)
		rep_text(b,
			"%s (%zu of %zu metrics; a change of one launch proves nothing: compare).",
			s->n_moved > 3 ? "; and more" : "", s->n_moved, s->n_compared);
	fb_strbuf_add(b, "</p>\n");
}

static void versions_line(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *tool = get(doc, "tool"), *v;
	const json_t *host = json_array_get(get(get(doc, "system"), "hosts"), 0);
	const char *name, *kernel = fb_json_str(get(host, "kernel"), "release", NULL);
	fb_strbuf_add(b, "<p class=\"quiet versions\">");
	const char *git = fb_json_str(tool, "git", "");
	rep_text(b, "fabricbench %s%s%s%s", fb_json_str(tool, "version", "?"), *git ? " (" : "",
		git, *git ? ")" : "");
	if (kernel)
		rep_text(b, " · kernel %s", kernel);
	json_object_foreach ((json_t *)get(host, "libraries"), name, v)
		if (json_is_string(v))
			rep_text(b, " · %s %s", name, json_string_value(v));
	rep_text(b, " · run %s", fb_json_str(get(doc, "run"), "id", "?"));
	fb_strbuf_add(b, "</p>\n");
}

void rep_html_first_screen(struct fb_strbuf *b, const struct rep_page *p)
{
	const json_t *v = get(p->doc, "verdict");
	const char *state =
		fb_json_str(v, "state", fb_json_str(get(p->doc, "run"), "outcome", "?"));
	const char *scope = fb_json_str(v, "scope", fb_json_str(get(p->doc, "plan"), "scope", ""));
	if (!v)
		scope = "One command's document: it carries an outcome, but no plan's verdict.";
	fb_strbuf_add(b, "<div class=\"verdict\">");
	rep_tag(b, "span", badge_class(state), "%s", state);
	fb_strbuf_add(b, "<span class=\"places\">");
	rep_html_places(b, p->doc);
	fb_strbuf_add(b, "</span>");
	rep_tag(b, "span", "scope", "%s", scope);
	fb_strbuf_add(b, "</div>\n");
	scope_line(b, p->doc);
	rep_html_reasons(b, p->doc);
	four_figures(b, p->doc);
	findings(b, p->doc);
	if (p->since)
		since_line(b, p->since);
	versions_line(b, p->doc);
}
