// SPDX-License-Identifier: Apache-2.0
/*
 * verbs.load: what a probe flow suffers from a background flow. Each probe is measured twice in one
 * session, idle and beside the background; both ends keep the background up from before the first
 * batch of its point to the check, and the probe's schedule runs through all batches.
 */
#include "verbs/load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"
#include "verbs/flow.h"
#include "verbs/probe.h"
#include "verbs/state.h"

#define DEFINITION                                                                                \
	"time from when a probe was due by its open-loop schedule to its answer: the full round " \
	"trip, waiting for earlier probes included"

/* fb_point.user above what state.h uses: is the background on? */
#define WITH_BACKGROUND (1ull << 32)

/* The background is let run so long before anything is counted. */
#define RAMP_NS 50000000u

struct load_own {
	struct verbs_job probe_job; /**< the session's, as a latency benchmark's */
	struct verbs_params bg;
	struct verbs_rail bg_rail;
	bool bg_open;
	struct verbs_flow flow;
	struct verbs_probe probe;
	char bg_what[320];
	uint64_t interval_ns;
	/* of the point in progress */
	bool on, marked;
	uint64_t since_ns, since_done;
	double rate[2]; /**< achieved by each rank, bytes/s; NAN: it posts nothing */
	uint64_t let_go_ns;
};

static bool point_on(const struct fb_point *p)
{
	return (p->user & WITH_BACKGROUND) != 0;
}

/* ---- setup ----------------------------------------------------------------------------------- */

static int open_background(struct fb_run *run, struct verbs_state *s, struct fb_err *e)
{
	struct load_own *own = s->own;
	struct verbs_dev *dev = s->rail[0].dev;
	struct fb_oob *o = fb_run_oob(run);
	int rc;

	verbs_load_bg_params(&own->bg, &s->job->p, dev->software);
	if (verbs_rail_open(&own->bg_rail, dev, &own->bg,
		    verbs_place_node(s->job->p.numa, dev->numa_node), e) == 0)
		own->bg_open = true;
	rc = fb_oob_agree(o, e, fb_run_deadline(run));
	if (rc == 0)
		rc = verbs_connect(&own->bg_rail, 1, &own->bg, o, fb_run_deadline(run), e);
	if (rc)
		return rc;
	snprintf(own->bg_what, sizeof own->bg_what, "background %s of %llu B from %s to %s on %s",
		verbs_ops[own->bg.load.bg_op].name, (unsigned long long)own->bg.load.bg_size,
		dev->name, own->bg_rail.remote.device, own->bg_rail.remote.host);
	verbs_pattern_fill(
		own->bg_rail.buf + verbs_send_off(&own->bg_rail, 0), own->bg_rail.span, s->rank, 0);
	verbs_flow_init(&own->flow, &own->bg_rail, &own->bg, s->rank == 0, &s->stop, own->bg_what);
	return 0;
}

static void teardown(void *st)
{
	struct verbs_state *s = st;
	struct load_own *own = s ? s->own : NULL;

	if (own) {
		verbs_flow_kill(&own->flow);
		if (own->bg_open)
			verbs_rail_close(&own->bg_rail);
	}
	verbs_state_close(s);
	free(own); /* the state has borrowed its job */
}

static int setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct load_own *own = calloc(1, sizeof *own);
	struct verbs_state *s;
	int rc;

	if (!own)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	own->probe_job = *(const struct verbs_job *)cfg;
	own->probe_job.p.bench = VERBS_LATENCY; /* the probe's queue pair is a latency test's */
	rc = verbs_state_open(run, &own->probe_job, &s, e);
	if (rc) {
		free(own);
		return rc;
	}
	s->own = own;
	own->interval_ns = own->probe_job.p.load.interval_ns;
	if (!own->interval_ns)
		own->interval_ns = verbs_state_software(&s->rail[0]) ? VERBS_PROBE_NS_SOFTWARE
								     : VERBS_PROBE_NS;
	rc = open_background(run, s, e);
	if (rc) {
		teardown(s);
		return rc;
	}
	*st = s;
	return 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

