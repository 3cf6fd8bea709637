// SPDX-License-Identifier: Apache-2.0
/* See history.h. */
#include "reports/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"

/* With fewer runs no split reaches HISTORY_MAX_P: 7 against 7 give 0.0006. */
#define LEAST_RUNS 13

static void run_name(const json_t *doc, const char *path, char *name, size_t len)
{
	const json_t *run = json_object_get(doc, "run"), *tool = json_object_get(doc, "tool");
	char raw[96];
	snprintf(raw, sizeof(raw), "%.40s %.40s", fb_json_str(run, "started", path),
		fb_json_str(tool, "git", "?"));
	fb_safe_text(raw, name, len);
}

/* The least change that counts: as in compare's gate, by kind of metric. */
static double floor_of(const struct value_column *c)
{
	size_t n = strlen(c->metric);
	if (strcmp(c->unit, "ns") != 0)
		return 0.01;
	if (n > 5 && strcmp(c->metric + n - 5, "p99.9") == 0)
		return 0.10;
	return n > 3 && strcmp(c->metric + n - 3, "p99") == 0 ? 0.05 : 0.02;
}

static int add_change(
	struct history *h, size_t column, const size_t *row, const struct rep_change *c)
{
	struct history_change *v = realloc(h->change, (h->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	h->change = v;
	v[h->n++] = (struct history_change){.column = column,
		.last = row[c->at - 1],
		.first = row[c->at],
		.c = *c,
		.worse = (c->after > c->before) == h->t.column[column].lower};
	return 0;
}

static int judge_column(
	struct history *h, size_t column, double *v, size_t *row, struct rep_change *found)
{
	const struct value_column *c = &h->t.column[column];
	size_t n = 0;
	for (size_t i = 0; i < h->t.n_rows; i++)
		if (isfinite(c->v[i])) {
			v[n] = c->v[i];
			row[n++] = i;
		}
	if (n < LEAST_RUNS)
		return 0;
	h->judged++;
	int changes = rep_change_points(v, n, HISTORY_MAX_P, floor_of(c), found), rc = 0;
	for (int i = 0; i < changes && rc == 0; i++)
		rc = add_change(h, column, row, &found[i]);
	return changes < 0 ? changes : rc;
}

int history_load(const char *dir, struct history *h, struct fb_err *e)
{
	memset(h, 0, sizeof(*h));
	int rc = value_table_load(dir, run_name, &h->t, e);
	if (rc != 0)
		return rc;
	size_t n = h->t.n_rows + 1;
	double *v = calloc(n, sizeof(*v));
	size_t *row = calloc(n, sizeof(*row));
	struct rep_change *found = calloc(n, sizeof(*found));
	rc = v && row && found ? 0 : -ENOMEM;
	for (size_t c = 0; c < h->t.n_columns && rc == 0; c++)
		rc = judge_column(h, c, v, row, found);
	free(v);
	free(row);
	free(found);
	if (rc == -E2BIG) {
		fb_fail(e, FB_EXIT_USAGE, E2BIG, "%s holds %zu runs; %d are looked at", dir,
			h->t.n_rows, REP_MAX_SERIES);
		fb_hint(e, "move the oldest to another folder");
	} else if (rc != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "out of memory");
	}
	if (rc != 0)
		history_free(h);
	return rc;
}

void history_free(struct history *h)
{
	value_table_free(&h->t);
	free(h->change);
	memset(h, 0, sizeof(*h));
}

void history_print(const struct history *h, FILE *out)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct history_change *x = &h->change[i];
		const struct value_column *c = &h->t.column[x->column];
		fprintf(out,
			"%s  %s %s: %.4g to %.4g %s (%+.1f %%, p = %.2g)\n        between %s\n        and     %s\n",
			x->worse ? "WORSE " : "better", c->name, c->metric, x->c.before, x->c.after,
			c->unit, 100 * (x->c.after / x->c.before - 1), x->c.p, h->t.row[x->last],
			h->t.row[x->first]);
	}
	fprintf(out, "%zu changes in %zu of %zu metrics over %zu runs, %s to %s\n", h->n, h->judged,
		h->t.n_columns, h->t.n_rows, h->t.row[0], h->t.row[h->t.n_rows - 1]);
	if (h->judged < h->t.n_columns)
		fprintf(out, "%zu metrics have fewer than %d runs: too few for a change to show.\n",
			h->t.n_columns - h->judged, LEAST_RUNS);
	fprintf(out, "Advisory: a change shows some runs after it; gates use compare.\n");
}

static json_t *change_json(const struct history *h, const struct history_change *x)
{
	const struct value_column *c = &h->t.column[x->column];
	json_t *o = json_object();
	fb_json_set_str(o, "case", c->name);
	fb_json_set_str(o, "metric", c->metric);
	fb_json_set_str(o, "unit", c->unit);
	fb_json_set_str(o, "direction", x->worse ? "worse" : "better");
	json_object_set_new(o, "before", fb_json_real(x->c.before));
	json_object_set_new(o, "after", fb_json_real(x->c.after));
	json_object_set_new(o, "p", fb_json_real(x->c.p));
	fb_json_set_str(o, "last_before", h->t.row[x->last]);
	fb_json_set_str(o, "first_after", h->t.row[x->first]);
	return o;
}

json_t *history_json(const struct history *h, const char *dir)
{
	json_t *o = json_object(), *changes = json_array(), *runs = json_array(),
	       *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-history/1");
	fb_json_set_str(o, "folder", dir);
	fb_json_set_int(o, "judged", (int64_t)h->judged);
	for (size_t i = 0; i < h->t.n_rows; i++)
		json_array_append_new(runs, json_string(h->t.row[i]));
	for (size_t i = 0; i < h->n; i++)
		json_array_append_new(changes, change_json(h, &h->change[i]));
	for (size_t c = 0; c < h->t.n_columns; c++) {
		json_t *m = json_object(), *v = json_array();
		fb_json_set_str(m, "case", h->t.column[c].name);
		fb_json_set_str(m, "metric", h->t.column[c].metric);
		fb_json_set_str(m, "unit", h->t.column[c].unit);
		for (size_t i = 0; i < h->t.n_rows; i++)
			json_array_append_new(v, fb_json_real(h->t.column[c].v[i]));
		json_object_set_new(m, "values", v);
		json_array_append_new(metrics, m);
	}
	json_object_set_new(o, "runs", runs);
	json_object_set_new(o, "changes", changes);
	json_object_set_new(o, "metrics", metrics);
	return o;
}
