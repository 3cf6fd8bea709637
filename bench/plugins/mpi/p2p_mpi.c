// SPDX-License-Identifier: Apache-2.0
/*
 * Point-to-point messages over MPI-3.1: a communicator for each channel, so that one never queues
 * behind another, and one more for last words. MPI itself was initialised by this plug-in's
 * out-of-band provider (plugin.c). No call here waits; any MPI_Test moves all messages of the
 * process.
 *
 * MPI counts by int: a message goes in parts of at most PART bytes, the odd one first, and its tag
 * is their number, so that two ranks that disagree on a length find out with the first part.
 *
 * A rank that is killed says nothing: the launcher ends the others, or their deadlines do.
 */
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/err.h"
#include "bench/plugins/mpi/p2p_mpi.h"
#include "bench/plugins/mpi/util.h"
#include "collectives/p2p_ops.h"

#define PART       ((size_t)1 << 30)
#define TAG_ABORT  1
#define PARTING_NS 100000000u /* for last words, and for messages that are just arriving */
#define LOOK_EVERY 16         /* tests between two looks for an abort: that costs as much as one */

struct p2p_req {
	struct p2p_req *prev, *more; /* in its rank's list; more: in the pool, too */
	int peer;
	bool sends;
	size_t bytes;
	int parts, over;
	MPI_Request one;
	MPI_Request *many; /* parts - 1 further ones */
	int room;          /* of many */
};
struct p2p {
	struct p2p_env env;
	MPI_Comm channels[P2P_CHANNELS], last_words;
	struct p2p_req *live, *spare;
	unsigned tests;
	bool told;
	bool holds;         /* MPI still has buffers of messages that ended by a failure */
	struct fb_err dead; /* code 0: all is well */
};

/* ---- opening -----------------------------------------------------------------------------------
 */

static int dup_world(struct p2p *p, MPI_Comm *comm, uint64_t deadline, struct fb_err *e)
{
	MPI_Request r;
	int done = 0, rc = MPI_Comm_idup(MPI_COMM_WORLD, comm, &r);
	while (rc == MPI_SUCCESS && !done) {
		rc = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (rc == MPI_SUCCESS && !done && p->env.now() >= deadline)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"rank %d: MPI_Comm_idup has not finished in time: a rank is not answering",
				p->env.rank);
	}
	if (rc != MPI_SUCCESS)
		return mpi_error(e, rc, "MPI_Comm_idup");
	MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	return 0;
}

static int open_p2p(const struct p2p_env *env, struct p2p **out, struct fb_err *e)
{
	int rc = mpi_check_world(env->rank, env->size, e);
	if (rc != 0)
		return rc;
	struct p2p *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a rank's messages");
	p->env = *env;
	const uint64_t deadline = env->now() + env->timeout_ns;
	for (int c = 0; c < P2P_CHANNELS && rc == 0; c++)
		rc = dup_world(p, &p->channels[c], deadline, e);
	if (rc == 0)
		rc = dup_world(p, &p->last_words, deadline, e);
	if (rc != 0) {
		free(p); /* communicators stay: after a failure nothing collective can be trusted */
		return rc;
	}
	*out = p;
	return 0;
}

/* ---- requests ----------------------------------------------------------------------------------
 */

static MPI_Request *part_of(struct p2p_req *r, int i)
{
	return i == 0 ? &r->one : &r->many[i - 1];
}

/* Bytes of part i: what is left over goes first. */
static size_t part_bytes(const struct p2p_req *r, int i)
{
	return i > 0 ? PART : r->bytes - (size_t)(r->parts - 1) * PART;
}

static void recycle(struct p2p *p, struct p2p_req *r)
{
	if (r->prev)
		r->prev->more = r->more;
	else
		p->live = r->more;
	if (r->more)
		r->more->prev = r->prev;
	r->more = p->spare;
	p->spare = r;
}

/* Receives are cancelled, so that nothing comes into their buffers any more. A send cannot be, and
 * a receive that has been matched is not: they have some time to end, and are MPI's after that. */
