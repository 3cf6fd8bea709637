// SPDX-License-Identifier: Apache-2.0
/*
 * Run control: drives one benchmark over all ranks; contract in bench/core/bench.h. It stands here
 * and not in core because it speaks with the other ranks.
 *
 * Rank 0 owns every decision and sends it as a `struct order` before anybody acts on it; the others
 * only follow. A rank that fails says so in the answer to the order it failed at, and the owner's
 * next order is then to agree on the error, so that all ranks end with the same cause.
 */
#include "bench/runctl_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/stop.h"
#include "bench/core/tell.h"

#define BATCH_TARGET_NS 30000000u /* long against the order's round trip, short for a stop */
#define BATCH_MOST_NS   500000000u
#define FIRST_BATCH     16u
#define MAX_GROWTH      64u
#define MIN_BATCHES     6u /* below, a median of batches has no 95 % interval */

enum order_kind { ORDER_PREPARE, ORDER_BATCH, ORDER_WARMUP, ORDER_CHECK, ORDER_AGREE, ORDER_END };

/** What the owner sends before everything. */
struct order {
	uint64_t kind, point, iters;
	uint64_t left_ns; /**< PREPARE: how long the point may last */
};

/* ---- for use inside a benchmark -------------------------------------------------------------- */

struct fb_oob *fb_run_oob(struct fb_run *run)
{
	return run->oob;
}

uint64_t fb_run_deadline(const struct fb_run *run)
{
	return run->deadline;
}

bool fb_run_counting(const struct fb_run *run)
{
	return run->counting;
}

static int stopped(struct fb_err *e)
{
	int sig, rc;
	enum fb_stop why = fb_stop_reason(&sig);
	if (why == FB_STOP_NONE)
		return 0;
	if (why == FB_STOP_SIGNAL) {
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, EINTR, "stopped by %s", fb_stop_signal_name(sig));
		fb_hint(e, "the finished points are kept; run it again for the others");
	} else {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "the command's deadline passed");
		fb_hint(e, "give it longer with --timeout, or fewer points");
	}
	return rc;
}

/* What was asked for takes its time; the timeout is for what comes on top. */
static uint64_t point_time(const struct fb_run *run)
{
	return run->rc.point_timeout_ns + run->rc.duration_ns;
}

int fb_run_check(struct fb_run *run, struct fb_err *e)
{
	int rc = stopped(e);
	if (rc == 0 && fb_clock_ns() > run->deadline) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "%s did not end within its %.3g s",
			run->point ? run->point->name : "setup",
			(double)(run->point ? point_time(run) : run->rc.point_timeout_ns) / 1e9);
		fb_hint(e, "give it longer with --point-timeout, or look at what it waits for");
	}
	if (rc == 0 && run->size > 1)
		rc = fb_oob_lost(run->oob, e);
	return rc;
}

/* ---- what every rank does -------------------------------------------------------------------- */

static json_t *read_counters(struct fb_run *run)
{
	json_t *now = NULL;
	struct fb_err why = {0};
	if (run->b->counters && run->b->counters(run->st, &now, &why) < 0)
		fb_warn("counters cannot be read: %s", why.msg);
	return now ? now : json_object();
}

/* {"source": ..} of rank 0 as they are, of the others as "rank1/source". */
static json_t *merge_counters(const json_t *all)
{
	json_t *out = json_object(), *v;
	const char *source;
	for (size_t r = 0; r < json_array_size(all); r++) {
		json_object_foreach (json_array_get(all, r), source, v) {
			char name[160];
			snprintf(name, sizeof(name), "rank%zu/%s", r, source);
			json_object_set(out, r == 0 ? source : name, v);
		}
	}
	return out;
}

static int exchange_counters(struct fb_run *run, json_t **merged, struct fb_err *e)
{
	json_t *all = NULL, *mine = read_counters(run);
	int rc = runctl_gather_json(run, mine, &all, e);
	json_decref(mine);
	if (rc == 0 && run->rank == 0) {
		json_decref(*merged);
		*merged = merge_counters(all);
	}
	json_decref(all);
	return rc;
}

static int do_prepare(struct fb_run *run, const struct order *o, struct fb_err *e)
{
	int rc = 0;
	run->point = &run->points.v[o->point];
	run->deadline = fb_deadline_in(o->left_ns);
	fb_err_clear(&run->local);
	if (run->size > 1 && (rc = fb_oob_barrier(run->oob, runctl_patience(run), e)) < 0) {
		run->broken = true;
		return rc;
	}
	if (run->b->prepare)
		run->b->prepare(run->st, run->point, &run->local);
	rc = runctl_agree(run, &run->local, e);
	return rc < 0 ? rc : exchange_counters(run, &run->before, e);
}

