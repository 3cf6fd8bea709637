// SPDX-License-Identifier: Apache-2.0
/*
 * Thirteen things that the field's usual RDMA microbenchmark gets wrong, each as a test of the
 * right behaviour. Those that need a program or packets besides stand in
 * scripts/tests/verbs-defects.sh and verbs-gates-lab.sh under the same numbers.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/gate.h"
#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/sysroot.h"
#include "verbs/addr.h"
#include "verbs/counters.h"
#include "verbs/loops.h"
#include "verbs/null_device.h"
#include "verbs/ops.h"
#include "verbs/pace.h"
#include "verbs/verbs.h"

/* Deviations below a microsecond are not rounded away. */
static void defect_01_deviation_below_a_microsecond(void **state)
{
	struct fb_hist *h = malloc(sizeof *h);

	(void)state;
	assert_non_null(h);
	fb_hist_init(h);
	for (unsigned i = 0; i < 500; i++) {
		fb_hist_add(h, 850);
		fb_hist_add(h, 1150);
	}
	/* All 150 ns from the mean: 150 * sqrt(n / (n - 1)). */
	assert_true(fabs(fb_hist_stddev(h) - 150 * sqrt(1000.0 / 999)) < 1e-6);
	free(h);
}

/* The maximum is the largest sample, not the one before it. */
static void defect_02_max_is_the_max(void **state)
{
	struct fb_hist *h = malloc(sizeof *h);

	(void)state;
	assert_non_null(h);
	fb_hist_init(h);
	for (unsigned i = 0; i < 999; i++)
		fb_hist_add(h, 1000 + i % 7);
	fb_hist_add(h, 67100123);
	assert_int_equal(h->max, 67100123);
	assert_int_equal(h->n, 1000);
	free(h);
}

/* A percentile is nearest-rank over all samples, differs from the maximum, and is withheld from too
 * few. */
static void defect_03_tail_percentiles_need_samples(void **state)
{
	struct fb_hist *h = malloc(sizeof *h);
	double v;

	(void)state;
	assert_non_null(h);
	fb_hist_init(h);
	for (unsigned i = 1; i <= 1000; i++)
		fb_hist_add(h, i < 1000 ? 100 : 9000);
	assert_int_equal(fb_hist_percentile(h, 0.999, &v), -ENODATA);
	assert_int_equal(fb_hist_percentile(h, 0.99, &v), 0);
	for (unsigned i = 1; i <= 9000; i++)
		fb_hist_add(h, i <= 8991 ? 100 : 200);
	/* 10,000 samples: one of 9,000, nine of 200. Rank 9,990, which p99.9 is, is the last of
	 * 100. */
	assert_int_equal(fb_hist_percentile(h, 0.999, &v), 0);
	assert_true(v <= 100);
	assert_int_equal(h->max, 9000);
	assert_int_equal(fb_hist_percentile(h, 0.9999, &v), -ENODATA);
	free(h);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The time between two iterations is in no sample. */
static void defect_04_pacing_is_in_no_sample(void **state)
{
	static const uint64_t interval = 3000000;
	struct null_device dev;
	uint8_t out[64] = {0}, in[64] = {0};
	uint64_t ns[21], began;
	struct fb_sink sink = {.ns = ns, .cap = 21};
	struct fb_err err = {0};
	atomic_int stop;
	struct verbs_lat l = {.signal_every = VERBS_SIGNAL_EVERY, .what = "send of 64 B"};

	(void)state;
	atomic_init(&stop, 0);
	null_device_init(&dev);
	dev.echo_sends = true;
	l.qp = &dev.qp[0];
	l.tx.cq = &dev.tx;
	l.rx.cq = &dev.rx;
	l.sge = (struct ibv_sge){.addr = (uintptr_t)out, .length = sizeof out};
	l.wr = (struct ibv_send_wr){.sg_list = &l.sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	l.recv_last = &in[63];
	l.send_last = &out[63];
	l.wait = (struct verbs_wait){
		.stop = &stop, .deadline = fb_deadline_in(UINT64_C(10000000000)), .e = &err};
	began = fb_clock_ns();
	assert_int_equal(
		verbs_lat_paced(&l, verbs_lat_choose(VERBS_SEND, false, true), interval, 21, &sink),
		0);
	/* It did wait, and half of the samples at least know nothing of it. */
	assert_true(fb_clock_ns() - began >= 21 * interval);
	assert_int_equal(sink.n, 21);
	qsort(ns, 21, sizeof ns[0], by_value);
	assert_true(ns[10] < interval / 4);
	/* A wait is no deaf wait. */
	atomic_store(&stop, 1);
	assert_int_equal(verbs_lat_paced(&l, verbs_lat_choose(VERBS_SEND, false, true),
				 UINT64_C(3600000000000), 1, &sink),
		-ECANCELED);
}

static struct fb_doc *new_doc(void)
{
	static char name[] = "verbs";
	char *argv[] = {name, NULL};
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	struct fb_doc *d = fb_doc_new("verbs", 1, argv, &out, &e);

	assert_non_null(d);
	return d;
}

static void add_rate(struct fb_doc *d, const char *where, const char *metric, double value)
{
	fb_doc_add_result(d, json_pack("{s:s,s:s,s:s,s:i,s:f,s:{s:s,s:[]}}", "case", where,
				     "metric", metric, "unit", "1/s", "n", 100, "value", value,
				     "validity", "state", "valid", "reasons"));
}

/* A limit on the message rate fails by itself, without one on bandwidth beside it. */
static void defect_05_a_message_rate_limit_alone_fails(void **state)
{
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_message_rate = 1e6};

	(void)state;
	add_rate(d, "verbs.bandwidth/write/rc/poll/64", "bandwidth", 1e12);
	add_rate(d, "verbs.bandwidth/write/rc/poll/64", "message_rate", 999999);
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_FAILED);
	fb_doc_free(d);
}

