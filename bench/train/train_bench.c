// SPDX-License-Identifier: Apache-2.0
/*
 * The training step as a benchmark: every rank opens its engine, an iteration is a step, and after
 * the last one the ranks bring together what they measured.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "bench/train/timeline.h"
#include "bench/train/train_priv.h"

/* Timing a step's products may last as long as some steps, and not longer than this. */
#define GEMM_BUDGET_NS 1500000000u

/* ---- set-up ---------------------------------------------------------------------------------- */

/* The first option that rank r has otherwise than rank 0, in words. */
static bool differs(const json_t *mine, const json_t *other, int r, struct fb_err *e)
{
	const char *key;
	json_t *v;
	json_object_foreach ((json_t *)mine, key, v) {
		const json_t *w = json_object_get(other, key);
		if (w && json_equal(v, w))
			continue;
		char *a = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
		char *b = w ? json_dumps(w, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
		fb_fail_usage(e, "rank 0 has --%s %.60s, rank %d has %.60s", key, a ? a : "?", r,
			b ? b : "none");
		fb_hint(e, "start all ranks with the same options");
		free(a);
		free(b);
		return true;
	}
	return false;
}

/* Processes bring their own command lines: a rank that would train something else is refused. */
static int same_options(struct train_state *s, struct fb_err *e)
{
	struct fb_oob *oob = fb_run_oob(s->run);
	struct fb_err found = {0};
	json_t *all = NULL;
	if (!s->j->effective)
		return 0;
	int rc = fb_oob_gather_json(oob, s->j->effective, &all, fb_run_deadline(s->run), e);
	if (rc != 0)
		return rc;
	for (int r = 1; all && r < s->j->step.ranks; r++)
		if (differs(s->j->effective, json_array_get(all, (size_t)r), r, &found))
			break;
	json_decref(all);
	rc = fb_oob_agree(oob, &found, fb_run_deadline(s->run));
	if (rc != 0)
		*e = found;
	return rc;
}

int train_core(const struct train_job *j, int local, int neighbours)
{
	cpu_set_t set;
	if (!j->o->pin || sched_getaffinity(0, sizeof(set), &set) != 0 ||
		CPU_COUNT(&set) < neighbours)
		return -1;
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && n++ == local)
			return cpu;
	return -1;
}

/* Which of this host's ranks is this one? */
static int find_core(struct train_state *s, struct fb_err *e)
{
	int ranks = s->j->step.ranks, local = 0, neighbours = 0;
	char name[64] = "";
	if (s->j->local) {
		s->core = train_core(s->j, s->rank, ranks);
		s->reads_host = s->rank == 0;
		return 0;
	}
	fb_host_name(name, sizeof(name));
	char *all = calloc((size_t)ranks, sizeof(name));
	if (!all)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d names", ranks);
	int rc = fb_oob_allgather(
		fb_run_oob(s->run), name, sizeof(name), all, fb_run_deadline(s->run), e);
	for (int r = 0; rc == 0 && r < ranks; r++) {
		if (memcmp(all + (size_t)r * sizeof(name), name, sizeof(name)) != 0)
			continue;
		local += r < s->rank;
		neighbours++;
	}
	free(all);
	s->core = train_core(s->j, local, neighbours);
	s->reads_host = local == 0;
	return rc;
}

static int open_rank(struct train_state *s, struct fb_err *e)
{
	const struct train_job *j = s->j;
	struct p2p_env env = {.rank = s->rank,
		.size = j->step.ranks,
		.now = fb_clock_ns,
		.timeout_ns = 30000000000u,
		.shared = j->world};
	struct engine_config c;
	int rc = j->p2p->open(&env, &s->p2p, e);
	if (rc != 0)
		return rc;
	train_engine_config(j, s->rank, s->core, &c);
	rc = engine_open(&c, j->p2p, s->p2p, s->rank, &s->g, e);
	if (rc != 0)
		return rc;
	int tasks = engine_schedule(s->g)->n;
	s->task_ns = calloc((size_t)tasks + 1, sizeof(*s->task_ns));
	s->all = s->rank == 0 ? calloc((size_t)j->step.ranks, sizeof(*s->all)) : NULL;
	if (!s->task_ns || (s->rank == 0 && !s->all))
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d tasks", tasks);
	return measure_open(&s->m, j->steps, j->warmup, tasks, e);
}

static void teardown(void *st)
{
	struct train_state *s = st;
	if (!s)
		return;
	engine_close(s->g);
	if (s->p2p)
		s->j->p2p->close(s->p2p);
	measure_close(&s->m);
	gemm_rate_free(&s->gemm);
	free(s->task_ns);
	free(s->all);
	free(s);
}

