/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one door to /sys and /proc (later netlink and ethtool): --sysroot DIR redirects it to a
 * recorded tree, so that any machine can be examined on any machine. Paths given here are absolute
 * ("/sys/class/net"); `..` never leaves the tree, and symbolic links inside a recorded tree are
 * followed within it.
 */
#ifndef FB_CORE_SYSROOT_H
#define FB_CORE_SYSROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

struct fb_sysroot {
	char *dir;  /**< NULL: the live machine */
	char *temp; /**< private folder of an unpacked tar file, removed on close; NULL: none */
	int top;    /**< dir held open: its descriptor and one; 0: not, and paths are walked */
};

/**
 * @param dir a recorded tree's top folder, or a tar file of one (sysroot_tar.h); NULL or "/": live
 * @return 0, -ENOENT, -EINVAL, and sysroot_tar.h's errors, with *e (exit 2, or 3)
 */
int fb_sysroot_open(struct fb_sysroot *r, const char *dir, struct fb_err *e) FB_MUST_CHECK;
void fb_sysroot_close(struct fb_sysroot *r);
bool fb_sysroot_is_live(const struct fb_sysroot *r);
/** Real path of `path` in the tree, for libraries that take one (hwloc). @return 0 or -ENAMETOOLONG
 */
int fb_sysroot_path(const struct fb_sysroot *r, const char *path, char *buf, size_t len);

/** Read a small file, trailing white space cut, at most len-1 bytes. @return its length, or -errno
 * (EINVAL from an empty GID slot too) */
int fb_sysroot_read(const struct fb_sysroot *r, const char *path, char *buf, size_t len);
/** printf-like path. */
int fb_sysroot_readf(const struct fb_sysroot *r, char *buf, size_t len, const char *fmt, ...)
	FB_PRINTF(4, 5);
/** Read an integer (decimal or 0x). @return 0, -errno, -EINVAL */
int fb_sysroot_read_i64(const struct fb_sysroot *r, int64_t *v, const char *fmt, ...)
	FB_PRINTF(3, 4);
bool fb_sysroot_exists(const struct fb_sysroot *r, const char *fmt, ...) FB_PRINTF(2, 3);
/** Target of a symbolic link, resolved to a path inside the tree ("/sys/devices/..."). @return 0 or
 * -errno */
int fb_sysroot_realpath(const struct fb_sysroot *r, const char *path, char *buf, size_t len);
/** Sorted (numbers in order) names in a folder, without . and ..; NULL-terminated; free by
 * fb_sysroot_names_free(). @return count or -errno */
int fb_sysroot_list(const struct fb_sysroot *r, const char *path, char ***names);
void fb_sysroot_names_free(char **names);

#endif
