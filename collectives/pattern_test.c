// SPDX-License-Identifier: Apache-2.0
/*
 * The patterns: every reduction is exact whatever its order, what is expected follows from what is
 * sent, and misplaced blocks differ. The 16-bit floats against values worked out by hand and
 * against themselves over all 65536 of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/test.h"
#include "collectives/formula.h"
#include "collectives/local_priv.h"
#include "collectives/pattern.h"

#define COUNT 9000 /* over two periods */

static struct coll_call call_of(int op, int dtype, int redop, int root)
{
	return (struct coll_call){.op = (enum coll_op)op,
		.dtype = (enum coll_dtype)dtype,
		.redop = (enum coll_redop)redop,
		.root = root,
		.count = COUNT};
}

/* Combine all ranks' send data upwards, then downwards; both must be the expected bytes. */
static void check_reduction(int dtype, int redop, int ranks)
{
	size_t elem = coll_dtype_size((enum coll_dtype)dtype);
	struct coll_call call = call_of(COLL_ALL_REDUCE, dtype, redop, 0);
	struct coll_pattern p;
	struct fb_err e = {0};
	unsigned char *up = malloc(COUNT * elem), *down = malloc(COUNT * elem);
	unsigned char *in = malloc(COUNT * elem), *want = malloc(COUNT * elem);
	assert_true(up && down && in && want);
	assert_int_equal(coll_pattern_init(&p, &call, ranks, 7, &e), 0);
	coll_pattern_send(&p, 0, 0, COUNT, up);
	coll_pattern_send(&p, ranks - 1, 0, COUNT, down);
	for (int r = 1; r < ranks; r++) {
		coll_pattern_send(&p, r, 0, COUNT, in);
		coll_combine(call.dtype, call.redop, up, in, COUNT);
		coll_pattern_send(&p, ranks - 1 - r, 0, COUNT, in);
		coll_combine(call.dtype, call.redop, down, in, COUNT);
	}
	coll_pattern_expect(&p, 0, 0, COUNT, want);
	assert_memory_equal(up, want, COUNT * elem);
	assert_memory_equal(down, want, COUNT * elem);
	coll_pattern_free(&p);
	free(up);
	free(down);
	free(in);
	free(want);
}

static void reductions_are_exact_in_any_order(void **state)
{
	static const int ranks[] = {1, 2, 3, 8, 64, 300};
	for (int t = 0; t < COLL_DTYPE_COUNT; t++)
		for (int op = 0; op < COLL_REDOP_COUNT; op++)
			for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
				check_reduction(t, op, ranks[i]);
}

/* A piece from the middle is the same as that piece of the whole. */
static void pieces_agree_with_the_whole(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++) {
		struct coll_call call = call_of(op, COLL_INT32, COLL_SUM, 1);
		struct coll_pattern p;
		struct fb_err e = {0};
		call.count = 1500;
		size_t n = op == COLL_ALL_GATHER || op == COLL_ALLTOALL ? 4500 : 1500;
		int32_t whole[4500], piece[4500];
		assert_int_equal(coll_pattern_init(&p, &call, 3, 9, &e), 0);
		coll_pattern_expect(&p, 2, 0, n, whole);
		coll_pattern_expect(&p, 2, 1234, n - 1234, piece);
		assert_memory_equal(whole + 1234, piece, (n - 1234) * 4);
		coll_pattern_free(&p);
	}
}

static void blocks_come_from_their_senders(void **state)
{
	struct coll_call call = call_of(COLL_ALLTOALL, COLL_INT32, COLL_SUM, 0);
	struct coll_pattern p;
	struct fb_err e = {0};
	int32_t sent[64], got[64];
	call.count = 16;
	assert_int_equal(coll_pattern_init(&p, &call, 4, 1, &e), 0);
	for (int to = 0; to < 4; to++) {
		coll_pattern_expect(&p, to, 0, 64, got);
		for (int from = 0; from < 4; from++) {
			coll_pattern_send(&p, from, 0, 64, sent);
			assert_memory_equal(got + from * 16, sent + to * 16, 64);
			/* and nowhere else is the same block */
			assert_memory_not_equal(got + from * 16, sent + (to + 1) % 4 * 16, 64);
		}
	}
	coll_pattern_free(&p);
}

