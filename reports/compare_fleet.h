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

#define FLEET_MIN_NODES 5 /* with fewer a median says nothing of which one is odd */

struct fleet_node {
	char name[96]; /* host, else the file's name */
	bool odd;
};
struct fleet_metric {
	char name[160], metric[56], unit[16];
	bool lower;         /* lower is better */
	double *v;          /* by node, median over its launches; NaN: the node has none */
	double median, mad; /* mad scaled by 1.4826; NaN with fewer than FLEET_MIN_NODES values */
	size_t n;           /* nodes that have a value */
};
struct fleet {
	struct fleet_node *node;
	size_t n_nodes;
	struct fleet_metric *metric;
	size_t n_metrics;
	double share, z; /* the rule */
};

/** Read every *.json of a folder and every run.json of its folders. @return 0; -errno; -EINVAL: a
 * file that is no document, two of one node (exit 2); -ENODATA: none (exit 2) */
int fleet_load(const char *dir, struct fleet *f, struct fb_err *e) FB_MUST_CHECK;
void fleet_free(struct fleet *f);
void fleet_judge(struct fleet *f, double share, double z);
/** Robust z of a node's value, worse is negative; NaN where it has none. MAD 0: infinite off the
 * median. */
double fleet_z(const struct fleet_metric *m, size_t node);
bool fleet_is_odd(const struct fleet *f, const struct fleet_metric *m, size_t node);
/** 1 a node is odd; 3 no metric has FLEET_MIN_NODES values, or a node lacks one that the others
 * have; 0. */
int fleet_status(const struct fleet *f);
void fleet_print(const struct fleet *f, FILE *out);
json_t *fleet_json(const struct fleet *f, const char *dir);

#endif
