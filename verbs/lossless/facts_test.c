// SPDX-License-Identifier: Apache-2.0
/* Facts of trees: each is read, and what is not there, hidden or wrong is said as such. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "verbs/lossless/facts.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_the_vendors_stack)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
