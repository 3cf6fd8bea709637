// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench check node`: facts, findings, verdict, and the table for people, in which devices of
 * which the same is said are one line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/check_opts.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "topo/node/node_priv.h"

struct node_cfg {
	char *sysroot, *expect;
	bool learn;
	struct fb_opt_list others;
	uint64_t watch;
};
struct command {
	struct node_cfg cfg;
	struct fb_check_cfg judge;
	struct fb_output_cfg out;
	struct fb_sysroot root;
};

#define O(field) offsetof(struct node_cfg, field)
static const struct fb_opt opts[] = {
	{.name = "sysroot",
		.type = FB_OPT_STRING,
		.offset = O(sysroot),
		.arg = "DIR",
		.help = "judge a recorded tree instead of this machine"},
	{.name = "expect",
		.type = FB_OPT_STRING,
		.offset = O(expect),
		.arg = "FILE",
		.help = "what the machine should have: machine.ini, or the name of a shipped one"},
	{.name = "others",
		.type = FB_OPT_LIST,
		.offset = O(others),
		.arg = "DIR|FILE,...",
		.help = "other nodes to compare with: documents of check node, recorded trees, or "
			"folders of them"},
	{.name = "watch",
		.type = FB_OPT_DURATION,
		.offset = O(watch),
		.arg = "TIME",
		.help = "read counters twice, so far apart: what rises now is judged"},
	{.name = "learn",
		.type = FB_OPT_FLAG,
		.offset = O(learn),
		.help = "print machine.ini of this node, for others to be judged by"},
	{.name = NULL},
};
#undef O

static const char notes[] =
	"States: pass, warn, fail; info: told, not judged; skip: not available, or not visible from\n"
	"here, with the reason; error: an answer that cannot be right. Skip and error are never a\n"
	"pass or a fail.\n"
	"\n"
	"What should be there comes from --expect; else from most nodes of --others that are of this\n"
	"node's kind; else from the node's own symmetry, which only warns. machine.ini has a section\n"
	"[machine] (gpus, nics, nvlinks, gpu-model, nic-rate, gpu-link, nic-link, gpu-nic-path,\n"
	"sockets, numa-per-socket, memory, power-cap, ecc, fabric, place, memlock, driver-nvidia,\n"
	"driver-mlx5, kernel, firmware, fingerprint) and, for single devices, [gpu BDF] and [nic BDF]\n"
	"(slot, name, model, numa, link, rate).\n"
	"\n"
	"A recording (scripts/record) holds what nvidia-smi and the kernel log say as nvidia-smi-q.txt,\n"
	"nvidia-smi-nvlink.txt and dmesg.txt beside sys/ and proc/. Live, GPUs are asked by NVML.\n"
	"\n"
	"Examples:\n"
	"  fabricbench check node --expect hgx-h100\n"
	"  fabricbench check node --learn > machine.ini\n"
	"  fabricbench check node --sysroot recorded/node17 --others recorded\n"
	"  fabricbench check node --explain pci.acs_baremetal\n"
	"\n"
	"Exit status: 0 ACCEPTED; 1 REJECTED: a check failed (with --strict, or warned); 3\n"
	"INCOMPLETE: what --require names could not be judged; 77 nothing could be judged; 2 usage.";

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "check node",
		.usage = "[options]",
		.summary = "Is this node built, placed and set as it must be, and is all of it "
			   "there? Links, access control, NUMA, settings, ports, GPUs, inventory.",
		.notes = notes,
		.sets = {{"Checks", opts, &c->cfg}, {"Verdict", fb_check_opts, &c->judge},
			{"Output", fb_output_opts, &c->out}},
	};
}

