// SPDX-License-Identifier: Apache-2.0
/*
 * See prometheus.h. All samples are gathered first and then written by family: that each family
 * stands in one block and no sample twice holds by construction, whatever the document's names are.
 */
#include "reports/prometheus.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/check.h"
#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "reports/metric_groups.h"
#include "reports/report_priv.h"

#define LABEL_MAX 200 /* bytes of a label's value: longer ones are cut */

struct sample {
	char family[128];
	char help[120];
	char *labels; /* "a=\"b\",c=\"d\"", escaped; owned */
	double v;
	size_t seq;
};

struct samples {
	struct sample *v;
	size_t n, room;
	bool failed;
};

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- names and labels ------------------------------------------------------------------------ */

/* Letters, digits and '_' of a text, in lower case; a run of others is one '_'. */
static void plain_name(const char *text, char *buf, size_t len)
{
	size_t n = 0;
	for (; *text && n + 1 < len; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 && isalnum(c))
			buf[n++] = (char)tolower(c);
		else if (n > 0 && buf[n - 1] != '_')
			buf[n++] = '_';
	}
	while (n > 0 && buf[n - 1] == '_')
		n--;
	buf[n] = '\0';
}

static void add_label(struct fb_strbuf *b, const char *name, const char *value)
{
	size_t n = strlen(value);
	if (n > LABEL_MAX)
		for (n = LABEL_MAX; n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80;)
			n--; /* never in the middle of a character */
	fb_strbuf_printf(b, "%s%s=\"", b->len ? "," : "", name);
	for (size_t i = 0; i < n; i++) {
		if (value[i] == '\\' || value[i] == '"')
			fb_strbuf_printf(b, "\\%c", value[i]);
		else if (value[i] == '\n')
			fb_strbuf_add(b, "\\n");
		else
			fb_strbuf_addn(b, (unsigned char)value[i] < 0x20 ? " " : &value[i], 1);
	}
	fb_strbuf_add(b, "\"");
}

/* Takes what `labels` holds (NULL: none). */
static void add(
	struct samples *s, const char *family, struct fb_strbuf *labels, double v, const char *help)
{
	struct fb_strbuf none = {0};
	char *text = fb_strbuf_take(labels ? labels : &none);
	if (text && s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct sample *w = reallocarray(s->v, room, sizeof(*w));
		if (w) {
			s->v = w;
			s->room = room;
		}
	}
	if (!text || s->n == s->room) {
		s->failed = true;
		free(text);
		return;
	}
	struct sample *x = &s->v[s->n];
	snprintf(x->family, sizeof(x->family), "fabricbench_%s", family);
	snprintf(x->help, sizeof(x->help), "%s", help);
	x->labels = text;
	x->v = v;
	x->seq = s->n++;
}

static void add_one(struct samples *s, const char *family, const char *label, const char *value,
	double v, const char *help)
{
	struct fb_strbuf b = {0};
	add_label(&b, label, value);
	add(s, family, &b, v, help);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Seconds since 1970 of "2026-11-30T03:39:17.131Z"; NAN: no such text. */
static double seconds_of(const char *text)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
		return NAN;
	return (double)timegm(&tm) + (*rest == '.' ? strtod(rest, NULL) : 0);
}

static void add_run(struct samples *s, const json_t *doc)
{
	const json_t *run = get(doc, "run"), *tool = get(doc, "tool");
	struct fb_strbuf b = {0};
	add_label(&b, "version", fb_json_str(tool, "version", ""));
	add_label(&b, "git", fb_json_str(tool, "git", ""));
	add_label(&b, "command", fb_json_str(run, "command", ""));
	add_label(&b, "outcome", fb_json_str(run, "outcome", ""));
	add(s, "info", &b, 1, "Which program, which command and how it ended, always 1.");
	double from = seconds_of(fb_json_str(run, "started", ""));
	double to = seconds_of(fb_json_str(run, "ended", ""));
	if (isfinite(to) || isfinite(from))
		add(s, "last_run_timestamp_seconds", NULL, isfinite(to) ? to : from,
			"When the run ended, or began where it was interrupted, since 1970.");
	if (to >= from)
		add(s, "last_run_duration_seconds", NULL, to - from, "How long the run took.");
	double status = fb_json_num(run, "exit", NAN);
	if (isfinite(status))
		add(s, "exit_status", NULL, status,
			"0 accepted, 1 rejected, 2 usage, 3 not measured, 4 wrong data, 77 not "
			"here.");
}

