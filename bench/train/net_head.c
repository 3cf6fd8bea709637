// SPDX-License-Identifier: Apache-2.0
/*
 * The root unit: embedding, and final norm, head and cross-entropy. The head goes over chunks of
 * tokens, each forward and backward at once, so that only a chunk's logits ever exist. A tied head
 * is the embedding's weight, and its gradient is added to the embedding's.
 */
#include "bench/train/net_priv.h"

static const void *root_weight(const struct net *n, const void *W_root, enum tensor_kind k)
{
	int64_t at = net_priv(n)->root[k];
	return at < 0 ? NULL : net_at(W_root, n->work, at);
}
static void *root_grad(const struct net *n, void *G_root, enum tensor_kind k)
{
	int64_t at = net_priv(n)->root[k];
	return at < 0 ? NULL : net_at(G_root, tr_grad_dtype(n->work), at);
}
static enum tensor_kind head_kind(const struct net *n)
{
	return net_priv(n)->root[TENSOR_HEAD] >= 0 ? TENSOR_HEAD : TENSOR_EMBED;
}

void net_embed_fwd(struct net *n, const void *W_root, const int32_t *tokens, void *W_x)
{
	n->ops->embed_fwd(n->q, W_x, tokens, root_weight(n, W_root, TENSOR_EMBED),
		root_weight(n, W_root, TENSOR_POSITIONS), net_tokens(n), n->seq, n->m->hidden);
}

void net_embed_bwd(struct net *n, const int32_t *tokens, const void *W_dx, void *G_root_grads)
{
	net_clear_grads(n, n->m->layers, true, G_root_grads);
	n->ops->embed_bwd(n->q, root_grad(n, G_root_grads, TENSOR_EMBED),
		root_grad(n, G_root_grads, TENSOR_POSITIONS), tokens, W_dx, net_tokens(n), n->seq,
		n->m->hidden);
}

void net_head(struct net *n, const void *W_root, const void *W_x, const int32_t *targets,
	double scale, double *loss, void *W_dx, void *G_root_grads)
{
	const struct net_priv *p = net_priv(n);
	const struct tr_dev_ops *ops = n->ops;
	int64_t all = net_tokens(n), chunk = net_head_rows(n), h = n->m->hidden;
	int64_t vocab = n->m->vocab;
	const void *head = root_weight(n, W_root, head_kind(n));

	if (G_root_grads) {
		ops->zero(n->q, W_dx, net_x_bytes(n));
		net_clear_grads(n, n->m->layers, false, G_root_grads);
	}
	for (int64_t at = 0; at < all; at += chunk) {
		int64_t rows = at + chunk < all ? chunk : all - at;
		const void *x = net_at(W_x, n->work, at * h);

		net_norm(n, p->root, W_root, TENSOR_NORM_F, TENSOR_NORM_F_BIAS, x, rows);
		net_linear(n, rows, p->norm, head, p->logits, vocab, h, false);
		ops->xent(n->q, p->logits, loss, targets + at, rows, vocab, scale);
		if (!G_root_grads)
			continue;
		net_linear_dw(n, rows, p->logits, p->norm, root_grad(n, G_root_grads, head_kind(n)),
			vocab, h, at > 0 || !n->fresh);
		net_linear_dx(n, rows, p->logits, head, p->dnorm, vocab, h, false);
		net_norm_bwd(n, p->root, W_root, TENSOR_NORM_F, TENSOR_NORM_F_BIAS, x,
			net_at(W_dx, n->work, at * h), G_root_grads, rows);
	}
}
