/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's figures, between train_plan.c, which works them out and writes them as JSON, and
 * train_plan_print.c, which writes them for people. Theirs alone. */
#ifndef TRAIN_TRAIN_PLAN_PRIV_H
#define TRAIN_TRAIN_PLAN_PRIV_H

#include "bench/train/peaks.h"
#include "bench/train/train_plan.h"

#define PLAN_ROWS 9
#define PLAN_GPUS 24
#define PLAN_NICS 6
/* Network rates for each rank in bits/s: what T* is worked out for. */
extern const double plan_nic_bits[PLAN_NICS];
/* The GPU whose T* people are shown; others' are in proportion to their peaks. */
#define PLAN_GPU "H100 80GB HBM3"

struct plan_row {
	struct step_config c;
	struct step_bytes bytes;
	struct step_memory memory;
	double full; /* total memory with full recomputation */
	double node_bytes;
	/* By GPU: the smallest power of two of ranks (of a group's, for hybrid) on which it fits;
	 * 0: none up to PLAN_MAX_RANKS. */
	int smallest[PLAN_GPUS];
	int smallest_full[PLAN_GPUS]; /* with full recomputation */
};
#define PLAN_MAX_RANKS 65536

struct plan {
	const struct step_config *base;
	int ranks_per_node;
	double share;
	const struct gpu_peak *gpu[PLAN_GPUS]; /* labelled ones, by memory */
	int gpus;
	struct plan_row row[PLAN_ROWS];
	int rows;
};

int plan_make(const struct step_config *base, const struct train_plan_opts *o, struct plan *p,
	struct fb_err *e) FB_MUST_CHECK;
/* What a plan may use of that GPU. */
double plan_room(const struct gpu_peak *g);
/* Dense peak of products of that type: fp32 counts as tf32; NAN: not known. */
double plan_peak(const struct gpu_peak *g, enum tr_dtype work);
double plan_sent(const struct step_bytes *b); /* by the network, all kinds */

#endif
