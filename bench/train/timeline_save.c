// SPDX-License-Identifier: Apache-2.0
/*
 * Every rank's times to rank 0, and from there into files. A rank sends its array as it lies: all
 * ranks run one program on one kind of machine, and the length says whether they ran one schedule.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/log.h"
#include "bench/train/timeline.h"

struct gathered {
	struct task_time *times; /* [ranks][tasks] */
	struct timeline_rank *rank;
};

static int take(struct gathered *g, const struct schedule *s, const struct fb_oob_part *parts,
	int ranks, bool one_clock, struct fb_err *e)
{
	size_t n = (size_t)s->n, bytes = n * sizeof(*g->times);
	uint64_t first = UINT64_MAX;
	g->times = calloc((size_t)ranks * n, sizeof(*g->times));
	g->rank = calloc((size_t)ranks, sizeof(*g->rank));
	if (!g->times || !g->rank)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory for the timeline of %d ranks", ranks);
	for (int r = 0; r < ranks; r++) {
		struct task_time *t = g->times + (size_t)r * n;
		if (parts[r].len != bytes)
			return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"rank %d tells of its tasks in %u bytes, not %zu", r, parts[r].len,
				bytes);
		memcpy(t, parts[r].data, bytes);
		g->rank[r].times = t;
		g->rank[r].origin = timeline_origin(s, t);
		if (g->rank[r].origin < first)
			first = g->rank[r].origin;
	}
	for (int r = 0; one_clock && r < ranks; r++)
		g->rank[r].origin = first;
	return 0;
}

static int write_files(const struct timeline *t, const char *path, struct fb_err *e)
{
	char base[4096];
	size_t len = strlen(path);
	struct fb_err why = {0};
	int rc = timeline_trace(t, path, e);
	if (rc != 0)
		return rc;
	if (len > 5 && strcmp(path + len - 5, ".json") == 0)
		len -= 5;
	snprintf(base, sizeof(base), "%.*s", (int)len, path);
	/* The trace is what was asked for: a run does not fail for want of its picture. */
	if (timeline_picture(t, 0, base, &why) != 0)
		fb_warn("%s%s%s", why.msg, why.hint[0] ? "; " : "", why.hint);
	return 0;
}

int timeline_save(struct fb_oob *o, const struct step_config *step, const struct schedule *s,
	const struct task_time *times, bool one_clock, const char *path, uint64_t deadline,
	struct fb_err *e)
{
	size_t bytes = (size_t)s->n * sizeof(*times);
	struct fb_oob_part *parts = NULL;
	struct gathered g = {0};
	int ranks = fb_oob_size(o);
	if (bytes > FB_OOB_MAX_MSG)
		return fb_fail(e, FB_EXIT_USAGE, EFBIG,
			"a step of %d tasks is too long to be drawn", s->n);
	int rc = fb_oob_gather(o, times, (uint32_t)bytes, &parts, deadline, e);
	if (rc != 0 || fb_oob_rank(o) != 0)
		return rc;
	rc = take(&g, s, parts, ranks, one_clock, e);
	fb_oob_parts_free(o, parts);
	if (rc == 0) {
		const struct timeline t = {
			.step = step, .schedule = s, .rank = g.rank, .ranks = ranks};
		rc = write_files(&t, path, e);
	}
	free(g.rank);
	free(g.times);
	return rc;
}
