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
#include "topo/topo_priv.h"

struct topo_cfg {
	char *sysroot;
	bool json, matrix, all, anonymous;
	char *output, *svg, *xml;
};

#define O(field) offsetof(struct topo_cfg, field)
static const struct fb_opt topo_opts[] = {
	{.name = "sysroot",
		.type = FB_OPT_STRING,
		.offset = O(sysroot),
		.arg = "DIR",
		.help = "examine a recorded tree (sys/, proc/) instead of this machine"},
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = O(json),
		.help = "the topology as one JSON object, schema " TOPO_SCHEMA},
	{.name = "matrix",
		.type = FB_OPT_FLAG,
		.offset = O(matrix),
		.help = "only the device matrix"},
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
		.usage = "[options]",
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
			"  fabricbench topo --sysroot recorded/node17 --matrix\n",
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
	} else {
		if (!cfg->matrix) {
			topo_tree(t, cfg->all, out);
			fb_strbuf_add(out, "\n");
		}
		topo_matrix(t, out);
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

static int write_outputs(struct topo *t, const struct topo_cfg *cfg, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	int rc = render(t, cfg, &b);

	if (rc) {
		fb_strbuf_free(&b);
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for the output");
	}
	if (cfg->output) {
		rc = save(cfg->output, &b, 0, e);
	} else {
		if (b.s && (fwrite(b.s, 1, b.len, stdout) != b.len || fflush(stdout) != 0))
			rc = fb_fail(e, FB_EXIT_UNMEASURED, errno ? errno : EIO,
				"cannot write to standard output: %s", strerror(errno));
		fb_strbuf_free(&b);
	}
	if (!rc && cfg->svg) {
		topo_svg(t, &b);
		rc = save(cfg->svg, &b, 0, e);
	}
	if (!rc && cfg->xml)
		rc = save(cfg->xml, &b, topo_hwloc_xml(t, cfg->anonymous, &b, e), e);
	return rc;
}

static int topo_main(int argc, char **argv)
{
	struct topo_cfg cfg = {0};
	struct fb_opt_spec spec = spec_over(&cfg);
	struct fb_sysroot root = {0};
	struct topo *t = NULL;
	struct fb_err e = {0};
	int rc = fb_opt_parse(&spec, argc, argv, &e);

	if (!rc && cfg.json && cfg.matrix) {
		rc = fb_fail_usage(&e, "--json and --matrix exclude each other");
		fb_hint(&e, "the JSON object holds the matrix in paths[]");
	}
	if (rc)
		goto free_options;
	rc = fb_sysroot_open(&root, cfg.sysroot, &e);
	if (!rc)
		rc = topo_load(&root, &t, &e);
	if (!rc)
		rc = write_outputs(t, &cfg, &e);
	topo_free(t);
	fb_sysroot_close(&root);
free_options:
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

const struct fb_cmd topo_cmd = {
	.name = "topo",
	.summary = "this node's topology and how near its devices are to each other",
	.run = topo_main,
	.spec = topo_spec,
};
