// SPDX-License-Identifier: Apache-2.0
/*
 * Results of a step of an incast: sum and fairness of the senders' goodput, each sender's own, the
 * victim's latency, and what the counters of all hosts tell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/bound.h"
#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "verbs/counters.h"
#include "verbs/incast_run.h"
#include "verbs/load.h"

#define LEVEL 0.95
#define GOODPUT_DEFINITION                                                                            \
	"message bytes that the receiver's NIC has acknowledged, summed over senders that all write " \
	"at once; fairness is Jain's index of the senders' goodputs; victim ratios are percentiles "  \
	"beside the incast over the same ones alone"
#define VICTIM_DEFINITION                                                                            \
	"the receiver reads from a host that sends no incast: time from when a read was due by its " \
	"open-loop schedule to its completion; it shares the receiver's last hop with the senders"

/* ---- counters -------------------------------------------------------------------------------- */

/* "receiver", "sender1".., "victim": hosts have no names outside system.hosts[]. */
static void who(const struct verbs_incast *x, unsigned i, char *buf, size_t len)
{
	if (i < x->nsenders)
		snprintf(buf, len, "sender%u", i + 1);
	else
		snprintf(buf, len, "victim");
}

static const json_t *counters_of(const json_t *port)
{
	return json_object_get(port, "counters");
}

/* Whose counters a source's are: see who(). */
static const char *driver_of(const void *arg, const char *source)
{
	const struct verbs_incast *x = arg;
	unsigned n = x->nsenders + (x->victim ? 1 : 0);
	char key[32];

	for (unsigned i = 0; i < n; i++) {
		who(x, i, key, sizeof key);
		if (!strcmp(key, source))
			return fb_json_str(x->peer[i].after, "driver", "");
	}
	return fb_json_str(x->own_after, "driver", "");
}

static void judge_port(const char *key, const int64_t grown[VERBS_NUM_CLASSES], json_t *result)
{
	char text[256];

	if (verbs_loss_text(grown, text, sizeof text)[0])
		verbs_result_doubt(result, FB_SUSPECT, "%s counted during the step: %s", key, text);
}

/* Counters and their classes into a result, and what they say of loss into its validity. */
static void add_counters(const struct verbs_incast *x, json_t *result)
{
	json_t *c = json_object_get(result, "counters"), *facts = json_object();
	unsigned n = x->nsenders + (x->victim ? 1 : 0);

	for (unsigned i = 0; i <= n; i++) {
		const struct verbs_incast_peer *p = i < n ? &x->peer[i] : NULL;
		const json_t *before = p ? p->before : x->own_before;
		const json_t *after = p ? p->after : x->own_after;
		int64_t grown[VERBS_NUM_CLASSES];
		char key[32] = "receiver";
		if (p)
			who(x, i, key, sizeof key);
		verbs_counters_add_port(c, key, before, after);
		verbs_counters_classify(fb_json_str(after, "driver", ""), counters_of(before),
			counters_of(after), grown);
		judge_port(key, grown, result);
	}
	verbs_counters_extend(c, driver_of, x);
	/* Pause frames are counted by the Ethernet driver, and by no RDMA port. */
	fb_json_set_str(facts, "pause", "not available: ethtool's counters are not read");
	json_object_set_new(result, "facts", facts);
}

/* ---- goodput --------------------------------------------------------------------------------- */

static json_t *step_params(const struct verbs_incast *x, unsigned n)
{
	const struct verbs_load_params *l = &x->job.p.load;
	const struct verbs_rail *r = &x->peer[0].end.rail;
	json_t *j = json_object();

	fb_json_set_str(j, "op", verbs_ops[l->bg_op].name);
	fb_json_set_int(j, "senders", n);
	fb_json_set_int(j, "message_size", (int64_t)l->bg_size);
	fb_json_set_int(j, "depth", l->bg_depth);
	if (l->bg_rate)
		fb_json_set_int(j, "rate", (int64_t)l->bg_rate);
	else
		fb_json_set_str(j, "rate", "max");
	fb_json_set_int(j, "traffic_class", l->bg_traffic_class);
	fb_json_set_int(j, "sl", l->bg_sl);
	fb_json_set_int(j, "mtu", r->path_mtu);
	fb_json_set_str(j, "device", r->dev->name);
	fb_json_set_bool(j, "victim", x->victim);
	return j;
}

