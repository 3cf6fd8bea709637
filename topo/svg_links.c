// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of the node's picture: the badge of a rail, and the links between GPUs beside PCIe: GPUs on
 * a circle, a chord for each pair that NVLink or xGMI joins directly, and spokes to the middle
 * where they go to switches. Width and number tell how many links.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/svg_priv.h"

enum {
	RADIUS = 120,  /* of the circle of GPUs */
	MARGIN = 46,   /* for the GPUs' own circles */
	MOST_GPUS = 32 /* more would be a tangle */
};

struct ring {
	const struct topo *t;
	struct fb_strbuf *o;
	double cx, cy;
};

static void spot(const struct ring *r, size_t gpu, double *x, double *y)
{
	double a = 2 * M_PI * (double)gpu / (double)r->t->n_gpus - M_PI / 2;

	*x = r->cx + RADIUS * cos(a);
	*y = r->cy + RADIUS * sin(a);
}

static double stroke(unsigned links)
{
	double w = 0.8 + links * 0.25;

	return w < 6 ? w : 6;
}

static void label(const struct ring *r, double x, double y, const char *style, const char *text)
{
	fb_strbuf_printf(r->o, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	fb_strbuf_add_xml(r->o, text);
	fb_strbuf_add(r->o, "</text>\n");
}

/** Links of a pair that some end names directly. */
static unsigned direct(const struct topo *t, size_t a, size_t b)
{
	for (size_t i = 0; i < t->n_fast; i++)
		if ((t->fast[i].gpu == (int)a && t->fast[i].peer == (int)b) ||
			(t->fast[i].gpu == (int)b && t->fast[i].peer == (int)a))
			return topo_fast_links(t, a, b);
	return 0;
}

/** @return the kind that most links have: their name is in the heading */
static const char *heading(const struct topo *t, size_t *links)
{
	size_t nv = 0, xgmi = 0;

	for (size_t i = 0; i < t->n_fast; i++) {
		bool counts = t->fast[i].peer >= 0 || t->fast[i].peer_class >> 8 == 0x0680;

		nv += counts && t->fast[i].kind == TOPO_FAST_NVLINK;
		xgmi += counts && t->fast[i].kind == TOPO_FAST_XGMI;
	}
	*links = nv + xgmi;
	return nv >= xgmi ? "NVLink" : "xGMI";
}

static void chords(const struct ring *r)
{
	const struct topo *t = r->t;
	double x0, y0, x1, y1;

	for (size_t a = 0; a < t->n_gpus; a++)
		for (size_t b = a + 1; b < t->n_gpus; b++) {
			unsigned n = direct(t, a, b);

			if (!n)
				continue;
			spot(r, a, &x0, &y0);
			spot(r, b, &x1, &y1);
			fb_strbuf_printf(r->o,
				"<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#76a36a\" "
				"stroke-width=\"%.1f\"><title>%s to %s: %u</title></path>\n",
				x0, y0, x1, y1, stroke(n), t->gpus[a].name, t->gpus[b].name, n);
		}
}

/** Spokes with their numbers, and the switches in the middle. @return false: there are none */
static bool spokes(const struct ring *r)
{
	bool any = false;
	double x, y;
	char text[16];

	for (size_t g = 0; g < r->t->n_gpus; g++) {
		unsigned n = topo_switch_links(r->t, g);

		if (!n)
			continue;
		any = true;
		spot(r, g, &x, &y);
		fb_strbuf_printf(r->o,
			"<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#76a36a\" stroke-width=\"%.1f\"/>\n",
			r->cx, r->cy, x, y, stroke(n));
		snprintf(text, sizeof(text), "%u", n);
		label(r, r->cx + (x - r->cx) * 0.62, r->cy + (y - r->cy) * 0.62 + 4,
			"font-size=\"10.5\" text-anchor=\"middle\" stroke=\"#ffffff\" "
			"stroke-width=\"4\" paint-order=\"stroke\" fill=\"#333333\"",
			text);
	}
	if (any) {
		fb_strbuf_printf(r->o,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"30\" fill=\"#fff7e6\" "
			"stroke=\"#b45f06\"/>\n",
			r->cx, r->cy);
		label(r, r->cx, r->cy + 4,
			"font-size=\"10.5\" text-anchor=\"middle\" fill=\"#333333\"", "switches");
	}
	return any;
}

/** One number for all chords is told in words; several are told at the chords by their titles. */
static void caption(const struct ring *r, double y)
{
	unsigned least = 0, most = 0;
	char text[80];

	for (size_t a = 0; a < r->t->n_gpus; a++)
		for (size_t b = a + 1; b < r->t->n_gpus; b++) {
			unsigned n = direct(r->t, a, b);

			if (n && (!least || n < least))
				least = n;
			if (n > most)
				most = n;
		}
	if (!most)
		snprintf(text, sizeof(text), "number: links to the switches");
	else if (least == most)
		snprintf(text, sizeof(text), "%u link%s for each line", most, most == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "%u to %u links for each line, by its width", least,
			most);
	label(r, r->cx, y, "font-size=\"10.5\" text-anchor=\"middle\" fill=\"#444444\"", text);
}

double topo_svg_links(const struct topo *t, double x, double y, double *width, struct fb_strbuf *o)
{
	struct ring r = {t, o, x + MARGIN + RADIUS, y + 44 + RADIUS};
	size_t links;
	const char *kind = heading(t, &links);
	char text[80];

	*width = 0;
	if (!links || t->n_gpus < 2 || t->n_gpus > MOST_GPUS)
		return y;
	*width = 2 * (MARGIN + RADIUS);
	snprintf(text, sizeof(text), "Links between GPUs (%s)", kind);
	label(&r, x, y + 14, "font-size=\"12\" font-weight=\"bold\"", text);
	chords(&r);
	spokes(&r);
	for (size_t g = 0; g < t->n_gpus; g++) {
		double gx, gy;

		spot(&r, g, &gx, &gy);
		fb_strbuf_printf(o,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"52\" height=\"20\" rx=\"4\" %s/>\n",
			gx - 26, gy - 10, TOPO_SVG_GPU);
		label(&r, gx, gy + 4, "font-size=\"10.5\" text-anchor=\"middle\"", t->gpus[g].name);
	}
	caption(&r, r.cy + RADIUS + 30);
	return r.cy + RADIUS + 36;
}

/* ---- in the rows of the node ------------------------------------------------------------------
 */

void topo_svg_fast_text(const struct topo *t, size_t gpu, char *buf, size_t len)
{
	static const char *const words[] = {"NVLink", "xGMI", "NVLink-C2C"};
	unsigned links[3][2] = {{0}}, peers[3] = {0};
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < t->n_fast; i++) {
		const struct topo_fast *f = &t->fast[i];

		if (f->gpu != (int)gpu)
			continue;
		peers[f->kind] += f->peer >= 0;
		links[f->kind][f->peer >= 0] += f->count;
	}
	for (int k = 0; k < 3; k++) {
		if (links[k][0] && n < len)
			n += (size_t)snprintf(buf + n, len - n, " · %s x%u%s", words[k],
				links[k][0], k == TOPO_FAST_C2C ? "" : " to switches");
		if (links[k][1] && n < len)
			n += (size_t)snprintf(buf + n, len - n, " · %s x%u to %u GPU%s", words[k],
				links[k][1], peers[k], peers[k] == 1 ? "" : "s");
	}
}

/* A rail's colour comes round after eight; its number tells. */
void topo_svg_badge(struct fb_strbuf *o, int rail, double right, double y)
{
	static const char *const colors[] = {"#0b6fb8", "#c2410c", "#15803d", "#7c3aed", "#92400e",
		"#be185d", "#0f766e", "#4d7c0f"};
	double w = rail < 0 ? 76 : 46;
	char text[24];

	if (rail < 0)
		snprintf(text, sizeof(text), "not in plan");
	else
		snprintf(text, sizeof(text), "rail %d", rail);
	fb_strbuf_printf(o,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"13\" rx=\"4\" fill=\"%s\"/>\n"
		"<text x=\"%.1f\" y=\"%.1f\" font-size=\"9.5\" text-anchor=\"middle\" "
		"fill=\"#ffffff\">%s</text>\n",
		right - w, y, w, rail < 0 ? "#6b7280" : colors[rail % 8], right - w / 2, y + 10,
		text);
}
