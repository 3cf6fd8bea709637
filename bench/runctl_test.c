// SPDX-License-Identifier: Apache-2.0
/*
 * Run control over local ranks: with the null benchmark, and with one whose samples are so simple
 * that every figure can be told in advance.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/bench.h"
#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"

/* ---- a benchmark with known answers ---------------------------------------------------------- */

enum trouble {
	NONE,
	FAIL_SETUP,
	OTHER_POINTS,
	FAIL_MEASURE,
	FAIL_PREPARE,
	STALL,
	WRONG_DATA,
	EMPTY
};

struct known_cfg {
	enum trouble trouble;
	int rank; /* which has it */
	double bound;
	uint64_t max_batch, min_batch;
	uint64_t slow_ns; /* an iteration really takes this long */
	bool noisy;
	bool arrives;  /* the last rank takes half of what is sent, in twice the time */
	bool timeless; /* it cannot tell the time */
	bool waiting; /* it was not running, found all messages waiting, and took them in no time */
	bool both;    /* every rank takes */
	bool looks;   /* each batch asks whether to go on, as one that waits long does */
};
struct known {
	const struct known_cfg *cfg;
	struct fb_run *run;
	int rank, point;
	int64_t count;
};

static _Atomic int teardowns;
static _Atomic uint64_t longest; /* batch */
static _Atomic uint64_t counted; /* iterations that were no warm-up, at rank 0 */

static bool troubled(const struct known *k, enum trouble t)
{
	return k->cfg->trouble == t && k->cfg->rank == k->rank;
}

static int known_setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct known *k = calloc(1, sizeof(*k));
	k->cfg = cfg;
	k->run = run;
	k->rank = fb_run_oob(run) ? fb_oob_rank(fb_run_oob(run)) : 0;
	*st = k;
	if (troubled(k, FAIL_SETUP))
		return fb_fail(e, FB_EXIT_UNMEASURED, ENODEV, "there is no such device");
	return 0;
}

static int known_points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct known *k = st;
	int n = troubled(k, OTHER_POINTS) ? 2 : 3;
	(void)e;
	for (int i = 0; i < n; i++) {
		struct fb_point *p =
			fb_point_add(l, json_pack("{s:i}", "size", 100 * (i + 1)), "known/%d", i);
		p->size = 100u * (unsigned)(i + 1);
		p->max_batch = k->cfg->max_batch;
		p->min_batch = k->cfg->min_batch;
	}
	return 0;
}

static int known_metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	const struct known *k = st;
	m[0] = (struct fb_metric){
		.name = "latency", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	m[1] = (struct fb_metric){.name = "bandwidth",
		.unit = "bytes/s",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = (double)p->size,
		.bound = k->cfg->bound,
		.bound_why = "the test's"};
	return 2;
}

static int known_prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct known *k = st;
	k->point = (int)p->index;
	if (k->point == 1 && troubled(k, FAIL_PREPARE))
		return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot post");
	return 0;
}

/* Each iteration lasts 1000 ns on rank 0, 2000 on rank 1, ... */
static int known_measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *s, struct fb_err *e)
{
	struct known *k = st;
	assert_true(iters <= s->cap);
	if (iters > longest)
		longest = iters;
	if (k->cfg->slow_ns > 0) {
		struct timespec t = {.tv_nsec = (long)(k->cfg->slow_ns * iters)};
		nanosleep(&t, NULL);
	}
	if (k->cfg->looks) {
		int rc = fb_run_check(k->run, e);
		if (rc < 0)
			return rc;
	}
	if (p->index == 1 && troubled(k, FAIL_MEASURE))
		return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "work completion: remote access error");
	while (p->index == 1 && troubled(k, STALL)) {
		struct timespec ms = {.tv_nsec = 1000000};
		int rc = fb_run_check(k->run, e);
		if (rc < 0)
			return rc;
		nanosleep(&ms, NULL);
	}
	if (p->index == 1 && troubled(k, EMPTY)) {
		s->n = 0;
		return 0;
	}
	for (uint64_t i = 0; i < iters; i++) {
		/* A wide, slowly moving disturbance: its median never settles to 2 %. */
		uint64_t noise = k->cfg->noisy ? (uint64_t)(k->count + (int64_t)i) / 3 % 1000 : 0;
		s->ns[i] = 1000u * (unsigned)(k->rank + 1) + noise;
	}
	s->n = iters;
	k->count += (int64_t)iters;
	if (k->cfg->arrives && (k->rank == 1 || k->cfg->both)) {
		s->received = (double)iters / 2;
		s->received_ns = k->cfg->timeless ? 0 : k->cfg->waiting ? 1 : iters * 2000;
	}
	if (k->rank == 0 && fb_run_counting(k->run))
		counted += iters;
	return 0;
}

