// SPDX-License-Identifier: Apache-2.0
/*
 * Several rails at once: a thread for each, started together, all ended by the first that gives up.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "verbs/state.h"

struct member {
	pthread_t thread;
	struct verbs_state *s;
	unsigned rail;
	verbs_rail_fn fn;
	void *arg;
	struct verbs_wait wait;
	struct fb_err err;
	atomic_uint *ready;
	unsigned count;
	int rc;
};

/* Start together: the threads meet here, and only then does the first clock read happen. */
static int meet(struct member *m)
{
	atomic_fetch_add(m->ready, 1);
	while (atomic_load(m->ready) < m->count) {
		int rc = verbs_wait_check(&m->wait);
		if (rc)
			return rc;
		sched_yield();
	}
	return 0;
}

static int work(struct member *m)
{
	m->rc = meet(m);
	if (m->rc == 0)
		m->rc = m->fn(m->s, m->rail, &m->wait, m->arg);
	if (m->rc)
		atomic_store(m->wait.stop, 1);
	return m->rc;
}

static void *thread_main(void *arg)
{
	struct member *m = arg;
	struct verbs_placed placed;

	m->s->thread_node[m->rail] = verbs_place_thread(
		verbs_place_node(m->s->job->p.numa, m->s->rail[m->rail].dev->numa_node), &placed);
	work(m);
	return NULL;
}

/* The caller goes on asking run control while it waits: a signal or a lost peer ends all rails. */
static void join(struct member *m, struct verbs_wait *owner)
{
	static const struct timespec ms = {0, 1000000};

	while (pthread_tryjoin_np(m->thread, NULL) == EBUSY) {
		(void)verbs_wait_check(owner);
		nanosleep(&ms, NULL);
	}
}

int verbs_state_each(struct verbs_state *s, const struct fb_point *p, verbs_rail_fn fn, void *arg,
	struct fb_err *e)
{
	unsigned first, count = verbs_point_rails(s, p, &first), started = 1;
	struct member m[VERBS_MAX_RAILS];
	atomic_uint ready;
	const struct member *bad = NULL;

	atomic_init(&ready, 0);
	atomic_store(&s->stop, 0);
	memset(m, 0, sizeof m[0] * count);
	for (unsigned i = 0; i < count; i++) {
		m[i] = (struct member){.s = s,
			.rail = first + i,
			.fn = fn,
			.arg = arg,
			.ready = &ready,
			.count = count,
			.wait = {i ? NULL : s->run, &s->stop, fb_run_deadline(s->run), &m[i].err}};
	}
	for (; started < count; started++) {
		int err = pthread_create(&m[started].thread, NULL, thread_main, &m[started]);
		if (err) {
			fb_fail(&m[0].err, FB_EXIT_UNMEASURED, err,
				"cannot start a thread for rail %u: %s", started, strerror(err));
			atomic_store(&s->stop, 1);
			break;
		}
	}
	if (m[0].err.code == 0)
		work(&m[0]);
	for (unsigned i = 1; i < started; i++)
		join(&m[i], &m[0].wait);
	for (unsigned i = 0; i < started; i++) {
		if (m[i].err.code && (!bad || bad->err.code == -ECANCELED))
			bad = &m[i];
	}
	if (!bad)
		return 0;
	if (e->code == 0)
		*e = bad->err;
	return bad->err.code;
}
