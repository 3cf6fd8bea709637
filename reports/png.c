// SPDX-License-Identifier: Apache-2.0
/* See png.h. */
#include "reports/png.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/log.h"

#define TWICE    "png = 2" /* times a chart's own size: sharp on a slide */
#define OVERVIEW "report_overview"
#define MAX_PNG  (64u << 20)

int rep_png_able(struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = rep_gnuplot(
		"/", "if (!strstrt(GPVAL_TERMINALS, 'png')) { exit status 1 }", NULL, &why);
	if (rc == 0)
		return 0;
	if (rc == -ENOENT)
		fb_fail(e, FB_EXIT_SKIP, ENOENT,
			"gnuplot is not installed, so no PNG can be drawn");
	else
		fb_fail(e, FB_EXIT_SKIP, ENOENT,
			"this gnuplot writes no PNG: it has neither pngcairo nor png");
	fb_hint(e, "apt-get install gnuplot-nox fonts-dejavu-core; without it --format html and md "
		   "give the page, and --plots-only the charts' data and scripts");
	return -ENOENT;
}

/* settings: gnuplot's, beside the name of the picture */
static int draw(const struct rep_figure *f, const char *settings, const char *dir, const char *name,
	struct fb_err *e)
{
	char all[256], script[128], path[4400];
	if (snprintf(path, sizeof(path), "%s/%s.png", dir, name) >= (int)sizeof(path))
		return fb_fail_usage(e, "%s: the path is too long", dir);
	unlink(path);
	snprintf(all, sizeof(all), "%s; out = '%s.png'", settings, name);
	snprintf(script, sizeof(script), "%s.gp", f->id);
	int rc = rep_gnuplot(dir, all, script, e);
	if (rc == 0 && access(path, R_OK) != 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO, "gnuplot left no %s", path);
	return rc;
}

int rep_png_charts(const struct rep_chart *v, size_t n, const char *dir, struct fb_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < n; i++) {
		struct fb_err one = {0};
		fb_progress("picture %zu of %zu: %s", i + 1, n, v[i].f->id);
		if (draw(v[i].f, TWICE, dir, v[i].f->id, &one) != 0 && rc == 0) {
			*e = one;
			rc = one.code;
		}
	}
	fb_progress_end();
	return rc;
}

static int write_script(const char *dir, struct fb_strbuf *b, struct fb_err *e)
{
	char path[4400];
	size_t len = b->len;
	char *s = fb_strbuf_take(b);
	snprintf(path, sizeof(path), "%s/" OVERVIEW ".gp", dir);
	int rc = s ? fb_write_file_atomic(path, s, len, e)
		   : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to write %s", path);
	free(s);
	return rc;
}

/* From the folder of the plots to where it is wanted, which may be another file system. */
static int deliver(const char *dir, const char *dest, struct fb_err *e)
{
	char path[4400], *bytes = NULL;
	size_t len = 0;
	snprintf(path, sizeof(path), "%s/" OVERVIEW ".png", dir);
	int rc = fb_read_file(path, MAX_PNG, &bytes, &len, e);
	if (rc == 0)
		rc = fb_write_file_atomic(dest, bytes, len, e);
	free(bytes);
	unlink(path);
	return rc;
}

int rep_png_overview(const json_t *doc, const struct rep_since *since, const struct rep_chart *v,
	size_t n, const char *dir, const char *dest, struct fb_err *e)
{
	struct rep_finding found[REP_FINDINGS];
	struct rep_panel p[REP_PANELS];
	struct fb_strbuf b = {0};
	size_t all, findings = rep_findings(doc, found, &all);
	size_t panels = rep_panels(v, n, findings, p);
	int rc = 0;
	for (size_t i = 0; i < panels && rc == 0; i++) {
		char name[40], settings[80];
		snprintf(name, sizeof(name), "report_panel_%zu", i + 1);
		snprintf(settings, sizeof(settings), "png = %.6g; wide = %d; high = %d", p[i].scale,
			p[i].w, p[i].h);
		rc = draw(p[i].f, settings, dir, name, e);
	}
	rep_overview_gp(&b, doc, since, p, panels);
	if (rc == 0)
		rc = write_script(dir, &b, e);
	if (rc == 0)
		rc = rep_gnuplot(dir, NULL, OVERVIEW ".gp", e);
	fb_strbuf_free(&b);
	return rc == 0 ? deliver(dir, dest, e) : rc;
}
