// SPDX-License-Identifier: Apache-2.0
/* The histogram: bucket bounds, exact moments, merging, percentiles against sorted samples, JSON.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/stats.h"

#define LIMIT (UINT64_C(1) << FB_HIST_MAX_BITS)

static struct fb_hist *make(void)
{
	struct fb_hist *h = malloc(sizeof(*h));
	assert_non_null(h);
	fb_hist_init(h);
	return h;
}

/* Log-uniform over the whole range: every octave gets its share. */
static uint64_t draw(struct fb_rng *r)
{
	return (uint64_t)exp2(fb_rng_uniform(r) * FB_HIST_MAX_BITS);
}

static void check_bucket(uint64_t v)
{
	unsigned b = fb_hist_bucket(v);
	uint64_t low = fb_hist_bucket_low(b), width = fb_hist_bucket_width(b);
	assert_true(b < FB_HIST_BUCKETS);
	assert_true(v >= low && v - low < width);
	double mid = (double)low + (double)(width - 1) / 2;
	assert_true(fabs(mid - (double)v) <= 0.004 * (double)v);
}

static void test_buckets(void **st)
{
	for (uint64_t v = 0; v < 4096; v++)
		check_bucket(v);
	for (int bit = 1; bit < FB_HIST_MAX_BITS; bit++)
		for (int d = -1; d <= 1; d++)
			check_bucket((UINT64_C(1) << bit) + (uint64_t)d);
	check_bucket(LIMIT - 1);
	assert_int_equal(fb_hist_bucket(LIMIT - 1), FB_HIST_BUCKETS - 1);
	/* No gap and no overlap. */
	for (unsigned b = 0; b + 1 < FB_HIST_BUCKETS; b++)
		assert_int_equal(
			fb_hist_bucket_low(b) + fb_hist_bucket_width(b), fb_hist_bucket_low(b + 1));
}

/* The fast way into a bucket, through a double, against fb_hist_bucket(). */
static void test_fast_bucket_is_the_bucket(void **st)
{
	struct fb_hist *h = make();
	fb_hist_add(h, 0);
	fb_hist_add(h, LIMIT - 1);
	for (int bit = 1; bit < FB_HIST_MAX_BITS; bit++) {
		for (int d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)d;
			uint64_t before = h->count[fb_hist_bucket(v)];
			fb_hist_add(h, v);
			assert_int_equal(h->count[fb_hist_bucket(v)], before + 1);
		}
	}
	struct fb_rng r;
	fb_rng_seed(&r, 1, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t v = draw(&r), before = h->count[fb_hist_bucket(v)];
		fb_hist_add(h, v);
		assert_int_equal(h->count[fb_hist_bucket(v)], before + 1);
	}
	free(h);
}

static void test_moments(void **st)
{
	struct fb_hist *h = make();
	assert_true(isnan(fb_hist_mean(h)));
	assert_true(fb_hist_stddev(h) == 0);
	/* A large offset with a small spread: 1e10 + {0,1,2,3,4}: mean 1e10+2, variance 2.5. */
	for (int i = 0; i < 5; i++)
		fb_hist_add(h, 10000000000 + (uint64_t)(i * 2 % 5));
	assert_true(fb_hist_mean(h) == 10000000002.0);
	assert_float_equal(fb_hist_stddev(h), sqrt(2.5), 1e-15);
	assert_true(h->min == 10000000000 && h->max == 10000000004);
	assert_true(h->sum == 50000000010);
	fb_hist_init(h);
	fb_hist_add(h, 7);
	assert_true(fb_hist_stddev(h) == 0 && h->min == 7 && h->max == 7);
	free(h);
}

