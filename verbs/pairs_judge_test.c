// SPDX-License-Identifier: Apache-2.0
/*
 * The pairs judge on small, exact fleets: each rule of pairs_judge.h by itself, without noise or
 * with values chosen for the case. The simulated fleets stand in pairs_fleet_test.c.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/stats.h"
#include "verbs/pairs_judge.h"
#include "verbs/pairs_schedule.h"

#define MAX_HOSTS    40
#define MAX_LAUNCHES 20000

/* A fleet whose every pair has one value and one fate. */
struct rig {
	struct pairs_opts o;
	uint32_t hosts, rails, rounds;
	double factor[2][MAX_HOSTS][MAX_HOSTS]; /* [rail][a][b]; 1 is the level */
	enum pairs_state fate[2][MAX_HOSTS][MAX_HOSTS];
	bool fails_once; /* a fate other than measured holds in the rounds alone */
	bool absent[MAX_HOSTS];
	uint32_t group[MAX_HOSTS];
	bool use_absent, use_group;
	struct pairs_measure m[MAX_LAUNCHES];
	size_t n;
	int stages;
	struct pairs_judgement j;
	struct fb_err e;
};

static struct rig *rig_new(uint32_t hosts, uint32_t rails, uint32_t rounds)
{
	struct rig *r = calloc(1, sizeof *r);

	assert_non_null(r);
	r->o = pairs_opts_default(false);
	r->hosts = hosts;
	r->rails = rails;
	r->rounds = rounds;
	for (int k = 0; k < 2; k++)
		for (int a = 0; a < MAX_HOSTS; a++)
			for (int b = 0; b < MAX_HOSTS; b++)
				r->factor[k][a][b] = 1;
	return r;
}

static void set_link(struct rig *r, uint32_t rail, uint32_t a, uint32_t b, double factor)
{
	r->factor[rail][a][b] = r->factor[rail][b][a] = factor;
}

static void set_node(struct rig *r, uint32_t rail, uint32_t a, double factor)
{
	for (uint32_t b = 0; b < r->hosts; b++)
		if (a != b)
			set_link(r, rail, a, b, factor);
}

static void set_fate(struct rig *r, uint32_t rail, uint32_t a, uint32_t b, enum pairs_state s)
{
	r->fate[rail][a][b] = r->fate[rail][b][a] = s;
}

static void kill_node(struct rig *r, uint32_t rail, uint32_t a, enum pairs_state s)
{
	for (uint32_t b = 0; b < r->hosts; b++)
		set_fate(r, rail, a, b, s);
}

static void launch(
	struct rig *r, uint32_t rail, uint32_t a, uint32_t b, uint32_t round, enum pairs_phase p)
{
	enum pairs_state s = r->fate[rail][a][b];

	if (r->fails_once && p == PAIRS_CONFIRM)
		s = PAIRS_MEASURED;
	assert_true(r->n < MAX_LAUNCHES);
	r->m[r->n++] = (struct pairs_measure){a, b, rail, round, p, s,
		s == PAIRS_MEASURED ? 50e9 * r->factor[rail][a][b] : -1, NULL};
}

static void judge(struct rig *r)
{
	struct pairs_input in = {r->hosts, r->rails, r->m, r->n, r->use_group ? r->group : NULL,
		r->use_absent ? r->absent : NULL};

	pairs_judgement_free(&r->j);
	assert_int_equal(pairs_judge(&r->o, &in, &r->j, &r->e), 0);
	assert_int_equal(r->j.account.measured + r->j.account.failed + r->j.account.unreachable +
				 r->j.account.not_run,
		r->hosts);
	assert_int_equal(r->j.account.expected, r->hosts);
}

