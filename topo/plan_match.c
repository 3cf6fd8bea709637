// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs to NICs at the least total cost: minimum-cost flow by successive shortest paths. A NIC's
 * capacity is a row of unit edges of rising cost, so that load is spread by the same arithmetic as
 * distance. Costs are integers, and ties go by index: the result is the same on every machine.
 */
#include <errno.h>
#include <stdlib.h>

#include "topo/plan.h"

/* One flow unit's worth of a tie: cost is scaled so that all ties together stay below one unit. */
#define SCALE ((int64_t)1 << 24)

struct edge {
	size_t to;
	int cap;
	int64_t cost;
};

/* Edge 2k runs forward, 2k+1 back; next[] and head[] are the lists of edges by node. */
struct net {
	struct edge *e;
	size_t *next, *head;
	size_t n_edges, n_nodes;
};

static void add_edge(struct net *f, size_t from, size_t to, int cap, int64_t cost)
{
	const struct edge pair[2] = {{to, cap, cost}, {from, 0, -cost}};

	for (int i = 0; i < 2; i++) {
		size_t at = i ? to : from;

		f->e[f->n_edges] = pair[i];
		f->next[f->n_edges] = f->head[at];
		f->head[at] = f->n_edges++;
	}
}

/** Shortest path from node 0 to node 1 in the residual net (Bellman-Ford with a queue: costs of
 * back edges are negative). via[] receives the edge into each node. @return false: none */
static bool shortest(const struct net *f, int64_t *dist, size_t *via, size_t *queue, bool *queued)
{
	size_t first = 0, len = 1;

	if (f->n_nodes < 2)
		return false;
	for (size_t i = 0; i < f->n_nodes; i++) {
		dist[i] = INT64_MAX;
		queued[i] = false;
	}
	dist[0] = 0;
	queue[0] = 0;
	while (len) {
		size_t at = queue[first];

		first = (first + 1) % f->n_nodes;
		len--;
		queued[at] = false;
		for (size_t k = f->head[at]; k != SIZE_MAX; k = f->next[k]) {
			const struct edge *e = &f->e[k];

			if (!e->cap || dist[at] + e->cost >= dist[e->to])
				continue;
			dist[e->to] = dist[at] + e->cost;
			via[e->to] = k;
			if (queued[e->to])
				continue;
			queued[e->to] = true;
			queue[(first + len++) % f->n_nodes] = e->to;
		}
	}
	return dist[1] != INT64_MAX;
}

/** Nodes: 0 source, 1 sink, then GPUs, then NICs. */
static void build(struct net *f, const int64_t *cost, size_t n_gpus, size_t n_nics, unsigned need,
	unsigned cap, int64_t load)
{
	for (size_t g = 0; g < n_gpus; g++) {
		add_edge(f, 0, 2 + g, (int)need, 0);
		for (size_t n = 0; n < n_nics; n++)
			/* Rearrangement: falling weights on rising indices pair low with low. */
			add_edge(f, 2 + g, 2 + n_gpus + n, 1,
				cost[g * n_nics + n] * SCALE + (int64_t)(n * (n_gpus - g)));
	}
	for (size_t n = 0; n < n_nics; n++)
		for (unsigned k = 0; k < cap; k++)
			add_edge(f, 2 + n_gpus + n, 1, 1, load * k * SCALE);
}

static void augment(struct net *f, const size_t *via)
{
	for (size_t at = 1; at != 0;) {
		size_t k = via[at];

		f->e[k].cap--;
		f->e[k ^ 1].cap++;
		at = f->e[k ^ 1].to;
	}
}

int topo_plan_match(const int64_t *cost, size_t n_gpus, size_t n_nics, unsigned need, unsigned cap,
	int64_t load, bool *match)
{
	size_t nodes = 2 + n_gpus + n_nics;
	size_t edges = 2 * (n_gpus + n_gpus * n_nics + n_nics * (cap ? cap : 1));
	struct net f = {.n_nodes = nodes};
	int64_t *dist = calloc(nodes, sizeof(*dist));
	size_t *via = calloc(nodes, sizeof(*via)), *queue = calloc(nodes, sizeof(*queue));
	bool *queued = calloc(nodes, sizeof(*queued));
	int rc = -ENOMEM;

	f.e = calloc(edges, sizeof(*f.e));
	f.next = calloc(edges, sizeof(*f.next));
	f.head = calloc(nodes, sizeof(*f.head));
	if (!dist || !via || !queue || !queued || !f.e || !f.next || !f.head)
		goto free_net;
	for (size_t i = 0; i < nodes; i++)
		f.head[i] = SIZE_MAX;
	build(&f, cost, n_gpus, n_nics, need, cap, load);
	while (shortest(&f, dist, via, queue, queued))
		augment(&f, via);
	for (size_t k = 0; k < f.n_edges; k += 2) {
		size_t g = f.e[k + 1].to, n = f.e[k].to;

		if (g >= 2 && g < 2 + n_gpus && n >= 2 + n_gpus)
			match[(g - 2) * n_nics + n - 2 - n_gpus] = !f.e[k].cap;
	}
	rc = 0;
free_net:
	free(dist);
	free(via);
	free(queue);
	free(queued);
	free(f.e);
	free(f.next);
	free(f.head);
	return rc;
}