/* One size that keeps the limit does not excuse the others. */
static void defect_06_every_size_must_keep_the_limit(void **state)
{
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_bandwidth = 1e9};

	(void)state;
	add_rate(d, "verbs.bandwidth/write/rc/poll/64", "bandwidth", 1e6);
	add_rate(d, "verbs.bandwidth/write/rc/poll/1048576", "bandwidth", 2e9);
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_FAILED);
	assert_int_equal(json_array_size(json_object_get(fb_doc_json(d), "checks")), 2);
	fb_doc_free(d);
}

static const struct fb_opt_spec *spec_of(const char *name)
{
	for (const struct fb_cmd *c = verbs_cmd.sub; c->name; c++)
		if (!strcmp(c->name, name))
			return c->spec();
	return NULL;
}

/* Latency can be limited, by the median and by the tail. */
static void defect_07_latency_can_be_limited(void **state)
{
	static const char *const latency[] = {"max-p50", "max-p99"};
	static const char *const rates[] = {"min-bandwidth", "min-share", "min-message-rate"};
	const char *nearest;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_non_null(fb_opt_find(spec_of("latency"), latency[i], &nearest));
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(fb_opt_find(spec_of("bandwidth"), rates[i], &nearest));
}

static void walk_keys(const json_t *j, void (*see)(const char *key))
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_object(j)) {
		json_object_foreach ((json_t *)j, key, v) {
			see(key);
			walk_keys(v, see);
		}
	}
	json_array_foreach (j, i, v)
		walk_keys(v, see);
}

static void no_dot(const char *key)
{
	if (strchr(key, '.'))
		fail_msg("the key \"%s\" has a dot", key);
}

