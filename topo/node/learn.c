// SPDX-License-Identifier: Apache-2.0
/*
 * machine.ini of a good node: what it has, each device by its address. What it does not tell stays
 * away: a guess would become a rule.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/fingerprint.h"
#include "topo/node/node_priv.h"

/* The same number of all GPUs, else -1. */
static int common_links(const struct node *n)
{
	int links = -1;
	for (size_t i = 0; i < n->n_dev; i++) {
		if (n->dev[i].gpu < 0)
			continue;
		int own = node_nvlinks(n, &n->dev[i]);
		if (own < 0 || (links >= 0 && own != links))
			return -1;
		links = own;
	}
	return links;
}

/* An even number of Mb/s: what a rate is read back as. */
static void print_rate(FILE *out, const char *key, uint64_t bps)
{
	if (bps)
		fprintf(out, "%s = %.6gGb/s\n", key, (double)bps / 1e9);
}

static void print_link(FILE *out, const struct topo_link *l, bool gpu)
{
	/* An idle GPU's link is slow; what it can is what it must. */
	double gts = gpu ? l->max_gts : l->now_gts;
	unsigned width = gpu ? l->max_width : l->now_width;
	if (gts > 0 && width)
		fprintf(out, "link = %.4g GT/s x%u\n", gts, width);
}

static uint64_t common_rate(const struct node *n)
{
	uint64_t rate = 0;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->role != NODE_ROLE_COMPUTE || n->t->rdma[d->rdma].n_ports == 0)
			continue;
		uint64_t own = n->t->rdma[d->rdma].ports[0].rate_bps;
		if (rate && own != rate)
			return 0;
		rate = own;
	}
	return rate;
}

static void print_gpus(struct node *n, FILE *out)
{
	const struct gpu_facts *g = &n->gpus;
	int links = common_links(n), ecc = g->n ? g->gpu[0].ecc : -1;
	double power = g->n ? g->gpu[0].power_limit : -1;
	enum gpu_fabric fabric = g->n ? g->gpu[0].fabric : GPU_FABRIC_UNKNOWN;
	bool zero = g->n && g->gpu[0].cluster_zero == 1;
	for (size_t i = 1; i < g->n; i++) {
		ecc = g->gpu[i].ecc == ecc ? ecc : -1;
		power = g->gpu[i].power_limit >= power ? power : g->gpu[i].power_limit;
		fabric = g->gpu[i].fabric == fabric ? fabric : GPU_FABRIC_UNKNOWN;
	}
	const char *model = fb_json_str(node_summary(n), "gpu_model", NULL);
	fprintf(out, "gpus = %zu\n", node_count_gpus(n));
	if (model && strlen(model) < sizeof(n->expect.gpu_model))
		fprintf(out, "gpu-model = %s\n", model);
	if (links > 0)
		fprintf(out, "nvlinks = %d\n", links);
	if (power > 0)
		fprintf(out, "power-cap = %.0f\n", power);
	if (ecc >= 0)
		fprintf(out, "ecc = %s\n", ecc ? "yes" : "no");
	if (fabric == GPU_FABRIC_COMPLETED)
		fprintf(out, "fabric = %s\n", zero ? "yes" : "cluster");
}

static void print_machine(struct node *n, FILE *out)
{
	char text[128];
	const struct topo *t = n->t;
	const json_t *s = node_summary(n);
	size_t nodes = 0;
	fprintf(out,
		"# What check node --expect holds other nodes against; learned from one node.\n"
		"[machine]\n");
	if (n->product[0] && strlen(n->product) < sizeof(n->expect.name))
		fprintf(out, "name = %s\n", n->product);
	print_gpus(n, out);
	fprintf(out, "nics = %zu\n", node_count_role(n, NODE_ROLE_COMPUTE));
	print_rate(out, "nic-rate", common_rate(n));
	if (t->n_packages > 0) {
		for (size_t i = 0; i < t->n_numa; i++)
			nodes += node_own_memory(t, i);
		fprintf(out, "sockets = %zu\n", t->n_packages);
		if (nodes > 0 && nodes % t->n_packages == 0)
			fprintf(out, "numa-per-socket = %zu\n", nodes / t->n_packages);
	}
	/* Already without what firmware keeps: as built in, it was at most 2.5 % more. */
	if (node_memory(n) >= 1u << 20)
		fprintf(out, "memory = %lluM\n", (unsigned long long)(node_memory(n) >> 20));
	if (n->place != NODE_GUEST)
		fprintf(out, "place = %s\n", n->place == NODE_VM_HOST ? "vm-host" : "bare-metal");
	if (node_driver(n, "nvidia", text, sizeof(n->expect.driver_nvidia)))
		fprintf(out, "driver-nvidia = %s\n", text);
	if (node_driver(n, "mlx5_core", text, sizeof(n->expect.driver_mlx5)))
		fprintf(out, "driver-mlx5 = %s\n", text);
	if (node_driver(n, "kernel", text, sizeof(n->expect.kernel)))
		fprintf(out, "kernel = %s\n", text);
	if (node_value(s, "fingerprint", text, sizeof(text)) && t->n_pci > 0)
		fprintf(out, "fingerprint = %s\n", text);
}

static void print_device(const struct node *n, const struct node_dev *d, FILE *out)
{
	const struct topo_pci *p = &n->t->pci[d->pci];
	fprintf(out, "\n[%s %s]\n", d->gpu >= 0 ? "gpu" : "nic", p->bdf);
	fprintf(out, "name = %s\n", d->name);
	if (p->numa >= 0)
		fprintf(out, "numa = %d\n", p->numa);
	print_link(out, &p->link, d->gpu >= 0);
	if (d->rdma >= 0 && n->t->rdma[d->rdma].n_ports > 0 &&
		n->t->rdma[d->rdma].ports[0].state == 4)
		print_rate(out, "rate", n->t->rdma[d->rdma].ports[0].rate_bps);
}

int node_learn(struct node *n, FILE *out, struct fb_err *e)
{
	print_machine(n, out);
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		bool twin = false;
		for (size_t k = 0; k < i; k++)
			twin = twin || (d->pci >= 0 && n->dev[k].pci == d->pci);
		if (d->pci >= 0 && !twin && (d->gpu >= 0 || d->role == NODE_ROLE_COMPUTE))
			print_device(n, d, out);
	}
	return fflush(out) == 0 && !ferror(out)
		       ? 0
		       : fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot write to standard output");
}
