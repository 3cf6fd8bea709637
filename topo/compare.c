// SPDX-License-Identifier: Apache-2.0
/*
 * `topo --compare`: nodes of one kind against each other. The fingerprint that most of them have is
 * the measure; each node with another one is told by what differs. Shapes read from different kinds
 * of source do not tell the same things and are not compared.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/json.h"
#include "topo/fingerprint.h"
#include "topo/topo_priv.h"

#define MAX_NODES    16384
#define MAX_DOCUMENT (64u << 20)

struct node {
	char *name; /* as given, or FOLDER/NAME */
	struct topo_shape *shape;
	size_t alike; /* nodes with its fingerprint */
};

struct fleet {
	struct node *v;
	size_t n;
};

static void fleet_free(struct fleet *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].name);
		topo_shape_free(f->v[i].shape);
	}
	free(f->v);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int add_node(struct fleet *f, const char *path, struct topo_shape *s, struct fb_err *e)
{
	struct node *n = f->n < MAX_NODES ? topo_grow((void **)&f->v, &f->n, sizeof(*n)) : NULL;

	if (n)
		n->name = strdup(path);
	if (!n || !n->name) {
		topo_shape_free(s);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	}
	n->shape = s;
	return 0;
}

static int add_model(struct fleet *f, const char *path, struct topo *t, struct fb_err *e)
{
	struct topo_shape *s;
	int rc = topo_shape_make(t, &s);

	topo_free(t);
	if (rc)
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for the shape of %s", path);
	return add_node(f, path, s, e);
}

static int add_tree(struct fleet *f, const char *path, struct fb_err *e)
{
	struct fb_sysroot root;
	struct topo *t = NULL;
	int rc = fb_sysroot_open(&root, path, e);

	if (rc)
		return rc;
	rc = topo_load(&root, &t, e);
	fb_sysroot_close(&root);
	return rc ? rc : add_model(f, path, t, e);
}

static int add_document(
	struct fleet *f, const char *path, const char *text, size_t len, struct fb_err *e)
{
	struct topo_shape *s = NULL;
	json_t *doc = fb_json_parse(text, len, path, e);

	if (!doc)
		return -EINVAL;
	int rc = topo_shape_from_json(doc, path, &s, e);

	json_decref(doc);
	return rc ? rc : add_node(f, path, s, e);
}

static int add_json(struct fleet *f, const char *path, struct fb_err *e)
{
	char *text;
	size_t len;
	int rc = fb_read_file(path, MAX_DOCUMENT, &text, &len, e);

	if (rc)
		return rc;
	rc = add_document(f, path, text, len, e);
	free(text);
	return rc;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && strcmp(s + n - k, end) == 0;
}

