// SPDX-License-Identifier: Apache-2.0
/*
 * Both ends of an incast's session, and the server's side of it.
 */
#include "verbs/incast.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "verbs/counters.h"
#include "verbs/lossless/drive.h"
#include "verbs/lossless/live.h"

/* How long a receiver may be silent: it has its own windows, and other senders to set up. */
#define SILENCE_NS 300000000000ull
#define ANSWER_NS  10000000000ull
#define MAX_NS     3600000000000ll

static const struct fb_sysroot live = {.dir = NULL};

double verbs_jain(const double *x, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares > 0 ? sum * sum / ((double)n * squares) : NAN;
}

json_t *verbs_incast_counters(const struct verbs_rail *r, bool wide)
{
	json_t *j = json_object(), *c;

	if (wide) {
		struct live_reading x;
		live_read(&live, r->dev->name, (int)r->dev->port, r->dev->netdev, &x);
		fb_json_set_str(j, "driver", r->dev->driver);
		json_object_set_new(j, "reading", live_reading_json(&x));
		json_object_set_new(
			j, "counters", x.counters ? json_incref(x.counters) : json_object());
		live_reading_free(&x);
		return j;
	}
	verbs_counters_settle(&live, r->dev->name, r->dev->port);
	c = verbs_counters_read(&live, r->dev->name, r->dev->port);
	fb_json_set_str(j, "driver", r->dev->driver);
	json_object_set_new(j, "counters", c ? c : json_object());
	return j;
}

/* A victim's connection is a latency test's, a sender's one of the background. */
static void end_params(struct verbs_incast_end *x, const struct verbs_job *job)
{
	if (job->p.load.role == VERBS_ROLE_SENDER) {
		verbs_load_bg_params(&x->p, &job->p, job->node->dev[0].software);
		return;
	}
	x->p = job->p;
	x->p.bench = VERBS_LATENCY;
}

int verbs_incast_open(struct verbs_incast_end *x, const struct verbs_job *job, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e)
{
	struct verbs_dev *dev = &job->node->dev[0];
	bool client = fb_oob_rank(o) == 0;
	bool sender = job->p.load.role == VERBS_ROLE_SENDER;
	int rc;

	memset(x, 0, sizeof *x);
	end_params(x, job);
	if (verbs_rail_open(&x->rail, dev, &x->p, verbs_place_node(x->p.numa, dev->numa_node), e) ==
		0)
		x->open = true;
	rc = fb_oob_agree(o, e, deadline);
	if (rc == 0)
		rc = verbs_connect(&x->rail, 1, &x->p, o, deadline, e);
	if (rc) {
		verbs_incast_close(x);
		return rc;
	}
	verbs_pattern_fill(x->rail.buf + verbs_send_off(&x->rail, 0), x->rail.span,
		(unsigned)fb_oob_rank(o), 0);
	snprintf(x->what, sizeof x->what, "%s of %llu B from %s to %s on %s",
		sender ? "incast write" : "victim's read",
		(unsigned long long)(sender ? x->p.load.bg_size : x->p.sizes[0]), dev->name,
		x->rail.remote.device, x->rail.remote.host);
	if (sender)
		verbs_flow_init(&x->flow, &x->rail, &x->p, client, &x->stop, x->what);
	else
		verbs_probe_init(&x->probe, &x->rail, VERBS_READ, x->p.sizes[0], x->p.events,
			client, x->p.load.interval_ns, x->what);
	return 0;
}

void verbs_incast_close(struct verbs_incast_end *x)
{
	if (!x->open)
		return;
	if (x->flow.running)
		verbs_flow_kill(&x->flow);
	drive_echo_free(x->echo);
	x->echo = NULL;
	verbs_rail_close(&x->rail);
	x->open = false;
}

/* ---- the server's side ----------------------------------------------------------------------- */

struct plan {
	uint64_t lead, slot, tail;
	unsigned slots;
};

static int read_plan(const json_t *j, struct plan *p, struct fb_err *e)
{
	int64_t lead = fb_json_int(j, "lead_ns", -1), slot = fb_json_int(j, "slot_ns", -1),
		tail = fb_json_int(j, "tail_ns", -1), slots = fb_json_int(j, "slots", -1);

	if (lead < 0 || tail < 0 || slot < 1 || slots < 1 || slots > VERBS_INCAST_MAX_SLOTS ||
		lead > MAX_NS || tail > MAX_NS || slot > MAX_NS / slots)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the receiver's order to send makes no sense");
	*p = (struct plan){(uint64_t)lead, (uint64_t)slot, (uint64_t)tail, (unsigned)slots};
	return 0;
}

