/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the net's tests: a whole small model on one CPU device, run forward and backward as the
 * engine would, with weights, tokens and targets from a hash that scripts/oracle/train_golden.py
 * computes too. Every weight is exact in bf16, so that all types start from the same numbers.
 */
#ifndef TRAIN_NET_RIG_H
#define TRAIN_NET_RIG_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/test.h"
#include "bench/train/model_rig.h"
#include "bench/train/net.h"

#define RIG_LAYERS 2
#define RIG_UNITS  (RIG_LAYERS + 1)

struct rig {
	struct model m;
	struct net net;
	struct tr_queue q;
	struct model_unit unit[RIG_UNITS];
	void *params[RIG_UNITS], *grads[RIG_UNITS]; /* W, G */
	void *x[RIG_UNITS];                         /* each block's input, and the last's output */
	void *saved[RIG_LAYERS], *dx;
	int32_t *token, *target;
	double scale;
};

static inline uint64_t rig_fnv(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}
static inline uint64_t rig_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline int64_t rig_tokens(const struct rig *r)
{
	return r->net.seqs * r->net.seq;
}

static inline void *rig_alloc(struct rig *r, size_t bytes)
{
	struct fb_err e = {0};
	void *p = NULL;
	assert_int_equal(r->net.ops->alloc(r->q.dev, bytes ? bytes : 64, &p, &e), 0);
	return p;
}

/* Multiples of powers of two: norms' weights in 1 +- 1/4, all others in +- 1/2. */
static inline void rig_weights(struct rig *r, int u)
{
	double *w = malloc((size_t)r->unit[u].elements * sizeof(*w));
	assert_non_null(w);
	for (int i = 0; i < r->unit[u].n; i++) {
		const struct model_tensor *t = &r->unit[u].t[i];
		char name[64];
		bool norm = t->kind == TENSOR_NORM1 || t->kind == TENSOR_NORM2 ||
			    t->kind == TENSOR_NORM_F;
		snprintf(name, sizeof(name), "%d/%s", u, tensor_name(t->kind));
		uint64_t seed = rig_fnv(name);
		for (int64_t j = 0; j < t->rows * t->cols; j++) {
			uint64_t b = rig_mix(seed + (uint64_t)j);
			w[t->offset + j] = norm ? 1 + ((double)(b % 65) - 32) / 128
						: ((double)(b % 257) - 128) / 256;
		}
	}
	r->net.ops->cast(&r->q, r->params[u], r->net.work, w, TR_F64, r->unit[u].elements);
	free(w);
}

static inline void rig_open(struct rig *r, const struct model *m, enum tr_dtype work, int64_t seqs,
	int64_t seq, enum tr_recompute recompute, const struct gemm_ops *gemm)
{
	const struct tr_dev_cfg cfg = {.work = work, .gemm = gemm, .core = -1};
	struct fb_err e = {0};

	memset(r, 0, sizeof(*r));
	r->m = *m;
	assert_int_equal(model_check(&r->m, &e), 0);
	assert_int_equal(r->m.layers, RIG_LAYERS);
	r->net = (struct net){.m = &r->m,
		.ops = &tr_cpu,
		.q = &r->q,
		.work = work,
		.seqs = seqs,
		.seq = seq,
		.recompute = recompute};
	assert_int_equal(tr_cpu.open(&cfg, &r->q.dev, &e), 0);
	assert_int_equal(net_open(&r->net, &e), 0);
	r->scale = 1.0 / (double)rig_tokens(r);
	for (int u = 0; u < RIG_UNITS; u++) {
		model_unit(&r->m, u, &r->unit[u]);
		size_t n = (size_t)r->unit[u].elements;
		r->params[u] = rig_alloc(r, n * tr_dtype_size(work));
		r->grads[u] = rig_alloc(r, n * tr_dtype_size(tr_grad_dtype(work)));
		r->x[u] = rig_alloc(r, net_x_bytes(&r->net));
		rig_weights(r, u);
	}
	for (int i = 0; i < RIG_LAYERS; i++)
		r->saved[i] = rig_alloc(r, net_saved_bytes(&r->net));
	r->dx = rig_alloc(r, net_x_bytes(&r->net));
	r->token = rig_alloc(r, (size_t)rig_tokens(r) * sizeof(int32_t));
	r->target = rig_alloc(r, (size_t)rig_tokens(r) * sizeof(int32_t));
	for (int64_t t = 0; t < rig_tokens(r); t++) {
		uint64_t b = rig_mix(rig_fnv("targets") + (uint64_t)t);
		r->token[t] =
			(int32_t)(rig_mix(rig_fnv("tokens") + (uint64_t)t) % (uint64_t)r->m.vocab);
		r->target[t] = b % 7 == 0 ? -1 : (int32_t)((b >> 8) % (uint64_t)r->m.vocab);
	}
}

