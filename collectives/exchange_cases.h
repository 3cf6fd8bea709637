/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of the exchange that every transport must pass: each rank runs them with its own transport,
 * computes from ranks and indexes alone what must come out, bit for bit, and says what is wrong.
 * For tests only; they include it, so that a plug-in's ranks can run it as well.
 */
#ifndef COLL_EXCHANGE_CASES_H
#define COLL_EXCHANGE_CASES_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "collectives/exchange.h"
#include "collectives/pattern.h"

struct ex_rank {
	const struct p2p_ops *ops;
	struct p2p *p;
	int rank, size; /* of the world */
	char why[1024]; /* empty: right so far */
};

enum ex_op { EX_GATHER, EX_REDUCE, EX_ALL_REDUCE };
static const char *const ex_op_names[] = {"all_gather", "reduce_scatter", "all_reduce"};
static const char *const ex_types[] = {
	"int8", "uint8", "int32", "int64", "float", "double", "half", "bfloat16"};

struct ex_case {
	enum ex_op op;
	enum coll_dtype t;
	size_t count;
	bool in_place;
	int out_block; /* reduce_scatter in place: the block of `in` that takes the sum */
};

#define EX_WRONG(r, ...)                                                   \
	do {                                                               \
		if ((r)->why[0] == '\0')                                   \
			snprintf((r)->why, sizeof((r)->why), __VA_ARGS__); \
	} while (0)

/* ---- what is sent -----------------------------------------------------------------------------
 */

static inline uint64_t ex_hash(int rank, size_t i)
{
	uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(rank + 1) * 0xd1b54a32d192ed03u;
	h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9u;
	return h ^ (h >> 29);
}

/* Element i of world rank `rank`: values whose sums depend on their order. */
static inline void ex_element(enum coll_dtype t, int rank, size_t i, void *out, size_t at)
{
	const uint64_t h = ex_hash(rank, i);
	const float f = (float)(int32_t)(uint32_t)h * 0x1p-31f;
	switch (t) {
	case COLL_INT8:
	case COLL_UINT8: ((uint8_t *)out)[at] = (uint8_t)h; break;
	case COLL_INT32: ((int32_t *)out)[at] = (int32_t)(h >> 40); break;
	case COLL_INT64: ((int64_t *)out)[at] = (int64_t)h >> 8; break;
	case COLL_FLOAT: ((float *)out)[at] = f; break;
	case COLL_DOUBLE: ((double *)out)[at] = (double)(int64_t)h * 0x1p-63; break;
	case COLL_HALF: ((uint16_t *)out)[at] = coll_float_to_half(f); break;
	case COLL_BFLOAT16: ((uint16_t *)out)[at] = coll_float_to_bf16(f); break;
	case COLL_DTYPE_COUNT: break;
	}
}

static inline void ex_fill(enum coll_dtype t, int rank, size_t first, size_t n, void *out)
{
	for (size_t i = 0; i < n; i++)
		ex_element(t, rank, first + i, out, i);
}

/* ---- what must come out -----------------------------------------------------------------------
 */

static inline float ex_widen(enum coll_dtype t, uint16_t v)
{
	return t == COLL_HALF ? coll_half_to_float(v) : coll_bf16_to_float(v);
}

static inline uint16_t ex_narrow(enum coll_dtype t, float v)
{
	return t == COLL_HALF ? coll_float_to_half(v) : coll_float_to_bf16(v);
}

static inline void ex_add(enum coll_dtype t, void *acc, const void *v)
{
	switch (t) {
	case COLL_INT8:
	case COLL_UINT8: *(uint8_t *)acc = (uint8_t)(*(uint8_t *)acc + *(const uint8_t *)v); break;
	case COLL_INT32: *(int32_t *)acc += *(const int32_t *)v; break;
	case COLL_INT64: *(int64_t *)acc += *(const int64_t *)v; break;
	case COLL_FLOAT: *(float *)acc += *(const float *)v; break;
	case COLL_DOUBLE: *(double *)acc += *(const double *)v; break;
	default: break;
	}
}

