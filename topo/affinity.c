// SPDX-License-Identifier: Apache-2.0
/*
 * Binding, by system call: hwloc's own binding would need the topology to be this machine's, and
 * would not tell what a container forbids from what is wrong.
 */
#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "topo/affinity.h"
#include "topo/topo_priv.h"

#define MAX_NODES 1024

/** Allowed CPUs of the calling thread. @return 0 or -errno */
static int get_allowed(hwloc_bitmap_t set)
{
	/* The kernel wants a mask at least as large as its own; 64 Ki CPUs are enough for any. */
	size_t size = CPU_ALLOC_SIZE(TOPO_MAX_CPU + 1);
	cpu_set_t *mask = CPU_ALLOC(TOPO_MAX_CPU + 1);

	if (!mask)
		return -ENOMEM;
	int rc = sched_getaffinity(0, size, mask) == 0 ? 0 : -errno;

	hwloc_bitmap_zero(set);
	for (int i = 0; !rc && i <= TOPO_MAX_CPU; i++)
		if (CPU_ISSET_S((size_t)i, size, mask))
			hwloc_bitmap_set(set, (unsigned)i);
	CPU_FREE(mask);
	return rc;
}

static int set_allowed(hwloc_const_bitmap_t set)
{
	size_t size = CPU_ALLOC_SIZE(TOPO_MAX_CPU + 1);
	cpu_set_t *mask = CPU_ALLOC(TOPO_MAX_CPU + 1);

	if (!mask)
		return -ENOMEM;
	CPU_ZERO_S(size, mask);
	for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i))
		CPU_SET_S((size_t)i, size, mask);
	int rc = sched_setaffinity(0, size, mask) == 0 ? 0 : -errno;

	CPU_FREE(mask);
	return rc;
}

char *topo_allowed_cpus(void)
{
	char *list = NULL;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (set && get_allowed(set) == 0 && hwloc_bitmap_list_asprintf(&list, set) < 0)
		list = NULL;
	hwloc_bitmap_free(set);
	return list;
}

const char *topo_current_cpus(char *buf, size_t len)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	buf[0] = '\0';
	if (set && get_allowed(set) == 0)
		hwloc_bitmap_list_snprintf(buf, len, set);
	hwloc_bitmap_free(set);
	return buf;
}

/** The CPUs to aim at. @return 0; -ENOENT with *e; *cpus NULL: not known */
static int find_target(const struct topo *t, const char *rdma, int numa, const char **cpus,
	struct topo_binding *b, struct fb_err *e)
{
	*cpus = NULL;
	b->numa = numa;
	if (rdma) {
		const struct topo_rdma *d = topo_find_rdma(t, rdma);

		if (!d) {
			fb_fail(e, FB_EXIT_USAGE, ENOENT, "no RDMA device %s on this machine",
				rdma);
			fb_hint(e, "list them: fabricbench topo");
			return -ENOENT;
		}
		b->numa = d->numa;
		*cpus = d->cpus;
		if (!d->cpus)
			snprintf(b->why, sizeof(b->why),
				"not bound: the NUMA node of %.60s is not known", rdma);
		return 0;
	}
	if (numa < 0) {
		snprintf(b->why, sizeof(b->why), "not bound: no NUMA node was asked for");
		return 0;
	}
	const struct topo_numa *node = topo_find_numa(t, numa);

	if (!node) {
		fb_fail(e, FB_EXIT_USAGE, ENOENT, "no NUMA node %d on this machine", numa);
		fb_hint(e, "list them: fabricbench topo");
		return -ENOENT;
	}
	if (*node->cpus)
		*cpus = node->cpus;
	else
		snprintf(b->why, sizeof(b->why), "not bound: NUMA node %d has no CPUs", numa);
	return 0;
}

