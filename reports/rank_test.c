// SPDX-License-Identifier: Apache-2.0
/* Known answers of the rank statistics. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "reports/rank.h"

static void near(double got, double want, double rel)
{
	if (!(fabs(got - want) <= rel * fabs(want)))
		fail_msg("got %.9g, want %.9g", got, want);
}

/* Complete separation gives the smallest p there is: 2 / C(2n, n). Table of benchstat's
 * documentation. */
static void smallest_p(void **state)
{
	static const struct {
		size_t n;
		double p;
	} known[] = {{3, 0.1}, {4, 0.0285714286}, {5, 0.00793650794}, {6, 0.00216450216},
		{7, 0.000582750583}, {8, 0.000155400155}, {10, 1.08250882e-05}};
	double a[10], b[10];
	for (size_t i = 0; i < 10; i++) {
		a[i] = (double)i;
		b[i] = 100 + (double)i;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		near(rep_mwu_p(a, known[i].n, b, known[i].n), known[i].p, 1e-7);
		near(rep_mwu_p(b, known[i].n, a, known[i].n), known[i].p, 1e-7);
	}
}

static void equal_and_empty(void **state)
{
	double a[] = {5, 5, 5, 5}, b[] = {5, 5, 5}, c[] = {1, 4}, d[] = {2, 3};
	assert_true(rep_mwu_p(a, 4, b, 3) == 1);
	assert_true(rep_mwu_p(a, 0, b, 3) == 1);
	assert_true(rep_mwu_p(c, 2, d, 2) == 1); /* U1 = U2 */
	double many[30];
	for (size_t i = 0; i < 30; i++)
		many[i] = 5;
	assert_true(rep_mwu_p(many, 30, many, 30) == 1);
}

/* By hand: ranks 1.5 1.5 3 | 4 5: of the 10 relabelings two are as extreme. */
static void ties_by_hand(void **state)
{
	double a[] = {1, 1, 2}, b[] = {3, 4};
	near(rep_mwu_p(a, 3, b, 2), 2.0 / 10, 1e-12);
	/* One tie across the samples; sum of ranks of c is 1 + 2.5 = 3.5 of {1, 2.5, 2.5, 4}; all
	 * pairs: 3.5 3.5 5 5 6.5 6.5, mean 5: four of six are as far. */
	double c[] = {1, 2}, d[] = {2, 3};
	near(rep_mwu_p(c, 2, d, 2), 4.0 / 6, 1e-12);
}

/* The counts against a plain enumeration of all C(11, 5) ways to draw the first sample's ranks. */
static void counts_against_enumeration(void **state)
{
	const double a[] = {1, 2, 5, 7, 9}, b[] = {3, 4, 6, 8, 10, 11};
	unsigned hits = 0, total = 0;
	for (unsigned mask = 0; mask < 1u << 11; mask++) {
		int sum = 0;
		if (__builtin_popcount(mask) != 5)
			continue;
		for (int i = 0; i < 11; i++)
			sum += mask >> i & 1 ? i + 1 : 0;
		hits += abs(sum - 30) >= abs(1 + 2 + 5 + 7 + 9 - 30);
		total++;
	}
	assert_int_equal(total, 462);
	near(rep_mwu_p(a, 5, b, 6), (double)hits / total, 1e-12);
}

/* The normal approximation against the exact value at the border between them. */
static void normal_is_close(void **state)
{
	double a[40], b[40];
	for (size_t i = 0; i < 40; i++) {
		a[i] = (double)i;
		b[i] = (double)i + 5.5;
	}
	double exact = rep_mwu_p(a, 20, b, 20);
	double tied = (b[0] = b[1], rep_mwu_p(a, 20, b, 20)); /* a tie: normal beyond N = 20 */
	assert_true(exact > 1e-4 && exact < 1e-2);
	near(tied, exact, 0.35);
}

