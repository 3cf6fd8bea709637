// SPDX-License-Identifier: Apache-2.0
/*
 * The command: a run directory or one result document in, plots and the page out. It measures
 * nothing and needs nothing but the files; gnuplot is used where it is.
 */
#include "reports/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"
#include "reports/charts.h"
#include "reports/first_screen.h"
#include "reports/history.h"
#include "reports/junit.h"
#include "reports/loss.h"
#include "reports/markdown.h"
#include "reports/overlay.h"
#include "reports/png.h"
#include "reports/prometheus.h"
#include "reports/report_priv.h"

struct report_cfg {
	char *input, *output;
	struct fb_opt_list beside, labels, with;
	bool plots_only;
	char *history;
	bool json;
	int format;
	char *prometheus, *junit;
};

enum format { FORMAT_NONE, FORMAT_HTML, FORMAT_MD, FORMAT_PNG };
static const char *const format_names[] = {"auto", "html", "md", "png", NULL};
/* What each is written to. */
static const char *const extensions[] = {".html", ".html", ".md", ".png"};

static const struct fb_opt report_opts[] = {
	{.name = "input",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct report_cfg, input),
		.arg = "DIR|FILE",
		.help = "a run directory (with run.json), or one result document",
		.positional = true},
	{.name = "beside",
		.type = FB_OPT_LIST,
		.offset = offsetof(struct report_cfg, beside),
		.arg = "DIR|FILE",
		.help = "further runs, to be laid over the first: what differs between them, one chart "
			"for each kind of result, the values side by side",
		.positional = true,
		.whole = true},
	{.name = "label",
		.type = FB_OPT_LIST,
		.offset = offsetof(struct report_cfg, labels),
		.arg = "NAME,...",
		.help = "with several runs: what to call them, in order, instead of their folders' names"},
	{.letter = 'o',
		.name = "output",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct report_cfg, output),
		.arg = "FILE",
		.help = "the page: DIR/report.html, or FILE with .html instead of .json, by default; "
			"of several runs overlay.html in the first DIR"},
	{.name = "format",
		.type = FB_OPT_ENUM,
		.offset = offsetof(struct report_cfg, format),
		.arg = "FORMAT",
		.help = "html: the page with its plots; md: one page of Markdown, for a pull request "
			"or a mail; png: an overview for a slide, and each chart; auto is html, or "
			"none beside --prometheus and --junit",
		.def = "auto",
		.names = format_names},
	{.name = "prometheus",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct report_cfg, prometheus),
		.arg = "FILE",
		.help = "metrics for the node exporter's textfile collector, FILE.prom; no page unless "
			"-o or --format asks for one"},
	{.name = "junit",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct report_cfg, junit),
		.arg = "FILE",
		.help = "parts, checks, results and errors as JUnit XML; no page unless -o or --format "
			"asks for one"},
	{.name = "with",
		.type = FB_OPT_LIST,
		.offset = offsetof(struct report_cfg, with),
		.arg = "FILE,...",
		.help = "further documents whose results belong beside these: training steps at the "
			"rates of a loss sweep"},
	{.name = "plots-only",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct report_cfg, plots_only),
		.help = "write the plots' folder, and no page"},
	{.name = "history",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct report_cfg, history),
		.arg = "DIR",
		.help = "instead of a page: where the levels of the metrics changed over the runs and documents in DIR"},
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct report_cfg, json),
		.help = "with --history: one JSON object on stdout instead of the table"},
	{0},
};

static const char report_notes[] =
	"The plots of a run directory are in DIR/plots; those of one document, or of a page that -o\n"
	"puts elsewhere, are beside the page (report.plots for report.html). Each figure has\n"
	"ID.dat (tab-separated, its units in its first lines), ID.csv, ID.gp (a script to restyle and run\n"
	"again: gnuplot ID.gp, or gnuplot -e 'png = 2' ID.gp for ID.png of twice its size) and ID.svg.\n"
	"Without gnuplot there are no pictures, and the page says so. results.csv and checks.csv there are\n"
	"the page's other tables.\n"
	"\n"
	"--format png writes report.png (FILE.png), 1920 x 1080: verdict, scope, the four figures, up to\n"
	"three charts and three findings; and ID.png of every chart beside its ID.svg, twice its size. The\n"
	"paths are printed, the overview's first. With --plots-only: the charts alone. It needs gnuplot.\n"
	"\n"
	"--format md writes report.md (FILE.md), to the standard output with -o -. --prometheus is "
	"replaced\n"
	"in one step, as the collector needs it; it has no run id and no host name, which would make "
	"every\n"
	"run a new series.\n"
	"\n"
	"Several runs (InfiniBand against RoCE, before against after) become one page with a curve per\n"
	"run. It lists the facts in which they differ, hardware, firmware, MTU, link layer, versions,\n"
	"options, and calls itself \"not like for like\" if any does. Ratios are to the first run, with\n"
	"their interval where launches allow one; the verdict is compare's. runs.csv, facts.csv,\n"
	"values.csv and only.csv beside the plots are its tables.\n"
	"\n"
	"--history DIR: one value for each metric and run, and where its level changed (E-divisive,\n"
	"confirmed by Mann-Whitney at 0.001 and by compare's floors). Advisory.\n"
	"\n"
	"Exit status: 0 written; 2 the input cannot be read; 3 the output cannot be written; 77 --format png\n"
	"without gnuplot.";

