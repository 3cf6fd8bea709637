// SPDX-License-Identifier: Apache-2.0
/*
 * What firmware tells of the memory (ACPI HMAT, through hwloc's memory attributes): latency and
 * bandwidth from the CPUs of one node to the memory of another. Most machines tell it of each
 * node's nearest memory alone; all else stays NaN.
 */
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdlib.h>

#include "topo/topo_priv.h"

static hwloc_obj_t node_of(const struct topo *t, int os_index)
{
	hwloc_obj_t obj = NULL;

	while ((obj = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE, obj)))
		if ((int)obj->os_index == os_index)
			return obj;
	return NULL;
}

/**
 * Do a node's CPUs sit on it? Memory without CPUs (HBM, NVM) is shown with those nearest to it,
 * which another node has already, or other nodes share.
 */
static bool has_own_cpus(hwloc_obj_t *nodes, size_t n, size_t self)
{
	hwloc_const_cpuset_t cpus = nodes[self] ? nodes[self]->cpuset : NULL;

	if (!cpus || hwloc_bitmap_iszero(cpus))
		return false;
	for (size_t i = 0; i < n; i++) {
		hwloc_const_cpuset_t other = i != self && nodes[i] ? nodes[i]->cpuset : NULL;

		if (!other || hwloc_bitmap_iszero(other) || !hwloc_bitmap_isincluded(other, cpus))
			continue;
		if (i < self || !hwloc_bitmap_isequal(other, cpus))
			return false;
	}
	return true;
}

/** The first of the attributes that has a value. */
static double value_of(const struct topo *t, hwloc_obj_t target, hwloc_cpuset_t from,
	const hwloc_memattr_id_t *ids, size_t n_ids)
{
	struct hwloc_location where = {.type = HWLOC_LOCATION_TYPE_CPUSET, .location.cpuset = from};

	for (size_t i = 0; i < n_ids; i++) {
		hwloc_uint64_t v;

		if (hwloc_memattr_get_value(t->hwloc, ids[i], target, &where, 0, &v) == 0 && v > 0)
			return (double)v;
	}
	return NAN;
}

/** @param scale units of the model in one unit of hwloc's */
static int read_matrix(
	struct topo *t, const hwloc_memattr_id_t *ids, size_t n_ids, double scale, double **matrix)
{
	size_t n = t->n_numa;
	hwloc_obj_t *nodes = calloc(n, sizeof(*nodes));
	double *m = calloc(n * n, sizeof(*m));
	bool any = false;

	if (!nodes || !m) {
		free(nodes);
		free(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		nodes[i] = node_of(t, t->numa[i].os_index);
	for (size_t a = 0; a < n; a++) {
		hwloc_cpuset_t from =
			nodes[a] && has_own_cpus(nodes, n, a) ? nodes[a]->cpuset : NULL;

		for (size_t b = 0; b < n; b++) {
			double v = from && nodes[b] ? value_of(t, nodes[b], from, ids, n_ids) : NAN;

			m[a * n + b] = v * scale;
			any = any || !isnan(v);
		}
	}
	free(nodes);
	if (any) {
		*matrix = m;
		return 0;
	}
	free(m);
	return 0;
}

int topo_read_memattrs(struct topo *t)
{
#if HWLOC_API_VERSION >= 0x00020800
	static const hwloc_memattr_id_t latency[] = {
		HWLOC_MEMATTR_ID_LATENCY, HWLOC_MEMATTR_ID_READ_LATENCY};
	static const hwloc_memattr_id_t bandwidth[] = {
		HWLOC_MEMATTR_ID_BANDWIDTH, HWLOC_MEMATTR_ID_READ_BANDWIDTH};
#else
	static const hwloc_memattr_id_t latency[] = {HWLOC_MEMATTR_ID_LATENCY};
	static const hwloc_memattr_id_t bandwidth[] = {HWLOC_MEMATTR_ID_BANDWIDTH};
#endif
	/* A thousand nodes would be a million questions. */
	if (t->n_numa == 0 || t->n_numa > 128)
		return 0;
	/* hwloc counts nanoseconds and MiB/s. */
	int rc = read_matrix(t, latency, sizeof(latency) / sizeof(*latency), 1, &t->latency_ns);

	return rc ? rc
		  : read_matrix(t, bandwidth, sizeof(bandwidth) / sizeof(*bandwidth), 1048576.0,
			    &t->bandwidth);
}