/* d = {ln 2 three times, ...}: constant ratio gives that ratio and a degenerate interval. */
static void hl_known(void **state)
{
	double a[] = {10, 10, 10, 10, 10, 10, 10}, b[] = {12, 12, 12, 12, 12, 12, 12};
	struct fb_ci ci = rep_hl_ratio(a, 7, b, 7, 0.95);
	assert_true(ci.valid);
	near(ci.est, 1.2, 1e-12);
	near(ci.lo, 1.2, 1e-12);
	near(ci.hi, 1.2, 1e-12);
	/* n = m = 3: 2/20 = 0.1 > 0.05, so no 95 % interval; at 90 % it is the whole range. */
	double c[] = {1, 2, 4}, d[] = {8, 16, 32};
	assert_false(rep_hl_ratio(c, 3, d, 3, 0.95).valid);
	ci = rep_hl_ratio(c, 3, d, 3, 0.899999);
	assert_true(ci.valid);
	near(ci.est, 8, 1e-12);
	near(ci.lo, 2, 1e-12);
	near(ci.hi, 32, 1e-12);
	double zero[] = {0, 1};
	assert_true(isnan(rep_hl_ratio(zero, 2, d, 3, 0.95).est));
}

/* The critical value of U for n = m = 7, two-sided 5 %, is 8 (Mann and Whitney's table), so the
 * interval runs from the 9th smallest to the 9th largest of the 49 differences. */
static void hl_critical_value(void **state)
{
	double a[7], b[7], d[49];
	for (size_t i = 0; i < 7; i++) {
		a[i] = exp((double)i);
		b[i] = exp(0.13 * (double)(i * i) + 1);
	}
	for (size_t i = 0; i < 49; i++)
		d[i] = log(b[i % 7]) - log(a[i / 7]);
	fb_sort(d, 49);
	struct fb_ci ci = rep_hl_ratio(a, 7, b, 7, 0.95);
	near(log(ci.lo), d[8], 1e-9);
	near(log(ci.hi), d[40], 1e-9);
	near(log(ci.est), d[24], 1e-9);
}

/* Holm 1979's way through 0.01, 0.04, 0.03, 0.005: 4*.005, 3*.01, 2*.03, then not below that. */
static void holm_known(void **state)
{
	double p[] = {0.01, 0.04, 0.03, 0.005};
	assert_int_equal(rep_holm(p, 4), 0);
	near(p[3], 0.02, 1e-12);
	near(p[0], 0.03, 1e-12);
	near(p[2], 0.06, 1e-12);
	near(p[1], 0.06, 1e-12);
}

/* Permeability of membranes, Hollander and Wolfe, Nonparametric Statistical Methods, table 4.1: of
 * R's wilcox.test() p = 0.2544, estimate 0.305, interval -0.15 to 0.76. */
static void hollander_wolfe(void **state)
{
	const double term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
	const double early[] = {1.15, 0.88, 0.90, 0.74, 1.21};
	double a[10], b[5];
	near(rep_mwu_p(term, 10, early, 5), 764.0 / 3003, 1e-12);
	for (size_t i = 0; i < 10; i++)
		a[i] = exp(term[i]);
	for (size_t i = 0; i < 5; i++)
		b[i] = exp(early[i]);
	struct fb_ci ci = rep_hl_ratio(b, 5, a, 10, 0.95);
	assert_true(ci.valid);
	near(log(ci.est), 0.305, 1e-9);
	near(log(ci.lo), -0.15, 1e-9);
	near(log(ci.hi), 0.76, 1e-9);
}

/* Twenty launches whose medians are a histogram's buckets; counted over all 184,756 relabelings by
 * itertools.combinations of Python. */
static void ties_by_enumeration(void **state)
{
	const double a[] = {9888, 9888, 9952, 10016, 10016, 10080, 10080, 10144, 10080, 10080};
	const double b[] = {10016, 10080, 10144, 10144, 10208, 10208, 10080, 10272, 10144, 10208};
	near(rep_mwu_p(a, 10, b, 10), 748.0 / 184756, 1e-12);
	near(rep_mwu_p(b, 10, a, 10), 748.0 / 184756, 1e-12);
	const double c[] = {3, 3, 3, 4}, d[] = {4, 4, 5, 5, 5, 6};
	near(rep_mwu_p(c, 4, d, 6), 4.0 / 210, 1e-12);
}

static void edges(void **state)
{
	const double one[] = {1}, same[] = {1}, two[] = {2}, below[] = {-3, -2, -1, 0};
	double many[19], above[] = {1, 2, 3, 4}, p[] = {0.2};
	for (size_t i = 0; i < 19; i++)
		many[i] = 2 + (double)i;
	assert_true(rep_mwu_p(one, 1, two, 1) == 1);
	assert_true(rep_mwu_p(one, 1, same, 1) == 1);
	near(rep_mwu_p(one, 1, many, 19), 0.1, 1e-12);
	/* Ranks know no sign; ratios do. */
	near(rep_mwu_p(below, 4, above, 4), 2.0 / 70, 1e-12);
	assert_false(rep_hl_ratio(below, 4, above, 4, 0.95).valid);
	assert_true(isnan(rep_hl_ratio(above, 4, below, 4, 0.95).est));
	assert_false(rep_hl_ratio(above, 4, above, 0, 0.95).valid);
	assert_int_equal(rep_holm(p, 1), 0);
	assert_true(p[0] == 0.2);
	assert_int_equal(rep_holm(p, 0), 0);
}

