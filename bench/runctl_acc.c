// SPDX-License-Identifier: Apache-2.0
/*
 * Batches added up, and the result they make. Memory is taken once per run and bounded: a histogram
 * for times, at most MAX_SAMPLES rates.
 *
 * A rate's value is all work over all time, with the interval of just that by resampling batches.
 * The stop rule asks after every batch and takes the cheaper interval of the median of the batches'
 * rates.
 */
#include "bench/runctl_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/stats.h"

#define LEVEL 0.95

int acc_init(struct acc *a, int size, enum fb_combine combine, struct fb_err *e)
{
	memset(a, 0, sizeof(*a));
	a->size = size;
	a->combine = combine;
	if (combine != FB_COMBINE_OWNER) {
		a->rank_hist = calloc((size_t)size, sizeof(*a->rank_hist));
		a->rank_slowest = calloc((size_t)size, sizeof(*a->rank_slowest));
		a->rank_work = calloc((size_t)size, sizeof(*a->rank_work));
		a->rank_ns = calloc((size_t)size, sizeof(*a->rank_ns));
		if (!a->rank_hist || !a->rank_slowest || !a->rank_work || !a->rank_ns) {
			acc_free(a);
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
				"no memory for the histograms of %d ranks", size);
		}
	}
	acc_reset(a);
	return 0;
}

void acc_free(struct acc *a)
{
	free(a->rank_hist);
	free(a->rank_slowest);
	free(a->rank_work);
	free(a->rank_ns);
	a->rank_hist = NULL;
	a->rank_slowest = NULL;
	a->rank_work = a->rank_ns = NULL;
}

void acc_reset(struct acc *a)
{
	a->iters = a->elapsed_ns = a->warmup = 0;
	a->arrived = a->counted = 0;
	a->work = 0;
	a->nbatches = 0;
	a->lag1 = NAN;
	fb_hist_init(&a->hist);
	for (int r = 0; a->rank_hist && r < a->size; r++) {
		fb_hist_init(&a->rank_hist[r]);
		a->rank_slowest[r] = 0;
		a->rank_work[r] = a->rank_ns[r] = 0;
	}
}

static const struct batch_status *status_of(const struct fb_oob_part *part)
{
	return part->data;
}

static const uint64_t *samples_of(const struct fb_oob_part *part)
{
	return (const uint64_t *)(status_of(part) + 1);
}

static double sum_ns(const uint64_t *ns, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)ns[i];
	return sum;
}

/* An iteration of a collective is over when its last rank is. @return how many values are in out */
static size_t slowest(struct acc *a, const struct fb_oob_part *parts, uint64_t *out, size_t cap)
{
	size_t n = cap;
	for (int r = 0; r < a->size; r++) {
		size_t have = status_of(&parts[r])->n;
		n = have < n ? have : n;
	}
	for (size_t i = 0; i < n; i++) {
		int last = 0;
		for (int r = 0; r < a->size; r++) {
			uint64_t v = samples_of(&parts[r])[i];
			fb_hist_add(&a->rank_hist[r], v);
			if (v > samples_of(&parts[last])[i])
				last = r;
		}
		a->rank_slowest[last]++;
		out[i] = samples_of(&parts[last])[i];
	}
	return n;
}

/* Twice as long batches from here on: neighbours become one. */
static void halve(struct acc *a)
{
	unsigned n = a->nbatches / 2;
	for (unsigned i = 0; i < n; i++) {
		a->batch_work[i] = a->batch_work[2 * i] + a->batch_work[2 * i + 1];
		a->batch_ns[i] = a->batch_ns[2 * i] + a->batch_ns[2 * i + 1];
	}
	a->nbatches = n;
}

static void add_times(struct acc *a, const uint64_t *ns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fb_hist_add(&a->hist, ns[i]);
	size_t k = n < 4 * MAX_SAMPLES ? n : 4 * MAX_SAMPLES;
	for (size_t i = 0; i < k; i++)
		a->scratch[i] = (double)ns[i];
	if (k >= 16)
		a->lag1 = fb_lag1(a->scratch, k);
}

static int check_parts(
	const struct acc *a, const struct fb_oob_part *parts, size_t cap, struct fb_err *e)
{
	for (int r = 0; r < a->size; r++) {
		size_t n = parts[r].len >= sizeof(struct batch_status)
				   ? (size_t)status_of(&parts[r])->n
				   : SIZE_MAX;
		bool samples = a->combine == FB_COMBINE_MAX || r == 0;
		if (n > cap || (samples && parts[r].len < sizeof(struct batch_status) + n * 8))
			return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank %d sent a malformed batch of %u bytes", r, parts[r].len);
	}
	return 0;
}

