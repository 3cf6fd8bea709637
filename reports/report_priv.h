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

/* So many figures of a document are drawn, the first ones: a page of more is read by nobody, and a
 * document that means harm would start gnuplot for hours. The page has the tables of all. */
#define REP_MAX_PICTURES 100

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
	char why[200];        /* first reason of that validity */
};

struct rep_series {
	char label[160];
	struct rep_row *rows; /* ascending by size */
	size_t n;
	bool not_headline; /* some of it is not from hardware, or from loopback */
	char where[24];    /* what it was measured on; "mixed" */
	size_t run;        /* figures of several runs: whose it is */
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
	char sync[24];
	char definition[240]; /* what one value is, in the benchmark's own words; may be empty */
	char bound_why[160];  /* of the first bound met */
	char factors[600];    /* the parameters that all series share: "qps 1, mtu 1024" */
	bool loopback;        /* some of it never left the host */
	size_t runs;          /* so many runs lie over each other; 0: one document's figure */
	enum rep_kind kind;
	struct rep_series *series;
	size_t n;
	uint64_t at_size;  /* REP_TAIL */
	int width, height; /* of the picture, in pixels */
	char svg[4096];    /* drawn file, "" when gnuplot could not */
};

struct rep_figures {
	struct rep_figure *v;
	size_t n;
	size_t runs; /* as in a figure */
};

/* figures.c */
int rep_figures_build(const json_t *doc, struct rep_figures *f, struct fb_err *e) FB_MUST_CHECK;
/*
 * Figures of several runs laid over each other: one per kind of result and operation, and each tail
 * by itself. In `joined` the results of all runs stand one run after the other; each has its run's
 * number under REP_RUN, and its label as the parameter REP_RUN.
 */
int rep_figures_overlay(
	const json_t *joined, size_t runs, struct rep_figures *f, struct fb_err *e) FB_MUST_CHECK;
void rep_figures_free(struct rep_figures *f);
#define REP_RUN "overlaid run"

/* figure_values.c */
/* A result's unit as the field writes it, in tables: RDMA in Gb/s, collectives' bandwidths in GB/s
 * of 10^9, times in us; and the factor from the document's unit. */
struct rep_scale_for {
	const char *unit;
	double factor;
};
struct rep_scale_for rep_people_unit(const json_t *result);
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

/* Nearest-rank percentile of a row of times in the drawn unit; NAN when the sample does not support
 * it (stats.h, fb_quantile_min_n) or the row has no times. */
double rep_row_percentile(const struct rep_figure *f, const struct rep_row *r, double q);
/* Three significant digits, never an exponent: "1.63", "0.0042", "12300". NAN: "-". @return buf */
const char *rep_num(double v, char *buf, size_t len);

/* "960,000". @return buf */
const char *rep_count(uint64_t n, char *buf, size_t len);
/* "Measured in the lab: ...", with loopback named. @return buf */
const char *rep_measured(const struct rep_figure *f, char *buf, size_t len);

/* plot_text.c: the data and the script of a figure, as text. Strings from documents stand in single
 * quotes only, where gnuplot neither runs back-ticks nor knows escapes. */
void rep_dat_text(struct fb_strbuf *b, const struct rep_figure *f);
void rep_gp_text(struct fb_strbuf *b, const struct rep_figure *f);
/* The script's terminal and output: ID.svg of the figure's size; or, with
 * `gnuplot -e "png = 2" ID.gp`, ID.png (or the file that `out` names) of twice as many; of `wide` x
 * `high` where those are set. */
void rep_gp_terminal(struct fb_strbuf *b, const struct rep_figure *f);
/* A text as such a string, whatever it holds; what no SVG may hold is replaced. */
void rep_gp_quoted(struct fb_strbuf *b, const char *s);
/* The same points as CSV (csv.h), the series' label first. */
void rep_figure_csv(struct fb_strbuf *b, const struct rep_figure *f);
/* x tics for sizes from lo to hi (> 0): labels at powers of two, thinned so that they never
 * overlap; the powers between are minor tics. "('2 B' 2, '' 4 1, ...)" */
void rep_size_tics(struct fb_strbuf *b, uint64_t lo, uint64_t hi);

/* plot.c: dir/ID.EXT of what is in b, which is taken. @return 0 or -errno */
int rep_write_part(const char *dir, const char *id, const char *ext, struct fb_strbuf *b,
	struct fb_err *e) FB_MUST_CHECK;
