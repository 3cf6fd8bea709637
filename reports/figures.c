// SPDX-License-Identifier: Apache-2.0
/*
 * From results to figures. Results of one benchmark and metric form a figure (times: one per
 * operation); inside it the series are told apart by whatever parameters differ, so a new benchmark
 * needs no code here. Launches of one point are joined: histograms are merged (never percentiles
 * averaged), rates keep one value per launch.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "bench/core/units.h"
#include "reports/report_priv.h"

#define TAIL_MIN_N 100 /* a tail shorter than its p90 is none */

/* Cut to fit, never inside a UTF-8 character. */
static void copy_text(char *to, size_t len, const char *from)
{
	size_t n = (size_t)snprintf(to, len, "%s", from);
	if (n < len)
		return;
	/* The last character may be incomplete: back to where it begins, and without it. */
	n = len - 1;
	while (n > 0 && ((unsigned char)to[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0 && (unsigned char)to[n - 1] >= 0xc0)
		n--;
	to[n] = '\0';
}

static const char *result_op(const json_t *result)
{
	return fb_json_str(json_object_get(result, "params"), "op", "");
}

/* Collectives share their figures whatever the case says after "coll". */
static void bench_of(const json_t *result, char *buf, size_t len)
{
	const char *c = fb_json_str(result, "case", "?");
	size_t n = strncmp(c, "coll", 4) == 0 ? strcspn(c, "/.") : strcspn(c, "/");
	snprintf(buf, len, "%.*s", (int)n, c);
}

/* algbw follows from busbw, and a figure of it would say the same twice. */
bool rep_drawable(const json_t *result)
{
	const char *metric = fb_json_str(result, "metric", "");
	const json_t *params = json_object_get(result, "params");
	/* Thousands of pairs are one picture of their own: pairs.c. */
	if (strncmp(fb_json_str(result, "case", ""), "verbs.pairs/", 12) == 0)
		return false;
	return strcmp(metric, "algbw") != 0 && json_is_integer(json_object_get(params, "size")) &&
	       (json_is_object(json_object_get(result, "hist")) ||
		       json_is_number(json_object_get(result, "value")));
}

static bool is_time(const json_t *result)
{
	return strcmp(fb_json_str(result, "unit", ""), "ns") == 0;
}

const char *rep_section_of(const json_t *result)
{
	const char *bench = fb_json_str(result, "case", "?");
	static const struct {
		const char *prefix, *section;
	} map[] = {{"verbs", "RDMA"}, {"coll", "Collectives"}, {"train", "Training"},
		{"mem", "Memory"}, {"perftest.", "RDMA"}, {"nccl-tests.", "Collectives"},
		{"osu.", "Collectives"}, {"torchtitan.", "Training"}, {"megatron.", "Training"}};
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (strncmp(bench, map[i].prefix, strlen(map[i].prefix)) == 0)
			return map[i].section;
	return "Other";
}

/* "message_rate" -> "message rate" */
static void spaced(const char *s, char *buf, size_t len)
{
	size_t i = 0;
	for (; s[i] && i + 1 < len; i++)
		buf[i] = s[i] == '_' || s[i] == '.' ? ' ' : s[i];
	buf[i] = '\0';
}

static void make_id(struct rep_figure *f)
{
	char raw[160];
	size_t k = 0;
	snprintf(raw, sizeof(raw), "%s-%s%s%s%s", f->bench, f->metric, f->op[0] ? "-" : "", f->op,
		f->kind == REP_TAIL ? "-tail" : "");
	for (size_t i = 0; raw[i] && k + 1 < sizeof(f->id); i++) {
		char c = raw[i];
		bool plain =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		f->id[k++] = plain ? c : '-';
	}
	f->id[k] = '\0';
}

static void make_title(struct rep_figure *f)
{
	char metric[40];
	bool rdma = strcmp(f->section, "RDMA") == 0;
	spaced(f->metric, metric, sizeof(metric));
	if (strcmp(f->metric, "busbw") == 0)
		snprintf(metric, sizeof(metric), "bus bandwidth");
	snprintf(f->title, sizeof(f->title), "%s%s %s%s%s against %s", f->section, rdma ? "" : ":",
		f->op, f->op[0] ? " " : "", metric, rdma ? "message size" : "size");
}

/* Two names may differ in what an id cannot hold. */
static void make_unique(struct rep_figures *all, struct rep_figure *f)
{
	size_t len = strlen(f->id), n = 1;
	for (size_t i = 0; i < all->n; i++) {
		if (&all->v[i] == f || strcmp(all->v[i].id, f->id) != 0)
			continue;
		if (len > sizeof(f->id) - 8)
			len = sizeof(f->id) - 8;
		snprintf(f->id + len, sizeof(f->id) - len, "-%zu", ++n);
		i = SIZE_MAX; /* from the beginning */
	}
}

static struct rep_figure *figure_for(struct rep_figures *all, const json_t *result)
{
	char bench[64], metric[sizeof(all->v->metric)], op[sizeof(all->v->op)];
	bench_of(result, bench, sizeof(bench));
	copy_text(metric, sizeof(metric), fb_json_str(result, "metric", "?"));
	copy_text(op, sizeof(op), is_time(result) || all->runs ? result_op(result) : "");
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].bench, bench) == 0 && strcmp(all->v[i].metric, metric) == 0 &&
			strcmp(all->v[i].op, op) == 0)
			return &all->v[i];
	struct rep_figure *v = realloc(all->v, (all->n + 1) * sizeof(*v));
	if (!v)
		return NULL;
	all->v = v;
	struct rep_figure *f = &v[all->n++];
	memset(f, 0, sizeof(*f));
	f->width = 640;
	f->height = 430;
	copy_text(f->bench, sizeof(f->bench), bench);
	copy_text(f->metric, sizeof(f->metric), metric);
	copy_text(f->op, sizeof(f->op), op);
	copy_text(f->unit, sizeof(f->unit), fb_json_str(result, "unit", ""));
	copy_text(f->section, sizeof(f->section), rep_section_of(result));
	copy_text(f->where, sizeof(f->where), fb_json_str(result, "where", "?"));
	copy_text(f->load, sizeof(f->load), fb_json_str(result, "load", ""));
	copy_text(f->sync, sizeof(f->sync), fb_json_str(result, "sync", ""));
	copy_text(f->definition, sizeof(f->definition), fb_json_str(result, "definition", ""));
	f->kind = is_time(result) && json_object_get(result, "hist") ? REP_BAND : REP_RATE;
	f->runs = all->runs;
	make_id(f);
	make_unique(all, f);
	make_title(f);
	return f;
}

