// SPDX-License-Identifier: Apache-2.0
/*
 * What a training run's result says besides its value: the model and its FLOPs, MFU against two
 * denominators, where the time went, and counts beside their closed forms. Keys are described in
 * reports/schema.json.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/train/train_priv.h"

static int ranks_of(const struct train_state *s)
{
	return s->j->step.ranks;
}

/* ---- counted against closed form ------------------------------------------------------------- */

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

bool train_differs(const struct train_state *s, char *why, size_t len)
{
	struct step_bytes bytes;
	struct step_memory memory;
	double linear, attn;
	step_bytes(&s->j->step, &bytes);
	step_memory(&s->j->step, &memory);
	train_formula_flops(s->j, &linear, &attn);
	for (int r = 0; r < ranks_of(s); r++) {
		const struct rank_facts *f = &s->all[r];
		for (int k = 0; k < BYTES_KINDS; k++) {
			double form = measure_bytes_formula(&bytes, (enum measure_bytes)k);
			if (near(f->bytes[k], form) && f->steady)
				continue;
			snprintf(why, len,
				"rank %d sent %.0f bytes of %s in a step, by formula %.0f", r,
				f->bytes[k], measure_bytes_names[k], form);
			return true;
		}
		for (int k = 0; k < MEASURE_MEMORY_KINDS; k++) {
			double form = measure_memory_of(&memory, k);
			if (near(measure_memory_of(&f->memory, k), form))
				continue;
			snprintf(why, len, "rank %d holds %.0f bytes of %s, by formula %.0f", r,
				measure_memory_of(&f->memory, k), measure_memory_names[k], form);
			return true;
		}
		if (!near(f->linear_flops, linear) || !near(f->attn_flops, attn)) {
			snprintf(why, len,
				"rank %d computed %.6g + %.6g FLOPs, by formula %.6g + %.6g", r,
				f->linear_flops, f->attn_flops, linear, attn);
			return true;
		}
	}
	return false;
}

static json_t *beside(double counted, double formula)
{
	json_t *j = json_object();
	fb_json_set_real(j, "counted", counted, "not counted");
	fb_json_set_real(j, "formula", formula, "no formula");
	fb_json_set_bool(j, "equal", near(counted, formula));
	return j;
}

static json_t *bytes_json(const struct train_state *s)
{
	struct step_bytes form;
	json_t *j = json_object(), *kinds = json_object(), *tiers = json_object();
	double node = 0, rack = 0, far = 0;
	bool equal = true;
	step_bytes(&s->j->step, &form);
	for (int k = 0; k < BYTES_KINDS; k++) {
		double want = measure_bytes_formula(&form, (enum measure_bytes)k);
		json_object_set_new(
			kinds, measure_bytes_names[k], beside(s->all[0].bytes[k], want));
		for (int r = 0; r < ranks_of(s); r++)
			equal = equal && s->all[r].steady && near(s->all[r].bytes[k], want);
	}
	for (int r = 0; r < ranks_of(s); r++) {
		node += s->all[r].node_bytes;
		rack += s->all[r].rack_bytes;
		far += s->all[r].far_bytes;
	}
	json_object_set_new(j, "kinds", kinds);
	fb_json_set_bool(j, "equal_on_all_ranks", equal);
	fb_json_set_real(tiers, "node", node, NULL);
	fb_json_set_real(tiers, "rack", rack, NULL);
	fb_json_set_real(tiers, "far", far, NULL);
	json_object_set_new(j, "tiers", tiers);
	return j;
}

static json_t *memory_json(const struct train_state *s)
{
	struct step_memory form;
	json_t *j = json_object(), *kinds = json_object();
	bool equal = true;
	step_memory(&s->j->step, &form);
	for (int k = 0; k < MEASURE_MEMORY_KINDS; k++) {
		double want = measure_memory_of(&form, k);
		json_object_set_new(kinds, measure_memory_names[k],
			beside(measure_memory_of(&s->all[0].memory, k), want));
		for (int r = 0; r < ranks_of(s); r++)
			equal = equal && near(measure_memory_of(&s->all[r].memory, k), want);
	}
	json_object_set_new(j, "kinds", kinds);
	fb_json_set_bool(j, "equal_on_all_ranks", equal);
	return j;
}

static json_t *flops_json(const struct train_state *s)
{
	json_t *j = json_object();
	double linear, attn;
	train_formula_flops(s->j, &linear, &attn);
	json_object_set_new(j, "linear", beside(s->all[0].linear_flops, linear));
	json_object_set_new(j, "attention", beside(s->all[0].attn_flops, attn));
	return j;
}

/* ---- MFU ------------------------------------------------------------------------------------- */

static double step_s(const struct train_state *s)
{
	return measure_over(s->all, ranks_of(s), MEASURE_STEP).worst.est / 1e9;
}

