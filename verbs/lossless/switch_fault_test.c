// SPDX-License-Identifier: Apache-2.0
/*
 * One fault at a time in a healthy leaf and spine: each is told by its own check, at its own port,
 * and by no other. The same for other ways of writing what is healthy: nothing is told.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "bench/core/test.h"
#include "verbs/lossless/switch.h"

#define DIR     "verbs/lossless/testdata/switch/"
#define PROFILE "scripts/profiles/dscp26-cnp48-6.ini"
#define LL      "BUFFER_PROFILE/pg_lossless_100000_40m_profile/"
#define WRED    "WRED_PROFILE/AZURE_LOSSLESS/"

/* Where: TABLE/KEY/FIELD; what stands there after, as JSON; empty: it is taken away. */
struct fault {
	const char *base, *where, *what, *found;
};

static json_t *load(const char *name)
{
	char path[256], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	snprintf(path, sizeof(path), DIR "%s.json", name);
	assert_int_equal(fb_read_file(path, 1 << 20, &text, &len, &e), 0);
	json_t *root = fb_json_parse(text, len, path, &e);
	assert_non_null(root);
	free(text);
	return root;
}

static void change(json_t *o, const char *where, const char *what)
{
	char key[96];
	const char *slash = strchr(where, '/');
	while (slash) {
		snprintf(key, sizeof(key), "%.*s", (int)(slash - where), where);
		o = json_object_get(o, key);
		if (!json_is_object(o))
			fail_msg("%s is no object of the file", key);
		where = slash + 1;
		slash = strchr(where, '/');
	}
	if (!*what)
		assert_int_equal(json_object_del(o, where), 0);
	else
		json_object_set_new(o, where, json_loads(what, JSON_DECODE_ANY, NULL));
}

static void parse(const json_t *root, const char *name, struct switch_facts *s)
{
	struct fb_err e = {0};
	char *text = json_dumps(root, 0);
	assert_non_null(text);
	if (switch_parse(text, strlen(text), name, s, &e) < 0)
		fail_msg("%s", e.msg);
	free(text);
}

/* "S05 fail leaf01 Ethernet0;": what fails or warns. */
static char *findings(struct switch_facts *sw, int n, const char *profile_path)
{
	static char *argv[] = {(char *)"fabricbench", NULL};
	static const struct fb_output_cfg out;
	const struct switch_facts *all[2] = {&sw[0], &sw[n - 1]};
	struct profile profile;
	struct fb_err e = {0};
	struct fb_strbuf b = {0};
	const json_t *c;
	size_t i;
	profile_none(&profile);
	if (profile_path)
		assert_int_equal(profile_read(profile_path, &profile, &e), 0);
	struct fb_doc *doc = fb_doc_new("check switch", 1, argv, &out, &e);
	assert_non_null(doc);
	switch_pair(sw, n);
	switch_run(all, n, NULL, 0, &profile, doc);
	fb_strbuf_add(&b, "");
	json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), i, c) {
		const char *state = fb_json_str(c, "state", "");
		if (strcmp(state, "fail") == 0 || strcmp(state, "warn") == 0)
			fb_strbuf_printf(&b, "%s %s %s;", fb_json_str(c, "id", ""), state,
				fb_json_str(c, "subject", ""));
	}
	fb_doc_free(doc);
	return fb_strbuf_take(&b);
}

/* @return as expected? */
static bool as_expected(json_t *root, const struct fault *f)
{
	struct switch_facts sw[2];
	json_t *far = load(f->base);
	int n = strncmp(f->base, "sonic", 5) == 0 ? 2 : 1;
	parse(root, "leaf.json", &sw[0]);
	if (n == 2) {
		change(far, "DEVICE_METADATA/localhost/hostname", "\"spine01\"");
		change(far, "DEVICE_NEIGHBOR",
			"{\"Ethernet0\":{\"name\":\"leaf01\",\"port\":"
			"\"Ethernet0\"}}");
		change(far, "PORT/Ethernet4", "");
		parse(far, "spine.json", &sw[1]);
	}
	char *got = findings(sw, n, PROFILE);
	bool same = strcmp(got, f->found) == 0;
	if (!same)
		fprintf(stderr, "%s = %s: found \"%s\", not \"%s\"\n", f->where, f->what, got,
			f->found);
	free(got);
	for (int i = 0; i < n; i++)
		switch_free(&sw[i]);
	json_decref(far);
	return same;
}

