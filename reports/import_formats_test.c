// SPDX-License-Identifier: Apache-2.0
/*
 * What releases and options make of the other tools' output: columns that come and go, units,
 * launchers' prefixes, figures that are none. The texts are constructed from the tools' formats.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/import.h"

#define MIB 1048576.0

static int read_text(
	const char *tool, const char *text, const char *test, json_t **results, struct fb_err *e)
{
	static const struct import_model model = {8e9, 1000e12, 0, 0, 4096, 8};
	char *copy = strdup(text);
	assert_non_null(copy);
	memset(e, 0, sizeof(*e));
	*results = json_array();
	int rc = import_text(tool, "f.txt", copy, test, &model, 1, *results, e);
	free(copy);
	return rc;
}

static json_t *imported(const char *tool, const char *text, size_t n)
{
	struct fb_err e;
	json_t *r;
	if (read_text(tool, text, NULL, &r, &e) != 0)
		fail_msg("%s: %s", tool, e.msg);
	if (json_array_size(r) != n)
		fail_msg("%zu results, wanted %zu: %s", json_array_size(r), n,
			json_dumps(r, JSON_INDENT(1)));
	return r;
}

static const json_t *find(const json_t *results, const char *name, const char *metric)
{
	const json_t *r;
	size_t i;
	json_array_foreach (results, i, r)
		if (strcmp(fb_json_str(r, "case", ""), name) == 0 &&
			strcmp(fb_json_str(r, "metric", ""), metric) == 0)
			return r;
	fail_msg("no %s of %s in %s", metric, name, json_dumps(results, JSON_INDENT(1)));
	return NULL;
}

static void has(const json_t *results, const char *name, const char *metric, double value)
{
	const json_t *r = find(results, name, metric);
	double v = fb_json_num(r, "value", NAN);
	if (!(fabs(v / value - 1) < 1e-9))
		fail_msg("%s %s: %.12g, wanted %.12g", name, metric, v, value);
	assert_string_equal(fb_json_str(json_object_get(r, "validity"), "state", ""), "valid");
}

/* There, but without a value or not to be trusted, and saying why. */
static void has_invalid(
	const json_t *results, const char *name, const char *metric, const char *why)
{
	const json_t *v = json_object_get(find(results, name, metric), "validity");
	assert_string_equal(fb_json_str(v, "state", ""), "invalid");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(v, "reasons"), 0)), why);
}

static int64_t param(const json_t *results, const char *key)
{
	return fb_json_int(json_object_get(json_array_get(results, 0), "params"), key, -1);
}

static void says(const char *tool, const char *text, int rc, const char *what)
{
	struct fb_err e;
	json_t *r;
	if (read_text(tool, text, NULL, &r, &e) != rc || !strstr(e.msg, what))
		fail_msg("%s\n  says: %s\n  want: %s", text, e.msg, what);
	json_decref(r);
}

/* ---- perftest -------------------------------------------------------------------------------- */

#define PERF_SETTINGS(test)                                                                         \
	"---------------------------------------------------------------------------------------\n" \
	"                    " test " Test\n"                                                       \
	" Dual-port       : OFF\t\tDevice         : mlx5_0\n"                                       \
	" Number of qps   : 4\t\tTransport type : IB\n"                                             \
	" Connection type : RC\t\tUsing SRQ      : OFF\n"                                           \
	" PCIe relax order: ON\t\tLock-free      : OFF\n"                                           \
	" TX depth        : 128\n CQ Moderation   : 1\n CQE Poll Batch  : 16\n"                     \
	" Mtu             : 4096[B]\n Link type       : Ethernet\n GID index       : 3\n"           \
	" Max inline data : 0[B]\n rdma_cm QPs\t : ON\n Data ex. method : rdma_cm\n"                \
	"---------------------------------------------------------------------------------------\n" \
	" local address: LID 0x01 QPN 0x0066 PSN 0xdcb546 RKey 0x1fffbd VAddr 0x007255bb410000\n"   \
	" GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:119:02\n"                              \
	"---------------------------------------------------------------------------------------\n"

