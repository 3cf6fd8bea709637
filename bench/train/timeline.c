// SPDX-License-Identifier: Apache-2.0
/*
 * The trace's text and the picture's script. Times leave here as microseconds with the nanoseconds
 * behind the point, so that nothing is rounded and events of one row never overlap.
 */
#include "bench/train/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"

#define GNUPLOT_DEADLINE_NS 60000000000ull

uint64_t timeline_origin(const struct schedule *s, const struct task_time *times)
{
	uint64_t first = UINT64_MAX;
	for (int i = 0; i < s->n; i++)
		if (times[i].end > 0 && times[i].start < first)
			first = times[i].start;
	return first == UINT64_MAX ? 0 : first;
}

static bool ran(const struct sched_task *t, const struct task_time *x)
{
	return t->op != SCHED_RELEASE && x->end > 0 && x->end >= x->start;
}
/* Before its start a compute task may have stood still. */
static uint64_t stood_still(const struct sched_task *t, const struct task_time *x)
{
	return t->queue == SCHED_COMPUTE && x->waited_for >= 0 && x->waited < x->start ? x->waited
										       : 0;
}

static int write_text(struct fb_strbuf *b, const char *path, struct fb_err *e)
{
	size_t len = b->len;
	char *s = fb_strbuf_take(b);
	int rc = s ? fb_write_file_atomic(path, s, len, e)
		   : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to write %s", path);
	free(s);
	return rc;
}

/* ---- trace ----------------------------------------------------------------------------------- */

/* pid and tid 0 mean something else to some viewers. */
static int pid_of(int rank)
{
	return rank + 1;
}
static int tid_of(enum sched_queue q)
{
	return (int)q + 1;
}

static void microseconds(struct fb_strbuf *b, uint64_t ns, uint64_t origin)
{
	/* a clock of another host may be behind the origin */
	bool minus = ns < origin;
	uint64_t d = minus ? origin - ns : ns - origin;
	fb_strbuf_printf(b, "%s%llu.%03llu", minus ? "-" : "", (unsigned long long)(d / 1000),
		(unsigned long long)(d % 1000));
}
static void unit_name(struct fb_strbuf *b, const struct timeline *t, int unit)
{
	if (unit == t->step->model.layers)
		fb_strbuf_add(b, "root");
	else if (unit >= 0)
		fb_strbuf_printf(b, "block %d", unit);
}

static void metadata(struct fb_strbuf *b, const struct timeline *t, int rank)
{
	fb_strbuf_printf(b,
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}"
		",\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{"
		"\"sort_index\":%d}}",
		pid_of(rank), rank, pid_of(rank), rank);
	bool used[SCHED_QUEUE_COUNT] = {false};
	for (int i = 0; i < t->schedule->n; i++)
		used[t->schedule->v[i].queue] = true;
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++)
		if (used[q])
			fb_strbuf_printf(b,
				",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
				"\"args\":{\"name\":\"%s\"}},\n{\"name\":\"thread_sort_index\","
				"\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}",
				pid_of(rank), tid_of((enum sched_queue)q), sched_queue_names[q],
				pid_of(rank), tid_of((enum sched_queue)q), q);
}

