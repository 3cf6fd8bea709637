// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench coll`: choose a backend and bring the ranks together, as threads of this process or
 * as the processes of a launcher; then the benchmark does the rest. Rank 0 alone writes and prints.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/cmd.h"
#include "bench/core/gate.h"
#include "bench/core/log.h"
#include "bench/core/plugin.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "bench/oob/oob.h"
#include "collectives/coll.h"
#include "collectives/formula.h"
#include "collectives/local.h"

struct command {
	struct coll_cfg coll;
	struct fb_runctl_cfg runctl;
	struct fb_oob_cfg oob;
	struct fb_output_cfg out;
	struct fb_gate_cfg gates;
};

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "coll",
		.usage = "[OP] [options]",
		.summary = "Measure collective operations between ranks: time, algbw and busbw by "
			   "nccl-tests' rules, with a check of the data that was timed.",
		.notes =
			"Ranks are threads of this process (--ranks N), or the processes of mpirun or "
			"srun.\n"
			"  fabricbench coll all_reduce --ranks 4\n"
			"  mpirun -n 2 fabricbench coll all_reduce -b 8 -e 4M\n"
			"  fabricbench coll all --backend nccl --comm local --ranks 8 -b 1M -e 8G\n"
			"-o is the reduction here, as in nccl-tests; the document goes to --output FILE.\n"
			"Sizes: per-rank counts of all_gather, reduce_scatter and alltoall are rounded "
			"down to\n"
			"multiples of 16 bytes; the effective size is printed.\n"
			"Time: the slowest rank's, per operation. isolated: after a barrier made of the "
			"backend's own\n"
			"all_reduce of one integer. pipelined: back to back; on a device 16 are queued "
			"before a wait.\n"
			"Check: after every batch all of a buffer up to 1 MiB, 64 pieces of 4 KiB of a "
			"larger one;\n"
			"after the last batch every byte. Status 4 when a byte is wrong.\n"
			"Gates: --min-bandwidth looks at the busbw of every point, --max-p50 and --max-p99 at "
			"its time.",
		.sets = {{"Collectives", coll_opts, &c->coll},
			{"Run control", fb_runctl_opts, &c->runctl},
			{"Ranks", fb_oob_opts, &c->oob}, {"Output", fb_output_opts, &c->out},
			{"Gates, judged at each size", fb_gate_opts, &c->gates}},
	};
}

static const struct fb_opt_spec *spec_for_plans(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	fill_spec(&spec, &scratch);
	return &spec;
}

/* ---- the backend ------------------------------------------------------------------------------
 */

/* A plug-in's backend when it can run here, else NULL with the reason. */
static const struct coll_ops *plugin_backend(const char *name, bool probe, struct fb_err *why)
{
	char found[256];
	const struct fb_plugin *p = fb_plugin_open(name, why);
	if (!p)
		return NULL;
	if (!p->coll) {
		fb_fail(why, FB_EXIT_SKIP, ENOENT, "the %s plug-in has no collectives", name);
		return NULL;
	}
	if (probe && p->coll->probe(found, sizeof(found), why) != 0)
		return NULL;
	return p->coll;
}

/* nccl, when there are GPUs enough for what was asked; quietly, because auto goes on without. */
static const struct coll_ops *nccl_if_possible(const struct command *c, int ranks)
{
	struct fb_err why = {0};
	const struct coll_ops *ops = plugin_backend("nccl", true, &why);
	if (!ops) {
		fb_debug("no nccl backend: %s", why.msg);
		return NULL;
	}
	int least = ranks > 0 ? ranks : c->coll.allow_one_rank ? 1 : 2;
	if (c->oob.kind == FB_OOB_LOCAL && ops->devices() < least)
		return NULL;
	return ops;
}

