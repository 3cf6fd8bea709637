// SPDX-License-Identifier: Apache-2.0
/*
 * Option tables: parsing, plan values and the document's config from one description; the help
 * is in opt_help.c.
 *
 * What the user gave and what the parse owns stands in struct fb_opt_state, beside the tables,
 * which stay const. A long name belongs to one table; a letter belongs to the first table that has
 * it, so that a command may take a letter that run control or the output would have used.
 */
#include "bench/core/opt_impl.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"

/* One option's state: `str` is its owned string; the list's words are owned one by one. */
struct slot {
	bool given;
	char *str;
	char **words;
	size_t nwords;
};

struct fb_opt_state {
	struct slot *slots[FB_OPT_MAX_SETS];
};

static void *field(const struct fb_opt_spec *spec, const struct found *f)
{
	return (char *)spec->sets[f->set].cfg + f->opt->offset;
}

static struct slot *slot_of(const struct fb_opt_spec *spec, const struct found *f)
{
	return &spec->state->slots[f->set][f->index];
}

/* ---- names ---- */

/* How far a word is from a name: its edit distance, but one is near when it begins the other. */
static unsigned distance(const char *given, const char *name)
{
	size_t a = strlen(given), b = strlen(name), common = 0;
	while (common < a && common < b && given[common] == name[common])
		common++;
	if (common > 1 && (common == a || common == b))
		return 1;
	return fb_edit_distance(given, name);
}

/* Keep `name` if it is nearer than `*best`, and near enough to be meant at all. */
static void consider(const char *given, const char *name, const char **best, unsigned *score)
{
	size_t a = strlen(given), b = strlen(name);
	unsigned d = distance(given, name);
	if (d < *score && d < (a > b ? a : b) && 2 * d <= a + 1) {
		*score = d;
		*best = name;
	}
}

static const char *nearest_name(const struct fb_opt_spec *spec, const char *given)
{
	const char *best = NULL;
	unsigned score = UINT_MAX;
	for_each_set (spec, s)
		for_each_opt (spec, s, o)
			if (!o->hidden)
				consider(given, o->name, &best, &score);
	return best;
}

static bool find_long(const struct fb_opt_spec *spec, const char *name, size_t len, struct found *f)
{
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			if (strncmp(o->name, name, len) == 0 && !o->name[len]) {
				*f = (struct found){o, s, (size_t)(o - spec->sets[s].opts)};
				return true;
			}
		}
	}
	return false;
}

bool fb_opt_by_letter(const struct fb_opt_spec *spec, char letter, struct found *f)
{
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			if (o->letter == letter && letter) {
				*f = (struct found){o, s, (size_t)(o - spec->sets[s].opts)};
				return true;
			}
		}
	}
	return false;
}

const struct fb_opt *fb_opt_find(
	const struct fb_opt_spec *spec, const char *name, const char **nearest)
{
	struct found f = {0};
	bool known = find_long(spec, name, strlen(name), &f);
	if (nearest)
		*nearest = known ? f.opt->name : nearest_name(spec, name);
	return known ? f.opt : NULL;
}

/* ---- values ---- */

static int no_memory(struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the options");
}

bool fb_opt_range(const struct fb_opt *o, int64_t *min, int64_t *max)
{
	bool any = o->min == 0 && o->max == 0;
	*min = any ? INT64_MIN : o->min;
	*max = any || o->max < o->min ? INT64_MAX : o->max;
	return !any;
}

static int out_of_range(const char *text, const char *lo, const char *hi, struct fb_err *e)
{
	if (!hi)
		return fb_fail_usage(e, "\"%.60s\" is below %s", text, lo);
	return fb_fail_usage(e, "\"%.60s\" is not within %s to %s", text, lo, hi);
}

