/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open-loop schedule: event k is due at start + k * gap, whatever became of the events before
 * it. A late event is late against the schedule and never moves it, so that a stall counts against
 * every event that should have happened during it (no coordinated omission). Only a pause that the
 * measurement itself makes (between batches) moves the schedule, and it keeps the backlog.
 *
 * Pure arithmetic: knows neither the clock nor what an event is.
 */
#ifndef VERBS_SCHEDULE_H
#define VERBS_SCHEDULE_H

#include <stdint.h>

/** The gap's fraction: a 64-byte message at 400 Gb/s comes every 1.28 ns. */
#define VERBS_SCHEDULE_FRAC 20

struct verbs_schedule {
	uint64_t start; /**< ns: when event 0 is due */
	uint64_t k;     /**< the next event */
	uint64_t gap;   /**< ns * 2^VERBS_SCHEDULE_FRAC */
};

/** @param gap_ns time between two events; at most 2^43 ns (2.4 hours) */
static inline void verbs_schedule_init(struct verbs_schedule *s, uint64_t start, double gap_ns)
{
	s->start = start;
	s->k = 0;
	s->gap = (uint64_t)(gap_ns * (double)(1u << VERBS_SCHEDULE_FRAC) + 0.5);
}

/** When the next event is due, ns. */
static inline uint64_t verbs_schedule_due(const struct verbs_schedule *s)
{
	return s->start + (uint64_t)((unsigned __int128)s->k * s->gap >> VERBS_SCHEDULE_FRAC);
}

/** The event that was due has been: the next one is due a gap later. */
static inline void verbs_schedule_pass(struct verbs_schedule *s)
{
	s->k++;
}

/** How long the next event has been due; 0 before. */
static inline uint64_t verbs_schedule_late(const struct verbs_schedule *s, uint64_t now)
{
	uint64_t due = verbs_schedule_due(s);

	return now > due ? now - due : 0;
}

/** After a pause of the measurement's own making: at `now` the schedule stands as it stood when it
 * was `backlog` ns behind. */
static inline void verbs_schedule_resume(struct verbs_schedule *s, uint64_t now, uint64_t backlog)
{
	s->start = now - backlog;
	s->k = 0;
}

/**
 * A load that cannot be had is not owed for ever: what is more than `most` ns behind is let go, or
 * it would come as one long burst when the way is free again.
 * @return ns let go
 */
static inline uint64_t verbs_schedule_forgive(struct verbs_schedule *s, uint64_t now, uint64_t most)
{
	uint64_t late = verbs_schedule_late(s, now);

	if (late <= most)
		return 0;
	s->start += late - most;
	return late - most;
}

#endif
