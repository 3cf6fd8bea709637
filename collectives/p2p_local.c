// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between the threads of one process. A message is a pair of requests in the queue of its
 * source, destination and channel; when both stand at its head and the link has delivered, whoever
 * looks first, sender or receiver, copies once, from buffer to buffer: a rank that computes need
 * not look for its messages to move, as with a network card.
 *
 * The link is an account, not a thread: it tells from when a message may be received.
 *
 * Invariants: a request is in its queue until it is taken (under the queue's lock), and over when
 * its state says so; what a request points to is not touched after that. A rank whose call has
 * failed has no request left anywhere, so its buffers are its own again.
 */
#include "collectives/p2p_local.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "collectives/local.h"

enum state { WAITS, OVER, WRONG_LENGTH };

struct queue {
	struct p2p_req *head, *tail;
};
struct pair {
	pthread_mutex_t lock;
	struct queue sends, recvs;
	/* The first send arrives then; 0: look. Written under the lock, read without it: ranks that
	 * compute look often, and both at the same pair. */
	atomic_uint_least64_t arrives;
};
struct p2p_req {
	struct p2p_req *next;        /* in its queue, or in the pool */
	struct p2p_req *prev, *more; /* in its owner's list */
	struct pair *pair;
	const void *from; /* a send's bytes; NULL in a receive */
	void *to;         /* a receive's */
	size_t bytes, other;
	uint64_t ready; /* a send: from when it may be received; 0: at once */
	int peer;
	bool taken; /* out of the queue; under its lock */
	atomic_int state;
};
struct p2p_world {
	int ranks;
	bool shaped;
	struct p2p_link link;
	struct pair *pairs;  /* [source][destination][channel] */
	atomic_bool *closed; /* by rank */
	pthread_mutex_t lock;
	atomic_bool aborted;
	struct fb_err why; /* written once, before `aborted` */
};
struct p2p {
	struct p2p_world *world;
	int rank;
	uint64_t (*now)(void);
	uint64_t free_at;      /* when this rank's link out is free; its thread's alone */
	struct p2p_req *live;  /* begun and not yet seen to be over */
	struct p2p_req *spare; /* the pool */
	struct fb_err dead;    /* code 0: all is well */
};

/* ---- the world ---------------------------------------------------------------------------------
 */

static bool link_ok(const struct p2p_link *l)
{
	bool ok = l->rate >= 0 && isfinite(l->rate);
	for (int c = 0; c < P2P_CHANNELS; c++)
		ok = ok && l->slow[c].rate_factor >= 0 && isfinite(l->slow[c].rate_factor);
	return ok;
}

static bool shaped(const struct p2p_link *l)
{
	bool some = l->latency_ns > 0 || l->rate > 0;
	for (int c = 0; c < P2P_CHANNELS; c++)
		some = some || l->slow[c].latency_ns > 0;
	return some;
}

static size_t pair_count(const struct p2p_world *w)
{
	return (size_t)w->ranks * (size_t)w->ranks * P2P_CHANNELS;
}

struct p2p_world *p2p_world_new(int ranks, const struct p2p_link *link, struct fb_err *e)
{
	if (ranks < 1 || ranks > COLL_LOCAL_MAX_RANKS) {
		fb_fail_usage(e, "%d ranks: messages between threads are for 1 to %d of them",
			ranks, COLL_LOCAL_MAX_RANKS);
		return NULL;
	}
	if (link && !link_ok(link)) {
		fb_fail_usage(e, "a link's rate and its factors are numbers from 0");
		return NULL;
	}
	struct p2p_world *w = calloc(1, sizeof(*w));
	if (!w)
		goto no_memory;
	w->ranks = ranks;
	if (link)
		w->link = *link;
	w->shaped = shaped(&w->link);
	w->pairs = calloc(pair_count(w), sizeof(*w->pairs));
	w->closed = calloc((size_t)ranks, sizeof(*w->closed));
	if (!w->pairs || !w->closed)
		goto free_world;
	for (size_t i = 0; i < pair_count(w); i++)
		pthread_mutex_init(&w->pairs[i].lock, NULL);
	pthread_mutex_init(&w->lock, NULL);
	return w;
free_world:
	free(w->pairs);
	free(w->closed);
	free(w);
no_memory:
	fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for messages between %d ranks", ranks);
	return NULL;
}

void p2p_world_free(struct p2p_world *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < pair_count(w); i++)
		pthread_mutex_destroy(&w->pairs[i].lock);
	pthread_mutex_destroy(&w->lock);
	free(w->pairs);
	free(w->closed);
	free(w);
}

