// SPDX-License-Identifier: Apache-2.0
/*
 * Files of a figure: ID.dat, ID.gp, and ID.svg by gnuplot, started by argv with a deadline and with
 * no start-up file of the user's. A machine without gnuplot still gets the data and the script.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/proc.h"
#include "reports/report_priv.h"

#define GNUPLOT_DEADLINE_NS 60000000000ull

int rep_write_part(
	const char *dir, const char *id, const char *ext, struct fb_strbuf *b, struct fb_err *e)
{
	char path[4096];
	size_t len = b->len;
	char *s = fb_strbuf_take(b);
	int rc;
	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to write %s.%s", id, ext);
	if (snprintf(path, sizeof(path), "%s/%s.%s", dir, id, ext) < (int)sizeof(path))
		rc = fb_write_file_atomic(path, s, len, e);
	else
		rc = fb_fail_usage(e, "%s: the path is too long", dir);
	free(s);
	return rc;
}

int rep_plot_data(const struct rep_figure *f, const char *dir, struct fb_err *e)
{
	struct fb_strbuf dat = {0}, csv = {0}, gp = {0};
	rep_dat_text(&dat, f);
	int rc = rep_write_part(dir, f->id, "dat", &dat, e);
	if (rc != 0)
		return rc;
	rep_figure_csv(&csv, f);
	rc = rep_write_part(dir, f->id, "csv", &csv, e);
	if (rc != 0)
		return rc;
	rep_gp_text(&gp, f);
	return rep_write_part(dir, f->id, "gp", &gp, e);
}

/* gnuplot says what is wrong last, after warnings and the line at fault. */
static const char *last_line(char *text)
{
	if (!text || !*text)
		return "it said nothing";
	for (size_t n = strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '); n--)
		text[n - 1] = '\0';
	const char *line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

int rep_gnuplot(const char *dir, const char *settings, const char *script, struct fb_err *e)
{
	static const char *const env[] = {"LC_ALL=C", NULL};
	char program[4096];
	const char *argv[6] = {program, "-d"};
	size_t n = 2;
	struct fb_proc_opts o = {.env = env,
		.cwd = dir,
		.capture = 4096,
		.deadline_ns = fb_deadline_in(GNUPLOT_DEADLINE_NS)};
	struct fb_proc_result r;
	if (fb_find_program("gnuplot", program, sizeof(program)) != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOENT,
			"gnuplot is not installed, so there are no pictures; their data and scripts are in %s",
			dir);
		fb_hint(e,
			"apt-get install gnuplot-nox fonts-dejavu-core, then make the report again");
		return -ENOENT;
	}
	if (settings) {
		argv[n++] = "-e";
		argv[n++] = settings;
	}
	argv[n++] = script;
	int rc = fb_proc_run(argv, &o, &r, e);
	if (rc == 0 && r.status != 0) {
		const char *why = last_line(r.err);
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"gnuplot ended with status %d on %s/%s: %s", r.status, dir,
			script ? script : "", why);
		fb_hint(e, "see it by: cd %s && gnuplot %s", dir, script ? script : "");
	}
	fb_proc_result_free(&r);
	return rc;
}

int rep_plot_draw(struct rep_figure *f, const char *dir, struct fb_err *e)
{
	char script[128], svg[4096];
	f->svg[0] = '\0';
	if (snprintf(svg, sizeof(svg), "%s/%s.svg", dir, f->id) >= (int)sizeof(svg))
		return fb_fail_usage(e, "%s: the path is too long", dir);
	/* A picture of an earlier run must not stand beside new data. */
	unlink(svg);
	snprintf(script, sizeof(script), "%s.gp", f->id);
	int rc = rep_gnuplot(dir, NULL, script, e);
	if (rc == 0)
		snprintf(f->svg, sizeof(f->svg), "%s", svg);
	return rc;
}

int rep_plot_all(struct rep_figures *all, const char *dir, char *why, size_t len, struct fb_err *e)
{
	int rc = 0;
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot make the folder %s: %s", dir,
			strerror(errno));
	size_t n = all->n < REP_MAX_PICTURES ? all->n : REP_MAX_PICTURES;
	if (n < all->n)
		fb_warn("%zu figures: the first %zu are drawn, and the page has the tables of all",
			all->n, n);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct fb_err one = {0};
		fb_progress("figure %zu of %zu: %s", i + 1, n, all->v[i].id);
		rc = rep_plot_data(&all->v[i], dir, e);
		if (rc != 0 || rep_plot_draw(&all->v[i], dir, &one) == 0)
			continue;
		fb_progress_end();
		if (!why[0]) /* once: the next would say the same */
			fb_log_err(&one);
		snprintf(why, len, "%s", one.msg);
	}
	fb_progress_end();
	return rc;
}