/* The normal law's p, from the same formulas in Python: U = 4005 without ties, 3872 with. */
static void many_launches(void **state)
{
	double a[100], b[100];
	for (size_t i = 0; i < 100; i++) {
		a[i] = (double)i;
		b[i] = (double)i + 10.5;
	}
	near(rep_mwu_p(a, 100, b, 100), 0.015100895558924696, 1e-9);
	for (size_t i = 0; i < 100; i++) {
		a[i] = floor((double)i / 4);
		b[i] = a[i] + 3;
	}
	near(rep_mwu_p(a, 100, b, 100), 0.005835321400283702, 1e-9);
	/* A thousand a side: the interval closes in on a ratio of 1.02. */
	double *c = calloc(1000, sizeof(*c)), *d = calloc(1000, sizeof(*d));
	assert_true(c && d);
	for (size_t i = 0; i < 1000; i++) {
		c[i] = exp(0.00001 * (double)(i * 7919 % 1000));
		d[i] = 1.02 * c[i];
	}
	struct fb_ci ci = rep_hl_ratio(c, 1000, d, 1000, 0.95);
	near(ci.est, 1.02, 1e-9);
	assert_true(ci.lo > 1.0196 && ci.lo < ci.est && ci.hi < 1.0204 && ci.hi > ci.est);
	assert_true(rep_mwu_p(c, 1000, d, 1000) < 1e-12);
	free(c);
	free(d);
}

/* Against the table of all differences, and without one: 10,000 launches a side have 10^8. */
static void hl_without_a_table(void **state)
{
	enum { A = 37, B = 24, LOW = 311, MANY = 10000 };
	double a[A], b[B], d[A * B];
	for (size_t i = 0; i < A; i++)
		a[i] = exp(0.01 * (double)(i * 17 % A) - 0.2);
	for (size_t i = 0; i < B; i++)
		b[i] = exp(0.01 * (double)(i * 5 % B / 2) - 0.1);
	for (size_t i = 0; i < (size_t)A * B; i++)
		d[i] = log(b[i % B]) - log(a[i / B]);
	fb_sort(d, (size_t)A * B);
	struct fb_ci ci = rep_hl_ratio(a, A, b, B, 0.95);
	assert_true(ci.valid);
	assert_true(ci.est == exp(fb_median_sorted(d, (size_t)A * B)));
	/* By the normal law 311; counted, it would be 312. */
	assert_true(ci.lo == exp(d[LOW - 1]) && ci.hi == exp(d[(size_t)A * B - LOW]));
	double *c = calloc(MANY, sizeof(*c)), *e = calloc(MANY, sizeof(*e));
	assert_true(c && e);
	for (size_t i = 0; i < MANY; i++) {
		c[i] = exp(0.00001 * (double)(i * 7919 % MANY));
		e[i] = 1.02 * c[i];
	}
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	long kb = used.ru_maxrss;
	ci = rep_hl_ratio(c, MANY, e, MANY, 0.95);
	getrusage(RUSAGE_SELF, &used);
	near(ci.est, 1.02, 1e-9);
	assert_true(ci.valid && ci.lo > 1.017 && ci.lo < 1.02 && ci.hi > 1.02 && ci.hi < 1.023);
	if (used.ru_maxrss - kb > 100 * 1024)
		fail_msg("%ld KB for 10,000 launches a side", used.ru_maxrss - kb);
	free(c);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest_p),
		cmocka_unit_test(equal_and_empty),
		cmocka_unit_test(ties_by_hand),
		cmocka_unit_test(counts_against_enumeration),
		cmocka_unit_test(normal_is_close),
		cmocka_unit_test(hl_known),
		cmocka_unit_test(hl_critical_value),
		cmocka_unit_test(holm_known),
		cmocka_unit_test(hollander_wolfe),
		cmocka_unit_test(ties_by_enumeration),
		cmocka_unit_test(edges),
		cmocka_unit_test(many_launches),
		cmocka_unit_test(hl_without_a_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
