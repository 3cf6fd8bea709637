// SPDX-License-Identifier: Apache-2.0
/*
 * iblinkinfo by its options and versions: with and without -l, --switches-only, --cas-only, headers
 * without a colon, and warnings among the lines.
 */
#include "topo/fabric/fabric_test.h"

/* Four hosts, two rails; node3's cables are swapped, and node1's on rail 0 is slow. */
#define HOSTS 4
static int leaf_of(int host, int rail)
{
	return host == HOSTS - 1 ? 1 - rail : rail;
}

static int hca_lid(int host, int rail)
{
	return 10 + host * 2 + rail;
}

static unsigned hca_guid(int host, int rail)
{
	return 0x101u + (unsigned)(host * 2 + rail) * 2;
}

static void put_link(FILE *out, bool slow)
{
	fprintf(out, " ==( 4X %18s Active/  LinkUp)==>  ", slow ? "25.78125 Gbps" : "53.125 Gbps");
}

static void put_tail(FILE *out, bool slow)
{
	fprintf(out, "\" (Could be 12X %s)\n", slow ? "Could be 53.125 Gbps" : "");
}

static void put_switch(FILE *out, int leaf, bool line, const char *head)
{
	if (!line)
		fprintf(out, "%s0x%016x leaf%d:\n", head, 0x20u + (unsigned)leaf, leaf);
	for (int host = 0; host < HOSTS; host++) {
		int rail = leaf_of(host, 0) == leaf ? 0 : 1;
		bool slow = host == 1 && rail == 0;
		if (line)
			fprintf(out, "0x%016x \"%30s%d\"", 0x20u + (unsigned)leaf, "leaf", leaf);
		fprintf(out, " %6d %4d[  ]", 1 + leaf, 1 + host);
		put_link(out, slow);
		if (line)
			fprintf(out, "0x%016x ", hca_guid(host, rail));
		fprintf(out, "%6d    1[  ] \"node%d mlx5_%d", hca_lid(host, rail), host, rail);
		put_tail(out, slow);
	}
	if (!line)
		fprintf(out,
			"%8d   40[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n",
			1 + leaf);
}

static void put_ca(FILE *out, int host, int rail, bool line, const char *head)
{
	int leaf = leaf_of(host, rail);
	bool slow = host == 1 && rail == 0;
	if (!line)
		fprintf(out, "%snode%d mlx5_%d:\n", head, host, rail);
	fprintf(out, "%s0x%016x ", line ? "" : "      ", hca_guid(host, rail));
	if (line)
		fprintf(out, "\"%22s%d mlx5_%d\"", "node", host, rail);
	fprintf(out, " %6d    1[  ]", hca_lid(host, rail));
	put_link(out, slow);
	if (line)
		fprintf(out, "0x%016x ", 0x20u + (unsigned)leaf);
	fprintf(out, "%6d %4d[  ] \"leaf%d", 1 + leaf, 1 + host, leaf);
	put_tail(out, slow);
}

struct form {
	const char *what;
	bool line, switches, cas;
	const char *sw, *ca; /* how headers begin */
};

