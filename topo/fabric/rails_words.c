// SPDX-License-Identifier: Apache-2.0
/*
 * After the votes on rails: hosts of which half the HCAs are in one group of leaves and half in
 * another, and what a leaf's rails are called.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* ---- ties ------------------------------------------------------------------------------------ */

/* Each of its HCAs is told to go where the others are not: either half may be the wrong one, as
 * when two hosts of two rails have each other's cable. */
static bool is_tied(const struct fabric *f, const struct fabric_host *h)
{
	if (h->n < 2)
		return false;
	for (int i = h->first; i < h->first + h->n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (c->target < 0 || c->target == c->leaf)
			return false;
		for (int k = h->first; k < h->first + h->n; k++)
			if (f->hca.v[k].leaf == c->target)
				return false;
	}
	return true;
}

struct named_host {
	const char *name;
	int host;
};

static int by_host_name(const void *a, const void *b)
{
	return fabric_natural(
		((const struct named_host *)a)->name, ((const struct named_host *)b)->name);
}

/* Is an HCA of this rail of host o where c is? @return 1, -1 elsewhere, 0 it has none, or o is no
 * witness: not all of its own are in place */
static int witness(const struct fabric *f, const struct fabric_hca *c, const struct fabric_host *o)
{
	int found = 0;
	for (int i = o->first; i < o->first + o->n; i++) {
		const struct fabric_hca *d = &f->hca.v[i];
		if (d->target >= 0 && d->target != d->leaf)
			return 0;
		if (d->rail == c->rail)
			found = d->leaf == c->leaf ? 1 : -1;
	}
	return found;
}

/* How much a host's word counts: "node12" is nearer to "node13" than "node100" is. */
static int nearness(const char *a, const char *b)
{
	size_t n = 0;
	char *end_a, *end_b;
	while (a[n] && a[n] == b[n])
		n++;
	while (n > 0 && isdigit((unsigned char)a[n - 1]))
		n--;
	if (!isdigit((unsigned char)a[n]) || !isdigit((unsigned char)b[n]))
		return 1;
	long x = strtol(a + n, &end_a, 10), y = strtol(b + n, &end_b, 10), d = labs(x - y);
	return strcmp(end_a, end_b) == 0 && d < 1000 ? (int)(1000 / (1 + d)) + 1 : 1;
}

/* Hosts are numbered as they are racked: the nearest by name say which half is in place. */
static void break_tie(struct fabric *f, const struct fabric_host *h, const struct named_host *v,
	size_t n, size_t at)
{
	int says[64] = {0}, right = 0;
	size_t from = at > 2 ? at - 2 : 0, to = at + 3 < n ? at + 3 : n;
	for (int i = 0; i < h->n && i < 64; i++) {
		for (size_t k = from; k < to; k++)
			if (k != at)
				says[i] +=
					nearness(h->name, v[k].name) *
					witness(f, &f->hca.v[h->first + i], &f->host.v[v[k].host]);
		right += says[i] > 0;
	}
	/* All or none: they know no better. */
	if (right == 0 || right >= h->n)
		return;
	for (int i = 0; i < h->n && i < 64; i++)
		if (says[i] > 0)
			f->hca.v[h->first + i].target = f->hca.v[h->first + i].leaf;
}

int fabric_break_ties(struct fabric *f)
{
	struct named_host *v = NULL;
	bool any = false;
	for (size_t i = 0; i < f->host.n && !any; i++)
		any = is_tied(f, &f->host.v[i]);
	if (!any)
		return 0;
	v = malloc(f->host.n * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < f->host.n; i++)
		v[i] = (struct named_host){f->host.v[i].name, (int)i};
	qsort(v, f->host.n, sizeof(*v), by_host_name);
	for (size_t i = 0; i < f->host.n; i++)
		if (is_tied(f, &f->host.v[v[i].host]))
			break_tie(f, &f->host.v[v[i].host], v, f->host.n, i);
	free(v);
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

void fabric_leaf_rails(const struct fabric *f, int leaf, char *buf, size_t len)
{
	size_t n = 0;
	int shown = 0, more = 0, last = -1;
	buf[0] = '\0';
	/* In the order of names, each once: those that belong here by at least one vote. */
	for (;;) {
		int next = -1;
		FABRIC_PORTS (f, leaf, p) {
			int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
			if (k < 0 || f->hca.v[k].rail < 0 || f->hca.v[k].target != leaf)
				continue;
			int r = f->hca.v[k].rail;
			if (last >= 0 &&
				fabric_natural(f->rail.v[r].name, f->rail.v[last].name) <= 0)
				continue;
			if (next < 0 || fabric_natural(f->rail.v[r].name, f->rail.v[next].name) < 0)
				next = r;
		}
		if (next < 0)
			break;
		last = next;
		if (shown == 8 || n + 48 > len) {
			more++;
			if (more > 64)
				break;
			continue;
		}
		n += (size_t)snprintf(
			buf + n, len - n, "%s%s", shown ? ", " : "", f->rail.v[next].name);
		shown++;
	}
	if (more)
		snprintf(buf + n, len - n, ", ...");
}
