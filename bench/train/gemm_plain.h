/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products in plain C loops: the reference for f64, and what serves where no library
 * multiplies, at less than half its rate. Every sum runs over k in order, in double for f64 and in
 * float otherwise, so that a row of C does not depend on the number of rows.
 */
#ifndef TRAIN_GEMM_PLAIN_H
#define TRAIN_GEMM_PLAIN_H

#include "bench/train/gemm_ops.h"

/** f64, f32 and bf16 operands; f64 goes with f64 only. The operands' type and C's may differ
 * otherwise. create() returns -EINVAL for an empty product and a wrong FABRICBENCH_ISA, -EOPNOTSUPP
 * for another pair of types.
 */
extern const struct gemm_ops gemm_plain;

#endif
