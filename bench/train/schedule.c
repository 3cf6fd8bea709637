// SPDX-License-Identifier: Apache-2.0
/*
 * A step as a list of tasks. The list is written in the order in which the compute thread meets its
 * tasks; tasks of other queues stand at the first place where they may begin. Block parameters are
 * gathered into two slots in turn: the g-th gather of a step waits for the release of the one two
 * before it, which is all that prefetching needs, forward, backward and across micro-batches.
 * Gradients of blocks lie in two buffers in turn, freed by their last reduction.
 *
 * It knows nothing of ranks' numbers, memory or time.
 */
#include "bench/train/schedule.h"

#include <errno.h>
#include <stdlib.h>

const char *const sched_op_names[] = {"all_gather", "release", "embed_fwd", "fwd", "head",
	"recompute", "bwd", "embed_bwd", "reduce_scatter", "all_reduce", "norm", "norm_reduce",
	"grads_out", "state_in", "update", "state_out", "params_in", "param_gather"};
const char *const sched_queue_names[] = {"compute", "gather", "reduce", "replicate", "storage"};
_Static_assert(sizeof(sched_op_names) / sizeof(sched_op_names[0]) == SCHED_OP_COUNT, "op names");
_Static_assert(sizeof(sched_queue_names) / sizeof(sched_queue_names[0]) == SCHED_QUEUE_COUNT,
	"queue names");

/* More is a mistake in the options, not a step. */
#define MAX_TASKS (1 << 24)

static const enum sched_queue queue_of[] = {
	[SCHED_GATHER] = SCHED_Q_GATHER,
	[SCHED_RELEASE] = SCHED_COMPUTE,
	[SCHED_EMBED_FWD] = SCHED_COMPUTE,
	[SCHED_FWD] = SCHED_COMPUTE,
	[SCHED_HEAD] = SCHED_COMPUTE,
	[SCHED_RECOMPUTE] = SCHED_COMPUTE,
	[SCHED_BWD] = SCHED_COMPUTE,
	[SCHED_EMBED_BWD] = SCHED_COMPUTE,
	[SCHED_REDUCE_SCATTER] = SCHED_Q_REDUCE,
	[SCHED_ALL_REDUCE] = SCHED_Q_REPLICATE,
	[SCHED_NORM] = SCHED_COMPUTE,
	[SCHED_NORM_REDUCE] = SCHED_Q_REDUCE,
	[SCHED_GRADS_OUT] = SCHED_Q_STORAGE,
	[SCHED_STATE_IN] = SCHED_Q_STORAGE,
	[SCHED_UPDATE] = SCHED_COMPUTE,
	[SCHED_STATE_OUT] = SCHED_Q_STORAGE,
	[SCHED_PARAMS_IN] = SCHED_Q_STORAGE,
	[SCHED_PARAM_GATHER] = SCHED_Q_GATHER,
};

enum sched_queue schedule_queue_of(enum sched_op op)
{
	return queue_of[op];
}

struct builder {
	const struct step_config *c;
	struct schedule *s;
	int layers;
	int64_t elements[2]; /* of a block, of the root */
	bool whole, keep, offload;
	int last_compute, last_other; /* tasks; -1: none yet */
	int last_of[SCHED_QUEUE_COUNT];
	/* Gathers of blocks, in the order in which blocks are used. */
	int gathers, next_gather, releases, slots;
	int root_gather;
	int *gathered, *released; /* task, by slot, or by unit where each block has its own */
	int reader[3];            /* last reduction that read a gradient buffer */
	int *reduced;             /* by unit: its last reduction in the step */
};

static int64_t unit_elements(const struct builder *b, int unit)
{
	return b->elements[unit == b->layers];
}
static int64_t shard_elements(const struct builder *b, int unit)
{
	return shard_cut(unit_elements(b, unit), b->c->strategy.shard).per_rank;
}

static void wait_for(struct builder *b, int task, int other)
{
	struct sched_task *t = &b->s->v[task];
	if (other < 0)
		return;
	for (int i = 0; i < SCHED_MAX_WAITS; i++) {
		if (t->waits[i] == other)
			return;
		if (t->waits[i] < 0) {
			t->waits[i] = other;
			return;
		}
	}
}