/* Between a bucket's edges: a median of evenly spread values within a tenth of the bucket. */
static void test_interpolation(void **st)
{
	struct fb_hist *h = calloc(1, sizeof(*h));
	double v, mid;
	assert_non_null(h);
	for (uint64_t first = 100000; first < 101000; first += 100) {
		fb_hist_init(h);
		for (uint64_t i = 0; i < 4000; i++)
			fb_hist_add(h, first + i);
		assert_int_equal(fb_hist_interpolated(h, 0.5, &v), 0);
		assert_int_equal(fb_hist_percentile(h, 0.5, &mid), 0);
		/* 512 ns wide at 100 us */
		assert_true(fabs(v - (double)(first + 1999)) <= 51);
		assert_true(fabs(v - mid) <= 256);
	}
	fb_hist_init(h);
	fb_hist_add(h, 200);
	assert_int_equal(fb_hist_interpolated(h, 0.5, &v), 0);
	assert_true(v == 200);
	assert_int_equal(fb_hist_interpolated(h, 0.999, &v), -ENODATA);
	free(h);
}

/* Never clamped: counted, exact in min, max and the moments, and no percentile made up. */
static void test_overflow(void **st)
{
	struct fb_hist *h = make();
	for (int i = 0; i < 90; i++)
		fb_hist_add(h, 1000);
	for (int i = 0; i < 10; i++)
		fb_hist_add(h, LIMIT + (uint64_t)i);
	assert_int_equal(h->n, 100);
	assert_int_equal(h->overflow, 10);
	assert_int_equal(h->count[FB_HIST_BUCKETS - 1], 0);
	assert_true(h->max == LIMIT + 9 && h->min == 1000);
	double v = -1;
	assert_int_equal(fb_hist_percentile(h, 0.9, &v), 0);
	assert_true(v == 1001.5);
	assert_int_equal(fb_hist_quantile(h, 0.91, &v), -ERANGE);
	assert_int_equal(fb_hist_quantile(h, 1, &v), -ERANGE);
	assert_float_equal(fb_hist_mean(h), (90 * 1000.0 + 10 * (double)LIMIT + 45) / 100, 1e-3);
	/* A value below the first still reaches min, and the overflow does not hide later ones. */
	fb_hist_add(h, 3);
	fb_hist_add(h, LIMIT - 1);
	fb_hist_add(h, UINT64_MAX);
	assert_true(h->min == 3 && h->max == UINT64_MAX);
	assert_int_equal(h->count[FB_HIST_BUCKETS - 1], 1);
	assert_int_equal(h->overflow, 11);
	free(h);
}

static void assert_same(const struct fb_hist *a, const struct fb_hist *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->overflow, b->overflow);
	assert_true(a->min == b->min && a->max == b->max);
	assert_true(a->sum == b->sum && a->sumsq == b->sumsq);
	assert_memory_equal(a->count, b->count, sizeof(a->count));
}

static void test_merge_equals_all(void **st)
{
	struct fb_hist *part = make(), *merged = make(), *all = make();
	struct fb_rng r;
	fb_rng_seed(&r, 2, 7);
	for (int p = 0; p < 20; p++) {
		fb_hist_init(part);
		uint32_t n = p == 3 ? 0 : fb_rng_u32(&r) % 1000;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t v = draw(&r) << (fb_rng_u32(&r) % 64 == 0 ? 8 : 0);
			fb_hist_add(part, v);
			fb_hist_add(all, v);
		}
		fb_hist_merge(merged, part);
		assert_same(merged, all);
	}
	assert_true(all->overflow > 0);
	/* What is added after a merge goes on rightly. */
	fb_hist_add(merged, 0);
	fb_hist_add(all, 0);
	fb_hist_add(merged, 100000);
	fb_hist_add(all, 100000);
	assert_same(merged, all);
	free(part);
	free(merged);
	free(all);
}

static void test_percentiles_against_sorted(void **st)
{
	static const double qs[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
	enum { N = 20000 };
	struct fb_hist *h = make();
	double *v = malloc(N * sizeof(*v));
	assert_non_null(v);
	struct fb_rng r;
	fb_rng_seed(&r, 3, 1);
	for (int shape = 0; shape < 3; shape++) {
		fb_hist_init(h);
		for (int i = 0; i < N; i++) {
			double x = shape == 0            ? (double)draw(&r)
				   : shape == 1          ? 2000 + 30 * fb_rng_normal(&r)
				   : fb_rng_u32(&r) % 10 ? 1800
							 : 9000000;
			uint64_t ns = (uint64_t)x;
			v[i] = (double)ns;
			fb_hist_add(h, ns);
		}
		fb_sort(v, N);
		for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
			double got, want = v[(size_t)ceil(qs[i] * N - 1e-6) - 1];
			assert_int_equal(fb_hist_percentile(h, qs[i], &got), 0);
			assert_true(fabs(got - want) <= 0.004 * want);
		}
	}
	free(v);
	free(h);
}

