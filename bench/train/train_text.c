// SPDX-License-Identifier: Apache-2.0
/* A training run on one screen, from its document alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "bench/train/train.h"

static const json_t *get(const json_t *j, const char *key)
{
	return json_object_get(j, key);
}

static void label(FILE *out, const char *name)
{
	fprintf(out, "  %-12s ", name);
}

static double number(const json_t *j, const char *key)
{
	return fb_json_num(j, key, NAN);
}

static void head(FILE *out, const json_t *r)
{
	const json_t *p = get(r, "params"), *m = get(r, "model");
	int64_t ranks = fb_json_int(p, "ranks", 0);
	fprintf(out, "%s (%s, %.4g M parameters), %s on %lld rank%s, %s, measured on %s\n",
		fb_json_str(m, "name", "?"), fb_json_str(m, "family", "?"),
		number(m, "params") / 1e6, fb_json_str(p, "strategy", "?"), (long long)ranks,
		ranks == 1 ? "" : "s", fb_json_str(p, "dtype", "?"), fb_json_str(r, "where", "?"));
	label(out, "batch");
	fprintf(out, "%lld sequences: %lld ranks x %lld x %lld micro-batches, of %lld tokens\n",
		(long long)fb_json_int(p, "global_batch", 0), (long long)fb_json_int(p, "ranks", 0),
		(long long)fb_json_int(p, "micro_batch", 0),
		(long long)fb_json_int(p, "accumulate", 0), (long long)fb_json_int(p, "seq", 0));
}

/* The rate that belongs to this time. */
static double tokens_of(const json_t *doc, const json_t *r)
{
	const json_t *other;
	size_t i;
	json_array_foreach (get(doc, "results"), i, other)
		if (strcmp(fb_json_str(other, "metric", ""), "tokens_per_s") == 0 &&
			json_equal(get(other, "case"), get(r, "case")))
			return number(other, "value");
	return NAN;
}

static void step_time(FILE *out, const json_t *r, double tokens)
{
	const json_t *ci = get(r, "ci");
	char a[32], b[32], c[32];
	label(out, "step");
	fprintf(out, "%s", fb_fmt_duration(number(r, "value"), a, sizeof(a)));
	if (json_is_object(ci))
		fprintf(out, " [%s, %s]", fb_fmt_duration(number(ci, "lo"), b, sizeof(b)),
			fb_fmt_duration(number(ci, "hi"), c, sizeof(c)));
	fprintf(out, ", median of %lld steps on the slowest rank, %lld dropped\n",
		(long long)fb_json_int(r, "n", 0), (long long)fb_json_int(r, "warmup_dropped", 0));
	if (!isfinite(tokens))
		return;
	label(out, "tokens/s");
	fprintf(out, "%.5g per rank\n", tokens);
}

static void loss(FILE *out, const json_t *r)
{
	const json_t *l = get(r, "loss");
	size_t n = json_array_size(l);
	if (n == 0)
		return;
	label(out, "loss");
	fprintf(out, "%.5g in the first step, %.5g in the last\n",
		json_number_value(json_array_get(l, 0)),
		json_number_value(json_array_get(l, n - 1)));
}

static void shares(FILE *out, const json_t *j)
{
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		fprintf(out, "%s%s %.1f %%", i ? ", " : "", mfu_convention_names[i],
			100 * number(j, mfu_convention_names[i]));
}

static void mfu(FILE *out, const json_t *r)
{
	const json_t *m = get(r, "mfu"), *peak = get(m, "peak"), *own = get(m, "measured");
	label(out, "MFU");
	if (isfinite(number(m, "value"))) {
		shares(out, get(m, "data_sheet"));
		fprintf(out, " of %.4g TFLOP/s, %s\n", number(peak, "flops") / 1e12,
			fb_json_str(peak, "source", "?"));
	} else {
		fprintf(out, "%s%s\n", isfinite(number(peak, "flops")) ? "" : "not given: ",
			fb_json_str(m, "value_reason", "no peak"));
	}
	if (!isfinite(number(own, "flops")))
		return;
	label(out, "");
	shares(out, own);
	fprintf(out, " of the step's own products, %.4g GFLOP/s timed in turn\n",
		number(own, "flops") / 1e9);
}

