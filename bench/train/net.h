/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transformer's forward and backward passes, unit by unit, over a device. It knows the model
 * and the device, and nothing of ranks, shards or schedules: parameters of a unit come as one flat
 * array of W (model_unit's offsets), gradients go, added, into one flat array of G.
 *
 * Loss: sum over tokens of -log p; gradients are those of loss * scale (scale is 1 / all tokens of
 * the global batch, so that the sum over micro-batches and ranks is the mean's gradient).
 */
#ifndef TRAIN_NET_H
#define TRAIN_NET_H

#include "bench/train/device.h"
#include "bench/train/model.h"

/** What is kept of a block's forward pass. Selective keeps all but attention's output, and computes
 * the core again in backward; full keeps the input alone. */
enum tr_recompute { TR_RECOMPUTE_NONE, TR_RECOMPUTE_SELECTIVE, TR_RECOMPUTE_FULL };
extern const char *const tr_recompute_names[]; /**< "none", "selective", "full", NULL */

struct net {
	const struct model *m;
	const struct tr_dev_ops *ops;
	struct tr_queue *q;
	enum tr_dtype work;
	int64_t seqs, seq; /**< of a micro-batch */
	enum tr_recompute recompute;
	int64_t head_rows; /**< tokens that go through the head at a time; 0: 512 */
	bool fresh;        /**< backward: gradients begin here, whatever lies there */
	void *priv;        /* scratch, allocated once by net_open */
};

/** Scratch for the shapes given. m, ops and q must outlive it. @return 0, -ENOMEM, -EINVAL: no
 * tokens, or seq over the model's positions (exit 2) */
int net_open(struct net *n, struct fb_err *e) FB_MUST_CHECK;
void net_close(struct net *n);

/** The three closed forms of bytes read m, work, seqs, seq, recompute and head_rows alone: they
 * need no net_open(). Of the scratch; of one block's `saved` (its input not counted; net_priv.h
 * tells what is in it; 0 with full recomputation); of an activation [tokens][hidden] of W. */
size_t net_scratch_bytes(const struct net *n);
size_t net_saved_bytes(const struct net *n);
size_t net_x_bytes(const struct net *n);

/** x = embedding of tokens. */
void net_embed_fwd(struct net *n, const void *W_root, const int32_t *tokens, void *W_x);
/** y = block(x); `saved` as net_saved_bytes, 64-byte aligned; y and x are different buffers. */
void net_block_fwd(struct net *n, const void *W_params, const void *W_x, void *W_y, void *saved);
/** Full recomputation: fill a whole (TR_RECOMPUTE_NONE) `saved` in the net's own scratch from x;
 * net_block_bwd() with the same x then uses it. A no-op unless recompute is full. */
void net_block_again(struct net *n, const void *W_params, const void *W_x);
/** dx: in, the gradient of y; out, that of x. grads +=, or with `fresh` =, here and below */
void net_block_bwd(struct net *n, const void *W_params, const void *W_x, const void *saved,
	void *W_dx, void *G_grads);
/** Final norm, head, loss and their backward in one pass over chunks of tokens, so that no
 * [tokens][vocab] is kept. *loss += the sum over tokens; a target < 0 adds none. dx is written.
 * grads NULL: loss only, and dx may be NULL. */
void net_head(struct net *n, const void *W_root, const void *W_x, const int32_t *targets,
	double scale, double *loss, void *W_dx, void *G_root_grads);
void net_embed_bwd(struct net *n, const int32_t *tokens, const void *W_dx, void *G_root_grads);

/** FLOPs of products of one forward+backward over the micro-batch as this net computes them, in
 * closed form (attention by the tiles that the device computes): equals the device's count. */
void net_flops(const struct net *n, double *linear, double *attn);

#endif
