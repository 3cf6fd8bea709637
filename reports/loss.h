/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps over packet loss in the report: goodput, packets sent per packet needed and the tail of
 * small messages against loss, with the model's line beside what was measured; and, where training
 * steps were measured at the same rates, their time and MFU beside what the model predicts.
 */
#ifndef REPORTS_LOSS_H
#define REPORTS_LOSS_H

#include "reports/report_priv.h"

/** A sweep: one element of the document's `loss`. */
struct rep_loss {
	struct rep_figure f;  /**< id, title, where and svg alone are used */
	const json_t *block;  /**< borrowed */
	double w, r, w_alone; /**< of its model; NAN: none */
	double most;          /**< highest rate, percent */
	double lossless;      /**< goodput at 0 %, bytes/s; NAN: not measured */
};

/** One training step at one rate. */
struct rep_loss_step {
	double rate;          /**< percent */
	double step, exposed; /**< ns; exposed: communication that computing waited for */
	double mfu;           /**< 0..1 */
	bool own_peak;  /**< of the step's own products, because no data-sheet peak is known */
	unsigned group; /**< which of rep_losses.group */
};
/** Steps that differ in the rate alone. */
struct rep_loss_group {
	char name[160];       /**< "tiny fsdp, 2 ranks over ucx" */
	double step, exposed; /**< means at 0 %; NAN: not measured, and so no prediction */
};

struct rep_losses {
	struct rep_loss *v;
	size_t n;
	struct rep_figure train; /**< id is "" without steps */
	struct rep_loss_step *step;
	size_t nsteps;
	struct rep_loss_group *group;
	size_t ngroups;
};

/** 1/eta = 1 + W p/(1-p) + R p^2 with p = percent/100; an R that is NAN counts as 0. @return NAN
 * without W, or from 100 % on */
double rep_loss_inverse(double w, double r, double percent);
/** What a step would take: all but the exposed communication as without loss, that one 1/eta times
 * as long. ns */
double rep_loss_step_predicted(double step, double exposed, double inverse);

/**
 * Add another document's results and sweeps to this one's. A training document that tells `loss`
 * and `transport` in its configuration alone gets them into its results' parameters.
 * @return 0 or -ENOMEM
 */
int rep_loss_join(json_t *doc, const json_t *other, struct fb_err *e) FB_MUST_CHECK;

/** Gather, write ID.dat and ID.gp of each picture into dir, and draw them; a picture that fails
 * costs nothing else: the first reason goes into why. @return 0, -ENOMEM or a failure to write */
int rep_losses_make(struct rep_losses *x, const json_t *doc, const char *dir, char *why, size_t len,
	struct fb_err *e) FB_MUST_CHECK;
void rep_losses_free(struct rep_losses *x);
/** The section; nothing without a sweep and without steps. */
void rep_html_losses(struct fb_strbuf *b, const struct rep_losses *x, const char *no_plots);
/** Is this result one of a sweep, shown there and nowhere else? */
bool rep_loss_result(const json_t *result);

#endif
