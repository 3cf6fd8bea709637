/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Incasts in the report: one picture for each run of N senders, all against the number of senders:
 * goodput of all and of each sender, Jain's fairness, latency of the victim. And the section of the
 * page with the same figures as a table.
 */
#ifndef REPORTS_INCAST_H
#define REPORTS_INCAST_H

#include "reports/report_priv.h"

#define REP_INCAST_STEPS 1025 /* 0 (the victim alone) to 1,024 senders */

/** One step; NAN where the document has nothing of it. */
struct rep_incast_step {
	bool any;
	double sum, lowest, mean, highest; /**< Gb/s: of all senders; of one */
	double fairness;                   /**< Jain's index, 0..1 */
	double p50, p99;                   /**< victim, us */
	double p99_ratio;                  /**< beside the incast over alone */
	int valid;                         /**< worst validity: 0 valid, 1 suspect, 2 invalid */
	char why[200];                     /**< first reason of that */
};

struct rep_incast {
	struct rep_figure f; /**< id, title, where and svg alone are used */
	char key[240];       /**< what its results share */
	struct rep_incast_step *step;
	unsigned most; /**< senders */
	bool victim;
};
struct rep_incasts {
	struct rep_incast *v;
	size_t n;
};

/** Gather the incasts of a document, write ID.dat and ID.gp of each into dir, and draw them; a
 * picture that fails costs nothing else: the first reason goes into why.
 * @return 0, -ENOMEM or a failure to write */
int rep_incasts_make(struct rep_incasts *x, const json_t *doc, const char *dir, char *why,
	size_t len, struct fb_err *e) FB_MUST_CHECK;
void rep_incasts_free(struct rep_incasts *x);
/** The section; nothing without an incast. */
void rep_html_incasts(struct fb_strbuf *b, const struct rep_incasts *x, const char *no_plots);

#endif
