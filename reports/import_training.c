// SPDX-License-Identifier: Apache-2.0
/*
 * Training logs of torchtitan and Megatron-LM: step time, tokens a second, loss, and MFU recomputed
 * from what the log measured, in a named convention, for logs count FLOPs each in their own way.
 * The first tenth of the steps, at least one and at most ten, is warm-up and left out; each figure
 * is the median of the others.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "reports/import.h"

const char *const import_training_unknown[] = {"the time of each part of a step",
	"how many FLOPs the framework counts for its own MFU", "counters, topology and clocks",
	"whether steps with a checkpoint or an evaluation are among them", NULL};

enum figure { STEP_NS, TOKENS_PER_GPU, FLOPS_PER_GPU, LOSS, FIGURES };

struct series {
	double *v[FIGURES];
	size_t n[FIGURES];
	double batch_tokens; /* of a step over all GPUs; NaN: not told */
	double step;         /* whose line was counted last; NaN: none, or not told */
	char of[48];         /* whose lines these are */
};

static int push(struct import *im, struct series *s, enum figure f, double value)
{
	if ((s->n[f] & (s->n[f] - 1)) == 0) {
		double *v = reallocarray(s->v[f], s->n[f] ? 2 * s->n[f] : 1, sizeof(*v));
		if (!v)
			return fb_fail(im->e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
		s->v[f] = v;
	}
	s->v[f][s->n[f]++] = value;
	return 0;
}

/*
 * The number behind "key:" or "key=", with thousands' commas, NaN for "nan".
 * @return what stands behind it; NULL: the key is not there, or no number behind it
 */
static const char *number_after(const char *line, const char *key, double *v)
{
	char word[40];
	for (const char *at = line; (at = strstr(at, key)); at++) {
		size_t k = 0;
		const char *s = at + strlen(key);
		/* "tps" is in "https:" too, "loss" in "aux_loss:". */
		if (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
			continue;
		s += strspn(s, " \t");
		if (*s != ':' && *s != '=')
			continue;
		s += 1 + strspn(s + 1, " \t");
		for (; *s && k + 1 < sizeof(word) && strchr("0123456789.,eE+-nNaAif", *s); s++)
			if (*s != ',')
				word[k++] = *s;
		word[k] = '\0';
		if (import_figure(word, v))
			return s;
	}
	return NULL;
}

/* Which step a line is of: "step: 10", "iteration      10/ 500", and NeMo's "global_step", which
 * does not begin anew with an epoch; NaN: it does not say. */
static double step_of(const char *line)
{
	const char *at = strstr(line, "iteration ");
	double v;
	if (number_after(line, "global_step", &v))
		return v;
	if (at) {
		char *end;
		v = strtod(at + 10, &end);
		return end > at + 10 && *end == '/' ? v : NAN;
	}
	return number_after(line, "step", &v) ? v : NAN;
}

/*
 * Every rank of a job may write into one log: only the first one's lines count. Where no launcher
 * says whose line it is, a step's first line does.
 */
static bool is_other_rank(const struct import *im, struct series *s, const char *line)
{
	double step = step_of(line), last = s->step;
	if (!s->of[0])
		snprintf(s->of, sizeof(s->of), "%s", im->from);
	if (strcmp(s->of, im->from) != 0)
		return true;
	s->step = step;
	return step == last;
}

static double median_after_warmup(const struct series *s, enum figure f, size_t *n)
{
	size_t skip = s->n[f] / 10;
	skip = skip < 1 ? 1 : skip > 10 ? 10 : skip;
	*n = s->n[f] > skip ? s->n[f] - skip : 0;
	if (*n == 0)
		return NAN;
	double *v = malloc(*n * sizeof(*v)), m;
	if (!v)
		return NAN;
	memcpy(v, s->v[f] + skip, *n * sizeof(*v));
	fb_sort(v, *n);
	m = fb_median_sorted(v, *n);
	free(v);
	return m;
}

static int add(struct import *im, json_t *params, const char *metric, const char *unit, bool lower,
	double value, size_t n, const char *definition)
{
	struct import_value v = {.name = "step",
		.metric = metric,
		.unit = unit,
		.lower = lower,
		.value = value,
		.samples = (double)n,
		.params = params,
		.definition = definition};
	return import_add(im, &v);
}

/*
 * MFU by 6N, and with attention by 6N + 12 L h s (Chowdhery et al., PaLM, 2022, appendix B), where
 * model and peak were given.
 */
static int add_mfu(struct import *im, json_t *params, double tokens, size_t n)
{
	const struct import_model *m = im->model;
	int rc = 0;
	if (!(m->params > 0) || !(m->peak > 0) || !isfinite(tokens))
		return 0;
	rc = add(im, params, "mfu_6n", "share", false, tokens * 6 * m->params / m->peak, n,
		"tokens/s of a GPU times 6N, over the data-sheet peak");
	if (rc == 0 && m->layers && m->hidden && m->seq) {
		double attention = 12.0 * (double)m->layers * (double)m->hidden * (double)m->seq;
		rc = add(im, params, "mfu_palm", "share", false,
			tokens * (6 * m->params + attention) / m->peak, n,
			"tokens/s of a GPU times (6N + 12 L h s), over the data-sheet peak");
	}
	return rc;
}

static int finish(struct import *im, struct series *s)
{
	static const struct {
		const char *metric, *unit, *definition;
		bool lower;
	} kinds[FIGURES] = {
		{"step_time", "ns", "median of the steps after warm-up", true},
		{"tokens_per_s", "1/s", "of one GPU, median of the steps after warm-up", false},
		{"framework_flops", "1/s", "FLOP/s of one GPU as the framework counts them", false},
		{"loss", "1", "of the last step", true},
	};
	json_t *params = json_object();
	size_t n, tokens_n = 0;
	double tokens = median_after_warmup(s, TOKENS_PER_GPU, &tokens_n);
	int rc = 0;
	if (im->model->ranks)
		fb_json_set_int(params, "ranks", import_whole(im->model->ranks));
	if (isfinite(s->batch_tokens))
		json_object_set_new(params, "batch_tokens", fb_json_real(s->batch_tokens));
	for (int f = 0; f < FIGURES && rc == 0; f++) {
		double v = f == LOSS ? s->n[LOSS] ? s->v[LOSS][s->n[LOSS] - 1] : NAN
				     : median_after_warmup(s, (enum figure)f, &n);
		/* A loss that ended as nan is told; without steps behind warm-up there is nothing.
		 */
		if (isfinite(v) || (f == LOSS && s->n[LOSS]))
			rc = add(im, params, kinds[f].metric, kinds[f].unit, kinds[f].lower, v,
				f == LOSS ? 1 : n, kinds[f].definition);
	}
	if (rc == 0)
		rc = add_mfu(im, params, tokens, tokens_n);
	json_decref(params);
	for (int f = 0; f < FIGURES; f++)
		free(s->v[f]);
	return rc;
}

/*
 * "step: 10  loss: 7.1  ...  tps: 5,123  tflops: 123.4  mfu: 12.3%": rates are of one GPU. Until
 * 2024 they were words: "wps".
 */
int import_torchtitan(struct import *im)
{
	struct series s = {.batch_tokens = NAN, .step = NAN};
	char *line;
	double v;
	int rc = 0;
	while (rc == 0 && (line = import_line(im))) {
		if (!strstr(line, "step:") || strstr(line, "validate step:") ||
			(!number_after(line, "tps", &v) && !number_after(line, "wps", &v)) ||
			is_other_rank(im, &s, line))
			continue;
		rc = isfinite(v) ? push(im, &s, TOKENS_PER_GPU, v) : 0;
		if (rc == 0 && number_after(line, "tflops", &v) && isfinite(v))
			rc = push(im, &s, FLOPS_PER_GPU, v * 1e12);
		if (rc == 0 && number_after(line, "loss", &v))
			rc = push(im, &s, LOSS, v);
	}
	return finish(im, &s) != 0 ? im->e->code : rc;
}

/* The first of several names that a figure has; a NULL name ends them. */
static bool first_of(const char *line, const char *const *names, double *v)
{
	for (; *names; names++)
		if (number_after(line, *names, v))
			return true;
	return false;
}

/* FLOP/s of one GPU, in the unit that the name or the letter behind the figure says. */
static bool flops_of(const char *line, double *v)
{
	static const char *const tera[] = {
		"throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "TFLOPS_per_GPU", NULL};
	static const char letters[] = "KMGTP";
	if (first_of(line, tera, v)) {
		*v *= 1e12;
		return isfinite(*v);
	}
	/* GPT-NeoX: "approx flops per GPU: 150.3TFLOPS" */
	const char *unit = number_after(line, "approx flops per GPU", v);
	const char *letter = unit && *unit ? strchr(letters, *unit) : NULL;
	if (letter && strncmp(unit + 1, "FLOPS", 5) == 0) {
		*v *= pow(1000, (double)(letter - letters + 1));
		return isfinite(*v);
	}
	return false;
}

static int megatron_line(struct import *im, struct series *s, const char *line, double seconds)
{
	static const char *const loss[] = {"lm loss", "reduced_train_loss", "lm_loss", NULL};
	static const char *const batch[] = {"global batch size", "global_batch_size", NULL};
	static const char *const tokens[] = {"tokens per gpu per second (tgs)",
		"tokens per GPU (tokens/s/GPU)", "tokens/sec/GPU", "tokens_per_sec_per_gpu", NULL};
	const struct import_model *m = im->model;
	double v;
	int rc = push(im, s, STEP_NS, seconds * 1e9);
	if (rc == 0 && flops_of(line, &v))
		rc = push(im, s, FLOPS_PER_GPU, v);
	if (rc == 0 && first_of(line, loss, &v))
		rc = push(im, s, LOSS, v);
	if (rc == 0 && m->seq && m->ranks && first_of(line, batch, &v) && v > 0) {
		s->batch_tokens = v * (double)m->seq;
		rc = push(im, s, TOKENS_PER_GPU, s->batch_tokens / (double)m->ranks / seconds);
	} else if (rc == 0 && first_of(line, tokens, &v) && isfinite(v)) {
		rc = push(im, s, TOKENS_PER_GPU, v);
	}
	return rc;
}

/*
 * Megatron-LM (and what DeepSpeed, GPT-NeoX and Primus made of it): " iteration 10/ 1000 | ... |
 * elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 400.1 | ... global
 * batch size: 1024 | lm loss: 7.1E+00 |"; BigScience's fork counts in "(s)". NeMo: "Training epoch
 * 0, iteration 9/99 | ... | global_batch_size: 512 | reduced_train_loss: 11.03 | train_step_timing
 * in s: 7.324".
 */
int import_megatron(struct import *im)
{
	struct series s = {.batch_tokens = NAN, .step = NAN};
	char *line;
	double v;
	int rc = 0;
	while (rc == 0 && (line = import_line(im))) {
		double seconds = NAN;
		if (number_after(line, "elapsed time per iteration (ms)", &v))
			seconds = v / 1e3;
		else if (number_after(line, "elapsed time per iteration (s)", &v))
			seconds = v;
		else if (number_after(line, "train_step_timing in s", &v))
			seconds = v;
		if (seconds > 0 && !is_other_rank(im, &s, line))
			rc = megatron_line(im, &s, line, seconds);
	}
	return finish(im, &s) != 0 ? im->e->code : rc;
}