#define MAX_DEFS 64
static void collect(struct fb_check_def *defs)
{
	size_t n = 0;
	for (const struct node_check *c = node_checks; c->def.id && n + 1 < MAX_DEFS; c++)
		defs[n++] = c->def;
	defs[n] = (struct fb_check_def){.id = NULL};
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Rows of one check that say the same are one line; of what is well, whatever it says. */
static void print_rows(const json_t *checks, size_t from, size_t to, bool *printed, FILE *out)
{
	for (size_t i = from; i < to; i++) {
		const json_t *c = json_array_get(checks, i);
		const char *state = fb_json_str(c, "state", "?");
		const char *text = fb_json_str(c, "observed", fb_json_str(c, "reason", ""));
		bool bad = strcmp(state, "fail") == 0 || strcmp(state, "warn") == 0;
		size_t more = 0;
		if (printed[i])
			continue;
		for (size_t k = i + 1; k < to; k++) {
			const json_t *o = json_array_get(checks, k);
			const char *other =
				fb_json_str(o, "observed", fb_json_str(o, "reason", ""));
			if (printed[k] || strcmp(fb_json_str(o, "state", "?"), state) != 0 ||
				(strcmp(state, "pass") != 0 && strcmp(text, other) != 0))
				continue;
			printed[k] = true;
			more++;
		}
		fprintf(out, "  %-5s %s", state, fb_json_str(c, "subject", "this node"));
		if (more)
			fprintf(out, " and %zu more", more);
		fprintf(out, ": %s\n", text);
		printed[i] = true;
		if (bad)
			fb_check_print_mend(c, out);
	}
}

static bool is_skip(const json_t *check)
{
	return strcmp(fb_json_str(check, "state", ""), "skip") == 0;
}

/* Checks that found something, each with its rows; then, a line each, why the others did not. */
static void print_table(const json_t *doc, FILE *out)
{
	const json_t *checks = json_object_get(doc, "checks"), *c;
	size_t n = json_array_size(checks), i, to, skips = 0;
	bool *printed = calloc(n + 1, sizeof(*printed));
	for (i = 0; printed && i < n; i = to) {
		c = json_array_get(checks, i);
		const char *id = fb_json_str(c, "id", "?");
		bool all_skip = true;
		for (to = i; to < n; to++) {
			const json_t *o = json_array_get(checks, to);
			if (strcmp(fb_json_str(o, "id", "?"), id) != 0)
				break;
			all_skip = all_skip && is_skip(o);
		}
		if (all_skip)
			continue;
		fprintf(out, "%s: %s\n", id, fb_json_str(c, "title", ""));
		print_rows(checks, i, to, printed, out);
		fputc('\n', out);
	}
	for (i = 0; printed && i < n; i++) {
		size_t more = 0;
		c = json_array_get(checks, i);
		if (printed[i] || !is_skip(c))
			continue;
		for (to = i + 1; to < n; to++) {
			const json_t *o = json_array_get(checks, to);
			if (strcmp(fb_json_str(o, "id", ""), fb_json_str(c, "id", "")) != 0)
				break;
			printed[to] = true;
			more++;
		}
		fprintf(out, "%s  %-22s %s", skips++ ? "" : "not judged\n",
			fb_json_str(c, "id", "?"), fb_json_str(c, "reason", ""));
		if (more)
			fprintf(out, " (%zu)", more + 1);
		fputc('\n', out);
	}
	free(printed);
	fb_check_print_end(doc, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void run_all(struct node *n, struct fb_doc *doc)
{
	for (const struct node_check *k = node_checks; k->def.id; k++) {
		struct node_run run = {.n = n, .def = &k->def, .doc = doc};
		k->run(&run);
		/* Every check is accounted for. */
		if (run.findings == 0)
			node_skip(&run, "not available: nothing here to look at");
	}
}

static void describe(struct node *n, struct fb_doc *doc)
{
	const json_t *s = node_summary(n);
	json_t *copy = s ? json_deep_copy(s) : NULL;
	if (copy) {
		fb_json_set_str(copy, "expect", n->expect.given ? n->expect.path : NULL);
		if (n->expect.source[0])
			fb_json_set_str(copy, "expect_source", n->expect.source);
		json_object_set_new(fb_doc_json(doc), "node", copy);
	}
	if (!n->live)
		fb_doc_hide(doc, n->host);
	size_t kin = 0;
	for (size_t i = 0; i < n->fleet.n; i++) {
		fb_doc_hide(doc, fb_json_str(n->fleet.peer[i], "host", ""));
		kin += node_same_kind(s, n->fleet.peer[i]);
	}
	if (n->fleet.n > 0 && kin == 0)
		fb_doc_warn(doc,
			"none of the %zu other nodes is of this one's kind (%s): they have no vote",
			n->fleet.n, fb_json_str(s, "product", fb_json_str(s, "gpu_pci", "?")));
	fb_others_tell(&n->fleet.passed, doc);
	for (size_t i = 0; i < n->t->n_warnings; i++)
		fb_doc_warn(doc, "%s", n->t->warnings[i]);
}

static int work(void *arg, struct fb_doc *doc, struct fb_err *e)
{
	const struct command *c = arg;
	struct node n;
	int rc = node_open(&n, &c->root, e);
	if (rc < 0)
		return (int)e->exit;
	if (c->cfg.expect)
		rc = node_expect_read(c->cfg.expect, &n.expect, e);
	if (rc == 0)
		rc = node_fleet_read(&c->cfg.others, n.host, c->root.dir, &n.fleet, e);
	if (rc == 0) {
		if (c->cfg.watch)
			node_watch(&n, c->cfg.watch);
		describe(&n, doc);
		run_all(&n, doc);
	}
	node_close(&n);
	return rc == 0 ? fb_check_verdict(&c->judge, doc) : (int)e->exit;
}

static int learn(void *arg, struct fb_err *e)
{
	const struct command *c = arg;
	struct node n;
	int rc = node_open(&n, &c->root, e);
	if (rc == 0) {
		rc = node_learn(&n, stdout, e);
		node_close(&n);
	}
	return rc < 0 ? (int)e->exit : FB_EXIT_OK;
}

static int prepare(void *arg, struct fb_err *e)
{
	struct command *c = arg;
	struct fb_check_def defs[MAX_DEFS];
	if (c->cfg.watch && c->cfg.sysroot) {
		fb_fail_usage(e, "--watch reads counters of a running machine, and --sysroot names "
				 "a recorded one");
		fb_hint(e, "leave one of them out");
		return -EINVAL;
	}
	collect(defs);
	int rc = fb_check_prepare(&c->judge, &c->out, defs, e);
	return rc == 0 ? fb_sysroot_open(&c->root, c->cfg.sysroot, e) : rc;
}

int check_node_run(int argc, char **argv)
{
	struct command c = {.root = {.dir = NULL}};
	struct fb_opt_spec spec;
	struct fb_check_def defs[MAX_DEFS];
	const struct fb_check_kind kind = {.command = &c,
		.judge = &c.judge,
		.out = &c.out,
		.listed = defs,
		.all = defs,
		.prepare = prepare,
		.learning = &c.cfg.learn,
		.learn = learn,
		.work = work,
		.table = print_table};
	fill_spec(&spec, &c);
	collect(defs);
	int status = fb_check_command(&spec, &kind, argc, argv);
	fb_sysroot_close(&c.root);
	return status;
}

const struct fb_opt_spec *check_node_spec(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	scratch = (struct command){.root = {.dir = NULL}};
	fill_spec(&spec, &scratch);
	return &spec;
}
