// SPDX-License-Identifier: Apache-2.0
/*
 * Latency histogram: log2-linear, 7 sub-bits; see hist.h.
 *
 * fb_hist_add() needs no clz and no shifts by a variable: an IEEE double already is a power of two
 * and its fraction, so the top bits of (double)v are the bucket of every v >= 128, up to a
 * constant. One pair of compares covers min, max, the smallest values and the overflow: what is
 * outside [fast_lo, fast_hi] goes the slow way.
 */
#include "bench/core/hist.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"

#define SUB   (1u << FB_HIST_SUB_BITS)
#define LIMIT (UINT64_C(1) << FB_HIST_MAX_BITS)

uint64_t fb_hist_bucket_low(unsigned bucket)
{
	if (bucket < 2 * SUB)
		return bucket;
	unsigned shift = (bucket >> FB_HIST_SUB_BITS) - 1;
	return (uint64_t)((bucket & (SUB - 1)) + SUB) << shift;
}

uint64_t fb_hist_bucket_width(unsigned bucket)
{
	return bucket < 2 * SUB ? 1 : UINT64_C(1) << ((bucket >> FB_HIST_SUB_BITS) - 1);
}

void fb_hist_init(struct fb_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->fast_lo = 1; /* an empty range: the first value goes the slow way */
}

/* The range in which neither min nor max moves and the fast bucket is right. */
static void set_fast_range(struct fb_hist *h)
{
	h->fast_lo = h->min > SUB ? h->min : SUB;
	h->fast_hi = h->max < LIMIT ? h->max : LIMIT - 1;
	if (h->n == 0 || h->fast_lo > h->fast_hi) {
		h->fast_lo = 1;
		h->fast_hi = 0;
	}
}

static __attribute__((noinline, cold)) void add_slowly(struct fb_hist *h, uint64_t v)
{
	if (h->n == 0 || v < h->min)
		h->min = v;
	if (h->n == 0 || v > h->max)
		h->max = v;
	h->n++;
	h->sum += v;
	h->sumsq += (unsigned __int128)v * v;
	if (v >= LIMIT)
		h->overflow++;
	else
		h->count[fb_hist_bucket(v)]++;
	set_fast_range(h);
}

void fb_hist_add(struct fb_hist *h, uint64_t v)
{
	if (__builtin_expect(v < h->fast_lo || v > h->fast_hi, 0)) {
		add_slowly(h, v);
		return;
	}
	double d = (double)(int64_t)v;
	uint64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	/* Exponent and the first 7 bits of the fraction; 128 is bucket 128. */
	h->count[(bits >> (52 - FB_HIST_SUB_BITS)) - ((1023u + FB_HIST_SUB_BITS - 1) << 7)]++;
	h->n++;
	h->sum += v;
	h->sumsq += (unsigned __int128)v * v;
}

void fb_hist_merge(struct fb_hist *into, const struct fb_hist *from)
{
	if (from->n == 0)
		return;
	if (into->n == 0 || from->min < into->min)
		into->min = from->min;
	if (into->n == 0 || from->max > into->max)
		into->max = from->max;
	into->n += from->n;
	into->overflow += from->overflow;
	into->sum += from->sum;
	into->sumsq += from->sumsq;
	for (unsigned i = 0; i < FB_HIST_BUCKETS; i++)
		into->count[i] += from->count[i];
	set_fast_range(into);
}

double fb_hist_mean(const struct fb_hist *h)
{
	return h->n ? (double)((long double)h->sum / (long double)h->n) : NAN;
}

double fb_hist_stddev(const struct fb_hist *h)
{
	if (h->n < 2)
		return 0;
	/* About the whole number below the mean, in exact integers: no digits cancel. */
	unsigned __int128 m = h->sum / h->n;
	unsigned __int128 rest = h->sum - m * h->n; /* n * (mean - m) < n */
	unsigned __int128 about_m = h->sumsq - 2 * m * h->sum + m * m * h->n;
	long double ss =
		(long double)about_m - (long double)rest * (long double)rest / (long double)h->n;
	return ss > 0 ? (double)sqrtl(ss / (long double)(h->n - 1)) : 0;
}

/* The bucket that holds the value of rank ceil(q*n), and the values below it. FB_HIST_BUCKETS: the
 * rank falls into the overflow. */
