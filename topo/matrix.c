// SPDX-License-Identifier: Apache-2.0
/*
 * The matrix as `nvidia-smi topo -m` prints it, tabs and all, so that what reads that reads this;
 * then what each row is, and how NCCL classes each pair.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_path.h"
#include "topo/topo_priv.h"

bool topo_matrix_fits(const struct topo *t, size_t n)
{
	/* Each pair of GPUs looks through all links: 64 GPUs, each linked to each, are 17 million.
	 */
	return n <= TOPO_MAX_MATRIX && t->n_gpus * t->n_gpus * t->n_fast <= 64000000;
}

static double fast_sum(const struct topo *t, size_t gpu, int peer)
{
	double sum = 0;

	for (size_t i = 0; i < t->n_fast; i++) {
		const struct topo_fast *f = &t->fast[i];

		if (f->gpu != (int)gpu || f->peer != peer ||
			(peer < 0 && f->peer_class >> 8 != 0x0680))
			continue;
		if (f->bandwidth <= 0)
			return 0;
		sum += f->bandwidth;
	}
	return sum;
}

double topo_fast_bandwidth(const struct topo *t, size_t a, size_t b)
{
	double ab = fast_sum(t, a, (int)b), ba = fast_sum(t, b, (int)a);

	if (ab > 0 || ba > 0)
		return ab > ba ? ab : ba;
	ab = fast_sum(t, a, TOPO_UNKNOWN);
	ba = fast_sum(t, b, TOPO_UNKNOWN);
	return ab < ba ? ab : ba;
}

const char *topo_path_text(const struct topo *t, const struct topo_dev *a, const struct topo_dev *b,
	char *buf, size_t len)
{
	enum topo_path p = topo_path(t, a, b);
	unsigned links = p == TOPO_PATH_NV ? topo_fast_links(t, a->index, b->index) : 0;

	if (links)
		snprintf(buf, len, "NV%u", links);
	else
		snprintf(buf, len, "%s", topo_path_name(p));
	return buf;
}

/** nvidia-smi's row names: GPU0, NIC0. */
static const char *row_name(const struct topo *t, size_t i, char *buf, size_t len)
{
	if (i < t->n_gpus)
		snprintf(buf, len, "GPU%zu", i);
	else
		snprintf(buf, len, "NIC%zu", i - t->n_gpus);
	return buf;
}

static void smi_rows(
	const struct topo *t, const struct topo_dev *devs, size_t n, struct fb_strbuf *o)
{
	char name[32];

	for (size_t i = 0; i < n; i++)
		fb_strbuf_printf(o, "\t%s", row_name(t, i, name, sizeof(name)));
	fb_strbuf_add(o, t->n_gpus ? "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" : "\n");
	for (size_t i = 0; i < n; i++) {
		fb_strbuf_add(o, row_name(t, i, name, sizeof(name)));
		for (size_t k = 0; k < n; k++)
			fb_strbuf_printf(o, "\t%s",
				i == k ? " X "
				       : topo_path_text(t, &devs[i], &devs[k], name, sizeof(name)));
		if (devs[i].type == TOPO_DEV_GPU) {
			snprintf(name, sizeof(name), "%d", devs[i].numa);
			fb_strbuf_printf(o, "\t%s\t%s\t\tN/A",
				devs[i].cpus && *devs[i].cpus ? devs[i].cpus : "N/A",
				devs[i].numa >= 0 ? name : "N/A");
		} else if (t->n_gpus) {
			fb_strbuf_add(o, "\t\t\t\t");
		}
		fb_strbuf_add(o, "\n");
	}
}

static void legends(
	const struct topo *t, const struct topo_dev *devs, size_t n, struct fb_strbuf *o)
{
	char name[TOPO_NAME];

	fb_strbuf_add(o, "\nLegend:\n\n"
			 "  X    = the device itself\n"
			 "  SYS  = between NUMA nodes, over the link between sockets\n"
			 "  NODE = between PCIe host bridges of one NUMA node\n"
			 "  PHB  = through a PCIe host bridge (the CPU)\n"
			 "  PXB  = through several PCIe bridges, not the host bridge\n"
			 "  PIX  = through at most one PCIe bridge or switch\n"
			 "  NV#  = over # NVLinks or xGMI links\n"
			 "  ?    = the tree does not tell\n");
	if (n == t->n_gpus)
		return;
	fb_strbuf_add(o, "\nNIC Legend:\n\n");
	for (size_t i = t->n_gpus; i < n; i++) {
		topo_copy(name, sizeof(name), devs[i].name);
		fb_strbuf_printf(o, "  NIC%zu: %s\n", i - t->n_gpus, name);
	}
}