static json_t *point_params(const struct verbs_state *s, enum verbs_op op, uint64_t size, bool on)
{
	const struct load_own *own = s->own;
	const struct verbs_params *p = &s->job->p;
	const struct verbs_rail *r = &s->rail[0];
	json_t *j = json_object();

	if (!j)
		return NULL;
	fb_json_set_str(j, "background", on ? "on" : "idle");
	fb_json_set_str(j, "op", verbs_ops[op].name);
	fb_json_set_str(j, "transport", verbs_transports[p->transport].name);
	fb_json_set_str(j, "completion", p->events ? "events" : "poll");
	fb_json_set_int(j, "size", (int64_t)size);
	fb_json_set_int(j, "mtu", r->path_mtu);
	fb_json_set_int(j, "traffic_class", p->traffic_class);
	fb_json_set_int(j, "sl", p->sl);
	fb_json_set_int(j, "interval_ns", (int64_t)own->interval_ns);
	fb_json_set_str(j, "device", verbs_state_end(s, r, true)->device);
	fb_json_set_str(j, "peer_device", verbs_state_end(s, r, false)->device);
	if (on) {
		fb_json_set_str(j, "bg_op", verbs_ops[p->load.bg_op].name);
		fb_json_set_int(j, "bg_size", (int64_t)p->load.bg_size);
		fb_json_set_str(j, "bg_direction", verbs_direction_names[p->load.bg_direction]);
		fb_json_set_int(j, "bg_traffic_class", p->load.bg_traffic_class);
		fb_json_set_int(j, "bg_sl", p->load.bg_sl);
		fb_json_set_int(j, "bg_depth", p->load.bg_depth);
		if (p->load.bg_rate)
			fb_json_set_int(j, "bg_rate", (int64_t)p->load.bg_rate);
		else
			fb_json_set_str(j, "bg_rate", "max");
	}
	if (p->loopback)
		fb_json_set_bool(j, "loopback", 1);
	return j;
}

/* Each probe idle first, then beside the background. */
static int points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct verbs_state *s = st;
	const struct verbs_params *p = &s->job->p;

	for (int i = 0; i < p->nops * p->nsizes * 2; i++) {
		bool on = i % 2;
		enum verbs_op op = (enum verbs_op)p->ops[i / 2 / p->nsizes];
		uint64_t size = p->sizes[i / 2 % p->nsizes];
		json_t *params = point_params(s, op, size, on);
		struct fb_point *pt =
			params ? fb_point_add(l, params, "verbs.load/%s/%s/%s/%s/%llu",
					 verbs_ops[op].name, verbs_transports[p->transport].name,
					 p->events ? "events" : "poll", on ? "on" : "idle",
					 (unsigned long long)size)
			       : NULL;
		if (!pt)
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the sweep");
		pt->size = size;
		pt->user = (uint64_t)op | (on ? WITH_BACKGROUND : 0);
	}
	return 0;
}

/* state.h reads the operation and the rail from `user`; the background's bit is none of its. */
static struct fb_point plain(const struct fb_point *p)
{
	struct fb_point q = *p;

	q.user &= ~WITH_BACKGROUND;
	return q;
}

static int prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct load_own *own = s->own;
	struct fb_point q = plain(p);
	int rc = verbs_flow_end(&own->flow, e);

	if (rc)
		return rc;
	verbs_state_prepare(s, &q);
	verbs_probe_init(&own->probe, &s->rail[0], verbs_point_op(&q), p->size, s->job->p.events,
		s->rank == 0, own->interval_ns, s->what);
	own->on = point_on(p);
	own->marked = false;
	own->rate[0] = own->rate[1] = NAN;
	atomic_store(&s->stop, 0);
	return own->on ? verbs_flow_start(&own->flow, fb_run_deadline(s->run), e) : 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* What the background does is counted from the first batch after its ramp. */
static int ramp(struct load_own *own, struct verbs_wait *w)
{
	uint64_t until = fb_deadline_in(RAMP_NS), since = 0;

	if (own->marked)
		return 0;
	while (own->on && fb_clock_ns() < until) {
		int rc = verbs_wait_slow(w, &since);
		if (rc)
			return rc;
	}
	own->marked = true;
	own->since_ns = fb_clock_ns();
	own->since_done = verbs_flow_done(&own->flow);
	return 0;
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct load_own *own = s->own;
	struct verbs_wait w = {s->run, &s->stop, fb_run_deadline(s->run), e};
	int rc = ramp(own, &w);

	(void)p;
	if (iters > s->longest)
		s->longest = iters;
	if (rc == 0)
		rc = verbs_probe_lead(&own->probe, &w);
	if (rc == 0)
		rc = s->rank == 0 ? verbs_probe_run(&own->probe, &w, iters, 0, sink)
				  : verbs_probe_answer(&own->probe, &w, iters);
	/* The probe only sees that it is to stop; the background knows why. */
	if (rc && atomic_load(&s->stop)) {
		struct fb_err why = {0};
		if (verbs_flow_end(&own->flow, &why) && why.code != -ECANCELED)
			*e = why;
	}
	return rc ? e->code : 0;
}

