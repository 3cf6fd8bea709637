/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points in a series of one number per commit: E-divisive with means of absolute differences
 * (Matteson and James, Journal of the American Statistical Association 109:334, 2014), each point
 * accepted by Mann-Whitney and by its size. Deterministic: no permutations. Advisory: it needs
 * points after the change.
 */
#ifndef REPORTS_CHANGE_POINTS_H
#define REPORTS_CHANGE_POINTS_H

#include <stddef.h>

/** Longest series that is looked at whole; of a longer one the newest. A scan is O(n^2) space. */
#define REP_MAX_SERIES 2000

struct rep_change {
	size_t at;            /**< index of the first value of the new level */
	double p;             /**< Mann-Whitney, of the segments on both sides */
	double before, after; /**< medians of those segments */
};

/**
 * All changes in v[0..n), ascending. A change is accepted when p <= max_p and the medians differ by
 * at least `floor` (a share of the level before). Points that lose their significance once their
 * neighbours are known are dropped, weakest first.
 * @param v finite values in time order
 * @param changes room for n of them
 * @return their number; -ENOMEM; -E2BIG when n is over REP_MAX_SERIES
 */
int rep_change_points(
	const double *v, size_t n, double max_p, double floor, struct rep_change *changes);

/**
 * The E-divisive statistic's best split of v[0..n): the tau (and kappa, the end of the right part)
 * that maximises tau*(kappa-tau)/kappa * (2*A - B - C), A the mean absolute difference across, B
 * and C within the parts.
 * @param at receives the index of the right part's first value, 0: none (n < 4)
 * @param q  receives the statistic
 * @return 0 or -ENOMEM
 */
int rep_best_split(const double *v, size_t n, size_t *at, double *q);

#endif
