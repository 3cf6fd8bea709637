/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run over pairs: who takes part (fleet), what was measured (log), and the loop that measures the
 * schedule, judges, confirms and judges again. Who measures is behind one call: real ranks
 * (pairs_ranks.c) or a simulated fleet (pairs_sim.c). Knows no device and no document.
 */
#ifndef VERBS_PAIRS_RUN_H
#define VERBS_PAIRS_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "verbs/pairs_judge.h"
#include "verbs/pairs_schedule.h"

#define PAIRS_NAME 128
/** Most hosts of one run: the control channel's bound on ranks is below it. */
#define PAIRS_FLEET_MAX 65536u

/** One host. */
struct pairs_member {
	char name[PAIRS_NAME];
	char rack[64];    /**< from the hosts file; "" without */
	int rank;         /**< -1: never joined */
	char reason[400]; /**< why it is absent */
};

struct pairs_fleet {
	struct pairs_member *member;
	uint32_t hosts, rails;
	uint32_t *group; /**< racks as numbers; NULL without racks */
	bool *absent;
};
/** Free what it holds, not *f. */
void pairs_fleet_free(struct pairs_fleet *f);
/** Room for one more member. @return it, zeroed with rank -1, or NULL without memory */
struct pairs_member *pairs_fleet_add(struct pairs_fleet *f);
/** Numbers for racks, and who is absent, from the members. @return 0 or -ENOMEM */
int pairs_fleet_seal(struct pairs_fleet *f, struct fb_err *e) FB_MUST_CHECK;
/**
 * Members from a hosts file: a host a line, its rack in a second column or none; # begins a
 * comment. @return 0; -EINVAL (exit 2): unreadable, no host, one named twice, a name too long
 */
int pairs_fleet_read(struct pairs_fleet *f, const char *path, struct fb_err *e) FB_MUST_CHECK;
/** Are these names of one host? Equal, or equal up to the first dot where one has no domain. */
bool pairs_same_host(const char *a, const char *b);

/** What was measured; reasons and results are owned. */
struct pairs_log {
	struct pairs_measure *m;
	json_t **result; /**< of each, without case and pair: NULL where there is none */
	size_t n, cap;
};

struct pairs_run {
	struct pairs_fleet *fleet;
	struct pairs_opts opts;
	uint32_t rounds; /**< of the schedule; 0: full */
	/**
	 * Measure log.m[first .. first + n): disjoint pairs, at the same time. Sets state, value
	 * and reason (a malloc'ed text) of each, and its result. @return 0, or what ends the whole
	 * run
	 */
	int (*measure)(struct pairs_run *r, size_t first, size_t n, struct fb_err *e);
	/** After each batch; NULL: nothing. */
	int (*progress)(struct pairs_run *r, struct fb_err *e);
	void *arg;
	/* filled by pairs_run() */
	struct pairs_schedule schedule;
	struct pairs_log log;
	struct pairs_judgement judgement;
	uint32_t stages;       /**< of confirmation */
	uint64_t steps, taken; /**< batches of the schedule, and those done in all */
};

/** The whole loop. @return 0, or the measurer's error; what was measured before stands in log, and
 * judgement judges that */
int pairs_run(struct pairs_run *r, struct fb_err *e) FB_MUST_CHECK;
void pairs_run_free(struct pairs_run *r);

#endif