/* Writes dir/ID.dat, dir/ID.csv and dir/ID.gp. @return 0 or -errno */
int rep_plot_data(const struct rep_figure *f, const char *dir, struct fb_err *e) FB_MUST_CHECK;
/* Draws dir/ID.svg by gnuplot, and notes its path in f->svg. @return 0; -ENOENT: no gnuplot here;
 * -EIO, -ETIMEDOUT: it failed */
int rep_plot_draw(struct rep_figure *f, const char *dir, struct fb_err *e) FB_MUST_CHECK;
/* Runs a script in dir, after the settings (gnuplot's statements; NULL: none). script NULL: the
 * settings alone. @return as rep_plot_draw() */
int rep_gnuplot(
	const char *dir, const char *settings, const char *script, struct fb_err *e) FB_MUST_CHECK;
/* Both of all figures, in a folder that is made. A missing gnuplot, or one that fails, costs
 * pictures and nothing else: `why` then says it for the page. Data that cannot be written are an
 * error. */
int rep_plot_all(struct rep_figures *all, const char *dir, char *why, size_t len,
	struct fb_err *e) FB_MUST_CHECK;

/* html.c: the page. */
struct rep_maps;
struct rep_incasts;
struct rep_losses;
struct rep_training;
struct rep_since;
struct rep_page {
	const json_t *doc;
	const struct rep_maps *maps;         /* of pairs; see pairs.h */
	const struct rep_training *training; /* see training.h */
	const struct rep_incasts *incasts;   /* see incast.h; may be NULL */
	const struct rep_losses *losses;     /* see loss.h; may be NULL */
	const struct rep_figures *figures;
	const char *base; /* run directory (topology.svg, topology.json); NULL: lone document */
	const char *data_name;         /* "run.json", for the footer */
	const char *plots_name;        /* "plots" */
	const struct rep_since *since; /* see first_screen.h */
	const char *no_plots;          /* why there are no pictures; NULL: there are */
};
void rep_html(struct fb_strbuf *b, const struct rep_page *p);
/* Takes what is in b. @return 0; -errno with *e: it could not be written, or -ENOMEM */
int rep_write_page(struct fb_strbuf *b, const char *path, struct fb_err *e) FB_MUST_CHECK;

/* html_figure.c: the figures of one section. @return how many it wrote */
size_t rep_html_figures(struct fb_strbuf *b, const struct rep_page *p, const char *section);
/* The page's beginning up to <body>, of this class. */
void rep_html_head(struct fb_strbuf *b, const char *title, const char *cls);
/* sections.c: parts of the page that come from the document rather than from figures. */
/* Any flat JSON value as text: strings as they are, lists by commas, objects as "key value". */
void rep_flat(struct fb_strbuf *b, const json_t *v);
/* The verdict's reasons, and that every part is accounted for. */
void rep_html_reasons(struct fb_strbuf *b, const json_t *doc);
void rep_html_parts(struct fb_strbuf *b, const json_t *doc);
void rep_html_system(struct fb_strbuf *b, const json_t *doc);
void rep_html_checks(struct fb_strbuf *b, const json_t *doc);
void rep_html_messages(struct fb_strbuf *b, const json_t *doc);
/* Results that no figure shows: those without a size. */
void rep_html_values(struct fb_strbuf *b, const json_t *doc, const char *section);
/* rates.c: worst windows and limited rates; nothing where there are none. */
void rep_html_rates(struct fb_strbuf *b, const json_t *doc);
/* topology.c: topology.svg and the tables of topology.json. */
void rep_html_topology(struct fb_strbuf *b, const char *base);

/* Is this result drawn in a figure (times or rates with a size)? Its section: "RDMA", ... */
bool rep_drawable(const json_t *result);
const char *rep_section_of(const json_t *result);
/* Did it never leave its host? */
bool rep_is_loopback(const json_t *result);

/* markup.c: escaped pieces of HTML. */
/* <TAG CLASS>formatted, escaped text</TAG>; cls NULL: no class */
void rep_tag(struct fb_strbuf *b, const char *tag, const char *cls, const char *fmt, ...)
	FB_PRINTF(4, 5);
/* Formatted text, escaped. */
void rep_text(struct fb_strbuf *b, const char *fmt, ...) FB_PRINTF(2, 3);
/* A row of a two-column table of facts; nothing when the text is empty. */
void rep_fact(struct fb_strbuf *b, const char *name, const char *fmt, ...) FB_PRINTF(3, 4);
/* A file as <img src="data:...">. false when it cannot be read: nothing is written. */
bool rep_html_image(struct fb_strbuf *b, const char *path, const char *alt);

#endif
