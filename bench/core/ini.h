/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI files of this suite, by libinih: "[section]", "key = value", comments from # or ; at a line's
 * start, and, where values may not hold it, from a ; after white space. Multi-line values are off;
 * a line the library would cut silently, a control character, or a line that is neither is refused
 * with its number.
 */
#ifndef FB_CORE_INI_H
#define FB_CORE_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"

#define FB_INI_MAX_LINE    190   /**< bytes; libinih's own buffer has 200 */
#define FB_INI_MAX_SECTION 48    /**< bytes of a section's name; libinih cuts at 50 */
#define FB_INI_MAX_BYTES   65536 /**< of a file */

struct fb_ini {
	const char *name; /**< of the file, for messages */
	unsigned line;    /**< of the key or section being read */
	struct fb_err *e; /**< for fb_ini_bad() */
	int rc;
};

/** One key. `section` is "" before the first one. @return 0, or fb_ini_bad()'s */
typedef int fb_ini_key(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value);

/** One "[section]", before its keys and whether or not it has any. The name is whole, however long;
 * one over FB_INI_MAX_SECTION is refused after this. @return 0, or fb_ini_bad()'s */
typedef int fb_ini_section(struct fb_ini *ini, void *arg, const char *section);

/** How a kind of file is read. */
struct fb_ini_form {
	fb_ini_key *key;
	fb_ini_section *section; /**< NULL: a section is known by its keys alone */
	bool semicolons;         /**< a ; inside a line belongs to the value */
};

/** Fill *e with "FILE:LINE: ..." (exit 2). @return -EINVAL */
int fb_ini_bad(struct fb_ini *ini, const char *fmt, ...) FB_PRINTF(2, 3);

/**
 * Call form->section and form->key for all that the text holds, in its order.
 * @return 0; -EINVAL with file, line and cause (exit 2); the first error of a call
 */
int fb_ini_parse_form(const char *text, size_t len, const char *name,
	const struct fb_ini_form *form, void *arg, struct fb_err *e) FB_MUST_CHECK;
/** The same with `key` alone: a section that is opened and has no key is not reported. */
int fb_ini_parse(const char *text, size_t len, const char *name, fb_ini_key *key, void *arg,
	struct fb_err *e) FB_MUST_CHECK;
/** fb_ini_parse() of a file. @return also -errno of reading it, -EFBIG over FB_INI_MAX_BYTES (exit
 * 2)
 */
int fb_ini_load(const char *path, fb_ini_key *key, void *arg, struct fb_err *e) FB_MUST_CHECK;

#endif
