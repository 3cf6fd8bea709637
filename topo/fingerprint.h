/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a node, its hash, and the difference of two shapes. Nodes of one kind have one
 * fingerprint whatever numbers their buses got; a device that is missing, on another switch or NUMA
 * node, another model, or numbered in another order changes it. States, rates, names, firmware,
 * memory sizes and drives are no part of it.
 */
#ifndef TOPO_FINGERPRINT_H
#define TOPO_FINGERPRINT_H

#include "bench/core/opt.h"
#include "topo/topo.h"

#define TOPO_FINGERPRINT 64 /* "1-" + 32 + "-" + 16 hexadecimal digits */

/* A shape of more is no node; reading such a document is refused. */
#define TOPO_SHAPE_MAX_ITEMS 4096
#define TOPO_SHAPE_MAX_LINKS 256

enum topo_shape_kind {
	TOPO_SHAPE_BRIDGE,
	TOPO_SHAPE_GPU,
	TOPO_SHAPE_NIC,
	TOPO_SHAPE_NVSWITCH,
	TOPO_SHAPE_OTHER, /**< an accelerator that is no GPU */
};

/** NVLink, xGMI or C2C links of a GPU to one peer, or to all switches. */
struct topo_shape_link {
	enum topo_fast_kind kind;
	int item; /**< the peer's place in items[]; TOPO_UNKNOWN: see to */
	char to;  /**< 'g' a GPU, 's' switches, 'c' its CPU, '?' not in the tree */
	unsigned count;
};

/** A device that matters, or a bridge above one. */
struct topo_shape_item {
	enum topo_shape_kind kind;
	int parent;   /**< place in items[], TOPO_UNKNOWN: on a root bus */
	uint32_t cls; /**< PCI class without the interface byte; 0: unknown */
	uint16_t vendor, device;
	int numa;
	double max_gts;
	unsigned max_width;
	unsigned rdma;        /**< RDMA devices on it */
	char name[TOPO_NAME]; /**< GPU0, mlx5_0, eth0; "" of bridges */
	char bdf[24];
	struct topo_shape_link *links;
	size_t n_links;
};

struct topo_shape {
	char fingerprint[TOPO_FINGERPRINT];
	char source[16]; /**< "sysfs", "hwloc-xml", "nccl-xml", "smi": only equals compare */
	char cpus[512];  /**< packages, NUMA nodes, cores, distances in one line */
	char *order;     /**< which GPU index is near which NIC index */
	struct topo_shape_item *items; /**< depth first: a parent stands before its children */
	size_t n_items;
};

/** @return 0 or -ENOMEM; free with topo_shape_free() */
int topo_shape_make(const struct topo *t, struct topo_shape **out) FB_MUST_CHECK;
void topo_shape_free(struct topo_shape *s);
/** Into the topology object: fingerprint, shape {source, cpus, order, devices[]}. */
void topo_shape_json(const struct topo_shape *s, json_t *doc);
/** From a topology object. @return 0; -EINVAL with *e: no topology object, or none with a shape
 * (exit 2); -EFBIG; -ENOMEM */
int topo_shape_from_json(const json_t *doc, const char *name, struct topo_shape **out,
	struct fb_err *e) FB_MUST_CHECK;
/** Only the hash. @return 0 or -ENOMEM */
int topo_fingerprint(const struct topo *t, char out[TOPO_FINGERPRINT]) FB_MUST_CHECK;
/** Hash items, cpus and order into s->fingerprint. @return 0 or -ENOMEM */
int topo_shape_hash(struct topo_shape *s) FB_MUST_CHECK;

enum topo_diff_kind {
	TOPO_DIFF_MISSING, /**< the reference has it */
	TOPO_DIFF_EXTRA,
	TOPO_DIFF_MOVED,
	TOPO_DIFF_REPLACED, /**< another model in its place */
	TOPO_DIFF_CHANGED,  /**< links, NUMA node, RDMA devices */
	TOPO_DIFF_ORDER,    /**< alike, but numbered otherwise */
	TOPO_DIFF_CPUS,
};
/** As it stands in documents. */
const char *topo_diff_name(enum topo_diff_kind k);

struct topo_diff_entry {
	enum topo_diff_kind kind;
	char device[TOPO_NAME]; /**< name, else PCI address; of missing ones the reference's */
	char text[400];
};
struct topo_diff {
	struct topo_diff_entry *e;
	size_t n;
};
/** What differs in `node` from `ref`. Nothing when their fingerprints are equal.
 * @return 0 or -ENOMEM; free d->e */
int topo_shape_diff(const struct topo_shape *ref, const struct topo_shape *node,
	struct topo_diff *d) FB_MUST_CHECK;

/**
 * Compare nodes: files and folders as the command line gives them.
 * @param status receives 0 all alike, 1 some differ, 3 they cannot be compared
 * @return 0, or negative with *e
 */
int topo_compare(const struct fb_opt_list *nodes, bool json, struct fb_strbuf *out, int *status,
	struct fb_err *e) FB_MUST_CHECK;

#endif
