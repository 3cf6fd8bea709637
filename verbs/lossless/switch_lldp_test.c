// SPDX-License-Identifier: Apache-2.0
/* Neighbours from files of their own: each form says the same, and each file finds its switch. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/switch_lldp.h"

#define DIR "verbs/lossless/testdata/switch/"

/* Shapes: lldpd's writers (text, kv, json, json0), of old releases an object of all ports; SONiC's
 * lldpshow; NVIDIA's NVUE reference. In each Ethernet0 leads to spine01's Ethernet8, and Ethernet4
 * to a host whose port's identity is its MAC address; eth0's neighbour has no name. */
#define MAC "02:00:00:00:00:01"
static const char *const forms[] = {
	/* lldpctl */
	"----\nLLDP neighbors:\n----\n"
	"Interface:    Ethernet0, via: LLDP, RID: 1, Time: 0 day, 14:07:31\n"
	"  Chassis:     \n    ChassisID:    mac " MAC "\n    SysName:      spine01\n"
	"  Port:        \n    PortID:       ifname Ethernet8\n    PortDescr:    etp3\n"
	"----\nInterface:    Ethernet4, via: LLDP, RID: 2, Time: 0 day, 14:07:31\r\n"
	"    SysName:      gpu01\r\n    PortID:       mac " MAC "\r\n    PortDescr:    eth2\r\n"
	"----\nInterface:    eth0, via: LLDP, RID: 3\n    PortID:       mac " MAC "\n",
	/* -f keyvalue */
	"lldp.Ethernet0.via=LLDP\nlldp.Ethernet0.chassis.mac=" MAC "\n"
	"lldp.Ethernet0.chassis.name=spine01\nlldp.Ethernet0.port.ifname=Ethernet8\n"
	"lldp.Ethernet0.port.descr=etp3\nlldp.Ethernet4.chassis.name=gpu01\n"
	"lldp.Ethernet4.port.mac=" MAC "\nlldp.Ethernet4.port.descr=eth2\n"
	"lldp.eth0.port.mac=" MAC "\n",
	/* -f json */
	"{\"lldp\":{\"interface\":[{\"Ethernet0\":{\"chassis\":{\"spine01\":{\"id\":{\"type\":"
	"\"mac\",\"value\":\"" MAC "\"}}},\"port\":{\"id\":{\"type\":\"ifname\",\"value\":"
	"\"Ethernet8\"},\"descr\":\"etp3\"}}},{\"Ethernet4\":{\"chassis\":{\"gpu01\":{\"id\":{}}},"
	"\"port\":{\"id\":{\"type\":\"mac\",\"value\":\"" MAC "\"},\"descr\":\"eth2\"}}},{\"eth0\":"
	"{\"chassis\":{\"id\":{\"type\":\"mac\"}},\"port\":{}}}]}}",
	/* -f json, of old releases: one object */
	"{\"lldp\":{\"interface\":{\"Ethernet0\":{\"chassis\":{\"name\":\"spine01\",\"id\":{}},"
	"\"port\":{\"id\":[{\"type\":\"ifname\",\"value\":\"Ethernet8\"}],\"descr\":\"etp3\"}},"
	"\"Ethernet4\":{\"chassis\":{\"gpu01\":{}},\"port\":{\"id\":{\"type\":\"mac\",\"value\":"
	"\"" MAC "\"},\"descr\":\"eth2\"}}}}}",
	/* -f json0 */
	"{\"lldp\":[{\"interface\":[{\"name\":\"Ethernet0\",\"chassis\":[{\"id\":[{\"type\":"
	"\"mac\",\"value\":\"x\"}],\"name\":[{\"value\":\"spine01\"}]}],\"port\":[{\"id\":[{"
	"\"type\":\"local\",\"value\":\"Ethernet8\"}],\"descr\":[{\"value\":\"etp3\"}]}]},{"
	"\"name\":\"Ethernet4\",\"chassis\":[{\"name\":[{\"value\":\"gpu01\"}]}],\"port\":[{"
	"\"id\":[{\"type\":\"mac\",\"value\":\"" MAC "\"}],\"descr\":[{\"value\":\"eth2\"}]}]}]}]}",
	/* show lldp table, moved to the right as when copied from a manual */
	"  Capability codes: (R) Router, (B) Bridge, (O) Other\n"
	"  LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr\n"
	"  -----------  --------------  -----------------  ------------  -----------------\n"
	"  Ethernet0    spine01         Ethernet8          BR            etp3\n"
	"  Ethernet4    gpu01           " MAC "  O             eth2\n"
	"  eth0                         " MAC "  B             23\n"
	"  --------------------------------------------------\n  Total entries displayed:  3\n",
	/* nv show interface ... */
	"Interface  MTU   Speed  Type  Remote Host  Remote Port\n"
	"---------  ----  -----  ----  -----------  -----------\n"
	"Ethernet0  9216  400G   swp   spine01      Ethernet8\n"
	"Ethernet4  9216  400G   swp   gpu01        eth2\n"
	"lo         65536        lo\n",
	/* ... -o json, whole and of its lldp alone */
	"{\"Ethernet0\":{\"link\":{\"mtu\":9216},\"lldp\":{\"neighbor\":{\"spine01\":{\"chassis\":{"
	"\"system-name\":\"spine01\"},\"port\":{\"name\":\"Ethernet8\"}}}}},\"Ethernet4\":{\"lldp\":"
	"{\"neighbor\":{\"gpu01\":{\"port\":{\"name\":\"" MAC "\",\"description\":\"eth2\"}}}}},"
	"\"eth0\":{\"lldp\":{}}}",
	"{\"interface\":{\"Ethernet0\":{\"neighbor\":{\"1\":{\"chassis\":{\"system-name\":"
	"\"spine01\"},\"port\":{\"name\":\"Ethernet8\"}}}},\"Ethernet4\":{\"neighbor\":{\"gpu01\":{"
	"\"port\":{\"name\":\"eth2\"}}}}}}",
};

