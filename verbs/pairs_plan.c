// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs judge, last part: who has to be measured again, with whom, in which round.
 * Deterministic; convicts nobody.
 */
#include "verbs/pairs_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A node's confirming partners, found so far. */
struct chosen {
	uint32_t group[2];
	uint32_t n;
};

static int cmp_ranked(const void *pa, const void *pb)
{
	const struct pairs_ranked *x = pa, *y = pb;
	if (x->e != y->e)
		return x->e < y->e ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

static int push(struct task_list *t, uint32_t rail, uint32_t x, uint32_t y, bool link)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct pairs_task *v = realloc(t->v, cap * sizeof *v);
		if (!v)
			return -ENOMEM;
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n++] = (struct pairs_task){0, rail, x < y ? x : y, x < y ? y : x, link};
	return 0;
}

/*
 * The good hosts that may confirm others, the most typical first, since a partner's own lack would
 * count against the suspect. Hosts that are under test themselves only where too few others are.
 */
static uint32_t partners(struct rail_work *w, const struct pairs_node *node)
{
	uint32_t n = 0;

	for (int idle = 1; idle >= 0 && n < 4; idle--) {
		n = 0;
		for (uint32_t i = 0; i < w->hosts; i++)
			if (node[i].state == PAIRS_NODE_GOOD && pairs_base_good(w, i) &&
				!(idle && w->want[i]))
				w->rank[n++] = (struct pairs_ranked){fabs(w->e[i]), i};
	}
	qsort(w->rank, n, sizeof *w->rank, cmp_ranked);
	return n;
}

static bool listed(const struct task_list *t, size_t from, uint32_t x, uint32_t y)
{
	uint32_t a = x < y ? x : y, b = x < y ? y : x;
	for (size_t k = from; k < t->n; k++)
		if (t->v[k].a == a && t->v[k].b == b)
			return true;
	return false;
}

static bool group_taken(const struct rail_work *w, const struct chosen *c, uint32_t g)
{
	for (uint32_t k = 0; w->group && k < c->n && k < 2; k++)
		if (c->group[k] == w->group[g])
			return true;
	return false;
}

/* What is asked of a partner falls with the pass: a link never used before, in a rack of its own,
 * among the more typical half of the good hosts or else among all; a link never used; any link. */
static const struct pass {
	bool half, rack, fresh;
} passes[] = {{true, true, true}, {false, true, true}, {true, false, true}, {false, false, false}};

/* May g confirm i? Never over a suspect link, or one that was tried in confirmation. */
static bool serves(const struct rail_work *w, const struct task_list *t, size_t from,
	const struct chosen *c, uint32_t i, uint32_t g, const struct pass *p)
{
	if (g == i)
		return false;
	const struct link_acc *l = pairs_find(w, i, g);
	if (l && (p->fresh || l->suspect || l->tries_conf))
		return false;
	if (p->rack && w->group && (w->group[g] == w->group[i] || group_taken(w, c, g)))
		return false;
	/* Only a host under test itself can have been listed with i. */
	return !(w->want[g] && listed(t, from, i, g));
}

/* Partners that i was already tried with in confirmation: their racks are taken. */
static struct chosen already(const struct rail_work *w, uint32_t i)
{
	struct chosen c = {{0, 0}, 0};
	for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
		const struct link_acc *l = &w->link[w->adj[k]];
		uint32_t g = pairs_other(l, i);
		if (l->tries_conf && pairs_base_good(w, g) && c.n < 2 && w->group)
			c.group[c.n++] = w->group[g];
	}
	return c;
}

/* The next partner for i, by the order of passes; pool when there is none. own: where i's tasks
 * begin. */
static uint32_t next_partner(const struct rail_work *w, const struct task_list *t, size_t from,
	size_t own, const struct chosen *c, uint32_t i, uint32_t pool, uint32_t cursor)
{
	for (size_t k = 0; k < sizeof passes / sizeof passes[0]; k++) {
		const struct pass *p = &passes[k];
		uint32_t n = p->half && pool > 16 ? pool / 2 : pool;
		for (uint32_t step = 0; step < n && !(p->rack && !w->group); step++) {
			uint32_t at = (cursor + step) % n, g = w->rank[at].i;
			if (serves(w, t, from, c, i, g, p) && !listed(t, own, i, g))
				return at;
		}
	}
	return pool;
}

