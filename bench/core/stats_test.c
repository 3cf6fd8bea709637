// SPDX-License-Identifier: Apache-2.0
/* Statistics against known answers and against GSL. */
#include "bench/core/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>

#include "bench/core/stats.h"

static void test_known_samples(void **st)
{
	double v[] = {9, 1, 6, 2, 4, 1, 2}, scratch[7];
	fb_sort(v, 7);
	assert_true(v[0] == 1 && v[1] == 1 && v[2] == 2 && v[6] == 9);
	assert_true(fb_median_sorted(v, 7) == 2);
	/* |x - 2| = 1 1 0 0 2 4 7, sorted 0 0 1 1 2 4 7. */
	assert_true(fb_mad_sorted(v, 7, scratch) == 1);
	assert_float_equal(fb_mean(v, 7), 25.0 / 7, 1e-15);
	/* Sum of squares 143: (143 - 625/7) / 6. */
	assert_float_equal(fb_stddev(v, 7), sqrt((143 - 625.0 / 7) / 6), 1e-14);
	double even[] = {1, 2, 4, 9};
	assert_true(fb_median_sorted(even, 4) == 3);
	assert_true(isnan(fb_median_sorted(even, 0)));
	assert_true(isnan(fb_mean(even, 0)));
	assert_true(isnan(fb_stddev(even, 1)));
	assert_true(isnan(fb_lag1(even, 2)));
	double same[] = {5, 5, 5, 5};
	assert_true(isnan(fb_lag1(same, 4)));
	assert_true(fb_mad_sorted(same, 4, scratch) == 0);
	double huge[] = {-1.7e308, 1.7e308};
	assert_true(isfinite(fb_mean(huge, 2)));
}

/* NIST Statistical Reference Datasets, univariate summary statistics: certified mean, deviation and
 * lag-1 autocorrelation. Michelso: the speed of light, less 299 in Mm/s, in 1e-3. */
static void test_nist_reference(void **st)
{
	static const short michelso[100] = {850, 740, 900, 1070, 930, 850, 950, 980, 980, 880, 1000,
		980, 930, 650, 760, 810, 1000, 1000, 960, 960, 960, 940, 960, 940, 880, 800, 850,
		880, 900, 840, 830, 790, 810, 880, 880, 830, 800, 790, 760, 800, 880, 880, 880, 860,
		720, 720, 620, 860, 970, 950, 880, 910, 850, 870, 840, 840, 850, 840, 840, 840, 890,
		810, 810, 820, 800, 770, 760, 740, 750, 760, 910, 920, 890, 860, 880, 720, 840, 850,
		850, 780, 890, 840, 780, 810, 760, 810, 790, 810, 820, 850, 870, 870, 810, 740, 810,
		940, 950, 800, 810, 870};
	static double v[1001];
	for (int i = 0; i < 100; i++)
		v[i] = 299 + michelso[i] / 1000.0;
	assert_float_equal(fb_mean(v, 100), 299.852400000000, 1e-12);
	assert_float_equal(fb_stddev(v, 100), 0.0790105478190518, 1e-14);
	assert_float_equal(fb_lag1(v, 100), 0.535199668621283, 1e-12);
	/* NumAcc4: 10000000.2, then .1 and .3 in turn: digits cancel in a careless formula. */
	v[0] = 10000000.2;
	for (int i = 1; i < 1001; i++)
		v[i] = i % 2 ? 10000000.1 : 10000000.3;
	assert_float_equal(fb_mean(v, 1001), 10000000.2, 1e-8);
	assert_float_equal(fb_stddev(v, 1001), 0.1, 1e-8);
	assert_float_equal(fb_lag1(v, 1001), -0.999, 1e-7);
}

static void test_against_gsl(void **st)
{
	struct fb_rng r;
	fb_rng_seed(&r, 11, 3);
	double v[500] = {0}, sorted[500], scratch[500];
	for (size_t n = 3; n <= 500; n += 7) {
		for (size_t i = 0; i < n; i++)
			v[i] = 1e6 + 100 * fb_rng_normal(&r) + (i ? 0.5 * (v[i - 1] - 1e6) : 0);
		memcpy(sorted, v, n * sizeof(*v));
		fb_sort(sorted, n);
		assert_float_equal(fb_mean(v, n), gsl_stats_mean(v, 1, n), 1e-8);
		assert_float_equal(fb_stddev(v, n), gsl_stats_sd(v, 1, n), 1e-8);
		assert_float_equal(fb_median_sorted(sorted, n),
			gsl_stats_median_from_sorted_data(sorted, 1, n), 1e-8);
		double work[500];
		assert_float_equal(
			fb_mad_sorted(sorted, n, scratch), gsl_stats_mad0(v, 1, n, work), 1e-8);
		assert_float_equal(fb_lag1(v, n), gsl_stats_lag1_autocorrelation(v, 1, n), 1e-10);
	}
}

