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
#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "topo/node/node.h"
#include "topo/topo.h"
#include "verbs/lossless/drive.h"
#include "verbs/lossless/live.h"
#include "verbs/lossless/others.h"
#include "verbs/lossless/ranks.h"
#include "verbs/lossless/summary.h"
#include "verbs/lossless/switch.h"

enum layer { ROCE = 1, IB = 2, ALL = 3 };

struct check_cfg {
	char *device, *profile, *sysroot;
	bool live, learn, rendezvous;
	struct fb_opt_list others;
};
struct command {
	enum layer layer;
	struct check_cfg check;
	struct fb_check_cfg judge;
	struct fb_output_cfg out;
	struct drive_cfg drive;
	struct fb_oob_cfg oob;
	struct fb_sysroot root;
	int rank; /* with --rendezvous; else 0 */
	struct live_cfg live;
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
	{.name = "rendezvous",
		.type = FB_OPT_FLAG,
		.offset = O(rendezvous),
		.help = "every node runs this command: rank 0 compares them all, and alone writes "
			"and prints"},
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
	"  fabricbench check roce --drive node2,node3,node4   (there: fabricbench verbs serve)\n"
	"  srun -N8 fabricbench check all --rendezvous -o fabric.json\n"
	"  fabricbench check --explain R15\n"
	"\n"
	"Exit status: 0 ACCEPTED; 1 REJECTED: a check failed (with --strict, or warned); 3\n"
	"INCOMPLETE: what --require names, a host of --drive or a rank told nothing; 77 nothing\n"
	"could be judged; 2 usage.";

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
			{"Output", fb_output_opts, &c->out}, {"Live", live_opts, &c->live},
			{"Load", drive_opts, &c->drive}, {"Hosts and ranks", fb_oob_opts, &c->oob}},
	};
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
	defs[n++] = drive_checks[0];
	defs[n++] = ranks_checks[0];
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

/* ---- facts ----------------------------------------------------------------------------------- */

struct examined {
	struct node_facts facts;
	struct profile profile;
	struct others others;
	struct drive drive;
	bool driven;
	struct ranks ranks;
	const struct node_facts **all; /* every other node that told what it is */
	int n_all;
	char *taken; /* --live: reads that the recording answered */
	char age[48];
	bool tree;    /* all facts are recorded */
	bool strange; /* --live: the recording has none of the ports that are here */
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
	x->strange = facts_overlay(&x->facts, &tree, &x->taken) == 0 && x->facts.ports > 0;
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
	drive_free(&x->drive);
	ranks_end(&x->ranks);
	free(x->all);
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
			.others = x->all,
			.n_others = x->n_all,
			.drive = x->driven && x->drive.port == i ? &x->drive : NULL};
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

/* Several servers may run on one host. */
static bool among(const struct examined *x, const char *host)
{
	for (int i = 0; i < x->n_all; i++)
		if (x->all[i] && strcmp(x->all[i]->host, host) == 0)
			return true;
	return strcmp(x->facts.host, host) == 0;
}

/* From a folder, from ranks, from the hosts of a drive. */
static int gather_all(struct examined *x, struct fb_err *e)
{
	int most = x->others.n + x->ranks.size + x->drive.peers;
	x->all = calloc((size_t)most + 1, sizeof(const struct node_facts *));
	if (!x->all)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to compare %d nodes", most + 1);
	for (int i = 0; i < x->others.n; i++)
		x->all[x->n_all++] = x->others.node[i];
	for (int i = 0; i < x->ranks.size; i++)
		if (x->ranks.node[i])
			x->all[x->n_all++] = x->ranks.node[i];
	for (int i = 0; i < x->drive.peers; i++)
		if (x->drive.peer[i].facts && !among(x, x->drive.peer[i].facts->host))
			x->all[x->n_all++] = x->drive.peer[i].facts;
	return 0;
}

