// SPDX-License-Identifier: Apache-2.0
/*
 * Sizes and rates of collectives by nccl-tests' rules. Pure arithmetic: no backend, no I/O.
 */
#include "collectives/formula.h"

const char *const coll_op_names[] = {
	"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", NULL};
const char *const coll_dtype_names[] = {
	"int8", "uint8", "int32", "int64", "float", "double", "half", "bfloat16", NULL};
const char *const coll_redop_names[] = {"sum", "prod", "max", "min", NULL};

bool coll_op_reduces(enum coll_op op)
{
	return op == COLL_ALL_REDUCE || op == COLL_REDUCE_SCATTER;
}

struct coll_shape coll_shape_of(
	enum coll_op op, enum coll_dtype dtype, int ranks, uint64_t requested_bytes)
{
	struct coll_shape s = {0};
	size_t elem = coll_dtype_size(dtype), n = ranks > 0 ? (size_t)ranks : 1;
	if (elem == 0)
		return s;
	size_t total = (size_t)(requested_bytes / elem);
	/* 16 bytes: the width of the GPU's widest load, so that every rank's block is aligned. */
	size_t block = total / n / (16 / elem) * (16 / elem);
	switch (op) {
	case COLL_ALL_REDUCE:
	case COLL_BROADCAST: s.count = s.send = s.recv = total; break;
	case COLL_ALL_GATHER:
		s.count = s.send = block;
		s.recv = block * n;
		break;
	case COLL_REDUCE_SCATTER:
		s.count = s.recv = block;
		s.send = block * n;
		break;
	case COLL_ALLTOALL:
		s.count = block;
		s.send = s.recv = block * n;
		break;
	case COLL_OP_COUNT: break;
	}
	s.bytes = (uint64_t)(s.send > s.recv ? s.send : s.recv) * elem;
	return s;
}

double coll_bus_factor(enum coll_op op, int ranks)
{
	double n = ranks;
	if (ranks < 2)
		return 0;
	switch (op) {
	case COLL_ALL_REDUCE: return 2 * (n - 1) / n;
	case COLL_ALL_GATHER:
	case COLL_REDUCE_SCATTER:
	case COLL_ALLTOALL: return (n - 1) / n;
	case COLL_BROADCAST: return 1;
	case COLL_OP_COUNT: break;
	}
	return 0;
}

uint64_t coll_next_size(uint64_t cur, uint64_t step, double factor)
{
	if (step > 0)
		return cur > UINT64_MAX - step ? UINT64_MAX : cur + step;
	double next = (double)cur * factor;
	if (!(next < 0x1p63))
		return UINT64_MAX;
	uint64_t v = (uint64_t)next;
	return v > cur ? v : cur + 1;
}
