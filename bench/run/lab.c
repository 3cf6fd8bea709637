// SPDX-License-Identifier: Apache-2.0
/*
 * Every pending part with launcher = lab, in one boot of the lab: guest 0 serves, guest 1 runs a
 * plan written here that holds exactly those parts. Booting costs more than most jobs, so they
 * share it. The guest's parts come back through its share and are copied as they are; whatever did
 * not come back is missing, with the lab's last words as the reason.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/strbuf.h"
#include "bench/run/run_priv.h"

#define SECOND 1000000000ull
#define BOOT_LIMIT                                                                               \
	240 /* s: a pair boots in 12-20 s on two free cores; a busy machine may need much longer \
	     */
#define SERVER_ADDR "10.77.0.1"

static bool wanted(const struct run_part *p)
{
	return p->job->launcher == FB_LAUNCH_LAB && p->state == RUN_PENDING;
}

/* Section names of the guest's plan: the part's index, so that any job name fits in 40 characters.
 */
static int write_guest_plan(
	const struct run *r, const char *path, uint64_t *total_ns, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	*total_ns = 0;
	for (size_t i = 0; i < r->nparts; i++) {
		const struct run_part *p = &r->parts[i];
		if (!wanted(p))
			continue;
		*total_ns += p->job->deadline_ns;
		fb_strbuf_printf(&b,
			"[part-%zu]\ncommand = %s\ndeadline = %lluns\njob = %s\nlaunch = %u\n", i,
			p->job->command, (unsigned long long)p->job->deadline_ns, p->job->name,
			p->launch);
		for (size_t k = 0; k < p->job->nkeys; k++)
			if (!run_is_launcher_key(p->job->keys[k].name))
				fb_strbuf_printf(&b, "%s = %s\n", p->job->keys[k].name,
					p->job->keys[k].value);
		if (!run_job_key(p->job, "server"))
			fb_strbuf_add(&b, "server = " SERVER_ADDR "\n");
		fb_strbuf_add(&b, "\n");
	}
	size_t len = b.len;
	char *text = fb_strbuf_take(&b);
	int rc = text ? fb_write_file_atomic(path, text, len, e)
		      : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	free(text);
	return rc;
}

/* The guest's run names its parts NN-part-I-1.json, NN counting its own jobs. */
static int copy_part(
	const char *share, size_t nth, size_t i, const struct run_part *p, struct fb_err *e)
{
	char from[4400];
	char *text = NULL;
	size_t len = 0;
	snprintf(from, sizeof(from), "%s/run/parts/%02zu-part-%zu-1.json", share, nth, i);
	int rc = fb_read_file(from, 64u << 20, &text, &len, e);
	if (rc == 0)
		rc = fb_write_file_atomic(p->path, text, len, e);
	free(text);
	return rc;
}

static void last_line_of_log(const char *text, char *buf, size_t len)
{
	size_t n = text ? strlen(text) : 0;
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	size_t from = n;
	while (from > 0 && text[from - 1] != '\n' && n - from < len - 1)
		from--;
	snprintf(buf, len, "%.*s", (int)(n - from), text ? text + from : "");
}

static void collect(
	struct run *r, const char *share, int status, const char *lab_stderr, bool stopped)
{
	char words[400];
	size_t nth = 0;
	last_line_of_log(lab_stderr, words, sizeof(words));
	for (size_t i = 0; i < r->nparts; i++) {
		struct run_part *p = &r->parts[i];
		struct fb_err e = {0};
		if (!wanted(p))
			continue;
		nth++;
		unlink(p->path);
		if (copy_part(share, nth, i, p, &e) == 0) {
			run_judge_part(p, 0, false, NULL);
			continue;
		}
		p->state = stopped                  ? RUN_INTERRUPTED
			   : status == FB_EXIT_SKIP ? RUN_SKIPPED
						    : RUN_MISSING;
		p->exit = status == FB_EXIT_SKIP ? FB_EXIT_SKIP : FB_EXIT_UNMEASURED;
		snprintf(p->reason, sizeof(p->reason), "the lab brought no result (status %d)%s%s",
			status, *words ? ": " : "", words);
	}
}

/* Wait for the lab; on a stop request tell it and do not wait: it ends its guests by itself, our
 * document must be written. */
static int wait_for_lab(pid_t pid, uint64_t deadline, bool *stopped)
{
	int w = 0;
	while (fb_proc_poll(pid, &w) == 0) {
		if (fb_stop_requested()) {
			*stopped = true;
			fb_proc_signal(pid);
			return FB_EXIT_UNMEASURED;
		}
		if (fb_clock_ns() > deadline)
			return fb_proc_stop(pid, 10 * SECOND);
		usleep(20000);
	}
	return w;
}

static int run_lab(struct run *r, const char *lab, const char *dir, uint64_t budget_ns,
	bool *stopped, struct fb_err *e)
{
	char plan[3400], log[3400], seconds[32];
	pid_t pid;
	snprintf(plan, sizeof(plan), "%s/plan.ini", dir);
	snprintf(log, sizeof(log), "%s/lab.log", dir);
	uint64_t limit_s = BOOT_LIMIT + budget_ns / SECOND;
	snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)limit_s);
	const char *argv[] = {lab, "--guests", "2", "--timeout", seconds, "--out", dir, "--quiet",
		"--", r->program, "verbs", "serve", "--", r->program, "run", "--parts-only", "-o",
		"/lab/out/run", plan, NULL};
	struct fb_proc_opts o = {.stdout_path = "/dev/null",
		.stderr_path = log,
		.deadline_ns = fb_deadline_in(limit_s * SECOND)};
	int rc = fb_proc_start(argv, &o, &pid, e);
	return rc != 0 ? FB_EXIT_UNMEASURED
		       : wait_for_lab(pid, fb_deadline_in((limit_s + 60) * SECOND), stopped);
}

/* Each boot has a folder of its own: what a guest of an earlier, interrupted boot left must not
 * look like this one's. */
static void fresh_folder(const struct run *r, char *dir, size_t len)
{
	snprintf(dir, len, "%s/lab", r->dir);
	for (int n = 2; n < 1000 && access(dir, F_OK) == 0; n++)
		snprintf(dir, len, "%s/lab-%d", r->dir, n);
}

void run_lab_parts(struct run *r)
{
	char lab[4096], dir[3200], path[3400], share[3400];
	uint64_t budget_ns = 0;
	size_t n = 0;
	struct fb_err e = {0};
	bool stopped = false;
	int status = FB_EXIT_UNMEASURED;
	for (size_t i = 0; i < r->nparts; i++)
		n += wanted(&r->parts[i]);
	if (n == 0)
		return;
	fresh_folder(r, dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/plan.ini", dir);
	snprintf(share, sizeof(share), "%s/guest1", dir);
	char *log = NULL;
	size_t len = 0;
	if (run_find_script(r, "lab/lab", lab, sizeof(lab)) != 0) {
		status = FB_EXIT_SKIP;
		fb_fail(&e, FB_EXIT_SKIP, ENOENT,
			"scripts/lab/lab was not found beside the program");
	} else if ((mkdir(dir, 0755) == 0 || errno == EEXIST) &&
		   write_guest_plan(r, path, &budget_ns, &e) == 0) {
		status = run_lab(r, lab, dir, budget_ns, &stopped, &e);
		snprintf(path, sizeof(path), "%s/lab.log", dir);
		if (fb_read_file(path, 4u << 20, &log, &len, NULL) != 0)
			log = NULL;
	}
	collect(r, share, status, e.code ? e.msg : log, stopped);
	free(log);
}
