// SPDX-License-Identifier: Apache-2.0
/*
 * The table of switch checks, what --list and --explain say of them, and running it port by port.
 * The functions are in switch_checks.c and switch_queue.c.
 */
#include <stdio.h>
#include <string.h>

#include "bench/core/result.h"
#include "verbs/lossless/switch_priv.h"

#define CONSTRUCTED "constructed"
#define BUFFERS     "buffers are set up anew: packets may be lost for a moment"
#define QOS_CONFIG  "SONiC sonic-buildimage, files/build_templates/qos_config.j2"
#define CUMULUS     "NVIDIA Cumulus Linux user guide, Quality of Service"

const struct switch_check switch_checks[] = {
	{{"S01", "a DSCP map on each port", "PORT_QOS_MAP, DSCP_TO_TC_MAP; qos|mapping",
		 "pass: the port is bound to a map that exists (SONiC: its own or the global one; "
		 "NVIDIA: trust l3 or both); fail: to none",
		 "sonic-db-cli CONFIG_DB hset 'PORT_QOS_MAP|PORT' dscp_to_tc_map MAP; nv set qos "
		 "mapping default-global trust both",
		 NULL, QOS_CONFIG, CONSTRUCTED},
		switch_s01},
	{{"S02", "the RoCE DSCP is lossless all the way",
		 "PORT_QOS_MAP, DSCP_TO_TC_MAP, TC_TO_QUEUE_MAP, TC_TO_PRIORITY_GROUP_MAP, "
		 "MAP_PFC_PRIORITY_TO_QUEUE, PFC_PRIORITY_TO_PRIORITY_GROUP_MAP; qos|mapping, "
		 "egress-queue-mapping, traffic-pool, pfc",
		 "pass: each DSCP of the profile leads to a queue and a priority group with the "
		 "same PFC priority, the profile's, and PFC is on for the profile's set and no "
		 "more; fail: not so, or PFC goes one way. Without a profile: what has PFC has it "
		 "in queue and group; warn: PFC nowhere, or where no DSCP leads",
		 "sonic-db-cli CONFIG_DB hset 'DSCP_TO_TC_MAP|MAP' DSCP CLASS; nv set qos mapping "
		 "default-global dscp DSCP switch-priority PRIO",
		 "all ports with this map", QOS_CONFIG "; " CUMULUS, CONSTRUCTED},
		switch_s02},
	{{"S03", "PFC equal at both ends of the cable",
		 "PORT_QOS_MAP, DEVICE_NEIGHBOR; qos|pfc, interface|PORT|lldp; the other files; "
		 "documents and trees of --others",
		 "pass: the same priorities; fail: others; warn: the other end names another "
		 "neighbour; skip: it is not among what was given",
		 "config interface pfc priority PORT PRIO on; nv set qos pfc default-global "
		 "switch-priority PRIO",
		 BUFFERS, "IEEE 802.1Q-2018, clause 36: PFC is an agreement of two ends",
		 CONSTRUCTED},
		switch_s03},
	{{"S04", "lossless class alone in its group and queue",
		 "TC_TO_PRIORITY_GROUP_MAP, TC_TO_QUEUE_MAP; qos|traffic-pool, egress-queue-mapping",
		 "pass: no other class with a DSCP is there; fail: a lossy one is; warn: another "
		 "lossless one",
		 "sonic-db-cli CONFIG_DB hset 'TC_TO_PRIORITY_GROUP_MAP|MAP' CLASS 0; nv set qos "
		 "egress-queue-mapping default-global switch-priority PRIO traffic-class 0",
		 BUFFERS, "IEEE 802.1Q-2018, clause 36", CONSTRUCTED},
		switch_s04},
	{{"S05", "headroom for rate, MTU and cable",
		 "PORT, CABLE_LENGTH, BUFFER_PG, BUFFER_PROFILE, BUFFER_POOL; qos|pfc",
		 "pass: xoff is at least (301 + 2.16 m) Gb/s + 2.72 MTU, or it is SONiC's own "
		 "profile for this speed and cable and at least what is on the wire; fail: less "
		 "than is on the wire (a frame at each end, and the cable both ways), a profile "
		 "for another speed or a shorter cable, a cable shorter than the profile's; warn: "
		 "in between, or not reserved; info: the switch reckons it",
		 "config interface cable-length PORT 40m; nv set qos pfc default-global "
		 "cable-length 40",
		 BUFFERS,
		 "Linux mlx5 en/port_buffer.c, calculate_xoff(); SONiC pg_profile_lookup.ini",
		 CONSTRUCTED},
		switch_s05},
	{{"S06", "lossless buffer for the lossless group",
		 "BUFFER_PG, BUFFER_PROFILE; qos|traffic-pool",
		 "pass: a profile with headroom, or one that the switch reckons; fail: a lossy "
		 "one, one that does not exist, none though other ports have one",
		 "config interface buffer priority-group lossless set PORT GROUP; nv set qos "
		 "traffic-pool roce-lossless switch-priority PRIO",
		 BUFFERS, "SONiC sonic-swss, cfgmgr/buffermgr.cpp", CONSTRUCTED},
		switch_s06},
	{{"S07", "ECN marks before PFC pauses",
		 "QUEUE, WRED_PROFILE, BUFFER_PROFILE, BUFFER_POOL; qos|congestion-control",
		 "pass: Kmin < Kmax < where PFC starts (pool * a / (1 + a), a = 2^dynamic_th, or "
		 "static_th); fail: Kmin is not below Kmax, or not below where PFC starts; warn: "
		 "Kmax is not below that; skip: where PFC starts is not told",
		 "ecnconfig -p PROFILE -gmin BYTES -gmax BYTES; nv set qos congestion-control "
		 "default-global traffic-class TC min-threshold BYTES",
		 "all queues with this profile",
		 "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, 4",
		 CONSTRUCTED},
		switch_s07},
	{{"S08", "ECN on the lossless queue", "QUEUE, WRED_PROFILE; qos|congestion-control",
		 "pass: ecn_all or one with green, and wred_green_enable; ecn enable; fail: off. "
		 "With congestion = pfc-only: pass: off; warn: on",
		 "ecnconfig -q QUEUE on; nv set qos congestion-control default-global traffic-class "
		 "TC ecn enable",
		 NULL, QOS_CONFIG "; " CUMULUS, CONSTRUCTED},
		switch_s08},
	{{"S09", "CNPs outside the lossless class",
		 "DSCP_TO_TC_MAP, TC_TO_QUEUE_MAP, QUEUE, SCHEDULER; qos|mapping, egress-scheduler",
		 "pass: the CNPs' DSCP (profile, else 48) is in a class without PFC, the "
		 "profile's, strict and not the bulk's; fail: lossless, or not the profile's "
		 "class; warn: not strict, with the bulk, or no profile says that 48 is right",
		 "sonic-db-cli CONFIG_DB hset 'DSCP_TO_TC_MAP|MAP' 48 6; nv set qos "
		 "egress-scheduler default-global traffic-class 6 mode strict",
		 "all ports with this map",
		 "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
		 CONSTRUCTED},
		switch_s09},
	{{"S10", "PFC watchdog", "PORT_QOS_MAP, PFC_WD; interface|PORT|qos|pfc-watchdog",
		 "pass: on where PFC is on, detection from 100 to 5000 ms and no shorter than it "
		 "looks, drop or forward, over all of PFC's priorities (pfcwd_sw_enable, where it "
		 "is told); fail: not so; warn: it only tells, or restoration is "
		 "not from 100 to 60000 ms",
		 "pfcwd start --action drop PORT 200 --restoration-time 200; nv set interface PORT "
		 "qos pfc-watchdog",
		 NULL,
		 "SONiC sonic-pfcwd.yang; Guo et al., RDMA over Commodity Ethernet at Scale, "
		 "SIGCOMM 2016",
		 CONSTRUCTED},
		switch_s10},
	{{"S11", "MTU", "PORT, DEVICE_NEIGHBOR; interface|PORT|link",
		 "pass: at least the profile's, else 4200, and the same at the other end where "
		 "that is among what was given; fail: smaller, or not the same",
		 "config interface mtu PORT 9100; nv set interface PORT link mtu 9216",
		 "SONiC: the link goes down and up",
		 "Linux include/rdma/ib_addr.h, iboe_get_mtu(): 4096 and 96 of headers",
		 CONSTRUCTED},
		switch_s11},
	{{"S12", "share of the lossless queue, no global pause",
		 "QUEUE, SCHEDULER; qos|egress-scheduler, link-pause",
		 "pass: DWRR with at least the profile's ets-share; fail: less, or global pause is "
		 "on; warn: strict; info: the profile names no share. That CNPs are strict is S09",
		 "sonic-db-cli CONFIG_DB hset 'SCHEDULER|NAME' type DWRR weight N; nv set qos "
		 "egress-scheduler default-global traffic-class TC bw-percent N",
		 "all queues with this scheduler",
		 "IEEE 802.1Qaz; IEEE 802.1Q-2018, 36.1.1: PFC and 802.3 pause exclude each other",
		 CONSTRUCTED},
		switch_s12},
	{{.id = NULL}, NULL},
};

