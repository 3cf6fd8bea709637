// SPDX-License-Identifier: Apache-2.0
/*
 * Rails: HCAs of one name (mlx5_0 of every host) belong on the same leaf, or on one leaf in each
 * group of hosts. Which leaf that is, the other hosts say: for HCA l of host h, every host that
 * shares leaves with h by other HCAs votes with the leaf of its own l, as many times as it shares.
 * So neither the rails' order, nor the number of groups need be known, and a fabric without rails
 * gives no majority. Hosts of another kind, such as storage among GPU hosts, have no say: a voter
 * has three quarters of the same HCAs, and a name of the same beginning where nearly all others
 * have another. Where no such host is, those with half of the HCAs are asked.
 *
 * The name is what the description calls the HCA. A PCI name (ibp12s0) counts by its order among
 * the host's, since machines number buses differently; HCAs without a name count by GUID in their
 * system GUID. Both only where the host has as many as most have: else a missing one would shift
 * all.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/fabric/fabric_priv.h"

/* Two votes are the fewest that can outvote one; without shared leaves two thirds are wanted. */
#define MIN_VOTERS 2
#define MAX_LEAVES 32  /* that may be voted for, of one HCA */
#define MAX_VOTERS 512 /* no group of hosts is larger; a hostile file must not cost its square */

/* ---- names ----------------------------------------------------------------------------------- */

static int rail_of(struct fabric *f, struct fabric_map *names, const char *name)
{
	uint64_t key = fabric_hash(name, strlen(name), 3);
	int i = fabric_map_get(names, key);
	if (i < 0) {
		struct fabric_rail *r = FABRIC_ADD(f->rail);
		i = (int)f->rail.n - 1;
		if (!r || fabric_map_set(names, key, i) < 0)
			return -ENOMEM;
		snprintf(r->name, sizeof(r->name), "%s", name);
	}
	f->rail.v[i].n++;
	return i;
}

static bool pci_name(const char *hca)
{
	return strncmp(hca, "ibp", 3) == 0 || strncmp(hca, "ibP", 3) == 0 ||
	       strncmp(hca, "roce", 4) == 0 || strncmp(hca, "rdmap", 5) == 0;
}

struct named {
	int hca;
	uint64_t guid;
	char name[40]; /* "": none */
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int d = fabric_natural(x->name, y->name);
	return d ? d : x->guid < y->guid ? -1 : x->guid > y->guid;
}

/* What the HCAs of one host are called. @return 'n' by name, 'p' by PCI order, 'g' by GUID order */
static char read_names(const struct fabric *f, const struct fabric_host *h, struct named *v)
{
	int pci = 0, none = 0;
	char host[FABRIC_NAME];
	for (int i = 0; i < h->n; i++) {
		const struct fabric_hca *c = &f->hca.v[h->first + i];
		const struct fabric_node *n = &f->node.v[c->node];
		v[i].hca = h->first + i;
		v[i].guid = n->guid;
		if (n->ambiguous || !fabric_split_name(n->name, host, v[i].name, sizeof(v[i].name)))
			v[i].name[0] = '\0';
		none += v[i].name[0] == '\0';
		pci += pci_name(v[i].name);
	}
	return none == h->n ? 'g' : pci == h->n ? 'p' : 'n';
}

/* Two ports of one HCA are two rails. */
static bool has_two_ports(const struct fabric *f, const struct fabric_hca *c)
{
	int joined = 0;
	FABRIC_PORTS (f, c->node, p)
		joined += f->port.v[p].hca >= 0;
	return joined > 1 || f->port.v[c->port].num > 1;
}

/* The number of HCAs that most hosts of a kind have. */
struct sizes {
	int n['z'][65];
};
static int usual(const struct sizes *s, char kind)
{
	int best = 0;
	for (int i = 1; i < 65; i++)
		if (s->n[(int)kind][i] >= s->n[(int)kind][best] && s->n[(int)kind][i] > 0)
			best = i;
	return best;
}

