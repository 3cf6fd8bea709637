// SPDX-License-Identifier: Apache-2.0
/* What grew between two readings, and what the live checks make of it: pass, warn, fail, or a skip
 * that says why, for each of them. */
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/test.h"
#include "verbs/lossless/live.h"

#define SECOND 1000000000u

static json_t *values(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	assert_non_null(j);
	return j;
}

static void test_growth(void **state)
{
	struct live_reading a = {.at = 5, .netdev_bytes = -1, .netdev_packets = -1}, b = a;
	struct port_window w = {0};
	b.at = 5 + SECOND;
	a.stats = values("{\"x\": 3, \"reset\": 10, \"gone\": 1}");
	b.stats = values("{\"x\": 8, \"reset\": 2, \"new\": 4}");
	a.counters = values("{\"port_xmit_data\": 100, \"port_rcv_data\": 0, "
			    "\"port_xmit_packets\": 0, \"port_rcv_packets\": 7}");
	b.counters = values("{\"port_xmit_data\": 350, \"port_rcv_data\": 50, "
			    "\"port_xmit_packets\": 4, \"port_rcv_packets\": 9}");
	live_window(&a, &b, &w);
	assert_int_equal(w.ns, SECOND);
	assert_int_equal(fb_json_int(w.stats, "x", -1), 5);
	assert_true(json_is_null(json_object_get(w.stats, "reset")));
	assert_null(json_object_get(w.stats, "gone"));
	assert_null(json_object_get(w.stats, "new"));
	assert_true(w.traffic_known);
	assert_int_equal(w.bytes, 4 * 300);
	assert_int_equal(w.packets, 6);
	json_decref(a.stats);
	json_decref(b.stats);
	json_decref(a.counters);
	json_decref(b.counters);
	json_decref(w.stats);
	json_decref(w.counters);
}

static void test_traffic_of_the_interface(void **state)
{
	struct live_reading a = {.at = 1, .netdev_bytes = 10, .netdev_packets = 2}, b = a;
	struct port_window w = {0};
	b.netdev_bytes = 5010;
	b.netdev_packets = 12;
	b.at = 2;
	live_window(&a, &b, &w);
	assert_true(w.traffic_known);
	assert_int_equal(w.bytes, 5000);
	assert_int_equal(w.packets, 10);
	json_decref(w.stats);
	json_decref(w.counters);
	a.netdev_bytes = -1;
	live_window(&a, &b, &w);
	assert_false(w.traffic_known);
	json_decref(w.stats);
	json_decref(w.counters);
}

/* ---- what the checks make of it -------------------------------------------------------------- */