/* Element i of the reduction, owned by group rank `owner`. */
static inline void ex_sum(const struct exchange_group *g, enum coll_dtype t, int owner, size_t i,
	void *out, size_t at)
{
	const size_t size = coll_dtype_size(t);
	const bool ring = g->size > EXCHANGE_DIRECT, half = size == 2;
	double acc = 0, v; /* room for any type, aligned for all */
	float wide = 0;
	for (int k = 0; k < g->size; k++) {
		const int from = ring ? (owner + 1 + k) % g->size : k;
		ex_element(t, g->first + from * g->stride, i, k == 0 ? &acc : &v, 0);
		if (half) {
			uint16_t bits;
			memcpy(&bits, k == 0 ? &acc : &v, 2);
			wide = k == 0 ? ex_widen(t, bits) : wide + ex_widen(t, bits);
			if (ring)
				wide = ex_widen(t, ex_narrow(t, wide));
		} else if (k > 0) {
			ex_add(t, &acc, &v);
		}
	}
	if (half) {
		const uint16_t bits = ex_narrow(t, wide);
		memcpy(&acc, &bits, 2);
	}
	memcpy((char *)out + at * size, &acc, size);
}

static inline uint64_t ex_bytes(const struct exchange_group *g, const struct ex_case *c)
{
	const size_t n = (size_t)g->size;
	const size_t block = c->op == EX_ALL_REDUCE ? (c->count + n - 1) / n : c->count;
	return (uint64_t)(c->op == EX_ALL_REDUCE ? 2 : 1) * (n - 1) * block * coll_dtype_size(c->t);
}

/* ---- running ----------------------------------------------------------------------------------
 */

static inline int ex_begin(struct exchange *x, const struct exchange_group *g,
	const struct ex_case *c, char *in, char *out, struct fb_err *e)
{
	const size_t size = coll_dtype_size(c->t), own = (size_t)g->rank * c->count * size;
	switch (c->op) {
	case EX_GATHER:
		return exchange_all_gather(x, c->in_place ? out + own : in, out, c->count, c->t, e);
	case EX_REDUCE:
		return exchange_reduce_scatter(x, in,
			c->in_place ? in + (size_t)c->out_block * c->count * size : out, c->count,
			c->t, e);
	case EX_ALL_REDUCE: break;
	}
	return exchange_all_reduce(x, out, c->count, c->t, e);
}

static inline int ex_wait(struct ex_rank *r, struct exchange *x, struct fb_err *e)
{
	const uint64_t deadline = fb_deadline_in(60000000000u);
	bool done = false;
	int rc = 0;
	while (rc == 0 && !done) {
		rc = exchange_test(x, &done, e);
		if (rc == 0 && !done && fb_clock_ns() > deadline) {
			EX_WRONG(r, "not done within a minute");
			return -1;
		}
		if (!done)
			sched_yield();
	}
	if (rc != 0)
		EX_WRONG(r, "%s", e->msg);
	return rc;
}

/* What must lie in the result, and how much of it. */
static inline size_t ex_expect(const struct exchange_group *g, const struct ex_case *c, char *want)
{
	const size_t n = (size_t)g->size, size = coll_dtype_size(c->t);
	const size_t block = c->op == EX_ALL_REDUCE ? (c->count + n - 1) / n : c->count;
	switch (c->op) {
	case EX_GATHER:
		for (int k = 0; k < g->size; k++)
			ex_fill(c->t, g->first + k * g->stride, 0, c->count,
				want + (size_t)k * c->count * size);
		return n * c->count;
	case EX_REDUCE:
		for (size_t i = 0; i < c->count; i++)
			ex_sum(g, c->t, g->rank, (size_t)g->rank * c->count + i, want, i);
		return c->count;
	case EX_ALL_REDUCE: break;
	}
	for (size_t i = 0; i < c->count; i++)
		ex_sum(g, c->t, (int)(i / block), i, want, i);
	return c->count;
}

