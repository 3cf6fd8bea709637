// SPDX-License-Identifier: Apache-2.0
/* Pictures for slides: the four figures, the choice of charts and their places, the script of the
 * overview, and the command with gnuplot, without it, and with one that writes no PNG. */
#include "reports/png.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/result.h"
#include "bench/core/test.h"
#include "reports/headline.h"
#include "reports/report.h"

#define SMALL FB_TESTDATA("reports", "small.json")
#define HOSTILE \
	"'; system \"touch owned\" `touch owned`\n!touch owned\nunset multiplot\n<b>\"&\\x1b%s%n"

static json_t *small(void)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(SMALL, &e);
	if (!doc)
		fail_msg("%s", e.msg);
	return doc;
}

/* ---- headline -------------------------------------------------------------------------------- */

static void four_figures(void **state)
{
	struct rep_headline h[REP_HEADLINES];
	struct fb_strbuf b = {0};
	json_t *doc = small();
	assert_int_equal(rep_headlines(doc, h), 0);
	/* Two launches at 1 MiB on hardware; the rest is the lab's and the CPU's, and fills
	 * nothing. */
	assert_string_equal(h[0].unit, "Gb/s");
	assert_int_equal(h[0].n, 2);
	assert_true(fabs(h[0].worst - 374.032) < 0.01);
	assert_true(fabs(h[0].median - 374.777) < 0.01);
	assert_true(fabs(h[0].bound - 392.149) < 0.01);
	for (size_t i = 1; i < REP_HEADLINES; i++) {
		assert_int_equal(h[i].n, 0);
		assert_true(isnan(h[i].worst) && isnan(h[i].median));
	}
	rep_scope_line(&b, doc);
	assert_non_null(strstr(b.s, "1 host, "));
	assert_non_null(strstr(b.s, "judged"));
	assert_int_equal(b.s[b.len - 1], '.');
	fb_strbuf_free(&b);
	assert_true(rep_has_place(doc, &rep_places[0]));
	assert_true(rep_has_place(doc, &rep_places[1]));
	assert_false(rep_has_place(doc, &rep_places[4]));
	json_decref(doc);
}

/* ---- panels ---------------------------------------------------------------------------------- */

static struct rep_figure figure_of(const char *where, int width, int height)
{
	struct rep_figure f = {.width = width, .height = height};
	snprintf(f.where, sizeof(f.where), "%s", where);
	return f;
}

static void apart_and_inside(const struct rep_panel *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(p[i].x >= 48 && p[i].x + p[i].w <= 1920 - 48);
		assert_true(p[i].y >= 372 && p[i].y + p[i].h <= 1080 - 40);
		assert_true(p[i].w > 200 && p[i].h > 100);
		/* Letters and widths alike; a little flatter or taller than the chart itself. */
		assert_true(fabs(p[i].w - p[i].f->width * p[i].scale) < 1.01);
		assert_true(p[i].h > p[i].f->height * p[i].scale * 0.84);
		assert_true(p[i].h < p[i].f->height * p[i].scale * 1.36);
		if (i > 0)
			assert_true(p[i - 1].x + p[i - 1].w < p[i].x);
	}
}

static void which_charts(void **state)
{
	struct rep_figure cpu = figure_of("cpu", 640, 430), real = figure_of("hardware", 640, 430),
			  loop = figure_of("hardware", 640, 430), tall = figure_of("cpu", 720, 780),
			  wide = figure_of("cpu", 800, 120);
	struct rep_panel p[REP_PANELS];
	loop.loopback = true;
	const struct rep_chart v[] = {{&tall, REP_CHART_LOSS}, {&cpu, REP_CHART_TAIL},
		{&cpu, REP_CHART_LATENCY}, {&loop, REP_CHART_LATENCY}, {&real, REP_CHART_LATENCY},
		{&cpu, REP_CHART_BUSBW}, {&wide, REP_CHART_STEP}};
	/* One of each kind, the most telling first, hardware before the rest. */
	assert_int_equal(rep_panels(v, 7, 0, p), 3);
	assert_ptr_equal(p[0].f, &real);
	assert_ptr_equal(p[1].f, v[5].f);
	assert_ptr_equal(p[2].f, &wide);
	apart_and_inside(p, 3);
	/* Of one kind several, where there are no others. */
	assert_int_equal(rep_panels(v + 2, 3, 5, p), 3);
	assert_ptr_equal(p[0].f, &real);
	assert_ptr_equal(p[1].f, &cpu);
	assert_ptr_equal(p[2].f, &loop);
	apart_and_inside(p, 3);
	assert_int_equal(rep_panels(v, 2, 3, p), 2);
	assert_ptr_equal(p[0].f, &tall);
	apart_and_inside(p, 2);
	/* Alone it is no larger than legible. */
	assert_int_equal(rep_panels(v + 5, 1, 0, p), 1);
	assert_int_equal(p[0].w, (int)(640 * 1.45));
	apart_and_inside(p, 1);
	assert_int_equal(rep_panels(v, 0, 0, p), 0);
}

