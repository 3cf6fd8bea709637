// SPDX-License-Identifier: Apache-2.0
/*
 * Results of one turn at one rate, the sums of all turns, and the document's `loss`: the model made
 * from some rates, and how far it is from the others.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/bound.h"
#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/counters.h"
#include "verbs/load.h"
#include "verbs/loss_run.h"

#define STREAM_DEFINITION                                                                              \
	"message bytes that have arrived at the receiver within the window: counted there for sends, " \
	"acknowledged by its NIC for writes; packets of one direction are lost independently"
#define PACKETS_DEFINITION                                                                               \
	"packets that the sender's port has sent, lost ones and repeated ones too, over the packets of " \
	"the messages that arrived; from the first message of the stream to the last"
#define PROBE_DEFINITION                                                                            \
	"RDMA read posted by the end that sends the stream, alone on the link, one at a time: its " \
	"request goes the way that loses packets, and a lost one waits for the ack timeout"
/* So many packets must have been lost on average before none seen is no chance. */
#define EXPECTED_LOSSES 10

static const char *const ends[] = {"sender", "receiver"};

/* ---- counters -------------------------------------------------------------------------------- */

static const json_t *counters_of(const json_t *port)
{
	return json_object_get(port, "counters");
}

static const char *driver_of(const void *arg, const char *source)
{
	const struct verbs_loss_seen *s = arg;

	return fb_json_str(s->after[strcmp(source, ends[0]) != 0], "driver", "");
}

static int64_t class_of(const json_t *before, const json_t *after, enum verbs_counter_class class)
{
	int64_t grown[VERBS_NUM_CLASSES];

	verbs_counters_classify(
		fb_json_str(after, "driver", ""), counters_of(before), counters_of(after), grown);
	return grown[class];
}

/* Loss is what this is about, and no reason for doubt; loss where none was made is, and none where
 * some was. */
static void judge_stream(const struct verbs_loss_rate *r, const struct verbs_loss_seen *s,
	double needed, json_t *result)
{
	char text[256];
	int64_t seen = class_of(s->before[1], s->after[1], VERBS_LOSS_SEEN);

	for (int i = 0; i < 2 && r->percent <= 0; i++) {
		int64_t grown[VERBS_NUM_CLASSES];
		verbs_counters_classify(fb_json_str(s->after[i], "driver", ""),
			counters_of(s->before[i]), counters_of(s->after[i]), grown);
		if (!verbs_loss_text(grown, text, sizeof text)[0])
			continue;
		verbs_result_doubt(result, FB_SUSPECT, "no loss was made, but the %s counted: %s",
			ends[i], text);
	}
	if (seen == 0 && needed * r->percent / 100 >= EXPECTED_LOSSES)
		verbs_result_doubt(result, FB_SUSPECT,
			"of %.0f packets %g %% should have been lost, but the receiver saw no gap: "
			"is loss made in the direction that was named?",
			needed, r->percent);
	if (s->bytes <= 0)
		verbs_result_doubt(result, FB_SUSPECT,
			"nothing arrived within the window: it is too short at this rate");
}

/* ---- results --------------------------------------------------------------------------------- */

static json_t *point_params(const struct verbs_loss_run *x, const struct verbs_loss_seen *s)
{
	const struct verbs_load_params *l = &x->job.p.load;
	const struct verbs_loss_end *end = &x->peer[x->npeers > 1 ? s->rate : 0].end;
	const struct verbs_rail *r = &end->stream_rail;
	json_t *j = json_object();

	fb_json_set_real(j, "loss", x->rate[s->rate].percent, NULL);
	fb_json_set_int(j, "turn", s->turn);
	fb_json_set_str(j, "direction", x->to_client ? "to-client" : "to-server");
	fb_json_set_str(j, "made_by", verbs_loss_hows[x->how]);
	fb_json_set_str(j, "op", verbs_ops[l->bg_op].name);
	fb_json_set_str(j, "transport", verbs_transports[x->job.p.transport].name);
	fb_json_set_int(j, "message_size", (int64_t)l->bg_size);
	fb_json_set_int(j, "depth", l->bg_depth);
	fb_json_set_int(j, "mtu", r->path_mtu);
	fb_json_set_int(j, "qp_timeout", r->qp_timeout);
	fb_json_set_int(j, "retry", r->retry);
	fb_json_set_int(j, "traffic_class", l->bg_traffic_class);
	fb_json_set_int(j, "sl", l->bg_sl);
	fb_json_set_str(j, "device", r->dev->name);
	return j;
}

