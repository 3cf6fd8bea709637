// SPDX-License-Identifier: Apache-2.0
/*
 * The loop over pairs: the rounds of the schedule, a judgement, the launches it asks for, and again
 * until it asks for none. A pair that fails is a result like any other; only the measurer's own end
 * (a signal, a deadline, no memory) ends the loop, and then what there is is judged.
 */
#include "verbs/pairs_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the fleet's measurements");
}

/* One more launch to make. */
static int plan(struct pairs_run *r, const struct pairs_measure *m, struct fb_err *e)
{
	struct pairs_log *l = &r->log;

	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 1024;
		struct pairs_measure *ms = realloc(l->m, cap * sizeof *ms);
		if (ms)
			l->m = ms;
		json_t **rs = ms ? realloc(l->result, cap * sizeof(json_t *)) : NULL;
		if (!rs)
			return no_memory(e);
		l->result = rs;
		l->cap = cap;
	}
	l->result[l->n] = NULL;
	l->m[l->n++] = *m;
	return 0;
}

static char *never_joined(const struct pairs_fleet *f, uint32_t a, uint32_t b)
{
	const struct pairs_member *m = &f->member[f->absent[a] ? a : b];

	return strdup(m->reason[0] ? m->reason : "the host never joined");
}

/* Batches hold reachable pairs only: those of absent hosts are settled here. */
static int measure_batch(struct pairs_run *r, size_t first, struct fb_err *e)
{
	struct pairs_fleet *f = r->fleet;
	size_t end = r->log.n;
	int rc = 0;

	for (size_t i = first; i < end;) {
		struct pairs_measure *m = &r->log.m[i];
		if (!f->absent[m->a] && !f->absent[m->b]) {
			i++;
			continue;
		}
		m->state = PAIRS_UNREACHABLE;
		m->reason = never_joined(f, m->a, m->b);
		/* To the front, out of the measurer's sight. */
		struct pairs_measure swap = r->log.m[first];
		r->log.m[first] = *m;
		r->log.m[i] = swap;
		first++;
		if (i < first)
			i = first;
	}
	if (end > first)
		rc = r->measure(r, first, end - first, e);
	r->taken++;
	return rc == 0 && r->progress ? r->progress(r, e) : rc;
}

static int measure_step(struct pairs_run *r, struct pairs_step step, struct fb_err *e)
{
	uint32_t n = r->fleet->hosts;
	size_t first = r->log.n;

	for (uint32_t slot = 0; slot < pairs_per_round(n); slot++) {
		struct pairs_measure m = {.rail = step.rail,
			.round = step.round,
			.phase = PAIRS_ROUNDS,
			.state = PAIRS_NOT_RUN};
		pairs_slot(step.round, slot, n, &m.a, &m.b);
		int rc = plan(r, &m, e);
		if (rc)
			return rc;
	}
	return measure_batch(r, first, e);
}

static int judge(struct pairs_run *r, struct fb_err *e)
{
	struct pairs_input in = {.hosts = r->fleet->hosts,
		.rails = r->fleet->rails,
		.measure = r->log.m,
		.measures = r->log.n,
		.group = r->fleet->group,
		.absent = r->fleet->absent};

	pairs_judgement_free(&r->judgement);
	return pairs_judge(&r->opts, &in, &r->judgement, e);
}

/* The tasks of a judgement, one round of them after the other. */
static int confirm(struct pairs_run *r, struct fb_err *e)
{
	const struct pairs_judgement *j = &r->judgement;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < j->tasks;) {
		size_t first = r->log.n;
		uint32_t round = j->task[i].round;
		for (; rc == 0 && i < j->tasks && j->task[i].round == round; i++) {
			struct pairs_measure m = {.a = j->task[i].a,
				.b = j->task[i].b,
				.rail = j->task[i].rail,
				.round = round,
				.phase = PAIRS_CONFIRM,
				.state = PAIRS_NOT_RUN};
			rc = plan(r, &m, e);
		}
		if (rc == 0)
			rc = measure_batch(r, first, e);
	}
	return rc;
}

int pairs_run(struct pairs_run *r, struct fb_err *e)
{
	struct fb_err ignored = {0};
	int rc = pairs_schedule_init(
		&r->schedule, r->fleet->hosts, r->fleet->rails, r->rounds, 0, e);

	if (rc)
		return rc;
	r->steps = pairs_schedule_steps(&r->schedule);
	for (uint64_t i = 0; rc == 0 && i < r->steps; i++)
		rc = measure_step(r, pairs_schedule_step(&r->schedule, i), e);
	if (rc) {
		(void)!judge(r, &ignored);
		return rc;
	}
	rc = judge(r, e);
	for (r->stages = 0; rc == 0 && r->judgement.tasks > 0 && r->stages < PAIRS_STAGES;
		r->stages++) {
		rc = confirm(r, e);
		int err = judge(r, rc ? &ignored : e);
		rc = rc ? rc : err;
	}
	return rc;
}

void pairs_run_free(struct pairs_run *r)
{
	for (size_t i = 0; i < r->log.n; i++) {
		free((char *)(uintptr_t)r->log.m[i].reason);
		json_decref(r->log.result[i]);
	}
	free(r->log.m);
	free(r->log.result);
	memset(&r->log, 0, sizeof r->log);
	pairs_judgement_free(&r->judgement);
}
