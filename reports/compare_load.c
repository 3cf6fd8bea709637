// SPDX-License-Identifier: Apache-2.0
/*
 * Two documents into metrics: results with the same case and metric belong together, and each
 * launch gives one value. Percentiles come from a launch's own histogram, and only where its
 * samples support them.
 */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "reports/alike.h"
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

/* A name that does not fit ends with a hash of the whole (FNV-1a): it still meets its like, and
 * nobody else's. */
static void fit(char *buf, size_t len, const char *s)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	size_t n = strlen(s);
	if (n < len) {
		memcpy(buf, s, n + 1);
		return;
	}
	for (const char *c = s; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
	snprintf(buf, len, "%.*s~%016llx", (int)(len - 18), s, (unsigned long long)hash);
}

/* The same of a text that may come from anybody: no byte of it steers the terminal it is shown on.
 */
static void fit_safe(char *buf, size_t len, const char *s)
{
	char raw[160], safe[4 * sizeof(raw)];
	fit(raw, sizeof(raw), s);
	fit(buf, len, fb_safe_text(raw, safe, sizeof(safe)));
}

/* Both names are cut and free of control characters: the line's end parts them. */
struct key {
	char s[sizeof(((struct cmp_metric *)0)->name) + sizeof(((struct cmp_metric *)0)->metric)];
};

static struct key key_of(const char *name, const char *metric)
{
	struct key k;
	snprintf(k.s, sizeof(k.s), "%s\n%s", name, metric);
	return k;
}

static struct cmp_metric *find(const struct cmp *c, const char *name, const char *metric)
{
	json_int_t at = json_integer_value(json_object_get(c->index, key_of(name, metric).s));
	return at > 0 ? &c->v[at - 1] : NULL;
}

static struct cmp_metric *metric_for(struct cmp *c, const json_t *r, const char *what, double q)
{
	char name[sizeof(c->v->name)], metric[sizeof(c->v->metric)];
	fit_safe(name, sizeof(name), fb_json_str(r, "case", "?"));
	fit_safe(metric, sizeof(metric), what);
	struct cmp_metric *m = find(c, name, metric);
	if (m)
		return m;
	if (!c->v || (c->n & (c->n - 1)) == 0) {
		struct cmp_metric *v = reallocarray(c->v, c->n ? 2 * c->n : 1, sizeof(*v));
		if (!v)
			return NULL;
		c->v = v;
	}
	m = &c->v[c->n];
	memset(m, 0, sizeof(*m));
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->metric, sizeof(m->metric), "%s", metric);
	fb_safe_text(fb_json_str(r, "unit", ""), m->unit, sizeof(m->unit));
	m->lower = strcmp(fb_json_str(r, "better", "higher"), "lower") == 0;
	m->time = strcmp(m->unit, "ns") == 0;
	m->q = q;
	m->size = (uint64_t)fb_json_int(json_object_get(r, "params"), "size", 0);
	/* A name may be cut within a character, which a checked key must not be. */
	if (json_object_set_new_nocheck(
		    c->index, key_of(name, metric).s, json_integer((json_int_t)c->n + 1)) != 0)
		return NULL;
	m->id = c->met++;
	c->n++;
	return m;
}

/* "the launch": those of several documents of one side are told apart. */
static void launch_name(const struct cmp *c, const json_t *r, char *buf, size_t len)
{
	snprintf(buf, len, "%zu/%.40s#%lld", c->n_docs, fb_json_str(r, "job", ""),
		(long long)fb_json_int(r, "launch", 0));
}

/* A second value of the same launch is no second launch. */
static int is_second(
	struct cmp *c, const struct cmp_metric *m, bool cand, const char *launch, bool *second)
{
	char key[120];
	snprintf(key, sizeof(key), "%zu %d %s", m->id, cand, launch);
	*second = json_object_get(c->seen, key) != NULL;
	return *second || json_object_set_new_nocheck(c->seen, key, json_true()) == 0 ? 0 : -ENOMEM;
}

struct unlike {
	const char *launch;
	char *text;
	size_t len;
};

static bool note_unlike(void *arg, const struct alike_fact *f)
{
	const struct unlike *u = arg;
	char words[240];
	snprintf(u->text, u->len, "launch %s is unlike the side's first: %s", u->launch,
		alike_words(f, words, sizeof(words)));
	return true;
}

