/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What topo's own files share: growth of the model's arrays, and the steps of topo_load() in their
 * order.
 */
#ifndef TOPO_TOPO_PRIV_H
#define TOPO_TOPO_PRIV_H

#include "topo/topo.h"

/* Beyond these a tree is no machine but an attack or an accident. */
#define TOPO_MAX_PCI    8192
#define TOPO_MAX_NETS   8192
#define TOPO_MAX_CPU    65535
#define TOPO_MAX_NUMA   1024
#define TOPO_MAX_MATRIX 512 /* rows of a matrix, devices of paths[] */

#define TOPO_PATH_LEN 1024

/**
 * Make room for one more zeroed element behind *n.
 * @return the new element (*n is raised), NULL without memory
 */
void *topo_grow(void **array, size_t *n, size_t size);
void topo_warn(struct topo *t, const char *fmt, ...) FB_PRINTF(2, 3);

/** Packages, NUMA nodes, distances; fills t->hwloc. Does nothing when the tree records no CPUs. */
int topo_read_cpus(struct topo *t, const struct fb_sysroot *r, struct fb_err *e);
/** The PCI tree, localities and GPUs. */
int topo_read_pci(struct topo *t, const struct fb_sysroot *r, struct fb_err *e);
/** Interfaces, then RDMA devices, which stand on interfaces and PCI functions. */
int topo_read_net(struct topo *t, const struct fb_sysroot *r, struct fb_err *e);
int topo_read_rdma(struct topo *t, const struct fb_sysroot *r, struct fb_err *e);

/** What decides where hwloc reads from; a user's own settings hold for the live machine only. */
struct topo_env {
	const char *name;
	const char *value; /**< NULL: unset while we read */
	char *old;
};
void topo_env_enter(struct topo_env *g, size_t n);
void topo_env_leave(struct topo_env *g, size_t n);
/** Packages, NUMA nodes, distances and memory attributes out of t->hwloc. @return 0, -ENOMEM,
 * -EFBIG */
int topo_read_hwloc(struct topo *t);
/** latency_ns and bandwidth out of t->hwloc. @return 0 or -ENOMEM */
int topo_read_memattrs(struct topo *t);

/** NUMA node that holds exactly these CPUs (cpulist), or TOPO_UNKNOWN. Several (DRAM beside HBM):
 * the lowest, which is the default one. */
int topo_numa_of_cpus(const struct topo *t, const char *cpulist);
/** NUMA node and cpulist that hwloc gives to a PCI function (quirks, groups, HWLOC_PCI_LOCALITY).
 * *cpus is allocated, or NULL. */
int topo_hwloc_locality(const struct topo *t, const char *bdf, char **cpus);
/** Index in pci[], or TOPO_UNKNOWN. */
int topo_find_pci(const struct topo *t, const char *bdf);
/** Is the text from `s` a PCI address "DDDD:BB:DD.F" that ends at a slash or the end? @return its
 * length, or 0 */
size_t topo_bdf_len(const char *s);
/** Last PCI address in a resolved sysfs path, into bdf. @return true when there is one */
bool topo_last_bdf(const char *path, char *bdf, size_t len);
/** Base name of the target of a link such as ".../driver"; "" when there is none. */
void topo_link_name(const struct fb_sysroot *r, const char *path, char *buf, size_t len);
/**
 * For each function on a root bus, the NUMA node its whole bus is shown under: the first that any
 * function on or below the bus has (kernels give a node to some of them only). By PCI index; caller
 * frees. NULL without memory.
 */
int *topo_root_numa(const struct topo *t);
bool topo_is_gpu(const struct topo_pci *p);
/**
 * For the lab's tests alone (FABRICBENCH_STAND_INS=1): an emulator's display is a GPU, and a
 * software RDMA device on a PCI interface is that interface's own, so that placement and node
 * checks have something to judge on a machine with two NUMA nodes and PCIe switches that exists
 * nowhere else.
 */
bool topo_stand_ins(void);
/** Class InfiniBand, or a vendor and device known to do RDMA. */
bool topo_does_rdma(const struct topo_pci *p);
/** Warn of GPUs whose nearest NIC is on another NUMA node, where there are NICs at all. */
void topo_warn_remote_nics(struct topo *t);

/** Is this a cpulist ("0-3,8") with no CPU beyond TOPO_MAX_CPU? A huge one would make a bitmap of
 * half a gigabyte. "" is none. */
bool topo_cpulist_sane(const char *list);
/** cpulist of the calling thread's allowed CPUs; caller frees; NULL when unknown. */
char *topo_allowed_cpus(void);

/** Copy with truncation; control characters become '?'; always NUL-terminated. */
void topo_copy(char *dst, size_t len, const char *src);
/** "16 GT/s x16", "?" ; into buf. @return buf */
const char *topo_fmt_link(double gts, unsigned width, char *buf, size_t len);
/** May a matrix of n devices be made? Not of more than TOPO_MAX_MATRIX, nor of so many GPUs and
 * links that only a hostile file has them. */
bool topo_matrix_fits(const struct topo *t, size_t n);
/** As nvidia-smi writes it: "PIX", "NV18" with the number of links; into buf. @return buf */
const char *topo_path_text(const struct topo *t, const struct topo_dev *a, const struct topo_dev *b,
	char *buf, size_t len);
/** Bytes/s each way of all NVLink or xGMI links between two GPUs; 0: unknown. */
double topo_fast_bandwidth(const struct topo *t, size_t a, size_t b);
/** Number of devices other than GPUs in devs. */
size_t topo_count_nics(const struct topo_dev *devs, size_t n);

/** NVLinks of one GPU to NVSwitches. */
unsigned topo_switch_links(const struct topo *t, size_t gpu);

#endif
