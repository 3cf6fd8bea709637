/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing string. Allocation failure is remembered (`failed`) and reported once, by
 * fb_strbuf_take().
 */
#ifndef FB_CORE_STRBUF_H
#define FB_CORE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/core/err.h"

struct fb_strbuf {
	char *s;    /**< NUL-terminated, or NULL while empty */
	size_t len; /**< bytes without the NUL */
	size_t cap;
	bool failed;
};

/** Each appends. `s` may hold anything but a NUL; fb_strbuf_addn() takes `n` bytes as they are. */
void fb_strbuf_printf(struct fb_strbuf *b, const char *fmt, ...) FB_PRINTF(2, 3);
void fb_strbuf_vprintf(struct fb_strbuf *b, const char *fmt, va_list ap) FB_PRINTF(2, 0);
void fb_strbuf_add(struct fb_strbuf *b, const char *s);
void fb_strbuf_addn(struct fb_strbuf *b, const void *s, size_t n);
/** Text with &, <, >, " and ' escaped for HTML and XML; control characters that XML 1.0 forbids
 * become U+FFFD. */
void fb_strbuf_add_xml(struct fb_strbuf *b, const char *s);
/** Hand the string over (caller frees it with free()); NULL when an allocation failed. The buffer
 * is empty after. */
char *fb_strbuf_take(struct fb_strbuf *b);
void fb_strbuf_free(struct fb_strbuf *b);

/** Bytes of the UTF-8 character at s, 1 to 4; 0: it is none (Table 3-7 of the Unicode standard). */
size_t fb_utf8_len(const char *s);

/** `text` for a terminal, which it must not steer: control characters, and bytes that are no UTF-8,
 * as \xNN; cut to fit. @return buf */
const char *fb_safe_text(const char *text, char *buf, size_t len);

/** Text into a cell of a Markdown table: neither a bar, a line's end nor markup may leave it; what
 * is no character, or a control, becomes U+FFFD. */
void fb_markdown_cell(FILE *out, const char *text);

#endif
