// SPDX-License-Identifier: Apache-2.0
/*
 * Times on a schedule: its tasks are played through in the order of time, with the rules of the
 * executor (one thread computes, begins collectives and notices their ends) and a link that may be
 * shared. With collectives that begin and end by themselves this is the plain max-plus recurrence.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/train/schedule.h"

/* One queue's place in the list. */
struct lane {
	int next, running; /* tasks; next is n and running is -1 where there is none */
	int sends;         /* exchanges of the running one, still to come after this phase */
	bool late;         /* or it has come to what is added to it */
	double due;        /* when this phase ends */
};
struct player {
	const struct schedule *s;
	const struct sched_machine *m;
	const double *compute_ns, *bytes;
	double *start, *end;
	bool *over;
	struct lane lane[SCHED_QUEUE_COUNT];
	double now, link_free, thread_busy;
};

static int next_of(const struct schedule *s, int q, int from)
{
	while (from < s->n && (int)s->v[from].queue != q)
		from++;
	return from;
}
static bool is_collective(const struct sched_task *t)
{
	return t->queue != SCHED_COMPUTE && t->queue != SCHED_Q_STORAGE;
}

/* When the compute thread looks next, at x or after it. */
static double looked_at(const struct player *p, double x)
{
	const struct sched_machine *m = p->m;
	const struct lane *c = &p->lane[SCHED_COMPUTE];
	x = fmax(x, fmax(p->now, p->thread_busy));
	if (c->running < 0 || x >= c->due)
		return x;
	if (m->polls_between_tasks_only)
		return c->due;
	if (m->poll_ns <= 0)
		return x;
	double from = p->start[c->running];
	/* A moment of looking is one, however it was rounded. */
	double looks = ceil((x - from) / m->poll_ns - 1e-9);
	return fmin(c->due, fmax(x, from + looks * m->poll_ns));
}

static bool may_start(const struct player *p, int i)
{
	const struct sched_task *t = &p->s->v[i];
	for (int w = 0; w < SCHED_MAX_WAITS; w++)
		if (t->waits[w] >= 0 && !p->over[t->waits[w]])
			return false;
	return true;
}

static bool in_two(enum sched_op op)
{
	return op == SCHED_ALL_REDUCE || op == SCHED_NORM_REDUCE;
}

/* Put an exchange of a collective onto the link. @return when it is over */
static double sent(struct player *p, int i, double at)
{
	const struct sched_machine *m = p->m;
	enum sched_op op = p->s->v[i].op;
	double bytes = in_two(op) ? p->bytes[i] / 2 : p->bytes[i];
	double wire = bytes * m->ns_per_byte * (m->factor[op] > 0 ? m->factor[op] : 1);
	if (m->shared_link) {
		at = fmax(at, p->link_free);
		p->link_free = at + wire;
	}
	return at + wire + m->latency_ns;
}

/* The running collective's next phase, false: there is none. */
static bool next_phase(struct player *p, struct lane *l, double at)
{
	double add = p->m->add_ns[p->s->v[l->running].op];
	if (l->sends > 0) {
		l->sends--;
		l->due = sent(p, l->running, at);
	} else if (add > 0 && !l->late && p->bytes[l->running] > 0) {
		l->late = true;
		l->due = at + add;
	} else {
		return false;
	}
	return true;
}

static void start_task(struct player *p, int q, double at)
{
	struct lane *l = &p->lane[q];
	int i = l->next;
	const struct sched_task *t = &p->s->v[i];
	l->next = next_of(p->s, q, i + 1);
	l->running = i;
	l->late = false;
	l->sends = 0;
	p->start[i] = at;
	if (is_collective(t)) {
		l->sends = p->bytes[i] > 0 ? 1 + in_two(t->op) : 0;
		l->due = at;
		next_phase(p, l, at);
		return;
	}
	l->due = at + p->compute_ns[i];
	if (!p->m->copies_inline || (t->op != SCHED_GRADS_OUT && t->op != SCHED_PARAMS_IN))
		return;
	p->thread_busy = l->due;
	if (p->lane[SCHED_COMPUTE].running >= 0)
		p->lane[SCHED_COMPUTE].due += p->compute_ns[i];
}

