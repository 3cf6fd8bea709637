/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every summary of a document begins with, whatever draws it: where its results come from, its
 * scope in numbers, and four figures that hardware alone can fill.
 */
#ifndef REPORTS_HEADLINE_H
#define REPORTS_HEADLINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/core/strbuf.h"

/** A kind of place that results come from. */
struct rep_place {
	const char *where; /**< a result's `where` */
	const char *word;  /**< "HARDWARE" */
	const char *title; /**< what that means */
};
#define REP_PLACES 5
extern const struct rep_place rep_places[REP_PLACES];
/** Does any result come from there? A mixture says so by having several. */
bool rep_has_place(const json_t *doc, const struct rep_place *p);

/** "2 hosts, 4 rails, 96 results, 40 checks judged, 2 not (skipped or in error)." */
void rep_scope_line(struct fb_strbuf *b, const json_t *doc);

/** One of the four, over the results that hardware gave and that are valid. */
struct rep_headline {
	const char *title, *unit;
	double worst, median; /**< in `unit` */
	double bound;         /**< the least of theirs; NAN: none is known */
	size_t n;             /**< results; 0: none, and the others are NAN */
};
#define REP_HEADLINES 4
/** @return 0 or -ENOMEM */
int rep_headlines(const json_t *doc, struct rep_headline h[REP_HEADLINES]);

#endif
