/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --others of a check: other nodes to compare with, given as documents, recorded trees, or folders
 * of both. What a document or a tree becomes is the caller's.
 */
#ifndef FB_CORE_CHECK_OTHERS_H
#define FB_CORE_CHECK_OTHERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"

struct fb_doc;

#define FB_OTHERS_KIND 64 /**< room for what a document is */
/** What folders held besides, and nobody took. */
struct fb_others_passed {
	size_t n; /**< all of them; what follows is of the first few */
	struct fb_others_entry {
		char path[160], why[FB_OTHERS_KIND];
	} first[4];
};

struct fb_others_reader {
	/** @param named given by name, not found in a folder: then it must be what it should
	 * @param kind of a document that is none of ours, what it is: fb_others_kind()
	 * @return 0 taken; 1 none of ours; -errno with *e */
	int (*document)(void *arg, const char *path, bool named, char kind[FB_OTHERS_KIND],
		struct fb_err *e);
	int (*tree)(void *arg, const char *path, struct fb_err *e);
	const char *what; /**< what a folder should hold: "documents of check node" */
	const char *hint; /**< the command that makes them */
};
/**
 * Every name in turn; a tree that was met before, or that is the examined one (own_dir, NULL: the
 * live machine), is left out. What else a folder holds, hidden files aside, is counted in *passed.
 * @return 0; the first error of a reader; -ENOENT: a folder with nothing of ours (exit 2); -errno
 * of listing one
 */
int fb_check_others(const struct fb_opt_list *names, const char *own_dir,
	const struct fb_others_reader *r, void *arg, struct fb_others_passed *passed,
	struct fb_err *e) FB_MUST_CHECK;

/** "a document of check node", or that it is none of ours. @return buf */
const char *fb_others_kind(const json_t *doc, char buf[FB_OTHERS_KIND]);
/** A warning of the document: how much was passed over, the first of it and why. Nothing when
 * nothing was. --anonymous hides file names that look like hosts'. */
void fb_others_tell(const struct fb_others_passed *passed, struct fb_doc *doc);

/** Trees of several folders may tell one host name, as copies do: "HOST (FOLDER)", with as many of
 * the path's last folders as are asked for. Cut at len - 1 bytes. */
void fb_others_tell_apart(char *name, size_t len, const char *host, const char *dir, int folders);
#define FB_OTHERS_FOLDERS 4 /**< that many are enough to try */

#endif
