// SPDX-License-Identifier: Apache-2.0
/*
 * Pictures of training: time by kind and memory by kind as stacked bars, MFU as bars, loss as
 * curves, and the tasks of a step in their queues. Each is a file of data blocks and a script, as
 * all figures are.
 */
#include "reports/training.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"

#define MAX_FIGURES   12
#define MAX_TIMELINES 4
#define MAX_TASKS     4000

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* `plot` is the height without the key, which stands below in so many columns. */
static void gp_head(
	struct fb_strbuf *b, struct rep_figure *f, int plot, size_t entries, size_t columns)
{
	int rows = (int)((entries + columns - 1) / columns), height = plot + 18 * rows;
	fb_strbuf_printf(b, "# Redraw with: gnuplot %s.gp\nset encoding utf8\n", f->id);
	f->width = 800;
	f->height = height;
	rep_gp_terminal(b, f);
	fb_strbuf_add(b, "set datafile separator \"\\t\" missing 'NaN'\nset title ");
	rep_gp_quoted(b, f->title);
	fb_strbuf_add(b, "\nset border 3 lc rgb '#8a949e'\nset tics out nomirror textcolor rgb "
			 "'#333333'\nset grid xtics lc rgb '#e3e7ea' lt 1\n");
	fb_strbuf_printf(b,
		"set bmargin %.1f\nset key at screen 0.5, screen 0.01 center bottom horizontal "
		"maxcols %zu samplen 1.5\n",
		3.8 + 1.25 * rows, columns);
}

/* Rows from top to bottom, with their labels. */
static void row_tics(struct fb_strbuf *b, const struct rep_train_row *rows, size_t n)
{
	fb_strbuf_add(b, "set ytics (");
	for (size_t i = 0; i < n; i++) {
		fb_strbuf_add(b, i ? ", " : "");
		rep_gp_quoted(b, rows[i].label);
		fb_strbuf_printf(b, " %zu", i);
	}
	fb_strbuf_printf(b, ") scale 0\nset yrange [%g:-0.6]\n", (double)n - 0.4);
}

static int bars_height(size_t n)
{
	return (int)(130 + 34 * n);
}

/* Bars that are drawn as boxes of x from..to around a row; one block per kind. */
static void box(struct fb_strbuf *b, size_t row, double from, double to)
{
	fb_strbuf_printf(b, "%.6g\t%zu\t%.6g\t%.6g\t%.3f\t%.3f\n", (from + to) / 2, row, from, to,
		(double)row - 0.32, (double)row + 0.32);
}

struct legend {
	const char *name, *colour;
};