static struct pair *pair_of(struct p2p_world *w, int src, int dst, enum p2p_channel ch)
{
	return &w->pairs[((size_t)src * (size_t)w->ranks + (size_t)dst) * P2P_CHANNELS +
			 (size_t)ch];
}

/* ---- queues ------------------------------------------------------------------------------------
 */

static void append(struct queue *q, struct p2p_req *r)
{
	r->next = NULL;
	if (q->tail)
		q->tail->next = r;
	else
		q->head = r;
	q->tail = r;
}

static struct p2p_req *take(struct queue *q)
{
	struct p2p_req *r = q->head;
	q->head = r->next;
	if (!q->head)
		q->tail = NULL;
	r->taken = true;
	return r;
}

static void unlink_from(struct queue *q, struct p2p_req *r)
{
	struct p2p_req *before = NULL;
	for (struct p2p_req *i = q->head; i != r; i = i->next)
		before = i;
	if (before)
		before->next = r->next;
	else
		q->head = r->next;
	if (q->tail == r)
		q->tail = before;
}

/* Deliver what may be received by now, up to `mine`. The lock is not held while bytes are copied:
 * both requests are out of the queue then, and theirs are the only buffers touched. */
static void deliver(struct pair *q, const struct p2p_req *mine, uint64_t (*now)(void))
{
	const uint64_t arrives = atomic_load_explicit(&q->arrives, memory_order_relaxed);
	if (arrives > 0 && arrives > now())
		return;
	for (bool more = true; more;) {
		pthread_mutex_lock(&q->lock);
		struct p2p_req *s = q->sends.head, *r = q->recvs.head;
		const bool early = s && s->ready > 0 && s->ready > now();
		atomic_store_explicit(&q->arrives, early ? s->ready : 0, memory_order_relaxed);
		if (!s || !r || early) {
			pthread_mutex_unlock(&q->lock);
			return;
		}
		take(&q->sends);
		take(&q->recvs);
		pthread_mutex_unlock(&q->lock);
		s->other = r->bytes;
		r->other = s->bytes;
		const bool same = s->bytes == r->bytes;
		more = s != mine && r != mine;
		if (same && s->bytes > 0)
			memcpy(r->to, s->from, s->bytes);
		/* From here on either may belong to another message. */
		atomic_store_explicit(&s->state, same ? OVER : WRONG_LENGTH, memory_order_release);
		atomic_store_explicit(&r->state, same ? OVER : WRONG_LENGTH, memory_order_release);
	}
}

/* ---- requests ----------------------------------------------------------------------------------
 */

