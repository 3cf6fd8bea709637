/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bench/oob share: the wire format of tcp (frame.c), its connections (conn.c),
 * how they are made (meet.c), and the transports behind oob_ops.h. Nothing here leaves this folder.
 */
#ifndef FB_OOB_OOB_PRIV_H
#define FB_OOB_OOB_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/strbuf.h"
#include "bench/oob/oob.h"

/* ---- the front (oob.c) ----------------------------------------------------------------------- */

/** Longest wait between two looks at fb_stop_requested(), ms. */
#define OOB_SLICE_MS 100

/** What fb_oob_open() and its sisters hand out; `o` is what transports see. */
struct oob_front {
	struct fb_oob o;
	struct fb_err broken; /**< the first failure: the handle is of no use after it */
	uint32_t seq;         /**< number of the collective call, the same on all ranks */
	uint64_t limit;       /**< deadline of every collective call; 0: their own alone */
};
struct fb_oob *oob_new(struct fb_err *e);
/** Free a handle whose transport was never opened. */
void oob_delete(struct fb_oob *o);
/** This host's name, cut to what the wire carries. */
const char *oob_hostname(char *buf, size_t len);
/** How long ago a wait began, for messages. */
double oob_seconds(uint64_t ns);

/* ---- local.c --------------------------------------------------------------------------------- */

/** A handle of one rank, alone. */
int oob_local_open(struct fb_oob *o, struct fb_err *e);

/* ---- frame.c: every byte on the wire; pure functions over buffers ------------------------------
 *
 * frame   = "FBOC", protocol (u16), type (u8), 0 (u8), length (u32), body; all big endian
 * hello   = version (s8), host (s8), role (u8), rank (i32), size (i32), token (s8)
 * refuse, abort = version (s8), code (i32), exit (u32), message (s16), hint (s16)
 * welcome = version (s8), size (u32), host of each rank (s8)
 * data    = the message;  bye = nothing
 * s8, s16 = length, then so many bytes. The header, and the version and host at the start of a
 * hello, stay as they are in every protocol, so that two versions can always name each other.
 */
#define OOB_PROTOCOL    1
#define OOB_HDR         12
#define OOB_HOST        65
#define OOB_VERSION     32
#define OOB_TOKEN       129
#define OOB_MAX_HELLO   1024u
#define OOB_MAX_WELCOME (1u << 20)
#define OOB_MAX_RANKS   8192
#define OOB_MAX_DATA    (FB_OOB_MAX_MSG + 64u)

enum oob_frame { OOB_HELLO = 1, OOB_WELCOME, OOB_REFUSE, OOB_DATA, OOB_ABORT, OOB_BYE };
enum oob_role { OOB_CLIENT = 1, OOB_RANK };

struct oob_hdr {
	uint16_t protocol;
	uint8_t type;
	uint32_t len;
};
struct oob_hello {
	char version[OOB_VERSION], host[OOB_HOST], token[OOB_TOKEN];
	uint8_t role;
	int rank, size;
};

/** The protocol number we announce: OOB_PROTOCOL, or FABRICBENCH_TEST_PROTOCOL (a test switch: play
 * another version). */
uint16_t oob_protocol(void);
/** Do the first n (1..) bytes begin like one of our frames? */
bool oob_is_ours(const uint8_t *p, size_t n);
void oob_hdr_put(uint8_t p[OOB_HDR], enum oob_frame type, uint32_t len);
/** @return 0, or -EPROTO: not our magic */
int oob_hdr_get(const uint8_t p[OOB_HDR], struct oob_hdr *h);
/** The most a body of this type may have; 0 for an unknown type. */
uint32_t oob_frame_limit(uint8_t type);
void oob_hello_put(struct fb_strbuf *b, const struct oob_hello *h);
/** @return 0, or -EPROTO: cut, too long or trailing bytes. Of another protocol only version and
 * host are read. */
int oob_hello_get(const void *body, size_t len, uint16_t protocol, struct oob_hello *h);
void oob_err_put(struct fb_strbuf *b, const struct fb_err *why);
int oob_err_get(const void *body, size_t len, char version[OOB_VERSION], struct fb_err *why);
void oob_welcome_put(struct fb_strbuf *b, const char (*hosts)[OOB_HOST], int size);
/** @param hosts filled with `size` names. @return 0, or -EPROTO (also when the size differs) */
int oob_welcome_get(const void *body, size_t len, char (*hosts)[OOB_HOST], int size);
/** The printable start of foreign bytes, at most 24 of them, for a message. @return buf */
const char *oob_printable(const void *p, size_t n, char *buf, size_t len);
/** Equal? Takes as long for any two texts of the same lengths. */
bool oob_token_equal(const char *a, const char *b);
/** "3, 7-9": the ranks in [0, n) for which has[i] is false. */
void oob_missing(struct fb_strbuf *b, const bool *has, int n);

