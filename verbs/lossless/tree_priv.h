/* SPDX-License-Identifier: Apache-2.0 */
/* What the two makers of trees share: a folder that is written, and an interface's DCB answer. */
#ifndef VERBS_LOSSLESS_TREE_PRIV_H
#define VERBS_LOSSLESS_TREE_PRIV_H

#include <stddef.h>

#include "bench/core/sysroot.h"
#include "verbs/lossless/dcb.h"

/** Make dir, or take it empty, and open it. */
int tree_open(struct fb_sysroot *r, const char *dir, struct fb_err *e) FB_MUST_CHECK;
/** Folders of `path` inside the tree, itself too when `all`. */
int tree_mkdir(
	const struct fb_sysroot *r, const char *path, bool all, struct fb_err *e) FB_MUST_CHECK;
int tree_write(const struct fb_sysroot *r, const char *path, const void *data, size_t len,
	struct fb_err *e) FB_MUST_CHECK;
/** A link to `target`, a path inside the tree; stored relative, so that the tree may be moved. */
int tree_link(const struct fb_sysroot *r, const char *path, const char *target,
	struct fb_err *e) FB_MUST_CHECK;

/** The kernel's answer to IEEE_GET of d: what is FACT_KNOWN becomes an attribute. @return bytes
 * used of buf, 0 when it is too small */
size_t tree_dcb_ieee(const struct dcb_facts *d, const char *ifname, char *buf, size_t len);
size_t tree_dcb_dcbx(const struct dcb_facts *d, const char *ifname, char *buf, size_t len);
/** NLMSG_ERROR with -code. */
size_t tree_dcb_error(int code, char *buf, size_t len);

#endif