/* Measure one batch; the answer stands in run->buf afterwards. @return its length */
static uint32_t measure(struct fb_run *run, uint64_t iters)
{
	struct batch_status *s = (struct batch_status *)run->buf;
	struct fb_sink sink = {.ns = (uint64_t *)(s + 1), .cap = run->cap};
	int rc = run->b->measure(run->st, run->point, iters, &sink, &run->local);
	if (rc < 0 && run->local.code == 0)
		fb_fail(&run->local, FB_EXIT_UNMEASURED, rc, "%s: %s", run->point->name,
			strerror(-rc));
	memset(s, 0, sizeof(*s));
	s->code = rc;
	s->n = sink.n < run->cap ? sink.n : run->cap;
	s->iters = s->n > 0 ? s->n : iters;
	s->elapsed_ns = sink.elapsed_ns;
	s->work = sink.work > 0 ? sink.work : (double)s->iters;
	s->received = sink.received;
	s->received_ns = sink.received_ns;
	if (rc < 0)
		s->n = s->iters = 0;
	/* One's own samples are needed where ranks are compared; else the owner's alone. */
	if (run->rank != 0 && run->b->combine != FB_COMBINE_MAX) {
		for (uint64_t i = 0; i < s->n && sink.elapsed_ns == 0; i++)
			s->elapsed_ns += sink.ns[i];
		s->n = 0;
	}
	return (uint32_t)(sizeof(*s) + s->n * sizeof(uint64_t));
}

static json_t *validity_mine(const struct fb_validity *v)
{
	return json_pack("{s:i,s:O?}", "state", (int)v->state, "reasons", v->reasons);
}

static void validity_merge(struct fb_run *run, const json_t *all)
{
	for (size_t r = 0; r < json_array_size(all); r++) {
		const json_t *j = json_array_get(all, r);
		const json_t *reasons = json_object_get(j, "reasons");
		int64_t state = fb_json_int(j, "state", 0);
		if (state < FB_VALID || state > FB_INVALID)
			state = FB_INVALID;
		for (size_t i = 0; i < json_array_size(reasons); i++) {
			const char *why = json_string_value(json_array_get(reasons, i));
			if (run->size > 1)
				fb_validity_add(&run->validity, (enum fb_valid)state,
					"rank %zu: %s", r, why ? why : "?");
			else
				fb_validity_add(&run->validity, (enum fb_valid)state, "%s",
					why ? why : "?");
		}
	}
}

static int do_check(struct fb_run *run, struct fb_err *e)
{
	struct fb_validity mine = {.state = FB_VALID};
	json_t *all = NULL;
	int rc = exchange_counters(run, &run->after, e);
	if (rc < 0)
		return rc;
	if (run->b->check) {
		rc = run->b->check(run->st, run->point, &mine, &run->local);
		if (rc < 0 && run->local.code == 0)
			fb_fail(&run->local,
				rc == -EBADMSG ? FB_EXIT_WRONG_DATA : FB_EXIT_UNMEASURED, rc,
				"%s: the check failed", run->point->name);
		if (rc == -EBADMSG)
			fb_validity_add(&mine, FB_INVALID, "%s", run->local.msg);
	}
	json_t *j = validity_mine(&mine);
	rc = runctl_gather_json(run, j, &all, e);
	json_decref(j);
	json_decref(mine.reasons);
	if (rc == 0 && run->rank == 0)
		validity_merge(run, all);
	json_decref(all);
	return rc < 0 ? rc : runctl_agree(run, &run->local, e);
}

/* ---- followers ------------------------------------------------------------------------------- */

static int follow_batch(struct fb_run *run, uint64_t iters, struct fb_err *e)
{
	uint32_t len = measure(run, iters);
	struct fb_oob_part *none = NULL; /* only the owner gets parts */
	int rc = fb_oob_gather(run->oob, run->buf, len, &none, runctl_patience(run), e);
	run->broken = run->broken || rc < 0;
	return rc;
}

