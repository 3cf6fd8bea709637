// SPDX-License-Identifier: Apache-2.0
/*
 * The commands `verbs latency` and `verbs bandwidth`: options, document, session. Nothing is
 * measured here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/gate.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"
#include "verbs/benches.h"
#include "verbs/incast_cmd.h"
#include "verbs/load.h"
#include "verbs/loss_cmd.h"
#include "verbs/pairs_cmd.h"
#include "verbs/reach.h"
#include "verbs/serve.h"
#include "verbs/session.h"
#include "verbs/sniff.h"
#include "verbs/verbs.h"

struct client_options {
	struct verbs_options v;
	struct verbs_load_options load; /**< VERBS_LOAD only */
	struct fb_runctl_cfg run;
	struct fb_gate_cfg gates;
	struct fb_output_cfg out;
};

static const char *const notes[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] =
		"Definitions: send and write are half of the round trip, read and the atomics are the full one; "
		"one\nmessage is in flight (idle, closed loop). Write latency polls the last byte of the payload: "
		"valid\nonly where the NIC places data in order; write-imm waits for a completion, and is valid "
		"everywhere.\nOver uc and ud a message without an answer is given up after 250 ms (500 ms on "
		"Soft-RoCE), counted as\nlost, and no sample. Not in the standard, and refused: read and atomics over "
		"uc, all but sends over\nud, datagrams above the path MTU. dc and srd are left out: each is one "
		"vendor's own.\nThe thread and its buffers live on the NIC's NUMA node.\n\n"
		"Examples:\n"
		"  server:  fabricbench verbs serve\n"
		"  client:  fabricbench verbs latency --op send,write,read -s 2:64K SERVER\n"
		"  atomics: fabricbench verbs latency --op fetch-add,cmp-swap -e SERVER\n"
		"  alone:   fabricbench verbs latency --loopback",
	[VERBS_BANDWIDTH] =
		"Bandwidth is message bytes, without headers, from the first post to the last completion; its "
		"bound\nis the line rate times the share of payload in the packets (real NICs only). Over uc and ud "
		"it is\ngoodput: what the receiver counted, losses told (a plain write over uc leaves nothing to "
		"count).\nAtomics have a message rate alone, and their final value is verified.\n\n"
		"Examples:\n"
		"  server:  fabricbench verbs serve\n"
		"  client:  fabricbench verbs bandwidth --op write -s 64K,1M -q 4 SERVER\n"
		"  rails:   fabricbench verbs bandwidth -d all -D 10s SERVER",
	[VERBS_LOAD] =
		"Each probe is measured idle first and then beside the background flow, in one session. A "
		"probe is\ndue every --interval whatever became of the one before (open loop), and counts "
		"from when it was\ndue: full round trip, waiting included. Unless -n or -D are given, a point "
		"takes 1,000 probes or 10 s.\nThe figure to read is p99_ratio: what the background does to "
		"the tail.\n\n"
		"Examples:\n"
		"  server:        fabricbench verbs serve\n"
		"  same class:    fabricbench verbs load SERVER\n"
		"  other class:   fabricbench verbs load --traffic-class 104 --bg-traffic-class 0 SERVER\n"
		"  half a link:   fabricbench verbs load --bg-rate 50Gb/s --bg-direction both SERVER",
};
static const char *const summaries[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] =
		"Latency of RDMA sends, writes, reads and atomics between this host and a server.",
	[VERBS_BANDWIDTH] = "Bandwidth and message rate of RDMA writes, reads, sends and atomics.",
	[VERBS_LOAD] = "Tail latency of a probe flow, idle and beside a background flow.",
};
static const char *const commands[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] = "verbs latency",
	[VERBS_BANDWIDTH] = "verbs bandwidth",
	[VERBS_LOAD] = "verbs load",
};
static const struct fb_opt *const options[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] = verbs_latency_opts,
	[VERBS_BANDWIDTH] = verbs_bandwidth_opts,
	[VERBS_LOAD] = verbs_load_opts,
};

