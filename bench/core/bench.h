/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of a benchmark, and of run control that drives it. bench/null.c is the worked
 * example.
 *
 * Every rank calls fb_run_bench() with the same benchmark. Rank 0 owns the configuration: it alone
 * decides the length of every batch and every stop, and sends it before the batch; the others
 * follow. For each point: barrier -> counters before -> warm-up (dropped, counted) -> batches ->
 * counters after -> check -> result -> published.
 */
#ifndef FB_CORE_BENCH_H
#define FB_CORE_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"

#define FB_BENCH_ABI 1

struct fb_oob;
struct fb_doc;
struct fb_run;

enum fb_need { FB_NEED_PEER = 1, FB_NEED_RDMA = 2, FB_NEED_GPU = 4, FB_NEED_MPI = 8 };

/** What one batch writes. The timed loop touches `ns` and `n` only; all memory is there before it
 * starts. */
struct fb_sink {
	uint64_t *ns; /**< one value per iteration, in time order; cap >= iters of the batch */
	size_t n, cap;
	uint64_t elapsed_ns; /**< whole batch; set by measure(). 0: run control uses the sum of ns[]
			      */
	double work; /**< units of work done (rate metrics multiply by per_unit); 0: the batch's
			iterations */
	/* Set by a rank at which another rank's work arrives and completes: then the rate is what
	 * arrived there, in its own time, and not what the sender believes. */
	double received;      /**< units of work that arrived; 0: this rank cannot tell */
	uint64_t received_ns; /**< how long that took here; 0: the sender's time counts */
};

enum fb_metric_kind {
	FB_METRIC_TIME, /**< distribution of ns[] -> histogram; value is the median */
	FB_METRIC_RATE, /**< per_unit * work / elapsed: value over total work and total time,
			   samples per batch */
};
/** How the ranks' batches become one. */
enum fb_combine {
	FB_COMBINE_OWNER,    /**< only rank 0's samples count */
	FB_COMBINE_MAX,      /**< per iteration, the slowest rank (collectives) */
	FB_COMBINE_SUM_RATE, /**< rates of all ranks add up (bidirectional bandwidth) */
};

struct fb_metric {
	const char *name;   /**< "latency", "bandwidth", "busbw", ... */
	const char *unit;   /**< "ns", "bytes/s", "1/s" */
	const char *better; /**< "lower" or "higher" */
	enum fb_metric_kind kind;
	double per_unit; /**< RATE: unit amount per unit of work, e.g. message bytes */
	double bound;    /**< physical bound in `unit`; 0: none known */
	char bound_why[160];
	double line_rate; /**< raw rate of the links used, in `unit`, for gates; 0: not known */
};
#define FB_MAX_METRICS 4

/** One point of a sweep. */
struct fb_point {
	unsigned index;
	char name[96];      /**< the result's `case`: bench name and factors, e.g.
			       "verbs.latency/send/rc/poll/64" */
	json_t *params;     /**< every factor, base units; owned by the list */
	uint64_t size;      /**< bytes moved by one operation; 0 when meaningless */
	uint64_t user;      /**< the benchmark's own index or number */
	uint64_t max_batch; /**< most iterations in one batch; 0: any */
	uint64_t min_batch; /**< fewest, where a batch that is too short measures how a queue fills
			       and drains: kept to as long as that takes no more than half a second
			       or an eighth of the point's time; 0: any */
};
struct fb_point_list {
	struct fb_point *v;
	unsigned n, cap;
};
/** Append a point; steals params. @return the point (valid until the next call), or NULL without
 * memory */
struct fb_point *fb_point_add(struct fb_point_list *l, json_t *params, const char *name_fmt, ...)
	FB_PRINTF(3, 4);
void fb_points_free(struct fb_point_list *l);

enum fb_valid { FB_VALID, FB_SUSPECT, FB_INVALID };
struct fb_validity {
	enum fb_valid state; /**< worst so far */
	json_t *reasons;     /**< array of strings; owned by run control */
};
/** Add a reason; the state becomes the worse of the two. Without memory only the state is kept. */
void fb_validity_add(struct fb_validity *v, enum fb_valid state, const char *fmt, ...)
	FB_PRINTF(3, 4);

struct fb_bench {
	unsigned abi;        /**< FB_BENCH_ABI */
	const char *name;    /**< "verbs.latency" */
	const char *summary; /**< with the definition of what is measured */
	unsigned needs;      /**< FB_NEED_* */
	const struct fb_opt *opts;
	size_t cfg_size;
	enum fb_combine combine;
	const char *load; /**< "closed" or "open" */
	const char *sync; /**< how the ranks start: "pingpong", "isolated", "pipelined", "none" */
	const char *definition; /**< stated beside every figure, e.g. "half of the round trip" */

