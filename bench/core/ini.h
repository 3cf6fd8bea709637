/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI files of this suite, by libinih: "[section]", "key = value", comments from # or ; at a line's
 * start, and from a ; after white space. Multi-line values are off; a line the library would cut
 * silently, a control character, or a line that is neither is refused with its number. Plans, whose
 * values may hold a ;, have a reader of their own (plan.h).
 */
#ifndef FB_CORE_INI_H
#define FB_CORE_INI_H

#include <stddef.h>

#include "bench/core/err.h"

#define FB_INI_MAX_LINE    190   /**< bytes; libinih's own buffer has 200 */
#define FB_INI_MAX_SECTION 48    /**< bytes of a section's name; libinih cuts at 50 */
#define FB_INI_MAX_BYTES   65536 /**< of a file */

struct fb_ini {
	const char *name; /**< of the file, for messages */
	unsigned line;    /**< of the key being read */
	struct fb_err *e; /**< for fb_ini_bad() */
	int rc;
};

/** One key. `section` is "" before the first one. @return 0, or fb_ini_bad()'s */
typedef int fb_ini_key(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value);

/** Fill *e with "FILE:LINE: ..." (exit 2). @return -EINVAL */
int fb_ini_bad(struct fb_ini *ini, const char *fmt, ...) FB_PRINTF(2, 3);

/**
 * Call `key` for every key in order. A section that is opened and has no key is not reported.
 * @return 0; -EINVAL with file, line and cause (exit 2); the first error of `key`
 */
int fb_ini_parse(const char *text, size_t len, const char *name, fb_ini_key *key, void *arg,
	struct fb_err *e) FB_MUST_CHECK;
/** The same from a file. @return also -errno of reading it, -EFBIG over FB_INI_MAX_BYTES (exit 2)
 */
int fb_ini_load(const char *path, fb_ini_key *key, void *arg, struct fb_err *e) FB_MUST_CHECK;

#endif
