// SPDX-License-Identifier: Apache-2.0
/*
 * The background's and the probe's parameters. The wire form is an object of its own ("load") in
 * the client's parameters; a server believes none of it unchecked.
 */
#include "verbs/load_params.h"

#include <errno.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "verbs/params.h"

#define OFF(f) offsetof(struct verbs_load_options, f)
/* Longer waits are no load; shorter ones no machine's clock can keep apart. */
#define INTERVAL_MIN 1000u
#define INTERVAL_MAX 10000000000ull

const char *const verbs_direction_names[] = {"out", "in", "both", NULL};
static const char *const bg_op_names[] = {"send", "write", "read", NULL};
static const enum verbs_op bg_ops[] = {VERBS_SEND, VERBS_WRITE, VERBS_READ};

const struct fb_opt verbs_load_extra_opts[] = {
	{.name = "interval",
		.type = FB_OPT_DURATION,
		.offset = OFF(interval_ns),
		.arg = "TIME",
		.def = "0",
		.help = "a probe is due every so often (0: 100us; 2ms on Soft-RoCE)"},
	{.name = "bg-rate",
		.type = FB_OPT_RATE,
		.offset = OFF(bg_rate),
		.arg = "RATE",
		.def = "0",
		.help = "background asked for in each direction, e.g. 10Gb/s (0: as fast as it goes)"},
	{.name = "bg-size",
		.type = FB_OPT_SIZE,
		.offset = OFF(bg_size),
		.arg = "SIZE",
		.def = "64K",
		.help = "message size of the background"},
	{.name = "bg-op",
		.type = FB_OPT_ENUM,
		.offset = OFF(bg_op),
		.arg = "OP",
		.names = bg_op_names,
		.def = "write",
		.help = "operation of the background"},
	{.name = "bg-direction",
		.type = FB_OPT_ENUM,
		.offset = OFF(bg_direction),
		.arg = "WAY",
		.names = verbs_direction_names,
		.def = "out",
		.help = "where its bytes flow, seen from here"},
	{.name = "bg-traffic-class",
		.type = FB_OPT_INT,
		.offset = OFF(bg_traffic_class),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "its traffic class byte (-1: the probe's)"},
	{.name = "bg-sl",
		.type = FB_OPT_INT,
		.offset = OFF(bg_sl),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 15,
		.help = "its service level (-1: the probe's)"},
	{.name = "bg-depth",
		.type = FB_OPT_INT,
		.offset = OFF(bg_depth),
		.arg = "N",
		.def = "64",
		.min = 1,
		.max = VERBS_MAX_DEPTH / 2,
		.help = "its messages in flight"},
	{.name = NULL}};

int verbs_load_from_options(struct verbs_load_params *l, const struct verbs_load_options *o,
	const struct verbs_params *p, struct fb_err *e)
{
	memset(l, 0, sizeof *l);
	if (p->transport != VERBS_RC)
		return fb_fail_usage(e, "a probe under load needs the transport rc, not %s",
			verbs_transports[p->transport].name);
	if (p->memory == VERBS_MEM_GPU) {
		fb_fail_usage(
			e, "--memory gpu: the CPU looks at these buffers while they are in use");
		fb_hint(e,
			"give --memory host or huge; `verbs latency` and `verbs bandwidth` take a GPU's");
		return -EINVAL;
	}
	if (p->all_rails) {
		fb_fail_usage(e, "--device names one device here, not several");
		fb_hint(e, "run it for each device; `verbs bandwidth -d all` loads all at once");
		return -EINVAL;
	}
	if (o->interval_ns && (o->interval_ns < INTERVAL_MIN || o->interval_ns > INTERVAL_MAX))
		return fb_fail_usage(e, "--interval must be from 1us to 10s");
	if (o->bg_size < 1 || o->bg_size > VERBS_MAX_MSG)
		return fb_fail_usage(e, "--bg-size must be from 1 to 1G");
	if (o->bg_rate < 0 || o->bg_rate > (double)VERBS_MAX_RATE)
		return fb_fail_usage(e, "--bg-rate must be from 0 to 100 Tb/s");
	if (o->bg_rate > 0 && o->bg_rate < 1)
		return fb_fail_usage(e, "--bg-rate is below one byte a second");
	l->interval_ns = o->interval_ns;
	l->bg_rate = (uint64_t)(o->bg_rate + 0.5);
	l->bg_size = o->bg_size;
	l->bg_op = bg_ops[o->bg_op];
	l->bg_direction = (enum verbs_direction)o->bg_direction;
	l->bg_traffic_class = o->bg_traffic_class >= 0 ? o->bg_traffic_class : p->traffic_class;
	l->bg_sl = o->bg_sl >= 0 ? o->bg_sl : p->sl;
	l->bg_depth = o->bg_depth;
	return 0;
}

static int probes_fit(const char *text, struct fb_err *e)
{
	int ops[VERBS_NUM_OPS], n = verbs_parse_ops(text, ops, e);

	for (int i = 0; i < n; i++) {
		if (ops[i] == VERBS_SEND || ops[i] == VERBS_WRITE || ops[i] == VERBS_READ)
			continue;
		fb_fail_usage(
			e, "--op %s: a probe is a send, a write or a read", verbs_ops[ops[i]].name);
		fb_hint(e, "give --op send,write,read; `verbs latency` measures the others");
		return -EINVAL;
	}
	return n < 0 ? n : 0;
}

