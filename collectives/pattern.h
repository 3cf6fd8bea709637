/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks send and what they must receive, from a seed, without any communication.
 *
 * Every value is a small integer that each type holds exactly, chosen so that a reduction over all
 * ranks, and every partial result on the way, is exact in whatever order it is computed: the
 * comparison is bit for bit. Element i of rank s is T_s[(i + 37*(i / P)) mod P] with P = 4093, a
 * table per rank: a shifted, swapped or repeated block differs, the whole repeats after 16.7
 * million elements only, and a check costs little more than a memcmp.
 */
#ifndef COLL_PATTERN_H
#define COLL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "collectives/coll_ops.h"

#define COLL_PATTERN_PERIOD 4093 /* prime: no power-of-two block is a multiple of it */

struct coll_pattern {
	enum coll_op op;
	enum coll_dtype dtype;
	enum coll_redop redop;
	int ranks, root;
	uint64_t seed;
	size_t count;         /**< NCCL's count of the point */
	int source;           /**< whose table `table` holds; -1: none */
	unsigned char *table; /**< COLL_PATTERN_PERIOD elements */
	unsigned char
		*reduced; /**< the reduction of all ranks' tables; NULL for copying operations */
};

/** Tables for one operation; costs ranks * 4093 hashes for a reduction. @return 0, -ENOMEM, -EINVAL
 * (unknown type) */
int coll_pattern_init(struct coll_pattern *p, const struct coll_call *call, int ranks,
	uint64_t seed, struct fb_err *e) FB_MUST_CHECK;
void coll_pattern_free(struct coll_pattern *p);
/** Elements [first, first + n) of rank's send buffer. */
void coll_pattern_send(struct coll_pattern *p, int rank, size_t first, size_t n, void *out);
/** Elements [first, first + n) that rank's receive buffer must hold. */
void coll_pattern_expect(struct coll_pattern *p, int rank, size_t first, size_t n, void *out);

/** An element as people and debuggers read it: "7 (0x40e00000)". @return buf */
const char *coll_element_text(enum coll_dtype t, const void *element, char *buf, size_t len);

/* Conversions of the two 16-bit types; to them: round to nearest, ties to even. */
float coll_half_to_float(uint16_t h);
uint16_t coll_float_to_half(float f);
float coll_bf16_to_float(uint16_t b);
uint16_t coll_float_to_bf16(float f);

#endif
