// SPDX-License-Identifier: Apache-2.0
/*
 * What the shape itself misses. Machines of several GPUs are built of like parts: switches of one
 * make that hold as many GPUs and NICs each. A part with fewer than most of its like is where
 * something is missing, without anybody having said how many there should be. It can be wrong of a
 * machine that was built uneven: it never fails, it warns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/node_priv.h"

#define MAX_CHAIN 80

/* What is below one port of the root. */
struct part {
	int top;       /* pci index */
	uint64_t make; /* of the switch below and its number of ports; 0: no switch */
	unsigned gpus, nics;
};

/* Maker, model and ports of the switch right below a root port. */
static uint64_t switch_make(const struct topo *t, int top)
{
	for (size_t i = 0; i < t->n_pci; i++) {
		const struct topo_pci *p = &t->pci[i];
		unsigned ports = 0;
		if (p->parent != top || !p->bridge)
			continue;
		for (size_t k = 0; k < t->n_pci; k++)
			ports += t->pci[k].parent == (int)i && t->pci[k].bridge;
		if (ports)
			return (uint64_t)p->vendor << 32 | (uint64_t)p->device << 16 | ports;
	}
	return 0;
}

static size_t find_parts(const struct node *n, struct part *parts)
{
	const struct topo *t = n->t;
	size_t k = 0;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		int chain[MAX_CHAIN];
		size_t depth = d->pci >= 0 ? node_chain(t, d->pci, chain, MAX_CHAIN) : 0, j;
		if (depth < 2 || (d->gpu < 0 && d->role != NODE_ROLE_COMPUTE))
			continue;
		int top = chain[depth - 1];
		for (j = 0; j < k && parts[j].top != top; j++)
			;
		if (j == k)
			parts[k++] = (struct part){.top = top, .make = switch_make(t, top)};
		parts[j].gpus += d->gpu >= 0;
		parts[j].nics += d->gpu < 0;
	}
	return k;
}

static unsigned held(const struct part *p, bool gpus)
{
	return gpus ? p->gpus : p->nics;
}

/* What most parts of one make hold; of as many for each, the larger. *like: how many hold it */
static unsigned usual(
	const struct part *parts, size_t n, uint64_t make, bool gpus, unsigned *like, unsigned *all)
{
	unsigned best = 0;
	*like = *all = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned same = 0;
		if (parts[i].make != make)
			continue;
		(*all)++;
		for (size_t k = 0; k < n; k++)
			same += parts[k].make == make &&
				held(&parts[k], gpus) == held(&parts[i], gpus);
		if (same > *like || (same == *like && held(&parts[i], gpus) > best)) {
			*like = same;
			best = held(&parts[i], gpus);
		}
	}
	return best;
}

static bool by_parts(
	const struct node *n, const struct part *parts, size_t k, bool gpus, char *buf, size_t len)
{
	const struct topo *t = n->t;
	for (size_t i = 0; i < k; i++) {
		unsigned like, all, most;
		if (!parts[i].make)
			continue;
		most = usual(parts, k, parts[i].make, gpus, &like, &all);
		/* Half and half (of two: one) is a design, unless they differ by one. */
		bool lone = like == 1 && all == 2 && most == held(&parts[i], gpus) + 1 && most > 1;
		if (held(&parts[i], gpus) >= most || (2 * like <= all && !lone))
			continue;
		snprintf(buf, len, "%u %s below %s, where %u other%s of the same switch %s %u",
			held(&parts[i], gpus), gpus ? "GPUs" : "compute NICs",
			t->pci[parts[i].top].bdf, like, like == 1 ? "" : "s",
			like == 1 ? "has" : "have", most);
		return true;
	}
	return false;
}

/* An odd number of five and more, uneven over NUMA nodes: 4 and 3. */
static bool by_nodes(const struct node *n, bool gpus, char *buf, size_t len)
{
	const struct topo *t = n->t;
	unsigned total = 0, least = ~0u, most = 0, with = 0;
	int where = -1;
	for (size_t i = 0; i < t->n_numa; i++) {
		unsigned k = 0;
		for (size_t j = 0; j < n->n_dev; j++) {
			const struct node_dev *d = &n->dev[j];
			k += (gpus ? d->gpu >= 0 : d->role == NODE_ROLE_COMPUTE) && d->pci >= 0 &&
			     t->pci[d->pci].numa == t->numa[i].os_index;
		}
		total += k;
		most = k > most ? k : most;
		with += k > 0;
		if (k > 0 && k < least) {
			least = k;
			where = t->numa[i].os_index;
		}
	}
	if (total >= 5 && total % 2 == 1 && with >= 2 && most == least + 1) {
		snprintf(buf, len, "%u on NUMA node %d, %u on others", least, where, most);
		return true;
	}
	return false;
}

bool node_asymmetry(const struct node *n, bool gpus, char *buf, size_t len)
{
	struct part *parts = calloc(n->n_dev + 1, sizeof(*parts));
	size_t k = parts ? find_parts(n, parts) : 0, nics = node_count_role(n, NODE_ROLE_COMPUTE);
	bool found = k > 0 && by_parts(n, parts, k, gpus, buf, len);
	free(parts);
	if (!found)
		found = by_nodes(n, gpus, buf, len);
	size_t own = gpus ? n->t->n_gpus : nics, other = gpus ? nics : n->t->n_gpus;
	if (!found && other >= 4 && other % 2 == 0 && own + 1 == other) {
		snprintf(buf, len, "%zu of the other kind: one for each, but for one", other);
		found = true;
	}
	return found;
}
