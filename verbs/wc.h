/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion statuses in words: each maps to its likely causes and to the check to run next, so
 * that a failed run ends with an explanation and not with a number.
 */
#ifndef VERBS_WC_H
#define VERBS_WC_H

#include <infiniband/verbs.h>

#include "bench/core/err.h"

struct verbs_wc_info {
	enum ibv_wc_status status;
	const char *name;   /**< "IBV_WC_RETRY_EXC_ERR" */
	const char *causes; /**< likely ones, the likeliest first */
	const char *next;   /**< the check to run next */
	enum fb_exit exit;  /**< 3: could not measure; no status means wrong data */
};

/** Every status has a row; unknown numbers get the general one. Never NULL. */
const struct verbs_wc_info *verbs_wc_lookup(enum ibv_wc_status status);

/**
 * What a vendor's code adds to the status on mlx5, whose codes are the only ones that public
 * reports make anything of. @param next the check to run besides, or NULL @return NULL: nothing is
 * known
 */
const char *verbs_wc_vendor(enum ibv_wc_status status, uint32_t code, const char **next);

/**
 * Record a failed completion: name, vendor code, operation, local and remote device, causes, next
 * check. @param what what was under way, e.g. "write of 64 B to rxe0 on node7"
 * @return -EIO; -ETIMEDOUT for exhausted retries
 */
int verbs_wc_fail(struct fb_err *e, const struct ibv_wc *wc, const char *what);

#endif
