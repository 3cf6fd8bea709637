// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks as threads of one process: a mailbox for each direction of each pair with rank 0, one lock,
 * one condition for each rank. Nothing leaves the process; the code above sees the same calls as
 * over tcp.
 *
 * The group lives until its last handle is closed. A rank that closes with messages still in its
 * mailbox has them delivered; whoever then waits for more of it learns that it has left.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"
#include "bench/oob/oob_priv.h"

struct mail {
	struct mail *next;
	uint32_t len;
	unsigned char data[];
};
struct box {
	struct mail *head, **tail;
};
struct member {
	pthread_cond_t news;
	struct box to_root, from_root;
	bool left;
};
struct group {
	pthread_mutex_t lock;
	int size, open;
	struct member *m;
	struct fb_err dead; /**< set by the first abort; code 0: all is well */
	char host[OOB_HOST];
};

static void group_free(struct group *g)
{
	for (int i = 0; i < g->size; i++) {
		struct box *boxes[] = {&g->m[i].to_root, &g->m[i].from_root};
		for (int k = 0; k < 2; k++) {
			for (struct mail *m = boxes[k]->head, *next; m; m = next) {
				next = m->next;
				free(m);
			}
		}
		pthread_cond_destroy(&g->m[i].news);
	}
	pthread_mutex_destroy(&g->lock);
	free(g->m);
	free(g);
}

static struct group *group_new(int n, struct fb_err *e)
{
	struct group *g = calloc(1, sizeof(*g));
	struct member *m = calloc((size_t)n, sizeof(*m));
	if (!g || !m) {
		free(g);
		free(m);
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d local ranks", n);
		return NULL;
	}
	g->size = n;
	g->m = m;
	oob_hostname(g->host, sizeof(g->host));
	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++) {
		pthread_cond_init(&m[i].news, &attr);
		m[i].to_root.tail = &m[i].to_root.head;
		m[i].from_root.tail = &m[i].from_root.head;
	}
	pthread_condattr_destroy(&attr);
	return g;
}

static struct group *group_of(struct fb_oob *o)
{
	return o->priv;
}

/* The box that `from` fills and `to` empties; one of the two is rank 0. */
static struct box *box_between(struct group *g, int from, int to)
{
	return to == 0 ? &g->m[from].to_root : &g->m[to].from_root;
}

static int dead_locked(struct group *g, struct fb_err *e)
{
	int rc = fb_fail(e, g->dead.exit, g->dead.code, "%s", g->dead.msg);
	if (g->dead.hint[0] != '\0')
		fb_hint(e, "%s", g->dead.hint);
	return rc;
}

static int local_send(struct fb_oob *o, int dst, const void *buf, uint32_t len, uint64_t deadline,
	struct fb_err *e)
{
	(void)deadline; /* a mailbox always has room: nothing to wait for */
	struct group *g = group_of(o);
	struct mail *m = malloc(sizeof(*m) + len);
	if (!m)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message of %u bytes", len);
	m->next = NULL;
	m->len = len;
	if (len > 0)
		memcpy(m->data, buf, len);
	int rc = 0;
	pthread_mutex_lock(&g->lock);
	if (g->dead.code != 0) {
		rc = dead_locked(g, e);
	} else if (g->m[dst].left) {
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, ECONNRESET, "rank %d on %s has left", dst, g->host);
	} else {
		struct box *b = box_between(g, o->rank, dst);
		*b->tail = m;
		b->tail = &m->next;
		m = NULL;
		pthread_cond_signal(&g->m[dst].news);
	}
	pthread_mutex_unlock(&g->lock);
	free(m);
	return rc;
}

static void wait_slice(struct group *g, int rank, uint64_t left_ns)
{
	const uint64_t slice = (uint64_t)OOB_SLICE_MS * 1000000u;
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	uint64_t t = (uint64_t)ts.tv_nsec + (left_ns < slice ? left_ns : slice);
	ts.tv_sec += (time_t)(t / 1000000000u);
	ts.tv_nsec = (long)(t % 1000000000u);
	pthread_cond_timedwait(&g->m[rank].news, &g->lock, &ts);
}

static int local_recv(
	struct fb_oob *o, int src, void **buf, uint32_t *len, uint64_t deadline, struct fb_err *e)
{
	struct group *g = group_of(o);
	struct box *b = box_between(g, src, o->rank);
	const uint64_t begin = fb_clock_ns();
	int rc = 0;
	pthread_mutex_lock(&g->lock);
	while (g->dead.code == 0 && !b->head) {
		const uint64_t now = fb_clock_ns();
		if (g->m[src].left)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "rank %d on %s has left",
				src, g->host);
		else if (fb_stop_requested())
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EINTR,
				"interrupted while waiting for rank %d", src);
		else if (now >= deadline)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"rank %d on %s sent nothing within %.1f s", src, g->host,
				oob_seconds(now - begin));
		if (rc == -ETIMEDOUT)
			fb_hint(e, OOB_SILENT_HINT);
		if (rc != 0)
			break;
		wait_slice(g, o->rank, deadline - now);
	}
	struct mail *m = NULL;
	if (rc == 0 && g->dead.code != 0) {
		rc = dead_locked(g, e);
	} else if (rc == 0) {
		m = b->head;
		b->head = m->next;
		if (!b->head)
			b->tail = &b->head;
	}
	pthread_mutex_unlock(&g->lock);
	if (!m)
		return rc;
	*len = m->len;
	*buf = malloc(m->len > 0 ? m->len : 1);
	if (*buf)
		memcpy(*buf, m->data, m->len);
	free(m);
	if (!*buf)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message of %u bytes", *len);
	return 0;
}

