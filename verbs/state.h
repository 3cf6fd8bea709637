/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the RDMA benchmarks share: rails opened and connected, the sweep over operations, sizes and
 * rails, threads for several rails at once, counters, facts and the check of the data. The loops
 * themselves are the benchmarks' own.
 */
#ifndef VERBS_STATE_H
#define VERBS_STATE_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "verbs/conn.h"
#include "verbs/loops.h"
#include "verbs/params.h"
#include "verbs/place.h"

/** The configuration of a benchmark run: parameters and opened devices (borrowed). */
struct verbs_job {
	struct verbs_params p;
	struct verbs_node *node;
	bool hardware; /**< real NICs at both ends, and two hosts: bounds mean something */
};

struct verbs_state {
	const struct verbs_job *job;
	struct fb_run *run;
	unsigned rank; /**< 0: client */
	struct verbs_rail rail[VERBS_MAX_RAILS];
	unsigned n;
	struct verbs_placed placed;
	int thread_node[VERBS_MAX_RAILS]; /**< where a rail's thread ran last; -1: anywhere */
	uint64_t longest; /**< batch of the point so far: a queue pair beyond it has carried nothing
			   */
	atomic_int stop;
	json_t *counters[2]; /**< this end's last two snapshots */
	char what[160];
	void *own; /**< the benchmark's */
};

/* fb_point.user: which operation on which rails. */
enum verbs_op verbs_point_op(const struct fb_point *p);
/** First rail and how many: one, or all of them. */
unsigned verbs_point_rails(const struct verbs_state *s, const struct fb_point *p, unsigned *first);

/**
 * An end of a rail. A point is described by its client's end and its server's, so that both ends
 * describe it alike: the devices may have other names, drivers and limits.
 */
const struct verbs_end *verbs_state_end(
	const struct verbs_state *s, const struct verbs_rail *r, bool client);
/** Is the CPU the NIC, at either end? */
bool verbs_state_software(const struct verbs_rail *r);

/**
 * Open the rails of the job's devices and connect them with the other end; collective.
 * @param s receives it; verbs_state_close() frees. @return 0, or -errno: the same cause at both
 * ends
 */
int verbs_state_open(struct fb_run *run, const struct verbs_job *job, struct verbs_state **s,
	struct fb_err *e) FB_MUST_CHECK;
void verbs_state_close(struct verbs_state *s);

/* Callbacks of struct fb_bench that are the same for all. */
int verbs_state_probe(const void *cfg, struct fb_err *why);
int verbs_state_points(void *st, struct fb_point_list *l, struct fb_err *e);
int verbs_state_counters(void *st, json_t **out, struct fb_err *e);
json_t *verbs_state_facts(void *st, const struct fb_point *p);

/** The classes of counters into a finished result: for struct fb_bench's extend. */
void verbs_state_classes(struct verbs_state *s, json_t *result);
/** What this end's counters tell of loss during the point goes into the validity. */
void verbs_state_judge(struct verbs_state *s, struct fb_validity *v);
/** Message bytes must be the peer's pattern. @param bytes bytes to look at @return 0 or -EBADMSG */
int verbs_state_check_data(struct verbs_state *s, const struct fb_point *p, size_t bytes,
	struct fb_err *e) FB_MUST_CHECK;
/** The same for one slot of one queue pair of a rail. */
int verbs_state_check_slot(struct verbs_state *s, const struct verbs_rail *r, unsigned q,
	unsigned slot, size_t bytes, struct fb_err *e) FB_MUST_CHECK;
/** The slots of queue pair q to look at: how many from *first on, in turn. */
typedef unsigned (*verbs_slots_fn)(void *arg, unsigned q, unsigned *first);
/**
 * A sample of the messages that have come: at most a megabyte (or one message), going on with queue
 * pair *next where the last call stopped.
 * @param again clear what was looked at (host memory only): it must be written again to be right
 * once more
 * @return 0 or -EBADMSG with the first wrong byte
 */
int verbs_state_look(struct verbs_state *s, struct verbs_rail *r, unsigned *next, size_t size,
	bool again, verbs_slots_fn slots, void *arg, struct fb_err *e) FB_MUST_CHECK;
/** Of a batch of `iters` requests of a rail, dealt out to its queue pairs: how many slots of queue
 * pair q, from the first on, have surely been written? */
unsigned verbs_slots_written(
	const struct verbs_state *s, const struct verbs_rail *r, unsigned q, uint64_t iters);
/** -EBADMSG: so many immediates or fetched values were not the expected ones. */
int verbs_state_wrong_values(
	struct verbs_state *s, enum verbs_op op, uint64_t wrong, struct fb_err *e) FB_MUST_CHECK;
/**
 * What the peer's atomics have left here: the first 8 bytes of n receive areas of each rail of the
 * point against done[n]. @return 0 or -EBADMSG with both values
 */
int verbs_state_check_words(struct verbs_state *s, const struct fb_point *p, const uint64_t *done,
	unsigned n, struct fb_err *e) FB_MUST_CHECK;
/** Fill what this end sends, clear what it receives, place the thread, for the rails of a point. */
void verbs_state_prepare(struct verbs_state *s, const struct fb_point *p);

/**
 * Run fn for each rail of the point at once, one thread each, and wait for all. The first rail runs
 * on the calling thread; the others are placed on their own NIC's node.
 * @return 0 or the first cause
 */
typedef int (*verbs_rail_fn)(struct verbs_state *s, unsigned rail, struct verbs_wait *w, void *arg);
int verbs_state_each(struct verbs_state *s, const struct fb_point *p, verbs_rail_fn fn, void *arg,
	struct fb_err *e) FB_MUST_CHECK;

#endif
