// SPDX-License-Identifier: Apache-2.0
/*
 * Made fabrics with one thing wrong: it is found, and nothing else.
 */
#include "topo/fabric/fabric_test.h"

static void assert_only(const struct judged *j, const char *id, int n)
{
	int found = count_rows(j, id, NULL), all = count_rows(j, NULL, NULL);
	if (found != n || all != n)
		fail_msg("%d of %s among %d findings, not %d", found, id, all, n);
}

static struct made many_rails(void)
{
	struct made m = made_small();
	m.rails = 8;
	m.hosts = 24;
	return m;
}

static void test_healthy(void **state)
{
	const struct made two = made_small(), eight = many_rails();
	struct judged j;
	judge_made(&j, &two, NULL, NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_int_equal(count_rows(&j, "fab.rail", "pass"), 1);
	assert_has(row_text(&j, "fab.rail", "pass", 0, "observed"), "32 of 32");
	assert_has(row_text(&j, "fab.blocking", "pass", 0, "observed"), "1:1 on every leaf");
	judged_free(&j);
	judge_made(&j, &eight, NULL, NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_has(row_text(&j, "fab.rail", "pass", 0, "observed"), "192 of 192");
	const json_t *o = json_object_get(fb_doc_json(j.doc), "fabric");
	assert_int_equal(json_array_size(json_object_get(o, "rails")), 8);
	assert_int_equal(json_array_size(json_object_get(o, "leaves")), 24);
	assert_string_equal(
		fb_json_str(json_array_get(json_object_get(o, "leaves"), 3), "rail", ""), "mlx5_3");
	judged_free(&j);
}

/* ---- rails ----------------------------------------------------------------------------------- */

static void test_swapped(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.swapped[0][0] = 10; /* node5 mlx5_0 and mlx5_1 */
	m.swapped[0][1] = 11;
	m.n_swapped = 1;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 2);
	assert_has(row_text(&j, "fab.rail", "fail", 1, "observed"),
		"mis-cabled: host node5, HCA mlx5_0 is on switch leaf1 port 6");
	assert_has(row_text(&j, "fab.rail", "fail", 1, "expected"), "leaf0");
	assert_has(row_text(&j, "fab.rail", "fail", 1, "remedy"),
		"leaf1 port 6 and leaf0 port 6: there is node5 mlx5_1");
	assert_has(row_text(&j, "fab.rail", "fail", 0, "observed"),
		"mis-cabled: host node5, HCA mlx5_1 is on switch leaf0 port 6");
	judged_free(&j);
}

/* Among eight rails; of two hosts; and in three hosts at once. */
static void test_swapped_more(void **state)
{
	struct made m = many_rails();
	struct judged j;
	m.swapped[0][0] = 3 * 8 + 2;
	m.swapped[0][1] = 3 * 8 + 6;
	m.n_swapped = 1;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 2);
	judged_free(&j);
	m.swapped[0][1] = 4 * 8 + 6; /* node3 mlx5_2 with node4 mlx5_6 */
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 2);
	judged_free(&j);
	m.swapped[0][1] = 3 * 8 + 6;
	m.swapped[1][0] = 9 * 8 + 2;
	m.swapped[1][1] = 9 * 8 + 6;
	m.swapped[2][0] = 10 * 8 + 0;
	m.swapped[2][1] = 10 * 8 + 1;
	m.n_swapped = 3;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 6);
	judged_free(&j);
}

/* The right rail in the wrong group of hosts: no majority of a leaf could see it. */
static void test_other_group(void **state)
{
	struct made m = many_rails();
	struct judged j;
	m.swapped[0][0] = 2 * 8 + 7;
	m.swapped[0][1] = 12 * 8 + 7; /* node2 and node12 are in different groups of 8 */
	m.n_swapped = 1;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 2);
	assert_has(row_text(&j, "fab.rail", "fail", 0, "expected"), "leaf7,");
	judged_free(&j);
	/* On one leaf, two cables change nothing but ports. */
	m.swapped[0][1] = 3 * 8 + 7;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 0);
	judged_free(&j);
}

