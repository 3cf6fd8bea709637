// SPDX-License-Identifier: Apache-2.0
/*
 * The control channel over MPI: the world of the launcher, as a star around rank 0.
 *
 * MPI is never initialised without a launcher's environment. After MPI_Init_thread every wait is a
 * loop of tests with a deadline; Init and Finalize run under a watchdog. Messages are taken by
 * matched probe, so that no receive is ever left open, and last words (abort, good-bye) have tags
 * of their own on a duplicate of the world that nobody else uses.
 */
#include "bench/plugins/mpi/world.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/oob/oob_ops.h"
#include "bench/plugins/mpi/watchdog.h"
#include "version.h"

#define MAX_MESSAGE ((64u << 20) + 64u) /* FB_OOB_MAX_MSG with its envelope */
#define SPIN_NS     2000000u            /* a wait this young yields, an older one sleeps */
#define PARTING_NS  30000000000u        /* others may still be writing their results */
#define BROKEN_NS   5000000000u         /* after a failure nobody has work left */

enum tag { TAG_DATA = 1, TAG_ABORT, TAG_BYE };

struct card {
	char version[32], host[65];
};
struct world {
	MPI_Comm comm;
	uint64_t (*now)(void);
	struct card *cards; /* of every rank */
	struct fb_err dead; /* code 0: all is well */
	bool told;
};

static struct world *world_of(struct fb_oob *o)
{
	return o->priv;
}

static int mpi_fail(struct fb_err *e, int rc, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n = 0;
	MPI_Error_string(rc, text, &n);
	return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "%s failed: %s", what, text);
}

static void rest(uint64_t waited_ns)
{
	if (waited_ns < SPIN_NS) {
		sched_yield();
		return;
	}
	const struct timespec nap = {0, 100000};
	nanosleep(&nap, NULL);
}

static bool is_peer(const struct fb_oob *o, int rank)
{
	return rank != o->rank && (o->rank == 0 || rank == 0);
}

static const char *name(struct fb_oob *o, int rank, char *buf, size_t len)
{
	snprintf(buf, len, "rank %d on %s", rank, world_of(o)->cards[rank].host);
	return buf;
}

static int dead(struct world *w, struct fb_err *e)
{
	int rc = fb_fail(e, w->dead.exit, w->dead.code, "%s", w->dead.msg);
	if (w->dead.hint[0] != '\0')
		fb_hint(e, "%s", w->dead.hint);
	return rc;
}

/* ---- last words --------------------------------------------------------------------------------
 */

/* Tell the peers but one. An error fits every MPI's eager limit, so each send ends without its
 * receiver; what does not is given 100 ms in all. */
static void tell(struct fb_oob *o, const struct fb_err *why, int except)
{
	struct world *w = world_of(o);
	if (w->told)
		return;
	w->told = true;
	const uint64_t begin = w->now();
	for (int i = 0; i < o->size; i++) {
		MPI_Request r;
		int done = 0;
		if (!is_peer(o, i) || i == except)
			continue;
		if (MPI_Isend(why, (int)sizeof(*why), MPI_BYTE, i, TAG_ABORT, w->comm, &r) !=
			MPI_SUCCESS)
			continue;
		while (MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
			if (w->now() - begin > 100000000u) {
				MPI_Request_free(&r);
				break;
			}
			rest(0);
		}
	}
}

/* Receive a whole small message that a probe has seen; larger ones are cut off as malformed. */
static bool take_small(struct world *w, int src, int tag, void *buf, int len)
{
	int got = -1;
	MPI_Status st;
	MPI_Message m;
	int flag = 0;
	if (MPI_Improbe(src, tag, w->comm, &flag, &m, &st) != MPI_SUCCESS || !flag)
		return false;
	MPI_Get_count(&st, MPI_BYTE, &got);
	/* It has arrived: this receive waits for nobody. */
	return got == len && MPI_Mrecv(buf, len, MPI_BYTE, &m, &st) == MPI_SUCCESS;
}

/* Has somebody aborted? Rank 0 passes it on. */
static int check_abort(struct fb_oob *o)
{
	struct world *w = world_of(o);
	struct fb_err why;
	MPI_Status st;
	int flag = 0;
	if (w->dead.code != 0)
		return w->dead.code;
	int rc = MPI_Iprobe(MPI_ANY_SOURCE, TAG_ABORT, w->comm, &flag, &st);
	if (rc != MPI_SUCCESS)
		return mpi_fail(&w->dead, rc, "MPI_Iprobe");
	if (!flag || !take_small(w, st.MPI_SOURCE, TAG_ABORT, &why, sizeof(why)) || why.code >= 0)
		return 0;
	why.msg[sizeof(why.msg) - 1] = why.hint[sizeof(why.hint) - 1] = '\0';
	w->dead = why;
	if (o->rank == 0)
		tell(o, &why, st.MPI_SOURCE);
	return why.code;
}