static int setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct train_state *s = calloc(1, sizeof(*s));
	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a rank");
	s->run = run;
	s->j = cfg;
	s->rank = fb_oob_rank(fb_run_oob(run));
	int rc = same_options(s, e);
	if (rc == 0)
		rc = find_core(s, e);
	if (rc == 0)
		rc = open_rank(s, e);
	if (rc != 0) {
		teardown(s);
		return rc;
	}
	*st = s;
	return 0;
}

/* ---- the point ------------------------------------------------------------------------------- */

json_t *train_factors(const struct train_job *j)
{
	const struct step_config *c = &j->step;
	json_t *p = json_object();
	fb_json_set_str(p, "model", c->model.name);
	fb_json_set_str(p, "strategy", c->strategy.name);
	fb_json_set_int(p, "ranks", c->ranks);
	fb_json_set_str(p, "dtype", tr_dtype_names[c->work]);
	fb_json_set_str(p, "reduce_dtype", tr_dtype_names[c->reduce]);
	fb_json_set_int(p, "seq", c->seq);
	fb_json_set_int(p, "micro_batch", c->micro_seqs);
	fb_json_set_int(p, "accumulate", c->micro_batches);
	fb_json_set_int(p, "global_batch", c->micro_seqs * c->micro_batches * c->ranks);
	fb_json_set_str(p, "recompute", tr_recompute_names[c->recompute]);
	fb_json_set_bool(p, "overlap", c->overlap);
	fb_json_set_bool(p, "sync_each", c->sync_each);
	fb_json_set_bool(p, "deterministic", c->deterministic);
	fb_json_set_real(p, "clip", j->o->clip, NULL);
	fb_json_set_str(p, "messages", j->p2p ? j->p2p->name : "none");
	fb_json_set_str(p, "products", j->gemm && c->work != TR_F64 ? j->gemm->name : "plain C");
	fb_json_set_str(p, "link", j->o->link);
	if (j->o->inject.n > 0) {
		json_t *in = json_array();
		for (size_t i = 0; i < j->o->inject.n; i++)
			json_array_append_new(in, json_string(j->o->inject.v[i]));
		json_object_set_new(p, "inject", in);
	}
	return p;
}

json_t *train_params(const struct train_job *j)
{
	json_t *p = train_factors(j);
	train_labels_into(&j->o->label, p);
	return p;
}

static int points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	const struct train_job *j = ((struct train_state *)st)->j;
	const struct step_config *c = &j->step;
	char labels[64];
	struct fb_point *p = fb_point_add(l, train_params(j),
		"train/%s/%s/%d/%s/%lldx%lldx%d%s%s%s%s", c->model.name, c->strategy.name, c->ranks,
		tr_dtype_names[c->work], (long long)c->micro_seqs, (long long)c->seq,
		c->micro_batches, c->overlap ? "" : "/no-overlap", j->shaped ? "/link" : "",
		j->o->inject.n ? "/inject" : "",
		train_labels_case(&j->o->label, labels, sizeof(labels)));
	return p ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a point");
}

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	const struct train_job *j = ((struct train_state *)st)->j;
	const struct step_config *c = &j->step;
	double tokens = (double)(c->micro_seqs * c->micro_batches * c->seq);
	m[0] = (struct fb_metric){
		.name = "step_time", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	m[1] = (struct fb_metric){.name = "tokens_per_s",
		.unit = "1/s",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = tokens};
	if (!(j->peak > 0))
		return 2;
	m[2] = (struct fb_metric){.name = "mfu",
		.unit = "1",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = tokens * model_flops_per_token(&c->model, c->seq, MFU_PALM) / j->peak};
	return 3;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int one_step(struct train_state *s, struct step_stats *stats, struct fb_err *e)
{
	uint64_t end = fb_deadline_in(s->j->o->step_timeout_ns), all = fb_run_deadline(s->run);
	if (s->rank == s->j->fail_rank && s->step == s->j->fail_step)
		return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET,
			"rank %d ended in step %d, as --fail-rank orders", s->rank, s->step);
	return engine_step(s->g, end < all ? end : all, stats, e);
}

static void read_count(struct train_state *s, struct tr_count *c)
{
	struct tr_dev *d;
	const struct tr_dev_ops *ops = engine_device(s->g, &d);
	ops->count(d, c);
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct train_state *s = st;
	struct step_stats stats = {0};
	for (uint64_t i = 0; i < iters; i++) {
		int rc = one_step(s, &stats, e);
		if (rc != 0) {
			if (rc != -EDOM) /* the loss is every rank's: each finds it by itself */
				engine_abort(s->g, e);
			return rc;
		}
		sink->ns[sink->n++] = stats.step_ns;
		measure_add(&s->m, &stats, engine_times(s->g));
		s->step++;
	}
	read_count(s, fb_run_counting(s->run) ? &s->after : &s->before);
	return 0;
}

