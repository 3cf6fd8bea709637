// SPDX-License-Identifier: Apache-2.0
/*
 * One row: texts into numbers, names into models, GPUs and strategies, the unit into a scale. What
 * is wrong is told with line, column, value and remedy; what is empty stays empty. No judgement.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/core/units.h"
#include "bench/predict/claims_priv.h"

const char *const claim_col_names[] = {"id", "kind", "model", "params", "gpu", "n_gpus",
	"gpus_per_node", "mem_gb", "seq_len", "tokens_per_gpu", "dtype", "strategy", "tp", "pp",
	"dp", "nic_gbps_per_gpu", "quantity", "value", "unit", "source", "quote", NULL};

/* ---- header ---------------------------------------------------------------------------------- */

static enum claim_col column_of(const char *name)
{
	for (int c = 0; c < COL_COUNT; c++)
		if (strcmp(name, claim_col_names[c]) == 0)
			return (enum claim_col)c;
	return COL_COUNT;
}

static int unknown_column(
	const struct csv *csv, const struct csv_record *r, const char *name, struct fb_err *e)
{
	char shown[96];
	for (int c = 0; c < COL_COUNT; c++) {
		if (fb_edit_distance(name, claim_col_names[c]) > 2 || strlen(name) < 5)
			continue;
		fb_fail_usage(e, "%s: line %u: the header has a column \"%s\"", csv->name, r->line,
			csv_shown(name, shown, sizeof(shown)));
		fb_hint(e, "write %s", claim_col_names[c]);
		return -EINVAL;
	}
	return 0; /* a table may hold notes of its own */
}

/* Without blanks at both ends; in place. */
static char *trim(char *s)
{
	s += strspn(s, " \t");
	size_t n = strlen(s);
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	s[n] = '\0';
	return s;
}

int claim_header_read(
	const struct csv *csv, const struct csv_record *r, struct claim_header *h, struct fb_err *e)
{
	static const enum claim_col needed[] = {
		COL_ID, COL_KIND, COL_QUANTITY, COL_VALUE, COL_UNIT};
	for (int c = 0; c < COL_COUNT; c++)
		h->at[c] = -1;
	h->n = r->n;
	for (size_t i = 0; i < r->n; i++) {
		char name[64];
		snprintf(name, sizeof(name), "%s", r->field[i]);
		const char *word = trim(name);
		enum claim_col c = column_of(word);
		if (c == COL_COUNT) {
			int rc = unknown_column(csv, r, word, e);
			if (rc < 0)
				return rc;
			continue;
		}
		if (h->at[c] >= 0)
			return fb_fail_usage(e, "%s: line %u: the header has column %s twice",
				csv->name, r->line, claim_col_names[c]);
		h->at[c] = (int)i;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (h->at[needed[i]] >= 0)
			continue;
		fb_fail_usage(e, "%s: line %u is no header of claims: it has no column %s",
			csv->name, r->line, claim_col_names[needed[i]]);
		fb_hint(e, "the first line names the columns: id,kind,model,params,gpu,n_gpus,"
			   "gpus_per_node,mem_gb,seq_len,tokens_per_gpu,dtype,strategy,tp,pp,dp,"
			   "nic_gbps_per_gpu,quantity,value,unit,source,quote");
		return -EINVAL;
	}
	return 0;
}

/* ---- a column's text ------------------------------------------------------------------------- */

struct row {
	const char *file;
	struct claim *c;
	struct fb_err *e;
};

static int FB_PRINTF(3, 4) bad(const struct row *r, enum claim_col col, const char *fmt, ...)
{
	char shown[96], why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return fb_fail_usage(r->e, "%s: line %u, column %s: \"%s\" %s", r->file, r->c->line,
		claim_col_names[col], csv_shown(r->c->text[col], shown, sizeof(shown)), why);
}

/* A whole text as a finite decimal number. */
static bool number(const char *s, double *v)
{
	char *end;
	if (*s == '\0' || s[strspn(s, "+-.0123456789eE")] != '\0')
		return false;
	*v = strtod(s, &end);
	return end != s && *end == '\0' && isfinite(*v);
}

