// SPDX-License-Identifier: Apache-2.0
/*
 * The command `verbs incast`: options, sessions, document. What is measured stands in incast_run.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "verbs/incast_cmd.h"
#include "verbs/incast_run.h"

/* Room before and after the slots, in which senders start and end one after the other. */
#define EDGE_NS 200000000u

struct incast_options {
	struct verbs_options v;
	struct fb_opt rdma[64]; /**< of a connection, without what an incast decides itself */
	struct fb_opt_list senders;
	char *victim;
	bool ramp;
	uint64_t size;
	int depth;
	double rate;
	uint64_t duration_ns;
	int slots;
	uint64_t interval_ns;
	char *victim_size;
	int victim_traffic_class;
	int victim_sl;
	struct fb_output_cfg out;
};
#define OFF(f) offsetof(struct incast_options, f)

static const struct fb_opt incast_opts[] = {
	{.name = "senders",
		.type = FB_OPT_LIST,
		.offset = OFF(senders),
		.arg = "HOST[:PORT],...",
		.help = "hosts that send, each with `fabricbench verbs serve`"},
	{.name = "victim",
		.type = FB_OPT_STRING,
		.offset = OFF(victim),
		.arg = "HOST[:PORT]",
		.help = "a host that does not send; small reads from it tell what others suffer"},
	{.name = "ramp",
		.type = FB_OPT_FLAG,
		.offset = OFF(ramp),
		.help = "1, 2, ... up to all senders, instead of all at once"},
	{.letter = 's',
		.name = "size",
		.type = FB_OPT_SIZE,
		.offset = OFF(size),
		.arg = "SIZE",
		.def = "64K",
		.help = "message size of the senders' writes"},
	{.letter = 't',
		.name = "depth",
		.type = FB_OPT_INT,
		.offset = OFF(depth),
		.arg = "N",
		.def = "64",
		.min = 1,
		.max = VERBS_MAX_DEPTH / 2,
		.help = "messages in flight of each sender"},
	{.name = "rate",
		.type = FB_OPT_RATE,
		.offset = OFF(rate),
		.arg = "RATE",
		.def = "0",
		.help = "rate of each sender (0: as fast as it goes)"},
	{.letter = 'D',
		.name = "duration",
		.type = FB_OPT_DURATION,
		.offset = OFF(duration_ns),
		.arg = "TIME",
		.def = "2s",
		.help = "length of each step"},
	{.name = "slots",
		.type = FB_OPT_INT,
		.offset = OFF(slots),
		.arg = "N",
		.def = "20",
		.min = 1,
		.max = VERBS_INCAST_MAX_SLOTS,
		.help = "parts of a step, which give the intervals"},
	{.name = "interval",
		.type = FB_OPT_DURATION,
		.offset = OFF(interval_ns),
		.arg = "TIME",
		.def = "0",
		.help = "a read from the victim is due every so often (0: 100us; 2ms on Soft-RoCE)"},
	{.name = "victim-size",
		.type = FB_OPT_STRING,
		.offset = OFF(victim_size),
		.arg = "SIZE",
		.def = "64",
		.help = "size of these reads"},
	{.name = "victim-traffic-class",
		.type = FB_OPT_INT,
		.offset = OFF(victim_traffic_class),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "their traffic class byte (-1: the senders')"},
	{.name = "victim-sl",
		.type = FB_OPT_INT,
		.offset = OFF(victim_sl),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 15,
		.help = "their service level (-1: the senders')"},
	{.name = NULL}};

static const char notes[] =
	"This host is the receiver: all senders write into its memory at the same time. Goodput is "
	"what\nits NIC has acknowledged, by sender and in sum; fairness is Jain's index of the "
	"senders' goodputs\n(1: all the same, 1/N: one has all).\n"
	"A victim is a host that sends nothing of the incast. This host reads from it, open loop, first "
	"alone\nand then beside the incast: its answers share the last hop with the senders' data, so "
	"that they tell\nwhat any other flow to this host suffers. On a lossless class that is what PFC "
	"and ECN are for:\nanother class (--victim-traffic-class) should suffer nothing.\n\n"
	"Examples:\n"
	"  each host:  fabricbench verbs serve\n"
	"  receiver:   fabricbench verbs incast --senders node1,node2,node3 --victim node4 --ramp\n"
	"  by class:   fabricbench verbs incast --senders node1,node2 --victim node3 \\\n"
	"                --traffic-class 104 --victim-traffic-class 0";

