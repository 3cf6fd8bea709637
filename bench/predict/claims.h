/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fabricbench claims FILE`: published figures judged by arithmetic. A claim is a row of a CSV
 * file: who was meant (model, GPU, ranks, strategy) and what was said (quantity, value, unit).
 * Nothing is measured here, and no judgement looks at a row's id.
 */
#ifndef PREDICT_CLAIMS_H
#define PREDICT_CLAIMS_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/core/cmd.h"
#include "bench/core/err.h"

extern const struct fb_cmd claims_cmd;

#define CLAIMS_MAX_BYTES (16u << 20)
#define CLAIMS_MAX_ROWS  20000

enum claim_verdict { CLAIM_POSSIBLE, CLAIM_IMPOSSIBLE, CLAIM_DEPENDS, CLAIM_UNSOURCED };
extern const char *const claim_verdict_names[]; /**< "possible", ..., NULL */

struct claims; /**< the rows of one file, judged */

/**
 * Read and judge a file's text. A row that cannot be read is kept as an error and the rest is
 * judged.
 * @param text  len bytes, any content; @param name  stands in messages
 * @return 0 with *out (claims_free()); -EINVAL: no header, or one that lacks id, kind, quantity,
 * value or unit (exit 2); -EFBIG: more than CLAIMS_MAX_ROWS rows (exit 2); -ENOMEM (exit 3)
 */
int claims_judge(const char *text, size_t len, const char *name, struct claims **out,
	struct fb_err *e) FB_MUST_CHECK;
void claims_free(struct claims *c);

/** Rows that could not be read, and rows with that verdict. */
size_t claims_bad(const struct claims *c);
size_t claims_with(const struct claims *c, enum claim_verdict v);
/** Why the i-th bad row could not be read: file, line, column, value, remedy. */
const struct fb_err *claims_error(const struct claims *c, size_t i);
/** The verdicts in the file's order: [{id, line, kind, quantity, claimed, source?, verdict,
 * factor_pct, why}]. factor_pct is what is claimed as a share of what can be, in percent; null
 * beside its reason where the verdict has no one figure. New reference. */
json_t *claims_json(const struct claims *c);

/** A document's claims as a text table. */
void claims_print(const json_t *doc, FILE *out);

#endif