static int in_range(const struct fb_opt *o, int64_t v, const char *text, struct fb_err *e)
{
	int64_t min, max;
	if (!fb_opt_range(o, &min, &max) || (v >= min && v <= max))
		return 0;
	char lo[32], hi[32];
	fb_opt_limit_text(o, min, lo, sizeof(lo));
	fb_opt_limit_text(o, max, hi, sizeof(hi));
	return out_of_range(text, lo, max == INT64_MAX ? NULL : hi, e);
}

int fb_opt_flag_value(void *p, const char *text, struct fb_err *e)
{
	static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
	for (int i = 0; i < 6; i++) {
		if (strcmp(text, words[i]) == 0) {
			*(bool *)p = i & 1;
			return 0;
		}
	}
	return fb_fail_usage(e, "not one of yes, no, true, false, 1, 0");
}

/* What is past the type's limits is told by the option's own where it has any: --help names those.
 */
static int parse_whole(const struct fb_opt *o, const char *text, bool minus, uint64_t max,
	uint64_t *v, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = fb_parse_u64(text + minus, 0, max, v, &why);
	if (rc == -ERANGE && in_range(o, minus ? INT64_MIN : INT64_MAX, text, e) != 0)
		return -EINVAL;
	if (rc != 0)
		*e = why;
	return rc;
}

static int set_int(const struct fb_opt *o, void *p, const char *text, struct fb_err *e)
{
	bool minus = *text == '-';
	uint64_t v;
	int rc = parse_whole(o, text, minus, (uint64_t)INT_MAX, &v, e);
	if (!rc)
		rc = in_range(o, minus ? -(int64_t)v : (int64_t)v, text, e);
	if (!rc)
		*(int *)p = minus ? -(int)v : (int)v;
	return rc;
}

/* At most 2^63-1, which JSON's integers hold. */
static int set_u64(const struct fb_opt *o, void *p, const char *text, struct fb_err *e)
{
	uint64_t v;
	int rc = parse_whole(o, text, false, INT64_MAX, &v, e);
	if (!rc)
		rc = in_range(o, (int64_t)v, text, e);
	if (!rc)
		*(uint64_t *)p = v;
	return rc;
}

static int set_double(const struct fb_opt *o, void *p, const char *text, struct fb_err *e)
{
	char *end;
	double v = strtod(text, &end);
	/* strtod() alone would also take " 1", "0x1p3", "nan" and "inf". */
	if (end == text || *end || text[strspn(text, "0123456789+-.eE")] || !isfinite(v))
		return fb_fail_usage(e, "\"%.60s\" is not a number such as 0.5, 2 or 1e-3", text);
	int64_t min, max;
	if (fb_opt_range(o, &min, &max) && (v < (double)min || v > (double)max)) {
		char lo[32], hi[32];
		fb_opt_limit_text(o, min, lo, sizeof(lo));
		fb_opt_limit_text(o, max, hi, sizeof(hi));
		return out_of_range(text, lo, max == INT64_MAX ? NULL : hi, e);
	}
	*(double *)p = v;
	return 0;
}

static int set_whole(const struct fb_opt *o, void *p, const char *text,
	int (*parse)(const char *, uint64_t *, struct fb_err *), struct fb_err *e)
{
	uint64_t v;
	int rc = parse(text, &v, e);
	if (!rc)
		rc = in_range(o, (int64_t)v, text, e);
	if (!rc)
		*(uint64_t *)p = v;
	return rc;
}

/* Of words that are numbers the nearest one, whatever its digits; NULL where they are none. */
static const char *nearest_number(const char *const *names, const char *text)
{
	const char *best = NULL;
	uint64_t v, w, least = UINT64_MAX;
	if (fb_parse_u64(text, 0, UINT64_MAX, &v, NULL) != 0)
		return NULL;
	for (int i = 0; names[i]; i++) {
		if (fb_parse_u64(names[i], 0, UINT64_MAX, &w, NULL) != 0)
			continue;
		uint64_t d = v > w ? v - w : w - v;
		if (d < least) {
			least = d;
			best = names[i];
		}
	}
	return best;
}

