// SPDX-License-Identifier: Apache-2.0
/*
 * ethtool's texts, as the program prints them and as the recorder writes them; and the calls
 * themselves on loopback, which has neither pause nor statistics.
 */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/ethtool.h"
#include "verbs/lossless/test_tree.h"
#include "verbs/lossless/tree_priv.h"

static struct test_tree t;
static struct port_facts p;

static void read_texts(const char *link, const char *pause, const char *stats)
{
	struct fb_err e = {0};
	test_tree_make(&t, NULL, "netdev eth2\n");
	if (link)
		assert_int_equal(
			tree_write(&t.root, "/ethtool/eth2.link", link, strlen(link), &e), 0);
	if (pause)
		assert_int_equal(
			tree_write(&t.root, "/ethtool/eth2.pause", pause, strlen(pause), &e), 0);
	if (stats)
		assert_int_equal(
			tree_write(&t.root, "/ethtool/eth2.stats", stats, strlen(stats), &e), 0);
	memset(&p, 0, sizeof(p));
	snprintf(p.netdev, sizeof(p.netdev), "eth2");
	ethtool_read(&t.root, &p);
}

static void done(void)
{
	json_decref(p.stats);
	test_tree_close(&t);
}

/* In the form of ethtool 5 and 6 on mlx5; the names are en_stats.c's. */
static void as_the_program_prints(void **state)
{
	read_texts("Settings for eth2:\n"
		   "\tSupported ports: [ Backplane ]\n"
		   "\tSupported link modes:   1000baseKX/Full\n"
		   "\t                        25000baseCR/Full 25000baseKR/Full\n"
		   "\t                        200000baseCR4/Full\n"
		   "\tSupported pause frame use: Symmetric\n"
		   "\tAdvertised link modes:  400000baseCR4/Full\n"
		   "\tSpeed: 100000Mb/s\n"
		   "\tDuplex: Full\n"
		   "\tLink detected: yes\n",
		"Pause parameters for eth2:\nAutonegotiate:  off\nRX:             off\nTX:             on\n"
		"RX negotiated: on\nTX negotiated: off\n",
		"NIC statistics:\n"
		"     rx_packets: 18446744073709551615\n"
		"     rx_prio3_pause: 7\n"
		"     tx_prio3_pause_duration: 9007199254740993\n"
		"     [0]: rx_bytes: 12\n"
		"     a name of several words: 3\n"
		"     rx_broken: many\n"
		"     no value:\n"
		"not even a colon\n");
	assert_true(fact_known(&p.speed_mbps.f));
	assert_int_equal(p.speed_mbps.v, 100000);
	assert_int_equal(p.max_speed_mbps.v, 200000); /* supported, not advertised */
	assert_true(fact_known(&p.pause_rx.f));
	assert_int_equal(p.pause_rx.v, 0);
	assert_int_equal(p.pause_tx.v, 1);
	assert_int_equal(p.pause_autoneg.v, 0);
	assert_true(fact_known(&p.stats_f));
	assert_int_equal(fb_json_int(p.stats, "rx_prio3_pause", -1), 7);
	assert_true(fb_json_int(p.stats, "tx_prio3_pause_duration", -1) == 9007199254740993);
	assert_int_equal(fb_json_int(p.stats, "[0]: rx_bytes", -1), 12);
	assert_int_equal(fb_json_int(p.stats, "a name of several words", -1), 3);
	/* what is no number, or too large for one of ours, is not there */
	assert_int_equal(json_object_size(p.stats), 4);
	assert_string_equal(p.stats_f.read, "/ethtool/eth2.stats");
	done();
}

static void link_that_is_down(void **state)
{
	static const char *const speeds[] = {
		"Unknown!", "Unknown! (255)", "0Mb/s", "-1Mb/s", "4294967295", "", "100000"};
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		char text[96];
		snprintf(text, sizeof(text), "Settings for eth2:\n\tSpeed: %s\n", speeds[i]);
		read_texts(text, NULL, NULL);
		assert_int_equal(p.speed_mbps.f.state, FACT_ABSENT);
		assert_true(p.speed_mbps.f.why[0]);
		assert_int_equal(p.max_speed_mbps.f.state, FACT_ABSENT);
		done();
	}
}

static void not_recorded(void **state)
{
	read_texts(NULL, NULL, NULL);
	assert_int_equal(p.speed_mbps.f.state, FACT_HIDDEN);
	assert_int_equal(p.max_speed_mbps.f.state, FACT_HIDDEN);
	assert_int_equal(p.pause_rx.f.state, FACT_HIDDEN);
	assert_int_equal(p.stats_f.state, FACT_HIDDEN);
	assert_null(p.stats);
	done();
}

static void garbled(void **state)
{
	read_texts("", "", "");
	assert_int_equal(p.speed_mbps.f.state, FACT_ABSENT);
	assert_int_equal(p.pause_rx.f.state, FACT_BROKEN);
	assert_int_equal(p.stats_f.state, FACT_ABSENT);
	done();
	read_texts("Supported link modes:", "RX: maybe\nTX: on", "NIC statistics:");
	assert_int_equal(p.max_speed_mbps.f.state, FACT_ABSENT);
	assert_int_equal(p.pause_rx.f.state, FACT_BROKEN);
	assert_int_equal(p.pause_tx.f.state, FACT_KNOWN);
	assert_int_equal(p.pause_autoneg.f.state, FACT_BROKEN);
	assert_int_equal(p.stats_f.state, FACT_ABSENT);
	done();
}

static void loopback(void **state)
{
	const struct fb_sysroot here = {.dir = NULL};
	char *link, *pause, *stats;
	memset(&p, 0, sizeof(p));
	snprintf(p.netdev, sizeof(p.netdev), "lo");
	ethtool_read(&here, &p);
	assert_false(fact_known(&p.speed_mbps.f));
	assert_false(fact_known(&p.pause_rx.f));
	assert_false(fact_known(&p.stats_f));
	assert_int_equal(p.stats_f.state, FACT_ABSENT);
	assert_string_equal(p.pause_rx.f.read, "SIOCETHTOOL GPAUSEPARAM lo");
	assert_true(ethtool_text("no-such-name", &link, &pause, &stats) < 0);
	assert_null(link);
	assert_null(pause);
	assert_null(stats);
	assert_true(ethtool_text("a-name-that-no-interface-can-have", &link, &pause, &stats) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_program_prints),
		cmocka_unit_test(link_that_is_down), cmocka_unit_test(not_recorded),
		cmocka_unit_test(garbled), cmocka_unit_test(loopback)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
