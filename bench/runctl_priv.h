/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run control's own seam: runctl.c gives orders and decides, runctl_start.c brings the ranks
 * together before the first point, runctl_acc.c adds batches up and makes results of them.
 */
#ifndef FB_BENCH_RUNCTL_PRIV_H
#define FB_BENCH_RUNCTL_PRIV_H

#include "bench/core/bench.h"
#include "bench/core/hist.h"
#include "bench/oob/oob.h"

#define MAX_SAMPLES 1000 /* rates kept per result; beyond, neighbours are merged */

/** What every rank sends after a batch; its ns[] follow when the ranks' samples are combined. */
struct batch_status {
	int64_t code; /**< 0, or the negative errno of measure() */
	uint64_t n, iters, elapsed_ns;
	double work;
	double received; /**< as in struct fb_sink */
	uint64_t received_ns;
};

/** Everything of one point, at the owner. */
struct acc {
	int size; /**< ranks */
	enum fb_combine combine;
	uint64_t iters, elapsed_ns; /**< over all counted batches */
	double work;
	struct fb_hist hist;
	unsigned nbatches;
	double batch_work[MAX_SAMPLES];
	double batch_ns[MAX_SAMPLES];
	double lag1; /**< of the last batch's samples; NAN when unknown */
	/* by rank; NULL for FB_COMBINE_OWNER */
	struct fb_hist *rank_hist;
	uint64_t *rank_slowest; /**< iterations in which this rank was the last */
	double *rank_work, *rank_ns;
	uint64_t arrived; /**< batches whose rate was measured where the work arrives */
	uint64_t counted; /**< batches in all */
	uint64_t warmup;
	double scratch[4 * MAX_SAMPLES];
};

/** @return 0 or -ENOMEM; the caller frees by acc_free() */
int acc_init(struct acc *a, int size, enum fb_combine combine, struct fb_err *e);
void acc_free(struct acc *a);
/** Forget the last point. */
void acc_reset(struct acc *a);
/** Add one batch: the ranks' parts, each a batch_status with its samples. `out` is scratch for
 * `cap` values. @return 0, -EPROTO when a part is malformed */
int acc_add(struct acc *a, const struct fb_oob_part *parts, uint64_t *out, size_t cap,
	struct fb_err *e);
/** Is the metric's 95 % interval narrower than this share of it? */
bool acc_narrow(struct acc *a, const struct fb_metric *m, double width);

/** What a result is made of besides the batches. */
struct point_context {
	const struct fb_bench *bench;
	const struct fb_point *point;
	const char *where;
	const json_t *before, *after; /**< counters; may be NULL */
	const json_t *facts;          /**< may be NULL */
	const struct fb_validity *validity;
};
/** The result of one metric. New reference, NULL without memory. */
json_t *acc_result(struct acc *a, const struct fb_metric *m, const struct point_context *c);

/** One rank's side of a run. */
struct fb_run {
	const struct fb_bench *b;
	struct fb_runctl_cfg rc;
	struct fb_oob *oob;
	struct fb_doc *doc; /* owner only */
	const char *where;
	int rank, size;
	void *st;
	struct fb_point_list points;
	const struct fb_point *point; /* in progress; NULL: setup */
	uint64_t deadline;
	bool counting;       /* the batch under way is none of warm-up */
	bool broken;         /* the control channel itself failed: nothing more goes over it */
	struct fb_err local; /* this rank's failure, until all agree on it */
	char *buf;           /* a batch_status, then room for cap samples */
	uint64_t *combined;  /* owner: scratch for cap samples */
	size_t cap;
	json_t *before, *after; /* owner: counters of all ranks */
	struct fb_validity validity;
	struct acc *acc; /* owner */
};

/** Deadline of an exchange within a point: the point's own comes first, in measure(). */
uint64_t runctl_patience(const struct fb_run *run);
/** Rank 0's len bytes to all. The control channel's failures set run->broken. */
int runctl_send(struct fb_run *run, void *buf, uint32_t len, struct fb_err *e);
/** Everyone's JSON to rank 0 as an array; *all is NULL elsewhere. */
int runctl_gather_json(struct fb_run *run, const json_t *mine, json_t **all, struct fb_err *e);
/** All ranks end with one error, or with none; each brings its own. */
int runctl_agree(struct fb_run *run, const struct fb_err *mine, struct fb_err *e);
/** The owner's settings to all, and all hosts' facts to the owner. rc is NULL on the others. */
int runctl_hello(struct fb_run *run, const struct fb_runctl_cfg *rc, struct fb_err *e);
/** Memory, the benchmark's setup and its points on this rank; then one outcome for all. */
int runctl_set_up(struct fb_run *run, const void *cfg, struct fb_err *e);

#endif
