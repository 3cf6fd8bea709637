// SPDX-License-Identifier: Apache-2.0
/* Figures, plots and the page, from a small document; hostile texts; a machine without gnuplot. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/result.h"
#include "reports/report.h"
#include "reports/report_priv.h"
#include "reports/test_files.h"
#include "reports/test_page.h"

#define SMALL FB_TESTDATA("reports", "small.json")

/* Everything a shell, gnuplot or a browser might take for its own. */
#define HOSTILE \
	"'; system \"touch owned\" `touch owned`\n!touch owned\n<script>alert(1)</script>\"&"

static struct rep_figure *find(struct rep_figures *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].id, id) == 0)
			return &f->v[i];
	fail_msg("no figure %s", id);
	return NULL;
}

static void build(const json_t *doc, struct rep_figures *f)
{
	struct fb_err e = {0};
	if (rep_figures_build(doc, f, &e) != 0)
		fail_msg("%s", e.msg);
}

static char *page_of(const json_t *doc, const struct rep_figures *f, const char *no_plots)
{
	struct fb_strbuf b = {0};
	struct rep_page page = {.doc = doc,
		.figures = f,
		.data_name = "small.json",
		.plots_name = "plots",
		.no_plots = no_plots};
	rep_html(&b, &page);
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	return s;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void figures_of_a_document(void **state)
{
	static const char *const ids[] = {"coll-busbw", "verbs-latency-latency-send",
		"verbs-latency-latency-read", "verbs-latency-latency-tail",
		"verbs-bandwidth-bandwidth"};
	struct rep_figures f;
	json_t *doc = small();
	build(doc, &f);
	assert_int_equal(f.n, 5);
	for (size_t i = 0; i < 5; i++)
		find(&f, ids[i]);
	struct rep_figure *send = find(&f, "verbs-latency-latency-send");
	assert_int_equal(send->kind, REP_BAND);
	assert_string_equal(send->section, "RDMA");
	assert_string_equal(send->where, "lab");
	assert_string_equal(send->definition, "half of the round trip");
	assert_string_equal(send->factors, "send, rc, poll, mtu 1024");
	assert_int_equal(send->n, 1);
	assert_int_equal(send->series[0].n, 3);
	/* Two launches of 1,000 are merged, not averaged. */
	assert_int_equal(send->series[0].rows[0].n, 2);
	assert_int_equal(send->series[0].rows[0].samples, 2000);
	assert_int_equal(send->series[0].rows[0].hist->n, 2000);
	assert_int_equal(send->series[0].rows[2].size, 1024);
	struct rep_figure *busbw = find(&f, "coll-busbw");
	assert_int_equal(busbw->n, 2);
	assert_string_equal(busbw->series[0].label, "mpi");
	assert_string_equal(busbw->series[1].label, "local");
	rep_figures_free(&f);
	json_decref(doc);
}

/* What follows from the size makes no series; what only one operation knows makes none either; a
 * number that differs at one size does. */
static void factors_that_make_series(void **state)
{
	struct rep_figures f;
	json_t *doc = small(), *r;
	size_t i;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		json_t *params = json_object_get(r, "params");
		bool coll = strcmp(fb_json_str(r, "metric", ""), "busbw") == 0;
		json_object_set_new(
			params, "inline", json_boolean(fb_json_int(params, "size", 0) < 100));
		if (coll && strcmp(fb_json_str(params, "backend", ""), "mpi") == 0)
			json_object_set_new(params, "redop", json_string("sum"));
		if (strcmp(fb_json_str(r, "metric", ""), "bandwidth") == 0)
			json_object_set_new(
				params, "qps", json_integer(fb_json_int(r, "launch", 0)));
	}
	build(doc, &f);
	const struct rep_figure *send = find(&f, "verbs-latency-latency-send");
	assert_int_equal(send->n, 1);
	assert_string_equal(send->factors, "send, rc, poll, mtu 1024, inline by size");
	const struct rep_figure *busbw = find(&f, "coll-busbw");
	assert_int_equal(busbw->n, 2);
	assert_string_equal(busbw->series[0].label, "mpi");
	const struct rep_figure *bw = find(&f, "verbs-bandwidth-bandwidth");
	assert_int_equal(bw->n, 2);
	assert_string_equal(bw->series[1].label, "qps 2");
	rep_figures_free(&f);
	json_decref(doc);
}

