// SPDX-License-Identifier: Apache-2.0
/*
 * nccl-tests' and rccl-tests' text and JSON, and the OSU micro-benchmarks' tables. nccl-tests
 * counts GB in 10^9 bytes and times in us; OSU counts MB in 10^6 bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

enum nccl_column { C_SIZE, C_TYPE, C_REDOP, C_ROOT, C_TIME, C_ALGBW, C_BUSBW, C_WRONG, C_OTHER };

struct nccl {
	char test[48];
	int64_t ranks, iters;
	enum nccl_column column[MAX_FIELDS];
	size_t n_columns; /* 0: no header yet */
	bool cpu_time;    /* -C: in the place of the time stands how long the host took to ask */
	char empty[80];   /* type, reduction and root of the empty message read last */
	json_t *params;
};

struct nccl_case {
	double size;
	const char *type, *redop, *root, *placement; /* root may be NULL */
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

static int add_nccl(
	struct import *im, struct nccl *n, const struct nccl_case *c, const double figure[3])
{
	static const struct {
		const char *metric, *unit, *definition;
		bool lower;
		double scale;
	} kinds[] = {
		{"time", "ns", "mean time of one operation, nccl-tests", true, 1e3},
		{"algbw", "bytes/s", "message size over time, nccl-tests", false, 1e9},
		{"busbw", "bytes/s", "algbw times the operation's factor, nccl-tests", false, 1e9},
		{"cpu_time", "ns", "mean time of the host to ask for one operation, nccl-tests -C",
			true, 1e3},
	};
	char name[140], from[24] = "";
	double root;
	/* -1: the operation has none; 0: the one that is used unless another was asked for */
	if (c->root && import_number(c->root + strspn(c->root, " "), &root) && root > 0)
		snprintf(from, sizeof(from), "/root%.0f", root);
	snprintf(name, sizeof(name), "%s/%.20s/%.20s%s/%s/%.0f", n->test, c->type, c->redop, from,
		c->placement, c->size);
	fb_json_set_str(n->params, "op", n->test);
	fb_json_set_str(n->params, "dtype", c->type);
	fb_json_set_str(n->params, "redop", c->redop);
	fb_json_set_str(n->params, "placement", c->placement);
	fb_json_set_int(n->params, "size", import_whole(c->size));
	if (n->ranks > 0)
		fb_json_set_int(n->params, "ranks", n->ranks);
	int rc = 0;
	/* An empty message has no rate, and a rate of 0 is none. */
	for (int i = 0; i < 3 && rc == 0; i++)
		if (i == 0 || figure[i] != 0) {
			int k = i == 0 && n->cpu_time ? 3 : i;
			struct import_value v = {.name = name,
				.metric = kinds[k].metric,
				.unit = kinds[k].unit,
				.lower = kinds[k].lower,
				.value = figure[i] * kinds[k].scale,
				.samples = n->iters > 0 ? (double)n->iters : NAN,
				.params = n->params,
				.definition = kinds[k].definition};
			rc = import_add(im, &v);
		}
	return rc;
}

static int wrong_data(struct import *im, const char *of, const char *what)
{
	fb_fail(im->e, FB_EXIT_WRONG_DATA, EBADMSG,
		"%s:%u: %.60s: %.40s came out wrong: what follows measures nothing", im->file,
		im->line, of, what);
	fb_hint(im->e,
		"find the fault first (GPUDirect with ACS or an IOMMU in its way corrupts data)");
	return -EBADMSG;
}

static int wrong_values(struct import *im, double size, double n)
{
	char of[40], what[40];
	snprintf(of, sizeof(of), "%.0f bytes", size);
	snprintf(what, sizeof(what), "%.0f values", n);
	return wrong_data(im, of, what);
}

/*
 * "#  size  count  type  redop  root  time algbw busbw #wrong  time algbw busbw #wrong": what
 * stands in which column. Releases before 2.12 have "error" (a deviation, which sums may have) for
 * "#wrong", and no redop or root where the operation has none; -I adds four columns to each half.
 */
static bool nccl_header(struct nccl *n, const char *line)
{
	static const char *const names[] = {[C_SIZE] = "size",
		[C_TYPE] = "type",
		[C_REDOP] = "redop",
		[C_ROOT] = "root",
		[C_TIME] = "time",
		[C_ALGBW] = "algbw",
		[C_BUSBW] = "busbw",
		[C_WRONG] = "#wrong"};
	char text[400], *word[MAX_FIELDS];
	snprintf(text, sizeof(text), "%s", line + strspn(line, "# \t"));
	size_t k = import_fields(text, word, MAX_FIELDS);
	if (k < 5 || strcmp(word[0], "size") != 0)
		return false;
	n->n_columns = k;
	n->cpu_time = false;
	n->empty[0] = '\0';
	for (size_t i = 0; i < k; i++) {
		n->column[i] = strcmp(word[i], "cputime") == 0 ? C_TIME : C_OTHER;
		n->cpu_time = n->cpu_time || n->column[i] == C_TIME;
		for (int c = C_SIZE; c < C_OTHER; c++)
			if (strcmp(word[i], names[c]) == 0)
				n->column[i] = (enum nccl_column)c;
	}
	return true;
}

/*
 * Sizes are rounded down to whole elements on every rank, so that a sweep from 8 bytes over 16
 * ranks begins with several empty messages: the first stands for them.
 */
static bool is_empty_again(struct nccl *n, const struct nccl_case *c)
{
	char of[sizeof(n->empty)];
	snprintf(of, sizeof(of), "%.20s/%.20s/%.20s", c->type, c->redop, c->root ? c->root : "");
	if (c->size != 0)
		return false;
	if (strcmp(of, n->empty) == 0)
		return true;
	snprintf(n->empty, sizeof(n->empty), "%s", of);
	return false;
}

/* Rows that were cut out of their output: today's columns. */
static int nccl_default(struct import *im, struct nccl *n, size_t k)
{
	struct nccl today = {.n_columns = 0};
	nccl_header(&today,
		"size count type redop root time algbw busbw #wrong time algbw busbw #wrong");
	if (k != today.n_columns)
		return import_bad(im, "%zu columns where nccl-tests has 13, and no header", k);
	memcpy(n->column, today.column, sizeof(n->column));
	n->n_columns = k;
	return 0;
}

/* A row that another process wrote into. */
static int nccl_torn(struct import *im)
{
	fb_hint(im->e, "where NCCL's messages stand within a row, run with NCCL_DEBUG=WARN or "
		       "NCCL_DEBUG_FILE, or mend the row by hand");
	return im->e->code;
}

/* One half of a row, from its "time" on. @return columns used; 0: nothing measured, or *rc */
static size_t nccl_half(struct import *im, struct nccl *n, char **f, size_t from, size_t end,
	struct nccl_case *c, int *rc)
{
	double figure[3] = {0, 0, 0}, wrong;
	bool measured = true;
	size_t i = from;
	do {
		enum nccl_column what = n->column[i];
		if (what >= C_TIME && what <= C_BUSBW) {
			if (strcmp(f[i], "N/A") == 0)
				measured = false;
			else if (!import_figure(f[i], &figure[what - C_TIME])) {
				import_bad(im, "\"%.40s\" is no number", f[i]);
				*rc = nccl_torn(im);
			}
		}
		if (*rc == 0 && what == C_WRONG && import_number(f[i], &wrong) && wrong > 0)
			*rc = wrong_values(im, c->size, wrong);
		i++;
	} while (*rc == 0 && i < end && n->column[i] != C_TIME);
	if (*rc == 0 && measured)
		*rc = add_nccl(im, n, c, figure);
	return i;
}

static int nccl_row(struct import *im, struct nccl *n, char *line)
{
	char *f[MAX_FIELDS];
	double count;
	struct nccl_case c = {.type = "unknown", .redop = "none", .placement = "out-of-place"};
	size_t k = import_fields(line, f, MAX_FIELDS), i = 0;
	if (k < 7 || !import_number(f[0], &c.size) || !import_number(f[1], &count) ||
		!is_word(f[2]))
		return 0;
	if (!n->test[0]) {
		import_bad(im, "which test is it? This output does not say");
		fb_hint(im->e, "give --test all_reduce, or what it was");
		return im->e->code;
	}
	int rc = n->n_columns == 0 ? nccl_default(im, n, k) : 0;
	if (rc != 0)
		return rc;
	for (; i < n->n_columns && i < k && n->column[i] != C_TIME; i++) {
		c.type = n->column[i] == C_TYPE ? f[i] : c.type;
		c.redop = n->column[i] == C_REDOP ? f[i] : c.redop;
		c.root = n->column[i] == C_ROOT ? f[i] : c.root;
	}
	if (is_empty_again(n, &c))
		return 0;
	/* A replay leaves the first half blank, 32 columns of it; -T adds the time of day. */
	size_t half = (n->n_columns - i) / 2;
	if (half > 0 && k == i + half && f[i] - f[i - 1] > 24 + (ptrdiff_t)strlen(f[i - 1]))
		c.placement = "in-place";
	else if (k < n->n_columns || (k > n->n_columns && import_number(f[k - 1], &count))) {
		import_bad(im, "%zu columns under a header of %zu", k, n->n_columns);
		return nccl_torn(im);
	}
	while (rc == 0 && i < k && i < n->n_columns && n->column[i] == C_TIME) {
		i = nccl_half(im, n, f, i, k < n->n_columns ? k : n->n_columns, &c, &rc);
		c.placement = "in-place";
	}
	return rc;
}

/* "# Out of bounds values : 3 FAILED" */
static int nccl_sum(struct import *im, const char *s)
{
	const char *at = strstr(s, "Out of bounds values");
	if (!at || !strstr(at, "FAILED"))
		return 0;
	at += strcspn(at, ":");
	return wrong_data(im, "out of bounds values", at + strspn(at, ": "));
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
		if (nccl_header(n, s))
			continue;
		find_test(n, s);
		find_iters(n, s);
		rc = nccl_sum(im, s);
		/* "#  Rank  0 Group  0 Pid ..." once a rank */
		s += 1 + strspn(s + 1, " \t");
		if (strncmp(s, "Rank ", 5) == 0 && strstr(s, "Pid"))
			n->ranks++;
	}
	return rc;
}

