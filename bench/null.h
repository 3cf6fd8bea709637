/* SPDX-License-Identifier: Apache-2.0 */
/* `fabricbench null`: see null.c. */
#ifndef FB_BENCH_NULL_H
#define FB_BENCH_NULL_H

#include "bench/core/bench.h"
#include "bench/core/cmd.h"

extern const struct fb_cmd null_cmd;
extern const struct fb_bench null_bench;

#endif
