// SPDX-License-Identifier: Apache-2.0
/*
 * What launchers promise, read from their environments as those are on real machines, and what
 * comes of a promise that cannot be kept: never N independent copies.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/opt.h"
#include "bench/oob/oob.h"

static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
	"PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID",
	"SLURM_STEPID", "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "RANK",
	"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "JOB_COMPLETION_INDEX", "FABRICBENCH_TOKEN"};

static int bare(void **state)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	return 0;
}

static void set(const char *const *kv)
{
	bare(NULL);
	for (; *kv; kv += 2)
		setenv(kv[0], kv[1], 1);
}
#define ENV(...) set((const char *const[]){__VA_ARGS__, NULL})

static int settle(struct fb_oob_cfg *cfg, struct fb_err *e)
{
	fb_err_clear(e);
	return fb_oob_from_env(cfg, e);
}

static const struct fb_oob_cfg none = {.rank = -1};

static void nothing_is_one_local_rank(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	struct fb_oob *o;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_LOCAL);
	assert_int_equal(c.ranks, 1);
	assert_true(c.timeout_ns == 30000000000u);
	c = none;
	assert_int_equal(fb_oob_open(&c, &o, &e), 0);
	assert_int_equal(fb_oob_size(o), 1);
	fb_oob_close(o);
	c = none;
	c.ranks = 4;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_LOCAL);
	assert_int_equal(c.ranks, 4);
	assert_int_equal(fb_oob_open(&c, &o, &e), -EINVAL); /* threads are fb_oob_local_run()'s */
}

static void torch_style(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	ENV("RANK", "3", "WORLD_SIZE", "16", "MASTER_ADDR", "node01", "MASTER_PORT", "29500");
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_TCP);
	assert_int_equal(c.rank, 3);
	assert_int_equal(c.ranks, 16);
	assert_string_equal(c.master, "node01");
	assert_int_equal(c.port, 29500);
	/* options win */
	c = none;
	c.rank = 5;
	c.ranks = 8;
	c.port = 7;
	c.master = (char *)"other";
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.rank, 5);
	assert_int_equal(c.ranks, 8);
	assert_string_equal(c.master, "other");
	assert_int_equal(c.port, 7);
	/* one rank only is no job */
	ENV("RANK", "0", "WORLD_SIZE", "1");
	c = none;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_LOCAL);
}

static void slurm(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	ENV("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS",
		"12", "SLURM_NTASKS", "16", "SLURM_STEP_NODELIST", "gpu[007-010,12]-ib,x1");
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_TCP);
	assert_int_equal(c.rank, 5);
	assert_int_equal(c.ranks, 12);
	assert_string_equal(c.master, "gpu007-ib");
	/* the batch script itself is no step */
	ENV("SLURM_JOB_ID", "7", "SLURM_PROCID", "0", "SLURM_NTASKS", "16");
	c = none;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_LOCAL);
	ENV("SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_JOB_NODELIST", "a,b");
	c = none;
	assert_int_equal(settle(&c, &e), 0);
	assert_string_equal(c.master, "a");
}

static void kubernetes(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	ENV("JOB_COMPLETION_INDEX", "2", "MASTER_ADDR", "job-0.svc");
	c.ranks = 4;
	c.kind = FB_OOB_TCP;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.rank, 2);
	assert_string_equal(c.master, "job-0.svc");
	c = none;
	c.kind = FB_OOB_TCP;
	assert_int_equal(settle(&c, &e), -EINVAL); /* of how many? */
	assert_non_null(strstr(e.hint, "--ranks"));
}

static void mpirun(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	struct fb_oob *o;
	ENV("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "SLURM_PROCID", "0",
		"SLURM_NTASKS", "9", "MASTER_ADDR", "left-over");
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_MPI);
	assert_int_equal(c.ranks, 2);
	ENV("PMI_RANK", "1", "PMI_SIZE", "2");
	c = none;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_MPI);
	/* alone under mpirun: no need for MPI */
	ENV("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "1");
	c = none;
	assert_int_equal(settle(&c, &e), 0);
	assert_int_equal(c.kind, FB_OOB_LOCAL);
	/* another number than was started */
	ENV("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2");
	c = none;
	c.ranks = 4;
	assert_int_equal(fb_oob_open(&c, &o, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	/* threads in each of two processes would be two jobs */
	c = none;
	c.kind = FB_OOB_LOCAL;
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "mpirun started 2 processes"));
}

static void contradictions(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	ENV("RANK", "16", "WORLD_SIZE", "16");
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	ENV("RANK", "1x", "WORLD_SIZE", "16");
	c = none;
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "RANK=1x"));
	ENV("RANK", "1", "WORLD_SIZE", "2");
	c = none; /* where is rank 0? */
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_non_null(strstr(e.hint, "--master"));
	ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "70000");
	c = none;
	assert_int_equal(settle(&c, &e), -EINVAL);
	bare(NULL);
	c = none;
	c.kind = FB_OOB_TCP;
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "which rank"));
	c = none;
	c.rank = 4;
	c.ranks = 4;
	assert_int_equal(settle(&c, &e), -EINVAL);
	c = none;
	c.kind = FB_OOB_MPI;
	assert_int_equal(settle(&c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no MPI launcher"));
}

static void token(void **state)
{
	struct fb_err e = {0};
	struct fb_oob_cfg c = none;
	char longer[200];
	ENV("FABRICBENCH_TOKEN", "abc");
	assert_int_equal(settle(&c, &e), 0);
	assert_string_equal(c.token, "abc");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	c = none;
	c.token = longer;
	assert_int_equal(settle(&c, &e), -EINVAL);
}

static void the_options(void **state)
{
	struct fb_oob_cfg c = {0};
	struct fb_err e = {0};
	struct fb_opt_spec spec = {
		.command = "x", .usage = "", .summary = "", .sets = {{"Ranks", fb_oob_opts, &c}}};
	const char *const argv[] = {"x", "--comm", "tcp", "--ranks=4", "--rank", "2", "--master",
		"h:1", "-p", "99", "--connect-timeout", "2s", NULL};
	assert_int_equal(fb_opt_parse(&spec, 12, (char **)argv, &e), 0);
	assert_int_equal(c.kind, FB_OOB_TCP);
	assert_int_equal(c.ranks, 4);
	assert_int_equal(c.rank, 2);
	assert_string_equal(c.master, "h:1");
	assert_int_equal(c.port, 99);
	assert_true(c.timeout_ns == 2000000000u);
	fb_opt_free(&spec);
	assert_int_equal(fb_opt_defaults(&spec, &e), 0);
	assert_int_equal(c.kind, FB_OOB_AUTO);
	assert_int_equal(c.rank, -1);
	assert_true(c.timeout_ns == 30000000000u);
	/* what the environment adds is not the options' to free */
	ENV("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "h", "FABRICBENCH_TOKEN", "t");
	assert_int_equal(settle(&c, &e), 0);
	fb_opt_free(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_one_local_rank, bare, bare),
		cmocka_unit_test_setup_teardown(torch_style, bare, bare),
		cmocka_unit_test_setup_teardown(slurm, bare, bare),
		cmocka_unit_test_setup_teardown(kubernetes, bare, bare),
		cmocka_unit_test_setup_teardown(mpirun, bare, bare),
		cmocka_unit_test_setup_teardown(contradictions, bare, bare),
		cmocka_unit_test_setup_teardown(token, bare, bare),
		cmocka_unit_test_setup_teardown(the_options, bare, bare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
