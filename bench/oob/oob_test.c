// SPDX-License-Identifier: Apache-2.0
/*
 * Every call of oob.h, over local ranks and over tcp alike: the same work is given to both.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/oob/oob_priv.h"

#define S(n) fb_deadline_in((uint64_t)(n)*1000000000u)
typedef int work_fn(struct fb_oob *o, void *arg, struct fb_err *e);

/* ---- the two ways to run it --------------------------------------------------------------------
 */

struct rank {
	pthread_t thread;
	struct fb_oob_listener *l;
	struct fb_oob_cfg cfg;
	work_fn *fn;
	struct fb_err err;
	int rc;
};

static void *rank_main(void *p)
{
	struct rank *r = p;
	struct fb_oob *o = oob_new(&r->err);
	r->rc = oob_tcp_meet(&r->cfg, r->l, o, &r->err);
	if (r->rc != 0) {
		oob_delete(o);
		return NULL;
	}
	r->rc = r->fn(o, NULL, &r->err);
	if (r->rc != 0)
		fb_oob_abort(o, &r->err);
	fb_oob_close(o);
	return NULL;
}

static char loopback[] = "127.0.0.1";

static int by_tcp(int n, work_fn *fn, struct fb_err *e)
{
	struct rank r[8] = {0};
	struct fb_oob_listener *l;
	int port = 0, rc = 0;
	assert_true(n <= 8);
	assert_int_equal(fb_oob_listen("127.0.0.1", &port, NULL, &l, e), 0);
	for (int i = 0; i < n; i++) {
		r[i].cfg = (struct fb_oob_cfg){.ranks = n,
			.rank = i,
			.master = loopback,
			.port = port,
			.timeout_ns = 10000000000u};
		r[i].l = i == 0 ? l : NULL;
		r[i].fn = fn;
		assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(r[i].thread, NULL);
		if (r[i].rc != 0 && rc == 0) {
			rc = r[i].rc;
			*e = r[i].err;
		}
	}
	fb_oob_listener_close(l);
	return rc;
}

static void both(int n, work_fn *fn)
{
	struct fb_err e = {0};
	int rc = fb_oob_local_run(n, fn, NULL, &e);
	if (rc != 0)
		fprintf(stderr, "local: %s\n", e.msg);
	assert_int_equal(rc, 0);
	rc = by_tcp(n, fn, &e);
	if (rc != 0)
		fprintf(stderr, "tcp: %s\n", e.msg);
	assert_int_equal(rc, 0);
}

