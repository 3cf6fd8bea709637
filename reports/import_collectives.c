// SPDX-License-Identifier: Apache-2.0
/*
 * nccl-tests' and rccl-tests' text and JSON, and the OSU micro-benchmarks' tables. nccl-tests
 * counts GB in 10^9 bytes and times in us; OSU counts MB in 10^6 bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/import.h"

const char *const import_nccl_unknown[] = {"the samples: each figure is a mean over iterations",
	"warm-up, unless the header names it", "algorithm, protocol and channels",
	"topology, firmware and library versions beyond the header's", NULL};
const char *const import_osu_unknown[] = {"the samples: each figure is a mean over iterations",
	"how many iterations and ranks, unless a column tells", "the MPI library and its transport",
	NULL};

#define MAX_FIELDS 24

static bool is_word(const char *s)
{
	return isalpha((unsigned char)*s);
}

/* ---- nccl-tests ------------------------------------------------------------------------------ */

struct nccl {
	char test[48];
	int64_t ranks, iters;
	json_t *params;
};

/* "all_reduce_perf" in a path or a sentence: the word before "_perf". */
static void find_test(struct nccl *n, const char *line)
{
	const char *end = strstr(line, "_perf");
	const char *from = end;
	while (from && from > line && (isalnum((unsigned char)from[-1]) || from[-1] == '_'))
		from--;
	if (from && end > from)
		snprintf(n->test, sizeof(n->test), "%.*s", (int)(end - from), from);
}

/* The number behind "iters: " in the header. */
static void find_iters(struct nccl *n, const char *line)
{
	for (const char *at = line; (at = strstr(at, "iters: ")); at += 7) {
		/* "warmup iters: 5 iters: 20 agg iters: 1" */
		if (at > line + 7 &&
			(strncmp(at - 7, "warmup ", 7) == 0 || strncmp(at - 4, "agg ", 4) == 0))
			continue;
		char word[24];
		double v;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at + 7, " "), at + 7);
		if (import_number(word, &v) && v > 0)
			n->iters = import_whole(v);
	}
}

static int add_nccl(struct import *im, struct nccl *n, const char *placement, double size,
	const char *type, const char *redop, const double figure[3])
{
	static const struct {
		const char *metric, *unit, *definition;
		bool lower;
		double scale;
	} kinds[] = {
		{"time", "ns", "mean time of one operation, nccl-tests", true, 1e3},
		{"algbw", "bytes/s", "message size over time, nccl-tests", false, 1e9},
		{"busbw", "bytes/s", "algbw times the operation's factor, nccl-tests", false, 1e9},
	};
	char name[120];
	snprintf(name, sizeof(name), "%s/%s/%s/%s/%.0f", n->test, type, redop, placement, size);
	fb_json_set_str(n->params, "op", n->test);
	fb_json_set_str(n->params, "dtype", type);
	fb_json_set_str(n->params, "redop", redop);
	fb_json_set_str(n->params, "placement", placement);
	fb_json_set_int(n->params, "size", import_whole(size));
	if (n->ranks > 0)
		fb_json_set_int(n->params, "ranks", n->ranks);
	int rc = 0;
	/* An empty message has no rate, and a rate of 0 is none. */
	for (int i = 0; i < 3 && rc == 0; i++)
		if (i == 0 || figure[i] > 0) {
			struct import_value v = {.name = name,
				.metric = kinds[i].metric,
				.unit = kinds[i].unit,
				.lower = kinds[i].lower,
				.value = figure[i] * kinds[i].scale,
				.samples = n->iters > 0 ? (double)n->iters : NAN,
				.params = n->params,
				.definition = kinds[i].definition};
			rc = import_add(im, &v);
		}
	return rc;
}

static int wrong_data(struct import *im, const char *size, const char *wrong)
{
	fb_fail(im->e, FB_EXIT_WRONG_DATA, EBADMSG,
		"%s:%u: %s bytes: %s values came out wrong: what follows measures nothing",
		im->file, im->line, size, wrong);
	fb_hint(im->e,
		"find the fault first (nccl-tests: GPUDirect with ACS or an IOMMU corrupts data)");
	return -EBADMSG;
}

/*
 * "size count type redop root  time algbw busbw #wrong  time algbw busbw #wrong". Without reduction
 * redop is "none". With -I four more columns in each half: the halves are told apart by their
 * length.
 */
