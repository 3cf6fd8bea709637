// SPDX-License-Identifier: Apache-2.0
/*
 * Who holds what: the arrays of one rank by strategy, their first values, and what they take. The
 * closed form of the same stands in strategy.c; a test compares.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/train/engine_priv.h"

static int take(struct engine *g, enum engine_mem kind, enum tr_dtype t, int64_t n, void **p,
	struct fb_err *e)
{
	size_t bytes = (size_t)n * tr_dtype_size(t);
	int rc = g->c.dev_ops->alloc(g->dev, bytes ? bytes : 1, p, e);
	if (rc == 0)
		g->bytes_of[kind] += bytes;
	return rc;
}

static int64_t largest(const struct engine *g, bool padded)
{
	int64_t n = 0;
	for (int u = 0; u < g->units; u++) {
		const struct shard_cut *c = &g->unit[u].cut;
		int64_t size = padded ? c->padded : c->per_rank;
		n = size > n ? size : n;
	}
	return n;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int alloc_params(struct engine *g, struct unit_state *s, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	enum tr_dtype W = c->work, G = tr_grad_dtype(W);
	bool same = W == G, offload = c->strategy.kind == STRATEGY_OFFLOAD;
	int rc = 0;
	if (g->whole) {
		rc = take(g, MEM_PARAMS, W, s->cut.padded, &s->W_whole, e);
		if (rc != 0)
			return rc;
		s->W_shard = engine_at(s->W_whole, W, g->shard.rank * s->cut.per_rank);
		if (same)
			s->G_master = s->W_shard;
	} else if (!same || offload) {
		bool outside = offload && c->offload_params;
		rc = take(g, outside ? MEM_HOST : MEM_PARAMS, W, s->cut.per_rank, &s->W_shard, e);
	}
	if (rc == 0 && !s->G_master && !g->store)
		rc = take(g,
			offload             ? MEM_HOST
			: same && !g->whole ? MEM_PARAMS
					    : MEM_MASTER,
			G, s->cut.per_rank, &s->G_master, e);
	if (rc == 0 && !s->W_shard)
		s->W_shard = s->G_master;
	if (rc == 0 && c->strategy.keep_gathered)
		rc = take(g, MEM_GATHERED, W, s->cut.padded, &s->W_whole, e);
	return rc;
}

static int alloc_slots(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	int64_t block = g->unit[0].cut.padded, root = g->unit[g->units - 1].cut.padded;
	int slots = g->units - 1 < 2 ? g->units - 1 : 2;
	int rc = 0;
	bool gathered = !g->whole && !c->strategy.keep_gathered;
	for (int i = 0; rc == 0 && gathered && i < 3; i++)
		if (i == 2 || i < slots)
			rc = take(
				g, MEM_GATHERED, c->work, i == 2 ? root : block, &g->W_slot[i], e);
	for (int i = 0; rc == 0 && g->reduce_each && i < 3; i++)
		if (i == 2 || i < slots)
			rc = take(g, MEM_GRAD_UNITS, g->R, i == 2 ? root : block, &g->R_slot[i], e);
	if (rc == 0 && c->offload_params)
		rc = take(g, MEM_GATHERED, c->work, largest(g, false), &g->W_stage, e);
	return rc;
}

/* ---- gradients and optimizer ----------------------------------------------------------------- */

static int alloc_grads(struct engine *g, struct unit_state *s, struct fb_err *e)
{
	int rc = 0;
	if (!g->reduce_each) {
		rc = take(g, MEM_GRADS, g->R, s->cut.padded, &s->R_grads, e);
		if (rc == 0)
			s->R_shard = engine_at(s->R_grads, g->R, g->shard.rank * s->cut.per_rank);
	} else {
		rc = take(g, MEM_GRADS, g->R, s->cut.per_rank, &s->R_shard, e);
	}
	if (rc == 0 && g->replicas_each)
		rc = take(g, MEM_GRADS, g->R, s->cut.per_rank, &s->R_micro, e);
	return rc;
}

