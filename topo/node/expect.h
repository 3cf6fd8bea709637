/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node should have: machine.ini. Section [machine] holds what one kind of machine has in
 * common; [gpu BDF] and [nic BDF] name single devices, so that a missing one can be named. Every
 * key, value and repetition is checked: a mistyped key would silently expect less.
 *
 *   [machine]
 *   name, source           words about it
 *   gpus, nics             how many; nics counts those of role compute
 *   gpu-model              what the model's name holds, such as H100
 *   nvlinks                links of each GPU that must be up
 *   nic-rate               such as 400Gb/s
 *   gpu-link, nic-link     such as 32 GT/s x16: what the links must reach
 *   gpu-nic-path           the farthest that is by design: PIX, PXB, PHB, NODE or SYS
 *   sockets, numa-per-socket
 *   memory                 such as 2T, as built in; what firmware keeps for itself is allowed for
 *   power-cap              W of each GPU
 *   ecc                    yes or no
 *   fabric                 no, yes (registered with the fabric manager), cluster (with a cluster's
 *                          UUID too)
 *   place                  bare-metal or vm-host
 *   memlock                bytes that a job registers
 *   driver-nvidia, driver-mlx5, kernel   versions
 *   firmware               of the compute NICs
 *   fingerprint            of the shape
 *
 *   [gpu 0000:07:00.0]     slot, numa, link, model
 *   [nic 0000:0c:00.0]     slot, numa, link, name, rate
 */
#ifndef TOPO_NODE_EXPECT_H
#define TOPO_NODE_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "topo/topo.h"

struct expect_link {
	double gts; /**< 0: not told */
	unsigned width;
};
struct expect_dev {
	bool nic;
	char bdf[24];
	char slot[32], name[64], model[64];
	int numa; /**< -1 */
	struct expect_link link;
	uint64_t rate_bps;
};
enum expect_fabric {
	EXPECT_FABRIC_ANY = -1,
	EXPECT_FABRIC_NO,
	EXPECT_FABRIC_YES,
	EXPECT_FABRIC_CLUSTER
};
enum expect_place { EXPECT_PLACE_ANY = -1, EXPECT_PLACE_BARE, EXPECT_PLACE_HOST };

#define EXPECT_MAX_DEVS 512

/** -1, 0 and "": not told. */
struct node_expect {
	bool given;
	char path[256], name[96], source[160];
	int gpus, nics, nvlinks, sockets, numa_per_socket, power_cap, ecc;
	int fabric, place;
	enum topo_path gpu_nic_path; /**< TOPO_PATH_UNKNOWN: not told */
	char gpu_model[64], driver_nvidia[48], driver_mlx5[48], kernel[96], firmware[48],
		fingerprint[64];
	uint64_t nic_rate_bps, memory, memlock;
	struct expect_link gpu_link, nic_link;
	struct expect_dev *dev;
	size_t n_dev;
};

/** Nothing is expected. */
void node_expect_none(struct node_expect *x);
/** @param name a file, or the name of a shipped one ("hgx-h100") @return 0; -EINVAL, -ENOENT and
 * other errors of reading (exit 2) */
int node_expect_read(const char *name, struct node_expect *x, struct fb_err *e) FB_MUST_CHECK;
/** From memory; `name` stands in messages. */
int node_expect_parse(const char *text, size_t len, const char *name, struct node_expect *x,
	struct fb_err *e) FB_MUST_CHECK;
void node_expect_free(struct node_expect *x);
/** NULL: the file names no such device. */
const struct expect_dev *node_expect_find(const struct node_expect *x, const char *bdf);

#endif
