// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL's topology XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) and RCCL's, read as a stream of tags:
 * no tree is built, so that memory is bounded by the model and not by the file.
 *
 * Such files come from cloud images and forums. A document type is refused before its first
 * declaration is read (NCCL writes none, and all entity attacks need one), nothing is fetched,
 * nesting, tags and devices are counted. Foreign tags and attributes are kept as text.
 */
#include "topo/nccl_xml.h"

#include <errno.h>
#include <libxml/parserInternals.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

#define MAX_FILE  (64u << 20)
#define MAX_ATTRS 128 /* of one tag; NCCL reads 16 */

int nccl_fail(struct nccl_reader *r, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (r->rc)
		return r->rc;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	enum fb_exit status = code == ENOMEM ? FB_EXIT_UNMEASURED : FB_EXIT_USAGE;

	int line = r->line ? r->line : r->xml && r->xml->input ? r->xml->input->line : 0;

	if (line)
		r->rc = fb_fail(r->e, status, code, "%s:%d: %s", r->file, line, text);
	else
		r->rc = fb_fail(r->e, status, code, "%s: %s", r->file, text);
	if (r->xml)
		xmlStopParser(r->xml);
	return r->rc;
}

/* ---- foreign elements, copied as text ------------------------------------------------------ */

/** What a foreign element may grow to is bounded while it grows. */
static void bound_kept(struct nccl_reader *r)
{
	if (r->foreign.len + r->words.len > NCCL_MAX_KEPT)
		nccl_fail(r, EFBIG, "a foreign element of more than %u bytes", NCCL_MAX_KEPT);
}

/** Blanks that a file gave as numbers (&#13;) would not be read again as they are written. */
static void plain_blanks(char *s, const char *blanks)
{
	for (s += strcspn(s, blanks); *s; s += strcspn(s, blanks))
		*s = ' ';
}

/** A tag begins or ends: copy the text before it, without the blanks around it (layout). */
static void copy_words(struct nccl_reader *r)
{
	static const char blanks[] = " \t\r\n";
	char *s = r->words.s;
	size_t n = r->words.len;

	while (n > 0 && strchr(blanks, s[n - 1]))
		n--;
	if (n > 0) {
		s[n] = '\0';
		plain_blanks(s, "\r");
		if (r->tag_open)
			fb_strbuf_add(&r->foreign, ">");
		r->tag_open = false;
		fb_strbuf_add_xml(&r->foreign, s + strspn(s, blanks));
	}
	fb_strbuf_free(&r->words);
}

static void copy_open(struct nccl_reader *r, const char *name, const char *const *attrs)
{
	struct fb_strbuf *b = &r->foreign;

	r->inside++;
	if (r->skip)
		return;
	copy_words(r);
	if (r->tag_open)
		fb_strbuf_add(b, ">");
	fb_strbuf_printf(b, "<%s", name);
	for (const char *const *a = attrs; a && a[0]; a += 2) {
		fb_strbuf_printf(b, " %s=\"", a[0]);
		fb_strbuf_add_xml(b, a[1] ? a[1] : "");
		fb_strbuf_add(b, "\"");
	}
	r->tag_open = true;
	bound_kept(r);
}

static void copy_close(struct nccl_reader *r, const char *prefix, const char *name)
{
	const struct nccl_frame *f = &r->stack[r->depth];

	if (r->skip) {
		r->skip = --r->inside > 0;
		return;
	}
	copy_words(r);
	if (r->tag_open)
		fb_strbuf_add(&r->foreign, "/>");
	else
		fb_strbuf_printf(
			&r->foreign, "</%s%s%s>", prefix ? prefix : "", prefix ? ":" : "", name);
	r->tag_open = false;
	if (--r->inside > 0)
		return;
	if (r->foreign.failed)
		nccl_fail(r, ENOMEM, "no memory");
	else
		nccl_keep(r, f->part, f->at, f->tag == NCCL_NIC ? "nic/" : NULL, r->foreign.s);
	fb_strbuf_free(&r->foreign);
}

/* ---- what the parser calls ----------------------------------------------------------------- */

static void refuse_root(struct nccl_reader *r, const char *name)
{
	if (strcmp(name, "graphs") == 0) {
		nccl_fail(r, ENOTSUP,
			"this is an NCCL graph file (<graphs>: the rings and trees of NCCL_GRAPH_FILE), "
			"not a topology");
		fb_hint(r->e,
			"give the topology: what NCCL_TOPO_DUMP_FILE=FILE makes NCCL write, or "
			"the file of NCCL_TOPO_FILE");
	} else if (strcmp(name, "topology") == 0) {
		nccl_fail(r, ENOTSUP, "this is hwloc's XML (<topology>), not NCCL's");
		fb_hint(r->e, "read it with --hwloc-xml");
	} else {
		nccl_fail(r, EINVAL, "the file begins with <%.40s>, NCCL's topology with <system>",
			name);
		fb_hint(r->e, "NCCL_TOPO_DUMP_FILE=FILE makes NCCL write its topology");
	}
}

