/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting inside a timed loop: spinning costs one counter; only a wait that has lasted long looks
 * at the clock, and only one that has lasted over a millisecond asks run control whether to go on.
 * So no wait is without a deadline, and a fast one never pays for it.
 */
#ifndef VERBS_WAIT_H
#define VERBS_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "bench/core/clock.h"
#include "bench/core/err.h"

/** One thread's way to give up. */
struct verbs_wait {
	struct fb_run *run; /**< only the thread that called measure() has one: run control is not
			       for several threads */
	atomic_int *stop;   /**< set by the first thread that gives up; all others follow */
	uint64_t deadline;
	struct fb_err *e;
};

/** Empty polls between two looks at the clock. */
#define VERBS_SPINS 1024u
/** A wait longer than this asks run control. */
#define VERBS_PATIENCE_NS 1000000u

/** Should it go on? 0 or -errno with w->e filled. */
int verbs_wait_check(struct verbs_wait *w);
/** The slow path of a spin: *since is 0 at the start of each wait. @return as verbs_wait_check */
int verbs_wait_slow(struct verbs_wait *w, uint64_t *since);

#endif