static void known_extend(
	void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result)
{
	const struct known *k = st;
	assert_int_equal(k->rank, 0);
	if (p->index == 2 && m->kind == FB_METRIC_RATE)
		fb_json_set_str(result, "own", "key");
}

static int known_check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct known *k = st;
	if (p->index == 1 && troubled(k, WRONG_DATA))
		return fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG, "offset 5: expected 0x01, got 0x02");
	if (p->index == 2 && k->rank == 1)
		fb_validity_add(v, FB_SUSPECT, "a reason");
	return 0;
}

static int known_counters(void *st, json_t **out, struct fb_err *e)
{
	struct known *k = st;
	(void)e;
	*out = json_pack("{s:{s:I,s:s}}", "dev", "packets", (json_int_t)k->count, "state", "up");
	return 0;
}

static void known_teardown(void *st)
{
	teardowns++;
	free(st);
}

static const struct fb_bench known_bench = {.abi = FB_BENCH_ABI,
	.name = "known",
	.summary = "known answers",
	.combine = FB_COMBINE_MAX,
	.setup = known_setup,
	.points = known_points,
	.metrics = known_metrics,
	.prepare = known_prepare,
	.measure = known_measure,
	.check = known_check,
	.counters = known_counters,
	.teardown = known_teardown,
	.extend = known_extend};

/* ---- driving it ------------------------------------------------------------------------------ */

struct drive {
	struct fb_bench b;
	struct known_cfg cfg;
	struct fb_runctl_cfg rc;
	struct fb_doc *doc;
	int rcs[8];
	struct fb_err errs[8];
};

static int drive_rank(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct drive *d = arg;
	int r = fb_oob_rank(o);
	d->rcs[r] = fb_run_bench(r == 0 ? d->doc : NULL, &d->b, &d->cfg, r == 0 ? &d->rc : NULL, o,
		"cpu", &d->errs[r]);
	*e = d->errs[r];
	return d->rcs[r];
}

static struct drive *drive_new(enum trouble trouble, int rank)
{
	struct drive *d = calloc(1, sizeof(*d));
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	d->b = known_bench;
	d->cfg = (struct known_cfg){.trouble = trouble, .rank = rank};
	d->rc = (struct fb_runctl_cfg){.iters = 50,
		.warmup = 10,
		.ci_width = 0.02,
		.min_iters = 100,
		.max_iters = 20000,
		.max_time_ns = 1000000000,
		.point_timeout_ns = 10000000000};
	d->doc = fb_doc_new("known", 0, NULL, &out, &e);
	assert_non_null(d->doc);
	teardowns = 0;
	longest = 0;
	return d;
}

static int drive(struct drive *d, int ranks)
{
	struct fb_err e = {0};
	if (ranks == 1)
		return d->rcs[0] = fb_run_bench(
			       d->doc, &d->b, &d->cfg, &d->rc, NULL, "cpu", &d->errs[0]);
	return fb_oob_local_run(ranks, drive_rank, d, &e);
}

static void drive_free(struct drive *d)
{
	fb_doc_free(d->doc);
	free(d);
}

static json_t *result(struct drive *d, const char *name, const char *metric)
{
	json_t *all = json_object_get(fb_doc_json(d->doc), "results");
	for (size_t i = 0; i < json_array_size(all); i++) {
		json_t *r = json_array_get(all, i);
		if (strcmp(fb_json_str(r, "case", ""), name) == 0 &&
			strcmp(fb_json_str(r, "metric", ""), metric) == 0)
			return r;
	}
	return NULL;
}

static size_t count_of(struct drive *d, const char *key)
{
	return json_array_size(json_object_get(fb_doc_json(d->doc), key));
}

