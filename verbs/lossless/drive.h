/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `check --drive`: N hosts write to this node at once, and what the counters of all of them show
 * meanwhile is judged. The load is that of `verbs incast`, in this process; the hosts run `verbs
 * serve`. A host that fails is one error among the findings, and the others are judged.
 *
 * Orders of a session beside those of incast.h: {"do":"facts"} -> {"fabric", device, rdma_port}:
 * summary.h; {"do":"path-open"} -> {"port"}: a UDP socket at its RDMA address that sends each
 * datagram with the session's word back as it came; {"do":"path-close"} -> {"arrived" [{size, n}]}.
 */
#ifndef VERBS_LOSSLESS_DRIVE_H
#define VERBS_LOSSLESS_DRIVE_H

#include "bench/core/check.h"
#include "bench/core/opt.h"
#include "bench/oob/oob.h"
#include "verbs/incast.h"
#include "verbs/lossless/checks.h"
#include "verbs/sniff.h"

struct drive_cfg {
	struct fb_opt_list hosts;
	char *victim, *peer_device;
	uint64_t size, duration_ns, interval_ns;
	double rate;
	int depth, gid_index, traffic_class, victim_traffic_class;
};
/** Named as those of `verbs incast` are. */
extern const struct fb_opt drive_opts[];
extern const struct fb_check_def drive_checks[]; /**< drive.host, then id NULL */

/** What a path let through. */
enum drive_probe { DRIVE_SMALL, DRIVE_ROCE, DRIVE_FULL, DRIVE_PROBES };
struct drive_path {
	bool tried;
	char why[160];                 /**< not tried */
	int bytes[DRIVE_PROBES];       /**< of the IP packet: 64; one of RoCE at the RDMA MTU; the
					  interface's MTU */
	bool back[DRIVE_PROBES];       /**< it came back */
	int64_t arrived[DRIVE_PROBES]; /**< there; -1: the host did not tell */
};
/** One host, as the receiver sees it. */
struct drive_peer {
	const char *name; /**< as given */
	bool victim;
	bool joined; /**< its session was there */
	bool lost;   /**< it failed, then or later: why */
	struct fb_err why;
	struct node_facts *facts;      /**< by its summary; NULL: it did not tell */
	const struct port_facts *port; /**< in these, the one that took part; NULL */
	struct port_window window;
	struct drive_path path;
	uint64_t sent; /**< messages */
	double rate;   /**< bytes/s */
};
struct drive {
	struct drive_peer *peer; /**< senders, then the victim */
	int peers;
	int port;       /**< index in the node's facts of the port with the load; -1: none had it */
	char where[96]; /**< "rxe0/1" */
	char no_load[320];           /**< of ports without a window */
	struct port_window *windows; /**< by port of the node's facts */
	int n_windows;
	int traffic_class;
	char class_by[96]; /**< who has asked for it */
	uint64_t duration_ns;
	uint64_t reads; /**< from the victim, that were answered */
	int dscp, victim_dscp;
	unsigned path_mtu;
	uint64_t bytes, packets; /**< what the senders sent, at least */
	uint64_t size;           /**< of their messages */
	bool sniffed;
	char sniff_why[160]; /**< of not sniffed */
	struct verbs_sniffed wire;
	unsigned wire_drops;
};
struct drive_ask {
	const struct drive_cfg *cfg;
	const struct fb_oob_cfg *reach; /**< port, token, timeout */
	const char *device;             /**< NULL: the first ACTIVE one */
	const struct node_facts *facts;
	const struct profile *profile;
	struct fb_doc *doc;
	uint64_t deadline;
};

/** @return 0, or -EINVAL (exit 2) */
int drive_check_options(const struct drive_cfg *c, struct fb_err *e) FB_MUST_CHECK;
/**
 * Make the load and read the windows. Hosts that fail, and a device here that cannot be opened, are
 * in *d and no failure of this call. @return 0; -ENOMEM, -EINTR
 */
int drive_run(const struct drive_ask *a, struct drive *d, struct fb_err *e) FB_MUST_CHECK;
void drive_free(struct drive *d);
/** A finding for each host, the live checks of the hosts' own ports, and what was driven as
 * fabric.drive. */
void drive_tell(const struct drive *d, const struct profile *p, struct fb_doc *doc);
void drive_describe(const struct drive *d, json_t *fabric);

/** R27 and, where packets could be seen, R28. @return false: nothing to say of the wire */
void drive_judge_path(const struct drive *d, struct fb_finding *f);
bool drive_judge_wire(const struct check_input *in, struct fb_finding *f);
/** Sum over all hosts of what grew under any of these names; -1: none has one of them. */
int64_t drive_grew(const struct drive *d, const char *const *names, size_t n);

/* ---- a host's side --------------------------------------------------------------------------- */

struct drive_echo;
/** Obey one of the orders above. @return false: it is none of them */
bool drive_obey(struct verbs_incast_end *x, const char *what, const json_t *order, json_t *answer);
void drive_echo_free(struct drive_echo *x);

/* ---- the path (drive_path.c) ----------------------------------------------------------------- */

/** Where probes go from and to. */
struct drive_route {
	union ibv_gid from, to;
	char netdev[64];
	uint64_t word;
	int port;
	int netdev_mtu, rdma_mtu;
};
/** Start the answering end at `at`. @return NULL with *why */
struct drive_echo *drive_echo_open(const union ibv_gid *at, const char *netdev, uint64_t word,
	int *port, char *why, size_t len);
/** How often a datagram of so many bytes of IP packet came. */
void drive_echo_tell(struct drive_echo *x, json_t *answer);
/** Send datagrams that must not be divided, and wait for each to come back. */
void drive_path_probe(const struct drive_route *r, struct drive_path *p);
/** Fill p->arrived from the answering end's word. */
void drive_path_arrived(const json_t *answer, struct drive_path *p);

#endif
