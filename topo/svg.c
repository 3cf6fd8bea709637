// SPDX-License-Identifier: Apache-2.0
/*
 * A picture of the node: packages hold NUMA nodes, NUMA nodes hold their PCI roots, switches, GPUs
 * and network devices; a line's width is its PCIe bandwidth; a GPU and its NICs bear their rail.
 * Self-contained SVG, no scripts, every
 * text escaped and cut to its box.
 *
 * First the rows of each NUMA node are made from the model, then the boxes get their places, then
 * all is written: nothing is measured twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "topo/plan.h"
#include "topo/svg_priv.h"

enum row_kind { ROW_ROOT, ROW_SWITCH, ROW_GPU, ROW_RDMA, ROW_SOFT, ROW_NET, ROW_MORE };

struct row {
	enum row_kind kind;
	int depth;
	char title[96], sub[96], right[64];
	double bw;     /* of its link, bytes/s; 0: unknown */
	bool low;      /* its link runs below its best */
	int rail;      /* TOPO_UNKNOWN: none */
	bool left_out; /* a NIC that the plan excludes */
};

/* One NUMA node, or the devices of no known node. */
struct box {
	int node;    /* index in numa[], or TOPO_UNKNOWN */
	int package; /* index in packages[], or TOPO_UNKNOWN */
	struct row *rows;
	size_t n_rows;
	unsigned drives;
	double x, y, h;
};

enum {
	BOX_W = 420, /* a NUMA node's width */
	ROW_H = 44,  /* a device */
	LINE_H = 24, /* a root bus or switch */
	STEP = 22,   /* indentation */
	HEAD_H = 52, /* a NUMA node's own text */
	GAP = 16,
	MAX_ROWS = 96,
};