double train_mfu(const struct train_state *s, enum mfu_convention c, double rate)
{
	const struct step_config *step = &s->j->step;
	double flops = model_flops_per_token(&step->model, step->seq, c) * s->all[0].tokens;
	return rate > 0 && step_s(s) > 0 ? flops / step_s(s) / rate : NAN;
}

static double mean_gemm_rate(const struct train_state *s)
{
	double sum = 0;
	for (int r = 0; r < ranks_of(s); r++)
		sum += s->all[r].gemm_rate;
	return sum / ranks_of(s);
}

static json_t *model_json(const struct train_state *s)
{
	const struct step_config *c = &s->j->step;
	json_t *j = json_object(), *per = json_object();
	fb_json_set_str(j, "name", c->model.name);
	fb_json_set_str(j, "family", model_family_names[c->model.family]);
	fb_json_set_int(j, "params", model_params(&c->model));
	fb_json_set_int(j, "matmul_params", model_matmul_params(&c->model));
	fb_json_set_int(j, "layers", c->model.layers);
	fb_json_set_int(j, "hidden", c->model.hidden);
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		fb_json_set_real(per, mfu_convention_names[i],
			model_flops_per_token(&c->model, c->seq, (enum mfu_convention)i), NULL);
	json_object_set_new(j, "flops_per_token", per);
	return j;
}

static json_t *shares(const struct train_state *s, double rate, const char *why)
{
	json_t *j = json_object();
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		fb_json_set_real(j, mfu_convention_names[i],
			train_mfu(s, (enum mfu_convention)i, rate), why);
	return j;
}

/* No device is faster than its data sheet: the peak, or what was taken for it, is wrong. */
static bool impossible(const struct train_state *s)
{
	return train_mfu(s, MFU_PALM, s->j->peak) > 1;
}

/* The rate that shares of the data sheet may be told of; NAN where none may, and why. */
static double told_peak(const struct train_state *s, const char **why)
{
	bool no = impossible(s);
	*why = no ? "refused: more than 100 % of the data sheet" : s->j->peak_source;
	return no ? NAN : s->j->peak;
}

static json_t *mfu_json(const struct train_state *s)
{
	const struct train_job *t = s->j;
	json_t *j = json_object(), *peak = json_object(), *measured;
	const char *why;
	double rate = mean_gemm_rate(s), told = told_peak(s, &why);
	fb_json_set_str(j, "headline", "palm");
	fb_json_set_real(j, "value", train_mfu(s, MFU_PALM, told), why);
	fb_json_set_real(peak, "flops", t->peak > 0 ? t->peak : NAN, t->peak_source);
	fb_json_set_str(peak, "source", t->peak > 0 ? t->peak_source : NULL);
	json_object_set_new(j, "peak", peak);
	json_object_set_new(j, "data_sheet", shares(s, told, why));
	measured = shares(s, rate, "no product was timed");
	fb_json_set_real(measured, "flops", rate > 0 ? rate : NAN, "no product was timed");
	json_object_set_new(j, "measured", measured);
	return j;
}

static json_t *hfu_json(const struct train_state *s)
{
	json_t *j = json_object();
	double flops = s->all[0].linear_flops + s->all[0].attn_flops, rate = mean_gemm_rate(s);
	double per_s = step_s(s) > 0 ? flops / step_s(s) : NAN;
	const char *why;
	double told = told_peak(s, &why);
	fb_json_set_real(j, "data_sheet", told > 0 ? per_s / told : NAN, why);
	fb_json_set_real(j, "measured", rate > 0 ? per_s / rate : NAN, "no product was timed");
	fb_json_set_real(j, "flops_per_s", per_s, "no step was timed");
	return j;
}

static json_t *products_json(const struct train_state *s)
{
	json_t *all = json_array();
	for (int i = 0; i < s->gemm.n; i++) {
		const struct gemm_timed *t = &s->gemm.v[i];
		json_t *j = json_object();
		fb_json_set_int(j, "m", t->s.m);
		fb_json_set_int(j, "n", t->s.n);
		fb_json_set_int(j, "k", t->s.k);
		fb_json_set_bool(j, "trans_a", t->s.trans_a);
		fb_json_set_bool(j, "trans_b", t->s.trans_b);
		fb_json_set_bool(j, "accumulates", t->s.beta != 0);
		fb_json_set_int(j, "calls", (int64_t)t->calls);
		fb_json_set_str(j, "impl", t->impl);
		fb_json_set_real(j, "flops", t->rate, NULL);
		json_array_append_new(all, j);
	}
	return all;
}

/* ---- where the time went --------------------------------------------------------------------- */

static json_t *item_json(const struct train_state *s, enum measure_item i)
{
	struct measure_over o = measure_over(s->all, ranks_of(s), i);
	json_t *j = json_object();
	fb_json_set_real(j, "mean", o.mean, "no step was timed");
	fb_json_set_int(j, "rank", o.rank);
	fb_json_set_real(j, "median", o.worst.est, "no step was timed");
	if (o.worst.valid) {
		fb_json_set_real(j, "lo", o.worst.lo, NULL);
		fb_json_set_real(j, "hi", o.worst.hi, NULL);
	}
	return j;
}

