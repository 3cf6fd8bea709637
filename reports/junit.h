/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as JUnit XML: a suite each for the plan's parts, the checks, the results and the
 * errors. A judgement against the fabric (failed check, failed or wrong part) is a failure; what
 * could not be measured, and an invalid result, an error; what was skipped, skipped.
 */
#ifndef REPORTS_JUNIT_H
#define REPORTS_JUNIT_H

#include <jansson.h>
#include <stdio.h>

void rep_junit(FILE *out, const json_t *doc);

#endif
