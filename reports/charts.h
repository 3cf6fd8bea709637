/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every chart of a document, of whatever kind, drawn into one folder, with the tables that belong
 * to no chart.
 */
#ifndef REPORTS_CHARTS_H
#define REPORTS_CHARTS_H

#include "reports/incast.h"
#include "reports/loss.h"
#include "reports/pairs.h"
#include "reports/report_priv.h"
#include "reports/training.h"

struct rep_charts {
	struct rep_figures figures;
	struct rep_maps maps;
	struct rep_incasts incasts;
	struct rep_losses losses;
	struct rep_training training;
	char why[768]; /**< why some are not drawn; "": all are, as far as they are drawn at all */
};

/**
 * Gather, write and draw them all into the folder `dir`, which is made. A missing gnuplot, or one
 * that fails, costs pictures and nothing else. The caller frees by rep_charts_free() in any case.
 * @return 0, or -errno: data that cannot be written, no memory
 */
int rep_charts_make(
	struct rep_charts *c, const json_t *doc, const char *dir, struct fb_err *e) FB_MUST_CHECK;
void rep_charts_free(struct rep_charts *c);

/** What a chart is of, the most telling first. */
enum rep_chart_kind {
	REP_CHART_LATENCY,
	REP_CHART_BUSBW,
	REP_CHART_STEP,
	REP_CHART_PAIRS,
	REP_CHART_BANDWIDTH,
	REP_CHART_INCAST,
	REP_CHART_LOSS,
	REP_CHART_TAIL,
	REP_CHART_MFU,
	REP_CHART_OTHER,
};
struct rep_chart {
	const struct rep_figure *f; /**< id, title, svg; borrowed */
	enum rep_chart_kind kind;
};
/** Those that were drawn, in the page's order of kinds. @return an array of *n that the caller
 * frees; NULL without memory */
struct rep_chart *rep_charts_list(const struct rep_charts *c, size_t *n);

#endif
