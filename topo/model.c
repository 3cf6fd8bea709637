// SPDX-License-Identifier: Apache-2.0
/*
 * The model's memory: growth, release and look-ups. Knows nothing of where the data come from.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

void *topo_grow(void **array, size_t *n, size_t size)
{
	/* Capacity is the next power of two, so it need not be kept: grow when n is one. */
	if ((*n & (*n - 1)) == 0) {
		size_t cap = *n ? *n * 2 : 1;
		void *p = reallocarray(*array, cap, size);

		if (!p)
			return NULL;
		*array = p;
	}
	void *slot = (char *)*array + *n * size;

	memset(slot, 0, size);
	(*n)++;
	return slot;
}

void topo_warn(struct topo *t, const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	/* A hostile tree may be wrong in every file: a few dozen complaints tell enough. */
	if (t->n_warnings >= 64)
		return;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	char **slot = topo_grow((void **)&t->warnings, &t->n_warnings, sizeof(*slot));

	if (slot)
		*slot = text;
	else
		free(text);
}

void topo_free(struct topo *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_packages; i++) {
		free(t->packages[i].cpus);
		free(t->packages[i].model);
	}
	for (size_t i = 0; i < t->n_numa; i++) {
		free(t->numa[i].cpus);
		free(t->numa[i].kind);
	}
	for (size_t i = 0; i < t->n_pci; i++)
		free(t->pci[i].cpus);
	for (size_t i = 0; i < t->n_nics; i++)
		free(t->nics[i].cpus);
	for (size_t i = 0; i < t->n_rdma; i++) {
		free(t->rdma[i].cpus);
		free(t->rdma[i].ports);
	}
	for (size_t i = 0; i < t->n_gpus; i++)
		free(t->gpus[i].model);
	for (size_t i = 0; i < t->n_warnings; i++)
		free(t->warnings[i]);
	free(t->packages);
	free(t->numa);
	free(t->distance);
	free(t->pci);
	free(t->nics);
	free(t->rdma);
	free(t->gpus);
	free(t->warnings);
	free(t->allowed);
	for (size_t i = 0; i < t->n_extra; i++) {
		free(t->extra[i].name);
		free(t->extra[i].value);
	}
	free(t->extra);
	free(t->fast);
	free(t->given);
	free(t->latency_ns);
	free(t->bandwidth);
	if (t->hwloc)
		hwloc_topology_destroy(t->hwloc);
	free(t);
}

void topo_copy(char *dst, size_t len, const char *src)
{
	size_t n = strnlen(src, len - 1);

	for (size_t i = 0; i < n; i++)
		dst[i] = (unsigned char)src[i] < 0x20 || src[i] == 0x7f ? '?' : src[i];
	dst[n] = '\0';
}

const struct topo_rdma *topo_find_rdma(const struct topo *t, const char *name)
{
	for (size_t i = 0; i < t->n_rdma; i++)
		if (strcmp(t->rdma[i].name, name) == 0)
			return &t->rdma[i];
	return NULL;
}

const struct topo_nic *topo_find_nic(const struct topo *t, const char *name)
{
	for (size_t i = 0; i < t->n_nics; i++)
		if (strcmp(t->nics[i].name, name) == 0)
			return &t->nics[i];
	return NULL;
}

