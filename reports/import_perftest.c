// SPDX-License-Identifier: Apache-2.0
/*
 * perftest's text, and its JSON, which many releases write without quotes around the keys and some
 * of the values: it is read line by line as "key: value", which holds for the valid and the invalid
 * form. MB/sec are 2^20 bytes there, Gb/sec are 10^9 bits.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/import.h"

const char *const import_perftest_unknown[] = {"the samples and their order",
	"counters before and after", "how many warm-up iterations were dropped",
	"kernel, firmware and library versions", "what the other side saw", NULL};

/* What a column is called, and what it holds. */
static const struct column {
	const char *text, *json; /* header of the table; key of the JSON; NULL: not there */
	const char *metric, *unit, *definition;
	bool lower;
	double scale;
} columns[] = {
	{"BW peak[MB/sec]", NULL, "bandwidth_peak", "bytes/s",
		"perftest's peak, which may exceed the line rate", false, 1048576},
	{"BW peak[Gb/sec]", NULL, "bandwidth_peak", "bytes/s",
		"perftest's peak, which may exceed the line rate", false, 1e9 / 8},
	{"BW average[MB/sec]", NULL, "bandwidth", "bytes/s",
		"perftest's average, seen by the sender", false, 1048576},
	{"BW average[Gb/sec]", NULL, "bandwidth", "bytes/s",
		"perftest's average, seen by the sender", false, 1e9 / 8},
	{"MsgRate[Mpps]", "MsgRate", "message_rate", "1/s", "messages, not packets", false, 1e6},
	{"t_min[usec]", "t_min", "latency_min", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"t_max[usec]", "t_max", "latency_max", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"t_typical[usec]", "t_typical", "latency_median", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"t_avg[usec]", "t_avg", "latency_mean", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"99% percentile[usec]", "percentile_99", "latency_p99", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"99.9% percentile[usec]", "percentile_99.9", "latency_p99.9", "ns",
		"half a round trip (read, atomics: the whole)", true, 1e3},
	{"tps average", "tps_average", "transactions", "1/s", "round trips a second", false, 1},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

#define MAX_FIELDS 16

struct perftest {
	char test[48];       /* "RDMA_Write_BW" */
	char connection[16]; /* "RC" */
	json_t *params;
	const struct column *column[MAX_FIELDS]; /* behind bytes and iterations; NULL: not kept */
	size_t n_columns;
	bool json, gbits;
	double bytes, iterations; /* of the JSON object being read; NaN: not yet */
};

static void copy(char *to, size_t size, const char *from, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n && k + 1 < size; i++)
		to[k++] = from[i] == ' ' || from[i] == '/' ? '_' : from[i];
	to[k] = '\0';
}

/* "Key  : value   Other key : value" of the table of settings. The words that matter are known. */
static void setting(struct perftest *p, const char *line)
{
	static const struct {
		const char *text, *key;
		bool number;
	} known[] = {
		{"Connection type", "transport", false},
		{"Device", "device", false},
		{"Link type", "link_layer", false},
		{"Number of qps", "qps", true},
		{"TX depth", "tx_depth", true},
		{"CQ Moderation", "cq_moderation", true},
		{"Mtu", "mtu", true},
		{"GID index", "gid_index", true},
		{"Max inline data", "inline", true},
		{"Outstand reads", "outstanding_reads", true},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *at = strstr(line, known[i].text), *colon = at ? strchr(at, ':') : NULL;
		if (!colon)
			continue;
		char word[48];
		double v;
		colon += 1 + strspn(colon + 1, " \t");
		copy(word, sizeof(word), colon, strcspn(colon, " \t["));
		if (!known[i].number)
			fb_json_set_str(p->params, known[i].key, word);
		else if (import_number(word, &v))
			fb_json_set_int(p->params, known[i].key, import_whole(v));
		if (strcmp(known[i].key, "transport") == 0)
			snprintf(p->connection, sizeof(p->connection), "%.15s", word);
	}
}

/* "                    RDMA_Write BW Test" */
static bool title(struct perftest *p, const char *line)
{
	const char *from = line + strspn(line, " \t"), *end = strstr(from, " Test");
	if (!end || strspn(end + 5, " \t") != strlen(end + 5) || strchr(from, ':'))
		return false;
	copy(p->test, sizeof(p->test), from, (size_t)(end - from));
	return true;
}

/* The header's columns in the order in which they stand. */
static void header(struct perftest *p, const char *line)
{
	p->n_columns = 0;
	for (const char *s = line; *s && p->n_columns < MAX_FIELDS;) {
		const char *first = NULL;
		const struct column *found = NULL;
		for (size_t i = 0; i < N_COLUMNS; i++) {
			const char *at = strstr(s, columns[i].text);
			/* "99.9% percentile" ends like no other; "99% ..." is not part of it. */
			if (at && (!first || at < first)) {
				first = at;
				found = &columns[i];
			}
		}
		const char *stdev = strstr(s, "t_stdev[usec]");
		if (stdev && (!first || stdev < first)) {
			first = stdev;
			found = NULL;
		}
		if (!first)
			return;
		p->column[p->n_columns++] = found;
		s = first + (found ? strlen(found->text) : strlen("t_stdev[usec]"));
	}
}