static void value_text(const json_t *v, char *buf, size_t len)
{
	if (json_is_string(v))
		copy_text(buf, len, json_string_value(v));
	else if (json_is_integer(v))
		snprintf(buf, len, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(buf, len, "%g", json_real_value(v));
	else
		buf[0] = '\0';
}

/* Keys whose values everyone of the field knows without the key. */
static bool speaks_for_itself(const char *key)
{
	static const char *const keys[] = {"op", "transport", "completion", "wait", "dtype",
		"redop", "backend", "memory", "placement", "mode", REP_RUN};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

/* "qps 1", "send", "bidirectional": a flag that is off says nothing. */
static void factor_text(const char *key, const json_t *v, char *buf, size_t len)
{
	char text[120], name[40];
	spaced(key, name, sizeof(name));
	value_text(v, text, sizeof(text));
	if (json_is_boolean(v))
		copy_text(buf, len, json_is_true(v) ? name : "");
	else if (!text[0] || speaks_for_itself(key))
		copy_text(buf, len, text);
	else
		snprintf(buf, len, "%s %s", name, text);
}

static void join(char *buf, size_t len, const char *word)
{
	size_t n = strlen(buf);
	if (*word && n + strlen(word) + 3 < len)
		snprintf(buf + n, len - n, "%s%s", n ? ", " : "", word);
}

/* What follows from the size, or is it, makes no series. */
static bool is_factor(const char *key, const json_t *v)
{
	static const char *const sizes[] = {"size", "count", "requested_size"};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (strcmp(key, sizes[i]) == 0)
			return false;
	return !json_is_object(v) && !json_is_array(v);
}

/* Has b every factor of a, with the same value, `but` left aside? */
static bool within(const json_t *a, const json_t *b, const char *but)
{
	const char *key;
	json_t *v;
	json_object_foreach ((json_t *)a, key, v)
		if (strcmp(key, but) != 0 && is_factor(key, v) &&
			!fb_json_same(v, json_object_get(b, key)))
			return false;
	return true;
}

/*
 * Pairs of a figure's results that differ in one parameter only. If some of them are of one size,
 * the parameter makes a series. If all are of different sizes, it follows from the size (inline
 * data up to 220 bytes, say). If there are none, something else goes with it.
 */
enum effect { ALONE_NEVER, BY_SIZE, BY_ITSELF };

static enum effect effect_of(
	const json_t *results, size_t figure, const size_t *belongs, const char *key)
{
	enum effect found = ALONE_NEVER;
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *a = json_object_get(json_array_get(results, i), "params");
		for (size_t k = 0; k < i && belongs[i] == figure; k++) {
			const json_t *b = json_object_get(json_array_get(results, k), "params");
			if (belongs[k] != figure ||
				fb_json_same(json_object_get(a, key), json_object_get(b, key)) ||
				!within(a, b, key) || !within(b, a, key))
				continue;
			if (fb_json_same(json_object_get(a, "size"), json_object_get(b, "size")))
				return BY_ITSELF;
			found = BY_SIZE;
		}
	}
	return found;
}

/*
 * Which parameters differ among the results of a figure? Those name its series; the others hold for
 * all that have them, and stand below the figure. Words always tell series apart (operations may be
 * measured at different sizes); numbers and flags do unless they follow from the size; and what
 * only some results have (an all_gather knows no reduction) only if nothing else goes with it.
 */
static json_t *varying_params(
	const json_t *results, struct rep_figure *f, size_t figure, const size_t *belongs)
{
	json_t *first = json_object(), *varies = json_object(), *partial = json_object();
	json_t *params, *v;
	const json_t *r;
	const char *key;
	size_t i, n = 0;
	json_array_foreach (results, i, r) {
		if (belongs[i] != figure)
			continue;
		params = json_object_get(r, "params");
		json_object_foreach (params, key, v) {
			json_t *seen = json_object_get(first, key);
			if (!is_factor(key, v))
				continue;
			if (!seen)
				json_object_set(first, key, v);
			else if (!fb_json_same(seen, v))
				json_object_set_new(varies, key, json_true());
			if (!seen && n > 0)
				json_object_set_new(partial, key, json_true());
		}
		json_object_foreach (first, key, v)
			if (!json_object_get(params, key))
				json_object_set_new(partial, key, json_true());
		n++;
	}
	json_object_foreach (first, key, v) {
		char text[160];
		factor_text(key, v, text, sizeof(text));
		bool differs = json_object_get(varies, key) != NULL;
		bool settled = differs && json_is_string(v); /* words always do */
		enum effect e = !settled && (differs || json_object_get(partial, key))
					? effect_of(results, figure, belongs, key)
					: ALONE_NEVER;
		if (e == BY_ITSELF)
			json_object_set_new(varies, key, json_true());
		else if (e == BY_SIZE && differs && !json_is_string(v)) {
			json_object_del(varies, key);
			snprintf(text, sizeof(text), "%.60s by size", key);
		}
		if (!json_object_get(varies, key))
			join(f->factors, sizeof(f->factors), text);
	}
	json_decref(first);
	json_decref(partial);
	return varies;
}

static void series_label(const json_t *result, json_t *varies, char *buf, size_t len)
{
	const char *key;
	json_t *flag;
	const json_t *params = json_object_get(result, "params");
	buf[0] = '\0';
	join(buf, len, fb_json_str(params, REP_RUN, ""));
	json_object_foreach (varies, key, flag) {
		char text[160];
		const json_t *v = json_object_get(params, key);
		if (strcmp(key, REP_RUN) == 0)
			continue;
		factor_text(key, v, text, sizeof(text));
		join(buf, len, text);
	}
	if (!buf[0]) {
		const char *op = result_op(result);
		copy_text(buf, len, *op ? op : fb_json_str(result, "metric", "value"));
	}
}

static struct rep_series *series_for(struct rep_figure *f, const char *label)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->series[i].label, label) == 0)
			return &f->series[i];
	struct rep_series *s = realloc(f->series, (f->n + 1) * sizeof(*s));
	if (!s)
		return NULL;
	f->series = s;
	s = &f->series[f->n++];
	memset(s, 0, sizeof(*s));
	copy_text(s->label, sizeof(s->label), label);
	return s;
}