/* Until then, unless the flow fails, the receiver is gone or a stop is asked for. */
static int pass_time(struct verbs_incast_end *x, struct fb_oob *o, uint64_t until, struct fb_err *e)
{
	uint64_t now;

	while ((now = fb_clock_ns()) < until) {
		uint64_t ns = until - now < 10000000u ? until - now : 10000000u;
		struct timespec t = {0, (long)ns};
		int rc;
		nanosleep(&t, NULL);
		if (atomic_load(&x->stop))
			return -ECANCELED; /* the flow tells why */
		if (fb_stop_requested())
			return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
		rc = fb_oob_lost(o, e);
		if (rc)
			return rc;
	}
	return 0;
}

static int send_for(struct verbs_incast_end *x, struct fb_oob *o, const struct plan *p,
	json_t *answer, struct fb_err *e)
{
	json_t *messages = json_array(), *took = json_array();
	uint64_t began = fb_clock_ns(), last_ns, last_done, end, first = verbs_flow_done(&x->flow);
	int rc;

	json_object_set_new(answer, "messages", messages);
	json_object_set_new(answer, "ns", took);
	end = began + p->lead + p->slots * p->slot + p->tail;
	rc = verbs_flow_start(&x->flow, end + ANSWER_NS, e);
	if (rc)
		return rc;
	rc = pass_time(x, o, began + p->lead, e);
	last_ns = fb_clock_ns();
	last_done = verbs_flow_done(&x->flow);
	for (unsigned i = 1; rc == 0 && i <= p->slots; i++) {
		uint64_t now, done;
		rc = pass_time(x, o, began + p->lead + i * p->slot, e);
		now = fb_clock_ns();
		done = verbs_flow_done(&x->flow);
		json_array_append_new(messages, json_integer((json_int_t)(done - last_done)));
		json_array_append_new(took, json_integer((json_int_t)(now - last_ns)));
		last_ns = now;
		last_done = done;
	}
	if (rc == 0)
		rc = pass_time(x, o, end, e);
	if (rc) {
		verbs_flow_kill(&x->flow);
		if (x->flow.err.code && rc == -ECANCELED)
			*e = x->flow.err;
		return rc;
	}
	rc = verbs_flow_end(&x->flow, e);
	fb_json_set_int(answer, "sent", (int64_t)(verbs_flow_done(&x->flow) - first));
	return rc;
}

/* @return 1: the end; 0: go on; negative: the cause */
static int obey(struct verbs_incast_end *x, struct fb_oob *o, const json_t *order, struct fb_err *e)
{
	const char *what = fb_json_str(order, "do", "");
	json_t *answer = json_object(), *none = NULL;
	struct plan p = {0};
	int rc = 0, end = !strcmp(what, "end");

	if (!strcmp(what, "send") && x->flow.issues) {
		rc = read_plan(order, &p, e);
		if (rc == 0)
			rc = send_for(x, o, &p, answer, e);
	} else if (!strcmp(what, "counters")) {
		json_object_set_new(answer, "port",
			verbs_incast_counters(
				&x->rail, json_is_true(json_object_get(order, "wide"))));
	} else if (!end && !drive_obey(x, what, order, answer)) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the receiver sent an order that makes no sense ('%.40s')", what);
	}
	if (rc == 0)
		rc = fb_oob_gather_json(o, answer, &none, fb_deadline_in(ANSWER_NS), e);
	json_decref(none);
	json_decref(answer);
	return rc ? rc : end;
}

int verbs_incast_serve(
	const struct verbs_job *job, struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	struct verbs_incast_end *x = calloc(1, sizeof *x);
	json_t *host, *none = NULL;
	int rc;

	if (!x)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	host = fb_sysinfo_host(&live, false);
	rc = fb_oob_gather_json(o, host, &none, deadline, e);
	json_decref(host);
	json_decref(none);
	if (rc == 0)
		rc = verbs_incast_open(x, job, o, deadline, e);
	while (rc == 0) {
		json_t *order = NULL;
		uint64_t patience = fb_deadline_in(SILENCE_NS);
		rc = fb_oob_bcast_json(o, &order, patience < deadline ? patience : deadline, e);
		if (rc == 0)
			rc = obey(x, o, order, e);
		json_decref(order);
	}
	verbs_incast_close(x);
	free(x);
	return rc < 0 ? rc : 0;
}
