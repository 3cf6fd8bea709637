// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a site's profile: INI lines of which every key, every value and every repetition is
 * checked, since a mistyped key would silently judge by less than the site meant.
 */
#include "verbs/lossless/profile.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "bench/core/shipped.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"

#define MAX_BYTES 65536
#define MAX_DSCPS 4

struct reader {
	struct fb_ini *ini; /* while a key is read */
	struct profile *p;
	unsigned seen; /* bits by index in keys[] */
};

void profile_none(struct profile *p)
{
	*p = (struct profile){.roce_prio = -1,
		.cnp_dscp = -1,
		.cnp_prio = -1,
		.pfc_set = -1,
		.adaptive_routing = -1,
		.mtu = -1,
		.ets_share = -1,
		.cable_m = -1,
		.rate_mbps = -1,
		.pkey = -1,
		.sl = -1};
	for (int i = 0; i < MAX_DSCPS; i++)
		p->roce_dscp[i] = -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum kind { NUMBER, DSCPS, PFC, WORD, YES_NO, RATE, LENGTH, TEXT };

#define AT(field) offsetof(struct profile, field)
static const struct key {
	const char *name;
	enum kind kind;
	size_t offset, size;
	int min, max;
	const char *may_be;
	const char *words[3];
} keys[] = {
	{"name", TEXT, AT(name), sizeof(((struct profile *)0)->name), 0, 0, "a text", {0}},
	{"source", TEXT, AT(source), sizeof(((struct profile *)0)->source), 0, 0, "a text", {0}},
	{"roce-dscp", DSCPS, AT(roce_dscp), 0, 0, 63,
		"one to four DSCPs from 0 to 63, such as 26 or 26, 46 (the DSCP, not the "
		"traffic class byte)",
		{0}},
	{"roce-priority", NUMBER, AT(roce_prio), 0, 0, 7, "a priority from 0 to 7", {0}},
	{"cnp-dscp", NUMBER, AT(cnp_dscp), 0, 0, 63, "a DSCP from 0 to 63", {0}},
	{"cnp-priority", NUMBER, AT(cnp_prio), 0, 0, 7, "a priority from 0 to 7", {0}},
	{"pfc", PFC, AT(pfc_set), 0, 0, 7,
		"a list of priorities from 0 to 7, such as 3 or 3, 4; or none", {0}},
	{"trust", WORD, AT(trust), sizeof(((struct profile *)0)->trust), 0, 0, "dscp or pcp",
		{"dscp", "pcp"}},
	{"congestion", WORD, AT(congestion), sizeof(((struct profile *)0)->congestion), 0, 0,
		"ecn or pfc-only", {"ecn", "pfc-only"}},
	{"adaptive-routing", YES_NO, AT(adaptive_routing), 0, 0, 1, "yes or no", {0}},
	{"mtu", NUMBER, AT(mtu), 0, 68, 65535, "bytes of the interface's MTU, from 68 to 65535",
		{0}},
	{"ets-share", NUMBER, AT(ets_share), 0, 0, 100, "per cent, from 0 to 100", {0}},
	{"cable-length", LENGTH, AT(cable_m), 0, 0, 100000, "metres, such as 5 or 5m", {0}},
	{"rate", RATE, AT(rate_mbps), 0, 0, 0, "a rate such as 400Gb/s", {0}},
	{"pkey", NUMBER, AT(pkey), 0, 1, 65535, "a partition key, such as 0x8001", {0}},
	{"sl", NUMBER, AT(sl), 0, 0, 15, "a service level from 0 to 15", {0}},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static int bad_value(struct reader *r, const struct key *k, const char *value)
{
	return fb_ini_bad(r->ini, "%s = %.80s: it may be %s", k->name, value, k->may_be);
}

/* A whole number within the key's bounds. */
static bool number(const struct key *k, const char *text, int *v)
{
	struct fb_err e = {0};
	uint64_t x;
	if (fb_parse_u64(text, (uint64_t)k->min, (uint64_t)k->max, &x, &e) != 0)
		return false;
	*v = (int)x;
	return true;
}

/* Numbers between commas. @return how many, -1: one is none, or they are too many */
static int numbers(const struct key *k, const char *text, int *v, int max)
{
	int n = 0;
	while (*text) {
		char one[16];
		size_t skip = strspn(text, " \t"), len = strcspn(text + skip, ",");
		const char *from = text + skip, *next = from + len;
		while (len > 0 && isspace((unsigned char)from[len - 1]))
			len--;
		if (n == max || len == 0 || len >= sizeof(one))
			return -1;
		memcpy(one, from, len);
		one[len] = '\0';
		if (!number(k, one, &v[n++]))
			return -1;
		if (*next == ',' && next[1 + strspn(next + 1, " \t")] == '\0')
			return -1; /* a comma with nothing behind it */
		text = *next ? next + 1 : next;
	}
	return n;
}

static int set_text(struct reader *r, const struct key *k, char *to, const char *value)
{
	if (strlen(value) >= k->size)
		return fb_ini_bad(r->ini, "%s has %zu bytes; it may have %zu", k->name,
			strlen(value), k->size - 1);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int set_word(struct reader *r, const struct key *k, char *to, const char *value)
{
	for (int i = 0; k->words[i]; i++)
		if (strcmp(value, k->words[i]) == 0)
			return set_text(r, k, to, value);
	return bad_value(r, k, value);
}

static int set_pfc(struct reader *r, const struct key *k, int *to, const char *value)
{
	int v[8], n = strcmp(value, "none") == 0 ? 0 : numbers(k, value, v, 8);
	if (n < 0 || (n == 0 && *value != 'n'))
		return bad_value(r, k, value);
	*to = 0;
	for (int i = 0; i < n; i++)
		*to |= 1 << v[i];
	return 0;
}

static int set_length(struct reader *r, const struct key *k, int *to, const char *value)
{
	char text[16];
	size_t len = strlen(value);
	if (len > 1 && value[len - 1] == 'm')
		len--;
	if (len >= sizeof(text))
		return bad_value(r, k, value);
	memcpy(text, value, len);
	text[len] = '\0';
	return number(k, text, to) ? 0 : bad_value(r, k, value);
}

static int set_rate(struct reader *r, const struct key *k, int64_t *to, const char *value)
{
	struct fb_err e = {0};
	double rate;
	if (fb_parse_rate(value, &rate, &e) != 0 || rate < 125000 || rate > 1e15)
		return bad_value(r, k, value);
	*to = (int64_t)(rate * 8 / 1e6 + 0.5);
	return 0;
}

static int set_value(struct reader *r, const struct key *k, const char *value)
{
	char *at = (char *)r->p + k->offset;
	int *number_at = (int *)(void *)at;
	switch (k->kind) {
	case TEXT: return set_text(r, k, at, value);
	case WORD: return set_word(r, k, at, value);
	case NUMBER: return number(k, value, number_at) ? 0 : bad_value(r, k, value);
	case YES_NO:
		*number_at = strcmp(value, "yes") == 0;
		return *number_at || strcmp(value, "no") == 0 ? 0 : bad_value(r, k, value);
	case DSCPS: {
		int n = numbers(k, value, number_at, MAX_DSCPS);
		if (n < 1)
			return bad_value(r, k, value);
		for (; n < MAX_DSCPS; n++)
			number_at[n] = -1;
		return 0;
	}
	case PFC: return set_pfc(r, k, number_at, value);
	case LENGTH: return set_length(r, k, number_at, value);
	case RATE: return set_rate(r, k, (int64_t *)(void *)at, value);
	}
	return bad_value(r, k, value);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int unknown_key(struct reader *r, const char *name)
{
	const char *nearest = keys[0].name;
	unsigned least = UINT_MAX;
	for (size_t i = 0; i < N_KEYS; i++) {
		unsigned d = fb_edit_distance(keys[i].name, name);
		if (d < least) {
			least = d;
			nearest = keys[i].name;
		}
	}
	fb_ini_bad(r->ini, "there is no key \"%.60s\"", name);
	fb_hint(r->ini->e, "did you mean %s?", nearest);
	return -EINVAL;
}

static int handler(
	struct fb_ini *ini, void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;
	r->ini = ini;
	if (*section && strcmp(section, "profile") != 0)
		return fb_ini_bad(
			ini, "section [%.40s]: a profile has none but [profile]", section);
	for (size_t i = 0; i < N_KEYS; i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (r->seen >> i & 1)
			return fb_ini_bad(ini, "%s stands twice", name);
		r->seen |= 1u << i;
		return *value ? set_value(r, &keys[i], value) : bad_value(r, &keys[i], "");
	}
	return unknown_key(r, name);
}

/* What contradicts itself cannot judge anybody. */
static int agree(const struct profile *p, const char *path, struct fb_err *e)
{
	const char *what = NULL;
	if (p->roce_prio >= 0 && p->pfc_set > 0 && !(p->pfc_set >> p->roce_prio & 1))
		what = "roce-priority is not among those of pfc: RoCE would be lossy";
	if (p->roce_prio >= 0 && p->cnp_prio == p->roce_prio)
		what = "cnp-priority equals roce-priority: a pause would hold the CNPs back";
	for (int i = 0; i < MAX_DSCPS && p->roce_dscp[i] >= 0; i++)
		if (p->cnp_dscp == p->roce_dscp[i])
			what = "cnp-dscp is one of roce-dscp: CNPs could not have a class of their "
			       "own";
	return what ? fb_fail_usage(e, "%s: %s", path, what) : 0;
}

static int parse(
	const char *path, const char *text, size_t len, struct profile *p, struct fb_err *e)
{
	struct reader r = {.p = p};
	profile_none(p);
	p->given = true;
	snprintf(p->path, sizeof(p->path), "%.255s", path);
	int rc = fb_ini_parse(text, len, path, handler, &r, e);
	if (rc == 0 && r.seen == 0) {
		rc = fb_fail_usage(e, "%s: the profile says nothing", path);
		fb_hint(e, "fabricbench check roce --learn writes the profile of a good node");
	}
	return rc == 0 ? agree(p, path, e) : rc;
}

/* ---- finding it ------------------------------------------------------------------------------ */

static void name_shipped(const char *asked, struct fb_err *e)
{
	struct fb_strbuf all = {0};
	fb_shipped_names("profiles", &all);
	fb_fail(e, FB_EXIT_USAGE, ENOENT,
		"there is neither a file nor a shipped profile \"%.200s\"", asked);
	if (all.s)
		fb_hint(e, "shipped are %s; a path to a file does as well", all.s);
	else
		fb_hint(e, "give the path of a file; no profiles are installed beside the program");
	fb_strbuf_free(&all);
}

int profile_read(const char *path_or_name, struct profile *p, struct fb_err *e)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len = 0;
	profile_none(p);
	if (access(path_or_name, F_OK) == 0) {
		snprintf(path, sizeof(path), "%s", path_or_name);
	} else if (strchr(path_or_name, '/') || !*path_or_name ||
		   !fb_shipped("profiles", path_or_name, path, sizeof(path))) {
		name_shipped(path_or_name, e);
		return -ENOENT;
	}
	int rc = fb_read_file(path, MAX_BYTES, &text, &len, e);
	if (rc < 0)
		return rc;
	rc = parse(path, text, len, p, e);
	free(text);
	return rc;
}
