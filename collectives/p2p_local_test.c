// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between threads: order, lengths, a peer that leaves, an abort; and the link's times, by
 * a clock that only the test moves.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "collectives/p2p_local.h"

static uint64_t fake_now;

static uint64_t fake_clock(void)
{
	return fake_now;
}

struct rig {
	struct p2p_world *w;
	struct p2p *p[3];
};

static void rig_open(struct rig *g, const struct p2p_link *link)
{
	struct fb_err e = {0};
	fake_now = 1000;
	g->w = p2p_world_new(3, link, &e);
	assert_non_null(g->w);
	for (int i = 0; i < 3; i++) {
		const struct p2p_env env = {
			.rank = i, .size = 3, .now = fake_clock, .shared = g->w};
		assert_int_equal(p2p_local.open(&env, &g->p[i], &e), 0);
	}
}

static void rig_close(struct rig *g)
{
	for (int i = 0; i < 3; i++)
		p2p_local.close(g->p[i]);
	p2p_world_free(g->w);
}

static struct p2p_req *put(
	struct rig *g, int from, int to, enum p2p_channel ch, const void *buf, size_t n)
{
	struct p2p_req *r = NULL;
	struct fb_err e = {0};
	assert_int_equal(p2p_local.isend(g->p[from], to, ch, buf, n, &r, &e), 0);
	return r;
}

static struct p2p_req *get(
	struct rig *g, int from, int to, enum p2p_channel ch, void *buf, size_t n)
{
	struct p2p_req *r = NULL;
	struct fb_err e = {0};
	assert_int_equal(p2p_local.irecv(g->p[to], from, ch, buf, n, &r, &e), 0);
	return r;
}

static bool over(struct rig *g, int rank, struct p2p_req *r)
{
	struct fb_err e = {0};
	bool done = false;
	assert_int_equal(p2p_local.test(g->p[rank], r, &done, &e), 0);
	return done;
}

static void order_is_kept_by_pair_and_channel(void **state)
{
	struct rig g;
	int a = 1, b = 2, c = 3, d = 4, got[4] = {0};
	rig_open(&g, NULL);
	struct p2p_req *s[] = {put(&g, 0, 1, P2P_GATHER, &a, sizeof(a)),
		put(&g, 0, 1, P2P_REDUCE, &b, sizeof(b)), put(&g, 0, 1, P2P_GATHER, &c, sizeof(c)),
		put(&g, 2, 1, P2P_GATHER, &d, sizeof(d))};
	struct p2p_req *r[] = {get(&g, 2, 1, P2P_GATHER, &got[3], sizeof(int)),
		get(&g, 0, 1, P2P_REDUCE, &got[1], sizeof(int)),
		get(&g, 0, 1, P2P_GATHER, &got[0], sizeof(int)),
		get(&g, 0, 1, P2P_GATHER, &got[2], sizeof(int))};
	for (int i = 0; i < 4; i++)
		assert_true(over(&g, 1, r[3 - i]));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(got[i], i + 1);
		assert_true(over(&g, i == 3 ? 2 : 0, s[i]));
	}
	rig_close(&g);
}

/* A rank that computes need not look: its message moves when the other one does. */
static void either_side_moves_a_message(void **state)
{
	struct rig g;
	char sent[100], got[100] = "";
	memset(sent, 'x', sizeof(sent));
	rig_open(&g, NULL);
	struct p2p_req *r = get(&g, 0, 1, P2P_GATHER, got, sizeof(got));
	struct p2p_req *s = put(&g, 0, 1, P2P_GATHER, sent, sizeof(sent));
	assert_true(over(&g, 0, s));
	assert_memory_equal(got, sent, sizeof(got));
	assert_true(over(&g, 1, r));
	r = get(&g, 0, 1, P2P_GATHER, NULL, 0);
	assert_false(over(&g, 1, r));
	s = put(&g, 0, 1, P2P_GATHER, NULL, 0);
	assert_true(over(&g, 1, r));
	assert_true(over(&g, 0, s));
	rig_close(&g);
}