static void perftest_units(void **state)
{
	/* Since release 23 the header says MiB. A warning stands before the figures. */
	json_t *r = imported("perftest",
		"Using CUDA Device with ID: 7, Name: H100\n" PERF_SETTINGS(
			"RDMA_Write Bidirectional BW") " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   "
						       "MsgRate[Mpps]\n"
						       "Conflicting CPU frequency values detected: 5008.1 != 3295.2. CPU "
						       "Frequency is not max.\n"
						       " 65536      5000             46567.34            46557.03\t\t     0.744912\n"
						       "-----------------\n",
		3);
	has(r, "perftest.RDMA_Write_Bidirectional_BW/RC/65536", "bandwidth", 46557.03 * MIB);
	has(r, "perftest.RDMA_Write_Bidirectional_BW/RC/65536", "message_rate", 744912);
	assert_int_equal(param(r, "mtu"), 4096);
	assert_int_equal(param(r, "qps"), 4);
	assert_string_equal(
		fb_json_str(json_object_get(json_array_get(r, 0), "params"), "device", ""),
		"mlx5_0");
	json_decref(r);
	/* -a --report_gbits --cpu_util; the smallest sizes have six digits. */
	r = imported("perftest",
		PERF_SETTINGS(
			"RDMA_Read BW") " #bytes     #iterations    BW peak[Gb/sec]    BW "
					"average[Gb/sec]   MsgRate[Mpps]    CPU_Util[%]\n"
					" 2          1000           0.049000           0.048000 "
					"           3.000000\t    12.50\n"
					" 8388608    1000             196.40             196.31"
					"\t\t   0.002925\t    3.10\n",
		6);
	has(r, "perftest.RDMA_Read_BW/RC/2", "bandwidth", 0.048e9 / 8);
	has(r, "perftest.RDMA_Read_BW/RC/8388608", "bandwidth_peak", 196.4e9 / 8);
	json_decref(r);
	/* The first releases had no message rate. */
	r = imported("perftest",
		" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n"
		" 65536      1000           3000.00            2999.50\n",
		2);
	has(r, "perftest.unknown/unknown/65536", "bandwidth", 2999.5 * MIB);
	json_decref(r);
	says("perftest", " #bytes #iterations    t_min[cycles]    t_max[cycles]\n 2 1000 1 2\n",
		-EINVAL, "f.txt:1: t_min in [cycles]: this unit is not known");
}

static void perftest_options(void **state)
{
	/* -D: no peak, printed as 0, and of latency the mean alone. */
	json_t *r = imported("perftest",
		PERF_SETTINGS(
			"Send BW") " #bytes     #iterations    BW peak[MB/sec]    BW "
				   "average[MB/sec]   MsgRate[Mpps]\n"
				   " 65536      279928           0.00               5830.79   "
				   "            0.093293\n" PERF_SETTINGS(
					   "RDMA_Write Latency") " #bytes        #iterations       t_avg[usec]    tps "
								 "average\n 8       1905222            1.31        "
								 "381044.12\n",
		4);
	has(r, "perftest.Send_BW/RC/65536", "bandwidth", 5830.79 * MIB);
	has(r, "perftest.RDMA_Write_Latency/RC/8", "latency_mean", 1310);
	has(r, "perftest.RDMA_Write_Latency/RC/8", "transactions", 381044.12);
	json_decref(r);
	/* -b --report-both: three tables of one size. */
	static const char table[] =
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
		" 65536      5000             90.10             90.00   \t\t   0.171661\n---\n";
	char text[4000];
	snprintf(text, sizeof(text), "%s%s\n Local results: \n---\n%s\n Remote results: \n---\n%s",
		PERF_SETTINGS("RDMA_Write Bidirectional BW"), table, table, table);
	r = imported("perftest", text, 9);
	has(r, "perftest.RDMA_Write_Bidirectional_BW/local/RC/65536", "bandwidth", 90e9 / 8);
	has(r, "perftest.RDMA_Write_Bidirectional_BW/remote/RC/65536", "bandwidth", 90e9 / 8);
	json_decref(r);
	/* Service levels, and both ports of a dual-port card. */
	r = imported("perftest",
		" #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		"MsgRate[Mpps]\n"
		" 65536    0           5000           90.00            80.00                  0.15\n"
		" 65536    3           5000           50.00            40.00                  0.07\n",
		6);
	has(r, "perftest.unknown/unknown/sl3/65536", "bandwidth", 40e9 / 8);
	json_decref(r);
	r = imported("perftest",
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   "
		"BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"
		" 65536      5000     180.00     179.00   0.34   90.00   0.17   89.00   0.17\n",
		3);
	has(r, "perftest.unknown/unknown/65536", "bandwidth", 179e9 / 8);
	json_decref(r);
	/* -H and -U list every sample in between. */
	r = imported("perftest",
		PERF_SETTINGS(
			"Send Latency") "#, usec\n1, 0.95\n2, 0.96\n---\n"
					" #bytes #iterations    t_min[usec]    t_max[usec]  "
					"t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% "
					"percentile[usec]   99.9% percentile[usec] \r\n"
					" 2       1000          1.10           2.05         1.11 "
					"    \t       1.12        \t0.00   \t\t1.19    "
					"\t\t2.05   \r\n",
		6);
	has(r, "perftest.Send_Latency/RC/2", "latency_p99", 1190);
	has(r, "perftest.Send_Latency/RC/2", "latency_median", 1110);
	json_decref(r);
}

