// SPDX-License-Identifier: Apache-2.0
/*
 * Element-wise reductions, one loop per type and operation, so that the compiler can vectorise
 * each.
 */
#include "collectives/local_priv.h"
#include "collectives/pattern.h"

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
	case COLL_BFLOAT16: KIND16(coll_bf16_to_float, coll_float_to_bf16);
	case COLL_DTYPE_COUNT: break;
	}
}
