/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the lossless checks look at, read once per RDMA port: from the live machine or
 * from a recorded tree, through the same doors (sysroot.h, dcb.h, ethtool.h). A fact is known,
 * absent (the kernel says that it is not there), hidden (privileges or namespace), or unreadable;
 * none of the last three is ever taken for a value.
 */
#ifndef VERBS_LOSSLESS_FACTS_H
#define VERBS_LOSSLESS_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/sysroot.h"

enum fact_state {
	FACT_UNREAD,
	FACT_KNOWN,
	FACT_ABSENT, /**< not there: this driver, kernel or stack does not have it */
	FACT_HIDDEN, /**< it may be there, but not for us: privileges, namespace, not recorded */
	FACT_BROKEN  /**< an answer that cannot be right: `why` */
};
struct fact {
	enum fact_state state;
	char read[160]; /**< path or call */
	char why[128];  /**< of all but known */
};
struct fact_int {
	struct fact f;
	int64_t v;
};
struct fact_text {
	struct fact f;
	char v[96];
};
static inline bool fact_known(const struct fact *f)
{
	return f->state == FACT_KNOWN;
}

/* ---- DCB (dcb.h parses the netlink answer) --------------------------------------------------- */

#define DCB_MAX_APP 128
struct dcb_app_entry {
	uint8_t selector, priority; /**< selector 1 ethertype, 2 TCP, 3 UDP, 4 both, 5 DSCP */
	uint16_t protocol;
};
struct dcb_ets {
	uint8_t willing, cap, cbs;
	uint8_t tc_tx_bw[8], tsa[8], prio_tc[8]; /**< tsa 0 strict, 1 CBS, 2 ETS, 255 vendor */
};
struct dcb_pfc {
	uint8_t cap, en, mbc; /**< en: a bit for each priority */
	uint16_t delay;
	uint64_t sent[8], received[8]; /**< PFC frames */
};
struct dcb_buffer {
	uint8_t prio2buffer[8];
	uint32_t size[8], total;
};
struct dcb_facts {
	struct fact ieee, ets_f, pfc_f, app_f, buffer_f, dcbx_f, peer_pfc_f, peer_ets_f, peer_app_f,
		trust_f;
	struct dcb_ets ets, peer_ets;
	struct dcb_pfc pfc, peer_pfc;
	struct dcb_app_entry app[DCB_MAX_APP], peer_app[DCB_MAX_APP];
	int apps, peer_apps;
	struct dcb_buffer buffer;
	uint8_t dcbx;     /**< 1 host, 2 firmware (LLD), 4 CEE, 8 IEEE, 16 static */
	uint8_t trust[8]; /**< selectors in order of trust (Linux 6.3 and later) */
	int trusts;
};

/* ---- a port ---------------------------------------------------------------------------------- */

#define FACTS_MAX_GIDS  256
#define FACTS_MAX_PKEYS 128
struct gid_fact {
	int index;
	bool v2; /**< RoCE v2; else RoCE v1 or IB */
	uint8_t raw[16];
	char netdev[32]; /**< empty: not told */
	bool ipv4, link_local;
};
struct port_facts {
	char device[64];
	int port;
	char driver[32];   /**< kernel driver of the device: "mlx5_core", "rdma_rxe" */
	char family[16];   /**< "mlx5", "bnxt_re", "irdma", "efa", "rxe", "siw", ... */
	char bdf[16];      /**< PCI address; empty for software devices */
	char netdev[32];   /**< empty: none, or not visible */
	bool ethernet;     /**< link layer */
	bool vendor_stack; /**< MLNX_OFED or DOCA files are there */
	struct fact netdev_f;
	struct fact_text state, phys_state, rate, link_layer, fw, board, netdev_state;
	struct fact_int netdev_mtu, active_mtu;      /**< bytes */
	struct fact_int speed_mbps, max_speed_mbps;  /**< ethtool; the port's own best */
	struct fact_int rate_mbps, width;            /**< of the RDMA port: lanes */
	struct fact_text pcie_speed, pcie_max_speed; /**< "16.0 GT/s PCIe" */
	struct fact_int pcie_width, pcie_max_width;
	struct fact_int lid, sm_lid, sm_sl;
	struct fact gids_f, pkeys_f;
	struct gid_fact gid[FACTS_MAX_GIDS];
	int gids;
	uint16_t pkey[FACTS_MAX_PKEYS];
	int pkeys;
	struct dcb_facts dcb;
	/* the vendor's stack (sysfs), or upstream's debugfs */
	struct fact_text trust; /**< "dscp" or "pcp" */
	struct fact dscp2prio_f;
	int8_t dscp2prio[64]; /**< -1: not mapped */
	struct fact np_enable_f, rp_enable_f;
	bool np_enable[8], rp_enable[8];
	struct fact_int cnp_dscp, cnp_prio;
	struct fact_int traffic_class; /**< tc/P/traffic_class, the byte; -1: not set */
	struct fact_text cma_mode;
	struct fact_int cma_tos;
	struct fact_int pause_rx, pause_tx, pause_autoneg; /**< global pause, 0 or 1 */
	struct fact stats_f, counters_f;
	json_t *stats;    /**< ethtool -S: name -> value */
	json_t *counters; /**< hw_counters and counters of the port */
	struct fact_int symbol_ber_ok;
	struct fact_int relaxed_ordering; /**< PCIe Device Control: 1 enabled */
	struct fact_text acs_redirect;    /**< bridges above that redirect; empty: none does */
	struct fact_text loss_recovery;   /**< of ROCE_ACCL, by the vendor's tool where it is */
	bool iwarp; /**< node_type is RNIC: RDMA over TCP, neither RoCE nor InfiniBand */
};

/** What does not belong to a port. */
struct node_facts {
	char host[64];
	struct fact env_f;
	json_t *env; /**< NCCL_*, UCX_* that bear on RoCE, nccl.conf's too: name -> text */
	struct fact_int memlock;   /**< bytes; INT64_MAX: unlimited */
	struct fact_int ipc_lock;  /**< CAP_IPC_LOCK effective: 1 */
	struct fact_text recorded; /**< when the tree was recorded; ABSENT on the live machine */
	struct port_facts *port;
	int ports;
	json_t *env_source; /**< of each name in env: "environment", "/etc/nccl.conf", ... */
};

/**
 * Read all ports (device NULL) or those of one device. Never fails for what cannot be read: that is
 * a fact's state. With `live` beside a recorded tree, files come from the tree where root recorded
 * them and an ordinary user cannot read them.
 * @return 0; -ENODEV: the device does not exist (the existing ones are named, exit 2); -ENOMEM
 */
int facts_read(const struct fb_sysroot *r, const char *device, struct node_facts *n,
	struct fb_err *e) FB_MUST_CHECK;
void facts_free(struct node_facts *n);

/** Priority that packets of a DSCP get here, and how that is known; -1: not known (see *why). By
 * the vendor's dscp2prio, else the APP table when it has DSCP entries, else the driver's documented
 * default. */
int facts_dscp_priority(const struct port_facts *p, int dscp, const char **how, const char **why);

#endif