static void perftest_json_units(void **state)
{
	/* Above 0.1 Gb/s the JSON has two digits in either unit: the message rate tells which. */
	static const char form[] =
		"{\n\"test_info\": {\n\"test\": \"RDMA_Write_BW_Test\",\n\"Device\": \"mlx5_1\",\n"
		"\"Number_of_qps\": 2,\n\"Connection_type\": \"RC\",\n\"Mtu\": 4096,\n"
		"\"Data_ex_method\": \"Ethernet\"\n},\n\"results\": {\n\"MsgSize\": 65536,\n"
		"\"n_iterations\": 5000,\n\"BW_peak\": %s,\n\"BW_average\": %s,\n\"MsgRate\": %s,\n"
		"\"CPU_util\": 3.00,\n}\n}\n";
	static const struct {
		const char *peak, *average, *rate;
		double bytes;
	} rows[] = {{"197.20", "196.40", "0.374603", 196.4e9 / 8},
		{"23500.11", "23412.90", "0.374606", 23412.9 * MIB},
		{"0.040000", "0.030000", "0.000057", 0.03e9 / 8},
		{"3.00", "2.90", "0.000046", 2.9 * MIB}};
	char text[1200];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), form, rows[i].peak, rows[i].average, rows[i].rate);
		json_t *r = imported("perftest", text, 3);
		has(r, "perftest.RDMA_Write_BW/RC/65536", "bandwidth", rows[i].bytes);
		assert_int_equal(param(r, "mtu"), 4096);
		assert_int_equal(param(r, "qps"), 2);
		assert_int_equal(fb_json_int(json_array_get(r, 0), "n", 0), 5000);
		json_decref(r);
	}
	snprintf(text, sizeof(text), form, "3.00", "2.90", "0.000000");
	says("perftest", text, -EINVAL, "without MsgRate: MiB/s or Gb/s?");
	/* A figure that is none; of -D, no peak. */
	snprintf(text, sizeof(text), form, "0.00", "nan", "-nan");
	json_t *r = imported("perftest", text, 2);
	has_invalid(
		r, "perftest.RDMA_Write_BW/RC/65536", "bandwidth", "the tool printed no number");
	assert_true(json_is_null(json_object_get(json_array_get(r, 0), "value")));
	assert_non_null(json_object_get(json_array_get(r, 0), "value_reason"));
	json_decref(r);
}

