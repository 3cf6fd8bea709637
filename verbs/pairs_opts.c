// SPDX-License-Identifier: Apache-2.0
/*
 * Options of `verbs pairs`. A pair is a session of `verbs bandwidth` or `verbs latency`: whatever
 * is not an option here has that command's default.
 */
#include "verbs/pairs_opts.h"

#include <errno.h>
#include <string.h>

#define OFF(f) offsetof(struct pairs_options, f)

static const char *const metric_words[] = {"bandwidth", "latency", NULL};
static const char *const gid_type_words[] = {"auto", "v1", "v2", NULL};
static const char *const mtu_words[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};

const struct fb_opt pairs_option_table[] = {{.name = "metric",
						    .type = FB_OPT_ENUM,
						    .offset = OFF(metric),
						    .arg = "NAME",
						    .names = metric_words,
						    .def = "bandwidth",
						    .help = "what each pair measures"},
	{.name = "rounds",
		.type = FB_OPT_U64,
		.offset = OFF(rounds),
		.arg = "N",
		.def = "3",
		.min = 1,
		.max = 1 << 20,
		.help = "rounds of disjoint pairs on each rail"},
	{.name = "full",
		.type = FB_OPT_FLAG,
		.offset = OFF(full),
		.help = "all rounds: every host meets every other one"},
	{.name = "expect-hosts",
		.type = FB_OPT_STRING,
		.offset = OFF(expect_hosts),
		.arg = "FILE",
		.help = "hosts that have to take part, one a line, with a rack or without; one that never "
			"joins is unreachable"},
	{.name = "pair-timeout",
		.type = FB_OPT_DURATION,
		.offset = OFF(pair_timeout_ns),
		.arg = "TIME",
		.def = "20s",
		.help = "a pair that lasts longer has failed"},
	{.name = "floor",
		.type = FB_OPT_DOUBLE,
		.offset = OFF(floor),
		.arg = "SHARE",
		.def = "0.05",
		.help = "smallest difference that makes a host or link slow"},
	{.name = "dry-run",
		.type = FB_OPT_FLAG,
		.offset = OFF(dry_run),
		.help = "only say what would be measured"},
	{.name = "simulate",
		.type = FB_OPT_STRING,
		.offset = OFF(simulate),
		.arg = "SPEC",
		.help = "a simulated fleet instead of hosts, to see what would be found: see below"},
	{.letter = 'd',
		.name = "device",
		.type = FB_OPT_STRING,
		.offset = OFF(device),
		.arg = "NAME",
		.help = "RDMA device of each host; several by commas, or `all`: rail i is each host's i-th"},
	{.letter = 'i',
		.name = "ib-port",
		.type = FB_OPT_INT,
		.offset = OFF(ib_port),
		.arg = "N",
		.def = "0",
		.max = 255,
		.help = "port of the devices (0: the first ACTIVE)"},
	{.letter = 'x',
		.name = "gid-index",
		.type = FB_OPT_INT,
		.offset = OFF(gid_index),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "GID index (-1: by type and address, RoCE v2 and IPv4 first)"},
	{.name = "gid-type",
		.type = FB_OPT_ENUM,
		.offset = OFF(gid_type),
		.arg = "TYPE",
		.names = gid_type_words,
		.def = "auto",
		.help = "RoCE version of the GID"},
	{.name = "op",
		.type = FB_OPT_STRING,
		.offset = OFF(op),
		.arg = "OP",
		.help = "send, write or read (write for bandwidth, send for latency)"},
	{.letter = 's',
		.name = "size",
		.type = FB_OPT_STRING,
		.offset = OFF(size),
		.arg = "SIZE",
		.help = "message size (1M for bandwidth, 8 for latency)"},
	{.letter = 'e',
		.name = "events",
		.type = FB_OPT_FLAG,
		.offset = OFF(events),
		.help = "sleep on completion events instead of polling"},
	{.letter = 'b',
		.name = "bidirectional",
		.type = FB_OPT_FLAG,
		.offset = OFF(bidirectional),
		.help = "bandwidth: both hosts send at once; the figure is the sum"},
	{.letter = 'm',
		.name = "mtu",
		.type = FB_OPT_ENUM,
		.offset = OFF(mtu),
		.arg = "BYTES",
		.names = mtu_words,
		.def = "auto",
		.help = "path MTU (auto: both hosts' active MTU, which must be equal)"},
	{.letter = 'S',
		.name = "sl",
		.type = FB_OPT_INT,
		.offset = OFF(sl),
		.arg = "N",
		.def = "0",
		.max = 15,
		.help = "service level"},
	{.name = "traffic-class",
		.type = FB_OPT_INT,
		.offset = OFF(traffic_class),
		.arg = "N",
		.def = "0",
		.max = 255,
		.help = "traffic class byte (DSCP << 2; 106 is DSCP 26 with ECN); also --tclass"},
	{.name = "tclass",
		.type = FB_OPT_INT,
		.offset = OFF(traffic_class),
		.arg = "N",
		.def = "0",
		.max = 255,
		.hidden = true,
		.help = "the name that perftest gives to --traffic-class"},
	{.letter = 't',
		.name = "depth",
		.type = FB_OPT_INT,
		.offset = OFF(depth),
		.arg = "N",
		.def = "128",
		.min = 1,
		.max = VERBS_MAX_DEPTH,
		.help = "bandwidth: messages in flight for each QP"},
	{.letter = 'q',
		.name = "qps",
		.type = FB_OPT_INT,
		.offset = OFF(qps),
		.arg = "N",
		.def = "1",
		.min = 1,
		.max = VERBS_MAX_QPS,
		.help = "bandwidth: queue pairs"},
	{.name = NULL}};

