// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange between threads: every operation, type and group against sums computed from ranks
 * and indexes alone; bytes and tiers counted; what an abort does; times on a shaped link by a clock
 * that only the test moves.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/exchange_cases.h"
#include "collectives/p2p_local.h"

#define RANKS_MAX 16

/* ---- ranks as threads --------------------------------------------------------------------------
 */

struct thread {
	struct ex_rank r;
	struct p2p_world *w;
	void (*run)(struct ex_rank *r);
};

static struct p2p *join(struct p2p_world *w, int rank, int size, uint64_t (*now)(void))
{
	const struct p2p_env env = {.rank = rank, .size = size, .now = now, .shared = w};
	struct fb_err e = {0};
	struct p2p *p = NULL;
	assert_int_equal(p2p_local.open(&env, &p, &e), 0);
	return p;
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct fb_err why = {0};
	t->run(&t->r);
	if (t->r.why[0] != '\0') {
		fb_fail(&why, FB_EXIT_FAILED, EIO, "rank %d: %s", t->r.rank, t->r.why);
		p2p_local.abort(t->r.p, &why);
	}
	return NULL;
}

static void run_ranks(int n, const struct p2p_link *link, void (*run)(struct ex_rank *r))
{
	pthread_t id[RANKS_MAX];
	struct thread t[RANKS_MAX];
	struct fb_err e = {0};
	struct p2p_world *w = p2p_world_new(n, link, &e);
	bool right = true;
	assert_non_null(w);
	for (int i = 0; i < n; i++)
		t[i] = (struct thread){.r = {.ops = &p2p_local,
					       .p = join(w, i, n, fb_clock_ns),
					       .rank = i,
					       .size = n},
			.w = w,
			.run = run};
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&id[i], NULL, thread_main, &t[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < n; i++) {
		if (t[i].r.why[0] != '\0')
			print_message("rank %d of %d: %s\n", i, n, t[i].r.why);
		right = right && t[i].r.why[0] == '\0';
		p2p_local.close(t[i].r.p);
	}
	p2p_world_free(w);
	assert_true(right);
}

static void every_group_and_type(void **state)
{
	static const int sizes[] = {1, 2, 3, 4, 8, 9, 16};
	for (int i = 0; i < EX_LEN(sizes); i++)
		run_ranks(sizes[i], NULL, ex_all_groups);
}

static void blocks_in_pieces(void **state)
{
	run_ranks(2, NULL, ex_pieces);
	run_ranks(3, NULL, ex_pieces);
	run_ranks(9, NULL, ex_pieces);
}

static void two_channels_together(void **state)
{
	run_ranks(2, NULL, ex_together);
	run_ranks(5, NULL, ex_together);
	run_ranks(10, NULL, ex_together);
}

static void over_a_shaped_link(void **state)
{
	const struct p2p_link link = {.latency_ns = 2000, .rate = 4e9};
	run_ranks(4, &link, ex_together);
	run_ranks(9, &link, ex_together);
}

/* ---- failures ----------------------------------------------------------------------------------
 */

/* Rank 2 never comes: it ends the others in mid-flight, when they have all begun. */
static atomic_int begun;