/* ---- conn.c: one connection -------------------------------------------------------------------
 */

struct oob_msg {
	struct oob_msg *next;
	uint32_t len;
	uint8_t *data;
};
struct oob_conn {
	int fd;          /**< -1: none */
	bool bye;        /**< said good-bye: the end of its stream is no accident */
	bool eof;        /**< nothing more comes */
	bool tx_partial; /**< half a frame is out: nothing else may follow it */
	uint8_t hdr[OOB_HDR];
	unsigned hdr_got;
	struct oob_hdr h;
	uint8_t *body;
	uint32_t got, cap;
	struct oob_msg *head, **tail; /**< whole messages not yet asked for */
	size_t queued;
	int why; /**< errno of the failure that ended it, 0: end of stream */
};
void oob_conn_init(struct oob_conn *c, int fd);
/** Non-blocking, no delay, keepalive. */
int oob_conn_tune(int fd);
/** Longest silence of a peer's machine, ms: time for six retransmissions (Linux doubles from 0.2
 * s), so that neither a lossy path nor a machine denied its CPU for seconds is taken for a lost
 * one. */
#define OOB_SILENT_MS 20000
/** Has the peer's machine acknowledged nothing for `ms`, while data for it was sent again and
 * again? */
bool oob_conn_silent(const struct oob_conn *c, unsigned ms);
/**
 * Read what is there. @return 1: a whole frame stands in c->h and c->body (take it with
 * oob_conn_take()); 0: not yet; -ECONNRESET: the stream ended; -EPROTO: foreign or over `limit`;
 * -ENOMEM
 */
int oob_conn_read(struct oob_conn *c, uint32_t limit);
/** The body of the frame just read, malloc'ed (NULL when empty); the connection is ready for the
 * next.
 */
uint8_t *oob_conn_take(struct oob_conn *c);
/** Send as much as goes without waiting of hdr+body from *done on. @return 1 all, 0 not yet,
 * -ECONNRESET */
int oob_conn_write(
	struct oob_conn *c, const uint8_t *hdr, const void *body, uint32_t len, size_t *done);
/** One small frame at once, or within `ms`; a failure is not told. */
void oob_conn_post(struct oob_conn *c, enum oob_frame type, const struct fb_strbuf *body, int ms);
int oob_conn_push(struct oob_conn *c, uint8_t *data, uint32_t len);
bool oob_conn_pop(struct oob_conn *c, void **data, uint32_t *len);
/** Drain, close, free. */
void oob_conn_close(struct oob_conn *c);

/* ---- tcp.c: the transport over a star of connections -------------------------------------------
 */

struct oob_tcp {
	struct oob_conn *conn; /**< by rank; rank 0 has size-1 of them, others only [0] */
	char (*hosts)[OOB_HOST];
	void *pfd;          /**< struct pollfd[size] */
	int *pfd_rank;      /**< whose entry that is */
	struct fb_err dead; /**< why nothing goes any more; code 0: it goes */
	bool told;          /**< the others know */
	bool some;          /**< rank 0: a rank that goes, goes alone (fb_oob_cfg.some) */
	struct fb_oob_listener *listener; /**< a server's: further clients hear "busy" */
	unsigned silent_ms;               /**< OOB_SILENT_MS, but for tests */
	uint64_t looked;                  /**< when silence was looked for last */
};
/** Make o a tcp star of `size` ranks; connections are filled in by the caller. */
int oob_tcp_init(struct fb_oob *o, int rank, int size, struct fb_err *e);
/** End everything with this cause and tell the others, but for rank `except` (-1: tell all). */
void oob_tcp_die(struct fb_oob *o, const struct fb_err *why, int except);

/* ---- meet.c: listening, greeting, dialling -----------------------------------------------------
 */

/** Refuse whoever is waiting at a listener's door, as long as busy(o): once that is over, the guest
 * who has just been heard is kept for the next fb_oob_accept(). */
void oob_turn_away(struct fb_oob_listener *l, const char *busy_with, bool (*busy)(struct fb_oob *o),
	struct fb_oob *o);
void oob_listener_detach(struct fb_oob_listener *l);
/** The N-rank rendezvous. `l`: rank 0's listener (else NULL: made from cfg). */
int oob_tcp_meet(const struct fb_oob_cfg *cfg, struct fb_oob_listener *l, struct fb_oob *o,
	struct fb_err *e);
/** A connected socket. `patient`: a refused connection is tried again until the deadline. */
int oob_dial(
	const char *host, int port, bool patient, uint64_t deadline, int *fd, struct fb_err *e);

#endif
