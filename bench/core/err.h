/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with cause and remedy.
 *
 * A `struct fb_err` is filled once, by the first place that knows the cause. Every later fb_fail()
 * on the same struct keeps the first text. It holds no pointers: copy it, send it, drop it.
 */
#ifndef FB_CORE_ERR_H
#define FB_CORE_ERR_H

#include <stdarg.h>

/** Exit status of every command (DESIGN.md, "Exit status"). */
enum fb_exit {
	FB_EXIT_OK = 0,         /**< fine, accepted */
	FB_EXIT_FAILED = 1,     /**< a check or gate failed, rejected */
	FB_EXIT_USAGE = 2,      /**< usage or unreadable input */
	FB_EXIT_UNMEASURED = 3, /**< could not measure or judge: peer lost, timeout, incomplete */
	FB_EXIT_WRONG_DATA = 4, /**< data arrived wrong */
	FB_EXIT_SKIP = 77,      /**< not available here and nobody required it */
};

struct fb_err {
	int code;          /**< negative errno, 0: no error */
	enum fb_exit exit; /**< the exit status that this error deserves */
	char msg[768];     /**< what was tried, on what, and why it failed; one line */
	char hint[512];    /**< what helps: a command or an option; may be empty */
};

#define FB_MUST_CHECK        __attribute__((warn_unused_result))
#define FB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/**
 * Record an error unless one is already recorded.
 * @param e     may be NULL: the text is then lost, the code is returned all the same
 * @param exit  exit status the error deserves
 * @param code  an errno, either sign
 * @return -|code|, so that `return fb_fail(...)` reads well
 */
int fb_fail(struct fb_err *e, enum fb_exit exit, int code, const char *fmt, ...) FB_PRINTF(4, 5);

/** fb_fail() for usage and unreadable input: -EINVAL, exit 2. */
int fb_fail_usage(struct fb_err *e, const char *fmt, ...) FB_PRINTF(2, 3);

/** Add the remedy to the recorded error, unless it has one. Does nothing without an error. */
void fb_hint(struct fb_err *e, const char *fmt, ...) FB_PRINTF(2, 3);

/** Forget the error (for code that tries alternatives). */
void fb_err_clear(struct fb_err *e);

/** Render "msg\n  remedy: hint" (or only msg) into buf; always NUL-terminated. @return buf */
const char *fb_err_str(const struct fb_err *e, char *buf, unsigned len);

#endif
