// SPDX-License-Identifier: Apache-2.0
/*
 * See change_points.h. The scan over all splits uses one running sum per end: for each end of the
 * right part, sums of absolute differences across and within grow by one row at a time, so a scan
 * is O(n^2) time and O(n) space.
 */
#include "reports/change_points.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/stats.h"
#include "reports/rank.h"

#define LEAST 2 /* values on either side of a split */

/*
 * For one end k of the right part, tau runs from the right to the left: moving v[tau] from the left
 * to the right part takes its distances to the left out of "across", and puts those to the right
 * in.
 */
struct sums {
	double *within; /* within[i]: sum over a < b <= i of |v[a] - v[b]| */
	double *row;    /* row[t]: sum over a < t of |v[a] - v[k-1]|, for the present end k */
	double *across; /* across[t]: sum over a < t <= b < k */
	double *right;  /* right[t]: sum over t <= a < b < k */
};

static bool sums_new(struct sums *s, size_t n)
{
	s->within = calloc(n + 1, sizeof(double));
	s->row = calloc(n + 1, sizeof(double));
	s->across = calloc(n + 1, sizeof(double));
	s->right = calloc(n + 1, sizeof(double));
	return s->within && s->row && s->across && s->right;
}

static void sums_free(struct sums *s)
{
	free(s->within);
	free(s->row);
	free(s->across);
	free(s->right);
}

/* Add v[k-1] to the right part of every split. */
static void sums_add(struct sums *s, const double *v, size_t k)
{
	double x = v[k - 1];
	s->row[0] = 0;
	for (size_t a = 0; a < k; a++)
		s->row[a + 1] = s->row[a] + fabs(v[a] - x);
	for (size_t t = 1; t < k; t++) {
		s->across[t] += s->row[t];
		s->right[t] += s->row[k] - s->row[t];
	}
	s->within[k] = s->within[k - 1] + s->row[k];
}

static double statistic(const struct sums *s, size_t t, size_t k)
{
	double n = (double)t, m = (double)(k - t);
	double a = s->across[t] / (n * m);
	double b = 2 * s->within[t] / (n * (n - 1));
	double c = 2 * s->right[t] / (m * (m - 1));
	return n * m / (n + m) * (2 * a - b - c);
}

int rep_best_split(const double *v, size_t n, size_t *at, double *q)
{
	struct sums s = {0};
	*at = 0;
	*q = 0;
	if (n < 2 * LEAST)
		return 0;
	if (!sums_new(&s, n)) {
		sums_free(&s);
		return -ENOMEM;
	}
	for (size_t k = 1; k <= n; k++) {
		sums_add(&s, v, k);
		for (size_t t = LEAST; t + LEAST <= k; t++) {
			double now = statistic(&s, t, k);
			/* Of equals the first, whatever the last bit of a sum says. */
			if (now > *q * (1 + 1e-12)) {
				*q = now;
				*at = t;
			}
		}
	}
	sums_free(&s);
	return 0;
}

static double median(const double *v, size_t n, double *scratch)
{
	memcpy(scratch, v, n * sizeof(*v));
	fb_sort(scratch, n);
	return fb_median_sorted(scratch, n);
}

/* Significance of a point between its neighbours. */
static void weigh(const double *v, size_t from, size_t to, struct rep_change *c, double *scratch)
{
	c->p = rep_mwu_p(v + from, c->at - from, v + c->at, to - c->at);
	c->before = median(v + from, c->at - from, scratch);
	c->after = median(v + c->at, to - c->at, scratch);
}

static bool holds(const struct rep_change *c, double max_p, double floor)
{
	double least = fabs(c->before) * floor;
	return c->p <= max_p && fabs(c->after - c->before) >= least && c->after != c->before;
}

struct search {
	const double *v;
	double weak_p; /* what a candidate needs; the final test is stricter */
	struct rep_change *found;
	size_t n;
	double *scratch;
};

/* Split [from, to) at its best point while that is a candidate at all, then both halves. */
static int divide(struct search *s, size_t from, size_t to)
{
	struct rep_change c;
	double q;
	size_t at;
	int rc = rep_best_split(s->v + from, to - from, &at, &q);
	if (rc != 0 || at == 0)
		return rc;
	c.at = from + at;
	weigh(s->v, from, to, &c, s->scratch);
	if (c.p > s->weak_p)
		return 0;
	rc = divide(s, from, c.at);
	if (rc == 0) {
		s->found[s->n++] = c;
		rc = divide(s, c.at, to);
	}
	return rc;
}

/* Drop the weakest that does not hold, weigh its neighbours anew, until all hold. */
static void prune(struct search *s, size_t n, double max_p, double floor)
{
	for (;;) {
		size_t worst = s->n;
		for (size_t i = 0; i < s->n; i++) {
			size_t from = i ? s->found[i - 1].at : 0;
			size_t to = i + 1 < s->n ? s->found[i + 1].at : n;
			weigh(s->v, from, to, &s->found[i], s->scratch);
			if (!holds(&s->found[i], max_p, floor) &&
				(worst == s->n || s->found[i].p > s->found[worst].p))
				worst = i;
		}
		if (worst == s->n)
			return;
		memmove(&s->found[worst], &s->found[worst + 1],
			(s->n - worst - 1) * sizeof(s->found[0]));
		s->n--;
	}
}

int rep_change_points(
	const double *v, size_t n, double max_p, double floor, struct rep_change *changes)
{
	struct search s = {.v = v, .weak_p = 10 * max_p, .found = changes};
	if (n > REP_MAX_SERIES)
		return -E2BIG;
	s.scratch = calloc(n + 1, sizeof(*s.scratch));
	if (!s.scratch)
		return -ENOMEM;
	int rc = divide(&s, 0, n);
	if (rc == 0)
		prune(&s, n, max_p, floor);
	free(s.scratch);
	return rc == 0 ? (int)s.n : rc;
}
