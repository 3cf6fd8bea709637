// SPDX-License-Identifier: Apache-2.0
/*
 * Element-wise reductions, one loop per type and operation, so that the compiler can vectorise
 * each (module.mk asks it to).
 */
#include <string.h>

#include "collectives/local_priv.h"
#include "collectives/pattern.h"

#define TILE 1024 /* elements of a sum of many rows: its accumulator stays in the first cache */

/* bfloat16 as in pattern.c, visible to the loops below. */
static inline float widen_bf16(uint16_t b)
{
	const uint32_t u = (uint32_t)b << 16;
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint16_t narrow_bf16(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
	const uint32_t nan = (u >> 16) | 0x40u; /* stays one */
	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* T is a type: it cannot stand in parentheses. */
// NOLINTBEGIN(bugprone-macro-parentheses)
#define LOOP(T, EXPR)                          \
	do {                                   \
		T *a = acc;                    \
		const T *b = in;               \
		for (size_t i = 0; i < n; i++) \
			a[i] = (T)(EXPR);      \
	} while (0)
// NOLINTEND(bugprone-macro-parentheses)

/* Unsigned arithmetic for the wrap-around, where a signed overflow would be undefined. */
#define KIND(T, U)                                                \
	switch (op) {                                             \
	case COLL_SUM: LOOP(T, (U)a[i] + (U)b[i]); break;         \
	case COLL_PROD: LOOP(T, (U)a[i] * (U)b[i]); break;        \
	case COLL_MAX: LOOP(T, a[i] > b[i] ? a[i] : b[i]); break; \
	case COLL_MIN: LOOP(T, a[i] < b[i] ? a[i] : b[i]); break; \
	case COLL_REDOP_COUNT: break;                             \
	}                                                         \
	break

#define KIND16(TO, FROM)                                                         \
	switch (op) {                                                            \
	case COLL_SUM: LOOP(uint16_t, FROM(TO(a[i]) + TO(b[i]))); break;         \
	case COLL_PROD: LOOP(uint16_t, FROM(TO(a[i]) * TO(b[i]))); break;        \
	case COLL_MAX: LOOP(uint16_t, TO(a[i]) > TO(b[i]) ? a[i] : b[i]); break; \
	case COLL_MIN: LOOP(uint16_t, TO(a[i]) < TO(b[i]) ? a[i] : b[i]); break; \
	case COLL_REDOP_COUNT: break;                                            \
	}                                                                        \
	break

void coll_combine(enum coll_dtype t, enum coll_redop op, void *acc, const void *in, size_t n)
{
	switch (t) {
	case COLL_INT8: KIND(int8_t, unsigned);
	case COLL_UINT8: KIND(uint8_t, unsigned);
	case COLL_INT32: KIND(int32_t, uint32_t);
	case COLL_INT64: KIND(int64_t, uint64_t);
	case COLL_FLOAT: KIND(float, float);
	case COLL_DOUBLE: KIND(double, double);
	case COLL_HALF: KIND16(coll_half_to_float, coll_float_to_half);
	case COLL_BFLOAT16: KIND16(widen_bf16, narrow_bf16);
	case COLL_DTYPE_COUNT: break;
	}
}

/* ---- sums of many rows -------------------------------------------------------------------------
 */

/* bfloat16's loops, compiled for AVX2 as well, which packs 32 bits into 16 in one go; the results
 * are the same to the bit. A function for each row: GCC otherwise joins rows, and then vectorises
 * neither. */
#define BF16_LOOPS(TARGET, NAME)                                                                 \
	__attribute__((noinline))                                                                \
	TARGET static void NAME##_widen(float *restrict acc, const uint16_t *in, size_t n)       \
	{                                                                                        \
		for (size_t i = 0; i < n; i++)                                                   \
			acc[i] = widen_bf16(in[i]);                                              \
	}                                                                                        \
	__attribute__((noinline))                                                                \
	TARGET static void NAME##_add(float *restrict acc, const uint16_t *in, size_t n)         \
	{                                                                                        \
		for (size_t i = 0; i < n; i++)                                                   \
			acc[i] += widen_bf16(in[i]);                                             \
	}                                                                                        \
	__attribute__((noinline))                                                                \
	TARGET static void NAME##_narrow(uint16_t *out, const float *restrict acc, size_t n)     \
	{                                                                                        \
		for (size_t i = 0; i < n; i++)                                                   \
			out[i] = narrow_bf16(acc[i]);                                            \
	}                                                                                        \
	static void NAME(uint16_t *out, const void *const *rows, int count, size_t at, size_t n) \
	{                                                                                        \
		float acc[TILE];                                                                 \
		NAME##_widen(acc, (const uint16_t *)rows[0] + at, n);                            \
		for (int r = 1; r < count; r++)                                                  \
			NAME##_add(acc, (const uint16_t *)rows[r] + at, n);                      \
		NAME##_narrow(out + at, acc, n);                                                 \
	}

BF16_LOOPS(, sum_bf16_base)
#if defined(__x86_64__)
BF16_LOOPS(__attribute__((target("avx2"))), sum_bf16_avx2)
#endif

static void sum_bf16(uint16_t *out, const void *const *rows, int count, size_t at, size_t n)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2")) {
		sum_bf16_avx2(out, rows, count, at, n);
		return;
	}
#endif
	sum_bf16_base(out, rows, count, at, n);
}

static void sum_half(uint16_t *out, const void *const *rows, int count, size_t at, size_t n)
{
	for (size_t i = at; i < at + n; i++) {
		float sum = coll_half_to_float(((const uint16_t *)rows[0])[i]);
		for (int r = 1; r < count; r++)
			sum += coll_half_to_float(((const uint16_t *)rows[r])[i]);
		out[i] = coll_float_to_half(sum);
	}
}

/* By way of a buffer of its own: `out` may be a row that is still to be added. */
static void sum_tile(
	enum coll_dtype t, char *out, const void *const *rows, int count, size_t at, size_t n)
{
	_Alignas(64) char acc[TILE * sizeof(double)];
	const size_t size = coll_dtype_size(t), from = at * size;
	memcpy(acc, (const char *)rows[0] + from, n * size);
	for (int r = 1; r < count; r++)
		coll_combine(t, COLL_SUM, acc, (const char *)rows[r] + from, n);
	memcpy(out + from, acc, n * size);
}

void coll_sum_rows(enum coll_dtype t, void *out, const void *const *rows, int count, size_t n)
{
	for (size_t at = 0; at < n; at += TILE) {
		const size_t some = n - at < TILE ? n - at : TILE;
		if (t == COLL_BFLOAT16)
			sum_bf16(out, rows, count, at, some);
		else if (t == COLL_HALF)
			sum_half(out, rows, count, at, some);
		else
			sum_tile(t, out, rows, count, at, some);
	}
}
