/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session between a client and a server: who is who, what to run, on which devices, and then
 * the run itself. The client owns the whole configuration; the server opens what it is told to,
 * runs, and releases everything.
 */
#ifndef VERBS_SESSION_H
#define VERBS_SESSION_H

#include "bench/core/bench.h"
#include "bench/core/err.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"
#include "verbs/dev.h"
#include "verbs/params.h"

/** Version of the messages below; both ends must have the same. */
#define VERBS_SESSION_VERSION 3

/** What the client side of a session needs. */
struct verbs_client {
	struct verbs_params p;
	struct verbs_node *node;
	const struct fb_runctl_cfg *runctl;
	struct fb_doc *doc;
	uint64_t deadline; /**< of the whole command */
};
/** The first messages of a session alone: the order, and agreement on it and on the opened devices.
 * @param hardware are there real NICs at both ends? @return 0 or the first cause */
int verbs_session_order(
	struct verbs_client *c, struct fb_oob *o, bool *hardware, struct fb_err *e) FB_MUST_CHECK;
/** Run a session as rank 0. @return 0 or the first cause, from whichever end */
int verbs_session_client(struct verbs_client *c, struct fb_oob *o, struct fb_err *e) FB_MUST_CHECK;

/** What the server side knows before a client comes. */
struct verbs_server {
	const char *device; /**< used when the client names none; NULL: the first ACTIVE */
	unsigned port;
	bool loopback;     /**< the other end is a thread of this process */
	const char *netem; /**< network device on which clients may make loss; NULL: none */
};
/** Run one session as rank 1: `line` gets one line about it. @return 0 or the cause */
int verbs_session_server(const struct verbs_server *srv, struct fb_oob *o, char *line, size_t len,
	struct fb_err *e) FB_MUST_CHECK;

/** Both ends in this process, as threads. */
int verbs_session_loopback(struct verbs_client *c, struct fb_err *e) FB_MUST_CHECK;

#endif
