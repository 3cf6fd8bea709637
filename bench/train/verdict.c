// SPDX-License-Identifier: Apache-2.0
/* What bounds a step and what would move it: see verdict.h. */
#include "bench/train/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"

/* ---- a step that was not run ----------------------------------------------------------------- */

static bool is_root(const struct step_config *c, const struct sched_task *t)
{
	return t->unit == (int)c->model.layers;
}

static bool is_collective(const struct sched_task *t)
{
	return t->queue != SCHED_COMPUTE && t->queue != SCHED_Q_STORAGE;
}

/* The optimizer's work goes with parameters, all other compute with tokens. */
static bool by_tokens(enum sched_op op)
{
	return op != SCHED_UPDATE && op != SCHED_NORM && op != SCHED_RELEASE;
}

/* Bytes' time on a link that nobody described: all measured time of collectives over all their
 * bytes. Where compute hides them they are noticed late, so this is no better than it looks. */
static double fitted(const struct verdict_input *in)
{
	double ns = 0, bytes = 0;
	for (int i = 0; i < in->sched->n; i++) {
		const struct sched_task *t = &in->sched->v[i];
		if (!is_collective(t) || !isfinite(in->task_ns[i]))
			continue;
		ns += in->task_ns[i];
		bytes += schedule_task_bytes(in->step, t);
	}
	return bytes > 0 ? ns / bytes : 0;
}

void verdict_model(const struct verdict_input *in, struct verdict_model *m)
{
	int n[SCHED_OP_COUNT][2] = {{0}};
	*m = (struct verdict_model){.in = in};
	for (int i = 0; i < in->sched->n; i++) {
		const struct sched_task *t = &in->sched->v[i];
		int root = is_root(in->step, t);
		if (is_collective(t) || !isfinite(in->task_ns[i]))
			continue;
		m->op_ns[t->op][root] += in->task_ns[i];
		n[t->op][root]++;
	}
	for (int op = 0; op < SCHED_OP_COUNT; op++)
		for (int root = 0; root < 2; root++)
			if (n[op][root] > 0)
				m->op_ns[op][root] /= n[op][root];
	/* To compute a block again costs what its forward does. */
	if (n[SCHED_RECOMPUTE][0] == 0)
		m->op_ns[SCHED_RECOMPUTE][0] = m->op_ns[SCHED_FWD][0];
	m->machine = in->machine;
	if (!(m->machine.ns_per_byte > 0)) {
		m->machine.shared_link = true;
		m->machine.ns_per_byte = fitted(in);
	}
}

/* Time of a task that is no collective. A shard is updated F times as fast when F ranks share it.
 */
static double task_time(const struct verdict_model *m, const struct step_config *c,
	const struct sched_task *t, double tokens)
{
	double ns = m->op_ns[t->op][is_root(c, t)];
	if (by_tokens(t->op) && t->queue == SCHED_COMPUTE)
		return ns * tokens;
	return ns * m->in->step->strategy.shard / c->strategy.shard;
}

int verdict_predict(const struct verdict_model *m, const struct step_config *c, double tokens,
	double link, double *step_ns, double *exposed, struct fb_err *e)
{
	struct schedule s = {0};
	struct sched_times t = {0};
	struct sched_machine machine = m->machine;
	double *ns = NULL, *bytes = NULL, sum = 0;
	int rc = schedule_build(c, &s, e);
	if (rc != 0)
		return rc;
	ns = calloc((size_t)s.n + 1, sizeof(*ns));
	bytes = calloc((size_t)s.n + 1, sizeof(*bytes));
	if (!ns || !bytes) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d tasks", s.n);
		goto free_all;
	}
	for (int i = 0; i < s.n; i++) {
		if (is_collective(&s.v[i]))
			bytes[i] = schedule_task_bytes(c, &s.v[i]);
		else
			ns[i] = task_time(m, c, &s.v[i], tokens);
	}
	machine.ns_per_byte /= link;
	rc = schedule_times(&s, &machine, ns, bytes, &t, e);
	if (rc != 0)
		goto free_all;
	for (int op = 0; op < SCHED_OP_COUNT; op++)
		if (schedule_queue_of((enum sched_op)op) != SCHED_COMPUTE &&
			schedule_queue_of((enum sched_op)op) != SCHED_Q_STORAGE)
			sum += t.exposed_ns[op];
	*step_ns = t.step_ns;
	*exposed = t.step_ns > 0 ? sum / t.step_ns : 0;
	schedule_times_free(&t);
free_all:
	free(bytes);
	free(ns);
	schedule_free(&s);
	return rc;
}

