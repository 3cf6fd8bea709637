// SPDX-License-Identifier: Apache-2.0
/*
 * The trace is JSON that holds every task that ran, in its place and with its times, none over
 * another; the picture draws, and shows all rows and kinds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/train/schedule_rig.h"
#include "bench/train/timeline.h"

#define RANKS 2

struct rig {
	struct step_config c;
	struct schedule s;
	struct task_time *times[RANKS];
	struct timeline_rank rank[RANKS];
	struct timeline t;
};

/* Times from the recurrence, shifted, as if measured; every compute task 1 us, 100 bytes/us. */
static void open_rig(struct rig *r, const char *strategy)
{
	const struct sched_machine m = {.latency_ns = 50, .ns_per_byte = 1};
	struct sched_times t;
	struct fb_err e = {0};
	r->c = config(strategy, RANKS, 3, 1);
	r->c.clip = true;
	build(&r->c, &r->s);
	double *ns = calloc((size_t)r->s.n, sizeof(double));
	double *bytes = calloc((size_t)r->s.n, sizeof(double));
	assert_true(ns && bytes);
	for (int i = 0; i < r->s.n; i++) {
		ns[i] = r->s.v[i].op == SCHED_RELEASE ? 0 : 1000;
		bytes[i] = schedule_task_bytes(&r->c, &r->s.v[i]);
	}
	assert_int_equal(schedule_times(&r->s, &m, ns, bytes, &t, &e), 0);
	for (int k = 0; k < RANKS; k++) {
		uint64_t clock = 5000000u * (unsigned)(k + 1) + 7u, free_at = clock;
		r->times[k] = calloc((size_t)r->s.n, sizeof(struct task_time));
		assert_non_null(r->times[k]);
		for (int i = 0; i < r->s.n; i++) {
			struct task_time *x = &r->times[k][i];
			*x = (struct task_time){.start = clock + (uint64_t)t.start[i],
				.end = clock + (uint64_t)t.end[i],
				.waited_for = -1};
			if (r->s.v[i].queue != SCHED_COMPUTE)
				continue;
			x->waited = x->start - free_at;
			free_at = x->end;
			if (x->waited)
				x->waited_for = r->s.v[i].waits[0];
		}
		r->rank[k].times = r->times[k];
		r->rank[k].origin = timeline_origin(&r->s, r->times[k]);
		assert_int_equal(r->rank[k].origin, clock);
	}
	r->t = (struct timeline){.step = &r->c, .schedule = &r->s, .rank = r->rank, .ranks = RANKS};
	schedule_times_free(&t);
	free(bytes);
	free(ns);
}
static void close_rig(struct rig *r)
{
	for (int k = 0; k < RANKS; k++)
		free(r->times[k]);
	schedule_free(&r->s);
}

/* ---- trace ----------------------------------------------------------------------------------- */

static json_t *trace_of(const struct rig *r)
{
	struct fb_strbuf b = {0};
	struct fb_err e = {0};
	timeline_trace_text(&r->t, &b);
	json_t *doc = fb_json_parse(b.s, b.len, "trace", &e);
	if (!doc)
		fail_msg("%s", e.msg);
	fb_strbuf_free(&b);
	return doc;
}

/* The complete event of a task of a rank, NULL: none. */
static const json_t *event_of(const json_t *events, int rank, int task)
{
	size_t i;
	json_t *v;
	json_array_foreach (events, i, v)
		if (strcmp(fb_json_str(v, "ph", ""), "X") == 0 &&
			fb_json_int(v, "pid", -1) == rank + 1 &&
			fb_json_int(json_object_get(v, "args"), "task", -1) == task)
			return v;
	return NULL;
}

