// SPDX-License-Identifier: Apache-2.0
/* Change points: the statistic against its definition, known series, and that noise alone has none.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/core/stats.h"
#include "reports/change_points.h"

/* The definition, term by term. */
static double by_definition(const double *v, size_t t, size_t k)
{
	double a = 0, b = 0, c = 0, n = (double)t, m = (double)(k - t);
	for (size_t i = 0; i < k; i++)
		for (size_t j = i + 1; j < k; j++) {
			double d = fabs(v[i] - v[j]);
			*(i < t && j >= t ? &a : j < t ? &b : &c) += d;
		}
	return n * m / (n + m) * (2 * a / (n * m) - 2 * b / (n * (n - 1)) - 2 * c / (m * (m - 1)));
}

static void equals_its_definition(void **state)
{
	struct fb_rng rng;
	double v[23];
	fb_rng_seed(&rng, 1, 1);
	for (int round = 0; round < 20; round++) {
		size_t at = 0, got;
		double best = 0, q;
		for (size_t i = 0; i < 23; i++)
			v[i] = fb_rng_normal(&rng) + (i >= 9 ? round * 0.3 : 0);
		for (size_t k = 4; k <= 23; k++)
			for (size_t t = 2; t + 2 <= k; t++)
				if (by_definition(v, t, k) > best * (1 + 1e-12)) {
					best = by_definition(v, t, k);
					at = t;
				}
		assert_int_equal(rep_best_split(v, 23, &got, &q), 0);
		assert_int_equal(got, at);
		assert_true(fabs(q / best - 1) < 1e-9);
	}
}

static void known_series(void **state)
{
	struct fb_rng rng;
	struct rep_change c[120];
	double v[120];
	fb_rng_seed(&rng, 2, 1);
	/* Slower by 5 % at 40, back at 80. */
	for (size_t i = 0; i < 120; i++)
		v[i] = 100 * (1 + 0.01 * fb_rng_normal(&rng)) * (i >= 40 && i < 80 ? 1.05 : 1);
	assert_int_equal(rep_change_points(v, 120, 1e-3, 0.01, c), 2);
	assert_in_range(c[0].at, 39, 41);
	assert_in_range(c[1].at, 79, 81);
	assert_true(fabs(c[0].after / c[0].before - 1.05) < 0.01);
	assert_true(c[0].p < 1e-6 && c[1].p < 1e-6);
	/* 5 % are below a floor of 8 %. */
	assert_int_equal(rep_change_points(v, 120, 1e-3, 0.08, c), 0);
	/* One outlier is no level. */
	for (size_t i = 0; i < 120; i++)
		v[i] = i == 60 ? 150 : 100 + (double)(i % 3);
	assert_int_equal(rep_change_points(v, 120, 1e-3, 0.01, c), 0);
	/* A step without noise, and no step at all. */
	for (size_t i = 0; i < 40; i++)
		v[i] = i < 20 ? 1 : 2;
	assert_int_equal(rep_change_points(v, 40, 1e-3, 0.01, c), 1);
	assert_int_equal(c[0].at, 20);
	for (size_t i = 0; i < 40; i++)
		v[i] = 3;
	assert_int_equal(rep_change_points(v, 40, 1e-3, 0.01, c), 0);
}

static void short_and_long(void **state)
{
	static double v[REP_MAX_SERIES + 1];
	static struct rep_change c[REP_MAX_SERIES + 1];
	for (size_t n = 0; n < 12; n++)
		assert_int_equal(rep_change_points(v, n, 1e-3, 0.01, c), 0);
	/* Five against five can reach p = 0.008, not 0.001. */
	for (size_t i = 0; i < 10; i++)
		v[i] = i < 5 ? 1 : 9;
	assert_int_equal(rep_change_points(v, 10, 1e-3, 0.01, c), 0);
	assert_int_equal(rep_change_points(v, 10, 1e-2, 0.01, c), 1);
	assert_int_equal(rep_change_points(v, REP_MAX_SERIES + 1, 1e-3, 0.01, c), -E2BIG);
}

static void noise_has_none(void **state)
{
	struct fb_rng rng;
	struct rep_change c[60];
	double v[60];
	int found = 0;
	fb_rng_seed(&rng, 3, 1);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < 60; i++)
			v[i] = 100 * (1 + 0.01 * fb_rng_normal(&rng));
		found += rep_change_points(v, 60, 1e-3, 0.01, c) > 0;
	}
	print_message("%d of 200 series of noise have a change\n", found);
	assert_in_range(found, 0, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_its_definition),
		cmocka_unit_test(known_series),
		cmocka_unit_test(short_and_long),
		cmocka_unit_test(noise_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
