/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA benchmarks; their cfg is a struct verbs_job. */
#ifndef VERBS_BENCHES_H
#define VERBS_BENCHES_H

#include "bench/core/bench.h"

extern const struct fb_bench verbs_latency_bench;
extern const struct fb_bench verbs_bandwidth_bench;

#endif
