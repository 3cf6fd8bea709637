// SPDX-License-Identifier: Apache-2.0
/*
 * The command: read and check the plan, make the run directory, run every part, keep run.json true
 * after each of them, and end with the verdict and the report. Launches go round the jobs (1st of
 * each, 2nd of each ...), so that slow drift of the machine meets all jobs alike.
 */
#include "bench/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/opt.h"
#include "bench/core/proc.h"
#include "bench/core/stop.h"
#include "bench/core/units.h"
#include "bench/run/live.h"
#include "bench/run/run_priv.h"
#include "topo/topo.h"

struct run_cfg {
	char *plan, *dir;
	bool dry_run, resume, parts_only, no_report, anonymous, quiet;
	uint64_t timeout_ns, seed;
};

static const struct fb_opt run_opts[] = {
	{.name = "plan",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct run_cfg, plan),
		.arg = "PLAN",
		.help = "the plan, an INI file",
		.positional = true},
	{.letter = 'o',
		.name = "output",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct run_cfg, dir),
		.arg = "DIR",
		.help = "the run directory: run.json, parts/, plots/, topology.*, report.html"},
	{.name = "dry-run",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, dry_run),
		.help = "check the plan, say what would run and how long it would take"},
	{.name = "resume",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, resume),
		.help = "go on in DIR after an interruption: complete parts are kept"},
	{.name = "no-report",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, no_report),
		.help = "leave out report.html"},
	{.name = "parts-only",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, parts_only),
		.help = "no topology, no report",
		.hidden = true},
	{.name = "anonymous",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, anonymous),
		.help = "no host names, GUIDs, MACs or IPs in what is written"},
	{.name = "quiet",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct run_cfg, quiet),
		.help = "no progress: neither the line on a terminal nor one as each point and part ends"},
	{.name = "timeout",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct run_cfg, timeout_ns),
		.arg = "TIME",
		.help = "end the whole run after this",
		.def = "24h"},
	{.name = "seed",
		.type = FB_OPT_U64,
		.offset = offsetof(struct run_cfg, seed),
		.arg = "N",
		.help = "recorded, for plans that draw at random",
		.def = "1"},
	{0},
};

static const char run_notes[] =
	"A plan's section is a job: [name], command = verbs latency, then the command's long option names. "
	"Also: ranks, launcher (local, ssh, mpirun, srun, lab), launches, deadline, require; hosts, hostfile, "
	"ranks-per-host for launchers; time = 20s, what one launch is expected to take. [plan] has title and "
	"scope, and launches and deadline for the jobs that have none of their own.\n\n"
	"Exit status: 0 accepted, 1 rejected, 2 bad plan, 3 incomplete or interrupted, 4 wrong data.";

static struct fb_opt_spec make_spec(struct run_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "run",
		.usage = "PLAN -o DIR [options]",
		.summary =
			"Run every job of a plan, join the results, give the verdict, write the report.",
		.notes = run_notes,
		.sets = {{"Options", run_opts, cfg}},
	};
}

static int make_parts(struct run *r)
{
	unsigned most = 0;
	for (size_t i = 0; i < r->plan.njobs; i++) {
		r->nparts += r->plan.jobs[i].launches;
		if (r->plan.jobs[i].launches > most)
			most = r->plan.jobs[i].launches;
	}
	r->parts = calloc(r->nparts, sizeof(*r->parts));
	if (!r->parts)
		return -ENOMEM;
	size_t k = 0;
	for (unsigned l = 1; l <= most; l++) {
		for (size_t i = 0; i < r->plan.njobs; i++) {
			const struct fb_job *j = &r->plan.jobs[i];
			if (l > j->launches)
				continue;
			struct run_part *p = &r->parts[k++];
			p->job = j;
			p->index = (unsigned)i;
			p->launch = l;
			snprintf(p->path, sizeof(p->path), "%s/parts/%02zu-%s-%u.json", r->dir,
				i + 1, j->name, l);
		}
	}
	return 0;
}

static uint64_t expected_ns(const struct fb_job *j)
{
	uint64_t ns;
	const char *t = run_job_key(j, "time");
	return t && fb_parse_duration(t, &ns, NULL) == 0 ? ns : j->deadline_ns;
}

static int longest_name(const struct fb_plan *plan)
{
	size_t most = 24;
	for (size_t i = 0; i < plan->njobs; i++)
		if (strlen(plan->jobs[i].name) > most)
			most = strlen(plan->jobs[i].name);
	return (int)most;
}

