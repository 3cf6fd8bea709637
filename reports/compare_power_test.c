// SPDX-License-Identifier: Apache-2.0
/*
 * What is said of a gate's power, against the gate itself: launches are drawn by a seeded
 * generator, judged, and counted. Small numbers of trials with wide bounds; `scripts/bench gate`
 * has the table.
 */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/compare_priv.h"

#define NOISE 0.01

struct drawn {
	struct cmp c;
	double *values;
};

/* m metrics, n launches a side; the candidate's first metric is slower by `change`. */
static void draw(struct drawn *d, size_t m, size_t n, double change, struct fb_rng *rng)
{
	memset(d, 0, sizeof(*d));
	d->c.v = calloc(m, sizeof(*d->c.v));
	d->values = calloc(2 * m * n, sizeof(*d->values));
	assert_true(d->c.v && d->values);
	d->c.n = m;
	static json_t *first;
	if (!first)
		first = json_object();
	for (size_t i = 0; i < m; i++) {
		struct cmp_metric *v = &d->c.v[i];
		struct cmp_side *sides[2] = {&v->base, &v->cand};
		snprintf(v->name, sizeof(v->name), "bench/%zu", i);
		snprintf(v->metric, sizeof(v->metric), "rate");
		snprintf(v->unit, sizeof(v->unit), "1/s");
		v->q = 0.5;
		for (int s = 0; s < 2; s++) {
			sides[s]->v = d->values + (2 * i + (size_t)s) * n;
			sides[s]->n = n;
			sides[s]->first = first;
			for (size_t k = 0; k < n; k++)
				sides[s]->v[k] = 1e6 * exp(NOISE * fb_rng_normal(rng)) *
						 (s == 1 && i == 0 ? 1 - change : 1);
		}
	}
}

static void drop(struct drawn *d)
{
	free(d->c.v);
	free(d->values);
}

struct counts {
	int first, any, pass;
};

/* How often the first metric is REGRESSED, any is, and the first passes, in so many comparisons. */
static struct counts trials(int times, size_t m, size_t n, double change, double floor)
{
	const struct cmp_rules rules = {
		.floor_pct = 100 * floor, .level = 0.95, .max_gated = 10000};
	struct counts count = {0, 0, 0};
	struct fb_rng rng;
	fb_rng_seed(&rng, 7 + m, n);
	for (int t = 0; t < times; t++) {
		struct drawn d;
		struct fb_err e = {0};
		bool any = false;
		draw(&d, m, n, change, &rng);
		if (cmp_judge(&d.c, &rules, &e) != 0)
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < m; i++)
			any = any || d.c.v[i].verdict == CMP_REGRESSED;
		count.first += d.c.v[0].verdict == CMP_REGRESSED;
		count.pass += d.c.v[0].verdict == CMP_PASS;
		count.any += any;
		drop(&d);
	}
	return count;
}

static void sees_what_it_must(void **state)
{
	assert_true(trials(300, 1, 10, 0.03, 0.01).first >= 288); /* 97 % less what chance takes */
	assert_true(trials(100, 20, 15, 0.03, 0.01).first >= 94);
	assert_true(trials(300, 1, 10, 0, 0.01).any <= 3);
	assert_true(trials(100, 20, 15, 0, 0.01).any <= 2);
}

/* The change that is said to be seen in 80 of 100 is. */
static void says_what_it_sees(void **state)
{
	for (size_t n = 7; n <= 20; n += 13) {
		struct drawn d;
		struct fb_rng rng;
		struct fb_err e = {0};
		static const struct cmp_rules rules = {
			.floor_pct = -1, .level = 0.95, .max_gated = 20};
		double seen = 0;
		fb_rng_seed(&rng, 3, n);
		for (int k = 0; k < 50; k++) {
			draw(&d, 1, n, 0, &rng);
			assert_int_equal(cmp_judge(&d.c, &rules, &e), 0);
			seen += d.c.v[0].seen80 / 50;
			drop(&d);
		}
		int first = trials(400, 1, n, seen, 0.01).first;
		print_message("%zu launches: %.2f %% is seen in %d of 400\n", n, 100 * seen, first);
		assert_in_range(first, 400 * 68 / 100, 400 * 90 / 100);
	}
}

