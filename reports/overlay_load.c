// SPDX-License-Identifier: Apache-2.0
/*
 * From documents to an overlay: names for the runs, their metrics met by case and metric, the facts
 * that differ, and all results in one document whose charts have a curve per run.
 */
#include "reports/overlay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "reports/rank.h"

#define MAX_FACTS  400 /* a document that means harm has as many as it likes */
#define MAX_VALUES 4   /* of one fact in one run */
#define LEVEL      0.95

/* ---- names ----------------------------------------------------------------------------------- */

/* At most `len - 1` bytes without half a character; bytes that are no UTF-8 are mended. */
static void fit_label(char *to, size_t len, const char *from, size_t n)
{
	char raw[512];
	json_t *o = json_object();
	snprintf(raw, sizeof(raw), "%.*s", (int)(n < sizeof(raw) ? n : sizeof(raw) - 1), from);
	fb_json_set_str(o, "label", raw);
	const char *s = fb_json_str(o, "label", "?");
	size_t k = strlen(s);
	if (k >= len)
		for (k = len - 1; k > 0 && ((unsigned char)s[k] & 0xc0) == 0x80;)
			k--;
	snprintf(to, len, "%.*s", (int)k, s);
	for (char *c = to; *c; c++)
		if ((unsigned char)*c < 32 || *c == 127)
			*c = ' ';
	json_decref(o);
}

/* The last `parts` parts of a path, ".json" and a trailing "run.json" taken off. */
static void label_of_path(const char *path, size_t parts, char *to, size_t len)
{
	char *real = realpath(path, NULL);
	const char *s = real ? real : path;
	size_t n = strlen(s);
	if (n > strlen("/run.json") && strcmp(s + n - strlen("/run.json"), "/run.json") == 0)
		n -= strlen("/run.json");
	else if (n > strlen(".json") && strcmp(s + n - strlen(".json"), ".json") == 0)
		n -= strlen(".json");
	size_t from = n;
	for (; from > 0 && parts > 0; from--)
		if (s[from - 1] == '/' && --parts == 0)
			break;
	fit_label(to, len, s + from, n - from);
	if (!to[0])
		snprintf(to, len, "/");
	free(real);
}

static bool taken(const struct overlay *o, size_t run)
{
	for (size_t i = 0; i < run; i++)
		if (strcmp(o->run[i].label, o->run[run].label) == 0)
			return true;
	return false;
}

static bool all_unlike(const struct overlay *o, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (taken(o, i))
			return false;
	return true;
}

/* Folders of one name are told apart by those above them; one folder twice by a number. */
static void name_runs(
	struct overlay *o, const char *const *path, const char *const *label, size_t n)
{
	for (size_t parts = 1; parts <= (label ? 1 : 3); parts++) {
		for (size_t i = 0; i < n; i++)
			if (label)
				fit_label(
					o->run[i].label, OVERLAY_LABEL, label[i], strlen(label[i]));
			else
				label_of_path(path[i], parts, o->run[i].label, OVERLAY_LABEL);
		if (all_unlike(o, n))
			return;
	}
	for (size_t i = 0; i < n; i++) {
		char stem[OVERLAY_LABEL];
		if (!label)
			label_of_path(path[i], 1, o->run[i].label, OVERLAY_LABEL);
		fit_label(stem, OVERLAY_LABEL - 5, o->run[i].label, strlen(o->run[i].label));
		for (unsigned k = 2; taken(o, i); k++)
			snprintf(o->run[i].label, OVERLAY_LABEL, "%.*s (%u)", OVERLAY_LABEL - 6,
				stem, k);
	}
}

/* ---- plans ----------------------------------------------------------------------------------- */

static int add_plan_key(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value)
{
	json_t *plan = arg, *of = json_object_get(plan, section);
	(void)ini;
	if (!alike_is_setting(key))
		return 0;
	if (!of) {
		of = json_object();
		json_object_set_new(plan, section, of);
	}
	fb_json_set_str(of, key, value);
	return 0;
}