static int parse(const char *text, const char *name, struct switch_lldp *l)
{
	struct fb_err e = {0};
	return switch_lldp_parse(text, strlen(text), name, l, &e);
}

static void test_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct switch_lldp l;
		if (parse(forms[i], "lldp", &l) != 0 || l.n != 2)
			fail_msg("form %zu: %d neighbours", i, l.n);
		assert_string_equal(l.link[0].port, "Ethernet0");
		assert_string_equal(l.link[0].host, "spine01");
		assert_string_equal(l.link[0].far_port, "Ethernet8");
		assert_string_equal(l.link[1].port, "Ethernet4");
		assert_string_equal(l.link[1].host, "gpu01");
		assert_string_equal(l.link[1].far_port, "eth2");
		switch_lldp_free(&l);
	}
}

/* What is something else stays with those who read that, and refuse it with its place. */
static void test_others(void **state)
{
	static const char *const texts[] = {"", "text\n", "[1]", "{\"lldp\":", "{\"a\":1}",
		"{\"PORT\":{\"Ethernet0\":{}},\"lldp\":{\"interface\":{}}}",
		"{\"qos\":{},\"interface\":{\"swp1\":{\"lldp\":{\"neighbor\":{}}}}}",
		"{\"interface\":{\"swp1\":{\"link\":{},\"lldp\":{\"neighbor\":{}}}}}",
		"a  b\n-  -\n1  2\n"};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct switch_lldp l;
		assert_int_equal(parse(texts[i], "x", &l), 1);
		assert_null(l.link);
	}
}

/* ---- whose they are -------------------------------------------------------------------------- */

static int owner(const char *path, const char *const *name, const char *const *file, int before)
{
	struct switch_facts sw[2];
	struct switch_lldp l = {.n = 0};
	struct fb_err e = {0};
	int n = 0;
	for (; n < 2 && name[n]; n++) {
		sw[n] = (struct switch_facts){.ports = 0};
		snprintf(sw[n].name, sizeof(sw[n].name), "%s", name[n]);
		snprintf(sw[n].path, sizeof(sw[n].path), "%s", file[n]);
	}
	snprintf(l.path, sizeof(l.path), "%s", path);
	int rc = switch_lldp_owner(&l, sw, n, before, &e);
	if (rc < 0)
		assert_true(e.exit == FB_EXIT_USAGE && strstr(e.msg, path) && e.hint[0]);
	return rc < 0 ? -1 : rc;
}