/* ---- after the last -------------------------------------------------------------------------- */

void train_formula_flops(const struct train_job *j, double *linear, double *attn)
{
	const struct step_config *c = &j->step;
	int64_t chunks = c->deterministic ? c->micro_seqs : 1;
	struct net n = {.m = &c->model,
		.ops = &tr_cpu,
		.work = c->work,
		.seqs = c->micro_seqs / chunks,
		.seq = c->seq,
		.recompute = c->recompute};
	net_flops(&n, linear, attn);
	*linear *= (double)(chunks * c->micro_batches);
	*attn *= (double)(chunks * c->micro_batches);
}

/* All ranks at once, as in the step: they share caches and memory. */
static int time_products(struct train_state *s, struct fb_err *e)
{
	struct tr_dev *d;
	const struct tr_dev_ops *ops = engine_device(s->g, &d);
	uint64_t left = fb_run_deadline(s->run), now = fb_clock_ns();
	int rc = fb_oob_barrier(fb_run_oob(s->run), left, e);
	if (rc != 0)
		return rc;
	left = left > now ? (left - now) / 4 : 0;
	return gemm_rate_measure(
		ops, d, left < GEMM_BUDGET_NS ? left : GEMM_BUDGET_NS, &s->gemm, e);
}

static int share_facts(struct train_state *s, struct fb_err *e)
{
	struct fb_oob_part *parts = NULL;
	struct fb_oob *oob = fb_run_oob(s->run);
	int rc =
		fb_oob_gather(oob, &s->facts, sizeof(s->facts), &parts, fb_run_deadline(s->run), e);
	for (int r = 0; rc == 0 && s->rank == 0 && r < s->j->step.ranks; r++) {
		if (parts[r].len == sizeof(s->facts))
			memcpy(&s->all[r], parts[r].data, sizeof(s->facts));
		else
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank %d tells of its steps in %u bytes, not %zu", r, parts[r].len,
				sizeof(s->facts));
	}
	if (s->rank == 0)
		fb_oob_parts_free(oob, parts);
	return rc;
}

static int judge(struct train_state *s, struct fb_validity *v, struct fb_err *e)
{
	struct verdict_input in = {.step = &s->j->step,
		.facts = s->all,
		.sched = engine_schedule(s->g),
		.task_ns = s->task_ns};
	char why[200];
	train_machine(s->j, &in.machine);
	if (train_differs(s, why, sizeof(why)))
		fb_validity_add(v, FB_SUSPECT, "%s", why);
	return verdict_find(&in, &s->verdict, e);
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct train_state *s = st;
	int n = s->m.n - s->m.warmup, rc = time_products(s, e);
	if (rc != 0)
		return rc;
	measure_facts(&s->m, &s->facts);
	measure_tasks(&s->m, s->task_ns);
	engine_memory(s->g, &s->facts.memory);
	if (n > 0) {
		s->facts.linear_flops = (s->after.linear_flops - s->before.linear_flops) / n;
		s->facts.attn_flops = (s->after.attn_flops - s->before.attn_flops) / n;
		s->facts.linear_ns = (double)(s->after.linear_ns - s->before.linear_ns) / n;
		s->facts.attn_ns = (double)(s->after.attn_ns - s->before.attn_ns) / n;
	}
	s->facts.gemm_rate = s->gemm.rate;
	s->facts.core = s->core;
	rc = share_facts(s, e);
	if (rc == 0 && s->j->o->timeline)
		rc = timeline_save(fb_run_oob(s->run), &s->j->step, engine_schedule(s->g),
			engine_times(s->g), s->j->local, s->j->o->timeline, fb_run_deadline(s->run),
			e);
	return rc == 0 && s->rank == 0 ? judge(s, v, e) : rc;
}

const struct fb_bench train_bench = {
	.abi = FB_BENCH_ABI,
	.name = "train",
	.summary = "a transformer's training step, sharded over ranks",
	.needs = 0,
	.cfg_size = sizeof(struct train_job),
	.combine = FB_COMBINE_MAX,
	.load = "closed",
	.sync = "isolated",
	.definition = "of the slowest rank: forward, backward, collectives and AdamW of one step; "
		      "tokens of one rank",
	.setup = setup,
	.points = points,
	.metrics = metrics,
	.measure = measure,
	.check = check,
	.counters = train_ports,
	.teardown = teardown,
	.extend = train_extend,
};
