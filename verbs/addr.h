/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addressing decided from attributes alone: which GID, which MTU, LID or GRH, and whether two ends
 * fit together. Pure functions: no device is touched, so that InfiniBand and machines that nobody
 * here has are tested from fabricated attributes.
 */
#ifndef VERBS_ADDR_H
#define VERBS_ADDR_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/bound.h"
#include "bench/core/err.h"

enum verbs_gid_type { VERBS_GID_IB, VERBS_GID_V1, VERBS_GID_V2 };
enum verbs_gid_family { VERBS_GID_IPV4, VERBS_GID_IPV6, VERBS_GID_LINK_LOCAL, VERBS_GID_NATIVE };
extern const char *const verbs_gid_type_names[];   /**< "IB", "RoCE v1", "RoCE v2" */
extern const char *const verbs_gid_family_names[]; /**< "IPv4", "IPv6", "link-local", "native" */

struct verbs_gid {
	union ibv_gid raw;
	uint32_t index;
	enum verbs_gid_type type;
	enum verbs_gid_family family;
	uint32_t ifindex; /**< netdev it belongs to; 0: none */
	unsigned vlan;    /**< of that netdev; 0: untagged */
};

/** What a person asked for; every field may be "any". */
struct verbs_gid_want {
	int index;       /**< exact index, -1: any */
	int type;        /**< enum verbs_gid_type, -1: the best there is */
	int family;      /**< enum verbs_gid_family or VERBS_GID_ANY_IPV6, -1: the best there is */
	unsigned vlan;   /**< of its netdev, 0: any, untagged first */
	bool by_address; /**< the address below and no other */
	union ibv_gid addr;
};
/** As a wanted family: IPv6 of any scope, global first. */
#define VERBS_GID_ANY_IPV6 4

/** ::ffff:a.b.c.d, fe80::/10, or other. On InfiniBand every GID is native. */
enum verbs_gid_family verbs_gid_family_of(const union ibv_gid *gid, bool infiniband);
/** Textual form: dotted for IPv4-mapped, else IPv6 notation. @return buf (INET6_ADDRSTRLEN is
 * enough) */
const char *verbs_gid_str(const union ibv_gid *gid, char *buf, size_t len);
int verbs_gid_parse(const char *text, union ibv_gid *gid);

/**
 * Choose from a port's valid entries. RoCE: v2 before v1; IPv4-mapped, then global IPv6, then
 * link-local; among equals  untagged before VLAN, then the lowest index. InfiniBand: the lowest
 * index. Never a fixed index: indices move when addresses or VLANs are added.
 * @return position in v, or -1 when nothing fits
 */
int verbs_gid_choose(const struct verbs_gid *v, unsigned n, const struct verbs_gid_want *want);

/** 256..4096 <-> IBV_MTU_*; 0 when it is none of them. */
unsigned verbs_mtu_bytes(enum ibv_mtu mtu);
int verbs_mtu_enum(unsigned bytes);

/** One end as both ends see it: what is exchanged before the first packet. */
struct verbs_end {
	char host[64];
	char device[64];
	char driver[32]; /**< "mlx5", "rxe", ...: without trailing "_core" and the like */
	char fw[64];
	char program[32]; /**< version of fabricbench */
	unsigned port;
	int link_layer; /**< IBV_LINK_LAYER_* */
	unsigned mtu;   /**< active, bytes */
	unsigned lid;
	unsigned lmc;
	unsigned sm_sl;
	unsigned pkey; /**< P_Key value at the index used */
	union ibv_gid gid;
	unsigned gid_index;
	enum verbs_gid_type gid_type;
	enum verbs_gid_family gid_family;
	bool grh_required; /**< IBV_QPF_GRH_REQUIRED in the port's flags */
	unsigned max_rd_atomic;
	unsigned inline_cap; /**< bytes that its sends may carry inline */
	uint64_t addr;       /**< target region */
	uint64_t length;
	uint64_t credit_addr; /**< where the peer writes its receive credits */
	uint32_t rkey;
	uint32_t credit_rkey; /**< of the region that credit_addr lies in */
	unsigned nqp;
};

/** The form in which one end tells the other what it is. @return new reference, NULL without memory
 */
json_t *verbs_end_to_json(const struct verbs_end *x);
/** @return 0, -EPROTO with the key at fault: missing, wrong type or out of range */
int verbs_end_from_json(struct verbs_end *x, const json_t *j, struct fb_err *e) FB_MUST_CHECK;

/**
 * Do two ends fit? Refuses, naming both values: InfiniBand against Ethernet, GID type v1 against
 * v2, IPv4 against IPv6, different active MTU unless one is asked for, an MTU above either end's,
 * P_Keys of different partitions or both limited members.
 * @param mtu asked for in bytes, 0: the common active MTU
 * @return the path MTU in bytes, or -EPROTO
 */
int verbs_ends_fit(const struct verbs_end *a, const struct verbs_end *b, unsigned mtu,
	struct fb_err *e) FB_MUST_CHECK;

/**
 * Is what rdma_cm has chosen by itself what was wanted? Refuses, naming both values: another GID
 * type than ours was to be or than the peer's is, and another traffic class than asked for (0:
 * any).
 * @return 0 or -EPROTO
 */
int verbs_used_fits(const struct verbs_gid *used, const struct verbs_end *peer,
	const struct verbs_gid *wanted, unsigned used_tc, unsigned tc, const char *device,
	struct fb_err *e) FB_MUST_CHECK;

struct verbs_path_want {
	unsigned sl;
	unsigned traffic_class;
	unsigned flow_label;
	unsigned hop_limit;
};

/**
 * Address vector from local to remote. Ethernet: always a GRH. InfiniBand: LID and SL; a GRH only
 * when the subnet prefixes differ or a port requires it (IBV_QPF_GRH_REQUIRED).
 * @return 0; -EPROTO without a LID on InfiniBand (no subnet manager has configured the port)
 */
int verbs_path(const struct verbs_end *local, const struct verbs_end *remote,
	const struct verbs_path_want *want, struct ibv_ah_attr *ah, struct fb_err *e) FB_MUST_CHECK;

/** Headers on the wire of that path, for the bound; *grh says whether InfiniBand carries a GRH. */
enum fb_link_layer verbs_wire_of(
	const struct verbs_end *local, const struct verbs_end *remote, bool *grh);

#endif
