// SPDX-License-Identifier: Apache-2.0
/*
 * Links of GPUs and NICs: width, speed, the weakest hop above them, what the kernel complained
 * about, functions that fell off the bus, and what error reporting counted.
 *
 * Only the paths of GPUs and NICs are looked at: a management controller's link may be as slow as
 * it likes. A GPU lowers its own link when idle; other devices do not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/node_priv.h"

#define MAX_CHAIN 80

/* What a link must reach, and why. */
struct wanted {
	double gts;
	unsigned width;
	const char *source;
};

static double lesser(double a, double b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

static struct wanted wanted_of(const struct node *n, const struct node_dev *d)
{
	const struct topo *t = n->t;
	const struct topo_pci *p = &t->pci[d->pci];
	const struct topo_pci *up = p->parent >= 0 ? &t->pci[p->parent] : NULL;
	const struct expect_dev *x = node_expect_find(&n->expect, p->bdf);
	const struct expect_link *kind = d->gpu >= 0                    ? &n->expect.gpu_link
					 : d->role == NODE_ROLE_COMPUTE ? &n->expect.nic_link
									: NULL;
	struct wanted w = {.gts = p->link.max_gts,
		.width = p->link.max_width,
		.source = "the best that both ends can"};
	if (up && !node_emulated(up)) {
		w.gts = lesser(up->link.max_gts, w.gts);
		if (up->link.max_width && up->link.max_width < w.width)
			w.width = up->link.max_width;
	}
	if (x && x->link.width) {
		w = (struct wanted){x->link.gts, x->link.width, n->expect.path};
	} else if (kind && kind->width) {
		w = (struct wanted){kind->gts, kind->width, n->expect.path};
	}
	return w;
}

/* Calls fn for every GPU and NIC that is a PCI function of its own. */
static void each_link(struct node_run *c, void (*fn)(struct node_run *c, const struct node_dev *d))
{
	size_t before = c->findings;
	for (size_t i = 0; i < c->n->n_dev; i++) {
		const struct node_dev *d = &c->n->dev[i];
		bool twin = false; /* both ports of a card may stand on one function */
		for (size_t k = 0; k < i; k++)
			twin = twin || (d->pci >= 0 && c->n->dev[k].pci == d->pci);
		if (d->function && !twin)
			fn(c, d);
	}
	if (c->findings == before)
		node_skip(c, "not available: no GPU and no NIC on a PCI bus here");
}

/* @return false: the link cannot be judged, and f is a skip */
static bool judgeable(
	const struct node_run *c, const struct node_dev *d, struct fb_finding *f, const char *what)
{
	const struct topo_pci *p = &c->n->t->pci[d->pci];
	fb_find_read(f, "/sys/bus/pci/devices/%s/{current,max}_link_%s and the port's above",
		p->bdf, what);
	if (node_emulated(p) ||
		(p->parent >= 0 && node_emulated(&c->n->t->pci[p->parent]) && !p->link.now_gts)) {
		fb_find(f, FB_CHECK_SKIP, "not available: an emulated port's link means nothing");
		return false;
	}
	return true;
}

static void width_of(struct node_run *c, const struct node_dev *d)
{
	const struct topo_pci *p = &c->n->t->pci[d->pci];
	struct fb_finding f = node_finding(c, d->subject);
	struct wanted w = wanted_of(c->n, d);
	if (!judgeable(c, d, &f, "width"))
		;
	else if (!p->link.now_width)
		fb_find(&f, FB_CHECK_SKIP, "not available: the kernel does not tell the width");
	else if (!w.width)
		fb_find(&f, FB_CHECK_SKIP, "not available: neither end tells its best width");
	else
		fb_find(&f, p->link.now_width < w.width ? FB_CHECK_FAIL : FB_CHECK_PASS, "x%u",
			p->link.now_width);
	if (w.width)
		fb_find_expected(&f, w.source, "x%u", w.width);
	node_emit(c, &f);
}

void node_link_width(struct node_run *c)
{
	each_link(c, width_of);
}

/* Under load a GPU's link must be at its best; idle it need not be, and unknown is unknown. */
static void slow_gpu(
	const struct node_run *c, const struct topo_pci *p, struct fb_finding *f, const char *text)
{
	const struct gpu_fact *g = gpu_facts_find(&c->n->gpus, p->bdf);
	if (g && g->pstate == 0 && g->util > 0)
		fb_find(f, FB_CHECK_FAIL, "%s in P0, %d %% busy", text, g->util);
	else if (g && g->pstate >= 0)
		fb_find(f, FB_CHECK_INFO, "%s; idle (P%d, %d %% busy): not judged", text, g->pstate,
			g->util > 0 ? g->util : 0);
	else
		fb_find(f, FB_CHECK_WARN, "%s; idle? GPUs lower their link without load", text);
	fb_find_remedy(f, NULL, "look again while the GPU copies (nvbandwidth, bandwidthTest)");
}

static void speed_of(struct node_run *c, const struct node_dev *d)
{
	const struct topo_pci *p = &c->n->t->pci[d->pci];
	struct fb_finding f = node_finding(c, d->subject);
	struct wanted w = wanted_of(c->n, d);
	char text[48];
	snprintf(text, sizeof(text), "%.4g GT/s", p->link.now_gts);
	if (!judgeable(c, d, &f, "speed"))
		;
	else if (!(p->link.now_gts > 0))
		fb_find(&f, FB_CHECK_SKIP, "not available: the kernel does not tell the speed");
	else if (!(w.gts > 0))
		fb_find(&f, FB_CHECK_SKIP, "not available: neither end tells its best speed");
	else if (p->link.now_gts >= w.gts)
		fb_find(&f, FB_CHECK_PASS, "%s", text);
	else if (d->gpu >= 0)
		slow_gpu(c, p, &f, text);
	else
		fb_find(&f, FB_CHECK_FAIL, "%s", text);
	if (w.gts > 0)
		fb_find_expected(&f, w.source, "%.4g GT/s", w.gts);
	node_emit(c, &f);
}

void node_link_speed(struct node_run *c)
{
	each_link(c, speed_of);
}

/* ---- the hops above -------------------------------------------------------------------------- */

/* Root and downstream ports tell the link below them, which the function there tells too. */
static bool is_upstream(const struct topo *t, int pci)
{
	int chain[MAX_CHAIN];
	return node_chain(t, pci, chain, MAX_CHAIN) % 2 == 0;
}

/* The fastest link of a GPU or NIC below a bridge, bytes/s; 0: none tells. */
static double fastest_below(const struct node *n, int bridge)
{
	double best = 0;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->pci < 0)
			continue;
		const struct topo_link *l = &n->t->pci[d->pci].link;
		bool below = false;
		for (int up = n->t->pci[d->pci].parent; up >= 0; up = n->t->pci[up].parent)
			below = below || up == bridge;
		double bw = topo_link_bandwidth(d->gpu >= 0 ? l->max_gts : l->now_gts,
			d->gpu >= 0 ? l->max_width : l->now_width);
		if (below && bw > best)
			best = bw;
	}
	return best;
}

