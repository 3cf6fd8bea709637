// SPDX-License-Identifier: Apache-2.0
/*
 * One part, one child: directly, or under mpirun, srun or scripts/launch. mpirun's own exit status
 * says little (it is that of some rank), so the part's document decides, and the status only where
 * there is none.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/tell.h"
#include "bench/run/live.h"
#include "bench/run/run_priv.h"

const char *const run_state_names[] = {
	"pending", "complete", "failed", "wrong data", "skipped", "missing", "interrupted"};

void run_argv_add(struct run_argv *a, const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	char **v = n < 0 ? NULL : realloc(a->v, (a->n + 2) * sizeof(*v));
	if (!v) {
		if (n >= 0)
			free(s);
		a->failed = true;
		return;
	}
	a->v = v;
	v[a->n++] = s;
	v[a->n] = NULL;
}

void run_argv_free(struct run_argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	memset(a, 0, sizeof(*a));
}

bool run_is_launcher_key(const char *name)
{
	return strcmp(name, "hosts") == 0 || strcmp(name, "hostfile") == 0 ||
	       strcmp(name, "ranks-per-host") == 0 || strcmp(name, "time") == 0;
}

const char *run_job_key(const struct fb_job *j, const char *name)
{
	for (size_t i = 0; i < j->nkeys; i++)
		if (strcmp(j->keys[i].name, name) == 0)
			return j->keys[i].value;
	return NULL;
}

int run_find_script(const struct run *r, const char *name, char *buf, size_t len)
{
	const char *own = getenv("FABRICBENCH_SCRIPTS");
	const char *slash = strrchr(r->program, '/');
	int dir = slash ? (int)(slash - r->program) : 0;
	if (own && snprintf(buf, len, "%s/%s", own, name) < (int)len && access(buf, X_OK) == 0)
		return 0;
	/* build/<flags>/fabricbench in the tree; PREFIX/bin/fabricbench installed or unpacked */
	static const char *const places[] = {
		"../../scripts", "../share/fabricbench/scripts", "../scripts"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(buf, len, "%.*s/%s/%s", dir, r->program, places[i], name) < (int)len &&
			access(buf, X_OK) == 0)
			return 0;
	return -ENOENT;
}

static void add_launcher(const struct run *r, const struct run_part *p, struct run_argv *a)
{
	const struct fb_job *j = p->job;
	const char *hosts = run_job_key(j, "hosts"), *hostfile = run_job_key(j, "hostfile");
	const char *per_host = run_job_key(j, "ranks-per-host");
	char script[4096];
	switch (j->launcher) {
	case FB_LAUNCH_MPIRUN:
		run_argv_add(a, "mpirun");
		run_argv_add(a, "-n");
		run_argv_add(a, "%u", j->ranks);
		run_argv_add(a, "--oversubscribe");
		if (hosts || hostfile) {
			run_argv_add(a, hosts ? "--host" : "--hostfile");
			run_argv_add(a, "%s", hosts ? hosts : hostfile);
		}
		if (per_host) {
			run_argv_add(a, "--map-by");
			run_argv_add(a, "ppr:%s:node", per_host);
		}
		break;
	case FB_LAUNCH_SRUN:
		run_argv_add(a, "srun");
		run_argv_add(a, "--ntasks=%u", j->ranks);
		if (per_host)
			run_argv_add(a, "--ntasks-per-node=%s", per_host);
		break;
	case FB_LAUNCH_SSH:
		if (run_find_script(r, "launch", script, sizeof(script)) != 0)
			snprintf(script, sizeof(script),
				"launch"); /* the failure to start it says so */
		run_argv_add(a, "%s", script);
		run_argv_add(a, hosts ? "--hosts" : "--hostfile");
		run_argv_add(a, "%s", hosts ? hosts : hostfile ? hostfile : "");
		run_argv_add(a, "--ranks-per-host");
		run_argv_add(a, "%s", per_host ? per_host : "1");
		run_argv_add(a, "--");
		break;
	case FB_LAUNCH_LOCAL:
	case FB_LAUNCH_LAB: break;
	}
}