static void end_phase(struct player *p, int q, double at)
{
	struct lane *l = &p->lane[q];
	if (is_collective(&p->s->v[l->running]) && next_phase(p, l, at))
		return;
	p->end[l->running] = at;
	p->over[l->running] = true;
	l->running = -1;
}

/* The next thing that happens: its time, INFINITY when there is none. What ends comes before what
 * begins, and the compute thread looks around before it begins its next task. */
static double next_event(const struct player *p, int *queue, bool *ends)
{
	double when = INFINITY;
	for (int pass = 0; pass < 2; pass++)
		for (int k = 0; k < SCHED_QUEUE_COUNT; k++) {
			int q = (k + 1) % SCHED_QUEUE_COUNT; /* the compute queue last */
			const struct lane *l = &p->lane[q];
			bool idle = l->running < 0;
			double t;
			if (pass == 0 ? idle
				      : !idle || l->next >= p->s->n || !may_start(p, l->next))
				continue;
			if (q == SCHED_COMPUTE)
				t = pass == 0 ? l->due : fmax(p->now, p->thread_busy);
			else
				t = looked_at(p, pass == 0 ? l->due : p->now);
			if (t < when) {
				when = t;
				*queue = q;
				*ends = pass == 0;
			}
		}
	return when;
}

static int play(struct player *p, struct fb_err *e)
{
	int left = 0, q = 0;
	bool ends = false;
	for (int i = 0; i < SCHED_QUEUE_COUNT; i++)
		p->lane[i] = (struct lane){.next = next_of(p->s, i, 0), .running = -1};
	left = p->s->n;
	while (left > 0) {
		double t = next_event(p, &q, &ends);
		if (isinf(t)) {
			fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"schedule: %d of its tasks never begin", left);
			return -EPROTO;
		}
		p->now = fmax(p->now, t);
		if (ends) {
			end_phase(p, q, p->now);
			left -= p->lane[q].running < 0;
		} else {
			start_task(p, q, p->now);
		}
	}
	return 0;
}

static double charge(double t, double until, enum sched_op op, double exposed[SCHED_OP_COUNT])
{
	if (until <= t)
		return t;
	exposed[op] += until - t;
	return until;
}

void schedule_exposed(const struct schedule *s, const double *start, const double *end,
	double exposed_ns[SCHED_OP_COUNT])
{
	double t = 0;
	for (int i = 0; i < SCHED_OP_COUNT; i++)
		exposed_ns[i] = 0;
	for (int i = 0; i < s->n; i++) {
		const struct sched_task *k = &s->v[i];
		if (k->queue != SCHED_COMPUTE)
			continue;
		for (int w = 0; w < SCHED_MAX_WAITS; w++)
			if (k->waits[w] >= 0)
				t = charge(t, fmin(end[k->waits[w]], start[i]),
					s->v[k->waits[w]].op, exposed_ns);
		t = end[i];
	}
	for (int i = 0; i < s->n; i++)
		t = charge(t, end[i], s->v[i].op, exposed_ns);
}

int schedule_times(const struct schedule *s, const struct sched_machine *m,
	const double *compute_ns, const double *bytes, struct sched_times *t, struct fb_err *e)
{
	size_t n = (size_t)s->n + 1;
	*t = (struct sched_times){0};
	t->start = calloc(n, sizeof(*t->start));
	t->end = calloc(n, sizeof(*t->end));
	bool *over = calloc(n, sizeof(*over));
	int rc = -ENOMEM;
	if (!t->start || !t->end || !over) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the times of %d tasks", s->n);
		goto free_over;
	}
	struct player p = {.s = s,
		.m = m,
		.compute_ns = compute_ns,
		.bytes = bytes,
		.start = t->start,
		.end = t->end,
		.over = over};
	rc = play(&p, e);
	if (rc != 0)
		goto free_over;
	for (int i = 0; i < s->n; i++) {
		t->step_ns = fmax(t->step_ns, t->end[i]);
		if (s->v[i].queue == SCHED_COMPUTE)
			t->compute_ns += t->end[i] - t->start[i];
	}
	schedule_exposed(s, t->start, t->end, t->exposed_ns);
free_over:
	free(over);
	if (rc != 0)
		schedule_times_free(t);
	return rc;
}

void schedule_times_free(struct sched_times *t)
{
	free(t->start);
	free(t->end);
	*t = (struct sched_times){0};
}
