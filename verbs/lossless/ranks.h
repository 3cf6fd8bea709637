/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `check --rendezvous`: every node runs the same command and they meet by tcp, as ranks. Rank 0
 * hears what each node is (summary.h) before it judges, and what each found after; it alone writes
 * a document. A rank that does not come, or goes, is named there and ends the verdict INCOMPLETE.
 */
#ifndef VERBS_LOSSLESS_RANKS_H
#define VERBS_LOSSLESS_RANKS_H

#include "bench/core/check.h"
#include "bench/oob/oob.h"
#include "verbs/lossless/facts.h"

struct ranks {
	struct fb_oob *oob;
	int rank, size;
	struct node_facts **node; /**< rank 0's, by rank; NULL: it did not come, or is rank 0 */
	char (*why)[256];         /**< by rank: why it is missing */
};
extern const struct fb_check_def ranks_checks[]; /**< rendezvous.ranks, then id NULL */

/** Meet. Waits for ranks no longer than the options say, and goes on with those that came.
 * @return 0; -EINVAL: there is but one rank (exit 2); an oob error */
int ranks_meet(const struct fb_oob_cfg *cfg, struct ranks *k, struct fb_err *e) FB_MUST_CHECK;
/** All tell rank 0 what they are: rank 0 fills k->node, and adds hosts to its document.
 * @return 0; rank 0: -EINTR, -ENOMEM alone; others: they have lost rank 0 (exit 3) */
int ranks_facts(struct ranks *k, const struct node_facts *own, struct fb_doc *doc,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** All tell rank 0 what they found: it takes the fails, warnings and errors of the others into its
 * document under their hosts' names, their counts as `fabric.ranks`, and says who is missing.
 * @return as ranks_facts() */
int ranks_findings(
	struct ranks *k, struct fb_doc *doc, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
void ranks_end(struct ranks *k);

#endif