static void add_command(const struct run *r, const struct run_part *p, struct run_argv *a)
{
	const struct fb_job *j = p->job;
	run_argv_add(a, "%s", r->program);
	for (const char *s = j->command; *s;) {
		size_t n = strcspn(s, " \t");
		if (n > 0)
			run_argv_add(a, "%.*s", (int)n, s);
		s += n;
		s += strspn(s, " \t");
	}
	for (size_t i = 0; i < j->nkeys; i++)
		if (!run_is_launcher_key(j->keys[i].name))
			run_argv_add(a, "--%s=%s", j->keys[i].name, j->keys[i].value);
	if (j->launcher == FB_LAUNCH_LOCAL && j->ranks > 1) {
		run_argv_add(a, "--comm=local");
		run_argv_add(a, "--ranks=%u", j->ranks);
	}
	if (j->launcher == FB_LAUNCH_MPIRUN && !run_job_key(j, "comm"))
		run_argv_add(a, "--comm=mpi");
	if (j->launcher == FB_LAUNCH_LAB && !run_job_key(j, "server"))
		run_argv_add(a,
			"--loopback"); /* reached only on a machine with RDMA hardware of its own */
}

void run_part_argv(const struct run *r, const struct run_part *p, struct run_argv *a)
{
	add_launcher(r, p, a);
	add_command(r, p, a);
	if (!run_job_key(p->job, "job")) {
		run_argv_add(a, "--job=%s", p->job->name);
		run_argv_add(a, "--launch=%u", p->launch);
	}
	if (r->anonymous)
		run_argv_add(a, "--anonymous");
	run_argv_add(a, "--quiet");
	run_argv_add(a, "--output=%s", p->path);
}

void run_print_argv(const struct run *r, const struct run_part *p, FILE *out)
{
	struct run_argv a = {0};
	add_launcher(r, p, &a);
	add_command(r, p, &a);
	for (size_t i = 0; i < a.n; i++) {
		bool full = strcmp(a.v[i], r->program) == 0;
		fprintf(out, "%s%s", i ? " " : "", full ? "fabricbench" : a.v[i]);
	}
	run_argv_free(&a);
}

#define MOST_REASONS 2 /* of a part's verdict, in the run's own */

/* The last lines that a child wrote to stderr, as one line. */
static void last_words(const char *text, char *buf, size_t len)
{
	size_t n = text ? strlen(text) : 0;
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	size_t from = n > 400 ? n - 400 : 0;
	size_t k = 0;
	for (size_t i = from; i < n && k + 1 < len; i++)
		buf[k++] = text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? ' ' : text[i];
	buf[k] = '\0';
}

static void first_error(const json_t *doc, char *buf, size_t len)
{
	const json_t *err = json_array_get(json_object_get(doc, "errors"), 0);
	const char *msg = err ? fb_json_str(err, "message", "") : "";
	const char *remedy = err ? fb_json_str(err, "remedy", "") : "";
	snprintf(buf, len, "%s%s%s", msg, *remedy ? "; remedy: " : "", remedy);
}

/* One more reason of a part, while there are few. */
static void add_reason(char *buf, size_t len, size_t i, const char *before, const char *text)
{
	size_t at = strlen(buf);
	if (i < MOST_REASONS)
		snprintf(buf + at, len - at, "%s%s%s%.200s", i ? "; " : "", before,
			*before ? ": " : "", text);
}

/*
 * What a part without an error says by its verdict, or by the gates that failed: neither is an
 * error. Of what was skipped whole the first check's reason tells what is missing here.
 */