static void set_bound(const struct verbs_loss_run *x, const struct verbs_loss_seen *s,
	json_t *result, double value)
{
	const struct verbs_rail *r = &x->peer[x->npeers > 1 ? s->rate : 0].end.stream_rail;
	const struct verbs_load_params *l = &x->job.p.load;
	json_t *b;
	char why[160];
	bool grh;
	enum fb_link_layer wire = verbs_wire_of(&r->local, &r->remote, &grh);
	double eff = fb_header_efficiency(
		wire, verbs_ops[l->bg_op].wire, grh, false, l->bg_size, r->path_mtu);

	if (!x->job.hardware || r->dev->line_rate <= 0)
		return;
	b = json_object();
	snprintf(why, sizeof why, "%s, header efficiency %.4f at MTU %u", r->dev->line_rate_s, eff,
		r->path_mtu);
	fb_json_set_real(b, "value", r->dev->line_rate * eff, NULL);
	fb_json_set_str(b, "why", why);
	json_object_set_new(result, "bound", b);
	if (value > 1.01 * r->dev->line_rate * eff)
		verbs_result_doubt(result, FB_INVALID, "more than the physical bound");
}

static json_t *stream_result(const struct verbs_loss_run *x, const struct verbs_loss_seen *s,
	const char *name, const json_t *params, double needed)
{
	double value = s->ns > 0 ? s->bytes / s->ns * 1e9 : NAN;
	json_t *r = verbs_result_new(
		       name, params, "goodput", "bytes/s", "higher", value, "no time was measured"),
	       *c = json_object_get(r, "counters");

	fb_json_set_str(r, "where", x->where);
	fb_json_set_str(r, "definition", STREAM_DEFINITION);
	for (int i = 0; i < 2; i++)
		verbs_counters_add_port(c, ends[i], s->before[i], s->after[i]);
	verbs_counters_extend(c, driver_of, s);
	set_bound(x, s, r, value);
	judge_stream(&x->rate[s->rate], s, needed, r);
	return r;
}

static json_t *probe_result(const struct verbs_loss_run *x, const struct verbs_loss_seen *s,
	const char *name, const json_t *params)
{
	json_t *p = json_deep_copy(params), *r, *c;

	fb_json_set_str(p, "op", "read");
	fb_json_set_int(p, "message_size", (int64_t)x->job.p.sizes[0]);
	r = verbs_result_new(name, p, "latency", "ns", "lower", NAN, "no message was answered");
	json_decref(p);
	verbs_result_hist(r, s->hist);
	fb_json_set_str(r, "where", x->where);
	fb_json_set_str(r, "definition", PROBE_DEFINITION);
	c = json_object_get(r, "counters");
	verbs_counters_add_port(c, ends[0], s->probe_before, s->probe_after);
	verbs_counters_extend(c, driver_of, s);
	if (s->hist->n < x->probes)
		verbs_result_doubt(
			r, FB_SUSPECT, "fewer messages than asked for: the time for them was over");
	return r;
}

static void add_up(
	struct verbs_loss_rate *r, const struct verbs_loss_seen *s, double sent, double needed)
{
	static const enum verbs_counter_class classes[] = {VERBS_NAK, VERBS_TIMEOUT};

	for (int i = 0; i < 2; i++) {
		int64_t *sum = i ? &r->timeouts : &r->naks;
		int64_t v = class_of(s->before[0], s->after[0], classes[i]);
		*sum = v < 0 || *sum < 0 ? -1 : *sum + v;
	}
	r->turns++;
	r->bytes += s->bytes;
	r->ns += s->ns;
	r->sent += sent;
	r->needed += needed;
	fb_hist_merge(r->hist, s->hist);
}

