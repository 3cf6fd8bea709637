// SPDX-License-Identifier: Apache-2.0
/*
 * The slow path of waiting; see wait.h.
 */
#include "verbs/wait.h"

#include <errno.h>

int verbs_wait_check(struct verbs_wait *w)
{
	int rc = 0;

	if (atomic_load_explicit(w->stop, memory_order_relaxed))
		rc = fb_fail(w->e, FB_EXIT_UNMEASURED, ECANCELED, "another rail gave up");
	else if (w->run)
		rc = fb_run_check(w->run, w->e);
	else if (fb_clock_ns() > w->deadline)
		rc = fb_fail(w->e, FB_EXIT_UNMEASURED, ETIMEDOUT,
			"no completion before the deadline of this point");
	if (rc)
		atomic_store_explicit(w->stop, 1, memory_order_relaxed);
	return rc;
}

int verbs_wait_slow(struct verbs_wait *w, uint64_t *since)
{
	uint64_t now = fb_clock_ns();

	if (!*since) {
		*since = now;
		return 0;
	}
	if (now - *since < VERBS_PATIENCE_NS)
		return 0;
	*since = now;
	return verbs_wait_check(w);
}
