/* SPDX-License-Identifier: Apache-2.0 */
/* What moved on each port while somebody watched, or while a command ran. */
#ifndef VERBS_LOSSLESS_LIVE_H
#define VERBS_LOSSLESS_LIVE_H

#include "verbs/lossless/check_cmd.h"

extern const struct check_live_ops check_live;

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