int topo_bind_thread_near(
	const struct topo *t, const char *rdma, int numa, struct topo_binding *b, struct fb_err *e)
{
	const char *cpus;

	memset(b, 0, sizeof(*b));
	topo_current_cpus(b->cpus, sizeof(b->cpus));
	int rc = find_target(t, rdma, numa, &cpus, b, e);

	if (rc || !cpus)
		return rc;
	if (!t->live) {
		snprintf(b->why, sizeof(b->why), "not bound: the topology is a recorded one");
		return 0;
	}
	hwloc_bitmap_t want = hwloc_bitmap_alloc(), have = hwloc_bitmap_alloc();

	if (!want || !have || !topo_cpulist_sane(cpus) ||
		hwloc_bitmap_list_sscanf(want, cpus) != 0) {
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "cannot read the CPU list %.200s", cpus);
		goto free_sets;
	}
	/* Not today's mask: an earlier binding of this thread, or of its parent, must not narrow
	 * this one. */
	if (t->allowed && topo_cpulist_sane(t->allowed))
		rc = hwloc_bitmap_list_sscanf(have, t->allowed) == 0 ? 0 : -EINVAL;
	else
		rc = get_allowed(have);
	if (rc) {
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "cannot tell the allowed CPUs: %s",
			strerror(-rc));
		goto free_sets;
	}
	hwloc_bitmap_and(want, want, have);
	if (hwloc_bitmap_iszero(want)) {
		snprintf(b->why, sizeof(b->why),
			"not bound: none of the near CPUs (%.60s) is allowed here (%.60s)", cpus,
			t->allowed ? t->allowed : b->cpus);
		goto free_sets;
	}
	rc = set_allowed(want);
	if (rc) {
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "sched_setaffinity to CPUs %.200s: %s", cpus,
			strerror(-rc));
		goto free_sets;
	}
	b->bound = true;
	hwloc_bitmap_list_snprintf(b->cpus, sizeof(b->cpus), want);
	if (rdma)
		snprintf(b->why, sizeof(b->why), "bound to the CPUs near %.60s", rdma);
	else
		snprintf(b->why, sizeof(b->why), "bound to the CPUs of NUMA node %d", b->numa);
free_sets:
	hwloc_bitmap_free(want);
	hwloc_bitmap_free(have);
	return rc;
}

int topo_bind_memory(const struct topo *t, int numa, struct topo_binding *b, struct fb_err *e)
{
	unsigned long mask[MAX_NODES / (8 * sizeof(unsigned long))] = {0};
	const size_t bits = 8 * sizeof(unsigned long);

	memset(b, 0, sizeof(*b));
	b->numa = numa;
	if (numa < 0 || t->n_numa < 2 || !t->live) {
		snprintf(b->why, sizeof(b->why), "not bound: %s",
			!t->live   ? "the topology is a recorded one"
			: numa < 0 ? "the NUMA node is not known"
				   : "the machine has one NUMA node");
		return 0;
	}
	const struct topo_numa *node = topo_find_numa(t, numa);

	if (!node || numa >= MAX_NODES || !node->memory) {
		snprintf(b->why, sizeof(b->why), "not bound: NUMA node %d has no memory", numa);
		return 0;
	}
	mask[(size_t)numa / bits] |= 1UL << ((size_t)numa % bits);
	/* maxnode counts one bit more than it uses: set_mempolicy(2), BUGS. */
	if (syscall(SYS_set_mempolicy, MPOL_BIND, mask, (unsigned long)MAX_NODES + 1) != 0) {
		int err = errno;

		/* Docker's default seccomp profile forbids it; a cpuset may leave the node out. */
		if (err == EPERM || err == ENOSYS || err == EINVAL) {
			snprintf(b->why, sizeof(b->why), "not bound: set_mempolicy: %s",
				strerror(err));
			return 0;
		}
		return fb_fail(e, FB_EXIT_UNMEASURED, err, "set_mempolicy to NUMA node %d: %s",
			numa, strerror(err));
	}
	b->bound = true;
	snprintf(b->why, sizeof(b->why), "memory from NUMA node %d", numa);
	return 0;
}

void topo_unbind_memory(void)
{
	(void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
}

int topo_node_of_page(const void *addr)
{
	int node = TOPO_UNKNOWN;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0UL, addr,
		    (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR)) != 0)
		return TOPO_UNKNOWN;
	return node;
}
