// SPDX-License-Identifier: Apache-2.0
/*
 * A transformer block, forward and backward, for both families:
 *
 *   x2 = x + attention(norm1(x))
 *   y  = x2 + mlp(norm2(x2))
 *
 * Residuals are added by the products themselves (beta 1 into a copy of the residual), which saves
 * a pass over memory and, in bf16, a rounding. The gradient of the residual stream stays in one
 * buffer, dx, to which each half adds its own part.
 */
#include "bench/train/net_priv.h"

/* One block at work: its shape and where its tensors are. */
struct block {
	const struct net *n;
	const struct net_priv *p;
	const void *params; /* W */
	void *grads;        /* G; NULL in forward */
	struct net_saved s;
	int64_t t, h, f, qd, kvd; /* tokens, hidden, ffn, heads*d, kv_heads*d */
	struct tr_attn attn;
};

static struct block block_of(const struct net *n, const void *W_params, const void *saved)
{
	const struct model *m = n->m;
	struct block b = {.n = n,
		.p = net_priv(n),
		.params = W_params,
		.t = net_tokens(n),
		.h = m->hidden,
		.f = m->ffn,
		.qd = m->heads * m->head_dim,
		.kvd = m->kv_heads * m->head_dim,
		.attn = {n->seqs, n->seq, m->heads, m->kv_heads, m->head_dim}};
	if (n->recompute == TR_RECOMPUTE_FULL)
		b.s = b.p->whole;
	else
		net_cut_saved(n, n->recompute, saved, &b.s);
	if (n->recompute == TR_RECOMPUTE_SELECTIVE) {
		b.s.o = b.p->core.o;
		b.s.lse = b.p->core.lse;
	}
	return b;
}

static const void *weight(const struct block *b, enum tensor_kind k)
{
	return net_at(b->params, b->n->work, b->p->block[k]);
}
static void *grad(const struct block *b, enum tensor_kind k)
{
	return net_at(b->grads, tr_grad_dtype(b->n->work), b->p->block[k]);
}

/* y [t][out] += the bias of that kind, in families that have it. */
static void bias(const struct block *b, enum tensor_kind k, void *W_y, int64_t out)
{
	if (b->p->block[k] >= 0)
		b->n->ops->bias_fwd(b->n->q, W_y, weight(b, k), b->t, out);
}
static void bias_bwd(const struct block *b, enum tensor_kind k, const void *W_dy, int64_t out)
{
	if (b->p->block[k] >= 0)
		b->n->ops->bias_bwd(b->n->q, grad(b, k), W_dy, b->t, out);
}

/* ---- forward --------------------------------------------------------------------------------- */

static void project(
	const struct block *b, enum tensor_kind w, enum tensor_kind w_bias, void *W_y, int64_t out)
{
	net_linear(b->n, b->t, b->p->norm, weight(b, w), W_y, out, b->h, false);
	bias(b, w_bias, W_y, out);
}

static void rotate(const struct block *b, void *W_x, int64_t heads, int dir)
{
	const struct net *n = b->n;
	if (n->m->family == MODEL_LLAMA)
		n->ops->rope(n->q, W_x, b->t, n->seq, heads, n->m->head_dim, n->m->rope_base, dir);
}

/* Fills everything that is kept from x. */
static void forward_saved(const struct block *b, const void *W_x)
{
	const struct net *n = b->n;
	const struct tr_dev_ops *ops = n->ops;
	const struct net_saved *s = &b->s;

	net_norm(n, b->p->block, b->params, TENSOR_NORM1, TENSOR_NORM1_BIAS, W_x, b->t);
	project(b, TENSOR_Q, TENSOR_Q_BIAS, s->q, b->qd);
	project(b, TENSOR_K, TENSOR_K_BIAS, s->k, b->kvd);
	project(b, TENSOR_V, TENSOR_V_BIAS, s->v, b->kvd);
	rotate(b, s->q, n->m->heads, 1);
	rotate(b, s->k, n->m->kv_heads, 1);
	ops->attn_fwd(n->q, &b->attn, s->o, s->lse, s->q, s->k, s->v);

	ops->copy(n->q, s->x2, W_x, net_x_bytes(n));
	net_linear(n, b->t, s->o, weight(b, TENSOR_O), s->x2, b->h, b->qd, true);
	bias(b, TENSOR_O_BIAS, s->x2, b->h);

	net_norm(n, b->p->block, b->params, TENSOR_NORM2, TENSOR_NORM2_BIAS, s->x2, b->t);
	if (s->gate)
		net_linear(n, b->t, b->p->norm, weight(b, TENSOR_GATE), s->gate, b->f, b->h, false);
	project(b, TENSOR_UP, TENSOR_UP_BIAS, s->up, b->f);
}

/* The MLP's inner activation, from what is kept, into the scratch's `act`. */
static void activate(const struct block *b)
{
	const struct tr_dev_ops *ops = b->n->ops;
	int64_t n = b->t * b->f;
	if (b->s.gate)
		ops->swiglu_fwd(b->n->q, b->p->act, b->s.gate, b->s.up, n);
	else
		ops->gelu_fwd(b->n->q, b->p->act, b->s.up, n);
}