#define BOTH(what) what " leaf01 Ethernet0;" what " leaf01 Ethernet4;"
#define ENDS(what) what " leaf01 Ethernet0;" what " spine01 Ethernet0;"
#define SWPS(what) what " leaf01 swp1;" what " leaf01 swp2;"
#define SONIC      "sonic-roce26"
#define NVUE       "nvidia-healthy"

static const struct fault faults[] = {
	{SONIC, "PORT/Ethernet0/index", "\"1\"", ""},
	{SONIC, "PORT_QOS_MAP/Ethernet0/dscp_to_tc_map", "\"NONE\"", "S01 fail leaf01 Ethernet0;"},
	{SONIC, "DSCP_TO_TC_MAP/AZURE/26", "\"1\"", BOTH("S02 fail")},
	{SONIC, "DSCP_TO_TC_MAP/AZURE/26", "", BOTH("S02 fail")},
	{SONIC, "TC_TO_PRIORITY_GROUP_MAP/AZURE/3", "\"0\"", BOTH("S02 fail")},
	{SONIC, "TC_TO_QUEUE_MAP/AZURE/3", "\"1\"", BOTH("S02 fail")},
	{SONIC, "MAP_PFC_PRIORITY_TO_QUEUE/AZURE/3", "\"4\"", BOTH("S02 fail")},
	{SONIC, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP/AZURE/3", "\"4\"", BOTH("S02 fail")},
	{SONIC, "PORT_QOS_MAP/Ethernet4/tc_to_queue_map", "", "S02 fail leaf01 Ethernet4;"},
	{SONIC, "PORT_QOS_MAP/Ethernet4/tc_to_pg_map", "\"NONE\"", "S02 fail leaf01 Ethernet4;"},
	{SONIC, "PORT_QOS_MAP/Ethernet4/pfc_enable", "\"4\"", "S02 fail leaf01 Ethernet4;"},
	{SONIC, "PORT_QOS_MAP/Ethernet0/pfc_enable", "",
		"S02 fail leaf01 Ethernet0;" ENDS("S03 fail")},
	{SONIC, "DEVICE_NEIGHBOR/Ethernet0/port", "\"Ethernet4\"", "S03 warn spine01 Ethernet0;"},
	{SONIC, "DEVICE_NEIGHBOR/Ethernet4", "{\"name\":\"spine01\",\"port\":\"Ethernet0\"}",
		"S03 warn leaf01 Ethernet4;"},
	{SONIC, "PORT_QOS_MAP/Ethernet0/pfc_enable", "\"3, 4\"",
		"S02 fail leaf01 Ethernet0;" ENDS("S03 fail")},
	{SONIC, "TC_TO_PRIORITY_GROUP_MAP/AZURE/1", "\"3\"", BOTH("S04 fail")},
	{SONIC, "TC_TO_QUEUE_MAP/AZURE/1", "\"3\"", BOTH("S04 fail")},
	{SONIC, LL "xoff", "\"5000\"", BOTH("S05 fail")},
	{SONIC, "CABLE_LENGTH/AZURE/Ethernet0", "\"300m\"", "S05 fail leaf01 Ethernet0;"},
	{SONIC, "CABLE_LENGTH/AZURE/Ethernet0", "\"5m\"", ""},
	{SONIC, "PORT/Ethernet0/speed", "\"400000\"", "S05 fail leaf01 Ethernet0;"},
	{SONIC, "BUFFER_PG/Ethernet0|3", "", "S06 fail leaf01 Ethernet0;"},
	{SONIC, "BUFFER_PG/Ethernet0|3/profile", "\"ingress_lossy_profile\"",
		"S06 fail leaf01 Ethernet0;"},
	{SONIC, "BUFFER_PG/Ethernet0|3/profile", "\"none\"", "S06 fail leaf01 Ethernet0;"},
	{SONIC, WRED "green_min_threshold", "\"2097152\"", BOTH("S07 fail")},
	{SONIC, WRED "green_max_threshold", "\"20971520\"", BOTH("S07 warn")},
	{SONIC, WRED "green_min_threshold", "", ""},
	{SONIC, "DEVICE_METADATA", "", ""},
	{SONIC, LL "dynamic_th", "\"-8\"", BOTH("S07 fail")},
	{SONIC, LL "dynamic_th", "\"-3\"", ""},
	{SONIC, WRED "ecn", "\"ecn_none\"", BOTH("S08 fail")},
	{SONIC, WRED "ecn", "\"ecn_yellow\"", BOTH("S08 fail")},
	{SONIC, WRED "ecn", "\"ecn_green\"", ""},
	{SONIC, WRED "wred_green_enable", "\"false\"", BOTH("S08 fail")},
	{SONIC, "QUEUE/Ethernet0|3/wred_profile", "", "S08 fail leaf01 Ethernet0;"},
	{SONIC, "QUEUE/Ethernet0|3/wred_profile", "\"NONE\"", "S08 fail leaf01 Ethernet0;"},
	{SONIC, "DSCP_TO_TC_MAP/AZURE/48", "\"3\"", BOTH("S09 fail")},
	{SONIC, "DSCP_TO_TC_MAP/AZURE/48", "\"1\"", BOTH("S09 fail")},
	{SONIC, "PFC_WD/Ethernet0", "", "S10 fail leaf01 Ethernet0;"},
	{SONIC, "PFC_WD", "", BOTH("S10 fail")},
	{SONIC, "PFC_WD/Ethernet0/action", "\"alert\"", "S10 warn leaf01 Ethernet0;"},
	{SONIC, "PFC_WD/Ethernet0/detection_time", "\"50\"", "S10 fail leaf01 Ethernet0;"},
	{SONIC, "PFC_WD/GLOBAL/POLL_INTERVAL", "\"500\"", BOTH("S10 fail")},
	{SONIC, "PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "\"4\"", "S10 fail leaf01 Ethernet0;"},
	{SONIC, "PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "\"3\"", ""},
	{SONIC, "PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "", ""},
	{SONIC, "PORT/Ethernet4/mtu", "\"1500\"", "S11 fail leaf01 Ethernet4;"},
	{SONIC, "PORT/Ethernet0/mtu", "\"9000\"", ENDS("S11 fail")},
	{SONIC, "SCHEDULER/scheduler.1/weight", "\"5\"", BOTH("S12 fail")},
	{SONIC, "SCHEDULER/scheduler.1/type", "\"STRICT\"", BOTH("S12 warn")},
	{NVUE, "qos/roce/mode", "\"lossless\"", ""},
	{NVUE, "qos/mapping/default-global/trust", "\"l2\"", SWPS("S01 fail")},
	{NVUE, "qos/mapping/default-global/dscp/26/switch-priority", "0", SWPS("S02 fail")},
	{NVUE, "qos/pfc/default-global/rx", "\"disable\"", SWPS("S02 fail")},
	{NVUE, "qos/pfc/default-global/switch-priority", "{\"2\":{},\"3\":{}}", SWPS("S02 fail")},
	{NVUE, "qos/egress-queue-mapping/default-global/switch-priority/1/traffic-class", "3",
		SWPS("S04 fail")},
	{NVUE, "qos/pfc/default-global/port-buffer", "\"70 KB\"", SWPS("S05 fail")},
	{NVUE, "qos/congestion-control/default-global/traffic-class/3/min-threshold", "1500000",
		SWPS("S07 fail")},
	{NVUE, "qos/congestion-control/default-global/traffic-class/3/ecn", "\"disable\"",
		SWPS("S08 fail")},
	{NVUE, "qos/congestion-control/default-global/traffic-class/3", "", SWPS("S08 fail")},
	{NVUE, "qos/traffic-pool",
		"{\"default-lossy\":{\"switch-priority\":\"0-7\"},\"roce-lossless\":{}}",
		SWPS("S06 fail")},
	{NVUE, "qos/mapping/default-global/dscp/48/switch-priority", "3", SWPS("S09 fail")},
	{NVUE, "interface/swp2/qos", "{}", "S10 fail leaf01 swp2;"},
	{NVUE, "interface/swp2/link/mtu", "1500", "S11 fail leaf01 swp2;"},
	{NVUE, "qos/egress-scheduler/default-global/traffic-class/3/bw-percent", "10",
		SWPS("S12 fail")},
	{NVUE, "qos/link-pause", "{\"default-global\":{\"rx\":\"enable\",\"tx\":\"enable\"}}",
		SWPS("S12 fail")},
	/* other ways of writing the same */
	{NVUE, "qos/egress-queue-mapping/default-global/switch-priority",
		"{\"0-2,4,5,7\":{\"traffic-class\":0},\"3\":{\"traffic-class\":3},"
		"\"6\":{\"traffic-class\":6}}",
		""},
	{NVUE, "qos/congestion-control/default-global/traffic-class",
		"{\"0,3\":{\"ecn\":\"enable\",\"min-threshold\":\"146 KB\",\"max-threshold\":"
		"\"1.43 MB\"}}",
		""},
};

static void test_one_fault(void **state)
{
	int bad = 0;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		json_t *root = load(faults[i].base);
		change(root, faults[i].where, faults[i].what);
		bad += !as_expected(root, &faults[i]);
		json_decref(root);
	}
	assert_int_equal(bad, 0);
}

