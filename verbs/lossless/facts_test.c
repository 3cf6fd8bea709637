// SPDX-License-Identifier: Apache-2.0
/* Facts of trees: each is read, and what is not there, hidden or wrong is said as such. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "verbs/lossless/facts.h"
#include "verbs/lossless/others.h"
#include "verbs/lossless/test_tree.h"

#define TREES "verbs/lossless/testdata/trees/"

static void all_of_the_vendors_stack(void **state)
{
	struct test_tree t;
	const char *how, *why;
	test_tree_open(&t, TREES "mlx5-vendor.tree", NULL);
	struct node_facts *n = &t.facts;
	assert_int_equal(n->ports, 1);
	const struct port_facts *p = &n->port[0];

	assert_string_equal(n->host, "node");
	assert_true(fact_known(&n->memlock.f));
	assert_true(n->memlock.v == INT64_MAX);
	assert_true(fact_known(&n->ipc_lock.f));
	assert_int_equal(n->ipc_lock.v, 0);
	assert_string_equal(n->recorded.v, "2026-01-31T12:00:00Z");
	assert_string_equal(fb_json_str(n->env, "NCCL_IB_TC", ""), "106");
	assert_string_equal(p->device, "mlx5_0");
	assert_string_equal(p->driver, "mlx5_core");
	assert_string_equal(p->family, "mlx5");
	assert_string_equal(p->bdf, "0000:3b:00.0");
	assert_string_equal(p->netdev, "eth2");
	assert_true(p->ethernet);
	assert_true(p->vendor_stack);
	assert_string_equal(p->state.v, "4: ACTIVE");
	assert_int_equal(p->rate_mbps.v, 100000);
	assert_int_equal(p->width.v, 4);
	assert_int_equal(p->netdev_mtu.v, 9000);
	assert_int_equal(p->active_mtu.v, 4096);
	assert_int_equal(p->speed_mbps.v, 100000);
	assert_int_equal(p->max_speed_mbps.v, 100000);
	assert_string_equal(p->pcie_speed.v, "16.0 GT/s PCIe");
	assert_int_equal(p->pcie_width.v, 16);
	assert_int_equal(p->gids, 4); /* the fifth slot is empty */
	assert_true(p->gid[1].v2 && p->gid[1].link_local && !p->gid[1].ipv4);
	assert_true(p->gid[3].v2 && p->gid[3].ipv4 && !p->gid[3].link_local);
	assert_string_equal(p->gid[3].netdev, "eth2");
	assert_int_equal(p->pkeys, 1);
	assert_int_equal(p->pkey[0], 0xffff);
	assert_true(fact_known(&p->dcb.pfc_f));
	assert_int_equal(p->dcb.pfc.en, 8);
	assert_int_equal(p->dcb.pfc.delay, 7);
	assert_int_equal(p->dcb.ets.prio_tc[3], 3);
	assert_int_equal(p->dcb.ets.tsa[6], 0);
	assert_int_equal(p->dcb.ets.tc_tx_bw[3], 50);
	assert_int_equal(p->dcb.buffer.size[1], 262016);
	assert_int_equal(p->dcb.dcbx, 9);
	assert_int_equal(p->dcb.peer_pfc_f.state, FACT_ABSENT);
	assert_string_equal(p->trust.v, "dscp");
	assert_true(p->np_enable[3] && !p->np_enable[2] && p->rp_enable[3]);
	assert_int_equal(p->cnp_dscp.v, 48);
	assert_int_equal(p->cnp_prio.v, 6);
	assert_int_equal(p->traffic_class.v, 106);
	assert_string_equal(p->cma_mode.v, "RoCE v2");
	assert_int_equal(p->cma_tos.v, 106);
	assert_true(fact_known(&p->pause_rx.f));
	assert_int_equal(p->pause_rx.v, 0);
	assert_int_equal(fb_json_int(p->stats, "rx_prio3_packets", -1), 1000);
	assert_int_equal(fb_json_int(p->counters, "np_cnp_sent", -1), 0);
	assert_int_equal(facts_dscp_priority(p, 26, &how, &why), 3);
	assert_string_equal(how, "qos/dscp2prio");
	assert_int_equal(facts_dscp_priority(p, 13, &how, &why), -1);
	assert_int_equal(facts_dscp_priority(p, 64, &how, &why), -1);
	test_tree_close(&t);
}

