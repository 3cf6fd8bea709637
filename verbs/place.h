/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a rail's thread and buffers live: on the NIC's NUMA node unless a person said otherwise.
 * Placement is a preference and is recorded; a machine that refuses it still measures.
 */
#ifndef VERBS_PLACE_H
#define VERBS_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/** The node that --numa asks for: `want` as in struct verbs_params, `dev_node` the NIC's (-1
 * unknown). @return a node, or -1: do not place */
int verbs_place_node(int want, int dev_node);
/** Prefer `node` for memory that was not touched yet. @return the node, or -1 when nothing was
 * placed
 */
int verbs_place_memory(void *p, size_t len, int node);

struct verbs_placed {
	cpu_set_t before;
	bool moved;
};
/** Bind the calling thread to the CPUs of `node` that it may use. @return the node, or -1 when it
 * stays where it was */
int verbs_place_thread(int node, struct verbs_placed *was);
void verbs_place_back(const struct verbs_placed *was);

#endif
