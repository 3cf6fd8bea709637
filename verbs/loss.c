// SPDX-License-Identifier: Apache-2.0
/*
 * Both ends of a loss sweep's session, and the server's side of it.
 */
#include "verbs/loss.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "verbs/counters.h"

/* How long a client may be silent: it may be waiting for a loss command of its own. */
#define SILENCE_NS 300000000000ull
#define ANSWER_NS  20000000000ull
/* A stream that has been told to end has its window to bring over, and lost packets to repeat. */
#define DRAIN_NS 60000000000ull
/* A stop and the time are looked at after so many small messages. */
#define BATCH 8u

static const struct fb_sysroot live = {.dir = NULL};

/* ---- packets --------------------------------------------------------------------------------- */

static const struct {
	const char *driver, *counter;
} sent[] = {{"rxe", "sent_pkts"}, {"mlx5", "port_xmit_packets"}, {"mlx4", "port_xmit_packets"},
	{"bnxt_re", "tx_pkts"}, {"efa", "tx_pkts"}, {"irdma", "TxUDP"}};

int64_t verbs_loss_packets(const char *driver, const json_t *before, const json_t *after)
{
	for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
		const json_t *b = json_object_get(before, sent[i].counter);
		const json_t *a = json_object_get(after, sent[i].counter);
		if (strcmp(sent[i].driver, driver) != 0)
			continue;
		if (!json_is_integer(a) || !json_is_integer(b) ||
			json_integer_value(a) < json_integer_value(b))
			return -1;
		return json_integer_value(a) - json_integer_value(b);
	}
	return -1;
}

static json_t *port_counters(const struct verbs_rail *r)
{
	json_t *j = json_object(), *c;

	verbs_counters_settle(&live, r->dev->name, r->dev->port);
	c = verbs_counters_read(&live, r->dev->name, r->dev->port);
	fb_json_set_str(j, "driver", r->dev->driver);
	json_object_set_new(j, "counters", c ? c : json_object());
	return j;
}

/* ---- open and close -------------------------------------------------------------------------- */

static int open_rails(struct verbs_loss_end *x, const struct verbs_job *job, struct fb_err *e)
{
	struct verbs_dev *dev = &job->node->dev[0];
	int node = verbs_place_node(job->p.numa, dev->numa_node), rc;

	rc = verbs_rail_open(&x->stream_rail, dev, &x->stream_p, node, e);
	x->stream_open = rc == 0;
	if (rc == 0) {
		rc = verbs_rail_open(&x->probe_rail, dev, &x->probe_p, node, e);
		x->probe_open = rc == 0;
	}
	return rc;
}

static void ready(struct verbs_loss_end *x, const struct verbs_job *job, bool client)
{
	const struct verbs_dev *dev = &job->node->dev[0];
	struct verbs_rail *r = &x->stream_rail;

	snprintf(x->stream_what, sizeof x->stream_what,
		"stream of %s of %llu B between %s and %s on %s", verbs_ops[job->p.load.bg_op].name,
		(unsigned long long)job->p.load.bg_size, dev->name, r->remote.device,
		r->remote.host);
	snprintf(x->probe_what, sizeof x->probe_what, "read of %llu B by %s from %s on %s",
		(unsigned long long)x->probe_p.sizes[0], dev->name, r->remote.device,
		r->remote.host);
	verbs_pattern_fill(r->buf + verbs_send_off(r, 0), r->span, client ? 0 : 1, 0);
	verbs_flow_init(&x->flow, r, &x->stream_p, client, &x->stop, x->stream_what);
	/* Who sends asks too: its requests go the way that loses packets. */
	verbs_probe_init(&x->probe, &x->probe_rail, VERBS_READ, x->probe_p.sizes[0],
		x->probe_p.events, x->sends, 0, x->probe_what);
}

