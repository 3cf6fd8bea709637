// SPDX-License-Identifier: Apache-2.0
/* How every command ends when it fails. */
#include "bench/core/cmd.h"

#include "bench/core/err.h"
#include "bench/core/log.h"

int fb_cmd_fail(const struct fb_err *e)
{
	fb_log_err(e);
	return e->exit != FB_EXIT_OK ? (int)e->exit : FB_EXIT_UNMEASURED;
}