/* Ranks as in Conover, Practical Nonparametric Statistics, 3.2, and the common tables. */
static void test_median_ranks_known(void **st)
{
	static const struct {
		size_t n, lo, hi;
	} rows[] = {{6, 1, 6}, {7, 1, 7}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {15, 4, 12},
		{20, 6, 15}, {25, 8, 18}, {30, 10, 21}, {50, 18, 33}, {100, 40, 61}};
	size_t lo, hi;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(fb_median_ci_ranks(rows[i].n, 0.95, &lo, &hi));
		assert_int_equal(lo, rows[i].lo);
		assert_int_equal(hi, rows[i].hi);
	}
	for (size_t n = 0; n <= 5; n++)
		assert_false(fb_median_ci_ranks(n, 0.95, &lo, &hi));
	assert_false(fb_median_ci_ranks(7, 0.99, &lo, &hi)); /* 98.4 % at best */
	assert_true(fb_median_ci_ranks(8, 0.99, &lo, &hi));
	assert_false(fb_median_ci_ranks(100, 1, &lo, &hi));
	assert_false(fb_median_ci_ranks(100, 0, &lo, &hi));
}

/* P(X < lo) + P(X >= hi) of Binomial(n, q): what the interval misses. */
static double missed(uint64_t n, double q, uint64_t lo, uint64_t hi)
{
	return gsl_cdf_binomial_P((unsigned)lo - 1, q, (unsigned)n) +
	       gsl_cdf_binomial_Q((unsigned)hi - 1, q, (unsigned)n);
}

static void test_median_ranks_against_gsl(void **st)
{
	static const double levels[] = {0.9, 0.95, 0.99};
	for (int l = 0; l < 3; l++) {
		for (size_t n = 8; n <= 1000; n += n < 100 ? 1 : 37) {
			size_t lo, hi;
			assert_true(fb_median_ci_ranks(n, levels[l], &lo, &hi));
			assert_int_equal(lo + hi, n + 1);
			assert_true(missed(n, 0.5, lo, hi) <= 1 - levels[l] + 1e-12);
			/* One rank narrower would miss too much: it is the narrowest. */
			if (lo + 1 < hi - 1)
				assert_true(missed(n, 0.5, lo + 1, hi - 1) > 1 - levels[l]);
		}
		/* Above 1000 by the normal: the exact ranks, or one off. */
		for (size_t n = 1001; n < 2000000; n = n * 3 + 1) {
			size_t lo, hi;
			assert_true(fb_median_ci_ranks(n, levels[l], &lo, &hi));
			assert_int_equal(lo + hi, n + 1);
			assert_true(missed(n, 0.5, lo - 1, hi + 1) <= 1 - levels[l]);
			assert_true(missed(n, 0.5, lo + 2, hi - 2) > 1 - levels[l]);
		}
	}
}

static void test_median_ci(void **st)
{
	double v[20];
	for (int i = 0; i < 20; i++)
		v[i] = i + 1;
	struct fb_ci ci = fb_median_ci_sorted(v, 20, 0.95);
	assert_true(ci.valid && ci.est == 10.5 && ci.lo == 6 && ci.hi == 15 && ci.level == 0.95);
	ci = fb_median_ci_sorted(v, 5, 0.95);
	assert_true(!ci.valid && ci.est == 3 && isnan(ci.lo) && isnan(ci.hi));
	ci = fb_median_ci_sorted(v, 0, 0.95);
	assert_true(!ci.valid && isnan(ci.est));
}

static void test_quantile_ranks(void **st)
{
	static const double qs[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
	uint64_t lo, hi;
	for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
		/* From where the quantile may be printed at all, the interval covers nearly its
		 * level: a binomial this skew is a little off its normal. */
		for (uint64_t n = fb_quantile_min_n(qs[i]) + 30; n < 100000; n = n * 2 + 1) {
			assert_true(fb_quantile_ci_ranks(n, qs[i], 0.95, &lo, &hi));
			assert_true(lo >= 1 && lo <= hi && hi <= n);
			assert_true(missed(n, qs[i], lo, hi) < 0.065);
		}
	}
	assert_false(fb_quantile_ci_ranks(5, 0.5, 0.95, &lo, &hi));
	assert_false(fb_quantile_ci_ranks(100, 0.99, 0.95, &lo, &hi));
	assert_false(fb_quantile_ci_ranks(0, 0.5, 0.95, &lo, &hi));
	assert_false(fb_quantile_ci_ranks(100, 0, 0.95, &lo, &hi));
	assert_false(fb_quantile_ci_ranks(100, 0.5, 1, &lo, &hi));
	/* n q = 990, z s = 1.95996 * sqrt(9.9) = 6.167: 983 to 998. */
	assert_true(fb_quantile_ci_ranks(1000, 0.99, 0.95, &lo, &hi));
	assert_int_equal(lo, 983);
	assert_int_equal(hi, 998);
}

