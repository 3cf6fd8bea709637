// SPDX-License-Identifier: Apache-2.0
/*
 * The profile of a good node: what its ports agree on, each line with where it was read. What they
 * do not agree on, or what nothing tells, stays a comment: a guess would become a rule.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/checks_priv.h"

struct learner {
	const struct node_facts *node;
	const struct port_facts *port;
	struct used_class used[8];
	int n_used;
};
/* The value of a port as the profile's text, and its origin. @return false: not told */
typedef bool (*teller)(const struct learner *l, char *value, size_t len, char *from, size_t flen);

static bool say(const struct fact *f, char *from, size_t flen)
{
	snprintf(from, flen, "%s", f->read);
	return fact_known(f);
}

static bool say_int(const struct fact_int *v, char *value, size_t len, char *from, size_t flen)
{
	snprintf(value, len, "%lld", (long long)v->v);
	return say(&v->f, from, flen);
}

static int first_dscp(const struct learner *l)
{
	return l->n_used > 0 ? l->used[0].byte >> 2 : -1;
}

static bool roce_dscp(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	int seen[4], n = 0;
	size_t at = 0, fat = 0;
	for (int i = 0; i < l->n_used && n < 4; i++) {
		int dscp = l->used[i].byte >> 2;
		bool known = false;
		for (int k = 0; k < n; k++)
			known = known || seen[k] == dscp;
		if (known || at >= len || fat >= flen)
			continue;
		at += (size_t)snprintf(value + at, len - at, "%s%d", n ? ", " : "", dscp);
		fat += (size_t)snprintf(from + fat, flen - fat, "%s%s (traffic class %d)",
			n ? ", " : "", l->used[i].by, l->used[i].byte);
		seen[n++] = dscp;
	}
	return n > 0;
}

static bool roce_prio(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const char *how = NULL, *why = NULL;
	const struct dcb_facts *d = &l->port->dcb;
	int dscp = first_dscp(l);
	int prio = dscp >= 0 ? facts_dscp_priority(l->port, dscp, &how, &why) : -1;
	if (prio >= 0) {
		snprintf(from, flen, "DSCP %d by %s", dscp, how ? how : "the port's map");
	} else if (fact_known(&d->pfc_f) && __builtin_popcount(d->pfc.en) == 1) {
		prio = __builtin_ctz(d->pfc.en);
		snprintf(from, flen, "the only priority with PFC; %s", d->pfc_f.read);
	}
	snprintf(value, len, "%d", prio);
	return prio >= 0;
}

static bool cnp_dscp(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	return say_int(&l->port->cnp_dscp, value, len, from, flen);
}

static bool cnp_prio(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const char *how = NULL, *why = NULL;
	if (!fact_known(&l->port->cnp_dscp.f))
		return false;
	int prio = facts_dscp_priority(l->port, (int)l->port->cnp_dscp.v, &how, &why);
	snprintf(value, len, "%d", prio);
	snprintf(from, flen, "DSCP %d by %s", (int)l->port->cnp_dscp.v,
		how ? how : "the port's map");
	return prio >= 0;
}

static bool pfc(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	unsigned en = l->port->dcb.pfc.en;
	size_t at = 0;
	snprintf(value, len, "none");
	for (int i = 0; i < 8 && at < len; i++)
		if (en >> i & 1)
			at += (size_t)snprintf(value + at, len - at, "%s%d", at ? ", " : "", i);
	return say(&l->port->dcb.pfc_f, from, flen);
}

static bool trust(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	struct check_input in = {.node = l->node, .port = l->port};
	struct fb_finding f = {0};
	const char *t = check_trust(&in, &f, from, flen);
	snprintf(value, len, "%s", t ? t : "");
	if (t)
		snprintf(from, flen, "%s", f.read);
	return t != NULL;
}

static bool congestion(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const struct port_facts *p = l->port;
	char prio[16], how[160];
	if (!fact_known(&p->np_enable_f) || !fact_known(&p->rp_enable_f) ||
		!roce_prio(l, prio, sizeof(prio), how, sizeof(how)))
		return false;
	int i = prio[0] - '0';
	bool np = p->np_enable[i], rp = p->rp_enable[i];
	snprintf(value, len, "%s", np && rp ? "ecn" : "pfc-only");
	snprintf(from, flen, "%.70s and %.70s, priority %d", p->np_enable_f.read,
		p->rp_enable_f.read, i);
	return np == rp;
}

static bool mtu(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	return say_int(&l->port->netdev_mtu, value, len, from, flen);
}

