// SPDX-License-Identifier: Apache-2.0
/* An overlay as Markdown and as CSV. Every text of a document goes through a cell. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/csv.h"
#include "reports/markdown.h"
#include "reports/overlay.h"

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* What a run was: its plan's title, or its command. */
static const char *what_of(const json_t *doc)
{
	return fb_json_str(get(doc, "plan"), "title", fb_json_str(get(doc, "run"), "command", "?"));
}

static const char *state_of(const json_t *doc)
{
	return fb_json_str(
		get(doc, "verdict"), "state", fb_json_str(get(doc, "run"), "outcome", "?"));
}

/* The kinds of place of a run's results, by commas. */
static void places_of(const json_t *doc, struct fb_strbuf *b)
{
	json_t *seen = json_object();
	const json_t *r;
	const char *sep = "";
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		const char *where = fb_json_str(r, "where", "?");
		if (json_object_get(seen, where))
			continue;
		json_object_set_new_nocheck(seen, where, json_true());
		fb_strbuf_printf(b, "%s%s", sep, where);
		sep = ", ";
	}
	json_decref(seen);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void cell(FILE *out, const char *text)
{
	char cut[244];
	if (strlen(text) < 240) {
		fb_markdown_cell(out, text);
		return;
	}
	size_t n = 236;
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--; /* never in the middle of a character */
	snprintf(cut, sizeof(cut), "%.*s...", (int)n, text);
	fb_markdown_cell(out, cut);
}

/* One cell and the bar behind it. */
static void take_cell(FILE *out, struct fb_strbuf *b)
{
	char *s = fb_strbuf_take(b);
	cell(out, s ? s : "?");
	fputs(" | ", out);
	free(s);
}

static void heads(
	FILE *out, const struct overlay *o, const char *before, size_t from, const char *suffix)
{
	fputs(before, out);
	for (size_t i = from; i < o->n; i++) {
		fputs(" ", out);
		cell(out, o->run[i].label);
		fprintf(out, "%s |", suffix);
	}
}

static void md_runs(FILE *out, const struct overlay *o)
{
	fputs("| run | what | measured on | begun | ended | results | launches |\n"
	      "|---|---|---|---|---|---:|---:|\n",
		out);
	for (size_t i = 0; i < o->n; i++) {
		const json_t *doc = o->run[i].doc;
		struct fb_strbuf places = {0};
		places_of(doc, &places);
		fputs("| ", out);
		cell(out, o->run[i].label);
		fputs(" | ", out);
		cell(out, what_of(doc));
		fputs(" | ", out);
		take_cell(out, &places);
		cell(out, fb_json_str(get(doc, "run"), "started", "?"));
		fputs(" | ", out);
		cell(out, state_of(doc));
		fprintf(out, " | %zu | %zu |\n", json_array_size(get(doc, "results")),
			o->run[i].launches);
	}
	fputc('\n', out);
}

static void md_facts(FILE *out, const struct overlay *o)
{
	if (o->n_facts == 0)
		return;
	fputs("### Facts that differ\n\n", out);
	heads(out, o, "| fact | host |", 0, "");
	fputs(" compare |\n|---|---|", out);
	for (size_t i = 0; i < o->n; i++)
		fputs("---|", out);
	fputs("---|\n", out);
	for (size_t i = 0; i < o->n_facts; i++) {
		const struct overlay_fact *f = &o->fact[i];
		char name[160], hosts[60];
		overlay_fact_name(f, name, sizeof(name));
		fputs("| ", out);
		cell(out, name);
		fputs(" | ", out);
		fputs(overlay_hosts(f, hosts, sizeof(hosts)), out);
		fputs(" | ", out);
		for (size_t k = 0; k < o->n; k++) {
			struct fb_strbuf text = {0};
			overlay_cell(f, k, &text);
			take_cell(out, &text);
		}
		fputs(f->judged ? "refuses |\n" : "allows |\n", out);
	}
	if (o->facts_left)
		fprintf(out, "\n%zu more differ.\n", o->facts_left);
	fputc('\n', out);
}