static char *made_form(const struct form *m, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	assert_non_null(out);
	for (int leaf = 0; leaf < 2 && m->switches; leaf++)
		put_switch(out, leaf, m->line, m->sw);
	for (int i = 0; i < HOSTS * 2 && m->cas; i++)
		put_ca(out, i / 2, i % 2, m->line, m->ca);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_forms(void **state)
{
	static const struct form all[] = {
		{"iblinkinfo", false, true, true, "Switch: ", "CA: "},
		{"iblinkinfo -l", true, true, true, "", ""},
		{"iblinkinfo --switches-only", false, true, false, "Switch: ", ""},
		{"iblinkinfo --switches-only -l", true, true, false, "", ""},
		{"iblinkinfo --cas-only", false, false, true, "", "CA: "},
		{"iblinkinfo --cas-only -l", true, false, true, "", ""},
		{"older iblinkinfo", false, true, true, "Switch ", "CA "},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct judged j;
		size_t len;
		char *text = made_form(&all[i], &len);
		judge_text(&j, text, len, fabric_parse_linkinfo, NULL, NULL);
		if (j.rc < 0)
			fail_msg("%s: %s", all[i].what, j.e.msg);
		if (j.f->hca.n != 8 || j.f->host.n != 4 || j.f->link.n != 8 || j.f->unresolved)
			fail_msg("%s: %zu HCAs, %zu hosts, %zu cables", all[i].what, j.f->hca.n,
				j.f->host.n, j.f->link.n);
		if (count_rows(&j, "fab.rail", "fail") != 2 ||
			count_rows(&j, "fab.speed", "fail") != 1 || count_rows(&j, NULL, NULL) != 3)
			fail_msg("%s: %d of rail, %d of speed, %d in all", all[i].what,
				count_rows(&j, "fab.rail", "fail"),
				count_rows(&j, "fab.speed", "fail"), count_rows(&j, NULL, NULL));
		assert_has(
			row_text(&j, "fab.rail", "fail", 0, "observed"), "host node3, HCA mlx5_");
		assert_has(row_text(&j, "fab.speed", "fail", 0, "subject"),
			"leaf0 port 2 - node1 mlx5_0");
		judged_free(&j);
		free(text);
	}
}

/* A whole file tells every end's line: one that lacks some was cut, and says so. */
static void test_lines_missing(void **state)
{
	static const struct form whole = {"", false, true, true, "Switch: ", "CA: "};
	struct judged j;
	size_t len;
	char *text = made_form(&whole, &len), *last = strstr(text, "CA: node3 mlx5_1");
	assert_non_null(last);
	judge_text(&j, text, (size_t)(last - text), fabric_parse_linkinfo, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(j.f->unresolved, 1);
	assert_int_equal(j.f->hca.n, 8);
	judged_free(&j);
	free(text);
}

/* Standard error in the same file: not read, and counted. */
static void test_noise(void **state)
{
	static const struct form whole = {"", true, true, true, "", ""};
	static const char noise[] =
		"ibwarn: [2817] mad_rpc: _do_madrpc failed; dport (DR path slid 65535; dlid 65535; 0,1)\r\n"
		"src/query_smp.c:196; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; "
		"Connection timed out\n";
	struct judged j;
	size_t len, n = sizeof(noise) - 1;
	char *text = made_form(&whole, &len), *both = malloc(len + n);
	assert_non_null(both);
	memcpy(both, noise, n);
	memcpy(both + n, text, len);
	judge_text(&j, both, len + n, fabric_parse_linkinfo, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(j.f->noise, 2);
	assert_int_equal(count_rows(&j, NULL, NULL), 3);
	judged_free(&j);
	free(both);
	free(text);
}

/* Each port of an HCA is a line with a GUID of its own: two of one HCA are no two of one name. */
static void test_two_ports(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct judged j;
	assert_non_null(out);
	for (int i = 0; i < 12; i++)
		fprintf(out,
			"0x%016x \"node%d mlx5_0\" %d %d[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>  "
			"0x%016x %d %d[  ] \"leaf%d\" ( )\n",
			0x100 + i, i / 2, 10 + i, 1 + i % 2, 0x20 + i % 2, 1 + i % 2, 1 + i / 2,
			i % 2);
	assert_int_equal(fclose(out), 0);
	judge_text(&j, text, len, fabric_parse_linkinfo, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(j.f->host.n, 6);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	judged_free(&j);
	free(text);
}

/* What ibnetdiscover -l and ibhosts write tells nodes, not cables. */
static void test_no_cables(void **state)
{
	static const char list[] = "Ca\t : 0x0000000000100000 ports 1 \"node0 mlx5_0\"\n";
	struct judged j;
	judge_text(&j, list, sizeof(list) - 1, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, -EINVAL);
	assert_has(j.e.msg, "a list of nodes tells no cables");
	judged_free(&j);
}

/* Names in quotes in a header, indentation, and colours kept from a terminal. */
static void test_kept_from_elsewhere(void **state)
{
	static const char text[] =
		"  Switch 0x0000000000000020 \"Old Switch\":\n"
		"  3   1[  ] ==( \033[32m4X\033[0m 53.125 Gbps Active/  LinkUp)==>  4   1[  ] "
		"\"\033[1mn0 mlx5_0\033[0m\" ( )\033[K\n"
		"  3   2[  ] ==(    \033[31mDown/ Polling\033[m)==>       [  ] \"\" ( )\n"
		"  CA: n0 mlx5_0:\n"
		"  0x0000000000000101 4 1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>  3 1[  ] "
		"\"Old Switch\" ( )\n";
	struct judged j;
	judge_text(&j, text, sizeof(text) - 1, fabric_parse_linkinfo, NULL, NULL);
	if (j.rc < 0)
		fail_msg("%s", j.e.msg);
	assert_int_equal(j.f->link.n, 1);
	assert_int_equal(j.f->node.n, 2);
	assert_string_equal(j.f->node.v[0].name, "Old Switch");
	assert_string_equal(j.f->node.v[1].name, "n0 mlx5_0");
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	judged_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_lines_missing),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_two_ports),
		cmocka_unit_test(test_no_cables),
		cmocka_unit_test(test_kept_from_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
