/* SPDX-License-Identifier: Apache-2.0 */
/* The command `verbs incast`. */
#ifndef VERBS_INCAST_CMD_H
#define VERBS_INCAST_CMD_H

#include "bench/core/opt.h"

/** @return the exit status */
int verbs_incast_main(int argc, char **argv);
const struct fb_opt_spec *verbs_incast_spec(void);

#endif