static void assert_valid(struct drive *d)
{
	struct fb_err e = {0};
	if (fb_doc_validate(fb_doc_json(d->doc), "doc", &e) < 0)
		fail_msg("%s", e.msg);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_exact(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	assert_int_equal(drive(d, 1), 0);
	assert_valid(d);
	assert_int_equal(count_of(d, "results"), 6);
	json_t *t = result(d, "known/1", "latency"), *bw = result(d, "known/1", "bandwidth");
	assert_int_equal(fb_json_int(t, "n", 0), 50);
	assert_int_equal(fb_json_int(t, "warmup_dropped", 0), 10);
	/* Within the histogram's 0.4 %. */
	assert_true(fabs(fb_json_num(t, "value", 0) - 1000) <= 4);
	assert_int_equal(fb_json_int(json_object_get(t, "stats"), "min", 0), 1000);
	assert_null(json_object_get(json_object_get(t, "stats"), "p90")); /* needs 100 */
	/* All samples are the same, in the middle of no bucket. */
	assert_int_equal(fb_json_int(json_object_get(t, "stats"), "mad", -1), 0);
	/* 200 bytes every 1000 ns. */
	assert_true(fabs(fb_json_num(bw, "value", 0) - 2e8) < 1);
	json_t *delta =
		json_object_get(json_object_get(json_object_get(t, "counters"), "delta"), "dev");
	assert_int_equal(fb_json_int(delta, "packets", 0), 60);
	assert_null(json_object_get(delta, "state")); /* no number, no difference */
	assert_int_equal(teardowns, 1);
	drive_free(d);
}

static void test_slowest_rank(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	assert_int_equal(drive(d, 3), 0);
	assert_valid(d);
	json_t *t = result(d, "known/2", "latency"), *bw = result(d, "known/2", "bandwidth");
	assert_true(fabs(fb_json_num(t, "value", 0) - 3000) <= 12);
	assert_true(fabs(fb_json_num(bw, "value", 0) - 300 / 3e-6) < 1);
	json_t *ranks = json_object_get(t, "per_rank");
	assert_int_equal(json_array_size(ranks), 3);
	assert_int_equal(fb_json_int(json_array_get(ranks, 1), "min_ns", 0), 2000);
	assert_int_equal(fb_json_int(json_array_get(ranks, 0), "slowest", -1), 0);
	assert_int_equal(fb_json_int(json_array_get(ranks, 2), "slowest", -1), 50);
	/* Other ranks' counters and reasons come with their rank. */
	json_t *after = json_object_get(json_object_get(t, "counters"), "after");
	assert_non_null(json_object_get(after, "dev"));
	assert_non_null(json_object_get(after, "rank2/dev"));
	json_t *v = json_object_get(t, "validity");
	assert_string_equal(fb_json_str(v, "state", ""), "suspect");
	assert_string_equal(json_string_value(json_array_get(json_object_get(v, "reasons"), 0)),
		"rank 1: a reason");
	assert_int_equal(count_of(d, "peers"), 2);
	assert_int_equal(json_array_size(json_object_get(
				 json_object_get(fb_doc_json(d->doc), "system"), "hosts")),
		1);
	assert_int_equal(teardowns, 3);
	drive_free(d);
}

/* The rate is what arrived, in the time it took there. */
static void test_arrivals(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_OWNER;
	d->cfg.arrives = true;
	counted = 0;
	assert_int_equal(drive(d, 2), 0);
	assert_valid(d);
	json_t *bw = result(d, "known/0", "bandwidth");
	/* Half of 100 bytes every 2000 ns; the latency is the sender's. */
	assert_true(fabs(fb_json_num(bw, "value", 0) - 0.25e8) < 1);
	assert_string_equal(fb_json_str(bw, "measured_at", ""), "receiver");
	assert_true(fabs(fb_json_num(result(d, "known/0", "latency"), "value", 0) - 1000) <= 4);
	/* Three points of 50; the warm-up's 10 are not counted. */
	assert_int_equal(counted, 150);
	/* The benchmark's own key, where it put it. */
	assert_string_equal(fb_json_str(result(d, "known/2", "bandwidth"), "own", ""), "key");
	assert_null(json_object_get(result(d, "known/2", "latency"), "own"));
	drive_free(d);

	/* Without a time of its own: over the sender's. */
	d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_OWNER;
	d->cfg.arrives = d->cfg.timeless = true;
	assert_int_equal(drive(d, 2), 0);
	bw = result(d, "known/0", "bandwidth");
	assert_true(fabs(fb_json_num(bw, "value", 0) - 0.5e8) < 1);
	drive_free(d);

	/* Nothing arrives faster than it is sent, however late the receiver looks. */
	for (int both = 0; both < 2; both++) {
		d = drive_new(NONE, 0);
		d->b.combine = both ? FB_COMBINE_SUM_RATE : FB_COMBINE_OWNER;
		d->cfg.arrives = d->cfg.waiting = true;
		d->cfg.both = both;
		assert_int_equal(drive(d, 2), 0);
		bw = result(d, "known/0", "bandwidth");
		assert_true(fb_json_num(bw, "value", 0) <= (both ? 1.0e8 : 0.5e8) + 1);
		drive_free(d);
	}

	/* Both directions: all that arrived, or, when one end cannot tell, what was sent. */
	d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_SUM_RATE;
	d->cfg.arrives = d->cfg.both = true;
	assert_int_equal(drive(d, 2), 0);
	bw = result(d, "known/0", "bandwidth");
	assert_true(fabs(fb_json_num(bw, "value", 0) - 0.5e8) < 1);
	drive_free(d);
	d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_SUM_RATE;
	d->cfg.arrives = true;
	assert_int_equal(drive(d, 2), 0);
	bw = result(d, "known/0", "bandwidth");
	assert_true(fabs(fb_json_num(bw, "value", 0) - 1.5e8) < 1);
	assert_null(json_object_get(bw, "measured_at"));
	drive_free(d);
}

/* Each percentile that the sample supports has its interval, and no other has one. */
static void test_percentile_intervals(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->cfg.noisy = true;
	d->rc.iters = 2000;
	assert_int_equal(drive(d, 1), 0);
	const json_t *stats = json_object_get(result(d, "known/0", "latency"), "stats");
	const json_t *all = json_object_get(stats, "ci");
	static const char *const have[] = {"p50", "p90", "p99"};
	for (size_t i = 0; i < 3; i++) {
		const json_t *ci = json_object_get(all, have[i]);
		assert_non_null(ci);
		assert_true(fb_json_int(ci, "lo", 0) < fb_json_int(ci, "hi", 0));
		assert_true(fb_json_int(ci, "lo", 0) <= fb_json_int(stats, have[i], -1));
		assert_true(fb_json_int(ci, "hi", 0) >= fb_json_int(stats, have[i], -1));
	}
	assert_null(json_object_get(all, "p99_9")); /* needs 10,000 */
	assert_null(json_object_get(stats, "p99_9"));
	/* The median's is the result's own. */
	const json_t *own = json_object_get(result(d, "known/0", "latency"), "ci");
	assert_int_equal(
		fb_json_int(own, "lo", 0), fb_json_int(json_object_get(all, "p50"), "lo", -1));
	drive_free(d);
}

static void test_sum_and_owner(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_SUM_RATE;
	assert_int_equal(drive(d, 2), 0);
	assert_valid(d);
	/* 100 bytes per 1000 ns and per 2000 ns. */
	json_t *bw = result(d, "known/0", "bandwidth");
	assert_true(fabs(fb_json_num(bw, "value", 0) - 1.5e8) < 1);
	json_t *ranks = json_object_get(bw, "per_rank");
	assert_true(fabs(fb_json_num(json_array_get(ranks, 1), "value", 0) - 0.5e8) < 1);
	drive_free(d);

	d = drive_new(NONE, 0);
	d->b.combine = FB_COMBINE_OWNER;
	assert_int_equal(drive(d, 2), 0);
	assert_true(fabs(fb_json_num(result(d, "known/0", "bandwidth"), "value", 0) - 1e8) < 1);
	assert_int_equal(
		json_array_size(json_object_get(result(d, "known/0", "latency"), "per_rank")), 0);
	drive_free(d);
}

static void test_adaptive_stop(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->rc.iters = 0;
	d->rc.max_iters = 100000000;
	assert_int_equal(drive(d, 1), 0);
	json_t *r = result(d, "known/0", "latency");
	/* Constant samples: as soon as there are enough batches. */
	assert_true(fb_json_int(r, "n", 0) >= 100);
	assert_true(fb_json_int(r, "n", 0) <= 600000);
	assert_non_null(json_object_get(r, "ci"));
	drive_free(d);

	/* Noise that never settles: the limits end it. */
	d = drive_new(NONE, 0);
	d->rc.iters = 0;
	d->cfg.noisy = true;
	d->rc.ci_width = 1e-9;
	assert_int_equal(drive(d, 1), 0);
	assert_int_equal(fb_json_int(result(d, "known/0", "latency"), "n", 0), 20000);
	drive_free(d);
}

static void test_duration_and_batch_limit(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->rc.iters = 0;
	d->rc.duration_ns = 20000000;
	d->cfg.max_batch = 7;
	uint64_t start = fb_clock_ns();
	assert_int_equal(drive(d, 1), 0);
	assert_true(fb_clock_ns() - start >= 3 * 20000000ull);
	json_t *bw = result(d, "known/0", "bandwidth");
	/* Thousands of batches, at most 1000 samples. */
	size_t samples = json_array_size(json_object_get(bw, "samples"));
	assert_true(samples >= 400 && samples <= 1000);
	assert_true(fb_json_int(bw, "n", 0) >= 7000);
	assert_true(fabs(fb_json_num(bw, "value", 0) - 1e8) < 1);
	assert_valid(d);
	drive_free(d);
}

/* Slow iterations make short batches, but for a queue that has to fill; and that has its limit. */
static void test_least_batch(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct drive *d = drive_new(NONE, 0);
		d->rc.iters = 24;
		d->rc.warmup = 2;
		d->cfg.slow_ns = 6000000;
		d->cfg.min_batch = i == 0 ? 0 : 24;
		if (i == 2) {
			d->rc.iters = 0;
			d->rc.duration_ns = 100000000; /* an eighth of it takes two iterations */
		}
		assert_int_equal(drive(d, 1), 0);
		if (i == 1)
			assert_int_equal(longest, 24);
		else
			assert_true(longest <= 5);
		drive_free(d);
	}
}