/* Tasks of one round share no host; rounds come in order. */
static void check_tasks(const struct rig *r)
{
	const struct pairs_judgement *j = &r->j;

	for (size_t k = 0; k < j->tasks; k++) {
		assert_true(j->task[k].a < j->task[k].b && j->task[k].b < r->hosts);
		for (size_t p = 0; p < k; p++) {
			const struct pairs_task *x = &j->task[p], *y = &j->task[k];
			assert_true(x->round <= y->round);
			if (x->round == y->round)
				assert_true(x->a != y->a && x->a != y->b && x->b != y->a &&
					    x->b != y->b);
		}
	}
}

static void run_rounds(struct rig *r)
{
	struct pairs_schedule s;

	assert_int_equal(pairs_schedule_init(&s, r->hosts, r->rails, r->rounds, 0, &r->e), 0);
	for (uint64_t i = 0; i < pairs_schedule_steps(&s); i++) {
		struct pairs_step step = pairs_schedule_step(&s, i);
		for (uint32_t slot = 0; slot < pairs_per_round(r->hosts); slot++) {
			uint32_t a, b;
			pairs_slot(step.round, slot, r->hosts, &a, &b);
			launch(r, step.rail, a, b, step.round, PAIRS_ROUNDS);
		}
	}
}

/* The command's whole loop. */
static void run(struct rig *r)
{
	run_rounds(r);
	for (r->stages = 0;; r->stages++) {
		judge(r);
		check_tasks(r);
		if (r->j.tasks == 0)
			return;
		assert_in_range(r->stages, 0, PAIRS_STAGES - 1);
		for (size_t k = 0; k < r->j.tasks; k++) {
			const struct pairs_task *t = &r->j.task[k];
			launch(r, t->rail, t->a, t->b, t->round, PAIRS_CONFIRM);
		}
	}
}

static enum pairs_node_state node(const struct rig *r, uint32_t rail, uint32_t i)
{
	return r->j.node[rail * r->hosts + i].state;
}

static const struct pairs_link *find_link(
	const struct rig *r, uint32_t rail, uint32_t a, uint32_t b)
{
	for (size_t k = 0; k < r->j.links; k++)
		if (r->j.link[k].rail == rail && r->j.link[k].a == a && r->j.link[k].b == b)
			return &r->j.link[k];
	return NULL;
}

/* No node but `but` stands convicted, failing or dead; no link but `links` of them. */
static void nobody_but(const struct rig *r, uint32_t but, size_t links)
{
	size_t bad = 0;
	for (size_t k = 0; k < r->j.links; k++)
		bad += r->j.link[k].state >= PAIRS_LINK_SUSPECT;
	assert_int_equal(bad, links);
	for (uint32_t i = 0; i < r->hosts * r->rails; i++)
		if (i != but)
			assert_true(r->j.node[i].state <= PAIRS_NODE_UNJUDGED);
}

static void done(struct rig *r)
{
	pairs_judgement_free(&r->j);
	free(r);
}

#define NOBODY UINT32_MAX

/* Identical values: sigma is its floor, z finite, nobody suspected. */
static void all_equal(void **state)
{
	(void)state;
	for (uint32_t n = 3; n <= MAX_HOSTS; n++) {
		struct rig *r = rig_new(n, 1, 3);
		run(r);
		nobody_but(r, NOBODY, 0);
		assert_int_equal(r->stages, 0);
		assert_int_equal(r->j.verdict, PAIRS_FINE);
		assert_int_equal(r->j.account.measured, n);
		assert_true(fabs(r->j.rail[0].level / 50e9 - 1) < 1e-9);
		assert_true(fabs(r->j.rail[0].sigma - 0.005) < 1e-9);
		for (uint32_t i = 0; i < n; i++)
			assert_true(fabs(r->j.node[i].z) < 1e-6);
		done(r);
	}
}