static struct rep_row *row_for(struct rep_series *s, uint64_t size)
{
	size_t at = 0;
	while (at < s->n && s->rows[at].size < size)
		at++;
	if (at < s->n && s->rows[at].size == size)
		return &s->rows[at];
	struct rep_row *rows = realloc(s->rows, (s->n + 1) * sizeof(*rows));
	if (!rows)
		return NULL;
	s->rows = rows;
	memmove(&rows[at + 1], &rows[at], (s->n - at) * sizeof(*rows));
	s->n++;
	memset(&rows[at], 0, sizeof(rows[at]));
	rows[at].size = size;
	return &rows[at];
}

static int add_hist(struct rep_row *row, const json_t *result, struct fb_err *e)
{
	struct fb_hist *h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	int rc = fb_hist_from_json(h, json_object_get(result, "hist"), e);
	if (rc != 0) {
		free(h);
		return rc;
	}
	if (row->hist) {
		fb_hist_merge(row->hist, h);
		free(h);
	} else {
		row->hist = h;
	}
	return 0;
}

static int add_to_row(
	struct rep_figure *f, struct rep_row *row, const json_t *result, struct fb_err *e)
{
	const char *state = fb_json_str(json_object_get(result, "validity"), "state", "valid");
	int valid = strcmp(state, "invalid") == 0 ? 2 : strcmp(state, "suspect") == 0 ? 1 : 0;
	if (valid > row->valid) {
		const json_t *why = json_object_get(json_object_get(result, "validity"), "reasons");
		const char *text = json_string_value(json_array_get(why, 0));
		row->valid = valid;
		copy_text(row->why, sizeof(row->why), text ? text : "");
	}
	row->samples += (uint64_t)fb_json_int(result, "n", 0);
	const json_t *bound = json_object_get(result, "bound");
	row->bound = fb_json_num(bound, "value", row->bound);
	if (!f->bound_why[0])
		copy_text(f->bound_why, sizeof(f->bound_why), fb_json_str(bound, "why", ""));
	if (f->kind == REP_BAND && json_is_object(json_object_get(result, "hist"))) {
		row->n++;
		return add_hist(row, result, e);
	}
	double *v = realloc(row->values, (row->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	row->values = v;
	v[row->n++] = fb_json_num(result, "value", NAN);
	return 0;
}

bool rep_is_loopback(const json_t *result)
{
	return json_is_true(json_object_get(json_object_get(result, "params"), "loopback")) ||
	       fb_json_int(json_object_get(result, "params"), "loopback", 0) != 0 ||
	       json_is_true(json_object_get(json_object_get(result, "facts"), "loopback"));
}

static int add_result(struct rep_figure *f, const json_t *result, json_t *varies, struct fb_err *e)
{
	char label[160];
	series_label(result, varies, label, sizeof(label));
	if (strcmp(f->where, fb_json_str(result, "where", "?")) != 0)
		snprintf(f->where, sizeof(f->where), "mixed");
	bool loopback = rep_is_loopback(result);
	f->loopback = f->loopback || loopback;
	struct rep_series *s = series_for(f, label);
	if (s && (loopback || strcmp(fb_json_str(result, "where", "?"), "hardware") != 0))
		s->not_headline = true;
	if (s) {
		const char *where = fb_json_str(result, "where", "?");
		bool other = s->n > 0 && strcmp(s->where, where) != 0;
		copy_text(s->where, sizeof(s->where), other ? "mixed" : where);
		s->run = (size_t)fb_json_int(result, REP_RUN, 0);
	}
	struct rep_row *row =
		s ? row_for(s, (uint64_t)fb_json_int(json_object_get(result, "params"), "size", 0))
		  : NULL;
	return row ? add_to_row(f, row, result, e) : -ENOMEM;
}

static const struct rep_row *row_at(const struct rep_series *s, uint64_t size)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->rows[i].size == size)
			return &s->rows[i];
	return NULL;
}