/* ---- older releases and other forms ---------------------------------------------------------- */

/* Releases of 2019: lists of ports in PORT_QOS_MAP, references in brackets, PFC_WD_TABLE. */
static void test_older(void **state)
{
	json_t *root = load(SONIC), *qos = json_object_get(root, "PORT_QOS_MAP");
	json_t *pg = json_object_get(root, "BUFFER_PG"), *one;
	static const struct fault none = {SONIC, "older", "", ""};
	one = json_deep_copy(json_object_get(qos, "Ethernet0"));
	json_object_set_new(one, "dscp_to_tc_map", json_string("[DSCP_TO_TC_MAP|AZURE]"));
	json_object_set_new(one, "tc_to_queue_map", json_string("[TC_TO_QUEUE_MAP|AZURE]"));
	json_object_del(one, "pfcwd_sw_enable");
	change(root, "PORT_QOS_MAP", "{}");
	qos = json_object_get(root, "PORT_QOS_MAP");
	json_object_set_new(qos, "Ethernet0,Ethernet4", one);
	json_object_del(pg, "Ethernet0|3");
	json_object_del(pg, "Ethernet4|3");
	change(root, "BUFFER_PG/Ethernet0,Ethernet4|3-4",
		"{\"profile\":\"[BUFFER_PROFILE|pg_lossless_100000_40m_profile]\"}");
	json_object_set(root, "PFC_WD_TABLE", json_object_get(root, "PFC_WD"));
	json_object_del(root, "PFC_WD");
	assert_true(as_expected(root, &none));
	/* A port's own entry comes before one of many. */
	change(root, "PORT_QOS_MAP/Ethernet4", "{\"dscp_to_tc_map\":\"NONE\"}");
	static const struct fault own = {SONIC, "own entry", "", "S01 fail leaf01 Ethernet4;"};
	assert_true(as_expected(root, &own));
	json_decref(root);
}

