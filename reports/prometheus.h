/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as text for the node exporter's textfile collector (Prometheus exposition format,
 * version 0.0.4): https://prometheus.io/docs/instrumenting/exposition_formats/.
 *
 * Base units in the names (_seconds, _bytes, _bytes_per_second, _ratio); each family once, with its
 * HELP and TYPE; no timestamps, which that collector refuses; every line ended. Labels are what a
 * site has few of: benchmark, case, job, message size, device, place. A run's id, a launch's number
 * and host names are none: the exporter adds the instance. What has no value is left out, never 0.
 */
#ifndef REPORTS_PROMETHEUS_H
#define REPORTS_PROMETHEUS_H

#include <jansson.h>

#include "bench/core/err.h"
#include "bench/core/strbuf.h"

/**
 * Families: fabricbench_info, _last_run_timestamp_seconds, _last_run_duration_seconds,
 * _exit_status, _verdict{state}, _checks{state}, _check_failures{id}, _results{validity},
 * _parts{state}, _errors, _warnings; and for each metric of the results its median over launches,
 * quantiles of all launches' merged samples, and its bound.
 * @return 0; -ENOMEM with *e
 */
int rep_prometheus(struct fb_strbuf *b, const json_t *doc, struct fb_err *e) FB_MUST_CHECK;

#endif
