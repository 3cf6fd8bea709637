/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Non-blocking all-gather, reduce-scatter and all-reduce of a group of ranks over point-to-point
 * messages: direct exchange up to EXCHANGE_DIRECT ranks (all messages at once; sums in rank order),
 * a ring above (sums in ring order from the owner's successor, the same in every run). Bytes sent
 * are those of a bandwidth-optimal ring: (n-1)/n of the whole for each of the first two, twice that
 * for an all-reduce, which is a reduce-scatter and an all-gather of blocks of ceil(count/n)
 * elements; blocks are equal, the padding belongs to the caller (count a multiple of n), except
 * that all-reduce takes any count.
 */
#ifndef COLL_EXCHANGE_H
#define COLL_EXCHANGE_H

#include "collectives/coll_ops.h"
#include "collectives/p2p_ops.h"

#define EXCHANGE_DIRECT 8

/** Ranks that exchange among themselves, by an axis's name: "shard", "replicate", "tensor",
 * "pipeline". */
struct exchange_group {
	const char *axis;
	int rank, size;    /**< of this rank in the group */
	int first, stride; /**< group rank i is world rank first + i*stride */
	enum p2p_channel channel;
};
/** What went out, by world rank, for the accounting of tiers; all in bytes. */
struct exchange_stats {
	uint64_t bytes_sent;    /**< all */
	uint64_t bytes_to_node; /**< of these, within the node (ranks_per_node consecutive ranks) */
	uint64_t bytes_to_rack; /**< of these, to other nodes of the rack (rack map) */
	uint64_t messages;
};
struct exchange_tiers {
	int ranks_per_node; /**< 0: all on one node */
	const int *rack_of; /**< by node; NULL: one rack */
	int nodes;
};

struct exchange; /* one collective at a time on one group */

/** Scratch grows at the first use of a size and stays. tiers NULL: all on one node.
 * @return 0; -EINVAL: rank, size, stride or the rack map do not fit; -ENOMEM */
int exchange_new(const struct p2p_ops *ops, struct p2p *p, const struct exchange_group *g,
	const struct exchange_tiers *tiers, struct exchange **x, struct fb_err *e) FB_MUST_CHECK;
/** While the transport is open; a collective that is still in progress must have been ended by its
 * abort() or exchange_test()'s error before. Scratch that the transport holds stays behind. */
void exchange_free(struct exchange *x);
/** Bytes of scratch that a reduce-scatter of `count` elements per rank takes here; one block more
 * when `out` lies elsewhere inside `in` than in its own block. */
size_t exchange_scratch(const struct exchange_group *g, size_t count, enum coll_dtype t);

/* Beginning: @return 0; -EBUSY: one is in progress; -ENOMEM; -EOVERFLOW: absurd count; -ECONNRESET
 * and the like with the cause. Buffers must stay until it is done. A group of one is done at once,
 * as are zero elements. 16-bit floats: direct sums are made in float and rounded once, a ring's
 * are rounded at every rank. */

/** count elements from each rank; out has size*count. send may be out + rank*count (in place). */
int exchange_all_gather(struct exchange *x, const void *send, void *out, size_t count,
	enum coll_dtype t, struct fb_err *e) FB_MUST_CHECK;
/** in has size*count elements, out gets the sum of block `rank`; may lie inside in. */
int exchange_reduce_scatter(struct exchange *x, const void *in, void *out, size_t count,
	enum coll_dtype t, struct fb_err *e) FB_MUST_CHECK;
/** In place, any count: blocks of ceil(count/size), the last ones short, are padded on the wire. */
int exchange_all_reduce(struct exchange *x, void *buf, size_t count, enum coll_dtype t,
	struct fb_err *e) FB_MUST_CHECK;
/** Move on; *done. Call often. @return 0, -ECONNRESET and the like with the cause */
int exchange_test(struct exchange *x, bool *done, struct fb_err *e) FB_MUST_CHECK;
const struct exchange_stats *exchange_stats(const struct exchange *x);
/** A collective of this group is called done only this much later, and that much per byte sent
 * later: --inject over transports without a shaped link. */
void exchange_delay(struct exchange *x, uint64_t ns, double ns_per_byte);

#endif
