// SPDX-License-Identifier: Apache-2.0
/*
 * What leads up from the leaves: how many cables, to which spines, and down over up. A leaf is held
 * against the leaves of its own connected part; nothing here knows what a site intended, so all are
 * warnings, but for a blocking factor over what --blocking allows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

#define MAX_SIBLINGS 512

/* The best rate that the two ends have shown or could do. */
static double best_gbps(const struct fabric *f, int port)
{
	const struct fabric_port *p = &f->port.v[port], *q = &f->port.v[p->peer];
	unsigned speed = p->speed > q->speed ? p->speed : q->speed;
	unsigned width = p->width > q->width ? p->width : q->width;
	if (p->max_speed > speed && q->max_speed > speed && p->max_speed < FABRIC_SPEEDS)
		speed = p->max_speed;
	return fabric_gbps(width, speed);
}

/* The rate that most cables of a switch's side have, so that one slow link does not pass for a
 * difference in design: that is fab.speed's to tell. */
static double usual_gbps(const double *rate, int n)
{
	double best = 0;
	int most = 0;
	for (int i = 0; i < n; i++) {
		int same = 0;
		for (int k = 0; k < n; k++)
			same += rate[k] == rate[i];
		if (same > most || (same == most && rate[i] > best)) {
			most = same;
			best = rate[i];
		}
	}
	return best;
}

void fabric_ways(const struct fabric *f, int node, struct fabric_ways *w)
{
	double down[FABRIC_MAX_PORT + 2] = {0}, up[FABRIC_MAX_PORT + 2] = {0};
	int seen[FABRIC_MAX_PORT + 2] = {0};
	memset(w, 0, sizeof(*w));
	FABRIC_PORTS (f, node, p) {
		int peer = f->port.v[p].peer, to = peer < 0 ? -1 : f->port.v[peer].node, k = 0;
		if (to < 0 || to == node || w->down + w->up > FABRIC_MAX_PORT)
			continue;
		const struct fabric_node *n = &f->node.v[to];
		if (f->port.v[peer].hca >= 0) {
			down[w->down++] = best_gbps(f, p);
		} else if (n->kind == FABRIC_SWITCH && n->level >= f->node.v[node].level) {
			up[w->up++] = best_gbps(f, p);
			while (k < w->up_to && seen[k] != to)
				k++;
			if (k == w->up_to)
				seen[w->up_to++] = to;
		} else if (n->kind == FABRIC_SWITCH) {
			down[w->down++] = best_gbps(f, p);
		}
	}
	w->down_gbps = w->down * usual_gbps(down, w->down);
	w->up_gbps = w->up * usual_gbps(up, w->up);
}

double fabric_blocking(const struct fabric_ways *w)
{
	if (w->up == 0)
		return 0;
	return w->down_gbps > 0 && w->up_gbps > 0 ? w->down_gbps / w->up_gbps
						  : (double)w->down / w->up;
}

/* ---- what most have -------------------------------------------------------------------------- */

struct leaf {
	int node, part;
	struct fabric_ways w;
	double blocking;
};
struct leaves {
	struct leaf *v;
	size_t n;
};

static int by_part(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;
	return x->part != y->part ? (x->part < y->part ? -1 : 1)
				  : (x->node < y->node ? -1 : x->node > y->node);
}

static bool find_leaves(const struct fabric *f, struct leaves *l)
{
	l->v = calloc(f->node.n + 1, sizeof(*l->v));
	if (!l->v)
		return false;
	for (size_t i = 0; i < f->node.n; i++) {
		if (f->node.v[i].kind != FABRIC_SWITCH || f->node.v[i].level != 1)
			continue;
		struct leaf *leaf = &l->v[l->n++];
		leaf->node = (int)i;
		leaf->part = f->node.v[i].part;
		fabric_ways(f, leaf->node, &leaf->w);
		leaf->blocking = fabric_blocking(&leaf->w);
	}
	qsort(l->v, l->n, sizeof(*l->v), by_part);
	return true;
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The value that most of v (sorted here) have; of several as frequent the larger. */
static double usual(double *v, size_t n, size_t *times)
{
	double best = 0;
	*times = 0;
	qsort(v, n, sizeof(*v), by_double);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && v[k] - v[i] < 1e-9; k++)
			;
		if (k - i >= *times) {
			*times = k - i;
			best = v[i];
		}
	}
	return best;
}

