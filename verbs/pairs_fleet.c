// SPDX-License-Identifier: Apache-2.0
/*
 * Who takes part in a run over pairs: members by name, from a hosts file or from the ranks that
 * joined, with their racks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/pairs_run.h"

#define HOSTS_FILE_MAX (16u << 20)

bool pairs_same_host(const char *a, const char *b)
{
	size_t na = strcspn(a, "."), nb = strcspn(b, ".");

	if (!strcmp(a, b))
		return true;
	return (!a[na] || !b[nb]) && na == nb && !strncmp(a, b, na);
}

struct pairs_member *pairs_fleet_add(struct pairs_fleet *f)
{
	uint32_t n = f->hosts;

	/* Doubling: the room is a power of two. */
	if ((n & (n - 1)) == 0) {
		struct pairs_member *m =
			realloc(f->member, (n ? 2 * (size_t)n : 1) * sizeof *f->member);
		if (!m)
			return NULL;
		f->member = m;
	}
	memset(&f->member[n], 0, sizeof f->member[n]);
	f->member[n].rank = -1;
	return &f->member[f->hosts++];
}

void pairs_fleet_free(struct pairs_fleet *f)
{
	free(f->member);
	free(f->group);
	free(f->absent);
	memset(f, 0, sizeof *f);
}

struct rack {
	const char *name;
	uint32_t host;
};

static int by_rack(const void *a, const void *b)
{
	const struct rack *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : (x->host > y->host) - (x->host < y->host);
}

/* Hosts without a rack share one number: nothing is known to tell them apart. */
static int number_racks(struct pairs_fleet *f, struct fb_err *e)
{
	struct rack *r = calloc(f->hosts, sizeof *r);
	uint32_t id = 0;

	f->group = calloc(f->hosts, sizeof *f->group);
	if (!r || !f->group) {
		free(r);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u hosts", f->hosts);
	}
	for (uint32_t i = 0; i < f->hosts; i++)
		r[i] = (struct rack){f->member[i].rack, i};
	qsort(r, f->hosts, sizeof *r, by_rack);
	for (uint32_t i = 0; i < f->hosts; i++) {
		if (i > 0 && strcmp(r[i].name, r[i - 1].name) != 0)
			id++;
		f->group[r[i].host] = id;
	}
	free(r);
	return 0;
}

int pairs_fleet_seal(struct pairs_fleet *f, struct fb_err *e)
{
	bool racks = false;

	f->absent = calloc(f->hosts ? f->hosts : 1, sizeof *f->absent);
	if (!f->absent)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u hosts", f->hosts);
	for (uint32_t i = 0; i < f->hosts; i++) {
		f->absent[i] = f->member[i].rank < 0;
		racks |= f->member[i].rack[0] != '\0';
	}
	return racks ? number_racks(f, e) : 0;
}

/* ---- the hosts file -------------------------------------------------------------------------- */

static const char blanks[] = " \t\r";

static int take_line(struct pairs_fleet *f, const char *path, unsigned line, const char *text,
	size_t len, struct fb_err *e)
{
	char copy[256];
	struct pairs_member *m;
	size_t n, at;

	for (size_t i = 0; i < len; i++)
		if (text[i] == '#')
			len = i;
	while (len > 0 && strchr(blanks, text[len - 1]))
		len--;
	while (len > 0 && strchr(blanks, *text)) {
		text++;
		len--;
	}
	if (len == 0)
		return 0;
	if (len >= sizeof copy)
		return fb_fail_usage(e, "%s:%u: the line is too long", path, line);
	memcpy(copy, text, len);
	copy[len] = '\0';
	n = strcspn(copy, blanks);
	at = n + strspn(copy + n, blanks);
	copy[n] = '\0';
	if (n >= PAIRS_NAME || strlen(copy + at) >= sizeof m->rack || strpbrk(copy + at, blanks)) {
		fb_fail_usage(e, "%s:%u: not a host and its rack", path, line);
		fb_hint(e, "a line is HOST, or HOST RACK");
		return -EINVAL;
	}
	if (f->hosts == PAIRS_FLEET_MAX)
		return fb_fail_usage(e, "%s: more than %u hosts", path, PAIRS_FLEET_MAX);
	m = pairs_fleet_add(f);
	if (!m)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	memcpy(m->name, copy, n + 1);
	if (at < len)
		snprintf(m->rack, sizeof m->rack, "%s", copy + at);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_twice(const struct pairs_fleet *f, const char *path, struct fb_err *e)
{
	const char **names = calloc((size_t)f->hosts + 1, sizeof *names);
	int rc = 0;

	if (!names)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	for (uint32_t i = 0; i < f->hosts; i++)
		names[i] = f->member[i].name;
	qsort(names, f->hosts, sizeof *names, by_name);
	for (uint32_t i = 1; rc == 0 && i < f->hosts; i++)
		if (!strcmp(names[i], names[i - 1]))
			rc = fb_fail_usage(e, "%s: %s stands there twice", path, names[i]);
	free(names);
	return rc;
}

int pairs_fleet_read(struct pairs_fleet *f, const char *path, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	unsigned line = 0;
	int rc = fb_read_file(path, HOSTS_FILE_MAX, &text, &len, e);

	if (rc)
		return rc;
	for (char *p = text; rc == 0 && p < text + len;) {
		char *end = memchr(p, '\n', (size_t)(text + len - p));
		size_t n = end ? (size_t)(end - p) : (size_t)(text + len - p);
		rc = take_line(f, path, ++line, p, n, e);
		p += n + 1;
	}
	free(text);
	if (rc == 0 && f->hosts == 0)
		rc = fb_fail_usage(e, "%s names no host", path);
	return rc ? rc : check_twice(f, path, e);
}
