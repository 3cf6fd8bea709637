// SPDX-License-Identifier: Apache-2.0
/*
 * See metric_groups.h. Sorted by key rather than searched, so that ten thousand results of a
 * stranger's document cost no quadratic time.
 */
#include "reports/metric_groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "reports/report_priv.h"

struct entry {
	const json_t *r;
	size_t seq;
};

static int compare_keys(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"job", "case", "metric", "unit", "where", "load"};
	int d = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && d == 0; i++)
		d = strcmp(fb_json_str(a, keys[i], ""), fb_json_str(b, keys[i], ""));
	if (d == 0)
		d = strcmp(fb_json_str(json_object_get(a, "params"), "device", ""),
			fb_json_str(json_object_get(b, "params"), "device", ""));
	return d ? d : (int)rep_is_loopback(a) - (int)rep_is_loopback(b);
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int d = compare_keys(x->r, y->r);
	return d ? d : (x->seq > y->seq) - (x->seq < y->seq);
}

/* A group stands where its first result stood: r[0] is the least of its group already. */
struct ordered {
	struct rep_group g;
	size_t seq;
};

static int by_seq(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

int rep_groups_make(const json_t *doc, struct rep_groups *g, struct fb_err *e)
{
	const json_t *results = json_object_get(doc, "results");
	size_t n = json_array_size(results), made = 0;
	struct entry *sorted = calloc(n + 1, sizeof(*sorted));
	struct ordered *groups = calloc(n + 1, sizeof(*groups));
	memset(g, 0, sizeof(*g));
	g->all = calloc(n + 1, sizeof(*g->all));
	g->v = calloc(n + 1, sizeof(*g->v));
	int rc = 0;
	if (!sorted || !groups || !g->all || !g->v) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %zu results", n);
		rep_groups_free(g);
		goto free_sorted;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct entry){json_array_get(results, i), i};
	qsort(sorted, n, sizeof(*sorted), by_key);
	for (size_t i = 0; i < n; i++) {
		g->all[i] = sorted[i].r;
		if (i > 0 && compare_keys(sorted[i - 1].r, sorted[i].r) == 0)
			groups[made - 1].g.n++;
		else
			groups[made++] = (struct ordered){{&g->all[i], 1}, sorted[i].seq};
	}
	qsort(groups, made, sizeof(*groups), by_seq);
	for (size_t i = 0; i < made; i++)
		g->v[g->n++] = groups[i].g;
free_sorted:
	free(groups);
	free(sorted);
	return rc;
}

void rep_groups_free(struct rep_groups *g)
{
	free(g->all);
	free(g->v);
	memset(g, 0, sizeof(*g));
}

void rep_group_summary(const struct rep_group *g, struct rep_summary *s)
{
	double *v = malloc(g->n * sizeof(*v));
	*s = (struct rep_summary){NAN, NAN, NAN, 0};
	for (size_t i = 0; v && i < g->n; i++) {
		const char *state =
			fb_json_str(json_object_get(g->r[i], "validity"), "state", "valid");
		double x = fb_json_num(g->r[i], "value", NAN);
		if (isfinite(x) && strcmp(state, "invalid") != 0)
			v[s->n++] = x;
	}
	if (v && s->n > 0) {
		fb_sort(v, s->n);
		s->median = fb_median_sorted(v, s->n);
		s->lo = v[0];
		s->hi = v[s->n - 1];
	}
	free(v);
}
