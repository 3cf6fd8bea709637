// SPDX-License-Identifier: Apache-2.0
/*
 * Sweeps over packet loss, and training steps at the same rates, gathered and drawn. The model's
 * constants are the document's own; here they are only drawn. Nothing of the document is believed:
 * a rate out of range leaves its point out.
 */
#include "reports/loss.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"

#define MAX_SWEEPS 16
#define MAX_STEPS  512
#define MAX_GROUPS 8
#define GBPS       (8 / 1e9)
/* Points of a model's line. */
#define LINE 120

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static double num(const json_t *o, const char *key)
{
	return fb_json_num(o, key, NAN);
}

static bool is_rate(double percent)
{
	return percent >= 0 && percent < 100;
}

double rep_loss_inverse(double w, double r, double percent)
{
	double p = percent / 100;

	if (!is_rate(percent) || !isfinite(w))
		return NAN;
	return 1 + w * p / (1 - p) + (isfinite(r) ? r : 0) * p * p;
}

double rep_loss_step_predicted(double step, double exposed, double inverse)
{
	return step - exposed + exposed * inverse;
}

bool rep_loss_result(const json_t *result)
{
	return strncmp(fb_json_str(result, "case", ""), "verbs.loss-sweep/", 17) == 0;
}

/* ---- other documents ------------------------------------------------------------------------- */

static bool has_step(const json_t *r)
{
	return strcmp(rep_section_of(r), "Training") == 0 &&
	       strcmp(fb_json_str(r, "metric", ""), "step_time") == 0;
}