static void one_gives_up(struct ex_rank *r)
{
	const struct exchange_group g = {.rank = r->rank, .size = r->size, .stride = 1};
	const struct ex_case c = {.op = EX_ALL_REDUCE, .t = COLL_FLOAT, .count = 100000};
	struct ex_rank quiet = *r;
	struct exchange *x = NULL;
	struct fb_err e = {0};
	char *buf = malloc(c.count * 4), *spare = malloc(c.count * 4);
	const uint64_t begin = fb_clock_ns();
	bool done = false;
	if (!buf || !spare || exchange_new(r->ops, r->p, &g, NULL, &x, &e) != 0) {
		EX_WRONG(r, "no memory");
		goto free_all;
	}
	memset(buf, 0, c.count * 4);
	if (r->rank == 2) {
		while (atomic_load(&begun) < r->size - 1 && fb_clock_ns() - begin < 10000000000u)
			sched_yield();
		fb_fail(&e, FB_EXIT_WRONG_DATA, EDOM, "the loss is not a number");
		fb_hint(&e, "a smaller step");
		r->ops->abort(r->p, &e);
		fb_err_clear(&e);
		fb_fail(&e, FB_EXIT_FAILED, EIO, "a second cause");
		r->ops->abort(r->p, &e);
	} else {
		int rc = ex_begin(x, &g, &c, spare, buf, &e);
		atomic_fetch_add(&begun, 1);
		if (rc == 0)
			rc = ex_wait(&quiet, x, &e);
		if (rc != -ECONNRESET || e.exit != FB_EXIT_WRONG_DATA ||
			!strstr(e.msg, "not a number") || !strstr(e.hint, "smaller"))
			EX_WRONG(r, "%d, exit %d: %s", rc, (int)e.exit, e.msg);
		/* It says so again, and begins nothing more. */
		fb_err_clear(&e);
		if (exchange_test(x, &done, &e) != -ECONNRESET || !strstr(e.msg, "not a number"))
			EX_WRONG(r, "the cause is forgotten: %s", e.msg);
		if (ex_begin(x, &g, &c, spare, buf, &e) != -ECONNRESET)
			EX_WRONG(r, "it begins again");
	}
	if (fb_clock_ns() - begin > 20000000000u)
		EX_WRONG(r, "only after 20 s");
free_all:
	exchange_free(x);
	free(buf);
	free(spare);
}

static void an_abort_ends_all_with_the_cause(void **state)
{
	atomic_store(&begun, 0);
	run_ranks(4, NULL, one_gives_up);
	atomic_store(&begun, 0);
	run_ranks(11, NULL, one_gives_up);
	/* While everything is on its way. */
	const struct p2p_link slow = {.latency_ns = 3600000000000u, .rate = 1e3};
	atomic_store(&begun, 0);
	run_ranks(4, &slow, one_gives_up);
}

static void other_counts(struct ex_rank *r)
{
	const struct exchange_group g = {.rank = r->rank, .size = r->size, .stride = 1};
	const struct ex_case c = {
		.op = EX_GATHER, .t = COLL_FLOAT, .count = 10 + (size_t)(r->rank == 0)};
	struct ex_rank quiet = *r;
	struct exchange *x = NULL;
	struct fb_err e = {0};
	char in[64] = "", out[256];
	int rc = exchange_new(r->ops, r->p, &g, NULL, &x, &e);
	if (rc == 0)
		rc = ex_begin(x, &g, &c, in, out, &e);
	if (rc == 0)
		rc = ex_wait(&quiet, x, &e);
	if (rc != -EMSGSIZE || !strstr(e.msg, "44") || !strstr(e.msg, "40"))
		EX_WRONG(r, "%d: %s", rc, e.msg);
	exchange_free(x);
}

static void other_counts_are_named(void **state)
{
	run_ranks(2, NULL, other_counts);
}

/* ---- by the test's own clock -------------------------------------------------------------------
 */

static uint64_t fake_now;

static uint64_t fake_clock(void)
{
	return fake_now;
}

struct rig {
	int n;
	struct p2p_world *w;
	struct p2p *p[RANKS_MAX];
	struct exchange *x[2][RANKS_MAX]; /* on two channels */
	char *buf[2][RANKS_MAX];
	uint64_t began[2], ended[2][RANKS_MAX]; /* by the test's clock; 0: has not ended */
	bool delayed;
};

static void rig_open(
	struct rig *g, int n, const struct p2p_link *link, const struct exchange_tiers *tiers)
{
	struct fb_err e = {0};
	memset(g, 0, sizeof(*g));
	fake_now = 1000000;
	g->n = n;
	g->w = p2p_world_new(n, link, &e);
	assert_non_null(g->w);
	for (int i = 0; i < n; i++) {
		g->p[i] = join(g->w, i, n, fake_clock);
		for (int c = 0; c < 2; c++) {
			const struct exchange_group group = {.rank = i,
				.size = n,
				.stride = 1,
				.channel = c == 0 ? P2P_GATHER : P2P_REDUCE};
			assert_int_equal(
				exchange_new(&p2p_local, g->p[i], &group, tiers, &g->x[c][i], &e),
				0);
			g->buf[c][i] = calloc(1, 8u << 20);
			assert_non_null(g->buf[c][i]);
		}
	}
}