/* A sweep's document keeps every size, also when it is written after each of them. */
static void defect_08_a_sweep_keeps_all_sizes(void **state)
{
	struct fb_doc *d;
	char path[] = "/tmp/fb-defects-XXXXXX", where[64], *text;
	static char name[] = "verbs";
	char *argv[] = {name, NULL};
	struct fb_output_cfg out = {.quiet = true, .path = path};
	struct fb_err e = {0};
	size_t len;
	json_t *back;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	d = fb_doc_new("verbs", 1, argv, &out, &e);
	assert_non_null(d);
	for (unsigned i = 1; i <= 23; i++) {
		snprintf(where, sizeof where, "verbs.bandwidth/write/rc/poll/%u", 1u << i);
		add_rate(d, where, "bandwidth", 1e9);
		assert_int_equal(fb_doc_publish(d, &e), 0);
	}
	fb_doc_free(d);
	assert_int_equal(fb_read_file(path, 1 << 20, &text, &len, &e), 0);
	back = fb_json_parse(text, len, path, &e);
	assert_non_null(back);
	assert_int_equal(json_array_size(json_object_get(back, "results")), 23);
	json_decref(back);
	free(text);
	unlink(path);
}

/* The document is one JSON text, whatever the figures are, and no key of a result has a dot. */
static void defect_09_the_document_is_json(void **state)
{
	struct fb_doc *d = new_doc();
	struct fb_err e = {0};
	char *text;
	json_t *back;
	const json_t *r;

	(void)state;
	add_rate(d, "verbs.bandwidth/write/rc/poll/2", "bandwidth", 1);
	r = json_array_get(json_object_get(fb_doc_json(d), "results"), 0);
	fb_json_set_real((json_t *)(uintptr_t)r, "value", NAN, "no time was measured");
	fb_json_set_str((json_t *)(uintptr_t)r, "definition", "quote \" and byte \xff");
	text = json_dumps(fb_doc_json(d), 0);
	assert_non_null(text);
	back = fb_json_parse(text, strlen(text), "document", &e);
	assert_non_null(back);
	r = json_array_get(json_object_get(back, "results"), 0);
	assert_true(json_is_null(json_object_get(r, "value")));
	json_decref(back);
	free(text);
	fb_doc_free(d);
	/* Every key that a result can have stands in this sample. */
	back = fb_doc_load("reports/testdata/every-key.json", &e);
	assert_non_null(back);
	walk_keys(json_object_get(back, "results"), no_dot);
	json_decref(back);
}

static struct verbs_gid entry(uint32_t index, enum verbs_gid_type type, const char *text)
{
	struct verbs_gid g = {.index = index, .type = type};

	assert_int_equal(verbs_gid_parse(text, &g.raw), 0);
	g.family = verbs_gid_family_of(&g.raw, false);
	return g;
}

/* An address has a v1 and a v2 entry with the same bytes: the one in use is told by its type. */
static void defect_10_the_index_is_that_of_the_type(void **state)
{
	struct verbs_gid v[] = {
		entry(2, VERBS_GID_V1, "10.0.0.1"), entry(3, VERBS_GID_V2, "10.0.0.1")};
	struct verbs_gid_want want = {.index = -1, .type = VERBS_GID_V2, .family = -1};
	struct verbs_end peer = {.gid_type = VERBS_GID_V2, .gid_family = VERBS_GID_IPV4};
	struct fb_err e = {0};

	(void)state;
	want.by_address = true;
	want.addr = v[0].raw;
	assert_int_equal(v[verbs_gid_choose(v, 2, &want)].index, 3);
	want.type = -1;
	assert_int_equal(v[verbs_gid_choose(v, 2, &want)].index, 3);
	want.type = VERBS_GID_V1;
	assert_int_equal(v[verbs_gid_choose(v, 2, &want)].index, 2);
	/* And what rdma_cm chose by itself is held against it. */
	assert_int_equal(verbs_used_fits(&v[1], &peer, &v[1], 0, 0, "x0", &e), 0);
	assert_int_equal(verbs_used_fits(&v[0], &peer, &v[1], 0, 0, "x0", &e), -EPROTO);
}

