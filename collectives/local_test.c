// SPDX-License-Identifier: Apache-2.0
/*
 * The local backend: every operation on every type against the pattern, from 1 to 64 ranks; a rank
 * that never comes, one that gives up, and ranks that call different things.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/test.h"
#include "collectives/formula.h"
#include "collectives/local.h"
#include "collectives/pattern.h"

#define SECOND 1000000000u

struct rank_arg {
	struct coll_local_group *group;
	struct coll_call call;
	int rank, ranks, rounds;
	size_t send, recv;
	int rc;
	bool right;
	struct fb_err e;
};

static struct coll_comm *open_rank(const struct rank_arg *a, struct fb_err *e)
{
	struct coll_env env = {.rank = a->rank,
		.size = a->ranks,
		.now = fb_clock_ns,
		.timeout_ns = 20ull * SECOND,
		.shared = a->group};
	struct coll_comm *c = NULL;
	assert_int_equal(coll_local_ops.open(&env, &c, e), 0);
	return c;
}

static void *rank_main(void *arg)
{
	struct rank_arg *a = arg;
	size_t elem = coll_dtype_size(a->call.dtype);
	struct coll_comm *c = open_rank(a, &a->e);
	struct coll_pattern p;
	unsigned char *send = malloc(a->send * elem), *recv = malloc(a->recv * elem);
	unsigned char *want = malloc(a->recv * elem);
	a->rc = coll_pattern_init(&p, &a->call, a->ranks, 11, &a->e);
	coll_pattern_send(&p, a->rank, 0, a->send, send);
	coll_pattern_expect(&p, a->rank, 0, a->recv, want);
	a->call.send = send;
	a->call.recv = recv;
	a->right = true;
	for (int i = 0; i < a->rounds && a->rc == 0; i++) {
		memset(recv, 0xa5, a->recv * elem);
		a->rc = coll_local_ops.start(c, &a->call, &a->e);
		if (a->rc == 0)
			a->rc = coll_local_ops.wait(c, fb_deadline_in(20ull * SECOND), &a->e);
		a->right = a->right && memcmp(recv, want, a->recv * elem) == 0;
	}
	coll_local_ops.close(c);
	coll_pattern_free(&p);
	free(send);
	free(recv);
	free(want);
	return NULL;
}

static void run_ranks(const struct coll_call *call, int ranks, int rounds)
{
	pthread_t thread[64];
	static struct rank_arg arg[64];
	struct fb_err e = {0};
	struct coll_local_group *g = coll_local_group_new(ranks, &e);
	struct coll_shape s = coll_shape_of(
		call->op, call->dtype, ranks, call->count * coll_dtype_size(call->dtype));
	assert_non_null(g);
	for (int r = 0; r < ranks; r++) {
		arg[r] = (struct rank_arg){.group = g,
			.call = *call,
			.rank = r,
			.ranks = ranks,
			.rounds = rounds,
			.send = s.send,
			.recv = s.recv};
		arg[r].call.count = s.count;
		assert_int_equal(pthread_create(&thread[r], NULL, rank_main, &arg[r]), 0);
	}
	for (int r = 0; r < ranks; r++)
		pthread_join(thread[r], NULL);
	for (int r = 0; r < ranks; r++) {
		if (arg[r].rc != 0)
			print_message("%s\n", arg[r].e.msg);
		assert_int_equal(arg[r].rc, 0);
		assert_true(arg[r].right);
	}
	coll_local_group_free(g);
}

static void every_operation_and_type(void **state)
{
	static const int ranks[] = {1, 2, 3, 5};
	for (int op = 0; op < COLL_OP_COUNT; op++)
		for (int t = 0; t < COLL_DTYPE_COUNT; t++)
			for (int red = 0; red < (coll_op_reduces((enum coll_op)op) ? 4 : 1); red++)
				for (size_t i = 0; i < 4; i++) {
					struct coll_call call = {.op = (enum coll_op)op,
						.dtype = (enum coll_dtype)t,
						.redop = (enum coll_redop)red,
						.root = ranks[i] - 1,
						.count = 5003};
					run_ranks(&call, ranks[i], 1);
				}
}

static void many_ranks_many_rounds(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++) {
		struct coll_call call = {.op = (enum coll_op)op,
			.dtype = COLL_FLOAT,
			.redop = COLL_SUM,
			.count = 64 * 64};
		run_ranks(&call, 64, 3);
		run_ranks(&call, 2, 200);
	}
}

static void fewer_elements_than_ranks(void **state)
{
	struct coll_call call = {
		.op = COLL_ALL_REDUCE, .dtype = COLL_DOUBLE, .redop = COLL_MAX, .count = 1};
	run_ranks(&call, 7, 2);
}

static void a_rank_that_never_comes_ends_the_wait(void **state)
{
	struct fb_err e = {0};
	struct rank_arg a = {.ranks = 2, .group = coll_local_group_new(2, &e)};
	struct coll_comm *c = open_rank(&a, &e);
	int32_t x = 1, y = 0;
	struct coll_call call = {.op = COLL_ALL_REDUCE,
		.dtype = COLL_INT32,
		.redop = COLL_SUM,
		.count = 1,
		.send = &x,
		.recv = &y};
	assert_int_equal(coll_local_ops.start(c, &call, &e), 0);
	assert_int_equal(coll_local_ops.wait(c, fb_deadline_in(SECOND / 50), &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "all_reduce"));
	/* It may be waited for again, and then the other rank has given up. */
	fb_err_clear(&e);
	struct rank_arg b = {.ranks = 2, .rank = 1, .group = a.group};
	struct coll_comm *other = open_rank(&b, &e);
	coll_local_ops.abort(other);
	assert_int_equal(coll_local_ops.wait(c, fb_deadline_in(SECOND), &e), -ECONNRESET);
	assert_non_null(strstr(e.msg, "rank 1"));
	coll_local_ops.close(c);
	coll_local_ops.close(other);
	coll_local_group_free(a.group);
}