static int add(struct import *im, struct perftest *p, const struct column *c, double value)
{
	char name[120];
	snprintf(name, sizeof(name), "%s/%s/%.0f", p->test[0] ? p->test : "unknown",
		p->connection[0] ? p->connection : "unknown", p->bytes);
	fb_json_set_int(p->params, "size", import_whole(p->bytes));
	struct import_value v = {.name = name,
		.metric = c->metric,
		.unit = c->unit,
		.lower = c->lower,
		.value = value * c->scale,
		.samples = p->iterations,
		.params = p->params,
		.definition = c->definition};
	return import_add(im, &v);
}

static int row(struct import *im, struct perftest *p, char *line)
{
	char *field[MAX_FIELDS + 2];
	double v;
	size_t n = import_fields(line, field, MAX_FIELDS + 2);
	if (n < 3 || !import_number(field[0], &p->bytes) ||
		!import_number(field[1], &p->iterations))
		return 0;
	if (p->n_columns == 0)
		return import_bad(im, "figures without a header \"#bytes #iterations ...\"");
	if (n != p->n_columns + 2)
		return import_bad(im, "%zu figures under %zu columns", n, p->n_columns + 2);
	int rc = 0;
	for (size_t i = 0; i < p->n_columns && rc == 0; i++) {
		if (!import_number(field[i + 2], &v))
			return import_bad(im, "\"%.40s\" is no number", field[i + 2]);
		if (p->column[i])
			rc = add(im, p, p->column[i], v);
	}
	return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Key and value of a line, without quotes, blanks and the comma. */
static bool pair(char *line, char **key, char **value)
{
	char *colon = strchr(line, ':');
	if (!colon)
		return false;
	*colon = '\0';
	*key = line + strspn(line, " \t{\"");
	for (size_t n = strlen(*key); n > 0 && strchr(" \t\"", (*key)[n - 1]); n--)
		(*key)[n - 1] = '\0';
	*value = colon + 1 + strspn(colon + 1, " \t\"");
	for (size_t n = strlen(*value); n > 0 && strchr(" \t\",}", (*value)[n - 1]); n--)
		(*value)[n - 1] = '\0';
	return **key != '\0';
}

static const struct column *json_column(const struct perftest *p, const char *key)
{
	static const struct column bandwidth[2] = {
		{NULL, "BW_average", "bandwidth", "bytes/s",
			"perftest's average, seen by the sender", false, 1048576},
		{NULL, "BW_average", "bandwidth", "bytes/s",
			"perftest's average, seen by the sender", false, 1e9 / 8}};
	static const struct column peak[2] = {
		{NULL, "BW_peak", "bandwidth_peak", "bytes/s",
			"perftest's peak, which may exceed the line rate", false, 1048576},
		{NULL, "BW_peak", "bandwidth_peak", "bytes/s",
			"perftest's peak, which may exceed the line rate", false, 1e9 / 8}};
	if (strcmp(key, "BW_average") == 0)
		return &bandwidth[p->gbits];
	if (strcmp(key, "BW_peak") == 0)
		return &peak[p->gbits];
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (columns[i].json && strcmp(columns[i].json, key) == 0)
			return &columns[i];
	return NULL;
}

static int json_line(struct import *im, struct perftest *p, char *line)
{
	char *key, *value;
	double v;
	if (!pair(line, &key, &value))
		return 0;
	if (strcmp(key, "test") == 0) {
		size_t n = strlen(value);
		/* "Send BW Test" or "Send_BW_Test" */
		if (n > 5 && strcmp(value + n - 4, "Test") == 0)
			n -= 5;
		copy(p->test, sizeof(p->test), value, n);
	} else if (strcmp(key, "Connection_type") == 0) {
		copy(p->connection, sizeof(p->connection), value, strlen(value));
		fb_json_set_str(p->params, "transport", p->connection);
	} else if (strcmp(key, "MsgSize") == 0) {
		if (!import_number(value, &p->bytes))
			return import_bad(im, "MsgSize \"%.40s\" is no number", value);
		p->iterations = NAN;
	} else if (strcmp(key, "n_iterations") == 0) {
		if (!import_number(value, &p->iterations))
			return import_bad(im, "n_iterations \"%.40s\" is no number", value);
	} else if (json_column(p, key)) {
		if (!import_number(value, &v))
			return import_bad(im, "%s \"%.40s\" is no number", key, value);
		if (!isfinite(p->bytes))
			return import_bad(im, "%s stands before MsgSize", key);
		return add(im, p, json_column(p, key), v);
	}
	return 0;
}

/* Which form is it? JSON opens with a brace, wherever perftest's own lines end. */
static bool is_json(const char *text)
{
	const char *at = strstr(text, "test_info");
	return at && strstr(at, "MsgSize");
}

int import_perftest(struct import *im)
{
	struct perftest p = {.params = json_object(), .bytes = NAN, .iterations = NAN};
	char *line;
	int rc = 0;
	p.json = is_json(im->at);
	/* The JSON does not say its unit: --report_gbits writes six digits, the other two. */
	const char *average = p.json ? strstr(im->at, "BW_average") : NULL;
	const char *dot = average ? strchr(average, '.') : NULL;
	p.gbits = dot && strspn(dot + 1, "0123456789") > 2;
	while (rc == 0 && (line = import_line(im))) {
		if (p.json) {
			rc = json_line(im, &p, line);
		} else if (strstr(line, "#bytes")) {
			header(&p, line);
		} else if (!title(&p, line)) {
			setting(&p, line);
			if (isdigit((unsigned char)line[strspn(line, " \t")]))
				rc = row(im, &p, line);
		}
	}
	json_decref(p.params);
	return rc;
}