/* Of one tag: name, value, ..., NULL, as the tags' readers take them. */
struct attrs {
	char *v[2 * MAX_ATTRS + 1];
	size_t n;
	bool failed;
};

static void add_attr(
	struct attrs *a, const xmlChar *prefix, const xmlChar *name, const char *value, size_t len)
{
	char *full = NULL;

	if (asprintf(&full, "%s%s%s", prefix ? (const char *)prefix : "", prefix && name ? ":" : "",
		    name ? (const char *)name : "") < 0)
		full = NULL;
	a->v[2 * a->n] = full;
	a->v[2 * a->n + 1] = strndup(value, len);
	a->failed |= !full || !a->v[2 * a->n + 1];
	if (a->v[2 * a->n + 1])
		plain_blanks(a->v[2 * a->n + 1], "\t\r\n");
	a->n++;
}

static void free_attrs(struct attrs *a)
{
	for (size_t i = 0; i < 2 * a->n; i++)
		free(a->v[i]);
}

static void start_tag(struct nccl_reader *r, const char *name, const char *const *attrs)
{
	int how = 0;

	if (++r->tags > NCCL_MAX_TAGS)
		nccl_fail(
			r, EFBIG, "more than %d tags: no machine has as many parts", NCCL_MAX_TAGS);
	else if (r->depth + r->inside >= NCCL_MAX_DEPTH)
		nccl_fail(r, EINVAL, "tags nested deeper than %d", NCCL_MAX_DEPTH);
	else if (!r->depth && strcmp(name, "system") != 0)
		refuse_root(r, name);
	else if (!r->inside)
		how = nccl_tag_open(r, name, attrs);
	if (r->rc)
		return;
	r->skip |= how == 2;
	if (r->inside || how > 0)
		copy_open(r, name, attrs);
}

/* The parser gives five pointers an attribute: name, prefix, namespace, value, end of value. */
static void on_start(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
	int n_spaces, const xmlChar **spaces, int n, int n_defaulted, const xmlChar **from)
{
	struct nccl_reader *r = ctx;
	struct attrs attrs = {.n = 0};
	char *full = NULL;

	if (r->rc)
		return;
	if (n + n_spaces > MAX_ATTRS) {
		nccl_fail(r, EFBIG, "a tag with more than %d attributes", MAX_ATTRS);
		return;
	}
	for (int i = 0; i < n_spaces; i++) {
		const char *space = spaces[2 * i + 1] ? (const char *)spaces[2 * i + 1] : "";

		add_attr(&attrs, (const xmlChar *)"xmlns", spaces[2 * i], space, strlen(space));
	}
	for (int i = 0; i < n; i++, from += 5)
		add_attr(&attrs, from[1], from[0], (const char *)from[3],
			(size_t)(from[4] - from[3]));
	if (prefix && asprintf(&full, "%s:%s", prefix, name) < 0)
		attrs.failed = true;
	if (attrs.failed)
		nccl_fail(r, ENOMEM, "no memory");
	else
		start_tag(r, prefix ? full : (const char *)name,
			(const char *const *)(const void *)attrs.v);
	if (prefix)
		free(full);
	free_attrs(&attrs);
}

static void on_end(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
	struct nccl_reader *r = ctx;

	if (r->rc)
		return;
	if (r->inside)
		copy_close(r, (const char *)prefix, (const char *)name);
	else if (r->depth)
		r->depth--;
}

/** NCCL's own tags hold no text; foreign ones may. The parser hands it over in pieces. */
static void on_text(void *ctx, const xmlChar *text, int len)
{
	struct nccl_reader *r = ctx;

	if (r->rc || !r->inside || r->skip || len <= 0)
		return;
	fb_strbuf_addn(&r->words, (const char *)text, (size_t)len);
	if (r->words.failed)
		nccl_fail(r, ENOMEM, "no memory");
	bound_kept(r);
}

/** Called at "<!DOCTYPE name", before anything in it is read. */
static void on_doctype(
	void *ctx, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
	struct nccl_reader *r = ctx;

	/* hwloc's files begin so; said here, because no tag of theirs will be read. */
	if (strcmp((const char *)name, "topology") == 0) {
		refuse_root(r, "topology");
		return;
	}
	nccl_fail(r, EINVAL,
		"a document type (<!DOCTYPE>): NCCL writes none, and it may hold entities that grow "
		"without bound");
	fb_hint(r->e, "remove it, if the file is yours");
}

/* ---- a file -------------------------------------------------------------------------------- */

/** Behind what begins at `at` and ends with `end`; NULL when it does not end. */
static char *behind(char *at, const char *text_end, const char *end)
{
	char *p = memmem(at, (size_t)(text_end - at), end, strlen(end));

	return p ? p + strlen(end) : NULL;
}

/**
 * NCCL ends a comment at the first "-->", whatever stands in it. XML allows no "--" there, but
 * RCCL's own files begin with a rule of dashes: what a comment says becomes blanks.
 */