/* ---- what bounds it -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* A slow rank waits for nobody: what it stands still for itself is the network's. */
static double own_exposed(const struct rank_facts *f)
{
	double sum = 0;
	for (int i = MEASURE_ALL_GATHER; i <= MEASURE_NORM; i++)
		sum += f->item[i].est;
	return sum;
}

/* The one rank for which the others wait, or -1: it computes longer than their median, beyond both
 * intervals, and by more than it waits itself. The lower median: of two ranks the faster one is the
 * norm. */
static int slow_rank(const struct verdict_input *in, double *median)
{
	int n = in->step->ranks, worst = 0, middle = 0;
	double *v = n > 1 ? malloc((size_t)n * sizeof(*v)) : NULL;
	if (!v)
		return -1;
	for (int r = 0; r < n; r++) {
		v[r] = in->facts[r].item[MEASURE_COMPUTE].est;
		if (v[r] > in->facts[worst].item[MEASURE_COMPUTE].est)
			worst = r;
	}
	qsort(v, (size_t)n, sizeof(*v), by_value);
	*median = v[(n - 1) / 2];
	free(v);
	for (int r = 0; r < n; r++)
		if (in->facts[r].item[MEASURE_COMPUTE].est == *median)
			middle = r;
	const struct rank_facts *slow = &in->facts[worst];
	struct fb_ci own = slow->item[MEASURE_COMPUTE];
	struct fb_ci other = in->facts[middle].item[MEASURE_COMPUTE];
	double more = own.est - *median;
	if (own.valid && other.valid && own.lo <= other.hi)
		return -1;
	bool so = more > (VERDICT_SLOW_RANK - 1) * *median &&
		  more > 0.05 * slow->item[MEASURE_STEP].est && more > own_exposed(slow);
	return so ? worst : -1;
}

static void bound_by_rank(
	const struct verdict_input *in, int rank, double median, struct verdict *v)
{
	char a[32], b[32];
	double own = in->facts[rank].item[MEASURE_COMPUTE].est;
	snprintf(v->bound_by, sizeof(v->bound_by), "rank %d", rank);
	v->share = (own - median) / in->facts[rank].item[MEASURE_STEP].est;
	snprintf(v->why, sizeof(v->why),
		"rank %d computes for %s of each step, the ranks' median is %s: the others wait for "
		"it, which shows as their exposed communication",
		rank, fb_fmt_duration(own, a, sizeof(a)), fb_fmt_duration(median, b, sizeof(b)));
}

/* What compute is made of, as shares of it. */
struct parts {
	double gemm, attn, rest;
	double rate;  /* of products in the step, FLOP/ns */
	double alone; /* and alone; 0: not known */
};

static struct parts parts_of(const struct verdict_input *in)
{
	double gemm = 0, attn = 0, flops = 0, all = 0, alone = 0;
	for (int r = 0; r < in->step->ranks; r++) {
		gemm += in->facts[r].linear_ns;
		attn += in->facts[r].attn_ns;
		flops += in->facts[r].linear_flops;
		all += in->facts[r].compute_ns;
		alone += in->facts[r].gemm_rate / in->step->ranks / 1e9;
	}
	if (!(all > 0))
		return (struct parts){.rest = 1};
	return (struct parts){gemm / all, attn / all, 1 - (gemm + attn) / all,
		gemm > 0 ? flops / gemm : 0, alone};
}

/* What of compute takes most: products, attention, or the rest. */
static void bound_by_compute(const struct verdict_input *in, struct verdict *v)
{
	struct parts p = parts_of(in);
	const char *part = p.gemm >= p.attn && p.gemm >= p.rest ? "gemm"
			   : p.attn >= p.rest                   ? "attention"
								: "elementwise";
	snprintf(v->bound_by, sizeof(v->bound_by), "%s", part);
	snprintf(v->why, sizeof(v->why),
		"compute takes %.0f %% of the step; of it %.0f %% products (at %.3g GFLOP/s), %.0f %% "
		"attention, %.0f %% element-wise work",
		100 * v->share, 100 * p.gemm, p.rate, 100 * p.attn, 100 * p.rest);
}

