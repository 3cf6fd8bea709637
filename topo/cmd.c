// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench topo`: the tree, the matrix, JSON, the picture, hwloc's XML. Reads the topology once
 * and renders what was asked for; every file is written whole or not at all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "topo/fabric/fabric.h"
#include "topo/fingerprint.h"
#include "topo/plan.h"
#include "topo/topo_priv.h"

struct topo_cfg {
	char *sysroot, *hwloc_xml, *nccl_xml, *smi;
	bool json, matrix, all, anonymous, plan, fingerprint;
	char *output, *svg, *xml, *nccl, *rankfile;
	struct fb_opt_list compare, hosts;
};

#define O(field) offsetof(struct topo_cfg, field)
static const struct fb_opt topo_opts[] = {
	{.name = "sysroot",
		.type = FB_OPT_STRING,
		.offset = O(sysroot),
		.arg = "DIR|TAR",
		.help = "examine a recorded tree (sys/, proc/), or a tar file of one, instead of "
			"this machine"},
	{.name = "hwloc-xml",
		.type = FB_OPT_STRING,
		.offset = O(hwloc_xml),
		.arg = "FILE",
		.help = "examine the machine of an hwloc XML file (lstopo FILE.xml), version 1 or 2"},
	{.name = "nccl-xml",
		.type = FB_OPT_STRING,
		.offset = O(nccl_xml),
		.arg = "FILE",
		.help = "examine the machine of an NCCL or RCCL topology file (NCCL_TOPO_FILE, "
			"NCCL_TOPO_DUMP_FILE)"},
	{.name = "smi",
		.type = FB_OPT_STRING,
		.offset = O(smi),
		.arg = "FILE",
		.help = "examine the machine of what nvidia-smi topo -m or -mp printed"},
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = O(json),
		.help = "the topology as one JSON object, schema " TOPO_SCHEMA},
	{.name = "matrix",
		.type = FB_OPT_FLAG,
		.offset = O(matrix),
		.help = "only the device matrix"},
	{.name = "plan",
		.type = FB_OPT_FLAG,
		.offset = O(plan),
		.help = "each GPU's NICs, rail, cores and NUMA node, and lines to paste"},
	{.name = "rankfile",
		.type = FB_OPT_STRING,
		.offset = O(rankfile),
		.arg = "FILE",
		.help = "also write the plan as Open MPI's rankfile"},
	{.name = "fingerprint",
		.type = FB_OPT_FLAG,
		.offset = O(fingerprint),
		.help = "one line that is the same for nodes of one shape, whatever their bus numbers"},
	{.name = "compare",
		.type = FB_OPT_LIST,
		.offset = O(compare),
		.arg = "NODE",
		.positional = true,
		.help = "name what is missing, moved or different among nodes of one kind: "
			"documents of --json, recorded trees, XML files, or folders of them"},
	{.name = "hosts",
		.type = FB_OPT_LIST,
		.offset = O(hosts),
		.arg = "NAME,...",
		.help = "nodes like this one in the rankfile; without it localhost"},
	{.letter = 'a',
		.name = "all",
		.type = FB_OPT_FLAG,
		.offset = O(all),
		.help = "every PCI function in the tree, not only those that matter"},
	{.letter = 'o',
		.name = "output",
		.type = FB_OPT_STRING,
		.offset = O(output),
		.arg = "FILE",
		.help = "write there instead of to standard output"},
	{.name = "svg",
		.type = FB_OPT_STRING,
		.offset = O(svg),
		.arg = "FILE",
		.help = "also write a picture of the node"},
	{.name = "hwloc-xml-out",
		.type = FB_OPT_STRING,
		.offset = O(xml),
		.arg = "FILE",
		.help = "also write hwloc's XML, for lstopo and other tools"},
	{.name = "nccl-xml-out",
		.type = FB_OPT_STRING,
		.offset = O(nccl),
		.arg = "FILE",
		.help = "also write NCCL's topology XML, for NCCL_TOPO_FILE"},
	{.name = "anonymous",
		.type = FB_OPT_FLAG,
		.offset = O(anonymous),
		.help = "no host name, address, GUID or serial number"},
	{.name = NULL},
};
#undef O

