// SPDX-License-Identifier: Apache-2.0
/*
 * What can be claimed, with its units, sane limits and rule; and the way of a file through reading
 * and judging. A rule sees a row's subject and value, and the other rows; never an id.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/predict/claims_priv.h"

const char *const claim_verdict_names[] = {"possible", "impossible", "depends", "unsourced", NULL};

static const struct claim_unit tokens_units[] = {
	{"tok/s", 1}, {"tokens/s", 1}, {"ktok/s", 1e3}, {"Mtok/s", 1e6}, {NULL, 0}};
static const struct claim_unit flops_units[] = {{"TFLOP/s", 1}, {"TFLOPS", 1}, {"TFLOPs", 1},
	{"TFLOPs/s", 1}, {"GFLOP/s", 1e-3}, {"GFLOPS", 1e-3}, {"PFLOP/s", 1e3}, {"PFLOPS", 1e3},
	{NULL, 0}};
static const struct claim_unit percent_units[] = {
	{"%", 1}, {"percent", 1}, {"fraction", 100}, {NULL, 0}};
static const struct claim_unit points_units[] = {{"points", 1}, {"pp", 1}, {"%", 1}, {NULL, 0}};
static const struct claim_unit bool_units[] = {{"bool", 1}, {"yes/no", 1}, {NULL, 0}};
static const struct claim_unit times_units[] = {{"x", 1}, {"times", 1}, {NULL, 0}};
static const struct claim_unit memory_units[] = {
	{"GB", 1}, {"GiB", 1.073741824}, {"MB", 1e-3}, {"TB", 1e3}, {NULL, 0}};
static const struct claim_unit time_units[] = {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {NULL, 0}};
static const struct claim_unit rate_units[] = {{"GB/s", 1}, {"Gb/s", 0.125}, {"Gbit/s", 0.125},
	{"Gbps", 0.125}, {"TB/s", 1e3}, {"Tb/s", 125}, {"MB/s", 1e-3}, {NULL, 0}};
static const struct claim_unit often_units[] = {{"%", 1}, {"percent", 1}, {"fraction", 100},
	{"ppm", 1e-4}, {"1/h", 1}, {"1/day", 1}, {"per hour", 1}, {"per day", 1}, {"per month", 1},
	{"per 1000 node-days", 1}, {NULL, 0}};

const struct claim_quantity claim_quantities[] = {
	{"tokens_per_gpu_per_s", "throughput", FORM_NUMBER, tokens_units, 1e-3, 1e9,
		claim_rule_tokens},
	{"tokens_per_s", "throughput", FORM_NUMBER, tokens_units, 1e-3, 1e13, claim_rule_tokens},
	{"tflops_per_gpu", "throughput", FORM_NUMBER, flops_units, 1e-3, 1e6, claim_rule_tflops},
	{"mfu", "mfu", FORM_NUMBER, percent_units, 1e-3, 1e3, claim_rule_mfu},
	{"hfu", "mfu", FORM_NUMBER, percent_units, 1e-3, 1e3, claim_rule_mfu},
	{"mfu_drop", "mfu", FORM_DROP, percent_units, 1e-3, 100, claim_rule_mfu_drop},
	{"mfu_effect_of_", "mfu", FORM_NUMBER, points_units, 0, 100, claim_rule_latency_effect},
	{"fits", "memory", FORM_BOOL, bool_units, 0, 1, claim_rule_fits},
	{"state_memory_reduction", "memory", FORM_NUMBER, times_units, 0.01, 1e6,
		claim_rule_state_reduction},
	{"state_memory_per_gpu", "memory", FORM_NUMBER, memory_units, 1e-3, 1e6,
		claim_rule_state_memory},
	{"inter_node_reduction_vs_", "traffic", FORM_NUMBER, percent_units, 0, 100,
		claim_rule_inter_node},
	{"communication_vs_", "traffic", FORM_NUMBER, times_units, 0.01, 1e4,
		claim_rule_communication},
	{"tail_latency", "latency", FORM_NUMBER, time_units, 1e-2, 1e7, claim_rule_latency},
	{"latency", "latency", FORM_NUMBER, time_units, 1e-2, 1e7, claim_rule_latency},
	{"gpu_bandwidth_bidirectional", "bandwidth", FORM_NUMBER, rate_units, 1e-2, 1e6,
		claim_rule_gpu_bandwidth},
	{"gpu_bandwidth_unidirectional", "bandwidth", FORM_NUMBER, rate_units, 1e-2, 1e6,
		claim_rule_gpu_bandwidth_one_way},
	{"memory_bandwidth", "bandwidth", FORM_NUMBER, rate_units, 1e-2, 1e6,
		claim_rule_memory_bandwidth},
	{"nic_bandwidth", "bandwidth", FORM_NUMBER, rate_units, 1e-3, 1e5, claim_rule_nic},
	{"rate", "rate", FORM_NUMBER, often_units, 0, 1e6, claim_rule_rate},
	{NULL, NULL, FORM_NUMBER, NULL, 0, 0, NULL},
};

/* ---- words ----------------------------------------------------------------------------------- */

