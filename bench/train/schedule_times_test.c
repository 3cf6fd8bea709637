// SPDX-License-Identifier: Apache-2.0
/*
 * Times on schedules: between what must be and what can be, for every strategy; the recurrences of
 * FSDP with and without replicas, worked out apart; the compute thread's rules on small cases.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/train/schedule_rig.h"

/* ---- times ----------------------------------------------------------------------------------- */

struct played {
	struct schedule s;
	double *compute, *bytes;
	struct sched_times t;
};

/* A cheap generator with a seed; in [0, 1). */
static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 40) / (double)(1 << 24);
}

static void play(const struct step_config *c, const struct sched_machine *m, struct played *p)
{
	struct fb_err e = {0};
	if (schedule_times(&p->s, m, p->compute, p->bytes, &p->t, &e) != 0)
		fail_msg("%s: %s", c->strategy.name, e.msg);
}

/* Times of compute tasks up to `compute`, bytes up to `bytes`; a release takes none. */
static void prepare(
	const struct step_config *c, double compute, double bytes, uint64_t seed, struct played *p)
{
	build(c, &p->s);
	p->compute = calloc((size_t)p->s.n, sizeof(double));
	p->bytes = calloc((size_t)p->s.n, sizeof(double));
	assert_true(p->compute && p->bytes);
	for (int i = 0; i < p->s.n; i++) {
		const struct sched_task *t = &p->s.v[i];
		bool moves = t->queue != SCHED_COMPUTE;
		if (moves && t->queue != SCHED_Q_STORAGE)
			p->bytes[i] = bytes * draw(&seed);
		else if (t->op != SCHED_RELEASE)
			p->compute[i] = (moves ? bytes : compute) * draw(&seed);
	}
}
static void drop(struct played *p)
{
	schedule_free(&p->s);
	schedule_times_free(&p->t);
	free(p->compute);
	free(p->bytes);
}