static unsigned bucket_of_rank(const struct fb_hist *h, double q, uint64_t *rank, uint64_t *below)
{
	/* 0.07 * 100 is a little over 7 in binary; rank 7 is meant. */
	double want = ceil(q * (double)h->n * (1 - 1e-12));
	*rank = want < 1 ? 1 : (uint64_t)want;
	if (*rank > h->n)
		*rank = h->n;
	*below = 0;
	unsigned i = 0;
	while (i < FB_HIST_BUCKETS && *below + h->count[i] < *rank)
		*below += h->count[i++];
	return i;
}

static double clamped(const struct fb_hist *h, double ns)
{
	return fmin(fmax(ns, (double)h->min), (double)h->max);
}

int fb_hist_quantile(const struct fb_hist *h, double q, double *ns)
{
	uint64_t rank, below;
	if (h->n == 0 || !(q >= 0 && q <= 1))
		return -ENODATA;
	unsigned i = bucket_of_rank(h, q, &rank, &below);
	if (i == FB_HIST_BUCKETS)
		return -ERANGE;
	*ns = clamped(h, (double)fb_hist_bucket_low(i) + (double)(fb_hist_bucket_width(i) - 1) / 2);
	return 0;
}

int fb_hist_interpolated(const struct fb_hist *h, double q, double *ns)
{
	uint64_t rank, below;
	if (h->n < fb_quantile_min_n(q))
		return -ENODATA;
	unsigned i = bucket_of_rank(h, q, &rank, &below);
	if (i == FB_HIST_BUCKETS)
		return -ERANGE;
	double share = ((double)(rank - below) - 0.5) / (double)h->count[i];
	*ns = clamped(
		h, (double)fb_hist_bucket_low(i) - 0.5 + share * (double)fb_hist_bucket_width(i));
	return 0;
}

int fb_hist_percentile(const struct fb_hist *h, double q, double *ns)
{
	if (h->n < fb_quantile_min_n(q))
		return -ENODATA;
	return fb_hist_quantile(h, q, ns);
}

/* A whole number that may pass 2^63: JSON integers stop there. */
static json_t *big_to_json(unsigned __int128 v)
{
	if (v <= (unsigned __int128)INT64_MAX)
		return json_integer((json_int_t)v);
	return fb_json_real((double)v);
}

json_t *fb_hist_to_json(const struct fb_hist *h)
{
	json_t *buckets = json_array();
	if (!buckets)
		return NULL;
	for (unsigned i = 0; i < FB_HIST_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		json_t *pair = json_pack("[I,I]", (json_int_t)i, (json_int_t)h->count[i]);
		if (json_array_append_new(buckets, pair) != 0) {
			json_decref(buckets);
			return NULL;
		}
	}
	bool any = h->n > 0;
	return json_pack("{s:s,s:i,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "unit", "ns", "sub_bits",
		FB_HIST_SUB_BITS, "n", (json_int_t)h->n, "overflow", (json_int_t)h->overflow, "min",
		any ? big_to_json(h->min) : json_null(), "max",
		any ? big_to_json(h->max) : json_null(), "sum", big_to_json(h->sum), "stddev",
		fb_json_real(fb_hist_stddev(h)), "buckets", buckets);
}

/* A number >= 0 and below 2^limit_bits of the object, whole. */
static int get_whole(
	const json_t *j, const char *key, int limit_bits, unsigned __int128 *v, struct fb_err *e)
{
	const json_t *x = json_object_get(j, key);
	if (json_is_integer(x) && json_integer_value(x) >= 0) {
		*v = (unsigned __int128)json_integer_value(x);
		return 0;
	}
	double d = json_is_real(x) ? json_real_value(x) : -1;
	if (!(d >= 0 && d < ldexp(1, limit_bits)))
		return fb_fail_usage(e, "histogram: \"%s\" is not a whole number >= 0", key);
	*v = (unsigned __int128)d;
	return 0;
}

static int read_buckets(struct fb_hist *h, const json_t *buckets, struct fb_err *e)
{
	if (!json_is_array(buckets))
		return fb_fail_usage(e, "histogram: \"buckets\" is not an array");
	size_t i;
	const json_t *pair;
	json_int_t last = -1;
	uint64_t total = h->overflow;
	json_array_foreach (buckets, i, pair) {
		json_int_t b = json_integer_value(json_array_get(pair, 0));
		json_int_t c = json_integer_value(json_array_get(pair, 1));
		if (json_array_size(pair) != 2 || !json_is_integer(json_array_get(pair, 0)) ||
			!json_is_integer(json_array_get(pair, 1)))
			return fb_fail_usage(
				e, "histogram: \"buckets\"[%zu] is not [bucket, count]", i);
		if (b < 0 || b >= FB_HIST_BUCKETS || b <= last)
			return fb_fail_usage(e,
				"histogram: \"buckets\"[%zu]: bucket %lld is out of range or order",
				i, (long long)b);
		if (c < 1 || __builtin_add_overflow(total, (uint64_t)c, &total))
			return fb_fail_usage(
				e, "histogram: \"buckets\"[%zu]: count %lld", i, (long long)c);
		h->count[b] = (uint64_t)c;
		last = b;
	}
	if (total != h->n)
		return fb_fail_usage(e, "histogram: \"n\" is %llu, but the counts add up to %llu",
			(unsigned long long)h->n, (unsigned long long)total);
	return 0;
}

