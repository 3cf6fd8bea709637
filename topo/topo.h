/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's topology as plain data: packages, NUMA nodes, the PCI tree, network devices, RDMA
 * devices and GPUs, and how near they are to each other.
 *
 * topo_load() reads the CPU side through hwloc and the I/O side through the sysroot's door, because
 * hwloc 2.9 drops virtual RDMA devices, 32-bit PCI domains, maximum link speeds and ports' states.
 * Everything unknown stays unknown (-1, 0, NULL or "?"): nothing here is guessed. Rates named _bps
 * are bits per second, bandwidths are bytes per second, PCIe speeds are GT/s.
 */
#ifndef TOPO_TOPO_H
#define TOPO_TOPO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/cmd.h"
#include "bench/core/err.h"
#include "bench/core/strbuf.h"
#include "bench/core/sysroot.h"

#define TOPO_SCHEMA  "fabricbench-topology/1"
#define TOPO_UNKNOWN (-1) /**< a NUMA node, a package or an index that is not known */
#define TOPO_NAME    64

/** How far two devices are from each other; nvidia-smi's words, nearest first. */
enum topo_path {
	TOPO_PATH_SELF, /**< "X": the same device */
	TOPO_PATH_NV,   /**< NVLink or xGMI, directly or through an NVSwitch: "NV18" */
	TOPO_PATH_PIX,  /**< at most one PCIe bridge or switch between them */
	TOPO_PATH_PXB,  /**< several PCIe bridges, no host bridge */
	TOPO_PATH_PHB,  /**< a PCIe host bridge (through the CPU) */
	TOPO_PATH_NODE, /**< between host bridges of one NUMA node */
	TOPO_PATH_SYS,  /**< between NUMA nodes */
	TOPO_PATH_UNKNOWN,
};

struct topo_package {
	unsigned os_index;
	char *cpus;  /**< cpulist, "0-15,32-47" */
	char *model; /**< may be NULL */
	unsigned cores, pus;
};

struct topo_numa {
	int os_index;
	int package;     /**< index in packages[], or TOPO_UNKNOWN: none, or spread over several */
	char *cpus;      /**< cpulist; "" for a node without CPUs */
	uint64_t memory; /**< bytes; 0: none or unknown */
	char *kind;      /**< hwloc's MemoryTier or "GPU memory", NULL when the tree does not say */
};

/** A PCIe link as trained now and as the device could. 0: unknown ("Unknown", 255, no file). */
struct topo_link {
	double now_gts, max_gts;
	unsigned now_width, max_width;
	/** Bytes/s each way, of files that tell neither speed nor width (hwloc's XML; of a GPU
	 * whose driver hwloc asked, it is the most it could). 0: unknown, or told by the fields
	 * above. */
	double bandwidth;
};

struct topo_pci {
	char bdf[24];        /**< "0000:3b:00.0"; domains may be wider than 16 bits */
	uint32_t class_code; /**< 24 bits: base, sub, interface */
	uint16_t vendor, device;
	char driver[TOPO_NAME]; /**< "" : not bound */
	int parent;             /**< index in pci[], TOPO_UNKNOWN: on a root bus, or not recorded */
	char root[24];          /**< root bus, "0000:00"; "" when the tree does not say */
	int numa;               /**< NUMA node (OS index) or TOPO_UNKNOWN */
	char *cpus;             /**< local cpulist, NULL: unknown */
	bool bridge;
	int physfn; /**< index of the physical function of a VF, else TOPO_UNKNOWN */
	struct topo_link link;
};

/** A network interface. */
struct topo_nic {
	char name[TOPO_NAME];
	int pci; /**< index in pci[] or TOPO_UNKNOWN */
	int numa;
	char *cpus;
	bool is_virtual;   /**< no hardware of its own: lo, bridges, VLANs, bonds */
	unsigned arphrd;   /**< 1 Ethernet, 32 InfiniBand, 772 loopback; 0 unknown */
	uint64_t rate_bps; /**< 0: unknown or down */
	int mtu;           /**< 0: unknown */
	char state[16];    /**< operstate: "up", "down", "" */
	char driver[TOPO_NAME];
	int dev_port; /**< 0-based port of a multi-port function */
};

