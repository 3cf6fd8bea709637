/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and rates of collectives by nccl-tests' rules, so that figures compare with the field's.
 * Source: nccl-tests, PERFORMANCE.md and the GetCollByteCount and GetBw functions of each
 * operation.
 */
#ifndef COLL_FORMULA_H
#define COLL_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/coll_ops.h"

/** The words of options and results, NULL-terminated, by enum value. */
extern const char *const coll_op_names[];
extern const char *const coll_dtype_names[];
extern const char *const coll_redop_names[];

/** Does the operation compute (all_reduce, reduce_scatter)? */
bool coll_op_reduces(enum coll_op op);

/** What a requested size becomes. */
struct coll_shape {
	size_t count;      /**< NCCL's count argument, elements */
	size_t send, recv; /**< elements of each rank's buffers */
	uint64_t bytes;    /**< the size that is reported: the larger of the two buffers, bytes */
};
/**
 * The per-rank count of all_gather, reduce_scatter and alltoall is rounded down to a multiple of 16
 * bytes, as nccl-tests does, so the effective size may be smaller than the requested one, even 0.
 */
struct coll_shape coll_shape_of(
	enum coll_op op, enum coll_dtype dtype, int ranks, uint64_t requested_bytes);

/**
 * busbw / algbw: 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and alltoall, 1
 * for broadcast. 0 with one rank: nothing crosses a bus then.
 */
double coll_bus_factor(enum coll_op op, int ranks);

/**
 * The next size of a sweep: cur + step, or cur * factor when step is 0 (at least cur + 1).
 * @return the next size, UINT64_MAX when it would overflow
 */
uint64_t coll_next_size(uint64_t cur, uint64_t step, double factor);

#endif
