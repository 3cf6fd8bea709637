/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the parts of the pairs judge: links gathered from launches and the fit of one rail
 * (pairs_fit.c), the judgement over it (pairs_judge.c), the confirmation plan (pairs_plan.c).
 * All values are logarithms with the sign turned so that bad is low.
 */
#ifndef VERBS_PAIRS_PRIV_H
#define VERBS_PAIRS_PRIV_H

#include "verbs/pairs_judge.h"

/* All launches of one pair of hosts on one rail. */
struct link_acc {
	uint32_t rail, a, b; /* a < b */
	size_t first;        /* its values in values[]: rounds, then confirmation */
	uint32_t n_round, n_conf;
	uint32_t miss_round, miss_conf; /* failed or unreachable */
	uint32_t unreach;               /* of those, unreachable */
	uint32_t tries_conf;            /* launches of confirmation, of any outcome */
	double y, yc;                   /* of the rounds, of confirmation; NAN without */
	bool suspect;
};

/* What confirmation says of one node: launches with good partners alone. */
struct node_conf {
	double v, best; /* mean over partners that agree, and best partner's value, less mu; NAN */
	double z;
	uint32_t partners, tried, agree; /* measured, tried, and of the measured near the best */
	uint32_t launches;               /* of those that agree */
	bool slow;
};

/* A host and what it is ranked by, low first. */
struct pairs_ranked {
	double e;
	uint32_t i;
};

/* Everything about the rail at hand; arrays are reused from rail to rail. */
struct rail_work {
	const struct pairs_opts *o;
	uint32_t hosts, rail;
	double floor; /* on the log scale */
	const uint32_t *group;
	const bool *absent;
	struct link_acc *link; /* of this rail, by a, b */
	size_t links;
	double *values;
	size_t *off;   /* hosts + 1: where a host's links begin in adj */
	uint32_t *adj; /* link numbers */
	double mu, sigma;
	size_t measured; /* links measured in the rounds */
	uint32_t seen;   /* hosts measured there */
	bool judged;
	double *e, *c;  /* node effect from the rounds; the part taken off partners: below 0 for
			   suspects */
	uint32_t *deg;  /* links measured in the rounds */
	uint32_t *used; /* of those, how many make e */
	bool *out;      /* hosts whose links do not make the level */
	struct node_conf *conf;
	double *scratch; /* 2 * links */
	double *before;  /* c of the pass before */
	struct pairs_ranked *rank;
	uint32_t *want; /* of the plan: good partners still to be measured with */
};

/* Growing lists of the judgement. */
struct task_list {
	struct pairs_task *v;
	size_t n, cap;
};

/* Everything one call holds. */
struct judge {
	const struct pairs_opts *o;
	const struct pairs_input *in;
	struct link_acc *link;
	size_t links;
	double *values;
	struct rail_work w;
	struct pairs_judgement *j;
	size_t listed_cap;
	struct task_list tasks;
};

/* Median; reorders v. NAN when n is 0. */
double pairs_median(double *v, size_t n);
/* The host's value as pairs_judge.h describes it; reorders v. */
double pairs_centre(double *v, size_t n, double sigma);
/* Gather launches into links, sorted by rail, a, b. *links and *values are the caller's to free.
 * @return 0, -EINVAL, -ENOMEM */
int pairs_gather(const struct pairs_opts *o, const struct pairs_input *in, struct link_acc **links,
	size_t *n_links, double **values, struct fb_err *e);
/* The level of links without a host that is out; of all links (then their median) when out is NULL;
 * NAN without any. */
double pairs_level(struct rail_work *w, const bool *out);
/* Scale of the noise of those links about mu, at least sigma_min. */
double pairs_noise(struct rail_work *w, const bool *out);
/* Set off, adj, deg, mu, sigma, e, c, judged and the links' y and yc. */
void pairs_fit(struct rail_work *w);
/* The link of two hosts, or NULL. */
struct link_acc *pairs_find(const struct rail_work *w, uint32_t x, uint32_t y);
/* Confirming launches of a slow link: as many as a node has with its two partners. One first met in
 * confirmation had its first set of launches as others have their rounds. */
static inline uint32_t pairs_link_needs(const struct pairs_opts *o, const struct link_acc *l)
{
	return (l->n_round ? 2 : 3) * o->repeats;
}
/* The host at the other end. */
static inline uint32_t pairs_other(const struct link_acc *l, uint32_t host)
{
	return l->a == host ? l->b : l->a;
}
/* Unsuspected in the rounds, and measured there. */
static inline bool pairs_base_good(const struct rail_work *w, uint32_t host)
{
	return w->deg[host] > 0 && !(w->c[host] < 0);
}
/* Add this rail's confirming pairs to the list, once each, without rounds. node[] holds the rail's
 * states, w->want what each node needs, link[] the rail's listed links. @return 0 or -ENOMEM */
int pairs_plan_rail(struct rail_work *w, const struct pairs_node *node,
	const struct pairs_link *link, size_t links, struct task_list *list);
/* Give the listed pairs disjoint rounds and repeat them. @return 0 or -ENOMEM */
int pairs_plan_rounds(struct task_list *list, uint32_t hosts, uint32_t repeats);

/* Set the rails' off_level. */
void pairs_compare_rails(struct judge *g);
/* Fill host[] and the account. @return 0 or -ENOMEM */
int pairs_count_hosts(struct judge *g);
enum pairs_verdict pairs_reach_verdict(const struct judge *g);
void pairs_rank(struct pairs_judgement *j);

#endif