struct topo_rdma_port {
	unsigned num;
	unsigned state;      /**< 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE; 0 unknown */
	char state_name[16]; /**< "ACTIVE" */
	char phys_state[24];
	char link_layer[16]; /**< "InfiniBand", "Ethernet" */
	char rate[48];       /**< the kernel's text, "400 Gb/sec (4X NDR)" */
	uint64_t rate_bps;
	char netdev[TOPO_NAME]; /**< "" : none */
};

struct topo_rdma {
	char name[TOPO_NAME];
	char netdev[TOPO_NAME]; /**< first port's netdev, or the parent of a software device */
	int nic;                /**< index of netdev in nics[], or TOPO_UNKNOWN */
	int pci;                /**< its own function, or its parent netdev's */
	int numa;
	char *cpus;
	bool soft;          /**< no hardware: rxe, siw */
	unsigned node_type; /**< 1 CA, 4 RNIC, 5 usNIC, 7 unspecified (EFA); 0 unknown */
	char fw[48], board[48];
	char driver[TOPO_NAME];
	struct topo_rdma_port *ports;
	size_t n_ports;
};

struct topo_gpu {
	char name[16]; /**< "GPU0": by PCI address, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts */
	int pci;
	char *model; /**< from the NVIDIA driver's /proc files; may be NULL */
};

enum topo_fast_kind { TOPO_FAST_NVLINK, TOPO_FAST_XGMI, TOPO_FAST_C2C };
/** The links of one GPU to one peer beside PCIe. Each end has its own entry where the source says
 * so. */
struct topo_fast {
	enum topo_fast_kind kind;
	int gpu;  /**< index in gpus[] */
	int peer; /**< index in gpus[]; TOPO_UNKNOWN: a switch, a CPU, or not in the model */
	char peer_bdf[24];   /**< as the source names it; "" : not named */
	uint32_t peer_class; /**< PCI class of the peer, 0: unknown; 0x068000 an NVSwitch */
	unsigned count;      /**< links */
	double bandwidth;    /**< of all of them, bytes/s each way; 0: unknown */
};

enum topo_source {
	TOPO_FROM_LIVE,
	TOPO_FROM_SYSROOT,
	TOPO_FROM_HWLOC_XML,
	TOPO_FROM_NCCL_XML,
	TOPO_FROM_SMI
};

/** What a file says of a part that the model has no field for: kept, so that an export can say it
 * again. */
enum topo_part {
	TOPO_PART_SYSTEM,
	TOPO_PART_NUMA,
	TOPO_PART_PCI,
	TOPO_PART_NIC,
	TOPO_PART_RDMA,
	TOPO_PART_GPU,
	TOPO_PART_FAST
};
struct topo_extra {
	enum topo_part part;
	int index; /**< in the part's array; TOPO_UNKNOWN of NUMA: what has no known node */
	/** Attribute's name; "nic/x": x of its child element that has no part of its own, "nic/": a
	 * whole foreign element in that child; NULL: `value` is a whole foreign element. */
	char *name;
	char *value; /**< its text, or the element as XML */
};

struct hwloc_topology;

/** Owned by the caller of topo_load(); free with topo_free(). Arrays are in OS order. */
struct topo {
	bool live;
	bool virtual_machine; /**< the CPU says "hypervisor": PCI trees of guests hide switches */
	struct topo_package *packages;
	size_t n_packages;
	struct topo_numa *numa;
	size_t n_numa;
	unsigned *distance; /**< n_numa x n_numa SLIT values, [from * n_numa + to]; NULL: unknown */
	struct topo_pci *pci;
	size_t n_pci;
	struct topo_nic *nics;
	size_t n_nics;
	struct topo_rdma *rdma;
	size_t n_rdma;
	struct topo_gpu *gpus;
	size_t n_gpus;
	unsigned cores, pus;
	char **warnings; /**< what the tree did not say, or said wrongly */
	size_t n_warnings;
	enum topo_source source;
	struct topo_fast *fast;
	size_t n_fast;
	/** What the source itself calls the path between two devices, [a * n + b] in the order of
	 * topo_devices(), n of them then; NULL: told from the tree. TOPO_PATH_NV takes its count
	 * from fast[]. */
	enum topo_path *given;
	size_t n_given;
	/** Access from node to node as firmware (HMAT) or memory attributes tell: n_numa x n_numa,
	 * [initiator * n_numa + target], NaN where not told; NULL: none. ns and bytes/s. */
	double *latency_ns, *bandwidth;
	struct topo_extra *extra;
	size_t n_extra;
	struct hwloc_topology *hwloc; /**< for exports; NULL when the tree records no CPUs */
	char *allowed; /**< live: cpulist the loading thread could run on; may be NULL */
};

