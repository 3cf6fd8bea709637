/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One host's part in a run over pairs: what it can offer, and one pair measured with another host,
 * as its client or its server, over a control connection of the pair's own. The session is the same
 * as that of `verbs latency` and `verbs bandwidth`. Knows nothing of the schedule or of other
 * pairs.
 *
 * An order (from rank 0): {"do": "pair", "pair": id, "client": bool, "seconds", "device",
 * "peer_device", "peer": {"name", "addresses", "port", "token"}, "params", "want", "run"}.
 * A report (to rank 0): {"pair": id, "state": "measured" | "failed" | "unreachable",
 * "value", "result", "error": {"message", "code"}, "wrong": bool}.
 */
#ifndef VERBS_PAIRS_PAIR_H
#define VERBS_PAIRS_PAIR_H

#include <jansson.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "bench/core/err.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"
#include "verbs/dev.h"

/** One host, ready for pairs. */
struct pairs_worker {
	struct fb_oob_listener *listener;
	int port;
	char token[33];             /**< of this listener: nobody else is let in */
	struct verbs_dev_want want; /**< the devices asked for */
	struct fb_doc *doc;         /**< scratch for results; never printed here */
	uint64_t peer_wait_ns;      /**< how long one address may take to answer */
	char names[VERBS_MAX_RAILS][64];
	unsigned rails;
};

/** Open the door for other hosts' connections. @return 0, or why not */
int pairs_worker_open(
	struct pairs_worker *w, const struct verbs_dev_want *want, struct fb_err *e) FB_MUST_CHECK;
void pairs_worker_close(struct pairs_worker *w);
/** {"name", "boot_id", "addresses", "port", "token", "devices", "host", "error"}: what rank 0 is
 * told of this host. New reference. */
json_t *pairs_worker_offer(struct pairs_worker *w);
/** Carry an order out. Always ends, by twice its seconds at the latest. @return the report, a new
 * reference */
json_t *pairs_worker_do(struct pairs_worker *w, const json_t *order);

/** Settings of run control as JSON, and back. */
json_t *pairs_runctl_to_json(const struct fb_runctl_cfg *rc);
void pairs_runctl_from_json(struct fb_runctl_cfg *rc, const json_t *j);

#endif
