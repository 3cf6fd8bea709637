/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of every measurement: ns since an arbitrary start.
 *
 * Source: the TSC where the kernel says it is invariant (constant_tsc and nonstop_tsc in
 * /proc/cpuinfo and the current clocksource is tsc), calibrated against CLOCK_MONOTONIC_RAW over at
 * least 50 ms; else CLOCK_MONOTONIC_RAW itself. /proc/cpuinfo's MHz is never read: it is the
 * momentary core clock, not the TSC's.
 */
#ifndef FB_CORE_CLOCK_H
#define FB_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct fb_clock_info {
	const char *source;     /**< "tsc" or "monotonic_raw" */
	double ticks_per_ns;    /**< TSC rate; 1 for monotonic_raw */
	uint64_t read_cost_ps;  /**< cost of one fb_clock_ns(), in picoseconds: min over blocks of
				   back-to-back reads */
	uint64_t resolution_ns; /**< smallest non-zero difference seen between two reads, at least 1
				 */
	double calibration_ppm; /**< spread of the calibration rounds; 0 for monotonic_raw */
};

/* Set once by fb_clock_init() before any thread starts; read-only after. */
struct fb_clock_state {
	bool tsc;
	uint64_t base_ticks;
	uint64_t mult; /**< ns = ((ticks - base) * mult) >> 32, in 128 bits */
};
extern struct fb_clock_state fb_clock_state;

/** Calibrate (about 60 ms). Call once at the start; without it fb_clock_ns() reads
 * CLOCK_MONOTONIC_RAW. */
void fb_clock_init(void);
/** What was chosen, its cost and its resolution; measured on the first call, which comes after
 * fb_clock_init(). Any thread may call it. */
const struct fb_clock_info *fb_clock_info(void);

/** Now, in ns. */
static inline uint64_t fb_clock_ns(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(fb_clock_state.tsc, 1)) {
		unsigned aux; /* rdtscp waits for earlier loads: a completion polled before it is
				 really before it */
		uint64_t t = __rdtscp(&aux) - fb_clock_state.base_ticks;
		return (uint64_t)(((unsigned __int128)t * fb_clock_state.mult) >> 32);
	}
#endif
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** Deadlines are absolute fb_clock_ns() times; 0 is never used as "none": there is always a
 * deadline. */
static inline uint64_t fb_deadline_in(uint64_t ns)
{
	uint64_t now = fb_clock_ns();
	return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}
/** Milliseconds left until a deadline, for poll(2): 0 when it has passed, at least 1 before it. */
int fb_deadline_poll_ms(uint64_t deadline_ns);

#endif