/* Append. Room was made for all of them. */
static int put(struct builder *b, enum sched_op op, int unit, int micro)
{
	int i = b->s->n++;
	struct sched_task *t = &b->s->v[i];
	*t = (struct sched_task){.op = op,
		.queue = queue_of[op],
		.unit = unit,
		.micro = micro,
		.slot = -1,
		.gslot = -1,
		.waits = {-1, -1, -1, -1}};
	bool compute = t->queue == SCHED_COMPUTE;
	if (!b->c->overlap) {
		wait_for(b, i, b->last_other);
		if (!compute)
			wait_for(b, i, b->last_compute);
	}
	if (compute)
		b->last_compute = i;
	else
		b->last_other = i;
	b->last_of[t->queue] = i;
	return i;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int gathers_per_micro(const struct builder *b)
{
	return b->keep ? b->layers : 2 * b->layers - 1;
}
/* Which gather a block's forward or backward uses. The last block stays gathered between both. */
static int gather_of(const struct builder *b, int unit, int micro, bool backward)
{
	int first = micro * gathers_per_micro(b);
	if (b->keep || !backward || unit == b->layers - 1)
		return first + unit;
	return first + b->layers + (b->layers - 2 - unit);
}

static int put_gather(struct builder *b, int unit, int micro, int slot, int after)
{
	int i = put(b, SCHED_GATHER, unit, micro);
	b->s->v[i].slot = slot;
	b->s->v[i].count = shard_elements(b, unit);
	wait_for(b, i, after);
	return i;
}
static void next_gather(struct builder *b)
{
	int per = gathers_per_micro(b);
	int micro = b->next_gather / per, j = b->next_gather % per;
	int unit = j < b->layers ? j : 2 * b->layers - 2 - j;
	int place = b->keep ? unit : b->next_gather % b->slots;
	b->gathered[place] =
		put_gather(b, unit, micro, b->keep ? SCHED_SLOT_OWN : place, b->released[place]);
	b->next_gather++;
}
/* Begin all gathers that have a place to go to. */
static void gather_ahead(struct builder *b)
{
	int room = b->keep ? (b->releases / b->layers + 1) * b->layers : b->releases + b->slots;
	while (b->next_gather < b->gathers && b->next_gather < room)
		next_gather(b);
}
/* A block's compute task, its parameters at hand. */
static int put_block(struct builder *b, enum sched_op op, int unit, int micro, bool backward)
{
	if (!b->gathers)
		return put(b, op, unit, micro);
	int g = gather_of(b, unit, micro, backward);
	while (b->next_gather <= g)
		next_gather(b);
	int i = put(b, op, unit, micro);
	b->s->v[i].slot = b->keep ? SCHED_SLOT_OWN : g % b->slots;
	wait_for(b, i, b->gathered[b->keep ? unit : g % b->slots]);
	return i;
}
static void release(struct builder *b, int unit, int micro, int slot)
{
	if (!b->gathers)
		return;
	int i = put(b, SCHED_RELEASE, unit, micro);
	b->s->v[i].slot = slot;
	if (unit == b->layers)
		return;
	b->released[b->keep ? unit : slot] = i;
	b->releases++;
	if (b->c->overlap)
		gather_ahead(b);
}
static int put_root(struct builder *b, enum sched_op op, int micro)
{
	int i = put(b, op, b->layers, micro);
	if (b->gathers) {
		b->s->v[i].slot = SCHED_SLOT_ROOT;
		wait_for(b, i, b->root_gather);
	}
	return i;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void writes_grads(struct builder *b, int task, int micro, int gslot, bool first)
{
	struct sched_task *t = &b->s->v[task];
	t->fresh = first && (!b->whole || micro == 0);
	if (b->whole)
		return;
	t->gslot = gslot;
	if (first)
		wait_for(b, task, b->reader[gslot]);
}
static int put_reduction(struct builder *b, enum sched_op op, int unit, int micro, int after)
{
	int i = put(b, op, unit, micro);
	b->s->v[i].count = b->c->strategy.kind == STRATEGY_DDP ? unit_elements(b, unit)
							       : shard_elements(b, unit);
	wait_for(b, i, after);
	return i;
}
static void reduce(struct builder *b, int unit, int micro, int gslot, int after)
{
	if (b->whole && micro != b->c->micro_batches - 1)
		return;
	enum strategy_kind kind = b->c->strategy.kind;
	enum sched_op op = kind == STRATEGY_DDP ? SCHED_ALL_REDUCE : SCHED_REDUCE_SCATTER;
	int i = put_reduction(b, op, unit, micro, after);
	b->s->v[i].gslot = b->whole ? -1 : gslot;
	b->reader[gslot] = i;
	if (kind == STRATEGY_HYBRID) {
		/* The shard's sum of the micro-batch before may still be on its way. */
		wait_for(b, i, b->reduced[unit]);
		i = put_reduction(b, SCHED_ALL_REDUCE, unit, micro, i);
	}
	b->s->v[i].accumulate = !b->whole;
	b->reduced[unit] = i;
}

/* ---- the step -------------------------------------------------------------------------------- */

static void backward(struct builder *b, int unit, int micro)
{
	if (b->c->recompute == TR_RECOMPUTE_FULL)
		put_block(b, SCHED_RECOMPUTE, unit, micro, true);
	int gslot = unit % 2;
	int i = put_block(b, SCHED_BWD, unit, micro, true);
	writes_grads(b, i, micro, gslot, true);
	int slot = b->s->v[i].slot;
	reduce(b, unit, micro, gslot, i);
	release(b, unit, micro, slot);
}
static void micro_batch(struct builder *b, int micro)
{
	int root = b->layers;
	put_root(b, SCHED_EMBED_FWD, micro);
	for (int u = 0; u < b->layers; u++) {
		int i = put_block(b, SCHED_FWD, u, micro, false);
		if (!b->keep && u < b->layers - 1)
			release(b, u, micro, b->s->v[i].slot);
	}
	int head = put_root(b, SCHED_HEAD, micro);
	writes_grads(b, head, micro, 2, true);
	for (int u = b->layers - 1; u >= 0; u--)
		backward(b, u, micro);
	int i = put_root(b, SCHED_EMBED_BWD, micro);
	writes_grads(b, i, micro, 2, false);
	reduce(b, root, micro, 2, i);
	if (micro == b->c->micro_batches - 1)
		release(b, root, micro, SCHED_SLOT_ROOT);
}

/* Gradients and optimizer state of a unit to where it is updated: one of two buffers in turn. */
static int bring(struct builder *b, int unit, const int freed[2])
{
	int in[2];
	for (int k = 0; k < 2; k++) {
		in[k] = put(b, k ? SCHED_STATE_IN : SCHED_GRADS_OUT, unit, -1);
		b->s->v[in[k]].slot = unit % 2;
		b->s->v[in[k]].count = shard_elements(b, unit);
		wait_for(b, in[k], freed[unit % 2]);
	}
	wait_for(b, in[0], b->reduced[unit]);
	return in[1]; /* of one queue: the other has ended then */
}
static int put_back(struct builder *b, enum sched_op op, int unit, int update)
{
	int i = put(b, op, unit, -1);
	b->s->v[i].slot = unit % 2;
	b->s->v[i].count = shard_elements(b, unit);
	wait_for(b, i, update);
	return i;
}
/* While a unit is updated, the next one's state comes in. */
static void update_offloaded(struct builder *b, int norm)
{
	int in[2] = {-1, -1}, freed[2] = {-1, -1};
	for (int u = 0; u <= b->layers; u++) {
		int s = u % 2;
		if (u == 0 || !b->c->overlap)
			in[s] = bring(b, u, freed);
		if (u < b->layers && b->c->overlap)
			in[!s] = bring(b, u + 1, freed);
		int up = put(b, SCHED_UPDATE, u, -1);
		b->s->v[up].slot = s;
		wait_for(b, up, in[s]);
		wait_for(b, up, norm);
		put_back(b, SCHED_STATE_OUT, u, up);
		freed[s] = put_back(b, SCHED_PARAMS_IN, u, up);
	}
}
static void update(struct builder *b)
{
	int norm = -1;
	if (b->c->clip) {
		int i = put(b, SCHED_NORM, -1, -1);
		wait_for(b, i, b->last_of[SCHED_Q_REDUCE]);
		wait_for(b, i, b->last_of[SCHED_Q_REPLICATE]);
		norm = put(b, SCHED_NORM_REDUCE, -1, -1);
		b->s->v[norm].count = 1;
		wait_for(b, norm, i);
	}
	if (b->offload) {
		update_offloaded(b, norm);
		return;
	}
	enum strategy_kind kind = b->c->strategy.kind;
	for (int unit = 0; unit <= b->layers; unit++) {
		int up = put(b, SCHED_UPDATE, unit, -1);
		wait_for(b, up, b->reduced[unit]);
		wait_for(b, up, norm);
		if (kind != STRATEGY_ZERO1 && kind != STRATEGY_ZERO2)
			continue;
		int i = put(b, SCHED_PARAM_GATHER, unit, -1);
		b->s->v[i].count = shard_elements(b, unit);
		wait_for(b, i, up);
	}
}

/* No step of this configuration has more tasks. */
static int64_t most_tasks(const struct step_config *c)
{
	int64_t units = c->model.layers + 1;
	/* a block: gather and release twice; forward, again, backward; two reductions; then grads
	 * out, state in, update, state out, params in */
	return c->micro_batches * units * 9 + units * 5 + 2;
}
static int *indexes(int n)
{
	int *v = malloc((size_t)n * sizeof(*v));
	for (int i = 0; v && i < n; i++)
		v[i] = -1;
	return v;
}

int schedule_build(const struct step_config *c, struct schedule *s, struct fb_err *e)
{
	*s = (struct schedule){0};
	if (c->model.layers < 1 || c->micro_batches < 1 || c->model.layers > MAX_TASKS ||
		most_tasks(c) > MAX_TASKS) {
		fb_fail_usage(e, "a step of %lld layers and %d micro-batches cannot be scheduled",
			(long long)c->model.layers, c->micro_batches);
		fb_hint(e, "at least one of each, and fewer than %d tasks in all", MAX_TASKS);
		return -EINVAL;
	}
	struct builder b = {.c = c, .s = s, .layers = (int)c->model.layers};
	struct model_unit u;
	model_unit(&c->model, 0, &u);
	b.elements[0] = u.elements;
	model_unit(&c->model, c->model.layers, &u);
	b.elements[1] = u.elements;
	b.slots = b.layers < 2 ? 1 : 2;
	b.whole = step_grads_whole(c);
	b.keep = c->strategy.keep_gathered;
	b.offload = c->strategy.kind == STRATEGY_OFFLOAD;
	b.last_compute = b.last_other = b.root_gather = -1;
	for (int i = 0; i < SCHED_QUEUE_COUNT; i++)
		b.last_of[i] = -1;
	b.reader[0] = b.reader[1] = b.reader[2] = -1;

	int rc = -ENOMEM;
	s->cap = (int)most_tasks(c);
	s->v = malloc((size_t)s->cap * sizeof(*s->v));
	b.gathered = indexes(b.layers + 2);
	b.released = indexes(b.layers + 2);
	b.reduced = indexes(b.layers + 1);
	if (!s->v || !b.gathered || !b.released || !b.reduced) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a schedule of %d tasks",
			s->cap);
		schedule_free(s);
		goto free_indexes;
	}
	if (c->strategy.shard_params) {
		b.gathers = c->micro_batches * gathers_per_micro(&b);
		b.root_gather = put_gather(&b, b.layers, 0, SCHED_SLOT_ROOT, -1);
		if (c->overlap)
			gather_ahead(&b);
	}
	for (int m = 0; m < c->micro_batches; m++)
		micro_batch(&b, m);
	update(&b);
	rc = 0;
free_indexes:
	free(b.reduced);
	free(b.released);
	free(b.gathered);
	return rc;
}

