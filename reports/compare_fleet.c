// SPDX-License-Identifier: Apache-2.0
/* See compare_fleet.h. */
#include "reports/compare_fleet.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/sysroot.h"
#include "reports/compare_priv.h"

#define MAX_NODES 20000

/* ---- reading --------------------------------------------------------------------------------- */

static int new_node(struct fleet *f, const char *name, const char *path, struct fb_err *e)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		if (strcmp(f->node[i].name, name) == 0) {
			fb_fail_usage(e, "%s: there is another document of %s", path, name);
			fb_hint(e, "one document or run directory for each node");
			return -EINVAL;
		}
	if (f->n_nodes == MAX_NODES)
		return fb_fail_usage(e, "more than %d nodes", MAX_NODES);
	struct fleet_node *v = realloc(f->node, (f->n_nodes + 1) * sizeof(*v));
	if (!v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	f->node = v;
	memset(&v[f->n_nodes], 0, sizeof(*v));
	snprintf(v[f->n_nodes++].name, sizeof(v->name), "%.90s", name);
	return 0;
}

static struct fleet_metric *metric_of(struct fleet *f, const struct cmp_metric *m)
{
	for (size_t i = 0; i < f->n_metrics; i++)
		if (strcmp(f->metric[i].metric, m->metric) == 0 &&
			strcmp(f->metric[i].name, m->name) == 0)
			return &f->metric[i];
	struct fleet_metric *v = realloc(f->metric, (f->n_metrics + 1) * sizeof(*v));
	if (!v)
		return NULL;
	f->metric = v;
	struct fleet_metric *n = &v[f->n_metrics++];
	memset(n, 0, sizeof(*n));
	snprintf(n->name, sizeof(n->name), "%s", m->name);
	snprintf(n->metric, sizeof(n->metric), "%s", m->metric);
	snprintf(n->unit, sizeof(n->unit), "%s", m->unit);
	n->lower = m->lower;
	return n;
}

/* The last node's value of a metric; nodes before it that had none get NaN. */
static int set_value(struct fleet *f, struct fleet_metric *m, double value)
{
	double *v = realloc(m->v, f->n_nodes * sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->v = v;
	while (m->n < f->n_nodes)
		v[m->n++] = NAN;
	v[f->n_nodes - 1] = value;
	return 0;
}

/* The metrics of one node: `compare` knows how a document becomes values. */
static int add_values(struct fleet *f, struct cmp *c, struct fb_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < c->n && rc == 0; i++) {
		struct cmp_side *s = &c->v[i].base;
		struct fleet_metric *m = s->n > 0 ? metric_of(f, &c->v[i]) : NULL;
		if (s->n == 0)
			continue;
		fb_sort(s->v, s->n);
		rc = m ? set_value(f, m, fb_median_sorted(s->v, s->n)) : -ENOMEM;
	}
	return rc == 0 ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
}

static int add_document(struct fleet *f, const char *path, struct fb_err *e)
{
	struct cmp c = {0};
	const char *slash = strrchr(path, '/');
	int rc = cmp_add(&c, path, false, e);
	if (rc == 0) {
		const json_t *host = json_array_get(
			json_object_get(json_object_get(c.base, "system"), "hosts"), 0);
		rc = new_node(f, fb_json_str(host, "name", slash ? slash + 1 : path), path, e);
	}
	if (rc == 0)
		rc = add_values(f, &c, e);
	cmp_free(&c);
	return rc;
}

static bool is_document(const char *dir, const char *name, char *path, size_t len)
{
	struct stat st;
	size_t n = strlen(name);
	char run[4200];
	if (snprintf(path, len, "%s/%s", dir, name) >= (int)len || stat(path, &st) != 0)
		return false;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) && n > 5 && strcmp(name + n - 5, ".json") == 0;
	return snprintf(run, sizeof(run), "%s/run.json", path) < (int)sizeof(run) &&
	       stat(run, &st) == 0;
}

int fleet_load(const char *dir, struct fleet *f, struct fb_err *e)
{
	struct fb_sysroot live = {0};
	char **names = NULL, path[4096];
	memset(f, 0, sizeof(*f));
	int n = fb_sysroot_list(&live, dir, &names), rc = 0;
	if (n < 0)
		return fb_fail(
			e, FB_EXIT_USAGE, -n, "cannot read the folder %s: %s", dir, strerror(-n));
	for (int i = 0; i < n && rc == 0; i++)
		if (is_document(dir, names[i], path, sizeof(path)))
			rc = add_document(f, path, e);
	fb_sysroot_names_free(names);
	if (rc == 0 && f->n_nodes == 0) {
		rc = fb_fail(e, FB_EXIT_USAGE, ENODATA, "%s holds no result document", dir);
		fb_hint(e, "one *.json, or one run directory, for each node");
	}
	/* What the last nodes lacked. */
	for (size_t i = 0; i < f->n_metrics && rc == 0; i++)
		if (f->metric[i].n < f->n_nodes) {
			double *v = realloc(f->metric[i].v, f->n_nodes * sizeof(*v));
			if (!v) {
				rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
				break;
			}
			f->metric[i].v = v;
			while (f->metric[i].n < f->n_nodes)
				v[f->metric[i].n++] = NAN;
		}
	if (rc != 0)
		fleet_free(f);
	return rc;
}

void fleet_free(struct fleet *f)
{
	for (size_t i = 0; i < f->n_metrics; i++)
		free(f->metric[i].v);
	free(f->metric);
	free(f->node);
	memset(f, 0, sizeof(*f));
}

/* ---- judging --------------------------------------------------------------------------------- */

