/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report's tables as CSV (RFC 4180): a header line, commas, quotes doubled, CRLF, UTF-8;
 * numbers in the document's own units and full precision, what is not known empty. A text that a
 * spreadsheet would take for a formula gets an apostrophe before it.
 */
#ifndef REPORTS_CSV_H
#define REPORTS_CSV_H

#include <jansson.h>

#include "bench/core/strbuf.h"

/** One result a row: case, job, launch, where, metric, unit, better, value, p50, p99, p99.9, n,
 * bound, validity, reason. */
void rep_csv_results(struct fb_strbuf *b, const json_t *doc);
/** One check a row: id, title, subject, state, observed, expected, source, read, reason, remedy,
 * side_effect. */
void rep_csv_checks(struct fb_strbuf *b, const json_t *doc);
/** One cell; the first of a line has no comma before it. NULL is empty. */
void rep_csv_text(struct fb_strbuf *b, bool first, const char *text);
/** NaN is empty. */
void rep_csv_number(struct fb_strbuf *b, double v);
void rep_csv_end(struct fb_strbuf *b);

#endif
