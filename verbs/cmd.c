// SPDX-License-Identifier: Apache-2.0
/*
 * The commands `verbs latency` and `verbs bandwidth`: options, document, session. Nothing is
 * measured here.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"
#include "verbs/benches.h"
#include "verbs/serve.h"
#include "verbs/session.h"
#include "verbs/verbs.h"

struct client_options {
	struct verbs_options v;
	struct fb_runctl_cfg run;
	struct fb_output_cfg out;
};

static const char *const notes[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] =
		"Definitions: send and write are half of the round trip, read is the full one; one message is "
		"in\nflight (idle, closed loop). Write latency polls the last byte of the payload: valid only "
		"where\nthe NIC places data in order. The thread and its buffers live on the NIC's NUMA "
		"node.\n\n"
		"Examples:\n"
		"  server:  fabricbench verbs serve\n"
		"  client:  fabricbench verbs latency --op send,write,read -s 2:64K SERVER\n"
		"  alone:   fabricbench verbs latency --loopback",
	[VERBS_BANDWIDTH] =
		"Bandwidth is message bytes, without headers, from the first post to the last completion; its "
		"bound\nis the line rate times the share of payload in the packets (real NICs only).\n\n"
		"Examples:\n"
		"  server:  fabricbench verbs serve\n"
		"  client:  fabricbench verbs bandwidth --op write -s 64K,1M -q 4 SERVER\n"
		"  rails:   fabricbench verbs bandwidth -d all -D 10s SERVER",
};
static const char *const summaries[VERBS_NUM_BENCHES] = {
	[VERBS_LATENCY] = "Latency of RDMA send, write and read between this host and a server.",
	[VERBS_BANDWIDTH] = "Bandwidth and message rate of RDMA write, read and send.",
};

static void make_spec(
	struct fb_opt_spec *spec, enum verbs_bench_kind kind, struct client_options *o)
{
	memset(spec, 0, sizeof *spec);
	spec->command = kind == VERBS_LATENCY ? "verbs latency" : "verbs bandwidth";
	spec->usage = "[options] HOST | --loopback";
	spec->summary = summaries[kind];
	spec->notes = notes[kind];
	spec->sets[0].title = "RDMA";
	spec->sets[0].opts = kind == VERBS_LATENCY ? verbs_latency_opts : verbs_bandwidth_opts;
	spec->sets[0].cfg = &o->v;
	spec->sets[1].title = "Run control";
	spec->sets[1].opts = fb_runctl_opts;
	spec->sets[1].cfg = &o->run;
	spec->sets[2].title = "Output";
	spec->sets[2].opts = fb_output_opts;
	spec->sets[2].cfg = &o->out;
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

static int open_node(struct verbs_node *node, const struct verbs_options *v, struct fb_err *e)
{
	struct verbs_dev_want want = {.device = v->device,
		.port = (unsigned)v->ib_port,
		.pkey_index = (unsigned)v->pkey_index,
		.gid = {.index = v->gid_index,
			.type = v->gid_type ? v->gid_type : -1,
			.family = -1}};

	return verbs_node_open(node, &want, e);
}

/* Server and client are often started at the same moment: a refused connection is tried again for a
 * little while before it counts. */
#define REFUSED_NS 3000000000ull

static int connect_server(const struct verbs_options *v, struct fb_oob **oob, struct fb_err *e)
{
	static const struct timespec pause = {0, 200000000};
	uint64_t deadline = fb_deadline_in(v->connect_timeout_ns);
	uint64_t patience = fb_deadline_in(REFUSED_NS);
	int rc;

	for (;;) {
		uint64_t now;
		fb_err_clear(e);
		rc = fb_oob_connect(v->server, v->port, v->token, deadline, oob, e);
		now = fb_clock_ns();
		if (rc != -ECONNREFUSED || now > patience || now > deadline || fb_stop_requested())
			return rc;
		nanosleep(&pause, NULL);
	}
}

static int run_session(const struct client_options *o, struct verbs_client *c, struct fb_err *e)
{
	struct fb_oob *oob = NULL;
	int rc;

	if (c->p.loopback)
		return verbs_session_loopback(c, e);
	rc = connect_server(&o->v, &oob, e);
	if (rc) {
		fb_hint(e, "start `fabricbench verbs serve --port %d` on %s", o->v.port,
			o->v.server);
		return rc;
	}
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
	struct verbs_client c = {.p = *p, .node = &node, .runctl = &o->run};
	int status = FB_EXIT_OK;

	c.doc = fb_doc_new(spec->command, argc, argv, &o->out, &e);
	if (!c.doc)
		return fb_cmd_fail(&e);
	if (o->v.server)
		fb_doc_hide(
			c.doc, o->v.server); /* also as a bare argument: --anonymous takes it out */
	fb_doc_set_config(c.doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	c.deadline = fb_deadline_in(o->out.timeout);
	if (open_node(&node, &o->v, &e) == 0)
		(void)run_session(o, &c, &e);
	verbs_node_close(&node);
	if (e.code) {
		fb_progress_end();
		status = fb_cmd_fail(&e);
		fb_doc_error(c.doc, &e);
	}
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
		rc = verbs_params_from_options(&p, &o.v, kind, &e);
	if (rc == 0)
		rc = check_target(&o.v, &e);
	status = rc ? fb_cmd_fail(&e) : measure(&spec, &o, &p, argc, argv);
	fb_opt_free(&spec);
	return status;
}

static int latency_main(int argc, char **argv)
{
	return client_main(VERBS_LATENCY, argc, argv);
}
static int bandwidth_main(int argc, char **argv)
{
	return client_main(VERBS_BANDWIDTH, argc, argv);
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

static const struct fb_cmd verbs_sub[] = {{.name = "serve",
						  .summary = "serve RDMA benchmarks to clients",
						  .run = verbs_serve_main,
						  .spec = verbs_serve_spec},
	{.name = "latency",
		.summary = "latency of RDMA send, write and read",
		.run = latency_main,
		.spec = latency_spec},
	{.name = "bandwidth",
		.summary = "bandwidth and message rate of RDMA write, read and send",
		.run = bandwidth_main,
		.spec = bandwidth_spec},
	{.name = NULL}};

const struct fb_cmd verbs_cmd = {
	.name = "verbs", .summary = "RDMA latency and bandwidth", .sub = verbs_sub};