static const struct coll_ops *auto_backend(const struct command *c, int ranks, struct fb_err *e)
{
	const struct coll_ops *ops = nccl_if_possible(c, ranks);
	if (ops)
		return ops;
	if (c->oob.kind == FB_OOB_LOCAL)
		return &coll_local_ops;
	if (c->oob.kind == FB_OOB_MPI)
		return plugin_backend("mpi", false, e);
	fb_fail(e, FB_EXIT_SKIP, ENODEV,
		"no backend between these processes: there is no GPU for nccl, and no MPI launcher "
		"started them");
	fb_hint(e, "start them by mpirun -n N or srun --mpi=pmix, or use threads: --comm local "
		   "--ranks N");
	return NULL;
}

static const struct coll_ops *choose_backend(const struct command *c, int ranks, struct fb_err *e)
{
	const struct coll_ops *ops = NULL;
	switch ((enum coll_backend)c->coll.backend) {
	case COLL_BACKEND_AUTO: return auto_backend(c, ranks, e);
	case COLL_BACKEND_LOCAL:
		if (c->oob.kind == FB_OOB_LOCAL)
			return &coll_local_ops;
		fb_fail_usage(e,
			"--backend local is for threads of one process, and these ranks are "
			"processes");
		fb_hint(e,
			"use --backend mpi or nccl between processes, or --comm local --ranks N");
		return NULL;
	case COLL_BACKEND_MPI:
		ops = plugin_backend("mpi", false, e);
		if (ops && c->oob.kind != FB_OOB_MPI) {
			fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
				"--backend mpi, but no MPI launcher started several ranks");
			fb_hint(e, "start it by mpirun -n N fabricbench coll ...");
			ops = NULL;
		}
		break;
	case COLL_BACKEND_NCCL: ops = plugin_backend("nccl", true, e); break;
	}
	/* It was ordered by name: what would be a skip is a failure to measure. */
	if (!ops && e->exit == FB_EXIT_SKIP)
		e->exit = FB_EXIT_UNMEASURED;
	return ops;
}

static int check_support(const struct coll_cfg *cfg, struct fb_err *e)
{
	int first = cfg->op == COLL_ALL_OPS ? 0 : cfg->op;
	int last = cfg->op == COLL_ALL_OPS ? COLL_OP_COUNT - 1 : cfg->op;
	for (int op = first; op <= last; op++) {
		if (cfg->ops->supports((enum coll_op)op, (enum coll_dtype)cfg->dtype,
			    (enum coll_redop)cfg->redop))
			continue;
		fb_fail_usage(e, "the %s backend has no %s of %s", cfg->ops->name,
			coll_op_names[op], coll_dtype_names[cfg->dtype]);
		fb_hint(e, strcmp(cfg->ops->name, "mpi") == 0
				   ? "MPI has no type for half and bfloat16: use --dtype float, or "
				     "--backend local or nccl"
				   : "choose another --dtype or --redop");
		return -EINVAL;
	}
	return 0;
}

/* ---- running ----------------------------------------------------------------------------------
 */

struct job {
	struct command *c;
	struct fb_bench bench;
	struct fb_doc *doc; /* rank 0's process has it */
	bool told;          /* the error has been printed and kept */
};

static int run_rank(struct fb_oob *oob, void *arg, struct fb_err *e)
{
	struct job *j = arg;
	bool owner = fb_oob_rank(oob) == 0;
	bool device = strcmp(j->c->coll.ops->memory, "device") == 0;
	return fb_run_bench(owner ? j->doc : NULL, &j->bench, &j->c->coll,
		owner ? &j->c->runctl : NULL, oob, device ? "hardware" : fb_where("cpu"), e);
}

static int run_threads(struct job *j, struct fb_err *e)
{
	struct coll_local_group *g = coll_local_group_new(j->c->oob.ranks, e);
	if (!g)
		return e->code;
	j->c->coll.group = g;
	int rc = fb_oob_local_run(j->c->oob.ranks, run_rank, j, e);
	coll_local_group_free(g);
	return rc;
}

/* One line for many ranks: under MPI all ranks share one terminal and find the same, so rank 0
 * speaks for all. */