static void rig_close(struct rig *g)
{
	for (int i = 0; i < g->n; i++)
		for (int c = 0; c < 2; c++) {
			exchange_free(g->x[c][i]);
			free(g->buf[c][i]);
		}
	for (int i = 0; i < g->n; i++)
		p2p_local.close(g->p[i]);
	p2p_world_free(g->w);
}

/* `bytes` is a block's. */
static void rig_begin(struct rig *g, int c, enum ex_op op, size_t bytes)
{
	struct fb_err e = {0};
	g->began[c] = fake_now;
	for (int i = 0; i < g->n; i++) {
		g->ended[c][i] = 0;
		char *b = g->buf[c][i];
		const size_t count = bytes / 4, n = (size_t)g->n;
		int rc = op == EX_GATHER ? exchange_all_gather(g->x[c][i], b + (size_t)i * bytes, b,
						   count, COLL_FLOAT, &e)
			 : op == EX_REDUCE
				 ? exchange_reduce_scatter(g->x[c][i], b, b + (size_t)i * bytes,
					   count, COLL_FLOAT, &e)
				 : exchange_all_reduce(g->x[c][i], b, n * count, COLL_FLOAT, &e);
		assert_int_equal(rc, 0);
	}
}

/* Is rank i's exchange on channel c done? */
static bool rig_test(struct rig *g, int c, int i)
{
	struct fb_err e = {0};
	bool done;
	assert_int_equal(exchange_test(g->x[c][i], &done, &e), 0);
	if (done && g->ended[c][i] == 0)
		g->ended[c][i] = fake_now;
	return done;
}

/* Let time pass to where something can happen, until both channels' exchanges are done. Over links
 * the transport knows when that is; a delay comes to its end by itself, a nanosecond at a time. */
static void rig_run(struct rig *g)
{
	bool all = false;
	for (int turn = 0; !all; turn++) {
		uint64_t next = UINT64_MAX;
		all = true;
		assert_true(turn < 100000);
		for (int i = 0; i < g->n; i++)
			for (int c = 0; c < 2; c++)
				rig_test(g, c, i);
		for (int i = 0; i < g->n; i++) {
			bool both = rig_test(g, 0, i);
			both = rig_test(g, 1, i) && both;
			const uint64_t at = both ? UINT64_MAX : p2p_local.wake(g->p[i]);
			next = at < next ? at : next;
			all = all && both;
		}
		if (g->delayed)
			fake_now += all ? 0 : 1;
		else if (!all && next > fake_now)
			fake_now = next;
	}
}

static void expect_time(const struct rig *g, int c, uint64_t ns)
{
	for (int i = 0; i < g->n; i++)
		assert_int_equal(g->ended[c][i] - g->began[c], ns);
}

static void a_link_has_latency_and_rate(void **state)
{
	const struct p2p_link link = {.latency_ns = 5000, .rate = 1e9}; /* 1 ns a byte */
	struct rig g;
	rig_open(&g, 4, &link, NULL);
	rig_begin(&g, 0, EX_GATHER, 4000);
	rig_run(&g);
	expect_time(&g, 0, 3 * 4000 + 5000);
	rig_begin(&g, 0, EX_REDUCE, 1u << 20); /* in pieces: that costs no time */
	rig_run(&g);
	expect_time(&g, 0, 3 * (1u << 20) + 5000);
	rig_begin(&g, 0, EX_ALL_REDUCE, 4000);
	rig_run(&g);
	expect_time(&g, 0, 2 * (3 * 4000 + 5000));
	rig_close(&g);
}