static void add_verdict(struct samples *s, const json_t *doc)
{
	static const char *const states[] = {"ACCEPTED", "REJECTED", "INCOMPLETE"};
	const char *state = fb_json_str(get(doc, "verdict"), "state", NULL);
	for (size_t i = 0; state && i < sizeof(states) / sizeof(states[0]); i++)
		add_one(s, "verdict", "state", states[i], strcmp(state, states[i]) == 0,
			"1 for the verdict that holds, 0 for the others.");
}

/* How often each word stands under `key` of a list's entries; words without entries are 0, which
 * is true of them. */
static void add_counts(struct samples *s, const json_t *list, const char *key, const char *inner,
	const char *const *words, size_t n_words, const char *family, const char *label,
	const char *help)
{
	for (size_t k = 0; k < n_words; k++) {
		const json_t *x;
		size_t i, n = 0;
		json_array_foreach (list, i, x)
			n += strcmp(fb_json_str(inner ? get(x, inner) : x, key, ""), words[k]) == 0;
		add_one(s, family, label, words[k], (double)n, help);
	}
}

static void add_all_counts(struct samples *s, const json_t *doc)
{
	static const char *const validities[] = {"valid", "suspect", "invalid"};
	static const char *const parts[] = {
		"complete", "failed", "wrong data", "skipped", "missing", "interrupted", "pending"};
	if (json_array_size(get(doc, "checks")) > 0)
		add_counts(s, get(doc, "checks"), "state", NULL, fb_check_state_names,
			FB_CHECK_STATES, "checks", "state", "Findings of checks by state.");
	add_counts(s, get(doc, "results"), "state", "validity", validities, 3, "results",
		"validity", "Results by how far they may be trusted.");
	if (get(get(doc, "plan"), "parts"))
		add_counts(s, get(get(doc, "plan"), "parts"), "state", NULL, parts, 7, "parts",
			"state", "Launches of the plan's jobs by what became of them.");
	add(s, "errors", NULL, (double)json_array_size(get(doc, "errors")),
		"Errors that the document records.");
	add(s, "warnings", NULL, (double)json_array_size(get(doc, "warnings")),
		"Warnings that the document records.");
}

static int by_id(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;
	return strcmp(fb_json_str(*x, "id", ""), fb_json_str(*y, "id", ""));
}

/* One sample a check, whether it failed or not, so that an alert can say "> 0". */
static void add_failures(struct samples *s, const json_t *doc)
{
	const json_t *checks = get(doc, "checks");
	size_t n = json_array_size(checks);
	const json_t **v = calloc(n + 1, sizeof(*v));
	if (!v) {
		s->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = json_array_get(checks, i);
	qsort(v, n, sizeof(*v), by_id);
	for (size_t i = 0; i < n;) {
		const char *id = fb_json_str(v[i], "id", "");
		size_t failed = 0;
		for (; i < n && strcmp(fb_json_str(v[i], "id", ""), id) == 0; i++)
			failed += strcmp(fb_json_str(v[i], "state", ""), "fail") == 0;
		add_one(s, "check_failures", "id", id, (double)failed,
			"Subjects of each check that failed it.");
	}
	free(v);
}

/* ---- figures --------------------------------------------------------------------------------- */

struct unit {
	const char *unit, *suffix;
	double factor;
};

/* The document's units; others keep their own name. */
static struct unit unit_of(const char *unit, char *buf, size_t len)
{
	static const struct unit units[] = {
		{"ns", "seconds", 1e-9},
		{"s", "seconds", 1},
		{"bytes", "bytes", 1},
		{"bytes/s", "bytes_per_second", 1},
		{"1/s", "per_second", 1},
		{"flop/s", "flops_per_second", 1},
		{"", "ratio", 1},
		{"1", "ratio", 1},
		{"x", "ratio", 1},
		{"%", "ratio", 0.01},
	};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].unit) == 0)
			return units[i];
	size_t n = strlen(unit);
	bool rate = n > 2 && n < len && strcmp(unit + n - 2, "/s") == 0;
	plain_name(unit, buf, rate ? n - 1 : len - 16);
	if (rate)
		strncat(buf, "_per_second", len - strlen(buf) - 1);
	return (struct unit){unit, buf, 1};
}

