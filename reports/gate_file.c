// SPDX-License-Identifier: Apache-2.0
/* See gate_file.h. */
#include "reports/gate_file.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "bench/core/units.h"

static const char *const kinds[] = {"rate", "p50", "p99", "p99.9", "value"};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *const verdicts[] = {
	"REGRESSED", "MISSING", "INCONCLUSIVE", "INCOMPARABLE", "INVALID"};
#define N_VERDICTS (sizeof(verdicts) / sizeof(verdicts[0]))

static bool is_kind(const char *what)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (strcmp(what, kinds[i]) == 0)
			return true;
	return false;
}

/* What stood in the section being read: its keys, by index in the section's own list. */
struct reader {
	struct gate *g;
	char section[200];
	unsigned seen;
};

/* ---- values ---------------------------------------------------------------------------------- */

static int set_text(struct fb_ini *ini, char *to, size_t size, const char *key, const char *value)
{
	if (!*value)
		return fb_ini_bad(ini, "%s = : a text must stand there", key);
	if (strlen(value) >= size)
		return fb_ini_bad(
			ini, "%s has %zu bytes; it may have %zu", key, strlen(value), size - 1);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

/* "2 %" or "0.02" */
static int set_share(struct fb_ini *ini, double *to, const char *key, const char *value)
{
	char *end;
	double v = strtod(value, &end);
	while (isspace((unsigned char)*end))
		end++;
	bool percent = *end == '%';
	if (end == value || end[percent] != '\0' || !(v >= 0) || v > (percent ? 1000 : 10))
		return fb_ini_bad(
			ini, "%s = %.60s: it may be a share such as 2 %% or 0.02", key, value);
	*to = percent ? v / 100 : v;
	return 0;
}

static int set_time(struct fb_ini *ini, double *to, const char *key, const char *value)
{
	struct fb_err e = {0};
	uint64_t ns;
	/* Without a unit it would be seconds, and a floor that nothing exceeds. */
	bool unit = isalpha((unsigned char)value[*value ? strlen(value) - 1 : 0]);
	if ((!unit && strcmp(value, "0") != 0) || fb_parse_duration(value, &ns, &e) != 0)
		return fb_ini_bad(
			ini, "%s = %.60s: it may be a time such as 20ns or 1.5us", key, value);
	*to = (double)ns;
	return 0;
}

static int set_pattern(struct fb_ini *ini, char *to, size_t size, const char *key, const char *v)
{
	if (!strchr(v, ':') && !strchr(v, '*'))
		return fb_ini_bad(ini,
			"%s = %.60s: it may be a pattern on CASE:METRIC, such as "
			"verbs.latency/*:latency p50",
			key, v);
	return set_text(ini, to, size, key, v);
}

static bool is_date(const char *s)
{
	struct tm tm = {0};
	char again[16];
	const char *end = strptime(s, "%Y-%m-%d", &tm);
	if (!end || *end)
		return false;
	/* 2026-02-31 is no day: timegm() would make it one of March. */
	timegm(&tm);
	strftime(again, sizeof(again), "%Y-%m-%d", &tm);
	return strcmp(again, s) == 0;
}

static int set_word(struct fb_ini *ini, char *to, size_t size, const char *key, const char *value,
	const char *const *words, size_t n)
{
	char all[160] = "";
	for (size_t i = 0; i < n; i++) {
		if (strcmp(value, words[i]) == 0)
			return set_text(ini, to, size, key, value);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			words[i]);
	}
	return fb_ini_bad(ini, "%s = %.60s: it may be one of %s", key, value, all);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The index of a key in its section's list, or -EINVAL with the nearest one named. */
static int key_index(struct fb_ini *ini, struct reader *r, const char *key, const char *const *keys,
	size_t n, unsigned may_repeat)
{
	size_t nearest = 0;
	unsigned least = UINT_MAX;
	for (size_t i = 0; i < n; i++) {
		unsigned d = fb_edit_distance(keys[i], key);
		if (d < least) {
			least = d;
			nearest = i;
		}
		if (strcmp(keys[i], key) != 0)
			continue;
		if ((r->seen & ~may_repeat) >> i & 1)
			return fb_ini_bad(ini, "%s stands twice", key);
		r->seen |= 1u << i;
		return (int)i;
	}
	fb_ini_bad(ini, "there is no key \"%.60s\" in [%s]", key, r->section);
	fb_hint(ini->e, "did you mean %s?", keys[nearest]);
	return -EINVAL;
}

static int gate_key(struct fb_ini *ini, struct reader *r, const char *key, const char *value)
{
	static const char *const keys[] = {"metrics", "max-gated", "level"};
	struct gate *g = r->g;
	struct fb_err e = {0};
	int i = key_index(ini, r, key, keys, 3, 1);
	if (i < 0)
		return i;
	if (i == 0) {
		if (g->n_patterns == GATE_MAX_PATTERNS)
			return fb_ini_bad(ini, "more than %d patterns", GATE_MAX_PATTERNS);
		void *v = realloc(g->pattern, (g->n_patterns + 1) * sizeof(*g->pattern));
		if (!v)
			return fb_fail(ini->e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
		g->pattern = v;
		return set_pattern(
			ini, g->pattern[g->n_patterns++], sizeof(*g->pattern), key, value);
	}
	if (i == 1)
		return fb_parse_u64(value, 1, 10000, &g->max_gated, &e) == 0
			       ? 0
			       : fb_ini_bad(ini,
					 "max-gated = %.60s: it may be a number from 1 to "
					 "10000",
					 value);
	int rc = set_share(ini, &g->level, key, value);
	if (rc == 0 && !(g->level >= 0.8 && g->level < 1))
		rc = fb_ini_bad(ini, "level = %.60s: it may be a share from 0.8 to below 1", value);
	return rc;
}

static int floor_key(struct fb_ini *ini, struct reader *r, const char *key, const char *value)
{
	static const char *const keys[] = {"relative", "absolute", "reason", "metric"};
	struct gate_floor *f = &r->g->floor[r->g->n_floors - 1];
	switch (key_index(ini, r, key, keys, 4, 0)) {
	case 0: return set_share(ini, &f->relative, key, value);
	case 1:
		if (strcmp(f->what, "rate") == 0 || strcmp(f->what, "value") == 0)
			return fb_ini_bad(
				ini, "absolute: a %s has a relative floor alone", f->what);
		return set_time(ini, &f->absolute, key, value);
	case 2: return set_text(ini, f->reason, sizeof(f->reason), key, value);
	case 3:
		if (is_kind(f->what))
			return fb_ini_bad(ini,
				"[floor %s] is a kind's: give the floor of a pattern "
				"another name",
				f->what);
		return set_pattern(ini, f->metric, sizeof(f->metric), key, value);
	default: return ini->rc;
	}
}

static int waiver_key(struct fb_ini *ini, struct reader *r, const char *key, const char *value)
{
	static const char *const keys[] = {"metric", "verdict", "reason", "owner", "expires"};
	struct gate_waiver *w = &r->g->waiver[r->g->n_waivers - 1];
	switch (key_index(ini, r, key, keys, 5, 0)) {
	case 0: return set_pattern(ini, w->metric, sizeof(w->metric), key, value);
	case 1:
		return set_word(
			ini, w->verdict, sizeof(w->verdict), key, value, verdicts, N_VERDICTS);
	case 2: return set_text(ini, w->reason, sizeof(w->reason), key, value);
	case 3: return set_text(ini, w->owner, sizeof(w->owner), key, value);
	case 4:
		if (!is_date(value))
			return fb_ini_bad(
				ini, "expires = %.60s: it may be a day such as 2027-01-31", value);
		return set_text(ini, w->expires, sizeof(w->expires), key, value);
	default: return ini->rc;
	}
}

/* ---- sections -------------------------------------------------------------------------------- */

static int new_floor(struct fb_ini *ini, struct gate *g, const char *what)
{
	struct gate_floor f = {.relative = -1, .absolute = -1, .line = ini->line};
	int rc = set_text(ini, f.what, sizeof(f.what), "floor", what);
	for (size_t i = 0; i < g->n_floors && rc == 0; i++)
		if (strcmp(g->floor[i].what, what) == 0)
			rc = fb_ini_bad(ini, "[floor %.100s] stands twice (first in line %u)", what,
				g->floor[i].line);
	if (rc == 0 && g->n_floors == GATE_MAX_FLOORS)
		rc = fb_ini_bad(ini, "more than %d floors", GATE_MAX_FLOORS);
	if (rc != 0)
		return rc;
	struct gate_floor *v = realloc(g->floor, (g->n_floors + 1) * sizeof(*v));
	if (!v)
		return fb_fail(ini->e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	g->floor = v;
	v[g->n_floors++] = f;
	return 0;
}

static int new_waiver(struct fb_ini *ini, struct gate *g, const char *name)
{
	struct gate_waiver w = {.line = ini->line};
	int rc = set_text(ini, w.name, sizeof(w.name), "waiver", name);
	for (size_t i = 0; i < g->n_waivers && rc == 0; i++)
		if (strcmp(g->waiver[i].name, name) == 0)
			rc = fb_ini_bad(ini, "[waiver %s] stands twice (first in line %u)", name,
				g->waiver[i].line);
	if (rc == 0 && g->n_waivers == GATE_MAX_WAIVERS)
		rc = fb_ini_bad(ini, "more than %d waivers", GATE_MAX_WAIVERS);
	if (rc != 0)
		return rc;
	struct gate_waiver *v = realloc(g->waiver, (g->n_waivers + 1) * sizeof(*v));
	if (!v)
		return fb_fail(ini->e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	g->waiver = v;
	v[g->n_waivers++] = w;
	return 0;
}

static int enter(struct fb_ini *ini, struct reader *r, const char *section)
{
	snprintf(r->section, sizeof(r->section), "%s", section);
	r->seen = 0;
	if (strcmp(section, "gate") == 0)
		return 0;
	if (strncmp(section, "floor ", 6) == 0)
		return new_floor(ini, r->g, section + 6);
	if (strncmp(section, "waiver ", 7) == 0)
		return new_waiver(ini, r->g, section + 7);
	return fb_ini_bad(
		ini, "section [%.60s]: it may be [gate], [floor KIND] or [waiver NAME]", section);
}

static int on_key(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;
	int rc = strcmp(section, r->section) != 0 || !*section ? enter(ini, r, section) : 0;
	if (rc != 0)
		return rc;
	return *section == 'g'   ? gate_key(ini, r, key, value)
	       : *section == 'f' ? floor_key(ini, r, key, value)
				 : waiver_key(ini, r, key, value);
}

/* Whoever moves a floor or waives a verdict says why, and for a waiver who answers until when. */
static int complete(const struct gate *g, const char *name, struct fb_err *e)
{
	for (size_t i = 0; i < g->n_floors; i++) {
		const struct gate_floor *f = &g->floor[i];
		if (f->relative < 0 || !f->reason[0])
			return fb_fail_usage(e, "%s:%u: [floor %s] needs relative and reason", name,
				f->line, f->what);
		if (!f->metric[0] && !is_kind(f->what)) {
			fb_fail_usage(e, "%s:%u: [floor %s] needs metric, or the name of a kind",
				name, f->line, f->what);
			fb_hint(e, "kinds are rate, p50, p99, p99.9 and value");
			return e->code;
		}
	}
	for (size_t i = 0; i < g->n_waivers; i++) {
		const struct gate_waiver *w = &g->waiver[i];
		if (!w->metric[0] || !w->verdict[0] || !w->reason[0] || !w->owner[0] ||
			!w->expires[0])
			return fb_fail_usage(e,
				"%s:%u: [waiver %s] needs metric, verdict, reason, owner and "
				"expires",
				name, w->line, w->name);
	}
	return 0;
}

int gate_parse(const char *text, size_t len, const char *name, struct gate *g, struct fb_err *e)
{
	struct reader r = {.g = g};
	memset(g, 0, sizeof(*g));
	int rc = fb_ini_parse(text, len, name, on_key, &r, e);
	if (rc == 0)
		rc = complete(g, name, e);
	if (rc != 0)
		gate_free(g);
	return rc;
}

int gate_load(const char *path, struct gate *g, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	memset(g, 0, sizeof(*g));
	int rc = fb_read_file(path, FB_INI_MAX_BYTES, &text, &len, e);
	if (rc == 0)
		rc = gate_parse(text, len, path, g, e);
	free(text);
	return rc;
}

void gate_free(struct gate *g)
{
	free(g->pattern);
	free(g->floor);
	free(g->waiver);
	memset(g, 0, sizeof(*g));
}

int gate_check_expiry(const struct gate *g, const char *today, struct fb_err *e)
{
	for (size_t i = 0; i < g->n_waivers; i++) {
		const struct gate_waiver *w = &g->waiver[i];
		/* Days written like this sort like texts. */
		if (strcmp(w->expires, today) >= 0)
			continue;
		fb_fail(e, FB_EXIT_USAGE, ETIME, "the waiver \"%s\" of %s (%s) ended on %s",
			w->name, w->owner, w->reason, w->expires);
		fb_hint(e, "mend what it waived and remove it, or have its owner renew it");
		return -ETIME;
	}
	return 0;
}

const struct gate_floor *gate_floor_of(
	const struct gate *g, const char *case_metric, const char *kind)
{
	const struct gate_floor *by_kind = NULL;
	for (size_t i = 0; i < g->n_floors; i++) {
		const struct gate_floor *f = &g->floor[i];
		if (f->metric[0] && fnmatch(f->metric, case_metric, 0) == 0)
			return f;
		if (!f->metric[0] && strcmp(f->what, kind) == 0)
			by_kind = f;
	}
	return by_kind;
}

const struct gate_waiver *gate_waiver_of(
	const struct gate *g, const char *case_metric, const char *verdict)
{
	for (size_t i = 0; i < g->n_waivers; i++)
		if (strcmp(g->waiver[i].verdict, verdict) == 0 &&
			fnmatch(g->waiver[i].metric, case_metric, 0) == 0)
			return &g->waiver[i];
	return NULL;
}
