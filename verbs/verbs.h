/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA: the command group `verbs`, and its benchmarks' availability for `features`. */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <jansson.h>

#include "bench/core/cmd.h"

extern const struct fb_cmd verbs_cmd;

/** Rows for `features`: transports, operations and what hardware has really run them. New
 * reference:
 * [{"name","available","why","proven_on"}]. */
json_t *verbs_features(void);

#endif
