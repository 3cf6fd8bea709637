// SPDX-License-Identifier: Apache-2.0
/*
 * What an hwloc XML file must be before hwloc sees it. hwloc's import allocates by the numbers that
 * a file states (matrices by nbobjs, bitmaps by os_index) and walks lists by their length, so each
 * of them is held against what machines have, in one pass that keeps no tree: time and memory go
 * with the file's length, which is bounded too.
 *
 * Formats: hwloc 1 has no version attribute, hwloc 2 says "2.0"; hwloc 3's is another format, which
 * hwloc 2 cannot read.
 */
#include <errno.h>
#include <libxml/xmlreader.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/hwloc_xml.h"

#define MAX_DEPTH    64
#define MAX_ELEMENTS 131072
#define MAX_SIBLINGS 4096 /* hwloc appends to a list by walking it */
#define MAX_DEVICES  4096
#define MAX_MATRIX   1024
#define MAX_CELLS    (4u << 20)
#define MAX_VALUES   4096 /* hwloc looks each memory attribute's value up among all others */
#define MAX_KINDS    256
#define MAX_WORDS    (8u << 20) /* 32-bit words of all CPU and node sets together */

struct checker {
	xmlTextReaderPtr r;
	const char *what;
	struct fb_err *e;
	unsigned elements, devices, values, kinds;
	size_t cells, words, len;
	unsigned children[MAX_DEPTH + 2];
	char why[256]; /* the XML parser's own complaint */
	int line;
};