static void a_ring_has_a_latency_a_step(void **state)
{
	const struct p2p_link link = {.latency_ns = 5000, .rate = 1e9};
	struct rig g;
	rig_open(&g, 9, &link, NULL);
	rig_begin(&g, 0, EX_GATHER, 4000);
	rig_run(&g);
	expect_time(&g, 0, 8 * (4000 + 5000));
	rig_begin(&g, 0, EX_REDUCE, 4000);
	rig_run(&g);
	expect_time(&g, 0, 8 * (4000 + 5000));
	/* Two pieces: while one has its latency, the other is on the wire. */
	rig_begin(&g, 0, EX_REDUCE, 512u << 10);
	rig_run(&g);
	expect_time(&g, 0, 8 * (512u << 10) + 5000);
	rig_close(&g);
}

static void channels_share_the_link(void **state)
{
	const struct p2p_link link = {.latency_ns = 5000, .rate = 1e9};
	struct rig g;
	rig_open(&g, 3, &link, NULL);
	rig_begin(&g, 0, EX_GATHER, 4000);
	rig_begin(&g, 1, EX_REDUCE, 8000);
	rig_run(&g);
	expect_time(&g, 0, 2 * 4000 + 5000);
	expect_time(&g, 1, 2 * 4000 + 2 * 8000 + 5000);
	rig_close(&g);
}

static void one_channel_may_be_slow(void **state)
{
	struct p2p_link link = {.latency_ns = 5000, .rate = 1e9};
	struct rig g;
	link.slow[P2P_REDUCE].latency_ns = 700;
	link.slow[P2P_REDUCE].rate_factor = 0.5;
	rig_open(&g, 3, &link, NULL);
	rig_begin(&g, 0, EX_GATHER, 4000);
	rig_run(&g);
	rig_begin(&g, 1, EX_REDUCE, 4000);
	rig_run(&g);
	expect_time(&g, 0, 2 * 4000 + 5000);
	expect_time(&g, 1, 2 * 2 * 4000 + 5700);
	rig_close(&g);
}

static void a_delay_is_added_without_a_link(void **state)
{
	struct rig g;
	rig_open(&g, 3, NULL, NULL);
	g.delayed = true;
	for (int i = 0; i < 3; i++)
		exchange_delay(g.x[0][i], 1000, 0.5);
	for (int again = 0; again < 2; again++) {
		rig_begin(&g, 0, EX_GATHER, 4000);
		rig_begin(&g, 1, EX_GATHER, 4000);
		rig_run(&g);
		expect_time(&g, 0, 1000 + 2 * 4000 / 2);
		expect_time(&g, 1, 0);
	}
	rig_close(&g);
}

/* A late rank has its contributions waiting when it begins, but its own blocks are not sent yet:
 * its sum may not be written over them. */
static void a_sum_waits_for_the_blocks_it_covers(void **state)
{
	enum { COUNT = 1000 };
	const struct p2p_link link = {.latency_ns = 5000, .rate = 1e9};
	static const int sizes[] = {3, 9};
	for (int k = 0; k < 2; k++) {
		const int n = sizes[k];
		struct exchange_group group = {.size = n, .stride = 1};
		struct rig g;
		struct fb_err e = {0};
		int32_t want[COUNT];
		rig_open(&g, n, &link, NULL);
		for (int i = n - 1; i >= 0; i--) {
			char *in = g.buf[0][i], *out = in + (size_t)((i + 1) % n) * COUNT * 4;
			ex_fill(COLL_INT32, i, 0, (size_t)n * COUNT, in);
			fake_now += i == 0 ? 1000000000u : 0;
			assert_int_equal(
				exchange_reduce_scatter(g.x[0][i], in, out, COUNT, COLL_INT32, &e),
				0);
		}
		rig_run(&g);
		for (int i = 0; i < n; i++) {
			for (size_t j = 0; j < COUNT; j++)
				ex_sum(&group, COLL_INT32, i, (size_t)i * COUNT + j, want, j);
			assert_memory_equal(g.buf[0][i] + (size_t)((i + 1) % n) * COUNT * 4, want,
				sizeof(want));
		}
		rig_close(&g);
	}
}

