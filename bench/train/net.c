// SPDX-License-Identifier: Apache-2.0
/*
 * The net's memory and closed forms, and the pieces that blocks and head share: linear layers and
 * norms. A tensor is found by its unit's base and its offset in the model's layout, so parameters
 * and gradients may lie wherever the strategy puts them.
 *
 * It must not know ranks, shards or schedules, nor which device computes.
 */
#include "bench/train/net_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const tr_recompute_names[] = {"none", "selective", "full", NULL};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Hands out pieces of one allocation, 64-byte aligned as the allocation is. */
struct cutter {
	uintptr_t base;
	size_t used, most;
};

static void *cut(struct cutter *c, enum tr_dtype t, int64_t elements)
{
	uintptr_t p = c->base + c->used;
	c->used += ((size_t)elements * tr_dtype_size(t) + 63) & ~(size_t)63;
	if (c->used > c->most)
		c->most = c->used;
	return c->base ? (void *)p : NULL;
}

int64_t net_head_rows(const struct net *n)
{
	int64_t most = n->head_rows > 0 ? n->head_rows : NET_HEAD_ROWS;
	int64_t chunks = (net_tokens(n) + most - 1) / most;
	return (net_tokens(n) + chunks - 1) / chunks;
}

size_t net_cut_saved(
	const struct net *n, enum tr_recompute r, const void *base, struct net_saved *s)
{
	const struct model *m = n->m;
	int64_t t = net_tokens(n);
	struct cutter c = {.base = (uintptr_t)base};

	memset(s, 0, sizeof(*s));
	if (r == TR_RECOMPUTE_FULL)
		return 0;
	s->q = cut(&c, n->work, t * m->heads * m->head_dim);
	s->k = cut(&c, n->work, t * m->kv_heads * m->head_dim);
	s->v = cut(&c, n->work, t * m->kv_heads * m->head_dim);
	s->x2 = cut(&c, n->work, t * m->hidden);
	if (m->family == MODEL_LLAMA)
		s->gate = cut(&c, n->work, t * m->ffn);
	s->up = cut(&c, n->work, t * m->ffn);
	if (r == TR_RECOMPUTE_NONE) {
		s->o = cut(&c, n->work, t * m->heads * m->head_dim);
		s->lse = cut(&c, tr_grad_dtype(n->work), t * m->heads);
	}
	return c.used;
}

/* The scratch, from `base` (NULL: to measure). @return bytes */
static size_t cut_scratch(const struct net *n, const void *base, struct net_priv *p)
{
	const struct model *m = n->m;
	enum tr_dtype w = n->work, g = tr_grad_dtype(w);
	int64_t t = net_tokens(n);
	struct cutter c = {.base = (uintptr_t)base};

	p->mean = cut(&c, g, t);
	p->rstd = cut(&c, g, t);
	p->norm = cut(&c, w, t * m->hidden);
	p->dnorm = cut(&c, w, t * m->hidden);
	size_t shared = c.used;
	p->act = cut(&c, w, t * m->ffn);
	p->dact = cut(&c, w, t * m->ffn);
	c.used = shared;
	p->d_o = cut(&c, w, t * m->heads * m->head_dim);
	p->dq = cut(&c, w, t * m->heads * m->head_dim);
	p->dk = cut(&c, w, t * m->kv_heads * m->head_dim);
	p->dv = cut(&c, w, t * m->kv_heads * m->head_dim);
	if (n->recompute == TR_RECOMPUTE_SELECTIVE) {
		p->core.o = cut(&c, w, t * m->heads * m->head_dim);
		p->core.lse = cut(&c, g, t * m->heads);
	}
	c.used = shared;
	p->logits = cut(&c, w, net_head_rows(n) * m->vocab);
	c.used = c.most;
	if (n->recompute == TR_RECOMPUTE_FULL)
		c.used += net_cut_saved(
			n, TR_RECOMPUTE_NONE, base ? (void *)(c.base + c.used) : NULL, &p->whole);
	return c.used;
}

size_t net_scratch_bytes(const struct net *n)
{
	struct net_priv p;
	return cut_scratch(n, NULL, &p);
}

size_t net_saved_bytes(const struct net *n)
{
	struct net_saved s;
	return net_cut_saved(n, n->recompute, NULL, &s);
}

size_t net_x_bytes(const struct net *n)
{
	return (size_t)(net_tokens(n) * n->m->hidden) * tr_dtype_size(n->work);
}

static void offsets(const struct model *m, int64_t unit, int64_t *at)
{
	struct model_unit u;
	model_unit(m, unit, &u);
	for (int k = 0; k < TENSOR_KIND_COUNT; k++)
		at[k] = -1;
	for (int i = 0; i < u.n; i++)
		at[u.t[i].kind] = u.t[i].offset;
}

int net_open(struct net *n, struct fb_err *e)
{
	const struct model *m = n->m;

	n->priv = NULL;
	if (n->seqs < 1 || n->seq < 1)
		return fb_fail_usage(e, "a micro-batch of %lld sequences of %lld tokens is no work",
			(long long)n->seqs, (long long)n->seq);
	if (n->seq > m->positions) {
		fb_fail_usage(e, "sequences of %lld tokens, but model %s has %lld positions",
			(long long)n->seq, m->name, (long long)m->positions);
		fb_hint(e, "shorten them to %lld tokens", (long long)m->positions);
		return -EINVAL;
	}
	struct net_priv *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a net's bookkeeping");
	offsets(m, 0, p->block);
	offsets(m, m->layers, p->root);
	p->bytes = net_scratch_bytes(n);
	int rc = n->ops->alloc(n->q->dev, p->bytes, &p->memory, e);
	if (rc != 0) {
		free(p);
		return rc;
	}
	cut_scratch(n, p->memory, p);
	n->priv = p;
	return 0;
}

