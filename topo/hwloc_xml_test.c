// SPDX-License-Identifier: Apache-2.0
/*
 * hwloc's XML: what is refused and why, what hwloc itself cannot stand, and that a tree exported
 * and read again is the same machine. Real machines are in manifest_test.c.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "topo/hwloc_xml.h"

#define HEAD                                           \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" \
	"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
#define SETS(cpus) \
	"cpuset=\"" cpus "\" complete_cpuset=\"" cpus "\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
#define MACHINE                                                         \
	"<object type=\"Machine\" os_index=\"0\" gp_index=\"1\" " SETS( \
		"0x3") "allowed_cpuset=\"0x3\" allowed_nodeset=\"0x1\">\n"
#define NODE "<object type=\"NUMANode\" os_index=\"0\" gp_index=\"2\" " SETS("0x3") "/>\n"
#define PUS                                                        \
	"<object type=\"PU\" os_index=\"0\" gp_index=\"3\" " SETS( \
		"0x1") "/>\n"                                      \
		       "<object type=\"PU\" os_index=\"1\" gp_index=\"4\" " SETS("0x2") "/>\n"
#define HOSTBRIDGE                                                                \
	"<object type=\"Bridge\" gp_index=\"5\" bridge_type=\"0-1\" depth=\"0\" " \
	"bridge_pci=\"0000:[00-01]\">\n"
#define OPEN  HEAD "<topology version=\"2.0\">\n" MACHINE NODE PUS
#define CLOSE "</object>\n</topology>\n"

static int parse(const char *xml, struct topo **t, struct fb_err *e)
{
	fb_err_clear(e);
	return topo_parse_hwloc_xml(xml, strlen(xml), "file.xml", t, e);
}

static void refused(const char *xml, int rc, const char *why)
{
	struct topo *t = NULL;
	struct fb_err e = {0};
	int got = parse(xml, &t, &e);

	if (got != rc || e.exit != FB_EXIT_USAGE || !strstr(e.msg, why))
		fail_msg("%d, exit %d, %s instead of %d, %s", got, e.exit, e.msg, rc, why);
	assert_null(t);
	assert_memory_equal(e.msg, "file.xml", 8);
}

/* ---- files that are none --------------------------------------------------------------------- */

static void test_other_files(void **state)
{
	refused("", -EINVAL, "empty");
	refused("GPU0 GPU1\n", -EINVAL, "not XML");
	refused("<system version=\"1\"/>", -EINVAL, "--nccl-xml");
	refused("<graphs version=\"1\"/>", -ENOTSUP, "graph file");
	refused("<topologydiff/>", -EINVAL, "difference");
	refused("<html/>", -EINVAL, "<html>");
	refused("<topology version=\"3.0\"/>", -ENOTSUP, "format 3.0");
	refused("<topology version=\"30\"/>", -ENOTSUP, "format 30");
	refused("<topology version=\"x\"/>", -EINVAL, "version");
	refused("<topology version=\"2.0\"/>", -EINVAL, "hwloc says");
	refused("  ", -EINVAL, "");
}

