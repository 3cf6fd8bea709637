/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a step computes: memory, queues and events, and the kernels of a transformer. The CPU fills
 * it here (cpu.c, in f32, bf16 and f64); a GPU's plug-in will. One device per rank, used by one
 * thread.
 *
 * Types: W is the work type of parameters and activations (f32, bf16 or f64), G that of gradients,
 * statistics and the optimizer (f32 for f32 and bf16, f64 for f64). A kernel never fails by itself:
 * an error is kept in the device and read at the step's end (tr_dev_error), as a stream of a GPU
 * would; after one, kernels do nothing. A kernel is enqueued on `q`; on the CPU it has run when the
 * call returns.
 *
 * Layouts: activations [tokens][features] row-major, tokens = seqs * seq, sequence-major.
 * The elements' arithmetic stands once, in elem.h.
 */
#ifndef TRAIN_DEVICE_H
#define TRAIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/train/gemm_ops.h"

enum tr_dtype { TR_F32, TR_BF16, TR_F64, TR_I64 };
extern const char *const tr_dtype_names[]; /**< "fp32", "bf16", "fp64", "int64" */
static inline size_t tr_dtype_size(enum tr_dtype t)
{
	return t == TR_BF16 ? 2 : t == TR_F32 ? 4 : 8;
}
/** G of a W. */
static inline enum tr_dtype tr_grad_dtype(enum tr_dtype work)
{
	return work == TR_F64 ? TR_F64 : TR_F32;
}

struct tr_dev;
struct tr_queue {
	struct tr_dev *dev;
	int id;
};
/** Attention's shape; layouts q,o [tokens][heads*d], k,v [tokens][kv_heads*d]. Causal. */
struct tr_attn {
	int64_t seqs, seq, heads, kv_heads, head_dim;
};
/** What a device is opened with. */
struct tr_dev_cfg {
	enum tr_dtype work;
	const struct gemm_ops *gemm; /**< NULL: plain loops (f64 always has them) */
	int core;                    /**< pin the calling thread to this CPU; -1: do not */
	/** Called between products and kernels of some length, so that messages move on while the
	 * rank computes. May be NULL. */
	void (*poll)(void *arg);
	void *poll_arg;
	/** --inject gemm: each product lasts that share longer; each of gemm(), not attention's
	 * own, so many ns longer; busy, and counted as the products' time. */
	double gemm_slow; /**< 0: not */
	uint64_t gemm_delay_ns;
};
struct tr_count {
	double linear_flops, attn_flops; /**< products really computed */
	uint64_t linear_ns, attn_ns;
	uint64_t linear_calls;
};
#define TR_FIXED_BITS 40
/** AdamW, decoupled decay, step t from 1; eps outside the root. */
struct tr_adamw {
	double lr, beta1, beta2, eps, decay;
	int64_t t;
};

/**
 * Pointers marked W, G are of those types. n, rows, cols are elements. "+=" adds to what is there.
 */
struct tr_dev_ops {
	const char *name;   /**< "cpu" */
	const char *memory; /**< "host" or "device" */
	int (*open)(const struct tr_dev_cfg *cfg, struct tr_dev **d, struct fb_err *e);
	void (*close)(struct tr_dev *d);
	/** Zeroed memory, 64-byte aligned. */
	int (*alloc)(struct tr_dev *d, size_t bytes, void **p, struct fb_err *e);
	void (*free)(struct tr_dev *d, void *p);
	void (*copy)(struct tr_queue *q, void *dst, const void *src, size_t bytes);
	void (*zero)(struct tr_queue *q, void *dst, size_t bytes);
	/** The first error since open, cleared by none. 0 or its code. */
	int (*error)(struct tr_dev *d, struct fb_err *e);

