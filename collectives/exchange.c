// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives as state machines over point-to-point messages: each call of exchange_test() looks at
 * the messages under way and begins what has become possible; nothing waits.
 *
 * A block is what one rank contributes or owns. Large blocks of a reduction go in pieces, so that
 * one piece is summed while the next is on its way; the order of pieces and peers on the wire is
 * the same on all ranks, which is what matches a receive to its send.
 *
 * Invariant: bytes that leave are counted where they leave (post_send), nowhere else.
 */
#include "collectives/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "collectives/local_priv.h"

#define PIECE_BYTES (256u << 10)
#define PIECES_MAX  8

enum phase { IDLE, REDUCE, GATHER, LATE };
enum tier { TO_NODE, TO_RACK, TO_FAR };

struct exchange {
	const struct p2p_ops *ops;
	struct p2p *p;
	struct exchange_group g;
	struct exchange_stats stats;
	enum tier *tiers; /* by group rank */

	/* the collective */
	enum phase phase;
	bool then_gather;
	enum coll_dtype t;
	size_t count, block; /* of a block: elements, bytes */
	const char *mine;    /* a gather's own block */
	char *base;          /* blocks lie here, the first `whole` of them; the rest in pad */
	int whole;
	char *result, *out; /* a reduction's sum: where it is made, where it belongs */
	size_t tail;        /* all-reduce: bytes of the block that is partly padding */
	uint64_t due, sent_before;
	uint64_t delay_ns;
	double delay_per_byte;
	struct fb_err failed; /* code 0: all is well */
	int failed_rc;

	/* messages: direct: [piece][group rank], a ring: [step][piece] */
	struct p2p_req **sends, **recvs;
	int pieces;
	size_t piece;                      /* elements */
	int *sent, *got;                   /* direct, by group rank: pieces seen to be over */
	int summed;                        /* direct: pieces */
	int posted, begun, s_over, r_over; /* a ring: receives, sends, and those over */

	char *scratch, *pad;
	size_t scratch_bytes, pad_bytes;
	const void **rows; /* of a sum */
};

static bool is_ring(const struct exchange_group *g)
{
	return g->size > EXCHANGE_DIRECT;
}

size_t exchange_scratch(const struct exchange_group *g, size_t count, enum coll_dtype t)
{
	const size_t blocks = is_ring(g) ? 2 : (size_t)g->size - 1;
	return blocks * count * coll_dtype_size(t);
}

/* ---- making ------------------------------------------------------------------------------------
 */

static int world_rank(const struct exchange_group *g, int i)
{
	return g->first + i * g->stride;
}

static int node_of(const struct exchange_tiers *t, int rank)
{
	return t && t->ranks_per_node > 0 ? rank / t->ranks_per_node : 0;
}

static int check(
	const struct exchange_group *g, const struct exchange_tiers *tiers, struct fb_err *e)
{
	if (g->size < 1 || g->rank < 0 || g->rank >= g->size || g->first < 0 ||
		(g->size > 1 && g->stride < 1) || (unsigned)g->channel >= P2P_CHANNELS)
		return fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"group %s: rank %d of %d, ranks from %d by %d", g->axis ? g->axis : "?",
			g->rank, g->size, g->first, g->stride);
	const int last = node_of(tiers, world_rank(g, g->size - 1));
	if (tiers && tiers->rack_of && last >= tiers->nodes) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"the rack map names %d nodes, but rank %d is on node %d", tiers->nodes,
			world_rank(g, g->size - 1), last);
		fb_hint(e, "name a rack for each node, or check --ranks-per-node");
		return -EINVAL;
	}
	return 0;
}

static enum tier tier_of(const struct exchange_group *g, const struct exchange_tiers *t, int peer)
{
	const int mine = node_of(t, world_rank(g, g->rank)), its = node_of(t, world_rank(g, peer));
	if (mine == its)
		return TO_NODE;
	return !t->rack_of || t->rack_of[mine] == t->rack_of[its] ? TO_RACK : TO_FAR;
}

