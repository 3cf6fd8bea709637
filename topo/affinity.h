/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and memory near a device. What was done, or why nothing was, goes into a record that
 * stands in the result: placement that cannot be had is no error, it is a fact of the measurement.
 */
#ifndef TOPO_AFFINITY_H
#define TOPO_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"
#include "topo/topo.h"

struct topo_binding {
	int numa;       /**< the node asked for, TOPO_UNKNOWN when it is not known */
	bool bound;     /**< the thread (or memory) is now bound */
	char cpus[256]; /**< cpulist the thread may run on after the call; "" for memory */
	char why[256];  /**< one line for the record: what was done, or why not */
};

/**
 * Let the calling thread run only on the CPUs near an RDMA device, or near a NUMA node, that it is
 * allowed to run on: those it could use when the topology was loaded, so that a thread may be bound
 * again elsewhere, and what a launcher or container took away stays away.
 * @param rdma device name, or NULL: then `numa` decides
 * @param numa OS index of a NUMA node, used when rdma is NULL; TOPO_UNKNOWN: leave the thread alone
 * @return 0, bound or not: see b->why. -ENOENT: no such device or node (exit 2); -errno of
 * sched_setaffinity (exit 3)
 */
int topo_bind_thread_near(const struct topo *t, const char *rdma, int numa, struct topo_binding *b,
	struct fb_err *e) FB_MUST_CHECK;

/**
 * Take the calling thread's future pages from one NUMA node (MPOL_BIND; from its nearest neighbours
 * never). Pages that exist stay where they are.
 * @return 0, bound or not: unknown node, single node, or a container that forbids the call are
 * recorded, not errors. -errno otherwise (exit 3)
 */
int topo_bind_memory(
	const struct topo *t, int numa, struct topo_binding *b, struct fb_err *e) FB_MUST_CHECK;
/** Undo topo_bind_memory(): the system's default policy again. */
void topo_unbind_memory(void);

/** NUMA node that holds the page at addr (touched before), TOPO_UNKNOWN when the kernel will not
 * say. */
int topo_node_of_page(const void *addr);

/** cpulist of the CPUs the calling thread may run on now. @return buf, "" when unknown */
const char *topo_current_cpus(char *buf, size_t len);

#endif