const struct topo_numa *topo_find_numa(const struct topo *t, int os_index)
{
	for (size_t i = 0; i < t->n_numa; i++)
		if (t->numa[i].os_index == os_index)
			return &t->numa[i];
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Names of the interfaces that stand in the matrix as an RDMA device's ports, sorted. NULL without
 * memory. */
static const char **carried_by_rdma(const struct topo *t, size_t *n)
{
	size_t most = 1, k = 0;

	for (size_t i = 0; i < t->n_rdma; i++)
		most += 1 + t->rdma[i].n_ports;
	const char **names = calloc(most, sizeof(*names));

	for (size_t i = 0; i < t->n_rdma && names; i++) {
		const struct topo_rdma *d = &t->rdma[i];

		if (d->soft)
			continue;
		names[k++] = d->netdev;
		for (size_t j = 0; j < d->n_ports; j++)
			names[k++] = d->ports[j].netdev;
	}
	if (k)
		qsort(names, k, sizeof(*names), compare_names);
	*n = k;
	return names;
}

int topo_devices(const struct topo *t, struct topo_dev **devs, size_t *n)
{
	size_t k = 0, n_carried = 0;
	struct topo_dev *d = calloc(t->n_gpus + t->n_rdma + t->n_nics + 1, sizeof(*d));
	const char **carried = carried_by_rdma(t, &n_carried);

	*devs = NULL;
	*n = 0;
	if (!d || !carried) {
		free(d);
		free(carried);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->n_gpus; i++) {
		const struct topo_pci *p = &t->pci[t->gpus[i].pci];

		d[k++] = (struct topo_dev){
			TOPO_DEV_GPU, i, t->gpus[i].name, t->gpus[i].pci, p->numa, p->cpus};
	}
	for (size_t i = 0; i < t->n_rdma; i++) {
		const struct topo_rdma *r = &t->rdma[i];

		d[k++] = (struct topo_dev){TOPO_DEV_RDMA, i, r->name, r->pci, r->numa, r->cpus};
	}
	for (size_t i = 0; i < t->n_nics; i++) {
		const struct topo_nic *nic = &t->nics[i];

		const char *name = nic->name;

		if (nic->is_virtual ||
			bsearch(&name, carried, n_carried, sizeof(*carried), compare_names))
			continue;
		d[k++] = (struct topo_dev){
			TOPO_DEV_NETDEV, i, nic->name, nic->pci, nic->numa, nic->cpus};
	}
	free(carried);
	*devs = d;
	*n = k;
	return 0;
}

size_t topo_count_nics(const struct topo_dev *devs, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += devs[i].type != TOPO_DEV_GPU;
	return k;
}

const char *topo_dev_kind(const struct topo *t, const struct topo_dev *d)
{
	if (d->type == TOPO_DEV_GPU)
		return "gpu";
	if (d->type == TOPO_DEV_NETDEV) {
		unsigned a = t->nics[d->index].arphrd;
		const struct topo_pci *p = d->pci >= 0 ? &t->pci[d->pci] : NULL;

		/* A file that names a NIC by its function alone tells its class. */
		if (!a && p && p->class_code >> 8 == 0x0207)
			return "infiniband";
		if (!a && p && p->vendor == 0x1d0f && topo_does_rdma(p))
			return "efa";
		if (!a && p && p->class_code >> 8 == 0x0200)
			return "ethernet";
		return a == 1 ? "ethernet" : a == 32 ? "ipoib" : "unknown";
	}
	const struct topo_rdma *r = &t->rdma[d->index];

	/* include/rdma/ib_verbs.h, enum rdma_node_type: RDMA_NODE_RNIC 4, UNSPECIFIED 7 (EFA). */
	if (r->node_type == 4)
		return r->soft ? "soft-iwarp" : "iwarp";
	if (r->soft)
		return "soft-roce";
	if (r->pci >= 0 && t->pci[r->pci].vendor == 0x1d0f)
		return "efa";
	if (r->n_ports && strcmp(r->ports[0].link_layer, "InfiniBand") == 0)
		return "infiniband";
	if (r->n_ports && strcmp(r->ports[0].link_layer, "Ethernet") == 0)
		return "roce";
	return "unknown";
}

bool topo_cpulist_sane(const char *list)
{
	unsigned v = 0;

	if (*list < '0' || *list > '9')
		return false;
	for (const char *s = list; *s; s++) {
		if (*s >= '0' && *s <= '9') {
			v = v * 10 + (unsigned)(*s - '0');
			if (v > TOPO_MAX_CPU)
				return false;
		} else if (*s == '-' || *s == ',') {
			v = 0;
		} else {
			return false;
		}
	}
	return true;
}
