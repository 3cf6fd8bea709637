// SPDX-License-Identifier: Apache-2.0
/* The clock: never backwards, in step with CLOCK_MONOTONIC_RAW, its cost and resolution measured.
 */
#include "bench/core/test.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "bench/core/clock.h"

static uint64_t raw_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* fb_clock_ns() lies between two readings of the other clock, give or take the calibration's error.
 */
static void assert_in_step(uint64_t slack_ns)
{
	uint64_t before = raw_ns(), now = fb_clock_ns(), after = raw_ns();
	assert_in_range(now, before - slack_ns, after + slack_ns);
}

static void test_before_and_after_init(void **st)
{
	assert_in_step(0);
	fb_clock_init();
	assert_in_step(100000);
	fb_clock_init(); /* once is enough: the second changes nothing */
	assert_in_step(100000);
}

static void test_monotonic(void **st)
{
	uint64_t last = fb_clock_ns(), start = last;
	for (int i = 0; i < 200000; i++) {
		uint64_t now = fb_clock_ns();
		assert_true(now >= last);
		last = now;
	}
	assert_true(last > start);
}

/* A nap of 100 ms is as long by both clocks, to 0.1 %. */
static void test_rate(void **st)
{
	uint64_t a = raw_ns(), x = fb_clock_ns();
	struct timespec nap = {0, 100000000};
	nanosleep(&nap, NULL);
	uint64_t y = fb_clock_ns(), b = raw_ns();
	assert_true(y - x <= b - a + (b - a) / 1000);
	assert_true(y - x >= 99900000);
}

static void *ask(void *arg)
{
	*(const struct fb_clock_info **)arg = fb_clock_info();
	return NULL;
}

static void test_info(void **st)
{
	pthread_t t[4];
	const struct fb_clock_info *info[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask, &info[i]), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	const struct fb_clock_info *c = fb_clock_info();
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(info[i], c);
	print_message("clock: %s, %.6f ticks/ns, read %.1f ns, resolution %lu ns, %.1f ppm\n",
		c->source, c->ticks_per_ns, (double)c->read_cost_ps / 1000,
		(unsigned long)c->resolution_ns, c->calibration_ppm);
	assert_true(c->resolution_ns >= 1);
	assert_true(c->read_cost_ps > 100 && c->read_cost_ps < 1000000000);
	if (fb_clock_state.tsc) {
		assert_string_equal(c->source, "tsc");
		assert_true(c->calibration_ppm >= 0 && c->calibration_ppm <= 200);
		/* The multiplier is the inverse of the rate, to a part in 2^31. */
		assert_float_equal(
			(double)fb_clock_state.mult * c->ticks_per_ns / 4294967296.0, 1, 1e-9);
	} else {
		assert_string_equal(c->source, "monotonic_raw");
		assert_true(c->ticks_per_ns == 1);
	}
}

static void test_deadlines(void **st)
{
	uint64_t now = fb_clock_ns();
	assert_int_equal(fb_deadline_poll_ms(now), 0);
	assert_int_equal(fb_deadline_poll_ms(0), 0);
	int ms = fb_deadline_poll_ms(fb_deadline_in(3600000000000));
	assert_in_range(ms, 3500000, 3600000);
	/* Not passed yet: never 0, or poll(2) would spin. */
	uint64_t soon = fb_deadline_in(50000000);
	for (;;) {
		ms = fb_deadline_poll_ms(soon);
		if (fb_clock_ns() >= soon)
			break;
		assert_in_range(ms, 1, 50);
	}
	assert_int_equal(fb_deadline_poll_ms(soon), 0);
	assert_int_equal(fb_deadline_poll_ms(UINT64_MAX), INT_MAX);
	/* What lies beyond the clock is the end of time, and not the past. */
	assert_true(fb_deadline_in(UINT64_MAX) == UINT64_MAX);
	assert_true(fb_deadline_in(UINT64_MAX - 1) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_and_after_init),
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_deadlines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
