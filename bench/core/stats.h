/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics that need no assumption of normality. Known-answer tests stand in stats_test.c; GSL is
 * the oracle there.
 */
#ifndef FB_CORE_STATS_H
#define FB_CORE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An estimate with its interval. */
struct fb_ci {
	double est, lo, hi;
	double level; /**< nominal confidence, e.g. 0.95 */
	bool valid; /**< false: n too small for an interval at this level; lo and hi are then NAN */
};

/** Sort doubles ascending (NaN is not allowed). */
void fb_sort(double *v, size_t n);
/** Median of sorted values; NAN when n is 0. */
double fb_median_sorted(const double *sorted, size_t n);
/** Median absolute deviation about the median, unscaled (times 1.4826 estimates sigma). Scratch: n
 * doubles. */
double fb_mad_sorted(const double *sorted, size_t n, double *scratch);
double fb_mean(const double *v, size_t n);
double fb_stddev(const double *v, size_t n);
/**
 * Median with its order-statistic interval: the narrowest symmetric pair of ranks whose coverage by
 * Binomial(n, 1/2) is at least `level`; n >= 6 is needed for 95 %. Source: references, A1.4;
 * Conover, Practical Nonparametric Statistics.
 */
struct fb_ci fb_median_ci_sorted(const double *sorted, size_t n, double level);
/** 1-based ranks lo <= hi of that interval; false when n is too small. Exact binomial up to n =
 * 1000, normal above. */
bool fb_median_ci_ranks(size_t n, double level, size_t *lo, size_t *hi);
/** 1-based ranks of the binomial interval of quantile q: n*q -/+ z*sqrt(n*q*(1-q)), clamped; false
 * when n is too small. */
bool fb_quantile_ci_ranks(uint64_t n, double q, double level, uint64_t *lo, uint64_t *hi);
/** Smallest n at which quantile q may be printed: ceil(10/(1-q)), by symmetry ceil(10/q) below the
 * median, 1 for it. */
uint64_t fb_quantile_min_n(double q);
/** Lag-1 autocorrelation in time order; NAN when undefined. */
double fb_lag1(const double *v, size_t n);

/**
 * sum(work)/sum(time) with its percentile bootstrap interval over the n pairs (1,000 seeded
 * resamples): the interval of the figure itself, which the median of the pairs' own rates is not
 * when pairs differ in length. Source: Efron and Tibshirani, An Introduction to the Bootstrap,
 * ch. 13. Not valid when n < 6.
 */
struct fb_ci fb_ratio_ci(
	const double *work, const double *time, size_t n, double level, uint64_t seed);

/* A small seeded generator (PCG32), so that tests and the null benchmark are repeatable. */
struct fb_rng {
	uint64_t state, inc;
};
void fb_rng_seed(struct fb_rng *r, uint64_t seed, uint64_t stream);
uint32_t fb_rng_u32(struct fb_rng *r);
double fb_rng_uniform(struct fb_rng *r); /**< [0,1) */
double fb_rng_normal(struct fb_rng *r);

#endif
