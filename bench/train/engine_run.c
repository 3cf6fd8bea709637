// SPDX-License-Identifier: Apache-2.0
/*
 * Walking a schedule: one thread runs the compute queue in order; the other queues have at most one
 * task under way each, begun as soon as it may, looked at between compute tasks, between products
 * and while the compute queue stands still. What it stands still for is exposed time.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"
#include "bench/train/engine_priv.h"

/* Looks at the network from inside compute: not more often than this. */
#define POLL_NS 20000u
/* A wait that sleeps looks again after this at the latest, and polls for so long first. */
#define SLEEP_NS 100000u
#define SPIN_NS  30000u

uint64_t engine_now(void)
{
	return fb_clock_ns();
}

static const struct sched_task *task(const struct engine *g, int i)
{
	return &g->sched.v[i];
}

static int next_of(const struct engine *g, enum sched_queue q, int from)
{
	while (from < g->sched.n && task(g, from)->queue != q)
		from++;
	return from;
}

/* The first task that i still waits for; -1: none. */
static int blocked_by(const struct engine *g, int i)
{
	const struct sched_task *t = task(g, i);
	for (int w = 0; w < SCHED_MAX_WAITS; w++)
		if (t->waits[w] >= 0 && !g->over[t->waits[w]])
			return t->waits[w];
	return -1;
}

static void end_task(struct engine *g, int i)
{
	engine_finish(g, task(g, i));
	g->time[i].end = engine_now();
	g->over[i] = true;
}

static int advance_queue(struct engine *g, enum sched_queue q, bool *moved, struct fb_err *e)
{
	struct queue_state *s = &g->queue[q];
	bool over = false;
	int rc = 0;
	if (s->running >= 0) {
		rc = engine_poll_task(g, task(g, s->running), &over, e);
		if (rc != 0 || !over)
			return rc;
		end_task(g, s->running);
		s->running = -1;
		*moved = true;
	}
	while (s->next < g->sched.n && blocked_by(g, s->next) < 0) {
		int i = s->next;
		g->time[i].start = engine_now();
		g->time[i].waited_for = -1;
		rc = engine_begin(g, task(g, i), &over, e);
		if (rc != 0)
			return rc;
		s->next = next_of(g, q, i + 1);
		*moved = true;
		if (!over) {
			s->running = i;
			return 0;
		}
		end_task(g, i);
	}
	return 0;
}

static int advance(struct engine *g, struct fb_err *e)
{
	bool moved = true;
	int rc = 0;
	/* What a task's end does may compute, and compute polls. */
	g->in_poll = true;
	while (moved && rc == 0) {
		moved = false;
		for (int q = SCHED_COMPUTE + 1; q < SCHED_QUEUE_COUNT && rc == 0; q++)
			rc = advance_queue(g, (enum sched_queue)q, &moved, e);
	}
	g->in_poll = false;
	return rc;
}

void engine_poll(void *arg)
{
	struct engine *g = arg;
	uint64_t now = engine_now();
	if (!g->sched.n || !g->stats || g->in_poll || g->error.code || now - g->polled < POLL_NS)
		return;
	advance(g, &g->error);
	g->polled = now;
}

static int timed_out(struct engine *g, const char *what, struct fb_err *e)
{
	int rc = fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
		"rank %d: step %llu did not end in time: it waits for %s", g->rank,
		(unsigned long long)g->step_number, what);
	fb_hint(e, "is every rank alive and as fast as the others? A longer step needs a longer "
		   "--step-timeout");
	return rc;
}

static int may_wait(struct engine *g, const char *what, struct fb_err *e)
{
	if (fb_stop_requested())
		return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal in step %llu",
			(unsigned long long)g->step_number);
	return engine_now() > g->deadline ? timed_out(g, what, e) : 0;
}

/* Nothing to do: give the processor to whoever has, for not longer than until something can
 * happen. */
