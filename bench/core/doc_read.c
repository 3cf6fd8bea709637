// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of result documents. The shape is data (doc_shape.h); what a schema cannot say
 * (histograms that add up, intervals in order) is checked after.
 *
 * Input is not trusted: its size is bounded, and nothing is believed before it is checked.
 */
#include "bench/core/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/doc_shape.h"
#include "bench/core/hist.h"
#include "bench/core/json.h"

#define DOC_MAX_BYTES (64u << 20)

struct reader {
	const char *name;
	char path[256];
	struct fb_err *e;
};

static unsigned type_of(const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: return T_OBJ;
	case JSON_ARRAY: return T_ARR;
	case JSON_STRING: return T_STR;
	case JSON_INTEGER: return T_INT;
	case JSON_REAL: return T_REAL;
	case JSON_TRUE:
	case JSON_FALSE: return T_BOOL;
	default: return T_NULL;
	}
}

static const char *type_names(unsigned types, char *buf, size_t len)
{
	static const struct {
		unsigned type;
		const char *name;
	} names[] = {{T_STR, "a string"}, {T_REAL, "a number"}, {T_INT, "an integer"},
		{T_BOOL, "true or false"}, {T_OBJ, "an object"}, {T_ARR, "an array"},
		{T_NULL, "null"}};
	if (types & T_REAL)
		types &= ~(unsigned)T_INT;
	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(buf);
		if (types & names[i].type)
			snprintf(buf + n, len - n, "%s%s", n ? " or " : "", names[i].name);
	}
	return buf;
}

static int bad(const struct reader *r, const char *why)
{
	fb_fail(r->e, FB_EXIT_USAGE, EINVAL, "%s: %s: %s", r->name, r->path[0] ? r->path : "top",
		why);
	fb_hint(r->e, "it is not a result document of schema %s that fabricbench wrote", FB_SCHEMA);
	return -EINVAL;
}

/* Go down to a key or an element. @return the old length, for up() */
static size_t down(struct reader *r, const char *key, size_t index)
{
	size_t n = strlen(r->path);
	if (key)
		snprintf(r->path + n, sizeof(r->path) - n, "%s%.64s", n ? "." : "", key);
	else
		snprintf(r->path + n, sizeof(r->path) - n, "[%zu]", index);
	return n;
}

static void up(struct reader *r, size_t n)
{
	r->path[n] = '\0';
}

static int check_type(const struct reader *r, const json_t *j, unsigned types)
{
	char names[128], why[192];
	if (type_of(j) & types)
		return 0;
	snprintf(why, sizeof(why), "must be %s", type_names(types, names, sizeof(names)));
	return bad(r, why);
}

static int check_word(const struct reader *r, const char *s, const char *const *words)
{
	char why[256] = "must be one of";
	if (!words[0])
		return *s ? 0 : bad(r, "must not be empty");
	for (const char *const *w = words; *w; w++) {
		if (strcmp(s, *w) == 0)
			return 0;
		size_t n = strlen(why);
		snprintf(why + n, sizeof(why) - n, "%s %s", w == words ? "" : ",", *w);
	}
	size_t n = strlen(why);
	snprintf(why + n, sizeof(why) - n, "; it is \"%.40s\"", s);
	return bad(r, why);
}

static int check_object(struct reader *r, const json_t *j, const struct shape *keys);

static int check_value(struct reader *r, const json_t *j, const struct shape *s)
{
	int rc = check_type(r, j, s->types);
	if (rc < 0)
		return rc;
	if (json_is_string(j) && s->words)
		return check_word(r, json_string_value(j), s->words);
	if (json_is_integer(j) && s->natural && json_integer_value(j) < 0)
		return bad(r, "must not be negative");
	if (json_is_object(j) && s->keys)
		return check_object(r, j, s->keys);
	if (!json_is_array(j))
		return 0;
	for (size_t i = 0; i < json_array_size(j) && rc == 0; i++) {
		const json_t *item = json_array_get(j, i);
		size_t n = down(r, NULL, i);
		if (s->items)
			rc = check_type(r, item, s->items);
		if (rc == 0 && s->item_keys)
			rc = check_object(r, item, s->item_keys);
		if (rc == 0)
			up(r, n);
	}
	return rc;
}

