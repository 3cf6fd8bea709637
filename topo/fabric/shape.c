// SPDX-License-Identifier: Apache-2.0
/*
 * What a fabric is made of, once it is read: kinds, cables, connected parts, hosts and the levels
 * of its switches. Hosts are named by descriptions such as "node3 mlx5_1", but only where no two
 * HCAs claim the same place: else, and where the description is the maker's, each HCA is a host of
 * its own, known by its GUID.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

/* A host with more HCAs than any has is several hosts of one name. */
#define MAX_HCAS 64

static void find_kinds(struct fabric *f)
{
	for (size_t i = 0; i < f->node.n; i++) {
		struct fabric_node *n = &f->node.v[i];
		if (n->kind == FABRIC_UNKNOWN)
			n->kind = n->first >= 0 && f->port.v[n->first].next >= 0 ? FABRIC_SWITCH
										 : FABRIC_CA;
		n->factory = fabric_factory_name(n->name) && !n->by_id;
		n->aggregation = n->kind == FABRIC_CA && strstr(n->name, "Aggregation Node");
	}
}

static int find_shared_names(struct fabric *f)
{
	struct fabric_map seen = {0};
	int rc = 0;
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		struct fabric_node *n = &f->node.v[i];
		/* Ports of one HCA are told apart by their numbers, where each is a node. */
		unsigned num = f->port_nodes && n->kind == FABRIC_CA && n->first >= 0
				       ? f->port.v[n->first].num
				       : 0;
		uint64_t key = fabric_hash(n->name, strlen(n->name), n->kind | num << 8);
		int other = fabric_map_get(&seen, key);
		if (!n->name[0])
			continue;
		if (other >= 0 && strcmp(f->node.v[other].name, n->name) == 0)
			f->node.v[other].shared_name = n->shared_name = true;
		else if (other < 0)
			rc = fabric_map_set(&seen, key, (int32_t)i);
	}
	fabric_map_free(&seen);
	return rc;
}

static int find_lids(struct fabric *f)
{
	int rc = 0;
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		const struct fabric_node *n = &f->node.v[i];
		if (n->kind == FABRIC_SWITCH) {
			rc = n->lid ? fabric_map_set(&f->by_lid, n->lid, (int32_t)i) : 0;
			continue;
		}
		FABRIC_PORTS (f, i, p)
			if (f->port.v[p].lid && rc == 0)
				rc = fabric_map_set(&f->by_lid, f->port.v[p].lid, (int32_t)i);
	}
	return rc;
}

int fabric_find_links(struct fabric *f)
{
	for (size_t i = 0; i < f->port.n; i++) {
		const struct fabric_port *p = &f->port.v[i];
		if (p->peer < 0 || (size_t)p->peer < i)
			continue;
		struct fabric_link *l = FABRIC_ADD(f->link);
		if (!l)
			return -ENOMEM;
		bool sw = f->node.v[p->node].kind == FABRIC_SWITCH;
		l->a = sw ? (int32_t)i : p->peer;
		l->b = sw ? p->peer : (int32_t)i;
	}
	return 0;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool is_hca_port(const struct fabric *f, int port)
{
	const struct fabric_port *p = &f->port.v[port];
	return f->node.v[p->node].kind == FABRIC_CA && !f->node.v[p->node].aggregation &&
	       p->peer >= 0 && f->node.v[f->port.v[p->peer].node].kind == FABRIC_SWITCH;
}

static int new_host(struct fabric *f, const char *name)
{
	struct fabric_host *h = FABRIC_ADD(f->host);
	if (!h)
		return -ENOMEM;
	snprintf(h->name, sizeof(h->name), "%s", name);
	return (int)f->host.n - 1;
}

/* Two nodes that claim to be the same HCA of the same host are none of them it. */
static int find_claims(struct fabric *f)
{
	struct fabric_map claims = {0};
	char host[FABRIC_NAME], hca[40];
	int rc = 0;
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		struct fabric_node *n = &f->node.v[i];
		if (n->kind != FABRIC_CA || !fabric_split_name(n->name, host, hca, sizeof(hca)))
			continue;
		uint64_t key = fabric_hash(hca, strlen(hca), fabric_hash(host, strlen(host), 0));
		int other = fabric_map_get(&claims, key);
		if (other < 0) {
			rc = fabric_map_set(&claims, key, (int32_t)i);
			continue;
		}
		/* -p tells each port of an HCA as a node: two ports of one are no contradiction. */
		FABRIC_PORTS (f, other, p)
			FABRIC_PORTS (f, i, q)
				if (f->port.v[p].num == f->port.v[q].num)
					n->ambiguous = f->node.v[other].ambiguous = true;
	}
	fabric_map_free(&claims);
	return rc;
}