/* It writes what is no number as a text: "nan". NaN for it; `def` for what is not there. */
static double json_figure(const json_t *o, const char *key, double def)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) ? NAN : fb_json_num(o, key, def);
}

static struct nccl_case json_case(const json_t *row, const char *placement)
{
	return (struct nccl_case){.size = fb_json_num(row, "size", NAN),
		.type = fb_json_str(row, "type", "unknown"),
		.redop = fb_json_str(row, "redop", "none"),
		.root = fb_json_str(row, "root", NULL),
		.placement = placement};
}

static int json_half(struct import *im, struct nccl *n, const json_t *row, const char *key)
{
	const json_t *h = json_object_get(row, key);
	struct nccl_case c =
		json_case(row, strcmp(key, "in_place") == 0 ? "in-place" : "out-of-place");
	if (!json_is_object(h))
		return 0;
	const char *time = json_object_get(h, "time") ? "time" : "cpu_time";
	n->cpu_time = strcmp(time, "cpu_time") == 0;
	const double figure[3] = {json_figure(h, time, NAN), json_figure(h, "alg_bw", 0),
		json_figure(h, "bus_bw", 0)};
	if (!isfinite(c.size) || !json_object_get(h, time))
		return import_bad(im, "a result without size or time");
	if (fb_json_num(h, "nwrong", 0) > 0)
		return wrong_values(im, c.size, fb_json_num(h, "nwrong", 0));
	return add_nccl(im, n, &c, figure);
}

