/* SPDX-License-Identifier: Apache-2.0 */
/* The command `verbs loss-sweep`. */
#ifndef VERBS_LOSS_CMD_H
#define VERBS_LOSS_CMD_H

#include "bench/core/opt.h"

/** @return the exit status */
int verbs_loss_main(int argc, char **argv);
const struct fb_opt_spec *verbs_loss_spec(void);

/**
 * "0.1,0.5,1" as percent, each 0 <= rate < 100 and at most once. Exposed for tests.
 * @return how many, or -EINVAL (exit 2)
 */
int verbs_loss_parse_rates(const struct fb_opt_list *list, const char *option, double *rates,
	int max, struct fb_err *e);

#endif
