/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `compare` share. A metric is one number per launch and side: the median, p99
 * or p99.9 of a result's times, or its rate.
 */
#ifndef REPORTS_COMPARE_PRIV_H
#define REPORTS_COMPARE_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/err.h"
#include "bench/core/stats.h"
#include "reports/gate_file.h"

#define CMP_MIN_LAUNCHES 7 /* a side: with fewer even one metric is seldom judged rightly */

enum cmp_verdict {
	CMP_PASS,
	CMP_IMPROVED,
	CMP_REGRESSED,
	CMP_MISSING,
	CMP_INCONCLUSIVE,
	CMP_INCOMPARABLE,
	CMP_INVALID,
	CMP_VERDICTS
};
extern const char *const cmp_verdict_names[];

struct cmp_side {
	double *v; /* one value per launch */
	size_t n;
	const json_t *first; /* result; borrowed from the document. NULL: there is none */
	bool invalid;
	char why[160];   /* first reason of an invalid launch */
	char mixed[320]; /* the first launch that is unlike the side's first, and in what; "" */
};

struct cmp_metric {
	char name[160]; /* the result's case */
	char metric[56];
	char unit[16];
	bool lower; /* lower is better */
	bool time;
	double q; /* of times: 0.5, 0.99, 0.999 */
	uint64_t size;
	size_t id; /* its number among all that were met, also when others are dropped */
	struct cmp_side base, cand;
	/* filled by cmp_judge() */
	bool gated;
	int priority;                /* 0: gated first */
	double floor_rel, floor_abs; /* the change that is allowed; abs in the metric's unit */
	double floor;                /* relative, both taken together */
	const char *floor_reason;    /* borrowed from the gate file; NULL: the default */
	struct fb_ci ratio;          /* cand / base */
	double p;                    /* two-sided, of no difference: for people */
	double p_worse,
		p_better; /* against the floor; p_worse and p_better are Holm-adjusted when gated */
	bool worse_side, better_side; /* which side of its floor the estimate lies on */
	double noise;          /* deviation of ln(value) from launch to launch, pooled; NAN */
	double seen80, seen97; /* smallest change that would have been seen with that power; NAN */
	double need80, need97; /* launches a side that the floor asks for; NAN */
	enum cmp_verdict verdict;
	char why[600];
	const struct gate_waiver *waiver; /* the verdict is waived; borrowed */
};

struct cmp_doc {
	json_t *json;
	bool cand;
};

struct cmp {
	struct cmp_doc *docs; /* all documents; sides borrow from them */
	size_t n_docs;
	const json_t *base, *cand; /* the first of each side; borrowed */
	struct cmp_metric *v;
	size_t n, gated;
	json_t *index;       /* "CASE\nMETRIC": place in v, from 1 */
	json_t *seen;        /* the launches that have given a metric its value on one side */
	size_t met;          /* metrics so far, those that were dropped too */
	size_t added;        /* only in the candidate */
	char differs[600];   /* the first facts that make the two systems incomparable; "" */
	char mixed[400];     /* the first setting in which documents of one side differ; "" */
	char unmatched[300]; /* patterns of gate, floors and waivers that match no metric of the
				base; "" */
	bool wrong_data;     /* a candidate's document records wrong data */
	bool wrong_base;     /* a base's does */
	bool strict;         /* INCONCLUSIVE is a failure */
	double level;        /* of the intervals; filled by cmp_judge() */
	double seconds;      /* of one launch of the candidate, all jobs; NAN: not recorded */
};

struct cmp_rules {
	double floor_pct;         /* < 0: by metric */
	double level;             /* 0.95 */
	uint64_t max_gated;       /* 20 */
	const char *const *gates; /* patterns on "case:metric"; ngates 0: chosen */
	size_t ngates;
	bool any_system;          /* compare although the systems differ */
	const char *const *allow; /* facts that may differ: "kernel.release" */
	size_t nallow;
	const struct gate *gate; /* floors and waivers; may be NULL */
	bool strict;
};

/* compare_load.c: add documents in any order, then close. Every function leaves c to cmp_free(). */
/* path is a run directory or a document. */
int cmp_add(struct cmp *c, const char *path, bool cand, struct fb_err *e) FB_MUST_CHECK;
/* Steals doc. `name` tells its launches from those of other documents. */
int cmp_add_doc(struct cmp *c, json_t *doc, bool cand, struct fb_err *e) FB_MUST_CHECK;
void cmp_close_load(struct cmp *c, const struct cmp_rules *r);
void cmp_free(struct cmp *c);
/* Does a document record wrong data? Then its figures measure nothing. */
bool cmp_wrong_data(const json_t *doc);

/* compare_judge.c: fills floors, statistics and verdicts. -ERANGE: so few launches cannot judge so
 * many metrics (exit 3, with what can). */
int cmp_judge(struct cmp *c, const struct cmp_rules *r, struct fb_err *e) FB_MUST_CHECK;
/* Floors and ratios alone, for whoever shows a change without judging it. */
void cmp_estimate(struct cmp *c, const struct cmp_rules *r);
/* The exit status: 4 wrong data; 1 a gated metric regressed, is missing, or (strict) inconclusive;
 * 3 one is incomparable or invalid, or nothing is gated or judged: waivers judge nothing; 0. */
int cmp_status(const struct cmp *c);
/* "ACCEPTED", "REJECTED", "INCOMPLETE" */
const char *cmp_state(const struct cmp *c);
/* How a gated metric counts: its verdict, PASS when it is waived. */
enum cmp_verdict cmp_effective(const struct cmp_metric *m);

/* compare_power.c */
/* Fills noise, seen80, seen97, need80, need97 of a metric with an interval. alpha is two-sided, of
 * the first step of Holm's. */
void cmp_power(struct cmp_metric *m, double alpha);
/* Smallest two-sided p that n against m launches can reach. Source: references, A1.4. */
double cmp_least_p(size_t n, size_t m);
/* Fewest launches a side that can reach p, and are judged at all. */
size_t cmp_launches_for(double p);

/* compare_noise.c: both sides are the same thing. The floor of this host's noise is the interval's
 * half width that so many launches have by chance, or the change they seemed to show if that is
 * more: a floor below it would call the same build INCONCLUSIVE or worse. */
double cmp_noise_floor(const struct cmp_metric *m);
/* 0; 1 the floor of a gated metric lies below the noise's; 3 nothing was gated or can be judged. */
int cmp_noise_status(const struct cmp *c);
json_t *cmp_noise_json(const struct cmp *c, const char *what);
void cmp_noise_table(const struct cmp *c, bool all, FILE *out);

/* compare_out.c: what is printed. */
struct cmp_names {
	const char *base, *cand;
};
void cmp_print_table(const struct cmp *c, bool all, FILE *out);
json_t *cmp_json(const struct cmp *c, const struct cmp_names *names);
void cmp_junit(const struct cmp *c, FILE *out);
void cmp_markdown(const struct cmp *c, const struct cmp_names *names, FILE *out);

#endif
