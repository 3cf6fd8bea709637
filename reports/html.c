// SPDX-License-Identifier: Apache-2.0
/*
 * The page: one self-contained HTML file, no scripts, nothing loaded from elsewhere. Every text of
 * the document is escaped; every element is closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "embed.h"
#include "reports/chain.h"
#include "reports/claims.h"
#include "reports/first_screen.h"
#include "reports/incast.h"
#include "reports/loss.h"
#include "reports/pairs.h"
#include "reports/report_priv.h"
#include "reports/training.h"

/* The order in which figures meet the reader; Topology stands between System and these. */
static const struct {
	const char *name;
	const char *missing; /* why a section that every report has is empty; NULL: leave it out */
} sections[] = {
	{"RDMA",
		"No RDMA result in this document: none was asked for, or none could be measured (see Parts and Errors)."},
	{"Collectives",
		"No collective in this document: none was asked for, or none could be measured (see Parts and Errors)."},
	{"Training", NULL},
	{"Memory", NULL},
	{"Other", NULL},
};

void rep_html_head(struct fb_strbuf *b, const char *title, const char *cls)
{
	fb_strbuf_add(b,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\"/>\n");
	rep_tag(b, "title", NULL, "%s: fabricbench report", title);
	fb_strbuf_add(b, "\n<style>\n");
	fb_strbuf_add(b, (const char *)fb_embed_reports_report_css);
	fb_strbuf_printf(b, "</style>\n</head>\n<body class=\"%s\">\n", cls);
}

static void header(struct fb_strbuf *b, const struct rep_page *p, const char *title)
{
	const json_t *doc = p->doc;
	const json_t *run = json_object_get(doc, "run");
	const json_t *hosts = json_object_get(json_object_get(doc, "system"), "hosts"), *h;
	size_t i;
	fb_strbuf_add(b, "<header>\n");
	rep_tag(b, "h1", NULL, "%s", title);
	fb_strbuf_add(b, "\n<p class=\"quiet\">");
	rep_text(b, "%.16s UTC", fb_json_str(run, "started", "?"));
	json_array_foreach (hosts, i, h) {
		if (i == 4) {
			rep_text(b, " and %zu more", json_array_size(hosts) - i);
			break;
		}
		rep_text(b, "%s%s", i ? ", " : " · ", fb_json_str(h, "name", "?"));
	}
	fb_strbuf_add(b, "</p>\n");
	rep_html_first_screen(b, p);
	fb_strbuf_add(b, "</header>\n");
}

static bool has_values(const json_t *doc, const char *section)
{
	const json_t *r;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		if (!json_is_integer(json_object_get(json_object_get(r, "params"), "size")) &&
			strcmp(rep_section_of(r), section) == 0 && !rep_loss_result(r))
			return true;
	}
	return false;
}

static bool has_figures(const struct rep_figures *f, const char *section)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].section, section) == 0)
			return true;
	return false;
}

/* Arithmetic on a file of claims: no fabric was asked for. */
static bool only_claims(const json_t *doc)
{
	return json_object_get(doc, "claims") && !json_object_get(doc, "plan") &&
	       json_array_size(json_object_get(doc, "results")) == 0;
}

static void all_sections(struct fb_strbuf *b, const struct rep_page *p)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		const char *name = sections[i].name;
		bool any = has_figures(p->figures, name) || has_values(p->doc, name);
		if (!any && (!sections[i].missing ||
				    (i == 0 && (json_object_get(p->doc, "pairs") ||
						       json_object_get(p->doc, "loss"))) ||
				    only_claims(p->doc)))
			continue;
		rep_tag(b, "h2", NULL, "%s", name);
		fb_strbuf_add(b, "\n");
		if (!any)
			rep_tag(b, "p", "quiet", "%s", sections[i].missing);
		if (strcmp(name, "Training") == 0)
			rep_html_training(b, p);
		rep_html_figures(b, p, name);
		rep_html_values(b, p->doc, name);
	}
}

