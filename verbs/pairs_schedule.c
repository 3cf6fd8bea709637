// SPDX-License-Identifier: Apache-2.0
/*
 * The circle method as direct functions; see pairs_schedule.h for the formulas. Knows neither
 * hosts' names nor what is measured.
 */
#include "verbs/pairs_schedule.h"

#include <errno.h>

uint32_t pairs_full_rounds(uint32_t n)
{
	if (n < 2)
		return 0;
	return n % 2 ? n : n - 1;
}

uint32_t pairs_per_round(uint32_t n)
{
	return n / 2;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* The number nearest to k / 1.618... that is coprime to k; k is odd. */
static uint32_t golden_step(uint32_t k)
{
	if (k < 3)
		return 1;
	uint32_t near = (uint32_t)((double)k * 0.6180339887498949 + 0.5);
	for (uint32_t off = 0;; off++) { /* ends: 1 is coprime to everything */
		if (near > off && gcd(near - off, k) == 1)
			return near - off;
		if (near + off < k && gcd(near + off, k) == 1)
			return near + off;
	}
}

uint32_t pairs_round_at(uint32_t j, uint32_t n)
{
	uint32_t k = pairs_full_rounds(n);
	if (k == 0)
		return 0;
	return (uint32_t)((uint64_t)j * golden_step(k) % k);
}

/* The host whose double is the round: r / 2 modulo the odd k. */
static uint32_t centre(uint32_t round, uint32_t k)
{
	return round % 2 ? (round + k) / 2 : round / 2;
}

void pairs_slot(uint32_t round, uint32_t slot, uint32_t n, uint32_t *a, uint32_t *b)
{
	uint32_t k = pairs_full_rounds(n), mid = centre(round, k);
	/* Pairs lie about the centre: (mid - t, mid + t). t = 0 is the centre with the fixed host,
	 * which an odd count does not have. */
	uint32_t t = n % 2 ? slot + 1 : slot;
	if (k == 0) { /* no pair at all */
		*a = *b = 0;
		return;
	}
	uint32_t x = mid >= t ? mid - t : mid + k - t;
	uint32_t y = t == 0 ? k : (mid + t) % k;

	*a = x < y ? x : y;
	*b = x < y ? y : x;
}

int pairs_schedule_init(struct pairs_schedule *s, uint32_t hosts, uint32_t rails, uint32_t rounds,
	uint32_t first, struct fb_err *e)
{
	if (hosts < 2) {
		fb_fail_usage(e, "pairs need at least two hosts, not %u", hosts);
		fb_hint(e, "name the hosts of the fleet, or start more ranks");
		return -EINVAL;
	}
	if (hosts > PAIRS_MAX_HOSTS)
		return fb_fail_usage(e, "%u hosts are more than the %u that a schedule holds",
			hosts, PAIRS_MAX_HOSTS);
	if (rails == 0)
		return fb_fail_usage(e, "pairs need at least one rail, not 0");
	uint32_t full = pairs_full_rounds(hosts);
	s->hosts = hosts;
	s->rails = rails;
	s->rounds = rounds == 0 || rounds > full ? full : rounds;
	s->first = first % full;
	return 0;
}

uint64_t pairs_schedule_steps(const struct pairs_schedule *s)
{
	return (uint64_t)s->rails * s->rounds;
}

struct pairs_step pairs_schedule_step(const struct pairs_schedule *s, uint64_t i)
{
	struct pairs_step step;
	uint32_t full = pairs_full_rounds(s->hosts);

	if (full == 0 || s->rounds == 0) /* never after pairs_schedule_init() */
		return (struct pairs_step){0, 0};
	uint64_t place = i % s->rounds + s->first;
	step.rail = (uint32_t)(i / s->rounds);
	step.round = pairs_round_at((uint32_t)(place % full), s->hosts);
	return step;
}