static bool waiting(struct world *w, int src, int tag)
{
	int flag = 0;
	return MPI_Iprobe(src, tag, w->comm, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag;
}

/* Good-bye, and nothing before it that is still unread. */
static bool has_left(struct world *w, int rank)
{
	return waiting(w, rank, TAG_BYE) && !waiting(w, rank, TAG_DATA);
}

/* One turn of a wait for `rank`. @return 0 to go on */
static int turn(struct fb_oob *o, int rank, uint64_t begin, uint64_t deadline, const char *what,
	struct fb_err *e)
{
	struct world *w = world_of(o);
	char who[128];
	const uint64_t now = w->now();
	if (check_abort(o) != 0)
		return dead(w, e);
	if (has_left(w, rank)) {
		/* Its cause was sent before its good-bye, but may have come since we looked. */
		if (check_abort(o) != 0)
			return dead(w, e);
		return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "%s has left",
			name(o, rank, who, sizeof(who)));
	}
	if (o->stopped && o->stopped())
		return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "interrupted while waiting for %s",
			name(o, rank, who, sizeof(who)));
	if (now >= deadline) {
		fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "%s %s within %.1f s",
			name(o, rank, who, sizeof(who)), what, (double)(now - begin) / 1e9);
		fb_hint(e, OOB_SILENT_HINT);
		return -ETIMEDOUT;
	}
	rest(now - begin);
	return 0;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static int mpi_send(struct fb_oob *o, int dst, const void *buf, uint32_t len, uint64_t deadline,
	struct fb_err *e)
{
	struct world *w = world_of(o);
	const uint64_t begin = w->now();
	MPI_Request r;
	int done = 0;
	if (check_abort(o) != 0)
		return dead(w, e);
	/* MPI owns the buffer until the send is over, and a send that is not over by the deadline
	 * can safely be neither cancelled nor freed: a copy, left behind in that case. */
	void *copy = malloc(len > 0 ? len : 1);
	if (!copy)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message of %u bytes", len);
	if (len > 0)
		memcpy(copy, buf, len);
	int rc = MPI_Isend(copy, (int)len, MPI_BYTE, dst, TAG_DATA, w->comm, &r);
	if (rc != MPI_SUCCESS) {
		free(copy);
		return mpi_fail(e, rc, "MPI_Isend");
	}
	for (;;) {
		rc = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return mpi_fail(e, rc, "MPI_Isend");
		if (done) {
			free(copy);
			return 0;
		}
		rc = turn(o, dst, begin, deadline, "took nothing", e);
		if (rc != 0)
			return rc;
	}
}

/* A matched message into memory: it may still be on its way. */
static int receive(struct fb_oob *o, int src, MPI_Message *m, int n, void **buf, uint64_t deadline,
	struct fb_err *e)
{
	struct world *w = world_of(o);
	const uint64_t begin = w->now();
	MPI_Request r;
	int done = 0;
	void *p = malloc(n > 0 ? (size_t)n : 1);
	if (!p)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a message of %d bytes", n);
	int rc = MPI_Imrecv(p, n, MPI_BYTE, m, &r);
	if (rc != MPI_SUCCESS) {
		free(p);
		return mpi_fail(e, rc, "MPI_Imrecv");
	}
	for (;;) { /* on failure p stays behind: MPI may still write into it */
		rc = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return mpi_fail(e, rc, "MPI_Imrecv");
		if (done) {
			*buf = p;
			return 0;
		}
		rc = turn(o, src, begin, deadline, "sent only half a message", e);
		if (rc != 0)
			return rc;
	}
}

static int mpi_recv(
	struct fb_oob *o, int src, void **buf, uint32_t *len, uint64_t deadline, struct fb_err *e)
{
	struct world *w = world_of(o);
	const uint64_t begin = w->now();
	char who[128];
	for (;;) {
		MPI_Message m;
		MPI_Status st;
		int flag = 0, n = 0;
		if (w->dead.code != 0)
			return dead(w, e);
		int rc = MPI_Improbe(src, TAG_DATA, w->comm, &flag, &m, &st);
		if (rc != MPI_SUCCESS)
			return mpi_fail(e, rc, "MPI_Improbe");
		if (flag) {
			MPI_Get_count(&st, MPI_BYTE, &n);
			if (n < 0 || (unsigned)n > MAX_MESSAGE)
				return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
					"%s sent a message of %d bytes: over the limit",
					name(o, src, who, sizeof(who)), n);
			*len = (uint32_t)n;
			return receive(o, src, &m, n, buf, deadline, e);
		}
		rc = turn(o, src, begin, deadline, "sent nothing", e);
		if (rc != 0)
			return rc;
	}
}

