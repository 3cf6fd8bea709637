// SPDX-License-Identifier: Apache-2.0
/* Gates as a table: which result each looks at, what of it, and which side of the limit is right.
 */
#include "bench/core/gate.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/units.h"

#define AT(member) .offset = offsetof(struct fb_gate_cfg, member)

#define TIME_OPTS                                                                            \
	{.name = "max-p50",                                                                  \
		.type = FB_OPT_DURATION,                                                     \
		AT(max_p50_ns),                                                              \
		.arg = "TIME",                                                               \
		.min = 1,                                                                    \
		.help = "exit 1 when the median of any point is above this"},                \
	{                                                                                    \
		.name = "max-p99", .type = FB_OPT_DURATION, AT(max_p99_ns), .arg = "TIME",   \
		.min = 1,                                                                    \
		.help = "exit 1 when the 99th percentile of any point is above this (1,000 " \
			"samples are needed)"                                                \
	}
#define RATE_OPTS                                                                                 \
	{.name = "min-bandwidth",                                                                 \
		.type = FB_OPT_RATE,                                                              \
		AT(min_bandwidth),                                                                \
		.arg = "RATE",                                                                    \
		.help = "exit 1 when the bandwidth of any point is below this, such as 180Gb/s"}, \
	{                                                                                         \
		.name = "min-share", .type = FB_OPT_DOUBLE, AT(min_share), .arg = "PCT",          \
		.max = 100,                                                                       \
		.help = "exit 1 when the bandwidth of any point is below this share of the line " \
			"rate, in percent"                                                        \
	}
#define MESSAGE_OPTS                                                                     \
	{                                                                                \
		.name = "min-message-rate", .type = FB_OPT_DOUBLE, AT(min_message_rate), \
		.arg = "N", .max = INT64_C(1000000000000),                               \
		.help = "exit 1 when any point moves fewer messages a second"            \
	}

const struct fb_opt fb_gate_time_opts[] = {TIME_OPTS, {.name = NULL}};
const struct fb_opt fb_gate_rate_opts[] = {RATE_OPTS, MESSAGE_OPTS, {.name = NULL}};
const struct fb_opt fb_gate_opts[] = {TIME_OPTS, RATE_OPTS, {.name = NULL}};

enum kind { TIME, BANDWIDTH, SHARE, MESSAGES };

struct gate {
	const char *id;     /* of the check */
	const char *option; /* where the limit comes from */
	enum kind kind;
	const char *stat; /* TIME: key of stats */
	double q;         /* TIME */
	double limit;
};

static void text_of(const struct gate *g, double v, char *s, size_t len)
{
	switch (g->kind) {
	case TIME: fb_fmt_duration(v, s, len); break;
	case BANDWIDTH: fb_fmt_gbps(v, s, len); break;
	case SHARE: snprintf(s, len, "%.1f %% of line rate", v); break;
	case MESSAGES: snprintf(s, len, "%.6g messages/s", v); break;
	}
}

static void exact_text(const struct gate *g, double v, char *s, size_t len)
{
	switch (g->kind) {
	case TIME: snprintf(s, len, "%.0f ns", v); break;
	case BANDWIDTH: snprintf(s, len, "%.12g Gb/s", v * 8 / 1e9); break;
	case SHARE: snprintf(s, len, "%.12g %% of line rate", v); break;
	case MESSAGES: snprintf(s, len, "%.12g messages/s", v); break;
	}
}

static bool looks_at(const struct gate *g, const json_t *r, const char *rate_metric)
{
	const char *metric = fb_json_str(r, "metric", "");
	switch (g->kind) {
	case TIME:
		return strcmp(fb_json_str(r, "unit", ""), "ns") == 0 &&
		       json_is_object(json_object_get(r, "hist"));
	case BANDWIDTH:
	case SHARE: return strcmp(metric, rate_metric) == 0;
	case MESSAGES: return strcmp(metric, "message_rate") == 0;
	}
	return false;
}

/* What the gate compares; NAN with the reason when it cannot be told. */
static double observed(const struct gate *g, const json_t *r, char *why, size_t len)
{
	double v = fb_json_num(r, "value", NAN), line = fb_json_num(r, "line_rate", NAN);
	const json_t *valid = json_object_get(r, "validity");
	if (strcmp(fb_json_str(valid, "state", ""), "invalid") == 0) {
		const char *reason =
			json_string_value(json_array_get(json_object_get(valid, "reasons"), 0));
		snprintf(why, len, "the result is invalid: %.200s", reason ? reason : "?");
		return NAN;
	}
	switch (g->kind) {
	case TIME:
		v = fb_json_num(json_object_get(r, "stats"), g->stat, NAN);
		if (!isfinite(v))
			snprintf(why, len, "%lld samples cannot support %s, which needs %llu",
				(long long)fb_json_int(r, "n", 0), g->stat,
				(unsigned long long)fb_quantile_min_n(g->q));
		return v;
	case SHARE:
		if (!(line > 0)) {
			snprintf(why, len,
				"the line rate is not known (real NICs on two hosts tell theirs)");
			return NAN;
		}
		v = 100 * v / line;
		break;
	default: break;
	}
	if (!isfinite(v))
		snprintf(why, len, "there is no value: %.200s",
			fb_json_str(r, "value_reason", "no reason given"));
	return v;
}

