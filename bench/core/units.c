// SPDX-License-Identifier: Apache-2.0
/*
 * Sizes, durations and rates as people write them, and back. Numbers are read by hand, not by
 * strtod(): exact in 128 bits and the same in every locale.
 */
#include "bench/core/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SIZES_ARE     "sizes are written 64, 64K, 1M, 2G"
#define DURATIONS_ARE "durations are written 10s, 500ms, 20us, 100ns, 5m"
#define RATES_ARE     "rates are written 10Gb/s, 5GB/s, 500MB/s"

/* A decimal number: digits, and with `frac` also a point and at most 18 more that count. */
struct number {
	uint64_t whole;
	uint64_t frac, frac_div; /* frac / frac_div, frac_div a power of ten */
	const char *rest;        /* the suffix */
	bool over;               /* more than 2^64-1 */
};

static bool read_number(const char *s, bool frac, struct number *n)
{
	*n = (struct number){.frac_div = 1};
	const char *p = s;
	for (; *p >= '0' && *p <= '9'; p++) {
		n->over |= __builtin_mul_overflow(n->whole, 10u, &n->whole);
		n->over |= __builtin_add_overflow(n->whole, (uint64_t)(*p - '0'), &n->whole);
	}
	bool any = p > s;
	if (frac && *p == '.') {
		for (p++; *p >= '0' && *p <= '9'; p++) {
			any = true;
			if (n->frac_div >= 1000000000000000000u)
				continue;
			n->frac = n->frac * 10 + (uint64_t)(*p - '0');
			n->frac_div *= 10;
		}
	}
	n->rest = p;
	return any;
}

/* The user's word, cut to a length that leaves the reason visible in a message. */
#define SHOWN   "%.60s%s"
#define SHOW(s) (s), strlen(s) > 60 ? "..." : ""

static int not_a(const char *what, const char *s, const char *written, struct fb_err *e)
{
	if (!*s)
		return fb_fail_usage(e, "\"\" is not a %s: it is empty; %s", what, written);
	if (*s == '-' || *s == '+')
		return fb_fail_usage(
			e, "\"" SHOWN "\" is not a %s: it has a sign; %s", SHOW(s), what, written);
	return fb_fail_usage(e, "\"" SHOWN "\" is not a %s: it starts with no digit; %s", SHOW(s),
		what, written);
}

static int bad_suffix(
	const char *what, const char *s, const char *suffix, const char *written, struct fb_err *e)
{
	return fb_fail_usage(e, "\"" SHOWN "\" is not a %s: unknown suffix \"" SHOWN "\"; %s",
		SHOW(s), what, SHOW(suffix), written);
}

static int too_large(const char *what, const char *s, struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_USAGE, ERANGE,
		"\"" SHOWN "\" is too large for a %s (over 2^63-1)", SHOW(s), what);
}

int fb_parse_size(const char *s, uint64_t *bytes, struct fb_err *e)
{
	static const char letters[] = "KMGTPE";
	struct number n;
	if (!read_number(s, false, &n))
		return not_a("size", s, SIZES_ARE, e);
	unsigned shift = 0;
	const char *rest = n.rest;
	const char *at = *rest ? strchr(letters, toupper((unsigned char)*rest)) : NULL;
	if (at) {
		shift = 10u * ((unsigned)(at - letters) + 1);
		rest++;
		/* "64KiB" is unambiguous; "64KB" is 64000 to half of the world and is refused. */
		if (strcmp(rest, "iB") == 0 || strcmp(rest, "i") == 0)
			rest = "";
	} else if (strcmp(rest, "B") == 0) {
		rest = "";
	}
	if (*rest)
		return bad_suffix("size", s, n.rest, SIZES_ARE, e);
	if (n.over || n.whole > (uint64_t)INT64_MAX >> shift)
		return too_large("size", s, e);
	*bytes = n.whole << shift;
	return 0;
}

int fb_parse_duration(const char *s, uint64_t *ns, struct fb_err *e)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000},
		{"m", 60000000000}, {"min", 60000000000}, {"h", 3600000000000}};
	struct number n;
	if (!read_number(s, true, &n))
		return not_a("duration", s, DURATIONS_ARE, e);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(n.rest, units[i].suffix) != 0)
			continue;
		unsigned __int128 v = (unsigned __int128)n.whole * units[i].ns;
		v += ((unsigned __int128)n.frac * units[i].ns + n.frac_div / 2) / n.frac_div;
		if (n.over || v > (unsigned __int128)INT64_MAX)
			return too_large("duration", s, e);
		*ns = (uint64_t)v;
		return 0;
	}
	return bad_suffix("duration", s, n.rest, DURATIONS_ARE, e);
}