static int mpi_lost(struct fb_oob *o, struct fb_err *e)
{
	struct world *w = world_of(o);
	char who[128];
	if (check_abort(o) != 0)
		return dead(w, e);
	for (int i = 0; i < o->size; i++) {
		if (!is_peer(o, i) || !has_left(w, i))
			continue;
		if (check_abort(o) != 0)
			return dead(w, e);
		return fb_fail(e, FB_EXIT_UNMEASURED, ECONNRESET, "%s has left",
			name(o, i, who, sizeof(who)));
	}
	return 0;
}

static void mpi_abort(struct fb_oob *o, const struct fb_err *why)
{
	struct world *w = world_of(o);
	if (w->dead.code != 0 && o->rank != 0)
		return;
	if (w->dead.code == 0)
		w->dead = *why;
	tell(o, why, -1);
}

static const char *mpi_host(struct fb_oob *o, int rank)
{
	return rank >= 0 && rank < o->size ? world_of(o)->cards[rank].host : NULL;
}

/* ---- parting -----------------------------------------------------------------------------------
 */

static void drop_message(struct world *w, int src, int tag)
{
	MPI_Message m;
	MPI_Status st;
	int flag = 0, n = 0;
	if (MPI_Improbe(src, tag, w->comm, &flag, &m, &st) != MPI_SUCCESS || !flag)
		return;
	MPI_Get_count(&st, MPI_BYTE, &n);
	void *p = n >= 0 && (unsigned)n <= MAX_MESSAGE ? malloc((size_t)n + 1) : NULL;
	MPI_Request r;
	/* not waited for: the process is about to end */
	if (p && MPI_Imrecv(p, n, MPI_BYTE, &m, &r) == MPI_SUCCESS)
		MPI_Request_free(&r);
}

/* Good-bye to and from every peer, so that MPI_Finalize finds all of them. @return all have come */
static bool part(struct fb_oob *o, uint64_t ns)
{
	struct world *w = world_of(o);
	const uint64_t begin = w->now();
	int missing = 0;
	bool *gone = calloc((size_t)o->size, sizeof(*gone));
	if (!gone)
		return false;
	for (int i = 0; i < o->size; i++) {
		MPI_Request r;
		if (!is_peer(o, i))
			continue;
		missing++;
		if (MPI_Isend(NULL, 0, MPI_BYTE, i, TAG_BYE, w->comm, &r) == MPI_SUCCESS)
			MPI_Request_free(&r);
	}
	while (missing > 0 && w->now() - begin < ns) {
		for (int i = 0; i < o->size; i++) {
			if (!is_peer(o, i) || gone[i])
				continue;
			drop_message(w, i, TAG_DATA);
			drop_message(w, i, TAG_ABORT);
			char none;
			if (waiting(w, i, TAG_BYE) && take_small(w, i, TAG_BYE, &none, 0)) {
				gone[i] = true;
				missing--;
			}
		}
		rest(w->now() - begin);
	}
	free(gone);
	return missing == 0;
}

static void mpi_close(struct fb_oob *o)
{
	struct world *w = world_of(o);
	struct watchdog dog;
	const bool all = part(o, w->dead.code == 0 ? PARTING_NS : BROKEN_NS);
	(void)watchdog_begin(&dog, 10000000000u, all ? "MPI_Finalize" : "MPI_Abort",
		"another rank has not ended: look at its output, and end it");
	if (!all)
		MPI_Abort(MPI_COMM_WORLD, FB_EXIT_UNMEASURED); /* ends this process too */
	MPI_Comm_free(&w->comm);
	MPI_Finalize();
	watchdog_end(&dog);
	free(w->cards);
	free(w);
	o->priv = NULL;
}

/* ---- joining -----------------------------------------------------------------------------------
 */

static const struct fb_oob_ops mpi_ops = {
	.name = "mpi",
	.send = mpi_send,
	.recv = mpi_recv,
	.lost = mpi_lost,
	.abort = mpi_abort,
	.host = mpi_host,
	.close = mpi_close,
};