static void verdict_words(const json_t *doc, int exit_status, char *buf, size_t len)
{
	const json_t *reasons = json_object_get(json_object_get(doc, "verdict"), "reasons");
	const json_t *checks = json_object_get(doc, "checks"), *v;
	size_t i, n = 0;
	json_array_foreach (reasons, i, v)
		add_reason(buf, len, n++, "", json_is_string(v) ? json_string_value(v) : "");
	json_array_foreach (checks, i, v) {
		bool fail = strcmp(fb_json_str(v, "state", ""), "fail") == 0;
		if (json_array_size(reasons) == 0 && fail)
			add_reason(buf, len, n++, fb_json_str(v, "case", fb_json_str(v, "id", "")),
				fb_json_str(v, "reason", "?"));
	}
	size_t at = strlen(buf);
	const json_t *first = json_array_get(checks, 0);
	if (n > MOST_REASONS)
		snprintf(buf + at, len - at, "; and %zu more", n - MOST_REASONS);
	else if (exit_status == FB_EXIT_SKIP && first)
		snprintf(buf + at, len - at, "%s%.200s", at ? ": " : "",
			fb_json_str(first, "reason", ""));
}

static enum run_state state_of(int exit_status)
{
	switch (exit_status) {
	case FB_EXIT_OK: return RUN_COMPLETE;
	case FB_EXIT_WRONG_DATA: return RUN_WRONG;
	case FB_EXIT_SKIP: return RUN_SKIPPED;
	default: return RUN_FAILED;
	}
}

/* How long the child measured, by its own document: a part of the lab was not started from here. 0
 * when it does not say. */
static double document_seconds(const json_t *run)
{
	struct tm from = {0}, to = {0};
	const char *a = strptime(fb_json_str(run, "started", ""), "%Y-%m-%dT%H:%M:%S", &from);
	const char *b = strptime(fb_json_str(run, "ended", ""), "%Y-%m-%dT%H:%M:%S", &to);
	if (!a || !b)
		return 0;
	double fraction = (*b == '.' ? strtod(b, NULL) : 0) - (*a == '.' ? strtod(a, NULL) : 0);
	double s = difftime(timegm(&to), timegm(&from)) + fraction;
	return s > 0 ? s : 0;
}

void run_judge_part(struct run_part *p, int status, bool timed_out, const char *stderr_text)
{
	struct fb_err e = {0};
	json_t *doc = access(p->path, R_OK) == 0 ? fb_doc_load(p->path, &e) : NULL;
	p->exit = status;
	p->reason[0] = '\0';
	if (!doc) {
		p->state = status == FB_EXIT_SKIP ? RUN_SKIPPED : RUN_MISSING;
		if (p->exit == 0 || p->exit > FB_EXIT_SKIP)
			p->exit = FB_EXIT_UNMEASURED;
		if (e.code != 0)
			snprintf(p->reason, sizeof(p->reason), "%.600s", e.msg);
		else
			last_words(stderr_text, p->reason, sizeof(p->reason));
	} else {
		const json_t *run = json_object_get(doc, "run");
		bool complete = strcmp(fb_json_str(run, "outcome", ""), "complete") == 0;
		p->exit = (int)fb_json_int(run, "exit", status);
		if (!complete && p->exit == 0)
			p->exit = FB_EXIT_UNMEASURED;
		p->state = state_of(p->exit);
		p->seconds = document_seconds(run);
		if (strcmp(fb_json_str(run, "outcome", ""), "interrupted") == 0 &&
			p->state != RUN_SKIPPED)
			p->state = RUN_INTERRUPTED;
		first_error(doc, p->reason, sizeof(p->reason));
		if (p->state != RUN_COMPLETE && p->reason[0] == '\0')
			verdict_words(doc, p->exit, p->reason, sizeof(p->reason));
		json_decref(doc);
	}
	if (timed_out) {
		p->state = RUN_FAILED;
		p->exit = FB_EXIT_UNMEASURED;
		snprintf(p->reason, sizeof(p->reason),
			"did not end within its deadline of %.0f s; raise `deadline` in [%s], or look for a hang",
			(double)p->job->deadline_ns / 1e9, p->job->name);
	}
	/* Killed before it could say why: its library, or its launcher, may have. */
	if (p->state == RUN_INTERRUPTED && p->reason[0] == '\0')
		last_words(stderr_text, p->reason, sizeof(p->reason));
	if (p->state == RUN_INTERRUPTED && p->reason[0] == '\0')
		snprintf(p->reason, sizeof(p->reason), "interrupted before it had finished");
	if (p->state != RUN_COMPLETE && p->reason[0] == '\0')
		snprintf(p->reason, sizeof(p->reason), "ended with status %d and said nothing",
			status);
}

