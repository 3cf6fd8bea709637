// SPDX-License-Identifier: Apache-2.0
/* The command's options: small languages, the arithmetic of the batch, what is refused and how. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/train/train.h"

/* A clean slate for --inject. */
static struct train_inject none(void)
{
	struct train_inject in = {.rank = -1};
	for (int k = 0; k < INJECT_KIND_COUNT; k++)
		in.factor[k] = 1;
	return in;
}

static void refused(int rc, const struct fb_err *e, const char *text)
{
	assert_int_equal(rc, -EINVAL);
	assert_int_equal(e->exit, FB_EXIT_USAGE);
	assert_non_null(e->msg[0] ? e->msg : NULL);
	if (!strstr(e->msg, text) && !strstr(e->hint, text))
		fail_msg("\"%s\" (%s) does not say \"%s\"", e->msg, e->hint, text);
}

static void links(void **state)
{
	static const char *const bad[] = {"", "5us", "5us,", ",1GB/s", "5us,1GB/s,3", "x,1GB/s",
		"5us,fast", "5us,0GB/s", "-5us,1GB/s", "20s,1GB/s", "5us,100"};
	struct p2p_link l;
	struct fb_err e = {0};
	assert_int_equal(train_link_parse("5us,1GB/s", &l, &e), 0);
	assert_int_equal(l.latency_ns, 5000);
	assert_true(l.rate == 1e9);
	assert_int_equal(train_link_parse("0us,8Gb/s", &l, &e), 0);
	assert_true(l.latency_ns == 0 && l.rate == 1e9);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e = (struct fb_err){0};
		refused(train_link_parse(bad[i], &l, &e), &e, "5us,1GB/s");
	}
}

static void peaks(void **state)
{
	static const char *const bad[] = {"", "fast", "-1T", "1e30", "12", "0x10T", "nan", "inf",
		"989.4T!", "989.4TB", " 989T", "1e400"};
	double f;
	struct fb_err e = {0};
	assert_int_equal(train_flops_parse("989.4T", &f, &e), 0);
	assert_true(f > 989.39e12 && f < 989.41e12);
	assert_int_equal(train_flops_parse("1.2e12", &f, &e), 0);
	assert_true(f == 1.2e12);
	assert_int_equal(train_flops_parse("312TFLOP/s", &f, &e), 0);
	assert_true(f == 312e12);
	assert_int_equal(train_flops_parse("600G", &f, &e), 0);
	assert_true(f == 600e9);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e = (struct fb_err){0};
		refused(train_flops_parse(bad[i], &f, &e), &e, "989.4T");
	}
}

static void injections(void **state)
{
	static const char *const bad[] = {"", "all_gather", "all_gather:", "all_gather:5ms",
		"all_gather:+", "all_gather:+fast", "all_gather:+0ms", "all_gather:+11s",
		"all_gather:x", "all_gather:x0", "all_gather:x2", "all_gather:x-1",
		"all_gather:xnan", "allgather:+1ms", "all_gather:+1ms:", "rank:+1ms", "rank:x:+1ms",
		"rank:1:x0.5", "optimizer:x0.5", "gemm", "gemm:*2", ":+1ms", "rank:-1:+1ms",
		"a_kind_with_a_name_that_is_far_too_long:+1ms"};
	struct train_inject in = none();
	struct fb_err e = {0};
	assert_int_equal(train_inject_add(&in, "all_gather:+5ms", &e), 0);
	assert_int_equal(train_inject_add(&in, "reduce_scatter:x0.25", &e), 0);
	assert_int_equal(train_inject_add(&in, "rank:3:+1ms", &e), 0);
	assert_int_equal(train_inject_add(&in, "gemm:x0.5", &e), 0);
	assert_int_equal(in.delay_ns[INJECT_ALL_GATHER], 5000000);
	assert_true(in.factor[INJECT_REDUCE_SCATTER] == 0.25 && in.factor[INJECT_GEMM] == 0.5);
	assert_int_equal(in.rank, 3);
	assert_int_equal(in.delay_ns[INJECT_RANK], 1000000);
	refused(train_inject_add(&in, "rank:2:+1ms", &e), &e, "only one rank");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		in = none();
		e = (struct fb_err){0};
		refused(train_inject_add(&in, bad[i], &e), &e, "KIND:+LATENCY");
	}
	in = none();
	e = (struct fb_err){0};
	refused(train_inject_add(&in, "allgather:+1ms", &e), &e, "the nearest is all_gather");
	e = (struct fb_err){0};
	refused(train_inject_add(&in, "Gemm:x0.5", &e), &e, "the nearest is gemm");
	e = (struct fb_err){0};
	refused(train_inject_add(&in, "rnk:+1ms", &e), &e, "the nearest is rank:N");
}