#define UPSTREAM                                                    \
	"device mlx5_0 mlx5_core 0000:3b:00.0 eth2\nport 1\n"       \
	"@port/state = 4: ACTIVE\n@port/link_layer = Ethernet\n"    \
	"@port/rate = 100 Gb/sec (4X EDR)\ngid 0 v1 fe80::1 eth2\n" \
	"gid 3 v2 ::ffff:10.0.0.1 eth2\n@net/mtu = 9000\n@net/operstate = up\n"

static void what_upstream_does_not_have(void **state)
{
	struct test_tree t;
	test_tree_open(&t, NULL, UPSTREAM "netdev eth2\npfc 3\napp none\n");
	const struct port_facts *p = &t.facts.port[0];
	assert_false(p->vendor_stack);
	const struct fact *const absent[] = {&p->np_enable_f, &p->rp_enable_f, &p->dscp2prio_f,
		&p->traffic_class.f, &p->cma_mode.f, &p->cma_tos.f, &p->cnp_dscp.f, &p->counters_f,
		&p->pcie_speed.f, &p->lid.f, &p->fw.f, &p->dcb.buffer_f, &p->symbol_ber_ok.f};
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		if (absent[i]->state != FACT_ABSENT)
			fail_msg("%s: state %d", absent[i]->read, absent[i]->state);
		assert_true(absent[i]->why[0]);
	}
	/* it appears only when somebody makes it */
	assert_non_null(strstr(p->cma_mode.f.why, "mkdir /sys/kernel/config/rdma_cm/mlx5_0"));
	/* not recorded is not absent */
	const struct fact *const hidden[] = {
		&p->stats_f, &p->pause_rx.f, &p->speed_mbps.f, &p->dcb.dcbx_f, &t.facts.env_f};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_int_equal(hidden[i]->state, FACT_HIDDEN);
	test_tree_close(&t);
}

static void upstream_trust_and_map(void **state)
{
	struct test_tree t;
	const char *how, *why;
	test_tree_open(&t, NULL, UPSTREAM "app dscp 26 3\napp dscp 26 2\napp udp 4791 5\n");
	assert_string_equal(t.facts.port[0].trust.v, "dscp");
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 26, &how, &why), 3);
	assert_string_equal(how, "APP table");
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 13, &how, &why), 0);
	assert_non_null(strstr(how, "no entry"));
	test_tree_close(&t);

	/* No DSCP entry: mlx5 trusts the VLAN tag. */
	test_tree_open(&t, NULL, UPSTREAM "app udp 4791 5\n");
	assert_string_equal(t.facts.port[0].trust.v, "pcp");
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 26, &how, &why), -1);
	assert_non_null(strstr(why, "PCP"));
	test_tree_close(&t);

	/* The kernel's own trust table is asked first; then mlx5's map is its documented one. */
	test_tree_open(&t, NULL, UPSTREAM "app none\napptrust dscp pcp\n");
	assert_string_equal(t.facts.port[0].trust.v, "dscp");
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 26, &how, &why), 3);
	assert_non_null(strstr(how, "default"));
	test_tree_close(&t);

	/* Another driver's is not known; nor is a table that cannot be seen. */
	test_tree_open(&t, NULL,
		"device bnxt_re0 bnxt_en 0000:3b:00.0 eth2\nport 1\n"
		"@port/link_layer = Ethernet\ngid 0 v2 ::ffff:10.0.0.1 eth2\napp none\n");
	assert_string_equal(t.facts.port[0].family, "bnxt_re");
	assert_int_equal(t.facts.port[0].trust.f.state, FACT_ABSENT);
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 26, &how, &why), -1);
	assert_true(why[0]);
	test_tree_close(&t);
	test_tree_open(&t, NULL, UPSTREAM);
	assert_int_equal(t.facts.port[0].trust.f.state, FACT_HIDDEN);
	assert_int_equal(facts_dscp_priority(&t.facts.port[0], 26, &how, &why), -1);
	assert_string_equal(why, "not recorded");
	test_tree_close(&t);
}

