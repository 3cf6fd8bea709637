// SPDX-License-Identifier: Apache-2.0
/*
 * What only PCI configuration space and the IOMMU tell: request and payload sizes, relaxed
 * ordering, access control (ACS) between GPU and NIC, address translation.
 *
 * Sources: PCI Express Base Specification, Device Control, ACS and ATS capabilities; Linux
 * include/uapi/linux/pci_regs.h. Only root reads beyond the first 64 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/node_priv.h"

#define MAX_CHAIN 80
#define DEVCAP    4
#define DEVCTL    8
#define RELAXED   0x0010
#define EXT_ACS   0x000d
#define EXT_ATS   0x000f
/* ACS control: source validation, translation blocking, request and completion redirect, upstream
 * forwarding, egress control, direct translated peer-to-peer. */
#define ACS_SV       0x01
#define ACS_REDIRECT (0x04 | 0x08 | 0x10)
#define ACS_VM_HOST  0x5d
#define ATS_ENABLE   0x8000

static bool rdma_function(const struct node_dev *d)
{
	return d->function && d->rdma >= 0 && d->role != NODE_ROLE_AGGREGATION;
}

static unsigned payload(unsigned code)
{
	return code <= 5 ? 128u << code : 0;
}

/* Each NIC, and with `gpus` each GPU. */
static void each_function(
	struct node_run *c, bool gpus, void (*fn)(struct node_run *c, const struct node_dev *d))
{
	size_t before = c->findings;
	for (size_t i = 0; i < c->n->n_dev; i++) {
		const struct node_dev *d = &c->n->dev[i];
		bool twin = false;
		for (size_t k = 0; k < i; k++)
			twin = twin || (d->pci >= 0 && c->n->dev[k].pci == d->pci);
		if (!twin && (rdma_function(d) || (gpus && d->function && d->gpu >= 0)))
			fn(c, d);
	}
	if (c->findings == before)
		node_skip(c, gpus ? "not available: no GPU and no RDMA device on a PCI bus here"
				  : "not available: no RDMA device on a PCI bus here");
}

static void mrrs_of(struct node_run *c, const struct node_dev *d)
{
	struct fb_finding f = node_finding(c, d->subject);
	const struct node_config *k = node_config(c->n, d->pci, &f);
	if (k) {
		unsigned bytes = payload(node_u16(k, k->express + DEVCTL) >> 12 & 7);
		fb_find(&f,
			bytes == 4096  ? FB_CHECK_PASS
			: bytes <= 256 ? FB_CHECK_FAIL
				       : FB_CHECK_WARN,
			"MaxReadReq %u bytes", bytes);
		fb_find_expected(&f, "fewer, larger reads of memory", "4096 bytes");
		/* The upper nibble alone: 5 is 4096. */
		fb_find_remedy(&f, "until the next boot; not while traffic runs",
			"setpci -s %s CAP_EXP+8.w=5000:7000; for good: mlxconfig -d %s set "
			"ADVANCED_PCI_SETTINGS=1 MAX_ACC_OUT_READ=...",
			c->n->t->pci[d->pci].bdf, c->n->t->pci[d->pci].bdf);
	}
	node_emit(c, &f);
}

void node_mrrs(struct node_run *c)
{
	each_function(c, false, mrrs_of);
}

static void mps_of(struct node_run *c, const struct node_dev *d)
{
	struct fb_finding f = node_finding(c, d->subject);
	int chain[MAX_CHAIN];
	size_t n = node_chain(c->n->t, d->pci, chain, MAX_CHAIN);
	unsigned now = 0, best = ~0u;
	for (size_t i = 0; i < n; i++) {
		const struct node_config *k = node_config(c->n, chain[i], &f);
		if (!k)
			break;
		unsigned can = payload(node_u16(k, k->express + DEVCAP) & 7);
		now = i == 0 ? payload(node_u16(k, k->express + DEVCTL) >> 5 & 7) : now;
		best = can && can < best ? can : best;
		if (i + 1 < n)
			continue;
		fb_find(&f, now < best ? FB_CHECK_WARN : FB_CHECK_PASS, "MaxPayload %u bytes", now);
		fb_find_expected(
			&f, "the least that any function of the path can", "%u bytes", best);
		fb_find_read(&f, "%s and those of the %zu bridges above", c->n->config[d->pci].path,
			n - 1);
	}
	node_emit(c, &f);
}

void node_mps(struct node_run *c)
{
	each_function(c, true, mps_of);
}

static void relaxed_of(struct node_run *c, const struct node_dev *d)
{
	struct fb_finding f = node_finding(c, d->subject);
	const struct node_config *k = node_config(c->n, d->pci, &f);
	if (k) {
		bool on = node_u16(k, k->express + DEVCTL) & RELAXED;
		fb_find(&f, on ? FB_CHECK_PASS : FB_CHECK_WARN, "relaxed ordering %s",
			on ? "allowed" : "off");
		fb_find_expected(
			&f, "writes may pass each other; on AMD it decides bandwidth", "allowed");
	}
	node_emit(c, &f);
}

