// SPDX-License-Identifier: Apache-2.0
/* See charts.h. */
#include "reports/charts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "reports/csv.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* The page's tables that are no figure's. */
static int write_csv(const char *dir, const json_t *doc, const char *name,
	void (*text)(struct fb_strbuf *, const json_t *), struct fb_err *e)
{
	char path[4200];
	struct fb_strbuf b = {0};
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	text(&b, doc);
	int rc = b.failed ? fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to write %s", path)
			  : fb_write_file_atomic(path, b.s ? b.s : "", b.len, e);
	fb_strbuf_free(&b);
	return rc;
}

int rep_charts_make(struct rep_charts *c, const json_t *doc, const char *dir, struct fb_err *e)
{
	memset(c, 0, sizeof(*c));
	int rc = rep_figures_build(doc, &c->figures, e);
	if (rc == 0)
		rc = rep_plot_all(&c->figures, dir, c->why, sizeof(c->why), e);
	if (rc == 0)
		rc = write_csv(dir, doc, "results.csv", rep_csv_results, e);
	if (rc == 0)
		rc = write_csv(dir, doc, "checks.csv", rep_csv_checks, e);
	if (rc == 0)
		rc = rep_maps_make(&c->maps, doc, dir, c->why, sizeof(c->why), e);
	if (rc == 0)
		rc = rep_training_make(&c->training, doc, dir, c->why, sizeof(c->why), e);
	if (rc == 0)
		rc = rep_incasts_make(&c->incasts, doc, dir, c->why, sizeof(c->why), e);
	if (rc == 0)
		rc = rep_losses_make(&c->losses, doc, dir, c->why, sizeof(c->why), e);
	return rc;
}

void rep_charts_free(struct rep_charts *c)
{
	rep_training_free(&c->training);
	rep_losses_free(&c->losses);
	rep_incasts_free(&c->incasts);
	rep_maps_free(&c->maps);
	rep_figures_free(&c->figures);
}

/* ---- listing --------------------------------------------------------------------------------- */

static enum rep_chart_kind kind_of(const struct rep_figure *f)
{
	bool rdma = strcmp(f->section, "RDMA") == 0;
	if (f->kind == REP_TAIL)
		return REP_CHART_TAIL;
	if (f->kind == REP_BAND)
		return rdma ? REP_CHART_LATENCY : REP_CHART_OTHER;
	if (strcmp(f->metric, "busbw") == 0)
		return REP_CHART_BUSBW;
	return rdma ? REP_CHART_BANDWIDTH : REP_CHART_OTHER;
}

static enum rep_chart_kind kind_of_training(const struct rep_figure *f)
{
	if (strcmp(f->id, "training-split") == 0)
		return REP_CHART_STEP;
	return strcmp(f->id, "training-mfu") == 0 ? REP_CHART_MFU : REP_CHART_OTHER;
}

static void add(
	struct rep_chart *v, size_t *n, const struct rep_figure *f, enum rep_chart_kind kind)
{
	if (f->svg[0])
		v[(*n)++] = (struct rep_chart){f, kind};
}

struct rep_chart *rep_charts_list(const struct rep_charts *c, size_t *n)
{
	size_t most = c->figures.n + c->maps.n + c->incasts.n + c->losses.n + c->training.n + 1;
	struct rep_chart *v = calloc(most, sizeof(*v));
	*n = 0;
	if (!v)
		return NULL;
	for (size_t i = 0; i < c->maps.n; i++)
		add(v, n, &c->maps.v[i].f, REP_CHART_PAIRS);
	for (size_t i = 0; i < c->incasts.n; i++)
		add(v, n, &c->incasts.v[i].f, REP_CHART_INCAST);
	for (size_t i = 0; i < c->losses.n; i++)
		add(v, n, &c->losses.v[i].f, REP_CHART_LOSS);
	add(v, n, &c->losses.train, REP_CHART_LOSS);
	for (size_t i = 0; i < c->training.n; i++)
		add(v, n, &c->training.v[i], kind_of_training(&c->training.v[i]));
	for (size_t i = 0; i < c->figures.n; i++)
		add(v, n, &c->figures.v[i], kind_of(&c->figures.v[i]));
	return v;
}