static void test_bound(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->cfg.bound = 2e8; /* known/1 reaches it, known/2 is at 150 % */
	assert_int_equal(drive(d, 1), 0);
	assert_valid(d);
	json_t *at = json_object_get(result(d, "known/1", "bandwidth"), "validity");
	json_t *over = json_object_get(result(d, "known/2", "bandwidth"), "validity");
	assert_string_equal(fb_json_str(at, "state", ""), "valid");
	assert_string_equal(fb_json_str(over, "state", ""), "invalid");
	const char *why = json_string_value(json_array_get(json_object_get(over, "reasons"), 0));
	assert_non_null(strstr(why, "150.0 %"));
	assert_non_null(strstr(why, "the test's"));
	drive_free(d);
}

/* One rank has trouble: all end with the same cause, and what was finished is kept. */
static void trouble(enum trouble what, int code, size_t results, const char *text)
{
	for (int bad = 0; bad < 3; bad++) {
		struct drive *d = drive_new(what, bad);
		char rank[32];
		snprintf(rank, sizeof(rank), "rank %d", bad);
		d->rc.point_timeout_ns = 200000000;
		if (what == OTHER_POINTS && bad == 0) {
			drive_free(d);
			continue; /* the owner's list is the right one by definition */
		}
		uint64_t start = fb_clock_ns();
		assert_int_equal(drive(d, 3), code);
		assert_true(fb_clock_ns() - start < 5000000000ull);
		for (int r = 0; r < 3; r++) {
			assert_int_equal(d->rcs[r], code);
			if (!strstr(d->errs[r].msg, text) || !strstr(d->errs[r].msg, rank))
				fail_msg("rank %d: \"%s\" names not \"%s\" and \"%s\"", r,
					d->errs[r].msg, rank, text);
		}
		assert_int_equal(count_of(d, "results"), results);
		assert_int_equal(count_of(d, "errors"), 1);
		json_t *err = json_array_get(json_object_get(fb_doc_json(d->doc), "errors"), 0);
		if (results > 0)
			assert_string_equal(fb_json_str(err, "point", ""), "known/1");
		assert_int_equal(teardowns, 3);
		assert_valid(d);
		drive_free(d);
	}
}

