/* SPDX-License-Identifier: Apache-2.0 */
/* How a client reaches the host of a session, and takes its facts into the document. */
#ifndef VERBS_REACH_H
#define VERBS_REACH_H

#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"

/** How hosts are reached. */
struct verbs_reach {
	int port; /**< of hosts that name none */
	const char *token;
	uint64_t connect_timeout_ns;
};

/**
 * Connect to "node7", "node7:18516" or "[fd00::7]:18516"; a bare IPv6 address has no port. Hosts
 * are often started at the same moment: a refused connection is tried again for a while.
 * @return 0; -EINVAL: not a HOST or HOST:PORT (exit 2); fb_oob_connect()'s, with what to start
 * there
 */
int verbs_reach(const struct verbs_reach *how, const char *name, struct fb_oob **oob,
	struct fb_err *e) FB_MUST_CHECK;
/** The same of a host's bare name or address, at how->port. */
int verbs_reach_host(const struct verbs_reach *how, const char *host, struct fb_oob **oob,
	struct fb_err *e) FB_MUST_CHECK;
/** Exchange facts: the peer's host goes into the document, and a peer of this rank that names it.
 * @return 0 or the channel's error */
int verbs_reach_take_host(struct fb_doc *doc, struct fb_oob *oob, unsigned rank, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;

#endif
