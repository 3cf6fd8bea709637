// SPDX-License-Identifier: Apache-2.0
/*
 * The gate. Of each metric: has the candidate become worse than the base by more than a floor? The
 * test and the interval ask the same question: the base's launches are moved by the floor in the
 * bad direction, and the candidate is tested against that (references, A1.3). With too few launches
 * the answer is INCONCLUSIVE, never PASS.
 */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/alike.h"
#include "reports/compare_priv.h"
#include "reports/rank.h"

const char *const cmp_verdict_names[] = {
	[CMP_PASS] = "PASS",
	[CMP_IMPROVED] = "IMPROVED",
	[CMP_REGRESSED] = "REGRESSED",
	[CMP_MISSING] = "MISSING",
	[CMP_INCONCLUSIVE] = "INCONCLUSIVE",
	[CMP_INCOMPARABLE] = "INCOMPARABLE",
	[CMP_INVALID] = "INVALID",
};

/* ---- floors ---------------------------------------------------------------------------------- */

/*
 * Relative and absolute: both must be exceeded. 1 % of a rate and 2 % of a median are what launches
 * differ by on a quiet machine; clock reads and polling set the 20 ns; tails move more.
 */
static void set_floor(struct cmp_metric *m, const struct cmp_rules *r)
{
	static const char *const kinds[] = {"p50", "p99", "p99.9"};
	bool rate = strcmp(m->unit, "bytes/s") == 0 || strcmp(m->unit, "1/s") == 0;
	int tail = m->q < 0.9 ? 0 : m->q < 0.995 ? 1 : 2;
	char name[256];
	snprintf(name, sizeof(name), "%s:%s", m->name, m->metric);
	const struct gate_floor *f = r->gate ? gate_floor_of(r->gate, name,
						       m->time ? kinds[tail]
						       : rate  ? "rate"
							       : "value")
					     : NULL;
	m->floor_rel = !m->time ? 0.01 : tail == 0 ? 0.02 : tail == 1 ? 0.05 : 0.10;
	m->floor_abs = !m->time ? 0 : tail == 0 ? 20 : 100;
	m->floor_reason = NULL;
	if (f) {
		m->floor_rel = f->relative;
		m->floor_abs = m->time && f->absolute >= 0 ? f->absolute : 0;
		m->floor_reason = f->reason;
	}
	if (r->floor_pct >= 0)
		m->floor_rel = r->floor_pct / 100;
	m->floor = m->floor_rel;
	double *v = m->base.n > 0 ? malloc(m->base.n * sizeof(*v)) : NULL;
	if (!v)
		return;
	memcpy(v, m->base.v, m->base.n * sizeof(*v));
	fb_sort(v, m->base.n);
	double median = fb_median_sorted(v, m->base.n);
	free(v);
	if (median > 0 && m->floor_abs / median > m->floor)
		m->floor = m->floor_abs / median;
}

/* ---- which metrics gate ---------------------------------------------------------------------- */

/* Group of a metric: its case up to the last part, the size. */
static size_t stem(const struct cmp_metric *m)
{
	const char *slash = strrchr(m->name, '/');
	return slash && m->size > 0 ? (size_t)(slash - m->name) : strlen(m->name);
}

/* Metrics of one sweep stand together, small sizes first. */
static int by_sweep(const void *a, const void *b)
{
	const struct cmp_metric *x = *(const struct cmp_metric *const *)a;
	const struct cmp_metric *y = *(const struct cmp_metric *const *)b;
	size_t n = stem(x), m = stem(y);
	int d = strcmp(x->metric, y->metric);
	if (d == 0)
		d = strncmp(x->name, y->name, n < m ? n : m);
	if (d == 0)
		d = (n > m) - (n < m);
	return d ? d : (x->size > y->size) - (x->size < y->size);
}

static bool same_sweep(const struct cmp_metric *x, const struct cmp_metric *y)
{
	return strcmp(x->metric, y->metric) == 0 && stem(x) == stem(y) &&
	       strncmp(x->name, y->name, stem(x)) == 0;
}

/* The smallest and the largest size of a sweep say most: the first of overheads, the last of
 * bandwidth. Tails vary most, and algbw repeats busbw. */
static int priority(const struct cmp_metric *m, bool least, bool most)
{
	if (strcmp(m->metric, "algbw") == 0)
		return 4;
	if (m->time && m->q > 0.5)
		return m->q < 0.995 ? 2 : 3;
	/* Messages per second, too, are a matter of overheads. */
	return (m->time || strcmp(m->unit, "1/s") == 0 ? least : most) ? 0 : 1;
}

