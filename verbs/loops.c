// SPDX-License-Identifier: Apache-2.0
/*
 * Sleeping on a completion queue: arm, look again (what came before arming raises no event), sleep.
 */
#include "verbs/loops.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define SLEEP_MS 20

void verbs_cq_ack(struct verbs_cq *c)
{
	if (c->events)
		ibv_ack_cq_events(c->cq, c->events);
	c->events = 0;
}

int verbs_cq_sleep(struct verbs_cq *c, struct verbs_wait *w)
{
	struct pollfd p = {.fd = c->ch->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *ctx;
	int n;

	if (!c->armed) {
		int err = ibv_req_notify_cq(c->cq, 0);
		if (err)
			return fb_fail(w->e, FB_EXIT_UNMEASURED, err,
				"cannot arm the completion queue: %s", strerror(err));
		c->armed = true;
		return 0; /* the caller polls once more before it sleeps */
	}
	n = poll(&p, 1, SLEEP_MS);
	if (n == 0)
		return verbs_wait_check(w);
	if (n < 0)
		return errno == EINTR
			       ? verbs_wait_check(w)
			       : fb_fail(w->e, FB_EXIT_UNMEASURED, errno,
					 "waiting for a completion event: %s", strerror(errno));
	if (ibv_get_cq_event(c->ch, &cq, &ctx) != 0)
		return fb_fail(w->e, FB_EXIT_UNMEASURED, errno, "reading a completion event: %s",
			strerror(errno));
	c->armed = false;
	c->events++;
	return 0;
}