static int FB_PRINTF(3, 4) refuse(struct checker *c, int code, const char *fmt, ...)
{
	char why[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	int line = c->line ? c->line : xmlTextReaderGetParserLineNumber(c->r);

	return fb_fail(c->e, FB_EXIT_USAGE, code, "%s:%d: %s", c->what, line > 0 ? line : 1, why);
}

/* ---- before any parser ------------------------------------------------------------------------
 */

/** Only encodings in which "<!ENTITY" is those eight bytes. */
static bool plain_encoding(const char *xml, size_t len)
{
	static const char *const known[] = {"utf-8", "us-ascii", "ascii", "iso-8859-1"};
	char head[160];
	size_t n = len < sizeof(head) - 1 ? len : sizeof(head) - 1;

	memcpy(head, xml, n);
	head[n] = '\0';
	char *end = strstr(head, "?>"), *enc;

	if (strncmp(head, "<?xml", 5) != 0 || !end)
		return head[0] == '<' || strncmp(head, "\xef\xbb\xbf<", 4) == 0 ||
		       strspn(head, " \t\r\n") > 0;
	*end = '\0';
	enc = strstr(head, "encoding");
	if (!enc)
		return true;
	enc += strcspn(enc, "\"'");
	for (size_t i = 0; *enc && i < sizeof(known) / sizeof(*known); i++)
		if (strncasecmp(enc + 1, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

static int check_text(struct checker *c, const char *xml, size_t len)
{
	c->line = 1;
	if (len == 0)
		return refuse(c, EINVAL, "the file is empty");
	if (memchr(xml, '\0', len) || !plain_encoding(xml, len))
		return refuse(c, EINVAL, "not XML in UTF-8");
	if (strstr(xml, "<!ENTITY"))
		return refuse(c, EINVAL, "hwloc's files declare no entities");
	const char *type = strstr(xml, "<!DOCTYPE");

	if (type && type[strcspn(type, "[>")] == '[')
		return refuse(c, EINVAL, "hwloc's files declare no document type of their own");
	c->line = 0;
	return 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/** "0x0000ffff,0xffffffff", "0xf...f,0x0": the words count. */
static int check_set(struct checker *c, const char *name, const char *set)
{
	size_t words = 1;
	/* hwloc 1 writes "0xf...f" for what it does not restrict. */
	bool finite = strcmp(name, "cpuset") == 0 || strcmp(name, "complete_cpuset") == 0 ||
		      strcmp(name, "initiator_cpuset") == 0;

	for (const char *s = set; *s; s++)
		words += *s == ',';
	c->words += words;
	if (words > TOPO_MAX_CPU / 32 + 2 || c->words > MAX_WORDS || strlen(set) > 32768)
		return refuse(c, EFBIG, "%s: no machine has more than %d CPUs", name, TOPO_MAX_CPU);
	if (set[strspn(set, "0123456789abcdefABCDEFxX,.")] || (finite && strchr(set, '.')))
		return refuse(c, EINVAL, "%s=\"%.40s\" is no set", name, set);
	return 0;
}

static int check_number(struct checker *c, const char *name, const char *text, uint64_t max)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (end == text || *end || *text == '-')
		return refuse(c, EINVAL, "%s=\"%.40s\" is no number", name, text);
	if (v > max)
		return refuse(c, EFBIG, "%s=\"%.40s\": no machine has more than %llu", name, text,
			(unsigned long long)max);
	return 0;
}

static int check_matrix(struct checker *c, const char *text)
{
	int rc = check_number(c, "nbobjs", text, MAX_MATRIX);
	size_t n = rc ? 0 : strtoull(text, NULL, 10);

	c->cells += n * n;
	return rc ? rc
	       : c->cells > MAX_CELLS
		       ? refuse(c, EFBIG, "matrices of more than %u values", MAX_CELLS)
		       : 0;
}

static int check_attribute(struct checker *c, const char *element, const char *name,
	const char *value, const char *type)
{
	size_t n = strlen(name);

	if (n >= 6 &&
		(strcmp(name + n - 6, "cpuset") == 0 || strcmp(name, "initiator_cpuset") == 0))
		return check_set(c, name, value);
	if (n >= 7 && strcmp(name + n - 7, "nodeset") == 0)
		return check_set(c, name, value);
	if (strcmp(name, "nbobjs") == 0)
		return check_matrix(c, value);
	if (strcmp(name, "length") == 0)
		return check_number(c, name, value, c->len);
	/* An I/O object's os_index of hwloc 1 is its address, which takes no memory. */
	if (strcmp(name, "os_index") == 0 && strcmp(element, "object") == 0 && type &&
		(strcmp(type, "PU") == 0 || strcmp(type, "NUMANode") == 0))
		return check_number(c, name, value, TOPO_MAX_CPU);
	return 0;
}

/* ---- elements -------------------------------------------------------------------------------- */

static int check_root(struct checker *c, const char *name)
{
	static const struct {
		const char *root, *what;
	} others[] = {
		{"system", "an NCCL topology file: give it by --nccl-xml"},
		{"graphs", "an NCCL graph file, which holds no topology"},
		{"topologydiff", "an hwloc difference, which holds no topology"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(name, others[i].root) == 0)
			return refuse(c, strcmp(name, "graphs") == 0 ? ENOTSUP : EINVAL,
				"this is %s", others[i].what);
	if (strcmp(name, "topology") != 0)
		return refuse(c, EINVAL,
			"<%.40s> is not what hwloc's files begin with (<topology>)", name);
	xmlChar *version = xmlTextReaderGetAttribute(c->r, BAD_CAST "version");
	long major = version ? strtol((const char *)version, NULL, 10) : 1;
	int rc = 0;

	if (major > 2) {
		rc = refuse(c, ENOTSUP,
			"this is hwloc's XML of format %.8s; formats 1 and 2 are read",
			(const char *)version);
		fb_hint(c->e,
			"export it again for hwloc 2: lstopo -i %s --export-xml-flags v2 "
			"FILE.xml (hwloc 3), or take it with lstopo of hwloc 2",
			c->what);
	} else if (version && major < 1) {
		rc = refuse(c, EINVAL, "version=\"%.16s\" is no version of hwloc's XML",
			(const char *)version);
	}
	xmlFree(version);
	return rc;
}

static int count(struct checker *c, unsigned *n, unsigned max, const char *what)
{
	return ++*n > max ? refuse(c, EFBIG, "more than %u %s: no machine has that many", max, what)
			  : 0;
}

static int check_element(struct checker *c, int depth, const char *name)
{
	xmlChar *type = xmlTextReaderGetAttribute(c->r, BAD_CAST "type");
	int rc = count(c, &c->elements, MAX_ELEMENTS, "elements");

	if (depth > MAX_DEPTH)
		rc = refuse(c, EFBIG, "more than %d levels", MAX_DEPTH);
	if (!rc) {
		c->children[depth + 1] = 0;
		if (strcmp(name, "object") == 0)
			rc = count(c, &c->children[depth], MAX_SIBLINGS, "objects under one");
	}
	if (!rc && type &&
		(xmlStrEqual(type, BAD_CAST "PCIDev") || xmlStrEqual(type, BAD_CAST "Bridge") ||
			xmlStrEqual(type, BAD_CAST "OSDev")))
		rc = count(c, &c->devices, 2 * MAX_DEVICES, "devices");
	if (!rc && strcmp(name, "object") == 0 && !type)
		rc = refuse(c, EINVAL, "an object without a type");
	if (!rc && strcmp(name, "memattr_value") == 0)
		rc = count(c, &c->values, MAX_VALUES, "memory attributes");
	if (!rc && strcmp(name, "cpukind") == 0)
		rc = count(c, &c->kinds, MAX_KINDS, "kinds of CPU");
	while (!rc && xmlTextReaderMoveToNextAttribute(c->r) == 1) {
		const xmlChar *attr = xmlTextReaderConstLocalName(c->r);
		const xmlChar *value = xmlTextReaderConstValue(c->r);

		if (attr && value)
			rc = check_attribute(c, name, (const char *)attr, (const char *)value,
				(const char *)type);
	}
	xmlTextReaderMoveToElement(c->r);
	xmlFree(type);
	return rc;
}

static void on_error(void *arg, xmlErrorPtr err)
{
	struct checker *c = arg;

	if (c->why[0] || err->level < XML_ERR_ERROR)
		return;
	topo_copy(c->why, sizeof(c->why), err->message ? err->message : "not XML");
	size_t n = strlen(c->why);

	/* Messages end with a newline, which is a '?' by now. */
	if (n > 1 && c->why[n - 1] == '?')
		c->why[n - 1] = '\0';
	c->line = err->line;
}

static int check_stream(struct checker *c)
{
	bool root = false;
	int got, rc = 0;

	while (!rc && (got = xmlTextReaderRead(c->r)) == 1) {
		if (xmlTextReaderNodeType(c->r) != XML_READER_TYPE_ELEMENT)
			continue;
		const char *name = (const char *)xmlTextReaderConstName(c->r);

		if (!root)
			rc = check_root(c, name);
		root = true;
		if (!rc)
			rc = check_element(c, xmlTextReaderDepth(c->r), name);
	}
	if (!rc && (got != 0 || c->why[0]))
		rc = refuse(c, EINVAL, "not well-formed XML: %s", c->why);
	if (!rc && !root)
		rc = refuse(c, EINVAL, "the file holds no topology");
	return rc;
}

int topo_check_hwloc_xml(const char *xml, size_t len, const char *what, struct fb_err *e)
{
	struct checker c = {.what = what, .e = e, .len = len};
	int rc = check_text(&c, xml, len);

	if (rc)
		return rc;
	c.r = xmlReaderForMemory(xml, (int)len, NULL, NULL, XML_PARSE_NONET);
	if (!c.r)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to read %s", what);
	xmlTextReaderSetStructuredErrorHandler(c.r, (xmlStructuredErrorFunc)on_error, &c);
	rc = check_stream(&c);
	xmlFreeTextReader(c.r);
	return rc;
}
