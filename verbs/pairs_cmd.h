/* SPDX-License-Identifier: Apache-2.0 */
/* The command `verbs pairs`. */
#ifndef VERBS_PAIRS_CMD_H
#define VERBS_PAIRS_CMD_H

struct fb_opt_spec;

/** @return the exit status */
int verbs_pairs_main(int argc, char **argv);
const struct fb_opt_spec *verbs_pairs_spec(void);

#endif