/* One plot command over all blocks that the data file has. */
static void plot_blocks(struct fb_strbuf *b, const char *id, const struct legend *l, size_t n)
{
	fb_strbuf_add(b, "plot ");
	for (size_t i = 0; i < n; i++) {
		fb_strbuf_printf(b,
			"%s'%s.dat' index %zu using 1:2:3:4:5:6 with boxxyerror fs solid 1 "
			"noborder lc rgb '%s' title ",
			i ? ", \\\n  " : "", id, i, l[i].colour);
		rep_gp_quoted(b, l[i].name);
	}
	fb_strbuf_add(b, "\n");
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Where pictures go, and what stopped them. */
struct maker {
	struct rep_training *t;
	const char *dir;
	char *why;
	size_t len;
	struct fb_err *e;
};

static struct rep_figure *begin(struct maker *m, const char *id, const char *caption)
{
	if (m->t->n == MAX_FIGURES)
		return NULL;
	struct rep_figure *f = &m->t->v[m->t->n];
	memset(f, 0, sizeof(*f));
	snprintf(f->id, sizeof(f->id), "%s", id);
	m->t->caption[m->t->n] = caption;
	return f;
}

static int finish(
	struct maker *m, struct rep_figure *f, struct fb_strbuf *dat, struct fb_strbuf *gp)
{
	struct fb_err one = {0};
	int rc = rep_write_part(m->dir, f->id, "dat", dat, m->e);
	if (rc == 0)
		rc = rep_write_part(m->dir, f->id, "gp", gp, m->e);
	fb_strbuf_free(dat);
	fb_strbuf_free(gp);
	if (rc != 0)
		return rc;
	m->t->n++;
	if (rep_plot_draw(f, m->dir, &one) == 0)
		return 0;
	if (!m->why[0])
		fb_log_err(&one);
	snprintf(m->why, m->len, "%s", one.msg);
	return 0;
}

/* ---- stacked bars ---------------------------------------------------------------------------- */

#define MAX_KINDS 16
/* Kinds on top of each other, one block each; kinds that are nowhere are left out. */
struct stack {
	struct legend legend[MAX_KINDS];
	size_t kinds;
	double at[REP_TRAIN_ROWS]; /* where each row's next box begins */
};

static void stack_kind(struct stack *s, struct fb_strbuf *dat, const char *name, const char *colour,
	const double *value, size_t n)
{
	bool any = false;
	for (size_t i = 0; i < n; i++)
		any = any || (isfinite(value[i]) && value[i] > 0);
	if (!any || s->kinds == MAX_KINDS)
		return;
	fb_strbuf_printf(
		dat, "%s# %s: x, row, from, to, low, high\n", s->kinds ? "\n\n" : "", name);
	for (size_t i = 0; i < n; i++) {
		double v = isfinite(value[i]) && value[i] > 0 ? value[i] : 0;
		box(dat, i, s->at[i], s->at[i] + v);
		s->at[i] += v;
	}
	s->legend[s->kinds++] = (struct legend){name, colour};
}

static void stack_gp(struct fb_strbuf *gp, struct rep_figure *f, const struct stack *s,
	const struct rep_train_row *rows, size_t n, const char *axis)
{
	gp_head(gp, f, bars_height(n), s->kinds, 3);
	row_tics(gp, rows, n);
	fb_strbuf_printf(gp, "set xlabel '%s'\nset xrange [0:*]\n", axis);
	plot_blocks(gp, f->id, s->legend, s->kinds);
}

static int make_split(struct maker *m, const struct rep_train_row *rows, size_t n)
{
	struct fb_strbuf dat = {0}, gp = {0};
	struct stack s = {.kinds = 0};
	struct rep_figure *f = begin(m, "training-split",
		"Medians of the counted steps, mean over ranks. Exposed: compute stood still for it; "
		"what overlaps with compute is not here. Rest: reading tokens, the loss's sum over "
		"ranks, and waiting for nothing the step needs.");
	if (!f)
		return 0;
	snprintf(f->title, sizeof(f->title), "Time of a step by kind");
	for (const struct rep_train_kind *k = rep_train_kinds; k->key; k++) {
		double v[REP_TRAIN_ROWS];
		for (size_t i = 0; i < n; i++)
			v[i] = rep_train_time(rows[i].r, k) / 1e6;
		stack_kind(&s, &dat, k->name, k->colour, v, n);
	}
	stack_gp(&gp, f, &s, rows, n, "Time of a step [ms]");
	return finish(m, f, &dat, &gp);
}

static int make_memory(struct maker *m, const struct rep_train_row *rows, size_t n)
{
	static const struct {
		const char *key, *name, *colour;
	} kinds[] = {{"params", "parameters", "#0072b2"}, {"gathered", "gathered", "#56b4e9"},
		{"master", "master copy", "#009e73"},
		{"optimizer", "momentum, variance", "#e69f00"}, {"grads", "gradients", "#d55e00"},
		{"grad_units", "unsharded gradients", "#f0a080"}, {"wire", "wire", "#cc79a7"},
		{"activations", "activations", "#7f7f7f"}, {"scratch", "scratch", "#c8ccd0"}};
	struct fb_strbuf dat = {0}, gp = {0};
	struct stack s = {.kinds = 0};
	struct rep_figure *f = begin(m, "training-memory",
		"Allocated by rank 0's step, by kind; the table below says whether it equals the "
		"closed form. What is offloaded is not here.");
	if (!f)
		return 0;
	snprintf(f->title, sizeof(f->title), "Memory of one rank");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		double v[REP_TRAIN_ROWS];
		for (size_t i = 0; i < n; i++)
			v[i] = fb_json_num(
				       get(get(get(rows[i].r, "memory"), "kinds"), kinds[k].key),
				       "counted", NAN) /
			       (1 << 20);
		stack_kind(&s, &dat, kinds[k].name, kinds[k].colour, v, n);
	}
	if (s.kinds == 0) {
		fb_strbuf_free(&dat);
		return 0;
	}
	stack_gp(&gp, f, &s, rows, n, "Memory [MiB]");
	return finish(m, f, &dat, &gp);
}

/* ---- MFU ------------------------------------------------------------------------------------- */