/* Elapsed time of a rank's batch: what it said, else the sum of its samples. */
static double rank_elapsed(const struct fb_oob_part *part, bool has_samples)
{
	const struct batch_status *s = status_of(part);
	if (s->elapsed_ns > 0)
		return (double)s->elapsed_ns;
	return has_samples ? sum_ns(samples_of(part), s->n) : 0;
}

/* What arrived, by the ranks where it arrived; the work of a batch that one rank sent and another
 * took. The time is the longer of both ends': a receiver that was not running finds messages
 * waiting and takes them in no time, and nothing arrives faster than it is sent. @return false when
 * no rank, or of senders that add up not every one's target, can tell */
static bool arrived(struct acc *a, const struct fb_oob_part *parts, double *work, double *ns)
{
	double rate = 0, sent = rank_elapsed(&parts[0], true);
	int told = 0;
	for (int r = 1; r < a->size && a->combine == FB_COMBINE_SUM_RATE; r++)
		sent = fmax(sent, rank_elapsed(&parts[r], false));
	*ns = 0;
	for (int r = 0; r < a->size; r++) {
		const struct batch_status *s = status_of(&parts[r]);
		double t = fmax((double)s->received_ns, sent);
		if (s->received <= 0 || t <= 0)
			continue;
		rate += s->received / t;
		*ns = fmax(*ns, t);
		told++;
	}
	*work = rate * *ns;
	return a->combine == FB_COMBINE_SUM_RATE ? told == a->size : told > 0;
}