/* An incast decides these itself, or gives them a meaning of its own. */
static const char *const own_words[] = {"server", "loopback", "op", "transport", "size", "all",
	"min-size", "max-size", "inline", "interval", "duration", NULL};

static void make_spec(struct fb_opt_spec *spec, struct incast_options *o)
{
	memset(spec, 0, sizeof *spec);
	verbs_opts_without(own_words, o->rdma, sizeof o->rdma / sizeof o->rdma[0]);
	spec->command = "verbs incast";
	spec->usage = "[options] --senders HOST,HOST,... [--victim HOST]";
	spec->summary =
		"N senders to this host at once: goodput, fairness, and a victim's latency.";
	spec->notes = notes;
	spec->sets[0].title = "Incast";
	spec->sets[0].opts = incast_opts;
	spec->sets[0].cfg = o;
	spec->sets[1].title = "RDMA";
	spec->sets[1].opts = o->rdma;
	spec->sets[1].cfg = &o->v;
	spec->sets[2].title = "Output";
	spec->sets[2].opts = fb_output_opts;
	spec->sets[2].cfg = &o->out;
}

const struct fb_opt_spec *verbs_incast_spec(void)
{
	static struct incast_options scratch;
	static struct fb_opt_spec spec;

	make_spec(&spec, &scratch);
	return &spec;
}

/* ---- options -> parameters ------------------------------------------------------------------- */

static int named_twice(const char *host, struct fb_err *e)
{
	fb_fail_usage(e, "the sender %s is named twice", host);
	fb_hint(e, "name each host once in --senders; with several servers on one host, HOST:PORT");
	return -EINVAL;
}

static int check_hosts(const struct incast_options *o, struct fb_err *e)
{
	if (o->senders.n == 0) {
		fb_fail_usage(e, "no sender named");
		fb_hint(e,
			"start `fabricbench verbs serve` on the hosts that are to send, and name "
			"them here with --senders HOST,HOST,...");
		return -EINVAL;
	}
	if (o->senders.n > VERBS_INCAST_MAX_SENDERS)
		return fb_fail_usage(
			e, "%zu senders are more than %d", o->senders.n, VERBS_INCAST_MAX_SENDERS);
	for (size_t i = 0; i < o->senders.n; i++) {
		if (o->victim && !strcmp(o->victim, o->senders.v[i]))
			return fb_fail_usage(e,
				"%s is named as a sender and as the victim: a victim sends nothing",
				o->victim);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(o->senders.v[k], o->senders.v[i]))
				return named_twice(o->senders.v[i], e);
	}
	return 0;
}

/* Without a victim what is said of it would be ignored. */
static int check_victim(const struct incast_options *o, const json_t *given, struct fb_err *e)
{
	static const char *const its[] = {
		"interval", "victim-size", "victim-traffic-class", "victim-sl"};

	for (size_t i = 0; !o->victim && i < sizeof its / sizeof its[0]; i++) {
		if (!json_object_get(given, its[i]))
			continue;
		fb_fail_usage(e, "--%s is the victim's, and no --victim is named", its[i]);
		fb_hint(e, "name one with --victim HOST, or leave --%s out", its[i]);
		return -EINVAL;
	}
	return 0;
}