static void device_rows(
	const struct topo *t, const struct topo_dev *devs, size_t n, struct fb_strbuf *o)
{
	char name[TOPO_NAME], row[32], numa[16];

	fb_strbuf_printf(o, "\nDevices:\n  %-7s%-16s%-15s%-12s%-6s%-14s%s\n", "row", "name",
		"PCI address", "kind", "NUMA", "interface", "CPUs");
	for (size_t i = 0; i < n; i++) {
		const struct topo_dev *d = &devs[i];

		topo_copy(name, sizeof(name), d->name);
		snprintf(numa, sizeof(numa), "%d", d->numa);
		fb_strbuf_printf(o, "  %-7s%-15s %-14s %-12s%-6s", row_name(t, i, row, sizeof(row)),
			name, d->pci >= 0 ? t->pci[d->pci].bdf : "-", topo_dev_kind(t, d),
			d->numa >= 0 ? numa : "?");
		topo_copy(name, sizeof(name),
			d->type == TOPO_DEV_RDMA ? t->rdma[d->index].netdev : "");
		fb_strbuf_printf(
			o, "%-13s %s\n", name[0] ? name : "-", d->cpus && *d->cpus ? d->cpus : "?");
	}
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

static void gdr_rows(const struct topo *t, size_t n, const enum topo_nccl *c, struct fb_strbuf *o)
{
	char row[32];

	fb_strbuf_add(o, "\nGPUDirect RDMA by default (PXB and nearer):\n");
	for (size_t g = 0; g < t->n_gpus; g++) {
		size_t found = 0;

		fb_strbuf_printf(o, "  %-7s", row_name(t, g, row, sizeof(row)));
		/* What the NIC sees: PXN is a way round, not a place. */
		for (size_t k = t->n_gpus; k < n; k++)
			if (topo_nccl_gdr(c[k * n + g]))
				fb_strbuf_printf(o, "%s%s", found++ ? " " : "",
					row_name(t, k, row, sizeof(row)));
		fb_strbuf_add(o, found ? "\n" : "none\n");
	}
}

static void nccl_rows(
	const struct topo *t, const struct topo_dev *devs, size_t n, struct fb_strbuf *o)
{
	enum topo_nccl *c = calloc(n * n, sizeof(*c));
	char row[32];

	if (!c || topo_nccl_classes(t, devs, n, c) != 0) {
		o->failed = true;
		free(c);
		return;
	}
	fb_strbuf_add(o, "\nHow NCCL classes them (from row to column):\n");
	for (size_t i = 0; i < n; i++)
		fb_strbuf_printf(o, "\t%s", row_name(t, i, row, sizeof(row)));
	fb_strbuf_add(o, "\n");
	for (size_t i = 0; i < n; i++) {
		fb_strbuf_add(o, row_name(t, i, row, sizeof(row)));
		for (size_t k = 0; k < n; k++)
			fb_strbuf_printf(o, "\t%s", topo_nccl_name(c[i * n + k]));
		fb_strbuf_add(o, "\n");
	}
	fb_strbuf_add(o,
		"  LOC itself, NVL NVLink or xGMI, NVB NVLink through one GPU between, C2C both on "
		"one CPU's NVLink-C2C,\n"
		"  PIX and PXB as above, P2C GPU over C2C to the CPU of the NIC, PXN over NVLink to "
		"the GPU beside the NIC,\n"
		"  PHB through the CPU (NODE too), SYS between sockets\n");
	if (t->n_gpus && n > t->n_gpus)
		gdr_rows(t, n, c, o);
	free(c);
}

void topo_matrix(const struct topo *t, struct fb_strbuf *o)
{
	struct topo_dev *devs;
	size_t n;

	if (topo_devices(t, &devs, &n) != 0) {
		o->failed = true;
		return;
	}
	if (!topo_matrix_fits(t, n))
		fb_strbuf_printf(o, "%zu devices and %zu links: so large a matrix is left out.\n",
			n, t->n_fast);
	else if (n == 0)
		fb_strbuf_add(o, "No GPU and no network device is visible from here.\n");
	if (n && topo_matrix_fits(t, n)) {
		smi_rows(t, devs, n, o);
		legends(t, devs, n, o);
		device_rows(t, devs, n, o);
		nccl_rows(t, devs, n, o);
	}
	free(devs);
}