int exchange_new(const struct p2p_ops *ops, struct p2p *p, const struct exchange_group *g,
	const struct exchange_tiers *tiers, struct exchange **out, struct fb_err *e)
{
	int rc = check(g, tiers, e);
	if (rc != 0)
		return rc;
	struct exchange *x = calloc(1, sizeof(*x));
	if (!x)
		goto no_memory;
	const size_t n = (size_t)g->size;
	x->ops = ops;
	x->p = p;
	x->g = *g;
	x->g.axis = g->axis ? g->axis : "?";
	x->tiers = calloc(n, sizeof(*x->tiers));
	x->sent = calloc(n, sizeof(*x->sent));
	x->got = calloc(n, sizeof(*x->got));
	x->rows = calloc(n > 2 ? n : 2, sizeof(*x->rows));
	const size_t slots = n * PIECES_MAX;
	x->sends = calloc(slots, sizeof(struct p2p_req *));
	x->recvs = calloc(slots, sizeof(struct p2p_req *));
	if (!x->tiers || !x->sent || !x->got || !x->rows || !x->sends || !x->recvs)
		goto free_x;
	for (int i = 0; i < g->size; i++)
		x->tiers[i] = tier_of(g, tiers, i);
	*out = x;
	return 0;
free_x:
	exchange_free(x);
no_memory:
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a group of %d ranks", g->size);
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	free(x->tiers);
	free(x->sent);
	free(x->got);
	free(x->rows);
	free(x->sends);
	free(x->recvs);
	if ((!x->scratch && !x->pad) || !x->ops->holds || !x->ops->holds(x->p)) {
		free(x->scratch);
		free(x->pad);
	}
	free(x);
}

