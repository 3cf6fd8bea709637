// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs judge, first part: launches gathered into links, and one rail's robust fit. The model
 * and its sources stand in pairs_judge.h. Convicts nobody.
 */
#include "verbs/pairs_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Passes of the fit: each shrinks what is left; three or four do for a fleet, tiny fleets take
 * more. */
#define PASSES 40
/* Values farther than this many sigma from their median do not count: Hampel's X84 rule, 5.2 MAD.
 */
#define FAR 3.5
/* Below this many measured hosts a spread says little: suspicion then leans on the floor. */
#define SMALL_FLEET 8

static void swap(double *a, double *b)
{
	double t = *a;
	*a = *b;
	*b = t;
}

/* The k-th smallest comes to v[k], smaller ones before it, larger ones behind it (Hoare's
 * selection). */
static double nth(double *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (v[mid] < v[lo])
			swap(&v[mid], &v[lo]);
		if (v[hi] < v[lo])
			swap(&v[hi], &v[lo]);
		if (v[hi] < v[mid])
			swap(&v[hi], &v[mid]);
		double pivot = v[mid];
		size_t i = lo, j = hi;
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (pivot < v[j])
				j--;
			if (i >= j)
				break;
			swap(&v[i++], &v[j--]);
		}
		/* All up to j are at most the pivot, all behind are at least it. */
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

double pairs_median(double *v, size_t n)
{
	if (n == 0)
		return NAN;
	double upper = nth(v, n, n / 2);
	if (n % 2)
		return upper;
	double lower = v[0];
	for (size_t i = 1; i < n / 2; i++)
		if (v[i] > lower)
			lower = v[i];
	return lower + (upper - lower) / 2;
}

double pairs_centre(double *v, size_t n, double sigma)
{
	double far = FAR * sigma, sum = 0;
	size_t kept = 0;

	if (n == 2 && fabs(v[0] - v[1]) > 2 * far)
		return v[0] > v[1] ? v[0] : v[1];
	double m = pairs_median(v, n);
	for (size_t i = 0; i < n; i++)
		if (fabs(v[i] - m) <= far) {
			sum += v[i];
			kept++;
		}
	return kept ? sum / (double)kept : m;
}

/*
 * Scale of v about 0; reorders v. A MAD to begin with (b_n corrects it for few values), which alone
 * is 12 % uncertain with a hundred values; from ten values on, the root mean square of those within
 * 3 sigma, twice, brings that to 7 %. 0.9866 is the deviation of a normal cut off at 3.
 */
static double scale_of(double *v, size_t n)
{
	static const double few[10] = {
		1, 1, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
	double b = n < 10 ? few[n] : (double)n / ((double)n - 0.8);

	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i]);
	double s = n ? 1.4826 * b * pairs_median(v, n) : 0;
	double before = -1;
	for (int pass = 0; pass < 20 && n >= 10 && s != before; pass++) {
		double sum = 0;
		size_t kept = 0;

		before = s;
		for (size_t i = 0; i < n; i++)
			if (v[i] <= 3 * s) {
				sum += v[i] * v[i];
				kept++;
			}
		s = kept ? sqrt(sum / (double)kept) / 0.9866 : s;
	}
	return s;
}

/* A launch to be sorted: by rail, hosts, phase, and its value, so that the input's order is no
 * matter. */
struct key {
	uint32_t rail, a, b, phase;
	double y;
	enum pairs_state state;
};

static int cmp_key(const void *pa, const void *pb)
{
	const struct key *x = pa, *y = pb;

	if (x->rail != y->rail)
		return x->rail < y->rail ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b < y->b ? -1 : 1;
	if (x->phase != y->phase)
		return x->phase < y->phase ? -1 : 1;
	return (x->y > y->y) - (x->y < y->y);
}

static int read_launch(const struct pairs_opts *o, const struct pairs_input *in, size_t i,
	struct key *k, struct fb_err *e)
{
	const struct pairs_measure *m = &in->measure[i];

	if (m->a >= in->hosts || m->b >= in->hosts || m->rail >= in->rails)
		return fb_fail_usage(e,
			"measurement %zu names hosts %u and %u on rail %u, but there are %u hosts and %u rails",
			i, m->a, m->b, m->rail, in->hosts, in->rails);
	if (m->a == m->b)
		return fb_fail_usage(e, "measurement %zu pairs host %u with itself", i, m->a);
	*k = (struct key){m->rail, m->a < m->b ? m->a : m->b, m->a < m->b ? m->b : m->a,
		m->phase == PAIRS_CONFIRM, 0, m->state};
	if (k->state != PAIRS_MEASURED)
		return 0;
	if (isfinite(m->value) && m->value > 0)
		k->y = o->lower_better ? -log(m->value) : log(m->value);
	else
		k->state = PAIRS_FAILED;
	return 0;
}