static bool speaks(const struct command *c)
{
	return c->oob.rank <= 0 || c->oob.kind != FB_OOB_MPI || fb_log_enabled(FB_LOG_INFO);
}

static int run_processes(struct job *j, struct fb_err *e)
{
	char prefix[32];
	struct fb_oob *oob = NULL;
	snprintf(prefix, sizeof(prefix), "rank %d", j->c->oob.rank);
	fb_log_set_prefix(prefix);
	int rc = fb_oob_open(&j->c->oob, &oob, e);
	if (rc != 0)
		return rc;
	rc = run_rank(oob, j, e);
	if (rc != 0)
		fb_doc_tell(j->doc, j->doc || speaks(j->c), &j->told, e);
	fb_oob_close(oob);
	return rc;
}

/* Kind of ranks, their number and the backend, each of which may decide the next. */
static int settle(struct command *c, struct fb_err *e)
{
	int asked = c->oob.ranks;
	int rc = fb_oob_from_env(&c->oob, e);
	if (rc != 0)
		return rc;
	c->coll.ops = choose_backend(c, asked, e);
	if (!c->coll.ops)
		return e->code;
	if (c->oob.kind == FB_OOB_LOCAL && asked == 0)
		c->oob.ranks = c->coll.ops->devices ? c->coll.ops->devices() : 2;
	c->coll.seed = c->out.seed;
	rc = coll_check_cfg(&c->coll, c->oob.ranks, e);
	if (rc == 0)
		rc = check_support(&c->coll, e);
	if (rc != 0 || c->oob.kind != FB_OOB_LOCAL)
		return rc;
	if (c->coll.ops->devices && c->coll.ops->devices() < c->oob.ranks) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENODEV, "--ranks %d, but there are %d GPUs",
			c->oob.ranks, c->coll.ops->devices());
		fb_hint(e, "NCCL takes one GPU per rank: use fewer ranks");
	} else if (c->oob.ranks > COLL_LOCAL_MAX_RANKS) {
		rc = fb_fail_usage(e, "--ranks %d: at most %d threads of one process", c->oob.ranks,
			COLL_LOCAL_MAX_RANKS);
	}
	return rc;
}

static int end(struct job *j, const struct fb_err *e, int rc)
{
	int status = rc == 0 ? FB_EXIT_OK : (int)e->exit;
	if (rc != 0)
		fb_doc_tell(j->doc, j->doc || speaks(j->c), &j->told, e);
	if (j->doc) {
		status = fb_gate_judge(j->doc, &j->c->gates, "busbw", status);
		return fb_doc_finish(j->doc, status);
	}
	return status;
}

static int coll_run(int argc, char **argv)
{
	static const char *const sync[] = {"isolated", "pipelined"};
	struct command c = {0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	struct job j = {.c = &c, .bench = coll_bench};
	fill_spec(&spec, &c);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	int status;
	rc = fb_runctl_fit(&c.runctl, &e);
	if (rc == 0)
		rc = settle(&c, &e);
	if (rc != 0) {
		status = speaks(&c) ? fb_cmd_fail(&e) : (int)e.exit;
		goto free_options;
	}
	j.bench.sync = sync[c.coll.mode];
	if (c.oob.rank == 0) {
		j.doc = fb_doc_new("coll", argc, argv, &c.out, &e);
		if (!j.doc) {
			status = fb_cmd_fail(&e);
			goto free_options;
		}
		fb_doc_set_config(j.doc, fb_opt_to_json(&spec, true), fb_opt_to_json(&spec, false));
	}
	rc = c.oob.kind == FB_OOB_LOCAL ? run_threads(&j, &e) : run_processes(&j, &e);
	status = end(&j, &e, rc);
	fb_doc_free(j.doc);
free_options:
	fb_opt_free(&spec);
	return status;
}

const struct fb_cmd coll_cmd = {
	.name = "coll",
	.summary =
		"measure collectives: all_reduce, all_gather, reduce_scatter, broadcast, alltoall",
	.run = coll_run,
	.spec = spec_for_plans,
};