static int nccl_row(struct import *im, struct nccl *n, char *line)
{
	char *f[MAX_FIELDS];
	double size, count;
	size_t k = import_fields(line, f, MAX_FIELDS);
	if (k < 9 || !import_number(f[0], &size) || !import_number(f[1], &count) || !is_word(f[2]))
		return 0;
	if (!n->test[0]) {
		import_bad(im, "which test is it? This output does not say");
		fb_hint(im->e, "give --test all_reduce, or what it was");
		return im->e->code;
	}
	size_t half = (k - 5) / 2;
	if ((k - 5) % 2 != 0 || half < 4)
		return import_bad(im, "%zu columns where nccl-tests has 13", k);
	int rc = 0;
	for (size_t p = 0; p < 2 && rc == 0; p++) {
		char **h = f + 5 + p * half;
		double figure[3], wrong;
		for (int i = 0; i < 3; i++)
			if (!import_number(h[i], &figure[i]))
				return import_bad(im, "\"%.40s\" is no number", h[i]);
		if (import_number(h[3], &wrong) && wrong > 0)
			return wrong_data(im, f[0], h[3]);
		rc = add_nccl(im, n, p ? "in-place" : "out-of-place", size, f[2], f[3], figure);
	}
	return rc;
}

static int nccl_text(struct import *im, struct nccl *n)
{
	char *line;
	int rc = 0;
	while (rc == 0 && (line = import_line(im))) {
		const char *s = line + strspn(line, " \t");
		if (*s != '#') {
			if (!isdigit((unsigned char)*s))
				find_test(n, s);
			rc = nccl_row(im, n, line);
			continue;
		}
		find_test(n, s);
		find_iters(n, s);
		/* "#  Rank  0 Group  0 Pid ..." once a rank */
		s += 1 + strspn(s + 1, " \t");
		if (strncmp(s, "Rank ", 5) == 0 && strstr(s, "Pid"))
			n->ranks++;
	}
	return rc;
}

static int json_half(struct import *im, struct nccl *n, const json_t *row, const char *key)
{
	const json_t *h = json_object_get(row, key);
	double size = fb_json_num(row, "size", NAN);
	char wrong[24];
	if (!json_is_object(h))
		return 0;
	const double figure[3] = {fb_json_num(h, "time", fb_json_num(h, "cpu_time", NAN)),
		fb_json_num(h, "alg_bw", 0), fb_json_num(h, "bus_bw", 0)};
	if (!isfinite(size) || !isfinite(figure[0]))
		return import_bad(im, "a result without size or time");
	if (fb_json_num(h, "nwrong", 0) > 0) {
		snprintf(wrong, sizeof(wrong), "%.0f", fb_json_num(h, "nwrong", 0));
		return wrong_data(im, "a message of some", wrong);
	}
	return add_nccl(im, n, strcmp(key, "in_place") == 0 ? "in-place" : "out-of-place", size,
		fb_json_str(row, "type", "unknown"), fb_json_str(row, "redop", "none"), figure);
}

static int nccl_json(struct import *im, struct nccl *n)
{
	json_t *doc = fb_json_parse(im->at, strlen(im->at), im->file, im->e), *row;
	const json_t *results = json_object_get(doc, "results"), *arg;
	size_t i;
	int rc = 0;
	if (!doc)
		return im->e->code;
	json_array_foreach (json_object_get(doc, "args"), i, arg)
		if (json_is_string(arg) && i == 0)
			find_test(n, json_string_value(arg));
	n->ranks = fb_json_int(json_object_get(doc, "config"), "nranks", 0);
	if (!json_is_array(results))
		rc = import_bad(im, "it has no results[]");
	else if (!n->test[0])
		rc = import_bad(im, "which test is it? Give --test");
	json_array_foreach (results, i, row) {
		im->line = (unsigned)i + 1;
		if (rc == 0)
			rc = json_half(im, n, row, "out_of_place");
		if (rc == 0)
			rc = json_half(im, n, row, "in_place");
	}
	json_decref(doc);
	return rc;
}

int import_nccl_tests(struct import *im)
{
	struct nccl n = {.params = json_object()};
	if (im->test)
		snprintf(n.test, sizeof(n.test), "%.40s", im->test);
	int rc = im->at[strspn(im->at, " \t\r\n")] == '{' ? nccl_json(im, &n) : nccl_text(im, &n);
	json_decref(n.params);
	return rc;
}

/* ---- OSU ------------------------------------------------------------------------------------- */

