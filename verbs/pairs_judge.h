/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts and which links of a fleet are slow, from what pairs of hosts measured.
 *
 * Model, on logarithms, for each rail by itself (y is ln bandwidth, or -ln latency: bad is low):
 *
 *	y_ab = mu + node_a + node_b + link_ab + noise
 *
 * mu is the level of pairs of good hosts. A node's effect is the mean of y - mu over its
 * pairs, after those farther than 3.5 sigma from their median are left out (Hampel, The
 * Breakdown Points of the Mean Combined With Some Rejection Rules, 1985): nearly a mean's
 * precision, a median's safety against one bad link. Of two that lie 7 sigma apart it is the
 * better, as a pair is only as fast as its slower part; below eight hosts likewise the best
 * of all. Nodes are looked at from the worst on, and pairs with one found suspect no longer
 * count for its partners: no node is named for its neighbour, and no second estimate's noise
 * is added.
 *
 * sigma is the scale of one launch: 1.4826 b_n MAD of y - mu over pairs without outlying
 * nodes (b_n: Croux and Rousseeuw, 1992), from ten pairs on refined by the deviation within
 * 3 sigma; never below sigma_min, so that identical values make no z infinite.
 *
 * Suspicion is cheap, conviction is not. Rounds only make suspects: a node below mu by half
 * the floor and by suspect_z, a link below its nodes by the floor and by link_z.
 * Confirmation convicts
 * - a node: slow against each of two good partners that agree (more than half the floor below
 *   mu), and over all of these launches below mu by more than the floor AND by z * sigma /
 *   sqrt(launches);
 * - a link: measured again 2 * repeats times, its mean below what its two nodes explain by the
 *   floor AND by z * sigma / sqrt(launches), and still by link_z * sigma; each of the two was
 *   measured with another good partner, which tells a link's effect from a node's.
 * The suspect's own rounds do not count for conviction: they were selected for being low. A
 * good host that lost pairs of its rounds to convicted ones is given others, up to three in
 * all.
 *
 * The caller's loop: measure the rounds; judge; while the judgement has tasks (and stages
 * are left), measure them, append them with phase PAIRS_CONFIRM, and judge the whole again.
 * Pure: the same measurements, in any order, give the same judgement. Knows no device, no
 * wait, no host name.
 */
#ifndef VERBS_PAIRS_JUDGE_H
#define VERBS_PAIRS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

/** Stages of confirmation after which a caller may give up: fleets with half of their pairs ill
 * took six. What is still suspect then stays so, and the verdict INCOMPLETE. */
#define PAIRS_STAGES 8

/** How a measurement, or a host, ended. The four add up. */
enum pairs_state {
	PAIRS_MEASURED,
	PAIRS_FAILED,      /**< began, and gave no value */
	PAIRS_UNREACHABLE, /**< could not be connected */
	PAIRS_NOT_RUN,
};

enum pairs_phase {
	PAIRS_ROUNDS,  /**< scheduled for everybody */
	PAIRS_CONFIRM, /**< a task of a judgement */
};

/** One launch between two hosts on one rail. */
struct pairs_measure {
	uint32_t a, b; /**< hosts, either order */
	uint32_t rail;
	uint32_t round;
	enum pairs_phase phase;
	enum pairs_state state;
	double value;       /**< in the metric's unit, above 0; read only when measured */
	const char *reason; /**< why it was not measured; may be NULL; borrowed, not read here */
};

struct pairs_opts {
	bool lower_better; /**< latency: slow is high */
	double floor;      /**< smallest relative change that matters, 0 to 1; 0.05 */
	double z;          /**< robust z that conviction needs; 3.5 (Iglewicz and Hoaglin 1993) */
	double suspect_z;  /**< robust z that makes a node suspect, beside half the floor; 2 (halved
			      below eight hosts) */
	double link_z;     /**< robust z that makes a link suspect, beside the floor; 3 */
	double sigma_min;  /**< least relative scale of noise; 0.005 */
	uint32_t repeats;  /**< launches of each confirming pair, twice as many of a suspect link; 3
			    */
};

/** The defaults above. */
struct pairs_opts pairs_opts_default(bool lower_better);

/** A host on a rail, in order of severity: the worst of its rails is a host's state. */
enum pairs_node_state {
	PAIRS_NODE_GOOD,
	PAIRS_NODE_CLEARED,  /**< suspected, and confirmed fine */
	PAIRS_NODE_UNJUDGED, /**< measured, with nothing to compare with (two hosts) */
	PAIRS_NODE_NOT_RUN,
	PAIRS_NODE_SUSPECT, /**< not confirmed: tasks are left, or no good partner was */
	PAIRS_NODE_DEAD,    /**< tried and never measured; see the host's account */
	PAIRS_NODE_FAILING, /**< measured, but fails again with two or more good partners */
	PAIRS_NODE_SLOW,    /**< convicted */
};
const char *pairs_node_state_name(enum pairs_node_state s);

