/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated fleet behind a run over pairs: hosts of one speed with noise, and slow hosts, slow
 * links and dead hosts where they are asked for. It measures nothing; it proves the schedule, the
 * judge and the document on fleets of any size, with a known answer.
 */
#ifndef VERBS_PAIRS_SIM_H
#define VERBS_PAIRS_SIM_H

#include "bench/core/stats.h"
#include "verbs/pairs_run.h"

#define PAIRS_SIM_PARTS 16

/** What one seed's outcome was, against what was put in. */
struct pairs_sim_tally {
	uint64_t fleets, false_fleets; /**< fleets with at least one false alarm */
	uint64_t bad_nodes, missed_nodes, false_nodes;
	uint64_t bad_links, unseen_links, missed_links, false_links; /**< unseen: in no round */
};

struct pairs_sim {
	uint32_t hosts, rails, racks;
	double noise;
	uint64_t seed, seeds;
	struct {
		uint32_t host; /**< UINT32_MAX: another one with each seed */
		double factor; /**< 0: the host never joins */
	} node[PAIRS_SIM_PARTS];
	struct {
		uint32_t a, b;
		double factor; /**< 0: the link fails */
	} link[PAIRS_SIM_PARTS];
	unsigned nodes, links;
	bool lower_better;
	/* of the present seed */
	struct fb_rng rng;
	uint32_t at_node[PAIRS_SIM_PARTS], at_a[PAIRS_SIM_PARTS], at_b[PAIRS_SIM_PARTS];
};

/** "hosts=64,noise=0.03,slow-node=7:0.85,slow-link=3-9:0.7,absent=5,broken-link=1-2,seed=1,
 * seeds=200,rails=1,racks=8"; `any` in place of a host or link draws one. @return 0 or -EINVAL */
int pairs_sim_parse(struct pairs_sim *s, const char *text, struct fb_err *e) FB_MUST_CHECK;
/** Begin with this seed: place the bad parts, fill the fleet. */
int pairs_sim_start(
	struct pairs_sim *s, uint64_t seed, struct pairs_fleet *f, struct fb_err *e) FB_MUST_CHECK;
/** The `measure` of struct pairs_run; its arg is a struct pairs_sim. */
int pairs_sim_measure(struct pairs_run *r, size_t first, size_t n, struct fb_err *e) FB_MUST_CHECK;
/** Compare what was convicted with what was put in. */
void pairs_sim_count(
	const struct pairs_sim *s, const struct pairs_run *r, struct pairs_sim_tally *t);

#endif
