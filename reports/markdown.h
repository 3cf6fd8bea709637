/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as one page of Markdown, for a pull request or a mail: verdict and scope, findings,
 * the plan's parts that did not complete, a table of results. It renders as GitHub's and GitLab's
 * Markdown do; no text of the document can become markup.
 */
#ifndef REPORTS_MARKDOWN_H
#define REPORTS_MARKDOWN_H

#include <jansson.h>
#include <stdio.h>

#include "bench/core/err.h"

/** Rows of the table of results; what is beyond them is counted. A comment on GitHub holds 65,536
 * characters. */
#define REP_MARKDOWN_ROWS 120

/** `data` is what the last line calls the document: "run.json". @return 0; -ENOMEM with *e */
int rep_markdown(FILE *out, const json_t *doc, const char *data, struct fb_err *e) FB_MUST_CHECK;

#endif
