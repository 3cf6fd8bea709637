// SPDX-License-Identifier: Apache-2.0
/*
 * Anonymous copies. Works on any JSON value: it must not know the document's shape beyond the names
 * of keys whose values are words of ours and never a site's.
 */
#include "bench/core/anon.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/core/strbuf.h"

/* A host may be called "lab" or "tcp": words of the schema stay what they are. */
static const char *const own_words[] = {"schema", "outcome", "command", "where", "metric", "unit",
	"better", "load", "sync", "state", "started", "ended", "version", "compiler", "cflags",
	"level", "evidence", NULL};
static const char *const identifying[] = {"guid", "node_guid", "sys_image_guid", "port_guid", "gid",
	"gids", "mac", "address", "addresses", "ip", "ips", "serial", "uuid", "machine_id", NULL};

static bool is_in(const char *const *words, const char *s)
{
	for (; *words; words++) {
		if (strcmp(*words, s) == 0)
			return true;
	}
	return false;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static int add_name(struct fb_anon *a, const char *name, size_t len, const char *as)
{
	for (size_t i = 0; i < a->n; i++) {
		if (strlen(a->v[i].from) == len && strncasecmp(a->v[i].from, name, len) == 0)
			return 0;
	}
	struct fb_anon_name *v = realloc(a->v, (a->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	a->v = v;
	v[a->n].from = strndup(name, len);
	v[a->n].to = strdup(as);
	if (!v[a->n].from || !v[a->n].to) {
		free(v[a->n].from);
		free(v[a->n].to);
		return -ENOMEM;
	}
	a->n++;
	return 0;
}

int fb_anon_hide(struct fb_anon *a, const char *name, const char *as)
{
	size_t len = strlen(name);
	if (len == 0 || strcmp(name, "localhost") == 0 || strspn(name, "0123456789.:") == len)
		return 0;
	int rc = add_name(a, name, len, as);
	size_t label = strcspn(name, ".");
	if (rc == 0 && label < len && label > 0)
		rc = add_name(a, name, label, as);
	return rc;
}

void fb_anon_free(struct fb_anon *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->v[i].from);
		free(a->v[i].to);
	}
	free(a->v);
	a->v = NULL;
	a->n = 0;
}

/* Length of a known host name at s, with the domain that follows it; *to gets its substitute. */
static size_t match_name(const struct fb_anon *a, const char *s, const char **to)
{
	size_t best = 0;
	for (size_t i = 0; i < a->n; i++) {
		size_t n = strlen(a->v[i].from);
		if (n > best && strncasecmp(s, a->v[i].from, n) == 0 && !word_char(s[n])) {
			best = n;
			*to = a->v[i].to;
		}
	}
	while (best > 0 && s[best] == '.' && word_char(s[best + 1])) {
		best++;
		while (word_char(s[best]))
			best++;
	}
	return best;
}

/* Four numbers up to 255 joined by dots, and no fifth: "10.1.2.3". */
static size_t match_ipv4(const char *s)
{
	const char *p = s;
	for (int i = 0; i < 4; i++) {
		size_t n = strspn(p, "0123456789");
		if (n < 1 || n > 3 || strtol(p, NULL, 10) > 255)
			return 0;
		p += n;
		if (i < 3 && *p++ != '.')
			return 0;
	}
	return *p == '.' && isdigit((unsigned char)p[1]) ? 0 : (size_t)(p - s);
}

static size_t colons(const char *s, size_t n)
{
	size_t c = 0;
	for (size_t i = 0; i < n; i++)
		c += s[i] == ':';
	return c;
}

/* A run of hex digits and colons that is a MAC, GUID or IPv6 address. Times (two colons) and PCI
 * addresses (at most two, then a dot) are none. */
static size_t match_hex(const char *s, const char **to)
{
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		size_t n = strspn(s + 2, "0123456789abcdefABCDEF");
		*to = "[guid]";
		return n == 16 || n == 32 ? n + 2 : 0;
	}
	size_t n = strspn(s, "0123456789abcdefABCDEF:");
	while (n > 2 && s[n - 1] == ':' && s[n - 2] != ':')
		n--;
	size_t c = colons(s, n);
	bool twin = n >= 2 && memmem(s, n, "::", 2) != NULL;
	if (word_char(s[n]) || n < 3 || (c < 3 && !(twin && c >= 2)))
		return 0;
	/* "::ffff:10.1.2.3", the GID of RoCE v2 over IPv4 */
	size_t last = n;
	while (last > 0 && s[last - 1] != ':')
		last--;
	size_t v4 = match_ipv4(s + last);
	if (v4 > n - last)
		n = last + v4;
	*to = c == 5 && n == 17 ? "[mac]" : c == 3 && n == 19 ? "[guid]" : "[ip]";
	return n;
}

static json_t *clean_text(const struct fb_anon *a, const char *s)
{
	struct fb_strbuf b = {0};
	for (const char *p = s; *p;) {
		const char *to = NULL;
		size_t n = 0;
		if (p == s || !word_char(p[-1])) {
			n = match_name(a, p, &to);
			if (n == 0)
				n = match_hex(p, &to);
			if (n == 0) {
				n = p != s && p[-1] == '.' ? 0 : match_ipv4(p);
				to = "[ip]";
			}
		}
		if (n > 0)
			fb_strbuf_add(&b, to);
		else
			fb_strbuf_addn(&b, p, 1);
		p += n > 0 ? n : 1;
	}
	char *text = fb_strbuf_take(&b);
	json_t *j = text ? json_string(text) : NULL;
	free(text);
	return j;
}

static json_t *copy_object(const struct fb_anon *a, const json_t *j)
{
	json_t *out = json_object();
	const char *key;
	json_t *v;
	json_object_foreach ((json_t *)j, key, v) {
		if (is_in(identifying, key))
			continue;
		bool keep = json_is_string(v) && is_in(own_words, key);
		json_object_set_new(out, key, keep ? json_incref(v) : fb_anon_copy(a, v));
	}
	return out;
}

json_t *fb_anon_copy(const struct fb_anon *a, const json_t *j)
{
	if (json_is_object(j))
		return copy_object(a, j);
	if (json_is_array(j)) {
		json_t *out = json_array();
		for (size_t i = 0; i < json_array_size(j); i++)
			json_array_append_new(out, fb_anon_copy(a, json_array_get(j, i)));
		return out;
	}
	if (json_is_string(j))
		return clean_text(a, json_string_value(j));
	return json_deep_copy(j);
}
