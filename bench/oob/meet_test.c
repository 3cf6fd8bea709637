// SPDX-License-Identifier: Apache-2.0
/*
 * The N-rank rendezvous over loopback, threads as ranks: 256 of them, and each way it can fail:
 * one missing, dead, there twice, of another size, with another token, and strangers at the door.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/oob/oob_listen.h"
#include "version.h"

#define S(n) fb_deadline_in((uint64_t)(n)*1000000000u)

struct who {
	pthread_t thread;
	struct fb_oob_listener *l; /* rank 0's */
	struct fb_oob_cfg cfg;
	int (*fn)(struct fb_oob *o, struct fb_err *e);
	struct fb_err err;
	int rc;
};
struct job {
	struct fb_oob_listener *l;
	int n, port;
	struct who *w;
};

static void *rank_main(void *p)
{
	struct who *w = p;
	struct fb_oob *o = oob_new(&w->err);
	assert_non_null(o);
	w->rc = oob_tcp_meet(&w->cfg, w->l, o, &w->err);
	if (w->rc != 0) {
		oob_delete(o);
		return NULL;
	}
	w->rc = w->fn(o, &w->err);
	fb_oob_close(o);
	return NULL;
}

static char loopback[] = "127.0.0.1", token[] = "t";

static struct job job_new(int n, uint64_t timeout_ms, int (*fn)(struct fb_oob *o, struct fb_err *e))
{
	struct job j = {.n = n, .w = calloc((size_t)n, sizeof(*j.w))};
	struct fb_err e = {0};
	fb_log_set_level(FB_LOG_ERROR);
	assert_int_equal(fb_oob_listen("127.0.0.1", &j.port, "t", &j.l, &e), 0);
	for (int i = 0; i < n; i++) {
		j.w[i].cfg = (struct fb_oob_cfg){.kind = FB_OOB_TCP,
			.ranks = n,
			.rank = i,
			.master = loopback,
			.port = j.port,
			.token = token,
			.timeout_ns = timeout_ms * 1000000u};
		j.w[i].fn = fn;
	}
	j.w[0].l = j.l;
	return j;
}

static void job_start(struct job *j, int skip)
{
	for (int i = 0; i < j->n; i++)
		if (i != skip)
			assert_int_equal(
				pthread_create(&j->w[i].thread, NULL, rank_main, &j->w[i]), 0);
}

static void job_end(struct job *j, int skip)
{
	for (int i = 0; i < j->n; i++)
		if (i != skip)
			pthread_join(j->w[i].thread, NULL);
}

static void job_free(struct job *j)
{
	fb_oob_listener_close(j->l);
	free(j->w);
}

static int no_work(struct fb_oob *o, struct fb_err *e)
{
	return fb_oob_barrier(o, S(10), e);
}

static int exchange(struct fb_oob *o, struct fb_err *e)
{
	int all[256], mine = 1000 + fb_oob_rank(o);
	int rc = fb_oob_allgather(o, &mine, sizeof(mine), all, S(20), e);
	for (int i = 0; i < fb_oob_size(o) && rc == 0; i++)
		if (all[i] != 1000 + i)
			rc = fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG, "rank %d: %d", i, all[i]);
	return rc == 0 ? fb_oob_barrier(o, S(20), e) : rc;
}

static void two_hundred_and_fifty_six(void **state)
{
	struct job j = job_new(256, 30000, exchange);
	const uint64_t begin = fb_clock_ns();
	job_start(&j, -1);
	job_end(&j, -1);
	const double s = oob_seconds(fb_clock_ns() - begin);
	for (int i = 0; i < j.n; i++) {
		if (j.w[i].rc != 0)
			fprintf(stderr, "rank %d: %s\n", i, j.w[i].err.msg);
		assert_int_equal(j.w[i].rc, 0);
	}
	printf("256 ranks met, exchanged and parted in %.2f s\n", s);
	assert_true(s < 10.0);
	job_free(&j);
}

static void the_missing_are_named(void **state)
{
	struct job j = job_new(5, 600, no_work);
	job_start(&j, 3);
	job_end(&j, 3);
	for (int i = 0; i < 5; i++) {
		if (i == 3)
			continue;
		assert_int_equal(j.w[i].rc, -ETIMEDOUT);
		assert_int_equal(j.w[i].err.exit, FB_EXIT_UNMEASURED);
		assert_non_null(strstr(j.w[i].err.msg, "rank 3 of 5 never came within 0.6 s"));
		assert_non_null(strstr(j.w[i].err.msg, "here are 4 on "));
		assert_true(j.w[i].err.hint[0] != '\0');
	}
	job_free(&j);
}

static void no_rank_zero(void **state)
{
	struct job j = job_new(2, 300, no_work);
	fb_oob_listener_close(j.l); /* nobody listens there now */
	j.l = NULL;
	rank_main(&j.w[1]);
	assert_int_equal(j.w[1].rc, -ECONNREFUSED);
	assert_non_null(strstr(j.w[1].err.hint, "rank 0 never listened there"));
	free(j.w);
}

static void one_twice_ends_all(void **state)
{
	struct job j = job_new(4, 8000, no_work);
	j.w[3].cfg.rank = 2;
	job_start(&j, -1);
	job_end(&j, -1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(j.w[i].rc, -EPROTO);
		assert_non_null(strstr(j.w[i].err.msg, "rank 2 is there twice"));
	}
	job_free(&j);
}

static void another_size_ends_all(void **state)
{
	struct job j = job_new(3, 8000, no_work);
	j.w[2].cfg.ranks = 4;
	job_start(&j, -1);
	job_end(&j, -1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(j.w[i].rc, -EPROTO);
		assert_non_null(strstr(j.w[i].err.msg, "rank 2 on "));
		assert_non_null(strstr(j.w[i].err.msg, "expects 4 ranks, rank 0 expects 3"));
	}
	job_free(&j);
}

