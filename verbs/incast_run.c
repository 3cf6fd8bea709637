// SPDX-License-Identifier: Apache-2.0
/*
 * The steps. One thread does it all: orders go to every sender, the probe runs here while they
 * send (writes need no hand at the receiver), and then each is asked what it achieved.
 */
#include "verbs/incast_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/tell.h"

#define ANSWER_NS 20000000000ull
#define BATCH     64u

static int tell(struct verbs_incast_peer *p, json_t *order, struct fb_err *e)
{
	int rc = order ? fb_oob_bcast_json(p->oob, &order, fb_deadline_in(ANSWER_NS), e)
		       : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for an order");

	json_decref(order);
	return rc;
}

static int hear(struct verbs_incast_peer *p, json_t **answer, uint64_t deadline, struct fb_err *e)
{
	json_t *mine = json_object(), *all = NULL;
	int rc = fb_oob_gather_json(p->oob, mine, &all, deadline, e);

	*answer = rc == 0 ? json_incref(json_array_get(all, 1)) : NULL;
	json_decref(all);
	json_decref(mine);
	return rc;
}

int verbs_incast_ask(struct verbs_incast_peer *p, json_t *order, json_t **answer, uint64_t deadline,
	struct fb_err *e)
{
	int rc = tell(p, order, e);

	*answer = NULL;
	return rc ? rc : hear(p, answer, deadline, e);
}

/* ---- counters -------------------------------------------------------------------------------- */

static unsigned npeers(const struct verbs_incast *x)
{
	return x->nsenders + (x->victim ? 1 : 0);
}

static void put(json_t **slot, json_t *v)
{
	json_decref(*slot);
	*slot = v;
}

/* With `some`, one host's failure is its own. @return 0: go on without it */
static int give_up(struct verbs_incast *x, struct verbs_incast_peer *p, int rc, struct fb_err *e)
{
	if (rc == 0 || !x->some || rc == -EINTR || fb_stop_requested())
		return rc;
	p->lost = true;
	p->why = *e;
	fb_err_clear(e);
	return 0;
}

/* Every host's, also of those that rest in this step: congestion spreads. */
static int read_counters(struct verbs_incast *x, bool after, struct fb_err *e)
{
	for (unsigned i = 0; i < npeers(x); i++) {
		struct verbs_incast_peer *p = &x->peer[i];
		json_t *answer;
		int rc = p->lost ? 0
				 : verbs_incast_ask(p,
					   json_pack(
						   "{s:s, s:b}", "do", "counters", "wide", x->wide),
					   &answer, fb_deadline_in(ANSWER_NS), e);
		if (give_up(x, p, rc, e))
			return rc;
		if (p->lost)
			continue;
		put(after ? &p->after : &p->before, json_incref(json_object_get(answer, "port")));
		json_decref(answer);
	}
	put(after ? &x->own_after : &x->own_before,
		verbs_incast_counters(&x->peer[0].end.rail, x->wide));
	return 0;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static int check_stop(struct fb_err *e)
{
	if (!fb_stop_requested())
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
	fb_hint(e, "the finished steps are kept; run it again for the others");
	return -EINTR;
}

/* A sender that dies in mid-step is noticed now, and not when the others have ended. */
static int check_peers(struct verbs_incast *x, struct fb_err *e)
{
	int rc = check_stop(e);

	for (unsigned i = 0; rc == 0 && i < npeers(x); i++)
		if (!x->peer[i].lost)
			rc = give_up(x, &x->peer[i], fb_oob_lost(x->peer[i].oob, e), e);
	return rc;
}

static int sleep_until(struct verbs_incast *x, uint64_t until, struct fb_err *e)
{
	uint64_t now;

	while ((now = fb_clock_ns()) < until) {
		uint64_t ns = until - now < 20000000u ? until - now : 20000000u;
		struct timespec t = {0, (long)ns};
		int rc = check_peers(x, e);
		if (rc)
			return rc;
		nanosleep(&t, NULL);
	}
	return check_peers(x, e);
}

static int probe_until(struct verbs_incast *x, uint64_t until, struct fb_err *e)
{
	struct verbs_incast_peer *v = &x->peer[x->nsenders];
	struct verbs_wait w = {NULL, &v->end.stop, until + ANSWER_NS, e};
	uint64_t ns[BATCH];
	struct fb_sink sink = {.ns = ns, .cap = BATCH};
	int rc = 0;

	v->end.probe.started = false; /* each step has a schedule of its own */
	v->end.probe.backlog = v->end.probe.most_behind = 0;
	while (rc == 0 && !v->lost && fb_clock_ns() < until) {
		sink.n = 0;
		rc = verbs_probe_run(&v->end.probe, &w, BATCH, until, &sink);
		for (size_t i = 0; i < sink.n; i++)
			fb_hist_add(x->hist, ns[i]);
		if (rc == 0)
			rc = check_peers(x, e);
		/* Nothing more is due before the end. */
		if (rc == 0 && sink.n == 0)
			rc = sleep_until(x, until, e);
		rc = give_up(x, v, rc, e);
	}
	return rc || !v->lost ? rc : sleep_until(x, until, e);
}

static int take_answer(
	struct verbs_incast *x, struct verbs_incast_peer *p, const json_t *answer, struct fb_err *e)
{
	const json_t *messages = json_object_get(answer, "messages"),
		     *ns = json_object_get(answer, "ns");
	double bytes = 0, time = 0;

	if (json_array_size(messages) != x->slots || json_array_size(ns) != x->slots)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the sender %s told of %zu slots instead of %u", p->name,
			json_array_size(messages), x->slots);
	for (unsigned i = 0; i < x->slots; i++) {
		p->bytes[i] = json_number_value(json_array_get(messages, i)) *
			      (double)x->job.p.load.bg_size;
		p->ns[i] = json_number_value(json_array_get(ns, i));
		bytes += p->bytes[i];
		time += p->ns[i];
	}
	p->rate = time > 0 ? bytes / time * 1e9 : 0;
	p->sent = (uint64_t)fb_json_int(answer, "sent", 0);
	return 0;
}