void verbs_loss_results(struct verbs_loss_run *x, const struct verbs_loss_seen *s)
{
	const struct verbs_load_params *l = &x->job.p.load;
	unsigned mtu = x->peer[x->npeers > 1 ? s->rate : 0].end.stream_rail.path_mtu;
	uint64_t packets_each = (l->bg_size + mtu - 1) / mtu;
	double needed = s->messages * (double)packets_each;
	int64_t packets = verbs_loss_packets(fb_json_str(s->after[0], "driver", ""),
		counters_of(s->before[0]), counters_of(s->after[0]));
	double sent = packets < 0 ? NAN : (double)packets;
	json_t *params = point_params(x, s), *r;
	char name[128], rate[40];

	verbs_loss_percent(x->rate[s->rate].percent, rate, sizeof rate);
	snprintf(name, sizeof name, "verbs.loss-sweep/%s/%llu/%s", verbs_ops[l->bg_op].name,
		(unsigned long long)l->bg_size, rate);
	fb_doc_add_result(x->doc, stream_result(x, s, name, params, needed));
	r = verbs_result_new(name, params, "packets_per_packet", "1", "lower",
		needed > 0 ? sent / needed : NAN,
		packets < 0 ? "not available: the driver counts no packets that it has sent"
			    : "no message arrived");
	fb_json_set_str(r, "where", x->where);
	fb_json_set_str(r, "definition", PACKETS_DEFINITION);
	fb_doc_add_result(x->doc, r);
	snprintf(name, sizeof name, "verbs.loss-sweep/read/%llu/%s",
		(unsigned long long)x->job.p.sizes[0], rate);
	fb_doc_add_result(x->doc, probe_result(x, s, name, params));
	json_decref(params);
	add_up(&x->rate[s->rate], s, sent, needed);
}

/* ---- the model ------------------------------------------------------------------------------- */

static double goodput_of(const struct verbs_loss_rate *r)
{
	return r->ns > 0 ? r->bytes / r->ns * 1e9 : NAN;
}

static double lossless_goodput(const struct verbs_loss_run *x)
{
	for (unsigned i = 0; i < x->nrates; i++)
		if (x->rate[i].percent <= 0)
			return goodput_of(&x->rate[i]);
	return NAN;
}

static double packets_of(const struct verbs_loss_rate *r)
{
	return r->needed > 0 ? r->sent / r->needed : NAN;
}

/* "packets" where every rate tells them. */
static const char *signal_of(const struct verbs_loss_run *x)
{
	for (unsigned i = 0; i < x->nrates; i++)
		if (x->rate[i].percent > 0 && !isfinite(packets_of(&x->rate[i])))
			return isfinite(lossless_goodput(x)) ? "goodput" : NULL;
	return "packets";
}

/* 1/eta as measured. */
static double inverse_of(
	const struct verbs_loss_run *x, const struct verbs_loss_rate *r, const char *signal)
{
	if (!signal)
		return NAN;
	return strcmp(signal, "packets") ? lossless_goodput(x) / goodput_of(r) : packets_of(r);
}

static json_t *point_json(
	const struct verbs_loss_run *x, const struct verbs_loss_rate *r, const char *signal)
{
	static const char few[] = "the sample is too small for this percentile";
	json_t *j = json_object();
	double v;

	fb_json_set_real(j, "rate", r->percent, NULL);
	fb_json_set_int(j, "turns", r->turns);
	fb_json_set_bool(j, "fitted", r->fitted);
	fb_json_set_real(j, "goodput", goodput_of(r), "no time was measured");
	fb_json_set_real(j, "goodput_share", goodput_of(r) / lossless_goodput(x),
		"no rate of 0 % was measured beside it");
	fb_json_set_real(j, "packets_per_packet", packets_of(r),
		"not available: the driver counts no packets that it has sent");
	fb_json_set_real(j, "eta", 1 / inverse_of(x, r, signal),
		"neither packets nor a lossless goodput to tell it by");
	fb_json_set_int(j, "n", (int64_t)r->hist->n);
	fb_json_set_real(j, "p50_ns", fb_hist_percentile(r->hist, 0.5, &v) ? NAN : round(v), few);
	fb_json_set_real(j, "p99_ns", fb_hist_percentile(r->hist, 0.99, &v) ? NAN : round(v), few);
	fb_json_set_real(
		j, "p99_9_ns", fb_hist_percentile(r->hist, 0.999, &v) ? NAN : round(v), few);
	fb_json_set_real(j, "max_ns", r->hist->n ? (double)r->hist->max : NAN, "no message");
	fb_json_set_real(j, "naks", r->naks < 0 ? NAN : (double)r->naks, "not available");
	fb_json_set_real(
		j, "timeouts", r->timeouts < 0 ? NAN : (double)r->timeouts, "not available");
	return j;
}