static void *other_size(void *arg)
{
	struct rank_arg *a = arg;
	int32_t x[4] = {0}, y[4];
	struct coll_comm *c = open_rank(a, &a->e);
	a->call.send = x;
	a->call.recv = y;
	a->rc = coll_local_ops.start(c, &a->call, &a->e);
	if (a->rc == 0)
		a->rc = coll_local_ops.wait(c, fb_deadline_in(5ull * SECOND), &a->e);
	if (a->rc != 0)
		coll_local_ops.abort(c);
	coll_local_ops.close(c);
	return NULL;
}

static void different_calls_are_named(void **state)
{
	struct fb_err e = {0};
	struct coll_local_group *g = coll_local_group_new(2, &e);
	struct rank_arg arg[2];
	pthread_t t[2];
	for (int r = 0; r < 2; r++) {
		arg[r] = (struct rank_arg){.ranks = 2, .rank = r, .group = g};
		arg[r].call = (struct coll_call){.op = COLL_ALL_REDUCE,
			.dtype = COLL_INT32,
			.redop = COLL_SUM,
			.count = 2 + (size_t)r};
		assert_int_equal(pthread_create(&t[r], NULL, other_size, &arg[r]), 0);
	}
	for (int r = 0; r < 2; r++)
		pthread_join(t[r], NULL);
	for (int r = 0; r < 2; r++)
		assert_true(arg[r].rc == -EPROTO || arg[r].rc == -ECONNRESET);
	assert_true(arg[0].rc == -EPROTO || arg[1].rc == -EPROTO);
	coll_local_group_free(g);
}

static void refuses_sizes_it_cannot_hold(void **state)
{
	struct fb_err e = {0};
	assert_null(coll_local_group_new(0, &e));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_null(coll_local_group_new(COLL_LOCAL_MAX_RANKS + 1, &e));
	fb_err_clear(&e);
	struct coll_env env = {.rank = 0, .size = 2, .now = fb_clock_ns};
	struct coll_comm *c = NULL;
	assert_int_equal(coll_local_ops.open(&env, &c, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_and_type),
		cmocka_unit_test(many_ranks_many_rounds),
		cmocka_unit_test(fewer_elements_than_ranks),
		cmocka_unit_test(a_rank_that_never_comes_ends_the_wait),
		cmocka_unit_test(different_calls_are_named),
		cmocka_unit_test(refuses_sizes_it_cannot_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