static void test_remedies(void **state)
{
	struct topo *t = NULL;
	struct fb_err e = {0};

	assert_int_equal(parse("<topology version=\"3.0\"/>", &t, &e), -ENOTSUP);
	assert_non_null(strstr(e.hint, "--export-xml-flags v2"));
	fb_err_clear(&e);
	assert_int_equal(topo_load_hwloc_xml("/nonexistent.xml", &t, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
}

static void test_entities(void **state)
{
	refused("<!DOCTYPE t [<!ENTITY a \"x\">]><topology version=\"2.0\">&a;</topology>", -EINVAL,
		"entities");
	refused("<!DOCTYPE t [<!ELEMENT t ANY>]><topology version=\"2.0\"/>", -EINVAL,
		"document type");
	refused("<topology version=\"2.0\">&a;</topology>", -EINVAL, "not well-formed");
	refused("<?xml version=\"1.0\" encoding=\"UTF-7\"?><topology version=\"2.0\"/>", -EINVAL,
		"UTF-8");
	struct topo *t = NULL;
	struct fb_err e = {0};

	assert_int_equal(topo_parse_hwloc_xml("<\0t\0o", 5, "file.xml", &t, &e), -EINVAL);
}

/** Every prefix of a whole file is refused, and the parser says where it ends. */
static void test_truncated(void **state)
{
	static const char whole[] = OPEN CLOSE;
	char cut[sizeof(whole)];
	struct topo *t = NULL;
	struct fb_err e = {0};

	for (size_t n = 1; n < strlen(whole) - 1; n += 7) {
		memcpy(cut, whole, n);
		cut[n] = '\0';
		refused(cut, -EINVAL, "");
	}
	assert_int_equal(parse(whole, &t, &e), 0);
	topo_free(t);
}

/* ---- more than any machine ------------------------------------------------------------------- */

static void test_huge_numbers(void **state)
{
	refused(OPEN "<object type=\"PU\" os_index=\"4000000000\" " SETS("0x1") "/>" CLOSE, -EFBIG,
		"4000000000");
	refused(OPEN "<object type=\"NUMANode\" os_index=\"-1\" " SETS("0x1") "/>" CLOSE, -EINVAL,
		"os_index");
	refused(OPEN "<object type=\"Group\" " SETS("0xf...f") "/>" CLOSE, -EINVAL, "cpuset");
	refused(OPEN "</object><distances2 type=\"NUMANode\" nbobjs=\"4294967295\" kind=\"5\"/>"
		     "</topology>",
		-EFBIG, "nbobjs");
	refused(OPEN "</object><distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\">"
		     "<indexes length=\"99999999\">0 </indexes></distances2></topology>",
		-EFBIG, "length");
}

/** @param n times `line`, of which `%u` is its number */
static char *repeated(const char *before, const char *line, unsigned n, const char *after)
{
	struct fb_strbuf b = {0};

	fb_strbuf_add(&b, before);
	for (unsigned i = 0; i < n; i++) {
		const char *at = strstr(line, "%u");

		if (at) {
			fb_strbuf_printf(&b, "%.*s%u%s", (int)(at - line), line, i + 10, at + 2);
		} else {
			fb_strbuf_add(&b, line);
		}
	}
	fb_strbuf_add(&b, after);
	assert_false(b.failed);
	return b.s;
}

static void test_too_many(void **state)
{
	static const struct {
		const char *line;
		unsigned n;
		const char *why;
	} cases[] = {
		{"<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:00:01.0\" "
		 "pci_type=\"0200 [8086:1521] [0000:0000] 01\" pci_link_speed=\"0.0\"/>",
			10000, "objects under one"},
		{"<object type=\"Group\" " SETS("0x3") ">", 100, "levels"},
		{"<info name=\"a\" value=\"%u\"/>", 140000, "elements"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *xml = repeated(OPEN HOSTBRIDGE, cases[i].line, cases[i].n, "</object>" CLOSE);

		refused(xml, -EFBIG, cases[i].why);
		free(xml);
	}
	char *words = repeated("", ",", 3000, "0x1\"/>" CLOSE);
	struct fb_strbuf b = {0};

	fb_strbuf_add(&b, OPEN "<object type=\"Group\" cpuset=\"");
	fb_strbuf_add(&b, words);
	refused(b.s, -EFBIG, "CPUs");
	fb_strbuf_free(&b);
	free(words);
}

/* ---- what hwloc does not stand ----------------------------------------------------------------
 */

static void test_contradictions(void **state)
{
	refused(OPEN "<object type=\"Core\" gp_index=\"9\"/>" CLOSE, -EINVAL, "hwloc");
	refused(OPEN "<object gp_index=\"9\"/>" CLOSE, -EINVAL, "without a type");
	refused(HEAD "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x3\"/>"
		     "</topology>",
		-EINVAL, "hwloc says");
	/* hwloc 2.9 dies of this one; a later one may have a word for it. */
	refused(OPEN "<object type=\"Core\" gp_index=\"9\" cpuset=\"0x1\"/>" CLOSE, -EINVAL,
		"hwloc");
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void test_devices(void **state)
{
	static const char xml[] = OPEN HOSTBRIDGE
		"<object type=\"PCIDev\" gp_index=\"6\" pci_busid=\"0000:01:00.0\" "
		"pci_type=\"0207 [15b3:1021] [15b3:0001] 00\" pci_link_speed=\"63.015385\">\n"
		"<object type=\"OSDev\" gp_index=\"7\" name=\"mlx5_10\" osdev_type=\"3\">"
		"<info name=\"Port1State\" value=\"4\"/><info name=\"Port1LID\" value=\"0x1f\"/>"
		"<info name=\"Port2State\" value=\"1\"/></object>\n"
		"<object type=\"OSDev\" gp_index=\"8\" name=\"ib0\" osdev_type=\"2\">"
		"<info name=\"Address\" "
		"value=\"00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01\"/></object>\n"
		"<object type=\"OSDev\" gp_index=\"9\" name=\"mlx5_2\" osdev_type=\"3\">"
		"<info name=\"Port1State\" value=\"4\"/><info name=\"Port1LID\" value=\"0x0\"/>"
		"</object>\n"
		"<object type=\"OSDev\" gp_index=\"12\" name=\"mlx5_11\" osdev_type=\"3\">"
		"<info name=\"Port1State\" value=\"4\"/></object></object>\n"
		"<object type=\"PCIDev\" gp_index=\"10\" pci_busid=\"0000:00:02.0\" "
		"pci_type=\"0300 [1a03:2000] [0000:0000] 41\" pci_link_speed=\"0.000000\"/>\n"
		"<object type=\"PCIDev\" gp_index=\"11\" pci_busid=\"0000:00:03.0\" "
		"pci_type=\"1200 [1002:74a1] [0000:0000] 00\" pci_link_speed=\"63.015385\"/>\n"
		"</object>" CLOSE;
	struct topo *t = NULL;
	struct fb_err e = {0};

	if (parse(xml, &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t->source, TOPO_FROM_HWLOC_XML);
	/* By number, as the kernel's list is sorted; the BMC's display is no GPU, an MI300X is. */
	assert_int_equal(t->n_rdma, 3);
	assert_string_equal(t->rdma[0].name, "mlx5_2");
	assert_string_equal(t->rdma[1].name, "mlx5_10");
	/* No word on LIDs: the function's class tells. */
	assert_string_equal(t->rdma[2].name, "mlx5_11");
	assert_string_equal(t->rdma[2].ports[0].link_layer, "InfiniBand");
	assert_int_equal(t->n_gpus, 1);
	assert_string_equal(t->pci[t->gpus[0].pci].bdf, "0000:00:03.0");
	const struct topo_rdma *d = &t->rdma[1];

	assert_int_equal(d->n_ports, 2);
	assert_string_equal(d->ports[0].link_layer, "InfiniBand");
	assert_string_equal(d->ports[1].state_name, "DOWN");
	assert_string_equal(d->ports[1].link_layer, "");
	assert_string_equal(t->rdma[0].ports[0].link_layer, "Ethernet");
	assert_string_equal(d->netdev, "ib0");
	assert_int_equal(t->nics[0].arphrd, 32);
	assert_int_equal(d->numa, 0);
	assert_string_equal(d->cpus, "0-1");
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	assert_int_equal(topo_path(t, &devs[0], &devs[1]), TOPO_PATH_PHB);
	double bw = topo_path_bandwidth(t, &devs[0], &devs[1]);

	assert_true(bw > 63.0e9 && bw < 63.1e9);
	free(devs);
	topo_free(t);
}

/** Firmware that ties a GPU to one cache: the node around it is its node. */
static void test_below_a_cache(void **state)
{
	static const char xml[] = HEAD
		"<topology version=\"2.0\">\n" MACHINE NODE
		"<object type=\"L3Cache\" gp_index=\"20\" " SETS(
			"0x2") "cache_size=\"1024\" "
			       "depth=\"3\" cache_linesize=\"64\" cache_associativity=\"16\" cache_type=\"0\">"
			       "<object type=\"PU\" os_index=\"1\" gp_index=\"4\" " SETS(
				       "0x2") "/>" HOSTBRIDGE
					      "<object type=\"PCIDev\" gp_index=\"6\" pci_busid=\"0000:01:00.0\" "
					      "pci_type=\"0380 [1002:7408] [1002:0000] 00\" pci_link_speed=\"0.0\"/></object>"
					      "</object>"
					      "<object type=\"PU\" os_index=\"0\" gp_index=\"3\" " SETS(
						      "0x1") "/>" CLOSE;
	struct topo *t = NULL;
	struct fb_err e = {0};

	if (parse(xml, &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t->n_gpus, 1);
	assert_int_equal(t->pci[t->gpus[0].pci].numa, 0);
	assert_string_equal(t->pci[t->gpus[0].pci].cpus, "1");
	topo_free(t);
}

/** AMD's matrices: 100 GB/s to all of the hive, but only neighbours have a link. */
static void test_xgmi(void **state)
{
	static const char gpu[] =
		"<object type=\"PCIDev\" gp_index=\"%u0\" pci_busid=\"0000:%u:00.0\" "
		"pci_type=\"0380 [1002:7408] [0000:0000] 00\" pci_link_speed=\"0.0\">"
		"<object type=\"OSDev\" gp_index=\"%u1\" name=\"rsmi%u\" subtype=\"RSMI\" "
		"osdev_type=\"1\"/></object>\n";
	struct fb_strbuf b = {0};
	struct topo *t = NULL;
	struct fb_err e = {0};

	fb_strbuf_add(&b, OPEN HOSTBRIDGE);
	for (unsigned i = 1; i <= 3; i++)
		for (const char *s = gpu; *s; s++) {
			if (s[0] == '%' && s[1] == 'u') {
				fb_strbuf_printf(&b, "%u", i + 20);
				s++;
			} else {
				fb_strbuf_printf(&b, "%c", *s);
			}
		}
	fb_strbuf_add(&b,
		"</object></object>\n"
		"<distances2hetero nbobjs=\"3\" kind=\"25\" name=\"XGMIBandwidth\">"
		"<indexes length=\"30\">OSDev:211 OSDev:221 OSDev:231 </indexes>"
		"<u64values length=\"66\">1000000 100000 100000 100000 1000000 100000 100000 "
		"100000 1000000 </u64values></distances2hetero>\n"
		"<distances2hetero nbobjs=\"3\" kind=\"21\" name=\"XGMIHops\">"
		"<indexes length=\"30\">OSDev:211 OSDev:221 OSDev:231 </indexes>"
		"<u64values length=\"18\">0 1 2 1 0 1 2 1 0 </u64values></distances2hetero>\n"
		"</topology>\n");
	if (topo_parse_hwloc_xml(b.s, b.len, "file.xml", &t, &e) != 0)
		fail_msg("%s\n%s", e.msg, b.s);
	assert_int_equal(t->n_gpus, 3);
	assert_int_equal(topo_fast_links(t, 0, 1), 1);
	assert_int_equal(topo_fast_links(t, 0, 2), 0);
	assert_int_equal(t->fast[0].kind, TOPO_FAST_XGMI);
	topo_free(t);
	fb_strbuf_free(&b);
}

/** Two GPUs on one NVSwitch, whose class the file does not tell: hwloc's own word for it counts. */
static void test_nvswitch(void **state)
{
	static const char xml[] = OPEN HOSTBRIDGE
		"<object type=\"PCIDev\" gp_index=\"10\" pci_busid=\"0000:01:00.0\" "
		"pci_type=\"0302 [10de:2330] [10de:0000] a1\" pci_link_speed=\"0.0\">"
		"<object type=\"OSDev\" gp_index=\"11\" name=\"nvml0\" subtype=\"NVML\" "
		"osdev_type=\"1\"/></object>\n"
		"<object type=\"PCIDev\" gp_index=\"20\" pci_busid=\"0000:02:00.0\" "
		"pci_type=\"0302 [10de:2330] [10de:0000] a1\" pci_link_speed=\"0.0\">"
		"<object type=\"OSDev\" gp_index=\"21\" name=\"nvml1\" subtype=\"NVML\" "
		"osdev_type=\"1\"/></object>\n"
		"<object type=\"PCIDev\" gp_index=\"30\" subtype=\"NVSwitch\" "
		"pci_busid=\"0000:03:00.0\" pci_type=\"0000 [0000:0000] [0000:0000] 00\" "
		"pci_link_speed=\"0.0\"/></object></object>\n"
		"<distances2hetero nbobjs=\"3\" kind=\"25\" name=\"NVLinkBandwidth\">"
		"<indexes length=\"28\">OSDev:11 OSDev:21 PCIDev:30 </indexes>"
		"<u64values length=\"56\">1000000 0 450000 0 1000000 100000 450000 100000 1000000 "
		"</u64values></distances2hetero></topology>\n";
	struct topo *t = NULL;
	struct fb_err e = {0};

	if (parse(xml, &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t->n_gpus, 2);
	assert_int_equal(t->n_fast, 2);
	assert_int_equal(t->fast[0].count, 18);
	assert_int_equal(t->fast[0].peer_class, 0x068000);
	assert_string_equal(t->fast[0].peer_bdf, "0000:03:00.0");
	/* The lesser of both ends' links to the switch. */
	assert_int_equal(topo_fast_links(t, 0, 1), 4);
	topo_free(t);
}

static void paths_of(const struct topo *t, struct fb_strbuf *b)
{
	struct topo_dev *devs;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	for (size_t i = 0; i < n; i++) {
		fb_strbuf_printf(b, "%s %d %s:", devs[i].name, devs[i].numa,
			devs[i].cpus ? devs[i].cpus : "?");
		for (size_t k = 0; k < n; k++)
			fb_strbuf_printf(
				b, " %s", topo_path_name(topo_path(t, &devs[i], &devs[k])));
		fb_strbuf_add(b, "\n");
	}
	assert_false(b->failed);
	free(devs);
}

/** A file read, exported and read again is the same machine, links between GPUs too. */
static void test_round_trip(void **state)
{
	struct fb_err e = {0};
	struct topo *t, *again;
	struct fb_strbuf xml = {0}, a = {0}, b = {0};

	if (topo_load_hwloc_xml(
		    FB_TESTDATA("topo", "hwloc_xml_fuzz/power8gpudistances.xml"), &t, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(topo_hwloc_xml(t, false, &xml, &e), 0);
	if (topo_parse_hwloc_xml(xml.s, xml.len, "file.xml", &again, &e) != 0)
		fail_msg("%s", e.msg);
	paths_of(t, &a);
	paths_of(again, &b);
	assert_string_equal(a.s, b.s);
	assert_int_equal(t->n_gpus, 4);
	assert_int_equal(t->n_pci, again->n_pci);
	assert_int_equal(t->n_fast, again->n_fast);
	assert_int_equal(t->n_numa, again->n_numa);
	assert_int_equal(t->n_packages, again->n_packages);
	assert_int_equal(t->pus, again->pus);
	for (size_t i = 0; i < t->n_fast; i++)
		assert_int_equal(t->fast[i].count, again->fast[i].count);
	topo_free(t);
	topo_free(again);
	fb_strbuf_free(&xml);
	fb_strbuf_free(&a);
	fb_strbuf_free(&b);
}

/** A user's settings for hwloc are of the live machine: they change no file's reading. */
static void test_environment(void **state)
{
	static const char xml[] = OPEN CLOSE;
	struct topo *t = NULL;
	struct fb_err e = {0};

	setenv("HWLOC_COMPONENTS", "stop", 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
	int rc = parse(xml, &t, &e);

	assert_string_equal(getenv("HWLOC_COMPONENTS"), "stop");
	unsetenv("HWLOC_COMPONENTS");
	unsetenv("HWLOC_THISSYSTEM");
	assert_int_equal(rc, 0);
	assert_int_equal(t->pus, 2);
	assert_false(t->live);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_remedies),
		cmocka_unit_test(test_entities),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_huge_numbers),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_below_a_cache),
		cmocka_unit_test(test_xgmi),
		cmocka_unit_test(test_nvswitch),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
