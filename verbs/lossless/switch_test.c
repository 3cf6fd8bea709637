// SPDX-License-Identifier: Apache-2.0
/*
 * Switch checks over constructed configurations: what each finds is in its .golden file, every
 * check passes somewhere, fails somewhere and skips somewhere, and what cannot be right is refused
 * with its place.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "bench/core/test.h"
#include "verbs/lossless/switch.h"

#define DIR          "verbs/lossless/testdata/switch/"
#define MAX_SWITCHES 2

static const struct golden {
	const char *name, *files[MAX_SWITCHES], *profile;
} goldens[] = {
	{"default", {"sonic-default"}, NULL},
	{"default-sonic", {"sonic-default"}, "scripts/profiles/sonic.ini"},
	{"default-26", {"sonic-default"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"default-pfc-only", {"sonic-default"}, DIR "pfc-only.ini"},
	{"default-pfc3", {"sonic-default"}, DIR "pfc3.ini"},
	{"both-ends", {"sonic-default", "sonic-spine"}, NULL},
	{"pfc-missing", {"sonic-default", "sonic-spine-pfc-missing"}, NULL},
	{"roce26", {"sonic-roce26"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"roce26-long-cable", {"sonic-roce26"}, DIR "long-cable.ini"},
	{"roce26-cnp7", {"sonic-roce26"}, "scripts/profiles/dscp26-cnp48-7.ini"},
	{"roce26-mismapped", {"sonic-roce26-mismapped"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"ecn-off", {"sonic-ecn-off"}, NULL},
	{"kmin-over-kmax", {"sonic-kmin-over-kmax"}, NULL},
	{"headroom-small", {"sonic-headroom-small"}, NULL},
	{"no-watchdog", {"sonic-no-watchdog"}, NULL},
	{"watchdog-absent", {"sonic-watchdog-absent"}, NULL},
	{"shared", {"sonic-shared"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"unbound", {"sonic-unbound"}, NULL},
	{"unbound-26", {"sonic-unbound"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"share-small", {"sonic-share-small"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"dynamic", {"sonic-dynamic"}, NULL},
	{"ports-only", {"sonic-ports-only"}, NULL},
	{"qos-only", {"sonic-qos-only"}, NULL},
	{"all-down", {"sonic-all-down"}, NULL},
	{"nvidia-healthy", {"nvidia-healthy"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"nvidia-lossy", {"nvidia-lossy"}, NULL},
	{"nvidia-lossy-26", {"nvidia-lossy"}, "scripts/profiles/dscp26-cnp48-6.ini"},
	{"nvidia-pause", {"nvidia-pause"}, NULL},
	{"nvidia-roce-set", {"nvidia-roce-set"}, NULL},
	{"nvidia-roce-show", {"nvidia-roce-show"}, NULL},
};
#define N_GOLDENS (sizeof(goldens) / sizeof(goldens[0]))

/* ---- what a run finds ------------------------------------------------------------------------ */

static struct fb_doc *new_doc(void)
{
	static char *argv[] = {(char *)"fabricbench", NULL};
	static const struct fb_output_cfg out;
	struct fb_err e = {0};
	struct fb_doc *doc = fb_doc_new("check switch", 1, argv, &out, &e);
	assert_non_null(doc);
	return doc;
}

/* The document of a run; the caller frees it. */
static struct fb_doc *run(const struct golden *g)
{
	struct switch_facts sw[MAX_SWITCHES];
	const struct switch_facts *all[MAX_SWITCHES];
	struct profile profile;
	struct fb_err e = {0};
	char path[256];
	int n = 0;
	profile_none(&profile);
	if (g->profile && profile_read(g->profile, &profile, &e) < 0)
		fail_msg("%s", e.msg);
	for (; n < MAX_SWITCHES && g->files[n]; n++) {
		snprintf(path, sizeof(path), DIR "%s.json", g->files[n]);
		if (switch_read(path, &sw[n], &e) < 0)
			fail_msg("%s", e.msg);
		all[n] = &sw[n];
	}
	switch_pair(sw, n);
	struct fb_doc *doc = new_doc();
	switch_run(all, n, NULL, 0, &profile, doc);
	for (int i = 0; i < n; i++)
		switch_free(&sw[i]);
	return doc;
}

