/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `verbs pairs`, and the parameters that each pair is measured with. */
#ifndef VERBS_PAIRS_OPTS_H
#define VERBS_PAIRS_OPTS_H

#include <jansson.h>

#include "bench/core/bench.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"
#include "bench/oob/oob.h"
#include "verbs/params.h"

enum pairs_metric { PAIRS_BANDWIDTH, PAIRS_LATENCY };

struct pairs_options {
	int metric;
	uint64_t rounds;
	bool full;
	char *expect_hosts;
	uint64_t pair_timeout_ns;
	double floor;
	char *simulate;
	bool dry_run;
	/* of each pair */
	char *device;
	int ib_port, gid_index, gid_type;
	char *op, *size;
	bool events, bidirectional;
	int mtu, sl, traffic_class, depth, qps;
};
extern const struct fb_opt pairs_option_table[];

struct pairs_command {
	struct pairs_options o;
	struct fb_oob_cfg oob;
	struct fb_runctl_cfg run;
	struct fb_output_cfg out;
};

/**
 * Do they go together? @param given what the user named (fb_opt_to_json())
 * @return 0, or -EINVAL (exit 2) with the names of those that contradict each other
 */
int pairs_opts_fit(const struct pairs_options *o, const struct fb_runctl_cfg *run,
	const json_t *given, struct fb_err *e) FB_MUST_CHECK;
/** What each pair runs: one operation, one size. @return 0 or -EINVAL (exit 2) */
int pairs_make_params(
	const struct pairs_options *o, struct verbs_params *p, struct fb_err *e) FB_MUST_CHECK;

#endif