/* The receiver's line rate, times the share of payload: N senders cannot get more through it. */
static void set_bound(const struct verbs_incast *x, json_t *result, double value)
{
	const struct verbs_rail *r = &x->peer[0].end.rail;
	json_t *b;
	char why[160];
	bool grh;
	enum fb_link_layer wire = verbs_wire_of(&r->local, &r->remote, &grh);
	double eff = fb_header_efficiency(wire, verbs_ops[x->job.p.load.bg_op].wire, grh, false,
		x->job.p.load.bg_size, r->path_mtu);

	if (!x->job.hardware || r->dev->line_rate <= 0)
		return;
	b = json_object();
	snprintf(why, sizeof why, "the receiver's %s, header efficiency %.4f at MTU %u",
		r->dev->line_rate_s, eff, r->path_mtu);
	fb_json_set_real(b, "value", r->dev->line_rate * eff, NULL);
	fb_json_set_str(b, "why", why);
	json_object_set_new(result, "bound", b);
	if (value > 1.01 * r->dev->line_rate * eff)
		verbs_result_doubt(result, FB_INVALID, "more than the physical bound");
}

static double sum_of_slots(
	const struct verbs_incast *x, unsigned n, double *work, double *time, json_t *samples)
{
	double bytes = 0, ns = 0;

	for (unsigned s = 0; s < x->slots; s++) {
		double rate = 0, t = 0;
		for (unsigned i = 0; i < n; i++) {
			rate += x->peer[i].ns[s] > 0 ? x->peer[i].bytes[s] / x->peer[i].ns[s] : 0;
			t += x->peer[i].ns[s] / n;
		}
		work[s] = rate * t;
		time[s] = t;
		bytes += work[s];
		ns += t;
		json_array_append_new(samples, fb_json_real(rate * 1e9));
	}
	return ns > 0 ? bytes / ns * 1e9 : NAN;
}

static void set_interval(json_t *result, const double *work, const double *time, unsigned n)
{
	struct fb_ci ci = fb_ratio_ci(work, time, n, LEVEL, 1);
	json_t *j;

	if (!ci.valid)
		return;
	j = json_object();
	fb_json_set_real(j, "lo", ci.lo * 1e9, NULL);
	fb_json_set_real(j, "hi", ci.hi * 1e9, NULL);
	fb_json_set_real(j, "level", LEVEL, NULL);
	json_object_set_new(result, "ci", j);
}

static json_t *figure(const struct verbs_incast *x, const char *name, const json_t *params,
	const char *metric, const char *unit, const char *better, double value, const char *why)
{
	json_t *j = verbs_result_new(name, params, metric, unit, better, value, why);

	fb_json_set_str(j, "where", x->where);
	fb_json_set_str(j, "load", x->job.p.load.bg_rate ? "open" : "closed");
	fb_json_set_str(j, "definition", GOODPUT_DEFINITION);
	return j;
}

static json_t *senders(const struct verbs_incast *x, unsigned n)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *j = json_object();
		fb_json_set_int(j, "rank", i + 1);
		fb_json_set_real(j, "value", x->peer[i].rate, NULL);
		json_array_append_new(all, j);
	}
	return all;
}

