/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read facts share: one file through the door becomes one fact, with the path
 * and, where there is no value, the reason. */
#ifndef VERBS_LOSSLESS_FACTS_PRIV_H
#define VERBS_LOSSLESS_FACTS_PRIV_H

#include "verbs/lossless/facts.h"

/** Of a recorded tree: what the recorder could not read itself, a path (a file, or a folder with
 * all in it) a line. */
#define FACTS_RECORDED_HIDDEN "/hidden"
/** When it was recorded, in UTC: 2026-01-31T12:00:00Z */
#define FACTS_RECORDED_TIME "/recorded"
/** NAME=VALUE a line. */
#define FACTS_RECORDED_ENV       "/env"
#define FACTS_RECORDED_NCCL_CONF "/home/.nccl.conf"
/** Device, port: what ibv_query_port() told, in bytes. */
#define FACTS_RECORDED_MTU "/rdma/%s/%d.active_mtu"

struct facts_door {
	const struct fb_sysroot *r;
	char *hidden; /**< text of FACTS_RECORDED_HIDDEN; NULL: none */
};
/** Open for reading through r, which outlives it; close frees what it holds. */
void facts_door_open(struct facts_door *d, const struct fb_sysroot *r);
void facts_door_close(struct facts_door *d);

/** A fact without a value. */
void fact_none(struct fact *f, enum fact_state s, const char *fmt, ...) FB_PRINTF(3, 4);
/** How the fact was read, or would have been. */
void fact_read_by(struct fact *f, const char *fmt, ...) FB_PRINTF(2, 3);
/**
 * Read one file into buf and set f: known; absent (ENOENT), hidden (EACCES, or recorded as such) or
 * broken. @return its length, or -errno
 */
int facts_file(const struct facts_door *d, struct fact *f, char *buf, size_t len, const char *fmt,
	...) FB_PRINTF(5, 6);
void facts_text(const struct facts_door *d, struct fact_text *t, const char *fmt, ...)
	FB_PRINTF(3, 4);
/** Decimal or 0x; anything else is broken. */
void facts_int(const struct facts_door *d, struct fact_int *v, const char *fmt, ...)
	FB_PRINTF(3, 4);
/** The same, of a value that can only be least to most; anything else is broken. */
void facts_int_in(const struct facts_door *d, struct fact_int *v, int64_t least, int64_t most,
	const char *fmt, ...) FB_PRINTF(5, 6);
/** Did the recorder, or can we, not look there? */
bool facts_is_hidden(const struct facts_door *d, const char *path);

/** facts_port.c: link, interface, addresses, PCIe, counters. */
void facts_read_port(const struct facts_door *d, struct port_facts *p);
/** facts_qos.c: DCB, ethtool, the vendor's files, cc_params, rdma_cm. netdev is set before. */
void facts_read_qos(const struct facts_door *d, struct port_facts *p);
/** facts_pci.c: configuration space. bdf is set before. */
void facts_read_pci(const struct facts_door *d, struct port_facts *p);
/** facts_fw.c: registers that only the vendor's tool reads. bdf is set before. */
void facts_read_fw(const struct facts_door *d, struct port_facts *p);
/** Ask mlxreg (MFT) or mstreg (mstflint), whichever is on PATH, within seconds. */
void facts_fw_ask(const char *bdf, struct fact_text *t);
/** facts_node.c */
void facts_read_node(const struct facts_door *d, struct node_facts *n);

#endif