static int dry_run(const struct run *r)
{
	uint64_t about = 0, most = 0;
	bool lab = false;
	unsigned untold = 0;
	int width = longest_name(&r->plan);
	printf("%-*s %-7s %8s %9s %9s  %s\n", width, "job", "by", "launches", "each", "at most",
		"command");
	for (size_t i = 0; i < r->plan.njobs; i++) {
		const struct fb_job *j = &r->plan.jobs[i];
		const struct run_part *p = &r->parts[0];
		while (p->job != j)
			p++;
		char each[32], limit[32];
		printf("%-*s %-7s %8u %9s %9s  ", width, j->name, fb_launcher_names[j->launcher],
			j->launches, fb_fmt_duration((double)expected_ns(j), each, sizeof(each)),
			fb_fmt_duration((double)j->deadline_ns, limit, sizeof(limit)));
		run_print_argv(r, p, stdout);
		printf("\n");
		about += expected_ns(j) * j->launches;
		most += j->deadline_ns * j->launches;
		untold += run_job_key(j, "time") == NULL;
		lab = lab || (j->launcher == FB_LAUNCH_LAB && strcmp(r->where_rdma, "lab") == 0);
	}
	if (lab)
		about += 20000000000ull;
	printf("time needed: about %.0f s%s, at most %.0f s\n", (double)about / 1e9,
		lab ? " (20 s of it boot the lab)" : "", (double)most / 1e9);
	if (untold > 0)
		printf("%u of %zu jobs do not say their time (time = 20s): their deadline is counted\n",
			untold, r->plan.njobs);
	return FB_EXIT_OK;
}

static int make_dir(const char *path, struct fb_err *e)
{
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot make %s: %s", path, strerror(errno));
	fb_hint(e, "give -o a folder where you may write");
	return e->code;
}

static int make_dirs(const struct run *r, bool resume, struct fb_err *e)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/run.json", r->dir);
	bool there = access(path, F_OK) == 0;
	if (there && !resume) {
		fb_fail_usage(e, "%s holds a run already", r->dir);
		fb_hint(e, "give another -o, or --resume to go on with that one");
		return e->code;
	}
	for (char *s = strchr(r->dir + 1, '/');; s = strchr(s + 1, '/')) {
		snprintf(path, sizeof(path), "%.*s", (int)(s ? s - r->dir : (long)strlen(r->dir)),
			r->dir);
		int rc = make_dir(path, e);
		if (rc != 0)
			return rc;
		if (!s)
			break;
	}
	snprintf(path, sizeof(path), "%s/parts", r->dir);
	return make_dir(path, e);
}

static bool any_part(const struct run *r)
{
	for (size_t i = 0; i < r->nparts; i++)
		if (access(r->parts[i].path, F_OK) == 0)
			return true;
	return false;
}

/* The plan is kept beside the results; going on with another plan would join what does not belong
 * together. */
static int keep_plan(const struct run *r, bool resume, struct fb_err *e)
{
	char path[4096], *old = NULL, *now = NULL;
	size_t old_len = 0, len = 0;
	snprintf(path, sizeof(path), "%s/plan.ini", r->dir);
	int rc = fb_read_file(r->plan.path, 1u << 20, &now, &len, e);
	bool known = resume && rc == 0 && fb_read_file(path, 1u << 20, &old, &old_len, NULL) == 0;
	if (known && (old_len != len || memcmp(old, now, len) != 0)) {
		rc = fb_fail_usage(
			e, "%s is not the plan that %s was started with", r->plan.path, r->dir);
		fb_hint(e, "resume with %s, or start a new -o", path);
	} else if (resume && rc == 0 && !known && any_part(r)) {
		rc = fb_fail_usage(
			e, "cannot read %s: nothing tells what %s was started with", path, r->dir);
		fb_hint(e, "start a new -o");
	}
	if (rc == 0)
		rc = fb_write_file_atomic(path, now, len, e);
	free(old);
	free(now);
	return rc;
}

static void keep_complete_parts(struct run *r)
{
	for (size_t i = 0; i < r->nparts; i++) {
		struct run_part *p = &r->parts[i];
		if (access(p->path, R_OK) != 0)
			continue;
		run_judge_part(p, 0, false, NULL);
		p->reused = p->state == RUN_COMPLETE;
		if (!p->reused) {
			p->state = RUN_PENDING;
			p->reason[0] = '\0';
			p->exit = 0;
		}
	}
}

/* The machine's topology beside the results: by a child, so that a fault in a driver's sysfs ends
 * that child alone. */
