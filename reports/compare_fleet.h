/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet gate: the same measurement on many nodes, no base needed. Of each metric the median and
 * the median absolute deviation over the nodes; a node is an outlier when it is worse than the
 * median by more than a share AND beyond a robust z (references, A1.3: 5 % and 3.5).
 */
#ifndef REPORTS_COMPARE_FLEET_H
#define REPORTS_COMPARE_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/core/err.h"
#include "reports/value_table.h"

#define FLEET_MIN_NODES 5 /* with fewer a median says nothing of which one is odd */

struct fleet_rule {
	double median, mad; /* of a metric; mad scaled by 1.4826; NaN with too few values */
	size_t n;           /* nodes that have a value */
};
struct fleet {
	struct value_table t;    /* a row for each node */
	bool *odd;               /* by row */
	struct fleet_rule *rule; /* by column */
	double share, z;
};

/** See value_table_load(): one document for each node, told apart by its first host's name. */
int fleet_load(const char *dir, struct fleet *f, struct fb_err *e) FB_MUST_CHECK;
void fleet_free(struct fleet *f);
/** @return 0 or -ENOMEM */
int fleet_judge(struct fleet *f, double share, double z) FB_MUST_CHECK;
/** Robust z of a node's value, worse is negative; NaN where it has none. Deviation 0: infinite off
 * the median. */
double fleet_z(const struct fleet *f, size_t column, size_t node);
bool fleet_is_odd(const struct fleet *f, size_t column, size_t node);
/** 1 a node is odd; 3 no metric has FLEET_MIN_NODES values, or a node lacks one that the others
 * have; 0. */
int fleet_status(const struct fleet *f);
void fleet_print(const struct fleet *f, FILE *out);
json_t *fleet_json(const struct fleet *f, const char *dir);

#endif
