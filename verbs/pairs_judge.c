// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs judge, middle part: from one rail's fit to states, and from the rails to hosts, the
 * account and the verdict. The rules stand in pairs_judge.h.
 */
#include "verbs/pairs_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Good partners a node is tried with before the judge gives up on it. */
#define MAX_TRIED 4

struct pairs_opts pairs_opts_default(bool lower_better)
{
	return (struct pairs_opts){.lower_better = lower_better,
		.floor = 0.05,
		.z = 3.5,
		.suspect_z = 2,
		.link_z = 3,
		.sigma_min = 0.005,
		.repeats = 3};
}

const char *pairs_node_state_name(enum pairs_node_state s)
{
	static const char *const names[] = {
		"good", "cleared", "unjudged", "not run", "suspect", "dead", "failing", "slow"};
	return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

const char *pairs_link_state_name(enum pairs_link_state s)
{
	static const char *const names[] = {"cleared", "flaky", "suspect", "failed", "slow"};
	return (size_t)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

const char *pairs_verdict_name(enum pairs_verdict v)
{
	static const char *const names[] = {"fine", "unjudged", "incomplete", "rejected"};
	return (size_t)v < sizeof names / sizeof names[0] ? names[v] : "?";
}

static int check_opts(const struct pairs_opts *o, const struct pairs_input *in, struct fb_err *e)
{
	if (in->hosts == 0 || in->rails == 0)
		return fb_fail_usage(e,
			"pairs of %u hosts on %u rails: at least one of each is needed", in->hosts,
			in->rails);
	if ((uint64_t)in->hosts * in->rails > UINT32_MAX)
		return fb_fail_usage(
			e, "%u hosts on %u rails are too many to number", in->hosts, in->rails);
	if (!(o->floor > 0 && o->floor < 1))
		return fb_fail_usage(e, "the floor is %g: it must lie between 0 and 1", o->floor);
	if (!(o->z > 0 && o->suspect_z > 0 && o->link_z > 0 && isfinite(o->z)))
		return fb_fail_usage(e, "a robust z of %g, %g or %g: each must be above 0", o->z,
			o->suspect_z, o->link_z);
	if (!(o->sigma_min > 0 && o->sigma_min < 1) || o->repeats == 0 || o->repeats > 1000)
		return fb_fail_usage(e,
			"a least scale of %g and %u repeats: between 0 and 1, and 1 to 1000, are allowed",
			o->sigma_min, o->repeats);
	return 0;
}

/* A log effect, bad low, as a relative change of the metric. */
static double relative(const struct judge *g, double v)
{
	return g->o->lower_better ? expm1(-v) : expm1(v);
}

/* The link's confirming value for host i, if its partner there is good. @return whether it has one
 */
static bool good_value(const struct rail_work *w, uint32_t i, const struct link_acc *l, double *v)
{
	uint32_t g = pairs_other(l, i);

	*v = l->yc - w->mu;
	return l->n_conf && pairs_base_good(w, g) && !w->conf[g].slow;
}

/*
 * A node's value by its launches with good partners in confirmation: the mean over the partners
 * that agree with their median, or of two partners with the better: one far off tells of its link.
 */
static struct node_conf confirm_node(const struct rail_work *w, uint32_t i)
{
	struct node_conf c = {.v = NAN, .best = NAN, .z = NAN};
	double v, sum = 0;

	for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
		const struct link_acc *l = &w->link[w->adj[k]];
		uint32_t g = pairs_other(l, i);
		if (l->tries_conf && pairs_base_good(w, g) && !w->conf[g].slow)
			c.tried++;
		if (!good_value(w, i, l, &v))
			continue;
		w->scratch[c.partners++] = v;
		if (!(c.best >= v))
			c.best = v;
	}
	double middle = c.partners > 2 ? pairs_median(w->scratch, c.partners) : c.best;
	for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
		const struct link_acc *l = &w->link[w->adj[k]];
		if (!good_value(w, i, l, &v) ||
			fabs(v - middle) > 3 * w->sigma * sqrt(2.0 / l->n_conf))
			continue;
		sum += v * l->n_conf;
		c.launches += l->n_conf;
		c.agree++;
	}
	if (c.agree) {
		c.v = sum / c.launches;
		c.z = c.v / (w->sigma / sqrt(c.launches));
	}
	c.slow = c.agree >= 2 && c.v <= -w->floor && c.z <= -w->o->z && c.best <= -w->floor / 2;
	return c;
}

