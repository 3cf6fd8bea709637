/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share. A part is one launch of one job: a child process and the
 * document it leaves in parts/NN-job-launch.json. A part that is missing is an error entry, never a
 * missing row.
 */
#ifndef FB_RUN_RUN_PRIV_H
#define FB_RUN_RUN_PRIV_H

#include <jansson.h>
#include <stdbool.h>

#include "bench/core/cmd.h"
#include "bench/core/err.h"
#include "bench/core/plan.h"
#include "bench/core/result.h"

enum run_state {
	RUN_PENDING,
	RUN_COMPLETE,
	RUN_FAILED,
	RUN_WRONG,
	RUN_SKIPPED,
	RUN_MISSING,
	RUN_INTERRUPTED
};
extern const char *const run_state_names[];

struct run_part {
	const struct fb_job *job;
	unsigned index;  /* of the job in the plan, from 0 */
	unsigned launch; /* from 1 */
	enum run_state state;
	bool reused; /* left by an earlier invocation, kept by --resume */
	int exit;
	double seconds;
	char path[4096];
	char reason[640];
};

struct run {
	struct fb_plan plan;
	struct run_part *parts; /* launch 1 of every job, then launch 2 ... */
	size_t nparts;
	char dir[3072];
	char program[4096];
	const char *where_rdma; /* "lab" or "hardware": what launcher = lab means here */
	char rdma_fault[256];   /* an RDMA function without an RDMA device: why */
	bool anonymous;
	uint64_t seed;
};

/* An argv under construction; strings are owned. */
struct run_argv {
	char **v;
	size_t n;
	bool failed;
};
void run_argv_add(struct run_argv *a, const char *fmt, ...) FB_PRINTF(2, 3);
void run_argv_free(struct run_argv *a);

/* check.c: do the plan's commands and options exist? */
int run_check_plan(const struct fb_plan *p, const struct fb_cmd *commands, struct fb_err *e);

/* launch.c: one part as one child; fills state, exit, reason, seconds. Its points go to live. */
struct live;
void run_launch_part(struct run *r, struct run_part *p, struct live *live);
/* The child's own command line: program, command words, options, --json-less output to p->path. */
void run_part_argv(const struct run *r, const struct run_part *p, struct run_argv *a);
/* The same without a word of output paths, for people. */
void run_print_argv(const struct run *r, const struct run_part *p, FILE *out);
/* Keys that tell the launcher something, and are no options of the command. */
bool run_is_launcher_key(const char *name);
const char *run_job_key(const struct fb_job *j, const char *name);
/* After a child ended with `status`: what its document says. */
void run_judge_part(struct run_part *p, int status, bool timed_out, const char *stderr_text);
/* Path of scripts/NAME of the tree or the installation. 0 or -ENOENT */
int run_find_script(const struct run *r, const char *name, char *buf, size_t len);

/* lab.c: all pending parts with launcher = lab, in one boot. */
void run_lab_parts(struct run *r);

/* merge.c: the run's own document. */
void run_merge_part(struct fb_doc *doc, const struct run *r, const struct run_part *p);
void run_set_plan(struct fb_doc *doc, const struct run *r);
/* Sets doc's verdict {state, scope, reasons, accounted}. @return exit status */
int run_set_verdict(struct fb_doc *doc, const struct run *r);

#endif