static void a_message_comes_when_the_link_lets_it(void **state)
{
	const struct p2p_link link = {.latency_ns = 50, .rate = 2e9}; /* 2 bytes a ns */
	struct rig g;
	char sent[2000] = "", got[2000];
	rig_open(&g, &link);
	struct p2p_req *s = put(&g, 0, 1, P2P_GATHER, sent, 2000);
	struct p2p_req *r = get(&g, 0, 1, P2P_GATHER, got, 2000);
	assert_int_equal(p2p_local.wake(g.p[1]), 1000 + 1000 + 50);
	assert_int_equal(p2p_local.wake(g.p[0]), 1000 + 1000 + 50);
	fake_now = 2049;
	assert_false(over(&g, 1, r));
	assert_false(over(&g, 0, s));
	fake_now = 2050;
	assert_int_equal(p2p_local.wake(g.p[1]), 0);
	assert_true(over(&g, 1, r));
	assert_true(over(&g, 0, s));
	/* Received late: the link did not wait, so the next one is not late. */
	fake_now = 10000;
	s = put(&g, 0, 1, P2P_GATHER, sent, 200);
	struct p2p_req *s2 = put(&g, 0, 1, P2P_GATHER, sent, 200);
	fake_now = 10250;
	struct p2p_req *r2;
	r = get(&g, 0, 1, P2P_GATHER, got, 200);
	r2 = get(&g, 0, 1, P2P_GATHER, got + 200, 200);
	assert_true(over(&g, 1, r));
	assert_true(over(&g, 1, r2));
	assert_true(over(&g, 0, s));
	assert_true(over(&g, 0, s2));
	rig_close(&g);
}

static void channels_share_their_ranks_link(void **state)
{
	struct p2p_link link = {.latency_ns = 10, .rate = 1e9};
	struct rig g;
	char sent[1000] = "", got[3][1000];
	link.slow[P2P_REDUCE].latency_ns = 7;
	link.slow[P2P_REDUCE].rate_factor = 0.25;
	rig_open(&g, &link);
	struct p2p_req *s[] = {put(&g, 0, 1, P2P_GATHER, sent, 1000),
		put(&g, 0, 2, P2P_REDUCE, sent, 1000), put(&g, 2, 1, P2P_GATHER, sent, 1000)};
	struct p2p_req *r[] = {get(&g, 0, 1, P2P_GATHER, got[0], 1000),
		get(&g, 0, 2, P2P_REDUCE, got[1], 1000), get(&g, 2, 1, P2P_GATHER, got[2], 1000)};
	static const int to[] = {1, 2, 1}, from[] = {0, 0, 2};
	/* The second waits for the first and is slowed; the third has a link of its own. */
	static const uint64_t at[] = {2010, 2000 + 4000 + 17, 2010};
	for (int i = 0; i < 3; i++) {
		fake_now = at[i] - 1;
		assert_false(over(&g, to[i], r[i]));
	}
	for (int i = 0; i < 3; i++) {
		fake_now = at[i];
		assert_true(over(&g, to[i], r[i]));
		assert_true(over(&g, from[i], s[i]));
	}
	rig_close(&g);
}

/* What is not yet sent cannot come sooner than a latency from now. */
static void wake_knows_the_latency(void **state)
{
	const struct p2p_link link = {.latency_ns = 500};
	struct rig g;
	char got[8];
	rig_open(&g, &link);
	assert_int_equal(p2p_local.wake(g.p[1]), 0);
	struct p2p_req *r = get(&g, 0, 1, P2P_GATHER, got, 8);
	assert_int_equal(p2p_local.wake(g.p[1]), 1500);
	fake_now = 1100;
	struct p2p_req *s = put(&g, 0, 1, P2P_GATHER, "1234567", 8);
	assert_int_equal(p2p_local.wake(g.p[1]), 1600);
	fake_now = 1600;
	assert_true(over(&g, 1, r));
	assert_true(over(&g, 0, s));
	assert_string_equal(got, "1234567");
	rig_close(&g);
	rig_open(&g, NULL);
	(void)get(&g, 0, 1, P2P_GATHER, got, 8);
	assert_int_equal(p2p_local.wake(g.p[1]), 0);
	rig_close(&g);
}

