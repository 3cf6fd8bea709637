/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures for slides: each chart as ID.png beside ID.svg, and an overview, one picture of 1920 x
 * 1080 with the verdict, its scope, the four figures, the most telling charts and the gravest
 * findings.
 */
#ifndef REPORTS_PNG_H
#define REPORTS_PNG_H

#include "reports/charts.h"
#include "reports/first_screen.h"

/** Can pictures be drawn here? @return 0; -ENOENT with exit status 77: no gnuplot, or one that
 * writes no PNG */
int rep_png_able(struct fb_err *e) FB_MUST_CHECK;
/** Draws dir/ID.png of every chart. All are tried; @return the first failure */
int rep_png_charts(
	const struct rep_chart *v, size_t n, const char *dir, struct fb_err *e) FB_MUST_CHECK;
/** Draws the overview into dest, replaced in one step. dir/report_overview.gp makes it again, and
 * needs the report_panel_*.png beside it. */
int rep_png_overview(const json_t *doc, const struct rep_since *since, const struct rep_chart *v,
	size_t n, const char *dir, const char *dest, struct fb_err *e) FB_MUST_CHECK;

/* overview.c: the choice, and the script. */
#define REP_PANELS 3
struct rep_panel {
	const struct rep_figure *f;
	int x, y, w, h; /**< pixels from the picture's upper left corner */
	double scale;   /**< of its letters and lines */
};
/**
 * At most REP_PANELS charts, of different kinds as far as there are any, those from hardware
 * first, and places for them that leave room for `findings` of them. @return how many
 */
size_t rep_panels(
	const struct rep_chart *v, size_t n, size_t findings, struct rep_panel p[REP_PANELS]);
/** The script; draws report_overview.png. */
void rep_overview_gp(struct fb_strbuf *b, const json_t *doc, const struct rep_since *since,
	const struct rep_panel *p, size_t n);

#endif