static int name_rails(struct fabric *f, const struct sizes *s, struct fabric_map *names)
{
	struct named v[64];
	char name[56];
	for (size_t h = 0; h < f->host.n; h++) {
		const struct fabric_host *host = &f->host.v[h];
		if (host->n < 1 || host->n > 64)
			continue;
		memset(v, 0, sizeof(v));
		char kind = read_names(f, host, v);
		/* One HCA without a name has no order. */
		if (kind != 'n' && (host->n != usual(s, kind) || (kind == 'g' && host->n < 2)))
			continue;
		if (kind != 'n')
			qsort(v, (size_t)host->n, sizeof(v[0]), by_name);
		for (int i = 0; i < host->n; i++) {
			struct fabric_hca *c = &f->hca.v[v[i].hca];
			int two = has_two_ports(f, c);
			if (kind == 'n' && !v[i].name[0])
				continue;
			if (kind == 'n')
				snprintf(name, sizeof(name), two ? "%s/%u" : "%s", v[i].name,
					f->port.v[c->port].num);
			else
				snprintf(name, sizeof(name), "%s%d", kind == 'p' ? "pci" : "guid",
					i);
			c->rail = rail_of(f, names, name);
			if (c->rail < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* ---- votes ----------------------------------------------------------------------------------- */

struct ballot {
	int leaf[MAX_LEAVES];
	long weight[MAX_LEAVES];
	int voters[MAX_LEAVES];
	int n;
	int hosts; /* that voted */
	long total;
};

static void vote(struct ballot *b, int leaf, long weight)
{
	int i = 0;
	while (i < b->n && b->leaf[i] != leaf)
		i++;
	b->total += weight;
	b->hosts++;
	if (i == MAX_LEAVES)
		return;
	if (i == b->n) {
		b->n++;
		b->leaf[i] = leaf;
		b->weight[i] = b->voters[i] = 0;
	}
	b->weight[i] += weight;
	b->voters[i]++;
}

/* The leaf with more than num/den of the votes; -1 none. */
static int winner(const struct ballot *b, long num, long den)
{
	for (int i = 0; i < b->n; i++)
		if (b->weight[i] * den > b->total * num && b->voters[i] >= MIN_VOTERS)
			return b->leaf[i];
	return -1;
}

/* Hosts that share a leaf with the one at hand. */
struct voters {
	int *shared; /* by host: HCAs of the same rail on the same leaf */
	int *near;   /* by host: HCAs of the one at hand that are on a leaf of this host */
	int *seen;   /* by host: the HCA for which it was counted last */
	int *device; /* by rail: of the host at hand, -1 it has no such HCA */
	int *list;
	int n;
	int most;    /* that some of them share */
	bool unlike; /* they have but half of its HCAs */
};

static void count_near(
	const struct fabric *f, int host, const struct fabric_hca *c, int own, struct voters *v)
{
	FABRIC_PORTS (f, c->leaf, p) {
		int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
		const struct fabric_hca *o = k < 0 ? NULL : &f->hca.v[k];
		if (!o || o->rail < 0 || o->host == host ||
			(!v->near[o->host] && v->n >= MAX_VOTERS))
			continue;
		if (!v->near[o->host]) {
			v->list[v->n++] = o->host;
			v->seen[o->host] = -1;
		}
		v->near[o->host] += v->seen[o->host] != own;
		v->seen[o->host] = own;
		v->shared[o->host] += o->rail == c->rail;
	}
}

static int device_of(const struct fabric *f, const struct fabric_hca *c)
{
	const struct fabric_node *n = &f->node.v[c->node];
	return n->ids ? (int)(n->device & INT32_MAX) : 0;
}

static int with_rail(const struct fabric *f, const struct fabric_host *h)
{
	int n = 0;
	for (int i = h->first; i < h->first + h->n; i++)
		n += f->hca.v[i].rail >= 0;
	return n;
}

/* Is o's set of HCAs that of h, by num/den of what either has? */
static bool alike(const struct fabric *f, const struct fabric_host *h, const struct fabric_host *o,
	const struct voters *v, int num, int den)
{
	int common = 0;
	for (int i = o->first; i < o->first + o->n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		int device = c->rail < 0 ? -1 : v->device[c->rail];
		common += device >= 0 && (device == 0 || device == device_of(f, c));
	}
	return common * den >= (with_rail(f, h) + with_rail(f, o) - common) * num;
}

static void keep_alike(
	const struct fabric *f, const struct fabric_host *h, struct voters *v, int num, int den)
{
	int kept = 0;
	for (int i = 0; i < v->n; i++)
		if (alike(f, h, &f->host.v[v->list[i]], v, num, den))
			v->list[kept++] = v->list[i];
	v->n = kept;
}

/* "storage" of "storage12": what a site calls hosts of a kind. Less than two letters, as in "b08",
 * are a place. */
static size_t stem(const char *name)
{
	size_t n = 0;
	while (isalpha((unsigned char)name[n]))
		n++;
	return n;
}

static bool same_stem(const struct fabric *f, int a, int b)
{
	const char *x = f->host.v[a].name, *y = f->host.v[b].name;
	size_t n = stem(x);
	return n == stem(y) && strncasecmp(x, y, n) == 0;
}

/* Where nearly all voters have another name than the host, only those with its own are asked. */
static void keep_named_alike(const struct fabric *f, int host, struct voters *v)
{
	int lead = -1, count = 0, own = 0, kept = 0;
	for (int i = 0; i < v->n; i++) {
		if (count == 0)
			lead = v->list[i];
		count += same_stem(f, lead, v->list[i]) ? 1 : -1;
		own += same_stem(f, host, v->list[i]);
	}
	count = 0;
	for (int i = 0; i < v->n; i++)
		count += same_stem(f, lead, v->list[i]);
	if (own * 4 > v->n || count * 4 < v->n * 3 || stem(f->host.v[host].name) < 2)
		return;
	for (int i = 0; i < v->n; i++)
		if (same_stem(f, host, v->list[i]))
			v->list[kept++] = v->list[i];
	v->n = kept;
}

/* What MIN_VOTERS hosts share at least. Of two HCAs, one that strayed is half of what there is. */
static int most_shared(const struct voters *v, int hcas)
{
	int first = 0, second = 0;
	for (int i = 0; i < v->n && hcas > 2; i++) {
		int n = v->shared[v->list[i]];
		second = n > first ? first : n > second ? n : second;
		first = n > first ? n : first;
	}
	return second;
}

static void find_voters(const struct fabric *f, int host, struct voters *v)
{
	const struct fabric_host *h = &f->host.v[host];
	int all, like = 0;
	v->n = 0;
	for (int i = h->first; i < h->first + h->n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (c->rail < 0)
			continue;
		v->device[c->rail] = device_of(f, c);
		count_near(f, host, c, i, v);
	}
	all = v->n;
	for (int i = 0; i < all; i++)
		like += alike(f, h, &f->host.v[v->list[i]], v, 3, 4);
	v->unlike = like < MIN_VOTERS;
	if (v->unlike)
		keep_alike(f, h, v, 1, 2);
	else
		keep_alike(f, h, v, 3, 4);
	if (v->n > 0)
		keep_named_alike(f, host, v);
	v->most = most_shared(v, with_rail(f, h));
}

/* Ready for the next host: what find_voters() counted is cleared where it may stand. */
static void forget_voters(const struct fabric *f, int host, struct voters *v)
{
	const struct fabric_host *h = &f->host.v[host];
	for (int i = h->first; i < h->first + h->n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (c->rail < 0)
			continue;
		v->device[c->rail] = -1;
		FABRIC_PORTS (f, c->leaf, p) {
			int peer = f->port.v[p].peer, k = peer < 0 ? -1 : f->port.v[peer].hca;
			if (k >= 0)
				v->near[f->hca.v[k].host] = v->shared[f->hca.v[k].host] = 0;
		}
	}
}

/* Do two hosts stand on the same leaves, but for a quarter? */
static bool same_leaves(
	const struct fabric_host *h, const struct fabric_host *o, int host, const struct voters *v)
{
	return v->near[host] * 4 >= (h->n > o->n ? h->n : o->n) * 3;
}

static int decide(const struct fabric *f, const struct fabric_hca *c, const struct voters *v)
{
	struct ballot sharing = {.n = 0}, near = {.n = 0};
	for (int i = 0; i < v->n; i++) {
		const struct fabric_host *h = &f->host.v[v->list[i]];
		for (int k = h->first; k < h->first + h->n; k++) {
			const struct fabric_hca *o = &f->hca.v[k];
			if (o->rail != c->rail)
				continue;
			/* What is shared by this very rail says nothing of where it belongs. */
			int others = v->shared[v->list[i]] - (o->leaf == c->leaf);
			/* However many they are, hosts that share but what strayed are another
			 * group. */
			if (others > 0 && v->shared[v->list[i]] * 3 > v->most * 2)
				vote(&sharing, o->leaf, others);
			if (same_leaves(&f->host.v[c->host], h, v->list[i], v))
				vote(&near, o->leaf, 1);
			break;
		}
	}
	/* Where no HCA is where others have it, all may be shifted: then the same leaves count. So
	 * they do where few share: of two rails, only hosts whose cables are swapped alike. */
	if (sharing.total == 0)
		return winner(&near, 2, 3);
	int most = sharing.hosts * 2 < near.hosts ? winner(&near, 3, 4) : -1;
	return most >= 0 ? most : winner(&sharing, 1, 2);
}

/* Hosts with other HCAs are a makeshift: what they say of a host with two, or of more than half of
 * its HCAs, is that its kind is cabled otherwise. */
static void doubt(struct fabric *f, const struct fabric_host *h)
{
	int judged = 0, wrong = 0;
	for (int i = h->first; i < h->first + h->n; i++) {
		judged += f->hca.v[i].target >= 0;
		wrong += f->hca.v[i].target >= 0 && f->hca.v[i].target != f->hca.v[i].leaf;
	}
	for (int i = h->first; i < h->first + h->n && (judged < 3 || wrong * 2 > judged); i++)
		f->hca.v[i].target = -1;
}

static int vote_all(struct fabric *f)
{
	struct voters v = {.n = 0};
	int **const by_host[] = {&v.shared, &v.near, &v.seen, &v.list};
	int rc = 0;
	for (size_t i = 0; i < sizeof(by_host) / sizeof(by_host[0]); i++) {
		*by_host[i] = calloc(f->host.n + 1, sizeof(int));
		rc = *by_host[i] ? rc : -ENOMEM;
	}
	v.device = malloc((f->rail.n + 1) * sizeof(int));
	rc = v.device ? rc : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < f->rail.n; i++)
		v.device[i] = -1;
	for (size_t h = 0; rc == 0 && h < f->host.n; h++) {
		const struct fabric_host *host = &f->host.v[h];
		/* One HCA has no other by which its host could be placed. */
		if (host->n < 2)
			continue;
		find_voters(f, (int)h, &v);
		for (int i = host->first; i < host->first + host->n; i++)
			if (f->hca.v[i].rail >= 0)
				f->hca.v[i].target = decide(f, &f->hca.v[i], &v);
		if (v.unlike)
			doubt(f, host);
		forget_voters(f, (int)h, &v);
	}
	for (size_t i = 0; i < sizeof(by_host) / sizeof(by_host[0]); i++)
		free(*by_host[i]);
	free(v.device);
	return rc;
}

int fabric_find_rails(struct fabric *f)
{
	struct fabric_map names = {0};
	struct sizes *s = calloc(1, sizeof(*s));
	struct named v[64];
	int rc = s ? 0 : -ENOMEM;
	for (size_t h = 0; h < f->host.n && rc == 0; h++)
		if (f->host.v[h].n >= 1 && f->host.v[h].n <= 64) {
			memset(v, 0, sizeof(v));
			s->n[(int)read_names(f, &f->host.v[h], v)][f->host.v[h].n]++;
		}
	if (rc == 0)
		rc = name_rails(f, s, &names);
	fabric_map_free(&names);
	free(s);
	rc = rc == 0 ? vote_all(f) : rc;
	return rc == 0 ? fabric_break_ties(f) : rc;
}
