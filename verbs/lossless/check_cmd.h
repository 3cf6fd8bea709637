/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fabricbench check`: which sub-commands it has. What a check looks at is in checks.h, where its
 * windows of time come from in live.h and drive.h.
 */
#ifndef VERBS_LOSSLESS_CHECK_CMD_H
#define VERBS_LOSSLESS_CHECK_CMD_H

#include "bench/core/cmd.h"

/** The group: check roce, check ib, check all, check node, check switch; without a second word:
 * --list, --explain ID. */
extern const struct fb_cmd check_cmd;

#endif
