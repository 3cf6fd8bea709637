// SPDX-License-Identifier: Apache-2.0
/*
 * Comma-separated values, one record at a time. Input is not trusted: a record is bounded, and one
 * that cannot be read costs its first line only, so that a quote left open does not swallow the
 * file. Knows nothing of columns.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

const char *csv_shown(const char *s, char *buf, size_t len)
{
	size_t used = 0;
	for (size_t i = 0; s[i] != '\0'; i++) {
		unsigned char ch = (unsigned char)s[i];
		char one[8];
		if (i == 40) {
			snprintf(buf + used, len - used, "...");
			return buf;
		}
		if (ch >= 0x20 && ch < 0x7f)
			snprintf(one, sizeof(one), "%c", ch);
		else
			snprintf(one, sizeof(one), "\\x%02x", ch);
		if (used + strlen(one) + 4 >= len)
			break;
		used += (size_t)snprintf(buf + used, len - used, "%s", one);
	}
	buf[used] = '\0';
	return buf;
}

/* The end of the line at pos: of its text, before CR and LF. *next: where the next one begins. */
static size_t line_end(const struct csv *c, size_t pos, size_t *next)
{
	const char *nl = memchr(c->text + pos, '\n', c->len - pos);
	size_t end = nl ? (size_t)(nl - c->text) : c->len;
	*next = nl ? end + 1 : c->len;
	return end > pos && c->text[end - 1] == '\r' ? end - 1 : end;
}

static int bad_record(
	struct csv *c, struct csv_record *r, size_t start, struct fb_err *e, const char *why)
{
	size_t next;
	fb_fail_usage(e, "%s: line %u, column %zu: %s", c->name, r->line, r->n + 1, why);
	fb_hint(e,
		"fields are parted by commas; one that holds a comma or a quote stands in double "
		"quotes, with quotes in it doubled; texts are UTF-8 without control characters");
	line_end(c, start, &next);
	c->pos = next;
	c->line = r->line + 1;
	return -EINVAL;
}

static bool ends_line(const struct csv *c, size_t pos)
{
	return pos >= c->len || c->text[pos] == '\n' ||
	       (c->text[pos] == '\r' && pos + 1 < c->len && c->text[pos + 1] == '\n');
}

/* The field at c->pos into the store. @return NULL, or why it cannot be */
static const char *read_field(struct csv *c, struct csv_record *r, size_t *used)
{
	bool quoted = c->pos < c->len && c->text[c->pos] == '"', closed = false;
	char *out = r->store + *used;
	size_t n = 0;
	c->pos += quoted;
	while (c->pos < c->len) {
		char ch = c->text[c->pos];
		if (quoted && ch == '"') {
			if (c->pos + 1 >= c->len || c->text[c->pos + 1] != '"') {
				closed = true;
				c->pos++;
				break;
			}
			c->pos++;
		} else if (!quoted && (ch == ',' || ends_line(c, c->pos))) {
			break;
		}
		if (*used + n + 1 >= CSV_MAX_RECORD)
			return quoted ? "a quote that is opened here is not closed within 16 KiB"
				      : "the row is longer than 16 KiB";
		if (ch == '\n')
			c->line++;
		if (((unsigned char)ch < 0x20 && ch != '\t' &&
			    !(quoted && (ch == '\n' || ch == '\r'))) ||
			ch == 0x7f)
			return "a control character";
		out[n++] = ch;
		c->pos++;
	}
	out[n] = '\0';
	if (quoted && !closed)
		return "a quote that is opened here is never closed";
	if (quoted && !ends_line(c, c->pos) && c->text[c->pos] != ',')
		return "text after a closing quote";
	json_t *utf8 = json_stringn(out, n);
	if (!utf8)
		return "not valid UTF-8";
	json_decref(utf8);
	*used += n + 1;
	r->field[r->n] = out;
	return NULL;
}

/* Past the byte-order mark, blank lines and comments. */
static void skip_lines(struct csv *c)
{
	if (c->pos == 0 && c->len >= 3 && memcmp(c->text, "\xef\xbb\xbf", 3) == 0)
		c->pos = 3;
	while (c->pos < c->len) {
		size_t next, end = line_end(c, c->pos, &next);
		if (end > c->pos && c->text[c->pos] != '#')
			return;
		c->pos = next;
		c->line++;
	}
}

int csv_next(struct csv *c, struct csv_record *r, struct fb_err *e)
{
	size_t used = 0;
	skip_lines(c);
	r->line = c->line;
	r->n = 0;
	if (c->pos >= c->len)
		return 0;
	for (size_t start = c->pos;;) {
		if (r->n == CSV_MAX_FIELDS)
			return bad_record(c, r, start, e, "more columns than any table here has");
		const char *why = read_field(c, r, &used);
		if (why)
			return bad_record(c, r, start, e, why);
		r->n++;
		if (c->pos < c->len && c->text[c->pos] == ',') {
			c->pos++;
			continue;
		}
		break;
	}
	size_t next;
	line_end(c, c->pos, &next);
	c->pos = next;
	c->line++;
	return 1;
}