static void perftest_json_forms(void **state)
{
	/* On one line with keys sorted; bare words without commas; several runs behind another. */
	json_t *r = imported("perftest",
		"{\"results\": {\"BW_average\": 96.50, \"BW_peak\": 97.0, \"MsgRate\": 0.184059, "
		"\"MsgSize\": 65536, \"n_iterations\": 5000}, \"test_info\": {\"Connection_type\": "
		"\"UC\", \"Mtu\": 1024, \"test\": \"Send_BW_Test\"}}",
		3);
	has(r, "perftest.Send_BW/UC/65536", "bandwidth", 96.5e9 / 8);
	assert_int_equal(param(r, "mtu"), 1024);
	json_decref(r);
	r = imported("perftest",
		"{\ntest_info: {\ntest: Send_Latency_Test,\nTest with events: Using_mlx5_comp0,\n"
		"Connection_type: RC,\nData_ex_method: Ethernet\n}\nresults: {\nMsgSize: 2\n"
		"n_iterations: 1000\nt_min: 0.91\nt_max: 7.46\nt_typical: 0.95\nt_avg: 0.96\n"
		"t_stdev: 0.12\npercentile_99: 1.10\npercentile_99.9: 6.20,\n}\n}\n"
		"{\ntest_info: {\ntest: RDMA_Write_Latency_Test,\nConnection_type: RC\n},\n"
		"results: {\nMsgSize: 2,\nn_iterations: 77,\nt_avg: 1.50,\ntps_average: 1000.50,\n}\n}\n",
		8);
	has(r, "perftest.Send_Latency/RC/2", "latency_p99.9", 6200);
	has(r, "perftest.RDMA_Write_Latency/RC/2", "latency_mean", 1500);
	has(r, "perftest.RDMA_Write_Latency/RC/2", "transactions", 1000.5);
	json_decref(r);
	says("perftest", "test_info: {\nresults: {\nBW_average: 1.0,\nMsgRate: 1\n}\nMsgSize: 2\n",
		-EINVAL, "BW_average without MsgSize");
}

/* linux-rdma/perftest issue 82: what cannot be is no result. */
static void below_zero(void **state)
{
	json_t *r = imported("perftest", " #bytes #iterations t_avg[usec]\n 2 100 -4.5\n", 1);
	has_invalid(r, "perftest.unknown/unknown/2", "latency_mean",
		"the tool printed a time or rate below 0");
	json_decref(r);
}

/* A loop of a whole sweep into one file: the second is another launch, and must not be lost. */
static void sweeps_in_one_file(void **state)
{
	char text[8000] =
		" #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec]\n";
	for (int i = 0; i < 48; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %d 100 1 2 3 4\n",
			1 << i % 24);
	says("perftest", text, -EINVAL, "f.txt:26: latency_min of unknown/unknown/1 stands twice");
}

/* ---- nccl-tests ------------------------------------------------------------------------------ */

static void nccl_releases(void **state)
{
	/* 2.0 to 2.11: no root, and a deviation where today the wrong values stand. */
	json_t *r = imported("nccl-tests",
		"# ./build/all_reduce_perf -b 8M\n"
		"#                                                     out-of-place           in-place\n"
		"#       size         count    type   redop     time   algbw   busbw  error     time   "
		"algbw   busbw  error\n"
		"#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  "
		"(GB/s)  (GB/s)\n"
		"     8388608       2097152   float     sum    387.0   21.67   40.64  5e-07    382.6   "
		"21.92   41.11  5e-07\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 29.0\n",
		6);
	has(r, "nccl-tests.all_reduce/float/sum/in-place/8388608", "busbw", 41.11e9);
	json_decref(r);
	/* An operation without reduction had no such column at all. */
	r = imported("nccl-tests",
		"all_gather_perf\n#       size         count      type     time   algbw   busbw  error "
		"    time   algbw   busbw  error\n"
		"     8388608        262144     float    387.0   21.67   20.32  0e+00    382.6   21.92  "
		" 20.55  0e+00\n",
		6);
	has(r, "nccl-tests.all_gather/float/none/out-of-place/8388608", "time", 387000);
	json_decref(r);
	/* -I: four columns more in each half; -T: the time of day at the end. */
	r = imported("nccl-tests",
		"# Collective test starting: sendrecv_perf\n"
		"#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
		"min  max  p99  cv  time   algbw   busbw  #wrong  min  max  p99  cv  timestamp\n"
		"  1048576  262144  float  sum  -1  1.5e+05  10.4  9.75  0  90.0  120.0  119.0  4.5  "
		"101.0  10.38  9.73  N/A  90.0  120.0  119.0  4.5  2026-01-01 12:00:00\n",
		6);
	has(r, "nccl-tests.sendrecv/float/sum/out-of-place/1048576", "time", 1.5e8);
	has(r, "nccl-tests.sendrecv/float/sum/in-place/1048576", "algbw", 10.38e9);
	json_decref(r);
	/* A replay measures in place alone. */
	r = imported("nccl-tests",
		"alltoall_perf\n# size count type redop root time algbw busbw #wrong time algbw busbw "
		"#wrong\n     8388608       2097152     float    none      -1                          "
		"          382.6   21.92   41.11      0\n",
		3);
	has(r, "nccl-tests.alltoall/float/none/in-place/8388608", "busbw", 41.11e9);
	json_decref(r);
	says("nccl-tests",
		"alltoall_perf\n# size count type redop root time algbw busbw #wrong time algbw busbw "
		"#wrong\n  8388608  2097152  float  none  -1  382.6  21.92  41.11  0\n",
		-EINVAL, "f.txt:3: 9 columns under a header of 13");
}

