// SPDX-License-Identifier: Apache-2.0
/*
 * What each kind of task does on this rank: one function a kind, in one table. Whether a task may
 * run is engine_run.c's affair.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "bench/train/engine_priv.h"

/* ---- where things are ------------------------------------------------------------------------ */

static const void *params_of(struct engine *g, const struct sched_task *t)
{
	struct unit_state *s = engine_unit(g, t->unit);
	return s->W_whole ? s->W_whole
			  : g->W_slot[t->slot >= 0 ? t->slot : engine_slot(g, t->unit)];
}

static void *grads_of(struct engine *g, int u)
{
	struct unit_state *s = engine_unit(g, u);
	return s->R_grads ? s->R_grads : g->R_slot[engine_slot(g, u)];
}

static char *part(char *base, size_t bytes, const struct engine *g, int layer, int chunk)
{
	return base + ((size_t)layer * (size_t)g->chunks + (size_t)chunk) * bytes;
}

/* First token of a chunk of a micro-batch. */
static int64_t token_at(const struct engine *g, int micro, int chunk)
{
	const struct step_config *c = &g->c.step;
	return ((int64_t)micro * c->micro_seqs + chunk * g->net.seqs) * c->seq;
}

static double scale_of(const struct engine *g)
{
	const struct step_config *c = &g->c.step;
	return 1.0 / ((double)c->ranks * (double)c->micro_seqs * c->micro_batches * (double)c->seq);
}

/* ---- compute --------------------------------------------------------------------------------- */

/* Where a unit's backward puts its gradients, with the net told whether the sum begins there; one
 * sequence's own array when sums are in fixed point. */
static void *begin_grads(struct engine *g, const struct sched_task *t, int chunk)
{
	const struct shard_cut *cut = &engine_unit(g, t->unit)->cut;
	size_t size = tr_dtype_size(g->R),
	       kept = g->c.step.deterministic ? 0 : (size_t)cut->elements;
	char *R = grads_of(g, t->unit);
	bool fresh = t->fresh && chunk == 0;
	if (fresh) /* all of fixed point's sums; else what is beyond the gradients */
		g->c.dev_ops->zero(&g->q, R + kept * size, ((size_t)cut->padded - kept) * size);
	g->net.fresh = fresh || g->c.step.deterministic;
	return g->c.step.deterministic ? g->G_sequence : R;
}

static void end_grads(struct engine *g, const struct sched_task *t)
{
	if (g->c.step.deterministic)
		g->c.dev_ops->fixed_add(&g->q, grads_of(g, t->unit), g->G_sequence,
			engine_unit(g, t->unit)->cut.elements);
}

static void do_embed_fwd(struct engine *g, const struct sched_task *t)
{
	for (int c = 0; c < g->chunks; c++)
		net_embed_fwd(&g->net, params_of(g, t), g->input + token_at(g, t->micro, c),
			part(g->x, g->x_bytes, g, 0, c));
}

static void do_fwd(struct engine *g, const struct sched_task *t)
{
	for (int c = 0; c < g->chunks; c++)
		net_block_fwd(&g->net, params_of(g, t), part(g->x, g->x_bytes, g, t->unit, c),
			part(g->x, g->x_bytes, g, t->unit + 1, c),
			part(g->saved, g->saved_bytes, g, t->unit, c));
}

static void do_head(struct engine *g, const struct sched_task *t)
{
	for (int c = 0; c < g->chunks; c++) {
		double *loss = &g->loss[t->micro * g->chunks + c];
		*loss = 0;
		net_head(&g->net, params_of(g, t), part(g->x, g->x_bytes, g, g->units - 1, c),
			g->target + token_at(g, t->micro, c), scale_of(g), loss,
			part(g->dx, g->x_bytes, g, 0, c), begin_grads(g, t, c));
		end_grads(g, t);
	}
}

static void do_recompute(struct engine *g, const struct sched_task *t)
{
	if (g->chunks == 1) /* else its turn comes before each sequence's backward */
		net_block_again(&g->net, params_of(g, t), part(g->x, g->x_bytes, g, t->unit, 0));
}

static void do_bwd(struct engine *g, const struct sched_task *t)
{
	for (int c = 0; c < g->chunks; c++) {
		char *x = part(g->x, g->x_bytes, g, t->unit, c);
		if (g->chunks > 1)
			net_block_again(&g->net, params_of(g, t), x);
		net_block_bwd(&g->net, params_of(g, t), x,
			part(g->saved, g->saved_bytes, g, t->unit, c),
			part(g->dx, g->x_bytes, g, 0, c), begin_grads(g, t, c));
		end_grads(g, t);
	}
}