static int set_priorities(struct cmp *c)
{
	struct cmp_metric **order = calloc(c->n + 1, sizeof(struct cmp_metric *));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		order[i] = &c->v[i];
	qsort(order, c->n, sizeof(struct cmp_metric *), by_sweep);
	for (size_t i = 0, first; i < c->n;) {
		for (first = i; i < c->n && same_sweep(order[first], order[i]);)
			i++;
		for (size_t k = first; k < i; k++)
			order[k]->priority =
				priority(order[k], order[k]->size == order[first]->size,
					order[k]->size == order[i - 1]->size);
	}
	free(order);
	return 0;
}

static bool matches(const struct cmp_metric *m, const char *pattern)
{
	char name[256];
	snprintf(name, sizeof(name), "%s:%s", m->name, m->metric);
	return fnmatch(pattern, name, 0) == 0;
}

static bool asked_for(const struct cmp_metric *m, const struct cmp_rules *r)
{
	for (size_t i = 0; i < r->ngates; i++)
		if (matches(m, r->gates[i]))
			return true;
	return false;
}

static void look_for(struct cmp *c, const char *pattern)
{
	size_t k = 0, used = strlen(c->unmatched);
	while (k < c->n && !matches(&c->v[k], pattern))
		k++;
	if (k == c->n)
		snprintf(c->unmatched + used, sizeof(c->unmatched) - used, "%s%s", used ? ", " : "",
			pattern);
}

/* A mistyped pattern would silently judge by less, by another floor, or waive nothing. */
static void find_unmatched(struct cmp *c, const struct cmp_rules *r)
{
	c->unmatched[0] = '\0';
	for (size_t i = 0; i < r->ngates; i++)
		look_for(c, r->gates[i]);
	for (size_t i = 0; r->gate && i < r->gate->n_floors; i++)
		if (r->gate->floor[i].metric[0])
			look_for(c, r->gate->floor[i].metric);
	for (size_t i = 0; r->gate && i < r->gate->n_waivers; i++)
		look_for(c, r->gate->waiver[i].metric);
}

