/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI files that come with the program: profiles, expectations. They lie in the tree's scripts/,
 * or in share/fabricbench/ of what is installed or unpacked.
 */
#ifndef FB_CORE_SHIPPED_H
#define FB_CORE_SHIPPED_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/core/strbuf.h"

/** Path of NAME.ini of a kind ("profiles", "expect"), the nearest place first. @return false: there
 * is none */
bool fb_shipped(const char *kind, const char *name, char *path, size_t len);
/** "a, b, c": the names of a kind; nothing where none is installed. */
void fb_shipped_names(const char *kind, struct fb_strbuf *out);

#endif
