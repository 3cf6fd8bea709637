// SPDX-License-Identifier: Apache-2.0
/*
 * Pieces of HTML. Everything formatted here is escaped; markup itself is written by
 * fb_strbuf_add() with constant strings only. All elements are closed, so that the page is
 * well-formed XML too and a test can prove it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/report_priv.h"

#define IMAGE_MAX (16u << 20)

static void FB_PRINTF(2, 0) add_escaped(struct fb_strbuf *b, const char *fmt, va_list ap)
{
	struct fb_strbuf raw = {0};
	fb_strbuf_vprintf(&raw, fmt, ap);
	if (raw.s)
		fb_strbuf_add_xml(b, raw.s);
	b->failed = b->failed || raw.failed;
	fb_strbuf_free(&raw);
}

void rep_text(struct fb_strbuf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add_escaped(b, fmt, ap);
	va_end(ap);
}

void rep_tag(struct fb_strbuf *b, const char *tag, const char *cls, const char *fmt, ...)
{
	va_list ap;
	fb_strbuf_printf(b, cls ? "<%s class=\"%s\">" : "<%s>", tag, cls);
	va_start(ap, fmt);
	add_escaped(b, fmt, ap);
	va_end(ap);
	fb_strbuf_printf(b, "</%s>", tag);
}

void rep_fact(struct fb_strbuf *b, const char *name, const char *fmt, ...)
{
	struct fb_strbuf raw = {0};
	va_list ap;
	va_start(ap, fmt);
	fb_strbuf_vprintf(&raw, fmt, ap);
	va_end(ap);
	if (raw.s && raw.len > 0) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "th", NULL, "%s", name);
		rep_tag(b, "td", NULL, "%s", raw.s);
		fb_strbuf_add(b, "</tr>\n");
	}
	b->failed = b->failed || raw.failed;
	fb_strbuf_free(&raw);
}

static void base64(struct fb_strbuf *b, const unsigned char *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)(i + 1 < n ? p[i + 1] : 0) << 8 |
			     (uint32_t)(i + 2 < n ? p[i + 2] : 0);
		char out[4] = {digits[v >> 18], digits[v >> 12 & 63],
			i + 1 < n ? digits[v >> 6 & 63] : '=', i + 2 < n ? digits[v & 63] : '='};
		fb_strbuf_addn(b, out, 4);
	}
}

/* An SVG as an image runs no script and loads nothing; two of them cannot share an id. */
bool rep_html_image(struct fb_strbuf *b, const char *path, const char *alt)
{
	char *text = NULL;
	size_t len = 0;
	if (!path[0] || fb_read_file(path, IMAGE_MAX, &text, &len, NULL) != 0)
		return false;
	fb_strbuf_add(b, "<img alt=\"");
	fb_strbuf_add_xml(b, alt);
	fb_strbuf_add(b, "\" src=\"data:image/svg+xml;base64,");
	base64(b, (const unsigned char *)text, len);
	fb_strbuf_add(b, "\"/>");
	free(text);
	return true;
}
