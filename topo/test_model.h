/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: models made by hand, where a file or a tree would hide what the test is about. A
 * model is freed with topo_free(). Addresses count up in the order of the calls.
 */
#ifndef TOPO_TEST_MODEL_H
#define TOPO_TEST_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo_priv.h"

static inline struct topo *model_new(void)
{
	struct topo *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->source = TOPO_FROM_SYSROOT;
	return t;
}

static inline void *model_grow(void **array, size_t *n, size_t size)
{
	void *p = topo_grow(array, n, size);

	if (!p)
		abort();
	return p;
}

static inline void model_numa(struct topo *t, const char *cpus)
{
	struct topo_numa *n = model_grow((void **)&t->numa, &t->n_numa, sizeof(*n));

	*n = (struct topo_numa){.os_index = (int)t->n_numa - 1,
		.package = TOPO_UNKNOWN,
		.cpus = strdup(cpus),
		.memory = 1 << 30};
}

/** @return its index; parent TOPO_UNKNOWN: on root bus "ROOT", one for each NUMA node */
static inline int model_pci(
	struct topo *t, int parent, uint32_t cls, uint16_t vendor, uint16_t device, int numa)
{
	struct topo_pci *p = model_grow((void **)&t->pci, &t->n_pci, sizeof(*p));
	int at = (int)t->n_pci - 1;

	*p = (struct topo_pci){.class_code = cls,
		.vendor = vendor,
		.device = device,
		.parent = parent,
		.numa = numa,
		.bridge = cls >> 8 == 0x0604,
		.physfn = TOPO_UNKNOWN,
		.link = {.now_gts = 32, .max_gts = 32, .now_width = 16, .max_width = 16}};
	snprintf(p->bdf, sizeof(p->bdf), "%04x:%02x:00.0", at >> 8, at & 0xff);
	snprintf(p->root, sizeof(p->root), "0000:%02x", numa + 1);
	for (size_t i = 0; i < t->n_numa; i++)
		if (t->numa[i].os_index == numa)
			p->cpus = strdup(t->numa[i].cpus);
	return at;
}

static inline int model_bridge(struct topo *t, int parent, int numa)
{
	return model_pci(t, parent, 0x060400, 0x1000, 0xc030, numa);
}

static inline size_t model_gpu(struct topo *t, int parent, int numa)
{
	int pci = model_pci(t, parent, 0x030200, 0x10de, 0x2330, numa);
	struct topo_gpu *g = model_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g));

	g->pci = pci;
	snprintf(g->name, sizeof(g->name), "GPU%zu", t->n_gpus - 1);
	return t->n_gpus - 1;
}

/** layer "InfiniBand" or "Ethernet"; state 0: not recorded, 4: ACTIVE */
static inline struct topo_rdma *model_rdma(struct topo *t, const char *name, int parent, int numa,
	const char *layer, unsigned gbps, unsigned state)
{
	int pci = model_pci(t, parent, *layer == 'I' ? 0x020700 : 0x020000, 0x15b3, 0x1021, numa);
	struct topo_rdma *r = model_grow((void **)&t->rdma, &t->n_rdma, sizeof(*r));

	r->pci = pci;
	r->nic = TOPO_UNKNOWN;
	r->numa = numa;
	r->cpus = t->pci[pci].cpus ? strdup(t->pci[pci].cpus) : NULL;
	snprintf(r->name, sizeof(r->name), "%s", name);
	struct topo_rdma_port *p = model_grow((void **)&r->ports, &r->n_ports, sizeof(*p));

	p->num = 1;
	p->state = state;
	snprintf(p->state_name, sizeof(p->state_name), "%s",
		state == 4   ? "ACTIVE"
		: state == 1 ? "DOWN"
			     : "");
	snprintf(p->link_layer, sizeof(p->link_layer), "%s", layer);
	p->rate_bps = (uint64_t)gbps * 1000000000u;
	return r;
}

/** Links of both ends; peer SIZE_MAX: to an NVSwitch. */
static inline void model_fast(
	struct topo *t, enum topo_fast_kind kind, size_t gpu, size_t peer, unsigned count)
{
	for (int end = 0; end < (peer == SIZE_MAX ? 1 : 2); end++) {
		struct topo_fast *f = model_grow((void **)&t->fast, &t->n_fast, sizeof(*f));

		*f = (struct topo_fast){.kind = kind,
			.gpu = (int)(end ? peer : gpu),
			.peer = peer == SIZE_MAX ? TOPO_UNKNOWN : (int)(end ? gpu : peer),
			.peer_class = peer == SIZE_MAX ? 0x068000 : 0x030200,
			.count = count,
			.bandwidth = count * 25e9};
	}
}

/** `switches` switches on each of two NUMA nodes, each with `gpus` GPUs and `nics` NICs at 400
 * Gb/s. */
static inline struct topo *model_node(int switches, int gpus, int nics)
{
	struct topo *t = model_new();
	char name[32];
	int nic = 0;

	model_numa(t, "0-31,64-95");
	model_numa(t, "32-63,96-127");
	for (int numa = 0; numa < 2; numa++)
		for (int s = 0; s < switches; s++) {
			int sw = model_bridge(t, model_bridge(t, TOPO_UNKNOWN, numa), numa);

			for (int g = 0; g < gpus; g++)
				model_gpu(t, model_bridge(t, sw, numa), numa);
			for (int n = 0; n < nics; n++) {
				snprintf(name, sizeof(name), "mlx5_%d", nic++);
				model_rdma(t, name, model_bridge(t, sw, numa), numa, "InfiniBand",
					400, 4);
			}
		}
	return t;
}

#endif