void claim_say(struct claim *c, const char *fmt, ...)
{
	va_list ap;
	if (c->why.len > 0)
		fb_strbuf_add(&c->why, " ");
	va_start(ap, fmt);
	fb_strbuf_vprintf(&c->why, fmt, ap);
	va_end(ap);
}

void claim_set(struct claim *c, enum claim_verdict v, double factor_pct)
{
	c->verdict = v;
	c->factor = factor_pct;
}

void claim_empty(struct claim *c, enum claim_col col, const char *needed)
{
	claim_set(c, CLAIM_DEPENDS, NAN);
	claim_say(c, "Column %s is empty: %s.", claim_col_names[col], needed);
}

const char *claim_num(char *buf, size_t len, int digits, double v)
{
	char whole[40];
	size_t used = 0;
	if (!isfinite(v) || fabs(v) >= 1e15) {
		snprintf(buf, len, "%.*g", digits, v);
		return buf;
	}
	if (fabs(v) < 999.5) {
		snprintf(buf, len, "%.*g", digits, v);
		return buf;
	}
	snprintf(whole, sizeof(whole), "%.0f", fabs(v));
	size_t n = strlen(whole);
	if (v < 0 && len > 1)
		buf[used++] = '-';
	for (size_t i = 0; i < n && used + 2 < len; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf[used++] = ',';
		buf[used++] = whole[i];
	}
	buf[used] = '\0';
	return buf;
}

bool claim_met(const struct claim *c, double v, double slack)
{
	double room = fabs(c->value) * slack;
	if (c->sense == SENSE_AT_LEAST)
		return v >= c->value - room;
	return fabs(v - c->value) <= room;
}

/* ---- reading and judging --------------------------------------------------------------------- */

static struct claim *new_row(struct claims *all)
{
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 32;
		struct claim *row = realloc(all->row, room * sizeof(*row));
		if (!row)
			return NULL;
		all->row = row;
		all->room = room;
	}
	return &all->row[all->n];
}

static int keep_error(struct claims *all, const struct fb_err *why)
{
	if (all->nerrors == all->error_room) {
		size_t room = all->error_room ? 2 * all->error_room : 8;
		struct fb_err *list = realloc(all->error, room * sizeof(*list));
		if (!list)
			return -ENOMEM;
		all->error = list;
		all->error_room = room;
	}
	all->error[all->nerrors++] = *why;
	return 0;
}

static int no_memory(const char *name, struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the claims of %s", name);
}

static int read_rows(struct claims *all, struct csv *csv, const struct claim_header *h,
	struct csv_record *rec, struct fb_err *e)
{
	for (;;) {
		struct fb_err why = {0};
		if (all->n + all->nerrors >= CLAIMS_MAX_ROWS) {
			fb_fail(e, FB_EXIT_USAGE, EFBIG, "%s: more than %d rows", csv->name,
				CLAIMS_MAX_ROWS);
			fb_hint(e, "split the file");
			return -EFBIG;
		}
		int rc = csv_next(csv, rec, &why);
		if (rc == 0)
			return 0;
		struct claim *c = new_row(all);
		if (!c)
			return no_memory(csv->name, e);
		if (rc > 0)
			rc = claim_row_read(csv->name, h, rec, c, &why);
		if (rc == 0)
			all->n++;
		else if (rc == -ENOMEM || keep_error(all, &why) < 0)
			return no_memory(csv->name, e);
	}
}

