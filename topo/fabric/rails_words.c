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

#define MAX_TIED 64 /* HCAs of a host that is tied */

/* ---- ties ------------------------------------------------------------------------------------ */

/* Does o have each HCA of h where it is told to go, and may stay so? */
static bool has_all(
	const struct fabric *f, const struct fabric_host *h, const struct fabric_host *o)
{
	int found = 0;
	for (int k = o->first; k < o->first + o->n; k++)
		if (f->hca.v[k].target >= 0 && f->hca.v[k].target != f->hca.v[k].leaf)
			return false;
	for (int i = h->first; i < h->first + h->n; i++)
		for (int k = o->first; k < o->first + o->n; k++)
			found += f->hca.v[k].rail == f->hca.v[i].rail &&
				 f->hca.v[k].leaf == f->hca.v[i].target;
	return found >= h->n;
}

/* Is there any host whose HCAs are where those of h are told to go? */
static bool is_usual(const struct fabric *f, const struct fabric_host *h)
{
	const struct fabric_hca *c = &f->hca.v[h->first];
	FABRIC_PORTS (f, c->target, p) {
		int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
		if (k >= 0 && f->hca.v[k].rail == c->rail &&
			has_all(f, h, &f->host.v[f->hca.v[k].host]))
			return true;
	}
	return false;
}

/* Each of its HCAs is told to go elsewhere, and no host is cabled as this one would be then: either
 * half may be the wrong one, as when two hosts of two rails have each other's cable. */
static bool is_tied(const struct fabric *f, const struct fabric_host *h)
{
	if (h->n < 2)
		return false;
	for (int i = h->first; i < h->first + h->n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (c->target < 0 || c->target == c->leaf)
			return false;
	}
	return !is_usual(f, h);
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

/* Is an HCA of this rail of host o where c is, and all of its own in place? */
static bool witness(const struct fabric *f, const struct fabric_hca *c, const struct fabric_host *o)
{
	bool found = false;
	for (int i = o->first; i < o->first + o->n; i++) {
		const struct fabric_hca *d = &f->hca.v[i];
		if (d->target >= 0 && d->target != d->leaf)
			return false;
		found = found || (d->rail == c->rail && d->leaf == c->leaf);
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

/* What speaks for each HCA's place has been counted: those of which most is said stay. */
static void settle(struct fabric *f, const struct fabric_host *h, const int *says)
{
	int most = 0, right = 0;
	for (int i = 0; i < h->n && i < MAX_TIED; i++)
		most = says[i] > most ? says[i] : most;
	for (int i = 0; i < h->n && i < MAX_TIED; i++)
		right += says[i] * 2 > most;
	/* All or none: it tells no more than the votes. */
	if (right == 0 || right >= h->n)
		return;
	for (int i = 0; i < h->n && i < MAX_TIED; i++)
		if (says[i] * 2 > most)
			f->hca.v[h->first + i].target = f->hca.v[h->first + i].leaf;
}

/* Hosts are numbered as they are racked: the nearest by name say which half is in place. */
static void ask_neighbours(struct fabric *f, const struct fabric_host *h,
	const struct named_host *v, size_t n, size_t at)
{
	int says[MAX_TIED] = {0};
	size_t from = at > 2 ? at - 2 : 0, to = at + 3 < n ? at + 3 : n;
	for (int i = 0; i < h->n && i < MAX_TIED; i++)
		for (size_t k = from; k < to; k++)
			if (k != at && witness(f, &f->hca.v[h->first + i], &f->host.v[v[k].host]))
				says[i] += nearness(h->name, v[k].name);
	settle(f, h, says);
}

/* An HCA of another host, of which it is known, that has this one's place and left it its own: they
 * were swapped, and what has no such partner may stay. */
static void ask_partners(struct fabric *f, const struct fabric_host *h)
{
	int says[MAX_TIED] = {0};
	for (int i = 0; i < h->n && i < MAX_TIED; i++) {
		const struct fabric_hca *c = &f->hca.v[h->first + i];
		says[i] = 1;
		FABRIC_PORTS (f, c->target, p) {
			int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
			if (k >= 0 && f->hca.v[k].target == c->leaf &&
				!is_tied(f, &f->host.v[f->hca.v[k].host]))
				says[i] = 0;
		}
	}
	settle(f, h, says);
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
			ask_neighbours(f, &f->host.v[v[i].host], v, f->host.n, i);
	for (size_t i = 0; i < f->host.n; i++)
		if (is_tied(f, &f->host.v[i]))
			ask_partners(f, &f->host.v[i]);
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