static void no_port(const struct switch_facts *s, struct fb_doc *doc)
{
	for (const struct switch_check *c = switch_checks; c->def.id; c++) {
		struct fb_finding f = {.state = FB_CHECK_ERROR};
		snprintf(f.subject, sizeof(f.subject), "%s", s->name);
		fb_find_read(&f, "%s in %.200s", s->vendor->sections[SWITCH_PORTS], s->path);
		fb_find(&f, FB_CHECK_SKIP, "not available: %s",
			s->ports ? "no port is up" : "no port is in the file");
		fb_doc_add_check(doc, fb_finding_json(&c->def, &f));
	}
}

void switch_run(const struct switch_facts *const *all, int n_all,
	const struct node_facts *const *hosts, int n_hosts, const struct profile *profile,
	struct fb_doc *doc)
{
	for (int i = 0; i < n_all; i++) {
		int used = 0;
		for (int k = 0; k < all[i]->ports; k++) {
			const struct switch_input in = {.sw = all[i],
				.port = &all[i]->port[k],
				.all = all,
				.n_all = n_all,
				.hosts = hosts,
				.n_hosts = n_hosts,
				.profile = profile};
			used += in.port->used;
			for (const struct switch_check *c = switch_checks;
				in.port->used && c->def.id; c++) {
				struct fb_finding f = {.state = FB_CHECK_ERROR};
				snprintf(f.subject, sizeof(f.subject), "%s %s", all[i]->name,
					in.port->name);
				c->run(&in, &f);
				fb_doc_add_check(doc, fb_finding_json(&c->def, &f));
			}
		}
		if (used == 0)
			no_port(all[i], doc);
	}
}