static void rest(struct engine *g, uint64_t since)
{
	uint64_t now = engine_now(), wake = g->p2p_ops->wake ? g->p2p_ops->wake(g->p2p) : 0;
	if (now - since < SPIN_NS && wake <= now) {
		sched_yield();
		return;
	}
	uint64_t ns = wake > now && wake - now < SLEEP_NS ? wake - now
		      : wake > now                        ? SLEEP_NS
							  : 20000;
	struct timespec t = {.tv_nsec = (long)ns};
	nanosleep(&t, NULL);
}

static void name_task(const struct engine *g, int i, char *buf, size_t len)
{
	const struct sched_task *t = task(g, i);
	snprintf(buf, len, "%s of %s%d (task %d)", sched_op_names[t->op],
		t->unit == g->units - 1 ? "the root unit, number " : "block ", t->unit, i);
}

/* Until task i may run (or, with own, has ended): what stands still is exposed time of the task
 * waited for. */
static int stand_still(struct engine *g, int i, bool own, struct fb_err *e)
{
	uint64_t began = engine_now(), mark = began, copied = g->inline_ns;
	int rc = advance(g, e), by;
	while (rc == 0 && (by = own ? (g->over[i] ? -1 : i) : blocked_by(g, i)) >= 0) {
		char what[96];
		name_task(g, by, what, sizeof(what));
		rc = may_wait(g, what, e);
		if (rc != 0)
			break;
		rest(g, began);
		rc = advance(g, e);
		uint64_t now = engine_now();
		/* Copies made meanwhile have been charged to themselves. */
		g->stats->exposed_ns[task(g, by)->op] += now - mark - (g->inline_ns - copied);
		copied = g->inline_ns;
		g->time[i].waited_for = by;
		mark = now;
	}
	g->time[i].waited = engine_now() - began;
	return rc;
}

static int run_compute(struct engine *g, int i, struct fb_err *e)
{
	const struct sched_task *t = task(g, i);
	g->time[i] = (struct task_time){.waited_for = -1};
	int rc = stand_still(g, i, false, e);
	if (rc != 0)
		return rc;
	uint64_t copied = g->inline_ns;
	g->time[i].start = engine_now();
	engine_compute(g, t);
	g->time[i].end = engine_now();
	g->over[i] = true;
	uint64_t ns = g->time[i].end - g->time[i].start - (g->inline_ns - copied);
	if (t->op == SCHED_UPDATE || t->op == SCHED_NORM)
		g->stats->optimizer_ns += ns;
	else
		g->stats->compute_ns += ns;
	if (g->error.code) {
		*e = g->error;
		return e->code;
	}
	return 0;
}

int engine_run(struct engine *g, struct fb_err *e)
{
	int rc = 0, i;
	memset(g->over, 0, (size_t)g->sched.n * sizeof(*g->over));
	for (int q = 0; q < SCHED_QUEUE_COUNT; q++) {
		g->queue[q].running = -1;
		g->queue[q].next = next_of(g, (enum sched_queue)q, 0);
	}
	struct queue_state *compute = &g->queue[SCHED_COMPUTE];
	while (rc == 0 && compute->next < g->sched.n) {
		rc = run_compute(g, compute->next, e);
		compute->next = next_of(g, SCHED_COMPUTE, compute->next + 1);
	}
	for (i = 0; rc == 0 && i < g->sched.n; i++) {
		uint64_t waited = g->time[i].waited;
		int by = g->time[i].waited_for;
		if (g->over[i])
			continue;
		rc = stand_still(g, i, true, e);
		g->time[i].waited = waited;
		g->time[i].waited_for = by;
	}
	return rc;
}

int engine_wait(struct engine *g, struct exchange *x, const char *what, struct fb_err *e)
{
	uint64_t began = engine_now();
	bool done = false;
	int rc = exchange_test(x, &done, e);
	while (rc == 0 && !done) {
		rc = may_wait(g, what, e);
		if (rc == 0) {
			rest(g, began);
			rc = exchange_test(x, &done, e);
		}
	}
	return rc;
}