/* ---- the script ------------------------------------------------------------------------------ */

static char *script_of(const json_t *doc)
{
	struct fb_strbuf b = {0};
	struct rep_figure f = figure_of("hardware", 640, 430);
	struct rep_panel p[REP_PANELS];
	struct rep_since since = {.dir = ""};
	const struct rep_chart v[] = {{&f, REP_CHART_LATENCY}};
	snprintf(f.id, sizeof(f.id), "x");
	rep_overview_gp(&b, doc, &since, p, rep_panels(v, 1, 1, p));
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	return s;
}

/* Every quote that opens on a line closes on it; outside of quotes nothing of the document. */
static void quotes_hold(const char *s)
{
	bool in = false;
	for (; *s; s++) {
		if (*s == '\'')
			in = !in;
		if (*s == '\n')
			assert_false(in);
		if (!in && (*s == '`' || *s == '!'))
			fail_msg("outside of quotes: %.40s", s);
	}
	assert_false(in);
}

static void the_script(void **state)
{
	json_t *doc = small();
	char *s = script_of(doc);
	static const char *const parts[] = {"set label 'A small run'", "set label 'INCOMPLETE'",
		"set label 'HARDWARE'", "set label 'LAB'", "set label 'CPU'",
		"set label 'For tests of the report only.'", "set label '374 Gb/s worst'",
		"'median 375, bound 392, n 2'", "'not measured on hardware'",
		"set label 'broadcast, launch 1: missing: rank 1 never came'",
		"pngcairo size 1920,1080", "plot 'report_panel_1.png' binary filetype=png"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(s, parts[i]))
			fail_msg("no %s", parts[i]);
	assert_null(strstr(s, "'PREDICTED'"));
	quotes_hold(s);
	free(s);
	json_decref(doc);
}

/* Everything that is a string becomes hostile, and long. */
static void spoil(json_t *v)
{
	const char *key;
	json_t *x;
	size_t i;
	void *tmp;
	json_object_foreach_safe(v, tmp, key, x)
	{
		if (json_is_string(x) && strcmp(key, "schema") != 0 && strcmp(key, "where") != 0 &&
			strcmp(key, "unit") != 0 && strcmp(key, "metric") != 0)
			json_object_set_new(v, key,
				json_sprintf("%s%s", json_string_value(x), HOSTILE HOSTILE));
		else
			spoil(x);
	}
	json_array_foreach (v, i, x)
		spoil(x);
}

