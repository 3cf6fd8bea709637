/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The absolute gate: one run against what its kind of machine is expected to reach, beside the
 * physical bounds. The expectations are one file of rows (expected.csv, built in; a site gives its
 * own): kind, case, metric, smallest message, nodes, lower, value, upper, unit, source.
 */
#ifndef REPORTS_COMPARE_EXPECTED_H
#define REPORTS_COMPARE_EXPECTED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/err.h"

struct expected_row {
	char kind[48], cases[96], metric[40], unit[16], source[200];
	uint64_t size;              /**< smallest message the row speaks of, bytes */
	unsigned nodes;             /**< 0: any number */
	double lower, value, upper; /**< in `unit`; NaN: not given */
	unsigned line;
};

enum expected_state {
	EXPECTED_PASS,
	EXPECTED_BELOW, /**< worse than the row allows: lower of rates, upper of times */
	EXPECTED_ABOVE, /**< better than the row calls possible, or over 101 % of a physical bound
			 */
	EXPECTED_UNMEASURED, /**< the run has no such result */
	EXPECTED_ELSEWHERE,  /**< it has, but not from hardware, or from another number of nodes */
	EXPECTED_INVALID,    /**< a launch of it was marked invalid */
};

/** How one row came out. */
struct expected_finding {
	const struct expected_row *row;
	enum expected_state state;
	char name[160]; /**< case of the result that decided; empty: none */
	double seen;    /**< its median over launches, in the row's unit; NaN: none */
	double bound;   /**< its physical bound in that unit; NaN: none */
	char why[160];
};

struct expected {
	struct expected_row *row;
	size_t n;
	struct expected_finding *finding; /**< of the rows of the kind that was asked for */
	size_t n_findings;
	bool wrong_data; /**< the run records it */
};

/** @param path NULL: the built-in file. @return 0; -errno, -EINVAL with file, line and cause (exit
 * 2) */
int expected_load(const char *path, struct expected *x, struct fb_err *e) FB_MUST_CHECK;
/** The same of a text, which is cut up. @param name for messages */
int expected_parse(
	char *text, const char *name, struct expected *x, struct fb_err *e) FB_MUST_CHECK;
void expected_free(struct expected *x);
/** Judge a run's document. @return 0; -ENOENT: no row of this kind, the kinds are named (exit 2) */
int expected_judge(
	struct expected *x, const char *kind, const json_t *doc, struct fb_err *e) FB_MUST_CHECK;
/** 4 the run records wrong data; 1 something is BELOW; 3 ABOVE, unmeasured, elsewhere or invalid;
 * 0. */
int expected_status(const struct expected *x);
void expected_print(const struct expected *x, FILE *out);
json_t *expected_json(const struct expected *x, const char *kind);

#endif