static void add_check(struct fb_doc *d, const struct gate *g, const char *where, const char *state,
	double got, const char *why)
{
	json_t *c = json_object(), *want = json_object();
	char read[256];
	fb_json_set_str(c, "id", g->id);
	fb_json_set_str(c, "state", state);
	fb_json_set_str(c, "case", where);
	/* Times are integer ns, as everywhere in the document. */
	if (g->kind == TIME && isfinite(got))
		fb_json_set_int(c, "observed", llround(got));
	else
		json_object_set_new(c, "observed", fb_json_real(got));
	if (g->kind == TIME)
		fb_json_set_int(want, "value", llround(g->limit));
	else
		fb_json_set_real(want, "value", g->limit, NULL);
	fb_json_set_str(want, "source", g->option);
	json_object_set_new(c, "expected", want);
	snprintf(read, sizeof(read), "%s of %s in this document",
		g->kind == TIME    ? g->stat
		: g->kind == SHARE ? "value / line_rate"
				   : "value",
		where ? where : "any result");
	fb_json_set_str(c, "read", read);
	json_object_set_new(c, "remedy", json_null());
	json_object_set_new(c, "side_effect", json_null());
	fb_json_set_str(c, "evidence", "constructed");
	if (*why)
		fb_json_set_str(c, "reason", why);
	fb_doc_add_check(d, c);
}

/* One gate at one result. @return the exit status it asks for */
static int judge_one(struct fb_doc *d, const struct gate *g, const json_t *r)
{
	const char *where = fb_json_str(r, "case", "?");
	char why[320] = "", want[48], got[48];
	bool most = g->kind == TIME;
	double v = observed(g, r, why, sizeof(why));
	text_of(g, g->limit, want, sizeof(want));
	if (!isfinite(v)) {
		add_check(d, g, where, "skip", v, why);
		fb_error("%s: %s cannot be judged: %s", where, g->option, why);
		return FB_EXIT_UNMEASURED;
	}
	bool good = most ? v <= g->limit : v >= g->limit;
	text_of(g, v, got, sizeof(got));
	if (!good && strcmp(want, got) == 0) { /* a miss by less than is shown */
		exact_text(g, g->limit, want, sizeof(want));
		exact_text(g, v, got, sizeof(got));
	}
	if (!good) {
		snprintf(why, sizeof(why), "wanted at %s %s, got %s", most ? "most" : "least", want,
			got);
		fb_error("%s: %s missed: %s", where, g->option, why);
	}
	add_check(d, g, where, good ? "pass" : "fail", v, why);
	return good ? FB_EXIT_OK : FB_EXIT_FAILED;
}

/* A miss is certain, whatever else could not be judged. */
static int worse(int a, int b)
{
	if (a == FB_EXIT_FAILED || b == FB_EXIT_FAILED)
		return FB_EXIT_FAILED;
	return a != FB_EXIT_OK ? a : b;
}

static int judge_gate(
	struct fb_doc *d, const struct gate *g, const char *rate_metric, const json_t *results)
{
	int status = FB_EXIT_OK;
	bool any = false;
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *r = json_array_get(results, i);
		if (!looks_at(g, r, rate_metric))
			continue;
		any = true;
		status = worse(status, judge_one(d, g, r));
	}
	if (any)
		return status;
	add_check(d, g, NULL, "skip", NAN, "the run has no result that this gate looks at");
	fb_error("%s cannot be judged: the run has no result that it looks at", g->option);
	return FB_EXIT_UNMEASURED;
}

int fb_gate_judge(
	struct fb_doc *d, const struct fb_gate_cfg *g, const char *rate_metric, int status)
{
	const struct gate gates[] = {
		{"gate.max-p50", "--max-p50", TIME, "p50", 0.5, (double)g->max_p50_ns},
		{"gate.max-p99", "--max-p99", TIME, "p99", 0.99, (double)g->max_p99_ns},
		{"gate.min-bandwidth", "--min-bandwidth", BANDWIDTH, NULL, 0, g->min_bandwidth},
		{"gate.min-share", "--min-share", SHARE, NULL, 0, g->min_share},
		{"gate.min-message-rate", "--min-message-rate", MESSAGES, NULL, 0,
			g->min_message_rate},
	};
	const json_t *results = json_object_get(fb_doc_json(d), "results");
	int judged = FB_EXIT_OK;
	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
		if (gates[i].limit > 0)
			judged = worse(judged, judge_gate(d, &gates[i], rate_metric, results));
	}
	return status != FB_EXIT_OK ? status : judged;
}