static int set_enum(const struct fb_opt *o, void *p, const char *text, struct fb_err *e)
{
	const char *best = NULL;
	unsigned score = UINT_MAX;
	struct fb_strbuf all = {0};
	for (int i = 0; o->names[i]; i++) {
		if (strcmp(text, o->names[i]) == 0) {
			*(int *)p = i;
			fb_strbuf_free(&all);
			return 0;
		}
		consider(text, o->names[i], &best, &score);
		fb_strbuf_printf(&all, "%s%s", i ? ", " : "", o->names[i]);
	}
	if (nearest_number(o->names, text))
		best = nearest_number(o->names, text);
	char *words = fb_strbuf_take(&all);
	int rc = fb_fail_usage(e, "not one of %s%s%s%s", words ? words : "the words",
		best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
	free(words);
	return rc;
}

static int set_string(struct slot *slot, void *p, const char *text, struct fb_err *e)
{
	char *copy = strdup(text);
	if (!copy)
		return no_memory(e);
	free(slot->str);
	slot->str = copy;
	*(char **)p = copy;
	return 0;
}

static void free_words(struct slot *slot)
{
	for (size_t i = 0; slot->words && i < slot->nwords; i++)
		free(slot->words[i]);
	free(slot->words);
	slot->words = NULL;
	slot->nwords = 0;
}

static int add_word(struct slot *slot, const char *s, size_t len, struct fb_err *e)
{
	char **words = realloc(slot->words, (slot->nwords + 1) * sizeof(*words));
	if (!words)
		return no_memory(e);
	slot->words = words;
	char *word = strndup(s, len);
	if (!word)
		return no_memory(e);
	words[slot->nwords++] = word;
	return 0;
}

/* Words separated by commas; the first that the user gives replace the default, later ones follow.
 */
static int set_list(struct slot *slot, const struct fb_opt *o, void *p, const char *text, bool user,
	struct fb_err *e)
{
	struct fb_opt_list *list = p;
	size_t len = strlen(text);
	int rc = 0;
	if (len > 0 && !o->whole && (text[0] == ',' || text[len - 1] == ',' || strstr(text, ",,")))
		return fb_fail_usage(e, "an empty word between the commas");
	if (!user || !slot->given)
		free_words(slot);
	while (*text && !rc) {
		len = o->whole ? strlen(text) : strcspn(text, ",");
		rc = add_word(slot, text, len, e);
		text += len + (text[len] == ',');
	}
	*list = (struct fb_opt_list){(const char **)slot->words, slot->nwords};
	return rc;
}

static int set_by_type(struct slot *slot, const struct fb_opt *o, void *p, const char *text,
	bool user, struct fb_err *e)
{
	switch (o->type) {
	case FB_OPT_FLAG: return fb_opt_flag_value(p, text, e);
	case FB_OPT_INT: return set_int(o, p, text, e);
	case FB_OPT_U64: return set_u64(o, p, text, e);
	case FB_OPT_DOUBLE: return set_double(o, p, text, e);
	case FB_OPT_SIZE: return set_whole(o, p, text, fb_parse_size, e);
	case FB_OPT_DURATION: return set_whole(o, p, text, fb_parse_duration, e);
	case FB_OPT_RATE: return fb_parse_rate(text, p, e);
	case FB_OPT_STRING: return set_string(slot, p, text, e);
	case FB_OPT_ENUM: return set_enum(o, p, text, e);
	case FB_OPT_LIST: return set_list(slot, o, p, text, user, e);
	}
	return fb_fail_usage(e, "an option of unknown type");
}

/* Set one value; `shown` and `sep` are how the user named it: "-s" and " ", "size" and " = ". */
static int apply(struct fb_opt_spec *spec, const struct found *f, const char *text, bool user,
	const char *shown, const char *sep, struct fb_err *e)
{
	struct fb_err why = {0};
	struct slot *slot = slot_of(spec, f);
	int rc = set_by_type(slot, f->opt, field(spec, f), text, user, &why);
	if (rc == 0) {
		slot->given |= user;
		return 0;
	}
	if (rc == -ENOMEM)
		return no_memory(e);
	return fb_fail_usage(
		e, "%s%s%.60s%s: %s", shown, sep, text, strlen(text) > 60 ? "..." : "", why.msg);
}

/* ---- defaults and state ---- */

static size_t count_opts(const struct fb_opt *o)
{
	size_t n = 0;
	while (o[n].name)
		n++;
	return n;
}

static int make_state(struct fb_opt_spec *spec, struct fb_err *e)
{
	if (spec->state)
		return 0;
	spec->state = calloc(1, sizeof(*spec->state));
	if (!spec->state)
		return no_memory(e);
	for_each_set (spec, s) {
		spec->state->slots[s] =
			calloc(count_opts(spec->sets[s].opts) + 1, sizeof(struct slot));
		if (!spec->state->slots[s]) {
			fb_opt_free(spec);
			return no_memory(e);
		}
	}
	return 0;
}

void fb_opt_free(struct fb_opt_spec *spec)
{
	if (!spec->state)
		return;
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			struct found f = {o, s, (size_t)(o - spec->sets[s].opts)};
			if (!spec->state->slots[s])
				continue;
			struct slot *slot = slot_of(spec, &f);
			if (slot->str)
				*(char **)field(spec, &f) = NULL;
			if (slot->words)
				*(struct fb_opt_list *)field(spec, &f) = (struct fb_opt_list){0};
			free(slot->str);
			free_words(slot);
		}
		free(spec->state->slots[s]);
	}
	free(spec->state);
	spec->state = NULL;
}

