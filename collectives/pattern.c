// SPDX-License-Identifier: Apache-2.0
/*
 * Send data and expected results of collectives: see pattern.h for the idea. It must not know any
 * backend.
 */
#include "collectives/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/formula.h"

#define PERIOD COLL_PATTERN_PERIOD
#define SKEW   37 /* rotates the table by this much from one period to the next */

/* ---- 16-bit floats ----------------------------------------------------------------------------
 */

static float bits_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint32_t float_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	return u;
}

float coll_bf16_to_float(uint16_t b)
{
	return bits_float((uint32_t)b << 16);
}

uint16_t coll_float_to_bf16(float f)
{
	uint32_t u = float_bits(f);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((u >> 16) | 0x40u); /* a NaN stays one */
	return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float coll_half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 0x1fu, man = h & 0x3ffu;
	if (exp == 0) { /* zero and the subnormals: man * 2^-24 */
		float f = (float)man * 0x1p-24f;
		return bits_float(float_bits(f) | sign);
	}
	if (exp == 31)
		return bits_float(sign | 0x7f800000u | (man << 13));
	return bits_float(sign | ((exp + 112u) << 23) | (man << 13));
}

uint16_t coll_float_to_half(float f)
{
	uint32_t u = float_bits(f), sign = (u >> 16) & 0x8000u, mag = u & 0x7fffffffu;
	if (mag > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (mag >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (mag < 0x38800000u) { /* below 2^-14: adding 0.5 leaves man * 2^-24 in the low bits */
		uint32_t man = float_bits(bits_float(mag) + 0.5f) - 0x3f000000u;
		return (uint16_t)(sign | man);
	}
	mag += 0xfffu + ((mag >> 13) & 1u);
	return (uint16_t)(sign | ((mag - (112u << 23)) >> 13));
}

/* ---- values -----------------------------------------------------------------------------------
 */

/* Largest n with every integer of [0, n] exact, or a smaller one that is enough. */
static int64_t exact_limit(enum coll_dtype t)
{
	switch (t) {
	case COLL_INT8: return 127;
	case COLL_UINT8: return 255;
	case COLL_HALF: return 2048;
	case COLL_BFLOAT16: return 256;
	case COLL_FLOAT: return 1 << 24;
	case COLL_INT32: return INT32_MAX;
	case COLL_INT64:
	case COLL_DOUBLE: return (int64_t)1 << 40;
	case COLL_DTYPE_COUNT: break;
	}
	return 1;
}

/* Largest k with 2^k exact. */
static int power_limit(enum coll_dtype t)
{
	switch (t) {
	case COLL_INT8: return 6;
	case COLL_UINT8: return 7;
	case COLL_HALF: return 14;
	default: return 30;
	}
}

/* splitmix64 (Steele, Lea, Flood 2014), over the three coordinates of a value. */
static uint64_t hash(uint64_t seed, int rank, size_t j)
{
	uint64_t x = seed + 0x9e3779b97f4a7c15u * ((uint64_t)rank * PERIOD + j + 1);
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Never negative: partial sums then only grow, and the last one is within the limit. */
static int64_t sum_value(const struct coll_pattern *p, int rank, size_t j, uint64_t h)
{
	int64_t limit = exact_limit(p->dtype), max = smaller(limit / p->ranks, 1 << 20);
	if (max >= 1)
		return (int64_t)(h % (uint64_t)(max + 1));
	/* More ranks than the type can count: only one in `stride` adds 1. */
	int64_t stride = (p->ranks + limit - 1) / limit;
	return rank % stride == (int64_t)j % stride;
}

static int64_t value(const struct coll_pattern *p, int rank, size_t j)
{
	uint64_t h = hash(p->seed, rank, j);
	if (coll_op_reduces(p->op) && p->redop == COLL_SUM)
		return sum_value(p, rank, j, h);
	if (coll_op_reduces(p->op) && p->redop == COLL_PROD)
		return ((size_t)rank + j) % (size_t)p->ranks < (size_t)power_limit(p->dtype) &&
				       h % 2
			       ? 2
			       : 1;
	int64_t max = smaller(exact_limit(p->dtype), 1 << 20);
	if (p->dtype == COLL_UINT8)
		return (int64_t)(h % (uint64_t)(max + 1));
	return (int64_t)(h % (uint64_t)(2 * max + 1)) - max;
}

static void encode(enum coll_dtype t, int64_t v, unsigned char *out)
{
	int8_t i8 = (int8_t)v;
	uint8_t u8 = (uint8_t)v;
	int32_t i32 = (int32_t)v;
	float f = (float)v;
	double d = (double)v;
	uint16_t half = coll_float_to_half(f), bf16 = coll_float_to_bf16(f);
	const void *const from[COLL_DTYPE_COUNT] = {&i8, &u8, &i32, &v, &f, &d, &half, &bf16};
	if ((unsigned)t < COLL_DTYPE_COUNT)
		memcpy(out, from[t], coll_dtype_size(t));
}

static void load_table(struct coll_pattern *p, int rank)
{
	size_t elem = coll_dtype_size(p->dtype);
	if (p->source == rank)
		return;
	for (size_t j = 0; j < PERIOD; j++)
		encode(p->dtype, value(p, rank, j), p->table + j * elem);
	p->source = rank;
}

static int64_t combine(enum coll_redop op, int64_t a, int64_t b)
{
	switch (op) {
	case COLL_SUM: return a + b;
	case COLL_PROD: return a * b;
	case COLL_MAX: return a > b ? a : b;
	case COLL_MIN: return a < b ? a : b;
	case COLL_REDOP_COUNT: break;
	}
	return 0;
}

int coll_pattern_init(struct coll_pattern *p, const struct coll_call *call, int ranks,
	uint64_t seed, struct fb_err *e)
{
	size_t elem = coll_dtype_size(call->dtype);
	memset(p, 0, sizeof(*p));
	if (elem == 0)
		return fb_fail_usage(e, "data type %d is unknown", (int)call->dtype);
	*p = (struct coll_pattern){.op = call->op,
		.dtype = call->dtype,
		.redop = call->redop,
		.root = call->root,
		.ranks = ranks,
		.seed = seed,
		.count = call->count,
		.source = -1};
	p->table = malloc(PERIOD * elem);
	if (coll_op_reduces(p->op))
		p->reduced = malloc(PERIOD * elem);
	if (!p->table || (coll_op_reduces(p->op) && !p->reduced)) {
		coll_pattern_free(p);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the check's tables");
	}
	for (size_t j = 0; p->reduced && j < PERIOD; j++) {
		int64_t v = value(p, 0, j);
		for (int r = 1; r < ranks; r++)
			v = combine(p->redop, v, value(p, r, j));
		encode(p->dtype, v, p->reduced + j * elem);
	}
	return 0;
}

void coll_pattern_free(struct coll_pattern *p)
{
	free(p->table);
	free(p->reduced);
	p->table = p->reduced = NULL;
}

/* Elements [first, first + n) of the endless sequence that a table makes. */
static void spread(
	const unsigned char *table, size_t elem, size_t first, size_t n, unsigned char *out)
{
	while (n > 0) {
		size_t period = first / PERIOD;
		size_t at = (first + SKEW * (period % PERIOD)) % PERIOD;
		size_t run = PERIOD - at, left = (period + 1) * PERIOD - first;
		run = run < left ? run : left;
		run = run < n ? run : n;
		memcpy(out, table + at * elem, run * elem);
		out += run * elem;
		first += run;
		n -= run;
	}
}

void coll_pattern_send(struct coll_pattern *p, int rank, size_t first, size_t n, void *out)
{
	load_table(p, rank);
	/* all_gather: as if each rank held its own block of one long buffer */
	size_t base = p->op == COLL_ALL_GATHER ? (size_t)rank * p->count : 0;
	spread(p->table, coll_dtype_size(p->dtype), base + first, n, out);
}

/* all_gather and alltoall: the receive buffer is made of blocks, one from each rank. */
static void expect_blocks(
	struct coll_pattern *p, int rank, size_t first, size_t n, unsigned char *out)
{
	size_t elem = coll_dtype_size(p->dtype);
	while (n > 0) {
		size_t from = first / p->count, within = first % p->count;
		size_t run = p->count - within < n ? p->count - within : n;
		size_t base = (p->op == COLL_ALL_GATHER ? from : (size_t)rank) * p->count;
		load_table(p, (int)from);
		spread(p->table, elem, base + within, run, out);
		out += run * elem;
		first += run;
		n -= run;
	}
}

void coll_pattern_expect(struct coll_pattern *p, int rank, size_t first, size_t n, void *out)
{
	size_t elem = coll_dtype_size(p->dtype);
	switch (p->op) {
	case COLL_ALL_REDUCE: spread(p->reduced, elem, first, n, out); break;
	case COLL_REDUCE_SCATTER:
		spread(p->reduced, elem, (size_t)rank * p->count + first, n, out);
		break;
	case COLL_BROADCAST:
		load_table(p, p->root);
		spread(p->table, elem, first, n, out);
		break;
	case COLL_ALL_GATHER:
	case COLL_ALLTOALL: expect_blocks(p, rank, first, n, out); break;
	case COLL_OP_COUNT: break;
	}
}

const char *coll_element_text(enum coll_dtype t, const void *element, char *buf, size_t len)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	double d;
	memcpy(&u8, element, 1);
	switch (t) {
	case COLL_INT8: snprintf(buf, len, "%d (0x%02x)", (int8_t)u8, u8); break;
	case COLL_UINT8: snprintf(buf, len, "%u (0x%02x)", u8, u8); break;
	case COLL_INT32:
		memcpy(&u32, element, 4);
		snprintf(buf, len, "%" PRId32 " (0x%08" PRIx32 ")", (int32_t)u32, u32);
		break;
	case COLL_INT64:
		memcpy(&u64, element, 8);
		snprintf(buf, len, "%" PRId64 " (0x%016" PRIx64 ")", (int64_t)u64, u64);
		break;
	case COLL_FLOAT:
		memcpy(&u32, element, 4);
		snprintf(buf, len, "%.9g (0x%08" PRIx32 ")", (double)bits_float(u32), u32);
		break;
	case COLL_DOUBLE:
		memcpy(&u64, element, 8);
		memcpy(&d, element, 8);
		snprintf(buf, len, "%.17g (0x%016" PRIx64 ")", d, u64);
		break;
	case COLL_HALF:
	case COLL_BFLOAT16:
		memcpy(&u16, element, 2);
		d = t == COLL_HALF ? coll_half_to_float(u16) : coll_bf16_to_float(u16);
		snprintf(buf, len, "%.5g (0x%04x)", d, u16);
		break;
	case COLL_DTYPE_COUNT: snprintf(buf, len, "?"); break;
	}
	return buf;
}