struct live_case {
	const char *id, *stats, *counters, *expect;
	unsigned pfc;
	bool infiniband, routed;
};
static const struct live_case cases[] = {
	{"R29", "{\"rx_prio3_pause\": 5, \"rx_prio3_discards\": 0}", "{}", "pass", .pfc = 8},
	{"R29", "{\"rx_prio3_pause\": 0, \"rx_prio3_discards\": 0}", "{}", "warn", .pfc = 8},
	{"R29", "{\"rx_prio3_pause\": 5, \"rx_prio3_discards\": 1}", "{}", "fail", .pfc = 8},
	{"R29", "{}", "{}", "skip", .pfc = 8},
	{"R29", "{\"rx_prio3_pause\": 5, \"rx_prio3_discards\": 0}", "{}", "skip", .pfc = 0},
	{"R30", "{\"rx_prio3_discards\": 0, \"rx_discards_phy\": 0}", "{}", "pass", .pfc = 8},
	{"R30", "{\"rx_prio3_discards\": 0, \"rx_discards_phy\": 9}", "{}", "warn", .pfc = 8},
	{"R30", "{\"rx_prio3_discards\": 2, \"rx_discards_phy\": 9}", "{}", "fail", .pfc = 8},
	{"R31", "{}", "{\"packet_seq_err\": 0, \"local_ack_timeout_err\": 0}", "pass", .pfc = 0},
	{"R31", "{}", "{\"packet_seq_err\": 50, \"local_ack_timeout_err\": 0}", "fail", .pfc = 0},
	{"R31", "{}", "{\"packet_seq_err\": 0, \"local_ack_timeout_err\": 1}", "fail", .pfc = 0},
	{"R31", "{}", "{\"out_of_sequence\": 1000000, \"local_ack_timeout_err\": 0}", "info",
		.routed = true},
	{"R31", "{}", "{}", "skip", .pfc = 0},
	{"R32", "{}", "{\"rnr_nak_retry_err\": 0}", "pass", .pfc = 0},
	{"R32", "{}", "{\"rnr_nak_retry_err\": 3}", "warn", .pfc = 0},
	{"R33", "{}",
		"{\"np_ecn_marked_roce_packets\": 9, \"np_cnp_sent\": 3, \"rp_cnp_handled\": 1}",
		"pass", .pfc = 0},
	{"R33", "{}", "{\"np_ecn_marked_roce_packets\": 9, \"np_cnp_sent\": 0}", "fail", .pfc = 0},
	{"R33", "{}", "{\"np_ecn_marked_roce_packets\": 0, \"np_cnp_sent\": 0}", "warn", .pfc = 0},
	{"R33", "{}",
		"{\"np_ecn_marked_roce_packets\": 9, \"np_cnp_sent\": 3, \"rp_cnp_ignored\": 2}",
		"fail", .pfc = 0},
	{"R34", "{\"rx_prio3_pause_duration\": 1000}", "{}", "pass", .pfc = 8},
	{"R34", "{\"rx_prio3_pause_duration\": 50000}", "{}", "warn", .pfc = 8},
	{"R34", "{\"tx_prio3_pause_duration\": 500000}", "{}", "fail", .pfc = 8},
	{"R35", "{\"tx_prio3_pause\": 0}", "{}", "pass", .pfc = 8},
	{"R35", "{\"tx_prio3_pause\": 7}", "{}", "warn", .pfc = 8},
	{"R35", "{\"tx_prio3_pause\": 7, \"tx_pause_storm_error_events\": 1}", "{}", "fail",
		.pfc = 8},
	{"R36", "{\"tx_pause_storm_warning_events\": 0, \"tx_pause_storm_error_events\": 0}", "{}",
		"pass", .pfc = 0},
	{"R36", "{\"tx_pause_storm_warning_events\": 1, \"tx_pause_storm_error_events\": 0}", "{}",
		"warn", .pfc = 0},
	{"R36", "{\"tx_pause_storm_warning_events\": 1, \"tx_pause_storm_error_events\": 1}", "{}",
		"fail", .pfc = 0},
	{"R37", "{\"rx_pcs_symbol_err_phy\": 0, \"rx_corrected_bits_phy\": 0}", "{}", "pass",
		.pfc = 0},
	{"R37", "{\"rx_pcs_symbol_err_phy\": 0, \"rx_corrected_bits_phy\": 100000}", "{}", "warn",
		.pfc = 0},
	{"R37", "{\"rx_pcs_symbol_err_phy\": 1}", "{}", "fail", .pfc = 0},
	{"R38", "{}", "{\"rx_icrc_encapsulated\": 0}", "pass", .pfc = 0},
	{"R38", "{}", "{\"rx_icrc_encapsulated\": 1}", "fail", .pfc = 0},
	{"I07", "{}", "{\"port_xmit_wait\": 10}", "pass", .infiniband = true},
	{"I07", "{}", "{\"port_xmit_wait\": 80000000}", "warn", .infiniband = true},
	{"I07", "{}", "{\"port_xmit_wait\": 800000000}", "fail", .infiniband = true},
	{"I08", "{}", "{\"port_xmit_discards\": 0, \"VL15_dropped\": 0}", "pass",
		.infiniband = true},
	{"I08", "{}", "{\"port_xmit_discards\": 0, \"VL15_dropped\": 1}", "warn",
		.infiniband = true},
	{"I08", "{}", "{\"port_xmit_discards\": 1, \"VL15_dropped\": 1}", "fail",
		.infiniband = true},
	{"I12", "{}", "{\"local_ack_timeout_err\": 0}", "pass", .infiniband = true},
	{"I12", "{}", "{\"local_ack_timeout_err\": 2}", "fail", .infiniband = true},
};