/* With two hosts nobody can say who is right. */
static void test_too_few(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.hosts = 2;
	m.swapped[0][0] = 2;
	m.swapped[0][1] = 3;
	m.n_swapped = 1;
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, "fab.rail", "skip"), 1);
	assert_int_equal(count_rows(&j, "fab.rail", NULL), 0);
	judged_free(&j);
	m.hosts = 3; /* two agree against one */
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.rail", 2);
	judged_free(&j);
}

/* Racks: all HCAs of a host on one leaf. Nothing is wrong with that. */
static void test_racks(void **state)
{
	char *text = NULL;
	size_t len;
	struct judged j;
	FILE *out = open_memstream(&text, &len);
	for (int leaf = 0; leaf < 4; leaf++) {
		made_switch_head(out, MADE_LEAF + (unsigned)leaf, "leaf", leaf, 1);
		for (int p = 0; p < 32; p++)
			fprintf(out, "[%d]\t\"H-%016x\"[1](%x) \t\t# \"n%d mlx5_%d\" lid 9 4xHDR\n",
				p + 1, 0x1000 + (leaf * 32 + p) * 2, 0x1001 + (leaf * 32 + p) * 2,
				leaf * 4 + p / 8, p % 8);
		made_to_switch(out, 40, MADE_SPINE, leaf + 1, "spine", 0, "4xHDR");
	}
	fclose(out);
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	judged_free(&j);
	free(text);
}

/* HCAs with the maker's description are hosts of their own, and no rail is made of them. */
static void test_factory(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.factory = 30;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.names", 2);
	assert_has(row_text(&j, "fab.names", "warn", 0, "observed"),
		"the maker's description; on leaf");
	assert_int_equal(
		fb_json_int(json_object_get(fb_doc_json(j.doc), "fabric"), "hosts", 0), 17);
	judged_free(&j);
}

