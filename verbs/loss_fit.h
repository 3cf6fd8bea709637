/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What packet loss costs a reliable connection, as a model of two constants:
 *
 *     1/eta = 1 + W p/(1-p) + R p^2
 *
 * p is the share of packets that are lost, eta the packets needed per packet sent. W is how many
 * packets the sender has to send again for each one that was lost: go-back-N repeats everything
 * that it had sent past the lost packet when it heard of it, so that W is what it keeps in flight
 * (selective repeat: 1). R stands for retransmissions that are lost in turn, each of which ends in
 * a time-out. It is a model: independent losses, one stream, W and R the same at every rate.
 * Pure functions.
 */
#ifndef VERBS_LOSS_FIT_H
#define VERBS_LOSS_FIT_H

#include <stdbool.h>

#include "bench/core/err.h"

/** One rate, measured. */
struct verbs_loss_point {
	double p;       /**< share of packets lost, 0..1 (not percent) */
	double inverse; /**< 1/eta: packets sent per packet needed; or its stand-in */
};

struct verbs_loss_model {
	double w, r;
	double w_alone;  /**< the best W where R is 0 */
	bool held_at_0;  /**< a constant would have come out below 0 and was held there */
	bool determined; /**< two rates or more: W and R can both be told; else R is 0 */
};

/** 1/eta by the model. @param p share of packets lost, 0 <= p < 1 */
double verbs_loss_predict(double w, double r, double p);

/**
 * Least squares on relative errors: W >= 0 and R >= 0 that minimise the sum of
 * ((predicted - measured) / measured)^2. Points without loss, or without a value, say nothing.
 * @return 0, or -ENODATA without a point that says something (exit 3)
 */
int verbs_loss_fit(const struct verbs_loss_point *x, unsigned n, struct verbs_loss_model *m,
	struct fb_err *e) FB_MUST_CHECK;

#endif
