// SPDX-License-Identifier: Apache-2.0
/*
 * Output as it is pasted: launchers' prefixes, tools' forks, rows that a sweep repeats, figures
 * without what they are of. The texts are made up in the shapes that tools print.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/import.h"

static int read_as(const char *tool, const char *text, json_t **results, struct fb_err *e)
{
	static const struct import_model model = {8e9, 1000e12, 0, 0, 0, 0};
	char *copy = strdup(text);
	assert_non_null(copy);
	memset(e, 0, sizeof(*e));
	*results = json_array();
	int rc = import_text(tool, "f.txt", copy, NULL, &model, 1, *results, e);
	free(copy);
	return rc;
}

static json_t *imported(const char *tool, const char *text, size_t n)
{
	struct fb_err e;
	json_t *r;
	if (read_as(tool, text, &r, &e) != 0)
		fail_msg("%s: %s\n%s", tool, e.msg, text);
	if (json_array_size(r) != n)
		fail_msg("%zu results, wanted %zu:\n%s", json_array_size(r), n, text);
	return r;
}

static const json_t *has(const json_t *results, const char *name, const char *metric, double value)
{
	const json_t *r;
	size_t i;
	json_array_foreach (results, i, r) {
		if (strcmp(fb_json_str(r, "case", ""), name) != 0 ||
			strcmp(fb_json_str(r, "metric", ""), metric) != 0)
			continue;
		double v = fb_json_num(r, "value", NAN);
		if (!(fabs(v / value - 1) < 1e-9))
			fail_msg("%s %s: %.12g, wanted %.12g", name, metric, v, value);
		return r;
	}
	fail_msg("no %s of %s", metric, name);
	return NULL;
}

static void refused(const char *tool, const char *text, int rc, const char *what)
{
	struct fb_err e;
	json_t *r;
	if (read_as(tool, text, &r, &e) != rc || !strstr(e.msg, what))
		fail_msg("%s\n  says: %s\n  want: %s", text, e.msg, what);
	json_decref(r);
}

/* ---- OSU ------------------------------------------------------------------------------------- */

static void osu(void **state)
{
	/* Release 7.2 names the type of the data behind the header. */
	json_t *r = imported("osu",
		"# OSU MPI-CUDA Bandwidth Test v7.2\n"
		"# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
		"# Size      Bandwidth (MB/s)\n# Datatype: MPI_FLOAT.\n"
		"4                       1.01\n1048576             73675.19\n",
		2);
	has(r, "osu.MPI-CUDA_Bandwidth/MPI_FLOAT/1048576", "bandwidth", 73675.19e6);
	json_decref(r);
	/* -f and -c of what does not block. */
	r = imported("osu",
		"# OSU MPI Non-blocking Alltoall Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
		"# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)  "
		"    MPI_Wait(us)    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        "
		"Overlap(%)        Validation    P99 Tail Lat(us)\n"
		"1024                   20.50             10.00              1.00              0.00  "
		"            2.00              9.00              8.00             11.00        "
		"     55.50              Pass               12.00\n",
		7);
	has(r, "osu.MPI_Non-blocking_Alltoall_Latency/1024", "latency_mean", 9000);
	has(r, "osu.MPI_Non-blocking_Alltoall_Latency/1024", "latency_min", 8000);
	has(r, "osu.MPI_Non-blocking_Alltoall_Latency/1024", "latency_max", 11000);
	has(r, "osu.MPI_Non-blocking_Alltoall_Latency/1024", "latency_p99", 12000);
	json_decref(r);
	/* -V has a column for each window. */
	refused("osu",
		"# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
		"# [ pairs: 2 ] [ window size: varied ]\n# Uni-directional Bandwidth (MB/sec)\n"
		"#           8          16\n1        3.10        3.20\n",
		-EINVAL, "f.txt:5: figures without a header");
	refused("osu", "# OSU MPI Init Test v7.4\nnprocs: 2, min: 23 ms, max: 25 ms\n", -EINVAL,
		"holds no result of osu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(osu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
