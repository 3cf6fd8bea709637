/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --others of a check: other nodes to compare with, given as documents, recorded trees, or folders
 * of both. What a document or a tree becomes is the caller's.
 */
#ifndef FB_CORE_CHECK_OTHERS_H
#define FB_CORE_CHECK_OTHERS_H

#include <stdbool.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"

struct fb_others_reader {
	/** @param named given by name, not found in a folder: then it must be what it should
	 * @return 0 taken; 1 none of ours; -errno with *e */
	int (*document)(void *arg, const char *path, bool named, struct fb_err *e);
	int (*tree)(void *arg, const char *path, struct fb_err *e);
	const char *what; /**< what a folder should hold: "documents of check node" */
	const char *hint; /**< the command that makes them */
};
/**
 * Every name in turn; a tree that was met before, or that is the examined one (own_dir, NULL: the
 * live machine), is passed over. @return 0; the first error of a reader; -ENOENT: a folder with
 * nothing of ours (exit 2); -errno of listing one
 */
int fb_check_others(const struct fb_opt_list *names, const char *own_dir,
	const struct fb_others_reader *r, void *arg, struct fb_err *e) FB_MUST_CHECK;

/** Trees of several folders may tell one host name, as copies do: "HOST (FOLDER)", with as many of
 * the path's last folders as are asked for. Cut at len - 1 bytes. */
void fb_others_tell_apart(char *name, size_t len, const char *host, const char *dir, int folders);
#define FB_OTHERS_FOLDERS 4 /**< that many are enough to try */

#endif