int verbs_loss_open(struct verbs_loss_end *x, const struct verbs_job *job, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e)
{
	bool client = fb_oob_rank(o) == 0;
	int rc;

	memset(x, 0, sizeof *x);
	x->maker.guard_fd = -1;
	x->sends = verbs_load_issues(&job->p.load, client);
	verbs_load_bg_params(&x->stream_p, &job->p, job->node->dev[0].software);
	x->probe_p = job->p;
	x->probe_p.bench = VERBS_LATENCY;
	(void)!open_rails(x, job, e);
	rc = fb_oob_agree(o, e, deadline);
	if (rc == 0)
		rc = verbs_connect(&x->stream_rail, 1, &x->stream_p, o, deadline, e);
	if (rc == 0)
		rc = verbs_connect(&x->probe_rail, 1, &x->probe_p, o, deadline, e);
	if (rc) {
		verbs_loss_close(x);
		return rc;
	}
	ready(x, job, client);
	return 0;
}

void verbs_loss_close(struct verbs_loss_end *x)
{
	struct fb_err ignored = {0};

	/* First of all: without it nothing here would be lost any more. */
	verbs_loss_maker_close(&x->maker, &ignored);
	if (x->flow.running)
		verbs_flow_kill(&x->flow);
	if (x->probe_open)
		verbs_rail_close(&x->probe_rail);
	if (x->stream_open)
		verbs_rail_close(&x->stream_rail);
	x->probe_open = x->stream_open = false;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static int fail_order(struct fb_err *e, const char *what)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
		"the client sent an order that makes no sense ('%.40s')", what);
}

static void mark(struct verbs_loss_end *x, json_t *answer)
{
	unsigned long long done = atomic_load_explicit(&x->flow.done, memory_order_relaxed);
	unsigned long long taken = atomic_load_explicit(&x->flow.taken, memory_order_relaxed);

	fb_json_set_int(answer, "ns", (int64_t)fb_clock_ns());
	fb_json_set_int(answer, "done", (int64_t)done);
	fb_json_set_int(answer, "taken", (int64_t)taken);
}

static int start_stream(
	struct verbs_loss_end *x, const json_t *order, json_t *answer, struct fb_err *e)
{
	int64_t ns = fb_json_int(order, "ns", -1);

	if (x->flow.running || ns < 1 || ns > VERBS_LOSS_MAX_NS)
		return fail_order(e, "start");
	json_object_set_new(answer, "port", port_counters(&x->stream_rail));
	mark(x, answer);
	return verbs_flow_start(&x->flow, fb_deadline_in((uint64_t)ns + DRAIN_NS), e);
}

static int take_mark(struct verbs_loss_end *x, json_t *answer, struct fb_err *e)
{
	mark(x, answer);
	if (!atomic_load(&x->stop))
		return 0;
	/* The stream has failed: its own thread knows why. */
	verbs_flow_kill(&x->flow);
	if (x->flow.err.code)
		*e = x->flow.err;
	else
		fb_fail(e, FB_EXIT_UNMEASURED, ECANCELED, "the %s has ended", x->stream_what);
	return e->code;
}

static int stop_stream(struct verbs_loss_end *x, json_t *answer, struct fb_err *e)
{
	int rc = verbs_flow_end(&x->flow, e);

	if (rc)
		return rc;
	mark(x, answer);
	json_object_set_new(answer, "port", port_counters(&x->stream_rail));
	return 0;
}

/* One after the other: how long each takes is its own, and no loss holds up what comes after. */
static int probe(
	struct verbs_loss_end *x, uint64_t n, uint64_t ns, struct fb_hist *h, struct fb_err *e)
{
	uint64_t until = fb_deadline_in(ns), took[BATCH];
	struct verbs_wait w = {NULL, &x->stop, until + DRAIN_NS, e};
	int rc = 0;

	x->probe.l.wait = w;
	while (rc == 0 && h->n < n && fb_clock_ns() < until) {
		struct fb_sink sink = {.ns = took, .cap = BATCH};
		if (fb_stop_requested())
			return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
		rc = x->probe.loop(&x->probe.l, n - h->n < BATCH ? n - h->n : BATCH, &sink);
		for (size_t i = 0; rc == 0 && i < sink.n; i++)
			fb_hist_add(h, took[i] * x->probe.scale);
	}
	verbs_cq_ack(&x->probe.l.tx);
	verbs_cq_ack(&x->probe.l.rx);
	return rc;
}