static struct fb_opt_spec spec_over(struct topo_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "topo",
		.usage = "[options] [--compare NODE NODE...]",
		.summary =
			"Packages, NUMA nodes, PCIe devices, NICs, RDMA devices and GPUs of this node, "
			"and how near they are to each other.",
		.notes =
			"Path types are those of nvidia-smi topo -m, told from the PCI tree and the NUMA\n"
			"nodes: PIX, PXB, PHB, NODE, SYS; \"?\" where the tree does not tell.\n"
			"In JSON, rate_bps is bits per second, bandwidth bytes per second, speed GT/s.\n"
			"\n"
			"Examples:\n"
			"  fabricbench topo --svg node.svg\n"
			"  fabricbench topo --sysroot recorded/node17 --matrix\n"
			"  fabricbench topo --plan --rankfile node.rank\n"
			"  fabricbench topo --compare node*.json\n",
		.sets = {{"Topology", topo_opts, cfg}, {NULL, NULL, NULL}},
	};
}

static const struct fb_opt_spec *topo_spec(void)
{
	static struct topo_cfg scratch;
	static struct fb_opt_spec spec;

	spec = spec_over(&scratch);
	return &spec;
}

/** What --plan, --matrix and --fingerprint print, in that order; without any of them tree and
 * matrix.
 * @return 0 or -ENOMEM */
static int render_text(const struct topo *t, const struct topo_cfg *cfg, struct fb_strbuf *out)
{
	struct topo_plan *plan = NULL;

	if (cfg->plan) {
		if (topo_plan_make(t, &plan, NULL) != 0)
			return -ENOMEM;
		topo_plan_text(t, plan, out);
		topo_plan_free(plan);
	}
	if (!cfg->plan && !cfg->matrix && !cfg->fingerprint) {
		topo_tree(t, cfg->all, out);
		fb_strbuf_add(out, "\n");
		topo_matrix(t, out);
	}
	if (cfg->matrix) {
		if (cfg->plan)
			fb_strbuf_add(out, "\n");
		topo_matrix(t, out);
	}
	if (cfg->fingerprint) {
		char print[TOPO_FINGERPRINT];
		int rc = topo_fingerprint(t, print);

		if (rc)
			return rc;
		fb_strbuf_printf(out, "%s\n", print);
	}
	return 0;
}

static int render(const struct topo *t, const struct topo_cfg *cfg, struct fb_strbuf *out)
{
	if (cfg->json) {
		json_t *o = topo_to_json(t, cfg->anonymous);
		char *text = o ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;

		json_decref(o);
		if (!text)
			return -ENOMEM;
		fb_strbuf_add(out, text);
		fb_strbuf_add(out, "\n");
		free(text);
	} else if (render_text(t, cfg, out) != 0) {
		return -ENOMEM;
	}
	return out->failed ? -ENOMEM : 0;
}

/** Write what is in the buffer to a file; `rc` of its making comes first. */
static int save(const char *path, struct fb_strbuf *b, int rc, struct fb_err *e)
{
	if (!rc && b->failed)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	if (!rc)
		rc = fb_write_file_atomic(path, b->s ? b->s : "", b->len, e);
	fb_strbuf_free(b);
	return rc;
}

/** The main output, to --output or to standard output. Frees the buffer. */
static int put(const struct topo_cfg *cfg, struct fb_strbuf *b, struct fb_err *e)
{
	int rc = 0;

	if (cfg->output)
		return save(cfg->output, b, 0, e);
	if (b->s && (fwrite(b->s, 1, b->len, stdout) != b->len || fflush(stdout) != 0))
		rc = fb_fail(e, FB_EXIT_UNMEASURED, errno ? errno : EIO,
			"cannot write to standard output: %s", strerror(errno));
	fb_strbuf_free(b);
	return rc;
}

