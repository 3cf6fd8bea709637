/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children by argv, never through a shell. Each child leads its own process group, gets a deadline,
 * and is ended (SIGTERM, then SIGKILL after a grace) together with what it started.
 */
#ifndef FB_CORE_PROC_H
#define FB_CORE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/core/err.h"

struct fb_proc_opts {
	const char *const *env;  /**< extra "K=V" pairs, NULL-terminated; may be NULL */
	const char *cwd;         /**< may be NULL */
	const char *stdout_path; /**< file (created, truncated), or NULL: captured into result when
				    `capture`, else inherited */
	const char *stderr_path; /**< the same for stderr */
	const void *input;       /**< written to its stdin, then closed; NULL: /dev/null */
	size_t input_len;
	int capture; /**< keep stdout and stderr in memory, each at most capture bytes (0: no) */
	uint64_t deadline_ns; /**< absolute fb_clock_ns(); mandatory */
	uint64_t grace_ns;    /**< between SIGTERM and SIGKILL; 0: 2 s */
	/** Called while the child runs whenever `watch`, a descriptor of the caller's, can be read,
	 * and once after its end. NULL: nothing is watched. By fb_proc_run() alone. */
	void (*watched)(void *arg);
	void *watch_arg;
	int watch;
};
struct fb_proc_result {
	int status; /**< exit status; 128 + signal when killed; -1 when it never started */
	int timed_out;
	int stopped;     /**< ended because fb_stop_requested() */
	char *out, *err; /**< captured, NUL-terminated, caller frees by fb_proc_result_free() */
	size_t out_len, err_len;
	uint64_t elapsed_ns;
};

/** Start, wait, collect. @return 0 when it ran to an end of its own (whatever status), -ETIMEDOUT,
 * -EINTR, -ENOENT, -errno */
int fb_proc_run(const char *const *argv, const struct fb_proc_opts *o, struct fb_proc_result *r,
	struct fb_err *e) FB_MUST_CHECK;
void fb_proc_result_free(struct fb_proc_result *r);

/** The two halves, for a child that runs beside us (a server). */
int fb_proc_start(const char *const *argv, const struct fb_proc_opts *o, pid_t *pid,
	struct fb_err *e) FB_MUST_CHECK;
/** End a child and its group, wait for it. @return its status as in fb_proc_result */
int fb_proc_stop(pid_t pid, uint64_t grace_ns);

/** Has it ended? 0: it runs; 1: it has ended, *status as in fb_proc_result. */
int fb_proc_poll(pid_t pid, int *status);
/** Send SIGTERM to the child's group, and return at once. */
void fb_proc_signal(pid_t pid);

/** Full path of a program in PATH into buf. @return 0 or -ENOENT */
int fb_find_program(const char *name, char *buf, size_t len);
/** Path of the running program. @return 0 or -errno */
int fb_self_path(char *buf, size_t len);

#endif
