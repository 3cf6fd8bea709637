// SPDX-License-Identifier: Apache-2.0
/*
 * Importers: one output recorded (testdata/import), the others constructed from the tools' own
 * format strings; every figure with its unit, and what is no such output refused with its line.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/import.h"

static const struct import_model no_model, a_model = {8e9, 1000e12, 32, 4096, 8192, 8};

static int import(const char *tool, const char *text, const char *test,
	const struct import_model *model, json_t **results, struct fb_err *e)
{
	char *copy = strdup(text);
	assert_non_null(copy);
	memset(e, 0, sizeof(*e));
	*results = json_array();
	int rc = import_text(tool, "f.txt", copy, test, model, 1, *results, e);
	free(copy);
	return rc;
}

static json_t *imported(const char *tool, const char *text, const char *test)
{
	struct fb_err e;
	json_t *results;
	if (import(tool, text, test, &a_model, &results, &e) != 0)
		fail_msg("%s: %s", tool, e.msg);
	return results;
}

static void has(const json_t *results, const char *name, const char *metric, double value)
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
		assert_string_equal(fb_json_str(r, "where", ""), "imported");
		assert_true(json_array_size(json_object_get(
				    json_object_get(r, "imported"), "unknown")) > 0);
		return;
	}
	fail_msg("no %s of %s", metric, name);
}

static void perftest_recorded(void **state)
{
	struct fb_err e = {0};
	char *text;
	size_t len;
	assert_int_equal(fb_read_file(FB_TESTDATA("reports", "import/perftest-write-bw.txt"),
				 1 << 20, &text, &len, &e),
		0);
	json_t *r = imported("perftest", text, NULL);
	assert_int_equal(json_array_size(r), 3);
	/* MB are 2^20 bytes; Mpps are messages. */
	has(r, "perftest.RDMA_Write_BW/RC/65536", "bandwidth", 0.32 * 1048576);
	has(r, "perftest.RDMA_Write_BW/RC/65536", "bandwidth_peak", 0.33 * 1048576);
	has(r, "perftest.RDMA_Write_BW/RC/65536", "message_rate", 5);
	const json_t *p = json_object_get(json_array_get(r, 0), "params");
	assert_string_equal(fb_json_str(p, "device", ""), "rxe0");
	assert_int_equal(fb_json_int(p, "mtu", 0), 4096);
	assert_int_equal(fb_json_int(p, "tx_depth", 0), 100);
	json_decref(r);
	free(text);
}

static const char latency[] =
	"---------------------------------------------------------------------------------------\n"
	"                    Send Latency Test\n"
	" Connection type : UD\t\tUsing SRQ      : OFF\n"
	" Mtu             : 1024[B]\n"
	" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
	"t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	" 2       1000          0.91           7.46         0.95                0.96        0.12    "
	"       1.10                    6.20   \n"
	" 4       1000          0.92           7.47         0.96                0.97        0.12    "
	"       1.11                    6.21   \n";

static void perftest_latency(void **state)
{
	json_t *r = imported("perftest", latency, NULL);
	assert_int_equal(json_array_size(r), 12);
	has(r, "perftest.Send_Latency/UD/2", "latency_median", 950);
	has(r, "perftest.Send_Latency/UD/2", "latency_p99.9", 6200);
	has(r, "perftest.Send_Latency/UD/4", "latency_p99", 1110);
	has(r, "perftest.Send_Latency/UD/4", "latency_mean", 970);
	json_decref(r);
}

/* Debian 12's perftest writes keys and words without quotes. */
static void perftest_json(void **state)
{
	static const char invalid[] =
		"{\ntest_info: {\ntest: RDMA_Write_BW_Test,\nDevice: \"mlx5_0\",\n"
		"Connection_type: RC,\nMtu: 4096\n},\nresults: {\nMsgSize: 65536,\n"
		"n_iterations: 5000,\nBW_peak: 97.123456,\nBW_average: 96.500000,\n"
		"MsgRate: 0.184059\n}\n}\n";
	static const char valid[] =
		"{\n\"test_info\": {\n\"test\": \"Send_Latency_Test\",\n\"Connection_type\": \"RC\"\n},\n"
		"\"results\": {\n\"MsgSize\": 2,\n\"n_iterations\": 1000,\n\"t_min\": 0.91,\n"
		"\"t_typical\": 0.95,\n\"percentile_99.9\": 6.20\n}\n}\n";
	json_t *r = imported("perftest", invalid, NULL);
	/* Six digits: the run reported gigabits. */
	has(r, "perftest.RDMA_Write_BW/RC/65536", "bandwidth", 96.5e9 / 8);
	has(r, "perftest.RDMA_Write_BW/RC/65536", "message_rate", 184059);
	json_decref(r);
	r = imported("perftest", valid, NULL);
	has(r, "perftest.Send_Latency/RC/2", "latency_median", 950);
	has(r, "perftest.Send_Latency/RC/2", "latency_p99.9", 6200);
	json_decref(r);
}