/* Contents are not kept. Page-aligned: what MPI copies fast. */
static int grow(char **buf, size_t *have, size_t need, struct fb_err *e)
{
	if (need <= *have)
		return 0;
	free(*buf);
	*buf = NULL;
	*have = 0;
	void *p = NULL;
	if (posix_memalign(&p, 4096, need) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory for %zu bytes of a collective's scratch", need);
	*buf = p;
	*have = need;
	return 0;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static uint64_t now_of(const struct exchange *x)
{
	return x->ops->now ? x->ops->now(x->p) : fb_clock_ns();
}

static int say_again(const struct exchange *x, struct fb_err *e)
{
	fb_fail(e, x->failed.exit, x->failed.code, "%s", x->failed.msg);
	if (x->failed.hint[0] != '\0')
		fb_hint(e, "%s", x->failed.hint);
	return x->failed_rc;
}

/* A failure of the transport is the end of this exchange: it says so again from now on. */
static int failed(struct exchange *x, int rc, const struct fb_err *why, struct fb_err *e)
{
	x->failed = *why;
	x->failed_rc = rc;
	return say_again(x, e);
}

static int post_send(struct exchange *x, int peer, const char *from, size_t bytes,
	struct p2p_req **r, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = x->ops->isend(x->p, world_rank(&x->g, peer), x->g.channel, from, bytes, r, &why);
	if (rc != 0)
		return failed(x, rc, &why, e);
	x->stats.bytes_sent += bytes;
	x->stats.messages++;
	if (x->tiers[peer] == TO_NODE)
		x->stats.bytes_to_node += bytes;
	else if (x->tiers[peer] == TO_RACK)
		x->stats.bytes_to_rack += bytes;
	return 0;
}

static int post_recv(
	struct exchange *x, int peer, char *to, size_t bytes, struct p2p_req **r, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = x->ops->irecv(x->p, world_rank(&x->g, peer), x->g.channel, to, bytes, r, &why);
	return rc == 0 ? 0 : failed(x, rc, &why, e);
}

static int is_over(struct exchange *x, struct p2p_req *r, bool *over, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = x->ops->test(x->p, r, over, &why);
	return rc == 0 ? 0 : failed(x, rc, &why, e);
}

/* ---- blocks and pieces -------------------------------------------------------------------------
 */

static char *block_at(const struct exchange *x, int b)
{
	if (b < x->whole)
		return x->base + (size_t)b * x->block;
	return x->pad + (size_t)(b - x->whole) * x->block;
}

static size_t piece_from(const struct exchange *x, int k)
{
	return (size_t)k * x->piece * coll_dtype_size(x->t);
}

static size_t piece_count(const struct exchange *x, int k)
{
	const size_t left = x->count - (size_t)k * x->piece;
	return left < x->piece ? left : x->piece;
}

static size_t piece_bytes(const struct exchange *x, int k)
{
	return piece_count(x, k) * coll_dtype_size(x->t);
}

/* Whole cache lines a piece; no piece is empty. */
static void cut(struct exchange *x)
{
	size_t n = x->block / PIECE_BYTES;
	if (n < 1 || (x->phase == GATHER && !is_ring(&x->g)))
		n = 1;
	if (n > PIECES_MAX)
		n = PIECES_MAX;
	x->piece = ((x->count + n - 1) / n + 63) / 64 * 64;
	x->pieces = (int)((x->count + x->piece - 1) / x->piece);
}

/* ---- direct: all messages at once --------------------------------------------------------------
 */

/* Where rank r's contribution to this rank's block comes to lie. */
static char *contribution(const struct exchange *x, int r)
{
	return x->scratch + (size_t)(r < x->g.rank ? r : r - 1) * x->block;
}

static struct p2p_req **direct_slot(
	const struct exchange *x, struct p2p_req **slots, int k, int peer)
{
	return &slots[(size_t)k * (size_t)x->g.size + (size_t)peer];
}

/* Each rank begins with its successor, so that no rank is everybody's first. */
static int direct_begin(struct exchange *x, struct fb_err *e)
{
	const int n = x->g.size, me = x->g.rank;
	int rc = 0;
	x->summed = 0;
	memset(x->sent, 0, (size_t)n * sizeof(*x->sent));
	memset(x->got, 0, (size_t)n * sizeof(*x->got));
	for (int k = 0; k < x->pieces && rc == 0; k++)
		for (int d = 1; d < n && rc == 0; d++) {
			const int from = (me + n - d) % n;
			char *to = x->phase == REDUCE ? contribution(x, from) : block_at(x, from);
			rc = post_recv(x, from, to + piece_from(x, k), piece_bytes(x, k),
				direct_slot(x, x->recvs, k, from), e);
		}
	for (int k = 0; k < x->pieces && rc == 0; k++)
		for (int d = 1; d < n && rc == 0; d++) {
			const int to = (me + d) % n;
			const char *from = x->phase == REDUCE ? block_at(x, to) : x->mine;
			rc = post_send(x, to, from + piece_from(x, k), piece_bytes(x, k),
				direct_slot(x, x->sends, k, to), e);
		}
	return rc;
}

/* Messages with one peer end in order. Look as far as `until`. */
static int direct_look(struct exchange *x, struct p2p_req **slots, int peer, int *over, int until,
	struct fb_err *e)
{
	bool yes = true;
	while (*over < until && yes) {
		int rc = is_over(x, *direct_slot(x, slots, *over, peer), &yes, e);
		if (rc != 0)
			return rc;
		*over += yes;
	}
	return 0;
}

/* As far as `until` with all peers: how far are all of them? */
static int direct_look_all(struct exchange *x, struct p2p_req **slots, int *over, int until,
	int *least, struct fb_err *e)
{
	*least = until;
	for (int d = 1; d < x->g.size; d++) {
		const int r = (x->g.rank + x->g.size - d) % x->g.size;
		int rc = direct_look(x, slots, r, &over[r], until, e);
		if (rc != 0)
			return rc;
		*least = over[r] < *least ? over[r] : *least;
	}
	return 0;
}

static void direct_sum(struct exchange *x, int k)
{
	for (int r = 0; r < x->g.size; r++)
		x->rows[r] =
			(r == x->g.rank ? block_at(x, r) : contribution(x, r)) + piece_from(x, k);
	coll_sum_rows(x->t, x->result + piece_from(x, k), x->rows, x->g.size, piece_count(x, k));
}

/* Receive first, and sum each piece while it is in the cache; a peer that computes may leave its
 * receives, which are this rank's sends, to this one. */
static int direct_turn(struct exchange *x, bool *done, struct fb_err *e)
{
	int sent = 0, got = 0, rc = 0;
	for (bool more = true; more && rc == 0;) {
		const int until =
			x->phase == REDUCE && x->summed < x->pieces ? x->summed + 1 : x->pieces;
		rc = direct_look_all(x, x->recvs, x->got, until, &got, e);
		more = rc == 0 && x->phase == REDUCE && x->summed < got;
		if (more)
			direct_sum(x, x->summed++);
	}
	if (rc == 0)
		rc = direct_look_all(x, x->sends, x->sent, x->pieces, &sent, e);
	*done = rc == 0 && sent == x->pieces && got == x->pieces;
	return rc;
}

/* ---- ring: message i is piece i % pieces of step i / pieces -----------------------------------
 */

/* A rank's own successor begins each block's sum, which then travels round to its owner. */
static int ring_block(const struct exchange *x, int step, bool sends)
{
	const int n = x->g.size, back = step + (x->phase == REDUCE) + !sends;
	return (x->g.rank + 2 * n - back) % n;
}

/* A partial sum lies in one of two blocks by turns: the one before is still being sent on. */
static char *ring_place(const struct exchange *x, int i)
{
	const int step = i / x->pieces, k = i % x->pieces;
	char *block = x->phase == REDUCE ? x->scratch + (size_t)(step % 2) * x->block
					 : block_at(x, ring_block(x, step, false));
	return block + piece_from(x, k);
}

static int ring_total(const struct exchange *x)
{
	return (x->g.size - 1) * x->pieces;
}

static int ring_send(struct exchange *x, struct fb_err *e)
{
	const int i = x->begun, k = i % x->pieces;
	const char *from = i >= x->pieces ? ring_place(x, i - x->pieces)
			   : x->phase == REDUCE
				   ? block_at(x, ring_block(x, 0, true)) + piece_from(x, k)
				   : x->mine + piece_from(x, k);
	int rc =
		post_send(x, (x->g.rank + 1) % x->g.size, from, piece_bytes(x, k), &x->sends[i], e);
	x->begun += rc == 0;
	return rc;
}

/* Receive as far as there is room: two steps' pieces, and in a reduction only where the partial sum
 * that lies there has been sent on. */
static int ring_post(struct exchange *x, struct fb_err *e)
{
	const int total = ring_total(x), two = 2 * x->pieces;
	int rc = 0;
	while (rc == 0 && x->posted < total && x->posted - x->r_over < two &&
		(x->phase == GATHER || x->posted < two || x->s_over > x->posted - x->pieces)) {
		rc = post_recv(x, (x->g.rank + x->g.size - 1) % x->g.size, ring_place(x, x->posted),
			piece_bytes(x, x->posted % x->pieces), &x->recvs[x->posted], e);
		x->posted += rc == 0;
	}
	return rc;
}

static int ring_begin(struct exchange *x, struct fb_err *e)
{
	x->posted = x->begun = x->s_over = x->r_over = 0;
	int rc = ring_post(x, e);
	while (rc == 0 && x->begun < x->pieces)
		rc = ring_send(x, e);
	return rc;
}

/* Message i is here: add to it, and send it on. */
static int ring_arrived(struct exchange *x, int i, struct fb_err *e)
{
	const int step = i / x->pieces, k = i % x->pieces;
	const bool last = step == x->g.size - 2;
	char *place = ring_place(x, i);
	if (x->phase == REDUCE) {
		x->rows[0] = place;
		x->rows[1] = block_at(x, ring_block(x, step, false)) + piece_from(x, k);
		coll_sum_rows(x->t, last ? x->result + piece_from(x, k) : place, x->rows, 2,
			piece_count(x, k));
	}
	return last ? 0 : ring_send(x, e);
}

static int ring_turn(struct exchange *x, bool *done, struct fb_err *e)
{
	bool yes = true;
	int rc = 0;
	while (rc == 0 && yes && x->r_over < x->posted) {
		rc = is_over(x, x->recvs[x->r_over], &yes, e);
		if (rc == 0 && yes)
			rc = ring_arrived(x, x->r_over++, e);
	}
	yes = true;
	while (rc == 0 && yes && x->s_over < x->begun) {
		rc = is_over(x, x->sends[x->s_over], &yes, e);
		x->s_over += rc == 0 && yes;
	}
	if (rc == 0)
		rc = ring_post(x, e);
	*done = rc == 0 && x->s_over == ring_total(x) && x->r_over == ring_total(x);
	return rc;
}

/* ---- the collectives ---------------------------------------------------------------------------
 */

static int begin_phase(struct exchange *x, enum phase phase, struct fb_err *e)
{
	x->phase = phase;
	cut(x);
	return is_ring(&x->g) ? ring_begin(x, e) : direct_begin(x, e);
}

/* Common to all: may it begin? What is the size of a block? */
static int prepare(struct exchange *x, size_t count, enum coll_dtype t, struct fb_err *e)
{
	if (x->failed_rc != 0)
		return say_again(x, e);
	if (x->phase != IDLE)
		return fb_fail(e, FB_EXIT_UNMEASURED, EBUSY,
			"group %s: a collective is still in progress", x->g.axis);
	const size_t size = coll_dtype_size(t);
	if (size == 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, EINVAL, "unknown type %d", (int)t);
	if (count > SIZE_MAX / 4 / size / (size_t)x->g.size)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, EOVERFLOW, "a collective of %zu elements", count);
	x->t = t;
	x->count = count;
	x->block = count * size;
	x->whole = x->g.size;
	x->then_gather = false;
	x->tail = 0;
	x->sent_before = x->stats.bytes_sent;
	return 0;
}

static bool trivial(const struct exchange *x)
{
	return x->g.size < 2 || x->count == 0;
}

int exchange_all_gather(struct exchange *x, const void *send, void *out, size_t count,
	enum coll_dtype t, struct fb_err *e)
{
	int rc = prepare(x, count, t, e);
	if (rc != 0)
		return rc;
	char *own = (char *)out + (size_t)x->g.rank * x->block;
	if (!trivial(x)) {
		x->base = out;
		x->mine = send;
		rc = begin_phase(x, GATHER, e);
	}
	if (rc == 0 && send != own && x->block > 0)
		memcpy(own, send, x->block);
	return rc;
}

/* May the sum be written while blocks are still being sent, and own contributions read? Not if it
 * lies over them, unless exactly in its own place, which is sent to nobody. */
static bool in_the_way(const struct exchange *x, const char *out)
{
	const char *in = x->base, *end = in + (size_t)x->g.size * x->block;
	return out < end && out + x->block > in && out != in + (size_t)x->g.rank * x->block;
}

int exchange_reduce_scatter(struct exchange *x, const void *in, void *out, size_t count,
	enum coll_dtype t, struct fb_err *e)
{
	int rc = prepare(x, count, t, e);
	if (rc != 0)
		return rc;
	if (trivial(x)) {
		if (in != out && x->block > 0)
			memmove(out, in, x->block);
		return 0;
	}
	x->base = (char *)(uintptr_t)in; /* read only in this phase */
	x->out = out;
	const size_t need = exchange_scratch(&x->g, count, t);
	const bool apart = in_the_way(x, out);
	rc = grow(&x->scratch, &x->scratch_bytes, need + (apart ? x->block : 0), e);
	if (rc != 0)
		return rc;
	x->result = apart ? x->scratch + need : x->out;
	return begin_phase(x, REDUCE, e);
}

int exchange_all_reduce(
	struct exchange *x, void *buf, size_t count, enum coll_dtype t, struct fb_err *e)
{
	const size_t n = (size_t)x->g.size, block = count / n + (count % n != 0);
	int rc = prepare(x, block, t, e);
	if (rc != 0 || trivial(x))
		return rc;
	x->base = buf;
	x->whole = (int)(count / block);
	x->tail = (count - (size_t)x->whole * block) * coll_dtype_size(t);
	const size_t pad = (n - (size_t)x->whole) * x->block;
	rc = grow(&x->scratch, &x->scratch_bytes, exchange_scratch(&x->g, block, t), e);
	if (rc == 0)
		rc = grow(&x->pad, &x->pad_bytes, pad, e);
	if (rc != 0)
		return rc;
	if (x->pad && pad > 0) {
		memset(x->pad, 0, pad);
		memcpy(x->pad, x->base + (size_t)x->whole * x->block, x->tail);
	}
	x->result = x->out = block_at(x, x->g.rank);
	x->then_gather = true;
	return begin_phase(x, REDUCE, e);
}

/* A phase's messages are over. */
static int phase_done(struct exchange *x, struct fb_err *e)
{
	if (x->phase == REDUCE && x->result != x->out)
		memcpy(x->out, x->result, x->block);
	if (x->then_gather) {
		x->then_gather = false;
		x->mine = x->out;
		return begin_phase(x, GATHER, e);
	}
	if (x->tail > 0)
		memcpy(x->base + (size_t)x->whole * x->block, x->pad, x->tail);
	const double bytes = (double)(x->stats.bytes_sent - x->sent_before);
	x->phase = LATE;
	x->due = 0;
	if (x->delay_ns > 0 || x->delay_per_byte > 0)
		x->due = now_of(x) + x->delay_ns + (uint64_t)(bytes * x->delay_per_byte);
	return 0;
}

int exchange_test(struct exchange *x, bool *done, struct fb_err *e)
{
	*done = false;
	if (x->failed_rc != 0)
		return say_again(x, e);
	while (x->phase == REDUCE || x->phase == GATHER) {
		bool over = false;
		int rc = is_ring(&x->g) ? ring_turn(x, &over, e) : direct_turn(x, &over, e);
		if (rc == 0 && over)
			rc = phase_done(x, e);
		if (rc != 0)
			return rc;
		if (!over)
			return 0;
	}
	if (x->phase == LATE) {
		if (now_of(x) < x->due)
			return 0;
		x->phase = IDLE;
	}
	*done = true;
	return 0;
}

const struct exchange_stats *exchange_stats(const struct exchange *x)
{
	return &x->stats;
}

void exchange_delay(struct exchange *x, uint64_t ns, double ns_per_byte)
{
	x->delay_ns = ns;
	x->delay_per_byte = ns_per_byte;
}
