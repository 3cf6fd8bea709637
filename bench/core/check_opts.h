/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every `check KIND` command shares: the options that judge and print, the refusals that go
 * with them, and the document's way from its making to the exit status.
 */
#ifndef FB_CORE_CHECK_OPTS_H
#define FB_CORE_CHECK_OPTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/core/check.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"

enum fb_check_format { FB_CHECK_TABLE, FB_CHECK_JSON, FB_CHECK_JUNIT, FB_CHECK_MARKDOWN };
struct fb_check_cfg {
	struct fb_opt_list require;
	bool strict, list;
	char *explain;
	int format;             /**< enum fb_check_format */
	char *junit, *markdown; /**< files to write besides */
};
extern const struct fb_opt fb_check_opts[]; /**< over struct fb_check_cfg */

/** --list and --explain: print what `defs` (ends with id NULL) tells. `listed` may be fewer than
 * `all`, in which --explain looks. @return 0; -EINVAL: no such check (exit 2) */
int fb_check_tell(const struct fb_check_cfg *c, const struct fb_check_def *listed,
	const struct fb_check_def *all, struct fb_err *e) FB_MUST_CHECK;

/** Refuse what contradicts itself and ids that --require names and nobody has; makes of --format
 * json what --json is. @return 0 or -EINVAL (exit 2) */
int fb_check_prepare(const struct fb_check_cfg *c, struct fb_output_cfg *out,
	const struct fb_check_def *defs, struct fb_err *e) FB_MUST_CHECK;

/** fb_check_judge() by --strict and --require. @return the exit status */
int fb_check_verdict(const struct fb_check_cfg *c, struct fb_doc *doc);

/**
 * A document from its beginning to its end: `work` fills it and returns the exit status; an error
 * in *e is kept in the document, which then prints no table of `table`'s.
 * @return the exit status
 */
int fb_check_document(struct fb_opt_spec *spec, const struct fb_check_cfg *c,
	const struct fb_output_cfg *out, int argc, char **argv,
	void (*table)(const json_t *doc, FILE *out),
	int (*work)(void *arg, struct fb_doc *doc, struct fb_err *e), void *arg, struct fb_err *e);

/** Of a check that warns or fails: what was expected, the remedy and what that disturbs, each on a
 * line of its own, indented. Nothing for others. */
void fb_check_print_mend(const json_t *check, FILE *out);
/** The document's warnings, then the verdict with its counts. */
void fb_check_print_end(const json_t *doc, FILE *out);

#endif