static int check_object(struct reader *r, const json_t *j, const struct shape *keys)
{
	for (const struct shape *s = keys; s->key; s++) {
		const json_t *v = json_object_get(j, s->key);
		size_t n = down(r, s->key, 0);
		if (!v && !s->optional)
			return bad(r, "missing");
		if (v && check_value(r, v, s) < 0)
			return -EINVAL;
		up(r, n);
	}
	return 0;
}

/* ---- what a schema cannot say ---------------------------------------------------------------- */

static int check_hist(struct reader *r, const json_t *result)
{
	struct fb_err why = {0};
	const json_t *hist = json_object_get(result, "hist");
	struct fb_hist *h = malloc(sizeof(*h));
	size_t n = down(r, "hist", 0);
	if (!h)
		return fb_fail(r->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to read %s", r->name);
	int rc = fb_hist_from_json(h, hist, &why);
	uint64_t count = rc == 0 ? h->n : 0;
	free(h);
	if (rc < 0)
		return bad(r, why.msg);
	up(r, n);
	if ((json_int_t)count != json_integer_value(json_object_get(result, "n"))) {
		down(r, "n", 0);
		return bad(r, "differs from the histogram's count");
	}
	return 0;
}

static int check_result(struct reader *r, const json_t *result)
{
	const json_t *hist = json_object_get(result, "hist");
	const json_t *ci = json_object_get(result, "ci");
	if (!hist && !json_object_get(result, "samples"))
		return bad(r, "has neither hist nor samples");
	if (json_is_null(json_object_get(result, "value")) &&
		!json_object_get(result, "value_reason")) {
		down(r, "value_reason", 0);
		return bad(r, "missing: a value of null needs its reason");
	}
	if (json_is_object(ci) && fb_json_num(ci, "lo", 0) > fb_json_num(ci, "hi", 0)) {
		down(r, "ci", 0);
		return bad(r, "its lower end is above its upper end");
	}
	return hist ? check_hist(r, result) : 0;
}

static int check_check(struct reader *r, const json_t *check)
{
	const char *state = fb_json_str(check, "state", "");
	if ((strcmp(state, "skip") == 0 || strcmp(state, "error") == 0) &&
		!json_object_get(check, "reason")) {
		down(r, "reason", 0);
		return bad(r, "missing: a check that ends skip or error needs its reason");
	}
	return 0;
}

static int check_claim(struct reader *r, const json_t *claim)
{
	if (json_is_null(json_object_get(claim, "factor_pct")) &&
		!json_object_get(claim, "factor_pct_reason")) {
		down(r, "factor_pct_reason", 0);
		return bad(r, "missing: a factor of null needs its reason");
	}
	return 0;
}

static int check_each(struct reader *r, const json_t *doc, const char *key,
	int (*fn)(struct reader *r, const json_t *j))
{
	const json_t *list = json_object_get(doc, key);
	for (size_t i = 0; i < json_array_size(list); i++) {
		r->path[0] = '\0';
		down(r, key, 0);
		down(r, NULL, i);
		int rc = fn(r, json_array_get(list, i));
		if (rc < 0)
			return rc;
	}
	return 0;
}

int fb_doc_validate(const json_t *doc, const char *name, struct fb_err *e)
{
	struct reader r = {.name = name, .e = e};
	if (!json_is_object(doc))
		return bad(&r, "must be an object");
	int rc = check_object(&r, doc, fb_doc_shape);
	if (rc == 0)
		rc = check_each(&r, doc, "results", check_result);
	if (rc == 0)
		rc = check_each(&r, doc, "checks", check_check);
	if (rc == 0)
		rc = check_each(&r, doc, "claims", check_claim);
	return rc;
}

json_t *fb_doc_parse(const char *text, size_t len, const char *name, struct fb_err *e)
{
	if (len > DOC_MAX_BYTES) {
		fb_fail(e, FB_EXIT_USAGE, EFBIG, "%s: larger than %u MiB", name,
			DOC_MAX_BYTES >> 20);
		return NULL;
	}
	json_t *doc = fb_json_parse(text, len, name, e);
	if (doc && fb_doc_validate(doc, name, e) < 0) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

json_t *fb_doc_load(const char *path, struct fb_err *e)
{
	char *text;
	size_t len;
	if (fb_read_file(path, DOC_MAX_BYTES, &text, &len, e) < 0)
		return NULL;
	json_t *doc = fb_doc_parse(text, len, path, e);
	free(text);
	return doc;
}