static void test_trouble(void **state)
{
	(void)state;
	trouble(FAIL_SETUP, -ENODEV, 0, "there is no such device");
	trouble(OTHER_POINTS, -EPROTO, 0, "2 points where rank 0 has 3");
	trouble(FAIL_PREPARE, -EIO, 2, "cannot post");
	trouble(FAIL_MEASURE, -EIO, 2, "remote access error");
	trouble(STALL, -ETIMEDOUT, 2, "known/1 did not end within its 0.2 s");
}

/* The timeout is for what comes on top of the time that was asked for. */
static void test_duration_beyond_the_timeout(void **state)
{
	(void)state;
	struct drive *d = drive_new(NONE, 0);
	d->rc.iters = 0;
	d->rc.warmup = 0;
	d->rc.duration_ns = 60000000;
	d->rc.point_timeout_ns = 40000000;
	d->cfg.slow_ns = 1000000;
	d->cfg.max_batch = 4;
	d->cfg.looks = true;
	assert_int_equal(drive(d, 2), 0);
	assert_int_equal(count_of(d, "results"), 6);
	drive_free(d);
	/* But it is there. */
	d = drive_new(STALL, 1);
	d->rc.iters = 0;
	d->rc.duration_ns = 60000000;
	d->rc.point_timeout_ns = 40000000;
	assert_int_equal(drive(d, 2), -ETIMEDOUT);
	assert_non_null(strstr(d->errs[0].msg, "known/1 did not end within its 0.1 s"));
	drive_free(d);
}

