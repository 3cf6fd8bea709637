/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real ranks behind a run over pairs: rank 0 gathers what each host offers, orders the pairs of a
 * step and collects their reports; the other ranks do what they are told. A host that dies or falls
 * silent costs its own pairs and no others.
 */
#ifndef VERBS_PAIRS_RANKS_H
#define VERBS_PAIRS_RANKS_H

#include "bench/core/bench.h"
#include "bench/oob/oob.h"
#include "verbs/pairs_pair.h"
#include "verbs/pairs_run.h"
#include "verbs/params.h"

/** Rank 0's view of all. */
struct pairs_ranks {
	struct fb_oob *oob;
	struct pairs_worker worker; /**< rank 0 is a host too */
	json_t **offer;             /**< by rank; NULL: it never came */
	bool *lost;                 /**< by rank: has left */
	int64_t *owes;              /**< by rank: the pair it still has to report; -1: none */
	uint64_t *owes_until;       /**< by rank: when it must have done so */
	char (*why)[256];           /**< by rank: why it is lost or silent */
	int64_t next_id;
	struct verbs_params params;
	const struct fb_runctl_cfg *run;
	uint64_t pair_timeout_ns;
	bool wrong_data; /**< a pair has seen wrong bytes */
};

/**
 * Hear every rank's offer, and match ranks with the fleet's members by name; ranks that nobody
 * expected are added. Sets the fleet's rails, and seals it.
 * @return 0; -EINVAL: two ranks on one host (exit 2); -ENODEV: no host has a device (exit 77)
 */
int pairs_ranks_gather(
	struct pairs_ranks *k, struct pairs_fleet *f, struct fb_err *e) FB_MUST_CHECK;
/** The `measure` of struct pairs_run; its arg is a struct pairs_ranks. */
int pairs_ranks_measure(
	struct pairs_run *r, size_t first, size_t n, struct fb_err *e) FB_MUST_CHECK;
/** Tell the others that it is over, and free. */
void pairs_ranks_end(struct pairs_ranks *k);

/** All other ranks: offer, then orders until rank 0 says that it is over. @return 0, or what ended
 * it */
int pairs_ranks_follow(struct fb_oob *o, struct pairs_worker *w, struct fb_err *e) FB_MUST_CHECK;

#endif
