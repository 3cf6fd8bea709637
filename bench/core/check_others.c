// SPDX-License-Identifier: Apache-2.0
/* See check_others.h. */
#include "bench/core/check_others.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static int read_folder(const char *dir, const struct fb_others_reader *r, void *arg, struct met *m,
	struct fb_err *e)
{
	struct fb_sysroot live = {.dir = NULL};
	char **names = NULL;
	bool any = false;
	int rc = fb_sysroot_list(&live, dir, &names);
	if (rc < 0)
		return fb_fail(e, FB_EXIT_USAGE, rc, "cannot list %s: %s", dir, strerror(-rc));
	rc = 0;
	for (char **name = names; *name && rc >= 0; name++) {
		char path[4096];
		if (snprintf(path, sizeof(path), "%s/%s", dir, *name) >= (int)sizeof(path))
			continue;
		if (is_tree(path))
			rc = read_tree(path, r, arg, m, e);
		else if (is_document(path))
			rc = r->document(arg, path, false, e);
		else
			continue;
		any = any || rc == 0;
	}
	fb_sysroot_names_free(names);
	if (rc >= 0 && !any) {
		fb_fail(e, FB_EXIT_USAGE, ENOENT, "%s holds neither recorded trees nor %s", dir,
			r->what);
		fb_hint(e, "%s on each node makes them", r->hint);
		return -ENOENT;
	}
	return rc < 0 ? rc : 0;
}

int fb_check_others(const struct fb_opt_list *names, const char *own_dir,
	const struct fb_others_reader *r, void *arg, struct fb_err *e)
{
	struct met m = {0};
	int rc = own_dir ? meet(&m, own_dir, e) : 0;
	for (size_t i = 0; i < names->n && rc >= 0; i++) {
		/* The root folder seems to hold sys/ as a tree does: that is this machine. */
		const char *path = names->v[i];
		if (!is_folder(path))
			rc = r->document(arg, path, true, e);
		else if (is_tree(path))
			rc = read_tree(path, r, arg, &m, e);
		else
			rc = read_folder(path, r, arg, &m, e);
	}
	free(m.v);
	return rc < 0 ? rc : 0;
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
