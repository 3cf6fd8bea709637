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

static int64_t param(const json_t *results, const char *key)
{
	return fb_json_int(json_object_get(json_array_get(results, 0), "params"), key, -1);
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

/* ---- nccl-tests ------------------------------------------------------------------------------ */

#define HEADER(time)                                                                               \
	"# Collective test starting: all_gather_perf_mpi\n#       size         count      type   " \
	"redop    root  " time "   algbw   busbw  #wrong  " time "   algbw   busbw  #wrong\n"

static void nccl_sweeps(void **state)
{
	/* Over many ranks the smallest sizes are all rounded down to nothing. */
	static const char empty[] =
		"           0             0     float    none      -1     6.36    0.00    0.00       0 "
		"    6.40    0.00    0.00       0\n";
	static const char row[] =
		"      524288          8192     float    none      -1    50.00   10.49    9.83       0 "
		"   25.00   20.97   19.66       0\n";
	char text[2000];
	snprintf(text, sizeof(text), "%s%s%s%s", HEADER("   time"), empty, empty, row);
	json_t *r = imported("nccl-tests", text, 8);
	has(r, "nccl-tests.all_gather/float/none/out-of-place/0", "time", 6360);
	has(r, "nccl-tests.all_gather/float/none/in-place/524288", "busbw", 19.66e9);
	json_decref(r);
	/* Every process of a build without MPI runs by itself, and prints for itself. */
	snprintf(text, sizeof(text), "%s%s%s", HEADER("   time"), row, row);
	refused("nccl-tests", text, -EINVAL,
		"f.txt:4: time of all_gather/float/none/out-of-place/524288 stands twice");
	/* -C: what the host needs to ask; the rates are of the whole all the same. */
	snprintf(text, sizeof(text), "%s%s", HEADER("cputime"), row);
	r = imported("nccl-tests", text, 6);
	has(r, "nccl-tests.all_gather/float/none/in-place/524288", "cpu_time", 25000);
	has(r, "nccl-tests.all_gather/float/none/in-place/524288", "algbw", 20.97e9);
	json_decref(r);
	/* A message of NCCL's within a row. */
	struct fb_err e;
	assert_int_equal(read_as("nccl-tests",
				 HEADER("   time") "  524288  8192  float  none  -1  n0:7:7 [0] "
						   "NCCL INFO Launch mode Parallel\n",
				 &r, &e),
		-EINVAL);
	assert_non_null(strstr(e.hint, "NCCL_DEBUG_FILE"));
	json_decref(r);
}

static void nccl_json(void **state)
{
	/* Version 2 lists the first device of each process. */
	static const char form[] =
		"{\"version\":2,\"args\":[\"./all_reduce_perf\"],\"config\":{\"nthreads\":1,"
		"\"ngpus\":%d,\"devices\":[%s]},\"results\":[{\"size\":0,\"type\":\"float\","
		"\"redop\":\"sum\",\"out_of_place\":{\"cpu_time\":2.5},\"in_place\":null},{\"size\":0,"
		"\"type\":\"float\",\"redop\":\"sum\",\"out_of_place\":{\"cpu_time\":3.5},"
		"\"in_place\":null}]}";
	static const struct {
		const char *devices;
		int gpus, ranks;
	} rows[] = {{"{\"rank\":0}", 8, 8}, {"{\"rank\":0},{\"rank\":8}", 8, 16},
		{"{\"rank\":0},{\"rank\":1},{\"rank\":2}", 1, 3},
		{"{\"rank\":0},{\"rank\":1},{\"rank\":2},{\"rank\":3}", 2, 4}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1000];
		snprintf(text, sizeof(text), form, rows[i].gpus, rows[i].devices);
		json_t *r = imported("nccl-tests", text, 1);
		has(r, "nccl-tests.all_reduce/float/sum/out-of-place/0", "cpu_time", 2500);
		assert_int_equal(param(r, "ranks"), rows[i].ranks);
		json_decref(r);
	}
	/* rccl-tests' -Z json. */
	json_t *r = imported("nccl-tests",
		"[\n{\"numCycle\":0, \"name\":\"AllReduce\", \"nodes\":1, \"ranks\":8, \"size\":1024, "
		"\"type\":\"float\", \"redop\":\"sum\", \"inPlace\":0, \"time\":10.000000, "
		"\"algBw\":0.102400, \"busBw\":0.179200, \"wrong\":\"0\"},\n{\"name\":\"AllReduce\", "
		"\"ranks\":8, \"size\":1024, \"type\":\"float\", \"redop\":\"sum\", \"inPlace\":1, "
		"\"time\":20.000000, \"algBw\":0.051200, \"busBw\":0.089600, \"wrong\":\"N/A\"}\n]\n",
		6);
	has(r, "nccl-tests.all_reduce/float/sum/out-of-place/1024", "busbw", 0.1792e9);
	has(r, "nccl-tests.all_reduce/float/sum/in-place/1024", "time", 20000);
	assert_int_equal(param(r, "ranks"), 8);
	json_decref(r);
	refused("nccl-tests", "[{\"name\":\"SendRecv\",\"size\":8,\"time\":1.0,\"wrong\":\"3\"}]",
		-EBADMSG, "8 bytes: 3 values came out wrong");
	refused("nccl-tests", "[{\"name\":\"SendRecv\",\"time\":1.0}]", -EINVAL,
		"a result without size or time");
	refused("nccl-tests", "[{\"name\":", -EINVAL, "f.txt:1");
}

