// SPDX-License-Identifier: Apache-2.0
/*
 * Schedules of every strategy are safe and whole, and a safe one with anything changed is refused;
 * their bytes are those of the closed form.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench/train/schedule_rig.h"
#include "bench/train/schedule_sum.h"

static void is_safe(const struct step_config *c)
{
	struct schedule s;
	struct fb_err e = {0};
	build(c, &s);
	assert_true(s.n <= s.cap);
	if (schedule_check(c, &s, &e) != 0)
		fail_msg("%s, %d layers, %d micro-batches: %s", c->strategy.name,
			(int)c->model.layers, c->micro_batches, e.msg);
	schedule_free(&s);
	assert_null(s.v);
}

static void every_schedule_is_safe_and_whole(void **state)
{
	assert_true(every(12, is_safe) > 3000);
}

static void has_the_closed_forms_bytes(const struct step_config *c)
{
	struct schedule s;
	struct step_bytes counted, formula;
	build(c, &s);
	schedule_bytes(c, &s, &counted);
	step_bytes(c, &formula);
	assert_true(counted.all_gather == formula.all_gather);
	assert_true(counted.reduce_scatter == formula.reduce_scatter);
	assert_true(counted.all_reduce == formula.all_reduce);
	assert_true(counted.norm == formula.norm);
	assert_true(counted.offload_out == formula.offload_out);
	assert_true(counted.offload_in == formula.offload_in);
	schedule_free(&s);
}

static void bytes_are_those_of_the_closed_form(void **state)
{
	every(12, has_the_closed_forms_bytes);
}

static void impossible_steps_are_refused(void **state)
{
	static const int bad[][2] = {{0, 1}, {1, 0}, {1 << 20, 1 << 20}};
	for (int i = 0; i < N(bad); i++) {
		struct step_config c = config("zero3", 2, bad[i][0], bad[i][1]);
		struct schedule s;
		struct fb_err e = {0};
		assert_int_equal(schedule_build(&c, &s, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_null(s.v);
	}
}

/* ---- what a schedule must look like ---------------------------------------------------------- */

static int count_of(const struct schedule *s, enum sched_op op)
{
	int n = 0;
	for (int i = 0; i < s->n; i++)
		n += s->v[i].op == op;
	return n;
}

static void collectives_are_as_many_as_the_strategy_says(void **state)
{
	/* of 4 layers, 3 micro-batches: gathers, reduce-scatters, all-reduces, gathers after the
	 * update */
	static const struct {
		const char *strategy;
		bool sync_each;
		int gathers, scatters, reduces, after;
	} known[] = {
		{"ddp", false, 0, 0, 5, 0},
		{"ddp", true, 0, 0, 15, 0},
		{"zero1", false, 0, 5, 0, 5},
		{"zero1", true, 0, 15, 0, 5},
		{"zero2", false, 0, 15, 0, 5},
		{"zero3", true, 1 + 3 * 7, 15, 0, 0},
		{"zero3", false, 1 + 3 * 7, 5, 0, 0},
		{"shard-grad-op", true, 1 + 3 * 4, 15, 0, 0},
		{"hybrid:2", true, 1 + 3 * 7, 15, 15, 0},
		{"hybrid:2", false, 1 + 3 * 7, 5, 5, 0},
		{"offload", false, 1 + 3 * 7, 5, 0, 0},
	};
	for (int i = 0; i < N(known); i++) {
		struct step_config c = config(known[i].strategy, 4, 4, 3);
		c.sync_each = known[i].sync_each;
		struct schedule s;
		build(&c, &s);
		assert_int_equal(count_of(&s, SCHED_GATHER), known[i].gathers);
		assert_int_equal(count_of(&s, SCHED_REDUCE_SCATTER), known[i].scatters);
		assert_int_equal(count_of(&s, SCHED_ALL_REDUCE), known[i].reduces);
		assert_int_equal(count_of(&s, SCHED_PARAM_GATHER), known[i].after);
		assert_int_equal(count_of(&s, SCHED_UPDATE), 5);
		schedule_free(&s);
	}
}

static void names_and_queues_fit_the_ops(void **state)
{
	for (int i = 0; i < SCHED_OP_COUNT; i++)
		assert_true(schedule_queue_of((enum sched_op)i) < SCHED_QUEUE_COUNT);
	assert_string_equal(sched_op_names[SCHED_GATHER], "all_gather");
	assert_string_equal(sched_op_names[SCHED_REDUCE_SCATTER], "reduce_scatter");
	assert_string_equal(sched_op_names[SCHED_PARAM_GATHER], "param_gather");
	assert_string_equal(sched_queue_names[SCHED_Q_STORAGE], "storage");
}

/* ---- changed schedules ----------------------------------------------------------------------- */

static const struct step_config *changed_of;

static void refused(const struct schedule *s, const char *what, int task)
{
	struct fb_err e = {0};
	if (schedule_check(changed_of, s, &e) != -EPROTO)
		fail_msg("%s, %d layers, %d micro-batches, overlap %d: %s of task %d (%s) passes",
			changed_of->strategy.name, (int)changed_of->model.layers,
			changed_of->micro_batches, changed_of->overlap, what, task,
			sched_op_names[s->v[task < s->n ? task : 0].op]);
	assert_true(e.msg[0] != '\0');
}

