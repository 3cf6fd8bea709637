// SPDX-License-Identifier: Apache-2.0
/* `report` with several runs: reads them, draws, writes the page or the text. See overlay.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/json.h"
#include "reports/overlay.h"
#include "reports/training.h"

struct paths {
	char page[4096], plots[4200];
};

/* How long is a path without this ending? */
static size_t without(const char *path, const char *ending)
{
	size_t n = strlen(path), k = strlen(ending);
	return n > k && strcmp(path + n - k, ending) == 0 ? n - k : n;
}

/* Beside the first run, and never over its own report. */
static int find_paths(const struct overlay_cfg *cfg, struct paths *p, struct fb_err *e)
{
	struct stat st;
	const char *first = cfg->path[0], *ext = cfg->markdown ? "md" : "html";
	int n;
	if (cfg->output)
		n = snprintf(p->page, sizeof(p->page), "%s", cfg->output);
	else if (stat(first, &st) == 0 && S_ISDIR(st.st_mode))
		n = snprintf(p->page, sizeof(p->page), "%s/overlay.%s", first, ext);
	else
		n = snprintf(p->page, sizeof(p->page), "%.*s.overlay.%s",
			(int)without(first, ".json"), first, ext);
	if (n >= (int)sizeof(p->page))
		return fb_fail_usage(e, "report %s: the path is too long", first);
	snprintf(p->plots, sizeof(p->plots), "%.*s.plots", (int)without(p->page, ".html"), p->page);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int write_page(const struct overlay *o, const struct rep_figures *figures,
	const struct rep_training *training, const struct paths *p, const char *why,
	struct fb_err *e)
{
	struct fb_strbuf b = {0};
	struct rep_page page = {.doc = o->joined,
		.figures = figures,
		.training = training,
		.data_name = "run.json",
		.plots_name = base_name(p->plots),
		.no_plots = why[0] ? why : NULL};
	overlay_html(&b, o, &page);
	return rep_write_page(&b, p->page, e);
}

static int make_html(const struct overlay *o, const struct overlay_cfg *cfg, const struct paths *p,
	struct fb_err *e)
{
	struct rep_figures figures = {0};
	struct rep_training training = {0};
	char why[768] = "";
	int rc = rep_figures_overlay(o->joined, o->n, &figures, e);
	if (rc == 0)
		rc = rep_plot_all(&figures, p->plots, why, sizeof(why), e);
	if (rc == 0)
		rc = rep_training_make(&training, o->joined, p->plots, why, sizeof(why), e);
	if (rc == 0)
		rc = overlay_csv(o, p->plots, e);
	if (rc == 0 && !cfg->plots_only)
		rc = write_page(o, &figures, &training, p, why, e);
	if (rc == 0)
		printf("%s\n", cfg->plots_only ? p->plots : p->page);
	rep_training_free(&training);
	rep_figures_free(&figures);
	return rc;
}

static int make_text(const struct overlay *o, const struct paths *p, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", p->page);
	int rc = overlay_markdown(o, f, e);
	if (fclose(f) != 0 && rc == 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", p->page);
	if (rc == 0 && strcmp(p->page, "-") != 0)
		rc = fb_write_file_atomic(p->page, text, len, e);
	else if (rc == 0 && (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0))
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO, "cannot write to the standard output");
	if (rc == 0 && strcmp(p->page, "-") != 0)
		printf("%s\n", p->page);
	free(text);
	return rc;
}

int overlay_report(const struct overlay_cfg *cfg, struct fb_err *e)
{
	struct overlay o;
	struct paths p;
	int rc = find_paths(cfg, &p, e);
	if (rc != 0)
		return rc;
	rc = overlay_load(&o, cfg->path, cfg->label, cfg->n, e);
	if (rc == 0)
		rc = cfg->markdown ? make_text(&o, &p, e) : make_html(&o, cfg, &p, e);
	overlay_free(&o);
	return rc;
}
