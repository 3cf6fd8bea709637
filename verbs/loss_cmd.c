// SPDX-License-Identifier: Apache-2.0
/*
 * The command `verbs loss-sweep`: options, sessions, document. What is measured stands in
 * loss_run.c, how loss is made in loss_maker.c.
 */
#include "verbs/loss_cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"
#include "verbs/loss_run.h"
#include "verbs/reach.h"

#define LEAD_NS 200000000u
/* 4.096 us * 2^16 = 268 ms. Soft-RoCE's own default here, 20 (4.3 s), keeps a clean link free of
 * time-outs that nothing called for; 14 does not; and a sweep has to live through many. */
#define TIMEOUT_SOFTWARE 16

static const char *const direction_names[] = {"to-server", "to-client", NULL};
static const char *const op_names[] = {"write", "send", NULL};

struct loss_options {
	struct verbs_options v;
	struct fb_opt rdma[64]; /**< of a connection, without what a sweep decides itself */
	struct fb_opt_list servers, rates, fit_rates;
	int turns;
	int direction;
	char *netem, *command;
	bool given;
	int op;
	uint64_t size;
	int depth;
	uint64_t duration_ns;
	uint64_t probes;
	uint64_t probe_ns;
	char *probe_size;
	struct fb_output_cfg out;
};
#define OFF(f) offsetof(struct loss_options, f)

static const struct fb_opt loss_opts[] = {
	{.name = "servers",
		.type = FB_OPT_LIST,
		.offset = OFF(servers),
		.arg = "HOST[:PORT]",
		.positional = true,
		.help = "where `fabricbench verbs serve` listens; with --given, one for each rate"},
	{.name = "rates",
		.type = FB_OPT_LIST,
		.offset = OFF(rates),
		.arg = "PERCENT,...",
		.def = "0.1,0.5,1,2,5",
		.help = "packets lost, in percent; 0 is measured too, unless --given says otherwise"},
	{.name = "fit-rates",
		.type = FB_OPT_LIST,
		.offset = OFF(fit_rates),
		.arg = "PERCENT,...",
		.def = "0.1,0.5,2",
		.help = "rates that the model is made from; it has to predict the others"},
	{.name = "turns",
		.type = FB_OPT_INT,
		.offset = OFF(turns),
		.arg = "N",
		.def = "5",
		.min = 1,
		.max = VERBS_LOSS_MAX_TURNS,
		.help = "how often each rate is measured, all rates once before any comes again"},
	{.name = "direction",
		.type = FB_OPT_ENUM,
		.offset = OFF(direction),
		.arg = "WAY",
		.names = direction_names,
		.def = "to-server",
		.help = "the one direction in which packets are lost, and data flow"},
	{.name = "netem",
		.type = FB_OPT_STRING,
		.offset = OFF(netem),
		.arg = "DEV",
		.help = "make the loss by netem on this network device of the host that sends (root); "
			"it is surely taken away"},
	{.name = "loss-command",
		.type = FB_OPT_STRING,
		.offset = OFF(command),
		.arg = "PROGRAM",
		.help = "make the loss by this program, run here with the percentage; 0 ends it"},
	{.name = "given",
		.type = FB_OPT_FLAG,
		.offset = OFF(given),
		.help = "the links to the servers have these rates already"},
	{.name = "op",
		.type = FB_OPT_ENUM,
		.offset = OFF(op),
		.arg = "OP",
		.names = op_names,
		.def = "write",
		.help = "operation of the stream"},
	{.letter = 's',
		.name = "size",
		.type = FB_OPT_SIZE,
		.offset = OFF(size),
		.arg = "SIZE",
		.def = "64K",
		.help = "message size of the stream"},
	{.letter = 't',
		.name = "depth",
		.type = FB_OPT_INT,
		.offset = OFF(depth),
		.arg = "N",
		.def = "64",
		.min = 1,
		.max = VERBS_MAX_DEPTH / 2,
		.help = "its messages in flight"},
	{.letter = 'D',
		.name = "duration",
		.type = FB_OPT_DURATION,
		.offset = OFF(duration_ns),
		.arg = "TIME",
		.def = "4s",
		.help = "window of each point in which arrivals are counted"},
	{.name = "probes",
		.type = FB_OPT_U64,
		.offset = OFF(probes),
		.arg = "N",
		.def = "400",
		.min = 1,
		.max = VERBS_LOSS_MAX_PROBES,
		.help = "small messages of each point; a percentile needs 10/(1-q) in all turns"},
	{.name = "probe-time",
		.type = FB_OPT_DURATION,
		.offset = OFF(probe_ns),
		.arg = "TIME",
		.def = "30s",
		.help = "longest time for them"},
	{.name = "probe-size",
		.type = FB_OPT_STRING,
		.offset = OFF(probe_size),
		.arg = "SIZE",
		.def = "64",
		.help = "their size"},
	{.name = NULL}};

