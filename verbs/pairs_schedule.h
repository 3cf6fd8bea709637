/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts measure with which, round by round: the circle method of round-robin tournaments.
 *
 * Every round is a set of disjoint pairs, so no host's NIC is in two pairs at once. With k = n - 1
 * (n even) or k = n (n odd), hosts i and j below k meet in the round r for which
 *
 *	i + j = r (mod k),
 *
 * and the host with 2 i = r meets host n - 1 (n even) or rests (n odd). k is odd, so 2 has an
 * inverse and that host is unique. Everything is computed on the spot: no table, no memory.
 * Source: E. Lucas, Recreations mathematiques II (1883); any text on round-robin tournaments.
 */
#ifndef VERBS_PAIRS_SCHEDULE_H
#define VERBS_PAIRS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"

/** Most hosts: sums of two host numbers stay within 32 bits. */
#define PAIRS_MAX_HOSTS (1u << 30)

/** Rounds until each pair has met once: n - 1 for even n, n for odd n, 0 below two hosts. */
uint32_t pairs_full_rounds(uint32_t n);

/** Pairs of one round: n / 2, rounded down. */
uint32_t pairs_per_round(uint32_t n);

/**
 * The round to run as j-th, j < pairs_full_rounds(n): j * s mod k, where s is the number nearest to
 * k / 1.618 that has no factor in common with k.
 *
 * Why not rounds 0, 1, 2: there a host meets p, p + 1 and p + 2, which sit in one rack and behind
 * one leaf switch; one bad uplink would then look like a bad host, and each host would learn about
 * one rack alone. With the golden section every prefix of the order is spread well over the hosts
 * (three- distance theorem): in three rounds a host's partners lie about 0.38 and 0.24 of the fleet
 * apart. Without a common factor all k rounds come, once each, and two rounds already tie all hosts
 * into one chain of comparisons, where evenly spaced rounds (0, k/3, 2k/3) would leave islands of
 * six.
 */
uint32_t pairs_round_at(uint32_t j, uint32_t n);

/** The `slot`-th pair of a round, slot < pairs_per_round(n); *a < *b always. */
void pairs_slot(uint32_t round, uint32_t slot, uint32_t n, uint32_t *a, uint32_t *b);

/** What is run: `rounds` rounds on each of `rails` rails, one rail after the other. */
struct pairs_schedule {
	uint32_t hosts, rails, rounds;
	uint32_t first; /**< place in the order of pairs_round_at() to begin at */
};

/** One step of a schedule: all hosts / 2 pairs of one round on one rail (NIC i with NIC i). */
struct pairs_step {
	uint32_t rail, round;
};

/**
 * Make a schedule.
 * @param rounds  rounds per rail; 0 for all of them; more than all of them is all of them
 * @param first   place in the order to begin at: a second run with first = 3 goes on where a run of
 *                three rounds ended
 * @return 0, or -EINVAL with the cause in e (exit 2): under two hosts, no rail, too many hosts
 */
int pairs_schedule_init(struct pairs_schedule *s, uint32_t hosts, uint32_t rails, uint32_t rounds,
	uint32_t first, struct fb_err *e) FB_MUST_CHECK;

/** Steps of the schedule: rails * rounds. */
uint64_t pairs_schedule_steps(const struct pairs_schedule *s);

/** The i-th step, i < pairs_schedule_steps(). */
struct pairs_step pairs_schedule_step(const struct pairs_schedule *s, uint64_t i);

#endif