/* A foreign rank, a client, and a stranger are refused, and the three still meet. */
static void strangers_change_nothing(void **state)
{
	struct job j = job_new(3, 8000, exchange);
	struct fb_err e = {0};
	char wrong[] = "wrong";
	struct who foreign = j.w[1];
	struct fb_oob *o;
	foreign.cfg.token = wrong;
	job_start(&j, 1);
	rank_main(&foreign);
	assert_int_equal(foreign.rc, -EACCES);
	assert_int_equal(fb_oob_connect("127.0.0.1", j.port, "t", S(5), &o, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "this is a rendezvous of 3 ranks"));
	assert_int_equal(pthread_create(&j.w[1].thread, NULL, rank_main, &j.w[1]), 0);
	job_end(&j, -1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(j.w[i].rc, 0);
	job_free(&j);
}

static void a_server_takes_no_ranks(void **state)
{
	struct job j = job_new(2, 3000, no_work);
	struct fb_err e = {0};
	struct fb_oob *o;
	assert_int_equal(pthread_create(&j.w[1].thread, NULL, rank_main, &j.w[1]), 0);
	assert_int_equal(fb_oob_accept(j.l, fb_deadline_in(500000000u), &o, &e), -ETIMEDOUT);
	pthread_join(j.w[1].thread, NULL);
	assert_int_equal(j.w[1].rc, -EPROTO);
	assert_non_null(strstr(j.w[1].err.msg, "this is a server for one client"));
	job_free(&j);
}

static void raw_hello(struct oob_conn *c, int port, int rank, int size)
{
	struct fb_err e = {0};
	struct oob_hello h = {.role = OOB_RANK, .rank = rank, .size = size};
	struct fb_strbuf b = {0};
	uint8_t hdr[OOB_HDR];
	int fd;
	assert_int_equal(oob_dial("127.0.0.1", port, true, S(5), &fd, &e), 0);
	oob_conn_init(c, fd);
	snprintf(h.version, sizeof(h.version), "%s", FB_VERSION);
	snprintf(h.host, sizeof(h.host), "node07");
	snprintf(h.token, sizeof(h.token), "t");
	oob_hello_put(&b, &h);
	oob_hdr_put(hdr, OOB_HELLO, (uint32_t)b.len);
	size_t done = 0;
	assert_int_equal(oob_conn_write(c, hdr, b.s, (uint32_t)b.len, &done), 1);
	fb_strbuf_free(&b);
}

static void a_rank_that_dies_early_is_named(void **state)
{
	struct job j = job_new(4, 8000, no_work);
	struct oob_conn c;
	/* ranks 0 and 1 are there, rank 2 comes from node07 and dies, rank 3 never comes */
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&j.w[i].thread, NULL, rank_main, &j.w[i]), 0);
	raw_hello(&c, j.port, 2, 4);
	poll(NULL, 0, 300);
	const uint64_t begin = fb_clock_ns();
	oob_conn_close(&c);
	for (int i = 0; i < 2; i++)
		pthread_join(j.w[i].thread, NULL);
	assert_true(fb_clock_ns() - begin < 3000000000u);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(j.w[i].rc, -ECONNRESET);
		assert_non_null(strstr(j.w[i].err.msg, "rank 2 on node07 is gone"));
	}
	job_free(&j);
}

static int die_in_barrier(struct fb_oob *o, struct fb_err *e)
{
	if (fb_oob_rank(o) == 3) { /* as the kernel does for a killed process */
		struct oob_tcp *t = o->priv;
		close(t->conn[0].fd);
		t->conn[0].fd = -1;
		return 0;
	}
	return fb_oob_barrier(o, S(20), e);
}

static void a_rank_that_dies_later_is_named(void **state)
{
	struct job j = job_new(6, 8000, die_in_barrier);
	const uint64_t begin = fb_clock_ns();
	job_start(&j, -1);
	job_end(&j, -1);
	assert_true(fb_clock_ns() - begin < 5000000000u);
	for (int i = 0; i < 6; i++) {
		if (i == 3)
			continue;
		assert_int_equal(j.w[i].rc, -ECONNRESET);
		assert_non_null(strstr(j.w[i].err.msg, "rank 3 on "));
		assert_non_null(strstr(j.w[i].err.msg, "is gone"));
	}
	job_free(&j);
}

static void master_is_read(void **state)
{
	struct job j = job_new(2, 2000, exchange);
	char master[64];
	static const char *const bad[] = {
		"", ":1", "[::1", "host:0", "host:66000", "host:x", "[::1]x"};
	snprintf(master, sizeof(master), "localhost:%d", j.port);
	j.w[1].cfg.master = master;
	j.w[1].cfg.port = 1; /* the port beside the host wins */
	job_start(&j, -1);
	job_end(&j, -1);
	assert_int_equal(j.w[1].rc, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&j.w[1].err, 0, sizeof(j.w[1].err));
		j.w[1].cfg.master = (char *)bad[i];
		rank_main(&j.w[1]);
		assert_int_equal(j.w[1].rc, -EINVAL);
		assert_int_equal(j.w[1].err.exit, FB_EXIT_USAGE);
	}
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_and_fifty_six),
		cmocka_unit_test(the_missing_are_named),
		cmocka_unit_test(no_rank_zero),
		cmocka_unit_test(one_twice_ends_all),
		cmocka_unit_test(another_size_ends_all),
		cmocka_unit_test(strangers_change_nothing),
		cmocka_unit_test(a_server_takes_no_ranks),
		cmocka_unit_test(a_rank_that_dies_early_is_named),
		cmocka_unit_test(a_rank_that_dies_later_is_named),
		cmocka_unit_test(master_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