static void rows_as_drawn(void **state)
{
	struct rep_figures f;
	json_t *doc = small();
	double lo, hi;
	build(doc, &f);
	/* bytes/s as Gb/s: median, lowest and highest of the two launches; their bound. */
	struct rep_figure *bw = find(&f, "verbs-bandwidth-bandwidth");
	const struct rep_row *r = &bw->series[0].rows[2];
	rep_row_range(bw, r, &lo, &hi);
	assert_true(fabs(rep_row_value(bw, r) - 374.777) < 0.01);
	assert_true(fabs(lo - 374.032) < 0.01 && fabs(hi - 375.522) < 0.01);
	assert_true(fabs(r->bound * rep_scale(bw) - 392.149) < 0.01);
	assert_int_equal(bw->series[0].rows[1].valid, 1);
	assert_string_equal(bw->series[0].rows[1].why, "3 packets were sent again");
	/* 2,000 samples support p99 (1,000) and not p99.9 (10,000). */
	struct rep_figure *send = find(&f, "verbs-latency-latency-send");
	assert_true(isfinite(rep_row_percentile(send, &send->series[0].rows[0], 0.99)));
	assert_true(isnan(rep_row_percentile(send, &send->series[0].rows[0], 0.999)));
	rep_figures_free(&f);
	json_decref(doc);
}

static void numbers(void **state)
{
	char b[40];
	assert_string_equal(rep_num(1.6284, b, sizeof(b)), "1.63");
	assert_string_equal(rep_num(12345.6, b, sizeof(b)), "12346");
	assert_string_equal(rep_num(0.004213, b, sizeof(b)), "0.00421");
	assert_string_equal(rep_num(0, b, sizeof(b)), "0");
	assert_string_equal(rep_num(NAN, b, sizeof(b)), "-");
	assert_string_equal(rep_count(7, b, sizeof(b)), "7");
	assert_string_equal(rep_count(960000, b, sizeof(b)), "960,000");
	assert_string_equal(rep_count(1234567, b, sizeof(b)), "1,234,567");
}

/* ---- plots ----------------------------------------------------------------------------------- */

static char *tics(uint64_t lo, uint64_t hi)
{
	struct fb_strbuf b = {0};
	rep_size_tics(&b, lo, hi);
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	return s;
}

static void size_tics(void **state)
{
	char *s = tics(1024, 8192);
	assert_string_equal(s, "('1 KiB' 1024, '2 KiB' 2048, '4 KiB' 4096, '8 KiB' 8192)");
	free(s);
	s = tics(2, 65536);
	assert_non_null(strstr(s, "('2 B' 2, '' 4 1, '' 8 1, '16 B' 16,"));
	assert_non_null(strstr(s, "'64 KiB' 65536)"));
	free(s);
	s = tics(64, 64);
	assert_string_equal(s, "('64 B' 64)");
	free(s);
	/* Never more than nine labels, whatever the span. */
	for (unsigned span = 0; span <= 40; span++) {
		unsigned labels = 0;
		s = tics(2, 2ull << span);
		for (const char *c = s; (c = strchr(c, 'B')) != NULL; c++)
			labels++;
		assert_in_range(labels, 1, 9);
		free(s);
	}
}

static void same_as_golden(void (*text)(struct fb_strbuf *, const struct rep_figure *),
	const char *id, const char *path)
{
	struct rep_figures f;
	struct fb_strbuf b = {0};
	json_t *doc = small();
	build(doc, &f);
	text(&b, find(&f, id));
	char *got = fb_strbuf_take(&b), *want = slurp(path);
	assert_string_equal(got, want);
	free(got);
	free(want);
	rep_figures_free(&f);
	json_decref(doc);
}

static void golden_files(void **state)
{
	same_as_golden(rep_dat_text, "verbs-latency-latency-send",
		FB_TESTDATA("reports", "latency-send.dat"));
	same_as_golden(
		rep_dat_text, "verbs-bandwidth-bandwidth", FB_TESTDATA("reports", "bandwidth.dat"));
	same_as_golden(
		rep_gp_text, "verbs-bandwidth-bandwidth", FB_TESTDATA("reports", "bandwidth.gp"));
}