struct osu_column {
	const char *metric, *unit;
	bool lower;
	double scale;
};

struct osu {
	char test[64]; /* "MPI_Allreduce_Latency" */
	struct osu_column column[MAX_FIELDS];
	size_t n, iterations; /* columns behind the size; which of them tells iterations, 0: none */
	json_t *params;
};

/* "# OSU MPI Allreduce Latency Test v7.2" */
static bool osu_title(struct osu *o, const char *line)
{
	const char *from = strstr(line, "OSU "), *end = from ? strstr(from, " Test") : NULL;
	size_t k = 0;
	if (line[0] != '#' || !end)
		return false;
	for (from += 4; from < end && k + 1 < sizeof(o->test); from++)
		o->test[k++] = *from == ' ' || *from == '/' ? '_' : *from;
	o->test[k] = '\0';
	o->n = 0;
	return true;
}

static struct osu_column osu_kind(const char *s, const char *end)
{
	char text[64];
	snprintf(text, sizeof(text), "%.*s", (int)(end - s), s);
	bool us = strstr(text, "(us)") != NULL;
	if (strstr(text, "Bandwidth") || strstr(text, "MB/s"))
		return (struct osu_column){"bandwidth", "bytes/s", false, 1e6};
	if (strstr(text, "Messages/s"))
		return (struct osu_column){"message_rate", "1/s", false, 1};
	if (us)
		return (struct osu_column){strstr(text, "Min")   ? "latency_min"
					   : strstr(text, "Max") ? "latency_max"
					   : strstr(text, "P50") ? "latency_median"
					   : strstr(text, "P90") ? "latency_p90"
					   : strstr(text, "P99") ? "latency_p99"
								 : "latency_mean",
			"ns", true, 1e3};
	return (struct osu_column){0};
}

/* "# Size   Avg Latency(us)   Min Latency(us)": columns stand two blanks or more apart. */
static void osu_header(struct osu *o, const char *line)
{
	const char *s = strstr(line, "Size") + 4;
	o->n = o->iterations = 0;
	while (*s && o->n < MAX_FIELDS) {
		s += strspn(s, " \t");
		const char *end = s;
		while (*end && !(end[0] == ' ' && (end[1] == ' ' || end[1] == '\0')) &&
			*end != '\t')
			end++;
		if (end == s)
			return;
		o->column[o->n] = osu_kind(s, end);
		if (strncmp(s, "Iterations", 10) == 0)
			o->iterations = o->n + 1;
		o->n++;
		s = end;
	}
}

static int osu_row(struct import *im, struct osu *o, char *line)
{
	char *f[MAX_FIELDS + 1], name[120];
	double size, v, iterations = NAN;
	size_t k = import_fields(line, f, MAX_FIELDS + 1);
	if (k < 2 || !import_number(f[0], &size))
		return 0;
	if (o->n == 0)
		return import_bad(im, "figures without a header \"# Size ...\"");
	if (k != o->n + 1)
		return import_bad(im, "%zu figures under %zu columns", k, o->n + 1);
	if (o->iterations && !import_number(f[o->iterations], &iterations))
		return import_bad(im, "\"%.40s\" is no number", f[o->iterations]);
	snprintf(name, sizeof(name), "%s/%.0f", o->test[0] ? o->test : "unknown", size);
	fb_json_set_int(o->params, "size", import_whole(size));
	int rc = 0;
	for (size_t i = 0; i < o->n && rc == 0; i++) {
		if (!o->column[i].metric)
			continue;
		if (!import_number(f[i + 1], &v))
			return import_bad(im, "\"%.40s\" is no number", f[i + 1]);
		struct import_value value = {.name = name,
			.metric = o->column[i].metric,
			.unit = o->column[i].unit,
			.lower = o->column[i].lower,
			.value = v * o->column[i].scale,
			.samples = iterations,
			.params = o->params,
			.definition = "a mean over iterations, OSU micro-benchmarks"};
		rc = import_add(im, &value);
	}
	return rc;
}

int import_osu(struct import *im)
{
	struct osu o = {.params = json_object()};
	char *line;
	int rc = 0;
	while (rc == 0 && (line = import_line(im))) {
		if (osu_title(&o, line))
			continue;
		if (line[0] == '#' && strstr(line, "Size"))
			osu_header(&o, line);
		else if (line[0] != '#')
			rc = osu_row(im, &o, line);
	}
	json_decref(o.params);
	return rc;
}
