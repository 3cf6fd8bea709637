/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: a constructed node (test_machine.h), opened, examined by every check and asked
 * what was found.
 */
#ifndef TOPO_NODE_NODE_TEST_H
#define TOPO_NODE_NODE_TEST_H

#include "bench/core/test.h"

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "topo/node/node_priv.h"
#include "topo/node/test_machine.h"

struct examined {
	struct test_tree tree;
	struct fb_sysroot root;
	struct node node;
	struct fb_doc *doc;
};

static inline void tree_begin(struct examined *x, const struct machine *m)
{
	*x = (struct examined){.doc = NULL};
	machine_tree(&x->tree);
	if (m)
		machine_make(&x->tree, m);
}

static inline void open_node(struct examined *x)
{
	struct fb_err e = {0};
	if (fb_sysroot_open(&x->root, x->tree.dir, &e) != 0 ||
		node_open(&x->node, &x->root, &e) != 0)
		fail_msg("%s", e.msg);
}

static inline void expect_text(struct examined *x, const char *text)
{
	struct fb_err e = {0};
	if (node_expect_parse(text, strlen(text), "machine.ini", &x->node.expect, &e) != 0)
		fail_msg("%s", e.msg);
}

static inline void run_all(struct examined *x)
{
	char name[] = "check node", *argv[] = {name, NULL};
	const struct fb_output_cfg out = {.quiet = true, .timeout = 600000000000};
	struct fb_err e = {0};
	x->doc = fb_doc_new("check node", 1, argv, &out, &e);
	assert_non_null(x->doc);
	for (const struct node_check *k = node_checks; k->def.id; k++) {
		struct node_run run = {.n = &x->node, .def = &k->def, .doc = x->doc};
		k->run(&run);
		if (run.findings == 0)
			fail_msg("%s finds nothing at all", k->def.id);
	}
}

static inline void examined_end(struct examined *x)
{
	fb_doc_free(x->doc);
	node_close(&x->node);
	fb_sysroot_close(&x->root);
	tree_remove(&x->tree);
}

static inline int rank(const char *state)
{
	static const char *const order[] = {"skip", "info", "pass", "error", "warn", "fail"};
	for (int i = 0; i < 6; i++)
		if (strcmp(state, order[i]) == 0)
			return i;
	return -1;
}

/* The worst row of a check; with `at`, of a subject that holds it. */
static inline const json_t *worst_at(const struct examined *x, const char *id, const char *at)
{
	const json_t *checks = json_object_get(fb_doc_json(x->doc), "checks"), *c, *found = NULL;
	size_t i;
	json_array_foreach (checks, i, c) {
		if (strcmp(fb_json_str(c, "id", ""), id) != 0 ||
			(at && !strstr(fb_json_str(c, "subject", ""), at)))
			continue;
		if (!found ||
			rank(fb_json_str(c, "state", "")) > rank(fb_json_str(found, "state", "")))
			found = c;
	}
	return found;
}

static inline const char *state_at(const struct examined *x, const char *id, const char *at)
{
	return fb_json_str(worst_at(x, id, at), "state", "missing");
}

static inline void is(const struct examined *x, const char *id, const char *state)
{
	const json_t *c = worst_at(x, id, NULL);
	if (strcmp(fb_json_str(c, "state", "missing"), state) != 0)
		fail_msg("%s is %s, not %s: %s%s at %s", id, fb_json_str(c, "state", "missing"),
			state, fb_json_str(c, "observed", ""), fb_json_str(c, "reason", ""),
			fb_json_str(c, "subject", ""));
}

static inline void says(const struct examined *x, const char *id, const char *text)
{
	const json_t *c = worst_at(x, id, NULL);
	if (!strstr(fb_json_str(c, "observed", fb_json_str(c, "reason", "")), text))
		fail_msg("%s does not say \"%s\": %s", id, text,
			fb_json_str(c, "observed", fb_json_str(c, "reason", "")));
}

/* Nothing is against the node. */
static inline void clean(const struct examined *x)
{
	const json_t *checks = json_object_get(fb_doc_json(x->doc), "checks"), *c;
	size_t i;
	json_array_foreach (checks, i, c)
		if (rank(fb_json_str(c, "state", "")) >= 3)
			fail_msg("%s at %s: %s", fb_json_str(c, "id", ""),
				fb_json_str(c, "subject", ""), fb_json_str(c, "observed", ""));
}

/* Replace the first `from` of a file. */
static inline void change(
	const struct test_tree *tree, const char *path, const char *from, const char *to)
{
	char full[512], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	tree_join(full, sizeof(full), "%s%s", tree->dir, path);
	if (fb_read_file(full, 1u << 20, &text, &len, &e) != 0)
		fail_msg("%s", e.msg);
	char *at = strstr(text, from);
	if (!at)
		fail_msg("%s has no \"%s\"", path, from);
	FILE *f = fopen(full, "w");
	assert_non_null(f);
	fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	fclose(f);
	free(text);
}

#endif
