/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizer state outside the device: a file that a thread of its own reads and writes while the
 * rank computes. One transfer at a time, in the order started.
 */
#ifndef TRAIN_STORE_H
#define TRAIN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct store;

/**
 * A file of `bytes` in `dir`, without a name, so that nothing is left behind however this ends.
 * Its blocks are reserved here: a disk that is too small is found before the first step.
 * @return 0; -ENOSPC, -errno with folder and size (exit 3)
 */
int store_open(const char *dir, size_t bytes, struct store **s, struct fb_err *e) FB_MUST_CHECK;
/** Waits for the transfer under way. */
void store_close(struct store *s);
/** --inject: each transfer lasts delay_ns and `slow` times its own length longer. */
void store_slow(struct store *s, uint64_t delay_ns, double slow);
/** Begin; the one before must be over (store_test). */
void store_start(struct store *s, bool write, void *buf, size_t bytes, size_t offset);
/** @return 0 and *done; -EIO, -ENOSPC with the cause (exit 3) */
int store_test(struct store *s, bool *done, struct fb_err *e) FB_MUST_CHECK;

#endif
