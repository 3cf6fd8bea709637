// SPDX-License-Identifier: Apache-2.0
/* Sizes and bus factors against values worked out by hand and nccl-tests' printed sizes. */
#include "bench/core/test.h"
#include "collectives/formula.h"

static void rounds_per_rank_counts_down(void **state)
{
	/* 100 floats over 3 ranks: 33 per rank, down to 32 (128 bytes, 8 blocks of 16). */
	struct coll_shape s = coll_shape_of(COLL_ALL_GATHER, COLL_FLOAT, 3, 400);
	assert_int_equal(s.count, 32);
	assert_int_equal(s.send, 32);
	assert_int_equal(s.recv, 96);
	assert_int_equal(s.bytes, 384);
	s = coll_shape_of(COLL_REDUCE_SCATTER, COLL_DOUBLE, 2, 100);
	assert_int_equal(s.count, 6);
	assert_int_equal(s.send, 12);
	assert_int_equal(s.recv, 6);
	assert_int_equal(s.bytes, 96);
	s = coll_shape_of(COLL_ALLTOALL, COLL_INT8, 5, 4096);
	assert_int_equal(s.count, 816);
	assert_int_equal(s.bytes, 4080);
	/* What is left of 8 bytes over 2 ranks is nothing. */
	s = coll_shape_of(COLL_ALLTOALL, COLL_FLOAT, 2, 8);
	assert_int_equal(s.bytes, 0);
}

static void keeps_whole_counts(void **state)
{
	struct coll_shape s = coll_shape_of(COLL_ALL_REDUCE, COLL_FLOAT, 3, 10);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.bytes, 8);
	s = coll_shape_of(COLL_BROADCAST, COLL_BFLOAT16, 7, 4u << 20);
	assert_int_equal(s.count, 2u << 20);
	assert_int_equal(s.bytes, 4u << 20);
}

static void bus_factors(void **state)
{
	assert_true(coll_bus_factor(COLL_ALL_REDUCE, 8) == 1.75);
	assert_true(coll_bus_factor(COLL_ALL_REDUCE, 2) == 1.0);
	assert_true(coll_bus_factor(COLL_ALL_GATHER, 4) == 0.75);
	assert_true(coll_bus_factor(COLL_REDUCE_SCATTER, 2) == 0.5);
	assert_true(coll_bus_factor(COLL_ALLTOALL, 8) == 0.875);
	assert_true(coll_bus_factor(COLL_BROADCAST, 8) == 1.0);
	for (int op = 0; op < COLL_OP_COUNT; op++)
		assert_true(coll_bus_factor((enum coll_op)op, 1) == 0.0);
}

static void sweeps_end(void **state)
{
	assert_int_equal(coll_next_size(8, 0, 2), 16);
	assert_int_equal(coll_next_size(8, 24, 2), 32);
	assert_int_equal(coll_next_size(1, 0, 1.2), 2); /* a sweep always moves on */
	assert_true(coll_next_size(UINT64_MAX - 1, 8, 2) == UINT64_MAX);
	assert_true(coll_next_size((uint64_t)1 << 62, 0, 4) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_per_rank_counts_down),
		cmocka_unit_test(keeps_whole_counts),
		cmocka_unit_test(bus_factors),
		cmocka_unit_test(sweeps_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