static int write_outputs(struct topo *t, const struct topo_cfg *cfg, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	int rc = render(t, cfg, &b);

	if (rc) {
		fb_strbuf_free(&b);
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for the output");
	}
	rc = put(cfg, &b, e);
	if (!rc && cfg->svg) {
		topo_svg(t, &b);
		rc = save(cfg->svg, &b, 0, e);
	}
	if (!rc && cfg->xml)
		rc = save(cfg->xml, &b, topo_hwloc_xml(t, cfg->anonymous, &b, e), e);
	if (!rc && cfg->nccl)
		rc = save(cfg->nccl, &b, topo_nccl_xml(t, cfg->anonymous, &b, e), e);
	if (!rc && cfg->rankfile) {
		struct topo_plan *plan;

		rc = topo_plan_make(t, &plan, e);
		if (rc)
			return rc;
		rc = topo_plan_rankfile(plan, &cfg->hosts, &b, e);
		rc = save(cfg->rankfile, &b, rc, e);
		topo_plan_free(plan);
	}
	return rc;
}

static int compare(const struct topo_cfg *cfg, int *status, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	int rc = topo_compare(&cfg->compare, cfg->json, &b, status, e);

	return rc ? rc : put(cfg, &b, e);
}

/* Where a topology may come from, beside this machine. */
static int load_live(const char *dir, struct topo **t, struct fb_err *e)
{
	struct fb_sysroot root = {0};
	int rc = fb_sysroot_open(&root, dir, e);

	if (!rc)
		rc = topo_load(&root, t, e);
	fb_sysroot_close(&root);
	return rc;
}

static int load(const struct topo_cfg *cfg, struct topo **t, struct fb_err *e)
{
	const struct {
		const char *option, *path;
		int (*load)(const char *, struct topo **, struct fb_err *);
	} from[] = {
		{"--sysroot", cfg->sysroot, load_live},
		{"--hwloc-xml", cfg->hwloc_xml, topo_load_hwloc_xml},
		{"--nccl-xml", cfg->nccl_xml, topo_load_nccl_xml},
		{"--smi", cfg->smi, topo_load_smi},
	};
	size_t n = sizeof(from) / sizeof(*from), chosen = n;

	for (size_t i = 0; i < n; i++) {
		if (!from[i].path)
			continue;
		if (chosen < n) {
			fb_fail_usage(e, "%s and %s exclude each other", from[chosen].option,
				from[i].option);
			fb_hint(e, "one call examines one machine from one source");
			return e->code;
		}
		chosen = i;
	}
	return chosen < n ? from[chosen].load(from[chosen].path, t, e) : load_live(NULL, t, e);
}

static int topo_main(int argc, char **argv)
{
	struct topo_cfg cfg = {0};
	struct fb_opt_spec spec = spec_over(&cfg);
	struct topo *t = NULL;
	struct fb_err e = {0};
	int status = FB_EXIT_OK, rc = fb_opt_parse(&spec, argc, argv, &e);

	if (!rc && cfg.json && cfg.matrix) {
		rc = fb_fail_usage(&e, "--json and --matrix exclude each other");
		fb_hint(&e, "the JSON object holds the matrix in paths[]");
	}
	if (!rc && cfg.compare.n &&
		(cfg.sysroot || cfg.hwloc_xml || cfg.nccl_xml || cfg.smi || cfg.svg || cfg.xml ||
			cfg.nccl || cfg.rankfile || cfg.matrix || cfg.plan)) {
		rc = fb_fail_usage(&e, "--compare stands alone, with --json and --output at most");
		fb_hint(&e, "name recorded trees as its arguments");
	}
	if (rc)
		goto free_options;
	if (cfg.compare.n) {
		rc = compare(&cfg, &status, &e);
		goto free_options;
	}
	rc = load(&cfg, &t, &e);
	if (!rc)
		rc = write_outputs(t, &cfg, &e);
	topo_free(t);
free_options:
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : status;
}

static const struct fb_cmd topo_sub[] = {
	{.name = "fabric",
		.summary =
			"the InfiniBand fabric: rails, links, counters, cabling, from dumps or live",
		.run = fabric_run,
		.spec = fabric_spec},
	{.name = NULL},
};

const struct fb_cmd topo_cmd = {
	.name = "topo",
	.summary = "this node's topology and how near its devices are to each other",
	.run = topo_main,
	.spec = topo_spec,
	.sub = topo_sub,
};