static int alloc_optimizer(struct engine *g, struct unit_state *s, struct fb_err *e)
{
	enum tr_dtype G = tr_grad_dtype(g->c.step.work);
	enum engine_mem kind =
		g->c.step.strategy.kind == STRATEGY_OFFLOAD ? MEM_HOST : MEM_OPTIMIZER;
	if (g->store)
		return 0;
	int rc = take(g, kind, G, s->cut.per_rank, &s->G_m, e);
	return rc == 0 ? take(g, kind, G, s->cut.per_rank, &s->G_v, e) : rc;
}

static int open_store(struct engine *g, struct fb_err *e)
{
	size_t G = tr_dtype_size(tr_grad_dtype(g->c.step.work)), bytes = 0;
	if (g->c.step.strategy.kind != STRATEGY_OFFLOAD || !g->c.offload_file)
		return 0;
	for (int u = 0; u < g->units; u++) {
		g->unit[u].store_at = bytes;
		bytes += 3 * G * (size_t)g->unit[u].cut.per_rank;
	}
	return store_open(g->c.offload_file, bytes, &g->store, e);
}

static int alloc_offload(struct engine *g, struct fb_err *e)
{
	enum tr_dtype G = tr_grad_dtype(g->c.step.work);
	int64_t n = largest(g, false);
	int rc = 0;
	if (g->c.step.strategy.kind != STRATEGY_OFFLOAD)
		return 0;
	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = take(g, MEM_HOST, g->R, n, &g->R_host[i], e);
		if (rc == 0 && g->store) {
			void *p = NULL;
			rc = take(g, MEM_HOST, G, 3 * n, &p, e);
			g->state[i] = p;
		}
	}
	return rc;
}

/* Casts for the wire, and what a sum lands in when its place is taken. */
static int alloc_wire(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	bool cast = c->reduce != g->R, scatter = c->strategy.kind != STRATEGY_DDP;
	int64_t padded = largest(g, true), per_rank = largest(g, false);
	int rc = 0;
	if (cast && scatter)
		rc = take(g, MEM_WIRE, c->reduce, padded, &g->wire_in, e);
	if (rc == 0 && cast && (!scatter || c->strategy.replicate > 1))
		rc = take(g, MEM_WIRE, c->reduce, per_rank, &g->wire_sum, e);
	if (rc == 0 && scatter && (cast || (g->reduce_each && c->micro_batches > 1)))
		rc = take(g, MEM_WIRE, c->reduce, per_rank, &g->wire_out, e);
	if (rc == 0 && c->deterministic) {
		enum tr_dtype G = tr_grad_dtype(c->work);
		rc = take(g, MEM_GRAD_UNITS, G, padded, &g->G_sequence, e);
		if (rc == 0)
			rc = take(g, MEM_GRAD_UNITS, G, per_rank, &g->G_shard, e);
	}
	g->bytes_of[MEM_WIRE] +=
		exchange_scratch(&g->shard, (size_t)per_rank, engine_coll_dtype(c->reduce));
	/* An all-reduce begins as a reduce-scatter of its n-th parts. */
	int64_t part = shard_cut(per_rank, c->strategy.replicate).per_rank;
	g->bytes_of[MEM_WIRE] +=
		exchange_scratch(&g->replicate, (size_t)part, engine_coll_dtype(c->reduce));
	return rc;
}

/* ---- activations ----------------------------------------------------------------------------- */

