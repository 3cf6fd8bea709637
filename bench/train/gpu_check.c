// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench gpu-check`: verify and measure the GPUs of this machine in one run, into one
 * document: memory, matrix products, copy and product rates, every NCCL operation.
 *
 * NCCL runs in a child (`fabricbench coll --backend nccl`): a library that hangs or crashes there
 * leaves this document whole, and the child's results become part of it.
 */
#include "bench/train/gpu_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/plugin.h"
#include "bench/core/proc.h"
#include "bench/core/sysinfo.h"
#include "bench/mem/mem.h"
#include "bench/oob/oob.h"
#include "bench/train/gpu_priv.h"

#define CHILD_NS      150000000000u
#define CHILD_CAPTURE (64 << 20)

static const char *const on_words[] = {"gpu", "cpu", NULL};

#define OFF(field) .offset = offsetof(struct gpu_cfg, field)
static const struct fb_opt opts[] = {
	{.name = "check-size",
		.type = FB_OPT_SIZE,
		OFF(check_bytes),
		.arg = "BYTES",
		.def = "1G",
		.min = 4096,
		.help = "memory of each GPU that a pattern is sent through"},
	{.name = "copy-size",
		.type = FB_OPT_SIZE,
		OFF(copy_bytes),
		.arg = "BYTES",
		.def = "1G",
		.min = 4096,
		.help = "size of the timed copy"},
	{.name = "gemm-size",
		.type = FB_OPT_U64,
		OFF(gemm_size),
		.arg = "N",
		.def = "8192",
		.min = 16,
		.max = 65536,
		.help = "rows and columns of the timed matrix product"},
	{.name = "nccl",
		.type = FB_OPT_FLAG,
		OFF(nccl),
		.def = "true",
		.help = "verify and measure NCCL's operations too"},
	{.name = "nccl-max",
		.type = FB_OPT_SIZE,
		OFF(nccl_max),
		.arg = "BYTES",
		.def = "1G",
		.min = 1 << 20,
		.help = "largest collective"},
	{.name = "on",
		.type = FB_OPT_ENUM,
		OFF(on),
		.arg = "gpu|cpu",
		.def = "gpu",
		.names = on_words,
		.hidden = true,
		.help = "cpu: go the same way over host memory and oneDNN, to test the command"},
	{.name = NULL},
};

struct command {
	struct gpu_cfg gpu;
	struct fb_runctl_cfg runctl;
	struct fb_output_cfg out;
};

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "gpu-check",
		.usage = "[options]",
		.summary =
			"Verify and measure this machine's GPUs: memory, matrix products against the "
			"CPU, copy and product rates beside the data sheet, every NCCL operation.",
		.notes =
			"Status 77 with the reason where there is no GPU; 4 when data are wrong; 1 when a "
			"check fails.",
		.sets = {{"GPUs", opts, &c->gpu}, {"Run control", fb_runctl_opts, &c->runctl},
			{"Output", fb_output_opts, &c->out}},
	};
}

static const struct fb_opt_spec *spec_for_plans(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	fill_spec(&spec, &scratch);
	return &spec;
}

/* The memory and the library to work with; what is missing of the library is told per check. */
static int find_place(struct gpu_cfg *cfg, struct fb_err *e)
{
	char found[256];
	const struct fb_plugin *p = fb_plugin_open(cfg->on == 1 ? "dnnl" : "cuda", e);
	if (!p)
		return e->code;
	cfg->mem = cfg->on == 1 ? &fb_mem_host : p->mem;
	int rc = cfg->mem->probe(found, sizeof(found), e);
	if (rc != 0)
		return rc;
	cfg->devices = cfg->mem->count();
	if (p->gemm->probe(found, sizeof(found), &cfg->gemm_why) == 0)
		cfg->gemm = p->gemm;
	return 0;
}

static int run_benches(struct command *c, struct fb_doc *doc, struct fb_err *e)
{
	struct fb_oob_cfg oob_cfg = {.kind = FB_OOB_LOCAL, .ranks = 1, .rank = -1};
	struct fb_oob *oob = NULL;
	const char *where = c->gpu.on == 1 ? fb_where("cpu") : "hardware";
	int rc = fb_oob_open(&oob_cfg, &oob, e);
	if (rc != 0)
		return rc;
	rc = fb_run_bench(doc, &gpu_copy_bench, &c->gpu, &c->runctl, oob, where, e);
	if (rc == 0 && c->gpu.gemm)
		rc = fb_run_bench(doc, &gpu_gemm_bench, &c->gpu, &c->runctl, oob, where, e);
	fb_oob_close(oob);
	return rc;
}

/* ---- NCCL in a child --------------------------------------------------------------------------
 */

static void take(struct fb_doc *doc, const json_t *child, const char *key,
	void (*add)(struct fb_doc *d, json_t *j))
{
	size_t i;
	json_t *item;
	json_array_foreach (json_object_get(child, key), i, item) {
		add(doc, json_incref(item));
	}
}