static const char notes[] =
	"Packets are lost in one direction, in which a reliable connection streams large messages; then, alone "
	"on\nthe link, small RDMA reads are asked for in the same direction, one at a time. At each rate: goodput "
	"at\nthe receiver, packets sent per packet needed (where the driver counts what it sends), NAKs, time-outs, "
	"and\nthe small messages' latency.\n\n"
	"The model: 1/eta = 1 + W p/(1-p) + R p^2. p: share of packets lost; eta: packets needed per packet sent, "
	"or\ngoodput over lossless goodput where packets are not counted; W: packets resent per loss; R: "
	"retransmissions\nlost in turn, each a time-out. It is a model: independent losses, one stream. W and R "
	"are fitted on\n--fit-rates by least squares on relative errors and predict the other rates.\n\n"
	"Where the server sends (--direction to-client), netem is the server's: start it with --allow-netem DEV.\n\n"
	"Examples:\n"
	"  server:       fabricbench verbs serve\n"
	"  emulated:     fabricbench verbs loss-sweep --netem eth0 SERVER\n"
	"  by a switch:  fabricbench verbs loss-sweep --loss-command ./drop-on-port-7 SERVER\n"
	"  real links:   fabricbench verbs loss-sweep --given --rates 0,0.01,0.1 GOOD,WORN,BAD";

/* A sweep decides these itself, or gives them a meaning of its own. */
static const char *const own_words[] = {"server", "loopback", "op", "transport", "size", "all",
	"min-size", "max-size", "inline", NULL};

static void make_spec(struct fb_opt_spec *spec, struct loss_options *o)
{
	memset(spec, 0, sizeof *spec);
	verbs_opts_without(own_words, o->rdma, sizeof o->rdma / sizeof o->rdma[0]);
	spec->command = "verbs loss-sweep";
	spec->usage = "[options] (--netem DEV | --loss-command PROGRAM | --given) HOST...";
	spec->summary = "What packet loss costs: goodput and tail against loss, and a model of it.";
	spec->notes = notes;
	spec->sets[0].title = "Loss";
	spec->sets[0].opts = loss_opts;
	spec->sets[0].cfg = o;
	spec->sets[1].title = "RDMA";
	spec->sets[1].opts = o->rdma;
	spec->sets[1].cfg = &o->v;
	spec->sets[2].title = "Output";
	spec->sets[2].opts = fb_output_opts;
	spec->sets[2].cfg = &o->out;
}

const struct fb_opt_spec *verbs_loss_spec(void)
{
	static struct loss_options scratch;
	static struct fb_opt_spec spec;

	make_spec(&spec, &scratch);
	return &spec;
}

/* ---- options -> parameters ------------------------------------------------------------------- */