static void take_topology(struct run *r, struct fb_doc *doc)
{
	char xml[4096], svg[4096], json[4096];
	struct fb_proc_result res;
	struct fb_err e = {0};
	snprintf(xml, sizeof(xml), "--hwloc-xml-out=%s/topology.xml", r->dir);
	snprintf(svg, sizeof(svg), "--svg=%s/topology.svg", r->dir);
	snprintf(json, sizeof(json), "--output=%s/topology.json", r->dir);
	const char *argv[] = {r->program, "topo", "--json", xml, svg, json,
		r->anonymous ? "--anonymous" : NULL, NULL};
	struct fb_proc_opts o = {.capture = 65536, .deadline_ns = fb_deadline_in(60000000000ull)};
	int rc = fb_proc_run(argv, &o, &res, &e);
	if (rc == 0 && res.status == 0)
		fb_doc_set_topology(doc, "topology.json");
	else
		fb_doc_warn(doc, "the topology could not be taken: %s",
			res.err && res.err[0] ? res.err : e.msg);
	fb_proc_result_free(&res);
}

/* @return whether there is one */
static bool make_report(const struct run *r)
{
	char html[4096];
	struct fb_proc_result res;
	struct fb_err e = {0};
	const char *argv[] = {r->program, "report", r->dir, NULL};
	struct fb_proc_opts o = {.capture = 65536, .deadline_ns = fb_deadline_in(120000000000ull)};
	int rc = fb_proc_run(argv, &o, &res, &e);
	snprintf(html, sizeof(html), "%s/report.html", r->dir);
	if (res.err && res.err[0])
		fprintf(stderr, "%s", res.err);
	bool made = rc == 0 && res.status == 0;
	if (made)
		printf("report:  %s\n", html);
	else
		fb_error("no report: %s; `fabricbench report %s` makes it from run.json",
			rc != 0 ? e.msg : "see the lines above", r->dir);
	fb_proc_result_free(&res);
	return made;
}

/* The last result that a part brought, if it brought any. */
static const json_t *last_result(struct fb_doc *doc, const struct run_part *p)
{
	const json_t *results = json_object_get(fb_doc_json(doc), "results");
	const json_t *r = json_array_get(results, json_array_size(results) - 1);
	bool own = r && p->state == RUN_COMPLETE &&
		   strcmp(fb_json_str(r, "job", ""), p->job->name) == 0 &&
		   fb_json_int(r, "launch", 0) == p->launch;
	return own ? r : NULL;
}

static void finish_part(struct run *r, struct fb_doc *doc, struct live *live, size_t i)
{
	struct fb_err e = {0};
	run_merge_part(doc, r, &r->parts[i]);
	run_set_plan(doc, r);
	if (fb_doc_publish(doc, &e) != 0)
		fb_log_err(&e);
	live_end(live, r, i, last_result(doc, &r->parts[i]));
}

static void run_lab_together(struct run *r, struct fb_doc *doc, struct live *live, size_t i)
{
	char what[48];
	size_t n = 0;
	for (size_t k = 0; k < r->nparts; k++)
		n += r->parts[k].job->launcher == FB_LAUNCH_LAB && !r->parts[k].reused;
	snprintf(what, sizeof(what), "lab: %zu parts in two guests", n);
	live_begin(live, r, i, what);
	run_lab_parts(r);
	for (size_t k = 0; k < r->nparts; k++)
		if (r->parts[k].job->launcher == FB_LAUNCH_LAB && !r->parts[k].reused)
			finish_part(r, doc, live, k);
}

static void run_parts(struct run *r, struct fb_doc *doc, bool quiet)
{
	bool lab = strcmp(r->where_rdma, "lab") == 0;
	struct live live;
	live_start(&live, r, quiet);
	for (size_t i = 0; i < r->nparts; i++) {
		if (r->parts[i].state != RUN_PENDING)
			finish_part(r, doc, &live, i); /* kept from before */
	}
	for (size_t i = 0; i < r->nparts; i++) {
		struct run_part *p = &r->parts[i];
		if (p->reused || p->state != RUN_PENDING)
			continue;
		if (fb_stop_requested()) {
			p->state = RUN_INTERRUPTED;
			p->exit = FB_EXIT_UNMEASURED;
			snprintf(p->reason, sizeof(p->reason), "not run: interrupted before");
			continue;
		}
		if (p->job->launcher == FB_LAUNCH_LAB && lab && !r->rdma_fault[0]) {
			run_lab_together(r, doc, &live, i);
			continue;
		}
		live_begin(&live, r, i, NULL);
		run_launch_part(r, p, &live);
		finish_part(r, doc, &live, i);
	}
	live_stop(&live);
}

