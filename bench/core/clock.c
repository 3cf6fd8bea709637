// SPDX-License-Identifier: Apache-2.0
/*
 * The clock's calibration. The TSC is compared with CLOCK_MONOTONIC_RAW, which NTP does not slew,
 * so a figure does not depend on a time server. fb_clock_ns() goes on from CLOCK_MONOTONIC_RAW's
 * own value, so that deadlines taken before fb_clock_init() stay right after it.
 *
 * /proc and /sys are read directly, not through the sysroot: the clock is always this machine's.
 */
#include "bench/core/clock.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/log.h"

#define ROUNDS      5
#define ROUND_NS    12000000 /* five rounds: 60 ms; both ends of it are known to about 50 ns */
#define MAX_PPM     200.0    /* rounds that differ more tell of a TSC that is not what it says */
#define COST_BLOCKS 64
#define COST_READS  256

struct fb_clock_state fb_clock_state;

static struct fb_clock_info clock_info = {.source = "monotonic_raw", .ticks_per_ns = 1};
static pthread_once_t info_once = PTHREAD_ONCE_INIT;
static pthread_once_t init_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
static uint64_t raw_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool has_word(const char *line, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = line; (p = strstr(p, word)); p += n)
		if (p > line && p[-1] == ' ' && (p[n] == ' ' || p[n] == '\n' || p[n] == '\0'))
			return true;
	return false;
}

/* Invariant by the CPU's flags, and trusted by the kernel, whose watchdog drops a bad TSC. */
static bool tsc_is_trusted(void)
{
	char buf[4096] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (!f)
		return false;
	bool ok = fgets(buf, sizeof(buf), f) && strcmp(buf, "tsc\n") == 0;
	fclose(f);
	if (!ok)
		return false;
	f = fopen("/proc/cpuinfo", "re");
	if (!f)
		return false;
	ok = false;
	while (fgets(buf, sizeof(buf), f)) {
		if (strncmp(buf, "flags", 5) != 0)
			continue;
		ok = has_word(buf, "constant_tsc") && has_word(buf, "nonstop_tsc");
		break;
	}
	fclose(f);
	return ok;
}

struct pair {
	uint64_t ticks, ns;
};

/* Both clocks at one moment: the tightest of some brackets, so that an interrupt does not count. */
static struct pair read_pair(void)
{
	struct pair best = {0, 0};
	uint64_t width = UINT64_MAX;
	for (int i = 0; i < 32; i++) {
		unsigned aux;
		uint64_t before = __rdtscp(&aux);
		uint64_t ns = raw_ns();
		uint64_t after = __rdtscp(&aux);
		if (after - before < width) {
			width = after - before;
			best = (struct pair){before + width / 2, ns};
		}
	}
	return best;
}

static bool calibrate(void)
{
	struct pair p[ROUNDS + 1];
	double lo = INFINITY, hi = 0;
	p[0] = read_pair();
	for (int i = 1; i <= ROUNDS; i++) {
		struct timespec nap = {0, ROUND_NS};
		nanosleep(
			&nap, NULL); /* cut short by a signal: the next pair says how long it was */
		p[i] = read_pair();
		if (p[i].ns <= p[i - 1].ns || p[i].ticks <= p[i - 1].ticks)
			return false;
		double rate =
			(double)(p[i].ticks - p[i - 1].ticks) / (double)(p[i].ns - p[i - 1].ns);
		lo = fmin(lo, rate);
		hi = fmax(hi, rate);
	}
	double rate = (double)(p[ROUNDS].ticks - p[0].ticks) / (double)(p[ROUNDS].ns - p[0].ns);
	double ppm = (hi - lo) / rate * 1e6;
	if (p[ROUNDS].ns - p[0].ns < 50000000 || ppm > MAX_PPM || rate < 0.01 || rate > 100)
		return false;
	clock_info.source = "tsc";
	clock_info.ticks_per_ns = rate;
	clock_info.calibration_ppm = ppm;
	fb_clock_state.mult = (uint64_t)(4294967296.0 / rate + 0.5);
	unsigned __int128 ticks = ((unsigned __int128)p[ROUNDS].ns << 32) / fb_clock_state.mult;
	fb_clock_state.base_ticks = p[ROUNDS].ticks - (uint64_t)ticks;
	fb_clock_state.tsc = true;
	return true;
}
#endif

static void init_clock(void)
{
#if defined(__x86_64__)
	if (!tsc_is_trusted())
		return;
	for (int i = 0; i < 3; i++)
		if (calibrate())
			return;
	fb_warn("the TSC and CLOCK_MONOTONIC_RAW disagree by over %.0f ppm between rounds; the slower "
		"CLOCK_MONOTONIC_RAW is used",
		MAX_PPM);
#endif
}

void fb_clock_init(void)
{
	pthread_once(&init_once, init_clock);
}

static void measure_info(void)
{
	uint64_t best = UINT64_MAX, resolution = UINT64_MAX;
	for (int b = 0; b < COST_BLOCKS; b++) {
		uint64_t first = fb_clock_ns(), last = first;
		for (int i = 0; i < COST_READS; i++) {
			uint64_t now = fb_clock_ns();
			if (now > last && now - last < resolution)
				resolution = now - last;
			last = now;
		}
		/* Timed apart: the comparison above is not part of a read. */
		first = fb_clock_ns();
		for (int i = 0; i < COST_READS - 1; i++) {
			last = fb_clock_ns();
			__asm__ volatile("" : : "r"(last));
		}
		last = fb_clock_ns();
		if (last - first < best)
			best = last - first;
	}
	clock_info.read_cost_ps = best * 1000 / COST_READS;
	clock_info.resolution_ns = resolution == UINT64_MAX ? 1 : resolution;
}

const struct fb_clock_info *fb_clock_info(void)
{
	pthread_once(&info_once, measure_info);
	return &clock_info;
}

int fb_deadline_poll_ms(uint64_t deadline_ns)
{
	uint64_t now = fb_clock_ns();
	if (deadline_ns <= now)
		return 0;
	uint64_t ms = (deadline_ns - now) / 1000000;
	if ((deadline_ns - now) % 1000000)
		ms++;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