/* "PORT|Ethernet0": {...}, each as redis-dump wraps it, or bare. */
static json_t *flat_keys(const json_t *root, bool wrapped)
{
	json_t *dump = json_object(), *t, *v;
	const char *name, *key;
	json_object_foreach ((json_t *)root, name, t)
		json_object_foreach (t, key, v) {
			char flat[160];
			snprintf(flat, sizeof(flat), "%s|%s", name, key);
			if (wrapped)
				json_object_set_new(dump, flat,
					json_pack("{s:s,s:f,s:O}", "type", "hash", "ttl", -0.001,
						"value", v));
			else
				json_object_set(dump, flat, v);
		}
	return dump;
}

/* {"Ethernet0": {"3-4": {...}}} for {"Ethernet0|3-4": {...}} */
static void nest(json_t *root, const char *table)
{
	json_t *below = json_object(), *v;
	const char *key;
	json_object_foreach (json_object_get(root, table), key, v) {
		char port[64];
		snprintf(port, sizeof(port), "%.*s", (int)strcspn(key, "|"), key);
		if (!json_object_get(below, port))
			json_object_set_new(below, port, json_object());
		json_object_set(json_object_get(below, port), strchr(key, '|') + 1, v);
	}
	json_object_set_new(root, table, below);
}

/* What `show techsupport` keeps of the database (sonic-db-dump), its flat keys alone (as the tables
 * of sonic-utilities' tests), and a port's numbers below it (sonic-buildimage issue 15102) say what
 * the file says. */