void node_relaxed_ordering(struct node_run *c)
{
	each_function(c, true, relaxed_of);
}

/* ---- ACS ------------------------------------------------------------------------------------- */

/* How a bridge stands to the traffic between GPUs and their NICs. */
enum on_path {
	OFF_PATH,
	ABOVE_PATH, /* shared by both, and not passed: the traffic turns below it */
	ON_PATH
};

static size_t raise(enum on_path *mark, int bridge, enum on_path to)
{
	size_t fresh = mark[bridge] == OFF_PATH;
	if (mark[bridge] < to)
		mark[bridge] = to;
	return fresh;
}

/* Marks the bridges of one pair. Those that meet at no bridge pass all of theirs, where no nearer
 * NIC is. @return how many were not marked before */
static size_t mark_pair(const struct topo *t, int a, int b, bool nearest, enum on_path *mark)
{
	int ca[MAX_CHAIN], cb[MAX_CHAIN];
	size_t na = node_chain(t, a, ca, MAX_CHAIN), nb = node_chain(t, b, cb, MAX_CHAIN);
	size_t ia = na, ib = nb, fresh = 0;
	for (size_t i = 1; i < na && ia == na; i++)
		for (size_t j = 1; j < nb && ia == na; j++)
			if (ca[i] == cb[j]) {
				ia = i;
				ib = j;
			}
	if (ia == na && !nearest)
		return 0;
	for (size_t i = 1; i < na; i++)
		fresh += raise(mark, ca[i], i <= ia ? ON_PATH : ABOVE_PATH);
	for (size_t j = 1; j < nb && j < ib; j++)
		fresh += raise(mark, cb[j], ON_PATH);
	return fresh;
}

/* Marks every bridge between a GPU and a NIC of this node. @return how many */
static size_t mark_shared(const struct node *n, enum on_path *mark)
{
	size_t marked = 0;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *g = &n->dev[i];
		enum topo_path best = TOPO_PATH_UNKNOWN;
		if (g->gpu < 0 || g->pci < 0)
			continue;
		for (size_t k = 0; k < n->n_dev; k++)
			if (n->dev[k].rdma >= 0 && node_path(n, g, &n->dev[k]) < best)
				best = node_path(n, g, &n->dev[k]);
		for (size_t k = 0; k < n->n_dev; k++) {
			const struct node_dev *d = &n->dev[k];
			if (d->rdma < 0 || d->pci < 0)
				continue;
			bool nearest = best == TOPO_PATH_PHB && node_path(n, g, d) == best;
			marked += mark_pair(n->t, g->pci, d->pci, nearest, mark);
		}
	}
	return marked;
}

static const char *acs_text(unsigned control, char *buf, size_t len)
{
	static const char *const names[] = {"SV", "TB", "RR", "CR", "UF", "EC", "DT"};
	size_t at = 0;
	snprintf(buf, len, "none");
	for (unsigned i = 0; i < 7 && at < len; i++)
		if (control >> i & 1)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? " " : "", names[i]);
	return buf;
}

typedef void (*judge_bridge)(struct fb_finding *f, const struct topo_pci *p, bool passed,
	unsigned acs, unsigned control);

static void each_bridge(struct node_run *c, judge_bridge judge)
{
	struct node *n = c->n;
	enum on_path *mark = calloc(n->t->n_pci + 1, sizeof(*mark));
	if (!mark || mark_shared(n, mark) == 0) {
		node_skip(c, "not available: no GPU and NIC share a switch here");
		free(mark);
		return;
	}
	for (size_t i = 0; i < n->t->n_pci; i++) {
		char subject[48];
		if (!mark[i])
			continue;
		snprintf(subject, sizeof(subject), "bridge %s", n->t->pci[i].bdf);
		struct fb_finding f = node_finding(c, subject);
		const struct node_config *k = node_config(n, (int)i, &f);
		unsigned acs = k ? node_extended(k, EXT_ACS) : 0;
		if (k && k->len <= 256)
			fb_find(&f, FB_CHECK_SKIP,
				"not visible from here: the extended configuration space is not "
				"there");
		else if (k)
			judge(&f, &n->t->pci[i], mark[i] == ON_PATH, acs,
				acs ? node_u16(k, acs + 6) : 0);
		node_emit(c, &f);
	}
	free(mark);
}

static void judge_bare(
	struct fb_finding *f, const struct topo_pci *p, bool passed, unsigned acs, unsigned control)
{
	char text[48];
	if (!acs) {
		fb_find(f, FB_CHECK_PASS, "no access control here: nothing is redirected");
		return;
	}
	bool redirect = control & ACS_REDIRECT;
	fb_find(f,
		redirect && passed               ? FB_CHECK_FAIL
		: redirect || (control & ACS_SV) ? FB_CHECK_WARN
						 : FB_CHECK_PASS,
		"ACS control 0x%02x: %s%s", control, acs_text(control, text, sizeof(text)),
		redirect && passed ? ": GPU and NIC talk by way of the root"
		: redirect         ? ": above both; what turns below it does not pass it"
				   : "");
	fb_find_expected(f, "peer traffic must turn at the switch (NCCL, Troubleshooting: PCI ACS)",
		"RR, CR and UF off");
	fb_find_remedy(f,
		"devices can then reach each other past the IOMMU; not on a host of "
		"virtual machines",
		"setpci -s %s ECAP_ACS+6.w=0; for good: ACS off in the firmware's setup", p->bdf);
}

