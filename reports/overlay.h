/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several runs laid over each other: InfiniBand against RoCE, before against after. What differs
 * between them, their figures in the same charts, their values side by side. It judges nothing: a
 * ratio is shown with its interval, and whether it is a regression is `compare`'s to say.
 */
#ifndef REPORTS_OVERLAY_H
#define REPORTS_OVERLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/core/err.h"
#include "bench/core/strbuf.h"
#include "reports/alike.h"
#include "reports/compare_priv.h"
#include "reports/report_priv.h"

#define OVERLAY_LABEL 48 /* bytes of a run's name, with its end: longer ones are cut */

struct overlay_run {
	char label[OVERLAY_LABEL]; /* unlike every other's */
	const json_t *doc;         /* borrowed from `own` */
	struct cmp own;            /* its metrics, all on the base's side */
	json_t *plan;              /* options by section, from plan.ini; NULL: not there */
	size_t launches;           /* the most behind any of its metrics */
};

/* A fact that differs. */
struct overlay_fact {
	char name[128];
	long host;            /* the first of those that it was met in; -1: no host's */
	size_t hosts;         /* so many, all with these values */
	bool judged;          /* compare would refuse */
	size_t metrics;       /* that it was met in; 0: it is the run's */
	json_t *v[ALIKE_MAX]; /* of metrics an array of the values met; NULL: absent */
	bool has[ALIKE_MAX];  /* false: the run takes no part */
};

/* A metric that at least one run has. */
struct overlay_row {
	const struct cmp_metric *m;             /* of the first run that has it */
	const struct cmp_side *side[ALIKE_MAX]; /* NULL: that run has it not */
	struct fb_ci ratio[ALIKE_MAX];          /* to the first run; est NAN: none */
	size_t runs;                            /* that have it */
};

enum overlay_likeness {
	OVERLAY_ALIKE,
	OVERLAY_UNKNOWN, /* nothing differs, but a run does not tell what it was measured on */
	OVERLAY_DIFFERS
};

struct overlay {
	struct overlay_run run[ALIKE_MAX];
	size_t n;
	struct overlay_fact *fact; /* those that compare judges first */
	size_t n_facts, judged, facts_left;
	struct overlay_row *row; /* in the first run's order, then what only later ones have */
	size_t n_rows, shared;   /* shared: rows that at least two runs have */
	json_t *joined;          /* for rep_figures_overlay() */
};

/**
 * Read the runs and find what differs.
 * @param path run directories or documents, n of them, 2 to ALIKE_MAX
 * @param label their names, as many; NULL: the folders' or files' names
 * @return 0; -errno with *e: unreadable (exit 2), -ENOMEM. Leaves o to overlay_free().
 */
int overlay_load(struct overlay *o, const char *const *path, const char *const *label, size_t n,
	struct fb_err *e) FB_MUST_CHECK;
void overlay_free(struct overlay *o);
enum overlay_likeness overlay_likeness(const struct overlay *o);
/* "like for like", "like for like as far as known", "not like for like" */
const char *overlay_words(const struct overlay *o);
/* "before against after"; "a, b and c". Caller frees; NULL without memory. */
char *overlay_title(const struct overlay *o);
/* One sentence on what the words stand on. */
void overlay_why(const struct overlay *o, struct fb_strbuf *b);
/* A fact's value in one run, as text: "absent", "-" for a run that takes no part. */
void overlay_cell(const struct overlay_fact *f, size_t run, struct fb_strbuf *b);
/* "host 1", "2 hosts, first 1"; "" for a fact of no host. @return buf */
const char *overlay_hosts(const struct overlay_fact *f, char *buf, size_t len);
/* "parameter mtu" for "params.mtu"; names that compare --allow takes stay as they are. */
void overlay_fact_name(const struct overlay_fact *f, char *buf, size_t len);
/* Where a row was measured, run by run: "lab", or "lab / hardware". @return buf */
const char *overlay_places(
	const struct overlay *o, const struct overlay_row *r, char *buf, size_t len);
/* Median of a side's launches, in the document's unit; NAN. */
double overlay_median(const struct cmp_side *s);
/* "1.05 [1.04, 1.06]", "1.05" without an interval, "-". @return buf */
const char *overlay_ratio(const struct fb_ci *ci, char *buf, size_t len);

/* Is it for the page's table? What at least two runs have; algbw follows from busbw, and stands in
 * the CSV alone. */
bool overlay_in_table(const struct overlay_row *r);

/* What some runs have and others have not, by kind: the sizes of a sweep together. */
struct overlay_only {
	char what[200]; /* "verbs.latency/send/rc/poll latency" */
	bool has[ALIKE_MAX];
	size_t n; /* metrics */
};
/* Caller frees. @return how many; 0 with *v NULL also without memory */
size_t overlay_only(const struct overlay *o, struct overlay_only **v);
/* The runs' labels that have it, or have it not, by commas. */
void overlay_names(const struct overlay *o, const bool *has, bool which, struct fb_strbuf *b);

/* overlay_text.c */
int overlay_markdown(const struct overlay *o, FILE *out, struct fb_err *e) FB_MUST_CHECK;
/* runs.csv, facts.csv, values.csv, only.csv in dir. */
int overlay_csv(const struct overlay *o, const char *dir, struct fb_err *e) FB_MUST_CHECK;

/* overlay_html.c. The page; p->doc is o->joined. */
void overlay_html(struct fb_strbuf *b, const struct overlay *o, const struct rep_page *p);

/* overlay_cmd.c: what `report` does with several runs. */
struct overlay_cfg {
	const char *const *path, *const *label;
	size_t n;
	const char *output; /* NULL: overlay.html, or .md, beside the first run */
	bool markdown, plots_only;
};
int overlay_report(const struct overlay_cfg *cfg, struct fb_err *e) FB_MUST_CHECK;

#endif
