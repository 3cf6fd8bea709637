/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and judging in tests: one call, and what was found by id and state. */
#ifndef TOPO_FABRIC_FABRIC_TEST_H
#define TOPO_FABRIC_FABRIC_TEST_H

#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "topo/fabric/fabric_priv.h"
#include "topo/fabric/test_fabric.h"

struct judged {
	struct fabric *f;
	struct fb_doc *doc;
	struct fb_err e;
	int rc;
};

static inline struct fb_doc *new_doc(struct fb_err *e)
{
	static char word[] = "fabric";
	static char *argv[] = {word, NULL};
	static struct fb_output_cfg out = {.quiet = true};
	return fb_doc_new("topo fabric", 1, argv, &out, e);
}

/* Parse, finish and judge; rules may be NULL. */
static inline void judge_text(struct judged *j, const char *text, size_t len,
	int (*parse)(struct fabric *, const char *, size_t, const char *, struct fb_err *),
	const char *counters, const struct fabric_rules *rules)
{
	static const struct fabric_rules none;
	memset(j, 0, sizeof(*j));
	j->f = fabric_new();
	j->doc = new_doc(&j->e);
	assert_non_null(j->f);
	assert_non_null(j->doc);
	j->rc = parse(j->f, text, len, "file", &j->e);
	if (j->rc == 0)
		j->rc = fabric_finish(j->f, "file", &j->e);
	if (j->rc == 0 && counters)
		j->rc = fabric_parse_counters(j->f, counters, strlen(counters), "counters", &j->e);
	if (j->rc == 0)
		j->rc = fabric_judge(j->f, rules ? rules : &none, j->doc);
}

static inline void judged_free(struct judged *j)
{
	fabric_free(j->f);
	fb_doc_free(j->doc);
	memset(j, 0, sizeof(*j));
}

/* How many rows of a check (NULL: any) have a state (NULL: warn or fail). */
static inline int count_rows(const struct judged *j, const char *id, const char *state)
{
	const json_t *c;
	size_t i;
	int n = 0;
	json_array_foreach (json_object_get(fb_doc_json(j->doc), "checks"), i, c) {
		const char *s = fb_json_str(c, "state", "");
		bool is = state ? strcmp(s, state) == 0
				: strcmp(s, "warn") == 0 || strcmp(s, "fail") == 0;
		n += is && (!id || strcmp(fb_json_str(c, "id", ""), id) == 0);
	}
	return n;
}

/* The n-th such row's text under a key ("observed", "subject", "remedy", "expected"). */
static inline const char *row_text(
	const struct judged *j, const char *id, const char *state, int n, const char *key)
{
	const json_t *c;
	size_t i;
	json_array_foreach (json_object_get(fb_doc_json(j->doc), "checks"), i, c) {
		if (strcmp(fb_json_str(c, "id", ""), id) != 0 ||
			strcmp(fb_json_str(c, "state", ""), state) != 0 || n-- > 0)
			continue;
		if (strcmp(key, "expected") == 0)
			return fb_json_str(json_object_get(c, "expected"), "value", "");
		return fb_json_str(c, key, "");
	}
	return "";
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* A made fabric's text; the caller frees it. */
static inline char *made_text(const struct made *m, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	assert_non_null(out);
	made_write(m, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline void judge_made(struct judged *j, const struct made *m, const char *counters,
	const struct fabric_rules *rules)
{
	size_t len;
	char *text = made_text(m, &len);
	judge_text(j, text, len, fabric_parse_discover, counters, rules);
	free(text);
	if (j->rc < 0)
		fail_msg("%s", j->e.msg);
}

static inline char *read_data(const char *name, size_t *len)
{
	char path[256], *text = NULL;
	struct fb_err e = {0};
	snprintf(path, sizeof(path), "topo/fabric/testdata/%s", name);
	if (fb_read_file(path, FABRIC_MAX_BYTES, &text, len, &e) < 0)
		fail_msg("%s", e.msg);
	return text;
}

#endif