int verbs_load_params(struct verbs_params *p, const struct verbs_options *o,
	const struct verbs_load_options *lo, struct fb_err *e)
{
	static char probe_size[] = "64";
	struct verbs_options v = *o;
	int rc = probes_fit(v.op, e);

	if (!v.size && !v.all && !v.min_size && !v.max_size)
		v.size = probe_size;
	if (rc == 0)
		rc = verbs_params_from_options(p, &v, VERBS_LATENCY, e);
	if (rc == 0)
		rc = verbs_load_from_options(&p->load, lo, p, e);
	p->bench = VERBS_LOAD;
	return rc;
}

json_t *verbs_load_to_json(const struct verbs_load_params *l)
{
	json_t *j = json_object();

	if (!j)
		return NULL;
	fb_json_set_int(j, "interval_ns", (int64_t)l->interval_ns);
	fb_json_set_int(j, "bg_rate", (int64_t)l->bg_rate);
	fb_json_set_int(j, "bg_size", (int64_t)l->bg_size);
	fb_json_set_str(j, "bg_op", verbs_ops[l->bg_op].name);
	fb_json_set_int(j, "bg_direction", (int64_t)l->bg_direction);
	fb_json_set_int(j, "bg_traffic_class", l->bg_traffic_class);
	fb_json_set_int(j, "bg_sl", l->bg_sl);
	fb_json_set_int(j, "bg_depth", l->bg_depth);
	fb_json_set_int(j, "role", (int64_t)l->role);
	return j;
}

static int take(
	const json_t *j, const char *key, int64_t min, int64_t max, int64_t *v, struct fb_err *e)
{
	const json_t *n = json_object_get(j, key);

	if (!json_is_integer(n) || json_integer_value(n) < min || json_integer_value(n) > max)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the client's load has no valid '%s': not a fabricbench client of this "
			"version",
			key);
	*v = json_integer_value(n);
	return 0;
}

int verbs_load_from_json(struct verbs_load_params *l, const json_t *j, struct fb_err *e)
{
	int64_t interval, rate, size, way, tc, sl, depth, role;
	const char *op = fb_json_str(j, "bg_op", "");

	memset(l, 0, sizeof *l);
	if (take(j, "interval_ns", 0, (int64_t)INTERVAL_MAX, &interval, e) ||
		take(j, "bg_rate", 0, (int64_t)VERBS_MAX_RATE, &rate, e) ||
		take(j, "bg_size", 1, VERBS_MAX_MSG, &size, e) ||
		take(j, "bg_direction", VERBS_OUT, VERBS_BOTH, &way, e) ||
		take(j, "bg_traffic_class", 0, 255, &tc, e) || take(j, "bg_sl", 0, 15, &sl, e) ||
		take(j, "bg_depth", 1, VERBS_MAX_DEPTH / 2, &depth, e) ||
		take(j, "role", VERBS_ROLE_SENDER, VERBS_ROLE_VICTIM, &role, e))
		return -EPROTO;
	for (unsigned i = 0; bg_op_names[i]; i++) {
		if (strcmp(op, bg_op_names[i]) != 0)
			continue;
		*l = (struct verbs_load_params){.interval_ns = (uint64_t)interval,
			.bg_rate = (uint64_t)rate,
			.bg_size = (uint64_t)size,
			.bg_op = bg_ops[i],
			.bg_direction = (enum verbs_direction)way,
			.bg_traffic_class = (int)tc,
			.bg_sl = (int)sl,
			.bg_depth = (int)depth,
			.role = (enum verbs_role)role};
		return 0;
	}
	return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
		"the client's load has no valid 'bg_op': not a fabricbench client of this version");
}

void verbs_load_bg_params(struct verbs_params *bg, const struct verbs_params *p, bool software)
{
	*bg = *p;
	bg->bench = VERBS_BANDWIDTH;
	bg->nops = bg->nsizes = 1;
	bg->ops[0] = (int)p->load.bg_op;
	bg->sizes[0] = p->load.bg_size;
	bg->events = software;
	bg->inline_max = 0;
	bg->traffic_class = p->load.bg_traffic_class;
	bg->sl = p->load.bg_sl;
	bg->depth = p->load.bg_depth;
	bg->rx_depth = 2 * p->load.bg_depth;
	bg->qps = bg->post_list = bg->cq_mod = 1;
	bg->bidirectional = p->load.bg_direction == VERBS_BOTH;
	bg->all_rails = 0;
}

static bool sends(const struct verbs_load_params *l, bool client)
{
	return l->bg_direction == VERBS_BOTH || (l->bg_direction == VERBS_OUT) == client;
}

bool verbs_load_issues(const struct verbs_load_params *l, bool client)
{
	return sends(l, verbs_ops[l->bg_op].fetches ? !client : client);
}

bool verbs_load_consumes(const struct verbs_load_params *l, bool client)
{
	return verbs_ops[l->bg_op].takes_receive && sends(l, !client);
}