static void test_run_control_options(void **state)
{
	(void)state;
	struct fb_err e = {0};
	struct fb_runctl_cfg rc = {.iters = 10};
	assert_int_equal(fb_runctl_fit(&rc, &e), 0);
	rc.duration_ns = 1;
	assert_int_equal(fb_runctl_fit(&rc, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "--iters and --duration"));
	rc.iters = 0;
	assert_int_equal(fb_runctl_fit(&rc, &e), 0);
}

static void test_wrong_data(void **state)
{
	(void)state;
	struct drive *d = drive_new(WRONG_DATA, 1);
	assert_int_equal(drive(d, 2), -EBADMSG);
	assert_valid(d);
	assert_int_equal(d->errs[0].exit, FB_EXIT_WRONG_DATA);
	assert_non_null(strstr(d->errs[0].msg, "offset 5: expected 0x01, got 0x02"));
	/* The figure is there, marked; the points after it are not. */
	assert_int_equal(count_of(d, "results"), 4);
	json_t *v = json_object_get(result(d, "known/1", "latency"), "validity");
	assert_string_equal(fb_json_str(v, "state", ""), "invalid");
	assert_null(result(d, "known/2", "latency"));
	drive_free(d);
}

static void test_no_sample(void **state)
{
	(void)state;
	/* Iterations without samples still count for the rate's work; without time there is none.
	 */
	struct drive *d = drive_new(EMPTY, 0);
	assert_int_equal(drive(d, 1), 0);
	assert_valid(d);
	json_t *t = result(d, "known/1", "latency");
	assert_true(json_is_null(json_object_get(t, "value")));
	assert_non_null(fb_json_str(t, "value_reason", NULL));
	assert_string_equal(fb_json_str(json_object_get(t, "validity"), "state", ""), "invalid");
	drive_free(d);
}

static void test_disk_full(void **state)
{
	(void)state;
	char path[] = "/tmp/fb-runctl-XXXXXX", file[64];
	struct drive *d = drive_new(NONE, 0);
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/x/out.json", path);
	fb_doc_free(d->doc);
	out.path = file;
	char dir[64];
	snprintf(dir, sizeof(dir), "%s/x", path);
	assert_int_equal(mkdir(dir, 0700), 0);
	d->doc = fb_doc_new("known", 0, NULL, &out, &e);
	assert_non_null(d->doc);
	unlink(file);
	rmdir(dir);
	/* It stops at the first point that cannot be kept, and all ranks learn why. */
	assert_int_equal(drive(d, 2), -ENOENT);
	assert_int_equal(d->rcs[1], -ENOENT);
	assert_non_null(strstr(d->errs[1].msg, "cannot write"));
	assert_int_equal(count_of(d, "results"), 2);
	rmdir(path);
	drive_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_slowest_rank),
		cmocka_unit_test(test_arrivals),
		cmocka_unit_test(test_percentile_intervals),
		cmocka_unit_test(test_sum_and_owner),
		cmocka_unit_test(test_adaptive_stop),
		cmocka_unit_test(test_duration_and_batch_limit),
		cmocka_unit_test(test_least_batch),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_duration_beyond_the_timeout),
		cmocka_unit_test(test_run_control_options),
		cmocka_unit_test(test_wrong_data),
		cmocka_unit_test(test_no_sample),
		cmocka_unit_test(test_disk_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