/* A header without "time": 24 columns fill the table of fields to its end. */
static void nccl_header_without_time(void **state)
{
	says("nccl-tests",
		"all_reduce_perf\n# size 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\n"
		"8 2 float 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24\n",
		-EINVAL, "holds no result of nccl-tests");
}

static void nccl_launchers(void **state)
{
#define HEAD(p)                                                                                     \
	p "#  Rank  0 Group  0 Pid  1 on n0 device  0 [0x07] NVIDIA H100\n" p                       \
	  "#  Rank  1 Group  0 Pid  2 on n1 device  0 [0x07] NVIDIA H100\n" p                       \
	  "#       size         count      type   redop    root     time   algbw   busbw #wrong   " \
	  "  time   algbw   busbw #wrong\n"
#define ROW(p, root)                                                \
	p "    67108864       1048576     float    none      " root \
	  "    667.7  100.50   94.22    "                           \
	  "N/A    670.0  100.16   93.90    N/A\n"
	static const char *const texts[] = {
		"[1,0]<stdout>:# broadcast_perf\n" HEAD("[1,0]<stdout>:")
			ROW("[1,0]<stdout>:", "0"),
		"[host-1@1,0]<stdout>: # broadcast_perf\n" HEAD("[host-1@1,0]<stdout>: ")
			ROW("[host-1@1,0]<stdout>: ", "0"),
		" 0: # broadcast_perf\n" HEAD(" 0: ") ROW(" 0: ", "0"),
		"12: broadcast_perf\n" HEAD(
			"12: ") "12: n0:15:18 [0] NCCL INFO comm 0x5 rank 1\n" ROW("12: ", "0"),
		"[pod/nccl-0/main] # broadcast_perf\n" HEAD("[pod/nccl-0/main] ")
			ROW("[pod/nccl-0/main] ", "0"),
		"\033[32m# broadcast_perf\033[0m\r\n" HEAD("") ROW("", "0"),
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *r = imported("nccl-tests", texts[i], 6);
		has(r, "nccl-tests.broadcast/float/none/out-of-place/67108864", "busbw", 94.22e9);
		assert_int_equal(param(r, "ranks"), 2);
		json_decref(r);
	}
	/* From every root in turn. */
	json_t *r =
		imported("nccl-tests", "broadcast_perf\n" HEAD("") ROW("", "0") ROW("", "1"), 12);
	has(r, "nccl-tests.broadcast/float/none/root1/in-place/67108864", "time", 670000);
	json_decref(r);
	says("nccl-tests",
		"broadcast_perf\n" HEAD("") ROW("", "0") "# Out of bounds values : 12 FAILED\n",
		-EBADMSG, "12 FAILED came out wrong");
}