static char *text_of(struct fb_doc *doc)
{
	struct fb_strbuf b = {0};
	const json_t *c;
	size_t i;
	json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), i, c) {
		const char *remedy = fb_json_str(c, "remedy", NULL);
		fb_strbuf_printf(&b, "%s %s %s: %s\n", fb_json_str(c, "id", ""),
			fb_json_str(c, "state", ""), fb_json_str(c, "subject", ""),
			fb_json_str(c, "observed", fb_json_str(c, "reason", "")));
		if (remedy)
			fb_strbuf_printf(&b, "\t%s\n", remedy);
	}
	return fb_strbuf_take(&b);
}

static void test_golden(void **state)
{
	int bad = 0;
	for (size_t i = 0; i < N_GOLDENS; i++) {
		char path[256], *want = NULL;
		size_t len = 0;
		struct fb_err e = {0};
		struct fb_doc *doc = run(&goldens[i]);
		char *got = text_of(doc);
		snprintf(path, sizeof(path), DIR "%s.golden", goldens[i].name);
		int rc = fb_read_file(path, 1 << 20, &want, &len, &e);
		assert_non_null(got);
		if (rc < 0 || strcmp(got, want) != 0) {
			fprintf(stderr, "---- %s is not what was found:\n%s", path, got);
			bad++;
		}
		free(got);
		free(want);
		fb_doc_free(doc);
	}
	assert_int_equal(bad, 0);
}

/* Over all of them every check has passed, failed and skipped. */
static void test_every_state(void **state)
{
	static const enum fb_check_state must[] = {FB_CHECK_PASS, FB_CHECK_FAIL, FB_CHECK_SKIP};
	unsigned seen[16] = {0};
	for (size_t i = 0; i < N_GOLDENS; i++) {
		struct fb_doc *doc = run(&goldens[i]);
		const json_t *c;
		size_t k;
		json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), k, c)
			for (int s = 0; s < FB_CHECK_STATES; s++)
				if (strcmp(fb_json_str(c, "state", ""), fb_check_state_names[s]) ==
					0)
					seen[atol(fb_json_str(c, "id", "S0") + 1) & 15] |= 1u << s;
		fb_doc_free(doc);
	}
	int n = 0;
	for (; switch_checks[n].def.id; n++)
		for (size_t s = 0; s < sizeof(must) / sizeof(must[0]); s++)
			if (!(seen[n + 1] >> must[s] & 1))
				fail_msg("%s is never %s", switch_checks[n].def.id,
					fb_check_state_names[must[s]]);
	assert_int_equal(n, 12);
}

/* What is healthy has no failure. */
static void test_healthy(void **state)
{
	static const char *const healthy[] = {"default", "default-sonic", "both-ends", "roce26",
		"dynamic", "nvidia-healthy", "nvidia-roce-set", "nvidia-roce-show"};
	for (size_t h = 0; h < sizeof(healthy) / sizeof(healthy[0]); h++)
		for (size_t i = 0; i < N_GOLDENS; i++) {
			if (strcmp(goldens[i].name, healthy[h]) != 0)
				continue;
			struct fb_doc *doc = run(&goldens[i]);
			assert_int_equal(fb_check_judge(doc, NULL), 0);
			fb_doc_free(doc);
		}
}

static void test_table(void **state)
{
	for (int i = 0; i < 12; i++) {
		const struct fb_check_def *d = &switch_checks[i].def;
		char id[8];
		snprintf(id, sizeof(id), "S%02d", i + 1);
		assert_string_equal(d->id, id);
		assert_true(d->title && d->needs && d->rule && d->remedy && d->source);
		assert_string_equal(d->evidence, "constructed");
	}
	assert_null(switch_checks[12].def.id);
}

/* ---- hosts at the other end ------------------------------------------------------------------ */