static const struct {
	enum claim_col col;
	bool whole;
	double min, max;
	const char *what;
} numbers[] = {
	{COL_N_GPUS, true, 1, 1e7, "a number of GPUs"},
	{COL_GPUS_PER_NODE, true, 1, 1024, "a number of GPUs in a node"},
	{COL_MEM_GB, false, 1, 4096, "a GPU's memory in GB"},
	{COL_SEQ_LEN, true, 1, 1e8, "a sequence length in tokens"},
	{COL_TOKENS_PER_GPU, true, 1, 1e9, "a number of tokens per GPU and micro-batch"},
	{COL_TP, true, 1, 1024, "a degree of tensor parallelism"},
	{COL_PP, true, 1, 4096, "a degree of pipeline parallelism"},
	{COL_DP, true, 1, 1e7, "a number of data-parallel ranks"},
	{COL_NIC, false, 0.1, 1e5, "a NIC's rate in Gb/s per GPU"},
};
#define NNUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int read_number(const struct row *r, size_t i, double *out)
{
	const char *s = r->c->text[numbers[i].col];
	*out = NAN;
	if (!*s)
		return 0;
	if (number(s, out) && *out >= numbers[i].min && *out <= numbers[i].max &&
		(!numbers[i].whole || *out == floor(*out)))
		return 0;
	bad(r, numbers[i].col, "is not %s", numbers[i].what);
	fb_hint(r->e,
		"give a %snumber from %g to %g, without unit or separators, or leave it empty",
		numbers[i].whole ? "whole " : "", numbers[i].min, numbers[i].max);
	return -EINVAL;
}