static bool launched(void)
{
	static const char *const signs[] = {
		"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD"};
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (getenv(signs[i]))
			return true;
	return false;
}

static int init(uint64_t timeout_ns, struct fb_err *e)
{
	struct watchdog dog;
	int begun = 0, ended = 0, provided = 0;
	if (!launched()) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV, "no MPI launcher started this process");
		fb_hint(e, "start it by mpirun -n N or srun --mpi=pmix, or use --comm tcp");
		return -ENODEV;
	}
	MPI_Initialized(&begun);
	MPI_Finalized(&ended);
	if (begun || ended)
		return fb_fail(e, FB_EXIT_UNMEASURED, EALREADY,
			"MPI was already used in this process, and can be begun only once");
	int rc = watchdog_begin(&dog, timeout_ns, "MPI_Init_thread",
		"a rank has not come, or MPI chose a network that does not work: try mpirun with --mca btl "
		"self,vader,tcp, or UCX_TLS=tcp,self,sm; slow starts: --connect-timeout");
	if (rc != 0)
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "cannot start a thread: %s", strerror(rc));
	else if ((rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided)) != MPI_SUCCESS)
		mpi_fail(e, rc, "MPI_Init_thread");
	else
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	watchdog_end(&dog);
	return rc == 0 ? 0 : -EIO;
}

static int wait_request(
	struct world *w, MPI_Request *r, uint64_t deadline, const char *what, struct fb_err *e)
{
	const uint64_t begin = w->now();
	for (;;) {
		int done = 0;
		int rc = MPI_Test(r, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return mpi_fail(e, rc, what);
		if (done)
			return 0;
		if (w->now() >= deadline)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"%s did not end within %.1f s: a rank is not answering", what,
				(double)(w->now() - begin) / 1e9);
		rest(w->now() - begin);
	}
}

/* Who is who, and does everybody run the same program? */
static int introduce(struct fb_oob *o, struct world *w, uint64_t deadline, struct fb_err *e)
{
	struct card mine = {.version = FB_VERSION};
	MPI_Request r;
	if (gethostname(mine.host, sizeof(mine.host) - 1) != 0)
		memcpy(mine.host, "unknown", sizeof("unknown"));
	int rc = MPI_Comm_idup(MPI_COMM_WORLD, &w->comm, &r);
	if (rc != MPI_SUCCESS)
		return mpi_fail(e, rc, "MPI_Comm_idup");
	rc = wait_request(w, &r, deadline, "MPI_Comm_idup", e);
	if (rc != 0)
		return rc;
	MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
	rc = MPI_Iallgather(&mine, (int)sizeof(mine), MPI_BYTE, w->cards, (int)sizeof(mine),
		MPI_BYTE, w->comm, &r);
	if (rc != MPI_SUCCESS)
		return mpi_fail(e, rc, "MPI_Iallgather");
	rc = wait_request(w, &r, deadline, "MPI_Iallgather", e);
	for (int i = 0; i < o->size && rc == 0; i++) {
		struct card *c = &w->cards[i];
		c->version[sizeof(c->version) - 1] = c->host[sizeof(c->host) - 1] = '\0';
		if (strcmp(c->version, w->cards[0].version) != 0)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank %d on %s is fabricbench %s, rank 0 on %s is %s", i, c->host,
				c->version, w->cards[0].host, w->cards[0].version);
	}
	return rc;
}

static int mpi_open(uint64_t (*now)(void), uint64_t timeout_ns, struct fb_oob *o, struct fb_err *e)
{
	const uint64_t deadline = now() + timeout_ns;
	struct world *w = calloc(1, sizeof(*w));
	if (!w)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the control channel");
	w->now = now;
	int rc = init(timeout_ns, e);
	if (rc != 0)
		goto free_world;
	MPI_Comm_rank(MPI_COMM_WORLD, &o->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &o->size);
	rc = -ENOMEM;
	w->cards = calloc((size_t)o->size, sizeof(*w->cards));
	if (!w->cards)
		goto abort_mpi;
	rc = introduce(o, w, deadline, e);
	if (rc != 0)
		goto abort_mpi;
	o->ops = &mpi_ops;
	o->priv = w;
	return 0;

abort_mpi:
	/* Nothing collective can be trusted any more, and leaving without MPI_Finalize ends the job
	 * by the launcher's hand. The cause is told by the caller. */
	free(w->cards);
free_world:
	free(w);
	return rc;
}

const struct fb_oob_provider mpi_oob_provider = {
	.name = "mpi",
	.open = mpi_open,
};
