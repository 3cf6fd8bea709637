/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded machines. A `.tree` file describes one as text (testdata/README.md has the format) and
 * expands into the folder that --sysroot takes, netlink answers included.
 */
#ifndef VERBS_LOSSLESS_TREE_H
#define VERBS_LOSSLESS_TREE_H

#include "bench/core/cmd.h"
#include "bench/core/err.h"

/**
 * Write what the file describes into dir, which is made; it may exist while it is empty.
 * @return 0; -EINVAL with "file:line: why" (exit 2); -ENOTEMPTY; -errno of what could not be
 * written
 */
int tree_expand(const char *file, const char *dir, struct fb_err *e) FB_MUST_CHECK;

/** Hidden: `tree expand FILE DIR`. */
extern const struct fb_cmd tree_cmd;

#endif
