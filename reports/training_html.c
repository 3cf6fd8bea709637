// SPDX-License-Identifier: Apache-2.0
/*
 * The Training section: the verdict of each run in words, then tables of MFU by convention and of
 * what was counted beside its closed form, then the pictures.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/training.h"

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void head(struct fb_strbuf *b, const char *const *names)
{
	fb_strbuf_add(b, "<div class=\"wide\"><table><thead><tr>");
	for (; *names; names++)
		rep_tag(b, "th", NULL, "%s", *names);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

static void foot(struct fb_strbuf *b)
{
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

static void num(struct fb_strbuf *b, double v)
{
	char text[40];
	rep_tag(b, "td", "n", "%s", rep_num(v, text, sizeof(text)));
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void moves(struct fb_strbuf *b, const json_t *v)
{
	const json_t *m;
	size_t i;
	char text[40];
	fb_strbuf_add(b, "<td class=\"long\">");
	json_array_foreach (get(v, "moves"), i, m) {
		double n = fb_json_num(m, "number", NAN);
		fb_strbuf_add(b, i ? "<br/>" : "");
		if (n > 100)
			rep_num(n, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "%.2f", n);
		rep_text(b, "%s: ", fb_json_str(m, "what", "?"));
		rep_tag(b, "strong", NULL, "%s", text);
		rep_text(b, " %s", fb_json_str(m, "unit", ""));
	}
	fb_strbuf_add(b, i ? "</td>" : "nothing that was found</td>");
}

static void verdicts(struct fb_strbuf *b, const struct rep_train_row *rows, size_t n)
{
	static const char *const names[] = {"run", "bound by", "why", "what would move it", NULL};
	head(b, names);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = get(rows[i].r, "verdict");
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", rows[i].label);
		rep_tag(b, "td", NULL, "%s", fb_json_str(v, "bound_by", "?"));
		rep_tag(b, "td", "long", "%s", fb_json_str(v, "why", "?"));
		moves(b, v);
		fb_strbuf_add(b, "</tr>\n");
	}
	foot(b);
}

/* ---- MFU ------------------------------------------------------------------------------------- */

static void mfu_cells(struct fb_strbuf *b, const json_t *j)
{
	static const char *const keys[] = {"palm", "6n", "causal"};
	for (size_t i = 0; i < 3; i++)
		num(b, 100 * fb_json_num(j, keys[i], NAN));
}

static void mfu_table(struct fb_strbuf *b, const struct rep_train_row *rows, size_t n)
{
	static const char *const names[] = {"run", "step [ms]", "tokens/s per rank", "palm [%]",
		"6n [%]", "causal [%]", "peak [TFLOP/s]", "palm, own products [%]", "6n [%]",
		"causal [%]", "products [GFLOP/s]", "HFU, own products [%]", NULL};
	rep_tag(b, "h3", NULL, "MFU by convention");
	fb_strbuf_add(b, "\n");
	head(b, names);
	for (size_t i = 0; i < n; i++) {
		const json_t *r = rows[i].r, *m = get(r, "mfu"), *p = get(r, "params");
		double step = fb_json_num(r, "value", NAN);
		double tokens = fb_json_num(p, "seq", NAN) * fb_json_num(p, "micro_batch", NAN) *
				fb_json_num(p, "accumulate", NAN);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", rows[i].label);
		num(b, step / 1e6);
		num(b, tokens / step * 1e9);
		mfu_cells(b, get(m, "data_sheet"));
		num(b, fb_json_num(get(m, "peak"), "flops", NAN) / 1e12);
		mfu_cells(b, get(m, "measured"));
		num(b, fb_json_num(get(m, "measured"), "flops", NAN) / 1e9);
		num(b, 100 * fb_json_num(get(r, "hfu"), "measured", NAN));
		fb_strbuf_add(b, "</tr>\n");
	}
	foot(b);
	rep_tag(b, "p", "quiet",
		"palm: 6N + 12Lads model FLOPs per token, the headline; 6n: 6 per parameter; causal: "
		"exact products under the causal mask. The first three are of the dense data-sheet "
		"peak, where one is known; the others of the rate of the step's own products, timed in "
		"turn after the last step. bf16 stands where older recipes say FP16: it has fp32's "
		"range, so no loss scaling is needed.");
	fb_strbuf_add(b, "\n");
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void sized(struct fb_strbuf *b, double v)
{
	char text[40];
	if (v > 0 && v < 9e18)
		rep_tag(b, "td", "n", "%s", fb_fmt_size((uint64_t)v, text, sizeof(text)));
	else
		rep_tag(b, "td", "n", v <= 0 ? "0" : "-");
}

/* One row of kinds, as counted, and whether all of them are what the formula says. */
static void counted_row(struct fb_strbuf *b, const struct rep_train_row *row, const json_t *all,
	const char *const *keys)
{
	const json_t *kinds = get(all, "kinds");
	bool equal = json_is_true(get(all, "equal_on_all_ranks"));
	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "td", NULL, "%s", row->label);
	for (; *keys; keys++)
		sized(b, fb_json_num(get(kinds, *keys), "counted", NAN));
	rep_tag(b, "td", equal ? "valid" : "invalid", equal ? "equal" : "not equal");
	fb_strbuf_add(b, "</tr>\n");
}