static void test_host_end(void **state)
{
	struct switch_facts s;
	struct fb_err e = {0};
	struct profile profile;
	struct node_facts host = {.host = "gpu01", .ports = 1};
	const struct node_facts *hosts[] = {&host};
	const struct switch_facts *all[] = {&s};
	host.port = calloc(1, sizeof(*host.port));
	assert_non_null(host.port);
	profile_none(&profile);
	snprintf(host.port->netdev, sizeof(host.port->netdev), "eth2");
	assert_int_equal(switch_read(DIR "sonic-default.json", &s, &e), 0);
	const struct switch_input in = {.sw = &s,
		.port = &s.port[1],
		.all = all,
		.n_all = 1,
		.hosts = hosts,
		.n_hosts = 1,
		.profile = &profile};
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	assert_string_equal(in.port->neighbour, "gpu01");
	switch_checks[2].run(&in, &f);
	assert_int_equal(f.state, FB_CHECK_SKIP);
	host.port->dcb.pfc_f.state = FACT_KNOWN;
	host.port->dcb.pfc.en = 1 << 3;
	switch_checks[2].run(&in, &f);
	assert_int_equal(f.state, FB_CHECK_FAIL);
	assert_string_equal(f.observed, "PFC here: 3 and 4; at gpu01 eth2: 3");
	host.port->dcb.pfc.en = 1 << 3 | 1 << 4;
	switch_checks[2].run(&in, &f);
	assert_int_equal(f.state, FB_CHECK_PASS);
	free(host.port);
	switch_free(&s);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void test_model(void **state)
{
	struct switch_facts s;
	struct fb_err e = {0};
	assert_int_equal(switch_read(DIR "sonic-default.json", &s, &e), 0);
	assert_string_equal(s.name, "leaf01");
	assert_int_equal(s.ports, 3);
	const struct switch_port *p = &s.port[0];
	assert_string_equal(p->name, "Ethernet0");
	assert_int_equal(p->speed_mbps, 100000);
	assert_int_equal(p->cable_m, 40);
	assert_int_equal(p->pfc, 1 << 3 | 1 << 4);
	assert_int_equal(p->dscp_class[26], 1);
	assert_int_equal(p->class_group[1], 0);
	assert_int_equal(switch_lossless(p), 1 << 3 | 1 << 4);
	assert_int_equal(p->buffer[3].headroom, 49152);
	/* alpha 1 of 26284032: half of the pool */
	assert_int_equal(p->buffer[3].starts_at, 13142016);
	assert_int_equal(p->wred[3].kmin, 1048576);
	assert_int_equal(p->wred[3].kmax, 2097152);
	assert_true(p->wred[3].marks);
	assert_int_equal(p->scheduler[3].share, 15);
	assert_false(s.port[2].used);
	switch_free(&s);
	assert_int_equal(switch_read(DIR "nvidia-healthy.json", &s, &e), 0);
	assert_int_equal(s.ports, 2);
	assert_int_equal(s.port[0].speed_mbps, 400000);
	assert_int_equal(s.port[0].mtu, 9216);
	assert_int_equal(s.port[0].pfc, 1 << 3);
	/* 344.73 KB less 63.48 KB */
	assert_int_equal(s.port[0].buffer[3].headroom, 288000);
	assert_int_equal(s.poll_ms, 100);
	assert_int_equal(s.port[0].watchdog.detect_ms, 300);
	switch_free(&s);
}

/* Ports in lists, ranges and old references mean the same. */
static void test_keys(void **state)
{
	static const char text[] =
		"{\"PORT\":{\"Ethernet0\":{},\"Ethernet4\":{}},"
		"\"BUFFER_PROFILE\":{\"ll\":{\"xoff\":\"50000\",\"size\":1000}},"
		"\"BUFFER_PG\":{\"Ethernet0,Ethernet4|3-4\":{\"profile\":\"[BUFFER_PROFILE|ll]\"}},"
		"\"QUEUE\":{\"leaf|asic0|Ethernet4|3\":{\"wred_profile\":\"w\"},"
		"\"Ethernet0|12\":{\"wred_profile\":\"w\"}},"
		"\"WRED_PROFILE\":{\"w\":{\"ecn\":\"ecn_green\",\"wred_green_enable\":\"true\"}}}";
	struct switch_facts s;
	struct fb_err e = {0};
	if (switch_parse(text, strlen(text), "keys.json", &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(s.name, "keys");
	for (int i = 0; i < 2; i++)
		for (int g = 3; g <= 4; g++) {
			assert_string_equal(s.port[i].buffer[g].name, "ll");
			assert_int_equal(s.port[i].buffer[g].headroom, 50000);
			assert_int_equal(s.port[i].buffer[g].size, 1000);
		}
	assert_true(s.port[1].wred[3].marks);
	assert_false(s.port[0].wred[3].marks);
	switch_free(&s);
}

/* A switch without a name of its own, or with an empty one, has the file's. */
static void test_nameless(void **state)
{
	static const char *const texts[] = {
		"{\"PORT\":{\"Ethernet0\":{}},\"DEVICE_METADATA\":{\"localhost\":{\"hostname\":\"\"}}}",
		"{\"system\":{\"hostname\":\"\"},\"interface\":{\"swp1\":{}}}",
		"{\"PORT\":{\"Ethernet0\":{}},\"DEVICE_METADATA\":{\"localhost\":{}}}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct switch_facts s;
		struct fb_err e = {0};
		if (switch_parse(texts[i], strlen(texts[i]), "leaf07.json", &s, &e) < 0)
			fail_msg("%s", e.msg);
		assert_string_equal(s.name, "leaf07");
		assert_false(s.named);
		switch_free(&s);
	}
}

/* ---- what cannot be right -------------------------------------------------------------------- */

static void refused(const char *text, size_t len, const char *place)
{
	struct switch_facts s;
	struct fb_err e = {0};
	assert_true(switch_parse(text, len, "x.json", &s, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	if (!strstr(e.msg, place))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, place);
	assert_null(s.port);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *place;
	} bad[] = {
		{"", "x.json:1:"},
		{"{\"PORT\":", "x.json:1:"},
		{"{\"PORT\":{},\"PORT\":{}}", "duplicate"},
		{"{\"a\":1}", "neither a SONiC"},
		{"[1,2]", "neither a SONiC"},
		{"{\"PORT\":[]}", "PORT: it is a list, not an object"},
		{"{\"PORT\":{\"Ethernet0\":3}}", "PORT|Ethernet0: it is a number"},
		{"{\"PORT\":{\"Ethernet0\":{\"mtu\":\"big\"}}}", "PORT|Ethernet0|mtu: \"big\""},
		{"{\"PORT\":{\"Ethernet0\":{\"mtu\":99999999}}}",
			"PORT|Ethernet0|mtu: 99999999 is not from 68 to 65535"},
		{"{\"PORT\":{\"Ethernet0\":{\"speed\":{}}}}",
			"PORT|Ethernet0|speed: it is an object"},
		{"{\"PORT\":{\"Ethernet0\":{}},\"CABLE_LENGTH\":{\"A\":{\"Ethernet0\":\"long\"}}}",
			"CABLE_LENGTH|A: Ethernet0 has \"long\""},
		{"{\"PORT\":{\"Ethernet0\":{}},\"PORT_QOS_MAP\":{\"Ethernet0\":{\"pfc_enable\":"
		 "\"3,9\"}}}",
			"PORT_QOS_MAP|pfc_enable"},
		{"{\"PORT\":{\"Ethernet0\":{}},\"BUFFER_PG\":{\"Ethernet0\":{}}}",
			"BUFFER_PG|Ethernet0: the name is not PORT|NUMBER"},
		{"{\"PORT\":{\"Ethernet0\":{}},\"QUEUE\":{\"Ethernet0|4-3\":{}}}",
			"QUEUE|Ethernet0|4-3"},
		{"{\"PORT\":{\"Ethernet0\":{}},\"DSCP_TO_TC_MAP\":{\"M\":{\"64\":\"0\"}},"
		 "\"PORT_QOS_MAP\":{\"Ethernet0\":{\"dscp_to_tc_map\":\"M\"}}}",
			"DSCP_TO_TC_MAP|M: \"64\""},
		{"{\"qos\":{\"pfc\":{\"default-global\":{\"switch-priority\":{\"8\":{}}}}}}",
			"qos|pfc|default-global"},
		{"{\"qos\":{\"pfc\":{\"default-global\":{\"rx\":\"perhaps\"}}}}",
			"qos|pfc|default-global|rx: \"perhaps\""},
		{"{\"qos\":{\"congestion-control\":{\"default-global\":{\"traffic-class\":{\"3\":{"
		 "\"min-threshold\":\"1 mile\"}}}}}}",
			"min-threshold: \"1 mile\""},
		{"{\"qos\":{\"pfc\":{\"default-global\":{}}},\"interface\":{\"swp1\":{\"qos\":{"
		 "\"pfc\":{\"profile\":\"mine\"}}}}}",
			"qos|pfc|mine: swp1 names it"},
		{"{\"qos\":{},\"interface\":{\"swp9-1\":{}}}",
			"interface: \"swp9-1\" is not a range of ports"},
		{"{\"qos\":{\"pfc-watchdog\":{\"polling-interval\":\"soon\"}}}",
			"polling-interval"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i].text, strlen(bad[i].text), bad[i].place);
}

/* Every beginning of a file is refused, or read, and nothing else. */
static void test_truncated(void **state)
{
	static const char *const files[] = {DIR "sonic-roce26.json", DIR "nvidia-healthy.json"};
	for (size_t k = 0; k < 2; k++) {
		char *text = NULL;
		size_t len = 0;
		struct fb_err e = {0};
		assert_int_equal(fb_read_file(files[k], 1 << 20, &text, &len, &e), 0);
		for (size_t n = 0; n + 2 < len; n += 7)
			refused(text, n, "x.json:");
		free(text);
	}
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What is large on purpose is refused before it costs anything: the bound is generous, the cost of
 * what it guards against was minutes. */
static void test_hostile(void **state)
{
	struct fb_strbuf b = {0};
	double start = seconds();
	for (int i = 0; i < 50000; i++)
		fb_strbuf_add(&b, "[");
	refused(b.s, b.len, "x.json:1:");
	fb_strbuf_free(&b);
	fb_strbuf_add(&b, "{\"PORT\":{");
	for (int i = 0; i <= SWITCH_MAX_PORTS; i++)
		fb_strbuf_printf(&b, "%s\"Ethernet%d\":{}", i ? "," : "", i);
	fb_strbuf_add(&b, "}}");
	refused(b.s, b.len, "more than 2048 ports");
	fb_strbuf_free(&b);
	fb_strbuf_add(&b, "{\"PORT\":{\"Ethernet0\":{}},\"QUEUE\":{\"");
	for (int i = 0; i < 200000; i++)
		fb_strbuf_add(&b, "Ethernet0,");
	fb_strbuf_add(&b, "Ethernet0|0-7\":{\"scheduler\":\"s\"}}}");
	refused(b.s, b.len, "too many entries");
	fb_strbuf_free(&b);
	for (unsigned i = 0; i <= SWITCH_MAX_OBJECTS; i++)
		fb_strbuf_add(&b, "{");
	refused(b.s, b.len, "(top): more than");
	fb_strbuf_free(&b);
	fb_strbuf_add(&b, "{\"PORT\":{\"Ethernet0\":{}},\"CABLE_LENGTH\":{");
	for (int i = 0; i < 1000; i++)
		fb_strbuf_printf(&b, "%s\"t%d\":{}", i ? "," : "", i);
	fb_strbuf_add(&b, "}}");
	refused(b.s, b.len, "CABLE_LENGTH: 1000 tables are too many");
	fb_strbuf_free(&b);
	assert_true(seconds() - start < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_every_state),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_host_end),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_hostile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
