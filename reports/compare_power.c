// SPDX-License-Identifier: Apache-2.0
/*
 * What a gate could have seen. From the noise of the launches at hand: the smallest change that
 * would have been called REGRESSED with a given power, and the launches with which an unchanged
 * build would pass and twice the floor be seen.
 *
 * The spread of Hodges-Lehmann's estimate is that of a difference of means times sqrt(pi/3), the
 * root of the Wilcoxon test's efficiency at normal noise (Hodges and Lehmann, Annals of
 * Mathematical Statistics 27:324, 1956).
 */
#include <math.h>

#include "reports/compare_priv.h"
#include "reports/rank.h"

#define MAX_LAUNCHES 1000

/* Upper quantile of the normal distribution: P(Z > z) = p, 0 < p < 1. By bisection: exact to 1e-9,
 * and called a few times a metric. */
static double upper_z(double p)
{
	double lo = -10, hi = 10;
	for (int i = 0; i < 60; i++) {
		double mid = (lo + hi) / 2;
		if (0.5 * erfc(mid / sqrt(2)) > p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

static double squares(const struct cmp_side *s)
{
	double mean = 0, sum = 0;
	for (size_t i = 0; i < s->n; i++)
		mean += log(s->v[i]) / (double)s->n;
	for (size_t i = 0; i < s->n; i++)
		sum += (log(s->v[i]) - mean) * (log(s->v[i]) - mean);
	return sum;
}

/* Launches a side so that the floor is (z_alpha + z_power) spreads away from no change, and no
 * fewer than can reach alpha at all. */
static double needed(double noise, double floor, double z, double alpha)
{
	double least = (double)cmp_launches_for(alpha);
	double n = floor > 0 ? 2 * M_PI / 3 * noise * noise * z * z / (floor * floor) : INFINITY;
	n = ceil(n);
	n = n < CMP_MIN_LAUNCHES ? CMP_MIN_LAUNCHES : n;
	return n < least ? least : n;
}

void cmp_power(struct cmp_metric *m, double alpha)
{
	double n1 = (double)m->base.n, n2 = (double)m->cand.n;
	if (n1 + n2 < 4)
		return;
	m->noise = sqrt((squares(&m->base) + squares(&m->cand)) / (n1 + n2 - 2));
	double spread = m->noise * sqrt((1 / n1 + 1 / n2) * M_PI / 3);
	double z = upper_z(alpha / 2), z80 = upper_z(0.20), z97 = upper_z(0.03);
	m->seen80 = m->floor + (z + z80) * spread;
	m->seen97 = m->floor + (z + z97) * spread;
	m->need80 = needed(m->noise, m->floor, z + z80, alpha);
	m->need97 = needed(m->noise, m->floor, z + z97, alpha);
}

double cmp_least_p(size_t n, size_t m)
{
	/* All of one side beyond all of the other: 2 of the C(n+m, n) orders. */
	double c = 1;
	for (size_t i = 1; i <= m; i++)
		c = c * (double)(n + i) / (double)i;
	return c > 2 ? 2 / c : 1;
}

size_t cmp_launches_for(double p)
{
	size_t n = CMP_MIN_LAUNCHES;
	while (n < MAX_LAUNCHES && !(cmp_least_p(n, n) < p))
		n++;
	return n;
}