static void hostile_script(void **state)
{
	json_t *doc = small();
	spoil(doc);
	char *s = script_of(doc), *save = s, *line;
	quotes_hold(s);
	while ((line = strsep(&s, "\n")) != NULL)
		assert_true(strlen(line) < 900); /* cut to the picture's width */
	free(save);
	json_decref(doc);
	doc = json_object(); /* and one that says nothing */
	s = script_of(doc);
	quotes_hold(s);
	free(s);
	json_decref(doc);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Its standard output goes into `out`. */
static int report(const char *const *args, char *out, size_t len)
{
	const char *argv[12] = {"report"};
	int argc = 1;
	char path[] = "/tmp/fabricbench-out-XXXXXX";
	for (; args[argc - 1]; argc++)
		argv[argc] = args[argc - 1];
	int fd = mkstemp(path), keep = dup(STDOUT_FILENO);
	assert_true(fd >= 0 && keep >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	int status = report_cmd.run(argc, (char **)argv);
	fflush(stdout);
	dup2(keep, STDOUT_FILENO);
	close(keep);
	ssize_t n = pread(fd, out, len - 1, 0);
	out[n > 0 ? n : 0] = '\0';
	close(fd);
	unlink(path);
	return status;
}

/* Width and height as the file's own header says; fails for what is no PNG. */
static void size_of(const char *path, unsigned *w, unsigned *h)
{
	unsigned char b[24];
	FILE *f = fopen(path, "rb");
	if (!f || fread(b, 1, sizeof(b), f) != sizeof(b))
		fail_msg("no picture: %s", path);
	fclose(f);
	assert_memory_equal(b, "\x89PNG\r\n\x1a\n", 8);
	*w = (unsigned)b[16] << 24 | (unsigned)b[17] << 16 | (unsigned)b[18] << 8 | b[19];
	*h = (unsigned)b[20] << 24 | (unsigned)b[21] << 16 | (unsigned)b[22] << 8 | b[23];
}

static size_t clear(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *x;
	char path[600];
	size_t n = 0;
	if (!d)
		return 0;
	while ((x = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, x->d_name);
		if (x->d_name[0] == '.')
			continue;
		n++;
		if (unlink(path) != 0)
			n += clear(path);
	}
	closedir(d);
	assert_int_equal(rmdir(dir), 0);
	return n;
}

static void with_gnuplot(void **state)
{
	static const char *const ids[] = {"coll-busbw", "verbs-latency-latency-send",
		"verbs-latency-latency-read", "verbs-latency-latency-tail",
		"verbs-bandwidth-bandwidth"};
	char dir[] = "/tmp/fabricbench-png-XXXXXX", png[80], path[200], out[4096], want[240];
	struct fb_err e = {0};
	unsigned w, h;
	if (rep_png_able(&e) != 0)
		fb_test_skip("report-png", "%s", e.msg);
	assert_non_null(mkdtemp(dir));
	json_t *doc = small();
	for (int round = 0; round < 2; round++) {
		snprintf(path, sizeof(path), "%s/in.json", dir);
		assert_int_equal(json_dump_file(doc, path, 0), 0);
		snprintf(png, sizeof(png), "%s/it's one.png", dir);
		const char *const args[] = {path, "--format", "png", "-o", png, NULL};
		assert_int_equal(report(args, out, sizeof(out)), FB_EXIT_OK);
		size_of(png, &w, &h);
		assert_int_equal(w, 1920);
		assert_int_equal(h, 1080);
		snprintf(want, sizeof(want), "%s\n", png); /* the overview's path comes first */
		assert_memory_equal(out, want, strlen(want));
		for (size_t i = 0; i < 5; i++) {
			snprintf(path, sizeof(path), "%s/it's one.plots/%s.png", dir, ids[i]);
			size_of(path, &w, &h);
			assert_int_equal(w, 1280);
			assert_int_equal(h, 860);
			snprintf(want, sizeof(want), "\n%s\n", path);
			assert_non_null(strstr(out, want));
			snprintf(path, sizeof(path), "%s/it's one.plots/%s.svg", dir, ids[i]);
			assert_int_equal(access(path, R_OK), 0);
		}
		snprintf(path, sizeof(path), "%s/it's one.plots/owned", dir);
		assert_int_not_equal(access(path, F_OK), 0);
		json_t *plan = json_object_get(doc, "plan");
		json_object_set_new(plan, "title", json_string(HOSTILE HOSTILE));
		json_object_set_new(json_object_get(doc, "verdict"), "scope", json_string(HOSTILE));
		json_object_set_new(
			json_object_get(doc, "verdict"), "reasons", json_pack("[s]", HOSTILE));
	}
	/* The default places, and the charts alone. */
	snprintf(path, sizeof(path), "%s/in.json", dir);
	const char *const alone[] = {path, "--format", "png", "--plots-only", NULL};
	assert_int_equal(report(alone, out, sizeof(out)), FB_EXIT_OK);
	snprintf(want, sizeof(want), "%s/in.plots/coll-busbw.png\n", dir);
	assert_non_null(strstr(out, want));
	snprintf(want, sizeof(want), "%s/in.png", dir);
	assert_int_not_equal(access(want, F_OK), 0);
	json_decref(doc);
	clear(dir);
}

static void with_path(const char *to, const char *dir, int status)
{
	const char *had = getenv("PATH");
	char *keep = had ? strdup(had) : NULL, png[80], out[256];
	snprintf(png, sizeof(png), "%s/x.png", dir);
	const char *const args[] = {SMALL, "--format", "png", "-o", png, NULL};
	setenv("PATH", to, 1);
	assert_int_equal(report(args, out, sizeof(out)), status);
	if (keep)
		setenv("PATH", keep, 1);
	free(keep);
	assert_string_equal(out, "");
}

static void cannot_draw(void **state)
{
	char dir[] = "/tmp/fabricbench-png-XXXXXX", fake[80], path[100], out[256];
	struct fb_err e = {0};
	assert_non_null(mkdtemp(dir));
	with_path("/nonexistent", dir, FB_EXIT_SKIP);
	assert_int_equal(rmdir(dir), 0); /* nothing was written */
	snprintf(dir, sizeof(dir), "/tmp/fabricbench-png-XXXXXX");
	assert_non_null(mkdtemp(dir));
	/* A gnuplot without such a terminal; and one that can, but fails at every chart. */
	static const char *const bodies[] = {"#!/bin/sh\nexit 1\n",
		"#!/bin/sh\ncase $2 in -e) case $3 in if*) exit 0 ;; esac ;; esac\nexit 1\n"};
	static const int statuses[] = {FB_EXIT_SKIP, FB_EXIT_UNMEASURED};
	for (int i = 0; i < 2; i++) {
		snprintf(fake, sizeof(fake), "%s/bin", dir);
		mkdir(fake, 0700);
		snprintf(path, sizeof(path), "%s/gnuplot", fake);
		assert_int_equal(fb_write_file_atomic(path, bodies[i], strlen(bodies[i]), &e), 0);
		assert_int_equal(chmod(path, 0700), 0);
		with_path(fake, dir, statuses[i]);
	}
	clear(dir);
	const char *const to_stdout[] = {SMALL, "--format", "png", "-o", "-", NULL};
	assert_int_equal(report(to_stdout, out, sizeof(out)), FB_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_figures),
		cmocka_unit_test(which_charts),
		cmocka_unit_test(the_script),
		cmocka_unit_test(hostile_script),
		cmocka_unit_test(with_gnuplot),
		cmocka_unit_test(cannot_draw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