int acc_add(
	struct acc *a, const struct fb_oob_part *parts, uint64_t *out, size_t cap, struct fb_err *e)
{
	int rc = check_parts(a, parts, cap, e);
	if (rc < 0)
		return rc;
	const struct batch_status *own = status_of(&parts[0]);
	double work = own->work, ns = rank_elapsed(&parts[0], true), rate = 0;
	if (a->combine == FB_COMBINE_MAX) {
		size_t n = slowest(a, parts, out, cap);
		add_times(a, out, n);
		double longest = 0;
		for (int r = 0; r < a->size; r++)
			longest = fmax(longest, (double)status_of(&parts[r])->elapsed_ns);
		ns = longest > 0 ? longest : sum_ns(out, n);
	} else {
		add_times(a, samples_of(&parts[0]), own->n);
	}
	for (int r = 0; a->rank_work && r < a->size; r++) {
		double t = rank_elapsed(&parts[r], a->combine == FB_COMBINE_MAX || r == 0);
		a->rank_work[r] += status_of(&parts[r])->work;
		a->rank_ns[r] += t;
		if (t > 0)
			rate += status_of(&parts[r])->work / t;
		if (a->combine == FB_COMBINE_SUM_RATE)
			ns = fmax(ns, t);
	}
	if (a->combine == FB_COMBINE_SUM_RATE)
		work = rate * ns; /* the work that all ranks together do in the longest batch */
	double there, there_ns;
	a->counted++;
	if (a->combine != FB_COMBINE_MAX && arrived(a, parts, &there, &there_ns)) {
		a->arrived++;
		work = there;
		ns = there_ns;
	}
	if (a->nbatches == MAX_SAMPLES)
		halve(a);
	a->batch_work[a->nbatches] = work;
	a->batch_ns[a->nbatches++] = ns;
	a->iters += own->iters;
	a->work += work;
	a->elapsed_ns += (uint64_t)ns;
	return 0;
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* Value of a 1-based rank. */
static double hist_rank(const struct fb_hist *h, size_t rank)
{
	double v;
	return fb_hist_quantile(h, ((double)rank - 0.5) / (double)h->n, &v) == 0 ? v : NAN;
}

static struct fb_ci time_ci(const struct acc *a)
{
	struct fb_ci ci = {.est = NAN, .lo = NAN, .hi = NAN, .level = LEVEL};
	size_t lo, hi;
	if (a->hist.n == 0 || fb_hist_quantile(&a->hist, 0.5, &ci.est) < 0)
		return ci;
	if (fb_median_ci_ranks(a->hist.n, LEVEL, &lo, &hi)) {
		ci.lo = hist_rank(&a->hist, lo);
		ci.hi = hist_rank(&a->hist, hi);
		ci.valid = isfinite(ci.lo) && isfinite(ci.hi);
	}
	return ci;
}

/* The batches' rates in units of the metric per second, in time order. */
static size_t rates(const struct acc *a, const struct fb_metric *m, double *v)
{
	size_t n = 0;
	for (unsigned i = 0; i < a->nbatches; i++) {
		if (a->batch_ns[i] > 0)
			v[n++] = m->per_unit * a->batch_work[i] / a->batch_ns[i] * 1e9;
	}
	return n;
}

static struct fb_ci rate_ci(struct acc *a, const struct fb_metric *m)
{
	size_t n = rates(a, m, a->scratch);
	fb_sort(a->scratch, n);
	return fb_median_ci_sorted(a->scratch, n, LEVEL);
}

/* The interval of all work over all time, which is the value. The stop rule does without: it is
 * asked every batch. */
static struct fb_ci total_ci(const struct acc *a, const struct fb_metric *m)
{
	struct fb_ci ci = fb_ratio_ci(a->batch_work, a->batch_ns, a->nbatches, LEVEL, 1);
	double unit = m->per_unit * 1e9;
	ci.est *= unit;
	ci.lo *= unit;
	ci.hi *= unit;
	return ci;
}

bool acc_narrow(struct acc *a, const struct fb_metric *m, double width)
{
	struct fb_ci ci = m->kind == FB_METRIC_TIME ? time_ci(a) : rate_ci(a, m);
	return ci.valid && ci.est > 0 && (ci.hi - ci.lo) / ci.est <= width;
}

/* ---- the result ------------------------------------------------------------------------------ */

struct dev {
	double d;
	uint64_t count;
};

static int dev_cmp(const void *a, const void *b)
{
	double x = ((const struct dev *)a)->d, y = ((const struct dev *)b)->d;
	return (x > y) - (x < y);
}

/* Median absolute deviation of a histogram: the weighted median of its buckets' distances from the
 * median. */
static double hist_mad(const struct fb_hist *h, double median)
{
	struct dev *v = malloc(FB_HIST_BUCKETS * sizeof(*v));
	size_t n = 0;
	uint64_t all = 0, half, sum = 0;
	double mad = NAN;
	if (!v)
		return NAN;
	for (unsigned b = 0; b < FB_HIST_BUCKETS; b++) {
		if (h->count[b] == 0)
			continue;
		double mid =
			(double)fb_hist_bucket_low(b) + (double)(fb_hist_bucket_width(b) - 1) / 2;
		/* No sample lies outside: of one sample alone the deviation is 0. */
		mid = fmin(fmax(mid, (double)h->min), (double)h->max);
		v[n].d = fabs(mid - median);
		v[n++].count = h->count[b];
		all += h->count[b];
	}
	qsort(v, n, sizeof(*v), dev_cmp);
	half = (all + 1) / 2;
	for (size_t i = 0; i < n && isnan(mad); i++) {
		sum += v[i].count;
		if (sum >= half)
			mad = v[i].d;
	}
	free(v);
	return mad;
}

static void set_ns(json_t *j, const char *key, double v)
{
	if (isfinite(v))
		fb_json_set_int(j, key, llround(v));
}

static const struct {
	const char *key;
	double q;
} wanted[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}};
#define NWANTED (sizeof(wanted) / sizeof(wanted[0]))

/* The binomial interval of each percentile that the sample supports; an interval whose upper rank
 * lies beyond the histogram's range is none. */
static json_t *percentile_cis(const struct fb_hist *h)
{
	json_t *all = json_object();
	double v;
	fb_json_set_real(all, "level", LEVEL, NULL);
	for (size_t i = 0; i < NWANTED; i++) {
		uint64_t lo = 0, hi = 0;
		size_t mlo = 0, mhi = 0;
		double from, to;
		bool have = wanted[i].q == 0.5
				    ? fb_median_ci_ranks(h->n, LEVEL, &mlo, &mhi)
				    : fb_quantile_ci_ranks(h->n, wanted[i].q, LEVEL, &lo, &hi);
		if (!have || fb_hist_percentile(h, wanted[i].q, &v) < 0)
			continue;
		if (wanted[i].q == 0.5) { /* the same as the result's own `ci` */
			lo = mlo;
			hi = mhi;
		}
		from = hist_rank(h, lo);
		to = hist_rank(h, hi);
		if (!isfinite(from) || !isfinite(to))
			continue;
		json_t *one = json_object();
		set_ns(one, "lo", from);
		set_ns(one, "hi", to);
		json_object_set_new(all, wanted[i].key, one);
	}
	return all;
}

