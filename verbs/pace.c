// SPDX-License-Identifier: Apache-2.0
/* Latency at a slow pace: see pace.h. */
#include "verbs/pace.h"

#include <time.h>

#define AWAKE_NS 1000000u
#define SLICE_NS 10000000u

static int wait_until(struct verbs_wait *w, uint64_t begin)
{
	uint64_t since = 0, now;
	unsigned spins = 0;

	while ((now = fb_clock_ns()) < begin) {
		uint64_t left = begin - now;
		int rc = 0;
		if (left > 2 * AWAKE_NS) {
			uint64_t nap = left - AWAKE_NS < SLICE_NS ? left - AWAKE_NS : SLICE_NS;
			struct timespec t = {.tv_nsec = (long)nap};
			nanosleep(&t, NULL);
			rc = verbs_wait_check(w);
		} else if (++spins % VERBS_SPINS == 0) {
			rc = verbs_wait_slow(w, &since);
		}
		if (rc)
			return rc;
	}
	return 0;
}

int verbs_lat_at_once(struct verbs_lat *l, verbs_lat_loop loop, uint64_t interval_ns,
	uint64_t iters, struct fb_sink *s)
{
	(void)interval_ns;
	return loop(l, iters, s);
}

int verbs_lat_paced(struct verbs_lat *l, verbs_lat_loop loop, uint64_t interval_ns, uint64_t iters,
	struct fb_sink *s)
{
	uint64_t begin = fb_clock_ns() + interval_ns;

	s->n = 0;
	for (uint64_t i = 0; i < iters; i++) {
		struct fb_sink one = {.ns = s->ns + s->n, .cap = 1};
		uint64_t now;
		int rc = wait_until(&l->wait, begin);
		if (rc == 0)
			rc = loop(l, 1, &one);
		s->n += one.n;
		if (rc)
			return rc;
		now = fb_clock_ns();
		begin = begin + interval_ns > now ? begin + interval_ns : now;
	}
	return 0;
}