static void test_owner(void **state)
{
	static const char *const names[] = {"leaf1.example.com", "leaf10"};
	static const char *const flat[] = {"a.json", "b.json"};
	static const char *const folders[] = {"x/leaf1/config_db.json", "x/leaf10/config_db.json"};
	static const char *const one[] = {"leaf1", NULL}, *const none[] = {NULL};
	(void)state;
	assert_int_equal(owner("leaf1-lldp.json", names, flat, -1), 0);
	assert_int_equal(owner("lldp_LEAF10.txt", names, flat, -1), 1);
	assert_int_equal(owner("b.lldp.json", names, flat, -1), 1);
	assert_int_equal(owner("n/leaf10/lldp.json", names, flat, -1), 1);
	assert_int_equal(owner("x/leaf1/lldp.json", flat, folders, -1), 0);
	assert_int_equal(owner("lldp.json", one, flat, -1), 0);
	assert_int_equal(owner("lldp.json", names, flat, 1), 1);
	assert_int_equal(owner("lldp.json", names, flat, -1), -1);
	assert_int_equal(owner("leaf100.json", names, flat, -1), -1);
	assert_int_equal(owner("lldp.json", none, flat, -1), -1);
}

/* ---- at the ports ---------------------------------------------------------------------------- */

static void apply(struct switch_facts *s, const char *text, int want)
{
	struct switch_lldp l;
	struct fb_err e = {0};
	assert_int_equal(parse(text, "leaf01-lldp.json", &l), 0);
	int rc = switch_lldp_apply(&l, s, &e);
	assert_int_equal(rc, want);
	switch_lldp_free(&l);
}

static void test_apply(void **state)
{
	struct switch_facts s[2];
	struct fb_err e = {0};
	(void)state;
	assert_int_equal(switch_read(DIR "sonic-default.json", &s[0], &e), 0);
	assert_int_equal(switch_read(DIR "sonic-spine.json", &s[1], &e), 0);
	apply(&s[0],
		"{\"lldp\":{\"interface\":{\"eth2\":{\"chassis\":{\"x\":{}},\"port\":{\"descr\":"
		"\"y\"}}}}}",
		-EINVAL);
	/* The identity is a number that spine01 does not know, and the description is its port. */
	apply(&s[0],
		"{\"lldp\":{\"interface\":{\"Ethernet0\":{\"chassis\":{\"spine01\":{}},\"port\":{"
		"\"id\":{\"type\":\"local\",\"value\":\"513\"},\"descr\":\"Ethernet0\"}}}}}",
		0);
	assert_string_equal(s[0].port[0].neighbour_port, "513");
	switch_pair(s, 2);
	assert_string_equal(s[0].port[0].neighbour_port, "Ethernet0");
	/* What was planned stays where nothing is known to be plugged in. */
	assert_string_equal(s[0].port[1].neighbour, "gpu01");
	apply(&s[0], forms[0], -EINVAL);
	switch_free(&s[0]);
	switch_free(&s[1]);
}

/* A file that speaks of all ports as one has a port for each cable then. */
static void test_every_port(void **state)
{
	struct switch_facts s;
	struct fb_err e = {0};
	(void)state;
	assert_int_equal(switch_read(DIR "nvidia-roce-show.json", &s, &e), 0);
	assert_int_equal(s.ports, 1);
	int pfc = s.port[0].pfc;
	apply(&s,
		"{\"swp1\":{\"lldp\":{\"neighbor\":{\"a\":{\"port\":{\"name\":\"eth1\"}}}}},\"eth0\":{"
		"\"lldp\":{\"neighbor\":{\"b\":{\"port\":{\"name\":\"x\"}}}}},\"swp2s1\":{\"lldp\":{"
		"\"neighbor\":{\"c\":{\"port\":{\"name\":\"swp9\"}}}}}}",
		0);
	assert_int_equal(s.ports, 2);
	assert_string_equal(s.port[1].name, "swp2s1");
	assert_string_equal(s.port[1].neighbour_port, "swp9");
	assert_int_equal(s.port[1].pfc, pfc);
	assert_true(s.has[SWITCH_NEIGHBOURS]);
	switch_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
		cmocka_unit_test(test_others), cmocka_unit_test(test_owner),
		cmocka_unit_test(test_apply), cmocka_unit_test(test_every_port)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