static void test_sample_rule(void **st)
{
	static const struct {
		double q;
		uint64_t n;
	} rows[] = {{0.5, 1}, {0.9, 100}, {0.99, 1000}, {0.999, 10000}, {0.01, 1000}, {0.05, 200}};
	struct fb_hist *h = make();
	double v;
	assert_int_equal(fb_hist_percentile(h, 0.5, &v), -ENODATA);
	assert_int_equal(fb_hist_quantile(h, 0.5, &v), -ENODATA);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fb_hist_init(h);
		for (uint64_t k = 1; k < rows[i].n; k++)
			fb_hist_add(h, k);
		assert_int_equal(fb_hist_percentile(h, rows[i].q, &v), -ENODATA);
		fb_hist_add(h, rows[i].n);
		assert_int_equal(fb_hist_percentile(h, rows[i].q, &v), 0);
		/* 1..n: the value of rank r is r. */
		double want = ceil(rows[i].q * (double)rows[i].n - 1e-6);
		assert_true(fabs(v - want) <= 0.004 * want);
	}
	assert_int_equal(fb_hist_percentile(h, 1, &v), -ENODATA); /* the maximum is no percentile */
	assert_int_equal(fb_hist_percentile(h, 1.5, &v), -ENODATA);
	assert_int_equal(fb_hist_quantile(h, -0.1, &v), -ENODATA);
	/* Nearest rank despite binary fractions: 0.07 * 100 is a little over 7. */
	fb_hist_init(h);
	for (uint64_t k = 1; k <= 100; k++)
		fb_hist_add(h, k);
	assert_int_equal(fb_hist_quantile(h, 0.07, &v), 0);
	assert_true(v == 7);
	free(h);
}

static void test_json_round_trip(void **st)
{
	struct fb_hist *h = make(), *back = make();
	struct fb_rng r;
	fb_rng_seed(&r, 5, 5);
	for (int round = 0; round < 4; round++) {
		json_t *j = fb_hist_to_json(h);
		char *text = json_dumps(j, 0);
		json_decref(j);
		struct fb_err e = {0};
		j = fb_json_parse(text, strlen(text), "test", &e);
		assert_non_null(j);
		assert_int_equal(fb_hist_from_json(back, j, &e), 0);
		assert_int_equal(back->n, h->n);
		assert_int_equal(back->overflow, h->overflow);
		assert_memory_equal(back->count, h->count, sizeof(h->count));
		if (h->n)
			assert_true(
				back->min == h->min && back->max == h->max && back->sum == h->sum);
		assert_float_equal(
			fb_hist_stddev(back), fb_hist_stddev(h), 1e-9 * fb_hist_stddev(h));
		free(text);
		json_decref(j);
		/* Empty, narrow, wide, with overflow. */
		for (int i = 0; i < 1000; i++)
			fb_hist_add(h, round == 0   ? UINT64_C(5000000000) + fb_rng_u32(&r) % 3
				       : round == 1 ? draw(&r)
						    : LIMIT + draw(&r));
	}
	free(h);
	free(back);
}

static void test_json_looks(void **st)
{
	struct fb_hist *h = make();
	fb_hist_add(h, 100);
	fb_hist_add(h, 300);
	fb_hist_add(h, 301);
	json_t *j = fb_hist_to_json(h);
	char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(6));
	assert_string_equal(text,
		"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":3,\"overflow\":0,\"min\":100,\"max\":301,"
		"\"sum\":701,\"stddev\":115.76,\"buckets\":[[100,1],[278,2]]}");
	free(text);
	json_decref(j);
	free(h);
}

