// SPDX-License-Identifier: Apache-2.0
/*
 * The simulated fleet: a pair is as fast as its slower host, times its link, times log-normal
 * noise. Everything random comes from the seed.
 */
#include "verbs/pairs_sim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"

#define LEVEL_RATE 48.7e9 /* bytes/s: what 400 Gb/s carry */
#define LEVEL_TIME 2e3    /* ns */
#define ANY        UINT32_MAX

/* ---- the text -------------------------------------------------------------------------------- */

static int bad(const char *word, struct fb_err *e)
{
	fb_fail_usage(e, "--simulate: cannot read \"%s\"", word);
	fb_hint(e,
		"for example hosts=64,noise=0.03,slow-node=7:0.85,slow-link=3-9:0.7,seed=1; also "
		"absent=H, broken-link=A-B, rails=N, racks=N, seeds=N; `any` draws a host or link");
	return -EINVAL;
}

static bool take_share(const char *s, double lo, double hi, double *v)
{
	char *end;

	*v = strtod(s, &end);
	return *s && !*end && *v >= lo && *v <= hi;
}

static bool take_host(char *s, uint32_t *host)
{
	uint64_t v;

	*host = ANY;
	if (!strcmp(s, "any"))
		return true;
	if (fb_parse_u64(s, 0, PAIRS_FLEET_MAX - 1, &v, NULL) != 0)
		return false;
	*host = (uint32_t)v;
	return true;
}

static bool take_node(struct pairs_sim *s, char *value, bool factor)
{
	char *colon = strchr(value, ':');

	if (s->nodes == PAIRS_SIM_PARTS || !colon != !factor)
		return false;
	s->node[s->nodes].factor = 0;
	if (colon) {
		*colon = '\0';
		if (!take_share(colon + 1, 0.01, 1, &s->node[s->nodes].factor))
			return false;
	}
	return take_host(value, &s->node[s->nodes++].host);
}

static bool take_link(struct pairs_sim *s, char *value, bool factor)
{
	char *colon = strchr(value, ':'), *dash;
	unsigned i = s->links;

	if (i == PAIRS_SIM_PARTS || !colon != !factor)
		return false;
	s->link[i].factor = 0;
	if (colon) {
		*colon = '\0';
		if (!take_share(colon + 1, 0.01, 1, &s->link[i].factor))
			return false;
	}
	s->links++;
	if (!strcmp(value, "any")) {
		s->link[i].a = s->link[i].b = ANY;
		return true;
	}
	dash = strchr(value, '-');
	if (!dash)
		return false;
	*dash = '\0';
	return take_host(value, &s->link[i].a) && take_host(dash + 1, &s->link[i].b) &&
	       s->link[i].a != s->link[i].b && s->link[i].a != ANY && s->link[i].b != ANY;
}

