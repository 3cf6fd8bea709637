// SPDX-License-Identifier: Apache-2.0
/*
 * Every file of testdata/ is read as its source says, or refused with the right reason.
 */
#include "topo/fabric/fabric_test.h"

typedef int parse_fn(struct fabric *, const char *, size_t, const char *, struct fb_err *);

struct row {
	const char *file, *counters;
	parse_fn *parse;
	int switches, hosts, hcas, links, leaves, spines, parts;
	const char *found; /* ids and states of all that is wrong, in order */
};
#define RAILS "fab.rail fail, fab.rail fail, "
static const struct row rows[] = {
	{"rail2_misrail_edr.ibnetdiscover.txt", NULL, fabric_parse_discover, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed fail, "},
	{"rail2_misrail_edr.ibnetdiscover-f.txt", NULL, fabric_parse_discover, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed fail, "},
	/* Without every HCA's block the devices are not known: no more than a warning. */
	{"rail2_misrail_edr.ibnetdiscover.part.txt", NULL, fabric_parse_discover, 4, 4, 8, 12, 2, 2,
		1, RAILS "fab.speed warn, "},
	{"rail2_misrail_edr.ibnetdiscover-p.txt", NULL, fabric_parse_discover, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed warn, "},
	{"rail2_misrail_edr.iblinkinfo-l.txt", "rail2_misrail_edr.ibqueryerrors.txt",
		fabric_parse_linkinfo, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed fail, fab.counters fail, "},
	{"rail2_misrail_edr.iblinkinfo.txt", "rail2_misrail_edr.perfquery.txt",
		fabric_parse_linkinfo, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed fail, fab.counters fail, "},
	/* The file has 1xHDR at one end of one cable. */
	{"rail2_misrail_edr.ibsim.net", NULL, fabric_parse_discover, 4, 4, 8, 12, 2, 2, 1,
		RAILS "fab.speed warn, fab.width fail, "},
	{"ibsim-net", NULL, fabric_parse_discover, 2, 2, 2, 4, 1, 1, 1, ""},
	{"ibsim-net.1", NULL, fabric_parse_discover, 1, 2, 2, 2, 1, 0, 1, ""},
	{"ibsim-net.2sw2path", NULL, fabric_parse_discover, 2, 2, 2, 4, 2, 0, 1, ""},
	{"ibsim-net.2sw2path4hca", NULL, fabric_parse_discover, 2, 4, 4, 6, 2, 0, 1, ""},
	{"superbench_ibnetdiscover.txt", NULL, fabric_parse_discover, 8, 10, 10, 18, 5, 2, 1, ""},
	{"ibexporter_ibnetdiscover_p_test.txt", "ibexporter_perfquery_0x506b4b03005c2740.txt",
		fabric_parse_discover, 4, 3, 3, 4, 2, 1, 2, ""},
	{"ibexporter_ibnetdiscover_p_test.txt", "ibexporter_perfquery_0x7cfe9003009ce5b0.txt",
		fabric_parse_discover, 4, 3, 3, 4, 2, 1, 2, ""},
	{"ibexporter_ibnetdiscover_p_test2.txt", NULL, fabric_parse_discover, 5, 1, 1, 3, 1, 0, 2,
		"fab.guid warn, fab.names warn, "},
};

static void list_found(const struct judged *j, char *buf, size_t len)
{
	const json_t *c;
	size_t i, n = 0;
	buf[0] = '\0';
	json_array_foreach (json_object_get(fb_doc_json(j->doc), "checks"), i, c) {
		const char *s = fb_json_str(c, "state", "");
		if (strcmp(s, "warn") == 0 || strcmp(s, "fail") == 0)
			n += (size_t)snprintf(
				buf + n, len - n, "%s %s, ", fb_json_str(c, "id", ""), s);
	}
}

static void test_read(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct judged j;
		char found[512];
		size_t len, n;
		char *text = read_data(r->file, &len);
		char *counters = r->counters ? read_data(r->counters, &n) : NULL;
		judge_text(&j, text, len, r->parse, counters, NULL);
		if (j.rc < 0)
			fail_msg("%s: %s", r->file, j.e.msg);
		const json_t *o = json_object_get(fb_doc_json(j.doc), "fabric");
		list_found(&j, found, sizeof(found));
		print_message("%s: %s\n", r->file, found);
		assert_int_equal(fb_json_int(o, "switches", -1), r->switches);
		assert_int_equal(fb_json_int(o, "hosts", -1), r->hosts);
		assert_int_equal(fb_json_int(o, "hcas", -1), r->hcas);
		assert_int_equal(fb_json_int(o, "links", -1), r->links);
		assert_int_equal(json_array_size(json_object_get(o, "leaves")), r->leaves);
		assert_int_equal(fb_json_int(o, "spines", -1), r->spines);
		assert_int_equal(fb_json_int(o, "fabrics", -1), r->parts);
		assert_string_equal(found, r->found);
		judged_free(&j);
		free(text);
		free(counters);
	}
}

static const struct {
	const char *file;
	parse_fn *parse;
	const char *why, *hint;
} refused[] = {
	{"topograph_ibnetdiscover_bad.txt", fabric_parse_discover, "1 HCA has no port line",
		"cut off"},
	{"superbench_hostfile.txt", fabric_parse_discover, "file:1: ", "ibnetdiscover > FILE"},
	{"superbench_ibstat.txt", fabric_parse_discover, "file:1: ", "ibnetdiscover > FILE"},
	{"superbench_expected_config.txt", fabric_parse_discover,
		"file:1: ", "ibnetdiscover > FILE"},
	{"rail2_misrail_edr.iblinkinfo-l.txt", fabric_parse_discover, "no line of ibnetdiscover",
		"--iblinkinfo"},
	{"rail2_misrail_edr.ibqueryerrors.txt", fabric_parse_discover, "no line of ibnetdiscover",
		"--counters"},
	{"rail2_misrail_edr.ibnetdiscover.txt", fabric_parse_linkinfo, "no line of iblinkinfo",
		"--ibnetdiscover"},
	{"superbench_hostfile.txt", fabric_parse_linkinfo, "no line of iblinkinfo",
		"iblinkinfo -l"},
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct judged j;
		size_t len;
		char *text = read_data(refused[i].file, &len);
		judge_text(&j, text, len, refused[i].parse, NULL, NULL);
		print_message("%s: %s (%s)\n", refused[i].file, j.e.msg, j.e.hint);
		assert_int_equal(j.rc, -EINVAL);
		assert_int_equal(j.e.exit, FB_EXIT_USAGE);
		assert_has(j.e.msg, refused[i].why);
		assert_has(j.e.hint, refused[i].hint);
		judged_free(&j);
		free(text);
	}
}

/* What the perfquery files say, beside that nothing is over a threshold. */
static void test_counters_read(void **state)
{
	struct judged j;
	size_t len, n;
	char *text = read_data("ibexporter_ibnetdiscover_p_test.txt", &len);
	char *counters = read_data("ibexporter_perfquery_0x7cfe9003009ce5b0.txt", &n);
	judge_text(&j, text, len, fabric_parse_discover, counters, NULL);
	int port = fabric_find_port(j.f, 0x7cfe9003009ce5b0, 1);
	assert_true(port >= 0 && j.f->port.v[port].counters >= 0);
	const struct fabric_counters *c = &j.f->counters.v[j.f->port.v[port].counters];
	assert_int_equal(c->v[FABRIC_WAIT], 22730501);
	assert_int_equal(c->v[FABRIC_XMIT_PKTS], 101733204203);
	assert_int_equal(j.f->unplaced, 1); /* port 2 is in no line of the other file */
	judged_free(&j);
	free(text);
	free(counters);
}

/* The words that an operator acts on. */
static void test_words(void **state)
{
	struct judged j;
	size_t len, n;
	char *text = read_data("rail2_misrail_edr.iblinkinfo-l.txt", &len);
	char *counters = read_data("rail2_misrail_edr.ibqueryerrors.txt", &n);
	judge_text(&j, text, len, fabric_parse_linkinfo, counters, NULL);
	const char *seen = row_text(&j, "fab.rail", "fail", 0, "observed");
	assert_has(seen, "mis-cabled");
	assert_has(seen, "host node3");
	assert_has(seen, "HCA mlx5_0");
	assert_has(seen, "switch leaf1 port 4");
	assert_has(row_text(&j, "fab.rail", "fail", 0, "expected"), "leaf0");
	assert_has(row_text(&j, "fab.rail", "fail", 0, "remedy"), "leaf0 port 4");
	assert_has(row_text(&j, "fab.speed", "fail", 0, "subject"), "leaf0 port 2 - node1 mlx5_0");
	assert_has(row_text(&j, "fab.speed", "fail", 0, "observed"), "4x EDR");
	assert_string_equal(row_text(&j, "fab.speed", "fail", 0, "expected"), "HDR");
	assert_has(row_text(&j, "fab.counters", "fail", 0, "subject"), "leaf0 port 3");
	assert_has(row_text(&j, "fab.counters", "fail", 0, "observed"),
		"SymbolErrorCounter 5000, LinkDownedCounter 7; at the other end node2 mlx5_0");
	judged_free(&j);
	free(text);
	free(counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_counters_read),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
