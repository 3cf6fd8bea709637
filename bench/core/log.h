/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logger: one line per event on stderr, with level, host and rank when there are several ranks.
 * stdout is never touched: it carries the table or one JSON document.
 * Never call it inside a timed loop.
 */
#ifndef FB_CORE_LOG_H
#define FB_CORE_LOG_H

#include <stdbool.h>

#include "bench/core/err.h"

enum fb_log_level { FB_LOG_ERROR, FB_LOG_WARN, FB_LOG_INFO, FB_LOG_DEBUG };

/** Set the level (default WARN; FABRICBENCH_LOG=error|warn|info|debug is read by fb_log_init). */
void fb_log_set_level(enum fb_log_level level);
/** Read FABRICBENCH_LOG; unknown words are reported and ignored. */
void fb_log_init(void);
/** Prefix for every line, e.g. "rank 3"; copied (at most 63 bytes). NULL: none. */
void fb_log_set_prefix(const char *prefix);
bool fb_log_enabled(enum fb_log_level level);

void fb_log(enum fb_log_level level, const char *fmt, ...) FB_PRINTF(2, 3);
#define fb_error(...) fb_log(FB_LOG_ERROR, __VA_ARGS__)
#define fb_warn(...)  fb_log(FB_LOG_WARN, __VA_ARGS__)
#define fb_info(...)  fb_log(FB_LOG_INFO, __VA_ARGS__)
#define fb_debug(...) fb_log(FB_LOG_DEBUG, __VA_ARGS__)

/** Print a recorded error with its remedy at level ERROR. */
void fb_log_err(const struct fb_err *e);

/** Progress line on stderr ("\r...") when stderr is a terminal and the level allows; else nothing.
 */
void fb_progress(const char *fmt, ...) FB_PRINTF(1, 2);
/** End the progress line, if one stands. */
void fb_progress_end(void);

#endif