/* RoCE v1 against v2 is refused before the first packet, with both values. */
static void defect_11_roce_versions_must_agree(void **state)
{
	struct verbs_end a = {.host = "a",
		.device = "x0",
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.mtu = 4096,
		.pkey = 0xffff,
		.gid_type = VERBS_GID_V2,
		.gid_family = VERBS_GID_IPV4};
	struct verbs_end b = a;
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), 4096);
	b.gid_type = VERBS_GID_V1;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "RoCE v1"));
	assert_non_null(strstr(e.msg, "RoCE v2"));
}

static void put_file(const char *dir, const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof full, "%s%s", dir, path);
	for (char *p = full + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

#define HW "/sys/class/infiniband/x0/ports/1/hw_counters/"

/* A counter's text ends where the read did, whatever a longer one before it left behind; and a read
 * is newer than the kernel's cache. */
static void defect_12_counters_are_read_right(void **state)
{
	char dir[] = "/tmp/fb-defects-XXXXXX";
	struct fb_sysroot root = {0};
	json_t *j;
	uint64_t began;

	(void)state;
	assert_non_null(mkdtemp(dir));
	root.dir = dir;
	put_file(dir, HW "a_long_one", "18446744073709\n");
	put_file(dir, HW "b_without_newline", "7");
	put_file(dir, HW "c_short", "12\n");
	put_file(dir, HW "d_no_number", "n/a\n");
	put_file(dir, HW "lifespan", "10\n");
	j = verbs_counters_read(&root, "x0", 1);
	assert_int_equal(fb_json_int(j, "a_long_one", -1), 18446744073709);
	assert_int_equal(fb_json_int(j, "b_without_newline", -1), 7);
	assert_int_equal(fb_json_int(j, "c_short", -1), 12);
	/* Not available is absent, and the cache's lifetime is no counter. */
	assert_null(json_object_get(j, "d_no_number"));
	assert_null(json_object_get(j, "lifespan"));
	began = fb_clock_ns();
	verbs_counters_settle(&root, "x0", 1);
	assert_true(fb_clock_ns() - began > 10000000);
	json_decref(j);
	assert_int_equal(nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Watching the last byte of a write holds only where data is placed in order, which is said beside
 * the figure; a write with immediate completes, and is offered for where it does not hold. */
static void defect_13_write_latency_says_what_it_rests_on(void **state)
{
	struct fb_err e = {0};

	(void)state;
	assert_non_null(
		strstr(verbs_ops[VERBS_WRITE].latency, "only where the NIC places data in"));
	assert_int_equal(
		verbs_combination(VERBS_LATENCY, VERBS_WRITE, VERBS_RC, true, &e), -EINVAL);
	fb_err_clear(&e);
	assert_true(verbs_ops[VERBS_WRITE_IMM].takes_receive);
	assert_non_null(strstr(verbs_ops[VERBS_WRITE_IMM].latency, "out of order"));
	assert_int_equal(verbs_combination(VERBS_LATENCY, VERBS_WRITE_IMM, VERBS_RC, true, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defect_01_deviation_below_a_microsecond),
		cmocka_unit_test(defect_02_max_is_the_max),
		cmocka_unit_test(defect_03_tail_percentiles_need_samples),
		cmocka_unit_test(defect_04_pacing_is_in_no_sample),
		cmocka_unit_test(defect_05_a_message_rate_limit_alone_fails),
		cmocka_unit_test(defect_06_every_size_must_keep_the_limit),
		cmocka_unit_test(defect_07_latency_can_be_limited),
		cmocka_unit_test(defect_08_a_sweep_keeps_all_sizes),
		cmocka_unit_test(defect_09_the_document_is_json),
		cmocka_unit_test(defect_10_the_index_is_that_of_the_type),
		cmocka_unit_test(defect_11_roce_versions_must_agree),
		cmocka_unit_test(defect_12_counters_are_read_right),
		cmocka_unit_test(defect_13_write_latency_says_what_it_rests_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
