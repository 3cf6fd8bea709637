// SPDX-License-Identifier: Apache-2.0
/* The last accepted run of the same plan, and what differs; see first_screen.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/sysroot.h"
#include "reports/compare_priv.h"
#include "reports/first_screen.h"

/* Runs are large, and the last accepted one is mostly among the newest. */
#define MAX_LOOKED_AT 20

static bool is_predecessor(const json_t *doc, const json_t *old)
{
	const char *title = fb_json_str(json_object_get(doc, "plan"), "title", "");
	const char *began = fb_json_str(json_object_get(doc, "run"), "started", "");
	return strcmp(fb_json_str(json_object_get(old, "verdict"), "state", ""), "ACCEPTED") == 0 &&
	       strcmp(fb_json_str(json_object_get(old, "plan"), "title", ""), title) == 0 &&
	       strcmp(fb_json_str(json_object_get(old, "run"), "started", "~"), began) < 0;
}

/* New reference, or NULL. */
static json_t *predecessor(const char *dir, const json_t *doc, struct rep_since *s)
{
	struct fb_sysroot live = {0};
	char path[4400], **names = NULL, *above = realpath(dir, NULL);
	char *slash = above ? strrchr(above, '/') : NULL;
	if (!slash || slash == above) {
		free(above);
		return NULL;
	}
	const char *name = slash + 1;
	*slash = '\0';
	json_t *best = NULL;
	int count = fb_sysroot_list(&live, above, &names), looked = 0;
	for (int i = count - 1; i >= 0 && looked < MAX_LOOKED_AT; i--) {
		struct fb_err e = {0};
		if (strcmp(names[i], name) == 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s/run.json", above, names[i]) >=
				(int)sizeof(path) ||
			!fb_sysroot_exists(&live, "%s", path))
			continue;
		looked++;
		json_t *old = fb_doc_load(path, &e);
		const char *began = fb_json_str(json_object_get(old, "run"), "started", "");
		if (old && is_predecessor(doc, old) && strcmp(began, s->started) > 0) {
			json_decref(best);
			best = json_incref(old);
			snprintf(s->dir, sizeof(s->dir), "%.250s", names[i]);
			snprintf(s->started, sizeof(s->started), "%.39s", began);
		}
		json_decref(old);
	}
	if (count >= 0)
		fb_sysroot_names_free(names);
	free(above);
	return best;
}

struct moved {
	const struct cmp_metric *m;
	double far; /* |ln ratio| over the floor's */
};

static int by_far(const void *a, const void *b)
{
	double x = ((const struct moved *)a)->far, y = ((const struct moved *)b)->far;
	return (x < y) - (x > y);
}

static void list_moved(const struct cmp *c, struct rep_since *s)
{
	struct moved *v = calloc(c->n + 1, sizeof(*v));
	for (size_t i = 0; i < c->n && v; i++) {
		const struct cmp_metric *m = &c->v[i];
		double far = fabs(log(m->ratio.est));
		if (!isfinite(far))
			continue;
		s->n_compared++;
		if (far > log1p(m->floor))
			v[s->n_moved++] = (struct moved){m, far / log1p(m->floor)};
	}
	if (v)
		qsort(v, s->n_moved, sizeof(*v), by_far);
	for (size_t i = 0; i < s->n_moved && i < 3; i++) {
		double change = 100 * (v[i].m->ratio.est - 1);
		snprintf(s->moved[i], sizeof(s->moved[i]), "%.140s %.40s %+.1f %% (%s)",
			v[i].m->name, v[i].m->metric, change,
			(change > 0) == v[i].m->lower ? "worse" : "better");
	}
	free(v);
}

void rep_since_find(const char *dir, const json_t *doc, struct rep_since *s)
{
	static const struct cmp_rules rules = {
		.floor_pct = -1, .level = 0.95, .max_gated = 1, .any_system = true};
	struct fb_err e = {0};
	struct cmp c = {0};
	memset(s, 0, sizeof(*s));
	if (!dir || !json_object_get(doc, "plan"))
		return;
	json_t *old = predecessor(dir, doc, s);
	if (!old)
		return;
	int rc = cmp_add_doc(&c, old, false, &e);
	if (rc == 0)
		rc = cmp_add_doc(&c, json_deep_copy(doc), true, &e);
	if (rc == 0) {
		cmp_close_load(&c, &rules);
		snprintf(s->facts, sizeof(s->facts), "%.255s", c.differs);
		/* Estimates and floors; with so few launches there is no verdict, and none is
		 * shown. */
		cmp_estimate(&c, &rules);
		list_moved(&c, s);
	} else {
		s->dir[0] = '\0';
	}
	cmp_free(&c);
}