static json_t *prediction(const struct verbs_loss_model *m, double percent, double inverse)
{
	double by_both = 1 / verbs_loss_predict(m->w, m->r, percent / 100);
	double by_w = 1 / verbs_loss_predict(m->w_alone, 0, percent / 100);
	json_t *j = json_object();

	fb_json_set_real(j, "rate", percent, NULL);
	fb_json_set_real(j, "eta", 1 / inverse, "not measured");
	fb_json_set_real(j, "predicted", by_both, NULL);
	fb_json_set_real(j, "error", by_both * inverse - 1, "not measured");
	fb_json_set_real(j, "predicted_alone", by_w, NULL);
	fb_json_set_real(j, "error_alone", by_w * inverse - 1, "not measured");
	return j;
}

static void set_constants(json_t *j, const struct verbs_loss_model *m, const struct fb_err *e)
{
	bool none = e->code != 0;
	const char *why = none ? e->msg : "one rate alone tells no R";

	fb_json_set_real(j, "W", none ? NAN : m->w, why);
	fb_json_set_real(j, "R", none || !m->determined ? NAN : m->r, why);
	fb_json_set_real(j, "W_alone", none ? NAN : m->w_alone, why);
	fb_json_set_bool(j, "held_at_0", m->held_at_0);
}

static json_t *model_json(const struct verbs_loss_run *x, const char *signal)
{
	struct verbs_loss_point p[VERBS_LOSS_MAX_RATES];
	struct verbs_loss_model m;
	struct fb_err e = {0};
	json_t *j = json_object(), *residuals = json_array(), *predicted = json_array(),
	       *rates = json_array();
	unsigned n = 0;

	for (unsigned i = 0; i < x->nrates; i++) {
		const struct verbs_loss_rate *r = &x->rate[i];
		if (!r->fitted)
			continue;
		p[n++] = (struct verbs_loss_point){r->percent / 100, inverse_of(x, r, signal)};
		json_array_append_new(rates, json_real(r->percent));
	}
	fb_json_set_str(j, "formula", "1/eta = 1 + W p/(1-p) + R p^2");
	fb_json_set_str(j, "signal", signal ? signal : "none");
	fb_json_set_str(j, "direction", x->to_client ? "to-client" : "to-server");
	json_object_set_new(j, "fit_rates", rates);
	(void)!verbs_loss_fit(p, n, &m, &e);
	set_constants(j, &m, &e);
	for (unsigned i = 0; e.code == 0 && i < x->nrates; i++) {
		const struct verbs_loss_rate *r = &x->rate[i];
		if (r->percent > 0)
			json_array_append_new(r->fitted ? residuals : predicted,
				prediction(&m, r->percent, inverse_of(x, r, signal)));
	}
	json_object_set_new(j, "residuals", residuals);
	json_object_set_new(j, "predicted", predicted);
	return j;
}

void verbs_loss_summary(const struct verbs_loss_run *x)
{
	json_t *all = json_array(), *block = json_object(), *points = json_array();
	const char *signal = signal_of(x);

	for (unsigned i = 0; i < x->nrates; i++)
		json_array_append_new(points, point_json(x, &x->rate[i], signal));
	fb_json_set_str(block, "where", x->where);
	fb_json_set_str(block, "made_by", verbs_loss_hows[x->how]);
	fb_json_set_str(block, "op", verbs_ops[x->job.p.load.bg_op].name);
	fb_json_set_int(block, "message_size", (int64_t)x->job.p.load.bg_size);
	fb_json_set_int(block, "probe_size", (int64_t)x->job.p.sizes[0]);
	fb_json_set_int(block, "mtu", x->peer[0].end.stream_rail.path_mtu);
	fb_json_set_int(block, "qp_timeout", x->peer[0].end.stream_rail.qp_timeout);
	json_object_set_new(block, "points", points);
	json_object_set_new(block, "model", model_json(x, signal));
	json_array_append_new(all, block);
	json_object_set_new(fb_doc_json(x->doc), "loss", all);
}
