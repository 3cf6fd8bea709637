/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU device's files share: the kernels' table, compiled once per instruction set and
 * work type, and the device itself. Kernels know no device, poll nothing and never fail; cpu.c cuts
 * long arrays into pieces, keeps the error and lets messages move between the pieces.
 *
 * Every kernel gives the same bits with every instruction set: sums run in CPU_LANES lanes, folded
 * in a fixed order, and nothing is contracted.
 */
#ifndef TRAIN_CPU_PRIV_H
#define TRAIN_CPU_PRIV_H

#include "bench/train/device.h"

enum { CPU_LANES = 32, CPU_TILE = 64, CPU_ROWS = 4, CPU_COLS = 16 };

/** Of one work type W with its G. Untyped pointers are W unless they are marked G. */
struct cpu_kernels {
	/* rows [first, first + n) of x, pos by the row's number */
	void (*embed_fwd)(void *x, const int32_t *token, const void *table, const void *pos,
		int64_t first, int64_t n, int64_t seq, int64_t cols);
	void (*embed_bwd)(void *G_dtable, void *G_dpos, const int32_t *token, const void *dx,
		int64_t first, int64_t n, int64_t seq, int64_t cols);
	void (*norm_fwd)(void *y, void *G_mean, void *G_rstd, const void *x, const void *w,
		const void *b, int64_t rows, int64_t cols, double eps);
	void (*norm_bwd)(void *dx, void *G_dw, void *G_db, const void *dy, const void *x,
		const void *w, const void *G_mean, const void *G_rstd, int64_t rows, int64_t cols);
	/* tokens [first, first + n) of x; cosines and sines [seq][d/2] */
	void (*rope)(void *x, const void *G_cos, const void *G_sin, int64_t first, int64_t n,
		int64_t seq, int64_t heads, int64_t d, int dir);
	void (*swiglu_fwd)(void *h, const void *g, const void *u, int64_t n);
	void (*swiglu_bwd)(
		void *dg, void *du, const void *dh, const void *g, const void *u, int64_t n);
	void (*gelu_fwd)(void *y, const void *x, int64_t n);
	void (*gelu_bwd)(void *dx, const void *dy, const void *x, int64_t n);
	void (*bias_fwd)(void *y, const void *b, int64_t rows, int64_t cols);
	void (*bias_bwd)(void *G_db, const void *dy, int64_t rows, int64_t cols);
	void (*add)(void *y, const void *a, const void *b, int64_t n);
	void (*xent)(void *logits, double *loss, const int32_t *target, int64_t rows, int64_t cols,
		double scale);
	/* attention, a tile of at most CPU_TILE queries: see cpu_attn.c */
	void (*attn_turn)(void *to, const void *from, int64_t rows, int64_t d);
	void (*attn_softmax)(void *P, void *G_s, void *G_max, void *G_sum, void *G_fix,
		int64_t keys, int64_t past, double scale);
	void (*attn_rescale)(void *G_o, const void *G_fix, int64_t rows, int64_t d);
	void (*attn_finish)(void *o, int64_t ldo, const void *G_o, const void *G_max,
		const void *G_sum, void *G_lse, int64_t rows, int64_t d);
	void (*attn_dot)(
		void *G_dot, const void *a, const void *b, int64_t ld, int64_t rows, int64_t d);
	void (*attn_grad)(void *P, void *dS, void *G_s, const void *G_dp, const void *G_lse,
		const void *G_dot, int64_t keys, int64_t past, double scale);
	void (*attn_store)(void *x, int64_t ldx, const void *G_x, int64_t rows, int64_t d);
	void (*adamw)(const struct tr_adamw *a, void *G_p, void *G_m, void *G_v, const void *G_grad,
		double grad_scale, void *work, int64_t n);
	/* of G alone; fixed point: false when a value or a sum does not fit */
	void (*sumsq)(double *sum, const void *G_x, int64_t n);
	bool (*sumsq_fixed)(int64_t *sum, const void *G_x, int64_t n);
	bool (*fixed_add)(int64_t *dst, const void *G_src, int64_t n);
	void (*fixed_to)(void *G_dst, const int64_t *src, int64_t n);
};

/** Of one instruction set. */
struct cpu_isa {
	const char *name;                     /**< "base", "avx2", "avx512" */
	const struct cpu_kernels *kernels[3]; /**< by TR_F32, TR_BF16, TR_F64 */
	/** By to, from of those three types. */
	void (*cast[3][3])(void *dst, const void *src, int64_t n);
	void (*accumulate[3][3])(void *dst, const void *src, int64_t n);
	/** Of the plain products: c [CPU_ROWS][CPU_COLS] = sums over k in order, of up to CPU_ROWS
	 * rows of A, whose element (r, i) is a[r * row + i * step], and b [k][CPU_COLS]. */
	void (*block_f)(int64_t k, const float *a, int64_t row, int64_t step, int64_t rows,
		const float *b, float *c);
	void (*block_d)(int64_t k, const double *a, int64_t row, int64_t step, int64_t rows,
		const double *b, double *c);
};
extern const struct cpu_isa cpu_isa_base;
#if defined(__x86_64__)
extern const struct cpu_isa cpu_isa_avx2, cpu_isa_avx512;
#endif

/** The best this processor has, or the one FABRICBENCH_ISA names. @return NULL with the cause:
 * unknown name, or not here (exit 2) */
const struct cpu_isa *cpu_isa_find(struct fb_err *e);

struct cpu_plan {
	struct gemm_shape s;
	const struct gemm_ops *ops;
	struct gemm_plan *plan;
	uint64_t calls;
};
struct cpu_rope { /* one table of angles */
	int64_t seq, d;
	double base;
	void *G_cos, *G_sin;
};
struct tr_dev {
	struct tr_dev_cfg cfg;
	const struct cpu_isa *isa;
	const struct cpu_kernels *k;
	size_t w, g; /**< bytes of W and G */
	struct fb_err err;
	struct tr_count count;
	uint64_t polled;        /**< when poll was last called */
	struct cpu_plan *plans; /**< open addressing; ops NULL: free */
	size_t plan_cap, plan_count;
	struct cpu_rope rope;
	void *scratch; /**< attention's */
	size_t scratch_bytes;
	void *affinity; /**< what the thread had, to be restored; NULL: not pinned */
};

/** One product: plan from the cache, run, counted into *flops and *ns. */
void cpu_product(struct tr_dev *d, const struct gemm_shape *s, const void *a, const void *b,
	void *c, double *flops, uint64_t *ns);
/** Room for attention; NULL with the device's error set. Kept; its content is not. */
void *cpu_scratch(struct tr_dev *d, size_t bytes);

void cpu_attn_fwd(struct tr_queue *q, const struct tr_attn *a, void *W_o, void *G_lse,
	const void *W_q, const void *W_k, const void *W_v);
void cpu_attn_bwd(struct tr_queue *q, const struct tr_attn *a, void *W_dq, void *W_dk, void *W_dv,
	const void *W_do, const void *W_q, const void *W_k, const void *W_v, const void *W_o,
	const void *G_lse);

#endif