/* All nodes; again while a partner thought good turns out slow, which takes its word away. */
static void confirm_nodes(struct rail_work *w)
{
	bool moved = true;

	for (uint32_t i = 0; i < w->hosts; i++)
		w->conf[i] = (struct node_conf){.v = NAN, .best = NAN, .z = NAN};
	for (int pass = 0; pass < 4 && moved && w->judged; pass++) {
		moved = false;
		for (uint32_t i = 0; i < w->hosts; i++) {
			bool was = w->conf[i].slow;
			w->conf[i] = confirm_node(w, i);
			moved |= w->conf[i].slow != was;
		}
	}
}

/* Slow with the only good partner it was tried with: the node, the partner or the link between. */
static bool slow_with_all(const struct rail_work *w, uint32_t i)
{
	const struct node_conf *c = &w->conf[i];
	return c->partners && c->v <= -w->floor && c->best <= -w->floor / 2;
}

static enum pairs_node_state node_state(const struct rail_work *w, uint32_t i, bool attempted)
{
	const struct node_conf *c = &w->conf[i];

	if (!attempted)
		return PAIRS_NODE_NOT_RUN;
	if (w->deg[i] == 0 && c->partners == 0)
		return PAIRS_NODE_DEAD;
	if (!w->judged)
		return PAIRS_NODE_UNJUDGED;
	if (c->slow)
		return PAIRS_NODE_SLOW;
	if (pairs_base_good(w, i) && !(c->agree == 1 && slow_with_all(w, i)))
		return PAIRS_NODE_GOOD;
	/* A fine pair proves both its hosts; two partners are a full confirmation. */
	if (c->agree >= 2 || (c->partners && c->best > -w->floor / 2))
		return PAIRS_NODE_CLEARED;
	return PAIRS_NODE_SUSPECT;
}

/*
 * The level and the noise once more, with the hosts that confirmation cleared: they became suspects
 * for being low, and a level without them stands too high.
 */
static void refine_level(struct rail_work *w)
{
	if (!w->judged)
		return;
	for (uint32_t i = 0; i < w->hosts; i++)
		w->out[i] = node_state(w, i, true) > PAIRS_NODE_CLEARED;
	double mu = pairs_level(w, w->out);
	if (!isfinite(mu))
		return;
	w->mu = mu;
	w->sigma = pairs_noise(w, w->out);
	confirm_nodes(w);
}

static void judge_nodes(struct judge *g)
{
	struct rail_work *w = &g->w;
	struct pairs_node *node = g->j->node + (size_t)w->rail * w->hosts;

	confirm_nodes(w);
	refine_level(w);
	for (uint32_t i = 0; i < w->hosts; i++) {
		struct node_conf *c = &w->conf[i];
		uint32_t launches = 0, missed = 0;
		for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
			const struct link_acc *l = &w->link[w->adj[k]];
			missed += l->miss_round + l->miss_conf;
			launches += l->n_round + l->n_conf;
		}
		node[i] = (struct pairs_node){
			.state = node_state(w, i, launches + missed > 0),
			.effect = relative(g, w->e[i]),
			.z = w->deg[i] ? w->e[i] / (w->sigma / sqrt(w->used[i])) : NAN,
			.confirmed = relative(g, c->v),
			.confirmed_z = c->z,
			.pairs = w->deg[i],
			.partners = c->partners,
			.tried = c->tried,
			.missed = missed,
		};
	}
}

/* What a link's own value is measured from: what its nodes are known to cost; of a slow node's two
 * estimates the worse, so that chance in one of them makes no slow link. */
static double known(const struct judge *g, uint32_t i)
{
	const struct rail_work *w = &g->w;

	switch (g->j->node[(size_t)w->rail * w->hosts + i].state) {
	case PAIRS_NODE_SLOW: return fmin(w->conf[i].v, w->c[i]);
	case PAIRS_NODE_SUSPECT:
		if (w->conf[i].partners)
			return w->conf[i].v < 0 ? w->conf[i].v : 0;
		return w->c[i];
	default: return 0;
	}
}