static inline void rig_close(struct rig *r)
{
	for (int u = 0; u < RIG_UNITS; u++) {
		tr_cpu.free(r->q.dev, r->params[u]);
		tr_cpu.free(r->q.dev, r->grads[u]);
		tr_cpu.free(r->q.dev, r->x[u]);
	}
	for (int i = 0; i < RIG_LAYERS; i++)
		tr_cpu.free(r->q.dev, r->saved[i]);
	tr_cpu.free(r->q.dev, r->dx);
	tr_cpu.free(r->q.dev, r->token);
	tr_cpu.free(r->q.dev, r->target);
	net_close(&r->net);
	tr_cpu.close(r->q.dev);
}

static inline void rig_forward(struct rig *r)
{
	net_embed_fwd(&r->net, r->params[RIG_LAYERS], r->token, r->x[0]);
	for (int i = 0; i < RIG_LAYERS; i++)
		net_block_fwd(&r->net, r->params[i], r->x[i], r->x[i + 1], r->saved[i]);
}

static inline void rig_sound(struct rig *r)
{
	struct fb_err e = {0};
	if (r->net.ops->error(r->q.dev, &e) != 0)
		fail_msg("%s", e.msg);
}

/* The loss alone, a sum over tokens. */
static inline double rig_loss(struct rig *r)
{
	double loss = 0;
	rig_forward(r);
	net_head(&r->net, r->params[RIG_LAYERS], r->x[RIG_LAYERS], r->target, r->scale, &loss, NULL,
		NULL);
	rig_sound(r);
	return loss;
}

/* Forward and backward; gradients are added to what is there, or with net.fresh written. @return
 * loss, a sum over tokens */
static inline double rig_add_gradients(struct rig *r)
{
	double loss = 0;
	rig_forward(r);
	net_head(&r->net, r->params[RIG_LAYERS], r->x[RIG_LAYERS], r->target, r->scale, &loss,
		r->dx, r->grads[RIG_LAYERS]);
	for (int i = RIG_LAYERS - 1; i >= 0; i--) {
		net_block_again(&r->net, r->params[i], r->x[i]);
		net_block_bwd(&r->net, r->params[i], r->x[i], r->saved[i], r->dx, r->grads[i]);
	}
	/* The embedding adds to what the head has begun. */
	bool fresh = r->net.fresh;
	r->net.fresh = false;
	net_embed_bwd(&r->net, r->token, r->dx, r->grads[RIG_LAYERS]);
	r->net.fresh = fresh;
	rig_sound(r);
	return loss;
}

static inline double rig_gradients(struct rig *r)
{
	for (int u = 0; u < RIG_UNITS; u++)
		r->net.ops->zero(&r->q, r->grads[u],
			(size_t)r->unit[u].elements * tr_dtype_size(tr_grad_dtype(r->net.work)));
	return rig_add_gradients(r);
}

/* Gradients of a unit as doubles; the caller frees. */
static inline double *rig_grads(struct rig *r, int u)
{
	double *g = malloc((size_t)r->unit[u].elements * sizeof(*g));
	assert_non_null(g);
	r->net.ops->cast(
		&r->q, g, TR_F64, r->grads[u], tr_grad_dtype(r->net.work), r->unit[u].elements);
	return g;
}

static inline double rig_norm(const double *a, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += a[i] * a[i];
	return sqrt(sum);
}
static inline double rig_distance(const double *a, const double *b, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sqrt(sum);
}
/* ||a-b|| / max(||b||, 1e-6 * all): `all` is the norm of the whole gradient. */
static inline double rig_error(const double *a, const double *b, int64_t n, double all)
{
	double floor = 1e-6 * all, norm = rig_norm(b, n);
	return rig_distance(a, b, n) / (norm > floor ? norm : floor);
}
/* Norm of the whole gradient. */
static inline double rig_norm_all(double *const g[RIG_UNITS], const struct rig *r)
{
	double sum = 0;
	for (int u = 0; u < RIG_UNITS; u++) {
		double norm = rig_norm(g[u], r->unit[u].elements);
		sum += norm * norm;
	}
	return sqrt(sum);
}

/* The models of scripts/oracle/train_golden.py. */
static const struct model rig_llama = {.name = "rig-llama",
	.family = MODEL_LLAMA,
	.layers = RIG_LAYERS,
	.hidden = 16,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 8,
	.ffn = 24,
	.vocab = 53,
	.positions = 80,
	.rope_base = 10000,
	.eps = 1e-5};
static const struct model rig_gpt2 = {.name = "rig-gpt2",
	.family = MODEL_GPT2,
	.layers = RIG_LAYERS,
	.hidden = 16,
	.heads = 2,
	.kv_heads = 2,
	.head_dim = 8,
	.ffn = 64,
	.vocab = 53,
	.positions = 80,
	.eps = 1e-5,
	.tied = true};

#endif
