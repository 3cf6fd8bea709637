/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table from the wire to the training step, from one run: what the fabric gives, what a
 * collective makes of it, what the step waits for, and what share of the arithmetic became the
 * model's. Each line stands as a share of the line above, with what is to blame for the rest. Lines
 * measured in different places are no share of each other, and say so.
 */
#ifndef REPORTS_CHAIN_H
#define REPORTS_CHAIN_H

#include <jansson.h>
#include <stddef.h>

#include "bench/core/strbuf.h"

struct rep_link {
	char what[160]; /**< "RDMA write, 1 MiB" */
	char value[64]; /**< with its unit */
	double share;   /**< of the line above; NaN: not to be compared, or the first line */
	char where[24]; /**< where it was measured */
	char rest[256]; /**< what is to blame for the rest, or why there is no share */
};
struct rep_chain {
	struct rep_link v[8];
	size_t n;
};

/** The lines that a document has results for. Fewer than two are no chain: n is 0 then. */
void rep_chain_make(const json_t *doc, struct rep_chain *c);
/** The section; nothing when there is no chain. */
void rep_html_chain(struct fb_strbuf *b, const struct rep_chain *c);

#endif
