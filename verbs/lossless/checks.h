/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of checks: R01-R42 of RoCE, I01-I13 of InfiniBand, S01-S12 of switches. A check is a
 * pure function over facts, profile and, for the live ones, what happened in a window.
 */
#ifndef VERBS_LOSSLESS_CHECKS_H
#define VERBS_LOSSLESS_CHECKS_H

#include "bench/core/check.h"
#include "verbs/lossless/profile.h"

/** What moved between two reads of one port. */
struct port_window {
	uint64_t ns;             /**< length; 0: no window, the live checks skip */
	const char *why;         /**< of no window: "needs --watch, --during or --drive" */
	uint64_t bytes, packets; /**< both directions, by the port's own counters */
	bool traffic_known;
	json_t *stats, *counters;     /**< name -> what it grew by; null where it went backwards */
	int64_t peer_prio_packets[8]; /**< what arrived by priority; -1 not known */
	int64_t sent_packets;         /**< what was sent there, at least; -1 */
	int sent_dscp;
};
struct drive;
struct check_input {
	const struct node_facts *node;
	const struct port_facts *port;
	const struct profile *profile;
	const struct port_window *window;
	const struct node_facts *const *others; /**< other nodes, for what must be equal */
	int n_others;
	const char *host;          /**< of another node: stands before the subject; else NULL */
	const struct drive *drive; /**< the load that the window is of; NULL: none of ours */
};
struct port_check {
	struct fb_check_def def;
	bool live; /**< looks at the window */
	/** Never called where the link layer is the other one: that is skipped before. */
	void (*run)(const struct check_input *in, struct fb_finding *f);
};
extern const struct port_check roce_checks[]; /**< R01..R42, then def.id NULL */
extern const struct port_check ib_checks[];   /**< I01..I13 */

/** Which table is a port's: roce_checks, ib_checks, or none of them. @return NULL: *why says why,
 * "iWARP: RDMA over TCP, neither RoCE nor InfiniBand" */
const struct port_check *checks_of(const struct port_facts *p, const char **why);
/** Run a table on one port: findings as checks of the document. */
void checks_run(const struct port_check *table, const struct check_input *in, struct fb_doc *doc);
/** The same with those alone that look at the window, but for some. @param without their ids in
 * one text, or NULL */
void checks_run_live(const struct port_check *table, const struct check_input *in,
	const char *without, struct fb_doc *doc);

#endif
