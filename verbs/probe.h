/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe: one small message after the other on its own queue pair, each due by an open-loop
 * schedule. A sample is the time from when a probe was due to when its answer was there, so that a
 * probe that had to wait for the one before it counts its waiting too. For send and write that is
 * the round trip from due to the answer; for a read, from due to completion.
 */
#ifndef VERBS_PROBE_H
#define VERBS_PROBE_H

#include "bench/core/bench.h"
#include "verbs/conn.h"
#include "verbs/loops.h"
#include "verbs/schedule.h"

struct verbs_probe {
	struct verbs_lat l;
	verbs_lat_loop loop; /**< NULL: this end has nothing to do */
	struct verbs_schedule sched;
	uint64_t interval_ns;
	uint64_t backlog;     /**< ns behind at the end of the last call */
	uint64_t most_behind; /**< ns, since verbs_probe_init() */
	unsigned scale;       /**< the loop's samples are 1/scale of a round trip */
	bool naps;            /**< sleep between probes (software device), else spin */
	bool started;
};

/** Ready a probe over the first queue pair of a connected rail. `what` is borrowed. */
void verbs_probe_init(struct verbs_probe *p, struct verbs_rail *r, enum verbs_op op, uint64_t size,
	bool events, bool client, uint64_t interval_ns, const char *what);
/** Closed-loop messages that nobody counts; both ends. */
int verbs_probe_lead(struct verbs_probe *p, struct verbs_wait *w) FB_MUST_CHECK;
/**
 * The client's end: at most `iters` samples into the sink, none after `until` (absolute ns; 0: no
 * limit). Between two calls the schedule stands still, with its backlog. @return 0 or -errno
 */
int verbs_probe_run(struct verbs_probe *p, struct verbs_wait *w, uint64_t iters, uint64_t until,
	struct fb_sink *s) FB_MUST_CHECK;
/** The other end: answer as many. */
int verbs_probe_answer(struct verbs_probe *p, struct verbs_wait *w, uint64_t iters) FB_MUST_CHECK;

#endif