#define CHECK(cond)                                                                          \
	do {                                                                                 \
		if (!(cond))                                                                 \
			return fb_fail(                                                      \
				e, FB_EXIT_FAILED, EBADMSG, "line %d: %s", __LINE__, #cond); \
	} while (0)

/* ---- the work ----------------------------------------------------------------------------------
 */

static int calls(struct fb_oob *o, void *arg, struct fb_err *e)
{
	const int n = fb_oob_size(o), me = fb_oob_rank(o);
	char text[64] = "", name[128];
	struct fb_oob_part *parts;
	uint32_t all[8], mine = 7u * (uint32_t)me;
	if (me == 0)
		snprintf(text, sizeof(text), "from the root");
	CHECK(fb_oob_bcast(o, text, sizeof(text), S(5), e) == 0);
	CHECK(strcmp(text, "from the root") == 0);
	/* each a length of its own, also none */
	CHECK(fb_oob_gather(o, text, (uint32_t)me, &parts, S(5), e) == 0);
	CHECK((parts != NULL) == (me == 0));
	for (int i = 0; i < n && me == 0; i++)
		CHECK(parts[i].len == (uint32_t)i && memcmp(parts[i].data, text, (size_t)i) == 0);
	fb_oob_parts_free(o, parts);
	CHECK(fb_oob_allgather(o, &mine, sizeof(mine), all, S(5), e) == 0);
	for (int i = 0; i < n; i++)
		CHECK(all[i] == 7u * (uint32_t)i);
	for (int i = 0; i < 50; i++)
		CHECK(fb_oob_barrier(o, S(5), e) == 0);
	fb_oob_peer(o, me, name, sizeof(name));
	CHECK(strncmp(name, "rank ", 5) == 0 && strstr(name, " on "));
	CHECK(fb_oob_lost(o, e) == 0);
	return fb_oob_barrier(o, S(5), e);
}

static int json(struct fb_oob *o, void *arg, struct fb_err *e)
{
	const int n = fb_oob_size(o), me = fb_oob_rank(o);
	json_t *j = me == 0 ? json_pack("{s:[i,f,s]}", "list", 1, 0.5, "\xc3\xa9") : NULL, *all;
	CHECK(fb_oob_bcast_json(o, &j, S(5), e) == 0);
	json_t *list = json_object_get(j, "list");
	CHECK(json_array_size(list) == 3);
	CHECK(strcmp(json_string_value(json_array_get(list, 2)), "\xc3\xa9") == 0);
	json_decref(j);
	j = json_pack("{s:i}", "rank", me);
	CHECK(fb_oob_gather_json(o, j, &all, S(5), e) == 0);
	CHECK((all != NULL) == (me == 0));
	for (int i = 0; i < n && me == 0; i++)
		CHECK(json_integer_value(json_object_get(json_array_get(all, (size_t)i), "rank")) ==
			i);
	json_decref(all);
	json_decref(j);
	return fb_oob_barrier(o, S(5), e);
}

static int agree_fine(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err mine = {0};
	CHECK(fb_oob_agree(o, &mine, S(5)) == 0 && mine.code == 0);
	CHECK(fb_oob_agree(o, NULL, S(5)) == 0);
	return fb_oob_barrier(o, S(5), e);
}

static int agree_bad(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err mine = {0};
	const int me = fb_oob_rank(o);
	if (me >= 2) { /* the first of them counts */
		fb_fail(&mine, FB_EXIT_WRONG_DATA, ENODATA, "rank number %d has it", me);
		fb_hint(&mine, "ask %d", me);
	}
	CHECK(fb_oob_agree(o, &mine, S(5)) == -ENODATA);
	CHECK(mine.code == -ENODATA && mine.exit == FB_EXIT_WRONG_DATA);
	CHECK(strncmp(mine.msg, "rank 2 on ", 10) == 0);
	CHECK(strstr(mine.msg, ": rank number 2 has it"));
	CHECK(strcmp(mine.hint, "ask 2") == 0);
	/* an agreed failure breaks nothing */
	return fb_oob_barrier(o, S(5), e);
}

static int agree_root_bad(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err mine = {0};
	if (fb_oob_rank(o) == 0 || fb_oob_rank(o) == 3)
		fb_fail(&mine, FB_EXIT_USAGE, EINVAL, "no");
	CHECK(fb_oob_agree(o, &mine, S(5)) == -EINVAL);
	CHECK(strncmp(mine.msg, "rank 0 on ", 10) == 0 && mine.exit == FB_EXIT_USAGE);
	return fb_oob_barrier(o, S(5), e);
}

static int abort_one(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err why = {0}, got = {0};
	const uint64_t begin = fb_clock_ns();
	if (fb_oob_rank(o) == 3) {
		fb_fail(&why, FB_EXIT_WRONG_DATA, EILSEQ, "bit 7 fell over");
		fb_hint(&why, "put it up again");
		fb_oob_abort(o, &why);
		return 0;
	}
	CHECK(fb_oob_barrier(o, S(20), &got) == -EILSEQ);
	CHECK(strncmp(got.msg, "rank 3 on ", 10) == 0 && strstr(got.msg, "bit 7 fell over"));
	CHECK(got.exit == FB_EXIT_WRONG_DATA && strcmp(got.hint, "put it up again") == 0);
	CHECK(fb_clock_ns() - begin < 5000000000u);
	CHECK(fb_oob_lost(o, NULL) == -EILSEQ);
	return 0;
}

static int abort_root(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err why = {0}, got = {0};
	char buf[8];
	if (fb_oob_rank(o) == 0) {
		poll(NULL, 0, 50);
		fb_fail(&why, FB_EXIT_UNMEASURED, EIO, "the root gives up");
		fb_oob_abort(o, &why);
		return 0;
	}
	CHECK(fb_oob_bcast(o, buf, sizeof(buf), S(20), &got) == -EIO);
	CHECK(strncmp(got.msg, "rank 0 on ", 10) == 0);
	return 0;
}

static int leave(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err got = {0};
	if (fb_oob_rank(o) == 2)
		return 0;
	CHECK(fb_oob_barrier(o, S(20), &got) == -ECONNRESET);
	CHECK(strstr(got.msg, "rank 2 on ") && strstr(got.msg, "has left"));
	return 0;
}

static int drift(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err got = {0};
	char buf[8] = "";
	struct fb_oob_part *parts;
	int rc;
	if (fb_oob_rank(o) == 1)
		rc = fb_oob_gather(o, buf, sizeof(buf), &parts, S(5), &got);
	else
		rc = fb_oob_barrier(o, S(5), &got);
	if (fb_oob_rank(o) == 1)
		return 0; /* it has said its part; what it hears depends on time */
	CHECK(rc == -EPROTO);
	CHECK(strstr(got.msg, "rank 1 on ") && strstr(got.msg, "is in a gather"));
	return 0;
}

static int lengths_differ(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err got = {0};
	char buf[16] = "";
	int rc = fb_oob_bcast(o, buf, fb_oob_rank(o) == 0 ? 8 : 16, S(5), &got);
	CHECK(rc == (fb_oob_rank(o) == 0 ? 0 : -EPROTO));
	return 0;
}

static int time_out(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err got = {0};
	if (fb_oob_rank(o) == 1) {
		poll(NULL, 0, 400);
		return 0;
	}
	const uint64_t deadline = fb_oob_rank(o) == 0 ? fb_deadline_in(100000000u) : S(20);
	CHECK(fb_oob_barrier(o, deadline, &got) == -ETIMEDOUT);
	CHECK(strstr(got.msg, "rank 1 on ") && strstr(got.msg, "sent nothing within 0."));
	return 0;
}

static int too_long(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct fb_err got = {0};
	char c = 0;
	CHECK(fb_oob_allgather(o, &c, FB_OOB_MAX_MSG, &c, S(5), &got) == -EMSGSIZE);
	CHECK(strstr(got.msg, "over the limit"));
	return 0;
}

static void every_call(void **state)
{
	both(1, calls);
	both(2, calls);
	both(7, calls);
}
static void json_goes_through(void **state)
{
	both(1, json);
	both(4, json);
}
static void agreeing(void **state)
{
	both(1, agree_fine);
	both(5, agree_fine);
	both(5, agree_bad);
	both(5, agree_root_bad);
}
static void aborting(void **state)
{
	both(6, abort_one);
	both(3, abort_root);
}
static void leaving(void **state)
{
	both(4, leave);
}
static void drifting_apart(void **state)
{
	both(2, drift);
	both(3, lengths_differ);
}
static void timing_out(void **state)
{
	both(3, time_out);
}
static void limits(void **state)
{
	both(2, too_long);
}

/* ---- local_run itself --------------------------------------------------------------------------
 */

static int fail_third(struct fb_oob *o, void *arg, struct fb_err *e)
{
	if (fb_oob_rank(o) == 3)
		return fb_fail(e, FB_EXIT_WRONG_DATA, EILSEQ, "the cause");
	return fb_oob_barrier(o, S(20), e);
}
static int plain_number(struct fb_oob *o, void *arg, struct fb_err *e)
{
	return fb_oob_rank(o) == 1 ? 5 : 0;
}
static int count(struct fb_oob *o, void *arg, struct fb_err *e)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
	return fb_oob_barrier(o, S(20), e);
}

