/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few JSON habits of this project, over jansson. All numbers go through fb_json_real(): jansson
 * refuses NaN and Inf (json_pack then returns NULL and the whole object is lost).
 */
#ifndef FB_CORE_JSON_H
#define FB_CORE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

/** A JSON number; null when v is NaN or infinite. New reference. */
json_t *fb_json_real(double v);
/** obj[key] = v; when v is not finite: null, and obj[key"_reason"] = reason. */
void fb_json_set_real(json_t *obj, const char *key, double v, const char *reason);
void fb_json_set_int(json_t *obj, const char *key, int64_t v);
/** obj[key] = s; invalid UTF-8 bytes become U+FFFD; NULL sets nothing (absent, not empty). */
void fb_json_set_str(json_t *obj, const char *key, const char *s);
void fb_json_set_bool(json_t *obj, const char *key, int v);

/** Borrowed getters with a default; a wrong type counts as absent. */
const char *fb_json_str(const json_t *obj, const char *key, const char *def);
int64_t fb_json_int(const json_t *obj, const char *key, int64_t def);
double fb_json_num(const json_t *obj, const char *key, double def);

/** The same value? As json_equal(), but absent (NULL) is the same as absent, and 0 as 0.0: which of
 * them a number is written as depends on the program that wrote it last. */
bool fb_json_same(const json_t *a, const json_t *b);

/** Parse with duplicates rejected. @return new reference, NULL with "name:line:column: why" (exit
 * 2) */
json_t *fb_json_parse(const char *text, size_t len, const char *name, struct fb_err *e);
/** Read a whole regular file of at most max bytes; caller frees. @return 0, -errno, -EFBIG */
int fb_read_file(
	const char *path, size_t max, char **text, size_t *len, struct fb_err *e) FB_MUST_CHECK;
/** Temporary file beside path, fsync, rename, fsync of the folder. @return 0 or -errno */
int fb_write_file_atomic(
	const char *path, const void *data, size_t len, struct fb_err *e) FB_MUST_CHECK;

#endif
