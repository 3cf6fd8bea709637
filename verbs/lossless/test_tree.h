/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a .tree file, with lines of the test's own after it, as facts. */
#ifndef VERBS_LOSSLESS_TEST_TREE_H
#define VERBS_LOSSLESS_TEST_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/core/test.h"
#include "verbs/lossless/facts.h"
#include "verbs/lossless/tree.h"

struct test_tree {
	char top[64], dir[128];
	struct fb_sysroot root;
	struct node_facts facts;
};

static int test_tree_remove(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

/** Expand: `file` (may be NULL), then `more` (lines; may be NULL). */
static inline void test_tree_make(struct test_tree *t, const char *file, const char *more)
{
	struct fb_err e = {0};
	char path[256], *here = realpath(".", NULL);
	assert_non_null(here);
	*t = (struct test_tree){.facts = {.ports = 0}};
	snprintf(t->top, sizeof(t->top), "/tmp/fb-tree-XXXXXX");
	assert_non_null(mkdtemp(t->top));
	snprintf(path, sizeof(path), "%s/test.tree", t->top);
	snprintf(t->dir, sizeof(t->dir), "%s/tree", t->top);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	if (file) /* includes are relative to the file: from /tmp/fb-tree-.../ up to the top */
		fprintf(f, "include ../..%s/%s\n", here, file);
	fprintf(f, "%s\n", more ? more : "");
	fclose(f);
	free(here);
	if (tree_expand(path, t->dir, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(fb_sysroot_open(&t->root, t->dir, &e), 0);
}
/** The same, and read. */
static inline void test_tree_open(struct test_tree *t, const char *file, const char *more)
{
	struct fb_err e = {0};
	test_tree_make(t, file, more);
	if (facts_read(&t->root, NULL, &t->facts, &e) != 0)
		fail_msg("%s", e.msg);
}
static inline void test_tree_close(struct test_tree *t)
{
	facts_free(&t->facts);
	fb_sysroot_close(&t->root);
	nftw(t->top, test_tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