/* ---- whose line it is ------------------------------------------------------------------------ */

static void prefixes(void **state)
{
	static const char *const each[] = {"", "   [1,0]<stdout>:", "[0] ",
		"node-a-0012: ", "10.0.0.7: ", "2026-01-02T03:04:05.1234567Z ",
		"2026-01-02T03:04:05+08:00 ",
		"2026-01-02T03:04:05Z [1,0]<stdout>: ", "[1,rank:0,host-1]<stdout>:"};
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		char text[600];
		snprintf(text, sizeof(text),
			"%s# OSU MPI Bandwidth Test v7.4\n%s# Size      Bandwidth (MB/s)\n"
			"%s8                       1.50\n",
			each[i], each[i], each[i]);
		json_t *r = imported("osu", text, 1);
		has(r, "osu.MPI_Bandwidth/8", "bandwidth", 1.5e6);
		json_decref(r);
	}
	/* A job's own words before its output, and a shell's job number, are no figures. */
	json_t *r = imported("osu",
		"2 nodes allocated\n[1] 650300\n# OSU MPI Latency Test v5.0\n"
		"# Size          Latency (us)\n0                       1.84\n",
		1);
	has(r, "osu.MPI_Latency/0", "latency_mean", 1840);
	json_decref(r);
	/* The time of a line is no part of whose line it is. */
	r = imported("torchtitan",
		"2026-01-02T03:04:05Z [rank0]:step:  1  loss: 9.0  tps: 100\n"
		"2026-01-02T03:04:06Z [rank0]:step:  2  loss: 8.0  tps: 4,000\n"
		"2026-01-02T03:04:06Z [rank1]:step:  2  loss: 8.0  tps: 5,000\n",
		3);
	has(r, "torchtitan.step", "tokens_per_s", 4000);
	json_decref(r);
	/* Not every word before a colon is a host's name. */
	refused("osu",
		"Bandwidth: # OSU MPI Bandwidth Test v7.4\nx: # Size      Bandwidth (MB/s)\n",
		-EINVAL, "holds no result of osu");
}

/* ---- perftest -------------------------------------------------------------------------------- */

static void perftest(void **state)
{
	/* --output prints one figure; steering rules have a table of their own. */
	refused("perftest", " local address: LID 0x01\n196.395741\n", -EINVAL,
		"f.txt:2: \"196.395741\" stands alone: of which test, size and unit?");
	refused("perftest",
		"{\n\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\"\n},\n\"results\": {\n"
		"\"bw_avg\": 196.395741,\n}\n}\n",
		-EINVAL, "f.txt:1: \"bw_avg\" stands alone");
	refused("perftest",
		" #flows\tfs_min_time[usec]\tfs_max_time[usec]\n 8          12.50       90.10\n",
		-EINVAL, "f.txt:1: rates of steering rules (raw_ethernet_fs_rate)");
	/* Beside a table a lone figure is nothing. */
	json_t *r = imported("perftest",
		"Total run time:\n98.367\n #bytes #iterations    BW average[MiB/sec]\n"
		" 65536      1000           2.00\n",
		1);
	has(r, "perftest.unknown/unknown/65536", "bandwidth", 2 * 1048576);
	json_decref(r);
	/* Both sides in one JSON. */
	r = imported("perftest",
		"{\n\"test_info\": {\n\"test\": \"Send_Bidirectional_BW_Test\",\n"
		"\"Connection_type\": \"RC\"\n},\n\"results_local\": {\n\"MsgSize\": 65536,\n"
		"\"BW_average\": 90.00,\n\"MsgRate\": 0.171661\n},\n\"results_remote\": {\n"
		"\"MsgSize\": 65536,\n\"BW_average\": 91.00,\n\"MsgRate\": 0.173569\n}\n}\n",
		4);
	has(r, "perftest.Send_Bidirectional_BW/local/RC/65536", "bandwidth", 90e9 / 8);
	has(r, "perftest.Send_Bidirectional_BW/remote/RC/65536", "bandwidth", 91e9 / 8);
	json_decref(r);
}