static bool ets_share(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const struct dcb_ets *t = &l->port->dcb.ets;
	char prio[16], how[160];
	if (!fact_known(&l->port->dcb.ets_f) || !roce_prio(l, prio, sizeof(prio), how, sizeof(how)))
		return false;
	int tc = t->prio_tc[prio[0] - '0'] & 7;
	snprintf(value, len, "%d", t->tc_tx_bw[tc]);
	return say(&l->port->dcb.ets_f, from, flen) && t->tsa[tc] == 2;
}

/* mlx5 gives the cable's length, in metres, as PFC's delay allowance (Linux, en_dcbnl.c). */
static bool cable(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	snprintf(value, len, "%d", l->port->dcb.pfc.delay);
	return strcmp(l->port->family, "mlx5") == 0 && say(&l->port->dcb.pfc_f, from, flen) &&
	       l->port->dcb.pfc.delay > 0;
}

static bool rate(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const struct fact_int *v = l->port->ethernet ? &l->port->speed_mbps : &l->port->rate_mbps;
	snprintf(value, len, "%gGb/s", (double)v->v / 1000);
	return say(&v->f, from, flen) && v->v > 0;
}

static bool pkey(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	snprintf(value, len, "0x%04x", l->port->pkeys > 0 ? l->port->pkey[0] : 0);
	return say(&l->port->pkeys_f, from, flen) && l->port->pkeys > 0 && l->port->pkey[0] != 0;
}

static bool sl(const struct learner *l, char *value, size_t len, char *from, size_t flen)
{
	const char *sl = fb_json_str(l->node->env, "NCCL_IB_SL", NULL);
	char *end = NULL;
	long v = sl && *sl ? strtol(sl, &end, 0) : -1;
	if (!end || *end != '\0' || v < 0 || v > 15)
		return false;
	snprintf(value, len, "%ld", v);
	snprintf(from, flen, "NCCL_IB_SL");
	return true;
}

enum layer { ETHERNET = 1, INFINIBAND = 2, BOTH = 3 };
static const struct line {
	const char *key;
	enum layer of;
	teller tell;
} lines[] = {
	{"roce-dscp", ETHERNET, roce_dscp},
	{"roce-priority", ETHERNET, roce_prio},
	{"cnp-dscp", ETHERNET, cnp_dscp},
	{"cnp-priority", ETHERNET, cnp_prio},
	{"pfc", ETHERNET, pfc},
	{"trust", ETHERNET, trust},
	{"congestion", ETHERNET, congestion},
	{"mtu", ETHERNET, mtu},
	{"ets-share", ETHERNET, ets_share},
	{"cable-length", ETHERNET, cable},
	{"rate", BOTH, rate},
	{"pkey", INFINIBAND, pkey},
	{"sl", INFINIBAND, sl},
};

static void learn_line(const struct node_facts *n, const struct line *k, FILE *out)
{
	char first[64] = "", first_from[256] = "", where[80] = "";
	for (int i = 0; i < n->ports; i++) {
		struct learner l = {.node = n, .port = &n->port[i]};
		struct profile none;
		char value[64], from[256] = "";
		if (!(k->of & (l.port->ethernet ? ETHERNET : INFINIBAND)))
			continue;
		profile_none(&none);
		struct check_input in = {.node = n, .port = l.port, .profile = &none};
		l.n_used = check_used_classes(&in, l.used, 8);
		if (!k->tell(&l, value, sizeof(value), from, sizeof(from)))
			continue;
		if (*first && strcmp(first, value) != 0) {
			fprintf(out, "# %s: the ports differ: %s at %s, %s at %s/%d\n", k->key,
				first, where, value, l.port->device, l.port->port);
			return;
		}
		if (*first)
			continue;
		snprintf(first, sizeof(first), "%s", value);
		snprintf(first_from, sizeof(first_from), "%s", from);
		snprintf(where, sizeof(where), "%s/%d", l.port->device, l.port->port);
	}
	if (*first)
		fprintf(out, "# %s\n%s = %s\n", first_from, k->key, first);
	else
		fprintf(out, "# %s: nothing tells it here\n", k->key);
}

int profile_learn(const struct node_facts *n, FILE *out, struct fb_err *e)
{
	enum layer layers = 0;
	for (int i = 0; i < n->ports; i++)
		layers |= n->port[i].ethernet ? ETHERNET : INFINIBAND;
	if (n->ports == 0) {
		fb_fail(e, FB_EXIT_SKIP, ENODEV, "there is no RDMA port here to learn from");
		fb_hint(e, "learn on a node with RDMA devices, or from its recorded tree: "
			   "--sysroot TREE");
		return -ENODEV;
	}
	fprintf(out, "# What this node has; each line says where it was read. Check it before it\n"
		     "# becomes the rule for others.\n"
		     "name = learned\n"
		     "source = fabricbench check --learn\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].of & layers)
			learn_line(n, &lines[i], out);
	if (ferror(out))
		return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "the profile could not be written");
	return 0;
}