/* PCI names: machines of one kind have them in one order, whatever the numbers. */
static void test_pci_names(void **state)
{
	static const int bus[3][2] = {{11, 202}, {3, 41}, {25, 9}};
	char *text = NULL;
	size_t len;
	struct judged j;
	FILE *out = open_memstream(&text, &len);
	for (int leaf = 0; leaf < 2; leaf++) {
		made_switch_head(out, MADE_LEAF + (unsigned)leaf, "leaf", leaf, 1);
		for (int h = 0; h < 6; h++) {
			/* The third kind has its HCAs the other way round: host 5 alone is
			 * mis-cabled. */
			int kind = h == 5 ? 2 : h % 2, c = h * 2 + leaf;
			fprintf(out, "[%d]\t\"H-%016x\"[1](%x) \t\t# \"n%d ibp%ds0\" lid 9 4xHDR\n",
				h + 1, 0x1000 + c * 2, 0x1001 + c * 2, h, bus[kind][leaf]);
		}
	}
	fclose(out);
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(count_rows(&j, "fab.rail", "fail"), 2);
	assert_has(row_text(&j, "fab.rail", "fail", 0, "observed"), "host n5");
	judged_free(&j);
	free(text);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void test_slow(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.slow = 7;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.speed", 1);
	assert_int_equal(count_rows(&j, "fab.speed", "fail"), 1);
	assert_has(row_text(&j, "fab.speed", "fail", 0, "subject"), "node3 mlx5_1");
	assert_has(row_text(&j, "fab.speed", "fail", 0, "expected"), "HDR, as 31 of 32");
	judged_free(&j);
	m.slow = -1;
	m.narrow = 7;
	judge_made(&j, &m, NULL, NULL);
	assert_only(&j, "fab.width", 1);
	assert_has(row_text(&j, "fab.width", "fail", 0, "observed"), "1x HDR, 50 Gb/s");
	judged_free(&j);
}

/* Half the links slower than the best: one warning, not a hundred. */
static void test_many_slow(void **state)
{
	char *text = NULL;
	size_t len;
	struct judged j;
	FILE *out = open_memstream(&text, &len);
	made_switch_head(out, MADE_LEAF, "leaf", 0, 1);
	for (int p = 1; p <= 20; p++)
		fprintf(out, "[%d]\t\"H-%016x\"[1](%x) \t\t# \"n%d mlx5_0\" lid 9 4x%s\n", p,
			0x100 + p * 2, 0x101 + p * 2, p, p <= 11 ? "EDR" : "HDR");
	for (int p = 1; p <= 20; p++)
		fprintf(out,
			"vendid=0x2c9\ndevid=0x101b\ncaguid=0x%x\nCa\t1 \"H-%016x\"\t\t# \"n%d mlx5_0\"\n"
			"[1](%x) \t\"S-%016" PRIx64
			"\"[%d]\t\t# lid 9 lmc 0 \"leaf0\" lid 1 4x%s\n",
			0x100 + p * 2, 0x100 + p * 2, p, 0x101 + p * 2, (uint64_t)MADE_LEAF, p,
			p <= 11 ? "EDR" : "HDR");
	fclose(out);
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_only(&j, "fab.speed", 1);
	assert_has(row_text(&j, "fab.speed", "warn", 0, "observed"),
		"11 of 20 links between the same devices");
	judged_free(&j);
	free(text);
}

/* What dumps may hold besides: chassis, outer ports, names with quotes and dashes or without. */
static void test_dialects(void **state)
{
	static const char grouped[] =
		"Chassis 1 (guid 0x8f10400411f56)\nHostname: core\n\n# Spine Nodes\nvendid=0x8f1\ndevid=0x5a42\n"
		"sysimgguid=0x8f10400411f56\t\t# Chassis 1\nswitchguid=0x10(10)\t# sLB-2024 spine 1\n"
		"Switch\t24 \"S-0000000000000010\"\t\t# \"a - b's \"core\"\" base port 0 lid 1 lmc 0\n"
		"[1][ext 12]\t\"H-0000000000000020\"[1][ext 1](21) \t\t# \"n1 HCA-1\" lid 2 4xQDR\n"
		"\nNon-Chassis Nodes\n\nvendid=0x2c9\ndevid=0x1\ncaguid=0x20\nCa\t2 \"H-0000000000000020\"\t\t"
		"# \"n1 HCA-1\"\n[1](21) \t\"S-0000000000000010\"[1][ext 12]\t\t# lid 2 lmc 0 \"core\" lid 1 4xQDR\r\n";
	static const char ports[] =
		"CA     2  1 0x0000000000000021 4x FDR10 - SW     1  1 0x0000000000000010 ( n1 HCA-1 - sw one )\n"
		"CA     3  1 0x0000000000000031 ?? ??? - SW     1  2 0x0000000000000010 ( 'n2's HCA-1' - 'SwitchX -  M' )\n"
		"SW     1  3 0x0000000000000010 4x SDR                                    sw one\n";
	struct judged j;
	judge_text(&j, grouped, sizeof(grouped) - 1, fabric_parse_discover, NULL, NULL);
	if (j.rc < 0)
		fail_msg("%s", j.e.msg);
	assert_int_equal(j.f->link.n, 1);
	assert_string_equal(j.f->node.v[0].name, "a - b's \"core\"");
	assert_int_equal(j.f->node.v[0].device, 0x5a42);
	assert_int_equal(j.f->port.v[j.f->node.v[1].first].speed, FABRIC_QDR);
	judged_free(&j);
	judge_text(&j, ports, sizeof(ports) - 1, fabric_parse_discover, NULL, NULL);
	if (j.rc < 0)
		fail_msg("%s", j.e.msg);
	assert_int_equal(j.f->link.n, 2);
	assert_string_equal(j.f->node.v[0].name, "n1 HCA-1");
	assert_string_equal(j.f->node.v[1].name, "sw one");
	assert_string_equal(j.f->node.v[2].name, "n2's HCA-1");
	assert_has(row_text(&j, "fab.speed", "pass", 0, "observed"), "1 FDR10");
	assert_int_equal(count_rows(&j, "fab.width", "info"), 1);
	judged_free(&j);
}

/* What was copied out of a page is indented; versions before 1.3 tell neither port GUIDs nor rates;
 * some write 0x in a node's id. A later version's line without its rate has lost it. */
static void test_old_and_copied(void **state)
{
	static const char old[] =
		"   devid=0x5a30\n   switchguid=0x20\n"
		"   Switch  24 \"S-0000000000000020\"  # \"line board\" base port 0 lid 7 lmc 0\n"
		"   [24] \"H-0000000000000100\"[1]  # \"atlas35\" lid 12\n"
		"\t[23] \"H-0x0000000000000200\"[1] # \"atlas34\" lid 13\n"
		"   caguid=0x100\n   Ca 1 \"H-0000000000000100\" # \"atlas35\"\n"
		"   [1] \"S-0000000000000020\"[24] # lid 12 lmc 0 \"line board\" lid 7\n";
	static const char lost[] =
		"Switch 24 \"S-0000000000000020\" # \"s\" base port 0 lid 7 lmc 0\n"
		"[1] \"H-0000000000000100\"[1](101) # \"a\" lid 12 4xQDR\n"
		"[2] \"H-0000000000000200\"[1](201) # \"b\" lid 13\n";
	struct judged j;
	judge_text(&j, old, sizeof(old) - 1, fabric_parse_discover, NULL, NULL);
	if (j.rc < 0)
		fail_msg("%s", j.e.msg);
	assert_int_equal(j.f->link.n, 2);
	assert_int_equal(j.f->node.v[2].guid, 0x200);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_int_equal(count_rows(&j, "fab.speed", "skip"), 1);
	judged_free(&j);
	judge_text(&j, lost, sizeof(lost) - 1, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, -EINVAL);
	assert_has(j.e.msg, ":3: a port without width and speed");
	judged_free(&j);
}

/* NDR and XDR by name, and a code that has none. */
static void test_new_speeds(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.rate = "4xXDR";
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_has(row_text(&j, "fab.speed", "pass", 0, "observed"), "XDR");
	judged_free(&j);
	m.rate = "4x??? s=4 w=2 v=4 e=16";
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_has(row_text(&j, "fab.speed", "info", 0, "observed"), "speed code 16: not judged");
	judged_free(&j);
	m.rate = "4x??? s=4 w=2 v=4 e=8"; /* a tool before NDR, with its code */
	judge_made(&j, &m, NULL, NULL);
	assert_has(row_text(&j, "fab.speed", "pass", 0, "observed"), "NDR");
	judged_free(&j);
}

/* Both ends tell; "Could be 12X" alone is an emulator's. */
static void test_linkinfo(void **state)
{
	static const char text[] =
		"0x0000000000000010 \"  sw\"  1  1[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  "
		"0x0000000000000021  2  1[  ] \"n1 mlx5_0\" (Could be 12X )\n"
		"0x0000000000000010 \"  sw\"  1  2[  ] ==( 1X  53.125 Gbps Initialize/  LinkUp)==>  "
		"0x0000000000000023  3  1[  ] \"n2 mlx5_0\" (Could be 4X Could be 106.25 Gbps)\n"
		"0x0000000000000010 \"  sw\"  1  3[  ] ==(              Down/ Polling)==>           "
		"[  ] \"\" ( )\n"
		"0x0000000000000010 \"  sw\"  1  4[  ] ==( 4X  undefined (16) Active/  LinkUp)==>  "
		"0x0000000000000025  4  1[  ] \"n3 mlx5_0\" ( )\n"
		"0x0000000000000021 \"n1 mlx5_0\"  2  1[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  "
		"0x0000000000000010  1  1[  ] \"sw\" (Could be 12X )\n"
		"0x0000000000000023 \"n2 mlx5_0\"  3  1[  ] ==( 1X  53.125 Gbps Active/  LinkUp)==>  "
		"0x0000000000000010  1  2[  ] \"sw\" (Could be 4X Could be 106.25 Gbps)\n";
	struct judged j;
	judge_text(&j, text, sizeof(text) - 1, fabric_parse_linkinfo, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(count_rows(&j, NULL, NULL), 3);
	assert_int_equal(count_rows(&j, "fab.speed", "fail"), 1);
	assert_int_equal(count_rows(&j, "fab.width", "fail"), 1);
	assert_int_equal(count_rows(&j, "fab.state", "warn"), 1);
	assert_has(row_text(&j, "fab.speed", "fail", 0, "expected"), "NDR");
	assert_has(row_text(&j, "fab.state", "warn", 0, "observed"), "Initialize");
	assert_has(row_text(&j, "fab.speed", "info", 0, "observed"), "speed code 16");
	judged_free(&j);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static void test_leaves(void **state)
{
	struct made m = made_small();
	struct judged j;
	m.no_cable[0] = 2;
	m.no_cable[1] = 3;
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, "fab.adjacency", "warn"), 1);
	assert_int_equal(count_rows(&j, "fab.uplinks", "warn"), 1);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	assert_has(row_text(&j, "fab.adjacency", "warn", 0, "subject"), "leaf2");
	assert_has(row_text(&j, "fab.adjacency", "warn", 0, "observed"), "no cable to spine3");
	assert_has(row_text(&j, "fab.uplinks", "warn", 0, "observed"), "6 uplinks, so 1.33:1");
	assert_has(row_text(&j, "fab.uplinks", "warn", 0, "expected"), "8, as 1 of 2");
	judged_free(&j);
	m = made_small();
	m.one_cable[0] = 1;
	m.one_cable[1] = 0;
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, "fab.uplinks", "warn"), 1);
	assert_int_equal(count_rows(&j, NULL, NULL), 1); /* 7 over 4 spines cannot be even */
	judged_free(&j);
}