static bool place_is(const struct node *n, enum node_place place)
{
	/* The site knows best: a guest may have been given whole switches. */
	if (n->expect.place != EXPECT_PLACE_ANY)
		return place ==
		       (n->expect.place == EXPECT_PLACE_HOST ? NODE_VM_HOST : NODE_BARE_METAL);
	return n->place == place;
}

void node_acs_baremetal(struct node_run *c)
{
	if (place_is(c->n, NODE_BARE_METAL))
		each_bridge(c, judge_bare);
	else
		node_skip(c, "not judged here: %s", c->n->place_why);
}

static void judge_host(
	struct fb_finding *f, const struct topo_pci *p, bool passed, unsigned acs, unsigned control)
{
	char text[48];
	if (!acs || !passed) {
		fb_find(f, FB_CHECK_PASS, "%s",
			acs ? "above both, not passed" : "no access control on this port");
		return;
	}
	fb_find(f, (control & ACS_VM_HOST) == ACS_VM_HOST ? FB_CHECK_PASS : FB_CHECK_FAIL,
		"ACS control 0x%02x: %s", control, acs_text(control, text, sizeof(text)));
	fb_find_expected(f, "NVIDIA AI Enterprise, GPU direct in virtual machines",
		"0x5d: SV RR CR UF DT, so that translated requests turn at the switch");
	fb_find_remedy(f, "only while no guest runs", "setpci -s %s ECAP_ACS+6.w=5d", p->bdf);
}

static void ats_of(struct node_run *c, const struct node_dev *d)
{
	struct fb_finding f = node_finding(c, d->subject);
	const struct node_config *k = node_config(c->n, d->pci, &f);
	unsigned ats = k ? node_extended(k, EXT_ATS) : 0;
	if (k && k->len <= 256) {
		fb_find(&f, FB_CHECK_SKIP,
			"not visible from here: the extended configuration space is not there");
	} else if (k && !ats) {
		fb_find(&f, FB_CHECK_WARN, "no address translation service on this function");
	} else if (k) {
		bool on = node_u16(k, ats + 6) & ATS_ENABLE;
		fb_find(&f, on ? FB_CHECK_PASS : FB_CHECK_FAIL, "address translation service %s",
			on ? "on" : "off");
	}
	fb_find_expected(
		&f, "without it every peer request goes by way of the IOMMU", "ATS enabled");
	fb_find_remedy(&f, "the card restarts", "mlxconfig -d %s set ATS_ENABLED=1; reboot",
		c->n->t->pci[d->pci].bdf);
	node_emit(c, &f);
}

void node_acs_ats_vmhost(struct node_run *c)
{
	if (!place_is(c->n, NODE_VM_HOST)) {
		node_skip(c, "not judged here: %s", c->n->place_why);
		return;
	}
	each_bridge(c, judge_host);
	each_function(c, false, ats_of);
}

/* ---- the IOMMU ------------------------------------------------------------------------------- */

/* Is there any IOMMU? @return 1, 0, -1: not told */
static int has_iommu(const struct node *n)
{
	char **names;
	int k = fb_sysroot_list(n->r, "/sys/class/iommu", &names);
	if (k >= 0)
		fb_sysroot_names_free(names);
	if (k < 0)
		return n->live ? 0 : -1;
	return k > 0;
}

static void iommu_of(struct node_run *c, const struct node_dev *d)
{
	struct node *n = c->n;
	char path[96], real[512], type[32];
	struct fb_finding f = node_finding(c, d->subject);
	int any = has_iommu(n);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group", n->t->pci[d->pci].bdf);
	fb_find_read(&f, "%s, /sys/class/iommu", path);
	fb_find_expected(&f, "translation costs every transfer a look-up", "none or identity");
	int rc = fb_sysroot_realpath(n->r, path, real, sizeof(real));
	if (rc < 0 && any == 0) {
		fb_find(&f, FB_CHECK_PASS, "no IOMMU");
	} else if (rc < 0) {
		char why[160];
		fb_find(&f, FB_CHECK_SKIP, "%s", node_why(n, path, rc, why, sizeof(why)));
	} else if (node_read(n, &f, type, sizeof(type), "%s/type", real) > 0) {
		bool pass = strcmp(type, "identity") == 0;
		bool vfio = strstr(n->t->pci[d->pci].driver, "vfio") != NULL;
		fb_find(&f, pass || vfio ? FB_CHECK_PASS : FB_CHECK_WARN, "%s%s", type,
			vfio ? ": given to a virtual machine" : "");
	}
	node_emit(c, &f);
}

void node_iommu_mode(struct node_run *c)
{
	each_function(c, true, iommu_of);
}
