// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench train`: settle the options, bring the ranks together as threads of this process or
 * as the processes of an MPI launcher, and let run control drive the steps. Rank 0 alone writes and
 * prints.
 */
#include "bench/train/train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/plugin.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"
#include "bench/train/train_plan.h"

#define MAX_THREADS 64
#define PLAN_RANKS  64 /* eight nodes of eight */

struct command {
	struct train_opts train;
	struct fb_oob_cfg oob;
	struct fb_output_cfg out;
};

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "train",
		.usage = "[options]",
		.summary =
			"Train a transformer for some steps over sharded ranks, and report its MFU "
			"and where the rest of the time went.",
		.notes =
			"Ranks are threads of this process (--comm local --ranks N), or the processes "
			"of mpirun or\n"
			"srun.\n"
			"  fabricbench train --model tiny --strategy fsdp --comm local --ranks 2\n"
			"  fabricbench train --plan --model llama3-70b --ranks 64\n"
			"  mpirun -n 4 fabricbench train --model gpt2-124m --strategy hybrid:2 --json\n"
			"  fabricbench train --ranks 2 --link 5us,1GB/s --inject all_gather:+2ms\n"
			"The batch: ranks * --micro-batch * --accumulate = --global-batch sequences a "
			"step; give any\n"
			"of the last three.\n"
			"Without --ranks and without a launcher: two threads.\n"
			"--plan: 64 ranks, 1 sequence of 8192 tokens at most, and bf16, where the "
			"options say nothing.\n"
			"MFU: model FLOPs per second over the dense data-sheet peak, PaLM's convention "
			"(6N + 12*L*a*d*s\n"
			"per token) as the headline; also 6n, causal, and against the rate of the "
			"step's own products\n"
			"timed in turn after the last step. More than 100 % of a data sheet is "
			"refused.\n"
			"bf16 stands where older recipes say FP16: it has fp32's range, so no loss "
			"scaling is needed.",
		.sets = {{"Training", train_opts, &c->train}, {"Ranks", fb_oob_opts, &c->oob},
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

/* ---- running --------------------------------------------------------------------------------- */

struct run {
	struct command *c;
	struct train_job job;
	struct fb_runctl_cfg rc;
	struct fb_doc *doc; /* rank 0's process has it */
	bool told;          /* the error has been printed and kept */
};

static int run_rank(struct fb_oob *oob, void *arg, struct fb_err *e)
{
	struct run *r = arg;
	bool owner = fb_oob_rank(oob) == 0;
	return fb_run_bench(owner ? r->doc : NULL, &train_bench, &r->job, owner ? &r->rc : NULL,
		oob, fb_where("cpu"), e);
}

static int run_threads(struct run *r, struct fb_err *e)
{
	r->job.p2p = &p2p_local;
	r->job.world = p2p_world_new(r->job.step.ranks, &r->job.link, e);
	if (!r->job.world)
		return e->code;
	int rc = fb_oob_local_run(r->job.step.ranks, run_rank, r, e);
	p2p_world_free(r->job.world);
	return rc;
}

static bool speaks(const struct command *c)
{
	return c->oob.rank <= 0 || c->oob.kind != FB_OOB_MPI || fb_log_enabled(FB_LOG_INFO);
}

static int run_processes(struct run *r, struct fb_err *e)
{
	char prefix[32];
	struct fb_oob *oob = NULL;
	snprintf(prefix, sizeof(prefix), "rank %d", r->c->oob.rank);
	fb_log_set_prefix(prefix);
	int rc = fb_oob_open(&r->c->oob, &oob, e);
	if (rc != 0)
		return rc;
	rc = run_rank(oob, r, e);
	if (rc != 0)
		fb_doc_tell(r->doc, r->doc || speaks(r->c), &r->told, e);
	fb_oob_close(oob);
	return rc;
}

/* Messages between processes: the plug-in's. */
static int open_messages(struct run *r, struct fb_err *e)
{
	if (r->job.local)
		return 0;
	if (r->c->oob.kind != FB_OOB_MPI) {
		int rc = fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
			"there are no messages between these processes: no MPI launcher started "
			"several ranks");
		fb_hint(e, "start them by mpirun -n N or srun --mpi=pmix, or use threads: --comm "
			   "local --ranks N");
		return rc;
	}
	const struct fb_plugin *p = fb_plugin_open("mpi", e);
	if (p && !p->p2p)
		fb_fail(e, FB_EXIT_SKIP, ENOENT,
			"the mpi plug-in has no messages for training; rebuild it: make mpi");
	if (!p || !p->p2p) {
		e->exit = FB_EXIT_UNMEASURED; /* it was ordered by name */
		return e->code;
	}
	r->job.p2p = p->p2p;
	return 0;
}