/* "compute 8.21 ms (67 %; rank 1 9.40 ms)" */
static void item(FILE *out, const char *name, const json_t *j, double step, bool *first)
{
	char text[32];
	double mean = number(j, "mean"), worst = number(j, "median");
	if (!(mean > 0.005 * step))
		return;
	fprintf(out, "%s%s %s (%.0f %%", *first ? "" : ", ", name,
		fb_fmt_duration(mean, text, sizeof(text)), 100 * mean / step);
	if (worst > 1.05 * mean)
		fprintf(out, "; rank %lld %s", (long long)fb_json_int(j, "rank", 0),
			fb_fmt_duration(worst, text, sizeof(text)));
	fprintf(out, ")");
	*first = false;
}

static void split(FILE *out, const json_t *r)
{
	const json_t *s = get(r, "split"), *v;
	const char *key;
	double step = number(get(s, "step"), "mean");
	bool first = true;
	label(out, "time");
	item(out, "compute", get(s, "compute"), step, &first);
	item(out, "optimizer", get(s, "optimizer"), step, &first);
	item(out, "storage", get(s, "storage"), step, &first);
	item(out, "idle", get(s, "idle"), step, &first);
	fprintf(out, "\n");
	label(out, "  exposed");
	first = true;
	json_object_foreach ((json_t *)get(s, "exposed"), key, v)
		item(out, key, v, step, &first);
	fprintf(out, "%s\n", first ? "none" : "");
}

/* Kinds that are there, and whether they are what the formula says. */
static void counted(FILE *out, const json_t *r, const char *key)
{
	const json_t *all = get(r, key), *v;
	const char *kind, *sep = "";
	char text[32];
	label(out, strcmp(key, "bytes") == 0 ? "sent" : key);
	json_object_foreach ((json_t *)get(all, "kinds"), kind, v) {
		double n = number(v, "counted");
		if (!(n > 0))
			continue;
		fprintf(out, "%s%s %s", sep, kind, fb_fmt_size((uint64_t)n, text, sizeof(text)));
		sep = ", ";
	}
	fprintf(out, "%s: %s\n", *sep ? "" : "nothing",
		json_is_true(get(all, "equal_on_all_ranks")) ? "equal to the formula"
							     : "NOT equal to the formula");
}

static void verdict(FILE *out, const json_t *r)
{
	const json_t *v = get(r, "verdict"), *m;
	size_t i;
	label(out, "bound by");
	fprintf(out, "%s: %s\n", fb_json_str(v, "bound_by", "?"), fb_json_str(v, "why", "?"));
	json_array_foreach (get(v, "moves"), i, m) {
		label(out, i == 0 ? "to move it" : "");
		double n = number(m, "number");
		fprintf(out, "%s: %.*f %s\n", fb_json_str(m, "what", "?"), n > 100 ? 0 : 3, n,
			fb_json_str(m, "unit", ""));
	}
}

static void validity(FILE *out, const json_t *r)
{
	const json_t *v = get(r, "validity"), *why;
	size_t i;
	if (strcmp(fb_json_str(v, "state", "valid"), "valid") == 0)
		return;
	json_array_foreach (get(v, "reasons"), i, why)
		fprintf(out, "  %s: %s\n", fb_json_str(v, "state", "?"),
			json_is_string(why) ? json_string_value(why) : "?");
}

void train_table(const json_t *doc, FILE *out)
{
	const json_t *r, *w;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		const char *metric = fb_json_str(r, "metric", "");
		if (strcmp(metric, "step_time") != 0)
			continue;
		head(out, r);
		step_time(out, r, tokens_of(doc, r));
		loss(out, r);
		mfu(out, r);
		split(out, r);
		counted(out, r, "bytes");
		counted(out, r, "memory");
		verdict(out, r);
		validity(out, r);
	}
	json_array_foreach (get(doc, "warnings"), i, w)
		fprintf(out, "warning: %s\n", json_is_string(w) ? json_string_value(w) : "?");
}
