// SPDX-License-Identifier: Apache-2.0
/*
 * A rank's engine: opened in the order model, groups, device, net, memory, schedule; a step is the
 * walk of the schedule, then one small sum over all ranks that tells each the loss.
 */
#include "bench/train/engine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/train/engine_priv.h"

enum coll_dtype engine_coll_dtype(enum tr_dtype t)
{
	static const enum coll_dtype of[] = {[TR_F32] = COLL_FLOAT,
		[TR_BF16] = COLL_BFLOAT16,
		[TR_F64] = COLL_DOUBLE,
		[TR_I64] = COLL_INT64};
	return of[t];
}

/* ---- opening --------------------------------------------------------------------------------- */

static void name_groups(struct engine *g)
{
	const struct strategy *s = &g->c.step.strategy;
	int F = s->shard, R = s->replicate;
	g->shard = (struct exchange_group){.axis = "shard",
		.rank = g->rank % F,
		.size = F,
		.first = g->rank / F * F,
		.stride = 1,
		.channel = P2P_GATHER};
	g->replicate = (struct exchange_group){.axis = "replicate",
		.rank = g->rank / F,
		.size = R,
		.first = g->rank % F,
		.stride = F,
		.channel = P2P_REPLICATE};
	g->world = (struct exchange_group){.axis = "world",
		.rank = g->rank,
		.size = g->c.step.ranks,
		.first = 0,
		.stride = 1,
		.channel = P2P_CONTROL};
}

static int open_exchanges(struct engine *g, struct fb_err *e)
{
	struct exchange_group reduce = g->shard;
	reduce.channel = P2P_REDUCE;
	const struct exchange_tiers *tiers = &g->c.tiers;
	int rc = exchange_new(g->p2p_ops, g->p2p, &g->shard, tiers, &g->queue[SCHED_Q_GATHER].x, e);
	if (rc == 0)
		rc = exchange_new(
			g->p2p_ops, g->p2p, &reduce, tiers, &g->queue[SCHED_Q_REDUCE].x, e);
	if (rc == 0)
		rc = exchange_new(g->p2p_ops, g->p2p, &g->replicate, tiers,
			&g->queue[SCHED_Q_REPLICATE].x, e);
	if (rc == 0)
		rc = exchange_new(g->p2p_ops, g->p2p, &g->world, tiers, &g->control, e);
	return rc;
}

static int open_net(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	g->chunks = c->deterministic ? (int)c->micro_seqs : 1;
	g->net = (struct net){.m = &g->c.step.model,
		.ops = g->c.dev_ops,
		.q = &g->q,
		.work = c->work,
		.seqs = c->micro_seqs / g->chunks,
		.seq = c->seq,
		.recompute = c->recompute};
	return net_open(&g->net, e);
}

static int open_tokens(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	const struct tokens_config t = {.seed = g->c.seed,
		.batches = g->c.batches,
		.file = g->c.token_file,
		.vocab = c->model.vocab,
		.seq = c->seq,
		.global_seqs = c->micro_seqs * c->micro_batches * c->ranks};
	return tokens_open(&t, &g->tokens, e);
}

static int open_schedule(struct engine *g, struct fb_err *e)
{
	int rc = schedule_build(&g->c.step, &g->sched, e);
	/* A step whose buffers are read before they are filled would give a wrong loss, or none, on
	 * some machines only. */
	if (rc == 0)
		rc = schedule_check(&g->c.step, &g->sched, e);
	if (rc != 0)
		return rc;
	g->over = calloc((size_t)g->sched.n, sizeof(*g->over));
	g->time = calloc((size_t)g->sched.n, sizeof(*g->time));
	if (!g->over || !g->time)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d tasks", g->sched.n);
	return 0;
}

static int open_parts(struct engine *g, struct fb_err *e)
{
	struct tr_dev_cfg dev = g->c.dev;
	dev.work = g->c.step.work;
	dev.poll = engine_poll;
	dev.poll_arg = g;
	int rc = open_exchanges(g, e);
	if (rc == 0)
		rc = g->c.dev_ops->open(&dev, &g->dev, e);
	g->q = (struct tr_queue){.dev = g->dev, .id = 0};
	if (rc == 0)
		rc = open_net(g, e);
	if (rc == 0)
		rc = open_tokens(g, e);
	if (rc == 0)
		rc = engine_alloc(g, e);
	if (rc == 0)
		rc = open_schedule(g, e);
	return rc == 0 ? g->c.dev_ops->error(g->dev, e) : rc;
}

