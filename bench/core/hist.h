/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency histogram: log2-linear, 7 sub-bits, values in integer ns.
 *
 * Values below 256 have a bucket each; above, every power of two is cut into 128 buckets, so a
 * bucket's width is at most 1/128 of its value and its midpoint is wrong by at most 0.4 %. Range: 0
 * ns to 2^36 ns (68.7 s); larger values are counted in `overflow`, never clamped into the last
 * bucket. min, max, sum and the sum of squares are exact (128-bit integers:
 * 2^55 values of the whole range fit).
 */
#ifndef FB_CORE_HIST_H
#define FB_CORE_HIST_H

#include <jansson.h>
#include <stdint.h>

#include "bench/core/err.h"

#define FB_HIST_SUB_BITS 7
#define FB_HIST_MAX_BITS 36
#define FB_HIST_BUCKETS  ((FB_HIST_MAX_BITS - FB_HIST_SUB_BITS + 1) << FB_HIST_SUB_BITS)

struct fb_hist {
	uint64_t n; /**< all values, overflow included */
	uint64_t overflow;
	uint64_t min, max;         /**< exact; meaningless while n is 0 */
	unsigned __int128 sum;     /**< ns */
	unsigned __int128 sumsq;   /**< ns^2 */
	uint64_t fast_lo, fast_hi; /**< values within change neither min nor max and are in range */
	uint64_t count[FB_HIST_BUCKETS];
};

/** Bucket of a value < 2^FB_HIST_MAX_BITS. Branch-free but for the overflow test of the caller. */
static inline unsigned fb_hist_bucket(uint64_t v)
{
	unsigned msb = 63u - (unsigned)__builtin_clzll(v | (1u << FB_HIST_SUB_BITS));
	unsigned shift = msb - FB_HIST_SUB_BITS;
	return (shift << FB_HIST_SUB_BITS) + (unsigned)(v >> shift);
}
/** Smallest value of a bucket, and the bucket's width in ns. */
uint64_t fb_hist_bucket_low(unsigned bucket);
uint64_t fb_hist_bucket_width(unsigned bucket);

/** Empty. There is nothing to free. */
void fb_hist_init(struct fb_hist *h);
/** Add one value in ns; under 20 instructions in the common path. */
void fb_hist_add(struct fb_hist *h, uint64_t v);
/** merge(h1, h2) == histogram of all values. */
void fb_hist_merge(struct fb_hist *into, const struct fb_hist *from);
double fb_hist_mean(const struct fb_hist *h);
/** True deviation (n-1), 0 when n < 2. */
double fb_hist_stddev(const struct fb_hist *h);

/**
 * Nearest-rank percentile: the value of rank ceil(q*n), the bucket's midpoint clamped into [min,
 * max].
 * @return 0; -ENODATA when n < fb_quantile_min_n(q) (stats.h), so that the sample cannot support
 * it; -ERANGE when the rank falls into the overflow
 */
int fb_hist_percentile(const struct fb_hist *h, double q, double *ns);
/**
 * The same with the bucket's values spread evenly over it: for comparing launches, where midpoints
 * would turn a change of a few parts in a thousand into none or 0.8 %. Never printed as a
 * percentile.
 */
int fb_hist_interpolated(const struct fb_hist *h, double q, double *ns);
/** fb_hist_percentile() without the sample rule, for plots of bands (p5..p99) that state n. */
int fb_hist_quantile(const struct fb_hist *h, double q, double *ns);

/**
 * {"unit":"ns","sub_bits":7,"n":..,"overflow":..,"min":..,"max":..,"sum":..,"stddev":..,"buckets":[[bucket,count],..]}
 * sparse.
 * @return new reference, NULL without memory
 */
json_t *fb_hist_to_json(const struct fb_hist *h);
/** @return 0, or -EINVAL with the key at fault in *e (exit 2): wrong sub_bits, bucket out of range,
 * counts not adding up */
int fb_hist_from_json(struct fb_hist *h, const json_t *j, struct fb_err *e) FB_MUST_CHECK;

#endif