static void test_min_n(void **st)
{
	static const struct {
		double q;
		uint64_t n;
	} rows[] = {{0.5, 1}, {0.9, 100}, {0.95, 200}, {0.99, 1000}, {0.999, 10000},
		{0.9999, 100000}, {0.99999, 1000000}, {0.05, 200}, {0.01, 1000}, {0.25, 40},
		{0.75, 40}, {0.97, 334}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(fb_quantile_min_n(rows[i].q), rows[i].n);
	assert_true(fb_quantile_min_n(1) == UINT64_MAX);
	assert_true(fb_quantile_min_n(0) == UINT64_MAX);
	assert_true(fb_quantile_min_n(NAN) == UINT64_MAX);
}

/* The first words that the reference program pcg32-demo (pcg-c-basic) prints for 42, 54. */
static void test_pcg32(void **st)
{
	static const uint32_t want[] = {
		0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e};
	struct fb_rng r;
	fb_rng_seed(&r, 42, 54);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fb_rng_u32(&r), want[i]);
}

static void test_distributions(void **st)
{
	enum { N = 100000 };
	double *u = malloc(N * sizeof(*u)), *z = malloc(N * sizeof(*z));
	assert_true(u && z);
	struct fb_rng r;
	fb_rng_seed(&r, 1, 2);
	for (int i = 0; i < N; i++) {
		u[i] = fb_rng_uniform(&r);
		z[i] = fb_rng_normal(&r);
		assert_true(u[i] >= 0 && u[i] < 1 && isfinite(z[i]));
	}
	/* The seed is fixed: these bounds, five deviations of the mean, cannot flicker. */
	assert_float_equal(fb_mean(u, N), 0.5, 5 * 0.2887 / sqrt(N));
	assert_float_equal(fb_mean(z, N), 0, 5 / sqrt(N));
	assert_float_equal(fb_stddev(z, N), 1, 5 / sqrt(2.0 * N));
	assert_float_equal(fb_lag1(z, N), 0, 5 / sqrt(N));
	fb_sort(z, N);
	/* Kolmogorov's distance from the normal: 1.95/sqrt(n) is its 0.1 % point. */
	double d = 0;
	for (int i = 0; i < N; i++)
		d = fmax(d, fabs(gsl_cdf_ugaussian_P(z[i]) - (i + 0.5) / N));
	assert_true(d < 1.95 / sqrt(N));
	free(u);
	free(z);
}

/* Pairs of unequal length about a true ratio of 2: the interval holds it about as often as it says.
 */
static void test_ratio_ci(void **state)
{
	(void)state;
	double work[40], time[40];
	int covered = 0;
	for (unsigned seed = 1; seed <= 400; seed++) {
		struct fb_rng r;
		fb_rng_seed(&r, seed, 7);
		for (int i = 0; i < 40; i++) {
			time[i] = 1 + 9 * fb_rng_uniform(&r);
			work[i] = time[i] * (2 + 0.1 * fb_rng_normal(&r));
		}
		struct fb_ci ci = fb_ratio_ci(work, time, 40, 0.95, seed);
		assert_true(ci.valid);
		assert_true(ci.lo <= ci.est && ci.est <= ci.hi);
		covered += ci.lo <= 2 && 2 <= ci.hi;
	}
	/* Percentile intervals of 40 pairs run a little narrow: 92 to 95 % are to be expected. */
	assert_in_range(covered, 360, 390);
	assert_false(fb_ratio_ci(work, time, 5, 0.95, 1).valid);
	for (int i = 0; i < 40; i++)
		work[i] = 3 * time[i];
	struct fb_ci same = fb_ratio_ci(work, time, 40, 0.95, 1);
	assert_true(same.hi - same.lo < 1e-9 && same.est > 2.999 && same.est < 3.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ratio_ci),
		cmocka_unit_test(test_known_samples),
		cmocka_unit_test(test_nist_reference),
		cmocka_unit_test(test_against_gsl),
		cmocka_unit_test(test_median_ranks_known),
		cmocka_unit_test(test_median_ranks_against_gsl),
		cmocka_unit_test(test_median_ci),
		cmocka_unit_test(test_quantile_ranks),
		cmocka_unit_test(test_min_n),
		cmocka_unit_test(test_pcg32),
		cmocka_unit_test(test_distributions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
