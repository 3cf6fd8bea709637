// SPDX-License-Identifier: Apache-2.0
/* Gates without a base: a run against its kind's expectations, and the odd node of a fleet. */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/compare_expected.h"
#include "reports/compare_fleet.h"
#include "reports/compare_run.h"

/* small.json with one bandwidth of `value` bytes/s on `hosts` nodes called NAME0, NAME1, ... */
static json_t *document(const char *name, int hosts, double value, const char *where)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(FB_TESTDATA("reports", "small.json"), &e), *r, *like = NULL;
	if (!doc)
		fail_msg("%s", e.msg);
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r)
		if (!like && strcmp(fb_json_str(r, "metric", ""), "bandwidth") == 0)
			like = r;
	json_t *results = json_array(), *system = json_object_get(doc, "system");
	json_t *host = json_array_get(json_object_get(system, "hosts"), 0), *all = json_array();
	r = json_deep_copy(like);
	fb_json_set_str(r, "case", "verbs.bandwidth/write/rc/one/8388608");
	fb_json_set_str(r, "where", where);
	fb_json_set_int(json_object_get(r, "params"), "size", 8388608);
	json_object_set_new(r, "value", json_real(value));
	json_object_set_new(
		r, "bound", json_pack("{s:f,s:s}", "value", 49e9, "why", "400 Gb/s less headers"));
	json_array_append_new(results, r);
	json_object_set_new(doc, "results", results);
	for (int k = 0; k < hosts; k++) {
		char n[40];
		json_t *h = json_deep_copy(host);
		snprintf(n, sizeof(n), "%s%d", name, k);
		fb_json_set_str(h, "name", n);
		json_array_append_new(all, h);
	}
	json_object_set_new(system, "hosts", all);
	return doc;
}

static void expectations(void **state)
{
	static const struct {
		double gbps;
		int hosts;
		const char *where;
		enum expected_state bandwidth;
		int status; /* NCCL's row is never measured here: 3 at best */
	} rows[] = {
		{390, 2, "hardware", EXPECTED_PASS, FB_EXIT_UNMEASURED},
		{370, 2, "hardware", EXPECTED_BELOW, FB_EXIT_FAILED},
		{399, 2, "hardware", EXPECTED_ABOVE, FB_EXIT_UNMEASURED},
		{390, 4, "hardware", EXPECTED_ELSEWHERE, FB_EXIT_UNMEASURED},
		{390, 2, "lab", EXPECTED_ELSEWHERE, FB_EXIT_UNMEASURED},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expected x;
		struct fb_err e = {0};
		json_t *doc = document("n", rows[i].hosts, rows[i].gbps * 1e9 / 8, rows[i].where);
		assert_int_equal(expected_load(NULL, &x, &e), 0);
		assert_int_equal(expected_judge(&x, "azure-ndv5-h100", doc, &e), 0);
		assert_int_equal(x.n_findings, 2);
		assert_int_equal(x.finding[0].state, EXPECTED_UNMEASURED);
		assert_int_equal(x.finding[1].state, rows[i].bandwidth);
		assert_true(fabs(x.finding[1].seen - rows[i].gbps) < 1e-6);
		assert_int_equal(expected_status(&x), rows[i].status);
		json_t *o = expected_json(&x, "azure-ndv5-h100");
		assert_int_equal(json_array_size(json_object_get(o, "rows")), 2);
		json_decref(o);
		json_decref(doc);
		expected_free(&x);
	}
}

/* A launch that was marked invalid passes nothing, and wrong data fails all. */
static void expectations_of_the_invalid(void **state)
{
	for (int wrong = 0; wrong < 2; wrong++) {
		struct expected x;
		struct fb_err e = {0};
		json_t *doc = document("n", 2, 390e9 / 8, "hardware");
		json_t *r = json_array_get(json_object_get(doc, "results"), 0);
		if (wrong)
			json_array_append_new(json_object_get(doc, "errors"),
				json_pack("{s:s,s:s,s:i,s:i}", "message", "byte 7", "remedy", "",
					"code", -5, "exit", FB_EXIT_WRONG_DATA));
		else
			json_object_set_new(r, "validity",
				json_pack("{s:s,s:[s]}", "state", "invalid", "reasons",
					"symbol errors"));
		assert_int_equal(expected_load(NULL, &x, &e), 0);
		assert_int_equal(expected_judge(&x, "azure-ndv5-h100", doc, &e), 0);
		assert_int_equal(x.finding[1].state, wrong ? EXPECTED_PASS : EXPECTED_INVALID);
		assert_true(wrong || strstr(x.finding[1].why, "symbol errors"));
		assert_int_equal(
			expected_status(&x), wrong ? FB_EXIT_WRONG_DATA : FB_EXIT_UNMEASURED);
		json_decref(doc);
		expected_free(&x);
	}
}

