// SPDX-License-Identifier: Apache-2.0
/* See markdown.h. Every text of the document goes through cell(). */
#include "reports/markdown.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "reports/first_screen.h"
#include "reports/metric_groups.h"
#include "reports/report_priv.h"

#define CELL_MAX 240 /* bytes of one text: longer ones are cut */

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void cell(FILE *out, const char *text)
{
	char cut[CELL_MAX + 4];
	size_t n = strlen(text);
	if (n <= CELL_MAX) {
		fb_markdown_cell(out, text);
		return;
	}
	for (n = CELL_MAX; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
		n--; /* never in the middle of a character */
	snprintf(cut, sizeof(cut), "%.*s...", (int)n, text);
	fb_markdown_cell(out, cut);
}

/* ---- verdict, scope -------------------------------------------------------------------------- */

static void write_places(FILE *out, const json_t *doc)
{
	static const struct {
		const char *where, *text;
	} places[] = {{"hardware", "hardware"}, {"lab", "the lab (judges no hardware)"},
		{"cpu", "CPUs of one host (judges no fabric)"}, {"predicted", "a model"},
		{"imported", "another tool's figures"}};
	const char *sep = "";
	for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
		const json_t *r;
		size_t i, n = 0;
		json_array_foreach (get(doc, "results"), i, r)
			n += strcmp(fb_json_str(r, "where", ""), places[k].where) == 0;
		if (n > 0) {
			fprintf(out, "%s%s: %zu", *sep ? sep : "Results from ", places[k].text, n);
			sep = ", ";
		}
	}
	fputs(*sep ? ".\n" : "", out);
}

static void write_head(FILE *out, const json_t *doc)
{
	const json_t *v = get(doc, "verdict"), *run = get(doc, "run"), *plan = get(doc, "plan"), *c;
	const char *scope = fb_json_str(v, "scope", fb_json_str(plan, "scope", ""));
	size_t i, judged = 0, open = 0, hosts = json_array_size(get(get(doc, "system"), "hosts"));
	fputs("## ", out);
	cell(out, fb_json_str(plan, "title", fb_json_str(run, "command", "fabricbench")));
	fputs(": **", out);
	cell(out, fb_json_str(v, "state", fb_json_str(run, "outcome", "?")));
	fputs("**\n\n", out);
	/* A text of the document never begins a line: there it could be a heading or a list. */
	if (*scope) {
		fputs("Scope: ", out);
		cell(out, scope);
		fputs("\n\n", out);
	}
	json_array_foreach (get(doc, "checks"), i, c) {
		const char *state = fb_json_str(c, "state", "");
		bool skipped = strcmp(state, "skip") == 0 || strcmp(state, "error") == 0;
		judged += !skipped;
		open += skipped;
	}
	fprintf(out, "%zu %s, %zu checks judged", hosts, hosts == 1 ? "host" : "hosts", judged);
	if (open)
		fprintf(out, ", %zu not (skipped or in error)", open);
	fputs(". ", out);
	write_places(out, doc);
	fputc('\n', out);
	json_array_foreach (get(v, "reasons"), i, c) {
		fputs("- ", out);
		cell(out, json_string_value(c) ? json_string_value(c) : "?");
		fputc('\n', out);
	}
	if (json_array_size(get(v, "reasons")) > 0)
		fputc('\n', out);
}

/* ---- findings, parts ------------------------------------------------------------------------- */

static void say(FILE *out, const char *before, const char *text, const char *after)
{
	if (!text || !*text)
		return;
	fputs(before, out);
	cell(out, text);
	fputs(after, out);
}

static void write_findings(FILE *out, const json_t *doc)
{
	struct rep_finding v[REP_FINDINGS];
	size_t all, n = rep_findings(doc, v, &all);
	if (n == 0)
		return;
	fputs("### Findings\n\n", out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%zu. ", i + 1);
		say(out, "**", v[i].what, "**");
		say(out, " at ", v[i].where, "");
		say(out, ": ", v[i].observed, "");
		say(out, "; expected ", v[i].expected, "");
		say(out, " (", v[i].source, ")");
		say(out, "; costs ", v[i].cost, "");
		say(out, "; do: ", v[i].command, "");
		say(out, ", which disturbs: ", v[i].disturbs, "");
		say(out, "; most to gain: ", v[i].gain, "");
		fputc('\n', out);
	}
	if (all > n)
		fprintf(out, "\n%zu more stand in the document.\n", all - n);
	fputc('\n', out);
}

