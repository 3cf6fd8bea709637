/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What net.c, net_block.c and net_head.c share: where a unit's tensors stand, what is kept of a
 * block's forward pass and how the scratch is cut. Theirs alone.
 *
 * Kept of a block (T tokens of the micro-batch, W unless said), in this order:
 *
 *   q     [T][heads*d]     after its rotation, biases included
 *   k, v  [T][kv_heads*d]  the same
 *   x2    [T][hidden]      between the two halves of the block
 *   gate  [T][ffn]         Llama
 *   up    [T][ffn]         GPT-2: before the GELU
 *   o     [T][heads*d]     attention's output;     not with selective recomputation
 *   lse   G[heads][T]      of attention's softmax; not with selective recomputation
 *
 * Computed again in backward, whatever the recomputation: both norms' outputs and statistics, and
 * swiglu(gate, up) or gelu(up). They cost a pass over memory each and no product, and keeping them
 * would add 2*hidden + ffn to the above.
 */
#ifndef TRAIN_NET_PRIV_H
#define TRAIN_NET_PRIV_H

#include "bench/train/net.h"

/* Tokens that go through the head together, unless net.head_rows says otherwise. The gradient of
 * the head is read and written once per chunk, so a chunk must be long enough that its product
 * (2 * rows FLOPs per weight) outweighs those 8 bytes per weight. */
#define NET_HEAD_ROWS 512

struct net_saved {
	void *q, *k, *v, *x2, *gate, *up; /* W */
	void *o;                          /* W */
	void *lse;                        /* G */
};

struct net_priv {
	/* Offsets in elements of a unit's tensors; -1: the unit has none. */
	int64_t block[TENSOR_KIND_COUNT], root[TENSOR_KIND_COUNT];
	void *memory;      /* all of the scratch */
	size_t bytes;      /* of it */
	void *mean, *rstd; /* G[T] each: statistics of the norm that was computed last */
	void *norm;        /* W [T][hidden]: a norm's output */
	void *dnorm;       /* W [T][hidden]: its gradient */
	/* The lives of the next three groups do not meet: they share their memory. */
	void *act, *dact;         /* W [T][ffn] each: the MLP's inner product and its gradient */
	void *d_o, *dq, *dk, *dv; /* W, as o, q, k, v, */
	struct net_saved core;    /* and o and lse alone: selective recomputation */
	void *logits;             /* W [head rows][vocab] */

	struct net_saved whole; /* everything kept, here: full recomputation */
};

/* Element `i` of an array of that type. */
static inline void *net_at(const void *p, enum tr_dtype t, int64_t i)
{
	return (void *)((uintptr_t)p + (uintptr_t)i * tr_dtype_size(t));
}
static inline int64_t net_tokens(const struct net *n)
{
	return n->seqs * n->seq;
}
static inline struct net_priv *net_priv(const struct net *n)
{
	return n->priv;
}
/* Tokens in a chunk of the head; the last may be shorter. */
int64_t net_head_rows(const struct net *n);
/* Cut `base` (NULL: to measure) as recomputation `r` keeps it; what is not kept becomes NULL.
 * @return bytes, a multiple of 64 */
size_t net_cut_saved(
	const struct net *n, enum tr_recompute r, const void *base, struct net_saved *s);

/* The three products of a linear layer over `rows` tokens; its weight is [out][in]. */
/* y = or += x * w^T */
void net_linear(const struct net *n, int64_t rows, const void *W_x, const void *W_w, void *W_y,
	int64_t out, int64_t in, bool add);
/* dx = or += dy * w */
void net_linear_dx(const struct net *n, int64_t rows, const void *W_dy, const void *W_w, void *W_dx,
	int64_t out, int64_t in, bool add);
/* dw = or += dy^T * x */
void net_linear_dw(const struct net *n, int64_t rows, const void *W_dy, const void *W_x, void *G_dw,
	int64_t out, int64_t in, bool add);
/* With `fresh`: clear a unit's gradients, or those alone that no product of the backward writes. */
void net_clear_grads(const struct net *n, int64_t unit, bool all, void *G_grads);

/* A norm of the unit at `params` (offsets `at`), weight and bias of those kinds: computed, with its
 * statistics, into the scratch's `norm`. */
void net_norm(const struct net *n, const int64_t *at, const void *W_params, enum tensor_kind weight,
	enum tensor_kind bias, const void *W_x, int64_t rows);
/* Its backward from the gradient in the scratch's `dnorm`, right after net_norm() of the same x. */
void net_norm_bwd(const struct net *n, const int64_t *at, const void *W_params,
	enum tensor_kind weight, enum tensor_kind bias, const void *W_x, void *W_dx, void *G_grads,
	int64_t rows);

#endif