static int alloc_activations(struct engine *g, struct fb_err *e)
{
	const struct step_config *c = &g->c.step;
	int64_t tokens = c->micro_seqs * c->seq * c->micro_batches;
	int64_t layers = g->units - 1, chunks = g->chunks;
	void *p[3] = {0};
	g->x_bytes = net_x_bytes(&g->net);
	g->saved_bytes = net_saved_bytes(&g->net);
	const int64_t bytes[3] = {(layers + 1) * chunks * (int64_t)g->x_bytes,
		layers * chunks * (int64_t)g->saved_bytes, chunks * (int64_t)g->x_bytes};
	int rc = 0;
	for (int i = 0; rc == 0 && i < 3; i++) {
		rc = g->c.dev_ops->alloc(g->dev, bytes[i] ? (size_t)bytes[i] : 1, &p[i], e);
		if (rc == 0)
			g->bytes_of[MEM_ACTIVATIONS] += (uint64_t)bytes[i];
	}
	g->x = p[0];
	g->saved = p[1];
	g->dx = p[2];
	g->input = calloc((size_t)tokens, sizeof(*g->input));
	g->target = calloc((size_t)tokens, sizeof(*g->target));
	g->loss = calloc((size_t)(c->micro_batches * chunks), sizeof(*g->loss));
	if (rc == 0 && (!g->input || !g->target || !g->loss))
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %lld tokens",
			(long long)tokens);
	return rc;
}

/* ---- first values ---------------------------------------------------------------------------- */

/* The part of tensors that [first, first + n) of the unit's flat array covers, as float. */
static void init_part(
	struct engine *g, int u, int64_t first, int64_t n, void *dst, enum tr_dtype t, float *tmp)
{
	const struct model_unit *shape = engine_shape(g, u);
	for (int i = 0; i < shape->n; i++) {
		const struct model_tensor *x = &shape->t[i];
		int64_t lo = x->offset > first ? x->offset : first;
		int64_t end = x->offset + x->rows * x->cols;
		int64_t hi = end < first + n ? end : first + n;
		if (hi <= lo)
			continue;
		model_init(&g->c.step.model, u, x, g->c.seed, lo - x->offset, hi - lo, tmp);
		g->c.dev_ops->cast(&g->q, engine_at(dst, t, lo - first), t, tmp, TR_F32, hi - lo);
	}
}

static void cut_segments(struct engine *g, int u)
{
	struct unit_state *s = &g->unit[u];
	const struct model_unit *shape = engine_shape(g, u);
	int64_t first = g->shard.rank * s->cut.per_rank;
	for (int i = 0; i < shape->n; i++) {
		const struct model_tensor *x = &shape->t[i];
		int64_t lo = x->offset > first ? x->offset : first;
		int64_t end = x->offset + x->rows * x->cols;
		int64_t hi = end < first + s->mine ? end : first + s->mine;
		if (hi <= lo)
			continue;
		struct segment *last = s->segments ? &s->seg[s->segments - 1] : NULL;
		if (last && last->decay == x->decay && last->first + last->n == lo - first)
			last->n += hi - lo;
		else
			s->seg[s->segments++] = (struct segment){lo - first, hi - lo, x->decay};
	}
}

static int put_state(struct engine *g, struct unit_state *s, struct fb_err *e)
{
	bool done = false;
	size_t bytes = 3 * tr_dtype_size(tr_grad_dtype(g->c.step.work)) * (size_t)s->cut.per_rank;
	store_start(g->store, true, g->state[0], bytes, s->store_at);
	int rc = 0;
	while (rc == 0 && !done)
		rc = store_test(g->store, &done, e);
	return rc;
}

static int init_unit(struct engine *g, int u, float *tmp, struct fb_err *e)
{
	struct unit_state *s = &g->unit[u];
	enum tr_dtype W = g->c.step.work, G = tr_grad_dtype(W);
	int64_t first = g->shard.rank * s->cut.per_rank;
	void *master = g->store ? g->state[0] : s->G_master;
	if (g->store)
		g->c.dev_ops->zero(&g->q, master, 3 * tr_dtype_size(G) * (size_t)s->cut.per_rank);
	init_part(g, u, first, s->mine, master, G, tmp);
	if (g->whole)
		init_part(g, u, 0, s->cut.elements, s->W_whole, W, tmp);
	else if (s->W_shard != s->G_master || g->store)
		g->c.dev_ops->cast(&g->q, s->W_shard, W, master, G, s->cut.per_rank);
	cut_segments(g, u);
	return g->store ? put_state(g, s, e) : 0;
}

