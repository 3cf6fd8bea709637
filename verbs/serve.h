/* SPDX-License-Identifier: Apache-2.0 */
/* The persistent server's command. */
#ifndef VERBS_SERVE_H
#define VERBS_SERVE_H

#include "bench/core/opt.h"

/** @return the exit status */
int verbs_serve_main(int argc, char **argv);
const struct fb_opt_spec *verbs_serve_spec(void);

#endif
