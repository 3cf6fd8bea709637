/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate file of `compare`: which metrics gate, how much each may move and why, and what is
 * waived for how long. INI:
 *
 *   [gate]
 *   metrics = verbs.bandwidth*:bandwidth      patterns on CASE:METRIC; the key may stand again
 *   max-gated = 20
 *   level = 0.95
 *
 *   [floor p50]                               a kind (rate, p50, p99, p99.9, value), or any name
 *   relative = 2 %
 *   absolute = 20ns                           of times; both must be exceeded
 *   reason = clock reads and polling
 *   metric = verbs.latency/read*:latency p50 where it holds; not of a kind, but of any other name
 *
 *   [waiver switch-firmware]
 *   metric = verbs.latency/send*:latency p99
 *   verdict = REGRESSED
 *   reason = fault 4711 of the switch
 *   owner = ann
 *   expires = 2027-01-31                      the last day on which it holds
 *
 * Every key, value and repetition is checked: a mistyped one would silently judge by less.
 */
#ifndef REPORTS_GATE_FILE_H
#define REPORTS_GATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

#define GATE_MAX_PATTERNS 64
#define GATE_MAX_FLOORS   64
#define GATE_MAX_WAIVERS  64

struct gate_floor {
	char what[64];             /**< a kind, or any name */
	char metric[160];          /**< pattern on CASE:METRIC; empty of a kind */
	double relative, absolute; /**< a share; ns of times. Negative: not set */
	char reason[160];
	unsigned line;
};

struct gate_waiver {
	char name[64], metric[160], reason[160], owner[64];
	char verdict[16];
	char expires[16]; /**< "2027-01-31" */
	unsigned line;
};

struct gate {
	char (*pattern)[160];
	size_t n_patterns;
	struct gate_floor *floor;
	size_t n_floors;
	struct gate_waiver *waiver;
	size_t n_waivers;
	uint64_t max_gated; /**< 0: not set */
	double level;       /**< 0: not set */
};

/**
 * Read a gate file. Patterns stand in the order of the file.
 * @return 0; -errno of reading; -EINVAL: the line and what may stand there (exit 2 both); -ENOMEM
 */
int gate_load(const char *path, struct gate *g, struct fb_err *e) FB_MUST_CHECK;
int gate_parse(const char *text, size_t len, const char *name, struct gate *g,
	struct fb_err *e) FB_MUST_CHECK;
void gate_free(struct gate *g);

/**
 * Refuse a gate file with a waiver whose last day is over.
 * @param today "2026-11-30" (UTC)
 * @return 0; -ETIME: its name, owner and day (exit 2)
 */
int gate_check_expiry(const struct gate *g, const char *today, struct fb_err *e) FB_MUST_CHECK;

/** The floor for a metric: the first whose pattern matches "CASE:METRIC", else the kind's; NULL:
 * the file has none. */
const struct gate_floor *gate_floor_of(
	const struct gate *g, const char *case_metric, const char *kind);
/** The waiver of this verdict for this metric, or NULL. */
const struct gate_waiver *gate_waiver_of(
	const struct gate *g, const char *case_metric, const char *verdict);

#endif