/** The kinds of tar that --sysroot takes, by name. */
static bool is_tar(const char *path)
{
	static const char *const ends[] = {
		".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_in(path, ends[i]))
			return true;
	return false;
}

/** A file by what it begins with: JSON, one of the two XMLs, else nvidia-smi's text. */
static int add_file(struct fleet *f, const char *path, struct fb_err *e)
{
	char head[16384];
	struct topo *t = NULL;

	if (is_tar(path))
		return add_tree(f, path, e);
	FILE *in = fopen(path, "re");

	if (!in)
		return fb_fail(
			e, FB_EXIT_USAGE, errno, "cannot open %s: %s", path, strerror(errno));
	size_t n = fread(head, 1, sizeof(head) - 1, in);

	fclose(in);
	head[n] = '\0';
	const char *p = head + strspn(head, " \t\r\n");
	int rc;

	if (*p == '{')
		return add_json(f, path, e);
	if (*p == '<')
		rc = strstr(head, "<topology") ? topo_load_hwloc_xml(path, &t, e)
					       : topo_load_nccl_xml(path, &t, e);
	else
		rc = topo_load_smi(path, &t, e);
	return rc ? rc : add_model(f, path, t, e);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_tree(const char *path)
{
	char sub[4096];

	return snprintf(sub, sizeof(sub), "%s/sys", path) < (int)sizeof(sub) && is_folder(sub);
}

/** One entry of a folder: a document, a recorded tree, or a run's folder with topology.json.
 * Anything else lies there for another purpose. */
static int add_entry(struct fleet *f, const char *folder, const char *name, struct fb_err *e)
{
	char path[4096], inner[4200];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return fb_fail(
			e, FB_EXIT_USAGE, ENAMETOOLONG, "%s/%s: path too long", folder, name);
	if (!is_folder(path))
		return ends_in(name, ".json") || ends_in(name, ".xml") || is_tar(name)
			       ? add_file(f, path, e)
			       : 0;
	if (is_tree(path))
		return add_tree(f, path, e);
	snprintf(inner, sizeof(inner), "%s/topology.json", path);
	return stat(inner, &st) == 0 ? add_file(f, inner, e) : 0;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int add_folder(struct fleet *f, const char *path, struct fb_err *e)
{
	struct dirent **names;
	size_t before = f->n;
	int n = scandir(path, &names, visible, versionsort), rc = 0;

	if (n < 0)
		return fb_fail(
			e, FB_EXIT_USAGE, errno, "cannot list %s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = add_entry(f, path, names[i]->d_name, e);
		free(names[i]);
	}
	free(names);
	if (!rc && f->n == before)
		rc = fb_fail(e, FB_EXIT_USAGE, ENOENT,
			"%s holds no topology document (*.json, *.xml) and no recorded tree", path);
	return rc;
}

static int read_fleet(const struct fb_opt_list *list, struct fleet *f, struct fb_err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < list->n; i++) {
		const char *path = list->v[i];

		rc = !is_folder(path) ? add_file(f, path, e)
		     : is_tree(path)  ? add_tree(f, path, e)
				      : add_folder(f, path, e);
	}
	if (!rc && f->n < 2) {
		rc = fb_fail(e, FB_EXIT_USAGE, EINVAL, "one node compares with none");
		fb_hint(e, "name two or more: fabricbench topo --compare a.json b.json");
	}
	return rc;
}

/* ---- judging --------------------------------------------------------------------------------- */

/** Counts who is like whom. @return the first node of the largest group */
static size_t find_reference(struct fleet *f)
{
	size_t best = 0;

	for (size_t i = 0; i < f->n; i++) {
		for (size_t k = 0; k < f->n; k++)
			f->v[i].alike +=
				strcmp(f->v[i].shape->fingerprint, f->v[k].shape->fingerprint) == 0;
		if (f->v[i].alike > f->v[best].alike)
			best = i;
	}
	return best;
}

static int same_sources(const struct fleet *f, struct fb_err *e)
{
	for (size_t i = 1; i < f->n; i++)
		if (strcmp(f->v[0].shape->source, f->v[i].shape->source) != 0) {
			fb_fail(e, FB_EXIT_UNMEASURED, EXDEV,
				"%s was read from %s, %s from %s: they do not tell the same things",
				f->v[0].name, f->v[0].shape->source, f->v[i].name,
				f->v[i].shape->source);
			fb_hint(e, "compare what was read alike: fabricbench topo --json on each "
				   "node");
			return -EXDEV;
		}
	return 0;
}

static void add_clean(struct fb_strbuf *out, const char *s)
{
	char buf[4096];

	topo_copy(buf, sizeof(buf), s);
	fb_strbuf_add(out, buf);
}

static void text_groups(const struct fleet *f, size_t ref, struct fb_strbuf *out)
{
	size_t groups = 0;

	for (size_t i = 0; i < f->n; i++) {
		bool first = true;
		size_t told = 0;

		for (size_t k = 0; k < i && first; k++)
			first = strcmp(f->v[k].shape->fingerprint, f->v[i].shape->fingerprint) != 0;
		if (!first)
			continue;
		groups++;
		fb_strbuf_printf(out, "%s  %zu node%s", f->v[i].shape->fingerprint, f->v[i].alike,
			f->v[i].alike == 1 ? "" : "s");
		for (size_t k = i; k < f->n && told < 8; k++) {
			if (strcmp(f->v[k].shape->fingerprint, f->v[i].shape->fingerprint) != 0)
				continue;
			fb_strbuf_add(out, told++ ? ", " : ": ");
			add_clean(out, f->v[k].name);
		}
		if (f->v[i].alike > told)
			fb_strbuf_printf(out, " and %zu more", f->v[i].alike - told);
		fb_strbuf_add(out, i == ref && f->v[i].alike < f->n ? "  (the reference)\n" : "\n");
	}
	if (groups == 1)
		fb_strbuf_printf(out, "All %zu nodes have one shape.\n", f->n);
	else if (f->v[ref].alike * 2 <= f->n)
		fb_strbuf_add(out, "No majority: the reference is only the first of the largest "
				   "group.\n");
}

static int judge(const struct fleet *f, size_t ref, json_t *nodes, struct fb_strbuf *out)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < f->n; i++) {
		struct topo_diff d;
		json_t *o = json_object(), *entries = json_array();

		rc = topo_shape_diff(f->v[ref].shape, f->v[i].shape, &d);
		fb_json_set_str(o, "name", f->v[i].name);
		fb_json_set_str(o, "fingerprint", f->v[i].shape->fingerprint);
		if (d.n) {
			fb_strbuf_add(out, "\n");
			add_clean(out, f->v[i].name);
			fb_strbuf_add(out, " differs from ");
			add_clean(out, f->v[ref].name);
			fb_strbuf_add(out, ":\n");
		}
		for (size_t k = 0; k < d.n; k++) {
			json_t *q = json_object();

			fb_strbuf_printf(out, "  %-9s ", topo_diff_name(d.e[k].kind));
			add_clean(out, d.e[k].text);
			fb_strbuf_add(out, "\n");
			fb_json_set_str(q, "kind", topo_diff_name(d.e[k].kind));
			fb_json_set_str(q, "device", d.e[k].device);
			fb_json_set_str(q, "text", d.e[k].text);
			json_array_append_new(entries, q);
		}
		json_object_set_new(o, "differences", entries);
		json_array_append_new(nodes, o);
		free(d.e);
	}
	return rc;
}