int engine_open(const struct engine_config *c, const struct p2p_ops *net_ops, struct p2p *p,
	int rank, struct engine **out, struct fb_err *e)
{
	struct engine *g = calloc(1, sizeof(*g));
	if (!g)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a rank");
	g->c = *c;
	g->p2p_ops = net_ops;
	g->p2p = p;
	g->rank = rank;
	g->units = (int)c->step.model.layers + 1;
	g->whole = !c->step.strategy.shard_params;
	g->reduce_each = !step_grads_whole(&c->step);
	g->replicas_each = g->reduce_each && c->step.strategy.replicate > 1 &&
			   c->step.strategy.kind == STRATEGY_HYBRID && c->step.micro_batches > 1;
	g->R = c->step.deterministic ? TR_I64 : tr_grad_dtype(c->step.work);
	model_unit(&c->step.model, 0, &g->block);
	model_unit(&c->step.model, c->step.model.layers, &g->root);
	name_groups(g);
	/* Waits of microseconds, on links that are faster than the timer's usual slack. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	int rc = open_parts(g, e);
	if (rc != 0) {
		engine_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

void engine_close(struct engine *g)
{
	if (!g)
		return;
	g->stats = NULL;
	if (g->dev)
		engine_free(g);
	net_close(&g->net);
	tokens_close(g->tokens);
	schedule_free(&g->sched);
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++)
		exchange_free(g->queue[q].x);
	exchange_free(g->control);
	if (g->dev)
		g->c.dev_ops->close(g->dev);
	free(g->over);
	free(g->time);
	free(g);
}

void engine_abort(struct engine *g, const struct fb_err *why)
{
	g->p2p_ops->abort(g->p2p, why);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Global sequence of a rank's j-th of micro-batch m: micro-batches are dealt out to all ranks in
 * turn, so that their union does not depend on the number of ranks. */
static int64_t sequence_of(const struct engine *g, int m, int64_t j)
{
	const struct step_config *c = &g->c.step;
	return ((int64_t)m * c->ranks + g->rank) * c->micro_seqs + j;
}

static int load_tokens(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	int rc = 0;
	for (int m = 0; m < c->micro_batches; m++)
		for (int64_t j = 0; j < c->micro_seqs && rc == 0; j++) {
			int64_t at = ((int64_t)m * c->micro_seqs + j) * c->seq;
			rc = tokens_read(g->tokens, g->step_number, sequence_of(g, m, j),
				g->input + at, g->target + at, e);
		}
	return rc;
}

/* Sum over all sequences and ranks. The fixed point's unit, 2^-30, is far below what a loss is
 * printed with, and 2^33 tokens of loss fit. */
#define LOSS_BITS 30
static int share_loss(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	double tokens =
		(double)c->ranks * (double)c->micro_seqs * c->micro_batches * (double)c->seq;
	int n = c->micro_batches * g->chunks, rc;
	double sum = 0;
	int64_t fixed = 0;
	for (int i = 0; i < n; i++) {
		sum += g->loss[i];
		if (isfinite(g->loss[i]))
			fixed += llrint(ldexp(g->loss[i], LOSS_BITS));
	}
	double both[2] = {sum, 0};
	rc = exchange_all_reduce(g->control, both, 1, COLL_DOUBLE, e);
	if (rc == 0)
		rc = engine_wait(g, g->control, "the loss of all ranks", e);
	if (rc == 0 && c->deterministic && isfinite(both[0])) {
		rc = exchange_all_reduce(g->control, &fixed, 1, COLL_INT64, e);
		if (rc == 0)
			rc = engine_wait(g, g->control, "the loss of all ranks", e);
		both[0] = ldexp((double)fixed, -LOSS_BITS);
	}
	g->stats->loss = both[0] / tokens;
	return rc;
}

static int check_loss(struct engine *g, struct fb_err *e)
{
	bool loss = isfinite(g->stats->loss);
	if (loss && (g->c.clip_norm <= 0 || isfinite(g->grad_norm)))
		return 0;
	/* The sign of a NaN says nothing, so it is not printed. */
	int rc = fb_fail(e, FB_EXIT_WRONG_DATA, EDOM, "step %llu: the %s is %g",
		(unsigned long long)g->step_number, loss ? "gradient's norm" : "loss",
		fabs(loss ? g->grad_norm : g->stats->loss));
	fb_hint(e,
		"try a smaller --lr, --clip 1, or --dtype fp32; one rank alone gets the same batch "
		"from the same seed");
	return rc;
}

static void begin_step(struct engine *g, struct step_stats *s, uint64_t deadline, bool update)
{
	memset(s, 0, sizeof(*s));
	g->stats = s;
	g->deadline = deadline;
	g->update = update;
	g->grad_scale = 1.0;
	g->grad_norm = NAN;
	g->error.code = 0;
	for (int u = 0; u < g->units; u++)
		g->unit[u].reduced = false;
}

/* Bytes sent so far in the collectives of parameters and gradients, by how far they went. */
static void count_tiers(const struct engine *g, struct exchange_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++) {
		if (!g->queue[q].x)
			continue;
		const struct exchange_stats *x = exchange_stats(g->queue[q].x);
		sum->bytes_sent += x->bytes_sent;
		sum->bytes_to_node += x->bytes_to_node;
		sum->bytes_to_rack += x->bytes_to_rack;
	}
}