/*
 * How many ranks there were, where "nranks" does not say: version 2 lists the devices within
 * "config", and of each process the first alone.
 */
static int64_t json_ranks(const json_t *doc)
{
	const json_t *config = json_object_get(doc, "config"), *d;
	const json_t *devices = json_object_get(doc, "devices");
	double threads = fb_json_num(config, "nthreads", 1), gpus = fb_json_num(config, "ngpus", 1);
	double of_process = threads * gpus, n = 0;
	size_t i;
	json_array_foreach (devices ? devices : json_object_get(config, "devices"), i, d)
		n = fmax(n, fb_json_num(d, "rank", -1) + 1);
	if (of_process > 1)
		n = ceil(n / of_process) * of_process;
	return import_whole(fb_json_num(config, "nranks", n));
}

static void json_facts(struct nccl *n, const json_t *doc)
{
	const json_t *arg;
	size_t i;
	json_array_foreach (json_object_get(doc, "args"), i, arg)
		if (json_is_string(arg) && i == 0)
			find_test(n, json_string_value(arg));
	n->ranks = json_ranks(doc);
}

static int nccl_json(struct import *im, struct nccl *n)
{
	json_t *doc = fb_json_parse(im->at, strlen(im->at), im->file, im->e), *row;
	const json_t *results = json_object_get(doc, "results");
	size_t i;
	int rc = 0;
	if (!doc)
		return im->e->code;
	json_facts(n, doc);
	if (!json_is_array(results))
		rc = import_bad(im, "it has no results[]");
	else if (!n->test[0])
		rc = import_bad(im, "which test is it? Give --test");
	json_array_foreach (results, i, row) {
		im->line = (unsigned)i + 1;
		n->iters = fb_json_int(row, "actual_iterations", 0);
		struct nccl_case c = json_case(row, "");
		if (is_empty_again(n, &c))
			continue;
		if (rc == 0)
			rc = json_half(im, n, row, "out_of_place");
		if (rc == 0)
			rc = json_half(im, n, row, "in_place");
	}
	if (rc == 0 && fb_json_num(json_object_get(doc, "out_of_bounds"), "count", 0) > 0)
		rc = wrong_data(im, "out_of_bounds", "values of some size");
	json_decref(doc);
	return rc;
}

