/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded machines. A `.tree` file describes one as text (testdata/README.md has the format) and
 * expands into the folder that --sysroot takes, netlink answers included; tree_record()
 * makes such a folder of the machine it runs on.
 */
#ifndef VERBS_LOSSLESS_TREE_H
#define VERBS_LOSSLESS_TREE_H

#include <stdbool.h>

#include "bench/core/cmd.h"
#include "bench/core/err.h"

/**
 * Write what the file describes into dir, which is made; it may exist while it is empty.
 * @return 0; -EINVAL with "file:line: why" (exit 2); -ENOTEMPTY; -errno of what could not be
 * written
 */
int tree_expand(const char *file, const char *dir, struct fb_err *e) FB_MUST_CHECK;

/**
 * Record this machine into dir (as above), reading only. Without with_names no address, GUID, MAC
 * or host name is written: they are replaced by made ones of the same kind, the same one each time.
 * @return 0; -ENOTEMPTY; -errno of what could not be written
 */
int tree_record(const char *dir, bool with_names, struct fb_err *e) FB_MUST_CHECK;

/** Hidden: `tree expand FILE DIR`, `tree record DIR [--with-names]`. */
extern const struct fb_cmd tree_cmd;

#endif