/* Small and odd fleets: one slow node is found and named alone, 3 rounds or all. */
static void slow_node_of_any_fleet(void **state)
{
	(void)state;
	for (uint32_t n = 3; n <= 21; n++)
		for (uint32_t bad = 0; bad < n; bad++)
			for (uint32_t full = 0; full < 2; full++) {
				struct rig *r = rig_new(n, 1, full ? 0 : 3);
				set_node(r, 0, bad, 0.85);
				run(r);
				assert_int_equal(node(r, 0, bad), PAIRS_NODE_SLOW);
				assert_true(fabs(r->j.node[bad].confirmed + 0.15) < 1e-6);
				assert_int_equal(r->j.node[bad].partners, 2);
				nobody_but(r, bad, 0);
				assert_int_equal(r->j.verdict, PAIRS_REJECTED);
				assert_int_equal(r->j.ranking[0], bad);
				done(r);
			}
}

/* The link, not its nodes. */
static void slow_link_of_any_fleet(void **state)
{
	(void)state;
	for (uint32_t n = 3; n <= 17; n++)
		for (uint32_t b = 1; b < n; b++) {
			struct rig *r = rig_new(n, 1, 0);
			set_link(r, 0, 0, b, 0.7);
			run(r);
			const struct pairs_link *l = find_link(r, 0, 0, b);
			assert_non_null(l);
			assert_int_equal(l->state, PAIRS_LINK_SLOW);
			assert_true(fabs(l->effect + 0.3) < 1e-6);
			nobody_but(r, NOBODY, 1);
			assert_int_equal(r->j.verdict, PAIRS_REJECTED);
			done(r);
		}
}

/* Latency: slow is high, and said as it is: plus. */
static void slow_is_high_for_latency(void **state)
{
	struct rig *r = rig_new(16, 1, 3);

	(void)state;
	r->o = pairs_opts_default(true);
	set_node(r, 0, 5, 1.2);
	set_node(r, 0, 6, 0.8); /* fast: no fault */
	set_link(r, 0, 5, 6, 0.96);
	run(r);
	assert_int_equal(node(r, 0, 5), PAIRS_NODE_SLOW);
	assert_true(fabs(r->j.node[5].confirmed - 0.2) < 1e-6);
	assert_true(r->j.node[5].confirmed_z < -3.5);
	nobody_but(r, 5, 0);
	done(r);
}

/* Both the floor and z: 4 % is no fault however still the fleet, 6 % is one. */
static void floor_and_z(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig *r = rig_new(16, 1, 3);
		set_node(r, 0, 3, k ? 0.94 : 0.96);
		run(r);
		assert_int_equal(node(r, 0, 3), k ? PAIRS_NODE_SLOW : PAIRS_NODE_CLEARED);
		assert_int_equal(r->j.verdict, k ? PAIRS_REJECTED : PAIRS_FINE);
		done(r);
	}
	/* z: 8 % below is nothing where launches differ by 10 %. */
	struct rig *r = rig_new(16, 1, 3);
	struct fb_rng rng;
	fb_rng_seed(&rng, 5, 5);
	for (uint32_t a = 0; a < 16; a++)
		for (uint32_t b = 0; b < a; b++)
			set_link(r, 0, a, b,
				exp(0.1 * fb_rng_normal(&rng)) * (a == 9 || b == 9 ? 0.92 : 1));
	run(r);
	assert_true(node(r, 0, 9) < PAIRS_NODE_SUSPECT);
	done(r);
}

/* Rounds alone convict nobody. */
static void only_confirmation_convicts(void **state)
{
	struct rig *r = rig_new(16, 1, 0);

	(void)state;
	set_node(r, 0, 3, 0.5);
	run_rounds(r);
	judge(r);
	assert_int_equal(node(r, 0, 3), PAIRS_NODE_SUSPECT);
	assert_int_equal(r->j.verdict, PAIRS_INCOMPLETE);
	assert_int_equal(r->j.tasks, 2 * r->o.repeats);
	for (size_t k = 0; k < r->j.tasks; k++)
		assert_true(r->j.task[k].a == 3 || r->j.task[k].b == 3);
	/* And it clears: the fault was gone when it was looked at again. */
	for (uint32_t b = 0; b < 16; b++)
		set_link(r, 0, 3, b, 1);
	for (size_t k = 0; k < r->j.tasks; k++)
		launch(r, 0, r->j.task[k].a, r->j.task[k].b, r->j.task[k].round, PAIRS_CONFIRM);
	judge(r);
	assert_int_equal(node(r, 0, 3), PAIRS_NODE_CLEARED);
	done(r);
}