static void the_first_failure_is_the_result(void **state)
{
	struct fb_err e = {0};
	const uint64_t begin = fb_clock_ns();
	assert_int_equal(fb_oob_local_run(6, fail_third, NULL, &e), -EILSEQ);
	assert_string_equal(e.msg, "the cause");
	assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
	assert_true(fb_clock_ns() - begin < 5000000000u);
	fb_err_clear(&e);
	assert_int_equal(fb_oob_local_run(3, plain_number, NULL, &e), 5);
	assert_true(e.code != 0);
	fb_err_clear(&e);
	assert_int_equal(fb_oob_local_run(0, plain_number, NULL, &e), -EINVAL);
	int n = 0;
	fb_err_clear(&e);
	assert_int_equal(fb_oob_local_run(256, count, &n, &e), 0);
	assert_int_equal(n, 256);
}

int main(void)
{
	fb_log_set_level(FB_LOG_ERROR);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call),
		cmocka_unit_test(json_goes_through),
		cmocka_unit_test(agreeing),
		cmocka_unit_test(aborting),
		cmocka_unit_test(leaving),
		cmocka_unit_test(drifting_apart),
		cmocka_unit_test(timing_out),
		cmocka_unit_test(limits),
		cmocka_unit_test(the_first_failure_is_the_result),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
