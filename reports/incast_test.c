// SPDX-License-Identifier: Apache-2.0
/* Incasts gathered by step and drawn, and rates over time: values of a document where they belong,
 * and what it cannot be trusted with left out. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "reports/incast.h"
#include "reports/test_files.h"

static json_t *result(
	const char *name, const char *metric, const char *unit, int senders, double value)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:f, s:{s:i, s:i, s:i, s:s, s:s}, s:{s:s, s:[]}}",
		"case", name, "metric", metric, "unit", unit, "where", "lab", "value", value,
		"params", "senders", senders, "message_size", 8192, "depth", 8, "rate", "max",
		"device", "rxe0", "validity", "state", "valid", "reasons");
}

static void add(json_t *doc, json_t *r)
{
	json_array_append_new(json_object_get(doc, "results"), r);
}

static json_t *document(void)
{
	json_t *doc = json_pack("{s:[]}", "results"), *r;

	for (int n = 0; n <= 2; n++) {
		r = result("verbs.incast/victim/read/64/1", "latency", "ns", n, 1000 * (n + 1));
		json_object_set_new(json_object_get(r, "params"), "op", json_string("read"));
		json_object_set_new(r, "stats", json_pack("{s:i}", "p99", 5000 * (n + 1)));
		add(doc, r);
	}
	for (int n = 1; n <= 2; n++) {
		r = result("verbs.incast/write/8192/1", "goodput", "bytes/s", n, 1.25e9);
		json_object_set_new(r, "per_rank",
			n == 1 ? json_pack("[{s:i,s:f}]", "rank", 1, "value", 1.25e9)
			       : json_pack("[{s:i,s:f},{s:i,s:f}]", "rank", 1, "value", 1e9, "rank",
					 2, "value", 0.25e9));
		add(doc, r);
		add(doc, result("verbs.incast/write/8192/1", "fairness", "1", n,
				 n == 1 ? 1 : 0.735));
		add(doc, result("verbs.incast/write/8192/1", "victim_p99_ratio", "x", n, n + 1));
	}
	r = json_array_get(json_object_get(doc, "results"), 3);
	json_object_set_new(r, "validity",
		json_pack("{s:s,s:[s]}", "state", "suspect", "reasons", "sender1 <counted> 3"));
	return doc;
}

static void make(struct rep_incasts *x, const json_t *doc, char *dir, size_t len)
{
	struct fb_err e = {0};
	char why[512] = "";

	snprintf(dir, len, "/tmp/fb-incast-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rep_incasts_make(x, doc, dir, why, sizeof(why), &e), 0);
}

static void clean(const char *dir)
{
	static const char *const names[] = {"incast-1.dat", "incast-1.gp", "incast-1.svg",
		"incast-2.dat", "incast-2.gp", "incast-2.svg", NULL};
	remove_folder(dir, names);
}

static void steps(void **state)
{
	struct rep_incasts x;
	json_t *doc = document();
	char dir[64], text[4096];
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.n, 1);
	assert_int_equal(x.v[0].most, 2);
	assert_true(x.v[0].victim);
	const struct rep_incast_step *s = x.v[0].step;
	assert_true(isnan(s[0].sum));
	assert_float_equal(s[0].p50, 1, 1e-9);
	assert_float_equal(s[1].sum, 10, 1e-9);
	assert_float_equal(s[2].lowest, 2, 1e-9);
	assert_float_equal(s[2].mean, 5, 1e-9);
	assert_float_equal(s[2].highest, 8, 1e-9);
	assert_float_equal(s[2].fairness, 0.735, 1e-9);
	assert_float_equal(s[2].p99, 15, 1e-9);
	assert_float_equal(s[2].p99_ratio, 3, 1e-9);
	assert_int_equal(s[1].valid, 1);
	assert_int_equal(s[2].valid, 0);
	file(dir, "incast-1.dat", text, sizeof(text));
	assert_non_null(strstr(text, "\n0\tNaN\tNaN\tNaN\tNaN\tNaN\t1\t5\t0\n"));
	assert_non_null(strstr(text, "\n2\t10\t2\t5\t8\t0.735\t3\t15\t0\n"));
	file(dir, "incast-1.gp", text, sizeof(text));
	assert_non_null(strstr(text, "layout 3,1"));
	assert_non_null(strstr(text, "messages of 8192 B, depth 8, as fast as they can"));
	rep_incasts_free(&x);
	clean(dir);
	json_decref(doc);
}

/* Other rates are another run; numbers out of range are nobody's. */
static void apart(void **state)
{
	struct rep_incasts x;
	json_t *doc = document(), *r;
	char dir[64], text[4096];
	r = result("verbs.incast/write/8192/1", "goodput", "bytes/s", 3, 1e9);
	json_object_set_new(json_object_get(r, "params"), "rate", json_integer(125000000));
	json_object_set_new(r, "job", json_string("it's `rm`"));
	add(doc, r);
	add(doc, result("verbs.incast/write/8192/1", "goodput", "bytes/s", -1, 1e9));
	add(doc, result("verbs.incast/write/8192/1", "goodput", "bytes/s", 1025, 1e9));
	add(doc, result("verbs.bandwidth/write", "goodput", "bytes/s", 7, 1e9));
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.n, 2);
	assert_int_equal(x.v[0].most, 2);
	assert_int_equal(x.v[1].most, 3);
	assert_false(x.v[1].victim);
	file(dir, "incast-2.gp", text, sizeof(text));
	assert_non_null(strstr(text, "layout 2,1"));
	assert_non_null(
		strstr(text, "it\xe2\x80\x99s `rm`: messages of 8192 B, depth 8, 1 Gb/s each'"));
	rep_incasts_free(&x);
	clean(dir);
	json_decref(doc);
}

