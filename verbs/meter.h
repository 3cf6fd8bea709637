/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bandwidth loop keeps besides its messages: bytes over time, when the first and the last
 * message arrived here, and the schedule of a limited rate. Inlined into the loops: a few
 * instructions for a burst of completions, and a clock read for sixteen of them or when there is
 * nothing else to do.
 */
#ifndef VERBS_METER_H
#define VERBS_METER_H

#include <stdint.h>

#include "bench/core/clock.h"
#include "verbs/series.h"

/** Bursts of completions between two clock reads while there is no pause. */
#define VERBS_METER_BURSTS 16

struct verbs_meter {
	struct verbs_series *series; /**< NULL: this batch is not recorded (warm-up) */
	uint64_t size;               /**< bytes of a message */
	double gap_ns;               /**< from one message of this rail to the next; 0: no limit */
	/* of a batch */
	uint64_t zero;     /**< clock at its start; at a receiver, when the first message came */
	uint64_t zero_tx;  /**< clock at its start, for the schedule */
	uint64_t pending;  /**< messages not yet in the series */
	unsigned bursts;   /**< since the last clock read */
	uint64_t first;    /**< messages that came at once with the first; they took no time here */
	uint64_t taken;    /**< messages that arrived here */
	uint64_t span_ns;  /**< from the first arrival to the last */
	uint64_t to_grant; /**< messages of the schedule whose time has not come */
	unsigned turn;     /**< the QP that gets the next ones */
};

/** @param zero the clock now; 0 at a receiver, whose time begins with the first message */
static inline void verbs_meter_start(struct verbs_meter *m, uint64_t zero)
{
	m->zero = zero;
	m->turn = 0;
	m->pending = m->first = m->taken = m->span_ns = 0;
	m->bursts = 0;
}

/** Into the series what has arrived since the last time. */
static inline void verbs_meter_flush(struct verbs_meter *m)
{
	if (m->series && m->pending)
		verbs_series_add(m->series, fb_clock_ns() - m->zero, m->pending * m->size);
	m->pending = 0;
	m->bursts = 0;
}

/** n > 0 messages were acknowledged or have arrived. */
static inline void verbs_meter_note(struct verbs_meter *m, uint64_t n)
{
	m->pending += n;
	if (++m->bursts == VERBS_METER_BURSTS)
		verbs_meter_flush(m);
}

/** n > 0 messages have arrived here. */
static inline void verbs_meter_arrived(struct verbs_meter *m, uint64_t n)
{
	if (__builtin_expect(!m->zero, 0)) {
		m->zero = fb_clock_ns();
		m->first = n;
	}
	m->taken += n;
	verbs_meter_note(m, n);
}

/** The last message of the batch was in at `now`. */
static inline void verbs_meter_end(struct verbs_meter *m, uint64_t now)
{
	uint64_t ns = m->zero && now > m->zero ? now - m->zero : 0;

	m->span_ns = ns;
	verbs_meter_flush(m);
	if (m->series)
		verbs_series_end_batch(m->series, ns);
}

/**
 * How long the arrival of all `taken` messages took here: the span from the first burst to the
 * last, which all but the first burst needed, stretched to all. 0: too few bursts to tell.
 */
static inline uint64_t verbs_meter_received_ns(const struct verbs_meter *m)
{
	uint64_t timed = m->taken - m->first;

	if (timed * 2 < m->taken || timed == 0)
		return 0;
	return (uint64_t)((double)m->span_ns * (double)m->taken / (double)timed);
}

#endif
