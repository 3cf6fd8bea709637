// SPDX-License-Identifier: Apache-2.0
/*
 * Attention on the CPU, tiled: for each sequence and head, a tile of CPU_TILE queries meets the
 * keys up to its own last position, WIDE of them at a time. Scores live for one such tile only, as
 * [key][query]; the softmax is taken online (running maximum and sum per query), and backward
 * computes P again from the kept logarithm of the sum. Query heads of a group share one pair of dK
 * and dV, kept in G until all of the group's heads have added theirs.
 *
 * Source: Dao et al., FlashAttention (2022), algorithms 1 and 4; Ainslie et al., GQA (2023).
 *
 * A head's rows lie far apart in memory, and oneDNN has its fast kernels for dense operands alone
 * (they gave 160 to 190 GFLOP/s where the strided ones gave 120 to 150): keys and values of a head
 * are laid out densely once per group, queries once per tile.
 *
 * Keys after a tile's last query are never multiplied. So of s queries and keys, with n = s / TILE
 * whole tiles and r queries more, TILE^2 n (n + 1) / 2 + r s pairs are computed for each head:
 * twice 2 d FLOPs each forward, five times backward (cpu_attn_flops).
 */
#include <math.h>
#include <string.h>

#include "bench/train/cpu_priv.h"

enum { TILE = CPU_TILE, WIDE = 256 };

