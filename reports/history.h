/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History: runs over time, one value for each metric and run, and where its level changed
 * (change_points.h). Advisory: it needs runs after the change, and so blocks nothing.
 */
#ifndef REPORTS_HISTORY_H
#define REPORTS_HISTORY_H

#include <jansson.h>
#include <stdio.h>

#include "bench/core/err.h"
#include "reports/change_points.h"
#include "reports/value_table.h"

#define HISTORY_MAX_P 1e-3

/** A change of one metric, between two runs. */
struct history_change {
	size_t column;      /**< in the table */
	size_t last, first; /**< rows: the last run of the old level, the first of the new one */
	struct rep_change c;
	bool worse;
};
struct history {
	struct value_table t; /**< rows "STARTED REVISION", oldest first */
	struct history_change *change;
	size_t n;
	size_t judged; /**< metrics with enough runs to have a change at all */
};

/** @return as value_table_load(); -E2BIG: more runs than REP_MAX_SERIES (exit 2) */
int history_load(const char *dir, struct history *h, struct fb_err *e) FB_MUST_CHECK;
void history_free(struct history *h);
void history_print(const struct history *h, FILE *out);
json_t *history_json(const struct history *h, const char *dir);

#endif