static int add_value(struct cmp *c, struct cmp_metric *m, bool cand, const json_t *r, double value)
{
	char launch[80];
	bool second;
	struct cmp_side *s = cand ? &m->cand : &m->base;
	const json_t *validity = json_object_get(r, "validity");
	launch_name(c, r, launch, sizeof(launch));
	if (strcmp(fb_json_str(validity, "state", "valid"), "invalid") == 0 && !s->invalid) {
		const char *why =
			json_string_value(json_array_get(json_object_get(validity, "reasons"), 0));
		s->invalid = true;
		snprintf(s->why, sizeof(s->why), "launch %s: %s", launch,
			why ? why : "no reason given");
	}
	if (!s->first)
		s->first = r;
	if (!isfinite(value))
		return 0;
	int rc = is_second(c, m, cand, launch, &second);
	if (rc != 0 || second)
		return rc;
	/* Values of another message size or transport would be taken for noise. */
	if (s->first != r && !s->mixed[0]) {
		struct unlike u = {launch, s->mixed, sizeof(s->mixed)};
		alike_launches(s->first, r, note_unlike, &u);
	}
	if ((s->n & (s->n - 1)) == 0) {
		double *v = reallocarray(s->v, s->n ? 2 * s->n : 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->v = v;
	}
	s->v[s->n++] = value;
	return 0;
}

static int add_times(struct cmp *c, const json_t *r, bool cand, struct fb_hist *h, struct fb_err *e)
{
	int rc = fb_hist_from_json(h, json_object_get(r, "hist"), e);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]) && rc == 0; i++) {
		char name[56];
		double ns;
		if (fb_hist_interpolated(h, percentiles[i].q, &ns) != 0)
			continue;
		snprintf(name, sizeof(name), "%.40s %s", fb_json_str(r, "metric", "?"),
			percentiles[i].name);
		struct cmp_metric *m = metric_for(c, r, name, percentiles[i].q);
		rc = m ? add_value(c, m, cand, r, ns) : -ENOMEM;
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
		rc = m ? add_value(c, m, cand, r, fb_json_num(r, "value", NAN)) : -ENOMEM;
	}
	free(h);
	return rc;
}

/* ---- are the two systems alike? -------------------------------------------------------------- */

#define MAX_TOLD 3 /* facts that differ, of those that are told; the others are counted */

struct asked {
	struct cmp *c;
	const struct cmp_rules *r;
	size_t n; /* facts that differ */
};

static bool allowed(const struct asked *k, const char *what)
{
	/* As it stands first: to a pattern, the brackets of "rdma[0].fw" are a choice of letters.
	 */
	for (size_t i = 0; i < k->r->nallow; i++)
		if (strcmp(k->r->allow[i], what) == 0 || fnmatch(k->r->allow[i], what, 0) == 0)
			return true;
	return false;
}

/* A fact that differs stands behind those before it: "kernel.release: "6.1" against "6.2"". */
static bool note_fact(void *arg, const struct alike_fact *f)
{
	struct asked *k = arg;
	char words[240];
	if (!f->judged || allowed(k, f->name) || k->n++ >= MAX_TOLD)
		return false;
	size_t used = strlen(k->c->differs);
	snprintf(k->c->differs + used, sizeof(k->c->differs) - used, "%s%s", used ? "; " : "",
		alike_words(f, words, sizeof(words)));
	return false;
}

/* A side may be of several documents, made at several times: the first that differs is told. */
static void compare_systems(struct cmp *c, const struct cmp_rules *r)
{
	struct asked k = {c, r, 0};
	c->differs[0] = '\0';
	for (size_t i = 0; i < c->n_docs && k.n == 0; i++) {
		const json_t *const docs[] = {c->base, c->docs[i].json};
		if (docs[1] != c->base)
			alike_systems(docs, 2, note_fact, &k);
	}
	size_t used = strlen(c->differs);
	if (k.n > MAX_TOLD)
		snprintf(c->differs + used, sizeof(c->differs) - used, "; and %zu more facts",
			k.n - MAX_TOLD);
}

/* Environment and build may be what two sides are compared for; of one side's launches they are the
 * same. Options are not asked: those that count are parameters of the results, too. */
static bool note_setting(void *arg, const struct alike_fact *f)
{
	const struct asked *k = arg;
	char words[240];
	if ((strncmp(f->name, "env.", 4) != 0 && strncmp(f->name, "tool.", 5) != 0) ||
		allowed(k, f->name))
		return false;
	snprintf(k->c->mixed, sizeof(k->c->mixed), "%s", alike_words(f, words, sizeof(words)));
	return true;
}

