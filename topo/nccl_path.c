// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL's classes from our path types and the links beside PCIe, after the rules of NCCL's
 * src/graph/paths.cc: shortest way in hops, a GPU may be passed once and over NVLink only, NVSwitch
 * is no hop of a GPU. Broadcom switches that NCCL flattens into one stay PXB here: GPUDirect RDMA
 * is used for both alike.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_path.h"
#include "topo/topo_priv.h"

const char *topo_nccl_name(enum topo_nccl c)
{
	static const char *const names[] = {
		"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "?"};

	return c <= TOPO_NCCL_UNKNOWN ? names[c] : "?";
}

bool topo_nccl_gdr(enum topo_nccl c)
{
	return c <= TOPO_NCCL_PXB;
}

/* What a GPU has beside PCIe; by index in gpus[]. */
struct beside {
	bool *direct; /* n_gpus x n_gpus */
	bool *c2c;
};

static bool beside_init(struct beside *b, const struct topo *t)
{
	b->direct = calloc(t->n_gpus * t->n_gpus + 1, sizeof(*b->direct));
	b->c2c = calloc(t->n_gpus + 1, sizeof(*b->c2c));
	if (!b->direct || !b->c2c)
		return false;
	for (size_t i = 0; i < t->n_fast; i++) {
		const struct topo_fast *f = &t->fast[i];

		if (f->gpu < 0 || (size_t)f->gpu >= t->n_gpus)
			continue;
		if (f->peer < 0)
			b->c2c[f->gpu] = b->c2c[f->gpu] || f->kind == TOPO_FAST_C2C;
		else if ((size_t)f->peer < t->n_gpus)
			b->direct[(size_t)f->gpu * t->n_gpus + (size_t)f->peer] =
				b->direct[(size_t)f->peer * t->n_gpus + (size_t)f->gpu] = true;
	}
	return true;
}

static enum topo_nccl from_numa(
	const struct topo *t, const struct topo_dev *a, const struct topo_dev *b)
{
	if (t->given)
		return TOPO_NCCL_UNKNOWN;
	return (a->numa > 0 ? a->numa : 0) == (b->numa > 0 ? b->numa : 0) ? TOPO_NCCL_PHB
									  : TOPO_NCCL_SYS;
}

static enum topo_nccl plain(
	const struct topo *t, const struct topo_dev *a, const struct topo_dev *b)
{
	if (a->type != TOPO_DEV_GPU && b->type != TOPO_DEV_GPU && a->pci >= 0 && a->pci == b->pci)
		return TOPO_NCCL_LOC;
	switch (topo_path(t, a, b)) {
	case TOPO_PATH_SELF: return TOPO_NCCL_LOC;
	case TOPO_PATH_NV: return TOPO_NCCL_NVL;
	case TOPO_PATH_PIX: return TOPO_NCCL_PIX;
	case TOPO_PATH_PXB: return TOPO_NCCL_PXB;
	case TOPO_PATH_PHB:
	case TOPO_PATH_NODE: return TOPO_NCCL_PHB;
	case TOPO_PATH_SYS: return TOPO_NCCL_SYS;
	default: return from_numa(t, a, b);
	}
}

static enum topo_nccl with_c2c(const struct beside *s, const struct topo_dev *a,
	const struct topo_dev *b, enum topo_nccl c)
{
	const struct topo_dev *gpu = a->type == TOPO_DEV_GPU ? a : b, *other = gpu == a ? b : a;

	if (c != TOPO_NCCL_PHB || gpu->type != TOPO_DEV_GPU || !s->c2c[gpu->index])
		return c;
	if (other->type != TOPO_DEV_GPU)
		return TOPO_NCCL_P2C;
	return s->c2c[other->index] ? TOPO_NCCL_C2C : c;
}

/** GPUs that no link joins, but one GPU between has links to both. A source that gives its own
 * matrix tells of neighbours only there. */
static void nvb(const struct topo *t, const struct beside *s, size_t n, enum topo_nccl *c)
{
	size_t g = t->n_gpus;

	for (size_t a = 0; a < g; a++)
		for (size_t h = 0; h < g; h++) {
			bool near = t->given ? c[a * n + h] == TOPO_NCCL_NVL : s->direct[a * g + h];

			if (h == a || !near)
				continue;
			for (size_t b = 0; b < g; b++) {
				bool far = t->given ? c[h * n + b] == TOPO_NCCL_NVL
						    : s->direct[h * g + b];

				if (b != a && b != h && far && c[a * n + b] > TOPO_NCCL_NVB)
					c[a * n + b] = TOPO_NCCL_NVB;
			}
		}
}

/** GPUs may send through an NVLink peer that is nearest to the NIC, on PCIe switches alone. */
static void pxn(const struct topo *t, const struct topo_dev *devs, size_t n, enum topo_nccl *c)
{
	for (size_t k = t->n_gpus; k < n; k++) {
		enum topo_nccl least = TOPO_NCCL_UNKNOWN;

		for (size_t p = 0; p < t->n_gpus; p++)
			if (c[k * n + p] < least)
				least = c[k * n + p];
		if (least > TOPO_NCCL_PXB)
			continue;
		for (size_t g = 0; g < t->n_gpus; g++) {
			double own = topo_path_bandwidth(t, &devs[g], &devs[k]);

			/* c[k][p], NIC to GPU, stays as the tree has it: no relay is seen there. */
			for (size_t p = 0; p < t->n_gpus; p++) {
				if (p == g || c[k * n + p] != least || c[p * n + g] > TOPO_NCCL_NVL)
					continue;
				double peer = topo_path_bandwidth(t, &devs[p], &devs[k]);

				if (c[k * n + g] > TOPO_NCCL_PXN ||
					(c[k * n + g] > least && own > 0 && peer > own))
					c[g * n + k] = TOPO_NCCL_PXN;
			}
		}
	}
}

int topo_nccl_classes(
	const struct topo *t, const struct topo_dev *devs, size_t n, enum topo_nccl *classes)
{
	struct beside s;
	int rc = beside_init(&s, t) ? 0 : -ENOMEM;

	for (size_t a = 0; !rc && a < n; a++)
		for (size_t b = a; b < n; b++)
			classes[a * n + b] = classes[b * n + a] =
				with_c2c(&s, &devs[a], &devs[b], plain(t, &devs[a], &devs[b]));
	if (!rc) {
		nvb(t, &s, n, classes);
		pxn(t, devs, n, classes);
	}
	free(s.direct);
	free(s.c2c);
	return rc;
}