static int take_params(struct verbs_params *p, const struct incast_options *o, struct fb_err *e)
{
	static char op[] = "read";
	struct verbs_options v = o->v;
	struct verbs_load_options lo = {.interval_ns = o->interval_ns,
		.bg_rate = o->rate,
		.bg_size = o->size,
		.bg_op = 1, /* write, see load_params.c */
		.bg_direction = VERBS_IN,
		.bg_traffic_class = o->v.traffic_class,
		.bg_sl = o->v.sl,
		.bg_depth = o->depth};
	int rc = check_hosts(o, e);

	if (rc)
		return rc;
	if (o->duration_ns < 10000000u || o->duration_ns > 3600000000000ull)
		return fb_fail_usage(e, "--duration must be from 10ms to 1h");
	rc = fb_timeout_fits(o->out.timeout, (o->ramp ? o->senders.n : 1) + (o->victim ? 1 : 0),
		"steps", o->duration_ns, "leave --ramp out", e);
	if (rc)
		return rc;
	v.op = op;
	v.size = o->victim_size;
	v.inline_max = 0;
	if (o->victim_traffic_class >= 0)
		v.traffic_class = o->victim_traffic_class;
	if (o->victim_sl >= 0)
		v.sl = o->victim_sl;
	rc = verbs_params_from_options(p, &v, VERBS_LATENCY, e);
	if (rc == 0 && p->nsizes != 1)
		rc = fb_fail_usage(e, "--victim-size %s: one size", o->victim_size);
	if (rc == 0)
		rc = verbs_load_from_options(&p->load, &lo, p, e);
	p->bench = VERBS_INCAST;
	return rc;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static int run(
	const struct incast_options *o, struct verbs_incast *x, uint64_t deadline, struct fb_err *e)
{
	unsigned n = (unsigned)o->senders.n + (o->victim ? 1 : 0);
	const struct verbs_reach how = {.port = o->v.port,
		.token = o->v.token,
		.connect_timeout_ns = o->v.connect_timeout_ns};
	int rc = 0;

	x->peer = calloc(n ? n : 1, sizeof *x->peer);
	x->hist = o->victim ? malloc(sizeof *x->hist) : NULL;
	if (!x->peer || (o->victim && !x->hist)) {
		free(x->peer);
		free(x->hist);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u sessions", n);
	}
	x->nsenders = (unsigned)o->senders.n;
	x->victim = o->victim != NULL;
	x->ramp = o->ramp;
	x->lead_ns = x->tail_ns = EDGE_NS;
	x->slots = (unsigned)o->slots;
	x->slot_ns = o->duration_ns / x->slots;
	for (unsigned i = 0; i < x->nsenders; i++)
		x->peer[i].name = o->senders.v[i];
	if (x->victim)
		x->peer[x->nsenders].name = o->victim;
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = verbs_incast_join(x, i, &how, deadline, e);
	x->where = fb_where(x->job.hardware ? "hardware" : "cpu");
	if (rc == 0)
		rc = verbs_incast_steps(x, e);
	verbs_incast_leave(x, e);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int measure(const struct fb_opt_spec *spec, const struct incast_options *o,
	const struct verbs_params *p, int argc, char **argv)
{
	struct fb_err e = {0};
	struct verbs_node node = {.n = 0};
	struct verbs_incast x = {.job = {.p = *p, .node = &node}};
	struct verbs_dev_want want;
	uint64_t deadline = fb_output_deadline(&o->out);
	int status = FB_EXIT_OK, rc;

	x.doc = fb_doc_new(spec->command, argc, argv, &o->out, &e);
	if (!x.doc)
		return fb_cmd_fail(&e);
	for (size_t i = 0; i < o->senders.n; i++)
		fb_doc_hide(x.doc, o->senders.v[i]);
	if (o->victim)
		fb_doc_hide(x.doc, o->victim);
	fb_doc_set_config(x.doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	verbs_params_want(&o->v, p, &want);
	rc = verbs_node_open(&node, &want, &e);
	if (rc == 0) {
		x.job.hardware = verbs_node_hardware(&node);
		if (!x.job.p.load.interval_ns)
			x.job.p.load.interval_ns =
				node.dev[0].software ? VERBS_PROBE_NS_SOFTWARE : VERBS_PROBE_NS;
		rc = run(o, &x, deadline, &e);
	}
	verbs_node_close(&node);
	if (rc) {
		status = fb_cmd_fail(&e);
		fb_doc_error(x.doc, &e);
	}
	status = fb_doc_finish(x.doc, status);
	fb_doc_free(x.doc);
	return status;
}

int verbs_incast_main(int argc, char **argv)
{
	struct incast_options o;
	struct fb_opt_spec spec;
	struct verbs_params p;
	struct fb_err e = {0};
	int rc, status;

	memset(&o, 0, sizeof o);
	make_spec(&spec, &o);
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0) {
		json_t *given = fb_opt_to_json(&spec, true);
		rc = check_victim(&o, given, &e);
		json_decref(given);
	}
	if (rc == 0)
		rc = take_params(&p, &o, &e);
	status = rc ? fb_cmd_fail(&e) : measure(&spec, &o, &p, argc, argv);
	fb_opt_free(&spec);
	return status;
}