static void two_slow_nodes_and_a_link(void **state)
{
	struct rig *r = rig_new(24, 1, 0);

	(void)state;
	set_node(r, 0, 3, 0.85);
	set_node(r, 0, 17, 0.9);
	set_link(r, 0, 3, 17, 0.85 * 0.9);
	set_link(r, 0, 8, 9, 0.7);
	run(r);
	assert_int_equal(node(r, 0, 3), PAIRS_NODE_SLOW);
	assert_int_equal(node(r, 0, 17), PAIRS_NODE_SLOW);
	assert_int_equal(find_link(r, 0, 8, 9)->state, PAIRS_LINK_SLOW);
	for (uint32_t i = 0; i < 24; i++)
		if (i != 3 && i != 17)
			assert_true(node(r, 0, i) <= PAIRS_NODE_CLEARED);
	assert_int_equal(r->j.ranking[0], 3);
	assert_int_equal(r->j.ranking[1], 17);
	done(r);
}

/* Two hosts: measured, but nothing to compare with. */
static void two_hosts(void **state)
{
	struct rig *r = rig_new(2, 1, 3);

	(void)state;
	run(r);
	assert_int_equal(r->j.verdict, PAIRS_UNJUDGED);
	assert_int_equal(node(r, 0, 0), PAIRS_NODE_UNJUDGED);
	assert_int_equal(r->j.account.measured, 2);
	assert_true(fabs(r->j.rail[0].level / 50e9 - 1) < 1e-9);
	done(r);
	r = rig_new(2, 1, 3);
	set_fate(r, 0, 0, 1, PAIRS_FAILED);
	run(r);
	assert_int_equal(r->j.verdict, PAIRS_INCOMPLETE);
	assert_int_equal(r->j.account.failed, 2);
	assert_true(isnan(r->j.rail[0].level));
	done(r);
}

/* A failed pair is that pair's result: tried again, and either flaky or failed; its hosts are fine.
 */
static void failed_pair(void **state)
{
	(void)state;
	for (int once = 0; once < 2; once++) {
		struct rig *r = rig_new(12, 1, 0);
		set_fate(r, 0, 4, 7, PAIRS_FAILED);
		r->fails_once = once;
		run(r);
		const struct pairs_link *l = find_link(r, 0, 4, 7);
		assert_non_null(l);
		assert_int_equal(l->state, once ? PAIRS_LINK_FLAKY : PAIRS_LINK_FAILED);
		assert_int_equal(l->missed, once ? 1 : 1 + r->o.repeats);
		nobody_but(r, NOBODY, once ? 0 : 1);
		assert_int_equal(r->j.account.measured, 12);
		assert_int_equal(r->j.verdict, once ? PAIRS_FINE : PAIRS_REJECTED);
		done(r);
	}
}

/* A dead host is unreachable; nobody else is blamed for its pairs. */
static void dead_host(void **state)
{
	(void)state;
	for (uint32_t n = 4; n <= 17; n++)
		for (int how = 0; how < 3; how++) {
			struct rig *r = rig_new(n, 1, 3);
			kill_node(r, 0, 2, how == 1 ? PAIRS_UNREACHABLE : PAIRS_FAILED);
			r->use_absent = r->absent[2] = how == 2;
			run(r);
			assert_int_equal(node(r, 0, 2), PAIRS_NODE_DEAD);
			assert_int_equal(r->j.host[2].state, PAIRS_UNREACHABLE);
			assert_int_equal(r->j.account.unreachable, 1);
			assert_int_equal(r->j.account.measured, n - 1);
			assert_int_equal(r->j.verdict, PAIRS_INCOMPLETE);
			assert_int_equal(r->j.links, 0);
			assert_int_equal(r->stages, how == 2 ? 0 : 1);
			nobody_but(r, 2, 0);
			done(r);
		}
}