static struct fb_opt_spec make_spec(struct report_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "report",
		.usage = "DIR|FILE [DIR|FILE ...] [options]",
		.summary =
			"Make plots and one self-contained HTML page, or texts for machines, from a run's or a command's results.",
		.notes = report_notes,
		.sets = {{"Options", report_opts, cfg}},
	};
}

struct paths {
	bool is_dir;
	char doc[4096], html[4096], plots[4096];
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* path without the extension, plus another. */
static int with_extension(const char *path, const char *old, const char *ext, char *buf, size_t len)
{
	size_t n = strlen(path), k = strlen(old);
	if (n > k && strcmp(path + n - k, old) == 0)
		n -= k;
	return snprintf(buf, len, "%.*s%s", (int)n, path, ext) < (int)len ? 0 : -ENAMETOOLONG;
}

static int find_paths(const struct report_cfg *cfg, struct paths *p, struct fb_err *e)
{
	struct stat st;
	const char *ext = extensions[cfg->format];
	if (!cfg->input)
		return fb_fail_usage(e, "report: of what? Usage: fabricbench report DIR|FILE");
	if (stat(cfg->input, &st) != 0) {
		fb_fail_usage(e, "cannot read %s: %s", cfg->input, strerror(errno));
		fb_hint(e,
			"give a run directory that `fabricbench run` made, or a document that a command's -o wrote");
		return e->code;
	}
	p->is_dir = S_ISDIR(st.st_mode);
	int n = p->is_dir ? snprintf(p->doc, sizeof(p->doc), "%s/run.json", cfg->input)
			  : snprintf(p->doc, sizeof(p->doc), "%s", cfg->input);
	int rc = n < (int)sizeof(p->doc) ? 0 : -ENAMETOOLONG;
	if (rc == 0 && cfg->output)
		rc = snprintf(p->html, sizeof(p->html), "%s", cfg->output) < (int)sizeof(p->html)
			     ? 0
			     : -ENAMETOOLONG;
	else if (rc == 0 && p->is_dir)
		rc = snprintf(p->html, sizeof(p->html), "%s/report%s", cfg->input, ext) <
				     (int)sizeof(p->html)
			     ? 0
			     : -ENAMETOOLONG;
	else if (rc == 0)
		rc = with_extension(cfg->input, ".json", ext, p->html, sizeof(p->html));
	if (rc == 0 && p->is_dir && !cfg->output)
		rc = snprintf(p->plots, sizeof(p->plots), "%s/plots", cfg->input) <
				     (int)sizeof(p->plots)
			     ? 0
			     : -ENAMETOOLONG;
	else if (rc == 0)
		rc = with_extension(p->html, ext, ".plots", p->plots, sizeof(p->plots));
	if (rc != 0)
		return fb_fail_usage(e, "report %s: the path is too long", cfg->input);
	return 0;
}

static int join_others(json_t *doc, const struct fb_opt_list *with, struct fb_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < with->n && rc == 0; i++) {
		json_t *other = fb_doc_load(with->v[i], e);
		rc = other ? rep_loss_join(doc, other, e) : e->code;
		json_decref(other);
	}
	return rc;
}

/* The run directory of p, or "" for a lone document. */
static const char *base_of(const struct paths *p, char *buf, size_t len)
{
	if (p->is_dir)
		snprintf(buf, len, "%.*s", (int)(strlen(p->doc) - strlen("/run.json")), p->doc);
	else
		buf[0] = '\0';
	return buf;
}

