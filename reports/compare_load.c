// SPDX-License-Identifier: Apache-2.0
/*
 * Two documents into metrics: results with the same case and metric belong together, and each
 * launch gives one value. Percentiles come from a launch's own histogram, and only where its
 * samples support them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/compare_priv.h"
#include "reports/report_priv.h"

static const struct {
	double q;
	const char *name;
} percentiles[] = {{0.5, "p50"}, {0.99, "p99"}, {0.999, "p99.9"}};

static json_t *load(const char *path, struct fb_err *e)
{
	char doc[4096];
	struct stat st;
	if (stat(path, &st) != 0) {
		fb_fail_usage(e, "cannot read %s: %s", path, strerror(errno));
		fb_hint(e, "give a run directory or a result document");
		return NULL;
	}
	int n = snprintf(doc, sizeof(doc), "%s%s", path, S_ISDIR(st.st_mode) ? "/run.json" : "");
	if (n >= (int)sizeof(doc)) {
		fb_fail_usage(e, "%s: the path is too long", path);
		return NULL;
	}
	return fb_doc_load(doc, e);
}

static struct cmp_metric *metric_for(struct cmp *c, const json_t *r, const char *metric, double q)
{
	const char *name = fb_json_str(r, "case", "?");
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->v[i].name, name) == 0 && strcmp(c->v[i].metric, metric) == 0)
			return &c->v[i];
	struct cmp_metric *v = realloc(c->v, (c->n + 1) * sizeof(*v));
	if (!v)
		return NULL;
	c->v = v;
	struct cmp_metric *m = &v[c->n++];
	memset(m, 0, sizeof(*m));
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->metric, sizeof(m->metric), "%s", metric);
	snprintf(m->unit, sizeof(m->unit), "%s", fb_json_str(r, "unit", ""));
	m->lower = strcmp(fb_json_str(r, "better", "higher"), "lower") == 0;
	m->time = strcmp(m->unit, "ns") == 0;
	m->q = q;
	m->size = (uint64_t)fb_json_int(json_object_get(r, "params"), "size", 0);
	return m;
}

static int add_value(struct cmp_side *s, const json_t *r, double value)
{
	char launch[64];
	const json_t *validity = json_object_get(r, "validity");
	snprintf(launch, sizeof(launch), "%.40s#%lld", fb_json_str(r, "job", ""),
		(long long)fb_json_int(r, "launch", 0));
	if (strcmp(fb_json_str(validity, "state", "valid"), "invalid") == 0 && !s->invalid) {
		const char *why =
			json_string_value(json_array_get(json_object_get(validity, "reasons"), 0));
		s->invalid = true;
		snprintf(s->why, sizeof(s->why), "launch %s: %s", launch,
			why ? why : "no reason given");
	}
	if (!s->params) {
		s->params = json_object_get(r, "params");
		s->where = fb_json_str(r, "where", "?");
	}
	/* A second value of the same launch is no second launch. */
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->launch[i], launch) == 0)
			return 0;
	if (!isfinite(value))
		return 0;
	double *v = realloc(s->v, (s->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	char(*names)[64] = realloc(s->launch, (s->n + 1) * sizeof(*names));
	if (!names)
		return -ENOMEM;
	s->launch = names;
	snprintf(names[s->n], sizeof(names[0]), "%s", launch);
	v[s->n++] = value;
	return 0;
}

static struct cmp_side *side_of(struct cmp_metric *m, bool cand)
{
	return cand ? &m->cand : &m->base;
}

static int add_times(struct cmp *c, const json_t *r, bool cand, struct fb_hist *h, struct fb_err *e)
{
	int rc = fb_hist_from_json(h, json_object_get(r, "hist"), e);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]) && rc == 0; i++) {
		char name[56];
		double ns;
		if (fb_hist_percentile(h, percentiles[i].q, &ns) != 0)
			continue;
		snprintf(name, sizeof(name), "%.40s %s", fb_json_str(r, "metric", "?"),
			percentiles[i].name);
		struct cmp_metric *m = metric_for(c, r, name, percentiles[i].q);
		rc = m ? add_value(side_of(m, cand), r, ns) : -ENOMEM;
	}
	return rc;
}

static int add_document(struct cmp *c, const json_t *doc, bool cand, struct fb_err *e)
{
	const json_t *r;
	size_t i;
	int rc = 0;
	struct fb_hist *h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		const char *metric = fb_json_str(r, "metric", "?");
		if (rc != 0)
			break;
		if (json_is_object(json_object_get(r, "hist"))) {
			rc = add_times(c, r, cand, h, e);
			continue;
		}
		struct cmp_metric *m = metric_for(c, r, metric, 0.5);
		rc = m ? add_value(side_of(m, cand), r, fb_json_num(r, "value", NAN)) : -ENOMEM;
	}
	free(h);
	return rc;
}