/* The tail's curve falls, and ends while at least 10 samples are left above it. */
static void tail_ends_with_its_samples(void **state)
{
	struct rep_figures f;
	struct fb_strbuf b = {0};
	json_t *doc = small();
	build(doc, &f);
	struct rep_figure *t = find(&f, "verbs-latency-latency-tail");
	assert_int_equal(t->at_size, 2);
	rep_dat_text(&b, t);
	char *s = fb_strbuf_take(&b), *save = s, *line;
	double time, share, last = 2;
	unsigned rows = 0;
	while ((line = strsep(&s, "\n")) != NULL) {
		if (line[0] == '#') {
			last = 2;
			continue;
		}
		if (sscanf(line, "%lf\t%lf", &time, &share) != 2)
			continue;
		assert_true(share < last && share >= 10.0 / 2000);
		last = share;
		rows++;
	}
	assert_true(rows > 10);
	free(save);
	rep_figures_free(&f);
	json_decref(doc);
}

/* ---- hostile texts --------------------------------------------------------------------------- */

static void poison(json_t *doc)
{
	json_t *results = json_object_get(doc, "results"), *r;
	size_t i;
	json_array_foreach (results, i, r) {
		json_t *params = json_object_get(r, "params");
		json_object_set_new(r, "definition", json_string(HOSTILE));
		json_object_set_new(params, "op", json_string(HOSTILE));
		json_object_set_new(params, "wait", json_string(i % 2 ? HOSTILE : "poll"));
		json_object_set_new(
			json_object_get(r, "validity"), "reasons", json_pack("[s]", HOSTILE));
	}
	json_t *host = json_array_get(json_object_get(json_object_get(doc, "system"), "hosts"), 0);
	json_object_set_new(host, "name", json_string(HOSTILE));
	json_object_set_new(host, "os", json_string(HOSTILE));
	json_object_set_new(host, "env", json_pack("{s:s}", HOSTILE, HOSTILE));
	json_object_set_new(json_object_get(doc, "plan"), "title", json_string(HOSTILE));
	json_object_set_new(json_object_get(doc, "verdict"), "scope", json_string(HOSTILE));
	json_object_set_new(json_object_get(doc, "verdict"), "state", json_string(HOSTILE));
	json_object_set_new(doc, "warnings", json_pack("[s]", HOSTILE));
	json_object_set_new(json_object_get(doc, "run"), "argv", json_pack("[s]", HOSTILE));
	json_t *e = json_array_get(json_object_get(doc, "errors"), 0);
	json_object_set_new(e, "remedy", json_string(HOSTILE));
	json_t *c = json_array_get(json_object_get(doc, "checks"), 0);
	json_object_set_new(c, "observed", json_string(HOSTILE));
}

/* Outside single quotes a script holds no back-tick and not the word that would be run. */
static void no_escape_from_quotes(const char *gp)
{
	bool quoted = false;
	/* The first line is a comment with the figure's id: letters, digits and '-'. */
	for (const char *c = strchr(gp, '\n'); *c; c++) {
		if (*c == '\'')
			quoted = !quoted;
		assert_false(quoted && *c == '\n');
		assert_false(!quoted && *c == '`');
		assert_false(!quoted && strncmp(c, "system", 6) == 0);
		assert_false(!quoted && strncmp(c, "touch", 5) == 0);
	}
	assert_false(quoted);
}

