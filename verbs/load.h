/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark verbs.load, and what is derived from its results once they are there.
 */
#ifndef VERBS_LOAD_H
#define VERBS_LOAD_H

#include <jansson.h>

#include "bench/core/bench.h"
#include "bench/core/hist.h"
#include "bench/core/result.h"

extern const struct fb_bench verbs_load_bench;

/** Run control for a tail by a clock: unless -n or -D say otherwise, at least 1,000 probes and up
 * to 10 s a point. */
void verbs_load_run_control(struct fb_runctl_cfg *rc);
/** For each probe that was measured both idle and beside the background: p50_ratio, p99_ratio and
 * what the background achieved, as results of the case ".../effect/SIZE". */
void verbs_load_effects(struct fb_doc *doc);

/**
 * A result made of one figure: case, params (copied), metric, unit, better, value, samples and
 * empty counters, valid. The caller sets `where` and what else it knows. @param why_null reason
 * when the value is NaN or infinite
 */
json_t *verbs_result_new(const char *name, const json_t *params, const char *metric,
	const char *unit, const char *better, double value, const char *why_null);

/** The result's validity becomes the worse of its own and `state`, with this reason beside the
 * others. */
void verbs_result_doubt(json_t *result, enum fb_valid state, const char *fmt, ...) FB_PRINTF(3, 4);

/**
 * From this share of a limited rate on it counts as reached. Between two batches the schedule
 * stands still while the last messages are acknowledged; a few round trips in the 30 ms that a
 * batch lasts are no failure to keep the pace, a twentieth of it is.
 */
#define VERBS_RATE_LEAST 0.95
/** Say how much of a rate that was asked for was achieved, both in bytes/s: {requested, achieved,
 * share}. */
void verbs_result_rate(json_t *result, double achieved, double requested);
/** Below VERBS_RATE_LEAST of the rate asked for the result is suspect: it is none of that rate.
 * Nothing is said of what was not measured (NaN). */
void verbs_result_rate_judge(json_t *result, double achieved, double requested);

/** Make it the result of a distribution: value (median), n, histogram and percentiles, those that n
 * supports. */
void verbs_result_hist(json_t *result, const struct fb_hist *h);

#endif