static void add_launch(struct link_acc *l, const struct key *k, double *values, size_t *n)
{
	bool conf = k->phase == PAIRS_CONFIRM;

	l->tries_conf += conf;
	switch (k->state) {
	case PAIRS_MEASURED:
		values[(*n)++] = k->y;
		*(conf ? &l->n_conf : &l->n_round) += 1;
		break;
	case PAIRS_UNREACHABLE: l->unreach++; /* fall through */
	case PAIRS_FAILED: *(conf ? &l->miss_conf : &l->miss_round) += 1; break;
	case PAIRS_NOT_RUN: break;
	}
}

int pairs_gather(const struct pairs_opts *o, const struct pairs_input *in, struct link_acc **links,
	size_t *n_links, double **values, struct fb_err *e)
{
	size_t m = in->measures, n = 0, used = 0;
	int rc = -ENOMEM;
	struct key *key = calloc(m + 1, sizeof *key);
	struct link_acc *l = calloc(m + 1, sizeof *l);
	double *v = calloc(m + 1, sizeof *v);

	if (!key || !l || !v) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to judge %zu measurements", m);
		goto free_all;
	}
	for (size_t i = 0; i < m; i++) {
		rc = read_launch(o, in, i, &key[i], e);
		if (rc)
			goto free_all;
	}
	qsort(key, m, sizeof *key, cmp_key);
	for (size_t i = 0; i < m; i++) {
		const struct key *k = &key[i];
		if (n == 0 || l[n - 1].rail != k->rail || l[n - 1].a != k->a || l[n - 1].b != k->b)
			l[n++] = (struct link_acc){.rail = k->rail,
				.a = k->a,
				.b = k->b,
				.first = used,
				.y = NAN,
				.yc = NAN};
		add_launch(&l[n - 1], k, v, &used);
	}
	free(key);
	*links = l;
	*n_links = n;
	*values = v;
	return 0;
free_all:
	free(key);
	free(l);
	free(v);
	return rc;
}

struct link_acc *pairs_find(const struct rail_work *w, uint32_t x, uint32_t y)
{
	uint32_t a = x < y ? x : y, b = x < y ? y : x;
	size_t lo = 0, hi = w->links;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct link_acc *l = &w->link[mid];
		if (l->a == a && l->b == b)
			return l;
		if (l->a < a || (l->a == a && l->b < b))
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Each host's links, in the order of their numbers. */
static void index_links(struct rail_work *w)
{
	for (uint32_t i = 0; i <= w->hosts; i++)
		w->off[i] = 0;
	for (uint32_t i = 0; i < w->hosts; i++)
		w->deg[i] = 0;
	w->measured = 0;
	for (size_t k = 0; k < w->links; k++) {
		struct link_acc *l = &w->link[k];
		w->off[l->a + 1]++;
		w->off[l->b + 1]++;
		if (!l->n_round)
			continue;
		l->y = pairs_median(&w->values[l->first], l->n_round);
		w->deg[l->a]++;
		w->deg[l->b]++;
		w->measured++;
	}
	for (uint32_t i = 0; i < w->hosts; i++)
		w->off[i + 1] += w->off[i];
	/* off[] serves as the place to fill, and is then shifted back by one host. */
	for (size_t k = 0; k < w->links; k++) {
		w->adj[w->off[w->link[k].a]++] = (uint32_t)k;
		w->adj[w->off[w->link[k].b]++] = (uint32_t)k;
	}
	for (uint32_t i = w->hosts; i > 0; i--)
		w->off[i] = w->off[i - 1];
	w->off[0] = 0;
}

double pairs_level(struct rail_work *w, const bool *out)
{
	size_t n = 0;
	for (size_t k = 0; k < w->links; k++) {
		const struct link_acc *l = &w->link[k];
		if (l->n_round && !(out && (out[l->a] || out[l->b])))
			w->scratch[n++] = l->y;
	}
	return out ? pairs_centre(w->scratch, n, w->sigma) : pairs_median(w->scratch, n);
}

double pairs_noise(struct rail_work *w, const bool *out)
{
	size_t n = 0;
	for (int any = 0; any < 2 && n == 0; any++)
		for (size_t k = 0; k < w->links; k++) {
			const struct link_acc *l = &w->link[k];
			if (l->n_round && (any || !(out[l->a] || out[l->b])))
				w->scratch[n++] = l->y - w->mu;
		}
	double s = scale_of(w->scratch, n), least = log1p(w->o->sigma_min);
	return s > least ? s : least;
}

/*
 * Hosts that are out of the noise and the level: those that would be convicted by their rounds. All
 * suspects out would leave the upper part of chance alone, a lower noise, more suspects, and so on.
 */
static void mark_out(struct rail_work *w)
{
	for (uint32_t i = 0; i < w->hosts; i++) {
		double t = w->seen < SMALL_FLEET ? 0 : w->o->z * w->sigma / sqrt(w->used[i]);
		w->out[i] = w->c[i] < 0 && -w->c[i] >= w->floor && -w->c[i] >= t;
	}
}

/*
 * A node's effect by its pairs with unsuspected partners. A suspect's pair says little: where the
 * slower host decides, nothing at all. Where those are fewer than half, all its pairs count as they
 * are: a slow node can have drawn suspicion on its partners, and must not hide behind them. *used:
 * by how many pairs.
 */
static double node_effect(struct rail_work *w, uint32_t i, uint32_t *used)
{
	size_t n = 0;

	for (int any = 0; any < 2 && 2 * n < w->deg[i]; any++) {
		n = 0;
		for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
			const struct link_acc *l = &w->link[w->adj[k]];
			if (l->n_round && (any || !(w->c[pairs_other(l, i)] < 0)))
				w->scratch[n++] = l->y - w->mu;
		}
	}
	*used = (uint32_t)n;
	if (w->seen >= SMALL_FLEET)
		return pairs_centre(w->scratch, n, w->sigma);
	double best = n ? w->scratch[0] : NAN;
	for (size_t k = 1; k < n; k++)
		best = w->scratch[k] > best ? w->scratch[k] : best;
	return best;
}

