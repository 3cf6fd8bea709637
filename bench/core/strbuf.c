// SPDX-License-Identifier: Apache-2.0
/* A growing string; see strbuf.h. */
#include "bench/core/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct fb_strbuf *b, size_t more)
{
	if (b->failed)
		return false;
	if (b->len + more + 1 <= b->cap)
		return true;
	size_t cap = b->cap ? b->cap : 128;
	while (cap < b->len + more + 1)
		cap *= 2;
	char *s = realloc(b->s, cap);
	if (!s) {
		b->failed = true;
		return false;
	}
	b->s = s;
	b->cap = cap;
	return true;
}

void fb_strbuf_addn(struct fb_strbuf *b, const void *s, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n > 0)
		memcpy(b->s + b->len, s, n);
	b->len += n;
	b->s[b->len] = '\0';
}

void fb_strbuf_add(struct fb_strbuf *b, const char *s)
{
	fb_strbuf_addn(b, s, strlen(s));
}

void fb_strbuf_vprintf(struct fb_strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || !reserve(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	vsnprintf(b->s + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void fb_strbuf_printf(struct fb_strbuf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fb_strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

/* Bytes of the character at s; 0: it is not UTF-8 (a text that was cut in a character), or none of
 * XML (controls, U+FFFE, U+FFFF). */
static size_t xml_char(const unsigned char *s)
{
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	if (n == 1)
		return s[0] >= 0x20 || s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
			      (s[0] == 0xef && s[1] == 0xbf && s[2] > 0xbd)))
		return 0;
	if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)))
		return 0;
	return n;
}

void fb_strbuf_add_xml(struct fb_strbuf *b, const char *s)
{
	while (*s) {
		size_t n = xml_char((const unsigned char *)s);
		switch (*s) {
		case '&': fb_strbuf_add(b, "&amp;"); break;
		case '<': fb_strbuf_add(b, "&lt;"); break;
		case '>': fb_strbuf_add(b, "&gt;"); break;
		case '"': fb_strbuf_add(b, "&quot;"); break;
		case '\'': fb_strbuf_add(b, "&#39;"); break;
		default:
			if (n)
				fb_strbuf_addn(b, s, n);
			else
				fb_strbuf_add(b, "\xef\xbf\xbd");
		}
		s += n ? n : 1;
	}
}

char *fb_strbuf_take(struct fb_strbuf *b)
{
	if (!b->failed && !b->s)
		reserve(b, 0);
	if (b->failed || !b->s) {
		fb_strbuf_free(b);
		return NULL;
	}
	char *s = b->s;
	s[b->len] = '\0';
	memset(b, 0, sizeof(*b));
	return s;
}

void fb_strbuf_free(struct fb_strbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}

void fb_markdown_cell(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n' || *text == '\r')
			fputc(' ', out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (strchr("|`*_[]\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}