static inline void ex_compare(struct ex_rank *r, const struct exchange_group *g,
	const struct ex_case *c, const char *got, const char *want, size_t n)
{
	const size_t size = coll_dtype_size(c->t);
	size_t i = 0;
	char a[64], b[64];
	if (memcmp(got, want, n * size) == 0)
		return;
	while (memcmp(got + i * size, want + i * size, size) == 0)
		i++;
	EX_WRONG(r, "rank %d of %d (from %d by %d): %s of %zu %s%s: element %zu is %s, not %s",
		g->rank, g->size, g->first, g->stride, ex_op_names[c->op], c->count, ex_types[c->t],
		c->in_place ? " in place" : "", i,
		coll_element_text(c->t, got + i * size, a, sizeof(a)),
		coll_element_text(c->t, want + i * size, b, sizeof(b)));
}

/* One collective on one group. */
static inline void ex_one(struct ex_rank *r, struct exchange *x, const struct exchange_group *g,
	const struct ex_case *c)
{
	const size_t n = (size_t)g->size, size = coll_dtype_size(c->t);
	const size_t whole = (n * c->count + 1) * size;
	char *in = malloc(whole), *out = malloc(whole), *want = malloc(whole);
	const int me = g->first + g->rank * g->stride;
	const uint64_t before = exchange_stats(x)->bytes_sent;
	struct fb_err e = {0};
	bool done = false;
	if (r->why[0] != '\0' || !in || !out || !want) {
		EX_WRONG(r, "no memory");
		goto free_all;
	}
	memset(out, 0xa5, whole);
	if (c->op == EX_GATHER)
		ex_fill(c->t, me, 0, c->count,
			c->in_place ? out + (size_t)g->rank * c->count * size : in);
	else
		ex_fill(c->t, me, 0, c->op == EX_REDUCE ? n * c->count : c->count,
			c->op == EX_REDUCE ? in : out);
	if (ex_begin(x, g, c, in, out, &e) != 0)
		EX_WRONG(r, "%s", e.msg);
	else if (ex_wait(r, x, &e) == 0)
		ex_compare(r, g, c,
			c->op == EX_REDUCE && c->in_place
				? in + (size_t)c->out_block * c->count * size
				: out,
			want, ex_expect(g, c, want));
	if (r->why[0] == '\0' && exchange_stats(x)->bytes_sent - before != ex_bytes(g, c))
		EX_WRONG(r, "%s of %zu %s on %d ranks sent %llu bytes, not %llu",
			ex_op_names[c->op], c->count, ex_types[c->t], g->size,
			(unsigned long long)(exchange_stats(x)->bytes_sent - before),
			(unsigned long long)ex_bytes(g, c));
	if (r->why[0] == '\0' && (exchange_test(x, &done, &e) != 0 || !done))
		EX_WRONG(r, "done, and then not any more");
free_all:
	free(in);
	free(out);
	free(want);
}

/* Every operation on a group, for these counts and types. */
static inline void ex_group(struct ex_rank *r, const struct exchange_group *g,
	const enum coll_dtype *types, int n_types, const size_t *counts, int n_counts)
{
	struct exchange *x = NULL;
	struct fb_err e = {0};
	if (exchange_new(r->ops, r->p, g, NULL, &x, &e) != 0) {
		EX_WRONG(r, "%s", e.msg);
		return;
	}
	for (int t = 0; t < n_types; t++)
		for (int i = 0; i < n_counts; i++) {
			struct ex_case c = {.t = types[t], .count = counts[i]};
			for (int in_place = 0; in_place < 2; in_place++) {
				c.in_place = in_place;
				c.op = EX_GATHER;
				ex_one(r, x, g, &c);
				c.op = EX_REDUCE;
				c.out_block = g->rank;
				ex_one(r, x, g, &c);
			}
			c.out_block = (g->rank + 1) % g->size;
			ex_one(r, x, g, &c);
			c.op = EX_ALL_REDUCE;
			ex_one(r, x, g, &c);
		}
	exchange_free(x);
}

static const enum coll_dtype ex_all_types[] = {
	COLL_FLOAT, COLL_DOUBLE, COLL_INT64, COLL_BFLOAT16, COLL_INT32, COLL_UINT8, COLL_HALF};