/* ---- are the two systems alike? -------------------------------------------------------------- */

static bool differs(struct cmp *c, const char *what, const json_t *a, const json_t *b)
{
	char x[100] = "absent", y[100] = "absent";
	if (json_equal(a, b) || (!a && !b))
		return false;
	char *s = a ? json_dumps(a, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	char *t = b ? json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	if (s)
		snprintf(x, sizeof(x), "%.90s", s);
	if (t)
		snprintf(y, sizeof(y), "%.90s", t);
	free(s);
	free(t);
	snprintf(c->differs, sizeof(c->differs), "%s: %s against %s", what, x, y);
	return true;
}

static bool devices_differ(struct cmp *c, const json_t *a, const json_t *b, const char *list)
{
	/* What makes another machine of it; names, addresses and states may change. */
	static const char *const keys[] = {"fw", "firmware", "driver", "link_layer", "rate",
		"active_mtu", "mtu", "vendor_id", "model"};
	const json_t *x = json_object_get(a, list), *y = json_object_get(b, list);
	size_t n = json_array_size(x);
	char what[80];
	if (n != json_array_size(y)) {
		snprintf(c->differs, sizeof(c->differs), "%s: %zu devices against %zu", list, n,
			json_array_size(y));
		return true;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			snprintf(what, sizeof(what), "%s[%zu].%s", list, i, keys[k]);
			if (differs(c, what, json_object_get(json_array_get(x, i), keys[k]),
				    json_object_get(json_array_get(y, i), keys[k])))
				return true;
		}
	}
	return false;
}

static void compare_systems(struct cmp *c)
{
	static const char *const cpu_keys[] = {"model", "packages", "cores", "threads", "smt"};
	const json_t *x = json_object_get(json_object_get(c->base, "system"), "hosts");
	const json_t *y = json_object_get(json_object_get(c->cand, "system"), "hosts");
	size_t n = json_array_size(x);
	if (n != json_array_size(y)) {
		snprintf(c->differs, sizeof(c->differs), "hosts: %zu against %zu", n,
			json_array_size(y));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *a = json_array_get(x, i), *b = json_array_get(y, i);
		for (size_t k = 0; k < sizeof(cpu_keys) / sizeof(cpu_keys[0]); k++) {
			char what[40];
			snprintf(what, sizeof(what), "cpu.%s", cpu_keys[k]);
			if (differs(c, what,
				    json_object_get(json_object_get(a, "cpu"), cpu_keys[k]),
				    json_object_get(json_object_get(b, "cpu"), cpu_keys[k])))
				return;
		}
		if (devices_differ(c, a, b, "rdma") || devices_differ(c, a, b, "nics") ||
			devices_differ(c, a, b, "gpus"))
			return;
	}
}

static bool wrong_data(const json_t *doc)
{
	const json_t *e;
	size_t i;
	json_array_foreach (json_object_get(doc, "errors"), i, e)
		if (fb_json_int(e, "exit", 0) == FB_EXIT_WRONG_DATA)
			return true;
	return fb_json_int(json_object_get(doc, "run"), "exit", 0) == FB_EXIT_WRONG_DATA;
}

/* What only the candidate has is new, and nothing to compare with. */
static void drop_added(struct cmp *c)
{
	size_t k = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct cmp_metric *m = &c->v[i];
		if (m->base.params) {
			c->v[k++] = *m;
			continue;
		}
		c->added++;
		free(m->cand.v);
		free(m->cand.launch);
	}
	c->n = k;
}

int cmp_load(struct cmp *c, const char *base, const char *cand, struct fb_err *e)
{
	memset(c, 0, sizeof(*c));
	c->base = load(base, e);
	if (!c->base)
		return e->code;
	c->cand = load(cand, e);
	int rc = c->cand ? add_document(c, c->base, false, e) : e->code;
	if (rc == 0)
		rc = add_document(c, c->cand, true, e);
	if (rc != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "out of memory while comparing");
		cmp_free(c);
		return rc;
	}
	drop_added(c);
	compare_systems(c);
	c->wrong_data = wrong_data(c->cand);
	return 0;
}

void cmp_free(struct cmp *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].base.v);
		free(c->v[i].base.launch);
		free(c->v[i].cand.v);
		free(c->v[i].cand.launch);
	}
	free(c->v);
	json_decref(c->base);
	json_decref(c->cand);
	memset(c, 0, sizeof(*c));
}