static int follow(struct fb_run *run, struct fb_err *e)
{
	for (;;) {
		struct order o;
		int rc = runctl_send(run, &o, sizeof(o), e); /* receives, on this side */
		if (rc < 0)
			return rc;
		switch (o.kind) {
		case ORDER_PREPARE:
			rc = o.point < run->points.n ? do_prepare(run, &o, e) : -EPROTO;
			break;
		case ORDER_BATCH:
		case ORDER_WARMUP:
			run->counting = o.kind == ORDER_BATCH;
			rc = run->point && o.iters <= run->cap ? follow_batch(run, o.iters, e)
							       : -EPROTO;
			break;
		case ORDER_CHECK: rc = run->point ? do_check(run, e) : -EPROTO; break;
		case ORDER_AGREE: return runctl_agree(run, &run->local, e);
		case ORDER_END: return 0;
		default: rc = -EPROTO;
		}
		if (rc == -EPROTO)
			fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank 0 sent an order that makes no sense (%llu)",
				(unsigned long long)o.kind);
		if (rc < 0)
			return rc;
	}
}

/* ---- the owner ------------------------------------------------------------------------------- */

static int order(
	struct fb_run *run, enum order_kind kind, unsigned point, uint64_t iters, struct fb_err *e)
{
	struct order o = {.kind = kind, .point = point, .iters = iters, .left_ns = point_time(run)};
	return runctl_send(run, &o, sizeof(o), e);
}

/* Whoever has failed itself gives the others this long to say why; a peer behind a lost link, or
 * one that still waits for what will never come, must not hold the cause back. */
#define GRACE_NS 5000000000ull

/* The ranks' answers to a batch. With one rank there is nobody to ask. */
static int collect(struct fb_run *run, uint32_t len, struct fb_oob_part *one,
	struct fb_oob_part **parts, struct fb_err *e)
{
	if (run->size == 1) {
		one->data = run->buf;
		one->len = len;
		*parts = one;
		return 0;
	}
	uint64_t until = runctl_patience(run);
	if (run->local.code != 0 && until > fb_deadline_in(GRACE_NS))
		until = fb_deadline_in(GRACE_NS);
	int rc = fb_oob_gather(run->oob, run->buf, len, parts, until, e);
	run->broken = run->broken || rc < 0;
	if (rc < 0 && rc != -EINTR && run->local.code != 0) {
		*e = run->local;
		rc = e->code;
	}
	return rc;
}

static void release(struct fb_run *run, struct fb_oob_part *parts)
{
	if (run->size > 1)
		fb_oob_parts_free(run->oob, parts);
}

static bool any_failed(const struct fb_run *run, const struct fb_oob_part *parts)
{
	for (int r = 0; r < run->size; r++) {
		const struct batch_status *s = parts[r].data;
		if (parts[r].len < sizeof(*s) || s->code < 0)
			return true;
	}
	return false;
}

/* Tell all that it is over and let them agree why. `e` may hold the owner's own reason. */
static int give_up(struct fb_run *run, struct fb_err *e)
{
	struct fb_err mine = e->code ? *e : run->local, ignored = {0};
	if (run->size == 1) {
		*e = mine;
		return e->code ? e->code : -EIO;
	}
	if (!run->broken && order(run, ORDER_AGREE, 0, 0, &ignored) == 0) {
		fb_err_clear(e);
		int rc = runctl_agree(run, &mine, e);
		if (rc < 0)
			return rc;
	}
	if (e->code == 0)
		*e = mine;
	fb_oob_abort(run->oob, e);
	return e->code ? e->code : -EIO;
}

/**
 * One batch on all ranks.
 * @param keep count it, or drop it (warm-up)
 * @param ns   how long it took here
 * @return 0, or negative after all ranks were told
 */
static int owner_batch(
	struct fb_run *run, uint64_t iters, bool keep, uint64_t *ns, struct fb_err *e)
{
	struct fb_oob_part one, *parts = NULL;
	int rc = stopped(e);
	if (rc == 0)
		rc = order(run, keep ? ORDER_BATCH : ORDER_WARMUP, run->point->index, iters, e);
	if (rc < 0)
		return give_up(run, e);
	run->counting = keep;
	uint64_t start = fb_clock_ns();
	uint32_t len = measure(run, iters);
	*ns = fb_clock_ns() - start;
	rc = collect(run, len, &one, &parts, e);
	if (rc < 0)
		return give_up(run, e);
	bool failed = any_failed(run, parts);
	if (!failed && keep)
		rc = acc_add(run->acc, parts, run->combined, run->cap, e);
	/* A programmed distribution may be shorter or longer than the time that really passed. */
	if (!failed && ((const struct batch_status *)parts[0].data)->iters == 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENODATA, "%s: a batch of %llu gave no sample",
			run->point->name, (unsigned long long)iters);
	release(run, parts);
	return failed || rc < 0 ? give_up(run, e) : 0;
}

