/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How NCCL classes the way between two devices. Its order decides what it uses: NVLink before PCIe,
 * GPUDirect RDMA up to PXB, PXN where an NVLink peer is nearer to the NIC. NCCL knows no NODE: that
 * is PHB to it.
 */
#ifndef TOPO_NCCL_PATH_H
#define TOPO_NCCL_PATH_H

#include "topo/topo.h"

/** In NCCL's order, nearest first (src/include/graph.h and src/graph/topo.h, NCCL 2.24 and later).
 */
enum topo_nccl {
	TOPO_NCCL_LOC, /**< the same device */
	TOPO_NCCL_NVL, /**< NVLink or xGMI, directly or through a switch */
	TOPO_NCCL_NVB, /**< NVLink through one GPU between */
	TOPO_NCCL_C2C, /**< both GPUs on NVLink-C2C of one CPU */
	TOPO_NCCL_PIX,
	TOPO_NCCL_PXB,
	TOPO_NCCL_P2C, /**< GPU over C2C to its CPU, and that CPU's PCIe to the NIC */
	TOPO_NCCL_PXN, /**< from a GPU over NVLink to the GPU beside the NIC */
	TOPO_NCCL_PHB,
	TOPO_NCCL_SYS,
	TOPO_NCCL_UNKNOWN,
};

/** As NCCL writes it: "PIX", "PXN". */
const char *topo_nccl_name(enum topo_nccl c);
/**
 * Classes of all pairs, [a * n + b], for devs of topo_devices(). From a GPU to a NIC it is the
 * sending direction: PXN holds for that alone. A NUMA node of -1 counts as node 0, as NCCL takes
 * it.
 * @param classes n x n
 * @return 0 or -ENOMEM
 */
int topo_nccl_classes(const struct topo *t, const struct topo_dev *devs, size_t n,
	enum topo_nccl *classes) FB_MUST_CHECK;
/** Does NCCL let the NIC reach the GPU's memory by default? PXB and nearer. */
bool topo_nccl_gdr(enum topo_nccl c);

#endif