static void do_embed_bwd(struct engine *g, const struct sched_task *t)
{
	for (int c = 0; c < g->chunks; c++) {
		net_embed_bwd(&g->net, g->input + token_at(g, t->micro, c),
			part(g->dx, g->x_bytes, g, 0, c), begin_grads(g, t, c));
		end_grads(g, t);
	}
}

static void do_release(struct engine *g, const struct sched_task *t)
{
}

/* ---- optimizer ------------------------------------------------------------------------------- */

/* A summed shard as G. */
static const void *shard_as_G(struct engine *g, const void *R_shard, int64_t n)
{
	if (!g->c.step.deterministic)
		return R_shard;
	g->c.dev_ops->fixed_to(&g->q, g->G_shard, R_shard, n);
	return g->G_shard;
}

static void do_norm(struct engine *g, const struct sched_task *t)
{
	g->norm_sum = 0;
	g->norm_fixed = 0;
	for (int u = 0; u < g->units; u++) {
		struct unit_state *s = engine_unit(g, u);
		const void *G = shard_as_G(g, s->R_shard, s->mine);
		if (g->c.step.deterministic)
			g->c.dev_ops->sumsq_fixed(&g->q, &g->norm_fixed, G, s->mine);
		else
			g->c.dev_ops->sumsq(&g->q, &g->norm_sum, G, s->mine);
	}
}

/* Elements of a unit's G arrays: on the device, in host memory, or in the buffer the file fills. */
static void *state_of(struct engine *g, int u, int which)
{
	struct unit_state *s = engine_unit(g, u);
	if (g->store)
		return engine_at(
			g->state[u & 1], tr_grad_dtype(g->c.step.work), which * s->cut.per_rank);
	return which == 0 ? s->G_master : which == 1 ? s->G_m : s->G_v;
}

static void pause_for(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	if (ns)
		nanosleep(&t, NULL);
}

static void do_update(struct engine *g, const struct sched_task *t)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype W = g->c.step.work, G = tr_grad_dtype(W);
	bool offload = g->c.step.strategy.kind == STRATEGY_OFFLOAD;
	const void *grad = shard_as_G(g, offload ? g->R_host[t->unit & 1] : s->R_shard, s->mine);
	char *p = state_of(g, t->unit, 0), *m = state_of(g, t->unit, 1);
	char *v = state_of(g, t->unit, 2);
	/* Offloaded, the new parameters go to the device by a task of their own. */
	void *work = offload || s->W_shard == (void *)p ? NULL : s->W_shard;
	struct tr_adamw a = g->c.adamw;
	a.t = (int64_t)g->step_number + 1;
	for (int i = 0; i < s->segments; i++) {
		const struct segment *x = &s->seg[i];
		a.decay = x->decay ? g->c.adamw.decay : 0;
		g->c.dev_ops->adamw(&g->q, &a, engine_at(p, G, x->first), engine_at(m, G, x->first),
			engine_at(v, G, x->first), engine_at(grad, G, x->first), g->grad_scale,
			work ? engine_at(work, W, x->first) : NULL, x->n);
	}
	pause_for(g->c.optimizer_delay_ns);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static struct exchange *exchange_of(struct engine *g, const struct sched_task *t)
{
	return g->queue[t->queue].x;
}

static int begin_gather(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	const void *mine = s->W_shard;
	enum tr_dtype W = g->c.step.work;
	if (g->W_stage) {
		size_t bytes = (size_t)s->cut.per_rank * tr_dtype_size(W);
		g->c.dev_ops->copy(&g->q, g->W_stage, mine, bytes);
		g->stats->bytes[SCHED_PARAMS_IN] += bytes;
		mine = g->W_stage;
	}
	return exchange_all_gather(exchange_of(g, t), mine, (void *)(uintptr_t)params_of(g, t),
		(size_t)s->cut.per_rank, engine_coll_dtype(W), e);
}

/* Where a shard's sum over ranks of one micro-batch lands, as R. */
static void *landing(struct engine *g, struct unit_state *s)
{
	return s->R_micro ? s->R_micro : s->R_shard;
}

static bool lands_directly(const struct engine *g, const struct unit_state *s)
{
	return g->c.step.reduce == g->R && (s->R_micro || !s->reduced);
}

static int begin_reduce_scatter(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype wire = g->c.step.reduce;
	const void *in = grads_of(g, t->unit);
	if (wire != g->R) {
		g->c.dev_ops->cast(&g->q, g->wire_in, wire, in, g->R, s->cut.padded);
		in = g->wire_in;
	}
	return exchange_reduce_scatter(exchange_of(g, t), in,
		lands_directly(g, s) ? landing(g, s) : g->wire_out, (size_t)s->cut.per_rank,
		engine_coll_dtype(wire), e);
}