static void what_only_root_sees(void **state)
{
	struct test_tree t;
	test_tree_open(&t, NULL, UPSTREAM "hidden /sys/kernel/debug\n");
	assert_int_equal(t.facts.port[0].cnp_dscp.f.state, FACT_HIDDEN);
	assert_int_equal(t.facts.port[0].cnp_prio.f.state, FACT_HIDDEN);
	assert_non_null(strstr(t.facts.port[0].cnp_dscp.f.read, "cc_params/np_cnp_dscp"));
	test_tree_close(&t);
	test_tree_open(&t, NULL,
		UPSTREAM "@cc/np_cnp_dscp = 48\n@cc/np_cnp_prio = 6\n@cc/np_cnp_prio_mode = 0\n");
	assert_int_equal(t.facts.port[0].cnp_dscp.v, 48);
	assert_int_equal(t.facts.port[0].cnp_prio.v, 6);
	test_tree_close(&t);
	test_tree_open(&t, NULL, UPSTREAM "@cc/np_cnp_prio = 6\n@cc/np_cnp_prio_mode = 1\n");
	assert_int_equal(t.facts.port[0].cnp_prio.f.state, FACT_ABSENT);
	test_tree_close(&t);
	/* A class's files are recorded where its link leads. */
	test_tree_open(
		&t, NULL, UPSTREAM "hidden /sys/devices/pci0000:3c/0000:3c:00.0/max_link_speed\n");
	assert_int_equal(t.facts.port[0].pcie_max_speed.f.state, FACT_ABSENT);
	test_tree_close(&t);
	test_tree_open(&t, NULL, UPSTREAM "hidden @pci/max_link_speed\n");
	assert_int_equal(t.facts.port[0].pcie_max_speed.f.state, FACT_HIDDEN);
	assert_int_equal(t.facts.port[0].pcie_speed.f.state, FACT_ABSENT);
	test_tree_close(&t);
}

static void values_that_cannot_be(void **state)
{
	struct test_tree t;
	test_tree_open(&t, NULL,
		UPSTREAM "@net/mtu = nine\n@port/rate = fast\n@pci/current_link_width = x8\n"
			 "@net/qos/dscp2prio = dscp prio\n@tc/traffic_class = Global tclass=300\n"
			 "@cma/default_roce_tos =\nactive-mtu none\n@net/ecn/roce_np/enable/0 = 1\n"
			 "/proc/self/limits = nothing\n/proc/self/status = nothing\n");
	const struct port_facts *p = &t.facts.port[0];
	const struct fact *const broken[] = {&p->netdev_mtu.f, &p->rate_mbps.f, &p->width.f,
		&p->pcie_width.f, &p->dscp2prio_f, &p->traffic_class.f, &p->cma_tos.f,
		&p->active_mtu.f, &t.facts.memlock.f, &t.facts.ipc_lock.f};
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		if (broken[i]->state != FACT_BROKEN)
			fail_msg("%zu (%s): state %d", i, broken[i]->read, broken[i]->state);
		assert_true(broken[i]->why[0]);
	}
	/* one of eight switches is not all of them */
	assert_false(fact_known(&p->np_enable_f));
	test_tree_close(&t);
}

static void rdma_mtu_of_the_interface(void **state)
{
	static const struct {
		int netdev, rdma;
	} hard[] = {{9000, 4096}, {4192, 4096}, {4191, 2048}, {2144, 2048}, {2143, 1024},
		{1500, 1024}, {1120, 1024}, {352, 256}};
	struct test_tree t;
	char more[512];
	for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
		snprintf(more, sizeof(more), "%s@net/mtu = %d\n", UPSTREAM, hard[i].netdev);
		test_tree_open(&t, NULL, more);
		assert_int_equal(t.facts.port[0].active_mtu.v, hard[i].rdma);
		assert_non_null(strstr(t.facts.port[0].active_mtu.f.read, "derived"));
		test_tree_close(&t);
	}
	/* Soft-RoCE takes less: 4176 is enough. */
	test_tree_open(&t, NULL,
		"device rxe0 rxe eth0\nport 1\n@port/link_layer = Ethernet\n@net/mtu = 4176\n");
	assert_int_equal(t.facts.port[0].active_mtu.v, 4096);
	test_tree_close(&t);
	/* InfiniBand's has nothing to do with an interface's. */
	test_tree_open(&t, NULL,
		"device mlx5_0 mlx5_core 0000:3b:00.0 ib0\nport 1\n"
		"@port/link_layer = InfiniBand\n@net/mtu = 2044\n");
	assert_int_equal(t.facts.port[0].active_mtu.f.state, FACT_HIDDEN);
	assert_int_equal(t.facts.port[0].dcb.pfc_f.state, FACT_ABSENT);
	test_tree_close(&t);
}

