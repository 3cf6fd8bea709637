/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a unit's tensors by kind and by name. */
#ifndef TRAIN_MODEL_RIG_H
#define TRAIN_MODEL_RIG_H

#include <stddef.h>

#include "bench/train/model.h"

static const char *const tensor_names[TENSOR_KIND_COUNT] = {
	[TENSOR_NORM1] = "norm1.weight",
	[TENSOR_NORM1_BIAS] = "norm1.bias",
	[TENSOR_Q] = "attn.q.weight",
	[TENSOR_Q_BIAS] = "attn.q.bias",
	[TENSOR_K] = "attn.k.weight",
	[TENSOR_K_BIAS] = "attn.k.bias",
	[TENSOR_V] = "attn.v.weight",
	[TENSOR_V_BIAS] = "attn.v.bias",
	[TENSOR_O] = "attn.o.weight",
	[TENSOR_O_BIAS] = "attn.o.bias",
	[TENSOR_NORM2] = "norm2.weight",
	[TENSOR_NORM2_BIAS] = "norm2.bias",
	[TENSOR_GATE] = "mlp.gate.weight",
	[TENSOR_UP] = "mlp.up.weight",
	[TENSOR_UP_BIAS] = "mlp.up.bias",
	[TENSOR_DOWN] = "mlp.down.weight",
	[TENSOR_DOWN_BIAS] = "mlp.down.bias",
	[TENSOR_EMBED] = "embed.weight",
	[TENSOR_POSITIONS] = "positions.weight",
	[TENSOR_NORM_F] = "norm_f.weight",
	[TENSOR_NORM_F_BIAS] = "norm_f.bias",
	[TENSOR_HEAD] = "head.weight",
};

/** As the golden values and messages name it. */
static inline const char *tensor_name(enum tensor_kind k)
{
	return k >= 0 && k < TENSOR_KIND_COUNT ? tensor_names[k] : "?";
}

/** The tensor of that kind, or NULL when the unit has none. */
static inline const struct model_tensor *model_unit_tensor(
	const struct model_unit *u, enum tensor_kind k)
{
	for (int i = 0; i < u->n; i++)
		if (u->t[i].kind == k)
			return &u->t[i];
	return NULL;
}

#endif