static int read_numbers(const struct row *r)
{
	struct claim *c = r->c;
	double *const out[NNUMBERS] = {&c->n_gpus, &c->gpus_per_node, &c->mem_gb, &c->seq,
		&c->tokens, &c->tp, &c->pp, &c->dp, &c->nic_gbps};
	for (size_t i = 0; i < NNUMBERS; i++) {
		int rc = read_number(r, i, out[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* "70e9", "70553706496", "70B", "124M". */
static int read_params(const struct row *r)
{
	char text[64], *s = text;
	double v, scale = 1;
	r->c->params = NAN;
	if (!*r->c->text[COL_PARAMS])
		return 0;
	snprintf(text, sizeof(text), "%s", r->c->text[COL_PARAMS]);
	size_t n = strlen(text);
	static const char suffixes[] = "KMBT";
	const char *suffix = strchr(suffixes, text[n - 1]);
	if (suffix && *suffix) {
		scale = pow(1000, (double)(suffix - suffixes + 1));
		s = text;
		text[n - 1] = '\0';
		s = trim(s);
	}
	if (!number(s, &v) || v * scale < 1e4 || v * scale > 1e15) {
		bad(r, COL_PARAMS, "is not a count of parameters");
		fb_hint(r->e, "write all of them: 70553706496, 70e9 or 70B; from 1e4 to 1e15");
		return -EINVAL;
	}
	r->c->params = v * scale;
	return 0;
}

static int read_model(const struct row *r)
{
	struct claim *c = r->c;
	const char *nearest;
	int rc = read_params(r);
	if (rc < 0 || !*c->text[COL_MODEL])
		return rc;
	c->has_model = claim_model_find(c->text[COL_MODEL], &c->model, &nearest);
	if (!c->has_model) {
		if (isfinite(c->params))
			return 0; /* a name nobody knows, and its size: enough */
		bad(r, COL_MODEL, "is not a model this program knows");
		if (nearest)
			fb_hint(r->e, "did you mean %s? Else give its parameters in column params",
				nearest);
		else
			fb_hint(r->e, "give its parameters in column params (70e9), or one of "
				      "llama3-70b, llama2-70b, gpt3-175b, mpt-30b and their sizes");
		return -EINVAL;
	}
	double n = (double)model_params(&c->model);
	if (isfinite(c->params) && fabs(c->params / n - 1) > 0.1) {
		bad(r, COL_PARAMS, "contradicts column model: %s has %.4g parameters",
			c->model.name, n);
		fb_hint(r->e, "leave params empty, or leave model empty for one of your own");
		return -EINVAL;
	}
	c->params = n;
	return 0;
}

static int read_gpu(const struct row *r)
{
	struct claim *c = r->c;
	double named = NAN;
	if (!*c->text[COL_GPU])
		return 0;
	c->gpu = claim_gpu_find(c->text[COL_GPU], &named);
	if (!c->gpu) {
		struct fb_strbuf b = {0};
		bad(r, COL_GPU, "is not a GPU whose data sheet this program knows");
		claim_gpu_list(&b);
		fb_hint(r->e, "write one of %s", b.s ? b.s : "");
		fb_strbuf_free(&b);
		return -EINVAL;
	}
	if (isfinite(named) && isfinite(c->mem_gb) && fabs(named / c->mem_gb - 1) > 0.1) {
		bad(r, COL_MEM_GB, "contradicts column gpu, which states %g GB", named);
		fb_hint(r->e, "leave mem_gb empty, or name the GPU without a size");
		return -EINVAL;
	}
	if (!isfinite(c->mem_gb))
		c->mem_gb = named;
	return 0;
}

static bool dtype_of(const char *word, size_t n, enum claim_dtype *d)
{
	static const struct {
		const char *word;
		enum claim_dtype d;
	} words[] = {{"bf16", DTYPE_BF16}, {"bfloat16", DTYPE_BF16}, {"amp_bf16", DTYPE_BF16},
		{"fp16", DTYPE_F16}, {"float16", DTYPE_F16}, {"half", DTYPE_F16},
		{"mixed", DTYPE_F16}, {"amp", DTYPE_F16}, {"amp_fp16", DTYPE_F16},
		{"f16", DTYPE_F16}, {"fp32", DTYPE_F32}, {"float32", DTYPE_F32}, {"f32", DTYPE_F32},
		{"tf32", DTYPE_TF32}, {"fp8", DTYPE_F8}, {"float8", DTYPE_F8},
		{"amp_fp8", DTYPE_F8}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != n || strncasecmp(words[i].word, word, n) != 0)
			continue;
		*d = words[i].d;
		return true;
	}
	return false;
}

static int read_dtype(const struct row *r)
{
	struct claim *c = r->c;
	const char *s = c->text[COL_DTYPE], *slash = strchr(s, '/');
	size_t n = slash ? (size_t)(slash - s) : strlen(s);
	if (!*s)
		return 0;
	if (dtype_of(s, n, &c->work) &&
		(!slash || dtype_of(slash + 1, strlen(slash + 1), &c->reduce)))
		return 0;
	bad(r, COL_DTYPE, "is not a type of numbers");
	fb_hint(r->e,
		"write bf16, fp16, fp8, tf32 or fp32; with another type of reduced gradients: "
		"bf16/fp32");
	return -EINVAL;
}

static int read_strategy(const struct row *r)
{
	struct claim *c = r->c;
	const char *nearest;
	c->shard = NAN;
	if (!*c->text[COL_STRATEGY])
		return 0;
	if (!claim_scheme_find(c->text[COL_STRATEGY], &c->scheme, &c->shard, &nearest)) {
		bad(r, COL_STRATEGY, "is not a strategy%s%s", nearest ? "; did you mean " : "",
			nearest ? nearest : "");
		fb_hint(r->e,
			"write ddp, zero1, zero2, zero3, fsdp, shard-grad-op, hybrid:F, offload "
			"or megatron");
		return -EINVAL;
	}
	if (isfinite(c->shard) && isfinite(c->n_gpus) && fmod(c->n_gpus, c->shard) != 0) {
		bad(r, COL_STRATEGY, "cuts over %g ranks, which %g GPUs are no multiple of",
			c->shard, c->n_gpus);
		fb_hint(r->e, "F of hybrid:F divides n_gpus");
		return -EINVAL;
	}
	return 0;
}

static int check_degrees(const struct row *r)
{
	const struct claim *c = r->c;
	double product = (isfinite(c->tp) ? c->tp : 1) * (isfinite(c->pp) ? c->pp : 1) *
			 (isfinite(c->dp) ? c->dp : 1);
	/* A multiple is allowed: context parallelism has no column. */
	if (!isfinite(c->n_gpus) || fmod(c->n_gpus, product) == 0)
		return 0;
	bad(r, COL_N_GPUS, "is no multiple of tp x pp x dp = %g", product);
	fb_hint(r->e, "correct n_gpus, tp, pp or dp, or leave out what is not known");
	return -EINVAL;
}

/* ---- quantity, unit, value ------------------------------------------------------------------- */

static void list_quantities(struct fb_err *e, const char *kind)
{
	struct fb_strbuf b = {0};
	for (const struct claim_quantity *q = claim_quantities; q->name; q++)
		if (!*kind || strcmp(kind, q->kind) == 0)
			fb_strbuf_printf(&b, "%s%s%s", b.len ? ", " : "", q->name,
				q->name[strlen(q->name) - 1] != '_'      ? ""
				: strcmp(q->name, "mfu_effect_of_") == 0 ? "1.6us"
									 : "zero3");
	fb_hint(e, "this program judges: %s", b.s ? b.s : "?");
	fb_strbuf_free(&b);
}

/* "1.6us" as microseconds. */
static bool latency_arg(const char *s, double *us)
{
	static const struct {
		const char *unit;
		double scale;
	} units[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}};
	char text[32];
	size_t n = strlen(s);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (n < 3 || n >= sizeof(text) || strcmp(s + n - 2, units[i].unit) != 0)
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)(n - 2), s);
		if (!number(text, us) || *us <= 0 || *us * units[i].scale > 1e6)
			return false;
		*us *= units[i].scale;
		return true;
	}
	return false;
}