static int make_page(
	const struct rep_charts *c, const struct paths *p, const json_t *doc, struct fb_err *e)
{
	char base[4096];
	struct fb_strbuf b = {0};
	base_of(p, base, sizeof(base));
	struct rep_since since;
	rep_since_find(p->is_dir ? base : NULL, doc, &since);
	struct rep_page page = {.doc = doc,
		.since = &since,
		.figures = &c->figures,
		.maps = &c->maps,
		.incasts = &c->incasts,
		.losses = &c->losses,
		.training = &c->training,
		.base = p->is_dir ? base : NULL,
		.data_name = base_name(p->doc),
		.plots_name = base_name(p->plots),
		.no_plots = c->why[0] ? c->why : NULL};
	rep_html(&b, &page);
	return rep_write_page(&b, p->html, e);
}

static int make_html(
	const struct report_cfg *cfg, const struct paths *p, const json_t *doc, struct fb_err *e)
{
	struct rep_charts c;
	int rc = rep_charts_make(&c, doc, p->plots, e);
	if (rc == 0 && !cfg->plots_only)
		rc = make_page(&c, p, doc, e);
	if (rc == 0)
		printf("%s\n", cfg->plots_only ? p->plots : p->html);
	rep_charts_free(&c);
	return rc;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Everything is tried; *e is the first failure. */
static int draw_png(const struct report_cfg *cfg, const struct paths *p, const json_t *doc,
	const struct rep_chart *v, size_t n, struct fb_err *e)
{
	char base[4096], path[4400];
	struct rep_since since;
	struct fb_err two = {0};
	int rc = rep_png_charts(v, n, p->plots, e);
	base_of(p, base, sizeof(base));
	rep_since_find(p->is_dir ? base : NULL, doc, &since);
	int over =
		cfg->plots_only ? 0 : rep_png_overview(doc, &since, v, n, p->plots, p->html, &two);
	if (over == 0 && !cfg->plots_only)
		printf("%s\n", p->html);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s.png", p->plots, v[i].f->id);
		if (access(path, R_OK) == 0)
			printf("%s\n", path);
	}
	if (rc == 0 && over != 0)
		*e = two;
	return rc ? rc : over;
}

static int make_png(
	const struct report_cfg *cfg, const struct paths *p, const json_t *doc, struct fb_err *e)
{
	struct rep_charts c;
	size_t n = 0;
	int rc = rep_png_able(e);
	if (rc != 0)
		return rc;
	rc = rep_charts_make(&c, doc, p->plots, e);
	struct rep_chart *v = rc == 0 ? rep_charts_list(&c, &n) : NULL;
	if (v)
		rc = draw_png(cfg, p, doc, v, n, e);
	else if (rc == 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the list of charts");
	if (rc == 0 && c.why[0]) /* said when it happened */
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"not every chart could be drawn: the reason stands above");
	free(v);
	rep_charts_free(&c);
	return rc;
}

/* ---- for machines and pull requests ---------------------------------------------------------- */

static int write_prometheus(const char *path, const json_t *doc, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	int rc = rep_prometheus(&b, doc, e);
	size_t n = b.len;
	char *text = fb_strbuf_take(&b);
	if (rc == 0)
		rc = text ? fb_write_file_atomic(path, text, n, e)
			  : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	free(text);
	return rc;
}

#define NO_PICTURES "--plots-only makes pictures, and Markdown has none: leave one of them out"

enum text_kind { MARKDOWN, JUNIT };