static int make_mfu(struct maker *m, const struct rep_train_row *rows, size_t n)
{
	static const struct legend all[] = {{"of the dense data-sheet peak", "#0072b2"},
		{"of the own products of the step, timed in turn", "#e69f00"}};
	struct fb_strbuf dat = {0}, gp = {0};
	struct legend used[2];
	size_t kinds = 0;
	struct rep_figure *f = begin(m, "training-mfu",
		"Model FLOPs by PaLM's convention (full attention) over two denominators. The second is "
		"no bound: it is what this device reached at these very products, alone.");
	if (!f)
		return 0;
	snprintf(f->title, sizeof(f->title), "MFU");
	for (size_t k = 0; k < 2; k++) {
		bool any = false;
		for (size_t i = 0; i < n; i++) {
			const json_t *j = get(get(rows[i].r, "mfu"), k ? "measured" : "data_sheet");
			double v = 100 * fb_json_num(j, "palm", NAN);
			if (!isfinite(v) || v < 0)
				continue;
			if (!any)
				fb_strbuf_printf(
					&dat, "%s# %s\n", kinds ? "\n\n" : "", all[k].name);
			any = true;
			double low = (double)i - 0.34 + 0.36 * (double)k;
			fb_strbuf_printf(&dat, "%.6g\t%.3f\t0\t%.6g\t%.3f\t%.3f\n", v / 2,
				low + 0.16, v, low, low + 0.32);
		}
		if (any)
			used[kinds++] = all[k];
	}
	if (kinds == 0) {
		fb_strbuf_free(&dat);
		return 0;
	}
	gp_head(&gp, f, bars_height(n), kinds, 1);
	row_tics(&gp, rows, n);
	fb_strbuf_add(&gp, "set xlabel 'MFU, PaLM [%]'\nset xrange [0:*]\n");
	plot_blocks(&gp, f->id, used, kinds);
	return finish(m, f, &dat, &gp);
}

/* ---- loss ------------------------------------------------------------------------------------ */

static int make_loss(struct maker *m, const struct rep_train_row *rows, size_t n)
{
	static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7",
		"#56b4e9", "#7f7f7f", "#8c564b"};
	struct fb_strbuf dat = {0}, gp = {0};
	size_t shown[REP_TRAIN_ROWS], k = 0;
	struct rep_figure *f = begin(m, "training-loss",
		"Mean cross-entropy per token of the whole batch, warm-up included. Runs that differ in "
		"strategy or ranks alone lie on one another: the batch does not depend on them.");
	if (!f)
		return 0;
	snprintf(f->title, sizeof(f->title), "Loss");
	for (size_t i = 0; i < n && k < 8; i++) {
		const json_t *l = get(rows[i].r, "loss"), *v;
		size_t step;
		if (json_array_size(l) < 2)
			continue;
		fb_strbuf_printf(&dat, "%s# step, loss\n", k ? "\n\n" : "");
		json_array_foreach (l, step, v)
			if (json_is_number(v))
				fb_strbuf_printf(&dat, "%zu\t%.8g\n", step, json_number_value(v));
		shown[k++] = i;
	}
	if (k == 0) {
		fb_strbuf_free(&dat);
		return 0;
	}
	gp_head(&gp, f, 360, k, 2);
	fb_strbuf_add(&gp,
		"set grid ytics lc rgb '#e3e7ea' lt 1\nset xlabel 'Step'\nset ylabel 'Loss'\n"
		"plot ");
	for (size_t i = 0; i < k; i++) {
		/* Curves on one another stay visible: each later one is thinner. */
		fb_strbuf_printf(&gp,
			"%s'%s.dat' index %zu using 1:2 with lines lw %.1f lc rgb '%s' "
			"title ",
			i ? ", \\\n  " : "", f->id, i, 1.5 + 1.2 * (double)(k - 1 - i), colours[i]);
		rep_gp_quoted(&gp, rows[shown[i]].label);
	}
	fb_strbuf_add(&gp, "\n");
	return finish(m, f, &dat, &gp);
}

/* ---- the tasks of a step --------------------------------------------------------------------- */

static const struct {
	const char *op, *name, *colour;
} ops[] = {{"embed_fwd", "embedding", "#86b6d9"}, {"fwd", "forward", "#56b4e9"},
	{"head", "head and loss", "#1b3f66"}, {"recompute", "forward again", "#a6cee3"},
	{"bwd", "backward", "#0072b2"}, {"embed_bwd", "embedding, back", "#86b6d9"},
	{"norm", "norm", "#8c564b"}, {"update", "AdamW", "#009e73"},
	{"all_gather", "all-gather", "#e69f00"}, {"param_gather", "new parameters", "#f3c969"},
	{"reduce_scatter", "reduce-scatter", "#d55e00"}, {"all_reduce", "all-reduce", "#cc79a7"},
	{"norm_reduce", "reduced norm", "#b8860b"}, {"grads_out", "gradients out", "#7f7f7f"},
	{"state_in", "state in", "#999933"}, {"state_out", "state out", "#c8c864"},
	{"params_in", "parameters in", "#4c4c4c"}};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static int lane_of(const char *queue)
{
	static const char *const lanes[] = {"compute", "gather", "reduce", "replicate", "storage"};
	for (int i = 0; i < 5; i++)
		if (strcmp(queue, lanes[i]) == 0)
			return i;
	return -1;
}