static void shifted_data_differ(void **state)
{
	struct coll_call call = call_of(COLL_BROADCAST, COLL_FLOAT, COLL_SUM, 0);
	struct coll_pattern p;
	struct fb_err e = {0};
	float a[256], b[256];
	assert_int_equal(coll_pattern_init(&p, &call, 2, 3, &e), 0);
	coll_pattern_expect(&p, 1, 0, 256, a);
	static const size_t shifts[] = {1, 2, 4, 1024, 4093, 8192, 65536, 1 << 20};
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		coll_pattern_expect(&p, 1, shifts[i], 256, b);
		assert_memory_not_equal(a, b, sizeof(a));
	}
	coll_pattern_free(&p);
}

static void half_conversions(void **state)
{
	static const struct {
		uint16_t h;
		float f;
	} known[] = {{0x0000, 0.0f}, {0x3c00, 1.0f}, {0xc000, -2.0f}, {0x7bff, 65504.0f},
		{0x0400, 0x1p-14f}, {0x0001, 0x1p-24f}, {0x3555, 0.333251953125f}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(coll_half_to_float(known[i].h) == known[i].f);
		assert_int_equal(coll_float_to_half(known[i].f), known[i].h);
	}
	assert_int_equal(coll_float_to_half(2049.0f), 0x6800); /* tie to even: 2048 */
	assert_int_equal(coll_float_to_half(2051.0f), 0x6802); /* tie to even: 2052 */
	assert_int_equal(coll_float_to_half(65519.0f), 0x7bff);
	assert_int_equal(coll_float_to_half(65520.0f), 0x7c00); /* rounds to infinity */
	assert_true(isnan(coll_half_to_float(coll_float_to_half(NAN))));
	for (unsigned h = 0; h < 0x10000; h++)
		if ((h & 0x7c00) != 0x7c00 || (h & 0x3ff) == 0)
			assert_int_equal(coll_float_to_half(coll_half_to_float((uint16_t)h)), h);
}

static void bf16_conversions(void **state)
{
	assert_int_equal(coll_float_to_bf16(1.0f), 0x3f80);
	assert_int_equal(coll_float_to_bf16(257.0f), 0x4380); /* tie to even: 256 */
	assert_int_equal(coll_float_to_bf16(259.0f), 0x4382); /* tie to even: 260 */
	assert_true(coll_bf16_to_float(0xc040) == -3.0f);
	assert_true(isnan(coll_bf16_to_float(coll_float_to_bf16(NAN))));
	for (unsigned b = 0; b < 0x10000; b++)
		if ((b & 0x7f80) != 0x7f80 || (b & 0x7f) == 0)
			assert_int_equal(coll_float_to_bf16(coll_bf16_to_float((uint16_t)b)), b);
}

static void elements_are_readable(void **state)
{
	char buf[64];
	float f = 7;
	int8_t i = -3;
	uint16_t h = 0x4200;
	assert_string_equal(coll_element_text(COLL_FLOAT, &f, buf, sizeof(buf)), "7 (0x40e00000)");
	assert_string_equal(coll_element_text(COLL_INT8, &i, buf, sizeof(buf)), "-3 (0xfd)");
	assert_string_equal(coll_element_text(COLL_HALF, &h, buf, sizeof(buf)), "3 (0x4200)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions_are_exact_in_any_order),
		cmocka_unit_test(pieces_agree_with_the_whole),
		cmocka_unit_test(blocks_come_from_their_senders),
		cmocka_unit_test(shifted_data_differ),
		cmocka_unit_test(half_conversions),
		cmocka_unit_test(bf16_conversions),
		cmocka_unit_test(elements_are_readable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