#define NCCL_HEAD                                                                                   \
	"# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 agg " \
	"iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"                                     \
	"#  Rank  0 Group  0 Pid   1 on node0 device  0 [0x07] NVIDIA H100 80GB HBM3\n"             \
	"#  Rank  1 Group  0 Pid   1 on node0 device  1 [0x0b] NVIDIA H100 80GB HBM3\n#\n"          \
	"#       size         count      type   redop    root     time   algbw   busbw #wrong     " \
	"time   algbw   busbw #wrong\n"                                                             \
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            " \
	"(us)  (GB/s)  (GB/s)       \n"
#define NCCL_ROW(wrong)                                                                             \
	"  1073741824     268435456     float     sum      -1   2400.0  447.39  447.39      " wrong \
	"   2300.0  466.84  466.84    N/A\n"
#define NCCL_TAIL "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 457.1 \n#\n"

static void nccl_tests(void **state)
{
	struct fb_err e;
	json_t *r = imported("nccl-tests", NCCL_HEAD NCCL_ROW("0") NCCL_TAIL, "all_reduce");
	assert_int_equal(json_array_size(r), 6);
	has(r, "nccl-tests.all_reduce/float/sum/out-of-place/1073741824", "busbw", 447.39e9);
	has(r, "nccl-tests.all_reduce/float/sum/in-place/1073741824", "time", 2300000);
	assert_int_equal(
		fb_json_int(json_object_get(json_array_get(r, 0), "params"), "ranks", 0), 2);
	assert_int_equal(fb_json_int(json_array_get(r, 0), "n", 0), 20);
	json_decref(r);
	/* The command line tells the test. */
	r = imported(
		"nccl-tests", "$ ./build/reduce_scatter_perf -b 8\n" NCCL_HEAD NCCL_ROW("0"), NULL);
	has(r, "nccl-tests.reduce_scatter/float/sum/out-of-place/1073741824", "algbw", 447.39e9);
	json_decref(r);
	assert_int_equal(
		import("nccl-tests", NCCL_HEAD NCCL_ROW("0"), NULL, &no_model, &r, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "which test is it"));
	json_decref(r);
	assert_int_equal(
		import("nccl-tests", NCCL_HEAD NCCL_ROW("3"), "all_reduce", &no_model, &r, &e),
		-EBADMSG);
	assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
	json_decref(r);
	static const char json[] =
		"{\"version\":3,\"args\":[\"./all_gather_perf\"],\"config\":{\"nranks\":16},\"results\":"
		"[{\"size\":1048576,\"count\":1,\"type\":\"float\",\"redop\":\"none\",\"out_of_place\":"
		"{\"time\":100.5,\"alg_bw\":10.4,\"bus_bw\":9.75,\"nwrong\":0},\"in_place\":null}]}";
	r = imported("nccl-tests", json, NULL);
	assert_int_equal(json_array_size(r), 3);
	has(r, "nccl-tests.all_gather/float/none/out-of-place/1048576", "busbw", 9.75e9);
	json_decref(r);
}

static void osu(void **state)
{
	static const char text[] =
		"# OSU MPI Bandwidth Test v7.2\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n"
		"1                       4.03\n1048576             12000.50\n"
		"# OSU MPI Allreduce Latency Test v7.2\n"
		"# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
		"8                      25.00             20.00             30.50        1000\n";
	json_t *r = imported("osu", text, NULL);
	assert_int_equal(json_array_size(r), 5);
	has(r, "osu.MPI_Bandwidth/1048576", "bandwidth", 12000.5e6);
	has(r, "osu.MPI_Allreduce_Latency/8", "latency_mean", 25000);
	has(r, "osu.MPI_Allreduce_Latency/8", "latency_max", 30500);
	assert_int_equal(fb_json_int(json_array_get(r, 4), "n", 0), 1000);
	json_decref(r);
}