static size_t part_end(const struct leaves *l, size_t from)
{
	size_t to = from;
	while (to < l->n && l->v[to].part == l->v[from].part)
		to++;
	return to;
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void judge_uplinks(
	struct fabric_judge *j, const struct leaves *l, double *v, size_t from, size_t to)
{
	struct fb_finding o;
	char name[FABRIC_LABEL];
	size_t times;
	for (size_t i = from; i < to; i++)
		v[i - from] = l->v[i].w.up;
	double most = usual(v, to - from, &times);
	for (size_t i = from; i < to && to - from > 1; i++) {
		const struct leaf *leaf = &l->v[i];
		if (leaf->w.up >= most)
			continue;
		j->short_up[leaf->node] = true;
		fabric_start(j, FAB_UPLINKS, &o, "%s", fabric_label(j->f, leaf->node, name));
		fb_find(&o, FB_CHECK_WARN, "%d uplink%s", leaf->w.up, leaf->w.up == 1 ? "" : "s");
		if (leaf->w.up)
			fb_find(&o, FB_CHECK_WARN, "%d uplink%s, so %.3g:1 blocking", leaf->w.up,
				leaf->w.up == 1 ? "" : "s", leaf->blocking);
		fb_find_expected(
			&o, "the other leaves", "%g, as %zu of %zu leaves", most, times, to - from);
		fabric_keep(j, FAB_UPLINKS, &o);
	}
}

static void judge_blocking(
	struct fabric_judge *j, const struct leaves *l, double *v, size_t from, size_t to)
{
	struct fb_finding o;
	char name[FABRIC_LABEL];
	double allowed = j->rules->blocking;
	size_t times, n = 0;
	/* A few hosts more, such as a login node, are no fault. */
	const double much = 1.25;
	for (size_t i = from; i < to; i++)
		if (l->v[i].w.up && !j->short_up[l->v[i].node])
			v[n++] = l->v[i].blocking;
	double most = usual(v, n, &times);
	for (size_t i = from; i < to; i++) {
		const struct leaf *leaf = &l->v[i];
		bool over = allowed > 0 && leaf->w.up && leaf->blocking > allowed * 1.0001;
		bool worse = leaf->w.up && !j->short_up[leaf->node] && times * 2 > n && n > 2 &&
			     leaf->blocking > most * much && leaf->blocking > 1.0001;
		if (!over && !worse)
			continue;
		fabric_start(j, FAB_BLOCKING, &o, "%s", fabric_label(j->f, leaf->node, name));
		fb_find(&o, over ? FB_CHECK_FAIL : FB_CHECK_WARN, "%.3g:1: %d down, %d up",
			leaf->blocking, leaf->w.down, leaf->w.up);
		if (over)
			fb_find_expected(&o, "--blocking", "at most %g:1", allowed);
		else
			fb_find_expected(
				&o, "the other leaves", "%.3g:1, as %zu of %zu", most, times, n);
		fabric_keep(j, FAB_BLOCKING, &o);
	}
}

/* Cables to each of a leaf's spines: where they divide evenly, evenly. */
static void judge_parallel(struct fabric_judge *j, const struct leaf *leaf)
{
	const struct fabric *f = j->f;
	int to[FABRIC_MAX_PORT + 2], n[FABRIC_MAX_PORT + 2], spines = 0, lo = 0, hi = 0;
	char name[FABRIC_LABEL], least[FABRIC_LABEL], most[FABRIC_LABEL];
	struct fb_finding o;
	FABRIC_PORTS (f, leaf->node, p) {
		int peer = f->port.v[p].peer, at = peer < 0 ? -1 : f->port.v[peer].node, k = 0;
		if (at < 0 || f->node.v[at].kind != FABRIC_SWITCH || f->node.v[at].level != 2)
			continue;
		while (k < spines && to[k] != at)
			k++;
		if (k == spines) {
			to[spines] = at;
			n[spines++] = 0;
		}
		n[k]++;
	}
	for (int k = 1; k < spines; k++) {
		lo = n[k] < n[lo] ? k : lo;
		hi = n[k] > n[hi] ? k : hi;
	}
	if (spines < 2 || n[hi] == n[lo])
		return;
	/* 3 cables over 2 spines cannot be even. */
	if (n[hi] - n[lo] == 1 && leaf->w.up % spines != 0)
		return;
	fabric_start(j, FAB_PARALLEL, &o, "%s", fabric_label(f, leaf->node, name));
	fb_find(&o, FB_CHECK_WARN, "%d cable%s to %.70s, %d to %.70s", n[hi], n[hi] == 1 ? "" : "s",
		fabric_label(f, to[hi], most), n[lo], fabric_label(f, to[lo], least));
	fb_find_expected(
		&o, "the leaf's other spines", "%d uplinks over %d spines", leaf->w.up, spines);
	fabric_keep(j, FAB_PARALLEL, &o);
}

/* ---- adjacency ------------------------------------------------------------------------------- */

/* Counters by node, and which of them are not zero. */
struct tally {
	int *n, *list, used;
};
/* The switches one level above each node, or below it, each once: list[from[i]] to from[i + 1]. */
struct edges {
	int *from, *list;
};
struct places {
	struct edges up, down;
	struct tally near, far;
	int *seen, stamp; /* switches above the one at hand have its stamp */
};

static void clear(struct tally *t)
{
	for (int i = 0; i < t->used; i++)
		t->n[t->list[i]] = 0;
	t->used = 0;
}

static void add(struct tally *t, int node)
{
	if (t->n[node]++ == 0)
		t->list[t->used++] = node;
}

static void find_edges(const struct fabric *f, struct edges *e, int step, struct places *x)
{
	int n = 0;
	for (size_t i = 0; i < f->node.n; i++) {
		const struct fabric_node *from = &f->node.v[i];
		e->from[i] = n;
		x->stamp++;
		if (from->kind != FABRIC_SWITCH || from->level == 0)
			continue;
		FABRIC_PORTS (f, i, p) {
			int peer = f->port.v[p].peer, to = peer < 0 ? -1 : f->port.v[peer].node;
			if (to < 0 || f->node.v[to].kind != FABRIC_SWITCH ||
				f->node.v[to].level != from->level + step ||
				x->seen[to] == x->stamp)
				continue;
			x->seen[to] = x->stamp;
			e->list[n++] = to;
		}
	}
	e->from[f->node.n] = n;
}

/* Switches of the same level below the same spines. */
static void find_near(int node, struct places *x)
{
	for (int i = x->up.from[node]; i < x->up.from[node + 1]; i++) {
		int spine = x->up.list[i];
		for (int k = x->down.from[spine]; k < x->down.from[spine + 1]; k++) {
			if (x->near.used >= MAX_SIBLINGS)
				return;
			if (x->down.list[k] != node)
				add(&x->near, x->down.list[k]);
		}
	}
}

static void judge_adjacency(struct fabric_judge *j, int node, struct places *x)
{
	const struct fabric *f = j->f;
	int n = x->up.from[node + 1] - x->up.from[node], siblings = 0, own = ++x->stamp;
	char name[FABRIC_LABEL], other[FABRIC_LABEL];
	struct fb_finding o;
	for (int i = 0; i < n; i++)
		x->seen[x->up.list[x->up.from[node] + i]] = own;
	find_near(node, x);
	/* A switch is of the same group when it shares half of the spines. */
	for (int i = 0; i < x->near.used; i++) {
		const int *list = x->up.list + x->up.from[x->near.list[i]];
		int m = x->up.from[x->near.list[i] + 1] - x->up.from[x->near.list[i]], shared = 0;
		for (int a = 0; a < m; a++)
			shared += x->seen[list[a]] == own;
		if (shared * 2 < (m < n ? m : n))
			continue;
		siblings++;
		for (int a = 0; a < m; a++)
			if (x->seen[list[a]] != own)
				add(&x->far, list[a]);
	}
	for (int i = 0; i < x->far.used; i++) {
		int spine = x->far.list[i];
		if (x->far.n[spine] * 2 <= siblings)
			continue;
		fabric_start(j, FAB_ADJACENCY, &o, "%s", fabric_label(f, node, name));
		fb_find(&o, FB_CHECK_WARN, "no cable to %s", fabric_label(f, spine, other));
		fb_find_expected(&o, "the switches that share its other spines",
			"a cable, as %d of %d have", x->far.n[spine], siblings);
		fabric_keep(j, FAB_ADJACENCY, &o);
	}
	clear(&x->near);
	clear(&x->far);
}

static void judge_adjacencies(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct places x = {.stamp = 0};
	int **const all[] = {&x.near.n, &x.near.list, &x.far.n, &x.far.list, &x.seen, &x.up.from,
		&x.down.from, &x.up.list, &x.down.list};
	const size_t count = sizeof(all) / sizeof(all[0]);
	for (size_t i = 0; i < count; i++) {
		/* The two lists have an element for each port at most, the others for each node. */
		*all[i] = calloc((i < count - 2 ? f->node.n : f->port.n) + 1, sizeof(int));
		j->failed = j->failed || !*all[i];
	}
	if (!j->failed) {
		find_edges(f, &x.up, 1, &x);
		find_edges(f, &x.down, -1, &x);
	}
	for (size_t i = 0; i < f->node.n && !j->failed; i++)
		if (x.up.from[i] < x.up.from[i + 1])
			judge_adjacency(j, (int)i, &x);
	for (size_t i = 0; i < count; i++)
		free(*all[i]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void sum_up(struct fabric_judge *j, const struct leaves *l)
{
	double least = 0, most = 0;
	int lo = 1 << 30, hi = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct leaf *leaf = &l->v[i];
		lo = leaf->w.up < lo ? leaf->w.up : lo;
		hi = leaf->w.up > hi ? leaf->w.up : hi;
		if (leaf->w.up && (least == 0 || leaf->blocking < least))
			least = leaf->blocking;
		most = leaf->blocking > most ? leaf->blocking : most;
	}
	if (hi == 0) {
		static const enum fabric_check all[] = {
			FAB_UPLINKS, FAB_PARALLEL, FAB_ADJACENCY, FAB_BLOCKING};
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			fabric_sum(j, all[i], FB_CHECK_SKIP, "no switch stands above the leaves");
		return;
	}
	if (!j->rows[FAB_UPLINKS])
		fabric_sum(j, FAB_UPLINKS, FB_CHECK_PASS,
			lo == hi ? "%d each" : "%d to %d, by part", lo, hi);
	if (!j->rows[FAB_PARALLEL])
		fabric_sum(j, FAB_PARALLEL, FB_CHECK_PASS, "even over each leaf's spines");
	if (!j->rows[FAB_ADJACENCY])
		fabric_sum(j, FAB_ADJACENCY, FB_CHECK_PASS,
			"%d levels of switches, no cable missing", j->f->levels);
	if (!j->rows[FAB_BLOCKING])
		fabric_sum(j, FAB_BLOCKING, FB_CHECK_PASS,
			most - least < 1e-9 ? "%.3g:1 on every leaf" : "%.3g:1 to %.3g:1", least,
			most);
}

void fabric_judge_leaves(struct fabric_judge *j)
{
	struct leaves l = {.n = 0};
	double *v = calloc(j->f->node.n + 1, sizeof(*v));
	j->failed = !find_leaves(j->f, &l) || !v;
	for (size_t from = 0, to; !j->failed && from < l.n; from = to) {
		to = part_end(&l, from);
		judge_uplinks(j, &l, v, from, to);
		judge_blocking(j, &l, v, from, to);
	}
	for (size_t i = 0; !j->failed && i < l.n; i++)
		judge_parallel(j, &l.v[i]);
	judge_adjacencies(j);
	if (!j->failed)
		sum_up(j, &l);
	free(l.v);
	free(v);
}
