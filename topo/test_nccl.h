/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: what the tests of NCCL's topology files share: loading, a text with every tag,
 * and the comparison of a model with itself after export and reading.
 */
#ifndef TOPO_TEST_NCCL_H
#define TOPO_TEST_NCCL_H

#include "bench/core/test.h"

#include <math.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/nccl_xml.h"

#define DATA FB_TESTDATA("topo", "nccl/")

static inline struct topo *load(const char *name)
{
	char path[256];
	struct fb_err e = {0};
	struct topo *t;

	snprintf(path, sizeof(path), DATA "%s", name);
	if (topo_load_nccl_xml(path, &t, &e) != 0)
		fail_msg("%s: %s", name, e.msg);
	assert_int_equal(t->source, TOPO_FROM_NCCL_XML);
	return t;
}

static inline struct topo *parse(const char *text)
{
	struct fb_err e = {0};
	struct topo *t;

	if (nccl_xml_parse(text, strlen(text), "text", &t, &e) != 0)
		fail_msg("%s", e.msg);
	return t;
}

static inline char *export_from(const struct topo *t, bool anonymous)
{
	struct fb_strbuf b = {0};
	struct fb_err e = {0};

	if (topo_nccl_xml(t, anonymous, &b, &e) != 0)
		fail_msg("%s", e.msg);
	return fb_strbuf_take(&b);
}

static inline bool warned(const struct topo *t, const char *of)
{
	for (size_t i = 0; i < t->n_warnings; i++)
		if (strstr(t->warnings[i], of))
			return true;
	return false;
}

static const char modern[] =
	"<system version=\"1\" name=\"x\" since=\"later\">\n"
	"<cpu host_hash=\"0xabc\" numaid=\"0\" affinity=\"ffffffff,00000000\" arch=\"arm64\">\n"
	" <pci busid=\"0008:01:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\"\n"
	"      link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"  <pcilink target=\"0009:01:00.0\"/>\n"
	"  <pci busid=\"00000008:02:00.0\" class=\"0x030200\" keep=\"1\" link_speed=\"64.0 GT/s PCIe\""
	" link_width=\"16\">\n"
	"   <gpu dev=\"1\" sm=\"100\" rank=\"0\" gdr=\"1\"><c2c bw=\"45000\" count=\"10\"/>"
	"<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/><foo a=\"&lt;1&gt;\">"
	"<bar>t&amp;x</bar></foo></gpu>\n"
	"  </pci>\n"
	" </pci>\n"
	" <pci busid=\"0009:01:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"0\">\n"
	"  <pci busid=\"0009:02:00.0\" class=\"0x03\" link_speed=\"Unknown\" link_width=\"255\">\n"
	"   <gpu dev=\"0\" sm=\"100\" mlopart=\"0\"><nvlink target=\"fffffff:ffff:ff\" count=\"12\""
	" tclass=\"0x068000\" speed=\"5\"/></gpu><gpu dev=\"0\" mlopart=\"1\"/>\n"
	"  </pci>\n"
	"  <pci busid=\"0009:03:00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\">\n"
	"   <nic role=\"x\"><net name=\"mlx5_0\" dev=\"0\" speed=\"-1\" port=\"1\"/>"
	"<gin name=\"mlx5_0\" dev=\"0\"/></nic>\n"
	"  </pci>\n"
	"  <pci busid=\"0009:04:00.0\" class=\"0x020700\"/>\n"
	" </pci>\n"
	" <nic><net name=\"eth9\" dev=\"1\" speed=\"10000\"/></nic>\n"
	"</cpu>\n"
	"<cpu numaid=\"-1\" arch=\"arm64\"><pci busid=\"0001:01:00.0\" class=\"0x060400\">"
	"<pci busid=\"0001:02:00.0\" class=\"0x0108\"><nic/></pci></pci></cpu>\n"
	"</system>\n";

