// SPDX-License-Identifier: Apache-2.0
/*
 * Files that no NCCL wrote: cut short, hostile, of another kind, too large. Each is refused with
 * its line and what helps, or read with a warning; none crashes, hangs or grows.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "topo/nccl_xml.h"

#define DATA FB_TESTDATA("topo", "nccl/")
#define HEAD "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\">\n"
#define TAIL "</cpu>\n</system>\n"

/** Parse and, when that works, render and export. @return the parser's code */
static int try_text(const char *text, size_t len, struct fb_err *e)
{
	struct topo *t;
	struct fb_strbuf b = {0};

	memset(e, 0, sizeof(*e));
	int rc = nccl_xml_parse(text, len, "file.xml", &t, e);

	if (rc) {
		assert_null(t);
		assert_int_equal(e->code, rc);
		assert_non_null(strstr(e->msg, "file.xml"));
		return rc;
	}
	topo_tree(t, true, &b);
	topo_matrix(t, &b);
	assert_int_equal(topo_nccl_xml(t, false, &b, e), 0);
	assert_false(b.failed);
	fb_strbuf_free(&b);
	json_t *o = topo_to_json(t, false);

	assert_non_null(o);
	json_decref(o);
	topo_free(t);
	return 0;
}

static void refused(const char *text, int code, const char *why)
{
	struct fb_err e;
	int rc = try_text(text, strlen(text), &e);

	if (rc != code || !strstr(e.msg, why))
		fail_msg("%.60s...: %d %s", text, rc, e.msg);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
}

static void accepted(const char *text)
{
	struct fb_err e;

	if (try_text(text, strlen(text), &e) != 0)
		fail_msg("%.60s...: %s", text, e.msg);
}

/* ---- another kind of file ----------------------------------------------------------------------
 */

static void test_other_kinds(void **state)
{
	struct topo *t;
	struct fb_err e = {0};

	assert_int_equal(topo_load_nccl_xml(DATA "azure-ncv4-graph.xml", &t, &e), -ENOTSUP);
	assert_null(t);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "azure-ncv4-graph.xml:1: this is an NCCL graph file"));
	assert_non_null(strstr(e.hint, "NCCL_TOPO_DUMP_FILE"));
	refused("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology/>",
		-ENOTSUP, "file.xml:2: this is hwloc's XML");
	refused("<topology version=\"2.0\"></topology>", -ENOTSUP, "hwloc's XML");
	refused("<svg/>", -EINVAL, "begins with <svg>");
	refused("", -EINVAL, "empty");
	refused("GPU0\tGPU1\n", -EINVAL, "file.xml:1: not XML");
	refused("<system version=\"1\"></system>", -EINVAL, "holds no <cpu>");
	fb_err_clear(&e);
	assert_int_equal(topo_load_nccl_xml("topo/testdata/none.xml", &t, &e), -ENOENT);
	fb_err_clear(&e);
	assert_int_equal(topo_load_nccl_xml("topo/testdata", &t, &e), -EINVAL);
}

static void test_declaration_and_comments(void **state)
{
	accepted("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- <!DOCTYPE x> -->\n" HEAD
		 "<!-- a --><pci busid=\"0000:01:00.0\" class=\"0x030200\"/>\n" TAIL "<!-- b -->");
	accepted("\xef\xbb\xbf" HEAD TAIL);
	accepted("<system version=\"9\"><cpu numaid=\"-1\"/></system>");
	/* As NCCL's reader has it: a comment ends at the first "-->", and nothing else in it
	 * counts. */
	accepted("<!-------\n - two lines -- \xa9\x01 <pci> - -\n ------->\n" HEAD
		 "<!----><!--->-->" TAIL "<!-- a --- -->");
	accepted("\n \n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" HEAD TAIL);
	refused("<!-- a\n-- b --\n-->\n<system version=\"1\">\n<cpu>\n", -EINVAL, "file.xml:5: ");
	refused(HEAD "<!-- open -- <pci/>" TAIL, -EINVAL, "not XML to its end");
	refused(HEAD "<x><![CDATA[<!-- ]]></y><!-- -->" TAIL, -EINVAL, "file.xml:3: not XML");
}

/* ---- cut short ---------------------------------------------------------------------------------
 */

