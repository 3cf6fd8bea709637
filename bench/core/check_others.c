// SPDX-License-Identifier: Apache-2.0
/* See check_others.h. */
#include "bench/core/check_others.h"

#include <errno.h>
#include <stdio.h>
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

static int read_folder(
	const char *dir, const struct fb_others_reader *r, void *arg, struct fb_err *e)
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
			rc = r->tree(arg, path, e);
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

int fb_check_others(const struct fb_opt_list *names, const struct fb_others_reader *r, void *arg,
	struct fb_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < names->n && rc >= 0; i++) {
		/* The root folder seems to hold sys/ as a tree does: that is this machine. */
		const char *path = names->v[i];
		if (!is_folder(path))
			rc = r->document(arg, path, true, e);
		else if (is_tree(path))
			rc = r->tree(arg, path, e);
		else
			rc = read_folder(path, r, arg, e);
	}
	return rc < 0 ? rc : 0;
}
