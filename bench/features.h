/* SPDX-License-Identifier: Apache-2.0 */
/* `fabricbench features`: what is here, what is missing, why, and what would bring it. */
#ifndef BENCH_FEATURES_H
#define BENCH_FEATURES_H

#include "bench/core/cmd.h"

#define FEATURES_SCHEMA "fabricbench-features/1"

extern const struct fb_cmd features_cmd;

#endif