static const struct claim_quantity *quantity_named(const char *name, const char **rest)
{
	for (const struct claim_quantity *q = claim_quantities; q->name; q++) {
		size_t n = strlen(q->name);
		*rest = name + n;
		if (q->name[n - 1] == '_' ? strncmp(name, q->name, n) == 0 && name[n] != '\0'
					  : strcmp(name, q->name) == 0)
			return q;
	}
	*rest = "";
	return NULL;
}

static int check_kind(const struct row *r)
{
	const struct claim *c = r->c;
	const char *kind = c->text[COL_KIND];
	if (!*kind || strcmp(kind, c->q->kind) == 0)
		return 0;
	bad(r, COL_KIND, "is not the kind of %s", c->q->name);
	fb_hint(r->e, "write %s", c->q->kind);
	return -EINVAL;
}

static int read_quantity(const struct row *r)
{
	struct claim *c = r->c;
	const char *kind = c->text[COL_KIND], *name = c->text[COL_QUANTITY], *rest, *nearest;
	double f;
	enum claim_scheme s;
	c->base = "";
	if (!*name) {
		bad(r, COL_QUANTITY, "is empty: there is nothing to judge");
		list_quantities(r->e, kind);
		return -EINVAL;
	}
	c->q = quantity_named(name, &rest);
	size_t n = strlen(name);
	if (!c->q && (strcmp(kind, "rate") == 0 ||
			     (!*kind && n > 5 && strcmp(name + n - 5, "_rate") == 0)))
		c->q = quantity_named("rate", &rest); /* how often something happens */
	if (!c->q) {
		bad(r, COL_QUANTITY, "is not a quantity this program judges");
		list_quantities(r->e, "");
		return -EINVAL;
	}
	if (strcmp(c->q->name, "mfu_effect_of_") == 0) {
		if (!latency_arg(rest, &c->arg)) {
			bad(r, COL_QUANTITY, "holds no latency");
			fb_hint(r->e, "write mfu_effect_of_1.6us");
			return -EINVAL;
		}
	} else if (*rest) {
		c->base = rest;
		if (!claim_scheme_find(rest, &s, &f, &nearest)) {
			bad(r, COL_QUANTITY, "compares with no strategy this program knows");
			fb_hint(r->e, "write %s%s", c->q->name, nearest ? nearest : "zero3");
			return -EINVAL;
		}
	}
	return check_kind(r);
}

