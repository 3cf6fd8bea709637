// SPDX-License-Identifier: Apache-2.0
/*
 * The table of RoCE checks. The functions are in roce_link.c, roce_qos.c and roce_live.c; what
 * --list and --explain say of them stands here, in one place. N is the priority of RoCE: the
 * profile's, else the one that the traffic classes set on this node map to.
 */
#include "verbs/lossless/checks_priv.h"

#define RECORDED    "recorded"
#define CONSTRUCTED "constructed"
#define LIVE        true
#define PORT        "/sys/class/infiniband/D/ports/P/"
#define DCB         "DCB netlink, IEEE_GET: "
#define HW          "hw_counters over a window with load: "
#define STATS       "ethtool -S over a window with load: "
#define FLAPS       "on mlx5 a new PFC mask takes the link down and up again"
#define DCBNL       "IEEE 802.1Q-2018; Linux include/uapi/linux/dcbnl.h"
#define MLNX_QOS    "mlnx-tools, mlnx_qos"
#define CONFIGFS    "Linux Documentation/ABI/testing/configfs-rdma_cm"
#define ETHTOOL     "Linux drivers/net/ethernet/mellanox/mlx5/core/en_stats.c"
#define HWCOUNTERS  "Linux drivers/infiniband/hw/mlx5/counters.c"

