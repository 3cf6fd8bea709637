/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collective benchmark: `fabricbench coll`. It drives a backend (coll_ops.h) over a sweep of
 * sizes, checks what arrived, and reports time, algbw and busbw by nccl-tests' rules.
 */
#ifndef COLL_H
#define COLL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bench.h"
#include "bench/core/cmd.h"
#include "collectives/coll_ops.h"

enum coll_backend { COLL_BACKEND_AUTO, COLL_BACKEND_LOCAL, COLL_BACKEND_MPI, COLL_BACKEND_NCCL };

enum coll_mode {
	COLL_ISOLATED,  /**< a barrier before each operation; each one timed alone */
	COLL_PIPELINED, /**< back to back; on a device queued in stream order */
};

#define COLL_ALL_OPS COLL_OP_COUNT /* --op all */

struct coll_cfg {
	int op; /**< enum coll_op, or COLL_ALL_OPS */
	uint64_t min, max, step;
	double factor;
	int check; /**< 0 or 1 */
	int dtype, redop, root;
	int backend; /**< enum coll_backend */
	int mode;    /**< enum coll_mode */
	bool allow_one_rank;
	char *inject; /**< RANK:OFFSET, a test's wrong byte */
	/* Not options: what the command has chosen. */
	const struct coll_ops *ops;
	struct coll_local_group *group; /**< ranks are threads of this process; else NULL */
	uint64_t seed;
};

extern const struct fb_opt coll_opts[];
extern const struct fb_bench coll_bench;
extern const struct fb_cmd coll_cmd;

/** RANK:OFFSET of --inject; *rank is -1 without one. @return 0 or -EINVAL (exit 2) */
int coll_parse_inject(const char *text, int *rank, uint64_t *offset, struct fb_err *e);
/** What the options say that cannot be, before anything runs. @return 0 or -EINVAL (exit 2) */
int coll_check_cfg(const struct coll_cfg *cfg, int ranks, struct fb_err *e);

#endif