static void another_length_is_told_to_both(void **state)
{
	struct rig g;
	char sent[20] = "", got[16];
	bool done;
	rig_open(&g, NULL);
	struct p2p_req *s = put(&g, 0, 1, P2P_GATHER, sent, 20);
	struct p2p_req *r = get(&g, 0, 1, P2P_GATHER, got, 16);
	struct fb_err a = {0}, b = {0};
	assert_int_equal(p2p_local.test(g.p[1], r, &done, &a), -EMSGSIZE);
	assert_int_equal(p2p_local.test(g.p[0], s, &done, &b), -EMSGSIZE);
	assert_non_null(strstr(a.msg, "rank 0 sent 20 bytes to rank 1, which waits for 16"));
	assert_string_equal(a.msg, b.msg);
	fb_err_clear(&a);
	assert_int_equal(p2p_local.isend(g.p[0], 1, P2P_GATHER, sent, 20, &s, &a), -ECONNRESET);
	assert_string_equal(a.msg, b.msg);
	rig_close(&g);
}

static void a_peer_that_leaves_is_missed(void **state)
{
	struct rig g;
	char got[16];
	struct fb_err e = {0};
	bool done;
	rig_open(&g, NULL);
	/* What it has sent before arrives all the same. */
	struct p2p_req *early = get(&g, 1, 0, P2P_GATHER, got, 4);
	struct p2p_req *s = put(&g, 1, 0, P2P_GATHER, "abc", 4);
	assert_true(over(&g, 1, s));
	struct p2p_req *r = get(&g, 1, 0, P2P_GATHER, got, 16);
	assert_false(over(&g, 0, r));
	p2p_local.close(g.p[1]);
	assert_true(over(&g, 0, early));
	assert_string_equal(got, "abc");
	assert_int_equal(p2p_local.test(g.p[0], r, &done, &e), -ECONNRESET);
	assert_non_null(strstr(e.msg, "rank 1 has left"));
	g.p[1] = NULL;
	rig_close(&g);
}

static void the_first_cause_ends_all_and_frees_all(void **state)
{
	const struct p2p_link link = {.latency_ns = 500};
	struct rig g;
	struct fb_err why = {0}, e = {0};
	bool done;
	char *buf[3];
	struct p2p_req *r[3];
	rig_open(&g, &link);
	for (int i = 0; i < 3; i++) {
		buf[i] = malloc(100);
		r[i] = get(&g, (i + 1) % 3, i, P2P_GATHER, buf[i], 100);
	}
	fb_fail(&why, FB_EXIT_WRONG_DATA, EDOM, "the loss is not a number");
	fb_hint(&why, "another seed");
	p2p_local.abort(g.p[1], &why);
	free(buf[1]); /* its own again */
	fb_err_clear(&why);
	fb_fail(&why, FB_EXIT_FAILED, EIO, "because of that");
	p2p_local.abort(g.p[2], &why);
	free(buf[2]);
	for (int i = 0; i < 3; i++) {
		fb_err_clear(&e);
		assert_int_equal(p2p_local.test(g.p[i], r[i], &done, &e), -ECONNRESET);
		assert_false(done);
		/* No request is left that a peer could still deliver into. */
		assert_int_equal(p2p_local.wake(g.p[i]), 0);
		assert_string_equal(e.msg, "the loss is not a number");
		assert_string_equal(e.hint, "another seed");
		assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
		assert_int_equal(p2p_local.isend(g.p[i], (i + 1) % 3, P2P_GATHER, "", 0, &r[i], &e),
			-ECONNRESET);
	}
	free(buf[0]);
	rig_close(&g);
}

