// SPDX-License-Identifier: Apache-2.0
/*
 * The logger. Its state is the one global that DESIGN.md allows: a level, a prefix, and whether a
 * progress line stands on the terminal. Each line is written by one write(2), so lines of threads
 * do not mix.
 */
#include "bench/core/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int log_level = FB_LOG_WARN;
static _Atomic bool progress_stands;
static char log_prefix[64];

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void fb_log_set_level(enum fb_log_level level)
{
	log_level = (int)level;
}

void fb_log_init(void)
{
	const char *s = getenv("FABRICBENCH_LOG");
	if (!s || !*s)
		return;
	for (int i = 0; i < 4; i++) {
		if (strcmp(s, level_names[i]) == 0) {
			log_level = i;
			return;
		}
	}
	fb_warn("FABRICBENCH_LOG=%s is not one of error, warn, info, debug; ignored", s);
}

void fb_log_set_prefix(const char *prefix)
{
	snprintf(log_prefix, sizeof(log_prefix), "%s", prefix ? prefix : "");
}

bool fb_log_enabled(enum fb_log_level level)
{
	return (int)level <= log_level;
}

static void write_line(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, line, len);
		if (n <= 0)
			return; /* nobody reads our messages: nothing better can be done */
		line += n;
		len -= (size_t)n;
	}
}

/* Messages quote files and children: no byte of theirs steers the terminal. Lines stay lines. */
static void tame(char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i],
			      next = i + 1 < len ? (unsigned char)s[i + 1] : 0;
		bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
		if (c1)
			s[i + 1] = '?';
		if (c1 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\t'))
			s[i] = '?';
	}
}

void fb_log(enum fb_log_level level, const char *fmt, ...)
{
	if (!fb_log_enabled(level))
		return;
	char line[2048];
	fb_progress_end();
	int n = snprintf(line, sizeof(line), "fabricbench%s%s: %s: ", log_prefix[0] ? " " : "",
		log_prefix, level_names[level]);
	va_list ap;
	va_start(ap, fmt);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	tame(line, len);
	line[len++] = '\n';
	write_line(line, len);
}

void fb_log_err(const struct fb_err *e)
{
	char buf[sizeof(e->msg) + sizeof(e->hint) + 16];
	fb_error("%s", fb_err_str(e, buf, sizeof(buf)));
}

void fb_progress(const char *fmt, ...)
{
	if (!isatty(STDERR_FILENO) || !fb_log_enabled(FB_LOG_WARN))
		return;
	char line[256];
	int n = snprintf(line, sizeof(line), "\r\033[K");
	va_list ap;
	va_start(ap, fmt);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);
	write_line(line, len < sizeof(line) ? len : sizeof(line) - 1);
	progress_stands = true;
}

void fb_progress_end(void)
{
	if (progress_stands) {
		progress_stands = false;
		write_line("\r\033[K", 4);
	}
}
