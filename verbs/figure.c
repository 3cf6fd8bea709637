// SPDX-License-Identifier: Apache-2.0
/*
 * Results that no batch of run control makes: one figure and what it stands on.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/load.h"

static json_t *empty_counters(void)
{
	json_t *j = json_object();

	json_object_set_new(j, "before", json_object());
	json_object_set_new(j, "after", json_object());
	json_object_set_new(j, "delta", json_object());
	return j;
}

json_t *verbs_result_new(const char *name, const json_t *params, const char *metric,
	const char *unit, const char *better, double value, const char *why_null)
{
	json_t *j = json_object(), *samples = json_array(), *validity = json_object();

	fb_json_set_str(j, "case", name);
	fb_json_set_str(j, "where", "cpu");
	json_object_set_new(j, "params", params ? json_deep_copy(params) : json_object());
	fb_json_set_str(j, "metric", metric);
	fb_json_set_str(j, "unit", unit);
	fb_json_set_str(j, "better", better);
	fb_json_set_str(j, "load", "closed");
	fb_json_set_str(j, "sync", "none");
	fb_json_set_real(j, "value", value, why_null);
	json_object_set_new(j, "ci", json_null());
	json_object_set_new(j, "bound", json_null());
	fb_json_set_int(j, "n", isfinite(value) ? 1 : 0);
	fb_json_set_int(j, "warmup_dropped", 0);
	if (isfinite(value))
		json_array_append_new(samples, json_real(value));
	json_object_set_new(j, "samples", samples);
	json_object_set_new(j, "stats", json_object());
	json_object_set_new(j, "per_rank", json_array());
	json_object_set_new(j, "counters", empty_counters());
	fb_json_set_str(validity, "state", "valid");
	json_object_set_new(validity, "reasons", json_array());
	json_object_set_new(j, "validity", validity);
	return j;
}

void verbs_result_doubt(json_t *result, enum fb_valid state, const char *fmt, ...)
{
	static const char *const words[] = {"valid", "suspect", "invalid"};
	json_t *validity = json_object_get(result, "validity");
	const char *now = fb_json_str(validity, "state", words[0]);
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	for (int s = FB_VALID; s < (int)state && s < FB_INVALID; s++)
		if (!strcmp(now, words[s])) { /* setting it ends `now` */
			fb_json_set_str(validity, "state", words[state]);
			break;
		}
	json_array_append_new(json_object_get(validity, "reasons"), json_string(why));
}

void verbs_result_rate(json_t *result, double achieved, double requested)
{
	json_t *rate = json_object();

	fb_json_set_real(rate, "requested", requested, NULL);
	fb_json_set_real(rate, "achieved", achieved, "no value");
	fb_json_set_real(rate, "share", achieved / requested, "no value");
	json_object_set_new(result, "rate", rate);
}

void verbs_result_rate_judge(json_t *result, double achieved, double requested)
{
	char got[32], asked[32];

	if (isfinite(achieved) && achieved < VERBS_RATE_LEAST * requested)
		verbs_result_doubt(result, FB_SUSPECT,
			"achieved %s of requested %s (%.1f %%): what is measured is not that rate",
			fb_fmt_gbps(achieved, got, sizeof got),
			fb_fmt_gbps(requested, asked, sizeof asked), 100 * achieved / requested);
}

void verbs_result_hist(json_t *result, const struct fb_hist *h)
{
	static const struct {
		const char *key;
		double q;
	} wanted[] = {
		{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};
	json_t *stats = json_object();
	double v;

	json_object_del(result, "samples");
	json_object_set_new(result, "hist", fb_hist_to_json(h));
	fb_json_set_int(result, "n", (int64_t)h->n);
	json_object_set_new(result, "stats", stats);
	if (h->n == 0)
		return;
	if (fb_hist_quantile(h, 0.5, &v) == 0) {
		fb_json_set_int(result, "value", llround(v));
		json_object_del(result, "value_reason");
	}
	fb_json_set_int(stats, "min", (int64_t)h->min);
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (fb_hist_percentile(h, wanted[i].q, &v) == 0)
			fb_json_set_int(stats, wanted[i].key, llround(v));
	fb_json_set_int(stats, "max", (int64_t)h->max);
	fb_json_set_real(stats, "mean", fb_hist_mean(h), NULL);
	fb_json_set_real(stats, "stddev", fb_hist_stddev(h), NULL);
}