/* rccl-tests' "-Z json" names the library's calls. */
static const char *rccl_name(const char *call)
{
	static const struct {
		const char *call, *test;
	} names[] = {{"AllReduce", "all_reduce"}, {"AllGather", "all_gather"},
		{"ReduceScatter", "reduce_scatter"}, {"Broadcast", "broadcast"},
		{"Reduce", "reduce"}, {"AlltoAll", "alltoall"}, {"AllToAll", "alltoall"},
		{"AlltoAllv", "alltoallv"}, {"AllToAllv", "alltoallv"}, {"SendRecv", "sendrecv"},
		{"Gather", "gather"}, {"Scatter", "scatter"}, {"HyperCube", "hypercube"}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(call, names[i].call) == 0)
			return names[i].test;
	return call;
}

/* rccl-tests' "-Z json": an array with a member for each size and placement, times in us. */
static int rccl_json(struct import *im, struct nccl *n)
{
	json_t *doc = fb_json_parse(im->at, strlen(im->at), im->file, im->e), *row;
	size_t i;
	int rc = doc ? 0 : im->e->code;
	double wrong;
	json_array_foreach (doc, i, row) {
		struct nccl_case c = json_case(
			row, fb_json_int(row, "inPlace", 0) ? "in-place" : "out-of-place");
		const double figure[3] = {json_figure(row, "time", NAN),
			json_figure(row, "algBw", 0), json_figure(row, "busBw", 0)};
		im->line = (unsigned)i + 1;
		snprintf(n->test, sizeof(n->test), "%.40s",
			rccl_name(fb_json_str(row, "name", im->test ? im->test : "unknown")));
		n->ranks = fb_json_int(row, "ranks", 0);
		if (!isfinite(c.size) || !json_object_get(row, "time"))
			rc = import_bad(im, "a result without size or time");
		else if (import_number(fb_json_str(row, "wrong", "N/A"), &wrong) && wrong > 0)
			rc = wrong_values(im, c.size, wrong);
		else
			rc = add_nccl(im, n, &c, figure);
		if (rc != 0)
			break;
	}
	json_decref(doc);
	return rc;
}

int import_nccl_tests(struct import *im)
{
	struct nccl n = {.params = json_object()};
	const char *at = im->at + strspn(im->at, " \t\r\n");
	int rc;
	if (im->test)
		snprintf(n.test, sizeof(n.test), "%.40s", im->test);
	if (*at == '[' && at[1 + strspn(at + 1, " \t\r\n")] == '{')
		rc = rccl_json(im, &n);
	else
		rc = *at == '{' ? nccl_json(im, &n) : nccl_text(im, &n);
	json_decref(n.params);
	return rc;
}

/* ---- OSU ------------------------------------------------------------------------------------- */

struct osu_column {
	char metric[24];
	const char *unit;
	bool lower;
	double scale;
};