/* min and max must stand in the first and last bucket that counts, the sum between n*min and n*max.
 */
static int check_range(const struct fb_hist *h, struct fb_err *e)
{
	unsigned first = 0, last = FB_HIST_BUCKETS;
	while (first < FB_HIST_BUCKETS && !h->count[first])
		first++;
	while (last > 0 && !h->count[last - 1])
		last--;
	unsigned of_min = h->min < LIMIT ? fb_hist_bucket(h->min) : FB_HIST_BUCKETS;
	unsigned of_max = h->max < LIMIT ? fb_hist_bucket(h->max) : FB_HIST_BUCKETS;
	if (of_min != first)
		return fb_fail_usage(e, "histogram: \"min\" is not in the first bucket");
	if (of_max != (h->overflow ? FB_HIST_BUCKETS : last - 1) || h->min > h->max)
		return fb_fail_usage(e, "histogram: \"max\" is not in the last bucket");
	/* Past 2^63 a number went through a double: leave it its rounding. */
	long double sum = (long double)h->sum, n = (long double)h->n;
	if (sum < n * (long double)h->min * (1 - 1e-15L) ||
		sum > n * (long double)h->max * (1 + 1e-15L))
		return fb_fail_usage(e, "histogram: \"sum\" is not within n*min to n*max");
	return 0;
}

/* The inverse of fb_hist_stddev(); false when no real sample has such a deviation. */
static bool restore_sumsq(struct fb_hist *h, double stddev)
{
	unsigned __int128 m = h->sum / h->n;
	unsigned __int128 rest = h->sum - m * h->n;
	long double about_m = (long double)stddev * stddev * (long double)(h->n - 1) +
			      (long double)rest * (long double)rest / (long double)h->n;
	if (!(about_m < 0x1p127L))
		return false;
	h->sumsq = (unsigned __int128)(about_m + 0.5L) + 2 * m * h->sum - m * m * h->n;
	return true;
}

int fb_hist_from_json(struct fb_hist *h, const json_t *j, struct fb_err *e)
{
	fb_hist_init(h);
	if (!json_is_object(j))
		return fb_fail_usage(e, "histogram: not an object");
	const char *unit = json_string_value(json_object_get(j, "unit"));
	if (!unit || strcmp(unit, "ns") != 0)
		return fb_fail_usage(e, "histogram: \"unit\" is not \"ns\"");
	const json_t *bits = json_object_get(j, "sub_bits");
	if (!json_is_integer(bits) || json_integer_value(bits) != FB_HIST_SUB_BITS)
		return fb_fail_usage(e, "histogram: \"sub_bits\" is not %d", FB_HIST_SUB_BITS);
	unsigned __int128 n = 0, overflow = 0, v = 0;
	int rc = get_whole(j, "n", 63, &n, e);
	if (!rc)
		rc = get_whole(j, "overflow", 63, &overflow, e);
	if (!rc)
		rc = get_whole(j, "sum", 127, &h->sum, e);
	if (rc)
		return rc;
	h->n = (uint64_t)n;
	h->overflow = (uint64_t)overflow;
	rc = read_buckets(h, json_object_get(j, "buckets"), e);
	if (rc || h->n == 0)
		return rc;
	rc = get_whole(j, "min", 64, &v, e);
	if (rc)
		return rc;
	h->min = (uint64_t)v;
	rc = get_whole(j, "max", 64, &v, e);
	if (rc)
		return rc;
	h->max = (uint64_t)v;
	rc = check_range(h, e);
	if (rc)
		return rc;
	const json_t *sd = json_object_get(j, "stddev");
	double stddev = json_number_value(sd);
	/* No sample deviates more than its range, but for the n-1 of two samples. */
	if (!json_is_number(sd) || stddev < 0 || stddev > 1.5 * (double)(h->max - h->min) + 1 ||
		!restore_sumsq(h, stddev))
		return fb_fail_usage(e, "histogram: \"stddev\" is not a number within the range");
	set_fast_range(h);
	return 0;
}
