// SPDX-License-Identifier: Apache-2.0
/*
 * A loss sweep as text: one line for each rate, all its turns together, and then the model in
 * words.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/loss_run.h"

#define PER_GBPS (8 / 1e9)

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* @param decimals after the point; SHORT: four digits in all */
#define SHORT (-1)
static void number(FILE *out, int width, int decimals, double v)
{
	char text[40] = "-";

	if (isfinite(v) && decimals < 0)
		snprintf(text, sizeof text, "%.4g", v);
	else if (isfinite(v))
		snprintf(text, sizeof text, "%.*f", decimals, v);
	fprintf(out, " %*s", width, text);
}

static void off_by(FILE *out, double share)
{
	if (isfinite(share))
		fprintf(out, " %+6.1f %%", share * 100);
	else
		fprintf(out, " %6s", "-");
}

static void duration(FILE *out, int width, double ns)
{
	char text[40] = "-";

	if (isfinite(ns))
		fb_fmt_duration(ns, text, sizeof text);
	fprintf(out, " %*s", width, text);
}

static double num(const json_t *o, const char *key)
{
	return fb_json_num(o, key, NAN);
}

static void line(const json_t *p, FILE *out)
{
	number(out, 8, SHORT, num(p, "rate"));
	number(out, 6, 0, num(p, "turns"));
	number(out, 13, SHORT, num(p, "goodput") * PER_GBPS);
	number(out, 11, 1, num(p, "goodput_share") * 100);
	number(out, 12, 3, num(p, "packets_per_packet"));
	duration(out, 10, num(p, "p50_ns"));
	duration(out, 10, num(p, "p99_ns"));
	duration(out, 10, num(p, "max_ns"));
	number(out, 8, 0, num(p, "naks"));
	number(out, 9, 0, num(p, "timeouts"));
	fprintf(out, "  %s\n", json_is_true(get(p, "fitted")) ? "fitted" : "");
}

static void errors(const json_t *list, const char *what, FILE *out)
{
	const json_t *p;
	size_t i;

	json_array_foreach (list, i, p) {
		fprintf(out, "  %-9s %8g %%: 1/eta", what, num(p, "rate"));
		number(out, 7, 3, 1 / num(p, "eta"));
		fprintf(out, " measured,");
		number(out, 7, 3, 1 / num(p, "predicted"));
		fprintf(out, " by the model; eta off by");
		off_by(out, num(p, "error"));
		fprintf(out, " (W alone:");
		off_by(out, num(p, "error_alone"));
		fprintf(out, ")\n");
	}
}

static void model(const json_t *m, FILE *out)
{
	const char *signal = fb_json_str(m, "signal", "none");

	fprintf(out, "\nModel: %s; p: share of packets lost, %s\n", fb_json_str(m, "formula", ""),
		fb_json_str(m, "direction", ""));
	fprintf(out, "  eta: %s\n",
		!strcmp(signal, "packets")
			? "packets needed per packet sent, by the sender's counters"
		: !strcmp(signal, "goodput")
			? "goodput over lossless goodput: the driver counts no packets that it has sent"
			: "not measured");
	if (!isfinite(num(m, "W"))) {
		fprintf(out, "  no constants: %s\n", fb_json_str(m, "W_reason", "?"));
		return;
	}
	fprintf(out, "  W =");
	number(out, 1, SHORT, num(m, "W"));
	fprintf(out, " packets resent per loss, R =");
	number(out, 1, SHORT, num(m, "R"));
	fprintf(out, " for retransmissions lost in turn (each a time-out)%s; W alone:",
		json_is_true(get(m, "held_at_0")) ? ", one of them held at 0" : "");
	number(out, 1, SHORT, num(m, "W_alone"));
	fprintf(out, "\n");
	errors(get(m, "residuals"), "fitted", out);
	errors(get(m, "predicted"), "predicted", out);
}

void verbs_loss_table(const json_t *doc, FILE *out)
{
	const json_t *block, *p, *text;
	size_t i, k;

	json_array_foreach (get(doc, "loss"), i, block) {
		fprintf(out,
			"%8s %6s %13s %11s %12s %10s %10s %10s %8s %9s\n%8s %6s %13s %11s %12s %10s "
			"%10s %10s %8s %9s\n",
			"loss", "turns", "goodput", "of lossless", "packets sent", "small", "small",
			"small", "NAKs", "time-outs", "[%]", "", "[Gb/s]", "[%]", "per needed",
			"p50", "p99", "max", "", "or NAKs");
		json_array_foreach (get(block, "points"), k, p)
			line(p, out);
		model(get(block, "model"), out);
	}
	json_array_foreach (get(doc, "warnings"), i, text)
		fprintf(out, "\nwarning: %s\n", json_string_value(text));
}