static void training(void **state)
{
	char text[4096] = "";
	for (int i = 1; i <= 12; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"[rank0]:\033[31mstep: %2d  \033[32mloss: %.4f  \033[33mgrad_norm: 1.0  memory: "
			"40GiB(50%%)  tps: %s  tflops: 400.00  mfu: 40.44%%\033[39m\n",
			i, 8.0 - 0.1 * i, i == 1 ? "200" : "10,000");
	json_t *r = imported("torchtitan", text, NULL);
	has(r, "torchtitan.step", "tokens_per_s", 10000);
	has(r, "torchtitan.step", "framework_flops", 400e12);
	has(r, "torchtitan.step", "loss", 6.8);
	/* 10,000 x 6 x 8e9 / 1e15 */
	has(r, "torchtitan.step", "mfu_6n", 0.48);
	has(r, "torchtitan.step", "mfu_palm", 0.48 + 10000 * 12.0 * 32 * 4096 * 8192 / 1e15);
	json_decref(r);
	text[0] = '\0';
	for (int i = 1; i <= 12; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			" [2026-01-01 00:00:00] iteration %8d/ 100 | consumed samples: %d | elapsed time per "
			"iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): 400.5 | learning rate: "
			"1.0E-04 | global batch size: 16 | lm loss: 7.1E+00 |\n",
			i, 16 * i, i == 1 ? 9000.0 : 2000.0);
	r = imported("megatron", text, NULL);
	has(r, "megatron.step", "step_time", 2e9);
	/* 16 x 8192 tokens in 2 s on 8 GPUs */
	has(r, "megatron.step", "tokens_per_s", 8192);
	has(r, "megatron.step", "loss", 7.1);
	json_decref(r);
}

static void refused(void **state)
{
	static const struct {
		const char *tool, *text, *says;
	} rows[] = {
		{"perftest", "hello\n", "f.txt: holds no result of perftest"},
		{"perftest", "65536 100 1 2 3\n", "f.txt:1: figures without a header"},
		{"perftest", " #bytes #iterations t_avg[usec]\n 2 100 1.0 2.0\n",
			"f.txt:2: 4 figures under 3 columns"},
		{"perftest", " #bytes #iterations t_avg[usec]\n 2 100 fast\n",
			"f.txt:2: \"fast\" is no number"},
		{"perftest", " #bytes #iterations t_avg[usec]\n 2 100 1\n 2 100 1\n",
			"f.txt:3: latency_mean of unknown/unknown/2 stands twice"},
		{"perftest", "test_info: {\nBW_average: 1.0,\nMsgSize: 2\n",
			"f.txt:2: BW_average without MsgRate: MiB/s or Gb/s?"},
		{"nccl-tests", "{\"results\": 3}", "f.txt:0: it has no results[]"},
		{"nccl-tests", "{", "f.txt:1:"},
		{"nccl-tests", "$ all_reduce_perf\n8 2 float sum -1 1 2 3 0 1 2 3\n",
			"f.txt:2: 12 columns where nccl-tests has 13"},
		{"osu", "8 1.0\n", "f.txt:1: figures without a header"},
		{"osu", "# Size  Bandwidth (MB/s)\n8 fast\n", "f.txt:2: \"fast\" is no number"},
		{"torchtitan", "step: 1 loss: 2\n", "f.txt: holds no result of torchtitan"},
		{"megatron", "", "f.txt: holds no result of megatron"},
		{"perftst", "", "output of \"perftst\" cannot be imported"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fb_err e;
		json_t *r;
		if (import(rows[i].tool, rows[i].text, NULL, &no_model, &r, &e) == 0)
			fail_msg("accepted: %s", rows[i].text);
		if (strncmp(e.msg, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("%s\n  says: %s\n  want: %s", rows[i].text, e.msg, rows[i].says);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		json_decref(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perftest_recorded),
		cmocka_unit_test(perftest_latency),
		cmocka_unit_test(perftest_json),
		cmocka_unit_test(nccl_tests),
		cmocka_unit_test(osu),
		cmocka_unit_test(training),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
