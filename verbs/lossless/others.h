/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts that do not come from the examined node: other nodes to compare with, and what root
 * recorded for a user who may not read it.
 */
#ifndef VERBS_LOSSLESS_OTHERS_H
#define VERBS_LOSSLESS_OTHERS_H

#include "bench/core/check_others.h"
#include "bench/core/opt.h"
#include "verbs/lossless/facts.h"

/** Other nodes; free by others_free(). */
struct others {
	struct node_facts **node;
	int n;
	struct fb_others_passed passed; /**< what folders held besides */
};
/**
 * Each name is a recorded tree, a document that `check` wrote with -o, or a folder of them. What a
 * folder holds besides is counted; a node named twice, or the examined one, is kept once. Trees
 * in several folders that tell one host name are several nodes.
 * @param own_dir the examined tree; NULL: the live machine
 * @return 0; -ENOENT, -EINVAL: nothing of a node is there (exit 2)
 */
int others_read(const struct fb_opt_list *names, const char *own_host, const char *own_dir,
	struct others *o, struct fb_err *e) FB_MUST_CHECK;
void others_free(struct others *o);

/**
 * Replace facts of `live` that are hidden from this user by those of `tree` that are known, or
 * files that are known not to be there, port by port under the device's name, where PCI address,
 * driver and board are the same too. @param taken receives the reads of what was replaced, between
 * newlines (caller frees); NULL when nothing was
 * @return how many ports of `live` the tree has; 0: it is of another machine
 */
int facts_overlay(struct node_facts *live, const struct node_facts *tree, char **taken);

/** "3 h ago", "12 days ago", "in the future" of "2026-01-31T12:00:00Z". @return false: no such time
 */
bool facts_age(const char *recorded, int64_t now_s, char *buf, size_t len);
/** How old what was not read now is: to the `read` of each check that rests on a line of `taken`,
 * or with `all` of every one. @param age empty: nothing is told */
void facts_mark_ages(json_t *checks, const char *taken, bool all, const char *age);

#endif