static void hostile_labels_stay_text(void **state)
{
	struct rep_figures f;
	char dir[] = "/tmp/fabricbench-report-XXXXXX", path[4200];
	struct fb_err e = {0};
	json_t *doc = small();
	assert_non_null(mkdtemp(dir));
	poison(doc);
	build(doc, &f);
	assert_int_equal(f.n, 4);
	for (size_t i = 0; i < f.n; i++) {
		struct fb_strbuf b = {0};
		assert_int_equal(
			strspn(f.v[i].id,
				"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"),
			strlen(f.v[i].id));
		rep_gp_text(&b, &f.v[i]);
		char *gp = fb_strbuf_take(&b);
		no_escape_from_quotes(gp);
		free(gp);
	}
	if (fb_find_program("gnuplot", path, sizeof(path)) == 0)
		for (size_t i = 0; i < f.n; i++) {
			if (rep_plot_data(&f.v[i], dir, &e) != 0 ||
				rep_plot_draw(&f.v[i], dir, &e) != 0)
				fail_msg("%s", e.msg);
			snprintf(path, sizeof(path), "%s/owned", dir);
			assert_int_not_equal(access(path, F_OK), 0);
			for (int k = 0; k < 4; k++) {
				static const char *const ext[] = {"dat", "csv", "gp", "svg"};
				snprintf(path, sizeof(path), "%s/%s.%s", dir, f.v[i].id, ext[k]);
				assert_int_equal(unlink(path), 0);
			}
		}
	assert_int_equal(rmdir(dir), 0);
	rep_figures_free(&f);
	json_decref(doc);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void page_has_its_parts(void **state)
{
	static const char *const parts[] = {"<h2>Topology</h2>", "<h2>RDMA</h2>",
		"<h2>Collectives</h2>", "<h2>System</h2>", "<h2>Parts</h2>", "<h2>Method</h2>",
		"badge open\">INCOMPLETE", "For tests of the report only.", "rank 1 never came",
		"Remedy: see parts/03-broadcast-1.log", "node_01", "half of the round trip",
		"idle, closed loop", "emulated guests with Soft-RoCE", "3 packets were sent again",
		"cpupower frequency-set", "one read costs 19.0 ns", "2,000</td>", "suspect",
		"400 Gb/s line rate times header efficiency"};
	struct rep_figures f;
	json_t *doc = small();
	build(doc, &f);
	char *page = page_of(doc, &f, "gnuplot is not installed");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(page, parts[i]))
			fail_msg("the page lacks \"%s\"", parts[i]);
	well_formed(page);
	free(page);
	rep_figures_free(&f);
	json_decref(doc);
}

/* What asks for something comes first, the worst of it before the rest; what passed is folded. */
static void checks_by_what_they_ask(void **state)
{
	static const char *const order[] = {"<h2>Checks</h2>", "<td>R4", ">fail<", "PFC off",
		"expected: PFC on 3 (a profile)", "read: /sys/x", "mend it", "<td>R3", ">warn<",
		"<td>R2", ">info<", "<details><summary>1 passed, 1 skipped</summary>", "<td>R1",
		">pass<", "<td>R0", ">skip<", "no such device", "</details>"};
	json_t *doc = json_pack("{s:[{s:s,s:s,s:s},{s:s,s:s},{s:s,s:s},{s:s,s:s},"
				"{s:s,s:s,s:s,s:{s:s,s:s},s:s,s:s}]}",
		"checks", "id", "R0", "state", "skip", "reason", "no such device", "id", "R1",
		"state", "pass", "id", "R2", "state", "info", "id", "R3", "state", "warn", "id",
		"R4", "state", "fail", "observed", "PFC off", "expected", "value", "PFC on 3",
		"source", "a profile", "read", "/sys/x", "remedy", "mend it");
	struct fb_strbuf b = {0};
	assert_non_null(doc);
	rep_html_checks(&b, doc);
	const char *at = b.s;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strstr(at, order[i]);
		if (!at)
			fail_msg("\"%s\" is not there, or not in its place", order[i]);
	}
	fb_strbuf_free(&b);
	json_decref(doc);
}