int engine_alloc(struct engine *g, struct fb_err *e)
{
	int64_t most = 0;
	g->unit = calloc((size_t)g->units, sizeof(*g->unit));
	if (!g->unit)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d units", g->units);
	for (int u = 0; u < g->units; u++) {
		struct unit_state *s = &g->unit[u];
		s->cut = shard_cut(engine_shape(g, u)->elements, g->shard.size);
		int64_t left = s->cut.elements - g->shard.rank * s->cut.per_rank;
		s->mine = left < 0 ? 0 : left < s->cut.per_rank ? left : s->cut.per_rank;
		most = s->cut.elements > most ? s->cut.elements : most;
	}
	int rc = open_store(g, e);
	for (int u = 0; rc == 0 && u < g->units; u++) {
		rc = alloc_params(g, &g->unit[u], e);
		if (rc == 0)
			rc = alloc_grads(g, &g->unit[u], e);
		if (rc == 0)
			rc = alloc_optimizer(g, &g->unit[u], e);
	}
	if (rc == 0)
		rc = alloc_slots(g, e);
	if (rc == 0)
		rc = alloc_wire(g, e);
	if (rc == 0)
		rc = alloc_offload(g, e);
	if (rc == 0)
		rc = alloc_activations(g, e);
	float *tmp = rc == 0 ? malloc((size_t)(most > 0 ? most : 1) * sizeof(*tmp)) : NULL;
	if (rc == 0 && !tmp)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the first values");
	for (int u = 0; rc == 0 && u < g->units; u++)
		rc = init_unit(g, u, tmp, e);
	free(tmp);
	return rc;
}

/* A transport that was cut off in mid-message cannot take it back: what it may still read stays
 * until the process ends. */
static void give(struct engine *g, void *p)
{
	bool held = g->p2p_ops->holds && g->p2p_ops->holds(g->p2p);
	if (p && !held)
		g->c.dev_ops->free(g->dev, p);
}

static void free_unit(struct engine *g, struct unit_state *s)
{
	bool inside = g->whole;
	if (!inside && s->W_shard != s->G_master)
		give(g, s->W_shard);
	if (!(inside && s->G_master == s->W_shard))
		give(g, s->G_master);
	give(g, s->W_whole);
	give(g, s->G_m);
	give(g, s->G_v);
	if (!s->R_grads)
		give(g, s->R_shard);
	give(g, s->R_grads);
	give(g, s->R_micro);
}

void engine_free(struct engine *g)
{
	store_close(g->store);
	for (int u = 0; g->unit && u < g->units; u++)
		free_unit(g, &g->unit[u]);
	for (int i = 0; i < 3; i++) {
		give(g, g->W_slot[i]);
		give(g, g->R_slot[i]);
	}
	for (int i = 0; i < 2; i++) {
		give(g, g->R_host[i]);
		give(g, g->state[i]);
	}
	void *const others[] = {g->G_sequence, g->G_shard, g->wire_in, g->wire_out, g->wire_sum,
		g->W_stage, g->x, g->saved, g->dx};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		give(g, others[i]);
	free(g->input);
	free(g->target);
	free(g->loss);
	free(g->unit);
	g->unit = NULL;
}

void engine_memory(const struct engine *g, struct step_memory *m)
{
	*m = (struct step_memory){.params = (double)g->bytes_of[MEM_PARAMS],
		.gathered = (double)g->bytes_of[MEM_GATHERED],
		.master = (double)g->bytes_of[MEM_MASTER],
		.optimizer = (double)g->bytes_of[MEM_OPTIMIZER],
		.grads = (double)g->bytes_of[MEM_GRADS],
		.grad_units = (double)g->bytes_of[MEM_GRAD_UNITS],
		.wire = (double)g->bytes_of[MEM_WIRE],
		.activations = (double)g->bytes_of[MEM_ACTIVATIONS],
		.scratch = (double)net_scratch_bytes(&g->net),
		.host = (double)g->bytes_of[MEM_HOST]};
	m->total = m->params + m->gathered + m->master + m->optimizer + m->grads + m->grad_units +
		   m->wire + m->activations + m->scratch;
}