static int state_of(struct p2p_req *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

static void recycle(struct p2p *p, struct p2p_req *r)
{
	if (r->prev)
		r->prev->more = r->more;
	else
		p->live = r->more;
	if (r->more)
		r->more->prev = r->prev;
	r->next = p->spare;
	p->spare = r;
}

/* Out of all queues; one whose bytes are just being copied by its peer is over in that time. */
static void withdraw_all(struct p2p *p)
{
	while (p->live) {
		struct p2p_req *r = p->live;
		pthread_mutex_lock(&r->pair->lock);
		const bool taken = r->taken;
		if (!taken) {
			unlink_from(r->from ? &r->pair->sends : &r->pair->recvs, r);
			atomic_store_explicit(&r->pair->arrives, 0, memory_order_relaxed);
		}
		pthread_mutex_unlock(&r->pair->lock);
		while (taken && state_of(r) == WAITS)
			sched_yield();
		recycle(p, r);
	}
}

static void pass_on(const struct fb_err *why, struct fb_err *e)
{
	fb_fail(e, why->exit, why->code, "%s", why->msg);
	if (why->hint[0] != '\0')
		fb_hint(e, "%s", why->hint);
}

/* Has the world ended for this rank? */
static bool ended(struct p2p *p, struct fb_err *e)
{
	if (p->dead.code == 0) {
		if (!atomic_load_explicit(&p->world->aborted, memory_order_acquire))
			return false;
		p->dead = p->world->why;
		withdraw_all(p);
	}
	pass_on(&p->dead, e);
	return true;
}

/* After p->dead has been filled by this call. */
static int die(struct p2p *p, int rc, struct fb_err *e)
{
	withdraw_all(p);
	pass_on(&p->dead, e);
	return rc;
}

/* @return a request, or NULL with *rc */
static struct p2p_req *begin(
	struct p2p *p, int peer, enum p2p_channel ch, size_t bytes, int *rc, struct fb_err *e)
{
	*rc = -ECONNRESET;
	if (ended(p, e))
		return NULL;
	if (peer < 0 || peer >= p->world->ranks || peer == p->rank ||
		(unsigned)ch >= P2P_CHANNELS) {
		*rc = fb_fail(e, FB_EXIT_UNMEASURED, EINVAL,
			"rank %d: no messages with rank %d on channel %d", p->rank, peer, (int)ch);
		return NULL;
	}
	struct p2p_req *r = p->spare;
	if (r)
		p->spare = r->next;
	else
		r = malloc(sizeof(*r));
	if (!r) {
		*rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message");
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	r->peer = peer;
	r->bytes = bytes;
	r->more = p->live;
	if (p->live)
		p->live->prev = r;
	p->live = r;
	*rc = 0;
	return r;
}

/* Book the link out; when may the receiver have it? */
static uint64_t book(struct p2p *p, enum p2p_channel ch, size_t bytes)
{
	const struct p2p_link *l = &p->world->link;
	if (!p->world->shaped)
		return 0;
	const uint64_t now = p->now();
	const double factor = l->slow[ch].rate_factor > 0 ? l->slow[ch].rate_factor : 1;
	if (p->free_at < now)
		p->free_at = now;
	if (l->rate > 0)
		p->free_at += (uint64_t)llround((double)bytes * 1e9 / (l->rate * factor));
	return p->free_at + l->latency_ns + l->slow[ch].latency_ns;
}

static int local_isend(struct p2p *p, int peer, enum p2p_channel ch, const void *buf, size_t bytes,
	struct p2p_req **out, struct fb_err *e)
{
	int rc;
	struct p2p_req *r = begin(p, peer, ch, bytes, &rc, e);
	if (!r)
		return rc;
	r->from = buf ? buf : ""; /* no bytes: anything but NULL, which means a receive */
	r->ready = book(p, ch, bytes);
	r->pair = pair_of(p->world, p->rank, peer, ch);
	pthread_mutex_lock(&r->pair->lock);
	append(&r->pair->sends, r);
	pthread_mutex_unlock(&r->pair->lock);
	*out = r;
	return 0;
}

static int local_irecv(struct p2p *p, int peer, enum p2p_channel ch, void *buf, size_t bytes,
	struct p2p_req **out, struct fb_err *e)
{
	int rc;
	struct p2p_req *r = begin(p, peer, ch, bytes, &rc, e);
	if (!r)
		return rc;
	r->to = buf;
	r->pair = pair_of(p->world, peer, p->rank, ch);
	pthread_mutex_lock(&r->pair->lock);
	append(&r->pair->recvs, r);
	pthread_mutex_unlock(&r->pair->lock);
	*out = r;
	return 0;
}

static int wrong_length(struct p2p *p, const struct p2p_req *r, struct fb_err *e)
{
	const bool sends = r->from != NULL;
	const int from = sends ? p->rank : r->peer, to = sends ? r->peer : p->rank;
	fb_fail(&p->dead, FB_EXIT_UNMEASURED, EMSGSIZE,
		"rank %d sent %zu bytes to rank %d, which waits for %zu: the ranks do not run the "
		"same step",
		from, sends ? r->bytes : r->other, to, sends ? r->other : r->bytes);
	return die(p, -EMSGSIZE, e);
}

static int local_test(struct p2p *p, struct p2p_req *r, bool *done, struct fb_err *e)
{
	*done = false;
	if (ended(p, e))
		return -ECONNRESET;
	if (state_of(r) == WAITS) {
		/* Read before the last look at the state: after closing, a peer changes nothing. */
		const bool left =
			atomic_load_explicit(&p->world->closed[r->peer], memory_order_acquire);
		deliver(r->pair, r, p->now);
		if (state_of(r) == WAITS && left) {
			fb_fail(&p->dead, FB_EXIT_UNMEASURED, ECONNRESET,
				"rank %d has left; rank %d still waits for it", r->peer, p->rank);
			return die(p, -ECONNRESET, e);
		}
	}
	switch (state_of(r)) {
	case WAITS: return 0;
	case WRONG_LENGTH: return wrong_length(p, r, e);
	default: break;
	}
	recycle(p, r);
	*done = true;
	return 0;
}

/* Nothing that is not yet begun can arrive before a latency from now. */
static uint64_t local_wake(struct p2p *p)
{
	const uint64_t now = p->now(), latency = p->world->link.latency_ns;
	uint64_t first = UINT64_MAX;
	for (struct p2p_req *r = p->live; r; r = r->more) {
		uint64_t at = now + latency;
		if (state_of(r) != WAITS)
			return 0;
		pthread_mutex_lock(&r->pair->lock);
		const struct p2p_req *s = r->pair->sends.head;
		if (s && (r->pair->recvs.head || s->ready > at))
			at = s->ready;
		pthread_mutex_unlock(&r->pair->lock);
		if (at <= now)
			return 0;
		if (at < first)
			first = at;
	}
	return first == UINT64_MAX ? 0 : first;
}

static void local_abort(struct p2p *p, const struct fb_err *why)
{
	struct p2p_world *w = p->world;
	pthread_mutex_lock(&w->lock);
	if (!atomic_load_explicit(&w->aborted, memory_order_relaxed)) {
		w->why = *why;
		if (w->why.code == 0)
			fb_fail(&w->why, FB_EXIT_UNMEASURED, ECONNABORTED, "rank %d gave up",
				p->rank);
		atomic_store_explicit(&w->aborted, true, memory_order_release);
	}
	pthread_mutex_unlock(&w->lock);
	(void)ended(p, NULL);
}

static uint64_t local_now(struct p2p *p)
{
	return p->now();
}

static int local_open(const struct p2p_env *env, struct p2p **out, struct fb_err *e)
{
	struct p2p_world *w = env->shared;
	if (!w || w->ranks != env->size || env->rank < 0 || env->rank >= env->size) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"messages between threads need ranks that are threads of one process");
		fb_hint(e, "use --comm local --ranks N, or --comm mpi between processes");
		return -EINVAL;
	}
	struct p2p *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a rank's messages");
	p->world = w;
	p->rank = env->rank;
	p->now = env->now ? env->now : fb_clock_ns;
	atomic_store_explicit(&w->closed[p->rank], false, memory_order_release);
	*out = p;
	return 0;
}

static void local_close(struct p2p *p)
{
	if (!p)
		return;
	withdraw_all(p);
	atomic_store_explicit(&p->world->closed[p->rank], true, memory_order_release);
	for (struct p2p_req *r = p->spare, *next; r; r = next) {
		/* Each request is in the pool once, which the analyzer does not see. */
		next = r->next; // NOLINT(clang-analyzer-unix.Malloc)
		free(r);
	}
	free(p);
}

const struct p2p_ops p2p_local = {
	.name = "local",
	.open = local_open,
	.isend = local_isend,
	.irecv = local_irecv,
	.test = local_test,
	.wake = local_wake,
	.abort = local_abort,
	.close = local_close,
	.now = local_now,
};