int fb_parse_rate(const char *s, double *bytes_per_s, struct fb_err *e)
{
	struct number n;
	if (!read_number(s, true, &n))
		return not_a("rate", s, RATES_ARE, e);
	if (n.over)
		return too_large("rate", s, e);
	double v = (double)n.whole + (double)n.frac / (double)n.frac_div;
	if (!*n.rest) {
		if (v > 0)
			return fb_fail_usage(e, "\"" SHOWN "\" is not a rate: it has no unit; %s",
				SHOW(s), RATES_ARE);
		*bytes_per_s = 0;
		return 0;
	}
	const char *p = n.rest;
	switch (*p) {
	case 'k':
	case 'K': v *= 1e3, p++; break;
	case 'M': v *= 1e6, p++; break;
	case 'G': v *= 1e9, p++; break;
	case 'T': v *= 1e12, p++; break;
	}
	if (strcmp(p, "b/s") == 0 || strcmp(p, "bit/s") == 0 || strcmp(p, "bps") == 0)
		v /= 8;
	else if (strcmp(p, "B/s") != 0)
		return bad_suffix("rate", s, n.rest, RATES_ARE, e);
	*bytes_per_s = v;
	return 0;
}

int fb_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *v, struct fb_err *e)
{
	uint64_t x = 0;
	bool over = false;
	const char *p = s;
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && isxdigit((unsigned char)p[2])) {
		for (p += 2; isxdigit((unsigned char)*p); p++) {
			unsigned d = isdigit((unsigned char)*p)
					     ? (unsigned)(*p - '0')
					     : (unsigned)(tolower((unsigned char)*p) - 'a') + 10;
			over |= x >> 60 != 0;
			x = x << 4 | d;
		}
	} else {
		struct number n;
		if (!read_number(s, false, &n))
			return not_a("number", s, "whole numbers are written 100 or 0x64", e);
		x = n.whole;
		over = n.over;
		p = n.rest;
	}
	if (*p)
		return fb_fail_usage(e,
			"\"" SHOWN "\" is not a number: \"" SHOWN "\" follows the digits", SHOW(s),
			SHOW(p));
	if (over || x < min || x > max)
		return fb_fail(e, FB_EXIT_USAGE, ERANGE, "\"" SHOWN "\" is not within %llu to %llu",
			SHOW(s), (unsigned long long)min, (unsigned long long)max);
	*v = x;
	return 0;
}

/* Digits after the point that leave three significant ones. */
static int decimals(double v)
{
	v = fabs(v);
	int d = 2;
	for (double limit = 9.995; d > 0 && v >= limit; limit *= 10)
		d--;
	for (; v > 0 && v < 0.9995 && d < 12; v *= 10)
		d++;
	return d;
}

static void trim_zeros(char *buf)
{
	char *point = strchr(buf, '.');
	if (!point)
		return;
	char *end = buf + strlen(buf);
	while (end[-1] == '0')
		*--end = '\0';
	if (end - 1 == point)
		*point = '\0';
}

const char *fb_fmt_size(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	unsigned u = 0;
	/* 1023.6 would round to 1024: it is 1 of the next. */
	while (u < 6 && v >= 1023.5) {
		v /= 1024;
		u++;
	}
	char num[32];
	snprintf(num, sizeof(num), "%.*f", decimals(v), v);
	trim_zeros(num);
	snprintf(buf, len, "%s %s", num, units[u]);
	return buf;
}

const char *fb_fmt_size_exact(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = {"", "K", "M", "G", "T", "P", "E"};
	unsigned u = 0;
	while (u < 6 && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, len, "%llu%s", (unsigned long long)bytes, units[u]);
	return buf;
}

const char *fb_fmt_duration(double ns, char *buf, size_t len)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	if (!isfinite(ns)) {
		snprintf(buf, len, "-");
		return buf;
	}
	if (ns == 0) {
		snprintf(buf, len, "0 ns");
		return buf;
	}
	unsigned u = 0;
	while (u < 3 && fabs(ns) >= 999.5) {
		ns /= 1000;
		u++;
	}
	snprintf(buf, len, "%.*f %s", decimals(ns), ns, units[u]);
	return buf;
}

const char *fb_fmt_gbps(double bytes_per_s, char *buf, size_t len)
{
	double v = bytes_per_s * 8 / 1e9;
	if (!isfinite(v))
		snprintf(buf, len, "-");
	else if (v == 0)
		snprintf(buf, len, "0 Gb/s");
	else
		snprintf(buf, len, "%.*f Gb/s", decimals(v), v);
	return buf;
}

/* Optimal string alignment; words longer than 63 bytes are compared by their first 63, and what
 * they are longer by is added. */
unsigned fb_edit_distance(const char *a, const char *b)
{
	enum { MAX = 63 };
	unsigned rows[3][MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	size_t over_a = la > MAX ? la - MAX : 0, over_b = lb > MAX ? lb - MAX : 0;
	size_t beyond = over_a > over_b ? over_a - over_b : over_b - over_a;
	unsigned na = la > MAX ? MAX : (unsigned)la, nb = lb > MAX ? MAX : (unsigned)lb;
	if (beyond > 1000)
		beyond = 1000;
	for (unsigned j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= na; i++) {
		unsigned *cur = rows[i % 3], *prev = rows[(i + 2) % 3], *prev2 = rows[(i + 1) % 3];
		cur[0] = i;
		for (unsigned j = 1; j <= nb; j++) {
			unsigned d = prev[j - 1] + (a[i - 1] != b[j - 1]);
			if (prev[j] + 1 < d)
				d = prev[j] + 1;
			if (cur[j - 1] + 1 < d)
				d = cur[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				prev2[j - 2] + 1 < d)
				d = prev2[j - 2] + 1;
			cur[j] = d;
		}
	}
	return rows[na % 3][nb] + (unsigned)beyond;
}