static void test_truncated_anywhere(void **state)
{
	char *text;
	size_t len;
	struct fb_err e = {0};

	assert_int_equal(fb_read_file(DATA "topo_4p1h.xml", 1 << 20, &text, &len, &e), 0);
	while (len && text[len - 1] != '>')
		len--;
	for (size_t cut = 0; cut < len; cut += 7) {
		assert_int_equal(try_text(text, cut, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
	}
	assert_int_equal(try_text(text, len, &e), 0);
	free(text);
}

/** Every byte in turn wrong: refused or read, never worse. */
static void test_bytes_changed(void **state)
{
	char *text;
	size_t len;
	struct fb_err e = {0};
	static const char bytes[] = {0, '<', '"', '&', '9', (char)0xff};

	assert_int_equal(fb_read_file(DATA "azure-ncv4-topo.xml", 1 << 20, &text, &len, &e), 0);
	for (size_t i = 0; i < len; i += 3) {
		char was = text[i];

		text[i] = bytes[i / 3 % sizeof(bytes)];
		try_text(text, len, &e);
		text[i] = was;
	}
	free(text);
}

/* ---- hostile -----------------------------------------------------------------------------------
 */

static void test_entities(void **state)
{
	refused("<!DOCTYPE lolz [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
		"<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;\">]>"
		"<system version=\"1\"><cpu numaid=\"0\" x=\"&d;\">&d;</cpu></system>",
		-EINVAL, "file.xml:1: a document type");
	refused("<!DOCTYPE system [<!ENTITY f SYSTEM \"file:///etc/passwd\">]>"
		"<system version=\"1\"><cpu numaid=\"0\">&f;</cpu></system>",
		-EINVAL, "a document type");
	refused("<!DOCTYPE system SYSTEM \"http://127.0.0.1:1/x.dtd\"><system version=\"1\"/>",
		-EINVAL, "a document type");
	refused(HEAD "<x>&nope;</x>" TAIL, -EINVAL, "file.xml:3:");
	refused(HEAD "<x a=\"&nope;\"/>" TAIL, -EINVAL, "file.xml:3:");
}

/** `n` times a text. */
static char *times(const char *head, const char *each, size_t n, const char *tail)
{
	struct fb_strbuf b = {0};

	fb_strbuf_add(&b, head);
	for (size_t i = 0; i < n; i++)
		fb_strbuf_add(&b, each);
	fb_strbuf_add(&b, tail);
	return fb_strbuf_take(&b);
}

static void refused_times(const char *head, const char *each, size_t n, int code, const char *why)
{
	char *text = times(head, each, n, TAIL);

	refused(text, code, why);
	free(text);
}

static void test_depth(void **state)
{
	struct fb_strbuf b = {0};

	refused_times(HEAD, "<x>", 100000, -EINVAL, "nested deeper than 64");
	/* A chain of bridges as long: each with an address of its own. */
	fb_strbuf_add(&b, HEAD);
	for (int i = 0; i < 200; i++)
		fb_strbuf_printf(&b, "<pci busid=\"%04x:00:00.0\">", i);
	refused(b.s, -EINVAL, "nested deeper than 64");
	fb_strbuf_free(&b);
}

static void test_ten_thousand_devices(void **state)
{
	struct fb_strbuf b = {0};

	fb_strbuf_add(&b, HEAD);
	for (int i = 0; i < 10000; i++)
		fb_strbuf_printf(&b, "<pci busid=\"%04x:%02x:00.0\" class=\"0x030200\"/>\n",
			i / 256, i % 256);
	fb_strbuf_add(&b, TAIL);
	refused(b.s, -EFBIG, "file.xml:4099: more than 4096 PCI devices");
	fb_strbuf_free(&b);
}

static void test_too_much_of_anything(void **state)
{
	struct fb_strbuf b = {0};

	refused_times(HEAD "<pci busid=\"0000:01:00.0\"><nic>", "<net name=\"a\"/>", 10000, -EFBIG,
		"more than 4096 network devices");
	refused_times(HEAD "<pci busid=\"0000:01:00.0\"><gpu>", "<nvlink count=\"1\"/>", 20000,
		-EFBIG, "more than 16384 links");
	refused_times(HEAD "<pci busid=\"0000:01:00.0\">", "<x/>", 70000, -EFBIG, "more than");
	refused_times(HEAD "<x>", "0123456789", 500000, -EFBIG, "foreign element of more than");
	char *text = times(HEAD "<x a=\"", "0123456789", 500000, "\"/>" TAIL);

	refused(text, -EFBIG, "foreign element of more than");
	free(text);
	text = times("<system><cpu numaid=\"0\" affinity=\"", "ffffffff,", 300, "0\"/></system>");
	refused(text, -EFBIG, "an affinity of more than");
	free(text);
	fb_strbuf_add(&b, "<system>");
	for (int i = 0; i < 2000; i++)
		fb_strbuf_printf(&b, "<cpu numaid=\"%d\"/>", i);
	fb_strbuf_add(&b, "</system>");
	refused(b.s, -EFBIG, "more than 1024 NUMA nodes");
	fb_strbuf_free(&b);
	fb_strbuf_add(&b, "<system><cpu numaid=\"0\"");
	for (int i = 0; i < 200; i++)
		fb_strbuf_printf(&b, " a%d=\"\"", i);
	fb_strbuf_add(&b, "/></system>");
	refused(b.s, -EFBIG, "more than 128 attributes");
	fb_strbuf_free(&b);
}

/** Addresses and links that lead back to where they come from. */
static void test_cycles(void **state)
{
	accepted(HEAD "<pci busid=\"0000:01:00.0\"><pcilink target=\"0000:02:00.0\"/>"
		      "<pci busid=\"0000:02:00.0\"><pcilink target=\"0000:01:00.0\"/>"
		      "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\">"
		      "<nvlink target=\"0000:01:00.0\" count=\"1\" tclass=\"0x030200\"/></gpu>"
		      "<pci busid=\"0000:02:00.0\"/></pci></pci></pci>" TAIL);
	accepted(
		"<system><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"/></cpu>"
		"<cpu numaid=\"1\"><pci busid=\"0000:01:00.0\"/></cpu><cpu numaid=\"0\"/></system>");
}

/* ---- values that are none ----------------------------------------------------------------------
 */

static void test_values(void **state)
{
	refused(HEAD "<pci/>" TAIL, -EINVAL, "file.xml:3: <pci> without busid");
	refused(HEAD "<pci busid=\"\"/>" TAIL, -EINVAL, "busid=\"\" is not a PCI address");
	refused(HEAD "<pci busid=\"0000:01:20.0\"/>" TAIL, -EINVAL, "is not a PCI address");
	refused(HEAD "<pci busid=\"0000:01:00.8\"/>" TAIL, -EINVAL, "is not a PCI address");
	refused(HEAD "<pci busid=\"0000:01:00.0 \"/>" TAIL, -EINVAL, "is not a PCI address");
	refused(HEAD "<pci busid=\"000000000:01:00.0\"/>" TAIL, -EINVAL, "is not a PCI address");
	refused(HEAD "<pci busid=\"0000:01:00.0\" class=\"3D controller\"/>" TAIL, -EINVAL,
		"class=\"3D controller\" is not 6 hexadecimal digits");
	refused(HEAD "<pci busid=\"0000:01:00.0\" link_width=\"x16\"/>" TAIL, -EINVAL,
		"link_width=\"x16\" is not a number");
	refused("<system><cpu/></system>", -EINVAL, "<cpu> without numaid");
	refused("<system><cpu numaid=\"0\" affinity=\"0-15\"/></system>", -EINVAL,
		"affinity=\"0-15\" is not a mask");
	refused("<system><cpu numaid=\"0\" affinity=\"ff,\"/></system>", -EINVAL, "not a mask");
	refused("<system><cpu numaid=\"99999999999999999999\"/></system>", -EINVAL, "numaid=");
	refused("<system><cpu numaid=\"-2\"/></system>", -EINVAL, "numaid=");
	refused(HEAD "<nic><net/></nic>" TAIL, -EINVAL, "<net> without name");
	refused(HEAD "<pci busid=\"0000:01:00.0\" busid=\"0000:02:00.0\"/>" TAIL, -EINVAL,
		"file.xml:3:");
	/* Unknown, as kernels say it. */
	accepted(HEAD
		"<pci busid=\"0000:01:00.0\" class=\"\" vendor=\"\" link_speed=\"Unknown speed\""
		" link_width=\"255\"/><pci busid=\"0000:02:00.0\" link_width=\"\"/>" TAIL);
	accepted("<system><cpu numaid=\"0\" affinity=\"\"/></system>");
	accepted("<system><cpu numaid=\"0\" affinity=\"ff\" affinity_offset=\"3\"/></system>");
}

/* ---- the command -------------------------------------------------------------------------------
 */

static int run(const char *const *args)
{
	char *argv[12];
	int n = 0, null = dup(STDERR_FILENO);

	argv[n++] = (char *)(uintptr_t) "topo";
	for (; *args; args++)
		argv[n++] = (char *)(uintptr_t)*args;
	argv[n] = NULL;
	if (!freopen("/dev/null", "w", stderr))
		abort();
	int rc = topo_cmd.run(n, argv);

	fflush(stderr);
	dup2(null, STDERR_FILENO);
	close(null);
	return rc;
}

static void test_command(void **state)
{
	char out[] = "/tmp/fabricbench-nccl-XXXXXX";
	int fd = mkstemp(out);
	struct topo *t;
	struct fb_err e = {0};

	assert_true(fd >= 0);
	close(fd);
	const char *good[] = {"--nccl-xml", DATA "azure-ndv5-topo.xml", "-o", "/dev/null",
		"--nccl-xml-out", out, NULL};
	const char *graph[] = {"--nccl-xml", DATA "azure-ncv4-graph.xml", NULL};
	const char *none[] = {"--nccl-xml", "/nonexistent", NULL};
	const char *two[] = {"--nccl-xml", DATA "azure-ndv5-topo.xml", "--sysroot", "/", NULL};
	const char *both[] = {"--nccl-xml", DATA "azure-ndv5-topo.xml", "--hwloc-xml", "x", NULL};

	assert_int_equal(run(good), FB_EXIT_OK);
	assert_int_equal(topo_load_nccl_xml(out, &t, &e), 0);
	assert_int_equal(t->n_gpus, 8);
	topo_free(t);
	unlink(out);
	assert_int_equal(run(graph), FB_EXIT_USAGE);
	assert_int_equal(run(none), FB_EXIT_USAGE);
	assert_int_equal(run(two), FB_EXIT_USAGE);
	assert_int_equal(run(both), FB_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_declaration_and_comments),
		cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_bytes_changed),
		cmocka_unit_test(test_entities),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_ten_thousand_devices),
		cmocka_unit_test(test_too_much_of_anything),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
