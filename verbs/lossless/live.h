/* SPDX-License-Identifier: Apache-2.0 */
/* What moved on each port while somebody watched, or while a command ran. */
#ifndef VERBS_LOSSLESS_LIVE_H
#define VERBS_LOSSLESS_LIVE_H

#include "bench/core/opt.h"
#include "verbs/lossless/checks.h"

struct fb_doc;

/** --watch and --during. */
struct live_cfg {
	uint64_t watch_ns;
	bool during;
	uint64_t limit_ns;    /**< of the command */
	const char **command; /**< of --during, NULL-terminated; argv's own */
};
extern const struct fb_opt live_opts[]; /**< over struct live_cfg */

/** Take from the arguments what no option table can hold, --during's command after --; argc
 * shrinks. @return 0 or -EINVAL (exit 2) */
int live_cut(struct live_cfg *c, int *argc, char **argv, struct fb_err *e) FB_MUST_CHECK;
/** Was a window asked for? */
bool live_wanted(const struct live_cfg *c);
/**
 * Fill windows[i] for n->port[i], zeroed before: read, watch or run the command, read again. May
 * warn in doc. The caller releases what windows hold, whatever this returns.
 * @return 0, or -errno with *e (its exit is the command's): a recording, both ways asked for, a
 * signal, the command not started or over its limit
 */
int live_fill(const struct live_cfg *c, const struct fb_sysroot *r, const struct node_facts *n,
	struct port_window *windows, struct fb_doc *doc, struct fb_err *e) FB_MUST_CHECK;

/** What a port shows at one moment. */
struct live_reading {
	uint64_t at;                          /**< ns */
	json_t *stats;                        /**< ethtool -S, and the interface's own drops as
						 netdev_*; NULL: none */
	json_t *counters;                     /**< counters and hw_counters; NULL: none */
	int64_t netdev_bytes, netdev_packets; /**< the interface's own; -1: not known */
};
/** Read a port once its counters are newer than now. live_reading_free() frees. */
void live_read(const struct fb_sysroot *r, const char *device, int port, const char *netdev,
	struct live_reading *out);
void live_reading_free(struct live_reading *x);
/** As it travels from another node; times are that node's own. New reference. */
json_t *live_reading_json(const struct live_reading *x);
/** @return false: j is no reading, and *x is empty */
bool live_reading_from(const json_t *j, struct live_reading *x);
/**
 * The window between two readings. Growth of every value both have; null where one went backwards
 * (a reset). Bytes and packets come from the port's own counters, else from its interface.
 */
void live_window(
	const struct live_reading *before, const struct live_reading *after, struct port_window *w);

#endif