static int drive(const struct command *c, struct examined *x, struct fb_doc *doc, struct fb_err *e)
{
	const struct drive_ask ask = {.cfg = &c->drive,
		.reach = &c->oob,
		.device = c->check.device,
		.facts = &x->facts,
		.profile = &x->profile,
		.doc = doc,
		.deadline = fb_output_deadline(&c->out)};
	x->driven = true;
	int rc = drive_run(&ask, &x->drive, e);
	drive_describe(&x->drive, json_object_get(fb_doc_json(doc), "fabric"));
	return rc;
}

/* Windows of all ports, where some are asked for. @param own receives those to be freed */
static int make_windows(const struct command *c, const struct fb_sysroot *r, struct examined *x,
	struct fb_doc *doc, struct port_window **own, struct fb_err *e)
{
	if (x->facts.ports == 0) {
		if (c->live.command)
			fb_doc_warn(doc,
				"the command of --during, %s, was not run: there is no RDMA port to "
				"watch",
				c->live.command[0]);
		return 0;
	}
	if (c->drive.hosts.n > 0)
		return drive(c, x, doc, e);
	if (!live_wanted(&c->live))
		return 0;
	*own = calloc((size_t)x->facts.ports, sizeof(**own));
	return *own ? live_fill(&c->live, r, &x->facts, *own, doc, e)
		    : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for windows");
}

static int run_checks(const struct command *c, const struct fb_sysroot *r, struct examined *x,
	struct fb_doc *doc, struct fb_err *e)
{
	struct port_window *windows = NULL;
	int rc = make_windows(c, r, x, doc, &windows, e);
	if (rc == 0)
		rc = gather_all(x, e);
	if (rc == 0 && x->facts.ports == 0)
		check_no_ports(r, c->layer, doc);
	if (rc == 0)
		check_ports(c, x, x->driven ? x->drive.windows : windows, doc);
	if (rc == 0 && x->driven)
		drive_tell(&x->drive, &x->profile, doc);
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
		calloc((size_t)x->n_all + 1, sizeof(const struct node_facts *));
	if (!nodes) {
		fb_doc_warn(doc, "no memory to compare %d nodes", x->n_all + 1);
		return;
	}
	nodes[0] = &x->facts;
	for (int i = 0; i < x->n_all; i++) {
		nodes[i + 1] = x->all[i];
		fb_doc_hide(doc, x->all[i]->host);
	}
	equal_run(nodes, x->n_all + 1, doc);
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
	if (x->strange)
		fb_doc_warn(doc,
			"--live: the recording %s has none of this machine's RDMA ports (name, PCI "
			"address, driver and board have to be the same): nothing was taken from it",
			c->check.sysroot);
	if (!fb_sysroot_is_live(r) && !c->check.live)
		fb_doc_hide(doc, x->facts.host);
}

/* Hosts and ranks that were named have to be accounted for, whoever else is required. */
static int verdict(const struct command *c, const struct examined *x, struct fb_doc *doc)
{
	struct fb_check_cfg j = c->judge;
	const char **ids = calloc(c->judge.require.n + 2, sizeof(*ids));
	size_t n = 0;
	if (!ids)
		return FB_EXIT_UNMEASURED;
	for (; n < c->judge.require.n; n++)
		ids[n] = c->judge.require.v[n];
	if (x->driven)
		ids[n++] = drive_checks[0].id;
	if (c->check.rendezvous && c->rank == 0)
		ids[n++] = ranks_checks[0].id;
	j.require = (struct fb_opt_list){.v = ids, .n = n};
	int status = fb_check_verdict(&j, doc);
	free(ids);
	return status;
}

/* With --rendezvous: ranks meet, and tell what they are. */
static int meet(const struct command *c, struct examined *x, struct fb_doc *doc, struct fb_err *e)
{
	int rc = ranks_meet(&c->oob, &x->ranks, e);
	return rc == 0 ? ranks_facts(&x->ranks, &x->facts, doc, fb_output_deadline(&c->out), e)
		       : rc;
}