/* One that missed the rounds, and answers when tried again, is measured after all. */
static void late_host(void **state)
{
	struct rig *r = rig_new(12, 1, 3);

	(void)state;
	kill_node(r, 0, 2, PAIRS_UNREACHABLE);
	r->fails_once = true;
	set_node(r, 0, 2, 0.8);
	run(r);
	assert_int_equal(r->j.host[2].state, PAIRS_MEASURED);
	assert_int_equal(node(r, 0, 2), PAIRS_NODE_SLOW);
	assert_int_equal(r->j.account.measured, 12);
	done(r);
}

/* Measured with some, failing with others again and again: the common host, not each link. */
static void failing_host(void **state)
{
	struct rig *r = rig_new(16, 1, 0);

	(void)state;
	for (uint32_t b = 6; b < 10; b++)
		set_fate(r, 0, 5, b, PAIRS_FAILED);
	run(r);
	assert_int_equal(node(r, 0, 5), PAIRS_NODE_FAILING);
	assert_int_equal(r->j.links, 4);
	for (size_t k = 0; k < r->j.links; k++)
		assert_true(r->j.link[k].state == PAIRS_LINK_FAILED && r->j.link[k].by_node);
	for (uint32_t i = 0; i < 16; i++)
		if (i != 5)
			assert_int_equal(node(r, 0, i), PAIRS_NODE_GOOD);
	assert_int_equal(r->j.verdict, PAIRS_REJECTED);
	done(r);
}

/* Hosts of every kind add up. */
static void account_adds_up(void **state)
{
	struct rig *r = rig_new(10, 1, 0);

	(void)state;
	kill_node(r, 0, 1, PAIRS_FAILED);      /* several good hosts failed with it */
	kill_node(r, 0, 2, PAIRS_UNREACHABLE); /* no connection */
	kill_node(r, 0, 3, PAIRS_NOT_RUN);
	for (uint32_t b = 0; b < 10; b++) /* one try alone, which failed: can be either side */
		set_fate(r, 0, 4, b, b == 0 ? PAIRS_FAILED : PAIRS_NOT_RUN);
	run_rounds(r);
	judge(r);
	assert_int_equal(r->j.account.unreachable, 2);
	assert_int_equal(r->j.account.not_run, 1);
	assert_int_equal(r->j.account.failed, 1);
	assert_int_equal(r->j.account.measured, 6);
	assert_int_equal(r->j.host[4].state, PAIRS_FAILED);
	assert_int_equal(r->j.host[3].worst, PAIRS_NODE_NOT_RUN);
	assert_int_equal(r->j.verdict, PAIRS_INCOMPLETE);
	done(r);
}

/* Rails are judged each by itself; a host is as bad as its worst; a rail off level is only said. */
static void rails(void **state)
{
	struct rig *r = rig_new(16, 2, 3);

	(void)state;
	for (uint32_t a = 0; a < 16; a++)
		for (uint32_t b = 0; b < a; b++)
			set_link(r, 1, a, b, 0.5);
	set_node(r, 1, 7, 0.4);
	run(r);
	assert_int_equal(node(r, 0, 7), PAIRS_NODE_GOOD);
	assert_int_equal(node(r, 1, 7), PAIRS_NODE_SLOW);
	assert_true(fabs(r->j.node[16 + 7].confirmed + 0.2) < 1e-6);
	assert_int_equal(r->j.host[7].worst, PAIRS_NODE_SLOW);
	assert_int_equal(r->j.host[8].worst, PAIRS_NODE_GOOD);
	assert_false(r->j.rail[0].off_level);
	assert_true(r->j.rail[1].off_level);
	nobody_but(r, 16 + 7, 0);
	done(r);
	/* One rail of a living host is dead: a finding, not a missing host. */
	r = rig_new(16, 2, 3);
	kill_node(r, 1, 4, PAIRS_FAILED);
	run(r);
	assert_int_equal(node(r, 1, 4), PAIRS_NODE_DEAD);
	assert_int_equal(r->j.account.measured, 16);
	assert_int_equal(r->j.verdict, PAIRS_REJECTED);
	done(r);
}