/**
 * Read the machine behind `r`. A recorded tree is read with hwloc's environment variables set for
 * the duration of the call: not to be called while other threads run. The live machine may be read
 * from any thread (with /sys mounted).
 * @return 0; -ENOENT: the tree records no machine (exit 2); -EFBIG: more devices or CPUs than any
 * machine has (exit 2); -EXDEV: the tree leads out of itself (exit 2); -ENOMEM; hwloc's errno (exit
 * 3)
 */
int topo_load(const struct fb_sysroot *r, struct topo **out, struct fb_err *e) FB_MUST_CHECK;
/**
 * The same model from a file. Of each: -ENOENT and the rest of open(2) (exit 2); -EINVAL: not such
 * a file, with line and cause (exit 2); -ENOTSUP: a kind refused by name (hwloc XML v3, an NCCL
 * GRAPH file), with what to do instead (exit 2); -EFBIG: more devices than any machine has, or a
 * file over 64 MiB (hwloc's XML, nvidia-smi's text: 16) (exit 2); -ENOMEM (exit 3). NICs that the
 * file names by their PCI function alone become nics[] named by their address.
 */
/** hwloc tries the file in a child process first: not to be called while other threads run. */
int topo_load_hwloc_xml(const char *path, struct topo **out, struct fb_err *e) FB_MUST_CHECK;
int topo_load_nccl_xml(const char *path, struct topo **out, struct fb_err *e) FB_MUST_CHECK;
/** `nvidia-smi topo -m` or `-mp`, as printed or as pasted. */
int topo_load_smi(const char *path, struct topo **out, struct fb_err *e) FB_MUST_CHECK;
void topo_free(struct topo *t);

/** By name; NULL when there is none. The locality is in ->numa and ->cpus. */
const struct topo_rdma *topo_find_rdma(const struct topo *t, const char *name);
const struct topo_nic *topo_find_nic(const struct topo *t, const char *name);
/** By OS index. */
const struct topo_numa *topo_find_numa(const struct topo *t, int os_index);

/* ---- devices as rows of the matrix --------------------------------------------------------- */

enum topo_dev_type { TOPO_DEV_GPU, TOPO_DEV_RDMA, TOPO_DEV_NETDEV };

/** A GPU, an RDMA device, or a physical network interface that no RDMA device stands on. */
struct topo_dev {
	enum topo_dev_type type;
	size_t index;     /**< in gpus[], rdma[] or nics[] */
	const char *name; /**< borrowed */
	int pci, numa;
	const char *cpus; /**< borrowed; may be NULL */
};
/** All of them: GPUs, RDMA devices, interfaces. Caller frees *devs. @return 0 or -ENOMEM */
int topo_devices(const struct topo *t, struct topo_dev **devs, size_t *n) FB_MUST_CHECK;
/** "infiniband", "roce", "iwarp", "soft-roce", "soft-iwarp", "efa", "ethernet", "unknown" */
const char *topo_dev_kind(const struct topo *t, const struct topo_dev *d);

/**
 * Path type of two devices from the PCI tree and the NUMA nodes. Definitions: nvidia-smi topo -m's
 * legend. Devices below one switch are PIX; with a switch below a switch PXB. UNKNOWN when the tree
 * does not record enough.
 */