static void method(struct fb_strbuf *b)
{
	rep_tag(b, "h2", NULL, "Method");
	fb_strbuf_add(b, "<ul class=\"method\">\n<li>");
	rep_text(b,
		"A launch is one set of new processes, queue pairs and communicators, and the unit of replication. A run is one invocation of a command or plan. An iteration is never a unit of replication: figures of one launch carry no statement about the next.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"Percentiles are nearest-rank values of the merged histograms of all launches, never averages of percentiles. One is given only with at least 10/(1-q) samples (p99: 1,000; p99.9: 10,000). The band's edges p5 and p99 in a picture follow the samples there are; n stands beside them.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"Histograms have 2^%d buckets per power of two: a value read from one is wrong by at most 0.4 %%. Minimum, maximum and count are exact.",
		FB_HIST_SUB_BITS);
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"Rates are total work over total time of a launch. Several launches are shown by their median, lowest and highest. 1 GB/s is 10^9 bytes/s, 1 Gb/s is 10^9 bits/s; sizes are powers of 1024.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"A closed loop starts an operation when the last one has ended: it shows the idle fabric, and its tail is not the tail under load.");
	fb_strbuf_add(b, "</li>\n<li>");
	rep_text(b,
		"A bound is physical: line rate times header efficiency, PCIe, or memory. A figure more than 1 %% over it is invalid. Figures from the lab, loopback or the CPU have no hardware bound and stand in no headline.");
	fb_strbuf_add(b, "</li>\n</ul>\n");
}

static void footer(struct fb_strbuf *b, const struct rep_page *p)
{
	const json_t *tool = json_object_get(p->doc, "tool"), *run = json_object_get(p->doc, "run");
	const json_t *argv = json_object_get(run, "argv"), *w;
	size_t i;
	fb_strbuf_add(b, "<footer>\n<table class=\"facts\">\n");
	rep_fact(b, "Tool", "%s %s (%s), compiled by %s %s", fb_json_str(tool, "name", "?"),
		fb_json_str(tool, "version", "?"), fb_json_str(tool, "git", "no git"),
		fb_json_str(tool, "compiler", "?"), fb_json_str(tool, "cflags", ""));
	rep_fact(b, "Run", "%s, %s", fb_json_str(run, "id", "?"), fb_json_str(run, "outcome", "?"));
	rep_fact(b, "Time", "%s to %s", fb_json_str(run, "started", "?"),
		fb_json_str(run, "ended", "?"));
	struct fb_strbuf line = {0};
	json_array_foreach (argv, i, w)
		fb_strbuf_printf(&line, "%s%s", i ? " " : "", json_string_value(w));
	if (line.s)
		rep_fact(b, "Command line", "%s", line.s);
	fb_strbuf_free(&line);
	rep_fact(b, "Data", "%s (schema %s), pictures and their data in %s/", p->data_name,
		fb_json_str(p->doc, "schema", "?"), p->plots_name);
	fb_strbuf_add(b, "</table>\n</footer>\n");
}

void rep_html(struct fb_strbuf *b, const struct rep_page *p)
{
	const char *command = fb_json_str(json_object_get(p->doc, "run"), "command", "run");
	const char *title = fb_json_str(json_object_get(p->doc, "plan"), "title", command);
	rep_html_head(b, title, "one-run");
	header(b, p, title);
	struct rep_chain chain;
	rep_chain_make(p->doc, &chain);
	fb_strbuf_add(b, "<main>\n");
	rep_html_chain(b, &chain);
	rep_html_messages(b, p->doc);
	rep_html_parts(b, p->doc);
	rep_html_checks(b, p->doc);
	rep_html_system(b, p->doc);
	rep_html_topology(b, p->base);
	if (p->no_plots)
		rep_tag(b, "p", "notice", "%s.", p->no_plots);
	rep_html_pairs(b, p->doc, p->maps, p->no_plots);
	rep_html_incasts(b, p->incasts, p->no_plots);
	rep_html_losses(b, p->losses, p->no_plots);
	all_sections(b, p);
	rep_html_claims(b, p->doc);
	rep_html_rates(b, p->doc);
	method(b);
	fb_strbuf_add(b, "</main>\n");
	footer(b, p);
	fb_strbuf_add(b, "</body>\n</html>\n");
}

int rep_write_page(struct fb_strbuf *b, const char *path, struct fb_err *e)
{
	size_t n = b->len;
	char *text = fb_strbuf_take(b);
	int rc = text ? fb_write_file_atomic(path, text, n, e)
		      : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the page %s", path);
	free(text);
	return rc;
}