void fleet_judge(struct fleet *f, double share, double z)
{
	double *v = calloc(f->n_nodes + 1, sizeof(*v)),
	       *scratch = calloc(f->n_nodes + 1, sizeof(*v));
	f->share = share;
	f->z = z;
	for (size_t i = 0; i < f->n_metrics; i++) {
		struct fleet_metric *m = &f->metric[i];
		m->n = 0;
		m->median = m->mad = NAN;
		for (size_t k = 0; k < f->n_nodes && v && scratch; k++)
			if (isfinite(m->v[k]))
				v[m->n++] = m->v[k];
		if (m->n < FLEET_MIN_NODES)
			continue;
		fb_sort(v, m->n);
		m->median = fb_median_sorted(v, m->n);
		m->mad = 1.4826 * fb_mad_sorted(v, m->n, scratch);
		for (size_t k = 0; k < f->n_nodes; k++)
			f->node[k].odd = f->node[k].odd || fleet_is_odd(f, m, k);
	}
	free(v);
	free(scratch);
}

double fleet_z(const struct fleet_metric *m, size_t node)
{
	double d = m->v[node] - m->median;
	if (!isfinite(d))
		return NAN;
	if (m->lower)
		d = -d;
	return d == 0 ? 0 : m->mad > 0 ? d / m->mad : d > 0 ? INFINITY : -INFINITY;
}

bool fleet_is_odd(const struct fleet *f, const struct fleet_metric *m, size_t node)
{
	double worst = m->median * (m->lower ? 1 + f->share : 1 - f->share), v = m->v[node];
	return (m->lower ? v > worst : v < worst) && fleet_z(m, node) < -f->z;
}

int fleet_status(const struct fleet *f)
{
	bool odd = false, judged = false, lacks = false;
	for (size_t i = 0; i < f->n_nodes; i++)
		odd = odd || f->node[i].odd;
	for (size_t i = 0; i < f->n_metrics; i++) {
		judged = judged || f->metric[i].n >= FLEET_MIN_NODES;
		/* What most have, all should have. */
		lacks = lacks || (f->metric[i].n < f->n_nodes && 2 * f->metric[i].n > f->n_nodes);
	}
	return odd ? FB_EXIT_FAILED : !judged || lacks ? FB_EXIT_UNMEASURED : FB_EXIT_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *state_word(const struct fleet *f)
{
	int status = fleet_status(f);
	return status == FB_EXIT_OK       ? "ACCEPTED"
	       : status == FB_EXIT_FAILED ? "REJECTED"
					  : "INCOMPLETE";
}

static void print_node(const struct fleet *f, size_t node, FILE *out)
{
	for (size_t i = 0; i < f->n_metrics; i++) {
		const struct fleet_metric *m = &f->metric[i];
		if (fleet_is_odd(f, m, node))
			fprintf(out,
				"  %-24s %s %s: %.4g %s, the median is %.4g (%+.1f %%, robust z %.1f)\n",
				f->node[node].name, m->name, m->metric, m->v[node], m->unit,
				m->median, 100 * (m->v[node] / m->median - 1), fleet_z(m, node));
		else if (!isfinite(m->v[node]) && 2 * m->n > f->n_nodes)
			fprintf(out, "  %-24s %s %s: not measured, %zu of the others have it\n",
				f->node[node].name, m->name, m->metric, m->n);
	}
}

void fleet_print(const struct fleet *f, FILE *out)
{
	size_t odd = 0, judged = 0;
	for (size_t i = 0; i < f->n_nodes; i++) {
		odd += f->node[i].odd;
		print_node(f, i, out);
	}
	for (size_t i = 0; i < f->n_metrics; i++)
		judged += f->metric[i].n >= FLEET_MIN_NODES;
	fprintf(out, "%s: %zu nodes, %zu odd; %zu of %zu metrics on %d nodes or more\n",
		state_word(f), f->n_nodes, odd, judged, f->n_metrics, FLEET_MIN_NODES);
	fprintf(out,
		"Odd: worse than the median by more than %.3g %%, and beyond a robust z of %.3g.\n",
		100 * f->share, f->z);
}

json_t *fleet_json(const struct fleet *f, const char *dir)
{
	json_t *o = json_object(), *odd = json_array(), *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-fleet/1");
	fb_json_set_str(o, "folder", dir);
	fb_json_set_str(o, "state", state_word(f));
	fb_json_set_int(o, "exit", fleet_status(f));
	fb_json_set_int(o, "nodes", (int64_t)f->n_nodes);
	for (size_t i = 0; i < f->n_metrics; i++) {
		const struct fleet_metric *m = &f->metric[i];
		json_t *j = json_object();
		fb_json_set_str(j, "case", m->name);
		fb_json_set_str(j, "metric", m->metric);
		fb_json_set_str(j, "unit", m->unit);
		fb_json_set_int(j, "nodes", (int64_t)m->n);
		json_object_set_new(j, "median", fb_json_real(m->median));
		json_object_set_new(j, "deviation", fb_json_real(m->mad));
		json_array_append_new(metrics, j);
		for (size_t k = 0; k < f->n_nodes; k++) {
			if (!fleet_is_odd(f, m, k))
				continue;
			j = json_object();
			fb_json_set_str(j, "node", f->node[k].name);
			fb_json_set_str(j, "case", m->name);
			fb_json_set_str(j, "metric", m->metric);
			json_object_set_new(j, "value", fb_json_real(m->v[k]));
			json_object_set_new(j, "median", fb_json_real(m->median));
			json_object_set_new(j, "z", fb_json_real(fleet_z(m, k)));
			json_array_append_new(odd, j);
		}
	}
	json_object_set_new(o, "odd", odd);
	json_object_set_new(o, "metrics", metrics);
	return o;
}
