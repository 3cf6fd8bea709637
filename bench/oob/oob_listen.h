/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener and its guests: between listen.c, which reads and judges hellos, and meet.c, which
 * seats ranks. Bounds on what strangers can make us hold stand here.
 */
#ifndef FB_OOB_OOB_LISTEN_H
#define FB_OOB_OOB_LISTEN_H

#include "bench/oob/oob_priv.h"

#define OOB_GUESTS       64          /* connections whose hello is still to come */
#define OOB_HALF_OPEN_NS 5000000000u /* how long they may take to say it */
#define OOB_PATIENCE_NS  500000000u  /* and how long at least, however many there are */

struct oob_guest {
	struct oob_conn c;
	uint64_t since;
	char from[80]; /* address and port, for messages */
};
struct fb_oob_listener {
	int fd, port;
	char token[OOB_TOKEN];
	struct oob_guest guest[OOB_GUESTS];
	int guests;
	struct fb_oob *session; /* a server's running session: it turns others away */
	bool kept; /**< a guest came while the session was ending: the next to be let in */
	struct oob_guest next;
	struct oob_hello next_hello;
};

/** Wait at most `ms`, read what guests say. @return 1: *guest, now the caller's, said the good
 * hello *h; 0: nobody yet */
int oob_greet(struct fb_oob_listener *l, int ms, struct oob_guest *guest, struct oob_hello *h);
/** Tell a guest why it is refused, and close it. */
void oob_refuse(struct oob_conn *c, enum fb_exit status, int code, const char *fmt, ...)
	FB_PRINTF(4, 5);

#endif
