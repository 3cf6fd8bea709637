// SPDX-License-Identifier: Apache-2.0
/*
 * Rates over time in the report: the worst window beside the average, so that a link that flaps
 * shows, and what became of a limited rate. Results that have neither are left out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/report_priv.h"

#define MAX_ROWS 200

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void gbps(struct fb_strbuf *b, double v)
{
	char text[40];

	if (isfinite(v))
		rep_tag(b, "td", "n", "%s", rep_num(v * 8 / 1e9, text, sizeof(text)));
	else
		rep_tag(b, "td", "n", "-");
}

static void percent(struct fb_strbuf *b, double share, double least)
{
	if (isfinite(share))
		rep_tag(b, "td", share < least ? "suspect" : "n", "%.1f %%", 100 * share);
	else
		rep_tag(b, "td", "n", "-");
}

/* What was asked for and what came of it: of the result itself, or of a background beside it. */
struct limited {
	double requested, achieved;
	const char *what;
};

static bool limited_of(const json_t *r, int which, struct limited *l)
{
	static const char *const keys[] = {"achieved_out", "achieved_in"};
	static const char *const words[] = {"background out", "background in"};
	const json_t *rate = get(r, "rate"), *bg = get(get(r, "facts"), "background");

	if (which == 0) {
		l->what = "itself";
		l->requested = fb_json_num(rate, "requested", NAN);
		l->achieved = fb_json_num(rate, "achieved", NAN);
	} else {
		l->what = words[which - 1];
		l->requested = fb_json_num(bg, "requested", NAN);
		l->achieved = fb_json_num(bg, keys[which - 1], NAN);
	}
	return isfinite(l->requested) && (which == 0 || isfinite(l->achieved));
}

static void row(struct fb_strbuf *b, const json_t *r, const struct limited *l)
{
	const json_t *w = get(r, "worst_window");
	const double v = fb_json_num(r, "value", NAN), worst = fb_json_num(w, "value", NAN);
	char window[32], at[32];

	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "td", NULL, "%s", fb_json_str(r, "case", "?"));
	rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(r, "launch", 0));
	gbps(b, strcmp(fb_json_str(r, "unit", ""), "bytes/s") == 0 ? v : NAN);
	gbps(b, worst);
	percent(b, worst / v, 0.5);
	if (isfinite(worst))
		rep_tag(b, "td", NULL, "of %s at %s",
			fb_fmt_duration(fb_json_num(w, "window_ns", NAN), window, sizeof(window)),
			fb_fmt_duration(fb_json_num(w, "t_ns", NAN), at, sizeof(at)));
	else
		rep_tag(b, "td", "long", "%s", fb_json_str(r, "worst_window_reason", ""));
	rep_tag(b, "td", NULL, "%s", l ? l->what : "");
	gbps(b, l ? l->requested : NAN);
	gbps(b, l ? l->achieved : NAN);
	percent(b, l ? l->achieved / l->requested : NAN, 0.95);
	fb_strbuf_add(b, "</tr>\n");
}

static size_t rows_of(struct fb_strbuf *b, const json_t *r)
{
	struct limited l;
	size_t n = 0;

	for (int which = 0; which < 3; which++) {
		if (limited_of(r, which, &l)) {
			row(b, r, &l);
			n++;
		}
	}
	if (n == 0 && json_is_object(get(r, "worst_window"))) {
		row(b, r, NULL);
		n++;
	}
	return n;
}

void rep_html_rates(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *results = get(doc, "results"), *r;
	struct fb_strbuf rows = {0};
	size_t i, n = 0, left = 0, without = 0;

	json_array_foreach (results, i, r) {
		struct limited l;
		const bool shown = json_is_object(get(r, "worst_window")) || limited_of(r, 0, &l) ||
				   limited_of(r, 1, &l) || limited_of(r, 2, &l);
		if (!shown)
			without += get(r, "worst_window_reason") != NULL;
		else if (n < MAX_ROWS)
			n += rows_of(&rows, r);
		else
			left++;
	}
	if (n > 0) {
		rep_tag(b, "h2", NULL, "Rates over time");
		fb_strbuf_add(b,
			"\n<div class=\"wide\"><table><thead><tr><th>case</th><th>launch</th><th>average [Gb/s]</th>"
			"<th>worst window [Gb/s]</th><th>share of the average</th><th>window</th>"
			"<th>limited rate of</th><th>requested [Gb/s]</th><th>achieved [Gb/s]</th><th>share</th>"
			"</tr></thead><tbody>\n");
		if (rows.s)
			fb_strbuf_addn(b, rows.s, rows.len);
		fb_strbuf_add(b, "</tbody></table></div>\n");
	}
	if (left > 0)
		rep_tag(b, "p", "quiet", "And %zu more results in the document.", left);
	if (n > 0 && without > 0)
		rep_tag(b, "p", "quiet",
			"%zu more rates were not measured long enough to hold windows against each other; the document has each one's reason.",
			without);
	fb_strbuf_free(&rows);
}