static void sums(const struct played *p, double *compute, double *others)
{
	*compute = *others = 0;
	for (int i = 0; i < p->s.n; i++) {
		double ns = p->t.end[i] - p->t.start[i];
		*(p->s.v[i].queue == SCHED_COMPUTE ? compute : others) += ns;
	}
}
static double exposed(const struct played *p)
{
	double ns = 0;
	for (int i = 0; i < SCHED_OP_COUNT; i++)
		ns += p->t.exposed_ns[i];
	return ns;
}
#define assert_near(a, b)                                               \
	do {                                                            \
		double a_ = (a), b_ = (b);                              \
		if (fabs(a_ - b_) > 1e-9 * (1 + fabs(b_)))              \
			fail_msg("%s is %.12g, not %.12g", #a, a_, b_); \
	} while (0)

static void stays_within_its_sums(const struct step_config *c)
{
	if (c->recompute == TR_RECOMPUTE_SELECTIVE)
		return;
	for (int m = 0; m < 8; m++) {
		struct sched_machine machine = {
			.latency_ns = 3, .ns_per_byte = 1, .shared_link = m & 1};
		machine.polls_between_tasks_only = m / 2 == 1;
		machine.poll_ns = m / 2 == 2 ? 7 : 0;
		machine.copies_inline = m / 2 == 3;
		struct played p;
		double compute, others, longest = 0, lane[SCHED_QUEUE_COUNT] = {0};
		prepare(c, 100, 100, (uint64_t)m + 1, &p);
		play(c, &machine, &p);
		sums(&p, &compute, &others);
		for (int i = 0; i < p.s.n; i++) {
			lane[p.s.v[i].queue] += p.t.end[i] - p.t.start[i];
			for (int w = 0; w < SCHED_MAX_WAITS; w++)
				assert_true(p.s.v[i].waits[w] < 0 ||
					    p.t.end[p.s.v[i].waits[w]] <= p.t.start[i]);
		}
		for (int q = 0; q < SCHED_QUEUE_COUNT; q++)
			longest = fmax(longest, lane[q]);
		assert_near(p.t.compute_ns, compute);
		assert_true(p.t.step_ns >= longest - 1e-6);
		assert_true(p.t.step_ns <= compute + others + 1e-6);
		if (!machine.copies_inline)
			assert_near(p.t.compute_ns + exposed(&p), p.t.step_ns);
		if (!c->overlap && !machine.copies_inline)
			assert_near(p.t.step_ns, compute + others);
		drop(&p);
	}
}

static void a_step_lasts_between_its_longest_queue_and_the_sum(void **state)
{
	every(3, stays_within_its_sums);
}

static void has_limits(const struct step_config *c)
{
	struct sched_machine m = {.ns_per_byte = 1};
	struct played p;
	double compute = 0, others = 0;
	prepare(c, 100, 0, 5, &p); /* nothing to move */
	play(c, &m, &p);
	for (int i = 0; i < p.s.n; i++)
		compute += p.compute[i];
	assert_near(p.t.step_ns, compute);
	assert_near(exposed(&p), 0);
	drop(&p);
	prepare(c, 0, 100, 5, &p); /* nothing to compute, one link that is never idle */
	m.shared_link = true;
	play(c, &m, &p);
	for (int i = 0; i < p.s.n; i++)
		others += p.bytes[i] + p.compute[i];
	if (c->strategy.kind != STRATEGY_OFFLOAD || !c->overlap)
		assert_near(p.t.step_ns, others);
	assert_near(exposed(&p), p.t.step_ns);
	drop(&p);
}

static void without_a_network_it_computes_and_without_compute_it_sends(void **state)
{
	every(3, has_limits);
}

static void grows_with_each(const struct step_config *c)
{
	if (c->recompute || c->offload_params || c->offload_file)
		return;
	const struct sched_machine m = {.latency_ns = 2, .ns_per_byte = 1};
	struct played p;
	prepare(c, 60, 60, 9, &p);
	play(c, &m, &p);
	double before = p.t.step_ns;
	for (int i = 0; i < p.s.n; i++) {
		double *v = p.s.v[i].queue == SCHED_COMPUTE || p.s.v[i].queue == SCHED_Q_STORAGE
				    ? &p.compute[i]
				    : &p.bytes[i];
		schedule_times_free(&p.t);
		*v += 10;
		play(c, &m, &p);
		assert_true(p.t.step_ns >= before - 1e-9 && p.t.step_ns <= before + 10 + 1e-9);
		*v -= 10;
	}
	for (int op = 0; op < SCHED_OP_COUNT; op++) {
		struct sched_machine slow = m;
		slow.add_ns[op] = 10;
		slow.factor[op] = 2;
		schedule_times_free(&p.t);
		play(c, &slow, &p);
		assert_true(p.t.step_ns >= before - 1e-9);
	}
	drop(&p);
}

static void a_step_grows_with_each_of_its_parts(void **state)
{
	every(3, grows_with_each);
}

/* Gathered blocks alive from the gather's start to the release, whatever tasks take. */
static void keeps_two_alive(const struct step_config *c)
{
	const struct sched_machine m = {.latency_ns = 2, .ns_per_byte = 1};
	int most = c->strategy.keep_gathered ? (int)c->model.layers : 2;
	struct played p;
	if (!c->strategy.shard_params || c->recompute)
		return;
	prepare(c, 50, 50, (uint64_t)c->micro_batches, &p);
	play(c, &m, &p);
	for (int i = 0; i < p.s.n; i++) {
		int alive = 0;
		if (p.s.v[i].op != SCHED_GATHER)
			continue;
		for (int j = 0; j < p.s.n; j++) {
			const struct sched_task *t = &p.s.v[j];
			bool block = t->unit >= 0 && t->unit < c->model.layers;
			alive += block && t->op == SCHED_GATHER && p.t.start[j] <= p.t.start[i];
			alive -= block && t->op == SCHED_RELEASE && p.t.end[j] <= p.t.start[i];
		}
		assert_true(alive <= most);
	}
	drop(&p);
}

static void at_most_two_gathered_blocks_are_alive_at_any_time(void **state)
{
	every(12, keeps_two_alive);
}

/* ---- recurrences worked out apart ------------------------------------------------------------ */

#define MOST_LAYERS 4
struct times_of {
	double gr, g[2 * MOST_LAYERS], e, f[MOST_LAYERS], h, b[MOST_LAYERS], eb;
	double r[MOST_LAYERS], rr, a[MOST_LAYERS + 1], u[MOST_LAYERS + 1];
};

/* training.md 6.5 with a root unit: its gather first, its reduction last. g: of the forward gathers
 * in order, then of the backward ones of layers-2 down to 0. a: all-reduces of hybrid. */
static double recurrence(const struct times_of *x, int L, bool hybrid)
{
	double A[2 * MOST_LAYERS], freed[2 * MOST_LAYERS], F, R = 0, H = 0, prev = x->gr;
	double buffer[2] = {0, 0}, reduced[MOST_LAYERS + 1];
	F = x->gr + x->e;
	int n = 0;
	for (int i = 0; i < L; i++, n++) {
		A[n] = fmax(prev, n >= 2 ? freed[n - 2] : 0) + x->g[n];
		prev = A[n];
		F = fmax(F, A[n]) + x->f[i];
		freed[n] = F; /* of the last one again, below */
	}
	double B = F + x->h;
	for (int i = L - 1; i >= 0; i--) {
		if (i < L - 1) {
			A[n] = fmax(prev, freed[n - 2]) + x->g[n];
			prev = A[n];
			B = fmax(B, A[n++]);
		}
		B = fmax(B, buffer[i % 2]) + x->b[i];
		freed[n - 1] = B;
		R = fmax(R, B) + x->r[i];
		H = fmax(H, R) + x->a[i];
		buffer[i % 2] = R;
		reduced[i] = hybrid ? H : R;
	}
	B += x->eb;
	R = fmax(R, B) + x->rr;
	H = fmax(H, R) + x->a[L];
	reduced[L] = hybrid ? H : R;
	for (int i = 0; i <= L; i++)
		B = fmax(B, reduced[i]) + x->u[i];
	return B;
}

/* Put the recurrence's inputs onto the list's tasks. */
static void put_times(const struct times_of *x, int L, struct played *p)
{
	int gathers = 0;
	for (int i = 0; i < p->s.n; i++) {
		const struct sched_task *t = &p->s.v[i];
		bool root = t->unit == L;
		switch (t->op) {
		case SCHED_GATHER: p->bytes[i] = root ? x->gr : x->g[gathers++]; break;
		case SCHED_EMBED_FWD: p->compute[i] = x->e; break;
		case SCHED_FWD: p->compute[i] = x->f[t->unit]; break;
		case SCHED_HEAD: p->compute[i] = x->h; break;
		case SCHED_BWD: p->compute[i] = x->b[t->unit]; break;
		case SCHED_EMBED_BWD: p->compute[i] = x->eb; break;
		case SCHED_REDUCE_SCATTER: p->bytes[i] = root ? x->rr : x->r[t->unit]; break;
		case SCHED_ALL_REDUCE: p->bytes[i] = x->a[t->unit]; break;
		case SCHED_UPDATE: p->compute[i] = x->u[t->unit]; break;
		default: break;
		}
	}
}

static double listed(const struct times_of *x, int L, bool hybrid)
{
	const struct sched_machine m = {.ns_per_byte = 1};
	struct step_config c = config(hybrid ? "hybrid:2" : "zero3", 4, L, 1);
	struct played p;
	prepare(&c, 0, 0, 1, &p);
	put_times(x, L, &p);
	play(&c, &m, &p);
	double ns = p.t.step_ns;
	drop(&p);
	return ns;
}

static void random_steps_follow_the_recurrence(void **state)
{
	uint64_t seed = 11;
	for (int i = 0; i < 3000; i++) {
		struct times_of x;
		double *v = (double *)&x, scale = draw(&seed) * 4;
		for (size_t k = 0; k < sizeof(x) / sizeof(double); k++)
			v[k] = draw(&seed);
		for (int k = 0; k < 2 * MOST_LAYERS; k++)
			x.g[k] *= scale;
		int L = 1 + i % MOST_LAYERS;
		assert_near(listed(&x, L, i & 1), recurrence(&x, L, i & 1));
	}
}

static void worked_examples_come_out(void **state)
{
	/* Three layers, gathers of 4 beside compute of 10 and 20, reductions of 6: only the root's
	 * gather and the first one, and the root's reduction, are exposed.
	 *   gathers end at 2, 6, 10, and 20 (the slot of block 0 is free at 16), 30
	 *   forward: embed 2..3, blocks 6..16, 16..26, 26..36; head 36..41
	 *   backward: 41..61, 61..81, 81..101, embed 101..102; the root's reduction 107..109
	 *   (that of block 0 ends at 107); updates of 1: 107..110, then the root's 110..111 */
	struct times_of x = {.gr = 2,
		.g = {4, 4, 4, 4, 4},
		.e = 1,
		.f = {10, 10, 10},
		.h = 5,
		.b = {20, 20, 20},
		.eb = 1,
		.r = {6, 6, 6},
		.rr = 2,
		.u = {1, 1, 1, 1}};
	assert_near(listed(&x, 3, false), 111);
	/* The network bounds: gathers of 30.
	 *   gathers end at 2, 32, 62, 92 (slot free at 42), 122 (72), 157 (the last block's slot is
	 *   free after its backward, at 127)
	 *   forward 32..42, 62..72, 92..102; head ..107; backward 2: 107..127, 1: 127..147,
	 *   0: 157..177; embed 178; reductions 133, 153, 183, 185; updates 183..186, 187 */
	for (int i = 0; i < 5; i++)
		x.g[i] = 30;
	assert_near(listed(&x, 3, false), 187);
	/* Reductions of 50 hold block 0's backward up: its buffer is block 2's.
	 *   backward 2: 107..127, reduced 177; 1: 127..147, reduced 227; 0: 177..197, reduced 277;
	 *   embed ..198; root's 277..279; updates 277..280, 281 */
	for (int i = 0; i < 3; i++)
		x.r[i] = 50;
	assert_near(listed(&x, 3, false), 281);
	/* The same two-hop: all-reduces of 60, whose buffers are free after the scatter, begin at
	 * 177 and are one long chain of four until 417; updates 357, when block 0's ends, to 360,
	 * and 417..418. */
	for (int i = 0; i < 4; i++)
		x.a[i] = 60;
	assert_near(listed(&x, 3, true), 418);
}

/* ---- the rules of the compute thread --------------------------------------------------------- */

static void a_shared_link_serves_who_came_first(void **state)
{
	/* One layer: gathers of the root (10) and the block (20) one after the other; scatter of
	 * the block (40) from 36 to 76, the root's, asked for at 38, from 76 on. Shared or not is
	 * the same. Hybrid shares: the block's all-reduce (halves of 15, latency 1) asks for the
	 * link at 77, right after the root's scatter has. */
	struct times_of x = {.gr = 10,
		.g = {20},
		.e = 1,
		.f = {2},
		.h = 1,
		.b = {3},
		.eb = 2,
		.r = {40},
		.rr = 5,
		.a = {30, 2},
		.u = {1, 1}};
	struct step_config c = config("hybrid:2", 4, 1, 1);
	struct sched_machine m = {.latency_ns = 1, .ns_per_byte = 1, .shared_link = true};
	struct played p;
	prepare(&c, 0, 0, 1, &p);
	put_times(&x, 1, &p);
	play(&c, &m, &p);
	/* root gathered 11, block 11..32 */
	int scatter = find(&p.s, SCHED_REDUCE_SCATTER, 0, 0);
	int root = find(&p.s, SCHED_REDUCE_SCATTER, 1, 0);
	int reduce = find(&p.s, SCHED_ALL_REDUCE, 0, 0);
	int last = find(&p.s, SCHED_ALL_REDUCE, 1, 0);
	assert_near(p.t.start[scatter], 38); /* 32 + 2 + 1 + 3 */
	assert_near(p.t.end[scatter], 79);
	assert_near(p.t.start[root], 79);
	assert_near(p.t.end[root], 85); /* the link until 84 */
	assert_near(p.t.start[reduce], 79);
	assert_near(p.t.end[reduce], 116); /* 84..99, 100..115, and the latency of each */
	assert_near(p.t.start[last], 116);
	assert_near(p.t.end[last], 120);
	m.factor[SCHED_REDUCE_SCATTER] = 2;
	m.add_ns[SCHED_REDUCE_SCATTER] = 7;
	schedule_times_free(&p.t);
	play(&c, &m, &p);
	assert_near(p.t.end[scatter], 38 + 80 + 1 + 7);
	drop(&p);
}

static void ends_are_seen_when_the_compute_thread_looks(void **state)
{
	/* Two layers, ddp: backward of block 1 (10 long) then of block 0 (25), all-reduces of 4. */
	struct times_of x = {.e = 1,
		.f = {2, 2},
		.h = 5,
		.b = {25, 10},
		.eb = 1,
		.a = {4, 4, 4},
		.u = {1, 1, 1}};
	struct step_config c = config("ddp", 2, 2, 1);
	struct sched_machine m = {.latency_ns = 1, .ns_per_byte = 1};
	struct played p;
	prepare(&c, 0, 0, 1, &p);
	put_times(&x, 2, &p);
	int a1 = find(&p.s, SCHED_ALL_REDUCE, 1, 0), a0 = find(&p.s, SCHED_ALL_REDUCE, 0, 0);
	play(&c, &m, &p);
	assert_near(p.t.start[a1], 20); /* 1 + 2 + 2 + 5 + 10 */
	assert_near(p.t.end[a1], 26);   /* twice half of 4 and 1 */
	assert_near(p.t.start[a0], 45);
	schedule_times_free(&p.t);
	m.poll_ns = 10; /* looks at 30, 40, and 45 when the task ends */
	play(&c, &m, &p);
	assert_near(p.t.end[a1], 40); /* the second half begins at 30 only */
	assert_near(p.t.start[a0], 45);
	schedule_times_free(&p.t);
	m.add_ns[SCHED_ALL_REDUCE] = 3; /* from 40 to 43, seen at 45 */
	play(&c, &m, &p);
	assert_near(p.t.end[a1], 45);
	schedule_times_free(&p.t);
	m.add_ns[SCHED_ALL_REDUCE] = 0;
	m.poll_ns = 0;
	m.polls_between_tasks_only = true;
	play(&c, &m, &p);
	assert_near(p.t.start[a1], 20);
	/* the first half is seen at 45; the second, until 48, ends while the embedding's backward
	 * (45..46) is over and the thread stands still */
	assert_near(p.t.end[a1], 48);
	assert_near(p.t.start[a0], 48);
	assert_near(p.t.step_ns, 48 + 6 + 6 + 1);
	drop(&p);
}

static void copies_of_the_compute_thread_hold_it_up(void **state)
{
	struct step_config c = config("offload", 2, 2, 1);
	struct sched_machine m = {.ns_per_byte = 1};
	struct played p;
	prepare(&c, 0, 0, 1, &p);
	for (int i = 0; i < p.s.n; i++)
		p.compute[i] = p.s.v[i].op == SCHED_UPDATE      ? 10
			       : p.s.v[i].op == SCHED_GRADS_OUT ? 3
			       : p.s.v[i].op == SCHED_PARAMS_IN ? 4
								: 0;
	play(&c, &m, &p);
	/* the first gradients, three updates, the last parameters; the rest beside the updates */
	assert_near(p.t.step_ns, 3 + 30 + 4);
	assert_near(p.t.exposed_ns[SCHED_STATE_IN] + p.t.exposed_ns[SCHED_GRADS_OUT], 3);
	assert_near(p.t.exposed_ns[SCHED_PARAMS_IN], 4);
	schedule_times_free(&p.t);
	m.copies_inline = true;
	play(&c, &m, &p);
	assert_near(p.t.step_ns, 30 + 3 * 3 + 3 * 4);
	drop(&p);
}

static void exposed_time_is_what_overlap_hides(void **state)
{
	struct times_of x = {.gr = 2,
		.g = {4, 4, 4, 4, 4},
		.e = 1,
		.f = {10, 10, 10},
		.h = 5,
		.b = {20, 20, 20},
		.eb = 1,
		.r = {6, 6, 6},
		.rr = 2,
		.u = {1, 1, 1, 1}};
	const struct sched_machine m = {.ns_per_byte = 1};
	struct step_config c = config("zero3", 2, 3, 1);
	struct played p;
	prepare(&c, 0, 0, 1, &p);
	put_times(&x, 3, &p);
	play(&c, &m, &p);
	/* 2 of the root's gather and 6 - 3 of the first; block 0's reduction 102..107 */
	assert_near(p.t.exposed_ns[SCHED_GATHER], 5);
	assert_near(p.t.exposed_ns[SCHED_REDUCE_SCATTER], 5);
	assert_near(p.t.compute_ns, 101);
	drop(&p);
	c.overlap = false;
	prepare(&c, 0, 0, 1, &p);
	put_times(&x, 3, &p);
	play(&c, &m, &p);
	assert_near(p.t.exposed_ns[SCHED_GATHER], 22);
	assert_near(p.t.exposed_ns[SCHED_REDUCE_SCATTER], 20);
	assert_near(p.t.step_ns, 101 + 42);
	drop(&p);
}

static void a_list_that_cannot_end_is_an_error(void **state)
{
	struct sched_task v[2] = {{.op = SCHED_FWD, .waits = {1, -1, -1, -1}},
		{.op = SCHED_GATHER, .queue = SCHED_Q_GATHER, .waits = {0, -1, -1, -1}}};
	const struct schedule s = {.v = v, .n = 2, .cap = 2};
	const struct sched_machine m = {0};
	double none[2] = {0};
	struct sched_times t;
	struct fb_err e = {0};
	assert_int_equal(schedule_times(&s, &m, none, none, &t, &e), -EPROTO);
	assert_null(t.start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_lasts_between_its_longest_queue_and_the_sum),
		cmocka_unit_test(without_a_network_it_computes_and_without_compute_it_sends),
		cmocka_unit_test(a_step_grows_with_each_of_its_parts),
		cmocka_unit_test(at_most_two_gathered_blocks_are_alive_at_any_time),
		cmocka_unit_test(random_steps_follow_the_recurrence),
		cmocka_unit_test(worked_examples_come_out),
		cmocka_unit_test(a_shared_link_serves_who_came_first),
		cmocka_unit_test(ends_are_seen_when_the_compute_thread_looks),
		cmocka_unit_test(copies_of_the_compute_thread_hold_it_up),
		cmocka_unit_test(exposed_time_is_what_overlap_hides),
		cmocka_unit_test(a_list_that_cannot_end_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
