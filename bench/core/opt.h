/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option tables: one table describes an option once; parsing, defaults, help, plan files and the
 * document's config{requested,effective} all come from it.
 *
 * A command may chain several tables (its own, run control's, the output's), each with its own
 * struct.
 */
#ifndef FB_CORE_OPT_H
#define FB_CORE_OPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/err.h"

enum fb_opt_type {
	FB_OPT_FLAG,     /**< bool; "--name" sets true, "--no-name" false (the help shows
			    "--no-name" when true is the default); in plans "name =
			    yes|no|true|false|1|0" */
	FB_OPT_INT,      /**< int, within min..max */
	FB_OPT_U64,      /**< uint64_t, within min..max */
	FB_OPT_DOUBLE,   /**< double, within min..max (as integers) */
	FB_OPT_SIZE,     /**< uint64_t bytes: "64K" */
	FB_OPT_DURATION, /**< uint64_t ns: "10s" */
	FB_OPT_RATE,     /**< double bytes/s: "10Gb/s" */
	FB_OPT_STRING,   /**< char *: a copy owned by the spec, freed by fb_opt_free(); NULL by
			    default */
	FB_OPT_ENUM,     /**< int: one of `names`, its index */
	FB_OPT_LIST,     /**< struct fb_opt_list: repeated option or comma-separated */
};

struct fb_opt_list {
	const char **v; /**< owned by the parsed option set, freed by fb_opt_free() */
	size_t n;
};

struct fb_opt {
	char letter;      /**< short option, or 0 */
	const char *name; /**< long option without dashes; NULL ends a table */
	enum fb_opt_type type;
	size_t offset;            /**< offsetof in the table's struct */
	const char *arg;          /**< what the help calls the argument, e.g. "BYTES" */
	const char *help;         /**< one sentence, no full stop */
	const char *def;          /**< default as text, parsed as the user's would be; NULL: zero */
	const char *const *names; /**< FB_OPT_ENUM: NULL-terminated words */
	int64_t min, max;         /**< 0,0: any */
	bool positional;          /**< may also be given as a bare argument, in table order */
	bool hidden;              /**< not in the help (test switches) */
	bool secret;              /**< a shared token: the document says "(set)", never the value */
	bool whole; /**< FB_OPT_LIST: an argument is one word, commas and all: a path */
};

/** A table together with the struct it fills. */
struct fb_opt_set {
	const char *title; /**< heading in the help, e.g. "Run control" */
	const struct fb_opt *opts;
	void *cfg;
};

/** What a command says of itself; sets[] ends with opts == NULL. A letter belongs to the first
 * table that has it; a long name may stand in one table only. Call fb_opt_free() at the end; a
 * failed parse has freed. */
struct fb_opt_spec {
	const char *command; /**< "verbs latency" */
	const char *usage;   /**< after the command's name, e.g. "[options] [HOST]" */
	const char *summary; /**< one or two sentences */
	const char *notes;   /**< printed after the options: definitions, examples; may be NULL */
	struct fb_opt_set sets[8];
	struct fb_opt_state *state; /**< what was given, and owned strings; starts NULL, made and
				       freed by fb_opt_*() */
};

/**
 * Defaults, then arguments. "--name=value", "--name value", "-nVALUE", "-n value", "--" ends
 * options.
 * --help prints the help to stdout and makes this return 1.
 * @param argv[0] is skipped.
 * @return 0; 1 when help was printed; -EINVAL with the unknown option or bad value and the nearest
 * valid one (exit 2)
 */
int fb_opt_parse(struct fb_opt_spec *spec, int argc, char **argv, struct fb_err *e) FB_MUST_CHECK;
/** Only the defaults. */
int fb_opt_defaults(struct fb_opt_spec *spec, struct fb_err *e) FB_MUST_CHECK;
/** Set one option by its long name (plans). The value is copied where it must live on. @return 0,
 * -ENOENT, -EINVAL */
int fb_opt_set_value(struct fb_opt_spec *spec, const char *name, const char *value,
	struct fb_err *e) FB_MUST_CHECK;
/** Is this long name known? For "did you mean": *nearest gets the closest name, or NULL. */
const struct fb_opt *fb_opt_find(
	const struct fb_opt_spec *spec, const char *name, const char **nearest);
void fb_opt_help(const struct fb_opt_spec *spec, FILE *out);
/** {"size":65536,...}: every option's value in base units; only options given by the user when
 * `requested`. New reference. */
json_t *fb_opt_to_json(const struct fb_opt_spec *spec, bool requested);
/** Free strings and lists owned by the sets. Safe on a spec that was never parsed. */
void fb_opt_free(struct fb_opt_spec *spec);

#endif