/* The CPU's products: oneDNN's, or plain loops with a warning, for they are far slower. */
static void open_products(struct run *r)
{
	struct fb_err why = {0};
	char found[256];
	if (r->job.step.work == TR_F64)
		return;
	const struct fb_plugin *p = fb_plugin_open("dnnl", &why);
	if (p && p->gemm && p->gemm->probe(found, sizeof(found), &why) == 0)
		r->job.gemm = p->gemm;
	else if (r->doc)
		fb_doc_warn(
			r->doc, "products are plain C loops, slower than oneDNN's: %s", why.msg);
}

/* A model that cannot fit must not bring the machine down to find out. */
static int check_memory(const struct train_job *j, struct fb_err *e)
{
	struct step_memory m;
	char need[32], have[32];
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
	step_memory(&j->step, &m);
	double host = j->offload ? 0 : m.host;
	double all = (m.total + host) * (j->local ? j->step.ranks : 1);
	if (pages <= 0 || page <= 0 || all <= (double)pages * (double)page)
		return 0;
	fb_fail_usage(e, "%s by %s on %d ranks needs %s here, and this machine has %s",
		j->step.model.name, j->step.strategy.name, j->step.ranks,
		fb_fmt_size((uint64_t)all, need, sizeof(need)),
		fb_fmt_size((uint64_t)((double)pages * (double)page), have, sizeof(have)));
	fb_hint(e, "see what fits with --plan; use a smaller --model, --micro-batch or --seq, or "
		   "--recompute full");
	return -EINVAL;
}

static int settle(struct run *r, struct fb_err *e)
{
	struct command *c = r->c;
	int ranks = c->oob.ranks;
	if (c->train.plan)
		return train_job_settle(
			&r->job, &c->train, ranks > 0 ? ranks : PLAN_RANKS, true, e);
	int rc = fb_oob_from_env(&c->oob, e);
	if (rc != 0)
		return rc;
	bool local = c->oob.kind == FB_OOB_LOCAL;
	if (local && ranks == 0)
		c->oob.ranks = 2;
	ranks = c->oob.ranks;
	rc = train_job_settle(&r->job, &c->train, ranks, local, e);
	if (rc != 0)
		return rc;
	r->job.seed = c->out.seed;
	r->job.deadline_ns = c->out.timeout;
	if (local && ranks > MAX_THREADS) {
		rc = fb_fail_usage(
			e, "--ranks %d: at most %d threads of one process", ranks, MAX_THREADS);
		fb_hint(e, "more are processes: mpirun -n %d, or srun; --plan takes any number",
			ranks);
	} else if (!local && r->job.fail_rank >= 0)
		rc = fb_fail_usage(e, "--fail-rank is for threads: end a process by its pid");
	if (rc == 0)
		rc = check_memory(&r->job, e);
	if (rc == 0)
		rc = open_messages(r, e);
	/* One batch of steps at a time, all of the same length: there is nothing to adapt. */
	r->rc = (struct fb_runctl_cfg){.iters = (uint64_t)(r->job.steps - r->job.warmup),
		.warmup = (uint64_t)r->job.warmup,
		.ci_width = 0.02,
		.min_iters = 1,
		.max_iters = 1u << 30,
		.max_time_ns = c->out.timeout,
		.point_timeout_ns = c->out.timeout};
	return rc;
}

/* The options that a rank may not have otherwise than rank 0: those that shape the run. */
static json_t *shared_options(const struct command *c, struct fb_err *e)
{
	struct train_opts copy = c->train;
	struct fb_opt_spec one = {.command = "train", .sets = {{"Training", train_opts, &copy}}};
	json_t *j = fb_opt_to_json(&one, false);
	if (!j) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the options");
		return NULL;
	}
	fb_json_set_int(j, "seed", (int64_t)c->out.seed);
	return j;
}

