// SPDX-License-Identifier: Apache-2.0
/*
 * Statistics that need no assumption of normality; see stats.h. The only normal quantile here
 * stands in for a binomial of more than 1000 trials.
 */
#include "bench/core/stats.h"

#include <math.h>
#include <stdlib.h>

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void fb_sort(double *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof(*v), cmp_double);
}

double fb_median_sorted(const double *sorted, size_t n)
{
	if (n == 0)
		return NAN;
	double hi = sorted[n / 2];
	if (n % 2)
		return hi;
	double lo = sorted[n / 2 - 1];
	return lo + (hi - lo) / 2;
}

double fb_mad_sorted(const double *sorted, size_t n, double *scratch)
{
	double m = fb_median_sorted(sorted, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(sorted[i] - m);
	fb_sort(scratch, n);
	return fb_median_sorted(scratch, n);
}

double fb_mean(const double *v, size_t n)
{
	if (n == 0)
		return NAN;
	long double s = 0;
	for (size_t i = 0; i < n; i++)
		s += v[i];
	return (double)(s / (long double)n);
}

double fb_stddev(const double *v, size_t n)
{
	if (n < 2)
		return NAN;
	long double m = fb_mean(v, n), ss = 0;
	for (size_t i = 0; i < n; i++)
		ss += (v[i] - m) * (v[i] - m);
	return (double)sqrtl(ss / (long double)(n - 1));
}

/* z with Phi(z) = p, for p >= 1/2: the start of Abramowitz and Stegun 26.2.23 (wrong by at most
 * 4.5e-4), then Newton on erfc, which doubles the digits each time. */
static double normal_quantile(double p)
{
	double t = sqrt(-2 * log(1 - p));
	double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
			       (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
	for (int i = 0; i < 3; i++) {
		double above = 0.5 * erfc(z / M_SQRT2);
		double density = exp(-z * z / 2) / sqrt(2 * M_PI);
		if (density <= 0)
			break;
		z += (above - (1 - p)) / density;
	}
	return z;
}

bool fb_median_ci_ranks(size_t n, double level, size_t *lo, size_t *hi)
{
	double tail = (1 - level) / 2;
	size_t k = 0; /* largest with P(X < k) <= tail, X of Binomial(n, 1/2) */
	if (n == 0 || !(level > 0 && level < 1))
		return false;
	if (n <= 1000) {
		double p = ldexp(1, -(int)n), below = p; /* P(X = k), P(X <= k) */
		while (below <= tail && k < (n + 1) / 2) {
			k++;
			p *= (double)(n - k + 1) / (double)k;
			below += p;
		}
	} else {
		double c = (double)n / 2 + 0.5 - normal_quantile(1 - tail) * sqrt((double)n) / 2;
		k = c < 1 ? 0 : (size_t)c;
	}
	if (k == 0)
		return false;
	*lo = k;
	*hi = n + 1 - k;
	return true;
}

struct fb_ci fb_median_ci_sorted(const double *sorted, size_t n, double level)
{
	struct fb_ci ci = {fb_median_sorted(sorted, n), NAN, NAN, level, false};
	size_t lo, hi;
	if (fb_median_ci_ranks(n, level, &lo, &hi)) {
		ci.lo = sorted[lo - 1];
		ci.hi = sorted[hi - 1];
		ci.valid = true;
	}
	return ci;
}

bool fb_quantile_ci_ranks(uint64_t n, double q, double level, uint64_t *lo, uint64_t *hi)
{
	if (n == 0 || !(q > 0 && q < 1) || !(level > 0 && level < 1))
		return false;
	double tail = (1 - level) / 2, count = (double)n;
	double half = normal_quantile(1 - tail) * sqrt(count * q * (1 - q));
	/* [x_lo, x_hi) holds the quantile when lo <= X < hi, X of Binomial(n, q). */
	double l = floor(count * q - half), h = ceil(count * q + half) + 1;
	/* A rank outside the sample is clamped, if the sample's end is far enough out for the
	 * level.
	 */
	if (l < 1) {
		if (exp(count * log1p(-q)) > tail)
			return false;
		l = 1;
	}
	if (h > count) {
		if (exp(count * log(q)) > tail)
			return false;
		h = count;
	}
	*lo = (uint64_t)l;
	*hi = (uint64_t)h;
	return true;
}

uint64_t fb_quantile_min_n(double q)
{
	if (q == 0.5)
		return 1;
	double tail = q < 0.5 ? q : 1 - q;
	if (!(tail > 0))
		return UINT64_MAX; /* the extremes are no quantiles */
	/* 1 - 0.999 is a little under 0.001 in binary; 10,000 is meant. */
	double n = ceil(10 / tail * (1 - 1e-9));
	return n < 1e19 ? (uint64_t)n : UINT64_MAX;
}

double fb_lag1(const double *v, size_t n)
{
	if (n < 3)
		return NAN;
	double m = fb_mean(v, n);
	long double num = 0, den = 0;
	for (size_t i = 0; i < n; i++) {
		den += (long double)(v[i] - m) * (v[i] - m);
		if (i > 0)
			num += (long double)(v[i] - m) * (v[i - 1] - m);
	}
	return den > 0 ? (double)(num / den) : NAN;
}

/* PCG32 XSH-RR of O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
 * Algorithms for Random Number Generation" (2014), section 6.3. */
uint32_t fb_rng_u32(struct fb_rng *r)
{
	uint64_t old = r->state;
	r->state = old * UINT64_C(6364136223846793005) + r->inc;
	uint32_t x = (uint32_t)(((old >> 18) ^ old) >> 27);
	unsigned rot = (unsigned)(old >> 59);
	return x >> rot | x << (-rot & 31);
}

void fb_rng_seed(struct fb_rng *r, uint64_t seed, uint64_t stream)
{
	r->state = 0;
	r->inc = stream << 1 | 1;
	fb_rng_u32(r);
	r->state += seed;
	fb_rng_u32(r);
}

double fb_rng_uniform(struct fb_rng *r)
{
	uint64_t hi = fb_rng_u32(r) >> 5, lo = fb_rng_u32(r) >> 6; /* 27 and 26 bits */
	return (double)(hi << 26 | lo) * 0x1p-53;
}

/* Box-Muller; the second of the pair is dropped, so that the state is the two words alone. */
double fb_rng_normal(struct fb_rng *r)
{
	double u = 1 - fb_rng_uniform(r), v = fb_rng_uniform(r);
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

#define RESAMPLES 1000

struct fb_ci fb_ratio_ci(
	const double *work, const double *time, size_t n, double level, uint64_t seed)
{
	struct fb_ci ci = {.est = NAN, .lo = NAN, .hi = NAN, .level = level};
	double sum_work = 0, sum_time = 0, ratios[RESAMPLES];
	struct fb_rng rng;
	for (size_t i = 0; i < n; i++) {
		sum_work += work[i];
		sum_time += time[i];
	}
	if (sum_time > 0)
		ci.est = sum_work / sum_time;
	if (n < 6 || !(sum_time > 0))
		return ci;
	fb_rng_seed(&rng, seed, 0);
	for (size_t b = 0; b < RESAMPLES; b++) {
		double w = 0, t = 0;
		for (size_t i = 0; i < n; i++) {
			size_t k = (size_t)(((uint64_t)fb_rng_u32(&rng) * n) >> 32);
			w += work[k];
			t += time[k];
		}
		ratios[b] = t > 0 ? w / t : ci.est;
	}
	fb_sort(ratios, RESAMPLES);
	size_t tail = (size_t)((1 - level) / 2 * RESAMPLES);
	ci.lo = ratios[tail];
	ci.hi = ratios[RESAMPLES - 1 - tail];
	ci.valid = true;
	return ci;
}