static void every_task_that_ran_is_in_the_trace(void **state)
{
	static const char *const strategies[] = {"ddp", "zero1", "zero3", "hybrid:1", "offload"};
	for (int k = 0; k < N(strategies); k++) {
		struct rig r;
		open_rig(&r, strategies[k]);
		json_t *doc = trace_of(&r);
		const json_t *events = json_object_get(doc, "traceEvents");
		for (int i = 0; i < RANKS * r.s.n; i++) {
			int rank = i / r.s.n, task = i % r.s.n;
			const struct task_time *x = &r.times[rank][task];
			const json_t *v = event_of(events, rank, task);
			if (r.s.v[task].op == SCHED_RELEASE) {
				assert_null(v);
				continue;
			}
			assert_non_null(v);
			double ts = (double)(x->start - r.rank[rank].origin) / 1000;
			double dur = (double)(x->end - x->start) / 1000;
			assert_true(fb_json_num(v, "ts", -1) > ts - 1e-7 &&
				    fb_json_num(v, "ts", -1) < ts + 1e-7);
			assert_true(fb_json_num(v, "dur", -1) > dur - 1e-7 &&
				    fb_json_num(v, "dur", -1) < dur + 1e-7);
			assert_int_equal(fb_json_int(v, "tid", -1), r.s.v[task].queue + 1);
			assert_string_equal(
				fb_json_str(v, "cat", ""), sched_queue_names[r.s.v[task].queue]);
		}
		json_decref(doc);
		close_rig(&r);
	}
}

static void names_tell_what_ran_and_bytes_what_went(void **state)
{
	struct rig r;
	open_rig(&r, "zero3");
	json_t *doc = trace_of(&r);
	const json_t *events = json_object_get(doc, "traceEvents");
	int fwd = find(&r.s, SCHED_FWD, 1, 0), gather = find(&r.s, SCHED_GATHER, 3, 0);
	int norm = find(&r.s, SCHED_NORM, -1, -1);
	const json_t *v = event_of(events, 0, fwd);
	assert_string_equal(fb_json_str(v, "name", ""), "fwd block 1");
	assert_int_equal(fb_json_int(json_object_get(v, "args"), "micro_batch", -1), 0);
	v = event_of(events, 1, gather);
	assert_string_equal(fb_json_str(v, "name", ""), "all_gather root");
	assert_int_equal(fb_json_int(json_object_get(v, "args"), "bytes", -1),
		(int64_t)schedule_task_bytes(&r.c, &r.s.v[gather]));
	assert_string_equal(fb_json_str(event_of(events, 0, norm), "name", ""), "norm");
	/* processes and threads have names */
	size_t i, named = 0;
	json_t *m;
	json_array_foreach (events, i, m)
		named += strcmp(fb_json_str(m, "ph", ""), "M") == 0 &&
			 strcmp(fb_json_str(json_object_get(m, "args"), "name", ""), "") != 0;
	assert_int_equal(named, RANKS * (1 + 3)); /* a rank; compute, gather, reduce */
	json_decref(doc);
	close_rig(&r);
}

static void standing_still_is_shown_and_nothing_overlaps(void **state)
{
	struct rig r;
	open_rig(&r, "zero3");
	json_t *doc = trace_of(&r);
	const json_t *events = json_object_get(doc, "traceEvents"), *v, *w;
	int waits = 0, pairs = 0;
	for (size_t i = 0; i < json_array_size(events); i++) {
		v = json_array_get(events, i);
		if (strcmp(fb_json_str(v, "ph", ""), "X") != 0)
			continue;
		waits += strcmp(fb_json_str(v, "cat", ""), "exposed") == 0;
		double from = fb_json_num(v, "ts", -1), to = from + fb_json_num(v, "dur", -1);
		for (size_t j = 0; j < i; j++) {
			w = json_array_get(events, j);
			if (strcmp(fb_json_str(w, "ph", ""), "X") != 0 ||
				fb_json_int(w, "pid", 0) != fb_json_int(v, "pid", 0) ||
				fb_json_int(w, "tid", 0) != fb_json_int(v, "tid", 0))
				continue;
			double a = fb_json_num(w, "ts", -1), b = a + fb_json_num(w, "dur", -1);
			assert_true(b <= from + 1e-6 || a >= to - 1e-6);
			pairs++;
		}
	}
	assert_true(waits > 0 && pairs > 100);
	/* the first thing a rank of zero3 does is to wait for the root's parameters */
	int embed = find(&r.s, SCHED_EMBED_FWD, 3, 0);
	assert_true(r.times[0][embed].waited > 0);
	json_decref(doc);
	close_rig(&r);
}