/* The two confirming partners sit in two racks, neither of them the suspect's. */
static void partners_of_other_racks(void **state)
{
	struct rig *r = rig_new(32, 1, 3);
	uint32_t seen[2] = {0, 0}, n = 0;

	(void)state;
	r->use_group = true;
	for (uint32_t i = 0; i < 32; i++)
		r->group[i] = i / 8;
	set_node(r, 0, 9, 0.8);
	run_rounds(r);
	judge(r);
	for (size_t k = 0; k < r->j.tasks && n < 2; k++) {
		uint32_t g = r->j.task[k].a == 9 ? r->j.task[k].b : r->j.task[k].a;
		seen[n++] = r->group[g];
	}
	assert_int_equal(n, 2);
	assert_true(seen[0] != seen[1] && seen[0] != 1 && seen[1] != 1);
	done(r);
}

/* The order of measurements is no matter. */
static void order_is_no_matter(void **state)
{
	struct rig *r = rig_new(30, 1, 3);
	struct fb_rng rng;
	struct pairs_judgement first;

	(void)state;
	fb_rng_seed(&rng, 11, 3);
	for (uint32_t a = 0; a < 30; a++)
		for (uint32_t b = 0; b < a; b++)
			set_link(r, 0, a, b, exp(0.03 * fb_rng_normal(&rng)));
	set_node(r, 0, 4, 0.8);
	run(r);
	first = r->j;
	r->j = (struct pairs_judgement){0};
	for (int turn = 0; turn < 5; turn++) {
		for (size_t k = r->n - 1; k > 0; k--) {
			size_t o = fb_rng_u32(&rng) % (k + 1);
			struct pairs_measure t = r->m[k];
			r->m[k] = r->m[o];
			r->m[o] = t;
			t = r->m[k];
			r->m[k].a = t.b;
			r->m[k].b = t.a;
		}
		judge(r);
		for (uint32_t i = 0; i < 30; i++) {
			assert_int_equal(r->j.node[i].state, first.node[i].state);
			assert_int_equal(r->j.ranking[i], first.ranking[i]);
			assert_memory_equal(&r->j.node[i].z, &first.node[i].z, sizeof(double));
		}
	}
	pairs_judgement_free(&first);
	done(r);
}

/* Whatever happens to a fleet, the loop ends, everybody is accounted for, and a healthy one is
 * fine. */
static void any_fate_ends(void **state)
{
	struct fb_rng rng;

	(void)state;
	fb_rng_seed(&rng, 4, 4);
	for (int turn = 0; turn < 400; turn++) {
		uint32_t n = 2 + fb_rng_u32(&rng) % 20, nr = 1 + fb_rng_u32(&rng) % 2;
		struct rig *r = rig_new(n, nr, fb_rng_u32(&rng) % 5);
		double ill = turn % 4 * 0.15;

		r->use_group = turn % 3 == 0;
		r->fails_once = turn % 5 == 0;
		for (uint32_t a = 0; a < n; a++) {
			r->group[a] = fb_rng_u32(&rng) % 3;
			for (uint32_t b = 0; b < a; b++)
				for (uint32_t k = 0; k < nr; k++) {
					set_link(r, k, a, b, exp(0.01 * fb_rng_normal(&rng)));
					if (fb_rng_uniform(&rng) >= ill)
						continue;
					set_link(r, k, a, b, 0.3 + fb_rng_uniform(&rng));
					set_fate(r, k, a, b, fb_rng_u32(&rng) % 4);
				}
		}
		run(r);
		/* One round of an odd count leaves a host unmeasured, which is said. */
		if (ill == 0 && !(n % 2 && r->rounds == 1))
			assert_true(r->j.verdict <= PAIRS_UNJUDGED);
		for (size_t k = 0; k < r->j.links; k++)
			assert_true(r->j.link[k].a < r->j.link[k].b && r->j.link[k].b < n);
		done(r);
	}
}