/* The child's document into ours; what it says of its failure into *e. */
static void take_child(struct fb_doc *doc, const struct fb_proc_result *r, struct fb_err *e)
{
	struct fb_err bad = {0};
	json_t *child = fb_doc_parse(r->out, r->out_len, "coll's document", &bad);
	const json_t *first = child ? json_array_get(json_object_get(child, "errors"), 0) : NULL;
	if (child)
		take(doc, child, "results", fb_doc_add_result);
	if (r->status != 0) {
		size_t n = strcspn(r->err ? r->err : "", "\n");
		fb_fail(e, (enum fb_exit)r->status,
			r->status == FB_EXIT_WRONG_DATA ? EBADMSG
			: r->status == FB_EXIT_SKIP     ? ENODEV
							: EIO,
			"status %d: %s%.*s", r->status,
			first ? fb_json_str(first, "message", "") : "", first ? 0 : (int)n,
			r->err ? r->err : "");
		if (first)
			fb_hint(e, "%s", fb_json_str(first, "remedy", ""));
	} else if (!child) {
		*e = bad;
	}
	json_decref(child);
}

static bool run_nccl(const struct gpu_cfg *cfg, struct fb_doc *doc, const char *dtype, uint64_t min,
	uint64_t max)
{
	char self[4096], ranks[16], low[32], high[32], id[64];
	struct fb_err e = {0};
	struct fb_proc_result r = {0};
	snprintf(ranks, sizeof(ranks), "%d", cfg->devices);
	snprintf(low, sizeof(low), "%llu", (unsigned long long)min);
	snprintf(high, sizeof(high), "%llu", (unsigned long long)max);
	snprintf(id, sizeof(id), "%s.%s", cfg->on == 1 ? "cpu.local" : "gpu.nccl", dtype);
	const char *const argv[] = {self, "coll", "all", "--backend",
		cfg->on == 1 ? "local" : "nccl", "--comm", "local", "--ranks", ranks,
		"--allow-one-rank", "-d", dtype, "-b", low, "-e", high, "-f", "8", "-n", "20", "-w",
		"5", "--json", NULL};
	const struct fb_proc_opts o = {
		.capture = CHILD_CAPTURE, .deadline_ns = fb_deadline_in(CHILD_NS)};
	fb_progress("NCCL, %s", dtype);
	int rc = fb_self_path(self, sizeof(self));
	if (rc != 0)
		fb_fail(&e, FB_EXIT_UNMEASURED, rc, "the program's own path is not known");
	else
		rc = fb_proc_run(argv, &o, &r, &e);
	if (rc == 0)
		take_child(doc, &r, &e);
	fb_proc_result_free(&r);
	fb_progress_end();
	return gpu_add_check(doc, id, "every operation right on every device",
		"every byte as computed", "inputs whose reduction is exact in any order",
		"fabricbench coll all --backend nccl", &e);
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int work(struct command *c, struct fb_doc *doc)
{
	struct fb_err e = {0};
	unsigned failed = gpu_run_checks(&c->gpu, doc);
	int status = FB_EXIT_OK, rc = run_benches(c, doc, &e);
	if (rc != 0) {
		fb_doc_error(doc, &e);
		status = fb_cmd_fail(&e);
	}
	if (c->gpu.nccl && rc != -EINTR) {
		failed += run_nccl(&c->gpu, doc, "float", 8, c->gpu.nccl_max);
		failed += run_nccl(&c->gpu, doc, "bfloat16", 1 << 16, 1 << 22);
	}
	if (failed > 0)
		fb_error("%u check%s failed: see the document's checks", failed,
			failed == 1 ? "" : "s");
	/* Wrong data weigh more than a check that could not be made. */
	size_t i;
	json_t *check;
	json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), i, check) {
		if (strcmp(fb_json_str(check, "state", ""), "fail") == 0)
			status = FB_EXIT_WRONG_DATA;
	}
	return status == FB_EXIT_OK && failed > 0 ? FB_EXIT_FAILED : status;
}

static int gpu_check_run(int argc, char **argv)
{
	struct command c = {0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	fill_spec(&spec, &c);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	int status;
	struct fb_doc *doc = NULL;
	if (find_place(&c.gpu, &e) != 0) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	doc = fb_doc_new("gpu-check", argc, argv, &c.out, &e);
	if (!doc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	fb_doc_set_config(doc, fb_opt_to_json(&spec, true), fb_opt_to_json(&spec, false));
	status = fb_doc_finish(doc, work(&c, doc));
	fb_doc_free(doc);
free_options:
	fb_opt_free(&spec);
	return status;
}

const struct fb_cmd gpu_check_cmd = {
	.name = "gpu-check",
	.summary = "verify and measure this machine's GPUs: memory, matrix products, NCCL",
	.run = gpu_check_run,
	.spec = spec_for_plans,
};