static double achieved(struct load_own *own)
{
	uint64_t ns = fb_clock_ns() - own->since_ns;

	if (!own->on || !own->marked || !own->flow.issues || !ns)
		return NAN;
	return (double)(verbs_flow_done(&own->flow) - own->since_done) *
	       (double)own->bg.load.bg_size / (double)ns * 1e9;
}

/* Collective: each end's achieved rate to the client. */
static int share_rates(struct verbs_state *s, struct fb_err *e)
{
	struct load_own *own = s->own;
	json_t *mine = json_object(), *all = NULL;
	int rc;

	own->rate[s->rank] = achieved(own);
	own->let_go_ns = atomic_load(&own->flow.let_go);
	if (isfinite(own->rate[s->rank]))
		fb_json_set_real(mine, "rate", own->rate[s->rank], NULL);
	rc = fb_oob_gather_json(fb_run_oob(s->run), mine, &all, fb_run_deadline(s->run), e);
	json_decref(mine);
	if (rc == 0 && s->rank == 0)
		own->rate[1] = fb_json_num(json_array_get(all, 1), "rate", NAN);
	json_decref(all);
	return rc;
}

static void judge(struct verbs_state *s, struct fb_validity *v)
{
	struct load_own *own = s->own;
	double want = (double)s->job->p.load.bg_rate;
	char got[32], asked[32];

	if (s->rank != 0)
		return;
	if (own->probe.backlog > 10 * own->interval_ns)
		fb_validity_add(v, FB_SUSPECT,
			"the probe could not keep to its schedule and ended %.3g ms behind: the "
			"tail grows with the time measured; give a longer --interval",
			(double)own->probe.backlog / 1e6);
	for (int r = 0; own->on && want > 0 && r < 2; r++)
		if (isfinite(own->rate[r]) && own->rate[r] < VERBS_RATE_LEAST * want)
			fb_validity_add(v, FB_SUSPECT, "the background achieved %s of requested %s",
				fb_fmt_gbps(own->rate[r], got, sizeof got),
				fb_fmt_gbps(want, asked, sizeof asked));
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct load_own *own = s->own;
	struct fb_point q = plain(p);
	enum verbs_op op = verbs_point_op(&q);
	int rc = share_rates(s, e);

	if (rc == 0)
		rc = verbs_flow_end(&own->flow, e);
	if (rc)
		return rc;
	verbs_state_judge(s, v);
	judge(s, v);
	if (verbs_ops[op].fetches && s->rank != 0)
		return 0;
	/* The last byte of a write is the sequence that the loop itself has watched. */
	return verbs_state_check_data(s, &q, op == VERBS_WRITE ? p->size - 1 : p->size, e);
}

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	(void)st;
	(void)p;
	memset(m, 0, sizeof *m);
	m->name = "latency";
	m->unit = "ns";
	m->better = "lower";
	m->kind = FB_METRIC_TIME;
	return 1;
}

static json_t *facts(void *st, const struct fb_point *p)
{
	struct verbs_state *s = st;
	struct load_own *own = s->own;
	const struct verbs_load_params *l = &s->job->p.load;
	struct fb_point q = plain(p);
	json_t *j = verbs_state_facts(st, &q), *b = json_object();
	bool reads = verbs_ops[l->bg_op].fetches;
	double out = own->rate[reads ? 1 : 0], in = own->rate[reads ? 0 : 1];

	if (!j || !b) {
		json_decref(b);
		return j;
	}
	fb_json_set_str(j, "definition", DEFINITION);
	fb_json_set_int(j, "behind_most_ns", (int64_t)own->probe.most_behind);
	fb_json_set_int(j, "behind_end_ns", (int64_t)own->probe.backlog);
	if (own->on) {
		if (l->bg_rate)
			fb_json_set_int(b, "requested", (int64_t)l->bg_rate);
		if (isfinite(out))
			fb_json_set_real(b, "achieved_out", out, NULL);
		if (isfinite(in))
			fb_json_set_real(b, "achieved_in", in, NULL);
		json_object_set(j, "background", b);
	}
	json_decref(b);
	return j;
}