static void test_blocking(void **state)
{
	struct made m = made_small();
	const struct fabric_rules strict = {.blocking = 1.5};
	struct judged j;
	m.spines = 2; /* 8 down, 4 up */
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_has(row_text(&j, "fab.blocking", "pass", 0, "observed"), "2:1 on every leaf");
	judged_free(&j);
	judge_made(&j, &m, NULL, &strict);
	assert_only(&j, "fab.blocking", 4);
	assert_int_equal(count_rows(&j, "fab.blocking", "fail"), 4);
	judged_free(&j);
}

/* A leaf with two hosts more than the others, and still not more than its uplinks: no matter. */
static void test_not_blocking(void **state)
{
	char *text = NULL;
	size_t len;
	struct judged j;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	for (int leaf = 1; leaf <= 4; leaf++)
		for (int p = 1; p <= (leaf < 4 ? 6 : 8); p++)
			fprintf(out,
				p <= 4 ? "SW %5d %2d 0x%016x 4x HDR - SW    99 %2d "
					 "0x0000000000000999 ( 'leaf%d' - 'spine' )\n"
				       : "SW %5d %2d 0x%016x 4x HDR - CA   200  1 0x00000000000%05x ( "
					 "'leaf%d' - 'n' )\n",
				leaf, p, 0x100 + leaf, p <= 4 ? leaf * 8 + p : leaf * 0x100 + p,
				leaf);
	assert_int_equal(fclose(out), 0);
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	assert_int_equal(count_rows(&j, "fab.blocking", "warn"), 0);
	assert_has(row_text(&j, "fab.blocking", "pass", 0, "observed"), "0.5:1 to 1:1");
	judged_free(&j);
	free(text);
}

