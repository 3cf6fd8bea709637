/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a loss sweep: in each turn every rate once, in an order that differs from
 * turn to turn, with the lossless base among them; the results of each; and in the end the model
 * that some of the rates give and what it says of the others.
 */
#ifndef VERBS_LOSS_RUN_H
#define VERBS_LOSS_RUN_H

#include "bench/core/hist.h"
#include "bench/core/result.h"
#include "verbs/loss.h"
#include "verbs/loss_fit.h"
#include "verbs/session.h"

#define VERBS_LOSS_MAX_RATES 32
#define VERBS_LOSS_MAX_TURNS 1000

/** One server; with given rates, the one at the far end of the link with that rate. */
struct verbs_loss_peer {
	const char *name; /**< HOST or HOST:PORT as given; borrowed */
	struct fb_oob *oob;
	struct verbs_loss_end end;
};

/** All turns of one rate. */
struct verbs_loss_rate {
	double percent;
	bool fitted;            /**< belongs to the rates that the model is made from */
	unsigned turns;         /**< measured */
	double bytes, ns;       /**< of the windows */
	double sent, needed;    /**< packets; sent is NaN where the driver does not tell */
	int64_t naks, timeouts; /**< at the sender; -1: not told */
	struct fb_hist *hist;   /**< small messages */
};

/** What one turn at one rate gave. */
struct verbs_loss_seen {
	unsigned rate, turn; /**< places; turns count from 1 */
	double bytes, ns;    /**< at the receiver, within the window */
	double messages;     /**< of the whole stream */
	struct fb_hist *hist;
	json_t *before[2], *after[2]; /**< {"driver", "counters"} of sender and receiver: stream */
	json_t *probe_before, *probe_after; /**< of the sender: small messages */
};

struct verbs_loss_run {
	struct verbs_job job; /**< the client's node and parameters */
	struct fb_doc *doc;
	struct verbs_loss_peer *peer;
	unsigned npeers; /**< 1, or one for each rate */
	struct verbs_loss_maker maker;
	enum verbs_loss_how how;
	const char *device; /**< netem's */
	bool to_client;     /**< the server sends */
	unsigned turns;
	uint64_t lead_ns, window_ns;
	uint64_t probes, probe_ns;
	struct verbs_loss_rate rate[VERBS_LOSS_MAX_RATES];
	unsigned nrates;
	const char *where;
};

/** Which rate comes at that place of a turn: all of them once, each turn beginning with another.
 * Exposed for tests. */
unsigned verbs_loss_order(unsigned nrates, unsigned turn, unsigned place);

/** All turns. Each point's results go into the document, which is published after it. @return 0 or
 * the first cause */
int verbs_loss_turns(struct verbs_loss_run *x, struct fb_err *e) FB_MUST_CHECK;

/** loss_report.c: the results of one turn at one rate, added to the rate's sums too. */
void verbs_loss_results(struct verbs_loss_run *x, const struct verbs_loss_seen *s);
/** The document's `loss`: what each rate gave, the model and its predictions. */
void verbs_loss_summary(const struct verbs_loss_run *x);
/** The table of a document with `loss`. */
void verbs_loss_table(const json_t *doc, FILE *out);

#endif
