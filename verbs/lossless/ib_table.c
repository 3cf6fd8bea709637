// SPDX-License-Identifier: Apache-2.0
/*
 * The table of InfiniBand checks. The functions are in ib.c; what --list and --explain say of them
 * stands here, in one place.
 */
#include "verbs/lossless/checks_priv.h"

#define RECORDED    "recorded"
#define CONSTRUCTED "constructed"
#define THRESHOLDS  "infiniband-diags, etc/error_thresholds"
#define LIVE        true

const struct port_check ib_checks[] = {
	{{"I01", "port active", "/sys/class/infiniband/D/ports/P/{state,phys_state}",
		 "pass: ACTIVE and LinkUp; warn: ARMED; fail: INIT (no subnet manager), DOWN",
		 "sminfo; start opensm or the switch's subnet manager; look at the cable", NULL,
		 "IBTA 1.4, 7.2.7 link states", RECORDED},
		false, ib_i01},
	{{"I02", "LID and subnet manager", "/sys/class/infiniband/D/ports/P/{lid,sm_lid}",
		 "pass: both are unicast LIDs; fail: 0 or 0xffff: no subnet manager has been here",
		 "sminfo; start opensm or the switch's subnet manager", NULL,
		 "IBTA 1.4, 4.1.3 local identifiers", CONSTRUCTED},
		false, ib_i02},
	{{"I03", "rate",
		 "/sys/class/infiniband/D/ports/P/rate; the profile's rate, or the other nodes'",
		 "pass: as fast as it must be; warn: SDR, or a speed that the kernel has no name "
		 "for; fail: slower than the profile or the other nodes; info: nothing to compare "
		 "with",
		 "reseat the cable; ibdiagnet --ls 100 --lw 4x", "the link goes down",
		 "Linux drivers/infiniband/core/sysfs.c, rate_show", CONSTRUCTED},
		false, ib_i03},
	{{"I04", "link width", "/sys/class/infiniband/D/ports/P/rate",
		 "pass: 4X or more; info: 2X at HDR or NDR (HDR100, NDR200); fail: fewer lanes",
		 "reseat the cable", "the link goes down", "IBTA 1.4, LinkWidthActive",
		 CONSTRUCTED},
		false, ib_i04},
	{{"I05", "link went down or recovered", "counters/{link_downed,link_error_recovery}",
		 "fail: it grew in the window; warn: over 10 since the last reset, or saturated (8 "
		 "bits); pass: else",
		 "clean or change the cable", "the link goes down", THRESHOLDS, CONSTRUCTED},
		false, ib_i05},
	{{"I06", "symbol and receive errors",
		 "counters/{symbol_error,port_rcv_errors,local_link_integrity_errors}",
		 "fail: it grew in the window; warn: over 10 since the last reset, or saturated "
		 "(16, 16, 4 bits); pass: else",
		 "clean or change the cable", "the link goes down", THRESHOLDS, CONSTRUCTED},
		false, ib_i06},
	{{"I07", "waiting for credits", "counters/port_xmit_wait over a window with load",
		 "pass: at most 1 % of the time; warn: at most 10 %; fail: more; skip: no load",
		 "look for the slow receiver; more paths; adaptive routing", NULL,
		 "IBTA 1.4, PortXmitWait; the limits are our own", CONSTRUCTED},
		LIVE, ib_i07},
	{{"I08", "discards", "counters/{port_xmit_discards,VL15_dropped} over a window with load",
		 "pass: none; warn: VL15 only; fail: data packets; skip: no load",
		 "look for the port that holds packets longer than HOQLife", NULL,
		 "IBTA 1.4, PortXmitDiscards", CONSTRUCTED},
		LIVE, ib_i08},
	{{"I09", "partition", "/sys/class/infiniband/D/ports/P/pkeys",
		 "pass: full member of the profile's partition, or of the default one; warn: "
		 "limited member; fail: not a member",
		 "the subnet manager's partitions.conf: ALL=full, or this port's GUID", NULL,
		 "IBTA 1.4, 10.9 partitioning", CONSTRUCTED},
		false, ib_i09},
	{{"I10", "MTU and service level", "ibv_query_port active_mtu; NCCL_IB_SL",
		 "pass: 4096, and the profile's service level is used; warn: else",
		 "export NCCL_IB_SL=N; the subnet manager sets the MTU", "new jobs only",
		 "NVIDIA, adaptive routing by service level", CONSTRUCTED},
		false, ib_i10},
	{{"I11", "buffer overruns and partition violations",
		 "counters/{excessive_buffer_overrun_errors,port_rcv_constraint_errors,"
		 "port_xmit_constraint_errors}",
		 "fail: it grew in the window; warn: any since the last reset, or saturated; pass: "
		 "none",
		 "the subnet manager's partitions.conf; perfquery -R to begin anew",
		 "loses the old counts", THRESHOLDS, CONSTRUCTED},
		false, ib_i11},
	{{"I12", "transport errors",
		 "hw_counters/{local_ack_timeout_err,packet_seq_err,out_of_sequence} over a window "
		 "with load",
		 "pass: no timeouts; warn: gaps, where the profile says adaptive-routing = no; "
		 "fail: timeouts; skip: no load",
		 "look at I05, I06 and I08 of the way", NULL,
		 "Linux drivers/infiniband/hw/mlx5/counters.c", CONSTRUCTED},
		LIVE, ib_i12},
	{{"I13", "firmware equal on all nodes", "/sys/class/infiniband/D/{fw_ver,board_id}",
		 "pass: equal on equal boards; warn: another node's differs; info: only one node "
		 "was looked at",
		 "mlxfwmanager --online -u", "the NIC restarts",
		 "NVIDIA firmware release notes: mixed versions are not tested", CONSTRUCTED},
		false, ib_i13},
	{.def = {.id = NULL}},
};