static void withdraw_all(struct p2p *p)
{
	const uint64_t begin = p->env.now();
	for (struct p2p_req *r = p->live; r; r = r->more)
		for (int i = r->over; i < r->parts && !r->sends; i++)
			if (*part_of(r, i) != MPI_REQUEST_NULL)
				MPI_Cancel(part_of(r, i));
	while (p->live) {
		struct p2p_req *r = p->live;
		for (int i = r->over; i < r->parts; i++) {
			MPI_Request *q = part_of(r, i);
			int done = *q == MPI_REQUEST_NULL;
			while (!done && MPI_Test(q, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
				p->env.now() - begin < PARTING_NS)
				;
			if (*q != MPI_REQUEST_NULL) {
				p->holds = true;
				MPI_Request_free(q);
			}
		}
		recycle(p, r);
	}
}

static void pass_on(const struct fb_err *why, struct fb_err *e)
{
	fb_fail(e, why->exit, why->code, "%s", why->msg);
	if (why->hint[0] != '\0')
		fb_hint(e, "%s", why->hint);
}

/* After p->dead has been filled. */
static int die(struct p2p *p, int rc, struct fb_err *e)
{
	withdraw_all(p);
	pass_on(&p->dead, e);
	return rc;
}

/* Has somebody aborted? A whole small message that a probe has seen: this receive waits for
 * nobody. */
static bool look_for_abort(struct p2p *p)
{
	struct fb_err why;
	MPI_Message m;
	MPI_Status st;
	int flag = 0, got = 0;
	if (MPI_Improbe(MPI_ANY_SOURCE, TAG_ABORT, p->last_words, &flag, &m, &st) != MPI_SUCCESS ||
		!flag)
		return false;
	MPI_Get_count(&st, MPI_BYTE, &got);
	if (got != (int)sizeof(why) || MPI_Mrecv(&why, got, MPI_BYTE, &m, &st) != MPI_SUCCESS ||
		why.code >= 0)
		return false;
	why.msg[sizeof(why.msg) - 1] = why.hint[sizeof(why.hint) - 1] = '\0';
	p->dead = why;
	p->told = true; /* by the rank that aborts, to all */
	withdraw_all(p);
	return true;
}

static bool ended(struct p2p *p, struct fb_err *e)
{
	if (p->dead.code == 0)
		return false;
	pass_on(&p->dead, e);
	return true;
}

static struct p2p_req *fresh(struct p2p *p, int parts)
{
	struct p2p_req *r = p->spare;
	if (r)
		p->spare = r->more;
	else
		r = calloc(1, sizeof(*r));
	if (r && parts - 1 > r->room) {
		free(r->many);
		r->many = calloc((size_t)parts - 1, sizeof(MPI_Request));
		r->room = r->many ? parts - 1 : 0;
		if (!r->many) {
			r->more = p->spare;
			p->spare = r;
			return NULL;
		}
	}
	return r;
}

static int begin(struct p2p *p, int peer, enum p2p_channel ch, char *buf, size_t bytes, bool sends,
	struct p2p_req **out, struct fb_err *e)
{
	if (ended(p, e))
		return -ECONNRESET;
	if (peer < 0 || peer >= p->env.size || peer == p->env.rank || (unsigned)ch >= P2P_CHANNELS)
		return fb_fail(e, FB_EXIT_UNMEASURED, EINVAL,
			"rank %d: no messages with rank %d on channel %d", p->env.rank, peer,
			(int)ch);
	const size_t parts = bytes > 0 ? (bytes - 1) / PART + 1 : 1;
	if (parts > 32767) /* the least that MPI promises for a tag */
		return fb_fail(e, FB_EXIT_UNMEASURED, EOVERFLOW, "rank %d: a message of %zu bytes",
			p->env.rank, bytes);
	struct p2p_req *r = fresh(p, (int)parts);
	if (!r)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message");
	r->peer = peer;
	r->sends = sends;
	r->bytes = bytes;
	r->parts = r->over = 0;
	r->prev = NULL;
	r->more = p->live;
	if (p->live)
		p->live->prev = r;
	p->live = r;
	const int n = (int)parts;
	while (r->parts < n) {
		const int i = r->parts;
		r->parts = n; /* for part_bytes() */
		const int len = (int)part_bytes(r, i);
		r->parts = i;
		int rc = sends ? MPI_Isend(buf, len, MPI_BYTE, peer, n, p->channels[ch],
					 part_of(r, i))
			       : MPI_Irecv(buf, len, MPI_BYTE, peer, MPI_ANY_TAG, p->channels[ch],
					 part_of(r, i));
		if (rc != MPI_SUCCESS) {
			mpi_error(&p->dead, rc, sends ? "MPI_Isend" : "MPI_Irecv");
			return die(p, -ECONNRESET, e);
		}
		r->parts++;
		buf += len;
	}
	*out = r;
	return 0;
}

static int mpi_isend(struct p2p *p, int peer, enum p2p_channel ch, const void *buf, size_t bytes,
	struct p2p_req **r, struct fb_err *e)
{
	return begin(p, peer, ch, (char *)(uintptr_t)buf, bytes, true, r, e);
}

static int mpi_irecv(struct p2p *p, int peer, enum p2p_channel ch, void *buf, size_t bytes,
	struct p2p_req **r, struct fb_err *e)
{
	return begin(p, peer, ch, buf, bytes, false, r, e);
}

/* What came is shorter or has another number of parts, or, `got` NULL, is longer: MPI does not say
 * by how much. */
static int wrong_length(
	struct p2p *p, const struct p2p_req *r, const MPI_Status *got, struct fb_err *e)
{
	int first = 0;
	if (got) {
		MPI_Get_count(got, MPI_BYTE, &first);
		fb_fail(&p->dead, FB_EXIT_UNMEASURED, EMSGSIZE,
			"rank %d sent %zu bytes to rank %d, which waits for %zu: the ranks do not "
			"run the same step",
			r->peer, (size_t)(got->MPI_TAG - 1) * PART + (size_t)first, p->env.rank,
			r->bytes);
	} else {
		fb_fail(&p->dead, FB_EXIT_UNMEASURED, EMSGSIZE,
			"rank %d sent more bytes to rank %d than the %zu that it waits for: the "
			"ranks do not run the same step",
			r->peer, p->env.rank, r->bytes);
	}
	return die(p, -EMSGSIZE, e);
}

/* The next part of r. @return 0 and *over, or an error */
static int test_part(struct p2p *p, struct p2p_req *r, bool *over, struct fb_err *e)
{
	MPI_Status st;
	int flag = 0, got = 0, class = 0;
	int rc = MPI_Test(part_of(r, r->over), &flag, &st);
	*over = false;
	if (rc != MPI_SUCCESS) {
		MPI_Error_class(rc, &class);
		if (class == MPI_ERR_TRUNCATE)
			return wrong_length(p, r, NULL, e);
		mpi_error(&p->dead, rc, r->sends ? "MPI_Isend" : "MPI_Irecv");
		return die(p, -ECONNRESET, e);
	}
	if (!flag)
		return 0;
	*over = true;
	if (r->sends)
		return 0;
	MPI_Get_count(&st, MPI_BYTE, &got);
	/* All parts of a message have its tag: only the first can be wrong. */
	if ((size_t)got != part_bytes(r, r->over) || st.MPI_TAG != r->parts) {
		r->over++;
		return wrong_length(p, r, &st, e);
	}
	return 0;
}

static int mpi_test(struct p2p *p, struct p2p_req *r, bool *done, struct fb_err *e)
{
	*done = false;
	if (p->dead.code == 0 && ++p->tests % LOOK_EVERY == 0)
		(void)look_for_abort(p);
	if (ended(p, e))
		return -ECONNRESET;
	while (r->over < r->parts) {
		bool over;
		int rc = test_part(p, r, &over, e);
		if (rc != 0)
			return rc;
		if (!over)
			return 0;
		r->over++;
	}
	recycle(p, r);
	*done = true;
	return 0;
}

static uint64_t mpi_wake(struct p2p *p)
{
	return 0; /* only a test can know */
}

static bool mpi_holds(const struct p2p *p)
{
	return p->holds;
}

static uint64_t mpi_now(struct p2p *p)
{
	return p->env.now();
}

/* ---- the end -----------------------------------------------------------------------------------
 */

/* An error fits every MPI's eager limit, so each send ends without its receiver; what does not is
 * given 100 ms in all. */
static void tell(struct p2p *p)
{
	const uint64_t begin_ns = p->env.now();
	p->told = true;
	for (int i = 0; i < p->env.size; i++) {
		MPI_Request r;
		int done = 0;
		if (i == p->env.rank || MPI_Isend(&p->dead, (int)sizeof(p->dead), MPI_BYTE, i,
						TAG_ABORT, p->last_words, &r) != MPI_SUCCESS)
			continue;
		while (!done && MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
			p->env.now() - begin_ns < PARTING_NS)
			;
		if (!done)
			MPI_Request_free(&r);
	}
}

/* The first cause that this rank knows: another's that has come, its own failure, or `why`. */
static void mpi_abort(struct p2p *p, const struct fb_err *why)
{
	if (p->dead.code == 0 && !look_for_abort(p)) {
		p->dead = *why;
		if (why->code == 0)
			fb_fail(&p->dead, FB_EXIT_UNMEASURED, ECONNABORTED, "rank %d gave up",
				p->env.rank);
	}
	if (!p->told)
		tell(p);
	withdraw_all(p);
}

static void mpi_close(struct p2p *p)
{
	if (!p)
		return;
	const bool clean = p->dead.code == 0 && !p->live && mpi_initialized();
	if (mpi_initialized())
		withdraw_all(p);
	/* Freeing is collective by the standard, local in practice; never after a failure. */
	for (int c = 0; c < P2P_CHANNELS && clean; c++)
		MPI_Comm_free(&p->channels[c]);
	if (clean)
		MPI_Comm_free(&p->last_words);
	while (p->spare) {
		struct p2p_req *r = p->spare;
		p->spare = r->more;
		free(r->many);
		free(r);
	}
	free(p);
}

const struct p2p_ops mpi_p2p_ops = {
	.name = "mpi",
	.open = open_p2p,
	.isend = mpi_isend,
	.irecv = mpi_irecv,
	.test = mpi_test,
	.wake = mpi_wake,
	.abort = mpi_abort,
	.close = mpi_close,
	.holds = mpi_holds,
	.now = mpi_now,
};
