/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks find each other and talk outside the fabric under test: a star around rank 0.
 * Kinds: tcp (client and server; N-rank rendezvous), local (threads of one process), mpi (plug-in).
 * Every call has an absolute deadline (fb_clock_ns) and ends in time, with the rank and host of
 * whoever is missing.
 */
#ifndef FB_OOB_OOB_H
#define FB_OOB_OOB_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"
#include "bench/oob/oob_ops.h"

#define FB_OOB_DEFAULT_PORT 18515 /* perftest's habit */
#define FB_OOB_MAX_MSG      (64u << 20)

enum fb_oob_kind { FB_OOB_AUTO, FB_OOB_LOCAL, FB_OOB_TCP, FB_OOB_MPI };

/** Options; chain fb_oob_opts. Unset ones are taken from the launcher's environment (see
 * fb_oob_from_env). */
struct fb_oob_cfg {
	int kind;            /**< --comm auto|local|tcp|mpi */
	int ranks;           /**< --ranks N; 0: from the environment, else 1 */
	int rank;            /**< --rank I; -1: from the environment */
	char *master;        /**< --master HOST[:PORT] of rank 0 */
	char *bind;          /**< --bind ADDRESS: the one address rank 0 listens on */
	int port;            /**< -p/--port */
	char *token;         /**< --token TEXT or FABRICBENCH_TOKEN: peers without it are refused */
	uint64_t timeout_ns; /**< --connect-timeout (30s) */
	bool some; /**< not an option: rank 0 goes on with the ranks that came in time, and one that
		      ends later ends alone; such a handle is used by fb_oob_tell() and
		      fb_oob_hear() only */
};
extern const struct fb_opt fb_oob_opts[];

/**
 * What a launcher promised: SLURM_PROCID/NTASKS, OMPI_COMM_WORLD_RANK/SIZE, PMI_RANK/SIZE,
 * RANK/WORLD_SIZE/MASTER_ADDR/ MASTER_PORT, JOB_COMPLETION_INDEX. Fills what cfg leaves open.
 * @return 0 or -EINVAL (contradiction; exit 2)
 */
int fb_oob_from_env(struct fb_oob_cfg *cfg, struct fb_err *e) FB_MUST_CHECK;

/**
 * Join the ranks: kind auto is mpi under mpirun/srun with PMI, tcp when master or rank is known,
 * else local with one rank. Not for several `local` ranks: see fb_oob_local_run. Fewer ranks than
 * promised is -ETIMEDOUT naming each missing one (exit 3). Hello compares magic, protocol and
 * program version, token, rank, size: a foreign or duplicate rank is named and refused.
 */
int fb_oob_open(const struct fb_oob_cfg *cfg, struct fb_oob **o, struct fb_err *e) FB_MUST_CHECK;
void fb_oob_close(struct fb_oob *o);

/** n threads of this process, each with its own handle, run fn(oob, arg); joins all. @return the
 * first failing rank's value, *e its error */
int fb_oob_local_run(int n, int (*fn)(struct fb_oob *o, void *arg, struct fb_err *e), void *arg,
	struct fb_err *e) FB_MUST_CHECK;

/* ---- client and server (two ranks, persistent server)
 * ------------------------------------------------- */
struct fb_oob_listener;
/** Listen on one address (NULL: any) and port (0: ephemeral; *port gets it). Bounded backlog;
 * half-open peers are dropped after 5 s. */
int fb_oob_listen(const char *bind, int *port, const char *token, struct fb_oob_listener **l,
	struct fb_err *e) FB_MUST_CHECK;
/** Next client that says a proper hello: the session is rank 1 of 2 with the client as rank 0. Bad
 * peers are refused with a reason, logged, and do not end this call. @return 0, -EINTR (stop
 * requested), -ETIMEDOUT */
int fb_oob_accept(struct fb_oob_listener *l, uint64_t deadline, struct fb_oob **o,
	struct fb_err *e) FB_MUST_CHECK;
void fb_oob_listener_close(struct fb_oob_listener *l);
/** Connect as rank 0 of 2. @return 0; -ECONNREFUSED, -ETIMEDOUT, -EPROTO (other program or version:
 * both are named), -EACCES (token), -EBUSY (another client's session runs) */
int fb_oob_connect(const char *host, int port, const char *token, uint64_t deadline,
	struct fb_oob **o, struct fb_err *e) FB_MUST_CHECK;

/* ---- calls, all collective over the ranks of o
 * -------------------------------------------------------- */
/* The first call that fails breaks the handle: the other ranks are told its cause, and every later
 * call returns the same error. -EINTR: a stop was requested while a call had to wait; what needs no
 * waiting (a message of rank 0 to ranks that read) still goes. */
/** buf (len bytes, the same on all) of rank 0 to all. */
int fb_oob_bcast(struct fb_oob *o, void *buf, uint32_t len, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;
/** Everyone's buffer to rank 0: parts[size] there, each {data, len}, freed by fb_oob_parts_free();
 * NULL on other ranks. */
struct fb_oob_part {
	void *data;
	uint32_t len;
};
int fb_oob_gather(struct fb_oob *o, const void *buf, uint32_t len, struct fb_oob_part **parts,
	uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
void fb_oob_parts_free(struct fb_oob *o, struct fb_oob_part *parts);
int fb_oob_barrier(struct fb_oob *o, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** Equal blocks of len bytes from all to all: out is size*len bytes in rank order. */
int fb_oob_allgather(struct fb_oob *o, const void *mine, uint32_t len, void *out, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;
/** A JSON document of rank 0 to all (*j new reference on the others). */
int fb_oob_bcast_json(
	struct fb_oob *o, json_t **j, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** Everyone's JSON to rank 0 as an array in rank order (*all new reference; NULL elsewhere). */
int fb_oob_gather_json(struct fb_oob *o, const json_t *mine, json_t **all, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;
/**
 * One outcome for all: each rank passes its own error (code 0: fine); afterwards every rank has the
 * first failing rank's error, with "rank N on HOST: " before the text, and returns its code.
 */
int fb_oob_agree(struct fb_oob *o, struct fb_err *e, uint64_t deadline) FB_MUST_CHECK;
/** Has a rank gone? 0, or -ECONNRESET with its rank and host. Never blocks, reads nothing that a
 * call would want. */
int fb_oob_lost(struct fb_oob *o, struct fb_err *e);
/**
 * One message between rank 0 and one rank, outside of the collective calls, for ranks that each do
 * their own: with cfg.some a failure of one rank concerns that rank only, and breaks nothing.
 * @return 0; -ECONNRESET: it has left, or never came; -ETIMEDOUT, -EINTR, -EPROTO
 */
int fb_oob_tell(struct fb_oob *o, int rank, const json_t *j, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;
/** The next such message of `rank`; *j is a new reference. */
int fb_oob_hear(
	struct fb_oob *o, int rank, json_t **j, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** No collective call on this handle lasts beyond `deadline`, whatever its own says. */
void fb_oob_limit(struct fb_oob *o, uint64_t deadline);
/** Tell all ranks why, so that their pending calls end with that text. */
void fb_oob_abort(struct fb_oob *o, const struct fb_err *why);
/** "rank 3 on node07" @return buf */
const char *fb_oob_peer(struct fb_oob *o, int rank, char *buf, size_t len);
int fb_oob_rank(const struct fb_oob *o);
int fb_oob_size(const struct fb_oob *o);

#endif