/* With the launches that are asked for, no change passes and twice the floor is seen. */
static void asks_for_enough(void **state)
{
	struct drawn d;
	struct fb_rng rng;
	struct fb_err e = {0};
	static const struct cmp_rules rules = {.floor_pct = -1, .level = 0.95, .max_gated = 20};
	fb_rng_seed(&rng, 5, 1);
	draw(&d, 1, 200, 0, &rng);
	assert_int_equal(cmp_judge(&d.c, &rules, &e), 0);
	size_t need = (size_t)d.c.v[0].need80;
	print_message("noise %.2f %%, floor 1 %%: %zu launches for 80 %%, %.0f for 97 %%\n",
		100 * d.c.v[0].noise, need, d.c.v[0].need97);
	drop(&d);
	assert_in_range(need, 14, 20); /* 2 pi/3 (1.96 + 0.84)^2 = 16.4 at 1 % of both */
	assert_in_range(trials(400, 1, need, 0, 0.01).pass, 400 * 72 / 100, 400 * 92 / 100);
	assert_in_range(trials(400, 1, need, 0.02, 0.01).first, 400 * 72 / 100, 400 * 92 / 100);
}

static void least_p(void **state)
{
	/* references, A1.4: the smallest two-sided p of n against n */
	static const double known[] = {0.1, 0.0286, 0.0079, 0.0022, 0.00058, 0.000155};
	for (size_t n = 3; n <= 8; n++)
		assert_true(fabs(cmp_least_p(n, n) / known[n - 3] - 1) < 0.02);
	assert_true(fabs(cmp_least_p(10, 10) / 1.08e-5 - 1) < 0.01);
	assert_true(cmp_least_p(1, 1) == 1);
	assert_int_equal(cmp_launches_for(0.05), CMP_MIN_LAUNCHES);
	assert_int_equal(cmp_launches_for(0.05 / 85), 7);
	assert_int_equal(cmp_launches_for(0.05 / 4600), 10);
}

/* ---- the table of `scripts/bench gate` ------------------------------------------------------- */

static void table_row(size_t m, size_t n, double floor, int times)
{
	struct counts none = trials(times, m, n, 0, floor);
	struct counts three = trials(times, m, n, 0.03, floor);
	printf("  %7zu %8zu %8.1f %% %10.2f %% %12.1f %% %12.1f %% %7d\n", m, n, 100 * floor,
		100.0 * none.any / times, 100.0 * none.pass / times, 100.0 * three.first / times,
		times);
}

static int table(void)
{
	static const size_t metrics[] = {1, 20, 500}, launches[] = {7, 10, 15, 20};
	static const double floors[] = {0.005, 0.01, 0.02};
	static const int times[] = {4000, 1000, 100};
	printf("  metrics launches      floor  any false  unchanged is   a change of  trials\n"
	       "                              REGRESSED           PASS   3 %% is seen\n");
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 4; k++)
			for (size_t f = 0; f < 3; f++)
				/* Of many metrics, which take long, the middle floor only. */
				if (cmp_least_p(launches[k], launches[k]) <
						0.05 / (double)metrics[i] &&
					(metrics[i] < 500 || f == 1))
					table_row(metrics[i], launches[k], floors[f], times[i]);
	return 0;
}

/* A document of m metrics in n launches, for the cost of comparing two. */
static int document(size_t m, size_t n, uint64_t seed)
{
	struct fb_err e = {0};
	struct fb_rng rng;
	json_t *doc = fb_doc_load(FB_TESTDATA("reports", "small.json"), &e);
	json_t *results = json_array(), *like = NULL, *r;
	size_t i;
	if (!doc)
		return 1;
	fb_rng_seed(&rng, seed, 1);
	json_array_foreach (json_object_get(doc, "results"), i, r)
		if (!like && !json_object_get(r, "hist"))
			like = r;
	for (size_t l = 1; l <= n; l++)
		for (i = 0; i < m; i++) {
			char name[40];
			r = json_deep_copy(like);
			snprintf(name, sizeof(name), "bench/%zu/64", i);
			fb_json_set_str(r, "case", name);
			fb_json_set_int(r, "launch", (int64_t)l);
			/* In steps, as a histogram's values are: ties cost most. */
			json_object_set_new(r, "value",
				json_real(
					3e6 * round(1e9 / 3e6 * exp(NOISE * fb_rng_normal(&rng)))));
			json_array_append_new(results, r);
		}
	json_object_set_new(doc, "results", results);
	json_dumpf(doc, stdout, JSON_INDENT(1));
	json_decref(doc);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_what_it_must),
		cmocka_unit_test(says_what_it_sees),
		cmocka_unit_test(asks_for_enough),
		cmocka_unit_test(least_p),
	};
	if (argc > 1 && strcmp(argv[1], "--table") == 0)
		return table();
	if (argc == 5 && strcmp(argv[1], "--document") == 0)
		return document(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
			(uint64_t)argv[4][0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
