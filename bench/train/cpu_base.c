// SPDX-License-Identifier: Apache-2.0
/* The CPU's kernels for any processor of this architecture; see cpu_kernels.h. */
#define CPU_ISA base
#include "bench/train/cpu_kernels.h"
