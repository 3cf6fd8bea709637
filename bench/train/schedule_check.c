// SPDX-License-Identifier: Apache-2.0
/*
 * Is a schedule safe under every timing? Judged from the list alone, not from how it was made: what
 * must have ended before a task begins follows from waits and the order of queues, kept per task as
 * one position per queue. Every use of a buffer is then held against who filled it and who still
 * reads it, and every unit's way through the step must be whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train/schedule.h"

/* Tasks of each queue, counted from 1, that have ended when a task begins. */
struct ended {
	int upto[SCHED_QUEUE_COUNT];
};
/* A place of gathered parameters. */
struct place {
	int unit, gather, released; /* tasks; -1: none. Filled: gather set, released not */
};
/* A buffer of a unit's gradients. */
struct grads {
	int unit, micro, writer, freed; /* -1: none */
	bool open;                      /* written and not yet reduced */
};
/* A unit's way through the step; tasks, -1: not yet. */
struct way {
	int gathers, reductions;
	int scattered; /* a sum that is still to be reduced across replicas */
	int reduced, grads_out, state_in, update, state_out, params_in, param_gather;
};
struct checker {
	const struct step_config *c;
	const struct schedule *s;
	struct fb_err *e;
	int layers, at; /* at: the task under judgement */
	bool whole_params, whole_grads, keep, offload;
	int64_t elements[2], shard[2]; /* of a block, the root */
	struct ended *ended;
	int *pos, count[SCHED_QUEUE_COUNT];
	int alive, model_tasks; /* gathered blocks; tasks of the model so far */
	int norm, norm_reduce;
	struct place *place; /* three slots, then each block's own */
	struct grads *grads; /* by unit, or three buffers */
	struct way *way;
	int state[2]; /* unit in each buffer of optimizer state; -1: free */
};

static const struct sched_task *task(const struct checker *k)
{
	return &k->s->v[k->at];
}