static void uplink(struct node_run *c, int bridge)
{
	const struct topo *t = c->n->t;
	const struct topo_pci *p = &t->pci[bridge], *up = &t->pci[p->parent];
	char subject[96];
	snprintf(subject, sizeof(subject), "switch %s below %s", p->bdf, up->bdf);
	struct fb_finding f = node_finding(c, subject);
	fb_find_read(&f, "links of %s, of %s and of the devices below", p->bdf, up->bdf);
	double now = topo_link_bandwidth(p->link.now_gts, p->link.now_width);
	double port = topo_link_bandwidth(up->link.max_gts, up->link.max_width);
	double need = fastest_below(c->n, bridge);
	/* The port above may be of a newer generation than all that is below. */
	double want = need > 0 ? lesser(port, need) : port;
	if (!(now > 0)) {
		fb_find(&f, FB_CHECK_SKIP, "not available: the kernel does not tell the uplink");
	} else if (!(want > 0)) {
		fb_find(&f, FB_CHECK_SKIP,
			"not available: neither the port above nor a device below tells its best");
	} else {
		/* A slot that could carry more is worth knowing, and no fault of the switch. */
		bool slow = now < want * 0.999, spare = now < port * 0.999;
		fb_find(&f,
			slow    ? FB_CHECK_WARN
			: spare ? FB_CHECK_INFO
				: FB_CHECK_PASS,
			"uplink %.4g GT/s x%u: %.2g GB/s%s", p->link.now_gts, p->link.now_width,
			now / 1e9, slow || !spare ? "" : ", below what its slot can carry");
		fb_find_expected(&f,
			need > 0 ? "the fastest device below it" : "what the port above can",
			"%.1f GB/s", want / 1e9);
	}
	node_emit(c, &f);
}