/* A step that cannot be, for its MFU, is kept with what makes it invalid: nothing was measured. */
static int refused(const struct run *r, struct fb_err *e)
{
	const json_t *doc = r->doc ? fb_doc_json(r->doc) : NULL;
	const json_t *first = json_array_get(json_object_get(doc, "results"), 0), *why;
	const json_t *reasons = json_object_get(json_object_get(first, "validity"), "reasons");
	size_t i;
	json_array_foreach (reasons, i, why) {
		if (strncmp(json_string_value(why), "MFU is ", 7) != 0)
			continue;
		fb_fail(e, FB_EXIT_UNMEASURED, ERANGE, "%s", json_string_value(why));
		fb_hint(e, "--peak takes the dense rate of one rank's device in the type of "
			   "--dtype");
		return -ERANGE;
	}
	return 0;
}

static int end(struct run *r, struct fb_err *e, int rc)
{
	if (rc == 0)
		rc = refused(r, e);
	int status = rc == 0 ? FB_EXIT_OK : (int)e->exit;
	if (rc != 0)
		fb_doc_tell(r->doc, r->doc || speaks(r->c), &r->told, e);
	return r->doc ? fb_doc_finish(r->doc, status) : status;
}

static int start(struct run *r, const struct fb_opt_spec *spec, int argc, char **argv)
{
	struct command *c = r->c;
	struct fb_err e = {0};
	if (c->oob.rank == 0 || r->job.local) {
		r->doc = fb_doc_new("train", argc, argv, &c->out, &e);
		if (!r->doc)
			return fb_cmd_fail(&e);
		fb_doc_set_config(r->doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
		fb_doc_set_table(r->doc, train_table);
	}
	open_products(r);
	int rc = 0;
	if (!r->job.local) {
		r->job.effective = shared_options(c, &e);
		rc = r->job.effective ? 0 : e.code;
	}
	if (rc == 0)
		rc = r->job.local ? run_threads(r, &e) : run_processes(r, &e);
	int status = end(r, &e, rc);
	fb_doc_free(r->doc);
	return status;
}

/* What a step would cost, from closed forms: nothing starts. */
static int plan(struct run *r, const struct fb_opt_spec *spec, int argc, char **argv)
{
	struct command *c = r->c;
	struct fb_err e = {0};
	const struct train_plan_opts o = {.ranks_per_node = c->train.ranks_per_node};
	json_t *all = NULL;
	int rc = 0;
	if (!c->out.json && !c->out.quiet)
		rc = train_plan_print(&r->job.step, &o, stdout, &e);
	if (rc != 0 || (!c->out.json && !c->out.path))
		return rc != 0 ? fb_cmd_fail(&e) : FB_EXIT_OK;
	rc = train_plan_json(&r->job.step, &o, &all, &e);
	if (rc != 0)
		return fb_cmd_fail(&e);
	c->out.quiet = true; /* the text stands there already */
	r->doc = fb_doc_new("train", argc, argv, &c->out, &e);
	if (!r->doc) {
		json_decref(all);
		return fb_cmd_fail(&e);
	}
	fb_doc_set_config(r->doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	json_object_set_new(fb_doc_json(r->doc), "train_plan", all);
	int status = fb_doc_finish(r->doc, FB_EXIT_OK);
	fb_doc_free(r->doc);
	return status;
}

static int train_run(int argc, char **argv)
{
	struct command c = {0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	struct run r = {.c = &c};
	fill_spec(&spec, &c);
	int status, rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	rc = settle(&r, &e);
	if (rc != 0)
		status = speaks(&c) ? fb_cmd_fail(&e) : (int)e.exit;
	else if (c.train.plan)
		status = plan(&r, &spec, argc, argv);
	else
		status = start(&r, &spec, argc, argv);
	train_job_free(&r.job);
	fb_opt_free(&spec);
	return status;
}

const struct fb_cmd train_cmd = {
	.name = "train",
	.summary = "a real training step, sharded: its MFU, and where the time went",
	.run = train_run,
	.spec = spec_for_plans,
};
