// SPDX-License-Identifier: Apache-2.0
/*
 * A folder that stands for a machine, and the command that makes one. Every write stays inside the
 * folder: paths go through sysroot's door, links are stored relative.
 */
#include "verbs/lossless/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "verbs/lossless/tree_priv.h"

static int cannot(struct fb_err *e, const char *what, const char *path)
{
	int code = errno;
	fb_fail(e, FB_EXIT_USAGE, code, "cannot %s %s: %s", what, path, strerror(code));
	return -code;
}

static int check_empty(const char *dir, struct fb_err *e)
{
	DIR *d = opendir(dir);
	bool empty = true;
	if (!d)
		return cannot(e, "open", dir);
	for (struct dirent *de; (de = readdir(d)) != NULL;)
		empty = empty && (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0);
	closedir(d);
	if (empty)
		return 0;
	fb_fail(e, FB_EXIT_USAGE, ENOTEMPTY, "%s is not empty: nothing was written", dir);
	fb_hint(e, "name a new folder, or empty this one");
	return -ENOTEMPTY;
}

int tree_open(struct fb_sysroot *r, const char *dir, struct fb_err *e)
{
	if (mkdir(dir, 0755) < 0) {
		if (errno != EEXIST)
			return cannot(e, "make", dir);
		int rc = check_empty(dir, e);
		if (rc < 0)
			return rc;
	}
	int rc = fb_sysroot_open(r, dir, e);
	if (rc == 0 && fb_sysroot_is_live(r))
		rc = fb_fail_usage(e, "%s is this machine itself, no folder for a tree", dir);
	return rc;
}

int tree_mkdir(const struct fb_sysroot *r, const char *path, bool all, struct fb_err *e)
{
	char real[4096];
	int rc = fb_sysroot_path(r, path, real, sizeof(real));
	if (rc < 0)
		return fb_fail(e, FB_EXIT_USAGE, -rc, "%s: %s", path, strerror(-rc));
	for (char *p = real + strlen(r->dir) + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(real, 0755) < 0 && errno != EEXIST)
			return cannot(e, "make", real);
		*p = '/';
	}
	if (all && mkdir(real, 0755) < 0 && errno != EEXIST)
		return cannot(e, "make", real);
	return 0;
}

int tree_write(const struct fb_sysroot *r, const char *path, const void *data, size_t len,
	struct fb_err *e)
{
	char real[4096];
	int rc = tree_mkdir(r, path, false, e);
	if (rc == 0)
		rc = fb_sysroot_path(r, path, real, sizeof(real));
	if (rc < 0)
		return fb_fail(e, FB_EXIT_USAGE, -rc, "%s: %s", path, strerror(-rc));
	FILE *f = fopen(real, "we");
	if (!f)
		return cannot(e, "write", real);
	size_t n = fwrite(data, 1, len, f);
	if (fclose(f) != 0 || n != len)
		return cannot(e, "write", real);
	return 0;
}

int tree_link(const struct fb_sysroot *r, const char *path, const char *target, struct fb_err *e)
{
	char real[4096], to[4096];
	size_t at = 0;
	int rc = tree_mkdir(r, path, false, e);
	if (rc < 0)
		return rc;
	/* The folder of the link through the door, its own name not: it may be replaced. */
	const char *name = strrchr(path, '/');
	char folder[512];
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	rc = fb_sysroot_path(r, folder, real, sizeof(real));
	if (rc < 0)
		return fb_fail(e, FB_EXIT_USAGE, -rc, "%s: %s", path, strerror(-rc));
	for (const char *p = real + strlen(r->dir); *p && at + 4 < sizeof(to); p++)
		if (*p == '/' && p[1])
			at += (size_t)snprintf(to + at, sizeof(to) - at, "../");
	snprintf(to + at, sizeof(to) - at, "%s", target + strspn(target, "/"));
	size_t n = strlen(real);
	if (n + strlen(name) >= sizeof(real))
		return fb_fail(e, FB_EXIT_USAGE, ENAMETOOLONG, "%s: the path is too long", path);
	memcpy(real + n, name, strlen(name) + 1);
	unlink(real);
	if (symlink(to, real) < 0)
		return cannot(e, "link", real);
	return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct tree_opts {
	char *file, *dir;
	bool with_names;
};

static int expand_main(int argc, char **argv)
{
	struct tree_opts o = {0};
	struct fb_err e = {0};
	const struct fb_opt table[] = {
		{.name = "file",
			.type = FB_OPT_STRING,
			.offset = offsetof(struct tree_opts, file),
			.arg = "FILE",
			.help = "the description",
			.positional = true},
		{.name = "dir",
			.type = FB_OPT_STRING,
			.offset = offsetof(struct tree_opts, dir),
			.arg = "DIR",
			.help = "the folder to make",
			.positional = true},
		{.name = NULL},
	};
	struct fb_opt_spec spec = {.command = "tree expand",
		.usage = "FILE DIR",
		.summary = "Make the folder that --sysroot takes of a description.",
		.sets = {{"Tree", table, &o}}};
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0 && (!o.file || !o.dir))
		rc = fb_fail_usage(&e, "tree expand: give the description and the folder to make");
	if (rc == 0)
		rc = tree_expand(o.file, o.dir, &e);
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

static int record_main(int argc, char **argv)
{
	struct tree_opts o = {0};
	struct fb_err e = {0};
	const struct fb_opt table[] = {
		{.name = "dir",
			.type = FB_OPT_STRING,
			.offset = offsetof(struct tree_opts, dir),
			.arg = "DIR",
			.help = "the folder to make",
			.positional = true},
		{.name = "with-names",
			.type = FB_OPT_FLAG,
			.offset = offsetof(struct tree_opts, with_names),
			.help = "keep addresses, GUIDs, MACs and the host's name"},
		{.name = NULL},
	};
	struct fb_opt_spec spec = {.command = "tree record",
		.usage = "[--with-names] DIR",
		.summary = "Record this machine for --sysroot, reading only.",
		.sets = {{"Tree", table, &o}}};
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0 && !o.dir)
		rc = fb_fail_usage(&e, "tree record: give the folder to make");
	if (rc == 0)
		rc = tree_record(o.dir, o.with_names, &e);
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

static const struct fb_cmd subs[] = {{.name = "expand", .run = expand_main},
	{.name = "record", .run = record_main}, {.name = NULL}};
const struct fb_cmd tree_cmd = {.name = "tree", .sub = subs};