void schedule_free(struct schedule *s)
{
	free(s->v);
	*s = (struct schedule){0};
}

/* ---- bytes ----------------------------------------------------------------------------------- */

double schedule_task_bytes(const struct step_config *c, const struct sched_task *t)
{
	double n = (double)t->count;
	double others = c->strategy.shard - 1, replicas = c->strategy.replicate;
	double work = (double)tr_dtype_size(c->work), wire = (double)tr_dtype_size(c->reduce);
	double state = 3 * (double)tr_dtype_size(tr_grad_dtype(c->work));
	switch (t->op) {
	case SCHED_GATHER:
	case SCHED_PARAM_GATHER: return others * n * work;
	case SCHED_REDUCE_SCATTER: return others * n * wire;
	case SCHED_ALL_REDUCE:
		return 2 * (replicas - 1) * wire *
		       (double)shard_cut(t->count, c->strategy.replicate).per_rank;
	case SCHED_NORM_REDUCE: return 2 * others * 8;
	case SCHED_GRADS_OUT: return n * (double)tr_dtype_size(step_sum_dtype(c));
	case SCHED_STATE_IN:
	case SCHED_STATE_OUT: return c->offload_file ? n * state : 0;
	case SCHED_PARAMS_IN: return c->offload_params ? 0 : n * work;
	default: return 0;
	}
}

double schedule_fetch_bytes(const struct step_config *c, const struct sched_task *t)
{
	if (t->op != SCHED_GATHER || c->strategy.kind != STRATEGY_OFFLOAD || !c->offload_params)
		return 0;
	return (double)t->count * (double)tr_dtype_size(c->work);
}
