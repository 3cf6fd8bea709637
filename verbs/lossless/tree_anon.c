// SPDX-License-Identifier: Apache-2.0
/*
 * Made identities. A GID keeps what checks look at: IPv4-mapped, link-local or global, and that two
 * entries have the same one. A link-local GID made of a hardware address does not tell it.
 */
#include "verbs/lossless/tree_anon.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tree_anon_free(struct tree_anon *a)
{
	free(a->v);
	*a = (struct tree_anon){.n = 0};
}

/* The entry of `from`; a new one has `to` zero. NULL without memory. */
static struct tree_anon_id *entry(struct tree_anon *a, const uint8_t *from, size_t len, size_t *nth)
{
	*nth = 0;
	for (size_t i = 0; i < a->n; i++) {
		if (a->v[i].len == len && memcmp(a->v[i].from, from, len) == 0)
			return &a->v[i];
		*nth += a->v[i].len == len;
	}
	struct tree_anon_id *more = realloc(a->v, (a->n + 1) * sizeof(*more));
	if (!more) {
		a->failed = true;
		return NULL;
	}
	a->v = more;
	struct tree_anon_id *x = &a->v[a->n++];
	memset(x, 0, sizeof(*x));
	memcpy(x->from, from, len);
	x->len = len;
	++*nth; /* from 1 on: no made one is zero */
	x->to[len - 1] = (uint8_t)*nth;
	x->to[len - 2] = (uint8_t)(*nth >> 8);
	return x;
}

static bool zero(const uint8_t *raw, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (raw[i])
			return false;
	return true;
}

void tree_anon_gid(struct tree_anon *a, uint8_t raw[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	size_t nth;
	if (zero(raw, 16))
		return;
	struct tree_anon_id *x = entry(a, raw, 16, &nth);
	if (x && memcmp(raw, mapped, sizeof(mapped)) == 0) {
		memcpy(x->to, mapped, sizeof(mapped));
		x->to[12] = 10; /* 10.0.x.y */
	} else if (x && raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80) {
		memcpy(x->to, raw, 2);
		x->to[8] = 0x02; /* as of a locally administered address */
		x->to[11] = 0xff;
		x->to[12] = 0xfe;
	} else if (x) {
		memcpy(x->to, (const uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4); /* RFC 3849 */
	}
	if (x)
		memcpy(raw, x->to, 16);
}

void tree_anon_bytes(struct tree_anon *a, uint8_t *raw, size_t len)
{
	size_t nth;
	if (zero(raw, len))
		return;
	struct tree_anon_id *x = entry(a, raw, len, &nth);
	if (!x)
		return;
	x->to[0] = len == 20 ? 0x00 : 0x02;
	memcpy(raw, x->to, len);
}

/* "aa:bb:cc" in groups of 1 or 2 bytes. @return bytes, 0: it is something else */
static size_t parse(const char *text, size_t group, uint8_t *raw, size_t max)
{
	size_t n = 0;
	const char *s = text + strspn(text, " \t");
	for (;;) {
		for (size_t i = 0; i < group; i++) {
			unsigned v;
			if (n == max || !isxdigit((unsigned char)s[0]) ||
				!isxdigit((unsigned char)s[1]) || sscanf(s, "%2x", &v) != 1)
				return 0;
			raw[n++] = (uint8_t)v;
			s += 2;
		}
		if (*s != ':')
			break;
		s++;
	}
	s += strspn(s, " \t\r\n");
	return *s == '\0' ? n : 0;
}

static char *print(const uint8_t *raw, size_t n, size_t group)
{
	char *s = malloc(3 * n + 2);
	size_t at = 0;
	for (size_t i = 0; s && i < n; i++)
		at += (size_t)snprintf(
			s + at, 4, "%s%02x", i > 0 && i % group == 0 ? ":" : "", raw[i]);
	if (s)
		memcpy(s + at, "\n", 2);
	return s;
}

static bool is_named(const char *path, const char *name)
{
	size_t n = strlen(path), k = strlen(name);
	return n > k && path[n - k - 1] == '/' && strcmp(path + n - k, name) == 0;
}

void tree_anon_in_place(const struct tree_anon *a, char *s, size_t len)
{
	for (size_t i = 0; i < a->n; i++) {
		char from[13], to[13];
		if (a->v[i].len != 6)
			continue;
		for (int k = 0; k < 6; k++) {
			snprintf(from + 2 * k, 3, "%02x", a->v[i].from[k]);
			snprintf(to + 2 * k, 3, "%02x", a->v[i].to[k]);
		}
		for (char *p = s; (p = memmem(p, len - (size_t)(p - s), from, 12)) != NULL;)
			memcpy(p, to, 12);
	}
}

/* linux/pci_regs.h: PCI_EXT_CAP_ID_DSN, eight bytes after its header. */
#define EXTENDED   0x100
#define EXT_SERIAL 0x0003

void tree_anon_config(uint8_t *c, size_t len)
{
	size_t at = EXTENDED;
	/* A ring of pointers ends: there is room for 96 capabilities. */
	for (int hops = 0; at >= EXTENDED && at + 12 <= len && hops < 96; hops++) {
		if ((c[at] | c[at + 1] << 8) == EXT_SERIAL)
			memset(c + at + 4, 0, 8);
		at = (size_t)(c[at + 2] | c[at + 3] << 8) >> 4 & 0xffcu;
	}
}

char *tree_anon_text(struct tree_anon *a, const char *path, const char *text, size_t len)
{
	uint8_t raw[32];
	char *copy = strndup(text, len);
	size_t n;
	if (!copy)
		return NULL;
	if (strstr(path, "/gids/") && parse(copy, 2, raw, 16) == 16) {
		free(copy);
		tree_anon_gid(a, raw);
		return print(raw, 16, 2);
	}
	if ((is_named(path, "node_guid") || is_named(path, "sys_image_guid")) &&
		parse(copy, 2, raw, 8) == 8) {
		free(copy);
		tree_anon_bytes(a, raw, 8);
		return print(raw, 8, 2);
	}
	if (is_named(path, "address") && ((n = parse(copy, 1, raw, 20)) == 6 || n == 20)) {
		free(copy);
		tree_anon_bytes(a, raw, n);
		return print(raw, n, 1);
	}
	if (is_named(path, "node_desc") || is_named(path, "node_guid") ||
		is_named(path, "sys_image_guid") || is_named(path, "address") ||
		strstr(path, "/gids/")) {
		free(copy);
		return strdup("\n");
	}
	tree_anon_in_place(a, copy, strlen(copy));
	return copy;
}
