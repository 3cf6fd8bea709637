/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of a host for system.hosts[]: CPU, NUMA, kernel, governor, memory, RDMA devices, GPUs by
 * PCI class, libraries, clock (source, read cost, resolution), cpuset, container, and the
 * environment variables that matter, by exact list.
 */
#ifndef FB_CORE_SYSINFO_H
#define FB_CORE_SYSINFO_H

#include <jansson.h>
#include <stdbool.h>

#include "bench/core/sysroot.h"

/** Facts of the machine behind `r`. With anonymous: no host name, GUID, MAC, IP ("host0" instead).
 * New reference, NULL without memory. */
json_t *fb_sysinfo_host(const struct fb_sysroot *r, bool anonymous);
/** NCCL_*, UCX_*, OMP_*, CUDA_VISIBLE_DEVICES, OMPI_MCA_{btl,coll,pml,mpi,hwloc}_*; values with
 * URIs or key paths dropped. New reference. */
json_t *fb_sysinfo_env(void);
/** This host's name (at most len-1 bytes). */
void fb_host_name(char *buf, size_t len);
/** "lab" inside the lab's guests (FABRICBENCH_LAB=1), else `otherwise`. */
const char *fb_where(const char *otherwise);

#endif