static int render_json(const struct fleet *f, size_t ref, json_t *nodes, struct fb_strbuf *out)
{
	json_t *doc = json_object();

	fb_json_set_str(doc, "schema", TOPO_SCHEMA);
	fb_json_set_str(doc, "reference", f->v[ref].name);
	fb_json_set_int(doc, "reference_nodes", (int64_t)f->v[ref].alike);
	fb_json_set_bool(doc, "alike", f->v[ref].alike == f->n);
	json_object_set(doc, "nodes", nodes);
	char *text = json_dumps(doc, JSON_INDENT(1));

	json_decref(doc);
	if (!text)
		return -ENOMEM;
	fb_strbuf_add(out, text);
	fb_strbuf_add(out, "\n");
	free(text);
	return 0;
}

int topo_compare(const struct fb_opt_list *list, bool json, struct fb_strbuf *out, int *status,
	struct fb_err *e)
{
	struct fleet f = {0};
	struct fb_strbuf text = {0};
	json_t *nodes = json_array();
	int rc = read_fleet(list, &f, e);

	if (!rc)
		rc = same_sources(&f, e);
	if (rc || !f.v)
		goto free_fleet;
	size_t ref = find_reference(&f);

	text_groups(&f, ref, &text);
	rc = judge(&f, ref, nodes, &text);
	if (!rc && json)
		rc = render_json(&f, ref, nodes, out);
	else if (!rc && text.len)
		fb_strbuf_addn(out, text.s, text.len);
	if (rc || text.failed || out->failed)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the comparison");
	*status = f.v[ref].alike == f.n ? FB_EXIT_OK : FB_EXIT_FAILED;
free_fleet:
	fb_strbuf_free(&text);
	json_decref(nodes);
	fleet_free(&f);
	return rc;
}