static void nccl_json(void **state)
{
	json_t *r = imported("nccl-tests",
		"{\"version\":2,\"args\":[\"/opt/nccl-tests/build/all_reduce_perf\",\"-J\"],"
		"\"env\":[\"SECRET=1\"],\"devices\":[{\"rank\":0},{\"rank\":1}],\"results\":[{\"size\":"
		"8,\"count\":2,\"type\":\"float\",\"redop\":\"sum\",\"root\":\"    -1\","
		"\"out_of_place\":null,\"in_place\":{\"time\":9.5,\"alg_bw\":\"nan\",\"bus_bw\":0.0,"
		"\"nwrong\":null},\"actual_iterations\":40}],\"out_of_bounds\":{\"count\":0,\"okay\":"
		"\"true\"}}",
		2);
	has(r, "nccl-tests.all_reduce/float/sum/in-place/8", "time", 9500);
	has_invalid(r, "nccl-tests.all_reduce/float/sum/in-place/8", "algbw",
		"the tool printed no number");
	assert_int_equal(param(r, "ranks"), 2);
	assert_int_equal(fb_json_int(json_array_get(r, 0), "n", 0), 40);
	char *all = json_dumps(r, 0);
	assert_null(strstr(all, "SECRET"));
	free(all);
	json_decref(r);
	says("nccl-tests",
		"{\"args\":[\"all_reduce_perf\"],\"results\":[{\"size\":8,\"type\":\"float\",\"redop\":"
		"\"sum\",\"in_place\":{\"time\":9.5,\"nwrong\":3}}]}",
		-EBADMSG, "8 bytes: 3 values came out wrong");
}

/* ---- OSU ------------------------------------------------------------------------------------- */

static void osu_columns(void **state)
{
	json_t *r = imported("osu",
		"\n# OSU MPI-CUDA Allreduce Latency Test v7.4\n# Datatype: MPI_INT.\n"
		"# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations  P50 Tail "
		"Lat(us)  P95 Tail Lat(us)  P99.9 Tail Lat(us)        Validation\n"
		"4                       2.81              1.89              3.73        1000     2.70   "
		"3.10   3.60   Pass\n",
		6);
	has(r, "osu.MPI-CUDA_Allreduce_Latency/MPI_INT/4", "latency_median", 2700);
	has(r, "osu.MPI-CUDA_Allreduce_Latency/MPI_INT/4", "latency_p95", 3100);
	has(r, "osu.MPI-CUDA_Allreduce_Latency/MPI_INT/4", "latency_p99.9", 3600);
	json_decref(r);
	r = imported("osu",
		"# OSU MPI Bi-Directional Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"
		"# Size      Bandwidth (MB/s) P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)\n"
		"1048576             24000.50          24010.00          24020.00          24030.00\n",
		4);
	has(r, "osu.MPI_Bi-Directional_Bandwidth/1048576", "bandwidth", 24000.5e6);
	has(r, "osu.MPI_Bi-Directional_Bandwidth/1048576", "bandwidth_p99", 24030e6);
	json_decref(r);
	/* Non-blocking: communication alone is its latency. */
	r = imported("osu",
		"# OSU MPI Non-blocking Allreduce Latency Test v7.2\n# Overall = Coll. Init + Compute + "
		"MPI_Test + MPI_Wait\n\n# Size           Overall(us)       Compute(us)    Coll. "
		"Init(us)      MPI_Test(us)      MPI_Wait(us)    Pure Comm.(us)        Overlap(%)\n"
		"1024                  20.50             10.00              1.00              0.00       "
		"       2.00              9.00             55.50\n",
		4);
	has(r, "osu.MPI_Non-blocking_Allreduce_Latency/1024", "latency_mean", 9000);
	has(r, "osu.MPI_Non-blocking_Allreduce_Latency/1024", "overall_mean", 20500);
	has(r, "osu.MPI_Non-blocking_Allreduce_Latency/1024", "overlap", 0.555);
	json_decref(r);
	/* Barriers have no size; a test repeated for each count of pairs. */
	r = imported("osu",
		"# OSU MPI Barrier Latency Test v7.2\n# Avg Latency(us)   Min Latency(us)   Max "
		"Latency(us)  Iterations\n             1.05              0.89              1.21        "
		"1000\n# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
		"# [ pairs: 4 ] [ window size: 64 ]\n# Datatype: MPI_CHAR.\n"
		"# Size                  MB/s        Messages/s\n"
		"1                       9.43        9427569.68\n",
		5);
	has(r, "osu.MPI_Barrier_Latency", "latency_max", 1210);
	has(r, "osu.MPI_Multiple_Bandwidth___Message_Rate/1", "message_rate", 9427569.68);
	assert_int_equal(
		fb_json_int(json_object_get(json_array_get(r, 4), "params"), "pairs", 0), 4);
	json_decref(r);
	/* Old builds without "#", under srun -l. */
	r = imported("osu",
		"0: OSU MPI Broadcast Latency Test v5.9\n0:   Size       Avg Latency(us)\n"
		"0: 1                       7.61\n",
		1);
	has(r, "osu.MPI_Broadcast_Latency/1", "latency_mean", 7610);
	json_decref(r);
	says("osu",
		"# OSU MPI Latency Test v7.4\n# Size          Latency (us)        Validation\n8    1.05 "
		"      Fail\n",
		-EBADMSG, "MPI_Latency/8: the data came out wrong");
}