static json_t *time_stats(const struct acc *a, double median)
{
	json_t *s = json_object();
	double v;
	if (a->hist.n == 0)
		return s;
	fb_json_set_int(s, "min", (int64_t)a->hist.min);
	for (size_t i = 0; i < NWANTED; i++) {
		/* Absent where the sample cannot support it. */
		if (fb_hist_percentile(&a->hist, wanted[i].q, &v) == 0)
			set_ns(s, wanted[i].key, v);
	}
	fb_json_set_int(s, "max", (int64_t)a->hist.max);
	fb_json_set_real(s, "mean", fb_hist_mean(&a->hist), NULL);
	fb_json_set_real(s, "stddev", fb_hist_stddev(&a->hist), NULL);
	set_ns(s, "mad", hist_mad(&a->hist, median));
	json_object_set_new(s, "ci", percentile_cis(&a->hist));
	if (isfinite(a->lag1))
		fb_json_set_real(s, "lag1", a->lag1, NULL);
	return s;
}

static json_t *rate_stats(struct acc *a, const struct fb_metric *m)
{
	json_t *s = json_object();
	size_t n = rates(a, m, a->scratch);
	double lag1 = n >= 16 ? fb_lag1(a->scratch, n) : NAN;
	fb_json_set_int(s, "batches", (int64_t)n);
	if (n == 0)
		return s;
	fb_sort(a->scratch, n);
	fb_json_set_real(s, "min", a->scratch[0], NULL);
	fb_json_set_real(s, "p50", fb_median_sorted(a->scratch, n), NULL);
	fb_json_set_real(s, "max", a->scratch[n - 1], NULL);
	fb_json_set_real(s, "mean", fb_mean(a->scratch, n), NULL);
	if (n >= 2)
		fb_json_set_real(s, "stddev", fb_stddev(a->scratch, n), NULL);
	fb_json_set_real(s, "mad", fb_mad_sorted(a->scratch, n, a->scratch + MAX_SAMPLES), NULL);
	if (isfinite(lag1))
		fb_json_set_real(s, "lag1", lag1, NULL);
	return s;
}

static json_t *per_rank(const struct acc *a, const struct fb_metric *m)
{
	json_t *all = json_array();
	for (int r = 0; a->rank_hist && r < a->size; r++) {
		json_t *j = json_object();
		const struct fb_hist *h = &a->rank_hist[r];
		double v;
		fb_json_set_int(j, "rank", r);
		if (m->kind == FB_METRIC_RATE && a->rank_ns[r] > 0)
			fb_json_set_real(j, "value",
				m->per_unit * a->rank_work[r] / a->rank_ns[r] * 1e9, NULL);
		if (m->kind == FB_METRIC_TIME && h->n > 0) {
			if (fb_hist_quantile(h, 0.5, &v) == 0)
				set_ns(j, "p50_ns", v);
			fb_json_set_int(j, "min_ns", (int64_t)h->min);
			fb_json_set_int(j, "max_ns", (int64_t)h->max);
			fb_json_set_int(j, "slowest", (int64_t)a->rank_slowest[r]);
		}
		json_array_append_new(all, j);
	}
	return all;
}

/* A difference only where both readings are integers: absent is never 0. */
static json_t *counters_delta(const json_t *before, const json_t *after)
{
	json_t *delta = json_object(), *from, *to;
	const char *source, *name;
	json_object_foreach ((json_t *)after, source, to) {
		json_t *d = json_object(), *v;
		from = json_object_get(before, source);
		json_object_foreach (to, name, v) {
			const json_t *b = json_object_get(from, name);
			if (json_is_integer(v) && json_is_integer(b))
				fb_json_set_int(
					d, name, json_integer_value(v) - json_integer_value(b));
		}
		if (json_object_size(d) > 0)
			json_object_set(delta, source, d);
		json_decref(d);
	}
	return delta;
}

static json_t *counters_json(const struct point_context *c)
{
	json_t *j = json_object();
	json_object_set_new(j, "before", c->before ? json_deep_copy(c->before) : json_object());
	json_object_set_new(j, "after", c->after ? json_deep_copy(c->after) : json_object());
	json_object_set_new(j, "delta", counters_delta(c->before, c->after));
	return j;
}

static void judge(
	const struct acc *a, const struct fb_metric *m, double value, struct fb_validity *v)
{
	if (a->iters == 0 || !isfinite(value))
		fb_validity_add(v, FB_INVALID, "nothing was measured");
	if (m->kind == FB_METRIC_TIME && a->hist.overflow > 0)
		fb_validity_add(v, FB_SUSPECT, "%llu samples lasted longer than 68 s",
			(unsigned long long)a->hist.overflow);
	if (m->bound <= 0 || !isfinite(value))
		return;
	bool higher = strcmp(m->better, "higher") == 0;
	double share = higher ? value / m->bound : m->bound / value;
	if (share > 1.01)
		fb_validity_add(v, FB_INVALID, "%.1f %% of the physical bound: %s", 100 * share,
			m->bound_why);
}