/* What is no number is a failure, not a value. */
static void no_number_is_a_failure(void **state)
{
	static const double bad[] = {0, -1, NAN, INFINITY, -INFINITY};

	(void)state;
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		struct rig *r = rig_new(8, 1, 0);
		run_rounds(r);
		r->m[0].value = bad[k];
		judge(r);
		assert_int_equal(r->j.links, 1);
		assert_int_equal(r->j.link[0].missed, 1);
		assert_int_equal(r->j.rail[0].links, 27);
		done(r);
	}
}

static void refuses_by_name(void **state)
{
	(void)state;
	for (int k = 0; k < 9; k++) {
		struct rig *r = rig_new(4, 1, 0);
		run_rounds(r);
		switch (k) {
		case 0: r->m[1].a = 4; break;
		case 1: r->m[1].rail = 1; break;
		case 2: r->m[1].b = r->m[1].a; break;
		case 3: r->o.floor = 0; break;
		case 4: r->o.z = NAN; break;
		case 5: r->o.repeats = 0; break;
		case 6: r->o.sigma_min = 0; break;
		case 7: r->hosts = 0; break;
		default: r->rails = 0; break;
		}
		struct pairs_input in = {r->hosts, r->rails, r->m, r->n, NULL, NULL};
		assert_int_equal(pairs_judge(&r->o, &in, &r->j, &r->e), -EINVAL);
		assert_int_equal(r->e.exit, FB_EXIT_USAGE);
		assert_true(strlen(r->e.msg) > 10);
		assert_null(r->j.node);
		done(r);
	}
}

/* Nothing was run: everybody is accounted for, nobody is accepted. */
static void nothing_run(void **state)
{
	struct rig *r = rig_new(4, 1, 0);

	(void)state;
	judge(r);
	assert_int_equal(r->j.account.not_run, 4);
	assert_int_equal(r->j.verdict, PAIRS_INCOMPLETE);
	assert_int_equal(r->j.tasks, 0);
	done(r);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(pairs_node_state_name(PAIRS_NODE_SLOW), "slow");
	assert_string_equal(pairs_node_state_name(PAIRS_NODE_DEAD), "dead");
	assert_string_equal(pairs_link_state_name(PAIRS_LINK_SLOW), "slow");
	assert_string_equal(pairs_link_state_name(PAIRS_LINK_FLAKY), "flaky");
	assert_string_equal(pairs_verdict_name(PAIRS_REJECTED), "rejected");
	assert_string_equal(pairs_verdict_name((enum pairs_verdict)9), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_equal),
		cmocka_unit_test(slow_node_of_any_fleet),
		cmocka_unit_test(slow_link_of_any_fleet),
		cmocka_unit_test(slow_is_high_for_latency),
		cmocka_unit_test(floor_and_z),
		cmocka_unit_test(only_confirmation_convicts),
		cmocka_unit_test(two_slow_nodes_and_a_link),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(failed_pair),
		cmocka_unit_test(dead_host),
		cmocka_unit_test(late_host),
		cmocka_unit_test(failing_host),
		cmocka_unit_test(account_adds_up),
		cmocka_unit_test(rails),
		cmocka_unit_test(partners_of_other_racks),
		cmocka_unit_test(order_is_no_matter),
		cmocka_unit_test(any_fate_ends),
		cmocka_unit_test(no_number_is_a_failure),
		cmocka_unit_test(refuses_by_name),
		cmocka_unit_test(nothing_run),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
