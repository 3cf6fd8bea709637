/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping: signals and the deadline of the whole command, received by one thread of their own, so
 * that no code of ours ever runs in a signal handler and a measuring thread is never interrupted.
 *
 * SIGINT, SIGTERM, SIGHUP or the deadline make fb_stop_requested() (result.h) true. Whoever waits
 * looks at it and ends in order. A process that has not ended within the grace (400 ms) says its
 * last words, which leave a valid document, and ends with status 3.
 */
#ifndef FB_CORE_STOP_H
#define FB_CORE_STOP_H

#include <stdint.h>

#include "bench/core/err.h"

enum fb_stop { FB_STOP_NONE, FB_STOP_SIGNAL, FB_STOP_DEADLINE };

/**
 * Block the signals in this thread and all that it starts, and start the thread that receives them.
 * Call before any other thread is started. Later calls do nothing. fb_doc_new() calls it; commands
 * without a document (servers, ranks other than 0) call it themselves.
 * @return 0, or -errno with *e
 */
int fb_stop_watch(struct fb_err *e) FB_MUST_CHECK;
/** End that thread and unblock the signals. A stop that was requested stays known until the next
 * fb_stop_watch(). fb_doc_free() calls it. */
void fb_stop_unwatch(void);

/** The whole command ends at this absolute fb_clock_ns(); 0 takes it back. */
void fb_stop_set_deadline(uint64_t deadline_ns);
/** Time between a request to stop and the last words (400 ms); longer for a command that has
 * children to end. */
void fb_stop_set_grace(uint64_t ns);
/**
 * What to do when the grace is over, just before the process ends: runs on the watching thread.
 * NULL takes it back; once this returns, fn is not running and will not run.
 */
void fb_stop_set_last_words(void (*fn)(void *arg), void *arg);
/** Why a stop was requested; *sig gets the signal (0 for the deadline). sig may be NULL. */
enum fb_stop fb_stop_reason(int *sig);
/** "SIGTERM" */
const char *fb_stop_signal_name(int sig);

#endif