struct pairs_node {
	enum pairs_node_state state;
	double effect; /**< from the rounds, relative to mu: -0.15 is a metric 15 % lower; NAN
			  without */
	double z; /**< effect / (sigma / sqrt(pairs)); negative is bad for either metric; NAN */
	double confirmed; /**< the same from confirmation alone; NAN without */
	double confirmed_z;
	uint32_t pairs;    /**< links measured in the rounds */
	uint32_t partners; /**< good partners measured in confirmation */
	uint32_t tried;    /**< good partners tried in confirmation */
	uint32_t missed;   /**< launches that failed or reached nobody, all phases */
};

enum pairs_link_state {
	PAIRS_LINK_CLEARED, /**< suspected, and fine, or explained by its nodes */
	PAIRS_LINK_FLAKY,   /**< failed at least once, and measured fine at another time */
	PAIRS_LINK_SUSPECT,
	PAIRS_LINK_FAILED, /**< failed again in confirmation, both hosts measured elsewhere */
	PAIRS_LINK_SLOW,   /**< convicted */
};
/** As it stands in documents. */
const char *pairs_link_state_name(enum pairs_link_state s);

/** A link that was ever suspected; others are not listed. */
struct pairs_link {
	uint32_t rail, a, b; /**< a < b */
	enum pairs_link_state state;
	bool by_node;    /**< explained by a failing node */
	double effect;   /**< beyond its two nodes, relative, latest phase that has one; NAN without
			  */
	double z;        /**< negative is bad */
	uint32_t rounds; /**< launches measured in the rounds */
	uint32_t confirm; /**< launches measured in confirmation */
	uint32_t missed;  /**< launches that failed or reached nobody */
};

struct pairs_rail {
	double level;   /**< of pairs of good hosts, in the metric's unit; NAN without */
	double sigma;   /**< relative scale of noise of one launch */
	size_t links;   /**< measured in the rounds */
	bool judged;    /**< enough pairs to compare */
	bool off_level; /**< worse than the other rails by the floor: for a warning, convicts nobody
			 */
};

/** A confirming launch to make: two hosts, one rail. Tasks of one round are disjoint over all
 * rails; rounds are in order, and repeats of a pair lie in different rounds, so that they are
 * launches of their own. */
struct pairs_task {
	uint32_t round;
	uint32_t rail, a, b; /**< a < b */
	bool link;           /**< the suspect link itself; else a node with a good partner */
};

/** Hosts by how they ended; measured + failed + unreachable + not_run == expected. */
struct pairs_account {
	uint32_t expected, measured, failed, unreachable, not_run;
};

enum pairs_verdict {
	PAIRS_FINE,
	PAIRS_UNJUDGED,   /**< all measured, nothing to compare with */
	PAIRS_INCOMPLETE, /**< a host without a value, or a suspect without confirmation */
	PAIRS_REJECTED,   /**< a node or link convicted, or failed again */
};
const char *pairs_verdict_name(enum pairs_verdict v);

struct pairs_host {
	enum pairs_state state;      /**< for the account */
	enum pairs_node_state worst; /**< of its rails */
};

struct pairs_judgement {
	uint32_t hosts, rails;
	struct pairs_node *node; /**< node[rail * hosts + host] */
	struct pairs_host *host;
	struct pairs_rail *rail;
	struct pairs_link *link; /**< by rail, a, b */
	size_t links;
	struct pairs_task *task; /**< by round, rail, a, b; empty: nothing left to confirm */
	size_t tasks;
	uint32_t *ranking; /**< rail * hosts + host, the worst first: state, then z, then number */
	struct pairs_account account;
	enum pairs_verdict verdict;
};

struct pairs_input {
	uint32_t hosts, rails;
	const struct pairs_measure *measure; /**< any order; borrowed during the call */
	size_t measures;
	const uint32_t *group; /**< each host's rack or leaf, or NULL: the two confirming partners
			       differ in it if they can */
	const bool *absent; /**< hosts known never to have joined, or NULL: unreachable, no task */
};

/**
 * Judge.
 *
 * A host's account: measured if any launch of it was; else unreachable if it was absent, if one
 * host that was measured elsewhere could not reach it, or two such hosts could not measure with it;
 * else failed if it was tried; else not run. Its partners are not blamed: a missed pair counts for
 * a link only if both of its hosts were measured elsewhere. A value that is not a finite number
 * above 0 counts as failed.
 *
 * Time O(m log m), memory O(m + hosts * rails) for m measurements: no table of hosts by hosts.
 * @param j  written on success; freed by pairs_judgement_free()
 * @return 0; -EINVAL with the cause (exit 2): no hosts or rails, a host or rail out of range, a
 * host paired with itself, options out of range; -ENOMEM
 */
int pairs_judge(const struct pairs_opts *o, const struct pairs_input *in, struct pairs_judgement *j,
	struct fb_err *e) FB_MUST_CHECK;

/** Free what a judgement holds and zero it; a zeroed one is fine. */
void pairs_judgement_free(struct pairs_judgement *j);

#endif