int verbs_loss_parse_rates(const struct fb_opt_list *list, const char *option, double *rates,
	int max, struct fb_err *e)
{
	if (list->n > (size_t)max)
		return fb_fail_usage(e, "--%s: more than %d rates", option, max);
	for (size_t i = 0; i < list->n; i++) {
		char *end;
		double v = strtod(list->v[i], &end);
		if (end == list->v[i] || *end || !(v >= 0 && v < 100) ||
			strpbrk(list->v[i], "xXnN")) {
			fb_fail_usage(e, "--%s %s: not a percentage from 0 to below 100", option,
				list->v[i]);
			fb_hint(e, "rates are percent of the packets: --%s 0.1,0.5,2", option);
			return -EINVAL;
		}
		for (size_t k = 0; k < i; k++)
			if (rates[k] == v)
				return fb_fail_usage(
					e, "--%s: %s is named twice", option, list->v[i]);
		rates[i] = v;
	}
	return (int)list->n;
}

/* A rate that is named for the model and never measured would be missing there without a word. The
 * default list is for whatever is measured. */
static int check_fit(const double *rates, int n, const double *fit, int nfit, struct fb_err *e)
{
	for (int k = 0; k < nfit; k++) {
		bool measured = false;
		for (int i = 0; i < n; i++)
			measured = measured || (rates[i] == fit[k] && fit[k] > 0);
		if (measured)
			continue;
		fb_fail_usage(e, "--fit-rates %g: %s", fit[k],
			fit[k] > 0 ? "not among --rates, so that it is never measured"
				   : "the model has nothing to learn without loss");
		fb_hint(e, "name it in --rates too, or leave it out of --fit-rates");
		return -EINVAL;
	}
	return 0;
}

static int take_rates(
	struct verbs_loss_run *x, const struct loss_options *o, bool fit_given, struct fb_err *e)
{
	double rates[VERBS_LOSS_MAX_RATES] = {0}, fit[VERBS_LOSS_MAX_RATES] = {0};
	int n = verbs_loss_parse_rates(&o->rates, "rates", rates, VERBS_LOSS_MAX_RATES - 1, e);
	int nfit = n < 0 ? n
			 : verbs_loss_parse_rates(
				   &o->fit_rates, "fit-rates", fit, VERBS_LOSS_MAX_RATES, e);
	bool base = false;

	if (nfit < 0)
		return nfit;
	if (n == 0)
		return fb_fail_usage(e, "--rates names no rate");
	if (fit_given && check_fit(rates, n, fit, nfit, e) != 0)
		return e->code;
	for (int i = 0; i < n; i++)
		base = base || rates[i] == 0;
	if (!base && !o->given)
		x->rate[x->nrates++].percent = 0;
	for (int i = 0; i < n; i++) {
		struct verbs_loss_rate *r = &x->rate[x->nrates++];
		r->percent = rates[i];
		for (int k = 0; k < nfit; k++)
			r->fitted = r->fitted || (fit[k] == rates[i] && rates[i] > 0);
	}
	return 0;
}

static int take_how(struct verbs_loss_run *x, const struct loss_options *o, struct fb_err *e)
{
	int ways = (o->netem != NULL) + (o->command != NULL) + o->given;

	if (ways != 1) {
		fb_fail_usage(e,
			ways ? "--netem, --loss-command and --given are three ways to the same loss"
			     : "it is not said how packets get lost");
		fb_hint(e,
			"give one of --netem DEV (root on the host that sends), --loss-command PROGRAM, "
			"or --given where the links have these rates already");
		return -EINVAL;
	}
	x->how = o->netem ? VERBS_LOSS_NETEM : o->command ? VERBS_LOSS_COMMAND : VERBS_LOSS_GIVEN;
	x->device = o->netem;
	if (o->servers.n == 0) {
		fb_fail_usage(e, "no server named");
		fb_hint(e, "start `fabricbench verbs serve` on another host and name it here");
		return -EINVAL;
	}
	if (!o->given && o->servers.n > 1)
		return fb_fail_usage(e, "several servers are for --given, one for each rate");
	if (o->given && o->servers.n != x->nrates) {
		fb_fail_usage(e,
			"--given: %zu servers for %u rates: each link has one rate, so that there is one "
			"server for each",
			o->servers.n, x->nrates);
		fb_hint(e, "name as many as --rates has, in its order: --given --rates 0,0.1 "
			   "GOOD,BAD");
		return -EINVAL;
	}
	return 0;
}