static void tasks_that_did_not_run_are_left_out(void **state)
{
	struct rig r;
	open_rig(&r, "ddp");
	int up = find(&r.s, SCHED_UPDATE, 0, -1);
	r.times[0][up] = (struct task_time){.waited_for = -1};
	json_t *doc = trace_of(&r);
	assert_null(event_of(json_object_get(doc, "traceEvents"), 0, up));
	assert_non_null(event_of(json_object_get(doc, "traceEvents"), 1, up));
	json_decref(doc);
	close_rig(&r);
}

static void a_trace_that_cannot_be_written_says_so(void **state)
{
	struct rig r;
	struct fb_err e = {0};
	open_rig(&r, "ddp");
	assert_true(timeline_trace(&r.t, "/nowhere/at/all.json", &e) < 0);
	assert_non_null(strstr(e.msg, "/nowhere/at/all.json"));
	close_rig(&r);
}

/* ---- picture --------------------------------------------------------------------------------- */

static void the_picture_is_drawn(void **state)
{
	static const char *const shown[] = {"forward", "backward", "all-gather", "reduce-scatter",
		"update", "stands still", "compute", "gather", "reduce"};
	char dir[] = "/tmp/fabricbench-timeline-XXXXXX", base[128], path[160];
	char program[4096], *svg = NULL;
	size_t len = 0;
	struct rig r;
	struct fb_err e = {0};
	bool installed = fb_find_program("gnuplot", program, sizeof(program)) == 0;
	assert_non_null(mkdtemp(dir));
	open_rig(&r, "zero3");
	/* a model's name may come from a file */
	snprintf(r.c.model.name, sizeof(r.c.model.name), "it's `date` \"$(x)\"");
	snprintf(base, sizeof(base), "%s/a step", dir);
	int rc = timeline_picture(&r.t, 1, base, &e);
	if (rc != (installed ? 0 : -ENOENT))
		fail_msg("%s", e.msg);
	snprintf(path, sizeof(path), "%s.%s", base, installed ? "svg" : "gp");
	assert_int_equal(fb_read_file(path, 1 << 22, &svg, &len, &e), 0);
	for (int i = 0; i < N(shown); i++)
		if (!strstr(svg, shown[i]))
			fail_msg("the picture does not show \"%s\"", shown[i]);
	assert_non_null(strstr(svg, "`date`"));
	assert_null(strstr(svg, "storage"));
	free(svg);
	snprintf(path, sizeof(path), "%s.svg", base);
	assert_int_equal(unlink(path) == 0, installed);
	snprintf(path, sizeof(path), "%s.gp", base);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	close_rig(&r);
}

static void without_gnuplot_the_script_stays(void **state)
{
	char dir[] = "/tmp/fabricbench-timeline-XXXXXX", base[128], path[160],
	     *was = getenv("PATH");
	struct rig r;
	struct fb_err e = {0};
	was = was ? strdup(was) : NULL;
	assert_non_null(mkdtemp(dir));
	open_rig(&r, "ddp");
	snprintf(base, sizeof(base), "%s/step", dir);
	snprintf(path, sizeof(path), "%s.svg", base);
	assert_int_equal(fb_write_file_atomic(path, "old", 3, &e), 0);
	assert_int_equal(setenv("PATH", dir, 1), 0);
	assert_int_equal(timeline_picture(&r.t, 0, base, &e), -ENOENT);
	if (was)
		assert_int_equal(setenv("PATH", was, 1), 0);
	assert_true(e.hint[0] != '\0');
	assert_int_not_equal(access(path, F_OK), 0); /* nothing old beside the new script */
	snprintf(path, sizeof(path), "%s.gp", base);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	free(was);
	close_rig(&r);
}

