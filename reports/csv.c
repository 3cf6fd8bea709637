// SPDX-License-Identifier: Apache-2.0
/* See csv.h. */
#include "reports/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"

void rep_csv_text(struct fb_strbuf *b, bool first, const char *text)
{
	fb_strbuf_add(b, first ? "" : ",");
	if (!text || !*text)
		return;
	fb_strbuf_add(b, "\"");
	if (strchr("=+-@\t\r", *text))
		fb_strbuf_add(b, "'");
	for (; *text; text++) {
		if (*text == '"')
			fb_strbuf_add(b, "\"\"");
		else
			fb_strbuf_addn(b, text, 1);
	}
	fb_strbuf_add(b, "\"");
}

void rep_csv_number(struct fb_strbuf *b, double v)
{
	fb_strbuf_add(b, ",");
	if (isfinite(v))
		fb_strbuf_printf(b, "%.17g", v);
}

void rep_csv_end(struct fb_strbuf *b)
{
	fb_strbuf_add(b, "\r\n");
}

static void header(struct fb_strbuf *b, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		fb_strbuf_printf(b, "%s%s", i ? "," : "", names[i]);
	rep_csv_end(b);
}

static void percentiles(struct fb_strbuf *b, const json_t *result)
{
	static const double q[] = {0.5, 0.99, 0.999};
	struct fb_hist *h = NULL;
	struct fb_err e = {0};
	if (json_is_object(json_object_get(result, "hist")) && (h = malloc(sizeof(*h))) &&
		fb_hist_from_json(h, json_object_get(result, "hist"), &e) != 0) {
		free(h);
		h = NULL;
	}
	for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		double ns;
		rep_csv_number(b, h && fb_hist_percentile(h, q[i], &ns) == 0 ? ns : NAN);
	}
	free(h);
}

void rep_csv_results(struct fb_strbuf *b, const json_t *doc)
{
	static const char *const names[] = {"case", "job", "launch", "where", "metric", "unit",
		"better", "value", "p50", "p99", "p99.9", "n", "bound", "validity", "reason", NULL};
	const json_t *r;
	size_t i;
	header(b, names);
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		const json_t *v = json_object_get(r, "validity");
		rep_csv_text(b, true, fb_json_str(r, "case", ""));
		rep_csv_text(b, false, fb_json_str(r, "job", ""));
		rep_csv_number(b, (double)fb_json_int(r, "launch", 0));
		rep_csv_text(b, false, fb_json_str(r, "where", ""));
		rep_csv_text(b, false, fb_json_str(r, "metric", ""));
		rep_csv_text(b, false, fb_json_str(r, "unit", ""));
		rep_csv_text(b, false, fb_json_str(r, "better", ""));
		rep_csv_number(b, fb_json_num(r, "value", NAN));
		percentiles(b, r);
		rep_csv_number(b, fb_json_num(r, "n", NAN));
		rep_csv_number(b, fb_json_num(json_object_get(r, "bound"), "value", NAN));
		rep_csv_text(b, false, fb_json_str(v, "state", ""));
		rep_csv_text(b, false,
			json_string_value(json_array_get(json_object_get(v, "reasons"), 0)));
		rep_csv_end(b);
	}
}

void rep_csv_checks(struct fb_strbuf *b, const json_t *doc)
{
	static const char *const names[] = {"id", "title", "subject", "state", "observed",
		"expected", "source", "read", "reason", "remedy", "side_effect", NULL};
	const json_t *c;
	size_t i;
	header(b, names);
	json_array_foreach (json_object_get(doc, "checks"), i, c) {
		for (size_t k = 0; names[k]; k++) {
			const json_t *x = json_object_get(c, "expected");
			bool expected = strcmp(names[k], "expected") == 0;
			bool source = strcmp(names[k], "source") == 0;
			rep_csv_text(b, k == 0,
				expected ? fb_json_str(x, "value", "")
				: source ? fb_json_str(x, "source", "")
					 : fb_json_str(c, names[k], ""));
		}
		rep_csv_end(b);
	}
}