/* What launcher = lab means on this machine (DESIGN.md: the lab serves only where there is no RDMA
 * hardware). */
static void look_for_rdma(struct run *r)
{
	struct fb_sysroot live = {0};
	char why[200] = "";
	r->where_rdma = "lab";
	int found = topo_rdma_hardware(&live, why, sizeof(why));
	if (found == 1)
		r->where_rdma = "hardware";
	else if (found == 2)
		snprintf(r->rdma_fault, sizeof(r->rdma_fault),
			"an RDMA function without an RDMA device: %.200s", why);
}

static int execute(
	struct run *r, const struct run_cfg *cfg, int argc, char **argv, struct fb_err *e)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/run.json", r->dir);
	struct fb_output_cfg out = {.path = path,
		.quiet = true,
		.anonymous = cfg->anonymous,
		.timeout = cfg->timeout_ns,
		.seed = cfg->seed};
	/* From the first file on a signal leaves a document. */
	int rc = fb_stop_watch(e);
	if (rc == 0)
		rc = make_dirs(r, cfg->resume, e);
	if (rc == 0)
		rc = keep_plan(r, cfg->resume, e);
	if (rc != 0)
		return rc;
	struct fb_doc *doc = fb_doc_new("run", argc, argv, &out, e);
	if (!doc)
		return e->code;
	/* A stop ends the child in progress first, which leaves its own document. */
	fb_stop_set_grace(10000000000u);
	if (cfg->resume)
		keep_complete_parts(r);
	if (!cfg->parts_only)
		take_topology(r, doc);
	run_parts(r, doc, cfg->quiet);
	run_set_plan(doc, r);
	int status = run_set_verdict(doc, r);
	const json_t *verdict = json_object_get(fb_doc_json(doc), "verdict");
	char state[16];
	snprintf(state, sizeof(state), "%s", fb_json_str(verdict, "state", "?"));
	status = fb_doc_finish(doc, status);
	if (!cfg->parts_only) {
		printf("verdict: %s\nresults: %s\n", state, path);
		fflush(stdout);
	}
	/* While the document lives, a signal is a request: it ends the report's child too. */
	if (!cfg->parts_only && !cfg->no_report && !fb_stop_requested() && !make_report(r) &&
		fb_stop_requested() && status == FB_EXIT_OK)
		status = FB_EXIT_UNMEASURED;
	fb_doc_free(doc);
	return status;
}

static int absolute(const char *path, char *buf, size_t len)
{
	char cwd[2048];
	if (path[0] == '/')
		return snprintf(buf, len, "%s", path) < (int)len ? 0 : -ENAMETOOLONG;
	if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	return snprintf(buf, len, "%s/%s", cwd, path) < (int)len ? 0 : -ENAMETOOLONG;
}

static int prepare(
	struct run *r, const struct run_cfg *cfg, const struct fb_cmd *commands, struct fb_err *e)
{
	if (!cfg->plan)
		return fb_fail_usage(e, "run: which plan? Usage: fabricbench run PLAN -o DIR");
	int rc = fb_plan_load(cfg->plan, &r->plan, e);
	if (rc == 0)
		rc = run_check_plan(&r->plan, commands, e);
	if (rc != 0)
		return rc;
	if ((!cfg->dir || !*cfg->dir) && !cfg->dry_run)
		return fb_fail_usage(e, "run: where to? Give the run directory with -o DIR");
	if (absolute(cfg->dir ? cfg->dir : "results", r->dir, sizeof(r->dir)) != 0)
		return fb_fail_usage(e, "-o %s: the path is too long", cfg->dir);
	for (size_t n = strlen(r->dir); n > 1 && r->dir[n - 1] == '/'; n--)
		r->dir[n - 1] = '\0';
	if (fb_self_path(r->program, sizeof(r->program)) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"cannot read /proc/self/exe: is /proc mounted?");
	r->anonymous = cfg->anonymous;
	look_for_rdma(r);
	return make_parts(r) == 0 ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
}

int run_plan_main(int argc, char **argv, const struct fb_cmd *commands)
{
	struct run_cfg cfg = {0};
	struct run r = {0};
	struct fb_err e = {0};
	struct fb_opt_spec spec = make_spec(&cfg);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = prepare(&r, &cfg, commands, &e);
	if (rc == 0)
		rc = cfg.dry_run ? dry_run(&r) : execute(&r, &cfg, argc, argv, &e);
	if (rc < 0)
		rc = fb_cmd_fail(&e);
	free(r.parts);
	fb_plan_free(&r.plan);
	fb_opt_free(&spec);
	return rc;
}
