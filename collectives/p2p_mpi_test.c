// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange over MPI: this program starts itself under mpirun for each scenario; its ranks run
 * the cases of exchange_cases.h and judge what they see.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/plugin.h"
#include "bench/oob/oob.h"
#include "bench/oob/test_mpirun.h"
#include "collectives/exchange_cases.h"

#define S(n) fb_deadline_in((uint64_t)(n)*1000000000u)

/* ---- the ranks ---------------------------------------------------------------------------------
 */

/* After a failure: what MPI may still be sending stays. */
static void release(struct ex_rank *r, void *p)
{
	if (!r->ops->holds(r->p))
		free(p);
}

/* Rank 1 ends the others in mid-flight: they are told why, and not by their deadline. */
static void aborted(struct ex_rank *r)
{
	const struct exchange_group g = {.rank = r->rank, .size = r->size, .stride = 1};
	const struct ex_case c = {.op = EX_ALL_REDUCE, .t = COLL_FLOAT, .count = 1000000};
	struct ex_rank quiet = *r;
	struct exchange *x = NULL;
	struct fb_err e = {0};
	char *buf = calloc(c.count, 4);
	const uint64_t begin = fb_clock_ns();
	int rc = exchange_new(r->ops, r->p, &g, NULL, &x, &e);
	if (rc != 0 || !buf) {
		EX_WRONG(r, "no memory");
	} else if (r->rank == 1) {
		fb_fail(&e, FB_EXIT_WRONG_DATA, EDOM, "the loss is not a number");
		fb_hint(&e, "a smaller step");
		r->ops->abort(r->p, &e);
	} else {
		rc = ex_begin(x, &g, &c, buf, buf, &e);
		if (rc == 0)
			rc = ex_wait(&quiet, x, &e);
		if (rc != -ECONNRESET || e.exit != FB_EXIT_WRONG_DATA ||
			!strstr(e.msg, "not a number") || !strstr(e.hint, "smaller"))
			EX_WRONG(r, "%d, exit %d: %s", rc, (int)e.exit, e.msg);
		if (fb_clock_ns() - begin > 40000000000u)
			EX_WRONG(r, "only after 40 s");
	}
	exchange_free(x);
	release(r, buf);
}

/* Rank 0 sends more than the others expect, and gets less than it expects: small and large. */
static void lengths(struct ex_rank *r, size_t count)
{
	const struct exchange_group g = {.rank = r->rank, .size = r->size, .stride = 1};
	const struct ex_case c = {
		.op = EX_GATHER, .t = COLL_UINT8, .count = count + (r->rank == 0)};
	struct ex_rank quiet = *r;
	struct exchange *x = NULL;
	struct fb_err e = {0};
	char *in = calloc(1, count + 1), *out = calloc((size_t)r->size, count + 1);
	int rc = exchange_new(r->ops, r->p, &g, NULL, &x, &e);
	if (rc == 0 && in && out)
		rc = ex_begin(x, &g, &c, in, out, &e);
	if (rc == 0)
		rc = ex_wait(&quiet, x, &e);
	if (rc != -EMSGSIZE || !strstr(e.msg, "same step"))
		EX_WRONG(r, "%d: %s", rc, e.msg);
	exchange_free(x);
	release(r, in);
	release(r, out);
}

static void short_lengths(struct ex_rank *r)
{
	lengths(r, 10);
}
static void long_lengths(struct ex_rank *r)
{
	lengths(r, 1000000);
}

static void cases(struct ex_rank *r)
{
	ex_all_groups(r);
	ex_pieces(r);
	ex_together(r);
}

static void killed(struct ex_rank *r)
{
	if (r->rank == 1)
		raise(SIGKILL);
	ex_together(r);
}

static const struct {
	const char *name;
	void (*run)(struct ex_rank *r);
} scenarios[] = {{"cases", cases}, {"aborted", aborted}, {"short", short_lengths},
	{"long", long_lengths}, {"killed", killed}};

static int rank_main(const char *scenario)
{
	const struct fb_oob_cfg cfg = {.rank = -1, .timeout_ns = 60000000000u};
	const struct fb_plugin *mpi;
	struct fb_oob *o;
	struct fb_err e = {0};
	struct ex_rank r = {0};
	char text[1400];
	if (fb_oob_open(&cfg, &o, &e) != 0) {
		fprintf(stderr, "%s\n", fb_err_str(&e, text, sizeof(text)));
		return (int)e.exit;
	}
	r.rank = fb_oob_rank(o);
	r.size = fb_oob_size(o);
	mpi = fb_plugin_open("mpi", &e);
	const struct p2p_env env = {
		.rank = r.rank, .size = r.size, .now = fb_clock_ns, .timeout_ns = 60000000000u};
	r.ops = mpi ? mpi->p2p : NULL;
	if (!r.ops || r.ops->open(&env, &r.p, &e) != 0) {
		EX_WRONG(&r, "%s", e.msg);
	} else {
		for (int i = 0; i < EX_LEN(scenarios); i++)
			if (strcmp(scenarios[i].name, scenario) == 0)
				scenarios[i].run(&r);
		/* No rank leaves while another may still need it. */
		if (fb_oob_barrier(o, S(90), &e) != 0)
			EX_WRONG(&r, "%s", e.msg);
		r.ops->close(r.p);
	}
	if (r.why[0] != '\0')
		fprintf(stderr, "rank %d of %d: %s\n", r.rank, r.size, r.why);
	fb_oob_close(o);
	return r.why[0] != '\0';
}

/* ---- the tests ---------------------------------------------------------------------------------
 */

static void expect_fine(const char *ranks, const char *scenario)
{
	test_mpirun_fine("p2p-mpi", ranks, scenario, 120);
}

static void two_ranks(void **state)
{
	expect_fine("2", "cases");
}
static void four_ranks(void **state)
{
	expect_fine("4", "cases");
}
static void an_abort_ends_all_with_the_cause(void **state)
{
	expect_fine("3", "aborted");
}
static void other_lengths_are_found(void **state)
{
	expect_fine("2", "short");
	expect_fine("2", "long");
}

static void a_killed_rank_ends_the_job(void **state)
{
	struct fb_proc_result r = {0};
	const uint64_t begin = fb_clock_ns();
	assert_int_not_equal(test_mpirun("p2p-mpi", "3", "killed", 120, &r), 0);
	assert_true(fb_clock_ns() - begin < 60000000000u);
	fb_proc_result_free(&r);
}

static void without_mpi_it_says_so(void **state)
{
	const struct p2p_env env = {.rank = 0, .size = 1, .now = fb_clock_ns};
	struct fb_err e = {0};
	struct p2p *p = NULL;
	const struct fb_plugin *mpi = fb_plugin_open("mpi", &e);
	if (!mpi)
		fb_test_skip("p2p-mpi", "%s", e.msg);
	assert_non_null(mpi->p2p);
	assert_int_equal(mpi->p2p->open(&env, &p, &e), -ENODEV);
	assert_non_null(strstr(e.hint, "mpirun"));
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return rank_main(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_mpi_it_says_so),
		cmocka_unit_test(two_ranks),
		cmocka_unit_test(four_ranks),
		cmocka_unit_test(an_abort_ends_all_with_the_cause),
		cmocka_unit_test(other_lengths_are_found),
		cmocka_unit_test(a_killed_rank_ends_the_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