static bool take_number(const char *value, uint64_t lo, uint64_t hi, uint32_t *out)
{
	uint64_t v = 0;

	if (fb_parse_u64(value, lo, hi, &v, NULL) != 0)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool take_word(struct pairs_sim *s, const char *key, char *value)
{
	if (!strcmp(key, "hosts"))
		return take_number(value, 2, PAIRS_FLEET_MAX, &s->hosts);
	if (!strcmp(key, "rails"))
		return take_number(value, 1, 32, &s->rails);
	if (!strcmp(key, "racks"))
		return take_number(value, 1, PAIRS_FLEET_MAX, &s->racks);
	if (!strcmp(key, "noise"))
		return take_share(value, 0, 1, &s->noise);
	if (!strcmp(key, "seed"))
		return fb_parse_u64(value, 0, INT64_MAX, &s->seed, NULL) == 0;
	if (!strcmp(key, "seeds"))
		return fb_parse_u64(value, 1, 1000000, &s->seeds, NULL) == 0;
	if (!strcmp(key, "slow-node"))
		return take_node(s, value, true);
	if (!strcmp(key, "absent"))
		return take_node(s, value, false);
	if (!strcmp(key, "slow-link"))
		return take_link(s, value, true);
	if (!strcmp(key, "broken-link"))
		return take_link(s, value, false);
	return false;
}

static int check_hosts(const struct pairs_sim *s, struct fb_err *e)
{
	bool good = 2 * s->nodes + 2 * s->links <= s->hosts;

	for (unsigned i = 0; i < s->nodes; i++)
		good &= s->node[i].host == ANY || s->node[i].host < s->hosts;
	for (unsigned i = 0; i < s->links; i++)
		good &= s->link[i].a == ANY || (s->link[i].a < s->hosts && s->link[i].b < s->hosts);
	if (good)
		return 0;
	return fb_fail_usage(e, "--simulate: %u hosts have no room for these bad parts", s->hosts);
}

int pairs_sim_parse(struct pairs_sim *s, const char *text, struct fb_err *e)
{
	char *copy = strdup(text), *rest = copy, *word;
	int rc = 0;

	memset(s, 0, sizeof *s);
	s->hosts = 64;
	s->rails = s->racks = 1;
	s->noise = 0.03;
	s->seed = s->seeds = 1;
	if (!copy)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for --simulate");
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		char shown[80], *eq = strchr(word, '=');
		snprintf(shown, sizeof shown, "%s", word);
		if (eq)
			*eq = '\0';
		if (!eq || !take_word(s, word, eq + 1))
			rc = bad(shown, e);
	}
	free(copy);
	return rc ? rc : check_hosts(s, e);
}

/* ---- the fleet ------------------------------------------------------------------------------- */

static bool taken(const struct pairs_sim *s, uint32_t host)
{
	bool t = false;

	for (unsigned i = 0; i < s->nodes; i++)
		t |= s->at_node[i] == host;
	for (unsigned i = 0; i < s->links; i++)
		t |= s->at_a[i] == host || s->at_b[i] == host;
	return t;
}

static uint32_t draw(struct pairs_sim *s)
{
	uint32_t host;

	do
		host = (uint32_t)(fb_rng_uniform(&s->rng) * s->hosts);
	while (taken(s, host));
	return host;
}

/* Named places first, so that none is drawn for another part. */
static void place(struct pairs_sim *s)
{
	for (unsigned i = 0; i < s->nodes; i++)
		s->at_node[i] = s->node[i].host;
	for (unsigned i = 0; i < s->links; i++) {
		s->at_a[i] = s->link[i].a;
		s->at_b[i] = s->link[i].b;
	}
	for (unsigned i = 0; i < s->nodes; i++)
		if (s->at_node[i] == ANY)
			s->at_node[i] = draw(s);
	for (unsigned i = 0; i < s->links; i++) {
		if (s->at_a[i] != ANY)
			continue;
		s->at_a[i] = draw(s);
		s->at_b[i] = draw(s);
	}
}

