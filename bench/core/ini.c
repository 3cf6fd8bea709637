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

/* Stands for a ';' that the library would take for a comment; no text holds it, as control
 * characters are refused. */
#define MARK '\x01'

struct reader {
	struct fb_ini ini;
	const char *text, *end;
	const struct fb_ini_form *form;
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

static void note(struct reader *r, int rc)
{
	if (r->ini.rc == 0)
		r->ini.rc = rc;
}

static void unmark(char *to, size_t cap, const char *from)
{
	size_t n = 0;
	for (; from[n] && n + 1 < cap; n++)
		to[n] = from[n] == MARK ? ';' : from[n];
	to[n] = '\0';
}

/* libinih takes 0 for an error. */
static int on_key(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;
	char key[FB_INI_MAX_LINE + 1], text[FB_INI_MAX_LINE + 1];
	if (r->ini.rc == 0) {
		unmark(key, sizeof(key), name);
		unmark(text, sizeof(text), value);
		note(r, r->form->key(&r->ini, r->arg, section, key, text));
	}
	return r->ini.rc == 0;
}

static void neither(struct reader *r)
{
	fb_ini_bad(&r->ini, "neither a comment, nor [SECTION], nor KEY = VALUE");
}

/* A line that begins with '['. */
static void on_section(struct reader *r, const char *s, size_t n)
{
	char name[FB_INI_MAX_LINE + 1];
	const char *close = memchr(s, ']', n);
	if (!close) {
		neither(r);
		return;
	}
	const char *after = close + 1, *end = s + n;
	while (after < end && isspace((unsigned char)*after))
		after++;
	/* The library would drop it. */
	if (after < end && *after != '#' && *after != ';') {
		fb_ini_bad(&r->ini, "behind [SECTION] stands \"%.*s\": a key has a line of its own",
			(int)(end - after), after);
		return;
	}
	size_t len = (size_t)(close - s - 1);
	memcpy(name, s + 1, len);
	name[len] = '\0';
	if (r->form->section)
		note(r, r->form->section(&r->ini, r->arg, name));
	if (len > FB_INI_MAX_SECTION)
		fb_ini_bad(&r->ini, "the section's name has %zu bytes; it may have %d", len,
			FB_INI_MAX_SECTION);
}

/* The next line without the white space around it: to the library a line that begins with some
 * would be a continuation. Comments are for people, and may be as long as they like: n is 0. */
static const char *take_line(struct reader *r, size_t *n)
{
	const char *s = r->text, *nl = memchr(s, '\n', (size_t)(r->end - s));
	const char *stop = nl ? nl : r->end;
	r->text = nl ? nl + 1 : r->end;
	r->ini.line++;
	while (s < stop && isspace((unsigned char)*s))
		s++;
	while (stop > s && isspace((unsigned char)stop[-1]))
		stop--;
	*n = s < stop && (*s == '#' || *s == ';') ? 0 : (size_t)(stop - s);
	return s;
}

/* libinih's fgets: one prepared line. Ends early once an error is recorded. */
static char *next_line(char *out, int cap, void *arg)
{
	struct reader *r = arg;
	size_t n;
	if (r->ini.rc != 0 || r->text >= r->end)
		return NULL;
	const char *s = take_line(r, &n);
	if (n > FB_INI_MAX_LINE || (int)n + 2 > cap)
		fb_ini_bad(&r->ini, "the line has %zu bytes; it may have %d", n, FB_INI_MAX_LINE);
	for (size_t i = 0; i < n && r->ini.rc == 0; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c < 0x20 && c != '\t')
			fb_ini_bad(&r->ini, "control character 0x%02x", c);
		out[i] = c == ';' && r->form->semicolons ? MARK : s[i];
	}
	/* The library reads on after a line that it refuses: the first fault is the one to tell. */
	if (r->ini.rc == 0 && n > 0 && *s == '[')
		on_section(r, s, n);
	else if (r->ini.rc == 0 && n > 0 && !memchr(s, '=', n) && !memchr(s, ':', n))
		neither(r);
	if (r->ini.rc != 0)
		return NULL;
	out[n] = '\n';
	out[n + 1] = '\0';
	return out;
}

int fb_ini_parse_form(const char *text, size_t len, const char *name,
	const struct fb_ini_form *form, void *arg, struct fb_err *e)
{
	static const char bom[] = {'\xef', '\xbb', '\xbf'}; /* some editors begin UTF-8 with it */
	struct reader r = {.ini = {.name = name, .e = e},
		.text = text,
		.end = text + len,
		.form = form,
		.arg = arg};
	/* The library passes over this as well, but would show us no section behind it. */
	if (len >= sizeof(bom) && memcmp(text, bom, sizeof(bom)) == 0)
		r.text += sizeof(bom);
	int line = ini_parse_stream(next_line, &r, on_key, &r);
	if (r.ini.rc == 0 && line != 0) {
		r.ini.line = (unsigned)line;
		neither(&r);
	}
	return r.ini.rc;
}

int fb_ini_parse(const char *text, size_t len, const char *name, fb_ini_key *key, void *arg,
	struct fb_err *e)
{
	const struct fb_ini_form form = {.key = key};
	return fb_ini_parse_form(text, len, name, &form, arg, e);
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
