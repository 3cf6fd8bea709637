// SPDX-License-Identifier: Apache-2.0
/*
 * The control channel over MPI: this program starts itself under mpirun, three ranks for each
 * scenario, and judges status and output. Each rank checks what it sees and exits 0 when it is
 * right.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/oob/oob.h"
#include "bench/oob/test_mpirun.h"

#define S(n) fb_deadline_in((uint64_t)(n)*1000000000u)

/* ---- the ranks ---------------------------------------------------------------------------------
 */

#define EXPECT(cond)                                                                              \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "rank %d line %d: %s: %d %s\n", fb_oob_rank(o), __LINE__, \
				#cond, e.code, e.msg);                                            \
			return 1;                                                                 \
		}                                                                                 \
	} while (0)

static int calls(struct fb_oob *o)
{
	struct fb_err e = {0};
	const int n = fb_oob_size(o), me = fb_oob_rank(o);
	const uint32_t big = 1u << 20;
	int all[16], mine = me * me;
	unsigned char *m = calloc(1, big);
	EXPECT(n == 3 && m);
	EXPECT(fb_oob_allgather(o, &mine, sizeof(mine), all, S(20), &e) == 0);
	for (int i = 0; i < n; i++)
		EXPECT(all[i] == i * i);
	for (int i = 0; i < 100; i++)
		EXPECT(fb_oob_barrier(o, S(20), &e) == 0);
	memset(m, me == 0 ? 0x5a : 0, big);
	EXPECT(fb_oob_bcast(o, m, big, S(20), &e) == 0);
	EXPECT(m[0] == 0x5a && m[big - 1] == 0x5a);
	json_t *j = json_pack("{s:i}", "rank", me), *list;
	EXPECT(fb_oob_gather_json(o, j, &list, S(20), &e) == 0);
	EXPECT(me != 0 || json_array_size(list) == (size_t)n);
	EXPECT(fb_oob_lost(o, &e) == 0);
	EXPECT(fb_oob_agree(o, &e, S(20)) == 0);
	json_decref(j);
	json_decref(list);
	free(m);
	return 0;
}

static int agree(struct fb_oob *o)
{
	struct fb_err e = {0};
	if (fb_oob_rank(o) == 2)
		fb_fail(&e, FB_EXIT_WRONG_DATA, EIO, "boom");
	EXPECT(fb_oob_agree(o, &e, S(20)) == -EIO);
	EXPECT(strncmp(e.msg, "rank 2 on ", 10) == 0 && strstr(e.msg, ": boom"));
	EXPECT(e.exit == FB_EXIT_WRONG_DATA);
	return 0;
}

static int aborted(struct fb_oob *o)
{
	struct fb_err e = {0};
	const uint64_t begin = fb_clock_ns();
	if (fb_oob_rank(o) == 1) {
		struct fb_err why = {0};
		fb_fail(&why, FB_EXIT_UNMEASURED, ENODEV, "the card is on fire");
		fb_oob_abort(o, &why);
		return 0;
	}
	EXPECT(fb_oob_barrier(o, S(30), &e) == -ENODEV);
	EXPECT(strncmp(e.msg, "rank 1 on ", 10) == 0 && strstr(e.msg, "on fire"));
	EXPECT(fb_clock_ns() - begin < 10000000000u);
	return 0;
}

static int left(struct fb_oob *o)
{
	struct fb_err e = {0};
	if (fb_oob_rank(o) == 1)
		return 0;
	EXPECT(fb_oob_barrier(o, S(30), &e) == -ECONNRESET);
	EXPECT(strstr(e.msg, "rank 1 on ") && strstr(e.msg, "has left"));
	return 0;
}

static int silent(struct fb_oob *o)
{
	struct fb_err e = {0};
	if (fb_oob_rank(o) == 1) {
		poll(NULL, 0, 1500);
		return 0;
	}
	EXPECT(fb_oob_barrier(o, fb_oob_rank(o) == 0 ? fb_deadline_in(300000000u) : S(30), &e) ==
		-ETIMEDOUT);
	EXPECT(strstr(e.msg, "rank 1 on ") && strstr(e.msg, "sent nothing"));
	return 0;
}