/* How uncertain that is, as a variance in units of sigma squared. */
static double known_var(const struct judge *g, uint32_t i)
{
	enum pairs_node_state s = g->j->node[(size_t)g->w.rail * g->w.hosts + i].state;
	uint32_t n = g->w.conf[i].launches;
	return s == PAIRS_NODE_SLOW && n ? 1.0 / n : 0;
}

/* Was host i measured in confirmation with a good partner over another link than l? */
static bool end_known(const struct rail_work *w, const struct link_acc *l, uint32_t i)
{
	uint32_t far = pairs_other(l, i);
	bool by_this = l->n_conf && pairs_base_good(w, far) && !w->conf[far].slow;
	return w->conf[i].partners > (by_this ? 1u : 0u);
}

/* A value of n launches below the floor and below z deviations; var: what else is uncertain in it.
 */
static bool outlier(const struct rail_work *w, double v, uint32_t n, double var, double z)
{
	if (n == 0)
		return false;
	double t = z * w->sigma * sqrt(1.0 / n + var);
	return v <= -(t > w->floor ? t : w->floor);
}

static enum pairs_link_state slow_link(
	const struct rail_work *w, const struct link_acc *l, double v, double var)
{
	uint32_t need = pairs_link_needs(w->o, l);

	if (l->n_conf == 0 && l->miss_conf)
		return PAIRS_LINK_FAILED;
	if (l->n_conf == 0 || l->tries_conf < need)
		return PAIRS_LINK_SUSPECT;
	/* Links differ by nature, as paths do: one is at fault when its mean lies where hardly a
	 * single launch of the others does, not at the edge of what paths are. */
	if (!outlier(w, v, l->n_conf, var, w->o->z) || v > -w->o->link_z * w->sigma)
		return l->miss_round + l->miss_conf ? PAIRS_LINK_FLAKY : PAIRS_LINK_CLEARED;
	return end_known(w, l, l->a) && end_known(w, l, l->b) ? PAIRS_LINK_SLOW
							      : PAIRS_LINK_SUSPECT;
}

static enum pairs_link_state failed_link(const struct link_acc *l)
{
	if (l->n_round + l->n_conf)
		return PAIRS_LINK_FLAKY;
	return l->miss_conf ? PAIRS_LINK_FAILED : PAIRS_LINK_SUSPECT;
}

/* @return whether the link is one to list */
static bool judge_link(const struct judge *g, const struct link_acc *l, struct pairs_link *out)
{
	const struct rail_work *w = &g->w;
	double nodes = known(g, l->a) + known(g, l->b);
	double v_round = l->y - w->mu - nodes, v_conf = l->yc - w->mu - nodes;
	double var = known_var(g, l->a) + known_var(g, l->b);
	bool slow = w->judged && (outlier(w, v_round, l->n_round, var, w->o->link_z) ||
					 outlier(w, v_conf, l->n_conf, var, w->o->link_z));
	/* A dead host's links are explained by it. */
	bool alive = (w->deg[l->a] || w->conf[l->a].partners) &&
		     (w->deg[l->b] || w->conf[l->b].partners);
	bool missed = l->miss_round + l->miss_conf > 0 && alive;

	if (!slow && !missed)
		return false;
	double v = l->n_conf ? v_conf : v_round;
	*out = (struct pairs_link){
		.rail = w->rail,
		.a = l->a,
		.b = l->b,
		.state = slow ? slow_link(w, l, v_conf, var) : failed_link(l),
		.effect = relative(g, v),
		.z = v / (w->sigma * sqrt(1.0 / (l->n_conf ? l->n_conf : l->n_round) + var)),
		.rounds = l->n_round,
		.confirm = l->n_conf,
		.missed = l->miss_round + l->miss_conf,
	};
	if (!l->n_conf && !l->n_round)
		out->effect = out->z = NAN;
	return true;
}

static int judge_links(struct judge *g, size_t *first)
{
	struct pairs_judgement *j = g->j;

	*first = j->links;
	for (size_t k = 0; k < g->w.links; k++) {
		struct pairs_link one;
		g->w.link[k].suspect = judge_link(g, &g->w.link[k], &one);
		if (!g->w.link[k].suspect)
			continue;
		if (j->links == g->listed_cap) {
			size_t cap = g->listed_cap ? 2 * g->listed_cap : 64;
			struct pairs_link *v = realloc(j->link, cap * sizeof *v);
			if (!v)
				return -ENOMEM;
			j->link = v;
			g->listed_cap = cap;
		}
		j->link[j->links++] = one;
	}
	return 0;
}

