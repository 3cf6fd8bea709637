/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the local backend. */
#ifndef COLL_LOCAL_PRIV_H
#define COLL_LOCAL_PRIV_H

#include <stddef.h>

#include "collectives/coll_ops.h"

/** acc[i] = acc[i] op in[i] for n elements. The 16-bit floats are computed as float and rounded
 * after each step. */
void coll_combine(enum coll_dtype t, enum coll_redop op, void *acc, const void *in, size_t n);

#endif