static void make_spec(
	struct fb_opt_spec *spec, enum verbs_bench_kind kind, struct client_options *o)
{
	memset(spec, 0, sizeof *spec);
	spec->command = commands[kind];
	spec->usage = "[options] HOST | --loopback";
	spec->summary = summaries[kind];
	spec->notes = notes[kind];
	spec->sets[0].title = "RDMA";
	spec->sets[0].opts = options[kind];
	spec->sets[0].cfg = &o->v;
	spec->sets[1].title = "Run control";
	spec->sets[1].opts = fb_runctl_opts;
	spec->sets[1].cfg = &o->run;
	spec->sets[2].title = "Output";
	spec->sets[2].opts = fb_output_opts;
	spec->sets[2].cfg = &o->out;
	spec->sets[3].title = "Gates, judged at each size";
	spec->sets[3].opts = kind == VERBS_BANDWIDTH ? fb_gate_rate_opts : fb_gate_time_opts;
	spec->sets[3].cfg = &o->gates;
	if (kind != VERBS_LOAD)
		return;
	spec->sets[4].title = "Probe and background";
	spec->sets[4].opts = verbs_load_extra_opts;
	spec->sets[4].cfg = &o->load;
}

static int check_target(const struct verbs_options *v, struct fb_err *e)
{
	if (v->server && v->loopback) {
		fb_fail_usage(e, "--loopback runs both ends here, but the server %s is named too",
			v->server);
		fb_hint(e, "leave one of them out");
		return -EINVAL;
	}
	if (!v->server && !v->loopback) {
		fb_fail_usage(e, "no server named");
		fb_hint(e,
			"start `fabricbench verbs serve` on another host and name it here; or give "
			"--loopback to run both ends on this host");
		return -EINVAL;
	}
	return 0;
}

/* A pace and a number of iterations make a time, which has to fit. */
static int check_time(
	const struct verbs_params *p, const struct fb_runctl_cfg *run, struct fb_err *e)
{
	uint64_t interval = p->bench == VERBS_LOAD ? p->load.interval_ns : p->interval_ns;
	double need = (double)interval * (double)run->iters;
	char all[32], limit[32];

	/* Without a number of iterations a point has at least one. */
	if (!run->iters && interval > run->point_timeout_ns + run->duration_ns) {
		fb_fail_usage(e, "--interval %s is longer than --point-timeout lets a point last",
			fb_fmt_duration((double)interval, all, sizeof all));
		fb_hint(e, "give a longer --point-timeout, or a shorter --interval");
		return -EINVAL;
	}
	if (need <= (double)run->point_timeout_ns)
		return 0;
	fb_fail_usage(e,
		"--iters %llu at --interval last %s, and --point-timeout ends a point after %s",
		(unsigned long long)run->iters, fb_fmt_duration(need, all, sizeof all),
		fb_fmt_duration((double)run->point_timeout_ns, limit, sizeof limit));
	fb_hint(e, "give a longer --point-timeout, a shorter --interval, or fewer --iters");
	return -EINVAL;
}

static int open_node(struct verbs_node *node, const struct verbs_options *v,
	const struct verbs_params *p, struct fb_err *e)
{
	struct verbs_dev_want want;

	verbs_params_want(v, p, &want);
	return verbs_node_open(node, &want, e);
}

static int run_session(const struct client_options *o, struct verbs_client *c, struct fb_err *e)
{
	const struct verbs_reach how = {o->v.port, o->v.token, o->v.connect_timeout_ns};
	struct fb_oob *oob = NULL;
	int rc;

	if (c->p.loopback)
		return verbs_session_loopback(c, e);
	rc = verbs_reach_host(&how, o->v.server, &oob, e);
	if (rc)
		return rc;
	rc = verbs_session_client(c, oob, e);
	if (rc)
		fb_oob_abort(oob, e);
	fb_oob_close(oob);
	return rc;
}

