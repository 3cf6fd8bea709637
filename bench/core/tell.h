/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a measuring process tells the `run` that started it which point of how many it is at, and
 * what a point gave: lines of JSON over a pipe of the listener's. The pipe is named in the
 * environment by the listener's /proc/PID/fd/N and the pipe's inode, so that it is found through
 * launchers that close what they inherit (mpirun), and by nobody on another host.
 *
 * Telling never waits: what does not fit into the pipe is lost, and with it nothing but a line on
 * a screen. It is done between points, never in a timed loop. What is heard is believed to be
 * nothing but text and numbers.
 */
#ifndef FB_CORE_TELL_H
#define FB_CORE_TELL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"

struct fb_doc;

#define FB_TELL_ENV "FABRICBENCH_TELL"
/** Bytes of a line with its end: less than PIPE_BUF, so that lines of several writers never mix. */
#define FB_TELL_MAX 1024

/** The teller's end. */
struct fb_tell {
	int fd; /**< -1: nobody listens */
	unsigned point, points;
	char name[96];
};
/** Find who listens. That nobody does is no error: telling then does nothing. */
void fb_tell_open(struct fb_tell *t);
/** The same, and nobody else in this process will: for who measures points within its own. Before
 * there are threads. */
void fb_tell_take(struct fb_tell *t);
void fb_tell_close(struct fb_tell *t);
/** Point `point` (from 1) of `points` begins; the name is copied. */
void fb_tell_begin(struct fb_tell *t, unsigned point, unsigned points, const char *name);
/** It has ended; what it gave is the document's last result (NULL, or none: nothing). */
void fb_tell_end(struct fb_tell *t, struct fb_doc *doc);

/** What was told. The pointers are good during the call that brings it. */
struct fb_told {
	unsigned point, points; /**< 1 <= point <= points */
	const char *name;
	bool ended;
	const json_t *result; /**< metric, unit, value, params.size; NULL: none, or it begins */
};
typedef void fb_told_fn(void *arg, const struct fb_told *t);

/** The listener's end. */
struct fb_listen {
	int r, w;                   /**< both ends are ours: a writer's end is no end of file */
	char env[96];               /**< "FABRICBENCH_TELL=...", for the child's environment */
	char line[FB_TELL_MAX + 1]; /**< what has come of the line under way */
	size_t len;
	bool skip; /**< the line under way is too long: dropped up to its end */
};
/** @return 0; -errno: no pipe to be had */
int fb_listen_open(struct fb_listen *l);
void fb_listen_close(struct fb_listen *l);
/** Hear what has come so far, at most 64 KiB, and wait for nothing; l->r says by poll when there is
 * more. Lines that make no sense are dropped. */
void fb_listen_read(struct fb_listen *l, fb_told_fn *told, void *arg);
/** The same for bytes that came otherwise. */
void fb_listen_bytes(struct fb_listen *l, const char *bytes, size_t n, fb_told_fn *told, void *arg);

#endif
