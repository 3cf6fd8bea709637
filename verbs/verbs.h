/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA: the command group `verbs`. */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include "bench/core/cmd.h"

extern const struct fb_cmd verbs_cmd;

#endif
