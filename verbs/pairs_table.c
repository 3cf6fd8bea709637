// SPDX-License-Identifier: Apache-2.0
/*
 * The table of a run over pairs, from its document alone: what the fleet's level is, who is below
 * it, which links are ill, which pairs failed and why, and the verdict last.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/pairs_doc.h"

#define MAX_HOST_ROWS    64
#define MAX_FAILURE_ROWS 20

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static const char *value_text(const json_t *s, double v, char *buf, size_t len)
{
	if (!isfinite(v))
		snprintf(buf, len, "-");
	else if (!strcmp(fb_json_str(s, "unit", ""), "ns"))
		fb_fmt_duration(v, buf, len);
	else
		fb_fmt_gbps(v, buf, len);
	return buf;
}

static const char *host_name(const json_t *s, const json_t *link, const char *key)
{
	return fb_json_str(
		json_array_get(get(s, "hosts"), (size_t)fb_json_int(link, key, -1)), "name", "?");
}

static void rails(const json_t *s, FILE *out)
{
	const json_t *r;
	char level[40];
	size_t i;

	json_array_foreach (get(s, "rails"), i, r)
		fprintf(out, "rail %zu: level %s, noise %.1f %%, %lld pairs%s%s\n", i,
			value_text(s, fb_json_num(r, "level", NAN), level, sizeof level),
			100 * fb_json_num(r, "noise", NAN), (long long)fb_json_int(r, "links", 0),
			json_is_true(get(r, "judged")) ? "" : ", too few to compare",
			json_is_true(get(r, "off_level")) ? ", below the other rails" : "");
}

struct row {
	const json_t *host, *rail;
	double bad; /* how far from good: rows are sorted by it */
};

static int worst_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->bad != y->bad)
		return x->bad > y->bad ? -1 : 1;
	return strcmp(fb_json_str(x->host, "name", ""), fb_json_str(y->host, "name", ""));
}

static bool is_good(const char *state)
{
	return !strcmp(state, "good") || !strcmp(state, "cleared");
}

static void host_row(const struct row *r, int width, FILE *out)
{
	double score = fb_json_num(r->rail, "score", NAN), z = fb_json_num(r->rail, "z", NAN);
	double sure = fb_json_num(r->rail, "confirmed", NAN);
	char text[3][24];

	snprintf(text[0], sizeof text[0], isfinite(score) ? "%.1f" : "-", 100 * score);
	snprintf(text[1], sizeof text[1], isfinite(z) ? "%.1f" : "-", z);
	snprintf(text[2], sizeof text[2], isfinite(sure) ? "%.1f" : "-", 100 * sure);
	fprintf(out, "  %-*s  %-8s  %4lld  %-11s  %-9s  %7s  %6s  %9s  %5lld  %6lld\n", width,
		fb_json_str(r->host, "name", "?"), fb_json_str(r->host, "rack", "-"),
		(long long)fb_json_int(r->rail, "rail", 0), fb_json_str(r->host, "state", "?"),
		fb_json_str(r->rail, "state", "?"), text[0], text[1], text[2],
		(long long)fb_json_int(r->rail, "pairs", 0),
		(long long)fb_json_int(r->rail, "missed", 0));
}

/* All of a small fleet; of a large one the worst, and in any case all that are not good. */
static void hosts(const json_t *s, FILE *out)
{
	const json_t *list = get(s, "hosts"), *h, *r;
	size_t i, k, n = 0, shown = 0, per = json_array_size(get(s, "rails"));
	struct row *v = calloc(json_array_size(list) * (per ? per : 1) + 1, sizeof *v);
	double sign = !strcmp(fb_json_str(s, "better", ""), "lower") ? 1 : -1;
	int width = 4;

	if (!v)
		return;
	json_array_foreach (list, i, h) {
		int len = (int)strlen(fb_json_str(h, "name", "?"));
		width = len > width ? len : width;
		json_array_foreach (get(h, "rails"), k, r) {
			double score = fb_json_num(r, "score", 1);
			if (k >= per)
				break;
			v[n++] = (struct row){h, r,
				(is_good(fb_json_str(r, "state", "?")) ? 0 : 1000) +
					sign * (score - 1)};
		}
	}
	qsort(v, n, sizeof *v, worst_first);
	fprintf(out, "  %-*s  %-8s  %4s  %-11s  %-9s  %7s  %6s  %9s  %5s  %6s\n", width, "host",
		"rack", "rail", "state", "judged", "score %", "z", "confirmed", "pairs", "missed");
	for (i = 0; i < n && (i < MAX_HOST_ROWS || v[i].bad >= 500); i++, shown++)
		host_row(&v[i], width, out);
	if (shown < n)
		fprintf(out, "  and %zu more, all good\n", n - shown);
	free(v);
}