static json_t *validity_json(const struct acc *a, const struct fb_metric *m, double value,
	const struct fb_validity *from)
{
	static const char *const words[] = {"valid", "suspect", "invalid"};
	struct fb_validity v = {.state = from->state,
		.reasons = from->reasons ? json_deep_copy(from->reasons) : json_array()};
	judge(a, m, value, &v);
	json_t *j = json_object();
	fb_json_set_str(j, "state", words[v.state]);
	json_object_set_new(j, "reasons", v.reasons);
	return j;
}

static json_t *ci_json(const struct fb_ci *ci, bool integer)
{
	if (!ci->valid)
		return json_null();
	json_t *j = json_object();
	if (integer) {
		set_ns(j, "lo", ci->lo);
		set_ns(j, "hi", ci->hi);
	} else {
		fb_json_set_real(j, "lo", ci->lo, NULL);
		fb_json_set_real(j, "hi", ci->hi, NULL);
	}
	fb_json_set_real(j, "level", LEVEL, NULL);
	return j;
}

static json_t *bound_json(const struct fb_metric *m)
{
	if (m->bound <= 0 || !isfinite(m->bound))
		return json_null();
	json_t *j = json_object();
	fb_json_set_real(j, "value", m->bound, NULL);
	fb_json_set_str(j, "why", m->bound_why[0] ? m->bound_why : "the benchmark's own bound");
	return j;
}

static double set_value(struct acc *a, const struct fb_metric *m, json_t *j)
{
	double value;
	struct fb_ci ci;
	if (m->kind == FB_METRIC_TIME) {
		ci = time_ci(a);
		value = ci.est;
		if (isfinite(value))
			fb_json_set_int(j, "value", llround(value));
		else
			fb_json_set_real(j, "value", NAN, "no sample within the range");
	} else {
		ci = total_ci(a, m);
		value = a->elapsed_ns > 0 ? m->per_unit * a->work / (double)a->elapsed_ns * 1e9
					  : NAN;
		fb_json_set_real(j, "value", value, "no time was measured");
	}
	json_object_set_new(j, "ci", ci_json(&ci, m->kind == FB_METRIC_TIME));
	return value;
}

json_t *acc_result(struct acc *a, const struct fb_metric *m, const struct point_context *c)
{
	json_t *j = json_object();
	const struct fb_bench *b = c->bench;
	bool time = m->kind == FB_METRIC_TIME;
	fb_json_set_str(j, "case", c->point->name);
	fb_json_set_str(j, "where", c->where);
	json_object_set_new(
		j, "params", c->point->params ? json_deep_copy(c->point->params) : json_object());
	fb_json_set_str(j, "metric", m->name);
	fb_json_set_str(j, "unit", m->unit);
	fb_json_set_str(j, "better", m->better);
	fb_json_set_str(j, "load", b->load ? b->load : "closed");
	fb_json_set_str(j, "sync", b->sync ? b->sync : "none");
	fb_json_set_str(j, "definition", b->definition);
	double value = set_value(a, m, j);
	json_object_set_new(j, "bound", bound_json(m));
	if (m->line_rate > 0)
		fb_json_set_real(j, "line_rate", m->line_rate, NULL);
	fb_json_set_int(j, "n", (int64_t)(time ? a->hist.n : a->iters));
	fb_json_set_int(j, "warmup_dropped", (int64_t)a->warmup);
	if (time) {
		json_object_set_new(j, "hist", fb_hist_to_json(&a->hist));
		json_object_set_new(j, "stats", time_stats(a, value));
	} else {
		json_t *samples = json_array();
		size_t n = rates(a, m, a->scratch);
		for (size_t i = 0; i < n; i++)
			json_array_append_new(samples, fb_json_real(a->scratch[i]));
		json_object_set_new(j, "samples", samples);
		if (a->arrived > 0)
			fb_json_set_str(j, "measured_at",
				a->arrived == a->counted ? "receiver" : "receiver and sender");
		json_object_set_new(j, "stats", rate_stats(a, m));
	}
	json_object_set_new(j, "per_rank", per_rank(a, m));
	json_object_set_new(j, "counters", counters_json(c));
	json_object_set_new(j, "validity", validity_json(a, m, value, c->validity));
	if (c->facts)
		json_object_set_new(j, "facts", json_deep_copy(c->facts));
	return j;
}
