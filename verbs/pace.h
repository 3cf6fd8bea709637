/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency at a slow pace: iterations begin an interval apart. The waiting lies between two calls of
 * the loop, which reads the clock right before it posts, so that it can be in no sample.
 */
#ifndef VERBS_PACE_H
#define VERBS_PACE_H

#include "verbs/loops.h"

typedef int (*verbs_lat_pace)(struct verbs_lat *l, verbs_lat_loop loop, uint64_t interval_ns,
	uint64_t iters, struct fb_sink *s);

/** Without a pace: the loop itself. */
int verbs_lat_at_once(struct verbs_lat *l, verbs_lat_loop loop, uint64_t interval_ns,
	uint64_t iters, struct fb_sink *s) FB_MUST_CHECK;
/**
 * `iters` iterations of `loop`, each begun `interval_ns` after the one before it began, or at once
 * when that lasted longer. Waits of over 2 ms sleep; the last millisecond is spent awake, so that
 * no sample pays for the wake-up.
 * @return as the loop; a signal, a lost peer or the deadline ends a wait
 */
int verbs_lat_paced(struct verbs_lat *l, verbs_lat_loop loop, uint64_t interval_ns, uint64_t iters,
	struct fb_sink *s) FB_MUST_CHECK;

#endif