static void compare_settings(struct cmp *c, const struct cmp_rules *r)
{
	struct asked k = {c, r, 0};
	size_t of_side[2] = {0, 0};
	c->mixed[0] = '\0';
	for (size_t i = 0; i < c->n_docs && !c->mixed[0]; i++) {
		bool cand = c->docs[i].cand;
		const json_t *const docs[] = {cand ? c->cand : c->base, c->docs[i].json};
		of_side[cand]++;
		if (docs[0] == docs[1])
			continue;
		alike_settings(docs, 2, note_setting, &k);
		if (!c->mixed[0])
			continue;
		char fact[240];
		snprintf(fact, sizeof(fact), "%.239s", c->mixed);
		snprintf(c->mixed, sizeof(c->mixed),
			"%s, document %zu (launch %lld) is unlike the side's first: %s",
			cand ? "candidate" : "base", of_side[cand],
			(long long)fb_json_int(
				json_array_get(json_object_get(docs[1], "results"), 0), "launch",
				0),
			fact);
	}
}

bool cmp_wrong_data(const json_t *doc)
{
	const json_t *e;
	size_t i;
	json_array_foreach (json_object_get(doc, "errors"), i, e)
		if (fb_json_int(e, "exit", 0) == FB_EXIT_WRONG_DATA)
			return true;
	return fb_json_int(json_object_get(doc, "run"), "exit", 0) == FB_EXIT_WRONG_DATA;
}

/* A percentile that the candidate's samples do not support is not told, but its result is there:
 * "latency p50" of the same result is. */
static void find_results(struct cmp *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct cmp_metric *m = &c->v[i];
		const char *blank = strrchr(m->metric, ' ');
		for (size_t k = 0; k < sizeof(percentiles) / sizeof(percentiles[0]); k++) {
			char metric[sizeof(m->metric) + 8];
			if (m->cand.first || !m->time || !blank)
				break;
			snprintf(metric, sizeof(metric), "%.*s %s", (int)(blank - m->metric),
				m->metric, percentiles[k].name);
			const struct cmp_metric *other = find(c, m->name, metric);
			m->cand.first = other ? other->cand.first : NULL;
		}
	}
}

/* What only the candidate has is new, and nothing to compare with. */
static void drop_added(struct cmp *c)
{
	size_t k = 0;
	c->added = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct cmp_metric *m = &c->v[i];
		struct key key = key_of(m->name, m->metric);
		if (m->base.first) {
			json_integer_set(json_object_get(c->index, key.s), (json_int_t)k + 1);
			c->v[k++] = *m;
			continue;
		}
		c->added++;
		json_object_del(c->index, key.s);
		free(m->cand.v);
	}
	c->n = k;
}

/* Wall time of one launch: the mean over the plan's parts, or the whole run's share. */
static double launch_seconds(const json_t *doc)
{
	const json_t *part, *parts = json_object_get(json_object_get(doc, "plan"), "parts");
	int64_t launches = 0;
	double sum = 0;
	size_t i;
	json_array_foreach (parts, i, part) {
		int64_t l = fb_json_int(part, "launch", 0);
		double s = fb_json_num(part, "seconds", NAN);
		if (isfinite(s))
			sum += s;
		launches = l > launches ? l : launches;
	}
	return launches > 0 && sum > 0 ? sum / (double)launches : NAN;
}

int cmp_add_doc(struct cmp *c, json_t *doc, bool cand, struct fb_err *e)
{
	struct cmp_doc *docs = reallocarray(c->docs, c->n_docs + 1, sizeof(*docs));
	if (!docs) {
		json_decref(doc);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory while comparing");
	}
	c->docs = docs;
	docs[c->n_docs++] = (struct cmp_doc){doc, cand};
	const json_t **first = cand ? &c->cand : &c->base;
	if (!*first)
		*first = doc;
	if (!c->index)
		c->index = json_object();
	if (!c->seen)
		c->seen = json_object();
	int rc = add_document(c, doc, cand, e);
	if (rc == -ENOMEM)
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory while comparing");
	bool *wrong = cand ? &c->wrong_data : &c->wrong_base;
	*wrong = *wrong || cmp_wrong_data(doc);
	return rc;
}

int cmp_add(struct cmp *c, const char *path, bool cand, struct fb_err *e)
{
	json_t *doc = load(path, e);
	return doc ? cmp_add_doc(c, doc, cand, e) : e->code;
}

void cmp_close_load(struct cmp *c, const struct cmp_rules *r)
{
	find_results(c);
	drop_added(c);
	compare_systems(c, r);
	compare_settings(c, r);
	c->seconds = launch_seconds(c->cand);
	if (!isfinite(c->seconds))
		c->seconds = launch_seconds(c->base);
}

void cmp_free(struct cmp *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].base.v);
		free(c->v[i].cand.v);
	}
	free(c->v);
	for (size_t i = 0; i < c->n_docs; i++)
		json_decref(c->docs[i].json);
	free(c->docs);
	json_decref(c->index);
	json_decref(c->seen);
	memset(c, 0, sizeof(*c));
}