int pairs_sim_start(struct pairs_sim *s, uint64_t seed, struct pairs_fleet *f, struct fb_err *e)
{
	fb_rng_seed(&s->rng, seed, 1);
	place(s);
	for (uint32_t i = 0; i < s->hosts; i++) {
		struct pairs_member *m = pairs_fleet_add(f);
		if (!m)
			return fb_fail(
				e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u hosts", s->hosts);
		snprintf(m->name, sizeof m->name, "n%05u", i);
		if (s->racks > 1)
			snprintf(m->rack, sizeof m->rack, "r%03u",
				(uint32_t)((uint64_t)i * s->racks / s->hosts));
		m->rank = (int)i;
	}
	for (unsigned i = 0; i < s->nodes; i++) {
		struct pairs_member *m = &f->member[s->at_node[i]];
		if (s->node[i].factor > 0)
			continue;
		m->rank = -1;
		snprintf(m->reason, sizeof m->reason, "%s never joined", m->name);
	}
	f->rails = s->rails;
	return pairs_fleet_seal(f, e);
}

static double host_factor(const struct pairs_sim *s, uint32_t host)
{
	for (unsigned i = 0; i < s->nodes; i++)
		if (s->at_node[i] == host && s->node[i].factor > 0)
			return s->node[i].factor;
	return 1;
}

static double link_factor(const struct pairs_sim *s, uint32_t a, uint32_t b)
{
	for (unsigned i = 0; i < s->links; i++)
		if ((s->at_a[i] == a && s->at_b[i] == b) || (s->at_a[i] == b && s->at_b[i] == a))
			return s->link[i].factor;
	return 1;
}

int pairs_sim_measure(struct pairs_run *r, size_t first, size_t n, struct fb_err *e)
{
	struct pairs_sim *s = r->arg;

	for (size_t i = first; i < first + n; i++) {
		struct pairs_measure *m = &r->log.m[i];
		double link = link_factor(s, m->a, m->b);
		double speed = fmin(host_factor(s, m->a), host_factor(s, m->b)) * link *
			       exp(s->noise * fb_rng_normal(&s->rng));
		m->state = link > 0 ? PAIRS_MEASURED : PAIRS_FAILED;
		m->value = s->lower_better ? LEVEL_TIME / speed : LEVEL_RATE * speed;
		if (link > 0)
			continue;
		m->value = 0;
		m->reason = strdup("transport retry counter exceeded (simulated)");
		if (!m->reason)
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory");
	}
	return 0;
}

/* ---- against the truth ----------------------------------------------------------------------- */

static bool is_bad(const struct pairs_sim *s, uint32_t host)
{
	for (unsigned i = 0; i < s->nodes; i++)
		if (s->at_node[i] == host)
			return true;
	return false;
}

static bool convicted(const struct pairs_judgement *j, uint32_t host)
{
	for (uint32_t rail = 0; rail < j->rails; rail++)
		if (j->node[rail * j->hosts + host].state == PAIRS_NODE_SLOW ||
			j->node[rail * j->hosts + host].state == PAIRS_NODE_FAILING)
			return true;
	return false;
}

static bool link_found(const struct pairs_judgement *j, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < j->links; i++)
		if (((j->link[i].a == a && j->link[i].b == b) ||
			    (j->link[i].a == b && j->link[i].b == a)) &&
			(j->link[i].state == PAIRS_LINK_SLOW ||
				j->link[i].state == PAIRS_LINK_FAILED))
			return true;
	return false;
}

static bool in_rounds(const struct pairs_log *l, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->m[i].phase == PAIRS_ROUNDS &&
			((l->m[i].a == a && l->m[i].b == b) || (l->m[i].a == b && l->m[i].b == a)))
			return true;
	return false;
}

void pairs_sim_count(
	const struct pairs_sim *s, const struct pairs_run *r, struct pairs_sim_tally *t)
{
	const struct pairs_judgement *j = &r->judgement;
	uint64_t before = t->false_nodes + t->false_links;

	t->fleets++;
	for (unsigned i = 0; i < s->nodes; i++) {
		bool found = s->node[i].factor > 0
				     ? convicted(j, s->at_node[i])
				     : j->host[s->at_node[i]].state == PAIRS_UNREACHABLE;
		t->bad_nodes++;
		t->missed_nodes += !found;
	}
	for (uint32_t h = 0; h < j->hosts; h++)
		t->false_nodes += convicted(j, h) && !is_bad(s, h);
	for (unsigned i = 0; i < s->links; i++) {
		bool seen = in_rounds(&r->log, s->at_a[i], s->at_b[i]);
		t->bad_links++;
		t->unseen_links += !seen;
		t->missed_links += seen && !link_found(j, s->at_a[i], s->at_b[i]);
	}
	for (size_t i = 0; i < j->links; i++) {
		const struct pairs_link *l = &j->link[i];
		bool bad_link = link_factor(s, l->a, l->b) < 1;
		if ((l->state == PAIRS_LINK_SLOW || l->state == PAIRS_LINK_FAILED) && !bad_link &&
			!l->by_node)
			t->false_links++;
	}
	t->false_fleets += t->false_nodes + t->false_links > before;
}
