// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench topo fabric`: one fabric from files or from the live subnet, judged.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/check_opts.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "topo/fabric/fabric.h"
#include "topo/fabric/fabric_cmd.h"

struct fabric_cfg {
	char *discover, *linkinfo, *expect, *ca;
	struct fb_opt_list counters;
	bool live, live_counters;
	int port;
	double blocking;
};
struct command {
	struct fabric_cfg cfg;
	struct fb_check_cfg check;
	struct fb_output_cfg out;
};

#define O(field) offsetof(struct fabric_cfg, field)
static const struct fb_opt opts[] = {
	{.name = "ibnetdiscover",
		.type = FB_OPT_STRING,
		.offset = O(discover),
		.arg = "FILE",
		.help = "output of ibnetdiscover, plain or -p; also an ibsim net"},
	{.name = "iblinkinfo",
		.type = FB_OPT_STRING,
		.offset = O(linkinfo),
		.arg = "FILE",
		.help = "output of iblinkinfo, -l or not: port states and what both ends could do; alone, or "
			"besides --ibnetdiscover"},
	{.name = "counters",
		.type = FB_OPT_LIST,
		.offset = O(counters),
		.arg = "FILE,...",
		.help = "output of ibqueryerrors, or of perfquery, -x or not"},
	{.name = "live",
		.type = FB_OPT_FLAG,
		.offset = O(live),
		.help = "ask the subnet of this host's HCA (libibnetdisc; needs /dev/infiniband/umad*)"},
	{.name = "ca",
		.type = FB_OPT_STRING,
		.offset = O(ca),
		.arg = "DEVICE",
		.help = "with --live: the HCA to ask through, such as mlx5_0"},
	{.name = "port",
		.type = FB_OPT_INT,
		.offset = O(port),
		.arg = "N",
		.help = "with --live: its port; 0 the first that is active",
		.def = "0",
		.min = 0,
		.max = 254},
	{.name = "live-counters",
		.type = FB_OPT_FLAG,
		.offset = O(live_counters),
		.def = "yes",
		.help = "with --live: read every joined port's error counters too"},
	{.name = "expect",
		.type = FB_OPT_STRING,
		.offset = O(expect),
		.arg = "FILE",
		.help = "the cabling as it should be: a list, or ibnetdiscover's or iblinkinfo's output of "
			"a good day"},
	{.name = "blocking",
		.type = FB_OPT_DOUBLE,
		.offset = O(blocking),
		.arg = "RATIO",
		.help = "the most that a leaf may have, down over up: more fails",
		.min = 0,
		.max = 1000},
	{.name = NULL},
};
#undef O

static const char notes_head[] =
	"Told apart: leaves (switches with hosts), spines by their distance from hosts, hosts by GUID;\n"
	"descriptions are only shown. Each HCA is held against its rail: where most hosts that share\n"
	"leaves with it by their other HCAs have the HCA of its name.\n"
	"\n";
static const char notes_tail[] =
	"\n\nExamples:\n"
	"  ibnetdiscover > fabric.txt; ibqueryerrors > errors.txt\n"
	"  fabricbench topo fabric --ibnetdiscover fabric.txt --counters errors.txt\n"
	"  fabricbench topo fabric --live --expect cables.csv\n"
	"  fabricbench topo fabric --explain fab.rail\n"
	"\n"
	"Exit status: 0 nothing failed (warnings may stand); 1 mis-cabled, or another check failed; 2\n"
	"usage, or a file that cannot be read; 3 INCOMPLETE, or the subnet did not answer; 77 --live is\n"
	"not possible here.";

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	static char notes[sizeof(notes_head) + sizeof(notes_tail) + 1024];
	snprintf(notes, sizeof(notes), "%s%s%s", notes_head, fabric_list_help, notes_tail);
	*spec = (struct fb_opt_spec){
		.command = "topo fabric",
		.usage = "--ibnetdiscover FILE | --iblinkinfo FILE | --live [options]",
		.summary =
			"Is the InfiniBand fabric cabled as it must be? Rails, link speeds and widths, "
			"counters, uplinks, names, from saved dumps or the live subnet.",
		.notes = notes,
		.sets = {{"Fabric", opts, &c->cfg}, {"Checks", fb_check_opts, &c->check},
			{"Output", fb_output_opts, &c->out}},
	};
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef int reader(struct fabric *, const char *, size_t, const char *, struct fb_err *);