enum topo_path topo_path(const struct topo *t, const struct topo_dev *a, const struct topo_dev *b);
const char *topo_path_name(enum topo_path p);
/** NVLink or xGMI links between two GPUs (indices in gpus[]); through NVSwitches the lesser of both
 * ends' links to them. 0: none known. */
unsigned topo_fast_links(const struct topo *t, size_t a, size_t b);
/**
 * Weakest PCIe hop between two devices, bytes/s each way, after line coding (8b/10b to 5 GT/s,
 * 128b/130b to 32, 242/256 FLITs at 64) and before packet overhead. GPUs lower their link when
 * idle, so a GPU's own link counts at its maximum, all others as trained now. The link between
 * sockets is not in it. 0: unknown.
 */
double topo_path_bandwidth(
	const struct topo *t, const struct topo_dev *a, const struct topo_dev *b);
/** Bytes/s of one PCIe link each way; 0 when either is 0. */
double topo_link_bandwidth(double gts, unsigned width);
/**
 * True when a link runs below what the device and the port above it can both do. Told by
 * the function at the lower end: false for root and downstream ports.
 */
bool topo_link_downtrained(const struct topo *t, const struct topo_pci *p);
/** "NVIDIA", "Mellanox", ... or NULL. */
const char *topo_vendor_name(uint16_t vendor);
/** "Ethernet", "3D controller", ... or "device". */
const char *topo_class_name(uint32_t class_code);

/* ---- output --------------------------------------------------------------------------------- */

/**
 * The topology object, schema TOPO_SCHEMA: packages, numa_nodes[] {..., access[] {from,
 * latency_ns, bandwidth}}, source, gpus[] {name, bdf,
 * numa, cpus, nics[] {name, path}} nearest first, nics[] {name, bdf, numa, kind, rate_bps, link,
 * rail}, rdma_devices[], netdevs[], pci[], paths[] {a, b, type, bandwidth}, plan[], ambiguous[],
 * warnings[]. Unknown values are null. The host's name is in "host" unless anonymous or recorded.
 * @return new reference, NULL without memory
 */
json_t *topo_to_json(const struct topo *t, bool anonymous);
/** A picture of the node, self-contained SVG. */
void topo_svg(const struct topo *t, struct fb_strbuf *out);
/** Text: the tree; with all, every PCI device. */
void topo_tree(const struct topo *t, bool all, struct fb_strbuf *out);
/** Text: the matrix with its legend. */
void topo_matrix(const struct topo *t, struct fb_strbuf *out);
/**
 * hwloc's XML (version 2 format). anonymous: host name, addresses, GUIDs and serial numbers are
 * overwritten with 'x' in the topology itself.
 * @return 0; -ENODATA: the tree records no CPUs (exit 3); hwloc's errno
 */
int topo_hwloc_xml(
	struct topo *t, bool anonymous, struct fb_strbuf *out, struct fb_err *e) FB_MUST_CHECK;

/**
 * NCCL's topology XML, for NCCL_TOPO_FILE: every device of the matrix with the switches above it,
 * as NCCL itself would write them (nccl_xml_out.c says from which facts); from an NCCL file, all
 * that the file held. Link speeds are the best of both ends, not what is trained now. anonymous:
 * without GUIDs, host hashes and foreign elements.
 * @return 0; -ENODATA: the source tells no PCI tree (exit 3); -ENOMEM
 */
int topo_nccl_xml(const struct topo *t, bool anonymous, struct fb_strbuf *out,
	struct fb_err *e) FB_MUST_CHECK;

/**
 * Is there RDMA hardware in this machine? A PCI function of class 0x0207 (InfiniBand), or an
 * Ethernet function of a vendor and device known to do RDMA.
 * @param why receives the function and its driver's state, one line
 * @return 0 none; 1 with an RDMA device bound to it; 2 function present but no RDMA device;
 * -errno when the PCI bus cannot be listed for another reason than that there is none
 */
int topo_rdma_hardware(const struct fb_sysroot *r, char *why, size_t len);

extern const struct fb_cmd topo_cmd;

#endif
