// SPDX-License-Identifier: Apache-2.0
/*
 * perftest's text, and its JSON, which many releases write without quotes around the keys and some
 * of the values: it is read as "key: value" and braces, which holds for the valid and the invalid
 * form. MB/sec are 2^20 bytes there (MiB/sec since release 23), Gb/sec are 10^9 bits.
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

#define HALF_TRIP "half a round trip (read, atomics: the whole)"

/* What a column is called, and what it holds. Of two that begin alike the longer stands first. */
static const struct column {
	const char *text, *json; /* header of the table; key of the JSON; NULL: not there */
	const char *metric, *unit, *definition; /* metric NULL: not kept */
	bool lower;
} columns[] = {
	{"BW peak", "BW_peak", "bandwidth_peak", "bytes/s",
		"perftest's peak, which may exceed the line rate", false},
	{"BW average", "BW_average", "bandwidth", "bytes/s",
		"perftest's average, seen by the sender", false},
	{"MsgRate", "MsgRate", "message_rate", "1/s", "messages, not packets", false},
	{"t_min", "t_min", "latency_min", "ns", HALF_TRIP, true},
	{"t_max", "t_max", "latency_max", "ns", HALF_TRIP, true},
	{"t_typical", "t_typical", "latency_median", "ns", HALF_TRIP, true},
	{"t_avg", "t_avg", "latency_mean", "ns", HALF_TRIP, true},
	{"99% percentile", "percentile_99", "latency_p99", "ns", HALF_TRIP, true},
	{"99.9% percentile", "percentile_99.9", "latency_p99.9", "ns", HALF_TRIP, true},
	{"tps average", "tps_average", "transactions", "1/s", "round trips a second", false},
	{"#bytes", "MsgSize", NULL, NULL, NULL, false},
	{"#iterations", "n_iterations", NULL, NULL, NULL, false},
	{"#sl", "sl", NULL, NULL, NULL, false},
	{"BW Port1", NULL, NULL, NULL, NULL, false},
	{"BW Port2", NULL, NULL, NULL, NULL, false},
	{"MsgRate Port1", NULL, NULL, NULL, NULL, false},
	{"MsgRate Port2", NULL, NULL, NULL, NULL, false},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
enum { PEAK, AVERAGE, RATE, BYTES = 10, ITERATIONS, LEVEL }; /* places in columns[] */

#define MIB        1048576.0
#define GBIT       (1e9 / 8)
#define MAX_FIELDS 20

struct perftest {
	char test[48];       /* "RDMA_Write_BW" */
	char connection[16]; /* "RC" */
	const char *side;    /* "/local", "/remote" of --report-both; else "" */
	json_t *params;
	struct {
		const struct column *what; /* NULL: a column that is not known */
		double scale;
	} column[MAX_FIELDS];
	size_t n_columns;
	/* of the row or the JSON object being read; NaN: not yet */
	double bytes, iterations, level;
	struct {
		double v;
		size_t decimals;
		bool set;
	} figure[N_COLUMNS];
	unsigned figure_line;
};

static void copy(char *to, size_t size, const char *from, size_t n)
{
	size_t k = 0;
	for (size_t i = 0; i < n && k + 1 < size; i++)
		to[k++] = from[i] == ' ' || from[i] == '/' ? '_' : from[i];
	to[k] = '\0';
}

/* ---- what was set ---------------------------------------------------------------------------- */

/* Settings that a comparison must know. */
static const struct setting {
	const char *text, *json, *key;
	bool number;
} settings[] = {
	{"Connection type", "Connection_type", "transport", false},
	{"Device", "Device", "device", false},
	{"Link type", "Link_type", "link_layer", false},
	{"Number of qps", "Number_of_qps", "qps", true},
	{"TX depth", "TX_depth", "tx_depth", true},
	{"Post List", "Post_List", "post_list", true},
	{"CQ Moderation", "CQ_Moderation", "cq_moderation", true},
	{"Mtu", "Mtu", "mtu", true},
	{"GID index", "GID_index", "gid_index", true},
	{"Max inline data", "Max_inline_data", "inline", true},
	{"Outstand reads", "Outstand_reads", "outstanding_reads", true},
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static void set(struct perftest *p, const struct setting *s, const char *value)
{
	char word[48];
	double v;
	copy(word, sizeof(word), value, strcspn(value, " \t["));
	if (!s->number)
		fb_json_set_str(p->params, s->key, word);
	else if (import_number(word, &v))
		fb_json_set_int(p->params, s->key, import_whole(v));
	if (strcmp(s->key, "transport") == 0)
		snprintf(p->connection, sizeof(p->connection), "%.15s", word);
}

/* "Key  : value   Other key : value" of the table of settings. */
static void setting_line(struct perftest *p, const char *line)
{
	for (size_t i = 0; i < N_SETTINGS; i++) {
		const char *at = strstr(line, settings[i].text);
		if (!at || (at > line && at[-1] != ' ' && at[-1] != '\t'))
			continue;
		/* "Using CUDA Device with ID: 0" is none. */
		at += strlen(settings[i].text);
		at += strspn(at, " \t");
		if (*at == ':')
			set(p, &settings[i], at + 1 + strspn(at + 1, " \t"));
	}
}

static void new_test(struct perftest *p)
{
	json_object_clear(p->params);
	p->connection[0] = '\0';
	p->side = "";
	p->n_columns = 0;
}

/* "                    RDMA_Write BW Test", and what --report-both writes above its parts. */
static bool title(struct perftest *p, const char *line)
{
	const char *from = line + strspn(line, " \t"), *end = strstr(from, " Test");
	if (strncmp(from, "Local results", 13) == 0 || strncmp(from, "Remote results", 14) == 0) {
		p->side = *from == 'L' ? "/local" : "/remote";
		return true;
	}
	if (!end || strspn(end + 5, " \t") != strlen(end + 5) || strchr(from, ':'))
		return false;
	new_test(p);
	copy(p->test, sizeof(p->test), from, (size_t)(end - from));
	return true;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void forget_figures(struct perftest *p)
{
	p->bytes = p->iterations = p->level = NAN;
	memset(p->figure, 0, sizeof(p->figure));
}

static int add(struct import *im, struct perftest *p, const struct column *c, double value)
{
	char name[140], level[24] = "";
	if (isfinite(p->level))
		snprintf(level, sizeof(level), "/sl%.0f", p->level);
	snprintf(name, sizeof(name), "%s%s/%s%s/%.0f", p->test[0] ? p->test : "unknown", p->side,
		p->connection[0] ? p->connection : "unknown", level, p->bytes);
	fb_json_set_int(p->params, "size", import_whole(p->bytes));
	if (isfinite(p->level))
		fb_json_set_int(p->params, "sl", import_whole(p->level));
	/* With -D there is no peak, and perftest prints 0: no rate was measured to be 0. */
	if (!c->lower && value == 0)
		return 0;
	struct import_value v = {.name = name,
		.metric = c->metric,
		.unit = c->unit,
		.lower = c->lower,
		.value = value,
		.samples = p->iterations,
		.params = p->params,
		.definition = c->definition};
	return import_add(im, &v);
}

/* The header's columns in the order in which they stand. */
static int header(struct import *im, struct perftest *p, const char *s)
{
	static const struct {
		const char *text;
		double scale;
	} units[] = {{"[MB/sec]", MIB}, {"[MiB/sec]", MIB}, {"[Gb/sec]", GBIT}, {"[usec]", 1e3},
		{"[nsec]", 1}, {"[Mpps]", 1e6}};
	p->n_columns = 0;
	for (s += strspn(s, " \t"); *s && p->n_columns < MAX_FIELDS; s += strspn(s, " \t")) {
		const struct column *found = NULL;
		size_t n = 0;
		for (size_t i = 0; i < N_COLUMNS; i++) {
			size_t len = strlen(columns[i].text);
			if (len > n && strncmp(s, columns[i].text, len) == 0) {
				found = &columns[i];
				n = len;
			}
		}
		s += found ? n : strcspn(s, " \t");
		n = *s == '[' ? strcspn(s, " \t") : 0;
		double scale = n > 0 ? NAN : 1;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (strlen(units[i].text) == n && strncmp(s, units[i].text, n) == 0)
				scale = units[i].scale;
		if (found && found->metric && !isfinite(scale)) {
			import_bad(
				im, "%s in %.*s: this unit is not known", found->text, (int)n, s);
			fb_hint(im->e, "perftest counts in cycles with -C: run it without");
			return im->e->code;
		}
		p->column[p->n_columns].what = found;
		p->column[p->n_columns++].scale = scale;
		s += n;
	}
	return 0;
}

static int row(struct import *im, struct perftest *p, char *line)
{
	char *field[MAX_FIELDS];
	double v[MAX_FIELDS];
	size_t n = import_fields(line, field, MAX_FIELDS);
	if (n < 3 || !import_number(field[0], &v[0]) || !import_number(field[1], &v[1]))
		return 0;
	if (p->n_columns == 0)
		return import_bad(im, "figures without a header \"#bytes #iterations ...\"");
	if (n != p->n_columns)
		return import_bad(im, "%zu figures under %zu columns", n, p->n_columns);
	forget_figures(p);
	for (size_t i = 0; i < n; i++) {
		const struct column *c = p->column[i].what;
		if (c && !import_figure(field[i], &v[i]))
			return import_bad(im, "\"%.40s\" is no number", field[i]);
		if (c == &columns[BYTES])
			p->bytes = v[i];
		else if (c == &columns[ITERATIONS])
			p->iterations = v[i];
		else if (c == &columns[LEVEL])
			p->level = v[i];
	}
	if (!isfinite(p->bytes))
		return import_bad(im, "\"%.40s\" is no message size", field[0]);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (p->column[i].what && p->column[i].what->metric)
			rc = add(im, p, p->column[i].what, v[i] * p->column[i].scale);
	return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

enum event { END, PAIR, OPEN, CLOSE };

struct pair {
	char key[64], value[128];
};

/* Up to a quote's end, or of a bare word up to one of `ends`; what does not fit is cut off. */
static const char *word(const char *s, const char *ends, char *buf, size_t size)
{
	bool quoted = *s == '"';
	s += quoted;
	size_t n = strcspn(s, quoted ? "\"\n" : ends), k = n;
	while (!quoted && k > 0 && strchr(" \t\r", s[k - 1]))
		k--;
	snprintf(buf, size, "%.*s", (int)(k < size ? k : size), s);
	return s + n + (quoted && s[n] == '"');
}

/* The next of "key: value", "key: {" and "}". Commas are not needed, and too many do no harm. */
static enum event next(struct import *im, struct pair *kv)
{
	const char *s = im->at;
	for (;;) {
		for (; *s && strchr(" \t\r\n,[]{:", *s); s++)
			im->line += *s == '\n';
		if (!*s || *s == '}') {
			im->at += s - im->at + (*s != '\0');
			return *s ? CLOSE : END;
		}
		s = word(s, ":{}\n,", kv->key, sizeof(kv->key));
		s += strspn(s, " \t");
		if (*s != ':')
			continue;
		s += 1 + strspn(s + 1, " \t");
		bool open = *s == '{' || *s == '[';
		if (!open)
			s = word(s, ",}\n", kv->value, sizeof(kv->value));
		im->at += s - im->at + open;
		return open ? OPEN : PAIR;
	}
}

/*
 * The JSON does not say whether it counts MiB/s or Gb/s (--report_gbits), but messages a second
 * times their size does: the two units are 119 apart, both directions together at most 4. Without
 * messages, six decimals tell: perftest writes them of Gb/s alone.
 * @return bytes/s of one unit; NaN: not to be told
 */
static double json_unit(const struct perftest *p)
{
	double v = p->figure[AVERAGE].v > 0 ? p->figure[AVERAGE].v : p->figure[PEAK].v;
	double bytes = p->figure[RATE].v * 1e6 * p->bytes;
	if (v > 0 && bytes > 0)
		return bytes / v > sqrt(MIB * GBIT) ? GBIT : MIB;
	if (p->figure[AVERAGE].decimals > 2)
		return GBIT;
	return v > 0 ? NAN : MIB; /* 0 is 0 in both */
}

/* Keys stand in any order: the figures of an object become results at its end. */
static int json_results(struct import *im, struct perftest *p)
{
	double scale = json_unit(p);
	unsigned end = im->line;
	int rc = 0;
	for (size_t i = 0; i < N_COLUMNS && rc == 0; i++) {
		const struct column *c = &columns[i];
		if (!p->figure[i].set)
			continue;
		im->line = p->figure_line;
		if (!isfinite(p->bytes))
			return import_bad(im, "%s without MsgSize", c->json);
		if ((i == PEAK || i == AVERAGE) && !isfinite(scale)) {
			import_bad(im, "%s without MsgRate: MiB/s or Gb/s?", c->json);
			fb_hint(im->e, "give the text that the same run printed");
			return im->e->code;
		}
		rc = add(im, p, c,
			p->figure[i].v * (i == PEAK || i == AVERAGE      ? scale
						 : i == RATE             ? 1e6
						 : strcmp(c->unit, "ns") ? 1
									 : 1e3));
	}
	forget_figures(p);
	im->line = end;
	return rc;
}

static void json_setting(struct perftest *p, const struct pair *kv)
{
	size_t n = strlen(kv->value);
	/* "Send BW Test" or "Send_BW_Test" */
	if (strcmp(kv->key, "test") == 0)
		copy(p->test, sizeof(p->test), kv->value,
			n > 5 && strcmp(kv->value + n - 4, "Test") == 0 ? n - 5 : n);
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (strcmp(kv->key, settings[i].json) == 0)
			set(p, &settings[i], kv->value);
}

static int json_pair(struct import *im, struct perftest *p, const struct pair *kv)
{
	double v;
	json_setting(p, kv);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (!columns[i].json || strcmp(kv->key, columns[i].json) != 0)
			continue;
		if (!import_figure(kv->value, &v))
			return import_bad(im, "%s \"%.40s\" is no number", kv->key, kv->value);
		int rc = i == BYTES && isfinite(p->bytes) ? json_results(im, p) : 0;
		if (i == BYTES)
			p->bytes = v;
		else if (i == ITERATIONS)
			p->iterations = v;
		else if (i == LEVEL)
			p->level = v;
		else {
			const char *dot = strchr(kv->value, '.');
			p->figure[i].v = v;
			p->figure[i].set = true;
			p->figure[i].decimals = dot ? strspn(dot + 1, "0123456789") : 0;
			p->figure_line = im->line;
		}
		return rc;
	}
	return 0;
}

/* Tools that sort keys put the results before what was tested. */
static void look_ahead(struct import *im, struct perftest *p)
{
	struct import ahead = *im;
	struct pair kv;
	for (enum event what = OPEN; what != END;) {
		what = next(&ahead, &kv);
		if (what == PAIR)
			json_setting(p, &kv);
	}
}

static int read_json(struct import *im, struct perftest *p)
{
	struct pair kv;
	int rc = 0;
	if (strstr(im->at, "MsgSize") < strstr(im->at, "test_info"))
		look_ahead(im, p);
	im->line = 1;
	for (enum event what = OPEN; what != END && rc == 0;) {
		what = next(im, &kv);
		if (what == PAIR)
			rc = json_pair(im, p, &kv);
		else if (what != OPEN)
			rc = json_results(im, p);
		else if (strcmp(kv.key, "test_info") == 0)
			new_test(p);
		else if (strncmp(kv.key, "results", 7) == 0)
			p->side = strcmp(kv.key + 7, "_local") == 0    ? "/local"
				  : strcmp(kv.key + 7, "_remote") == 0 ? "/remote"
								       : "";
	}
	return rc;
}

/* "--output=bandwidth" prints one figure, and nothing of what it is. */
static int bare_figure(struct import *im, const char *what)
{
	im->line = im->line ? im->line : 1;
	import_bad(im, "\"%.40s\" stands alone: of which test, size and unit?", what);
	fb_hint(im->e, "run perftest without --output");
	return im->e->code;
}

static bool is_bare(const char *s)
{
	char word[48];
	double v;
	size_t n = strcspn(s, " \t");
	snprintf(word, sizeof(word), "%.*s", (int)n, s);
	return strchr(word, '.') && import_number(word, &v) && s[n + strspn(s + n, " \t")] == '\0';
}

static int read_text(struct import *im, struct perftest *p)
{
	char *line, bare[48] = "";
	unsigned bare_line = 0;
	size_t before = json_array_size(im->results);
	int rc = 0;
	while (rc == 0 && (line = import_line(im))) {
		const char *s = line + strspn(line, " \t");
		if (strncmp(s, "#flows", 6) == 0) {
			rc = import_bad(im, "rates of steering rules (raw_ethernet_fs_rate) are "
					    "not imported");
		} else if (!bare[0] && is_bare(s)) {
			snprintf(bare, sizeof(bare), "%s", s);
			bare_line = im->line;
		} else if (strncmp(s, "#bytes", 6) == 0) {
			rc = header(im, p, s);
		} else if (!title(p, line)) {
			setting_line(p, line);
			if (isdigit((unsigned char)*s))
				rc = row(im, p, line);
		}
	}
	if (rc != 0 || !bare[0] || json_array_size(im->results) > before)
		return rc;
	im->line = bare_line;
	return bare_figure(im, bare);
}

/* Which form is it? JSON opens with a brace, wherever perftest's own lines end. */
static bool is_json(const char *text)
{
	return strstr(text, "test_info") && strstr(text, "MsgSize");
}

/* The JSON of --output holds one figure too: its key, or NULL. */
static const char *bare_key(const char *text)
{
	static const char *const keys[] = {"bw_avg", "msgRate_avg", "avg_lat"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && strstr(text, "test_info"); i++)
		if (strstr(text, keys[i]))
			return keys[i];
	return NULL;
}

int import_perftest(struct import *im)
{
	struct perftest p = {.params = json_object(), .side = ""};
	forget_figures(&p);
	int rc = is_json(im->at)    ? read_json(im, &p)
		 : bare_key(im->at) ? bare_figure(im, bare_key(im->at))
				    : read_text(im, &p);
	json_decref(p.params);
	return rc;
}
