// SPDX-License-Identifier: Apache-2.0
/*
 * Errors with cause and remedy. Also compiled into every plug-in, so it may use libc only.
 */
#include "bench/core/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FB_PRINTF(4, 0) int fail_v(
	struct fb_err *e, enum fb_exit status, int code, const char *fmt, va_list ap)
{
	code = code < 0 ? code : -code;
	if (code == 0)
		code = -EIO;
	if (!e || e->code != 0)
		return code;
	e->code = code;
	e->exit = status;
	e->hint[0] = '\0';
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	return code;
}

int fb_fail(struct fb_err *e, enum fb_exit status, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = fail_v(e, status, code, fmt, ap);
	va_end(ap);
	return rc;
}

int fb_fail_usage(struct fb_err *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = fail_v(e, FB_EXIT_USAGE, EINVAL, fmt, ap);
	va_end(ap);
	return rc;
}

void fb_hint(struct fb_err *e, const char *fmt, ...)
{
	if (!e || e->code == 0 || e->hint[0] != '\0')
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
}

void fb_err_clear(struct fb_err *e)
{
	if (e)
		memset(e, 0, sizeof(*e));
}

const char *fb_err_str(const struct fb_err *e, char *buf, unsigned len)
{
	if (len == 0)
		return buf;
	if (!e || e->code == 0)
		snprintf(buf, len, "no error");
	else if (e->hint[0] != '\0')
		snprintf(buf, len, "%s\n  remedy: %s", e->msg, e->hint);
	else
		snprintf(buf, len, "%s", e->msg);
	return buf;
}