static void plain_comments(char *text, size_t len)
{
	const char *end = text + len;

	for (char *p = text; p && (p = memchr(p, '<', (size_t)(end - p)));) {
		size_t left = (size_t)(end - p);

		if (left >= 9 && memcmp(p, "<![CDATA[", 9) == 0) {
			p = behind(p + 9, end, "]]>");
			continue;
		}
		if (left < 7 || memcmp(p, "<!--", 4) != 0) {
			p++;
			continue;
		}
		char *next = behind(p + 4, end, "-->");

		for (char *c = p + 4; next && c < next - 3; c++)
			if (*c == '-' || (*c != '\n' && (unsigned char)(*c - 0x20) >= 0x5f))
				*c = ' ';
		p = next;
	}
}

/** A paste may have empty lines before its declaration, which must be the first of an XML file. */
static void plain_start(char *text, size_t len)
{
	size_t n = strspn(text, " \t\r\n");
	char *end =
		n && strncmp(text + n, "<?xml", 5) == 0 ? behind(text + n, text + len, "?>") : NULL;

	for (char *c = text + n; end && c < end; c++)
		if (*c != '\n')
			*c = ' ';
}

#if LIBXML_VERSION >= 21200
typedef const xmlError *parse_error;
#else
typedef xmlErrorPtr parse_error;
#endif

/** The first error says what is wrong; those after it come of it. */
static void on_error(void *ctx, parse_error err)
{
	struct nccl_reader *r = ctx;

	if (r->rc || r->why[0] || err->level < XML_ERR_FATAL)
		return;
	r->line = err->line;
	topo_copy(r->why, sizeof(r->why), err->message ? err->message : "it is not well-formed");
	r->why[strcspn(r->why, "?")] = '\0';
}

/** What the parser says of encodings it says to everybody, on stderr. */
static void FB_PRINTF(2, 3) say_nothing(void *ctx, const char *fmt, ...)
{
}

static int parse_plain(struct nccl_reader *r, const char *text, size_t len)
{
	xmlSAXHandler sax = {
		.initialized = XML_SAX2_MAGIC,
		.startElementNs = on_start,
		.endElementNs = on_end,
		.characters = on_text,
		.ignorableWhitespace = on_text,
		.cdataBlock = on_text,
		.internalSubset = on_doctype,
		.serror = on_error,
	};

	xmlInitParser();
	r->xml = xmlCreateMemoryParserCtxt(text, (int)len);
	if (!r->xml)
		return nccl_fail(r, len ? ENOMEM : EINVAL, len ? "no memory" : "the file is empty");
	xmlSAXHandler *was = r->xml->sax;
	xmlGenericErrorFunc say = xmlGenericError;
	void *say_ctx = xmlGenericErrorContext;

	xmlSetGenericErrorFunc(NULL, say_nothing);
	r->xml->sax = &sax;
	r->xml->userData = r;
	xmlCtxtUseOptions(r->xml, XML_PARSE_NONET);
	xmlParseDocument(r->xml);
	if (!r->rc && !r->xml->wellFormed) {
		nccl_fail(r, EINVAL, "not XML to its end: %s", r->why);
		fb_hint(r->e, "the file may be cut short: copy it again");
	}
	xmlSetGenericErrorFunc(say_ctx, say);
	r->xml->sax = was;
	if (r->xml->myDoc)
		xmlFreeDoc(r->xml->myDoc);
	r->xml->myDoc = NULL;
	xmlFreeParserCtxt(r->xml);
	r->xml = NULL;
	return r->rc;
}

static int parse_text(struct nccl_reader *r, const char *text, size_t len)
{
	char *plain = malloc(len + 1);

	if (!plain)
		return nccl_fail(r, ENOMEM, "no memory");
	memcpy(plain, text, len);
	plain[len] = '\0';
	plain_start(plain, len);
	plain_comments(plain, len);
	parse_plain(r, plain, len);
	free(plain);
	return r->rc;
}

int nccl_xml_parse(
	const char *text, size_t len, const char *file, struct topo **out, struct fb_err *e)
{
	struct nccl_reader r = {.file = file, .e = e};

	*out = NULL;
	r.t = calloc(1, sizeof(*r.t));
	if (!r.t)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the topology");
	r.t->source = TOPO_FROM_NCCL_XML;
	if (len > MAX_FILE)
		nccl_fail(&r, EFBIG, "larger than %u bytes: no topology is", MAX_FILE);
	else if (parse_text(&r, text, len) == 0)
		nccl_finish(&r);
	fb_strbuf_free(&r.foreign);
	fb_strbuf_free(&r.words);
	free(r.marks);
	free(r.dev);
	if (r.rc)
		topo_free(r.t);
	else
		*out = r.t;
	return r.rc;
}

int topo_load_nccl_xml(const char *path, struct topo **out, struct fb_err *e)
{
	char *text;
	size_t len;
	int rc = fb_read_file(path, MAX_FILE, &text, &len, e);

	*out = NULL;
	if (rc)
		return rc;
	rc = nccl_xml_parse(text, len, path, out, e);
	free(text);
	return rc;
}
