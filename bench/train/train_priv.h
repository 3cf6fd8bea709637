/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's side of a training run, shared by train_bench.c, which runs it, and train_result.c,
 * which tells of it.
 */
#ifndef TRAIN_TRAIN_PRIV_H
#define TRAIN_TRAIN_PRIV_H

#include "bench/core/sysroot.h"
#include "bench/oob/oob.h"
#include "bench/train/gemm_rate.h"
#include "bench/train/measure.h"
#include "bench/train/train.h"
#include "bench/train/verdict.h"

struct train_state {
	struct fb_run *run;
	const struct train_job *j;
	struct p2p *p2p;
	struct engine *g;
	int rank, core;
	bool reads_host; /* the first rank of this host */
	int step;        /* the next one, from 0 */
	struct measure m;
	struct tr_count before, after; /* products: of the counted steps */
	struct rank_facts facts;
	struct gemm_rate gemm;
	double *task_ns;
	/* rank 0 */
	struct rank_facts *all; /* by rank */
	struct verdict verdict;
};

/** FLOPs of products of a step of one rank, in closed form; the element-wise work is no product. */
void train_formula_flops(const struct train_job *j, double *linear, double *attn);
/** This thread's or process's own CPU among `neighbours` ranks of this host, of which it is number
 * `local`; -1: there are fewer CPUs than ranks, or --no-pin. */
int train_core(const struct train_job *j, int local, int neighbours);

/** Ranks whose bytes or memory differ from the closed forms; `why` gets the first. */
bool train_differs(const struct train_state *s, char *why, size_t len);
/** MFU of that convention against a rate of FLOP/s; NAN without a rate. */
double train_mfu(const struct train_state *s, enum mfu_convention c, double rate);
/** Keys of a finished result: see reports/schema.json. Rank 0. */
void train_extend(void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result);
/** Factors of the run, without labels; and with them. New reference. */
json_t *train_factors(const struct train_job *j);
json_t *train_params(const struct train_job *j);

/** Each is KEY=VALUE, at most 8, and no key is a factor's. @return 0 or -EINVAL (exit 2) */
int train_labels_check(
	const struct fb_opt_list *l, const json_t *factors, struct fb_err *e) FB_MUST_CHECK;
/** Labels that were checked: numbers as numbers, everything else as text. */
void train_labels_into(const struct fb_opt_list *l, json_t *params);
/** "/loss=0.1" of each label that is a number: another number is another measurement. @return buf
 */
const char *train_labels_case(const struct fb_opt_list *l, char *buf, size_t len);

/** hw_counters and counters of every RDMA port as {"mlx5_0/1": {"name": value}}; empty without
 * RDMA. New reference, NULL without memory. */
json_t *train_ports_read(const struct fb_sysroot *r);
/** The benchmark's counters(): those of this host, from one of its ranks. */
int train_ports(void *st, json_t **out, struct fb_err *e);

#endif
