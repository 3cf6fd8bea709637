// SPDX-License-Identifier: Apache-2.0
/*
 * The turns. One thread does it all: it tells both ends when to start and to stop, reads both ends'
 * marks, and each end counts by its own clock, so that what the control channel loses is in no
 * figure.
 */
#include "verbs/loss_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/tell.h"

/* An answer may have to be sent several times where the control channel shares the lossy link. */
#define ANSWER_NS 60000000000ull
#define TOLD_NS   120000000000ull

unsigned verbs_loss_order(unsigned nrates, unsigned turn, unsigned place)
{
	/* Every other turn runs backwards: what drifts slowly meets both ends alike. */
	return (turn % nrates + (turn % 2 ? nrates - place : place)) % nrates;
}

/* ---- both ends ------------------------------------------------------------------------------- */

static int ask(struct verbs_loss_peer *p, const json_t *order, json_t **answer, uint64_t deadline,
	struct fb_err *e)
{
	json_t *mine = json_object(), *all = NULL, *copy = json_deep_copy(order);
	int rc = fb_oob_bcast_json(p->oob, &copy, fb_deadline_in(ANSWER_NS), e);

	if (rc == 0)
		rc = fb_oob_gather_json(p->oob, mine, &all, deadline, e);
	*answer = rc == 0 ? json_incref(json_array_get(all, 1)) : NULL;
	json_decref(all);
	json_decref(mine);
	json_decref(copy);
	return rc;
}