static void refuses_what_is_not_there(void **state)
{
	struct rig g;
	struct fb_err e = {0};
	struct p2p_req *r;
	struct p2p *p;
	static const int peers[] = {0, 3, -1};
	rig_open(&g, NULL);
	for (int i = 0; i < 3; i++) {
		fb_err_clear(&e);
		assert_int_equal(
			p2p_local.isend(g.p[0], peers[i], P2P_GATHER, "", 0, &r, &e), -EINVAL);
	}
	const struct p2p_env other = {.rank = 0, .size = 4, .now = fake_clock, .shared = g.w};
	fb_err_clear(&e);
	assert_int_equal(p2p_local.open(&other, &p, &e), -EINVAL);
	rig_close(&g);
	fb_err_clear(&e);
	assert_null(p2p_world_new(0, NULL, &e));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	const struct p2p_link wrong = {.rate = -1};
	fb_err_clear(&e);
	assert_null(p2p_world_new(2, &wrong, &e));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
}

/* ---- two threads, many messages ----------------------------------------------------------------
 */

enum { MESSAGES = 3000, LONGEST = 70000, AHEAD = 8 };

struct side {
	struct p2p_world *w;
	struct p2p *p;
	int rank, wrong;
};

static size_t length_of(int i)
{
	return (size_t)i * 7919u % (i % 50 == 0 ? LONGEST : 600);
}

/* Each sends and receives the whole row at once, some messages ahead. */
static void *chat(void *arg)
{
	struct side *a = arg;
	struct fb_err e = {0};
	static char room[2][2][AHEAD][LONGEST];
	struct p2p_req *r[2][AHEAD];
	const uint64_t deadline = fb_deadline_in(60000000000u);
	for (int i = 0; i < MESSAGES + AHEAD && a->wrong == 0; i++) {
		const int k = i % AHEAD, was = i - AHEAD;
		for (int d = 0; d < 2 && was >= 0 && a->wrong == 0; d++) {
			bool done = false;
			while (!done && a->wrong == 0) {
				if (p2p_local.test(a->p, r[d][k], &done, &e) != 0 ||
					fb_clock_ns() > deadline)
					a->wrong = 1;
				if (!done)
					sched_yield();
			}
		}
		const char *got = room[a->rank][1][k];
		for (size_t j = 0; was >= 0 && j < length_of(was); j++)
			if (got[j] != (char)(was + (int)j + 1 - a->rank))
				a->wrong = 2;
		if (i >= MESSAGES)
			continue;
		char *out = room[a->rank][0][k];
		for (size_t j = 0; j < length_of(i); j++)
			out[j] = (char)(i + (int)j + a->rank);
		if (p2p_local.isend(
			    a->p, 1 - a->rank, P2P_REDUCE, out, length_of(i), &r[0][k], &e) != 0 ||
			p2p_local.irecv(a->p, 1 - a->rank, P2P_REDUCE, room[a->rank][1][k],
				length_of(i), &r[1][k], &e) != 0)
			a->wrong = 3;
	}
	return NULL;
}

static void threads_exchange_many_messages(void **state)
{
	static const struct p2p_link links[] = {{0}, {.latency_ns = 1000, .rate = 10e9}};
	for (int l = 0; l < 2; l++) {
		struct fb_err e = {0};
		struct p2p_world *w = p2p_world_new(2, &links[l], &e);
		struct side a[2];
		pthread_t id[2];
		assert_non_null(w);
		for (int i = 0; i < 2; i++) {
			const struct p2p_env env = {
				.rank = i, .size = 2, .now = fb_clock_ns, .shared = w};
			a[i] = (struct side){.w = w, .rank = i};
			assert_int_equal(p2p_local.open(&env, &a[i].p, &e), 0);
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&id[i], NULL, chat, &a[i]), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(id[i], NULL);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(a[i].wrong, 0);
			p2p_local.close(a[i].p);
		}
		p2p_world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_kept_by_pair_and_channel),
		cmocka_unit_test(either_side_moves_a_message),
		cmocka_unit_test(a_message_comes_when_the_link_lets_it),
		cmocka_unit_test(channels_share_their_ranks_link),
		cmocka_unit_test(wake_knows_the_latency),
		cmocka_unit_test(another_length_is_told_to_both),
		cmocka_unit_test(a_peer_that_leaves_is_missed),
		cmocka_unit_test(the_first_cause_ends_all_and_frees_all),
		cmocka_unit_test(refuses_what_is_not_there),
		cmocka_unit_test(threads_exchange_many_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