struct osu {
	char test[64];     /* "MPI_Allreduce_Latency" */
	char datatype[32]; /* "MPI_CHAR"; "": not told */
	struct osu_column column[MAX_FIELDS];
	size_t n;                      /* columns behind the size; 0: no header yet */
	size_t iterations, validation; /* which of them these are, from 1; 0: none */
	bool size;                     /* is there a size before them? */
	json_t *params;
};

/* "# OSU MPI Allreduce Latency Test v7.2"; some builds write it without "#". */
static bool osu_title(struct osu *o, const char *line)
{
	const char *from = strstr(line, "OSU "), *end = from ? strstr(from, " Test") : NULL;
	size_t k = 0;
	if (!end || strspn(line, "# \t") != (size_t)(from - line))
		return false;
	for (from += 4; from < end && k + 1 < sizeof(o->test); from++)
		o->test[k++] = *from == ' ' || *from == '/' ? '_' : *from;
	o->test[k] = '\0';
	o->n = 0;
	o->datatype[0] = '\0';
	json_object_clear(o->params);
	return true;
}

/* "# Datatype: MPI_INT.", "# [ pairs: 4 ] [ window size: 64 ]", and what one-sided tests tell */
static bool osu_setting(struct osu *o, const char *line)
{
	static const struct {
		const char *text, *key;
	} known[] = {{"Datatype: ", "dtype"}, {"[ pairs: ", "pairs"}, {"[ window size: ", "window"},
		{"Window creation: ", "window_creation"}, {"Synchronization: ", "synchronization"}};
	bool any = false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *at = strstr(line, known[i].text);
		char word[32];
		double v;
		if (!at)
			continue;
		at += strlen(known[i].text);
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ". ]\t"), at);
		if (import_number(word, &v))
			fb_json_set_int(o->params, known[i].key, import_whole(v));
		else
			fb_json_set_str(o->params, known[i].key, word);
		if (i == 0) /* before the header, or behind it in release 7.2 */
			snprintf(o->datatype, sizeof(o->datatype), "%s", word);
		any = true;
	}
	return any;
}

/* "P99 Tail Lat(us)" -> "latency_p99"; "P50 Tail BW(MB/s)" -> "bandwidth_p50" */
static bool osu_tail(const char *text, struct osu_column *c)
{
	char *end;
	double q = *text == 'P' ? strtod(text + 1, &end) : NAN;
	if (*text != 'P' || end == text + 1 || !(q > 0) ||
		!strstr(end, "(us)") == !strstr(end, "MB/s"))
		return false;
	if (strstr(end, "(us)"))
		*c = (struct osu_column){"", "ns", true, 1e3};
	else
		*c = (struct osu_column){"", "bytes/s", false, 1e6};
	if (c->lower && q == 50)
		snprintf(c->metric, sizeof(c->metric), "latency_median");
	else
		snprintf(c->metric, sizeof(c->metric), "%s_p%g", c->lower ? "latency" : "bandwidth",
			q);
	return true;
}

/* What a column holds; a metric of "": nothing that is kept. */
static struct osu_column osu_kind(const char *text)
{
	static const struct {
		const char *text;
		struct osu_column column;
	} known[] = {{"Messages/s", {"message_rate", "1/s", false, 1}},
		{"MB/s", {"bandwidth", "bytes/s", false, 1e6}},
		{"Overlap", {"overlap", "share", false, 0.01}},
		{"Min Latency", {"latency_min", "ns", true, 1e3}},
		{"Max Latency", {"latency_max", "ns", true, 1e3}},
		{"Latency", {"latency_mean", "ns", true, 1e3}},
		{"Min Comm", {"latency_min", "ns", true, 1e3}},
		{"Max Comm", {"latency_max", "ns", true, 1e3}},
		{"Pure Comm", {"latency_mean", "ns", true, 1e3}},
		{"Overall", {"overall_mean", "ns", true, 1e3}},
		{"Compute", {"compute_mean", "ns", true, 1e3}}};
	struct osu_column c = {"", "", false, 0};
	if (osu_tail(text, &c))
		return c;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(text, known[i].text))
			return known[i].column;
	return c;
}

/*
 * "# Size   Avg Latency(us)   Min Latency(us)", without a size of what has none (barriers). A
 * column ends behind its unit's bracket, or where two blanks follow.
 */
