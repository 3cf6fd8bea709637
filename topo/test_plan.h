/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: a plan, and whether it says something. */
#ifndef TOPO_TEST_PLAN_H
#define TOPO_TEST_PLAN_H

#include "bench/core/test.h"

#include <string.h>

#include "topo/plan.h"

static inline struct topo_plan *plan_of(const struct topo *t)
{
	struct topo_plan *p;
	struct fb_err e = {0};

	if (topo_plan_make(t, &p, &e) != 0)
		fail_msg("%s", e.msg);
	return p;
}

static inline bool noted(const struct topo_plan *p, const char *text)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (strstr(p->notes[i], text))
			return true;
	return false;
}

#endif