const struct port_check roce_checks[] = {
	{{"R01", "port active", PORT "{state,phys_state}", "pass: ACTIVE and LinkUp; fail: else",
		 "ip link set IF up; ethtool IF; then look at cable and switch port", NULL,
		 "IBTA 1.4, 7.2.7 link states", RECORDED},
		false, roce_r01},
	{{"R02", "link layer", PORT "link_layer", "pass: Ethernet",
		 "mlxconfig -d BDF set LINK_TYPE_P1=2", "takes effect at the next reboot",
		 "Linux Documentation/ABI/stable/sysfs-class-infiniband", RECORDED},
		false, roce_r02},
	{{"R03", "interface of the port", PORT "gid_attrs/ndevs, device/net, parent; operstate",
		 "pass: an interface that is up, or does not tell; fail: it is down; skip: it is in "
		 "another network namespace",
		 "ip link set IF up", NULL, "IBTA A17: RoCE v2 addresses are the interface's",
		 RECORDED},
		false, roce_r03},
	{{"R04", "speed",
		 "ethtool link settings; PCI current_link_{speed,width} and max_link_{speed,width}",
		 "fail: slower than the profile's rate or the port's own best; warn: the PCIe link "
		 "is below its best; pass: as fast as it must be; info: nothing to compare with",
		 "ethtool IF; reseat card and cable; look at the slot in the BIOS",
		 "the link goes down", "Linux Documentation/networking/ethtool-netlink.rst",
		 CONSTRUCTED},
		false, roce_r04},
	{{"R05", "PCIe carries the port", "PCI current_link_{speed,width}; ethtool link settings",
		 "pass: at least 1.08 times the port's speed; fail: less",
		 "move the card to a wider or faster slot", "the node goes down",
		 "PCI Express Base Specification: coding, and headers of 256-byte packets",
		 CONSTRUCTED},
		false, roce_r05},
	{{"R06", "RoCE v2 address", PORT "gids, gid_attrs/types",
		 "pass: a RoCE v2 GID with a routable address; warn: link-local only; fail: none",
		 "ip addr add ADDRESS/LEN dev IF", "gives the interface an address", "IBTA A17",
		 RECORDED},
		false, roce_r06},
	{{"R07", "GID index the same everywhere",
		 PORT "gids, gid_attrs/types; NCCL_IB_GID_INDEX; the other nodes'",
		 "pass: NCCL_IB_GID_INDEX is RoCE v2 here, or index and kind are the other nodes'; "
		 "warn: another index; fail: another kind, RoCE v1, an empty slot",
		 "unset NCCL_IB_GID_INDEX, or give the index of this node", "new jobs only",
		 "NCCL user guide, NCCL_IB_GID_INDEX", CONSTRUCTED},
		false, roce_r07},
	{{"R08", "rdma_cm connects by RoCE v2",
		 "/sys/kernel/config/rdma_cm/D/ports/P/default_roce_mode",
		 "pass: RoCE v2; fail: RoCE v1; skip: the folder does not exist until root makes it",
		 "cma_roce_mode -d D -p P -m 2", "new connections only", CONFIGFS, CONSTRUCTED},
		false, roce_r08},
	{{"R09", "rdma_cm's traffic class", "/sys/kernel/config/rdma_cm/D/ports/P/default_roce_tos",
		 "pass: the profile's DSCP; warn: 0, or a DSCP where a byte belongs; fail: another "
		 "DSCP, or a DSCP where a byte belongs and the map proves it; info: no profile",
		 "cma_roce_tos -d D -t BYTE", "new connections only", CONFIGFS, CONSTRUCTED},
		false, roce_r09},
	{{"R10", "traffic class forced by the driver",
		 "/sys/class/infiniband/D/tc/P/traffic_class (vendor's stack)",
		 "as R09; info: not forced",
		 "echo BYTE > /sys/class/infiniband/D/tc/P/traffic_class", "new connections only",
		 "NVIDIA MLNX_OFED user manual, RoCE: quality of service", CONSTRUCTED},
		false, roce_r10},
	{{"R11", "traffic class of applications",
		 "NCCL_IB_TC, NCCL_IB_FIFO_TC, UCX_IB_TRAFFIC_CLASS: environment, nccl.conf",
		 "as R09, the worst of them; warn: the profile has a DSCP and none is set; info: no "
		 "profile",
		 "export NCCL_IB_TC=BYTE", "new jobs only", "NCCL user guide, NCCL_IB_TC",
		 CONSTRUCTED},
		false, roce_r11},
	{{"R12", "what the port trusts",
		 "/sys/class/net/IF/qos/trust, or " DCB "APP trust table, APP table",
		 "pass: the profile's; without one: dscp, or VLAN tags are used; fail: another, or "
		 "pcp without VLAN tags while a traffic class is set; info: pcp, and no traffic "
		 "class is set",
		 "mlnx_qos -i IF --trust dscp; upstream: dcb app add dev IF dscp-prio 26:3", NULL,
		 "Linux mlx5 en_dcbnl.c: the first DSCP entry switches to DSCP", CONSTRUCTED},
		false, roce_r12},
	{{"R13", "priority of the RoCE DSCP", "qos/dscp2prio, or " DCB "APP table",
		 "pass: the profile's priority; fail: another; info: the profile names none; skip: "
		 "no DSCP is known",
		 "mlnx_qos -i IF --dscp2prio set,DSCP,PRIO; dcb app replace dev IF dscp-prio "
		 "DSCP:PRIO",
		 NULL, MLNX_QOS, CONSTRUCTED},
		false, roce_r13},
	{{"R14", "CNPs outside the lossless class",
		 "cnp_dscp (vendor's stack, cc_params); the map; " DCB "PFC",
		 "pass: a priority without PFC, the profile's; fail: the lossless class, or not the "
		 "profile's",
		 "mlnx_qos -i IF --dscp2prio set,48,6", NULL,
		 "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
		 CONSTRUCTED},
		false, roce_r14},
	{{"R15", "PFC on the RoCE priority", DCB "PFC",
		 "pass: on for N (the profile's pfc set); fail: off; info: N is not known, or the "
		 "profile wants none",
		 "dcb pfc set dev IF prio-pfc all:off N:on; mlnx_qos -i IF --pfc 0,0,0,1,0,0,0,0",
		 FLAPS, DCBNL, CONSTRUCTED},
		false, roce_r15},
	{{"R16", "PFC on no other priority", DCB "PFC",
		 "pass: none but N; warn: one more, or two and N is not known; fail: three or more, "
		 "more than the port can keep, or priority 0",
		 "dcb pfc set dev IF prio-pfc all:off N:on; mlnx_qos -i IF --pfc 0,0,0,1,0,0,0,0",
		 FLAPS, DCBNL, CONSTRUCTED},
		false, roce_r16},
	{{"R17", "no global pause", "ethtool -a",
		 "pass: both directions off; fail: on, with or without PFC",
		 "ethtool -A IF rx off tx off", "the link may flap",
		 "IEEE 802.1Q-2018, 36.1.1: PFC and 802.3 pause exclude each other", CONSTRUCTED},
		false, roce_r17},
	{{"R18", "PFC equal at the switch", DCB "PEER_PFC",
		 "pass: the same priorities; fail: others; skip: the driver does not tell",
		 "set PFC on the switch port to the same priorities", NULL,
		 "IEEE 802.1Qaz, DCBX: PFC TLV", CONSTRUCTED},
		false, roce_r18},
	{{"R19", "one DCBX agent", "DCB netlink, GDCBX; " DCB "ETS willing",
		 "pass: host or firmware; warn: both", "dcb dcbx set dev IF host ieee", NULL,
		 "Linux include/uapi/linux/dcbnl.h, DCB_CAP_DCBX_*", CONSTRUCTED},
		false, roce_r19},
	{{"R20", "RoCE in a class of its own", DCB "ETS",
		 "pass: no other priority in N's class, CNPs strict, shares add up; warn: shared "
		 "class, CNPs not strict; fail: shares are not 100 %, or under the profile's; info: "
		 "N is not known",
		 "mlnx_qos -i IF --prio_tc 0,0,0,3,0,0,6,0 --tsa "
		 "ets,ets,ets,ets,ets,ets,strict,ets --tcbw 50,0,0,50,0,0,0,0",
		 NULL, "IEEE 802.1Qaz", CONSTRUCTED},
		false, roce_r20},
	{{"R21", "receive buffer of the RoCE priority", DCB "BUFFER; MTU; speed; PFC delay",
		 "pass: at least the headroom for rate, MTU and cable and one more frame; warn: the "
		 "driver's own choice; fail: smaller",
		 "mlnx_qos -i IF --cable_len M, or dcb buffer set dev IF", FLAPS,
		 "Linux mlx5 en/port_buffer.c, calculate_xoff", CONSTRUCTED},
		false, roce_r21},
	{{"R22", "marks are answered (ECN, receiver)",
		 "/sys/class/net/IF/ecn/roce_np/enable/N (vendor's stack)",
		 "pass: on; fail: off; info: the profile says pfc-only; skip: upstream has no such "
		 "switch",
		 "echo 1 > /sys/class/net/IF/ecn/roce_np/enable/N", NULL,
		 "NVIDIA MLNX_OFED user manual, explicit congestion notification", CONSTRUCTED},
		false, roce_r22},
	{{"R23", "CNPs are obeyed (ECN, sender)",
		 "/sys/class/net/IF/ecn/roce_rp/enable/N (vendor's stack)", "as R22",
		 "echo 1 > /sys/class/net/IF/ecn/roce_rp/enable/N", NULL,
		 "NVIDIA MLNX_OFED user manual, explicit congestion notification", CONSTRUCTED},
		false, roce_r23},
	{{"R24", "DSCP of CNPs",
		 "/sys/class/net/IF/ecn/roce_np/cnp_dscp, or cc_params/np_cnp_dscp (debugfs, root)",
		 "pass: the profile's; fail: another; info: the profile names none",
		 "echo DSCP > /sys/class/net/IF/ecn/roce_np/cnp_dscp", NULL,
		 "Linux drivers/infiniband/hw/mlx5/cong.c", CONSTRUCTED},
		false, roce_r24},
	{{"R25", "MTU of the interface", "/sys/class/net/IF/mtu; the other nodes'",
		 "pass: the profile's, or at least 4192; warn: less; fail: not the profile's, or "
		 "not the other nodes'",
		 "ip link set IF mtu 9000", "the link may flap; the switch must carry it too",
		 "Linux include/rdma/ib_addr.h, iboe_get_mtu", RECORDED},
		false, roce_r25},
	{{"R26", "RDMA MTU", "ibv_query_port active_mtu, or what the kernel derives",
		 "pass: 4096; warn: less; fail: not the other nodes'", "ip link set IF mtu 9000",
		 "the link may flap; the switch must carry it too",
		 "Linux include/rdma/ib_addr.h, iboe_get_mtu", RECORDED},
		false, roce_r26},
	{{"R27", "MTU of the path",
		 "a packet of the interface's MTU to each host of --drive and back, not to be "
		 "divided",
		 "pass: it comes back, or RDMA at the path's MTU has carried the load where no "
		 "UDP comes through; fail: it does not, and a small one does; skip: no --drive",
		 "set the MTU on every switch of the path", NULL, "RFC 1191", CONSTRUCTED},
		false, roce_r27},
	{{"R28", "priority on the wire",
		 "rx_prioN_packets against what the hosts of --drive sent; on Soft-RoCE a sniffer",
		 "pass: 99 % in the priority that the map says, on Soft-RoCE of the DSCP asked "
		 "for; fail: elsewhere; skip: no --drive, no such counters",
		 "see R09 to R13: who sets the DSCP, and who maps it", NULL, ETHTOOL, CONSTRUCTED},
		LIVE, roce_r28},
	{{"R29", "PFC works under load", STATS "{rx,tx}_prioN_pause, rx_prioN_discards",
		 "pass: pauses and no discards; warn: no pauses: it was not stressed; fail: "
		 "discards; skip: no load, no PFC",
		 "more headroom on the switch; see R21", NULL, ETHTOOL, CONSTRUCTED},
		LIVE, roce_r29},
	{{"R30", "no drops on a lossless priority",
		 STATS "rx_prioN_discards, rx_prioN_buf_discard, rx_discards_phy; on Soft-RoCE "
		       "those of /sys/class/net/IF/statistics",
		 "pass: none; warn: on another priority, on Soft-RoCE any; fail: on a lossless one; "
		 "skip: no load",
		 "see R15, R20 and R21; more headroom on the switch", NULL, ETHTOOL, CONSTRUCTED},
		LIVE, roce_r30},
	{{"R31", "no packet lost",
		 HW "out_of_sequence, packet_seq_err, implied_nak_seq_err, local_ack_timeout_err",
		 "pass: none; warn: at most one in 10^7 packets, on Soft-RoCE timeouts alone; fail: "
		 "more, or any timeout; with "
		 "adaptive-routing = yes only timeouts count; skip: no load",
		 "find the drop: R30 here, then the counters of each switch port on the way", NULL,
		 HWCOUNTERS, RECORDED},
		LIVE, roce_r31},
	{{"R32", "receiver ready", HW "rnr_nak_retry_err, out_of_buffer",
		 "pass: always; warn: not always: the application, not the fabric; skip: no load",
		 "post more receives", NULL, HWCOUNTERS, CONSTRUCTED},
		LIVE, roce_r32},
	{{"R33", "marks, CNPs, obedience",
		 HW "np_ecn_marked_roce_packets, np_cnp_sent, rp_cnp_{handled,ignored}",
		 "pass: marks are answered and CNPs obeyed; warn: no congestion was signalled; "
		 "fail: marks without CNPs, CNPs ignored, or with --drive obeyed by no sender; "
		 "skip: no load",
		 "see R22 to R24; WRED with ECN on the switch's RoCE queue", NULL, HWCOUNTERS,
		 CONSTRUCTED},
		LIVE, roce_r33},
	{{"R34", "time spent paused", STATS "{rx,tx}_prioN_pause_duration",
		 "pass: at most 1 %; warn: at most 10 %; fail: more; says whether told to stop or "
		 "stopping others; skip: no load",
		 "told to stop: look downstream; stopping others: see R35", NULL,
		 ETHTOOL "; the limits are our own", CONSTRUCTED},
		LIVE, roce_r34},
	{{"R35", "this node pauses nobody",
		 STATS "tx_prioN_pause, outbound_pci_stalled_wr, tx_pause_storm_error_events",
		 "pass: never; warn: it did; fail: a storm; skip: no load, no PFC",
		 "iommu=pt on the kernel's command line; huge pages; look at the PCIe slot (R05)",
		 "a reboot", ETHTOOL, CONSTRUCTED},
		LIVE, roce_r35},
	{{"R36", "no pause storm", STATS "tx_pause_storm_{warning,error}_events",
		 "pass: none; warn: warnings; fail: errors; skip: no load",
		 "reset the NIC; a PFC watchdog on the switch contains it",
		 "the node leaves the fabric", ETHTOOL, CONSTRUCTED},
		LIVE, roce_r36},
	{{"R37", "no bit errors",
		 STATS "rx_pcs_symbol_err_phy, rx_crc_errors_phy, rx_corrected_bits_phy",
		 "pass: none, at most 1e-8 corrected; warn: more corrected; fail: symbol or CRC "
		 "errors; skip: no load",
		 "clean or change cable and optic", "the link goes down", ETHTOOL, CONSTRUCTED},
		LIVE, roce_r37},
	{{"R38", "no packet rewritten", HW "rx_icrc_encapsulated",
		 "pass: none; fail: any; skip: no load",
		 "find the box on the way that rewrites UDP port 4791", NULL, HWCOUNTERS,
		 CONSTRUCTED},
		LIVE, roce_r38},
	{{"R39", "relaxed ordering and ACS",
		 "PCI configuration space of the function and the bridges above it (root)",
		 "pass: relaxed ordering is on and no bridge redirects; warn: else; skip: only root "
		 "reads it",
		 "setpci -s BDF CAP_EXP+8.w=0010:0010; ACS off in the BIOS",
		 "isolation between guests of this node",
		 "PCI Express Base Specification, Device Control, ACS; Linux pci_regs.h",
		 CONSTRUCTED},
		false, roce_r39},
	{{"R40", "loss recovery of the NIC",
		 "register ROCE_ACCL, by mlxreg (MFT) or mstreg (mstflint) where one is on PATH; root",
		 "info: what is on and off, nothing is judged; skip: without that tool, without "
		 "root, of a recording, and of other vendors: then always",
		 "mlxreg -d BDF --reg_name ROCE_ACCL --get", NULL,
		 "NVIDIA, Adaptive Retransmission: Parameters Control, ROCE_ACCL", CONSTRUCTED},
		false, roce_r40},
	{{"R41", "flows per connection", "NCCL_IB_QPS_PER_CONNECTION",
		 "info: the probability that two of a node's flows share a path", NULL, NULL,
		 "Linux include/rdma/ib_verbs.h, rdma_calc_flow_label: the UDP source port",
		 CONSTRUCTED},
		false, roce_r41},
	{{"R42", "locked memory", "/proc/self/limits; /proc/self/status",
		 "pass: unlimited; fail: limited; info: not judged where CAP_IPC_LOCK is effective",
		 "echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf; for services "
		 "LimitMEMLOCK=infinity",
		 "new logins only", "Linux mm: RLIMIT_MEMLOCK, ib_umem_get", RECORDED},
		false, roce_r42},
	{.def = {.id = NULL}},
};