/* Two or more failed links that meet in one host are that host's; the host with the most first. */
static void failing_nodes(struct judge *g, size_t first)
{
	struct rail_work *w = &g->w;
	struct pairs_node *node = g->j->node + (size_t)w->rail * w->hosts;

	for (;;) {
		uint32_t *count = w->want, worst = 0;
		memset(count, 0, w->hosts * sizeof *count);
		for (size_t k = first; k < g->j->links; k++) {
			const struct pairs_link *l = &g->j->link[k];
			if (l->state == PAIRS_LINK_FAILED && !l->by_node) {
				count[l->a]++;
				count[l->b]++;
			}
		}
		for (uint32_t i = 1; i < w->hosts; i++)
			if (count[i] > count[worst])
				worst = i;
		if (count[worst] < 2)
			return;
		for (size_t k = first; k < g->j->links; k++) {
			struct pairs_link *l = &g->j->link[k];
			if (l->state == PAIRS_LINK_FAILED && (l->a == worst || l->b == worst))
				l->by_node = true;
		}
		if (node[worst].state < PAIRS_NODE_FAILING)
			node[worst].state = PAIRS_NODE_FAILING;
	}
}

/*
 * Where the slower host decides, a pair with a slow host says nothing of the other one. A good host
 * that lost pairs so gets as many partners again as make three in all.
 * @return how many more it needs
 */
static uint32_t lost_pairs(const struct rail_work *w, const struct pairs_node *node, uint32_t i)
{
	uint32_t lost = 0, seen = w->conf[i].partners;

	for (size_t k = w->off[i]; k < w->off[i + 1]; k++) {
		const struct link_acc *l = &w->link[w->adj[k]];
		if (!l->n_round)
			continue;
		if (node[pairs_other(l, i)].state == PAIRS_NODE_SLOW)
			lost++;
		else
			seen++;
	}
	uint32_t short_of = seen < 3 ? 3 - seen : 0;
	return lost < short_of ? lost : short_of;
}

/* How many good partners each node has still to be measured with. */
static void find_wants(struct judge *g, size_t first)
{
	struct rail_work *w = &g->w;
	const struct pairs_node *node = g->j->node + (size_t)w->rail * w->hosts;

	memset(w->want, 0, w->hosts * sizeof *w->want);
	for (size_t k = first; k < g->j->links; k++) {
		const struct pairs_link *l = &g->j->link[k];
		bool slow = l->rounds + l->confirm > 0;
		if (l->state != PAIRS_LINK_SUSPECT || !slow)
			continue;
		const struct link_acc *acc = pairs_find(w, l->a, l->b);
		if (!end_known(w, acc, l->a) && w->conf[l->a].tried < MAX_TRIED)
			w->want[l->a] = 1;
		if (!end_known(w, acc, l->b) && w->conf[l->b].tried < MAX_TRIED)
			w->want[l->b] = 1;
	}
	for (uint32_t i = 0; i < w->hosts; i++) {
		const struct node_conf *c = &w->conf[i];
		bool dead = node[i].state == PAIRS_NODE_DEAD && !(w->absent && w->absent[i]);
		if (dead && c->tried < 2)
			w->want[i] = 2 - c->tried;
		if (node[i].state == PAIRS_NODE_SUSPECT && c->tried < MAX_TRIED)
			w->want[i] = 2 - c->agree;
		if (node[i].state == PAIRS_NODE_GOOD && !w->want[i] && c->tried < MAX_TRIED)
			w->want[i] = lost_pairs(w, node, i);
	}
}

