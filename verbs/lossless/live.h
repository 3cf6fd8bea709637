/* SPDX-License-Identifier: Apache-2.0 */
/* What moved on each port while somebody watched, or while a command ran. */
#ifndef VERBS_LOSSLESS_LIVE_H
#define VERBS_LOSSLESS_LIVE_H

#include "verbs/lossless/check_cmd.h"

extern const struct check_live_ops check_live;

/** What a port shows at one moment. */
struct live_reading {
	uint64_t at;                          /**< ns */
	json_t *stats;                        /**< ethtool -S; NULL: none */
	json_t *counters;                     /**< counters and hw_counters; NULL: none */
	int64_t netdev_bytes, netdev_packets; /**< the interface's own; -1: not known */
};
/**
 * The window between two readings. Growth of every value both have; null where one went backwards
 * (a reset). Bytes and packets come from the port's own counters, else from its interface.
 */
void live_window(
	const struct live_reading *before, const struct live_reading *after, struct port_window *w);

#endif
