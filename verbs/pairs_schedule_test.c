// SPDX-License-Identifier: Apache-2.0
/*
 * Properties of the pair schedule: disjoint rounds, each pair once, one rest each, spread partners.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/pairs_schedule.h"

/* Whom a host meets that rests. */
#define REST UINT32_MAX

/*
 * partner[n] of one round, from its slots: disjoint, one host rests where the count is odd, and who
 * meet obey the formula of the schedule, i + j = r (mod k). Freed by the caller.
 */
static uint32_t *round_of(uint32_t round, uint32_t n)
{
	uint32_t *partner = malloc(n * sizeof *partner), k = pairs_full_rounds(n), met = 0;

	assert_non_null(partner);
	for (uint32_t i = 0; i < n; i++)
		partner[i] = REST;
	for (uint32_t s = 0; s < pairs_per_round(n); s++) {
		uint32_t a, b;
		pairs_slot(round, s, n, &a, &b);
		assert_true(a < b && b < n);
		assert_true(partner[a] == REST && partner[b] == REST);
		assert_int_equal((a + (b == k ? a : b)) % k, round);
		partner[a] = b;
		partner[b] = a;
		met += 2;
	}
	assert_int_equal(met + n % 2, n);
	return partner;
}

static void every_pair_once(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 67; n++) {
		uint8_t *met = calloc((size_t)n * n, 1);
		uint8_t *rested = calloc(n, 1);

		assert_non_null(met);
		assert_non_null(rested);
		assert_int_equal(pairs_full_rounds(n), n % 2 ? n : n - 1);
		for (uint32_t j = 0; j < pairs_full_rounds(n); j++) {
			uint32_t round = pairs_round_at(j, n);
			assert_true(round < pairs_full_rounds(n));
			uint32_t *partner = round_of(round, n);
			for (uint32_t i = 0; i < n; i++) {
				if (partner[i] == REST)
					rested[i]++;
				else
					met[i * n + partner[i]]++;
			}
			free(partner);
		}
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(rested[i], n % 2);
			for (uint32_t p = 0; p < n; p++)
				assert_int_equal(met[i * n + p], i != p);
		}
		free(met);
		free(rested);
	}
}

static uint32_t apart(uint32_t a, uint32_t b, uint32_t n)
{
	uint32_t d = a > b ? a - b : b - a;
	return d < n - d ? d : n - d;
}

/* A host's partners of the first three rounds sit in different parts of the fleet. */
static void three_rounds_are_spread(void **state)
{
	static const uint32_t sizes[] = {
		30, 31, 46, 63, 64, 100, 106, 127, 128, 256, 1000, 1024, 10000};

	(void)state;
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		uint32_t n = sizes[s], *met[3];
		for (uint32_t j = 0; j < 3; j++)
			met[j] = round_of(pairs_round_at(j, n), n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t p[3] = {met[0][i], met[1][i], met[2][i]};
			for (int x = 0; x < 3; x++)
				for (int y = 0; y < x; y++) {
					if (p[x] == REST || p[y] == REST)
						continue;
					/* The fixed host has nobody opposite: it counts as
					 * anywhere. */
					if (n % 2 == 0 && (p[x] == n - 1 || p[y] == n - 1))
						continue;
					assert_true(apart(p[x], p[y], n) * 8 >= n);
				}
		}
		for (uint32_t j = 0; j < 3; j++)
			free(met[j]);
	}
}

/* Two rounds tie all hosts of an even count into one chain: walk it. */
static void two_rounds_connect(void **state)
{
	(void)state;
	for (uint32_t n = 4; n <= 400; n += 2) {
		uint32_t *r[2] = {
			round_of(pairs_round_at(0, n), n), round_of(pairs_round_at(1, n), n)};
		uint32_t at = 0, steps = 0;
		do {
			at = r[steps % 2][at];
			steps++;
		} while (at != 0 || steps % 2);
		assert_int_equal(steps, n);
		free(r[0]);
		free(r[1]);
	}
}

static void ten_thousand_hosts(void **state)
{
	(void)state;
	for (uint32_t n = 9999; n <= 10000; n++)
		for (uint32_t j = 0; j < 3; j++)
			free(round_of(pairs_round_at(j, n), n));
}

static void steps_of_a_schedule(void **state)
{
	struct pairs_schedule s;
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(pairs_schedule_init(&s, 64, 8, 3, 0, &e), 0);
	assert_int_equal(pairs_schedule_steps(&s), 24);
	assert_int_equal(pairs_schedule_step(&s, 0).rail, 0);
	assert_int_equal(pairs_schedule_step(&s, 23).rail, 7);
	assert_int_equal(pairs_schedule_step(&s, 23).round, pairs_round_at(2, 64));
	/* A later run goes on where this one ended, and comes round. */
	assert_int_equal(pairs_schedule_init(&s, 64, 1, 3, 62, &e), 0);
	assert_int_equal(pairs_schedule_step(&s, 0).round, pairs_round_at(62, 64));
	assert_int_equal(pairs_schedule_step(&s, 1).round, pairs_round_at(0, 64));
	/* Full, and no more than full. */
	assert_int_equal(pairs_schedule_init(&s, 63, 1, 0, 0, &e), 0);
	assert_int_equal(s.rounds, 63);
	assert_int_equal(pairs_schedule_init(&s, 2, 1, 3, 0, &e), 0);
	assert_int_equal(s.rounds, 1);
}

static void refuses_by_name(void **state)
{
	struct pairs_schedule s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fb_err e = {0};
		int rc = pairs_schedule_init(&s,
			i == 0   ? 1
			: i == 1 ? PAIRS_MAX_HOSTS + 1
				 : 4,
			i == 2 ? 0 : 1, 3, 0, &e);
		assert_int_equal(rc, -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, i == 0 ? "1" : i == 1 ? "hosts" : "rail"));
	}
	assert_int_equal(pairs_full_rounds(0), 0);
	assert_int_equal(pairs_full_rounds(1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_once),
		cmocka_unit_test(three_rounds_are_spread),
		cmocka_unit_test(two_rounds_connect),
		cmocka_unit_test(ten_thousand_hosts),
		cmocka_unit_test(steps_of_a_schedule),
		cmocka_unit_test(refuses_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