static int take_params(struct verbs_loss_run *x, const struct loss_options *o, struct fb_err *e)
{
	static char op[] = "read";
	struct verbs_params *p = &x->job.p;
	struct verbs_options v = o->v;
	struct verbs_load_options lo = {.bg_size = o->size,
		.bg_op = o->op ? 0 : 1, /* send or write, see load_params.c */
		.bg_direction = o->direction ? VERBS_IN : VERBS_OUT,
		.bg_traffic_class = o->v.traffic_class,
		.bg_sl = o->v.sl,
		.bg_depth = o->depth};
	int rc;

	if (o->duration_ns < 10000000u || o->duration_ns > 600000000000ull)
		return fb_fail_usage(e, "--duration must be from 10ms to 10m");
	if (o->probe_ns < 10000000u || o->probe_ns > 600000000000ull)
		return fb_fail_usage(e, "--probe-time must be from 10ms to 10m");
	v.op = op;
	v.size = o->probe_size;
	v.inline_max = 0;
	rc = verbs_params_from_options(p, &v, VERBS_LATENCY, e);
	if (rc == 0 && p->nsizes != 1)
		rc = fb_fail_usage(e, "--probe-size %s: one size", o->probe_size);
	if (rc == 0)
		rc = verbs_load_from_options(&p->load, &lo, p, e);
	p->bench = VERBS_LOSS;
	x->to_client = o->direction != 0;
	x->turns = (unsigned)o->turns;
	x->lead_ns = LEAD_NS;
	x->window_ns = o->duration_ns;
	x->probes = o->probes;
	x->probe_ns = o->probe_ns;
	return rc;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static int open_peer(const struct loss_options *o, struct verbs_loss_run *x, unsigned i,
	uint64_t deadline, struct fb_err *e)
{
	struct verbs_loss_peer *p = &x->peer[i];
	struct verbs_job job = x->job;
	struct verbs_client c = {
		.p = x->job.p, .node = x->job.node, .doc = x->doc, .deadline = deadline};
	bool hardware = false;
	struct verbs_reach how = {o->v.port, o->v.token, o->v.connect_timeout_ns};
	int rc = verbs_reach(&how, p->name, &p->oob, e);

	if (rc == 0)
		rc = verbs_session_order(&c, p->oob, &hardware, e);
	if (rc == 0)
		rc = verbs_reach_take_host(x->doc, p->oob, i + 1, deadline, e);
	job.p = c.p; /* the order has settled the GID's type */
	if (rc == 0)
		rc = verbs_loss_open(&p->end, &job, p->oob, deadline, e);
	x->job.hardware = x->job.hardware && hardware;
	return rc;
}

static void end_peer(struct verbs_loss_peer *p, const struct fb_err *e)
{
	json_t *order = json_pack("{s:s}", "do", "end"), *none = json_object(), *all = NULL;
	struct fb_err ignored = {0};
	uint64_t deadline = fb_deadline_in(5000000000ull);

	if (p->oob && e->code)
		fb_oob_abort(p->oob, e);
	else if (p->oob && fb_oob_bcast_json(p->oob, &order, deadline, &ignored) == 0)
		(void)!fb_oob_gather_json(p->oob, none, &all, deadline, &ignored);
	fb_oob_close(p->oob);
	verbs_loss_close(&p->end);
	json_decref(order);
	json_decref(none);
	json_decref(all);
}

static int run(
	const struct loss_options *o, struct verbs_loss_run *x, uint64_t deadline, struct fb_err *e)
{
	int rc = 0;

	x->npeers = (unsigned)o->servers.n;
	x->peer = calloc(x->npeers ? x->npeers : 1, sizeof *x->peer);
	if (!x->peer)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the sessions");
	for (unsigned i = 0; i < x->npeers; i++)
		x->peer[i].name = o->servers.v[i];
	for (unsigned i = 0; rc == 0 && i < x->npeers; i++)
		rc = open_peer(o, x, i, deadline, e);
	x->where = fb_where(x->job.hardware ? "hardware" : "cpu");
	if (rc == 0)
		rc = verbs_loss_turns(x, e);
	if (rc == 0)
		verbs_loss_summary(x);
	for (unsigned i = 0; i < x->npeers; i++)
		end_peer(&x->peer[i], e);
	free(x->peer);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Loss of this host's own is made here, before anything else is opened: whether it can be is known
 * at once. */
static int open_maker(struct verbs_loss_run *x, const struct loss_options *o, struct fb_err *e)
{
	x->maker.guard_fd = -1;
	if (x->how == VERBS_LOSS_NETEM && x->to_client)
		return 0;
	return verbs_loss_maker_open(&x->maker, x->how, o->netem ? o->netem : o->command, e);
}

static int with_node(struct verbs_loss_run *x, const struct loss_options *o,
	struct verbs_node *node, uint64_t deadline, struct fb_err *e)
{
	struct verbs_dev_want want;
	int rc = open_maker(x, o, e);

	if (rc)
		return rc;
	verbs_params_want(&o->v, &x->job.p, &want);
	rc = verbs_node_open(node, &want, e);
	if (rc)
		return rc;
	x->job.hardware = verbs_node_hardware(node);
	if (x->job.p.qp_timeout == VERBS_AUTO && node->dev[0].software)
		x->job.p.qp_timeout = TIMEOUT_SOFTWARE;
	/* Where the CPU is the NIC, polling for an answer takes from it what brings the answer. */
	x->job.p.events = x->job.p.events || node->dev[0].software;
	return run(o, x, deadline, e);
}

static int prepare_sums(struct verbs_loss_run *x, struct fb_err *e)
{
	for (unsigned i = 0; i < x->nrates; i++) {
		x->rate[i].hist = malloc(sizeof *x->rate[i].hist);
		if (!x->rate[i].hist)
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for histograms");
		fb_hist_init(x->rate[i].hist);
	}
	return 0;
}

static int measure(const struct fb_opt_spec *spec, const struct loss_options *o,
	struct verbs_loss_run *x, int argc, char **argv)
{
	struct fb_err e = {0}, left = {0};
	struct verbs_node node = {.n = 0};
	uint64_t deadline = fb_output_deadline(&o->out);
	int status = FB_EXIT_OK;

	x->doc = fb_doc_new(spec->command, argc, argv, &o->out, &e);
	if (!x->doc)
		return fb_cmd_fail(&e);
	x->job.node = &node;
	for (size_t i = 0; i < o->servers.n; i++)
		fb_doc_hide(x->doc, o->servers.v[i]);
	fb_doc_set_config(x->doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	if (prepare_sums(x, &e) == 0)
		(void)!with_node(x, o, &node, deadline, &e);
	if (verbs_loss_maker_close(&x->maker, &left) != 0) {
		fb_log_err(&left);
		fb_doc_error(x->doc, &left);
		status = (int)left.exit;
	}
	verbs_node_close(&node);
	x->job.node = NULL;
	for (unsigned i = 0; i < x->nrates; i++)
		free(x->rate[i].hist);
	if (e.code) {
		status = fb_cmd_fail(&e);
		fb_doc_error(x->doc, &e);
	} else {
		fb_doc_set_table(x->doc, verbs_loss_table);
	}
	status = fb_doc_finish(x->doc, status);
	fb_doc_free(x->doc);
	return status;
}

int verbs_loss_main(int argc, char **argv)
{
	struct loss_options o;
	struct verbs_loss_run x = {.npeers = 0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	int rc, status;

	memset(&o, 0, sizeof o);
	make_spec(&spec, &o);
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0) {
		json_t *given = fb_opt_to_json(&spec, true);
		rc = take_rates(&x, &o, json_object_get(given, "fit-rates") != NULL, &e);
		json_decref(given);
	}
	if (rc == 0)
		rc = take_how(&x, &o, &e);
	if (rc == 0)
		rc = take_params(&x, &o, &e);
	status = rc ? fb_cmd_fail(&e) : measure(&spec, &o, &x, argc, argv);
	fb_opt_free(&spec);
	return status;
}