/* Uneven cables to two spines, where they could be even. */
static void test_parallel(void **state)
{
	char *text = NULL;
	size_t len;
	struct judged j;
	FILE *out = open_memstream(&text, &len);
	for (int leaf = 0; leaf < 3; leaf++) {
		made_switch_head(out, MADE_LEAF + (unsigned)leaf, "leaf", leaf, 1);
		fprintf(out, "[1]\t\"H-%016x\"[1](%x) \t\t# \"n%d mlx5_0\" lid 9 4xHDR\n",
			0x100 + leaf * 2, 0x101 + leaf * 2, leaf);
		for (int k = 0; k < 4; k++) {
			int to = leaf == 1 ? k > 2 : k % 2;
			made_to_switch(out, 10 + k, MADE_SPINE + (unsigned)to, 1 + leaf * 4 + k,
				"spine", to, "4xHDR");
		}
	}
	fclose(out);
	judge_text(&j, text, len, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_only(&j, "fab.parallel", 1);
	assert_has(row_text(&j, "fab.parallel", "warn", 0, "observed"),
		"3 cables to spine0, 1 to spine1");
	judged_free(&j);
	free(text);
}

/* ---- counters and GUIDs ---------------------------------------------------------------------- */

static void test_counters(void **state)
{
	struct made m = made_small();
	struct judged j;
	judge_made(&j, &m,
		"Errors for 0x2000000000000000 \"leaf0\"\n"
		"   GUID 0x2000000000000000 port ALL: [SymbolErrorCounter == 5000]\n"
		"   GUID 0x2000000000000000 port 3: [SymbolErrorCounter == 5000]\n"
		"   GUID 0x2000000000000000 port 4: [SymbolErrorCounter == 9] [LinkDownedCounter == 1]\n"
		"   GUID 0x1000000000000001 port 1: [XmtDiscards == 101] [PortXmitWait == 999999]\n",
		NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 2);
	assert_has(row_text(&j, "fab.counters", "fail", 0, "subject"), "leaf0 port 3");
	assert_has(row_text(&j, "fab.counters", "warn", 0, "subject"), "node0 mlx5_0");
	judged_free(&j);
	/* Few of many packets are no matter; line errors are. */
	judge_made(&j, &m,
		"# Port extended counters: Lid 1 port 1 (CapMask: 0x5300)\n"
		"PortXmitPkts:....................10000000000\n"
		"SymbolErrorCounter:..............3\n"
		"PortXmitDiscards:................1000\n",
		NULL);
	assert_int_equal(count_rows(&j, NULL, NULL), 0);
	assert_int_equal(count_rows(&j, "fab.counters", "pass"), 1);
	judged_free(&j);
	judge_made(&j, &m, "## Summary: 12 nodes checked, 0 bad nodes found\n", NULL);
	assert_int_equal(count_rows(&j, "fab.counters", "pass"), 1);
	judged_free(&j);
	judge_made(&j, &m, NULL, NULL);
	assert_int_equal(count_rows(&j, "fab.counters", "skip"), 1);
	judged_free(&j);
}

/* One GUID in two HCAs, a GUID of zero, a block twice, a cable back to its own switch. */
static void test_guids(void **state)
{
	static const char text[] =
		"vendid=0x2c9\ndevid=0x1\nswitchguid=0x10(10)\n"
		"Switch\t36 \"S-0000000000000010\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n"
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n"
		"[2]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 3 4xHDR\n"
		"[3]\t\"H-0000000000000000\"[1](31) \t\t# \"n2 mlx5_0\" lid 4 4xHDR\n"
		"[4]\t\"S-0000000000000010\"[5]\t\t# \"sw\" lid 1 4xHDR\n"
		"[5]\t\"S-0000000000000010\"[4]\t\t# \"sw\" lid 1 4xHDR\n"
		"[6]\t\"H-0000000000000040\"[1](21) \t\t# \"n3 mlx5_0\" lid 5 4xHDR\n"
		"[7]\t\"S-0000000000000010\"[7]\t\t# \"sw\" lid 1 4xHDR\n"
		"\nSwitch\t36 \"S-0000000000000010\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n";
	struct judged j;
	judge_text(&j, text, sizeof(text) - 1, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_int_equal(count_rows(&j, "fab.guid", "fail"), 5);
	assert_int_equal(count_rows(&j, "fab.state", "warn"), 1);
	assert_has(row_text(&j, "fab.guid", "fail", 0, "observed"), "its GUID is 0");
	assert_has(row_text(&j, "fab.guid", "fail", 1, "observed"), "by line 6, to sw port 2");
	assert_has(row_text(&j, "fab.guid", "fail", 2, "observed"), "joined to itself");
	assert_has(row_text(&j, "fab.guid", "fail", 3, "observed"), "described twice");
	assert_has(row_text(&j, "fab.guid", "fail", 4, "observed"), "also that of");
	assert_int_equal(fb_json_int(json_object_get(fb_doc_json(j.doc), "fabric"), "links", 0), 5);
	judged_free(&j);
}

/* Two machines with one name: not one host with twice the HCAs, and no rail by their word. */
static void test_same_name(void **state)
{
	static const char text[] =
		"Switch\t36 \"S-0000000000000010\"\t\t# \"sw\" base port 0 lid 1 lmc 0\n"
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"n1 mlx5_0\" lid 2 4xHDR\n"
		"[2]\t\"H-0000000000000030\"[1](31) \t\t# \"n1 mlx5_0\" lid 3 4xHDR\n"
		"[3]\t\"H-0000000000000040\"[1](41) \t\t# \"n2 mlx5_0\" lid 4 4xHDR\n";
	struct judged j;
	judge_text(&j, text, sizeof(text) - 1, fabric_parse_discover, NULL, NULL);
	assert_int_equal(j.rc, 0);
	assert_only(&j, "fab.names", 2);
	assert_has(
		row_text(&j, "fab.names", "warn", 0, "subject"), "n1 mlx5_0 (0x0000000000000020)");
	assert_int_equal(fb_json_int(json_object_get(fb_doc_json(j.doc), "fabric"), "hosts", 0), 3);
	judged_free(&j);
}

static void test_anonymous(void **state)
{
	struct made m = made_small();
	struct judged j;
	size_t len;
	m.swapped[0][0] = 10;
	m.swapped[0][1] = 11;
	m.n_swapped = 1;
	m.factory = 31;
	char *text = made_text(&m, &len);
	memset(&j, 0, sizeof(j));
	j.f = fabric_new();
	j.doc = new_doc(&j.e);
	assert_int_equal(fabric_parse_discover(j.f, text, len, "file", &j.e), 0);
	assert_int_equal(fabric_finish(j.f, "file", &j.e), 0);
	j.f->anonymous = true;
	const struct fabric_rules none = {.blocking = 0};
	assert_int_equal(fabric_judge(j.f, &none, j.doc), 0);
	assert_int_equal(count_rows(&j, "fab.rail", "fail"), 2);
	char *shown = json_dumps(json_object_get(fb_doc_json(j.doc), "checks"), 0);
	char *leaves = json_dumps(json_object_get(fb_doc_json(j.doc), "fabric"), 0);
	assert_null(strstr(shown, "node"
				  "5"));
	assert_null(strstr(shown, "leaf1"));
	assert_null(strstr(shown, "0x"));
	assert_null(strstr(leaves, "leaf1"));
	assert_null(strstr(leaves, "0x"));
	free(shown);
	free(leaves);
	free(text);
	judged_free(&j);
}

/* `judge_test --write FILE [HOSTS]` writes the fabric that scripts/bench has judged. */
static int write_large(const char *path, const char *hosts)
{
	struct made m = made_large();
	FILE *out = fopen(path, "w");
	if (hosts)
		m.hosts = (int)strtol(hosts, NULL, 10);
	m.swapped[0][0] = 77;
	m.swapped[0][1] = 78;
	m.n_swapped = 1;
	if (!out)
		return 1;
	made_write(&m, out);
	return fclose(out) != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_swapped_more),
		cmocka_unit_test(test_other_group),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_racks),
		cmocka_unit_test(test_factory),
		cmocka_unit_test(test_pci_names),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_many_slow),
		cmocka_unit_test(test_dialects),
		cmocka_unit_test(test_old_and_copied),
		cmocka_unit_test(test_new_speeds),
		cmocka_unit_test(test_linkinfo),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_not_blocking),
		cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_guids),
		cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_anonymous),
	};
	if (argc >= 3 && strcmp(argv[1], "--write") == 0)
		return write_large(argv[2], argc > 3 ? argv[3] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