static int judge_rail(struct judge *g, uint32_t rail, size_t begin, size_t end)
{
	struct rail_work *w = &g->w;
	struct pairs_rail *out = &g->j->rail[rail];
	size_t first;

	w->rail = rail;
	w->link = g->link + begin;
	w->links = end - begin;
	pairs_fit(w);
	out->level = g->o->lower_better ? exp(-w->mu) : exp(w->mu);
	out->sigma = expm1(w->sigma);
	out->links = w->measured;
	out->judged = w->judged;
	judge_nodes(g);
	if (judge_links(g, &first))
		return -ENOMEM;
	failing_nodes(g, first);
	find_wants(g, first);
	return pairs_plan_rail(w, g->j->node + (size_t)rail * w->hosts,
		g->j->link ? g->j->link + first : NULL, g->j->links - first, &g->tasks);
}

static int alloc_all(struct judge *g)
{
	struct rail_work *w = &g->w;
	struct pairs_judgement *j = g->j;
	size_t n = g->in->hosts, all = n * g->in->rails;

	w->off = calloc(n + 1, sizeof *w->off);
	w->adj = calloc(2 * g->links + 1, sizeof *w->adj);
	w->e = calloc(n, sizeof *w->e);
	w->c = calloc(n, sizeof *w->c);
	w->before = calloc(n, sizeof *w->before);
	w->deg = calloc(n, sizeof *w->deg);
	w->used = calloc(n, sizeof *w->used);
	w->out = calloc(n, sizeof *w->out);
	w->conf = calloc(n, sizeof *w->conf);
	w->rank = calloc(n, sizeof *w->rank);
	w->want = calloc(n, sizeof *w->want);
	w->scratch = calloc(2 * g->links + 1, sizeof *w->scratch);
	j->node = calloc(all, sizeof *j->node);
	j->host = calloc(n, sizeof *j->host);
	j->rail = calloc(g->in->rails, sizeof *j->rail);
	j->ranking = calloc(all, sizeof *j->ranking);
	return w->off && w->adj && w->e && w->c && w->before && w->deg && w->used && w->out &&
			       w->conf && w->rank && w->want && w->scratch && j->node && j->host &&
			       j->rail && j->ranking
		       ? 0
		       : -ENOMEM;
}

static void free_work(struct judge *g)
{
	struct rail_work *w = &g->w;

	free(w->off);
	free(w->adj);
	free(w->e);
	free(w->c);
	free(w->before);
	free(w->deg);
	free(w->used);
	free(w->out);
	free(w->conf);
	free(w->rank);
	free(w->want);
	free(w->scratch);
	free(g->link);
	free(g->values);
	free(g->tasks.v);
}

static int run(struct judge *g)
{
	struct pairs_judgement *j = g->j;
	size_t at = 0;

	if (alloc_all(g))
		return -ENOMEM;
	for (uint32_t r = 0; r < j->rails; r++) {
		size_t begin = at;
		while (at < g->links && g->link[at].rail == r)
			at++;
		if (judge_rail(g, r, begin, at))
			return -ENOMEM;
	}
	pairs_compare_rails(g);
	if (pairs_count_hosts(g) || pairs_plan_rounds(&g->tasks, j->hosts, g->o->repeats))
		return -ENOMEM;
	j->task = g->tasks.v;
	j->tasks = g->tasks.n;
	g->tasks.v = NULL;
	j->verdict = pairs_reach_verdict(g);
	pairs_rank(j);
	return 0;
}

int pairs_judge(const struct pairs_opts *o, const struct pairs_input *in, struct pairs_judgement *j,
	struct fb_err *e)
{
	struct pairs_judgement out = {.hosts = in->hosts, .rails = in->rails};
	struct judge g = {.o = o, .in = in, .j = &out};
	int rc = check_opts(o, in, e);

	if (rc)
		return rc;
	rc = pairs_gather(o, in, &g.link, &g.links, &g.values, e);
	if (rc)
		return rc;
	g.w = (struct rail_work){.o = o,
		.hosts = in->hosts,
		.floor = o->lower_better ? log1p(o->floor) : -log1p(-o->floor),
		.group = in->group,
		.absent = in->absent,
		.values = g.values};
	rc = run(&g);
	free_work(&g);
	if (rc) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to judge %u hosts on %u rails",
			in->hosts, in->rails);
		pairs_judgement_free(&out);
		return rc;
	}
	*j = out;
	return 0;
}

void pairs_judgement_free(struct pairs_judgement *j)
{
	free(j->node);
	free(j->host);
	free(j->rail);
	free(j->link);
	free(j->task);
	free(j->ranking);
	*j = (struct pairs_judgement){0};
}
