/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA devices of this host: found, opened and described. One opened device and port is a rail; a
 * node is the set of rails of one session. What to do with the answers is decided in addr.h.
 */
#ifndef VERBS_DEV_H
#define VERBS_DEV_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"
#include "verbs/addr.h"

#define VERBS_MAX_RAILS 32

struct verbs_dev_want {
	const char *device; /**< NULL: the first ACTIVE one; "all"; or names, comma-separated */
	unsigned port;      /**< 0: the first ACTIVE port */
	struct verbs_gid_want gid;
	unsigned pkey_index;
	unsigned pkey; /**< value, found in the table; 0: by index */
};

struct verbs_dev {
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	char name[64];
	char driver[32];
	char netdev[64]; /**< of the GID; empty on InfiniBand without one */
	unsigned port;
	struct verbs_gid gid;
	unsigned pkey; /**< value and place in the port's table */
	unsigned pkey_index;
	int numa_node;        /**< -1: unknown */
	bool software;        /**< rxe, siw: the CPU is the NIC */
	double line_rate;     /**< bytes/s of the port's `rate`; 0: unknown or meaningless */
	char line_rate_s[64]; /**< as read: "100 Gb/sec (4X EDR)" */
};

struct verbs_node {
	struct verbs_dev dev[VERBS_MAX_RAILS];
	unsigned n;
};

/**
 * Open the devices asked for.
 * @return 0; -ENODEV when this host has no RDMA device at all (exit 77, with how to get one);
 * -ENOENT when the named one does not exist (exit 2, with those that do); -ENETDOWN when none or
 * the named one is not ACTIVE (exit 3, with its state); -EADDRNOTAVAIL when it has no GID as asked
 * for (with those it has)
 */
int verbs_node_open(
	struct verbs_node *n, const struct verbs_dev_want *want, struct fb_err *e) FB_MUST_CHECK;
void verbs_node_close(struct verbs_node *n);
/** Has it devices, and is none of them in software (Soft-RoCE, siw)? */
bool verbs_node_hardware(const struct verbs_node *n);

/** The GID that a queue pair really uses, by its type and netdev too. @return 0 or -errno */
int verbs_dev_gid_at(const struct verbs_dev *d, uint32_t index, struct verbs_gid *g);
/** Place in a P_Key table of `n` entries: the same partition, a full member first. @return -1
 * without one. Exposed for tests. */
int verbs_pkey_choose(const uint16_t *table, unsigned n, unsigned want);

/** 0, or -ENODEV (exit 77) with the remedy: is there any RDMA device? */
int verbs_any_device(struct fb_err *why);

/** Are all of these devices (names by commas) here? @return 0, or -ENOENT (exit 2) with what there
 * is
 */
int verbs_device_known(const char *names, struct fb_err *e) FB_MUST_CHECK;
/** "mlx5_0, mlx5_1"; "none" without any. @return buf */
const char *verbs_device_names(char *buf, size_t len);

/** Device facts for a result: device, port, driver, fw, gid index and type, mtu, link layer,
 * netdev, NUMA node. New reference. */
json_t *verbs_dev_facts(const struct verbs_dev *d);
/** What the other end is told of a rail; the session fills addr, rkey and the rest. */
void verbs_dev_end(const struct verbs_dev *d, struct verbs_end *x);

/** "mlx5_core" -> "mlx5"; from vendor ids for software devices. Exposed for tests. */
void verbs_driver_name(unsigned vendor_id, const char *module, char *buf, size_t len);
/** Is the CPU the NIC of this driver? */
bool verbs_driver_software(const char *driver);
/** "100 Gb/sec (4X EDR)" -> bytes/s; 0 when it cannot be read. Exposed for tests. */
double verbs_parse_rate_file(const char *text);
/** "4: ACTIVE" and the like for a port state. */
const char *verbs_port_state(enum ibv_port_state s);

/**
 * Can `bytes` be locked? RLIMIT_MEMLOCK against what registration will pin, unless CAP_IPC_LOCK.
 * @return 0; -ENOMEM with the limit and its remedy (exit 3)
 */
int verbs_memlock_check(uint64_t bytes, struct fb_err *e) FB_MUST_CHECK;

#endif