static int measure(const struct fb_opt_spec *spec, const struct client_options *o,
	const struct verbs_params *p, int argc, char **argv)
{
	struct fb_err e = {0};
	struct verbs_node node = {.n = 0};
	struct fb_runctl_cfg run = o->run;
	struct verbs_client c = {.p = *p, .node = &node, .runctl = &run};
	int status = FB_EXIT_OK;

	c.doc = fb_doc_new(spec->command, argc, argv, &o->out, &e);
	if (!c.doc)
		return fb_cmd_fail(&e);
	if (o->v.server)
		fb_doc_hide(
			c.doc, o->v.server); /* also as a bare argument: --anonymous takes it out */
	fb_doc_set_config(c.doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	c.deadline = fb_output_deadline(&o->out);
	if (p->bench == VERBS_LOAD)
		verbs_load_run_control(&run);
	if (open_node(&node, &o->v, p, &e) == 0)
		(void)run_session(o, &c, &e);
	verbs_node_close(&node);
	if (p->bench == VERBS_LOAD)
		verbs_load_effects(c.doc);
	if (e.code) {
		fb_progress_end();
		status = fb_cmd_fail(&e);
		fb_doc_error(c.doc, &e);
	}
	status = fb_gate_judge(c.doc, &o->gates, "bandwidth", status);
	status = fb_doc_finish(c.doc, status);
	fb_doc_free(c.doc);
	return status;
}

static int client_main(enum verbs_bench_kind kind, int argc, char **argv)
{
	struct client_options o;
	struct fb_opt_spec spec;
	struct verbs_params p;
	struct fb_err e = {0};
	int rc, status;

	memset(&o, 0, sizeof o);
	make_spec(&spec, kind, &o);
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = kind == VERBS_LOAD ? verbs_load_params(&p, &o.v, &o.load, &e)
					: verbs_params_from_options(&p, &o.v, kind, &e);
	if (rc == 0)
		rc = fb_runctl_fit(&o.run, &e);
	if (rc == 0)
		rc = check_time(&p, &o.run, &e);
	if (rc == 0)
		rc = check_target(&o.v, &e);
	status = rc ? fb_cmd_fail(&e) : measure(&spec, &o, &p, argc, argv);
	fb_opt_free(&spec);
	return status;
}

/* ---- for tests: many short sessions -----------------------------------------------------------
 */

struct churn_options {
	struct client_options client;
	uint64_t sessions;
};
static const struct fb_opt churn_opts[] = {
	{.name = "sessions",
		.type = FB_OPT_U64,
		.offset = offsetof(struct churn_options, sessions),
		.arg = "N",
		.def = "100",
		.min = 1,
		.max = 1000000000,
		.help = "how many, one after the other"},
	{.name = NULL}};
/** Sessions whose results share a document, so that none grows without end. */
#define CHURN_SHARED 10

/* One after the other over one open device. @return 0, or the first failure; *done of them went */
static int churn(const struct fb_opt_spec *spec, const struct churn_options *o,
	struct verbs_client *c, uint64_t *done, struct fb_err *e)
{
	int rc = 0;

	for (*done = 0; rc == 0 && *done < o->sessions; ++*done) {
		if (*done % CHURN_SHARED == 0) {
			fb_doc_free(c->doc);
			c->doc = fb_doc_new(spec->command, 0, NULL, &o->client.out, e);
			if (!c->doc)
				return e->code;
		}
		c->deadline = fb_output_deadline(&o->client.out);
		rc = run_session(&o->client, c, e);
		if (rc)
			break;
	}
	return rc;
}

static int churn_main(int argc, char **argv)
{
	struct churn_options o;
	struct fb_opt_spec spec;
	struct verbs_params p;
	struct verbs_node node = {.n = 0};
	struct verbs_client c = {.node = &node, .runctl = &o.client.run};
	struct fb_err e = {0};
	uint64_t done = 0, began = fb_clock_ns();
	int rc;

	memset(&o, 0, sizeof o);
	make_spec(&spec, VERBS_BANDWIDTH, &o.client);
	spec.command = "verbs churn";
	spec.summary = "Many sessions of `verbs bandwidth`, one after the other.";
	spec.sets[4].title = "Sessions";
	spec.sets[4].opts = churn_opts;
	spec.sets[4].cfg = &o;
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = verbs_params_from_options(&p, &o.client.v, VERBS_BANDWIDTH, &e);
	if (rc == 0)
		rc = check_target(&o.client.v, &e);
	if (rc == 0)
		rc = open_node(&node, &o.client.v, &p, &e);
	if (rc == 0) {
		c.p = p;
		rc = churn(&spec, &o, &c, &done, &e);
	}
	verbs_node_close(&node);
	fb_doc_free(c.doc);
	printf("%llu sessions in %.1f s\n", (unsigned long long)done,
		(double)(fb_clock_ns() - began) / 1e9);
	fb_opt_free(&spec);
	return rc ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

/* ---- the commands -----------------------------------------------------------------------------
 */

static int latency_main(int argc, char **argv)
{
	return client_main(VERBS_LATENCY, argc, argv);
}
static int bandwidth_main(int argc, char **argv)
{
	return client_main(VERBS_BANDWIDTH, argc, argv);
}
static int load_main(int argc, char **argv)
{
	return client_main(VERBS_LOAD, argc, argv);
}

/* For the plan checker: names and values are parsed into structs that nobody reads. */
static const struct fb_opt_spec *plan_spec(enum verbs_bench_kind kind)
{
	static struct client_options scratch[VERBS_NUM_BENCHES];
	static struct fb_opt_spec spec[VERBS_NUM_BENCHES];

	make_spec(&spec[kind], kind, &scratch[kind]);
	return &spec[kind];
}
static const struct fb_opt_spec *latency_spec(void)
{
	return plan_spec(VERBS_LATENCY);
}
static const struct fb_opt_spec *bandwidth_spec(void)
{
	return plan_spec(VERBS_BANDWIDTH);
}
static const struct fb_opt_spec *load_spec(void)
{
	return plan_spec(VERBS_LOAD);
}

static const struct fb_cmd verbs_sub[] = {{.name = "serve",
						  .summary = "serve RDMA benchmarks to clients",
						  .run = verbs_serve_main,
						  .spec = verbs_serve_spec},
	{.name = "latency",
		.summary = "latency of RDMA sends, writes, reads and atomics",
		.run = latency_main,
		.spec = latency_spec},
	{.name = "bandwidth",
		.summary = "bandwidth and message rate of RDMA writes, reads, sends and atomics",
		.run = bandwidth_main,
		.spec = bandwidth_spec},
	{.name = "load",
		.summary = "tail latency of a probe flow beside a background flow",
		.run = load_main,
		.spec = load_spec},
	{.name = "incast",
		.summary = "N senders to this host at once, and what a victim flow suffers",
		.run = verbs_incast_main,
		.spec = verbs_incast_spec},
	{.name = "loss-sweep",
		.summary =
			"goodput and tail against packet loss in one direction, and a model of it",
		.run = verbs_loss_main,
		.spec = verbs_loss_spec},
	{.name = "pairs",
		.summary = "all hosts against each other, pair by pair: which host or link is slow",
		.run = verbs_pairs_main,
		.spec = verbs_pairs_spec},
	{.name = "sniff", .run = verbs_sniff_main}, /* hidden, as the next: for tests */
	{.name = "churn", .run = churn_main}, {.name = NULL}};

const struct fb_cmd verbs_cmd = {
	.name = "verbs", .summary = "RDMA latency and bandwidth", .sub = verbs_sub};