static void complete_event(struct fb_strbuf *b, int rank, enum sched_queue q, uint64_t start,
	uint64_t end, uint64_t origin)
{
	fb_strbuf_printf(
		b, "\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":", pid_of(rank), tid_of(q));
	microseconds(b, start, origin);
	fb_strbuf_add(b, ",\"dur\":");
	microseconds(b, end, start);
}

static void waiting(struct fb_strbuf *b, const struct timeline *t, int rank, int i)
{
	const struct task_time *x = &t->rank[rank].times[i];
	uint64_t ns = stood_still(&t->schedule->v[i], x);
	if (ns == 0)
		return;
	const struct sched_task *by = &t->schedule->v[x->waited_for];
	fb_strbuf_printf(b, ",\n{\"name\":\"waits: %s ", sched_op_names[by->op]);
	unit_name(b, t, by->unit);
	fb_strbuf_add(b, "\",\"cat\":\"exposed");
	complete_event(b, rank, SCHED_COMPUTE, x->start - ns, x->start, t->rank[rank].origin);
	fb_strbuf_printf(b, ",\"args\":{\"for_task\":%d}}", x->waited_for);
}

static void event(struct fb_strbuf *b, const struct timeline *t, int rank, int i)
{
	const struct sched_task *k = &t->schedule->v[i];
	const struct task_time *x = &t->rank[rank].times[i];
	fb_strbuf_printf(b, ",\n{\"name\":\"%s", sched_op_names[k->op]);
	if (k->unit >= 0)
		fb_strbuf_add(b, " ");
	unit_name(b, t, k->unit);
	fb_strbuf_printf(b, "\",\"cat\":\"%s", sched_queue_names[k->queue]);
	complete_event(b, rank, k->queue, x->start, x->end, t->rank[rank].origin);
	fb_strbuf_printf(b, ",\"args\":{\"task\":%d", i);
	if (k->micro >= 0)
		fb_strbuf_printf(b, ",\"micro_batch\":%d", k->micro);
	if (k->queue != SCHED_COMPUTE)
		fb_strbuf_printf(b, ",\"bytes\":%.0f", schedule_task_bytes(t->step, k));
	fb_strbuf_add(b, "}}");
}

void timeline_trace_text(const struct timeline *t, struct fb_strbuf *b)
{
	fb_strbuf_add(b, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (int r = 0; r < t->ranks; r++) {
		if (r)
			fb_strbuf_add(b, ",\n");
		metadata(b, t, r);
		for (int i = 0; i < t->schedule->n; i++) {
			if (!ran(&t->schedule->v[i], &t->rank[r].times[i]))
				continue;
			waiting(b, t, r, i);
			event(b, t, r, i);
		}
	}
	fb_strbuf_add(b, "\n]}\n");
}

int timeline_trace(const struct timeline *t, const char *path, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	timeline_trace_text(t, &b);
	return write_text(&b, path, e);
}

/* ---- picture --------------------------------------------------------------------------------- */

/* Okabe and Ito's colours, which stay apart for the colour-blind, and greys. */
static const struct {
	const char *label, *colour;
} kinds[] = {
	{"forward", "#56b4e9"},
	{"head and loss", "#0072b2"},
	{"forward again", "#b9dcf2"},
	{"backward", "#009e73"},
	{"all-gather", "#e69f00"},
	{"reduce-scatter", "#d55e00"},
	{"all-reduce", "#cc79a7"},
	{"norm", "#5a3d8a"},
	{"update", "#f0e442"},
	{"storage", "#8c6d4f"},
	{"stands still", "#dddddd"},
};
#define KINDS       ((int)(sizeof(kinds) / sizeof(kinds[0])))
#define KIND_STANDS (KINDS - 1)
static const int kind_of[SCHED_OP_COUNT] = {
	[SCHED_GATHER] = 4,
	[SCHED_RELEASE] = -1,
	[SCHED_EMBED_FWD] = 0,
	[SCHED_FWD] = 0,
	[SCHED_HEAD] = 1,
	[SCHED_RECOMPUTE] = 2,
	[SCHED_BWD] = 3,
	[SCHED_EMBED_BWD] = 3,
	[SCHED_REDUCE_SCATTER] = 5,
	[SCHED_ALL_REDUCE] = 6,
	[SCHED_NORM] = 7,
	[SCHED_NORM_REDUCE] = 7,
	[SCHED_GRADS_OUT] = 9,
	[SCHED_STATE_IN] = 9,
	[SCHED_UPDATE] = 8,
	[SCHED_STATE_OUT] = 9,
	[SCHED_PARAMS_IN] = 9,
	[SCHED_PARAM_GATHER] = 4,
};

struct picture {
	const struct timeline *t;
	const struct task_time *times;
	uint64_t origin, span;
	double scale; /* ns of the axis' unit */
	const char *unit;
	int row[SCHED_QUEUE_COUNT], rows; /* from the bottom; -1: not used */
	bool used[KINDS];
};

static void lay_out(struct picture *p, const struct timeline *t, int rank)
{
	*p = (struct picture){.t = t, .times = t->rank[rank].times, .origin = t->rank[rank].origin};
	bool used[SCHED_QUEUE_COUNT] = {false};
	for (int i = 0; i < t->schedule->n; i++) {
		const struct sched_task *k = &t->schedule->v[i];
		const struct task_time *x = &p->times[i];
		if (!ran(k, x))
			continue;
		used[k->queue] = true;
		p->used[kind_of[k->op]] = true;
		if (stood_still(k, x))
			p->used[KIND_STANDS] = true;
		if (x->end > p->origin && x->end - p->origin > p->span)
			p->span = x->end - p->origin;
	}
	p->span = p->span ? p->span : 1;
	p->scale = p->span < 10000000u ? 1e3 : p->span < 10000000000u ? 1e6 : 1e9;
	p->unit = p->scale == 1e3 ? "us" : p->scale == 1e6 ? "ms" : "s";
	for (int q = SCHED_QUEUE_COUNT - 1; q >= 0; q--)
		p->row[q] = used[q] ? p->rows++ : -1;
}

static double at(const struct picture *p, uint64_t ns)
{
	return ((double)ns - (double)p->origin) / p->scale;
}
static void box(struct fb_strbuf *b, const struct picture *p, enum sched_queue q, uint64_t start,
	uint64_t end)
{
	int y = p->row[q];
	fb_strbuf_printf(b, "%.6f %.2f %.6f %.6f %.2f %.2f\n", at(p, start), (double)y,
		at(p, start), at(p, end), y - 0.38, y + 0.38);
}
static void boxes(struct fb_strbuf *b, const struct picture *p, int kind)
{
	fb_strbuf_printf(b, "$kind%d << EOD\n", kind);
	for (int i = 0; i < p->t->schedule->n; i++) {
		const struct sched_task *k = &p->t->schedule->v[i];
		const struct task_time *x = &p->times[i];
		if (!ran(k, x))
			continue;
		if (kind == KIND_STANDS && stood_still(k, x))
			box(b, p, SCHED_COMPUTE, x->start - stood_still(k, x), x->start);
		else if (kind_of[k->op] == kind)
			box(b, p, k->queue, x->start, x->end);
	}
	fb_strbuf_add(b, "EOD\n");
}
/* A unit's number where there is room for it. */
static void labels(struct fb_strbuf *b, const struct picture *p)
{
	fb_strbuf_add(b, "$units << EOD\n0 0 \"\"\n"); /* never empty */
	for (int i = 0; i < p->t->schedule->n; i++) {
		const struct sched_task *k = &p->t->schedule->v[i];
		const struct task_time *x = &p->times[i];
		if (!ran(k, x) || k->unit < 0 || x->end - x->start < p->span / 50)
			continue;
		fb_strbuf_printf(
			b, "%.6f %d \"", (at(p, x->start) + at(p, x->end)) / 2, p->row[k->queue]);
		if (k->unit == p->t->step->model.layers)
			fb_strbuf_add(b, "r\"\n");
		else
			fb_strbuf_printf(b, "%d\"\n", k->unit);
	}
	fb_strbuf_add(b, "EOD\n");
}

/* Inside single quotes gnuplot runs nothing; what would end them becomes U+2019. */
static void quoted(struct fb_strbuf *b, const char *s)
{
	fb_strbuf_add(b, "'");
	for (; *s; s++) {
		if (*s == '\'')
			fb_strbuf_add(b, "\xe2\x80\x99");
		else
			fb_strbuf_addn(b, (unsigned char)*s < 32 || *s == 127 ? " " : s, 1);
	}
	fb_strbuf_add(b, "'");
}

static void preamble(struct fb_strbuf *b, const struct picture *p, int rank, const char *svg)
{
	const struct step_config *c = p->t->step;
	char title[256];
	int height = 190 + 62 * p->rows;
	snprintf(title, sizeof(title), "%s, %s: a step of rank %d of %d%s", c->model.name,
		c->strategy.name, rank, c->ranks, c->overlap ? "" : ", without overlap");
	fb_strbuf_printf(b,
		"set encoding utf8\n"
		"set terminal svg size 960,%d font 'DejaVu Sans,12' noenhanced background '#ffffff'\n"
		"set output ",
		height);
	quoted(b, svg);
	/* A title of its own would stand below the key. */
	fb_strbuf_add(b, "\nset label 1 ");
	quoted(b, title);
	fb_strbuf_printf(b,
		" at screen 0.5,%.4f center font 'DejaVu Sans,14'\n"
		"set key at screen 0.5,%.4f center top horizontal Left reverse samplen 1.5 "
		"maxrows 2\nset tmargin 5.5\nset xlabel 'Time (%s); numbers are blocks, r the root'\n"
		"set xrange [0:%.6f]\nset yrange [-0.6:%.1f]\nset ytics (",
		1 - 22.0 / height, 1 - 40.0 / height, p->unit, (double)p->span / p->scale,
		p->rows - 0.4);
	const char *comma = "";
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++) {
		if (p->row[q] < 0)
			continue;
		fb_strbuf_printf(b, "%s'%s' %d", comma, sched_queue_names[q], p->row[q]);
		comma = ", ";
	}
	fb_strbuf_add(b,
		")\nset border 1 lc rgb '#888888'\n"
		"set tics nomirror out scale 0.8,0.4 textcolor rgb '#333333'\nset ytics scale 0\n"
		"set grid xtics lc rgb '#e4e4e4' lw 1\n"
		"set style fill solid 1.0 border lc rgb '#ffffff'\n");
}

void timeline_plot_text(const struct timeline *t, int rank, const char *svg, struct fb_strbuf *b)
{
	struct picture p;
	lay_out(&p, t, rank);
	preamble(b, &p, rank, svg);
	for (int k = 0; k < KINDS; k++)
		if (p.used[k])
			boxes(b, &p, k);
	labels(b, &p);
	fb_strbuf_add(b, "plot ");
	for (int k = 0; k < KINDS; k++)
		if (p.used[k])
			fb_strbuf_printf(b,
				"$kind%d using 1:2:3:4:5:6 with boxxyerror lc rgb '%s' title "
				"'%s', ",
				k, kinds[k].colour, kinds[k].label);
	fb_strbuf_add(b,
		"$units using 1:2:3 with labels font 'DejaVu Sans,9' textcolor rgb '#000000' "
		"notitle\n");
}

static int run_gnuplot(const char *dir, const char *script, struct fb_err *e)
{
	static const char *const env[] = {"LC_ALL=C", NULL};
	char program[4096];
	if (fb_find_program("gnuplot", program, sizeof(program)) != 0) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOENT,
			"gnuplot is not installed, so %s/%s is not drawn", dir, script);
		fb_hint(e, "apt-get install gnuplot-nox fonts-dejavu-core, then: gnuplot %s",
			script);
		return -ENOENT;
	}
	const char *const argv[] = {program, "-d", script, NULL};
	struct fb_proc_opts o = {.env = env,
		.cwd = dir,
		.capture = 4096,
		.deadline_ns = fb_deadline_in(GNUPLOT_DEADLINE_NS)};
	struct fb_proc_result r;
	int rc = fb_proc_run(argv, &o, &r, e);
	if (rc == 0 && r.status != 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"gnuplot ended with status %d on %s/%s: %.300s", r.status, dir, script,
			r.err && *r.err ? r.err : "it said nothing");
	fb_proc_result_free(&r);
	return rc;
}

int timeline_picture(const struct timeline *t, int rank, const char *base, struct fb_err *e)
{
	char path[4096], dir[4096];
	struct fb_strbuf b = {0};
	const char *slash = strrchr(base, '/'), *name = slash ? slash + 1 : base;
	if (snprintf(path, sizeof(path), "%s.svg", base) >= (int)sizeof(path))
		return fb_fail_usage(e, "%s: the path is too long", base);
	/* A picture of an earlier run must not stand beside new data. */
	unlink(path);
	snprintf(path, sizeof(path), "%s.svg", name);
	timeline_plot_text(t, rank, path, &b);
	snprintf(path, sizeof(path), "%s.gp", base);
	int rc = write_text(&b, path, e);
	if (rc != 0)
		return rc;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - base) + 1 : 1, slash ? base : ".");
	snprintf(path, sizeof(path), "%s.gp", name);
	return run_gnuplot(dir, path, e);
}
