/* SPDX-License-Identifier: Apache-2.0 */
/* The Claims section: published figures and what arithmetic says of them, from a document's claims.
 */
#ifndef REPORTS_CLAIMS_H
#define REPORTS_CLAIMS_H

#include <jansson.h>

#include "bench/core/strbuf.h"

/** Nothing where the document has no claims. */
void rep_html_claims(struct fb_strbuf *b, const json_t *doc);

#endif