/* A task's row: its op, lane, from and to in ms. */
static bool task_of(const json_t *row, const char **op, int *lane, double *from, double *to)
{
	const json_t *o = json_array_get(row, 0), *q = json_array_get(row, 1),
		     *a = json_array_get(row, 4), *z = json_array_get(row, 5);
	if (!json_is_string(o) || !json_is_string(q) || !json_is_number(a) || !json_is_number(z))
		return false;
	*op = json_string_value(o);
	*lane = lane_of(json_string_value(q));
	*from = json_number_value(a) / 1e6;
	*to = json_number_value(z) / 1e6;
	return *lane >= 0 && *from >= 0 && *to >= *from && *to < 1e9;
}

static int make_timeline(struct maker *m, const struct rep_train_row *row, size_t number)
{
	struct fb_strbuf dat = {0}, gp = {0};
	struct legend used[OPS];
	const json_t *tasks = get(row->r, "tasks"), *t;
	size_t kinds = 0, i;
	char id[40];
	snprintf(id, sizeof(id), "training-step-%zu", number);
	struct rep_figure *f = begin(m, id,
		"The tasks of rank 0's last step, by queue. A collective is drawn from its begin until "
		"the computing thread knew of its end.");
	if (!f)
		return 0;
	snprintf(f->title, sizeof(f->title), "One step: %.120s", row->label);
	for (size_t k = 0; k < OPS; k++) {
		bool any = false;
		json_array_foreach (tasks, i, t) {
			const char *op;
			double from, to;
			int lane;
			if (!task_of(t, &op, &lane, &from, &to) || strcmp(op, ops[k].op) != 0)
				continue;
			if (!any)
				fb_strbuf_printf(
					&dat, "%s# %s\n", kinds ? "\n\n" : "", ops[k].name);
			any = true;
			box(&dat, (size_t)lane, from, to);
		}
		if (any)
			used[kinds++] = (struct legend){ops[k].name, ops[k].colour};
	}
	if (kinds == 0) {
		fb_strbuf_free(&dat);
		return 0;
	}
	gp_head(&gp, f, 280, kinds, 3);
	fb_strbuf_add(&gp,
		"set ytics ('compute' 0, 'gather' 1, 'reduce' 2, 'replicate' 3, 'storage' 4) "
		"scale 0\nset yrange [4.6:-0.6]\nset xlabel 'Time in the step [ms]'\n"
		"set xrange [0:*]\n");
	plot_blocks(&gp, f->id, used, kinds);
	return finish(m, f, &dat, &gp);
}

/* ---- all of them ----------------------------------------------------------------------------- */

int rep_training_make(struct rep_training *t, const json_t *doc, const char *dir, char *why,
	size_t len, struct fb_err *e)
{
	int (*const make[])(struct maker *, const struct rep_train_row *, size_t) = {
		make_split, make_mfu, make_memory, make_loss};
	struct rep_train_row *rows = calloc(REP_TRAIN_ROWS, sizeof(*rows));
	struct maker m = {.t = t, .dir = dir, .why = why, .len = len, .e = e};
	size_t left, n, drawn = 0;
	int rc = 0;
	memset(t, 0, sizeof(*t));
	t->v = calloc(MAX_FIGURES, sizeof(*t->v));
	t->caption = calloc(MAX_FIGURES, sizeof(*t->caption));
	if (!rows || !t->v || !t->caption) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for figures of training");
		goto free_rows;
	}
	n = rep_train_rows(doc, rows, &left);
	for (size_t i = 0; n > 0 && rc == 0 && i < sizeof(make) / sizeof(make[0]); i++)
		rc = make[i](&m, rows, n);
	/* Of several runs the tasks of each are in its own report. */
	for (size_t i = 0; rc == 0 && i < n && !rows[i].stem && drawn < MAX_TIMELINES; i++) {
		size_t tasks = json_array_size(get(rows[i].r, "tasks"));
		if (tasks > 0 && tasks <= MAX_TASKS)
			rc = make_timeline(&m, &rows[i], ++drawn);
	}
free_rows:
	free(rows);
	return rc;
}

void rep_training_free(struct rep_training *t)
{
	free(t->v);
	free(t->caption);
	memset(t, 0, sizeof(*t));
}