static size_t size_of(enum fb_opt_type t)
{
	switch (t) {
	case FB_OPT_FLAG: return sizeof(bool);
	case FB_OPT_INT:
	case FB_OPT_ENUM: return sizeof(int);
	case FB_OPT_DOUBLE:
	case FB_OPT_RATE: return sizeof(double);
	case FB_OPT_STRING: return sizeof(char *);
	case FB_OPT_LIST: return sizeof(struct fb_opt_list);
	case FB_OPT_U64:
	case FB_OPT_SIZE:
	case FB_OPT_DURATION: return sizeof(uint64_t);
	}
	return 0;
}

int fb_opt_defaults(struct fb_opt_spec *spec, struct fb_err *e)
{
	fb_opt_free(spec);
	int rc = make_state(spec, e);
	if (rc)
		return rc;
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			struct found f, self = {o, s, (size_t)(o - spec->sets[s].opts)};
			/* A mistake in the program: two tables of one command claim one name. */
			if (find_long(spec, o->name, strlen(o->name), &f) &&
				(f.set != s || f.opt != o)) {
				rc = fb_fail_usage(e, "--%s stands in two option tables of \"%s\"",
					o->name, spec->command);
				goto undo;
			}
			memset(field(spec, &self), 0, size_of(o->type));
			if (!o->def)
				continue;
			char shown[80];
			snprintf(shown, sizeof(shown), "default of --%s", o->name);
			rc = apply(spec, &self, o->def, false, shown, " ", e);
			if (rc)
				goto undo;
		}
	}
	return 0;
undo:
	fb_opt_free(spec);
	return rc;
}

static int unknown_option(const struct fb_opt_spec *spec, const char *dashes, const char *name,
	size_t len, struct fb_err *e)
{
	char given[64];
	snprintf(given, sizeof(given), "%.*s", len < 60 ? (int)len : 60, name);
	bool no = strncmp(given, "no-", 3) == 0;
	struct found f;
	const char *near = nearest_name(spec, given);
	const char *positive = no ? nearest_name(spec, given + 3) : NULL;
	if (positive && find_long(spec, positive, strlen(positive), &f) &&
		f.opt->type == FB_OPT_FLAG)
		return fb_fail_usage(
			e, "unknown option %s%s: did you mean --no-%s?", dashes, given, positive);
	if (near)
		return fb_fail_usage(
			e, "unknown option %s%s: did you mean --%s?", dashes, given, near);
	return fb_fail_usage(e, "unknown option %s%s", dashes, given);
}