static void batches(void **state)
{
	static const struct {
		int ranks;
		struct train_batch given, settled; /* settled.global 0: refused */
	} cases[] = {
		{2, {0, 0, 0}, {8, 4, 1}},
		{2, {0, 3, 5}, {30, 3, 5}},
		{4, {24, 0, 0}, {24, 6, 1}},
		{4, {24, 0, 2}, {24, 3, 2}},
		{4, {24, 2, 0}, {24, 2, 3}},
		{4, {24, 2, 3}, {24, 2, 3}},
		{8, {24, 3, 1}, {24, 3, 1}},
		{5, {24, 0, 0}, {0, 0, 0}},
		{4, {24, 4, 0}, {0, 0, 0}},
		{4, {24, 2, 2}, {0, 0, 0}},
		{4, {24, 0, 5}, {0, 0, 0}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct train_batch b = cases[i].given;
		struct fb_err e = {0};
		int rc = train_batch_settle(&b, cases[i].ranks, &e);
		if (cases[i].settled.global == 0) {
			refused(rc, &e, "ranks * micro-batch * accumulate");
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(b.global, cases[i].settled.global);
		assert_int_equal(b.micro, cases[i].settled.micro);
		assert_int_equal(b.accumulate, cases[i].settled.accumulate);
	}
}

static void racks(void **state)
{
	static const struct {
		const char *text;
		int nodes;
		const char *why; /* NULL: fine, racks 0, 1, 0 */
	} cases[] = {
		{"# three nodes\nr1\n  r2 # far\n\nr1\n", 3, NULL},
		{"r1\nr2\nr1", 3, NULL},
		{"r1\nr2\n", 3, "racks of 2 nodes, and there are 3"},
		{"r1\nr2\nr1\nr3\n", 3, "only 3 nodes"},
		{"r1 r2\n", 1, "one rack's name a line"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[] = "/tmp/fabricbench-racks.XXXXXX";
		int fd = mkstemp(path), *rack = NULL;
		struct fb_err e = {0};
		assert_true(fd >= 0);
		size_t n = strlen(cases[i].text);
		assert_int_equal(write(fd, cases[i].text, n), (ssize_t)n);
		close(fd);
		int rc = train_rack_map(path, cases[i].nodes, &rack, &e);
		unlink(path);
		if (cases[i].why) {
			refused(rc, &e, cases[i].why);
			assert_null(rack);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_true(rack[0] == 0 && rack[1] == 1 && rack[2] == 0);
		free(rack);
	}
}

/* ---- the whole set of options ---------------------------------------------------------------- */

/* Parse and settle, as the command does. */
static int settle(struct train_job *j, struct train_opts *o, struct fb_opt_spec *spec, int ranks,
	bool local, const char *const *argv, struct fb_err *e)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	memset(o, 0, sizeof(*o));
	*spec = (struct fb_opt_spec){.command = "train", .sets = {{"Training", train_opts, o}}};
	int rc = fb_opt_parse(spec, argc, (char **)(uintptr_t)argv, e);
	return rc == 0 ? train_job_settle(j, o, ranks, local, e) : rc;
}

static void defaults(void **state)
{
	const char *argv[] = {"train", NULL};
	struct train_opts o;
	struct train_job j;
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	struct engine_config c;
	assert_int_equal(settle(&j, &o, &spec, 2, true, argv, &e), 0);
	assert_string_equal(j.step.model.name, "tiny");
	assert_int_equal(j.step.strategy.kind, STRATEGY_ZERO3);
	assert_true(j.step.overlap && !j.step.clip && !j.step.deterministic);
	assert_int_equal(j.step.work, TR_F32);
	assert_int_equal(j.step.reduce, TR_F32);
	assert_int_equal(j.step.micro_seqs, 4);
	assert_true(j.steps == 20 && j.warmup == 2);
	assert_true(j.peak == 0 && j.fail_rank == -1);
	train_engine_config(&j, 1, 0, &c);
	assert_true(c.dev.gemm_slow == 0 && c.rank_delay_ns == 0 && c.storage_slow == 0);
	train_job_free(&j);
	fb_opt_free(&spec);
}

static void injected_engines(void **state)
{
	const char *argv[] = {"train", "--link", "5us,1GB/s", "--inject",
		"all_gather:+5ms,all_gather:x0.5,gemm:x0.5,rank:1:+1ms", NULL};
	struct train_opts o;
	struct train_job j;
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	struct engine_config c;
	assert_int_equal(settle(&j, &o, &spec, 2, true, argv, &e), 0);
	assert_true(j.link.slow[P2P_GATHER].rate_factor == 0.5);
	train_engine_config(&j, 0, -1, &c);
	assert_true(c.dev.gemm_slow == 1 && c.rank_delay_ns == 0);
	assert_int_equal(c.exchange_delay_ns[SCHED_GATHER], 5000000);
	train_engine_config(&j, 1, -1, &c);
	assert_int_equal(c.rank_delay_ns, 1000000);
	train_job_free(&j);
	fb_opt_free(&spec);
}

#define BAD(why, ...)                              \
	{                                          \
		why, true, 2,                      \
		{                                  \
			"train", __VA_ARGS__, NULL \
		}                                  \
	}
static void refusals(void **state)
{
	static const struct {
		const char *why;
		bool local;
		int ranks;
		const char *argv[9];
	} cases[] = {
		BAD("tiny", "--model", "tony"),
		BAD("/nowhere/model.ini", "--model", "/nowhere/model.ini"),
		BAD("the nearest is", "--strategy", "zero4"),
		BAD("hybrid", "--strategy", "hybrid:3"),
		BAD("positions", "--seq", "1000000"),
		BAD("ranks * micro-batch", "--global-batch", "7"),
		BAD("none is left", "--steps", "3", "--warmup", "3"),
		BAD("fp64", "--backend", "reference", "--dtype", "bf16"),
		BAD("fixed point", "--deterministic", "--dtype", "bf16"),
		BAD("spoil", "--dtype", "fp64", "--reduce-dtype", "bf16"),
		BAD("below 1", "--beta2", "1"),
		BAD("--eps", "--eps", "0"),
		BAD("--strategy offload", "--offload-to", "host"),
		BAD("--strategy offload", "--offload-params"),
		BAD("No such", "--strategy", "offload", "--offload-to", "/nowhere"),
		BAD("no folder", "--strategy", "offload", "--offload-to", "/dev/null"),
		BAD("No such", "--tokens", "/nowhere"),
		BAD("cannot be written", "--timeline", "/nowhere/trace.json"),
		BAD("has none", "--strategy", "ddp", "--inject", "all_gather:+1ms"),
		BAD("has none", "--inject", "storage:+1ms"),
		BAD("--link", "--inject", "all_gather:x0.5"),
		BAD("ranks are 0 to 1", "--inject", "rank:2:+1ms"),
		BAD("--ranks-per-node", "--rack-map", "/dev/null"),
		BAD("989.4T", "--peak", "much"),
		BAD("N:STEP", "--fail-rank", "1"),
		{"processes", false, 2, {"train", "--link", "5us,1GB/s", NULL}},
		{"has none", true, 1, {"train", "--inject", "all_gather:+1ms", NULL}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct train_opts o;
		struct train_job j;
		struct fb_opt_spec spec;
		struct fb_err e = {0};
		int rc = settle(&j, &o, &spec, cases[i].ranks, cases[i].local, cases[i].argv, &e);
		if (rc == 0)
			fail_msg("case %zu (%s) was not refused", i, cases[i].why);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, cases[i].why) && !strstr(e.hint, cases[i].why))
			fail_msg("case %zu: \"%s\" (%s) does not say \"%s\"", i, e.msg, e.hint,
				cases[i].why);
		fb_opt_free(&spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links),
		cmocka_unit_test(peaks),
		cmocka_unit_test(injections),
		cmocka_unit_test(batches),
		cmocka_unit_test(racks),
		cmocka_unit_test(defaults),
		cmocka_unit_test(injected_engines),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