void node_pci_chain(struct node_run *c)
{
	const struct topo *t = c->n->t;
	bool *seen = calloc(t->n_pci + 1, sizeof(*seen));
	size_t before = c->findings;
	for (size_t i = 0; i < c->n->n_dev && seen; i++) {
		int chain[MAX_CHAIN];
		const struct node_dev *d = &c->n->dev[i];
		size_t k = d->function ? node_chain(t, d->pci, chain, MAX_CHAIN) : 0;
		for (size_t j = 1; j + 1 < k; j++) {
			if (seen[chain[j]] || !is_upstream(t, chain[j]))
				continue;
			seen[chain[j]] = true;
			uplink(c, chain[j]);
		}
	}
	free(seen);
	if (c->findings == before)
		node_skip(c, "not available: no switch above a GPU or NIC is visible");
}

/* ---- what the kernel said -------------------------------------------------------------------- */

/* The PCI address in a log line that is one of a GPU or NIC of ours, or above one. */
static const struct node_dev *device_in_line(const struct node *n, const char *line, size_t len)
{
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		const char *bdf = d->pci >= 0 ? n->t->pci[d->pci].bdf : NULL;
		if (bdf && memmem(line, len, bdf, strlen(bdf)))
			return d;
	}
	return NULL;
}

/* Linux drivers/pci/pci.c: "63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link
 * at 0000:3a:00.0 (capable of 126.016 Gb/s with 8.0 GT/s PCIe x16 link)". */
void node_kernel_limited(struct node_run *c)
{
	struct node *n = c->n;
	size_t before = c->findings;
	if (!n->log) {
		node_skip(c, "%s", n->log_why);
		return;
	}
	for (const char *line = n->log; *line;) {
		size_t len = strcspn(line, "\n");
		const char *said = memmem(line, len, "available PCIe bandwidth, limited by", 36);
		const struct node_dev *d = said ? device_in_line(n, line, len) : NULL;
		if (d) {
			struct fb_finding f = node_finding(c, d->subject);
			const char *from = memchr(line, ']', len);
			from = from ? from + 1 : line;
			from += strspn(from, " ");
			fb_find(&f, FB_CHECK_FAIL, "%.*s", (int)(line + len - from), from);
			fb_find_read(&f, "%s", n->log_read);
			fb_find_expected(&f, "the kernel itself", "no such line");
			node_emit(c, &f);
		}
		line += len + (line[len] == '\n');
	}
	if (c->findings > before)
		return;
	struct fb_finding f = node_finding(c, NULL);
	fb_find_read(&f, "%s", n->log_read);
	if (n->log_from_boot)
		fb_find(&f, FB_CHECK_PASS, "the log since boot says nothing of it");
	else
		fb_find(&f, FB_CHECK_SKIP,
			"not available: the kernel log no longer reaches back to boot");
	node_emit(c, &f);
}

