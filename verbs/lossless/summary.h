/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a node must be equal to other nodes: as JSON in a document (its key `fabric`), back from
 * there, and compared. Addresses and GUIDs are not in it. What a node does not tell is absent from
 * its summary, and is not compared.
 */
#ifndef VERBS_LOSSLESS_SUMMARY_H
#define VERBS_LOSSLESS_SUMMARY_H

#include <jansson.h>

#include "bench/core/check.h"
#include "verbs/lossless/checks.h"

/** {host, recorded, env {name: text}, ports [{device, port, ethernet, netdev, family, firmware,
 * board, rate, netdev_mtu, rdma_mtu, pfc [priorities], dscp_map {dscp: priority}, gid {index,
 * ipv4, link_local}, traffic_class, cma_tos}]}. New reference. */
json_t *summary_json(const struct node_facts *n);
/**
 * Node facts of which only the summary's are known. @param name stands in errors
 * @return 0; -EINVAL: it is no summary (exit 2); -ENOMEM. facts_free() frees.
 */
int summary_read(
	const json_t *j, const char *name, struct node_facts *n, struct fb_err *e) FB_MUST_CHECK;

/** equal.*: one finding for each port of the first node that another node has too. */
extern const struct fb_check_def equal_checks[];
/** Compare nodes[0] (the examined one) with the others; the odd ones are named by majority. */
void equal_run(const struct node_facts *const *nodes, int n, struct fb_doc *doc);

#endif
