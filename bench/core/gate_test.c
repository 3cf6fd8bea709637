// SPDX-License-Identifier: Apache-2.0
/* Gates: each size for itself, each miss named, and nothing that cannot be judged passes. */
#include "bench/core/test.h"

#include <string.h>

#include "bench/core/gate.h"
#include "bench/core/json.h"
#include "bench/core/result.h"

static struct fb_doc *new_doc(void)
{
	static char name[] = "gates";
	char *argv[] = {name, NULL};
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	struct fb_doc *d = fb_doc_new("gates", 1, argv, &out, &e);

	assert_non_null(d);
	return d;
}

static void add(struct fb_doc *d, json_t *r)
{
	assert_non_null(r);
	fb_doc_add_result(d, r);
}

static json_t *latency(const char *where, int n, int p50, int p99)
{
	json_t *r = json_pack("{s:s,s:s,s:s,s:i,s:i,s:{},s:{s:i},s:{s:s,s:[]}}", "case", where,
		"metric", "latency", "unit", "ns", "n", n, "value", p50, "hist", "stats", "p50",
		p50, "validity", "state", "valid", "reasons");
	if (p99)
		fb_json_set_int(json_object_get(r, "stats"), "p99", p99);
	return r;
}

static json_t *rate(const char *where, const char *metric, double value, const char *state)
{
	return json_pack("{s:s,s:s,s:s,s:i,s:f,s:{s:s,s:[s]}}", "case", where, "metric", metric,
		"unit", "bytes/s", "n", 100, "value", value, "validity", "state", state, "reasons",
		"because");
}

static const json_t *check_at(struct fb_doc *d, size_t i)
{
	return json_array_get(json_object_get(fb_doc_json(d), "checks"), i);
}

static size_t checks(struct fb_doc *d)
{
	return json_array_size(json_object_get(fb_doc_json(d), "checks"));
}

static void no_gate_changes_nothing(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {0};
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), 0);
	assert_int_equal(checks(d), 0);
	fb_doc_free(d);
}

static void one_bad_size_fails_the_sweep(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.max_p99_ns = 2000};
	add(d, latency("x/2", 5000, 900, 1500));
	add(d, latency("x/64K", 5000, 900, 2001));
	add(d, latency("x/1M", 5000, 900, 2000));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_FAILED);
	assert_int_equal(checks(d), 3);
	assert_string_equal(fb_json_str(check_at(d, 0), "state", ""), "pass");
	assert_string_equal(fb_json_str(check_at(d, 1), "state", ""), "fail");
	assert_string_equal(fb_json_str(check_at(d, 1), "case", ""), "x/64K");
	assert_string_equal(fb_json_str(check_at(d, 1), "id", ""), "gate.max-p99");
	assert_int_equal(fb_json_int(check_at(d, 1), "observed", 0), 2001);
	/* Both would be 2.00 us. */
	assert_string_equal(
		fb_json_str(check_at(d, 1), "reason", ""), "wanted at most 2000 ns, got 2001 ns");
	assert_int_equal(
		fb_json_int(json_object_get(check_at(d, 1), "expected"), "value", 0), 2000);
	assert_string_equal(fb_json_str(json_object_get(check_at(d, 1), "expected"), "source", ""),
		"--max-p99");
	assert_string_equal(fb_json_str(check_at(d, 2), "state", ""), "pass");
	fb_doc_free(d);
}

static void an_unsupported_percentile_is_no_pass(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.max_p99_ns = 2000};
	add(d, latency("x/2", 5000, 900, 1500));
	add(d, latency("x/4", 999, 900, 0));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_UNMEASURED);
	assert_string_equal(fb_json_str(check_at(d, 1), "state", ""), "skip");
	assert_non_null(strstr(fb_json_str(check_at(d, 1), "reason", ""), "needs 1000"));
	fb_doc_free(d);
}

static void a_miss_is_certain_beside_a_skip(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.max_p99_ns = 2000};
	add(d, latency("x/4", 999, 900, 0));
	add(d, latency("x/2", 5000, 900, 2500));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_FAILED);
	fb_doc_free(d);
}

static void share_needs_a_line_rate(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_share = 90};
	json_t *known = rate("x/2", "bandwidth", 95, "valid");
	fb_json_set_real(known, "line_rate", 100, NULL);
	add(d, known);
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_OK);
	assert_string_equal(fb_json_str(check_at(d, 0), "state", ""), "pass");
	add(d, rate("x/4", "bandwidth", 95, "valid"));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_UNMEASURED);
	assert_non_null(strstr(fb_json_str(check_at(d, 2), "reason", ""), "line rate"));
	fb_doc_free(d);
}

static void an_invalid_result_never_passes(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_bandwidth = 10};
	add(d, rate("x/2", "bandwidth", 1e9, "invalid"));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_UNMEASURED);
	assert_non_null(strstr(fb_json_str(check_at(d, 0), "reason", ""), "because"));
	fb_doc_free(d);
}

static void a_run_without_results_never_passes(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_bandwidth = 10};
	add(d, latency("x/2", 5000, 900, 2500));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_OK), FB_EXIT_UNMEASURED);
	assert_int_equal(checks(d), 1);
	assert_string_equal(fb_json_str(check_at(d, 0), "state", ""), "skip");
	fb_doc_free(d);
}

static void the_rate_metric_is_the_callers(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_bandwidth = 100};
	add(d, rate("x/2", "algbw", 50, "valid"));
	add(d, rate("x/2", "busbw", 150, "valid"));
	assert_int_equal(fb_gate_judge(d, &g, "busbw", FB_EXIT_OK), FB_EXIT_OK);
	assert_int_equal(checks(d), 1);
	fb_doc_free(d);
}

static void a_worse_status_stays(void **state)
{
	(void)state;
	struct fb_doc *d = new_doc();
	const struct fb_gate_cfg g = {.min_bandwidth = 100};
	add(d, rate("x/2", "bandwidth", 50, "valid"));
	assert_int_equal(fb_gate_judge(d, &g, "bandwidth", FB_EXIT_WRONG_DATA), FB_EXIT_WRONG_DATA);
	assert_string_equal(fb_json_str(check_at(d, 0), "state", ""), "fail");
	fb_doc_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_gate_changes_nothing),
		cmocka_unit_test(one_bad_size_fails_the_sweep),
		cmocka_unit_test(an_unsupported_percentile_is_no_pass),
		cmocka_unit_test(a_miss_is_certain_beside_a_skip),
		cmocka_unit_test(share_needs_a_line_rate),
		cmocka_unit_test(an_invalid_result_never_passes),
		cmocka_unit_test(a_run_without_results_never_passes),
		cmocka_unit_test(the_rate_metric_is_the_callers),
		cmocka_unit_test(a_worse_status_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
