// SPDX-License-Identifier: Apache-2.0
/* See headline.h. */
#include "reports/headline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "reports/report_priv.h"

#define MAX_VALUES 4096

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- places, scope --------------------------------------------------------------------------- */

const struct rep_place rep_places[REP_PLACES] = {
	{"hardware", "HARDWARE", "measured on fabric hardware"},
	{"lab", "LAB", "emulated guests with Soft-RoCE: judges no hardware"},
	{"cpu", "CPU", "CPUs and memory of one host: judges no fabric"},
	{"predicted", "PREDICTED", "computed from a model"},
	{"imported", "IMPORTED", "another tool's figures"},
};

bool rep_has_place(const json_t *doc, const struct rep_place *p)
{
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r)
		if (strcmp(fb_json_str(r, "where", ""), p->where) == 0)
			return true;
	return false;
}

/* Devices that hardware results name: the rails that were measured. */
static size_t count_rails(const json_t *doc)
{
	json_t *seen = json_object();
	const json_t *r;
	size_t i, n;
	json_array_foreach (get(doc, "results"), i, r) {
		const char *device = fb_json_str(get(r, "params"), "device", NULL);
		if (device)
			json_object_set_new(seen, device, json_true());
	}
	n = json_object_size(seen);
	json_decref(seen);
	return n;
}

void rep_scope_line(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *c;
	size_t i, judged = 0, rails = count_rails(doc), open = 0;
	size_t hosts = json_array_size(get(get(doc, "system"), "hosts"));
	json_array_foreach (get(doc, "checks"), i, c) {
		const char *state = fb_json_str(c, "state", "?");
		bool skipped = strcmp(state, "skip") == 0 || strcmp(state, "error") == 0;
		judged += !skipped;
		open += skipped;
	}
	fb_strbuf_printf(b, "%zu %s", hosts, hosts == 1 ? "host" : "hosts");
	if (rails)
		fb_strbuf_printf(b, ", %zu %s", rails, rails == 1 ? "rail" : "rails");
	size_t results = json_array_size(get(doc, "results"));
	fb_strbuf_printf(b, ", %zu result%s, %zu check%s judged", results, results == 1 ? "" : "s",
		judged, judged == 1 ? "" : "s");
	if (open)
		fb_strbuf_printf(b, ", %zu not (skipped or in error)", open);
	fb_strbuf_add(b, ".");
}

/* ---- four figures ---------------------------------------------------------------------------- */

struct values {
	double v[MAX_VALUES], bound;
	size_t n;
	bool lower; /* lower is better: the worst is the largest */
};

static bool on_hardware(const json_t *r)
{
	return strcmp(fb_json_str(r, "where", ""), "hardware") == 0 && !rep_is_loopback(r) &&
	       strcmp(fb_json_str(get(r, "validity"), "state", "valid"), "valid") == 0;
}

static bool begins(const json_t *r, const char *prefix)
{
	return strncmp(fb_json_str(r, "case", ""), prefix, strlen(prefix)) == 0;
}

static void add_value(struct values *x, double v, const json_t *r)
{
	double bound = fb_json_num(get(r, "bound"), "value", NAN);
	if (!isfinite(v) || x->n == MAX_VALUES)
		return;
	x->v[x->n++] = v;
	if (isfinite(bound) && !(x->bound <= bound))
		x->bound = bound;
}

static int64_t size_of(const json_t *r)
{
	return fb_json_int(get(r, "params"), "size", -1);
}

/* Of each rail the bandwidth at the largest message that any of them was measured at. */
static void rdma_bandwidth(const json_t *doc, struct values *x)
{
	const json_t *r;
	int64_t most = -1;
	size_t i;
	for (int pass = 0; pass < 2; pass++)
		json_array_foreach (get(doc, "results"), i, r) {
			if (!on_hardware(r) || !begins(r, "verbs.bandwidth/") ||
				strcmp(fb_json_str(r, "metric", ""), "bandwidth") != 0)
				continue;
			if (pass == 0 && size_of(r) > most)
				most = size_of(r);
			if (pass == 1 && size_of(r) == most)
				add_value(x, fb_json_num(r, "value", NAN), r);
		}
}

static double tail_of(const json_t *r)
{
	struct fb_hist *h = malloc(sizeof(*h));
	struct fb_err e = {0};
	double ns = NAN;
	if (h && fb_hist_from_json(h, get(r, "hist"), &e) == 0 &&
		fb_hist_percentile(h, 0.999, &ns) != 0)
		ns = NAN;
	free(h);
	return ns;
}

static void idle_tail(const json_t *doc, struct values *x)
{
	const json_t *r;
	int64_t least = INT64_MAX;
	size_t i;
	x->lower = true;
	for (int pass = 0; pass < 2; pass++)
		json_array_foreach (get(doc, "results"), i, r) {
			if (!on_hardware(r) || !begins(r, "verbs.latency/") || !get(r, "hist"))
				continue;
			if (pass == 0 && size_of(r) < least)
				least = size_of(r);
			if (pass == 1 && size_of(r) == least)
				add_value(x, tail_of(r), r);
		}
}

static void bus_bandwidth(const json_t *doc, struct values *x)
{
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r)
		if (on_hardware(r) && strcmp(fb_json_str(r, "metric", ""), "busbw") == 0 &&
			size_of(r) >= INT64_C(1) << 30)
			add_value(x, fb_json_num(r, "value", NAN), r);
}

static void mfu(const json_t *doc, struct values *x)
{
	const json_t *r;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r)
		if (on_hardware(r) && strcmp(fb_json_str(r, "metric", ""), "mfu") == 0)
			add_value(x, fb_json_num(r, "value", NAN), r);
	if (x->n)
		x->bound = 1;
}

/* Collected in the document's units, told in the figure's. */
static void summarise(struct values *x, double scale, struct rep_headline *h)
{
	h->n = x->n;
	h->worst = h->median = h->bound = NAN;
	if (x->n == 0)
		return;
	fb_sort(x->v, x->n);
	h->worst = (x->lower ? x->v[x->n - 1] : x->v[0]) * scale;
	h->median = fb_median_sorted(x->v, x->n) * scale;
	h->bound = x->bound * scale;
}

int rep_headlines(const json_t *doc, struct rep_headline h[REP_HEADLINES])
{
	static const struct {
		const char *title, *unit;
		double scale;
		void (*collect)(const json_t *doc, struct values *x);
	} figures[REP_HEADLINES] = {
		{"RDMA bandwidth by rail", "Gb/s", 8e-9, rdma_bandwidth},
		{"RDMA latency, idle, p99.9", "us", 1e-3, idle_tail},
		{"Bus bandwidth at 1 GiB and more", "GB/s", 1e-9, bus_bandwidth},
		{"MFU (6N + 12 L h s, PaLM)", "%", 100, mfu},
	};
	struct values *x = malloc(sizeof(*x));
	if (!x)
		return -ENOMEM;
	for (size_t i = 0; i < REP_HEADLINES; i++) {
		x->n = 0;
		x->lower = false;
		x->bound = NAN;
		figures[i].collect(doc, x);
		h[i].title = figures[i].title;
		h[i].unit = figures[i].unit;
		summarise(x, figures[i].scale, &h[i]);
	}
	free(x);
	return 0;
}