static int work(void *arg, struct fb_doc *doc, struct fb_err *e)
{
	const struct command *c = arg;
	const struct fb_sysroot *r = &c->root;
	struct examined x = {0};
	if (read_profile(c, &x.profile, e) < 0 || read_facts(c, r, &x, e) < 0)
		return (int)e->exit;
	int rc = others_read(&c->check.others, x.facts.host, r->dir, &x.others, e);
	if (rc == 0 && c->check.rendezvous)
		rc = meet(c, &x, doc, e);
	if (rc == 0) {
		describe(c, &x, r, doc);
		fb_others_tell(&x.others.passed, doc);
		rc = run_checks(c, r, &x, doc, e);
	}
	if (rc == 0 && c->rank == 0 && (c->check.others.n > 0 || x.n_all > 0))
		compare_nodes(&x, doc);
	if (rc == 0)
		facts_mark_ages(
			json_object_get(fb_doc_json(doc), "checks"), x.taken, x.tree, x.age);
	if (rc == 0 && c->check.rendezvous)
		rc = ranks_findings(&x.ranks, doc, fb_output_deadline(&c->out), e);
	int status = rc < 0        ? (int)e->exit
		     : c->rank > 0 ? FB_EXIT_OK /* rank 0 judges */
				   : verdict(c, &x, doc);
	free_examined(&x);
	return status;
}

static int learn(void *arg, struct fb_err *e)
{
	const struct command *c = arg;
	struct examined x = {0};
	if (read_facts(c, &c->root, &x, e) < 0)
		return (int)e->exit;
	int rc = profile_learn(&x.facts, stdout, e);
	free_examined(&x);
	return rc < 0 ? (int)e->exit : FB_EXIT_OK;
}

/* All ranks but the first are silent: nobody reads what they would write. */
static int take_rank(struct command *c, struct fb_err *e)
{
	struct fb_oob_cfg env = c->oob;
	int rc = fb_oob_from_env(&env, e);
	if (rc < 0)
		return rc;
	c->rank = env.rank > 0 ? env.rank : 0;
	if (c->rank > 0) {
		c->out = (struct fb_output_cfg){
			.quiet = true, .timeout = c->out.timeout, .seed = c->out.seed};
		c->judge.junit = c->judge.markdown = NULL;
	}
	return 0;
}

static int prepare(void *arg, struct fb_err *e)
{
	struct command *c = arg;
	if (c->check.live && !c->check.sysroot) {
		fb_fail_usage(
			e, "--live goes with --sysroot: it fills in what only root could read");
		fb_hint(e, "leave it out to judge this machine alone");
		return -EINVAL;
	}
	if (c->drive.hosts.n > 0 && (c->check.rendezvous || live_wanted(&c->live) ||
					    (c->check.sysroot && !c->check.live)))
		return fb_fail_usage(e,
			"--drive makes load on this machine: neither --watch, --during, "
			"--rendezvous nor a recording alone go with it");
	struct fb_check_def defs[MAX_DEFS];
	collect(c->layer, defs);
	int rc = drive_check_options(&c->drive, e);
	if (rc == 0 && c->check.rendezvous)
		rc = take_rank(c, e);
	if (rc == 0)
		rc = fb_check_prepare(&c->judge, &c->out, defs, e);
	return rc == 0 ? fb_sysroot_open(&c->root, c->check.sysroot, e) : rc;
}

static int run_layer(enum layer layer, int argc, char **argv)
{
	struct command c = {.layer = layer};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	struct fb_check_def listed[MAX_DEFS], all[MAX_DEFS];
	const struct fb_check_kind kind = {.command = &c,
		.judge = &c.judge,
		.out = &c.out,
		.listed = layer == ALL ? all : listed,
		.all = all,
		.prepare = prepare,
		.learning = &c.check.learn,
		.learn = learn,
		.work = work,
		.table = print_table};
	fill_spec(&spec, &c);
	collect(layer, listed);
	collect(ALL, all);
	others_too(all);
	int rc = live_cut(&c.live, &argc, argv, &e);
	int status = rc == 0 ? fb_check_command(&spec, &kind, argc, argv) : fb_cmd_fail(&e);
	fb_sysroot_close(&c.root);
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
	{.name = NULL,
		.summary = "fabricbench check --list names every check; check --explain ID tells "
			   "one in full."},
};

const struct fb_cmd check_cmd = {
	.name = "check",
	.summary = "is the fabric really lossless?",
	.run = all_run, /* check --list, check --explain ID */
	.sub = subs,
};