static int write_text(enum text_kind kind, const char *path, const json_t *doc, const char *data,
	struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	if (kind == JUNIT)
		rep_junit(f, doc);
	else
		rc = rep_markdown(f, doc, data, e);
	if (fclose(f) != 0 && rc == 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	if (rc == 0 && strcmp(path, "-") == 0)
		rc = fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0
			     ? 0
			     : fb_fail(e, FB_EXIT_UNMEASURED, EIO,
				       "cannot write to the standard output");
	else if (rc == 0)
		rc = fb_write_file_atomic(path, text, len, e);
	free(text);
	return rc;
}

#define NOT_JSON "--json is for --history: the document itself is JSON"

/* Pages and pictures have folders beside them: no place for those beside the standard output. */
static bool no_file(const struct report_cfg *cfg)
{
	return cfg->output && strcmp(cfg->output, "-") == 0;
}

static int make_report(const struct report_cfg *cfg, struct fb_err *e)
{
	struct paths p = {0};
	bool machines = cfg->prometheus || cfg->junit;
	bool md = cfg->format == FORMAT_MD;
	bool png = cfg->format == FORMAT_PNG;
	bool html = !md && !png &&
		    (!machines || cfg->format == FORMAT_HTML || cfg->output || cfg->plots_only);
	if (cfg->labels.n > 0)
		return fb_fail_usage(e, "--label names several runs: give them as arguments");
	if (cfg->json)
		return fb_fail_usage(e, NOT_JSON);
	if ((png || html) && no_file(cfg))
		return fb_fail_usage(e,
			"--format %s makes several files: name the %s with -o FILE.%s",
			png ? "png" : "html", png ? "overview's" : "page's", png ? "png" : "html");
	if (md && cfg->plots_only)
		return fb_fail_usage(e, NO_PICTURES);
	int rc = find_paths(cfg, &p, e);
	if (rc != 0)
		return rc;
	json_t *doc = fb_doc_load(p.doc, e);
	if (!doc) {
		if (p.is_dir)
			fb_hint(e,
				"a run directory holds run.json; `fabricbench run PLAN -o DIR` makes one");
		return e->code;
	}
	rc = join_others(doc, &cfg->with, e);
	if (rc == 0 && html)
		rc = make_html(cfg, &p, doc, e);
	if (rc == 0 && png)
		rc = make_png(cfg, &p, doc, e);
	if (rc == 0 && md)
		rc = write_text(MARKDOWN, p.html, doc, base_name(p.doc), e);
	if (rc == 0 && md && strcmp(p.html, "-") != 0)
		printf("%s\n", p.html);
	if (rc == 0 && cfg->junit)
		rc = write_text(JUNIT, cfg->junit, doc, base_name(p.doc), e);
	if (rc == 0 && cfg->prometheus)
		rc = write_prometheus(cfg->prometheus, doc, e);
	json_decref(doc);
	return rc;
}

/* Several runs: their own page, for people alone. */
static int lay_over(const struct report_cfg *cfg, struct fb_err *e)
{
	const char *path[ALIKE_MAX] = {cfg->input};
	size_t n = cfg->beside.n + 1;
	const char *of_one = cfg->with.n > 0             ? "--with"
			     : cfg->prometheus           ? "--prometheus"
			     : cfg->junit                ? "--junit"
			     : cfg->format == FORMAT_PNG ? "--format png"
							 : NULL;
	if (of_one)
		return fb_fail_usage(e, "%s takes one run, and %zu are given", of_one, n);
	if (n > ALIKE_MAX)
		return fb_fail_usage(
			e, "%zu runs: at most %d can be told apart in one picture", n, ALIKE_MAX);
	if (cfg->labels.n > 0 && cfg->labels.n != n)
		return fb_fail_usage(e, "--label: %zu names for %zu runs", cfg->labels.n, n);
	if (cfg->format == FORMAT_MD && cfg->plots_only)
		return fb_fail_usage(e, NO_PICTURES);
	if (cfg->json)
		return fb_fail_usage(e, NOT_JSON);
	if (cfg->format != FORMAT_MD && no_file(cfg))
		return fb_fail_usage(e,
			"the page has a folder beside it: name it with -o FILE.html, or give "
			"--format md");
	for (size_t i = 1; i < n; i++)
		path[i] = cfg->beside.v[i - 1];
	struct overlay_cfg all = {.path = path,
		.label = cfg->labels.n > 0 ? cfg->labels.v : NULL,
		.n = n,
		.output = cfg->output,
		.markdown = cfg->format == FORMAT_MD,
		.plots_only = cfg->plots_only};
	return overlay_report(&all, e);
}

static int print_history(const struct report_cfg *cfg, struct fb_err *e)
{
	struct history h;
	if (cfg->input || cfg->output || cfg->plots_only || cfg->format || cfg->prometheus ||
		cfg->junit || cfg->labels.n > 0 || cfg->with.n > 0)
		return fb_fail_usage(e, "--history makes no page: give nothing but --json besides");
	int rc = history_load(cfg->history, &h, e);
	if (rc != 0)
		return rc;
	if (!cfg->json) {
		history_print(&h, stdout);
	} else {
		json_t *o = history_json(&h, cfg->history);
		if (json_dumpf(o, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot write the JSON object");
		putchar('\n');
		json_decref(o);
	}
	history_free(&h);
	return rc;
}

static int report_main(int argc, char **argv)
{
	struct report_cfg cfg = {0};
	struct fb_err e = {0};
	struct fb_opt_spec spec = make_spec(&cfg);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = cfg.history        ? print_history(&cfg, &e)
		     : cfg.beside.n > 0 ? lay_over(&cfg, &e)
					: make_report(&cfg, &e);
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

const struct fb_cmd report_cmd = {
	.name = "report",
	.summary = "plots and one HTML page from a run's results",
	.run = report_main,
};