/* The order to the end that sends, or to the one that receives. */
static int tell(struct verbs_loss_run *x, struct verbs_loss_peer *p, bool sender,
	const json_t *order, json_t **answer, uint64_t deadline, struct fb_err *e)
{
	int rc;

	*answer = NULL;
	if (sender == x->to_client)
		return ask(p, order, answer, deadline, e);
	*answer = json_object();
	rc = verbs_loss_act(&p->end, order, *answer, e);
	if (rc) {
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

static int tell_simply(struct verbs_loss_run *x, struct verbs_loss_peer *p, bool sender,
	const char *what, json_t **answer, struct fb_err *e)
{
	json_t *order = json_pack(
		"{s:s,s:I}", "do", what, "ns", (json_int_t)(x->lead_ns + x->window_ns + ANSWER_NS));
	int rc = tell(x, p, sender, order, answer, fb_deadline_in(TOLD_NS), e);

	json_decref(order);
	return rc;
}

static int check(const struct verbs_loss_peer *p, struct fb_err *e)
{
	if (!fb_stop_requested())
		return fb_oob_lost(p->oob, e);
	fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
	fb_hint(e, "the finished points are kept; run it again for the others");
	return -EINTR;
}

static int sleep_for(const struct verbs_loss_peer *p, uint64_t ns, struct fb_err *e)
{
	uint64_t until = fb_deadline_in(ns), now;

	while ((now = fb_clock_ns()) < until) {
		uint64_t left = until - now < 20000000u ? until - now : 20000000u;
		struct timespec t = {0, (long)left};
		int rc = check(p, e);
		if (rc)
			return rc;
		nanosleep(&t, NULL);
	}
	return check(p, e);
}

/* ---- one point ------------------------------------------------------------------------------- */

/* Where sends complete, the receiver has counted them; of writes, who posts them knows what the
 * receiver's NIC has acknowledged. */
static int take_mark(struct verbs_loss_run *x, struct verbs_loss_peer *p, double *messages,
	double *ns, struct fb_err *e)
{
	bool receiver = verbs_ops[x->job.p.load.bg_op].takes_receive;
	json_t *answer;
	int rc = tell_simply(x, p, !receiver, "mark", &answer, e);

	if (rc)
		return rc;
	*messages = fb_json_num(answer, receiver ? "taken" : "done", NAN);
	*ns = fb_json_num(answer, "ns", NAN);
	json_decref(answer);
	return 0;
}

/* The window by marks; *first is where the stream stood when it began. */
static int window(struct verbs_loss_run *x, struct verbs_loss_peer *p, struct verbs_loss_seen *s,
	struct fb_err *e)
{
	double from = 0, to = 0, from_ns = 0, to_ns = 0;
	int rc = sleep_for(p, x->lead_ns, e);

	if (rc == 0)
		rc = take_mark(x, p, &from, &from_ns, e);
	if (rc == 0)
		rc = sleep_for(p, x->window_ns, e);
	if (rc == 0)
		rc = take_mark(x, p, &to, &to_ns, e);
	s->bytes = (to - from) * (double)x->job.p.load.bg_size;
	s->ns = to_ns - from_ns;
	return rc;
}

static json_t *take_port(json_t *answer)
{
	json_t *port = json_incref(json_object_get(answer, "port"));

	json_decref(answer);
	return port;
}

/* Start and stop of an end: writes leave the receiver nothing to do but to tell its counters. */
static int edge(struct verbs_loss_run *x, struct verbs_loss_peer *p, bool sender, bool begin,
	struct verbs_loss_seen *s, struct fb_err *e)
{
	json_t *answer;
	int rc = tell_simply(x, p, sender, begin ? "start" : "stop", &answer, e);

	if (rc)
		return rc;
	if (sender)
		s->messages = fb_json_num(answer, "done", 0) - (begin ? 0 : s->messages);
	*(begin ? &s->before[!sender] : &s->after[!sender]) = take_port(answer);
	return 0;
}

static int stream(struct verbs_loss_run *x, struct verbs_loss_peer *p, struct verbs_loss_seen *s,
	struct fb_err *e)
{
	/* The receiver is there before the first message and after the last. */
	int rc = edge(x, p, false, true, s, e);

	if (rc == 0)
		rc = edge(x, p, true, true, s, e);
	if (rc == 0)
		rc = window(x, p, s, e);
	if (rc == 0)
		rc = edge(x, p, true, false, s, e);
	if (rc == 0)
		rc = edge(x, p, false, false, s, e);
	return rc;
}

static int probes(struct verbs_loss_run *x, struct verbs_loss_peer *p, struct verbs_loss_seen *s,
	struct fb_err *e)
{
	json_t *order = json_pack("{s:s,s:I,s:I}", "do", "probe", "n", (json_int_t)x->probes, "ns",
		(json_int_t)x->probe_ns);
	json_t *answer;
	int rc = tell(x, p, true, order, &answer, fb_deadline_in(x->probe_ns + TOLD_NS), e);

	json_decref(order);
	if (rc)
		return rc;
	s->probe_before = json_incref(json_object_get(answer, "before"));
	s->probe_after = json_incref(json_object_get(answer, "after"));
	rc = fb_hist_from_json(s->hist, json_object_get(answer, "hist"), e);
	json_decref(answer);
	return rc;
}

static int set_loss(
	struct verbs_loss_run *x, struct verbs_loss_peer *p, double percent, struct fb_err *e)
{
	json_t *order, *answer;
	int rc;

	if (x->how != VERBS_LOSS_NETEM || !x->to_client)
		return verbs_loss_maker_set(&x->maker, percent, e);
	order = json_pack("{s:s,s:f,s:s}", "do", "loss", "percent", percent, "device", x->device);
	rc = ask(p, order, &answer, fb_deadline_in(TOLD_NS), e);
	json_decref(order);
	json_decref(answer);
	return rc;
}

static void drop_seen(struct verbs_loss_seen *s)
{
	for (int i = 0; i < 2; i++) {
		json_decref(s->before[i]);
		json_decref(s->after[i]);
	}
	json_decref(s->probe_before);
	json_decref(s->probe_after);
	free(s->hist);
}

static int point(struct verbs_loss_run *x, unsigned rate, unsigned turn, struct fb_err *e)
{
	struct verbs_loss_seen s = {.rate = rate, .turn = turn + 1, .hist = malloc(sizeof *s.hist)};
	struct verbs_loss_peer *p = &x->peer[x->npeers > 1 ? rate : 0];
	int rc;

	if (!s.hist)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a histogram");
	rc = set_loss(x, p, x->rate[rate].percent, e);
	if (rc == 0)
		rc = stream(x, p, &s, e);
	if (rc == 0)
		rc = probes(x, p, &s, e);
	if (rc == 0) {
		verbs_loss_results(x, &s);
		rc = fb_doc_publish(x->doc, e);
	}
	drop_seen(&s);
	return rc;
}

int verbs_loss_turns(struct verbs_loss_run *x, struct fb_err *e)
{
	struct fb_tell tell;
	int rc = 0;

	fb_tell_open(&tell);
	for (unsigned t = 0; rc == 0 && t < x->turns; t++)
		for (unsigned i = 0; rc == 0 && i < x->nrates; i++) {
			unsigned rate = verbs_loss_order(x->nrates, t, i);
			char name[64];
			snprintf(name, sizeof(name), "%g %% lost", x->rate[rate].percent);
			fb_progress("[turn %u/%u, %s]", t + 1, x->turns, name);
			fb_tell_begin(&tell, t * x->nrates + i + 1, x->turns * x->nrates, name);
			rc = point(x, rate, t, e);
			if (rc == 0)
				fb_tell_end(&tell, x->doc);
		}
	fb_tell_close(&tell);
	fb_progress_end();
	return rc;
}