static bool osu_header(struct osu *o, const char *line)
{
	const char *s = line + strspn(line, "# \t");
	bool size = strncmp(s, "Size", 4) == 0 && strchr(" \t", s[4]);
	if (!size && strncmp(s, "Avg Latency(us)", 15) != 0 &&
		strncmp(s, "Latency (us)", 12) != 0 && strncmp(s, "Overall(us)", 11) != 0)
		return false;
	s += size ? 4 : 0;
	o->n = o->iterations = o->validation = 0;
	o->size = size;
	while (*s && o->n < MAX_FIELDS) {
		char text[64];
		s += strspn(s, " \t");
		const char *end = s;
		while (*end && *end != '\t' && !(end[0] == ' ' && strchr(" \t", end[1])) &&
			!(end > s && end[-1] == ')'))
			end++;
		if (end == s)
			break;
		snprintf(text, sizeof(text), "%.*s", (int)(end - s), s);
		o->column[o->n++] = osu_kind(text);
		if (strncmp(text, "Iterations", 10) == 0)
			o->iterations = o->n;
		if (strncmp(text, "Validation", 10) == 0)
			o->validation = o->n;
		s = end;
	}
	return true;
}

static int osu_add(
	struct import *im, struct osu *o, const char *name, size_t i, double v, double iterations)
{
	const struct osu_column *c = &o->column[i];
	struct import_value value = {.name = name,
		.metric = c->metric,
		.unit = c->unit,
		.lower = c->lower,
		.value = v * c->scale,
		.samples = iterations,
		.params = o->params,
		.definition = strstr(c->metric, "_p") || strstr(c->metric, "median")
				      ? "a percentile over iterations, OSU micro-benchmarks"
				      : "a mean over iterations, OSU micro-benchmarks"};
	/* No work was done at a rate of 0: it was not measured. */
	return v == 0 && !c->lower && strcmp(c->unit, "share") != 0 ? 0 : import_add(im, &value);
}

static int osu_row(struct import *im, struct osu *o, char *line)
{
	char *cells[MAX_FIELDS + 1], **f = cells, name[140], type[48] = "", size_text[32] = "";
	double size = NAN, v, iterations = NAN;
	size_t k = import_fields(line, f, MAX_FIELDS + 1);
	bool sized = o->n == 0 || o->size;
	if (k < 1 || !import_number(f[0], &v) || (sized && k < 2))
		return 0;
	if (o->n == 0 && !import_number(f[1], &size))
		return 0; /* "2 nodes allocated": a job's own words before its output */
	if (o->n == 0)
		return import_bad(im, "figures without a header \"# Size ...\"");
	if (k != o->n + o->size)
		return import_bad(im, "%zu figures under %zu columns", k, o->n + o->size);
	if (o->size) {
		size = v;
		f++;
		snprintf(size_text, sizeof(size_text), "/%.0f", size);
		fb_json_set_int(o->params, "size", import_whole(size));
	}
	if (o->datatype[0] && strcmp(o->datatype, "MPI_CHAR") != 0)
		snprintf(type, sizeof(type), "/%s", o->datatype);
	snprintf(name, sizeof(name), "%s%s%s", o->test[0] ? o->test : "unknown", type, size_text);
	if (o->validation && strcasecmp(f[o->validation - 1], "Pass") != 0 &&
		strcmp(f[o->validation - 1], "-") != 0)
		return wrong_data(im, name, "the data");
	if (o->iterations && !import_number(f[o->iterations - 1], &iterations))
		return import_bad(im, "\"%.40s\" is no number", f[o->iterations - 1]);
	int rc = 0;
	for (size_t i = 0; i < o->n && rc == 0; i++) {
		if (!o->column[i].metric[0] || strcmp(f[i], "N/A") == 0)
			continue;
		if (!import_figure(f[i], &v))
			return import_bad(im, "\"%.40s\" is no number", f[i]);
		rc = osu_add(im, o, name, i, v, iterations);
	}
	return rc;
}

int import_osu(struct import *im)
{
	struct osu o = {.params = json_object()};
	char *line;
	int rc = 0;
	while (rc == 0 && (line = import_line(im)))
		if (!osu_title(&o, line) && !osu_header(&o, line) && !osu_setting(&o, line) &&
			line[0] != '#')
			rc = osu_row(im, &o, line);
	json_decref(o.params);
	return rc;
}