static bool is_exposed(int i)
{
	return i >= MEASURE_ALL_GATHER && i <= MEASURE_NORM;
}

static json_t *split_json(const struct train_state *s)
{
	json_t *j = json_object(), *exposed = json_object(), *ranks = json_array();
	for (int i = MEASURE_STEP; i < MEASURE_ITEMS; i++)
		json_object_set_new(is_exposed(i) ? exposed : j, measure_item_names[i],
			item_json(s, (enum measure_item)i));
	json_object_set_new(j, "exposed", exposed);
	for (int r = 0; r < ranks_of(s); r++) {
		json_t *one = json_object();
		fb_json_set_int(one, "rank", r);
		for (int i = 0; i < MEASURE_ITEMS; i++)
			fb_json_set_real(one, measure_item_names[i], s->all[r].item[i].est,
				"no step was timed");
		if (s->all[r].core >= 0)
			fb_json_set_int(one, "core", s->all[r].core);
		json_array_append_new(ranks, one);
	}
	json_object_set_new(j, "per_rank", ranks);
	return j;
}

static json_t *verdict_json(const struct train_state *s)
{
	const struct verdict *v = &s->verdict;
	json_t *j = json_object(), *moves = json_array();
	fb_json_set_str(j, "bound_by", v->bound_by);
	fb_json_set_real(j, "share", v->share, "no step was timed");
	fb_json_set_str(j, "why", v->why);
	for (int i = 0; i < v->moves; i++) {
		json_t *m = json_object();
		fb_json_set_str(m, "what", v->move[i].what);
		fb_json_set_real(m, "number", v->move[i].number, NULL);
		fb_json_set_str(m, "unit", v->move[i].unit);
		json_array_append_new(moves, m);
	}
	json_object_set_new(j, "moves", moves);
	return j;
}

/* One row per task of rank 0's last step: [op, queue, unit, micro-batch, start ns, end ns]; a long
 * step is left out, its Chrome trace (--timeline) is not. */
#define MAX_TASK_ROWS 2000

static json_t *tasks_json(const struct train_state *s)
{
	const struct schedule *sched = engine_schedule(s->g);
	const struct task_time *t = engine_times(s->g);
	json_t *all = json_array();
	uint64_t first = UINT64_MAX;
	for (int i = 0; i < sched->n; i++)
		first = t[i].start < first && t[i].end > 0 ? t[i].start : first;
	for (int i = 0; i < sched->n && sched->n <= MAX_TASK_ROWS; i++) {
		const struct sched_task *k = &sched->v[i];
		if (k->op == SCHED_RELEASE || t[i].end < t[i].start)
			continue;
		json_array_append_new(all,
			json_pack("[s,s,i,i,I,I]", sched_op_names[k->op],
				sched_queue_names[k->queue], k->unit, k->micro,
				(json_int_t)(t[i].start - first), (json_int_t)(t[i].end - first)));
	}
	return all;
}

static void steps_json(const struct train_state *s, json_t *result)
{
	json_t *loss = json_array(), *norm = json_array();
	for (int i = 0; i < s->m.n; i++) {
		json_array_append_new(loss, fb_json_real(s->m.v[i].loss));
		if (s->j->step.clip)
			json_array_append_new(norm, fb_json_real(s->m.v[i].grad_norm));
	}
	json_object_set_new(result, "loss", loss);
	json_object_set_new(result, "grad_norm", norm);
}

/* ---- the result ------------------------------------------------------------------------------ */

static void refuse_impossible(const struct train_state *s, json_t *result)
{
	json_t *v = json_object_get(result, "validity");
	char why[240];
	if (!impossible(s) || !v)
		return;
	snprintf(why, sizeof(why),
		"MFU is %.0f %% of the dense data-sheet peak of %.4g TFLOP/s (%s), which cannot be: is "
		"it the peak of this device, of this type, of one rank?",
		100 * train_mfu(s, MFU_PALM, s->j->peak), s->j->peak / 1e12, s->j->peak_source);
	fb_json_set_str(v, "state", "invalid");
	json_array_append_new(json_object_get(v, "reasons"), json_string(why));
}

void train_extend(void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result)
{
	const struct train_state *s = st;
	refuse_impossible(s, result);
	if (strcmp(m->name, "step_time") != 0)
		return;
	json_object_set_new(result, "model", model_json(s));
	json_object_set_new(result, "mfu", mfu_json(s));
	json_object_set_new(result, "hfu", hfu_json(s));
	json_object_set_new(result, "split", split_json(s));
	json_object_set_new(result, "verdict", verdict_json(s));
	json_object_set_new(result, "bytes", bytes_json(s));
	json_object_set_new(result, "memory", memory_json(s));
	json_object_set_new(result, "flops", flops_json(s));
	json_object_set_new(result, "products", products_json(s));
	json_object_set_new(result, "tasks", tasks_json(s));
	steps_json(s, result);
}
