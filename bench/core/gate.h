/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates: limits that every point of a run must keep. Each is judged per point (a sweep passes when
 * every size does), each judgement is an entry in the document's checks[], and each miss is named
 * on stderr with what was wanted and what was got.
 *
 * What cannot be judged (a percentile that the sample does not support, a line rate that is not
 * known, an invalid result, no result at all) is a skip with its reason and makes the run
 * incomplete (exit 3), because somebody asked for it; it is never a pass. Knows the document and
 * nothing of how a figure was measured.
 */
#ifndef FB_CORE_GATE_H
#define FB_CORE_GATE_H

#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"

struct fb_doc;

/** 0: that gate was not asked for. */
struct fb_gate_cfg {
	uint64_t max_p50_ns;     /**< --max-p50 */
	uint64_t max_p99_ns;     /**< --max-p99 */
	double min_bandwidth;    /**< --min-bandwidth, bytes/s */
	double min_share;        /**< --min-share, percent of line rate */
	double min_message_rate; /**< --min-message-rate, messages/s */
};
/** Tables over struct fb_gate_cfg: gates of times, of a bandwidth, and of both. */
extern const struct fb_opt fb_gate_time_opts[];
extern const struct fb_opt fb_gate_rate_opts[];
extern const struct fb_opt fb_gate_opts[];

/**
 * Judge every result of the document; to be called before fb_doc_finish().
 * @param rate_metric the metric that --min-bandwidth and --min-share look at: "bandwidth", "busbw"
 * @param status what the command would end with
 * @return status if it is none of fine; else 1 when a gate was missed, 3 when one could not be
 * judged, 0
 */
int fb_gate_judge(
	struct fb_doc *d, const struct fb_gate_cfg *g, const char *rate_metric, int status);

#endif
