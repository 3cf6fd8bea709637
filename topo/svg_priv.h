/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the node's picture share. */
#ifndef TOPO_SVG_PRIV_H
#define TOPO_SVG_PRIV_H

#include "topo/topo_priv.h"

#define TOPO_SVG_GPU "fill=\"#dcefd6\" stroke=\"#38761d\""

/** Draws the GPUs' links beside PCIe with the upper left corner at x, y. *width 0: there are none,
 * or too many GPUs for a picture. @return the y below it */
double topo_svg_links(const struct topo *t, double x, double y, double *width, struct fb_strbuf *o);

/** " · NVLink x18 to switches", " · xGMI x7 to 7 GPUs", or "". */
void topo_svg_fast_text(const struct topo *t, size_t gpu, char *buf, size_t len);
/** "rail 3" in its colour, or "not in plan" for TOPO_UNKNOWN; its upper right corner at right, y.
 */
void topo_svg_badge(struct fb_strbuf *o, int rail, double right, double y);

#endif
