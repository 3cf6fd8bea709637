// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU's kernels for AVX2; see cpu_kernels.h. Only the functions below the pragma may use it:
 * the headers before stay callable everywhere.
 */
#include "bench/train/cpu_priv.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define CPU_ISA avx2
#include "bench/train/cpu_kernels.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
