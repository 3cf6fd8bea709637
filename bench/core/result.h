/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result document, schema fabricbench/1: the only thing that leaves a measurement. Text tables
 * are rendered from it.
 *
 * One process writes it. Every finished point is on disk before the next begins: fb_doc_publish()
 * writes a complete, valid document with outcome "interrupted", and fb_doc_finish() the last one
 * with the real outcome; a killed process therefore leaves a valid document. Writing is temporary
 * file, fsync, rename.
 *
 * Result keys: case, job, launch, where, params, metric, unit, better, load, sync, value, ci, bound
 * {value, why}, n, warmup_dropped, hist | samples, stats, per_rank, counters {before, after,
 * delta}, validity {state, reasons}. Times are integer ns, sizes bytes, rates bytes/s. NaN and Inf
 * become null with a reason. Absent is never 0.
 */
#ifndef FB_CORE_RESULT_H
#define FB_CORE_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"

#define FB_SCHEMA "fabricbench/1"

struct fb_doc;

/** Options of every command that makes a document; chain FB_OUTPUT_OPTS in its spec. */
struct fb_output_cfg {
	bool json;        /**< --json: the document on stdout instead of the table */
	char *path;       /**< -o/--output FILE (null: none) */
	bool anonymous;   /**< --anonymous: no host names, GUIDs, MACs, IPs */
	char *job;        /**< --job NAME: set by a plan */
	uint64_t launch;  /**< --launch N: set by a plan */
	char *run_id;     /**< --run-id ID: set by a plan */
	bool quiet;       /**< --quiet: no table, no progress */
	uint64_t timeout; /**< --timeout DURATION: the whole command ends within this (default 10m)
			   */
	uint64_t seed;    /**< --seed N */
};
extern const struct fb_opt fb_output_opts[];

/**
 * Start a document: tool, run (id, started, argv, outcome "interrupted"), this host's facts
 * (sysinfo.h) in system.hosts[0]. From here SIGINT and SIGTERM make fb_stop_requested() true, and
 * if the program has not ended by itself within 400 ms, the last published document is written out
 * and the process exits with 3.
 * @return the document, or NULL with *e
 */
struct fb_doc *fb_doc_new(const char *command, int argc, char **argv,
	const struct fb_output_cfg *out, struct fb_err *e);
void fb_doc_free(struct fb_doc *d);

/** The JSON object itself (borrowed), for tests and for code that adds sections of its own. */
json_t *fb_doc_json(struct fb_doc *d);
/** The document as it leaves: without names under --anonymous. New reference, NULL without memory.
 */
json_t *fb_doc_visible(const struct fb_doc *d);
/** When a command with these options has to be over, absolute ns; UINT64_MAX: no limit. */
uint64_t fb_output_deadline(const struct fb_output_cfg *out);
/** --timeout of the command in ns; 0: none. */
uint64_t fb_doc_timeout(const struct fb_doc *d);
/**
 * Do n `what` ("points") of each_ns each fit into --timeout (0: no limit)? What cannot is better
 * known before it begins than when the deadline strikes.
 * @param fewer ends the remedy: "fewer points"
 * @return 0 or -EINVAL (exit 2)
 */
int fb_timeout_fits(uint64_t timeout_ns, uint64_t n, const char *what, uint64_t each_ns,
	const char *fewer, struct fb_err *e) FB_MUST_CHECK;
/** Add sections. Each steals the reference. A host is compared by name: the same host is kept once.
 */
void fb_doc_set_config(struct fb_doc *d, json_t *requested, json_t *effective);
void fb_doc_add_host(struct fb_doc *d, json_t *host);
void fb_doc_add_peer(struct fb_doc *d, json_t *peer);
void fb_doc_set_topology(struct fb_doc *d, const char *ref);
void fb_doc_add_result(struct fb_doc *d, json_t *result);
void fb_doc_add_check(struct fb_doc *d, json_t *check);
void fb_doc_warn(struct fb_doc *d, const char *fmt, ...) FB_PRINTF(2, 3);
/** Record an error: {message, remedy, code, exit, job?, point?}. The same error is kept once. */
void fb_doc_error(struct fb_doc *d, const struct fb_err *e);
/**
 * Before a rank parts from the others: the launcher may end this process as soon as another rank
 * has ended. Prints the error where `aloud`, and records and publishes it. *told: once, and then no
 * more.
 * @param d NULL on ranks that keep no document
 */
void fb_doc_tell(struct fb_doc *d, bool aloud, bool *told, const struct fb_err *e);
/** fb_doc_error() with the point (a result's `case`) at which it happened; NULL: none. */
void fb_doc_error_at(struct fb_doc *d, const struct fb_err *e, const char *point);
/** --anonymous hides this host name or HOST:PORT everywhere. Commands call it for the host names
 * they take as bare arguments; hosts, and the values of --master, --bind, --host, --hosts, are
 * hidden without it. */
void fb_doc_hide(struct fb_doc *d, const char *host);

/** The command's own table instead of fb_table_print(), for a document whose results are too many
 * to be rows. NULL: the usual one. */
void fb_doc_set_table(struct fb_doc *d, void (*print)(const json_t *doc, FILE *out));

/** Write what there is (outcome "interrupted") to -o, if given. @return 0 or -errno with *e (disk
 * full, no permission) */
int fb_doc_publish(struct fb_doc *d, struct fb_err *e) FB_MUST_CHECK;
/**
 * Close the document: outcome ("complete", "failed", "interrupted"), ended time; write to -o; on
 * stdout the JSON (--json) or the table (unless --quiet). The exit status: `status`, or what an
 * interruption or a failed write makes of it.
 */
int fb_doc_finish(struct fb_doc *d, int status);

/** True once SIGINT or SIGTERM arrived. Cheap: one relaxed load. */
bool fb_stop_requested(void);

/* ---- reading --------------------------------------------------------------------------------- */

/**
 * Read and validate a document: size at most 64 MiB, no duplicate keys, schema name, every required
 * key with its type, histograms consistent. Unknown keys are kept. @return new reference, or NULL
 * with file, line and the key at fault (exit 2)
 */
json_t *fb_doc_load(const char *path, struct fb_err *e);
/** The same from memory; `name` stands in messages. */
json_t *fb_doc_parse(const char *text, size_t len, const char *name, struct fb_err *e);
/** Validate a parsed document (what fb_doc_load does after parsing). */
int fb_doc_validate(const json_t *doc, const char *name, struct fb_err *e) FB_MUST_CHECK;

/** Render the results (and checks, warnings, errors) as text tables. */
void fb_table_print(const json_t *doc, FILE *out);

#endif
