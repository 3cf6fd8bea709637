/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes over time: how much arrived in each window of a point's measured time, and which window was
 * the worst, so that a link that comes and goes shows where an average would hide it. Time is
 * measured time: between batches nothing is under way and nothing passes.
 *
 * Bounded: the worst window is kept at the length asked for, the series itself merges neighbours
 * once it is full. Written by the timed loop, a few instructions for a burst of completions.
 */
#ifndef VERBS_SERIES_H
#define VERBS_SERIES_H

#include <jansson.h>
#include <stdint.h>

#define VERBS_SERIES_MAX    600
#define VERBS_SERIES_MIN_NS 1000000u /* shortest window */

struct verbs_series {
	uint64_t window_ns; /**< as asked for */
	uint64_t merged;    /**< windows in one entry: 1, 2, 4, ... */
	uint64_t base_ns;   /**< measured time before the batch under way */
	uint64_t window;    /**< number of the window that is open */
	uint64_t open;      /**< bytes in it */
	uint64_t entry[VERBS_SERIES_MAX];
	unsigned n;           /**< entries in use, the one that is filling included */
	uint64_t worst_bytes; /**< of full windows */
	uint64_t worst_at;    /**< number of that window */
};

/** Begin anew, in windows of `window_ns`, at least VERBS_SERIES_MIN_NS. */
void verbs_series_reset(struct verbs_series *s, uint64_t window_ns);
/** Bytes that had arrived by `t` ns of the batch under way. Never earlier than the last call's. */
void verbs_series_add(struct verbs_series *s, uint64_t t, uint64_t bytes);
/** The batch is over after `ns` of measured time. */
void verbs_series_end_batch(struct verbs_series *s, uint64_t ns);

/**
 * Bytes of two flows at once (rails, directions), entry by entry, as far as both were under way.
 * The sum's windows are its entries, and its worst window is one of them.
 */
void verbs_series_sum(struct verbs_series *into, const struct verbs_series *from);

/** {"window_ns", "merged", "worst_bytes", "worst_at", "windows", "bytes":[..]}, for the peer.
 * @return new reference */
json_t *verbs_series_to_json(const struct verbs_series *s);
/** From the peer. @return 0, or -EPROTO when it is malformed */
int verbs_series_from_json(struct verbs_series *s, const json_t *j);
/**
 * The result's keys `intervals` and `worst_window`.
 * @param quantum the most bytes that become known at one moment: windows that hold fewer than ten
 * of them tell of moderation and not of the link, and give no worst window (null, with its reason)
 */
void verbs_series_extend(const struct verbs_series *s, uint64_t quantum, json_t *result);

#endif