int rep_loss_join(json_t *doc, const json_t *other, struct fb_err *e)
{
	static const char *const lists[] = {"results", "loss"};
	const json_t *config = get(get(other, "config"), "effective");
	int failed = 0;

	for (unsigned l = 0; l < 2; l++) {
		json_t *to = json_object_get(doc, lists[l]);
		const json_t *from = get(other, lists[l]), *one;
		size_t i;
		if (!to && json_array_size(from) > 0) {
			failed |= json_object_set_new(doc, lists[l], json_array());
			to = json_object_get(doc, lists[l]);
		}
		json_array_foreach (from, i, one) {
			json_t *copy = json_deep_copy(one), *p = json_object_get(copy, "params");
			const json_t *loss = get(config, "loss"),
				     *transport = get(config, "transport");
			if (has_step(copy) && json_is_number(loss) && !get(p, "loss"))
				failed |= json_object_set(p, "loss", (json_t *)(uintptr_t)loss);
			if (has_step(copy) && json_is_string(transport) && !get(p, "transport"))
				failed |= json_object_set(
					p, "transport", (json_t *)(uintptr_t)transport);
			failed |= json_array_append_new(to, copy);
		}
	}
	return failed ? fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the documents") : 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static double sum_exposed(const json_t *result)
{
	const json_t *all = get(get(result, "split"), "exposed"), *one;
	const char *name;
	double sum = 0;

	json_object_foreach ((json_t *)(uintptr_t)all, name, one) {
		double v = num(one, "mean");
		if (isfinite(v))
			sum += v;
	}
	return json_is_object(all) ? sum : NAN;
}

static void group_name(const json_t *p, const char *transport, char *buf, size_t len)
{
	snprintf(buf, len, "%.24s %.24s, %lld ranks over %.60s", fb_json_str(p, "model", "?"),
		fb_json_str(p, "strategy", "?"), (long long)fb_json_int(p, "ranks", 0), transport);
}

/* @return its place, or MAX_GROUPS: too many */
static unsigned group_for(struct rep_losses *x, const char *name)
{
	for (size_t i = 0; i < x->ngroups; i++)
		if (strcmp(x->group[i].name, name) == 0)
			return (unsigned)i;
	if (x->ngroups == MAX_GROUPS)
		return MAX_GROUPS;
	x->group[x->ngroups] = (struct rep_loss_group){.step = NAN, .exposed = NAN};
	snprintf(x->group[x->ngroups].name, sizeof(x->group->name), "%s", name);
	return (unsigned)x->ngroups++;
}

static void add_step(struct rep_losses *x, const json_t *doc, const json_t *r)
{
	const json_t *p = get(r, "params"), *config = get(get(doc, "config"), "effective");
	const json_t *mfu = get(r, "mfu");
	struct rep_loss_step s = {.rate = num(p, "loss"), .step = num(r, "value")};
	const char *transport = fb_json_str(p, "transport", NULL);
	char name[160];

	if (!isfinite(s.rate))
		s.rate = num(config, "loss");
	if (!transport)
		transport = fb_json_str(config, "transport", "?");
	if (!is_rate(s.rate) || !isfinite(s.step) || s.step <= 0 || x->nsteps == MAX_STEPS)
		return;
	group_name(p, transport, name, sizeof(name));
	s.group = group_for(x, name);
	if (s.group == MAX_GROUPS)
		return;
	s.exposed = sum_exposed(r);
	s.mfu = num(get(mfu, "data_sheet"), "palm");
	s.own_peak = !isfinite(s.mfu);
	if (s.own_peak)
		s.mfu = num(get(mfu, "measured"), "palm");
	x->step[x->nsteps++] = s;
}

/* What stands without loss: the mean of its runs. */
static void settle_groups(struct rep_losses *x)
{
	for (unsigned g = 0; g < x->ngroups; g++) {
		double step = 0, exposed = 0, n = 0;
		for (size_t i = 0; i < x->nsteps; i++) {
			const struct rep_loss_step *s = &x->step[i];
			if (s->group != g || s->rate > 0)
				continue;
			step += s->step;
			exposed += s->exposed;
			n++;
		}
		x->group[g].step = n > 0 ? step / n : NAN;
		x->group[g].exposed = n > 0 ? exposed / n : NAN;
	}
}

static int by_group_and_rate(const void *a, const void *b)
{
	const struct rep_loss_step *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->rate < y->rate ? -1 : x->rate > y->rate;
}

/* Steps count where the rate varies: one rate alone is no curve. */
static void gather_steps(struct rep_losses *x, const json_t *doc)
{
	const json_t *r;
	size_t i;
	bool varied = false;

	json_array_foreach (get(doc, "results"), i, r)
		if (has_step(r))
			add_step(x, doc, r);
	for (i = 0; i < x->nsteps; i++)
		varied = varied || x->step[i].rate > 0;
	if (!varied)
		x->nsteps = x->ngroups = 0;
	if (x->nsteps == 0)
		return;
	qsort(x->step, x->nsteps, sizeof(*x->step), by_group_and_rate);
	settle_groups(x);
	snprintf(x->train.id, sizeof(x->train.id), "loss-training");
	snprintf(x->train.title, sizeof(x->train.title), "Training step against packet loss");
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static void add_sweep(struct rep_losses *x, const json_t *block)
{
	const json_t *m = get(block, "model"), *p;
	struct rep_loss *s = &x->v[x->n];
	size_t i;

	memset(s, 0, sizeof(*s));
	s->block = block;
	s->w = num(m, "W");
	s->r = num(m, "R");
	s->w_alone = num(m, "W_alone");
	s->lossless = NAN;
	json_array_foreach (get(block, "points"), i, p) {
		double rate = num(p, "rate");
		if (!is_rate(rate))
			continue;
		s->most = rate > s->most ? rate : s->most;
		if (rate <= 0)
			s->lossless = num(p, "goodput");
	}
	snprintf(s->f.id, sizeof(s->f.id), "loss-%zu", ++x->n);
	snprintf(s->f.title, sizeof(s->f.title), "%.16s of %lld B against packets lost %.16s",
		fb_json_str(block, "op", "stream"),
		(long long)fb_json_int(block, "message_size", 0), fb_json_str(m, "direction", ""));
	snprintf(s->f.where, sizeof(s->f.where), "%s", fb_json_str(block, "where", "?"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void cell(struct fb_strbuf *b, double v)
{
	if (isfinite(v))
		fb_strbuf_printf(b, "\t%.6g", v);
	else
		fb_strbuf_add(b, "\tNaN");
}

static void sweep_dat(struct fb_strbuf *b, const struct rep_loss *s)
{
	const json_t *p;
	size_t i;

	fb_strbuf_add(b, "# measured: loss_%\tgoodput_Gb/s\tpackets_per_packet\tp50_ms\tp99_ms\t"
			 "max_ms\n");
	json_array_foreach (get(s->block, "points"), i, p) {
		double rate = num(p, "rate");
		if (!is_rate(rate))
			continue;
		fb_strbuf_printf(b, "%.6g", rate);
		cell(b, num(p, "goodput") * GBPS);
		cell(b, num(p, "packets_per_packet"));
		cell(b, num(p, "p50_ns") / 1e6);
		cell(b, num(p, "p99_ns") / 1e6);
		cell(b, num(p, "max_ns") / 1e6);
		fb_strbuf_add(b, "\n");
	}
	fb_strbuf_add(b, "\n\n# model: loss_%\tgoodput_Gb/s\tpackets_per_packet\tof_W_alone\n");
	for (unsigned k = 0; k <= LINE; k++) {
		double rate = s->most * k / LINE;
		double inverse = rep_loss_inverse(s->w, s->r, rate);
		fb_strbuf_printf(b, "%.6g", rate);
		cell(b, s->lossless * GBPS / inverse);
		cell(b, inverse);
		cell(b, rep_loss_inverse(s->w_alone, 0, rate));
		fb_strbuf_add(b, "\n");
	}
}

static void head(struct fb_strbuf *b, struct rep_figure *f, int height, double most)
{
	fb_strbuf_printf(b, "# Redraw with: gnuplot %s.gp\nset encoding utf8\n", f->id);
	f->width = 720;
	f->height = height;
	rep_gp_terminal(b, f);
	fb_strbuf_printf(b,
		"set datafile separator \"\\t\" missing 'NaN'\n"
		"set border 3 lc rgb '#888888'\nset tics nomirror out scale 0.8,0.4 textcolor rgb '#333333'\n"
		"set grid xtics ytics lc rgb '#e4e4e4' lw 1\nset key outside right top\n"
		"set xrange [%g:%g]\nset lmargin 11\nset rmargin 22\n",
		-most / 60, most * 1.03);
}

/* A panel's line is left out where no point of it was measured: gnuplot would stop at it. */
static bool any(const struct rep_loss *s, const char *key)
{
	const json_t *p;
	size_t i;

	json_array_foreach (get(s->block, "points"), i, p)
		if (is_rate(num(p, "rate")) && isfinite(num(p, key)))
			return true;
	return false;
}

static void goodput_panel(struct fb_strbuf *b, const struct rep_loss *s)
{
	fb_strbuf_printf(b,
		"set ylabel 'Goodput [Gb/s]'\nset yrange [0:*]\n"
		"plot '%s.dat' index 0 using 1:2 with points lc rgb '#0072b2' pt 7 title 'measured'",
		s->f.id);
	if (isfinite(s->w) && isfinite(s->lossless))
		fb_strbuf_add(b,
			", \\\n  '' index 1 using 1:2 with lines lc rgb '#d55e00' lw 2 title "
			"'lossless × model'");
	fb_strbuf_add(b, "\n");
}

static void packets_panel(struct fb_strbuf *b, const struct rep_loss *s)
{
	fb_strbuf_printf(b,
		"set ylabel 'Packets sent per needed'\nset yrange [0:*]\n"
		"plot '%s.dat' index 0 using 1:3 with points lc rgb '#0072b2' pt 7 title 'measured'",
		s->f.id);
	if (isfinite(s->w))
		fb_strbuf_add(b,
			", \\\n  '' index 1 using 1:3 with lines lc rgb '#d55e00' lw 2 title "
			"'model', \\\n  '' index 1 using 1:4 with lines lc rgb '#d55e00' dt 2 "
			"title 'W alone'");
	fb_strbuf_add(b, "\n");
}

static void tail_panel(struct fb_strbuf *b, const struct rep_loss *s)
{
	static const struct {
		const char *key, *name, *style;
		int column;
	} lines[] = {{"p50_ns", "p50", "lc rgb '#0072b2' pt 7", 4},
		{"p99_ns", "p99", "lc rgb '#e69f00' pt 5", 5},
		{"max_ns", "longest", "lc rgb '#888888' pt 2", 6}};
	bool first = true;

	fb_strbuf_add(b, "set ylabel 'Small messages [ms]'\nset logscale y\nset yrange [*:*]\n"
			 "set xlabel 'Packets lost [%]'\nplot ");
	for (unsigned i = 0; i < 3; i++) {
		if (!any(s, lines[i].key))
			continue;
		fb_strbuf_printf(b, "%s'%s.dat' index 0 using 1:%d with linespoints %s title '%s'",
			first ? "" : ", \\\n  ", s->f.id, lines[i].column, lines[i].style,
			lines[i].name);
		first = false;
	}
	fb_strbuf_add(b, "\n");
}

static void sweep_gp(struct fb_strbuf *b, struct rep_loss *s)
{
	bool packets = any(s, "packets_per_packet"), tail = any(s, "max_ns");
	int panels = 1 + packets + tail;

	head(b, &s->f, 60 + 240 * panels, s->most > 0 ? s->most : 1);
	fb_strbuf_printf(b, "set multiplot layout %d,1\nset title ", panels);
	rep_gp_quoted(b, s->f.title);
	fb_strbuf_add(b, "\n");
	if (panels == 1)
		fb_strbuf_add(b, "set xlabel 'Packets lost [%]'\n");
	goodput_panel(b, s);
	fb_strbuf_add(b, "unset title\n");
	if (packets)
		packets_panel(b, s);
	if (tail)
		tail_panel(b, s);
	fb_strbuf_add(b, "unset multiplot\n");
}

/* The first sweep with a model: whose 1/eta predicts the steps. */
static const struct rep_loss *model_of(const struct rep_losses *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (isfinite(x->v[i].w))
			return &x->v[i];
	return NULL;
}

static double most_of(const struct rep_losses *x)
{
	double most = 0;

	for (size_t i = 0; i < x->nsteps; i++)
		most = x->step[i].rate > most ? x->step[i].rate : most;
	return most;
}

/* Two blocks for each group: its points, and the prediction made from its step without loss. */
static void train_dat(struct fb_strbuf *b, const struct rep_losses *x)
{
	const struct rep_loss *m = model_of(x);

	for (unsigned g = 0; g < x->ngroups; g++) {
		const struct rep_loss_group *group = &x->group[g];
		double mfu = NAN;
		fb_strbuf_printf(b, "%s# measured: loss_%%\tstep_ms\tmfu_%%\n", g ? "\n\n" : "");
		for (size_t i = 0; i < x->nsteps; i++) {
			const struct rep_loss_step *s = &x->step[i];
			if (s->group != g)
				continue;
			if (s->rate <= 0)
				mfu = s->mfu;
			fb_strbuf_printf(b, "%.6g", s->rate);
			cell(b, s->step / 1e6);
			cell(b, s->mfu * 100);
			fb_strbuf_add(b, "\n");
		}
		fb_strbuf_add(b, "\n\n# predicted: loss_%\tstep_ms\tmfu_%\n");
		for (unsigned k = 0; k <= LINE; k++) {
			double rate = most_of(x) * k / LINE;
			double inverse = m ? rep_loss_inverse(m->w, m->r, rate) : NAN;
			double step = rep_loss_step_predicted(group->step, group->exposed, inverse);
			fb_strbuf_printf(b, "%.6g", rate);
			cell(b, step / 1e6);
			cell(b, mfu * 100 * group->step / step);
			fb_strbuf_add(b, "\n");
		}
	}
}

static bool group_has(const struct rep_losses *x, unsigned g, bool mfu)
{
	for (size_t i = 0; i < x->nsteps; i++)
		if (x->step[i].group == g && (!mfu || isfinite(x->step[i].mfu)))
			return true;
	return false;
}

static void train_panel(struct fb_strbuf *b, const struct rep_losses *x, bool mfu)
{
	static const char *const colours[MAX_GROUPS] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
		"#56b4e9", "#7f7f7f", "#8c564b", "#f0a080"};
	bool model = model_of(x) != NULL, first = true;

	fb_strbuf_add(b, "plot ");
	for (unsigned g = 0; g < x->ngroups; g++) {
		const struct rep_loss_group *group = &x->group[g];
		if (!group_has(x, g, mfu))
			continue;
		fb_strbuf_printf(b,
			"%s'%s.dat' index %u using 1:%d with points lc rgb '%s' pt 7 title ",
			first ? "" : ", \\\n  ", x->train.id, 2 * g, mfu ? 3 : 2, colours[g]);
		rep_gp_quoted(b, group->name);
		if (model && isfinite(group->step) && isfinite(group->exposed))
			fb_strbuf_printf(b,
				", \\\n  '' index %u using 1:%d with lines lc rgb '%s' dt 2 title 'predicted'",
				2 * g + 1, mfu ? 3 : 2, colours[g]);
		first = false;
	}
	fb_strbuf_add(b, "\n");
}

static void train_gp(struct fb_strbuf *b, struct rep_losses *x)
{
	bool mfu = false;

	for (unsigned g = 0; g < x->ngroups; g++)
		mfu = mfu || group_has(x, g, true);
	head(b, &x->train, mfu ? 560 : 320, most_of(x));
	fb_strbuf_printf(b,
		"set key below horizontal\nset rmargin 3\nset multiplot layout %d,1\nset title ",
		mfu ? 2 : 1);
	rep_gp_quoted(b, x->train.title);
	fb_strbuf_printf(b, "\nset ylabel 'Step [ms]'\nset yrange [0:*]\n%s",
		mfu ? "" : "set xlabel 'Packets lost [%]'\n");
	train_panel(b, x, false);
	if (mfu) {
		fb_strbuf_add(b, "unset title\nset ylabel 'MFU, PaLM [%]'\nset yrange [0:*]\n"
				 "set xlabel 'Packets lost [%]'\n");
		train_panel(b, x, true);
	}
	fb_strbuf_add(b, "unset multiplot\n");
}

/* ---- drawing --------------------------------------------------------------------------------- */

struct output {
	const char *dir;
	char *why;
	size_t len;
};

static int finish(struct rep_figure *f, const struct output *o, struct fb_strbuf *dat,
	struct fb_strbuf *gp, struct fb_err *e)
{
	struct fb_err one = {0};
	int rc = rep_write_part(o->dir, f->id, "dat", dat, e);

	if (rc == 0)
		rc = rep_write_part(o->dir, f->id, "gp", gp, e);
	else
		fb_strbuf_free(gp);
	if (rc != 0 || rep_plot_draw(f, o->dir, &one) == 0)
		return rc;
	if (!o->why[0])
		fb_log_err(&one);
	snprintf(o->why, o->len, "%s", one.msg);
	return 0;
}

static int draw(struct rep_losses *x, const struct output *o, struct fb_err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < x->n; i++) {
		struct fb_strbuf dat = {0}, gp = {0};
		sweep_dat(&dat, &x->v[i]);
		sweep_gp(&gp, &x->v[i]);
		rc = finish(&x->v[i].f, o, &dat, &gp, e);
	}
	if (rc == 0 && x->train.id[0]) {
		struct fb_strbuf dat = {0}, gp = {0};
		train_dat(&dat, x);
		train_gp(&gp, x);
		rc = finish(&x->train, o, &dat, &gp, e);
	}
	return rc;
}

int rep_losses_make(struct rep_losses *x, const json_t *doc, const char *dir, char *why, size_t len,
	struct fb_err *e)
{
	const struct output o = {dir, why, len};
	const json_t *block;
	size_t i;

	memset(x, 0, sizeof(*x));
	x->v = calloc(MAX_SWEEPS, sizeof(*x->v));
	x->step = calloc(MAX_STEPS, sizeof(*x->step));
	x->group = calloc(MAX_GROUPS, sizeof(*x->group));
	if (!x->v || !x->step || !x->group) {
		rep_losses_free(x);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the sweeps over loss");
	}
	json_array_foreach (get(doc, "loss"), i, block)
		if (x->n < MAX_SWEEPS)
			add_sweep(x, block);
	gather_steps(x, doc);
	return draw(x, &o, e);
}

void rep_losses_free(struct rep_losses *x)
{
	free(x->v);
	free(x->step);
	free(x->group);
	memset(x, 0, sizeof(*x));
}
