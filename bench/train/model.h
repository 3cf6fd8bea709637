/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models as data: the shape of a transformer, its tensors and the units in which they are sharded.
 * Pure arithmetic: no memory of parameters, no device. Everything else (kernels, sharding, FLOPs,
 * bytes, claims) reads shapes from here.
 *
 * Units: one per transformer block, 0..layers-1, and the root unit, number `layers`: embedding (and
 * learned positions), final norm, head. A tied head is the embedding itself and no tensor.
 * Weights are row-major [out][in], as torch's Linear keeps them.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/err.h"

enum model_family { MODEL_LLAMA, MODEL_GPT2 };
extern const char *const model_family_names[]; /**< "llama", "gpt2", NULL */

struct model {
	char name[48];
	enum model_family family;
	int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
	int64_t positions; /**< longest sequence; GPT-2: rows of the learned positions */
	double rope_base;  /**< Llama */
	double eps;        /**< of the norms, inside the root */
	bool tied;         /**< the head is the embedding (GPT-2) */
};

/** Presets: tiny, gpt2-124m, llama3-1b, llama3-8b, llama3-70b, llama3-405b; NULL-terminated names.
 * `tiny` is a Llama block with 2 layers that trains in milliseconds; its parameter count is no
 * multiple of 3 or 8. */
extern const char *const model_preset_names[];
/**
 * A preset by name, or a model file (INI: keys family, layers, hidden, heads, kv-heads, head-dim,
 * ffn, vocab, positions, rope-base, eps, tied) when `name` holds a '/' or ends in ".ini".
 * @return 0; -EINVAL: unknown name (the nearest is named), unknown key, missing or impossible value
 * (exit 2); -errno of the file (exit 2)
 */
int model_find(const char *name, struct model *m, struct fb_err *e) FB_MUST_CHECK;
/** A model file's text; `path` names it in messages and gives the model its name. @return as
 * model_find() */
int model_parse(const char *text, size_t len, const char *path, struct model *m,
	struct fb_err *e) FB_MUST_CHECK;
/** heads a multiple of kv_heads, every size over 0, even head_dim for RoPE, widths up to 2^24 and
 * fewer than 10^15 parameters, so that nothing made of them overflows. @return 0 or -EINVAL (exit
 * 2) */
int model_check(const struct model *m, struct fb_err *e) FB_MUST_CHECK;

/** What a tensor is. Biases and layer norms stand in GPT-2 only, gate and up in Llama only. */
enum tensor_kind {
	TENSOR_NORM1,      /**< [h] */
	TENSOR_NORM1_BIAS, /**< [h] */
	TENSOR_Q,          /**< [heads*d][h] */
	TENSOR_Q_BIAS,
	TENSOR_K, /**< [kv_heads*d][h] */
	TENSOR_K_BIAS,
	TENSOR_V, /**< [kv_heads*d][h] */
	TENSOR_V_BIAS,
	TENSOR_O, /**< [h][heads*d] */
	TENSOR_O_BIAS,
	TENSOR_NORM2,
	TENSOR_NORM2_BIAS,
	TENSOR_GATE, /**< [ffn][h], Llama */
	TENSOR_UP,   /**< [ffn][h]; GPT-2's first linear layer */
	TENSOR_UP_BIAS,
	TENSOR_DOWN, /**< [h][ffn] */
	TENSOR_DOWN_BIAS,
	TENSOR_EMBED,     /**< [vocab][h] */
	TENSOR_POSITIONS, /**< [positions][h] */
	TENSOR_NORM_F,
	TENSOR_NORM_F_BIAS,
	TENSOR_HEAD, /**< [vocab][h]; absent when tied */
	TENSOR_KIND_COUNT
};

struct model_tensor {
	enum tensor_kind kind;
	int64_t rows, cols; /**< cols 1 for vectors */
	int64_t offset;     /**< elements, in its unit */
	bool decay;         /**< weight decay applies: matrices only */
	bool zero_grad;     /**< exact gradient is zero: GPT-2's key bias */
};

#define MODEL_MAX_TENSORS 20 /* in one unit */
struct model_unit {
	int n;            /**< tensors */
	int64_t elements; /**< sum of theirs, without padding */
	struct model_tensor t[MODEL_MAX_TENSORS];
};
/** Blocks are all alike: `unit` is layers for the root, else any block. */
void model_unit(const struct model *m, int64_t unit, struct model_unit *u);

/** Start values of tensor `kind` of `unit` from a seed, elements [first, first+n) of the tensor,
 * so that every rank makes its own part and none depends on the number of ranks. Norm weights 1,
 * biases 0, others normal with deviation 0.02, o and down 0.02/sqrt(2*layers). */
void model_init(const struct model *m, int64_t unit, const struct model_tensor *t, uint64_t seed,
	int64_t first, int64_t n, float *out);

/* ---- counts ---------------------------------------------------------------------------------- */

int64_t model_params(const struct model *m);        /**< N, all of them */
int64_t model_matmul_params(const struct model *m); /**< M: weights of matrix products, the head
						       once, also when tied; no embedding lookup */

/** FLOPs of one token, forward only, by part. Source: training.md 1; attention's `full` is PaLM's
 * 4*s*a*d, `causal` the exact mean 2*(s+1)*a*d. */
struct model_flops {
	double linear;      /**< all layers' projections and MLP */
	double core_full;   /**< all layers */
	double core_causal; /**< all layers */
	double head;
};
void model_flops(const struct model *m, int64_t seq, struct model_flops *f);

/** Conventions of model FLOPs per trained token (forward and backward, 3x). */
enum mfu_convention {
	MFU_6N,     /**< 6 * all parameters */
	MFU_PALM,   /**< 6N + 12*L*a*d*s: full attention; the headline */
	MFU_CAUSAL, /**< exact products, causal attention */
	MFU_CONVENTION_COUNT
};
extern const char *const mfu_convention_names[]; /**< "6n", "palm", "causal" */
double model_flops_per_token(const struct model *m, int64_t seq, enum mfu_convention c);

#endif
