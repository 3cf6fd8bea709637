/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a site has decided: the profile against which values are judged. Without one only
 * consistency is judged, and a value alone is information.
 */
#ifndef VERBS_LOSSLESS_PROFILE_H
#define VERBS_LOSSLESS_PROFILE_H

#include "verbs/lossless/facts.h"

struct profile {
	char name[64], path[256], source[160];
	bool given;       /**< false: no --profile */
	int roce_dscp[4]; /**< -1 ends; most sites have one, NCCL's FIFO may have a second */
	int roce_prio;    /**< -1: not said */
	int cnp_dscp, cnp_prio;
	int pfc_set;          /**< bits by priority; -1: not said */
	char trust[8];        /**< "dscp", "pcp", "" */
	char congestion[16];  /**< "ecn", "pfc-only", "" */
	int adaptive_routing; /**< 1: reordering is no loss; -1: not said */
	int mtu;              /**< netdev; -1 */
	int ets_share;        /**< least per cent of the RoCE class; -1 */
	int cable_m;          /**< -1 */
	int64_t rate_mbps;    /**< -1 */
	int pkey, sl;         /**< InfiniBand; -1 */
};

/** All -1 and empty. */
void profile_none(struct profile *p);
/**
 * An INI file, or the name of a shipped one (share/profiles/NAME.ini beside the program, or
 * scripts/profiles in the tree). Keys: name, source, roce-dscp (list), roce-priority, cnp-dscp,
 * cnp-priority, pfc (list of priorities, or none), trust, congestion, adaptive-routing, mtu,
 * ets-share, cable-length, rate, pkey, sl.
 * @return 0; -EINVAL with line, key and what it may be; -ENOENT (exit 2)
 */
int profile_read(const char *path_or_name, struct profile *p, struct fb_err *e) FB_MUST_CHECK;
/** The profile of a good node, as INI text with a comment on each line's origin. */
int profile_learn(const struct node_facts *n, FILE *out, struct fb_err *e) FB_MUST_CHECK;

#endif
