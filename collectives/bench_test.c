// SPDX-License-Identifier: Apache-2.0
/*
 * The benchmark over backends that lose, change and misplace data: each error is found, in the
 * batch where it happens if its windows see it, at the end otherwise, and is located. And options
 * that cannot be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/test.h"
#include "bench/oob/oob.h"
#include "collectives/coll.h"
#include "collectives/local.h"

/* ---- a backend that errs: local's, and after an operation on rank 1 one of these ---------------
 */

enum fault { NONE, FLIP_EARLY, FLIP_LATE, LOSE, SHIFT };

struct faulty {
	enum fault fault;
	size_t bytes; /**< of the point's receive buffer */
};
static struct faulty faulty;          /* one test at a time */
static _Thread_local int my_rank;     /* ranks are threads */
static _Thread_local void *last_recv; /* of the operation begun last; NULL: a barrier's */
static _Thread_local void *scratch;

static int faulty_open(const struct coll_env *env, struct coll_comm **c, struct fb_err *e)
{
	my_rank = env->rank;
	return coll_local_ops.open(env, c, e);
}

static int faulty_start(struct coll_comm *c, const struct coll_call *call, struct fb_err *e)
{
	struct coll_call k = *call;
	last_recv = call->count > 1 ? call->recv : NULL;
	if (faulty.fault == LOSE && my_rank == 1 && last_recv) {
		if (!scratch)
			scratch = malloc(faulty.bytes);
		k.recv = scratch; /* everything runs, and nothing arrives */
	}
	return coll_local_ops.start(c, &k, e);
}

static int faulty_wait(struct coll_comm *c, uint64_t deadline, struct fb_err *e)
{
	int rc = coll_local_ops.wait(c, deadline, e);
	unsigned char *recv = last_recv;
	if (rc != 0 || !recv || my_rank != 1)
		return rc;
	if (faulty.fault == FLIP_EARLY)
		recv[100] ^= 1;
	else if (faulty.fault == FLIP_LATE)
		recv[faulty.bytes / 2 + 40000] ^= 0x80;
	else if (faulty.fault == SHIFT)
		memmove(recv, recv + 64, faulty.bytes - 64);
	return 0;
}

/* ---- driving ----------------------------------------------------------------------------------
 */

struct drive {
	struct coll_cfg cfg;
	struct coll_ops ops;
	struct fb_runctl_cfg rc;
	struct fb_doc *doc;
};

static int drive_rank(struct fb_oob *o, void *arg, struct fb_err *e)
{
	struct drive *d = arg;
	bool owner = fb_oob_rank(o) == 0;
	scratch = NULL;
	int rc = fb_run_bench(
		owner ? d->doc : NULL, &coll_bench, &d->cfg, owner ? &d->rc : NULL, o, "cpu", e);
	free(scratch);
	return rc;
}

static int drive(struct drive *d, enum coll_op op, size_t bytes, enum fault fault, int check,
	struct fb_err *e)
{
	struct fb_output_cfg out = {.quiet = true};
	memset(d, 0, sizeof(*d));
	faulty = (struct faulty){.fault = fault, .bytes = bytes};
	d->ops = coll_local_ops;
	d->ops.open = faulty_open;
	d->ops.start = faulty_start;
	d->ops.wait = faulty_wait;
	d->cfg = (struct coll_cfg){.op = op,
		.min = bytes,
		.max = bytes,
		.factor = 2,
		.check = check,
		.dtype = COLL_FLOAT,
		.redop = COLL_SUM,
		.ops = &d->ops,
		.seed = 5,
		.group = coll_local_group_new(2, e)};
	d->rc = (struct fb_runctl_cfg){.iters = 10,
		.warmup = 2,
		.ci_width = 0.02,
		.max_time_ns = 1000000000,
		.point_timeout_ns = 20000000000};
	d->doc = fb_doc_new("coll", 0, NULL, &out, e);
	assert_non_null(d->doc);
	int rc = fb_oob_local_run(2, drive_rank, d, e);
	coll_local_group_free(d->cfg.group);
	return rc;
}

static void finds(enum coll_op op, size_t bytes, enum fault fault, const char *where)
{
	struct drive d;
	struct fb_err e = {0};
	int rc = drive(&d, op, bytes, fault, 1, &e);
	if (rc != -EBADMSG || !strstr(e.msg, where) || !strstr(e.msg, "rank 1"))
		print_message("%d: %s\n", rc, e.msg);
	assert_int_equal(rc, -EBADMSG);
	assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
	assert_non_null(strstr(e.msg, where));
	assert_non_null(strstr(e.msg, "rank 1"));
	fb_doc_free(d.doc);
}

