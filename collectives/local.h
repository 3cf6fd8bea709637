/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local backend: ranks are threads of one process, a collective is memory copies and additions
 * between their buffers. The reference implementation: simple enough to be right, so that checks
 * and everything above a backend can be tested anywhere.
 */
#ifndef COLL_LOCAL_H
#define COLL_LOCAL_H

#include "bench/core/err.h"
#include "collectives/coll_ops.h"

#define COLL_LOCAL_MAX_RANKS 256

struct coll_local_group;

/** What the threads of one communicator share: goes into coll_env.shared of every rank. @return the
 * group, or NULL: -EINVAL (ranks not in 1..COLL_LOCAL_MAX_RANKS), -ENOMEM */
struct coll_local_group *coll_local_group_new(int ranks, struct fb_err *e);
/** After all ranks have closed their communicators. */
void coll_local_group_free(struct coll_local_group *g);

extern const struct coll_ops coll_local_ops;

#endif