static void soft_roce_as_recorded(void **state)
{
	struct test_tree t;
	test_tree_open(&t, "verbs/lossless/testdata/recorded/rxe.tree", NULL);
	const struct port_facts *p = &t.facts.port[0];
	assert_string_equal(p->family, "rxe");
	assert_string_equal(p->driver, "rdma_rxe");
	assert_string_equal(p->bdf, "");
	assert_string_equal(p->netdev, "eth0");
	assert_int_equal(p->gids, 2);
	assert_true(p->gid[0].link_local && p->gid[1].ipv4);
	assert_int_equal(p->active_mtu.v, 4096);
	assert_int_equal(p->dcb.pfc_f.state, FACT_ABSENT);
	assert_int_equal(p->dcb.dcbx_f.state, FACT_ABSENT);
	assert_int_equal(p->pause_rx.f.state, FACT_ABSENT);
	assert_int_equal(p->speed_mbps.f.state, FACT_ABSENT);
	assert_int_equal(p->pcie_speed.f.state, FACT_ABSENT);
	assert_true(fact_known(&p->stats_f));
	assert_int_equal(fb_json_int(p->counters, "sent_pkts", -1), 0);
	assert_int_equal(t.facts.ipc_lock.v, 1);
	test_tree_close(&t);
}

static void interfaces(void **state)
{
	struct test_tree t;
	/* Seen from a pod: the port's interface is in another network namespace. */
	test_tree_open(&t, NULL, UPSTREAM "remove /sys/class/net/eth2\nremove @pci/net\n");
	const struct port_facts *p = &t.facts.port[0];
	assert_string_equal(p->netdev, "");
	assert_int_equal(p->netdev_f.state, FACT_HIDDEN);
	assert_int_equal(p->dcb.pfc_f.state, FACT_HIDDEN);
	assert_int_equal(p->stats_f.state, FACT_HIDDEN);
	assert_non_null(strstr(p->dcb.pfc_f.why, "namespace"));
	test_tree_close(&t);

	/* A function with two ports; the second is told by its number. */
	test_tree_open(&t, NULL,
		"device mlx4_0 mlx4_core 0000:3b:00.0 eth2 eth3\n"
		"@pci/net/eth2/dev_port = 0\n@pci/net/eth3/dev_port = 1\n"
		"port 1\n@port/link_layer = Ethernet\nport 2\n@port/link_layer = Ethernet\n");
	assert_int_equal(t.facts.ports, 2);
	assert_string_equal(t.facts.port[0].netdev, "eth2");
	assert_string_equal(t.facts.port[1].netdev, "eth3");
	test_tree_close(&t);

	/* Representors stand beside the port's own interface; the GIDs are on that one. */
	test_tree_open(&t, NULL,
		"device mlx5_0 mlx5_core 0000:3b:00.0 a_rep0 eth2 b_rep1\nport 1\n"
		"@port/link_layer = Ethernet\ngid 0 v2 ::ffff:10.0.0.1 eth2\n");
	assert_string_equal(t.facts.port[0].netdev, "eth2");
	test_tree_close(&t);

	/* In a bond, DCB is the port's: not of bond0, which has the GIDs. */
	test_tree_open(&t, NULL,
		"device mlx5_bond_0 mlx5_core 0000:3b:00.0 eth2\nport 1\n"
		"@port/link_layer = Ethernet\ngid 0 v2 ::ffff:10.0.0.1 bond0\nnetdev bond0\n");
	assert_string_equal(t.facts.port[0].netdev, "eth2");
	test_tree_close(&t);
}

