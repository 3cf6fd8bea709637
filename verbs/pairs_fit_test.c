// SPDX-License-Identifier: Apache-2.0
/*
 * The two estimators under the pairs judge: the median by selection, and the centre of a host's
 * values.
 */
#include "bench/core/test.h"

#include <math.h>

#include "bench/core/stats.h"
#include "verbs/pairs_priv.h"

static void median_against_sorting(void **state)
{
	double v[301], s[301];
	struct fb_rng rng;

	(void)state;
	fb_rng_seed(&rng, 1, 1);
	for (size_t n = 1; n <= 301; n++)
		for (int kind = 0; kind < 4; kind++) {
			for (size_t i = 0; i < n; i++)
				v[i] = s[i] = kind == 0   ? fb_rng_normal(&rng)
					      : kind == 1 ? fb_rng_u32(&rng) % 3
					      : kind == 2 ? (double)i
							  : (double)(i < n / 2 ? i : n - i);
			fb_sort(s, n);
			assert_true(pairs_median(v, n) == fb_median_sorted(s, n));
		}
	assert_true(isnan(pairs_median(v, 0)));
}

static void centre_of_values(void **state)
{
	double three[] = {-0.36, 0.01, 0.03}, two[] = {-0.36, 0.01}, near[] = {0.0, 0.02},
	       one[] = {4};

	(void)state;
	assert_true(fabs(pairs_centre(three, 3, 0.03) - 0.02) < 1e-12);
	assert_true(fabs(pairs_centre(two, 2, 0.03) - 0.01) < 1e-12);
	assert_true(fabs(pairs_centre(near, 2, 0.03) - 0.01) < 1e-12);
	assert_true(pairs_centre(one, 1, 0.03) == 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_against_sorting),
		cmocka_unit_test(centre_of_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
