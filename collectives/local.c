// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives between the threads of one process, by the direct algorithm: every rank publishes its
 * buffers, then reads what it needs from the others' buffers itself.
 *
 * An operation is a row of phases, each ended by a barrier over all ranks. A wait that times out
 * keeps its place in that row, so it may be waited for again.
 *
 * Invariant: a rank writes its own receive buffer only, and leaves the last barrier only after all
 * have read what they need.
 */
#include "collectives/local.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/formula.h"
#include "collectives/local_priv.h"

#define CACHE_LINE 64

// What all ranks write stands in cache lines of its own: the padding is meant.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct coll_local_group {
	int ranks;
	struct coll_call
		*calls; /**< what each rank has begun; written before a barrier, read after */
	_Alignas(CACHE_LINE) atomic_uint arrived;
	_Alignas(CACHE_LINE) atomic_uint generation;
	_Alignas(CACHE_LINE) atomic_int gone; /**< 1 + a rank that gave up; 0: none */
};

enum { PHASE_PUBLISH, PHASE_WORK, PHASE_SHARE, PHASES };

struct coll_comm {
	struct coll_env env;
	struct coll_local_group *group;
	struct coll_call call;
	bool begun;
	int phase;
	bool arrived;        /**< has this phase's work been done, the barrier entered? */
	unsigned generation; /**< of the barrier that was entered */
};

struct coll_local_group *coll_local_group_new(int ranks, struct fb_err *e)
{
	if (ranks < 1 || ranks > COLL_LOCAL_MAX_RANKS) {
		fb_fail_usage(e, "%d ranks: the local backend has 1 to %d threads", ranks,
			COLL_LOCAL_MAX_RANKS);
		return NULL;
	}
	struct coll_local_group *g = aligned_alloc(CACHE_LINE, sizeof(*g));
	if (g) {
		memset(g, 0, sizeof(*g));
		g->ranks = ranks;
		g->calls = calloc((size_t)ranks, sizeof(*g->calls));
	}
	if (!g || !g->calls) {
		free(g);
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a group of %d ranks", ranks);
		return NULL;
	}
	return g;
}

void coll_local_group_free(struct coll_local_group *g)
{
	if (!g)
		return;
	free(g->calls);
	free(g);
}

static int probe(char *found, size_t len, struct fb_err *why)
{
	snprintf(found, len, "threads of one process");
	return 0;
}

static bool supports(enum coll_op op, enum coll_dtype dtype, enum coll_redop redop)
{
	return (unsigned)op < COLL_OP_COUNT && (unsigned)dtype < COLL_DTYPE_COUNT &&
	       (unsigned)redop < COLL_REDOP_COUNT;
}

static int open_comm(const struct coll_env *env, struct coll_comm **out, struct fb_err *e)
{
	struct coll_local_group *g = env->shared;
	if (!g || g->ranks != env->size) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"the local backend needs ranks that are threads of one process");
		fb_hint(e, "use --comm local --ranks N, or --backend mpi between processes");
		return -EINVAL;
	}
	struct coll_comm *c = calloc(1, sizeof(*c));
	if (!c)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a communicator");
	c->env = *env;
	c->group = g;
	*out = c;
	return 0;
}

static int buf_alloc(struct coll_comm *c, size_t bytes, void **p, struct fb_err *e)
{
	int rc = posix_memalign(p, 4096, bytes > 0 ? bytes : 1);
	if (rc == 0)
		return 0;
	*p = NULL;
	fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for a buffer of %zu bytes", bytes);
	fb_hint(e, "a smaller --max-bytes or fewer --ranks need less");
	return -rc;
}

static void buf_free(struct coll_comm *c, void *p)
{
	free(p);
}

static int copy(struct coll_comm *c, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	memcpy(dst, src, bytes);
	return 0;
}

static int start(struct coll_comm *c, const struct coll_call *call, struct fb_err *e)
{
	if (c->begun)
		return fb_fail(e, FB_EXIT_UNMEASURED, EBUSY,
			"rank %d: an operation is still in progress", c->env.rank);
	c->call = *call;
	c->begun = true;
	c->phase = PHASE_PUBLISH;
	c->arrived = false;
	return 0;
}

/* ---- barrier ----------------------------------------------------------------------------------
 */

static void barrier_enter(struct coll_comm *c)
{
	struct coll_local_group *g = c->group;
	c->generation = atomic_load_explicit(&g->generation, memory_order_relaxed);
	unsigned before = atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel);
	if (before + 1 == (unsigned)g->ranks) {
		atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
		atomic_fetch_add_explicit(&g->generation, 1, memory_order_release);
	}
}

static int barrier_wait(struct coll_comm *c, uint64_t deadline, struct fb_err *e)
{
	struct coll_local_group *g = c->group;
	for (unsigned spins = 1;; spins++) {
		if (atomic_load_explicit(&g->generation, memory_order_acquire) != c->generation)
			return 0;
		/* A few reads catch a peer on another core; more ranks than cores need the yield.
		 */
		if (spins % 64 != 0)
			continue;
		int gone = atomic_load_explicit(&g->gone, memory_order_relaxed);
		if (gone != 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET,
				"rank %d: %s ended because rank %d gave up", c->env.rank,
				coll_op_names[c->call.op], gone - 1);
		if (c->env.now() >= deadline)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"rank %d: %s has not finished in time", c->env.rank,
				coll_op_names[c->call.op]);
		sched_yield();
	}
}

