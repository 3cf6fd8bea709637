/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step's tasks over time, as it was measured: a trace that chrome://tracing and Perfetto open
 * (Trace Event Format, complete events; a process per rank, a thread per queue), and a picture of
 * one rank by gnuplot. It knows the schedule and its times, not who measured them.
 */
#ifndef TRAIN_TIMELINE_H
#define TRAIN_TIMELINE_H

#include "bench/core/strbuf.h"
#include "bench/oob/oob.h"
#include "bench/train/engine.h"

struct timeline_rank {
	const struct task_time *times; /**< one per task of the schedule */
	uint64_t origin;               /**< of that rank's clock: what becomes time 0 */
};
struct timeline {
	const struct step_config *step;
	const struct schedule *schedule; /**< the same on every rank */
	const struct timeline_rank *rank;
	int ranks;
};
/** When a rank's first task began, on its clock. Threads share a clock: give all the earliest. */
uint64_t timeline_origin(const struct schedule *s, const struct task_time *times);

/** The trace as text. Tasks that did not run, and releases, are left out. */
void timeline_trace_text(const struct timeline *t, struct fb_strbuf *b);
/** @return 0, -ENOMEM, -errno of the file */
int timeline_trace(const struct timeline *t, const char *path, struct fb_err *e) FB_MUST_CHECK;

/** A gnuplot script that draws one rank's step, with its data inside, into `svg`. */
void timeline_plot_text(const struct timeline *t, int rank, const char *svg, struct fb_strbuf *b);
/**
 * Write BASE.gp and draw BASE.svg.
 * @return 0; -ENOENT: gnuplot is not installed, BASE.gp is there; -EIO: what gnuplot said;
 * -ETIMEDOUT; -errno of the file
 */
int timeline_picture(
	const struct timeline *t, int rank, const char *base, struct fb_err *e) FB_MUST_CHECK;

/**
 * Collective: bring every rank's times of a step together; rank 0 writes the trace to `path` and
 * draws its own step beside it (PATH without .json, .gp and .svg), or says why it cannot.
 * @param one_clock  ranks are threads of one host: their times are shown as they lay to each other;
 *                   otherwise each rank's first task is its time 0
 * @return 0; -EPROTO: a rank has another schedule; as timeline_trace() and fb_oob_gather()
 */
int timeline_save(struct fb_oob *o, const struct step_config *step, const struct schedule *s,
	const struct task_time *times, bool one_clock, const char *path, uint64_t deadline,
	struct fb_err *e) FB_MUST_CHECK;

#endif
