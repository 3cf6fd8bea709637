/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU driver tells: from the live driver by NVML (opened by dlopen, prototypes of our own)
 * or from text recorded beside sys/ and proc/: nvidia-smi-q.txt (`nvidia-smi -q`) and
 * nvidia-smi-nvlink.txt (`nvidia-smi nvlink -s`). -1, 0 and "" where it does not tell.
 */
#ifndef TOPO_NODE_GPU_H
#define TOPO_NODE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/sysroot.h"

#define GPU_Q_FILE      "nvidia-smi-q.txt"
#define GPU_NVLINK_FILE "nvidia-smi-nvlink.txt"
#define GPU_MAX         256

/** Why clocks are held back; bits of our own. */
enum gpu_throttle {
	GPU_HELD_HW_SLOWDOWN = 1,
	GPU_HELD_HW_THERMAL = 2,
	GPU_HELD_POWER_BRAKE = 4,
	GPU_HELD_SW_THERMAL = 8,
	GPU_HELD_SW_POWER = 16,
	GPU_HELD_IDLE = 32,
};
enum gpu_fabric {
	GPU_FABRIC_UNKNOWN = -1, /**< not told */
	GPU_FABRIC_NONE,         /**< "N/A": not on a fabric */
	GPU_FABRIC_NOT_STARTED,
	GPU_FABRIC_IN_PROGRESS,
	GPU_FABRIC_COMPLETED
};
enum gpu_count { /* errors, by kind */
	GPU_CORRECTED_VOLATILE,
	GPU_UNCORRECTED_VOLATILE,
	GPU_CORRECTED_AGGREGATE,
	GPU_UNCORRECTED_AGGREGATE,
	GPU_COUNTS
};

struct gpu_fact {
	char bdf[24]; /**< "0000:3b:00.0" */
	char model[64];
	int pstate, util;     /**< 0 is P0; per cent */
	int64_t memory, bar1; /**< bytes */
	int ecc, ecc_pending; /**< 1 enabled, 0 disabled */
	int64_t errors[GPU_COUNTS];
	int64_t remap_corrected, remap_uncorrected;
	int remap_pending, remap_failed, retired_pending;
	int throttle;                      /**< bits */
	double power_limit, power_default; /**< W; -1 */
	enum gpu_fabric fabric;
	char fabric_status[48]; /**< "Success" */
	int64_t clique;
	int cluster_zero;      /**< the cluster's UUID is all zeros: 1 */
	int links, links_down; /**< NVLinks up, and there but down */
};

struct gpu_facts {
	struct gpu_fact *gpu; /**< in the order of PCI addresses */
	size_t n;
	char driver[64];
	char read[96]; /**< "NVML", "nvidia-smi-q.txt" */
	char links_read[96];
	char why[200]; /**< when n is 0: why nothing is told */
	bool told;     /**< the driver answered, even if with no GPU */
};

/** All of them; never fails: see why. */
void gpu_facts_read(const struct fb_sysroot *r, struct gpu_facts *g);
void gpu_facts_free(struct gpu_facts *g);
/** By PCI address; NULL. */
const struct gpu_fact *gpu_facts_find(const struct gpu_facts *g, const char *bdf);

/** From text; what it does not hold stays unknown. @return 0, -EINVAL: no such text, -EFBIG,
 * -ENOMEM
 */
int gpu_parse_q(const char *text, struct gpu_facts *g);
/** Adds links to the GPUs of g, in its order; without any they are made. @return as above */
int gpu_parse_nvlink(const char *text, struct gpu_facts *g);
/** By NVML, within ten seconds whatever the driver does. */
void gpu_facts_nvml(struct gpu_facts *g);
/** The same by an open library, which must stay open, within deadline_ms. */
void gpu_facts_ask(void *library, unsigned deadline_ms, struct gpu_facts *g);
/** An element with all unknown; NULL without memory or over GPU_MAX. */
struct gpu_fact *gpu_facts_add(struct gpu_facts *g);
/** "00000000:3B:00.0" as the kernel writes it; false: no address. */
bool gpu_bdf(const char *text, char *bdf, size_t len);

#endif
