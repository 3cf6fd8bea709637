// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench check roce|ib|all [DEVICE]`: facts, findings, the comparison of nodes, the verdict,
 * and the forms in which they are printed.
 */
#include "verbs/lossless/check_cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/check_opts.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "topo/node/node.h"
#include "topo/topo.h"
#include "verbs/lossless/live.h"
#include "verbs/lossless/others.h"
#include "verbs/lossless/summary.h"
#include "verbs/lossless/switch.h"

static const struct check_live_ops *const live_ops = &check_live;

enum layer { ROCE = 1, IB = 2, ALL = 3 };

struct check_cfg {
	char *device, *profile, *sysroot;
	bool live, learn;
	struct fb_opt_list others;
};
struct command {
	enum layer layer;
	struct check_cfg check;
	struct fb_check_cfg judge;
	struct fb_output_cfg out;
	void *live; /* live_ops->cfg_size bytes */
};

#define O(field) offsetof(struct check_cfg, field)
static const struct fb_opt opts[] = {
	{.letter = 'd',
		.name = "device",
		.type = FB_OPT_STRING,
		.offset = O(device),
		.arg = "DEVICE",
		.help = "only this RDMA device",
		.positional = true},
	{.name = "profile",
		.type = FB_OPT_STRING,
		.offset = O(profile),
		.arg = "FILE",
		.help = "what the site has decided: an INI file, or the name of a shipped one; "
			"without it only consistency is judged"},
	{.name = "sysroot",
		.type = FB_OPT_STRING,
		.offset = O(sysroot),
		.arg = "DIR",
		.help = "judge a recorded tree instead of this machine"},
	{.name = "live",
		.type = FB_OPT_FLAG,
		.offset = O(live),
		.help = "judge this machine, and take from --sysroot only what this user may not "
			"read"},
	{.name = "others",
		.type = FB_OPT_LIST,
		.offset = O(others),
		.arg = "DIR|FILE,...",
		.help = "other nodes to compare with: documents of checks, recorded trees, or "
			"folders of them"},
	{.name = "learn",
		.type = FB_OPT_FLAG,
		.offset = O(learn),
		.help = "print the profile of this node, for others to be judged by"},
	{.name = NULL},
};
#undef O

static const char notes[] =
	"States: pass, warn, fail; info: told, not judged; skip: not available, or not visible from\n"
	"here, with the reason; error: an answer that cannot be right. Skip and error are never a\n"
	"pass or a fail.\n"
	"\n"
	"Profiles are INI lines KEY = VALUE: name, source, roce-dscp (up to four), roce-priority,\n"
	"cnp-dscp, cnp-priority, pfc (priorities, or none), trust (dscp, pcp), congestion (ecn,\n"
	"pfc-only), adaptive-routing (yes, no), mtu, ets-share, cable-length, rate, pkey, sl.\n"
	"\n"
	"Examples:\n"
	"  fabricbench check roce --profile dscp26-cnp48-6\n"
	"  fabricbench check roce --learn > site.ini\n"
	"  fabricbench check all --sysroot recorded/node17 --others recorded\n"
	"  fabricbench check --explain R15\n"
	"\n"
	"Exit status: 0 ACCEPTED; 1 REJECTED: a check failed (with --strict, or warned); 3\n"
	"INCOMPLETE: what --require names could not be judged; 77 nothing could be judged; 2 usage.";

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	static const char *const names[] = {
		[0] = "check", [ROCE] = "check roce", [IB] = "check ib", [ALL] = "check all"};
	const char *summary =
		c->layer == ROCE ? "Is RoCE lossless here? Of every port: what was read, what was "
				   "expected and why, and the command that mends it."
		: c->layer == IB
			? "Are the InfiniBand ports as they must be? What was read, what was "
			  "expected and why, and the command that mends it."
			: "Every check of every RDMA port of this node, each by its own link "
			  "layer.";
	*spec = (struct fb_opt_spec){
		.command = names[c->layer],
		.usage = "[DEVICE] [options]",
		.summary = summary,
		.notes = notes,
		.sets = {{"Checks", opts, &c->check}, {"Verdict", fb_check_opts, &c->judge},
			{"Output", fb_output_opts, &c->out}},
	};
	if (live_ops)
		spec->sets[3] = (struct fb_opt_set){"Live", live_ops->opts, c->live};
}

/* ---- what checks there are ------------------------------------------------------------------- */

#define MAX_DEFS 192
/* All definitions that a command has, as one table. */
static void collect(enum layer layer, struct fb_check_def *defs)
{
	size_t n = 0;
	for (const struct port_check *p = roce_checks; (layer & ROCE) && p->def.id; p++)
		defs[n++] = p->def;
	for (const struct port_check *p = ib_checks; (layer & IB) && p->def.id; p++)
		defs[n++] = p->def;
	for (const struct fb_check_def *d = equal_checks; d->id; d++)
		defs[n++] = *d;
	defs[n] = (struct fb_check_def){.id = NULL};
}

