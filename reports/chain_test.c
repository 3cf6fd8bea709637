// SPDX-License-Identifier: Apache-2.0
/* The chain from the wire to the step: shares where both lines stand in one place, a reason where
 * not. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/chain.h"

static json_t *result(const char *name, const char *metric, const char *where, double value)
{
	return json_pack("{s:s,s:s,s:s,s:f,s:{s:s,s:i,s:i,s:s},s:{s:s}}", "case", name, "metric",
		metric, "where", where, "value", value, "params", "op", "all_reduce", "size",
		1048576, "ranks", 8, "strategy", "fsdp", "validity", "state", "valid");
}

static json_t *document(const char *rdma_where)
{
	json_t *doc = json_object(), *results = json_array();
	json_t *rdma = result("verbs.bandwidth/write/1048576", "bandwidth", rdma_where, 46e9);
	json_object_set_new(
		rdma, "bound", json_pack("{s:f,s:s}", "value", 48e9, "why", "400 Gb/s"));
	json_array_append_new(results, rdma);
	json_array_append_new(
		results, result("verbs.bandwidth/write/64", "bandwidth", rdma_where, 1e9));
	json_array_append_new(
		results, result("coll/all_reduce/f/1048576", "busbw", "hardware", 23e9));
	json_array_append_new(
		results, result("coll/all_reduce/f/1048576", "time", "hardware", 80000));
	json_array_append_new(results, result("coll/all_reduce/f/8", "time", "hardware", 20000));
	json_t *step = result("train/tiny/1", "step_time", "hardware", 1e9);
	json_object_set_new(step, "split",
		json_pack("{s:{s:f},s:{s:f},s:{s:{s:f},s:{s:f}}}", "step", "mean", 1e9, "compute",
			"mean", 8e8, "exposed", "all_gather", "mean", 1e8, "norm", "mean", 5e7));
	json_object_set_new(
		step, "bytes", json_pack("{s:{s:{s:f}}}", "kinds", "all_gather", "counted", 4.6e9));
	json_object_set_new(step, "mfu", json_pack("{s:f}", "value", 0.4));
	json_array_append_new(results, step);
	json_object_set_new(doc, "results", results);
	return doc;
}

static void all_lines(void **state)
{
	struct rep_chain c;
	json_t *doc = document("hardware");
	rep_chain_make(doc, &c);
	assert_int_equal(c.n, 6);
	assert_true(isnan(c.v[0].share));
	assert_true(fabs(c.v[1].share - 46.0 / 48) < 1e-9);
	assert_non_null(strstr(c.v[1].what, "1 MiB"));
	assert_true(fabs(c.v[2].share - 0.5) < 1e-9);
	assert_non_null(strstr(c.v[2].rest, "25 % of its time"));
	/* 4.6 GB at 23 GB/s are 200 ms, of which the step waits for 150. */
	assert_string_equal(c.v[3].value, "150 ms of 1.00 s");
	assert_non_null(strstr(c.v[3].rest, "would take 200 ms alone"));
	assert_string_equal(c.v[4].value, "80.0 % of its time");
	assert_true(fabs(c.v[5].share - 0.5) < 1e-9);
	json_decref(doc);
}

static void other_places_are_no_share(void **state)
{
	struct rep_chain c;
	json_t *doc = document("lab");
	rep_chain_make(doc, &c);
	assert_int_equal(c.n, 6);
	assert_true(isfinite(c.v[1].share));
	assert_true(isnan(c.v[2].share));
	assert_non_null(strstr(c.v[2].rest, "no share: not like for like"));
	json_decref(doc);
}

static void one_kind_is_no_chain(void **state)
{
	struct rep_chain c;
	struct fb_strbuf b = {0};
	json_t *doc = document("hardware"), *results = json_object_get(doc, "results");
	while (json_array_size(results) > 2)
		json_array_remove(results, 2);
	rep_chain_make(doc, &c);
	assert_int_equal(c.n, 0);
	rep_html_chain(&b, &c);
	assert_null(b.s);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines),
		cmocka_unit_test(other_places_are_no_share),
		cmocka_unit_test(one_kind_is_no_chain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