static int plan_node(const struct rail_work *w, uint32_t i, uint32_t pool, uint32_t *cursor,
	size_t from, struct task_list *t)
{
	struct chosen c = already(w, i);
	size_t own = t->n;

	for (uint32_t need = w->want[i]; need > 0; need--) {
		uint32_t at = next_partner(w, t, from, own, &c, i, pool, *cursor);
		if (at == pool)
			return 0;
		/* The next search begins behind this one: partners take turns, and rounds stay few.
		 */
		*cursor = (at + 1) % pool;
		uint32_t g = w->rank[at].i;
		if (push(t, w->rail, i, g, false))
			return -ENOMEM;
		if (w->group && c.n < 2)
			c.group[c.n++] = w->group[g];
	}
	return 0;
}

int pairs_plan_rail(struct rail_work *w, const struct pairs_node *node,
	const struct pairs_link *link, size_t links, struct task_list *list)
{
	size_t from = list->n;
	uint32_t pool = partners(w, node), cursor = 0;

	for (size_t k = 0; k < links; k++) {
		const struct link_acc *l = pairs_find(w, link[k].a, link[k].b);
		uint32_t have = l->tries_conf, need = pairs_link_needs(w->o, l);
		/* One that never gave a value is only tried again. */
		if (l->n_round + l->n_conf == 0)
			need = w->o->repeats;
		/* With all of its launches it waits for its nodes. */
		for (; link[k].state == PAIRS_LINK_SUSPECT && have < need; have += w->o->repeats)
			if (push(list, w->rail, l->a, l->b, true))
				return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->hosts && pool; i++)
		if (w->want[i] && plan_node(w, i, pool, &cursor, from, list))
			return -ENOMEM;
	return 0;
}

static int cmp_task(const void *pa, const void *pb)
{
	const struct pairs_task *x = pa, *y = pb;

	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	if (x->rail != y->rail)
		return x->rail < y->rail ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* First fit: the first round, from 0 to 63, in which both hosts are free; then behind both. */
static uint32_t first_fit(uint64_t *busy, uint32_t *behind, uint32_t a, uint32_t b)
{
	uint64_t both = busy[a] | busy[b];
	uint32_t r;

	if (~both) {
		r = (uint32_t)__builtin_ctzll(~both);
		busy[a] |= UINT64_C(1) << r;
		busy[b] |= UINT64_C(1) << r;
		return r;
	}
	r = behind[a] > behind[b] ? behind[a] : behind[b];
	behind[a] = behind[b] = r + 1;
	return 64 + r;
}

int pairs_plan_rounds(struct task_list *list, uint32_t hosts, uint32_t repeats)
{
	size_t n = list->n;
	uint32_t rounds = 0;
	int rc = -ENOMEM;

	if (n == 0)
		return 0;
	uint64_t *busy = calloc(hosts, sizeof *busy);
	uint32_t *behind = calloc(hosts, sizeof *behind);
	struct pairs_task *v = calloc(n * repeats, sizeof *v);
	if (!busy || !behind || !v)
		goto free_all;
	for (size_t k = 0; k < n; k++) {
		struct pairs_task *t = &list->v[k];
		t->round = first_fit(busy, behind, t->a, t->b);
		if (t->round >= rounds)
			rounds = t->round + 1;
	}
	/* The whole plan again and again, not each pair: repeats lie as far apart as they can. */
	for (uint32_t rep = 0; rep < repeats; rep++)
		for (size_t k = 0; k < n; k++) {
			v[rep * n + k] = list->v[k];
			v[rep * n + k].round += rep * rounds;
		}
	n *= repeats;
	qsort(v, n, sizeof *v, cmp_task);
	free(list->v);
	*list = (struct task_list){v, n, n};
	v = NULL;
	rc = 0;
free_all:
	free(busy);
	free(behind);
	free(v);
	return rc;
}