static void test_dumps(void **state)
{
	static const struct fault none = {SONIC, "dump", "", ""};
	json_t *root = load(SONIC), *wrapped = flat_keys(root, true),
	       *bare = flat_keys(root, false);
	(void)state;
	nest(root, "BUFFER_PG");
	nest(root, "QUEUE");
	assert_true(as_expected(wrapped, &none));
	assert_true(as_expected(bare, &none));
	assert_true(as_expected(root, &none));
	json_decref(wrapped);
	json_decref(bare);
	json_decref(root);
}

/* lldpctl's word comes before DEVICE_NEIGHBOR's; an identity that is a MAC address is no name. */
static void test_lldp(void **state)
{
	json_t *root = load(SONIC);
	struct switch_facts s;
	change(root, "lldp",
		"{\"interface\":[{\"Ethernet0\":{\"via\":\"LLDP\",\"chassis\":{\"spine02\":{\"id\":{"
		"\"type\":\"mac\",\"value\":\"00:11\"}}},\"port\":{\"id\":{\"type\":\"local\","
		"\"value\":\"Eth1/3\"},\"descr\":\"Ethernet8\"}}},{\"eth0\":{}},"
		"{\"Ethernet4\":{\"chassis\":{\"gpu02\":{}},\"port\":{\"id\":{\"type\":\"mac\","
		"\"value\":\"00:22\"},\"descr\":\"eth3\"}}}]}");
	parse(root, "leaf.json", &s);
	assert_string_equal(s.port[0].neighbour, "spine02");
	assert_string_equal(s.port[0].neighbour_port, "Eth1/3");
	assert_string_equal(s.port[1].neighbour, "gpu02");
	assert_string_equal(s.port[1].neighbour_port, "eth3");
	switch_free(&s);
	json_object_del(root, "DEVICE_NEIGHBOR");
	change(root, "lldp",
		"{\"interface\":{\"Ethernet4\":{\"chassis\":{\"id\":{\"type\":\"mac\"}},\"port\":{}"
		"}}}");
	parse(root, "leaf.json", &s);
	assert_string_equal(s.port[0].neighbour, "");
	assert_string_equal(s.port[1].neighbour, "");
	switch_free(&s);
	json_decref(root);
}

/* One end names the other; that is enough for both, and a domain does not part them. */
static void test_pair(void **state)
{
	json_t *root = load(SONIC);
	struct switch_facts sw[2];
	change(root, "DEVICE_NEIGHBOR/Ethernet0/name", "\"spine01.example.com\"");
	change(root, "PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable", "\"3\"");
	parse(root, "leaf.json", &sw[0]);
	change(root, "DEVICE_METADATA/localhost/hostname", "\"spine01\"");
	change(root, "DEVICE_NEIGHBOR", "");
	change(root, "PORT/Ethernet4", "");
	change(root, "PORT_QOS_MAP/Ethernet0/pfc_enable", "\"3,4\"");
	parse(root, "spine.json", &sw[1]);
	char *got = findings(sw, 2, NULL);
	assert_string_equal(sw[1].port[0].neighbour, "leaf01");
	/* 4 is lossless there now, and neither marked nor watched. */
	assert_string_equal(got, "S03 fail leaf01 Ethernet0;S02 warn spine01 Ethernet0;"
				 "S03 fail spine01 Ethernet0;S08 fail spine01 Ethernet0;"
				 "S10 fail spine01 Ethernet0;");
	free(got);
	switch_free(&sw[0]);
	switch_free(&sw[1]);
	assert_true(switch_same_host("a.b", "a"));
	assert_false(switch_same_host("a.b", "a.c"));
	assert_false(switch_same_host("", ""));
	assert_false(switch_same_host("leaf1", "leaf11"));
	json_decref(root);
}