/* METRIC_UNIT, with `what` between them; a unit that the metric's name ends with stands once. */
static void family_name(
	const char *metric, const char *what, const char *suffix, char *buf, size_t len)
{
	size_t n = strlen(metric), k = strlen(suffix);
	if (n > k && metric[n - k - 1] == '_' && strcmp(metric + n - k, suffix) == 0)
		n -= k + 1;
	snprintf(buf, len, "%.*s%s%s%s", (int)n, metric, what, *suffix ? "_" : "", suffix);
}

/* The case without its size, which is a label of its own. */
static void add_case(struct fb_strbuf *b, const char *name, int64_t size)
{
	char last[32], text[256];
	size_t n = strlen(name);
	int k = snprintf(last, sizeof(last), "/%lld", (long long)size);
	if (size >= 0 && n > (size_t)k && strcmp(name + n - (size_t)k, last) == 0)
		n -= (size_t)k;
	n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
	memcpy(text, name, n);
	text[n] = '\0';
	add_label(b, "case", text);
}

static void label_group(struct fb_strbuf *b, const json_t *r)
{
	char benchmark[64], size_text[32];
	const json_t *params = get(r, "params");
	const char *name = fb_json_str(r, "case", ""), *job = fb_json_str(r, "job", "");
	const char *device = fb_json_str(params, "device", ""), *load = fb_json_str(r, "load", "");
	int64_t size = fb_json_int(params, "size", -1);
	snprintf(benchmark, sizeof(benchmark), "%.*s", (int)strcspn(name, "/"), name);
	add_label(b, "benchmark", benchmark);
	add_case(b, name, size);
	if (*job)
		add_label(b, "job", job);
	if (size >= 0) {
		snprintf(size_text, sizeof(size_text), "%lld", (long long)size);
		add_label(b, "size", size_text);
	}
	if (*device)
		add_label(b, "device", device);
	if (*load)
		add_label(b, "load", load);
	add_label(b, "where", fb_json_str(r, "where", ""));
	if (rep_is_loopback(r))
		add_label(b, "loopback", "true");
}

/* Percentiles of all launches' samples together; those that the samples do not support are left
 * out. */
static void add_quantiles(struct samples *s, const struct rep_group *g, const char *family)
{
	static const struct {
		double q;
		const char *text;
	} quantiles[] = {{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}, {0.999, "0.999"}};
	struct fb_hist *all = NULL, *one = malloc(sizeof(*one));
	for (size_t i = 0; one && i < g->n; i++) {
		struct fb_err e = {0};
		const json_t *h = get(g->r[i], "hist");
		if (!json_is_object(h) ||
			strcmp(fb_json_str(get(g->r[i], "validity"), "state", ""), "invalid") ==
				0 ||
			fb_hist_from_json(one, h, &e) != 0)
			continue;
		if (all) {
			fb_hist_merge(all, one);
		} else {
			all = one;
			one = malloc(sizeof(*one));
		}
	}
	for (size_t k = 0; all && k < sizeof(quantiles) / sizeof(quantiles[0]); k++) {
		struct fb_strbuf b = {0};
		double ns;
		if (fb_hist_percentile(all, quantiles[k].q, &ns) != 0)
			continue;
		label_group(&b, g->r[0]);
		add_label(&b, "quantile", quantiles[k].text);
		add(s, family, &b, ns * 1e-9, "Quantiles of all launches' samples together.");
	}
	free(one);
	free(all);
}

