/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: a test program that starts itself under mpirun. With a scenario's name as its
 * argument it is a rank, which checks what it sees and exits 0 when it is right.
 */
#ifndef OOB_TEST_MPIRUN_H
#define OOB_TEST_MPIRUN_H

#include "bench/core/test.h"

#include <stdio.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/core/proc.h"

/** Run a scenario on so many ranks, at most `seconds`. Without MPI the test is skipped as `id`.
 * @return the status; *r is to be freed */
static inline int test_mpirun(const char *id, const char *ranks, const char *scenario,
	unsigned seconds, struct fb_proc_result *r)
{
	static char self[4096];
	struct fb_err e = {0};
	const char *const argv[] = {"mpirun", "--oversubscribe", "-n", ranks, self, scenario, NULL};
	const char *const env[] = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_plm=isolated", "OMPI_MCA_mpi_yield_when_idle=1",
		/* Open MPI unloads its components before it ends: their leaks have no name
		 that a suppression could list. Errors are found all the same. */
		"ASAN_OPTIONS=detect_leaks=0", "OMPI_MCA_btl_base_warn_component_unused=0", NULL};
	const struct fb_proc_opts o = {.env = env,
		.capture = 65536,
		.deadline_ns = fb_deadline_in(seconds * 1000000000ull)};
	char path[4096];
	if (fb_find_program("mpirun", path, sizeof(path)) != 0)
		fb_test_skip(id, "mpirun is not here: apt-get install openmpi-bin");
	if (!fb_plugin_open("mpi", &e))
		fb_test_skip(id, "%s", e.msg);
	assert_int_equal(fb_self_path(self, sizeof(self)), 0);
	int rc = fb_proc_run(argv, &o, r, &e);
	if (rc != 0)
		fprintf(stderr, "%s\n", e.msg);
	assert_int_equal(rc, 0);
	return r->status;
}

/** A scenario in which every rank is right. */
static inline void test_mpirun_fine(
	const char *id, const char *ranks, const char *scenario, unsigned seconds)
{
	struct fb_proc_result r = {0};
	int status = test_mpirun(id, ranks, scenario, seconds, &r);
	if (status != 0)
		fprintf(stderr, "%s\n%s\n", r.out, r.err);
	assert_int_equal(status, 0);
	fb_proc_result_free(&r);
}

#endif