static int choose_gated(struct cmp *c, const struct cmp_rules *r)
{
	c->gated = 0;
	if (set_priorities(c) != 0)
		return -ENOMEM;
	find_unmatched(c, r);
	for (size_t i = 0; i < c->n && r->ngates > 0; i++) {
		c->v[i].gated = asked_for(&c->v[i], r);
		c->gated += c->v[i].gated;
	}
	for (int level = 0; level < 5 && r->ngates == 0; level++)
		for (size_t i = 0; i < c->n && c->gated < r->max_gated; i++) {
			if (c->v[i].priority != level)
				continue;
			c->v[i].gated = true;
			c->gated++;
		}
	return 0;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* p of the candidate against base * factor, and on which side of it the candidate lies. */
static double shifted_p(const struct cmp_metric *m, double factor, double *above)
{
	double *moved = malloc((m->base.n + 1) * sizeof(*moved));
	*above = m->ratio.est - factor;
	if (!moved)
		return NAN;
	for (size_t i = 0; i < m->base.n; i++)
		moved[i] = m->base.v[i] * factor;
	double p = rep_mwu_p(moved, m->base.n, m->cand.v, m->cand.n);
	free(moved);
	return p;
}

static void measure(struct cmp_metric *m, const struct cmp_rules *r)
{
	double above = 0;
	m->ratio = rep_hl_ratio(m->base.v, m->base.n, m->cand.v, m->cand.n, r->level);
	m->p = rep_mwu_p(m->base.v, m->base.n, m->cand.v, m->cand.n);
	double worse = m->lower ? 1 + m->floor : 1 - m->floor;
	double better = m->lower ? 1 - m->floor : 1 + m->floor;
	/* A floor of 100 % or more (a short time under the absolute floor) has no other side. */
	m->p_worse = worse > 0 ? shifted_p(m, worse, &above) : 1;
	m->worse_side = worse > 0 && (m->lower ? above > 0 : above < 0);
	m->p_better = better > 0 ? shifted_p(m, better, &above) : 1;
	m->better_side = better > 0 && (m->lower ? above < 0 : above > 0);
}

/* A place, or a parameter that the base has, ends the search. */
static bool note_param(void *arg, const struct alike_fact *f)
{
	struct cmp_metric *m = arg;
	if (f->judged)
		alike_words(f, m->why, sizeof(m->why));
	return f->judged;
}

static bool params_differ(struct cmp_metric *m)
{
	const json_t *const results[] = {m->base.first, m->cand.first};
	m->why[0] = '\0';
	alike_results(results, 2, note_param, m);
	return m->why[0] != '\0';
}

/* Verdicts that no statistic changes. */
static bool settled(const struct cmp *c, struct cmp_metric *m, const struct cmp_rules *r)
{
	size_t least = m->base.n < m->cand.n ? m->base.n : m->cand.n;
	m->waiver = NULL;
	if (!m->cand.first) {
		m->verdict = CMP_MISSING;
		snprintf(m->why, sizeof(m->why), "the candidate has no such result");
	} else if (m->base.invalid || m->cand.invalid) {
		m->verdict = CMP_INVALID;
		snprintf(m->why, sizeof(m->why), "%s, %s", m->cand.invalid ? "candidate" : "base",
			m->cand.invalid ? m->cand.why : m->base.why);
	} else if (c->wrong_base) {
		m->verdict = CMP_INVALID;
		snprintf(m->why, sizeof(m->why), "the base's document records wrong data");
	} else if (c->differs[0] && !r->any_system) {
		m->verdict = CMP_INCOMPARABLE;
		snprintf(m->why, sizeof(m->why), "%s", c->differs);
	} else if (m->base.mixed[0] || m->cand.mixed[0]) {
		m->verdict = CMP_INCOMPARABLE;
		snprintf(m->why, sizeof(m->why), "%s, %s", m->cand.mixed[0] ? "candidate" : "base",
			m->cand.mixed[0] ? m->cand.mixed : m->base.mixed);
	} else if (c->mixed[0]) {
		m->verdict = CMP_INCOMPARABLE;
		snprintf(m->why, sizeof(m->why), "%s", c->mixed);
	} else if (params_differ(m)) {
		m->verdict = CMP_INCOMPARABLE;
	} else if (least < CMP_MIN_LAUNCHES) {
		m->verdict = CMP_INCONCLUSIVE;
		snprintf(m->why, sizeof(m->why),
			"needs at least %d launches a side, has %zu and %zu", CMP_MIN_LAUNCHES,
			m->base.n, m->cand.n);
		/* 10 / (1 - q) samples: references, A1.4 */
		if (m->time && m->q > 0.5)
			snprintf(m->why + strlen(m->why), sizeof(m->why) - strlen(m->why),
				" with the %.0f samples of this percentile", 10 / (1 - m->q));
	} else {
		return false;
	}
	return true;
}

static bool has_statistics(const struct cmp_metric *m)
{
	return m->ratio.valid;
}

static void conclude(struct cmp_metric *m, double alpha)
{
	double bad_end = m->lower ? m->ratio.hi : m->ratio.lo;
	double limit = m->lower ? 1 + m->floor : 1 - m->floor;
	if (m->worse_side && m->p_worse < alpha) {
		m->verdict = CMP_REGRESSED;
		snprintf(m->why, sizeof(m->why), "worse by more than the floor of %.3g %%",
			100 * m->floor);
	} else if (m->better_side && m->p_better < alpha) {
		m->verdict = CMP_IMPROVED;
	} else if (m->lower ? bad_end <= limit : bad_end >= limit) {
		m->verdict = CMP_PASS;
	} else {
		m->verdict = CMP_INCONCLUSIVE;
		snprintf(m->why, sizeof(m->why),
			"the interval reaches beyond the floor of %.3g %%: more launches, or a quieter machine",
			100 * m->floor);
	}
}

static int adjust(struct cmp *c)
{
	double *p = calloc(2 * c->n + 1, sizeof(*p));
	size_t n = 0;
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated && has_statistics(&c->v[i])) {
			p[n] = c->v[i].p_worse;
			p[c->n + n++] = c->v[i].p_better;
		}
	int rc = rep_holm(p, n);
	if (rc == 0)
		rc = rep_holm(p + c->n, n);
	n = 0;
	for (size_t i = 0; i < c->n && rc == 0; i++)
		if (c->v[i].gated && has_statistics(&c->v[i])) {
			c->v[i].p_worse = p[n];
			c->v[i].p_better = p[c->n + n++];
		}
	free(p);
	return rc;
}

/*
 * A gate over so many metrics that even the clearest difference of so few launches would not pass
 * Holm's first step can only ever say PASS or INCONCLUSIVE: it is refused. One launch a side is the
 * exception: that is no gate but a look, INCONCLUSIVE by rule.
 */