	/** C (rows x cols) = or += A*B with W or G operands as the shape says; the plan is made at
	 * the shape's first use and kept. Adds 2*m*n*k to the device's count. */
	void (*gemm)(struct tr_queue *q, const struct gemm_shape *s, const void *a, const void *b,
		void *c);
	/** x[t] = table[token[t]] (+ pos[t % seq] unless pos is NULL) */
	void (*embed_fwd)(struct tr_queue *q, void *W_x, const int32_t *token, const void *W_table,
		const void *W_pos, int64_t tokens, int64_t seq, int64_t cols);
	/** dtable[token[t]] += dx[t], dpos[t % seq] += dx[t], in the order of t */
	void (*embed_bwd)(struct tr_queue *q, void *G_dtable, void *G_dpos, const int32_t *token,
		const void *W_dx, int64_t tokens, int64_t seq, int64_t cols);
	/** mean NULL: RMSNorm (then b is NULL too). mean, rstd: G[rows]. */
	void (*norm_fwd)(struct tr_queue *q, void *W_y, void *G_mean, void *G_rstd, const void *W_x,
		const void *W_w, const void *W_b, int64_t rows, int64_t cols, double eps);
	/** dx += the norm's part (the residual's is there already); dw +=, db +=, order of rows */
	void (*norm_bwd)(struct tr_queue *q, void *W_dx, void *G_dw, void *G_db, const void *W_dy,
		const void *W_x, const void *W_w, const void *G_mean, const void *G_rstd,
		int64_t rows, int64_t cols);
	/** Rotate x [tokens][heads*d] in place, half-split pairs (i, i+d/2), angle in f32 or f64;
	 * dir +1 forward, -1 backward. */
	void (*rope)(struct tr_queue *q, void *W_x, int64_t tokens, int64_t seq, int64_t heads,
		int64_t d, double base, int dir);
	/** o, lse G[heads][tokens]; tiled, no seq x seq matrix is kept */
	void (*attn_fwd)(struct tr_queue *q, const struct tr_attn *a, void *W_o, void *G_lse,
		const void *W_q, const void *W_k, const void *W_v);
	void (*attn_bwd)(struct tr_queue *q, const struct tr_attn *a, void *W_dq, void *W_dk,
		void *W_dv, const void *W_do, const void *W_q, const void *W_k, const void *W_v,
		const void *W_o, const void *G_lse);
	/** h = silu(g) * u */
	void (*swiglu_fwd)(
		struct tr_queue *q, void *W_h, const void *W_g, const void *W_u, int64_t n);
	/** du may be dh */
	void (*swiglu_bwd)(struct tr_queue *q, void *W_dg, void *W_du, const void *W_dh,
		const void *W_g, const void *W_u, int64_t n);
	/** GPT-2's tanh form */
	void (*gelu_fwd)(struct tr_queue *q, void *W_y, const void *W_x, int64_t n);
	/** dx may be dy */
	void (*gelu_bwd)(
		struct tr_queue *q, void *W_dx, const void *W_dy, const void *W_x, int64_t n);
	/** y[r][c] += b[c] */
	void (*bias_fwd)(
		struct tr_queue *q, void *W_y, const void *W_b, int64_t rows, int64_t cols);
	/** db[c] += sum over r of dy[r][c], order of rows */
	void (*bias_bwd)(
		struct tr_queue *q, void *G_db, const void *W_dy, int64_t rows, int64_t cols);
	/** y = a + b; y may be a */
	void (*add)(struct tr_queue *q, void *W_y, const void *W_a, const void *W_b, int64_t n);
	/** Rows of logits become dlogits = (softmax - onehot) * scale; *loss += sum over rows of
	 * -log p (fixed order); a target < 0 is ignored. */
	void (*xent)(struct tr_queue *q, void *W_logits, double *loss, const int32_t *target,
		int64_t rows, int64_t cols, double scale);

	/** Conversions and sums over flat arrays; any pair of dtypes. acc: dst += src. */
	void (*cast)(struct tr_queue *q, void *dst, enum tr_dtype to, const void *src,
		enum tr_dtype from, int64_t n);
	void (*accumulate)(struct tr_queue *q, void *dst, enum tr_dtype to, const void *src,
		enum tr_dtype from, int64_t n);
	/** int64 fixed point, 2^-TR_FIXED_BITS units: dst += round(src); saturation is an error. */
	void (*fixed_add)(struct tr_queue *q, int64_t *dst, const void *G_src, int64_t n);
	void (*fixed_to)(struct tr_queue *q, void *G_dst, const int64_t *src, int64_t n);
	/** *sum += sum of squares of n G, order fixed; not finite stays so */
	void (*sumsq)(struct tr_queue *q, double *sum, const void *G_x, int64_t n);
	/** The same with each square rounded to fixed point (2^-TR_FIXED_BITS units of its own),
	 * so that the sum does not depend on how elements are cut among ranks. */
	void (*sumsq_fixed)(struct tr_queue *q, int64_t *sum, const void *G_x, int64_t n);
	/** p, m, v updated from grad * grad_scale; where work is not NULL also work = (W) p */
	void (*adamw)(struct tr_queue *q, const struct tr_adamw *a, void *G_p, void *G_m, void *G_v,
		const void *G_grad, double grad_scale, void *W_work, int64_t n);

	/** FLOPs of products since open: linear by gemm(), attention's own; and ns spent in each.
	 */
	void (*count)(struct tr_dev *d, struct tr_count *c);
	/** FLOPs that attn_fwd and attn_bwd count for that shape: of the tiles they compute. */
	void (*attn_flops)(const struct tr_attn *a, double *fwd, double *bwd);
	/** Every product shape that was made: calls fn for each. */
	void (*shapes)(struct tr_dev *d,
		void (*fn)(void *arg, const struct gemm_shape *s, const char *impl, uint64_t calls),
		void *arg);
};

/** The CPU; cfg.work chooses f32, bf16 or f64. */
extern const struct tr_dev_ops tr_cpu;
/** Its attn_flops: tiles above the diagonal are left out (cpu_attn.c says which). */
void cpu_attn_flops(const struct tr_attn *a, double *fwd, double *bwd);

#endif