static void goodput(struct verbs_incast *x, unsigned n, const char *name, const json_t *params)
{
	double *work = calloc(2 * (size_t)x->slots, sizeof *work);
	double rates[VERBS_INCAST_MAX_SENDERS], value;
	json_t *samples = json_array(), *r;

	if (!work) {
		json_decref(samples);
		return;
	}
	value = sum_of_slots(x, n, work, work + x->slots, samples);
	r = figure(x, name, params, "goodput", "bytes/s", "higher", value, "no time was measured");
	fb_json_set_int(r, "n", x->slots);
	json_object_set_new(r, "samples", samples);
	json_object_set_new(r, "per_rank", senders(x, n));
	set_interval(r, work, work + x->slots, x->slots);
	if (x->job.p.load.bg_rate) {
		verbs_result_rate(r, value, (double)x->job.p.load.bg_rate * n);
		verbs_result_rate_judge(r, value, (double)x->job.p.load.bg_rate * n);
	}
	free(work);
	set_bound(x, r, value);
	add_counters(x, r);
	fb_doc_add_result(x->doc, r);
	for (unsigned i = 0; i < n; i++)
		rates[i] = x->peer[i].rate;
	fb_doc_add_result(x->doc, figure(x, name, params, "fairness", "1", "higher",
					  verbs_jain(rates, n), "no sender got anything through"));
}

/* ---- the victim ------------------------------------------------------------------------------ */

static double percentile(const struct fb_hist *h, double q)
{
	double v;

	return fb_hist_percentile(h, q, &v) == 0 ? v : NAN;
}

static void victim(struct verbs_incast *x, unsigned n)
{
	const struct verbs_incast_peer *v = &x->peer[x->nsenders];
	uint64_t interval = v->end.probe.interval_ns;
	char name[128], step[16] = "idle";
	json_t *params = step_params(x, n), *r;
	double p50;

	if (n)
		snprintf(step, sizeof step, "%u", n);
	snprintf(name, sizeof name, "verbs.incast/victim/read/%llu/%s",
		(unsigned long long)v->end.p.sizes[0], step);
	fb_json_set_str(params, "op", "read");
	fb_json_set_str(params, "background", n ? "incast" : "idle");
	fb_json_set_int(params, "probe_size", (int64_t)v->end.p.sizes[0]);
	fb_json_set_int(params, "interval_ns", (int64_t)interval);
	fb_json_set_int(params, "probe_traffic_class", v->end.p.traffic_class);
	if (fb_hist_quantile(x->hist, 0.5, &p50) != 0)
		p50 = NAN;
	r = verbs_result_new(name, params, "latency", "ns", "lower", NAN, "no probe was answered");
	verbs_result_hist(r, x->hist);
	fb_json_set_str(r, "where", x->where);
	fb_json_set_str(r, "load", "open");
	fb_json_set_str(r, "definition", VICTIM_DEFINITION);
	if (v->end.probe.backlog > 10 * interval || x->hist->n == 0)
		verbs_result_doubt(r, x->hist->n ? FB_SUSPECT : FB_INVALID,
			"the probe could not keep to its schedule: the tail grows with the time "
			"measured");
	add_counters(x, r);
	fb_doc_add_result(x->doc, r);
	json_decref(params);
	if (n == 0) {
		x->idle_p50 = p50;
		x->idle_p99 = percentile(x->hist, 0.99);
	}
}

void verbs_incast_results(struct verbs_incast *x, unsigned n)
{
	char name[128];
	json_t *params;

	if (x->victim)
		victim(x, n);
	if (n == 0)
		return;
	snprintf(name, sizeof name, "verbs.incast/%s/%llu/%u", verbs_ops[x->job.p.load.bg_op].name,
		(unsigned long long)x->job.p.load.bg_size, n);
	params = step_params(x, n);
	goodput(x, n, name, params);
	if (x->victim) {
		const char *few = "the sample is too small for this percentile";
		fb_doc_add_result(x->doc, figure(x, name, params, "victim_p50_ratio", "x", "lower",
						  percentile(x->hist, 0.5) / x->idle_p50, few));
		fb_doc_add_result(x->doc, figure(x, name, params, "victim_p99_ratio", "x", "lower",
						  percentile(x->hist, 0.99) / x->idle_p99, few));
	}
	json_decref(params);
}