/* The smallest size; of several runs, the smallest that all have. */
static uint64_t tail_size(const struct rep_figure *f)
{
	const struct rep_series *first = &f->series[0];
	for (size_t i = 0; i < first->n && f->runs; i++) {
		size_t k = 1;
		while (k < f->n && row_at(&f->series[k], first->rows[i].size))
			k++;
		if (k == f->n)
			return first->rows[i].size;
	}
	return first->n > 0 ? first->rows[0].size : 0;
}

/* A copy of one row of times as a curve of the tail figure. */
static int add_curve(
	struct rep_figure *t, const struct rep_figure *from, const struct rep_series *s)
{
	char label[160] = "";
	const struct rep_row *row = row_at(s, t->at_size);
	if (!row || !row->hist || row->hist->n < TAIL_MIN_N)
		return 0;
	if (!t->runs)
		join(label, sizeof(label), from->op);
	if (t->runs || strcmp(s->label, from->op) != 0)
		join(label, sizeof(label), s->label);
	struct rep_series *curve = series_for(t, label);
	struct rep_row *copy = curve ? row_for(curve, row->size) : NULL;
	if (!copy)
		return -ENOMEM;
	if (copy->hist) { /* labels cut to the same text */
		fb_hist_merge(copy->hist, row->hist);
	} else {
		copy->hist = malloc(sizeof(*copy->hist));
		if (!copy->hist)
			return -ENOMEM;
		memcpy(copy->hist, row->hist, sizeof(*copy->hist));
	}
	copy->n += row->n;
	copy->samples += row->samples;
	copy->valid = row->valid > copy->valid ? row->valid : copy->valid;
	curve->not_headline = s->not_headline;
	curve->run = s->run;
	copy_text(curve->where, sizeof(curve->where), s->where);
	return 0;
}