void node_rev_ff(struct node_run *c)
{
	struct node *n = c->n;
	const struct topo *t = n->t;
	size_t before = c->findings;
	unsigned told = 0;
	for (size_t i = 0; i < t->n_pci; i++) {
		char head[64], path[96], rev[16];
		const char *name = t->pci[i].bdf;
		struct fb_finding f;
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", name);
		memset(head, 0, sizeof(head));
		bool config = fb_sysroot_read(n->r, path, head, sizeof(head)) >= 4;
		bool gone = config && memcmp(head, "\xff\xff\xff\xff", 4) == 0;
		bool revision = fb_sysroot_readf(n->r, rev, sizeof(rev),
					"/sys/bus/pci/devices/%s/revision", name) > 0;
		gone = gone || (revision && strcmp(rev, "0xff") == 0) || t->pci[i].vendor == 0xffff;
		told += config || revision;
		if (!gone)
			continue;
		for (size_t k = 0; k < n->n_dev; k++)
			if (n->dev[k].pci == (int)i)
				name = n->dev[k].subject;
		f = node_finding(c, name);
		fb_find(&f, FB_CHECK_FAIL, "every read gives ff: the function fell off the bus");
		fb_find_expected(&f, "PCI: no vendor has the identity ffff", "its own identity");
		fb_find_read(&f, "%s", path);
		node_emit(c, &f);
	}
	if (c->findings > before)
		return;
	struct fb_finding f = node_finding(c, NULL);
	fb_find_read(&f, "/sys/bus/pci/devices/*/{config,revision}");
	if (told)
		fb_find(&f, FB_CHECK_PASS, "%u functions answer", told);
	else
		fb_find(&f, FB_CHECK_SKIP, "%s",
			t->n_pci ? "not recorded: neither config nor revision"
				 : "not available: no PCI bus here");
	node_emit(c, &f);
}

/* ---- advanced error reporting ---------------------------------------------------------------- */

/* "TOTAL_ERR_FATAL 3" of a file; without that line, the sum of all. -1: none */
static int64_t aer_total(const char *text)
{
	const char *total = strstr(text, "TOTAL_ERR");
	if (total) {
		total += strcspn(total, " \n");
		return strtoll(total, NULL, 10);
	}
	return -1;
}

static bool aer_read(const struct node *n, const char *bdf, const char *kind, int64_t *now,
	int64_t *grew, struct fb_finding *f)
{
	char text[2048], path[96];
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/aer_dev_%s", bdf, kind);
	if (node_read(n, f, text, sizeof(text), "%s", path) < 0)
		return false;
	*now = aer_total(text);
	*grew = *now >= 0 ? node_grew(n, path, *now) : -1;
	if (*now < 0)
		fb_find(f, FB_CHECK_ERROR, "%s has no line of totals", path);
	return *now >= 0;
}

static void aer_of(struct node_run *c, const struct node_dev *d)
{
	struct node *n = c->n;
	const char *bdf = n->t->pci[d->pci].bdf;
	struct fb_finding f = node_finding(c, d->subject);
	int64_t corr, corr_grew, nonfatal, nonfatal_grew, fatal, fatal_grew;
	if (aer_read(n, bdf, "correctable", &corr, &corr_grew, &f) &&
		aer_read(n, bdf, "nonfatal", &nonfatal, &nonfatal_grew, &f) &&
		aer_read(n, bdf, "fatal", &fatal, &fatal_grew, &f)) {
		bool window = n->window.ns > 0 && corr_grew >= 0;
		double s = window ? (double)n->window.ns / 1e9 : (double)n->uptime_s;
		double rate = s > 0 ? (double)(window ? corr_grew : corr) / s : 0;
		bool bad = window ? nonfatal_grew > 0 || fatal_grew > 0 : nonfatal > 0 || fatal > 0;
		fb_find(&f,
			bad        ? FB_CHECK_FAIL
			: rate > 1 ? FB_CHECK_WARN
				   : FB_CHECK_PASS,
			"fatal %lld, nonfatal %lld, correctable %lld%s", (long long)fatal,
			(long long)nonfatal, (long long)corr,
			window ? " (judged by their growth in the window)" : " since boot");
		fb_find_read(
			&f, "/sys/bus/pci/devices/%s/aer_dev_{correctable,nonfatal,fatal}", bdf);
		fb_find_expected(&f, "PCIe: uncorrectable errors lose data",
			"fatal and nonfatal 0, correctable at most one a second");
	}
	node_emit(c, &f);
}

void node_aer(struct node_run *c)
{
	each_link(c, aer_of);
}