static const size_t ex_small[] = {0, 1, 2, 7, 64, 509};
static const size_t ex_large[] = {300007};

#define EX_LEN(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* All ranks at once, and, where their number is even, pairs of neighbours, and the even and the odd
 * ranks apart. */
static inline void ex_all_groups(struct ex_rank *r)
{
	struct exchange_group g = {.axis = "shard", .rank = r->rank, .size = r->size, .stride = 1};
	ex_group(r, &g, ex_all_types, EX_LEN(ex_all_types), ex_small, EX_LEN(ex_small));
	if (r->size % 2 != 0)
		return;
	g = (struct exchange_group){.axis = "replicate",
		.rank = r->rank / 2,
		.size = r->size / 2,
		.first = r->rank % 2,
		.stride = 2,
		.channel = P2P_REPLICATE};
	ex_group(r, &g, ex_all_types, 1, ex_small, EX_LEN(ex_small));
	g = (struct exchange_group){.axis = "pair",
		.rank = r->rank % 2,
		.size = 2,
		.first = r->rank / 2 * 2,
		.stride = 1,
		.channel = P2P_REDUCE};
	ex_group(r, &g, ex_all_types, 1, ex_small, EX_LEN(ex_small));
}

/* Blocks that go in pieces. */
static inline void ex_pieces(struct ex_rank *r)
{
	static const enum coll_dtype types[] = {COLL_FLOAT, COLL_BFLOAT16};
	struct exchange_group g = {.axis = "shard", .rank = r->rank, .size = r->size, .stride = 1};
	ex_group(r, &g, types, EX_LEN(types), ex_large, EX_LEN(ex_large));
}

/* An all-gather and an all-reduce on channels of their own, under way together; ranks begin and
 * look in different orders. */
static inline void ex_together(struct ex_rank *r)
{
	const struct exchange_group g[2] = {
		{.axis = "shard", .rank = r->rank, .size = r->size, .stride = 1},
		{.axis = "replicate",
			.rank = r->rank,
			.size = r->size,
			.stride = 1,
			.channel = P2P_REPLICATE}};
	const struct ex_case c[2] = {{.op = EX_GATHER, .t = COLL_FLOAT, .count = 5003},
		{.op = EX_ALL_REDUCE, .t = COLL_DOUBLE, .count = 7001}};
	struct exchange *x[2] = {NULL, NULL};
	const size_t whole = (size_t)r->size * 7001 * 8;
	char *in = malloc(whole), *want = malloc(whole), *out[2] = {malloc(whole), malloc(whole)};
	struct fb_err e = {0};
	for (int round = 0; round < 5 && r->why[0] == '\0'; round++) {
		ex_fill(c[0].t, r->rank, 0, c[0].count, in);
		ex_fill(c[1].t, r->rank, 0, c[1].count, out[1]);
		for (int i = 0; i < 2; i++) {
			const int k = i ^ (r->rank & 1);
			if ((!x[k] && exchange_new(r->ops, r->p, &g[k], NULL, &x[k], &e) != 0) ||
				ex_begin(x[k], &g[k], &c[k], in, out[k], &e) != 0)
				EX_WRONG(r, "%s", e.msg);
		}
		bool done[2] = {false, false};
		const uint64_t deadline = fb_deadline_in(60000000000u);
		for (int k = r->rank & 1; r->why[0] == '\0' && (!done[0] || !done[1]); k ^= 1) {
			if (exchange_test(x[k], &done[k], &e) != 0)
				EX_WRONG(r, "%s", e.msg);
			if (fb_clock_ns() > deadline)
				EX_WRONG(r, "not done within a minute");
			sched_yield();
		}
		for (int k = 0; k < 2 && r->why[0] == '\0'; k++)
			ex_compare(r, &g[k], &c[k], out[k], want, ex_expect(&g[k], &c[k], want));
	}
	exchange_free(x[0]);
	exchange_free(x[1]);
	free(in);
	free(want);
	free(out[0]);
	free(out[1]);
}

#endif
