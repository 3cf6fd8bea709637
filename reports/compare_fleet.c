// SPDX-License-Identifier: Apache-2.0
/* See compare_fleet.h. */
#include "reports/compare_fleet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "bench/core/strbuf.h"

static void host_name(const json_t *doc, const char *path, char *name, size_t len)
{
	const json_t *host =
		json_array_get(json_object_get(json_object_get(doc, "system"), "hosts"), 0);
	const char *slash = strrchr(path, '/');
	fb_safe_text(fb_json_str(host, "name", slash ? slash + 1 : path), name, len);
}

int fleet_load(const char *dir, struct fleet *f, struct fb_err *e)
{
	memset(f, 0, sizeof(*f));
	return value_table_load(dir, host_name, &f->t, e);
}

void fleet_free(struct fleet *f)
{
	value_table_free(&f->t);
	free(f->odd);
	free(f->rule);
	memset(f, 0, sizeof(*f));
}

/* ---- judging --------------------------------------------------------------------------------- */

static void judge_column(struct fleet *f, size_t c, double *v, double *scratch)
{
	struct fleet_rule *r = &f->rule[c];
	*r = (struct fleet_rule){NAN, NAN, 0};
	for (size_t k = 0; k < f->t.n_rows; k++)
		if (isfinite(f->t.column[c].v[k]))
			v[r->n++] = f->t.column[c].v[k];
	if (r->n < FLEET_MIN_NODES)
		return;
	fb_sort(v, r->n);
	r->median = fb_median_sorted(v, r->n);
	r->mad = 1.4826 * fb_mad_sorted(v, r->n, scratch);
	for (size_t k = 0; k < f->t.n_rows; k++)
		f->odd[k] = f->odd[k] || fleet_is_odd(f, c, k);
}

int fleet_judge(struct fleet *f, double share, double z)
{
	double *v = calloc(f->t.n_rows + 1, sizeof(*v));
	double *scratch = calloc(f->t.n_rows + 1, sizeof(*v));
	f->share = share;
	f->z = z;
	f->odd = calloc(f->t.n_rows + 1, sizeof(*f->odd));
	f->rule = calloc(f->t.n_columns + 1, sizeof(*f->rule));
	int rc = v && scratch && f->odd && f->rule ? 0 : -ENOMEM;
	for (size_t c = 0; c < f->t.n_columns && rc == 0; c++)
		judge_column(f, c, v, scratch);
	free(v);
	free(scratch);
	return rc;
}

double fleet_z(const struct fleet *f, size_t column, size_t node)
{
	const struct value_column *c = &f->t.column[column];
	const struct fleet_rule *r = &f->rule[column];
	double d = c->v[node] - r->median;
	if (!isfinite(d))
		return NAN;
	if (c->lower)
		d = -d;
	return d == 0 ? 0 : r->mad > 0 ? d / r->mad : d > 0 ? INFINITY : -INFINITY;
}

bool fleet_is_odd(const struct fleet *f, size_t column, size_t node)
{
	const struct value_column *c = &f->t.column[column];
	double worst = f->rule[column].median * (c->lower ? 1 + f->share : 1 - f->share);
	double v = c->v[node];
	return (c->lower ? v > worst : v < worst) && fleet_z(f, column, node) < -f->z;
}

/* What most have, all should have. */
static bool lacks(const struct fleet *f, size_t column, size_t node)
{
	return !isfinite(f->t.column[column].v[node]) && 2 * f->rule[column].n > f->t.n_rows;
}