static void md_row(FILE *out, const struct overlay *o, const struct overlay_row *r)
{
	char num[40], places[256];
	struct rep_scale_for s = rep_people_unit(r->m->base.first);
	fputs("| ", out);
	cell(out, r->m->name);
	fputs(" | ", out);
	cell(out, r->m->metric);
	fputs(" | ", out);
	cell(out, s.unit);
	fputs(" | ", out);
	for (size_t k = 0; k < o->n; k++)
		fprintf(out, "%s%s | ",
			rep_num(overlay_median(r->side[k]) * s.factor, num, sizeof(num)),
			r->side[k] && r->side[k]->invalid ? " INVALID" : "");
	for (size_t k = 1; k < o->n; k++)
		fprintf(out, "%s | ", overlay_ratio(&r->ratio[k], num, sizeof(num)));
	cell(out, overlay_places(o, r, places, sizeof(places)));
	fputs(" |\n", out);
}

static void md_values(FILE *out, const struct overlay *o)
{
	size_t shown = 0;
	if (o->shared == 0)
		return;
	fputs("### Side by side\n\nMedians of launches. A ratio is to ", out);
	cell(out, o->run[0].label);
	fputs(": Hodges-Lehmann's, with its 95 % interval where the launches allow one.\n\n", out);
	heads(out, o, "| case | metric | unit |", 0, "");
	heads(out, o, "", 1, ": ratio");
	fputs(" measured on |\n|---|---|---|", out);
	for (size_t i = 0; i + 1 < 2 * o->n; i++)
		fputs("---:|", out);
	fputs("---|\n", out);
	for (size_t i = 0; i < o->n_rows; i++)
		if (overlay_in_table(&o->row[i]) && shown++ < REP_MARKDOWN_ROWS)
			md_row(out, o, &o->row[i]);
	if (shown > REP_MARKDOWN_ROWS)
		fprintf(out, "\n%zu more rows stand in the documents.\n",
			shown - REP_MARKDOWN_ROWS);
	fputc('\n', out);
}

static void md_only(FILE *out, const struct overlay *o)
{
	struct overlay_only *v;
	size_t n = overlay_only(o, &v);
	if (n > 0)
		fputs("### Not in every run\n\n| what | metrics | only in | not in |\n"
		      "|---|---:|---|---|\n",
			out);
	for (size_t i = 0; i < n && i < REP_MARKDOWN_ROWS; i++) {
		struct fb_strbuf in = {0}, missing = {0};
		overlay_names(o, v[i].has, true, &in);
		overlay_names(o, v[i].has, false, &missing);
		fputs("| ", out);
		cell(out, v[i].what);
		fprintf(out, " | %zu | ", v[i].n);
		take_cell(out, &in);
		take_cell(out, &missing);
		fputc('\n', out);
	}
	if (n > REP_MARKDOWN_ROWS)
		fprintf(out, "\n%zu more kinds.\n", n - REP_MARKDOWN_ROWS);
	fputs(n > 0 ? "\n" : "", out);
	free(v);
}

int overlay_markdown(const struct overlay *o, FILE *out, struct fb_err *e)
{
	struct fb_strbuf why = {0};
	char *title = overlay_title(o);
	fputs("## ", out);
	cell(out, title ? title : "?");
	fprintf(out, ": **%s**\n\n", overlay_words(o));
	overlay_why(o, &why);
	char *text = fb_strbuf_take(&why);
	if (text)
		fb_markdown_cell(out, text);
	fputs("\n\n", out);
	md_runs(out, o);
	md_facts(out, o);
	md_values(out, o);
	md_only(out, o);
	free(title);
	free(text);
	return ferror(out) ? fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot write the Markdown page")
			   : 0;
}

/* ---- CSV: one line for each run, so that a column means the same in every file --------------- */

static void csv_runs(struct fb_strbuf *b, const struct overlay *o)
{
	fb_strbuf_add(b, "run,what,measured_on,begun,ended,version,results,launches");
	rep_csv_end(b);
	for (size_t i = 0; i < o->n; i++) {
		const json_t *doc = o->run[i].doc;
		struct fb_strbuf places = {0};
		places_of(doc, &places);
		rep_csv_text(b, true, o->run[i].label);
		rep_csv_text(b, false, what_of(doc));
		rep_csv_text(b, false, places.s);
		rep_csv_text(b, false, fb_json_str(get(doc, "run"), "started", ""));
		rep_csv_text(b, false, state_of(doc));
		rep_csv_text(b, false, fb_json_str(get(doc, "tool"), "version", ""));
		rep_csv_number(b, (double)json_array_size(get(doc, "results")));
		rep_csv_number(b, (double)o->run[i].launches);
		rep_csv_end(b);
		fb_strbuf_free(&places);
	}
}