void cpu_attn_flops(const struct tr_attn *a, double *fwd, double *bwd)
{
	int64_t whole = a->seq / TILE;
	double n = (double)whole, r = (double)(a->seq % TILE);
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
	/* Scratch. Of W, dense: keys and values [seq][d], queries and dO [TILE][d] and turned
	 * [d][TILE], P and dS [WIDE][TILE]. The rest is of G. */
	void *k, *v, *q, *qt, *dO, *dOt, *P, *dS;
	void *s, *dp, *o, *dk, *dv, *max, *sum, *fix, *dot, *lse;
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
	int64_t dim = t->a->head_dim, all = t->a->seq * dim, tile = TILE * WIDE;
	bool same = w == g; /* then P takes the place of the scores */
	t->k = take(&at, all, w);
	t->v = take(&at, all, w);
	t->q = take(&at, TILE * dim, w);
	t->qt = take(&at, TILE * dim, w);
	t->s = take(&at, tile, g);
	t->P = same ? t->s : take(&at, tile, w);
	t->max = take(&at, TILE, g);
	t->sum = take(&at, TILE, g);
	t->fix = take(&at, TILE, g);
	t->o = take(&at, TILE * dim, g); /* backward: dQ */
	if (backward) {
		t->dot = take(&at, TILE, g);
		t->lse = take(&at, TILE, g);
		t->dO = take(&at, TILE * dim, w);
		t->dOt = take(&at, TILE * dim, w);
		t->dp = take(&at, tile, g);
		t->dS = same ? t->dp : take(&at, tile, w);
		t->dk = take(&at, all, g);
		t->dv = take(&at, all, g);
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

/* C (m x n) = or += A B, all dense. */
static void product(struct attn *t, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
	bool trans_a, const void *b, int64_t ldb, void *c, int64_t ldc, bool add)
{
	const struct gemm_shape s = {.m = m,
		.n = n,
		.k = k,
		.lda = lda,
		.ldb = ldb,
		.ldc = ldc,
		.trans_a = trans_a,
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

/* max -inf and sum 0 of a tile's queries */
static void start_rows(struct attn *t)
{
	for (int64_t r = 0; r < TILE; r++) {
		if (t->g == GEMM_F64)
			((double *)t->max)[r] = -INFINITY;
		else
			((float *)t->max)[r] = -INFINITY;
	}
	memset(t->sum, 0, TILE * t->d->g);
}

/* Rows of a head, dense. */
static void gather(const struct attn *t, void *to, const void *from, int64_t ld, int64_t rows)
{
	size_t row = (size_t)t->a->head_dim * t->d->w, step = (size_t)ld * t->d->w;
	for (int64_t r = 0; r < rows; r++)
		memcpy((char *)to + (size_t)r * row, (const char *)from + (size_t)r * step, row);
}

/* Keys and values of one head of one sequence. */
static void gather_group(struct attn *t, int64_t seq, int64_t kv, const void *k, const void *v)
{
	gather(t, t->k, place(t, k, seq, 0, kv, t->kv_ld), t->kv_ld, t->a->seq);
	gather(t, t->v, place(t, v, seq, 0, kv, t->kv_ld), t->kv_ld, t->a->seq);
}

/* Row `key` of the dense keys, values, or of their gradients. */
static char *row_of(const struct attn *t, void *x, int64_t key, size_t size)
{
	return (char *)x + (size_t)(key * t->a->head_dim) * size;
}

static void tile_fwd(
	struct attn *t, int64_t seq, int64_t head, int64_t from, void *o, void *lse, const void *q)
{
	const struct cpu_kernels *kern = t->d->k;
	int64_t dim = t->a->head_dim, rows = least(TILE, t->a->seq - from), keys = from + rows;
	start_rows(t);
	gather(t, t->q, place(t, q, seq, from, head, t->q_ld), t->q_ld, rows);
	kern->attn_turn(t->qt, t->q, rows, dim);
	for (int64_t key = 0; key < keys; key += WIDE) {
		int64_t n = least(WIDE, keys - key);
		product(t, n, rows, dim, row_of(t, t->k, key, t->d->w), dim, false, t->qt, TILE,
			t->s, TILE, false);
		kern->attn_softmax(t->P, t->s, t->max, t->sum, t->fix, n, from - key, t->scale);
		if (key > 0)
			kern->attn_rescale(t->o, t->fix, rows, dim);
		product(t, rows, dim, n, t->P, TILE, true, row_of(t, t->v, key, t->d->w), dim, t->o,
			dim, key > 0);
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
		for (int64_t head = 0; head < a->heads; head++) {
			int64_t group = a->heads / a->kv_heads;
			if (head % group == 0)
				gather_group(&t, seq, head / group, W_k, W_v);
			for (int64_t from = 0; from < a->seq && !q->dev->err.code; from += TILE)
				tile_fwd(&t, seq, head, from, W_o, G_lse, W_q);
		}
}

/* A backward call's operands. */
struct grads {
	void *dq, *dk, *dv;
	const void *dO, *q, *k, *v, *o, *lse;
};

static void tile_bwd(struct attn *t, int64_t seq, int64_t head, int64_t from, const struct grads *g)
{
	const struct cpu_kernels *kern = t->d->k;
	int64_t dim = t->a->head_dim, rows = least(TILE, t->a->seq - from), keys = from + rows;
	size_t w = t->d->w, wg = t->d->g;
	const void *dO = place(t, g->dO, seq, from, head, t->q_ld);
	kern->attn_dot(t->dot, dO, place(t, g->o, seq, from, head, t->q_ld), t->q_ld, rows, dim);
	memcpy(t->lse, lse_of(t, g->lse, seq, from, head), (size_t)rows * wg);
	gather(t, t->q, place(t, g->q, seq, from, head, t->q_ld), t->q_ld, rows);
	gather(t, t->dO, dO, t->q_ld, rows);
	kern->attn_turn(t->qt, t->q, rows, dim);
	kern->attn_turn(t->dOt, t->dO, rows, dim);
	for (int64_t key = 0; key < keys; key += WIDE) {
		int64_t n = least(WIDE, keys - key);
		const void *k = row_of(t, t->k, key, w), *v = row_of(t, t->v, key, w);
		product(t, n, rows, dim, k, dim, false, t->qt, TILE, t->s, TILE, false);
		product(t, n, rows, dim, v, dim, false, t->dOt, TILE, t->dp, TILE, false);
		kern->attn_grad(t->P, t->dS, t->s, t->dp, t->lse, t->dot, n, from - key, t->scale);
		product(t, n, dim, rows, t->P, TILE, false, t->dO, dim, row_of(t, t->dv, key, wg),
			dim, true);
		product(t, n, dim, rows, t->dS, TILE, false, t->q, dim, row_of(t, t->dk, key, wg),
			dim, true);
		product(t, rows, dim, n, t->dS, TILE, true, k, dim, t->o, dim, key > 0);
	}
	kern->attn_store(place(t, g->dq, seq, from, head, t->q_ld), t->q_ld, t->o, rows, dim);
}

/* One key head of one sequence, for all the query heads that share it. */
static void group_bwd(struct attn *t, int64_t seq, int64_t kv, const struct grads *g)
{
	int64_t group = t->a->heads / t->a->kv_heads, n = t->a->seq * t->a->head_dim;
	memset(t->dk, 0, (size_t)n * t->d->g);
	memset(t->dv, 0, (size_t)n * t->d->g);
	gather_group(t, seq, kv, g->k, g->v);
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