static void finish_reduce_scatter(struct engine *g, const struct sched_task *t)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype wire = g->c.step.reduce;
	if (lands_directly(g, s))
		;
	else if (s->R_micro || !s->reduced)
		g->c.dev_ops->cast(&g->q, landing(g, s), g->R, g->wire_out, wire, s->cut.per_rank);
	else
		g->c.dev_ops->accumulate(
			&g->q, s->R_shard, g->R, g->wire_out, wire, s->cut.per_rank);
	s->reduced = s->reduced || !s->R_micro;
}

/* ddp: a unit's whole gradient; hybrid: the shard's, across replicas. */
static void *reduced_whole(struct engine *g, const struct sched_task *t)
{
	struct unit_state *s = engine_unit(g, t->unit);
	return g->c.step.strategy.kind == STRATEGY_DDP ? grads_of(g, t->unit) : landing(g, s);
}

static bool cast_for_replicas(const struct engine *g)
{
	return g->c.step.reduce != g->R && g->replicate.size > 1;
}

static int begin_all_reduce(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype wire = g->c.step.reduce;
	void *buf = reduced_whole(g, t);
	if (cast_for_replicas(g)) {
		g->c.dev_ops->cast(&g->q, g->wire_sum, wire, buf, g->R, s->cut.per_rank);
		buf = g->wire_sum;
	}
	return exchange_all_reduce(exchange_of(g, t), buf, (size_t)s->cut.per_rank,
		engine_coll_dtype(cast_for_replicas(g) ? wire : g->R), e);
}

static void finish_all_reduce(struct engine *g, const struct sched_task *t)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype wire = g->c.step.reduce;
	void *buf = reduced_whole(g, t);
	if (cast_for_replicas(g))
		g->c.dev_ops->cast(&g->q, buf, g->R, g->wire_sum, wire, s->cut.per_rank);
	if (buf == s->R_shard)
		return;
	if (s->reduced)
		g->c.dev_ops->accumulate(&g->q, s->R_shard, g->R, buf, g->R, s->cut.per_rank);
	else
		g->c.dev_ops->cast(&g->q, s->R_shard, g->R, buf, g->R, s->cut.per_rank);
	s->reduced = true;
}

static int begin_norm_reduce(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	if (g->c.step.deterministic)
		return exchange_all_reduce(exchange_of(g, t), &g->norm_fixed, 1, COLL_INT64, e);
	return exchange_all_reduce(exchange_of(g, t), &g->norm_sum, 1, COLL_DOUBLE, e);
}

static void finish_norm_reduce(struct engine *g, const struct sched_task *t)
{
	double sum = g->c.step.deterministic ? ldexp((double)g->norm_fixed, -TR_FIXED_BITS)
					     : g->norm_sum;
	g->grad_norm = sqrt(sum);
	g->grad_scale = g->grad_norm > g->c.clip_norm ? g->c.clip_norm / g->grad_norm : 1.0;
}

static int begin_param_gather(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	return exchange_all_gather(exchange_of(g, t), s->W_shard, s->W_whole,
		(size_t)s->cut.per_rank, engine_coll_dtype(g->c.step.work), e);
}

/* ---- offload --------------------------------------------------------------------------------- */

static size_t state_bytes(const struct engine *g, const struct unit_state *s)
{
	return 3 * (size_t)s->cut.per_rank * tr_dtype_size(tr_grad_dtype(g->c.step.work));
}

/* The end of a copy to or from host memory, which is this thread's own work: whatever it was doing
 * stands still for it. With --inject storage it lasts longer. */
static void end_copy(struct engine *g, enum sched_op op, uint64_t began)
{
	double own = (double)(engine_now() - began);
	if (g->c.storage_delay_ns > 0 || g->c.storage_slow > 0)
		pause_for(g->c.storage_delay_ns + (uint64_t)(own * g->c.storage_slow));
	uint64_t ns = engine_now() - began;
	g->stats->exposed_ns[op] += ns;
	g->inline_ns += ns;
}

static int begin_grads_out(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	size_t bytes = (size_t)s->cut.per_rank * tr_dtype_size(g->R);
	uint64_t began = engine_now();
	g->c.dev_ops->copy(&g->q, g->R_host[t->unit & 1], s->R_shard, bytes);
	g->stats->bytes[t->op] += bytes;
	end_copy(g, t->op, began);
	return 0;
}