static void bound_by_item(
	const struct verdict_input *in, enum measure_item i, double step, struct verdict *v)
{
	static const char *const words[MEASURE_ITEMS] = {
		[MEASURE_ALL_GATHER] = "all-gathers that compute does not hide",
		[MEASURE_REDUCE_SCATTER] = "reduce-scatters that compute does not hide",
		[MEASURE_ALL_REDUCE] = "all-reduces that compute does not hide",
		[MEASURE_NORM] = "the gradient norm's all-reduce, which is latency alone",
		[MEASURE_OPTIMIZER] = "the optimizer",
		[MEASURE_STORAGE] = "transfers of offloaded state",
		[MEASURE_IDLE] =
			"time outside of all tasks (the sum of the loss, a shared machine)",
	};
	char text[32];
	snprintf(v->bound_by, sizeof(v->bound_by), "%s", measure_item_names[i]);
	snprintf(v->why, sizeof(v->why), "%s take%s %.0f %% of the step (%s of it)",
		words[i] ? words[i] : measure_item_names[i],
		i == MEASURE_NORM || i == MEASURE_OPTIMIZER || i == MEASURE_IDLE ? "s" : "",
		100 * v->share, fb_fmt_duration(v->share * step, text, sizeof(text)));
}

static void find_bound(const struct verdict_input *in, struct verdict *v)
{
	int n = in->step->ranks;
	double median = 0;
	int slow = slow_rank(in, &median);
	if (slow >= 0) {
		bound_by_rank(in, slow, median, v);
		return;
	}
	enum measure_item most = MEASURE_COMPUTE;
	for (int i = MEASURE_COMPUTE; i < MEASURE_ITEMS; i++)
		if (measure_over(in->facts, n, (enum measure_item)i).mean >
			measure_over(in->facts, n, most).mean)
			most = (enum measure_item)i;
	double step = measure_over(in->facts, n, MEASURE_STEP).mean;
	double part = measure_over(in->facts, n, most).mean;
	v->share = step > 0 ? part / step : 0;
	if (most == MEASURE_COMPUTE)
		bound_by_compute(in, v);
	else
		bound_by_item(in, most, step, v);
}

/* ---- what would move it ---------------------------------------------------------------------- */

static void add_move(struct verdict *v, double number, const char *unit, const char *fmt, ...)
	FB_PRINTF(4, 5);
static void add_move(struct verdict *v, double number, const char *unit, const char *fmt, ...)
{
	va_list ap;
	if (v->moves == VERDICT_MAX_MOVES || !isfinite(number))
		return;
	struct verdict_move *m = &v->move[v->moves++];
	m->number = number;
	snprintf(m->unit, sizeof(m->unit), "%s", unit);
	va_start(ap, fmt);
	vsnprintf(m->what, sizeof(m->what), fmt, ap);
	va_end(ap);
}

/* The smallest multiple of the present tokens per micro-batch at which communication is hidden. */
static int find_t_star(const struct verdict_model *m, struct verdict *v, struct fb_err *e)
{
	const struct step_config *c = m->in->step;
	double lo = 1, hi = 1, step = 0, exposed = 0, now = (double)c->micro_seqs * (double)c->seq;
	int rc = verdict_predict(m, c, 1, 1, &step, &exposed, e);
	v->t_star = NAN;
	if (rc != 0 || exposed <= VERDICT_HIDDEN)
		return rc;
	while (rc == 0 && exposed > VERDICT_HIDDEN && hi < 4096) {
		lo = hi;
		hi *= 2;
		rc = verdict_predict(m, c, hi, 1, &step, &exposed, e);
	}
	if (rc != 0 || exposed > VERDICT_HIDDEN)
		return rc;
	for (int i = 0; rc == 0 && i < 12; i++) {
		double mid = (lo + hi) / 2;
		rc = verdict_predict(m, c, mid, 1, &step, &exposed, e);
		if (exposed > VERDICT_HIDDEN)
			lo = mid;
		else
			hi = mid;
	}
	v->t_star = ceil(hi * now);
	return rc;
}

static int move_tokens(const struct verdict_model *m, struct verdict *v, struct fb_err *e)
{
	const struct step_config *c = m->in->step;
	double now = (double)c->micro_seqs * (double)c->seq;
	int rc = find_t_star(m, v, e);
	if (rc == 0 && isfinite(v->t_star))
		add_move(v, v->t_star, "tokens",
			"more tokens per micro-batch: from %.0f to T*, where compute hides all but "
			"%.0f %% of communication",
			now, 100 * VERDICT_HIDDEN);
	return rc;
}

/* Only what is predicted to save at least this share is worth a line. */
#define WORTH 0.03

static int move_link(
	const struct verdict_model *m, double base, struct verdict *v, struct fb_err *e)
{
	double step = 0, exposed = 0;
	int rc = verdict_predict(m, m->in->step, 1, 2, &step, &exposed, e);
	if (rc == 0 && step < (1 - WORTH) * base)
		add_move(v, step / base, "of the step time", "a link twice as fast");
	return rc;
}

