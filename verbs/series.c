// SPDX-License-Identifier: Apache-2.0
/* Bytes over time: see series.h. */
#include "verbs/series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"

void verbs_series_reset(struct verbs_series *s, uint64_t window_ns)
{
	memset(s, 0, sizeof *s);
	s->window_ns = window_ns < VERBS_SERIES_MIN_NS ? VERBS_SERIES_MIN_NS : window_ns;
	s->merged = 1;
	s->worst_bytes = UINT64_MAX;
}

static void halve_resolution(struct verbs_series *s)
{
	for (unsigned i = 0; i < VERBS_SERIES_MAX / 2; i++)
		s->entry[i] = s->entry[2 * i] + s->entry[2 * i + 1];
	memset(s->entry + VERBS_SERIES_MAX / 2, 0, sizeof s->entry / 2);
	s->n = (s->n + 1) / 2;
	s->merged *= 2;
}

/* The open window is full and becomes history; the next one opens. */
static void close_window(struct verbs_series *s)
{
	uint64_t at = s->window / s->merged;

	while (at >= VERBS_SERIES_MAX) {
		halve_resolution(s);
		at = s->window / s->merged;
	}
	s->entry[at] += s->open;
	s->n = (unsigned)at + 1;
	if (s->open < s->worst_bytes) {
		s->worst_bytes = s->open;
		s->worst_at = s->window;
	}
	s->open = 0;
	s->window++;
}

static void advance(struct verbs_series *s, uint64_t t)
{
	uint64_t window = (s->base_ns + t) / s->window_ns;

	while (s->window < window)
		close_window(s);
}

void verbs_series_add(struct verbs_series *s, uint64_t t, uint64_t bytes)
{
	advance(s, t);
	s->open += bytes;
}

void verbs_series_end_batch(struct verbs_series *s, uint64_t ns)
{
	advance(s, ns);
	s->base_ns += ns;
}

void verbs_series_sum(struct verbs_series *into, const struct verbs_series *from)
{
	struct verbs_series other = *from;
	uint64_t width;
	unsigned full;

	while (into->merged < other.merged)
		halve_resolution(into);
	while (other.merged < into->merged)
		halve_resolution(&other);
	for (unsigned i = 0; i < VERBS_SERIES_MAX; i++)
		into->entry[i] += other.entry[i];
	/* Where only one of them was still at work there is no sum. */
	if (other.window < into->window)
		into->window = other.window;
	full = (unsigned)(into->window / into->merged);
	into->n = full;
	width = into->merged * into->window_ns;
	into->window_ns = width;
	into->merged = 1;
	into->window = full;
	into->worst_bytes = UINT64_MAX;
	for (unsigned i = 0; i < full; i++) {
		if (into->entry[i] < into->worst_bytes) {
			into->worst_bytes = into->entry[i];
			into->worst_at = i;
		}
	}
}

/* ---- what leaves it -------------------------------------------------------------------------- */

json_t *verbs_series_to_json(const struct verbs_series *s)
{
	json_t *j = json_object(), *bytes = json_array();

	if (!j || !bytes) {
		json_decref(j);
		json_decref(bytes);
		return NULL;
	}
	fb_json_set_int(j, "window_ns", (int64_t)s->window_ns);
	fb_json_set_int(j, "merged", (int64_t)s->merged);
	fb_json_set_int(j, "windows", (int64_t)s->window);
	if (s->window > 0) {
		fb_json_set_int(j, "worst_bytes", (int64_t)s->worst_bytes);
		fb_json_set_int(j, "worst_at", (int64_t)s->worst_at);
	}
	for (unsigned i = 0; i < s->n; i++)
		json_array_append_new(bytes, json_integer((json_int_t)s->entry[i]));
	json_object_set_new(j, "bytes", bytes);
	return j;
}

int verbs_series_from_json(struct verbs_series *s, const json_t *j)
{
	const json_t *bytes = json_object_get(j, "bytes");
	int64_t window_ns = fb_json_int(j, "window_ns", 0), merged = fb_json_int(j, "merged", 0);
	int64_t windows = fb_json_int(j, "windows", -1);
	int64_t worst = fb_json_int(j, "worst_bytes", 0), at = fb_json_int(j, "worst_at", 0);
	size_t n = json_array_size(bytes);

	if (window_ns < 1 || merged < 1 || windows < 0 || worst < 0 || at < 0 ||
		!json_is_array(bytes) || n > VERBS_SERIES_MAX)
		return -EPROTO;
	verbs_series_reset(s, (uint64_t)window_ns);
	s->merged = (uint64_t)merged;
	s->window = (uint64_t)windows;
	if (windows > 0) {
		s->worst_bytes = (uint64_t)worst;
		s->worst_at = (uint64_t)at;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(bytes, i);
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return -EPROTO;
		s->entry[i] = (uint64_t)json_integer_value(v);
	}
	s->n = (unsigned)n;
	return 0;
}

static void no_worst(json_t *result, const char *why)
{
	json_object_set_new(result, "worst_window", json_null());
	fb_json_set_str(result, "worst_window_reason", why);
}

void verbs_series_extend(const struct verbs_series *s, uint64_t quantum, json_t *result)
{
	json_t *all = json_array(), *worst;
	uint64_t width = s->window_ns * s->merged, total = 0;
	char why[256], window[32];

	for (unsigned i = 0; i < s->n; i++) {
		json_t *one = json_object();
		fb_json_set_int(one, "t_ns", (int64_t)(i * width));
		fb_json_set_int(one, "bytes", (int64_t)s->entry[i]);
		json_array_append_new(all, one);
		total += s->entry[i];
	}
	json_object_set_new(result, "intervals", all);
	fb_json_set_int(result, "interval_ns", (int64_t)width);
	fb_fmt_duration((double)s->window_ns, window, sizeof window);
	if (s->window == 0) {
		snprintf(why, sizeof why,
			"the point was shorter than one window of %s: measure longer (-D) or give a shorter "
			"--window",
			window);
		no_worst(result, why);
		return;
	}
	if ((double)total < 10.0 * (double)quantum * (double)s->window) {
		snprintf(why, sizeof why,
			"completions come %llu bytes at once, too coarse for windows of %s: give --cq-mod 1 or a "
			"longer --window",
			(unsigned long long)quantum, window);
		no_worst(result, why);
		return;
	}
	double slowest = (double)s->worst_bytes / (double)s->window_ns * 1e9;
	if (slowest > fb_json_num(result, "value", slowest)) {
		no_worst(result,
			"the receiver was not always running and took waiting messages faster than they "
			"were sent: its windows do not show the link");
		return;
	}
	worst = json_object();
	fb_json_set_real(worst, "value", slowest, NULL);
	fb_json_set_int(worst, "window_ns", (int64_t)s->window_ns);
	fb_json_set_int(worst, "t_ns", (int64_t)(s->worst_at * s->window_ns));
	json_object_set_new(result, "worst_window", worst);
}
