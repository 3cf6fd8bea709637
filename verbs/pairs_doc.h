/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run over pairs as a document: a result for each pair while there is room, the section `pairs`
 * with every measurement in short form, the scores of hosts and the verdict, and the table made of
 * that section. Bounded: 1,024 hosts and 64,000 pairs stay under 20 MB.
 */
#ifndef VERBS_PAIRS_DOC_H
#define VERBS_PAIRS_DOC_H

#include <stdio.h>

#include "bench/core/result.h"
#include "verbs/pairs_run.h"

/** Pairs of the rounds that become results of their own; beyond, they stand in pairs.measured. */
#define PAIRS_RESULTS_MAX 16384u
/** Failures of the rounds that do so beyond that. */
#define PAIRS_FAILURES_MAX 4096u

struct pairs_doc {
	struct fb_doc *doc;
	const char *metric, *unit, *better, *where;
	const char *definition;
	json_t *params; /**< of every pair: op, size, ...; borrowed */
	size_t written; /**< of the log */
	size_t results, failures, confirms;
};

/** Results of what was measured since the last call. */
void pairs_doc_results(struct pairs_doc *d, const struct pairs_run *r);
/** Add the section and the verdict; `simulation` is stolen, NULL: a real fleet. */
void pairs_doc_section(
	struct pairs_doc *d, const struct pairs_run *r, json_t *simulation, double seconds);
/** The section as text: verdict, scores, links, failures. */
void pairs_doc_table(const json_t *doc, FILE *out);
/** Exit status of a verdict. */
enum fb_exit pairs_doc_exit(enum pairs_verdict v);
/** "ACCEPTED", "REJECTED", "INCOMPLETE" */
const char *pairs_doc_verdict(enum pairs_verdict v);

#endif