/** Decides how long the next batch is. */
struct pace {
	uint64_t last_iters, last_ns;
	uint64_t limit; /* of one batch */
	uint64_t least; /* the point's min_batch, which may take this long: */
	uint64_t most_ns;
};

static uint64_t next_batch(const struct pace *p, uint64_t left)
{
	uint64_t n = FIRST_BATCH;
	if (p->last_iters > 0) {
		double each = (double)(p->last_ns ? p->last_ns : 1) / (double)p->last_iters;
		double fit = BATCH_TARGET_NS / each, longest = (double)p->most_ns / each;
		double least = (double)p->least < longest ? (double)p->least : longest;
		fit = fit > least ? fit : least;
		double most = (double)p->last_iters * MAX_GROWTH;
		n = (uint64_t)(fit < most ? fit : most);
	}
	n = n < 1 ? 1 : n;
	n = n > p->limit ? p->limit : n;
	return n > left ? left : n;
}

/* Dropped iterations; they also tell how long one lasts. When the end of the point is not a fixed
 * count, slow operations get no more than half of the point's time to warm up. */
static int warm_up(struct fb_run *run, struct pace *p, struct fb_err *e)
{
	const struct fb_runctl_cfg *rc = &run->rc;
	uint64_t limit = rc->iters         ? UINT64_MAX
			 : rc->duration_ns ? rc->duration_ns / 2
					   : rc->max_time_ns / 2;
	uint64_t start = fb_clock_ns();
	for (uint64_t left = rc->warmup; left > 0;) {
		/* The very first is alone: it may take seconds (connections, page faults). */
		uint64_t n = p->last_iters == 0 ? 1 : next_batch(p, left);
		int err = owner_batch(run, n, false, &p->last_ns, e);
		if (err < 0)
			return err;
		p->last_iters = n;
		left -= n;
		run->acc->warmup += n;
		if (fb_clock_ns() - start > limit)
			break;
	}
	return 0;
}

static bool enough(struct fb_run *run, const struct fb_metric *m, int nm, uint64_t start)
{
	const struct fb_runctl_cfg *rc = &run->rc;
	struct acc *a = run->acc;
	uint64_t past = fb_clock_ns() - start;
	if (rc->iters > 0)
		return a->iters >= rc->iters;
	if (rc->duration_ns > 0)
		return past >= rc->duration_ns;
	if (a->iters >= rc->max_iters || past >= rc->max_time_ns)
		return true;
	/* Iterations are correlated: a few of them may look narrow by chance of one moment. */
	if (a->iters < rc->min_iters || a->nbatches < MIN_BATCHES)
		return false;
	for (int i = 0; i < nm; i++) {
		if (!acc_narrow(a, &m[i], rc->ci_width))
			return false;
	}
	return true;
}

static uint64_t longest_batch(const struct fb_run *run)
{
	const struct fb_runctl_cfg *rc = &run->rc;
	uint64_t whole = rc->iters         ? UINT64_MAX
			 : rc->duration_ns ? rc->duration_ns
					   : rc->max_time_ns;
	return whole / 8 < BATCH_MOST_NS ? whole / 8 : BATCH_MOST_NS;
}

static int measure_point(struct fb_run *run, const struct fb_metric *m, int nm, struct fb_err *e)
{
	struct pace p = {
		.limit = run->cap, .least = run->point->min_batch, .most_ns = longest_batch(run)};
	if (run->point->max_batch > 0 && run->point->max_batch < p.limit)
		p.limit = run->point->max_batch;
	int rc = warm_up(run, &p, e);
	uint64_t start = fb_clock_ns();
	while (rc == 0 && !enough(run, m, nm, start)) {
		uint64_t total = run->rc.iters         ? run->rc.iters
				 : run->rc.duration_ns ? UINT64_MAX
						       : run->rc.max_iters;
		uint64_t done = run->acc->iters;
		uint64_t n = next_batch(&p, total > done ? total - done : 1);
		rc = owner_batch(run, n, true, &p.last_ns, e);
		p.last_iters = n;
	}
	return rc;
}

static void add_results(struct fb_run *run, const struct fb_metric *m, int nm)
{
	json_t *facts = run->b->facts ? run->b->facts(run->st, run->point) : NULL;
	struct point_context c = {.bench = run->b,
		.point = run->point,
		.where = run->where,
		.before = run->before,
		.after = run->after,
		.facts = facts,
		.validity = &run->validity};
	for (int i = 0; i < nm; i++) {
		json_t *result = acc_result(run->acc, &m[i], &c);
		if (result && run->b->extend)
			run->b->extend(run->st, run->point, &m[i], result);
		fb_doc_add_result(run->doc, result);
	}
	json_decref(facts);
}

