/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of two sides, in turn and in random order: what makes a drift of the host fall on both.
 * A side is a plan, another build of this program, or a command of this program.
 */
#ifndef REPORTS_COMPARE_RUN_H
#define REPORTS_COMPARE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "reports/compare_priv.h"

struct cmp_run {
	const char *side[2]; /**< base, candidate: a plan, a program, or "COMMAND --option ..." */
	const char *const *words; /**< of a program: its command and options, NULL-terminated */
	uint64_t launches;        /**< a side */
	uint64_t timeout;         /**< of one launch, ns */
	uint64_t seed;            /**< of the order, and of the launches */
	const char *dir;          /**< where the documents go; it exists */
	bool quiet;
};

/**
 * Run `launches` more of each side, block after block of one each in random order, and add their
 * documents. `done` counts the launches a side has already.
 * @return 0; the error of a launch that did not end with status 0 or left no document: which, its
 * status and its last words (exit 3; 4 when it found wrong data); -EINTR
 */
int cmp_run_launches(
	const struct cmp_run *r, uint64_t done, struct cmp *c, struct fb_err *e) FB_MUST_CHECK;

/** A folder for the documents: `keep`, made if needed and refused when not empty, or a new one
 * below TMPDIR. @return 0 or -errno (exit 2) */
int cmp_run_dir(const char *keep, char *dir, size_t len, struct fb_err *e) FB_MUST_CHECK;
/** Remove the folder that cmp_run_dir() made, with what lies in it. */
void cmp_run_remove(const char *dir);

#endif