static inline const char *kept(
	const struct topo *t, enum topo_part part, int index, const char *name)
{
	for (size_t i = 0; i < t->n_extra; i++) {
		const struct topo_extra *x = &t->extra[i];

		if (x->part == part && x->index == index &&
			(name ? x->name && strcmp(x->name, name) == 0 : !x->name))
			return x->value;
	}
	return NULL;
}

static inline void path_is(const struct topo *t, const char *a, const char *b, enum topo_path want)
{
	struct topo_dev *devs, *x = NULL, *y = NULL;
	size_t n;

	assert_int_equal(topo_devices(t, &devs, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(devs[i].name, a) == 0)
			x = &devs[i];
		if (strcmp(devs[i].name, b) == 0)
			y = &devs[i];
	}
	if (!x || !y)
		fail_msg("no %s or %s", a, b);
	else if (topo_path(t, x, y) != want || topo_path(t, y, x) != want)
		fail_msg("%s-%s is %s", a, b, topo_path_name(topo_path(t, x, y)));
	free(devs);
}

static inline void same_text(const char *file, size_t i, const char *a, const char *b)
{
	if (!a != !b || (a && strcmp(a, b) != 0))
		fail_msg("%s: kept %zu is %s, was %s", file, i, b ? b : "-", a ? a : "-");
}

static inline void same_model(const char *file, const struct topo *a, const struct topo *b)
{
	json_t *x = topo_to_json(a, false), *y = topo_to_json(b, false);

	/* Warnings speak of the file, not of the machine. */
	json_object_del(x, "warnings");
	json_object_del(y, "warnings");
	if (!json_equal(x, y)) {
		char *s = json_dumps(x, JSON_INDENT(1)), *r = json_dumps(y, JSON_INDENT(1));

		fprintf(stderr, "%s: was\n%s\nis\n%s\n", file, s, r);
		fail();
	}
	json_decref(x);
	json_decref(y);
	assert_int_equal(a->n_fast, b->n_fast);
	for (size_t i = 0; i < a->n_fast; i++) {
		const struct topo_fast *f = &a->fast[i], *g = &b->fast[i];

		assert_int_equal(f->kind, g->kind);
		assert_int_equal(f->gpu, g->gpu);
		assert_int_equal(f->peer, g->peer);
		assert_string_equal(f->peer_bdf, g->peer_bdf);
		assert_int_equal(f->peer_class, g->peer_class);
		assert_int_equal(f->count, g->count);
		assert_true(fabs(f->bandwidth - g->bandwidth) < 1);
	}
	assert_int_equal(a->n_extra, b->n_extra);
	for (size_t i = 0; i < a->n_extra; i++) {
		assert_int_equal(a->extra[i].part, b->extra[i].part);
		assert_int_equal(a->extra[i].index, b->extra[i].index);
		same_text(file, i, a->extra[i].name, b->extra[i].name);
		same_text(file, i, a->extra[i].value, b->extra[i].value);
	}
	for (size_t i = 0; i < a->n_pci; i++)
		assert_int_equal(a->pci[i].bridge, b->pci[i].bridge);
}

/** NCCL's own parser knows less than XML: what it would stumble over. */
static inline void nccl_can_read(const char *file, const char *text)
{
	size_t quotes = 0, value = 0;

	assert_int_equal(strncmp(text, "<system version=\"", 17), 0);
	for (const char *s = text; *s; s++) {
		if (*s == '\t' || *s == '\r')
			fail_msg("%s: a tab or return at %.40s", file, s);
		if (*s == '"')
			quotes++;
		value = *s == '"' ? 0 : value + 1;
		if (quotes % 2 && value > 254)
			fail_msg("%s: a value over 254 characters", file);
	}
	assert_null(strstr(text, "<?"));
	assert_null(strstr(text, "  <cpu  "));
}

static inline void there_and_back(const char *file, const struct topo *t)
{
	char *text = export_from(t, false);

	nccl_can_read(file, text);
	struct topo *again = parse(text);

	same_model(file, t, again);
	char *twice = export_from(again, false);

	assert_string_equal(text, twice);
	free(text);
	free(twice);
	topo_free(again);
}

#endif
