/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `check node` share: the facts of one node, read once through the sysroot's
 * door, and how a check says what it found. What is not known stays unknown (-1, NULL, a reason)
 * and is never taken for a value.
 */
#ifndef TOPO_NODE_NODE_PRIV_H
#define TOPO_NODE_NODE_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/check.h"
#include "bench/core/check_others.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"
#include "bench/core/sysroot.h"
#include "topo/node/expect.h"
#include "topo/node/gpu.h"
#include "topo/fingerprint.h"
#include "topo/node/node.h"
#include "topo/topo.h"

/** What a network device is for; told from its place, never from its rate alone. */
enum node_role {
	NODE_ROLE_NONE, /**< GPUs */
	NODE_ROLE_COMPUTE,
	NODE_ROLE_STORAGE,
	NODE_ROLE_MANAGEMENT,
	NODE_ROLE_AGGREGATION, /**< SHARP's aggregation node, mlx5_an0 */
	NODE_ROLE_VIRTUAL,     /**< software, or a virtual function beside its physical one */
};
extern const char *const node_role_names[];

/** Where the node stands: it decides what access control (ACS) should be. */
enum node_place { NODE_BARE_METAL, NODE_VM_HOST, NODE_GUEST };

/* Beyond these a tree is no node; checks compare devices with each other. */
#define NODE_MAX_GPUS    256
#define NODE_MAX_DEVICES 4096

/** A GPU, an RDMA device, or an interface without one. */
struct node_dev {
	char name[64];       /**< "GPU0", "mlx5_0" */
	char subject[96];    /**< "GPU0 (0000:3b:00.0)" */
	int pci;             /**< index in topo's pci[], TOPO_UNKNOWN */
	int gpu, rdma, nic;  /**< index in topo's arrays; -1: it is none */
	enum topo_path near; /**< of a network device: to the nearest GPU */
	bool function;       /**< a physical PCI function: neither virtual nor software */
	enum node_role role;
	const char *role_why;
};

/** PCI configuration space of one function. */
struct node_config {
	bool read;
	uint8_t *bytes; /**< NULL: `why` says why */
	size_t len;
	unsigned express; /**< offset of the PCI Express capability; 0: none */
	char path[80], why[128];
};

/** Another node, as its summary (node_summary()). */
struct node_fleet {
	json_t **peer;
	size_t n;
	struct fb_others_passed passed; /**< what folders of --others held besides */
};

/** Counters that were read twice; see node_watch(). */
struct node_window {
	uint64_t ns;    /**< 0: there is none */
	json_t *before; /**< path -> value */
};

struct node {
	const struct fb_sysroot *r;
	bool live;
	char host[64], product[128];
	struct topo *t;
	struct node_dev *dev; /**< GPUs, RDMA devices, interfaces */
	size_t n_dev;
	struct node_config *config; /**< of topo's pci[] */
	enum node_place place;
	char place_why[160];
	struct gpu_facts gpus;
	struct node_expect expect;
	struct node_fleet fleet;
	json_t *summary; /**< node_summary(); made when first asked for */
	struct node_window window;
	char *log;          /**< kernel log; NULL: log_why */
	bool log_from_boot; /**< it still begins where the kernel did */
	char log_read[64], log_why[160];
	char *hidden;     /**< of a recording: what could not be read */
	int64_t uptime_s; /**< -1 */
};

/** @return 0; topo_load()'s errors */
int node_open(struct node *n, const struct fb_sysroot *r, struct fb_err *e) FB_MUST_CHECK;
void node_close(struct node *n);

/* ---- checks ---------------------------------------------------------------------------------- */

/** One check at work. */
struct node_run {
	struct node *n;
	const struct fb_check_def *def;
	struct fb_doc *doc;
	unsigned findings;
	void *own; /**< a check's own data, while it runs */
};
/** A finding about `subject`; NULL: the node as a whole. */
struct fb_finding node_finding(const struct node_run *c, const char *subject);
void node_emit(struct node_run *c, const struct fb_finding *f);
/** One skip for the whole check. */
void node_skip(struct node_run *c, const char *fmt, ...) FB_PRINTF(2, 3);

/** Read a file, white space cut. @return its length; negative: *f is a skip with the reason, and
 * f->read the path */
int node_read(const struct node *n, struct fb_finding *f, char *buf, size_t len, const char *fmt,
	...) FB_PRINTF(5, 6);
/** An integer file. @return known; else *f as above */
bool node_read_i64(const struct node *n, struct fb_finding *f, int64_t *v, const char *fmt, ...)
	FB_PRINTF(4, 5);
/** Why a path tells nothing: "not available: no such file", "not recorded", "not visible from
 * here". @return buf */
const char *node_why(const struct node *n, const char *path, int rc, char *buf, size_t len);

/** An environment variable of the application, from the environment (recorded: /env) or
 * /etc/nccl.conf. @return buf; NULL: not set */
const char *node_env(const struct node *n, const char *name, char *buf, size_t len);

/** Configuration space beyond the header. NULL: *f is a skip that says why. */
const struct node_config *node_config(struct node *n, int pci, struct fb_finding *f);
/** Offset of an extended capability; 0: none. */
unsigned node_extended(const struct node_config *c, unsigned id);
unsigned node_u16(const struct node_config *c, size_t at);

/** PCI functions from a device upwards. @return how many, the device's own first */
size_t node_chain(const struct topo *t, int pci, int *chain, size_t max);
/** The path between two devices of the node. */
enum topo_path node_path(const struct node *n, const struct node_dev *a, const struct node_dev *b);
/** How many CPUs are in both lists. */
unsigned node_common_cpus(const char *a, const char *b);
/** Is numa[i] the memory that its CPUs use by default: not one without CPUs, not HBM or other
 * memory beside theirs? */