static int killed(struct fb_oob *o)
{
	struct fb_err e = {0};
	if (fb_oob_rank(o) == 1)
		raise(SIGKILL);
	return fb_oob_barrier(o, S(60), &e) == 0 ? 0 : 3;
}

static const struct {
	const char *name;
	int (*fn)(struct fb_oob *o);
} scenarios[] = {{"calls", calls}, {"agree", agree}, {"aborted", aborted}, {"left", left},
	{"silent", silent}, {"killed", killed}};

static int rank_main(const char *scenario)
{
	struct fb_oob_cfg cfg = {.rank = -1, .timeout_ns = 20000000000u};
	struct fb_oob *o;
	struct fb_err e = {0};
	char text[1400];
	const bool absent = strcmp(scenario, "absent") == 0;
	const char *me = getenv("OMPI_COMM_WORLD_RANK");
	if (absent && me && strcmp(me, "1") == 0) {
		poll(NULL, 0, 8000);
		return 0;
	}
	if (absent)
		cfg.timeout_ns = 2000000000u;
	int rc = fb_oob_open(&cfg, &o, &e);
	if (rc != 0) {
		fprintf(stderr, "%s\n", fb_err_str(&e, text, sizeof(text)));
		return (int)e.exit;
	}
	rc = 1;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(scenarios[i].name, scenario) == 0)
			rc = scenarios[i].fn(o);
	fb_oob_close(o);
	return rc;
}

/* ---- the tests ---------------------------------------------------------------------------------
 */

static int mpirun(const char *scenario, struct fb_proc_result *r)
{
	return test_mpirun("oob-mpi", "3", scenario, 60, r);
}

static void expect_fine(const char *scenario)
{
	test_mpirun_fine("oob-mpi", "3", scenario, 60);
}

static void all_calls(void **state)
{
	expect_fine("calls");
}
static void agree_names_the_first(void **state)
{
	expect_fine("agree");
}
static void abort_ends_all(void **state)
{
	expect_fine("aborted");
}
static void leaving_is_noticed(void **state)
{
	expect_fine("left");
}
static void silence_times_out(void **state)
{
	expect_fine("silent");
}

static void a_killed_rank_ends_the_job(void **state)
{
	struct fb_proc_result r = {0};
	const uint64_t begin = fb_clock_ns();
	assert_int_not_equal(mpirun("killed", &r), 0);
	assert_true(fb_clock_ns() - begin < 30000000000u);
	fb_proc_result_free(&r);
}

static void an_absent_rank_meets_the_watchdog(void **state)
{
	struct fb_proc_result r = {0};
	assert_int_equal(mpirun("absent", &r), 3);
	assert_non_null(strstr(r.err, "MPI_Init_thread did not end within 2 s"));
	assert_non_null(strstr(r.err, "remedy: "));
	fb_proc_result_free(&r);
}

static void probe_says_what_is_here(void **state)
{
	struct fb_err e = {0};
	char found[256] = "";
	const struct fb_plugin *p = fb_plugin_open("mpi", &e);
	if (!p)
		fb_test_skip("oob-mpi", "%s", e.msg);
	assert_int_equal(p->probe(found, sizeof(found), &e), 0);
	assert_true(found[0] != '\0');
	assert_null(strchr(found, '\n'));
	assert_non_null(p->oob);
	/* without a launcher MPI stays untouched */
	struct fb_oob_cfg cfg = {.rank = -1, .kind = FB_OOB_MPI};
	struct fb_oob *o;
	assert_int_equal(fb_oob_open(&cfg, &o, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no MPI launcher"));
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return rank_main(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_says_what_is_here),
		cmocka_unit_test(all_calls),
		cmocka_unit_test(agree_names_the_first),
		cmocka_unit_test(abort_ends_all),
		cmocka_unit_test(leaving_is_noticed),
		cmocka_unit_test(silence_times_out),
		cmocka_unit_test(a_killed_rank_ends_the_job),
		cmocka_unit_test(an_absent_rank_meets_the_watchdog),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