static int collect(struct verbs_incast *x, unsigned n, struct fb_err *e)
{
	for (unsigned i = 0; i < n; i++) {
		json_t *answer;
		int rc;
		if (x->peer[i].lost)
			continue;
		rc = hear(&x->peer[i], &answer,
			fb_deadline_in(x->tail_ns + x->slots * x->slot_ns + ANSWER_NS), e);
		if (rc == 0)
			rc = take_answer(x, &x->peer[i], answer, e);
		json_decref(answer);
		rc = give_up(x, &x->peer[i], rc, e);
		if (rc)
			return rc;
	}
	return 0;
}

static json_t *send_order(const struct verbs_incast *x)
{
	json_t *j = json_object();

	fb_json_set_str(j, "do", "send");
	fb_json_set_int(j, "lead_ns", (int64_t)x->lead_ns);
	fb_json_set_int(j, "slot_ns", (int64_t)x->slot_ns);
	fb_json_set_int(j, "slots", x->slots);
	fb_json_set_int(j, "tail_ns", (int64_t)x->tail_ns);
	return j;
}

static bool any_lost(const struct verbs_incast *x)
{
	for (unsigned i = 0; i < npeers(x); i++)
		if (x->peer[i].lost)
			return true;
	return false;
}

static int step(struct verbs_incast *x, unsigned n, struct fb_err *e)
{
	uint64_t from, until;
	int rc = check_stop(e);

	for (unsigned i = 0; i < x->nsenders; i++) {
		x->peer[i].rate = 0;
		x->peer[i].sent = 0;
	}
	if (x->hist)
		fb_hist_init(x->hist);
	fb_progress("[%u/%u senders]", n, x->nsenders);
	if (rc == 0)
		rc = read_counters(x, false, e);
	for (unsigned i = 0; rc == 0 && i < n; i++)
		if (!x->peer[i].lost)
			rc = give_up(x, &x->peer[i], tell(&x->peer[i], send_order(x), e), e);
	from = fb_deadline_in(x->lead_ns);
	until = from + x->slots * x->slot_ns;
	if (rc == 0)
		rc = sleep_until(x, from, e);
	if (rc == 0)
		rc = x->victim ? probe_until(x, until, e) : sleep_until(x, until, e);
	if (rc == 0)
		rc = collect(x, n, e);
	if (rc == 0)
		rc = read_counters(x, true, e);
	if (rc)
		return rc;
	if (!any_lost(x))
		verbs_incast_results(x, n);
	return fb_doc_publish(x->doc, e);
}

int verbs_incast_steps(struct verbs_incast *x, struct fb_err *e)
{
	unsigned first = x->ramp ? 1 : x->nsenders, done = 0;
	unsigned all = x->nsenders - first + 1 + x->victim;
	struct fb_tell tell;
	int rc = 0;

	x->idle_p50 = x->idle_p99 = NAN;
	fb_tell_open(&tell);
	for (unsigned n = x->victim ? 0 : first; rc == 0 && n <= x->nsenders;
		n = n == 0 ? first : n + 1) {
		char name[48];
		snprintf(name, sizeof(name), "%u senders", n);
		fb_tell_begin(&tell, ++done, all, name);
		rc = step(x, n, e);
		if (rc == 0)
			fb_tell_end(&tell, x->doc);
	}
	fb_tell_close(&tell);
	fb_progress_end();
	return rc;
}
