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

size_t fb_utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char lo = 0x80, hi = 0xbf;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	size_t n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Bytes of the character at s; 0: it is not UTF-8 (a text that was cut in a character), or none of
 * XML (controls, U+FFFE, U+FFFF). */
static size_t xml_char(const char *s)
{
	size_t n = fb_utf8_len(s);
	if (n == 1 && (unsigned char)*s < 0x20 && !strchr("\t\n\r", *s))
		return 0;
	return n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (unsigned char)s[2] > 0xbd ? 0 : n;
}

void fb_strbuf_add_xml(struct fb_strbuf *b, const char *s)
{
	while (*s) {
		size_t n = xml_char(s);
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

const char *fb_safe_text(const char *s, char *buf, size_t len)
{
	size_t k = 0, n;
	for (; *s; s += n ? n : 1) {
		n = fb_utf8_len(s);
		/* U+0080 to U+009F steer a terminal as ESC does. */
		if ((n == 1 && ((unsigned char)*s < 0x20 || *s == 0x7f)) ||
			(n == 2 && memcmp(s, "\xc2\xa0", 2) < 0))
			n = 0;
		if (k + (n ? n : 4) >= len)
			break;
		if (n > 0)
			memcpy(buf + k, s, n);
		else
			snprintf(buf + k, len - k, "\\x%02x", (unsigned char)*s);
		k += n ? n : 4;
	}
	buf[k] = '\0';
	return buf;
}

void fb_markdown_cell(FILE *out, const char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = xml_char(text);
		if (*text == '\n' || *text == '\r')
			fputc(' ', out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (strchr("|`*_[]\\", *text))
			fprintf(out, "\\%c", *text);
		else if (n)
			fwrite(text, 1, n, out);
		else
			fputs("\xef\xbf\xbd", out);
	}
}
