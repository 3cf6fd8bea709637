// SPDX-License-Identifier: Apache-2.0
/*
 * The node's shape against most nodes of its kind, and the topology file that NCCL is given against
 * the node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/fingerprint.h"
#include "topo/node/node_priv.h"

/* What differs from a node that has the majority's shape, in words. */
static void differs(struct node *n, const char *fingerprint, char *buf, size_t len)
{
	struct topo_shape *here = NULL, *there = NULL;
	struct topo_diff diff = {.n = 0};
	struct fb_err e = {0};
	size_t at = 0;
	snprintf(buf, len, "another shape");
	for (size_t i = 0; i < n->fleet.n && !there; i++)
		if (strcmp(fb_json_str(n->fleet.peer[i], "fingerprint", ""), fingerprint) == 0 &&
			topo_shape_from_json(n->fleet.peer[i], "another node", &there, &e) < 0)
			there = NULL;
	if (there && topo_shape_make(n->t, &here) == 0 && topo_shape_diff(there, here, &diff) == 0)
		for (size_t i = 0; i < diff.n && at < len; i++)
			at += (size_t)snprintf(
				buf + at, len - at, "%s%s", at ? "; " : "", diff.e[i].text);
	free(diff.e);
	topo_shape_free(here);
	topo_shape_free(there);
}

void node_topo_fingerprint(struct node_run *c)
{
	struct node *n = c->n;
	char want[160] = "", text[250], source[64];
	const char *own = fb_json_str(node_summary(n), "fingerprint", NULL);
	unsigned of = 0;
	struct fb_finding f = node_finding(c, NULL);
	fb_find_read(&f, "classes, makers, bridges and NUMA nodes of GPUs and NICs");
	if (!own || (n->t->n_pci == 0 && n->t->n_numa == 0)) {
		node_skip(c, "%s", n->live ? "not available: no PCI bus here" : "not recorded");
		return;
	}
	enum node_vote vote = node_majority(n, "fingerprint", want, sizeof(want), &of);
	if (n->expect.fingerprint[0]) {
		bool same = strcmp(own, n->expect.fingerprint) == 0;
		fb_find(&f, same ? FB_CHECK_PASS : FB_CHECK_FAIL, "%s", own);
		fb_find_expected(&f, n->expect.path, "%s", n->expect.fingerprint);
	} else if (vote == NODE_VOTE_NONE) {
		fb_find(&f, FB_CHECK_INFO, "%s; no other node to compare with", own);
	} else if (strcmp(own, want) == 0) {
		fb_find(&f, FB_CHECK_PASS, "%s", own);
		snprintf(source, sizeof(source), "most of %u nodes of its kind", of);
		fb_find_expected(&f, source, "%s", want);
	} else {
		differs(n, want, text, sizeof(text));
		fb_find(&f, vote == NODE_VOTE_WON ? FB_CHECK_FAIL : FB_CHECK_WARN, "%s", text);
		snprintf(source, sizeof(source), "%s %u nodes of its kind",
			vote == NODE_VOTE_WON ? "most of" : "one of", of);
		fb_find_expected(&f, source, "%s", want);
	}
	node_emit(c, &f);
}

/* ---- NCCL_TOPO_FILE -------------------------------------------------------------------------- */

/* Devices of the file against the node: GPUs and RDMA functions by address. */
struct told {
	unsigned devices, absent, moved;
	char first[160];
};

static void compare_device(
	const struct node *n, const struct topo *file, int pci, const char *what, struct told *d)
{
	const struct topo_pci *p = &file->pci[pci], *own = NULL;
	d->devices++;
	for (size_t i = 0; i < n->t->n_pci && !own; i++)
		if (strcmp(n->t->pci[i].bdf, p->bdf) == 0)
			own = &n->t->pci[i];
	if (!own) {
		d->absent++;
		if (!d->first[0])
			snprintf(d->first, sizeof(d->first), "%s %s is not in this node", what,
				p->bdf);
	} else if (p->numa >= 0 && own->numa >= 0 && p->numa != own->numa) {
		d->moved++;
		if (!d->first[0])
			snprintf(d->first, sizeof(d->first),
				"%s %s is on NUMA node %d, the file says %d", what, p->bdf,
				own->numa, p->numa);
	}
}

static void compare_file(const struct node *n, const char *path, struct fb_finding *f)
{
	char real[4096];
	struct topo *file = NULL;
	struct fb_err e = {0};
	struct told d = {.devices = 0};
	if (fb_sysroot_path(n->r, path, real, sizeof(real)) != 0)
		snprintf(real, sizeof(real), "%s", path);
	if (!n->live && !fb_sysroot_exists(n->r, "%s", path)) {
		fb_find(f, FB_CHECK_SKIP, "not recorded: NCCL_TOPO_FILE=%s", path);
		return;
	}
	if (topo_load_nccl_xml(real, &file, &e) < 0) {
		fb_find(f, FB_CHECK_FAIL, "NCCL_TOPO_FILE=%.80s: %.160s", path, e.msg);
		return;
	}
	for (size_t i = 0; i < file->n_gpus; i++)
		if (file->gpus[i].pci >= 0)
			compare_device(n, file, file->gpus[i].pci, "GPU", &d);
	for (size_t i = 0; i < file->n_nics; i++)
		if (file->nics[i].pci >= 0)
			compare_device(n, file, file->nics[i].pci, "NIC", &d);
	for (size_t i = 0; i < file->n_rdma; i++)
		if (file->rdma[i].pci >= 0)
			compare_device(n, file, file->rdma[i].pci, "NIC", &d);
	topo_free(file);
	if (d.absent || d.moved)
		fb_find(f, FB_CHECK_FAIL, "%s (%u of %u devices differ)", d.first,
			d.absent + d.moved, d.devices);
	else if (n->place == NODE_GUEST)
		fb_find(f, FB_CHECK_PASS,
			"its %u devices are this node's; it tells what the guest hides", d.devices);
	else
		fb_find(f, FB_CHECK_WARN,
			"set, and its %u devices are where the node itself says: of no use, and "
			"wrong after the next change",
			d.devices);
}

void node_topo_file(struct node_run *c)
{
	char path[512];
	struct fb_finding f = node_finding(c, NULL);
	const char *set = node_env(c->n, "NCCL_TOPO_FILE", path, sizeof(path));
	fb_find_read(&f, "NCCL_TOPO_FILE, /etc/nccl.conf");
	fb_find_expected(&f, "NCCL believes the file and not the node",
		"unset, or this node's devices where they are");
	if (!set && !c->n->live && !fb_sysroot_exists(c->n->r, "/env"))
		fb_find(&f, FB_CHECK_SKIP, "not recorded: the environment");
	else if (!set)
		fb_find(&f, FB_CHECK_PASS, "not set");
	else
		compare_file(c->n, set, &f);
	node_emit(c, &f);
}