	/** Can it run here? 0, or -ENODEV with the reason (a skip). */
	int (*probe)(const void *cfg, struct fb_err *why);
	/** All that is not timed: open, connect, allocate. Every rank; may use fb_run_oob(). */
	int (*setup)(struct fb_run *run, const void *cfg, void **st, struct fb_err *e);
	/** The sweep; every rank must build the same list (from the owner's configuration). */
	int (*points)(void *st, struct fb_point_list *l, struct fb_err *e);
	/** The metrics of a point (at most FB_MAX_METRICS); rank 0 only. @return how many, or
	 * -errno */
	int (*metrics)(void *st, const struct fb_point *p, struct fb_metric *m);
	/** Before the point's first batch, all ranks, after a barrier: post receives, choose the
	 * loop. May be NULL. */
	int (*prepare)(void *st, const struct fb_point *p, struct fb_err *e);
	/**
	 * One batch of `iters` iterations: only writes samples. No allocation, log, system call or
	 * branch on configuration in the timed loop; a wait that has lasted long calls
	 * fb_run_check() and gives up when it fails.
	 */
	int (*measure)(void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *s,
		struct fb_err *e);
	/** Verify the data of the timed batches, look at the counters. -EBADMSG: wrong data (exit
	 * 4). May be NULL. */
	int (*check)(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e);
	/** Counters now, as {"source": {"name": value}}: new reference in *out. Absent is absent.
	 * May be NULL. */
	int (*counters)(void *st, json_t **out, struct fb_err *e);
	/** Facts that every result of a point carries besides params, e.g. {"device":..}: may be
	 * NULL. New reference. */
	json_t *(*facts)(void *st, const struct fb_point *p);
	void (*teardown)(void *st);
	/** Add keys of the benchmark's own to the finished result of one metric (owner only). May
	 * be NULL. */
	void (*extend)(
		void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result);
};

/** Run control's options; chain fb_runctl_opts (letters n, D, w as both fields use them). */
struct fb_runctl_cfg {
	uint64_t iters;       /**< -n: exactly so many iterations per point; 0: adaptive */
	uint64_t duration_ns; /**< -D: measure each point for this long; 0: adaptive */
	uint64_t warmup;      /**< -w: iterations dropped at the start of each point */
	double ci_width; /**< --ci: adaptive stop once the median's 95 % interval is narrower than
			    this share (0.02) */
	uint64_t min_iters;        /**< --min-iters: adaptive: at least (100) */
	uint64_t max_iters;        /**< --max-iters: adaptive: at most (1,000,000) */
	uint64_t max_time_ns;      /**< --max-time: adaptive: at most, per point (1 s) */
	uint64_t point_timeout_ns; /**< --point-timeout: a point that lasts longer, beyond
				      duration_ns, is given up (60 s) */
};
extern const struct fb_opt fb_runctl_opts[];
/**
 * Do these options go together? For commands, before anything starts.
 * @return 0, or -EINVAL (exit 2) with the names of those that contradict each other
 */
int fb_runctl_fit(const struct fb_runctl_cfg *rc, struct fb_err *e) FB_MUST_CHECK;

/**
 * Drive a benchmark on this rank. On rank 0 results go into doc (published after every point);
 * other ranks pass doc NULL. `where` is hardware, lab or cpu. rc may be NULL on ranks other than 0:
 * the owner's is sent.
 * @return 0; -EBADMSG wrong data; -EINTR stopped by signal (document holds the finished points);
 * -ETIMEDOUT, -ECONNRESET,... with the cause in *e on every rank
 */
int fb_run_bench(struct fb_doc *doc, const struct fb_bench *b, const void *cfg,
	const struct fb_runctl_cfg *rc, struct fb_oob *oob, const char *where,
	struct fb_err *e) FB_MUST_CHECK;

/* ---- for use inside a benchmark
 * ------------------------------------------------------------------ */
struct fb_oob *fb_run_oob(struct fb_run *run);
/** Deadline (absolute ns) of the point in progress, or of setup. */
uint64_t fb_run_deadline(const struct fb_run *run);
/** Does the batch under way count? False: warm-up, which is dropped. For what measure() keeps by
 * itself. */
bool fb_run_counting(const struct fb_run *run);
/** Should a long wait go on? 0, or -EINTR (signal), -ETIMEDOUT (deadline), -ECONNRESET (a rank is
 * gone), *e filled. Cheap enough for every millisecond, not for every poll. */
int fb_run_check(struct fb_run *run, struct fb_err *e);

#endif
