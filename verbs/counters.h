/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a device's port, and what they mean: names differ by driver and are normalised into
 * classes. Unknown is "not available", never 0.
 */
#ifndef VERBS_COUNTERS_H
#define VERBS_COUNTERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/sysroot.h"

enum verbs_counter_class {
	VERBS_LOSS_SEEN,   /**< a gap in sequence numbers: lost or reordered on the way here */
	VERBS_NAK,         /**< the peer asked for a retransmission */
	VERBS_TIMEOUT,     /**< no acknowledgement in time: each costs a whole timeout */
	VERBS_RNR,         /**< receiver not ready */
	VERBS_ECN,         /**< packets marked by the fabric arrived */
	VERBS_CNP_SENT,    /**< congestion notifications sent */
	VERBS_CNP_HANDLED, /**< congestion notifications obeyed */
	VERBS_CNP_IGNORED, /**< congestion notifications ignored */
	VERBS_ICRC,        /**< corrupted, or rewritten on the way */
	VERBS_RETRY_EXHAUSTED,
	VERBS_NUM_CLASSES
};
extern const char *const verbs_class_names[VERBS_NUM_CLASSES];

/** Class of a driver's counter, or -1: it belongs to none, or the driver is not known here. */
int verbs_counter_class(const char *driver, const char *counter);

/**
 * All of hw_counters and counters of one port, {"name": value}. The kernel caches hw_counters for
 * `lifespan` ms (10 by default); the caller has waited that long: verbs_counters_settle().
 * @return new reference; an empty object where the device has none
 */
json_t *verbs_counters_read(const struct fb_sysroot *r, const char *device, unsigned port);
/** Sleep until a read is newer than now. */
void verbs_counters_settle(const struct fb_sysroot *r, const char *device, unsigned port);

/**
 * Add up by class what grew between two reads. @param grown VERBS_NUM_CLASSES sums, -1 where the
 * driver has no counter of that class. A counter that went backwards (a reset) counts as unknown.
 */
void verbs_counters_classify(const char *driver, const json_t *before, const json_t *after,
	int64_t grown[VERBS_NUM_CLASSES]);
/** The driver of a source ("rxe0/1", "rank1/rxe0/1"), "" where it is not known. */
typedef const char *(*verbs_driver_of)(const void *arg, const char *source);
/**
 * The classes of a finished result: adds to its `counters` {before, after, delta} the keys
 * `classes` {class: sum over both ends, null where no end has a counter of it}, `classes_by`
 * {source: {class: sum}, without those it has none of} and `classes_note` on what is not available.
 */
void verbs_counters_extend(json_t *counters, verbs_driver_of driver, const void *arg);

/** Add one port, as {"driver", "counters"} read twice, to a result's `counters` {before, after,
 * delta} under `key`. What only one read has is in no delta. */
void verbs_counters_add_port(json_t *c, const char *key, const json_t *before, const json_t *after);

/** "lost or reordered 3, timeouts 1": only the classes that tell of loss. @return buf, "" when
 * there is nothing to tell */
const char *verbs_loss_text(const int64_t grown[VERBS_NUM_CLASSES], char *buf, size_t len);

#endif