/* ---- the work of a phase ----------------------------------------------------------------------
 */

static size_t elem_size(enum coll_dtype t)
{
	size_t n = coll_dtype_size(t);
	return n > 0 ? n : 1;
}

/* Rank r's share of an all_reduce: whole cache lines, so that no two ranks write into one. */
static size_t slice_begin(const struct coll_call *k, int r, int ranks)
{
	size_t line = CACHE_LINE / elem_size(k->dtype);
	size_t lines = (k->count + line - 1) / line;
	size_t at = lines * (size_t)r / (size_t)ranks * line;
	return at < k->count ? at : k->count;
}

/* recv[0..n) = the reduction of all ranks' send[at..at+n). */
static void reduce_into(struct coll_comm *c, void *recv, size_t at, size_t n)
{
	const struct coll_call *k = &c->call, *calls = c->group->calls;
	size_t elem = coll_dtype_size(k->dtype);
	memcpy(recv, (const char *)calls[0].send + at * elem, n * elem);
	for (int r = 1; r < c->group->ranks; r++)
		coll_combine(k->dtype, k->redop, recv, (const char *)calls[r].send + at * elem, n);
}

static void work(struct coll_comm *c)
{
	const struct coll_call *k = &c->call, *calls = c->group->calls;
	int me = c->env.rank, ranks = c->group->ranks;
	size_t elem = coll_dtype_size(k->dtype), block = k->count * elem, at, end;
	char *recv = k->recv;
	switch (k->op) {
	case COLL_ALL_REDUCE:
		at = slice_begin(k, me, ranks);
		end = slice_begin(k, me + 1, ranks);
		reduce_into(c, recv + at * elem, at, end - at);
		break;
	case COLL_REDUCE_SCATTER: reduce_into(c, recv, (size_t)me * k->count, k->count); break;
	case COLL_BROADCAST: memcpy(recv, calls[k->root].send, block); break;
	case COLL_ALL_GATHER:
	case COLL_ALLTOALL:
		/* Each rank begins with another source, so that not all read the same memory. */
		for (int i = 0; i < ranks; i++) {
			int from = (me + i) % ranks;
			const char *send = calls[from].send;
			if (k->op == COLL_ALLTOALL)
				send += (size_t)me * block;
			memcpy(recv + (size_t)from * block, send, block);
		}
		break;
	case COLL_OP_COUNT: break;
	}
}

/* all_reduce's second half: fetch what the others have reduced. */
static void share(struct coll_comm *c)
{
	const struct coll_call *k = &c->call;
	int me = c->env.rank, ranks = c->group->ranks;
	size_t elem = coll_dtype_size(k->dtype);
	for (int i = 1; i < ranks; i++) {
		int from = (me + i) % ranks;
		size_t at = slice_begin(k, from, ranks), end = slice_begin(k, from + 1, ranks);
		memcpy((char *)k->recv + at * elem,
			(const char *)c->group->calls[from].recv + at * elem, (end - at) * elem);
	}
}

static int same_call(struct coll_comm *c, struct fb_err *e)
{
	const struct coll_call *a = &c->call;
	for (int r = 0; r < c->group->ranks; r++) {
		const struct coll_call *b = &c->group->calls[r];
		if (a->op != b->op || a->dtype != b->dtype || a->redop != b->redop ||
			a->count != b->count || a->root != b->root)
			return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank %d calls %s of %zu %s, rank %d calls %s of %zu %s",
				c->env.rank, coll_op_names[a->op], a->count,
				coll_dtype_names[a->dtype], r, coll_op_names[b->op], b->count,
				coll_dtype_names[b->dtype]);
	}
	return 0;
}

static int wait_comm(struct coll_comm *c, uint64_t deadline, struct fb_err *e)
{
	while (c->begun) {
		int rc = 0;
		if (!c->arrived) {
			if (c->phase == PHASE_PUBLISH)
				c->group->calls[c->env.rank] = c->call;
			else if (c->phase == PHASE_WORK)
				rc = same_call(c, e);
			if (rc == 0 && c->phase == PHASE_WORK)
				work(c);
			else if (rc == 0 && c->phase == PHASE_SHARE)
				share(c);
			if (rc != 0)
				return rc;
			barrier_enter(c);
			c->arrived = true;
		}
		rc = barrier_wait(c, deadline, e);
		if (rc != 0)
			return rc;
		c->arrived = false;
		c->phase++;
		if (c->phase == PHASES ||
			(c->phase == PHASE_SHARE && c->call.op != COLL_ALL_REDUCE))
			c->begun = false;
	}
	return 0;
}

static int describe(struct coll_comm *c, char *buf, size_t len)
{
	snprintf(buf, len, "direct algorithm between %d threads of one process", c->group->ranks);
	return 0;
}

static void abort_comm(struct coll_comm *c)
{
	int none = 0;
	atomic_compare_exchange_strong(&c->group->gone, &none, c->env.rank + 1);
}

static void close_comm(struct coll_comm *c)
{
	free(c);
}

const struct coll_ops coll_local_ops = {
	.name = "local",
	.memory = "host",
	.probe = probe,
	.supports = supports,
	.open = open_comm,
	.alloc = buf_alloc,
	.free = buf_free,
	.upload = copy,
	.download = copy,
	.start = start,
	.wait = wait_comm,
	.describe = describe,
	.abort = abort_comm,
	.close = close_comm,
};