/* Words before or behind a unit or a value that make it a bound. */
static char *take_sense(char *s, enum claim_sense *sense)
{
	static const struct {
		const char *word;
		enum claim_sense sense;
	} words[] = {{"at most", SENSE_AT_MOST}, {"up to", SENSE_AT_MOST}, {"<=", SENSE_AT_MOST},
		{"<", SENSE_AT_MOST}, {"under", SENSE_AT_MOST}, {"at least", SENSE_AT_LEAST},
		{">=", SENSE_AT_LEAST}, {">", SENSE_AT_LEAST}, {"over", SENSE_AT_LEAST},
		{"~", SENSE_IS}, {"about", SENSE_IS}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word), len = strlen(s);
		if (strncasecmp(s, words[i].word, n) == 0) {
			*sense = words[i].sense;
			return trim(s + n);
		}
		if (len > n && s[len - n - 1] == ' ' &&
			strcasecmp(s + len - n, words[i].word) == 0) {
			*sense = words[i].sense;
			s[len - n] = '\0';
			return trim(s);
		}
	}
	return s;
}

static int read_unit(const struct row *r, double *scale)
{
	struct claim *c = r->c;
	char text[64];
	*scale = 1;
	snprintf(text, sizeof(text), "%s", c->text[COL_UNIT]);
	const char *unit = take_sense(text, &c->sense);
	if (!*unit) {
		c->unit_empty = c->q->form != FORM_BOOL;
		return 0;
	}
	for (const struct claim_unit *u = c->q->units; u->name; u++) {
		if (strcmp(unit, u->name) == 0) {
			*scale = u->scale;
			return 0;
		}
	}
	struct fb_strbuf b = {0};
	for (const struct claim_unit *u = c->q->units; u->name; u++)
		fb_strbuf_printf(&b, "%s%s", b.len ? ", " : "", u->name);
	bad(r, COL_UNIT, "is not a unit of %s", c->text[COL_QUANTITY]);
	fb_hint(r->e, "write one of: %s", b.s ? b.s : "?");
	fb_strbuf_free(&b);
	return -EINVAL;
}

static int read_bool(const struct row *r, const char *s)
{
	static const char *const yes[] = {"yes", "true", "1", NULL};
	static const char *const no[] = {"no", "false", "0", NULL};
	for (int i = 0; i < 3; i++) {
		if (strcasecmp(s, yes[i]) == 0 || strcasecmp(s, no[i]) == 0) {
			r->c->yes = strcasecmp(s, yes[i]) == 0;
			r->c->value = r->c->yes;
			return 0;
		}
	}
	bad(r, COL_VALUE, "is neither yes nor no");
	fb_hint(r->e, "write yes or no");
	return -EINVAL;
}

/* "55->20", also with blanks, an arrow or "to" between. */
static bool split_drop(char *s, char **from, char **to)
{
	static const char *const arrows[] = {"->", "\xe2\x86\x92", " to ", NULL};
	for (const char *const *a = arrows; *a; a++) {
		char *at = strstr(s, *a);
		if (!at)
			continue;
		*at = '\0';
		*from = trim(s);
		*to = trim(at + strlen(*a));
		return true;
	}
	return false;
}

static int absurd(const struct row *r)
{
	const struct claim_quantity *q = r->c->q;
	const struct claim_unit *u = q->units;
	bad(r, COL_VALUE, "is no value of %s", r->c->text[COL_QUANTITY]);
	if (q->form == FORM_DROP)
		fb_hint(r->e,
			"write what it was and what it becomes, as 55->20, both from %g to %g %s",
			q->min, q->max, u->name);
	else
		fb_hint(r->e, "give a decimal number from %g to %g %s, without unit or separators",
			q->min, q->max, u->name);
	return -EINVAL;
}