/* Of two that are named together one would be ignored. */
static int ignored(
	const json_t *given, const char *name, const char *by, const char *why, struct fb_err *e)
{
	if (!json_object_get(given, name))
		return 0;
	fb_fail_usage(e, "--%s and %s contradict each other: %s", name, by, why);
	fb_hint(e, "leave one of them out");
	return -EINVAL;
}

int pairs_opts_fit(const struct pairs_options *o, const struct fb_runctl_cfg *run,
	const json_t *given, struct fb_err *e)
{
	static const char *const rates[] = {"bidirectional", "depth", "qps"};
	int rc = fb_runctl_fit(run, e);

	if (rc == 0 && !(o->floor > 0 && o->floor < 1))
		rc = fb_fail_usage(
			e, "--floor %g: a share between 0 and 1, such as 0.05", o->floor);
	if (rc == 0 && o->full)
		rc = ignored(given, "rounds", "--full", "--full is all rounds", e);
	for (unsigned i = 0; rc == 0 && o->metric == PAIRS_LATENCY && i < 3; i++)
		rc = ignored(given, rates[i], "--metric latency",
			"latency has one message in flight", e);
	if (rc == 0 && o->simulate)
		rc = ignored(given, "expect-hosts", "--simulate",
			"a simulated fleet names its own hosts", e);
	if (rc == 0 && run->duration_ns >= o->pair_timeout_ns) {
		rc = fb_fail_usage(e,
			"--duration %.3g s does not end within --pair-timeout %.3g s: every pair would "
			"fail",
			(double)run->duration_ns / 1e9, (double)o->pair_timeout_ns / 1e9);
		fb_hint(e, "give a longer --pair-timeout, or a shorter --duration");
	}
	return rc;
}

static int has_bandwidth(const char *text, struct fb_err *e)
{
	int ops[VERBS_NUM_OPS], n = verbs_parse_ops(text, ops, e);

	if (n < 0)
		return n;
	if (!verbs_ops[ops[0]].atomic)
		return 0;
	fb_fail_usage(e, "--op %s has no bandwidth that pairs could be compared by",
		verbs_ops[ops[0]].name);
	fb_hint(e, "give --op send, write or read; or --metric latency");
	return -EINVAL;
}

int pairs_make_params(const struct pairs_options *o, struct verbs_params *p, struct fb_err *e)
{
	bool bandwidth = o->metric == PAIRS_BANDWIDTH;
	struct verbs_options v;
	struct fb_opt_spec base = {.command = "verbs pairs",
		.sets = {{"", bandwidth ? verbs_bandwidth_opts : verbs_latency_opts, &v}}};
	int rc;

	memset(&v, 0, sizeof v);
	rc = fb_opt_defaults(&base, e);
	if (rc)
		return rc;
	struct verbs_options mine = v;
	char write_op[] = "write", send_op[] = "send", large[] = "1M", small[] = "8";
	mine.op = bandwidth ? write_op : send_op;
	mine.size = bandwidth ? large : small;
	if (o->op)
		mine.op = o->op;
	if (o->size)
		mine.size = o->size;
	mine.ib_port = o->ib_port;
	mine.gid_index = o->gid_index;
	mine.gid_type = o->gid_type;
	mine.events = o->events;
	mine.mtu = o->mtu;
	mine.sl = o->sl;
	mine.traffic_class = o->traffic_class;
	if (bandwidth) {
		mine.depth = o->depth;
		mine.qps = o->qps;
		mine.bidirectional = o->bidirectional;
	}
	rc = bandwidth ? has_bandwidth(mine.op, e) : 0;
	if (rc == 0)
		rc = verbs_params_from_options(
			p, &mine, bandwidth ? VERBS_BANDWIDTH : VERBS_LATENCY, e);
	if (rc == 0 && (p->nops != 1 || p->nsizes != 1)) {
		rc = fb_fail_usage(e, "a pair measures one operation at one size, not %d at %d",
			p->nops, p->nsizes);
		fb_hint(e, "name one with --op and one with --size");
	}
	fb_opt_free(&base);
	return rc;
}
