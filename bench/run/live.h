/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `run` says while it works: on a terminal one line that is kept true (which part and which of
 * its points, how long it has run, what is left, the last value), elsewhere one plain line as each
 * point ends; on both one plain line as each part ends. All of it on stderr. Text that came from
 * children is escaped: no byte of it steers the terminal.
 */
#ifndef FB_RUN_LIVE_H
#define FB_RUN_LIVE_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/tell.h"

struct run;
struct run_part;

/** What is left of a run, as far as plan and finished parts tell. */
struct live_left {
	double seconds;
	bool bounded; /**< some of it is known by a deadline alone: no more than this, likely less
		       */
};
/**
 * Over the parts that have not ended: a part takes what the job's finished launches took on
 * average, else the plan's `time`, else at most its deadline.
 */
void live_left(const struct run *r, struct live_left *left);

/** "busbw 3.21 GB/s at 4 MiB" of a result; "" for one without a value. @return buf */
const char *live_value(const json_t *result, char *buf, size_t len);

/** "0:07", "12:34", "3:01:07". @return buf */
const char *live_clock(double seconds, char *buf, size_t len);

struct live_state {
	size_t part, parts;     /**< from 1; of how many */
	char name[64];          /**< job and launch, or what the lab does */
	unsigned point, points; /**< of this part, as far as it tells; 0: not told */
	double gone;            /**< seconds since the run began */
	double part_gone;       /**< seconds since this part began */
	double expected;        /**< seconds that this part is thought to take */
	double deadline;        /**< of this part, in seconds, when nothing better was known of it
				   before it began; 0: something was */
	struct live_left left;  /**< when this part began, it included */
	bool others_bounded;    /**< left.bounded without this part */
	char last_job[32];      /**< whose value the last one is */
	char last[96];          /**< the last value; "": none */
};
/** "[3/14] read, launch 1, point 2/7  0:42 gone, about 1:30 left  last: read latency 1.63 us at
 * 64 B". In fewer `columns` (0: there is room) it leaves out first the time gone, then whose value
 * it is; then it is cut. @return buf */
const char *live_line(const struct live_state *s, unsigned columns, char *buf, size_t len);
/** A point has ended: with so many of them, what is left of a part of which only its deadline was
 * known. */
void live_refine(struct live_state *s);

/** The plain line of a part that has ended, without its line end. `value` may be "". @return buf */
const char *live_part_line(const struct run *r, const struct run_part *p, size_t i,
	const char *value, char *buf, size_t len);

/** The plain line of a point that has ended, without its line end. @return buf */
const char *live_point_line(const struct run *r, const struct run_part *p, size_t i,
	const struct fb_told *t, char *buf, size_t len);

/** The line on the terminal, rewritten twice a second by a thread of its own. */
struct live {
	bool quiet;  /**< says nothing at all */
	bool thread; /**< there is a terminal, and somebody to write to it */
	bool stop, shown;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t began, part_began; /**< fb_clock_ns() */
	const struct run *run;
	size_t part; /**< under way, from 0 */
	struct live_state state;
};
void live_start(struct live *l, const struct run *r, bool quiet);
/** Part i begins; `what` NULL: its job and launch. expected: seconds. */
void live_begin(struct live *l, const struct run *r, size_t i, const char *what);
/** The part under way tells of a point. */
void live_point(struct live *l, const struct fb_told *t);
/** Part i has ended: its plain line, with the value of its last result (NULL: none). */
void live_end(struct live *l, const struct run *r, size_t i, const json_t *last);
void live_stop(struct live *l);

#endif
