/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs over pairs of hosts in the report: a heat map for each rail, every pair as a share of the
 * rail's median, hosts sorted by rack; and the section Pairs of the page.
 */
#ifndef REPORTS_PAIRS_H
#define REPORTS_PAIRS_H

#include "reports/report_priv.h"

/** A heat map: its files' name, its title, and where it was drawn ("" if not). */
struct rep_map {
	struct rep_figure f; /* id, title and svg alone are used */
	size_t run;          /* place in the document's pairs[] */
};
struct rep_maps {
	struct rep_map *v;
	size_t n;
};

/** Write ID.dat and ID.gp of each map into dir, and draw them; a picture that fails costs nothing
 * else: the first reason goes into why. @return 0, -ENOMEM or a failure to write */
int rep_maps_make(struct rep_maps *m, const json_t *doc, const char *dir, char *why, size_t len,
	struct fb_err *e) FB_MUST_CHECK;
void rep_maps_free(struct rep_maps *m);
/** The section; nothing without pairs. */
void rep_html_pairs(
	struct fb_strbuf *b, const json_t *doc, const struct rep_maps *m, const char *no_plots);

#endif
