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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_and_type),
		cmocka_unit_test(blocks_in_pieces),
		cmocka_unit_test(two_channels_together),
		cmocka_unit_test(over_a_shaped_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
