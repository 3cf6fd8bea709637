// SPDX-License-Identifier: Apache-2.0
/* See ini.h. The library is fed line by line, so that each message has its line. */
#include "bench/core/ini.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

struct reader {
	struct fb_ini ini;
	const char *text, *end;
	fb_ini_key *key;
	void *arg;
};

int fb_ini_bad(struct fb_ini *ini, const char *fmt, ...)
{
	char why[500];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (ini->rc == 0)
		ini->rc = fb_fail_usage(ini->e, "%s:%u: %s", ini->name, ini->line, why);
	return ini->rc;
}

/* libinih takes 0 for an error. */
static int on_key(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;
	if (r->ini.rc == 0) {
		int rc = r->key(&r->ini, r->arg, section, name, value);
		if (r->ini.rc == 0)
			r->ini.rc = rc;
	}
	return r->ini.rc == 0;
}

/* libinih's fgets. White space before a line is cut: to the library it would be a continuation. */
static char *next_line(char *out, int cap, void *arg)
{
	struct reader *r = arg;
	if (r->ini.rc != 0 || r->text >= r->end)
		return NULL;
	const char *s = r->text, *nl = memchr(s, '\n', (size_t)(r->end - s));
	const char *stop = nl ? nl : r->end;
	r->text = nl ? nl + 1 : r->end;
	r->ini.line++;
	while (s < stop && isspace((unsigned char)*s))
		s++;
	while (stop > s && isspace((unsigned char)stop[-1]))
		stop--;
	size_t n = (size_t)(stop - s);
	/* Comments are for people, and may be as long as they like. */
	if (n > 0 && (*s == '#' || *s == ';'))
		n = 0;
	if (n > FB_INI_MAX_LINE || (int)n + 2 > cap) {
		fb_ini_bad(&r->ini, "the line has %zu bytes; it may have %d", n, FB_INI_MAX_LINE);
		return NULL;
	}
	const char *close = n > 0 && *s == '[' ? memchr(s, ']', n) : NULL;
	if (close && close - s - 1 > FB_INI_MAX_SECTION) {
		fb_ini_bad(&r->ini, "the section's name has %td bytes; it may have %d",
			close - s - 1, FB_INI_MAX_SECTION);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 && s[i] != '\t') {
			fb_ini_bad(&r->ini, "control character 0x%02x", (unsigned char)s[i]);
			return NULL;
		}
	memcpy(out, s, n);
	out[n] = '\n';
	out[n + 1] = '\0';
	return out;
}

int fb_ini_parse(const char *text, size_t len, const char *name, fb_ini_key *key, void *arg,
	struct fb_err *e)
{
	struct reader r = {.ini = {.name = name, .e = e},
		.text = text,
		.end = text + len,
		.key = key,
		.arg = arg};
	int line = ini_parse_stream(next_line, &r, on_key, &r);
	if (r.ini.rc == 0 && line != 0) {
		r.ini.line = (unsigned)line;
		fb_ini_bad(&r.ini, "neither a comment, nor [SECTION], nor KEY = VALUE");
	}
	return r.ini.rc;
}

int fb_ini_load(const char *path, fb_ini_key *key, void *arg, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	int rc = fb_read_file(path, FB_INI_MAX_BYTES, &text, &len, e);
	if (rc == 0)
		rc = fb_ini_parse(text, len, path, key, arg, e);
	free(text);
	return rc;
}
