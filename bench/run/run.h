/* SPDX-License-Identifier: Apache-2.0 */
/* `fabricbench run PLAN`: every job of a plan as children of its own, their documents joined, the
 * verdict. */
#ifndef FB_RUN_RUN_H
#define FB_RUN_RUN_H

#include "bench/core/cmd.h"

/**
 * The command. `commands` is the program's table (ends with name NULL): a plan may name any command
 * in it that has spec().
 * @return exit status: 0 accepted, 1 rejected, 2 usage, 3 incomplete or interrupted, 4 wrong data
 */
int run_plan_main(int argc, char **argv, const struct fb_cmd *commands);

#endif