static int walk(struct engine *g, struct fb_err *e)
{
	int rc = load_tokens(g, e);
	if (rc == 0)
		rc = engine_run(g, e);
	if (rc == 0)
		rc = g->c.dev_ops->error(g->dev, e);
	return rc == 0 ? share_loss(g, e) : rc;
}

int engine_step(struct engine *g, uint64_t deadline, struct step_stats *s, struct fb_err *e)
{
	static const enum sched_op storage[] = {
		SCHED_GRADS_OUT, SCHED_STATE_IN, SCHED_STATE_OUT, SCHED_PARAMS_IN};
	const struct step_config *c = &g->c.step;
	struct exchange_stats before, after;
	uint64_t began = engine_now();
	count_tiers(g, &before);
	begin_step(g, s, deadline, true);
	int rc = walk(g, e);
	if (rc == 0)
		rc = check_loss(g, e);
	g->stats = NULL;
	if (rc != 0)
		return rc;
	s->step_ns = engine_now() - began;
	s->grad_norm = g->grad_norm;
	s->tokens = c->micro_seqs * c->micro_batches * c->seq;
	count_tiers(g, &after);
	s->node_bytes = after.bytes_to_node - before.bytes_to_node;
	s->rack_bytes = after.bytes_to_rack - before.bytes_to_rack;
	s->far_bytes = after.bytes_sent - before.bytes_sent - s->node_bytes - s->rack_bytes;
	uint64_t known = s->compute_ns + s->optimizer_ns;
	for (int op = 0; op < SCHED_OP_COUNT; op++)
		known += s->exposed_ns[op];
	for (size_t i = 0; i < sizeof(storage) / sizeof(storage[0]); i++)
		s->storage_ns += s->exposed_ns[storage[i]];
	s->idle_ns = s->step_ns > known ? s->step_ns - known : 0;
	g->step_number++;
	return 0;
}

int engine_gradients(struct engine *g, uint64_t deadline, double *loss, struct fb_err *e)
{
	struct step_stats s;
	begin_step(g, &s, deadline, false);
	int rc = walk(g, e);
	g->stats = NULL;
	*loss = s.loss;
	return rc;
}

/* ---- what tests look at ---------------------------------------------------------------------- */

int engine_gather_grads(
	struct engine *g, int unit, void *G_out, uint64_t deadline, struct fb_err *e)
{
	struct unit_state *s = engine_unit(g, unit);
	enum tr_dtype G = tr_grad_dtype(g->c.step.work);
	void *all = calloc((size_t)s->cut.padded, tr_dtype_size(g->R));
	if (!all)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a unit's copy");
	g->deadline = deadline;
	struct exchange *x = g->queue[SCHED_Q_GATHER].x;
	int rc = exchange_all_gather(
		x, s->R_shard, all, (size_t)s->cut.per_rank, engine_coll_dtype(g->R), e);
	if (rc == 0)
		rc = engine_wait(g, x, "a unit's shards", e);
	if (rc == 0 && g->R == TR_I64)
		g->c.dev_ops->fixed_to(&g->q, G_out, all, s->cut.elements);
	else if (rc == 0)
		g->c.dev_ops->cast(&g->q, G_out, G, all, g->R, s->cut.elements);
	free(all);
	return rc;
}

const struct schedule *engine_schedule(const struct engine *g)
{
	return &g->sched;
}

const struct task_time *engine_times(const struct engine *g)
{
	return g->time;
}

const struct tr_dev_ops *engine_device(struct engine *g, struct tr_dev **d)
{
	*d = g->dev;
	return g->c.dev_ops;
}