static int owner_point(struct fb_run *run, unsigned index, struct fb_err *e)
{
	struct fb_metric m[FB_MAX_METRICS];
	struct order o = {.kind = ORDER_PREPARE, .point = index, .left_ns = point_time(run)};
	memset(m, 0, sizeof(m));
	acc_reset(run->acc);
	json_decref(run->validity.reasons);
	run->validity = (struct fb_validity){.state = FB_VALID};
	int rc = stopped(e);
	if (rc == 0)
		rc = runctl_send(run, &o, sizeof(o), e);
	if (rc < 0)
		return give_up(run, e);
	/* Failures of these two are known to all ranks already: each has agreed on them. */
	rc = do_prepare(run, &o, e);
	if (rc < 0)
		return rc;
	int nm = run->b->metrics(run->st, run->point, m);
	if (nm <= 0 || nm > FB_MAX_METRICS) {
		fb_fail(e, FB_EXIT_UNMEASURED, nm < 0 ? nm : EINVAL, "%s has no metrics",
			run->point->name);
		return give_up(run, e);
	}
	rc = measure_point(run, m, nm, e);
	if (rc < 0)
		return rc;
	rc = order(run, ORDER_CHECK, index, 0, e);
	if (rc < 0)
		return give_up(run, e);
	rc = do_check(run, e);
	if (rc < 0 && rc != -EBADMSG)
		return rc;
	add_results(run, m, nm);
	return rc;
}

/* Every finished point is on disk before the next begins. */
static int publish(struct fb_run *run, struct fb_err *e)
{
	int rc = fb_doc_publish(run->doc, e);
	return rc < 0 ? give_up(run, e) : 0;
}

static int all_points(struct fb_run *run, struct fb_tell *tell, struct fb_err *e)
{
	if (fb_timeout_fits(fb_doc_timeout(run->doc), run->points.n, "points", run->rc.duration_ns,
		    "fewer points", e) < 0) {
		int rc = give_up(run, e);
		fb_doc_error(run->doc, e);
		return rc;
	}
	for (unsigned i = 0; i < run->points.n; i++) {
		fb_progress("[%u/%u] %s", i + 1, run->points.n, run->points.v[i].name);
		fb_tell_begin(tell, i + 1, run->points.n, run->points.v[i].name);
		int rc = owner_point(run, i, e);
		if (rc < 0) {
			/* Whoever still waits for an order learns why none comes. */
			if (run->size > 1 && (run->broken || rc == -ECONNRESET || rc == -ETIMEDOUT))
				fb_oob_abort(run->oob, e);
			fb_doc_error_at(run->doc, e, run->points.v[i].name);
			return rc;
		}
		rc = publish(run, e);
		if (rc < 0)
			return rc;
		fb_tell_end(tell, run->doc);
	}
	fb_progress_end();
	return order(run, ORDER_END, 0, 0, e);
}

static int lead(struct fb_run *run, struct fb_err *e)
{
	struct fb_tell tell;
	fb_tell_open(&tell);
	int rc = all_points(run, &tell, e);
	fb_tell_close(&tell);
	return rc;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void tear_down(struct fb_run *run)
{
	if (run->st)
		run->b->teardown(run->st);
	fb_points_free(&run->points);
	if (run->acc)
		acc_free(run->acc);
	free(run->acc);
	free(run->combined);
	free(run->buf);
	json_decref(run->before);
	json_decref(run->after);
	json_decref(run->validity.reasons);
}

int fb_run_bench(struct fb_doc *doc, const struct fb_bench *b, const void *cfg,
	const struct fb_runctl_cfg *rc, struct fb_oob *oob, const char *where, struct fb_err *e)
{
	struct fb_err own = {0};
	struct fb_run run = {.b = b, .oob = oob, .doc = doc, .where = where, .size = 1};
	if (!e)
		e = &own;
	if (b->abi != FB_BENCH_ABI)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"%s speaks version %u of the benchmarks' contract, not %u", b->name, b->abi,
			FB_BENCH_ABI);
	if (oob) {
		run.rank = fb_oob_rank(oob);
		run.size = fb_oob_size(oob);
	}
	int err = runctl_hello(&run, rc, e);
	if (err == 0)
		err = runctl_set_up(&run, cfg, e);
	if (err < 0 && run.rank == 0)
		fb_doc_error(doc, e);
	if (err == 0)
		err = run.rank == 0 ? lead(&run, e) : follow(&run, e);
	fb_progress_end();
	tear_down(&run);
	return err;
}