void net_close(struct net *n)
{
	struct net_priv *p = n->priv;
	if (!p)
		return;
	n->ops->free(n->q->dev, p->memory);
	free(p);
	n->priv = NULL;
}

/* ---- linear layers and norms ----------------------------------------------------------------- */

static enum gemm_dtype gemm_type(enum tr_dtype t)
{
	return t == TR_BF16 ? GEMM_BF16 : t == TR_F64 ? GEMM_F64 : GEMM_F32;
}

void net_linear(const struct net *n, int64_t rows, const void *W_x, const void *W_w, void *W_y,
	int64_t out, int64_t in, bool add)
{
	const struct gemm_shape s = {.m = rows,
		.n = out,
		.k = in,
		.lda = in,
		.ldb = in,
		.ldc = out,
		.trans_b = true,
		.in = gemm_type(n->work),
		.out = gemm_type(n->work),
		.alpha = 1.0f,
		.beta = add ? 1.0f : 0.0f};
	n->ops->gemm(n->q, &s, W_x, W_w, W_y);
}

void net_linear_dx(const struct net *n, int64_t rows, const void *W_dy, const void *W_w, void *W_dx,
	int64_t out, int64_t in, bool add)
{
	const struct gemm_shape s = {.m = rows,
		.n = in,
		.k = out,
		.lda = out,
		.ldb = in,
		.ldc = in,
		.in = gemm_type(n->work),
		.out = gemm_type(n->work),
		.alpha = 1.0f,
		.beta = add ? 1.0f : 0.0f};
	n->ops->gemm(n->q, &s, W_dy, W_w, W_dx);
}

void net_linear_dw(const struct net *n, int64_t rows, const void *W_dy, const void *W_x, void *G_dw,
	int64_t out, int64_t in, bool add)
{
	const struct gemm_shape s = {.m = out,
		.n = in,
		.k = rows,
		.lda = out,
		.ldb = in,
		.ldc = in,
		.trans_a = true,
		.in = gemm_type(n->work),
		.out = gemm_type(tr_grad_dtype(n->work)),
		.alpha = 1.0f,
		.beta = add ? 1.0f : 0.0f};
	n->ops->gemm(n->q, &s, W_dy, W_x, G_dw);
}

void net_clear_grads(const struct net *n, int64_t unit, bool all, void *G_grads)
{
	enum tr_dtype G = tr_grad_dtype(n->work);
	struct model_unit u;
	model_unit(n->m, unit, &u);
	for (int i = 0; i < u.n && n->fresh; i++) {
		const struct model_tensor *t = &u.t[i];
		bool rows = t->kind == TENSOR_POSITIONS || (t->kind == TENSOR_EMBED && !n->m->tied);
		if (all || rows || t->cols == 1)
			n->ops->zero(n->q, net_at(G_grads, G, t->offset),
				(size_t)(t->rows * t->cols) * tr_dtype_size(G));
	}
}

void net_norm(const struct net *n, const int64_t *at, const void *W_params, enum tensor_kind weight,
	enum tensor_kind bias, const void *W_x, int64_t rows)
{
	const struct net_priv *p = net_priv(n);
	bool centred = at[bias] >= 0;
	n->ops->norm_fwd(n->q, p->norm, centred ? p->mean : NULL, p->rstd, W_x,
		net_at(W_params, n->work, at[weight]),
		centred ? net_at(W_params, n->work, at[bias]) : NULL, rows, n->m->hidden,
		n->m->eps);
}

void net_norm_bwd(const struct net *n, const int64_t *at, const void *W_params,
	enum tensor_kind weight, enum tensor_kind bias, const void *W_x, void *W_dx, void *G_grads,
	int64_t rows)
{
	const struct net_priv *p = net_priv(n);
	enum tr_dtype g = tr_grad_dtype(n->work);
	bool centred = at[bias] >= 0;
	n->ops->norm_bwd(n->q, W_dx, net_at(G_grads, g, at[weight]),
		centred ? net_at(G_grads, g, at[bias]) : NULL, p->dnorm, W_x,
		net_at(W_params, n->work, at[weight]), centred ? p->mean : NULL, p->rstd, rows,
		n->m->hidden);
}

/* ---- counts ---------------------------------------------------------------------------------- */

void net_flops(const struct net *n, double *linear, double *attn)
{
	const struct model *m = n->m;
	const struct tr_attn a = {n->seqs, n->seq, m->heads, m->kv_heads, m->head_dim};
	double t = (double)net_tokens(n), h = (double)m->hidden, layers = (double)m->layers;
	double down = 2 * t * h * (double)m->ffn;
	double block = 4 * t * h * (double)((m->heads + m->kv_heads) * m->head_dim) +
		       (m->family == MODEL_LLAMA ? 3 : 2) * down;
	double fwd, bwd;

	n->ops->attn_flops(&a, &fwd, &bwd);
	*linear = 3 * layers * block + 6 * t * h * (double)m->vocab;
	*attn = layers * (fwd + bwd);
	if (n->recompute != TR_RECOMPUTE_NONE)
		*attn += layers * fwd;
	/* The block's output is not needed again, so its last product is not made again. */
	if (n->recompute == TR_RECOMPUTE_FULL)
		*linear += layers * (block - down);
}