static void add_group(struct samples *s, const struct rep_group *g)
{
	char metric[48], other[48], family[110], help[120];
	struct rep_summary sum;
	struct fb_strbuf b = {0}, c = {0};
	const json_t *r = g->r[0];
	struct unit u = unit_of(fb_json_str(r, "unit", ""), other, sizeof(other));
	double bound = fb_json_num(get(r, "bound"), "value", NAN);
	plain_name(fb_json_str(r, "metric", ""), metric, sizeof(metric));
	if (!metric[0])
		snprintf(metric, sizeof(metric), "value");
	rep_group_summary(g, &sum);
	if (isfinite(sum.median)) {
		family_name(metric, "", u.suffix, family, sizeof(family));
		snprintf(help, sizeof(help), "Median over launches of %s.", metric);
		label_group(&b, r);
		add(s, family, &b, sum.median * u.factor, help);
	}
	if (isfinite(bound)) {
		family_name(metric, "_bound", u.suffix, family, sizeof(family));
		snprintf(help, sizeof(help), "What %s cannot pass.", metric);
		label_group(&c, r);
		add(s, family, &c, bound * u.factor, help);
	}
	family_name(metric, "_quantile", u.suffix, family, sizeof(family));
	if (strcmp(u.unit, "ns") == 0)
		add_quantiles(s, g, family);
}

/* ---- text ------------------------------------------------------------------------------------ */

static int by_family(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int d = strcmp(x->family, y->family);
	return d ? d : (x->seq > y->seq) - (x->seq < y->seq);
}

static int by_labels(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int d = strcmp(x->family, y->family);
	d = d ? d : strcmp(x->labels, y->labels);
	return d ? d : (x->seq > y->seq) - (x->seq < y->seq);
}

/* Long names of a stranger's document may be equal once they are cut: the first of them stands. */
static void drop_doubles(struct samples *s)
{
	size_t kept = 0;
	qsort(s->v, s->n, sizeof(*s->v), by_labels);
	for (size_t i = 0; i < s->n; i++) {
		if (kept > 0 && strcmp(s->v[kept - 1].family, s->v[i].family) == 0 &&
			strcmp(s->v[kept - 1].labels, s->v[i].labels) == 0)
			free(s->v[i].labels);
		else
			s->v[kept++] = s->v[i];
	}
	s->n = kept;
}

static void write_samples(struct fb_strbuf *b, struct samples *s)
{
	drop_doubles(s);
	qsort(s->v, s->n, sizeof(*s->v), by_family);
	for (size_t i = 0; i < s->n; i++) {
		const struct sample *x = &s->v[i];
		if (i == 0 || strcmp(s->v[i - 1].family, x->family) != 0)
			fb_strbuf_printf(b, "# HELP %s %s\n# TYPE %s gauge\n", x->family, x->help,
				x->family);
		if (*x->labels)
			fb_strbuf_printf(b, "%s{%s} %.15g\n", x->family, x->labels, x->v);
		else
			fb_strbuf_printf(b, "%s %.15g\n", x->family, x->v);
	}
}

int rep_prometheus(struct fb_strbuf *b, const json_t *doc, struct fb_err *e)
{
	struct samples s = {0};
	struct rep_groups g;
	int rc = rep_groups_make(doc, &g, e);
	if (rc != 0)
		return rc;
	add_run(&s, doc);
	add_verdict(&s, doc);
	add_all_counts(&s, doc);
	add_failures(&s, doc);
	for (size_t i = 0; i < g.n; i++)
		add_group(&s, &g.v[i]);
	if (s.n > 0)
		write_samples(b, &s);
	if (s.failed || b->failed)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the Prometheus text");
	for (size_t i = 0; i < s.n; i++)
		free(s.v[i].labels);
	free(s.v);
	rep_groups_free(&g);
	return rc;
}
