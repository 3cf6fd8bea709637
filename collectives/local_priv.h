/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of our own collectives: the local backend's and training's exchange. */
#ifndef COLL_LOCAL_PRIV_H
#define COLL_LOCAL_PRIV_H

#include <stddef.h>

#include "collectives/coll_ops.h"

/** acc[i] = acc[i] op in[i] for n elements. The 16-bit floats are computed as float and rounded
 * after each step. */
void coll_combine(enum coll_dtype t, enum coll_redop op, void *acc, const void *in, size_t n);

/**
 * out[i] = rows[0][i] + rows[1][i] + ... in that order, n elements. The 16-bit floats are summed as
 * float and rounded once. `out` may be one of the rows; otherwise they must not overlap.
 */
void coll_sum_rows(enum coll_dtype t, void *out, const void *const *rows, int count, size_t n);

#endif