void net_block_fwd(struct net *n, const void *W_params, const void *W_x, void *W_y, void *saved)
{
	const struct block b = block_of(n, W_params, saved);

	forward_saved(&b, W_x);
	activate(&b);
	n->ops->copy(n->q, W_y, b.s.x2, net_x_bytes(n));
	net_linear(n, b.t, b.p->act, weight(&b, TENSOR_DOWN), W_y, b.h, b.f, true);
	bias(&b, TENSOR_DOWN_BIAS, W_y, b.h);
}

void net_block_again(struct net *n, const void *W_params, const void *W_x)
{
	if (n->recompute != TR_RECOMPUTE_FULL)
		return;
	const struct block b = block_of(n, W_params, NULL);
	forward_saved(&b, W_x);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Backward of project(): the weight's and bias's gradients, and dnorm = or += the input's. */
static void project_bwd(const struct block *b, enum tensor_kind w, enum tensor_kind w_bias,
	const void *W_dy, int64_t out, bool add)
{
	bias_bwd(b, w_bias, W_dy, out);
	net_linear_dw(b->n, b->t, W_dy, b->p->norm, grad(b, w), out, b->h, !b->n->fresh);
	net_linear_dx(b->n, b->t, W_dy, weight(b, w), b->p->dnorm, out, b->h, add);
}

/* dx: in, the gradient of y; out, that of x2. */
static void mlp_bwd(const struct block *b, void *W_dx)
{
	const struct net *n = b->n;
	const struct net_priv *p = b->p;
	const struct net_saved *s = &b->s;
	void *dgate = p->act, *dup = p->dact; /* once their old contents are used up */

	activate(b);
	bias_bwd(b, TENSOR_DOWN_BIAS, W_dx, b->h);
	net_linear_dw(n, b->t, W_dx, p->act, grad(b, TENSOR_DOWN), b->h, b->f, !n->fresh);
	net_linear_dx(n, b->t, W_dx, weight(b, TENSOR_DOWN), p->dact, b->h, b->f, false);
	if (s->gate)
		n->ops->swiglu_bwd(n->q, dgate, dup, p->dact, s->gate, s->up, b->t * b->f);
	else
		n->ops->gelu_bwd(n->q, dup, p->dact, s->up, b->t * b->f);

	net_norm(n, p->block, b->params, TENSOR_NORM2, TENSOR_NORM2_BIAS, s->x2, b->t);
	project_bwd(b, TENSOR_UP, TENSOR_UP_BIAS, dup, b->f, false);
	if (s->gate) {
		net_linear_dw(n, b->t, dgate, p->norm, grad(b, TENSOR_GATE), b->f, b->h, !n->fresh);
		net_linear_dx(n, b->t, dgate, weight(b, TENSOR_GATE), p->dnorm, b->f, b->h, true);
	}
	net_norm_bwd(n, p->block, b->params, TENSOR_NORM2, TENSOR_NORM2_BIAS, s->x2, W_dx, b->grads,
		b->t);
}

/* dx: in, the gradient of x2; out, that of x. */
static void attention_bwd(const struct block *b, const void *W_x, void *W_dx)
{
	const struct net *n = b->n;
	const struct net_priv *p = b->p;
	const struct net_saved *s = &b->s;

	if (n->recompute == TR_RECOMPUTE_SELECTIVE)
		n->ops->attn_fwd(n->q, &b->attn, s->o, s->lse, s->q, s->k, s->v);
	bias_bwd(b, TENSOR_O_BIAS, W_dx, b->h);
	net_linear_dw(n, b->t, W_dx, s->o, grad(b, TENSOR_O), b->h, b->qd, !n->fresh);
	net_linear_dx(n, b->t, W_dx, weight(b, TENSOR_O), p->d_o, b->h, b->qd, false);
	n->ops->attn_bwd(
		n->q, &b->attn, p->dq, p->dk, p->dv, p->d_o, s->q, s->k, s->v, s->o, s->lse);
	rotate(b, p->dq, n->m->heads, -1);
	rotate(b, p->dk, n->m->kv_heads, -1);

	net_norm(n, p->block, b->params, TENSOR_NORM1, TENSOR_NORM1_BIAS, W_x, b->t);
	project_bwd(b, TENSOR_Q, TENSOR_Q_BIAS, p->dq, b->qd, false);
	project_bwd(b, TENSOR_K, TENSOR_K_BIAS, p->dk, b->kvd, true);
	project_bwd(b, TENSOR_V, TENSOR_V_BIAS, p->dv, b->kvd, true);
	net_norm_bwd(
		n, p->block, b->params, TENSOR_NORM1, TENSOR_NORM1_BIAS, W_x, W_dx, b->grads, b->t);
}

void net_block_bwd(struct net *n, const void *W_params, const void *W_x, const void *saved,
	void *W_dx, void *G_grads)
{
	struct block b = block_of(n, W_params, saved);
	b.grads = G_grads;
	net_clear_grads(n, 0, false, G_grads);
	mlp_bwd(&b, W_dx);
	attention_bwd(&b, W_x, W_dx);
}