static void judge_row(const struct claims *all, struct claim *c)
{
	if (c->unit_empty && isfinite(c->value)) {
		claim_empty(c, COL_UNIT, "a number without a unit says nothing");
		return;
	}
	if (!isfinite(c->value) && c->q->rule != claim_rule_latency_effect) {
		claim_empty(c, COL_VALUE, "nothing is claimed");
		return;
	}
	c->q->rule(all, c);
}

static int read_all(struct claims *all, struct csv *csv, struct csv_record *rec, struct fb_err *e)
{
	struct claim_header h = {.n = 0};
	int rc = csv_next(csv, rec, e);
	if (rc == 0) {
		fb_fail_usage(e, "%s: it is empty: not even a header", csv->name);
		fb_hint(e, "the first line names the columns, as in the claims' documentation");
		rc = -EINVAL;
	}
	if (rc > 0)
		rc = claim_header_read(csv, rec, &h, e);
	if (rc == 0)
		rc = read_rows(all, csv, &h, rec, e);
	return rc;
}

int claims_judge(
	const char *text, size_t len, const char *name, struct claims **out, struct fb_err *e)
{
	struct csv csv = {.name = name, .text = text, .len = len, .line = 1};
	struct csv_record *rec = malloc(sizeof(*rec));
	struct claims *all = calloc(1, sizeof(*all));
	if (!rec || !all) {
		free(rec);
		free(all);
		return no_memory(name, e);
	}
	int rc = read_all(all, &csv, rec, e);
	for (size_t i = 0; rc == 0 && i < all->n; i++) {
		judge_row(all, &all->row[i]);
		if (all->row[i].why.failed)
			rc = no_memory(name, e);
	}
	free(rec);
	if (rc < 0) {
		claims_free(all);
		return rc;
	}
	*out = all;
	return 0;
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		claim_row_free(&c->row[i]);
	free(c->row);
	free(c->error);
	free(c);
}

size_t claims_bad(const struct claims *c)
{
	return c->nerrors;
}

size_t claims_with(const struct claims *c, enum claim_verdict v)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		n += c->row[i].verdict == v;
	return n;
}

const struct fb_err *claims_error(const struct claims *c, size_t i)
{
	return &c->error[i];
}

json_t *claims_json(const struct claims *c)
{
	json_t *list = json_array();
	for (size_t i = 0; i < c->n; i++) {
		const struct claim *r = &c->row[i];
		json_t *o = json_object();
		char claimed[160] = "";
		bool unit = r->q->form != FORM_BOOL && *r->text[COL_UNIT];
		if (*r->text[COL_VALUE])
			snprintf(claimed, sizeof(claimed), "%.64s%s%.64s", r->text[COL_VALUE],
				unit ? " " : "", unit ? r->text[COL_UNIT] : "");
		fb_json_set_str(o, "id", r->text[COL_ID]);
		fb_json_set_int(o, "line", r->line);
		fb_json_set_str(o, "kind", r->q->kind);
		fb_json_set_str(o, "quantity", r->text[COL_QUANTITY]);
		fb_json_set_str(o, "claimed", claimed);
		if (*r->text[COL_SOURCE])
			fb_json_set_str(o, "source", r->text[COL_SOURCE]);
		fb_json_set_str(o, "verdict", claim_verdict_names[r->verdict]);
		fb_json_set_real(
			o, "factor_pct", round(100 * r->factor) / 100, "no one figure: see why");
		fb_json_set_str(o, "why", r->why.s ? r->why.s : "?");
		json_array_append_new(list, o);
	}
	return list;
}
