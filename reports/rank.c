// SPDX-License-Identifier: Apache-2.0
/* See rank.h. */
#include "reports/rank.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/err.h"

#define EXACT_COUNT 9007199254740992.0 /* 2^53: integers up to here are exact in a double */
#define TIES_EXACT  20                 /* C(20,10) = 184,756 relabelings */

static double choose(size_t n, size_t k)
{
	double c = 1;
	for (size_t i = 1; i <= k; i++)
		c = c * (double)(n - k + i) / (double)i;
	return c;
}

/*
 * How many of the C(n+m, n) orders give U = u, for u = 0..n*m: the coefficients of the Gaussian
 * binomial, by multiplying with (1 - q^(m+i)) and dividing by (1 - q^i) in turn. All intermediate
 * values are integers below 2^53.
 */
static double *u_counts(size_t n, size_t m)
{
	size_t len = n * m + 1;
	double *c = calloc(len, sizeof(*c));
	if (!c)
		return NULL;
	c[0] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t u = len; u-- > m + i;)
			c[u] -= c[u - m - i];
		for (size_t u = i; u < len; u++)
			c[u] += c[u - i];
	}
	return c;
}

struct item {
	double v;
	bool from_a;
};

static int compare_items(const void *x, const void *y)
{
	double a = ((const struct item *)x)->v, b = ((const struct item *)y)->v;
	return (a > b) - (a < b);
}

/* Mid-ranks of the merged sample. @return sum over ties of t^3 - t */
static double mid_ranks(struct item *all, size_t n, double *rank)
{
	double ties = 0;
	for (size_t i = 0; i < n;) {
		size_t k = i;
		while (k < n && all[k].v == all[i].v)
			k++;
		double t = (double)(k - i);
		for (size_t j = i; j < k; j++)
			rank[j] = (double)(i + 1) + (t - 1) / 2;
		ties += t * t * t - t;
		i = k;
	}
	return ties;
}

/*
 * Share of all relabelings whose rank sum is at least as far from its mean as the one seen. They
 * are counted by their sums, one rank after another, as subsets of so many members: mid-ranks
 * doubled are whole numbers, and what 184,756 relabelings would take is a table of 11 x 421.
 */
static double enumerate(const double *rank, size_t n, size_t na, double seen)
{
	size_t sums = n * (n + 1) + 1;
	double *count = calloc((na + 1) * sums, sizeof(*count)), hits = 0, total = 0;
	double mean = (double)(na * (n + 1)), far = fabs(2 * seen - mean) - 0.5;
	if (!count)
		return NAN;
	count[0] = 1;
	for (size_t i = 0; i < n; i++) {
		size_t r = (size_t)(2 * rank[i] + 0.5);
		for (size_t k = i < na ? i + 1 : na; k > 0; k--)
			for (size_t s = sums; s-- > r;)
				count[k * sums + s] += count[(k - 1) * sums + s - r];
	}
	for (size_t s = 0; s < sums; s++) {
		total += count[na * sums + s];
		hits += fabs((double)s - mean) > far ? count[na * sums + s] : 0;
	}
	free(count);
	return hits / total;
}

static double exact_p(size_t na, size_t nb, double u)
{
	double *c = u_counts(na, nb), sum = 0;
	if (!c)
		return NAN;
	double other = (double)(na * nb) - u;
	size_t least = (size_t)(u < other ? u : other);
	for (size_t i = 0; i <= least; i++)
		sum += c[i];
	free(c);
	double p = 2 * sum / choose(na + nb, na);
	return p > 1 ? 1 : p;
}

static double normal_p(size_t na, size_t nb, double u, double ties)
{
	double n1 = (double)na, n2 = (double)nb, n = n1 + n2;
	double var = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
	double d = fabs(u - n1 * n2 / 2) - 0.5;
	if (!(var > 0) || d <= 0)
		return 1;
	return erfc(d / sqrt(var) / sqrt(2));
}

double rep_mwu_p(const double *a, size_t na, const double *b, size_t nb)
{
	size_t n = na + nb;
	if (na == 0 || nb == 0)
		return 1;
	struct item *all = calloc(n, sizeof(*all));
	double *rank = calloc(n, sizeof(*rank)), sum = 0, p = NAN;
	if (!all || !rank)
		goto free_all;
	for (size_t i = 0; i < n; i++)
		all[i] = (struct item){i < na ? a[i] : b[i - na], i < na};
	qsort(all, n, sizeof(*all), compare_items);
	double ties = mid_ranks(all, n, rank);
	for (size_t i = 0; i < n; i++)
		sum += all[i].from_a ? rank[i] : 0;
	double u = sum - (double)na * (double)(na + 1) / 2;
	if (ties == 0 && choose(n, na) < EXACT_COUNT)
		p = exact_p(na, nb, u);
	else if (ties > 0 && n <= TIES_EXACT)
		p = enumerate(rank, n, na, sum);
	else
		p = normal_p(na, nb, u, ties);
free_all:
	free(rank);
	free(all);
	return p;
}