static void counted_table(struct fb_strbuf *b, const struct rep_train_row *rows, size_t n,
	const char *title, const char *key, const char *const *names, const char *const *keys)
{
	rep_tag(b, "h3", NULL, "%s", title);
	fb_strbuf_add(b, "\n");
	head(b, names);
	for (size_t i = 0; i < n; i++)
		if (json_is_object(get(get(rows[i].r, key), "kinds")))
			counted_row(b, &rows[i], get(rows[i].r, key), keys);
	foot(b);
}

static void counted_tables(struct fb_strbuf *b, const struct rep_train_row *rows, size_t n)
{
	static const char *const sent[] = {"run", "all-gather", "reduce-scatter", "all-reduce",
		"norm", "offload out", "offload in", "the formula", NULL};
	static const char *const sent_keys[] = {"all_gather", "reduce_scatter", "all_reduce",
		"norm", "offload_out", "offload_in", NULL};
	static const char *const held[] = {"run", "parameters", "gathered", "master", "optimizer",
		"gradients", "activations", "total", "on the host", "the formula", NULL};
	static const char *const held_keys[] = {"params", "gathered", "master", "optimizer",
		"grads", "activations", "total", "host", NULL};
	counted_table(b, rows, n, "Bytes that one rank sends in a step, counted", "bytes", sent,
		sent_keys);
	counted_table(b, rows, n, "Memory of one rank, as allocated", "memory", held, held_keys);
}

/* ---- the section ----------------------------------------------------------------------------- */

static void pictures(struct fb_strbuf *b, const struct rep_page *p)
{
	const struct rep_training *t = p->training;
	if (!t || t->n == 0)
		return;
	fb_strbuf_add(b, "<div class=\"figures\">\n");
	for (size_t i = 0; i < t->n; i++) {
		fb_strbuf_printf(b, "<figure id=\"%s\">\n", t->v[i].id);
		if (!rep_html_image(b, t->v[i].svg, t->v[i].title))
			rep_tag(b, "p", "quiet", "%s. No picture: %s. The data are in %s.dat.",
				t->v[i].title, p->no_plots ? p->no_plots : "it could not be drawn",
				t->v[i].id);
		rep_tag(b, "figcaption", NULL, "%s", t->caption[i]);
		fb_strbuf_add(b, "</figure>\n");
	}
	fb_strbuf_add(b, "</div>\n");
}

void rep_html_training(struct fb_strbuf *b, const struct rep_page *p)
{
	struct rep_train_row *rows = calloc(REP_TRAIN_ROWS, sizeof(*rows));
	size_t left = 0, n = rows ? rep_train_rows(p->doc, rows, &left) : 0;
	if (n > 0) {
		verdicts(b, rows, n);
		pictures(b, p);
		mfu_table(b, rows, n);
		counted_tables(b, rows, n);
	}
	if (left > 0)
		rep_tag(b, "p", "quiet", "And %zu more runs in the document.", left);
	free(rows);
}
