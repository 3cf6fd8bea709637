/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every `check KIND` command shares: the options that judge and print, the refusals that go
 * with them, and the way from a command's words to its exit status.
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

/** Refuse what contradicts itself and ids that --require names and nobody has; makes of --format
 * json what --json is. @return 0 or -EINVAL (exit 2) */
int fb_check_prepare(const struct fb_check_cfg *c, struct fb_output_cfg *out,
	const struct fb_check_def *defs, struct fb_err *e) FB_MUST_CHECK;

/** fb_check_judge() by --strict and --require. @return the exit status */
int fb_check_verdict(const struct fb_check_cfg *c, struct fb_doc *doc);

/** One kind of `check`: what fb_check_command() does not know of it. */
struct fb_check_kind {
	void *command; /**< given to each function here; the caller's, and so is what it holds */
	const struct fb_check_cfg *judge;
	const struct fb_output_cfg *out;
	/** For --list, and the same or more for --explain; each ends with id NULL. */
	const struct fb_check_def *listed, *all;
	/** After the options are read: fb_check_prepare(), and what is the kind's own to refuse and
	 * to open. @return 0, or a negative errno with *e filled */
	int (*prepare)(void *command, struct fb_err *e);
	const bool *learning; /**< NULL, or: `learn` is asked for instead of a document */
	/** @return the exit status, which *e has where it is filled */
	int (*learn)(void *command, struct fb_err *e);
	/** Fill the document. @return the exit status; an error in *e is kept in the document, of
	 * which no table is printed then */
	int (*work)(void *command, struct fb_doc *doc, struct fb_err *e);
	void (*table)(const json_t *doc, FILE *out);
};

/**
 * A command from its words to its exit status: options are read into what `spec` names, --list and
 * --explain are answered, or the kind prepares and its document is made, judged and written. Errors
 * are told here. `spec`'s options are free again when this returns.
 * @return the exit status
 */
int fb_check_command(
	struct fb_opt_spec *spec, const struct fb_check_kind *kind, int argc, char **argv);

/** Of a check that warns or fails: what was expected, the remedy and what that disturbs, each on a
 * line of its own, indented. Nothing for others. */
void fb_check_print_mend(const json_t *check, FILE *out);
/** The document's warnings, then the verdict with its counts. */
void fb_check_print_end(const json_t *doc, FILE *out);

#endif