static void environment(void **state)
{
	struct test_tree t;
	test_tree_open(&t, NULL,
		"env NCCL_IB_TC=106\nenv UCX_IB_TRAFFIC_CLASS=104\nenv HOME=/secret\n"
		"/home/.nccl.conf = # comment\\n NCCL_IB_TC = 26\\nNCCL_IB_SL=3\n"
		"/etc/nccl.conf = NCCL_IB_SL=5\\nNCCL_IB_FIFO_TC=84\\nnonsense\n");
	json_t *env = t.facts.env, *from = t.facts.env_source;
	assert_string_equal(fb_json_str(env, "NCCL_IB_TC", ""), "106");
	assert_string_equal(fb_json_str(env, "NCCL_IB_SL", ""), "3");
	assert_string_equal(fb_json_str(from, "NCCL_IB_SL", ""), "/home/.nccl.conf");
	assert_string_equal(fb_json_str(env, "NCCL_IB_FIFO_TC", ""), "84");
	assert_string_equal(fb_json_str(from, "NCCL_IB_FIFO_TC", ""), "/etc/nccl.conf");
	assert_int_equal(json_object_size(env), 4);
	test_tree_close(&t);
}

static void devices(void **state)
{
	struct test_tree t;
	struct fb_err e = {0};
	struct node_facts n;
	test_tree_open(&t, NULL, UPSTREAM);
	assert_int_equal(facts_read(&t.root, "mlx5_7", &n, &e), -ENODEV);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "mlx5_0"));
	assert_int_equal(facts_read(&t.root, "mlx5_0", &n, &e), 0);
	assert_int_equal(n.ports, 1);
	facts_free(&n);
	test_tree_close(&t);
	test_tree_open(&t, NULL, "/sys/nothing = here\n");
	assert_int_equal(t.facts.ports, 0);
	test_tree_close(&t);
}

/* A recording of another node, whose first device has the same name. */
static void a_strange_recording(void **state)
{
	struct test_tree user, other;
	char *taken = NULL;
	test_tree_open(&user, NULL, UPSTREAM "hidden /sys/kernel/debug\n");
	test_tree_open(&other, NULL,
		"device mlx5_0 mlx5_core 0000:5e:00.0 eth2\nport 1\n"
		"@port/link_layer = Ethernet\n@cc/np_cnp_dscp = 48\n");
	assert_true(fact_known(&other.facts.port[0].cnp_dscp.f));
	facts_overlay(&user.facts, &other.facts, &taken);
	assert_int_equal(user.facts.port[0].cnp_dscp.f.state, FACT_HIDDEN);
	assert_null(taken);
	test_tree_close(&user);
	test_tree_close(&other);
}

static void this_machine(void **state)
{
	const struct fb_sysroot live = {.dir = NULL};
	struct node_facts n;
	struct fb_err e = {0};
	setenv("NCCL_IB_TC", "106", 1);
	assert_int_equal(facts_read(&live, NULL, &n, &e), 0);
	assert_int_equal(n.recorded.f.state, FACT_ABSENT);
	assert_true(fact_known(&n.memlock.f));
	assert_true(fact_known(&n.ipc_lock.f));
	assert_string_equal(fb_json_str(n.env, "NCCL_IB_TC", ""), "106");
	assert_string_equal(fb_json_str(n.env_source, "NCCL_IB_TC", ""), "environment");
	for (int i = 0; i < n.ports; i++) {
		assert_true(fact_known(&n.port[i].state.f));
		assert_true(n.port[i].family[0]);
	}
	facts_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_the_vendors_stack),
		cmocka_unit_test(what_upstream_does_not_have),
		cmocka_unit_test(upstream_trust_and_map), cmocka_unit_test(what_only_root_sees),
		cmocka_unit_test(values_that_cannot_be),
		cmocka_unit_test(rdma_mtu_of_the_interface),
		cmocka_unit_test(soft_roce_as_recorded), cmocka_unit_test(interfaces),
		cmocka_unit_test(environment), cmocka_unit_test(devices),
		cmocka_unit_test(a_strange_recording), cmocka_unit_test(this_machine)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