/* ---- training -------------------------------------------------------------------------------- */

static void steps_of_all_ranks(void **state)
{
	char text[4000] = "";
	/* Sixteen ranks, and no launcher that says whose line it is: a step counts once. */
	for (int step = 1; step <= 3; step++)
		for (int rank = 0; rank < 16; rank++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				"step: %2d  loss: 8.0  tps: %s  tflops: 2.0\n", step,
				step == 1 ? "100" : "4,000");
	json_t *r = imported("torchtitan", text, 4);
	assert_int_equal(fb_json_int(has(r, "torchtitan.step", "tokens_per_s", 4000), "n", 0), 2);
	json_decref(r);
}

static void megatron_forks(void **state)
{
	/* BigScience counts seconds. */
	json_t *r = imported("megatron",
		" [default7]: iteration       10/  500 | elapsed time per iteration (s): 130.10 | "
		"global batch size:  2048 | lm loss: 2.5E+00 | TFLOPs: 120.02 |\n"
		" [default7]: iteration       20/  500 | elapsed time per iteration (s): 105.22 | "
		"global batch size:  2048 | lm loss: 2.4E+00 | TFLOPs: 149.02 |\n",
		3);
	has(r, "megatron.step", "step_time", 105.22e9);
	has(r, "megatron.step", "framework_flops", 149.02e12);
	json_decref(r);
	/* GPT-NeoX writes the unit behind the figure. */
	r = imported("megatron",
		" samples/sec: 51.2 | iteration       10/      50 | elapsed time per iteration (ms): "
		"9876.5 | approx flops per GPU: 1.5PFLOPS | lm_loss: 7.1E+00 |\n"
		" samples/sec: 51.2 | iteration       20/      50 | elapsed time per iteration (ms): "
		"9800.0 | approx flops per GPU: 151.0TFLOPS | lm_loss: 6.1E+00 |\n"
		" samples/sec: 51.2 | iteration       30/      50 | elapsed time per iteration (ms): "
		"9800.0 | approx flops per GPU: 900.0GFLOPS | lm_loss: 5.1E+00 |\n"
		" validation results at iteration 30 | lm_loss value: 6.9E+00 |\n",
		3);
	has(r, "megatron.step", "framework_flops", (151.0e12 + 0.9e12) / 2);
	has(r, "megatron.step", "loss", 5.1);
	json_decref(r);
	/* Primus writes the last and the mean; every rank of a node may. */
	r = imported("megatron",
		"[20260102 06:56:28][rank-7/8] : iteration 7/ 50 | elapsed time per iteration (ms): "
		"15100.0/15100.0 | tokens per GPU (tokens/s/GPU): 9000.0/9000.0 |\n"
		"[20260102 06:56:28][rank-7/8] : iteration 8/ 50 | elapsed time per iteration (ms): "
		"13100.0/14100.0 | throughput per GPU (TFLOP/s/GPU): 579.4/573.6 | tokens per GPU "
		"(tokens/s/GPU): 10005.5/9903.7 |\n"
		"[20260102 06:56:28][rank-6/8] : iteration 8/ 50 | elapsed time per iteration (ms): "
		"13300.0/14100.0 | tokens per GPU (tokens/s/GPU): 9005.5/9903.7 |\n",
		3);
	has(r, "megatron.step", "step_time", 13.1e9);
	has(r, "megatron.step", "tokens_per_s", 10005.5);
	has(r, "megatron.step", "mfu_6n", 10005.5 * 6 * 8e9 / 1e15);
	json_decref(r);
	/* NeMo with its own rate; an epoch of one step begins anew at 0. */
	r = imported("megatron",
		"0: Training epoch 0, iteration 0/0 | global_step: 0 | reduced_train_loss: 3.1 | "
		"train_step_timing in s: 9.0 | tokens_per_sec_per_gpu: 1.0e+03\n"
		"0: Training epoch 1, iteration 0/0 | global_step: 1 | reduced_train_loss: 2.8 | "
		"train_step_timing in s: 2.389 | tokens_per_sec_per_gpu: 6.859e+03\n",
		4);
	has(r, "megatron.step", "tokens_per_s", 6859);
	json_decref(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(osu),
		cmocka_unit_test(nccl_sweeps),
		cmocka_unit_test(nccl_json),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(perftest),
		cmocka_unit_test(steps_of_all_ranks),
		cmocka_unit_test(megatron_forks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
