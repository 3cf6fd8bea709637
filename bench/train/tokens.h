/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sequences come from: a seed, or a file of tokens. A sequence is known by the number of its
 * batch and its place in the global batch alone, so that it is the same on any number of ranks.
 */
#ifndef TRAIN_TOKENS_H
#define TRAIN_TOKENS_H

#include <stdint.h>

#include "bench/core/err.h"

struct tokens_config {
	uint64_t seed;
	uint64_t batches; /**< distinct batches, repeated in turn */
	const char
		*file; /**< little-endian uint16 where vocab <= 65536, else uint32; NULL: synthetic
			*/
	int64_t vocab, seq;
	int64_t global_seqs; /**< of one batch */
};
struct tokens;

/** @return 0; -errno of the file, -EINVAL: shorter than one sequence (exit 2) */
int tokens_open(const struct tokens_config *c, struct tokens **t, struct fb_err *e) FB_MUST_CHECK;
void tokens_close(struct tokens *t);
/**
 * The inputs and targets (the next token) of sequence `index` of global batch `step`.
 * Synthetic: a walk that mostly follows a rule, so that a model has something to learn.
 * @return 0; -EINVAL: a token of the file is not below vocab, with its offset (exit 2)
 */
int tokens_read(struct tokens *t, uint64_t step, int64_t index, int32_t *input, int32_t *target,
	struct fb_err *e) FB_MUST_CHECK;

#endif