static void test_json_refused(void **st)
{
#define HEAD \
	"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":3,\"overflow\":0,\"min\":100,\"max\":301,\"sum\":701,"
#define SD   "\"stddev\":115.7,"
#define GOOD HEAD SD "\"buckets\":[[100,1],[278,2]]}"
#define ABOUT(k, ...)                        \
	{                                    \
		__VA_ARGS__, "histogram: " k \
	}
	static const struct {
		const char *text, *msg;
	} rows[] = {
		ABOUT("not an object", "[]"),
		ABOUT("\"unit\"", "{}"),
		ABOUT("\"sub_bits\"", "{\"unit\":\"ns\",\"sub_bits\":6}"),
		ABOUT("\"n\" is not a whole",
			"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":-3,\"overflow\":0}"),
		ABOUT("\"overflow\"",
			"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":3,\"overflow\":\"0\"}"),
		ABOUT("\"sum\" is not a whole",
			"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":3,\"overflow\":0}"),
		ABOUT("\"buckets\" is not an array", HEAD SD "\"buckets\":0}"),
		ABOUT("\"buckets\"[0] is not", HEAD SD "\"buckets\":[1]}"),
		ABOUT("\"buckets\"[0] is not", HEAD SD "\"buckets\":[[1]]}"),
		ABOUT("\"buckets\"[0]: bucket 3840", HEAD SD "\"buckets\":[[3840,3]]}"),
		ABOUT("\"buckets\"[0]: bucket -1", HEAD SD "\"buckets\":[[-1,3]]}"),
		ABOUT("\"buckets\"[1]: bucket 100", HEAD SD "\"buckets\":[[278,2],[100,1]]}"),
		ABOUT("\"buckets\"[1]: count 0", HEAD SD "\"buckets\":[[100,3],[278,0]]}"),
		ABOUT("\"n\" is 3, but the counts add up to 2",
			HEAD SD "\"buckets\":[[100,1],[278,1]]}"),
		ABOUT("\"min\" is not in", HEAD SD "\"buckets\":[[101,1],[278,2]]}"),
		ABOUT("\"max\" is not in", HEAD SD "\"buckets\":[[100,1],[279,2]]}"),
		ABOUT("\"stddev\"", HEAD "\"buckets\":[[100,1],[278,2]]}"),
		ABOUT("\"stddev\"", HEAD "\"stddev\":1e300,\"buckets\":[[100,1],[278,2]]}"),
		ABOUT("\"stddev\"", HEAD "\"stddev\":-1,\"buckets\":[[100,1],[278,2]]}"),
		ABOUT("\"sum\" is not within",
			"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":1,\"overflow\":0,\"min\":100,\"max\":100,\"sum\":99,"
			"\"stddev\":0,\"buckets\":[[100,1]]}"),
		ABOUT("\"max\" is not in",
			"{\"unit\":\"ns\",\"sub_bits\":7,\"n\":2,\"overflow\":1,\"min\":100,\"max\":100,\"sum\":200,"
			"\"stddev\":0,\"buckets\":[[100,1]]}"),
	};
	struct fb_hist *h = make();
	struct fb_err e = {0};
	json_t *j = json_loads(GOOD, 0, NULL);
	assert_int_equal(fb_hist_from_json(h, j, &e), 0);
	assert_int_equal(h->n, 3);
	json_decref(j);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		j = json_loads(rows[i].text, 0, NULL);
		assert_non_null(j);
		fb_err_clear(&e);
		assert_int_equal(fb_hist_from_json(h, j, &e), -EINVAL);
		if (strncmp(e.msg, rows[i].msg, strlen(rows[i].msg)) != 0)
			fail_msg("row %zu: \"%s\" does not start with \"%s\"", i, e.msg,
				rows[i].msg);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		json_decref(j);
	}
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_fast_bucket_is_the_bucket),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_merge_equals_all),
		cmocka_unit_test(test_interpolation),
		cmocka_unit_test(test_percentiles_against_sorted),
		cmocka_unit_test(test_sample_rule),
		cmocka_unit_test(test_json_round_trip),
		cmocka_unit_test(test_json_looks),
		cmocka_unit_test(test_json_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
