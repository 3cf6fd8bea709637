// SPDX-License-Identifier: Apache-2.0
/*
 * Attention on the CPU, tiled: for each sequence and head, a tile of TILE queries meets the keys up
 * to its own last position, WIDE of them at a time. Scores live for one such tile only; the softmax
 * is taken online (running maximum and sum per row), and backward computes P again from the kept
 * logarithm of the sum. Query heads of a group share one pair of dK and dV, kept in G until all of
 * the group's heads have added theirs.
 *
 * Source: Dao et al., FlashAttention (2022), algorithms 1 and 4; Ainslie et al., GQA (2023).
 *
 * Keys after a tile's last query are never multiplied. So of s queries and keys, with n = s / TILE
 * whole tiles and r queries more, TILE^2 n (n + 1) / 2 + r s pairs are computed for each head:
 * twice 2 d FLOPs each forward, five times backward (cpu_attn_flops).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/train/cpu_priv.h"

enum { TILE = 64, WIDE = 512 };

void cpu_attn_flops(const struct tr_attn *a, double *fwd, double *bwd)
{
	double n = (double)(a->seq / TILE), r = (double)(a->seq % TILE);
	double pairs = TILE * TILE * n * (n + 1) / 2 + r * (double)a->seq;
	double one = pairs * 2 * (double)(a->head_dim * a->heads * a->seqs);
	*fwd = 2 * one;
	*bwd = 5 * one;
}

/* What one call works with. */
struct attn {
	struct tr_dev *d;
	const struct tr_attn *a;
	int64_t q_ld, kv_ld; /* from token to token */
	double scale;
	enum gemm_dtype w, g;
	/* scratch, of G; P and dS of W */
	void *s, *dp, *P, *dS, *o, *dq, *dk, *dv, *max, *sum, *fix, *dot;
};

static enum gemm_dtype gemm_type(enum tr_dtype t)
{
	return t == TR_F64 ? GEMM_F64 : t == TR_BF16 ? GEMM_BF16 : GEMM_F32;
}

/* Room in the scratch; with base NULL only sizes count. */
struct room {
	char *base;
	size_t used;
};

static void *take(struct room *r, int64_t elements, size_t size)
{
	void *p = r->base ? r->base + r->used : NULL;
	r->used += ((size_t)elements * size + 63) / 64 * 64;
	return p;
}

static size_t lay_out(struct attn *t, char *base, bool backward)
{
	struct room at = {base, 0};
	size_t w = t->d->w, g = t->d->g;
	int64_t dim = t->a->head_dim, tile = TILE * WIDE;
	bool same = w == g; /* then P takes the place of the scores */
	t->s = take(&at, tile, g);
	t->P = same ? t->s : take(&at, tile, w);
	t->max = take(&at, TILE, g);
	t->sum = take(&at, TILE, g);
	t->fix = take(&at, TILE, g);
	t->dot = take(&at, TILE, g);
	t->o = take(&at, TILE * dim, g);
	if (backward) {
		t->dp = take(&at, tile, g);
		t->dS = same ? t->dp : take(&at, tile, w);
		t->dq = take(&at, TILE * dim, g);
		t->dk = take(&at, t->a->seq * dim, g);
		t->dv = take(&at, t->a->seq * dim, g);
	}
	return at.used;
}

static bool begin(struct attn *t, struct tr_dev *d, const struct tr_attn *a, bool backward)
{
	memset(t, 0, sizeof(*t));
	t->d = d;
	t->a = a;
	t->q_ld = a->heads * a->head_dim;
	t->kv_ld = a->kv_heads * a->head_dim;
	t->scale = 1 / sqrt((double)a->head_dim);
	t->w = gemm_type(d->cfg.work);
	t->g = gemm_type(tr_grad_dtype(d->cfg.work));
	char *at = cpu_scratch(d, lay_out(t, NULL, backward));
	if (!at)
		return false;
	lay_out(t, at, backward);
	return true;
}

static void product(struct attn *t, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
	bool trans_a, const void *b, int64_t ldb, bool trans_b, void *c, int64_t ldc, bool add)
{
	const struct gemm_shape s = {.m = m,
		.n = n,
		.k = k,
		.lda = lda,
		.ldb = ldb,
		.ldc = ldc,
		.trans_a = trans_a,
		.trans_b = trans_b,
		.in = t->w,
		.out = t->g,
		.alpha = 1,
		.beta = add ? 1 : 0};
	cpu_product(t->d, &s, a, b, c, &t->d->count.attn_flops, &t->d->count.attn_ns);
}

/* Where head `head` of `heads` of token `token` of sequence `seq` begins. */
static char *place(
	const struct attn *t, const void *x, int64_t seq, int64_t token, int64_t head, int64_t ld)
{
	int64_t at = (seq * t->a->seq + token) * ld + head * t->a->head_dim;
	return (char *)(uintptr_t)x + (size_t)at * t->d->w;
}