static void write_parts(FILE *out, const json_t *doc)
{
	const json_t *p, *parts = get(get(doc, "plan"), "parts");
	size_t i, complete = 0;
	json_array_foreach (parts, i, p)
		complete += strcmp(fb_json_str(p, "state", ""), "complete") == 0;
	if (complete == json_array_size(parts))
		return;
	fprintf(out,
		"### Parts\n\n%zu of %zu complete. The others:\n\n"
		"| job | launch | state | why |\n|---|---:|---|---|\n",
		complete, json_array_size(parts));
	json_array_foreach (parts, i, p) {
		if (strcmp(fb_json_str(p, "state", ""), "complete") == 0)
			continue;
		say(out, "| ", fb_json_str(p, "job", "?"), "");
		fprintf(out, " | %lld", (long long)fb_json_int(p, "launch", 0));
		say(out, " | ", fb_json_str(p, "state", "?"), " | ");
		cell(out, fb_json_str(p, "reason", ""));
		fputs(" |\n", out);
	}
	fputc('\n', out);
}

/* ---- results --------------------------------------------------------------------------------- */

/* The worst validity of a group. */
static const char *trust(const struct rep_group *g)
{
	const char *worst = "";
	for (size_t i = 0; i < g->n; i++) {
		const char *s = fb_json_str(get(g->r[i], "validity"), "state", "valid");
		if (strcmp(s, "invalid") == 0)
			return "INVALID";
		if (strcmp(s, "suspect") == 0)
			worst = "suspect";
	}
	return worst;
}

static void write_row(FILE *out, const struct rep_group *g)
{
	char a[32], lo[32], hi[32];
	const json_t *r = g->r[0];
	struct rep_scale_for s = rep_people_unit(r);
	struct rep_summary sum;
	double bound = fb_json_num(get(r, "bound"), "value", NAN);
	rep_group_summary(g, &sum);
	fputs("| ", out);
	cell(out, fb_json_str(r, "job", ""));
	fputs(" | ", out);
	cell(out, fb_json_str(r, "case", "?"));
	say(out, " on ", fb_json_str(get(r, "params"), "device", ""), "");
	fputs(" | ", out);
	cell(out, fb_json_str(r, "metric", "?"));
	fprintf(out, " | %s ", rep_num(sum.median * s.factor, a, sizeof(a)));
	cell(out, s.unit);
	if (sum.n > 1)
		fprintf(out, " | %s to %s", rep_num(sum.lo * s.factor, lo, sizeof(lo)),
			rep_num(sum.hi * s.factor, hi, sizeof(hi)));
	else
		fputs(" | ", out);
	fprintf(out, " | %zu", sum.n);
	if (isfinite(bound) && bound > 0 && isfinite(sum.median))
		fprintf(out, " | %.1f %%", 100 * sum.median / bound);
	else
		fputs(" | ", out);
	fputs(" | ", out);
	cell(out, fb_json_str(r, "where", "?"));
	fprintf(out, "%s%s |\n", rep_is_loopback(r) ? ", loopback" : "",
		*trust(g) ? (strcmp(trust(g), "suspect") == 0 ? ", suspect" : ", INVALID") : "");
}

static int write_results(FILE *out, const json_t *doc, struct fb_err *e)
{
	struct rep_groups g;
	int rc = rep_groups_make(doc, &g, e);
	if (rc != 0 || g.n == 0)
		return rc;
	fputs("### Results\n\n"
	      "| job | case | metric | median | launches' extremes | launches | of bound | measured "
	      "on |\n"
	      "|---|---|---|---:|---:|---:|---:|---|\n",
		out);
	for (size_t i = 0; i < g.n && i < REP_MARKDOWN_ROWS; i++)
		write_row(out, &g.v[i]);
	if (g.n > REP_MARKDOWN_ROWS)
		fprintf(out, "\n%zu more rows stand in the document.\n", g.n - REP_MARKDOWN_ROWS);
	fputc('\n', out);
	rep_groups_free(&g);
	return 0;
}

int rep_markdown(FILE *out, const json_t *doc, const char *data, struct fb_err *e)
{
	const json_t *tool = get(doc, "tool"), *run = get(doc, "run");
	write_head(out, doc);
	write_findings(out, doc);
	write_parts(out, doc);
	int rc = write_results(out, doc, e);
	if (rc != 0)
		return rc;
	fputs("fabricbench ", out);
	cell(out, fb_json_str(tool, "version", "?"));
	say(out, " (", fb_json_str(tool, "git", ""), ")");
	say(out, ", run ", fb_json_str(run, "id", ""), "");
	say(out, ", begun ", fb_json_str(run, "started", ""), "");
	say(out, ", from ", data, "");
	fputs("\n", out);
	return ferror(out) ? fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot write the Markdown page")
			   : 0;
}