static void section(void **state)
{
	struct rep_incasts x;
	struct fb_strbuf b = {0};
	json_t *doc = document();
	char dir[64];
	make(&x, doc, dir, sizeof(dir));
	rep_html_incasts(&b, &x, "no gnuplot");
	assert_non_null(strstr(b.s, "<h2>Incast</h2>"));
	assert_non_null(strstr(b.s, "sender1 &lt;counted&gt; 3"));
	assert_non_null(strstr(b.s, ">0.735<"));
	fb_strbuf_free(&b);
	rep_incasts_free(&x);
	rep_html_incasts(&b, &x, NULL);
	assert_int_equal(b.len, 0);
	clean(dir);
	json_decref(doc);
}

static void rates(void **state)
{
	struct fb_strbuf b = {0};
	json_t *doc = json_pack(
		"{s:[{s:s,s:s,s:f,s:{s:f,s:i,s:i},s:{s:f,s:f,s:f}},{s:s,s:s,s:f,s:n,s:s},"
		"{s:s,s:s,s:{s:{s:i,s:f}}}]}",
		"results", "case", "verbs.bandwidth/write/rc/poll/65536", "unit", "bytes/s",
		"value", 1e9, "worst_window", "value", 0.25e9, "window_ns", 100000000, "t_ns",
		1500000000, "rate", "requested", 1.25e9, "achieved", 1e9, "share", 0.8, "case",
		"short", "unit", "bytes/s", "value", 1e9, "worst_window", "worst_window_reason",
		"too short", "case", "verbs.load/send/rc/poll/on/64", "unit", "ns", "facts",
		"background", "requested", 1000000000, "achieved_out", 0.99e9);
	assert_non_null(doc);
	rep_html_rates(&b, doc);
	assert_non_null(strstr(b.s, "<td class=\"n\">8.00</td><td class=\"n\">2.00</td>"));
	assert_non_null(
		strstr(b.s, "<td class=\"suspect\">25.0 %</td><td>of 100 ms at 1.50 s</td>"));
	assert_non_null(strstr(b.s,
		"<td>itself</td><td class=\"n\">10.0</td><td class=\"n\">8.00</td><td class=\"suspect\">80.0 %</td>"));
	assert_non_null(strstr(b.s, "<td>background out</td>"));
	assert_non_null(strstr(b.s, "99.0 %"));
	assert_null(strstr(b.s, "short"));
	assert_non_null(strstr(b.s, "1 more rates were not measured long enough"));
	fb_strbuf_free(&b);
	json_decref(doc);
	doc = json_pack("{s:[]}", "results");
	rep_html_rates(&b, doc);
	assert_int_equal(b.len, 0);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(apart),
		cmocka_unit_test(section),
		cmocka_unit_test(rates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