static void links(const json_t *s, FILE *out)
{
	const json_t *l;
	size_t i;
	bool any = false;

	json_array_foreach (get(s, "links"), i, l) {
		const char *state = fb_json_str(l, "state", "?");
		double score = fb_json_num(l, "score", NAN);
		if (!strcmp(state, "cleared"))
			continue;
		if (!any)
			fprintf(out, "links:\n");
		any = true;
		fprintf(out, "  %s - %s, rail %lld: %s%s", host_name(s, l, "a"),
			host_name(s, l, "b"), (long long)fb_json_int(l, "rail", 0), state,
			json_is_true(get(l, "by_node")) ? " (by its host)" : "");
		if (isfinite(score))
			fprintf(out, ", %.1f %% of what its hosts reach elsewhere", 100 * score);
		fprintf(out, ", %lld missed\n", (long long)fb_json_int(l, "missed", 0));
	}
}

static void failures(const json_t *doc, FILE *out)
{
	const json_t *r;
	size_t i, n = 0;

	json_array_foreach (get(doc, "results"), i, r) {
		const char *why = fb_json_str(r, "value_reason", NULL);
		if (!why)
			continue;
		if (n == 0)
			fprintf(out, "pairs without a value:\n");
		if (n++ < MAX_FAILURE_ROWS)
			fprintf(out, "  %s: %s\n",
				fb_json_str(r, "case", "?") + strlen("verbs.pairs/"), why);
	}
	if (n > MAX_FAILURE_ROWS)
		fprintf(out, "  and %zu more in the document\n", n - MAX_FAILURE_ROWS);
}

static void simulation(const json_t *s, FILE *out)
{
	const char *key;
	const json_t *v;

	if (!get(s, "simulation"))
		return;
	fprintf(out, "simulated:");
	json_object_foreach ((json_t *)get(s, "simulation"), key, v)
		if (json_is_integer(v))
			fprintf(out, " %s %lld", key, (long long)json_integer_value(v));
	fprintf(out, "\n");
}

static void verdict(const json_t *doc, const json_t *s, FILE *out)
{
	const json_t *v = get(doc, "verdict"), *a = get(s, "account"), *reason;
	size_t i;

	fprintf(out, "%s: %lld hosts: %lld measured, %lld failed, %lld unreachable, %lld not run\n",
		fb_json_str(v, "state", "INCOMPLETE"), (long long)fb_json_int(a, "expected", 0),
		(long long)fb_json_int(a, "measured", 0), (long long)fb_json_int(a, "failed", 0),
		(long long)fb_json_int(a, "unreachable", 0),
		(long long)fb_json_int(a, "not_run", 0));
	json_array_foreach (get(v, "reasons"), i, reason)
		fprintf(out, "  %s\n", json_is_string(reason) ? json_string_value(reason) : "?");
}

void pairs_doc_table(const json_t *doc, FILE *out)
{
	const json_t *s = json_array_get(get(doc, "pairs"), 0), *m;
	size_t i;

	if (s) {
		fprintf(out, "Pairs, %s (%s): %lld rounds, %zu launches\n",
			fb_json_str(s, "metric", "?"), fb_json_str(s, "where", "?"),
			(long long)fb_json_int(get(s, "schedule"), "rounds", 0),
			json_array_size(get(s, "measured")));
		rails(s, out);
		hosts(s, out);
		links(s, out);
		failures(doc, out);
		simulation(s, out);
		verdict(doc, s, out);
	}
	json_array_foreach (get(doc, "warnings"), i, m)
		fprintf(out, "warning: %s\n", json_is_string(m) ? json_string_value(m) : "?");
	json_array_foreach (get(doc, "errors"), i, m)
		fprintf(out, "error: %s\n", fb_json_str(m, "message", "?"));
}