static int move_overlap(
	const struct verdict_model *m, double base, struct verdict *v, struct fb_err *e)
{
	struct step_config c = *m->in->step;
	double step = 0, exposed = 0;
	if (c.overlap)
		return 0;
	c.overlap = true;
	int rc = verdict_predict(m, &c, 1, 1, &step, &exposed, e);
	if (rc == 0 && step < (1 - WORTH) * base)
		add_move(v, step / base, "of the step time", "--overlap on");
	return rc;
}

/* Strategies that send less, each with what it costs in memory. */
static int move_strategy(
	const struct verdict_model *m, double base, struct verdict *v, struct fb_err *e)
{
	struct step_memory now, then;
	const struct step_config *was = m->in->step;
	char best[24] = "", a[32], b[32];
	double least = (1 - WORTH) * base;
	struct step_config chosen = *was;
	int rc = 0;
	for (const char *const *w = strategy_words; rc == 0 && *w; w++) {
		struct step_config c = *was;
		struct fb_err no = {0};
		double step = 0, exposed = 0;
		if (strchr(*w, ':') || strcmp(*w, "offload") == 0 ||
			strategy_parse(*w, c.ranks, &c.strategy, &no) != 0 ||
			c.strategy.kind == was->strategy.kind)
			continue;
		c.offload_params = c.offload_file = false;
		rc = verdict_predict(m, &c, 1, 1, &step, &exposed, e);
		if (rc == 0 && step < least) {
			least = step;
			chosen = c;
			snprintf(best, sizeof(best), "%s", *w);
		}
	}
	if (rc != 0 || !best[0])
		return rc;
	step_memory(was, &now);
	step_memory(&chosen, &then);
	add_move(v, least / base, "of the step time", "--strategy %s: %s of memory instead of %s",
		best, fb_fmt_size((uint64_t)then.total, a, sizeof(a)),
		fb_fmt_size((uint64_t)now.total, b, sizeof(b)));
	return 0;
}

/* Moves that need no prediction: each removes what was measured. */
static void plain_moves(const struct verdict_input *in, struct verdict *v)
{
	int n = in->step->ranks;
	double step = measure_over(in->facts, n, MEASURE_STEP).mean;
	double compute = measure_over(in->facts, n, MEASURE_COMPUTE).mean;
	double optimizer = measure_over(in->facts, n, MEASURE_OPTIMIZER).mean;
	double storage = measure_over(in->facts, n, MEASURE_STORAGE).mean;
	struct parts p = parts_of(in);
	double saved = p.alone > p.rate ? (1 - p.rate / p.alone) * p.gemm * compute / step : 0;
	if (strncmp(v->bound_by, "rank ", 5) == 0)
		add_move(v, 1 - v->share, "of the step time", "%s as fast as the others",
			v->bound_by);
	if (storage > WORTH * step)
		add_move(v, 1 - storage / step, "of the step time",
			"state on the device, or storage that keeps up");
	if (optimizer > 0.1 * step)
		add_move(v, 1 - optimizer / step / 2, "of the step time",
			"twice the micro-batches between updates, per batch of the same size");
	if (saved > WORTH)
		add_move(v, 1 - saved, "of the step time",
			"products as fast as they are alone (%.3g GFLOP/s, %.3g in the step)",
			p.alone, p.rate);
	/* Forward, forward again and a backward of twice that: a quarter is the second forward; of
	 * selective recomputation, of the attention core alone. */
	double again = in->step->recompute == TR_RECOMPUTE_FULL        ? 0.25
		       : in->step->recompute == TR_RECOMPUTE_SELECTIVE ? 0.25 * p.attn
								       : 0;
	if (again * compute > WORTH * step)
		add_move(v, 1 - again * compute / step, "of the step time",
			"--recompute none, where memory allows");
}

int verdict_find(const struct verdict_input *in, struct verdict *v, struct fb_err *e)
{
	struct verdict_model m;
	double base = 0, exposed = 0;
	memset(v, 0, sizeof(*v));
	v->t_star = NAN;
	find_bound(in, v);
	plain_moves(in, v);
	verdict_model(in, &m);
	if (in->step->ranks == 1)
		return 0;
	int rc = verdict_predict(&m, in->step, 1, 1, &base, &exposed, e);
	if (rc == 0)
		rc = move_tokens(&m, v, e);
	if (rc == 0)
		rc = move_link(&m, base, v, e);
	if (rc == 0)
		rc = move_overlap(&m, base, v, e);
	if (rc == 0)
		rc = move_strategy(&m, base, v, e);
	return rc;
}