static int begin_params_in(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	enum tr_dtype W = g->c.step.work;
	uint64_t began = engine_now();
	g->c.dev_ops->cast(
		&g->q, s->W_shard, W, state_of(g, t->unit, 0), tr_grad_dtype(W), s->cut.per_rank);
	/* Parameters that live outside cross over when they are gathered. */
	if (!g->W_stage)
		g->stats->bytes[t->op] += (size_t)s->cut.per_rank * tr_dtype_size(W);
	end_copy(g, t->op, began);
	return 0;
}

static int begin_state(struct engine *g, const struct sched_task *t, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, t->unit);
	if (!g->store)
		return 0;
	store_slow(g->store, g->c.storage_delay_ns, g->c.storage_slow);
	store_start(g->store, t->op == SCHED_STATE_OUT, g->state[t->unit & 1], state_bytes(g, s),
		s->store_at);
	g->stats->bytes[t->op] += state_bytes(g, s);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

struct task_ops {
	void (*compute)(struct engine *g, const struct sched_task *t);
	int (*begin)(struct engine *g, const struct sched_task *t, struct fb_err *e);
	void (*finish)(struct engine *g, const struct sched_task *t);
};
static const struct task_ops task_ops[SCHED_OP_COUNT] = {
	[SCHED_GATHER] = {NULL, begin_gather, NULL},
	[SCHED_RELEASE] = {do_release, NULL, NULL},
	[SCHED_EMBED_FWD] = {do_embed_fwd, NULL, NULL},
	[SCHED_FWD] = {do_fwd, NULL, NULL},
	[SCHED_HEAD] = {do_head, NULL, NULL},
	[SCHED_RECOMPUTE] = {do_recompute, NULL, NULL},
	[SCHED_BWD] = {do_bwd, NULL, NULL},
	[SCHED_EMBED_BWD] = {do_embed_bwd, NULL, NULL},
	[SCHED_REDUCE_SCATTER] = {NULL, begin_reduce_scatter, finish_reduce_scatter},
	[SCHED_ALL_REDUCE] = {NULL, begin_all_reduce, finish_all_reduce},
	[SCHED_NORM] = {do_norm, NULL, NULL},
	[SCHED_NORM_REDUCE] = {NULL, begin_norm_reduce, finish_norm_reduce},
	[SCHED_GRADS_OUT] = {NULL, begin_grads_out, NULL},
	[SCHED_STATE_IN] = {NULL, begin_state, NULL},
	[SCHED_UPDATE] = {do_update, NULL, NULL},
	[SCHED_STATE_OUT] = {NULL, begin_state, NULL},
	[SCHED_PARAMS_IN] = {NULL, begin_params_in, NULL},
	[SCHED_PARAM_GATHER] = {NULL, begin_param_gather, NULL},
};

/* Measuring gradients alone: what changes parameters stays out. */
static bool left_out(const struct engine *g, enum sched_op op)
{
	return !g->update && op >= SCHED_GRADS_OUT;
}

void engine_compute(struct engine *g, const struct sched_task *t)
{
	if (left_out(g, t->op))
		return;
	task_ops[t->op].compute(g, t);
	if (t->op != SCHED_RELEASE)
		pause_for(g->c.rank_delay_ns);
}

int engine_begin(struct engine *g, const struct sched_task *t, bool *over, struct fb_err *e)
{
	*over = true;
	if (left_out(g, t->op))
		return 0;
	struct exchange *x = exchange_of(g, t);
	if (x) {
		exchange_delay(x, g->c.exchange_delay_ns[t->op], 0);
		g->queue[t->queue].sent_before = exchange_stats(x)->bytes_sent;
	}
	int rc = task_ops[t->op].begin(g, t, e);
	if (rc == 0)
		rc = engine_poll_task(g, t, over, e);
	return rc;
}

int engine_poll_task(struct engine *g, const struct sched_task *t, bool *over, struct fb_err *e)
{
	struct exchange *x = exchange_of(g, t);
	if (x)
		return exchange_test(x, over, e);
	bool file = t->op == SCHED_STATE_IN || t->op == SCHED_STATE_OUT;
	if (g->store && file)
		return store_test(g->store, over, e);
	*over = true;
	return 0;
}

void engine_finish(struct engine *g, const struct sched_task *t)
{
	if (left_out(g, t->op))
		return;
	struct exchange *x = exchange_of(g, t);
	if (x)
		g->stats->bytes[t->op] +=
			exchange_stats(x)->bytes_sent - g->queue[t->queue].sent_before;
	if (task_ops[t->op].finish)
		task_ops[t->op].finish(g, t);
}