int fb_opt_set_value(
	struct fb_opt_spec *spec, const char *name, const char *value, struct fb_err *e)
{
	struct found f;
	int rc = make_state(spec, e);
	if (rc)
		return rc;
	if (!find_long(spec, name, strlen(name), &f)) {
		unknown_option(spec, "", name, strlen(name), e);
		return -ENOENT;
	}
	return apply(spec, &f, value, true, f.opt->name, " = ", e);
}

/* ---- the command line ---- */

struct args {
	struct fb_opt_spec *spec;
	int argc, i;
	char **argv;
	bool help;
};

static bool is_number(const char *s)
{
	s += *s == '-';
	s += *s == '.';
	return isdigit((unsigned char)*s) != 0;
}

/* The next argument as a value; one that looks like an option is taken for a forgotten value. */
static const char *next_value(struct args *a, const char *shown, struct fb_err *e)
{
	const char *v = a->i + 1 < a->argc ? a->argv[a->i + 1] : NULL;
	if (v && (v[0] != '-' || !v[1] || is_number(v))) {
		a->i++;
		return v;
	}
	if (!v)
		fb_fail_usage(e, "%s needs a value", shown);
	else
		fb_fail_usage(e, "%s needs a value, and \"%.60s\" looks like an option", shown, v);
	return NULL;
}

static int parse_long(struct args *a, const char *name, struct fb_err *e)
{
	size_t len = strcspn(name, "=");
	const char *value = name[len] == '=' ? name + len + 1 : NULL;
	struct found f;
	bool no = false, known = find_long(a->spec, name, len, &f);
	if (!known && len == 4 && strncmp(name, "help", 4) == 0 && !value) {
		a->help = true;
		return 0;
	}
	if (!known && len > 3 && strncmp(name, "no-", 3) == 0)
		known = no =
			find_long(a->spec, name + 3, len - 3, &f) && f.opt->type == FB_OPT_FLAG;
	if (!known)
		return unknown_option(a->spec, "--", name, len, e);
	char shown[80];
	snprintf(shown, sizeof(shown), "--%s%s", no ? "no-" : "", f.opt->name);
	if (no && value)
		return fb_fail_usage(e, "%s takes no value", shown);
	if (f.opt->type == FB_OPT_FLAG && !value)
		return apply(a->spec, &f, no ? "no" : "yes", true, shown, " ", e);
	if (!value)
		value = next_value(a, shown, e);
	return value ? apply(a->spec, &f, value, true, shown, " ", e) : -EINVAL;
}

/* "-ab" are two flags; the first option that takes a value takes the rest: "-s64K". */
static int parse_short(struct args *a, const char *word, struct fb_err *e)
{
	for (const char *p = word; *p; p++) {
		struct found f;
		char shown[3] = {'-', *p, '\0'};
		if (!fb_opt_by_letter(a->spec, *p, &f)) {
			if (*p == 'h') {
				a->help = true;
				return 0;
			}
			return unknown_option(a->spec, "-", p == word ? word : p,
				p == word ? strcspn(word, "=") : 1, e);
		}
		if (f.opt->type == FB_OPT_FLAG) {
			int rc = apply(a->spec, &f, "yes", true, shown, " ", e);
			if (rc)
				return rc;
			continue;
		}
		const char *value = p[1] ? p + 1 : next_value(a, shown, e);
		if (!value)
			return -EINVAL;
		int rc = apply(a->spec, &f, value, true, shown, " ", e);
		if (rc && p[1] && fb_opt_find(a->spec, word, NULL))
			fb_hint(e, "long names take two dashes: --%s", word);
		return rc;
	}
	return 0;
}

/* A bare argument goes to the first positional option that has no value yet; a list takes all that
 * follow. */