struct picture {
	const struct topo *t;
	struct fb_strbuf *o;
	struct box *boxes;
	size_t n_boxes;
	bool *wanted; /* by PCI index: a device of the picture is at or below it */
	int *first_kid, *next_kid;
	int *root_numa;
	struct topo_plan *plan;
	double w, h;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static struct row *add_row(struct picture *p, struct box *b, enum row_kind kind, int depth)
{
	if (b->n_rows >= MAX_ROWS) {
		struct row *last = &b->rows[b->n_rows - 1];

		last->kind = ROW_MORE;
		last->depth = 0;
		snprintf(last->title, sizeof(last->title), "more devices than fit here");
		last->sub[0] = last->right[0] = '\0';
		return NULL;
	}
	struct row *r = topo_grow((void **)&b->rows, &b->n_rows, sizeof(*r));

	if (!r) {
		p->o->failed = true;
		return NULL;
	}
	r->kind = kind;
	r->depth = depth < 6 ? depth : 6;
	r->rail = TOPO_UNKNOWN;
	return r;
}

static void set_link(struct picture *p, struct row *r, int pci, bool gpu)
{
	if (pci < 0)
		return;
	const struct topo_pci *f = &p->t->pci[pci];
	double gts = gpu && f->link.max_gts > 0 ? f->link.max_gts : f->link.now_gts;
	unsigned width = gpu && f->link.max_width ? f->link.max_width : f->link.now_width;

	r->bw = topo_link_bandwidth(gts, width);
	r->low = !gpu && topo_link_downtrained(p->t, f);
	if (r->bw > 0)
		snprintf(r->right, sizeof(r->right), "%g GT/s x%u · %.1f GB/s", gts, width,
			r->bw / 1e9);
}

/** The NIC's part in the plan: its rail, or that it has none. Without GPUs there is no plan. */
static void set_nic_role(
	const struct picture *p, struct row *r, enum topo_dev_type type, size_t index)
{
	for (size_t i = 0; p->plan->n_gpus && i < p->plan->n_nics; i++) {
		const struct topo_plan_nic *n = &p->plan->nics[i];
		const struct topo_dev *d = &p->plan->devs[n->dev];

		if (d->type != type || d->index != index)
			continue;
		r->rail = n->rail;
		r->left_out = n->role == TOPO_NIC_EXCLUDED;
	}
}

static void set_gpu_rail(const struct picture *p, struct row *r, size_t gpu)
{
	const struct topo_plan_gpu *g = gpu < p->plan->n_gpus ? &p->plan->gpus[gpu] : NULL;

	if (g && !g->ambiguous && g->n_nics)
		r->rail = p->plan->nics[g->nics[0]].rail;
}

static void rate_text(char *buf, size_t len, uint64_t bps)
{
	if (bps)
		snprintf(buf, len, " · %g Gb/s", (double)bps / 1e9);
	else
		buf[0] = '\0';
}

static void rdma_row(struct picture *p, struct box *b, const struct topo_rdma *d, int depth)
{
	const struct topo *t = p->t;
	struct topo_dev dev = {
		TOPO_DEV_RDMA, (size_t)(d - t->rdma), d->name, d->pci, d->numa, d->cpus};
	struct row *r = add_row(p, b, d->soft ? ROW_SOFT : ROW_RDMA, depth);
	const struct topo_rdma_port *port = d->n_ports ? &d->ports[0] : NULL;
	char rate[32];

	if (!r)
		return;
	rate_text(rate, sizeof(rate), port && !d->soft ? port->rate_bps : 0);
	snprintf(r->title, sizeof(r->title), "%.40s%s%.40s", d->name,
		d->netdev[0] ? d->soft ? " on " : " · " : "", d->netdev);
	snprintf(r->sub, sizeof(r->sub), "%s%s%s%s%s", topo_dev_kind(t, &dev), rate,
		port && port->state_name[0] ? " · " : "", port ? port->state_name : "",
		d->n_ports > 1 ? " · several ports" : "");
	if (!d->soft)
		set_link(p, r, d->pci, false);
	set_nic_role(p, r, TOPO_DEV_RDMA, dev.index);
}

static void net_row(struct picture *p, struct box *b, size_t nic, int depth)
{
	const struct topo *t = p->t;
	const struct topo_nic *n = &t->nics[nic];
	struct row *r = add_row(p, b, ROW_NET, depth);
	char rate[32];

	if (!r)
		return;
	rate_text(rate, sizeof(rate), n->rate_bps);
	snprintf(r->title, sizeof(r->title), "%.60s", n->name);
	snprintf(r->sub, sizeof(r->sub), "interface%s%s%s%s%.30s", rate, n->state[0] ? " · " : "",
		n->state, n->driver[0] ? " · " : "", n->driver);
	set_link(p, r, n->pci, false);
	set_nic_role(p, r, TOPO_DEV_NETDEV, nic);
	for (size_t i = 0; i < t->n_rdma; i++)
		if (t->rdma[i].soft && t->rdma[i].nic == (int)nic)
			rdma_row(p, b, &t->rdma[i], depth + 1);
}

static bool rdma_carries(const struct topo *t, int pci)
{
	for (size_t i = 0; i < t->n_rdma; i++)
		if (!t->rdma[i].soft && t->rdma[i].pci == pci)
			return true;
	return false;
}

static void device_rows(struct picture *p, struct box *b, int pci, int depth)
{
	const struct topo *t = p->t;

	for (size_t i = 0; i < t->n_gpus; i++) {
		if (t->gpus[i].pci != pci)
			continue;
		struct row *r = add_row(p, b, ROW_GPU, depth);
		const char *maker = topo_vendor_name(t->pci[pci].vendor);
		const char *model = t->gpus[i].model;

		if (!r)
			return;
		snprintf(r->title, sizeof(r->title), "%s  %.60s", t->gpus[i].name,
			model   ? strncmp(model, "NVIDIA ", 7) == 0 ? model + 7 : model
			: maker ? maker
				: "");
		char fast[64];

		topo_svg_fast_text(t, i, fast, sizeof(fast));
		snprintf(r->sub, sizeof(r->sub), "%s%s", t->pci[pci].bdf, fast);
		set_link(p, r, pci, true);
		set_gpu_rail(p, r, i);
	}
	for (size_t i = 0; i < t->n_rdma; i++)
		if (!t->rdma[i].soft && t->rdma[i].pci == pci)
			rdma_row(p, b, &t->rdma[i], depth);
	if (rdma_carries(t, pci)) {
		/* The interface is in the RDMA device's title; software devices on it still show.
		 */
		for (size_t i = 0; i < t->n_rdma; i++)
			if (t->rdma[i].soft && t->rdma[i].pci == pci)
				rdma_row(p, b, &t->rdma[i], depth + 1);
		return;
	}
	for (size_t i = 0; i < t->n_nics; i++)
		if (t->nics[i].pci == pci)
			net_row(p, b, i, depth);
}

/**
 * A bridge gets a row only where paths meet, with two or more wanted functions below it, and where
 * a switch hangs on a switch: levels are root port 0, upstream port 1, downstream port 2,
 * upstream 3.
 */
static void tree_rows(struct picture *p, struct box *b, int i, int depth, int level)
{
	const struct topo_pci *f = &p->t->pci[i];
	int kids = 0;

	if (!p->wanted[i] || level > 80 || p->o->failed)
		return;
	for (int k = p->first_kid[i]; k >= 0; k = p->next_kid[k])
		kids += p->wanted[k];
	if (f->bridge && (kids > 1 || (level >= 3 && level % 2 == 1))) {
		struct row *r = add_row(p, b, ROW_SWITCH, depth);

		if (!r)
			return;
		/* NCCL's files know no root ports: their bridges are switches. */
		bool sw = level % 2 || p->t->source == TOPO_FROM_NCCL_XML;

		snprintf(r->title, sizeof(r->title), "%s %s", sw ? "switch" : "bridge", f->bdf);
		set_link(p, r, i, false);
		depth++;
	} else if (!f->bridge) {
		device_rows(p, b, i, depth);
	}
	for (int k = p->first_kid[i]; k >= 0; k = p->next_kid[k])
		tree_rows(p, b, k, depth, level + 1);
}

static bool in_box(const struct picture *p, const struct box *b, int numa)
{
	return b->node >= 0 ? numa == p->t->numa[b->node].os_index : !topo_find_numa(p->t, numa);
}

static void fill_box(struct picture *p, struct box *b)
{
	const struct topo *t = p->t;
	const struct topo_pci *last = NULL;

	for (size_t i = 0; i < t->n_pci; i++) {
		const struct topo_pci *f = &t->pci[i];

		if (in_box(p, b, f->numa) && f->class_code >> 8 == 0x0108)
			b->drives++;
		if (f->parent >= 0 || !p->wanted[i])
			continue;
		if (!in_box(p, b, p->root_numa[i]))
			continue;
		if (f->root[0] && (!last || strcmp(last->root, f->root) != 0)) {
			struct row *r = add_row(p, b, ROW_ROOT, 0);

			if (r)
				snprintf(r->title, sizeof(r->title), "PCI root %s", f->root);
		}
		last = f;
		tree_rows(p, b, (int)i, f->root[0] ? 1 : 0, 0);
	}
	for (size_t i = 0; i < t->n_rdma; i++)
		if (t->rdma[i].pci < 0 && in_box(p, b, t->rdma[i].numa))
			rdma_row(p, b, &t->rdma[i], 0);
	for (size_t i = 0; i < t->n_nics; i++)
		if (t->nics[i].pci < 0 && !t->nics[i].is_virtual && in_box(p, b, t->nics[i].numa))
			net_row(p, b, i, 0);
}

static bool mark_wanted(struct picture *p)
{
	const struct topo *t = p->t;
	size_t n = t->n_pci + 1;

	p->wanted = calloc(n, sizeof(*p->wanted));
	p->first_kid = calloc(n, sizeof(int));
	p->root_numa = topo_root_numa(t);
	p->next_kid = calloc(n, sizeof(int));
	if (!p->wanted || !p->first_kid || !p->next_kid || !p->root_numa)
		return false;
	for (size_t i = 0; i < n; i++)
		p->first_kid[i] = p->next_kid[i] = TOPO_UNKNOWN;
	for (size_t i = t->n_pci; i-- > 0;)
		if (t->pci[i].parent >= 0) {
			p->next_kid[i] = p->first_kid[t->pci[i].parent];
			p->first_kid[t->pci[i].parent] = (int)i;
		}
#define WANT(index)                                                               \
	for (int up = (index); up >= 0 && !p->wanted[up]; up = t->pci[up].parent) \
		p->wanted[up] = true;
	for (size_t i = 0; i < t->n_gpus; i++)
		WANT(t->gpus[i].pci)
	for (size_t i = 0; i < t->n_rdma; i++)
		WANT(t->rdma[i].pci)
	for (size_t i = 0; i < t->n_nics; i++)
		WANT(t->nics[i].pci)
#undef WANT
	return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

static double row_height(const struct row *r)
{
	return r->kind == ROW_ROOT || r->kind == ROW_SWITCH || r->kind == ROW_MORE ? LINE_H : ROW_H;
}

static double box_height(const struct box *b)
{
	double h = HEAD_H;

	for (size_t i = 0; i < b->n_rows; i++)
		h += row_height(&b->rows[i]);
	return h + 10;
}

static bool make_boxes(struct picture *p)
{
	const struct topo *t = p->t;

	p->boxes = calloc(t->n_numa + 1, sizeof(*p->boxes));
	if (!p->boxes)
		return false;
	for (size_t i = 0; i < t->n_numa; i++) {
		struct box *b = &p->boxes[p->n_boxes];

		*b = (struct box){.node = (int)i, .package = t->numa[i].package};
		fill_box(p, b);
		b->h = box_height(b);
		p->n_boxes++;
	}
	struct box *b = &p->boxes[p->n_boxes];

	*b = (struct box){.node = TOPO_UNKNOWN, .package = TOPO_UNKNOWN};
	fill_box(p, b);
	b->h = box_height(b);
	if (b->n_rows)
		p->n_boxes++;
	return true;
}

/** Give the boxes of one package (or of none) their places in two columns from y on. @return the y
 * below them; *found when there were any */
static double place_group(
	struct picture *p, int package, double x, double y, int columns, bool *found)
{
	double col_y[4] = {y, y, y, y};
	int k = 0;

	*found = false;
	for (size_t i = 0; i < p->n_boxes; i++) {
		struct box *b = &p->boxes[i];

		if (b->package != package)
			continue;
		b->x = x + (k % columns) * (BOX_W + GAP);
		b->y = col_y[k % columns];
		col_y[k % columns] += b->h + GAP;
		k++;
		*found = true;
	}
	for (int c = 0; c < columns; c++)
		if (col_y[c] > y)
			y = col_y[c];
	return y;
}

/* ---- writing --------------------------------------------------------------------------------- */

/** Escaped, and cut to about `width` pixels at `size` pixels a letter (DejaVu Sans: 0.6 em mean).
 */
static void text(struct picture *p, double x, double y, double size, const char *extra,
	double width, const char *s)
{
	size_t max = (size_t)(width / (size * 0.58)), n = 0;
	char cut[256];
	const char *c = s;

	/* Count letters, not bytes, so that a cut never splits one. */
	while (*c && n < max && (size_t)(c - s) < sizeof(cut) - 8) {
		do
			c++;
		while ((*c & 0xc0) == 0x80);
		n++;
	}
	size_t len = (size_t)(c - s);

	memcpy(cut, s, len);
	snprintf(cut + len, sizeof(cut) - len, "%s", *c ? "…" : "");
	fb_strbuf_printf(
		p->o, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" %s>", x, y, size, extra);
	fb_strbuf_add_xml(p->o, cut);
	fb_strbuf_add(p->o, "</text>\n");
}

static void rect(struct picture *p, double x, double y, double w, double h, const char *style)
{
	fb_strbuf_printf(p->o,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" %s/>\n", x, y,
		w, h, style);
}

static const char *row_style(enum row_kind kind)
{
	switch (kind) {
	case ROW_GPU: return TOPO_SVG_GPU;
	case ROW_RDMA: return "fill=\"#d3e4f5\" stroke=\"#0b5394\"";
	case ROW_SOFT: return "fill=\"#fff2cc\" stroke=\"#b45f06\" stroke-dasharray=\"5 3\"";
	case ROW_NET: return "fill=\"#ececec\" stroke=\"#666666\"";
	default: return "fill=\"none\" stroke=\"none\"";
	}
}

/** 1 GB/s and less: 1.5 pixels; 63 GB/s (Gen5 x16): 8. */
static double line_width(double bw)
{
	double w = bw > 0 ? 1.5 + bw / 63e9 * 6.5 : 1.2;

	return w < 9 ? w : 9;
}

static void row_link(struct picture *p, const struct row *r, double x0, double from, double mid)
{
	const char *color = r->low ? "#cc0000" : r->bw > 0 ? "#555555" : "#aaaaaa";

	/* The trunk is thin; the stub carries the bandwidth. */
	fb_strbuf_printf(p->o,
		"<path d=\"M%.1f %.1fV%.1f\" stroke=\"#999999\" stroke-width=\"1.2\" fill=\"none\"/>\n",
		x0, from, mid);
	fb_strbuf_printf(p->o, "<path d=\"M%.1f %.1fh%d\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n",
		x0, mid, STEP - 8, color, line_width(r->bw));
}

static void write_rows(struct picture *p, const struct box *b)
{
	double y = b->y + HEAD_H, start[8] = {0};

	for (size_t i = 0; i < b->n_rows; i++) {
		const struct row *r = &b->rows[i];
		double x = b->x + 14 + r->depth * STEP, h = row_height(r),
		       w = b->x + BOX_W - 12 - x;

		/* Bold letters are wider: the title gets less of the room than its letters would
		 * say. */
		double room = w - 24 - 10.5 * 0.58 * (double)strlen(r->right);

		if (r->depth > 0)
			row_link(p, r, x - STEP + 8, start[r->depth - 1], y + h / 2);
		start[r->depth] = y + h - 4;
		for (int d = r->depth + 1; d < 8; d++)
			start[d] = y + h;
		if (h == LINE_H) {
			text(p, x + (r->depth ? 3 : 0), y + 16, 11.5, "fill=\"#444444\"", room,
				r->title);
		} else {
			rect(p, x, y + 2, w, h - 6, row_style(r->kind));
			text(p, x + 8, y + 18, 12.5, "font-weight=\"bold\"", room * 0.86, r->title);
			bool marked = r->rail >= 0 || r->left_out;

			text(p, x + 8, y + 33, 11, "fill=\"#333333\"",
				w - 12 - (marked ? r->left_out ? 84 : 54 : 0), r->sub);
			if (marked)
				topo_svg_badge(p->o, r->rail, x + w - 8, y + 23);
		}
		text(p, x + w - 8, y + (h == LINE_H ? 16 : 18), 10.5,
			r->low ? "text-anchor=\"end\" fill=\"#cc0000\""
			       : "text-anchor=\"end\" fill=\"#555555\"",
			w * 0.6, r->right);
		y += h;
	}
}

static void write_box(struct picture *p, const struct box *b)
{
	const struct topo *t = p->t;
	char line[256], mem[32];

	rect(p, b->x, b->y, BOX_W, b->h, "fill=\"#ffffff\" stroke=\"#7f7f7f\"");
	if (b->node < 0) {
		text(p, b->x + 12, b->y + 22, 14, "font-weight=\"bold\"", BOX_W - 24,
			t->n_numa ? "NUMA node unknown" : "Devices");
		text(p, b->x + 12, b->y + 41, 11.5, "fill=\"#444444\"", BOX_W - 24,
			"the tree does not tell where these are");
	} else {
		const struct topo_numa *n = &t->numa[b->node];

		snprintf(line, sizeof(line), "NUMA node %d%s%.40s", n->os_index,
			n->kind ? " · " : "", n->kind ? n->kind : "");
		text(p, b->x + 12, b->y + 22, 14, "font-weight=\"bold\"", BOX_W - 24, line);
		bool told = n->memory || p->t->source <= TOPO_FROM_SYSROOT;

		snprintf(line, sizeof(line), "%s%.120s%s%s", *n->cpus ? "CPUs " : "no CPUs",
			n->cpus, told ? " · " : "",
			n->memory ? fb_fmt_size(n->memory, mem, sizeof(mem))
			: told    ? "no memory"
				  : "");
		text(p, b->x + 12, b->y + 41, 11.5, "fill=\"#444444\"", BOX_W - 24, line);
	}
	if (b->drives) {
		snprintf(line, sizeof(line), "%u NVMe drive%s", b->drives,
			b->drives == 1 ? "" : "s");
		text(p, b->x + BOX_W - 12, b->y + 22, 11, "text-anchor=\"end\" fill=\"#444444\"",
			140, line);
	}
	write_rows(p, b);
}

static double write_distances(struct picture *p, double x, double y)
{
	const struct topo *t = p->t;
	char cell[32];

	if (!t->distance || t->n_numa > 16)
		return y;
	text(p, x, y + 14, 12, "font-weight=\"bold\"", 400, "NUMA distances (10: local)");
	for (size_t i = 0; i < t->n_numa; i++) {
		double row_y = y + 52 + (double)i * 18;

		snprintf(cell, sizeof(cell), "%d", t->numa[i].os_index);
		text(p, x + 80 + (double)i * 40, y + 34, 11, "text-anchor=\"end\" fill=\"#444444\"",
			40, cell);
		snprintf(cell, sizeof(cell), "node %d", t->numa[i].os_index);
		text(p, x, row_y, 11, "fill=\"#444444\"", 60, cell);
		for (size_t k = 0; k < t->n_numa; k++) {
			snprintf(cell, sizeof(cell), "%u", t->distance[i * t->n_numa + k]);
			text(p, x + 80 + (double)k * 40, row_y, 11, "text-anchor=\"end\"", 40,
				cell);
		}
	}
	if (x + 100 + (double)t->n_numa * 40 > p->w)
		p->w = x + 100 + (double)t->n_numa * 40;
	return y + 52 + (double)t->n_numa * 18;
}

static double write_legend(struct picture *p, double x, double y)
{
	static const struct {
		enum row_kind kind;
		const char *text;
	} items[] = {{ROW_GPU, "GPU"}, {ROW_RDMA, "RDMA"}, {ROW_NET, "interface"},
		{ROW_SOFT, "software RDMA"}};

	for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
		rect(p, x + (double)i * 94, y, 14, 12, row_style(items[i].kind));
		text(p, x + 19 + (double)i * 94, y + 10, 10.5, "fill=\"#444444\"", 110,
			items[i].text);
	}
	text(p, x, y + 30, 10.5, "fill=\"#444444\"", BOX_W + 40,
		"line width: PCIe bandwidth; red: below its best");
	text(p, x, y + 46, 10.5, "fill=\"#444444\"", BOX_W + 40,
		"rail: a GPU and the NICs it is planned to use");
	return y + 54;
}

/** Frames of packages with their boxes, then what belongs to none. */
static double write_packages(struct picture *p, double y)
{
	const struct topo *t = p->t;
	int columns = t->n_packages > 1 ? 1 : 2;
	size_t per_row = t->n_packages > 1 ? 2 : 1;
	double row_bottom = y, x = 20;
	char line[256];
	bool found;

	for (size_t i = 0; i < t->n_packages; i++) {
		if (i % per_row == 0) {
			x = 20;
			y = row_bottom;
		}
		size_t nodes = 0;

		for (size_t k = 0; k < p->n_boxes; k++)
			nodes += p->boxes[k].package == (int)i;
		int cols = nodes > 1 ? columns : 1;
		double w = cols * (BOX_W + GAP) + GAP;
		double bottom = place_group(p, (int)i, x + GAP, y + 40, cols, &found);

		if (!found)
			bottom = y + 46;
		rect(p, x, y, w, bottom - y, "fill=\"#f6f3ea\" stroke=\"#b8ab83\"");
		snprintf(line, sizeof(line), "Package %u · %.80s", t->packages[i].os_index,
			t->packages[i].model ? t->packages[i].model : "");
		text(p, x + 14, y + 25, 14, "font-weight=\"bold\"", w - 130, line);
		snprintf(line, sizeof(line), "%u core%s", t->packages[i].cores,
			t->packages[i].cores == 1 ? "" : "s");
		text(p, x + w - 14, y + 25, 11.5, "text-anchor=\"end\" fill=\"#444444\"", 110,
			line);
		x += w + 20;
		if (x > p->w)
			p->w = x;
		if (bottom + 20 > row_bottom)
			row_bottom = bottom + 20;
	}
	double bottom = place_group(p, TOPO_UNKNOWN, 20 + (t->n_packages ? GAP : 0), row_bottom,
		t->n_packages > 1 ? 2 : columns, &found);

	for (size_t k = 0; k < p->n_boxes; k++) {
		write_box(p, &p->boxes[k]);
		if (p->boxes[k].x + BOX_W + 20 > p->w)
			p->w = p->boxes[k].x + BOX_W + 20;
	}
	return found ? bottom + 4 : row_bottom;
}

static void add_count(char *line, size_t len, size_t n, const char *what)
{
	size_t at = strlen(line);

	if (n)
		snprintf(line + at, len - at, "%s%zu %s%s", at && line[at - 1] != ' ' ? ", " : "",
			n, what, n == 1 ? "" : "s");
}

/** NUMA distances on the left, links between GPUs beside or, where the picture is narrow, below. */
static double write_tables(struct picture *p, double y)
{
	const struct topo *t = p->t;
	double below = write_distances(p, 24, y), x = 24, width;
	bool table = below > y;

	if (table)
		x += 100 + (double)t->n_numa * 40 + 40;
	double top = y;

	if (table && x + 340 > p->w) {
		x = 24;
		top = below + 16;
	}
	double end = topo_svg_links(t, x, top, &width, p->o);

	if (x + width + 20 > p->w)
		p->w = x + width + 20;
	return end > below ? end : below;
}

void topo_svg(const struct topo *t, struct fb_strbuf *out)
{
	struct fb_strbuf body = {0};
	struct picture p = {.t = t, .o = &body, .w = 560};
	char line[160];

	if (topo_plan_make(t, &p.plan, NULL) != 0 || !mark_wanted(&p) || !make_boxes(&p)) {
		out->failed = true;
		goto free_picture;
	}
	snprintf(line, sizeof(line), "%s: ", t->virtual_machine ? "Virtual machine" : "Machine");
	add_count(line, sizeof(line), t->n_packages, "package");
	add_count(line, sizeof(line), t->n_numa, "NUMA node");
	add_count(line, sizeof(line), t->cores, "core");
	add_count(line, sizeof(line), t->n_gpus, "GPU");
	text(&p, 20, 28, 16, "font-weight=\"bold\"", 900, line);
	double y = write_packages(&p, 44);

	y = write_legend(&p, 24, write_tables(&p, y) + 12);
	p.h = y + 12;
	fb_strbuf_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
		"height=\"%.0f\" font-family=\"'DejaVu Sans', sans-serif\" role=\"img\">\n<title>",
		p.w, p.h, p.w, p.h);
	fb_strbuf_add_xml(out, line);
	fb_strbuf_add(out, "</title>\n");
	fb_strbuf_printf(
		out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", p.w, p.h);
	fb_strbuf_addn(out, body.s ? body.s : "", body.len);
	fb_strbuf_add(out, "</svg>\n");
	out->failed = out->failed || body.failed;
free_picture:
	for (size_t i = 0; p.boxes && i <= t->n_numa; i++)
		free(p.boxes[i].rows);
	free(p.boxes);
	topo_plan_free(p.plan);
	free(p.wanted);
	free(p.first_kid);
	free(p.next_kid);
	free(p.root_numa);
	fb_strbuf_free(&body);
}