static void free_series(struct rep_figure *f)
{
	for (size_t k = 0; k < f->n; k++) {
		struct rep_series *s = &f->series[k];
		for (size_t j = 0; j < s->n; j++) {
			free(s->rows[j].hist);
			free(s->rows[j].values);
		}
		free(s->rows);
	}
	free(f->series);
}

/* One tail figure per benchmark of times: the smallest size of every operation; of several runs
 * one per operation. */
static int add_tail(struct rep_figures *all, size_t from)
{
	struct rep_figure t = all->v[from];
	char size[32];
	int rc = 0;
	t.at_size = t.n > 0 ? tail_size(&t) : 0;
	t.kind = REP_TAIL;
	if (!t.runs)
		t.op[0] = '\0';
	t.series = NULL;
	t.n = 0;
	make_id(&t);
	for (size_t i = from; i < all->n && rc == 0; i++) {
		const struct rep_figure *f = &all->v[i];
		if (f->kind != REP_BAND || strcmp(f->bench, t.bench) != 0 ||
			strcmp(f->metric, t.metric) != 0 || (t.runs && i != from))
			continue;
		for (size_t k = 0; k < f->n && rc == 0; k++)
			rc = add_curve(&t, f, &f->series[k]);
		t.loopback = t.loopback || f->loopback;
		if (strcmp(f->where, t.where) != 0)
			snprintf(t.where, sizeof(t.where), "mixed");
		if (strcmp(f->definition, t.definition) != 0)
			snprintf(t.definition, sizeof(t.definition),
				"as in the figure of each operation");
		if (strcmp(f->factors, t.factors) != 0)
			t.factors[0] = '\0';
	}
	snprintf(t.title, sizeof(t.title), "%s %s%s%s tail at %s", t.section, t.op,
		t.op[0] ? " " : "", t.metric, fb_fmt_size(t.at_size, size, sizeof(size)));
	struct rep_figure *v =
		rc == 0 && t.n > 0 ? realloc(all->v, (all->n + 1) * sizeof(*v)) : NULL;
	if (!v) {
		bool none = t.n == 0;
		free_series(&t);
		return rc != 0 ? rc : none ? 0 : -ENOMEM;
	}
	all->v = v;
	v[all->n++] = t;
	make_unique(all, &v[all->n - 1]);
	return 0;
}