static int FB_PRINTF(2, 3) fault(struct checker *k, const char *fmt, ...)
{
	const struct sched_task *t = task(k);
	char why[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	const char *op = t->op >= 0 && t->op < SCHED_OP_COUNT ? sched_op_names[t->op] : "unknown";
	fb_fail(k->e, FB_EXIT_UNMEASURED, EPROTO,
		"schedule: task %d (%s, unit %d, micro-batch %d): %s", k->at, op, t->unit, t->micro,
		why);
	return -EPROTO;
}

/* Has `other` ended whenever the task under judgement begins? */
static bool before(const struct checker *k, int other)
{
	return k->ended[k->at].upto[k->s->v[other].queue] >= k->pos[other];
}

static int kind_of_unit(const struct checker *k, int unit)
{
	return unit == k->layers;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int structure(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (t->op < 0 || t->op >= SCHED_OP_COUNT)
		return fault(k, "no such operation");
	if (t->queue != schedule_queue_of(t->op))
		return fault(k, "on the wrong queue");
	bool no_unit = t->op == SCHED_NORM || t->op == SCHED_NORM_REDUCE;
	bool no_micro = t->op >= SCHED_NORM;
	if (no_unit ? t->unit != -1 : t->unit < 0 || t->unit > k->layers)
		return fault(k, "no such unit");
	if (no_micro ? t->micro != -1 : t->micro < 0 || t->micro >= k->c->micro_batches)
		return fault(k, "no such micro-batch");
	for (int i = 0; i < SCHED_MAX_WAITS; i++)
		if (t->waits[i] < -1 || t->waits[i] >= k->at)
			return fault(
				k, "waits for task %d, which does not come before it", t->waits[i]);
	return 0;
}

static void join(struct checker *k, struct ended *to, int other)
{
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++)
		if (k->ended[other].upto[q] > to->upto[q])
			to->upto[q] = k->ended[other].upto[q];
	int q = k->s->v[other].queue;
	if (k->pos[other] > to->upto[q])
		to->upto[q] = k->pos[other];
}

static int order(struct checker *k, int last[SCHED_QUEUE_COUNT])
{
	const struct sched_task *t = task(k);
	struct ended *mine = &k->ended[k->at];
	memset(mine, 0, sizeof(*mine));
	for (int i = 0; i < SCHED_MAX_WAITS; i++)
		if (t->waits[i] >= 0)
			join(k, mine, t->waits[i]);
	if (last[t->queue] >= 0)
		join(k, mine, last[t->queue]);
	for (int q = 0; !k->c->overlap && q < SCHED_QUEUE_COUNT; q++)
		if (mine->upto[q] != k->count[q])
			return fault(k, "without overlap it must wait for the %s queue",
				sched_queue_names[q]);
	last[t->queue] = k->at;
	k->pos[k->at] = ++k->count[t->queue];
	return 0;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Where a task's gathered parameters lie, or NULL: no place for this unit. */
static struct place *place_of(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (t->unit == k->layers)
		return t->slot == SCHED_SLOT_ROOT ? &k->place[2] : NULL;
	if (k->keep)
		return t->slot == SCHED_SLOT_OWN ? &k->place[3 + t->unit] : NULL;
	return t->slot == 0 || t->slot == 1 ? &k->place[t->slot] : NULL;
}
static bool filled(const struct place *p)
{
	return p->gather >= 0 && p->released < 0;
}

static int check_count(struct checker *k, int64_t expected)
{
	if (task(k)->count != expected)
		return fault(k, "%lld elements where %lld are due", (long long)task(k)->count,
			(long long)expected);
	return 0;
}

static int check_gather(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (k->whole_params)
		return fault(k, "parameters are whole already");
	struct place *p = place_of(k);
	if (!p)
		return fault(k, "slot %d is not for this unit", t->slot);
	if (filled(p))
		return fault(k, "overwrites unit %d in slot %d, which is in use", p->unit, t->slot);
	if (p->released >= 0 && !before(k, p->released))
		return fault(k, "does not wait for the release of slot %d (task %d)", t->slot,
			p->released);
	*p = (struct place){.unit = t->unit, .gather = k->at, .released = -1};
	if (t->unit != k->layers && ++k->alive > (k->keep ? k->layers : 2))
		return fault(k, "%d gathered units alive beside the root", k->alive);
	k->way[t->unit].gathers++;
	return check_count(k, k->shard[kind_of_unit(k, t->unit)]);
}

/* The parameters a compute task reads. */
static int check_params(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (k->whole_params)
		return t->slot == -1 ? 0 : fault(k, "parameters are whole and in no slot");
	struct place *p = place_of(k);
	if (!p)
		return fault(k, "slot %d is not for this unit", t->slot);
	if (!filled(p) || p->unit != t->unit)
		return fault(k, "its parameters are not in slot %d", t->slot);
	if (!before(k, p->gather))
		return fault(k, "does not wait for its parameters (task %d)", p->gather);
	return 0;
}

static int check_release(struct checker *k)
{
	int rc = k->whole_params ? fault(k, "nothing was gathered") : check_params(k);
	if (rc != 0)
		return rc;
	place_of(k)->released = k->at;
	if (task(k)->unit != k->layers)
		k->alive--;
	return 0;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static struct grads *grads_of(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (k->whole_grads)
		return t->gslot == -1 ? &k->grads[t->unit] : NULL;
	int expected = t->unit == k->layers ? 2 : t->unit % 2;
	return t->gslot == expected ? &k->grads[t->gslot] : NULL;
}

static int check_write(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct grads *g = grads_of(k);
	if (!g)
		return fault(k, "gradient buffer %d is not for this unit", t->gslot);
	bool first = t->op != SCHED_EMBED_BWD;
	bool fresh = first && (!k->whole_grads || t->micro == 0);
	if (t->fresh != fresh)
		return fault(k, t->fresh ? "clears gradients that are kept"
					 : "adds to gradients of something else");
	if (!fresh) {
		if (!g->open || g->unit != t->unit || (!k->whole_grads && g->micro != t->micro))
			return fault(k, "adds to gradients that are not there");
	} else if (g->open) {
		return fault(
			k, "overwrites gradients of unit %d before they were reduced", g->unit);
	} else if (g->freed >= 0 && !before(k, g->freed)) {
		return fault(k, "does not wait for the reduction that reads its buffer (task %d)",
			g->freed);
	}
	*g = (struct grads){
		.unit = t->unit, .micro = t->micro, .writer = k->at, .freed = -1, .open = true};
	return 0;
}

/* A unit's last reduction of a micro-batch. */
static int reduced(struct checker *k)
{
	const struct sched_task *t = task(k);
	if (t->accumulate == k->whole_grads)
		return fault(k, t->accumulate ? "is added to gradients it is already part of"
					      : "is not added to the gradients kept");
	k->way[t->unit].reductions++;
	k->way[t->unit].reduced = k->at;
	return 0;
}

/* hybrid: the shard's sum, across replicas. */
static int check_across(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct way *w = &k->way[t->unit];
	if (t->gslot != -1)
		return fault(k, "a shard's sum is in no gradient buffer");
	if (w->scattered < 0 || k->s->v[w->scattered].micro != t->micro)
		return fault(k, "there is no such shard to reduce");
	if (!before(k, w->scattered))
		return fault(k, "does not wait for its shard (task %d)", w->scattered);
	w->scattered = -1;
	int rc = reduced(k);
	return rc == 0 ? check_count(k, k->shard[kind_of_unit(k, t->unit)]) : rc;
}

/* The gradients that a reduction reads: all there, and by then? */
static int check_read(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct grads *g = grads_of(k);
	if (!g)
		return fault(k, "gradient buffer %d is not for this unit", t->gslot);
	if (!g->open || g->unit != t->unit || g->micro != t->micro)
		return fault(k, "there are no such gradients to reduce");
	if (k->whole_grads && t->micro != k->c->micro_batches - 1)
		return fault(k, "gradients of later micro-batches are still to be added");
	if (t->unit == k->layers && k->s->v[g->writer].op != SCHED_EMBED_BWD)
		return fault(k, "the embedding's gradients are still to be added");
	if (!before(k, g->writer))
		return fault(k, "does not wait for its gradients (task %d)", g->writer);
	g->open = false;
	g->freed = k->at;
	return 0;
}

static int check_reduction(struct checker *k)
{
	const struct sched_task *t = task(k);
	enum strategy_kind kind = k->c->strategy.kind;
	bool scatter = t->op == SCHED_REDUCE_SCATTER, hybrid = kind == STRATEGY_HYBRID;
	struct way *w = &k->way[t->unit];
	int root = kind_of_unit(k, t->unit);
	if (scatter ? kind == STRATEGY_DDP : kind != STRATEGY_DDP && !hybrid)
		return fault(k, "%s has no such collective", k->c->strategy.name);
	if (!scatter && hybrid)
		return check_across(k);
	int rc = check_read(k);
	if (rc != 0)
		return rc;
	if (hybrid) {
		if (w->scattered >= 0 || (w->reduced >= 0 && !before(k, w->reduced)))
			return fault(k, "overwrites the sum of the micro-batch before");
		if (t->accumulate)
			return fault(k, "is added to the gradients kept too early");
		w->scattered = k->at;
	} else {
		rc = reduced(k);
	}
	return rc == 0 ? check_count(k, scatter ? k->shard[root] : k->elements[root]) : rc;
}

/* Are a unit's gradients complete, and have they been so when this task begins? */
static int check_reduced(struct checker *k, int unit)
{
	const struct way *w = &k->way[unit];
	if (w->reductions != step_reductions(k->c) || !before(k, w->reduced))
		return fault(k, "does not wait for the gradients of unit %d", unit);
	return 0;
}

/* ---- the model's tasks ----------------------------------------------------------------------- */

static int model_tasks_per_micro(const struct checker *k)
{
	return 3 + k->layers * (k->c->recompute == TR_RECOMPUTE_FULL ? 3 : 2);
}
/* The j-th task of the model in a micro-batch. */
static struct sched_task model_task(const struct checker *k, int j)
{
	int again = k->c->recompute == TR_RECOMPUTE_FULL, L = k->layers;
	if (j == 0)
		return (struct sched_task){.op = SCHED_EMBED_FWD, .unit = L};
	if (j <= L)
		return (struct sched_task){.op = SCHED_FWD, .unit = j - 1};
	if (j == L + 1)
		return (struct sched_task){.op = SCHED_HEAD, .unit = L};
	j -= L + 2;
	if (j == L * (1 + again))
		return (struct sched_task){.op = SCHED_EMBED_BWD, .unit = L};
	return (struct sched_task){
		.op = again && j % 2 == 0 ? SCHED_RECOMPUTE : SCHED_BWD,
		.unit = L - 1 - j / (1 + again),
	};
}

static int check_model(struct checker *k)
{
	const struct sched_task *t = task(k);
	int per = model_tasks_per_micro(k);
	int micro = k->model_tasks / per;
	struct sched_task due = model_task(k, k->model_tasks % per);
	if (micro >= k->c->micro_batches)
		return fault(k, "the model's work is over");
	if (t->op != due.op || t->unit != due.unit || t->micro != micro)
		return fault(k, "%s of unit %d, micro-batch %d is due", sched_op_names[due.op],
			due.unit, micro);
	k->model_tasks++;
	int rc = check_params(k);
	if (rc == 0 && (t->op == SCHED_HEAD || t->op == SCHED_BWD || t->op == SCHED_EMBED_BWD))
		rc = check_write(k);
	return rc;
}

/* ---- the update ------------------------------------------------------------------------------ */

static int check_norm(struct checker *k)
{
	if (!k->c->clip || k->norm >= 0)
		return fault(k, "no norm is due");
	k->norm = k->at;
	for (int u = 0; u <= k->layers; u++)
		if (check_reduced(k, u) != 0)
			return -EPROTO;
	return 0;
}
static int check_norm_reduce(struct checker *k)
{
	if (k->norm < 0 || k->norm_reduce >= 0 || !before(k, k->norm))
		return fault(k, "there is no norm to reduce");
	k->norm_reduce = k->at;
	return check_count(k, 1);
}

/* Gradients or state come into a buffer. */
static int check_bring(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct way *w = &k->way[t->unit];
	int *done = t->op == SCHED_GRADS_OUT ? &w->grads_out : &w->state_in;
	if (!k->offload || *done >= 0)
		return fault(k, "not due");
	if (t->slot != t->unit % 2)
		return fault(k, "buffer %d is not for this unit", t->slot);
	int held = k->state[t->slot];
	if (held >= 0 && held != t->unit) {
		const struct way *h = &k->way[held];
		if (h->state_out < 0 || h->params_in < 0 || !before(k, h->state_out) ||
			!before(k, h->params_in))
			return fault(k, "overwrites the state of unit %d", held);
	}
	k->state[t->slot] = t->unit;
	*done = k->at;
	int rc = check_count(k, k->shard[kind_of_unit(k, t->unit)]);
	return rc == 0 && t->op == SCHED_GRADS_OUT ? check_reduced(k, t->unit) : rc;
}

static int check_update(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct way *w = &k->way[t->unit];
	if (w->update >= 0)
		return fault(k, "a second update");
	if (k->model_tasks != k->c->micro_batches * model_tasks_per_micro(k))
		return fault(k, "its parameters are still at work");
	if (check_reduced(k, t->unit) != 0)
		return -EPROTO;
	if (k->c->clip && (k->norm_reduce < 0 || !before(k, k->norm_reduce)))
		return fault(k, "does not wait for the gradient's norm");
	if (k->offload && (w->grads_out < 0 || w->state_in < 0 || !before(k, w->grads_out) ||
				  !before(k, w->state_in) || t->slot != t->unit % 2))
		return fault(k, "does not wait for its gradients and state");
	w->update = k->at;
	return 0;
}

/* What follows an update: state and parameters to their places, or parameters to all. */
static int check_after(struct checker *k)
{
	const struct sched_task *t = task(k);
	struct way *w = &k->way[t->unit];
	enum strategy_kind kind = k->c->strategy.kind;
	int *done = t->op == SCHED_STATE_OUT   ? &w->state_out
		    : t->op == SCHED_PARAMS_IN ? &w->params_in
					       : &w->param_gather;
	bool due = t->op == SCHED_PARAM_GATHER ? kind == STRATEGY_ZERO1 || kind == STRATEGY_ZERO2
					       : k->offload;
	if (!due || *done >= 0)
		return fault(k, "not due");
	if (w->update < 0 || !before(k, w->update))
		return fault(k, "does not wait for its unit's update");
	*done = k->at;
	return check_count(k, k->shard[kind_of_unit(k, t->unit)]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int (*const checks[SCHED_OP_COUNT])(struct checker *) = {
	[SCHED_GATHER] = check_gather,
	[SCHED_RELEASE] = check_release,
	[SCHED_EMBED_FWD] = check_model,
	[SCHED_FWD] = check_model,
	[SCHED_HEAD] = check_model,
	[SCHED_RECOMPUTE] = check_model,
	[SCHED_BWD] = check_model,
	[SCHED_EMBED_BWD] = check_model,
	[SCHED_REDUCE_SCATTER] = check_reduction,
	[SCHED_ALL_REDUCE] = check_reduction,
	[SCHED_NORM] = check_norm,
	[SCHED_NORM_REDUCE] = check_norm_reduce,
	[SCHED_GRADS_OUT] = check_bring,
	[SCHED_STATE_IN] = check_bring,
	[SCHED_UPDATE] = check_update,
	[SCHED_STATE_OUT] = check_after,
	[SCHED_PARAMS_IN] = check_after,
	[SCHED_PARAM_GATHER] = check_after,
};

static int FB_PRINTF(2, 3) missing(struct checker *k, const char *fmt, ...)
{
	char what[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fb_fail(k->e, FB_EXIT_UNMEASURED, EPROTO, "schedule: of %d tasks none is %s", k->s->n,
		what);
	return -EPROTO;
}

/* The list is over: is the step? */
static int check_end(struct checker *k)
{
	int M = k->c->micro_batches, per = model_tasks_per_micro(k);
	enum strategy_kind kind = k->c->strategy.kind;
	if (k->model_tasks != M * per)
		return missing(k, "%s in micro-batch %d",
			sched_op_names[model_task(k, k->model_tasks % per).op],
			k->model_tasks / per);
	for (int i = 0; i < 3 + k->layers; i++)
		if (filled(&k->place[i]))
			return missing(k, "the release of unit %d", k->place[i].unit);
	for (int u = 0; u <= k->layers; u++) {
		const struct way *w = &k->way[u];
		int twice = !k->keep && u < k->layers - 1 ? 2 : 1;
		int gathers = k->whole_params ? 0 : u == k->layers ? 1 : M * twice;
		if (w->gathers != gathers) {
			fb_fail(k->e, FB_EXIT_UNMEASURED, EPROTO,
				"schedule: unit %d is gathered %d times where %d are due", u,
				w->gathers, gathers);
			return -EPROTO;
		}
		if (w->update < 0)
			return missing(k, "the update of unit %d", u);
		if (k->offload && (w->state_out < 0 || w->params_in < 0))
			return missing(k, "the way back of unit %d", u);
		if ((kind == STRATEGY_ZERO1 || kind == STRATEGY_ZERO2) && w->param_gather < 0)
			return missing(k, "the gather of unit %d after its update", u);
	}
	return 0;
}

static void start(struct checker *k)
{
	const struct step_config *c = k->c;
	struct model_unit u;
	for (int root = 0; root < 2; root++) {
		model_unit(&c->model, root ? c->model.layers : 0, &u);
		k->elements[root] = u.elements;
		k->shard[root] = shard_cut(u.elements, c->strategy.shard).per_rank;
	}
	k->whole_params = !c->strategy.shard_params;
	k->whole_grads = step_grads_whole(c);
	k->keep = c->strategy.keep_gathered;
	k->offload = c->strategy.kind == STRATEGY_OFFLOAD;
	k->norm = k->norm_reduce = k->state[0] = k->state[1] = -1;
	for (int i = 0; i < k->layers + 3; i++) {
		k->place[i] = (struct place){-1, -1, -1};
		k->grads[i] = (struct grads){.freed = -1};
		k->way[i] = (struct way){0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
	}
}

int schedule_check(const struct step_config *c, const struct schedule *s, struct fb_err *e)
{
	struct checker k = {.c = c, .s = s, .e = e, .layers = (int)c->model.layers};
	size_t units = (size_t)k.layers + 3, n = (size_t)s->n + 1;
	int rc = -ENOMEM, last[SCHED_QUEUE_COUNT] = {-1, -1, -1, -1, -1};
	k.ended = calloc(n, sizeof(*k.ended));
	k.pos = calloc(n, sizeof(*k.pos));
	k.place = calloc(units, sizeof(*k.place));
	k.grads = calloc(units, sizeof(*k.grads));
	k.way = calloc(units, sizeof(*k.way));
	if (!k.ended || !k.pos || !k.place || !k.grads || !k.way) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to check %d tasks", s->n);
		goto free_all;
	}
	start(&k);
	rc = 0;
	for (k.at = 0; rc == 0 && k.at < s->n; k.at++) {
		rc = structure(&k);
		if (rc == 0)
			rc = order(&k, last);
		if (rc == 0)
			rc = checks[s->v[k.at].op](&k);
	}
	if (rc == 0)
		rc = check_end(&k);
free_all:
	free(k.way);
	free(k.grads);
	free(k.place);
	free(k.pos);
	free(k.ended);
	return rc;
}
