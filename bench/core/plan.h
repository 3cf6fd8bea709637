/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: INI in fio's manner. A section is a job with a free, unique name of at most 40 characters
 * and the mandatory key `command`; optional ranks, launcher, launches, deadline, require; every
 * other key is an option's long name of that command. The section [plan] holds title, scope and
 * defaults for `launches`, `deadline`.
 */
#ifndef FB_CORE_PLAN_H
#define FB_CORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

enum fb_launcher {
	FB_LAUNCH_LOCAL,
	FB_LAUNCH_SSH,
	FB_LAUNCH_MPIRUN,
	FB_LAUNCH_SRUN,
	FB_LAUNCH_LAB
};
extern const char *const fb_launcher_names[];

struct fb_plan_key {
	char *name, *value;
	unsigned line;
};
struct fb_job {
	char name[41];
	char *command;  /**< "verbs latency" */
	unsigned line;  /**< of its section */
	unsigned ranks; /**< 1 by default */
	enum fb_launcher launcher;
	unsigned launches;    /**< 1 by default */
	uint64_t deadline_ns; /**< of one launch */
	bool require;         /**< its absence makes the verdict INCOMPLETE; true by default */
	struct fb_plan_key *keys;
	size_t nkeys;
};
struct fb_plan {
	char *path, *title, *scope;
	struct fb_job *jobs;
	size_t njobs;
};

/**
 * Read a plan. Option names are checked by the caller (main.c knows the commands).
 * @return 0, or -EINVAL/-errno with file:line and cause (exit 2): no command, unknown launcher,
 * name twice, too long, key outside a section, key twice, more than 256 jobs, a line over
 * FB_INI_MAX_LINE (ini.h), NUL byte
 */
int fb_plan_load(const char *path, struct fb_plan *p, struct fb_err *e) FB_MUST_CHECK;
int fb_plan_parse(const char *text, size_t len, const char *name, struct fb_plan *p,
	struct fb_err *e) FB_MUST_CHECK;
void fb_plan_free(struct fb_plan *p);

#endif
