/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `run` says while it works: on a terminal one line that is kept true (which part of how many,
 * how long it has run, what is left, the last value); everywhere one plain line as each part ends.
 * All of it on stderr.
 */
#ifndef FB_RUN_LIVE_H
#define FB_RUN_LIVE_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	size_t part, parts;    /**< from 1; of how many */
	char name[64];         /**< job and launch, or what the lab does */
	double gone;           /**< seconds since the run began */
	double part_gone;      /**< seconds since this part began */
	double expected;       /**< seconds that this part is thought to take */
	struct live_left left; /**< when this part began, it included */
	char last[96];         /**< job and value of the last part; "": none */
};
/** "[3/14] read, launch 1  0:42 gone, about 1:30 left  last: all-reduce busbw 3.21 GB/s", cut to
 * `columns` (0: never). @return buf */
const char *live_line(const struct live_state *s, unsigned columns, char *buf, size_t len);

/** The plain line of a part that has ended, without its line end. `value` may be "". @return buf */
const char *live_part_line(const struct run *r, const struct run_part *p, size_t i,
	const char *value, char *buf, size_t len);

/** The line on the terminal, rewritten twice a second by a thread of its own. */
struct live {
	bool quiet;  /**< says nothing at all */
	bool thread; /**< there is a terminal, and somebody to write to it */
	bool stop, shown;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t began, part_began; /**< fb_clock_ns() */
	struct live_state state;
};
void live_start(struct live *l, const struct run *r, bool quiet);
/** Part i begins; `what` NULL: its job and launch. expected: seconds. */
void live_begin(struct live *l, const struct run *r, size_t i, const char *what);
/** Part i has ended: its plain line, with the value of its last result (NULL: none). */
void live_end(struct live *l, const struct run *r, size_t i, const json_t *last);
void live_stop(struct live *l);

#endif