static void bytes_are_counted_by_tier(void **state)
{
	const int racks[] = {0, 0, 1, 1};
	const struct exchange_tiers tiers = {.ranks_per_node = 2, .rack_of = racks, .nodes = 4};
	struct rig g;
	rig_open(&g, 8, NULL, &tiers);
	rig_begin(&g, 0, EX_GATHER, 400);
	rig_begin(&g, 1, EX_ALL_REDUCE, 400);
	rig_run(&g);
	for (int i = 0; i < 8; i++) {
		const struct exchange_stats *s = exchange_stats(g.x[0][i]);
		assert_int_equal(s->bytes_sent, 7 * 400);
		assert_int_equal(s->bytes_to_node, 400);
		assert_int_equal(s->bytes_to_rack, 2 * 400);
		assert_int_equal(s->messages, 7);
		s = exchange_stats(g.x[1][i]);
		assert_int_equal(s->bytes_sent, 14 * 400);
		assert_int_equal(s->bytes_to_node, 2 * 400);
		assert_int_equal(s->bytes_to_rack, 4 * 400);
	}
	rig_close(&g);
}

static void scratch_is_what_it_says(void **state)
{
	struct exchange_group g = {.size = 1};
	assert_int_equal(exchange_scratch(&g, 1000, COLL_FLOAT), 0);
	g.size = 8;
	assert_int_equal(exchange_scratch(&g, 1000, COLL_FLOAT), 7 * 4000);
	g.size = 9;
	assert_int_equal(exchange_scratch(&g, 1000, COLL_BFLOAT16), 2 * 2000);
}

static void refuses_what_does_not_fit(void **state)
{
	static const struct exchange_group wrong[] = {{.rank = 2, .size = 2, .stride = 1},
		{.rank = -1, .size = 2, .stride = 1}, {.size = 0, .stride = 1}, {.size = 2},
		{.size = 2, .stride = 1, .first = -1},
		{.size = 2, .stride = 1, .channel = P2P_CHANNELS}};
	const int racks[] = {0};
	const struct exchange_tiers tiers = {.ranks_per_node = 1, .rack_of = racks, .nodes = 1};
	struct exchange *x = NULL;
	struct fb_err e = {0};
	char buf[64];
	for (int i = 0; i < EX_LEN(wrong); i++) {
		fb_err_clear(&e);
		assert_int_equal(exchange_new(&p2p_local, NULL, &wrong[i], NULL, &x, &e), -EINVAL);
		assert_true(e.msg[0] != '\0');
	}
	fb_err_clear(&e);
	const struct exchange_group two = {.size = 2, .stride = 1};
	assert_int_equal(exchange_new(&p2p_local, NULL, &two, &tiers, &x, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "rack map"));
	/* One at a time. */
	struct rig g;
	rig_open(&g, 2, NULL, NULL);
	rig_begin(&g, 0, EX_GATHER, 400);
	fb_err_clear(&e);
	assert_int_equal(exchange_all_gather(g.x[0][0], buf, buf, 1, COLL_FLOAT, &e), -EBUSY);
	rig_run(&g);
	fb_err_clear(&e);
	assert_int_equal(
		exchange_all_gather(g.x[0][0], buf, buf, SIZE_MAX / 8, COLL_FLOAT, &e), -EOVERFLOW);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_and_type),
		cmocka_unit_test(blocks_in_pieces),
		cmocka_unit_test(two_channels_together),
		cmocka_unit_test(over_a_shaped_link),
		cmocka_unit_test(an_abort_ends_all_with_the_cause),
		cmocka_unit_test(other_counts_are_named),
		cmocka_unit_test(a_link_has_latency_and_rate),
		cmocka_unit_test(a_ring_has_a_latency_a_step),
		cmocka_unit_test(channels_share_the_link),
		cmocka_unit_test(one_channel_may_be_slow),
		cmocka_unit_test(a_delay_is_added_without_a_link),
		cmocka_unit_test(a_sum_waits_for_the_blocks_it_covers),
		cmocka_unit_test(bytes_are_counted_by_tier),
		cmocka_unit_test(scratch_is_what_it_says),
		cmocka_unit_test(refuses_what_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