static int name_host(struct fabric *f, struct fabric_map *names, int node)
{
	struct fabric_node *n = &f->node.v[node];
	char host[FABRIC_NAME], hca[40], label[FABRIC_LABEL];
	if (n->ambiguous || !fabric_split_name(n->name, host, hca, sizeof(hca))) {
		/* HCAs on one board share a system GUID. */
		uint64_t key = n->sys_guid ? n->sys_guid : 0;
		int i = key ? fabric_map_get(names, key) : -1;
		if (i >= 0)
			return i;
		i = new_host(f, n->factory ? "" : n->name);
		if (i >= 0 && !f->host.v[i].name[0])
			snprintf(f->host.v[i].name, FABRIC_NAME, "%.64s",
				fabric_label(f, node, label));
		return i >= 0 && key && fabric_map_set(names, key, i) < 0 ? -ENOMEM : i;
	}
	uint64_t key = fabric_hash(host, strlen(host), 2);
	int i = fabric_map_get(names, key);
	if (i >= 0)
		return i;
	i = new_host(f, host);
	return i >= 0 && fabric_map_set(names, key, i) < 0 ? -ENOMEM : i;
}

static int add_hcas(struct fabric *f)
{
	for (size_t i = 0; i < f->port.n; i++) {
		if (!is_hca_port(f, (int)i))
			continue;
		struct fabric_hca *h = FABRIC_ADD(f->hca);
		if (!h)
			return -ENOMEM;
		int node = f->port.v[i].node;
		*h = (struct fabric_hca){.port = (int32_t)i,
			.node = node,
			.host = f->node.v[node].host,
			.leaf = f->port.v[f->port.v[i].peer].node,
			.rail = -1,
			.target = -1};
	}
	return 0;
}

/* By host: a counting sort, in the file's order within a host. */
static int sort_hcas(struct fabric *f)
{
	struct fabric_hca *sorted = malloc((f->hca.n + 1) * sizeof(*sorted));
	int32_t at = 0;
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < f->hca.n; i++)
		f->host.v[f->hca.v[i].host].n++;
	for (size_t i = 0; i < f->host.n; i++) {
		f->host.v[i].first = at;
		at += f->host.v[i].n;
		f->host.v[i].n = 0;
	}
	for (size_t i = 0; i < f->hca.n; i++) {
		struct fabric_host *h = &f->host.v[f->hca.v[i].host];
		int32_t to = h->first + h->n++;
		sorted[to] = f->hca.v[i];
		f->port.v[sorted[to].port].hca = to;
	}
	free(f->hca.v);
	f->hca.v = sorted;
	f->hca.cap = f->hca.n + 1;
	return 0;
}

int fabric_find_hosts(struct fabric *f)
{
	struct fabric_map names = {0};
	int rc = find_claims(f);
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		struct fabric_node *n = &f->node.v[i];
		bool joined = false;
		FABRIC_PORTS (f, i, p)
			joined = joined || is_hca_port(f, p);
		if (!joined)
			continue;
		int host = name_host(f, &names, (int)i);
		rc = host < 0 ? host : 0;
		n->host = host;
		/* Beyond what a host can hold the name is no host's. */
		if (rc == 0 && ++f->host.v[host].n > MAX_HCAS) {
			n->ambiguous = true;
			n->host = new_host(f, n->name);
			rc = n->host < 0 ? n->host : 0;
		}
	}
	for (size_t i = 0; i < f->host.n; i++)
		f->host.v[i].n = 0;
	fabric_map_free(&names);
	if (rc == 0)
		rc = add_hcas(f);
	return rc == 0 ? sort_hcas(f) : rc;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static int hosts_on(const struct fabric *f, int node)
{
	int n = 0;
	FABRIC_PORTS (f, node, p)
		n += f->port.v[p].peer >= 0 && f->port.v[f->port.v[p].peer].hca >= 0;
	return n;
}