static void expectations_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"a,b,c,1,1,1,,,GB/s,x\n", ":1: the first line is not"},
		{"# fabricbench-expected/1\na,b,c\n", ":2: fewer than 10 columns"},
		{"# fabricbench-expected/1\n\na,b,c,1,1,,,,GB/s,x\n",
			":3: neither lower nor upper"},
		{"# fabricbench-expected/1\na,b,c,1,1,2,,1,GB/s,x\n", ":2: lower is above upper"},
		{"# fabricbench-expected/1\na,b,c,1,1,2,,,GiB,x\n", ":2: no such unit: \"GiB\""},
		{"# fabricbench-expected/1\na,b,c,1Q,1,2,,,GB/s,x\n", ":2: not a message size"},
		{"# fabricbench-expected/1\na,b,c,1,one,2,,,GB/s,x\n", ":2: not a number of nodes"},
		{"# fabricbench-expected/1\na,b,c,1,1,nan,,,GB/s,x\n", ":2: not a number above 0"},
		{"# fabricbench-expected/1\n,b,c,1,1,2,,,GB/s,x\n", ":2: a field is empty"},
		{"# fabricbench-expected/1\na,b,c,1,1,2,,,GB/s,\n", ":2: fewer than 10 columns"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[] = "/tmp/fabricbench-expected-XXXXXX";
		struct expected x;
		struct fb_err e = {0};
		int fd = mkstemp(path);
		assert_true(fd >= 0);
		assert_int_equal(
			write(fd, rows[i].text, strlen(rows[i].text)), strlen(rows[i].text));
		close(fd);
		assert_int_equal(expected_load(path, &x, &e), -EINVAL);
		if (!strstr(e.msg, rows[i].says))
			fail_msg("%s\n  wanted %s", e.msg, rows[i].says);
		unlink(path);
	}
	struct expected x;
	struct fb_err e = {0};
	json_t *doc = document("n", 2, 1, "hardware");
	assert_int_equal(expected_load(NULL, &x, &e), 0);
	assert_int_equal(expected_judge(&x, "abacus", doc, &e), -ENOENT);
	assert_non_null(strstr(e.hint, "oci-h100"));
	json_decref(doc);
	expected_free(&x);
}

/* A folder of n nodes: run directories and documents by turns; node 3 has `third` of the others'.
 */
static void fleet_of(char *dir, int n, double third, bool lacks, bool invalid)
{
	struct fb_err e = {0};
	assert_int_equal(cmp_run_dir(NULL, dir, 4096, &e), 0);
	for (int i = 0; i < n; i++) {
		char path[4200], name[20];
		snprintf(name, sizeof(name), "node%d-", i);
		json_t *doc = document(
			name, 1, 45e9 * (1 + 0.002 * (i % 5)) * (i == 3 ? third : 1), "hardware");
		if (lacks && i == 2)
			json_array_clear(json_object_get(doc, "results"));
		if (invalid && i == 2)
			json_object_set_new(json_array_get(json_object_get(doc, "results"), 0),
				"validity",
				json_pack("{s:s,s:[s]}", "state", "invalid", "reasons", "x"));
		snprintf(path, sizeof(path), "%s/%d%s", dir, i, i % 2 ? "" : ".json");
		if (i % 2) {
			assert_int_equal(mkdir(path, 0755), 0);
			snprintf(path, sizeof(path), "%s/%d/run.json", dir, i);
		}
		assert_int_equal(json_dump_file(doc, path, JSON_COMPACT), 0);
		json_decref(doc);
	}
}

static void fleets(void **state)
{
	static const struct {
		double third;
		int n, odd, status;
		bool lacks, invalid;
	} rows[] = {
		{1, 8, 0, FB_EXIT_OK, false, false}, {0.9, 8, 1, FB_EXIT_FAILED, false, false},
		{0.97, 8, 0, FB_EXIT_OK, false, false}, /* far in deviations, not in share */
		{1, 8, 0, FB_EXIT_UNMEASURED, true, false},
		{1, 8, 0, FB_EXIT_UNMEASURED, false, true},    /* invalid is not measured */
		{0.5, 4, 0, FB_EXIT_UNMEASURED, false, false}, /* too few to tell */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dir[4096];
		struct fleet f;
		struct fb_err e = {0};
		int odd = 0;
		fleet_of(dir, rows[i].n, rows[i].third, rows[i].lacks, rows[i].invalid);
		if (fleet_load(dir, &f, &e) != 0)
			fail_msg("%s", e.msg);
		cmp_run_remove(dir);
		assert_int_equal(f.t.n_rows, rows[i].n);
		assert_int_equal(fleet_judge(&f, 0.05, 3.5), 0);
		for (size_t k = 0; k < f.t.n_rows; k++) {
			odd += f.odd[k];
			assert_true(!f.odd[k] || strcmp(f.t.row[k], "node3-0") == 0);
		}
		assert_int_equal(odd, rows[i].odd);
		assert_int_equal(fleet_status(&f), rows[i].status);
		json_t *o = fleet_json(&f, "x");
		assert_int_equal(json_array_size(json_object_get(o, "odd")), rows[i].odd);
		json_decref(o);
		fleet_free(&f);
	}
}

static void fleets_refused(void **state)
{
	char dir[4096], path[4200];
	struct fleet f;
	struct fb_err e = {0};
	assert_int_equal(fleet_load("/nonexistent", &f, &e), -ENOENT);
	memset(&e, 0, sizeof(e));
	assert_int_equal(cmp_run_dir(NULL, dir, sizeof(dir), &e), 0);
	assert_int_equal(fleet_load(dir, &f, &e), -ENODATA);
	memset(&e, 0, sizeof(e));
	for (int i = 0; i < 2; i++) {
		json_t *doc = document("same", 1, 1e9, "hardware");
		snprintf(path, sizeof(path), "%s/%d.json", dir, i);
		assert_int_equal(json_dump_file(doc, path, JSON_COMPACT), 0);
		json_decref(doc);
	}
	assert_int_equal(fleet_load(dir, &f, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "another document of same0"));
	cmp_run_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expectations),
		cmocka_unit_test(expectations_of_the_invalid),
		cmocka_unit_test(expectations_refused),
		cmocka_unit_test(fleets),
		cmocka_unit_test(fleets_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