static int add_tails(struct rep_figures *all)
{
	size_t n = all->n;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		bool first = all->v[i].kind == REP_BAND && strcmp(all->v[i].section, "RDMA") == 0;
		for (size_t k = 0; k < i && first && !all->runs; k++)
			first = strcmp(all->v[k].bench, all->v[i].bench) != 0 ||
				strcmp(all->v[k].metric, all->v[i].metric) != 0;
		if (first)
			rc = add_tail(all, i);
	}
	return rc;
}

/* RDMA begins with times, everything else with rates; what is alike keeps its order. */
static int place_of(const struct rep_figure *f)
{
	static const int rdma[] = {[REP_BAND] = 0, [REP_TAIL] = 1, [REP_RATE] = 2};
	static const int other[] = {[REP_RATE] = 0, [REP_BAND] = 1, [REP_TAIL] = 2};
	return strcmp(f->section, "RDMA") == 0 ? rdma[f->kind] : other[f->kind];
}

static void arrange(struct rep_figures *all)
{
	for (size_t i = 1; i < all->n; i++) {
		struct rep_figure f = all->v[i];
		size_t k = i;
		for (; k > 0 && place_of(&all->v[k - 1]) > place_of(&f); k--)
			all->v[k] = all->v[k - 1];
		all->v[k] = f;
	}
}

static int build(const json_t *doc, size_t runs, struct rep_figures *all, struct fb_err *e)
{
	const json_t *results = json_object_get(doc, "results"), *r;
	size_t i, n = json_array_size(results);
	size_t *belongs = calloc(n + 1, sizeof(*belongs));
	int rc = belongs ? 0 : -ENOMEM;
	memset(all, 0, sizeof(*all));
	all->runs = runs;
	json_array_foreach (results, i, r) {
		struct rep_figure *f = rc == 0 && rep_drawable(r) ? figure_for(all, r) : NULL;
		if (rc == 0)
			belongs[i] = f ? (size_t)(f - all->v) : SIZE_MAX;
	}
	for (size_t k = 0; k < all->n && rc == 0; k++) {
		json_t *varies = varying_params(results, &all->v[k], k, belongs);
		json_array_foreach (results, i, r) {
			if (rc == 0 && belongs[i] == k)
				rc = add_result(&all->v[k], r, varies, e);
		}
		json_decref(varies);
	}
	if (rc == 0)
		rc = add_tails(all);
	free(belongs);
	arrange(all);
	if (rc != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "out of memory while gathering figures");
		rep_figures_free(all);
	}
	return rc;
}

/* Curves of one chart that come from different places say so in its key. */
static void name_places(struct rep_figures *all)
{
	for (size_t i = 0; i < all->n && all->runs; i++) {
		struct rep_figure *f = &all->v[i];
		for (size_t k = 0; k < f->n && strcmp(f->where, "mixed") == 0; k++) {
			struct rep_series *s = &f->series[k];
			size_t n = strlen(s->label);
			if (n + strlen(s->where) + 4 < sizeof(s->label))
				snprintf(s->label + n, sizeof(s->label) - n, " [%s]", s->where);
		}
	}
}

int rep_figures_overlay(
	const json_t *joined, size_t runs, struct rep_figures *all, struct fb_err *e)
{
	int rc = build(joined, runs, all, e);
	if (rc == 0)
		name_places(all);
	return rc;
}

int rep_figures_build(const json_t *doc, struct rep_figures *all, struct fb_err *e)
{
	return build(doc, 0, all, e);
}

void rep_figures_free(struct rep_figures *all)
{
	for (size_t i = 0; i < all->n; i++)
		free_series(&all->v[i]);
	free(all->v);
	memset(all, 0, sizeof(*all));
}
