/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `train --plan`: what a step would cost, before any device is asked. Parameters and FLOPs of the
 * model, bytes and memory of each strategy, the GPUs on which it fits, and the tokens a micro-batch
 * needs to hide what it sends. All of it from the closed forms; nothing here measures, allocates by
 * the model's size or knows ranks' numbers.
 */
#ifndef TRAIN_TRAIN_PLAN_H
#define TRAIN_TRAIN_PLAN_H

#include <jansson.h>
#include <stdio.h>

#include "bench/train/strategy.h"

/** Bytes of a GPU that no plan may use: its driver's context, the communication library's buffers
 * and what the allocator cannot place. 4 to 6 GB agree best with published runs that fitted and
 * that did not. */
#define TRAIN_PLAN_RESERVE 5e9

struct train_plan_opts {
	int ranks_per_node; /**< 0: 8 */
	double share; /**< of the dense peak that a step reaches while it waits for nothing; 0: 0.55
		       */
};

/**
 * Bytes that leave one node in a step, on its network cards, as the number of nodes grows: what a
 * bandwidth-optimal collective cannot avoid. Groups within a node send none; groups over more nodes
 * send each gathered and reduced byte once out of every node, replicas the whole gradient twice.
 * Whole nodes are assumed: ranks_per_node divides the group, or the group divides it.
 */
double train_plan_node_bytes(const struct step_config *c, int ranks_per_node);
/**
 * T*: tokens of a micro-batch on one rank at which computing lasts as long as sending; fewer leave
 * sending exposed. share * peak * node bytes / (FLOPs of a token * rate of the node's cards).
 * FLOPs are PaLM's. peak: FLOP/s of one rank's device, nic: bytes/s of network for each rank.
 */
double train_plan_t_star(
	const struct step_config *c, int ranks_per_node, double share, double peak, double nic);

/**
 * The plan of `base` (its strategy is one of the rows; its other fields hold for all rows). The
 * types are those of `base`: a GPU's plan wants bf16 work. o may be NULL.
 * @return 0; -ENOMEM; -EINVAL: base has no rank, or seq is longer than the model's positions (exit
 * 2)
 */
int train_plan_print(const struct step_config *base, const struct train_plan_opts *o, FILE *out,
	struct fb_err *e) FB_MUST_CHECK;
/** The same as a JSON object: model, config, flops_per_token, fit_rule, t_star_rule, gpus[],
 * strategies[]. New reference. @return 0, or as train_plan_print() */
int train_plan_json(const struct step_config *base, const struct train_plan_opts *o, json_t **doc,
	struct fb_err *e) FB_MUST_CHECK;

#endif
