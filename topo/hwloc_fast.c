// SPDX-License-Identifier: Apache-2.0
/*
 * NVLink and xGMI out of hwloc's bandwidth matrices. hwloc adds up the links between two ends: 20
 * GB/s each for NVLink 1, 25 for NVLink 2 to 4 (its topology-nvml.c), so the sum tells their
 * number. For xGMI it writes 100 GB/s between any two GPUs of a hive, and the hops in a matrix of
 * their own: only neighbours count, with one link.
 */
#include <errno.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stdio.h>
#include <string.h>

#include "topo/hwloc_xml.h"

/** Index in gpus[] of a GPU's OS device or PCI function. */
static int gpu_of(const struct topo *t, hwloc_obj_t obj)
{
	while (obj && obj->type != HWLOC_OBJ_PCI_DEVICE)
		obj = obj->type == HWLOC_OBJ_OS_DEVICE ? obj->parent : NULL;
	int pci = obj ? topo_hwloc_index(obj->userdata) : TOPO_UNKNOWN;

	for (size_t i = 0; i < t->n_gpus && pci >= 0; i++)
		if (t->gpus[i].pci == pci)
			return (int)i;
	return TOPO_UNKNOWN;
}

static unsigned nvlinks(const struct topo *t, int gpu, uint64_t mbps)
{
	const struct topo_pci *p = &t->pci[t->gpus[gpu].pci];
	/* GB100 and later (10de:29xx): NVLink 5, 50 GB/s each way. */
	uint64_t each = p->device >> 8 == 0x29 && mbps % 50000 == 0 ? 50000
			: mbps % 25000 == 0                         ? 25000
								    : 20000;

	return mbps % each == 0 && mbps / each <= 64 ? (unsigned)(mbps / each) : 0;
}

static int add_link(
	struct topo *t, enum topo_fast_kind kind, int gpu, hwloc_obj_t peer, uint64_t mbps)
{
	struct topo_fast *f = topo_grow((void **)&t->fast, &t->n_fast, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->kind = kind;
	f->gpu = gpu;
	f->peer = gpu_of(t, peer);
	f->count = kind == TOPO_FAST_NVLINK ? nvlinks(t, gpu, mbps) : 1;
	f->bandwidth = (double)mbps * 1e6;
	int pci = f->peer >= 0                         ? t->gpus[f->peer].pci
		  : peer->type == HWLOC_OBJ_PCI_DEVICE ? topo_hwloc_index(peer->userdata)
						       : TOPO_UNKNOWN;

	if (pci >= 0) {
		topo_copy(f->peer_bdf, sizeof(f->peer_bdf), t->pci[pci].bdf);
		f->peer_class = t->pci[pci].class_code;
	}
	/* hwloc knows it by the links; its class may be hidden (a container's view of /sys). */
	if (f->peer < 0 && peer->subtype && strcmp(peer->subtype, "NVSwitch") == 0)
		f->peer_class = 0x068000;
	return 0;
}

static uint64_t hops(const struct hwloc_distances_s *h, hwloc_obj_t a, hwloc_obj_t b)
{
	int i = TOPO_UNKNOWN, j = TOPO_UNKNOWN;

	for (unsigned k = 0; h && k < h->nbobjs; k++) {
		if (h->objs[k] == a)
			i = (int)k;
		if (h->objs[k] == b)
			j = (int)k;
	}
	return i >= 0 && j >= 0 ? h->values[(size_t)i * h->nbobjs + (size_t)j] : 1;
}

static int read_matrix(struct topo *t, const char *name, enum topo_fast_kind kind)
{
	struct hwloc_distances_s *d = NULL, *h = NULL;
	unsigned nd = 1, nh = 1;
	int rc = 0;

	if (hwloc_distances_get_by_name(t->hwloc, name, &nd, &d, 0) != 0 || nd == 0 || !d)
		return 0;
	if (kind == TOPO_FAST_XGMI &&
		(hwloc_distances_get_by_name(t->hwloc, "XGMIHops", &nh, &h, 0) != 0 || nh == 0))
		h = NULL;
	for (unsigned i = 0; i < d->nbobjs && !rc; i++) {
		int gpu = d->objs[i] ? gpu_of(t, d->objs[i]) : TOPO_UNKNOWN;

		for (unsigned j = 0; j < d->nbobjs && gpu >= 0 && !rc; j++) {
			uint64_t v = d->values[(size_t)i * d->nbobjs + j];

			/* Two OS devices of one GPU (CUDA beside NVML) are no link. */
			if (i == j || !v || !d->objs[j] || gpu_of(t, d->objs[j]) == gpu)
				continue;
			if (hops(h, d->objs[i], d->objs[j]) == 1)
				rc = add_link(t, kind, gpu, d->objs[j], v);
		}
	}
	if (h)
		hwloc_distances_release(t->hwloc, h);
	hwloc_distances_release(t->hwloc, d);
	return rc;
}

int topo_read_fast(struct topo *t)
{
	int rc = read_matrix(t, "NVLinkBandwidth", TOPO_FAST_NVLINK);

	return rc ? rc : read_matrix(t, "XGMIBandwidth", TOPO_FAST_XGMI);
}