static void right_data_pass(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++) {
		struct drive d;
		struct fb_err e = {0};
		assert_int_equal(drive(&d, (enum coll_op)op, 65536, NONE, 1, &e), 0);
		json_t *results = json_object_get(fb_doc_json(d.doc), "results");
		assert_int_equal(json_array_size(results), 3);
		fb_doc_free(d.doc);
	}
}

static void a_flipped_bit_is_located(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++)
		finds((enum coll_op)op, 65536, FLIP_EARLY, "offset 100 (element 25)");
}

/* 4 MiB: outside the windows of a batch, so the last check alone can see it. */
static void a_flipped_bit_between_the_windows_is_located(void **state)
{
	finds(COLL_ALL_REDUCE, 4u << 20, FLIP_LATE, "offset 2137152 (element 534288)");
	finds(COLL_ALLTOALL, 4u << 20, FLIP_LATE, "offset 2137152 (element 534288)");
	/* the last check, not a batch's: it looked at every element */
	finds(COLL_BROADCAST, 4u << 20, FLIP_LATE, "1 of 1048576 elements");
}

static void a_lost_write_is_found(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++) {
		if (op == COLL_ALL_REDUCE)
			continue; /* there rank 0 reads what rank 1 has reduced: nothing arrives
				     anywhere */
		finds((enum coll_op)op, 65536, LOSE, "offset 0 (element 0)");
		finds((enum coll_op)op, 4u << 20, LOSE, "offset 0 (element 0)");
	}
}

static void shifted_data_are_found(void **state)
{
	for (int op = 0; op < COLL_OP_COUNT; op++)
		finds((enum coll_op)op, 65536, SHIFT, "offset ");
}

static void without_the_check_nothing_is_found(void **state)
{
	struct drive d;
	struct fb_err e = {0};
	assert_int_equal(drive(&d, COLL_BROADCAST, 65536, FLIP_EARLY, 0, &e), 0);
	fb_doc_free(d.doc);
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void refused(const struct coll_cfg *cfg, int ranks, const char *text)
{
	struct fb_err e = {0};
	assert_int_equal(coll_check_cfg(cfg, ranks, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, text));
}

static void impossible_options_are_refused(void **state)
{
	struct fb_err e = {0};
	const struct coll_cfg good = {.min = 8, .max = 64, .factor = 2, .check = 1};
	struct coll_cfg c = good;
	char text[32] = "1:5";
	assert_int_equal(coll_check_cfg(&c, 2, &e), 0);
	c.inject = text;
	assert_int_equal(coll_check_cfg(&c, 2, &e), 0);
	refused(&c, 1, "ranks are 0 to 0");
	c.check = 0;
	refused(&c, 2, "--check 1");
	c = good;
	refused(&c, 1, "one rank");
	c.allow_one_rank = true;
	assert_int_equal(coll_check_cfg(&c, 1, &e), 0);
	c = good;
	c.max = 4;
	refused(&c, 2, "there are none");
	c = good;
	c.factor = 1;
	refused(&c, 2, "--factor");
	c.step = 8;
	assert_int_equal(coll_check_cfg(&c, 2, &e), 0);
	c = good;
	c.root = 2;
	refused(&c, 2, "--root");
}

static void inject_is_rank_and_offset(void **state)
{
	static const char *const bad[] = {"", "1", ":", "1:", ":5", "x:5", "1:-5", "1:5Q", "-1:5"};
	struct fb_err e = {0};
	int rank;
	uint64_t offset;
	assert_int_equal(coll_parse_inject(NULL, &rank, &offset, &e), 0);
	assert_int_equal(rank, -1);
	assert_int_equal(coll_parse_inject("3:1K", &rank, &offset, &e), 0);
	assert_int_equal(rank, 3);
	assert_int_equal(offset, 1024);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fb_err_clear(&e);
		if (coll_parse_inject(bad[i], &rank, &offset, &e) == 0)
			print_message("accepted: %s\n", bad[i]);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_data_pass),
		cmocka_unit_test(a_flipped_bit_is_located),
		cmocka_unit_test(a_flipped_bit_between_the_windows_is_located),
		cmocka_unit_test(a_lost_write_is_found),
		cmocka_unit_test(shifted_data_are_found),
		cmocka_unit_test(without_the_check_nothing_is_found),
		cmocka_unit_test(impossible_options_are_refused),
		cmocka_unit_test(inject_is_rank_and_offset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