static void a_script_holds_every_box(void **state)
{
	struct rig r;
	struct fb_strbuf b = {0};
	open_rig(&r, "offload");
	timeline_plot_text(&r.t, 0, "x.svg", &b);
	int lines = 0, tasks = 0, stood = 0;
	for (const char *line = b.s; line; line = strchr(line, '\n')) {
		double v[6];
		line += *line == '\n';
		lines += sscanf(line, "%lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4],
				 &v[5]) == 6;
	}
	for (int i = 0; i < r.s.n; i++) {
		tasks += r.s.v[i].op != SCHED_RELEASE;
		stood += r.s.v[i].op != SCHED_RELEASE && r.times[0][i].waited_for >= 0;
	}
	assert_int_equal(lines, tasks + stood);
	assert_non_null(strstr(b.s, "'storage'"));
	assert_non_null(strstr(b.s, "set output 'x.svg'"));
	fb_strbuf_free(&b);
	close_rig(&r);
}

/* ---- ranks together -------------------------------------------------------------------------- */

struct saved {
	struct rig rig;
	const char *path;
	bool one_clock;
	int short_rank; /* sends one task less; -1: none */
};

static int save_rank(struct fb_oob *o, void *arg, struct fb_err *e)
{
	const struct saved *a = arg;
	int rank = fb_oob_rank(o);
	struct schedule s = a->rig.s;
	s.n -= rank == a->short_rank;
	return timeline_save(o, &a->rig.c, &s, a->rig.times[rank], a->one_clock, a->path,
		fb_deadline_in(20000000000u), e);
}

static void ranks_save_one_trace_and_a_picture(void **state)
{
	char dir[] = "/tmp/fabricbench-timeline-XXXXXX", path[128], other[128], *text = NULL;
	size_t len;
	struct saved a = {.path = path, .short_rank = -1};
	struct fb_err e = {0};
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/trace.json", dir);
	open_rig(&a.rig, "zero2");
	int embed = find(&a.rig.s, SCHED_EMBED_FWD, 3, 0);
	for (int shared = 0; shared < 2; shared++) {
		a.one_clock = shared;
		if (fb_oob_local_run(RANKS, save_rank, &a, &e) != 0)
			fail_msg("%s", e.msg);
		assert_int_equal(fb_read_file(path, 1 << 22, &text, &len, &e), 0);
		json_t *doc = fb_json_parse(text, len, path, &e);
		const json_t *events = json_object_get(doc, "traceEvents");
		double first = fb_json_num(event_of(events, 0, embed), "ts", -1);
		double second = fb_json_num(event_of(events, 1, embed), "ts", -1);
		/* the ranks' clocks are 5 ms apart, see open_rig() */
		assert_true(second - first == (shared ? 5000.0 : 0.0));
		json_decref(doc);
		free(text);
	}
	a.short_rank = 1;
	assert_int_equal(fb_oob_local_run(RANKS, save_rank, &a, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "rank 1"));
	snprintf(other, sizeof(other), "%s/trace.gp", dir);
	assert_int_equal(unlink(other), 0);
	snprintf(other, sizeof(other), "%s/trace.svg", dir);
	unlink(other);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	close_rig(&a.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_task_that_ran_is_in_the_trace),
		cmocka_unit_test(names_tell_what_ran_and_bytes_what_went),
		cmocka_unit_test(standing_still_is_shown_and_nothing_overlaps),
		cmocka_unit_test(tasks_that_did_not_run_are_left_out),
		cmocka_unit_test(a_trace_that_cannot_be_written_says_so),
		cmocka_unit_test(the_picture_is_drawn),
		cmocka_unit_test(without_gnuplot_the_script_stays),
		cmocka_unit_test(a_script_holds_every_box),
		cmocka_unit_test(ranks_save_one_trace_and_a_picture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