/* The plan of a run directory: its document holds what came of the jobs, and not their options. */
static json_t *load_plan(const char *path)
{
	char ini[4096];
	struct stat st;
	struct fb_err e = {0};
	const char *slash = strrchr(path, '/');
	bool dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	int n = dir ? (int)strlen(path) : slash ? (int)(slash - path) : 1;
	if (!dir && strcmp(slash ? slash + 1 : path, "run.json") != 0)
		return NULL;
	if (snprintf(ini, sizeof(ini), "%.*s/plan.ini", n, dir || slash ? path : ".") >=
		(int)sizeof(ini))
		return NULL;
	json_t *plan = json_object();
	if (fb_ini_load(ini, add_plan_key, plan, &e) == 0)
		return plan;
	json_decref(plan);
	return NULL;
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct collector {
	struct overlay *o;
	json_t *index; /* name and host to place in o->fact, plus one */
	bool metrics;  /* they are of results: values are gathered */
	bool failed;
};

static struct overlay_fact *fact_for(struct collector *c, const struct alike_fact *f)
{
	char key[160];
	snprintf(key, sizeof(key), "%ld %s", f->host, f->name);
	json_int_t at = json_integer_value(json_object_get(c->index, key));
	if (at > 0)
		return &c->o->fact[at - 1];
	if (c->o->n_facts == MAX_FACTS) {
		c->o->facts_left++;
		return NULL;
	}
	struct overlay_fact *v = reallocarray(c->o->fact, c->o->n_facts + 1, sizeof(*v));
	if (!v) {
		c->failed = true;
		return NULL;
	}
	c->o->fact = v;
	v = &v[c->o->n_facts++];
	*v = (struct overlay_fact){.host = f->host, .judged = f->judged};
	snprintf(v->name, sizeof(v->name), "%s", f->name);
	json_object_set_new_nocheck(c->index, key, json_integer((json_int_t)c->o->n_facts));
	return v;
}

/* Beside those already met; of too many an ellipsis ends them. */
static void gather(json_t **values, const json_t *v)
{
	if (!*values)
		*values = json_array();
	const json_t *x;
	size_t i;
	json_t *one = v ? json_incref((json_t *)v) : json_string("absent");
	json_array_foreach (*values, i, x)
		if (fb_json_same(x, one)) {
			json_decref(one);
			return;
		}
	if (i >= MAX_VALUES) {
		json_decref(one);
		one = i == MAX_VALUES ? json_string("...") : NULL;
	}
	if (one)
		json_array_append_new(*values, one);
}

/* The hosts of a cluster mostly differ from another's in one way: one row for all of them. */
static bool met_in_another_host(struct collector *c, const struct alike_fact *f)
{
	for (size_t i = 0; i < c->o->n_facts && f->host >= 0; i++) {
		struct overlay_fact *x = &c->o->fact[i];
		size_t k = 0;
		if (x->host < 0 || strcmp(x->name, f->name) != 0)
			continue;
		while (k < c->o->n && x->has[k] == f->has[k] &&
			(!f->has[k] || fb_json_same(x->v[k], f->v[k])))
			k++;
		x->hosts += k == c->o->n;
		if (k == c->o->n)
			return true;
	}
	return false;
}

static bool note(void *arg, const struct alike_fact *f)
{
	struct collector *c = arg;
	if (met_in_another_host(c, f))
		return false;
	struct overlay_fact *to = fact_for(c, f);
	if (!to)
		return c->failed;
	to->hosts = f->host >= 0;
	to->metrics += c->metrics;
	for (size_t i = 0; i < c->o->n; i++) {
		to->has[i] = to->has[i] || f->has[i];
		if (f->has[i] && c->metrics)
			gather(&to->v[i], f->v[i]);
		else if (f->has[i] && f->v[i] && !to->v[i])
			to->v[i] = json_incref((json_t *)f->v[i]);
	}
	return false;
}

/* Jobs that at least two plans have, key by key. */
static void note_plans(struct collector *c)
{
	json_t *seen = json_object(), *keys;
	const char *section;
	for (size_t i = 0; i < c->o->n; i++) {
		json_object_foreach (c->o->run[i].plan, section, keys) {
			const json_t *v[ALIKE_MAX] = {NULL};
			char of[80];
			if (json_object_get(seen, section))
				continue;
			json_object_set_new(seen, section, json_true());
			for (size_t k = 0; k < c->o->n; k++)
				v[k] = json_object_get(c->o->run[k].plan, section);
			snprintf(of, sizeof(of), "plan.%s", section);
			alike_objects(of, v, c->o->n, note, c);
		}
	}
	json_decref(seen);
}

/* Runs that share no metric still tell what kind of place they are from. */
static void note_places(struct collector *c)
{
	json_t *places[ALIKE_MAX] = {NULL};
	const json_t *v[ALIKE_MAX] = {NULL}, *r;
	size_t k;
	for (size_t i = 0; i < c->o->n; i++) {
		json_t *of = places[i] = json_object();
		json_array_foreach (json_object_get(c->o->run[i].doc, "results"), k, r)
			if (!json_object_get(of, "where"))
				fb_json_set_str(of, "where", fb_json_str(r, "where", "?"));
		v[i] = json_object_size(of) ? of : NULL;
	}
	alike_results(v, c->o->n, note, c);
	for (size_t i = 0; i < c->o->n; i++)
		json_decref(places[i]);
}

static int by_weight(const void *a, const void *b)
{
	const struct overlay_fact *x = *(const struct overlay_fact *const *)a,
				  *y = *(const struct overlay_fact *const *)b;
	if (x->judged != y->judged)
		return x->judged ? -1 : 1;
	return (x > y) - (x < y);
}

static int sort_facts(struct overlay *o)
{
	struct overlay_fact **order = calloc(o->n_facts + 1, sizeof(struct overlay_fact *));
	struct overlay_fact *sorted = calloc(o->n_facts + 1, sizeof(*sorted));
	for (size_t i = 0; order && sorted && i < o->n_facts; i++)
		order[i] = &o->fact[i];
	if (order && sorted)
		qsort(order, o->n_facts, sizeof(struct overlay_fact *), by_weight);
	for (size_t i = 0; order && sorted && i < o->n_facts; i++) {
		sorted[i] = *order[i];
		o->judged += sorted[i].judged;
	}
	bool ok = order && sorted;
	free(order);
	if (!ok) {
		free(sorted);
		return -ENOMEM;
	}
	free(o->fact);
	o->fact = sorted;
	return 0;
}

static int find_facts(struct overlay *o)
{
	struct collector c = {.o = o, .index = json_object()};
	const json_t *docs[ALIKE_MAX] = {NULL};
	for (size_t i = 0; i < o->n; i++)
		docs[i] = o->run[i].doc;
	alike_systems(docs, o->n, note, &c);
	c.metrics = true;
	for (size_t i = 0; i < o->n_rows; i++) {
		const json_t *results[ALIKE_MAX] = {NULL};
		for (size_t k = 0; k < o->n; k++)
			results[k] = o->row[i].side[k] ? o->row[i].side[k]->first : NULL;
		if (o->row[i].runs > 1)
			alike_results(results, o->n, note, &c);
	}
	c.metrics = false;
	if (o->shared == 0)
		note_places(&c);
	alike_settings(docs, o->n, note, &c);
	note_plans(&c);
	json_decref(c.index);
	return c.failed ? -ENOMEM : sort_facts(o);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int add_row(
	struct overlay *o, json_t *index, const struct cmp_metric *m, size_t run, size_t *room)
{
	char key[240];
	snprintf(key, sizeof(key), "%s\n%s\n%s", m->name, m->metric, m->unit);
	json_int_t at = json_integer_value(json_object_get(index, key));
	if (at == 0 && o->n_rows == *room) {
		size_t more = *room ? 2 * *room : 64;
		struct overlay_row *v = reallocarray(o->row, more, sizeof(*v));
		if (!v)
			return -ENOMEM;
		o->row = v;
		*room = more;
	}
	if (at == 0) {
		o->row[o->n_rows] = (struct overlay_row){.m = m};
		at = (json_int_t)++o->n_rows;
		if (json_object_set_new_nocheck(index, key, json_integer(at)) != 0)
			return -ENOMEM;
	}
	o->row[at - 1].side[run] = &m->base;
	o->row[at - 1].runs++;
	return 0;
}

static int make_rows(struct overlay *o)
{
	json_t *index = json_object();
	size_t room = 0;
	int rc = 0;
	for (size_t r = 0; r < o->n; r++)
		for (size_t i = 0; i < o->run[r].own.n && rc == 0; i++) {
			const struct cmp_metric *m = &o->run[r].own.v[i];
			rc = add_row(o, index, m, r, &room);
			if (m->base.n > o->run[r].launches)
				o->run[r].launches = m->base.n;
		}
	json_decref(index);
	for (size_t i = 0; i < o->n_rows && rc == 0; i++) {
		struct overlay_row *row = &o->row[i];
		o->shared += row->runs > 1;
		for (size_t k = 0; k < o->n; k++) {
			const struct cmp_side *a = row->side[0], *b = row->side[k];
			row->ratio[k] = (struct fb_ci){.est = NAN, .lo = NAN, .hi = NAN};
			if (k > 0 && a && b && a->n > 0 && b->n > 0)
				row->ratio[k] = rep_hl_ratio(a->v, a->n, b->v, b->n, LEVEL);
		}
	}
	return rc;
}

/* ---- one document ---------------------------------------------------------------------------- */

static int join(struct overlay *o)
{
	json_t *results = json_array(), *r;
	size_t i;
	o->joined = json_object();
	for (size_t run = 0; run < o->n; run++) {
		json_array_foreach (json_object_get(o->run[run].doc, "results"), i, r) {
			json_t *copy = json_copy(r), *params = json_object();
			fb_json_set_str(params, REP_RUN, o->run[run].label);
			if (json_is_object(json_object_get(r, "params")))
				json_object_update_missing(params, json_object_get(r, "params"));
			json_object_set_new(copy, "params", params);
			fb_json_set_int(copy, REP_RUN, (int64_t)run);
			if (json_array_append_new(results, copy) != 0) {
				json_decref(results);
				return -ENOMEM;
			}
		}
	}
	return json_object_set_new(o->joined, "results", results) == 0 ? 0 : -ENOMEM;
}

int overlay_load(struct overlay *o, const char *const *path, const char *const *label, size_t n,
	struct fb_err *e)
{
	memset(o, 0, sizeof(*o));
	name_runs(o, path, label, n);
	for (size_t i = 0; i < n; i++) {
		int rc = cmp_add(&o->run[i].own, path[i], false, e);
		o->n = i + 1;
		if (rc != 0)
			return rc;
		o->run[i].doc = o->run[i].own.base;
		o->run[i].plan = load_plan(path[i]);
	}
	if (make_rows(o) != 0 || find_facts(o) != 0 || join(o) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory to lay %zu runs over each other", n);
	return 0;
}

void overlay_free(struct overlay *o)
{
	for (size_t i = 0; i < o->n_facts; i++)
		for (size_t k = 0; k < ALIKE_MAX; k++)
			json_decref(o->fact[i].v[k]);
	free(o->fact);
	free(o->row);
	json_decref(o->joined);
	for (size_t i = 0; i < o->n; i++) {
		cmp_free(&o->run[i].own);
		json_decref(o->run[i].plan);
	}
	memset(o, 0, sizeof(*o));
}