static bool sane(const struct claim_quantity *q, double v)
{
	return v >= q->min && v <= q->max;
}

static int read_value(const struct row *r, double scale)
{
	struct claim *c = r->c;
	char text[64], *from, *to;
	c->value = c->to = NAN;
	if (strlen(c->text[COL_VALUE]) >= sizeof(text))
		return absurd(r);
	snprintf(text, sizeof(text), "%s", c->text[COL_VALUE]);
	if (!text[0])
		return 0;
	if (c->q->form == FORM_BOOL)
		return read_bool(r, text);
	if (c->q->form == FORM_DROP) {
		if (!split_drop(text, &from, &to) || !number(from, &c->value) ||
			!number(to, &c->to) || !sane(c->q, c->value * scale) ||
			!sane(c->q, c->to * scale) || c->to >= c->value)
			return absurd(r);
		c->to *= scale;
	} else if (!number(take_sense(text, &c->sense), &c->value) ||
		   !sane(c->q, c->value * scale)) {
		return absurd(r);
	}
	c->value *= scale;
	return 0;
}

/* ---- the row --------------------------------------------------------------------------------- */

static int take_texts(
	const struct row *r, const struct claim_header *h, const struct csv_record *rec)
{
	for (int col = 0; col < COL_COUNT; col++) {
		char *s = strdup(h->at[col] >= 0 ? rec->field[h->at[col]] : "");
		if (!s)
			return fb_fail(r->e, FB_EXIT_UNMEASURED, ENOMEM,
				"no memory for the claims of %s", r->file);
		char *cut = trim(s);
		memmove(s, cut, strlen(cut) + 1);
		r->c->text[col] = s;
	}
	return 0;
}

int claim_row_read(const char *file, const struct claim_header *h, const struct csv_record *rec,
	struct claim *c, struct fb_err *e)
{
	const struct row r = {file, c, e};
	double scale;
	*c = (struct claim){.line = rec->line, .factor = NAN, .value = NAN, .to = NAN};
	if (rec->n != h->n) {
		char shown[96];
		const char *missing = "";
		for (int col = 0; col < COL_COUNT; col++)
			if (h->at[col] == (int)rec->n)
				missing = claim_col_names[col];
		fb_fail_usage(e, "%s: line %u, row \"%s\": it has %zu columns, the header %zu%s%s",
			file, rec->line, csv_shown(rec->field[0], shown, sizeof(shown)), rec->n,
			h->n, *missing ? "; the first that it lacks is " : "", missing);
		fb_hint(e,
			"write every comma, also between empty columns, and put a text that holds a "
			"comma in double quotes");
		return -EINVAL;
	}
	int rc = take_texts(&r, h, rec);
	if (rc == 0 && !*c->text[COL_ID]) {
		rc = bad(&r, COL_ID, "is empty");
		fb_hint(e, "give the row a name: verdicts are listed by it");
	}
	if (rc == 0)
		rc = read_quantity(&r);
	if (rc == 0)
		rc = read_numbers(&r);
	if (rc == 0)
		rc = read_model(&r);
	if (rc == 0)
		rc = read_gpu(&r);
	if (rc == 0)
		rc = read_dtype(&r);
	if (rc == 0)
		rc = read_strategy(&r);
	if (rc == 0)
		rc = check_degrees(&r);
	if (rc == 0)
		rc = read_unit(&r, &scale);
	if (rc == 0)
		rc = read_value(&r, scale);
	if (rc < 0)
		claim_row_free(c);
	return rc;
}

void claim_row_free(struct claim *c)
{
	for (int col = 0; col < COL_COUNT; col++) {
		free(c->text[col]);
		c->text[col] = NULL;
	}
	fb_strbuf_free(&c->why);
}