static void make_port(struct port_facts *p, const struct live_case *c)
{
	snprintf(p->device, sizeof(p->device), "dev0");
	snprintf(p->family, sizeof(p->family), "mlx5");
	snprintf(p->netdev, sizeof(p->netdev), "eth9");
	p->port = 1;
	p->ethernet = !c->infiniband;
	p->link_layer.f.state = FACT_KNOWN;
	snprintf(p->link_layer.v, sizeof(p->link_layer.v), "%s",
		c->infiniband ? "InfiniBand" : "Ethernet");
	p->dcb.pfc_f.state = FACT_KNOWN;
	p->dcb.pfc.en = (uint8_t)c->pfc;
	p->dcb.pfc.cap = 8;
	p->rate.f.state = FACT_KNOWN;
	snprintf(p->rate.v, sizeof(p->rate.v), "200 Gb/sec (4X HDR)");
	p->width.f.state = FACT_KNOWN;
	p->width.v = 4;
}

/* The state that a check ends in. @return a copy */
static void state_of(const struct live_case *c, const struct port_window *w, char *out, size_t len,
	char *why, size_t why_len)
{
	static struct fb_output_cfg quiet = {.quiet = true};
	char name[] = "check", *argv[] = {name, NULL};
	struct fb_err e = {0};
	struct fb_doc *doc = fb_doc_new("check", 1, argv, &quiet, &e);
	struct port_facts *port = calloc(1, sizeof(*port));
	struct profile profile;
	struct node_facts node = {.port = port, .ports = 1};
	assert_non_null(doc);
	assert_non_null(port);
	make_port(port, c);
	profile_none(&profile);
	profile.adaptive_routing = c->routed ? 1 : -1;
	profile.given = c->routed;
	const struct check_input in = {
		.node = &node, .port = port, .profile = &profile, .window = w};
	checks_run(c->infiniband ? ib_checks : roce_checks, &in, doc);
	size_t i;
	const json_t *check;
	snprintf(out, len, "missing");
	json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), i, check)
		if (strcmp(fb_json_str(check, "id", ""), c->id) == 0) {
			snprintf(out, len, "%s", fb_json_str(check, "state", ""));
			snprintf(why, why_len, "%s", fb_json_str(check, "reason", ""));
		}
	free(port);
	fb_doc_free(doc);
}

static void test_checks(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct live_case *c = &cases[i];
		struct port_window w = {.ns = SECOND,
			.bytes = 1u << 30,
			.packets = 1000000,
			.traffic_known = true,
			.stats = values(c->stats),
			.counters = values(c->counters),
			.peer_prio_packets = {-1, -1, -1, -1, -1, -1, -1, -1},
			.sent_packets = -1};
		char got[16], why[300] = "";
		state_of(c, &w, got, sizeof(got), why, sizeof(why));
		if (strcmp(got, c->expect) != 0)
			print_message(
				"case %zu: %s is %s, not %s: %s\n", i, c->id, got, c->expect, why);
		assert_string_equal(got, c->expect);
		/* Without load nothing is judged, whatever the counters say. */
		w.packets = 3;
		state_of(c, &w, got, sizeof(got), why, sizeof(why));
		assert_string_equal(got, "skip");
		json_decref(w.stats);
		json_decref(w.counters);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_traffic_of_the_interface),
		cmocka_unit_test(test_checks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