static void extend(void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result)
{
	(void)p;
	(void)m;
	verbs_state_classes(st, result);
}

const struct fb_bench verbs_load_bench = {.abi = FB_BENCH_ABI,
	.name = "verbs.load",
	.summary = "tail of a probe flow beside a background flow",
	.needs = FB_NEED_PEER | FB_NEED_RDMA,
	.opts = verbs_load_opts,
	.cfg_size = sizeof(struct verbs_job),
	.combine = FB_COMBINE_OWNER,
	.load = "open",
	.sync = "none",
	.definition = DEFINITION,
	.probe = verbs_state_probe,
	.setup = setup,
	.points = points,
	.metrics = metrics,
	.prepare = prepare,
	.measure = measure,
	.check = check,
	.counters = verbs_state_counters,
	.facts = facts,
	.teardown = teardown,
	.extend = extend};

/* ---- what the background did to the probe ---------------------------------------------------- */

void verbs_load_run_control(struct fb_runctl_cfg *rc)
{
	if (rc->iters || rc->duration_ns)
		return;
	/* A tail needs its thousand samples (p99), and they come at the probe's pace. */
	if (rc->min_iters < 1000)
		rc->min_iters = 1000;
	if (rc->max_time_ns < 10000000000ull)
		rc->max_time_ns = 10000000000ull;
	if (rc->max_time_ns > rc->point_timeout_ns / 2)
		rc->max_time_ns = rc->point_timeout_ns / 2;
}

/* The result of the same probe with the other word in its case. */
static const json_t *idle_of(const json_t *results, const json_t *on)
{
	const char *name = fb_json_str(on, "case", ""), *at = strstr(name, "/on/");
	size_t i;
	json_t *r;

	json_array_foreach (results, i, r) {
		const char *other = fb_json_str(r, "case", "");
		size_t n = at ? (size_t)(at - name) : 0;
		if (at && !strncmp(name, other, n) && !strncmp(other + n, "/idle/", 6) &&
			!strcmp(other + n + 6, at + 4))
			return r;
	}
	return NULL;
}

static json_t *effect(const json_t *on, const char *metric, const char *unit, const char *better,
	double value, const char *definition)
{
	const char *name = fb_json_str(on, "case", ""), *at = strstr(name, "/on/");
	char text[128];
	json_t *j;

	snprintf(text, sizeof text, "%.*s/effect/%s", (int)(at - name), name, at + 4);
	j = verbs_result_new(text, json_object_get(on, "params"), metric, unit, better, value,
		"the sample is too small for this percentile");
	fb_json_set_str(j, "where", fb_json_str(on, "where", "cpu"));
	fb_json_set_str(j, "load", "open");
	fb_json_set_str(j, "definition", definition);
	json_object_set(j, "validity", json_object_get(on, "validity"));
	return j;
}

static void add_ratio(struct fb_doc *doc, const json_t *idle, const json_t *on, const char *key,
	const char *metric)
{
	double a = fb_json_num(json_object_get(idle, "stats"), key, NAN);
	double b = fb_json_num(json_object_get(on, "stats"), key, NAN);

	fb_doc_add_result(doc, effect(on, metric, "x", "lower", b / a,
				       "a percentile of the probe beside the background over the "
				       "same one idle; rates are what the background achieved"));
}

void verbs_load_effects(struct fb_doc *doc)
{
	static const char *const keys[] = {"achieved_out", "achieved_in"};
	const json_t *results = json_object_get(fb_doc_json(doc), "results");
	size_t n = json_array_size(results);

	for (size_t i = 0; i < n; i++) {
		const json_t *on = json_array_get(results, i), *idle = idle_of(results, on), *bg;
		if (!idle)
			continue;
		add_ratio(doc, idle, on, "p50", "p50_ratio");
		add_ratio(doc, idle, on, "p99", "p99_ratio");
		bg = json_object_get(json_object_get(on, "facts"), "background");
		for (int k = 0; k < 2; k++) {
			double v = fb_json_num(bg, keys[k], NAN);
			if (isfinite(v))
				fb_doc_add_result(doc,
					effect(on, k ? "background_in" : "background_out",
						"bytes/s", "higher", v,
						"message bytes of the background that the peer "
						"has acknowledged, over the time of the point"));
		}
	}
}
