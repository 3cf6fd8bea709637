// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs judge, over all rails: rails against each other, each host's account, the verdict and
 * the ranking. The rules stand in pairs_judge.h.
 */
#include "verbs/pairs_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Rails against each other: worse than their median (of two: than the better) by the floor and z.
 */
void pairs_compare_rails(struct judge *g)
{
	struct pairs_judgement *j = g->j;
	double *v = calloc((size_t)j->rails + 1, sizeof *v);
	size_t n = 0;

	if (!v)
		return; /* a warning less; the verdict does not depend on it */
	for (uint32_t r = 0; r < j->rails; r++)
		if (j->rail[r].judged)
			v[n++] =
				g->o->lower_better ? -log(j->rail[r].level) : log(j->rail[r].level);
	double ref = n == 2 ? fmax(v[0], v[1]) : pairs_median(v, n);
	for (uint32_t r = 0; r < j->rails && n > 1; r++) {
		struct pairs_rail *x = &j->rail[r];
		if (!x->judged)
			continue;
		double d = (g->o->lower_better ? -log(x->level) : log(x->level)) - ref;
		double se = 1.2533 * log1p(x->sigma) / sqrt((double)x->links); /* of a median */
		x->off_level = d <= -g->w.floor && d <= -g->o->z * se;
	}
	free(v);
}

/* Which hosts were measured at all, into host[].state. */
static void mark_measured(struct judge *g)
{
	for (uint32_t i = 0; i < g->j->hosts; i++)
		g->j->host[i] = (struct pairs_host){PAIRS_NOT_RUN, PAIRS_NODE_GOOD};
	for (size_t k = 0; k < g->links; k++)
		if (g->link[k].n_round + g->link[k].n_conf) {
			g->j->host[g->link[k].a].state = PAIRS_MEASURED;
			g->j->host[g->link[k].b].state = PAIRS_MEASURED;
		}
}

/* What a link that missed says of its unmeasured end i: witness counts partners measured elsewhere.
 */
static void blame(struct judge *g, const struct link_acc *l, uint32_t i, uint32_t *witness)
{
	const struct pairs_host *host = g->j->host;

	if (host[i].state == PAIRS_MEASURED || l->miss_round + l->miss_conf == 0)
		return;
	if (g->j->host[i].state == PAIRS_NOT_RUN)
		g->j->host[i].state = PAIRS_FAILED;
	if (host[pairs_other(l, i)].state == PAIRS_MEASURED)
		witness[i] += l->unreach ? 2 : 1;
}

int pairs_count_hosts(struct judge *g)
{
	struct pairs_judgement *j = g->j;
	/* A link counts once for a rail; two rails with one partner are not two partners, so count
	 * on one rail at a time and keep the most. */
	uint32_t *witness = calloc(j->hosts, sizeof *witness),
		 *most = calloc(j->hosts, sizeof *most);
	int rc = -ENOMEM;

	if (!witness || !most)
		goto free_all;
	mark_measured(g);
	for (size_t k = 0; k < g->links; k++) {
		const struct link_acc *l = &g->link[k];
		blame(g, l, l->a, witness);
		blame(g, l, l->b, witness);
		if (k + 1 < g->links && g->link[k + 1].rail == l->rail)
			continue;
		for (uint32_t i = 0; i < j->hosts; i++) {
			most[i] = witness[i] > most[i] ? witness[i] : most[i];
			witness[i] = 0;
		}
	}
	j->account = (struct pairs_account){.expected = j->hosts};
	for (uint32_t i = 0; i < j->hosts; i++) {
		struct pairs_host *h = &j->host[i];
		bool absent = g->in->absent && g->in->absent[i];
		if (h->state != PAIRS_MEASURED && (absent || most[i] >= 2))
			h->state = PAIRS_UNREACHABLE;
		for (uint32_t r = 0; r < j->rails; r++)
			if (j->node[(size_t)r * j->hosts + i].state > h->worst)
				h->worst = j->node[(size_t)r * j->hosts + i].state;
		j->account.measured += h->state == PAIRS_MEASURED;
		j->account.failed += h->state == PAIRS_FAILED;
		j->account.unreachable += h->state == PAIRS_UNREACHABLE;
		j->account.not_run += h->state == PAIRS_NOT_RUN;
	}
	rc = 0;
free_all:
	free(witness);
	free(most);
	return rc;
}

enum pairs_verdict pairs_reach_verdict(const struct judge *g)
{
	const struct pairs_judgement *j = g->j;
	enum pairs_verdict v = PAIRS_UNJUDGED;

	for (uint32_t r = 0; r < j->rails; r++)
		if (j->rail[r].judged)
			v = PAIRS_FINE;
	if (j->tasks || j->account.measured < j->account.expected)
		v = PAIRS_INCOMPLETE;
	for (size_t k = 0; k < j->links; k++)
		if (j->link[k].state == PAIRS_LINK_SUSPECT)
			v = PAIRS_INCOMPLETE;
	for (size_t k = 0; k < (size_t)j->rails * j->hosts; k++) {
		enum pairs_node_state s = j->node[k].state;
		if (s == PAIRS_NODE_SUSPECT || s == PAIRS_NODE_DEAD || s == PAIRS_NODE_NOT_RUN)
			v = PAIRS_INCOMPLETE;
	}
	for (size_t k = 0; k < j->links; k++)
		if (j->link[k].state >= PAIRS_LINK_FAILED)
			return PAIRS_REJECTED;
	for (size_t k = 0; k < (size_t)j->rails * j->hosts; k++) {
		const struct pairs_node *n = &j->node[k];
		/* A rail that two good partners could not reach, on a host that lives. */
		bool dead_rail = n->state == PAIRS_NODE_DEAD && n->tried >= 2 &&
				 j->host[k % j->hosts].state == PAIRS_MEASURED;
		if (n->state >= PAIRS_NODE_FAILING || dead_rail)
			return PAIRS_REJECTED;
	}
	return v;
}

static int cmp_rank(const void *pa, const void *pb, void *arg)
{
	const struct pairs_node *node = arg;
	uint32_t x = *(const uint32_t *)pa, y = *(const uint32_t *)pb;
	const struct pairs_node *a = &node[x], *b = &node[y];
	double za = isnan(a->z) ? 0 : a->z, zb = isnan(b->z) ? 0 : b->z;

	if (a->state != b->state)
		return a->state > b->state ? -1 : 1;
	if (za != zb)
		return za < zb ? -1 : 1;
	return x < y ? -1 : 1;
}

void pairs_rank(struct pairs_judgement *j)
{
	for (uint32_t k = 0; k < j->rails * j->hosts; k++)
		j->ranking[k] = k;
	qsort_r(j->ranking, (size_t)j->rails * j->hosts, sizeof *j->ranking, cmp_rank, j->node);
}
