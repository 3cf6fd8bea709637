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

/** Say how much of a rate that was asked for (bytes/s) its value reached: {requested, achieved,
 * share}.
 */
void verbs_result_rate(json_t *result, double requested);

/** Make it the result of a distribution: value (median), n, histogram and percentiles, those that n
 * supports. */
void verbs_result_hist(json_t *result, const struct fb_hist *h);

#endif