/* ---- training -------------------------------------------------------------------------------- */

static void torchtitan_logs(void **state)
{
	char text[8192] = "";
	/* Two ranks write into one log; validation steps and addresses are no steps. */
	for (int i = 1; i <= 10; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"[rank0]:[titan] 2026-01-01 00:00:00,1 - root - INFO - \033[31mstep: %2d  "
			"\033[32mloss: %7.4f  \033[38;2;180;60;0mgrad_norm:  1.2  memory: 37.90GiB(39.87%%)"
			"  tps: 5,000  tflops: 1,123.45  mfu: 12.34%%\033[39m\n"
			"[rank1]:[titan] 2026-01-01 00:00:00,1 - root - INFO - step: %2d  loss:  9.0  "
			"tps: 7,000  tflops: 2.0  mfu: 1%%\n"
			"[rank0]:validate step: %2d  loss:  9.5  memory: 1GiB(1%%)  tps: 90,000\n"
			"[rank0]:step: see https://example.org\n",
			i, 8.0 - 0.1 * i, i, i);
	json_t *r = imported("torchtitan", text, 4);
	has(r, "torchtitan.step", "tokens_per_s", 5000);
	has(r, "torchtitan.step", "framework_flops", 1123.45e12);
	has(r, "torchtitan.step", "loss", 7.0);
	has(r, "torchtitan.step", "mfu_6n", 5000 * 6 * 8e9 / 1e15);
	assert_int_equal(fb_json_int(find(r, "torchtitan.step", "tokens_per_s"), "n", 0), 9);
	json_decref(r);
	/* A progress bar shares the terminal: its cursor moves, hides, and clears what it wrote. */
	r = imported("torchtitan",
		"\033[?25l\033[2K\033[1G 10%|#    | 1/10\r\033[A\033[Kstep:  1  loss: 9.0  tps: 100\n"
		"\033[1A\033[2Jstep:  2  loss: 8.0  tps: 4,000  tflops: 2.0\n"
		"\033[?25h\033[12;40Hstep:  3  loss: 7.0  tps: 4,000  tflops: 2.0\n"
		"\033[38;\033[0mstep:  4  loss: 6.0  tps: 4,000  tflops: 2.0\033[",
		4);
	has(r, "torchtitan.step", "tokens_per_s", 4000);
	has(r, "torchtitan.step", "loss", 6.0);
	assert_int_equal(fb_json_int(find(r, "torchtitan.step", "tokens_per_s"), "n", 0), 3);
	json_decref(r);
	/* Until 2024: words. A loss that became nan is told. */
	r = imported("torchtitan",
		"step:  1  loss: 12.25  memory: 27.50GiB(28.94%)  wps: 900  mfu: 8.70%\n"
		"step: 10  loss:  8.00  memory: 27.50GiB(28.94%)  wps: 1,200  mfu: 8.70%\n"
		"step: 20  loss:  nan  memory: 27.50GiB(28.94%)  wps: 1,200  mfu: 8.70%\n",
		3);
	has(r, "torchtitan.step", "tokens_per_s", 1200);
	has_invalid(r, "torchtitan.step", "loss", "the tool printed no number");
	json_decref(r);
}