/* Does `to` wait for `from` by any chain of waits and queues? */
static bool follows(const struct schedule *s, int to, int from)
{
	bool *seen = calloc((size_t)s->n, sizeof(*seen));
	assert_non_null(seen);
	seen[from] = true;
	int last[SCHED_QUEUE_COUNT] = {-1, -1, -1, -1, -1};
	last[s->v[from].queue] = from;
	for (int i = from + 1; i <= to; i++) {
		const struct sched_task *t = &s->v[i];
		for (int w = 0; w < SCHED_MAX_WAITS; w++)
			seen[i] = seen[i] || (t->waits[w] >= from && seen[t->waits[w]]);
		seen[i] = seen[i] || (last[t->queue] >= 0 && seen[last[t->queue]]);
		last[t->queue] = i;
	}
	bool yes = seen[to];
	free(seen);
	return yes;
}

/* A wait that nothing else implies is needed. */
static void without_a_wait(struct schedule *s, int i)
{
	struct sched_task *t = &s->v[i];
	for (int w = 0; w < SCHED_MAX_WAITS; w++) {
		int was = t->waits[w];
		if (was < 0)
			continue;
		t->waits[w] = -1;
		if (!follows(s, i, was))
			refused(s, "a lost wait", i);
		t->waits[w] = i;
		refused(s, "a wait for itself", i);
		t->waits[w] = was;
	}
}

static void with_another_value(struct schedule *s, int i)
{
	struct sched_task *t = &s->v[i], was = *t;
	bool placed =
		t->queue == SCHED_COMPUTE || t->op == SCHED_GATHER || t->queue == SCHED_Q_STORAGE;
	/* after an update a buffer's number says nothing new */
	placed = placed && t->op != SCHED_NORM && t->op != SCHED_STATE_OUT &&
		 t->op != SCHED_PARAMS_IN &&
		 (t->op != SCHED_UPDATE || changed_of->strategy.kind == STRATEGY_OFFLOAD);
	bool graded = t->op == SCHED_HEAD || t->op == SCHED_BWD || t->op == SCHED_EMBED_BWD ||
		      t->op == SCHED_REDUCE_SCATTER || t->op == SCHED_ALL_REDUCE;
	for (int v = -1; placed && v <= 3; v++) {
		t->slot = v;
		if (v != was.slot)
			refused(s, "another slot", i);
	}
	*t = was;
	for (int v = -1; graded && v <= 3; v++) {
		t->gslot = v;
		if (v != was.gslot)
			refused(s, "another gradient buffer", i);
	}
	*t = was;
	for (int op = 0; op <= SCHED_OP_COUNT; op++) {
		t->op = (enum sched_op)op;
		if (t->op != was.op)
			refused(s, "another op", i);
	}
	*t = was;
	for (int d = -1; d <= 1; d += 2) {
		t->unit = was.unit + d;
		refused(s, "another unit", i);
		*t = was;
		t->micro = was.micro + d;
		/* which micro-batch a gather is for, its place in the list says */
		if (t->op != SCHED_GATHER && t->op != SCHED_RELEASE)
			refused(s, "another micro-batch", i);
		*t = was;
		t->count += d;
		if (was.count)
			refused(s, "another count", i);
		*t = was;
	}
	t->queue = (enum sched_queue)((t->queue + 1) % SCHED_QUEUE_COUNT);
	refused(s, "another queue", i);
	*t = was;
	if (graded && t->queue == SCHED_COMPUTE) {
		t->fresh = !t->fresh;
		refused(s, "clearing", i);
	} else if (graded) {
		t->accumulate = !t->accumulate;
		refused(s, "adding", i);
	}
	*t = was;
}

static void left_out(const struct schedule *s, int gone)
{
	struct schedule less = {.v = malloc((size_t)s->n * sizeof(*s->v))};
	assert_non_null(less.v);
	for (int i = 0; i < s->n; i++) {
		if (i == gone)
			continue;
		struct sched_task t = s->v[i];
		for (int w = 0; w < SCHED_MAX_WAITS; w++)
			t.waits[w] = t.waits[w] == gone  ? -1
				     : t.waits[w] > gone ? t.waits[w] - 1
							 : t.waits[w];
		less.v[less.n++] = t;
	}
	refused(&less, "leaving out", gone);
	free(less.v);
}

static void is_refused_when_changed(const struct step_config *c)
{
	struct schedule s;
	if (c->recompute == TR_RECOMPUTE_SELECTIVE || c->offload_file || c->micro_batches > 2)
		return;
	changed_of = c;
	build(c, &s);
	for (int i = 0; i < s.n; i++) {
		without_a_wait(&s, i);
		with_another_value(&s, i);
		left_out(&s, i);
	}
	struct fb_err e = {0};
	assert_int_equal(schedule_check(c, &s, &e), 0); /* all changes were undone */
	schedule_free(&s);
}

static void a_changed_schedule_is_refused(void **state)
{
	every(3, is_refused_when_changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_schedule_is_safe_and_whole),
		cmocka_unit_test(bytes_are_those_of_the_closed_form),
		cmocka_unit_test(impossible_steps_are_refused),
		cmocka_unit_test(collectives_are_as_many_as_the_strategy_says),
		cmocka_unit_test(names_and_queues_fit_the_ops),
		cmocka_unit_test(a_changed_schedule_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