/* Node effects, and the level moved so that the typical node has none. @return how far it moved */
static double effects(struct rail_work *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->hosts; i++)
		w->e[i] = w->deg[i] ? node_effect(w, i, &w->used[i]) : NAN;
	for (uint32_t i = 0; i < w->hosts; i++)
		if (w->deg[i])
			w->scratch[n++] = w->e[i];
	double shift = n ? pairs_median(w->scratch, n) : 0;
	for (uint32_t i = 0; i < w->hosts; i++)
		w->e[i] -= shift;
	w->mu += shift;
	return shift;
}

static int cmp_ranked(const void *pa, const void *pb)
{
	const struct pairs_ranked *x = pa, *y = pb;
	if (x->e != y->e)
		return x->e < y->e ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/*
 * Suspects, the worst first: each later one is looked at without what the earlier ones did to it,
 * so that a slow host's partners do not stand accused with it.
 * @return whether the set or its effects moved
 */
static bool flag_suspects(struct rail_work *w)
{
	double z = w->seen < SMALL_FLEET ? w->o->suspect_z / 2 : w->o->suspect_z;
	uint32_t n = 0;
	bool moved = false;

	for (uint32_t i = 0; i < w->hosts; i++) {
		w->before[i] = w->c[i];
		w->c[i] = 0;
		if (w->deg[i])
			w->rank[n++] = (struct pairs_ranked){w->e[i], i};
	}
	qsort(w->rank, n, sizeof *w->rank, cmp_ranked);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = w->rank[k].i;
		uint32_t used;
		double own = node_effect(w, i, &used), t = z * w->sigma / sqrt(used);
		if (own <= -(t > w->floor / 2 ? t : w->floor / 2))
			w->c[i] = own;
	}
	for (uint32_t i = 0; i < w->hosts; i++)
		if (fabs(w->c[i] - w->before[i]) > 1e-6)
			moved = true;
	return moved;
}

void pairs_fit(struct rail_work *w)
{
	index_links(w);
	w->seen = 0;
	for (uint32_t i = 0; i < w->hosts; i++) {
		w->c[i] = 0;
		w->e[i] = NAN;
		w->seen += w->deg[i] > 0;
	}
	w->mu = pairs_level(w, NULL);
	w->sigma = NAN;
	w->judged = w->measured >= 2 && w->seen >= 3;
	if (w->measured == 0)
		return;
	for (int pass = 0; pass < PASSES; pass++) {
		mark_out(w);
		w->sigma = pairs_noise(w, w->out);
		double shift = effects(w);
		if (!w->judged)
			break;
		bool moved = flag_suspects(w);
		if (!moved && fabs(shift) < 1e-6)
			break;
	}
	if (w->judged) {
		mark_out(w);
		double good = pairs_level(w, w->out);
		if (isfinite(good))
			w->mu = good;
		w->sigma = pairs_noise(w, w->out);
		for (uint32_t i = 0; i < w->hosts; i++)
			w->e[i] = w->deg[i] ? node_effect(w, i, &w->used[i]) : NAN;
	}
	for (size_t k = 0; k < w->links; k++) {
		struct link_acc *l = &w->link[k];
		if (l->n_conf)
			l->yc = pairs_centre(
				&w->values[l->first + l->n_round], l->n_conf, w->sigma);
	}
}
