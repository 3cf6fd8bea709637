// SPDX-License-Identifier: Apache-2.0
/*
 * The receiver's sessions: reach a host that serves, order its part, open this end; and leave all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/incast_run.h"

int verbs_incast_join(struct verbs_incast *x, unsigned i, const struct verbs_reach *how,
	uint64_t deadline, struct fb_err *e)
{
	struct verbs_incast_peer *p = &x->peer[i];
	struct verbs_job job = x->job;
	struct verbs_client c = {
		.p = x->job.p, .node = x->job.node, .doc = x->doc, .deadline = deadline};
	bool hardware = false;
	int rc;

	c.p.load.role = i < x->nsenders ? VERBS_ROLE_SENDER : VERBS_ROLE_VICTIM;
	job.p = c.p;
	rc = verbs_reach(how, p->name, &p->oob, e);
	if (rc)
		return rc;
	rc = verbs_session_order(&c, p->oob, &hardware, e);
	if (rc == 0)
		rc = verbs_reach_take_host(x->doc, p->oob, i + 1, deadline, e);
	job.p = c.p; /* the order has settled the GID's type */
	if (rc == 0)
		rc = verbs_incast_open(&p->end, &job, p->oob, deadline, e);
	x->job.hardware = x->job.hardware && hardware;
	return rc;
}

void verbs_incast_drop(struct verbs_incast_peer *p, const struct fb_err *why)
{
	struct fb_err ignored = {0};
	json_t *answer = NULL;

	if (p->oob && why)
		fb_oob_abort(p->oob, why);
	else if (p->oob)
		(void)!verbs_incast_ask(p, json_pack("{s:s}", "do", "end"), &answer,
			fb_deadline_in(5000000000ull), &ignored);
	json_decref(answer);
	fb_oob_close(p->oob);
	p->oob = NULL;
	verbs_incast_close(&p->end);
	json_decref(p->before);
	json_decref(p->after);
	p->before = p->after = NULL;
}

void verbs_incast_leave(struct verbs_incast *x, struct fb_err *e)
{
	unsigned n = x->nsenders + (x->victim ? 1 : 0);

	for (unsigned i = 0; i < n; i++) {
		struct verbs_incast_peer *p = &x->peer[i];
		verbs_incast_drop(p, e->code ? e : p->lost ? &p->why : NULL);
	}
	json_decref(x->own_before);
	json_decref(x->own_after);
	free(x->hist);
	free(x->peer);
}