/* Largest C with P(U <= C-1) <= alpha/2; 0: none. Normal when the counts are too large. */
static size_t hl_rank(size_t na, size_t nb, double level)
{
	double alpha = (1 - level) / 2, total = choose(na + nb, na), sum = 0;
	size_t c = 0;
	if (total >= EXACT_COUNT) {
		double n1 = (double)na, n2 = (double)nb, sd = sqrt(n1 * n2 * (n1 + n2 + 1) / 12);
		for (size_t above = na * nb; c < above;) {
			size_t k = c + (above - c) / 2;
			if (0.5 * erfc((n1 * n2 / 2 - (double)k - 0.5) / sd / sqrt(2)) <= alpha)
				c = k + 1;
			else
				above = k;
		}
		return c;
	}
	double *counts = u_counts(na, nb);
	if (!counts)
		return 0;
	while (c < na * nb && (sum + counts[c]) / total <= alpha)
		sum += counts[c++];
	free(counts);
	return c;
}

/* ---- the differences of all pairs ------------------------------------------------------------ */

/* Logarithms of both sides, each in order. */
struct logs {
	double *a, *b;
	size_t na, nb;
};

/* How many of the differences b[k] - a[i] are at most x. */
static size_t at_most(const struct logs *l, double x)
{
	size_t n = 0, k = 0;
	for (size_t i = 0; i < l->na; i++) {
		while (k < l->nb && l->b[k] - l->a[i] <= x)
			k++;
		n += k;
	}
	return n;
}

/* Doubles in their order as whole numbers, and back: at most 64 halvings part any two of them. */
static int64_t to_order(double x)
{
	int64_t i;
	memcpy(&i, &x, sizeof(i));
	return i < 0 ? INT64_MIN - i : i;
}

static double from_order(int64_t i)
{
	double x;
	i = i < 0 ? INT64_MIN - i : i;
	memcpy(&x, &i, sizeof(x));
	return x;
}

/* The k-th smallest difference, k from 1: the least double that k of them do not exceed. Of ten
 * thousand launches a side a table of all would take 800 MB. */
static double difference(const struct logs *l, size_t k)
{
	int64_t lo = to_order(l->b[0] - l->a[l->na - 1]);
	int64_t hi = to_order(l->b[l->nb - 1] - l->a[0]);
	while (lo < hi) {
		int64_t mid = (lo >> 1) + (hi >> 1) + (lo & hi & 1);
		if (at_most(l, from_order(mid)) >= k)
			hi = mid;
		else
			lo = mid + 1;
	}
	return from_order(hi);
}

static int make_logs(struct logs *l, const double *a, size_t na, const double *b, size_t nb)
{
	*l = (struct logs){malloc(na * sizeof(*a)), malloc(nb * sizeof(*b)), na, nb};
	if (!l->a || !l->b)
		return -ENOMEM;
	for (size_t i = 0; i < na; i++)
		l->a[i] = log(a[i]);
	for (size_t i = 0; i < nb; i++)
		l->b[i] = log(b[i]);
	fb_sort(l->a, na);
	fb_sort(l->b, nb);
	return 0;
}

struct fb_ci rep_hl_ratio(const double *a, size_t na, const double *b, size_t nb, double level)
{
	struct fb_ci ci = {.est = NAN, .lo = NAN, .hi = NAN, .level = level};
	struct logs l;
	size_t n = na * nb;
	for (size_t i = 0; i < na + nb; i++)
		if (!((i < na ? a[i] : b[i - na]) > 0))
			return ci;
	if (n == 0)
		return ci;
	if (make_logs(&l, a, na, b, nb) == 0) {
		double low = difference(&l, (n + 1) / 2), high = difference(&l, n / 2 + 1);
		size_t c = hl_rank(na, nb, level);
		ci.est = exp(low + (high - low) / 2);
		ci.valid = c >= 1;
		ci.lo = c >= 1 ? exp(difference(&l, c)) : NAN;
		ci.hi = c >= 1 ? exp(difference(&l, n + 1 - c)) : NAN;
	}
	free(l.a);
	free(l.b);
	return ci;
}

struct numbered {
	double p;
	size_t at;
};

static int compare_numbered(const void *x, const void *y)
{
	const struct numbered *a = x, *b = y;
	int d = (a->p > b->p) - (a->p < b->p);
	return d ? d : (a->at > b->at) - (a->at < b->at);
}

int rep_holm(double *p, size_t n)
{
	struct numbered *order = calloc(n + 1, sizeof(*order));
	double most = 0;
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct numbered){p[i], i};
	qsort(order, n, sizeof(*order), compare_numbered);
	for (size_t i = 0; i < n; i++) {
		double adjusted = order[i].p * (double)(n - i);
		adjusted = adjusted > 1 ? 1 : adjusted;
		most = adjusted > most ? adjusted : most;
		p[order[i].at] = most;
	}
	free(order);
	return 0;
}