static int local_lost(struct fb_oob *o, struct fb_err *e)
{
	struct group *g = group_of(o);
	int rc = 0;
	pthread_mutex_lock(&g->lock);
	if (g->dead.code != 0)
		rc = dead_locked(g, e);
	for (int i = 0; i < g->size && rc == 0; i++) {
		if (i == o->rank || (o->rank != 0 && i != 0))
			continue;
		if (g->m[i].left && !box_between(g, i, o->rank)->head)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "rank %d on %s has left", i,
				g->host);
	}
	pthread_mutex_unlock(&g->lock);
	return rc;
}

static void local_abort(struct fb_oob *o, const struct fb_err *why)
{
	struct group *g = group_of(o);
	pthread_mutex_lock(&g->lock);
	if (g->dead.code == 0)
		g->dead = *why;
	for (int i = 0; i < g->size; i++)
		pthread_cond_broadcast(&g->m[i].news);
	pthread_mutex_unlock(&g->lock);
}

static const char *local_host(struct fb_oob *o, int rank)
{
	(void)rank;
	return group_of(o)->host;
}

static void local_close(struct fb_oob *o)
{
	struct group *g = group_of(o);
	pthread_mutex_lock(&g->lock);
	g->m[o->rank].left = true;
	for (int i = 0; i < g->size; i++)
		pthread_cond_broadcast(&g->m[i].news);
	const bool last = --g->open == 0;
	pthread_mutex_unlock(&g->lock);
	if (last)
		group_free(g);
}

static const struct fb_oob_ops local_ops = {
	.name = "local",
	.send = local_send,
	.recv = local_recv,
	.lost = local_lost,
	.abort = local_abort,
	.host = local_host,
	.close = local_close,
};

static void take_seat(struct group *g, int rank, struct fb_oob *o)
{
	o->ops = &local_ops;
	o->rank = rank;
	o->size = g->size;
	o->priv = g;
	g->open++;
}

int oob_local_open(struct fb_oob *o, struct fb_err *e)
{
	struct group *g = group_new(1, e);
	if (!g)
		return -ENOMEM;
	take_seat(g, 0, o);
	return 0;
}

struct crew {
	pthread_mutex_t lock;
	int (*fn)(struct fb_oob *o, void *arg, struct fb_err *e);
	void *arg;
	int rc; /**< of the rank that failed first in time: the cause, not what followed from it */
	struct fb_err err;
};
struct hand {
	struct crew *crew;
	struct fb_oob *o;
	pthread_t thread;
};

static void *hand_main(void *p)
{
	struct hand *h = p;
	struct fb_err e = {0};
	int rc = h->crew->fn(h->o, h->crew->arg, &e);
	if (rc != 0) {
		if (e.code == 0)
			fb_fail(&e, FB_EXIT_UNMEASURED, rc < 0 ? rc : EIO, "rank %d failed with %d",
				h->o->rank, rc);
		pthread_mutex_lock(&h->crew->lock);
		if (h->crew->rc == 0) {
			h->crew->rc = rc;
			h->crew->err = e;
		}
		pthread_mutex_unlock(&h->crew->lock);
		fb_oob_abort(h->o, &e);
	}
	fb_oob_close(h->o);
	return NULL;
}

static int crew_run(struct crew *c, struct hand *hands, int n)
{
	int started = 0, rc = 0;
	for (; started < n; started++) {
		hands[started].crew = c;
		rc = pthread_create(&hands[started].thread, NULL, hand_main, &hands[started]);
		if (rc != 0)
			break;
	}
	if (started < n) {
		struct fb_err e = {0};
		fb_fail(&e, FB_EXIT_UNMEASURED, rc, "cannot start thread %d of %d: %s", started, n,
			strerror(rc));
		fb_hint(&e, "ask for fewer ranks, or raise the limit: ulimit -u");
		pthread_mutex_lock(&c->lock);
		c->rc = e.code;
		c->err = e;
		pthread_mutex_unlock(&c->lock);
		fb_oob_abort(hands[started].o, &e);
		for (int i = started; i < n; i++)
			fb_oob_close(hands[i].o);
	}
	for (int i = 0; i < started; i++)
		pthread_join(hands[i].thread, NULL);
	return c->rc;
}

int fb_oob_local_run(int n, int (*fn)(struct fb_oob *o, void *arg, struct fb_err *e), void *arg,
	struct fb_err *e)
{
	if (n < 1 || n > OOB_MAX_RANKS)
		return fb_fail_usage(e, "%d local ranks: 1 to %d can be started", n, OOB_MAX_RANKS);
	int rc = -ENOMEM;
	struct hand *hands = calloc((size_t)n, sizeof(*hands));
	if (!hands)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d local ranks", n);
	struct group *g = group_new(n, e);
	if (!g)
		goto free_hands;
	for (int i = 0; i < n; i++) {
		hands[i].o = oob_new(e);
		if (!hands[i].o)
			goto delete_handles;
	}
	for (int i = 0; i < n; i++)
		take_seat(g, i, hands[i].o);
	struct crew c = {.fn = fn, .arg = arg};
	pthread_mutex_init(&c.lock, NULL);
	rc = crew_run(&c, hands, n); /* the last hand to close frees the group */
	pthread_mutex_destroy(&c.lock);
	if (rc != 0) {
		fb_fail(e, c.err.exit, c.err.code, "%s", c.err.msg);
		if (c.err.hint[0] != '\0')
			fb_hint(e, "%s", c.err.hint);
	}
	free(hands);
	return rc;

delete_handles:
	for (int i = 0; i < n && hands[i].o; i++)
		oob_delete(hands[i].o);
	group_free(g);
free_hands:
	free(hands);
	return rc;
}
