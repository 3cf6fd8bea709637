// SPDX-License-Identifier: Apache-2.0
/* See check_others.h. */
#include "bench/core/check_others.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "bench/core/sysroot.h"

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_tree(const char *path)
{
	char sys[4200];
	return snprintf(sys, sizeof(sys), "%s/sys", path) < (int)sizeof(sys) && is_folder(sys);
}

static bool is_document(const char *path)
{
	size_t len = strlen(path);
	return len > 5 && strcmp(path + len - 5, ".json") == 0 && !is_folder(path);
}

/* Trees that were met, the examined one first. */
struct met {
	struct place {
		dev_t dev;
		ino_t ino;
	} * v;
	size_t n;
};

/* @return 1: met before; 0: met now; -ENOMEM */
static int meet(struct met *m, const char *dir, struct fb_err *e)
{
	struct stat st;
	if (stat(dir, &st) != 0)
		return 0;
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].dev == st.st_dev && m->v[i].ino == st.st_ino)
			return 1;
	struct place *v = reallocarray(m->v, m->n + 1, sizeof(*v));
	if (!v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", dir);
	m->v = v;
	v[m->n++] = (struct place){st.st_dev, st.st_ino};
	return 0;
}

static int read_tree(const char *dir, const struct fb_others_reader *r, void *arg, struct met *m,
	struct fb_err *e)
{
	int rc = meet(m, dir, e);
	return rc == 0 ? r->tree(arg, dir, e) : rc < 0 ? rc : 0;
}

#define FIRST (sizeof(((struct fb_others_passed *)0)->first) / sizeof(struct fb_others_entry))

static void pass_over(struct fb_others_passed *p, const char *path, const char *why)
{
	if (p->n < FIRST) {
		struct fb_others_entry *x = &p->first[p->n];
		size_t len = strlen(path), most = sizeof(x->path) - 1;
		snprintf(x->path, sizeof(x->path), "%.*s", (int)most,
			len > most ? path + len - most : path);
		snprintf(x->why, sizeof(x->why), "%s", why);
	}
	p->n++;
}

/* "3 (x/a.json: a document of check node; x/b.txt: no .json file; ...)" */
static void list_passed(const struct fb_others_passed *p, size_t from, struct fb_strbuf *b)
{
	fb_strbuf_printf(b, "%zu (", p->n - from);
	for (size_t i = from; i < p->n && i < FIRST; i++)
		fb_strbuf_printf(
			b, "%s%s: %s", i > from ? "; " : "", p->first[i].path, p->first[i].why);
	fb_strbuf_add(b, p->n > FIRST ? "; ...)" : ")");
}

static int nothing_here(const char *dir, const struct fb_others_reader *r,
	const struct fb_others_passed *p, size_t from, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	if (p->n > from && from < FIRST)
		list_passed(p, from, &b);
	fb_fail(e, FB_EXIT_USAGE, ENOENT, "%s holds neither recorded trees nor %s%s%s", dir,
		r->what, b.s ? "; passed over: " : "", b.s ? b.s : "");
	fb_hint(e, "%s on each node makes them", r->hint);
	fb_strbuf_free(&b);
	return -ENOENT;
}

struct walk {
	const struct fb_others_reader *r;
	void *arg;
	struct met *met;
	struct fb_others_passed *passed;
};

/* @return 0 taken; 1 passed over; -errno */
static int read_entry(const struct walk *w, const char *path, struct fb_err *e)
{
	char why[FB_OTHERS_KIND] = "none of ours";
	int rc = 1;
	if (is_tree(path))
		return read_tree(path, w->r, w->arg, w->met, e);
	if (is_document(path))
		rc = w->r->document(w->arg, path, false, why, e);
	else
		snprintf(why, sizeof(why), "%s",
			is_folder(path) ? "a folder without sys/" : "no .json file");
	if (rc == 1)
		pass_over(w->passed, path, why);
	return rc;
}

static int read_folder(const char *dir, const struct walk *w, struct fb_err *e)
{
	struct fb_sysroot live = {.dir = NULL};
	char **names = NULL;
	bool any = false;
	size_t before = w->passed->n, len = strlen(dir);
	int rc = fb_sysroot_list(&live, dir, &names);
	if (rc < 0)
		return fb_fail(e, FB_EXIT_USAGE, rc, "cannot list %s: %s", dir, strerror(-rc));
	rc = 0;
	for (char **name = names; *name && rc >= 0; name++) {
		char path[4096];
		if ((*name)[0] == '.' ||
			snprintf(path, sizeof(path), "%s%s%s", dir,
				len && dir[len - 1] == '/' ? "" : "/", *name) >= (int)sizeof(path))
			continue;
		rc = read_entry(w, path, e);
		any = any || rc == 0;
	}
	fb_sysroot_names_free(names);
	if (rc >= 0 && !any)
		return nothing_here(dir, w->r, w->passed, before, e);
	return rc < 0 ? rc : 0;
}

int fb_check_others(const struct fb_opt_list *names, const char *own_dir,
	const struct fb_others_reader *r, void *arg, struct fb_others_passed *passed,
	struct fb_err *e)
{
	struct met m = {0};
	const struct walk w = {r, arg, &m, passed};
	char why[FB_OTHERS_KIND];
	*passed = (struct fb_others_passed){.n = 0};
	int rc = own_dir ? meet(&m, own_dir, e) : 0;
	for (size_t i = 0; i < names->n && rc >= 0; i++) {
		/* The root folder seems to hold sys/ as a tree does: that is this machine. */
		const char *path = names->v[i];
		if (!is_folder(path))
			rc = r->document(arg, path, true, why, e);
		else if (is_tree(path))
			rc = read_tree(path, r, arg, &m, e);
		else
			rc = read_folder(path, &w, e);
	}
	free(m.v);
	return rc < 0 ? rc : 0;
}

const char *fb_others_kind(const json_t *doc, char buf[FB_OTHERS_KIND])
{
	const char *schema = fb_json_str(doc, "schema", "");
	const char *command =
		fb_json_str(json_object_get(doc, "run"), "command", "another command");
	if (strncmp(schema, "fabricbench/", 12) == 0)
		snprintf(buf, FB_OTHERS_KIND, "a document of %s", command);
	else
		snprintf(buf, FB_OTHERS_KIND, "no document of fabricbench");
	return buf;
}

/* Results lie in files named after their hosts: "gpu17.json". */
static void hide_name(const char *path, struct fb_doc *doc)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char stem[64];
	snprintf(stem, sizeof(stem), "%.*s", (int)strcspn(base, "."), base);
	if (strpbrk(stem, "0123456789"))
		fb_doc_hide(doc, stem);
}

void fb_others_tell(const struct fb_others_passed *passed, struct fb_doc *doc)
{
	struct fb_strbuf b = {0};
	if (passed->n == 0)
		return;
	for (size_t i = 0; i < passed->n && i < FIRST; i++)
		hide_name(passed->first[i].path, doc);
	list_passed(passed, 0, &b);
	fb_doc_warn(
		doc, "--others: passed over, since it tells of no node here: %s", b.s ? b.s : "");
	fb_strbuf_free(&b);
}

void fb_others_tell_apart(char *name, size_t len, const char *host, const char *dir, int folders)
{
	size_t end = strlen(dir);
	while (end > 1 && dir[end - 1] == '/')
		end--;
	size_t begin = end;
	for (int i = 0; i < folders && begin > 0; i++)
		for (begin -= i > 0; begin > 0 && dir[begin - 1] != '/';)
			begin--;
	snprintf(name, len, "%s (%.*s)", host, (int)(end - begin), dir + begin);
}
