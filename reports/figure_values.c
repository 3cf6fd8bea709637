// SPDX-License-Identifier: Apache-2.0
/*
 * Values of a figure as they are drawn and printed: RDMA in us and Gb/s, collectives in us and GB/s
 * (10^9 bytes/s), the unit always beside. A value that is not known is NAN, never 0.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "reports/report_priv.h"

static bool is_rdma(const struct rep_figure *f)
{
	return strcmp(f->section, "RDMA") == 0;
}

/* One figure over another: no unit, and nothing to scale. */
static bool is_ratio(const struct rep_figure *f)
{
	return strcmp(f->unit, "x") == 0;
}

double rep_scale(const struct rep_figure *f)
{
	if (is_ratio(f))
		return 1;
	if (strcmp(f->unit, "ns") == 0)
		return 1e-3;
	if (strcmp(f->unit, "bytes/s") == 0)
		return is_rdma(f) ? 8e-9 : 1e-9;
	return 1e-6;
}

const char *rep_unit(const struct rep_figure *f)
{
	if (strcmp(f->unit, "ns") == 0)
		return "us";
	if (strcmp(f->unit, "bytes/s") == 0)
		return is_rdma(f) ? "Gb/s" : "GB/s";
	return is_ratio(f) ? "x" : "million/s";
}

const char *rep_axis(const struct rep_figure *f)
{
	if (strcmp(f->unit, "ns") == 0)
		return is_rdma(f) ? "Latency [us]" : "Time [us]";
	if (strcmp(f->unit, "bytes/s") == 0 && is_rdma(f))
		return "Goodput [Gb/s]";
	if (strcmp(f->unit, "bytes/s") == 0)
		return strcmp(f->metric, "busbw") == 0 ? "Bus bandwidth [GB/s]" : "Rate [GB/s]";
	if (is_ratio(f))
		return "Ratio [x]";
	return strstr(f->metric, "message") ? "Messages [million/s]" : "Rate [million/s]";
}

struct rep_scale_for rep_people_unit(const json_t *r)
{
	const char *unit = fb_json_str(r, "unit", ""), *metric = fb_json_str(r, "metric", "");
	bool bus = strcmp(metric, "busbw") == 0 || strcmp(metric, "algbw") == 0;
	if (strcmp(unit, "ns") == 0)
		return (struct rep_scale_for){"us", 1e-3};
	if (strcmp(unit, "bytes/s") == 0)
		return bus ? (struct rep_scale_for){"GB/s", 1e-9}
			   : (struct rep_scale_for){"Gb/s", 8e-9};
	if (strcmp(unit, "1/s") == 0)
		return (struct rep_scale_for){"M/s", 1e-6};
	if (strcmp(unit, "flop/s") == 0)
		return (struct rep_scale_for){"TFLOP/s", 1e-12};
	return (struct rep_scale_for){unit, 1};
}

double rep_row_value(const struct rep_figure *f, const struct rep_row *r)
{
	double ns;
	if (r->hist)
		return fb_hist_quantile(r->hist, 0.5, &ns) == 0 ? ns * rep_scale(f) : NAN;
	if (r->n == 0)
		return NAN;
	double *v = malloc(r->n * sizeof(*v));
	if (!v)
		return NAN;
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (isfinite(r->values[i]))
			v[n++] = r->values[i];
	fb_sort(v, n);
	double m = fb_median_sorted(v, n) * rep_scale(f);
	free(v);
	return m;
}

void rep_row_range(const struct rep_figure *f, const struct rep_row *r, double *lo, double *hi)
{
	*lo = *hi = rep_row_value(f, r);
	if (r->hist) {
		double a, b;
		if (fb_hist_quantile(r->hist, 0.05, &a) == 0 &&
			fb_hist_quantile(r->hist, 0.99, &b) == 0) {
			*lo = a * rep_scale(f);
			*hi = b * rep_scale(f);
		}
		return;
	}
	for (size_t i = 0; i < r->n; i++) {
		double v = r->values[i] * rep_scale(f);
		if (v < *lo)
			*lo = v;
		if (v > *hi)
			*hi = v;
	}
}

const char *rep_count(uint64_t n, char *buf, size_t len)
{
	char digits[24];
	int k = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	size_t at = 0;
	for (int i = 0; i < k && at + 2 < len; i++) {
		if (i > 0 && (k - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

double rep_row_percentile(const struct rep_figure *f, const struct rep_row *r, double q)
{
	double ns;
	return r->hist && fb_hist_percentile(r->hist, q, &ns) == 0 ? ns * rep_scale(f) : NAN;
}

const char *rep_num(double v, char *buf, size_t len)
{
	if (!isfinite(v)) {
		snprintf(buf, len, "-");
		return buf;
	}
	int digits = fabs(v) > 0 ? 2 - (int)floor(log10(fabs(v))) : 0;
	snprintf(buf, len, "%.*f", digits < 0 ? 0 : digits > 9 ? 9 : digits, v);
	return buf;
}

const char *rep_where_text(const char *where)
{
	static const struct {
		const char *where, *text;
	} map[] = {
		{"hardware", "on hardware"},
		{"lab", "in the lab: emulated guests with Soft-RoCE on this machine; ratios mean something, absolute figures do not"},
		{"cpu", "on this machine's CPU and memory: no fabric hardware took part"},
		{"predicted", "predicted, not measured"},
		{"imported", "imported from another tool's output"},
	};
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (strcmp(map[i].where, where) == 0)
			return map[i].text;
	return "on more than one kind of place: see the table";
}

const char *rep_measured(const struct rep_figure *f, char *buf, size_t len)
{
	bool measured = strcmp(f->where, "predicted") != 0 && strcmp(f->where, "imported") != 0;
	snprintf(buf, len, "%s%s%s", measured ? "Measured " : "Figures ",
		f->loopback ? "over loopback (no link was crossed), " : "",
		rep_where_text(f->where));
	return buf;
}
