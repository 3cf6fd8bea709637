/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader meets first, and what page 1 holds in print: the verdict with its scope, what it
 * was measured on, at most five findings, four figures, what changed since the last accepted run,
 * and the versions behind it.
 */
#ifndef REPORTS_FIRST_SCREEN_H
#define REPORTS_FIRST_SCREEN_H

#include "reports/report_priv.h"

/** The last accepted run of the same plan beside this one, and what differs. */
struct rep_since {
	char dir[256];      /**< its folder's name; "" : none was found */
	char started[40];   /**< when it began */
	char facts[256];    /**< the first fact in which the systems differ; "" : none */
	char moved[3][256]; /**< metrics that moved by more than their floor, furthest first */
	size_t n_moved, n_compared;
};
/**
 * Look among the folders beside `dir` for the newest run of the same plan that began earlier and
 * was ACCEPTED. Nothing found, or nothing readable, is no error.
 */
void rep_since_find(const char *dir, const json_t *doc, struct rep_since *s);

#define REP_FINDINGS 5
/** What most needs looking at. Texts are borrowed from the document, NULL or "" where it says
 * nothing. */
struct rep_finding {
	int rank; /**< least first: 0 failed check, 1 invalid result, 2 error, 3 check in error,
		     4 warning, 5 what a training step would gain by (gain) */
	const char *where, *what, *observed, *expected, *source, *cost, *command, *disturbs, *gain;
};
/** At most REP_FINDINGS, the gravest first; *all: how many there are. @return how many in v */
size_t rep_findings(const json_t *doc, struct rep_finding v[REP_FINDINGS], size_t *all);

/** One badge for each kind of place that results come from: a mixture says so by having several. */
void rep_html_places(struct fb_strbuf *b, const json_t *doc);
void rep_html_first_screen(struct fb_strbuf *b, const struct rep_page *p);

#endif
