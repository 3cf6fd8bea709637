/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast is this device at the very products of a step? Each shape that the device has made is
 * timed alone, in turn with the others, and weighted by its calls: the rate that a step would reach
 * if it did nothing else.
 */
#ifndef TRAIN_GEMM_RATE_H
#define TRAIN_GEMM_RATE_H

#include "bench/train/device.h"

struct gemm_timed {
	struct gemm_shape s;
	char impl[64];
	uint64_t calls; /**< in the run */
	double rate;    /**< FLOP/s: the fastest of the rounds */
};
struct gemm_rate {
	struct gemm_timed *v; /**< by FLOPs of all calls, most first */
	int n;
	double rate; /**< sum of calls * FLOPs over sum of calls * time; 0 without shapes */
};
/**
 * @param budget_ns about how long it may take; every shape is timed once in any case
 * @return 0; -ENOMEM; the device's own error. gemm_rate_free() when 0
 */
int gemm_rate_measure(const struct tr_dev_ops *ops, struct tr_dev *d, uint64_t budget_ns,
	struct gemm_rate *r, struct fb_err *e) FB_MUST_CHECK;
void gemm_rate_free(struct gemm_rate *r);

#endif