static void page_of_hostile_document(void **state)
{
	struct rep_figures f;
	json_t *doc = small();
	poison(doc);
	build(doc, &f);
	char *page = page_of(doc, &f, HOSTILE);
	well_formed(page);
	assert_non_null(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
	free(page);
	rep_figures_free(&f);
	json_decref(doc);
}

static int count(const char *text, const char *word)
{
	int n = 0;
	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void headline_is_hardware_only(void **state)
{
	struct rep_figures f;
	json_t *doc = small(), *results = json_object_get(doc, "results"), *r;
	size_t i;
	build(doc, &f);
	char *page = page_of(doc, &f, NULL);
	/* The one hardware figure: bandwidth at its largest size, the worse of two launches. */
	assert_non_null(strstr(page, "<div class=\"value\">374<span"));
	assert_int_equal(count(page, "not measured on hardware"), 3);
	free(page);
	rep_figures_free(&f);
	json_array_foreach (results, i, r)
		json_object_set_new(json_object_get(r, "params"), "loopback", json_true());
	build(doc, &f);
	page = page_of(doc, &f, NULL);
	assert_int_equal(count(page, "not measured on hardware"), 4);
	assert_non_null(strstr(page, "over loopback"));
	free(page);
	rep_figures_free(&f);
	json_decref(doc);
}

static void document_without_results(void **state)
{
	struct rep_figures f;
	json_t *doc = small();
	json_object_set_new(doc, "results", json_array());
	json_object_del(doc, "plan");
	json_object_del(doc, "verdict");
	build(doc, &f);
	assert_int_equal(f.n, 0);
	char *page = page_of(doc, &f, NULL);
	well_formed(page);
	assert_non_null(strstr(page, "No RDMA result in this document"));
	assert_non_null(strstr(page, "No collective in this document"));
	free(page);
	json_decref(doc);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report(const char *a, const char *b, const char *c, const char *d)
{
	const char *argv[] = {"report", a, b, c, d, NULL};
	int argc = 1;
	while (argv[argc])
		argc++;
	return report_cmd.run(argc, (char **)argv);
}

static void unreadable_input(void **state)
{
	char dir[] = "/tmp/fabricbench-report-XXXXXX", path[64];
	struct fb_err e = {0};
	assert_non_null(mkdtemp(dir));
	assert_int_equal(report("/nonexistent/run", NULL, NULL, NULL), FB_EXIT_USAGE);
	assert_int_equal(report(dir, NULL, NULL, NULL), FB_EXIT_USAGE);
	assert_int_equal(report(NULL, NULL, NULL, NULL), FB_EXIT_USAGE);
	snprintf(path, sizeof(path), "%s/run.json", dir);
	assert_int_equal(fb_write_file_atomic(path, "{\"schema\":1}", 12, &e), 0);
	assert_int_equal(report(dir, NULL, NULL, NULL), FB_EXIT_USAGE);
	unlink(path);
	rmdir(dir);
}

static void without_gnuplot(void **state)
{
	char dir[] = "/tmp/fabricbench-report-XXXXXX", html[64], plots[64], path[160];
	const char *had = getenv("PATH");
	char *keep = had ? strdup(had) : NULL;
	assert_non_null(mkdtemp(dir));
	snprintf(html, sizeof(html), "%s/page.html", dir);
	snprintf(plots, sizeof(plots), "%s/page.plots", dir);
	setenv("PATH", "/nonexistent", 1);
	int status = report(SMALL, "-o", html, NULL);
	if (keep)
		setenv("PATH", keep, 1);
	free(keep);
	assert_int_equal(status, FB_EXIT_OK);
	char *page = slurp(html);
	assert_non_null(strstr(page, "gnuplot is not installed"));
	assert_null(strstr(page, "<img"));
	free(page);
	static const char *const ids[] = {"coll-busbw", "verbs-latency-latency-send",
		"verbs-latency-latency-read", "verbs-latency-latency-tail",
		"verbs-bandwidth-bandwidth"};
	for (size_t i = 0; i < 5; i++) {
		static const char *const ext[] = {"dat", "csv", "gp"};
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof(path), "%s/%s.%s", plots, ids[i], ext[k]);
			assert_int_equal(unlink(path), 0);
		}
	}
	snprintf(path, sizeof(path), "%s/results.csv", plots);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/checks.csv", plots);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(plots), 0);
	assert_int_equal(unlink(html), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_a_document),
		cmocka_unit_test(factors_that_make_series),
		cmocka_unit_test(rows_as_drawn),
		cmocka_unit_test(numbers),
		cmocka_unit_test(size_tics),
		cmocka_unit_test(golden_files),
		cmocka_unit_test(tail_ends_with_its_samples),
		cmocka_unit_test(hostile_labels_stay_text),
		cmocka_unit_test(page_has_its_parts),
		cmocka_unit_test(checks_by_what_they_ask),
		cmocka_unit_test(page_of_hostile_document),
		cmocka_unit_test(headline_is_hardware_only),
		cmocka_unit_test(document_without_results),
		cmocka_unit_test(unreadable_input),
		cmocka_unit_test(without_gnuplot),
	};
	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