/* They are told with the others, and run by check switch and check node alone. */
static void others_too(struct fb_check_def *defs)
{
	size_t n = 0;
	while (defs[n].id)
		n++;
	for (const struct node_check *k = node_checks; k->def.id; k++)
		defs[n++] = k->def;
	for (const struct switch_check *s = switch_checks; s->def.id; s++)
		defs[n++] = s->def;
	defs[n] = (struct fb_check_def){.id = NULL};
}

static int tell_checks(const struct command *c, struct fb_err *e)
{
	struct fb_check_def listed[MAX_DEFS], all[MAX_DEFS];
	collect(c->layer, listed);
	collect(ALL, all);
	others_too(all);
	if (c->layer == ALL)
		others_too(listed);
	return fb_check_tell(&c->judge, listed, all, e);
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct examined {
	struct node_facts facts;
	struct profile profile;
	struct others others;
	char *taken; /* --live: reads that the recording answered */
	char age[48];
	bool tree; /* all facts are recorded */
};

static int read_profile(const struct command *c, struct profile *p, struct fb_err *e)
{
	profile_none(p);
	return c->check.profile ? profile_read(c->check.profile, p, e) : 0;
}

static void tell_age(struct examined *x, const struct node_facts *tree)
{
	if (!fact_known(&tree->recorded.f) ||
		!facts_age(tree->recorded.v, (int64_t)time(NULL), x->age, sizeof(x->age)))
		snprintf(x->age, sizeof(x->age), "it is not told when");
}

/* The live machine, with what this user may not read from the recording. */
static int read_both(
	const struct command *c, const struct fb_sysroot *r, struct examined *x, struct fb_err *e)
{
	struct fb_sysroot live = {.dir = NULL};
	struct node_facts tree;
	int rc = facts_read(&live, c->check.device, &x->facts, e);
	if (rc < 0)
		return rc;
	rc = facts_read(r, NULL, &tree, e);
	if (rc < 0) {
		facts_free(&x->facts);
		return rc;
	}
	facts_overlay(&x->facts, &tree, &x->taken);
	tell_age(x, &tree);
	facts_free(&tree);
	return 0;
}

static int read_facts(
	const struct command *c, const struct fb_sysroot *r, struct examined *x, struct fb_err *e)
{
	if (c->check.live)
		return read_both(c, r, x, e);
	int rc = facts_read(r, c->check.device, &x->facts, e);
	x->tree = rc == 0 && !fb_sysroot_is_live(r);
	if (x->tree)
		tell_age(x, &x->facts);
	return rc;
}

static void free_examined(struct examined *x)
{
	others_free(&x->others);
	facts_free(&x->facts);
	free(x->taken);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* One row for a port that the command is not about: the whole table would only repeat itself. */
static void pass_over(
	const struct port_facts *p, const struct port_check *asked, struct fb_doc *doc)
{
	const char *why;
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	const struct port_check *own = checks_of(p, &why);
	snprintf(f.subject, sizeof(f.subject), "%s/%d", p->device, p->port);
	if (own)
		fb_find(&f, FB_CHECK_SKIP, "the port's link layer is %s: see check %s",
			p->link_layer.v, own == roce_checks ? "roce" : "ib");
	else
		fb_find(&f, FB_CHECK_SKIP, "not available: %s (driver %s)", why, p->family);
	fb_find_read(&f, "%s", p->link_layer.f.read);
	fb_doc_add_check(doc, fb_finding_json(&asked[asked == roce_checks ? 1 : 0].def, &f));
}

static void check_ports(const struct command *c, const struct examined *x,
	const struct port_window *windows, struct fb_doc *doc)
{
	for (int i = 0; i < x->facts.ports; i++) {
		const struct port_facts *p = &x->facts.port[i];
		struct check_input in = {.node = &x->facts,
			.port = p,
			.profile = &x->profile,
			.window = windows ? &windows[i] : NULL,
			.others = (const struct node_facts *const *)x->others.node,
			.n_others = x->others.n};
		const char *why;
		const struct port_check *own = checks_of(p, &why);
		if (own && c->layer & (own == roce_checks ? ROCE : IB))
			checks_run(own, &in, doc);
		else
			pass_over(p, c->layer == IB ? ib_checks : roce_checks, doc);
	}
}

/* A card that could, without a device that does, is a fault and not an absence. */
static void check_no_ports(const struct fb_sysroot *r, enum layer layer, struct fb_doc *doc)
{
	char why[256];
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	const struct port_check *row = layer == IB ? ib_checks : roce_checks;
	int hardware = topo_rdma_hardware(r, why, sizeof(why));
	if (hardware == 2) {
		snprintf(f.subject, sizeof(f.subject), "%.150s", why);
		fb_find(&f, FB_CHECK_FAIL, "RDMA hardware without an RDMA device");
		fb_find_expected(&f, "a card that can RDMA is there", "an RDMA device");
		fb_find_remedy(&f, NULL,
			"modprobe the card's RDMA driver (mlx5_ib, bnxt_re, irdma); dmesg");
	} else {
		snprintf(f.subject, sizeof(f.subject), "this node");
		fb_find(&f, FB_CHECK_SKIP, "not available: there is no RDMA device here");
	}
	fb_find_read(&f, "/sys/class/infiniband");
	fb_doc_add_check(doc, fb_finding_json(&row->def, &f));
}

/* Does a check rest on something that the recording answered? */
static bool rests_on(const char *read, const char *taken)
{
	for (const char *line = taken; line && *line;) {
		char one[200];
		size_t n = strcspn(line, "\n");
		snprintf(one, sizeof(one), "%.*s", (int)(n < sizeof(one) ? n : 0), line);
		if (*one && strstr(read, one))
			return true;
		line += n + (line[n] == '\n');
	}
	return false;
}

/* How old what was not read now is: with each check that rests on it. */
static void mark_ages(const struct examined *x, struct fb_doc *doc)
{
	json_t *checks = json_object_get(fb_doc_json(doc), "checks"), *check;
	size_t i;
	if (!x->age[0])
		return;
	json_array_foreach (checks, i, check) {
		char text[400];
		const char *read = fb_json_str(check, "read", "");
		if (!x->tree && !rests_on(read, x->taken))
			continue;
		snprintf(text, sizeof(text), "%.300s (recorded: %s)", read, x->age);
		fb_json_set_str(check, "read", text);
	}
}

static int run_checks(const struct command *c, const struct fb_sysroot *r, struct examined *x,
	struct fb_doc *doc, struct fb_err *e)
{
	struct port_window *windows = NULL;
	int rc = 0;
	if (live_ops && live_ops->wanted(c->live) && x->facts.ports > 0) {
		windows = calloc((size_t)x->facts.ports, sizeof(*windows));
		rc = windows ? live_ops->fill(c->live, r, &x->facts, windows, doc, e)
			     : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for windows");
	}
	if (rc == 0 && x->facts.ports == 0)
		check_no_ports(r, c->layer, doc);
	if (rc == 0)
		check_ports(c, x, windows, doc);
	for (int i = 0; windows && i < x->facts.ports; i++) {
		json_decref(windows[i].stats);
		json_decref(windows[i].counters);
	}
	free(windows);
	return rc;
}

static void compare_nodes(const struct examined *x, struct fb_doc *doc)
{
	const struct node_facts **nodes =
		calloc((size_t)x->others.n + 1, sizeof(const struct node_facts *));
	if (!nodes) {
		fb_doc_warn(doc, "no memory to compare %d nodes", x->others.n + 1);
		return;
	}
	nodes[0] = &x->facts;
	for (int i = 0; i < x->others.n; i++) {
		nodes[i + 1] = x->others.node[i];
		fb_doc_hide(doc, x->others.node[i]->host);
	}
	equal_run(nodes, x->others.n + 1, doc);
	free(nodes);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_check(const json_t *c, FILE *out)
{
	fprintf(out, "  %-5s %-4s %s: %s\n", fb_json_str(c, "state", "?"),
		fb_json_str(c, "id", "?"), fb_json_str(c, "title", ""),
		fb_json_str(c, "observed", fb_json_str(c, "reason", "")));
	fb_check_print_mend(c, out);
}

static void print_table(const json_t *doc, FILE *out)
{
	const json_t *c;
	const char *before = "";
	size_t i;
	json_array_foreach (json_object_get(doc, "checks"), i, c) {
		const char *subject = fb_json_str(c, "subject", "all nodes");
		if (strcmp(subject, before) != 0)
			fprintf(out, "%s%s\n", i ? "\n" : "", subject);
		before = subject;
		print_check(c, out);
	}
	fb_check_print_end(doc, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void describe(const struct command *c, const struct examined *x, const struct fb_sysroot *r,
	struct fb_doc *doc)
{
	json_t *fabric = summary_json(&x->facts);
	fb_json_set_str(fabric, "profile", x->profile.given ? c->check.profile : NULL);
	if (x->profile.source[0])
		fb_json_set_str(fabric, "profile_source", x->profile.source);
	if (x->age[0])
		fb_json_set_str(fabric, "age", x->age);
	json_object_set_new(fb_doc_json(doc), "fabric", fabric);
	if (!fb_sysroot_is_live(r) && !c->check.live)
		fb_doc_hide(doc, x->facts.host);
}

struct job {
	const struct command *c;
	const struct fb_sysroot *r;
};

static int work(void *arg, struct fb_doc *doc, struct fb_err *e)
{
	const struct job *job = arg;
	const struct command *c = job->c;
	const struct fb_sysroot *r = job->r;
	struct examined x = {0};
	if (read_profile(c, &x.profile, e) < 0 || read_facts(c, r, &x, e) < 0)
		return (int)e->exit;
	int rc = others_read(&c->check.others, x.facts.host, &x.others, e);
	if (rc == 0) {
		describe(c, &x, r, doc);
		rc = run_checks(c, r, &x, doc, e);
	}
	if (rc == 0 && c->check.others.n > 0)
		compare_nodes(&x, doc);
	if (rc == 0)
		mark_ages(&x, doc);
	free_examined(&x);
	return rc == 0 ? fb_check_verdict(&c->judge, doc) : (int)e->exit;
}

static int learn(const struct command *c, const struct fb_sysroot *r, struct fb_err *e)
{
	struct examined x = {0};
	if (read_facts(c, r, &x, e) < 0)
		return (int)e->exit;
	int rc = profile_learn(&x.facts, stdout, e);
	free_examined(&x);
	return rc < 0 ? (int)e->exit : FB_EXIT_OK;
}

static int prepare(struct command *c, struct fb_err *e)
{
	if (c->check.live && !c->check.sysroot) {
		fb_fail_usage(
			e, "--live goes with --sysroot: it fills in what only root could read");
		fb_hint(e, "leave it out to judge this machine alone");
		return -EINVAL;
	}
	struct fb_check_def defs[MAX_DEFS];
	collect(c->layer, defs);
	return fb_check_prepare(&c->judge, &c->out, defs, e);
}

static int run_layer(enum layer layer, int argc, char **argv)
{
	struct command c = {.layer = layer};
	struct fb_opt_spec spec;
	struct fb_sysroot r = {.dir = NULL};
	struct fb_err e = {0};
	int status = FB_EXIT_OK;
	c.live = live_ops ? calloc(1, live_ops->cfg_size) : NULL;
	fill_spec(&spec, &c);
	int rc = live_ops && c.live ? live_ops->cut(c.live, &argc, argv, &e) : 0;
	if (rc == 0)
		rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0) {
		free(c.live);
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	}
	struct job job = {&c, &r};
	if (c.judge.list || c.judge.explain)
		rc = tell_checks(&c, &e);
	else if ((rc = prepare(&c, &e)) == 0 &&
		 (rc = fb_sysroot_open(&r, c.check.sysroot, &e)) == 0)
		status = c.check.learn ? learn(&c, &r, &e)
				       : fb_check_document(&spec, &c.judge, &c.out, argc, argv,
						 print_table, work, &job, &e);
	if (e.code != 0)
		fb_log_err(&e);
	if (rc != 0)
		status = (int)e.exit;
	fb_sysroot_close(&r);
	fb_opt_free(&spec);
	free(c.live);
	return status;
}

static int roce_run(int argc, char **argv)
{
	return run_layer(ROCE, argc, argv);
}

static int ib_run(int argc, char **argv)
{
	return run_layer(IB, argc, argv);
}

static int all_run(int argc, char **argv)
{
	return run_layer(ALL, argc, argv);
}

static const struct fb_opt_spec *spec_of(enum layer layer)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	scratch = (struct command){.layer = layer};
	fill_spec(&spec, &scratch);
	return &spec;
}

static const struct fb_opt_spec *roce_spec(void)
{
	return spec_of(ROCE);
}

static const struct fb_opt_spec *ib_spec(void)
{
	return spec_of(IB);
}

static const struct fb_opt_spec *all_spec(void)
{
	return spec_of(ALL);
}

static const struct fb_cmd subs[] = {
	{.name = "roce",
		.summary = "PFC, ECN, DSCP, GIDs, MTU and counters of RoCE ports",
		.run = roce_run,
		.spec = roce_spec},
	{.name = "ib",
		.summary = "links, counters and partitions of InfiniBand ports",
		.run = ib_run,
		.spec = ib_spec},
	{.name = "all",
		.summary = "both, each port by its link layer",
		.run = all_run,
		.spec = all_spec},
	{.name = "node",
		.summary = "links, placement, settings and inventory of this node",
		.run = check_node_run,
		.spec = check_node_spec},
	{.name = "switch",
		.summary =
			"DSCP maps, PFC, headroom, ECN and watchdogs of switches, from their files",
		.run = check_switch_run,
		.spec = check_switch_spec},
	{.name = NULL},
};

const struct fb_cmd check_cmd = {
	.name = "check",
	.summary = "is the fabric really lossless?",
	.run = all_run, /* check --list, check --explain ID */
	.sub = subs,
};