static size_t mpi_environment(const struct fb_job *j, const char **env)
{
	char ssh[PATH_MAX];
	size_t n = 0;
	if (j->launcher == FB_LAUNCH_MPIRUN) {
		if (geteuid() == 0) {
			env[n++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
			env[n++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
		}
		/* Open MPI wants a remote shell to exist even for ranks on this host alone. */
		if (fb_find_program("ssh", ssh, sizeof(ssh)) != 0 &&
			fb_find_program("rsh", ssh, sizeof(ssh)) != 0)
			env[n++] = "OMPI_MCA_plm=isolated";
		if ((long)j->ranks >= sysconf(_SC_NPROCESSORS_ONLN))
			env[n++] = "OMPI_MCA_mpi_yield_when_idle=1";
	}
	env[n] = NULL;
	return n;
}

/* What the live view hears while the child runs. */
struct hearing {
	struct fb_listen listen;
	struct live *live;
};

static void told(void *arg, const struct fb_told *t)
{
	const struct hearing *h = arg;
	live_point(h->live, t);
}

static void hear(void *arg)
{
	struct hearing *h = arg;
	fb_listen_read(&h->listen, told, h);
}

void run_launch_part(struct run *r, struct run_part *p, struct live *live)
{
	struct run_argv a = {0};
	const char *env[6];
	struct hearing hearing = {.live = live};
	struct fb_proc_result res;
	struct fb_err e = {0};
	if (p->job->launcher == FB_LAUNCH_LAB && r->rdma_fault[0]) {
		p->state = RUN_FAILED;
		p->exit = FB_EXIT_FAILED;
		snprintf(p->reason, sizeof(p->reason), "%s", r->rdma_fault);
		return;
	}
	size_t nenv = mpi_environment(p->job, env);
	run_part_argv(r, p, &a);
	if (a.failed) {
		run_argv_free(&a);
		p->state = RUN_MISSING;
		p->exit = FB_EXIT_UNMEASURED;
		snprintf(p->reason, sizeof(p->reason), "out of memory");
		return;
	}
	struct fb_proc_opts o = {.env = env,
		.capture = 65536,
		.deadline_ns = fb_deadline_in(p->job->deadline_ns),
		.grace_ns = 250000000};
	/* Without it the view knows parts alone. */
	bool heard = !live->quiet && fb_listen_open(&hearing.listen) == 0;
	if (heard) {
		env[nenv++] = hearing.listen.env;
		env[nenv] = NULL;
		o.watch = hearing.listen.r;
		o.watched = hear;
		o.watch_arg = &hearing;
	}
	unlink(p->path);
	int rc = fb_proc_run((const char *const *)a.v, &o, &res, &e);
	run_judge_part(p, res.status, res.timed_out, res.err && res.err[0] ? res.err : e.msg);
	p->seconds = (double)res.elapsed_ns / 1e9;
	if (rc == -ENOENT)
		snprintf(
			p->reason, sizeof(p->reason), "%s is not installed or not in PATH", a.v[0]);
	if (res.stopped)
		p->state = RUN_INTERRUPTED;
	fb_proc_result_free(&res);
	run_argv_free(&a);
	if (heard)
		fb_listen_close(&hearing.listen);
}