static int by_size(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}

/* A switch with far fewer hosts than the others, most of whose cables go to switches with hosts, is
 * a spine that serves a subnet manager or a storage head. */
static bool serves_few(const struct fabric *f, int node, const int *hosts, int median)
{
	int with = 0, switches = 0;
	if (hosts[node] > median / 8)
		return false;
	FABRIC_PORTS (f, node, p) {
		int peer = f->port.v[p].peer;
		if (peer < 0 || f->node.v[f->port.v[peer].node].kind != FABRIC_SWITCH)
			continue;
		switches++;
		with += hosts[f->port.v[peer].node] > median / 8;
	}
	return switches > 0 && with * 2 > switches;
}

int fabric_find_levels(struct fabric *f)
{
	int *hosts = calloc(f->node.n + 1, sizeof(*hosts));
	int *queue = calloc(f->node.n + 1, sizeof(*queue));
	size_t head = 0, tail = 0, n = 0;
	int median = 0, rc = hosts && queue ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->node.n && rc == 0; i++) {
		hosts[i] = f->node.v[i].kind == FABRIC_SWITCH ? hosts_on(f, (int)i) : 0;
		if (hosts[i])
			queue[n++] = hosts[i];
	}
	if (n > 0) {
		qsort(queue, n, sizeof(*queue), by_size);
		median = queue[n / 2];
	}
	for (size_t i = 0; i < f->node.n && rc == 0; i++)
		if (hosts[i] && !serves_few(f, (int)i, hosts, median)) {
			f->node.v[i].level = 1;
			queue[tail++] = (int)i;
		}
	while (rc == 0 && head < tail) {
		int at = queue[head++];
		FABRIC_PORTS (f, at, p) {
			int peer = f->port.v[p].peer;
			struct fabric_node *n2 = peer < 0 ? NULL : &f->node.v[f->port.v[peer].node];
			if (!n2 || n2->kind != FABRIC_SWITCH || n2->level)
				continue;
			n2->level = f->node.v[at].level + 1;
			queue[tail++] = f->port.v[peer].node;
		}
		if (f->node.v[at].level > f->levels)
			f->levels = f->node.v[at].level;
	}
	free(hosts);
	free(queue);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int find_parts(struct fabric *f)
{
	int *queue = malloc((f->node.n + 1) * sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < f->node.n; i++) {
		size_t head = 0, tail = 0;
		bool joined = false;
		if (f->node.v[i].part)
			continue;
		queue[tail++] = (int)i;
		f->node.v[i].part = f->parts + 1;
		while (head < tail) {
			int at = queue[head++];
			FABRIC_PORTS (f, at, p) {
				int peer = f->port.v[p].peer;
				if (peer < 0)
					continue;
				joined = true;
				struct fabric_node *n = &f->node.v[f->port.v[peer].node];
				if (!n->part)
					queue[tail++] = f->port.v[peer].node;
				n->part = f->parts + 1;
			}
		}
		f->parts += joined;
		if (!joined)
			f->node.v[i].part = 0;
	}
	free(queue);
	return 0;
}

int fabric_finish(struct fabric *f, const char *name, struct fb_err *e)
{
	static int (*const steps[])(struct fabric *) = {fabric_find_links, find_shared_names,
		find_lids, find_parts, fabric_find_hosts, fabric_find_levels, fabric_find_rails};
	int rc = 0;
	find_kinds(f);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](f);
	if (rc < 0)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the fabric of %s", name);
	if (f->link.n > 0)
		return 0;
	if (f->bare)
		fb_fail_usage(e,
			"%s: no cable: %u HCA%s no port line, so there is nothing to judge", name,
			f->bare, f->bare == 1 ? " has" : "s have");
	else
		fb_fail_usage(
			e, "%s: no cable between two ports, so there is nothing to judge", name);
	fb_hint(e,
		"was the file cut off? On a host whose port is down only the host itself is seen: "
		"ibstat tells the state");
	return -EINVAL;
}