int fleet_status(const struct fleet *f)
{
	bool odd = false, judged = false, open = false;
	for (size_t k = 0; k < f->t.n_rows; k++)
		odd = odd || f->odd[k];
	for (size_t c = 0; c < f->t.n_columns; c++) {
		judged = judged || f->rule[c].n >= FLEET_MIN_NODES;
		for (size_t k = 0; k < f->t.n_rows; k++)
			open = open || lacks(f, c, k);
	}
	return odd ? FB_EXIT_FAILED : !judged || open ? FB_EXIT_UNMEASURED : FB_EXIT_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *state_word(const struct fleet *f)
{
	int status = fleet_status(f);
	return status == FB_EXIT_OK       ? "ACCEPTED"
	       : status == FB_EXIT_FAILED ? "REJECTED"
					  : "INCOMPLETE";
}

static void print_node(const struct fleet *f, size_t k, FILE *out)
{
	for (size_t c = 0; c < f->t.n_columns; c++) {
		const struct value_column *m = &f->t.column[c];
		if (fleet_is_odd(f, c, k))
			fprintf(out,
				"  %-24s %s %s: %.4g %s, the median is %.4g (%+.1f %%, robust z %.1f)\n",
				f->t.row[k], m->name, m->metric, m->v[k], m->unit,
				f->rule[c].median, 100 * (m->v[k] / f->rule[c].median - 1),
				fleet_z(f, c, k));
		else if (lacks(f, c, k))
			fprintf(out, "  %-24s %s %s: not measured, %zu of the others have it\n",
				f->t.row[k], m->name, m->metric, f->rule[c].n);
	}
}

void fleet_print(const struct fleet *f, FILE *out)
{
	size_t odd = 0, judged = 0;
	for (size_t k = 0; k < f->t.n_rows; k++) {
		odd += f->odd[k];
		print_node(f, k, out);
	}
	for (size_t c = 0; c < f->t.n_columns; c++)
		judged += f->rule[c].n >= FLEET_MIN_NODES;
	fprintf(out, "%s: %zu nodes, %zu odd; %zu of %zu metrics on %d nodes or more\n",
		state_word(f), f->t.n_rows, odd, judged, f->t.n_columns, FLEET_MIN_NODES);
	fprintf(out,
		"Odd: worse than the median by more than %.3g %%, and beyond a robust z of %.3g.\n",
		100 * f->share, f->z);
}

static json_t *odd_json(const struct fleet *f, size_t c, size_t k)
{
	json_t *j = json_object();
	fb_json_set_str(j, "node", f->t.row[k]);
	fb_json_set_str(j, "case", f->t.column[c].name);
	fb_json_set_str(j, "metric", f->t.column[c].metric);
	json_object_set_new(j, "value", fb_json_real(f->t.column[c].v[k]));
	json_object_set_new(j, "median", fb_json_real(f->rule[c].median));
	json_object_set_new(j, "z", fb_json_real(fleet_z(f, c, k)));
	return j;
}

json_t *fleet_json(const struct fleet *f, const char *dir)
{
	json_t *o = json_object(), *odd = json_array(), *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-fleet/1");
	fb_json_set_str(o, "folder", dir);
	fb_json_set_str(o, "state", state_word(f));
	fb_json_set_int(o, "exit", fleet_status(f));
	fb_json_set_int(o, "nodes", (int64_t)f->t.n_rows);
	for (size_t c = 0; c < f->t.n_columns; c++) {
		json_t *j = json_object();
		fb_json_set_str(j, "case", f->t.column[c].name);
		fb_json_set_str(j, "metric", f->t.column[c].metric);
		fb_json_set_str(j, "unit", f->t.column[c].unit);
		fb_json_set_int(j, "nodes", (int64_t)f->rule[c].n);
		json_object_set_new(j, "median", fb_json_real(f->rule[c].median));
		json_object_set_new(j, "deviation", fb_json_real(f->rule[c].mad));
		json_array_append_new(metrics, j);
		for (size_t k = 0; k < f->t.n_rows; k++)
			if (fleet_is_odd(f, c, k))
				json_array_append_new(odd, odd_json(f, c, k));
	}
	json_object_set_new(o, "odd", odd);
	json_object_set_new(o, "metrics", metrics);
	return o;
}
