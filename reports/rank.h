/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics on ranks, for comparing launches: no assumption of normality, exact where the samples
 * are small. The unit of both samples is the launch, never the iteration. Known answers stand in
 * rank_test.c. Source: references, A1.3 and A1.4; Mann and Whitney, Annals of Mathematical
 * Statistics 18:50 (1947); Hodges and Lehmann, ibid. 34:598 (1963); Holm, Scandinavian Journal of
 * Statistics 6:65 (1979).
 */
#ifndef REPORTS_RANK_H
#define REPORTS_RANK_H

#include <stddef.h>

#include "bench/core/stats.h"

/**
 * Two-sided p of the Mann-Whitney test that a and b come from one distribution. Exact without ties
 * while C(na+nb, na) is exact in a double, and with ties up to na + nb = 20; normal with correction
 * for ties and continuity beyond.
 * @return p; 1 when a sample is empty or all values are equal; NAN without memory
 */
double rep_mwu_p(const double *a, size_t na, const double *b, size_t nb);

/**
 * Hodges-Lehmann estimate of b/a with its interval, from the logarithms of all pairs' ratios.
 * Values must be > 0. valid is false (lo, hi NAN) when the samples are too small for the level;
 * est is NAN when a sample is empty or a value is not positive.
 */
struct fb_ci rep_hl_ratio(const double *a, size_t na, const double *b, size_t nb, double level);

/** Holm's step-down adjustment of n p-values, in place. @return 0 or -ENOMEM */
int rep_holm(double *p, size_t n);

#endif