bool node_own_memory(const struct topo *t, size_t i);
/** How many devices are GPUs, or have the role. */
size_t node_count_gpus(const struct node *n);
size_t node_count_role(const struct node *n, enum node_role role);
/** Is this bridge made by an emulator, which tells links that mean nothing? */
bool node_emulated(const struct topo_pci *p);

/** Roles of all network devices. */
void node_find_roles(struct node *n);

/* ---- windows --------------------------------------------------------------------------------- */

/** Read all counters, wait, so that node_grew() can tell; ends early when the program must stop. */
void node_watch(struct node *n, uint64_t ns);
/** What a counter grew by in the window; -1: no window, or not known. */
int64_t node_grew(const struct node *n, const char *path, int64_t now);

/* ---- shape, fleet ---------------------------------------------------------------------------- */

/** What other nodes are compared with: the document's key `node`: {host, product, gpus, gpu_model,
 * gpu_pci, nics, nvlinks, memory_bytes, drivers {}, firmware [], fingerprint, shape}. What the node
 * does not tell is absent. Borrowed; NULL without memory. */
const json_t *node_summary(struct node *n);
/** Trees, documents of check node, or folders of them; the node's own is left out. Trees in several
 * folders that tell one host name are several nodes. @param own_dir the examined tree; NULL: the
 * live machine. @return 0;
 * -ENOENT, -EINVAL (exit 2) */
int node_fleet_read(const struct fb_opt_list *names, const char *own_host, const char *own_dir,
	struct node_fleet *f, struct fb_err *e) FB_MUST_CHECK;
void node_fleet_free(struct node_fleet *f);
/** Is the other node of this one's kind: product, else make of GPUs? */
bool node_same_kind(const json_t *own, const json_t *peer);

enum node_vote {
	NODE_VOTE_NONE, /**< no other node tells */
	NODE_VOTE_TIED, /**< they tell, and no value is the majority's */
	NODE_VOTE_WON
};
/**
 * The value that most nodes of this one's kind have, this one counted.
 * @param key of the summary, "drivers.nvidia" of an object in it
 * @param buf receives the winner, or (tied) another node's value, as text
 * @param of receives how many nodes told
 */
enum node_vote node_majority(struct node *n, const char *key, char *buf, size_t len, unsigned *of);
/** A value of a summary as text, by key as above; NULL: not told. @return buf */
const char *node_value(const json_t *summary, const char *key, char *buf, size_t len);

/** Print machine.ini of this node. @return 0 or -errno */
int node_learn(struct node *n, FILE *out, struct fb_err *e) FB_MUST_CHECK;

/** Bytes of memory that is no GPU's; 0: not told. */
uint64_t node_memory(const struct node *n);
/** NVLinks of a GPU that are up, by the driver or the topology's source; -1: not told. */
int node_nvlinks(const struct node *n, const struct node_dev *gpu);
/** Version of a driver: "nvidia", "mlx5_core", "kernel", ... @return false: not told */
bool node_driver(const struct node *n, const char *name, char *buf, size_t len);
extern const char *const node_drivers[]; /**< all of them, NULL at the end */

/** What the shape itself misses: "no GPU below 0000:b0:01.0, where 7 others have 1". @return false:
 * nothing, or nothing to tell it by */
bool node_asymmetry(const struct node *n, bool gpus, char *buf, size_t len);

/* ---- the table's functions ------------------------------------------------------------------- */

void node_link_width(struct node_run *c);
void node_link_speed(struct node_run *c);
void node_pci_chain(struct node_run *c);
void node_kernel_limited(struct node_run *c);
void node_rev_ff(struct node_run *c);
void node_aer(struct node_run *c);
void node_mrrs(struct node_run *c);
void node_mps(struct node_run *c);
void node_relaxed_ordering(struct node_run *c);
void node_acs_baremetal(struct node_run *c);
void node_acs_ats_vmhost(struct node_run *c);
void node_iommu_mode(struct node_run *c);
void node_gdr_support(struct node_run *c);
void node_gpu_bar1(struct node_run *c);
void node_gpu_nic_path(struct node_run *c);
void node_gpu_nic_balance(struct node_run *c);
void node_topo_fingerprint(struct node_run *c);
void node_topo_file(struct node_run *c);
void node_numa_dev_node(struct node_run *c);
void node_numa_per_socket(struct node_run *c);
void node_numa_unbalanced(struct node_run *c);
void node_numa_balancing(struct node_run *c);
void node_cpu_governor(struct node_run *c);
void node_cpu_cstates(struct node_run *c);
void node_cpu_clocksource(struct node_run *c);
void node_cpu_affinity(struct node_run *c);
void node_memlock(struct node_run *c);
void node_hugepages(struct node_run *c);
void node_irq_affinity(struct node_run *c);
void node_port_state(struct node_run *c);
void node_port_rate(struct node_run *c);
void node_port_role(struct node_run *c);
void node_fw_uniform(struct node_run *c);
void node_port_counters(struct node_run *c);
void node_hw_counters(struct node_run *c);
void node_pkey_gid(struct node_run *c);
void node_roce_pfc(struct node_run *c);
void node_inv_gpu_count(struct node_run *c);
void node_inv_nic_count(struct node_run *c);
void node_inv_nvlink_count(struct node_run *c);
void node_inv_memory(struct node_run *c);
void node_inv_driver_versions(struct node_run *c);
void node_gpu_ecc(struct node_run *c);
void node_gpu_xid(struct node_run *c);
void node_gpu_remap(struct node_run *c);
void node_gpu_throttle(struct node_run *c);
void node_gpu_power_cap(struct node_run *c);
void node_gpu_fabric_state(struct node_run *c);

#endif