static void csv_facts(struct fb_strbuf *b, const struct overlay *o)
{
	fb_strbuf_add(b, "fact,host,hosts,compare,metrics,run,value");
	rep_csv_end(b);
	for (size_t i = 0; i < o->n_facts; i++)
		for (size_t k = 0; k < o->n; k++) {
			const struct overlay_fact *f = &o->fact[i];
			struct fb_strbuf text = {0};
			overlay_cell(f, k, &text);
			rep_csv_text(b, true, f->name);
			rep_csv_number(b, f->host >= 0 ? (double)f->host : NAN);
			rep_csv_number(b, f->hosts > 0 ? (double)f->hosts : NAN);
			rep_csv_text(b, false, f->judged ? "refuses" : "allows");
			rep_csv_number(b, f->metrics ? (double)f->metrics : NAN);
			rep_csv_text(b, false, o->run[k].label);
			rep_csv_text(b, false, text.s);
			rep_csv_end(b);
			fb_strbuf_free(&text);
		}
}

static void csv_side(
	struct fb_strbuf *b, const struct overlay *o, const struct overlay_row *r, size_t run)
{
	const struct cmp_side *s = r->side[run];
	double lo = NAN, hi = NAN;
	for (size_t i = 0; i < s->n; i++) {
		lo = !(lo <= s->v[i]) ? s->v[i] : lo;
		hi = !(hi >= s->v[i]) ? s->v[i] : hi;
	}
	rep_csv_text(b, true, r->m->name);
	rep_csv_text(b, false, r->m->metric);
	rep_csv_text(b, false, r->m->unit);
	rep_csv_text(b, false, r->m->lower ? "lower" : "higher");
	rep_csv_text(b, false, o->run[run].label);
	rep_csv_text(b, false, fb_json_str(s->first, "where", ""));
	rep_csv_number(b, overlay_median(s));
	rep_csv_number(b, lo);
	rep_csv_number(b, hi);
	rep_csv_number(b, (double)s->n);
	rep_csv_number(b, r->ratio[run].est);
	rep_csv_number(b, r->ratio[run].valid ? r->ratio[run].lo : NAN);
	rep_csv_number(b, r->ratio[run].valid ? r->ratio[run].hi : NAN);
	rep_csv_text(b, false, s->invalid ? s->why : "");
	rep_csv_end(b);
}

static void csv_values(struct fb_strbuf *b, const struct overlay *o)
{
	fb_strbuf_add(b, "case,metric,unit,better,run,measured_on,median,lowest,highest,launches,"
			 "ratio_to_first,ratio_low,ratio_high,invalid");
	rep_csv_end(b);
	for (size_t i = 0; i < o->n_rows; i++)
		for (size_t k = 0; k < o->n; k++)
			if (o->row[i].side[k])
				csv_side(b, o, &o->row[i], k);
}

static void csv_only(struct fb_strbuf *b, const struct overlay *o)
{
	struct overlay_only *v;
	size_t n = overlay_only(o, &v);
	fb_strbuf_add(b, "what,metrics,run,has_it");
	rep_csv_end(b);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < o->n; k++) {
			rep_csv_text(b, true, v[i].what);
			rep_csv_number(b, (double)v[i].n);
			rep_csv_text(b, false, o->run[k].label);
			rep_csv_text(b, false, v[i].has[k] ? "yes" : "no");
			rep_csv_end(b);
		}
	free(v);
}

int overlay_csv(const struct overlay *o, const char *dir, struct fb_err *e)
{
	static const struct {
		const char *name;
		void (*text)(struct fb_strbuf *b, const struct overlay *o);
	} files[] = {{"runs.csv", csv_runs}, {"facts.csv", csv_facts}, {"values.csv", csv_values},
		{"only.csv", csv_only}};
	int rc = 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++) {
		char path[4200];
		struct fb_strbuf b = {0};
		snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		files[i].text(&b, o);
		rc = b.failed
			     ? fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to write %s", path)
			     : fb_write_file_atomic(path, b.s ? b.s : "", b.len, e);
		fb_strbuf_free(&b);
	}
	return rc;
}