static int read_file(struct fabric *f, const char *path, reader *parse, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = fb_read_file(path, FABRIC_MAX_BYTES, &text, &len, e);
	if (rc < 0)
		return rc;
	if (len == 0) {
		rc = fb_fail_usage(e, "%s is empty", path);
		fb_hint(e,
			"did the program that wrote it fail? Run it again and look at its messages");
	} else {
		rc = parse(f, text, len, path, e);
	}
	free(text);
	return rc;
}

static int read_fabric(const struct fabric_cfg *c, struct fabric *f, struct fb_err *e)
{
	const char *name = c->discover ? c->discover : c->linkinfo ? c->linkinfo : "the subnet";
	int rc = 0;
	if (c->live)
		rc = fabric_read_live(f, c->ca, c->port, c->live_counters, e);
	if (rc == 0 && c->discover)
		rc = read_file(f, c->discover, fabric_parse_discover, e);
	if (rc == 0 && c->linkinfo)
		rc = read_file(f, c->linkinfo, fabric_parse_linkinfo, e);
	if (rc == 0)
		rc = fabric_finish(f, name, e);
	for (size_t i = 0; rc == 0 && i < c->counters.n; i++)
		rc = read_file(f, c->counters.v[i], fabric_parse_counters, e);
	return rc;
}

static int read_list(
	const char *path, const struct fabric *f, struct fabric_list *l, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = fb_read_file(path, FABRIC_MAX_BYTES, &text, &len, e);
	if (rc == 0)
		rc = fabric_list_parse(f, text, len, path, l, e);
	free(text);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int work(void *arg, struct fb_doc *doc, struct fb_err *e)
{
	const struct command *c = arg;
	struct fabric_list list = {.name = NULL};
	struct fabric_rules rules = {.blocking = c->cfg.blocking};
	struct fabric *f = fabric_new();
	if (!f) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a fabric");
		return FB_EXIT_UNMEASURED;
	}
	int rc = read_fabric(&c->cfg, f, e);
	if (rc == 0)
		f->anonymous = c->out.anonymous;
	if (rc == 0 && c->cfg.expect) {
		rc = read_list(c->cfg.expect, f, &list, e);
		rules.list = &list;
	}
	if (rc == 0 && fabric_judge(f, &rules, doc) < 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the findings");
	if (rc == 0 && f->bare)
		fb_doc_warn(doc, "%u HCAs have no port line: the file may be cut off", f->bare);
	if (rc == 0 && f->unresolved)
		fb_doc_warn(doc,
			"%u ends are told only by a LID that no line has: the file may be cut off; "
			"iblinkinfo -l tells GUIDs",
			f->unresolved);
	if (rc == 0 && f->noise)
		fb_doc_warn(doc,
			"%u lines are warnings of the program that wrote the file (ibwarn, bad status): "
			"what did not answer it is missing here",
			f->noise);
	fabric_list_free(&list);
	fabric_free(f);
	return rc == 0 ? fb_check_verdict(&c->check, doc) : (int)e->exit;
}

static int prepare(void *arg, struct fb_err *e)
{
	struct command *c = arg;
	const struct fabric_cfg *f = &c->cfg;
	if (f->live && (f->discover || f->linkinfo)) {
		fb_fail_usage(e, "--live and a file exclude each other");
		fb_hint(e, "the file can be the --expect of the live fabric");
		return -EINVAL;
	}
	if (!f->live && !f->discover && !f->linkinfo) {
		fb_fail_usage(e, "no fabric is given");
		fb_hint(e, "ibnetdiscover > fabric.txt; fabricbench topo fabric --ibnetdiscover "
			   "fabric.txt; or --live");
		return -EINVAL;
	}
	if (!f->live && (f->ca || f->port))
		return fb_fail_usage(e, "--ca and --port are for --live");
	return fb_check_prepare(&c->check, &c->out, fabric_checks, e);
}

int fabric_run(int argc, char **argv)
{
	struct command c = {0};
	struct fb_opt_spec spec;
	const struct fb_check_kind kind = {.command = &c,
		.judge = &c.check,
		.out = &c.out,
		.listed = fabric_checks,
		.all = fabric_checks,
		.prepare = prepare,
		.work = work,
		.table = fabric_print};
	fill_spec(&spec, &c);
	return fb_check_command(&spec, &kind, argc, argv);
}

const struct fb_opt_spec *fabric_spec(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	scratch = (struct command){0};
	fill_spec(&spec, &scratch);
	return &spec;
}
