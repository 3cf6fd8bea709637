// SPDX-License-Identifier: Apache-2.0
/*
 * Placement by the kernel's own calls: mbind for memory, sched_setaffinity within what the process
 * may use. A node without CPUs (memory only) leaves the thread alone.
 */
#include "verbs/place.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/core/sysroot.h"
#include "verbs/params.h"

int verbs_place_node(int want, int dev_node)
{
	return want == VERBS_NUMA_AUTO ? dev_node : want == VERBS_NUMA_OFF ? -1 : want;
}

int verbs_place_memory(void *p, size_t len, int node)
{
	unsigned long mask[16] = {0};

	if (node < 0 || (size_t)node >= sizeof mask * 8)
		return -1;
	mask[(size_t)node / (8 * sizeof mask[0])] |= 1ul << ((size_t)node % (8 * sizeof mask[0]));
	/* Preferred, not bound: with the node full, slow memory beats none. */
	if (syscall(SYS_mbind, p, len, MPOL_PREFERRED, mask, sizeof mask * 8, 0) != 0)
		return -1;
	return node;
}

/* "0-3,8-11" -> set */
static bool parse_cpulist(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (const char *p = text; *p;) {
		char *end;
		unsigned long lo = strtoul(p, &end, 10), hi = lo;
		if (end == p)
			return false;
		if (*end == '-')
			hi = strtoul(end + 1, &end, 10);
		for (unsigned long c = lo; c <= hi && c < CPU_SETSIZE; c++)
			CPU_SET(c, set);
		p = *end == ',' ? end + 1 : end;
		if (p == end && *end)
			return false;
	}
	return CPU_COUNT(set) > 0;
}

int verbs_place_thread(int node, struct verbs_placed *was)
{
	static const struct fb_sysroot live = {.dir = NULL};
	char text[1024];
	cpu_set_t local;

	was->moved = false;
	if (node < 0 || sched_getaffinity(0, sizeof was->before, &was->before) != 0)
		return -1;
	if (fb_sysroot_readf(&live, text, sizeof text, "/sys/devices/system/node/node%d/cpulist",
		    node) < 0 ||
		!parse_cpulist(text, &local))
		return -1;
	CPU_AND(&local, &local, &was->before);
	if (CPU_COUNT(&local) == 0 || sched_setaffinity(0, sizeof local, &local) != 0)
		return -1;
	was->moved = true;
	return node;
}

void verbs_place_back(const struct verbs_placed *was)
{
	if (was->moved)
		sched_setaffinity(0, sizeof was->before, &was->before);
}
