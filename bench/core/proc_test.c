// SPDX-License-Identifier: Apache-2.0
/* Children: argv exactly, statuses, deadlines, groups, chatty children. */
#include "bench/core/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/test.h"

#define SECOND 1000000000ull

static int run(
	const char *const *argv, struct fb_proc_opts *o, struct fb_proc_result *r, struct fb_err *e)
{
	memset(e, 0, sizeof(*e));
	if (o->deadline_ns == 0)
		o->deadline_ns = fb_deadline_in(20 * SECOND);
	return fb_proc_run(argv, o, r, e);
}

static void test_argv_is_exact(void **state)
{
	(void)state;
	const char *const argv[] = {"printf", "%s|", "a b", "$HOME", "`id`", "'\"", NULL};
	struct fb_proc_opts o = {.capture = 4096};
	struct fb_proc_result r;
	struct fb_err e;
	assert_int_equal(run(argv, &o, &r, &e), 0);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.out, "a b|$HOME|`id`|'\"|");
	fb_proc_result_free(&r);
}

static void test_status_env_input(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c", "cat; echo $FB_X >&2; exit 7", NULL};
	const char *const env[] = {"FB_X=hello", NULL};
	struct fb_proc_opts o = {.capture = 64, .env = env, .input = "in", .input_len = 2};
	struct fb_proc_result r;
	struct fb_err e;
	assert_int_equal(run(argv, &o, &r, &e), 0);
	assert_int_equal(r.status, 7);
	assert_string_equal(r.out, "in");
	assert_string_equal(r.err, "hello\n");
	fb_proc_result_free(&r);
}

static void test_missing_program(void **state)
{
	(void)state;
	const char *const argv[] = {"/nonexistent/prog", NULL};
	struct fb_proc_opts o = {0};
	struct fb_proc_result r;
	struct fb_err e;
	assert_int_equal(run(argv, &o, &r, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "cannot start /nonexistent/prog"));
	fb_proc_result_free(&r);
}

static void test_deadline_ends_the_group(void **state)
{
	(void)state;
	/* The grandchild ignores SIGTERM and holds the pipe: it must go too, and must not hold us
	 * up. */
	const char *const argv[] = {
		"sh", "-c", "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 60' & wait", NULL};
	struct fb_proc_opts o = {.capture = 64, .grace_ns = SECOND / 10};
	struct fb_proc_result r;
	struct fb_err e;
	o.deadline_ns = fb_deadline_in(SECOND / 2);
	assert_int_equal(run(argv, &o, &r, &e), -ETIMEDOUT);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_int_equal(r.timed_out, 1);
	assert_int_equal(r.status, 128 + SIGKILL);
	long grandchild = strtol(r.out, NULL, 10);
	assert_true(grandchild > 1);
	for (int i = 0; i < 200 && kill((pid_t)grandchild, 0) == 0; i++)
		usleep(10000);
	/* Reparented and reaped by init, or a zombie where there is no init that reaps: in both
	 * cases not sleeping on. */
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%ld/stat", grandchild);
	FILE *f = fopen(path, "r");
	if (f) {
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		assert_non_null(strstr(line, ") Z "));
	}
	fb_proc_result_free(&r);
}

static void test_chatty_child(void **state)
{
	(void)state;
	const char *const argv[] = {"sh", "-c",
		"i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 3",
		NULL};
	struct fb_proc_opts o = {.capture = 1000};
	struct fb_proc_result r;
	struct fb_err e;
	assert_int_equal(run(argv, &o, &r, &e), 0);
	assert_int_equal(r.status, 3);
	assert_int_equal(r.out_len, 1000);
	fb_proc_result_free(&r);
}

static void test_start_stop(void **state)
{
	(void)state;
	const char *const argv[] = {"sleep", "60", NULL};
	struct fb_proc_opts o = {.deadline_ns = 1};
	struct fb_err e = {0};
	pid_t pid = -1;
	assert_int_equal(fb_proc_start(argv, &o, &pid, &e), 0);
	assert_int_equal(fb_proc_stop(pid, 0), 128 + SIGTERM);
}

static void test_find_program(void **state)
{
	(void)state;
	char buf[256];
	assert_int_equal(fb_find_program("sh", buf, sizeof(buf)), 0);
	assert_int_equal(access(buf, X_OK), 0);
	assert_int_equal(fb_find_program("no-such-program-here", buf, sizeof(buf)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_argv_is_exact),
		cmocka_unit_test(test_status_env_input),
		cmocka_unit_test(test_missing_program),
		cmocka_unit_test(test_deadline_ends_the_group),
		cmocka_unit_test(test_chatty_child),
		cmocka_unit_test(test_start_stop),
		cmocka_unit_test(test_find_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
