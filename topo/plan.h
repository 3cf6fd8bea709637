/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a node: which NICs each GPU's rank uses, on which rail each NIC is, and on which
 * cores the rank runs. A plan is made from the model alone. What the tree does not tell is
 * "ambiguous", never a guess; what it tells and is bad (no local NIC) is a note.
 */
#ifndef TOPO_PLAN_H
#define TOPO_PLAN_H

#include "bench/core/opt.h"
#include "topo/topo.h"

#define TOPO_PLAN_MAX_GPUS 64
#define TOPO_PLAN_MAX_NICS 256

enum topo_nic_role {
	TOPO_NIC_EXCLUDED, /**< not for training traffic; `why` says so */
	TOPO_NIC_SPARE,    /**< could carry it, but every GPU has nearer ones */
	TOPO_NIC_COMPUTE,  /**< some GPU's NIC */
};

struct topo_plan_nic {
	size_t dev; /**< index in devs[] */
	enum topo_nic_role role;
	int rail; /**< TOPO_UNKNOWN: on none, or the tree does not tell */
	char why[160];
};

struct topo_plan_gpu {
	size_t dev;    /**< index in devs[]; the GPU's index in gpus[] is its place here */
	size_t *nics;  /**< indices in nics[], in order; of an ambiguous GPU: those that tie */
	size_t n_nics; /**< 0: no NIC at all */
	bool ambiguous;
	enum topo_path path; /**< the farthest of its NICs */
	char why[200];       /**< why it is ambiguous */
	int numa;            /**< its memory; TOPO_UNKNOWN */
	char *cpus;          /**< its rank's CPUs (OS numbers); NULL: unknown */
	char *cores;         /**< the same as hwloc's logical cores; NULL: cores are not recorded */
	unsigned n_cores;    /**< 0: cores are not recorded */
};

/** Cores that no rank gets: interrupts of the NICs beside them go there. */
struct topo_plan_irq {
	int numa;
	char *cpus;
	unsigned n_cores, n_nics;
};

struct topo_plan {
	struct topo_dev *devs;
	size_t n_devs;
	struct topo_plan_gpu *gpus;
	size_t n_gpus;
	struct topo_plan_nic *nics;
	size_t n_nics;
	struct topo_plan_irq *irq;
	size_t n_irq;
	bool sockets; /**< no RDMA NIC: the NICs are plain interfaces */
	unsigned nics_per_gpu;
	char **notes;
	size_t n_notes;
};

/**
 * Make the plan. NICs are matched to GPUs at the least total of path rank x 10 + NUMA distance / 10
 * + 3 for each GPU already on the NIC; a path's rank is NVLink-C2C or PIX 1, PXB 2, PHB 4, NODE 5,
 * SYS 8. floor(N/G) NICs for each GPU where there are as many NICs as GPUs, else ceil(G/N) GPUs for
 * each NIC. Among equals the lower GPU gets the lower NIC.
 * @return 0, or -ENOMEM with *e; free with topo_plan_free()
 */
int topo_plan_make(const struct topo *t, struct topo_plan **out, struct fb_err *e) FB_MUST_CHECK;
void topo_plan_free(struct topo_plan *p);

/** "=mlx5_0,mlx5_1:1": the value of NCCL_IB_HCA for exactly the plan's NICs, or of
 * NCCL_SOCKET_IFNAME where p->sockets. A device with several ports is named by its active one.
 * Nothing when there is none or a GPU is ambiguous. */
void topo_plan_hca(const struct topo *t, const struct topo_plan *p, struct fb_strbuf *out);
/** For people: who gets what and why, notes, and lines to paste. */
void topo_plan_text(const struct topo *t, const struct topo_plan *p, struct fb_strbuf *out);
/**
 * Open MPI's rankfile (logical cores), one rank a GPU, for nodes alike. Names, because Open MPI 4.1
 * takes relative hosts ("+n0") from a resource manager's allocation only.
 * @param hosts their names; none: localhost alone
 * @return 0; -ENODATA with *e when a GPU's cores are not known (exit 3)
 */
int topo_plan_rankfile(const struct topo_plan *p, const struct fb_opt_list *hosts,
	struct fb_strbuf *out, struct fb_err *e) FB_MUST_CHECK;
/** Sets plan[], ambiguous[], plan_notes[], irq_cpus[], nccl_ib_hca in the topology object. */
void topo_plan_json(const struct topo *t, const struct topo_plan *p, json_t *doc);
/** Of nics[] in devs[]' order; NULL when d is no NIC of the plan. */
const struct topo_plan_nic *topo_plan_nic(const struct topo_plan *p, size_t dev);
const char *topo_nic_role_name(enum topo_nic_role role);

/* ---- steps of topo_plan_make() --------------------------------------------------------------- */

/** Append a line for people; left out without memory. */
void topo_plan_note(struct topo_plan *p, const char *fmt, ...) FB_PRINTF(2, 3);
/** Fill nics[]: SPARE those that can carry training traffic, EXCLUDED the others with why. */
void topo_plan_candidates(const struct topo *t, struct topo_plan *p);
/**
 * Matching at the least total cost: each of n_gpus takes `need` NICs, a NIC takes at most `cap`
 * GPUs, its second GPU costs `load` more, its third twice that. cost[g * n_nics + n] >= 0.
 * @param match n_gpus x n_nics, receives true for each pair
 * @return 0 or -ENOMEM
 */
int topo_plan_match(const int64_t *cost, size_t n_gpus, size_t n_nics, unsigned need, unsigned cap,
	int64_t load, bool *match) FB_MUST_CHECK;
/** Fill each GPU's cores and CPUs, and irq[]. @return 0 or -ENOMEM */
int topo_plan_cpus(const struct topo *t, struct topo_plan *p) FB_MUST_CHECK;

#endif
