/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document's results put together by what they measured: launches of one figure are one group,
 * so that what is printed of it is a median over launches and never one of them.
 */
#ifndef REPORTS_METRIC_GROUPS_H
#define REPORTS_METRIC_GROUPS_H

#include <jansson.h>
#include <stddef.h>

#include "bench/core/err.h"

/** Results of one job, case, metric, unit, device, load and place of measurement. */
struct rep_group {
	const json_t **r; /**< borrowed from the document; r[0] came first */
	size_t n;         /**< at least 1 */
};
struct rep_groups {
	struct rep_group *v; /**< in the order in which the document names them */
	size_t n;
	const json_t **all; /**< what the groups' r point into */
};

/** @return 0; -ENOMEM with *e */
int rep_groups_make(const json_t *doc, struct rep_groups *g, struct fb_err *e) FB_MUST_CHECK;
void rep_groups_free(struct rep_groups *g);

/** A group's value in the document's unit: the median over its launches, with their extremes. */
struct rep_summary {
	double median, lo, hi; /**< NAN: no launch has a value that counts */
	size_t n;              /**< launches behind them */
};
/** Results that are invalid count in neither. */
void rep_group_summary(const struct rep_group *g, struct rep_summary *s);

#endif