static void megatron_logs(void **state)
{
	/* DeepSpeed's counts tokens itself; each rank's line behind its number. */
	json_t *r = imported("megatron",
		"7:  iteration       10/     500 | consumed samples:         2560 | consumed tokens:      "
		"5242880 | elapsed time per iteration (ms): 9000.0 | learning rate: 1.0E-04 | global "
		"batch size:   256 | lm loss: 8.0E+00 | loss scale: 1.0 | samples per second: 207.4 | "
		"tokens per gpu per second (tgs): 6636.1 | TFLOPs: 78.6 |\n"
		"7:  iteration       20/     500 | elapsed time per iteration (ms): 1234.5 | global batch "
		"size:   256 | lm loss: 7.5E+00 | TFLOPs: 80.5 |\n",
		5);
	has(r, "megatron.step", "step_time", 1234.5e6);
	has(r, "megatron.step", "framework_flops", 80.5e12);
	/* 256 x 4096 tokens on 8 GPUs */
	has(r, "megatron.step", "tokens_per_s", 131072 / 1.2345);
	json_decref(r);
	r = imported("megatron",
		"Training epoch 0, iteration 0/99 | lr: 4.5e-06 | global_batch_size: 512 | global_step: 0 "
		"| reduced_train_loss: 11.03 | train_step_timing in s: 17.5\n"
		"Training epoch 0, iteration 1/99 | lr: 4.5e-06 | global_batch_size: 512 | global_step: 1 "
		"| reduced_train_loss: 10.50 | train_step_timing in s: 7.324 | consumed_samples: 1024\n",
		4);
	has(r, "megatron.step", "step_time", 7.324e9);
	has(r, "megatron.step", "loss", 10.5);
	json_decref(r);
	/* Its progress bar writes over itself. */
	r = imported("megatron",
		"starting\r\nEpoch 0: :   1%| 1/100 [00:12<01:48, v_num=0, reduced_train_loss=11.00, "
		"global_step=0.000, train_step_timing in s=9.000]\rEpoch 0: :   2%| 2/100 [00:14<01:48, "
		"v_num=0, reduced_train_loss=10.50, global_step=1.000, train_step_timing in s=2.500]\n",
		2);
	has(r, "megatron.step", "step_time", 2.5e9);
	has(r, "megatron.step", "loss", 10.5);
	assert_int_equal(
		fb_json_int(json_object_get(json_array_get(r, 0), "imported"), "line", 0), 2);
	json_decref(r);
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void cut_and_binary(void **state)
{
	static const char *const tools[] = {
		"perftest", "nccl-tests", "osu", "torchtitan", "megatron"};
	static const char full[] = PERF_SETTINGS(
		"Send BW") " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
			   " 65536      1000           3000.00            2999.50              0.045\n";
	char text[sizeof(full)];
	struct fb_err e;
	json_t *r;
	/* Cut anywhere: refused, or what stood before the cut; never more. */
	for (size_t n = 0; n < sizeof(full); n++) {
		memcpy(text, full, n);
		text[n] = '\0';
		int rc = read_text("perftest", text, NULL, &r, &e);
		assert_true(rc == 0 || e.exit == FB_EXIT_USAGE);
		assert_true(json_array_size(r) <= 3);
		json_decref(r);
	}
	unsigned seed = 1;
	for (size_t t = 0; t < sizeof(tools) / sizeof(tools[0]); t++) {
		char noise[3000];
		for (size_t i = 0; i + 1 < sizeof(noise); i++) {
			seed = seed * 1103515245u + 12345u;
			noise[i] = (char)(1 + (seed >> 16) % 255);
		}
		noise[sizeof(noise) - 1] = '\0';
		assert_int_equal(read_text(tools[t], noise, "all_reduce", &r, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		json_decref(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perftest_units),
		cmocka_unit_test(perftest_options),
		cmocka_unit_test(perftest_json_units),
		cmocka_unit_test(perftest_json_forms),
		cmocka_unit_test(below_zero),
		cmocka_unit_test(sweeps_in_one_file),
		cmocka_unit_test(nccl_releases),
		cmocka_unit_test(nccl_header_without_time),
		cmocka_unit_test(nccl_launchers),
		cmocka_unit_test(nccl_json),
		cmocka_unit_test(osu_columns),
		cmocka_unit_test(torchtitan_logs),
		cmocka_unit_test(megatron_logs),
		cmocka_unit_test(cut_and_binary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
