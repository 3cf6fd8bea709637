/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, durations and rates as people write them, and back.
 * Sizes: "64", "64K", "1M", "2G" are powers of 1024 ("64KiB" too); durations: "10s", "500ms",
 * "20us", "5m", "100ns", a bare number is seconds; rates: "10Gb/s" (bits, powers of 1000), "5GB/s",
 * "500MB/s".
 */
#ifndef FB_CORE_UNITS_H
#define FB_CORE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

/** @return 0, or -EINVAL (not a size: empty, sign, unknown suffix such as "12Q"), -ERANGE (over
 * 2^63-1); *e filled (exit 2) */
int fb_parse_size(const char *s, uint64_t *bytes, struct fb_err *e) FB_MUST_CHECK;
/** Durations into ns. "1.5s" is accepted. @return as fb_parse_size */
int fb_parse_duration(const char *s, uint64_t *ns, struct fb_err *e) FB_MUST_CHECK;
/** Rates into bytes/s. @return as fb_parse_size */
int fb_parse_rate(const char *s, double *bytes_per_s, struct fb_err *e) FB_MUST_CHECK;
/** Decimal (or 0x) integer within [min, max]. @return 0, -EINVAL, -ERANGE */
int fb_parse_u64(
	const char *s, uint64_t min, uint64_t max, uint64_t *v, struct fb_err *e) FB_MUST_CHECK;

/** "64 KiB", "3 B", "1.5 MiB". @return buf */
const char *fb_fmt_size(uint64_t bytes, char *buf, size_t len);
/** The shortest exact form that fb_parse_size reads back: "64K", "100". @return buf */
const char *fb_fmt_size_exact(uint64_t bytes, char *buf, size_t len);
/** "1.23 us", "45.6 ms": three significant digits. @return buf */
const char *fb_fmt_duration(double ns, char *buf, size_t len);
/** bytes/s as "98.1 Gb/s" (bits) @return buf */
const char *fb_fmt_gbps(double bytes_per_s, char *buf, size_t len);

/** Edit distance (insert, delete, replace, swap neighbours), for "did you mean". */
unsigned fb_edit_distance(const char *a, const char *b);

#endif