static int do_probe(struct verbs_loss_end *x, const json_t *order, json_t *answer, struct fb_err *e)
{
	int64_t n = fb_json_int(order, "n", -1), ns = fb_json_int(order, "ns", -1);
	struct fb_hist *h;
	json_t *before;
	int rc;

	if (!x->sends || !x->probe.loop || n < 1 || n > VERBS_LOSS_MAX_PROBES || ns < 1 ||
		ns > VERBS_LOSS_MAX_NS)
		return fail_order(e, "probe");
	h = malloc(sizeof *h);
	if (!h)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a histogram");
	fb_hist_init(h);
	before = port_counters(&x->probe_rail);
	rc = probe(x, (uint64_t)n, (uint64_t)ns, h, e);
	if (rc == 0) {
		json_object_set(answer, "before", before);
		json_object_set_new(answer, "after", port_counters(&x->probe_rail));
		json_object_set_new(answer, "hist", fb_hist_to_json(h));
	}
	json_decref(before);
	free(h);
	return rc;
}

static int make_loss(struct verbs_loss_end *x, const json_t *order, struct fb_err *e)
{
	double percent = fb_json_num(order, "percent", NAN);
	const char *device = fb_json_str(order, "device", "");
	int rc = 0;

	if (!(percent >= 0 && percent < 100))
		return fail_order(e, "loss");
	if (!x->allowed || strcmp(x->allowed, device) != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, EACCES,
			"this server does not let clients make loss on its device '%.40s'", device);
		fb_hint(e,
			"start it with `fabricbench verbs serve --allow-netem %.40s`; or make the "
			"loss by --loss-command",
			device);
		return -EACCES;
	}
	if (!x->maker.guard)
		rc = verbs_loss_maker_open(&x->maker, VERBS_LOSS_NETEM, device, e);
	return rc ? rc : verbs_loss_maker_set(&x->maker, percent, e);
}

int verbs_loss_act(struct verbs_loss_end *x, const json_t *order, json_t *answer, struct fb_err *e)
{
	const char *what = fb_json_str(order, "do", "");

	if (!strcmp(what, "start"))
		return start_stream(x, order, answer, e);
	if (!strcmp(what, "mark"))
		return take_mark(x, answer, e);
	if (!strcmp(what, "stop"))
		return stop_stream(x, answer, e);
	if (!strcmp(what, "probe"))
		return do_probe(x, order, answer, e);
	if (!strcmp(what, "loss"))
		return make_loss(x, order, e);
	return fail_order(e, what);
}

/* ---- the server's side ----------------------------------------------------------------------- */

/* @return 1: the end; 0: go on; negative: the cause */
static int obey(struct verbs_loss_end *x, struct fb_oob *o, const json_t *order, struct fb_err *e)
{
	json_t *answer = json_object(), *none = NULL;
	int end = !strcmp(fb_json_str(order, "do", ""), "end"), rc = 0;

	if (!end)
		rc = verbs_loss_act(x, order, answer, e);
	else if (verbs_loss_maker_close(&x->maker, e) != 0)
		rc = e->code;
	if (rc == 0)
		rc = fb_oob_gather_json(o, answer, &none, fb_deadline_in(ANSWER_NS), e);
	json_decref(none);
	json_decref(answer);
	return rc ? rc : end;
}

static int serve(struct verbs_loss_end *x, struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	int rc = 0;

	while (rc == 0) {
		json_t *order = NULL;
		uint64_t patience = fb_deadline_in(SILENCE_NS);
		rc = fb_oob_bcast_json(o, &order, patience < deadline ? patience : deadline, e);
		if (rc == 0)
			rc = obey(x, o, order, e);
		json_decref(order);
	}
	return rc < 0 ? rc : 0;
}

int verbs_loss_serve(const struct verbs_job *job, const char *allowed, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e)
{
	struct verbs_loss_end *x = calloc(1, sizeof *x);
	json_t *host, *none = NULL;
	int rc;

	if (!x)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	host = fb_sysinfo_host(&live, false);
	rc = fb_oob_gather_json(o, host, &none, deadline, e);
	json_decref(host);
	json_decref(none);
	if (rc == 0)
		rc = verbs_loss_open(x, job, o, deadline, e);
	if (rc == 0) {
		x->allowed = allowed;
		rc = serve(x, o, deadline, e);
		verbs_loss_close(x);
	}
	free(x);
	return rc;
}
