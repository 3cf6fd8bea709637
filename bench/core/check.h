/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks: what was read, what was expected and why, and the command that mends it. A check is one
 * row of a table and one function over facts; what it found is a finding, which becomes a check of
 * the document (DESIGN.md, "Check"). `skip` and `error` carry a reason and are never a pass or a
 * fail.
 */
#ifndef FB_CORE_CHECK_H
#define FB_CORE_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/core/err.h"

struct fb_doc;

enum fb_check_state {
	FB_CHECK_PASS,
	FB_CHECK_WARN,
	FB_CHECK_FAIL,
	FB_CHECK_INFO,
	FB_CHECK_SKIP,
	FB_CHECK_ERROR,
	FB_CHECK_STATES
};
extern const char *const fb_check_state_names[]; /**< "pass", "warn", ... */

/** What can be said of a check before it runs; `check --list` and `--explain` print it. */
struct fb_check_def {
	const char *id;          /**< "R15", "inv.gpu_count": a contract */
	const char *title;       /**< "PFC on the RoCE priority" */
	const char *needs;       /**< what it reads, in words: "DCB netlink (mlx5, ice, bnxt_en)" */
	const char *rule;        /**< when it passes, warns, fails, skips */
	const char *remedy;      /**< a command, %s-free */
	const char *side_effect; /**< what the remedy disturbs; NULL: nothing */
	const char *source;      /**< where the rule comes from */
	const char *evidence;    /**< "hardware", "recorded", "constructed": proven on */
};

/** What a check found about one subject. Texts are cut, never overrun. */
struct fb_finding {
	enum fb_check_state state;
	char subject[160];  /**< "mlx5_0/1 (eth2)", a host, a switch port */
	char observed[256]; /**< with its unit */
	char expected[192];
	char expected_source[160]; /**< "profile site.ini", "IEEE 802.1Q", "the other nodes" */
	char read[256];            /**< the exact path or call */
	char reason[256];          /**< of skip and error: why it could not look */
	char remedy[320];          /**< of this subject; empty: the definition's */
	char side_effect[160];
};
/** Set state and the text of observed (skip, error: of reason). */
void fb_find(struct fb_finding *f, enum fb_check_state s, const char *fmt, ...) FB_PRINTF(3, 4);
void fb_find_expected(struct fb_finding *f, const char *source, const char *fmt, ...)
	FB_PRINTF(3, 4);
void fb_find_read(struct fb_finding *f, const char *fmt, ...) FB_PRINTF(2, 3);
void fb_find_remedy(struct fb_finding *f, const char *side_effect, const char *fmt, ...)
	FB_PRINTF(3, 4);

/** {id, title, subject, state, observed, expected {value, source}, read, reason, remedy,
 * side_effect, evidence}: what does not apply is absent. New reference. */
json_t *fb_finding_json(const struct fb_check_def *d, const struct fb_finding *f);

/** How findings end in an exit status and a verdict. */
struct fb_check_judge {
	bool strict; /**< --strict: a warning fails */
	const char *const
		*require; /**< --require: ids that must be pass, warn or info; n_require */
	size_t n_require;
};
/**
 * Over a document's checks[]: ACCEPTED 0; REJECTED 1 (a fail, or a warning under strict);
 * INCOMPLETE 3 (a required id is missing, skip or error); nothing but skips, and nothing required:
 * INCOMPLETE, 77. Writes verdict {state, why, counts {pass,...}} into the document.
 * @return the exit status
 */
int fb_check_judge(struct fb_doc *doc, const struct fb_check_judge *j);

/** `--list`: id, title, needs, evidence, one line each. `--explain ID`: one entry in full; an
 * unknown id names the nearest (-EINVAL, exit 2). Tables end with id NULL. */
void fb_check_list(const struct fb_check_def *const *tables, size_t n, FILE *out);
int fb_check_explain(const struct fb_check_def *const *tables, size_t n, const char *id, FILE *out,
	struct fb_err *e) FB_MUST_CHECK;

/** JUnit XML and Markdown of a document's checks. */
void fb_check_junit(const json_t *doc, FILE *out);
/** The suite of them alone, to stand beside others in one file. */
void fb_check_junit_suite(const json_t *doc, FILE *out);
void fb_check_markdown(const json_t *doc, FILE *out);

#endif