/* `nv config show` takes ports together; what one of them has of its own comes first. */
static void test_ranges(void **state)
{
	json_t *root = load(NVUE);
	struct switch_facts s;
	change(root, "interface",
		"{\"swp3\":{\"link\":{\"mtu\":1500}},\"swp1-4,swp8s0-1\":{\"link\":{\"mtu\":9216,"
		"\"speed\":\"400G\"}},\"swp9\":{},\"eth0\":{}}");
	parse(root, "leaf.json", &s);
	assert_int_equal(s.ports, 7);
	for (int i = 0; i < s.ports; i++) {
		int mtu = strcmp(s.port[i].name, "swp3") == 0   ? 1500
			  : strcmp(s.port[i].name, "swp9") == 0 ? -1
								: 9216;
		assert_int_equal(s.port[i].mtu, mtu);
		assert_int_equal(s.port[i].speed_mbps, mtu < 0 ? -1 : 400000);
	}
	switch_free(&s);
	json_decref(root);
}

/* `nv show interface` leaves qos out, which says nothing of the watchdog; in `nv config show` that
 * it is not there says that it is off. */
static void test_silence(void **state)
{
	json_t *roce = load("nvidia-roce-show"), *root;
	struct switch_facts s;
	(void)state;
	root = json_pack("{s:{s:O},s:{s:{s:{s:i}}}}", "qos", "roce", roce, "interface", "swp1",
		"link", "mtu", 9216);
	parse(root, "leaf.json", &s);
	char *got = findings(&s, 1, NULL);
	assert_string_equal(got, "");
	free(got);
	switch_free(&s);
	json_t *set = json_pack("[{s:O}]", "set", root);
	parse(set, "leaf.json", &s);
	got = findings(&s, 1, NULL);
	assert_string_equal(got, "S10 fail leaf swp1;");
	free(got);
	switch_free(&s);
	json_decref(set);
	json_decref(root);
	json_decref(roce);
}

/* The maps of `nv show qos roce` come before what the mode implies. */
static void test_roce_maps(void **state)
{
	json_t *root = load("nvidia-roce-show");
	struct switch_facts s;
	change(root, "prio-map",
		"{\"0\":{\"pcp\":\"0\",\"dscp\":\"0-25,27-47,49-63\",\"switch-prio\":\"0\"},"
		"\"1\":{\"pcp\":\"5\",\"dscp\":\"26\",\"switch-prio\":\"5\"},"
		"\"2\":{\"pcp\":\"6\",\"dscp\":\"48\",\"switch-prio\":\"6\"}}");
	change(root, "tc-map",
		"{\"0\":{\"scheduler-weight\":\"DWRR-20%\",\"switch-prio\":\"0-4,7\","
		"\"traffic-class\":\"0\"},\"1\":{\"scheduler-weight\":\"DWRR-80%\",\"switch-prio\":"
		"\"5\",\"traffic-class\":\"5\"},\"2\":{\"scheduler-weight\":\"strict-priority\","
		"\"switch-prio\":\"6\",\"traffic-class\":\"6\"}}");
	change(root, "pfc/pfc-priority", "\"5\"");
	change(root, "congestion-control/enabled-tc", "\"0,5\"");
	parse(root, "leaf.json", &s);
	const unsigned told = 1u << SWITCH_PFC | 1u << SWITCH_WRED | 1u << SWITCH_QUEUES;
	assert_int_equal(s.implied & told, 0);
	assert_int_equal(s.port[0].dscp_class[26], 5);
	assert_int_equal(s.port[0].dscp_class[24], 0);
	assert_int_equal(switch_lossless(&s.port[0]), 1 << 5);
	assert_true(s.port[0].buffer[5].lossless);
	assert_false(s.port[0].buffer[3].lossless);
	assert_int_equal(s.port[0].scheduler[5].weight, 80);
	assert_true(s.port[0].scheduler[6].strict);
	char *got = findings(&s, 1, NULL);
	assert_string_equal(got, "");
	free(got);
	switch_free(&s);
	change(root, "trust/trust-mode", "\"pcp\"");
	parse(root, "leaf.json", &s);
	got = findings(&s, 1, NULL);
	assert_string_equal(got, "S01 fail leaf swp*;");
	free(got);
	switch_free(&s);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_fault),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_dumps),
		cmocka_unit_test(test_lldp),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_roce_maps),
		cmocka_unit_test(test_silence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