static int check_reach(const struct cmp *c, double alpha, struct fb_err *e)
{
	size_t base = 0, cand = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated && c->v[i].cand.first) {
			base = c->v[i].base.n > base ? c->v[i].base.n : base;
			cand = c->v[i].cand.n > cand ? c->v[i].cand.n : cand;
		}
	if (base < 2 || cand < 2)
		return 0;
	double least = cmp_least_p(base, cand), step = alpha / (double)c->gated;
	if (least < step)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, ERANGE,
		"this gate cannot fail: %zu and %zu launches reach p = %.2g at best, and %zu gated "
		"metrics need p < %.2g (Holm)",
		base, cand, least, c->gated, step);
	if (least < alpha)
		fb_hint(e, "take %zu launches a side, or gate %d metrics at most (--max-gated)",
			cmp_launches_for(step), (int)(alpha / least));
	else
		fb_hint(e, "take %zu launches a side", cmp_launches_for(step));
	return -ERANGE;
}

static void judge_metric(struct cmp *c, struct cmp_metric *m, const struct cmp_rules *r)
{
	m->p = m->p_worse = m->p_better = NAN;
	m->noise = m->seen80 = m->seen97 = m->need80 = m->need97 = NAN;
	m->ratio = (struct fb_ci){.est = NAN, .lo = NAN, .hi = NAN, .level = r->level};
	set_floor(m, r);
	if (settled(c, m, r)) {
		/* An estimate without an interval is still worth a look. */
		if (m->base.n > 0 && m->cand.n > 0)
			m->ratio.est =
				rep_hl_ratio(m->base.v, m->base.n, m->cand.v, m->cand.n, r->level)
					.est;
		return;
	}
	measure(m, r);
	if (!has_statistics(m)) {
		m->verdict = CMP_INCONCLUSIVE;
		snprintf(m->why, sizeof(m->why), "a value is not positive: no ratio can be taken");
	}
}

void cmp_estimate(struct cmp *c, const struct cmp_rules *r)
{
	for (size_t i = 0; i < c->n; i++) {
		struct cmp_metric *m = &c->v[i];
		m->ratio.est = NAN;
		set_floor(m, r);
		if (m->base.n > 0 && m->cand.n > 0)
			m->ratio =
				rep_hl_ratio(m->base.v, m->base.n, m->cand.v, m->cand.n, r->level);
	}
}

static void waive(struct cmp_metric *m, const struct cmp_rules *r)
{
	char name[256];
	if (!r->gate || !m->gated)
		return;
	snprintf(name, sizeof(name), "%s:%s", m->name, m->metric);
	m->waiver = gate_waiver_of(r->gate, name, cmp_verdict_names[m->verdict]);
}

int cmp_judge(struct cmp *c, const struct cmp_rules *r, struct fb_err *e)
{
	double alpha = 1 - r->level;
	c->strict = r->strict;
	c->level = r->level;
	if (choose_gated(c, r) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory while comparing");
	int rc = check_reach(c, alpha, e);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < c->n; i++)
		judge_metric(c, &c->v[i], r);
	if (adjust(c) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory while comparing");
	for (size_t i = 0; i < c->n; i++) {
		struct cmp_metric *m = &c->v[i];
		if (has_statistics(m)) {
			conclude(m, alpha);
			cmp_power(m, m->gated ? alpha / (double)c->gated : alpha);
		}
		waive(m, r);
	}
	return 0;
}

enum cmp_verdict cmp_effective(const struct cmp_metric *m)
{
	return m->waiver ? CMP_PASS : m->verdict;
}

int cmp_status(const struct cmp *c)
{
	bool failed = false, open = false, judged = false;
	for (size_t i = 0; i < c->n; i++) {
		enum cmp_verdict v = cmp_effective(&c->v[i]);
		if (!c->v[i].gated)
			continue;
		failed = failed || v == CMP_REGRESSED || v == CMP_MISSING ||
			 (c->strict && v == CMP_INCONCLUSIVE);
		open = open || v == CMP_INCOMPARABLE || v == CMP_INVALID;
		/* A waiver takes a verdict back, and gives none. */
		v = c->v[i].verdict;
		judged = judged || (v != CMP_MISSING && v != CMP_INCOMPARABLE && v != CMP_INVALID);
	}
	if (c->wrong_data)
		return FB_EXIT_WRONG_DATA;
	return failed ? FB_EXIT_FAILED : open || !judged ? FB_EXIT_UNMEASURED : FB_EXIT_OK;
}

const char *cmp_state(const struct cmp *c)
{
	switch (cmp_status(c)) {
	case FB_EXIT_OK: return "ACCEPTED";
	case FB_EXIT_UNMEASURED: return "INCOMPLETE";
	default: return "REJECTED";
	}
}