static void *lse_of(
	const struct attn *t, const void *G_lse, int64_t seq, int64_t token, int64_t head)
{
	int64_t at = (head * t->a->seqs + seq) * t->a->seq + token;
	return (char *)(uintptr_t)G_lse + (size_t)at * t->d->g;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* max -inf and sum 0 of a tile's rows */
static void start_rows(struct attn *t, int64_t rows)
{
	for (int64_t r = 0; r < rows; r++) {
		if (t->g == GEMM_F64)
			((double *)t->max)[r] = -INFINITY;
		else
			((float *)t->max)[r] = -INFINITY;
	}
	memset(t->sum, 0, (size_t)rows * t->d->g);
}

static void tile_fwd(struct attn *t, int64_t seq, int64_t head, int64_t from, void *o, void *lse,
	const void *q, const void *k, const void *v)
{
	const struct cpu_kernels *kern = t->d->k;
	int64_t kv = head / (t->a->heads / t->a->kv_heads), dim = t->a->head_dim;
	int64_t rows = least(TILE, t->a->seq - from), keys = from + rows;
	start_rows(t, rows);
	for (int64_t key = 0; key < keys; key += WIDE) {
		int64_t cols = least(WIDE, keys - key);
		product(t, rows, cols, dim, place(t, q, seq, from, head, t->q_ld), t->q_ld, false,
			place(t, k, seq, key, kv, t->kv_ld), t->kv_ld, true, t->s, WIDE, false);
		kern->attn_softmax(t->P, WIDE, t->s, WIDE, t->max, t->sum, t->fix, rows, cols,
			from - key, t->scale);
		if (key > 0)
			kern->attn_rescale(t->o, t->fix, rows, dim);
		product(t, rows, dim, cols, t->P, WIDE, false, place(t, v, seq, key, kv, t->kv_ld),
			t->kv_ld, false, t->o, dim, key > 0);
	}
	kern->attn_finish(place(t, o, seq, from, head, t->q_ld), t->q_ld, t->o, t->max, t->sum,
		lse_of(t, lse, seq, from, head), rows, dim);
}

void cpu_attn_fwd(struct tr_queue *q, const struct tr_attn *a, void *W_o, void *G_lse,
	const void *W_q, const void *W_k, const void *W_v)
{
	struct attn t;
	if (!begin(&t, q->dev, a, false))
		return;
	for (int64_t seq = 0; seq < a->seqs; seq++)
		for (int64_t head = 0; head < a->heads; head++)
			for (int64_t from = 0; from < a->seq && !q->dev->err.code; from += TILE)
				tile_fwd(&t, seq, head, from, W_o, G_lse, W_q, W_k, W_v);
}

/* A backward call's operands. */
struct grads {
	void *dq, *dk, *dv;
	const void *dO, *q, *k, *v, *o, *lse;
};

static void tile_bwd(struct attn *t, int64_t seq, int64_t head, int64_t from, const struct grads *g)
{
	const struct cpu_kernels *kern = t->d->k;
	int64_t kv = head / (t->a->heads / t->a->kv_heads), dim = t->a->head_dim;
	int64_t rows = least(TILE, t->a->seq - from), keys = from + rows;
	const void *q = place(t, g->q, seq, from, head, t->q_ld);
	const void *dO = place(t, g->dO, seq, from, head, t->q_ld);
	kern->attn_dot(t->dot, dO, place(t, g->o, seq, from, head, t->q_ld), t->q_ld, rows, dim);
	for (int64_t key = 0; key < keys; key += WIDE) {
		int64_t cols = least(WIDE, keys - key);
		const void *k = place(t, g->k, seq, key, kv, t->kv_ld);
		const void *v = place(t, g->v, seq, key, kv, t->kv_ld);
		product(t, rows, cols, dim, q, t->q_ld, false, k, t->kv_ld, true, t->s, WIDE,
			false);
		product(t, rows, cols, dim, dO, t->q_ld, false, v, t->kv_ld, true, t->dp, WIDE,
			false);
		kern->attn_grad(t->P, t->dS, WIDE, t->s, t->dp, WIDE,
			lse_of(t, g->lse, seq, from, head), t->dot, rows, cols, from - key,
			t->scale);
		product(t, cols, dim, rows, t->P, WIDE, true, dO, t->q_ld, false,
			(char *)t->dv + (size_t)(key * dim) * t->d->g, dim, true);
		product(t, cols, dim, rows, t->dS, WIDE, true, q, t->q_ld, false,
			(char *)t->dk + (size_t)(key * dim) * t->d->g, dim, true);
		product(t, rows, dim, cols, t->dS, WIDE, false, k, t->kv_ld, false, t->dq, dim,
			key > 0);
	}
	kern->attn_store(place(t, g->dq, seq, from, head, t->q_ld), t->q_ld, t->dq, rows, dim);
}

/* One key head of one sequence, for all the query heads that share it. */
static void group_bwd(struct attn *t, int64_t seq, int64_t kv, const struct grads *g)
{
	int64_t group = t->a->heads / t->a->kv_heads, n = t->a->seq * t->a->head_dim;
	memset(t->dk, 0, (size_t)n * t->d->g);
	memset(t->dv, 0, (size_t)n * t->d->g);
	for (int64_t head = kv * group; head < (kv + 1) * group; head++)
		for (int64_t from = 0; from < t->a->seq && !t->d->err.code; from += TILE)
			tile_bwd(t, seq, head, from, g);
	t->d->k->attn_store(
		place(t, g->dk, seq, 0, kv, t->kv_ld), t->kv_ld, t->dk, t->a->seq, t->a->head_dim);
	t->d->k->attn_store(
		place(t, g->dv, seq, 0, kv, t->kv_ld), t->kv_ld, t->dv, t->a->seq, t->a->head_dim);
}

void cpu_attn_bwd(struct tr_queue *q, const struct tr_attn *a, void *W_dq, void *W_dk, void *W_dv,
	const void *W_do, const void *W_q, const void *W_k, const void *W_v, const void *W_o,
	const void *G_lse)
{
	struct attn t;
	const struct grads g = {W_dq, W_dk, W_dv, W_do, W_q, W_k, W_v, W_o, G_lse};
	if (!begin(&t, q->dev, a, true))
		return;
	for (int64_t seq = 0; seq < a->seqs; seq++)
		for (int64_t kv = 0; kv < a->kv_heads && !q->dev->err.code; kv++)
			group_bwd(&t, seq, kv, &g);
}