static int parse_bare(struct args *a, const char *word, struct fb_err *e)
{
	bool any = false;
	for_each_set (a->spec, s) {
		for_each_opt (a->spec, s, o) {
			struct found f = {o, s, (size_t)(o - a->spec->sets[s].opts)};
			if (!o->positional)
				continue;
			any = true;
			if (!slot_of(a->spec, &f)->given || o->type == FB_OPT_LIST)
				return apply(a->spec, &f, word, true, fb_opt_arg_name(o), " ", e);
		}
	}
	return fb_fail_usage(e, "unexpected argument \"%.60s\"%s", word,
		any ? ": every place for a bare argument is taken" : "");
}

static int parse_args(struct args *a, struct fb_err *e)
{
	bool options = true;
	for (a->i = 1; a->i < a->argc && !a->help; a->i++) {
		const char *w = a->argv[a->i];
		struct found f;
		int rc;
		if (options && strcmp(w, "--") == 0) {
			options = false;
			continue;
		}
		bool number = w[0] == '-' && is_number(w) && !fb_opt_by_letter(a->spec, w[1], &f);
		if (options && w[0] == '-' && w[1] == '-')
			rc = parse_long(a, w + 2, e);
		else if (options && w[0] == '-' && w[1] && !number)
			rc = parse_short(a, w + 1, e);
		else
			rc = parse_bare(a, w, e);
		if (rc)
			return rc;
	}
	return 0;
}

int fb_opt_parse(struct fb_opt_spec *spec, int argc, char **argv, struct fb_err *e)
{
	int rc = fb_opt_defaults(spec, e);
	if (rc)
		return rc;
	struct args a = {.spec = spec, .argc = argc, .argv = argv};
	rc = parse_args(&a, e);
	if (rc == 0 && !a.help)
		return 0;
	if (rc == 0) {
		fb_opt_help(spec, stdout);
		rc = 1;
	} else {
		fb_hint(e, "fabricbench %s --help lists every option", spec->command);
	}
	fb_opt_free(spec);
	return rc;
}

/* ---- the document ---- */

static void set_json(json_t *obj, const struct fb_opt *o, const void *p)
{
	const struct fb_opt_list *list = p;
	switch (o->type) {
	case FB_OPT_FLAG: fb_json_set_bool(obj, o->name, *(const bool *)p); break;
	case FB_OPT_INT: fb_json_set_int(obj, o->name, *(const int *)p); break;
	case FB_OPT_U64:
	case FB_OPT_SIZE:
	case FB_OPT_DURATION: fb_json_set_int(obj, o->name, *(const int64_t *)p); break;
	case FB_OPT_DOUBLE:
	case FB_OPT_RATE:
		fb_json_set_real(obj, o->name, *(const double *)p, "not a finite number");
		break;
	case FB_OPT_STRING: fb_json_set_str(obj, o->name, *(char *const *)p); break;
	case FB_OPT_ENUM: fb_json_set_str(obj, o->name, o->names[*(const int *)p]); break;
	case FB_OPT_LIST: {
		json_t *a = json_array(), *word = json_object();
		for (size_t i = 0; a && word && i < list->n; i++) {
			/* The one door for strings: it mends bytes that are not UTF-8. */
			fb_json_set_str(word, "w", list->v[i]);
			json_array_append(a, json_object_get(word, "w"));
		}
		json_decref(word);
		json_object_set_new(obj, o->name, a);
		break;
	}
	}
}

json_t *fb_opt_to_json(const struct fb_opt_spec *spec, bool requested)
{
	json_t *obj = json_object();
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			struct found f = {o, s, (size_t)(o - spec->sets[s].opts)};
			bool given = spec->state && slot_of(spec, &f)->given;
			if (!obj || (!given && (requested || o->hidden)))
				continue;
			if (!o->secret)
				set_json(obj, o, field(spec, &f));
			else if (given)
				fb_json_set_str(obj, o->name, "(set)");
		}
	}
	return obj;
}
