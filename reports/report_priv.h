/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share: results gathered into figures. A figure is data: it is
 * written as .dat and .gp, drawn by gnuplot as .svg, and shown in the page with a table of exactly
 * the points it drew.
 */
#ifndef REPORTS_REPORT_PRIV_H
#define REPORTS_REPORT_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/hist.h"
#include "bench/core/strbuf.h"

enum rep_kind {
	REP_BAND, /* a time in ns against size: median, with the band from p5 to p99 */
	REP_RATE, /* a rate against size: value, with the launches' extremes */
	REP_TAIL, /* share of samples above a time: one curve per series, at one size */
};

struct rep_row {
	uint64_t size;
	struct fb_hist *hist; /* REP_BAND, REP_TAIL: all launches merged */
	double *values;       /* REP_RATE: one per launch */
	size_t n;             /* launches */
	uint64_t samples;     /* iterations behind the row */
	double bound;         /* in the metric's unit; 0: none */
	int valid;            /* worst validity: 0 valid, 1 suspect, 2 invalid */
};

struct rep_series {
	char label[160];
	struct rep_row *rows; /* ascending by size */
	size_t n;
};

struct rep_figure {
	char id[96];      /* file name: letters, digits, '-' */
	char section[24]; /* "RDMA", "Collectives", ... */
	char title[200];
	char bench[64]; /* the result's case up to its first '/' */
	char metric[40];
	char unit[16];  /* of the metric in the document: "ns", "bytes/s", "1/s" */
	char where[24]; /* what it was measured on; "mixed" when the series differ */
	char op[40];    /* figures of times are split by operation */
	char load[16];
	enum rep_kind kind;
	struct rep_series *series;
	size_t n;
	uint64_t at_size; /* REP_TAIL */
	char svg[4096];   /* drawn file, "" when gnuplot could not */
};

struct rep_figures {
	struct rep_figure *v;
	size_t n;
};

/* figures.c */
int rep_figures_build(const json_t *doc, struct rep_figures *f, struct fb_err *e) FB_MUST_CHECK;
void rep_figures_free(struct rep_figures *f);
/* Value of a row as drawn, in the unit of rep_axis(): median time in us, rate in Gb/s or GB/s. NAN:
 * none. */
double rep_row_value(const struct rep_figure *f, const struct rep_row *r);
/* Lower and upper edge of the band or of the launches. */
void rep_row_range(const struct rep_figure *f, const struct rep_row *r, double *lo, double *hi);
double rep_scale(const struct rep_figure *f);     /* document unit -> drawn unit */
const char *rep_axis(const struct rep_figure *f); /* "Latency [us]" */
const char *rep_unit(const struct rep_figure *f); /* "us" */
/* "in the lab (emulated guests, Soft-RoCE)" */
const char *rep_where_text(const char *where);

/* plot.c: writes dir/ID.dat, dir/ID.gp, and dir/ID.svg by gnuplot. -ENOENT: no gnuplot (the data
 * are there). */
int rep_plot(struct rep_figure *f, const char *dir, struct fb_err *e) FB_MUST_CHECK;

/* html.c: the page. base is the run directory (topology.svg, topology.json), NULL for a lone
 * document. */
void rep_html(
	struct fb_strbuf *b, const json_t *doc, const struct rep_figures *f, const char *base);
/* sections.c: parts of the page that come from the document rather than from figures. */
void rep_html_verdict(struct fb_strbuf *b, const json_t *doc);
void rep_html_parts(struct fb_strbuf *b, const json_t *doc);
void rep_html_system(struct fb_strbuf *b, const json_t *doc);
void rep_html_checks(struct fb_strbuf *b, const json_t *doc);
void rep_html_messages(struct fb_strbuf *b, const json_t *doc);
void rep_html_topology(struct fb_strbuf *b, const char *base);
/* A file as data: URI. false when it cannot be read. */
bool rep_html_image(struct fb_strbuf *b, const char *path, const char *alt);

#endif
