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

#include "bench/core/err.h"
#include "bench/core/stats.h"

#define CMP_MIN_LAUNCHES 7 /* a side; at 7 a gate over 85 metrics can still see a difference */

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
	char (*launch)[64];
	size_t n;
	json_t *params; /* of the first result; borrowed from the document */
	const char *where;
	bool invalid;
	char why[160]; /* first reason of an invalid launch */
};

struct cmp_metric {
	char name[160]; /* the result's case */
	char metric[56];
	char unit[16];
	bool lower; /* lower is better */
	bool time;
	double q; /* of times: 0.5, 0.99, 0.999 */
	uint64_t size;
	struct cmp_side base, cand;
	/* filled by cmp_judge() */
	bool gated;
	double floor_rel, floor_abs; /* the change that is allowed; abs in the metric's unit */
	double floor;                /* relative, both taken together */
	struct fb_ci ratio;          /* cand / base */
	double p;                    /* two-sided, of no difference: for people */
	double p_worse,
		p_better; /* against the floor; p_worse and p_better are Holm-adjusted when gated */
	bool worse_side, better_side; /* which side of its floor the estimate lies on */
	double detectable; /* smallest relative change that this many launches would have shown; NAN
			    */
	enum cmp_verdict verdict;
	char why[256];
};

struct cmp {
	json_t *base, *cand; /* documents */
	struct cmp_metric *v;
	size_t n, gated;
	size_t added;      /* only in the candidate */
	char differs[256]; /* what makes the two systems incomparable; "" */
	bool wrong_data;   /* the candidate's document records wrong data */
};

struct cmp_rules {
	double floor_pct;         /* < 0: by metric */
	double level;             /* 0.95 */
	uint64_t max_gated;       /* 20 */
	const char *const *gates; /* patterns on "case:metric"; ngates 0: chosen */
	size_t ngates;
	bool any_system; /* compare although the systems differ */
};

/* compare_load.c */
int cmp_load(struct cmp *c, const char *base, const char *cand, struct fb_err *e) FB_MUST_CHECK;
void cmp_free(struct cmp *c);

/* compare_judge.c: fills floors, statistics and verdicts. */
int cmp_judge(struct cmp *c, const struct cmp_rules *r, struct fb_err *e) FB_MUST_CHECK;
/* The exit status: 4 wrong data; 1 a gated metric regressed or is missing; 3 a gated one could not
 * be judged, or there is none; 0. */
int cmp_status(const struct cmp *c);
/* "ACCEPTED", "REJECTED", "INCOMPLETE" */
const char *cmp_state(const struct cmp *c);

#endif
