/* SPDX-License-Identifier: Apache-2.0 */
/* `fabricbench gpu-check`: are this machine's GPUs right, and as fast as their data sheets? */
#ifndef TRAIN_GPU_CHECK_H
#define TRAIN_GPU_CHECK_H

#include "bench/core/cmd.h"

extern const struct fb_cmd gpu_check_cmd;

#endif
